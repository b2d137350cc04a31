import json
import os
import socket
import subprocess
import sys
import time

import pytest

from unweave.cli.study_status import as_json
from unweave.errors import DataError
from unweave.study.place import Place
from unweave.study.status import living_workers, status, watch_workers
from unweave.study.work import perform


@pytest.fixture
def place(opened):
    """A study of six runs: two done, one failed, one that this process works on."""
    folder = opened()
    for job in folder.jobs[:2]:
        perform(folder, job, "cpu")
    folder.fail(folder.jobs[2], "ValueError: purple", "Traceback …")
    say(folder, os.getpid(), folder.jobs[3].identity)
    return Place(folder.root, folder.name)


def say(place, pid, run, **changes):
    told = {"host": socket.gethostname(), "pid": pid, "time": time.time(), "started": time.time() - 100}
    told |= {"finished": 2, "run": run, "what": "vae on squares", "part": "training", "share": 0.5, **changes}
    place.workers.mkdir(parents=True, exist_ok=True)
    path = place.workers / f"{told['host']}-{pid}.json"
    path.write_text(json.dumps(told))
    return path


def dead_pid():
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_runs_are_counted_by_state(place, images):
    found = status(place)
    assert found.counts == {"done": 2, "failed": 1, "running": 1, "waiting": 2}
    assert found.groups == {
        (str(images), "beta_vae"): {"done": 2, "failed": 1, "running": 1},
        (str(images), "vae"): {"waiting": 2},
    }
    assert [failure["error"] for failure in found.failures] == ["ValueError: purple"]
    assert [worker["pid"] for worker in found.workers] == [os.getpid()]
    assert found.seconds_left == pytest.approx(3 / (2 / 100), rel=0.05)  # three runs at two in 100 s
    assert watch_workers(place) == "vae on squares (training 50%)"


def test_a_run_that_is_done_has_not_failed(place):
    failed = status(place).failures[0]["run"]
    (place.run(failed)).mkdir(parents=True)
    (place.run(failed) / place.planned()["done"]).write_text("{}")
    assert status(place).counts["failed"] == 0


def test_what_dead_workers_said_is_removed(place):
    dead = say(place, dead_pid(), place.planned()["runs"][4][0])
    old = say(place, 1, place.planned()["runs"][5][0], host="elsewhere", time=time.time() - 3600)
    fresh = say(place, 2, place.planned()["runs"][5][0], host="elsewhere")
    torn = place.workers / f"{socket.gethostname()}-3.json"
    torn.write_text('{"host": ')
    hidden = place.workers / f".host-4-{'0' * 32}.json"  # being written
    hidden.write_text(fresh.read_text())
    assert {(worker["host"], worker["pid"]) for worker in living_workers(place)} == {
        (socket.gethostname(), os.getpid()),
        ("elsewhere", 2),
    }
    assert not dead.exists()
    assert not old.exists()
    assert torn.exists()
    assert hidden.exists()
    assert status(place).counts["running"] == 2


def test_nobody_knows_how_long_it_takes_when_nobody_works(opened):
    folder = opened()
    found = status(Place(folder.root, folder.name))
    assert found.counts == {"waiting": 6}
    assert found.seconds_left is None
    assert found.workers == []
    assert watch_workers(folder) == ""


def test_a_finished_study(finished):
    found = status(Place(finished.root, finished.name))
    assert found.counts == {"done": 6}
    assert found.seconds_left is None


def test_the_state_as_json(place):
    found = json.loads(json.dumps(as_json(status(place))))
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
        status(Place(tmp_path, "nothing"))
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "plan.json").write_text("{")
    with pytest.raises(DataError, match=r"plan.json: cannot be read"):
        status(Place(tmp_path, "torn"))


def test_watching_takes_neither_torch_nor_pandas():
    script = "import sys, unweave.study.status; sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
