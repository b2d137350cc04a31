"""All metrics by name, on plain arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unweave.data.plain import plain
from unweave.errors import ArgumentError, unknown_name
from unweave.metrics.interventions import TableInterventions
from unweave.metrics.score import Sample, Score, check_sample, check_samples

Kind = Literal["sample", "split", "interventions", "posterior", "models"]


@dataclass(frozen=True)
class Metric:
    """A metric and what it works on.

    sample: codes and factors. split: the same, in a train and a test part. interventions: codes of images of chosen
    factors. posterior: mean and log-variance of q(z|x). models: the codes of several models.

    ``continuous``: whether factors are numbers to it, so that they need not be whole.
    """

    kind: Kind
    place: str
    continuous: bool = False

    @property
    def function(self) -> Callable[..., Score]:
        """The function itself; its module is imported only now (some need scikit-learn or compile code)."""
        module, _, name = self.place.partition(":")
        found: Callable[..., Score] = getattr(import_module(f"unweave.metrics.{module}"), name or module)
        return found

    @property
    def parameters(self) -> dict[str, Any]:
        """The metric's own parameters and their defaults."""
        signature = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in signature if p.kind is p.KEYWORD_ONLY}


METRICS: dict[str, Metric] = {
    "beta_vae": Metric("interventions", "beta_vae"),
    "factor_vae": Metric("interventions", "factor_vae"),
    "mig": Metric("sample", "mig"),
    "modularity": Metric("sample", "modularity"),
    "explicitness": Metric("split", "explicitness"),
    "dci": Metric("split", "dci"),
    "sap": Metric("split", "sap"),
    "dci_es": Metric("split", "dci_es"),
    "z_diff": Metric("interventions", "z_diff"),
    "z_min_variance": Metric("interventions", "z_min_variance"),
    "irs": Metric("sample", "irs"),
    "rmig": Metric("sample", "rmig"),
    "mig_sup": Metric("sample", "mig_sup"),
    "dcimig": Metric("sample", "dcimig"),
    "jemmig": Metric("sample", "jemmig"),
    "infomec": Metric("sample", "infomec"),
    "mcc": Metric("sample", "mcc", continuous=True),
    "linear_r2": Metric("sample", "linear_r2", continuous=True),
    "downstream": Metric("split", "downstream"),
    "attribute_classification": Metric("split", "attributes:attribute_classification"),
    "gaussian_total_correlation": Metric("sample", "gaussian_total_correlation"),
    "wasserstein_correlation": Metric("sample", "wasserstein_correlation"),
    "code_mutual_information": Metric("sample", "code_mutual_information"),
    "monte_carlo_total_correlation": Metric("posterior", "monte_carlo_total_correlation"),
    "windin": Metric("posterior", "windin"),
    "udr": Metric("models", "udr"),
}


def names() -> list[str]:
    """The names of all metrics, as ``score`` takes them."""
    return list(METRICS)


def find(name: str) -> Metric:
    """A metric by name; an unknown name is answered with the nearest one."""
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


def score(
    name: str,
    codes: Any,
    factors: npt.ArrayLike | None = None,
    test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    seed: int = 0,
    *,
    bootstrap: int = 0,
    **params: Any,
) -> Score:
    """Score a representation given as plain arrays, from any encoder of any framework.

    >>> score("mig", codes, factors).value                        # doctest: +SKIP
    0.42

    Parameters
    ----------
    codes, factors
        (n, D) finite numbers and (n, K) whole numbers, strings or booleans; "mcc" and "linear_r2" take any
        numbers. For "udr", ``codes`` is a list of such arrays, one per model, on the same images.
    test
        (codes, factors) of other points, for a metric that learns on some points and is judged on others.
        Without it two thirds of the rows, drawn by ``seed``, are for learning and the rest for judging.
    bootstrap
        how many resamplings to make for a 95 % interval, put into ``details["interval"]``. Each takes a random
        half of the rows, without repeating any: repeated rows would look like information to many metrics. Halves
        spread around their mean as whole samples do, so the interval is the value plus that spread.
    params
        the metric's own parameters.
    """
    metric = find(name)
    seed, bootstrap, params = plain((seed, bootstrap, params))
    check_params(name, params)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError("seed", seed, "needs a whole number >= 0")
    if bootstrap and metric.kind in ("models", "posterior"):
        raise ArgumentError("bootstrap", bootstrap, f"{name} is not a score of rows that can be resampled")
    if metric.kind == "models":
        return call(metric, [codes], seed, params)
    if metric.kind == "posterior":
        if params.get("log_variance") is None:
            raise ArgumentError(
                "log_variance", None, f"{name} needs the log-variance of q(z|x) next to its mean"
            )
        log_variance = params.pop("log_variance")
        return call(metric, [np.asarray(codes), np.asarray(log_variance)], seed, params)
    if factors is None:
        raise ArgumentError("factors", None, f"{name} needs the factors of the codes")
    judged: Sample | None = None
    if test is None:
        train = check_sample(codes, factors, continuous=metric.continuous)
    else:
        train, judged = check_samples((codes, factors), test, metric.continuous)
    if metric.kind == "split" and judged is None:
        train, judged = split(train, seed)
    found = _on_samples(metric, train, judged, seed, params)
    if bootstrap:
        values = _resampled(metric, train, judged, seed, params, bootstrap)
        low, high = (found.value + np.quantile(values - values.mean(), [0.025, 0.975])).tolist()
        found = replace(found, details={**found.details, "interval": (low, high)})
    return found


def split(sample: Sample, seed: int) -> tuple[Sample, Sample]:
    """Two thirds and one third of the rows, drawn by the seed."""
    n = len(sample.codes)
    if n < 3:
        raise ArgumentError("codes", f"{n} rows", "needs at least 3 to split them; or give test points")
    order = np.random.default_rng(seed).permutation(n)
    parts = (order[: -(n // 3)], order[-(n // 3) :])
    first, second = (Sample(sample.codes[rows], sample.factors[rows]) for rows in parts)
    return first, second


def check_params(name: str, params: dict[str, Any]) -> None:
    """Refuse parameters that a metric does not have."""
    known = [key for key in find(name).parameters if key != "seed"]
    extra = ["log_variance"] if find(name).kind == "posterior" else []
    for key in params:
        if key not in known and key not in extra:
            raise unknown_name(f"parameter of {name}", key, known)


def call(metric: Metric, arguments: Sequence[Any], seed: int, params: dict[str, Any]) -> Score:
    """Call a metric, with the seed if it takes one."""
    seeded = {"seed": int(seed)} if "seed" in metric.parameters else {}
    return metric.function(*arguments, **seeded, **params)


def _on_samples(
    metric: Metric, train: Sample, test: Sample | None, seed: int, params: dict[str, Any]
) -> Score:
    if metric.kind == "interventions":
        return call(metric, [TableInterventions(train)], seed, params)
    if metric.kind == "sample":
        return call(metric, [train], seed, params)
    return call(metric, [train, test], seed, params)


def _resampled(
    metric: Metric, train: Sample, test: Sample | None, seed: int, params: dict[str, Any], times: int
) -> npt.NDArray[np.float64]:
    if not isinstance(times, int) or times < 2:
        raise ArgumentError("bootstrap", times, "needs a whole number >= 2")
    if params.get("log_variance") is not None:
        raise ArgumentError("bootstrap", times, "cannot resample a log_variance given as a parameter")
    rng = np.random.default_rng([seed, times])

    def again(sample: Sample) -> Sample:
        rows = rng.permutation(len(sample.codes))[: max(2, len(sample.codes) // 2)]
        return Sample(sample.codes[rows], sample.factors[rows])

    values = []
    for _ in range(times):
        judged = None if test is None else again(test)
        values.append(_on_samples(metric, again(train), judged, seed, params).value)
    return np.array(values)
