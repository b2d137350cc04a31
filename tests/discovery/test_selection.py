"""Which setting is trained anew."""

from types import MappingProxyType

import numpy as np
import pytest

from unweave.discovery import selection
from unweave.discovery.choices import Setting
from unweave.discovery.runs import TrainedRun
from unweave.discovery.stability import axis_stability, error_of_reproduced

SETTINGS = {
    name: Setting("beta_tcvae", {"beta": beta}, name)
    for name, beta in (("usual", 8.0), ("strong", 20.0), ("weak", 2.0))
}
RUNS = 4


@pytest.fixture
def choose(monkeypatch):
    """The settings in the order of preference, if pilot runs have these scores (learned, reproducible, error, UDR)."""

    def choose(failed=MappingProxyType({}), **scores):
        trained = [
            TrainedRun(SETTINGS[name], seed, None)
            for seed in range(RUNS)
            for name in scores
            if seed >= failed.get(name, 0)
        ]

        def compare(trained, measured, rows, unseen):
            setting = trained[rows[0]].setting
            learned, reproducible, error, udr = scores[setting.label]
            result = selection.SettingScores(
                setting, len(rows), learned, 0.5, 3.0, reproducible, error, udr, 0.5, 0.0
            )
            return result, rows[0], None, RUNS

        monkeypatch.setattr(selection, "_compare", compare)
        settings = [SETTINGS[name] for name in scores]
        order = selection.choose_setting(settings, trained, [None] * len(trained), None, RUNS)
        return [one.setting.label for one in order]

    return choose


def test_the_usual_setting_is_chosen_unless_another_is_clearly_better(choose):
    assert choose(usual=(4, 0.5, 0.3, 0.1), strong=(4, 1.2, 0.3, 0.1)) == ["usual", "strong"]
    assert choose(usual=(4, 0.5, 0.2, 0.1), strong=(4, 1.2, 0.2, 0.1)) == ["strong", "usual"]


def test_the_usual_setting_is_the_usual_one_though_its_first_run_failed(choose):
    scores = {"usual": (3, 0.5, 0.3, 0.1), "strong": (4, 1.2, 0.3, 0.1)}
    assert choose(failed={"usual": 1}, **scores) == ["usual", "strong"]


def test_runs_that_failed_learned_nothing(choose):
    """Of four runs two are left, which both learned something: a setting of which so many fail is not the usual one."""
    scores = {"usual": (2, 3.0, 0.1, 0.9), "strong": (3, 0.5, 0.3, 0.1)}
    assert choose(failed={"usual": 2}, **scores) == ["strong", "usual"]


def test_without_a_known_error_nothing_is_clearly_better(choose):
    unknown = float("inf")
    assert choose(usual=(4, 0.0, unknown, 0.1), strong=(4, 3.0, unknown, 0.9)) == ["usual", "strong"]


def test_the_best_of_those_that_are_clearly_better_is_chosen(choose):
    order = choose(usual=(4, 0.1, 0.1, 0.1), strong=(4, 0.9, 0.1, 0.1), weak=(4, 1.3, 0.1, 0.1))
    assert order == ["weak", "strong", "usual"]


def test_udr_decides_between_equals(choose):
    order = choose(usual=(4, 0.1, 0.1, 0.1), strong=(4, 0.9, 0.1, 0.2), weak=(4, 0.9, 0.1, 0.3))
    assert order == ["weak", "strong", "usual"]


def test_a_setting_that_learned_nothing_is_not_preferred_to_one_whose_axes_were_turned(choose):
    """Axes that agree less than chance count below zero; where nothing was learned none are compared, which is zero."""
    unknown = float("inf")
    assert choose(usual=(1, 0.0, unknown, 0.9), strong=(4, -1.4, 0.2, 0.1)) == ["strong", "usual"]
    assert choose(usual=(2, 2.0, 0.1, 0.9), strong=(3, -1.4, 0.2, 0.1)) == ["strong", "usual"]


def test_if_no_setting_learned_something_the_best_of_them_is_taken(choose):
    assert choose(usual=(0, 0.0, 9.0, 0.1), strong=(0, 0.0, 9.0, 0.4)) == ["strong", "usual"]


def simulated(rng, runs, has_pair):
    """The scores of a setting: three latents come back, and two do, or are turned anew in each run."""
    content, codes = rng.normal(size=(150, 5)), []
    for angle in rng.uniform(0, np.pi / 2, runs) * has_pair:
        turn = np.eye(5)
        turn[3:, 3:] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        codes.append(content @ turn + 0.3 * rng.normal(size=content.shape))
    used = [np.ones(5, bool)] * runs
    axes = [axis_stability(codes, used, reference) for reference in range(runs)]
    return selection.SettingScores(
        SETTINGS["usual"],
        runs,
        runs,
        0.5,
        5.0,
        float(np.mean([one.beyond_chance.sum() for one in axes])),
        error_of_reproduced(codes, used),
        0.0,
        0.5,
        0.0,
    )


@pytest.mark.parametrize("runs", [3, 5])
def test_another_setting_is_rarely_chosen_by_chance(runs):
    rng = np.random.default_rng(runs)
    chosen = []
    for _ in range(120):
        usual, *others = [simulated(rng, runs, has_pair=True) for _ in range(3)]
        chosen.append(any(one.is_clearly_better(usual) for one in others))
    assert np.mean(chosen) < 0.1


def test_five_runs_show_that_another_setting_has_two_axes_more():
    rng = np.random.default_rng(0)
    chosen = [
        simulated(rng, 5, has_pair=False).is_clearly_better(simulated(rng, 5, has_pair=True))
        for _ in range(60)
    ]
    assert np.mean(chosen) > 0.5
