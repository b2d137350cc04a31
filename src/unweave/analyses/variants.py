"""What a study varies besides data, method, strength and seed: label fractions, learning rates and the like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

_ALIKE = ["data", "method", "strength", "seed", "correlation", "latent_size", "steps"]
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
DEFAULT = "default"  # a run that has none of the settings by which others are told apart
Flat = dict[str, Any]


def variants(table: pd.DataFrame) -> pd.Series[str]:
    """Per run the settings that the study varies, in words: "labelled 100, label_variance 0.5"; empty without any.

    A setting counts if it differs among runs of a method that agree in data set, strength, seed, correlation, number
    of latents and steps. So one that goes with the strength (``lambda_d`` with ``lambda_od``), or differs between data
    sets only (as a likelihood may), does not. Settings within settings are told by their own name. The index is
    ``run``.
    """
    runs = table.drop_duplicates("run").set_index("run")[[*_ALIKE, "settings"]]
    told = pd.Series("", index=runs.index, dtype="str")
    runs["settings"], texts = pd.factorize(runs["settings"])
    if len(texts) < 2:
        return told
    groups = runs.groupby(_ALIKE, dropna=False, sort=False)["settings"]
    several = runs[groups.transform("nunique") > 1]
    for method, some in several.groupby("method", sort=False):
        settings = runs.loc[runs["method"] == method, "settings"]
        flat = {code: dict(_flat(json.loads(texts[code]))) for code in settings.unique()}
        alike = {frozenset(codes) for _, codes in some.groupby(_ALIKE, dropna=False, sort=False)["settings"]}
        names = _names(key for codes in alike for key in _differing([flat[code] for code in codes]))
        told[settings.index] = settings.map({code: _spelled(own, names) for code, own in flat.items()})
    return told


def by_variant(table: pd.DataFrame) -> pd.DataFrame:
    """The table with each variant of a method as a method of its own: "ss_idvae, labelled 100"."""
    told = variants(table)
    told = told[told != ""]
    if told.empty:
        return table
    endings = table["run"].map(", " + told).fillna("")
    return table.assign(method=table["method"] + endings)


def in_order(variant: str) -> tuple[tuple[int, float, str], ...]:
    """A sorting key: by numbers where texts are alike. Whole numbers come first: 100 labels before a share of 0.1."""
    return tuple(_place(word) for word in variant.split())


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings, and of lists of them, by their dotted names."""
    if isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        value = {str(place): part for place, part in enumerate(value)}
    if not isinstance(value, Mapping) or (name and not value):
        yield name, value
        return
    for key, part in value.items():
        yield from _flat(part, f"{name}.{key}" if name else key)


def _differing(settings: list[Flat]) -> Iterator[str]:
    """The names whose values differ, or that some lack."""
    for name in dict.fromkeys(name for own in settings for name in own):
        if len({json.dumps(own[name]) if name in own else "" for own in settings}) > 1:
            yield name


def _names(keys: Iterable[str]) -> dict[str, str]:
    """The last part of each dotted name; all of it where that is another's last part, too."""
    known = sorted(set(keys))
    ends = [key.rpartition(".")[2] for key in known]
    return {key: end if ends.count(end) == 1 else key for key, end in zip(known, ends, strict=True)}


def _spelled(own: Flat, names: dict[str, str]) -> str:
    told = [f"{name} {_text(own[key])}" for key, name in names.items() if key in own]
    return ", ".join(told) or DEFAULT


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, str) else json.dumps(value).replace("null", "none")


def _place(word: str) -> tuple[int, float, str]:
    word = word.rstrip(",")
    if not _NUMBER.fullmatch(word):
        return (2, 0.0, word)
    return (0 if word.lstrip("+-").isdigit() else 1, float(word), "")
