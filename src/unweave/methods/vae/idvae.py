"""IDVAE (Mita et al. 2021, equation 17): the prior given labels is the encoder of a second VAE, on the labels."""

from __future__ import annotations

from unweave.methods.registry import register_method
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.conditional_prior import LabelVAE
from unweave.methods.vae.kl import KL
from unweave.methods.vae.label_predictor import LabelPredictor
from unweave.parameters import NonNegative, Positive


@register_method(
    "idvae",
    label="IDVAE",
    paper="Mita et al. 2021",
    strength_label="β",
    color="#009E73",
    marker="v",
    order=10,
    labels="all",
)
def idvae(beta: NonNegative = 1.0, label_variance: Positive | None = None) -> Composition:
    """reconstruction + beta * KL(q(z|x,u) || q(z|u)) + the second VAE's loss. The paper's grid: beta 1, 2, 4, 6, 8, 16.

    ``label_variance`` of p(u|z): see :class:`~unweave.methods.vae.conditional_prior.LabelVAE`.

    Examples
    --------
    >>> idvae(4.0).label_need
    'all'
    """
    return Composition([KL(beta)], LabelVAE(label_variance), semi_supervised="ss_idvae")


@register_method(
    "ss_idvae",
    label="SS-IDVAE",
    paper="Mita et al. 2021",
    strength_label="β",
    color="#CC79A7",
    marker=">",
    order=12,
    labels="some",
)
def ss_idvae(
    beta: NonNegative = 1.0,
    alpha: NonNegative = 1.0,
    temperature: Positive = 2 / 3,
    label_variance: Positive | None = None,
) -> Composition:
    """IDVAE with missing labels inferred by q(u|x), + alpha * -log q(u|x) of labelled images (appendix C).

    Examples
    --------
    >>> ss_idvae(4.0).label_need
    'some'
    """
    return Composition([KL(beta)], LabelVAE(label_variance), LabelPredictor(alpha, temperature))
