"""Training: checked arguments, a run directory of its own, then the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
from annotated_types import Ge, Lt
from filelock import FileLock, Timeout

from unweave.arrays import to_python
from unweave.data import Dataset
from unweave.data.registry import RECIPES
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import is_leftover
from unweave.methods.method import Method
from unweave.methods.registry import extensions_of
from unweave.networks import accelerate, keep_freed_memory
from unweave.parameters import Count, Positive, check_arguments
from unweave.training.callbacks import Callback, create_pictures
from unweave.training.checkpoint import load_weights
from unweave.training.devices import create_fabric
from unweave.training.history import read_history
from unweave.training.run import HISTORY, SPEC, WEIGHTS, Run, steps_done
from unweave.training.session import Schedule, Session
from unweave.training.spec import RunSpec, describe_data, installed_versions

TrainingSeed = Annotated[int, Ge(0), Lt(2**63)]


def train(
    method: Method,
    data: Dataset,
    steps: Count,
    batch_size: Count = 64,
    learning_rate: Positive = 1e-4,
    seed: TrainingSeed = 0,
    device: str = "auto",
    out: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    *,
    pictures: bool = True,
    log_every: Count = 100,
    checkpoint_every: Count | None = None,
    checkpoint_seconds: Positive = 300.0,
    precision: str = "32-true",
    devices: Count = 1,
    strategy: str = "auto",
    compile: bool = False,
    fast: bool = True,
    keep_memory: bool = False,
) -> Run:
    """Train a method on independent batches, as in the papers: no epochs, no split.

    Parameters
    ----------
    method
        what to train: :func:`unweave.methods.create`. Its weights are changed in place.
    data
        what to train on.
    steps
        how many batches; each player of the method moves once per batch.
    batch_size
        images (or pairs of images) per step.
    learning_rate
        of Adam, for players that have none of their own.
    seed
        of the batches, the noise and (for a method that is still fresh) the initial weights.
    device
        "auto", "cpu", "cuda", "cuda:1", "mps". With ``devices`` > 1 they share each batch.
    out
        the run's directory. If it holds an unfinished run of the same spec, that run goes on where it was,
        to the same bits as if it had never stopped (on a CPU). None: nothing is written.
    callbacks
        what else to do at the start, at each record, at each checkpoint and at the end.
    pictures
        with ``out``, also write reconstructions, latent traversals (PNG and GIF) and loss curves at the end.
    log_every
        steps between two records of the history.
    checkpoint_every, checkpoint_seconds
        a checkpoint is written after so many steps, or so many seconds, whichever comes first.
    precision, devices, strategy
        as Lightning Fabric names them ("bf16-mixed", 2, "ddp").
    compile
        ``torch.compile`` the method (for GPUs).
    fast
        on a CPU, use the faster forms of the same networks (equal to rounding).
    keep_memory
        let this process keep memory that tensors free, instead of asking the system for it at every step. It changes
        the allocator of the whole process (:func:`unweave.networks.keep_freed_memory`), so it is off unless asked for.

    Returns
    -------
    Run
        the trained method with its spec and history.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=3, batch_size=4, log_every=1)
    >>> [record["step"] for record in run.records]
    [1, 2, 3]
    """
    spec = plan(method, data, steps, batch_size, learning_rate, seed, precision)
    schedule = Schedule(*to_python((log_every, checkpoint_every, checkpoint_seconds)))
    fabric = create_fabric(device, devices, precision, strategy)
    folder = None if out is None else Path(out)
    if folder is not None and pictures:
        callbacks = [*callbacks, create_pictures()]
    with _locked(folder if fabric.global_rank == 0 else None):
        finished = None if folder is None else _finished(folder, spec, method, data)
        fabric.barrier()  # all processes have read the directory before one writes to it
        if method.fresh:
            method.initialise(spec.seed)
        if keep_memory:
            keep_freed_memory()
        if fabric.device.type == "cpu" and fast:
            accelerate(method)
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if finished is not None:  # in the same form as after training: its scores have the same bits
            return finished
        session = Session(Run(spec, method, folder, data=data), data, fabric, callbacks, compile)
        session.resume()
        fabric.barrier()
        session.train(schedule)
    return session.run


def plan(
    method: Method,
    data: Dataset,
    steps: Count,
    batch_size: Count = 64,
    learning_rate: Positive = 1e-4,
    seed: TrainingSeed = 0,
    precision: str = "32-true",
) -> RunSpec:
    """The spec of the run that :func:`train` would make of these arguments, which are checked; nothing is trained.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> spec = uw.training.plan(uw.methods.create("vae", data, architecture="mlp"), data, steps=1000)
    >>> spec.steps, spec.method.name, len(spec.identity)
    (1000, 'vae', 64)
    """
    given = {"steps": steps, "batch_size": batch_size, "learning_rate": learning_rate, "seed": seed}
    settings: dict[str, Any] = check_arguments(plan, given)
    method.check_data(data)
    method.batches(data)
    return RunSpec(
        method=method.spec,
        data=describe_data(data),
        **settings,
        precision=precision,
        versions=installed_versions(),
        imports=_imports(method, data),
    )


def _imports(method: Method, data: Dataset) -> list[str]:
    """The user's modules and files that a run needs to be known by name."""
    origins = [*extensions_of(method.spec), RECIPES.origin(data.name)]
    return list(dict.fromkeys(origin for origin in origins if origin is not None))


@contextmanager
def _locked(folder: Path | None) -> Iterator[None]:
    """One process at a time trains into a directory; the operating system frees the lock if it dies."""
    if folder is None:
        yield
        return
    present = list(folder.iterdir()) if folder.is_dir() else []
    others = [path for path in present if path.name != ".lock" and not is_leftover(path)]
    if others and not (folder / SPEC).exists():
        raise ArgumentError("out", str(folder), "is a folder with other files in it, not a run directory")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UnweaveError(f"{folder}: another process is training this run") from error
    try:
        yield
    finally:
        lock.release()


def _finished(folder: Path, spec: RunSpec, method: Method, data: Dataset) -> Run | None:
    """The run in ``folder`` if it is this one and has made all its steps; another one is refused."""
    if not (folder / SPEC).exists():
        return None
    saved = RunSpec.read(folder / SPEC)
    spec.check_same_run(saved, folder)
    if saved.steps < spec.steps or steps_done(folder) < spec.steps or not (folder / WEIGHTS).exists():
        return None
    load_weights(folder / WEIGHTS, method)
    method.fresh = False
    method.eval()
    return Run(saved, method, folder, spec.steps, read_history(folder / HISTORY), data)
