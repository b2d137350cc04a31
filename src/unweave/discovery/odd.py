"""Photographs that are unlike the others: drawn badly, or with codes far out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import FloatArray, IntArray

MOST = 12
_FAR = 5.0  # robust deviations above the median


@dataclass(frozen=True)
class OddPhotograph:
    """A row, and in words what is odd about it."""

    row: int
    why: str
    deviations: float


def odd_photographs(
    errors: FloatArray, codes: FloatArray, seen: IntArray, rows: IntArray
) -> list[OddPhotograph]:
    """The photographs that are odd, the oddest first; none, if none stands out.

    Errors are compared among the photographs that were learned from and among the others apart: those learned from are
    drawn better.

    Parameters
    ----------
    errors
        (n,) of each photograph's drawing.
    codes
        (n, K) of the used latents.
    seen
        the rows that were learned from.
    rows
        the rows to judge: no duplicates.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> errors = rng.uniform(1, 2, 100)
    >>> errors[7] = 40.0
    >>> [odd.row for odd in odd_photographs(errors, rng.normal(size=(100, 2)), np.arange(80), np.arange(100))]
    [7]
    """
    learned = np.isin(np.arange(len(errors)), seen)
    error_scores = np.full(len(errors), -np.inf)
    for group in (learned, ~learned):
        members = np.intersect1d(rows, np.flatnonzero(group))
        if len(members):
            error_scores[members] = _robust(np.log(np.maximum(errors[members], 1e-12)))
    code_scores = np.full(len(errors), -np.inf)
    if codes.shape[1]:
        centre = np.median(codes[rows], axis=0)
        scale = np.maximum(_deviation(codes[rows]), 1e-9)
        code_scores[rows] = _robust(np.sqrt((((codes[rows] - centre) / scale) ** 2).sum(axis=1)))
    worst = np.maximum(error_scores, code_scores)
    chosen = [int(row) for row in np.argsort(-worst, kind="stable") if worst[row] > _FAR][:MOST]
    return [
        OddPhotograph(row, _why(error_scores[row] > _FAR, code_scores[row] > _FAR), float(worst[row]))
        for row in chosen
    ]


def _why(is_badly_drawn: bool | np.bool_, is_far: bool | np.bool_) -> str:
    reasons = []
    if is_badly_drawn:
        reasons.append("shows something that the factors cannot express")
    if is_far:
        reasons.append("has values far beyond those of the others")
    return " and ".join(reasons)


def _robust(values: FloatArray) -> FloatArray:
    """Deviations above the median, in units that for a normal distribution are standard deviations."""
    scale = float(_deviation(values[:, None])[0])
    centred: FloatArray = values - np.median(values)
    return centred / scale if scale > 1e-9 else np.zeros_like(values)


def _deviation(values: FloatArray) -> FloatArray:
    deviation: FloatArray = 1.4826 * np.median(np.abs(values - np.median(values, axis=0)), axis=0)
    return deviation
