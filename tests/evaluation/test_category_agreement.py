"""Whether categories are classes, on methods whose answer is known, and against scikit-learn."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

import unweave as uw
from unweave.data.batches import Batch
from unweave.errors import ArgumentError
from unweave.evaluation.category_agreement import best_match, contingency
from unweave.methods import Method, Posterior


class Reader(Method):
    """Reads a class off the first pixel, and two continuous codes off the next two; generates the like."""

    def __init__(self, order, mix=0.0):
        super().__init__()
        self.order, self.mix = torch.tensor(order), mix
        self.weight = torch.nn.Parameter(torch.zeros(1))

    parts: ClassVar = {"c": slice(0, 6)}
    categories = (slice(0, 4),)
    noise_correlation = None

    def encode(self, images):
        pixels = images.flatten(1)
        category = torch.nn.functional.one_hot(self.order[(pixels[:, 0] * 3).round().long()], 4).float()
        first, second = pixels[:, 1:2], pixels[:, 2:3]
        mixed = [first, (1 - self.mix) * second + self.mix * first]
        codes = torch.cat([category, *mixed], 1)
        return Posterior(codes, torch.full_like(codes, -torch.inf))

    def sample_inputs(self, n, generator=None):
        category = torch.nn.functional.one_hot(torch.randint(4, (n,), generator=generator), 4).float()
        return torch.cat([category, torch.rand(n, 2, generator=generator)], 1), torch.zeros(n, 1)

    def generate(self, codes, noise):
        back = torch.argsort(self.order)[codes[:, :4].argmax(1)] / 3
        return torch.stack([back, codes[:, 4], codes[:, 5], noise[:, 0]], 1).view(-1, 1, 2, 2)

    def check_data(self, data):
        pass


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 4, 400)
    images = rng.integers(0, 256, (400, 2, 2, 1)).astype(np.uint8)
    images[:, 0, 0, 0] = classes * 85
    return uw.data.from_arrays(images, {"colour": rng.integers(0, 3, 400), "digit": classes}, name="digits4")


def score(method, data, **params):
    given = {"factor": "digit", "num_samples": 300, **params}
    return uw.evaluate(method, data, "category_agreement", params={"category_agreement": given})[
        "category_agreement"
    ]


def test_categories_that_are_the_classes_in_another_order_name_all_of_them(data):
    found = score(Reader([2, 0, 3, 1]), data)
    assert found.value == 1.0
    assert found.details["majority"] == 1.0
    assert found.details["information"] == pytest.approx(1.0)
    assert found.details["category_recovered"] == 1.0
    assert found.details["continuous_recovered"] == pytest.approx(1.0)
    assert found.details["continuous_mixed"] < 0.2
    assert found.details["continuous_information"] < 0.2
    assert found.details["num_images"] == 400


def test_categories_that_merge_classes_name_fewer(data):
    method = Reader([0, 0, 1, 1])
    found = score(method, data)
    classes = data.factors(np.arange(400))[:, 1]
    category = np.array([0, 0, 1, 1])[classes]
    counts = np.bincount(classes)
    assert found.value == pytest.approx((max(counts[:2]) + max(counts[2:])) / 400)
    expected = mutual_info_score(category, classes) / mutual_info_score(classes, classes)
    assert found.details["information"] == pytest.approx(expected)
    assert found.details["category_recovered"] < 1


def test_another_factor_is_another_question(data):
    assert score(Reader([0, 1, 2, 3]), data, factor="colour").value < 0.6


def test_codes_that_mix_are_seen(data):
    assert score(Reader([0, 1, 2, 3], mix=0.5), data).details["continuous_mixed"] > 0.3


def test_the_best_match_is_that_of_all_permutations():
    table = np.random.default_rng(0).integers(0, 9, (4, 4))
    best = max(sum(table[i, p[i]] for i in range(4)) for p in itertools.permutations(range(4)))
    assert best_match(table) == pytest.approx(best / table.sum())
    assert np.array_equal(contingency(np.array([0, 2, 2]), np.array([1, 0, 0])), [[0, 1], [0, 0], [2, 0]])


def test_what_cannot_be_measured_is_refused(data):
    with pytest.raises(ArgumentError, match="factor"):
        score(Reader([0, 1, 2, 3]), data, factor="shape")
    vae = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    with pytest.raises(ArgumentError, match="has codes that are categories"):
        score(vae, data)
    bare = uw.data.from_arrays(data.images(np.arange(10)))
    with pytest.raises(ArgumentError, match="has no factors"):
        score(Reader([0, 1, 2, 3]), bare, factor=None)


def test_infogan_is_measured():
    images = np.random.default_rng(0).integers(0, 256, (12, 28, 28, 1)).astype(np.uint8)
    data = uw.data.from_arrays(images, {"digit": np.arange(12) % 3})
    method = uw.methods.create("infogan", data, num_categories=3, width=4, seed=0)
    assert isinstance(method.begin(Batch(torch.rand(2, 1, 28, 28)), 0, torch.Generator()), tuple)
    found = score(method, data, num_samples=10)
    assert 1 / 3 <= found.value <= 1
