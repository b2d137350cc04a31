"""Who trains the runs of a discovery: this process, or several worker processes side by side.

Networks as small as these gain little from threads, so that cores are better used by a process for each. Each run is
trained with one thread in any case: its bits do not depend on who trains it.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from unweave.data import Dataset
from unweave.data.image_size import reduce_images
from unweave.data.own.arrays import from_arrays
from unweave.discovery.choices import Plan
from unweave.discovery.photographs import stored_images, write_array
from unweave.discovery.runs import RUNS, Job, create_method, train_job
from unweave.errors import DataError, DiskFullError, UnweaveError
from unweave.files import read_json, write_text
from unweave.processes import cores, end_of_log, start_worker, stop_workers
from unweave.progress import progress
from unweave.training import Callback, Run
from unweave.training.devices import one_thread
from unweave.training.interrupts import Interrupts, interruption
from unweave.training.loop import TrainingError
from unweave.training.run import steps_done
from unweave.training.trial import trial_steps

_JOBS, _IMAGES, _LOGS = "jobs.json", "learn.npy", "workers"  # in the work folder
_WARM_UP = 2  # steps that are not measured
_FEWEST_STEPS, _SECONDS, _MOST_SECONDS = (
    10,
    1.0,
    4.0,
)  # of a measurement: it ends after the first two, or the last
_MEASURED_IMAGES = 256
_POLL_SECONDS, _REPORT_SECONDS = 0.25, 0.25
_DEATHS = 2  # a run that takes down so many processes is an error


@dataclass(frozen=True)
class Outcome:
    """A job that is over: the steps that were made now and their time, and what failed, if anything did."""

    job: Job
    seconds: float
    steps: int
    failure: str = ""


class Trainer(Protocol):
    """Whoever trains the runs of a discovery."""

    processes: int
    runs: Path  # the folder of run directories

    def seconds_per_step(self, plan: Plan) -> float:
        """Seconds that a step of a run of the plan takes on this machine, measured for a short while."""

    def train(
        self, plan: Plan, jobs: Sequence[Job], data: Dataset, waiting: Iterator[Job]
    ) -> Generator[Outcome, None, None]:
        """Train those of the ``jobs`` that ``waiting`` gives, each into a directory of its name."""

    def __enter__(self) -> Trainer: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def create_trainer(work: Path, processes: int) -> Trainer:
    """A number of processes that train side by side; this one, if it is 1. ``work`` holds what they need."""
    return ThisProcess(work) if processes == 1 else SideBySide(work, processes)


def default_processes() -> int:
    """As many as there are cores for this process; one where a GPU does the work.

    Examples
    --------
    >>> default_processes() >= 1
    True
    """
    import torch

    has_gpu = torch.cuda.is_available() or torch.backends.mps.is_available()
    return 1 if has_gpu else cores()


# --- this process ----------------------------------------------------------------------------------


class ThisProcess:
    """Trains one run after the other, here."""

    processes = 1

    def __init__(self, work: Path) -> None:
        self.work, self.runs = work, work / RUNS

    def __enter__(self) -> ThisProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def seconds_per_step(self, plan: Plan) -> float:
        """Measured here."""
        return measure_seconds(plan, stored_images(self.work))

    def train(
        self, plan: Plan, jobs: Sequence[Job], data: Dataset, waiting: Iterator[Job]
    ) -> Generator[Outcome, None, None]:
        """Train the jobs in their order."""
        for job in waiting:
            watch = Watch()
            try:
                train_job(plan, job, data, self.runs / job.name, callbacks=[watch])
            except TrainingError as error:
                yield Outcome(job, watch.seconds, watch.steps, str(error))
            else:
                yield Outcome(job, watch.seconds, watch.steps)


class Watch(Callback):
    """The steps that were made now, and their time."""

    def __init__(self, report: Callable[[float, int], None] = lambda seconds, steps: None) -> None:
        self.report, self.reported = report, 0.0
        self.seconds, self.steps = 0.0, 0

    def on_start(self, run: Run) -> None:
        """Steps that were made before do not count."""
        self.begun, self.start = run.step, time.monotonic()

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """Report now and then."""
        now = time.monotonic()
        self.seconds, self.steps = now - self.start, step - self.begun
        if now - self.reported > _REPORT_SECONDS:
            self.reported = now
            self.report(self.seconds, self.steps)


def measure_seconds(
    plan: Plan,
    images: np.ndarray,
    keep_memory: bool = False,
    when_ready: Callable[[], None] = lambda: None,
) -> float:
    """Seconds that one training step of a plan takes in this process with one thread.

    Parameters
    ----------
    plan
        of which the first setting is trained for a second or so.
    images
        bytes (n, side, side, channels): the first are learned from.
    keep_memory
        as in training.
    when_ready
        called after the first steps, before those that are measured.
    """
    some = np.array(images[:_MEASURED_IMAGES])
    data = from_arrays(some if some.shape[1] == plan.side else reduce_images(some, plan.side))
    method = create_method(plan, plan.settings[0], data)
    with one_thread():
        steps = trial_steps(method, data, plan.batch_size, "auto", keep_memory)
        for _ in range(_WARM_UP):
            next(steps)
        when_ready()
        start, seconds, count = time.monotonic(), 0.0, 0
        while (count < _FEWEST_STEPS or seconds < _SECONDS) and seconds < _MOST_SECONDS:
            next(steps)
            count, seconds = count + 1, time.monotonic() - start
    return seconds / count


# --- several processes side by side ----------------------------------------------------------------


@dataclass(frozen=True)
class Orders:
    """What workers read from the work folder before they begin: the plan, and the jobs by their names."""

    data_name: str
    plan: Plan
    jobs: dict[str, Job]

    def write(self, work: Path) -> None:
        """Keep them for the workers."""
        jobs = {name: job.as_dict() for name, job in self.jobs.items()}
        content = {"data": self.data_name, "plan": self.plan.as_dict(), "jobs": jobs}
        write_text(work / _JOBS, json.dumps(content))

    @staticmethod
    def read(work: Path) -> Orders:
        """Those of the parent."""
        path = work / _JOBS
        content = read_json(path)
        try:
            jobs = {str(name): Job.from_dict(values) for name, values in content["jobs"].items()}
            return Orders(str(content["data"]), Plan.from_dict(content["plan"]), jobs)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: not the jobs of a discovery") from error


def images_to_learn(work: Path) -> np.ndarray:
    """The photographs that workers learn from: one file on the disk for all of them."""
    images: np.ndarray = np.load(work / _IMAGES, mmap_mode="r", allow_pickle=False)
    return images


class _Worker:
    """A worker process as its parent sees it. Its reports go to a queue; None says that it has ended."""

    def __init__(self, work: Path, number: int, reports: SimpleQueue[tuple[_Worker, Any]]) -> None:
        self.log = work / _LOGS / f"worker-{number}.log"
        self.process = start_worker(
            "unweave.discovery.worker",
            [str(work.resolve())],
            threads=1,
            log=self.log,
            has_pipes=True,
        )
        self.job: Job | None = None

        def listen() -> None:
            assert self.process.stdout is not None
            with suppress(ValueError):  # half a line, of a worker that was killed
                for line in self.process.stdout:
                    reports.put((self, json.loads(line)))
            reports.put((self, None))

        self.thread = threading.Thread(target=listen, daemon=True)
        self.thread.start()

    def order(self, *words: str) -> None:
        """Say what is to be done next; a worker that is gone does not hear it, and is noticed by its end."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(" ".join(words).encode() + b"\n")
            self.process.stdin.flush()

    def end_orders(self) -> None:
        """Say that there are no more orders.

        An interruption may be lost in a training that ends, or fails, at the same moment: then this ends the process.
        """
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        self.thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


class SideBySide:
    """Trains in worker processes of one thread each, ``python -m unweave.discovery.worker``.

    They are started when there is something for them to do, and live until the discovery has no more to train. They
    read the plan, the jobs and the photographs from the work folder; the pipes carry names of jobs and numbers only.
    """

    def __init__(self, work: Path, processes: int) -> None:
        self.work, self.runs, self.processes = work, work / RUNS, processes
        self.workers: list[_Worker | None] = [None] * processes
        self.reports: SimpleQueue[tuple[_Worker, Any]] = SimpleQueue()
        self.has_images = False

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        living = [worker for worker in self.workers if worker is not None]
        self.workers = [None] * self.processes
        for worker in living:
            worker.end_orders()
        stop_workers([worker.process for worker in living])
        for worker in living:
            worker.close()

    def seconds_per_step(self, plan: Plan) -> float:
        """Measured in all processes at once, as they will train: they share the memory's bandwidth."""
        Orders("", plan, {}).write(self.work)
        workers = [self._worker(number) for number in range(self.processes)]
        for worker in workers:
            worker.order("measure")
        self._reports_of_all("ready")
        for worker in workers:
            worker.order("go")
        return float(np.mean(self._reports_of_all("seconds")))

    def train(
        self, plan: Plan, jobs: Sequence[Job], data: Dataset, waiting: Iterator[Job]
    ) -> Generator[Outcome, None, None]:
        """Train the jobs in their order, each as soon as a process is free; with one bar for all."""
        first = next(waiting, None)
        if first is None:
            return
        self._prepare(plan, jobs, data)
        stage = _Stage(jobs, self.runs, self.processes)
        deaths: Counter[str] = Counter()
        again = [first]
        with Interrupts() as interrupts, stage.bar() as advance:
            while True:
                if interrupts.received is not None:
                    raise interruption(interrupts.received)
                for number, worker in enumerate(self.workers):
                    if worker is None or worker.job is None:
                        job = again.pop() if again else next(waiting, None)
                        if job is None:
                            break
                        stage.begin(job)
                        self._begin(number, job)
                if all(worker is None or worker.job is None for worker in self.workers):
                    return
                try:
                    worker, report = self.reports.get(timeout=_POLL_SECONDS)
                except Empty:
                    continue
                job = worker.job
                if job is None:  # it died without anything to do: the next job starts another one
                    self._remove(worker)
                    continue
                if report is None:
                    code = self._remove(worker)
                    deaths[job.name] += 1
                    if deaths[job.name] >= _DEATHS:
                        raise UnweaveError(_obituary(job, code, worker.log, self.processes))
                    again.append(job)
                    continue
                _raise_error(report, self.runs)
                stage.show(job, report["time"], report["steps"], advance)
                if report["kind"] in ("done", "failed"):
                    worker.job = None
                    stage.end(job)
                    yield Outcome(job, report["time"], report["steps"], report.get("message", ""))

    def _prepare(self, plan: Plan, jobs: Sequence[Job], data: Dataset) -> None:
        """Write what workers need, before the first of them begins."""
        if not self.has_images:
            write_array(self.work / _IMAGES, np.asarray(data.array))
            self.has_images = True
        Orders(data.name, plan, {job.name: job for job in jobs}).write(self.work)

    def _begin(self, number: int, job: Job) -> None:
        worker = self._worker(number)
        worker.job = job
        worker.order("train", job.name)

    def _worker(self, number: int) -> _Worker:
        """The worker of a number: started, unless it is there."""
        worker = self.workers[number]
        if worker is None:
            (self.work / _LOGS).mkdir(parents=True, exist_ok=True)
            worker = self.workers[number] = _Worker(self.work, number, self.reports)
        return worker

    def _remove(self, worker: _Worker) -> int:
        """Forget a worker that has ended; its exit code."""
        code = worker.process.wait()
        worker.close()
        self.workers[self.workers.index(worker)] = None
        return code

    def _reports_of_all(self, kind: str) -> list[float]:
        """One report of each worker."""
        values: list[float] = []
        while len(values) < self.processes:
            worker, report = self.reports.get()
            if report is None:
                code = self._remove(worker)
                raise UnweaveError(
                    f"a process that measured this machine {_how_it_ended(code)}; {end_of_log(worker.log)}"
                )
            _raise_error(report, self.work)
            assert report["kind"] == kind
            values.append(float(report["time"]))
        return values


class _Stage:
    """How far the runs of a stage are, for the bar."""

    def __init__(self, jobs: Sequence[Job], folder: Path, processes: int) -> None:
        self.jobs, self.folder, self.processes = jobs, folder, processes
        self.number = {job.name: number for number, job in enumerate(jobs, 1)}
        self.left = {job.name: self._steps_left(job) for job in jobs}
        self.running: dict[str, tuple[float, int]] = {}  # seconds and steps so far
        self.over = (0.0, 0)  # the same of those that have ended

    def bar(self) -> Any:
        """One for all runs."""
        total = sum(job.steps for job in self.jobs)
        return progress(self.jobs[0].stage, total, "steps", done=total - sum(self.left.values()))

    def begin(self, job: Job) -> None:
        """A process takes a run, perhaps from one that died."""
        self.running[job.name] = (0.0, 0)
        self.left[job.name] = self._steps_left(job)

    def show(self, job: Job, seconds: float, steps: int, advance: Any) -> None:
        """A run has made so many steps in its process so far."""
        new = steps - self.running[job.name][1]
        self.running[job.name] = (seconds, steps)
        self.left[job.name] -= new
        advance(new, _runs_in_words([self.number[name] for name in self.running]), self._seconds_left())

    def end(self, job: Job) -> None:
        """A run is over."""
        seconds, steps = self.running.pop(job.name)
        self.over = (self.over[0] + seconds, self.over[1] + steps)
        self.left[job.name] = 0

    def _seconds_left(self) -> float | None:
        """If each process takes the next run when it is free, at the pace of the runs so far."""
        seconds, steps = map(sum, zip(self.over, *self.running.values(), strict=True))
        if not steps:
            return None
        busy = sorted(self.left[name] for name in self.running)
        busy = [0] * (self.processes - len(busy)) + busy
        for name, left in self.left.items():
            if name not in self.running and left > 0:
                busy = sorted([busy[0] + left, *busy[1:]])
        return max(busy) * seconds / steps

    def _steps_left(self, job: Job) -> int:
        try:
            return max(0, job.steps - steps_done(self.folder / job.name))
        except DataError:  # whoever trains it says what is wrong with it
            return job.steps


def _runs_in_words(numbers: Sequence[int]) -> str:
    """Which runs, in a few characters of a bar.

    Examples
    --------
    >>> _runs_in_words([4]), _runs_in_words([2, 4]), _runs_in_words([3, 1, 2])
    ('run 4', 'runs 2, 4', 'runs 1 to 3')
    """
    first, last = min(numbers), max(numbers)
    if first == last:
        return f"run {first}"
    if len(numbers) > 2 and last - first == len(numbers) - 1:
        return f"runs {first} to {last}"
    return f"runs {', '.join(map(str, sorted(numbers)))}"


def _raise_error(report: Mapping[str, Any], folder: Path) -> None:
    if report["kind"] == "full":
        raise DiskFullError(folder)
    if report["kind"] == "error":
        raise UnweaveError(report["message"])


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed ({name}{': perhaps out of memory' if name == 'SIGKILL' else ''})"


def _obituary(job: Job, code: int, log: Path, processes: int) -> str:
    return (
        f"{job.setting.label}, seed {job.seed}: the process that trained it {_how_it_ended(code)}, and so did one "
        f"before it. The same command goes on; if memory is short, with fewer processes than {processes}. "
        f"Of what it printed, {end_of_log(log)}"
    )
