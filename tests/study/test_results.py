import json
import shutil

import numpy as np
import pandas as pd
import pytest

from unweave.errors import ArgumentError, DataError
from unweave.metrics import udr
from unweave.study.folder import StudyFolder
from unweave.study.results import COLUMNS, NotInStudyError, as_table, collect, load, query, select, wide
from unweave.study.scores import LABEL_MODES, UDR, read_codes
from unweave.study.worker import work


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
    pd.testing.assert_frame_equal(load(finished.path), table)
    pd.testing.assert_frame_equal(load(str(finished.path / "results.parquet")), table)


def test_load_says_what_is_wrong(tmp_path):
    with pytest.raises(DataError, match="no results yet"):
        load(tmp_path)
    (tmp_path / "results.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match="not a results table"):
        load(tmp_path)
    pd.DataFrame({"run": ["a"]}).to_parquet(tmp_path / "results.parquet")
    with pytest.raises(DataError, match="it has no column 'data'"):
        load(tmp_path)


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
    found = load(tmp_path / "old.parquet")
    assert found["labels"].tolist() == ["", "given", "", "unknown", "predicted"]
    assert found["representation"].tolist() == ["mean", "mean", "sampled", "sampled", "mean"]
    assert found.dtypes.to_dict() == table.dtypes.to_dict()
    assert list(found) == list(COLUMNS)
    table[:0].drop(columns="labels").to_parquet(tmp_path / "empty.parquet", index=False)
    assert load(tmp_path / "empty.parquet").dtypes.to_dict() == table.dtypes.to_dict()


def test_select_says_of_which_labels_there_are_scores():
    table = as_table([row("ivae", "mig", 0.9, labels="given")])
    with pytest.raises(NotInStudyError, match=r"'mig' for mean \(u given\) only, not mean"):
        select(table, "mig")


# --- from run directories to the table ----------------------------------------------------------------


@pytest.fixture
def copied(finished, tmp_path):
    """The finished study in a folder that may be changed."""
    root = tmp_path / "copied"
    shutil.copytree(finished.root, root)
    return StudyFolder(root, finished.name, finished.plan)


def test_the_table_has_its_columns_and_types(finished):
    table = collect(finished).table
    assert list(table.columns) == list(COLUMNS)
    for name, kind in COLUMNS.items():
        assert table[name].dtype == pd.Series([], dtype=kind).dtype, name
    pd.testing.assert_frame_equal(load(finished.path), table)


def test_a_row_for_each_run_metric_representation_and_protocol(finished):
    table = collect(finished).table
    assert not table.duplicated(["run", "metric", "representation", "labels", "protocol"]).any()
    of_each = {
        *((f"gaussian_total_correlation{part}", "mean") for part in ("", ".jitter")),
        *((f"gaussian_total_correlation{part}", "sampled") for part in ("", ".jitter")),
        ("mig", "mean"),
        ("modularity", "mean"),
        ("udr", "mean"),
        *((f"unsupervised{part}", "sampled") for part in ("", ".reconstruction", ".kl", ".elbo")),
        *((f"unsupervised{part}", "mean") for part in (".l1", ".l2")),
    }
    for _, rows in table.groupby("run"):
        assert of_each == {(m, r) for m, r in zip(rows["metric"], rows["representation"], strict=True)}
    assert set(table["run"]) == {job.identity for job in finished.jobs}
    assert set(table["protocol"]) == {"dlib"}
    assert np.isfinite(table["value"]).all()
    assert (table["seconds"] >= 0).all()


def test_what_a_row_says_of_its_run(finished):
    table = collect(finished).table
    rows = table.drop_duplicates("run").set_index("run")
    for job in finished.jobs:
        row = rows.loc[job.identity]
        assert (row["method"], row["seed"], row["steps"], row["latent_size"]) == (job.method, job.seed, 3, 3)
        assert row["strength_name"] == ("beta" if job.method == "beta_vae" else "")
        assert row["strength"] == job.strength or (np.isnan(row["strength"]) and job.method == "vae")
        settings = json.loads(row["settings"])
        assert settings["architecture"] == "mlp"
        assert "beta" not in settings
        assert "steps" not in settings


def test_udr_is_of_the_runs_that_differ_in_their_seed_only(finished):
    table = collect(finished).table
    found = table[table["metric"] == "udr"].set_index("run")["value"]
    assert len(found) == 6
    unit = next(unit for unit in finished.units if unit.metric == UDR)
    for strength in (1, 4):
        jobs = [job for job in finished.jobs if job.strength == strength]
        assert len(jobs) == 2
        kept = [read_codes(finished.run(job.identity) / "scores" / unit.file) for job in jobs]
        assert kept[0][0].shape == (20, 3)
        score = udr.compute([codes for codes, _ in kept], kl_list=[kl for _, kl in kept], method="spearman")
        assert [found[job.identity] for job in jobs] == score.details["per_model"].tolist()


def test_unfinished_runs_are_left_out(copied):
    (copied.run(copied.jobs[0].identity) / copied.done_file).unlink()
    copied.fail(copied.jobs[0], "ValueError: x", "trace")
    results = collect(copied)
    assert results.table["run"].nunique() == 5
    partner = copied.jobs[1].identity  # no other seed is left to agree with
    assert "udr" not in set(results.table[results.table["run"] == partner]["metric"])
    assert results.failures[0]["error"] == "ValueError: x"
    assert results.failures[0]["strength"] == 1.0
    assert results.runs == copied.runs
    assert results.spec["planned"] == 6
    for job in copied.jobs[1:]:
        (copied.run(job.identity) / copied.done_file).unlink()
    empty = collect(copied).table
    assert len(empty) == 0
    assert list(empty.columns) == list(COLUMNS)


def test_agreement_that_is_known_is_not_computed_again(copied, monkeypatch):
    first = collect(copied).table
    monkeypatch.setattr("unweave.study.results._agreement", lambda *_, **__: pytest.fail("computed again"))
    pd.testing.assert_frame_equal(collect(copied).table, first)


def test_two_kinds_of_agreement_are_both_remembered(opened, tiny, monkeypatch):

    tiny["runs"]["product"][1] = {"method": "vae"}
    tiny["evaluation"]["metrics"] = [
        {"metric": "udr", "method": "spearman", "num_images": 20},
        {"metric": "udr", "as": "udr_lasso", "method": "lasso", "num_images": 20},
    ]
    del tiny["evaluation"]["params"]
    folder = opened(tiny)
    work(folder, "cpu")
    first = collect(folder).table
    assert first.groupby("metric")["run"].nunique().to_dict() == {"udr": 2, "udr_lasso": 2}
    monkeypatch.setattr("unweave.study.results._agreement", lambda *_, **__: pytest.fail("computed again"))
    pd.testing.assert_frame_equal(collect(folder).table, first)


def test_both_representations_and_labels(opened, tiny):
    from unweave.study.perform import perform

    tiny["evaluation"]["metrics"] = ["mig", {"metric": "mig", "as": "mig_five", "num_bins": 5}]
    tiny["evaluation"]["representations"] = ["mean", "sampled"]
    del tiny["evaluation"]["params"]
    folder = opened(tiny)
    perform(folder, folder.jobs[0], "cpu")
    table = collect(folder).table
    found = {
        (m, r): v for m, r, v in zip(table["metric"], table["representation"], table["value"], strict=True)
    }
    assert set(found) == {(m, r) for m in ("mig", "mig_five") for r in ("mean", "sampled")}
    assert len(set(found.values())) == 4


def test_parts_that_are_not_defined_are_left_out(finished, tmp_path):
    root = shutil.copytree(finished.root, tmp_path / "copy")
    copied = StudyFolder(root, finished.name, finished.plan)
    path = copied.run(copied.jobs[0].identity) / copied.done_file
    told = json.loads(path.read_text())
    told["rows"] += [
        ["mig.part", "mean", "", float("nan"), "dlib", 0.0],
        ["mig.other", "mean", "", 0.5, "dlib", 0.0],
    ]
    path.write_text(json.dumps(told))
    table = collect(copied).table
    assert "mig.part" not in set(table["metric"])
    assert "mig.other" in set(table["metric"])


def test_scores_of_an_older_version_are_read(finished, tmp_path):
    root = shutil.copytree(finished.root, tmp_path / "copy")
    copied = StudyFolder(root, finished.name, finished.plan)
    path = copied.run(copied.jobs[0].identity) / copied.done_file
    content = json.loads(path.read_text())
    del content["columns"]
    content["rows"] = [["mig", "mean_u_given", 0.9, "dlib", 2.0], ["mig", "mean_u_unknown", 0.1, "dlib", 3.0]]
    path.write_text(json.dumps(content))
    table = collect(copied).table
    rows = table[table["run"] == copied.jobs[0].identity].query("metric == 'mig'")
    kept = rows[["representation", "labels", "value", "protocol", "seconds"]].to_numpy().tolist()
    assert kept == [["mean", "given", 0.9, "dlib", 2.0], ["mean", "unknown", 0.1, "dlib", 3.0]]
