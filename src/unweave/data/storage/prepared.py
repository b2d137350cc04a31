"""The folder of all data, and data sets prepared there: once, whole, as memory-mapped arrays."""

from __future__ import annotations

import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import platformdirs

from unweave.arrays import AnyArray, ArrayLike
from unweave.data.files.npy import read_npy_header
from unweave.data.recipe import SourceFile
from unweave.data.storage.elsewhere import folder_to_write, original_stamps
from unweave.errors import DamagedFileError, DataError, MissingDataError
from unweave.files import open_regular, read_json

ENVIRONMENT_VARIABLE = "UNWEAVE_DATA"
_FORMAT = 1
_PAGE = 4096
_ZEROS = 1 << 20


def data_folder() -> Path:
    """The folder of all data: ``$UNWEAVE_DATA``, else the platform's cache folder.

    Examples
    --------
    >>> uw.data.data_folder().is_absolute()
    True
    """
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("unweave")) / "data"


class Writer:
    """Collects the arrays of a prepared data set in a folder that nobody else sees yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, name: str, shape: Sequence[int], dtype: npt.DTypeLike = np.uint8) -> np.memmap[Any, Any]:
        """A new zeroed array on disk, memory-mapped, to be filled."""
        return create_array(self.folder / f"{name}.npy", shape, dtype)

    def save(self, name: str, array: ArrayLike) -> None:
        """Store a finished array."""
        np.save(self.folder / f"{name}.npy", np.asarray(array), allow_pickle=False)


def prepared(
    folder: Path,
    files: Sequence[SourceFile],
    build: Callable[[Mapping[str, Path], Writer], None],
    *,
    version: int = 1,
    name: str = "prepared",
) -> dict[str, AnyArray]:
    """The arrays that ``build`` computes from ``files`` in ``folder``: computed once, memory-mapped from then on.

    They appear all at once, by a rename, and only if ``build`` ended well. Processes that come at the same time
    wait for the first. Once prepared, the source files are not needed any more. Files that are only read
    (:func:`~unweave.data.storage.elsewhere.only_read`) stay by themselves, unless arrays are there already.

    Parameters
    ----------
    folder
        of the data set.
    files
        the source files.
    build
        ``build(paths by file name, writer)``. It runs when there is nothing prepared yet, when a source file has
        changed since, or when ``version`` has.
    version
        of the preparation code.
    name
        of the subfolder of the arrays.

    Returns
    -------
    dict
        arrays by name.

    Examples
    --------
    >>> folder = uw.data.data_folder() / "example"
    >>> arrays = prepared(folder, [], lambda paths, out: out.save("images", np.zeros((4, 8, 8, 1), np.uint8)))
    >>> arrays["images"].shape
    (4, 8, 8, 1)
    """
    paths = {file.name: folder / file.name for file in files}
    target = folder / name
    originals = None
    if not _is_current(target, paths, version):
        target = folder_to_write(folder) / name
        originals = original_stamps() if target.parent != folder else None
    if not _is_current(target, paths, version, originals):
        missing = [file for file in files if not paths[file.name].is_file()]
        if missing:
            raise missing_files(folder, missing)

        def build_all(work: Path) -> None:
            stamps = {name: _stamp(path) for name, path in paths.items()}
            build(paths, Writer(work))
            meta = {"format": _FORMAT, "version": version, "sources": stamps}
            if originals is not None:
                meta["originals"] = originals
            (work / "meta.json").write_text(json.dumps(meta, indent=1))

        try:
            prepare(target, build_all, lambda: _is_current(target, paths, version, originals))
        except OSError as error:
            raise DataError(
                f"{target.parent}: cannot prepare data here ({error.strerror or error})"
            ) from error
    return {path.stem: map_array(path) for path in sorted(target.glob("*.npy"))}


def prepare(
    target: Path, build: Callable[[Path], None], is_current: Callable[[], bool] | None = None
) -> None:
    """Fill the folder ``target`` by ``build(work folder)``: it appears whole, by a rename, or not at all.

    Held under a lock that the operating system frees when a process dies, so of several
    processes one builds and the others wait. What a killed process left is removed.

    Examples
    --------
    >>> prepare(Path("target"), lambda work: (work / "file").touch())
    >>> [path.name for path in Path("target").iterdir()]
    ['file']
    """
    done = is_current or target.is_dir
    if done():
        return
    from filelock import FileLock  # takes as long to import as numpy

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.with_name(f".{target.name}.lock")):
        if done():
            return
        for leftover in target.parent.glob(f".{target.name}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        work = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
        old = work.with_name(f"{work.name}-old")
        work.mkdir()
        try:
            build(work)
            for path in work.iterdir():
                _sync(path)
            if target.exists():
                target.rename(old)
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


def missing_files(folder: Path, files: Sequence[SourceFile]) -> MissingDataError:
    """The error that says which files are needed, from where, and where to put them."""
    lines = [f"  {file.url}\n    -> {folder / file.name}" for file in files]
    get = f"Run 'unweave data get {folder.name}', or put by hand:\n"
    return MissingDataError(f"{folder.name}: files not found in {folder}. {get}" + "\n".join(lines))


def map_array(path: Path) -> AnyArray:
    """Memory-map a .npy file. Copy-on-write: nothing done to the array reaches the file."""
    try:
        with open(path, "rb") as file:
            read_npy_header(file)
        array: AnyArray = np.load(path, mmap_mode="c", allow_pickle=False)
        return array
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: not a complete .npy file ({error}). Delete {path.parent} to prepare it again."
        ) from error


def create_array(
    path: Path, shape: Sequence[int], dtype: npt.DTypeLike = np.uint8, *, sparse: bool = False
) -> np.memmap[Any, Any]:
    """A zeroed .npy file of the given shape whose data starts on a memory page.

    The .npy format lets the header be padded with spaces. Aligned to a page, a 64 x 64 image
    is exactly one page: a random image then costs one page fault, not two. Unless ``sparse``, its
    disk space is reserved now: a full disk is then an error here, not a fatal signal on writing.
    """
    dtype = np.dtype(dtype)
    shape = tuple(int(n) for n in shape)
    with open(path, "wb") as file:
        file.write(_header(shape, dtype))
        total = _PAGE + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        file.truncate(total)
        if not sparse:
            _reserve(file, total)
    return np.memmap(path, dtype=dtype, mode="r+", offset=_PAGE, shape=shape)


def map_created(
    path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, mode: Literal["r", "r+"]
) -> np.memmap[Any, Any]:
    """Memory-map an array that :func:`create_array` has created; ValueError if it has changed since."""
    dtype = np.dtype(dtype)
    expected = _header(shape, dtype)
    with open_regular(path) as file:  # no links
        size = os.fstat(file.fileno()).st_size
        if file.read(_PAGE) != expected or size != _PAGE + dtype.itemsize * math.prod(shape):
            raise ValueError(f"{path}: is not an array of {dtype} {shape}")
    return np.memmap(path, dtype=dtype, mode=mode, offset=_PAGE, shape=shape)


def _header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    text = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    prefix = np.lib.format.magic(1, 0)
    header = text.encode().ljust(_PAGE - len(prefix) - 2 - 1) + b"\n"
    return prefix + len(header).to_bytes(2, "little") + header


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the disk space of a file now."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    file.seek(_PAGE)
    for start in range(_PAGE, size, _ZEROS):  # no other way there
        file.write(bytes(min(_ZEROS, size - start)))


def _is_current(
    target: Path, paths: Mapping[str, Path], version: int, originals: Mapping[str, list[int]] | None = None
) -> bool:
    try:
        meta = read_json(target / "meta.json")
    except (OSError, DamagedFileError):
        return False
    sources = meta.get("sources")
    if meta.get("format") != _FORMAT or meta.get("version") != version or not isinstance(sources, dict):
        return False
    known = meta.get("originals")
    if originals and not (isinstance(known, dict) and known.items() >= originals.items()):
        return False
    return all(sources.get(name) == _stamp(path) for name, path in paths.items() if path.exists())


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
