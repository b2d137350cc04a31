"""An objective is a sum of named terms. A term turns one forward pass into weighted values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unweave.errors import unknown_name
from unweave.methods.method import OptimiserSettings as OptimiserSettings
from unweave.methods.method import Player as Player
from unweave.methods.method import Posterior as Posterior
from unweave.methods.method import Terms as Terms
from unweave.methods.vae.label_distribution import LabelDistribution
from unweave.objectives import correlation_constant, kl_between, kl_to_standard_normal


@dataclass
class Labelled:
    """Labelled images of a step: their labels u (n, d), NaN where unknown, and what the networks made of them.

    ``mean`` (n, D) are the mean codes, of an encoder that takes no labels; ``prediction`` is q(u|x).
    """

    u: Tensor
    mean: Tensor | None = None
    prediction: LabelDistribution | None = None


@dataclass
class Pass:
    """What one forward pass of a VAE made, for its terms to use.

    mean, log_variance, z
        (n, D): the posterior q(z|x) of each image and one sample of it.
    output
        the decoder's output for z: logits or means, shaped as the images.
    correlation
        s of the posterior's noise covariance (1-s) I + s 11^T.
    dataset_size
        N, or None for an endless data set.
    u
        (n, d): the labels of the images; those that are ``missing`` (n, K) are draws from q(u|x), the ``prediction``.
    prior
        p(z|u) of each image; None: N(0, I).
    label_posterior
        q(z|u) of a second VAE, on the labels, for its own loss; None where there is none.
    labelled
        images with labels: these ones, or others if some of these have none.
    """

    images: Tensor
    step: int
    mean: Tensor
    log_variance: Tensor
    z: Tensor
    output: Tensor
    correlation: float
    dataset_size: int | None
    generator: torch.Generator | None
    u: Tensor | None = None
    missing: Tensor | None = None
    prediction: LabelDistribution | None = None
    prior: Posterior | None = None
    label_posterior: Posterior | None = None
    labelled: Labelled | None = None

    @cached_property
    def kl(self) -> Tensor:
        """Batch mean of KL(q(z|x) || p(z)), or of KL(q(z|x,u) || p(z|u)), in nats; exact for correlated noise too."""
        constant = correlation_constant(self.correlation, self.mean.shape[1])
        if self.prior is None:
            return kl_to_standard_normal(self.mean, self.log_variance).sum(1).mean() + constant
        return kl_between(self.mean, self.log_variance, *self.prior).sum(1).mean() + constant


class Term(Protocol):
    """A part of an objective. Any callable will do; one with parameters is an ``nn.Module``."""

    def __call__(self, made: Pass) -> Terms: ...


TERMS: dict[str, Callable[..., Term]] = {}


def register_term(name: str) -> Callable[[Any], Any]:
    """Make a term known by name, so that run specs and the command line can use it."""

    def register(factory: Any) -> Any:
        TERMS[name] = factory
        factory.term_name = name
        return factory

    return register


def create_term(name: str, **parameters: Any) -> Term:
    """A registered term by name."""
    if name not in TERMS:
        raise unknown_name("term", name, TERMS)
    return TERMS[name](**parameters)


@contextmanager
def frozen(module: nn.Module) -> Iterator[nn.Module]:
    """Gradients flow through the module to its input, and none reaches its parameters."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield module
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)
