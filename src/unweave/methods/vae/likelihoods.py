"""p(x|z): how far an image is from the decoder's output, in nats summed over pixels."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from unweave.errors import ArgumentError, unknown_name
from unweave.objectives import reconstruction


class Bernoulli(nn.Module):
    """Cross entropy on real-valued pixels in [0, 1]; the decoder gives logits."""

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z)."""
        return reconstruction.bernoulli(output, images)

    def mean(self, output: Tensor) -> Tensor:
        """The expected image."""
        return torch.sigmoid(output)


class Gaussian(nn.Module):
    """Normal around the decoder's output. ``variance`` is held fixed, or is where ``learned`` starts."""

    def __init__(self, variance: float = 1.0, learned: bool = False) -> None:
        super().__init__()
        _check_positive("variance", variance)
        self.start = math.log(variance)
        self.log_variance = nn.Parameter(torch.tensor(self.start), requires_grad=learned)

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z), constants included."""
        return reconstruction.gaussian(output, images, self.log_variance)

    def mean(self, output: Tensor) -> Tensor:
        """The expected image."""
        return output


class Laplace(nn.Module):
    """Laplace around the decoder's output, of a fixed ``scale``: absolute errors."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        _check_positive("scale", scale)
        self.log_scale = math.log(scale)

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z), constants included."""
        return reconstruction.laplace(output, images, self.log_scale)

    def mean(self, output: Tensor) -> Tensor:
        """The expected image."""
        return output


class SquaredError(nn.Module):
    """The plain sum of squared errors, as many libraries take for a reconstruction loss."""

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of the sum over pixels of (x - output)^2."""
        return reconstruction.squared_error(output, images)

    def mean(self, output: Tensor) -> Tensor:
        """The expected image."""
        return output


LIKELIHOODS: dict[str, Callable[[], nn.Module]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "gaussian_learned": lambda: Gaussian(learned=True),
    "laplace": Laplace,
    "mse": SquaredError,
}


def create_likelihood(name: str) -> nn.Module:
    """A likelihood by name."""
    if name not in LIKELIHOODS:
        raise unknown_name("reconstruction", name, LIKELIHOODS)
    return LIKELIHOODS[name]()


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(name, value, "needs a positive number")
