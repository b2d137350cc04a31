"""Methods: networks + objective = something trainable. Composition lives here."""

from unweave.methods.registry import METHODS, build, create, hyperparameters, names
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import TERMS, Pass, Player, Term, Terms, create_term, register_term
from unweave.methods.vae import VAE, Posterior

__all__ = [
    "METHODS",
    "TERMS",
    "VAE",
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
