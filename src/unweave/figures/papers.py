"""The papers whose figures and tables can be made from a study, by name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from unweave.errors import unknown_name
from unweave.figures.exhibits import Exhibit


@dataclass(frozen=True)
class Paper:
    """A paper's title, and the module that holds its figures and tables as ``EXHIBITS``."""

    title: str
    module: str

    @property
    def exhibits(self) -> tuple[Exhibit, ...]:
        """Its figures and tables, in the paper's order; the module is imported only now."""
        found: tuple[Exhibit, ...] = import_module(f"unweave.figures.{self.module}").EXHIBITS
        return found


PAPERS: dict[str, Paper] = {
    "locatello": Paper(
        "Locatello et al.: Challenging Common Assumptions in the Unsupervised Learning of Disentangled "
        "Representations",
        "locatello",
    ),
    "kumar": Paper(
        "Kumar et al.: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations",
        "kumar",
    ),
    "yang": Paper(
        "Yang et al.: Towards Better Understanding of Disentangled Representations via Mutual Information",
        "yang",
    ),
    "mita": Paper(
        "Mita et al.: Learning Optimal Conditional Priors for Disentangled Representations", "mita"
    ),
    "ranking": Paper("Beyond the papers", "ranking"),
}


def find_paper(name: str) -> Paper:
    """A paper by name; an unknown name is answered with the nearest one."""
    if name not in PAPERS:
        raise unknown_name("paper", name, PAPERS)
    return PAPERS[name]
