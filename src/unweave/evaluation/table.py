"""The codes of a data set's images, each encoded at most once however many metrics ask for it."""

from __future__ import annotations

import copy
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
from unweave.data.fingerprint import fingerprint
from unweave.data.registry import FEW, RECIPES
from unweave.data.rows import Rows
from unweave.data.storage.lazy import LazyArray
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError
from unweave.methods import VAE, EncodesWithLabels, LabelMode
from unweave.networks import accelerate
from unweave.progress import progress
from unweave.training import Run

Codes = npt.NDArray[np.floating]
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
    (n, D). Of a VAE the mean and the log-variance of q(z|x) are kept, in single precision; the codes of a function
    have the precision that it gives them. The table of a run lies on disk, next to its weights; it belongs to these
    weights and is not used with others. Where it cannot be written, codes are kept in memory. The images of a
    stochastic data set are drawn anew at every access, so their codes are not kept.

    ``method`` is a copy of the VAE, made now and for encoding: what happens to the original later has no effect here.

    ``labels``: how a method whose encoder takes labels u comes by them: "given" (those of each image, as the method
    gets them in training, and as in the papers; the codes then know what they are scored against), "predicted" by
    q(u|x), or "unknown". Default: predicted where the method can, else unknown.
    """

    def __init__(
        self, representation: Representation, data: Dataset, labels: LabelMode | None = None
    ) -> None:
        self.data = data
        self.encoded = 0
        live = method_of(representation)
        self.method = None if live is None else _frozen(live)
        self.labels = label_mode(self.method, labels)
        if self.method is not None:
            self.method.check_data(data)
        self._given = (
            _given_labels(self.method, data)
            if isinstance(self.method, EncodesWithLabels) and self.labels == "given"
            else None
        )
        on_cpu = self.method is None or next(self.method.parameters()).device.type == "cpu"
        self.batch_size = CPU_BATCH if on_cpu else GPU_BATCH
        self._encode = (
            _plain_encoder(self.method, self.labels)
            if self.method is not None
            else _checked_encoder(representation)
        )
        self.parts = 2 if self.method is not None else 1  # mean and log-variance, or codes alone
        self._table = self._make_table(representation.path if isinstance(representation, Run) else None)

    def codes(self, rows: npt.ArrayLike, rng: Rng | None = None) -> Codes:
        """The mean codes (n, D) of rows (n,)."""
        return self.posterior(rows, rng)[:, 0]

    def posterior(self, rows: npt.ArrayLike, rng: Rng | None = None) -> Codes:
        """(n, 2, D): mean and log-variance of q(z|x); (n, 1, D) for a plain encoder."""
        asked = np.asarray(rows)
        if self._table is None:
            return self._encode_which(asked, rng)
        return self._table.take(asked.astype(np.int64, copy=False), axis=0)

    def flush(self) -> None:
        """Keep what was encoded so far for later evaluations, where the table is on disk."""
        if self._table is not None:
            self._table.flush()

    def _encode_which(self, which: npt.NDArray[Any], rng: Rng | None = None) -> Codes:
        out = []
        for start in range(0, len(which), self.batch_size):
            part = which[start : start + self.batch_size]
            out.append(self._encode(*self._batch(part, rng))[: len(part)])
        self.encoded += len(which)
        return np.concatenate(out)

    def _batch(self, which: npt.NDArray[Any], rng: Rng | None) -> tuple[npt.NDArray[Any], Codes | None]:
        """Images, filled up to a whole batch for a method, and their labels where they are given."""
        images = self.data.images(which, rng)
        u = None if self._given is None else self._given.known(which)
        if self.method is not None and len(images) < self.batch_size:
            images = np.resize(images, (self.batch_size, *images.shape[1:]))
            u = None if u is None else np.resize(u, (self.batch_size, u.shape[1]))
        return images, u

    def _make_table(self, folder: Path | None) -> LazyArray | None:
        if self.data.stochastic or not self.data.finite:
            return None
        draw = _Shown(self._encode_which, self.data.name, 64 * self.batch_size)
        options: Any = {"version": 1, "block": 1024 * self.batch_size, "in_memory": True, "what": "codes"}
        if self.method is None:
            # Two images tell how many codes there are. They are counted, and kept.
            rows = np.unique(self.data.sample_rows(2, np.random.default_rng(0)))
            first = self._encode_which(rows)
            table = LazyArray(None, (len(self.data), *first.shape[1:]), draw, dtype=first.dtype, **options)
            table.keep(rows, first)
            return table
        place = None
        if folder is not None:
            mode = f"-{self.labels}" if self.labels else ""
            # The content of a published data set is fixed: a few images show whether it is the one.
            digest = fingerprint(self.data, FEW if RECIPES.is_builtin(self.data.name) else None)
            place = folder / "codes" / f"{self.data.name}-{digest}-{_fingerprint(self.method)}{mode}"
        shape = (len(self.data), self.parts, self.method.spec.latent_size)
        return LazyArray(place, shape, draw, dtype=np.float32, **options)


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


def method_of(representation: Representation) -> VAE | None:
    """The VAE behind a representation, if there is one."""
    found = representation.method if isinstance(representation, Run) else representation
    return found if isinstance(found, VAE) else None


def label_mode(method: VAE | None, asked: LabelMode | None) -> LabelMode | None:
    """How labels are come by: as asked, or without any that the encoder could not know itself."""
    modes = method.label_modes if isinstance(method, EncodesWithLabels) else ()
    if asked is None:
        return None if not modes else "predicted" if "predicted" in modes else "unknown"
    if asked not in modes:
        told = f"this representation has {', '.join(modes)}" if modes else "this encoder takes no labels"
        raise ArgumentError("labels", asked, told)
    return asked


def _given_labels(method: EncodesWithLabels, data: Dataset) -> Labels:
    if method.lacks_labels:
        others = ", ".join(mode for mode in method.label_modes if mode != "given")
        told = "the run learned from your own array of labels, which its directory does not hold"
        raise ArgumentError(
            "labels", "given", f"{told}: take {others}; in Python uw.load(path, labels=array) takes it again"
        )
    return method.labels_for(data)


def _frozen(method: VAE) -> VAE:
    """A copy of a method for inference: its encoder channels last, in its fast form on a CPU."""
    frozen = copy.deepcopy(method).eval().requires_grad_(False)
    if next(frozen.parameters()).device.type == "cpu":
        accelerate(frozen.encoder)
    frozen.encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return frozen


def _plain_encoder(method: VAE, mode: LabelMode | None) -> Callable[[npt.NDArray[Any], Codes | None], Codes]:
    """Images and labels -> (n, 2, D), in inference mode."""
    device = next(method.parameters()).device

    def encode(images: npt.NDArray[Any], u: Codes | None) -> Codes:
        with torch.inference_mode():
            batch = to_tensor(images).to(device)
            given = None if u is None else torch.from_numpy(u).to(device)
            mean, log_variance = (
                method.posterior(batch, mode, given)
                if mode is not None and isinstance(method, EncodesWithLabels)
                else method.encoder(batch)
            )
            return torch.stack([mean, log_variance], dim=1).float().cpu().numpy()

    return encode


def _checked_encoder(function: Any) -> Callable[[npt.NDArray[Any], Codes | None], Codes]:
    if not callable(function) or isinstance(function, nn.Module):
        told = f"needs a run, a method, or a function from images to codes, not {type(function).__name__}"
        raise ArgumentError("representation", function, told)

    def encode(images: npt.NDArray[Any], u: Codes | None) -> Codes:
        codes = np.asarray(function(images))
        if codes.ndim != 2 or len(codes) != len(images) or codes.dtype.kind not in "fiub":
            told = f"gave {codes.dtype} of shape {codes.shape} for {len(images)} images; needs numbers (n, D)"
            raise ArgumentError("representation", getattr(function, "__name__", "function"), told)
        return (codes if codes.dtype.kind == "f" else codes.astype(np.float64))[:, None]

    return encode


def _fingerprint(method: VAE) -> str:
    """A hash of the weights that make codes: a table of codes is of these only."""
    digest = hashlib.sha256()
    weights = method if isinstance(method, EncodesWithLabels) else method.encoder
    for name, value in weights.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
