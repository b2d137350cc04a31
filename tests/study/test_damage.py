"""One damaged file does not stop a study: it is named, set aside and made again, or left out."""

import json
import os
import shutil
import subprocess

import pandas as pd
import pytest

from unweave.errors import DamagedFileError, DataError, DiskFullError, UnweaveError
from unweave.study import driver
from unweave.study import perform as performing
from unweave.study.collecting import collect, set_aside_damaged
from unweave.study.executors import Local
from unweave.study.folder import StudyFolder, count_crash_of, open_study
from unweave.study.grid import GridError, expand
from unweave.study.planning import plan
from unweave.study.scores import read_scores
from unweave.study.source import Source, parse
from unweave.study.spec import check, load_study
from unweave.study.status import living_workers, status
from unweave.study.worker import work
from unweave.training.score_file import ScoreFile

DAMAGE = {
    "empty": b"",
    "cut": None,
    "no text": b"\xff\xfe\x00",
    "list": b"[1, 2]",
    "other": b'{"rows": [[1]], "columns": [2]}',
    "deep": b"[" * 100_000,
}


@pytest.fixture
def copied(finished, tmp_path):
    """The finished study in a folder that may be changed."""
    root = tmp_path / "copied"
    shutil.copytree(finished.root, root)
    return StudyFolder(root, finished.name, finished.plan)


def damage(path, content):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if content is None else content)


def values(folder):
    return collect(folder).table.drop(columns="seconds")


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_damaged_scores_of_a_run_are_left_out_and_told(copied, capsys, content):
    job = copied.jobs[0]
    damage(copied.run(job.identity) / copied.done_file, content)
    table = collect(copied).table
    assert set(table["run"]) == {other.identity for other in copied.jobs[1:]}
    told = capsys.readouterr().err
    assert f"{job.identity}/{copied.done_file}: truncated or damaged" in told
    assert "'unweave study resume' makes it again" in told


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_they_are_set_aside_and_made_again(copied, finished, capsys, content):
    path = copied.run(copied.jobs[0].identity) / copied.done_file
    damage(path, content)
    set_aside_damaged(copied)
    assert "set aside as" in capsys.readouterr().err
    assert path.with_name(f"{path.name}.damaged").exists()
    assert copied.pending() == [copied.jobs[0]]
    work(copied, "cpu")
    pd.testing.assert_frame_equal(values(copied), values(finished))


@pytest.mark.parametrize(
    "pattern", ["scores/*.json", "scores/udr*", "weights.safetensors", "spec.yaml", "history.jsonl"]
)
@pytest.mark.parametrize("content", [b"", None, b"\xff" * 50])
def test_damaged_files_of_a_run_are_made_again(copied, finished, capsys, pattern, content):
    run = copied.run(copied.jobs[0].identity)
    (run / copied.done_file).unlink()
    if pattern == "scores/udr*":
        path = next(path for path in (run / "scores").iterdir() if path.suffix != ".json")
    else:
        path = next(run.glob(pattern))
    damage(path, content)
    work(copied, "cpu")
    assert copied.failures() == []
    pd.testing.assert_frame_equal(values(copied), values(finished))


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_udr_json_is_computed_again(copied, finished, content):
    collect(copied)
    damage(copied.path / "udr.json", content)
    pd.testing.assert_frame_equal(values(copied), values(finished))


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_of_a_failure_is_a_failure(copied, content):
    job = copied.jobs[0]
    (copied.run(job.identity) / copied.done_file).unlink()
    copied.fail(job, "ValueError: reason", "trace")
    damage(copied.failure(job), content)
    (failure,) = collect(copied).failures
    assert (failure["run"], failure["method"]) == (job.identity, job.method)
    assert isinstance(failure["error"], str)
    summary = status(copied)
    assert summary.counts["failed"] == 1
    assert summary.failures[0]["run"] == job.identity
    with pytest.raises(UnweaveError, match="1 runs failed"):
        driver.check_finished(collect(copied))


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_plan_is_made_again_from_the_study(copied, content):
    damage(copied.path / "plan.json", content)
    assert [job.identity for job in open_study(copied.root, "tiny").jobs] == [j.identity for j in copied.jobs]
    with pytest.raises(DataError, match=r"plan\.json: truncated or damaged"):
        status(copied)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"host": 3}', b'{"pid": "x", "host": 1}'])
def test_damaged_files_of_workers_and_attempts_count_as_none(copied, content):
    copied.workers.mkdir(exist_ok=True)
    (copied.workers / "host-1.json").write_bytes(content)
    copied.attempts("x").write_bytes(content)
    assert living_workers(copied) == []
    count_crash_of(copied, 1)


def test_another_study_file_that_is_no_text_is_kept_aside(copied):
    (copied.path / "study.yaml").write_bytes(b"\xff\xfe")
    copied.write()
    assert "name: tiny" in (copied.path / "study.yaml").read_text()
    assert len(list(copied.path.glob("study-until-*.yaml"))) == 1


@pytest.mark.parametrize("which", ["done", "score"])
def test_a_changed_number_in_a_score_is_told(copied, capsys, which):
    run = copied.run(copied.jobs[0].identity)
    path = run / copied.done_file if which == "done" else next((run / "scores").glob("*.json"))
    content = json.loads(path.read_text())
    content["rows"][0][
        content["rows"][0].index(next(v for v in content["rows"][0] if isinstance(v, float)))
    ] = 0.9
    path.write_text(json.dumps(content))
    with pytest.raises(DamagedFileError, match=f"{path.name}.*not the hash that was written"):
        read_scores(path) if which == "done" else ScoreFile.read(path)


def test_whoever_reads_results_runs_no_code_of_the_study(copied, tmp_path):
    code = tmp_path / "code.py"
    code.write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    (copied.path / "plan.json").unlink()
    with open(copied.path / "study.yaml", "a") as file:
        file.write(f"\nimports: [{code}]\n")
    with pytest.raises(DataError, match=r"plan\.json: is needed, .*code\.py, which is not imported here"):
        open_study(copied.root, "tiny")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", ["plan.json", ".lock"])
def test_a_folder_in_the_place_of_a_file_is_one_clear_error(copied, name):
    (copied.path / name).unlink(missing_ok=True)
    (copied.path / name).mkdir()
    with pytest.raises(DataError, match=f"{name}: (is a folder|cannot be locked)"):
        copied.write()


# --- full and read-only disks ----------------------------------------------------------------------


def test_a_full_disk_stops_the_study_with_one_message(opened, small_disk, monkeypatch):
    folder = opened(root=small_disk(1200) / "out")
    with pytest.raises(DiskFullError, match=r"the disk is full\. What was finished is safe"):
        work(folder, "cpu")
    assert folder.failures() == []
    assert not list((folder.root / "state").glob("*.failed.json"))


def test_a_full_disk_ends_the_command_with_one_message(opened, small_disk):
    folder = opened(root=small_disk(1200) / "out")
    with pytest.raises(DiskFullError, match="the disk is full"):
        Local(processes=1, device="cpu").run(folder, lambda: bool(folder.pending()))
    assert folder.failures() == []


def test_the_study_goes_on_once_there_is_space(opened, finished, small_disk):
    disk = small_disk(1200)
    folder = opened(root=disk / "out")
    with pytest.raises(DiskFullError):
        work(folder, "cpu")
    subprocess.run(["mount", "-o", "remount,size=1g", str(disk)], check=True)
    work(folder, "cpu")
    pd.testing.assert_frame_equal(values(folder), values(finished))


def test_results_are_read_from_a_read_only_folder(finished, small_disk, capsys):
    disk = small_disk(1_000_000)
    shutil.copytree(finished.root, disk / "out")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    folder = open_study(disk / "out", "tiny")
    pd.testing.assert_frame_equal(values(folder), values(finished))
    assert "not written (Read-only file system)" in capsys.readouterr().err


def test_scores_are_written_through_no_link(opened, tmp_path):
    folder = opened()
    job = folder.jobs[0]
    (tmp_path / "victim").mkdir()
    folder.run(job.identity).mkdir(parents=True)
    (folder.run(job.identity) / "scores").symlink_to(tmp_path / "victim")
    assert performing.perform(folder, job, "cpu") == "failed"
    assert "is a link" in folder.failures()[0]["error"]
    assert not any((tmp_path / "victim").iterdir())


# --- study files of strangers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [("steps", 10**30), ("latent_size", 10**15), ("batch_size", 10**12), ("image_size", 10**9)],
)
def test_absurd_numbers_are_refused_in_the_study_and_in_its_grid(tiny, key, value):
    with pytest.raises(DataError, match=f"{key} = {value}"):
        check(Source({**tiny, "training": {key: value}}))
    tiny["runs"]["product"].append({key: value})
    with pytest.raises(DataError, match=f"{key} = {value}"):
        plan(check(Source(tiny)), Source(tiny))


def test_absurd_seeds_are_refused(tiny):
    tiny["runs"]["product"][-1] = {"seed": 10**25}
    with pytest.raises(DataError, match="seed = 10000000000000000000000000: needs a whole number"):
        plan(check(Source(tiny)), Source(tiny))


@pytest.mark.parametrize(
    "grid",
    [
        {"seed": {"range": 10**15}},
        {"seed": {"range": 10**30}},
        {"product": [{f"a{i}": list(range(10))} for i in range(9)]},
        {f"a{i}": list(range(10)) for i in range(9)},
    ],
)
def test_a_grid_of_more_points_than_a_study_can_have_is_refused_before_it_is_made(grid):
    with pytest.raises(GridError, match=r"at most 1,000,000 runs|too large"):
        expand(grid)


def test_a_study_file_of_many_aliases_is_refused(tmp_path):
    lines = ["name: bomb", "a0: &a0 [lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    with pytest.raises(DataError, match=r"bomb\.yaml, line \d+: not valid YAML .*100,000 values"):
        parse("\n".join(lines), "bomb.yaml")
    os.mkfifo(tmp_path / "fifo.yaml")
    with pytest.raises(DataError, match="not a regular file"):
        load_study(tmp_path / "fifo.yaml")


def test_a_link_to_a_study_file_is_as_good(tiny_file, tmp_path):
    (tmp_path / "link.yaml").symlink_to(tiny_file)
    assert load_study(tmp_path / "link.yaml")[0].name == "tiny"


def test_scores_of_earlier_versions_are_read_as_before(copied, finished):
    path = copied.run(copied.jobs[0].identity) / copied.done_file
    content = json.loads(path.read_text())
    kept = [
        content["columns"].index(name)
        for name in ("metric", "representation", "value", "protocol", "seconds")
    ]
    rows = [[row[column] for column in kept] for row in content["rows"]]
    path.write_text(json.dumps({"rows": rows, "training_seconds": 1.0, "finished": 0.0}))
    columns = ["run", "metric", "representation", "value"]
    pd.testing.assert_frame_equal(values(copied)[columns], values(finished)[columns])
