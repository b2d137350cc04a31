"""What is chosen, and that it fits into the time."""

import json

import numpy as np
import pytest

from unweave.discovery import choices
from unweave.discovery.choices import Plan, choose, components_beyond_chance
from unweave.discovery.photographs import read_photographs


@pytest.fixture
def photographs(save, tmp_path):
    """Grey photographs of 64 pixels that vary in three ways."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:64, :64] / 63
    images = [
        np.uint8(60 + 60 * (a * x + b * y + c * np.sin(6 * x))) for a, b, c in rng.uniform(0, 1, (60, 3))
    ]
    return read_photographs(save("photos", images), tmp_path / "store")


def cost(plan):
    """Seconds of a step of an imagined machine."""
    return 0.02 * (plan.side / 64) ** 2 * plan.width


@pytest.mark.parametrize("minutes", [0.5, 3, 30, 200])
def test_the_runs_fit_into_the_time(photographs, minutes):
    plan = choose(photographs, minutes, seconds_per_step=cost)
    pilot = plan.pilot_steps * plan.pilot_seeds * len(plan.settings)
    seconds = cost(plan) * (plan.steps * plan.seeds + pilot)
    assert seconds <= 60 * minutes * choices.TRAINING_PART + 1e-6 or plan.steps == choices.FEWEST_STEPS
    if plan.steps < choices.MOST_STEPS:
        assert seconds > 0.7 * 60 * minutes * choices.TRAINING_PART


def test_more_time_gives_larger_images_and_more_runs(photographs):
    short, long = (choose(photographs, minutes, seconds_per_step=cost) for minutes in (0.3, 60))
    assert (short.side, long.side) == (32, 64)
    assert (len(short.settings), short.pilot_seeds, short.pilot_steps) == (1, 0, 0)
    assert short.seeds == choices.FEWEST_SEEDS
    assert len(long.settings) > 1
    assert long.seeds > short.seeds
    assert short.steps < long.steps


@pytest.mark.parametrize("minutes", range(1, 60, 6))
def test_larger_images_are_not_bought_with_steps(photographs, minutes):
    """Axes that are learned in too few steps come back in no other training: small images get many steps first."""
    plan = choose(photographs, minutes, seconds_per_step=cost)
    assert plan.steps >= choices.ENOUGH_STEPS or (plan.side, plan.width) == (32, 0.5)
    assert plan.steps >= choices.FEW_STEPS or len(plan.settings) == 1


def test_an_experts_choices_are_kept(photographs):
    plan = choose(photographs, 1, steps=7, seeds=5, latent_size=4, size=64, seconds_per_step=cost)
    assert (plan.steps, plan.seeds, plan.latent_size, plan.side) == (7, 5, 4, 64)


def test_every_choice_says_why_and_survives_a_file(photographs):
    plan = choose(photographs, 1, seconds_per_step=cost)
    assert {choice.what for choice in plan.choices} >= {
        "Image size",
        "Network",
        "Measure of likeness",
        "Runs",
    }
    assert all(len(choice.why) > 10 for choice in plan.choices)
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


def test_the_likelihood_follows_the_shades(photographs, save, squares, tmp_path):
    assert choose(photographs, 1, steps=1, seconds_per_step=cost).reconstruction == "gaussian"
    black_and_white = read_photographs(save("squares", squares(12)), tmp_path / "squares-store")
    assert choose(black_and_white, 1, steps=1, seconds_per_step=cost).reconstruction == "bernoulli"


def test_components_beyond_chance_are_those_that_were_put_in():
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 64)) * 10 + rng.normal(size=(400, 64))
    assert components_beyond_chance(mixed.reshape(400, 8, 8, 1)) == 3
    assert components_beyond_chance(rng.normal(size=(400, 8, 8, 1))) <= 1


@pytest.mark.parametrize("processes", [1, 2, 4, 8, 10])
@pytest.mark.parametrize("minutes", [0.5, 3, 30, 200])
def test_runs_side_by_side_fit_into_the_time_too(photographs, minutes, processes):
    """A process trains one run after the other: as many as there are rounds."""
    plan = choose(photographs, minutes, processes=processes, seconds_per_step=cost)
    pilots = -(-plan.pilot_seeds * len(plan.settings) // processes)
    seconds = cost(plan) * (plan.steps * -(-plan.seeds // processes) + plan.pilot_steps * pilots)
    assert seconds <= 60 * minutes * choices.TRAINING_PART + 1e-6 or plan.steps == choices.FEWEST_STEPS
    if choices.FEWEST_STEPS < plan.steps < choices.MOST_STEPS:
        assert seconds > 0.6 * 60 * minutes * choices.TRAINING_PART
    assert plan.seeds % processes == 0 or plan.seeds in (choices.FEWEST_SEEDS, choices.MOST_SEEDS)
    assert plan.choices[-1].why.endswith("runs side by side.") == (
        processes > 1 and plan.steps < choices.MOST_STEPS
    )


def test_more_processes_give_more_steps(photographs):
    alone, four = (choose(photographs, 10, processes=n, seconds_per_step=cost) for n in (1, 4))
    assert (four.side, four.width) >= (alone.side, alone.width)
    assert four.steps * four.seeds * cost(four) > 3 * alone.steps * alone.seeds * cost(alone)


def test_there_are_never_more_processes_than_runs():
    assert choices.most_runs(None, 4.0) == choices.MOST_SEEDS
    assert choices.most_runs(2, 4.0) == 2
    assert choices.most_runs(2, None) == choices.MOST_PILOTS * 3


def test_more_time_gives_more_pilot_runs_before_longer_ones(photographs):
    plans = [
        choose(photographs, minutes, size=32, seconds_per_step=cost) for minutes in (0.5, 2, 3, 6, 12, 30, 60)
    ]
    compared = [plan for plan in plans if plan.pilot_seeds]
    counts = [plan.pilot_seeds for plan in compared]
    assert counts == sorted(counts)
    assert {choices.FEWEST_PILOTS, choices.MOST_PILOTS} <= set(counts)
    for plan in compared:
        assert choices.FEWEST_PILOTS <= plan.pilot_seeds <= choices.MOST_PILOTS
        assert plan.pilot_steps >= choices.FEW_PILOT_STEPS
        assert plan.pilot_steps >= choices.ENOUGH_PILOT_STEPS or plan.pilot_seeds == choices.FEWEST_PILOTS


@pytest.mark.parametrize("processes", [2, 4, 7, 8, 15, 40])
def test_more_pilot_runs_side_by_side_never_cost_steps_that_are_needed(photographs, processes):
    for minutes in (0.5, 1, 2, 3, 6, 12):
        plan = choose(photographs, minutes, size=32, processes=processes, seconds_per_step=cost)
        if not plan.pilot_seeds or plan.pilot_steps >= choices.ENOUGH_PILOT_STEPS:
            continue
        used = choices.rounds(plan.pilot_seeds * len(plan.settings), processes)
        assert used == choices.rounds(choices.FEWEST_PILOTS * len(plan.settings), processes)
        one_more = choices.rounds((plan.pilot_seeds + 1) * len(plan.settings), processes)
        assert one_more > used or plan.pilot_seeds == choices.MOST_PILOTS


def test_pilot_runs_fill_their_last_round():
    assert choices._pilots(3_000, 3, 15) == (5, 3_000)  # fifteen at once take no longer than nine
    assert choices._pilots(6_500, 3, 7) == (4, 3_250)  # fifteen would take three rounds
    assert choices._pilots(9_000, 3, 1) == (3, 1_000)
