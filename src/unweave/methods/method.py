"""What anybody may ask of a method.

A method is a contract, not a class of model. To be trained it names its ``players`` and makes one forward pass for all
of them, ``begin``. Everything else is a capability that a method has or has not, each a protocol of its own:

==================  ==============================  =========================================================
capability          what it gives                   who asks for it
==================  ==============================  =========================================================
:class:`Encodes`    q(z|x) of images, named parts   evaluation, traversals, the table of codes
:class:`Decodes`    the expected images of codes    reconstructions, traversals
:class:`Samples`    images from the model           figures, image quality
:class:`HasDensity` log p(x) of images, in nats     density models
==================  ==============================  =========================================================

``isinstance(method, Encodes)`` tells whether a method has a capability. Training, evaluation, studies and figures know
this file and no method by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn


class Posterior(NamedTuple):
    """q(z|x) of n images: a Gaussian of mean and log-variance, (n, D) each.

    Codes without noise have the log-variance -inf.
    """

    mean: Tensor
    log_variance: Tensor


@runtime_checkable
class Encodes(Protocol):
    """A method that gives images codes.

    ``parts`` are the named parts of a code: which columns each has. A VAE has one, {"z": slice(0, D)}; a multi-stage
    model has "c" and "z". ``noise_correlation`` is s of the posterior's noise, with covariance (1-s) I + s 11^T.
    """

    @property
    def parts(self) -> Mapping[str, slice]: ...

    @property
    def noise_correlation(self) -> float: ...

    def encode(self, images: Tensor) -> Posterior:
        """q(z|x) of images (n, C, H, W) in [0, 1]."""
        ...


@runtime_checkable
class Decodes(Protocol):
    """A method that turns codes into images."""

    def decode(self, codes: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes (n, D)."""
        ...


@runtime_checkable
class Samples(Protocol):
    """A method that generates images."""

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images (n, C, H, W) from the model."""
        ...


@runtime_checkable
class HasDensity(Protocol):
    """A method that knows how probable an image is."""

    def log_density(self, images: Tensor) -> Tensor:
        """log p(x) in nats, (n,), of images (n, C, H, W)."""
        ...


@dataclass
class Terms:
    """An objective as named values and their weights; the loss is the weighted sum.

    ``Terms.of(kl=(value, weight))``. A weight of 0 makes a value that is only logged.
    """

    values: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def of(**weighted: tuple[Tensor, float]) -> Terms:
        """Terms from keyword arguments ``name=(value, weight)``."""
        pairs = weighted.items()
        return Terms(
            {name: value for name, (value, _) in pairs}, {name: weight for name, (_, weight) in pairs}
        )

    def add(self, other: Terms) -> None:
        """Add the terms of ``other``; of two terms with one name the second is numbered."""
        for name, value in other.values.items():
            key, count = name, 2
            while key in self.values:
                key, count = f"{name}_{count}", count + 1
            self.values[key] = value
            self.weights[key] = other.weights[name]

    @property
    def loss(self) -> Tensor:
        """The weighted sum."""
        weighted = [w * self.values[name] for name, w in self.weights.items() if w != 0]
        return torch.stack(weighted).sum() if len(weighted) > 1 else weighted[0]


@dataclass(frozen=True)
class OptimiserSettings:
    """Adam's settings for one player. ``learning_rate`` None: the one given to ``train``."""

    learning_rate: float | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Player:
    """One side of a training game: the parameters it moves, and the terms that it minimises.

    ``loss`` gets what ``begin`` returned. A method that is not adversarial has one player, called "model".
    """

    name: str
    parameters: Sequence[nn.Parameter]
    loss: Callable[[Any], Terms]
    optimiser: OptimiserSettings = OptimiserSettings()
