"""What is chosen for a folder of photographs and a time: image size, network, likelihood, latents, strengths, runs.

Each choice has a sentence that says why, for the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from unweave.arrays import AnyArray, ByteArray
from unweave.discovery.photographs import Photographs

ENOUGH_STEPS = 6_000  # of a run: below this, images or networks get smaller
FEW_STEPS = 2_000  # below this, strengths are not compared
FEWEST_STEPS = 50
MOST_STEPS = 20_000
FEWEST_SEEDS, MOST_SEEDS = 6, 10  # axes of five trainings can agree by chance; ten are enough
PILOT_PART = 0.3  # of the training
FEWEST_PILOTS, MOST_PILOTS = 3, 5  # runs of each setting; two would not show how much they differ by chance
ENOUGH_PILOT_STEPS = 3_000  # of a pilot run: beyond this, time is better spent on more of them
FEW_PILOT_STEPS = 1_000  # below this, strengths are not compared
LEARNING_RATE = 1e-3  # at its peak, after a warm-up and before a cosine's decay
TRAINING_PART = 0.85  # of the time; the rest reads, compares and writes
MANY_LATENTS, FEW_LATENTS = 10, 3
_SAMPLE = 2_000  # photographs by which the choice is made
# Image side and width of the network, from the best to the cheapest.
_RUNGS = ((64, 1.0), (64, 0.5), (32, 0.5))
_SMALL_RUNGS = ((0, 1.0), (0, 0.5))  # of photographs that are small already


@dataclass(frozen=True)
class Choice:
    """Something that was chosen, and why."""

    what: str
    value: str
    why: str


@dataclass(frozen=True)
class Setting:
    """A method with its hyperparameters; ``label`` names it for people."""

    method: str
    hyperparameters: Mapping[str, Any]
    label: str


@dataclass(frozen=True)
class Plan:
    """All that decides the runs of a discovery, and why it is so.

    Parameters
    ----------
    side, width
        of the images in pixels, and of the network (1: the papers').
    reconstruction, variance, latent_size
        of the method; the variance of a pixel, 1 where the likelihood has none.
    steps, batch_size, learning_rate
        of the training.
    settings, pilot_seeds, pilot_steps
        among which one is chosen by short runs of each, the usual one first; a single setting needs none.
    seeds
        how often the chosen setting is trained, each time from another beginning than any before.
    choices
        the same for people.
    """

    side: int
    width: float
    reconstruction: str
    variance: float
    latent_size: int
    steps: int
    pilot_seeds: int
    pilot_steps: int
    batch_size: int
    learning_rate: float
    settings: tuple[Setting, ...]
    seeds: int
    choices: tuple[Choice, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Plan:
        """The plan of a file."""
        return Plan(
            **{
                **values,
                "settings": tuple(Setting(**each) for each in values["settings"]),
                "choices": tuple(Choice(**each) for each in values["choices"]),
            }
        )


def choose(
    photographs: Photographs,
    minutes: float,
    *,
    steps: int | None = None,
    seeds: int | None = None,
    latent_size: int | None = None,
    size: int | None = None,
    strength: float | None = None,
    processes: int = 1,
    seconds_per_step: Callable[[Plan], float],
) -> Plan:
    """Choose everything for these photographs and this time.

    Parameters
    ----------
    photographs
        which are examined: their contrast, and how many independent ways of varying stand out from chance.
    minutes
        for everything together.
    steps
        of each run; given, no speed is measured and the time does not matter.
    seeds, latent_size, size, strength
        an expert's choices.
    processes
        how many runs are trained side by side.
    seconds_per_step
        measures a plan: the seconds of a step of each run, with that many side by side.
    """
    rows = _sample(photographs.distinct)
    small = photographs.small[rows]
    reconstruction, variance, likelihood = _choose_likelihood(photographs.images[rows])
    latents, latents_choice = _choose_latents(small, latent_size)
    batch_size = 64 if len(photographs.distinct) >= 100 else 16
    settings = _settings() if strength is None else (_tcvae(strength),)

    def plan(
        side: int, width: float, steps: int, pilots: tuple[int, int], used: Sequence[Setting], seeds: int
    ) -> Plan:
        return Plan(
            side,
            width,
            reconstruction,
            variance,
            latents,
            steps,
            *pilots,
            batch_size,
            LEARNING_RATE,
            tuple(used),
            seeds,
            (),
        )

    if photographs.side < 64:
        rungs = [(photographs.side, width) for _, width in _SMALL_RUNGS]
    else:
        rungs = [rung for rung in _RUNGS if size in (None, rung[0])]
    if steps is not None:
        side, width = rungs[-1] if size is None else rungs[0]
        pilots = (FEWEST_PILOTS, steps) if len(settings) > 1 else (0, 0)
        chosen = plan(side, width, steps, pilots, settings, seeds or FEWEST_SEEDS)
        why_size = "the number of steps was given, so the cheapest networks are taken"
        why_runs = "given by you"
    else:
        seconds = 60 * minutes * TRAINING_PART
        chosen, why_size, why_runs = _fit(plan, rungs, settings, seeds, seconds, processes, seconds_per_step)
    names = "; ".join(setting.label for setting in chosen.settings)
    pixels = f"{chosen.side} × {chosen.side} pixels, {'colour' if photographs.channels == 3 else 'grey'}"
    choices = (
        Choice("Image size", pixels, f"The photographs are cut to a square and made small: {why_size}."),
        Choice(
            "Network",
            f"four convolution layers, {'full' if chosen.width == 1 else 'half'} width",
            "The network of the research papers: one half turns a photograph into a few numbers, the other half "
            "draws the photograph again from these numbers alone.",
        ),
        likelihood,
        latents_choice,
        Choice("Methods and strengths", names, _why_settings(chosen, strength)),
        Choice(
            "Runs",
            _runs_in_words(chosen),
            f"The chosen setting is trained {chosen.seeds} times from different random beginnings: what comes out each "
            f"time is more than luck. The number of steps: {why_runs}.",
        ),
    )
    return Plan(**{**vars(chosen), "choices": choices})


def components_beyond_chance(small: ByteArray, seed: int = 0) -> int:
    """How many principal components of images (n, h, w, c) vary more than if pixels were unrelated.

    Horn's parallel analysis: the variances are compared with those of the same images with each pixel's values
    permuted over images.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.integers(0, 256, (300, 4, 4, 1), np.uint8)
    >>> components_beyond_chance(noise) <= 1
    True
    """
    points = small.reshape(len(small), -1).astype(np.float64)
    points = points - points.mean(axis=0)
    rng = np.random.default_rng(seed)
    real = np.linalg.svd(points, compute_uv=False)
    chance = np.linalg.svd(rng.permuted(points, axis=0), compute_uv=False)
    above = real > chance * 1.02
    return int(np.argmin(above)) if not above.all() else len(above)


def _fit(
    plan: Callable[..., Plan],
    rungs: Sequence[tuple[int, float]],
    settings: Sequence[Setting],
    seeds: int | None,
    seconds: float,
    processes: int,
    measure: Callable[[Plan], float],
) -> tuple[Plan, str, str]:
    """The best images and networks with which the runs get enough steps; else the cheapest, and fewer runs.

    Runs are trained side by side, as many as there are processes, then the next ones: the time of all is that of as
    many one after the other as there are such rounds. A round is filled: more runs in it take no longer.
    """
    fewest = seeds or FEWEST_SEEDS
    fewest_rounds = rounds(fewest, processes)
    part = 1 - PILOT_PART if len(settings) > 1 else 1.0
    each = steps = 0.0
    for side, width in rungs:
        each = measure(plan(side, width, 1, (0, 0), settings, fewest))
        steps = part * seconds / each  # of a process, in all rounds of final runs together
        if steps >= ENOUGH_STEPS * fewest_rounds:
            break
    pilots = _pilots(PILOT_PART * seconds / each, len(settings), processes)
    if steps < FEW_STEPS * fewest_rounds or pilots[1] < FEW_PILOT_STEPS:
        settings = settings[:1]
    if len(settings) == 1:
        steps, pilots = seconds / each, (0, 0)
    most_rounds = max(fewest_rounds, int(steps / ENOUGH_STEPS / 1.5))
    count = seeds or int(np.clip(most_rounds * processes, fewest, MOST_SEEDS))
    chosen = plan(
        side,
        width,
        int(np.clip(steps / rounds(count, processes), FEWEST_STEPS, MOST_STEPS)),
        pilots,
        settings,
        count,
    )
    why_size = (
        "there is time for this size"
        if (side, width) == rungs[0]
        else "larger images or networks would get too few training steps in the time given"
    )
    speed = f"{processes * chosen.batch_size / each:,.0f} photographs a second were measured on this machine"
    if processes > 1:
        speed += f" with {processes} runs side by side"
    limit = ", and more than this many would not help" if chosen.steps == MOST_STEPS else ""
    return chosen, why_size, f"what fits into the time, as {speed}{limit}"


def _pilots(steps: float, settings: int, processes: int) -> tuple[int, int]:
    """How many pilot runs of each setting, and their steps, where each process has so many steps for them.

    As many as get enough steps; if the fewest do not, those that fill their last round, which cost no steps.
    """

    def steps_of(count: int) -> int:
        return int(steps / rounds(count * settings, processes))

    least = min(ENOUGH_PILOT_STEPS, steps_of(FEWEST_PILOTS))
    count = max(count for count in range(FEWEST_PILOTS, MOST_PILOTS + 1) if steps_of(count) >= least)
    return count, min(steps_of(count), MOST_STEPS)


def rounds(runs: int, processes: int) -> int:
    """How many runs a process trains one after the other at most.

    Examples
    --------
    >>> rounds(6, 4)
    2
    """
    return -(-runs // processes)


def most_runs(seeds: int | None, strength: float | None) -> int:
    """How many runs there may be to train side by side."""
    pilot = MOST_PILOTS * len(_settings()) if strength is None else 0
    return max(pilot, seeds or MOST_SEEDS)


def _settings() -> tuple[Setting, ...]:
    """Methods and strengths, the usual one first: it is taken unless another is clearly better."""
    return (_tcvae(8.0), _tcvae(20.0), Setting("beta_vae", {"beta": 3.0}, "β-VAE, strength 3"))


def _tcvae(strength: float) -> Setting:
    return Setting("beta_tcvae", {"beta": strength}, f"β-TCVAE, strength {strength:g}")


def _why_settings(plan: Plan, strength: float | None) -> str:
    if strength is not None:
        return "Given by you."
    if len(plan.settings) == 1:
        return (
            "It pushes the numbers to be independent of each other. There is no time to compare strengths: all of it "
            "goes into training this one anew."
        )
    return (
        "Each pushes the numbers to be independent of each other in its own way and strength. Nobody can know "
        f"beforehand which suits your photographs, so each is tried {plan.pilot_seeds} times for a short while. The "
        "first is the usual one; another takes its place if the numbers of its trainings agree clearly better, by more "
        "than chance explains. The chosen one is then trained anew, and only these new trainings are judged."
    )


def _runs_in_words(plan: Plan) -> str:
    final = f"{plan.seeds} runs of {plan.steps:,} steps, {plan.batch_size} photographs each"
    if not plan.pilot_steps:
        return final
    return f"{plan.pilot_seeds * len(plan.settings)} short runs of {plan.pilot_steps:,} steps to choose, then {final}"


def _choose_likelihood(images: AnyArray) -> tuple[str, float, Choice]:
    values = np.asarray(images).reshape(-1)
    extreme = float(np.mean((values <= 25) | (values >= 230)))
    if extreme >= 0.9:
        return (
            "bernoulli",
            1.0,
            Choice(
                "Measure of likeness",
                "black or white (Bernoulli)",
                f"{extreme:.0%} of all pixels are nearly black or white: a drawing is judged by whether each pixel "
                "is on.",
            ),
        )
    variance = max(float(np.var(np.asarray(images) / 255, axis=0).mean()), 1e-4)
    return (
        "gaussian",
        variance,
        Choice(
            "Measure of likeness",
            f"shades (Gaussian, standard deviation {variance**0.5:.2g})",
            f"Only {extreme:.0%} of all pixels are nearly black or white: a drawing is judged by how far each pixel's "
            "shade is off, compared with how much a pixel varies from photograph to photograph.",
        ),
    )


def _choose_latents(small: ByteArray, given: int | None) -> tuple[int, Choice]:
    beyond = components_beyond_chance(small)
    size = given or int(np.clip(beyond, FEW_LATENTS, MANY_LATENTS))
    why = (
        f"{beyond} independent ways of varying stand out from chance in small versions of the photographs; "
        f"between {FEW_LATENTS} and {MANY_LATENTS} are taken."
    )
    if beyond == 0:
        why = "Nothing stands out from chance in small versions of the photographs: a bad sign. The fewest are taken."
    why += " Those that are not needed stay unused, and are recognised by that."
    return size, Choice("Numbers per photograph", str(size), "Given by you." if given else why)


def _sample(rows: AnyArray) -> AnyArray:
    return (
        rows
        if len(rows) <= _SAMPLE
        else np.sort(np.random.default_rng(0).choice(rows, _SAMPLE, replace=False))
    )
