"""Every metric of a trained representation, each image encoded at most once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unweave.data import Dataset, FactorSpace
from unweave.data.factors import FactorArray, Rng
from unweave.data.rows import Grid, Rows, Table
from unweave.errors import ArgumentError, unknown_name
from unweave.methods.vae import LabelMode
from unweave.metrics.interventions import TableInterventions
from unweave.metrics.registry import METRICS, call, check_params, find
from unweave.metrics.score import Codes, Sample, Score, check_sample
from unweave.metrics.table import Representation, RepresentationTable, method_of
from unweave.metrics.unsupervised import unsupervised

Protocol = Literal["paper", "dlib"]

PAPER = (
    "beta_vae",
    "factor_vae",
    "mig",
    "modularity",
    "explicitness",
    "dci",
    "sap",
    "gaussian_total_correlation",
)
# Where the text of the paper and the code of disentanglement_lib differ. All else is common.
PROTOCOLS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "factor_vae": {"prune": "variance"},
        "dci": {"learner": "l1_svm"},
        "gaussian_total_correlation": {"jitter": 1e-5},
        "gaussian_total_correlation_sampled": {"jitter": 1e-5},
    },
    "dlib": {"factor_vae": {"prune": "std"}, "dci": {"learner": "gbt"}},
}
# What evaluate adds to the metrics on arrays, for VAEs.
SAMPLED, UNSUPERVISED = "gaussian_total_correlation_sampled", "unsupervised"


# These ask which factor was held, so that there must be two.
ASK_WHICH = ("beta_vae", "factor_vae", "z_diff", "z_min_variance")


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
    on_score
        called with each name and score as soon as it is there.

    Of a VAE, "rmig" gets the log-variance of q(z|x), and metrics of the posterior the correlation of its noise; a draw
    from the posterior (``codes="sampled"``) is a point, without noise of its own.

    Each metric draws from a random source of its own, made from ``seed`` and its name: a score does not
    depend on which others are computed. The same points serve all metrics on codes and factors.
    """
    chosen = _chosen(metrics, dataset, representation)
    if protocol not in PROTOCOLS:
        raise unknown_name("protocol", protocol, PROTOCOLS)
    settings = {name: dict(PROTOCOLS[protocol].get(name, {})) for name in chosen}
    for name, own in (params or {}).items():
        if name not in chosen:
            raise unknown_name("params", name, chosen)
        settings[name] |= own
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
        evaluation = _Evaluation(table, seed, num_train, num_test, codes == "sampled")
        return {name: evaluation.score(name, settings[name], on_score) for name in chosen}
    finally:
        table.flush()


def check_settings(name: str, params: Mapping[str, Any]) -> None:
    """Refuse a metric that is not known, and parameters that it does not have."""
    if name == UNSUPERVISED:
        for key in params:
            if key != "num_images":
                raise unknown_name(f"parameter of {name}", key, ["num_images"])
    else:
        check_params("gaussian_total_correlation" if name == SAMPLED else name, dict(params))


def applies(name: str, data: Dataset, is_vae: bool) -> bool:
    """Whether a metric makes sense for a data set and a kind of representation."""
    has_factors = bool(data.space) and data.space.discrete and data.finite
    if name == "attribute_classification":
        return has_factors and set(data.space.sizes) == {2}
    if name in (UNSUPERVISED, SAMPLED) or METRICS[name].kind == "posterior":
        return is_vae
    if METRICS[name].continuous:
        return bool(data.space)
    if name in ASK_WHICH:
        return has_factors and sum(size != 1 for size in data.space.sizes) > 1
    return has_factors or not _needs_factors(name)


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

    def codes(self, factors: FactorArray, rng: Rng) -> Codes:
        """The codes (n, D) of images of the factors (n, K)."""
        posterior = self.table.posterior(self.table.data.rows(factors, rng), rng)
        return draw_codes(posterior, self.table, rng) if self.sampled else posterior[:, 0].astype(np.float64)

    def codes_of(self, factors: FactorArray, copy: Rows) -> Codes:
        """The codes (n, D) of that one of the images of each of the factors (n, K)."""
        index = self.table.data.index
        assert isinstance(index, Table)
        return self.table.codes(index.copy(factors, copy)).astype(np.float64)


def draw_codes(posterior: np.ndarray[Any, Any], table: RepresentationTable, rng: Rng) -> Codes:
    """One draw of z (n, D) from each posterior (n, 2, D), with the correlated noise of its method if it has any."""
    n, _, size = posterior.shape
    correlation = table.method.spec.correlation if table.method is not None else 0.0
    noise = rng.standard_normal((n, size))
    if correlation:
        shared = rng.standard_normal((n, 1))
        noise = np.sqrt(1 - correlation) * noise + np.sqrt(correlation) * shared
    z: Codes = posterior[:, 0] + np.exp(0.5 * posterior[:, 1].astype(np.float64)) * noise
    return z


class _Evaluation:
    def __init__(
        self, table: RepresentationTable, seed: int, num_train: int, num_test: int, sampled: bool
    ) -> None:
        self.table, self.seed, self.sampled = table, seed, sampled
        self.sizes = {"train": num_train, "test": num_test}
        self._drawn: dict[str, tuple[Sample, np.ndarray[Any, Any]]] = {}

    def score(
        self, name: str, params: dict[str, Any], on_score: Callable[[str, Score], None] | None
    ) -> Score:
        found = self._score(name, params)
        if self.table.labels is not None:
            found = replace(found, params={**found.params, "labels": self.table.labels})
        if on_score is not None:
            on_score(name, found)
        return found

    def _score(self, name: str, params: dict[str, Any]) -> Score:
        if name == UNSUPERVISED:
            assert self.table.method is not None
            source = self._source(name)
            mode = self.table.labels
            return unsupervised(
                self.table.method, self.table.data, source, seed=self.seed, labels=mode, **params
            )
        if name == SAMPLED:
            return call(find("gaussian_total_correlation"), [self._sampled()], self.seed, params)
        metric = find(name)
        if metric.kind == "interventions":
            return call(metric, [self._interventions()], self.seed, params)
        if metric.kind == "posterior":
            assert self.table.method is not None
            posterior = self._points("train")[1].astype(np.float64)
            own = {"correlation": self.table.method.spec.correlation}
            return call(metric, [posterior[:, 0], posterior[:, 1]], self.seed, own | params)
        train, posterior = self._points("train")
        if name == "rmig" and self.table.method is not None and not self.sampled:
            params = {"log_variance": posterior[:, 1].astype(np.float64)} | params
        arguments = [train] if metric.kind == "sample" else [train, self._points("test")[0]]
        return call(metric, arguments, self.seed, params)

    def _points(self, part: str) -> tuple[Sample, np.ndarray[Any, Any]]:
        """Codes and factors of random images, and their posteriors; drawn once, used by all."""
        if part not in self._drawn:
            rng = self._source(part)
            data = self.table.data
            n = self.sizes[part]
            which = data.sample_rows(n, rng) if data.finite else data.sample_factors(n, rng)
            posterior = self.table.posterior(which, rng)
            factors: Any = np.zeros((n, 1), int)
            if data.space:
                factors = data.factors(which) if data.finite else which
            codes = draw_codes(posterior, self.table, rng) if self.sampled else posterior[:, 0]
            continuous = bool(data.space) and not data.space.discrete
            self._drawn[part] = (check_sample(codes, factors, part, continuous=continuous), posterior)
        return self._drawn[part]

    def _sampled(self) -> Sample:
        """One draw of z from each posterior, as in training."""
        sample, posterior = self._points("train")
        z = draw_codes(posterior, self.table, self._source("sampled"))
        return Sample(z, sample.factors)

    def _interventions(self) -> Any:
        index = self.table.data.index
        if isinstance(index, Grid) or (isinstance(index, Table) and index.complete):
            return DatasetInterventions(self.table, self.sampled)
        return TableInterventions(self._points("train")[0])

    def _source(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])


def _chosen(metrics: str | Sequence[str], data: Dataset, representation: Representation) -> list[str]:
    is_vae = method_of(representation) is not None
    has_factors = bool(data.space) and data.space.discrete and data.finite
    for_vaes = [UNSUPERVISED, SAMPLED]
    if isinstance(metrics, str) and metrics in ("paper", "all"):
        wanted = list(PAPER) if metrics == "paper" else [n for n, m in METRICS.items() if m.kind != "models"]
        wanted += for_vaes
        return [name for name in wanted if applies(name, data, is_vae)]
    named = [metrics] if isinstance(metrics, str) else list(metrics)
    known = [name for name in METRICS if METRICS[name].kind != "models"] + for_vaes
    for name in named:
        if name not in known:
            raise unknown_name("metrics", name, [*known, "paper", "all"])
        if not applies(name, data, is_vae):
            told = "needs a VAE" if has_factors or not _needs_factors(name) else "needs discrete factors"
            told = "needs two discrete factors" if name in ASK_WHICH else told
            raise ArgumentError("metrics", name, f"{told}; this is {data.name} with {representation!r:.60}")
    return list(dict.fromkeys(named))


def _needs_factors(name: str) -> bool:
    without = (
        UNSUPERVISED,
        SAMPLED,
        "gaussian_total_correlation",
        "wasserstein_correlation",
        "code_mutual_information",
    )
    return name not in without and METRICS[name].kind != "posterior"
