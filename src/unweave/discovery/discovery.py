"""``unweave discover``: from a folder of photographs to the factors that vary in it."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from unweave.arrays import ByteArray, IntArray
from unweave.data import Dataset
from unweave.data.own.arrays import from_arrays, labelled
from unweave.discovery.choices import TRAINING_PART, Plan, Setting, choose, most_runs
from unweave.discovery.factors import Factor, describe_factors
from unweave.discovery.labels import LabelColumn, as_factors, read_labels, without_duplicates
from unweave.discovery.measured import Measured, measure
from unweave.discovery.odd import OddPhotograph, odd_photographs
from unweave.discovery.photographs import Photographs, check_enough, read_photographs
from unweave.discovery.runs import TrainedRun, final_jobs, pilot_jobs, train_runs
from unweave.discovery.selection import Selected, SettingScores, choose_setting, select_run
from unweave.discovery.sureness import headline, how_sure, not_discovered
from unweave.discovery.trainers import Trainer, create_trainer, default_processes
from unweave.errors import ArgumentError, DataError, DiskFullError, UnweaveError
from unweave.files import is_full, name_in_csv, read_json, replacing, write_text
from unweave.parameters import Count, Positive, check_value
from unweave.progress import progress
from unweave.training.run import SPEC, WEIGHTS, Run

if TYPE_CHECKING:
    import pandas as pd

    from unweave.explorer import Explorer

PAGE, EXPLORER, CODES, MODEL, SUMMARY = "page.html", "explorer.html", "codes.csv", "model", "discovery.json"
_WORK = "work"
_UNSEEN_PART, _UNSEEN_MOST = 0.2, 1_000
_MOST_LABELS = 8  # in the explorer
_NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True, repr=False)
class Discovery:
    """What was discovered in a folder of photographs.

    Parameters
    ----------
    photographs
        that were read.
    plan
        what was trained, and why.
    selected
        the chosen run, and the scores of all settings.
    factors
        what varies: reproduced factors first.
    labels
        that were given for some photographs.
    odd
        photographs that are unlike the others.
    sureness, missing
        in words: how sure one may be, and what was not discovered.
    folder
        with page.html, codes.csv, model/ and explorer.html.
    """

    photographs: Photographs
    plan: Plan
    selected: Selected
    factors: tuple[Factor, ...]
    labels: tuple[LabelColumn, ...]
    odd: tuple[OddPhotograph, ...]
    sureness: tuple[str, ...]
    missing: tuple[str, ...]
    folder: Path

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return headline(self.factors, len(self.photographs.distinct))

    @property
    def page(self) -> Path:
        """The page for people."""
        return self.folder / PAGE

    @property
    def run(self) -> Run:
        """The chosen model."""
        return self.selected.trained.run

    @property
    def codes(self) -> pd.DataFrame:
        """One row per photograph: for each factor its value and the uncertainty of it (a standard deviation)."""
        import pandas as pd

        measured = self.selected.measured
        columns: dict[str, Any] = {}
        for factor in self.factors:
            columns[factor.name] = measured.mean[:, factor.latent]
            columns[f"{factor.name}_uncertainty"] = measured.deviation[:, factor.latent]
        return pd.DataFrame(columns, index=pd.Index(self.photographs.names, name="file", dtype=object))

    def data(self) -> Dataset:
        """The photographs as a data set, at the size that the model takes, with their files and the labels given."""
        return _with_labels(self, self.labels)

    def explore(self) -> Explorer:
        """The page on which the model's numbers are moved by hand; a notebook shows it."""
        return _explorer(self)

    def __repr__(self) -> str:
        name, count = self.photographs.folder.name, len(self.photographs)
        return f"Discovery({name}: {count} photographs. {self.headline} See {self.page})"


def discover(
    photos: Path | str,
    *,
    labels: Path | str | None = None,
    minutes: Positive = 30.0,
    out: Path | str | None = None,
    steps: Count | None = None,
    seeds: Count | None = None,
    latent_size: Count | None = None,
    size: Count | None = None,
    strength: Positive | None = None,
    processes: Count | None = None,
) -> Discovery:
    """Find out what varies in a folder of photographs, without labels and without settings.

    The photographs are examined and a small study is trained within the time: short runs of several methods and
    strengths choose one of them, which is then trained anew from several random beginnings. Factors are what comes
    back in these trainings. ``out/page.html``
    shows for each factor what it does to real photographs, which are the most extreme, and how sure one may be;
    ``out/codes.csv`` has the numbers of every photograph, ``out/model`` is the run, ``out/explorer.html`` lets one
    move the numbers by hand. Everything is kept as it goes: the same call goes on where it was interrupted.

    Parameters
    ----------
    photos
        a folder of images of any common kind and any sizes; folders inside it count.
    labels
        a CSV file: the file in the first column, then labels, for some of the photographs or all. They are compared
        with the factors afterwards; nothing learns from them.
    minutes
        for everything. A few minutes give a first impression, half an hour or more a result.
    out
        the folder of the results; by default NAME-discovered in the current folder.
    steps
        of each run, in place of what fits into the time.
    seeds
        random beginnings of the chosen setting: at least 2; below 5, agreement is hard to tell from chance.
    latent_size
        numbers per photograph.
    size
        of the images in pixels: 32 or 64.
    strength
        of β-TCVAE, in place of a choice by short runs.
    processes
        how many runs are trained side by side, each in a process of its own with one thread; 1 trains in this process.
        By default as many as there are cores, or one where a GPU does the work, and never more than there are runs.
        The same trainings give the same bits with any number, and a folder may be gone on with another one.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> from PIL import Image
    >>> Path("photos").mkdir()
    >>> rng = np.random.default_rng(0)
    >>> for number in range(20):
    ...     Image.fromarray(rng.integers(0, 256, (32, 32), np.uint8)).save(f"photos/{number}.png")
    >>> result = uw.discover("photos", steps=2, seeds=2)
    >>> result.factors
    ()
    >>> result.headline
    'Nothing was discovered: 20 different photographs are too few to tell a pattern from chance.'
    """
    options = _check(photos, minutes, steps, seeds, latent_size, size, strength)
    if processes is not None:
        processes = check_value("processes", processes, Count)
    source = Path(photos).expanduser().absolute()
    if not source.is_dir():
        raise ArgumentError("photos", str(photos), "needs a folder of images")
    if labels is not None and not Path(labels).is_file():
        raise ArgumentError("labels", str(labels), "there is no such file")
    folder = Path(out) if out is not None else Path(f"{source.name or 'photos'}-discovered")
    _check_output(folder, source)
    with _locked(folder), _full_disk_said(folder):
        photographs = read_photographs(source, folder / _WORK, exclude=folder)
        check_enough(photographs)
        columns = (
            []
            if labels is None
            else read_labels(labels, photographs.names, [name for name, _ in photographs.unreadable])
        )
        most = min(processes or default_processes(), most_runs(seeds, strength))
        with create_trainer(folder / _WORK, most) as trainer:
            plan = _plan(folder, photographs, options, trainer)
            _say(_introduction(photographs, plan))
            seconds = None if steps is not None else 60 * float(minutes)
            result = _discover(folder, photographs, plan, columns, seconds, trainer)
        _write(result)
    return result


def _discover(
    folder: Path,
    photographs: Photographs,
    plan: Plan,
    labels: Sequence[LabelColumn],
    seconds: float | None,
    trainer: Trainer,
) -> Discovery:
    images = photographs.at(plan.side)
    seen, unseen = _split(photographs)
    data = _dataset(photographs, images[seen])
    training = None if seconds is None else TRAINING_PART * seconds
    setting, pilot = _choose_setting(plan, data, images, (seen, unseen), training, trainer)
    jobs = final_jobs(plan, setting, trainer.runs, training, trainer.processes)
    trained = train_runs(plan, jobs, data, training, trainer)
    selected = select_run(trained.runs, _measure(trained.runs, images, seen, unseen), unseen, pilot)
    distinct = photographs.distinct
    comparable = without_duplicates(labels, photographs.first_alike)
    factors = describe_factors(selected, distinct, comparable)
    latents = [factor.latent for factor in factors]
    chosen = selected.measured
    odd = odd_photographs(chosen.errors, chosen.mean[:, latents], seen, distinct) if factors else []
    return Discovery(
        photographs,
        plan,
        selected,
        factors,
        tuple(labels),
        tuple(odd),
        tuple(how_sure(selected, factors, len(distinct), len(unseen))),
        tuple(not_discovered(selected, factors, comparable, trained.notes)),
        folder,
    )


def _choose_setting(
    plan: Plan,
    data: Dataset,
    images: ByteArray,
    split: tuple[IntArray, IntArray],
    seconds: float | None,
    trainer: Trainer,
) -> tuple[Setting, tuple[SettingScores, ...]]:
    """The setting to train anew, by pilot runs, and their scores."""
    jobs = pilot_jobs(plan)
    if not jobs:
        return plan.settings[0], ()
    trained = train_runs(plan, jobs, data, seconds, trainer)
    measured = _measure(trained.runs, images, *split)
    scores = choose_setting(plan.settings, trained.runs, measured, split[1], plan.pilot_seeds)
    if not scores:  # they failed: what is most useful is tried all the same
        return plan.settings[0], ()
    _say(f"Chosen: {scores[0].setting.label}")
    return scores[0].setting, scores


def _measure(
    trained: Sequence[TrainedRun], images: ByteArray, seen: IntArray, unseen: IntArray
) -> list[Measured]:
    measured = []
    with progress("Comparing runs", len(trained), "runs", transient=True) as advance:
        for one in trained:
            measured.append(measure(one.run, images, seen, unseen))
            advance(1)
    return measured


# --- before anything is trained ------------------------------------------------------------------


def _check(
    photos: Path | str,
    minutes: float,
    steps: int | None,
    seeds: int | None,
    latent_size: int | None,
    size: int | None,
    strength: float | None,
) -> dict[str, Any]:
    """The arguments that decide what is trained, checked."""
    if not isinstance(photos, str | Path):
        raise ArgumentError("photos", photos, "needs the path of a folder")
    if not isinstance(minutes, _NUMBERS) or isinstance(minutes, bool) or not 0 < minutes < math.inf:
        raise ArgumentError("minutes", minutes, "needs a number > 0")
    for name, value in (("steps", steps), ("latent_size", latent_size)):
        if value is not None:
            check_value(name, value, Count)
    if seeds is not None and check_value("seeds", seeds, Count) < 2:
        raise ArgumentError("seeds", seeds, "needs 2 or more: one training alone cannot show what comes back")
    if size not in (None, 32, 64):
        raise ArgumentError("size", size, "needs 32 or 64")
    if strength is not None and check_value("strength", strength, Positive) < 1:
        raise ArgumentError("strength", strength, "needs a number >= 1: at 1, nothing presses numbers apart")
    # A given number of steps makes the time meaningless.
    return {
        "minutes": None if steps is not None else float(minutes),
        "steps": steps,
        "seeds": seeds,
        "latent_size": latent_size,
        "size": size,
        "strength": strength,
    }


def _check_output(folder: Path, photos: Path) -> None:
    """Refuse an output folder with other files in it, before anything is read."""
    if folder.exists() and not folder.is_dir():
        raise ArgumentError("out", str(folder), "is a file, not a folder")
    if folder.absolute() == photos:
        raise ArgumentError("out", str(folder), "is the folder of the photographs themselves")
    present = [path for path in folder.iterdir() if path.name != ".lock"] if folder.is_dir() else []
    if present and not (folder / _WORK).is_dir():
        raise ArgumentError("out", str(folder), "is a folder with other files in it, not of a discovery")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time writes to an output folder; a new one that stays empty is removed."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UnweaveError(f"{folder}: another process is writing here") from error
    try:
        yield
    finally:
        lock.release()
        if is_new and not (folder / _WORK).exists():  # refused before anything was read
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _full_disk_said(folder: Path) -> Iterator[None]:
    """Say that the disk is full, wherever that was noticed."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        if is_full(error):
            raise DiskFullError(folder) from error
        raise


def _plan(folder: Path, photographs: Photographs, options: Mapping[str, Any], trainer: Trainer) -> Plan:
    """The plan of an earlier call with the same photographs and options, or a new one; others are refused."""
    path = folder / _WORK / "plan.json"
    try:
        saved = read_json(path)
    except FileNotFoundError:
        saved = None
    if saved is None:
        expert = {name: options[name] for name in ("steps", "seeds", "latent_size", "size", "strength")}
        _say("Measuring how fast this machine is" if options["steps"] is None else "Choosing what to train")
        plan = choose(
            photographs,
            options["minutes"] or 0.0,
            **expert,
            processes=trainer.processes,
            seconds_per_step=trainer.seconds_per_step,
        )
        content = {"photographs": photographs.digest, "options": dict(options), "plan": plan.as_dict()}
        write_text(path, json.dumps(content, indent=1))
        return plan
    if saved.get("photographs") != photographs.digest:
        raise ArgumentError(
            "out",
            str(folder),
            "holds the discovery of other photographs, or they have changed since: give another folder",
        )
    before = saved.get("options") or {}
    changed = [name for name, value in options.items() if before.get(name) != value]
    if changed:
        then = ", ".join(f"{name}={before.get(name)}" for name in changed)
        now = ", ".join(f"{name}={options[name]}" for name in changed)
        raise ArgumentError(
            "out", str(folder), f"was begun with {then}, not {now}: give another folder, or the same options"
        )
    try:
        return Plan.from_dict(saved["plan"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: not a plan of this version of unweave: give another folder, or remove {folder} to begin anew"
        ) from error


def _split(photographs: Photographs) -> tuple[IntArray, IntArray]:
    """Rows to learn from and rows to be judged by, without duplicates: nothing that is judged by was seen."""
    distinct = photographs.distinct
    count = max(2, min(_UNSEEN_MOST, round(_UNSEEN_PART * len(distinct))))
    order = np.random.default_rng(0).permutation(distinct)
    return np.sort(order[count:]), np.sort(order[:count])


def _dataset(photographs: Photographs, images: ByteArray) -> Dataset:
    return from_arrays(np.asarray(images), name=photographs.folder.name or "photographs")


def _introduction(photographs: Photographs, plan: Plan) -> str:
    distinct, listed = len(photographs.distinct), len(photographs)
    lines = [f"{listed:,} photographs in {photographs.folder}, {distinct:,} of them different"]
    if photographs.unreadable:
        count = len(photographs.unreadable)
        lines.append(
            f"{count:,} files cannot be read, and are left out"
            if count > 1
            else "One file cannot be read, and is left out"
        )
    lines += [f"{choice.what}: {choice.value}" for choice in plan.choices]
    return "\n".join(lines)


# --- afterwards ----------------------------------------------------------------------------------


def _write(result: Discovery) -> None:
    """Codes, model, explorer, page and summary; each whole or not at all."""
    from unweave.discovery.page import render_page

    codes = result.codes.rename(index=name_in_csv)
    text = codes.reset_index().to_csv(index=False, float_format="%.6g", lineterminator="\n")
    _write_bytes(result.folder / CODES, text.encode(errors="replace"))
    _copy_model(result)
    if result.factors:
        _write_bytes(result.folder / EXPLORER, result.explore().html.encode(errors="replace"))
    else:
        (result.folder / EXPLORER).unlink(missing_ok=True)
    page = render_page(result, has_explorer=bool(result.factors))
    _write_bytes(result.folder / PAGE, page.encode(errors="replace"))
    write_text(result.folder / SUMMARY, json.dumps(_summary(result), indent=1))


def _summary(result: Discovery) -> dict[str, Any]:
    """The result for other programs."""
    return {
        "headline": result.headline,
        "photographs": len(result.photographs),
        "different": len(result.photographs.distinct),
        "unreadable": [name for name, _ in result.photographs.unreadable],
        "setting": result.selected.trained.setting.label,
        "explained": result.selected.measured.explained,
        "factors": [
            {
                "name": factor.name,
                "latent": factor.latent,
                "status": factor.status,
                "share": factor.share,
                "agreement": factor.agreement,
                "purity": factor.purity,
                "p": factor.p,
                "lowest": [result.photographs.names[row] for row in factor.low],
                "highest": [result.photographs.names[row] for row in factor.high],
                "labels": [vars(relation) for relation in factor.relations],
            }
            for factor in result.factors
        ],
        "odd": [{"file": result.photographs.names[odd.row], "why": odd.why} for odd in result.odd],
    }


def _copy_model(result: Discovery) -> None:
    """The chosen run as a run directory of its own."""
    source, target = result.run.path, result.folder / MODEL
    assert source is not None
    if all(_same(source / name, target / name) for name in (SPEC, WEIGHTS)):
        return
    temporary = result.folder / f".{MODEL}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(source, temporary, ignore=shutil.ignore_patterns(".lock"))
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)


def _same(first: Path, second: Path) -> bool:
    return second.exists() and first.read_bytes() == second.read_bytes()


def _explorer(result: Discovery) -> Explorer:
    from unweave.explorer import explore

    names = {
        f"z{factor.latent}": factor.title + ("" if factor.status == "reproduced" else " (uncertain)")
        for factor in result.factors
    }
    title = f"What varies in {result.photographs.folder.name}"
    data = _with_labels(result, _labels_to_show(result))
    run = replace(result.run, path=result.folder / MODEL)  # where names are kept, not in the work folder
    return explore(run, data, title=title, names=names, labels=[result.selected.trained.setting.label])


def _labels_to_show(result: Discovery) -> list[LabelColumn]:
    """The labels, or of very many those that a factor relates to most: each takes seconds to compare by trees."""

    def least_p(label: LabelColumn) -> float:
        relations = (relation for factor in result.factors for relation in factor.relations)
        return min((one.p for one in relations if one.label == label.name), default=1.0)

    shown = sorted(result.labels, key=least_p)[:_MOST_LABELS]
    return [label for label in result.labels if any(label is one for one in shown)]


def _with_labels(result: Discovery, labels: Sequence[LabelColumn]) -> Dataset:
    plain = _dataset(result.photographs, result.photographs.at(result.plan.side))
    assert plain.array is not None
    space, table = as_factors(labels)
    return labelled(plain.name, space, plain.array, table).with_parts(files=result.photographs.names)


def _write_bytes(path: Path, data: bytes) -> None:
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise UnweaveError(f"{path}: cannot be written ({error.strerror or error})") from error


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
