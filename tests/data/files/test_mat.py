import io

import numpy as np
import pytest
from scipy.io import savemat

from unweave.data.files.mat import read_mat
from unweave.errors import DataError


def mat(**arrays):
    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


def test_an_array():
    data = mat(a=np.arange(6.0).reshape(2, 3), b=np.ones(2))
    assert read_mat(data, "x.mat", "a", (2, 3), np.float64).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (mat(b=np.ones(2)), "has no array 'a'"),
        (mat(a=np.ones((3, 2))), r"float64 \(3, 2\); expected float64 \(2, 3\)"),
        (mat(a=np.ones((2, 3), np.float32)), "float32"),
        (mat(a=np.array([[{}, 1, 2]] * 2, object)), "object"),
        (mat(a=np.ones((2, 3)))[:150], "not a complete .mat"),
        (b"", "not a complete .mat"),
        (b"\x89HDF\r\n\x1a\n" + bytes(200), "not a complete .mat"),
    ],
)
def test_other_files_are_refused(data, words):
    with pytest.raises(DataError, match=f"x.mat: .*{words}"):
        read_mat(data, "x.mat", "a", (2, 3), np.float64)
