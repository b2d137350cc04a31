"""UDR: models that agree, and models that do not."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.unlabelled.udr import relative_strength, udr

GENERATOR = np.random.default_rng(0)
CODES = GENERATOR.normal(size=(1000, 4))


def test_relative_strength():
    assert relative_strength(np.eye(5)) == pytest.approx(1)
    assert relative_strength(np.zeros((3, 4))) == 0
    assert relative_strength(np.ones((3, 3))) == pytest.approx(1 / 3)
    assert relative_strength(np.zeros((0, 4))) == 0


@pytest.mark.parametrize("method", ["lasso", "spearman"])
def test_permuted_and_mirrored_copies_agree(method):
    others = [CODES[:, GENERATOR.permutation(4)] * GENERATOR.choice([-3, 1], 4) for _ in range(3)]
    score = udr.compute([CODES, *others], method=method)
    assert 0.8 < score.value <= 1
    assert score.details["pairwise"].shape == (4, 4)
    assert score.details["correlations"].shape == (4, 4, 4, 4)


@pytest.mark.parametrize("method", ["lasso", "spearman"])
def test_mixed_latents_agree_less(method):
    rotation = np.linalg.qr(GENERATOR.normal(size=(4, 4)))[0]
    assert udr.compute([CODES, CODES @ rotation], method=method).value < 0.7


@pytest.mark.parametrize("method", ["lasso", "spearman"])
def test_kl_leaves_noise_out(method):
    models = [np.hstack([CODES[:, :1], GENERATOR.normal(size=(1000, 3))]) for _ in range(3)]
    kl = [np.array([2.0, 1e-3, 1e-3, 0.01])] * 3
    assert udr.compute(models, method=method).value < 0.35
    assert udr.compute(models, kl_list=kl, method=method).value > 0.8


def test_only_the_disagreeing_model_is_punished():
    models = [CODES, CODES, CODES, GENERATOR.normal(size=(1000, 4))]
    per_model = udr.compute(models).details["per_model"]
    assert per_model[:3].min() > 0.8
    assert per_model[3] < 0.1


def test_degenerate():
    constant = np.hstack([CODES[:, :3], np.full((1000, 1), 0.1)])
    score = udr.compute([constant, constant], method="spearman")
    assert score.value == 0
    assert np.isnan(score.details["correlations"][0, 1, 3]).all()
    # A copy's coefficient is 1 - alpha, and nothing else survives the penalty.
    assert udr.compute([constant, constant]).value == pytest.approx(0.75 * 0.9, abs=0.01)
    nothing_left = [np.zeros(4), np.ones(4)]
    for method in ("lasso", "spearman"):
        assert udr.compute([CODES, CODES], kl_list=nothing_left, method=method).value == 0
    assert 0.8 < udr.compute([CODES[:, :1], CODES[:, :1]]).value <= 1


def test_a_constant_latent_takes_one_half_of_the_score():
    """As google-research's relative_strength_disentanglement: nan where a row or a column has one."""
    constant = np.hstack([CODES[:, :3], np.full((1000, 1), 0.1)])
    score = udr.compute([constant, CODES], method="spearman")
    ranks = np.abs(np.corrcoef(CODES.argsort(axis=0).argsort(axis=0).T))
    over_rows = (ranks.max(axis=1) ** 2 / ranks.sum(axis=1))[:3].sum() / 4
    np.testing.assert_allclose(score.details["pairwise"][0, 1], over_rows / 2)
    np.testing.assert_allclose(score.details["pairwise"][1, 0], over_rows / 2)


def test_refuses():
    with pytest.raises(ArgumentError, match="at least 2 models"):
        udr.compute([CODES])
    with pytest.raises(ArgumentError, match=r"codes_list\[1\]"):
        udr.compute([CODES, CODES[:, :3]])
    with pytest.raises(ArgumentError, match="finite"):
        udr.compute([CODES, CODES * np.inf])
    with pytest.raises(ArgumentError, match="needs 2, as codes_list"):
        udr.compute([CODES, CODES], kl_list=[np.ones(4)])
    with pytest.raises(ArgumentError, match=r"kl_list\[0\]"):
        udr.compute([CODES, CODES], kl_list=[np.ones(3), np.ones(4)])
    with pytest.raises(ArgumentError, match="did you mean 'lasso'"):
        udr.compute([CODES, CODES], method="laso")
