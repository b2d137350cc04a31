"""Studies: grids of runs, their results in one table, and the papers' analyses of it."""

from unweave.study.results import NotInStudyError, Results, load, select

__all__ = ["NotInStudyError", "Results", "load", "select"]
