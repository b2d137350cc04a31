"""The codes of a data set's images, each encoded at most once however many metrics ask for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.data.factors import Rng
from unweave.data.lazy import LazyArray
from unweave.data.rows import Rows
from unweave.errors import ArgumentError
from unweave.methods import VAE
from unweave.networks import accelerate
from unweave.progress import progress
from unweave.training import Run

Codes = npt.NDArray[np.float32]
Encoder = Callable[[npt.NDArray[Any]], npt.ArrayLike]
Representation = Run | VAE | Encoder

# A code must not depend on the images that were encoded with it, down to the last bit, for scores not to depend
# on which metric ran before. Matrix products may round differently for another number of rows, so all batches have
# one size: the last is filled up. On a CPU a small one: its activations stay in the cache and in memory that the
# process has, where those of 256 images would be mapped afresh for each layer, at almost twice the time.
CPU_BATCH, GPU_BATCH = 64, 4096


class RepresentationTable:
    """Codes by row of a data set. Rows that were asked for before are looked up, the others encoded.

    ``representation`` is a run, a method, or any function from images (as the data set gives them) to codes
    (n, D). Of a VAE the mean and the log-variance of q(z|x) are kept. The table of a run lies on disk, next
    to its weights; it belongs to these weights and is not used with others. The images of a stochastic
    data set are drawn anew at every access, so their codes are not kept.
    """

    def __init__(self, representation: Representation, data: Dataset) -> None:
        self.data = data
        self.encoded = 0
        self.method = _method_of(representation)
        on_cpu = self.method is None or next(self.method.parameters()).device.type == "cpu"
        self.batch_size = CPU_BATCH if on_cpu else GPU_BATCH
        self._encode = (
            _plain_encoder(self.method) if self.method is not None else _checked_encoder(representation)
        )
        self.parts = 2 if self.method is not None else 1  # mean and log-variance, or codes alone
        self.size = self._probe()
        self._table = self._make_table(representation.path if isinstance(representation, Run) else None)

    def codes(self, rows: npt.ArrayLike, rng: Rng | None = None) -> Codes:
        """The mean codes (n, D) of rows (n,)."""
        return self.posterior(rows, rng)[:, 0]

    def posterior(self, rows: npt.ArrayLike, rng: Rng | None = None) -> Codes:
        """(n, 2, D): mean and log-variance of q(z|x); (n, 1, D) for a plain encoder."""
        asked = np.asarray(rows)
        if self._table is None:
            return self._encode_images(
                lambda start, stop: self.data.images(asked[start:stop], rng), len(asked)
            )
        return self._table.take(asked.astype(np.int64, copy=False), axis=0)

    def flush(self) -> None:
        """Keep what was encoded so far for later evaluations, where the table is on disk."""
        if isinstance(self._table, LazyArray):
            self._table.flush()

    def _encode_rows(self, rows: Rows) -> Codes:
        return self._encode_images(lambda start, stop: self.data.images(rows[start:stop]), len(rows))

    def _encode_images(self, images: Callable[[int, int], npt.NDArray[Any]], n: int) -> Codes:
        out = np.empty((n, self.parts, self.size), np.float32)
        for start in range(0, n, self.batch_size):
            stop = min(start + self.batch_size, n)
            batch = images(start, stop)
            if len(batch) < self.batch_size and self.method is not None:
                batch = np.resize(batch, (self.batch_size, *batch.shape[1:]))
            out[start:stop] = self._encode(batch)[: stop - start]
        self.encoded += n
        return out

    def _probe(self) -> int:
        rng = np.random.default_rng(0)
        which = self.data.sample_rows(2, rng) if self.data.finite else self.data.sample_factors(2, rng)
        return int(self._encode(self.data.images(which, rng)).shape[2])

    def _make_table(self, folder: Path | None) -> LazyArray | _MemoryTable | None:
        if self.data.stochastic or not self.data.finite:
            return None
        shape = (len(self.data), self.parts, self.size)
        draw = _Shown(self._encode_rows, self.data.name, 64 * self.batch_size)
        if folder is None or self.method is None:
            return _MemoryTable(shape, draw)
        place = folder / "codes" / f"{self.data.name}-{_fingerprint(self.method)}"
        return LazyArray(place, shape, draw, version=1, dtype=np.float32, block=1024 * self.batch_size)


class _MemoryTable:
    """As a LazyArray, without a file."""

    def __init__(self, shape: tuple[int, ...], encode: Callable[[Rows], Codes]) -> None:
        self._codes = np.zeros(shape, np.float32)  # pages that are never written take no memory
        self._done = np.zeros(shape[0], bool)
        self._encode = encode

    def take(self, rows: Rows, axis: int = 0) -> Codes:
        missing = np.unique(rows[~self._done[rows]])
        if len(missing):
            self._codes[missing] = self._encode(missing)
            self._done[missing] = True
        return self._codes.take(rows, axis=axis)


class _Shown:
    """Encoding with a progress bar, in slices that let the bar move."""

    def __init__(self, encode: Callable[[Rows], Codes], name: str, slice_size: int) -> None:
        self.encode, self.name, self.slice_size = encode, name, slice_size

    def __call__(self, rows: Rows) -> Codes:
        out = []
        with progress(f"Encoding {self.name}", len(rows), "images", transient=True) as advance:
            for start in range(0, len(rows), self.slice_size):
                out.append(self.encode(rows[start : start + self.slice_size]))
                advance(len(out[-1]))
        return np.concatenate(out)


def _method_of(representation: Representation) -> VAE | None:
    found = representation.method if isinstance(representation, Run) else representation
    return found if isinstance(found, VAE) else None


def _plain_encoder(method: VAE) -> Callable[[npt.NDArray[Any]], Codes]:
    """Images -> (n, 2, D): the encoder frozen, channels last, in inference mode."""
    encoder = method.encoder.eval()
    device = next(encoder.parameters()).device
    if device.type == "cpu":
        accelerate(encoder)
    encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def encode(images: npt.NDArray[Any]) -> Codes:
        with torch.inference_mode():
            mean, log_variance = encoder(to_tensor(images).to(device))
            return torch.stack([mean, log_variance], dim=1).float().cpu().numpy()

    return encode


def _checked_encoder(function: Any) -> Callable[[npt.NDArray[Any]], Codes]:
    if not callable(function) or isinstance(function, nn.Module):
        told = f"needs a run, a method, or a function from images to codes, not {type(function).__name__}"
        raise ArgumentError("representation", function, told)

    def encode(images: npt.NDArray[Any]) -> Codes:
        codes = np.asarray(function(images), dtype=np.float32)
        if codes.ndim != 2 or len(codes) != len(images):
            told = f"gave an array of shape {codes.shape} for {len(images)} images; needs (n, D)"
            raise ArgumentError("representation", getattr(function, "__name__", "function"), told)
        return codes[:, None]

    return encode


def _fingerprint(method: VAE) -> str:
    """A hash of the encoder's weights: a table of codes is of these weights only."""
    digest = hashlib.sha256()
    for name, value in method.encoder.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
