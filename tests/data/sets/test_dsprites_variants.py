import os
from pathlib import Path

import numpy as np
import pytest

from unweave.data.sets.color_dsprites import colour_sprites
from unweave.data.sets.noisy_dsprites import add_noise
from unweave.data.sets.scream_dsprites import _painting, fit_painting, paint_background

N = 400
SPRITES = np.zeros((N, 64, 64, 1), np.uint8)
SPRITES[:, 20:30, 10:40] = 255
INSIDE = SPRITES[0, :, :, 0] > 0


def test_color_scales_the_sprite_by_one_colour_per_image():
    images = colour_sprites(SPRITES, np.random.default_rng(0))
    assert images.shape == (N, 64, 64, 3)
    assert images.dtype == np.uint8
    assert (images[:, ~INSIDE] == 0).all()
    colours = images[:, INSIDE]
    assert (colours == colours[:, :1]).all()
    values = colours[:, 0] / 255
    assert values.min() >= 0.5 - 1 / 255
    assert abs(values.mean() - 0.75) < 0.02
    assert abs(values.var() - 0.25 / 12) < 0.003
    assert abs(np.corrcoef(values.T) - np.eye(3)).max() < 0.15


def test_noise_is_cut_at_white_and_independent_per_channel():
    images = add_noise(SPRITES, np.random.default_rng(0))
    assert (images[:, INSIDE] == 255).all()
    noise = images[:, ~INSIDE].astype(float) / 255
    assert abs(noise.mean() - 0.5) < 0.001
    assert abs(noise.var() - 1 / 12) < 0.001
    assert abs(np.corrcoef(noise.reshape(-1, 3)[:50_000].T) - np.eye(3)).max() < 0.02


def test_scream_inverts_the_background_under_the_sprite():
    empty = np.zeros_like(SPRITES)
    background = paint_background(empty, np.random.default_rng(0))
    images = paint_background(SPRITES, np.random.default_rng(0))
    np.testing.assert_array_equal(images[:, ~INSIDE], background[:, ~INSIDE])
    np.testing.assert_array_equal(images[:, INSIDE], 255 - background[:, INSIDE])


def test_scream_backgrounds_are_patches_of_the_painting_mixed_with_one_colour():
    painting = _painting().astype(int)
    assert painting.shape == (274, 215, 3)

    class Scripted(np.random.RandomState):
        def randint(self, high, size):
            return np.array([{211: 100, 152: 7}[high]] * size)

        def uniform(self, low, high, size):
            return np.full(size, 0.4)

    image = paint_background(np.zeros((1, 64, 64, 1), np.uint8), Scripted(0))[0]
    np.testing.assert_array_equal(image, (painting[100:164, 7:71] + 102) // 2)


def test_all_patches_of_the_painting_are_used():
    images = paint_background(np.zeros((3000, 64, 64, 1), np.uint8)[:, :64], np.random.default_rng(0))
    assert len(np.unique(images[:, 0, 0], axis=0)) > 2500


@pytest.mark.parametrize("noise", [colour_sprites, add_noise, paint_background])
def test_both_kinds_of_random_source_work(noise):
    assert noise(SPRITES[:3], np.random.RandomState(0)).shape == (3, 64, 64, 3)
    assert noise(SPRITES[:0], np.random.default_rng(0)).shape == (0, 64, 64, 3)


def test_the_stored_painting_is_the_fitted_photograph():
    source = Path(os.environ.get("UNWEAVE_TEST_FILES", "")) / "scream" / "scream.jpg"
    if "UNWEAVE_TEST_FILES" not in os.environ or not source.exists():
        pytest.skip("needs scream/scream.jpg in $UNWEAVE_TEST_FILES")
    difference = np.abs(fit_painting(source).astype(int) - _painting().astype(int))
    assert difference.max() <= 2
