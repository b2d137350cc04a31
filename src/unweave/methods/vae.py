"""The variational autoencoder that every method here is a composition on (Kingma & Welling 2014).

    loss = E_q(z|x)[-log p(x|z)]  +  sum of terms

The plain VAE has one term: KL(q(z|x) || N(0, I)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.methods.kl import KL
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import OptimiserSettings, Pass, Player, Term, Terms
from unweave.networks import initialise
from unweave.objectives import reparameterise, standard_noise


class Posterior(NamedTuple):
    """q(z|x) of n images: mean and log-variance, (n, D) each."""

    mean: Tensor
    log_variance: Tensor


def vae() -> list[Term]:
    """VAE: the evidence lower bound, reconstruction + KL."""
    return [KL()]


class VAE(nn.Module):
    """Encoder, decoder, likelihood, noise and terms, put together. Made by ``unweave.methods.create``.

    ``terms`` that are modules (an adversary has weights) become part of the model. ``own_networks``: those
    whose weights ``initialise`` may draw (default: encoder and decoder). ``fresh``: not trained yet, so that
    ``train`` draws the initial weights from its own seed.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        likelihood: nn.Module,
        terms: Sequence[Term],
        *,
        spec: MethodSpec,
        own_networks: Sequence[nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.likelihood = likelihood
        self.terms = list(terms)
        for term in self.terms:
            if hasattr(term, "attach"):
                term.attach(spec)
        self.term_modules = nn.ModuleList(term for term in self.terms if isinstance(term, nn.Module))
        self.spec = spec
        self._own_networks = (encoder, decoder) if own_networks is None else tuple(own_networks)
        self.fresh = True
        self.initialise(0)

    # --- using a trained model -----------------------------------------------------------------

    def encode(self, images: Tensor) -> Posterior:
        """The posterior of images (n, C, H, W) in [0, 1]."""
        return Posterior(*self.encoder(images))

    def decode(self, z: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes z (n, D)."""
        return self.likelihood.mean(self.decoder(z))  # type: ignore[operator,no-any-return]

    def reconstruct(self, images: Tensor) -> Tensor:
        """Images decoded from their mean codes."""
        return self.decode(self.encode(images).mean)

    # --- training ------------------------------------------------------------------------------

    def initialise(self, seed: int) -> None:
        """Draw all weights anew (Glorot uniform, zero bias). A user's own networks keep theirs."""
        generator = torch.Generator().manual_seed(seed)
        for module in (*self._own_networks, *self.term_modules):
            initialise(module, generator)

    def begin(self, images: Tensor, step: int, generator: torch.Generator | None = None) -> Pass:
        """One forward pass: all players of a training step use it."""
        mean, log_variance = self.encoder(images)
        noise = standard_noise(mean, self.spec.correlation, generator)
        z = reparameterise(mean, log_variance, noise)
        return Pass(
            images=images,
            step=step,
            mean=mean,
            log_variance=log_variance,
            z=z,
            output=self.decoder(z),
            correlation=self.spec.correlation,
            dataset_size=self.spec.dataset_size,
            generator=generator,
        )

    def loss(self, made: Pass) -> Terms:
        """The model's objective: reconstruction and the terms."""
        total = Terms.of(reconstruction=(self.likelihood(made.output, made.images), 1.0))
        for term in self.terms:
            total.add(term(made))
        return total

    def players(self) -> list[Player]:
        """The model itself, and the adversaries that its terms bring."""
        adversaries = [term.adversary() for term in self.terms if hasattr(term, "adversary")]
        theirs = {id(parameter) for player in adversaries for parameter in player.parameters}
        own = [p for p in self.parameters() if id(p) not in theirs and p.requires_grad]
        return [Player("model", own, self.loss, OptimiserSettings()), *adversaries]
