"""Image files: those of a data set, whose size is known, and those of a user, brought to 8 bits and one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unweave.arrays import ByteArray
from unweave.errors import ArgumentError, DataError
from unweave.files import check_regular

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"]
)
_GREY = {"1", "L", "LA", "La", "I", "F"}  # and all that start with "I;16"
_CAMERA = {"JPEG", "MPO", "WEBP"}  # formats whose images may be stored turned, as the camera was held
_SIDEWAYS = {5, 6, 7, 8}
_ORIENTATION = 0x0112  # the EXIF tag


@dataclass(frozen=True)
class ImageHeader:
    """What the header of an image file says: (height, width) of the upright image, and whether it is grey."""

    size: tuple[int, int]
    is_grey: bool


def read_header(path: Path) -> ImageHeader:
    """Read the header of an image file, not its pixels.

    Examples
    --------
    >>> from PIL import Image
    >>> Image.fromarray(np.zeros((2, 3), np.uint8)).save("grey.png")
    >>> read_header(Path("grey.png"))
    ImageHeader(size=(2, 3), is_grey=True)
    """
    with _open_image(path) as image:
        width, height = image.size
        is_sideways = image.format in _CAMERA and image.getexif().get(_ORIENTATION) in _SIDEWAYS
        is_grey = image.mode in _GREY or image.mode.startswith("I;16")
        return ImageHeader((width, height) if is_sideways else (height, width), is_grey)


def read_image(path: Path, size: tuple[int, int], channels: int) -> ByteArray:
    """Read an image file of any common kind, cropped around its centre and resized.

    A transparent image is put on white. 16 bits are divided by 257, so that 65535 becomes 255. Pixels of 32 bits have
    no known range and are refused. A colour image becomes grey by its luma, ITU-R 601-2. Resizing is antialiased:
    Pillow's LANCZOS.

    Parameters
    ----------
    path
        the file.
    size
        (height, width). An image of another aspect is cropped to that of ``size``.
    channels
        1 for grey, 3 for RGB.

    Returns
    -------
    array
        (height, width, channels).

    Examples
    --------
    >>> from PIL import Image
    >>> Image.fromarray(np.full((8, 12, 3), 200, np.uint8)).save("colour.png")
    >>> read_image(Path("colour.png"), (4, 4), channels=3).shape
    (4, 4, 3)
    """
    from PIL import Image, ImageOps

    with _open_image(path) as image:
        upright = ImageOps.exif_transpose(image) if image.format in _CAMERA else image
        converted = _to_8_bits(upright).convert("L" if channels == 1 else "RGB")
        height, width = size
        if converted.size != (width, height):
            cropped = _crop_to_aspect(converted, width / height)
            converted = cropped.resize((width, height), Image.Resampling.LANCZOS)
        return np.asarray(converted).reshape(height, width, channels)


def decode_image(data: bytes, name: str, mode: Literal["RGB", "L"], size: tuple[int, int]) -> ByteArray:
    """Decode a PNG or JPEG, which must have this size.

    Parameters
    ----------
    data
        the content of the file.
    name
        of the image in errors.
    mode
        "RGB" or "L" (grey).
    size
        (width, height) in pixels.

    Returns
    -------
    array
        (height, width, channels).

    Examples
    --------
    >>> from PIL import Image
    >>> Image.fromarray(np.zeros((2, 3), np.uint8)).save("grey.png")
    >>> decode_image(Path("grey.png").read_bytes(), "grey.png", "L", (3, 2)).shape
    (2, 3, 1)
    """
    from PIL import Image

    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG")) as image:
            # Checked before decoding: a small file can claim an enormous image.
            if image.size != size:
                actual = f"{image.size[0]} x {image.size[1]} pixels"
                raise DataError(f"{name}: has {actual}; expected {size[0]} x {size[1]}")
            pixels = np.array(image.convert(mode))
    except DataError:
        raise
    except Exception as error:  # the decoders raise many kinds
        raise DataError(f"{name}: not a readable PNG or JPEG picture ({error})") from error
    return pixels.reshape(size[1], size[0], -1)


def centre_crop(image: ByteArray, side: int) -> ByteArray:
    """The middle ``side`` x ``side`` pixels of an image (H, W, C).

    Examples
    --------
    >>> centre_crop(np.zeros((10, 8, 3), np.uint8), 4).shape
    (4, 4, 3)
    """
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    return image[top : top + side, left : left + side]


def resize(images: ByteArray, side: int = 64) -> ByteArray:
    """Resize images (n, H, W, C) to (n, side, side, C), antialiased: Pillow's LANCZOS, as in disentanglement_lib.

    The filter rounds to whole values within 0 .. 255, so images must be uint8.

    Examples
    --------
    >>> resize(np.zeros((2, 96, 96, 1), np.uint8)).shape
    (2, 64, 64, 1)
    """
    from PIL import Image

    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3):
        actual = f"{images.dtype} array of shape {images.shape}"
        raise ArgumentError("images", actual, "needs uint8 of shape (n, H, W, 1 or 3)")
    if images.shape[1:3] == (side, side):
        return images
    out = np.empty((len(images), side, side, images.shape[3]), np.uint8)
    for target, pixels in zip(out, images, strict=True):
        image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
        target[:] = np.asarray(image.resize((side, side), Image.Resampling.LANCZOS)).reshape(target.shape)
    return out


@contextmanager
def _open_image(path: Path) -> Iterator[Any]:
    """An open image file; whatever goes wrong with it is a DataError."""
    from PIL import Image

    check_regular(path)
    try:
        with Image.open(path) as image:
            yield image
    except Exception as error:  # the decoders raise many kinds
        raise DataError(f"{path}: not a readable image ({error})") from error


def _to_8_bits(image: Image.Image) -> Image.Image:
    """An image with 8 bits for each channel, without transparency."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        values = np.asarray(image, dtype=np.float64)
        return Image.fromarray(np.clip(np.rint(values / 257), 0, 255).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError("its pixels have 32 bits: save it with 8 or 16")
    if not image.has_transparency_data:
        return image
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA"))


def _crop_to_aspect(image: Image.Image, aspect: float) -> Image.Image:
    """The largest part around the centre whose width / height is ``aspect``, to the nearest pixel."""
    width = max(1, min(image.width, round(image.height * aspect)))
    height = max(1, min(image.height, round(image.width / aspect)))
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))
