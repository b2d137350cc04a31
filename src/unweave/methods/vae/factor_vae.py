"""FactorVAE (Kim & Mnih 2018): total correlation by an adversary that distinguishes q(z) from prod_j q(z_j)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from unweave.methods.method import OptimiserSettings, Player, Terms
from unweave.methods.registry import register_method, register_term
from unweave.methods.spec import VAESpec
from unweave.methods.vae.kl import KL
from unweave.methods.vae.terms import Pass, Term
from unweave.networks import Discriminator, frozen
from unweave.objectives import density_ratio, discriminator_loss, permute_dimensions
from unweave.parameters import NonNegative, check_value


@register_method(
    "factor_vae",
    label="FactorVAE",
    paper="Kim & Mnih 2018",
    strength_label="γ",
    color="#E69F00",
    marker="s",
    order=3,
    labels="none",
)
def factor_vae(gamma: NonNegative = 10.0) -> list[Term[Any]]:
    """reconstruction + KL + gamma * TC(z). The paper's grid: gamma in {10, 20, 30, 40, 50, 100}.

    Examples
    --------
    >>> factor_vae(20.0)[1].weight
    20.0
    """
    return [KL(), DensityRatio(gamma)]


@register_term("density_ratio")
class DensityRatio(nn.Module, Term[Pass]):
    """weight * TC(z) by the density-ratio trick, and the adversary that learns the ratio.

    TC(z) = E_q(z)[log q(z) - log prod_j q(z_j)] ~ mean of (logit_0 - logit_1) of a discriminator that is
    trained to distinguish codes (class 0) from codes whose dimensions were permuted over the batch (class 1).
    One batch serves the model, the estimate and the permutation, as in disentanglement_lib.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> method = uw.methods.create("vae", data, extra_terms=[{"name": "density_ratio", "weight": 3.0}])
    >>> [player.name for player in method.players()]
    ['model', 'discriminator']
    """

    discriminator: nn.Module

    def __init__(self, weight: NonNegative = 10.0) -> None:
        super().__init__()
        check_value("weight", weight, NonNegative)
        self.weight = weight

    def attach(self, spec: VAESpec) -> None:
        """Make the adversary for codes of the method's size."""
        self.discriminator = Discriminator(spec.latent_size)

    def settings(self) -> dict[str, Any]:
        """The weight."""
        return {"weight": self.weight}

    def forward(self, forward_pass: Pass) -> Terms:
        """The model's side: the adversary's weights get no gradient."""
        with frozen(self.discriminator):
            logits = self.discriminator(forward_pass.z)
        return Terms.of(total_correlation=(density_ratio(logits), self.weight))

    def adversary(self) -> Player:
        """The discriminator's side: Adam(1e-4, 0.5, 0.9), as in the papers."""
        settings = OptimiserSettings(learning_rate=1e-4, betas=(0.5, 0.9))
        return Player("discriminator", list(self.discriminator.parameters()), self._adversary_loss, settings)

    def _adversary_loss(self, forward_pass: Pass) -> Terms:
        codes = forward_pass.z.detach()
        permuted = permute_dimensions(codes, forward_pass.generator)
        logits = self.discriminator(torch.cat([codes, permuted]))  # at once: its weights are read once
        loss = discriminator_loss(*logits.split([len(codes), len(permuted)]))
        return Terms.of(discriminator=(loss, 1.0))
