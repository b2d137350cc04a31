"""Tables of the report: for the page, as CSV and as LaTeX."""

import numpy as np
import pandas as pd
import pytest

from unweave.analyses import median_scores, simulate_results
from unweave.figures.report.tables import csv_text, flatten, page_table, score_tables, tex_text


def test_tex_is_escaped_and_ruled():
    table = pd.DataFrame({"β & co_1": ["50 %", "{x}^2 ~ \\y", "a<b #1 $"], "λ": [-0.5, np.nan, 0.25]})
    assert tex_text(table).splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"$\beta$ \& co\_1 & $\lambda$ \\",
        r"\midrule",
        r"50 \% & $-$0.500 \\",
        r"\{x\}\textasciicircum{}2 \textasciitilde{} \textbackslash{}y & -- \\",
        r"a$<$b \#1 \$ & 0.250 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1.0, 16.0], ["1", "16"]),
        ([0.5, 0.25], ["0.500", "0.250"]),
        ([0.5, 1e-7], ["0.5", "1e-07"]),
        ([12345.6, 0.5], ["1.23e+04", "0.5"]),
        ([1, 20], ["1", "20"]),
        ([True, False], ["True", "False"]),
        ([0.5, np.inf], ["0.500", "inf"]),
        ([np.nan, np.nan], ["–", "–"]),
        (["x", None], ["x", "–"]),
    ],
)
def test_a_column_has_one_format_that_hides_no_number(values, texts):
    table = page_table(pd.DataFrame({"first": ["a", "b"], "second": values}), "label")
    assert table.names_rows
    assert [row[0].text for row in table.rows] == ["a", "b"]
    assert [row[1].text for row in table.rows] == texts


def test_an_index_that_means_something_becomes_columns():
    nested = pd.DataFrame(
        [[1, 2]],
        index=pd.Index(["x"], name="method"),
        columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]),
    )
    assert csv_text(flatten(nested)) == "method,a b,a c\nx,1,2\n"
    counted = pd.DataFrame({"a": [1, 2, 3]})
    assert list(flatten(counted[counted["a"] > 1]).columns) == ["a"]


@pytest.mark.parametrize(("seeds", "has_interval"), [(4, False), (5, True)])
def test_fewer_than_five_runs_have_no_interval(seeds, has_interval):
    table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=seeds, strengths=1)
    ((_, shown),) = score_tables(median_scores(table, ["mig"]))
    detail = shown.rows[0][-1].detail
    assert ("–" in detail) is has_interval
    assert detail.count(", ") == (0 if has_interval else 3)  # else the four values
