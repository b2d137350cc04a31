"""Observations as small pictures of one size: images enlarged by whole pixels, vectors as line plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from unweave.arrays import AnyArray
from unweave.data.dataset import Dataset

TILE = 96  # pixels, about
_LARGEST = 160  # pixels: larger images are reduced
_MOST_LINES = 8  # a 2-d array (time, variables) with more variables than this is plotted as one line


def draw_tiles(data: Dataset, groups: Sequence[AnyArray]) -> list[list[Image.Image]]:
    """For each group of observations (n, …) its n tiles, RGB.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((2, 32, 32, 1), np.uint8))
    >>> [[tile.size for tile in group] for group in draw_tiles(data, [data.images([0, 1])])]
    [[(96, 96), (96, 96)]]
    """
    if data.is_images:
        return [[_picture_tile(image) for image in group] for group in groups]
    return _line_plots([group.astype(np.float64) for group in groups])


def _picture_tile(image: AnyArray) -> Image.Image:
    """An image (H, W, 1 or 3) at about ``TILE`` pixels: pixels repeated, so that each stays visible."""
    if image.dtype != np.uint8:
        image = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    picture = Image.fromarray(np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3))))
    longest = max(picture.size)
    if longest > _LARGEST:
        width, height = (max(1, round(side * TILE / longest)) for side in picture.size)
        return picture.resize((width, height), Image.Resampling.LANCZOS)
    factor = max(1, round(TILE / longest))
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)


def _line_plots(groups: Sequence[AnyArray]) -> list[list[Image.Image]]:
    """Line plots without numbers, all with the same axes so that they compare."""
    low = min(float(group.min()) for group in groups)
    high = max(float(group.max()) for group in groups)
    margin = 0.06 * (high - low) or 1.0
    # Not by pyplot, which would change the global state of a caller's notebook.
    figure = Figure(figsize=(TILE * 1.25 / 100, TILE / 100), dpi=100)
    canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xticks=[], yticks=[], ylim=(low - margin, high + margin))
    axes.set_facecolor("#f4f4f4")
    for spine in axes.spines.values():
        spine.set_visible(False)
    if low < 0 < high:
        axes.axhline(0, color="#c8c8c8", linewidth=0.8)
    first = _as_lines(groups[0][0])
    axes.set_xlim(-0.02 * len(first), 1.02 * len(first))
    lines = axes.plot(first, linewidth=1.2)

    def draw(observation: AnyArray) -> Image.Image:
        for line, values in zip(lines, _as_lines(observation).T, strict=True):
            line.set_ydata(values)
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")

    return [[draw(observation) for observation in group] for group in groups]


def _as_lines(observation: AnyArray) -> AnyArray:
    """(points, lines): a vector is one line, a short and wide array (time, variables) several."""
    if observation.ndim == 2 and observation.shape[1] <= _MOST_LINES:
        return observation
    return observation.reshape(-1, 1)
