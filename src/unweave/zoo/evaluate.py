"""The scores of a published model, computed again and compared with its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unweave.data import Dataset
from unweave.data.registry import load_described
from unweave.errors import ArgumentError, DataError, show
from unweave.evaluation import applies, find_metric
from unweave.evaluation import evaluate as evaluate_run
from unweave.training import Run, load
from unweave.zoo.card import CARD, Evaluation, card

METRICS = ("mig", "dci", "modularity", "sap", "reconstruction_error")
FULL = Evaluation("paper", 0, 10_000, 5_000, {}, {})
QUICK = Evaluation("paper", 0, 1_000, 500, {"reconstruction_error": {"num_images": 500}}, {})
# Other processors round differently; then some codes fall into another bin, and some fits stop elsewhere. Of few points
# a few make more: of the quick scores, and of small data sets.
TOLERANCE, TOLERANCE_OF_FEW = 0.005, 0.02


@dataclass(frozen=True)
class Comparison:
    """A score as the card has it, and as it was computed now.

    Examples
    --------
    >>> Comparison("mig", 0.25, 0.251, tolerance=0.005).same
    True
    """

    metric: str
    card: float
    value: float
    tolerance: float

    @property
    def same(self) -> bool:
        """Whether they differ by no more than the tolerance; of scores larger than 1, relative to the card's."""
        return abs(self.value - self.card) <= self.tolerance * max(1.0, abs(self.card))


def evaluate(name: str, data: Dataset | None = None, *, quick: bool = False) -> list[Comparison]:
    """Load a published model, compute the scores of its card, and compare.

    Parameters
    ----------
    name
        of a model that comes with the package, or its address.
    data
        the data set that the card is about; None: it is loaded by its name.
    quick
        the scores of few points instead, which take seconds.

    Returns
    -------
    list of Comparison
        one for each score of the card.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), np.uint8)
    >>> data = uw.data.from_arrays(images, {"a": np.arange(40) % 2}, name="noise")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=1, out="run", pictures=False)
    >>> small = uw.zoo.Evaluation("paper", 0, 20, 10, {}, {})
    >>> card = uw.zoo.publish(run, "noise/vae", "models", data=data, metrics=["mig"], full=small, quick=small)
    >>> [(each.metric, each.same) for each in uw.zoo.evaluate("models/noise/vae", data)]
    [('mig', True)]
    """
    about = card(name)
    run = load(about.address)
    if data is None:
        data = load_described(run.spec.data, run.spec.folder)
    elif data.name != run.spec.data["name"]:
        raise ArgumentError("data", data.name, f"the card is about {run.spec.data['name']}")
    expected = about.quick if quick else about.full
    scores = scores_of(run, data, expected).scores
    for key in expected.scores:
        if key not in scores:
            raise DataError(
                f"{about.folder / CARD}: has a score {show(key)}, which no metric gives: {', '.join(scores)}"
            )
    size = run.spec.data["size"]
    few = quick or (size is not None and size < expected.num_train + expected.num_test)
    tolerance = TOLERANCE_OF_FEW if few else TOLERANCE
    return [Comparison(key, value, scores[key], tolerance) for key, value in expected.scores.items()]


def scores_of(
    run: Run, data: Dataset, settings: Evaluation, metrics: Sequence[str] | None = None
) -> Evaluation:
    """The scores of a run by the settings of an evaluation: of its metrics, or of ``metrics`` where they apply.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((40, 8, 8, 1), np.uint8), {"a": np.arange(40) % 2})
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> list(scores_of(run, data, Evaluation("paper", 0, 20, 10, {}, {}), ["mig"]).scores)
    ['mig']
    """
    asked = settings.metrics if metrics is None else metrics
    chosen = [name for name in asked if metrics is None or applies(find_metric(name), data, run.method)]
    options: dict[str, Any] = {
        "protocol": settings.protocol,
        "seed": settings.seed,
        "num_train": settings.num_train,
        "num_test": settings.num_test,
        "params": {name: values for name, values in settings.params.items() if name in chosen},
    }
    scores: dict[str, float] = {}
    for name, score in evaluate_run(run, data, chosen, **options).items():
        scores[name] = float(score.value)
        scores |= {f"{name}.{part}": float(score.details[part]) for part in score.shown}
    return replace(settings, params=options["params"], scores=scores)
