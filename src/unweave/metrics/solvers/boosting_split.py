"""The best split of a node of `unweave.metrics.solvers.boosting_tree`, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.boosting_ties import CLOSE, count_ties, sort_as_scikit_learn
from unweave.metrics.solvers.compiled import compiled

Array = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Order = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]

SLACK = 1e-11  # far more than the rounding error of the screening


@compiled
def best_split(
    values: Values,
    longest_tie: Labels,
    is_tied: Flags,
    careful: bool,
    rows: Order,
    a: int,
    b: int,
    y: Array,
    summed: float,
    expected: Array,
    weight: Array,
    state: Labels,
    features: Labels,
    constants: Labels,
    known: int,
    samples: Order,
    keys: Values,
    ties: Labels,
) -> tuple[int, int, int, int, bool]:
    """The split of samples a .. b that lowers the squared error most: the first best in the order of the draw.

    Returns its feature (-1 if there is none), its position, how many features are constant here and whether no other
    split is as good but for rounding. The first ``known`` of ``features`` were constant above. ``samples`` are left in
    the order of the feature drawn last. If ``careful``, the order of equal values is what the sort makes of the order
    before.
    """
    best, middle, f, last = -1, b, -1, -1
    highest = second = -np.inf
    remaining, found, drawn, constant = len(features), 0, 0, known
    while remaining > constant:
        j = drawn + _draw(state) % (remaining - found - drawn)
        if j < known:
            features[drawn], features[j] = features[j], features[drawn]
            drawn += 1
            continue
        j += found
        f = features[j]
        row, x = rows[f], values[f]
        if careful and is_tied[f] and count_ties(x, row, a, b, ties) > 0:
            if last >= 0:
                samples[a:b] = rows[last, a:b]
            for p in range(a, b):
                keys[p] = x[samples[p]]
            sort_as_scikit_learn(keys, samples, a, b, row, ties)
            row, last = samples, -1
        else:
            last = f
        if x[row[b - 1]] <= x[row[a]] + CLOSE:
            features[j], features[constant] = features[constant], features[j]
            found += 1
            constant += 1
            continue
        remaining -= 1
        features[remaining], features[j] = features[j], features[remaining]
        position, highest, second = _scan(
            row[a:b], x, y, summed, expected, weight, longest_tie[f], highest, second
        )
        if position > 0:
            best, middle = f, a + position
    features[:known] = constants[:known]
    constants[known:constant] = features[known:constant]
    if last >= 0:
        samples[a:b] = rows[last, a:b]
    return best, middle, constant, f, second < highest * (1.0 - SLACK)


@compiled
def _scan(
    row: Order,
    x: Values,
    y: Array,
    summed: float,
    expected: Array,
    weight: Array,
    longest_tie: int,
    highest: float,
    second: float,
) -> tuple[int, float, float]:
    """The best split of samples sorted as in ``row``, if better than ``highest``: its position, else 0.

    Also the new highest value, and the second highest if it is nearly as high.

    Its value is S_l^2 / n_l + S_r^2 / n_r = S^2 / n + (S_l - n_l S / n)^2 (1 / n_l + 1 / n_r), for the sums S and
    numbers n of samples on the left, on the right and in all. The second form takes less time and finds the
    candidates; the first decides.
    """
    count = len(row)
    base = summed * summed / count
    best, left, limit = 0, 0.0, highest * (1.0 - SLACK) - base
    plain = max(0, count - 1 - longest_tie)
    for p in range(plain):
        left += y[row[p]]
        excess = left - expected[p]
        if excess * excess * weight[p] >= limit:
            if x[row[p + 1]] <= x[row[p]] + CLOSE:
                continue
            right = summed - left
            exact = left * left / (p + 1) + right * right / (count - 1 - p)
            second = max(second, min(exact, highest))
            if exact > highest:
                highest, limit, best = exact, exact * (1.0 - SLACK) - base, p + 1
    # Near the end a step over a tie may be longer than what remains: then the sum is taken from the right.
    position = plain
    while position > 0 and x[row[position]] <= x[row[position - 1]] + CLOSE:
        position -= 1
    for p in range(plain, count - 1):
        left += y[row[p]]
        if x[row[p + 1]] <= x[row[p]] + CLOSE:
            continue
        if p + 1 - position > count - 1 - p:
            left = summed
            for q in range(count - 1, p, -1):
                left -= y[row[q]]
        position = p + 1
        right = summed - left
        exact = left * left / (p + 1) + right * right / (count - 1 - p)
        second = max(second, min(exact, highest))
        if exact > highest:
            highest, best = exact, p + 1
    return best, highest, second


@compiled
def _draw(state: Labels) -> int:
    """The next number of Marsaglia's 32-bit xorshift generator, without its highest bit."""
    s = state[0] if state[0] != 0 else 1
    s ^= (s << 13) & 0xFFFFFFFF
    s ^= s >> 17
    s ^= (s << 5) & 0xFFFFFFFF
    state[0] = s
    return s & 0x7FFFFFFF
