import shutil
from dataclasses import replace

import pandas as pd
import pytest

from unweave.errors import ArgumentError, DataError
from unweave.study import load_results, open_results, stored, stored_names, storing
from unweave.study.collecting import collect
from unweave.study.folder import StudyFolder
from unweave.study.planning import Plan, without_runs
from unweave.study.results import COLUMNS, as_table
from unweave.study.spec import known_studies
from unweave.study.stored import count_stored, stored_title
from unweave.study.storing import store, stored_runs, write_stored


@pytest.fixture
def copied(finished, tmp_path):
    """The finished study in a folder that may be changed, without a folder of its own: only runs."""
    shutil.copytree(finished.runs, tmp_path / "elsewhere" / "runs")
    return StudyFolder(tmp_path / "elsewhere", finished.name, finished.plan)


@pytest.fixture
def stored_here(tmp_path, monkeypatch):
    """An empty folder of stored tables."""
    monkeypatch.setattr(stored, "stored_folder", lambda: tmp_path / "results")
    monkeypatch.setattr(storing, "stored_folder", lambda: tmp_path / "results")
    return tmp_path / "results"


def part(folder, runs):
    """A folder in which only some of the runs are done."""
    root = folder.root.with_name(f"part-{'-'.join(map(str, runs))}")
    for number in runs:
        identity = folder.jobs[number].identity
        shutil.copytree(folder.run(identity), root / "runs" / identity)
    return StudyFolder(root, folder.name, folder.plan)


def test_what_is_stored_is_what_was_collected(copied, stored_here):
    before = sorted(copied.root.rglob("*"))
    outcome = store(copied, stored_here)
    assert sorted(copied.root.rglob("*")) == before  # nothing is written in the folder
    assert (outcome.added, outcome.replaced, outcome.kept, outcome.dropped, outcome.planned) == (
        6,
        0,
        0,
        0,
        6,
    )
    table = load_results("stored:tiny")
    assert list(table.columns) == list(COLUMNS)
    keys = ["run", "metric", "representation"]
    expected = collect(copied).table.sort_values(keys, ignore_index=True)
    expected["seconds"] = expected["seconds"].round(2)
    pd.testing.assert_frame_equal(table.sort_values(keys, ignore_index=True), expected)
    assert stored_names() == ["tiny"]
    assert count_stored("tiny") == "6"


def test_runs_of_another_machine_are_kept(copied, stored_here):
    store(part(copied, [0, 1, 2]), stored_here)
    outcome = store(part(copied, [2, 3]), stored_here)
    assert (outcome.added, outcome.replaced, outcome.kept) == (1, 1, 2)
    assert set(outcome.table["run"]) == {job.identity for job in copied.jobs[:4]}
    assert stored_runs(copied.plan) == {job.identity for job in copied.jobs[:4]}
    left = without_runs(copied.plan, stored_runs(copied.plan))
    assert [job.identity for job in left.jobs] == [job.identity for job in copied.jobs[4:]]


def test_runs_that_the_study_no_longer_has_are_dropped(copied, stored_here):
    store(copied, stored_here)
    smaller = Plan(copied.study, copied.jobs[:2], copied.units)
    outcome = store(replace(copied, plan=smaller), stored_here)
    assert outcome.dropped == 4
    assert outcome.table["run"].nunique() == 2


def test_scores_of_another_evaluation_do_not_count(copied, stored_here):
    store(copied, stored_here)
    other = Plan(copied.study, copied.jobs, copied.units[:1])
    assert stored_runs(other) == set()


def test_nothing_finished_is_nothing_stored(copied, stored_here, tmp_path):
    with pytest.raises(DataError, match="no run of tiny is finished there"):
        store(StudyFolder(tmp_path / "empty", "tiny", copied.plan), stored_here)
    assert not stored_here.exists()


def test_an_unknown_name_lists_what_is_stored(copied, stored_here):
    with pytest.raises(ArgumentError, match="none yet"):
        load_results("stored:tiny")
    store(copied, stored_here)
    with pytest.raises(ArgumentError, match="tiny"):
        load_results("stored:tinny")


def test_a_damaged_table_is_one_clear_error_and_stays(copied, stored_here):
    path = store(copied, stored_here).path
    damaged = path.read_bytes()[:-100]
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"tiny\.parquet: not a results table"):
        load_results("stored:tiny")
    with pytest.raises(DataError, match=r"tiny\.parquet"):
        store(copied, stored_here)
    assert path.read_bytes() == damaged
    assert count_stored("tiny") == "damaged"


def test_results_are_opened_by_any_address(copied, finished, tmp_path):
    finished.write()
    by_name = open_results(finished.name, finished.root)
    by_folder = open_results(str(finished.path), tmp_path)
    pd.testing.assert_frame_equal(by_name.table, by_folder.table)
    assert by_folder.runs == finished.runs


@pytest.mark.parametrize("name", sorted(set(stored_names()) & set(known_studies())))
def test_what_comes_with_unweave_is_of_its_study(name):
    results = open_results(f"stored:{name}", None)
    assert results.runs is None
    assert 0 < results.table["run"].nunique() <= results.spec["planned"]
    from unweave.study import load_study, plan

    assert stored_runs(plan(*load_study(name))) == set(results.table["run"])
    assert stored.stored_file(name).stat().st_size < 1_000_000


@pytest.mark.parametrize("name", sorted(set(stored_names()) - set(known_studies())))
def test_what_no_study_is_of_says_what_it_is(name):
    results = open_results(f"stored:{name}", None)
    assert results.runs is None
    assert results.spec == {"title": stored_title(name)}
    assert stored_title(name) not in ("", "damaged")
    assert count_stored(name) == str(results.table["run"].nunique())
    assert list(results.table.columns) == list(COLUMNS)
    assert stored.stored_file(name).stat().st_size < 1_000_000


def test_a_table_without_a_study_is_stored_with_its_title(stored_here):
    stored_here.mkdir()
    write_stored(stored_here / "mine.parquet", as_table([]), title="Mine")
    assert (stored_title("mine"), count_stored("mine")) == ("Mine", "0")
    assert open_results("stored:mine", None).spec == {"title": "Mine"}
    (stored_here / "mine.parquet").write_bytes(b"PAR1")
    assert stored_title("mine") == "damaged"


def test_a_study_that_was_not_run_here_says_that_its_results_are_stored(tmp_path):
    with pytest.raises(DataError, match=r"results of it are stored: stored:yang-32$"):
        open_results("yang-32", tmp_path)
    with pytest.raises(DataError, match=r"'unweave study run' does$"):
        open_results("demo", tmp_path)
