import gzip

import numpy as np
import pytest

from unweave.data.files.idx import read_idx
from unweave.errors import DataError

# Two rows of three numbers, written out by hand as the format's description has it.
BYTES = bytes([0, 0, 0x08, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 253, 254, 255])
SHORTS = bytes([0, 0, 0x0B, 1, 0, 0, 0, 2, 0x01, 0x02, 0xFF, 0xFE])


def test_bytes(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(BYTES))
    (tmp_path / "a").write_bytes(BYTES)
    for name in ("a", "a.gz"):
        found = read_idx(tmp_path / name, (2, 3))
        assert found.dtype == np.uint8
        assert found.tolist() == [[1, 2, 3], [253, 254, 255]]


def test_numbers_are_big_endian(tmp_path):
    (tmp_path / "a").write_bytes(SHORTS)
    assert read_idx(tmp_path / "a", (2,), np.int16).tolist() == [258, -2]
    with pytest.raises(DataError, match=r"is int16 \(2,\); expected uint8 \(2,\)"):
        read_idx(tmp_path / "a", (2,))


def test_an_unknown_type_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"\0\0\x07" + BYTES[3:])
    with pytest.raises(DataError, match="a: not an IDX file"):
        read_idx(tmp_path / "a", (2, 3))
