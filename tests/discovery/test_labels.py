"""Labels of some photographs, and how codes relate to them."""

import unicodedata

import numpy as np
import pytest
from scipy.stats import spearmanr

from unweave.discovery.labels import LabelColumn, read_labels, relate, useless_labels, without_duplicates
from unweave.errors import ArgumentError, DataError

NAMES = ["a.png", "b.png", "sub/c.png"]


def write(tmp_path, text):
    path = tmp_path / "some.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_some_labels_of_some_photographs(tmp_path):
    path = write(tmp_path, "file,angle,kind\nsub\\c.png,2.5,\na.png,,dog\n")
    angle, kind = read_labels(path, NAMES)
    assert angle.known.tolist() == [False, False, True]
    assert angle.values[2] == 2.5
    assert (kind.categories, kind.known.tolist()) == (("dog",), [True, False, False])


def test_lines_of_unreadable_files_are_passed_over(tmp_path):
    path = write(tmp_path, "file,angle\nbroken.png,1\na.png,2\n")
    (angle,) = read_labels(path, NAMES, ["broken.png"])
    assert angle.values[0] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("file\na.png\n", "line 1: needs a column of files, then columns of labels"),
        ("file,x,x\na.png,1,2\n", "line 1: needs"),
        ("file,x\nunknown.png,1\n", r"line 2: there is no photograph 'unknown\.png'"),
        ("file,x\na.png,1\na.png,2\n", "line 3: 'a.png' has a line already"),
        ("file,x\na.png,1,2\n", "line 2: has 3 cells; the header has 2"),
        ('file,x\n"a.png,1\n', "some.csv, line 2"),
    ],
)
def test_mistakes_in_the_table_name_the_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_labels(write(tmp_path, text), NAMES)


def test_a_missing_table_and_one_that_is_no_text(tmp_path):
    with pytest.raises(ArgumentError, match="no such file"):
        read_labels(tmp_path / "none.csv", NAMES)
    (tmp_path / "some.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        read_labels(tmp_path / "some.csv", NAMES)


def test_rank_correlation_is_that_of_scipy_on_the_labelled_rows():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(80, 2))
    values = codes[:, 0] ** 3 + 0.3 * rng.normal(size=80)
    values[60:] = np.nan
    first, second = relate(codes, [LabelColumn("x", values, ())])
    assert first[0].strength == pytest.approx(spearmanr(codes[:60, 0], values[:60])[0])
    assert (first[0].labelled, first[0].is_real, first[0].p) == (60, True, pytest.approx(2 / 1000))
    assert not second[0].is_real


def test_categories_by_the_information_about_them():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 200).astype(float)
    codes = np.stack([kinds + 0.01 * rng.normal(size=200), rng.normal(size=200)], axis=1)
    known, unknown = relate(codes, [LabelColumn("kind", kinds, ("cat", "dog"))])
    assert known[0].strength > 0.85
    assert known[0].is_real
    assert unknown[0].strength < 0.05
    assert not unknown[0].is_real


def test_many_comparisons_of_chance_find_no_relation():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(50, 10))
    labels = [LabelColumn(str(number), rng.normal(size=50), ()) for number in range(5)]
    assert not any(relation.is_real for related in relate(codes, labels) for relation in related)


def test_labels_that_say_nothing_are_named():
    few = LabelColumn("few", np.where(np.arange(50) < 5, 1.0, np.nan), ())
    same = LabelColumn("same", np.ones(50), ())
    assert useless_labels([few, same]) == {
        "few": "only 5 of the photographs have it",
        "same": "all photographs that have it have the same",
    }
    assert relate(np.zeros((50, 1)), [few, same]) == [[]]


def test_numbers_that_a_factor_tells_in_no_order():
    """An angle, by how far it is from the back; and numbers that stand for categories."""
    rng = np.random.default_rng(0)
    angle = rng.permutation(np.arange(300)) * 1.2
    kind = rng.integers(0, 6, 300).astype(float)
    codes = np.stack([np.abs(angle - 180), np.array([3, 0, 5, 1, 4, 2])[kind.astype(int)] + 0.0], axis=1)
    codes += rng.normal(0, 0.05, codes.shape)
    labels = [LabelColumn("angle", angle, ()), LabelColumn("kind", kind, ())]
    (of_angle, no_kind), (no_angle, of_kind) = relate(codes, labels)
    assert abs(spearmanr(codes[:, 0], angle)[0]) < 0.1
    assert (of_angle.kind, of_kind.kind) == ("information", "information")
    assert of_angle.strength > 0.5
    assert of_kind.strength > 0.75
    assert of_angle.is_real
    assert of_kind.is_real
    assert not no_kind.is_real
    assert not no_angle.is_real


def test_two_tests_of_a_number_give_no_more_false_alarms_than_one():
    rng = np.random.default_rng(0)
    alarms = 0
    for repetition in range(200):
        label = LabelColumn("x", rng.integers(0, 10, 60).astype(float), ())
        alarms += relate(rng.normal(size=(60, 1)), [label], seed=repetition)[0][0].is_real
    assert 2 <= alarms <= 18  # 5 % of 200 is 10; 0.998 of a binomial distribution is within


def test_a_plain_relation_is_real_among_very_many_comparisons():
    """p of 999 permutations is 0.001 at least: times 60 comparisons it would call nothing real."""
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(80, 6))
    labels = [LabelColumn("plain", codes[:, 0] * 2, ())]
    labels += [LabelColumn(str(number), rng.normal(size=80), ()) for number in range(9)]
    related = relate(codes, labels)
    assert related[0][0].is_real
    assert related[0][0].p == pytest.approx(1 / 100)
    assert not any(relation.is_real for one in related for relation in one if relation is not related[0][0])


def test_copies_of_photographs_are_no_evidence():
    rng = np.random.default_rng(1)
    alarms, honest = 0, 0
    for repetition in range(40):
        code, value = rng.normal(size=(15, 1)), rng.normal(size=15)
        label = LabelColumn("x", np.tile(value, 8), ())
        once = without_duplicates([label], np.tile(np.arange(15), 8))
        alarms += relate(np.tile(code, (8, 1)), [label], seed=repetition)[0][0].is_real
        (relation,) = relate(np.tile(code, (8, 1)), once, seed=repetition)[0]
        assert relation.labelled == 15
        honest += relation.is_real
    assert alarms > 20  # what would be said if copies counted
    assert honest <= 6  # 5 % of 40 is 2


def test_the_label_of_a_copy_is_that_of_the_photograph():
    label = LabelColumn("x", np.array([np.nan, 2.0, 7.0, 1.0]), ())
    assert np.isnan(without_duplicates([label], np.array([0, 1, 0, 1]))[0].values).tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert without_duplicates([label], np.array([0, 1, 0, 1]))[0].values[:2].tolist() == [7.0, 2.0]


@pytest.mark.parametrize(
    "text",
    ["file,x\na.png,1.5\nb.png,2\n", "file;x\na.png;1,5\nb.png;2\n", "file\tx\na.png\t1.5\nb.png\t2\n"],
)
def test_tables_as_spreadsheets_write_them(tmp_path, text):
    (column,) = read_labels(write(tmp_path, text), NAMES)
    assert column.values[:2].tolist() == [1.5, 2.0]
    assert column.categories == ()


@pytest.mark.parametrize("unknown", ["NA", "nan", "N/A", "null", "?"])
def test_numbers_stay_numbers_where_some_are_not_known(tmp_path, unknown):
    (column,) = read_labels(write(tmp_path, f"file,x\na.png,{unknown}\nb.png,2\n"), NAMES)
    assert column.known.tolist() == [False, True, False]
    assert column.categories == ()


def test_words_that_may_mean_unknown_are_categories_among_words(tmp_path):
    (column,) = read_labels(write(tmp_path, "file,country\na.png,NA\nb.png,DE\n"), NAMES)
    assert column.categories == ("DE", "NA")
    (column,) = read_labels(write(tmp_path, "file,x\na.png,inf\nb.png,2\n"), NAMES)
    assert column.categories == ("2", "inf")


def test_umlauts_of_other_systems_and_spaces_at_the_edge_of_names(tmp_path):
    """macOS writes an umlaut in a name as two characters, and most editors as one."""
    names = [unicodedata.normalize("NFD", "Käse.png"), " first.png", "first.png", "back\\slash.png"]
    text = "file,x\nKäse.png,1\n first.png,2\nfirst.png,3\nback\\slash.png,4\n"
    (column,) = read_labels(write(tmp_path, text), names)
    assert column.values.tolist() == [1, 2, 3, 4]
