import numpy as np
import pandas as pd
import pytest

from unweave.analyses.total_correlation import (
    METRIC,
    mean_and_sampled,
    share_above,
    total_correlation_by_strength,
)
from unweave.study import NotInStudyError


@pytest.fixture
def table(make_table):
    def of(representation, factor):
        return make_table(
            lambda d, h, s, m: factor * (h + s),
            settings=2,
            seeds=5,
            metrics=(METRIC,),
            representation=representation,
        )

    return pd.concat([of("mean", 2.0), of("sampled", 1.0)])


def test_medians_and_quartiles_over_seeds(table):
    found = total_correlation_by_strength(table, "mean")
    assert found["strength_index"].tolist() == [1, 2]
    assert found["value"].tolist() == [4.0, 6.0]  # the median of 2 (h + s) over s = 0, …, 4
    assert found["lower_quartile"].tolist() == [2.0, 4.0]
    assert found["upper_quartile"].tolist() == [6.0, 8.0]
    assert (found["n"] == 5).all()
    assert total_correlation_by_strength(table, "sampled")["value"].tolist() == [2.0, 3.0]


def test_methods_are_left_out(table):
    both = pd.concat([table, table.assign(method="annealed_vae", run="annealed-" + table["run"])])
    assert set(total_correlation_by_strength(both, "mean")["method"]) == {"beta_vae"}
    assert set(total_correlation_by_strength(both, "mean", without=())["method"]) == {
        "beta_vae",
        "annealed_vae",
    }
    with pytest.raises(NotInStudyError, match="no methods other"):
        total_correlation_by_strength(table.assign(method="annealed_vae"), "mean")


def test_variants_of_a_method_are_methods_and_left_out_with_it(table):
    parts = [
        table.assign(method=method, settings=f'{{"width": {width}}}', run=f"{method}{width}" + table["run"])
        for method in ("annealed_vae", "beta_vae")
        for width in (1, 2)
    ]
    found = total_correlation_by_strength(pd.concat(parts), "mean")
    assert found["method"].unique().tolist() == ["beta_vae"]
    assert found["variant"].unique().tolist() == ["width 1", "width 2"]
    assert (found["n"] == 5).all()


def test_runs_are_paired(table):
    both = mean_and_sampled(table)
    assert len(both) == 10
    np.testing.assert_allclose(both["mean"], 2 * both["sampled"])


def test_the_share_of_runs_above_is_over_seeds(table):
    share = share_above(mean_and_sampled(table)).iloc[0]
    assert share["value"] == pytest.approx(0.9)  # of h + s = 0, both codes have none
    assert share["n"] == 5
    assert share["low"] <= 0.9 <= share["high"] == 1


def test_a_study_without_sampled_codes_is_refused(table):
    with pytest.raises(NotInStudyError, match="sampled"):
        mean_and_sampled(table[table["representation"] == "mean"])
