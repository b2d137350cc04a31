"""The stored reference values of the metrics that intervene on factors, each reached exactly.

The other seeds are in the slow tests.
"""

from functools import lru_cache

import golden
import numpy as np
import pytest

import unweave as uw
from unweave.data.factors import FactorSpace
from unweave.metrics.interventions.beta_vae import beta_vae
from unweave.metrics.interventions.factor_vae import factor_vae

compared = 0


class Tabulated:
    """A reference case's code for every combination of factors and nuisance, computed once."""

    def __init__(self, case, arrays):
        sizes = case["factor_sizes"]
        self.space = FactorSpace([f"f{k}" for k in range(len(sizes))], sizes)
        self.nuisance = case["nuisance_size"]
        rows = np.arange(len(self.space) * self.nuisance)
        factors, nuisance = self.space.factors(rows // self.nuisance), rows % self.nuisance
        self.table = golden.representation(case, arrays, factors, nuisance).astype(np.float64)

    def codes(self, factors, rng):
        rows = np.ravel_multi_index(tuple(factors.T), self.space.grid_shape)
        if self.nuisance > 1:
            rows = rows * self.nuisance + rng.randint(self.nuisance, size=len(rows))
        return self.table[rows]


@lru_cache(maxsize=1)
def representation(case_id):
    case, file = golden.CASES[case_id]
    with np.load(file) as arrays:
        return Tabulated(case, arrays)


def expected(reference, position):
    """Accuracy on train and on evaluation points."""
    values = reference["values"]
    if "eval_per_seed" in values:
        return values["train_per_seed"][position], values["eval_per_seed"][position]
    return values["train_accuracy"], values["eval_accuracy"]


def pruning(limit):
    return {"prune": "std", "threshold": limit} if limit else {"prune": None}


def sizes(params, *extra):
    return {name: params[name] for name in ("batch_size", "num_train", "num_eval", *extra)}


def run_beta_vae(case_id, params, seed):
    solver = "liblinear_ovr" if "liblinear" in params.get("classifier", "") else "lbfgs"
    return beta_vae.compute(representation(case_id), seed=seed, solver=solver, **sizes(params))


def run_factor_vae(case_id, params, seed):
    options = pruning(params["prune_threshold_std"]) | sizes(params, "num_variance_estimate")
    return factor_vae.compute(representation(case_id), seed=seed, **options)


# What runs it, and the seeds that are not slow.
METRICS = {
    "beta_vae": (run_beta_vae, [0]),
    "beta_vae_liblinear_ovr": (run_beta_vae, [0]),
    "factor_vae": (run_factor_vae, [0, 1]),
    "factor_vae_no_pruning": (run_factor_vae, [0, 1]),
}


def values_compared():
    return compared


def agree(score, reference, position, told):
    global compared
    found = score.details["train_accuracy"], score.details["eval_accuracy"]
    np.testing.assert_allclose(found, expected(reference, position), rtol=0, atol=1e-9, err_msg=told)
    compared += 2


@pytest.mark.parametrize("case_id", golden.CASES)
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["quick", "rest"])
def test_accuracies(case_id, quick):
    for metric, (run, quick_seeds) in METRICS.items():
        reference = golden.CASES[case_id][0]["metrics"].get(metric, {"params": {"seeds": []}})
        for position, seed in enumerate(reference["params"]["seeds"]):
            if (seed in quick_seeds) == quick:
                score = run(case_id, reference["params"], seed)
                agree(score, reference, position, f"{metric} of seed {seed}")


def number_of_images(case_id):
    case = golden.CASES[case_id][0]
    return int(np.prod(case["factor_sizes"])) * case["nuisance_size"]


def cases_for_evaluate():
    """All of fewer than 100,000 images; quick are the smallest with and the smallest without a nuisance factor."""
    small = sorted((name for name in golden.CASES if number_of_images(name) < 100_000), key=number_of_images)
    first = {}
    for name in small:
        first.setdefault(golden.CASES[name][0]["nuisance_size"] > 1, name)
    return [
        pytest.param(name, marks=[] if name in first.values() else [pytest.mark.slow], id=name)
        for name in small
    ]


def as_images(rows):
    """Observations that tell their row."""
    return ((rows[:, None] >> np.arange(0, 32, 8)) & 255).astype(np.uint8).reshape(-1, 2, 2, 1)


@pytest.mark.parametrize("case_id", cases_for_evaluate())
def test_evaluate_reaches_every_seed(case_id):
    known = representation(case_id)
    rows = np.arange(len(known.table))
    data = uw.data.from_arrays(as_images(rows), known.space.factors(rows // known.nuisance))
    seen = 0

    def encode(images):
        nonlocal seen
        seen += len(images)
        return known.table[(images.reshape(-1, 4).astype(np.int64) << np.arange(0, 32, 8)).sum(axis=1)]

    for metric in ("beta_vae", "factor_vae"):
        reference = golden.CASES[case_id][0]["metrics"][metric]
        for position, seed in enumerate(reference["params"]["seeds"]):
            seen = 0
            score = uw.evaluate(encode, data, [metric], protocol="dlib", seed=seed)[metric]
            agree(score, reference, position, f"{metric} of seed {seed}")
            assert seen <= len(data)
