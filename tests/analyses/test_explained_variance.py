import numpy as np
import pytest

from unweave.analyses import explained_variance, simulate_results
from unweave.analyses.explained_variance import variance_shares


def test_the_shares_are_r_squared_of_a_regression_on_the_groups():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 4, 40)
    values = 0.5 * groups + rng.normal(size=40)
    design = np.eye(4)[groups]
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    plain = 1 - ((values - fitted) ** 2).sum() / ((values - values.mean()) ** 2).sum()
    adjusted = 1 - (1 - plain) * 39 / 36
    assert variance_shares(values, groups) == pytest.approx((plain, adjusted))


def test_noise_explains_nothing_however_many_groups():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(18), 2)
    shares = np.array([variance_shares(rng.normal(size=36), groups) for _ in range(2000)])
    assert shares[:, 0].mean() == pytest.approx(17 / 35, abs=0.01)  # a half, of nothing
    assert shares[:, 1].mean() == pytest.approx(0, abs=0.02)


def test_what_cannot_be_told_is_nan():
    assert np.isnan(variance_shares([1.0, 1.0, 1.0], [0, 1, 1])).all()
    assert np.isnan(variance_shares([1.0, 2.0, 3.0], [0, 1, 2])[1])


def test_every_data_set_and_metric_has_a_row():
    table = simulate_results(
        data=["dsprites", "cars3d"], methods=["beta_vae", "factor_vae"], seeds=3, strengths=2
    )
    found = explained_variance(table)
    assert found["data"].unique().tolist() == ["dsprites", "cars3d"]
    assert (found["groups"] == 4).all()
    assert (found["n"] == 12).all()
    assert (found["method"] < found["plain_method"]).all()
