"""Our Adam moves weights as torch's does, bit by bit, and has the same state."""

from __future__ import annotations

import copy

import pytest
import torch

from unweave.training.adam import Adam

SHAPES = [(3, 4), (5,), (2, 3, 4, 4)]


def weights() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


@pytest.fixture
def pair() -> tuple[Adam, torch.optim.Adam]:
    return Adam(weights(), 0.01, (0.5, 0.99), 1e-6), torch.optim.Adam(
        weights(), 0.01, (0.5, 0.99), 1e-6, fused=True
    )


def move(optimisers: tuple[torch.optim.Adam, ...], step: int, without: int | None = None) -> None:
    """One step with the same gradients; weight number ``without`` has none."""
    for optimiser in optimisers:
        generator = torch.Generator().manual_seed(step)
        for number, weight in enumerate(optimiser.param_groups[0]["params"]):
            gradient = torch.randn(weight.shape, generator=generator)
            weight.grad = None if number == without else gradient
        optimiser.step()


def assert_same(first: torch.optim.Adam, second: torch.optim.Adam) -> None:
    for ours, theirs in zip(first.param_groups[0]["params"], second.param_groups[0]["params"], strict=True):
        assert torch.equal(ours, theirs)
    states = first.state_dict()["state"], second.state_dict()["state"]
    assert states[0].keys() == states[1].keys()
    for number in states[0]:
        for name in ("step", "exp_avg", "exp_avg_sq"):
            assert torch.equal(states[0][number][name], states[1][number][name]), (number, name)


def test_the_same_bits_as_torch(pair, monkeypatch):
    move(pair, 0)
    ours, theirs = pair
    for step in range(1, 10):
        move((theirs,), step)
        with monkeypatch.context() as patch:
            patch.setattr(torch.optim.Adam, "step", None)  # ours makes the step without it
            move((ours,), step)
        assert_same(ours, theirs)


def test_weights_with_channels_last(pair):
    for optimiser in pair:
        weight = optimiser.param_groups[0]["params"][2]
        weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    for step in range(5):
        move(pair, step)
        assert_same(*pair)


def test_further_weights_and_copies_move_as_torchs_do(pair):
    for step in range(2):
        move(pair, step)
    further = [torch.nn.Parameter(torch.ones(7)) for _ in pair]
    for optimiser, weight in zip(pair, further, strict=True):
        optimiser.add_param_group({"params": [weight], "lr": 0.5})
    for step in range(2, 6):
        for weight in further:
            weight.grad = torch.full((7,), float(step))
        move(pair, step)
    assert_same(*pair)
    assert torch.equal(*further)
    again = copy.deepcopy(pair)
    move(again, 6)
    assert_same(*again)


def test_a_weight_without_a_gradient_stays_and_counts_for_itself(pair):
    for step in range(9):
        move(pair, step, without=1 if step in (3, 4) else None)
        assert_same(*pair)
    assert [float(state["step"]) for state in pair[0].state_dict()["state"].values()] == [9, 7, 9]


def test_a_weight_without_a_gradient_at_the_first_step(pair):
    for step in range(5):
        move(pair, step, without=0 if step == 0 else None)
        assert_same(*pair)


def test_the_learning_rate_can_change(pair):
    for step in range(6):
        for optimiser in pair:
            optimiser.param_groups[0]["lr"] = 0.1 / (step + 1)
        move(pair, step)
    assert_same(*pair)


@pytest.mark.parametrize("steps", [1, 4])
def test_a_state_is_taken_up(pair, steps):
    for step in range(steps):
        move(pair, step)
    state = copy.deepcopy(pair[0].state_dict())
    for optimiser in pair:
        for step in range(steps, steps + 3):  # which is forgotten
            move((optimiser,), step)
        optimiser.load_state_dict(copy.deepcopy(state))
    for step in range(steps, steps + 4):
        move(pair, step)
    assert_same(*pair)


def test_a_gradient_scaler_skips_a_step_that_overflows(pair):
    for optimiser in pair:
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        for factor in (1.0, 2.0, float("inf"), 3.0):
            optimiser.zero_grad()
            weights = optimiser.param_groups[0]["params"]
            scaler.scale(sum((factor * weight).sum() for weight in weights)).backward()
            scaler.step(optimiser)
            scaler.update()
    assert all(weight.isfinite().all() for weight in pair[0].param_groups[0]["params"])
    assert_same(*pair)
