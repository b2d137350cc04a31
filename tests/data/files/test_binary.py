import gzip

import numpy as np
import pytest

from unweave.data.files import binary
from unweave.errors import DataError


@pytest.mark.parametrize("name", ["numbers.bin", "numbers.bin.gz"])
def test_blocks_join_to_the_array(tmp_path, monkeypatch, name):
    monkeypatch.setattr(binary, "_CHUNK", 100)  # 25 rows of 4 bytes at a time
    array = np.arange(2 * 57, dtype="<i2").reshape(57, 2)
    path = tmp_path / name
    path.write_bytes(gzip.compress(array.tobytes()) if name.endswith(".gz") else array.tobytes())
    with binary.open_binary(path) as stream:
        blocks = list(binary.read_blocks(path, stream, "<i2", (57, 2)))
    assert [len(block) for block in blocks] == [25, 25, 7]
    assert (np.concatenate(blocks) == array).all()


def test_a_missing_file_is_one_clear_error(tmp_path):
    with (
        pytest.raises(DataError, match=r"nowhere.bin: cannot be read"),
        binary.open_binary(tmp_path / "nowhere.bin"),
    ):
        pass


def test_too_short_and_too_long(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    with binary.open_binary(path) as stream, pytest.raises(DataError, match="3 bytes early"):
        list(binary.read_blocks(path, stream, "u1", (2, 4)))
    with binary.open_binary(path) as stream, pytest.raises(DataError, match="longer"):
        list(binary.read_blocks(path, stream, "u1", (2, 2)))
