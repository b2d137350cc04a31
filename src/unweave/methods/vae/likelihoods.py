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


LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "gaussian_learned": lambda: Gaussian(learned=True),
    "laplace": Laplace,
    "mse": SquaredError,
}


def create_likelihood(name: str) -> Likelihood:
    """A likelihood by name.

    Examples
    --------
    >>> create_likelihood("mse")
    SquaredError()
    """
    if name not in LIKELIHOODS:
        raise unknown_name("reconstruction", name, LIKELIHOODS)
    return LIKELIHOODS[name]()
