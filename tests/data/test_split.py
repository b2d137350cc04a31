import numpy as np
import pytest

import unweave as uw
from unweave.data.registry import describe_data, load_described
from unweave.data.split import parse_split, random_part
from unweave.errors import ArgumentError


@pytest.fixture
def data():
    factors = {"x": np.repeat(np.arange(5), 8), "y": np.tile(np.arange(8), 5)}
    return uw.data.from_arrays(np.arange(40, dtype=np.float32)[:, None], factors, name="numbers")


def numbers(data):
    return set(data.images(np.arange(len(data))).ravel().tolist())


@pytest.mark.parametrize("fraction", [0.8, 0.5, 0.1])
def test_two_parts_are_disjoint_and_make_the_whole(data, fraction):
    train, test = (random_part(data, fraction, 3, part) for part in ("train", "test"))
    assert numbers(train) | numbers(test) == numbers(data)
    assert not numbers(train) & numbers(test)
    assert len(train) == round(fraction * 40)
    for part in (train, test):
        rows = np.arange(len(part))
        np.testing.assert_array_equal(part.images(rows).ravel(), part.factors(rows) @ [8, 1])
    assert numbers(random_part(data, fraction, 4)) != numbers(train)


@pytest.mark.parametrize("fraction", [0.0, 1.0, 1.5, -0.2, 0.999, "a"])
def test_a_part_needs_rows(data, fraction):
    with pytest.raises(ArgumentError, match="split"):
        random_part(data, fraction)


def test_rendered_data_has_parts_too():
    def draw(factors):
        return np.repeat(factors.astype(np.uint8)[:, None, :1, None], 8, axis=1).repeat(8, axis=2)

    grid = uw.data.from_function(["a", "b"], [6, 7], draw, name="drawn")
    part = random_part(grid, 0.25, 0)
    rows = np.arange(len(part))
    np.testing.assert_array_equal(part.images(rows)[:, 0, 0, 0], part.factors(rows)[:, 0])


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("train", "train"),
        ((0.8, 0), ("train", 0.8, 0)),
        ("0.8,0", ("train", 0.8, 0)),
        ("test, 0.8, 3", ("test", 0.8, 3)),
        (["test", 0.8, 3], ("test", 0.8, 3)),
    ],
)
def test_ways_to_write_a_split(written, read):
    assert parse_split(written) == read


@pytest.mark.parametrize("written", ["", "0.8,0.5", "middle,0.8,0", 0.8, (1, 2, 3, 4), None, ("a", "b")])
def test_what_is_no_split(written):
    with pytest.raises(ArgumentError, match="needs train, test, or a fraction"):
        parse_split(written)


def test_a_split_is_loaded_by_name_and_described():
    train = uw.data.load("rooms3d", image_size=16, split=(0.8, 1))
    test = uw.data.load("rooms3d", image_size=16, split="test,0.8,1")
    whole = uw.data.load("rooms3d", image_size=16)
    assert len(train) + len(test) == len(whole)
    described = describe_data(train)
    assert described["split"] == "train,0.8,1"
    assert "split" not in describe_data(whole)
    again = load_described(described)
    assert len(again) == len(train)
    np.testing.assert_array_equal(again.factors(range(50)), train.factors(range(50)))
    assert repr(test).startswith("Dataset(rooms3d, test,0.8,1: ")


def test_parts_by_name_are_those_that_a_data_set_has():
    assert set(uw.data.find("chairs3d").splits) == {"train", "test"}
    for name in ("celeba", "mnist", "fashion_mnist", "small_norb"):
        assert {"train", "test"} <= set(uw.data.find(name).splits)
    with pytest.raises(ArgumentError, match=r"split = 'train': rooms3d has nothing by name; of any"):
        uw.data.load("rooms3d", split="train")
    with pytest.raises(ArgumentError, match=r"split = 'valid': mnist has train or test or all"):
        uw.data.load("mnist", split="valid")


def test_a_run_of_a_part_is_another_run(data):
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=2)
    whole, part = (uw.training.plan(method, d, 10) for d in (data, random_part(data, 0.5)))
    assert whole.identity != part.identity
    assert "split" not in whole.data


def test_correlated_rows_are_split_before(data):
    with pytest.raises(ArgumentError, match="split it before"):
        random_part(uw.data.correlate(data, "x", "y", 0.2), 0.5)
