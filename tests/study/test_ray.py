"""Studies on a real Ray cluster: a head and two nodes, all on this machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from unweave import extensions
from unweave.data.registry import RECIPES
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import scratch_folder
from unweave.methods import METHODS
from unweave.methods.registry import TERMS
from unweave.metrics import METRICS
from unweave.study import ray as ray_module
from unweave.study.collecting import collect
from unweave.study.driver import run
from unweave.study.folder import ATTEMPTS
from unweave.study.perform import perform
from unweave.study.ray import (
    RayCluster,
    Storage,
    StorageError,
    count_crash_in_storage,
    fetch_run,
    perform_in_storage,
)
from unweave.study.status import living_workers
from unweave.study.worker import work
from unweave.training.run import STATE, steps_done

LONG = 300
pytestmark = pytest.mark.xdist_group("ray")  # one cluster is enough


@pytest.fixture(scope="module")
def _node_data(tmp_path_factory):
    return tmp_path_factory.mktemp("node-data")


@pytest.fixture(autouse=True)
def data_folder(_node_data, monkeypatch):
    """One folder for all: Ray starts new processes where the environment is another."""
    monkeypatch.setenv("UNWEAVE_DATA", str(_node_data))
    return _node_data


@pytest.fixture(scope="module")
def nodes(_node_data):
    """The cluster."""
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(_node_data))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_register_timeout_seconds", "300")
        head = {"num_cpus": 0, "include_dashboard": False}
        cluster = patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        try:
            patiently(lambda: cluster.add_node(num_cpus=1))
            patiently(lambda: cluster.add_node(num_cpus=1))
            ray.init(cluster.address, log_to_driver=False, logging_level="error")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def patiently(start):
    """Ray gives the parts of a node 15 seconds to start, too few where other work goes on: try again."""
    for _ in range(4):
        try:
            return start()
        except Exception as error:
            last = error
    raise last


@pytest.fixture
def expected(finished):
    """The results as a worker of this machine gets them."""
    return collect(finished).table


@pytest.fixture
def long_study(tiny, opened):
    """Two runs of some seconds."""

    def make(steps, root=None):
        tiny["training"]["steps"] = steps
        tiny["runs"]["product"][1] = {"method": "beta_vae", "beta": [1, 4]}
        tiny["runs"]["product"][2] = {"seed": 0}
        return opened(tiny, root)

    return make


def assert_same(table: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Every score, and each once; how long it took is another matter."""
    keys = ["run", "metric", "representation", "labels", "part"]
    assert not table.duplicated(keys).any()
    pd.testing.assert_frame_equal(
        table.drop(columns="seconds").sort_values(keys, ignore_index=True),
        expected.drop(columns="seconds").sort_values(keys, ignore_index=True),
    )


def test_same_results_as_without_ray(nodes, opened, expected):
    folder = opened()
    assert_same(run(folder, RayCluster(threads=1, device="cpu")).table, expected)
    assert not living_workers(folder)
    assert not folder.attempts(folder.jobs[0].identity).exists()


class KillANode:
    """A watch: a node that works on a run loses its power, and another joins the cluster."""

    def __init__(self, nodes, folder):
        self.nodes, self.folder = nodes, folder
        self.lost, self.before = None, {}

    def __call__(self):
        for worker in living_workers(self.folder) if self.lost is None else []:
            self.lost = worker["run"]
            power_off(self.nodes, worker["pid"])
            self.before = finish_times(self.folder)
            patiently(lambda: self.nodes.add_node(num_cpus=1))
            break
        return bool(self.folder.pending())


def power_off(nodes, worker: int) -> None:
    """Of the node that a process works for nothing is left, and none of it had time to tell."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = {int(child): int(parent) for child, parent in map(str.split, listed.stdout.splitlines())}
    raylet = parents[worker]
    os.kill(raylet, signal.SIGSTOP)
    for child in [child for child, parent in parents.items() if parent == raylet]:
        os.kill(child, signal.SIGKILL)
    node = next(n for n in nodes.worker_nodes if n.all_processes["raylet"][0].process.pid == raylet)
    nodes.remove_node(node, allow_graceful=False)


def finish_times(folder):
    paths = {job.identity: folder.run(job.identity) / folder.done_file for job in folder.jobs}
    return {job: path.stat().st_mtime_ns for job, path in paths.items() if path.exists()}


def test_a_node_dies_and_another_joins(nodes, long_study, tmp_path):
    undisturbed = long_study(LONG, tmp_path / "undisturbed")
    work(undisturbed, "cpu")
    folder = long_study(LONG)
    kill = KillANode(nodes, folder)
    RayCluster(threads=1, device="cpu").run(folder, kill)
    assert kill.lost is not None
    assert kill.lost not in kill.before
    assert kill.before.items() <= finish_times(folder).items()  # what was done was not done again
    assert_same(collect(folder).table, collect(undisturbed).table)


def test_an_interruption_leaves_a_checkpoint(nodes, long_study):
    folder = long_study(100_000)

    def press_ctrl_c():
        if any(worker["part"] == "training" for worker in living_workers(folder)):
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        RayCluster(threads=1, device="cpu").run(folder, press_ctrl_c)
    places = [folder.run(job.identity) for job in folder.jobs]
    assert any(0 < steps_done(place) < 100_000 for place in places)
    assert len(folder.pending()) == 2
    assert not living_workers(folder)
    with folder.lock(folder.jobs[0].identity), folder.lock(folder.jobs[1].identity):
        pass  # nobody holds them any more
    import ray

    assert ray.is_initialized()  # it was so before


def test_nodes_without_the_data_fail_no_run(nodes, tiny, opened):
    tiny["runs"]["product"][0] = {"data": "small_norb"}
    folder = opened(tiny)
    with pytest.raises(UnweaveError, match=r"no node of the Ray cluster can do runs: .*small_norb"):
        RayCluster(threads=1).run(folder, lambda: True)
    assert len(folder.pending()) == len(folder.jobs)


def test_results_arrive_by_a_storage(nodes, opened, expected, tmp_path):
    folder, storage = opened(), tmp_path / "storage"
    assert_same(run(folder, RayCluster(device="cpu", storage=storage.as_uri())).table, expected)
    for job in folder.jobs:
        names = {path.name for path in (storage / "runs" / job.identity).iterdir()}
        assert names == {path.name for path in folder.run(job.identity).iterdir()}
        assert folder.done_file in names
        assert STATE not in names
    again = opened(root=tmp_path / "again")  # whoever has the storage has the results
    assert_same(run(again, RayCluster(device="cpu", storage=storage.as_uri())).table, expected)


@pytest.fixture
def own_code(tmp_path):
    """A user's file, loaded here; forgotten at the end."""
    path = shutil.copy(Path(__file__).with_name("extension.py"), tmp_path / "own_code.py")
    extensions.load([path])
    yield path
    for registry in (METHODS, METRICS, TERMS, RECIPES):
        for name in [name for name in registry if registry.origin(name) == str(path)]:
            registry.unregister(name)


def test_nodes_get_the_code_that_a_study_imports(nodes, tiny, opened, own_code):
    tiny["imports"] = [str(own_code)]
    runs = [{"data": "dots"}, [{"method": "half_vae"}, {"method": "pixel_gaussian"}], {"seed": 0}]
    tiny["runs"]["product"] = runs
    tiny["evaluation"] = {"metrics": ["spread"], "num_train": 20, "num_test": 10}
    folder = opened(tiny)

    def watch():  # when the tasks have been prepared, the nodes cannot see the file any more
        own_code.unlink(missing_ok=True)
        return bool(folder.pending())

    RayCluster(device="cpu").run(folder, watch)
    assert folder.failures() == []
    assert collect(folder).table["metric"].tolist() == ["spread"]


@pytest.fixture
def peaceful(opened, staged, tmp_path):
    """The study whose runs need others, as a worker of this machine does it."""
    folder = opened(staged, tmp_path / "peace")
    work(folder, "cpu")
    return folder


def test_runs_that_need_others(nodes, opened, staged, peaceful):
    folder = opened(staged)
    kill = KillAProcess(folder, "refined")
    RayCluster(threads=1, device="cpu").run(folder, kill)
    assert kill.killed
    assert_same(collect(folder).table, collect(peaceful).table)


class KillAProcess:
    """A watch: the process that works on the first run of a method is killed."""

    def __init__(self, folder, method):
        self.folder, self.killed = folder, False
        self.runs = {job.identity for job in folder.jobs if job.method == method}

    def __call__(self):
        for worker in living_workers(self.folder) if not self.killed else []:
            if worker["run"] in self.runs:
                os.kill(worker["pid"], signal.SIGKILL)
                self.killed = True
        return bool(self.folder.pending())


def test_first_stages_reach_the_nodes_by_a_storage(nodes, opened, staged, peaceful, tmp_path):
    """Also those that were trained on this machine before, and that the storage does not have."""
    folder, storage = opened(staged), tmp_path / "storage"
    perform(folder, folder.jobs[0], "cpu")
    table = run(folder, RayCluster(device="cpu", storage=storage.as_uri())).table
    assert_same(table, collect(peaceful).table)
    assert (storage / "runs" / folder.jobs[0].identity / "job.json").exists()


def test_a_trained_first_stage_is_in_the_storage_before_it_is_measured(opened, staged, tmp_path):
    folder, storage = opened(staged), Storage((tmp_path / "storage").as_uri())
    second = next(job for job in folder.jobs if job.stages)
    first = second.stages["first"]
    outcomes = [perform_in_storage(folder, second, "cpu", lambda job, part, share: None, storage)]

    def begin_second(job, part, share):
        if part == "mig" and share > 0:
            outcomes.append(perform_in_storage(folder, second, "cpu", lambda job, part, share: None, storage))

    assert perform_in_storage(folder, first, "cpu", begin_second, storage)[0] == "done"
    assert [outcome for outcome, _ in outcomes] == ["waiting", "done"]


def test_an_interrupted_run_goes_on_from_the_storage(opened, finished, tmp_path):
    folder, storage = opened(), Storage((tmp_path / "storage").as_uri())
    job = folder.jobs[0]

    def interrupt(job, part, share):
        if part == "training" and share >= 0.5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        perform_in_storage(folder, job, "cpu", interrupt, storage)
    shares = []
    told = perform_in_storage(
        folder, job, "cpu", lambda job, part, share: shares.append((part, share)), storage
    )
    assert told == ("done", "")
    assert min(share for part, share in shares if part == "training") > 0.5
    assert not folder.is_done(job)
    fetch_run(folder, job, storage)
    assert scores(folder, job) == scores(finished, job)


def scores(folder, job):
    told = json.loads((folder.run(job.identity) / folder.done_file).read_text())
    return [row[:-1] for row in told["rows"]]  # without its seconds


def test_a_run_that_takes_its_processes_down_fails(opened, tmp_path):
    folder, storage = opened(), Storage((tmp_path / "storage").as_uri())
    job = folder.jobs[0]
    counted = tmp_path / "storage" / "state" / folder.attempts(job.identity).name

    class Death(BaseException):
        pass

    def die(job, part, share):
        if part == "training":
            raise Death

    for _ in range(ATTEMPTS):
        with pytest.raises(Death):
            perform_in_storage(folder, job, "cpu", die, storage)
        assert counted.exists()
        count_crash_in_storage(folder, job, storage)
    outcome, why = perform_in_storage(folder, job, "cpu", die, storage)
    assert outcome == "failed"
    assert f"died {ATTEMPTS} times" in why
    assert not counted.exists()  # tried again, it starts to count anew


def test_ray_is_not_installed(opened, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnweaveError, match=r"pip install 'unweave\[ray\]'"):
        RayCluster().run(opened(), lambda: True)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="threads = 0"):
        RayCluster(threads=0)
    with pytest.raises(ArgumentError, match="cuda:1"):
        RayCluster(device="cuda:1")


def test_no_cluster_at_the_address(opened, monkeypatch):
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(UnweaveError, match="a Ray cluster at localhost:9 cannot be reached"):
        RayCluster("localhost:9").run(opened(), lambda: True)


@pytest.mark.parametrize("uri", ["no-such-scheme://x", "relative/folder"])
def test_bad_storage(opened, uri):
    with pytest.raises(ArgumentError, match="storage"):
        RayCluster(storage=uri).run(opened(), lambda: True)


def test_a_storage_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match="file"):
        Storage((tmp_path / "file").as_uri()).put(tmp_path / "file", "runs/x")


# --- who may use the cluster ----------------------------------------------------------------------------

ASK = """
import sys, ray
from unweave.study.ray import _connected
try:
    with _connected(sys.argv[1]):
        print("answer", ray.get(ray.remote(lambda: 6 * 7).remote()))
except Exception as error:
    print("refused", error)
"""

START = """
import subprocess, sys, os
from pathlib import Path
from unweave.study.ray import _connected
with _connected(None) as ray:
    address = ray.get_runtime_context().gcs_address
    print("listens at", address)
    for home in (os.environ["HOME"], sys.argv[2]):
        environment = {k: v for k, v in os.environ.items() if k != "RAY_AUTH_MODE"} | {"HOME": home}
        command = [sys.executable, "-c", sys.argv[1], address]
        print(subprocess.run(command, env=environment, capture_output=True, text=True).stdout.strip().splitlines()[-1])
"""


@pytest.mark.slow
def test_a_cluster_that_is_started_here_answers_to_its_token_only(tmp_path):
    """Ray listens on the machine's address, not only on loopback: who asks there without the token is refused."""
    for name in ("owner", "stranger"):
        (tmp_path / name).mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAY_AUTH")}
    environment |= {"HOME": str(tmp_path / "owner"), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", START, ASK, str(tmp_path / "stranger")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    listens, owner, stranger = done.stdout.strip().splitlines()
    assert not listens.startswith("listens at 127.")
    assert owner == "answer 42"  # also by host and port, for which Ray itself shows no token
    assert stranger.startswith("refused")


@pytest.mark.parametrize(
    ("address", "token", "mode", "expected"),
    [
        (None, False, None, "token"),
        (None, True, "disabled", "disabled"),
        ("head:6379", True, None, "token"),
        ("head:6379", False, None, None),
        ("auto", True, "disabled", "disabled"),
    ],
)
def test_the_token_is_used_where_there_is_one(tmp_path, monkeypatch, address, token, mode, expected):
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # so that it is restored afterwards
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "ray._raylet", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    if token:
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("secret")
    ray_module._authenticate(address)
    assert os.environ.get("RAY_AUTH_MODE") == expected


def test_scratch_folders_of_lost_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os, unweave.files as f\nwith f.scratch_folder() as s: os._exit(9)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)})
    (lost,) = (path for path in tmp_path.glob("unweave-*") if (path / ".in-use").exists())
    with scratch_folder() as first:
        assert not lost.exists()
        with scratch_folder() as second:
            assert first.exists()  # somebody holds it
        assert not second.exists()
