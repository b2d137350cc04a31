"""A simulated results table, to try analyses and figures without a study."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.arrays import FloatArray
from unweave.parameters import Correlation, Count, Seed
from unweave.study.results import ABSENT, COLUMNS

_DATA = (
    "dsprites", "color_dsprites", "noisy_dsprites", "scream_dsprites", "small_norb", "cars3d", "shapes3d",
)  # fmt: skip
_STRENGTHS: dict[str, tuple[str, tuple[float, ...]]] = {
    "beta_vae": ("beta", (1, 2, 4, 6, 8, 16)),
    "factor_vae": ("gamma", (10, 20, 30, 40, 50, 100)),
    "dip_vae_i": ("lambda_od", (1, 2, 5, 10, 20, 50)),
    "dip_vae_ii": ("lambda_od", (1, 2, 5, 10, 20, 50)),
    "beta_tcvae": ("beta", (1, 2, 4, 6, 8, 10)),
    "annealed_vae": ("c_max", (5, 10, 25, 50, 75, 100)),
}
# How much of a metric is the run's quality, its noise, offset and range.
_METRICS = {
    "beta_vae": (0.9, 0.2, 0.6, 0.35),
    "factor_vae": (0.9, 0.3, 0.45, 0.3),
    "mig": (0.8, 0.4, 0.1, 0.12),
    "dci": (0.5, 0.6, 0.2, 0.12),
    "dci.completeness": (0.5, 0.6, 0.25, 0.12),
    "dci.informativeness_test": (0.6, 0.5, 0.6, 0.15),
    "modularity": (0.1, 1.0, 0.8, 0.08),
    "explicitness": (0.6, 0.4, 0.75, 0.08),
    "sap": (0.5, 0.6, 0.05, 0.04),
    "z_diff": (0.9, 0.2, 0.7, 0.2),
    "udr": (0.7, 0.5, 0.3, 0.15),
    "downstream_logistic": (0.6, 0.5, 0.4, 0.15),
    "downstream_gbt": (0.6, 0.5, 0.5, 0.15),
}
_SIZES = (10, 100, 1000, 10_000)


def simulate_results(
    data: Sequence[str] = _DATA,
    methods: Sequence[str] = tuple(_STRENGTHS),
    seeds: Count = 50,
    correlations: Sequence[Correlation] = (0.0,),
    strengths: Count = 6,
    seed: Seed = 0,
    protocol: str = "dlib",
) -> pd.DataFrame:
    """A results table of random scores, by default of the size of the study of Locatello et al.: 12,600 runs.

    The numbers follow a simple story, so that an analysis has something to show: a run has a quality (of its data set,
    method, strength, and mostly of its seed), which the disentanglement metrics report with different noise; the total
    correlation of the sampled codes falls with the strength, that of the mean codes does not; correlated noise costs
    quality.

    Parameters
    ----------
    data, methods, correlations
        the grid. A data set may have any name, a method is one of the six of Locatello et al.
    seeds, strengths
        how many runs per setting; how many of the paper's six strengths per method.
    seed
        of the random numbers.
    protocol
        the value of that column.

    Returns
    -------
    a table with the columns of :func:`unweave.study.load_results`.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> table = simulate_results(data=["dsprites", "cars3d"], methods=["beta_vae"], seeds=3, strengths=2)
    >>> table["run"].nunique()
    12
    >>> table.query("metric == 'mig' and representation == 'mean'")[["data", "strength", "seed", "value"]].head(2)
           data  strength  seed  value
    ...
    """
    rng = np.random.default_rng(seed)
    grid = [
        (name, method, _STRENGTHS[method][0], float(strength), index, correlation, number)
        for name in data
        for method in methods
        for index, strength in enumerate(_STRENGTHS[method][1][:strengths])
        for correlation in correlations
        for number in range(seeds)
    ]
    runs = pd.DataFrame(
        grid, columns=["data", "method", "strength_name", "strength", "index", "correlation", "seed"]
    )
    runs["run"] = [hashlib.sha256(repr(row).encode()).hexdigest()[:16] for row in grid]
    n, step = len(runs), runs["index"].to_numpy() / 5
    quality = rng.normal(0, 0.8, n) + 0.5 * _effect(runs["data"], rng) + 0.3 * _effect(runs["method"], rng)
    quality += 0.5 * _effect(runs["data"] + runs["method"], rng) * step - 1.2 * runs["correlation"].to_numpy()
    scores: dict[tuple[str, str], FloatArray] = {}
    for representation, blur in (("mean", 0.0), ("sampled", 0.3)):
        for metric, (share, noise, offset, width) in _METRICS.items():
            raw = share * quality + np.hypot(noise, blur) * rng.normal(size=n)
            scores[metric, representation] = np.clip(offset + width * raw, 0, 1)
    for learner in ("downstream_logistic", "downstream_gbt"):
        full = scores[learner, "mean"]
        for size, part in zip(_SIZES, (0.45, 0.75, 0.92, 1.0), strict=True):
            scores[f"{learner}.{size}", "mean"] = full * np.clip(
                part + rng.normal(0, 0.02, n) * (part < 1), 0, 1
            )
        small, large = scores[f"{learner}.100", "mean"], scores[f"{learner}.10000", "mean"]
        scores[f"{learner}.efficiency", "mean"] = small / np.maximum(large, 1e-9)
    spread = rng.lognormal(0, 0.4, n)
    scores["gaussian_total_correlation", "sampled"] = 2.0 * np.exp(-2 * step) * spread
    scores["gaussian_total_correlation", "mean"] = (
        1.5 * np.exp(0.6 * step) * spread * rng.lognormal(0, 0.5, n)
    )
    reconstruction = 60 + 40 * step + 10 * rng.normal(size=n) + 20 * _effect(runs["data"], rng)
    kl = 25 - 12 * step + rng.normal(0, 2, n)
    scores["unsupervised.reconstruction", "sampled"], scores["unsupervised.kl", "sampled"] = (
        reconstruction,
        kl,
    )
    scores["unsupervised.elbo", "sampled"] = scores["unsupervised", "sampled"] = -reconstruction - kl
    scores["unsupervised.l1", "mean"], scores["unsupervised.l2", "mean"] = reconstruction, reconstruction / 2
    runs = runs.assign(latent_size=10, steps=300_000, settings="{}", protocol=protocol, **ABSENT)
    tables = [
        runs.assign(metric=metric, representation=representation, value=values, seconds=rng.gamma(2, 2, n))
        for (metric, representation), values in scores.items()
    ]
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)].astype(COLUMNS)


def _effect(groups: pd.Series, rng: np.random.Generator) -> FloatArray:
    """A random number per group, for each of its runs."""
    codes, names = pd.factorize(groups)
    return rng.normal(size=len(names))[codes]
