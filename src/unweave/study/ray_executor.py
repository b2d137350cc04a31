"""The runs of a study on a Ray cluster: one task each, which is given again when its process or its node is lost.

Where a task runs does not matter to its result. The nodes need the same version of unweave, the data sets, and either
the study's folder on a file system that all of them see, or a storage (``ray_storage``) to meet in.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave.data.storage.prepared import ENVIRONMENT_VARIABLE
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import write_text
from unweave.study.attempts import ATTEMPTS, blame
from unweave.study.executors import Watch, thread_variables
from unweave.study.job import Job
from unweave.study.ray_storage import Storage, arrive, blame_away
from unweave.study.ray_task import Answer, Work, do_run
from unweave.study.store import StudyFolder

_POLL_SECONDS, _BUSY_SECONDS, _STOP_SECONDS, _REACH_SECONDS = 0.25, 2.0, 120.0, 10.0
_AHEAD = 3  # tasks per place for one: Ray always has the next at hand, and never all of them
_STORE_BYTES = 100 * 2**20  # of the cluster that is started here: tasks exchange a few words


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster; without an ``address`` (host:port, "auto", "ray://…") one is started on this machine.

    Each run has ``threads`` CPUs and, with ``device`` "cuda" ("auto": if the cluster has any), a GPU.
    ``storage`` is a URI (s3://…) where nodes meet that do not see the study's folder.
    The environment variables UNWEAVE_* of this process hold on the nodes, too. With ``storage`` UNWEAVE_DATA does not:
    where nodes share no files, each has its own.
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
                    tasks.listen()
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
        self.crashes, self.warned = 0, False
        self.storage = None if cluster.storage is None else Storage(cluster.storage)
        gpu = cluster.device == "cuda" or (cluster.device == "auto" and "GPU" in ray.cluster_resources())
        self.needs = {"CPU": cluster.threads} | ({"GPU": 1} if gpu else {})
        self.work = Work(
            replace(folder, root=folder.root.resolve(), jobs=()),
            cluster.threads,
            "cuda" if gpu else cluster.device,
            cluster.storage,
            str(Path.cwd()),
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
        """Give Ray a few more runs than it has places for."""
        while self.later and self.later[0][0] < time.monotonic():
            self.waiting.append(self.later.popleft()[1])
        limit = self._limit() if self.waiting else 0
        while self.waiting and len(self.running) < limit:
            job = self.waiting.popleft()
            if not self.folder.is_done(job) and not self.folder.has_failed(job):
                self.running[self.task.options(name=f"unweave: {job}").remote(self.work, job)] = job

    def listen(self) -> None:
        """Hear what tasks say that have ended."""
        if not self.running:
            time.sleep(_POLL_SECONDS)
            return
        running = list(self.running)
        ended, _ = self.ray.wait(running, num_returns=len(running), timeout=_POLL_SECONDS)
        for task in ended:
            self._hear(self.running.pop(task), task)

    def cancel(self) -> None:
        """End what is under way; a run that is being trained writes a checkpoint."""
        running = list(self.running)
        for task in running:
            self.ray.cancel(task)
        if running:
            self.ray.wait(running, num_returns=len(running), timeout=_STOP_SECONDS)

    def _hear(self, job: Job, task: Any) -> None:
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
        if answer.outcome == "trouble":
            self._avoid(answer)
            self.waiting.append(job)
            return
        self.troubles.pop(answer.node, None)
        if answer.outcome == "busy":
            self.later.append((time.monotonic() + _BUSY_SECONDS, job))
        elif self.storage is not None:
            arrive(self.folder, job, self.storage)
            if answer.outcome == "failed":
                write_text(self.folder.failure(job), answer.why)

    def _lost(self, job: Job, error: Exception) -> None:
        """A run's process or node is gone: again. A process that died may be the run's fault, a node is not."""
        self.waiting.appendleft(job)
        errors = self.ray.exceptions
        if isinstance(error, errors.WorkerCrashedError | errors.OutOfMemoryError):
            self.crashes += 1
            self._blame(job)
        if self.crashes > (ATTEMPTS + 1) * self._limit():  # they do not get as far as to count
            raise UnweaveError(f"Ray's worker processes die before they do a run: {_last_line(error)}")

    def _blame(self, job: Job) -> None:
        if self.storage is None:
            blame(self.folder.attempts(job.identity))
        else:
            blame_away(self.folder, job, self.storage)

    def _avoid(self, answer: Answer) -> None:
        if answer.node not in self.troubles:
            print(f"a Ray node cannot do runs, others may: {answer.why}", file=sys.stderr, flush=True)
        self.troubles[answer.node] = answer.why
        places = self._places()
        if places and places.keys() <= self.troubles.keys():
            raise UnweaveError(
                "no node of the Ray cluster can do runs: " + "\n".join({*self.troubles.values()})
            )

    def _limit(self) -> int:
        places = sum(self._places().values())
        if not places and not self.warned:
            self.warned = True
            needed = " and ".join(f"{count} {name}" for name, count in self.needs.items())
            print(f"no node of the Ray cluster has {needed}; waiting for one", file=sys.stderr, flush=True)
        return _AHEAD * max(places, 1)

    def _places(self) -> dict[str, int]:
        """Of each node that is alive and large enough: how many runs it can do at once."""
        found = {
            node["NodeID"]: min(int(node["Resources"].get(name, 0) // n) for name, n in self.needs.items())
            for node in self.ray.nodes()
            if node["Alive"]
        }
        return {node: places for node, places in found.items() if places}


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected. What was connected or started before stays so."""
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
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
