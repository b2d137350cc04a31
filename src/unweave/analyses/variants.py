"""What a study varies besides data, method, strength and seed: label fractions, learning rates and the like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

# Runs that agree in these are compared: what differs among their settings makes a variant.
_ALIKE = ["data", "method", "strength", "seed", "correlation", "latent_size", "steps"]
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_DEFAULT = "default"  # a run that has none of the settings in which others differ
_Flat = dict[str, Any]


def with_variant(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the column ``variant``: per run the settings that the study varies, in words.

    A setting counts if it differs among runs of a method that agree in data set, strength, seed, correlation, number of
    latents and steps. So one that goes with the strength (``lambda_d`` with ``lambda_od``), or differs between data
    sets only (as a likelihood may), does not. Settings within settings are called by their own name.

    Parameters
    ----------
    table
        a results table, or any table with the columns of runs.

    Returns
    -------
    the table with ``variant``: "labelled 100, label_variance 0.5", or empty where a method has no variants.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, with_variant
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=1, strengths=1)
    >>> few, many = (table.assign(run=str(n), settings=f'{{"labelled": {n}}}') for n in (100, 1000))
    >>> import pandas as pd
    >>> with_variant(pd.concat([few, many]))["variant"].unique().tolist()
    ['labelled 100', 'labelled 1000']
    """
    runs = table.drop_duplicates("run").set_index("run")[[*_ALIKE, "settings"]]
    runs["settings"], texts = pd.factorize(runs["settings"])
    if len(texts) < 2:
        return table.assign(variant=_constant("", table.index))
    variants = _constant("", runs.index)
    groups = runs.groupby(_ALIKE, dropna=False, sort=False)["settings"]
    varied = runs[groups.transform("nunique") > 1]
    for method, some in varied.groupby("method", sort=False):
        settings = runs.loc[runs["method"] == method, "settings"]
        flat = {code: dict(_flatten(json.loads(texts[code]))) for code in settings.unique()}
        alike = {frozenset(codes) for _, codes in some.groupby(_ALIKE, dropna=False, sort=False)["settings"]}
        names = _short_names(key for codes in alike for key in _differing([flat[code] for code in codes]))
        variants[settings.index] = settings.map(
            {code: _words(values, names) for code, values in flat.items()}
        )
    return table.assign(variant=table["run"].map(variants).astype("str"))


def method_variants(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The methods of a table with their variants, each pair once, in order of appearance.

    Examples
    --------
    >>> from unweave.analyses import method_variants, simulate_results, with_variant
    >>> method_variants(with_variant(simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=1)))
    [('beta_vae', '')]
    """
    pairs = table[["method", "variant"]].drop_duplicates()
    return list(pairs.itertuples(index=False, name=None))


def variant_order(variant: str) -> tuple[tuple[int, float, str], ...]:
    """A sorting key: by numbers where texts are alike. Whole numbers come first: 100 labels before a share of 0.1.

    Examples
    --------
    >>> from unweave.analyses.variants import variant_order
    >>> sorted(["labelled 0.1", "labelled 1000", "labelled 100"], key=variant_order)
    ['labelled 100', 'labelled 1000', 'labelled 0.1']
    """
    return tuple(_word_order(word) for word in variant.split())


def _constant(text: str, index: pd.Index[Any]) -> pd.Series[str]:
    return pd.Series(text, index=index, dtype="str")


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings, and of lists of them, by their dotted names."""
    if isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        value = {str(index): part for index, part in enumerate(value)}
    if not isinstance(value, Mapping) or (name and not value):
        yield name, value
        return
    for key, part in value.items():
        yield from _flatten(part, f"{name}.{key}" if name else key)


def _differing(settings: list[_Flat]) -> Iterator[str]:
    """The names whose values differ, or that some lack."""
    for name in dict.fromkeys(name for values in settings for name in values):
        if len({json.dumps(values[name]) if name in values else "" for values in settings}) > 1:
            yield name


def _short_names(keys: Iterable[str]) -> dict[str, str]:
    """The last part of each dotted name; all of it where that is another's last part, too."""
    known = sorted(set(keys))
    ends = [key.rpartition(".")[2] for key in known]
    return {key: end if ends.count(end) == 1 else key for key, end in zip(known, ends, strict=True)}


def _words(values: _Flat, names: dict[str, str]) -> str:
    return (
        ", ".join(f"{name} {_text(values[key])}" for key, name in names.items() if key in values) or _DEFAULT
    )


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


def _word_order(word: str) -> tuple[int, float, str]:
    word = word.rstrip(",")
    if not _NUMBER.fullmatch(word):
        return (2, 0.0, word)
    return (0 if word.lstrip("+-").isdigit() else 1, float(word), "")
