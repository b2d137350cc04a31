"""Methods: networks + objective = something trainable. Composition lives here."""

from unweave.methods.registry import METHODS, build, create, hyperparameters, names
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import TERMS, Pass, Player, Posterior, Term, Terms, create_term, register_term
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.label_distribution import LabelDistribution
from unweave.methods.vae.priors import PRIORS
from unweave.methods.vae.vae import VAE

__all__ = [
    "METHODS",
    "PRIORS",
    "TERMS",
    "VAE",
    "Composition",
    "LabelDistribution",
    "MethodSpec",
    "Pass",
    "Player",
    "Posterior",
    "Term",
    "Terms",
    "build",
    "create",
    "create_term",
    "hyperparameters",
    "names",
    "register_term",
]
