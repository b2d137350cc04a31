"""Which run to trust, chosen without labels: the one whose latents come back when it is trained anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.discovery.choices import Setting
from unweave.discovery.measured import Measured, free_combination, noise_in_unused
from unweave.discovery.runs import TrainedRun
from unweave.discovery.stability import AxisStability, axis_stability, error_of_reproduced
from unweave.errors import UnweaveError
from unweave.metrics.unlabelled.udr import udr

FEWEST_MODELS = 2
_CLEARLY = 2.0  # standard errors by which another setting must be better than the usual one


@dataclass(frozen=True)
class SettingScores:
    """The label-free scores of a setting, means over its seeds.

    Parameters
    ----------
    setting
        method and strength.
    seeds
        how many were trained; of short runs those that failed count too.
    learned
        how many of them draw unseen photographs better than their mean.
    explained
        of the variation of unseen photographs.
    used
        latents.
    reproducible
        the sum over latents of their agreement beyond chance: how many axes came back. Axes turned at random add
        nothing on average.
    error
        the standard error of ``reproducible``, by leaving out one run at a time; infinite with fewer than three.
    udr
        unsupervised disentanglement ranking.
    distinguished
        how often drawings of shuffled codes are distinguished from real ones.
    noise
        what noise in the unused latents changes.
    """

    setting: Setting
    seeds: int
    learned: int
    explained: float
    used: float
    reproducible: float
    error: float
    udr: float
    distinguished: float
    noise: float

    @property
    def has_learned(self) -> bool:
        """Whether most of its runs learned something."""
        return self.learned > self.seeds / 2

    def is_clearly_better(self, other: SettingScores) -> bool:
        """Whether its axes agree better by more than chance explains."""
        return self.reproducible - other.reproducible > _CLEARLY * float(np.hypot(self.error, other.error))


@dataclass(frozen=True)
class Selected:
    """The chosen run, how its latents agree with other seeds, and the scores of all settings.

    Parameters
    ----------
    trained, measured
        the run.
    stability
        of its latents over the final runs.
    seeds
        how many of these were compared, itself included.
    final
        the scores of the chosen setting in the final runs.
    pilot
        the scores by which the setting was chosen; empty if there was only one.
    """

    trained: TrainedRun
    measured: Measured
    stability: AxisStability
    seeds: int
    final: SettingScores
    pilot: tuple[SettingScores, ...]


def choose_setting(
    settings: Sequence[Setting],
    trained: Sequence[TrainedRun],
    measured: Sequence[Measured],
    unseen: IntArray,
    seeds: int,
) -> tuple[SettingScores, ...]:
    """The scores of the settings of pilot runs, the chosen one first, then by how many axes came back.

    A few short runs are a noisy judge, so the usual setting, which is the first of ``settings``, is chosen unless the
    axes of another agree better by more than two standard errors of the difference. Settings of which half of the
    ``seeds`` or more failed or do not draw unseen photographs better than their mean come last: they have nothing to
    agree on. UDR decides between equals; by itself it prefers models with a single latent.
    """
    groups: dict[str, list[int]] = {setting.label: [] for setting in settings}
    for index, one in enumerate(trained):
        groups[one.setting.label].append(index)
    scores = [
        replace(_compare(trained, measured, rows, unseen)[0], seeds=seeds)
        for rows in groups.values()
        if len(rows) >= FEWEST_MODELS
    ]
    if not scores:
        return ()
    order = sorted(
        scores, key=lambda one: (one.has_learned, one.reproducible, one.udr, one.explained), reverse=True
    )
    usual = next((one for one in scores if one.has_learned), order[0])
    best = next((one for one in order if one.has_learned and one.is_clearly_better(usual)), usual)
    return (best, *(one for one in order if one is not best))


def select_run(
    trained: Sequence[TrainedRun],
    measured: Sequence[Measured],
    unseen: IntArray,
    pilot: Sequence[SettingScores] = (),
) -> Selected:
    """Of the final runs of one setting that whose latents come back most in the others."""
    if len(trained) < FEWEST_MODELS:
        raise UnweaveError("too few runs were finished to compare them: give it more minutes")
    scores, row, stability, compared = _compare(trained, measured, range(len(trained)), unseen)
    return Selected(trained[row], measured[row], stability, compared, scores, tuple(pilot))


def _compare(
    trained: Sequence[TrainedRun], measured: Sequence[Measured], rows: Sequence[int], unseen: IntArray
) -> tuple[SettingScores, int, AxisStability, int]:
    """The scores of a setting with the given runs, its best run, how that agrees with others, and how many these are.

    Runs that learned nothing have no axes to compare; if fewer than two have learned something, nothing is reproduced.
    """
    learned = [row for row in rows if measured[row].draws_new_photographs]
    compared = learned if len(learned) >= FEWEST_MODELS else list(rows)
    codes = [measured[row].mean[unseen] for row in compared]
    used = [measured[row].used for row in compared]
    axes = [axis_stability(codes, used, index) for index in range(len(compared))]
    ranking = _ranking(codes, [measured[row].kl for row in compared])
    is_real = len(learned) >= FEWEST_MODELS
    counts = [float(one.beyond_chance.sum()) if is_real else 0.0 for one in axes]
    # The one with most reproducible axes; then the one that others agree with most.
    index = max(range(len(compared)), key=lambda i: (counts[i], ranking[i], measured[compared[i]].explained))
    row = compared[index]
    scores = SettingScores(
        trained[row].setting,
        len(rows),
        len(learned),
        float(np.mean([measured[each].explained for each in rows])),
        float(np.mean([measured[each].used.sum() for each in rows])),
        float(np.mean(counts)),
        error_of_reproduced(codes, used) if is_real else float("inf"),
        float(np.mean(ranking)),
        free_combination(trained[row].run, measured[row], unseen),
        noise_in_unused(trained[row].run, measured[row], unseen),
    )
    return scores, row, axes[index], len(compared)


def _ranking(codes: Sequence[FloatArray], kl: Sequence[FloatArray]) -> list[float]:
    """UDR of each model."""
    if len(codes[0]) < 3:
        return [0.0] * len(codes)
    details = udr(codes, kl_list=kl, method="spearman").details
    return [float(value) for value in np.nan_to_num(details["per_model"])]
