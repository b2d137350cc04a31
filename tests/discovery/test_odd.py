"""Photographs that stand out."""

import numpy as np

from unweave.discovery.odd import MOST, odd_photographs


def test_none_stands_out_of_normal_ones():
    rng = np.random.default_rng(1)
    errors, codes = np.exp(0.3 * rng.normal(size=500)), rng.normal(size=(500, 3))
    assert odd_photographs(errors, codes, np.arange(400), np.arange(500)) == []


def test_bad_drawings_and_far_codes_are_named_the_oddest_first():
    rng = np.random.default_rng(0)
    errors, codes = np.exp(0.1 * rng.normal(size=200)), rng.normal(size=(200, 2))
    errors[3], codes[7] = 50, 40
    odd = odd_photographs(errors, codes, np.arange(150), np.arange(200))
    assert {one.row for one in odd} == {3, 7}
    assert "cannot express" in next(one.why for one in odd if one.row == 3)
    assert "far beyond" in next(one.why for one in odd if one.row == 7)
    assert odd[0].deviations >= odd[1].deviations


def test_photographs_that_were_not_learned_from_are_compared_among_themselves():
    rng = np.random.default_rng(0)
    errors = np.exp(0.1 * rng.normal(size=200))
    errors[150:] *= 100  # unseen ones are drawn worse, all of them
    assert odd_photographs(errors, np.zeros((200, 0)), np.arange(150), np.arange(200)) == []


def test_duplicates_are_left_out_and_the_list_is_short():
    errors = np.ones(100) + 0.01 * np.arange(100) / 100
    errors[:40] = 1e6
    rows = np.setdiff1d(np.arange(100), [0])
    odd = odd_photographs(errors, np.zeros((100, 0)), np.arange(100), rows)
    assert len(odd) == MOST
    assert 0 not in {one.row for one in odd}
