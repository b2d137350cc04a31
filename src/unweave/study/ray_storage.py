"""Runs whose nodes share no folder: they are done in a folder of the node's own, and meet in a storage (s3://…).

The storage looks like a study's folder: runs/ID/… and state/ID.attempts.json. Checkpoints and scores get there while
a run goes on, so that one which is lost with its node goes on elsewhere. What says that a run is done comes last.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pyarrow.fs import FileSystem, FileType, LocalFileSystem, copy_files

from unweave.errors import ArgumentError, UnweaveError
from unweave.study.attempts import blame
from unweave.study.job import Job
from unweave.study.store import StudyFolder
from unweave.study.work import Outcome, Tell, perform
from unweave.training.run import SPEC, STATE, WEIGHTS

_CODES = "codes"
_SEND_SECONDS = 120.0
_OBJECT_STORES = ("s3", "gcs", "abfs")  # there an object appears when the last of it was sent


@dataclass(frozen=True)
class Storage:
    """Files by name below a URI: s3://…, gs://…, file:…, whatever pyarrow knows."""

    uri: str

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        try:
            system, path = FileSystem.from_uri(self.uri)
        except (OSError, ValueError) as error:
            told = f"needs a URI such as s3://bucket/folder ({error})"
            raise ArgumentError("storage", self.uri, told) from error
        return system, path.rstrip("/")

    def has(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        system, top = self._opened
        with self._told():
            found: bool = system.get_file_info(f"{top}/{name}").type != FileType.NotFound
        return found

    def get(self, name: str, path: Path) -> None:
        """Copy a file, or a folder with all below it, to this machine, if it is there."""
        system, top = self._opened
        with self._told():
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
        with self._told():
            if not whole:
                system.create_dir(parent, recursive=True)
            with open(path, "rb") as source, system.open_output_stream(temporary) as sink:
                shutil.copyfileobj(source, sink)
            if not whole:
                system.move(temporary, target)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        system, top = self._opened
        with self._told(), suppress(FileNotFoundError):
            system.delete_file(f"{top}/{name}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self.uri}: {error}") from error


class StorageError(UnweaveError):
    """The storage cannot be reached, read or written."""


def perform_away(
    folder: StudyFolder, job: Job, device: str, tell: Tell, storage: Storage
) -> tuple[Outcome, str]:
    """As ``perform``, in a folder of this node's own. Returns also the record of a failure."""
    if storage.has(f"runs/{job.identity}/{folder.done_file}"):
        return "done", ""
    with tempfile.TemporaryDirectory(prefix="unweave-", ignore_cleanup_errors=True) as scratch:
        away = replace(folder, root=Path(scratch))
        copy = _Copy(away, job, storage)
        copy.fetch()

        def tell_and_send(job: Job, part: str, share: float) -> None:
            tell(job, part, share)
            copy.send_now_and_then()

        try:
            outcome = perform(away, job, device, tell_and_send)
            if outcome == "failed":  # whoever asks for it again asks for all its attempts
                away.attempts(job.identity).unlink(missing_ok=True)
        finally:  # after an interruption, too: there is a checkpoint
            copy.send()
        failure = away.failure(job)
        return outcome, failure.read_text() if failure.exists() else ""


def arrive(folder: StudyFolder, job: Job, storage: Storage) -> None:
    """Copy what the storage has of a run into the study's folder; the file that says that it is done comes last."""
    place = folder.run(job.identity)
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.runs, prefix=".arriving-") as near:
        arrived = Path(near) / job.identity
        storage.get(f"runs/{job.identity}", arrived)
        for source in _ordered(arrived, folder.done_file):
            target = place / source.relative_to(arrived)
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)


def blame_away(folder: StudyFolder, job: Job, storage: Storage) -> None:
    """As ``blame``, of a run whose attempts are in a storage."""
    with tempfile.TemporaryDirectory(prefix="unweave-") as scratch:
        path = Path(scratch) / folder.attempts(job.identity).name
        name = folder.attempts(job.identity).relative_to(folder.root).as_posix()
        storage.get(name, path)
        if path.exists():
            blame(path)
            storage.put(path, name)


class _Copy:
    """Keeps the storage's copy of a run as the run is."""

    def __init__(self, folder: StudyFolder, job: Job, storage: Storage) -> None:
        self.folder, self.storage = folder, storage
        self.place, self.attempts = folder.run(job.identity), folder.attempts(job.identity)
        self.sent: dict[str, tuple[int, int]] = {}
        self.when = float("-inf")

    def fetch(self) -> None:
        """Take what there is of the run."""
        for path in (self.place, self.attempts):
            self.storage.get(self._name(path), path)
        self.sent = {self._name(path): _version(path) for path in self._files()}

    def send_now_and_then(self) -> None:
        """Send what is new: at once when a run begins, so that its attempt counts, then every two minutes."""
        if time.monotonic() - self.when > _SEND_SECONDS:
            with suppress(StorageError):  # the next one will get through, or the last one tells
                self.send()
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
        found = [self.attempts] if self.attempts.exists() else []
        found += _ordered(self.place, self.folder.done_file)
        kept = self.folder.study.evaluation.keep_codes  # else they go at the end, and are quickly made again
        return [path for path in found if kept or self.place / _CODES not in path.parents]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder.root).as_posix()


def _ordered(place: Path, done_file: str) -> list[Path]:
    """The files of a run, such that any first few of them are a run to go on from.

    Its spec makes a folder a run; a history may be ahead of the checkpoint, not behind it.
    """
    order = {SPEC: 0, STATE: 2, WEIGHTS: 3, done_file: 4}
    found = [path for path in sorted(place.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return sorted(found, key=lambda path: order.get(path.name, 1))


def _version(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
