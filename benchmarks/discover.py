"""What ``unweave discover`` finds out about data sets whose factors are known: the table of docs/discover.md.

Each data set is written to a folder of image files, as a user has them; the factors are given as labels of a part of
them and are compared with the result. Folders that are there already are used again, and interrupted work goes on.

    python benchmarks/discover.py WORK dsprites isomap_faces --minutes 6
    python benchmarks/discover.py WORK dsprites --strength 8 --steps 2500 --seeds 6
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

import unweave as uw

IMAGES = 3_000
NAMES = ("dsprites", "isomap_faces", "coil20", "mnist", "mixed", "noise", "fifty")


def images_and_factors(name: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Images, their factors (n, K), and the factors' names."""
    rng = np.random.default_rng(0)
    if name == "noise":
        return rng.integers(0, 256, (400, 64, 64, 3), dtype=np.uint8), np.zeros((400, 0)), []
    data = uw.data.load({"fifty": "dsprites", "mixed": "rooms3d"}.get(name, name))
    count = {"fifty": 50, "mixed": 600}.get(name, IMAGES)
    rows = np.sort(rng.choice(len(data), min(count, len(data)), replace=False))
    return data.images(rows), np.asarray(data.factors(rows), float), list(data.space.names)


def write_photographs(name: str, folder: Path) -> tuple[np.ndarray, list[str], Path | None]:
    """The image files of a data set, and a table with the factors of every second one; the factors and their names."""
    images, factors, names = images_and_factors(name)
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, image in enumerate(images):
        picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
        suffix = "png"
        if name == "mixed":  # several sizes and formats, copies, and a file that is none
            side = int(rng.integers(70, 200))
            picture, suffix = picture.resize((side, side)), "jpg" if number % 2 else "png"
            if number < 20:
                picture.save(folder / f"copy-{number:02d}.jpg", quality=90)
        files.append(f"{number:05d}.{suffix}")
        if not (folder / files[-1]).exists():
            picture.save(folder / files[-1])
    if name == "mixed":
        (folder / "broken.jpg").write_bytes(b"no image")
    if not names:
        return factors, files, None
    table = folder.parent / f"{folder.name}.csv"
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["file", *names])
        writer.writerows([files[row], *factors[row]] for row in range(0, len(files), 2))
    return factors, files, table


def score(codes: np.ndarray, factors: np.ndarray) -> str:
    """MIG and MCC (rank correlations) of codes, where there are any."""
    if codes.shape[1] == 0 or factors.shape[1] == 0:
        return "–"
    bins = np.stack([np.unique(column, return_inverse=True)[1] for column in factors.T], axis=1)
    if max(len(np.unique(column)) for column in bins.T) > 50:
        bins = np.stack(
            [np.digitize(c, np.quantile(c, np.linspace(0, 1, 21)[1:-1])) for c in factors.T], axis=1
        )
    mcc = uw.metrics.mcc(codes, factors, method="spearman")
    return f"MIG {uw.metrics.mig(codes, bins).value:.2f}, MCC {mcc.value:.2f}"


def best_matches(factors: Sequence[uw.discovery.Factor]) -> str:
    """For each known factor how strongly a discovered one relates to it: rank correlation, or the part that is told."""
    best: dict[str, tuple[float, str]] = {}
    for factor in factors:
        for relation in factor.relations:
            if relation.is_real:
                strength = abs(relation.strength)
                text = f"r {strength:.2f}" if relation.kind == "order" else f"{strength:.0%} told"
                words = f"{relation.label} {text} by {factor.name}"
                best[relation.label] = max(best.get(relation.label, (0.0, "")), (strength, words))
    return ", ".join(words for _, words in best.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("names", nargs="+", choices=NAMES)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--strength", type=float)
    parser.add_argument("--processes", type=int)
    given = parser.parse_args()
    for name in given.names:
        folder = given.work / name
        factors, files, labels = write_photographs(name, folder)
        start, processor = time.monotonic(), sum(os.times()[:4])  # with processes that have ended
        result = uw.discover(
            folder,
            labels=labels,
            minutes=given.minutes,
            steps=given.steps,
            seeds=given.seeds,
            strength=given.strength,
            processes=given.processes,
            out=given.work / f"{name}-discovered",
        )
        minutes = (time.monotonic() - start) / 60
        processor_minutes = (sum(os.times()[:4]) - processor) / 60
        known = result.codes.loc[files]
        columns = {
            status: [factor.name for factor in result.factors if status in (factor.status, "all")]
            for status in ("reproduced", "all")
        }
        codes = {status: known[chosen].to_numpy() for status, chosen in columns.items()}
        print(
            f"| {name} | {len(result.photographs.distinct)} | {minutes:.1f} min "
            f"({processor_minutes:.1f} of a processor), {result.selected.trained.setting.label}, "
            f"{result.selected.seeds} seeds, {result.run.step:,} steps | "
            f"{len(columns['reproduced'])} and {len(columns['all']) - len(columns['reproduced'])} | "
            f"{result.selected.measured.explained:.2f} | {score(codes['reproduced'], factors)} | "
            f"{score(codes['all'], factors)} | {best_matches(result.factors)} |",
            flush=True,
        )
        print(f"  {result.headline} {result.page.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
