import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC

import unweave as uw
from unweave.errors import ArgumentError
from unweave.metrics.predictors.sap import sap, sap_gaps
from unweave.metrics.sample import check_sample


def draw(n, sizes=(2, 3, 5), noise=0.4, latents=4, seed=0, shift=0.0, scale=1.0):
    """Codes that mix standardised factors and noise, at any mean and scale."""
    random = np.random.default_rng(seed)
    factors = np.stack([random.integers(0, size, n) for size in sizes], axis=1)
    mixing = np.random.default_rng(99).normal(size=(len(sizes), latents))
    codes = (factors / np.array(sizes)) @ mixing + noise * random.normal(size=(n, latents))
    return check_sample(scale * codes + shift, factors)


def svm(x, y, **settings):
    return LinearSVC(C=0.01, class_weight="balanced", dual=False, **settings).fit(x[:, None], y)


def converged_svm(x, y):
    return svm(x, y, tol=1e-10, max_iter=100_000)


@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (5, 40)])
def test_svm_matrix_is_that_of_scikit_learn(shift, scale):
    train, test = (draw(400, seed=seed, shift=shift, scale=scale) for seed in (0, 1))
    matrix = sap.compute(train, test, standardised=False).details["matrix"]
    for i in range(4):
        for j in range(3):
            predicted = svm(train.codes[:, i], train.factors[:, j]).predict(test.codes[:, [i]])
            assert matrix[i, j] == np.mean(predicted == test.factors[:, j])


@pytest.mark.parametrize("seed", range(3))
def test_svm_matrix_agrees_with_converged_scikit_learn(seed):
    train, test = draw(400, seed=seed), draw(300, seed=seed + 10)
    expected = np.array(
        [
            [
                np.mean(converged_svm(code, y).predict(held_out[:, None]) == y_test)
                for y, y_test in zip(train.factors.T, test.factors.T, strict=True)
            ]
            for code, held_out in zip(train.codes.T, test.codes.T, strict=True)
        ]
    )
    score = sap.compute(train, test, solver="exact", standardised=False)
    np.testing.assert_allclose(score.details["matrix"], expected, atol=1e-3)
    top = -np.sort(-expected, axis=0)
    assert score.value == pytest.approx(np.mean(top[0] - top[1]), abs=2e-3)


@pytest.mark.parametrize("solver", ["liblinear_primal", "liblinear_dual"])
def test_liblinear_solvers_are_close_to_the_exact_one_on_codes_of_unit_scale(solver):
    train, test = draw(500), draw(300, seed=1)
    exact, other = sap.compute(train, test, solver="exact"), sap.compute(train, test, solver=solver)
    np.testing.assert_allclose(other.details["matrix"], exact.details["matrix"], atol=0.02)
    assert other.params["solver"] == solver


def test_regression_is_squared_correlation_of_train():
    train, test = draw(200), draw(50, seed=1)
    score = sap.compute(train, test, variant="regression")
    for i in range(4):
        for j in range(3):
            r = np.corrcoef(train.codes[:, i], train.factors[:, j])[0, 1]
            assert score.details["matrix"][i, j] == pytest.approx(r**2, abs=1e-12)


def test_threshold_of_a_binary_factor_is_its_balanced_accuracy():
    sample = draw(300, sizes=(2,), seed=3)
    score = sap.compute(sample, sample, variant="threshold", inactive_variance=0)
    x, y = sample.codes[:, 1], sample.factors[:, 0]
    best = max(
        max(balanced_accuracy_score(y, x > cut), balanced_accuracy_score(y, x <= cut))
        for cut in np.sort(x)[:-1]
    )
    assert score.details["matrix"][1, 0] == pytest.approx(best)


def test_inactive_codes_score_nothing():
    train = draw(300)
    codes = train.codes.copy()
    codes[:, 0] = 0.1 * train.factors[:, 1]
    sample = check_sample(codes, train.factors)
    assert sap.compute(sample, sample, variant="threshold").details["matrix"][0].tolist() == [0, 0, 0]
    active = sap.compute(sample, sample, variant="threshold", inactive_variance=0)
    assert active.details["matrix"][0, 1] == pytest.approx(1)
    assert active.params["inactive_variance"] == 0


def test_perfect_and_duplicated_codes():
    factors = np.stack([np.arange(600) % 2, np.arange(600) // 2 % 3], axis=1)
    sample = check_sample(np.hstack([factors, np.zeros((600, 1))]).astype(float), factors)
    for variant in ("svm", "regression", "threshold"):
        assert sap.compute(sample, sample, variant=variant).value > 0.4
    twice = check_sample(np.hstack([factors, factors]).astype(float), factors)
    for variant in ("svm", "regression", "threshold"):
        assert sap.compute(twice, twice, variant=variant).value == pytest.approx(0)


@pytest.mark.parametrize("variant", ["svm", "regression", "threshold"])
def test_degenerate_samples(variant):
    random = np.random.default_rng(0)
    factors = np.stack([np.zeros(20, int), random.integers(0, 4, 20)], axis=1)
    constant = check_sample(np.ones((20, 3)), factors)
    score = sap.compute(constant, constant, variant=variant)
    assert score.value == pytest.approx(0)
    assert np.isfinite(score.details["matrix"]).all()
    varied = check_sample(random.normal(size=(20, 3)), factors)
    assert sap.compute(varied, varied, variant=variant).details["per_factor"][0] == pytest.approx(0)


def test_values_that_train_lacks_are_errors():
    train = check_sample(np.array([[0.0, 1], [1, 0], [0, 1], [1, 0]]), np.array([0, 1, 0, 1]))
    test = check_sample(np.array([[0.0, 1], [5, 0]]), np.array([0, 2]))
    assert sap.compute(train, test).details["matrix"].max() <= 0.5


def test_fewer_rows_than_values():
    sample = check_sample(np.random.default_rng(0).normal(size=(5, 2)), np.arange(5))
    assert 0 <= sap.compute(sample, sample).value <= 1


@pytest.mark.parametrize(
    "arguments", [{"variant": "svn"}, {"solver": "exakt"}, {"C": 0.0}, {"inactive_variance": -1.0}]
)
def test_wrong_arguments_are_named(arguments):
    sample = draw(20)
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        sap.compute(sample, sample, **arguments)


def test_one_code_has_no_gap():
    sample = check_sample(np.arange(4.0), np.array([0, 1, 0, 1]))
    with pytest.raises(ArgumentError, match="two latents"):
        sap.compute(sample, sample)


def test_gaps():
    matrix = np.array([[0.2, 0.9], [0.7, 0.9], [0.5, 0.1]])
    np.testing.assert_allclose(sap_gaps(matrix), [0.2, 0.0])


def kumar_points():
    """An ordered factor that code 0 follows, a category that code 1 tells, and a third code that hardly varies."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, 10, 600), rng.integers(0, 3, 600)], axis=1)
    noise = rng.normal(size=(600, 3))
    codes = np.stack(
        [
            factors[:, 0] + noise[:, 0],
            np.array([5.0, 0.0, 9.0])[factors[:, 1]] + noise[:, 1],
            0.01 * factors[:, 1],
        ],
        axis=1,
    )
    return codes, factors


def test_kumar_measures_each_factor_by_its_type():
    codes, factors = kumar_points()
    test = (codes[:300], factors[:300])
    score = sap(codes[300:], factors[300:], test=test, variant="kumar", categorical=[False, True])
    ordered = np.corrcoef(codes[:300, 0], factors[:300, 0])[0, 1] ** 2
    assert score.details["matrix"][0, 0] == pytest.approx(ordered, abs=1e-12)
    alone = sap(codes[300:], factors[300:], test=test, variant="threshold")
    assert score.details["matrix"][1, 1] == alone.details["matrix"][1, 1] > 0.9
    lines = sap(codes[300:], factors[300:], test=test, variant="kumar")
    assert lines.details["matrix"][1, 1] == pytest.approx(
        np.corrcoef(codes[:300, 1], factors[:300, 1])[0, 1] ** 2
    )


def test_kumar_gives_inactive_latents_zero_for_both_kinds():
    codes, factors = kumar_points()
    codes = np.hstack(
        [codes, 0.01 * factors[:, :1]]
    )  # each tells a factor perfectly, with a variance below 0.05
    score = sap(codes, factors, test=(codes, factors), variant="kumar", categorical=[False, True])
    assert not score.details["matrix"][2:].any()
    assert score.params["inactive_variance"] == 0.05
    kept = sap(
        codes, factors, test=(codes, factors), variant="kumar", categorical=[False, True], inactive_variance=0
    )
    assert kept.details["matrix"][2, 1] == 1.0
    assert kept.details["matrix"][3, 0] == pytest.approx(1.0)


def test_an_untrained_code_of_tiny_variance_scores_zero():
    codes, factors = kumar_points()
    tiny = 0.04 * (codes[:, :2] - codes[:, :2].mean(axis=0)) / codes[:, :2].std(axis=0)
    assert sap(tiny, factors, variant="regression").value > 0.4
    assert sap(tiny, factors, variant="kumar").value == 0.0


def test_which_factors_are_categories_is_known_from_the_data_set():
    codes, factors = kumar_points()
    data = uw.data.from_arrays(
        codes.astype(np.float32), {"size": factors[:, 0], "shape": np.array(list("abc"))[factors[:, 1]]}
    )
    score = uw.evaluate(lambda images: images, data, ["sap"], params={"sap": {"variant": "kumar"}})["sap"]
    assert score.params["categorical"] == [False, True]


@pytest.mark.parametrize("categorical", [[True], [0.5, True], "ab"])
def test_categorical_is_checked(categorical):
    codes, factors = kumar_points()
    with pytest.raises(ArgumentError, match="categorical"):
        sap(codes, factors, variant="kumar", categorical=categorical)


def test_scale_does_not_matter_to_the_papers_svm():
    codes, factors = kumar_points()
    scaled = codes * [1e-3, 1.0, 50.0] + [3.0, 0.0, -7.0]
    paper = [sap(points, factors).details["matrix"] for points in (codes, scaled)]
    np.testing.assert_allclose(*paper, atol=1e-9)
    library = [sap(points, factors, protocol="dlib").details["matrix"] for points in (codes, scaled)]
    assert np.abs(library[0] - library[1]).max() > 0.1
