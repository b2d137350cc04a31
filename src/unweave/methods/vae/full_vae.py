"""FullVAE (Mita et al., equation 8; Locatello et al. 2020, "few labels"): codes are matched to labels directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.errors import ArgumentError
from unweave.methods.label_layout import LabelLayout
from unweave.methods.method import Terms
from unweave.methods.registry import register_method, register_term
from unweave.methods.spec import VAESpec
from unweave.methods.vae.kl import KL
from unweave.methods.vae.terms import LabelledPass, Term
from unweave.objectives.labels import match_loss
from unweave.parameters import NonNegative, check_fields


@register_method(
    "full_vae",
    label="FullVAE",
    paper="Locatello et al. 2020; Mita et al. 2021",
    strength_label="γ",
    color="#D55E00",
    marker="X",
    order=8,
    labels="some",
)
def full_vae(gamma: NonNegative = 1.0, beta: NonNegative = 1.0) -> list[Term[Any]]:
    """reconstruction + beta * KL + gamma * BCE(codes, labels). The paper's grid: gamma 1, 2, 4, 6, 8, 16; beta = 1.

    Rows without labels are allowed: they have no part in the last term.

    Examples
    --------
    >>> full_vae(gamma=6.0)
    [KL(weight=1.0), LabelMatch(weight=6.0)]
    """
    return [KL(beta), LabelMatch(gamma)]


@register_term("label_match")
@dataclass(frozen=True)
class LabelMatch(Term[LabelledPass]):
    """weight * sum_j BCE(sigmoid(mean_j(x)), u_j), mean over labelled images; label j is matched by code j.

    Examples
    --------
    >>> LabelMatch.needs_labels
    True
    """

    needs_labels: ClassVar[bool] = True

    weight: NonNegative = 1.0

    def __post_init__(self) -> None:
        check_fields(self, convert=False)

    def attach(self, spec: VAESpec) -> None:
        """Refuse labels that the codes cannot be matched to."""
        layout = LabelLayout.from_spec(spec)
        one_hot = [column.name for column in layout.columns if column.one_hot]
        if one_hot:
            encoding = (spec.labels or {}).get("encoding", "one_hot")
            needs = "codes are matched to labels in [0, 1]: needs 'scaled'"
            raise ArgumentError("encoding", encoding, f"makes {', '.join(one_hot)} one-hot, and {needs}")
        if layout.width > spec.latent_size:
            needs = f"needs at least {layout.width}: one code for each label"
            raise ArgumentError("latent_size", spec.latent_size, needs)

    def __call__(self, forward_pass: LabelledPass) -> Terms:
        match = match_loss(forward_pass.labelled_mean, forward_pass.labelled_u)
        return Terms.of(label_match=(match, self.weight))
