"""Numbers that change during training."""

import math

import pytest

from unweave.errors import ArgumentError
from unweave.schedules import LearningRate, Schedule


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_a_schedule_starts_ends_and_is_halfway_in_the_middle(shape):
    schedule = Schedule(2.0, 10.0, steps=100, after=20, shape=shape)
    assert [schedule(step) for step in (0, 20, 120, 10**9)] == [2.0, 2.0, 10.0, 10.0]
    assert schedule(70) == pytest.approx(6.0)


def test_a_cosine_is_flat_at_both_ends():
    schedule = Schedule(0.0, 1.0, steps=1000, shape="cosine")
    assert schedule(250) == pytest.approx((1 - math.cos(math.pi / 4)) / 2)
    assert schedule(1) < 1e-5
    assert schedule(999) > 1 - 1e-5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": 0}, "beta = {'start': 0}: a schedule needs start, end and steps"),
        ({"start": 0, "end": 1}, "beta = {'start': 0, 'end': 1}: a schedule needs start, end and steps"),
        ({"start": 0, "end": 1, "steps": 0}, "steps = 0: needs a whole number >= 1"),
        ({"start": 0, "end": 1, "steps": 5, "shape": "sine"}, "shape = 'sine': did you mean 'cosine'"),
        ({"start": "x", "end": 1, "steps": 5}, "start = 'x': needs a number"),
        ({"start": 0, "end": 1, "steps": 5, "begin": 1}, "key of the schedule of beta = 'begin'"),
    ],
)
def test_wrong_schedules_are_refused_by_name(given, message):
    with pytest.raises(ArgumentError) as error:
        Schedule.read("beta", given)
    assert str(error.value).startswith(message)


def test_a_learning_rate_rises_and_falls():
    rate = LearningRate(1e-3, warmup=10, shape="linear", end=1e-4, over=110)
    assert [rate(step) for step in (0, 4, 9)] == pytest.approx([1e-4, 5e-4, 1e-3])
    assert [rate(step) for step in (10, 60, 110, 500)] == pytest.approx([1e-3, 5.5e-4, 1e-4, 1e-4])
    assert rate.factor(60) == pytest.approx(0.55)


def test_a_rate_that_does_not_change_is_a_number():
    assert LearningRate.read({"peak": 1e-3}).as_setting(100) == 1e-3
    assert LearningRate.read(1e-3).as_setting(100) == 1e-3
    assert LearningRate.read({"peak": 1e-3, "shape": "cosine"}).as_setting(100)["over"] == 100


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, "learning_rate = 0: needs a number > 0"),
        ({"warmup": 5}, "learning_rate = {'warmup': 5}: a mapping needs peak"),
        ({"peak": 1e-3, "end": 1.0}, "end = 1.0: needs to be at most the peak, 0.001"),
        ({"peak": 1e-3, "end": 1e-4}, "end = 0.0001: needs the shape linear or cosine"),
        ({"peak": 1e-3, "over": 20}, "over = 20: needs the shape linear or cosine"),
        (
            {"peak": 1e-3, "warmup": 50, "over": 20, "shape": "linear"},
            "over = 20: needs more steps than the warm-up, 50",
        ),
        ({"peak": 1e-3, "decay": "cosine"}, "key of learning_rate = 'decay'"),
    ],
)
def test_wrong_learning_rates_are_refused_by_name(given, message):
    with pytest.raises(ArgumentError) as error:
        LearningRate.read(given)
    assert str(error.value).startswith(message)
