"""One file over HTTP: appended to what is already there, taken up again where it was cut."""

from __future__ import annotations

import http.client
import shutil
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from unweave.data.recipe import SourceFile
from unweave.data.storage.status import PARTIAL_SUFFIX
from unweave.errors import DataError
from unweave.progress import progress

_TIMEOUT = 30.0  # seconds without a byte
_ATTEMPTS = 5  # how often a transfer that was cut is resumed before giving up
_CHUNK = 1 << 20


class TransferError(Exception):
    """A transfer failed on the way, for the reason given."""


class _CutError(Exception):
    """The connection ended before the file did."""


class Part:
    """The beginning of a file, kept in ``NAME.part``, and in ``NAME.part.tag`` what identifies the
    version that the server sent, so that the pieces of two versions are never joined."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(target.name + PARTIAL_SUFFIX)
        self.tag_path = target.with_name(target.name + PARTIAL_SUFFIX + ".tag")

    @property
    def size(self) -> int:
        """The number of bytes that are there."""
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
        """Forget what is there."""
        self.path.unlink(missing_ok=True)
        self.tag_path.unlink(missing_ok=True)


def transfer(file: SourceFile, part: Part) -> bool:
    """Bring ``part`` to its full length. The answer: whether it began with bytes from an earlier run.

    A connection that is cut is taken up again as long as that brings new bytes, a few times.
    """
    if file.size is not None and part.size > file.size:
        part.remove()
    resumed = part.size > 0
    for attempt in range(_ATTEMPTS):
        before = part.size
        try:
            _request(file, part)
            break
        except _CutError as cut:
            if part.size <= before or attempt == _ATTEMPTS - 1:
                raise TransferError(str(cut)) from cut
    return resumed


def _request(file: SourceFile, part: Part) -> None:
    """Ask for what is missing of a file, and append it."""
    if part.size and part.size == file.size:
        return
    if not _is_http(file.url):
        raise TransferError("only http and https addresses are downloaded")
    headers = {"User-Agent": "unweave", "Accept-Encoding": "identity"}
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
        if part.tag:
            headers["If-Range"] = part.tag
    try:
        response = _opener().open(urllib.request.Request(file.url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not part.size:
                raise TransferError(f"the server answered {error.code} {error.reason}") from error
            complete = file.size is None and part.size == _full_length(error.headers)
        if not complete:
            part.remove()
            _request(file, part)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise TransferError(_reason(error)) from error
    else:
        with response:
            _receive(file, part, response)


def _receive(file: SourceFile, part: Part, response: http.client.HTTPResponse) -> None:
    if response.headers.get_content_type() == "text/html" and not file.name.lower().endswith(
        (".html", ".htm")
    ):
        raise TransferError("the server sent a web page, not the file: it has to be downloaded by hand")
    if response.status != http.HTTPStatus.PARTIAL_CONTENT:
        part.begin(response.headers)
    elif not response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-"):
        raise TransferError("the server sent another part of the file than it was asked for")
    start = part.size
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else file.size
    if file.size is not None and total != file.size:
        part.remove()
        raise DataError(f"{file.url}: its size is {total} bytes, expected {file.size}: not the official file")
    missing = None if total is None else total - start
    _check_space(part.path.parent, missing)
    verb = "Resuming" if start else "Downloading"
    with part.path.open("ab") as out, progress(f"{verb} {file.name}", total, "bytes", start) as advance:
        while (total is None or out.tell() < total) and (chunk := _read(response)):
            out.write(chunk)
            advance(len(chunk))
    if total is not None and part.size < total:
        raise _CutError(f"the connection was closed after {part.size:,} of {total:,} bytes")


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
        if not _is_http(newurl):
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
