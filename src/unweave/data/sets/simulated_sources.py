"""Independent sources, modulated by segment and mixed: the simulation on which nonlinear ICA is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Gt, Le

from unweave.arrays import ArrayLike, FloatArray, IntArray
from unweave.data.dataset import Dataset
from unweave.data.own.arrays import from_arrays
from unweave.errors import ArgumentError
from unweave.parameters import Count, Natural, NonNegative, Positive, check_arguments, check_value

_CANDIDATES = 1_000  # matrices, of which a well-conditioned one is taken
_WELL_CONDITIONED = 0.25  # the share of matrices that count as such


def simulate_sources(
    num_sources: Count = 5,
    num_segments: Count = 40,
    points_per_segment: Count = 1_000,
    num_layers: Count = 3,
    *,
    num_observed: Count | None = None,
    modulation: Sequence[float] = (0.5, 3.0),
    modulated: Literal["variance", "deviation"] = "variance",
    means: Sequence[float] | None = None,
    noise: NonNegative = 0.0,
    slope: Annotated[float, Gt(0), Le(1)] = 0.2,
    matrices: Literal["uniform", "orthogonal"] = "uniform",
    seed: Natural = 0,
) -> SimulatedSources:
    """Sources that are independent given their segment u, seen through an invertible network.

        s_i | u ~ N(mean_ui, variance_ui),    x = A_L σ(A_(L-1) … σ(A_1 s)) + noise · ε,    ε ~ N(0, I)

    with σ the leaky ReLU. Time-contrastive learning (Hyvärinen, Morioka 2016) and iVAE (Khemakhem et al. 2020)
    are judged on such data. The default sizes are those of iVAE's published configuration. Its code differs in
    three ways: it uses what it draws as a variance for a standard deviation (``modulated="deviation"`` does so,
    too), it repeats one matrix in all layers, and its slope is 0.1 or its σ another function.

    Parameters
    ----------
    num_sources, num_segments, points_per_segment
        d, the number of values of u, and how often each occurs.
    num_layers
        L of the mixing; 1 is linear.
    num_observed
        D, the length of x, at least d, which it is by default.
    modulation, modulated
        the range from which the variance (or standard deviation) of each source in each segment is drawn, uniformly.
    means
        the range for their means, (-5, 5) in iVAE's code; None: all are 0.
    noise
        the standard deviation of what is added to x.
    slope
        of the leaky ReLU below 0: more than 0, where the mixing would have no inverse, and at most 1.
    matrices
        "uniform": entries uniform in [-1, 1], then rows scaled to length 1; one whose condition number is in the
        lowest quarter of 1,000 draws. "orthogonal": uniformly distributed orthogonal matrices;
        the first has orthonormal columns if D > d.
    seed
        of everything. What is drawn for the modulation, the mixing, the sources and the noise does not
        depend on how much is drawn for the others.

    Returns
    -------
    SimulatedSources

    Examples
    --------
    >>> simulated = uw.data.simulate_sources(num_sources=2, num_segments=3, points_per_segment=100)
    >>> simulated.observations.shape, simulated.variances.shape
    ((300, 2), (3, 2))
    >>> simulated.dataset
    Dataset(simulated_sources: 300 of 2; segment=3)
    """
    given = check_arguments(simulate_sources, dict(locals()))
    num_sources, num_segments, points_per_segment, num_layers, seed = (
        given[name] for name in ("num_sources", "num_segments", "points_per_segment", "num_layers", "seed")
    )
    observed = num_sources if num_observed is None else given["num_observed"]
    if observed < num_sources:
        raise ArgumentError("num_observed", observed, f"needs at least the {num_sources} of num_sources")
    scale_range = _check_range("modulation", modulation, Positive)
    mean_range = None if means is None else _check_range("means", means, float)

    for_segments, for_mixing, for_sources, for_noise = (
        np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(4)
    )
    by_segment = (num_segments, num_sources)
    drawn = for_segments.uniform(*scale_range, by_segment)
    deviations = np.sqrt(drawn) if modulated == "variance" else drawn
    centres = np.zeros(by_segment) if mean_range is None else for_segments.uniform(*mean_range, by_segment)
    segments = np.repeat(np.arange(num_segments), points_per_segment)
    unit = for_sources.standard_normal((len(segments), num_sources))
    sources = centres[segments] + deviations[segments] * unit
    widths = [num_sources] + [observed] * num_layers
    mixing = Mixing(
        tuple(_matrix(matrices, widths[i + 1], widths[i], for_mixing) for i in range(num_layers)),
        float(slope),
    )
    clean = mixing.forward(sources)
    observations = clean + noise * for_noise.standard_normal(clean.shape) if noise else clean
    return SimulatedSources(observations, sources, segments, centres, deviations**2, mixing)


@dataclass(frozen=True, eq=False)
class SimulatedSources:
    """What was drawn, n = num_segments * points_per_segment points, segment after segment.

    Parameters
    ----------
    observations, sources, segments
        x (n, D), s (n, d) and u (n,), 0 .. num_segments - 1.
    means, variances
        of each source in each segment, (num_segments, d), as drawn: not those of the sample.
    mixing
        the function from sources to observations, without noise, and its inverse.

    Examples
    --------
    >>> simulated = uw.data.simulate_sources(2, 3, 100)
    >>> bool(np.allclose(simulated.mixing.forward(simulated.sources), simulated.observations))
    True
    """

    observations: FloatArray
    sources: FloatArray
    segments: IntArray
    means: FloatArray
    variances: FloatArray
    mixing: Mixing

    @cached_property
    def dataset(self) -> Dataset:
        """For training: row i is x_i, a float32 vector, and its one factor the segment, without an order.

        The sources are no factors of it: they are what a method has to recover.
        """
        return from_arrays(
            self.observations, {"segment": self.segments}, categorical=["segment"], name="simulated_sources"
        )


@dataclass(frozen=True, eq=False)
class Mixing:
    """x = A_L σ(A_(L-1) … σ(A_1 s)): matrices A_1 .. A_L, and the leaky ReLU σ of a ``slope`` > 0.

    Examples
    --------
    >>> mixing = uw.data.Mixing((np.array([[1.0, 1.0], [0.0, 1.0]]), np.eye(2)), slope=0.5)
    >>> mixing.forward([[1.0, -2.0]])
    array([[-0.5, -1. ]])
    >>> mixing.inverse([[-0.5, -1.0]])
    array([[ 1., -2.]])
    """

    matrices: tuple[FloatArray, ...]
    slope: float

    def forward(self, sources: ArrayLike) -> FloatArray:
        """Observations (n, D) of sources (n, d)."""
        values = np.asarray(sources, np.float64)
        for layer, matrix in enumerate(self.matrices):
            if layer:
                values = np.where(values < 0, self.slope * values, values)
            values = values @ matrix.T
        return values

    def inverse(self, observations: ArrayLike) -> FloatArray:
        """The sources (n, d) of observations (n, D) without noise; of others, least squares in the first layer."""
        values = np.asarray(observations, np.float64)
        for layer, matrix in reversed(list(enumerate(self.matrices))):
            values = values @ np.linalg.pinv(matrix).T
            if layer:
                values = np.where(values < 0, values / self.slope, values)
        return values


def _matrix(kind: str, rows: int, columns: int, rng: np.random.Generator) -> FloatArray:
    if kind == "orthogonal":
        q, r = np.linalg.qr(rng.standard_normal((rows, columns)))
        return np.asarray(q * np.sign(np.diag(r)))  # the signs make the distribution uniform
    candidates = rng.uniform(-1, 1, (_CANDIDATES, rows, columns))
    candidates /= np.linalg.norm(candidates, axis=2, keepdims=True)
    conditions = np.linalg.cond(candidates)
    return np.asarray(candidates[np.argmax(conditions <= np.quantile(conditions, _WELL_CONDITIONED))])


def _check_range(name: str, value: Sequence[float], kind: Any) -> tuple[float, float]:
    """A pair (low, high) of numbers of this kind."""
    low, high = check_value(name, value, tuple[kind, kind])
    if low > high:
        raise ArgumentError(name, value, "needs (low, high) with low <= high")
    return low, high
