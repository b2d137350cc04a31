"""Exhibits drawn: as images and tables for the page, and as the contents of files; nothing is written here."""

from __future__ import annotations

import base64
import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from unweave.figures.papers.paper import Exhibit, Picture
from unweave.figures.report.tables import Table, csv_text, flatten, page_table, tex_text
from unweave.figures.style import data_name, paper_style
from unweave.study import Results

FORMATS = ("pdf", "png", "svg")
_DPI = 200
_DENSITY = 1.4  # pixels of a figure per pixel of the page: sharp, and a paper's width fills the column


@dataclass(frozen=True)
class PageImage:
    """A PNG that the page holds, and its size there in pixels."""

    title: str
    png: bytes
    width: int
    height: int

    @property
    def base64(self) -> str:
        """The PNG as text."""
        return base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class DrawnExhibit:
    """An exhibit's images or table, and the contents of its files by their path relative to the page."""

    exhibit: Exhibit
    images: tuple[PageImage, ...]
    table: Table | None
    files: dict[str, bytes]


def draw_exhibit(exhibit: Exhibit, results: Results, formats: Sequence[str]) -> DrawnExhibit:
    """Draw an exhibit of a study: pictures in the given formats, a table as CSV and TeX.

    Examples
    --------
    >>> from unweave.figures.papers import Exhibit
    >>> from unweave.study import Results
    >>> exhibit = Exhibit("rows", "Rows", "Mine, Table 1", "All.", lambda results: results.table[["metric", "value"]])
    >>> table = uw.analyses.simulate_results(["dsprites"], ["beta_vae"], seeds=2)
    >>> list(draw_exhibit(exhibit, Results("simulated", table), ["pdf"]).files)
    ['tables/rows.csv', 'tables/rows.tex']
    """
    result = exhibit.make(results)
    if isinstance(result, pd.DataFrame):
        table = flatten(result)
        files = {
            f"tables/{exhibit.name}.csv": csv_text(table).encode(),
            f"tables/{exhibit.name}.tex": tex_text(table).encode(),
        }
        return DrawnExhibit(exhibit, (), page_table(table, exhibit.title), files)
    pictures = result if isinstance(result, Mapping) else {"": result}
    images, files = [], {}
    for (name, picture), stem in zip(pictures.items(), _stems(exhibit.name, list(pictures)), strict=True):
        title = f"{exhibit.title}: {data_name(name)}" if name else exhibit.title
        image, contents = _draw_picture(picture, title, formats)
        images.append(image)
        files |= {f"figures/{stem}.{kind}": data for kind, data in contents.items()}
    return DrawnExhibit(exhibit, tuple(images), None, files)


def _stems(exhibit: str, names: list[str]) -> list[str]:
    """The names of the files of an exhibit's pictures, without suffix, all different."""
    if len(names) == 1:
        return [exhibit]
    words = [re.sub(r"[^a-z0-9_]+", "-", Path(name).name.lower()).strip("-") for name in names]
    if len(set(words)) < len(words):
        words = [f"{index}-{word}" for index, word in enumerate(words, 1)]
    return [f"{exhibit}-{word}" for word in words]


def _draw_picture(picture: Picture, title: str, formats: Sequence[str]) -> tuple[PageImage, dict[str, bytes]]:
    """A picture for the page, and its files by format."""
    if isinstance(picture, Figure):
        image, files = _draw_figure(picture, formats)
        density = _DENSITY
    else:
        image, density = picture, 1.0
        files = _draw_figure(_framed(picture), formats)[1]
    png = _png(image)
    if "png" in formats or not files:
        files["png"] = png
    return PageImage(title, png, round(image.width / density), round(image.height / density)), files


def _framed(image: Image.Image) -> Figure:
    """A figure that is the picture, pixel by pixel."""
    figure = Figure(figsize=(image.width / _DPI, image.height / _DPI), dpi=_DPI)
    figure.figimage(np.asarray(image))
    return figure


def _draw_figure(figure: Figure, formats: Sequence[str]) -> tuple[Image.Image, dict[str, bytes]]:
    """A figure as pixels, and its files in vector formats."""
    files = {}
    with paper_style(), mpl.rc_context({"svg.hashsalt": "unweave"}), _no_garbage_collection():
        figure.set_dpi(_DPI)
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        # It is laid out now. Figure.savefig would do so again for each format, which takes as long as drawing.
        figure.set_layout_engine("none")
        for kind in formats:
            if kind in _WRITERS:
                figure.set_dpi(_DPI)
                buffer = BytesIO()
                _WRITERS[kind](figure, buffer)
                files[kind] = buffer.getvalue()
    return image, files


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """No garbage collection: drawing creates so many small objects that it would take a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _write_pdf(figure: Figure, file: BytesIO) -> None:
    canvas: Any = FigureCanvasPdf(figure)
    canvas.print_pdf(file, metadata={"CreationDate": None})


def _write_svg(figure: Figure, file: BytesIO) -> None:
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(file, metadata={"Date": None})


# Without dates and random names, so that the same study makes the same bytes.
_WRITERS: dict[str, Callable[[Figure, BytesIO], None]] = {"pdf": _write_pdf, "svg": _write_svg}


def _png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
