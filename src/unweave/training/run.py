"""A run: a trained method with its spec and history, in memory or as a directory on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from unweave import extensions
from unweave.arrays import AnyArray, ArrayLike, IntArray, SingleArray, as_array
from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.data.factors import check_rows
from unweave.errors import ArgumentError, DataError, UnweaveError, shorten, show
from unweave.methods.method import (
    Decodes,
    Encodes,
    LearnsFromLabels,
    Method,
    Samples,
    code_size,
    part_columns,
)
from unweave.methods.registry import build, extensions_of, unknown_names
from unweave.networks import accelerate
from unweave.parameters import Count, Seed, check_value
from unweave.training.addresses import resolve
from unweave.training.checkpoint import MODEL, load_weights, steps_in
from unweave.training.history import Record, read_history
from unweave.training.images import images_to_tensor, tensor_to_images
from unweave.training.names import read_names
from unweave.training.spec import SPEC as SPEC
from unweave.training.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

Rows = ArrayLike | slice
_SPARE = 1 << 26  # bytes of buffers that weights files do not hold
WEIGHTS, STATE, HISTORY, FAILURE = (
    "weights.safetensors",
    "state.safetensors",
    "history.jsonl",
    "failure.json",
)


@dataclass(repr=False)
class Run:
    """A training run: what was asked for, the method as trained so far, and its records.

    Parameters
    ----------
    spec
        all that is needed to repeat the run.
    method
        with the weights after ``step`` steps.
    path
        its directory; None for a run that is kept in memory.
    step
        how many steps were done.
    records
        the logged values, one mapping per logged step; :attr:`history` has them as a frame.
    data
        what it was trained on, in the process that trained it; None for a run that was loaded.
    names
        what people call its latents, by label ("z0"): see :func:`unweave.training.names.write_names`.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="dark")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=2, batch_size=4, log_every=1)
    >>> run
    Run(vae on dark: 2 of 2 steps, seed 0, in memory)
    >>> codes = run.encode(data, rows=[0, 3])
    >>> codes.shape, run.decode(codes).shape, run.sample(5).shape
    ((2, 2), (2, 8, 8, 1), (5, 8, 8, 1))
    >>> list(run.history.columns)
    ['loss', 'reconstruction', 'kl', 'images_per_second']
    """

    spec: RunSpec
    method: Method
    path: Path | None = None
    step: int = 0
    records: list[Record] = field(default_factory=list)
    data: Dataset | None = None
    names: dict[str, str] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether all steps were done."""
        return self.step >= self.spec.steps

    @property
    def problems(self) -> list[str]:
        """What went wrong in training, by the method's own judgement of the records: that a GAN has collapsed."""
        return self.method.problems(self.records)

    @property
    def history(self) -> pd.DataFrame:
        """The logged values as a frame: one row per logged step, one column per value."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=None if self.records else ["step"]).set_index("step")

    # --- using the trained method ----------------------------------------------------------------

    def encode(
        self, data: Any, rows: Rows | None = None, part: str | None = None, *, seed: Seed = 0
    ) -> SingleArray:
        """The codes of images: the mean of q(z|x).

        Parameters
        ----------
        data
            a :class:`~unweave.data.Dataset`; or images, as an array or a tensor: bytes (n, H, W, C) from 0 to 255, or
            floats in [0, 1], channels last or first.
        rows
            which rows of the data set or of the images: whole numbers (n,), a slice, or a mask with an entry for each
            row; of a data set also factors (n, K). None: all rows.
        part
            a named part of the code, where the method has several ("c", "z"); None or "all": all of it.
        seed
            of the noise of a stochastic data set, whose images are drawn anew at every access.

        Returns
        -------
        array (n, D)
            single precision.

        Examples
        --------
        >>> images = np.zeros((4, 8, 8, 1), np.uint8)
        >>> data = uw.data.from_arrays(images)
        >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
        >>> run.encode(data).shape, run.encode(images, rows=slice(0, 3)).shape
        ((4, 2), (3, 2))
        """
        return self.posterior(data, rows, part, seed=seed)[0]

    def posterior(
        self, data: Any, rows: Rows | None = None, part: str | None = None, *, seed: Seed = 0
    ) -> tuple[SingleArray, SingleArray]:
        """Mean and log-variance of q(z|x), (n, D) each; arguments as of :meth:`encode`.

        Examples
        --------
        >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
        >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
        >>> mean, log_variance = run.posterior(data)
        >>> mean.shape, log_variance.shape
        ((4, 2), (4, 2))
        """
        method = self.method
        if not isinstance(method, Encodes):
            raise self._lacks(Encodes, "encode images")
        columns = part_columns(method, part)
        batches = _image_batches(method, data, rows, check_value("seed", seed, Seed))

        def encode(images: Tensor) -> Tensor:
            mean, log_variance = method.encode(images)
            return torch.stack([mean[:, columns], log_variance.expand_as(mean)[:, columns]], dim=1)

        codes = _in_batches(method, encode, batches).numpy()
        return np.ascontiguousarray(codes[:, 0]), np.ascontiguousarray(codes[:, 1])

    def decode(self, codes: ArrayLike | Tensor) -> SingleArray:
        """The expected images of codes (n, D): floats (n, H, W, C), for most likelihoods in [0, 1].

        Examples
        --------
        >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
        >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
        >>> run.decode([[0.0, 0.0], [1.0, 0.0]]).shape
        (2, 8, 8, 1)
        """
        method = self.method
        if not isinstance(method, Decodes):
            raise self._lacks(Decodes, "decode codes")
        given = codes.detach().cpu().numpy() if isinstance(codes, Tensor) else as_array(codes, "codes")
        if given.ndim != 2 or given.dtype.kind not in "fiu":
            raise ArgumentError("codes", f"{given.dtype} of shape {given.shape}", "needs numbers (n, D)")
        if isinstance(method, Encodes) and given.shape[1] != code_size(method):
            needed = f"needs the shape (n, {code_size(method)})"
            raise ArgumentError("codes", f"an array of shape {given.shape}", needed)
        if len(given) == 0:
            raise ArgumentError("codes", f"an array of shape {given.shape}", "needs at least one row")
        tensor = torch.from_numpy(np.asarray(given, np.float32))
        return tensor_to_images(_in_batches(method, method.decode, _split(tensor, _batch_size(method))))

    def sample(self, n: Count, seed: Seed = 0) -> SingleArray:
        """``n`` images from the model: floats (n, H, W, C), for most likelihoods in [0, 1].

        Examples
        --------
        >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
        >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
        >>> run.sample(3, seed=1).shape
        (3, 8, 8, 1)
        """
        method = self.method
        if not isinstance(method, Samples):
            raise self._lacks(Samples, "sample images")
        n, seed = check_value("n", n, Count), check_value("seed", seed, Seed)
        generator = torch.Generator(_device(method)).manual_seed(seed)
        with _inference(method):
            return tensor_to_images(method.sample(n, generator))

    def _lacks(self, capability: type, purpose: str) -> ArgumentError:
        kind = f"{type(self.method).__name__} is not an unweave.methods.method.{capability.__name__}"
        return ArgumentError("method", self.spec.method.name, f"cannot {purpose}: {kind}")

    # --- showing itself --------------------------------------------------------------------------

    def explore(self, data: Dataset | None = None, **options: Any) -> Any:
        """A page in which the codes can be moved: a notebook shows it, and ``.save(path)`` writes it as one file.

        Parameters
        ----------
        data
            whose images are shown; by default those that the run was trained on.
        options
            further ones of :func:`unweave.explorer.explore`.

        Examples
        --------
        >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
        >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
        >>> run.explore().save("page.html").name
        'page.html'
        """
        # The explorer lives in a room above this one, which is named here and imported only when it is wanted.
        return resolve_name("unweave.explorer.notebook:explore")(self, data, **options)

    def __repr__(self) -> str:
        kept = "in memory" if self.path is None else f"in {self.path}"
        steps = f"{self.step:,} of {self.spec.steps:,} steps"
        problems = "".join(f"; {problem}" for problem in self.problems)
        what = f"{self.spec.method.name} on {self.spec.data['name']}"
        return f"Run({what}: {steps}, seed {self.spec.seed}, {kept}{problems})"

    def _repr_html_(self) -> str:
        from unweave.training.card import run_card

        return run_card(self)


def load(
    path: Path | str,
    *,
    imports: Iterable[str | Path] = (),
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    terms: Sequence[Any] = (),
    labels: ArrayLike | None = None,
) -> Run:
    """A run from its directory, or a published model from its address, on the CPU, ready to encode.

    An unfinished run has the weights of its last checkpoint. No code is imported but what ``imports`` names: a run that
    was trained with further modules says which, and stops.

    A directory of a stranger is read as data. Nothing in it is executed: no pickle, no YAML tags, no imports. Files are
    regular files of a bounded size (no links, FIFOs or devices), values have the types and sizes that a run's have, the
    method takes no more memory than its weights in the directory, and these have the hash that was written with them
    and belong to the run of spec.yaml. Whatever is wrong is a :class:`~unweave.errors.DataError` with the file's name.
    Hashes tell of damage and mistakes. They do not tell who trained the weights: whoever can write the directory can
    write another whole run.

    Parameters
    ----------
    path
        the run's directory, or an address: ``"zoo:dsprites/vae"`` (a model that comes with the package), ``"https://…"``
        or ``"hf://user/name"``, with ``#sha256=…`` at the end to name the one that is meant
        (:func:`unweave.training.resolve`).
    imports
        modules ("my_package.terms") and files ("./my_terms.py") that register what the run was trained with.
    encoder, decoder, terms
        the user's networks and unregistered terms, where the run was trained with such.
    labels
        the array of labels that the run learned from, where it did: it is not kept in the directory.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=2, out="run", pictures=False)
    >>> uw.load("run").step
    2
    >>> uw.load("zoo:dsprites/beta_tcvae").spec.method.name
    'beta_tcvae'
    """
    folder = resolve(path)
    spec = RunSpec.read(folder / SPEC)
    if not any((folder / name).exists() for name in (WEIGHTS, STATE)):
        raise DataError(f"{folder}: the run has no weights yet")
    extensions.load(imports)
    _check_imports(spec, folder)
    method = _build(spec, folder, encoder=encoder, decoder=decoder, terms=terms)
    step = steps_done(folder)
    if step == spec.steps and (folder / WEIGHTS).exists():
        load_weights(folder / WEIGHTS, method, spec)
    else:
        load_weights(folder / STATE, method, spec, MODEL)
    if labels is not None:
        if not isinstance(method, LearnsFromLabels):
            raise ArgumentError(
                "labels", type(labels).__name__, f"{spec.method.name} does not learn from labels"
            )
        method.remember_labels(labels)
    method.fresh = False
    to_fast_form(method).eval()
    return Run(spec, method, folder, step, read_history(folder / HISTORY), names=read_names(folder))


def to_fast_form(method: Method) -> Method:
    """The method, in the form in which it computes fastest where it is; in place.

    A run has it just trained and loaded, so that its codes have the same bits on the same machine.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = to_fast_form(uw.methods.create("vae", data, latent_size=2, architecture="mlp"))
    >>> uw.networks.is_accelerated(method)
    True
    """
    if _device(method).type == "cpu":
        accelerate(method)
    method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return method


def steps_done(folder: Path) -> int:
    """How many steps of a run are safe on disk."""
    return max(steps_in(folder / name) for name in (WEIGHTS, STATE))


def _build(spec: RunSpec, folder: Path, **parts: Any) -> Method:
    """The run's method, untrained; a spec of which none can be built is one clear error."""
    file = folder / SPEC
    try:
        if parts["encoder"] is None and parts["decoder"] is None:
            _check_memory(spec, folder, parts["terms"])
        return build(spec.method, **parts)
    except ArgumentError as error:
        if error.argument in parts or vars(spec.method).get("architecture") == "custom":
            raise
        raise DataError(f"{file}: not a run spec ({error})") from error
    except UnweaveError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        why = shorten(str(error)) or type(error).__name__
        raise DataError(f"{file}: no method can be built of it ({why})") from error


def _check_memory(spec: RunSpec, folder: Path, terms: Sequence[Any]) -> None:
    """Refuse a spec of more weights than the directory has bytes, before memory is taken for them.

    On the device "meta" tensors have shapes and no content. A method that cannot be built there is not checked.
    """
    try:
        with torch.device("meta"):
            planned = build(spec.method, terms=terms)
        tensors = [*planned.parameters(), *planned.buffers()]
        needed = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    except Exception:
        return
    present = sum((folder / name).stat().st_size for name in (WEIGHTS, STATE) if (folder / name).is_file())
    if needed > _SPARE + 2 * present:
        raise DataError(
            f"{folder / SPEC}: its method needs {needed:,} bytes of weights, and the directory has {present:,}"
        )


def _check_imports(spec: RunSpec, folder: Path) -> None:
    """Refuse a run of methods or terms that are not known here, and say which import makes them so."""
    try:
        unknown, origins = unknown_names(spec.method), extensions_of(spec.method)
    except (ArgumentError, RecursionError) as error:
        raise DataError(f"{folder / SPEC}: not a run spec ({shorten(str(error))})") from error
    needed = spec.imports or origins
    names = shorten(", ".join(unknown))
    if unknown and needed:
        options = shorten(" ".join(f"--import {name}" for name in needed))
        raise DataError(
            f"{folder}: {names} is not known here. The run was trained with code of {shorten(', '.join(needed))}, "
            f"which is imported only if you ask for it: uw.load(path, imports={show(needed)}), or {options}"
        )
    if unknown:
        raise DataError(
            f"{folder}: {names} is not known here. The code that registers it was not in a module or file "
            "that the run could remember: register it before loading"
        )


def _image_batches(method: Method, data: Any, rows: Rows | None, seed: int) -> Iterator[Tensor]:
    """The images of a data set, or a user's, as tensors of a method's batch size; checked before the first."""
    size = _batch_size(method)
    if not isinstance(data, Dataset):
        images = images_to_tensor(data, method.spec.image_shape)
        if len(images) == 0:
            raise ArgumentError("images", f"an array of shape {tuple(images.shape)}", "needs at least one")
        return _split(
            images if rows is None else images[torch.from_numpy(_row_numbers(rows, len(images)))], size
        )
    method.check_data(data)
    which = _rows_or_factors(data, rows)
    # Of factors several images may show each: the source of random numbers chooses.
    rng = np.random.default_rng(seed) if data.stochastic or which.ndim == 2 else None
    parts = (which[start : start + size] for start in range(0, len(which), size))
    return (to_tensor(data.images(part, rng)) for part in parts)


def _rows_or_factors(data: Dataset, rows: Rows | None) -> AnyArray:
    """What is asked of a data set: rows (n,), all of them by default, or factors (n, K)."""
    if rows is None:
        return np.arange(len(data))
    if not isinstance(rows, slice):
        factors = as_array(rows, "rows")
        if factors.ndim == 2 and len(factors) and factors.dtype.kind != "b":
            return factors
    return _row_numbers(rows, len(data))


def _row_numbers(rows: Rows, total: int) -> IntArray:
    """Some of ``total`` rows by their numbers (n,)."""
    allowed = f"needs whole numbers (n,), a slice, or a mask ({total},)"
    if isinstance(rows, slice):
        try:
            numbers: IntArray = np.arange(total)[rows].copy()
        except (TypeError, ValueError) as error:
            raise ArgumentError("rows", rows, allowed) from error
    else:
        array = as_array(rows, "rows")
        is_mask = array.dtype.kind == "b" and array.shape == (total,)
        if not is_mask and (array.ndim != 1 or (array.size and array.dtype.kind not in "iu")):
            raise ArgumentError("rows", f"{array.dtype} of shape {array.shape}", allowed)
        numbers = np.flatnonzero(array) if is_mask else check_rows(array, total)
    if len(numbers) == 0:
        raise ArgumentError("rows", "none", "needs at least one row")
    return numbers


def _split(tensor: Tensor, size: int) -> Iterator[Tensor]:
    return (tensor[start : start + size] for start in range(0, len(tensor), size))


def _in_batches(method: Method, function: Callable[[Tensor], Tensor], batches: Iterable[Tensor]) -> Tensor:
    """Apply a function to batches of one size, the last one filled up; single precision, on the CPU.

    Networks may round differently for another number of rows. So a row's result does not depend on the others.
    """
    size, device = _batch_size(method), _device(method)
    results = []
    with _inference(method):
        for batch in batches:
            count = len(batch)
            full = batch if count == size else torch.cat([batch] * -(-size // count))[:size]
            results.append(function(full.to(device))[:count].float().cpu())
    return torch.cat(results)


@contextmanager
def _inference(method: Method) -> Iterator[None]:
    """No gradients, and the method as it is after training."""
    was_training = method.training
    method.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if was_training:
            method.train()


def _batch_size(method: Method) -> int:
    return 64 if _device(method).type == "cpu" else 1024


def _device(method: Method) -> torch.device:
    return next((parameter.device for parameter in method.parameters()), torch.device("cpu"))
