"""A study in words, for the head of its report: its runs, and which labels its encoders were given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pandas as pd

from unweave.analyses.variants import variant_order, with_variant
from unweave.evaluation.scores import points_text
from unweave.figures.papers.paper import PAPERS, Exhibit, Protocol
from unweave.figures.style import data_name, method_name, method_order, metric_name, representation_name
from unweave.study import Results
from unweave.study.results import RUN_COLUMNS
from unweave.study.scores import POINTS
from unweave.study.spec import Evaluation

U_GIVEN = (
    "These codes were computed from the true labels u of each image, as in the papers of these methods: they know the "
    "factors that they are scored against. Their scores compare neither with those of other methods nor with those of "
    "the same methods that did not get them."
)
_MANY = 12  # longer lists of numbers are shortened


def study_summary(results: Results) -> str:
    """The study in a paragraph: how many runs of what."""
    planned = results.spec.get("planned")
    runs = results.table.drop_duplicates("run")
    failed = f"{len(results.failures):,} failed" if results.failures else "none failed"
    of = f", of {planned:,} planned" if planned is not None else ""
    text = f"{_count(len(runs), 'run')} finished and {failed}{of}."
    if runs.empty:
        return f"{text} There are no scores yet."
    per_method = runs.groupby("method")["strength"].nunique()
    strengths = f" at {_span(per_method)} strengths" if per_method.max() > 1 else ""
    metrics = [name for name in results.table["metric"].unique() if "." not in name]
    protocols = results.table["protocol"].unique()
    return (
        f"{text} The study trains {_count(per_method.size, 'method')}{strengths} on "
        f"{_count(runs['data'].nunique(), 'data set')} with {_count(runs['seed'].nunique(), 'seed')} "
        f"for {' or '.join(f'{steps:,}' for steps in sorted(runs['steps'].unique()))} steps, and has "
        f"{_count(len(results.table), 'score')} of {_count(len(metrics), 'metric')} "
        f"by the protocol{'s' * (len(protocols) > 1)} {' and '.join(protocols)}."
    )


def reduced_protocol(results: Results) -> str:
    """What the study does less of than its paper does, and of what the paper says nothing; "" if neither."""
    protocols = [PAPERS[name].protocol for name in results.spec.get("reports", []) if name in PAPERS]
    stated = next((protocol for protocol in protocols if protocol is not None), None)
    if stated is None:
        return ""
    if stated.methods and not results.table["method"].isin(stated.methods).any():
        stated = Protocol(stated.source)
    evaluation = Evaluation.model_fields["num_train"].default
    points = results.spec.get("evaluation", {}).get("num_train", evaluation)
    numbers = [
        (int(results.table["steps"].max()), stated.steps, "step"),
        (points if isinstance(points, int) else evaluation, stated.points, "point"),
        (int(results.table["seed"].nunique()), stated.seeds, "seed"),
    ]
    less = [f"{_count(n, what)} ({most:,})" for n, most, what in numbers if most is not None and n < most]
    silent = [_count(n, what) for n, most, what in numbers if most is None]
    sentences = []
    if less:
        sentences.append(f"A reduced protocol: {', '.join(less)}; in brackets what {stated.source} have.")
    if silent:
        sentences.append(f"The study has {', '.join(silent)}; {stated.source} state no number of these.")
    if sentences:
        sentences.append(
            "The numbers below are what these methods do by this protocol, not the paper's results."
        )
    return " ".join(sentences)


def facts(results: Results) -> list[tuple[str, str]]:
    """Names and values: data sets, methods and their strengths, seeds, metrics, and what else differs among runs."""
    table = results.table
    runs = table[RUN_COLUMNS].drop_duplicates("run")
    methods = sorted(runs["method"].unique(), key=method_order)
    by_method = {name: rows for name, rows in runs.groupby("method")}
    metrics = [name for name in table["metric"].unique() if "." not in name]
    codes = table[["representation", "labels"]].drop_duplicates().itertuples(index=False)
    pairs = [
        ("Data sets", ", ".join(_data_text(name) for name in runs["data"].unique())),
        ("Methods", "\n".join(_method_text(name, by_method[name]) for name in methods)),
        ("Seeds", _numbers(runs["seed"])),
        ("Steps", _numbers(runs["steps"])),
        ("Latents", _numbers(runs["latent_size"])),
        ("Metrics", ", ".join(map(metric_name, metrics))),
        ("Representations", ", ".join(representation_name(*kind) for kind in codes)),
        ("Protocols", ", ".join(table["protocol"].unique())),
        ("Points", _points(table)),
    ]
    pairs = [pair for pair in pairs if pair[1]]  # no method may have latents
    if runs["correlation"].nunique() > 1:
        pairs.insert(3, ("Correlations", _numbers(runs["correlation"])))
    if variants := _variants(runs):
        pairs.insert(2, ("Variants", variants))
    return pairs


def _data_text(data: str) -> str:
    """A data set's name; of a folder of images also the path."""
    name = data_name(data)
    return f"{name} ({data})" if data.endswith(f"/{name}") else name


def _points(table: pd.DataFrame) -> str:
    """How many points of how many rows the scores are of, a line per data set; "" where none says so."""
    known = table[~table["metric"].str.contains(".", regex=False)].dropna(subset="train_points")
    lines = []
    for data, rows in known.groupby("data", sort=False):
        texts = []
        for group, scores in rows.groupby(POINTS, dropna=False, sort=False):
            train, test, size = cast(tuple[Any, Any, Any], group)
            parts = {"every": int(train)} if pd.isna(test) else {"train": int(train), "test": int(test)}
            text = points_text({**parts, "rows": None if pd.isna(size) else int(size)})
            texts.append(f"{text} ({', '.join(map(metric_name, scores['metric'].unique()))})")
        lines.append(f"{_data_text(str(data))}: {'; '.join(texts)}")
    return "\n".join(lines)


def _variants(runs: pd.DataFrame) -> str:
    """What else the study varies, a line per method."""
    runs = with_variant(runs)
    lines = [
        f"{method_name(str(method))}: {'; '.join(sorted(rows['variant'].unique(), key=variant_order))}"
        for method, rows in runs[runs["variant"] != ""].groupby("method")
    ]
    return "\n".join(lines)


def _method_text(method: str, runs: pd.DataFrame) -> str:
    strengths = runs["strength"].dropna()
    if strengths.empty:
        return method_name(method)
    return f"{method_name(method)}: {runs['strength_name'].iloc[0]} = {_numbers(strengths)}"


def _numbers(values: pd.Series) -> str:
    """Different values in order; of many, how many and from where to where."""
    different = sorted(values.dropna().unique())
    if len(different) > _MANY:
        return f"{len(different):,} from {different[0]:,.10g} to {different[-1]:,.10g}"
    return ", ".join(f"{value:,.10g}" for value in different)


def _span(counts: pd.Series) -> str:
    """The smallest and the largest count, if they differ."""
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low} to {high}"


def _count(number: int, thing: str) -> str:
    """A number and a noun: "1 run", "2 runs"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


# --- labels u --------------------------------------------------------------------------------------


def label_modes(table: pd.DataFrame) -> dict[str, set[str]]:
    """By method whose encoder takes labels, which labels its codes were computed from: given, predicted, unknown."""
    rows = table[["method", "labels"]].drop_duplicates()
    rows = rows[rows["labels"] != ""]
    return {
        name: set(rows.loc[rows["method"] == name, "labels"])
        for name in sorted(rows["method"], key=method_order)
    }


def label_note(modes: Mapping[str, set[str]]) -> str:
    """For the head of a report; empty if no encoder takes labels."""
    if not modes:
        return ""
    blind = _without_true_labels(modes)
    parts = [f"The encoders of {_join(modes)} take labels u next to the image."]
    if blind:
        parts.append(
            f"Where nothing else is said, they did not get the true ones: {_method_list(blind)}. Predicted labels are "
            "those of the method's q(u|x); if u is unknown, a code is the mean over draws of u."
        )
    if any("given" in kinds for kinds in modes.values()):
        parts.append(
            "Scores with u given are of codes that were computed from the true labels, which they are scored against. "
            "They are only in tables and figures that say so."
        )
    if only_given := [name for name in modes if name not in blind]:
        parts.append(f"{_join(only_given)} {'have' if len(only_given) > 1 else 'has'} no other scores.")
    return " ".join(parts)


def full_caption(exhibit: Exhibit, modes: Mapping[str, set[str]]) -> str:
    """An exhibit's caption, with which labels encoders were given unless it says so itself."""
    blind = _without_true_labels(modes)
    if not blind or exhibit.explains_labels:
        return exhibit.caption
    return f"{exhibit.caption} Encoders that take labels u did not get the true ones: {_method_list(blind)}."


def _without_true_labels(modes: Mapping[str, set[str]]) -> dict[str, str]:
    """The labels behind the codes that ``select`` takes."""
    return {
        name: "predicted" if "predicted" in kinds else "unknown"
        for name, kinds in modes.items()
        if kinds != {"given"}
    }


def _method_list(modes: Mapping[str, str]) -> str:
    """Names as in the tables: "iVAE (u unknown), SS-iVAE (u predicted)"."""
    return ", ".join(f"{method_name(name)} (u {mode})" for name, mode in modes.items())


def _join(methods: Iterable[str]) -> str:
    """Names in a sentence: "iVAE, IDVAE and SS-iVAE"."""
    *most, last = map(method_name, methods)
    return f"{', '.join(most)} and {last}" if most else last
