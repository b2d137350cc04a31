"""The network that refines a vector, such as a curve, by a code: G of the multi-stage paper without convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.adain import AdaptiveInstanceNorm, Modulation
from unweave.networks.dcgan import SLOPE

HIDDEN = (256, 256, 256)


class AdaINMLP(nn.Module):
    """(y, z) to x: linear layers on y, each normalised and modulated by z, and their output added to y.

    The paper's G is for images. For its pendulum it says only that observations are vectors of fixed length; this is
    the same idea: y alone goes in, z scales and shifts what is normalised, leaky ReLU 0.2.

    Parameters
    ----------
    size
        the number of entries of x and of y.
    latent_size
        the size of z.
    hidden
        sizes of the layers.
    modulation
        see :class:`~unweave.networks.adain.AdaptiveInstanceNorm`; without positions, "position" is ReLU alone.

    Examples
    --------
    >>> import torch
    >>> AdaINMLP(6, latent_size=2, hidden=(8,))(torch.zeros(3, 6), torch.zeros(3, 2)).shape
    torch.Size([3, 6])
    """

    def __init__(
        self, size: int, latent_size: int, hidden: Sequence[int] = HIDDEN, modulation: Modulation = "channel"
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([size, *hidden]))
        self.norms = nn.ModuleList(
            AdaptiveInstanceNorm((width,), latent_size, modulation) for width in hidden
        )
        self.output = nn.Linear(hidden[-1], size)

    def forward(self, y: Tensor, z: Tensor) -> Tensor:
        """x (n, size) of y (n, size) and z (n, latent_size)."""
        h = y
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = F.leaky_relu(norm(layer(h), z), SLOPE)
        refined: Tensor = y + self.output(h)
        return refined
