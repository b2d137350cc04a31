import h5py
import numpy as np
import pytest

from unweave.data.files import hdf5
from unweave.errors import DataError


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plain"] = np.arange(30, dtype=">i4").reshape(15, 2)
        file.create_dataset("chunked", data=np.arange(30, dtype="<i4").reshape(15, 2), chunks=(4, 2))
        file.create_group("group")
    return tmp_path / "a.h5"


@pytest.mark.parametrize("key", ["plain", "chunked"])
def test_reading_whole_and_as_a_stream(path, key, monkeypatch):
    monkeypatch.setattr(hdf5, "_CHUNK", 8 * 5)
    expected = np.arange(30).reshape(15, 2)
    assert (hdf5.read_hdf5(path, key, (15, 2), np.int32) == expected).all()
    out = np.zeros((15, 2), np.int32)
    hdf5.stream_hdf5(path, key, np.int32, out)
    assert (out == expected).all()


def test_other_arrays_are_refused(path):
    with pytest.raises(DataError, match=r"a.h5: has no array 'group', only \['chunked', 'group', 'plain'\]"):
        hdf5.read_hdf5(path, "group", (15, 2), np.int32)
    with pytest.raises(DataError, match=r"expected int32 \(15, 3\)"):
        hdf5.read_hdf5(path, "chunked", (15, 3), np.int32)
    with pytest.raises(DataError, match=r"expected uint8 \(15, 2\)"):
        hdf5.read_hdf5(path, "chunked", (15, 2), np.uint8)


def test_other_files_are_refused(path):
    path.write_text("hello")
    with pytest.raises(DataError, match=r"a.h5: not a complete HDF5 file"):
        hdf5.read_hdf5(path, "plain", (15, 2), np.int32)
