"""What a study is made of, in words: for the head of its report."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from unweave.analyses.variants import variant_order, with_variant
from unweave.figures.style import data_name, method_name, method_order, metric_name, representation_name
from unweave.study import Results
from unweave.study.results import RUN_COLUMNS

_MANY = 12  # longer lists of numbers are shortened


def summary(results: Results) -> str:
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
        f"by the protocol{'s' * (len(protocols) > 1)} {_list(protocols)}."
    )


def facts(results: Results) -> list[tuple[str, str]]:
    """Names and values: data sets, methods and their strengths, seeds, metrics, and what else differs among runs."""
    table = results.table
    runs = table[RUN_COLUMNS].drop_duplicates("run")
    methods = sorted(runs["method"].unique(), key=method_order)
    by_method = {name: rows for name, rows in runs.groupby("method")}
    own = [name for name in table["metric"].unique() if "." not in name]
    codes = table[["representation", "labels"]].drop_duplicates().itertuples(index=False)
    found = [
        ("Data sets", ", ".join(_data_text(name) for name in runs["data"].unique())),
        ("Methods", "\n".join(_method_text(name, by_method[name]) for name in methods)),
        ("Seeds", _numbers(runs["seed"])),
        ("Steps", _numbers(runs["steps"])),
        ("Latents", _numbers(runs["latent_size"])),
        ("Metrics", ", ".join(map(metric_name, own))),
        ("Representations", ", ".join(representation_name(*kind) for kind in codes)),
        ("Protocols", ", ".join(table["protocol"].unique())),
    ]
    if runs["correlation"].nunique() > 1:
        found.insert(3, ("Correlations", _numbers(runs["correlation"])))
    if varied := _variants(runs):
        found.insert(2, ("Variants", varied))
    return found


def _data_text(data: str) -> str:
    """A data set's name; of a folder of images also the path."""
    name = data_name(data)
    return f"{name} ({data})" if data.endswith(f"/{name}") else name


def _variants(runs: pd.DataFrame) -> str:
    """What the study varies besides, a line per method."""
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
    different = sorted(values.unique())
    if len(different) > _MANY:
        return f"{len(different):,} from {different[0]:,.10g} to {different[-1]:,.10g}"
    return ", ".join(f"{value:,.10g}" for value in different)


def _span(counts: pd.Series) -> str:
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low} to {high}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def _list(names: Iterable[str]) -> str:
    return " and ".join(names)
