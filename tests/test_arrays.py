import numpy as np
import pytest

from unweave.arrays import as_array, to_python
from unweave.errors import ArgumentError


def test_anything_that_numpy_takes_is_an_array():
    np.testing.assert_array_equal(as_array([[1, 2], [3, 4]], "codes"), [[1, 2], [3, 4]])
    assert as_array(["a", 1], "x", keep_types=True).tolist() == ["a", 1]
    assert as_array(["a", 1], "x").tolist() == ["a", "1"]


def test_masked_values_are_missing():
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert as_array(masked, "x").tolist() == [1.0, None]


def test_what_is_no_array_names_its_argument():
    with pytest.raises(ArgumentError, match="codes = 'list': cannot be converted to a numpy array"):
        as_array([[1, 2], [3]], "codes")


def test_numpy_scalars_become_python():
    value = to_python({np.str_("a"): [np.float32(0.5), (np.int64(1), np.bool_(True))]})
    assert value == {"a": [0.5, (1, True)]}
    assert type(value["a"][1][1]) is bool
    array = np.ones(2)
    assert to_python(array) is array
