"""The factors of a chosen run: one per used latent, with how sure one may be of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.discovery.labels import LabelColumn, Relation, relate
from unweave.discovery.measured import Measured
from unweave.discovery.selection import Selected
from unweave.discovery.stability import AxisStability

Status = Literal["reproduced", "uncertain"]
ENOUGH_PHOTOGRAPHS = 100  # different ones: with fewer, no factor counts as reproduced
HIGH_AGREEMENT = 0.7
SIGNIFICANT = 0.05
_EXTREMES = 6


@dataclass(frozen=True)
class Factor:
    """A way in which the photographs vary.

    Parameters
    ----------
    name
        "factor_1", "factor_2", …: as in the table of codes.
    latent
        its column in the run's codes.
    status
        "reproduced": it came back whenever training began anew, more exactly than chance can explain. "uncertain": it
        did not, or there are too few photographs to say.
    share
        of the variation of unseen photographs that is lost without it.
    agreement, purity, p
        over seeds: see :class:`~unweave.discovery.stability.AxisStability`; p is corrected for the number of latents.
    low, high
        the rows of the photographs with the lowest and the highest values, the most extreme first.
    relations
        to the labels that were given.
    """

    name: str
    latent: int
    status: Status
    share: float
    agreement: float
    purity: float
    p: float
    low: tuple[int, ...]
    high: tuple[int, ...]
    relations: tuple[Relation, ...] = ()

    @property
    def came_back(self) -> bool:
        """Whether it agrees over seeds beyond chance; few photographs make it uncertain all the same."""
        return _came_back(self.agreement, self.p)

    @property
    def title(self) -> str:
        """For people: Factor 1."""
        return self.name.replace("_", " ").capitalize()


def describe_factors(
    selected: Selected, distinct: IntArray, labels: Sequence[LabelColumn], seed: int = 0
) -> tuple[Factor, ...]:
    """The factors of the chosen run: reproduced ones first, then by their share.

    Parameters
    ----------
    selected
        the run, measured and compared with other seeds.
    distinct
        the rows of photographs without duplicates.
    labels
        that were given, by row; of photographs without duplicates.
    seed
        of permutations.
    """
    measured, stability = selected.measured, selected.stability
    if not measured.draws_new_photographs:
        return ()
    latents = [int(one) for one in np.flatnonzero(measured.used)]
    enough = len(distinct) >= ENOUGH_PHOTOGRAPHS
    status = {latent: _status(stability, latent, enough) for latent in latents}
    latents.sort(key=lambda latent: (status[latent] != "reproduced", -measured.shares[latent]))
    relations = (
        relate(measured.mean[:, latents], labels, seed) if labels and latents else [[] for _ in latents]
    )
    return tuple(
        _factor(number, latent, status[latent], measured, stability, distinct, related)
        for number, (latent, related) in enumerate(zip(latents, relations, strict=True), 1)
    )


def _status(stability: AxisStability, latent: int, enough: bool) -> Status:
    came_back = _came_back(stability.agreement[latent], stability.p[latent])
    return "reproduced" if enough and came_back else "uncertain"


def _came_back(agreement: float, p: float) -> bool:
    """Whether a latent came back: in agreement, and beyond the chance of all latents together."""
    return bool(agreement >= HIGH_AGREEMENT and p <= SIGNIFICANT)


def _factor(
    number: int,
    latent: int,
    status: Status,
    measured: Measured,
    stability: AxisStability,
    distinct: IntArray,
    relations: Sequence[Relation],
) -> Factor:
    order = distinct[np.argsort(measured.mean[distinct, latent], kind="stable")]
    return Factor(
        f"factor_{number}",
        latent,
        status,
        float(measured.shares[latent]),
        float(stability.agreement[latent]),
        float(stability.purity[latent]),
        float(stability.p[latent]),
        tuple(int(row) for row in order[:_EXTREMES]),
        tuple(int(row) for row in order[::-1][:_EXTREMES]),
        tuple(sorted(relations, key=lambda relation: (not relation.is_real, -abs(relation.strength)))),
    )


def traversal_codes(
    measured: Measured, latent: int, starts: IntArray, distinct: IntArray, steps: int
) -> FloatArray:
    """Codes (starts, steps, D) in which one latent moves from the low to the high photographs, all else as it is."""
    low, high = np.quantile(measured.mean[distinct, latent], [0.02, 0.98])
    codes = np.repeat(measured.mean[starts][:, None], steps, axis=1)
    codes[:, :, latent] = np.linspace(low, high, steps)
    return codes
