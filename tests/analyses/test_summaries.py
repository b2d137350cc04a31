"""Which runs are compared, which strength is chosen, how intervals are written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.summaries import arranged, best_strengths, main_runs, spelled, spelled_column

_ALIKE = {"method": "m", "strength": 1.0, "seed": 0, "settings": "{}"}


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


def test_variants_of_a_method_are_methods_of_the_main_line() -> None:
    table = pd.DataFrame(
        {"run": list("abc"), "data": "one", "correlation": 0.0, "latent_size": 2, "steps": 1, **_ALIKE}
    )
    table = table.assign(method=["a", "a", "b"], settings=['{"labelled": 10}', '{"labelled": 20}', "{}"])
    assert main_runs(table)["method"].tolist() == ["a, labelled 10", "a, labelled 20", "b"]


def test_the_best_strength_has_the_largest_median_not_the_largest_score() -> None:
    table = pd.DataFrame(
        {
            "data": "one",
            "method": ["a"] * 6 + ["b"] * 2,
            "strength": [1, 1, 1, 2, 2, 2, np.nan, np.nan],
            "value": [0.5, 0.5, 0.6, 0.1, 0.2, 0.9, 0.3, np.nan],
        }
    )
    best = best_strengths(table).set_index("method")
    assert best.loc["a", ["strength", "value"]].tolist() == [1.0, 0.5]
    assert np.isnan(best.loc["b", "strength"])


def test_of_equal_medians_the_smaller_strength_is_taken() -> None:
    table = pd.DataFrame({"data": "one", "method": "a", "strength": [4.0, 2.0], "value": [0.5, 0.5]})
    assert best_strengths(table)["strength"].tolist() == [2.0]


def test_values_are_written_with_their_intervals() -> None:
    assert spelled(0.41249, 0.38, 0.4411) == "0.412 [0.380, 0.441]"
    assert spelled(2.0, np.nan, np.nan, digits=1) == "2.0"
    assert spelled(np.nan, np.nan, np.nan) == ""
    found = pd.DataFrame({"x": [1.0], "low": [0.5], "high": [1.5]}, index=[7])
    assert spelled_column(found, "x").to_dict() == {7: "1.000 [0.500, 1.500]"}


def test_rows_are_arranged_by_data_method_and_strength() -> None:
    found = pd.DataFrame(
        {"data": ["p", "q", "p", "p"], "method": ["a", "a", "bb", "bb"], "strength": [1.0, 1.0, 10.0, 2.0]}
    )
    rows = arranged(found, ["q", "p"], key=lambda method: -len(method))
    assert rows.to_numpy().tolist() == [["q", "a", 1], ["p", "bb", 2], ["p", "bb", 10], ["p", "a", 1]]
