"""Scores of trained representations: each image is encoded once."""

from unweave.evaluation.evaluate import evaluate
from unweave.evaluation.table import RepresentationTable

__all__ = ["RepresentationTable", "evaluate"]
