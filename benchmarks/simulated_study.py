"""A results table of the size of the full study, from a seeded generator: 12,600 runs, all metrics.

The numbers follow a simple story, so that an analysis has something to find: a run has a quality (of its data set,
method, strength, and mostly of its seed), which the disentanglement metrics report with different noise; the total
correlation of the sampled codes falls with the strength, that of the mean codes does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.study.results import COLUMNS

DATA = (
    "dsprites", "color_dsprites", "noisy_dsprites", "scream_dsprites", "small_norb", "cars3d", "shapes3d",
)  # fmt: skip
STRENGTHS: dict[str, tuple[str, tuple[float, ...]]] = {
    "beta_vae": ("beta", (1, 2, 4, 6, 8, 16)),
    "factor_vae": ("gamma", (10, 20, 30, 40, 50, 100)),
    "dip_vae_i": ("lambda_od", (1, 2, 5, 10, 20, 50)),
    "dip_vae_ii": ("lambda_od", (1, 2, 5, 10, 20, 50)),
    "beta_tcvae": ("beta", (1, 2, 4, 6, 8, 10)),
    "annealed_vae": ("c_max", (5, 10, 25, 50, 75, 100)),
}
# How much of a metric is the run's quality, its noise, offset and range.
METRICS = {
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
SIZES = (10, 100, 1000, 10_000)


def simulate(
    data: Sequence[str] = DATA,
    methods: Sequence[str] = tuple(STRENGTHS),
    seeds: int = 50,
    correlations: Sequence[float] = (0.0,),
    strengths: int = 6,
    seed: int = 0,
    protocol: str = "dlib",
) -> pd.DataFrame:
    """A results table of ``data`` x ``methods`` x ``strengths`` x ``correlations`` x ``seeds``."""
    rng = np.random.default_rng(seed)
    grid = [
        (name, method, STRENGTHS[method][0], float(strength), place, correlation, number)
        for name in data
        for method in methods
        for place, strength in enumerate(STRENGTHS[method][1][:strengths])
        for correlation in correlations
        for number in range(seeds)
    ]
    runs = pd.DataFrame(
        grid, columns=["data", "method", "strength_name", "strength", "place", "correlation", "seed"]
    )
    runs["run"] = [hashlib.sha256(repr(row).encode()).hexdigest()[:16] for row in grid]
    n, place = len(runs), runs["place"].to_numpy() / 5
    quality = rng.normal(0, 0.8, n) + 0.5 * _effect(runs["data"], rng) + 0.3 * _effect(runs["method"], rng)
    quality += (
        0.5 * _effect(runs["data"] + runs["method"], rng) * place - 1.2 * runs["correlation"].to_numpy()
    )
    scores: dict[tuple[str, str], np.ndarray] = {}
    for representation, blur in (("mean", 0.0), ("sampled", 0.3)):
        for metric, (share, noise, offset, width) in METRICS.items():
            raw = share * quality + np.hypot(noise, blur) * rng.normal(size=n)
            scores[metric, representation] = np.clip(offset + width * raw, 0, 1)
    for learner in ("downstream_logistic", "downstream_gbt"):
        full = scores[learner, "mean"]
        for size, part in zip(SIZES, (0.45, 0.75, 0.92, 1.0), strict=True):
            scores[f"{learner}.{size}", "mean"] = full * np.clip(
                part + rng.normal(0, 0.02, n) * (part < 1), 0, 1
            )
        small, large = scores[f"{learner}.100", "mean"], scores[f"{learner}.10000", "mean"]
        scores[f"{learner}.efficiency", "mean"] = small / np.maximum(large, 1e-9)
    spread = rng.lognormal(0, 0.4, n)
    scores["gaussian_total_correlation", "sampled"] = 2.0 * np.exp(-2 * place) * spread
    scores["gaussian_total_correlation", "mean"] = (
        1.5 * np.exp(0.6 * place) * spread * rng.lognormal(0, 0.5, n)
    )
    reconstruction = 60 + 40 * place + 10 * rng.normal(size=n) + 20 * _effect(runs["data"], rng)
    kl = 25 - 12 * place + rng.normal(0, 2, n)
    scores["unsupervised.reconstruction", "sampled"], scores["unsupervised.kl", "sampled"] = (
        reconstruction,
        kl,
    )
    scores["unsupervised.elbo", "sampled"] = scores["unsupervised", "sampled"] = -reconstruction - kl
    scores["unsupervised.l1", "mean"], scores["unsupervised.l2", "mean"] = reconstruction, reconstruction / 2
    runs = runs.assign(latent_size=10, steps=300_000, settings="{}", labels="", protocol=protocol)
    tables = [
        runs.assign(metric=metric, representation=representation, value=values, seconds=rng.gamma(2, 2, n))
        for (metric, representation), values in scores.items()
    ]
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)].astype(COLUMNS)


def _effect(groups: pd.Series, rng: np.random.Generator) -> np.ndarray:
    codes, names = pd.factorize(groups)
    return rng.normal(size=len(names))[codes]
