"""A data set with smaller images: the same rows, the same factors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.arrays import AnyArray, ByteArray, IntArray
from unweave.data.dataset import Dataset, RowArray
from unweave.data.factors import FactorArray, Rng
from unweave.data.files.images import resize
from unweave.data.fingerprint import fingerprint
from unweave.data.storage.lazy import LazyArray
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import ArgumentError
from unweave.parameters import Count, check_value
from unweave.progress import progress

_VERSION = 1  # of the pixels: a change in how they are computed needs a new one
_BLOCK = 4096  # images reduced at a time


def with_image_size(data: Dataset, image_size: Count, folder: Path, *, most: Count | None = None) -> Dataset:
    """A data set whose images have ``image_size`` x ``image_size`` pixels, by :func:`reduce_images`.

    Stored images are reduced once, into a memory-mapped array in ``folder``; rendered ones when they are first asked
    for. Where noise is drawn at every access, it is drawn at full size and the result is reduced.

    Parameters
    ----------
    data
        of square images, at least as large; images of that size are returned as they are.
    image_size
        the side of the images in pixels.
    folder
        of the data set.
    most
        the number of images by which a change of the data is noticed: see :func:`fingerprint`.

    Examples
    --------
    >>> images = np.arange(4 * 64 * 64, dtype=np.uint8).reshape(4, 64, 64)
    >>> with_image_size(uw.data.from_arrays(images), 32, uw.data.data_folder() / "example")
    Dataset(arrays: 4 of 32x32x1; no factors)
    """
    side = check_value("image_size", image_size, Count)
    check_image_size(data.name, data.image_shape, side)
    if data.image_shape[0] == side:
        return data
    shape = (side, side, data.image_shape[2])
    noise, function = data.noise, data.function
    if noise is not None:

        def reduced_noise(images: AnyArray, rng: Rng) -> AnyArray:
            return reduce_images(noise(images, rng), side)

        return data.with_parts(image_shape=shape, noise=reduced_noise)
    array = None if data.array is None else _reduced_array(data, data.array, side, folder, most)
    if function is None:
        return data.with_parts(image_shape=shape, array=array)

    def reduced_function(factors: FactorArray, rng: Rng | None) -> AnyArray:
        return reduce_images(function(factors, rng), side)

    return data.with_parts(image_shape=shape, array=array, function=reduced_function)


def check_image_size(name: str, image_shape: tuple[int, ...], image_size: int) -> None:
    """Refuse a size that a data set of this name and shape cannot have.

    Examples
    --------
    >>> check_image_size("dsprites", (64, 64, 1), 128)
    Traceback (most recent call last):
    unweave.errors.ArgumentError: image_size = 128: the images of dsprites have 64 x 64 pixels: needs 64 or fewer
    """
    if len(image_shape) != 3 or image_shape[0] != image_shape[1]:
        shape = " x ".join(map(str, image_shape))
        raise ArgumentError("image_size", image_size, f"{name} has no square images: its shape is {shape}")
    side = image_shape[0]
    if image_size > side:
        allowed = f"the images of {name} have {side} x {side} pixels: needs {side} or fewer"
        raise ArgumentError("image_size", image_size, allowed)


def reduce_images(images: AnyArray, side: Count) -> ByteArray:
    """Square images with fewer pixels, antialiased.

    Where the old side is a multiple k of the new one, a pixel is the mean of k x k pixels, rounded to the nearest
    byte (halves up). Other sizes are those of Pillow's Lanczos filter.

    Parameters
    ----------
    images
        bytes (n, H, H, 1 or 3).
    side
        pixels, at most H.

    Returns
    -------
    bytes (n, side, side, 1 or 3)

    Examples
    --------
    >>> images = np.uint8([[0, 1, 10, 20], [1, 0, 30, 40], [7, 7, 255, 255], [7, 7, 255, 255]])
    >>> reduce_images(images[None, :, :, None], 2)[0, :, :, 0]
    array([[  1,  25],
           [  7, 255]], dtype=uint8)
    """
    if images.dtype != np.uint8:
        raise ArgumentError("image_size", side, f"needs images of bytes, not of {images.dtype}")
    factor, rest = divmod(images.shape[1], side)
    if rest:
        return resize(images, side)
    pixels = factor * factor
    total = np.full(
        (len(images), side, side, images.shape[3]), pixels // 2, np.uint16 if factor <= 16 else np.uint32
    )
    for y in range(factor):
        for x in range(factor):
            total += images[:, y::factor, x::factor]
    total //= pixels
    return total.astype(np.uint8)


def _reduced_array(data: Dataset, array: RowArray, side: int, folder: Path, most: int | None) -> RowArray:
    """The images of all rows: reduced now, or, where they are rendered on demand, when asked for."""
    shape = (len(array), side, side, array.shape[3])
    if isinstance(array, LazyArray):

        def render(rows: IntArray) -> ByteArray:
            return reduce_images(array.take(rows, axis=0), side)

        return LazyArray(folder / "sizes" / str(side), shape, render, version=array.version)

    def build(_: Mapping[str, Path], out: Writer) -> None:
        images = out.create("images", shape)
        with progress(f"Reducing {data.name} to {side} x {side}", len(array), "images") as advance:
            for start in range(0, len(array), _BLOCK):
                rows = np.arange(start, min(start + _BLOCK, len(array)))
                images[rows[0] : rows[-1] + 1] = reduce_images(np.asarray(array.take(rows, axis=0)), side)
                advance(len(rows))

    version = int(f"{_VERSION}{fingerprint(data, most)}", 16)
    return prepared(folder / "sizes", [], build, version=version, name=str(side))["images"]
