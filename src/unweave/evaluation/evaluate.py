"""Every metric of a trained representation, each image encoded at most once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unweave.arrays import to_python
from unweave.data import Dataset
from unweave.errors import ArgumentError, unknown_name
from unweave.evaluation.evaluation import SAMPLED as SAMPLED
from unweave.evaluation.evaluation import UNSUPERVISED as UNSUPERVISED
from unweave.evaluation.evaluation import Evaluation
from unweave.evaluation.table import Representation, RepresentationTable, method_of
from unweave.evaluation.unsupervised import unsupervised
from unweave.methods import LabelMode
from unweave.metrics import METRICS, Metric, Score
from unweave.metrics.intervals import check_bootstrap
from unweave.metrics.metric import PROTOCOLS
from unweave.parameters import Seed, check_arguments, check_value

Protocol = Literal["paper", "dlib"]

# What evaluate adds has a parameter and the protocols of the metric that it is.
_SAMPLED_OF = "gaussian_total_correlation"


def evaluate(
    representation: Representation,
    dataset: Dataset,
    metrics: str | Sequence[str] = "paper",
    protocol: Protocol = "paper",
    seed: int = 0,
    *,
    num_train: int = 10_000,
    num_test: int = 5_000,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    codes: Literal["mean", "sampled"] = "mean",
    labels: LabelMode | None = None,
    bootstrap: int = 0,
    on_score: Callable[[str, Score], None] | None = None,
) -> dict[str, Score]:
    """Score a representation on a data set with many metrics.

    Parameters
    ----------
    representation
        a run, a method, or any function from images (as the data set gives them) to codes (n, D).
    metrics
        "paper": those of Locatello et al.; "all": every one that applies; or a list of names.
    protocol
        where the paper's text and disentanglement_lib's code differ, which to follow.
    num_train, num_test
        points for metrics that learn from codes, and for their judgement.
    params
        parameters of single metrics: {"dci": {"learner": "forest"}}.
    codes
        of a VAE, score the mean of q(z|x) (as the papers do) or one draw from it per image.
    labels
        how an encoder that takes labels comes by them: "given", "predicted" or "unknown", as
        :class:`RepresentationTable` has it. Each score's ``params["labels"]`` says which it was. With "given" the
        codes were made from the very factors that they are scored against: such scores do not compare with others.
    bootstrap
        how many times to compute each score again, for a 95 % interval in ``details["interval"]``: on random halves of
        the points, as :func:`score` does; with other votes, where a metric intervenes on the factors of the data
        set; on other images, for "unsupervised". It is not clipped to the metric's range.
    on_score
        called with each name and score as soon as it is there.

    Of a VAE, "rmig" gets the log-variance of q(z|x), and metrics of the posterior the correlation of its noise; a draw
    from the posterior (``codes="sampled"``) is a point, without noise of its own.

    Each metric draws from a random source of its own, made from ``seed`` and its name: a score does not
    depend on which others are computed. The same points serve all metrics on codes and factors.
    """
    seed, num_train, num_test = to_python((seed, num_train, num_test))
    chosen = _chosen(metrics, dataset, representation)
    seed, bootstrap = check_value("seed", seed, Seed), check_bootstrap(bootstrap)
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    settings = {name: {} if name == UNSUPERVISED else _metric(name).settings(protocol) for name in chosen}
    for name, own in (params or {}).items():
        if name not in chosen:
            raise unknown_name("params", name, chosen)
        settings[name] |= to_python(own)
    for name in chosen:
        check_settings(name, settings[name])
    for name, value in (("num_train", num_train), ("num_test", num_test)):
        if not isinstance(value, int) or value < 2:
            raise ArgumentError(name, value, "needs a whole number >= 2")
    if codes not in ("mean", "sampled"):
        raise unknown_name("codes", codes, ("mean", "sampled"))
    table = RepresentationTable(representation, dataset, labels)
    if codes == "sampled" and table.method is None:
        raise ArgumentError(
            "codes", codes, "needs a VAE: another representation has no posterior to draw from"
        )
    try:
        evaluation = Evaluation(table, seed, num_train, num_test, codes == "sampled", bootstrap)
        return {name: evaluation.score(name, settings[name], on_score) for name in chosen}
    finally:
        table.flush()


def for_arrays(which: str, factors: npt.NDArray[Any] | None, posterior: bool = False) -> list[str]:
    """The metrics of "paper" or "all" that plain arrays allow.

    ``factors`` (n, K), if there are any; ``posterior``: whether there are log-variances next to the codes.
    """
    if which not in ("paper", "all"):
        raise unknown_name("metrics", which, ("paper", "all"))
    sizes: list[int | None] = []
    if factors is not None:
        discrete = factors.dtype.kind != "f" or bool((factors == np.floor(factors)).all())
        sizes = [len(np.unique(column)) if discrete else None for column in np.atleast_2d(factors.T)]

    def fits(metric: Metric) -> bool:
        if metric.takes in ("models", "posterior"):
            return metric.takes == "posterior" and posterior
        return metric.suits(sizes)

    return [name for name, metric in METRICS.items() if fits(metric) and (which == "all" or metric.paper)]


def check_settings(name: str, params: Mapping[str, Any]) -> None:
    """Refuse a metric that is not known, and parameters that it does not have."""
    if name == UNSUPERVISED:
        for key in params:
            if key != "num_images":
                raise unknown_name(f"parameter of {name}", key, ["num_images"])
        check_arguments(unsupervised, params)
    else:
        _metric(name).check_params(params)


def applies(name: str, data: Dataset, is_vae: bool) -> bool:
    """Whether a metric makes sense for a data set and a kind of representation."""
    if name in (UNSUPERVISED, SAMPLED) or METRICS[name].takes == "posterior":
        return is_vae
    discrete = bool(data.space) and data.space.discrete and data.finite
    return METRICS[name].suits(data.space.grid_shape if discrete else [None] * data.space.num_factors)


def _chosen(metrics: str | Sequence[str], data: Dataset, representation: Representation) -> list[str]:
    is_vae = method_of(representation) is not None
    has_factors = bool(data.space) and data.space.discrete and data.finite
    known = [name for name, metric in METRICS.items() if metric.takes != "models"]
    for_vaes = [UNSUPERVISED, SAMPLED]
    if isinstance(metrics, str) and metrics in ("paper", "all"):
        wanted = [name for name in known if metrics == "all" or METRICS[name].paper] + for_vaes
        return [name for name in wanted if applies(name, data, is_vae)]
    named = [metrics] if isinstance(metrics, str) else list(metrics)
    for name in named:
        if name not in (*known, *for_vaes):
            raise unknown_name("metrics", name, [*known, *for_vaes, "paper", "all"])
        if not applies(name, data, is_vae):
            factors = "none" if name in for_vaes else METRICS[name].factors
            needs = "needs a VAE" if has_factors or factors == "none" else "needs discrete factors"
            needs = "needs two discrete factors" if factors == "two" else needs
            raise ArgumentError("metrics", name, f"{needs}; this is {data.name} with {representation!r:.60}")
    return list(dict.fromkeys(named))


def _metric(name: str) -> Metric:
    return METRICS[_SAMPLED_OF if name == SAMPLED else name]
