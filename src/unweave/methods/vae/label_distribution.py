"""A distribution over labels u: Gaussian for those on a scale, categorical for those that are one-hot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.data.supervision.labels import LabelColumn
from unweave.methods.label_layout import LabelLayout
from unweave.objectives import log_density
from unweave.objectives.labels import (
    categorical_entropy,
    gaussian_entropy,
    gumbel_noise,
    straight_through,
)


@dataclass(frozen=True)
class LabelDistribution:
    """prod_k p(u_k) of n images; results have one column per label, (n, K).

    Parameters
    ----------
    layout
        the labels.
    location
        (n, d): means, and logits of one-hot labels.
    log_variance
        (n, d) or (d,): of the Gaussian labels, and not used for the others.

    Examples
    --------
    >>> import torch
    >>> layout = LabelLayout.of({"columns": [{"name": "shape", "size": 4, "one_hot": True}]})
    >>> LabelDistribution(layout, torch.zeros(2, 4), torch.zeros(4)).entropy().exp()
    tensor([[4.], [4.]])
    """

    layout: LabelLayout
    location: Tensor
    log_variance: Tensor

    def log_probability(self, u: Tensor) -> Tensor:
        """log p(u_k), (n, K); u must be known. One-hot labels may be relaxed: it is linear in them."""
        variance = self.log_variance.expand_as(self.location)
        gaussian = log_density(u, self.location, variance)
        return self._by_label(gaussian, lambda block: (u[:, block] * self._log_softmax(block)).sum(-1))

    def entropy(self) -> Tensor:
        """H(u_k) in nats, (n, K)."""
        gaussian = gaussian_entropy(self.log_variance.expand_as(self.location))
        return self._by_label(gaussian, lambda block: categorical_entropy(self.location[:, block]))

    def cross_entropy(self, mean: Tensor, variance: Tensor) -> Tensor:
        """-E[log p(u_k)], (n, K), for another p(u): N(mean, variance), (d,) each, for labels on a scale, and uniform
        over the categories of one-hot ones."""
        distance = (self.location - mean).square() + self.log_variance.expand_as(self.location).exp()
        gaussian = 0.5 * (distance / variance + (2 * math.pi * variance).log())
        return self._by_label(
            gaussian, lambda block: gaussian.new_full((len(gaussian),), math.log(block.stop - block.start))
        )

    def sample(self, temperature: float, generator: torch.Generator | None = None) -> Tensor:
        """u (n, d): a reparameterised draw; of one-hot labels by the straight-through Gumbel-softmax."""
        noise = torch.randn(
            self.location.shape, generator=generator, dtype=self.location.dtype, device=self.location.device
        )
        drawn = self.location + torch.exp(0.5 * self.log_variance) * noise
        if len(self.layout.scaled) == len(self.layout.columns):
            return drawn
        gumbel = gumbel_noise(self.location, generator)
        parts = []
        for column, block in self._blocks():
            if column.one_hot:
                parts.append(straight_through(self.location[:, block], gumbel[:, block], temperature))
            else:
                parts.append(drawn[:, block])
        return torch.cat(parts, dim=1)

    def mode(self) -> Tensor:
        """u (n, d): the most probable labels."""
        parts = []
        for column, block in self._blocks():
            part = self.location[:, block]
            parts.append(F.one_hot(part.argmax(1), column.width).to(part.dtype) if column.one_hot else part)
        return torch.cat(parts, dim=1)

    def _blocks(self) -> list[tuple[LabelColumn, slice]]:
        starts = zip(self.layout.columns, self.layout.starts, strict=True)
        return [(column, slice(start, start + column.width)) for column, start in starts]

    def _log_softmax(self, block: slice) -> Tensor:
        return F.log_softmax(self.location[:, block], dim=-1)

    def _by_label(self, gaussian: Tensor, categorical: Any) -> Tensor:
        """(n, K): of scaled labels the entry in ``gaussian`` (n, d), of others ``categorical(block)`` (n,)."""
        if len(self.layout.scaled) == len(self.layout.columns):
            return gaussian
        return torch.stack(
            [
                categorical(block) if column.one_hot else gaussian[:, block.start]
                for column, block in self._blocks()
            ],
            dim=1,
        )
