"""Downloads against a real HTTP server in this process, with the faults that servers have."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from unweave.data.dataset import from_grid
from unweave.data.factors import FactorSpace
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage import download as module
from unweave.data.storage.download import get, obtain
from unweave.data.storage.prepared import prepared
from unweave.errors import DataError, NetworkError

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """What the server does, and the ``Range`` (or None) of each request that it saw."""

    url: str = ""
    ranges: list[str | None] = field(default_factory=list)
    content: bytes = CONTENT
    etag: str = '"one"'
    kind: str = "application/octet-stream"
    supports_ranges: bool = True
    status: int | None = None
    redirect: str | None = None
    redirects: int = 100
    cut_after: int | None = None
    delay: threading.Event | None = None
    length: bool = True
    busy: int = 0  # how many answers are "not now"
    endless: bool = False
    drip: float | None = None  # seconds between two bytes


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "_BACK_OFF", 0.001)
    settings = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, settings)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        settings.url = f"http://127.0.0.1:{http.server_address[1]}/set.bin"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield settings
        http.shutdown()
        thread.join()


def answer(handler: BaseHTTPRequestHandler, server: Server) -> None:
    asked = handler.headers.get("Range")
    server.ranges.append(asked)
    if server.delay is not None:
        server.delay.wait(10)
    if server.redirect is not None and server.redirects:
        server.redirects -= 1
        handler.send_response(302)
        handler.send_header("Location", server.redirect)
        handler.end_headers()
        return
    if server.busy:
        server.busy -= 1
        handler.send_response(503)
        handler.send_header("Retry-After", "0")
        handler.end_headers()
        return
    if server.status is not None:
        handler.send_error(server.status)
        return
    if server.endless or server.drip is not None:
        handler.send_response(200)
        handler.send_header("Content-Type", server.kind)
        handler.end_headers()
        with suppress(OSError):  # until nobody listens
            while server.endless or server.drip is not None:
                handler.wfile.write(bytes(1 << 16) if server.endless else b"x")
                time.sleep(server.drip or 0)
        return
    start = 0
    same = handler.headers.get("If-Range", server.etag) == server.etag
    if asked and server.supports_ranges and same:
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(server.content):
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(server.content)}")
            handler.end_headers()
            return
        handler.send_response(206)
        total = len(server.content)
        handler.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
    else:
        handler.send_response(200)
    body = server.content[start:]
    handler.send_header("Content-Type", server.kind)
    handler.send_header("ETag", server.etag)
    if server.length:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if server.cut_after is not None:
        body, server.cut_after = body[: server.cut_after], None
    handler.wfile.write(body)


def recipe(*files: SourceFile, package: str | None = None) -> Recipe:
    return Recipe(name="toy", load=_load, files=files, package=package)


def _load(folder: Path):
    def build(paths, out):
        raw = np.frombuffer(paths["set.bin"].read_bytes(), np.uint8)
        out.save("images", raw[: 4 * 16].reshape(4, 4, 4, 1))

    arrays = prepared(folder, [SourceFile("set.bin", "")], build)
    return from_grid("toy", FactorSpace(["x"], [4]), arrays["images"])


def toy(server: Server, **known: object) -> Recipe:
    return recipe(SourceFile("set.bin", server.url, **known))


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".part" in path.name)


KNOWN = {"size": len(CONTENT), "sha256": SHA256}


@pytest.mark.parametrize("known", [KNOWN, {}, {"size": len(CONTENT)}])
@pytest.mark.parametrize("length", [True, False])
def test_fresh(server: Server, tmp_path: Path, known: dict[str, object], length: bool) -> None:
    server.length = length
    folder = tmp_path / "a" / "toy"
    assert get(toy(server, **known), folder) == [folder / "set.bin"]
    assert (folder / "set.bin").read_bytes() == CONTENT
    assert leftovers(folder) == []
    assert server.ranges == [None]


def test_what_is_there_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin").write_bytes(CONTENT)
    get(toy(server, **KNOWN), tmp_path)
    (tmp_path / "other.bin").write_bytes(b"of unknown size")
    get(recipe(SourceFile("other.bin", server.url)), tmp_path)
    assert server.ranges == []


def test_what_serves_in_place_of_a_file_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "unpacked").mkdir()
    packed = SourceFile("set.bin", server.url, alternatives=("unpacked",))
    assert get(recipe(packed), tmp_path) == [tmp_path / "unpacked"]
    assert server.ranges == []


def test_a_file_of_another_size_is_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin").write_bytes(CONTENT[:100])
    get(toy(server, **KNOWN), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_nothing_to_download(tmp_path: Path) -> None:
    packaged = recipe(SourceFile("set.bin", "http://127.0.0.1:1/"), package="somewhere")
    assert get(packaged, tmp_path / "none") == []
    assert get(recipe(), tmp_path / "none") == []
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("known", [KNOWN, {}])
def test_resume(server: Server, tmp_path: Path, known: dict[str, object]) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENT[:1000])
    (tmp_path / "set.bin.part.tag").write_text(server.etag)
    get(toy(server, **known), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]
    assert leftovers(tmp_path) == []


def test_the_pieces_of_two_versions_are_not_joined(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(b"x" * 1000)
    (tmp_path / "set.bin.part.tag").write_text('"an older one"')
    get(toy(server), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_a_wrong_beginning_is_found_by_the_hash_and_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(b"x" * 1000)
    get(toy(server, **KNOWN), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-", None]


def test_server_without_ranges(server: Server, tmp_path: Path) -> None:
    server.supports_ranges = False
    (tmp_path / "set.bin.part").write_bytes(b"x" * 1000)
    get(toy(server), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("known", [KNOWN, {}, {"sha256": SHA256}])
def test_a_complete_part_needs_no_bytes(server: Server, tmp_path: Path, known: dict[str, object]) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENT)
    get(toy(server, **known), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == ([] if "size" in known else [f"bytes={len(CONTENT)}-"])


@pytest.mark.parametrize("known", [KNOWN, {}])
def test_a_part_that_is_too_long_starts_over(
    server: Server, tmp_path: Path, known: dict[str, object]
) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENT + b"more")
    get(toy(server, **known), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_wrong_sha256(server: Server, tmp_path: Path) -> None:
    wrong = "0" * 64
    with pytest.raises(DataError) as caught:
        get(toy(server, sha256=wrong), tmp_path)
    assert wrong in str(caught.value)
    assert SHA256 in str(caught.value)
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "set.bin").exists()


@pytest.mark.parametrize("length", [True, False])
def test_wrong_size(server: Server, tmp_path: Path, length: bool) -> None:
    server.length = length
    server.content = CONTENT[:-5]
    with pytest.raises((DataError, NetworkError), match=r"512,?000"):
        get(toy(server, size=len(CONTENT)), tmp_path)
    assert not (tmp_path / "set.bin").exists()


@pytest.mark.parametrize("status", [404, 403, 500])
def test_http_errors(server: Server, tmp_path: Path, status: int) -> None:
    server.status = status
    files = SourceFile("set.bin", server.url), SourceFile("second.bin", server.url + "2")
    with pytest.raises(NetworkError) as caught:
        get(recipe(*files), tmp_path)
    message = str(caught.value)
    assert str(status) in message
    for file in files:
        assert f"{file.url}\n    -> {tmp_path / file.name}" in message


def test_connection_refused(server: Server, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.url = f"http://127.0.0.1:{free.getsockname()[1]}/set.bin"
    with pytest.raises(NetworkError, match="refused"):
        get(toy(server), tmp_path)


def test_no_answer(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.1)
    server.delay = threading.Event()
    try:
        with pytest.raises(NetworkError, match="no answer within"):
            get(toy(server), tmp_path)
    finally:
        server.delay.set()


def test_a_cut_connection_is_taken_up_again(server: Server, tmp_path: Path) -> None:
    server.cut_after = 300_000
    get(toy(server, **KNOWN), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-"]


def test_a_cut_connection_leaves_the_part(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ATTEMPTS", 1)
    server.cut_after = 300_000
    with pytest.raises(NetworkError, match=r"300,000 of 512,000 bytes.*run again"):
        get(toy(server, **KNOWN), tmp_path)
    assert (tmp_path / "set.bin.part").read_bytes() == CONTENT[:300_000]
    get(toy(server, **KNOWN), tmp_path)
    assert server.ranges == [None, "bytes=300000-"]
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_interrupt_leaves_the_part(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = module._read
    calls = iter([read, None])

    def interrupted(response: object) -> bytes:
        step = next(calls)
        if step is None:
            raise KeyboardInterrupt
        return step(response)

    monkeypatch.setattr(module, "_read", interrupted)
    monkeypatch.setattr(module, "_CHUNK", 1000)
    with pytest.raises(KeyboardInterrupt):
        get(toy(server, **KNOWN), tmp_path)
    assert 0 < (tmp_path / "set.bin.part").stat().st_size <= 1000
    monkeypatch.undo()
    get(toy(server, **KNOWN), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges[1] is not None


def test_web_page_instead_of_archive(server: Server, tmp_path: Path) -> None:
    server.kind = "text/html; charset=utf-8"
    with pytest.raises(NetworkError, match=r"web page[\s\S]*by hand"):
        get(toy(server, **KNOWN), tmp_path)
    assert not (tmp_path / "set.bin").exists()
    get(recipe(SourceFile("page.html", server.url)), tmp_path)
    assert (tmp_path / "page.html").read_bytes() == CONTENT


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_redirect_elsewhere_is_refused(server: Server, tmp_path: Path, scheme: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    server.redirect = f"{scheme}://{secret}"
    with pytest.raises(NetworkError, match=scheme):
        get(toy(server), tmp_path)
    assert not (tmp_path / "set.bin").exists()


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(NetworkError, match="only http and https"):
        get(recipe(SourceFile("set.bin", f"file://{tmp_path / 'secret'}")), tmp_path)


def test_redirect_is_followed(server: Server, tmp_path: Path) -> None:
    server.redirect, server.redirects = server.url, 1
    get(toy(server), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert len(server.ranges) == 2


def test_two_threads_at_once(server: Server, tmp_path: Path) -> None:
    server.delay = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(get, toy(server, **KNOWN), tmp_path) for _ in range(2)]
        threading.Timer(0.3, server.delay.set).start()
        assert [job.result(20) for job in waiting] == [[tmp_path / "set.bin"]] * 2
    assert server.ranges == [None]


def test_two_processes_at_once(server: Server, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from unweave.data.storage.download import get\n"
        "from unweave.data.recipe import Recipe, SourceFile\n"
        "file = SourceFile('set.bin', sys.argv[1], sha256=sys.argv[2])\n"
        "get(Recipe(name='toy', load=None, files=(file,)), Path(sys.argv[3]))\n"
    )
    server.delay = threading.Event()
    command = [sys.executable, "-c", program, server.url, SHA256, str(tmp_path)]
    jobs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    # The one that waits says so: only then the other may go on.
    threading.Timer(1.5, server.delay.set).start()
    told = [job.communicate(timeout=30)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], told
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert server.ranges == [None]


def test_full_disk(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = module.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(DataError, match="too full"):
        get(toy(server), tmp_path)


def test_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot store"):
        get(toy(server), tmp_path / "file" / "toy")


def test_obtain_prepares_and_then_needs_no_files(server: Server, tmp_path: Path) -> None:
    data = obtain(toy(server, **KNOWN), tmp_path)
    assert len(data) == 4
    (tmp_path / "set.bin").unlink()
    assert len(obtain(toy(server, **KNOWN), tmp_path)) == 4
    assert len(server.ranges) == 1


def test_obtain_replaces_a_damaged_file(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(folder: Path) -> object:
        if (folder / "set.bin").read_bytes() != CONTENT:
            raise DataError("set.bin is damaged")
        return "loaded"

    (tmp_path / "set.bin").write_bytes(b"damaged")
    damaged = replace(toy(server, **KNOWN), load=load)
    assert obtain(damaged, tmp_path) == "loaded"
    assert capsys.readouterr().err.startswith("set.bin is damaged\nDownloading")


def test_obtain_takes_what_loads(server: Server, tmp_path: Path) -> None:
    other_form = replace(toy(server, **KNOWN), load=lambda folder: "loaded")
    assert obtain(other_form, tmp_path) == "loaded"
    assert server.ranges == []


def test_obtain_does_not_hide_why_loading_failed(tmp_path: Path) -> None:
    def load(folder: Path) -> object:
        raise DataError("the disk is on fire")

    (tmp_path / "set.bin").write_bytes(b"x")
    file = SourceFile("set.bin", "http://127.0.0.1:1/", size=1)
    broken = replace(recipe(file), load=load)
    with pytest.raises(DataError, match="on fire"):
        obtain(broken, tmp_path)


# --- servers that do not end, or not now ------------------------------------------------------------


def test_a_body_that_does_not_end_is_given_up(server: Server, tmp_path: Path) -> None:
    server.endless = True
    with pytest.raises(DataError, match="does not end after 3,000,000 bytes"):
        get(toy(server, at_most=3_000_000), tmp_path)
    assert not any(path.stat().st_size for path in tmp_path.glob("*set.bin*"))


def test_a_body_that_is_announced_too_long_is_not_begun(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its size is 512,000 bytes, more than 1,000"):
        get(toy(server, at_most=1000), tmp_path)
    assert not (tmp_path / "set.bin").exists()


def test_a_byte_now_and_then_counts_as_cut(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SLOW_SECONDS", 0.1)
    monkeypatch.setattr(module, "_ATTEMPTS", 2)
    server.drip = 0.01
    start = time.monotonic()
    with pytest.raises(NetworkError, match=r"the server sent \d+ bytes in 0 seconds"):
        get(toy(server), tmp_path)
    assert time.monotonic() - start < 5
    server.drip = None


def test_a_server_that_is_busy_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.busy = 3
    get(toy(server, **KNOWN), tmp_path)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT
    assert len(server.ranges) == 4


def test_waits_get_longer(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(module, "_BACK_OFF", 1.0)
    monkeypatch.setattr(module.time, "sleep", waits.append)
    server.busy = 100
    with pytest.raises(NetworkError, match="503"):
        get(toy(server), tmp_path)
    assert waits == [1.0, 2.0, 4.0, 8.0]


def test_the_hash_of_a_first_download_is_kept_and_compared(server: Server, tmp_path: Path) -> None:
    get(toy(server), tmp_path)
    assert (tmp_path / ".set.bin.sha256").read_text().split() == [SHA256, "set.bin"]
    (tmp_path / "set.bin").unlink()
    get(toy(server), tmp_path)
    (tmp_path / "set.bin").unlink()
    server.content = CONTENT[:-1] + b"x"
    with pytest.raises(DataError, match=f"and was {SHA256} when it was first downloaded"):
        get(toy(server), tmp_path)
    assert not (tmp_path / "set.bin").exists()
    assert leftovers(tmp_path) == []


def test_an_empty_answer_is_no_file(server: Server, tmp_path: Path) -> None:
    server.content, server.length = b"", False
    with pytest.raises(NetworkError, match="the server sent nothing"):
        get(toy(server), tmp_path)
    assert not (tmp_path / "set.bin").exists()
    assert not (tmp_path / ".set.bin.sha256").exists()


def test_a_file_without_a_checksum_is_asked_for_by_https_first() -> None:
    http = SourceFile("a", "http://example.org/a")
    assert module._addresses(http) == ["https://example.org/a", "http://example.org/a"]
    assert module._addresses(replace(http, sha256=SHA256)) == ["http://example.org/a"]
    assert module._addresses(replace(http, url="https://example.org/a")) == ["https://example.org/a"]


def test_https_is_not_left_by_a_redirect() -> None:
    request = module.urllib.request.Request("https://example.org/a")
    with pytest.raises(module.urllib.error.URLError, match="not followed"):
        module._HttpRedirects().redirect_request(request, None, 302, "", {}, "http://example.org/a")
