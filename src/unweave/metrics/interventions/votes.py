"""Batches of codes in which one factor is held: what the metrics that intervene on factors use."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError
from unweave.metrics.interventions.draws import randints
from unweave.metrics.sample import Sample

Held = Literal["pair", "batch"]
Random = np.random.RandomState

_POINTS_PER_BLOCK = 32_768


class Interventions(Protocol):
    """A representation that can be asked for the codes of images with chosen factors."""

    @property
    def space(self) -> FactorSpace:
        """The factors, all discrete."""

    def codes(self, factors: IntArray, rng: Random) -> FloatArray:
        """Codes (n, D) of images of these factors (n, K).

        ``rng`` is for what is random about an image of given factors (noise, a nuisance factor). Where
        nothing is, it must be left alone: many batches are then asked for in one call.
        """


@runtime_checkable
class Copies(Interventions, Protocol):
    """One whose images of given factors differ in a nuisance factor only, drawn by ``rng.randint(copies, size=n)``.

    It draws by itself in ``codes``; votes draw many at once and ask for what they drew.
    """

    @property
    def copies(self) -> int:
        """The number of values of the nuisance factor; 1 if there is none, or if more than it is random."""

    def codes_of(self, factors: IntArray, copy: IntArray) -> FloatArray:
        """Codes (n, D) of images of these factors (n, K) and values (n,) of the nuisance factor."""


class Votes(NamedTuple):
    """The batches of a number of votes: in each vote one factor is held.

    ``factor`` (votes,) is the number of that factor, ``codes`` has shape (votes, batches, batch_size, D).
    """

    factor: IntArray
    codes: FloatArray


class VoteSource(Protocol):
    """What draws batches, from a representation or from a table."""

    @property
    def num_factors(self) -> int:
        """K, the number of factors."""

    @property
    def varying(self) -> IntArray:
        """The factors with more than one value: only these are held."""

    @property
    def judging(self) -> VoteSource:
        """What draws the votes to judge on: other points than those to learn from, where they are finite."""

    def sample(self, n: int, rng: Random) -> FloatArray:
        """Codes (n, D) of independent points."""

    def votes(self, number: int, batches: int, batch_size: int, held: Held, rng: Random) -> Votes:
        """Draw votes, each with a factor drawn uniformly from ``varying``.

        ``held="pair"``: point i of each batch has the value of point i of the first batch.
        ``held="batch"``: all points of a batch have the value of its first point.
        """


class RowInterventions:
    """Rows with known factors as a representation: for codes that cannot be asked for other factors.

    A held factor has the value of a row drawn uniformly among those whose value another row has too. The rows
    of a batch that holds it are drawn uniformly, with replacement, among all with this value; the second row of
    a pair is never the first again (else pairs of a factor with many values would be recognised by how small
    their differences are). The other factors are as they are in these rows: independent of the held one only if
    they are so among all rows.

    A factor of which no value occurs twice cannot be held: ArgumentError.

    Parameters
    ----------
    factors
        (n, K) of the rows.
    codes_of
        gives the codes (m, D) of positions (m,) of rows, and may draw from the generator what is random about them.
    test
        other rows, from which the votes to judge on are drawn; a factor that cannot be held among them is left out.
        None: all are drawn from the same rows.

    Examples
    --------
    >>> factors = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> rows = RowInterventions(factors, lambda positions, rng: 1.0 * factors[positions])
    >>> votes = rows.votes(1, 2, 3, "pair", np.random.RandomState(0))
    >>> votes.factor, np.array_equal(votes.codes[0, 0, :, 1], votes.codes[0, 1, :, 1])
    (array([0]), False)
    """

    def __init__(
        self,
        factors: IntArray,
        codes_of: Callable[[IntArray, Random], FloatArray],
        test: RowInterventions | None = None,
    ) -> None:
        self.factors: IntArray = factors
        self.num_factors = factors.shape[1]
        self.varying = np.flatnonzero((factors != factors[0]).any(axis=0))
        self.judging = self
        if test is not None:
            self.varying = np.array([k for k in self.varying if _can_be_held(test.factors[:, k])], np.int64)
            self.judging = RowInterventions._holding(test, self.varying)
        self._codes_of = codes_of
        self._groups: dict[int, _Groups] = {}

    @classmethod
    def _holding(cls, rows: RowInterventions, varying: IntArray) -> RowInterventions:
        """The same rows, of which only some factors are held."""
        chosen = copy.copy(rows)
        chosen.varying, chosen.judging = varying, chosen
        return chosen

    def sample(self, n: int, rng: Random) -> FloatArray:
        """Codes (n, D) of rows drawn uniformly with replacement."""
        return self._codes_of(rng.randint(len(self.factors), size=n), rng)

    def votes(self, number: int, batches: int, batch_size: int, held: Held, rng: Random) -> Votes:
        """Draw votes as :class:`VoteSource` says."""
        factor = self.varying[rng.randint(len(self.varying), size=number)]
        rows = np.empty((number, batches, batch_size), dtype=np.int64)
        for k in self.varying.tolist():
            groups = self._group(k)
            chosen = np.flatnonzero(factor == k)
            if held == "pair":
                rows[chosen, 0] = groups.first(rng, (len(chosen), batch_size))
                rows[chosen, 1:] = groups.others(
                    rng, rows[chosen, :1], (len(chosen), batches - 1, batch_size)
                )
            else:
                rows[chosen, :, :1] = groups.first(rng, (len(chosen), batches, 1))
                rows[chosen, :, 1:] = groups.fellows(rng, rows[chosen, :, :1], batch_size - 1)
        return Votes(factor, self._codes_of(rows.ravel(), rng).reshape(*rows.shape, -1))

    def _group(self, k: int) -> _Groups:
        if k not in self._groups:
            self._groups[k] = _Groups(k, self.factors[:, k])
        return self._groups[k]


class TableInterventions(RowInterventions):
    """The rows of a sample as a representation: :class:`RowInterventions` of codes that are there already.

    Parameters
    ----------
    sample
        the rows.
    test
        other rows, from which the votes to judge on are drawn; None: all are drawn from ``sample``.
    """

    def __init__(self, sample: Sample, test: Sample | None = None) -> None:
        judging = None
        if test is not None:
            judging = RowInterventions(test.factors, lambda rows, rng: test.codes[rows])
        super().__init__(sample.factors, lambda rows, rng: sample.codes[rows], judging)
        for k in self.varying.tolist():
            self._group(k)  # raises if the factor cannot be held


def _can_be_held(values: IntArray) -> bool:
    """Whether a factor has several values, one of them twice."""
    counts = np.unique(values, return_counts=True)[1]
    return len(counts) > 1 and bool(counts.max() > 1)


class _Groups:
    """The rows by the value of one factor: those of group g are ``order[start[g] :][:count[g]]``."""

    def __init__(self, factor: int, values: IntArray) -> None:
        _, group, self.count = np.unique(values, return_inverse=True, return_counts=True)
        small = np.int32 if len(values) < 2**31 else np.int64  # there are up to a million rows
        self.group = group.astype(small)
        self.start = np.cumsum(self.count) - self.count
        self.order = np.argsort(self.group, kind="stable").astype(small)
        self.position = np.empty_like(self.order)
        self.position[self.order] = np.arange(len(values), dtype=small)
        self.repeated = np.flatnonzero(self.count[self.group] > 1).astype(small)
        if not len(self.repeated):
            raise ArgumentError(
                f"factors[:, {factor}]",
                f"{len(values)} different values",
                "needs a value that occurs twice: bin it",
            )

    def first(self, rng: Random, shape: tuple[int, ...]) -> IntArray:
        """Rows whose value another row has too."""
        return self.repeated[rng.randint(len(self.repeated), size=shape)].astype(np.int64)

    def others(self, rng: Random, rows: IntArray, shape: tuple[int, ...]) -> IntArray:
        """For each of the rows another one with the same value."""
        start, count = self.start[self.group[rows]], self.count[self.group[rows]]
        step = 1 + np.floor(rng.random_sample(shape) * (count - 1)).astype(np.int64)
        others: IntArray = self.order[start + (self.position[rows] - start + step) % count]
        return others

    def fellows(self, rng: Random, rows: IntArray, n: int) -> IntArray:
        """For rows (..., 1) any n with the same value (..., n)."""
        group = self.group[rows]
        step = np.floor(rng.random_sample((*rows.shape[:-1], n)) * self.count[group]).astype(np.int64)
        fellows: IntArray = self.order[self.start[group] + step]
        return fellows


class SpaceVotes:
    """Votes of a representation that can be asked for any factors, in disentanglement_lib's order of draws.

    Per vote: the held factor; for each batch n values of each factor; then, per batch, what its images draw.
    If the images draw nothing, or only one nuisance factor, many votes are drawn at once, with the same stream.
    """

    def __init__(self, representation: Interventions) -> None:
        self.space = representation.space
        if not self.space.discrete:
            raise ArgumentError("factors", list(self.space.continuous), "only discrete factors can be held")
        self.num_factors = self.space.num_factors
        self.varying = np.array(
            [k for k, size in enumerate(self.space.grid_shape) if size > 1], dtype=np.int64
        )
        self._sizes = self.space.grid_shape
        self._representation = representation
        self._copies = (
            representation if isinstance(representation, Copies) and representation.copies > 1 else None
        )
        self._images_draw = False

    @property
    def judging(self) -> SpaceVotes:
        """Itself: votes are drawn anew from all images, as the metrics' papers do."""
        return self

    def sample(self, n: int, rng: Random) -> FloatArray:
        """Codes (n, D) of images with all factors drawn."""
        return self._ask(self.space.sample(n, rng).astype(np.int64), rng)

    def votes(self, number: int, batches: int, batch_size: int, held: Held, rng: Random) -> Votes:
        """Draw votes as :class:`VoteSource` says."""
        if self._copies is not None:
            factor, factors, copy = self._factors(number, batches, batch_size, held, rng, self._copies.copies)
            flat = factors.reshape(-1, self.num_factors)
            codes = self._check(self._copies.codes_of(flat, copy.reshape(-1)), flat)
            return Votes(factor, codes.reshape(number, batches, batch_size, -1))
        if not self._images_draw:
            before = rng.get_state(legacy=False)
            factor, factors, _ = self._factors(number, batches, batch_size, held, rng)
            drawn = rng.get_state(legacy=False)
            codes = self._ask(factors.reshape(-1, self.num_factors), rng)
            if _same_state(drawn, rng.get_state(legacy=False)):
                return Votes(factor, codes.reshape(number, batches, batch_size, -1))
            rng.set_state(before)
            self._images_draw = True
        singles = [self._vote(batches, batch_size, held, rng) for _ in range(number)]
        return Votes(np.concatenate([v.factor for v in singles]), np.stack([v.codes for v in singles]))

    def _vote(self, batches: int, batch_size: int, held: Held, rng: Random) -> Votes:
        factor, factors, _ = self._factors(1, batches, batch_size, held, rng)
        return Votes(factor, np.stack([self._ask(batch, rng) for batch in factors[0]]))

    def _factors(
        self, number: int, batches: int, batch_size: int, held: Held, rng: Random, copies: int = 1
    ) -> tuple[IntArray, IntArray, IntArray]:
        """The held factors (votes,), all factors (votes, batches, batch_size, K) and the nuisance factor."""
        calls = [(size, batch_size) for size in self._sizes] * batches + [(copies, batch_size)] * batches
        drawn = randints(rng, [(len(self.varying), 1), *calls], number)
        factor = self.varying[drawn[:, 0]]
        values, copy = np.split(drawn[:, 1:], [batches * self.num_factors * batch_size], axis=1)
        values = values.reshape(number, batches, self.num_factors, batch_size)
        everyone = np.arange(number)
        held_values = values[everyone, :, factor]
        values[everyone, :, factor] = held_values[:, :1] if held == "pair" else held_values[:, :, :1]
        return factor, np.ascontiguousarray(values.swapaxes(2, 3)), copy

    def _ask(self, factors: IntArray, rng: Random) -> FloatArray:
        return self._check(self._representation.codes(factors, rng), factors)

    def _check(self, given: FloatArray, factors: IntArray) -> FloatArray:
        codes = np.ascontiguousarray(given, dtype=np.float64)
        if codes.ndim != 2 or len(codes) != len(factors) or codes.shape[1] == 0:
            raise ArgumentError(
                "codes",
                f"array of shape {codes.shape}",
                f"the representation has to give ({len(factors)}, D)",
            )
        if not np.isfinite(codes).all():
            row, column = np.argwhere(~np.isfinite(codes))[0].tolist()
            value = f"{codes[row, column]} in latent {column} for factors {factors[row].tolist()}"
            raise ArgumentError("codes", value, "needs finite numbers")
        return codes


def vote_source(representation: Interventions | RowInterventions) -> VoteSource:
    """What draws the batches. Fewer than two factors with more than one value: ArgumentError."""
    source: VoteSource
    source = representation if isinstance(representation, RowInterventions) else SpaceVotes(representation)
    if len(source.varying) < 2:
        value = f"{len(source.varying)} of {source.num_factors} with more than one value"
        raise ArgumentError("factors", value, "needs two: which factor is held is what the metric asks")
    return source


def vote_blocks(
    source: VoteSource, number: int, batches: int, batch_size: int, held: Held, rng: Random
) -> Iterator[Votes]:
    """``number`` votes in blocks that fit a processor's cache."""
    block = max(1, _POINTS_PER_BLOCK // (batches * batch_size))
    for start in range(0, number, block):
        yield source.votes(min(block, number - start), batches, batch_size, held, rng)


def _same_state(one: Any, other: Any) -> bool:
    return bool(
        one["state"]["pos"] == other["state"]["pos"]
        and one["has_gauss"] == other["has_gauss"]
        and np.array_equal(one["state"]["key"], other["state"]["key"])
    )
