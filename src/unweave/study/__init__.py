"""Studies: grids of runs, their results in one table, and the papers' analyses of it.

>>> import unweave as uw
>>> table = uw.study.load("studies-out/locatello-small")                     # doctest: +SKIP
>>> uw.study.select(table, "mig").groupby("method")["value"].median()        # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unweave.study.collecting import collect
    from unweave.study.executors import Executor, Local
    from unweave.study.job import Job, plan
    from unweave.study.results import NotInStudyError, Results, load, query, select, wide
    from unweave.study.running import prepare, run
    from unweave.study.spec import Study, load_study
    from unweave.study.store import StudyFolder, open_study

__all__ = [
    "Executor",
    "Job",
    "Local",
    "NotInStudyError",
    "Results",
    "Study",
    "StudyFolder",
    "collect",
    "load",
    "load_study",
    "open_study",
    "plan",
    "prepare",
    "query",
    "run",
    "select",
    "wide",
]

# Looked up when first used: to watch a study takes neither torch nor pandas.
_PLACES = {
    "collecting": ("collect",),
    "executors": ("Executor", "Local"),
    "job": ("Job", "plan"),
    "results": ("NotInStudyError", "Results", "load", "query", "select", "wide"),
    "running": ("prepare", "run"),
    "spec": ("Study", "load_study"),
    "store": ("StudyFolder", "open_study"),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"unweave.study.{module}"), name)
    raise AttributeError(f"module 'unweave.study' has no attribute {name!r}")
