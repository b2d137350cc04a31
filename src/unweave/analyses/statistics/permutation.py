"""Permutation tests within blocks: of a trend, of which group is above another, of rank correlations.

Runs of one seed begin with the same random numbers, so that they are no independent samples. What is permuted are
runs within a block, the runs of one seed say: under the hypothesis that nothing but chance tells them apart, every
arrangement is equally likely, whatever the blocks have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial, prod

import numpy as np
import pandas as pd

from unweave.arrays import ArrayLike, FloatArray, IntArray
from unweave.parameters import Count, Seed

_ARRANGEMENTS = 3_000  # of a block: all are counted up to so many, of more so many are drawn


@dataclass(frozen=True)
class PermutationTest:
    """The outcome of a test.

    Parameters
    ----------
    effect
        from -1 to 1: how far the observed order agrees with the assumed one, 1 if all pairs do.
    p
        two-sided: the share of arrangements with an effect at least as large, up or down.
    smallest
        the smallest p that so few runs can give.
    """

    effect: float
    p: float
    smallest: float


def trend_test(values: ArrayLike, order: ArrayLike, blocks: ArrayLike, seed: Seed = 0) -> PermutationTest:
    """Do values rise with an order, within blocks?

    The statistic is Kendall's S within each block, summed over blocks: pairs of runs of different order whose values
    rise, less those whose values fall. Blocks of two are the sign test, two orders the Mann-Whitney test within blocks,
    more the test of Jonckheere and Terpstra.

    Parameters
    ----------
    values
        (n,). NaN are dropped.
    order
        (n,): a number per run, such as its strength, or 0 and 1 for two groups. NaN (a strength that changes during
        training, say) are dropped.
    blocks
        (n,): a label per run, such as its seed.
    seed
        of the random numbers, where a block has too many arrangements to count them all.

    Examples
    --------
    >>> from unweave.analyses import trend_test
    >>> trend_test([1.0, 2.0, 3.0, 1.5, 2.0, 4.0], [1, 2, 3, 1, 2, 3], [0, 0, 0, 1, 1, 1])
    PermutationTest(effect=1.0, p=0.06, smallest=0.06)
    """
    numbers = np.asarray(values, np.float64)
    orders = np.asarray(order, np.float64)
    known = ~(np.isnan(numbers) | np.isnan(orders))
    numbers, orders, labels = numbers[known], orders[known], np.asarray(blocks)[known]
    return pair_test(np.sign(numbers[:, None] - numbers[None]), orders, labels, seed)


def pair_test(above: ArrayLike, order: ArrayLike, blocks: ArrayLike, seed: Seed = 0) -> PermutationTest:
    """Are runs of a higher order above those of a lower one, within blocks?

    The statistic is the sum of ``above[i, j]`` over all pairs of a block in which i has the higher order.

    Parameters
    ----------
    above
        (n, n), antisymmetric whole numbers: 1 where run i is above run j in whatever sense, -1 below, 0 neither.
    order, blocks, seed
        as in :func:`trend_test`.

    Examples
    --------
    >>> from unweave.analyses.statistics.permutation import pair_test
    >>> pair_test([[0, -1], [1, 0]], [0, 1], [0, 0])
    PermutationTest(effect=1.0, p=1.0, smallest=1.0)
    """
    matrix, orders, labels = np.asarray(above, np.float64), np.asarray(order, np.float64), np.asarray(blocks)
    rng = np.random.default_rng(seed)
    observed = pairs = 0.0
    chances = np.ones(1)  # of a statistic of -reach, …, reach
    reach, arrangements = 0, 1
    for label in pd.unique(pd.Series(labels)):
        members = np.flatnonzero(labels == label)
        part, of_block = matrix[np.ix_(members, members)], orders[members]
        arranged = np.array([_statistic(part, each) for each in _arrangements(of_block, rng)])
        observed += float(_statistic(part, of_block))
        arrangements *= _count(of_block)
        most = _statistic(np.sign(of_block[:, None] - of_block[None]), of_block)
        pairs += float(most)
        size = int(most)
        counts = np.bincount((np.rint(arranged) + size).astype(int), minlength=2 * size + 1)
        chances, reach = np.convolve(chances, counts / counts.sum()), reach + size
    sizes = np.abs(np.arange(-reach, reach + 1))
    p = float(chances[sizes >= abs(observed) - 1e-9].sum())
    return PermutationTest(observed / pairs if pairs else 0.0, min(p, 1.0), min(2.0 / arrangements, 1.0))


def correlation_tests(
    scores: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    blocks: str = "seed",
    draws: Count = 5_000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Spearman's rank correlation of pairs of scores, with the p-value of a permutation test within blocks.

    Parameters
    ----------
    scores
        one row per run. Runs that lack one of the scores of a pair do not count for it.
    pairs
        names of two columns.
    blocks
        the column within whose values runs are permuted.
    draws, seed
        how many permutations are drawn, and from which random numbers.

    Returns
    -------
    row, column, value, p (two-sided), n. NaN and 1 where there are fewer than three runs, or a score is constant.

    Examples
    --------
    >>> import pandas as pd
    >>> from unweave.analyses.statistics.permutation import correlation_tests
    >>> runs = pd.DataFrame({"seed": 0, "mig": range(8), "sap": [0, 1, 2, 3, 4, 5, 7, 6]})
    >>> correlation_tests(runs, [("mig", "sap")]).round(2)
       row column  value    p  n
    0  mig    sap   0.98  0.0  8
    """
    rows = []
    for one, other in pairs:
        known = scores.dropna(subset=[one, other]).sort_values(blocks, kind="stable")
        x, y = (known[name].rank().to_numpy(np.float64) for name in (one, other))
        value, p = np.nan, 1.0
        if len(known) >= 3 and x.std() > 0 and y.std() > 0:
            x, y = ((ranks - ranks.mean()) / ranks.std() / np.sqrt(len(ranks)) for ranks in (x, y))
            codes = pd.factorize(known[blocks])[0]
            # Sorted by block, random numbers plus the block's sort into a permutation within blocks.
            orders = np.argsort(np.random.default_rng(seed).random((draws, len(y))) + codes, axis=1)
            value = float(x @ y)
            drawn = np.abs(y[orders] @ x)
            p = float((1 + np.sum(drawn >= abs(value) - 1e-12)) / (1 + draws))
        rows.append((one, other, value, p, len(known)))
    return pd.DataFrame(rows, columns=["row", "column", "value", "p", "n"])


def _statistic(above: FloatArray, order: FloatArray) -> float:
    return float(np.sum(above * (order[:, None] > order[None])))


def _count(order: FloatArray) -> int:
    """How many different arrangements there are."""
    sizes = np.unique(order, return_counts=True)[1].tolist()
    return factorial(len(order)) // prod(map(factorial, sizes))


def _arrangements(order: FloatArray, rng: np.random.Generator) -> Iterator[FloatArray]:
    """All different arrangements of the orders of a block, or many random ones."""
    values, codes = np.unique(order, return_inverse=True)
    if _count(order) <= _ARRANGEMENTS:
        for arranged in _multiset_permutations(Counter(codes.tolist()), len(order)):
            yield values[arranged]
    else:
        yield order  # what was observed is one of them: no p is 0
        for _ in range(_ARRANGEMENTS - 1):
            yield rng.permutation(order)


def _multiset_permutations(counts: Counter[int], length: int) -> Iterator[IntArray]:
    def grow(prefix: list[int]) -> Iterator[IntArray]:
        if len(prefix) == length:
            yield np.array(prefix)
            return
        for code in sorted(counts):
            if counts[code]:
                counts[code] -= 1
                yield from grow([*prefix, code])
                counts[code] += 1

    yield from grow([])
