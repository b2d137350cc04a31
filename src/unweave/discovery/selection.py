"""Which run to trust, chosen without labels: the one whose latents come back when it is trained anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import IntArray
from unweave.discovery.choices import Setting
from unweave.discovery.measured import Measured, free_combination, noise_in_unused
from unweave.discovery.runs import TrainedRun
from unweave.discovery.stability import ROTATIONS, AxisStability, axis_stability
from unweave.errors import UnweaveError
from unweave.metrics.unlabelled.udr import udr

FEWEST_MODELS = 2


@dataclass(frozen=True)
class SettingScores:
    """The label-free scores of a setting, means over its seeds.

    Parameters
    ----------
    setting
        method and strength.
    seeds
        how many were trained.
    explained
        of the variation of unseen photographs.
    used
        latents.
    reproducible
        the sum over latents of their agreement beyond chance: how many axes came back.
    udr
        unsupervised disentanglement ranking.
    distinguished
        how often drawings of shuffled codes are distinguished from real ones.
    noise
        what noise in the unused latents changes.
    """

    setting: Setting
    seeds: int
    explained: float
    used: float
    reproducible: float
    udr: float
    distinguished: float
    noise: float


@dataclass(frozen=True)
class Selected:
    """The chosen run, how its latents agree with other seeds, and the scores of all settings."""

    trained: TrainedRun
    measured: Measured
    stability: AxisStability
    seeds: int
    scores: tuple[SettingScores, ...]


def select_run(
    trained: Sequence[TrainedRun],
    measured: Sequence[Measured],
    unseen: IntArray,
    *,
    rotations: int = ROTATIONS,
) -> Selected:
    """Choose the setting whose latents are most reproducible over seeds, and of its seeds the best.

    A setting that does not draw unseen photographs better than their mean counts as having nothing reproducible. UDR
    decides between equals; by itself it prefers models with a single latent.
    """
    groups: dict[str, list[int]] = {}
    for index, one in enumerate(trained):
        groups.setdefault(one.setting.label, []).append(index)
    complete = {label: rows for label, rows in groups.items() if len(rows) >= FEWEST_MODELS}
    if not complete:
        raise UnweaveError("too few runs were finished to compare them: give it more minutes")
    best, chosen, all_scores = None, None, []
    for rows in complete.values():
        codes = [measured[row].mean[unseen] for row in rows]
        used = [measured[row].used for row in rows]
        axes = [axis_stability(codes, used, index, rotations=rotations) for index in range(len(rows))]
        ranking = _ranking(codes, [measured[row].kl for row in rows])
        counts = [
            float(one.beyond_chance.sum()) if measured[row].draws_new_photographs else 0.0
            for row, one in zip(rows, axes, strict=True)
        ]
        first = rows[int(np.argmax(counts))]
        explained = float(np.mean([measured[row].explained for row in rows]))
        scores = SettingScores(
            trained[first].setting,
            len(rows),
            explained,
            float(np.mean([each.sum() for each in used])),
            float(np.mean(counts)),
            float(np.mean(ranking)),
            free_combination(trained[first].run, measured[first], unseen),
            noise_in_unused(trained[first].run, measured[first], unseen),
        )
        all_scores.append(scores)
        key = (scores.reproducible, scores.udr, explained)
        if best is None or key > best:
            # Of the seeds, the one with most reproducible axes; then the one that others agree with most.
            index = max(range(len(rows)), key=lambda i: (counts[i], ranking[i], measured[rows[i]].explained))
            best, chosen = key, (rows[index], axes[index], len(rows))
    assert chosen is not None
    row, stability, seeds = chosen
    return Selected(trained[row], measured[row], stability, seeds, tuple(all_scores))


def _ranking(codes: Sequence[np.ndarray], kl: Sequence[np.ndarray]) -> list[float]:
    """UDR of each model."""
    if len(codes[0]) < 3:
        return [0.0] * len(codes)
    details = udr(codes, kl_list=kl, method="spearman").details
    return [float(value) for value in np.nan_to_num(details["per_model"])]
