"""Which setting is trained anew."""

import pytest

from unweave.discovery import selection
from unweave.discovery.choices import Setting
from unweave.discovery.runs import TrainedRun

SETTINGS = {
    name: Setting("beta_tcvae", {"beta": beta}, name) for name, beta in (("weak", 2.0), ("strong", 20.0))
}


@pytest.fixture
def choose(monkeypatch):
    """The settings in the order of preference, if their pilot runs have these scores (learned, reproducible, udr)."""

    def choose(**scores):
        trained = [TrainedRun(SETTINGS[name], seed, None) for seed in range(2) for name in scores]

        def compare(trained, measured, rows, unseen):
            setting = trained[rows[0]].setting
            learned, reproducible, udr = scores[setting.label]
            result = selection.SettingScores(setting, 2, learned, 0.5, 3.0, reproducible, udr, 0.5, 0.0)
            return result, rows[0], None, 2

        monkeypatch.setattr(selection, "_compare", compare)
        return [one.setting.label for one in selection.choose_setting(trained, [None] * len(trained), None)]

    return choose


def test_the_setting_with_most_reproducible_axes_is_chosen(choose):
    assert choose(weak=(2, 0.5, 0.9), strong=(2, 1.2, 0.1)) == ["strong", "weak"]


def test_udr_decides_between_equals(choose):
    assert choose(weak=(2, 0.5, 0.9), strong=(2, 0.5, 0.1)) == ["weak", "strong"]


def test_a_setting_that_learned_nothing_is_not_preferred_to_one_whose_axes_were_turned(choose):
    """Axes that agree less than chance count below zero; where nothing was learned none are compared, which is zero."""
    assert choose(weak=(1, 0.0, 0.9), strong=(2, -1.4, 0.1)) == ["strong", "weak"]
