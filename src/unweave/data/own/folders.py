"""A folder of images as a data set, with the factors in its table."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import AnyArray, IntArray
from unweave.data.dataset import Dataset, RowArray, SomeRows
from unweave.data.files.checksum import sha256_of
from unweave.data.files.images import SUFFIXES, ImageHeader, read_header, read_image
from unweave.data.own.arrays import labelled
from unweave.data.own.columns import factor_table
from unweave.data.own.with_labels import UserLabels, label_columns
from unweave.data.storage.prepared import Writer, data_folder, prepared
from unweave.errors import ArgumentError, DataError
from unweave.files import read_json, write_text
from unweave.progress import progress

FACTORS_FILE = "factors.csv"
_VERSION = 1  # of the preparation: part of what decides whether it is current
_AT_A_TIME = 256  # images in memory while decoding
_LISTED = 50  # unreadable images that a message names


def from_folder(
    path: str | os.PathLike[str],
    factors: UserLabels | None = FACTORS_FILE,
    *,
    names: Sequence[str] | None = None,
    size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    categorical: Sequence[str] = (),
    name: str | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """A data set of all images in a folder and below it, in the order of their relative paths.

    The images are decoded once, into one memory-mapped array in the data folder; later loads open
    that. They are decoded again when an image was added, removed or changed (its size or time of change).
    Transparent images are laid on white, 16 bits are reduced to 8, and of an animation the first frame is taken.

    Parameters
    ----------
    path
        the folder. Hidden files and folders are passed over; links are followed.
    factors
        a CSV file, by its path relative to the folder, with a header line. Its first column is an image's
        path relative to the folder, the others are factors. Cells are integers, floats or text, and become factors as
        in :func:`unweave.data.own.columns.factor_table`; an empty cell, or an image without a line, is not known. Or a
        mapping or a data frame by file name, as in :func:`with_labels`. None: images without labels.
    names
        of the factors to use; by default all.
    size
        64, or (height, width): images are cut to this shape around their centre and resized (Lanczos,
        antialiased). None: all must have the same size.
    channels
        1 for grey, 3 for colour; None: 3, unless every file holds a grey image.
    categorical
        the factors whose values have no order; columns of text are categorical anyway.
    name
        of the data set; by default the folder's.
    skip_bad
        leave out images that cannot be read, with a warning that names them. By default they are refused, all at once.

    Returns
    -------
    Dataset
        its ``files`` are the paths of its rows.

    Examples
    --------
    >>> from PIL import Image
    >>> Path("photos").mkdir()
    >>> for number in range(3):
    ...     Image.new("RGB", (80, 60)).save(f"photos/{number}.png")
    >>> uw.data.from_folder("photos", factors=None, size=64)
    Dataset(photos: 3 of 64x64x3; no factors)
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise ArgumentError("path", str(path), "needs a folder")
    shape = _check_size(size)
    if channels not in (None, 1, 3):
        raise ArgumentError("channels", channels, "needs 1, 3 or None")
    stamps = image_files(folder)
    if not stamps:
        raise DataError(f"{folder}: no images here ({', '.join(sorted(SUFFIXES))})")
    own_table = isinstance(factors, str | os.PathLike) and os.fspath(factors) != FACTORS_FILE
    labels_file = ""
    if isinstance(factors, str | os.PathLike):
        labels_file = str(folder / factors) if own_table else ""
        factors = folder / factors
    known = list(stamps)
    columns = {} if factors is None else label_columns(factors, known, folder, names=names)
    factor_table(columns, categorical)  # a mistake in the table is found before the images are decoded
    images, bad = _prepared(folder, stamps, shape, channels, skip_bad)
    array: RowArray = images
    if len(bad):
        good = np.setdiff1d(np.arange(len(known)), bad)
        skipped = {known[row] for row in bad}
        _warn_of_skipped(folder, sorted(skipped), len(known))
        if not len(good):
            raise DataError(f"{folder}: none of its {len(known)} images can be read")
        known, array = [known[row] for row in good], SomeRows(images, good)
        if factors is not None:
            columns = label_columns(factors, known, folder, names=names, skipped=skipped)
    space, table = factor_table(columns, categorical)
    data = labelled(folder.name if name is None else name, space, array, table)
    return data.with_parts(
        folder=os.fspath(path),
        files=tuple(known),
        labels_file=labels_file,
        skip_bad=skip_bad,
    )


def folder_content(path: str | os.PathLike[str], factors: str | os.PathLike[str] = FACTORS_FILE) -> str:
    """A hash of a folder's images, their relative paths and its table of factors; not of where they are.

    Files are read once: the hash is kept in the data folder until one of them has another size or time of change.

    Parameters
    ----------
    path
        the folder.
    factors
        its table of factors, by its path relative to the folder; there need not be one.

    Examples
    --------
    >>> Path("folder").mkdir()
    >>> len(folder_content("folder"))
    32
    """
    folder = Path(path).expanduser().absolute()
    stamps = image_files(folder)
    table = folder / factors
    if table.is_file():
        status = table.stat()
        stamps[FACTORS_FILE] = (status.st_size, status.st_mtime_ns)
    seen = _digest([_VERSION, list(stamps.items())])
    key = str(folder) if os.fspath(factors) == FACTORS_FILE else [str(folder), str(table)]
    known = data_folder() / "folders" / f"{_digest(key)[:32]}.json"
    try:
        kept = read_json(known)
    except (OSError, DataError):
        kept = {}
    if kept.get("seen") == seen:
        return str(kept["content"])
    digest = hashlib.sha256()
    with progress(f"reading {folder.name}", len(stamps), "files", transient=True) as advance:
        for name in stamps:
            digest.update(
                json.dumps([name, sha256_of(table if name == FACTORS_FILE else folder / name)]).encode()
            )
            advance(1)
    content = digest.hexdigest()[:32]
    with suppress(OSError):  # a data folder that cannot be written costs time only
        write_text(known, json.dumps({"seen": seen, "content": content}))
    return content


def image_files(
    path: str | os.PathLike[str],
    suffixes: frozenset[str] = SUFFIXES,
    unreadable: dict[str, str] | None = None,
) -> dict[str, tuple[int, int]]:
    """The images in a folder and below it: relative path -> (size, time of change), in the order of paths.

    Parameters
    ----------
    path
        of the folder.
    suffixes
        the ends of names that count, in lower case.
    unreadable
        receives what cannot be read below it, folders and files, with the reason; without it that is an error.

    Examples
    --------
    >>> Path("empty").mkdir()
    >>> image_files("empty")
    {}
    """
    folder = Path(path).expanduser().absolute()
    return dict(sorted(_list(folder, "", (os.path.realpath(folder),), suffixes, unreadable)))


def _list(
    folder: Path | str,
    prefix: str,
    above: tuple[str, ...],
    suffixes: frozenset[str],
    unreadable: dict[str, str] | None,
) -> Iterator[tuple[str, tuple[int, int]]]:
    """The relative path of each image with its size and time of change.

    ``above`` are the real paths of the folders on the way here: a link back to one would never end.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        if unreadable is None or not prefix:
            raise DataError(f"{folder}: cannot be read ({error.strerror})") from error
        unreadable[prefix] = f"the folder cannot be read ({error.strerror})"
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        name = prefix + entry.name
        try:
            is_folder = entry.is_dir()
            is_image = Path(name).suffix.lower() in suffixes and entry.is_file()
            status = entry.stat() if is_image else None
        except OSError as error:  # in a folder that may be listed and not entered, or gone just now
            if unreadable is None:
                raise DataError(f"{entry.path}: cannot be read ({error.strerror})") from error
            unreadable[name] = f"cannot be read ({error.strerror})"
            continue
        if is_folder:
            real = os.path.realpath(entry.path)
            if real not in above:
                yield from _list(entry.path, f"{name}/", (*above, real), suffixes, unreadable)
        elif status is not None:
            yield name, (status.st_size, status.st_mtime_ns)


def _prepared(
    folder: Path,
    stamps: Mapping[str, tuple[int, int]],
    size: tuple[int, int] | None,
    channels: int | None,
    skip_bad: bool,
) -> tuple[AnyArray, IntArray]:
    """All images as one array (n, H, W, C), and the rows of those that cannot be read, if they are to be skipped.

    Their path depends on the folder and the options; the listing is the version, so that the images of a
    changed folder replace the old ones instead of piling up beside them.
    """
    options = [str(folder), size, channels, *(["skip_bad"] if skip_bad else [])]
    path = data_folder() / "folders" / _digest(options)[:32]
    version = int(_digest([_VERSION, list(stamps.items())])[:15], 16)

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        _build(folder, list(stamps), size, channels, skip_bad, out)

    arrays = prepared(path, [], build, version=version)
    return arrays["images"], np.asarray(arrays.get("bad", np.zeros(0, np.int64)))


def _build(
    folder: Path,
    names: Sequence[str],
    size: tuple[int, int] | None,
    channels: int | None,
    skip_bad: bool,
    out: Writer,
) -> None:
    bad: dict[int, str] = {}  # why an image cannot be read, by row

    def attempt(read: Callable[[Path], Any], row: int) -> Any:
        try:
            return read(folder / names[row])
        except DataError as error:
            bad[row] = str(error)
            return None

    with ThreadPoolExecutor() as pool:  # Pillow decodes and resizes without holding the interpreter
        with progress(f"reading headers of {folder.name}", len(names), "images") as advance:
            headers: dict[int, ImageHeader] = {}
            for block in _blocks(len(names)):
                read = pool.map(lambda row: attempt(read_header, row), block)
                headers |= {
                    row: header for row, header in zip(block, read, strict=True) if header is not None
                }
                advance(len(block))
        if not headers:
            raise DataError(_unreadable(bad, len(names)))
        height, width = _common_size(folder, names, headers) if size is None else size
        depth = channels or (1 if all(header.is_grey for header in headers.values()) else 3)
        images = out.create("images", (len(names), height, width, depth))
        with progress(f"preparing {folder.name}", len(names), "images") as advance:
            for block in _blocks(len(names)):
                rows = [row for row in block if row in headers]
                decoded = pool.map(
                    lambda row: attempt(lambda path: read_image(path, (height, width), depth), row), rows
                )
                for row, image in zip(rows, decoded, strict=True):
                    if image is not None:
                        images[row] = image
                advance(len(block))
    if bad and not skip_bad:
        raise DataError(_unreadable(bad, len(names)))
    if bad:
        out.save("bad", np.array(sorted(bad), np.int64))


def _blocks(total: int) -> list[range]:
    return [range(start, min(start + _AT_A_TIME, total)) for start in range(0, total, _AT_A_TIME)]


def _unreadable(bad: Mapping[int, str], total: int) -> str:
    """The message that names all images that cannot be read."""
    reasons = [bad[row] for row in sorted(bad)]
    if len(reasons) == 1:
        return f"{reasons[0]}; skip_bad=True (--skip-bad) leaves it out"
    lines = [f"  {reason}" for reason in reasons[:_LISTED]]
    lines += [f"  … and {len(reasons) - _LISTED} more"] if len(reasons) > _LISTED else []
    head = f"{len(reasons)} of {total} images cannot be read; skip_bad=True (--skip-bad) leaves them out:"
    return "\n".join([head, *lines])


def _warn_of_skipped(folder: Path, names: Sequence[str], total: int) -> None:
    shown = ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
    message = f"{folder}: {len(names)} of {total} images cannot be read and are left out: {shown}"
    warnings.warn(message, stacklevel=3)


def _common_size(folder: Path, names: Sequence[str], headers: Mapping[int, ImageHeader]) -> tuple[int, int]:
    base = next(iter(headers))
    first = headers[base].size
    for row, header in headers.items():
        if header.size != first:
            shown = " and ".join(
                f"{n} is {h} x {w}" for n, (h, w) in ((names[base], first), (names[row], header.size))
            )
            raise DataError(
                f"{folder}: images differ in size: {shown}. Pass size=64, say, to make them equal."
            )
    return first


def _check_size(size: object) -> tuple[int, int] | None:
    if size is None:
        return None
    pair = (size, size) if isinstance(size, int | np.integer) else size
    if isinstance(pair, tuple | list) and len(pair) == 2:
        height, width = pair
        whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in pair)
        if whole and height >= 1 and width >= 1:
            return int(height), int(width)
    raise ArgumentError("size", size, "needs a whole number >= 1, or two: (height, width)")


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
