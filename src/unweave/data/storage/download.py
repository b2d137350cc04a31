"""Downloads of official files: resumed where they were cut, checked, and there whole or not at all."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from unweave.data.dataset import Dataset
from unweave.data.files.checksum import sha256_of
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.status import PARTIAL_SUFFIX, find_files
from unweave.errors import DataError, MissingDataError, NetworkError
from unweave.files import read_text, write_text
from unweave.progress import progress

_TIMEOUT = 30.0  # seconds without a byte
_SLOW_SECONDS, _SLOW_BYTES = 60.0, 1 << 14  # a transfer that brings fewer bytes in that time counts as cut
_ATTEMPTS = 5  # how often a transfer that was cut, or refused for now, is taken up again before giving up
_BACK_OFF = 1.0  # seconds before the second attempt; twice as many before each further one
_LONGEST_WAIT = 60.0  # seconds, whatever a server asks for
_FOR_NOW = (408, 425, 429, 500, 502, 503, 504)  # answers that another attempt may change
_CHUNK = 1 << 20


def obtain(recipe: Recipe, folder: Path) -> Dataset:
    """The data set, downloaded and prepared where it is not yet.

    Loading comes first, and a download only if that fails: prepared arrays do not need their files
    any more, and some data sets also take files in another form (unpacked, packed again).

    Parameters
    ----------
    recipe
        of the data set.
    folder
        where its files are, or will be.

    Examples
    --------
    >>> obtain(uw.data.find("pendulum"), uw.data.data_folder() / "pendulum").image_shape
    (100,)
    """
    try:
        return recipe.load(folder)
    except DataError as error:
        if recipe.offline or not _missing(recipe, folder):
            raise
        if not isinstance(error, MissingDataError):
            print(f"{error}\nDownloading the official files.", file=sys.stderr, flush=True)
    get(recipe, folder)
    return recipe.load(folder)


def get(recipe: Recipe, folder: Path) -> list[Path]:
    """Download the files of a data set into ``folder``.

    Files that are there, with the official size where it is known, are left alone. An interrupted download is kept in
    ``NAME.part``, from where the next call goes on.

    Parameters
    ----------
    recipe
        of the data set. One that has no files, or whose files come with a Python package, needs no download.
    folder
        where the files go.

    Returns
    -------
    list of Path
        one for each file, or for what serves in its place; empty where none is needed.

    Raises
    ------
    NetworkError
        which says what to put where by hand.
    DataError
        for a file that is not the official one.

    Examples
    --------
    >>> get(uw.data.find("dsprites"), uw.data.data_folder() / "dsprites")
    []
    """
    if recipe.offline:
        return []
    folder = recipe.folder_of_files(folder)
    with _disk_errors(folder):
        for file in _missing(recipe, folder):
            _get_locked(recipe, folder, file)
    return [folder / file.name_in(folder) for file in recipe.files]


def fetch(file: SourceFile, folder: Path) -> Path:
    """Download one file into ``folder``, resumed and checked as those of data sets are.

    A file that is there already is left alone, if its size and sha256 are those of ``file``, as far as these are known.

    Parameters
    ----------
    file
        its name in the folder, its address, and its size and sha256 where they are known. Of a file without a known
        sha256, that of the first download is kept beside it, and later downloads are compared with it.
    folder
        where it goes.

    Raises
    ------
    NetworkError
        which says what to put where by hand.
    DataError
        for another file than the one that was asked for.

    Examples
    --------
    >>> Path("notes.txt").touch()
    >>> fetch(SourceFile("notes.txt", "https://example.org/notes.txt", size=0), Path("."))
    PosixPath('notes.txt')
    """
    target = folder / file.name
    with _disk_errors(folder):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            if not _is_there(file, target):
                _get_file(file, target, _by_hand(folder, [file]))
    return target


def _is_there(file: SourceFile, target: Path) -> bool:
    return (
        target.is_file()
        and file.size in (None, target.stat().st_size)
        and (file.sha256 is None or sha256_of(target) == file.sha256)
    )


def _missing(recipe: Recipe, folder: Path) -> list[SourceFile]:
    return [e.source for e in find_files(recipe, recipe.folder_of_files(folder)) if not e.usable]


def _get_locked(recipe: Recipe, folder: Path, file: SourceFile) -> None:
    """Of several processes one downloads; the others wait, then see the file there."""
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target):
        missing = _missing(recipe, folder)
        if file in missing:
            _get_file(file, target, _by_hand(folder, missing))


def _get_file(file: SourceFile, target: Path, by_hand: str) -> None:
    part = _Part(target)
    try:
        resumed = _transfer(file, part)
        try:
            _check(file, part)
        except DataError:
            if not resumed:
                raise
            # The bytes that were there may have been the beginning of another file: the second try is whole.
            _transfer(file, part)
            _check(file, part)
    except _TransferError as error:
        kept = f" ({part.size:,} bytes are kept: run again to resume)" if part.size else ""
        raise NetworkError(f"{file.url}: {error}{kept}\n{by_hand}") from error
    _check_first_hash(file, part, target)
    with part.path.open("rb") as whole:
        os.fsync(whole.fileno())
    part.path.replace(target)
    part.remove()


def _check_first_hash(file: SourceFile, part: _Part, target: Path) -> None:
    """Of a file without a known checksum, keep that of the first download, and compare later ones with it."""
    if file.sha256 is not None:
        return
    kept = target.with_name(f".{target.name}.sha256")
    digest = sha256_of(part.path)
    first = read_text(kept, 1000).split() if kept.exists() else []
    if not first:
        write_text(kept, f"{digest}  {target.name}\n")
    elif first[0] != digest:
        part.remove()
        raise DataError(
            f"{file.url}: sha256 is {digest}, and was {first[0]} when it was first downloaded: damaged on its way, or "
            f"another file now. It was removed. If it is meant to have changed, delete {kept}."
        )


def _check(file: SourceFile, part: _Part) -> None:
    """Refuse, and remove, a download that is not the official file."""
    if file.size not in (None, part.size):
        wrong = f"size is {part.size} bytes, expected {file.size}"
    elif file.sha256 is not None and (digest := sha256_of(part.path)) != file.sha256:
        wrong = f"sha256 is {digest}, expected {file.sha256}"
    else:
        return
    part.remove()
    raise DataError(f"{file.url}: {wrong}: damaged on its way, or not the official file. It was removed.")


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{target.name}: waiting for another process that downloads it", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    # Errors of the network are NetworkError by now: what is left comes from the disk.
    try:
        yield
    except OSError as error:
        raise DataError(f"{folder}: cannot store the download here ({error.strerror or error})") from error


def _by_hand(folder: Path, files: Sequence[SourceFile]) -> str:
    lines = [f"  {file.url}\n    -> {folder / file.name}" for file in files]
    return "You can also put by hand, from a browser or another machine:\n" + "\n".join(lines)


# --- one file over HTTP --------------------------------------------------------------------------


class _TransferError(Exception):
    """A transfer failed on the way, for the reason given."""


class _CutError(Exception):
    """The connection ended before the file did."""


class _LaterError(Exception):
    """The server cannot answer now; ``seconds`` is how long it asks to wait, or 0."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class _Part:
    """The beginning of a file, kept in ``NAME.part``, and in ``NAME.part.tag`` what identifies the
    version that the server sent, so that the pieces of two versions are never joined."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(target.name + PARTIAL_SUFFIX)
        self.tag_path = target.with_name(target.name + PARTIAL_SUFFIX + ".tag")

    @property
    def size(self) -> int:
        """The number of bytes so far."""
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def tag(self) -> str | None:
        """The ETag, or else the date, of the file that the bytes are from."""
        return self.tag_path.read_text().strip() or None if self.tag_path.is_file() else None

    def begin(self, headers: Message) -> None:
        """Start over with the file that a response with these headers carries."""
        self.path.write_bytes(b"")
        etag = headers.get("ETag", "")
        # A weak ETag promises the same meaning, not the same bytes.
        weak = not etag or etag.startswith("W/")
        self.tag_path.write_text(headers.get("Last-Modified", "") if weak else etag)

    def remove(self) -> None:
        """Delete what was kept."""
        self.path.unlink(missing_ok=True)
        self.tag_path.unlink(missing_ok=True)


def _transfer(file: SourceFile, part: _Part) -> bool:
    """Bring ``part`` to its full length; whether it began with bytes of an earlier run.

    A connection that is cut is resumed, and a server that is busy is asked again, a few times, after a longer wait each
    time.
    """
    if part.size > (file.at_most if file.size is None else file.size):
        part.remove()
    resumed = part.size > 0
    for address in _addresses(file):
        try:
            _transfer_from(replace(file, url=address), part)
            break
        except _TransferError:
            if address == file.url:
                raise
    return resumed


def _addresses(file: SourceFile) -> list[str]:
    """Where to ask for a file: where nothing but the connection says that it is the right one, by https first."""
    parts = urlsplit(file.url)
    if parts.scheme == "http" and parts.port is None and file.sha256 is None:
        return [parts._replace(scheme="https").geturl(), file.url]
    return [file.url]


def _transfer_from(file: SourceFile, part: _Part) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            return _request(file, part)
        except (_CutError, _LaterError) as error:
            if attempt == _ATTEMPTS - 1:
                raise _TransferError(str(error)) from error
            asked = error.seconds if isinstance(error, _LaterError) else 0.0
            time.sleep(min(max(_BACK_OFF * 2**attempt, asked), _LONGEST_WAIT))


def _request(file: SourceFile, part: _Part) -> None:
    """Ask for what is missing of a file, and append it."""
    if part.size and part.size == file.size:
        return
    if not _is_http(file.url):
        raise _TransferError("only http and https addresses are downloaded")
    headers = {"User-Agent": "unweave", "Accept-Encoding": "identity"}
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if part.tag:
            headers["If-Range"] = part.tag
    try:
        response = _opener().open(urllib.request.Request(file.url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in _FOR_NOW:
                wait = error.headers.get("Retry-After", "")
                seconds = float(wait) if wait.isdecimal() and len(wait) < 6 else 0.0
                raise _LaterError(f"the server answered {error.code} {error.reason}", seconds) from error
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not part.size:
                raise _TransferError(f"the server answered {error.code} {error.reason}") from error
            complete = file.size is None and part.size == _full_length(error.headers)
        if not complete:
            part.remove()
            _request(file, part)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _TransferError(_reason(error)) from error
    else:
        with response:
            _receive(file, part, response)


def _receive(file: SourceFile, part: _Part, response: http.client.HTTPResponse) -> None:
    if response.headers.get_content_type() == "text/html" and not file.name.lower().endswith(
        (".html", ".htm")
    ):
        raise _TransferError("the server sent a web page, not the file: it has to be downloaded by hand")
    if response.status != http.HTTPStatus.PARTIAL_CONTENT:
        part.begin(response.headers)
    elif not response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-"):
        raise _TransferError("the server sent another part of the file than it was asked for")
    start = part.size
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else file.size
    if file.size is not None and total != file.size:
        part.remove()
        raise DataError(f"{file.url}: its size is {total} bytes, expected {file.size}: not the official file")
    limit = file.at_most if total is None else total
    if file.size is None and limit > file.at_most:
        part.remove()
        raise DataError(
            f"{file.url}: its size is {limit:,} bytes, more than {file.at_most:,}: not the official file"
        )
    missing = None if total is None else total - start
    _check_space(part.path.parent, missing)
    verb = "Resuming" if start else "Downloading"
    with part.path.open("ab") as out, progress(f"{verb} {file.name}", total, "bytes", start) as advance:
        pace = _Pace()
        while (total is None or out.tell() < total) and (chunk := _read(response)):
            if out.tell() + len(chunk) > limit:
                out.close()
                part.remove()
                raise DataError(
                    f"{file.url}: does not end after {limit:,} bytes: not the official file. It was removed."
                )
            out.write(chunk)
            advance(len(chunk))
            pace.count(len(chunk))
    if total is not None and part.size < total:
        raise _CutError(f"the connection was closed after {part.size:,} of {total:,} bytes")
    if part.size == 0:  # no such file is empty, and its hash would be kept
        raise _CutError("the server sent nothing")


class _Pace:
    """Notices a transfer that goes on and never ends: a byte now and then."""

    def __init__(self) -> None:
        self.start, self.bytes = time.monotonic(), 0

    def count(self, size: int) -> None:
        """So many bytes have arrived."""
        self.bytes += size
        seconds = time.monotonic() - self.start
        if seconds > _SLOW_SECONDS:
            if self.bytes < _SLOW_BYTES:
                raise _CutError(f"the server sent {self.bytes:,} bytes in {seconds:.0f} seconds")
            self.start, self.bytes = time.monotonic(), 0


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(_CHUNK)  # what has arrived, so that a cut loses nothing
    except (http.client.HTTPException, OSError) as error:
        raise _CutError(_reason(error)) from error


def _opener() -> urllib.request.OpenerDirector:
    """An opener that knows http and https and nothing else: no file://, no ftp://."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        _HttpRedirects,
    ):
        opener.add_handler(handler())
    return opener


class _HttpRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only. (file:// is refused by its base already.)"""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not _is_http(newurl) or (urlsplit(req.full_url).scheme, urlsplit(newurl).scheme) == (
            "https",
            "http",
        ):
            raise urllib.error.URLError(f"the server redirects to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https")


def _full_length(headers: Message) -> int | None:
    """N in ``Content-Range: bytes …/N``."""
    total = headers.get("Content-Range", "").rpartition("/")[2]
    return int(total) if total.isdecimal() else None


def _check_space(folder: Path, missing: int | None) -> None:
    free = shutil.disk_usage(folder).free
    if missing is not None and missing > free:
        raise DataError(f"{folder}: the disk is too full: {missing:,} bytes are needed, {free:,} are free")


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer within {_TIMEOUT:.0f} seconds"
    if isinstance(cause, OSError) and cause.strerror:
        return f"the connection failed ({cause.strerror})"
    return str(cause) or type(cause).__name__
