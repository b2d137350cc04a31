"""Training: checked arguments, a run directory of its own, then the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from unweave.arrays import to_python
from unweave.data import Dataset
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import is_leftover
from unweave.methods import VAE
from unweave.methods.checks import check_count, check_positive
from unweave.networks import accelerate, keep_freed_memory
from unweave.training.callbacks import Callback
from unweave.training.devices import create_fabric
from unweave.training.run import SPEC, WEIGHTS, Run, load_run, steps_done
from unweave.training.session import Schedule, Session
from unweave.training.spec import RunSpec, describe_data, installed_versions


def train(
    method: VAE,
    data: Dataset,
    steps: int,
    batch_size: int = 64,
    learning_rate: float = 1e-4,
    seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    *,
    log_every: int = 100,
    checkpoint_every: int | None = None,
    checkpoint_seconds: float = 300.0,
    precision: str = "32-true",
    devices: int = 1,
    strategy: str = "auto",
    compile: bool = False,
    fast: bool = True,
) -> Run:
    """Train a method on independent batches, as in the papers: no epochs, no split.

    Parameters
    ----------
    seed
        of the batches, the noise and (for a method that is still fresh) the initial weights.
    device
        "auto", "cpu", "cuda", "cuda:1", "mps". With ``devices`` > 1 they share each batch. ``precision`` and
        ``strategy`` are as Lightning Fabric names them ("bf16-mixed", "ddp").
    out
        the run's directory. If it holds an unfinished run of the same spec, that run goes on where it was,
        to the same bits as if it had never stopped (on a CPU). None: nothing is written.
    log_every
        steps between two records of the history.
    checkpoint_every, checkpoint_seconds
        a checkpoint is written after so many steps, or so many seconds, whichever comes first.
    compile
        ``torch.compile`` the method (for GPUs).
    fast
        on a CPU, use the faster forms of the same networks (equal to rounding).
    """
    spec = plan(method, data, steps, batch_size, learning_rate, seed, precision)
    schedule = Schedule(*to_python((log_every, checkpoint_every, checkpoint_seconds)))
    fabric = create_fabric(device, to_python(devices), precision, strategy)
    folder = None if out is None else Path(out)
    with _held(folder if fabric.global_rank == 0 else None):
        finished = None if folder is None else _finished(folder, spec, method)
        fabric.barrier()  # all processes have read the directory before one writes to it
        if method.fresh:
            method.initialise(spec.seed)
        if fabric.device.type == "cpu" and fast:
            keep_freed_memory()
            accelerate(method)
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if finished is not None:  # in the same form as after training: its scores have the same bits
            return finished
        session = Session(Run(spec, method, folder), data, fabric, callbacks, compile)
        session.resume()
        fabric.barrier()
        session.train(schedule)
    return session.run


def plan(
    method: VAE, data: Dataset, steps: int, batch_size: int, learning_rate: float, seed: int, precision: str
) -> RunSpec:
    """What ``train`` with these arguments would do, checked, without doing it."""
    steps, batch_size, learning_rate, seed = to_python((steps, batch_size, learning_rate, seed))
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    check_positive("learning_rate", learning_rate)
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ArgumentError("seed", seed, "needs a whole number, 0 <= seed < 2**63")
    method.check_images(data)
    method.labels_for(data)
    method.pairs_for(data)
    return RunSpec(
        method=method.spec,
        data=describe_data(data),
        steps=steps,
        batch_size=batch_size,
        learning_rate=float(learning_rate),
        seed=seed,
        precision=precision,
        versions=installed_versions(),
    )


@contextmanager
def _held(folder: Path | None) -> Iterator[None]:
    """One process at a time trains into a directory; the operating system frees the lock if it dies."""
    if folder is None:
        yield
        return
    found = list(folder.iterdir()) if folder.is_dir() else []
    others = [path for path in found if path.name != ".lock" and not is_leftover(path)]
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


def _finished(folder: Path, spec: RunSpec, method: VAE) -> Run | None:
    """The run in ``folder`` if it is this one and has made all its steps; another one is refused."""
    if not (folder / SPEC).exists():
        return None
    found = RunSpec.read(folder / SPEC)
    spec.check_same_run(found, folder)
    if found.steps < spec.steps or steps_done(folder) < spec.steps or not (folder / WEIGHTS).exists():
        return None
    finished = load_run(folder, encoder=method.encoder, decoder=method.decoder, terms=tuple(method.terms))
    method.load_state_dict(finished.method.state_dict())
    method.fresh = False
    finished.method = method.eval()
    return finished
