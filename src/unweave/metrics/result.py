"""What a metric gives: a score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, repr=False)
class Score:
    """A metric's value, what it was computed from, and the parameters that it was computed with.

    ``float(score)`` and ``f"{score:.3f}"`` are its value.

    Parameters
    ----------
    value
        the number that the papers report.
    details
        the parts of the value: per factor, per code, and ``"matrix"``, where a metric has one, latents x factors.
        ``"interval"`` is the 95 % interval, where one was asked for.
    params
        the metric's parameters, defaults included.
    metric
        the metric's name.
    higher_is_better
        the metric's direction; None where it is not known.
    shown
        names of numbers in ``details`` that tables print below the value.

    Examples
    --------
    >>> score = uw.metrics.mig([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> score
    mig = 1
    >>> f"{score:.3f}", float(score), score.higher_is_better
    ('1.000', 1.0, True)
    """

    value: float
    details: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    metric: str = field(default="", kw_only=True, compare=False)
    higher_is_better: bool | None = field(default=None, kw_only=True, compare=False)
    shown: tuple[str, ...] = field(default=(), kw_only=True, compare=False)

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __repr__(self) -> str:
        text = f"{self.metric or 'score'} = {self.value:.6g}"
        if "interval" in self.details:
            low, high = self.details["interval"]
            text += f" (95 %: {low:.4g} to {high:.4g})"
        return text + (f" ({self.num_images} images)" if self.num_images else "")

    @property
    def num_images(self) -> str:
        """How many images it is of, as text, where its details say so: distances between sets depend on it."""
        counts = self.details.get("num_images", ())
        return " and ".join(f"{count:,}" for count in (counts if isinstance(counts, tuple) else (counts,)))
