import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave as uw
from unweave.data.dataset import Dataset
from unweave.data.own.with_labels import with_labels
from unweave.errors import ArgumentError, DataError

NAMES = ("a.png", "b.png", "sub/c.png", "sub/d.png")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(NAMES):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), number, np.uint8)).save(path)
    return tmp_path / "photos"


def check(data: Dataset) -> None:
    """The labels that every form below gives: animal of a and d, size of a and c."""
    assert data.files == NAMES
    assert data.space.names == ("animal", "size")
    assert data.space.value_names == {"animal": ("cat", "dog"), "size": ("1", "5")}
    assert data.space.categorical == {"animal"}
    nan = np.nan
    np.testing.assert_array_equal(data.factors(np.arange(4)), [[0, 1], [nan, nan], [nan, 0], [1, nan]])
    np.testing.assert_array_equal(data.images([2])[0, 0, 0], [2])
    np.testing.assert_array_equal(data.labelled_rows(), [0])
    np.testing.assert_array_equal(data.labelled_rows(["animal"]), [0, 3])


MAPPING = {"a.png": {"animal": "cat", "size": 5}, "sub/d.png": {"animal": "dog"}, "./sub\\c.png": {"size": 1}}
CSV = "name,animal,size\nsub/c.png,,1\na.png,cat,5\nsub/d.png,dog,\n"
FRAME = pd.DataFrame(
    {"animal": ["cat", None, "dog"], "size": [5, 1, np.nan]}, index=["a.png", "sub/c.png", "sub/d.png"]
)


def test_a_mapping(folder):
    check(uw.data.load("photos", labels=MAPPING))
    check(uw.data.from_folder(folder, MAPPING))
    check(with_labels(uw.data.load("photos"), MAPPING))


def test_absolute_paths_inside_the_folder(folder):
    mapping = {folder / name if name == "a.png" else name: labels for name, labels in MAPPING.items()}
    check(uw.data.load(folder, labels=mapping))


@pytest.mark.parametrize("frame", [FRAME, FRAME.reset_index(names="file")])
def test_a_frame(folder, frame):
    check(uw.data.load("photos", labels=frame))
    check(with_labels(uw.data.load("photos"), frame))


def test_a_csv_file_is_relative_to_where_the_user_is(folder, tmp_path):
    (tmp_path / "labels.csv").write_text(CSV)
    data = uw.data.load("photos", labels="labels.csv")
    check(data)
    assert data.labels_file == str(tmp_path / "labels.csv")
    check(with_labels(uw.data.load("photos"), "labels.csv"))
    with pytest.raises(ArgumentError, match=r"labels = .*nothing.csv.*no such file"):
        uw.data.load("photos", labels="nothing.csv")


def test_labels_replace_the_table_of_the_folder(folder):
    (folder / "factors.csv").write_text("file,other\na.png,1\n")
    assert uw.data.load("photos").space.names == ("other",)
    check(uw.data.load("photos", labels=MAPPING))


def test_chosen_labels(folder):
    data = uw.data.from_folder(folder, MAPPING, names=["size"])
    assert data.space.names == ("size",)
    with pytest.raises(ArgumentError, match=r"names = 'sise'.*did you mean 'size'"):
        uw.data.from_folder(folder, MAPPING, names=["sise"])


def test_one_label_for_each(folder):
    data = with_labels(uw.data.load("photos"), {"a.png": "cat", "b.png": "dog"}, names=["animal"])
    assert data.space.names == ("animal",)
    assert with_labels(data, {"a.png": 3}).space.names == ("label",)


def test_rows_without_files_have_numbers():
    data = uw.data.from_arrays(np.zeros((5, 4), np.float32))
    frame = pd.DataFrame({"row": [4, 0], "x": ["a", "b"]})
    for labels in ({4: "a", 0: "b"}, {"4": "a", "0": "b"}):
        np.testing.assert_array_equal(with_labels(data, labels).labelled_rows(), [0, 4])
    np.testing.assert_array_equal(with_labels(data, frame).factors([0, 4]).ravel(), [1, 0])
    np.testing.assert_array_equal(with_labels(data, frame.set_index("row")).factors([0, 4]).ravel(), [1, 0])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"q.png": 1, "a.png": 1}, "labels = 'q.png': 1 of 2 are the names of no row"),
        ({}, "labels = .*is empty"),
        ({"a.png": 1, "b.png": {"x": 1}}, "needs one label for each row, or a mapping"),
        ({"a.png": 1, "./a.png": 2}, "labels = './a.png': is there twice"),
        (3, "labels = 'int': needs a CSV file, a mapping"),
        (pd.DataFrame({"x": [1, 2]}, index=["a.png", "a.png"]), "labels = 'a.png': is there twice"),
        ({"a.png": [1, 2]}, "factors.'label'. = 'values of type list'"),
    ],
)
def test_wrong_labels_are_refused(folder, labels, message):
    with pytest.raises(ArgumentError, match=message):
        with_labels(uw.data.load("photos"), labels)


def test_a_wrong_file_is_refused_with_its_line(folder, tmp_path):
    (tmp_path / "labels.csv").write_text(CSV + "q.png,cat,1\n")
    with pytest.raises(DataError, match=r"labels.csv, line 5: there is no image 'q.png' in .*photos"):
        uw.data.load("photos", labels="labels.csv")


def test_a_simulator_has_no_other_factors():
    with pytest.raises(ArgumentError, match="is computed from its factors"):
        with_labels(uw.data.load("pendulum"), {0: 1})


def test_what_needs_all_factors_says_so():
    factors = {"x": [0, 1, 0, 1, None], "y": [0, 0, 1, 1, 0]}
    data = uw.data.from_arrays(np.zeros((5, 4), np.float32), factors)
    rng = np.random.default_rng(0)
    for call in (
        lambda: uw.data.sample_pairs(data, 3, rng, changed=1),
        lambda: uw.data.correlate(data, "x", "y", 0.2),
        lambda: uw.data.entangle(data),
    ):
        with pytest.raises(ArgumentError, match='4 of 5 rows have all factors, and split="labelled"'):
            call()


def test_rows_are_asked_for_among_those_that_have_the_factors():
    factors = {"x": [0, 1, 0, 1, None], "y": [0, 0, 1, 1, 1]}
    data = uw.data.from_arrays(np.zeros((5, 4), np.float32), factors)
    np.testing.assert_array_equal(data.rows([[1, 1], [0, 0]]), [3, 0])
    rows = data.sample_rows(200, np.random.default_rng(0), {"y": 1})
    assert set(rows) == {2, 3, 4}
    assert set(data.sample_rows(200, np.random.default_rng(0), {"x": 1})) == {1, 3}
    assert set(data.sample_rows(200, np.random.default_rng(0))) == set(range(5))
