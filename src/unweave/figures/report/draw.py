"""An exhibit made into files and a piece of the page; nothing is written here."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from unweave.figures.exhibits import Exhibit
from unweave.figures.report import tables
from unweave.figures.style import paper_style
from unweave.study import Results

FORMATS = ("pdf", "png", "svg")
_DPI = 200
_DENSITY = 1.4  # pixels of a figure per pixel of the page: sharp, and a paper's width fills the column
# No dates and no random names: the same study makes the same bytes.
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


@dataclass(frozen=True)
class Drawn:
    """An exhibit's picture or table as HTML, and its files: their path beside the page, and their contents."""

    exhibit: Exhibit
    body: str
    files: dict[str, bytes]


def draw(exhibit: Exhibit, results: Results, formats: Sequence[str]) -> Drawn:
    """Make an exhibit. A figure is drawn in the given formats, a picture of pixels is a PNG, a table CSV and TeX."""
    made = exhibit.make(results)
    if isinstance(made, pd.DataFrame):
        return Drawn(exhibit, *draw_table(exhibit.name, exhibit.title, made))
    if isinstance(made, Figure):
        image, files = _draw_figure(made, formats)
        density = _DENSITY
    else:
        image, files, density = made, {}, 1.0
    png = _png(image)
    if not files or "png" in formats:
        files["png"] = png
    body = (
        f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="{escape(exhibit.title)}" '
        f'width="{round(image.width / density)}" height="{round(image.height / density)}" decoding="async">'
    )
    return Drawn(exhibit, body, {f"figures/{exhibit.name}.{kind}": data for kind, data in files.items()})


def draw_table(name: str, title: str, table: pd.DataFrame) -> tuple[str, dict[str, bytes]]:
    """A table as HTML, and its files."""
    table = tables.flat(table)
    files = {
        f"tables/{name}.csv": tables.csv_text(table).encode(),
        f"tables/{name}.tex": tables.tex_text(table).encode(),
    }
    return tables.html_table(table, title), files


def _draw_figure(figure: Figure, formats: Sequence[str]) -> tuple[Image.Image, dict[str, bytes]]:
    canvas: Any = FigureCanvasAgg(figure)
    figure.set_dpi(_DPI)
    files = {}
    with paper_style(), mpl.rc_context({"svg.hashsalt": "unweave"}):
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        figure.set_layout_engine("none")  # it is laid out: doing so again for each format would take as long
        for kind in formats:
            if kind != "png":
                buffer = BytesIO()
                figure.savefig(buffer, format=kind, dpi=_DPI, metadata=_METADATA[kind])
                files[kind] = buffer.getvalue()
    return image, files


def _png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
