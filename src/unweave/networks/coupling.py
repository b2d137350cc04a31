"""A conditional coupling flow: an invertible map between vectors and noise, given a condition.

The flow of the multi-stage paper's appendix D (Dinh et al. 2016): affine coupling layers that change the odd and the
even entries in turn, with invertible batch normalisation between them. zuko's flows have neither this normalisation
nor these networks, so they are written here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.mlp import MLP
from unweave.parameters import Count, check_arguments

HIDDEN = (1000, 1000)
# softplus(UNIT) = 1: a new layer changes nothing in scale.
UNIT = math.log(math.e - 1)
LEAST_SCALE = 1e-3
START = 1e-2  # of the last layers' weights, relative to how they are drawn


class CouplingFlow(nn.Module):
    r"""x to noise e and back, given a condition y: e = f(x; y), log p(x|y) = log N(e; 0, I) + log |det df/dx|.

    Parameters
    ----------
    size
        the number of entries of x.
    condition_size
        the number of entries of y.
    layers
        coupling layers; the entries that they change alternate.
    hidden
        widths of the two networks in each layer.

    Examples
    --------
    >>> flow = CouplingFlow(4, 2, layers=2, hidden=(8,)).eval()
    >>> x, y = torch.randn(3, 4), torch.randn(3, 2)
    >>> noise, log_determinant = flow(x, y)
    >>> torch.allclose(flow.inverse(noise, y), x, atol=1e-5)
    True
    """

    def __init__(
        self, size: Count, condition_size: Count, layers: Count = 5, hidden: tuple[int, ...] = HIDDEN
    ) -> None:
        super().__init__()
        check_arguments(
            CouplingFlow, {"size": size, "condition_size": condition_size, "layers": layers}, "argument"
        )
        self.size = size
        self.couplings = nn.ModuleList(
            AffineCoupling(size, condition_size, first=index % 2, hidden=hidden) for index in range(layers)
        )
        self.norms = nn.ModuleList(InvertibleBatchNorm(size) for _ in range(layers - 1))

    @torch.no_grad()
    def reset(self) -> None:
        """Make it, newly drawn, close to the identity: last layers near zero, normalisation without effect."""
        for coupling, norm in self._layers():
            for network in (coupling.scale, coupling.shift):
                cast(nn.Linear, network[-1]).weight.mul_(START)
            if norm is not None:
                norm.reset()

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Noise (n, size) of vectors x (n, size) given y (n, condition_size), and log |det| (n,)."""
        log_determinant = x.new_zeros(len(x))
        for coupling, norm in self._layers():
            x, change = coupling(x, y)
            log_determinant = log_determinant + change
            if norm is not None:
                x, change = norm(x)
                log_determinant = log_determinant + change
        return x, log_determinant

    def inverse(self, noise: Tensor, y: Tensor) -> Tensor:
        """Vectors (n, size) of noise (n, size) given y. Normalisation uses its running statistics."""
        for coupling, norm in reversed(self._layers()):
            if norm is not None:
                noise = norm.inverse(noise)
            noise = coupling.inverse(noise, y)
        return noise

    def log_density(self, x: Tensor, y: Tensor) -> Tensor:
        """log p(x|y) in nats, (n,)."""
        noise, log_determinant = self.forward(x, y)
        return standard_normal_log_density(noise) + log_determinant

    def _layers(self) -> list[tuple[AffineCoupling, InvertibleBatchNorm | None]]:
        """Each coupling with the normalisation that follows it; none follows the last."""
        couplings = cast(Iterable[AffineCoupling], self.couplings)
        norms = cast(Iterable[InvertibleBatchNorm], self.norms)
        return list(zip(couplings, [*norms, None], strict=True))


class AffineCoupling(nn.Module):
    """Every second entry is scaled and shifted by functions of the others and of y; the others stay.

    The scale network has tanh layers and a softplus output, the shift network ReLU layers.
    """

    def __init__(self, size: int, condition_size: int, first: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        changed = torch.arange(size) % 2 == first % 2
        if size == 1:  # nothing else to read but y
            changed = torch.ones(1, dtype=torch.bool)
        self.register_buffer("changed", changed.nonzero().squeeze(1), persistent=False)
        self.register_buffer("kept", (~changed).nonzero().squeeze(1), persistent=False)
        inputs = len(self.kept) + condition_size
        self.scale = MLP(inputs, hidden, len(self.changed), activation="tanh")
        self.shift = MLP(inputs, hidden, len(self.changed), activation="relu")

    changed: Tensor
    kept: Tensor

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The changed vectors and log |det| (n,)."""
        scale, shift = self._affine(x, y)
        result = x.index_copy(1, self.changed, x[:, self.changed] * scale + shift)
        return result, scale.log().sum(1)

    def inverse(self, x: Tensor, y: Tensor) -> Tensor:
        """What ``forward`` was given."""
        scale, shift = self._affine(x, y)
        return x.index_copy(1, self.changed, (x[:, self.changed] - shift) / scale)

    def _affine(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        inputs = torch.cat([x[:, self.kept], y], dim=1)
        return F.softplus(self.scale(inputs) + UNIT) + LEAST_SCALE, self.shift(inputs)


class InvertibleBatchNorm(nn.Module):
    """Batch normalisation as a layer of a flow (Dinh et al. 2016, section 3.7).

    In training it uses the statistics of the batch and keeps a running average; in evaluation that average, so that it
    is a fixed map.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, size: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.epsilon = momentum, epsilon
        self.log_scale, self.shift = nn.Parameter(torch.zeros(size)), nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))

    @torch.no_grad()
    def reset(self) -> None:
        """Forget what was learned."""
        for zero in (self.log_scale, self.shift, self.mean):
            zero.zero_()
        self.variance.fill_(1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Normalised vectors and log |det| (n,)."""
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.variance.lerp_(variance, self.momentum)
        variance = variance + self.epsilon
        result = (x - mean) / variance.sqrt() * self.log_scale.exp() + self.shift
        return result, (self.log_scale - 0.5 * variance.log()).sum().expand(len(x))

    def inverse(self, x: Tensor) -> Tensor:
        """What ``forward`` was given in evaluation mode."""
        deviation = (self.variance + self.epsilon).sqrt()
        return (x - self.shift) * (-self.log_scale).exp() * deviation + self.mean


def standard_normal_log_density(x: Tensor) -> Tensor:
    """log N(x; 0, I) in nats, (n,), of vectors (n, D).

    Examples
    --------
    >>> standard_normal_log_density(torch.zeros(1, 2))   # -log 2 pi
    tensor([-1.8379])
    """
    return -0.5 * (x.square() + math.log(2 * math.pi)).sum(1)
