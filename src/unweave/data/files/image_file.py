"""Image files of any common kind, as a user has them, brought to 8 bits, grey or colour, and one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from unweave.errors import DataError

SUFFIXES = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"]
)
_GREY = {"1", "L", "LA", "La", "I", "F"}  # and all that start with "I;16"
_CAMERA = {"JPEG", "MPO", "WEBP"}  # formats whose images may be stored turned, as the camera was held
_SIDEWAYS = {5, 6, 7, 8}
_ORIENTATION = 0x0112  # the EXIF tag


@dataclass(frozen=True)
class Look:
    """What a file's header says: (height, width) of the upright image, and whether it is grey."""

    size: tuple[int, int]
    is_grey: bool


def look_at(path: Path) -> Look:
    """Read the header of an image file, not its pixels."""
    with _opened(path) as image:
        width, height = image.size
        turned = image.format in _CAMERA and image.getexif().get(_ORIENTATION) in _SIDEWAYS
        return Look((width, height) if turned else (height, width), _is_grey(image))


def decode(path: Path, size: tuple[int, int], channels: int) -> npt.NDArray[np.uint8]:
    """The image as bytes (height, width, channels): cut to the shape of ``size`` around its centre, and
    resized with Pillow's Lanczos filter, which is antialiased.

    A transparent image is laid on white. 16 bits are divided by 257, so that 65535 becomes 255. Pixels
    of 32 bits have no known range and are refused. A colour image becomes grey by its luma, ITU-R 601-2.
    """
    with _opened(path) as image:
        upright = ImageOps.exif_transpose(image) if image.format in _CAMERA else image
        plain = _to_8_bits(upright).convert("L" if channels == 1 else "RGB")
        height, width = size
        if plain.size != (width, height):
            plain = _centre(plain, width / height).resize((width, height), Image.Resampling.LANCZOS)
        return np.asarray(plain).reshape(height, width, channels)


def _centre(image: Image.Image, aspect: float) -> Image.Image:
    """The largest part around the centre whose width / height is ``aspect``, to the nearest pixel."""
    width = max(1, min(image.width, round(image.height * aspect)))
    height = max(1, min(image.height, round(image.width / aspect)))
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def _to_8_bits(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        values = np.asarray(image, dtype=np.float64)
        return Image.fromarray(np.clip(np.rint(values / 257), 0, 255).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("its pixels have 32 bits: save it with 8 or 16")
    if not image.has_transparency_data:
        return image
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA"))


def _is_grey(image: Image.Image) -> bool:
    return image.mode in _GREY or image.mode.startswith("I;16")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with Image.open(path) as image:
            yield image
    except Exception as error:  # the decoders raise many kinds
        raise DataError(f"{path}: not a readable image ({error})") from error
