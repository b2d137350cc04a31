"""What a report is made of: figures and tables of a study, each with its place in a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from unweave.study import Results

Picture = Figure | Image.Image


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table made from a study's results.

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
    """

    name: str
    title: str
    source: str
    caption: str
    make: Callable[[Results], Picture | Mapping[str, Picture] | pd.DataFrame]
