"""The descriptor of a metric: its facts, its signature, and calling it with arrays."""

import inspect
import pickle
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import unweave as uw
from unweave import metrics
from unweave.errors import ArgumentError
from unweave.metrics import METRICS, Score
from unweave.metrics.metric import PROTOCOLS, Metric
from unweave.metrics.registry import as_metric, register_metric
from unweave.metrics.sample import check_sample, split_sample
from unweave.parameters import Count, Positive

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 3, (120, 2))
CODES = FACTORS + RNG.normal(0, 0.2, FACTORS.shape)
NOISE = np.full(CODES.shape, -3.0)
VOTES = {"num_train": 60, "num_eval": 30}
QUICK = {
    "beta_vae": VOTES,
    "factor_vae": VOTES,
    "z_diff": VOTES,
    "z_min_variance": VOTES,
    "dci": {"learner": "lasso"},
    "dci_es": {"depths": (1, 2), "trees": 2},
    "downstream": {"sizes": (10,)},
    "downstream_mlp": {"hidden": (3,), "steps": 5},
}


@pytest.fixture
def registered():
    """Names that are forgotten after the test."""
    names = []
    yield names
    for name in names:
        METRICS.unregister(name)


def inputs(metric):
    if metric.takes == "posterior":
        return {"mean": CODES, "log_variance": NOISE}
    if metric.takes == "models":
        return {"codes_list": [CODES, CODES[:, ::-1]]}
    factors = FACTORS > 1 if metric.factors == "binary" else FACTORS
    return {"codes": CODES, "factors": factors}


@pytest.mark.parametrize("name", METRICS)
def test_calling_a_metric_is_scoring_by_its_name(name):
    metric, options = METRICS[name], QUICK.get(name, {})
    given = inputs(metric)
    called = metric(*given.values(), **options)
    by_name = metric(**given, **options)
    first, *rest = given.values()
    if metric.takes == "posterior":
        expected = metrics.score(name, first, log_variance=rest[0], **options)
    else:
        expected = metrics.score(name, first, *rest, **options)
    assert called.value == by_name.value == expected.value
    assert getattr(metrics, name) is metric
    assert (called.metric, called.higher_is_better) == (name, metric.higher_is_better)


@pytest.mark.parametrize("name", METRICS)
def test_facts_are_complete_and_consistent(name):
    metric = METRICS[name]
    assert metric.name == name
    assert metric.label
    assert set(metric.sizes) <= set(metric.parameters)
    assert set(metric.renamed.values()) <= set(metric.parameters)
    for protocol in PROTOCOLS:
        metric.check_params(metric.settings(protocol))
    if metric.images is not None:
        assert metric.images(metric.parameters) > 0


@pytest.mark.parametrize("name", METRICS)
def test_docstrings_have_all_sections_and_all_parameters(name):
    text = METRICS[name].__doc__
    for section in ("Parameters\n----------", "Returns\n-------", "Examples\n--------"):
        assert text.count(section) == 1
    listed = [
        part.strip() for line in text.splitlines() if not line.startswith(" ") for part in line.split(",")
    ]
    for parameter in inspect.signature(METRICS[name]).parameters:
        assert parameter in listed


def test_the_paper_has_eight_metrics():
    assert [metric.name for metric in METRICS.values() if metric.paper] == [
        "beta_vae",
        "factor_vae",
        "mig",
        "modularity",
        "explicitness",
        "dci",
        "sap",
        "gaussian_total_correlation",
    ]


def test_signatures_show_what_a_user_gives():
    def shown(metric):
        return list(inspect.signature(metric).parameters)

    assert shown(metrics.mig) == [
        "codes",
        "factors",
        "num_bins",
        "denominator",
        "rule",
        "seed",
        "bootstrap",
    ]
    settings = ["learner", "standardised", "completeness_average"]
    assert shown(metrics.dci) == ["codes", "factors", *settings, "test", "protocol", "seed", "bootstrap"]
    assert shown(metrics.windin)[:2] == ["mean", "log_variance"]
    assert shown(metrics.udr)[0] == "codes_list"
    assert inspect.signature(metrics.gaussian_total_correlation).parameters["factors"].default is None
    assert "num_bins=20" in repr(metrics.mig)


def test_test_points_are_for_metrics_that_learn():
    part = CODES[:80], FACTORS[:80]
    test = CODES[80:], FACTORS[80:]
    assert metrics.sap(*part, test=test).value == metrics.score("sap", *part, test).value
    with pytest.raises(ArgumentError, match="parameter of mig = 'test'"):
        metrics.mig(*part, test=test)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "needs codes"),
        ((CODES, FACTORS, 20), {}, "takes codes, factors, all else by name"),
        ((CODES, FACTORS), {"codes": CODES}, "got codes twice"),
    ],
)
def test_calls_that_no_function_would_take(arguments, options, message):
    with pytest.raises(TypeError, match=message):
        metrics.mig(*arguments, **options)


def test_wrong_arrays_are_refused_by_name():
    with pytest.raises(ArgumentError, match="factors = None: mig needs the factors"):
        metrics.mig(CODES)
    with pytest.raises(ArgumentError, match=r"codes\[0, 0\] = nan"):
        metrics.mig(CODES * np.nan, FACTORS)
    with pytest.raises(ArgumentError, match="log_variance = None: windin needs"):
        metrics.windin(CODES)
    with pytest.raises(ArgumentError, match="did you mean 'num_bins'"):
        metrics.mig(CODES, FACTORS, bins=3)


def test_scores_of_samples_are_those_of_arrays():
    sample = check_sample(CODES, FACTORS)
    assert metrics.mig.compute(sample).value == metrics.mig(CODES, FACTORS).value
    parts = split_sample(sample, 3)
    assert metrics.sap.on_samples(*parts, seed=3).value == metrics.sap(CODES, FACTORS, seed=3).value
    assert metrics.windin.on_posterior(CODES, NOISE).value == metrics.windin(CODES, NOISE).value


@pytest.mark.parametrize(
    ("factors", "sizes", "suits"),
    [
        ("none", [], True),
        ("any", [], False),
        ("any", [None, 3], True),
        ("discrete", [3, 1], True),
        ("discrete", [3, None], False),
        ("two", [3, 1], False),
        ("two", [3, 2], True),
        ("binary", [2, 1], True),
        ("binary", [2, 3], False),
        ("binary", [], False),
    ],
)
def test_which_factors_suit(factors, sizes, suits):
    assert Metric("some", lambda codes: 0.0, factors=factors).suits(sizes) == suits


# --- parameters under old names -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sap", "explicitness", "z_diff"])
def test_the_old_name_of_c_still_works_with_a_warning(name):
    options = QUICK.get(name, {})
    expected = METRICS[name](CODES, FACTORS, C=0.3, **options)
    with pytest.warns(FutureWarning, match=f"{name}: the parameter penalty is now called C"):
        old = metrics.score(name, CODES, FACTORS, penalty=0.3, **options)
    assert old.value == expected.value
    assert old.params == expected.params
    assert expected.params["C"] == 0.3


# --- a user's metrics ----------------------------------------------------------------------------------


def test_a_registered_function_works_by_name_and_by_call(registered):
    @register_metric("spread", label="Spread", higher_is_better=False)
    def spread(codes, factors, power: Positive = 2.0, *, seed: int = 0):
        """How far codes are from their mean."""
        return np.mean(np.abs(codes - codes.mean(axis=0)) ** power)

    registered.append("spread")
    score = uw.metrics.score("spread", CODES, FACTORS, seed=5, power=1)
    assert score.value == pytest.approx(np.abs(CODES - CODES.mean(axis=0)).mean())
    assert score.params == {"power": 1.0, "seed": 5}
    assert (score.metric, score.higher_is_better) == ("spread", False)
    assert spread(CODES, FACTORS, power=1).value == score.value
    assert "spread" in metrics.names()
    assert METRICS["spread"] is spread
    assert spread.__doc__.startswith("How far codes are from their mean.")
    with pytest.raises(ArgumentError, match="power = -1"):
        spread(CODES, FACTORS, power=-1)
    low, high = spread(CODES, FACTORS, bootstrap=20).details["interval"]
    assert low < spread(CODES, FACTORS).value < high


def test_a_name_is_taken_once(registered):
    register_metric("twice")(lambda codes, factors: 0.0)
    registered.append("twice")
    for name in ("twice", "mig"):
        with pytest.raises(ArgumentError, match="there is a metric of this name already"):
            register_metric(name)(lambda codes, factors: 0.0)


def test_the_decorator_without_a_name(registered):
    @register_metric
    def mean_code(codes, factors):
        return codes.mean()

    registered.append("mean_code")
    assert metrics.score("mean_code", CODES, FACTORS).value == pytest.approx(CODES.mean())


def test_a_metric_may_ask_for_a_split_and_give_a_score(registered):
    @register_metric("error", takes="split", higher_is_better=False)
    def error(train, test, *, neighbours: Count = 1):
        return Score(
            float(len(test.codes)), {"train": len(train.codes), "ok": True}, {"neighbours": neighbours}
        )

    registered.append("error")
    score = error(CODES, FACTORS)
    assert (score.value, score.details["train"], score.metric) == (40, 80, "error")
    assert error.scalars(score) == {"train": 80}


def test_functions_are_scored_without_registering():
    def largest(codes, factors):
        return codes.max()

    assert metrics.score(largest, CODES, FACTORS).value == CODES.max()
    assert as_metric(largest).name == "largest"
    assert "largest" not in METRICS
    with pytest.raises(ArgumentError, match="metric = 3: needs a name or a function"):
        metrics.score(3, CODES, FACTORS)
    with pytest.raises(ArgumentError, match="has to give a number or a Score"):
        metrics.score(lambda codes, factors: codes, CODES, FACTORS)


def test_a_function_of_codes_alone():
    metric = Metric("norm", lambda codes: np.abs(codes).sum(), factors="none")
    assert metric(CODES).value == pytest.approx(np.abs(CODES).sum())
    assert metric.takes_log_variance is False


def test_what_needs_a_trained_method_is_refused_on_arrays():
    metric = Metric("elbo", lambda method, data: 0.0, takes="method", factors="none")
    assert metric.of_posterior
    with pytest.raises(ArgumentError, match=r"uw\.evaluate"):
        metric(CODES)


def test_unknown_protocols_are_refused():
    with pytest.raises(ArgumentError, match="protocols = 'papr'"):
        Metric("some", lambda codes, factors: 0.0, protocols={"papr": {}})
    with pytest.raises(ArgumentError, match="protocol = 'papr'"):
        metrics.mig.settings("papr")
    assert metrics.dci.settings("paper") == {}
    assert metrics.dci.settings("dlib") == {
        "learner": "gbt",
        "standardised": False,
        "completeness_average": "weighted",
    }
    assert metrics.mig.settings("dlib") == {}


# --- objects -------------------------------------------------------------------------------------------


def test_metrics_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(metrics.mig)) is metrics.mig
    assert deepcopy(metrics.mig) is metrics.mig


def test_a_metric_with_other_facts():
    other = replace(metrics.gaussian_total_correlation, name="other", label="Other")
    assert other(CODES).metric == "other"
    assert other(CODES).value == metrics.gaussian_total_correlation(CODES).value
    assert other.__doc__ == metrics.gaussian_total_correlation.__doc__


def test_rows_of_a_results_table():
    score = metrics.downstream(CODES, FACTORS, sizes=(10, 60))
    rows = metrics.downstream.scalars(score)
    assert rows.keys() == {"efficiency", "10", "60"}
    assert rows["60"] == score.value
    binary = FACTORS > 1
    score = metrics.attribute_classification(CODES, binary)
    assert metrics.attribute_classification.scalars(score, ["a", "b"]) == dict(
        zip("ab", score.details["per_factor"], strict=True)
    )


def test_facts_need_no_heavy_packages():
    code = (
        "import sys, unweave.metrics as m;"
        "[(x.label, x.parameters, x.higher_is_better) for x in m.METRICS.values()];"
        "heavy = {'torch', 'numba', 'sklearn', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
