"""Are samples different? Mann-Whitney tests, Holm's correction for many tests, and letters that show the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats

from unweave.arrays import BoolArray, FloatArray

_EXACT = 8  # up to so many values on one side the Mann-Whitney test is exact, if no values are equal


def mann_whitney(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """The two-sided p-value of the Mann-Whitney test for each pair of samples.

    Exact if the smaller sample has at most 8 values and no values are equal, else the normal approximation with
    corrections for ties and continuity.

    Parameters
    ----------
    pairs
        m times two samples, (n,) and (k,).

    Returns
    -------
    (m,); 1 where a sample is empty.

    Examples
    --------
    >>> from unweave.analyses import mann_whitney
    >>> mann_whitney([(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))])
    array([0.1])
    """
    pvalues = np.ones(len(pairs))
    # Tests of equal sizes are computed at once.
    by_size: dict[tuple[int, int, Literal["exact", "asymptotic"]], list[int]] = {}
    for index, (one, other) in enumerate(pairs):
        if len(one) and len(other):
            small = min(len(one), len(other)) <= _EXACT
            exact = small and len(np.unique(np.concatenate([one, other]))) == len(one) + len(other)
            by_size.setdefault((len(one), len(other), "exact" if exact else "asymptotic"), []).append(index)
    for (_, _, method), indices in by_size.items():
        ones, others = (np.stack([pairs[index][side] for index in indices], axis=1) for side in (0, 1))
        pvalues[indices] = stats.mannwhitneyu(ones, others, axis=0, method=method).pvalue
    return pvalues


def holm(pvalues: FloatArray) -> FloatArray:
    """Holm's (1979) adjusted p-values: the i-th smallest of m, times m - i + 1, at least those before it, at most 1.

    A hypothesis is rejected at level a if its adjusted value is below a; then the chance of any false rejection is
    at most a.

    Examples
    --------
    >>> from unweave.analyses import holm
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(pvalues, kind="stable")
    adjusted = np.maximum.accumulate(pvalues[order] * np.arange(len(pvalues), 0, -1))
    result = np.empty(len(pvalues))
    result[order] = np.minimum(adjusted, 1.0)
    return result


def compact_letters(different: BoolArray) -> list[str]:
    """A compact letter display: two items share a letter unless they differ.

    Each letter is a largest set of items of which no two differ, by Bron and Kerbosch's search; "a" is the set of the
    first item.

    Parameters
    ----------
    different
        (k, k), symmetric: which items differ.

    Returns
    -------
    the letters of each item.

    Examples
    --------
    >>> from unweave.analyses import compact_letters
    >>> compact_letters(np.array([[False, False, True], [False, False, False], [True, False, False]]))
    ['a', 'ab', 'b']
    """
    alike = [set(np.flatnonzero(~row)) - {item} for item, row in enumerate(different)]
    groups: list[list[int]] = []

    def grow(inside: set[int], possible: set[int], seen: set[int]) -> None:
        if not possible and not seen:
            groups.append(sorted(inside))
        for item in sorted(possible):
            grow(inside | {item}, possible & alike[item], seen & alike[item])
            possible, seen = possible - {item}, seen | {item}

    grow(set(), set(range(len(different))), set())
    lettered = [(_letter(number), group) for number, group in enumerate(sorted(groups))]
    return ["".join(letter for letter, group in lettered if item in group) for item in range(len(alike))]


def _letter(number: int) -> str:
    """a to z, then a1 to z1, and so on."""
    return "abcdefghijklmnopqrstuvwxyz"[number % 26] + (str(number // 26) if number >= 26 else "")
