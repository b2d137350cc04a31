import numpy as np
import pytest
import torch

import unweave as uw
from unweave.methods.gan.collapse import (
    collapse_problems,
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


def records(*values):
    return [
        {
            "step": step,
            "diversity": diversity,
            "collapsed": float(diversity < 0.5),
            "discriminator_accuracy": a,
        }
        for step, (diversity, a) in enumerate(values)
    ]


def test_a_run_that_collapsed_at_its_end_says_so():
    good, collapsed = (0.9, 0.7), (0.2, 0.7)
    assert collapse_problems([]) == []
    assert collapse_problems([{"step": 1, "loss": 2.0}]) == []
    assert collapse_problems(records(*[collapsed] * 6, *[good] * 2)) == []  # it has recovered
    (problem,) = collapse_problems(records(*[good] * 6, *[collapsed] * 2))
    assert "has collapsed: its images differ 0.20 times as much as real ones" in problem


def test_a_discriminator_that_has_won_is_a_problem():
    assert collapse_problems(records((0.9, 1.0), (0.9, 0.8))) == []
    (problem,) = collapse_problems(records((0.9, 0.8), (0.9, 1.0)))
    assert "right about 100.0% of the images" in problem


@pytest.mark.parametrize("name", ["infogan", "cgan"])
def test_a_run_shows_its_problems(digits, name, tmp_path):
    method = uw.methods.create(name, digits, noise_size=4, width=4)
    run = uw.train(method, digits, 1, batch_size=4, out=tmp_path / "run", pictures=False)
    assert any(
        "has collapsed" in problem for problem in run.problems
    )  # a new generator's images are all grey
    assert "the generator has collapsed" in repr(run)
    assert "the generator has collapsed" in run._repr_html_()
    assert uw.load(tmp_path / "run").problems == run.problems
    run.records[-1] |= {"collapsed": 0.0, "discriminator_accuracy": 0.7}
    assert "collapsed" not in repr(run)
