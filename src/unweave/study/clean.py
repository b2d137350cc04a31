"""What of a folder of studies can go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from filelock import Timeout

from unweave.cleaning import Removable, leftovers
from unweave.errors import DataError
from unweave.study.folder import PLAN, StudyPaths
from unweave.training.run import STATE, WEIGHTS
from unweave.training.score_file import SCORES


def removable_runs(root: Path, *, orphans: bool = False) -> list[Removable]:
    """What below a folder of runs and studies is not needed any more. Runs that are worked on now are left alone.

    Parameters
    ----------
    root
        the folder of runs and studies.
    orphans
        also runs that no study of the folder has in its plan.

    Examples
    --------
    >>> removable_runs(Path("studies-out"))
    []
    """
    return list(_removable(root, orphans))


def _removable(root: Path, orphans: bool) -> Iterator[Removable]:
    studies = [path.parent for path in sorted(root.glob(f"*/{PLAN}")) if not path.parent.is_symlink()]
    for folder in (*studies, root / "state", root / "runs"):
        yield from leftovers(folder)
    planned = _planned(root, studies) if orphans else None
    paths = StudyPaths(root, "")
    runs = root / "runs"
    # Links are left alone, and so is what they lead to.
    for run in sorted(path for path in runs.glob("[!.]*") if not runs.is_symlink() and not path.is_symlink()):
        with suppress(Timeout), paths.lock(run.name):
            yield from _of_run(run)
            if planned is not None and run.name not in planned:
                yield Removable(run, "a run of no study in this folder")


def _of_run(run: Path) -> Iterator[Removable]:
    for folder in (run, run / SCORES):
        yield from leftovers(folder)
    is_measured = any(run.glob("evaluation-*.json"))
    if is_measured and (run / "codes").is_dir() and not (run / "codes").is_symlink():
        yield Removable(run / "codes", "codes of a run whose scores are there")
    if is_measured and (run / WEIGHTS).exists() and (run / STATE).exists():
        yield Removable(run / STATE, "the optimisers of a run that is finished")


def _planned(root: Path, studies: list[Path]) -> set[str]:
    runs: set[str] = set()
    for study in studies:
        try:
            runs |= {run[0] for run in StudyPaths(root, study.name).read_plan()["runs"]}
        except DataError as error:
            raise DataError(f"{error}: which runs belong to no study cannot be decided") from error
    return runs
