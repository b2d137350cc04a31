"""Axes that come back, against axes turned at random."""

import numpy as np
import pytest

from unweave.discovery.stability import _random_rotation, _whiten, axis_stability
from unweave.errors import ArgumentError


def sources(rng, n=500, size=4):
    return rng.uniform(-1, 1, (n, size))


def used(models, size):
    return [np.ones(size, bool)] * models


def test_the_same_axes_in_any_order_sign_and_scale_are_reproduced():
    rng = np.random.default_rng(0)
    s = sources(rng)
    codes = [
        s[:, rng.permutation(4)] * rng.choice([-2, 1, 3], 4) + 0.05 * rng.normal(size=s.shape)
        for _ in range(3)
    ]
    result = axis_stability(codes, used(3, 4), 1, rotations=300)
    assert (result.agreement > 0.98).all()
    assert (result.p < 0.02).all()
    for row, other in enumerate((0, 2)):
        c = np.abs(np.corrcoef(codes[1].T, codes[other].T)[:4, 4:])
        assert result.partners[row].tolist() == c.argmax(axis=1).tolist()


def test_seeds_that_each_turn_the_same_space_do_not_agree():
    """The false alarms of the test are as many as its level says."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = sources(rng, n=200, size=3)
        codes = [s @ _random_rotation(3, rng) for _ in range(3)]
        alarms += bool((axis_stability(codes, used(3, 3), rotations=99, seed=seed).p <= 0.05).any())
    assert alarms <= 8  # of 60, 3 are expected; more than 8 have probability 0.003


def test_two_latents_turned_at_random_correlate_highly_all_the_same():
    """The mean of max(|cos t|, |sin t|) over all angles t is 4 sin(pi / 4) / pi = 0.90."""
    rng = np.random.default_rng(0)
    s = sources(rng, n=2_000, size=2)
    result = axis_stability([s, s], used(2, 2), rotations=2_000)
    np.testing.assert_allclose(result.expected, 4 * np.sin(np.pi / 4) / np.pi, atol=0.01)
    np.testing.assert_allclose(result.agreement, 1, atol=1e-2)


def test_unused_latents_agree_with_nobody_and_match_nobody():
    rng = np.random.default_rng(0)
    s = sources(rng)
    mask = np.array([True, True, False, True])
    result = axis_stability([s, s[:, ::-1]], [mask, mask[::-1]], rotations=50)
    assert (result.agreement[2], result.p[2], result.partners[0, 2]) == (0, 1, -1)
    assert result.partners[0].tolist() == [3, 2, -1, 0]
    nothing = axis_stability([s, s], [np.zeros(4, bool), mask], rotations=10)
    assert (nothing.p == 1).all()
    assert (nothing.beyond_chance == 0).all()


def test_a_single_latent_is_compared_with_permuted_photographs():
    rng = np.random.default_rng(0)
    s = sources(rng, size=1)
    same = axis_stability([s, -s, 2 * s], used(3, 1), rotations=99)
    assert same.p[0] == pytest.approx(0.01)
    other = axis_stability([s, sources(rng, size=1), sources(rng, size=1)], used(3, 1), rotations=99)
    assert other.p[0] > 0.05


def test_more_latents_than_the_other_has_stay_without_partner():
    rng = np.random.default_rng(0)
    s = sources(rng)
    narrow = np.array([True, True, False, False])
    result = axis_stability([s, s], [np.ones(4, bool), narrow], rotations=50)
    assert sorted(result.partners[0].tolist()) == [-1, -1, 0, 1]
    assert (result.agreement[2:] == 0).all()


def test_a_model_without_used_latents_agrees_with_nobody():
    s = sources(np.random.default_rng(0))
    result = axis_stability([s, s, s], [np.ones(4, bool), np.ones(4, bool), np.zeros(4, bool)], rotations=50)
    assert (result.partners[1] == -1).all()
    np.testing.assert_allclose(result.agreement, 0.5, atol=1e-3)


def test_whitening_leaves_no_correlation_and_keeps_axes():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(3_000, 3)) @ np.array([[1, 0.3, 0], [0, 1, 0.2], [0, 0, 2.0]])
    white = _whiten(codes)
    np.testing.assert_allclose(white.T @ white / len(white), np.eye(3), atol=1e-9)
    assert (np.abs(np.corrcoef(codes.T, white.T)[:3, 3:]).argmax(axis=1) == np.arange(3)).all()


def test_one_model_alone_is_refused():
    with pytest.raises(ArgumentError, match="needs two or more"):
        axis_stability([np.zeros((5, 2))], used(1, 2))
