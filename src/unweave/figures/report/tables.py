"""The report's tables: for the page, as CSV with all digits, and as LaTeX in the style of booktabs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from unweave.analyses.scores import CONDITIONS
from unweave.arrays import FloatArray
from unweave.figures.style import data_name, method_name, method_order, metric_name

Kind = Literal["number", "short", ""]

MISSING = "–"
_FEW = 15  # rows that are not counted
_SHORT = 40  # characters of a text that is not broken into lines
_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$", "✓": r"$\surd$",
    "²": "$^2$", "³": "$^3$", "–": "--", "—": "---", "…": r"\dots{}", "\n": " ",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column's heading, and how its cells are set: numbers to the right, short texts on one line."""

    name: str
    kind: Kind = ""


@dataclass(frozen=True)
class Cell:
    """A cell's text, a line in small letters below it, and the number by which its column is sorted."""

    text: str
    detail: str = ""
    value: float | None = None


@dataclass(frozen=True)
class Table:
    """A table on the page.

    Parameters
    ----------
    label
        its name for people who do not see it.
    columns, rows
        a row has a cell per column.
    names_rows
        whether the first cell of a row is its heading.
    note
        below the table.
    """

    label: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    names_rows: bool = True
    note: str = ""


# --- any table -----------------------------------------------------------------------------------


def flatten(table: pd.DataFrame) -> pd.DataFrame:
    """The index as first columns, unless it only counts the rows; headings of several levels joined."""
    counts_rows = table.index.names == [None] and pd.api.types.is_integer_dtype(table.index)
    if not counts_rows:
        names = ["" if name is None else name for name in table.index.names]
        table = table.reset_index(names=names, allow_duplicates=True)
    headings = [name if isinstance(name, tuple) else (name,) for name in table.columns]
    return table.set_axis([" ".join(map(str, name)).strip() for name in headings], axis=1)


def csv_text(table: pd.DataFrame) -> str:
    """A flat table as CSV, numbers with all their digits."""
    return table.to_csv(index=False, lineterminator="\n")


def tex_text(table: pd.DataFrame) -> str:
    """A flat table as a LaTeX ``tabular`` with the rules of booktabs; every special character is escaped."""
    spec, columns = "", []
    for _, column in table.items():
        number = _is_number(column)
        spec += "r" if number else "l"
        # In LaTeX's text a hyphen is no minus.
        columns.append([tex_escape(text.replace("-", "−") if number else text) for text in _texts(column)])
    rows = [" & ".join(row) + r" \\" for row in zip(*columns, strict=True)]
    header = " & ".join(tex_escape(str(name)) for name in table.columns) + r" \\"
    lines = [rf"\begin{{tabular}}{{{spec}}}", r"\toprule", header, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def page_table(frame: pd.DataFrame, label: str, limit: int = 100) -> Table:
    """A flat table for the page; of a long one the first ``limit`` rows, and a note that says so.

    Examples
    --------
    >>> table = page_table(pd.DataFrame({"method": ["VAE", "β-VAE"], "MIG": [0.1, 0.25]}), "Scores")
    >>> [[cell.text for cell in row] for row in table.rows], table.columns[1].kind
    ([['VAE', '0.100'], ['β-VAE', '0.250']], 'number')
    """
    shown = frame.head(limit)
    texts = [_texts(values) for _, values in shown.items()]
    columns = [
        Column(str(name), _kind(values, column))
        for (name, values), column in zip(shown.items(), texts, strict=True)
    ]
    rows = [[Cell(text) for text in row] for row in zip(*texts, strict=True)]
    names_rows = len(columns) > 0 and columns[0].kind != "number"
    count = f"The first {limit:,} of {len(frame):,} rows" if len(frame) > limit else f"{len(frame)} rows"
    return Table(label, columns, rows, names_rows, count if len(frame) > _FEW else "")


def tex_escape(text: str) -> str:
    """Text as LaTeX that prints it; Greek letters in math, as most fonts lack them."""
    return "".join(_TEX.get(character) or _greek(character) for character in text)


def _greek(character: str) -> str:
    kind, _, letter = unicodedata.name(character, "").partition(" LETTER ")
    if kind == "GREEK SMALL" and letter.isalpha() and letter != "OMICRON":
        return f"$\\{letter.lower().replace('lamda', 'lambda')}$"
    return character


def _texts(column: pd.Series) -> list[str]:
    """The text of each value; numbers of one column have one format."""
    if not pd.api.types.is_float_dtype(column):
        return [MISSING if pd.isna(value) else str(value) for value in column]
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    number_format = _number_format(np.abs(values[np.isfinite(values)]))
    return [MISSING if np.isnan(value) else format(value, number_format) for value in values]


def _number_format(sizes: FloatArray) -> str:
    """One format for a column: whole numbers as such, three decimals, or three digits where those hide something."""
    sizes = sizes[sizes > 0]
    if np.all(sizes == np.round(sizes)) and np.all(sizes < 1e15):
        return ".0f"
    return ".3f" if sizes.min() >= 5e-4 and sizes.max() < 1e4 else ".3g"


def _is_number(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def _kind(column: pd.Series, texts: list[str]) -> Kind:
    if _is_number(column):
        return "number"
    return "short" if max(map(len, texts), default=0) <= _SHORT else ""


# --- the scores of all methods --------------------------------------------------------------------


def score_files(scores: pd.DataFrame, name: str) -> dict[str, bytes]:
    """The result of ``median_scores`` as CSV, and the medians alone as a LaTeX table of methods by metrics."""
    if scores.empty:
        return {}
    rows = pd.concat([rows for _, rows in _conditions(scores)])
    named = rows.assign(data=rows["data"].map(data_name), method=rows["name"])
    if (unknown := named["latent_size"].isna()).any():  # a method without this setting
        named = named.assign(latent_size=named["latent_size"].astype(object).mask(unknown, MISSING))
    index = [*_varying(scores), "method"]
    medians = named.pivot_table("value", index, "metric", aggfunc="first", sort=False)
    medians = flatten(medians[scores["metric"].unique().tolist()].rename(columns=metric_name))
    csv, tex = score_paths(name)
    return {csv: csv_text(scores).encode(), tex: tex_text(medians).encode()}


def score_paths(name: str) -> tuple[str, str]:
    """The paths of ``score_files``, relative to the page."""
    return f"tables/{name}.csv", f"tables/{name}.tex"


def score_tables(scores: pd.DataFrame) -> list[tuple[str, Table]]:
    """A title and a table per data set, and per protocol, correlation … where the study has several."""
    return [(title, _score_table(rows, f"Scores: {title}")) for title, rows in _conditions(scores)]


def _conditions(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """What can be compared, with a title; methods in the papers' order, their names for people in ``name``."""
    ranks = {name: rank for rank, name in enumerate(sorted(scores["method"].unique(), key=method_order))}
    varying = _varying(scores)
    named = scores.assign(name=_method_names(scores))
    for condition, rows in named.groupby(varying, sort=False, dropna=False):
        pairs = zip(varying, condition, strict=True)
        title = ", ".join(
            _condition_text(name, value) for name, value in pairs if not pd.isna(cast(Any, value))
        )
        yield title, rows.sort_values("method", key=lambda names: names.map(ranks), kind="stable")


def _method_names(scores: pd.DataFrame) -> pd.Series[str]:
    """Names with the labels that an encoder was given, and the variant: "SS-IDVAE (u unknown, labelled 100)".

    A score without this information (UDR compares codes that saw no true label) is in the row of the others.
    """
    modes = scores["labels"]
    known = modes.mask(modes == "")
    texts = ("u " + known.fillna(known.groupby(scores["method"]).transform("first"))).fillna("")
    names = [
        method_name(method, mode, variant)
        for method, variant, mode in zip(scores["method"], scores["variant"], texts, strict=True)
    ]
    return pd.Series(names, index=scores.index, dtype="str")


def _varying(scores: pd.DataFrame) -> list[str]:
    return [name for name in CONDITIONS if name == "data" or scores[name].nunique() > 1]


def _condition_text(name: str, value: object) -> str:
    if name == "data":
        return data_name(str(value))
    number = f"{value:,}" if isinstance(value, int | float) else str(value)
    return f"{number} steps" if name == "steps" else f"{name.replace('_', ' ')} {number}"


def _score_table(scores: pd.DataFrame, label: str) -> Table:
    metrics = scores["metric"].unique()
    columns = [Column("Method"), Column("Runs", "number")]
    columns += [Column(metric_name(name), "number") for name in metrics]
    table = []
    for (_, name), rows in scores.groupby(["method", "name"], sort=False):
        numbers = rows[["value", "low", "high"]].to_numpy(np.float64)
        cells = {
            metric: _score_cell(three[0], three[1], three[2], few)
            for metric, three, few in zip(rows["metric"], numbers, rows["values"], strict=True)
        }
        head = [Cell(str(name).replace("(u ", "(u\N{NO-BREAK SPACE}")), Cell(f"{rows['n'].max():,}")]
        table.append(head + [cells.get(metric, Cell(MISSING)) for metric in metrics])
    return Table(label, columns, table)


def _score_cell(value: float, low: float, high: float, few: Sequence[float]) -> Cell:
    """A median, and its interval; where there are too few runs for one, their values."""
    digits = 3 if abs(value) < 10 else 1
    to = "–" if low >= 0 else " to "
    values = ", ".join(f"{one:.{digits}f}" for one in few) if len(few) > 1 else ""
    interval = values if pd.isna(low) else f"{low:.{digits}f}{to}{high:.{digits}f}"
    return Cell(f"{value:.{digits}f}", interval, value)
