"""The training loop: checked arguments, a run directory for one process at a time, and the steps.

It knows players and terms, and no method by name.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock, Timeout
from torch import nn

from unweave.data import Dataset
from unweave.data.batches import Batch
from unweave.errors import ArgumentError, DataError, UnweaveError
from unweave.files import is_leftover, remove_leftovers, write_text
from unweave.methods.method import Method, Player, Terms
from unweave.networks import accelerate, keep_freed_memory
from unweave.parameters import Count, Positive, TorchSeed, check_fields
from unweave.progress import Advance, progress
from unweave.schedules import LearningRate
from unweave.training.adam import Adam
from unweave.training.ahead import BatchesAhead
from unweave.training.callbacks import Callback, create_pictures
from unweave.training.checkpoint import load_state, load_weights, save_state, save_weights
from unweave.training.devices import create_fabric, is_plain
from unweave.training.history import append_record, read_history, restart_history
from unweave.training.interrupts import Interrupts, interruption
from unweave.training.planning import plan
from unweave.training.run import FAILURE, HISTORY, SPEC, STATE, WEIGHTS, Run, steps_done, to_fast_form
from unweave.training.spec import RunSpec
from unweave.training.stage import take_saved_stages, train_stages

if TYPE_CHECKING:
    from lightning_fabric import Fabric

EXPLODED = 1e12  # a loss beyond this is not going to come back
_SHOW_SECONDS = 0.25


def train(
    method: Method,
    data: Dataset,
    steps: Count,
    batch_size: Count = 64,
    learning_rate: float | Mapping[str, Any] = 1e-4,
    seed: TorchSeed = 0,
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
        what to train: :func:`unweave.methods.create`. Its weights are changed in place. Earlier stages that it was
        created with as mappings are trained first, in this way but for what the mappings say.
    data
        what to train on.
    steps
        how many batches; each player of the method moves once per batch, or as seldom as its ``every`` says.
    batch_size
        images (or pairs of images) per step.
    learning_rate
        of Adam, for players that have none of their own. A mapping gives a warm-up and a decay: {"peak": 1e-3,
        "warmup": 500, "shape": "cosine"}, the arguments of :class:`unweave.schedules.LearningRate`; players with a
        rate of their own follow in proportion.
    seed
        of the batches, the noise and (for a method that is still fresh) the initial weights.
    device
        "auto", "cpu", "cuda", "cuda:1", "mps". With ``devices`` > 1 they share each batch.
    out
        the run's directory. If it holds an unfinished run of the same spec, that run goes on where it was,
        to the same bits as if it had never stopped (on a CPU). None: nothing is written. The runs of earlier stages
        are beside it, named METHOD-DATA-ID: later stages in the same folder that need the same run share it.
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
        on a CPU, train with the faster forms of the same networks (equal to rounding). Codes of the run are computed
        with these in any case.
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
    schedule = Schedule(log_every, checkpoint_every, checkpoint_seconds)
    folder = _run_folder(out)
    if method.planned:
        if not _has_stages(folder, spec, method):
            train_stages(
                method,
                train,
                spec.training,
                None if folder is None else folder.parent,
                device=device,
                pictures=pictures,
                log_every=log_every,
                checkpoint_every=checkpoint_every,
                checkpoint_seconds=checkpoint_seconds,
                devices=devices,
                strategy=strategy,
                compile=compile,
                fast=fast,
                keep_memory=keep_memory,
            )
        spec = plan(method, data, steps, batch_size, learning_rate, seed, precision)
    fabric = create_fabric(device, devices, precision, strategy)
    if folder is not None and pictures:
        callbacks = [*callbacks, create_pictures()]
    with _locked(folder if fabric.global_rank == 0 else None):
        if folder is not None and fabric.global_rank == 0:
            remove_leftovers(folder)
        finished = None if folder is None else _finished(folder, spec, method, data)
        fabric.barrier()  # all processes have read the directory before one writes to it
        if method.fresh:
            method.initialise(spec.seed)
        if keep_memory:
            keep_freed_memory()
        if fabric.device.type == "cpu" and fast:
            accelerate(method)
        method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if finished is not None:
            to_fast_form(method)
            for callback in callbacks if fabric.global_rank == 0 else ():
                callback.on_already_finished(finished)
            return finished
        session = Session(Run(spec, method, folder, data=data), data, fabric, callbacks, compile)
        session.resume()
        fabric.barrier()
        session.train(schedule)
        to_fast_form(method)
    return session.run


class TrainingError(UnweaveError):
    """A run cannot go on: its loss is not a number, or has exploded.

    Examples
    --------
    >>> from unweave.methods import Terms
    >>> def diverging(forward_pass):
    ...     return Terms.of(diverging=(forward_pass.mean.sum() * float("inf"), 1.0))
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, architecture="mlp", extra_terms=[diverging])
    >>> try:
    ...     uw.train(method, data, steps=1)
    ... except uw.training.TrainingError as error:
    ...     print("stopped")
    stopped
    """


def _run_folder(out: Path | str | None) -> Path | None:
    if out is not None and not isinstance(out, str | PathLike):
        raise ArgumentError("out", out, "needs the path of a directory, or None")
    return None if out is None else Path(out)


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ArgumentError("out", str(folder), "needs a directory; here is a file") from error
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UnweaveError(f"{folder}: another process is training this run") from error
    except OSError as error:  # a full disk; a link or a folder in its place
        raise DataError(f"{folder / '.lock'}: cannot be locked ({error.strerror or error})") from error
    try:
        yield
    finally:
        lock.release()


def _has_stages(folder: Path | None, spec: RunSpec, method: Method) -> bool:
    """Whether the run in ``folder`` has the method's planned stages in its weights, trained as they are to be."""
    if folder is None or not (folder / SPEC).exists() or steps_done(folder) == 0:
        return False
    return take_saved_stages(method, spec.training, RunSpec.read(folder / SPEC).method)


def _finished(folder: Path, spec: RunSpec, method: Method, data: Dataset) -> Run | None:
    """The run in ``folder`` if it is this one and has all its steps; another one is refused."""
    if not (folder / SPEC).exists():
        return None
    saved = RunSpec.read(folder / SPEC)
    spec.check_same_run(saved, folder)
    if saved.steps < spec.steps or steps_done(folder) < spec.steps or not (folder / WEIGHTS).exists():
        return None
    load_weights(folder / WEIGHTS, method, saved)
    method.fresh = False
    method.eval()
    return Run(saved, method, folder, spec.steps, read_history(folder / HISTORY), data)


@dataclass(frozen=True)
class Schedule:
    """When a run logs and writes checkpoints."""

    log_every: Count
    checkpoint_every: Count | None
    checkpoint_seconds: Positive

    def __post_init__(self) -> None:
        check_fields(self)

    def logs(self, step: int, steps: int) -> bool:
        """Whether the state after ``step`` steps is logged."""
        return step % self.log_every == 0 or step == steps

    def checkpoints(self, step: int, seconds: float) -> bool:
        """Whether a checkpoint is due after ``step`` steps, ``seconds`` after the last one."""
        due = self.checkpoint_every is not None and step % self.checkpoint_every == 0
        return due or seconds > self.checkpoint_seconds


class Session:
    """One run on one set of devices."""

    def __init__(
        self, run: Run, data: Dataset, fabric: Fabric, callbacks: Sequence[Callback], compile: bool
    ) -> None:
        self.run, self.fabric = run, fabric
        self.batches = BatchesAhead(run.method.batches(data), run.spec.steps)
        self.is_main = fabric.global_rank == 0  # of several processes one writes and shows progress
        self.callbacks = callbacks if self.is_main else ()
        self.folder = run.path if self.is_main else None
        game = Game(run.method.train())
        self.players: list[Player] = game.players
        self.learning_rate = LearningRate.read(run.spec.learning_rate)
        moved = [player for player in self.players if player.parameters]
        self.is_plain = is_plain(fabric)
        optimisers = [self._optimiser(player) for player in moved]
        compiled: Any = torch.compile(game) if compile else game
        self.game: Any = compiled
        if self.is_plain:
            run.method.to(fabric.device)
        else:
            ready: Any = fabric.setup(compiled, *optimisers)
            self.game, *optimisers = ready if optimisers else (ready,)
        self.optimisers: dict[str, Any] = {
            player.name: optimiser for player, optimiser in zip(moved, optimisers, strict=True)
        }
        self.generator = torch.Generator(device=fabric.device)

    def resume(self) -> None:
        """Go on where the run's directory left off."""
        if self.run.path is not None and (self.run.path / STATE).exists():
            self.run.step = load_state(self.run.path / STATE, self.run.method, self.optimisers, self.run.spec)
        if self.folder is not None:
            if (self.folder / SPEC).exists():  # it goes on: what it was started with stays
                versions = RunSpec.read(self.folder / SPEC).versions
                self.run.spec = replace(self.run.spec, versions=versions)
            self.run.spec.write(self.folder / SPEC)
            self.run.records = restart_history(self.folder / HISTORY, self.run.step)
        self.run.method.fresh = False

    def train(self, schedule: Schedule) -> None:
        """Make all steps that are left, and finish the run."""
        try:
            for callback in self.callbacks:
                callback.on_start(self.run)
            self._make_steps(schedule)
            self._save()
        except BaseException as error:
            for callback in self.callbacks:
                try:
                    callback.on_stop(self.run)
                except Exception as further:
                    error.add_note(f"{type(callback).__name__} could not stop: {further}")
            raise
        self.run.method.eval()
        for callback in self.callbacks:
            callback.on_end(self.run)

    def _make_steps(self, schedule: Schedule) -> None:
        spec = self.run.spec
        last_log = last_checkpoint = time.monotonic()
        logged_at = self.run.step
        total, done = spec.steps * spec.batch_size, self.run.step * spec.batch_size
        bar = progress(spec.method.name, total, "images", done) if self.is_main else nullcontext()
        with Interrupts() as interrupts, bar as advance:
            show = _Display(advance, spec.batch_size)
            for step in range(self.run.step, spec.steps):
                is_logged = schedule.logs(step + 1, spec.steps)
                values = self.step(step, is_logged)
                self.run.step = step + 1
                now = time.monotonic()
                if is_logged:
                    images = (self.run.step - logged_at) * spec.batch_size
                    values["images_per_second"] = images / max(now - last_log, 1e-9)
                    last_log, logged_at = now, self.run.step
                    self._log(values)
                show.step(now, self.run, last=self.run.step == spec.steps)
                if interrupts.received is not None:
                    self._checkpoint()
                    raise interruption(interrupts.received)
                if self.run.step < spec.steps and schedule.checkpoints(self.run.step, now - last_checkpoint):
                    self._checkpoint()
                    last_checkpoint = time.monotonic()

    def step(self, step: int, is_logged: bool = False) -> dict[str, float]:
        """Step number ``step``: each player whose turn it is moves. Returns the values to log, if they are to be."""
        spec, fabric = self.run.spec, self.fabric
        shard = (fabric.global_rank, fabric.world_size)
        batch = self.batches.draw(step, spec.batch_size, spec.seed, shard).to(fabric.device)
        step_generator(self.generator, spec.seed, step, fabric.global_rank)
        values: dict[str, float] = {}
        for index in moving(self.players, step):
            player = self.players[index]
            terms: Terms = self.game(index, batch, step, self.generator)
            loss = terms.loss
            if not abs(loss.item()) < EXPLODED:  # true for NaN as well
                raise _failure(self.folder, step, terms, batch)
            if player.name in self.optimisers:
                optimiser = self.optimisers[player.name]
                optimiser.zero_grad(set_to_none=True)
                if self.is_plain:
                    loss.backward()  # type: ignore[no-untyped-call]
                else:
                    fabric.backward(loss)
                self._set_learning_rate(optimiser, player, step)
                optimiser.step()
            if is_logged:
                values |= _values(player, terms, loss)
        return values

    def _optimiser(self, player: Player) -> torch.optim.Optimizer:
        settings, rate = player.optimiser, _rate(player, self.learning_rate.peak)
        if self.is_plain:
            return Adam(player.parameters, rate, settings.betas, settings.epsilon)
        # Fused: one pass over the weights instead of several.
        fused = self.fabric.device.type in ("cpu", "cuda")
        return torch.optim.Adam(player.parameters, rate, settings.betas, settings.epsilon, fused=fused)

    def _set_learning_rate(self, optimiser: Any, player: Player, step: int) -> None:
        if isinstance(self.run.spec.learning_rate, Mapping):
            for group in optimiser.param_groups:
                group["lr"] = _rate(player, self.learning_rate.peak) * self.learning_rate.factor(step)

    def _log(self, values: dict[str, float]) -> None:
        record = {"step": self.run.step, **values}
        self.run.records.append(record)
        if self.folder is not None:
            append_record(self.folder / HISTORY, record)
        for callback in self.callbacks:
            callback.on_log(self.run.step, values)

    def _checkpoint(self) -> None:
        if self.folder is not None:
            run = self.run
            save_state(self.folder / STATE, run.method, self.optimisers, run.spec, run.step)
            for callback in self.callbacks:
                callback.on_checkpoint(run, run.step)

    def _save(self) -> None:
        self._checkpoint()
        if self.folder is not None:
            save_weights(self.folder / WEIGHTS, self.run.method, self.run.spec, self.run.step)


class Game(nn.Module):
    """A method behind one ``forward``, which is what strategies for several devices need.

    ``forward(player, …)`` gives that player's terms. For the first player that moves at a step the method makes its
    forward pass; the others use the result.
    """

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method
        self.players: list[Player] = method.players()
        self._result: Any = None

    def forward(self, player: int, batch: Batch, step: int, generator: torch.Generator) -> Terms:
        """The terms of player number ``player`` at ``step``."""
        turns = moving(self.players, step)
        if player == turns[0]:
            self._result = self.method.begin(batch, step, generator)
        terms = self.players[player].loss(self._result)
        if player == turns[-1]:
            self._result = None  # frees the graph
        return terms


def moving(players: Sequence[Player], step: int) -> list[int]:
    """The numbers of the players that move at ``step``, in the order of their moves."""
    return [number for number, player in enumerate(players) if player.moves(step)]


def step_generator(generator: torch.Generator, seed: int, step: int, rank: int = 0) -> torch.Generator:
    """Reseed ``generator`` for one step: noise is a function of (seed, step, rank), with no state to store.

    The three are mixed by the finaliser of SplitMix64, so that neighbouring steps share no structure.
    """
    mask = 2**64 - 1
    value = (seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + rank * 0x8CB92BA72F3D8DD7 + 1) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return generator.manual_seed((value ^ (value >> 31)) & (2**63 - 1))


class _Display:
    """The progress bar, updated now and then: at every step that would cost more than a step's logging."""

    def __init__(self, advance: Advance | None, batch_size: int) -> None:
        self.advance, self.batch_size = advance, batch_size
        self.images = 0
        self.shown = time.monotonic()

    def step(self, now: float, run: Run, last: bool) -> None:
        self.images += self.batch_size
        if self.advance is not None and (last or now - self.shown > _SHOW_SECONDS):
            loss = run.records[-1].get("loss", math.nan) if run.records else None
            self.advance(self.images, "" if loss is None else f"loss {loss:,.1f}")
            self.images, self.shown = 0, now


def _rate(player: Player, learning_rate: float) -> float:
    """The player's own learning rate, or the one of the run."""
    own = player.optimiser.learning_rate
    return learning_rate if own is None else own


def _values(player: Player, terms: Terms, loss: torch.Tensor) -> dict[str, float]:
    key = "loss" if player.name == "model" else f"{player.name}_loss"
    named = {name: value.item() for name, value in terms.values.items() if name != player.name}
    return {key: loss.item()} | named


def _failure(folder: Path | None, step: int, terms: Terms, batch: Batch) -> TrainingError:
    """The error for a bad loss. The weights are still those before this step, and nothing is overwritten."""
    values = {name: value.item() for name, value in terms.values.items()}
    bad = [name for name, value in values.items() if not abs(value) < EXPLODED] or list(values)
    rows: Any = batch.rows if batch.rows is not None else batch.factors
    where = ""
    if folder is not None:
        report = {"step": step, "terms": {k: repr(v) for k, v in values.items()}, "rows": rows.tolist()}
        write_text(folder / FAILURE, json.dumps(report, indent=1))
        where = f" All rows are in {folder / FAILURE}."
    what = ", ".join(f"{name} = {values[name]:g}" for name in bad)
    return TrainingError(
        f"step {step}: {what}; the batch has rows {rows[:8].tolist()} ….{where} "
        "The last checkpoint is as it was. A lower learning rate or strength may help."
    )
