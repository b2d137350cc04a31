"""kill -9 of the driver, of workers and of both, at random moments: nothing is lost, nothing is there twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import Timeout
from safetensors.numpy import load_file

from unweave.files import is_leftover
from unweave.study.collecting import collect
from unweave.study.folder import ATTEMPTS
from unweave.study.worker import work

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
PATIENCE = 900  # seconds until something must have gone wrong
ACTIONS = ("worker", "worker", "driver", "both")


def test_twenty_kills_of_processes_at_work(opened, grid, undisturbed, forked):
    folder = opened(grid)
    kills = disturb(folder, forked(folder), 20, random.Random(1), most_seconds=0.4)
    assert len(kills) == 20
    assert set(kills) == {"worker", "driver", "both"}
    check(folder, undisturbed, others=1)  # the one that all others are forks of


def test_kills_of_the_command_and_its_workers(opened, grid, undisturbed, command):
    folder = opened(grid)
    assert len(disturb(folder, command(folder), 4, random.Random(2), most_seconds=1.0)) == 4
    check(folder, undisturbed)


def test_a_run_whose_driver_is_killed_again_and_again_has_not_failed(opened, grid, forked):
    """Always the same run, before it has anything to show, as often as a run may take its process down."""
    runs = [grid["runs"]["product"][0], {"method": "vae"}, {"seed": 0}]
    folder = opened({**grid, "runs": {"product": runs}, "training": {**grid["training"], "steps": 300}})
    (job,) = folder.jobs
    start = forked(folder)
    for _ in range(ATTEMPTS):
        driver = start()
        wait_for(lambda: begun(folder, job))
        kill(driver.pid, None)
        driver.wait(timeout=60)
        wait_for(lambda: not held(folder, job))
    assert start().wait(timeout=PATIENCE) == 0
    assert folder.failures() == []
    assert folder.is_done(job)


@pytest.mark.slow
def test_twenty_kills_of_the_command_and_its_workers(opened, grid, undisturbed, command):
    folder = opened(grid)
    assert len(disturb(folder, command(folder), 20, random.Random(3), most_seconds=0.3)) == 20
    check(folder, undisturbed)


def test_kills_of_a_study_whose_runs_need_others(opened, staged, tmp_path, forked):
    folder, peaceful = two_stages(opened, staged, tmp_path, seeds=2)
    assert len(disturb(folder, forked(folder), 8, random.Random(4), most_seconds=0.2)) == 8
    assert_same(folder, peaceful)


@pytest.mark.slow
def test_many_kills_of_a_study_whose_runs_need_others(opened, staged, tmp_path, command):
    folder, peaceful = two_stages(opened, staged, tmp_path, seeds=6)
    assert len(disturb(folder, command(folder), 30, random.Random(5), most_seconds=0.5)) == 30
    assert_same(folder, peaceful)


def two_stages(opened, staged, tmp_path, seeds):
    """A study of two first stages and four runs on top of them per seed, and the same as it comes out in peace."""
    staged["runs"]["product"][2] = {"seed": {"range": seeds}}
    peaceful = opened(staged, tmp_path / "peace")
    work(peaceful, "cpu")
    return opened(staged), peaceful


def assert_same(folder, peaceful):
    """The same scores of the same runs, with the same weights."""
    table, expected = collect(folder).table, collect(peaceful).table
    assert folder.failures() == []
    assert table.drop(columns="seconds").equals(expected.drop(columns="seconds"))
    for job in folder.jobs:
        weights, undisturbed = (
            load_file(each.run(job.identity) / "weights.safetensors") for each in (folder, peaceful)
        )
        assert weights.keys() == undisturbed.keys()
        assert all(np.array_equal(weights[name], undisturbed[name]) for name in weights)


def disturb(folder, start, times, rng, most_seconds):
    """Run a study to its end with kills on the way, spread over its runs; what was killed."""
    killed = []
    end = time.monotonic() + PATIENCE
    actions = [ACTIONS[i % len(ACTIONS)] for i in range(times)]
    rng.shuffle(actions)
    driver = start()
    for i, action in enumerate(actions):
        few = i * (len(folder.jobs) - 2) // times
        while len(done(folder)) < few or not (
            folder.workers.is_dir() and list(folder.workers.glob("[!.]*.json"))
        ):
            assert time.monotonic() < end
            assert parent(Path(f"/proc/{driver.pid}")) is not None, "it ended by itself"
            time.sleep(0.01)
        time.sleep(rng.uniform(0, most_seconds))
        workers = children(driver.pid)
        while not workers:
            assert time.monotonic() < end
            assert parent(Path(f"/proc/{driver.pid}")) is not None, "it ended by itself"
            workers = children(driver.pid)
        if action == "both":
            for pid in workers:
                kill(pid, driver.pid)
        elif action == "worker":
            kill(rng.choice(workers), driver.pid)
        if action != "worker":
            kill(driver.pid, None)
            driver.wait(timeout=60)
            driver = start()
        killed.append(action)
    assert driver.wait(timeout=PATIENCE) == 0
    return killed


def check(folder, undisturbed, others=0):
    """Every run is there once, with the scores of the undisturbed study, and nobody is left working."""
    assert folder.failures() == []
    assert {path.name for path in folder.runs.iterdir()} == {job.identity for job in folder.jobs}
    for job in folder.jobs:
        place = folder.run(job.identity)
        assert [path.name for path in place.glob("evaluation-*.json")] == [folder.done_file]
        assert sorted(path.name for path in (place / "scores").iterdir()) == sorted(
            u.file for u in folder.units
        )
        assert not any(is_leftover(path) for path in place.iterdir())
        assert not (place / "state.safetensors").exists()
    table = collect(folder).table
    assert not table.duplicated(["run", "metric", "representation", "labels", "protocol"]).any()
    expected = collect(undisturbed).table
    assert set(table["run"]) == {job.identity for job in folder.jobs}
    np.testing.assert_array_equal(table["value"], expected["value"])
    assert table.drop(columns="seconds").equals(expected.drop(columns="seconds"))
    end = time.monotonic() + 60
    while processes_of(folder) > others:
        assert time.monotonic() < end, "a worker outlives its driver"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def grid(_tiny):
    """Twenty-four runs."""
    runs = [_tiny["runs"]["product"][0], {"method": "beta_vae", "beta": [1, 4]}, {"seed": {"range": 12}}]
    return {**_tiny, "runs": {"product": runs}}


@pytest.fixture(scope="session")
def undisturbed(grid, tmp_path_factory):
    """The study as it comes out in peace."""
    from unweave.study.folder import StudyFolder
    from unweave.study.planning import plan
    from unweave.study.source import Source
    from unweave.study.spec import check as checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.mktemp("data")))
        study = checked(Source(grid))
        folder = StudyFolder(tmp_path_factory.mktemp("undisturbed"), study.name, plan(study))
        folder.write()
        work(folder, "cpu")
    return folder


class Driver:
    """One that ``forking_driver.py`` has started."""

    def __init__(self, server):
        self.server = server
        print("start", file=server.stdin, flush=True)
        self.pid = int(server.stdout.readline())

    def wait(self, timeout):
        return int(self.server.stdout.readline())


@pytest.fixture
def forked():
    servers = []

    def make(folder):
        script = Path(__file__).with_name("forking_driver.py")
        command = [sys.executable, str(script), str(folder.root), folder.name]
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        servers.append(server)
        return lambda: Driver(server)

    yield make
    for server in servers:
        server.kill()
        server.communicate()


@pytest.fixture
def command():
    """``unweave study resume``, as a user would start it."""
    started = []

    def make(folder):
        def start():
            program = [sys.executable, "-m", "unweave", "study", "resume", str(folder.path / "study.yaml")]
            options = ["-o", str(folder.root), "--processes", "2", "--threads", "1", "--no-report"]
            started.append(subprocess.Popen(program + options, start_new_session=True))
            return started[-1]

        return start

    yield make
    for process in started:
        process.kill()
        process.wait()


def begun(folder, job):
    """Whether a run is held by a process that has noted that it begins with it."""
    return folder.attempts(job.identity).exists() and held(folder, job)


def held(folder, job):
    lock = folder.lock(job.identity)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def done(folder):
    return list(folder.runs.glob(f"*/{folder.done_file}"))


def children(pid):
    """The process ids of a process's living children."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if parent(path) == pid]


def parent(process):
    try:
        state, above = (process / "stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:  # it ended just now
        return None
    return None if state == "Z" else int(above)


def kill(pid, of):
    """Kill this process and no other: one that got its number since has another parent."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if of is None or parent(Path(f"/proc/{pid}")) == of:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def processes_of(folder):
    """How many processes were started for a study's folder and are still there."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found += str(folder.root).encode() in (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it ended just now
            continue
    return found
