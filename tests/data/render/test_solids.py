"""The solids: that identities and views differ, and that bytes depend on the factors alone."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from unweave.data.render import NUM_SOLIDS, SOLIDS_SIZES, render_solids
from unweave.data.render.solids import ELEVATIONS, solid_parts

BACKGROUND = (236, 238, 241)
GOLDEN = "2f9c53614da6dd5bcbb1b31bfd7116c3bf8306495201991e450e3f4072fdbeeb"


def grid(*columns):
    mesh = np.meshgrid(*columns, indexing="ij")
    return np.stack(mesh, axis=-1).reshape(-1, len(columns))


def random_factors(count, seed=0):
    """Factors from a fixed congruence, so that the golden sample does not rest on NumPy's streams."""
    steps = np.arange(count) * 7919 + 104729 * (seed + 1)
    columns = [(steps // (3 + 2 * k) + 13 * k) % size for k, size in enumerate(SOLIDS_SIZES)]
    return np.stack(columns, axis=1)


def mean_differences(images):
    """Mean absolute difference of every pair of images, with infinity on the diagonal."""
    flat = images.reshape(len(images), -1).astype(np.int16)
    distances = np.array([np.abs(flat - one).mean(axis=1) for one in flat])
    np.fill_diagonal(distances, np.inf)
    return distances


def test_sizes():
    assert SOLIDS_SIZES == (NUM_SOLIDS, 24, 4, 3)
    assert NUM_SOLIDS == 120
    assert len(ELEVATIONS) == SOLIDS_SIZES[2]


def test_shape_and_type():
    images = render_solids(random_factors(4))
    assert images.shape == (4, 64, 64, 3)
    assert images.dtype == np.uint8


def test_fixed_sample_has_the_golden_digest():
    images = render_solids(random_factors(120))
    assert hashlib.sha256(images.tobytes()).hexdigest() == GOLDEN


def test_bytes_do_not_depend_on_the_batch():
    factors = np.concatenate([random_factors(40, seed=1), grid([3], [5], [2], [2, 0, 1])])
    whole = render_solids(factors)
    order = np.argsort((np.arange(len(factors)) * 17) % len(factors))
    np.testing.assert_array_equal(render_solids(factors[order]), whole[order])
    parts = [render_solids(factors[a:b]) for a, b in ((0, 1), (1, 9), (9, 9), (9, 43))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_bytes_do_not_depend_on_what_was_drawn_before():
    """A fresh process, with nothing cached, draws the same bytes."""
    code = (
        "import hashlib, numpy as np; from unweave.data.render import render_solids;"
        "print(hashlib.sha256(render_solids(np.array([[17, 9, 3, 1]])).tobytes()).hexdigest())"
    )
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = render_solids(np.array([[17, 9, 3, 1]]))
    assert fresh.stdout.strip() == hashlib.sha256(here.tobytes()).hexdigest()


def test_all_identities_differ_by_a_margin():
    images = render_solids(grid(range(NUM_SOLIDS), [4], [1], [0]))
    assert mean_differences(images).min() > 5.0


def test_neighbouring_and_quarter_turns_of_every_identity_are_distinguishable():
    for identity in range(NUM_SOLIDS):
        images = render_solids(grid([identity], [0, 1, 6, 7, 12, 13, 18, 19], [2], [1]))
        assert mean_differences(images).min() > 2.0, identity


@pytest.mark.parametrize("identity", range(6))
def test_the_full_circle_is_distinguishable_in_each_family(identity):
    images = render_solids(grid([identity], range(24), [0], [1]))
    assert mean_differences(images).min() > 2.0


def test_opposite_sides_are_told_apart_beyond_their_silhouette():
    images = render_solids(grid(range(NUM_SOLIDS), [1, 13], [1], [1])).reshape(NUM_SOLIDS, 2, 64, 64, 3)
    mirrored = images[:, 1, :, ::-1]
    for other in (images[:, 1], mirrored):
        difference = np.abs(images[:, 0].astype(int) - other.astype(int)).mean(axis=(1, 2, 3))
        assert difference.min() > 2.0


def test_elevation_changes_every_identity():
    images = render_solids(grid(range(NUM_SOLIDS), [7], range(4), [1])).reshape(NUM_SOLIDS, 4, -1)
    for a in range(4):
        for b in range(a):
            difference = np.abs(images[:, a].astype(int) - images[:, b].astype(int)).mean(axis=-1)
            assert difference.min() > 2.0


def test_light_changes_every_identity():
    images = render_solids(grid(range(NUM_SOLIDS), [7], [1], range(3))).reshape(NUM_SOLIDS, 3, -1)
    for a in range(3):
        for b in range(a):
            difference = np.abs(images[:, a].astype(int) - images[:, b].astype(int)).mean(axis=-1)
            assert difference.min() > 0.4


def test_light_changes_brightness_but_not_hue():
    images = render_solids(grid(range(6), [3], [1], range(3))).reshape(6, 3, 64, 64, 3).astype(float)
    low, high = images.min(axis=-1), images.max(axis=-1)
    # Where no channel is clipped, a lit colour is a multiple of the paint: its saturation stays.
    clear = ((high - low > 25) & (high < 250)).all(axis=1)
    saturation = (high - low) / np.maximum(high, 1.0)
    for identity in range(6):
        spread = np.ptp(saturation[identity][:, clear[identity]], axis=0)
        brightness = np.ptp(high[identity][:, clear[identity]], axis=0)
        assert clear[identity].sum() > 30
        assert np.median(spread) < 0.03
        assert np.median(brightness) > 20


def test_light_comes_from_the_side_it_names():
    """On the whole, the half of a round body that faces the light is brighter."""
    images = (
        render_solids(grid(range(5, NUM_SOLIDS, 6), [0], [0], [0, 2])).reshape(-1, 2, 64, 64, 3).astype(int)
    )
    object_left = images[:, :, 10:54, 16:32].mean(axis=(2, 3, 4))
    object_right = images[:, :, 10:54, 32:48].mean(axis=(2, 3, 4))
    contrast = object_left - object_right
    assert (contrast[:, 0] > contrast[:, 1]).mean() > 0.9


def test_a_sample_of_the_whole_grid_is_distinct():
    factors = np.unique(random_factors(300, seed=2), axis=0)
    images = render_solids(factors)
    assert len({image.tobytes() for image in images}) == len(factors) > 200


def test_the_border_is_background_and_the_middle_is_not():
    images = render_solids(grid(range(NUM_SOLIDS), [2], [1], [1])).astype(int)
    away = np.abs(images - BACKGROUND).max(axis=-1)
    assert (away[:, 0] == 0).all()
    assert (away[:, :, 0] < 50).all()
    assert (away[:, :, -1] < 50).all()
    filled = (away > 60).mean(axis=(1, 2))
    assert filled.min() > 0.04
    assert filled.max() < 0.6


def test_objects_stand_on_their_shadow():
    """Under the object the ground is darker than the background but as colourless."""
    images = render_solids(grid([1, 7, 13], [6], [1], [1])).astype(int)
    spread = images.max(axis=-1) - images.min(axis=-1)
    grey = (spread < 9) & (images[..., 0] < 220) & (images[..., 0] > 90)
    assert (grey[:, 32:].sum(axis=(1, 2)) > 20).all()
    assert (grey[:, 32:].sum(axis=(1, 2)) > grey[:, :20].sum(axis=(1, 2))).all()


def test_detail_is_as_fine_as_pixels():
    """A blur of two pixels loses a good share of every picture's contrast."""
    images = render_solids(grid(range(NUM_SOLIDS), [4], [1], [0])).astype(float)
    small = images.reshape(NUM_SOLIDS, 32, 2, 32, 2, 3).mean(axis=(2, 4))
    blurred = small.repeat(2, axis=1).repeat(2, axis=2)
    lost = ((images - blurred) ** 2).mean(axis=(1, 2, 3)) / images.var(axis=(1, 2, 3))
    assert lost.min() > 0.03


def test_edges_are_antialiased():
    """The thin dark cable and arms of a lamp give many levels between paint and background."""
    picture = render_solids(np.array([[2, 6, 1, 1]]))[0].astype(int)
    away = np.abs(picture - BACKGROUND).max(axis=-1)
    assert len(np.unique(away[(away > 10) & (away < 200)])) > 40


@pytest.mark.parametrize("identity", range(0, NUM_SOLIDS, 17))
def test_parts_fit_the_picture_and_stand_on_the_ground(identity):
    parts, ground = solid_parts(identity)
    assert len(parts) >= 8
    lowest = np.inf
    for part in parts:
        body = part.body
        frame = np.array(body.axes)
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-9)
        reach = np.abs(frame).T @ np.array(body.half)
        lowest = min(lowest, body.centre[2] - reach[2])
        assert np.hypot(*(np.array(body.centre[:2]))) <= 1.0
    assert lowest == pytest.approx(ground, abs=1e-9)


def test_empty_batch():
    images = render_solids(np.empty((0, 4), dtype=np.int64))
    assert images.shape == (0, 64, 64, 3)
    assert images.dtype == np.uint8


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (np.zeros((2, 6), dtype=int), r"factors has shape \(2, 6\).*\(n, 4\)"),
        (np.full((1, 4), 0.25), r"factors holds 0.25.*whole numbers"),
        (np.array([[120, 0, 0, 0]]), r"factors\[:, 0\] holds 120; allowed are the integers 0 to 119"),
        (np.array([[0, 24, 0, 0]]), r"factors\[:, 1\] holds 24; allowed are the integers 0 to 23"),
        (np.array([[0, 0, 0, -2]]), r"factors\[:, 3\] holds -2; allowed are the integers 0 to 2"),
    ],
)
def test_bad_factors_are_named(factors, message):
    with pytest.raises(ValueError, match=message):
        render_solids(factors)
