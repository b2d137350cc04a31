import inspect

import numpy as np
import pytest

from unweave import metrics
from unweave.errors import ArgumentError

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 4, (600, 3))
CODES = np.concatenate([FACTORS + RNG.normal(0, 0.1, FACTORS.shape), RNG.normal(size=(600, 1))], axis=1)
QUICK = {
    "beta_vae": {"num_train": 200, "num_eval": 100},
    "factor_vae": {"num_train": 200, "num_eval": 100},
    "downstream_mlp": {"hidden": (5,), "steps": 20},
}
ON_ARRAYS = [name for name, metric in metrics.METRICS.items() if metric.takes not in ("posterior", "models")]
LEARNED = ("downstream", "attribute_classification", "dci", "dci_es", "infomec", "z_diff", "z_min_variance")


@pytest.mark.parametrize("name", metrics.names())
def test_every_metric_is_there_with_pinned_parameters(name):
    metric = metrics.METRICS[name]
    assert inspect.getdoc(metric.function)
    assert all(default is not inspect.Parameter.empty for default in metric.parameters.values())


@pytest.mark.parametrize("name", [name for name in ON_ARRAYS if name not in LEARNED])
def test_scores_depend_on_their_arguments_only(name):
    params = QUICK.get(name, {})
    first = metrics.score(name, CODES, FACTORS, seed=1, **params)
    for other in ("mig", "sap"):
        metrics.score(other, CODES, FACTORS)
    np.random.seed(7)  # noqa: NPY002 (a metric must not use the global source)
    again = metrics.score(name, CODES.copy(), FACTORS.copy(), seed=1, **params)
    assert first.value == again.value
    assert isinstance(first.value, float)


def test_a_good_code_scores_high_and_noise_low():
    noise = RNG.normal(size=CODES.shape)
    for name in ("mig", "sap", "factor_vae", "mcc"):
        params = QUICK.get(name, {})
        good = metrics.score(name, CODES, FACTORS, **params).value
        bad = metrics.score(name, noise, FACTORS, **params).value
        assert good > bad + 0.2, name


def test_test_points_are_used_when_given():
    train, test = (CODES[:400], FACTORS[:400]), (CODES[400:], FACTORS[400:])
    given = metrics.score("sap", *train, test=test)
    shuffled = metrics.score("sap", *train, test=(test[0][::-1], test[1]))
    assert given.value > shuffled.value + 0.2


def test_factors_may_be_anything_that_has_distinct_values():
    words = np.array(["a", "b", "c", "d"])[FACTORS]
    far_apart = np.array([-5, 10, 10**7, 10**9])[FACTORS]
    expected = metrics.score("mig", CODES, FACTORS).value
    assert metrics.score("mig", CODES, words).value == pytest.approx(expected)
    assert metrics.score("mig", CODES, far_apart).value == pytest.approx(expected)
    assert metrics.score("mig", CODES, FACTORS.astype(float)).value == expected


@pytest.mark.parametrize("name", ["mig", "irs", "code_mutual_information", "mcc"])
def test_intervals_surround_the_value(name):
    for codes in (CODES, RNG.normal(size=CODES.shape)):
        found = metrics.score(name, codes, FACTORS, bootstrap=30)
        low, high = found.details["interval"]
        assert low < found.value < high


def test_an_interval_is_as_wide_as_the_spread_over_fresh_samples():
    def draw(rng):
        factors = rng.integers(0, 4, (400, 2))
        return factors + rng.normal(0, 0.5, factors.shape), factors

    rng = np.random.default_rng(1)
    fresh = [metrics.score("mcc", *draw(rng)).value for _ in range(200)]
    widths = [
        np.subtract(*metrics.score("mcc", *draw(rng), bootstrap=100).details["interval"][::-1])
        for _ in range(5)
    ]
    assert np.mean(widths) == pytest.approx(4 * np.std(fresh), rel=0.25)


def test_train_and_test_values_have_one_number():
    """A value that only one part has must not shift the others."""
    names = np.array(["a", "b", "c"])
    train, test = RNG.integers(0, 3, (300, 2)), RNG.integers(1, 3, (100, 2))
    found = metrics.score("dci", train * 1.0, names[train], test=(test * 1.0, names[test]))
    assert found.details["informativeness_test"] == 1.0
    shifted = metrics.score("sap", train * 1.0, train - 1, test=(test * 1.0, test - 1))
    assert shifted.value == metrics.score("sap", train * 1.0, train, test=(test * 1.0, test)).value


def test_what_has_no_rows_to_resample_refuses_intervals():
    with pytest.raises(ArgumentError, match="bootstrap"):
        metrics.score("udr", [CODES, CODES], bootstrap=5)


@pytest.mark.parametrize("name", ["monte_carlo_total_correlation", "windin", "rmig"])
def test_a_log_variance_is_resampled_with_its_codes(name):
    noise = np.linspace(-4, 0, CODES.size).reshape(CODES.shape)
    factors = FACTORS if name == "rmig" else None
    found = metrics.score(name, CODES, factors, log_variance=noise, bootstrap=10)
    low, high = found.details["interval"]
    assert low < found.value < high


def test_posterior_metrics_take_mean_and_log_variance():
    log_variance = np.full(CODES.shape, -4.0)
    found = metrics.score("monte_carlo_total_correlation", CODES, log_variance=log_variance)
    assert np.isfinite(found.value)
    with pytest.raises(ArgumentError, match="log_variance"):
        metrics.score("monte_carlo_total_correlation", CODES)


def test_udr_takes_the_codes_of_several_models():
    models = [CODES[:, [0, 1, 2]], CODES[:, [2, 0, 1]] * -2, CODES[:, [1, 2, 0]] + 1]
    assert metrics.score("udr", models, method="spearman").value > 0.8


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("migg", CODES, FACTORS), {}, "did you mean 'mig'"),
        (("mig", CODES, FACTORS), {"bins": 20}, "did you mean 'num_bins'"),
        (("mig", CODES, FACTORS[:-1]), {}, "factors = '599 rows': there are 600 codes"),
        (("mig", CODES), {}, "needs the factors"),
        (("mig", CODES[None], FACTORS), {}, r"needs numbers of shape \(n, D\)"),
        (("mig", CODES[:0], FACTORS[:0]), {}, "at least one point"),
        (("mig", CODES, FACTORS + 0.5), {}, "bin a continuous factor first"),
        (("mig", CODES, FACTORS * np.nan), {}, "needs finite values"),
        (("mig", CODES * np.inf, FACTORS), {}, r"codes\[0, "),
        (("mig", CODES.astype(str), FACTORS), {}, "needs numbers"),
        (("sap", CODES, FACTORS), {"test": (CODES[:, :2], FACTORS)}, "test = '2 codes and 3 factors'"),
        (("sap", CODES[:2], FACTORS[:2]), {}, "at least 3"),
        (("mig", CODES, FACTORS), {"seed": -1}, "seed = -1"),
        (("mig", CODES, FACTORS), {"bootstrap": 1}, "bootstrap = 1"),
    ],
)
def test_wrong_input_is_refused_by_name(arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        metrics.score(*arguments, **options)


@pytest.mark.parametrize("name", [name for name in ON_ARRAYS if name not in LEARNED])
def test_constant_codes_have_a_defined_score(name):
    found = metrics.score(name, np.zeros((60, 2)), FACTORS[:60], **QUICK.get(name, {}))
    assert np.isfinite(found.value)


@pytest.mark.parametrize("name", ["mig", "modularity", "sap", "explicitness", "irs", "mig_sup", "mcc", "dci"])
def test_a_factor_with_one_value_does_no_harm(name):
    factors = np.concatenate([FACTORS, np.zeros((600, 1), int)], axis=1)
    assert np.isfinite(metrics.score(name, CODES, factors).value)


VALUES = np.array([-3, 0, 50, 200_000])  # on a line, but not evenly: ranks would bend them
ON_A_LINE = VALUES[FACTORS]


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_factors_that_are_numbers_keep_their_values(kind):
    factors = ON_A_LINE.astype(kind)
    noise = RNG.normal(size=(600, 1))
    same = np.hstack([factors.astype(np.float64), noise])
    assert metrics.score("mcc", same, factors).value == pytest.approx(1)
    assert metrics.score("linear_r2", same, factors).value == pytest.approx(1)
    found = metrics.score("sap", same, factors, test=(same, factors), variant="regression").details["matrix"]
    np.testing.assert_allclose(found, np.corrcoef(same.T, factors.T)[:4, 4:] ** 2, atol=1e-12)
    learned = metrics.score("dci", same, factors, learner="lasso").details["informativeness_test"]
    assert learned > 0.97  # a line, but for the penalty
    # In 20 bins of equal width the three smaller values are one: a code that tells them apart is not robust.
    assert metrics.score("irs", FACTORS * 1.0, factors).value < 0.8
    assert metrics.score("irs", FACTORS * 1.0, FACTORS).value == 1


COUNTING = [
    name
    for name in ON_ARRAYS
    if name
    not in (
        "mcc",
        "linear_r2",
        "latent_factor_correlation",
        "irs",
        "attribute_classification",
        "dci_es",
        "downstream",
        "z_diff",
    )
]


@pytest.mark.parametrize("name", COUNTING)
def test_the_names_of_categories_do_not_matter(name):
    expected = metrics.score(name, CODES, FACTORS, **QUICK.get(name, {})).value
    for factors in (ON_A_LINE, FACTORS - 2, FACTORS.astype(np.uint64) + np.uint64(2**63), FACTORS * 1e300):
        assert metrics.score(name, CODES, factors, **QUICK.get(name, {})).value == pytest.approx(expected)
