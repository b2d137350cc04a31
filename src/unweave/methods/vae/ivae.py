"""iVAE (Khemakhem et al. 2020, as in Mita et al., equation 10): a prior that is learned given labels."""

from __future__ import annotations

from unweave.methods.registry import register_method
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.conditional_prior import LearnedPrior
from unweave.methods.vae.kl import KL
from unweave.methods.vae.label_predictor import LabelPredictor
from unweave.parameters import NonNegative, Positive


@register_method(
    "ivae",
    label="iVAE",
    paper="Khemakhem et al. 2020",
    strength_label="β",
    color="#E69F00",
    marker="h",
    order=9,
    labels="all",
)
def ivae(beta: NonNegative = 1.0) -> Composition:
    """reconstruction + beta * KL(q(z|x,u) || p(z|u)). The paper's grid: beta in {1, 2, 4, 6, 8, 16}.

    Examples
    --------
    >>> ivae(4.0).label_need
    'all'
    """
    return Composition([KL(beta)], LearnedPrior(), semi_supervised="ss_ivae")


@register_method(
    "ss_ivae",
    label="SS-iVAE",
    paper="Mita et al. 2021",
    strength_label="β",
    color="#B8A800",
    marker="<",
    order=11,
    labels="some",
)
def ss_ivae(beta: NonNegative = 1.0, alpha: NonNegative = 1.0, temperature: Positive = 2 / 3) -> Composition:
    """iVAE with missing labels inferred by q(u|x), + alpha * -log q(u|x) of labelled images (appendix C).

    Examples
    --------
    >>> ss_ivae(4.0).label_need
    'some'
    """
    return Composition([KL(beta)], LearnedPrior(), LabelPredictor(alpha, temperature))
