"""The rooms: what each factor changes, and that bytes depend on the factors alone."""

import colorsys
import hashlib

import numpy as np
import pytest

from unweave.data.render import ROOMS_SIZES, render_rooms
from unweave.data.render.room_scene import CHANNEL_LEVELS, NUM_MATERIALS, room_planes
from unweave.data.render.rooms import _HUE_LEVELS

SKY = (153, 226, 249)
GOLDEN = "c10f2d22bc7107f48ea1a175738f1c33ff39f76e996ec118521bde8dfb5c2520"


def room(floor=0, wall=6, thing=3, scale=4, shape=0, orientation=7):
    return render_rooms(np.array([[floor, wall, thing, scale, shape, orientation]]))[0]


def random_factors(count, seed=0):
    """Factors from a fixed congruence, so that the golden sample does not rest on NumPy's streams."""
    steps = np.arange(count) * 7919 + 104729 * (seed + 1)
    columns = [(steps // (3 + 2 * k) + 13 * k) % size for k, size in enumerate(ROOMS_SIZES)]
    return np.stack(columns, axis=1)


def coverage(material, scale=1.0, shape=0, azimuth=0.0):
    """Where a material is seen at all: its plane for a full channel is not zero. Shape (64, 64)."""
    planes = room_planes(scale, shape, azimuth)
    return planes[material * CHANNEL_LEVELS + CHANNEL_LEVELS - 1].reshape(64, 64) > 0


def changed(a, b):
    return (a != b).any(axis=-1)


def test_sizes_are_those_of_shapes3d():
    assert ROOMS_SIZES == (10, 10, 10, 8, 4, 15)
    assert np.prod(ROOMS_SIZES) == 480_000


def test_shape_and_type():
    images = render_rooms(random_factors(5))
    assert images.shape == (5, 64, 64, 3)
    assert images.dtype == np.uint8


def test_fixed_sample_has_the_golden_digest():
    images = render_rooms(random_factors(96))
    assert hashlib.sha256(images.tobytes()).hexdigest() == GOLDEN


def test_bytes_do_not_depend_on_the_batch():
    factors = random_factors(100, seed=1)
    whole = render_rooms(factors)
    order = np.argsort((np.arange(100) * 37) % 100)
    np.testing.assert_array_equal(render_rooms(factors[order]), whole[order])
    parts = [render_rooms(factors[a:b]) for a, b in ((0, 1), (1, 18), (18, 18), (18, 100))]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(render_rooms(np.repeat(factors[:1], 40, axis=0)), whole[[0] * 40])


def test_changing_a_result_does_not_change_the_next_one():
    first = room()
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(room(), kept)


def test_hues_are_ten_equally_spaced_saturated_ones():
    for hue in range(10):
        np.testing.assert_allclose(_HUE_LEVELS[hue] / 5, colorsys.hsv_to_rgb(hue / 10, 1.0, 1.0), atol=1e-12)


@pytest.mark.parametrize(("material", "name"), [(0, "floor"), (1, "wall"), (2, "thing")])
def test_a_hue_changes_the_pixels_of_its_material_and_no_others(material, name):
    reference = room(**{name: 0})
    union = np.zeros((64, 64), dtype=bool)
    for hue in range(1, 10):
        union |= changed(room(**{name: hue}), reference)
    scale = 0.75 + 0.5 * 4 / 7
    seen = coverage(material, scale)
    assert not (union & ~seen).any()
    # Pixels with a sliver of the material may round to no change; nearly all others must change.
    assert union.sum() > 0.97 * seen.sum()


def test_materials_look_like_their_hue():
    for hue in range(10):
        picture = room(floor=hue, wall=(hue + 3) % 10, thing=(hue + 6) % 10, shape=2).astype(float)
        for pixel, index in ((picture[60, 4], hue), (picture[26, 20], hue + 3), (picture[45, 32], hue + 6)):
            got = colorsys.rgb_to_hsv(*(pixel / 255))
            distance = abs(got[0] - (index % 10) / 10)
            assert min(distance, 1 - distance) < 0.06
            assert got[1] > 0.9


def test_layout_sky_above_walls_above_floor():
    picture = room()
    assert (picture[:14] == SKY).all()
    assert (picture[24:32, :, 2] > 200).all()
    assert (picture[24:32, :, 0] < 20).all()
    assert (picture[58:, :, 0] > 200).all()
    assert (picture[58:, :, 2] < 20).all()


def test_sky_is_the_same_everywhere_for_all_hues():
    for hue in range(10):
        assert (room(floor=hue, wall=hue, thing=hue)[:10] == SKY).all()


@pytest.mark.parametrize("shape", range(4))
def test_the_object_grows_with_scale(shape):
    areas = [coverage(2, 0.75 + 0.5 * k / 7, shape).sum() for k in range(8)]
    assert (np.diff(areas) > 0).all()
    # Area goes with the square of the scale, up to perspective.
    assert 2.3 < areas[7] / areas[0] < 4.0


def test_shapes_have_their_silhouettes():
    cube, cylinder, sphere, capsule = (coverage(2, 1.0, shape) for shape in range(4))

    def extent(mask):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        return rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1

    for mask in (cube, cylinder):
        high, wide = extent(mask)
        assert mask.sum() > 0.9 * high * wide
    high, wide = extent(sphere)
    assert abs(high - wide) <= 1
    assert sphere.sum() == pytest.approx(np.pi / 4 * high * wide, rel=0.06)
    high, wide = extent(capsule)
    assert 1.8 < high / wide < 2.2
    for mask in (cube, cylinder, sphere, capsule):
        np.testing.assert_array_equal(mask, mask[:, ::-1])


def test_the_sphere_has_no_edges_but_is_shaded():
    # Brightness of a neutral channel along the lower half of the sphere's middle column.
    plane = room_planes(1.0, 2, 0.0)[2 * CHANNEL_LEVELS + 3].reshape(64, 64).astype(int)
    column = plane[43:50, 32]
    assert np.abs(np.diff(column)).max() < 12
    assert column[0] > column[-1]
    row = plane[44, 24:41]
    assert row.max() - row.min() > 20


def test_the_cube_has_a_flat_front():
    plane = room_planes(1.0, 0, 0.0)[2 * CHANNEL_LEVELS + 3].reshape(64, 64).astype(int)
    front = plane[42:52, 24:40]
    assert front.max() - front.min() <= 6


def test_the_object_casts_a_shadow_on_the_floor():
    picture = room(shape=3, scale=7, orientation=14).astype(int)
    # To the right of the foot, as the light hangs over the left half of the room.
    assert picture[55, 45, 0] < 110
    assert picture[55, 18, 0] > 220


def test_orientation_moves_the_corner():
    """The corner is where the top edge of the walls is lowest between two walls."""
    corners = []
    for k in (0, 1, 2, 3, 11, 12, 13, 14):
        planes = room_planes(0.75, 2, -30.0 + 60.0 * k / 14)
        sky = planes[NUM_MATERIALS * CHANNEL_LEVELS].reshape(64, 64).astype(int)
        corners.append(int(np.argmax(sky.sum(axis=0))))
    right, left = corners[:4], corners[4:]
    assert (np.diff(right) > 0).all()
    assert (np.diff(left) > 0).all()
    assert min(right) > 40
    assert max(left) < 24


def test_opposite_orientations_mirror_the_geometry():
    for shape in range(4):
        # The walls are not quite symmetric in light, but all silhouettes are.
        left, right = coverage(2, 1.0, shape, -30.0), coverage(2, 1.0, shape, 30.0)
        np.testing.assert_array_equal(left, right[:, ::-1])


def test_every_orientation_and_shape_differs():
    grid = [(0, 6, 3, 0, shape, k) for shape in range(4) for k in range(15)]
    images = render_rooms(np.array(grid)).reshape(len(grid), -1)
    assert len(np.unique(images, axis=0)) == len(grid)


def test_edges_are_antialiased():
    rows = room(orientation=2)[10:24, :, 0].astype(int)
    between = (rows > 20) & (rows < 140)
    assert between.sum() > 20
    assert len(np.unique(rows[between])) >= 5


def test_no_sum_of_planes_overflows():
    for shape in range(4):
        planes = room_planes(1.25, shape, -30.0).astype(int)
        full = sum(planes[m * CHANNEL_LEVELS + CHANNEL_LEVELS - 1] for m in range(NUM_MATERIALS))
        assert (full + planes[NUM_MATERIALS * CHANNEL_LEVELS :].max(axis=0)).max() <= 255


def test_planes_grow_with_the_level():
    planes = room_planes(1.0, 3, 10.0)[: NUM_MATERIALS * CHANNEL_LEVELS].astype(int)
    levels = planes.reshape(NUM_MATERIALS, CHANNEL_LEVELS, -1)
    assert (np.diff(levels, axis=1) >= 0).all()


def test_empty_batch():
    images = render_rooms(np.empty((0, 6), dtype=np.int64))
    assert images.shape == (0, 64, 64, 3)
    assert images.dtype == np.uint8


def test_whole_floats_and_small_integer_types_are_accepted():
    factors = random_factors(3)
    for dtype in (np.uint8, np.int32, np.float32):
        np.testing.assert_array_equal(render_rooms(factors.astype(dtype)), render_rooms(factors))


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (np.zeros(6, dtype=int), r"factors has shape \(6,\).*\(n, 6\)"),
        (np.zeros((2, 5), dtype=int), r"factors has shape \(2, 5\).*\(n, 6\)"),
        (np.full((1, 6), 0.5), r"factors holds 0.5.*whole numbers"),
        (np.full((1, 6), np.nan), r"factors holds nan.*whole numbers"),
        (np.zeros((1, 6), dtype=bool), r"factors has dtype bool.*integer"),
        (np.full((1, 6), "a"), r"factors has dtype <U1.*integer"),
        (np.array([[0, 0, 0, 8, 0, 0]]), r"factors\[:, 3\] holds 8; allowed are the integers 0 to 7"),
        (np.array([[0, -1, 0, 0, 0, 0]]), r"factors\[:, 1\] holds -1; allowed are the integers 0 to 9"),
        (np.array([[0, 0, 0, 0, 0, 15.0]]), r"factors\[:, 5\] holds 15.0; allowed are the integers 0 to 14"),
    ],
)
def test_bad_factors_are_named(factors, message):
    with pytest.raises(ValueError, match=message):
        render_rooms(factors)
