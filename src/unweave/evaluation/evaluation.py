"""What the metrics of an evaluation are computed from: points, posteriors and interventions, of one table of codes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from unweave.arrays import FloatArray
from unweave.data import FactorSpace
from unweave.data.factors import FactorArray, Rng
from unweave.data.rows import Grid, Rows, Table
from unweave.evaluation.table import RepresentationTable
from unweave.evaluation.unsupervised import unsupervised
from unweave.metrics import METRICS, Sample, Score
from unweave.metrics.intervals import with_interval
from unweave.metrics.sample import check_sample

# What evaluate adds to the metrics on arrays, for VAEs.
SAMPLED, UNSUPERVISED = "gaussian_total_correlation_sampled", "unsupervised"


class Evaluation:
    """The scores of one representation, each on its own; the points that several need are drawn once."""

    def __init__(
        self,
        table: RepresentationTable,
        seed: int,
        num_train: int,
        num_test: int,
        sampled: bool,
        bootstrap: int,
    ) -> None:
        self.table, self.seed, self.sampled, self.bootstrap = table, seed, sampled, bootstrap
        self.sizes = {"train": num_train, "test": num_test}
        self._drawn: dict[str, tuple[Sample, np.ndarray[Any, Any]]] = {}

    def score(
        self, name: str, params: dict[str, Any], on_score: Callable[[str, Score], None] | None
    ) -> Score:
        """The score of a metric, which is also told to ``on_score``."""
        found = self._score(name, params)
        if self.table.labels is not None:
            found = replace(found, params={**found.params, "labels": self.table.labels})
        if on_score is not None:
            on_score(name, found)
        return found

    def _score(self, name: str, params: dict[str, Any]) -> Score:
        if name == UNSUPERVISED:
            return self._unsupervised(params)
        options: Any = {"params": params, "seed": self.seed, "bootstrap": self.bootstrap}
        if name == SAMPLED:
            return METRICS["gaussian_total_correlation"].on_samples(self._sampled(), None, **options)
        metric = METRICS[name]
        if metric.takes == "interventions" and self._has_every_combination():
            return metric.on_interventions(DatasetInterventions(self.table, self.sampled), **options)
        train, posterior = self._points("train")
        if metric.takes == "posterior":
            assert self.table.method is not None
            options["params"] = {"correlation": self.table.method.spec.correlation} | params
            mean, log_variance = np.moveaxis(posterior.astype(np.float64), 1, 0)
            return metric.on_posterior(mean, log_variance, **options)
        if metric.takes_log_variance and self.table.method is not None and not self.sampled:
            options["params"] = {"log_variance": posterior[:, 1].astype(np.float64)} | params
        test = self._points("test")[0] if metric.takes == "split" else None
        return metric.on_samples(train, test, **options)

    def _unsupervised(self, params: dict[str, Any]) -> Score:
        method, data = self.table.method, self.table.data
        assert method is not None

        def again(rng: np.random.Generator) -> Score:
            seed = int(rng.integers(2**32))
            return unsupervised(method, data, rng, seed=seed, labels=self.table.labels, **params)

        own = self._source(UNSUPERVISED)
        found = unsupervised(method, data, own, seed=self.seed, labels=self.table.labels, **params)
        return with_interval(found, again, self.bootstrap, self.seed)

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

    def _has_every_combination(self) -> bool:
        index = self.table.data.index
        return isinstance(index, Grid) or (isinstance(index, Table) and index.complete)

    def _source(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(purpose.encode())])


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

    def codes_of(self, factors: FactorArray, copy: Rows) -> FloatArray:
        """The codes (n, D) of that one of the images of each of the factors (n, K)."""
        index = self.table.data.index
        assert isinstance(index, Table)
        return self.table.codes(index.copy(factors, copy)).astype(np.float64)


def draw_codes(posterior: np.ndarray[Any, Any], table: RepresentationTable, rng: Rng) -> FloatArray:
    """One draw of z (n, D) from each posterior (n, 2, D), with the correlated noise of its method if it has any."""
    n, _, size = posterior.shape
    correlation = table.method.spec.correlation if table.method is not None else 0.0
    noise = rng.standard_normal((n, size))
    if correlation:
        shared = rng.standard_normal((n, 1))
        noise = np.sqrt(1 - correlation) * noise + np.sqrt(correlation) * shared
    z: FloatArray = posterior[:, 0] + np.exp(0.5 * posterior[:, 1].astype(np.float64)) * noise
    return z
