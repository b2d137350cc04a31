import numpy as np
import pytest

from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError
from unweave.metrics.interventions.beta_vae import beta_vae
from unweave.metrics.interventions.votes import (
    SpaceVotes,
    TableInterventions,
    vote_blocks,
    vote_source,
)
from unweave.metrics.sample import check_sample

SPACE = FactorSpace(["shape", "scale", "x"], [3, 6, 17])


class Numbers:
    """Codes = factors, with a nuisance value of its own if ``nuisance`` > 1, drawn for some images only."""

    def __init__(self, space=SPACE, nuisance=1, only_shape=None):
        self.space, self.nuisance, self.only_shape = space, nuisance, only_shape
        self.asked = []

    def codes(self, factors, rng):
        self.asked.append(len(factors))
        extra = np.zeros(len(factors))
        drawing = np.ones(len(factors), bool) if self.only_shape is None else factors[:, 0] == self.only_shape
        if self.nuisance > 1 and drawing.any():
            extra[drawing] = rng.randint(self.nuisance, size=drawing.sum())
        return np.column_stack([factors, extra]).astype(np.float64)


def literal_votes(representation, number, batches, batch_size, held, rng):
    """The published procedure, one vote after the other."""
    labels, codes = [], []
    for _ in range(number):
        label = rng.randint(3)
        drawn = []
        for _ in range(batches):
            columns = [rng.randint(size, size=batch_size) for size in representation.space.sizes]
            drawn.append(np.stack(columns, axis=1))
        for batch in drawn:
            batch[:, label] = drawn[0][:, label] if held == "pair" else batch[0, label]
        labels.append(label)
        codes.append([representation.codes(batch, rng) for batch in drawn])
    return np.array(labels), np.array(codes)


@pytest.mark.parametrize(("batches", "held"), [(2, "pair"), (1, "batch"), (3, "pair"), (2, "batch")])
@pytest.mark.parametrize("options", [{}, {"nuisance": 9}, {"nuisance": 9, "only_shape": 2}])
@pytest.mark.parametrize("number", [1, 2, 50])
def test_the_stream_is_that_of_one_vote_after_the_other(batches, held, options, number):
    representation, rng, other = Numbers(**options), np.random.RandomState(4), np.random.RandomState(4)
    source = vote_source(representation)
    np.testing.assert_array_equal(source.sample(30, rng)[:, :3], SPACE.sample(30, other))
    if options == {"nuisance": 9}:
        other.randint(9, size=30)
    elif options:
        other.set_state(rng.get_state())
    for _ in range(2):
        votes = source.votes(number, batches, 8, held, rng)
        factor, codes = literal_votes(representation, number, batches, 8, held, other)
        np.testing.assert_array_equal(votes.factor, factor)
        np.testing.assert_array_equal(votes.codes, codes)
    assert rng.randint(2**31) == other.randint(2**31)


def test_one_question_for_many_votes_if_images_draw_nothing():
    representation = Numbers()
    blocks = list(vote_blocks(SpaceVotes(representation), 1000, 2, 64, "pair", np.random.RandomState(0)))
    assert [len(block.factor) for block in blocks] == [256, 256, 256, 232]
    assert representation.asked == [256 * 128] * 3 + [232 * 128]


def test_batches_larger_than_a_block():
    blocks = list(vote_blocks(SpaceVotes(Numbers()), 2, 1, 40_000, "batch", np.random.RandomState(0)))
    assert [block.codes.shape for block in blocks] == [(1, 1, 40_000, 4)] * 2


def test_factors_with_one_value_are_not_held():
    source = vote_source(Numbers(FactorSpace(["a", "b", "c"], [4, 1, 3])))
    votes = source.votes(100, 2, 4, "pair", np.random.RandomState(0))
    assert set(votes.factor) == {0, 2}


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (FactorSpace(["a", "b"], [4, (0.0, 1.0)]), "discrete"),
        (FactorSpace(["a"], [4]), "needs two"),
        (FactorSpace(["a", "b"], [4, 1]), "needs two"),
    ],
)
def test_spaces_that_cannot_be_asked(space, told):
    with pytest.raises(ArgumentError, match=told):
        vote_source(Numbers(space))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda n: np.full((n, 2), np.nan), "nan in latent 0 for factors"),
        (lambda n: np.full((n, 2), np.inf), "finite"),
        (lambda n: np.zeros(n), "shape"),
        (lambda n: np.zeros((n + 1, 2)), "shape"),
        (lambda n: np.zeros((n, 0)), "shape"),
    ],
)
def test_codes_that_are_not_allowed(wrong, told):
    representation = Numbers()
    representation.codes = lambda factors, rng: wrong(len(factors))
    with pytest.raises(ArgumentError, match=told):
        SpaceVotes(representation).sample(5, np.random.RandomState(0))


# --- tables ------------------------------------------------------------------------------------------------


def table(n=400, seed=0):
    """A table with the row number as the code, a constant factor, and a value that one row has."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(3, size=n), np.full(n, 2), rng.integers(60, size=n)], axis=1)
    factors[7, 2] = 99
    return check_sample(np.arange(n), factors)


@pytest.mark.parametrize(("batches", "held"), [(2, "pair"), (1, "batch"), (2, "batch")])
def test_table_holds_the_factor(batches, held):
    sample = table()
    votes = vote_source(TableInterventions(sample)).votes(200, batches, 16, held, np.random.RandomState(1))
    rows = votes.codes[..., 0].astype(int)
    assert rows.shape == (200, batches, 16)
    assert set(votes.factor) == {0, 2}
    for factor, drawn in zip(votes.factor, rows, strict=True):
        values = sample.factors[drawn, factor]
        np.testing.assert_array_equal(np.ptp(values, axis=0 if held == "pair" else 1), 0)
    assert 7 not in rows[votes.factor == 2]
    if held == "pair":
        assert (rows[:, 0] != rows[:, 1]).all()


def test_table_draws_rows_uniformly():
    sample = check_sample(np.arange(6), np.stack([[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]], axis=1))
    source = TableInterventions(sample)
    for votes in (
        source.votes(4000, 2, 5, "pair", np.random.RandomState(0)),
        source.votes(4000, 1, 10, "batch", np.random.RandomState(1)),
    ):
        for factor in (0, 1):
            for batch in np.moveaxis(votes.codes[votes.factor == factor, :, :, 0], 1, 0):
                share = np.bincount(batch.reshape(-1).astype(int), minlength=6) / batch.size
                np.testing.assert_allclose(share, 1 / 6, atol=0.02)


def test_table_sample():
    drawn = TableInterventions(table()).sample(5000, np.random.RandomState(0))[:, 0]
    assert len(np.unique(drawn)) == 400


def test_table_needs_a_value_that_occurs_twice():
    factors = np.stack([np.arange(20), np.arange(20) % 2], axis=1)
    with pytest.raises(ArgumentError, match="occurs twice"):
        TableInterventions(check_sample(np.zeros(20), factors))


def test_table_with_one_varying_factor():
    with pytest.raises(ArgumentError, match="needs two"):
        vote_source(TableInterventions(check_sample(np.zeros(20), np.arange(20) % 2)))


@pytest.mark.parametrize("value", [0, -1, 2.5, True, None, "3"])
def test_counts_that_are_not_allowed(value):
    with pytest.raises(ArgumentError, match=r"batch_size = .*whole number"):
        beta_vae.compute(Numbers(), batch_size=value)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5])
def test_seeds_that_are_not_allowed(seed):
    with pytest.raises(ArgumentError, match="seed"):
        beta_vae.compute(Numbers(), seed=seed)


class WithNuisance:
    """Codes that tell factors and nuisance; drawn vote by vote unless it says how many copies there are."""

    space = FactorSpace(["a", "b", "c"], [3, 1, 7])

    def codes(self, factors, rng):
        return self.codes_of(factors, rng.randint(6, size=len(factors)))

    def codes_of(self, factors, copy):
        return np.column_stack([factors, copy])


class KnownNuisance(WithNuisance):
    copies = 6


@pytest.mark.parametrize(("batches", "held"), [(2, "pair"), (1, "batch"), (3, "batch")])
def test_a_nuisance_factor_has_the_same_stream_in_many_votes_at_once(batches, held):
    streams = [np.random.RandomState(4), np.random.RandomState(4)]
    for number in (5, 40):
        one, other = (
            vote_source(kind()).votes(number, batches, 9, held, rng)
            for kind, rng in zip((WithNuisance, KnownNuisance), streams, strict=True)
        )
        np.testing.assert_array_equal(one.factor, other.factor)
        np.testing.assert_array_equal(one.codes, other.codes)
    assert streams[0].randint(2**31) == streams[1].randint(2**31)
