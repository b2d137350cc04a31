"""Speed of the metrics room: each metric next to the plain way of computing it, and the price of encoding.

Competitors take turns on one thread and figures are medians, so that a slow moment of the machine hits all of
them. Where the plain way would take minutes the work is scaled down, for both; ratios are within one run.
Wherever both ways must give the same numbers, this is checked first.
"""

from __future__ import annotations

import copy
import os
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
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
from unweave.metrics import Sample
from unweave.metrics.beta_vae import beta_vae, difference_points
from unweave.metrics.discretise import discretise
from unweave.metrics.evaluate import PAPER, PROTOCOLS
from unweave.metrics.factor_vae import count_votes, factor_vae
from unweave.metrics.interventions import vote_source
from unweave.metrics.mutual_information import mutual_information_matrix
from unweave.networks import accelerate, create_networks, initialise

Array = np.ndarray[Any, Any]
Work = dict[str, Callable[[], object]]

SIZES = {"dSprites": (3, 6, 40, 32, 32), "Cars3D": (4, 24, 183)}
LATENTS, BATCH = 10, 64
OURS = "unweave"


def main() -> None:
    use_one_thread()
    compare_information()
    compare_line_classifiers()
    compare_explicitness()
    compare_boosting()
    compare_votes()
    compare_encoders()
    for name, data in (
        ("dSprites", uw.data.load("dsprites")),
        ("Cars3D's size", random_images(SIZES["Cars3D"])),
    ):
        compare_encodings(name, data.space)
        compare_evaluations(name, data)


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
    assert abs(plain_mig() - uw.metrics.score("mig", *sample).value) < 1e-10
    loop = "mutual_info_score for each pair"
    title = "10,000 points, 10 codes, factors of dSprites"
    table(
        f"Mutual information matrix: {title}",
        {loop: lambda: plain_matrix(bins), OURS: lambda: mutual_information_matrix(bins, sample.factors)},
    )
    table(f"MIG: {title}", {loop: plain_mig, OURS: lambda: uw.metrics.score("mig", *sample)})
    table(
        f"Modularity: {title}",
        {
            loop: lambda: plain_matrix(discretise(sample.codes)),
            OURS: lambda: uw.metrics.score("modularity", *sample),
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

    found = uw.metrics.score("sap", *train, test=test)
    np.testing.assert_allclose(
        plain(), found.details["matrix"], atol=0.02
    )  # liblinear stops short of the optimum
    table(
        "SAP: 5,000 points, 10 codes, factors of dSprites",
        {"LinearSVC for each pair": plain, OURS: lambda: uw.metrics.score("sap", *train, test=test)},
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

    assert abs(plain() - uw.metrics.score("explicitness", *train, test=test).value) < 1e-6
    table(
        "Explicitness: 5,000 points, 10 codes, factors of 3, 6 and 10 values",
        {
            "LogisticRegression, roc_auc_score": plain,
            OURS: lambda: uw.metrics.score("explicitness", *train, test=test),
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
        plain(), uw.metrics.score("dci", *train, test=test).details["matrix"], atol=1e-6
    )
    table(
        "DCI by boosted trees: 1,000 points, 10 codes, factors of 4 and 8 values",
        {"GradientBoostingClassifier": plain, OURS: lambda: uw.metrics.score("dci", *train, test=test)},
        3,
    )


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
    batch = 256
    for channels in (1, 3):
        encoder = create_networks("conv", (64, 64, channels), LATENTS)[0]
        initialise(encoder, torch.Generator().manual_seed(0))
        fast = accelerate(copy.deepcopy(encoder)).to(memory_format=torch.channels_last)
        pixels = np.random.default_rng(0).integers(0, 256, (batch, 64, 64, channels), np.uint8)

        def plain(encoder: Any = encoder, pixels: Array = pixels) -> Any:
            with torch.inference_mode():
                return encoder(to_tensor(pixels).contiguous())[0]

        def ours(encoder: Any = fast, pixels: Array = pixels) -> Any:
            with torch.inference_mode():
                return encoder(to_tensor(pixels))[0]

        assert torch.allclose(plain(), ours(), atol=1e-5)
        table(
            f"Encoding, batch {batch}, {channels} channel(s)", {"plain module": plain, OURS: ours}, 9, batch
        )


def random_images(sizes: Sequence[int]) -> uw.data.Dataset:
    factors = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))
    images = np.random.default_rng(0).integers(0, 256, (len(factors), 64, 64, 3), np.uint8)
    return uw.data.from_arrays(images, factors)


def compare_encodings(name: str, space: FactorSpace) -> None:
    """How many images the paper's metrics encode, at full size: every draw, or each image at most once."""
    codes = CountingTable(space)
    beta_vae(codes)
    factor_vae(codes)
    points = {"train": 10_000, "test": 5_000}
    rng = np.random.default_rng(0)
    for kind in [uw.metrics.find(metric).kind for metric in PAPER]:
        drawn = {"sample": ["train"], "split": ["train", "test"]}.get(kind, [])
        codes.asked += sum(points[part] for part in drawn)
    codes.seen[rng.integers(0, len(space), sum(points.values()))] = True  # the same points serve all of these
    once = int(codes.seen.sum())
    print(f"\nImages to encode for the metrics of the paper, {name}: {len(space):,} images")
    print(f"  {'at every draw':<40}{codes.asked:>12,}{1:>13.1f}x")
    print(f"  {OURS:<40}{once:>12,}{codes.asked / once:>13.1f}x", flush=True)


def compare_evaluations(name: str, data: uw.data.Dataset) -> None:
    """All metrics of the paper for an untrained model: a fiftieth of the votes, a tenth of the points."""
    votes = {"num_train": 200, "num_eval": 100}
    params: dict[str, dict[str, Any]] = {
        "beta_vae": votes,
        "factor_vae": votes | {"num_variance_estimate": 1_000},
    }
    method = uw.methods.create("beta_vae", data, seed=0)
    encoder = accelerate(copy.deepcopy(method.encoder)).to(memory_format=torch.channels_last)
    spent = 0.0

    class EveryDraw:
        space = data.space

        def codes(self, factors: Array, rng: object) -> Array:
            nonlocal spent
            images, out = data.images(data.rows(factors)), []
            start = time.perf_counter()
            with torch.inference_mode():
                for first in range(0, len(images), 256):
                    out.append(encoder(to_tensor(images[first : first + 256]))[0].numpy())
            spent += time.perf_counter() - start
            return np.concatenate(out).astype(np.float64)

        def sample(self, n: int, rng: Any) -> Sample:
            factors = data.space.sample(n, rng)
            return Sample(self.codes(factors, rng), factors.astype(np.int64))

    def plain() -> None:
        rng, representation = np.random.default_rng(0), EveryDraw()
        for metric in PAPER:
            found = uw.metrics.find(metric)
            parts: list[Any] = [representation]
            if found.kind != "interventions":
                parts = [representation.sample(n, rng) for n in (1_000, 500)[: 1 + (found.kind == "split")]]
            found.function(*parts, **PROTOCOLS["paper"].get(metric, {}), **params.get(metric, {}))

    def ours() -> None:
        uw.evaluate(method, data, list(PAPER), num_train=1_000, num_test=500, params=params)

    title = f"Metrics of the paper, untrained model, {name}: 300 votes, 1,500 points"
    table(title, {"encoding at every draw": plain, OURS: ours}, 1)
    print(f"  ({spent:.1f} s of the first are encoding)")


if __name__ == "__main__":
    main()
