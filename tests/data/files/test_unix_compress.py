import shutil
import subprocess

import numpy as np
import pytest

from unweave.data.files.unix_compress import decompress
from unweave.errors import DataError


def compress(data: bytes, last_width: int = 16, clear_when_full: bool = False) -> bytes:
    """Packs as the tool does: codes of one width in groups of eight, a clear code when asked for."""
    out = bytearray([0x1F, 0x9D, 0x80 | last_width])
    group: list[int] = []
    width = 9

    def flush(size: int) -> None:
        bits = sum(code << (i * width) for i, code in enumerate(group))
        out.extend(bits.to_bytes(size, "little"))
        group.clear()

    def emit(code: int) -> None:
        group.append(code)
        if len(group) == 8:
            flush(width)

    table = {bytes([i]): i for i in range(256)}
    following, prefix = 257, b""
    for i in range(len(data)):
        byte = data[i : i + 1]
        if prefix + byte in table:
            prefix += byte
            continue
        emit(table[prefix])
        if following < 1 << last_width:
            table[prefix + byte] = following
            following += 1
        elif clear_when_full:
            emit(256)
            if group:
                flush(width)
            table, following, width = {bytes([i]): i for i in range(256)}, 257, 9
        # The reader's table is one entry behind.
        if following - 1 == 1 << width and width < last_width:
            if group:
                flush(width)
            width += 1
        prefix = byte
    if prefix:
        emit(table[prefix])
    flush((len(group) * width + 7) // 8)
    return bytes(out)


SAMPLES = {
    "nothing": b"",
    "one byte": b"a",
    "a code that is not in the table yet": b"aaaaaaa",
    "text": b"to be or not to be, that is the question; " * 40,
    "zeros": bytes(100_000),
    "noise": np.random.default_rng(0).bytes(40_000),
    "a picture": np.random.default_rng(1).normal(0, 3, 60_000).astype(np.int8).tobytes(),
}


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("width", [9, 10, 12, 16])
@pytest.mark.parametrize("sample", SAMPLES)
def test_what_was_packed_is_unpacked(sample, width, clear):
    assert decompress(compress(SAMPLES[sample], width, clear), "a.Z") == SAMPLES[sample]


@pytest.mark.skipif(not shutil.which("gzip"), reason="gzip, which also unpacks .Z files, is not here")
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("sample", ["text", "zeros", "noise", "a picture"])
def test_gzip_agrees(sample, clear):
    packed = compress(SAMPLES[sample], 12, clear)
    found = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout
    assert found == SAMPLES[sample] == decompress(packed, "a.Z")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a .Z file"),
        (b"\x1f\x8b\x08" + bytes(20), "not a .Z file"),
        (b"\x1f\x9d\x9f" + bytes(20), "not a .Z file"),
        (b"\x1f\x9d\x90\xff\xff\xff", "damaged at byte 3"),
    ],
)
def test_other_files_are_refused(data, words):
    with pytest.raises(DataError, match=f"a.Z: {words}"):
        decompress(data, "a.Z")
