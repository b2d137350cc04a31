import numpy as np
import pytest
import torch

from unweave.methods.gan.collapse import (
    collapse_terms,
    ranking_accuracy,
    relative_diversity,
    threshold_accuracy,
)


def test_diversity_is_the_ratio_of_mean_distances():
    torch.manual_seed(0)
    real, fake = torch.rand(5, 2, 3, 3), 0.3 * torch.rand(4, 2, 3, 3)

    def mean_distance(images):
        flat = images.flatten(1).double().numpy()
        pairs = [(i, j) for i in range(len(flat)) for j in range(i)]
        return np.mean([np.linalg.norm(flat[i] - flat[j]) for i, j in pairs])

    expected = mean_distance(fake) / mean_distance(real)
    assert relative_diversity(real, fake).item() == pytest.approx(expected, rel=1e-5)
    assert collapse_terms(real, fake).values["collapsed"] == 1
    assert collapse_terms(real, real).values["collapsed"] == 0


def test_images_that_are_all_the_same_have_a_finite_diversity():
    same = torch.ones(3, 1, 2, 2)
    assert relative_diversity(same, torch.rand(3, 1, 2, 2)).isfinite()
    assert relative_diversity(same, same) == 0


def test_values_have_no_weight_and_no_gradient():
    fake = torch.rand(3, 1, 2, 2, requires_grad=True)
    terms = collapse_terms(torch.rand(3, 1, 2, 2), fake)
    assert set(terms.weights.values()) == {0.0}
    assert not any(value.requires_grad for value in terms.values.values())


def test_accuracies():
    real, fake = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([-2.0, 2.5, -3.0])
    assert threshold_accuracy(real, fake).item() == pytest.approx(4 / 6)
    assert ranking_accuracy(real, fake).item() == pytest.approx(7 / 9)
    assert ranking_accuracy(real + 100, fake + 100).item() == pytest.approx(7 / 9)
