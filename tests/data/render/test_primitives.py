"""Intersections against closed forms, against marching along rays, and against one another."""

import math

import numpy as np
import pytest

from unweave.data.render.camera import circle, dot, orbit_view, perspective_directions
from unweave.data.render.convex import (
    BORE_FACE,
    NO_SURFACE,
    QUADRIC_FACE,
    SURFACES,
    Body,
    Grid,
    trace_bodies,
)
from unweave.data.render.dice import Dice
from unweave.data.render.parts import Paint, bar, box, ellipsoid, ring, rod, wedge
from unweave.data.render.primitives import box_hit, capsule_hit, cylinder_hit, sphere_hit

CENTRE = (0.3, -0.2, 0.5)
GREY = Paint((0.5, 0.5, 0.5))


def inside_box(p):
    return np.all(np.abs(p - CENTRE) <= (0.7, 0.4, 0.9), axis=-1)


def inside_sphere(p):
    return ((p - CENTRE) ** 2).sum(-1) <= 0.8**2


def inside_cylinder(p):
    q = p - CENTRE
    return (q[..., 0] ** 2 + q[..., 1] ** 2 <= 0.6**2) & (np.abs(q[..., 2]) <= 0.7)


def inside_capsule(p):
    q = p - CENTRE
    beyond = q[..., 2] - np.clip(q[..., 2], -0.6, 0.6)
    return q[..., 0] ** 2 + q[..., 1] ** 2 + beyond**2 <= 0.5**2


SHAPES = {
    "box": (lambda o, d: box_hit(o, d, CENTRE, (0.7, 0.4, 0.9)), inside_box),
    "sphere": (lambda o, d: sphere_hit(o, d, CENTRE, 0.8), inside_sphere),
    "cylinder": (lambda o, d: cylinder_hit(o, d, CENTRE, 0.6, 0.7), inside_cylinder),
    "capsule": (lambda o, d: capsule_hit(o, d, CENTRE, 0.5, 0.6), inside_capsule),
}


def random_rays(count):
    """Rays from a sphere of radius 3 towards points near the bodies, unit directions."""
    rng = np.random.default_rng(3)
    origin = rng.normal(size=(count, 3))
    origin *= 3.0 / np.linalg.norm(origin, axis=1, keepdims=True)
    direction = rng.uniform(-1.0, 1.0, size=(count, 3)) + CENTRE - origin
    return origin, direction / np.linalg.norm(direction, axis=1, keepdims=True)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_first_hit_agrees_with_marching(name):
    hit, inside = SHAPES[name]
    origin, direction = random_rays(600)
    t, _ = hit(tuple(origin.T), tuple(direction.T))
    steps = np.arange(0.0, 6.0, 0.002)
    within = inside(origin[:, None] + steps[:, None] * direction[:, None])
    marched = np.where(within.any(1), steps[within.argmax(1)], np.inf)
    both = np.isfinite(t) & np.isfinite(marched)
    assert 150 < both.sum() < 550
    # A grazing ray may slip between two steps, but a hit that was marched into is never missed.
    assert np.isfinite(t[np.isfinite(marched)]).all()
    assert (np.isfinite(t) & ~np.isfinite(marched)).mean() < 0.01
    ahead = marched[both] - t[both]
    assert ((ahead > -1e-9) & (ahead < 0.0021)).mean() > 0.99


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_normals_are_unit_outward_and_face_the_ray(name):
    hit, inside = SHAPES[name]
    origin, direction = random_rays(600)
    t, normal = hit(tuple(origin.T), tuple(direction.T))
    seen = np.isfinite(t)
    normal = np.stack(normal, -1)[seen]
    point = (origin + np.where(seen, t, 0.0)[:, None] * direction)[seen]
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-9)
    assert ((normal * direction[seen]).sum(1) <= 1e-9).all()
    assert not inside(point + 1e-6 * normal).any()
    assert inside(point - 1e-6 * normal).mean() > 0.99


def test_closed_forms():
    down = (0.0, 0.0, -1.0)
    t, normal = sphere_hit((0.6, 0.0, 5.0), down, (0.0, 0.0, 0.0), 1.0)
    assert t == pytest.approx(5.0 - 0.8)
    np.testing.assert_allclose(normal, (0.6, 0.0, 0.8), atol=1e-12)
    t, normal = box_hit((0.6, 0.0, 5.0), down, (0.0, 0.0, 1.0), (1.0, 1.0, 1.0))
    assert t == 3.0
    assert [float(n) for n in normal] == [0.0, 0.0, 1.0]
    t, normal = cylinder_hit((0.6, 0.0, 5.0), down, (0.0, 0.0, 0.0), 1.0, 2.0)
    assert t == 3.0
    assert [float(n) for n in normal] == [0.0, 0.0, 1.0]
    t, normal = cylinder_hit((-4.0, 0.6, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0, 2.0)
    assert t == pytest.approx(3.2)
    np.testing.assert_allclose(normal, (-0.8, 0.6, 0.0), atol=1e-12)
    t, normal = capsule_hit((0.6, 0.0, 5.0), down, (0.0, 0.0, 0.0), 1.0, 2.0)
    assert t == pytest.approx(5.0 - 2.8)
    np.testing.assert_allclose(normal, (0.6, 0.0, 0.8), atol=1e-12)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_rays_that_look_away_or_pass_by_miss(name):
    hit, _ = SHAPES[name]
    for origin, direction in (((5.0, 0.0, 0.5), (1.0, 0.0, 0.0)), ((0.3, -5.0, 4.0), (0.0, 1.0, 0.0))):
        t, normal = hit(origin, direction)
        assert t == np.inf
        assert np.isfinite(np.array(normal, dtype=float)).all()


def satisfied(body: Body, points: np.ndarray) -> np.ndarray:
    """Membership of a convex body, straight from its definition."""
    local = np.stack([(points - body.centre) @ np.array(axis) for axis in body.axes], -1)
    result = np.ones(points.shape[:-1], dtype=bool)
    for normal, offset in body.planes:
        result &= local @ np.array(normal) <= offset
    for quadric, outside in ((body.quadric, False), (body.bore, True)):
        if quadric is not None:
            a, b, c, d, e = quadric
            x, y, z = np.moveaxis(local, -1, 0)
            result &= (a * x * x + b * y * y + c * z * z + 2 * d * z + e <= 0) != outside
    return result


BODIES = {
    "box": box((0.1, 0.2, -0.1), (0.9, 0.5, 1.1), GREY),
    "wedge": wedge((0.0, 0.1, 0.0), (1.0, 1.2, 0.8), (0.5, 0.3), (0.1, -0.2), GREY),
    "gable": wedge((0.0, 0.0, 0.0), (1.0, 1.2, 0.8), (0.0, 1.0), (0.0, 0.0), GREY),
    "pyramid": wedge((0.0, 0.0, 0.0), (1.0, 1.2, 0.8), (0.0, 0.0), (0.0, 0.0), GREY),
    "bar": bar((-0.5, -0.3, -0.4), (0.6, 0.2, 0.5), 0.3, 0.2, GREY),
    "rod": rod((-0.5, -0.3, -0.4), (0.6, 0.2, 0.5), 0.25, 0.25, GREY),
    "cone": rod((0.0, 0.0, -0.6), (0.1, 0.2, 0.6), 0.6, 0.1, GREY),
    "flat cone from above": rod((0.0, 0.0, -0.15), (0.0, 0.0, 0.15), 0.8, 0.1, GREY),
    "flat cone from below": rod((0.0, 0.0, 0.15), (0.0, 0.0, -0.15), 0.8, 0.1, GREY),
    "ring": ring((-0.2, -0.1, 0.0), (0.2, 0.1, 0.1), 0.7, 0.45, GREY),
    "upright ring": ring((0.0, 0.0, -0.2), (0.0, 0.0, 0.2), 0.7, 0.45, GREY),
    "ellipsoid": ellipsoid((0.1, 0.0, 0.1), (0.3, 0.7, 0.5), GREY),
}


@pytest.mark.parametrize("elevation", [8.0, 44.0])
@pytest.mark.parametrize("name", sorted(BODIES))
def test_traced_bodies_agree_with_marching(name, elevation):
    body = BODIES[name].body
    view, grid = orbit_view(40.0, elevation, 1.0, 0.0), Grid(32, 2.4 / 32)
    depth, surface = trace_bodies((body,), view, grid)
    u, v = np.meshgrid(grid.positions(), grid.positions())
    start = u[..., None] * view.right + v[..., None] * np.array(view.up)
    steps = np.arange(-1.6, 1.6, 0.004)
    within = satisfied(body, start[:, :, None] + steps[:, None] * np.array(view.forward))
    marched = np.where(within.any(-1), steps[within.argmax(-1)], np.inf)
    hit = np.isfinite(depth)
    assert ((surface == NO_SURFACE) == ~hit).all()
    assert hit.sum() > 30
    assert (hit == np.isfinite(marched)).mean() > 0.985
    both = hit & np.isfinite(marched)
    ahead = marched[both] - depth[both]
    assert ((ahead > -1e-6) & (ahead < 0.0041)).mean() > 0.98


def test_trace_agrees_with_single_ray_primitives():
    view, grid = orbit_view(25.0, 30.0, 1.0, 0.0), Grid(40, 2.0 / 40)
    u, v = np.meshgrid(grid.positions(), grid.positions())
    # Rays of the trace start in the plane through the origin; back them up by 5 to be outside.
    origin = tuple(u * view.right[i] + v * view.up[i] - 5.0 * view.forward[i] for i in range(3))
    pairs = (
        (ellipsoid((0.1, 0.0, 0.2), (0.5, 0.5, 0.5), GREY), sphere_hit, ((0.1, 0.0, 0.2), 0.5)),
        (box((0.1, 0.0, 0.2), (0.6, 0.8, 1.0), GREY), box_hit, ((0.1, 0.0, 0.2), (0.3, 0.4, 0.5))),
        (rod((0.1, 0.0, -0.3), (0.1, 0.0, 0.7), 0.4, 0.4, GREY), cylinder_hit, ((0.1, 0.0, 0.2), 0.4, 0.5)),
    )
    for part, hit, arguments in pairs:
        depth, _ = trace_bodies((part.body,), view, grid)
        t, _ = hit(origin, view.forward, *arguments)
        np.testing.assert_allclose(depth, t - 5.0, atol=1e-9)


def test_nearest_body_wins_whatever_the_order():
    front = box((0.0, -0.6, 0.0), (0.5, 0.2, 0.5), GREY).body
    back = ellipsoid((0.0, 0.4, 0.0), (0.7, 0.3, 0.7), GREY).body
    view, grid = orbit_view(0.0, 0.0, 1.0, 0.0), Grid(32, 2.0 / 32)
    depth, surface = trace_bodies((front, back), view, grid)
    swapped_depth, swapped = trace_bodies((back, front), view, grid)
    np.testing.assert_array_equal(depth, swapped_depth)
    assert surface[16, 16] // SURFACES == 0
    assert swapped[16, 16] // SURFACES == 1
    # u = 0.59 is beside the box, in front of the ellipsoid.
    assert surface[16, 25] == SURFACES + QUADRIC_FACE


def test_one_sees_through_a_ring_and_its_inner_wall():
    view, grid = orbit_view(0.0, 30.0, 1.0, 0.0), Grid(64, 2.0 / 64)
    _, surface = trace_bodies((BODIES["upright ring"].body,), view, grid)
    assert surface[32, 32] == NO_SURFACE
    assert (surface == BORE_FACE).any()
    assert (surface == QUADRIC_FACE).any()
    assert (surface == 0).any()


def test_bodies_outside_the_picture_are_skipped():
    depth, surface = trace_bodies(
        (box((9.0, 0.0, 0.0), (1.0, 1.0, 1.0), GREY).body,), orbit_view(0.0, 10.0, 1.0, 0.0), Grid(8, 0.25)
    )
    assert np.isinf(depth).all()
    assert (surface == NO_SURFACE).all()


def test_too_many_planes_are_refused():
    plane = ((0.0, 0.0, 1.0), 1.0)
    with pytest.raises(ValueError, match=r"planes has 15 entries; at most 14"):
        Body(
            ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
            (0.0, 0.0, 0.0),
            (1.0, 1.0, 1.0),
            (plane,) * 15,
        )


@pytest.mark.parametrize("azimuth", [-30.0, 0.0, 75.0])
def test_view_is_orthonormal_and_meets_the_axis(azimuth):
    view = orbit_view(azimuth, 20.0, 10.0, 3.0)
    frame = np.array([view.right, view.up, view.forward])
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-11)
    assert dot(view.right, (view.eye[0], view.eye[1], 0.0)) == pytest.approx(0.0, abs=1e-9)
    target = np.array(view.eye) + 10.0 * np.array(view.forward)
    np.testing.assert_allclose(target, (0.0, 0.0, 3.0), atol=1e-9)
    # Moving to positive x brings the viewer's right hand towards positive y.
    assert np.sign(view.eye[0]) == np.sign(azimuth) or azimuth == 0.0


def test_perspective_is_symmetric_and_its_field_of_view_follows_from_the_focal_length():
    view = orbit_view(0.0, 0.0, 10.0, 0.0)
    x, y, z = perspective_directions(view, 40.0, 2)
    assert x.shape == y.shape == z.shape == (128, 128)
    np.testing.assert_allclose(x, -x[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(z, -z[::-1], atol=1e-12)
    assert (z[0] > 0).all()
    assert x[0, -1] / y[0, -1] == pytest.approx(31.75 / 40.0)


def test_circle():
    assert circle(90.0) == (0.0, 1.0)
    assert circle(60.0)[0] == 0.5
    assert circle(17.0)[1] == pytest.approx(math.sin(math.radians(17.0)), abs=1e-12)


def test_dice_follow_splitmix64_and_cover_their_range():
    # First output of splitmix64 with state 0, as published with the algorithm.
    dice = Dice(0)
    dice._state = 0
    assert dice._next() == 0xE220A8397B1DCDAF
    dice = Dice(1)
    values = [dice.uniform(2.0, 3.0) for _ in range(2000)]
    assert 2.0 <= min(values) < 2.01
    assert 2.99 < max(values) < 3.0
    assert np.mean(values) == pytest.approx(2.5, abs=0.03)
    assert {dice.integer(4, 6) for _ in range(50)} == {4, 5, 6}
    assert dice.pick("a") == "a"
    assert Dice(7).uniform(0.0, 1.0) != Dice(8).uniform(0.0, 1.0)
