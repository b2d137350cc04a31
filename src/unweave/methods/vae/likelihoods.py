"""p(x|z): how far an image is from the decoder's output, in nats summed over pixels."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from unweave.errors import unknown_name
from unweave.objectives import reconstruction
from unweave.parameters import Positive, check_value


class Likelihood(nn.Module):
    """p(x|z), from the decoder's output: the base class."""

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z)."""
        raise NotImplementedError

    def mean(self, output: Tensor) -> Tensor:
        """The expected image."""
        return output


class Bernoulli(Likelihood):
    """Cross entropy on real-valued pixels in [0, 1]; the decoder gives logits.

    Examples
    --------
    >>> import torch
    >>> Bernoulli()(torch.zeros(1, 4), torch.ones(1, 4)) / 4  # log 2 of each pixel
    tensor(0.6931)
    """

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z)."""
        return reconstruction.bernoulli(output, images)

    def mean(self, output: Tensor) -> Tensor:
        """The expected image."""
        return torch.sigmoid(output)


class Gaussian(Likelihood):
    """Normal around the decoder's output. ``variance`` is held fixed, or is where ``learned`` starts.

    The learned one is a number for all pixels, as in Rybkin et al. ("Simple and effective VAE training with calibrated
    decoders", 2021), who start at 1. Adam moves its logarithm by no more than the learning rate in a step: from 1, at
    1e-4, it would take some 50,000 steps to come down to the errors of dSprites, and a VAE would code next to nothing
    until then. So "gaussian_learned" starts at 1/12 for images, the variance of a pixel of which nothing is known but
    that it is in [0, 1]; for vectors, whose scale is the user's, at 1.

    Examples
    --------
    >>> import torch
    >>> Gaussian(variance=0.5)(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(3.1447)
    """

    def __init__(self, variance: Positive = 1.0, learned: bool = False) -> None:
        super().__init__()
        start = math.log(check_value("variance", variance, Positive))
        self.log_variance = nn.Parameter(torch.tensor(start), requires_grad=learned)

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z), constants included."""
        return reconstruction.gaussian(output, images, self.log_variance)


class Laplace(Likelihood):
    """Laplace around the decoder's output, of a fixed ``scale``: absolute errors.

    Examples
    --------
    >>> import torch
    >>> Laplace()(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(3.3863)
    """

    def __init__(self, scale: Positive = 1.0) -> None:
        super().__init__()
        self.log_scale = math.log(check_value("scale", scale, Positive))

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of -log p(x|z), constants included."""
        return reconstruction.laplace(output, images, self.log_scale)


class SquaredError(Likelihood):
    """The sum of squared errors, as many libraries take for a reconstruction loss.

    Examples
    --------
    >>> import torch
    >>> SquaredError()(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(2.)
    """

    def forward(self, output: Tensor, images: Tensor) -> Tensor:
        """Batch mean of the sum over pixels of (x - output)^2."""
        return reconstruction.squared_error(output, images)


UNKNOWN_PIXEL = 1 / 12  # the variance of a uniform number in [0, 1]

LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "gaussian_learned": lambda: Gaussian(learned=True),
    "laplace": Laplace,
    "mse": SquaredError,
}


def create_likelihood(name: str, of_images: bool = True) -> Likelihood:
    """A likelihood by name, of pixels in [0, 1] or else of numbers of any scale.

    Examples
    --------
    >>> create_likelihood("mse")
    SquaredError()
    >>> create_likelihood("gaussian_learned").log_variance.exp().item()
    0.0833
    """
    if name not in LIKELIHOODS:
        raise unknown_name("reconstruction", name, LIKELIHOODS)
    likelihood = LIKELIHOODS[name]()
    if isinstance(likelihood, Gaussian) and likelihood.log_variance.requires_grad and of_images:
        return Gaussian(UNKNOWN_PIXEL, learned=True)
    return likelihood
