import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from unweave.data.factors import FactorSpace
from unweave.data.own.arrays import from_arrays
from unweave.data.own.functions import from_function
from unweave.data.supervision.pairs import sample_pairs
from unweave.data.supervision.weak import correlate, labelled_subset
from unweave.errors import ArgumentError

NAMES, SIZES = ["shape", "x", "y", "angle"], [3, 4, 5, 2]


def grid():
    return from_function(NAMES, SIZES, lambda f: f, categorical=["shape"], name="grid")


def table(seed=0, n=400):
    """Rows with an uneven distribution: some combinations several times, some never."""
    space = FactorSpace(NAMES, SIZES)
    factors = space.sample(n, np.random.default_rng(seed))
    factors[: n // 3, 1] = factors[: n // 3, 0]
    # Each value occurs, so that the columns' indices are the values themselves.
    factors[: max(SIZES)] = np.stack([np.arange(max(SIZES)) % size for size in SIZES], axis=1)
    return from_arrays(np.zeros((n, 1)), factors, names=NAMES, categorical=["shape"], name="table")


def endless():
    return from_function(["shape", "length"], [3, (0.0, 1.0)], lambda f: f, name="endless")


def rng(seed=0):
    return np.random.default_rng(seed)


# --- labelled subsets --------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 120), st.integers(1, 120), st.integers(0, 5))
def test_a_larger_subset_contains_the_smaller(first, second, seed):
    small, large = (labelled_subset(grid(), count=n, seed=seed) for n in sorted((first, second)))
    assert len(small) == min(first, second)
    assert large.contains(small.rows).all()


def test_a_subset_is_a_function_of_its_seed():
    data = grid()
    one = labelled_subset(data, 0.1, seed=4)
    np.testing.assert_array_equal(one.rows, labelled_subset(data, count=12, seed=4).rows)
    assert not np.array_equal(one.rows, labelled_subset(data, 0.1, seed=5).rows)
    assert (np.diff(one.rows) > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        one.rows[0] = 3


@pytest.mark.parametrize(
    ("fraction", "size"), [(1.0, 120), (1, 120), (0.5, 60), (0.012, 1), (1e-9, 1), (0.29, 35)]
)
def test_size_of_a_fraction(fraction, size):
    subset = labelled_subset(grid(), fraction)
    assert len(subset) == size
    assert subset.contains(np.arange(120)).sum() == size


def test_a_subset_among_some_rows():
    among = np.arange(120) % 3 == 0
    whole = labelled_subset(grid(), count=40, seed=2, among=among)
    np.testing.assert_array_equal(whole.rows, np.arange(0, 120, 3))
    some = labelled_subset(grid(), count=7, seed=2, among=among)
    assert set(some.rows) <= set(labelled_subset(grid(), 0.1, seed=2, among=among).rows)
    everything = labelled_subset(grid(), count=7, seed=2, among=np.ones(120, bool))
    np.testing.assert_array_equal(everything.rows, labelled_subset(grid(), count=7, seed=2).rows)
    with pytest.raises(ArgumentError, match="count = 41: is 41 rows, and 40 can be chosen"):
        labelled_subset(grid(), count=41, among=among)
    with pytest.raises(ArgumentError, match="among = 'int64 array"):
        labelled_subset(grid(), count=3, among=np.arange(120))


def test_contains_is_membership():
    subset = labelled_subset(table(), count=37, seed=1)
    rows = rng().integers(400, size=500)
    np.testing.assert_array_equal(subset.contains(rows), np.isin(rows, subset.rows))
    assert subset.contains(np.empty(0, np.int64)).shape == (0,)


def test_samples_of_a_subset_are_uniform():
    subset = labelled_subset(grid(), count=10)
    drawn = subset.sample(20_000, rng())
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(values, subset.rows)
    assert chisquare(counts).pvalue > 1e-3
    assert set(subset.sample(50, np.random.RandomState(0))) <= set(subset.rows)


def test_each_row_is_equally_likely_to_be_labelled():
    counts = np.zeros(120)
    for seed in range(500):
        counts[labelled_subset(grid(), count=30, seed=seed).rows] += 1
    # Binomial(500, 1/4): standard deviation 9.7; six of them among 120 rows are never seen.
    assert np.abs(counts - 125).max() < 58


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "fraction, count = .*exactly one"),
        ({"fraction": 0.5, "count": 3}, "fraction, count = .*exactly one"),
        ({"fraction": 0.0}, "fraction = 0.0: needs 0 < fraction <= 1"),
        ({"fraction": 1.5}, "fraction = 1.5"),
        ({"fraction": math.nan}, "fraction = nan"),
        ({"fraction": "half"}, "fraction = 'half'"),
        ({"count": 0}, "count = 0: needs a whole number from 1 to 120"),
        ({"count": 121}, "count = 121"),
        ({"count": 2.5}, "count = 2.5"),
        ({"count": 3, "seed": -1}, "seed = -1"),
        ({"count": 3, "seed": 0.5}, "seed = 0.5"),
    ],
)
def test_bad_subsets_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        labelled_subset(grid(), **options)


def test_subsets_of_endless_or_enormous_data_are_refused():
    with pytest.raises(ArgumentError, match="data = 'endless': is endless"):
        labelled_subset(endless(), 0.1)
    with pytest.raises(ArgumentError, match=r"data = 'function': has .* rows"):
        labelled_subset(from_function(list("abcd"), [1000] * 4, lambda f: f), count=3)


# --- pairs -------------------------------------------------------------------------------------

SHARED = [s for k in range(5) for s in itertools.combinations(NAMES, k)]


@pytest.mark.parametrize("make", [grid, table])
@pytest.mark.parametrize("shared", SHARED, ids=lambda s: "-".join(s) or "none")
def test_pairs_share_the_named_factors(make, shared):
    data = make()
    first, second = (data.factors(rows) for rows in sample_pairs(data, 300, rng(), shared=shared[::-1]))
    for column, name in enumerate(NAMES):
        same = (first[:, column] == second[:, column]).mean()
        assert same == 1 if name in shared else same < 0.9


def test_pairs_on_a_grid_are_exactly_distributed():
    data = grid()
    first, second = sample_pairs(data, 40_000, rng(), shared=["shape", "y"])
    assert chisquare(np.bincount(first, minlength=120)).pvalue > 1e-3
    assert chisquare(np.bincount(second, minlength=120)).pvalue > 1e-3
    # Given the first image, the other factors of the second are uniform: 8 combinations.
    x, angle = data.factors(first)[:, [1, 3]].T
    x2, angle2 = data.factors(second)[:, [1, 3]].T
    joint = np.bincount(((x * 2 + angle) * 4 + x2) * 2 + angle2, minlength=64)
    assert chisquare(joint).pvalue > 1e-3


def test_pairs_on_a_table_are_uniform_over_the_images_that_share():
    data = table()
    factors = data.factors(np.arange(400))
    first, second = sample_pairs(data, 100_000, rng(), shared=["shape", "x"])
    assert chisquare(np.bincount(first, minlength=400)).pvalue > 1e-3
    key = factors[:, 0] * 4 + factors[:, 1]
    group = np.bincount(key)
    # p(second = r) = sum over first in the same group of 1/400 · 1/|group| = 1/400.
    assert chisquare(np.bincount(second, minlength=400)).pvalue > 1e-3
    largest = np.flatnonzero(key == group.argmax())
    among = np.isin(first, largest)
    assert chisquare(np.bincount(second[among], minlength=400)[largest]).pvalue > 1e-3


@pytest.mark.parametrize("make", [grid, table])
@pytest.mark.parametrize("changed", [1, 2, 3, 4])
def test_k_factors_change(make, changed):
    data = make()
    first, second = (data.factors(rows) for rows in sample_pairs(data, 500, rng(), changed=changed))
    differ = (first != second).sum(axis=1)
    assert differ.max() == changed
    assert differ.min() >= 0


def test_the_changing_factors_are_chosen_uniformly():
    data = grid()
    n = 60_000
    first, second = (data.factors(rows) for rows in sample_pairs(data, n, rng(), changed=2))
    # Factor j is drawn anew in half of the pairs and then differs with probability 1 - 1/size.
    for column, size in enumerate(SIZES):
        expected = 0.5 * (1 - 1 / size)
        found = (first[:, column] != second[:, column]).mean()
        assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / n)
    # Each of the six subsets of two factors: both differ with 1/6 of the product.
    for a, b in itertools.combinations(range(4), 2):
        expected = (1 - 1 / SIZES[a]) * (1 - 1 / SIZES[b]) / 6
        found = ((first != second)[:, a] & (first != second)[:, b]).mean()
        assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


def test_pairs_of_an_endless_simulator_are_factors():
    first, second = sample_pairs(endless(), 200, rng(), shared=["length"])
    assert first.shape == second.shape == (200, 2)
    np.testing.assert_array_equal(first[:, 1], second[:, 1])
    assert 0.5 < (first[:, 0] != second[:, 0]).mean() < 0.8
    first, second = sample_pairs(endless(), 200, rng(), changed=1)
    length_changed = first[:, 1] != second[:, 1]
    assert 60 < length_changed.sum() < 140
    assert (first[length_changed, 0] == second[length_changed, 0]).all()


@pytest.mark.parametrize("make", [grid, table, endless])
def test_pairs_are_a_function_of_the_random_source(make):
    data = make()
    for options in ({"shared": ["shape"]}, {"changed": 1}):
        for one, two in zip(
            sample_pairs(data, 20, rng(3), **options), sample_pairs(data, 20, rng(3), **options), strict=True
        ):
            np.testing.assert_array_equal(one, two)
        assert len(sample_pairs(data, 0, rng(), **options)[1]) == 0
        assert len(sample_pairs(data, 5, np.random.RandomState(0), **options)[1]) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "shared, changed = .*exactly one"),
        ({"shared": ["x"], "changed": 1}, "shared, changed = .*exactly one"),
        ({"shared": "x"}, "shared = 'x': needs a list"),
        ({"shared": ["shap"]}, "did you mean 'shape'"),
        ({"changed": 0}, "changed = 0: needs a whole number from 1 to 4"),
        ({"changed": 5}, "changed = 5"),
        ({"changed": 1.5}, "changed = 1.5"),
    ],
)
@pytest.mark.parametrize("make", [grid, table])
def test_bad_pairs_are_refused(make, options, message):
    with pytest.raises(ArgumentError, match=message):
        sample_pairs(make(), 10, rng(), **options)


def test_pairs_that_cannot_be_are_refused():
    with pytest.raises(ArgumentError, match="n = -1"):
        sample_pairs(grid(), -1, rng(), changed=1)
    with pytest.raises(ArgumentError, match="pairs need uniform sampling"):
        sample_pairs(correlate(grid(), "x", "y", 0.2), 10, rng(), changed=1)
    measured = from_arrays(np.zeros((3, 1)), {"a": [0, 1, 2], "b": [0.1, 0.2, 0.3]})
    with pytest.raises(ArgumentError, match="'b': is continuous"):
        sample_pairs(measured, 10, rng(), shared=["b"])


# --- correlated factors ------------------------------------------------------------------------


def weight(x, y, strength):
    """The formula of the paper, one pair at a time."""
    return math.exp(-((x / 3 - y / 4) ** 2) / (2 * strength**2))


@pytest.mark.parametrize("strength", [0.1, 0.2, 0.7])
def test_correlated_sampling_of_a_grid(strength):
    data = correlate(grid(), "x", "y", strength)
    shares = np.array([weight(x, y, strength) for _, x, y, _ in data.factors(np.arange(120))])
    shares /= shares.sum()
    n = 100_000
    counts = np.bincount(data.sample_rows(n, rng()), minlength=120)
    likely = shares * n > 5
    assert chisquare([*counts[likely], counts[~likely].sum() + 1e-9],
                     [*(shares * n)[likely], (shares * n)[~likely].sum() + 1e-9]).pvalue > 1e-3  # fmt: skip
    factors = data.sample_factors(n, rng(1))
    assert chisquare(np.bincount(factors[:, 0], minlength=3)).pvalue > 1e-3
    assert chisquare(np.bincount(factors[:, 3], minlength=2)).pvalue > 1e-3


def test_smaller_strength_is_stronger_correlation():
    correlations = []
    for strength in (0.1, 0.3, 1.0, 100.0):
        factors = correlate(grid(), "x", "y", strength).sample_factors(20_000, rng())
        correlations.append(np.corrcoef(factors[:, 1], factors[:, 2])[0, 1])
    assert correlations == sorted(correlations, reverse=True)
    assert correlations[0] > 0.9
    assert abs(correlations[-1]) < 0.03


def test_correlated_sampling_of_a_table_weights_its_rows():
    data = table()
    skewed = correlate(data, "y", "x", 0.25)
    shares = np.array([weight(x, y, 0.25) for _, x, y, _ in data.factors(np.arange(400))])
    shares /= shares.sum()
    n = 200_000
    counts = np.bincount(skewed.sample_rows(n, rng()), minlength=400)
    likely = shares * n > 5
    expected = shares[likely] * n
    assert chisquare(counts[likely], expected * counts[likely].sum() / expected.sum()).pvalue > 1e-3
    assert abs(counts[~likely].sum() - shares[~likely].sum() * n) < 50


@pytest.mark.parametrize("strength", [1e-4, 1e-200, 5e-324])
def test_the_limit_of_strong_correlation_draws_the_nearest_pairs(strength):
    factors = correlate(grid(), "x", "y", strength).sample_factors(500, rng())
    assert {(x, y) for x, y in factors[:, [1, 2]].tolist()} == {(0, 0), (3, 4)}
    # A table without any pair on the diagonal: its nearest rows are left, not none.
    far = from_arrays(np.zeros((3, 1)), {"a": [0, 1, 2], "b": [3, 2, 0]})
    assert set(correlate(far, "a", "b", strength).sample_rows(100, rng())) == {1}


def test_only_sampling_changes():
    data = grid()
    skewed = correlate(data, "x", "y", 0.1)
    rows = np.arange(120)
    np.testing.assert_array_equal(skewed.images(rows), data.images(rows))
    np.testing.assert_array_equal(skewed.factors(rows), data.factors(rows))
    assert data.sampler is None
    batch = skewed.batch(5, batch_size=512, seed=1)
    np.testing.assert_array_equal(batch.rows, skewed.batch(5, batch_size=512, seed=1).rows)
    assert np.corrcoef(batch.factors[:, 1], batch.factors[:, 2])[0, 1] > 0.9
    assert len(skewed.sample_rows(7, np.random.RandomState(0))) == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "y", 0.0), "strength = 0.0: needs a finite number > 0"),
        (("x", "y", -1), "strength = -1"),
        (("x", "y", math.nan), "strength = nan"),
        (("x", "y", math.inf), "strength = inf"),
        (("x", "y", "much"), "strength = 'much'"),
        (("x", "x", 0.1), "second = 'x': needs a factor other"),
        (("shape", "x", 0.1), "first = 'shape': is categorical"),
        (("x", "shape", 0.1), "second = 'shape': is categorical"),
        (("x", "z", 0.1), "factor = 'z'"),
    ],
)
def test_bad_correlations_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        correlate(grid(), *arguments)


def test_data_that_cannot_be_correlated_is_refused():
    with pytest.raises(ArgumentError, match="data = 'endless': is endless"):
        correlate(endless(), "shape", "length", 0.1)
    with pytest.raises(ArgumentError, match="in its own way already"):
        correlate(correlate(grid(), "x", "y", 0.1), "x", "angle", 0.1)
    values = {"one": [1, 1, 1], "a": [0, 1, 2], "b": [0.5, 0.25, 0.1]}
    data = from_arrays(np.zeros((3, 1)), values)
    with pytest.raises(ArgumentError, match="first = 'one': has only one value"):
        correlate(data, "one", "a", 0.1)
    with pytest.raises(ArgumentError, match="second = 'b': is continuous"):
        correlate(data, "a", "b", 0.1)
