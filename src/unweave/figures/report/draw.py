"""An exhibit made into files and a piece of the page; nothing is written here."""

from __future__ import annotations

import base64
import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
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
from unweave.figures.report import tables
from unweave.figures.style import data_name, paper_style
from unweave.study import Results

FORMATS = ("pdf", "png", "svg")
_DPI = 200
_DENSITY = 1.4  # pixels of a figure per pixel of the page: sharp, and a paper's width fills the column


@dataclass(frozen=True)
class Drawn:
    """An exhibit's picture or table as HTML, and its files: their path beside the page, and their contents."""

    exhibit: Exhibit
    body: str
    files: dict[str, bytes]


def draw(exhibit: Exhibit, results: Results, formats: Sequence[str]) -> Drawn:
    """Make an exhibit: pictures in the given formats, a table as CSV and TeX."""
    made = exhibit.make(results)
    if isinstance(made, pd.DataFrame):
        return Drawn(exhibit, *draw_table(exhibit.name, exhibit.title, made))
    pictures = made if isinstance(made, Mapping) else {"": made}
    bodies: list[str] = []
    found: dict[str, bytes] = {}
    for (name, picture), stem in zip(pictures.items(), _stems(exhibit.name, list(pictures)), strict=True):
        title = f"{exhibit.title}: {data_name(name)}" if name else exhibit.title
        body, files = _draw_picture(picture, title, formats)
        bodies.append(body)
        found |= {f"figures/{stem}.{kind}": data for kind, data in files.items()}
    return Drawn(exhibit, "".join(bodies), found)


def _stems(exhibit: str, names: list[str]) -> list[str]:
    """What the files of an exhibit's pictures are called, each in its own way."""
    if len(names) == 1:
        return [exhibit]
    words = [re.sub(r"[^a-z0-9_]+", "-", Path(name).name.lower()).strip("-") for name in names]
    if len(set(words)) < len(words):
        words = [f"{place}-{word}" for place, word in enumerate(words, 1)]
    return [f"{exhibit}-{word}" for word in words]


def _draw_picture(picture: Picture, title: str, formats: Sequence[str]) -> tuple[str, dict[str, bytes]]:
    """A picture as HTML, and its files by format."""
    if isinstance(picture, Figure):
        image, files = _draw_figure(picture, formats)
        density = _DENSITY
    else:
        image, density = picture, 1.0
        files = _draw_figure(_framed(picture), formats)[1]
    png = _png(image)
    if "png" in formats or not files:
        files["png"] = png
    body = (
        f'<div class="picture"><img src="data:image/png;base64,{base64.b64encode(png).decode()}" '
        f'alt="{escape(title)}" width="{round(image.width / density)}" '
        f'height="{round(image.height / density)}"></div>'
    )
    return body, files


def _framed(image: Image.Image) -> Figure:
    """A figure that is the picture, pixel by pixel."""
    figure = Figure(figsize=(image.width / _DPI, image.height / _DPI), dpi=_DPI)
    figure.figimage(np.asarray(image))
    return figure


def draw_table(name: str, title: str, table: pd.DataFrame) -> tuple[str, dict[str, bytes]]:
    """A table as HTML, and its files."""
    table = tables.flat(table)
    files = {
        f"tables/{name}.csv": tables.csv_text(table).encode(),
        f"tables/{name}.tex": tables.tex_text(table).encode(),
    }
    return tables.html_table(table, title), files


def _draw_figure(figure: Figure, formats: Sequence[str]) -> tuple[Image.Image, dict[str, bytes]]:
    """A figure as pixels, and its files in vector formats."""
    files = {}
    with paper_style(), mpl.rc_context({"svg.hashsalt": "unweave"}), _garbage_kept():
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
def _garbage_kept() -> Iterator[None]:
    """Drawing makes so many small objects that looking for garbage among them is a fifth of its time."""
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
