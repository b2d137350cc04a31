import gzip

import numpy as np
import pytest

from unweave.data.files.norb import read_norb
from unweave.errors import DataError

# A vector of two integers, written out by hand: its header has three sizes all the same.
INTEGERS = bytes.fromhex("544c3d1e 01000000 02000000 01000000 01000000 2a000000 ffffffff")
# A 1 x 2 x 1 x 2 array of bytes.
BYTES = bytes.fromhex("554c3d1e 04000000 01000000 02000000 01000000 02000000 00 7f 80 ff")


def test_integers_and_bytes(tmp_path):
    (tmp_path / "a.mat").write_bytes(INTEGERS)
    (tmp_path / "b.mat.gz").write_bytes(gzip.compress(BYTES))
    assert read_norb(tmp_path / "a.mat", (2,), np.int32).tolist() == [42, -1]
    # Bytes are unsigned.
    assert read_norb(tmp_path / "b.mat.gz", (1, 2, 1, 2), np.uint8).tolist() == [[[[0, 127]], [[128, 255]]]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (INTEGERS[:-1], "1 bytes early"),
        (INTEGERS[:6], "early"),
        (INTEGERS + b"\0", "longer"),
        (INTEGERS[3::-1] + INTEGERS[4:], "not a NORB binary matrix"),
        (INTEGERS[:4] + b"\xff" * 4 + INTEGERS[8:], "not a NORB binary matrix"),
        (BYTES, r"is uint8 \(1, 2, 1, 2\); expected int32 \(2,\)"),
    ],
)
def test_other_files_are_refused(tmp_path, data, words):
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(DataError, match=f"a.mat: .*{words}"):
        read_norb(tmp_path / "a.mat", (2,), np.int32)
