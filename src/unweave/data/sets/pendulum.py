"""The pendulum: a simulator of damped swings, whose observations are angles over time, not images.

θ'' = -(b / m) θ' - (g / L) sin θ, the toy problem of appendix C of "Improving the reconstruction of
disentangled representation learners via multi-stage modelling" (MS-VAE). Released from a fixed angle at
rest, the pendulum is watched at 100 moments. Note that damping b and mass m act through b / m alone: the
mass can be inferred from the angles only when the damping is known, which is what that model is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from unweave.arrays import AnyArray, ArrayLike, FloatArray
from unweave.data.dataset import Dataset
from unweave.data.factors import FactorSpace
from unweave.data.own.functions import from_function
from unweave.data.recipe import Recipe
from unweave.errors import ArgumentError

# The paper gives no constants. The ranges are those that its figure 15 traverses; the rest is our choice.
SPACE = FactorSpace(["length", "damping", "mass"], [(1.0, 3.0), (0.1, 2.0), (0.1, 2.0)])
GRAVITY = 9.81  # m / s²
INITIAL_ANGLE = 2.0  # rad, released at rest: large, so that the swing is far from harmonic; below π, so that
# no energy is there to pass the top and |θ| <= 2 for ever
MOMENTS = 100  # angles observed; the paper's θ₀ is the initial angle, always the same, and is left out
INTERVAL = 0.1  # s between them: 10 s in all, two to four undamped swings

_ORDER = 20  # of the Taylor polynomial of each interval
_BLOCK = 4096  # rows at a time: bounds the memory, 32 bytes for each row and order


def angles(length: ArrayLike, damping: ArrayLike, mass: ArrayLike) -> FloatArray:
    """The angles (n, 100), in radians, of n pendulums at times 0.1 s, 0.2 s, … 10 s.

    Parameters
    ----------
    length, damping, mass
        L in m, b in kg/s and m in kg: (n,) or one number, within the ranges of the factors.

    Examples
    --------
    >>> angles(1.0, 0.5, [1.0, 2.0])[:, :3].round(3)
    array([[1.956, 1.825, 1.608],
           [1.956, 1.822, 1.599]])
    """
    return solve(_checked("length", length), _checked("damping", damping), _checked("mass", mass))[0]


def undamped(length: ArrayLike) -> FloatArray:
    """The paper's intermediate node Y₀: the angles (n, 100) without damping.

    Examples
    --------
    >>> undamped([1.0, 2.0]).shape
    (2, 100)
    """
    return solve(_checked("length", length), np.zeros(1), np.ones(1))[0]


def damped_unit_mass(length: ArrayLike, damping: ArrayLike) -> FloatArray:
    """The paper's intermediate node Y₁: the angles (n, 100) with damping, the mass being 1.

    Examples
    --------
    >>> np.array_equal(damped_unit_mass(1.5, 0.3), angles(1.5, 0.3, 1.0))
    True
    """
    return solve(_checked("length", length), _checked("damping", damping), np.ones(1))[0]


def solve(
    length: FloatArray, damping: FloatArray, mass: FloatArray, angle: float = INITIAL_ANGLE
) -> tuple[FloatArray, FloatArray]:
    """Angles and angular velocities, each (n, 100), of pendulums released at rest at ``angle``.

    Each interval of 0.1 s is crossed by the Taylor polynomial of order 20 of the solution. Its error,
    measured over the corners of the factors' ranges, is below 2e-9 rad. The step is the same for
    all: with steps chosen by the error, as ``scipy.integrate`` does, the answer for one pendulum would
    depend on the others in its batch. With sin θ and cos θ carried along as unknowns, the equations

        θ' = v,   v' = -(b/m) v - (g/L) s,   s' = c v,   c' = -s v

    have only sums and products, which are rounded alike at every position of an array (a
    vectorised sine need not be): a pendulum's angles are the same bits in every batch.

    Examples
    --------
    >>> angle, velocity = solve(np.ones(3), np.zeros(3), np.ones(3), angle=0.01)
    >>> bool(np.allclose(angle[0], 0.01 * np.cos(np.sqrt(9.81) * np.arange(0.1, 10.05, 0.1)), atol=1e-5))
    True
    """
    gravity, friction = np.broadcast_arrays(GRAVITY / length, damping / mass)
    n = len(gravity)
    out = np.empty((2, n, MOMENTS))
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        out[:, rows] = _integrate(gravity[rows], friction[rows], angle)
    return out[0], out[1]


def load(
    folder: Path,
    observe: Callable[..., FloatArray] = angles,
    space: FactorSpace = SPACE,
    name: str = "pendulum",
) -> Dataset:
    """The pendulum simulator as an endless data set of vectors of 100 angles.

    Parameters
    ----------
    folder
        not used.
    observe
        the angles (n, 100) of the factors, (n,) each.
    space
        the factors.
    name
        of the data set.

    Examples
    --------
    >>> load(Path()).images([[1.0, 0.5, 1.0]]).shape
    (1, 100)
    """

    def images(factors: AnyArray) -> AnyArray:
        return observe(*factors.T)

    return from_function(space.names, space.sizes, images, name=name)


def _integrate(gravity: FloatArray, friction: FloatArray, angle: float) -> FloatArray:
    """Angles and velocities (2, n, MOMENTS) for g / L (n,) and b / m (n,)."""
    # taylor[k] holds the k-th term h^k y^(k) / k! of the four unknowns (θ, v, s, c), each (n,).
    taylor = np.empty((_ORDER + 1, 4, len(gravity)))
    velocity, sine_cosine = taylor[:, 1:2], taylor[:, 2:]
    taylor[0] = np.array([angle, 0.0, math.sin(angle), math.cos(angle)])[:, None]
    out = np.empty((2, len(gravity), MOMENTS))
    for moment in range(MOMENTS):
        for k in range(_ORDER):
            step = INTERVAL / (k + 1)
            _, v, s, _ = taylor[k]
            # The term of a product is the sum of products of terms (Cauchy): of v s and of v c.
            v_s, v_c = np.add.reduce(velocity[k::-1] * sine_cosine[: k + 1], axis=0)
            following = taylor[k + 1]
            following[0] = step * v
            following[1] = -step * (friction * v + gravity * s)
            following[2] = step * v_c
            following[3] = -step * v_s
        taylor[0] = np.add.reduce(taylor[::-1], axis=0)  # the smallest terms first
        out[:, :, moment] = taylor[0, :2]
    return out


def _checked(name: str, values: ArrayLike) -> FloatArray:
    """One factor's values, (n,) or one number, within its range."""
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if array.ndim != 1:
        raise ArgumentError(name, f"array of shape {array.shape}", "needs one number, or n numbers")
    size = SPACE.sizes[SPACE.position(name)]
    assert isinstance(size, tuple)
    wrong = ~((array >= size[0]) & (array <= size[1]))  # also where NaN
    if wrong.any():
        raise ArgumentError(name, float(array[wrong][0]), f"needs {size[0]} <= {name} <= {size[1]}")
    return array


RECIPE = Recipe(
    name="pendulum",
    title="Pendulum",
    summary="A simulator: 100 angles over 10 s of a damped pendulum, from three continuous factors.",
    image_shape=(100,),
    space=SPACE,
    licence="Apache-2.0",
    homepage="https://arxiv.org/abs/2010.13187",
    citation=(
        "Srivastava et al.: Improving the Reconstruction of Disentangled Representation Learners "
        "via Multi-Stage Modelling, 2020, appendix C."
    ),
    load=load,
)

_LENGTH, _LENGTH_DAMPING = (FactorSpace(SPACE.names[:count], SPACE.sizes[:count]) for count in (1, 2))
UNDAMPED = replace(
    RECIPE,
    name="pendulum_undamped",
    title="Pendulum, undamped",
    label="",
    summary="The intermediate node Y0 of the multi-stage paper: 100 angles of a pendulum without damping.",
    space=_LENGTH,
    load=partial(load, observe=undamped, space=_LENGTH, name="pendulum_undamped"),
)
UNIT_MASS = replace(
    RECIPE,
    name="pendulum_unit_mass",
    title="Pendulum, unit mass",
    label="",
    summary="The intermediate node Y1 of the multi-stage paper: 100 angles of a damped pendulum of mass 1.",
    space=_LENGTH_DAMPING,
    load=partial(load, observe=damped_unit_mass, space=_LENGTH_DAMPING, name="pendulum_unit_mass"),
)
