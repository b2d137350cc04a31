"""The scores of a run, each in a file of its own as soon as it is known."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from unweave.data import Dataset
from unweave.evaluation import RepresentationTable, evaluate
from unweave.files import replacing, write_text
from unweave.methods import EncodesWithLabels
from unweave.metrics import Score
from unweave.objectives import usage
from unweave.study.units import UDR, Unit, scalars
from unweave.training import Run

SCORES = "scores"


def measure(run: Run, data: Dataset, wanted: Sequence[Unit], tell: Callable[[str, float], None]) -> None:
    """Compute the units that are not there yet. ``tell`` hears of each unit and the share that is done."""
    assert run.path is not None
    folder = run.path / SCORES
    missing = [unit for unit in wanted if not (folder / unit.file).exists()]
    done = len(wanted) - len(missing)
    for together in _rounds(missing):
        clock = time.monotonic()
        tell(together[0].label, done / len(wanted))
        if together[0].metric == UDR:
            _keep_codes(folder / together[0].file, run, data, together[0])
            done += 1
            continue
        by_metric = {unit.metric: unit for unit in together}

        def keep(metric: str, score: Score, by_metric: dict[str, Unit] = by_metric) -> None:
            nonlocal clock, done
            unit, now = by_metric[metric], time.monotonic()
            _keep_score(folder / unit.file, unit, score, tuple(data.space.names), now - clock)
            clock, done = now, done + 1
            tell(unit.label, done / len(wanted))

        evaluate(
            run,
            data,
            list(by_metric),
            cast(Any, together[0].protocol),
            together[0].seed,
            num_train=together[0].num_train,
            num_test=together[0].num_test,
            params={unit.metric: unit.params for unit in together},
            codes=cast(Any, together[0].codes),
            labels=together[0].labels,
            on_score=keep,
        )


def read_codes(path: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What UDR compares: the codes (n, D) of a run on the study's images, and the mean KL (D,) of each latent."""
    kept = load_file(path)
    return kept["codes"], kept["kl"]


def _rounds(missing: Sequence[Unit]) -> list[list[Unit]]:
    """Units that one evaluation computes together: of the same codes, each metric once; UDR by itself."""
    rounds: list[list[Unit]] = []
    for unit in missing:
        for found in rounds:
            same = (found[0].codes, found[0].labels) == (unit.codes, unit.labels)
            same &= UDR not in (unit.metric, found[0].metric)
            if same and unit.metric not in {other.metric for other in found}:
                found.append(unit)
                break
        else:
            rounds.append([unit])
    return rounds


def _keep_score(path: Path, unit: Unit, score: Score, factors: tuple[str, ...], seconds: float) -> None:
    told = {
        "metric": unit.metric,
        "rows": list(scalars(unit, score, factors)),
        "seconds": seconds,
        "params": score.params,
        "details": score.details,
    }
    write_text(path, json.dumps(told, default=_plain))


def _keep_codes(path: Path, run: Run, data: Dataset, unit: Unit) -> None:
    rng = np.random.default_rng([unit.seed, len(data) if data.finite else 0])
    n = int(unit.params["num_images"])
    which = data.sample_rows(n, rng) if data.finite else data.sample_factors(n, rng)
    table = RepresentationTable(run, data, unit.labels)
    mean, log_variance = (torch.from_numpy(part) for part in np.moveaxis(table.posterior(which, rng), 1, 0))
    conditional = isinstance(run.method, EncodesWithLabels)
    kl = usage(mean.double(), log_variance.double(), conditional).kl.numpy()
    with replacing(path) as temporary:
        save_file({"codes": np.ascontiguousarray(mean, np.float32), "kl": kl}, temporary)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
