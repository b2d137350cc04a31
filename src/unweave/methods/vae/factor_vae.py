"""FactorVAE (Kim & Mnih 2018): total correlation by an adversary that distinguishes q(z) from prod_j q(z_j)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from unweave.errors import UnweaveError
from unweave.methods.method import OptimiserSettings, Player, Terms
from unweave.methods.registry import register_method, register_term
from unweave.methods.spec import VAESpec
from unweave.methods.vae.kl import KL
from unweave.methods.vae.terms import Pass, Term
from unweave.networks import Discriminator, frozen
from unweave.objectives import density_ratio, discriminator_loss, permute_dimensions
from unweave.parameters import NonNegative, check_value

_LEAST = 1e-20  # of |a_i|: an adversary that is sure of a row would leave nothing to divide by


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
        return Terms.of(total_correlation=(self._both_sides(forward_pass)[0], self.weight))

    def adversary(self) -> Player:
        """The discriminator's side: Adam(1e-4, 0.5, 0.9), as in the papers. The model gets no gradient."""
        settings = OptimiserSettings(learning_rate=1e-4, betas=(0.5, 0.9))
        return Player("discriminator", list(self.discriminator.parameters()), self._adversary_loss, settings)

    def _adversary_loss(self, forward_pass: Pass) -> Terms:
        return Terms.of(discriminator=(self._both_sides(forward_pass)[1], 1.0))

    def _both_sides(self, forward_pass: Pass) -> tuple[Tensor, Tensor]:
        if self not in forward_pass.shared:
            permuted = permute_dimensions(forward_pass.z.detach(), forward_pass.generator)
            forward_pass.shared[self] = ratio_and_loss(self.discriminator, forward_pass.z, permuted)
        both: tuple[Tensor, Tensor] = forward_pass.shared[self]
        return both


def ratio_and_loss(discriminator: nn.Module, z: Tensor, permuted: Tensor) -> tuple[Tensor, Tensor]:
    """The model's TC(z) with a gradient by z alone, and the adversary's loss with a gradient by its weights alone.

    The same numbers as by :func:`by_two_passes`, for three quarters of the arithmetic: the adversary has five million
    weights, which a small model's step is mostly about. Both depend on a row u_i only through f_i = logit_0 - logit_1.
    Where a_i is the derivative of the loss by f_i, a backward pass that starts from a_i gives the gradient by the
    weights, and a_i df_i/du_i on the way, from which the gradient of TC = mean_i f_i by z_i follows.

    Parameters
    ----------
    discriminator
        from codes (n, D) to logits (n, 2); class 0 is "drawn from q(z)".
    z, permuted
        (n, D): codes, and codes whose dimensions were permuted over the batch.

    Examples
    --------
    >>> discriminator, z, permuted = Discriminator(2), torch.randn(8, 2), torch.randn(8, 2)
    >>> results = ratio_and_loss(discriminator, z, permuted)
    >>> torch.testing.assert_close(results, by_two_passes(discriminator, z, permuted))
    """
    if not torch.is_grad_enabled():
        return by_two_passes(discriminator, z, permuted)
    weights = [weight for weight in discriminator.parameters() if weight.requires_grad]
    rows = torch.cat([z.detach(), permuted]).requires_grad_()
    logits = discriminator(rows)
    if logits.dtype == torch.float16:  # a_i may be too small for it
        return by_two_passes(discriminator, z, permuted)
    n = len(z)
    seen = logits.detach().requires_grad_()
    ratio, loss = density_ratio(seen[:n]), discriminator_loss(seen[:n], seen[n:])
    (start,) = torch.autograd.grad(loss, seen)  # (a_i, -a_i), a_i < 0 for codes and > 0 for permuted ones
    a = start[:, 0].abs().clamp(min=_LEAST)
    a[:n].neg_()
    by_rows, *by_weights = torch.autograd.grad(logits, [rows, *weights], torch.stack([a, -a], 1))
    by_z = by_rows[:n] / (n * a[:n, None])
    return _GradientsGiven.of(ratio, [z], [by_z]), _GradientsGiven.of(loss, weights, by_weights)


def by_two_passes(discriminator: nn.Module, z: Tensor, permuted: Tensor) -> tuple[Tensor, Tensor]:
    """What :func:`ratio_and_loss` computes, as it is defined.

    Examples
    --------
    >>> ratio, loss = by_two_passes(Discriminator(2), torch.randn(8, 2), torch.randn(8, 2))
    >>> ratio.requires_grad, loss.requires_grad  # z was given no gradient, the weights have theirs
    (False, True)
    """
    with frozen(discriminator):
        ratio = density_ratio(discriminator(z))
    logits = discriminator(torch.cat([z.detach(), permuted]))
    return ratio, discriminator_loss(logits[: len(z)], logits[len(z) :])


class _GradientsGiven(Function):
    """A value whose gradients are known already, as numbers: they have no gradients themselves."""

    @classmethod
    def of(cls, value: Tensor, tensors: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
        result: Tensor = cls.apply(value.detach(), gradients, *tensors)  # type: ignore[no-untyped-call]
        return result

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)  # freed by the backward pass, and so handed on without a copy
        return value.clone()

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # the gradient of this gradient would be left out silently
            raise UnweaveError(
                "create_graph = True: ratio_and_loss has no second derivatives; by_two_passes has them"
            )
        gradients = ctx.saved_tensors
        if factor.device.type != "cpu" or factor.item() != 1:  # saves a pass; a GPU would have to wait
            gradients = tuple(gradient * factor for gradient in gradients)
        return (None, None, *gradients)
