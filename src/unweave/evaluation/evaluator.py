"""Every metric of a trained representation, each image encoded at most once."""

from __future__ import annotations

import copy
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from unweave.arrays import AnyArray, FloatArray, IntArray, to_python
from unweave.data import Dataset, FactorSpace
from unweave.data.factors import FactorArray, Rng
from unweave.data.rows import Grid, Table
from unweave.errors import ArgumentError, unknown_name
from unweave.evaluation.model_metrics import MODEL_METRICS, evaluated_metrics, find_metric, metrics_of
from unweave.evaluation.points import (
    MOST_SHARED,
    Points,
    SharedPointsWarning,
    disjoint_points,
    independent_points,
)
from unweave.evaluation.scores import Scores
from unweave.evaluation.table import Representation, RepresentationTable, encoding_method, trained_method
from unweave.evaluation.trained import Trained
from unweave.methods.method import (
    Decodes,
    Encodes,
    GeneratesFromNoise,
    HasCategories,
    HasDensity,
    HasEvidenceBound,
    LabelMode,
    Method,
    Refines,
    Samples,
)
from unweave.metrics.intervals import check_bootstrap, with_interval
from unweave.metrics.interventions.votes import RowInterventions
from unweave.metrics.metric import Metric, Protocol
from unweave.metrics.registry import METRICS, as_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample, check_sample
from unweave.parameters import Seed, check_arguments

CodesOf = Literal["mean", "sampled"]
NumPoints = Annotated[int, Ge(2)]
MetricLike = str | Metric | Callable[..., Score | float]


def evaluate(
    representation: Representation,
    data: Dataset,
    metrics: MetricLike | Sequence[MetricLike] = "paper",
    protocol: Protocol = "paper",
    seed: Seed = 0,
    *,
    num_train: NumPoints = 10_000,
    num_test: NumPoints = 5_000,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    codes: CodesOf = "mean",
    labels: LabelMode | None = None,
    part: str | None = None,
    bootstrap: int = 0,
    on_score: Callable[[str, Score], None] | None = None,
) -> Scores:
    """Score a representation on a data set with many metrics.

    Each metric has a random source of its own, derived from ``seed`` and its name: a score does not depend on which
    others are computed. The same points serve all metrics of codes and factors.

    Parameters
    ----------
    representation
        a run, a method, or any function from images (as the data set gives them) to codes (n, D).
    data
        the data set whose images are encoded.
    metrics
        "paper": those of Locatello et al.; "all": every one that applies; or names, metrics, or functions of codes
        (n, D) and factors (n, K), one or a list.
    protocol
        which to follow where the paper's text and disentanglement_lib's code differ: in settings of metrics, and in the
        points. "paper": no row is used both to learn from and to judge on. "dlib": both are drawn with replacement from
        all rows, so that on small data sets most test points were seen in training; a warning says so.
    seed
        of everything random.
    num_train, num_test
        points for metrics that learn from codes, and for testing what they learned; fewer where there are not so many
        rows. Where factors are known of some rows only, metrics that need them use these rows. Each score's
        ``details["points"]`` says how many of how many rows. Metrics that intervene on the factors of a data set with
        all their combinations draw their votes from all its images, as their papers do: by "paper" those to learn from
        from one part of the rows, those to judge on from the rest.
    params
        parameters of single metrics: {"dci": {"learner": "forest"}}.
    codes
        of a method with a posterior, score the mean of q(z|x) (as the papers do) or one draw from it per image. A draw
        is a point, without noise of its own.
    labels
        where an encoder that takes labels gets them: "given", "predicted" or "unknown", as in
        :class:`RepresentationTable`. Each score's ``params["labels"]`` records it. With "given" the codes were computed
        from the very factors that they are scored against: such scores do not compare with others.
    part
        score a named part of the codes only, such as "c" or "z" of a multi-stage model. None or "all": all of it.
    bootstrap
        how many times to compute each score again, for a 95 % interval in ``details["interval"]``: on random halves of
        the points, as :func:`unweave.metrics.score` does; with other votes, where a metric intervenes on the factors of
        the data set; on other images, for metrics of the model. It is not clipped to the metric's range.
    on_score
        called with each name and score as soon as it is there.

    Returns
    -------
    Scores
        scores by name.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (500, 2))
    >>> data = uw.data.from_arrays(factors.astype(np.float32), factors)
    >>> scores = uw.evaluate(lambda images: images, data, ["mig", "sap"], num_train=300, num_test=200)
    >>> scores["mig"]
    mig = 0.99
    """
    if not isinstance(data, Dataset):
        raise ArgumentError("data", data, "needs a data set: uw.data.load(name) gives one")
    options = to_python({"seed": seed, "num_train": num_train, "num_test": num_test})
    options = check_arguments(evaluate, {**options, "protocol": protocol, "codes": codes})
    bootstrap = check_bootstrap(bootstrap)
    chosen = _chosen(metrics, data, representation)
    settings = {name: metric.settings(protocol) for name, metric in chosen.items()}
    for name, given in (params or {}).items():
        if name not in chosen:
            raise unknown_name("params", name, chosen)
        if not isinstance(given, Mapping):
            raise ArgumentError(f"params: {name}", given, "needs a mapping of parameters")
        settings[name] |= to_python(dict(given))
    for name, metric in chosen.items():
        checked = metric.check_params(settings[name])
        if metric.check is not None:
            metric.check(metric.parameters | checked)
    method = trained_method(representation)
    evaluation: _Evaluation | _ModelEvaluation
    if method is None or isinstance(method, Encodes):
        table = RepresentationTable(representation, data, labels, part)
        if codes == "sampled" and (table.method is None or table.method.noise_correlation is None):
            raise ArgumentError("codes", codes, "needs a method with a posterior to draw from")
        sizes = options["num_train"], options["num_test"]
        evaluation = _Evaluation(table, options["seed"], protocol, sizes, codes == "sampled", bootstrap)
    else:
        asked = {"labels": labels, "part": part, "codes": None if codes == "mean" else codes}
        for name, value in asked.items():
            if value is not None:
                raise ArgumentError(name, value, f"{method.spec.name} gives images no codes")
        method.check_data(data)
        frozen = copy.deepcopy(method).eval().requires_grad_(False)
        evaluation = _ModelEvaluation(frozen, data, options["seed"], bootstrap)
    scores = Scores(protocol=protocol)
    try:
        for name, metric in chosen.items():
            scores[name] = evaluation.score(metric, settings[name])
            if on_score is not None:
                on_score(name, scores[name])
    finally:
        evaluation.flush()
    shared = [score.details.get("points", {}).get("shared", 0.0) for score in scores.values()]
    if max(shared, default=0.0) > MOST_SHARED:
        warnings.warn(
            f"{max(shared):.1%} of the test points are training points too: the protocol dlib draws both from all "
            f'{len(data):,} rows; protocol="paper" keeps them apart',
            SharedPointsWarning,
            stacklevel=2,
        )
    return scores


def metrics_for_arrays(which: str, factors: AnyArray | None, posterior: bool = False) -> list[str]:
    """The metrics of "paper" or "all" that can be computed from plain arrays.

    Parameters
    ----------
    which
        "paper" or "all".
    factors
        (n, K), or None if there are none.
    posterior
        whether there are log-variances next to the codes.

    Examples
    --------
    >>> metrics_for_arrays("all", None)
    ['gaussian_total_correlation', 'wasserstein_correlation', 'code_mutual_information']
    """
    if which not in ("paper", "all"):
        raise unknown_name("metrics", which, ("paper", "all"))
    known = [METRICS[name] for name in metrics_of(which) if name in METRICS]
    return [metric.name for metric in known if not why_not_arrays(metric, factors, posterior)]


def why_not_arrays(metric: Metric, factors: AnyArray | None, posterior: bool = False) -> str:
    """Why a metric cannot be computed from plain arrays, in words; "" if it can.

    Parameters
    ----------
    metric
        the metric.
    factors
        (n, K), or None if there are none.
    posterior
        whether there are log-variances next to the codes.

    Examples
    --------
    >>> why_not_arrays(uw.metrics.mig, np.array([[0.5], [1.5]]))
    'needs discrete factors, and these have values that are not whole numbers'
    """
    if metric.takes in ("models", "method"):
        return "is a metric of models, not of codes"
    if metric.takes == "posterior":
        return "" if posterior else "needs log-variances of a posterior next to the codes"
    if factors is None:
        return "needs factors" if metric.uses_factors else ""
    whole = factors.dtype.kind != "f" or bool((factors == np.floor(factors)).all())
    sizes: list[int | None] = [
        len(np.unique(column)) if whole else None for column in np.atleast_2d(factors.T)
    ]
    if metric.suits(sizes):
        return ""
    if not whole:
        return f"{_NEEDS[metric.factors]}, and these have values that are not whole numbers"
    return f"{_NEEDS[metric.factors]}; these have {', '.join(map(str, sizes))} values"


def applies(metric: Metric, data: Dataset, method: object | None) -> bool:
    """Whether a metric can be computed for a data set and a method; None is a function from images to codes.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> applies(uw.metrics.mig, data, None), applies(uw.metrics.wasserstein_correlation, data, None)
    (False, True)
    """
    if metric.pictures and not _has_pictures(data):
        return False
    if metric.takes == "method":
        return method is not None and not _lacking(metric, method)
    if method is not None and not isinstance(method, Encodes):
        return False
    if metric.takes == "posterior" or metric.name in MODEL_METRICS:
        return isinstance(method, Encodes) and method.noise_correlation is not None
    return metric.suits(_factor_sizes(data))


# What a metric of a method may need, and how a refusal says so.
_CAPABILITIES: dict[str, tuple[type, str]] = {
    "encodes": (Encodes, "gives images codes"),
    "decodes": (Decodes, "turns codes into images"),
    "samples": (Samples, "generates images"),
    "density": (HasDensity, "has a density"),
    "evidence_bound": (HasEvidenceBound, "has an evidence lower bound"),
    "refines": (Refines, "refines the images of a first stage"),
    "categories": (HasCategories, "has codes that are categories"),
    "generates": (GeneratesFromNoise, "generates images of codes and noise"),
}


def _lacking(metric: Metric, method: object) -> list[str]:
    """What a method cannot do that a metric needs."""
    known = [_CAPABILITIES[capability] for capability in metric.capabilities]
    return [words for protocol, words in known if not isinstance(method, protocol)]


def _has_pictures(data: Dataset) -> bool:
    """Whether its images have rows, columns and one or three channels."""
    return len(data.image_shape) == 3 and data.image_shape[2] in (1, 3)


class _ModelEvaluation:
    """The scores of a method itself, whether or not it gives codes."""

    def __init__(
        self,
        method: Method,
        data: Dataset,
        seed: int,
        bootstrap: int,
        labels: LabelMode | None = None,
    ) -> None:
        self.method, self.data, self.labels = method, data, labels
        self.seed, self.bootstrap = seed, bootstrap

    def score(self, metric: Metric, params: dict[str, Any]) -> Score:
        """The score of a metric with its settings; intervals are from other images."""

        def compute(rng: Rng, seed: int) -> Score:
            trained = Trained(self.method, self.data, self.labels, rng)
            return metric.compute(trained, seed=seed, **params)

        score = compute(_source(self.seed, metric.name), self.seed)
        return with_interval(
            score, lambda rng: compute(rng, int(rng.integers(2**32))), self.bootstrap, self.seed
        )

    def flush(self) -> None:
        """There is nothing to keep."""


class _Evaluation:
    """The scores of one representation, each by itself; the points that several need are drawn once."""

    def __init__(
        self,
        table: RepresentationTable,
        seed: int,
        protocol: Protocol,
        sizes: tuple[int, int],
        sampled: bool,
        bootstrap: int,
    ) -> None:
        self.table, self.seed, self.sampled, self.bootstrap = table, seed, sampled, bootstrap
        self.protocol, self.sizes = protocol, sizes
        self._sources: dict[str, Rng] = {}
        self._encoded: dict[str, tuple[Sample, AnyArray]] = {}

    @cached_property
    def points(self) -> Points:
        """Which rows are for learning and which for judging, drawn once."""
        return self._draw_points(labelled=False)

    @cached_property
    def labelled_points(self) -> Points:
        """Those of metrics that need factors: the same, or rows that have all factors, where not all do."""
        return self._draw_points(labelled=True) if self.table.data.partly_labelled else self.points

    def _draw_points(self, labelled: bool) -> Points:
        data, sizes = self.table.data, self.sizes
        if self.protocol == "paper" and data.finite:
            return disjoint_points(data, *sizes, self._source("rows"), labelled=labelled)
        sources = [self._kept_source(_named(part, labelled)) for part in ("train", "test")]
        return independent_points(data, *sizes, *sources, labelled=labelled)

    def score(self, metric: Metric, params: dict[str, Any]) -> Score:
        """The score of a metric with its settings."""
        score = self._compute(metric, params)
        labels = {} if self.table.labels is None else {"labels": self.table.labels}
        return replace(score, params={**score.params, "protocol": self.protocol, **labels})

    def _compute(self, metric: Metric, params: dict[str, Any]) -> Score:
        options: Any = {"params": params, "seed": self.seed, "bootstrap": self.bootstrap}
        if metric.takes == "method":
            return self._of_method(metric, params)
        if metric.name in MODEL_METRICS:
            return self._with_points(
                metric, metric.on_samples(self._sampled_points(metric), None, **options), False
            )
        honest = self.protocol == "paper"
        if metric.takes == "interventions" and self._has_every_combination():
            if honest:
                return self._of_votes(metric, options)
            return metric.on_interventions(DatasetInterventions(self.table, self.sampled), **options)
        split = metric.takes == "split" and (honest or not metric.in_sample)
        split = split or (metric.takes == "interventions" and honest)
        train, posterior = self._points_of(metric, "train" if split else "every")
        if metric.takes == "posterior":
            assert self.table.method is not None
            options["params"] = {"correlation": self.table.method.noise_correlation} | params
            mean, log_variance = np.moveaxis(posterior.astype(np.float64), 1, 0)
            return self._with_points(metric, metric.on_posterior(mean, log_variance, **options), split)
        if metric.takes_log_variance and self.table.has_noise and not self.sampled:
            options["params"] = {"log_variance": posterior[:, 1].astype(np.float64)} | params
        if "categorical" in metric.parameters and self.table.data.space:
            space = self.table.data.space
            ordered = [space.is_ordered(name) for name in space.names]
            options["params"] = {"categorical": [not order for order in ordered]} | dict(options["params"])
        test = self._points_of(metric, "test")[0] if split else None
        return self._with_points(metric, metric.on_samples(train, test, **options), split)

    def _of_votes(self, metric: Metric, options: Any) -> Score:
        """The score of a metric that intervenes on a data set with every combination, judged on other rows."""
        drawn = self.labelled_points
        learning, judging = drawn.learning, drawn.judging
        assert learning is not None
        assert judging is not None
        source = self._row_interventions(learning, self._row_interventions(judging))
        if len(source.varying) < 2:
            given = f"{len(judging):,} of {len(self.table.data):,} rows to judge on"
            reason = f"{metric.name} needs two factors of which several values occur, one of them twice"
            raise ArgumentError("data", given, reason)
        score = metric.on_interventions(source, **options)
        points = {"train": len(learning), "test": len(judging), "rows": len(self.table.data)}
        points |= {} if drawn.labelled is None else {"labelled": drawn.labelled}
        return replace(score, details={**score.details, "points": points})

    def _row_interventions(self, rows: IntArray, test: RowInterventions | None = None) -> RowInterventions:
        """Some rows of the data set as what votes are drawn from; only those that are drawn are encoded."""

        def codes_of(positions: IntArray, rng: Any) -> FloatArray:
            posterior = self.table.posterior(rows[positions], rng)
            codes = draw_codes(posterior, self.table, rng) if self.sampled else posterior[:, 0]
            return codes.astype(np.float64)

        return RowInterventions(self.table.data.factors(rows).astype(np.int64), codes_of, test)

    def _with_points(self, metric: Metric, score: Score, split: bool) -> Score:
        """The score with the numbers of points that it is of."""
        points = self.labelled_points if metric.uses_factors else self.points
        return replace(score, details={**score.details, "points": points.counts(split)})

    def _of_method(self, metric: Metric, params: dict[str, Any]) -> Score:
        table = self.table
        assert table.method is not None
        model = _ModelEvaluation(table.method, table.data, self.seed, self.bootstrap, table.labels)
        return model.score(metric, params)

    def flush(self) -> None:
        """Keep the codes that were computed, where the table is on disk."""
        self.table.flush()

    def _points_of(self, metric: Metric, part: str) -> tuple[Sample, AnyArray]:
        """Codes and factors of random images, and their posteriors; encoded once, used by all metrics of them."""
        data = self.table.data
        labelled = metric.uses_factors and data.partly_labelled
        points = self.labelled_points if labelled else self.points
        which = {"train": points.train, "test": points.test, "every": points.every}[part]
        if part == "every" and np.array_equal(which, points.train):
            part = "train"
        name = _named(part, labelled)
        if name not in self._encoded:
            rng = self._kept_source(name)
            posterior = self.table.posterior(which, rng)
            factors: Any = np.zeros((len(which), 1), int)
            if data.space and (labelled or not data.partly_labelled):
                factors = data.factors(which) if data.finite else which
            codes = draw_codes(posterior, self.table, rng) if self.sampled else posterior[:, 0]
            continuous = bool(data.space) and not data.space.discrete
            self._encoded[name] = (check_sample(codes, factors, part, continuous=continuous), posterior)
        return self._encoded[name]

    def _sampled_points(self, metric: Metric) -> Sample:
        """One draw of z from each posterior, as in training."""
        sample, posterior = self._points_of(metric, "every")
        return Sample(draw_codes(posterior, self.table, self._source("sampled")), sample.factors)

    def _has_every_combination(self) -> bool:
        index = self.table.data.index
        return isinstance(index, Grid) or (isinstance(index, Table) and index.complete)

    def _source(self, purpose: str) -> Rng:
        return _source(self.seed, purpose)

    def _kept_source(self, purpose: str) -> Rng:
        """One source for all that is drawn for a purpose, in turn."""
        return self._sources.setdefault(purpose, self._source(purpose))


def _named(part: str, labelled: bool) -> str:
    return f"labelled {part}" if labelled else part


def _source(seed: int, purpose: str) -> Rng:
    """A random source of its own for each purpose."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


class DatasetInterventions:
    """The codes of a data set's images as a representation that can be asked for chosen factors."""

    def __init__(self, table: RepresentationTable, sampled: bool = False) -> None:
        self.table, self.sampled = table, sampled
        self.space: FactorSpace = table.data.space

    @property
    def copies(self) -> int:
        """How many images show each combination of factors, if nothing else is random about a code; else 1."""
        index = self.table.data.index
        if self.sampled or self.table.data.stochastic or not isinstance(index, Table):
            return 1
        return index.copies or 1

    def codes(self, factors: FactorArray, rng: Rng) -> FloatArray:
        """The codes (n, D) of images of the factors (n, K)."""
        posterior = self.table.posterior(self.table.data.rows(factors, rng), rng)
        return draw_codes(posterior, self.table, rng) if self.sampled else posterior[:, 0].astype(np.float64)

    def codes_of(self, factors: FactorArray, copy: IntArray) -> FloatArray:
        """The codes (n, D) of that one of the images of each of the factors (n, K)."""
        index = self.table.data.index
        assert isinstance(index, Table)
        return self.table.codes(index.copy(factors, copy)).astype(np.float64)


def draw_codes(posterior: AnyArray, table: RepresentationTable, rng: Rng) -> FloatArray:
    """One draw of z (n, D) from each posterior (n, 2, D), with the correlated noise of its method if it has any."""
    n, _, size = posterior.shape
    correlation = (table.method.noise_correlation or 0.0) if table.method is not None else 0.0
    noise = rng.standard_normal((n, size))
    if correlation:
        shared = rng.standard_normal((n, 1))
        noise = np.sqrt(1 - correlation) * noise + np.sqrt(correlation) * shared
    z: FloatArray = posterior[:, 0] + np.exp(0.5 * posterior[:, 1].astype(np.float64)) * noise
    return z


def _chosen(
    metrics: MetricLike | Sequence[MetricLike], data: Dataset, representation: Representation
) -> dict[str, Metric]:
    """The metrics by name, each refused if it cannot be computed here; of a set, those that can be."""
    method = trained_method(representation)
    if isinstance(metrics, str) and metrics in ("paper", "all"):
        encoding_method(representation)  # a method that gives no codes has few metrics: they have to be named
        return {
            name: find_metric(name)
            for name in metrics_of(metrics)
            if applies(find_metric(name), data, method)
        }
    asked = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    if not isinstance(asked, Sequence):
        raise ArgumentError("metrics", metrics, "needs 'paper', 'all', or names of metrics")
    chosen: dict[str, Metric] = {}
    for one in asked:
        metric = find_metric(one) if isinstance(one, str) else as_metric(one)
        if metric.takes == "models":
            raise unknown_name("metrics", metric.name, [*evaluated_metrics(), "paper", "all"])
        if not applies(metric, data, method):
            raise ArgumentError("metrics", metric.name, _refusal(metric, data, representation))
        if chosen.setdefault(metric.name, metric) is not metric:
            raise ArgumentError("metrics", metric.name, "is the name of two of them: name functions apart")
    return chosen


def _refusal(metric: Metric, data: Dataset, representation: Representation) -> str:
    """Why a metric cannot be computed here."""
    method = trained_method(representation)
    if metric.pictures and not _has_pictures(data):
        return f"needs pictures (H, W, C) of 1 or 3 channels; {data.name} has {tuple(data.image_shape)}"
    if metric.takes == "method" and method is not None:
        return f"needs a method that {' and '.join(_lacking(metric, method))}; {method.spec.name} does not"
    if metric.takes == "method":
        return "needs a method: it is a metric of a model, not of codes"
    encoding_method(representation)
    return f"{_NEEDS[metric.factors]}; this is {data.name} with {representation!r:.60}"


_NEEDS = {
    "none": "needs a method with a posterior",
    "any": "needs factors",
    "discrete": "needs discrete factors",
    "two": "needs two discrete factors",
    "binary": "needs factors of two values",
}


def _factor_sizes(data: Dataset) -> Sequence[int | None]:
    """The number of values of each factor; None for one that cannot be counted."""
    discrete = bool(data.space) and data.space.discrete and data.finite
    return data.space.grid_shape if discrete else [None] * data.space.num_factors
