"""A run under way: its steps, its records and its checkpoints. It knows players and terms, and no method by name."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unweave.data import Dataset
from unweave.data.batches import Batch
from unweave.errors import UnweaveError
from unweave.files import write_text
from unweave.methods.method import Player, Terms
from unweave.parameters import Count, Positive, check_fields
from unweave.progress import Advance, progress
from unweave.training.callbacks import Callback
from unweave.training.checkpoint import load_state, save_state, save_weights
from unweave.training.game import Game, step_generator
from unweave.training.history import append_record, restart_history
from unweave.training.interrupts import Interrupts
from unweave.training.run import FAILURE, HISTORY, SPEC, STATE, WEIGHTS, Run

if TYPE_CHECKING:
    from lightning_fabric import Fabric

EXPLODED = 1e12  # a loss beyond this is not going to come back
_SHOW_SECONDS = 0.25


class TrainingError(UnweaveError):
    """A run cannot go on: its loss is not a number, or has exploded."""


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
        self.run, self.batches, self.fabric = run, run.method.batches(data), fabric
        self.is_main = fabric.global_rank == 0  # of several processes one writes and tells
        self.callbacks = callbacks if self.is_main else ()
        self.folder = run.path if self.is_main else None
        game = Game(run.method.train())
        self.players: list[Player] = game.players
        # Fused: one pass over the weights instead of several.
        fused = fabric.device.type in ("cpu", "cuda")
        optimisers = [_optimiser(player, run.spec.learning_rate, fused) for player in self.players]
        compiled: Any = torch.compile(game) if compile else game
        self.game, *self.optimisers = fabric.setup(compiled, *optimisers)
        self.generator = torch.Generator(device=fabric.device)

    def resume(self) -> None:
        """Take up the run where its directory left it."""
        if self.run.path is not None and (self.run.path / STATE).exists():
            self.run.step = load_state(self.run.path / STATE, self.run.method, self._optimisers_by_name())
        if self.folder is not None:
            self.run.spec.write(self.folder / SPEC)
            self.run.records = restart_history(self.folder / HISTORY, self.run.step)
        self.run.method.fresh = False

    def train(self, schedule: Schedule) -> None:
        """Make all steps that are left, and finish the run."""
        spec = self.run.spec
        for callback in self.callbacks:
            callback.on_start(self.run)
        last_log = last_checkpoint = time.monotonic()
        logged_at = self.run.step
        total, done = spec.steps * spec.batch_size, self.run.step * spec.batch_size
        bar = progress(spec.method.name, total, "images", done) if self.is_main else nullcontext()
        with Interrupts() as interrupts, bar as advance:
            show = _Display(advance, spec.batch_size)
            for step in range(self.run.step, spec.steps):
                is_logged = schedule.logs(step + 1, spec.steps)
                values = self._step(step, is_logged)
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
                    raise _interruption(interrupts.received)
                if self.run.step < spec.steps and schedule.checkpoints(self.run.step, now - last_checkpoint):
                    self._checkpoint()
                    last_checkpoint = time.monotonic()
        self._finish()

    def _step(self, step: int, is_logged: bool) -> dict[str, float]:
        """Each player moves once. Returns the values to log."""
        spec, fabric = self.run.spec, self.fabric
        shard = (fabric.global_rank, fabric.world_size)
        batch = self.batches.draw(step, spec.batch_size, spec.seed, shard).to(fabric.device)
        step_generator(self.generator, spec.seed, step, fabric.global_rank)
        values: dict[str, float] = {}
        for index, (player, optimiser) in enumerate(zip(self.players, self.optimisers, strict=True)):
            terms: Terms = self.game(index, batch, step, self.generator)
            loss = terms.loss
            if not abs(loss.item()) < EXPLODED:  # true for NaN as well
                raise _failure(self.folder, step, terms, batch)
            optimiser.zero_grad(set_to_none=True)
            fabric.backward(loss)
            optimiser.step()
            if is_logged:
                values |= _values(player, terms, loss)
        return values

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
            optimisers = self._optimisers_by_name()
            save_state(self.folder / STATE, run.method, optimisers, run.step, run.spec.identity)
            for callback in self.callbacks:
                callback.on_checkpoint(run, run.step)

    def _finish(self) -> None:
        self._checkpoint()
        if self.folder is not None:
            told = {"step": str(self.run.step), "identity": self.run.spec.identity}
            save_weights(self.folder / WEIGHTS, self.run.method, told)
        self.run.method.eval()
        for callback in self.callbacks:
            callback.on_end(self.run)

    def _optimisers_by_name(self) -> dict[str, Any]:
        return {player.name: o for player, o in zip(self.players, self.optimisers, strict=True)}


class _Display:
    """The progress bar, told now and then: drawing it at every step would cost more than a step's logging."""

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


def _optimiser(player: Player, learning_rate: float, fused: bool) -> torch.optim.Optimizer:
    settings = player.optimiser
    rate = learning_rate if settings.learning_rate is None else settings.learning_rate
    return torch.optim.Adam(player.parameters, rate, settings.betas, settings.epsilon, fused=fused)


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


def _interruption(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
