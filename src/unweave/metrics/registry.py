"""All metrics by name, and how each is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np

from unweave.errors import unknown_name
from unweave.metrics.intervals import half, with_interval
from unweave.metrics.interventions.votes import TableInterventions
from unweave.metrics.parameters import check_seed, checked_params
from unweave.metrics.score import Rows, Sample, Score

Kind = Literal["sample", "split", "interventions", "posterior", "models"]


@dataclass(frozen=True)
class Metric:
    """A metric and what it works on.

    sample: codes and factors. split: the same, in a train and a test part. interventions: codes of images of chosen
    factors. posterior: mean and log-variance of q(z|x). models: the codes of several models.

    ``continuous``: whether factors are numbers to it, so that they need not be whole. ``factors``: whether it uses
    them at all.
    """

    kind: Kind
    place: str
    continuous: bool = False
    factors: bool = True

    @property
    def function(self) -> Callable[..., Score]:
        """The function itself; its module is imported only now (some need scikit-learn or compile code)."""
        module, _, name = self.place.partition(":")
        found: Callable[..., Score] = getattr(
            import_module(f"unweave.metrics.{module}"), name or module.rpartition(".")[2]
        )
        return found

    @property
    def parameters(self) -> dict[str, Any]:
        """The metric's own parameters and their defaults."""
        signature = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in signature if p.kind is p.KEYWORD_ONLY}


METRICS: dict[str, Metric] = {
    "beta_vae": Metric("interventions", "interventions.beta_vae"),
    "factor_vae": Metric("interventions", "interventions.factor_vae"),
    "mig": Metric("sample", "information.mig"),
    "modularity": Metric("sample", "information.modularity"),
    "explicitness": Metric("split", "predictors.explicitness"),
    "dci": Metric("split", "predictors.dci"),
    "sap": Metric("split", "predictors.sap"),
    "dci_es": Metric("split", "predictors.dci_es"),
    "z_diff": Metric("interventions", "interventions.z_diff"),
    "z_min_variance": Metric("interventions", "interventions.z_min_variance"),
    "irs": Metric("sample", "interventions.irs"),
    "rmig": Metric("sample", "information.rmig"),
    "mig_sup": Metric("sample", "information.mig_sup"),
    "dcimig": Metric("sample", "information.dcimig"),
    "jemmig": Metric("sample", "information.jemmig"),
    "infomec": Metric("sample", "information.infomec"),
    "mcc": Metric("sample", "predictors.mcc", continuous=True),
    "linear_r2": Metric("sample", "predictors.linear_r2", continuous=True),
    "downstream": Metric("split", "predictors.downstream"),
    "attribute_classification": Metric("split", "predictors.attribute_classification"),
    "gaussian_total_correlation": Metric("sample", "unlabelled.gaussian_total_correlation", factors=False),
    "wasserstein_correlation": Metric("sample", "unlabelled.wasserstein_correlation", factors=False),
    "code_mutual_information": Metric("sample", "unlabelled.code_mutual_information", factors=False),
    "monte_carlo_total_correlation": Metric(
        "posterior", "unlabelled.monte_carlo_total_correlation", factors=False
    ),
    "windin": Metric("posterior", "unlabelled.windin", factors=False),
    "udr": Metric("models", "unlabelled.udr", factors=False),
}


def names() -> list[str]:
    """The names of all metrics, as ``score`` takes them."""
    return list(METRICS)


def find(name: str) -> Metric:
    """A metric by name; an unknown name is answered with the nearest one."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


def check_params(name: str, params: dict[str, Any]) -> None:
    """Refuse parameters that a metric does not have, and values of the wrong kind."""
    known = [key for key in find(name).parameters if key != "seed"]
    extra = ["log_variance"] if find(name).kind == "posterior" else []
    for key in params:
        if key not in known and key not in extra:
            raise unknown_name(f"parameter of {name}", key, known)
    checked_params(find(name).function, params)


def call(metric: Metric, arguments: Sequence[Any], seed: int, params: dict[str, Any]) -> Score:
    """Call a metric, with the seed if it takes one."""
    seeded = {"seed": check_seed(seed)} if "seed" in metric.parameters else {}
    return metric.function(*arguments, **seeded, **checked_params(metric.function, params))


def on_samples(
    metric: Metric, train: Sample, test: Sample | None, seed: int, params: dict[str, Any], bootstrap: int = 0
) -> Score:
    """Call a metric of points, or of points in two parts; with an interval, if asked for."""

    def compute(train: Sample, test: Sample | None, params: dict[str, Any]) -> Score:
        if metric.kind == "interventions":
            return call(metric, [TableInterventions(train)], seed, params)
        return call(metric, [train] if metric.kind == "sample" else [train, test], seed, params)

    def again(rng: np.random.Generator) -> Score:
        rows = half(len(train.codes), rng)
        judged = None if test is None else test.rows(half(len(test.codes), rng))
        return compute(train.rows(rows), judged, _of_rows(params, rows))

    found = compute(train, test, params)
    return with_interval(found, again, bootstrap, seed) if bootstrap else found


def on_posterior(
    metric: Metric, mean: Any, log_variance: Any, seed: int, params: dict[str, Any], bootstrap: int = 0
) -> Score:
    """Call a metric of mean and log-variance (n, D); with an interval, if asked for."""

    def again(rng: np.random.Generator) -> Score:
        rows = half(len(mean), rng)
        return call(metric, [mean[rows], log_variance[rows]], seed, params)

    found = call(metric, [mean, log_variance], seed, params)
    return with_interval(found, again, bootstrap, seed) if bootstrap else found


def _of_rows(params: dict[str, Any], rows: Rows) -> dict[str, Any]:
    """The parameters for some of the points: a log-variance has a row for each."""
    if params.get("log_variance") is None:
        return params
    return {**params, "log_variance": np.asarray(params["log_variance"])[rows]}
