"""Files that appear whole or not at all, and files of others that are read with care.

Writers write under a temporary name and rename. Readers take regular files only, of a bounded size: what lies in a run
directory or a study folder may come from a stranger, or from a disk that lost half of it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from unweave.errors import ArgumentError, DamagedFileError, DataError

MEGABYTE = 1 << 20
TEXT_LIMIT = 64 * MEGABYTE  # of a file that is read as a whole
# A full disk, or a quota: no run that comes after will fare better.
FULL = (errno.ENOSPC, errno.EDQUOT)

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows has neither of them, nor FIFOs
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_SCRATCH, _IN_USE = "unweave-", ".in-use"
_HASH = "sha256"
# With what a formula begins in a spreadsheet; in some also in the wide form of East Asian text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


# --- writing ---------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file under a temporary name, and rename it to ``path`` when all went well.

    What is written has reached the disk before the rename, so a crash leaves the old file or the new one. A link in
    the place of ``path`` is replaced, not followed.

    Examples
    --------
    >>> with replacing(Path("notes.txt")) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> Path("notes.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        raise DataError(f"{path}: is a folder, and a file is to be written there")
    temporary = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # some writers make files that only their owner can read
        temporary.replace(path)
    except OSError as error:
        if error.filename is None:  # a full disk does not say which file
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def check_can_write(path: Path | str, argument: str = "path") -> Path:
    """The path, or an error if no file can be written there; to be called before long work.

    Examples
    --------
    >>> Path("notes").touch()
    >>> check_can_write("notes/table.csv", "--csv")
    Traceback (most recent call last):
    unweave.errors.ArgumentError: --csv = 'notes/table.csv': cannot be written: notes is not a folder
    """
    target = Path(path)
    if target.is_dir():
        raise ArgumentError(argument, str(path), "is a folder: needs the name of a file")
    above = target.parent
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise ArgumentError(argument, str(path), f"cannot be written: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ArgumentError(argument, str(path), f"cannot be written: no permission to write in {above}")
    return target


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def is_leftover(path: Path) -> bool:
    """Whether a file has a temporary name: that of :func:`replacing`, or of a writer of safetensors files.

    Examples
    --------
    >>> is_leftover(Path("notes.txt"))
    False
    """
    return re.fullmatch(r"\..*-[0-9a-f]{32}|\.tmp[0-9A-Za-z_]{6}", path.stem) is not None


def remove_leftovers(folder: Path, older_than: float = 0.0) -> None:
    """Remove what writers that were killed have left in a folder.

    Nobody else may be writing there, or not for longer than ``older_than`` seconds.

    Examples
    --------
    >>> Path(".notes-0123456789abcdef0123456789abcdef.txt").touch()
    >>> remove_leftovers(Path("."))
    >>> list(Path(".").glob(".notes*"))
    []
    """
    for path in folder.glob(".*"):
        with suppress(FileNotFoundError):
            if is_leftover(path) and not path.is_dir() and time.time() - path.lstat().st_mtime >= older_than:
                path.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Examples
    --------
    >>> write_text(Path("notes.txt"), "whole")
    >>> Path("notes.txt").read_text()
    'whole'
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all.

    Examples
    --------
    >>> write_bytes(Path("notes.bin"), b"whole")
    >>> Path("notes.bin").read_bytes()
    b'whole'
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_hashed_json(path: Path, content: Mapping[str, Any], default: Callable[[Any], Any] = str) -> None:
    """Write a JSON object with a hash of what it says, whole or not at all.

    Examples
    --------
    >>> write_hashed_json(Path("scores.json"), {"mig": 0.25})
    >>> read_hashed_json(Path("scores.json"))
    {'mig': 0.25}
    """
    text = json.dumps(content, default=default)
    write_text(path, json.dumps({**json.loads(text), _HASH: _hash(json.loads(text))}))


def name_in_csv(name: str) -> str:
    """The name of a file for a cell of a CSV file: a spreadsheet takes none for a formula.

    A cell that begins with =, +, -, @, a tab or the end of a line may be computed by the program that opens the file,
    and names of files may come from a stranger. Such a name gets "./" in front, which names the same file; a quotation
    mark, as others write it, would not.

    Examples
    --------
    >>> name_in_csv("=1+1.png"), name_in_csv("cats/-1.png")
    ('./=1+1.png', 'cats/-1.png')
    """
    return f"./{name}" if name.startswith(_FORMULA) else name


def append_text(path: Path, text: str) -> None:
    """Append to a text file: all of ``text``, or nothing if the disk is full. A link is refused.

    Examples
    --------
    >>> append_text(Path("lines.txt"), "one line")
    >>> Path("lines.txt").read_text()
    'one line'
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS | _NO_WAIT | _BINARY, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_regular(path) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _not_regular(path)
        size = os.fstat(descriptor).st_size
        try:
            write_all(descriptor, memoryview(text.encode()), size)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of ``data`` at ``offset``: the system may take less at a time, and does so when a disk gets full."""
    left = data.cast("B") if data.nbytes else data
    while left.nbytes:
        count = os.pwrite(descriptor, left, offset)
        if count == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left, offset = left[count:], offset + count


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says that a disk is full.

    Examples
    --------
    >>> is_full(OSError(errno.ENOSPC, "No space left on device"))
    True
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for temporary files; those of processes that were killed are removed first.

    Whoever uses one holds the lock of a file in it, which the operating system frees when the process dies.

    Examples
    --------
    >>> with scratch_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    import tempfile

    from filelock import FileLock, Timeout

    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with suppress(OSError, Timeout):
            if not left.is_symlink() and (left / _IN_USE).is_file() and left.stat().st_uid == os.getuid():
                with FileLock(left / _IN_USE, timeout=0):
                    shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    try:
        with FileLock(folder / _IN_USE):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- reading ---------------------------------------------------------------------------------------


def open_regular(path: Path, *, update: bool = False) -> IO[bytes]:
    """Open a regular file, unbuffered: to read, or to ``update`` it in place.

    A link, a FIFO or a device instead is refused by a :class:`~unweave.errors.DataError`: nobody who reads a
    directory of others waits for a FIFO, and nobody writes through a link into a file elsewhere.

    Examples
    --------
    >>> write_text(Path("notes.txt"), "whole")
    >>> with open_regular(Path("notes.txt")) as file:
    ...     file.read()
    b'whole'
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise _not_regular(path)
    flags = (os.O_RDWR if update else os.O_RDONLY) | _NO_LINKS | _NO_WAIT | _BINARY
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return os.fdopen(descriptor, "r+b" if update else "rb", buffering=0)


def check_regular(path: Path) -> None:
    """Refuse a FIFO, a device or a folder instead of a data file; links to files are followed.

    Examples
    --------
    >>> check_regular(Path("/dev/zero"))
    Traceback (most recent call last):
    unweave.errors.DataError: /dev/zero: is not a regular file, which is not read here
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: cannot be read ({why})") from error
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: is not a regular file, which is not read here")


def read_bytes(path: Path, limit: int = TEXT_LIMIT) -> bytes:
    """The bytes of a regular file that has at most ``limit`` of them, or a :class:`~unweave.errors.DataError`.

    Only a file that is not there is a FileNotFoundError.

    Examples
    --------
    >>> write_text(Path("notes.txt"), "whole")
    >>> read_bytes(Path("notes.txt"), limit=4)
    Traceback (most recent call last):
    unweave.errors.DataError: notes.txt: has 5 bytes, more than the 4 that such a file may have
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise DataError(
                    f"{path}: has {size:,} bytes, more than the {limit:,} that such a file may have"
                )
            return b"".join(iter(lambda: file.read(MEGABYTE), b""))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """The text of a regular file, as :func:`read_bytes`.

    Examples
    --------
    >>> write_text(Path("notes.txt"), "whole")
    >>> read_text(Path("notes.txt"))
    'whole'
    """
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        why = f"not a text in UTF-8: {error.reason} at byte {error.start:,}"
        raise DamagedFileError(path, why) from error


def read_json(path: Path, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """The JSON object in a file, as :func:`read_bytes`; anything else is a :class:`~unweave.errors.DataError`.

    Examples
    --------
    >>> write_text(Path("scores.json"), '{"mig": 0.')
    >>> read_json(Path("scores.json"))
    Traceback (most recent call last):
    unweave.errors.DamagedFileError: scores.json: truncated or damaged (not JSON: Expecting ...
    """
    try:
        content = json.loads(read_text(path, limit))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise DamagedFileError(path, "not a JSON object")
    return content


def read_hashed_json(path: Path, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """What :func:`write_hashed_json` has written, compared with its hash; a file of an earlier version has none.

    Examples
    --------
    >>> write_hashed_json(Path("scores.json"), {"mig": 0.25})
    >>> write_text(Path("scores.json"), read_text(Path("scores.json")).replace("0.25", "0.75"))
    >>> read_hashed_json(Path("scores.json"))
    Traceback (most recent call last):
    unweave.errors.DamagedFileError: scores.json: truncated or damaged (its content has not the hash ...
    """
    content = read_json(path, limit)
    try:
        is_whole = _HASH not in content or content.pop(_HASH) == _hash(content)
    except RecursionError as error:
        raise DamagedFileError(path, "too deep") from error
    if not is_whole:
        raise DamagedFileError(path, "its content has not the hash that was written with it")
    return content


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that it can be written again and still be examined; its new name.

    Examples
    --------
    >>> write_text(Path("scores.json"), "{")
    >>> set_aside(Path("scores.json")).name
    'scores.json.damaged'
    """
    aside = path.with_name(f"{path.name}.damaged")
    path.replace(aside)
    return aside


def check_no_links(path: Path, root: Path) -> None:
    """Refuse to write below ``root`` through a link: a directory of others could lead it anywhere.

    Examples
    --------
    >>> check_no_links(Path("run/scores"), Path("run"))
    """
    current = root
    for part in path.relative_to(root).parts:
        current = current / part
        if current.is_symlink():
            raise DataError(f"{current}: is a link; nothing is written through it")


def _not_regular(path: Path) -> DataError:
    kind = "a link" if path.is_symlink() else "not a regular file"
    return DataError(f"{path}: is {kind}, which is not read here")
