"""Results tables in which it is known whether a claim is true."""

import itertools

import numpy as np
import pytest

from unweave.study.results import as_table

METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")


@pytest.fixture
def simulate():
    """A table of runs: ``score(run, rng)`` gives {(metric, representation[, labels]): value} of each.

    ``grid`` has for each method its strengths; a run is a dictionary of method, strength, seed and correlation.
    """

    def make(grid, score, seeds=4, correlations=(0.0,), data=("dsprites",), seed=0):
        rng = np.random.default_rng(seed)
        rows = []
        for name, (method, strengths), number, s in itertools.product(
            data, grid.items(), range(seeds), correlations
        ):
            for strength in strengths:
                run = {"data": name, "method": method, "strength": strength, "seed": number, "correlation": s}
                about = {
                    **run,
                    "run": f"{name}-{method}-{strength}-{number}-{s}",
                    "strength_name": "beta",
                    "latent_size": 10,
                    "steps": 1,
                    "settings": "{}",
                    "protocol": "paper",
                    "seconds": 0.0,
                }
                for key, value in score(run, rng).items():
                    metric, representation, *labels = key
                    extra = {"labels": labels[0]} if labels else {}
                    rows.append(
                        {**about, "metric": metric, "representation": representation, "value": value, **extra}
                    )
        return as_table(rows)

    return make


@pytest.fixture
def verdicts():
    """The verdicts of the claims whose text contains all of some words."""

    def find(claims, *words):
        return [claim.verdict for claim in claims if all(word in claim.claim for word in words)]

    return find
