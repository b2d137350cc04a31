"""An objective is a sum of named terms. A term turns one forward pass of a VAE into weighted values.

Forward passes are typed by what they hold, as batches are:

==========================  =============================================================================
:class:`Pass`               q(z|x), a draw z, the decoder's output
:class:`LabelledPass`       and the mean codes of images with labels
:class:`ConditionalPass`    q(z|x,u) and a prior p(z|u) instead of N(0, I)
:class:`PredictedPass`      and q(u|x), from which missing labels are drawn
==========================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from unweave.arrays import to_python
from unweave.data.batches import Batch
from unweave.errors import ArgumentError
from unweave.methods.method import Player, Posterior, Terms
from unweave.methods.registry import TERMS
from unweave.methods.spec import VAESpec
from unweave.methods.vae.label_distribution import LabelDistribution
from unweave.objectives import correlation_constant, kl_between, kl_to_standard_normal

AnyPass = TypeVar("AnyPass", bound="Pass", contravariant=True)


@dataclass
class Pass:
    """One forward pass of a VAE, for its terms to use.

    Parameters
    ----------
    batch
        the images, and what came with them.
    step
        the number of the training step.
    posterior
        q(z|x) of each image, (n, D).
    z
        (n, D): one draw of it.
    output
        the decoder's output for z: logits or means, shaped as the images.
    correlation
        s of the posterior's noise covariance (1-s) I + s 11^T.
    dataset_size
        N, or None for an endless data set.
    generator
        of all random numbers of this step.
    shared
        what a term has computed for the model and its adversary needs too, by the term.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> method = uw.methods.create("vae", data, latent_size=2)
    >>> method.begin(data.batch(step=0, batch_size=3), step=0).z.shape
    torch.Size([3, 2])
    """

    batch: Batch
    step: int
    posterior: Posterior
    z: Tensor
    output: Tensor
    correlation: float = 0.0
    dataset_size: int | None = None
    generator: torch.Generator | None = None
    shared: dict[Any, Any] = field(default_factory=dict)

    @property
    def images(self) -> Tensor:
        """(n, C, H, W)."""
        return self.batch.images

    @property
    def mean(self) -> Tensor:
        """(n, D): the mean of q(z|x)."""
        return self.posterior.mean

    @property
    def log_variance(self) -> Tensor:
        """(n, D): the log-variance of q(z|x)."""
        return self.posterior.log_variance

    @cached_property
    def kl(self) -> Tensor:
        """Batch mean of KL(q(z|x) || p(z)) in nats; exact for correlated noise too."""
        constant = correlation_constant(self.correlation, self.mean.shape[1])
        return self._kl_per_latent().sum(1).mean() + constant

    def _kl_per_latent(self) -> Tensor:
        return kl_to_standard_normal(*self.posterior)


@dataclass(kw_only=True)
class LabelledPass(Pass):
    """A forward pass with images whose labels are known: those of the batch, or further ones if some have none.

    Parameters
    ----------
    labelled_u
        (m, d): their labels, NaN where unknown.
    labelled_mean
        (m, D): their mean codes, by an encoder that takes no labels.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("full_vae", data, latent_size=2)
    >>> method.begin(method.batches(data).draw(0, 3, seed=0), step=0).labelled_mean.shape
    torch.Size([3, 2])
    """

    labelled_u: Tensor
    labelled_mean: Tensor


@dataclass(kw_only=True)
class ConditionalPass(Pass):
    """A forward pass of an encoder q(z|x,u) that takes labels.

    Parameters
    ----------
    u
        (n, d): the labels of the images, none missing.
    prior
        p(z|u) of each image, as the KL takes it.
    label_posterior
        the same with gradients to the prior's weights, for its own loss.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("ivae", data, latent_size=2)
    >>> method.begin(method.batches(data).draw(0, 3, seed=0), step=0).prior.mean.shape
    torch.Size([3, 2])
    """

    u: Tensor
    prior: Posterior
    label_posterior: Posterior

    def _kl_per_latent(self) -> Tensor:
        return kl_between(*self.posterior, *self.prior)


@dataclass(kw_only=True)
class PredictedPass(ConditionalPass):
    """A forward pass in which missing labels are drawn from q(u|x).

    Parameters
    ----------
    missing
        (n, K): which labels are.
    prediction
        q(u|x) of the images.
    labelled_u
        (m, d): the labels of images that have some, NaN where unknown.
    labelled_prediction
        q(u|x) of these.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("ss_ivae", data, latent_size=2, labels={"labelled": 2})
    >>> method.begin(method.batches(data).draw(0, 3, seed=0), step=0).missing.shape
    torch.Size([3, 1])
    """

    missing: Tensor
    prediction: LabelDistribution
    labelled_u: Tensor
    labelled_prediction: LabelDistribution


@dataclass(kw_only=True)
class ApartPass(PredictedPass):
    """A forward pass of images without labels, next to one of labelled images: their means count apart.

    Parameters
    ----------
    labelled_pass
        that of the labelled images.
    """

    labelled_pass: ConditionalPass


class Term(Generic[AnyPass]):
    """A part of an objective: the base class of terms.

    A subclass gives ``__call__``, from a forward pass to weighted values, and the hooks that it needs. One with weights
    is an ``nn.Module`` as well, and gives ``forward``. A dataclass is kept in specs with its fields; any other term
    says in :meth:`settings` what it was created with.

    Attributes
    ----------
    needs_labels
        whether training batches must have labels, so that passes are :class:`LabelledPass`.

    Examples
    --------
    >>> class Sparsity(Term):
    ...     def __call__(self, forward_pass):
    ...         return Terms.of(sparsity=(forward_pass.mean.abs().sum(1).mean(), 1.0))
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> method = uw.methods.create("vae", data, extra_terms=[Sparsity()])
    >>> list(method.loss(method.begin(data.batch(0), 0)).values)
    ['reconstruction', 'kl', 'sparsity']
    """

    needs_labels: ClassVar[bool] = False

    def attach(self, spec: VAESpec) -> None:
        """Called once, before the first pass: check the method that it is part of, make networks for it."""

    def adversary(self) -> Player | None:
        """The player that learns against the model, if there is one."""
        return None

    def settings(self) -> dict[str, Any]:
        """The arguments that it was created with."""
        return asdict(self) if is_dataclass(self) and not isinstance(self, type) else {}

    def __call__(self, forward_pass: AnyPass) -> Terms:
        """The weighted values of a forward pass."""
        raise NotImplementedError


class FunctionTerm(Term[Pass]):
    """A term that is any function of a forward pass, without hooks."""

    def __init__(self, function: Callable[[Pass], Terms]) -> None:
        self.function = function

    def settings(self) -> dict[str, Any]:
        """The fields of a dataclass."""
        function: Any = self.function
        return asdict(function) if is_dataclass(function) and not isinstance(function, type) else {}

    def __call__(self, forward_pass: Pass) -> Terms:
        return self.function(forward_pass)


def as_term(given: Any) -> Term[Any]:
    """A term as it is; any other function of a forward pass as a term.

    Examples
    --------
    >>> as_term(lambda forward_pass: Terms()).needs_labels
    False
    """
    if isinstance(given, Term):
        return given
    if isinstance(given, nn.Module):
        needs = "a term with weights derives from unweave.methods.Term as well as from nn.Module"
        raise ArgumentError("extra_terms", type(given).__name__, needs)
    if not callable(given):
        raise ArgumentError(
            "extra_terms", given, "needs a function of a forward pass, or a mapping with a 'name'"
        )
    return FunctionTerm(given)


def describe_term(term: Term[Any]) -> dict[str, Any]:
    """A term as a mapping: its registered name, or else its class, and its settings.

    Examples
    --------
    >>> from unweave.methods import KL
    >>> describe_term(KL(4.0))
    {'name': 'kl', 'weight': 4.0}
    """
    kind = type(term.function if isinstance(term, FunctionTerm) else term)
    name = TERMS.name_of(kind) or f"{kind.__module__}:{kind.__qualname__}"
    return {"name": name, **to_python(term.settings())}
