"""A study's report: every figure and table of the papers that its results allow, on one page."""

from unweave.figures.report.write import ReportError, write_report

__all__ = ["ReportError", "write_report"]
