"""The photographs of a folder: which can be read, their sizes and colours, and which of them are the same."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unweave.arrays import AnyArray, ByteArray, FloatArray, IntArray
from unweave.data.files.images import SUFFIXES, ImageHeader, read_header, read_image
from unweave.data.image_size import reduce_images
from unweave.data.own.folders import image_files
from unweave.errors import ArgumentError, DataError
from unweave.files import read_json, replacing, write_text
from unweave.progress import progress

FEWEST = 10  # different photographs: with fewer there is nothing to compare
_SIDES = (28, 32, 64)  # of the square that photographs are brought to
_ALIKE = 6  # of 255: what a JPEG changes in a pixel of the small picture, and no more
_MOST_COMPARED = 20_000
_SMALL = 16
_AT_A_TIME = 256
_ARRAY, _FACTS = "images.npy", "photographs.json"
_VERSION = 1
# Photographs of cameras and telephones that need a reader of their own: listed as unreadable, not passed over.
_NOT_READ = frozenset(
    [".heic", ".heif", ".avif", ".jxl", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"]
)


@dataclass(frozen=True)
class Photographs:
    """All photographs of a folder that can be read, as squares of one size.

    Parameters
    ----------
    folder
        that they are in.
    names
        relative paths (n,), in their order.
    images
        bytes (n, side, side, 1 or 3).
    sizes
        (height, width) of each file.
    unreadable
        the name of each file that cannot be read, and why.
    digest
        a hash of names and pixels.
    """

    folder: Path
    names: tuple[str, ...]
    images: ByteArray
    sizes: tuple[tuple[int, int], ...]
    unreadable: tuple[tuple[str, str], ...]
    digest: str

    def __len__(self) -> int:
        return len(self.names)

    @property
    def side(self) -> int:
        """Pixels of a square's side."""
        return int(self.images.shape[1])

    @property
    def channels(self) -> int:
        """1 for grey, 3 for colour."""
        return int(self.images.shape[3])

    @cached_property
    def small(self) -> ByteArray:
        """The photographs at 16 x 16 pixels, or at 14 x 14 where they have 28."""
        return reduce_images(np.asarray(self.images), _SMALL if self.side % _SMALL == 0 else self.side // 2)

    @cached_property
    def first_alike(self) -> IntArray:
        """For each row the first row that shows the same (n,): its own, unless it is a duplicate."""
        return _first_alike(np.asarray(self.images), self.small)

    @property
    def distinct(self) -> IntArray:
        """The rows without duplicates."""
        return np.flatnonzero(self.first_alike == np.arange(len(self)))

    @property
    def common_sizes(self) -> list[tuple[tuple[int, int], int]]:
        """The sizes of the files with how many have them, most frequent first."""
        return Counter(self.sizes).most_common()

    def at(self, side: int) -> ByteArray:
        """The photographs at ``side`` x ``side`` pixels."""
        images = np.asarray(self.images)
        return images if side == self.side else reduce_images(images, side)


def read_photographs(path: Path | str, store: Path, exclude: Path | None = None) -> Photographs:
    """Read every image in a folder and below it, once: a second call opens what ``store`` holds.

    Each is cut to a square around its centre and brought to 64 x 64 pixels; 32 x 32 or 28 x 28 where the files are that
    small. Files, and folders inside, that cannot be read are listed, and do no harm. If all are grey, or colour files
    without colour, one channel is kept.

    Parameters
    ----------
    path
        the folder.
    store
        where the squares are kept.
    exclude
        a folder inside it that is passed over: the output.

    Examples
    --------
    >>> from PIL import Image
    >>> Path("photos").mkdir()
    >>> for value in range(3):
    ...     Image.new("RGB", (80, 60), (value, 9, 0)).save(f"photos/{value}.png")
    >>> photographs = read_photographs("photos", Path("store"))
    >>> len(photographs), photographs.images.shape, photographs.distinct
    (3, (3, 64, 64, 3), array([0, 1, 2]))
    """
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise ArgumentError("photos", str(path), "needs a folder of images")
    locked: dict[str, str] = {}
    stamps = {
        name: stamp
        for name, stamp in image_files(folder, SUFFIXES | _NOT_READ, locked).items()
        if exclude is None or not (folder / name).is_relative_to(exclude.absolute())
    }
    if not stamps:
        raise DataError(f"{folder}: no images here (.jpg, .png, .gif, .tif, .webp, .bmp and others)")
    content = [_VERSION, str(folder), list(stamps.items()), *([sorted(locked)] if locked else [])]
    listing = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    kept = _kept(folder, store, listing)
    return _read(folder, list(stamps), locked, store, listing) if kept is None else kept


def stored_images(store: Path) -> ByteArray:
    """The squares that :func:`read_photographs` has kept, read from the disk as they are needed."""
    images: ByteArray = np.load(store / _ARRAY, mmap_mode="r", allow_pickle=False)
    return images


def write_array(path: Path, array: AnyArray) -> None:
    """Write an array as an NPY file, whole or not at all.

    NumPy itself does not say of a full disk that it is full.

    Examples
    --------
    >>> write_array(Path("numbers.npy"), np.arange(3))
    >>> np.load("numbers.npy")
    array([0, 1, 2])
    """
    whole = np.ascontiguousarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(whole))
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(header.getvalue())
        file.write(whole.reshape(-1).view(np.uint8).data)


def check_enough(photographs: Photographs) -> None:
    """Refuse photographs of which fewer than ten are different."""
    distinct = len(photographs.distinct)
    if distinct == 1 and len(photographs) > 1:
        raise DataError(f"{photographs.folder}: all {len(photographs)} images show the same: nothing varies")
    if distinct < FEWEST:
        counted = f"{len(photographs)} readable images, {distinct} of them different"
        raise DataError(
            f"{photographs.folder}: {counted}; needs {FEWEST} different ones, and hundreds to be sure of anything"
        )


def _kept(folder: Path, store: Path, listing: str) -> Photographs | None:
    """What an earlier call has read, if the folder's files are still those."""
    try:
        facts = read_json(store / _FACTS, limit=1 << 30)
        if facts.get("listing") != listing:
            return None
        images = np.load(store / _ARRAY, allow_pickle=False)
        return _photographs(folder, images, facts)
    except (OSError, DataError, ValueError, KeyError, TypeError):
        return None


def _photographs(folder: Path, images: ByteArray, facts: dict[str, Any]) -> Photographs:
    names = tuple(map(str, facts["names"]))
    if images.dtype != np.uint8 or images.ndim != 4 or len(images) != len(names):
        raise DataError("not the images of these files")
    sizes = tuple((int(height), int(width)) for height, width in facts["sizes"])
    unreadable = tuple((str(name), str(why)) for name, why in facts["unreadable"])
    return Photographs(folder, names, images, sizes, unreadable, str(facts["digest"]))


def _read(
    folder: Path, listed: Sequence[str], locked: Mapping[str, str], store: Path, listing: str
) -> Photographs:
    """Read the listed files; ``locked`` are folders and files that cannot be read, with the reason."""
    headers: dict[str, ImageHeader] = {}
    unreadable = dict(locked)
    with ThreadPoolExecutor() as pool, progress("Reading headers", len(listed), "files") as advance:
        for name, header in zip(
            listed, pool.map(lambda name: _try_header(folder / name), listed), strict=True
        ):
            if isinstance(header, ImageHeader):
                headers[name] = header
            else:
                unreadable[name] = header
            advance(1)
    if not headers:
        raise _none_readable(folder, unreadable)
    side = _stored_side(list(headers.values()))
    channels = 1 if all(header.is_grey for header in headers.values()) else 3
    blocks: list[ByteArray] = []
    names: list[str] = []
    with ThreadPoolExecutor() as pool, progress("Reading photographs", len(headers), "files") as advance:
        candidates = list(headers)
        for start in range(0, len(candidates), _AT_A_TIME):
            block = candidates[start : start + _AT_A_TIME]
            pixels = list(pool.map(lambda name: _try_image(folder / name, side, channels), block))
            unreadable |= {name: one for name, one in zip(block, pixels, strict=True) if isinstance(one, str)}
            good = {name: one for name, one in zip(block, pixels, strict=True) if not isinstance(one, str)}
            names += good
            blocks += list(good.values())
            advance(len(block))
    if not names:
        raise _none_readable(folder, unreadable)
    images = np.stack(blocks)
    if channels == 3 and not _has_colour(images):
        images = np.ascontiguousarray(images[..., 1:2])
    digest = hashlib.sha256(json.dumps(names).encode())
    digest.update(images.tobytes())
    facts = {
        "listing": listing,
        "names": names,
        "sizes": [headers[name].size for name in names],
        "unreadable": sorted((name, _without(folder, name, why)) for name, why in unreadable.items()),
        "digest": digest.hexdigest()[:32],
    }
    store.mkdir(parents=True, exist_ok=True)
    write_array(store / _ARRAY, images)
    write_text(store / _FACTS, json.dumps(facts))
    return _photographs(folder, images, facts)


def _none_readable(folder: Path, unreadable: dict[str, str]) -> DataError:
    name, why = next(iter(unreadable.items()))
    first = f"{name!r}: {_without(folder, name, why)}"
    return DataError(f"{folder}: none of {len(unreadable)} image files can be read, first {first}")


def _try_header(path: Path) -> ImageHeader | str:
    if path.suffix.lower() in _NOT_READ:
        return f"photographs of this kind ({path.suffix}) cannot be read; save them as JPEG"
    try:
        return read_header(path)
    except (DataError, OSError) as error:
        return str(error)


def _try_image(path: Path, side: int, channels: int) -> ByteArray | str:
    try:
        return read_image(path, (side, side), channels)
    except (DataError, OSError) as error:
        return str(error)


def _without(folder: Path, name: str, why: str) -> str:
    """The reason without the path of the file."""
    return why.replace(f"{folder / name}: ", "").replace(str(folder / name), "the file")


def _stored_side(headers: Sequence[ImageHeader]) -> int:
    """28 where all files have 28 pixels, 32 where most have fewer than 48, else 64."""
    sides = sorted(min(header.size) for header in headers)
    if sides[0] == sides[-1] == _SIDES[0]:
        return _SIDES[0]
    return _SIDES[1] if sides[len(sides) // 2] < 48 else _SIDES[2]


def _has_colour(images: ByteArray) -> bool:
    """Whether any photograph has colour: channels that differ by more than rounding."""
    for start in range(0, len(images), _AT_A_TIME):
        block = images[start : start + _AT_A_TIME].astype(np.int16)
        if np.abs(block[..., 0] - block[..., 1]).max() > 3 or np.abs(block[..., 2] - block[..., 1]).max() > 3:
            return True
    return False


def _first_alike(images: ByteArray, small: ByteArray) -> IntArray:
    """The first row that shows the same: equal pixels, or small pictures that nowhere differ by more than a JPEG does.

    Where the second would leave less than half of what the first does, photographs that hardly differ are what there
    is: then only equal pixels count, as they do where there are very many photographs.
    """
    exact = _leaders_of_equal(images)
    if len(images) > _MOST_COMPARED:
        return exact
    alike = _leaders_of_alike(small.reshape(len(small), -1).astype(np.float64))
    kept_exact = int((exact == np.arange(len(exact))).sum())
    kept_alike = int((alike == np.arange(len(alike))).sum())
    return alike if kept_alike * 2 >= kept_exact else exact


def _leaders_of_equal(images: ByteArray) -> IntArray:
    seen: dict[bytes, int] = {}
    keys = (hashlib.sha256(image.tobytes()).digest() for image in images)
    return np.array([seen.setdefault(key, row) for row, key in enumerate(keys)], dtype=np.int64)


def _leaders_of_alike(points: FloatArray) -> IntArray:
    """For each point the first leader within ``_ALIKE`` in every coordinate; a point without one is a leader."""
    from scipy.spatial import cKDTree

    # Coordinates that vary most tell most pairs apart; the others are compared for those that are left.
    coordinates = np.argsort(points.var(axis=0))[::-1][:12]
    neighbours: Any = cKDTree(points[:, coordinates]).query_ball_point(
        points[:, coordinates], r=_ALIKE, p=np.inf, return_sorted=True
    )
    leaders = np.arange(len(points))
    for row, near in enumerate(neighbours):
        for other in near:
            if other >= row:
                break
            if leaders[other] == other and np.abs(points[row] - points[other]).max() <= _ALIKE:
                leaders[row] = other
                break
    return leaders
