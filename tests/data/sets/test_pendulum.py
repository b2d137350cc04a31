import itertools
import math
import time

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

from unweave.data.sets import pendulum
from unweave.data.sets.pendulum import GRAVITY, INITIAL_ANGLE, INTERVAL, MOMENTS, SPACE
from unweave.errors import ArgumentError

TIMES = INTERVAL * np.arange(1, MOMENTS + 1)
CORNERS = np.array(list(itertools.product(*SPACE.sizes)))


def draw(n, seed=0):
    return SPACE.sample(n, np.random.default_rng(seed))


def reference(length, damping, mass, angle=INITIAL_ANGLE):
    """Another integrator, adaptive and of high accuracy, on the equation as the paper writes it."""

    def slope(_, state):
        return [state[1], -damping / mass * state[1] - GRAVITY / length * math.sin(state[0])]

    end = TIMES[-1] + 1e-9
    done = solve_ivp(slope, (0, end), [angle, 0.0], method="DOP853", rtol=1e-12, atol=1e-13, t_eval=TIMES)
    assert done.success
    return done.y


@pytest.mark.parametrize("factors", [*CORNERS, *draw(2)], ids=lambda f: "-".join(f"{v:.2f}" for v in f))
def test_agrees_with_an_adaptive_integrator(factors):
    angles, velocities = (values[0] for values in pendulum.solve(*factors.reshape(3, 1)))
    expected = reference(*factors)
    # The stated error is 2e-9; the reference adds some 1e-10 of its own.
    np.testing.assert_allclose(angles, expected[0], rtol=0, atol=2e-9)
    np.testing.assert_allclose(velocities, expected[1], rtol=0, atol=2e-9)


def test_undamped_is_the_closed_form_in_elliptic_functions():
    length = np.linspace(1, 3, 7)
    modulus = np.sin(INITIAL_ANGLE / 2) ** 2
    phase = ellipk(modulus) - np.sqrt(GRAVITY / length)[:, None] * TIMES
    expected = 2 * np.arcsin(np.sin(INITIAL_ANGLE / 2) * ellipj(phase, modulus)[0])
    np.testing.assert_allclose(pendulum.undamped(length), expected, rtol=0, atol=1e-10)


def test_small_swings_are_the_damped_harmonic_oscillator():
    # θ = A e^(-γt/2) (cos ωt + γ/(2ω) sin ωt), ω² = g/L - γ²/4. Linearising errs by A²/16 of the phase:
    # at most A · (A²/16 · 31 rad) = 2e-12 for A = 1e-4, plus higher orders.
    amplitude, length, damping, mass = 1e-4, 1.0, 0.5, 2.0
    rate = damping / mass
    omega = np.sqrt(GRAVITY / length - rate**2 / 4)
    shape = np.cos(omega * TIMES) + rate / (2 * omega) * np.sin(omega * TIMES)
    expected = amplitude * np.exp(-rate * TIMES / 2) * shape
    found, _ = pendulum.solve(*np.array([[length], [damping], [mass]]), angle=amplitude)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=3e-12)


def energy(length, angles, velocities):
    return velocities**2 / 2 - GRAVITY / length[:, None] * np.cos(angles)


def test_energy_is_kept_without_damping_and_lost_with_it():
    length, damping, mass = draw(50).T
    angles, velocities = pendulum.solve(length, np.zeros(1), np.ones(1))
    start = -GRAVITY / length[:, None] * np.cos(INITIAL_ANGLE)
    np.testing.assert_allclose(
        energy(length, angles, velocities), np.broadcast_to(start, angles.shape), atol=1e-9
    )
    damped = energy(length, *pendulum.solve(length, damping, mass))
    assert (np.diff(damped, axis=1) < 1e-9).all()


def test_a_row_has_the_same_bits_in_every_batch(monkeypatch):
    factors = draw(600)
    together = pendulum.angles(*factors.T)
    rng = np.random.default_rng(1)
    for n in [1, 2, 3, 5, 8, 9, 15, 64, 257]:
        rows = rng.permutation(len(factors))[:n]
        np.testing.assert_array_equal(pendulum.angles(*factors[rows].T), together[rows])
    monkeypatch.setattr(pendulum, "_BLOCK", 100)
    np.testing.assert_array_equal(pendulum.angles(*factors.T), together)


def test_angles_stay_within_the_initial_angle():
    angles = pendulum.angles(*np.concatenate([CORNERS, draw(500)]).T)
    assert np.abs(angles).max() <= INITIAL_ANGLE < np.pi
    assert np.abs(pendulum.undamped(np.linspace(1, 3, 100))).max() <= INITIAL_ANGLE + 1e-9


def test_every_factor_shows():
    middle = np.array([2.0, 0.5, 1.0])
    for column, (low, high) in enumerate(SPACE.sizes):
        ends = np.stack([middle, middle])
        ends[:, column] = low, high
        first, second = pendulum.angles(*ends.T)
        assert np.abs(first - second).max() > 0.5


def test_intermediate_nodes_are_limits_of_the_simulator():
    length, damping, _ = draw(5).T
    np.testing.assert_array_equal(
        pendulum.damped_unit_mass(length, damping), pendulum.angles(length, damping, 1.0)
    )
    np.testing.assert_array_equal(
        pendulum.undamped(length), pendulum.solve(length, np.zeros(5), np.ones(5))[0]
    )
    assert pendulum.undamped(2.0).shape == (1, MOMENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 1, 1), r"length = 0.5: needs 1.0 <= length <= 3.0"),
        ((1, 1, 0), r"mass = 0.0: needs 0.1 <= mass <= 2.0"),
        ((1, np.nan, 1), r"damping = nan"),
        (([[1.0]], 1, 1), r"length = .*shape \(1, 1\)"),
    ],
)
def test_values_outside_their_ranges_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        pendulum.angles(*arguments)


def test_the_data_set(tmp_path):
    data = pendulum.load(tmp_path / "pendulum")
    assert (data.name, data.image_shape, data.finite) == ("pendulum", (100,), False)
    assert data.space.continuous == ("length", "damping", "mass")
    batch = data.batch(3, batch_size=16, seed=5)
    expected = pendulum.angles(*batch.factors.T).astype(np.float32)
    np.testing.assert_array_equal(batch.images.numpy(), expected)
    np.testing.assert_array_equal(data.batch(3, batch_size=16, seed=5).images.numpy(), expected)
    assert not list(tmp_path.iterdir())
    assert pendulum.RECIPE.offline
    assert pendulum.RECIPE.load is pendulum.load


def test_it_is_fast():
    factors = draw(1024)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        pendulum.angles(*factors.T)
        seconds.append(time.perf_counter() - start)
    assert len(factors) / min(seconds) > 1000
