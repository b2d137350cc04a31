import numpy as np
import pandas as pd
import pytest

import unweave as uw
from unweave.errors import ArgumentError, DataError
from unweave.study.collecting import collect
from unweave.study.results import (
    COLUMNS,
    NotInStudyError,
    as_table,
    details_of,
    load_results,
    query,
    select,
    wide,
)
from unweave.study.spec import LABEL_MODES


def row(run, metric, value, representation="mean", protocol="dlib", labels=""):
    blank = {name: 0 if kind != "str" else "" for name, kind in COLUMNS.items()}
    own = {
        "run": run,
        "metric": metric,
        "value": value,
        "representation": representation,
        "labels": labels,
        "protocol": protocol,
    }
    return {**blank, **own}


@pytest.fixture
def table():
    return as_table(
        [
            row("a", "mig", 0.1),
            row("a", "mig", 0.2, "sampled"),
            row("a", "mig", 0.3, protocol="paper"),
            row("b", "mig", 0.4),
            row("a", "unsupervised", 0.5, "sampled"),
        ]
    )


def test_load_takes_a_folder_or_a_file(finished):
    table = collect(finished).table
    pd.testing.assert_frame_equal(load_results(finished.path), table)
    pd.testing.assert_frame_equal(load_results(str(finished.path / "results.parquet")), table)


def test_load_says_what_is_wrong(tmp_path):
    with pytest.raises(DataError, match="no results yet"):
        load_results(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match="not a results table"):
        load_results(tmp_path)
    pd.DataFrame({"run": ["a"]}).to_parquet(tmp_path / "results.parquet")
    with pytest.raises(DataError, match="it has no column 'data'"):
        load_results(tmp_path)


def test_select_prefers_the_mean_and_the_first_protocol(table):
    assert select(table, "mig")["value"].tolist() == [0.1, 0.4]
    assert select(table, "mig", "sampled")["value"].tolist() == [0.2]
    assert select(table, "mig", protocol="paper")["value"].tolist() == [0.3]
    assert select(table, "unsupervised")["value"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("sap",), "no metric 'sap'"),
        (("unsupervised", "mean"), "for sampled only, not mean"),
        (("mig", "mean", "other"), "no 'mig' by the protocol 'other'"),
    ],
)
def test_select_says_what_is_missing(table, asked, told):
    with pytest.raises(NotInStudyError, match=told):
        select(table, *asked)


def test_wide_has_a_row_per_run(table):
    found = wide(table, ["mig", "unsupervised"]).set_index("run")
    assert found.loc["a", ["mig", "unsupervised"]].tolist() == [0.1, 0.5]
    assert found.loc["b", "mig"] == 0.4
    assert np.isnan(found.loc["b", "unsupervised"])


def test_a_query_is_of_the_table(table):
    answer = query(table, "select run, max(value) as best from results group by run order by run")
    assert answer.to_dict("list") == {"run": ["a", "b"], "best": [0.5, 0.4]}
    query(table, "drop view results")
    assert len(query(table, "from results")) == 5  # what a query does is forgotten


@pytest.mark.parametrize(
    "sql", ["selec 1", "select nonsense from results", "select * from elsewhere", "select 'a' + 1"]
)
def test_bad_queries_are_answered(table, sql):
    with pytest.raises(ArgumentError, match=r"sql = .*Error"):
        query(table, sql)


def test_a_query_cannot_reach_files(table, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    tries = [
        f"select * from '{secret}'",
        f"select * from read_csv('{secret}')",
        f"select * from read_text('{secret}')",
        f"select * from glob('{tmp_path}/*')",
        f"copy results to '{tmp_path}/out.csv'",
        f"attach '{tmp_path}/out.db' as other",
        f"export database '{tmp_path}/out'",
        f"set enable_external_access = true; select * from '{secret}'",
        f"set allowed_directories = ['{tmp_path}']; select * from '{secret}'",
        "install httpfs",
        "load httpfs",
    ]
    for sql in tries:
        with pytest.raises(ArgumentError):
            query(table, sql)
    assert [path.name for path in tmp_path.iterdir() if path.name != "unweave-data"] == ["secret.csv"]


def test_select_takes_codes_that_saw_no_true_label_unless_told():
    table = as_table(
        [
            row("plain", "mig", 0.1),
            row("ivae", "mig", 0.9, labels="given"),
            row("ivae", "mig", 0.2, labels="unknown"),
            row("ss", "mig", 0.8, labels="given"),
            row("ss", "mig", 0.3, labels="unknown"),
            row("ss", "mig", 0.4, labels="predicted"),
        ]
    )
    assert dict(select(table, "mig")[["run", "value"]].to_numpy()) == {"plain": 0.1, "ivae": 0.2, "ss": 0.4}
    given = select(table, "mig", labels="given")
    assert dict(given[["run", "value"]].to_numpy()) == {"plain": 0.1, "ivae": 0.9, "ss": 0.8}


def test_select_knows_all_ways_to_come_by_labels_and_no_others():
    ways = ["given", "predicted", "unknown"]
    table = as_table([row("ss", "mig", place, labels=way) for place, way in enumerate(ways)])
    assert [select(table, "mig", labels=way)["value"].item() for way in LABEL_MODES] == [0, 1, 2]
    with pytest.raises(ArgumentError, match="labels = 'foo': known: given, predicted, unknown"):
        select(table, "mig", labels="foo")
    with pytest.raises(ArgumentError, match="did you mean 'given'"):
        select(table, "mig", labels="givn")


def test_a_table_of_an_older_version_gets_the_column_labels(tmp_path):
    names = ["mean", "mean_u_given", "sampled", "sampled_u_unknown", "mean_u_predicted"]
    table = as_table([row("a", "mig", 0.0, name) for name in names])
    table.drop(columns="labels").to_parquet(tmp_path / "old.parquet", index=False)
    found = load_results(tmp_path / "old.parquet")
    assert found["labels"].tolist() == ["", "given", "", "unknown", "predicted"]
    assert found["representation"].tolist() == ["mean", "mean", "sampled", "sampled", "mean"]
    assert found.dtypes.to_dict() == table.dtypes.to_dict()
    assert list(found) == list(COLUMNS)
    table[:0].drop(columns="labels").to_parquet(tmp_path / "empty.parquet", index=False)
    assert load_results(tmp_path / "empty.parquet").dtypes.to_dict() == table.dtypes.to_dict()


def test_select_says_of_which_labels_there_are_scores():
    table = as_table([row("ivae", "mig", 0.9, labels="given")])
    with pytest.raises(NotInStudyError, match=r"'mig' for mean \(u given\) only, not mean"):
        select(table, "mig")


def test_the_old_name_of_load_results(finished):
    with pytest.warns(FutureWarning, match="load_results"):
        pd.testing.assert_frame_equal(uw.study.load(finished.path), load_results(finished.path))


def test_details_of_a_metric_are_those_below_its_name():
    table = pd.DataFrame({"metric": ["dci", "dci.completeness", "dci_es.explicitness", "dci.a.b", "mig"]})
    rows = details_of(table, "dci")
    assert rows["metric"].tolist() == ["dci.completeness", "dci.a.b"]
    assert rows["detail"].tolist() == ["completeness", "a.b"]
    assert details_of(table, "sap").empty
