import json
import os
import socket
import subprocess
import sys
import time

import pytest

from unweave.cli.study_status import as_json, show
from unweave.errors import DataError
from unweave.study.folder import StudyPaths
from unweave.study.perform import perform
from unweave.study.status import living_workers, seconds_left, status, worker_activity


@pytest.fixture
def paths(opened):
    """A study of six runs: two done, one failed, one that this process works on."""
    folder = opened()
    for job in folder.jobs[:2]:
        perform(folder, job, "cpu")
    folder.fail(folder.jobs[2], "ValueError: purple", "Traceback …")
    say(folder, os.getpid(), folder.jobs[3].identity)
    return StudyPaths(folder.root, folder.name)


def say(paths, pid, run, **changes):
    told = {"host": socket.gethostname(), "pid": pid, "time": time.time(), "started": time.time() - 100}
    told["began"] = time.time() - 10
    told |= {"finished": 2, "run": run, "what": "vae on squares", "part": "training", "share": 0.5, **changes}
    paths.workers.mkdir(parents=True, exist_ok=True)
    path = paths.workers / f"{told['host']}-{pid}.json"
    path.write_text(json.dumps(told))
    return path


def dead_pid():
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_runs_are_counted_by_state(paths, images):
    found = status(paths)
    assert found.counts == {"done": 2, "failed": 1, "running": 1, "waiting": 2}
    assert found.groups == {
        (str(images), "beta_vae"): {"done": 2, "failed": 1, "running": 1},
        (str(images), "vae"): {"waiting": 2},
    }
    assert [failure["error"] for failure in found.failures] == ["ValueError: purple"]
    assert [worker["pid"] for worker in found.workers] == [os.getpid()]
    # Two runs took 90 s; one is at it for 10 s, two wait.
    assert found.seconds_left == pytest.approx(2 * 45 + 35, rel=0.05)
    assert worker_activity(living_workers(paths)) == "vae on squares (training 50%)"


def test_problems_of_runs_that_are_done_are_shown(paths, capsys):
    done = next(job[0] for job in paths.read_plan()["runs"])
    (paths.run(done) / "problems.json").write_text('{"problems": ["the generator has collapsed"]}')
    (problem,) = status(paths).problems
    assert (problem["run"], problem["problem"]) == (done, "the generator has collapsed")
    assert as_json(status(paths))["problems"] == [problem]
    show(status(paths))
    assert f"done {done}" in (printed := capsys.readouterr().out)
    assert "but the generator has collapsed" in printed
    (paths.run(done) / "problems.json").write_text("{")
    assert status(paths).problems == []


def test_a_run_that_is_done_has_not_failed(paths):
    failed = status(paths).failures[0]["run"]
    (paths.run(failed)).mkdir(parents=True)
    (paths.run(failed) / paths.read_plan()["done"]).write_text("{}")
    assert status(paths).counts["failed"] == 0


def test_what_dead_workers_said_is_removed(paths):
    dead = say(paths, dead_pid(), paths.read_plan()["runs"][4][0])
    old = say(paths, 1, paths.read_plan()["runs"][5][0], host="elsewhere", time=time.time() - 3600)
    fresh = say(paths, 2, paths.read_plan()["runs"][5][0], host="elsewhere")
    torn = paths.workers / f"{socket.gethostname()}-3.json"
    torn.write_text('{"host": ')
    hidden = paths.workers / f".host-4-{'0' * 32}.json"  # being written
    hidden.write_text(fresh.read_text())
    assert {(worker["host"], worker["pid"]) for worker in living_workers(paths)} == {
        (socket.gethostname(), os.getpid()),
        ("elsewhere", 2),
    }
    assert not dead.exists()
    assert not old.exists()
    assert torn.exists()
    assert hidden.exists()
    assert status(paths).counts["running"] == 2


def test_nobody_knows_how_long_it_takes_when_nobody_works(opened):
    folder = opened()
    found = status(StudyPaths(folder.root, folder.name))
    assert found.counts == {"waiting": 6}
    assert found.seconds_left is None
    assert found.workers == []
    assert worker_activity(living_workers(folder)) == ""


def test_a_finished_study(finished):
    found = status(StudyPaths(finished.root, finished.name))
    assert found.counts == {"done": 6}
    assert found.seconds_left is None


def test_the_state_as_json(paths):
    found = json.loads(json.dumps(as_json(status(paths))))
    assert {state: found[state] for state in ("done", "failed", "running", "waiting")} == {
        "done": 2,
        "failed": 1,
        "running": 1,
        "waiting": 2,
    }
    assert found["study"] == "tiny"
    assert sum(group["done"] for group in found["groups"]) == 2
    assert found["failures"][0]["trace"].startswith("Traceback")


def test_a_study_that_was_never_started(tmp_path):
    with pytest.raises(DataError, match="no study was started there"):
        status(StudyPaths(tmp_path, "nothing"))
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "plan.json").write_text("{")
    with pytest.raises(DataError, match=r"plan.json: truncated or damaged"):
        status(StudyPaths(tmp_path, "torn"))


def test_watching_takes_neither_torch_nor_pandas():
    script = "import sys, unweave.study.status; sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_the_time_left_falls_while_a_run_goes_on(paths):
    """Whether or not a run has been finished; before that, the pace of those under way is all that is known."""
    job = paths.read_plan()["runs"][3][0]
    left = []
    for seconds in (10, 20, 40):
        say(paths, os.getpid(), job, began=time.time() - seconds, started=time.time() - 90 - seconds)
        left.append(status(paths).seconds_left)
    assert left == pytest.approx([125, 115, 95], rel=0.05)
    say(paths, os.getpid(), job, began=time.time() - 10, finished=0, share=0.25)
    assert status(paths).seconds_left == pytest.approx(2 * 40 + 30, rel=0.05)
    say(paths, os.getpid(), job, began=time.time() - 10, finished=0, share=0.0)
    assert status(paths).seconds_left is None


def test_the_last_runs_take_as_long_as_the_slowest_of_them():
    """A worker that has nothing to do helps nobody: the rest of a run is not divided by the number of workers."""
    now = time.time()
    busy = {
        "run": "a",
        "part": "training",
        "share": 0.5,
        "finished": 1,
        "started": now - 100,
        "began": now - 40,
    }
    idle = {"run": "", "part": "", "share": 0.0, "finished": 1, "started": now - 60}
    # Two runs took 60 + 60 s; one is at it for 40 s.
    assert seconds_left(1, [busy, idle]) == pytest.approx(20, rel=0.05)
    assert seconds_left(2, [busy]) == pytest.approx(20 + 60, rel=0.05)
    assert seconds_left(2, [busy, idle]) == pytest.approx(60, rel=0.05)
    assert seconds_left(0, [idle]) is None
