"""What a method is made of next to its encoder, decoder and likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch import nn

from unweave.methods.terms import Term
from unweave.methods.vae.pairing import Pairing

LabelNeed = Literal["none", "some", "all"]


@dataclass(frozen=True)
class Composition:
    """The parts of a method.

    terms
        what its loss is made of, next to the reconstruction.
    prior
        p(z|u), which the encoder's q(z|x,u) is held to; None: N(0, I) and q(z|x).
    predictor
        q(u|x), for labels that are missing.
    pairing
        what images that come in pairs share; None: they come one by one.
    """

    terms: Sequence[Term]
    prior: nn.Module | None = None
    predictor: nn.Module | None = None
    pairing: Pairing | None = None

    def extended(self, terms: Sequence[Term]) -> Composition:
        """The same with further terms."""
        return replace(self, terms=[*self.terms, *terms])

    @property
    def label_need(self) -> LabelNeed:
        """Whether it learns from labels, and if so, whether every row must have them."""
        if self.prior is not None:
            return "all" if self.predictor is None else "some"
        return "some" if any(getattr(term, "needs_labels", False) for term in self.terms) else "none"
