"""The runs of a study on a Ray cluster: one task each, which is given again when its process or its node is lost.

Where a task runs does not matter to its result. The nodes need the same version of unweave, the data sets, and either
the study's folder on a file system that all of them see, or a storage (s3://…) to meet in.

The storage has the form of a study's folder: runs/ID/… and state/ID.attempts.json. A run is done in a folder of the
node's own; checkpoints and scores get to the storage while it goes on, so that one which is lost with its node goes
on elsewhere. What says that a run is trained, or done, comes after what it says that of.

A run that needs others is given to Ray when these are trained, in the folder or in the storage, from which its node
fetches them.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import socket
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from unweave import extensions
from unweave.data.storage.prepared import ENVIRONMENT_VARIABLE
from unweave.errors import ArgumentError, DataError, DiskFullError, UnweaveError
from unweave.files import scratch_folder, write_text
from unweave.processes import thread_variables
from unweave.study.executors import Watch
from unweave.study.folder import ATTEMPTS, PLAN, TRAINED, StudyFolder, count_crash
from unweave.study.perform import OnProgress, Outcome, load_scored, perform
from unweave.study.planning import Job
from unweave.study.worker import Activity
from unweave.training.run import SPEC, STATE, WEIGHTS

_POLL_SECONDS, _BUSY_SECONDS, _STOP_SECONDS, _REACH_SECONDS = 0.25, 2.0, 120.0, 10.0
_AHEAD = 3  # tasks for each run that the cluster can do at once: Ray always has the next at hand, and never all of them
_STORE_BYTES = 100 * 2**20  # of the cluster that is started here: tasks exchange a few words
_TROUBLE_SECONDS = 5.0  # a node that can do nothing takes a task so often, not thousands
_CODES = "codes"
_AUTH_MODE = "RAY_AUTH_MODE"
_SEND_SECONDS = 120.0
_OBJECT_STORES = ("s3", "gcs", "abfs")  # there an object appears when the last of it was sent


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster, as an executor of studies.

    The environment variables UNWEAVE_* of this process hold on the nodes, too. With ``storage`` UNWEAVE_DATA does not:
    where nodes share no files, each has its own. Python files that a study imports are sent along.

    Parameters
    ----------
    address
        host:port, "auto" or "ray://…"; without it a cluster is started on this machine.
    threads
        CPUs of each run.
    device
        with "cuda" each run has a GPU; "auto": if the cluster has any.
    storage
        a URI (s3://…) where nodes meet that do not see the study's folder.

    Examples
    --------
    >>> from unweave.study.ray import RayCluster
    >>> RayCluster(threads=2)
    RayCluster(address=None, threads=2, device='auto', storage=None)
    """

    address: str | None = None
    threads: int = 1
    device: str = "auto"
    storage: str | None = None

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ArgumentError("threads", self.threads, "needs a whole number >= 1")
        if self.device.startswith("cuda:"):
            raise ArgumentError("device", self.device, "Ray gives each run a GPU of its own: cuda")

    def run(self, folder: StudyFolder, watch: Watch) -> None:
        """Do all runs; lost ones again. An interruption ends the tasks, which leave checkpoints."""
        if self.storage is not None:
            Storage(self.storage).has("runs")  # raises if there is no such storage
        with _connected(self.address) as ray:
            tasks = _Tasks(ray, self, folder)
            try:
                while watch():
                    tasks.submit()
                    tasks.collect()
            finally:
                tasks.cancel()


class _Tasks:
    """The tasks under way, and the runs that wait."""

    def __init__(self, ray: Any, cluster: RayCluster, folder: StudyFolder) -> None:
        self.ray, self.folder = ray, folder
        self.waiting = deque(folder.pending())
        self.later: deque[tuple[float, Job]] = deque()
        self.running: dict[Any, Job] = {}
        self.troubles: dict[str, str] = {}
        self.stored: set[str] = set()  # runs that others need and that are trained in the storage
        self.asked: dict[str, float] = {}  # when the storage was asked for the others
        self.crashes, self.warned = 0, False
        self.storage = None if cluster.storage is None else Storage(cluster.storage)
        gpu = cluster.device == "cuda" or (cluster.device == "auto" and "GPU" in ray.cluster_resources())
        self.needs = {"CPU": cluster.threads} | ({"GPU": 1} if gpu else {})
        self.work = Work(
            replace(folder, root=folder.root.resolve(), plan=replace(folder.plan, jobs=())),
            cluster.threads,
            "cuda" if gpu else cluster.device,
            cluster.storage,
            str(Path.cwd()),
            extensions.sources(folder.study.imports),
        )
        environment = {name: value for name, value in os.environ.items() if name.startswith("UNWEAVE_")}
        if self.storage is not None:
            environment.pop(ENVIRONMENT_VARIABLE, None)
        self.task = ray.remote(
            num_cpus=cluster.threads,
            num_gpus=int(gpu),
            max_retries=0,  # lost runs are given again here, whatever took them and however often
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": environment | thread_variables(cluster.threads)},
        )(do_run)

    def submit(self) -> None:
        """Give Ray a few more runs than it can do at once."""
        while self.later and self.later[0][0] < time.monotonic():
            self.waiting.append(self.later.popleft()[1])
        limit = self._limit() if self.waiting else 0
        unready: list[Job] = []
        while self.waiting and len(self.running) < limit:
            job = self.waiting.popleft()
            if self.folder.is_done(job) or self.folder.has_failed(job):
                continue
            if self._is_ready(job):
                self.running[self.task.options(name=f"unweave: {job}").remote(self.work, job)] = job
            else:
                unready.append(job)
        self.waiting.extendleft(reversed(unready))

    def _is_ready(self, job: Job) -> bool:
        """Whether a run can begin: what it needs is trained, and is where its node expects it."""
        if self.storage is None:
            return self.folder.is_ready(job)
        return all([self._in_storage(stage, self.storage) for stage in job.stages.values()])

    def _in_storage(self, stage: Job, storage: Storage) -> bool:
        """Whether the storage has a trained run; one that only this machine has is sent there."""
        if stage.identity in self.stored:
            return True
        if self.asked.get(stage.identity, -math.inf) > time.monotonic() - _BUSY_SECONDS:
            return False  # it was not, a moment ago
        name = f"runs/{stage.identity}"
        if not storage.has(f"{name}/{TRAINED}"):
            if not self.folder.is_trained(stage):
                self.asked[stage.identity] = time.monotonic()
                return False
            path = self.folder.run(stage.identity)
            for file in _ordered(path, self.folder.done_file):
                storage.put(file, f"{name}/{file.relative_to(path).as_posix()}")
        self.stored.add(stage.identity)
        return True

    def collect(self) -> None:
        """Take the answers of tasks that have ended."""
        if not self.running:
            time.sleep(_POLL_SECONDS)
            return
        running = list(self.running)
        ended, _ = self.ray.wait(running, num_returns=len(running), timeout=_POLL_SECONDS)
        for task in ended:
            self._take(self.running.pop(task), task)

    def cancel(self) -> None:
        """End what is under way; a run that is being trained writes a checkpoint."""
        running = list(self.running)
        for task in running:
            self.ray.cancel(task)
        if running:
            self.ray.wait(running, num_returns=len(running), timeout=_STOP_SECONDS)

    def _take(self, job: Job, task: Any) -> None:
        errors = self.ray.exceptions
        try:
            answer: Answer = self.ray.get(task)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            raise UnweaveError(
                f"a node of the Ray cluster cannot run unweave: {_last_line(error)}"
            ) from error
        except errors.RayError as error:
            self._lost(job, error)
            return
        self.crashes = 0
        if answer.outcome == "full":
            raise DiskFullError(self.folder.root)
        if answer.outcome == "trouble":
            self._avoid(answer)
            self.waiting.append(job)
            return
        self.troubles.pop(answer.node, None)
        if answer.outcome in ("busy", "waiting"):  # a node may see what it needs later than we do
            self.later.append((time.monotonic() + _BUSY_SECONDS, job))
        elif self.storage is not None:
            fetch_run(self.folder, job, self.storage)
            if answer.outcome == "failed":
                write_text(self.folder.failure(job), answer.why)

    def _lost(self, job: Job, error: Exception) -> None:
        """A run's process or node is gone: again. A process that died may be the run's fault, a node is not."""
        self.waiting.appendleft(job)
        errors = self.ray.exceptions
        if isinstance(error, errors.WorkerCrashedError | errors.OutOfMemoryError):
            self.crashes += 1
            self._count_crash(job)
        if self.crashes > (ATTEMPTS + 1) * self._limit():  # they do not get as far as to count
            raise UnweaveError(f"Ray's worker processes die before they do a run: {_last_line(error)}")

    def _count_crash(self, job: Job) -> None:
        if self.storage is None:
            count_crash(self.folder.attempts(job.identity))
        else:
            count_crash_in_storage(self.folder, job, self.storage)

    def _avoid(self, answer: Answer) -> None:
        if answer.node not in self.troubles:
            print(f"a Ray node cannot do runs, others may: {answer.why}", file=sys.stderr, flush=True)
        self.troubles[answer.node] = answer.why
        slots = self._slots()
        if slots and slots.keys() <= self.troubles.keys():
            raise UnweaveError(
                "no node of the Ray cluster can do runs: " + "\n".join({*self.troubles.values()})
            )

    def _limit(self) -> int:
        slots = sum(self._slots().values())
        if not slots and not self.warned:
            self.warned = True
            needed = " and ".join(f"{count} {name}" for name, count in self.needs.items())
            print(f"no node of the Ray cluster has {needed}; waiting for one", file=sys.stderr, flush=True)
        return _AHEAD * max(slots, 1)

    def _slots(self) -> dict[str, int]:
        """Of each node that is alive and large enough: how many runs it can do at once."""
        slots = {
            node["NodeID"]: min(int(node["Resources"].get(name, 0) // n) for name, n in self.needs.items())
            for node in self.ray.nodes()
            if node["Alive"]
        }
        return {node: count for node, count in slots.items() if count}


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected. What was connected or started before stays so."""
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    _authenticate(address)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init("local", include_dashboard=False, object_store_memory=_STORE_BYTES, **quiet)
        else:
            _reach(address)
            ray.init(address, **({} if address.startswith("ray://") else quiet))
    except Exception as error:  # Ray raises all kinds
        where = "cannot be started on this machine" if address is None else f"at {address} cannot be reached"
        raise UnweaveError(f"a Ray cluster {where}: {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _authenticate(address: str | None) -> None:
    """Use Ray's token, unless RAY_AUTH_MODE says otherwise.

    Whoever reaches the port of a Ray cluster can run code in it, and Ray listens on all addresses of a machine. A
    cluster that is started here is open to holders of the token only, which Ray makes and keeps in ~/.ray/auth_token.
    From then on "ray start" wants it as well, and so it is also shown to the cluster at an address: Ray itself would
    not, if the address is given by host and port.
    """
    if _AUTH_MODE not in os.environ and (address is None or _has_token()):
        os.environ[_AUTH_MODE] = "token"
        with suppress(
            ImportError, AttributeError
        ):  # Ray has read the mode when it was imported: let it read again
            from ray._raylet import Config  # type: ignore[attr-defined]

            Config.initialize("")


def _has_token() -> bool:
    if os.environ.get("RAY_AUTH_TOKEN"):
        return True
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token").is_file()


def _reach(address: str) -> None:
    """Raise if nobody listens there; Ray would try for ten minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UnweaveError("the executor ray needs the package ray: pip install 'unweave[ray]'") from error
    return ray


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__


# --- in a process of the cluster ----------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """What tasks have in common."""

    folder: StudyFolder
    threads: int
    device: str
    storage: str | None
    start: str  # where the command was started: relative names of image folders are from there
    sources: Mapping[str, str] = field(
        default_factory=dict
    )  # of the Python files that the study imports, by path


@dataclass(frozen=True)
class Answer:
    """What a task says: the outcome of its run, or that its node cannot do runs; and the record of why."""

    node: str
    outcome: str
    why: str = ""


def do_run(work: Work, job: Job) -> Answer:
    """The task: one run, in a process of the cluster."""
    import ray
    import torch

    torch.set_num_threads(work.threads)
    if Path(work.start).is_dir():
        os.chdir(work.start)
    node = ray.get_runtime_context().get_node_id()
    try:
        return Answer(node, *_perform(work, job))
    except DiskFullError as error:
        if work.storage is None:  # the folder that all nodes share
            return Answer(node, "full", str(error))
        time.sleep(_TROUBLE_SECONDS)
        return Answer(node, "trouble", f"{socket.gethostname()}: {error}")
    except (DataError, StorageError, OSError) as error:  # the run cannot help it: another node may do it
        time.sleep(_TROUBLE_SECONDS)
        return Answer(node, "trouble", f"{socket.gethostname()}: {error}")


def _perform(work: Work, job: Job) -> tuple[str, str]:
    folder = work.folder
    extensions.load(folder.study.imports, work.sources)
    load_scored(job, None)
    if work.storage is not None:
        return perform_in_storage(
            folder, job, work.device, lambda job, part, share: None, Storage(work.storage)
        )
    if not (folder.path / PLAN).exists():
        raise DataError(f"{folder.path}: is not to be seen here; share it, or give a storage")
    activity = _activity(folder.workers)
    try:
        outcome = perform(folder, job, work.device, activity.working)
        activity.finished += outcome == "done"
    finally:
        activity.close()
    return outcome, ""


@lru_cache(maxsize=1)
def _activity(folder: Path) -> Activity:
    """One for all tasks that a process does: it counts them."""
    return Activity(folder)


# --- nodes that share no folder -----------------------------------------------------------------------


@dataclass(frozen=True)
class Storage:
    """Files by name below a URI: s3://…, gs://…, file:…, whatever pyarrow knows."""

    uri: str

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        from pyarrow.fs import FileSystem

        try:
            system, path = FileSystem.from_uri(self.uri)
        except (OSError, ValueError) as error:
            needed = f"needs a URI such as s3://bucket/folder ({error})"
            raise ArgumentError("storage", self.uri, needed) from error
        return system, path.rstrip("/")

    def has(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        from pyarrow.fs import FileType

        system, top = self._opened
        with self._errors():
            return bool(system.get_file_info(f"{top}/{name}").type != FileType.NotFound)

    def get(self, name: str, path: Path) -> None:
        """Copy a file, or a folder with all below it, to this machine, if it is there."""
        from pyarrow.fs import FileType, LocalFileSystem, copy_files

        system, top = self._opened
        with self._errors():
            kind = system.get_file_info(f"{top}/{name}").type
            if kind == FileType.NotFound:
                return
            (path if kind == FileType.Directory else path.parent).mkdir(parents=True, exist_ok=True)
            copy_files(f"{top}/{name}", str(path), system, LocalFileSystem())

    def put(self, path: Path, name: str) -> None:
        """Copy a file of this machine into the storage, where it appears whole or not at all."""
        system, top = self._opened
        target = f"{top}/{name}"
        parent = target.rpartition("/")[0]
        whole = system.type_name in _OBJECT_STORES
        temporary = target if whole else f"{parent}/.part-{uuid.uuid4().hex}"
        with self._errors():
            if not whole:
                system.create_dir(parent, recursive=True)
            with open(path, "rb") as source, system.open_output_stream(temporary) as sink:
                shutil.copyfileobj(source, sink)
            if not whole:
                system.move(temporary, target)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        system, top = self._opened
        with self._errors(), suppress(FileNotFoundError):
            system.delete_file(f"{top}/{name}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self.uri}: {error}") from error


class StorageError(UnweaveError):
    """The storage cannot be reached, read or written."""


def perform_in_storage(
    folder: StudyFolder, job: Job, device: str, on_progress: OnProgress, storage: Storage
) -> tuple[Outcome, str]:
    """As ``perform``, in a folder of this node's own. Returns also the record of a failure."""
    if storage.has(f"runs/{job.identity}/{folder.done_file}"):
        return "done", ""
    with scratch_folder() as scratch:
        local = replace(folder, root=scratch)
        copy = _Copy(local, job, storage)
        copy.fetch()
        for stage in job.stages.values():
            storage.get(f"runs/{stage.identity}", local.run(stage.identity))

        def report_and_send(job: Job, part: str, share: float) -> None:
            on_progress(job, part, share)
            copy.send_now_and_then()

        try:
            outcome = perform(local, job, device, report_and_send)
            if outcome == "failed":  # whoever asks for it again asks for all its attempts
                local.attempts(job.identity).unlink(missing_ok=True)
        finally:  # after an interruption, too: there is a checkpoint
            copy.send()
        failure = local.failure(job)
        return outcome, failure.read_text() if failure.exists() else ""


def fetch_run(folder: StudyFolder, job: Job, storage: Storage) -> None:
    """Copy what the storage has of a run into the study's folder; the file that says that it is done comes last."""
    path = folder.run(job.identity)
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.runs, prefix=".arriving-") as near:
        arrived = Path(near) / job.identity
        storage.get(f"runs/{job.identity}", arrived)
        for source in _ordered(arrived, folder.done_file):
            target = path / source.relative_to(arrived)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)


def count_crash_in_storage(folder: StudyFolder, job: Job, storage: Storage) -> None:
    """As ``count_crash``, of a run whose attempts are in a storage."""
    with scratch_folder() as scratch:
        path = scratch / folder.attempts(job.identity).name
        name = folder.attempts(job.identity).relative_to(folder.root).as_posix()
        storage.get(name, path)
        if path.exists():
            count_crash(path)
            storage.put(path, name)


class _Copy:
    """Keeps the storage's copy of a run as the run is."""

    def __init__(self, folder: StudyFolder, job: Job, storage: Storage) -> None:
        self.folder, self.job, self.storage = folder, job, storage
        self.path, self.attempts = folder.run(job.identity), folder.attempts(job.identity)
        self.sent: dict[str, tuple[int, int]] = {}
        self.when, self.trained = -math.inf, False

    def fetch(self) -> None:
        """Take what there is of the run."""
        for path in (self.path, self.attempts):
            self.storage.get(self._name(path), path)
        self.sent = {self._name(path): _version(path) for path in self._files()}
        self.trained = self._name(self.path / TRAINED) in self.sent

    def send_now_and_then(self) -> None:
        """Send what is new: at once when a run begins, so that its attempt counts, then every two minutes.

        Also when its training is done: others may wait for that.
        """
        news = not self.trained and self.folder.is_trained(self.job)
        if news or time.monotonic() - self.when > _SEND_SECONDS:
            with suppress(StorageError):  # the next one will get through, or the last one raises
                self.send()
                self.trained |= news
            self.when = time.monotonic()

    def send(self) -> None:
        """Send what is new, and remove what is gone."""
        files = {self._name(path): path for path in self._files()}
        for name, path in files.items():
            if self.sent.get(name) != _version(path):
                self.storage.put(path, name)
                self.sent[name] = _version(path)
        for name in self.sent.keys() - files.keys():
            self.storage.delete(name)
            del self.sent[name]

    def _files(self) -> list[Path]:
        files = [self.attempts] if self.attempts.exists() else []
        files += _ordered(self.path, self.folder.done_file)
        kept = (
            self.folder.study.evaluation.keep_codes
        )  # else they go at the end, and are quickly computed again
        return [path for path in files if kept or self.path / _CODES not in path.parents]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder.root).as_posix()


def _ordered(run: Path, done_file: str) -> list[Path]:
    """The files of a run, such that any first few of them are a run to go on from.

    Its spec makes a folder a run; a history may be ahead of the checkpoint, not behind it. What says that the run is
    trained comes after its weights, what says that it is done comes last.
    """
    order = {SPEC: 0, STATE: 2, WEIGHTS: 3, TRAINED: 4, done_file: 5}
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return sorted(files, key=lambda path: order.get(path.name, 1))


def _version(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size
