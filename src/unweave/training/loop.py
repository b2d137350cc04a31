"""The training loop. It knows players and terms, and no method by name."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from unweave.data import Dataset
from unweave.data.batches import Batch
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import write_text
from unweave.methods import VAE
from unweave.methods.checks import check_count, check_positive
from unweave.methods.terms import Player, Terms
from unweave.networks import accelerate, keep_freed_memory
from unweave.progress import progress
from unweave.training.callbacks import Callback
from unweave.training.checkpoint import load_state, save_state, save_weights
from unweave.training.devices import create_fabric
from unweave.training.game import Game, step_generator
from unweave.training.history import History
from unweave.training.interrupts import Interrupts
from unweave.training.run import FAILURE, HISTORY, SPEC, STATE, WEIGHTS, Run, load_run, steps_done
from unweave.training.spec import RunSpec, describe_data, installed_versions

EXPLODED = 1e12  # a loss beyond this is not going to come back
_SHOW_SECONDS = 0.25


class TrainingError(UnweaveError):
    """A run cannot go on: its loss is not a number, or has exploded."""


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
    for name, value in (("log_every", log_every), ("checkpoint_seconds", checkpoint_seconds)):
        check_positive(name, value)
    if checkpoint_every is not None:
        check_count("checkpoint_every", checkpoint_every)
    fabric = create_fabric(device, devices, precision, strategy)
    folder = None if out is None else Path(out)
    if folder is not None and (finished := _open_folder(folder, spec, method)) is not None:
        return finished

    if method.fresh:
        method.initialise(seed)
    if fabric.device.type == "cpu" and fast:
        keep_freed_memory()
        accelerate(method)
    method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    method.train()
    game = Game(method)
    fused = fabric.device.type in ("cpu", "cuda")  # one pass over the weights, instead of several
    optimisers = {player.name: _optimiser(player, learning_rate, fused) for player in game.players}
    compiled: Any = torch.compile(game) if compile else game
    module, *wrapped = fabric.setup(compiled, *optimisers.values())

    start = 0
    if folder is not None and (folder / STATE).exists():
        start = load_state(folder / STATE, method, dict(zip(optimisers, wrapped, strict=True)))
    method.fresh = False
    main = fabric.global_rank == 0
    history = History(folder / HISTORY if folder is not None and main else None, start)
    run = Run(spec, method, folder, start, history)

    def checkpoint() -> None:
        if folder is not None and main:
            save_state(
                folder / STATE, method, dict(zip(optimisers, wrapped, strict=True)), run.step, spec.identity
            )
            for callback in callbacks:
                callback.on_checkpoint(run, run.step)

    generator = torch.Generator(device=fabric.device)
    for callback in callbacks:
        callback.on_start(run)
    clock = last_checkpoint = last_shown = time.monotonic()
    unshown, logged_at = 0, start
    total, done = steps * batch_size, start * batch_size
    with Interrupts() as interrupts, progress(spec.method.name, total, "images", done) as show:
        for step in range(start, steps):
            batch = data.batch(step, batch_size, seed, shard=(fabric.global_rank, fabric.world_size))
            images = fabric.to_device(batch.images)
            step_generator(generator, seed, step, fabric.global_rank)
            values: dict[str, float] = {}
            logging = (step + 1) % log_every == 0 or step + 1 == steps
            for index, optimiser in enumerate(wrapped):
                terms: Terms = module(index, images, step, generator)
                loss = terms.loss
                if not abs(loss.item()) < EXPLODED:  # true for NaN as well
                    raise _failure(folder if main else None, step, terms, batch)
                optimiser.zero_grad(set_to_none=True)
                fabric.backward(loss)
                optimiser.step()
                if logging:
                    values |= _values(game.players[index], terms, loss)
            run.step = step + 1
            unshown += batch_size
            now = time.monotonic()
            if logging:
                values["images_per_second"] = (run.step - logged_at) * batch_size / max(now - clock, 1e-9)
                clock, logged_at = now, run.step
                history.add(run.step, values)
                for callback in callbacks:
                    callback.on_log(run.step, values)
            if main and (now - last_shown > _SHOW_SECONDS or run.step == steps):
                show(unshown, f"loss {_main_loss(history):,.1f}" if history.records else "")
                last_shown, unshown = now, 0
            if interrupts.received is not None:
                checkpoint()
                raise _interruption(interrupts.received)
            due = checkpoint_every is not None and run.step % checkpoint_every == 0
            if run.step < steps and (due or now - last_checkpoint > checkpoint_seconds):
                checkpoint()
                last_checkpoint = time.monotonic()
    if folder is not None and main:
        checkpoint()
        save_weights(folder / WEIGHTS, method, {"step": str(run.step), "identity": spec.identity})
    method.eval()
    for callback in callbacks:
        callback.on_end(run)
    return run


def plan(
    method: VAE, data: Dataset, steps: int, batch_size: int, learning_rate: float, seed: int, precision: str
) -> RunSpec:
    """What ``train`` with these arguments would do, checked, without doing it."""
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    check_positive("learning_rate", learning_rate)
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ArgumentError("seed", seed, "needs a whole number, 0 <= seed < 2**63")
    if list(data.image_shape) != list(method.spec.image_shape):
        raise ArgumentError(
            "data", data.name, f"has images {data.image_shape}, the method is for {method.spec.image_shape}"
        )
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


def _open_folder(folder: Path, spec: RunSpec, method: VAE) -> Run | None:
    """Begin or take up a run directory; the run itself if it is finished already."""
    if (folder / SPEC).exists():
        found = RunSpec.read(folder / SPEC)
        spec.check_same_run(found, folder)
        if found.steps == spec.steps and steps_done(folder) == spec.steps and (folder / WEIGHTS).exists():
            finished = load_run(
                folder, encoder=method.encoder, decoder=method.decoder, terms=tuple(method.terms)
            )
            method.load_state_dict(finished.method.state_dict())
            method.fresh = False
            finished.method = method.eval()
            return finished
    elif folder.is_dir() and any(folder.iterdir()):
        raise ArgumentError("out", str(folder), "is a folder with other files in it, not a run directory")
    spec.write(folder / SPEC)
    return None


def _optimiser(player: Player, learning_rate: float, fused: bool) -> torch.optim.Optimizer:
    settings = player.optimiser
    rate = learning_rate if settings.learning_rate is None else settings.learning_rate
    return torch.optim.Adam(player.parameters, rate, settings.betas, settings.epsilon, fused=fused)


def _values(player: Player, terms: Terms, loss: torch.Tensor) -> dict[str, float]:
    key = "loss" if player.name == "model" else f"{player.name}_loss"
    named = {name: value.item() for name, value in terms.values.items() if name != player.name}
    return {key: loss.item()} | named


def _main_loss(history: History) -> float:
    return history.records[-1].get("loss", math.nan)


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
