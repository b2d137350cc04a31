"""Metrics: pure functions on codes and factors, and the evaluation of a trained representation."""

from unweave.metrics.evaluate import evaluate
from unweave.metrics.registry import METRICS, find, names
from unweave.metrics.score import Sample, Score
from unweave.metrics.scoring import score
from unweave.metrics.table import RepresentationTable

__all__ = ["METRICS", "RepresentationTable", "Sample", "Score", "evaluate", "find", "names", "score"]
