from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import GradientBoostingClassifier

from unweave.errors import ArgumentError
from unweave.metrics.solvers.boosted_trees import (
    _count_ties,
    _have_ties,
    _partition_samples,
    _sort_as_scikit_learn,
    _sums_are_known,
    _total_is_known,
    fit_boosted_trees,
)


def draw(n, latents, sizes, seed, kind="continuous"):
    """Codes of which the first carry the factors; ``kind`` says what values they take."""
    random = np.random.default_rng(seed)
    factors = np.stack([random.integers(0, size, n) for size in sizes], axis=1)
    codes = random.normal(size=(n, latents))
    codes[:, : len(sizes)] += factors
    if kind == "repeated":  # some points occur twice, as images of a small data set do
        rows = random.integers(0, n, n // 3)
        codes[: len(rows)], factors[: len(rows)] = codes[rows], factors[rows]
    return codes, factors


def reference(codes, factors, seed, rounds=100):
    random = np.random.RandomState(seed)
    create = partial(GradientBoostingClassifier, random_state=random, n_estimators=rounds)
    return [create().fit(codes, column) for column in factors.T]


def decision(model, codes):
    values = model.decision_function(codes)
    return values[None] if values.ndim == 1 else values.T


@pytest.mark.parametrize("kind", ["continuous", "repeated"])
@pytest.mark.parametrize(
    ("n", "latents", "sizes", "seed"), [(20, 3, (2, 3), 0), (60, 4, (2, 5), 1), (300, 5, (2, 3, 4), 2)]
)
def test_the_same_trees_as_scikit_learn(n, latents, sizes, seed, kind):
    codes, factors = draw(n, latents, sizes, seed, kind)
    held_out, _ = draw(50, latents, sizes, seed + 100)
    for ours, theirs in zip(
        fit_boosted_trees(codes, factors, seed), reference(codes, factors, seed), strict=True
    ):
        np.testing.assert_allclose(ours.importances, theirs.feature_importances_, atol=1e-12)
        np.testing.assert_allclose(ours.decision(codes), decision(theirs, codes), rtol=1e-12)
        np.testing.assert_allclose(ours.decision(held_out), decision(theirs, held_out), rtol=1e-12)
        np.testing.assert_array_equal(ours.predict(held_out), theirs.predict(held_out))
        np.testing.assert_array_equal(ours.fitted, theirs.predict(codes))


def test_many_classes_agree_with_scikit_learn():
    """Enough for the sums over classes and over large leaves to leave numpy's shortest loops."""
    random = np.random.default_rng(3)
    factors = random.integers(0, 17, (900, 1))
    codes = np.hstack([factors + random.normal(size=(900, 1)), random.normal(size=(900, 2))])
    ours = fit_boosted_trees(codes, factors, seed=5, rounds=20)[0]
    theirs = reference(codes, factors, seed=5, rounds=20)[0]
    np.testing.assert_allclose(ours.importances, theirs.feature_importances_, atol=1e-10)
    np.testing.assert_allclose(ours.decision(codes), decision(theirs, codes), atol=1e-9)


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="sorted equal values in another order",
)
@pytest.mark.parametrize(("n", "decimals"), [(300, 1), (300, 0), (60, 0), (900, 0), (900, 2), (900, 3)])
def test_equal_values_and_equal_splits_are_decided_as_scikit_learn_does(n, decimals):
    codes, factors = draw(n, 5, (2, 3, 4), n + decimals)
    codes[:, :4] = np.round(codes[:, :4], decimals)  # one code stays free of ties
    theirs = reference(codes, factors, seed=3, rounds=30)
    for ours, other in zip(fit_boosted_trees(codes, factors, 3, rounds=30), theirs, strict=True):
        np.testing.assert_allclose(ours.importances, other.feature_importances_, atol=1e-12)
        np.testing.assert_allclose(ours.decision(codes), decision(other, codes), rtol=1e-9, atol=1e-12)


def test_points_that_occur_twice_are_no_ties():
    values = np.array([[1, 2, 2, 3, 3], [5, 4, 4, 6, 7]], np.float32)
    order = np.argsort(values, axis=1, kind="stable").astype(np.uint32)
    assert _have_ties(values, order, np.array([0, 1, 1, 2, 3])).tolist() == [1, 0]
    assert _have_ties(values, order, np.array([0, 1, 4, 2, 3])).tolist() == [1, 1]


@pytest.mark.parametrize("n", [0, 1, 15, 16, 200])
def test_the_sort_orders_keys_and_takes_samples_along(n):
    random = np.random.default_rng(n)
    keys = random.integers(0, 9, n + 4).astype(np.float32)
    before, samples = keys.copy(), np.arange(n + 4, dtype=np.uint32)
    _sort_as_scikit_learn(keys, samples, 2, n + 2, samples.copy(), np.arange(n + 4))  # as if all were equal
    np.testing.assert_array_equal(keys[2:-2], np.sort(before[2:-2]))
    np.testing.assert_array_equal(before[samples], keys)
    assert sorted(samples) == list(range(n + 4))
    assert samples[[0, 1, -2, -1]].tolist() == [0, 1, n + 2, n + 3]


@pytest.mark.parametrize("values", [3, 40, 500, 5000])
def test_the_sort_of_parts_with_equal_keys_is_that_of_the_whole(values):
    random = np.random.default_rng(values)
    x, n = random.integers(0, values, 1000).astype(np.float32), 1000
    whole = random.permutation(n).astype(np.uint32)
    parts, row, ties = whole.copy(), np.argsort(x).astype(np.uint32), np.empty(n, np.int64)
    assert _count_ties(x, row, 0, n, ties) == n - len(np.unique(x))
    _sort_as_scikit_learn(x[parts], parts, 0, n, row, ties)
    _sort_as_scikit_learn(x[whole], whole, 0, n, row, np.arange(n))
    np.testing.assert_array_equal(parts, whole)


def test_sums_that_are_said_to_be_known_are_the_same_in_every_order():
    """Twenty orders of equal values each: running sums in a node, totals in the children that it is parted into."""
    random = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        n = int(random.integers(2, 14))
        x, split = random.integers(0, 12, n).astype(np.float32), random.normal(size=n).astype(np.float32)
        y = random.choice(random.normal(size=3), n)
        orders = [np.lexsort((random.random(n), x)).astype(np.uint32) for _ in range(20)]
        last = np.append(np.diff(np.sort(x)) > 0, True)  # only the sums up to the last of equal values count
        sums = {tuple(np.cumsum(y[order])[last]) for order in orders}
        is_known = _sums_are_known(x[None], orders[0][None], np.array([0]), 0, n, y)
        assert not is_known or len(sums) == 1
        outcomes.add(("sums", is_known))
        middle = int((split <= 0.0).sum())
        for child in (slice(0, middle), slice(middle, n)):
            is_known = _total_is_known(x, orders[0], split, 0.0, child.start == 0, y)
            totals = set()
            for order in orders:
                samples = order.copy()
                _partition_samples(samples, 0, n, split, 0.0)
                totals.add(float(sum(y[samples[child]])))
            assert not is_known or len(totals) == 1
            outcomes.add(("total", is_known))
    assert len(outcomes) == 4


def test_values_closer_than_single_precision_are_one_value():
    random = np.random.default_rng(0)
    factors = random.integers(0, 2, (100, 1))
    codes = np.hstack([1 + 1e-8 * factors, random.normal(size=(100, 1))])
    model = fit_boosted_trees(codes, factors)[0]
    np.testing.assert_allclose(model.importances, [0, 1])


def test_constant_codes_have_no_importance():
    codes, factors = draw(100, 3, (3,), 0)
    wider = np.hstack([codes, np.full((100, 2), 3.7)])
    model = fit_boosted_trees(wider, factors)[0]
    assert model.importances[3:].tolist() == [0, 0]
    # Equally good splits may be drawn in another order.
    np.testing.assert_allclose(
        model.importances[:3], fit_boosted_trees(codes, factors)[0].importances, atol=0.01
    )
    nothing = fit_boosted_trees(np.ones((100, 2)), factors)[0]
    assert nothing.importances.tolist() == [0, 0]
    assert set(nothing.predict(codes[:, :2])) == {np.bincount(factors[:, 0]).argmax()}


def test_a_factor_with_one_value_and_a_single_point():
    codes, factors = draw(30, 3, (3, 2), 0)
    factors[:, 1] = 4
    model = fit_boosted_trees(codes, factors)[1]
    assert model.importances.sum() == 0
    assert (model.fitted == 4).all()
    assert (model.predict(codes[:7]) == 4).all()
    assert fit_boosted_trees(codes[:1], factors[:1])[0].predict(codes).tolist() == [factors[0, 0]] * 30


def test_each_point_its_own_class():
    codes = np.random.default_rng(0).normal(size=(6, 2))
    model = fit_boosted_trees(codes, np.arange(6)[:, None])[0]
    assert (model.fitted == np.arange(6)).all()
    np.testing.assert_allclose(model.importances.sum(), 1)


def test_the_seed_decides_between_equal_codes():
    codes, factors = draw(100, 2, (3,), 0)
    doubled = np.hstack([codes[:, :1], codes[:, :1]])
    runs = [fit_boosted_trees(doubled, factors, seed)[0].importances for seed in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert 0.2 < runs[0][0] < 0.8


def test_fewer_rounds():
    codes, factors = draw(100, 3, (3,), 0)
    model = reference(codes, factors, 0, rounds=7)[0]
    ours = fit_boosted_trees(codes, factors, rounds=7)[0]
    np.testing.assert_allclose(ours.decision(codes), decision(model, codes), rtol=1e-12)


def test_numbers_beyond_single_precision_are_refused():
    with pytest.raises(ArgumentError, match="codes"):
        fit_boosted_trees(np.array([[0.0], [1e39]]), np.array([[0], [1]]))
