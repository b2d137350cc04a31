"""Speed of the metrics room: each metric next to the plain way of computing it, and the price of encoding.

Competitors take turns on one thread and figures are medians, so that a slow moment of the machine hits all of
them. Where the plain way would take minutes the work is scaled down, for both; ratios are within one run.
Wherever both ways must give the same numbers, this is checked first.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mutual_info_score, roc_auc_score
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import unweave as uw
from unweave.data import FactorSpace
from unweave.data.batches import to_tensor
from unweave.evaluation.table import CPU_BATCH, RepresentationTable
from unweave.metrics import Sample
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import mutual_information_matrix
from unweave.metrics.interventions.beta_vae import beta_vae, difference_points
from unweave.metrics.interventions.factor_vae import count_votes, factor_vae
from unweave.metrics.interventions.votes import vote_source
from unweave.metrics.solvers.boosted_trees import ROUNDS, fit_boosted_trees
from unweave.networks import accelerate, create_networks, decelerate, initialise

PAPER = [metric for metric in uw.metrics.METRICS.values() if metric.paper]

Array = np.ndarray[Any, Any]
Work = dict[str, Callable[[], object]]

SIZES = {"dSprites": (3, 6, 40, 32, 32), "Cars3D": (4, 24, 183)}
LATENTS, BATCH = 10, 64
STEPS, SHARE = 500, 200
OURS = "unweave"


def main() -> None:
    use_one_thread()
    compare_information()
    compare_line_classifiers()
    compare_explicitness()
    compare_boosting()
    compare_full_boosting()
    compare_votes()
    compare_encoders()
    for name, data in (
        ("dSprites", uw.data.load("dsprites")),
        ("Cars3D's size", bars(SIZES["Cars3D"])),
    ):
        compare_encodings(name, data.space)
        with tempfile.TemporaryDirectory() as folder:
            compare_evaluations(name, data, Path(folder))


def use_one_thread() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    if hasattr(os, "sched_setaffinity"):  # boosted trees take a thread per processor that they may use
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore", ConvergenceWarning)


def table(title: str, work: Work, repetitions: int = 5, images: int | None = None) -> None:
    """Time the competitors in turns and print medians; the first is what the others are measured by."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for function in work.values() if repetitions > 1 else ():
        function()  # compiles, and warms up
    for _ in range(repetitions):
        for name, function in work.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    print(f"\n{title}")
    baseline = statistics.median(next(iter(seconds.values())))
    for name, times in seconds.items():
        median = statistics.median(times)
        rate = f"{images / median:>10,.0f} images/s" if images else f"{1e3 * median:>12,.1f} ms"
        print(f"  {name:<40}{rate}{baseline / median:>10.1f}x", flush=True)


def example(sizes: Sequence[int], n: int, latents: int = LATENTS, seed: int = 0) -> Sample:
    """Random factors, and codes that mix them with noise."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    mixing = np.random.default_rng(1).standard_normal((len(sizes), latents))
    return Sample((factors / sizes) @ mixing + 0.1 * rng.standard_normal((n, latents)), factors)


def compare_information() -> None:
    sample = example(SIZES["dSprites"], 10_000)
    bins = discretise(sample.codes)

    def plain_matrix(bins: Array) -> Array:
        return np.array([[mutual_info_score(v, z) for v in sample.factors.T] for z in bins.T])

    def plain_mig() -> float:
        edges = [np.histogram(z, 20)[1][:-1] for z in sample.codes.T]
        cut = np.stack([np.digitize(z, e) for z, e in zip(sample.codes.T, edges, strict=True)], axis=1)
        ordered = np.sort(plain_matrix(cut), axis=0)
        entropies = np.array([mutual_info_score(v, v) for v in sample.factors.T])
        return float(np.mean((ordered[-1] - ordered[-2]) / entropies))

    np.testing.assert_allclose(
        plain_matrix(bins), mutual_information_matrix(bins, sample.factors), atol=1e-10
    )
    assert abs(plain_mig() - uw.metrics.score("mig", *sample[:2]).value) < 1e-10
    loop = "mutual_info_score for each pair"
    title = "10,000 points, 10 codes, factors of dSprites"
    table(
        f"Mutual information matrix: {title}",
        {loop: lambda: plain_matrix(bins), OURS: lambda: mutual_information_matrix(bins, sample.factors)},
    )
    table(f"MIG: {title}", {loop: plain_mig, OURS: lambda: uw.metrics.score("mig", *sample[:2])})
    table(
        f"Modularity: {title}",
        {
            loop: lambda: plain_matrix(discretise(sample.codes)),
            OURS: lambda: uw.metrics.score("modularity", *sample[:2]),
        },
    )


def compare_line_classifiers() -> None:
    sizes = SIZES["dSprites"]
    train, test = example(sizes, 5_000), example(sizes, 2_500, seed=2)

    def plain() -> Array:
        accuracy = np.zeros((LATENTS, len(sizes)))
        for i in range(LATENTS):
            for k in range(len(sizes)):
                machine = LinearSVC(C=0.01, class_weight="balanced", dual=False)
                machine.fit(train.codes[:, [i]], train.factors[:, k])
                accuracy[i, k] = machine.score(test.codes[:, [i]], test.factors[:, k])
        return accuracy

    found = uw.metrics.score("sap", *train[:2], test=test[:2], protocol="dlib")
    np.testing.assert_array_equal(plain(), found.details["matrix"])
    table(
        "SAP: 5,000 points, 10 codes, factors of dSprites",
        {
            "LinearSVC for each pair": plain,
            OURS: lambda: uw.metrics.score("sap", *train[:2], test=test[:2], protocol="dlib"),
        },
        3,
    )


def compare_explicitness() -> None:
    sizes = (3, 6, 10)
    train, test = example(sizes, 5_000), example(sizes, 2_500, seed=2)

    def plain() -> float:
        mean, deviation = train.codes.mean(axis=0), train.codes.std(axis=0)
        areas = []
        for k, size in enumerate(sizes):
            model = LogisticRegression().fit((train.codes - mean) / deviation, train.factors[:, k])
            scores = model.predict_proba((test.codes - mean) / deviation)
            areas.append(np.mean([roc_auc_score(test.factors[:, k] == v, scores[:, v]) for v in range(size)]))
        return float(np.mean(areas))

    assert (
        abs(plain() - uw.metrics.score("explicitness", *train[:2], test=test[:2], protocol="dlib").value)
        < 1e-6
    )
    table(
        "Explicitness: 5,000 points, 10 codes, factors of 3, 6 and 10 values",
        {
            "LogisticRegression, roc_auc_score": plain,
            OURS: lambda: uw.metrics.score("explicitness", *train[:2], test=test[:2], protocol="dlib"),
        },
        3,
    )


def compare_boosting() -> None:
    train, test = example((4, 8), 1_000), example((4, 8), 500, seed=2)

    def plain() -> Array:
        random = np.random.RandomState(0)
        models = [
            GradientBoostingClassifier(random_state=random).fit(train.codes, v) for v in train.factors.T
        ]
        for model, factor in zip(models, test.factors.T, strict=True):
            model.score(test.codes, factor)
        return np.stack([model.feature_importances_ for model in models], axis=1)

    np.testing.assert_allclose(
        plain(),
        uw.metrics.score("dci", *train[:2], test=test[:2], protocol="dlib").details["matrix"],
        atol=1e-6,
    )
    table(
        "DCI by boosted trees: 1,000 points, 10 codes, factors of 4 and 8 values",
        {
            "GradientBoostingClassifier": plain,
            OURS: lambda: uw.metrics.score("dci", *train[:2], test=test[:2], protocol="dlib"),
        },
        3,
    )


def compare_full_boosting(rounds: int = 4) -> None:
    """Ours in full, scikit-learn's from the mean of all of ``rounds`` but the first, and without its test points."""
    sizes = SIZES["dSprites"]
    train, test = example(sizes, 10_000), example(sizes, 5_000, seed=2)
    random, theirs = np.random.RandomState(0), 0.0
    found = fit_boosted_trees(*train, rounds=rounds)  # compiles, too
    start = time.process_time()
    uw.metrics.score("dci", *train[:2], test=test[:2], protocol="dlib")
    ours = time.process_time() - start
    for factor, model in zip(train.factors.T, found, strict=True):
        ends: list[float] = []
        plain = GradientBoostingClassifier(random_state=random, n_estimators=rounds)
        plain.fit(train.codes, factor, monitor=lambda *_, ends=ends: ends.append(time.process_time()))
        theirs += ROUNDS * (ends[-1] - ends[0]) / (rounds - 1)
        np.testing.assert_allclose(plain.feature_importances_, model.importances, atol=1e-6)
    print("\nDCI by boosted trees: 10,000 points, 10 codes, factors of dSprites (processor time)")
    for title, seconds in (("GradientBoostingClassifier", theirs), (OURS, ours)):
        print(f"  {title:<40}{seconds:>12,.1f} s{theirs / seconds:>11.1f}x")
    print(f"  (the first: {ROUNDS} rounds at the rate of {rounds - 1} of them, no test points)", flush=True)


class CodeTable:
    """The codes of a whole grid in memory, as a representation."""

    def __init__(self, space: FactorSpace) -> None:
        self.space = space
        self.table = np.random.default_rng(0).standard_normal((len(space), LATENTS))

    def codes(self, factors: Array, rng: object) -> Array:
        return self.table[self.space.rows(factors)]


class CountingTable(CodeTable):
    """Remembers how many codes were asked for, and which."""

    def __init__(self, space: FactorSpace) -> None:
        super().__init__(space)
        self.asked, self.seen = 0, np.zeros(len(space), bool)

    def codes(self, factors: Array, rng: object) -> Array:
        self.asked += len(factors)
        self.seen[self.space.rows(factors)] = True
        return super().codes(factors, rng)


def compare_votes() -> None:
    space = uw.data.load("dsprites").space
    sizes, votes = SIZES["dSprites"], 1_000
    codes = CodeTable(space)
    variance = codes.table.var(axis=0, ddof=1)

    def batch(rng: Any) -> Array:
        return np.stack([rng.randint(size, size=BATCH) for size in sizes], axis=1)

    def plain_pairs() -> Array:
        rng, points = np.random.RandomState(0), []
        for _ in range(votes):
            factor = rng.randint(len(sizes))
            one, other = batch(rng), batch(rng)
            other[:, factor] = one[:, factor]
            points.append(np.abs(codes.codes(one, rng) - codes.codes(other, rng)).mean(axis=0))
        return np.array(points)

    def plain_counts() -> Array:
        rng, counts = np.random.RandomState(0), np.zeros((LATENTS, len(sizes)), int)
        for _ in range(votes):
            factor = rng.randint(len(sizes))
            factors = batch(rng)
            factors[:, factor] = factors[0, factor]
            local = codes.codes(factors, rng).var(axis=0, ddof=1)
            counts[np.argmin(local / variance), factor] += 1
        return counts

    def our_pairs() -> Array:
        return difference_points(vote_source(codes), votes, BATCH, np.random.RandomState(0))[0]

    def our_counts() -> Array:
        active = np.ones(LATENTS, bool)
        return count_votes(vote_source(codes), votes, BATCH, variance, active, np.random.RandomState(0))

    np.testing.assert_allclose(plain_pairs(), our_pairs())
    np.testing.assert_array_equal(plain_counts(), our_counts())
    loop = "one vote at a time"
    table("BetaVAE: drawing 1,000 pairs of batches of 64", {loop: plain_pairs, OURS: our_pairs})
    table("FactorVAE: drawing 1,000 batches of 64", {loop: plain_counts, OURS: our_counts})


def compare_encoders() -> None:
    """The same 256 images: at once and in the batches of 64 that suit the plain module best, and as the table does."""
    images, best = 256, 64
    for channels in (1, 3):
        encoder = create_networks("conv", (64, 64, channels), LATENTS)[0]
        initialise(encoder, torch.Generator().manual_seed(0))
        fast = accelerate(copy.deepcopy(encoder)).to(memory_format=torch.channels_last)
        pixels = np.random.default_rng(0).integers(0, 256, (images, 64, 64, channels), np.uint8)
        plain = partial(encode, encoder, pixels, contiguous=True)
        ours = partial(encode, fast, pixels, CPU_BATCH)
        assert torch.allclose(plain(images), ours(), atol=1e-5)
        work = {
            f"plain module, {images} at once": partial(plain, images),
            f"plain module, batches of {best}": partial(plain, best),
            f"{OURS}, batches of {CPU_BATCH}": ours,
        }
        table(f"Encoding {images} images, {channels} channel(s)", work, 9, images)


def encode(encoder: Any, pixels: Array, batch: int, contiguous: bool = False) -> torch.Tensor:
    """The means of all images; ``contiguous``: channels first, as a plain module is usually fed."""
    out = []
    with torch.inference_mode():
        for start in range(0, len(pixels), batch):
            images = to_tensor(pixels[start : start + batch])
            out.append(encoder(images.contiguous() if contiguous else images)[0])
    return torch.cat(out)


def bars(sizes: Sequence[int]) -> uw.data.Dataset:
    """Images of 64 x 64 x 3 for any three factors: the colour of an upright bar, its place, the height of a line."""
    factors = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)
    colour, height, place = (factors / np.array(sizes)).T[:, :, None]
    pixel = np.arange(64)
    bar, line = np.abs(pixel - 8 - 48 * place) < 6, np.abs(pixel - 4 - 56 * height) < 3
    grey = np.maximum(160 * bar[:, None, :], 255 * line[:, :, None])
    tint = 0.5 + 0.5 * np.cos(2 * np.pi * (colour + np.array([0, 1, 2]) / 3))
    images = (grey[..., None] * tint[:, None, None]).astype(np.uint8)
    return uw.data.from_arrays(images, factors, name="bars")


def compare_encodings(name: str, space: FactorSpace) -> None:
    """How many images the paper's metrics encode, at full size: every draw, or each image at most once."""
    codes = CountingTable(space)
    beta_vae.compute(codes)
    factor_vae.compute(codes)
    points = {"train": 10_000, "test": 5_000}
    rng = np.random.default_rng(0)
    for metric in PAPER:
        drawn = {"sample": ["train"], "split": ["train", "test"]}.get(metric.takes, [])
        codes.asked += sum(points[part] for part in drawn)
    codes.seen[rng.integers(0, len(space), sum(points.values()))] = True  # the same points serve all of these
    once = int(codes.seen.sum())
    print(f"\nImages to encode for the metrics of the paper, {name}: {len(space):,} images")
    print(f"  {'at every draw':<40}{codes.asked:>12,}{1:>13.1f}x")
    print(f"  {OURS:<40}{once:>12,}{codes.asked / once:>13.1f}x", flush=True)


class PlainProcess:
    """A process of its own for the plain module: memory that ours makes a process keep would speed it up there."""

    def __init__(self, encoder: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=serve_plainly, args=(theirs, encoder), daemon=True)
        self.process.start()

    def encode(self, pixels: Array) -> float:
        """The processor time (s) of encoding some images."""
        self.ours.send(pixels)
        return float(self.ours.recv())

    def stop(self) -> None:
        self.ours.send(None)
        self.process.join()


def serve_plainly(connection: Connection, encoder: Any) -> None:
    use_one_thread()
    while (pixels := connection.recv()) is not None:
        start = time.process_time()
        encode(encoder, pixels, BATCH, contiguous=True)
        connection.send(time.process_time() - start)


class EveryDraw:
    """A representation that runs the plain module for every image that is asked for, in batches of 64.

    To take minutes and not hours, only one image in ``SHARE`` is really encoded, in whole batches; the codes come from
    the table. ``encoding`` and ``fetching`` are the times (s) that this took, ``seen`` and ``asked`` numbers of images.
    """

    def __init__(self, plain: PlainProcess, codes: RepresentationTable) -> None:
        self.plain, self.table = plain, codes
        self.space, self.data = codes.data.space, codes.data
        self.encoding, self.fetching, self.seen, self.asked = 0.0, 0.0, 0, 0
        self.plain.encode(self.data.images(np.arange(BATCH)))  # warms up

    def codes(self, factors: Array, rng: object) -> Array:
        rows = self.data.rows(factors)
        self.asked += len(rows)
        while self.seen < self.asked / SHARE:
            start = time.process_time()
            images = self.data.images(rows[self.seen % len(rows) :][:BATCH])
            self.fetching += time.process_time() - start
            self.encoding += self.plain.encode(images)
            self.seen += len(images)
        return self.table.codes(rows).astype(np.float64)

    def sample(self, n: int, rng: Any) -> Sample:
        factors = self.space.sample(n, rng)
        return Sample(self.codes(factors, rng), factors.astype(np.int64))


def compare_evaluations(name: str, data: uw.data.Dataset, folder: Path) -> None:
    """All metrics of the paper at full size, for a model of a few hundred steps; one thread's processor time.

    Ours is timed in full. For the other way the metrics are run once more with their codes at hand, every metric on
    points of its own, and the time of encoding is that of the plain module, in a process of its own, for an even share
    of the images.
    """
    method = uw.methods.create("beta_vae", data, beta=1, seed=0)
    run = uw.train(method, data, steps=STEPS, out=folder / name, pictures=False)
    encoder = decelerate(copy.deepcopy(run.method.encoder)).eval()
    start = time.process_time()
    scores = uw.evaluate(run, data, [metric.name for metric in PAPER])
    ours = time.process_time() - start
    assert scores["factor_vae"].details["num_active"] > 1  # else there would be no votes
    codes = RepresentationTable(run, data)  # finds what was encoded just now
    plain = PlainProcess(encoder)
    every, rng = EveryDraw(plain, codes), np.random.default_rng(0)
    start = time.process_time()
    for metric in PAPER:
        parts: list[Any] = [every]
        if metric.takes != "interventions":
            parts = [every.sample(n, rng) for n in (10_000, 5_000)[: 1 + (metric.takes == "split")]]
        metric.compute(*parts, **metric.settings("paper"))
    learning = time.process_time() - start - every.fetching
    plain.stop()
    spent = every.fetching + every.encoding
    encoding = spent * every.asked / every.seen
    print(f"\nMetrics of the paper at full size, {name} (processor time)")
    for title, seconds in (("encoding at every draw", learning + encoding), (OURS, ours)):
        print(f"  {title:<40}{seconds:>12,.1f} s{(learning + encoding) / seconds:>11.1f}x")
    print(
        f"  (the metrics themselves: {learning:.1f} s. The first: {every.asked:,} images at the rate of",
        end="",
    )
    print(f" {every.seen:,} of them, {every.seen / spent:,.0f} images/s)", flush=True)


if __name__ == "__main__":
    main()
