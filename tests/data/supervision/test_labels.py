import numpy as np
import pytest

import unweave as uw
from unweave.data.batches import Batch, ImageBatches, LabelledBatch, LabelledBatches
from unweave.data.supervision.labels import labels_from_spec, labels_of
from unweave.errors import ArgumentError

NAN = float("nan")


def draw(labels, *arguments):
    return LabelledBatches(ImageBatches(labels.data), labels).draw(*arguments)


@pytest.fixture(scope="module")
def data():
    """12 rows: shape (3, no order), size (4)."""
    factors = {"shape": np.repeat(["ball", "cube", "star"], 4), "size": np.tile(np.arange(4), 3)}
    return uw.data.from_arrays(np.arange(12, dtype=np.float32)[:, None], factors)


@pytest.fixture(scope="module")
def many():
    """A grid of 5,000 rows."""
    return uw.data.from_function(["a", "b"], [50, 100], lambda factors: factors.astype(float))


def test_scaled_labels_are_value_over_size(data):
    labels = labels_of(data)
    assert [(c.name, c.size, c.one_hot) for c in labels.columns] == [("shape", 3, False), ("size", 4, False)]
    rows = np.array([0, 5, 11])
    np.testing.assert_allclose(labels.of(rows), [[0, 0], [1 / 3, 1 / 4], [2 / 3, 3 / 4]])
    assert labels.of(rows).dtype == np.float32
    assert "partial" not in labels.spec


def test_one_hot_and_mixed(data):
    assert labels_of(data, encoding="one_hot").of([5]).tolist() == [[0, 1, 0, 0, 1, 0, 0]]
    assert labels_of(data, encoding="mixed").of([5]).tolist() == [[0, 1, 0, 0.25]]


def test_some_factors_in_the_order_of_their_names(data):
    assert labels_of(data, ["size", "shape"]).of([6])[0].tolist() == pytest.approx([2 / 4, 1 / 3])
    assert labels_of(data, "size").of([6]).tolist() == [[0.5]]


def test_continuous_factors_are_scaled_by_their_range():
    data = uw.data.from_function(["a"], [(2.0, 6.0)], lambda factors: factors)
    labels = labels_of(data)
    assert labels.of([[3.0], [6.0]]).tolist() == [[0.25], [1.0]]
    assert labels_of(data, bins=4).of([[3.0], [6.0]]).tolist() == [[0.25], [0.75]]
    batch = draw(labels, 3, 5, 0)
    np.testing.assert_allclose(batch.u.numpy(), (batch.factors - 2) / 4, rtol=1e-6)
    assert batch.labelled is None


def test_bins_merge_neighbouring_values(many):
    labels = labels_of(many, "b", bins=5)
    assert labels.columns[0].size == 5
    u = labels.of(np.arange(100))[:, 0]
    np.testing.assert_allclose(u, np.repeat(np.arange(5) / 5, 20), rtol=1e-6)
    assert labels_of(many, "a", bins=60).columns[0].size == 50  # few values stay as they are


def test_noise_replaces_labels_at_its_rate_and_stays_with_the_row(many):
    rows = np.arange(5000)
    clean = labels_of(many).of(rows)
    noisy = labels_of(many, noise=0.2)
    changed = noisy.of(rows) != clean
    expected = 0.2 * (1 - 1 / np.array([50, 100]))  # a uniform draw may be the same value
    assert (np.abs(changed.mean(0) - expected) < 5 * np.sqrt(expected / 5000)).all()
    drawn = (noisy.of(rows)[:, 0] * 50).round()[changed[:, 0]]
    assert set(drawn) <= set(range(50))
    assert len(set(drawn)) > 45
    both = changed.all(1).mean()
    assert abs(both - expected.prod()) < 5 * np.sqrt(expected.prod() / 5000)  # columns are independent
    np.testing.assert_array_equal(noisy.of(rows[::-1])[::-1], noisy.of(rows))
    assert (labels_of(many, noise=0.2, seed=1).of(rows) != noisy.of(rows)).any()
    few = labels_of(many, noise=0.2, labelled=100)
    np.testing.assert_array_equal(few.known(rows), noisy.of(rows))  # for evaluation they are as noisy


@pytest.mark.parametrize(("labelled", "size"), [(100, 100), (0.1, 500), (1.0, 5000), (5000, 5000)])
def test_a_labelled_subset(many, labelled, size):
    labels = labels_of(many, labelled=labelled, seed=3)
    rows = np.arange(5000)
    known = ~np.isnan(labels.of(rows)).any(1)
    assert known.sum() == size
    assert labels.spec.get("partial", False) == (size < 5000)
    np.testing.assert_array_equal(labels.known(rows), labels_of(many).of(rows))
    if size < 5000:
        subset = uw.data.labelled_subset(many, count=size, seed=3)
        np.testing.assert_array_equal(np.flatnonzero(known), subset.rows)


def test_the_users_own_array(data):
    own = np.array([[0.5, 1.0], [NAN, 0.0], [NAN, NAN], *[[0.1, 0.2]] * 9])
    labels = labels_of(data, array=own)
    np.testing.assert_allclose(labels.of([0, 1, 2]), own[:3].astype(np.float32))
    assert labels.spec["partial"]
    assert labels.subset is not None
    assert 2 not in labels.subset.rows
    assert len(labels.subset) == 11
    assert not np.isnan(labels.sample(50, np.random.default_rng(0))).any()


def test_labelled_rows_are_drawn_from_those_that_have_a_label(many):
    values = np.random.default_rng(0).random((5000, 2))
    without = values.copy()
    without[::2] = NAN
    without[1::4, 0] = NAN  # one of two labels is enough
    found = {n: labels_of(many, array=without, labelled=n, seed=3).subset.rows for n in (100, 400, 0.2)}
    assert {n: len(rows) for n, rows in found.items()} == {100: 100, 400: 400, 0.2: 1000}
    assert (found[0.2] % 2 == 1).all()
    assert set(found[100]) <= set(found[400]) <= set(found[0.2])
    np.testing.assert_array_equal(labels_of(many, array=without, labelled=2500).subset.rows % 2, 1)
    all_known = labels_of(many, array=values, labelled=100, seed=3).subset.rows
    np.testing.assert_array_equal(all_known, uw.data.labelled_subset(many, count=100, seed=3).rows)
    for labelled, told in ((2501, "2501: is 2,501"), (0.6, "0.6: is 3,000"), (1.0, "1.0: is 5,000")):
        with pytest.raises(ArgumentError, match=rf"labelled = {told} rows, and there are labels for 2,500"):
            labels_of(many, array=without, labelled=labelled)


def test_an_array_is_kept_as_it_was(data):
    own = np.linspace(0, 1, 12)
    labels = labels_of(data, array=own)
    own[:] = 0.5
    assert labels.of([11]).tolist() == [[1.0]]
    np.testing.assert_array_equal(labels_from_spec(labels.spec, data, labels.array).of([11]), [[1.0]])


def test_numpy_scalars_are_numbers(many):
    labels = labels_of(
        many, bins=np.int64(5), noise=np.float32(0.5), labelled=np.float64(0.5), seed=np.uint8(3)
    )
    assert labels.spec == labels_of(many, bins=5, noise=0.5, labelled=0.5, seed=3).spec
    assert {type(labels.spec[key]) for key in ("bins", "noise", "labelled", "seed")} == {int, float}
    assert len(labels_of(many, labelled=np.int64(10)).subset) == 10
    with pytest.raises(ArgumentError, match="labelled = True"):
        labels_of(many, labelled=np.bool_(True))


def test_numbers_in_bins_are_one_hot_from_a_factor_or_an_array():
    values = np.array([0.0, 0.3, 0.49, 0.74, 1.0])
    data = uw.data.from_arrays(np.zeros((5, 3), np.float32), {"a": values})
    factor, array = (
        labels_of(data, array=own, encoding="one_hot", bins=4).of(np.arange(5)) for own in (None, values)
    )
    np.testing.assert_array_equal(factor, np.eye(4)[[0, 1, 1, 2, 3]])
    np.testing.assert_array_equal(array, factor)
    missing = np.where(values == 0.3, NAN, values)
    assert np.isnan(labels_of(data, array=missing, encoding="one_hot", bins=4).of([1])).all()
    # Whole numbers are values, as they are without bins, in a column next to others as well.
    both = np.stack([values, [0.0, 3.0, NAN, 1.0, 2.0]], 1)
    labels = labels_of(data, array=both, encoding="one_hot", bins=2)
    assert [(column.size, column.one_hot) for column in labels.columns] == [(2, True), (2, True)]
    assert labels.of([1, 4]).tolist() == [[1, 0, 0, 1], [0, 1, 0, 1]]
    with pytest.raises(ArgumentError, match=r"labels\[2, 0\] = 2.0: needs numbers in \[0, 1\]"):
        labels_of(data, array=[0.5, 1.0, 2.0, 0.0, 0.1], encoding="one_hot", bins=2)


def test_data_without_the_labels_of_a_spec_is_blamed(data, many):
    with pytest.raises(
        ArgumentError, match=r"data = '.*': does not have the labels .*: labels = 'shape': known: a, b"
    ):
        labels_from_spec(labels_of(data).spec, many)
    few = labels_of(many, "a", labelled=100)
    fewer = uw.data.from_arrays(np.zeros((50, 1), np.float32), {"a": np.arange(50)}, name="fewer")
    with pytest.raises(ArgumentError, match=r"data = 'fewer': does not have the labels .*: labelled = 100"):
        labels_from_spec(few.spec, fewer)


def test_own_class_labels(data):
    classes = np.arange(12) % 3
    assert labels_of(data, array=classes, encoding="one_hot").of([4]).tolist() == [[0, 1, 0]]
    assert labels_of(data, array=classes).of([4])[0, 0] == pytest.approx(1 / 3)
    missing = np.where(np.arange(12) < 6, classes, NAN)
    labels = labels_of(data, array=missing, encoding="one_hot")
    assert labels.of([4]).tolist() == [[0, 1, 0]]
    assert np.isnan(labels.of([7])).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"encoding": "one_hot", "labelled": 7, "seed": 2}, {"names": ["size"], "noise": 0.5, "bins": 2}],
)
def test_a_spec_gives_the_same_labels_again(data, options):
    labels = labels_of(data, **options)
    again = labels_from_spec(labels.spec, data)
    np.testing.assert_array_equal(again.of(np.arange(12)), labels.of(np.arange(12)))


def test_a_spec_of_an_array_needs_the_same_array(data):
    classes = np.arange(12) % 3
    labels = labels_of(data, array=classes)
    again = labels_from_spec(labels.spec, data, labels.array)
    np.testing.assert_array_equal(again.of(np.arange(12)), labels.of(np.arange(12)))
    with pytest.raises(ArgumentError, match=r"uw\.load"):
        labels_from_spec(labels.spec, data)
    with pytest.raises(ArgumentError, match="others than the method was created for"):
        labels_from_spec(labels.spec, data, classes[::-1])


def test_labels_do_not_change_the_images_of_a_batch(many):
    plain = many.batch(7, 16, 5)
    for labels in (labels_of(many), labels_of(many, labelled=9)):
        batch = draw(labels, 7, 16, 5)
        assert (batch.images == plain.images).all()
        np.testing.assert_array_equal(batch.rows, plain.rows)
        np.testing.assert_array_equal(batch.u.numpy(), labels.of(plain.rows))


def test_the_labelled_part_of_a_batch(many):
    labels = labels_of(many, labelled=9)
    batch = draw(labels, 7, 64, 5)
    again = draw(labels, 7, 64, 5)
    assert set(batch.labelled.rows) <= set(labels.subset.rows)
    assert len(batch.labelled) == 64
    assert not batch.labelled.u.isnan().any()
    np.testing.assert_array_equal(batch.labelled.rows, again.labelled.rows)
    assert not np.array_equal(batch.labelled.rows, draw(labels, 8, 64, 5).labelled.rows)
    parts = [draw(labels, 7, 64, 5, (i, 2)) for i in range(2)]
    joined = np.stack([part.labelled.rows for part in parts], 1).ravel()
    np.testing.assert_array_equal(joined, batch.labelled.rows)
    assert isinstance(batch, LabelledBatch)
    assert isinstance(batch.labelled, LabelledBatch)
    assert batch.labelled.labelled is None
    assert type(many.batch(7)) is Batch


def test_a_sample_of_labels_is_distributed_as_the_labelled_rows(data):
    labels = labels_of(data, "size", encoding="one_hot", labelled=5)
    sample = labels.sample(20_000, np.random.default_rng(0))
    expected = labels.of(labels.subset.rows).mean(0)
    np.testing.assert_allclose(sample.mean(0), expected, atol=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["sise"]}, "labels = 'sise': did you mean 'size'"),
        ({"names": []}, "needs different factors"),
        ({"names": ["size", "size"]}, "needs different factors"),
        ({"encoding": "onehot"}, "did you mean 'one_hot'"),
        ({"bins": 1}, "bins = 1"),
        ({"noise": 1.5}, "noise = 1.5"),
        ({"encoding": 3}, "encoding = 3: known: mixed, one_hot, scaled"),
        ({"names": 3}, "names = 3: needs names, as text"),
        ({"names": ["size", 3]}, "needs names, as text"),
        ({"labelled": 0}, "labelled = 0: needs a number of rows, 1 to 12"),
        ({"labelled": 13}, "labelled = 13: "),
        ({"labelled": -3}, "labelled = -3: "),
        ({"labelled": 1.5}, "labelled = 1.5: .* or a part of them, up to 1.0"),
        ({"labelled": NAN}, "labelled = nan: "),
        ({"labelled": True}, "labelled = True: "),
        ({"labelled": "few"}, "labelled = 'few': "),
        ({"seed": -1}, "seed of labels = -1: "),
        ({"array": np.zeros(11)}, "labels = '11 rows': arrays has 12"),
        ({"array": np.zeros((12, 2, 2))}, "needs numbers"),
        ({"array": np.array(["a"] * 12)}, "needs numbers"),
        ({"array": np.full(12, NAN)}, "all NaN"),
        ({"array": np.linspace(0, 1.1, 12)}, r"labels\[11, 0\] = 1.1: needs numbers in \[0, 1\]"),
        ({"array": np.arange(12) - 1}, r"labels\[0, 0\] = -1.0: needs whole numbers"),
        ({"array": np.full(12, 0.5), "encoding": "one_hot"}, "needs whole numbers"),
        ({"array": np.full(12, np.inf)}, "inf"),
        ({"array": np.full(12, 1e10), "encoding": "one_hot"}, "'label_0' has 10,000,000,001 values"),
        ({"array": np.zeros(12), "encoding": "mixed"}, "'scaled' or 'one_hot'"),
        ({"array": np.zeros((12, 2)), "names": ["a"]}, "needs 2 different names"),
    ],
)
def test_wrong_labels_are_refused(data, options, message):
    with pytest.raises(ArgumentError, match=message):
        labels_of(data, **options)


def test_data_that_cannot_have_labels():
    bare = uw.data.from_arrays(np.zeros((4, 3), np.float32))
    with pytest.raises(
        ArgumentError, match=r"has no factors to learn from: .* a factors\.csv, and in Python"
    ):
        labels_of(bare)
    assert labels_of(bare, array=[0, 1, 0, 1]).of([1]).tolist() == [[0.5]]
    endless = uw.data.from_function(["a"], [(0.0, 1.0)], lambda factors: factors)
    for options in ({"labelled": 10}, {"noise": 0.1}, {"array": np.zeros(3)}):
        with pytest.raises(ArgumentError, match="endless"):
            labels_of(endless, **options)
    with pytest.raises(ArgumentError, match="'a' is continuous"):
        labels_of(endless, encoding="one_hot")


def test_a_labelled_part_needs_uniform_sampling(many):
    correlated = uw.data.correlate(many, "a", "b", 0.2)
    assert labels_of(correlated).subset is None
    with pytest.raises(ArgumentError, match=r"labelled = 0\.1: .* uniform sampling"):
        labels_of(correlated, labelled=0.1)
    own = np.where(np.arange(5000) == 7, NAN, 0.5)
    with pytest.raises(ArgumentError, match=r"labels = 'some rows have none': .* uniform sampling"):
        labels_of(correlated, array=own)


def test_one_hot_labels_have_a_limit(many, monkeypatch):
    monkeypatch.setattr("unweave.data.supervision.labels.MOST_ENTRIES", 150)
    assert labels_of(many, encoding="one_hot").of([0]).shape == (1, 150)
    monkeypatch.setattr("unweave.data.supervision.labels.MOST_ENTRIES", 149)
    with pytest.raises(ArgumentError, match=r"encoding = 'one_hot': 'b' has 100 values, .* may have 149"):
        labels_of(many, encoding="one_hot")
    assert labels_of(many, encoding="one_hot", bins=50).of([0]).shape == (1, 100)
    assert labels_of(many, array=np.arange(5000) * 10**9).columns[0].size == 4999 * 10**9 + 1
