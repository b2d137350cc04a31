"""Metrics: pure functions on codes and factors."""

from unweave.metrics.registry import METRICS, find, names
from unweave.metrics.score import Sample, Score
from unweave.metrics.scoring import score

__all__ = ["METRICS", "Sample", "Score", "find", "names", "score"]
