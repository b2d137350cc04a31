"""The scores of all methods as tables: a small one per data set on the page, all of them as files."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import pandas as pd

from unweave.analyses.scores import CONDITIONS
from unweave.figures.report.tables import MISSING, csv_text, flat, scrolling, tex_text
from unweave.figures.style import data_name, method_name, method_order, metric_name


def score_files(scores: pd.DataFrame, name: str) -> dict[str, bytes]:
    """What ``median_scores`` found, as CSV, and the medians alone as a LaTeX table of methods by metrics."""
    if scores.empty:
        return {}
    rows = pd.concat([rows for _, rows in _conditions(scores)])
    named = rows.assign(data=rows["data"].map(data_name), method=rows["name"])
    index = [*_varying(scores), "method"]
    medians = named.pivot_table("value", index, "metric", aggfunc="first", sort=False)
    medians = flat(medians[scores["metric"].unique().tolist()].rename(columns=metric_name))
    csv, tex = file_names(name)
    return {csv: csv_text(scores).encode(), tex: tex_text(medians).encode()}


def file_names(name: str) -> tuple[str, str]:
    """Where the files of ``score_files`` lie beside the page."""
    return f"tables/{name}.csv", f"tables/{name}.tex"


def score_tables(scores: pd.DataFrame) -> list[tuple[str, str]]:
    """A title and an HTML table per data set, and per protocol, correlation … where the study has several."""
    return [(title, _table(rows, f"Scores: {title}")) for title, rows in _conditions(scores)]


def _conditions(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """What can be compared, with a title; methods in the papers' order, as people call them in ``name``."""
    ranks = {name: place for place, name in enumerate(sorted(scores["method"].unique(), key=method_order))}
    varying = _varying(scores)
    named = scores.assign(name=_method_names(scores))
    for condition, rows in named.groupby(varying, sort=False):
        title = ", ".join(map(_condition_text, varying, condition))
        yield title, rows.sort_values("method", key=lambda names: names.map(ranks), kind="stable")


def _method_names(scores: pd.DataFrame) -> pd.Series[str]:
    """Names with how an encoder that takes labels came by them, and the variant: "SS-IDVAE (u unknown, labelled 100)".

    A score that does not tell (UDR compares codes that saw no true label) stands in the row of the others.
    """
    modes = scores["labels"]
    told = modes.mask(modes == "")
    told = ("u " + told.fillna(told.groupby(scores["method"]).transform("first"))).fillna("")
    names = [
        method_name(method, mode, variant)
        for method, variant, mode in zip(scores["method"], scores["variant"], told, strict=True)
    ]
    return pd.Series(names, index=scores.index, dtype="str")


def _varying(scores: pd.DataFrame) -> list[str]:
    return [name for name in CONDITIONS if name == "data" or scores[name].nunique() > 1]


def _condition_text(name: str, value: object) -> str:
    if name == "data":
        return data_name(str(value))
    number = f"{value:,}" if isinstance(value, int | float) else str(value)
    return f"{number} steps" if name == "steps" else f"{name.replace('_', ' ')} {number}"


def _table(scores: pd.DataFrame, label: str) -> str:
    metrics = scores["metric"].unique()
    heads = "".join(f'<th scope="col" class="number">{escape(metric_name(name))}</th>' for name in metrics)
    body = []
    for (_, name), rows in scores.groupby(["method", "name"], sort=False):
        numbers = rows[["value", "low", "high"]].to_numpy()
        cells = {metric: _cell(*three) for metric, three in zip(rows["metric"], numbers, strict=True)}
        row = "".join(cells.get(metric, f'<td class="number">{MISSING}</td>') for metric in metrics)
        runs = f'<td class="number">{rows["n"].max():,}</td>'
        told = escape(str(name)).replace("(u ", "(u&nbsp;")
        body.append(f'<tr><th scope="row">{told}</th>{runs}{row}</tr>')
    head = f'<tr><th scope="col">Method</th><th scope="col" class="number">Runs</th>{heads}</tr>'
    return scrolling(label, f"<thead>{head}</thead><tbody>{''.join(body)}</tbody>")


def _cell(value: float, low: float, high: float) -> str:
    digits = 3 if abs(value) < 10 else 1
    to = "–" if low >= 0 else " to "
    interval = "" if pd.isna(low) else f"<small>{low:.{digits}f}{to}{high:.{digits}f}</small>"
    return f'<td class="number" data-value="{value:.17g}">{value:.{digits}f}{interval}</td>'
