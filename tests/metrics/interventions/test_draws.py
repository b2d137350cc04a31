import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.interventions.draws import randints


def plain(rng, calls, repeats):
    rounds = [np.concatenate([rng.randint(size, size=n) for size, n in calls]) for _ in range(repeats)]
    return np.array(rounds).reshape(repeats, -1)


def same_state(one, other):
    a, b = one.get_state(), other.get_state()
    return a[2:] == b[2:] and np.array_equal(a[1], b[1])


def pair(seed):
    return np.random.RandomState(seed), np.random.RandomState(seed)


POWERS = [2**k + offset for k in range(1, 32) for offset in (-1, 0, 1)]


@pytest.mark.parametrize("size", sorted({*range(1, 41), *POWERS, 183, 2**32 - 1, 2**32}))
@pytest.mark.parametrize("repeats", [1, 7])
def test_every_size(size, repeats):
    one, other = pair(size % 1000)
    np.testing.assert_array_equal(randints(one, [(size, 50)], repeats), plain(other, [(size, 50)], repeats))
    assert same_state(one, other)


@pytest.mark.parametrize("seed", range(30))
def test_random_plans_between_other_draws(seed):
    plan = np.random.default_rng(seed)
    one, other = pair(seed)
    for _ in range(4):
        calls = [(int(plan.integers(1, 60)), int(plan.integers(1, 70))) for _ in range(plan.integers(1, 8))]
        repeats = int(plan.integers(1, 60))
        np.testing.assert_array_equal(randints(one, calls, repeats), plain(other, calls, repeats))
        assert one.randn() == other.randn()
        assert one.random_sample() == other.random_sample()
        assert one.randint(1000) == other.randint(1000)
    assert same_state(one, other)


def test_a_large_block():
    calls = [(5, 1), *[(size, 64) for size in (3, 6, 40, 32, 32)] * 2]
    one, other = pair(0)
    np.testing.assert_array_equal(randints(one, calls, 300), plain(other, calls, 300))
    assert same_state(one, other)


def test_one_value_takes_no_word():
    rng, untouched = pair(3)
    assert not randints(rng, [(1, 100), (1, 3)], 5).any()
    assert same_state(rng, untouched)


def test_nothing_to_draw():
    assert randints(np.random.RandomState(0), [(4, 3)], 0).shape == (0, 3)


@pytest.mark.parametrize("size", [0, -1, 2**32 + 1])
def test_sizes_that_are_not_allowed(size):
    with pytest.raises(ArgumentError, match="sizes"):
        randints(np.random.RandomState(0), [(size, 2)], 2)
