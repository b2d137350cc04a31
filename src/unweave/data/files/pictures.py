"""Pictures: decoding them, and making them smaller without aliasing."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import numpy.typing as npt

from unweave.errors import ArgumentError, DataError

Pixels = npt.NDArray[np.uint8]
_FORMATS = ("PNG", "JPEG")


def decode(data: bytes, where: str, mode: str, size: tuple[int, int]) -> Pixels:
    """A PNG or JPEG as pixels (H, W, C): mode "RGB" or "L" (grey); it must be ``size`` = (W, H).

    ``where`` names the picture in errors.
    """
    from PIL import Image

    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as picture:
            # Asked before decoding: a small file can claim an enormous picture.
            if picture.size != size:
                found = f"{picture.size[0]} x {picture.size[1]} pixels"
                raise DataError(f"{where}: has {found}; expected {size[0]} x {size[1]}")
            pixels = np.array(picture.convert(mode))
    except DataError:
        raise
    except Exception as error:  # the decoders raise many kinds
        raise DataError(f"{where}: not a readable PNG or JPEG picture ({error})") from error
    return pixels.reshape(size[1], size[0], -1)


def centre_crop(image: Pixels, side: int) -> Pixels:
    """The middle ``side`` x ``side`` pixels of an image (H, W, C)."""
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    return image[top : top + side, left : left + side]


def resize(images: Pixels, side: int = 64) -> Pixels:
    """Images (n, H, W, C) -> (n, side, side, C), antialiased: Pillow's LANCZOS, as in disentanglement_lib.

    The filter rounds to whole values within 0 .. 255: only uint8 is taken.
    """
    from PIL import Image

    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3):
        found = f"{images.dtype} array of shape {images.shape}"
        raise ArgumentError("images", found, "needs uint8 of shape (n, H, W, 1 or 3)")
    if images.shape[1:3] == (side, side):
        return images
    out = np.empty((len(images), side, side, images.shape[3]), np.uint8)
    for target, image in zip(out, images, strict=True):
        picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
        target[:] = np.asarray(picture.resize((side, side), Image.Resampling.LANCZOS)).reshape(target.shape)
    return out
