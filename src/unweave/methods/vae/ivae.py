"""iVAE (Khemakhem et al. 2020, as in Mita et al., equation 10): a prior that is learned given labels."""

from __future__ import annotations

from unweave.methods.checks import check_not_negative
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.label_predictor import LabelPredictor
from unweave.methods.vae.priors import ConditionalPrior


def ivae(beta: float = 1.0) -> Composition:
    """reconstruction + beta * KL(q(z|x,u) || p(z|u)). The paper's grid: beta in {1, 2, 4, 6, 8, 16}."""
    check_not_negative("beta", beta)
    return Composition([KL(beta)], ConditionalPrior())


def ss_ivae(beta: float = 1.0, alpha: float = 1.0, temperature: float = 2 / 3) -> Composition:
    """iVAE with missing labels inferred by q(u|x), + alpha * -log q(u|x) of labelled images (appendix C)."""
    check_not_negative("beta", beta)
    return Composition([KL(beta)], ConditionalPrior(), LabelPredictor(alpha, temperature))
