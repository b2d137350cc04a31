"""The explorer in a notebook: a cell that can be touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from unweave.data import Dataset
from unweave.errors import UnweaveError
from unweave.explorer.page import Names, render_page
from unweave.files import write_text
from unweave.training import Run

_HEIGHT = 860  # pixels


@dataclass(frozen=True)
class Explorer:
    """A page of the explorer. A notebook shows it where it is the value of a cell.

    Parameters
    ----------
    html
        the whole page.
    height
        of the cell, in pixels.

    Examples
    --------
    >>> Explorer("<p>a page</p>")
    Explorer(a page of 13 bytes)
    """

    html: str
    height: int = _HEIGHT

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, whole or not at all."""
        try:
            write_text(Path(path), self.html)
        except OSError as error:
            raise UnweaveError(f"{path}: cannot be written ({error.strerror or error})") from error
        return Path(path)

    def __repr__(self) -> str:
        return f"Explorer(a page of {len(self.html.encode()):,} bytes)"

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{self.height}px;border:0;border-radius:8px"
        return f'<iframe title="Explorer" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def explore(
    runs: Run | Sequence[Run],
    data: Dataset | None = None,
    title: str | None = None,
    names: Names | Sequence[Names] | None = None,
    labels: Sequence[str] | None = None,
) -> Explorer:
    """A page in which the codes of one or several models can be moved, to be shown in a notebook or saved.

    Parameters
    ----------
    runs
        one run, or several of the same data.
    data, title, names, labels
        as of :func:`~unweave.explorer.page.write_page`.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> uw.explorer.explore(run).save("page.html").name
    'page.html'
    """
    each = [runs] if isinstance(runs, Run) else list(runs)
    return Explorer(render_page(each, data, title, names, labels))
