"""Which runs are compared, which strength and which run represent a method."""

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.runs import (
    available_metrics,
    best_runs,
    best_strengths,
    disentanglement_scores,
    independent_noise,
    main_runs,
    with_setting,
    with_strength_index,
)
from unweave.analyses.variants import with_variant
from unweave.study import NotInStudyError
from unweave.study.results import as_table

_ALIKE = {"method": "m", "strength": 1.0, "seed": 0, "settings": "{}"}


def test_strengths_are_numbered_within_each_method_over_all_data_sets():
    rows = pd.DataFrame(
        {
            "data": ["a", "a", "b", "a", "a", "b"],
            "method": ["beta_vae", "beta_vae", "beta_vae", "factor_vae", "vae", "vae"],
            "variant": "",
            "strength": [1.0, 16.0, 4.0, 10.0, np.nan, np.nan],
        }
    )
    assert with_strength_index(rows)["strength_index"].tolist() == [1, 3, 2, 1, 1, 1]


def runs(**columns):
    n = max(len(values) for values in columns.values())
    common = {
        "data": ["a"] * n,
        "method": ["m"] * n,
        "variant": [""] * n,
        "strength": [1.0] * n,
        "seed": list(range(n)),
    }
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
    pd.testing.assert_frame_equal(independent_noise(mixed, ["mig"]), with_variant(table))
    with pytest.raises(NotInStudyError, match="independent"):
        independent_noise(table.assign(correlation=0.5), ["mig"])


def test_available_keeps_the_asked_order(make_table):
    table = make_table(lambda d, h, s, m: h, metrics=("sap", "mig"))
    assert available_metrics(table, ("mig", "dci", "sap")) == ["mig", "sap"]
    with pytest.raises(NotInStudyError, match="mig, sap of the metrics"):
        available_metrics(table, ("mig", "dci", "sap"), at_least=3)


def test_scores_lack_what_a_run_lacks(make_table):
    table = make_table(lambda d, h, s, m: None if m == "sap" and h == 0 else h, metrics=("mig", "sap"))
    runs, metrics = disentanglement_scores(table)
    assert metrics == ["mig", "sap"]
    assert runs["sap"].isna().sum() == 2
    assert runs["mig"].notna().all()


def test_the_main_runs_differ_in_data_method_strength_and_seed_alone() -> None:
    table = pd.DataFrame(
        {
            "run": list("abcdefg"),
            "data": ["one"] * 5 + ["two"] * 2,
            "correlation": [0.0, 0.0, 0.9, 0.0, 0.0, 0.9, 0.5],
            "latent_size": [10, 10, 10, 20, 10, 6, 6],
            "steps": [100, 100, 100, 100, 50, 100, 100],
            **_ALIKE,
        }
    )
    assert main_runs(table)["run"].tolist() == ["a", "b", "g"]


def test_runs_without_a_number_of_latents_are_main_runs() -> None:
    table = pd.DataFrame({"run": list("abcd"), "data": "one", "correlation": 0.0, "steps": 1, **_ALIKE})
    some = table.assign(latent_size=pd.array([10, 10, 20, None], dtype="Int64"))
    assert main_runs(some)["run"].tolist() == ["a", "b", "d"]
    none = table.assign(latent_size=pd.array([None] * 4, dtype="Int64"))
    assert main_runs(none)["run"].tolist() == ["a", "b", "c", "d"]


def test_all_rows_of_a_main_run_are_kept() -> None:
    table = pd.DataFrame(
        {"run": ["a", "b", "a"], "correlation": [0.0, 0.5, 0.0], "data": "one", "latent_size": 2, "steps": 1}
        | _ALIKE
    )
    assert main_runs(table).index.tolist() == [0, 2]
    assert main_runs(table[:0]).empty


@pytest.mark.parametrize("numbers", [[10, 20], [20, 10]])
def test_of_equally_frequent_latents_the_fewer_and_of_steps_the_more_are_taken(numbers: list[int]) -> None:
    table = pd.DataFrame({"run": ["a", "b"], "data": "one", "correlation": 0.0, "steps": 1, **_ALIKE})
    assert main_runs(table.assign(latent_size=numbers))["latent_size"].tolist() == [10]
    assert main_runs(table.assign(latent_size=1, steps=numbers))["steps"].tolist() == [20]


def test_the_main_line_has_all_variants_of_a_method() -> None:
    table = pd.DataFrame(
        {"run": list("abc"), "data": "one", "correlation": 0.0, "latent_size": 2, "steps": 1, **_ALIKE}
    )
    table = table.assign(method=["a", "a", "b"], settings=['{"labelled": 10}', '{"labelled": 20}', "{}"])
    found = main_runs(table)
    assert found["method"].tolist() == ["a", "a", "b"]
    assert found["variant"].tolist() == ["labelled 10", "labelled 20", ""]


def test_the_best_strength_has_the_largest_median_not_the_largest_score() -> None:
    table = pd.DataFrame(
        {
            "data": "one",
            "method": ["a"] * 6 + ["b"] * 2,
            "variant": "",
            "strength": [1, 1, 1, 2, 2, 2, np.nan, np.nan],
            "value": [0.5, 0.5, 0.6, 0.1, 0.2, 0.9, 0.3, np.nan],
        }
    )
    best = best_strengths(table).set_index("method")
    assert best.loc["a", ["strength", "value"]].tolist() == [1.0, 0.5]
    assert np.isnan(best.loc["b", "strength"])


def test_of_equal_medians_the_smaller_strength_is_taken() -> None:
    table = pd.DataFrame(
        {"data": "one", "method": "a", "variant": "", "strength": [4.0, 2.0], "value": [0.5, 0.5]}
    )
    assert best_strengths(table)["strength"].tolist() == [2.0]


def test_the_best_run_has_the_largest_score() -> None:
    values = {("a", 1.0): [0.1, 0.2, 0.9], ("a", 4.0): [0.4, 0.5, 0.3], ("vae", np.nan): [0.2, 0.1, 0.0]}
    table = as_table(
        [
            {
                "run": f"{method} {strength} {seed} 0.0", "data": "d", "method": method, "strength_name": "beta",
                "strength": strength, "seed": seed, "correlation": 0.0, "latent_size": 10, "steps": 1,
                "settings": "{}", "metric": "sap", "representation": "mean", "protocol": "p", "value": value,
                "seconds": 0.0,
            }
            for (method, strength), column in values.items()
            for seed, value in enumerate(column)
        ]
    )  # fmt: skip
    found = best_runs(table).set_index("method")
    assert found.loc["a", ["strength", "seed", "value"]].tolist() == [1.0, 2, 0.9]
    assert found.loc["vae", "run"] == "vae nan 0 0.0"
