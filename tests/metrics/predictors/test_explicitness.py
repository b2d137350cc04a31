import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from unweave.errors import ArgumentError
from unweave.metrics.predictors.explicitness import explicitness, macro_area
from unweave.metrics.sample import check_sample


def draw(n, seed=0, sizes=(2, 4)):
    random = np.random.default_rng(seed)
    factors = np.stack([random.integers(0, size, n) for size in sizes], axis=1)
    codes = np.hstack([factors + 0.7 * random.normal(size=factors.shape), random.normal(size=(n, 2))])
    return check_sample(codes * [100, 1, 0.01, 1] + 7, factors)


def test_areas_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 200)
    scores = random.integers(0, 9, (200, 3)) / 9  # many ties
    expected = np.mean([roc_auc_score(labels == k, scores[:, k]) for k in range(3)])
    assert macro_area(scores, labels, np.arange(3)) == pytest.approx(expected, abs=1e-12)


def test_value_is_the_mean_area_of_a_logistic_regression_on_standardised_codes():
    train, test = draw(400), draw(300, seed=1)
    score = explicitness.compute(train, test, solver="lbfgs")
    scaled = [(s.codes - train.codes.mean(0)) / train.codes.std(0) for s in (train, test)]
    for j in range(2):
        model = LogisticRegression().fit(scaled[0], train.factors[:, j])
        for details, sample, x in (("per_factor_train", train, scaled[0]), ("per_factor", test, scaled[1])):
            y, p = sample.factors[:, j], model.predict_proba(x)
            area = np.mean([roc_auc_score(y == k, p[:, k]) for k in range(p.shape[1])])
            assert score.details[details][j] == pytest.approx(area, abs=1e-10)
    assert score.value == pytest.approx(score.details["per_factor"].mean())
    assert score.details["converged"].all()


def test_one_vs_rest_fits_each_value_alone():
    train, test = draw(400), draw(300, seed=1)
    score = explicitness.compute(train, test, solver="liblinear_ovr")
    scaled = [(s.codes - train.codes.mean(0)) / train.codes.std(0) for s in (train, test)]
    y = train.factors[:, 1]
    columns = [
        LogisticRegression(solver="liblinear").fit(scaled[0], y == k).predict_proba(scaled[1])[:, 1]
        for k in range(4)
    ]
    p = np.stack(columns, axis=1)
    p /= p.sum(axis=1, keepdims=True)
    area = np.mean([roc_auc_score(test.factors[:, 1] == k, p[:, k]) for k in range(4)])
    assert score.details["per_factor"][1] == pytest.approx(area, abs=1e-10)


def test_shift_and_scale_do_not_matter():
    train, test = draw(200), draw(100, seed=1)
    moved = [check_sample(s.codes * [3, 0.1, -1, 50] + 9, s.factors) for s in (train, test)]
    assert explicitness.compute(*moved).value == pytest.approx(
        explicitness.compute(train, test).value, abs=1e-3
    )


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear_ovr"])
def test_constant_codes_are_left_out(solver):
    train, test = draw(200), draw(100, seed=1)
    wider = [
        check_sample(np.hstack([s.codes, np.full((len(s.codes), 2), 3.7)]), s.factors) for s in (train, test)
    ]
    assert (
        explicitness.compute(*wider, solver=solver).value
        == explicitness.compute(train, test, solver=solver).value
    )
    nothing = [check_sample(np.full((50, 2), 3.7), s.factors[:50]) for s in (train, test)]
    assert explicitness.compute(*nothing, solver=solver).value == 0.5


def test_values_without_an_area():
    train = draw(100)
    test = draw(50, seed=1)
    factors = train.factors.copy()
    factors[:, 0] = 5
    assert explicitness.compute(check_sample(train.codes, factors), test).details["per_factor"][0] == 0.5
    fewer = test.factors.copy()
    fewer[fewer[:, 1] == 3, 1] = 0
    assert np.isfinite(explicitness.compute(train, check_sample(test.codes, fewer)).value)
    more = test.factors.copy()
    more[:10, 1] = 9
    assert np.isfinite(explicitness.compute(train, check_sample(test.codes, more)).value)
    alike = test.factors * 0
    assert explicitness.compute(train, check_sample(test.codes, alike)).value == 0.5


def test_fewer_rows_than_values():
    sample = check_sample(np.random.default_rng(0).normal(size=(6, 3)), np.arange(6))
    assert explicitness.compute(sample, sample).value == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("arguments", [{"solver": "newton"}, {"C": -1.0}, {"iterations": 0}])
def test_wrong_arguments_are_named(arguments):
    sample = draw(20)
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        explicitness.compute(sample, sample, **arguments)


def test_too_few_iterations_are_reported():
    sample = draw(100)
    assert not explicitness.compute(sample, sample, iterations=1).details["converged"].all()
