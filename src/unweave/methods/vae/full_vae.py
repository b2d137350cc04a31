"""FullVAE (Mita et al., equation 8; Locatello et al. 2020, "few labels"): codes are matched to labels directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unweave.errors import ArgumentError
from unweave.methods.checks import check_not_negative
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import Pass, Terms, register_term
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.priors import layout_of
from unweave.objectives.labels import match_loss


def full_vae(gamma: float = 1.0, beta: float = 1.0) -> Composition:
    """reconstruction + beta * KL + gamma * BCE(codes, labels). The paper's grid: gamma 1, 2, 4, 6, 8, 16; beta = 1.

    Rows without labels are allowed: they have no part in the last term.
    """
    check_not_negative("beta", beta)
    check_not_negative("gamma", gamma)
    return Composition([KL(beta), LabelMatch(gamma)])


@register_term("label_match")
@dataclass(frozen=True)
class LabelMatch:
    """``weight`` * sum_j BCE(sigmoid(mean_j(x)), u_j), mean over labelled images; label j is matched by code j."""

    weight: float = 1.0
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_not_negative("weight", self.weight)

    def attach(self, spec: MethodSpec) -> None:
        """Refuse labels that the codes cannot be matched to."""
        layout = layout_of(spec)
        one_hot = [column.name for column in layout.columns if column.one_hot]
        if one_hot:
            encoding = (spec.labels or {}).get("encoding", "one_hot")
            told = f"makes {', '.join(one_hot)} one-hot, and codes are matched to labels in [0, 1]: needs 'scaled'"
            raise ArgumentError("encoding", encoding, told)
        if layout.width > spec.latent_size:
            needs = f"needs at least {layout.width}: one code for each label"
            raise ArgumentError("latent_size", spec.latent_size, needs)

    def __call__(self, made: Pass) -> Terms:
        if made.labelled is None or made.labelled.mean is None:
            raise ArgumentError(
                "label_match", self.weight, "needs labels, and an encoder that does not take them"
            )
        return Terms.of(label_match=(match_loss(made.labelled.mean, made.labelled.u), self.weight))
