"""FactorVAE (Kim & Mnih 2018): total correlation by an adversary that tells q(z) from prod_j q(z_j)."""

from __future__ import annotations

from torch import nn

from unweave.methods.checks import check_not_negative
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import OptimiserSettings, Pass, Player, Term, Terms, frozen, register_term
from unweave.methods.vae.kl import KL
from unweave.networks import Discriminator
from unweave.objectives import density_ratio, discriminator_loss, permute_dimensions


def factor_vae(gamma: float = 10.0) -> list[Term]:
    """reconstruction + KL + gamma * TC(z). The paper's grid: gamma in {10, 20, 30, 40, 50, 100}."""
    return [KL(), DensityRatio(gamma)]


@register_term("density_ratio")
class DensityRatio(nn.Module):
    """``weight`` * TC(z) by the density-ratio trick, and the adversary that learns the ratio.

    TC(z) = E_q(z)[log q(z) - log prod_j q(z_j)] ~ mean of (logit_0 - logit_1) of a discriminator that is
    trained to tell codes (class 0) from codes whose dimensions were permuted over the batch (class 1).
    One batch serves the model, the estimate and the permutation, as in disentanglement_lib.
    """

    discriminator: nn.Module

    def __init__(self, weight: float = 10.0) -> None:
        super().__init__()
        check_not_negative("gamma", weight)
        self.weight = weight

    def attach(self, spec: MethodSpec) -> None:
        """Make the adversary for codes of the method's size."""
        self.discriminator = Discriminator(spec.latent_size)

    def forward(self, made: Pass) -> Terms:
        """The model's side: the adversary's weights get no gradient."""
        with frozen(self.discriminator):
            logits = self.discriminator(made.z)
        return Terms.of(total_correlation=(density_ratio(logits), self.weight))

    def adversary(self) -> Player:
        """The discriminator's side: Adam(1e-4, 0.5, 0.9), as in the papers."""
        settings = OptimiserSettings(learning_rate=1e-4, betas=(0.5, 0.9))
        return Player("discriminator", list(self.discriminator.parameters()), self._adversary_loss, settings)

    def _adversary_loss(self, made: Pass) -> Terms:
        codes = made.z.detach()
        permuted = permute_dimensions(codes, made.generator)
        loss = discriminator_loss(self.discriminator(codes), self.discriminator(permuted))
        return Terms.of(discriminator=(loss, 1.0))
