"""Reference values of metrics, and the arrays that they belong to: see README.md beside this file.

A part of them lies in this folder. The environment variable UNWEAVE_GOLDEN names a folder with more: all its
``cases_*.json`` are read, each with the arrays of the ``.npz`` of the same name.
"""

import json
import os
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from unweave.metrics.sample import check_sample

FOLDER = Path(os.environ.get("UNWEAVE_GOLDEN") or Path(__file__).parent)
_CONTENTS = [
    (json.loads(file.read_text(encoding="utf-8")), file.with_suffix(".npz"))
    for file in sorted(FOLDER.glob("cases_*.json"))
]
# Each with the file of its arrays.
CASES = {case["id"]: (case, arrays) for content, arrays in _CONTENTS for case in content["cases"]}
UDR_GROUPS = {group["name"]: group for content, _ in _CONTENTS for group in content["udr_groups"]}
FORMULAS = [formula for content, _ in _CONTENTS for formula in content["formula_cases"]]


def having(metric):
    """The ids of the cases with a number for a metric."""
    return [
        name
        for name, (case, _) in CASES.items()
        if {"value", "values"} & set(case["metrics"].get(metric, ()))
    ]


def sample(name, part="train", rows=None, dtype=np.float64):
    """Codes and factors of a case."""
    case, file = CASES[name]
    with np.load(file) as arrays:
        factors = arrays[case["arrays"][f"factors_{part}"]]
        stored = case["arrays"][f"rep_{part}"]
        if stored in arrays:
            codes = arrays[stored]
        else:
            nuisance = case["arrays"].get(f"nuisance_{part}")
            codes = representation(case, arrays, factors, arrays[nuisance] if nuisance else 0)
    return check_sample(codes[:rows].astype(dtype), factors[:rows])


def representation(case, arrays, factors, nuisance):
    """The codes (n, D) in single precision: a function of factors (n, K) and nuisance (n,), as the reference has it."""
    function, sizes = case["rep_function"], case["factor_sizes"]
    factors = np.asarray(factors, dtype=np.int64)
    codes = np.tile(arrays[function["offset"]], (len(factors), 1))
    tables, first = arrays[function["tables"]], 0
    for column, size in zip(factors.T, sizes, strict=True):
        codes = codes + tables[first + column]
        first += size
    for pair in function["pairs"]:
        a, b = pair["factors"]
        codes[:, pair["dim"]] += arrays[pair["array"]][factors[:, a], factors[:, b]]
    mix = arrays[function["noise_mix"]]
    if mix.any():
        row = np.ravel_multi_index(tuple(factors.T), sizes) * case["nuisance_size"] + nuisance
        noise = np.zeros((len(row), len(mix)))
        for dim in np.flatnonzero(mix.any(axis=1)):
            noise[:, dim] = _hash_normal(row, int(dim), function["noise_seed"])
        codes = codes + noise @ mix
    return codes.astype(np.float32)


def _hash_normal(row, dim, seed):
    """Pseudo noise of a standard normal distribution, a pure function of its arguments."""
    u = np.uint64
    with np.errstate(over="ignore"):
        z = u((seed * 1000003 + dim) % 2**64) * u(0x9E3779B97F4A7C15)
        z = z + (row.astype(np.uint64) + u(1)) * u(0xD1B54A32D192ED03)
        z = (z ^ (z >> u(30))) * u(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> u(27))) * u(0x94D049BB133111EB)
        z = z ^ (z >> u(31))
    return ndtri(((z >> u(11)).astype(np.float64) + 0.5) / 2.0**53)
