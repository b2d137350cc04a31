import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.data.image_size import reduce_images, with_image_size
from unweave.errors import ArgumentError
from unweave.progress import progress


def pictures(n=12, side=64, channels=3):
    return np.random.default_rng(0).integers(0, 256, (n, side, side, channels), np.uint8)


def arrays(images):
    return uw.data.from_arrays(images, {"number": range(len(images))}, name="pictures")


@pytest.mark.parametrize(("side", "new"), [(64, 32), (128, 32), (64, 1), (28, 14), (12, 4)])
@pytest.mark.parametrize("channels", [1, 3])
def test_blocks_of_pixels_become_their_mean(side, new, channels):
    images = pictures(3, side, channels)
    k = side // new
    blocks = images.reshape(3, new, k, new, k, channels).astype(np.int64).sum(axis=(2, 4))
    assert (reduce_images(images, new) == (2 * blocks + k * k) // (2 * k * k)).all()


@pytest.mark.parametrize("value", [0, 1, 254, 255])
@pytest.mark.parametrize("new", [1, 16, 28, 32, 33, 64])
def test_even_images_stay_as_they_are(value, new):
    images = np.full((2, 64, 64, 1), value, np.uint8)
    assert (reduce_images(images, new) == value).all()
    assert reduce_images(images, new).shape == (2, new, new, 1)


def test_other_sizes_are_those_of_pillow():
    images = pictures(2)
    for image, small in zip(images, reduce_images(images, 28), strict=True):
        expected = Image.fromarray(image).resize((28, 28), Image.Resampling.LANCZOS)
        assert (small == np.asarray(expected)).all()


def test_stored_images_are_reduced_once(tmp_path, monkeypatch):
    data = arrays(pictures())
    small = with_image_size(data, 32, tmp_path)
    assert (small.name, small.image_shape, len(small)) == ("pictures", (32, 32, 3), 12)
    rows = np.array([3, 0, 3])
    assert (small.images(rows) == reduce_images(data.images(rows), 32)).all()
    assert (small.images(data.factors(rows)) == small.images(rows)).all()
    assert (small.factors(rows) == data.factors(rows)).all()
    assert isinstance(small.array, np.memmap)

    monkeypatch.setattr("unweave.data.image_size.progress", None)
    again = with_image_size(data, 32, tmp_path)  # nothing is computed any more
    assert (again.images(rows) == small.images(rows)).all()
    monkeypatch.setattr("unweave.data.image_size.progress", progress)
    changed = with_image_size(arrays(255 - pictures()), 32, tmp_path)
    assert (changed.images(rows) == reduce_images(255 - pictures()[rows], 32)).all()


def test_the_same_size_changes_nothing(tmp_path):
    data = arrays(pictures())
    assert with_image_size(data, 64, tmp_path) is data
    assert not any(tmp_path.iterdir())


def test_noise_is_drawn_at_full_size(tmp_path):
    def noise(images, rng):
        return images ^ rng.integers(0, 256, images.shape, np.uint8)

    data = arrays(pictures()).with_parts(noise=noise)
    small = with_image_size(data, 32, tmp_path)
    drawn = small.images([1, 2], np.random.default_rng(7))
    assert (drawn == reduce_images(data.images([1, 2], np.random.default_rng(7)), 32)).all()
    assert small.stochastic
    assert not any(tmp_path.iterdir())


def test_simulators_are_reduced_when_asked(tmp_path):
    def draw(factors):
        return np.repeat(np.uint8(factors[:, :1, None, None]), 64 * 64, axis=1).reshape(-1, 64, 64, 1)

    data = uw.data.from_function(["level"], [200], draw)
    small = with_image_size(data, 16, tmp_path)
    assert (small.images([5, 199])[:, 3, 3, 0] == [5, 199]).all()
    assert small.image_shape == (16, 16, 1)


def test_rendered_images_are_reduced_when_first_asked_for(data_folder):
    small, full = uw.data.load("rooms3d", image_size=32), uw.data.load("rooms3d")
    rows = np.array([0, 479_999, 1234])
    assert (small.images(rows) == reduce_images(full.images(rows), 32)).all()
    small.array.flush()
    done = np.load(data_folder / "rooms3d" / "sizes" / "32" / "rendered-v1" / "done.npy")
    assert done.sum() == 3


def test_a_smaller_size_does_not_count_as_prepared(tmp_path):
    from unweave.data.storage.status import status

    with_image_size(arrays(pictures()), 32, tmp_path)
    assert not status(uw.data.find("coil20"), tmp_path).prepared


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("dsprites", 128, "image_size = 128: the images of dsprites have 64 x 64 pixels: needs 64 or fewer"),
        ("mnist", 32, "28 x 28 pixels"),
        ("pendulum", 32, "pendulum has no square images: its shape is 100"),
        ("dsprites", 0, "image_size = 0: needs a whole number >= 1"),
        ("dsprites", "small", "image_size = 'small'"),
    ],
)
def test_what_cannot_be_resized_is_refused_before_anything_is_loaded(data_folder, name, size, message):
    with pytest.raises(ArgumentError, match=message):
        uw.data.load(name, image_size=size)
    assert not data_folder.exists() or not any(data_folder.iterdir())


def test_floats_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="needs images of bytes, not of float32"):
        with_image_size(arrays(np.zeros((2, 8, 8, 1), np.float32)), 4, tmp_path)


def test_a_run_is_loaded_at_its_size(data_folder):
    described = {"name": "solids3d", "image_shape": [32, 32, 3]}
    assert uw.data.registry.load_described(described).image_shape == (32, 32, 3)
    described["image_shape"] = [64, 64, 3]
    assert uw.data.registry.load_described(described).image_shape == (64, 64, 3)
