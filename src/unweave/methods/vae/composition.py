"""What a VAE consists of next to its encoder, decoder and likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unweave.methods.catalogue import LabelNeed
from unweave.methods.vae.conditional_prior import ConditionalPrior
from unweave.methods.vae.label_predictor import LabelPredictor
from unweave.methods.vae.pairing import Pairing
from unweave.methods.vae.terms import Term


@dataclass(frozen=True)
class Composition:
    """The parts of a VAE, as a registered method returns them.

    Parameters
    ----------
    terms
        the terms of its loss, next to the reconstruction.
    prior
        p(z|u), which the encoder's q(z|x,u) is held to; None: N(0, I) and q(z|x).
    predictor
        q(u|x), for labels that are missing.
    pairing
        what images that come in pairs share; None: they come one by one.
    semi_supervised
        the name of the method that is the same with missing labels, if there is one.

    Examples
    --------
    >>> from unweave.methods import KL
    >>> Composition([KL(4.0)]).label_need
    'none'
    """

    terms: Sequence[Term[Any]]
    prior: ConditionalPrior | None = None
    predictor: LabelPredictor | None = None
    pairing: Pairing | None = None
    semi_supervised: str = ""

    def extended(self, terms: Sequence[Term[Any]]) -> Composition:
        """The same with further terms."""
        return replace(self, terms=[*self.terms, *terms])

    @property
    def label_need(self) -> LabelNeed:
        """Whether it learns from labels, and if so, whether every row must have them."""
        if self.prior is not None:
            return "all" if self.predictor is None else "some"
        return "some" if any(term.needs_labels for term in self.terms) else "none"
