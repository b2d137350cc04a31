import sys

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.svm import LinearSVC

from unweave.errors import ArgumentError
from unweave.metrics.predictors.dci import dci
from unweave.metrics.sample import check_sample
from unweave.optional import MissingPackageError

CLASSIFIERS = ["gbt", "gbt_sklearn", "l1_svm"]
REGRESSIONS = ["lasso", "forest"]


def draw(n, seed=0, sizes=(3, 4), noise=0.05):
    """Code i carries factor i; one more code is noise."""
    random = np.random.default_rng(seed)
    factors = np.stack([random.integers(0, size, n) for size in sizes], axis=1)
    codes = np.hstack([factors - 1.5, np.zeros((n, 1))]) + noise * random.normal(size=(n, len(sizes) + 1))
    codes[:, -1] = random.normal(size=n)
    return check_sample(codes, factors)


@pytest.mark.parametrize("learner", CLASSIFIERS + REGRESSIONS)
def test_separate_codes_are_disentangled_and_complete(learner):
    score = dci.compute(draw(200), draw(150, seed=1), learner=learner)
    assert score.value == score.details["disentanglement"] > 0.8
    assert score.details["completeness"] > 0.8
    assert score.details["informativeness_test"] > 0.6
    assert score.details["informativeness_test"] == pytest.approx(
        score.details["informativeness_per_factor"].mean()
    )
    assert score.details["matrix"].shape == (3, 2)
    assert score.details["matrix"].argmax(axis=0).tolist() == [0, 1]
    assert score.params == {
        "learner": learner,
        "standardised": True,
        "completeness_average": "mean",
        "seed": 0,
    }


@pytest.mark.parametrize("learner", CLASSIFIERS + REGRESSIONS)
def test_mixed_codes_are_not(learner):
    train = draw(200)
    mixing = np.array([[1, 1, 0], [1, -1, 0], [0, 0, 1]])
    mixed = check_sample((train.codes / train.codes.std(axis=0)) @ mixing, train.factors)
    score = dci.compute(mixed, mixed, learner=learner)
    assert score.value < 0.4
    assert score.details["completeness"] < 0.6


def test_our_trees_give_the_scores_of_scikit_learn():
    train, test = draw(150, noise=1.0), draw(100, seed=1, noise=1.0)
    ours, theirs = (dci.compute(train, test, learner=name, seed=3) for name in ("gbt", "gbt_sklearn"))
    for name in ("disentanglement", "completeness", "informativeness_train", "informativeness_test"):
        assert ours.details[name] == pytest.approx(theirs.details[name], abs=1e-10)
    np.testing.assert_allclose(ours.details["matrix"], theirs.details["matrix"], atol=1e-10)


def test_svm_importance_is_the_mean_absolute_weight():
    train, test = draw(200, noise=0.5), draw(100, seed=1, noise=0.5)
    score = dci.compute(train, test, learner="l1_svm", standardised=False)
    for j in range(2):
        model = LinearSVC(penalty="l1", dual=False, random_state=0).fit(train.codes, train.factors[:, j])
        np.testing.assert_allclose(score.details["matrix"][:, j], np.abs(model.coef_).mean(axis=0))
        accuracy = np.mean(model.predict(test.codes) == test.factors[:, j])
        assert score.details["informativeness_per_factor"][j] == accuracy
    assert score.details["converged"].tolist() == [True, True]


def test_svm_that_does_not_converge_says_so():
    train = draw(300, noise=0.3)
    wild = check_sample(train.codes * [1e4, 1, 1e-3] + 5e4, train.factors)
    assert not dci.compute(wild, wild, learner="l1_svm", standardised=False).details["converged"].all()


def test_lasso_standardises_and_reports_the_relative_error():
    train, test = draw(200, noise=0.5), draw(100, seed=1, noise=0.5)
    moved = [check_sample(s.codes * [100, 0.1, 3] + 5, s.factors) for s in (train, test)]
    score = dci.compute(*moved, learner="lasso")
    x, x_test = ((s.codes - train.codes.mean(0)) / train.codes.std(0) for s in (train, test))
    y, y_test = (
        (s.factors[:, 1] - train.factors[:, 1].mean()) / train.factors[:, 1].std() for s in (train, test)
    )
    model = Lasso(alpha=0.02).fit(x, y)
    np.testing.assert_allclose(score.details["matrix"][:, 1], np.abs(model.coef_), atol=1e-8)
    error = np.sqrt(np.mean((model.predict(x_test) - y_test) ** 2) / np.mean(y_test**2))
    assert score.details["informativeness_per_factor"][1] == pytest.approx(1 - error)


@pytest.mark.parametrize("learner", CLASSIFIERS + REGRESSIONS)
def test_degenerate_samples(learner):
    train, test = draw(40), draw(30, seed=1)
    factors = train.factors.copy()
    factors[:, 0] = 2
    score = dci.compute(check_sample(train.codes, factors), test, learner=learner)
    assert score.details["matrix"][:, 0].tolist() == [0, 0, 0]
    assert score.details["informativeness_per_factor"][0] == np.mean(test.factors[:, 0] == 2)
    constant = check_sample(np.ones((40, 3)), train.factors)
    score = dci.compute(constant, constant, learner=learner)
    assert np.isfinite(score.value)
    if learner != "l1_svm":
        assert score.value == pytest.approx(0)
        assert score.details["matrix"].max() == 0
    more = check_sample(test.codes, test.factors + np.array([0, 2]))
    assert dci.compute(train, more, learner=learner).details["informativeness_per_factor"][1] < 1
    few = check_sample(train.codes[:3], np.arange(3))
    assert np.isfinite(dci.compute(few, few, learner=learner).value)


def test_unknown_learner():
    with pytest.raises(ArgumentError, match="did you mean 'lasso'"):
        dci.compute(draw(10), draw(10), learner="laso")


def test_lightgbm_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'unweave\[lightgbm\]'"):
        dci.compute(draw(10), draw(10), learner="lightgbm")


def test_lightgbm():
    pytest.importorskip("lightgbm")
    train, test = draw(300), draw(100, seed=1)
    score = dci.compute(train, test, learner="lightgbm")
    assert score.value > 0.8
    assert score.details["informativeness_test"] > 0.9


def test_the_papers_scores_do_not_depend_on_scale_and_place():
    train, test = draw(300), draw(150, seed=1)
    moved = [part._replace(codes=part.codes * [1e-2, 1.0, 30.0] + [4.0, 0.0, -9.0]) for part in (train, test)]
    paper, again = dci.compute(train, test), dci.compute(*moved)
    np.testing.assert_allclose(paper.details["matrix"], again.details["matrix"], atol=2e-3)
    raw = {"learner": "l1_svm", "standardised": False}
    differ = dci.compute(train, test, **raw).details["matrix"] - dci.compute(*moved, **raw).details["matrix"]
    assert np.abs(differ).max() > 0.1


def test_the_paper_standardises_by_the_points_to_learn_from():
    train, test = draw(300), draw(150, seed=1)
    mean, deviation = train.codes.mean(axis=0), train.codes.std(axis=0)
    by_hand = [part._replace(codes=(part.codes - mean) / deviation) for part in (train, test)]
    expected = dci.compute(*by_hand, standardised=False)
    found = dci.compute(train, test)
    np.testing.assert_array_equal(found.details["matrix"], expected.details["matrix"])
    assert found.details["informativeness_test"] == expected.details["informativeness_test"]


def test_completeness_is_the_plain_average_in_the_paper_and_weighted_in_the_code():
    train, test = draw(300, sizes=(3, 12), noise=0.8), draw(150, seed=1, sizes=(3, 12), noise=0.8)
    paper = dci.compute(train, test).details
    weighted = dci.compute(train, test, completeness_average="weighted").details
    assert paper["completeness"] == pytest.approx(paper["completeness_per_factor"].mean(), abs=1e-15)
    share = paper["matrix"].sum(axis=0) / paper["matrix"].sum()
    assert weighted["completeness"] == pytest.approx(share @ weighted["completeness_per_factor"], abs=1e-12)
    assert abs(paper["completeness"] - weighted["completeness"]) > 1e-4
