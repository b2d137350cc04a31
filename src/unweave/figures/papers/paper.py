"""The papers whose figures and tables can be drawn from a study, by name; a user's package can add its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from unweave.registry import Registry
from unweave.study import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from PIL import Image

Picture: TypeAlias = "Figure | Image.Image"


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of a paper, drawn from a study's results.

    Parameters
    ----------
    name
        the stem of its files: ``locatello-fig02-total-correlation-sampled``.
    title, source
        what it shows, in a line; where in which paper it comes from ("Locatello et al., Figure 2").
    caption
        how to read it: what a point is, what the bars and bands are.
    make
        from the results to a figure, a picture or a table, or to several pictures by the name of their data set. Raises
        ``NotInStudyError`` if the study lacks what it needs.
    explains_labels
        whether the caption itself says which labels u the encoders that take some were given; a report adds a sentence
        to the captions that do not.

    Examples
    --------
    >>> from unweave.figures.papers import Exhibit
    >>> def best_mig(results):
    ...     return results.table.query("metric == 'mig'").groupby("method")["value"].max().to_frame()
    >>> exhibit = Exhibit("mine-table1-mig", "The best MIG", "Mine, Table 1", "Over all runs.", best_mig)
    """

    name: str
    title: str
    source: str
    caption: str
    make: Callable[[Results], Picture | Mapping[str, Picture] | pd.DataFrame]
    explains_labels: bool = False


@dataclass(frozen=True)
class Protocol:
    """How much a paper says it did: a report on less says so.

    Parameters
    ----------
    source
        whose numbers these are: "Kumar et al."
    steps, points, seeds
        of training, to learn a metric from, of each setting; None where the paper states no number.
    methods
        that the numbers are of; empty for all.

    Examples
    --------
    >>> from unweave.figures.papers import PAPERS
    >>> PAPERS["mita"].protocol
    Protocol(source='Mita et al.', steps=300000, points=10000, seeds=10, methods=())
    """

    source: str
    steps: int | None = None
    points: int | None = None
    seeds: int | None = None
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper's authors and title, its figures and tables in the paper's order, and how much it says it did.

    Examples
    --------
    >>> from unweave.figures.papers import PAPERS
    >>> PAPERS["kumar"].exhibits[0].source
    'Kumar et al., Figures 1 and 2'
    """

    title: str
    exhibits: tuple[Exhibit, ...]
    protocol: Protocol | None = None


_HERE = __name__.rpartition(".")[0]
PAPERS: Registry[Paper] = Registry(
    "paper",
    "unweave.papers",
    {
        name: f"{_HERE}.{name}:PAPER"
        for name in ("runs", "locatello", "kumar", "yang", "mita", "multistage", "ranking")
    },
)


def register_paper(name: str, paper: Paper) -> None:
    """Add a paper, whose name studies can then list under ``reports``.

    An installed package can offer one without being imported: by an entry point of the group ``unweave.papers``.

    Examples
    --------
    >>> from unweave.figures.papers import PAPERS, Paper, register_paper
    >>> register_paper("mine", Paper("Me: My paper", exhibits=()))
    >>> list(PAPERS)[-1]
    'mine'
    >>> PAPERS.unregister("mine")
    """
    PAPERS.register(name, paper)
