"""unweave: learn, measure and compare disentangled representations.

>>> import unweave as uw
>>> data = uw.data.load("dsprites")                       # doctest: +SKIP
>>> method = uw.methods.create("beta_tcvae", data, beta=6)  # doctest: +SKIP
>>> run = uw.train(method, data, steps=1000, seed=0)      # doctest: +SKIP
>>> scores = uw.evaluate(run, data)                       # doctest: +SKIP
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from unweave import data
from unweave.errors import UnweaveError

if TYPE_CHECKING:
    from unweave import analyses, evaluation, methods, metrics, study, training
    from unweave.api import train
    from unweave.evaluation.evaluate import evaluate
    from unweave.training import load

__version__ = _version("unweave")
__all__ = [
    "UnweaveError",
    "__version__",
    "analyses",
    "data",
    "evaluate",
    "evaluation",
    "load",
    "methods",
    "metrics",
    "study",
    "train",
    "training",
]

# Looked up when first used: they need torch, which takes seconds to import.
_ROOMS = ("analyses", "evaluation", "methods", "metrics", "study", "training")
_CALLS = {"evaluate": "unweave.evaluation", "load": "unweave.training", "train": "unweave.api"}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"unweave.{name}")
    if name in _CALLS:
        return getattr(import_module(_CALLS[name]), name)
    raise AttributeError(f"module 'unweave' has no attribute {name!r}")
