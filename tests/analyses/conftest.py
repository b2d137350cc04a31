"""Results tables made by hand."""

import itertools

import numpy as np
import pytest

from unweave.study.results import as_table


@pytest.fixture
def make_table():
    """A table of a grid of runs: ``score(data, setting, seed, metric)`` gives the value, None leaves it out.

    Setting h is the method ``beta_vae`` with beta = h.
    """

    def make(score, data=("a",), settings=3, seeds=2, metrics=("mig",), representation="mean"):
        rows = [
            {
                "run": f"{name}-{setting}-{seed}",
                "data": name,
                "method": "beta_vae",
                "strength_name": "beta",
                "strength": float(setting),
                "seed": seed,
                "correlation": 0.0,
                "latent_size": 10,
                "steps": 1,
                "settings": "{}",
                "metric": metric,
                "representation": representation,
                "protocol": "dlib",
                "value": score(name, setting, seed, metric),
                "seconds": 0.0,
            }
            for name, setting, seed, metric in itertools.product(data, range(settings), range(seeds), metrics)
        ]
        return as_table([row for row in rows if row["value"] is not None])

    return make


@pytest.fixture
def rng():
    return np.random.default_rng(7)
