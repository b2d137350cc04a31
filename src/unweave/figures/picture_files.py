"""Pictures written to disk."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from unweave.errors import ArgumentError, UnweaveError
from unweave.files import check_can_write, replacing

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


def save_picture(image: Image.Image, path: Path | str) -> Path:
    """Write a picture, whole or not at all, and the folders that it needs.

    Parameters
    ----------
    image
        the picture.
    path
        whose suffix decides the format: .png, .jpg, .jpeg or .webp.

    Returns
    -------
    Path
        of the file.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> uw.figures.save_picture(uw.figures.contact_sheet(data), "pictures/sheet.png").name
    'sheet.png'
    """
    target = check_picture_path(path)
    try:
        with replacing(target) as work:
            image.save(work)
    except OSError as error:
        raise UnweaveError(f"{target}: cannot write the picture ({error.strerror or error})") from error
    return target


def check_picture_path(path: Path | str) -> Path:
    """The path, or an error if no picture can be written there; to be called before long work.

    Examples
    --------
    >>> uw.figures.check_picture_path("sheet.txt")
    Traceback (most recent call last):
    unweave.errors.ArgumentError: path = 'sheet.txt': a picture's name ends in .png, .jpg, .jpeg, .webp
    """
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise ArgumentError("path", str(path), f"a picture's name ends in {', '.join(_SUFFIXES)}")
    return check_can_write(target)
