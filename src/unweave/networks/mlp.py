"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from unweave.errors import unknown_name
from unweave.networks.blocks import Dense
from unweave.networks.shapes import check_latent_size, number_of_values, tensor_shape

ACTIVATIONS: dict[str, Callable[[float], nn.Module]] = {
    "relu": lambda slope: nn.ReLU(),
    "leaky_relu": lambda slope: nn.LeakyReLU(slope),
    "tanh": lambda slope: nn.Tanh(),
}


class MLP(nn.Sequential):
    """Linear layers of the ``hidden`` sizes, an activation after each, and a last linear layer without one.

    ``output_size`` None leaves the last layer out; ``slope`` is the leaky ReLU's below zero.

    >>> MLP(5, (1000, 1000, 1000), 10, activation="leaky_relu")(torch.zeros(2, 5)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        input_size: int,
        hidden: Sequence[int],
        output_size: int | None,
        activation: str = "relu",
        slope: float = 0.2,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise unknown_name("activation", activation, ACTIVATIONS)
        layers: list[nn.Module] = []
        sizes = [input_size, *hidden]
        for before, after in pairwise(sizes):
            layers += [Dense(before, after), ACTIVATIONS[activation](slope)]
        if output_size is not None:
            layers.append(Dense(sizes[-1], output_size))
        super().__init__(*layers)


class GaussianHeads(nn.Module):
    """Mean and log-variance, a linear layer each, of features (…, F) and ``conditioning`` values u (…, d).

    Examples
    --------
    >>> import torch
    >>> heads = GaussianHeads(features=8, latent_size=3, conditioning=2)
    >>> mean, log_variance = heads(torch.zeros(5, 8), torch.zeros(5, 2))
    >>> mean.shape
    torch.Size([5, 3])
    """

    def __init__(self, features: int, latent_size: int, conditioning: int = 0) -> None:
        super().__init__()
        check_latent_size(latent_size)
        self.conditioning = conditioning
        self.mean = nn.Linear(features + conditioning, latent_size)
        self.log_variance = nn.Linear(features + conditioning, latent_size)

    def forward(self, features: Tensor, u: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log-variance, (…, latent_size) each."""
        if self.conditioning:
            if u is None:
                raise TypeError(f"this encoder takes u with {self.conditioning} values: encoder(x, u)")
            features = torch.cat([features, u], dim=-1)
        elif u is not None:
            raise TypeError("this encoder was created without conditioning and takes no u")
        return self.mean(features), self.log_variance(features)


class GaussianEncoder(nn.Module):
    """An encoder whose ``heads`` read features of the image next to u: only the heads see u.

    Examples
    --------
    >>> import torch
    >>> isinstance(MLPEncoder((6,), latent_size=3), GaussianEncoder)
    True
    """

    heads: GaussianHeads

    def forward(self, x: Tensor, u: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Images (n, C, H, W), or vectors, to mean and log-variance (n, latent_size)."""
        mean, log_variance = self.heads(self.extract(x), u)
        return mean, log_variance

    def extract(self, x: Tensor) -> Tensor:
        """The features (n, F) that the heads read next to u."""
        raise NotImplementedError


class MLPEncoder(GaussianEncoder):
    """disentanglement_lib's fully connected encoder: ReLU layers on the flattened image, two heads.

    Examples
    --------
    >>> import torch
    >>> MLPEncoder((6,), latent_size=3)(torch.zeros(2, 6))[0].shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        latent_size: int,
        hidden: Sequence[int] = (1200, 1200),
        conditioning: int = 0,
    ) -> None:
        super().__init__()
        inputs = number_of_values(image_shape)
        self.features = MLP(inputs, hidden, None)
        self.heads = GaussianHeads(hidden[-1] if hidden else inputs, latent_size, conditioning)

    def extract(self, x: Tensor) -> Tensor:
        """The features (n, F) that the heads read next to u."""
        features: Tensor = self.features(x.flatten(1))
        return features


class MLPDecoder(nn.Module):
    """disentanglement_lib's fully connected decoder: tanh layers, outputs (logits) shaped as the image.

    Examples
    --------
    >>> import torch
    >>> MLPDecoder(3, (8, 8, 1))(torch.zeros(2, 3)).shape
    torch.Size([2, 1, 8, 8])
    """

    def __init__(
        self,
        latent_size: int,
        image_shape: tuple[int, ...],
        hidden: Sequence[int] = (1200, 1200, 1200),
    ) -> None:
        super().__init__()
        check_latent_size(latent_size)
        self.output_shape = tensor_shape(image_shape)
        self.layers = MLP(latent_size, hidden, number_of_values(image_shape), activation="tanh")

    def forward(self, z: Tensor) -> Tensor:
        """Codes (n, latent_size) to outputs (n, C, H, W), or (n, size) for vectors."""
        output: Tensor = self.layers(z)
        return output.view(-1, *self.output_shape)


class Discriminator(MLP):
    """FactorVAE's adversary as in disentanglement_lib: 6 layers of 1000, leaky ReLU 0.2, 2 logits.

    Examples
    --------
    >>> import torch
    >>> Discriminator(10)(torch.zeros(2, 10)).shape
    torch.Size([2, 2])
    """

    def __init__(self, latent_size: int) -> None:
        check_latent_size(latent_size)
        super().__init__(latent_size, (1000,) * 6, 2, activation="leaky_relu", slope=0.2)
