"""Hyperparameters that change during training."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError

RAMP = {"start": 1, "end": 7, "steps": 10}


@pytest.fixture
def data():
    return uw.data.from_arrays(np.random.default_rng(0).integers(0, 256, (16, 4, 4, 1), np.uint8))


def weights(method, data, step):
    terms = method.loss(method.begin(data.batch(step, 4), step, torch.Generator().manual_seed(0)))
    return terms.weights


@pytest.mark.parametrize(
    ("name", "hyperparameter", "term"),
    [
        ("beta_vae", "beta", "kl"),
        ("factor_vae", "gamma", "total_correlation"),
        ("beta_tcvae", "beta", "total_correlation"),
    ],
)
def test_the_weight_of_a_step_is_that_of_the_method_at_this_value(data, name, hyperparameter, term):
    method = uw.methods.create(name, data, architecture="mlp", **{hyperparameter: RAMP})
    for step, value in ((0, 1.0), (5, 4.0), (10, 7.0), (99, 7.0)):
        fixed = uw.methods.create(name, data, architecture="mlp", **{hyperparameter: value})
        assert weights(method, data, step)[term] == pytest.approx(weights(fixed, data, step)[term])


def test_further_terms_and_capacity_have_schedules_too(data):
    extra = [{"name": "dip_ii", "lambda_od": RAMP, "lambda_d": 1.0}]
    capacity = {"c_max": 5.0, "gamma": RAMP, "steps": 10}
    method = uw.methods.create("vae", data, architecture="mlp", extra_terms=extra, capacity=capacity)
    assert weights(method, data, 5)["kl_capacity"] == 4.0
    method.begin(data.batch(5, 4), 5)
    assert method.terms[1].lambda_od == 4.0


def test_a_run_with_schedules_resumes_to_the_same_bits(data, tmp_path):
    rate = {"peak": 1e-2, "warmup": 3, "shape": "cosine"}

    def run(folder, **options):
        method = uw.methods.create("factor_vae", data, architecture="mlp", gamma=RAMP)
        return uw.train(
            method,
            data,
            steps=8,
            batch_size=4,
            learning_rate=rate,
            out=folder,
            log_every=1,
            pictures=False,
            **options,
        )

    class Stop(uw.training.Callback):
        def on_log(self, step, values):
            if step == 4:
                raise KeyboardInterrupt

    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", callbacks=[Stop()], checkpoint_every=3)
    resumed = run(tmp_path / "cut")
    assert whole.spec.learning_rate == {"peak": 1e-2, "warmup": 3, "shape": "cosine", "end": 0.0, "over": 8}
    assert [r["loss"] for r in whole.records] == [r["loss"] for r in resumed.records]
    for mine, other in zip(whole.method.parameters(), resumed.method.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert uw.load(tmp_path / "cut").spec.method.hyperparameters == {"gamma": RAMP}


def test_a_warm_up_takes_smaller_steps(data):
    """Adam's first step has the size of the learning rate, whatever the gradient."""
    moved = []
    for rate in (1e-2, {"peak": 1e-2, "warmup": 10}):
        method = uw.methods.create("vae", data, architecture="mlp", seed=0)
        before = [p.detach().clone() for p in method.parameters()]
        uw.train(method, data, steps=1, batch_size=4, learning_rate=rate)
        moved.append(
            max((p - q).abs().max().item() for p, q in zip(method.parameters(), before, strict=True))
        )
    assert moved == pytest.approx([1e-2, 1e-3], rel=1e-2)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("beta_vae", {"beta": {"start": -1, "end": 6, "steps": 10}}, "beta = -1.0: needs a number >= 0"),
        ("beta_vae", {"beta": {"start": 0, "end": 6}}, "beta = {'start': 0, 'end': 6}: a schedule needs"),
        ("beta_vae", {"beta": {"start": 0}}, "beta = {'start': 0}: a schedule needs start, end and steps"),
        (
            "annealed_vae",
            {"steps": {"start": 2, "end": 5, "steps": 4}},
            "steps = {'start': 2, 'end': 5, 'steps': 4}: has no values between",
        ),
        ("beta_vae", {"beta": {"begin": 0}}, "beta = {'begin': 0}: needs a number >= 0"),
    ],
)
def test_wrong_schedules_are_refused_when_the_method_is_created(data, name, settings, message):
    with pytest.raises(ArgumentError) as error:
        uw.methods.create(name, data, architecture="mlp", **settings)
    assert str(error.value).startswith(message)


def test_a_schedule_that_reaches_no_term_is_refused_beside_one_that_does(data):
    @uw.methods.register_method("two_numbers")
    def two_numbers(beta: float = 1.0, unused: float = 0.0):
        return [uw.methods.KL(beta)]

    moving = {"start": 0, "end": 6, "steps": 10}
    try:
        with pytest.raises(ArgumentError, match=r"unused = .*: is no setting of a term"):
            uw.methods.create("two_numbers", data, architecture="mlp", beta=moving, unused=dict(moving))
    finally:
        uw.methods.METHODS.unregister("two_numbers")
