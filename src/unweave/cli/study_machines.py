"""Who does the runs of a study, as the options of the command line say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.errors import ArgumentError, unknown_name


@dataclass(frozen=True)
class Machines:
    """Who does the runs, as the options say."""

    executor: str
    processes: int | None
    threads: int | None
    device: str
    address: str | None
    storage: str | None

    def check(self) -> None:
        """Refuse options that do not belong together."""
        if self.executor not in ("local", "ray"):
            raise unknown_name("--executor", self.executor, ("local", "ray"))
        for_ray: dict[str, Any] = {"--address": self.address, "--storage": self.storage}
        unused = for_ray if self.executor == "local" else {"--processes": self.processes}
        for name, value in unused.items():
            if value is not None:
                raise ArgumentError(name, value, f"is not for the executor {self.executor!r}")
        if self.executor == "local":
            from unweave.study.executors import Local

            Local(device=self.device)  # checks it

    def start(self, root: Path) -> Any:
        """The executor."""
        if self.executor == "ray":
            from unweave.study.ray_executor import RayCluster

            return RayCluster(self.address, self.threads or 1, self.device, self.storage)
        from unweave.study.executors import Local
        from unweave.study.packing import best_packing, cores

        if self.processes is None and self.threads is None:
            processes, threads, _ = best_packing(root)
            return Local(processes, threads, self.device)
        processes = self.processes or max(1, cores() // (self.threads or 1))
        return Local(processes, self.threads or max(1, cores() // processes), self.device)
