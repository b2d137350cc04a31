"""IDVAE (Mita et al. 2021, equation 17): the prior given labels is the encoder of a second VAE, on the labels."""

from __future__ import annotations

from unweave.methods.checks import check_not_negative
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.label_predictor import LabelPredictor
from unweave.methods.vae.priors import LabelVAE


def idvae(beta: float = 1.0, label_variance: float | None = None) -> Composition:
    """reconstruction + beta * KL(q(z|x,u) || q(z|u)) + the second VAE's loss. The paper's grid: beta 1, 2, 4, 6, 8, 16.

    ``label_variance`` of p(u|z): see :class:`~unweave.methods.vae.priors.LabelVAE`.
    """
    check_not_negative("beta", beta)
    return Composition([KL(beta)], LabelVAE(label_variance))


def ss_idvae(
    beta: float = 1.0, alpha: float = 1.0, temperature: float = 2 / 3, label_variance: float | None = None
) -> Composition:
    """IDVAE with missing labels inferred by q(u|x), + alpha * -log q(u|x) of labelled images (appendix C)."""
    check_not_negative("beta", beta)
    return Composition([KL(beta)], LabelVAE(label_variance), LabelPredictor(alpha, temperature))
