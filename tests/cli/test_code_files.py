from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unweave.cli.code_files import SUFFIXES, read_codes, write_codes
from unweave.data import FactorSpace
from unweave.errors import ArgumentError, DataError

SPACE = FactorSpace(
    ["shape", "code_2", "angle", "size"],
    [3, 4, (0.0, 1.0), 3],
    value_names={"shape": ["square", "NA", "ellipse"], "size": ["0°", "5°", "10°"]},
)


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "codes": rng.standard_normal((40, 2)).astype(np.float32),
        "log_variance": rng.standard_normal((40, 2)).astype(np.float32),
        "factors": np.stack(
            [rng.integers(0, 3, 40), rng.integers(0, 4, 40), rng.random(40), rng.integers(0, 3, 40)], 1
        ),
        "rows": np.arange(40),
        "files": np.array([f"{row}.png" for row in range(40)]),
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("some_unknown", [False, True])
def test_what_is_written_is_read_again(tmp_path, arrays, suffix, some_unknown):
    if some_unknown:
        arrays["factors"][::3] = np.nan
    write_codes(tmp_path / f"codes{suffix}", arrays, SPACE)
    read = read_codes(tmp_path / f"codes{suffix}")
    assert list(read) == ["codes", "factors", "log_variance"] or list(read) == [
        "codes",
        "log_variance",
        "factors",
    ]
    np.testing.assert_array_equal(read["codes"].astype(np.float32), arrays["codes"])
    np.testing.assert_allclose(read["log_variance"], arrays["log_variance"], atol=1e-6)
    expected = arrays["factors"].copy()
    if suffix == ".csv":  # which does not say in which order: alphabetically
        known = ~np.isnan(expected[:, 0])
        expected[known, 0] = np.array([2, 0, 1])[expected[known, 0].astype(int)]
        expected[known, 3] = np.array([0, 2, 1])[expected[known, 3].astype(int)]
    np.testing.assert_array_equal(read["factors"], expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_codes_alone(tmp_path, suffix):
    write_codes(tmp_path / f"codes{suffix}", {"codes": np.eye(3), "rows": np.arange(3)})
    assert {name: array.tolist() for name, array in read_codes(tmp_path / f"codes{suffix}").items()} == {
        "codes": np.eye(3).tolist()
    }


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_tables_of_others(tmp_path, suffix):
    path = tmp_path / f"codes{suffix}"

    def write(**columns):
        frame = pd.DataFrame(columns)
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)

    write(code_0=[1.0, 2.0], lit=[True, False], count=pd.array([3, None], "Int64"))
    np.testing.assert_array_equal(read_codes(path)["factors"], [[1, 3], [0, np.nan]])
    for columns, message in (
        ({"z_0": [1.0]}, "has no columns code_0, code_1, …, only ['z_0']"),
        ({"code_0": ["a"]}, "column 'code_0' is not of numbers"),
        ({"code_0": [1.0], "variance_0": [0.0]}, "a variance is not above 0"),
        (
            {"code_0": [1.0], "variance_0": [1.0], "variance_1": [1.0]},
            "1 columns of codes, and 2 of variances",
        ),
    ):
        write(**columns)
        with pytest.raises(DataError) as caught:
            read_codes(path)
        assert message in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damaged_files(tmp_path, suffix):
    path = tmp_path / f"codes{suffix}"
    with pytest.raises(ArgumentError, match="there is no such file"):
        read_codes(path)
    path.write_bytes(b"\xff\x00PAR1")
    with pytest.raises(DataError, match=f"codes{suffix}: not a"):
        read_codes(path)


NAMES = [
    "=1+1.png",
    "+2.png",
    "-3.png",
    "@4.png",
    "\t5.png",
    "\n6.png",
    "\uff1d7.png",
    "sub/=8.png",
    "9=.png",
]


def test_names_in_csv_are_no_formulas_and_name_the_same_files(tmp_path):
    arrays = {"codes": np.zeros((len(NAMES), 1)), "rows": np.arange(len(NAMES)), "files": np.array(NAMES)}
    write_codes(tmp_path / "codes.csv", arrays)
    written = pd.read_csv(tmp_path / "codes.csv")["file"].tolist()
    assert not [name for name in written if name[0] in "=+-@\t\n\uff1d"]
    assert [Path(name) for name in written] == [Path(name) for name in NAMES]
    write_codes(tmp_path / "codes.parquet", arrays)
    assert pd.read_parquet(tmp_path / "codes.parquet")["file"].tolist() == NAMES
