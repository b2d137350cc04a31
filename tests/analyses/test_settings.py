import numpy as np
import pandas as pd
import pytest

from unweave.analyses.settings import available, independent_noise, with_setting, with_strength_index
from unweave.study import NotInStudyError


def test_strengths_are_numbered_within_each_method_over_all_data_sets():
    rows = pd.DataFrame(
        {
            "data": ["a", "a", "b", "a", "a", "b"],
            "method": ["beta_vae", "beta_vae", "beta_vae", "factor_vae", "vae", "vae"],
            "strength": [1.0, 16.0, 4.0, 10.0, np.nan, np.nan],
        }
    )
    assert with_strength_index(rows)["strength_index"].tolist() == [1, 3, 2, 1, 1, 1]


def runs(**columns):
    n = max(len(values) for values in columns.values())
    common = {"data": ["a"] * n, "method": ["m"] * n, "strength": [1.0] * n, "seed": list(range(n))}
    common |= {"correlation": [0.0] * n, "latent_size": [10] * n, "steps": [1] * n, "settings": ["{}"] * n}
    return pd.DataFrame(common | columns)


def test_a_setting_is_a_method_and_a_strength():
    found = with_setting(runs(method=["m", "m", "n", "n"], strength=[1.0, 2.0, np.nan, np.nan]))[
        "setting"
    ].tolist()
    assert found[2] == found[3]
    assert len(set(found)) == 3


def test_what_is_varied_besides_tells_settings_apart():
    found = with_setting(runs(seed=[0, 0, 1, 1], latent_size=[5, 10, 5, 10]))["setting"].tolist()
    assert found[:2] == found[2:]
    assert found[0] != found[1]


def test_what_differs_between_data_sets_does_not():
    found = with_setting(runs(data=["a", "b"], seed=[0, 0], settings=["{}", '{"likelihood": "gaussian"}']))
    assert found["setting"].nunique() == 1


def test_correlated_noise_is_left_out(make_table):
    table = make_table(lambda d, h, s, m: h)
    mixed = pd.concat([table, table.assign(correlation=0.5)])
    pd.testing.assert_frame_equal(independent_noise(mixed, ["mig"]), table)
    with pytest.raises(NotInStudyError, match="independent"):
        independent_noise(table.assign(correlation=0.5), ["mig"])


def test_available_keeps_the_asked_order(make_table):
    table = make_table(lambda d, h, s, m: h, metrics=("sap", "mig"))
    assert available(table, ("mig", "dci", "sap")) == ["mig", "sap"]
    with pytest.raises(NotInStudyError, match="mig, sap of the metrics"):
        available(table, ("mig", "dci", "sap"), least=3)
