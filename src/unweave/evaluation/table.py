"""The codes of a data set's images, each encoded at most once however many metrics ask for it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from unweave.arrays import AnyArray, ArrayLike, IntArray
from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.data.factors import Rng
from unweave.data.fingerprint import fingerprint
from unweave.data.registry import FEW, RECIPES
from unweave.data.storage.lazy import LazyArray
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError
from unweave.files import check_no_links
from unweave.methods.method import Encodes, EncodesWithLabels, LabelMode, Method, code_size, part_columns
from unweave.networks import accelerate
from unweave.progress import progress
from unweave.training import Run
from unweave.training.checkpoint import weights_hash

if TYPE_CHECKING:

    class EncodingMethod(Method, Encodes):
        """A method that gives images codes."""


Codes = npt.NDArray[np.floating]
Representation = Run | Method | Callable[[AnyArray], ArrayLike]

# A code must not depend on the images that were encoded with it, down to the last bit, for scores not to depend
# on which metric ran before. Matrix products may round differently for another number of rows, so all batches have
# one size: the last is filled up. On a CPU a small one: its activations stay in the cache and in memory that the
# process has, where those of 256 images would be mapped afresh for each layer, at almost twice the time.
CPU_BATCH, GPU_BATCH = 64, 4096
_TOLERANCE = 0.02  # by which codes of other devices, in lower precision, may differ


class RepresentationTable:
    """Codes by row of a data set. Rows that were asked for before are looked up, the others encoded.

    The table of a run lies on disk, next to its weights, and is used with these weights only. Where it cannot be
    written, codes are kept in memory. The images of a stochastic data set are drawn anew at every access, so their
    codes are not kept.

    Parameters
    ----------
    representation
        a run, a method that encodes, or any function from images (as the data set gives them) to codes (n, D). Of a
        method the mean and the log-variance of q(z|x) are kept, in single precision; the codes of a function have
        the precision that it gives them.
    data
        whose images are encoded.
    labels
        where a method whose encoder takes labels u gets them: "given" (those of each image, as in training and in the
        papers; the codes then contain what they are scored against), "predicted" by q(u|x), or "unknown". Default:
        predicted where the method can, else unknown.
    part
        a named part of the codes, such as "c" of a multi-stage model. None or "all": all of it.

    Attributes
    ----------
    method
        a copy of the method, taken now for encoding: changes to the original have no effect here. None for a
        function.
    encoded
        how many images were encoded so far.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.arange(20, dtype=np.float32).reshape(10, 2))
    >>> table = RepresentationTable(lambda images: 2 * images, data)
    >>> table.codes([0, 1, 0]).tolist()
    [[0.0, 2.0], [4.0, 6.0], [0.0, 2.0]]
    """

    def __init__(
        self,
        representation: Representation,
        data: Dataset,
        labels: LabelMode | None = None,
        part: str | None = None,
    ) -> None:
        self.data = data
        self.encoded = 0
        self.method = _copy_for_encoding(representation)
        self.labels = label_source(self.method, labels)
        self.columns = _columns(self.method, part)
        if self.method is None:
            self.batch_size, self._encode = CPU_BATCH, _function_encoder(representation)
        else:
            self.method.check_data(data)
            on_cpu = _device(self.method).type == "cpu"
            self.batch_size = CPU_BATCH if on_cpu else GPU_BATCH
            self._encode = _method_encoder(self.method, self.labels)
        self._given = _given_labels(self.method, data) if self.labels == "given" else None
        self._table = self._create_table(representation.path if isinstance(representation, Run) else None)

    @property
    def has_noise(self) -> bool:
        """Whether codes are the means of a posterior, not points."""
        return self.method is not None and self.method.noise_correlation is not None

    def codes(self, rows: ArrayLike, rng: Rng | None = None) -> Codes:
        """The mean codes (n, D) of rows (n,)."""
        return self.posterior(rows, rng)[:, 0]

    def posterior(self, rows: ArrayLike, rng: Rng | None = None) -> Codes:
        """(n, 2, D): mean and log-variance of q(z|x) of rows (n,); (n, 1, D), codes alone, for a function.

        Of an endless simulator, ``rows`` are factors (n, K). ``rng`` draws what is random about the images.
        """
        asked = np.asarray(rows)
        if self._table is None:
            return self._encode_rows(asked, rng)[..., self.columns]
        return self._table.take(asked.astype(np.int64, copy=False), axis=0)[..., self.columns]

    def flush(self) -> None:
        """Keep what was encoded so far for later evaluations, where the table is on disk."""
        if self._table is not None:
            self._table.flush()

    def _encode_rows(self, which: AnyArray, rng: Rng | None = None) -> Codes:
        blocks = []
        for start in range(0, len(which), self.batch_size):
            block = which[start : start + self.batch_size]
            blocks.append(self._encode(*self._batch(block, rng))[: len(block)])
        self.encoded += len(which)
        return np.concatenate(blocks)

    def _batch(self, which: AnyArray, rng: Rng | None) -> tuple[AnyArray, Codes | None]:
        """Images, filled up to a whole batch for a method, and their labels where they are given."""
        images = self.data.images(which, rng)
        u = None if self._given is None else self._given.known(which)
        if self.method is not None and len(images) < self.batch_size:
            images = np.resize(images, (self.batch_size, *images.shape[1:]))
            u = None if u is None else np.resize(u, (self.batch_size, u.shape[1]))
        return images, u

    def _create_table(self, folder: Path | None) -> LazyArray | None:
        if self.data.stochastic or not self.data.finite:
            return None
        draw = _with_progress(self._encode_rows, self.data.name, 64 * self.batch_size)
        options: Any = {"version": 1, "block": 1024 * self.batch_size, "in_memory": True, "what": "codes"}
        if self.method is None:
            # Two images show how many codes there are. They are counted, and kept.
            rows = np.unique(self.data.sample_rows(2, np.random.default_rng(0)))
            first = self._encode_rows(rows)
            table = LazyArray(None, (len(self.data), *first.shape[1:]), draw, dtype=first.dtype, **options)
            table.keep(rows, first)
            return table
        path = None
        if folder is not None:
            # The content of a published data set is fixed: a few images show whether it is the one.
            images = fingerprint(self.data, FEW if RECIPES.is_builtin(self.data.name) else None)
            source = f"-{self.labels}" if self.labels else ""
            path = folder / "codes" / f"{self.data.name}-{images}-{_weights_hash(self.method)}{source}"
            check_no_links(path, folder)
            options["identity"] = path.name
        table = LazyArray(
            path, (len(self.data), 2, code_size(self.method)), draw, dtype=np.float32, **options
        )
        if table.folder is not None and table.folder.is_dir():
            self._check_kept_codes(table)
        return table

    def _check_kept_codes(self, table: LazyArray) -> None:
        """Encode some images again whose codes were kept: a table that does not match them is not used.

        Checksums tell that the bytes are those that were written, not that this model wrote them. Codes that another
        machine or device computed may differ in rounding.
        """
        rows = table.drawn_before()
        if len(rows) == 0:
            return
        some = np.sort(np.random.default_rng().choice(rows, min(len(rows), self.batch_size), replace=False))
        kept, encoded = table.take(some), self.encoded
        again = self._encode_rows(some)
        self.encoded = encoded
        if not np.allclose(kept, again, rtol=_TOLERANCE, atol=_TOLERANCE):
            table.discard()
            message = f"{table.folder}: holds codes that this model does not give: all are encoded again"
            warnings.warn(message, RuntimeWarning, stacklevel=4)


def trained_method(representation: Representation) -> Method | None:
    """The method behind a representation, whatever it can do; None for a function."""
    method = representation.method if isinstance(representation, Run) else representation
    if not isinstance(method, nn.Module):
        return None
    if not isinstance(method, Method):
        name = type(method).__name__
        raise ArgumentError("representation", name, "has no encoder: there are no codes to score")
    return method


def encoding_method(representation: Representation) -> EncodingMethod | None:
    """The method behind a representation; None for a function. A method that cannot encode is refused."""
    method = trained_method(representation)
    if method is not None and not isinstance(method, Encodes):
        name = method.spec.name
        raise ArgumentError("representation", name, "has no encoder: there are no codes to score")
    return method  # type: ignore[return-value]


def label_source(method: Method | None, asked: LabelMode | None) -> LabelMode | None:
    """Where labels come from: as asked, or else without any that the encoder could not know itself."""
    sources = method.label_modes if isinstance(method, EncodesWithLabels) else ()
    if asked is None:
        return None if not sources else "predicted" if "predicted" in sources else "unknown"
    if asked not in sources:
        allowed = (
            f"this representation has {', '.join(sources)}" if sources else "this encoder takes no labels"
        )
        raise ArgumentError("labels", asked, allowed)
    return asked


def _columns(method: EncodingMethod | None, part: str | None) -> slice:
    if method is None and part in (None, "all"):
        return slice(None)
    if method is None:
        raise ArgumentError("part", part, "the codes of a function have no named parts")
    return part_columns(method, part)


def _given_labels(method: Method | None, data: Dataset) -> Labels:
    assert isinstance(method, EncodesWithLabels)
    if method.lacks_labels:
        others = ", ".join(mode for mode in method.label_modes if mode != "given")
        raise ArgumentError(
            "labels",
            "given",
            "the run learned from your own array of labels, which its directory does not hold: "
            f"take {others}; in Python uw.load(path, labels=array) takes it again",
        )
    return method.labels_for(data)


def _copy_for_encoding(representation: Representation) -> EncodingMethod | None:
    """A copy of the method for inference: its encoder channels last, in its fast form on a CPU."""
    method = encoding_method(representation)
    if method is None:
        return None
    frozen: EncodingMethod = copy.deepcopy(method).eval().requires_grad_(False)
    if _device(frozen).type == "cpu":
        accelerate(frozen.image_encoder)
    frozen.image_encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return frozen


def _method_encoder(
    method: EncodingMethod, source: LabelMode | None
) -> Callable[[AnyArray, Codes | None], Codes]:
    """Images and labels -> (n, 2, D), in inference mode."""
    device = _device(method)

    def encode(images: AnyArray, u: Codes | None) -> Codes:
        with torch.inference_mode():
            batch = to_tensor(images).to(device)
            given = None if u is None else torch.from_numpy(u).to(device)
            if source is not None and isinstance(method, EncodesWithLabels):
                mean, log_variance = method.posterior(batch, source, given)
            else:
                mean, log_variance = method.encode(batch)
            return torch.stack([mean, log_variance], dim=1).float().cpu().numpy()

    return encode


def _function_encoder(function: Any) -> Callable[[AnyArray, Codes | None], Codes]:
    """Images -> (n, 1, D), by a user's function whose result is checked."""
    if not callable(function):
        allowed = f"needs a run, a method, or a function from images to codes, not {type(function).__name__}"
        raise ArgumentError("representation", function, allowed)

    def encode(images: AnyArray, u: Codes | None) -> Codes:
        codes = np.asarray(function(images))
        if codes.ndim != 2 or len(codes) != len(images) or codes.dtype.kind not in "fiub":
            message = (
                f"gave {codes.dtype} of shape {codes.shape} for {len(images)} images; needs numbers (n, D)"
            )
            raise ArgumentError("representation", getattr(function, "__name__", "function"), message)
        return (codes if codes.dtype.kind == "f" else codes.astype(np.float64))[:, None]

    return encode


def _weights_hash(method: EncodingMethod) -> str:
    """A hash of the weights that decide codes: a table of codes is valid for these only."""
    return weights_hash(method if isinstance(method, EncodesWithLabels) else method.image_encoder)


def _with_progress(encode: Callable[[IntArray], Codes], name: str, size: int) -> Callable[[IntArray], Codes]:
    """Encoding with a progress bar, in blocks of ``size`` rows that let the bar move."""

    def encode_rows(rows: IntArray) -> Codes:
        blocks = []
        with progress(f"Encoding {name}", len(rows), "images", transient=True) as advance:
            for start in range(0, len(rows), size):
                blocks.append(encode(rows[start : start + size]))
                advance(len(blocks[-1]))
        return np.concatenate(blocks)

    return encode_rows


def _device(method: nn.Module) -> torch.device:
    return next(method.parameters()).device
