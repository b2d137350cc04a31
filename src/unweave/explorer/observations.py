"""The observations of a data set that a page shows, with their factors."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from unweave.arrays import AnyArray, BoolArray, FloatArray, IntArray
from unweave.data import Dataset
from unweave.explorer.arrays import ArrayBlock
from unweave.metrics.information.discretise import discretise

_MOST = 1000  # observations on a page
_PIXELS = 4_000_000  # of all of them together
_FOR_SCORES = 2000  # observations from which dependences are estimated
_LARGEST_PNG = 1_000_000  # bytes; larger sheets are JPEG
_MOST_LINES = 8  # an array (time, variables) with more variables than this is one line
_BINS = 10  # of a continuous factor


@dataclass(frozen=True, eq=False)
class Observations:
    """A random sample of a data set.

    Parameters
    ----------
    data
        the data set.
    images
        (n, ...) as it stores them.
    factors
        (n, K), or (n, 0); NaN where a label is not known.
    shown
        so many of them, the first ones, are on the page.
    files
        the names of their files, or none.
    """

    data: Dataset
    images: AnyArray
    factors: FloatArray
    shown: int
    files: tuple[str, ...] = ()

    @property
    def labelled(self) -> BoolArray:
        """Which observations have all labels, (n,)."""
        return np.asarray(~np.isnan(self.factors).any(axis=1))

    @property
    def binned_factors(self) -> IntArray:
        """Factors of those that have all labels as whole numbers (m, K), the continuous ones in bins of equal width."""
        factors = self.factors[self.labelled]
        columns = [
            discretise(factors[:, [column]], _BINS)[:, 0]
            if isinstance(size, tuple) and len(factors)
            else factors[:, column].astype(np.int64)
            for column, size in enumerate(self.data.space.sizes)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(factors), 0), np.int64)


def draw_observations(data: Dataset, seed: int = 0) -> Observations:
    """Observations for a page: different rows of a data set that has rows, else draws.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((6, 8, 8, 1), np.uint8), {"scale": [0, 1, 2, 0, 1, 2]})
    >>> observations = draw_observations(data)
    >>> observations.images.shape, observations.factors.shape, observations.shown
    ((6, 8, 8, 1), (6, 1), 6)
    """
    rng = np.random.default_rng(seed)
    files: tuple[str, ...] = ()
    if not data.finite:
        factors = data.sample_factors(_FOR_SCORES, rng)
        images = data.images(factors, rng)
    else:
        if data.sampler is not None:
            rows = data.sample_rows(_FOR_SCORES, rng)
        else:
            rows = rng.permutation(len(data))[:_FOR_SCORES]
        factors = data.factors(rows)
        images = data.images(rows, rng)
        files = tuple(data.files[row] for row in rows) if data.files is not None else ()
    pixels = math.prod(data.image_shape[:2]) if data.is_images else math.prod(data.image_shape)
    shown = min(_MOST, len(images), max(64, _PIXELS // pixels))
    return Observations(data, images, np.asarray(factors, np.float64), shown, files)


def observation_content(observations: Observations, block: ArrayBlock) -> dict[str, Any]:
    """The observations as JSON has them: pictures as one sheet, other arrays as curves."""
    data, images = observations.data, observations.images[: observations.shown]
    content: dict[str, Any] = {"count": observations.shown, "factors": _factors(data)}
    content["files"] = list(observations.files[: observations.shown])
    content["factor_values"] = block.add(observations.factors[: observations.shown])
    if data.is_images:
        sheet, columns = _sheet(images)
        content |= {"kind": "images", "shape": list(data.image_shape), "sheet": sheet, "columns": columns}
        return content
    values = images.reshape(len(images), -1).astype(np.float32)
    shape = data.image_shape
    lines = shape[1] if len(shape) == 2 and shape[1] <= _MOST_LINES else 1
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 1.0
    content |= {"kind": "curves", "shape": list(shape), "lines": lines, "values": block.add(values)}
    content |= {"low": low - margin, "high": high + margin}
    return content


def _factors(data: Dataset) -> list[dict[str, Any]]:
    space = data.space
    return [
        {
            "name": name,
            "values": list(space.value_names.get(name, ())),
            "range": list(size) if isinstance(size, tuple) else [0, size - 1],
            "categorical": not space.is_ordered(name),
            "continuous": isinstance(size, tuple),
        }
        for name, size in zip(space.names, space.sizes, strict=True)
    ]


def _sheet(images: AnyArray) -> tuple[str, int]:
    """All pictures side by side in one file, as an address that holds its content; and how many are in a row."""
    count, height, width, channels = images.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    sheet = np.zeros((rows * height, columns * width, channels), np.uint8)
    for index, image in enumerate(images):
        top, left = index // columns * height, index % columns * width
        sheet[top : top + height, left : left + width] = image
    picture = Image.fromarray(sheet[..., 0] if channels == 1 else sheet)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    kind = "png"
    if buffer.tell() > _LARGEST_PNG:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=88)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}", columns
