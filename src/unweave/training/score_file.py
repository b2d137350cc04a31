"""A score that is kept in a run's directory: what is written, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import DataError
from unweave.files import write_text

SCORES = "scores"  # the folder of a run's scores, a file for each


@dataclass(frozen=True)
class ScoreFile:
    """One score with its parts.

    Parameters
    ----------
    metric
        the metric's name.
    rows
        (metric, representation, value): the value itself first, then its parts.
    seconds
        what computing it took.
    params, details
        of the :class:`~unweave.metrics.Score`.

    Examples
    --------
    >>> from pathlib import Path
    >>> ScoreFile("mig", [("mig", "mean", 0.25)], 1.5, {"num_bins": 20}).write(Path("mig.json"))
    >>> ScoreFile.read(Path("mig.json")).rows
    [['mig', 'mean', 0.25]]
    """

    metric: str
    rows: Sequence[Sequence[Any]]
    seconds: float = 0.0
    params: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        write_text(path, json.dumps(vars(self), default=_to_json))

    @staticmethod
    def read(path: Path) -> ScoreFile:
        """Read it again."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            known = {name: values[name] for name in ("seconds", "params", "details") if name in values}
            return ScoreFile(values.get("metric", ""), values["rows"], **known)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{path}: not a score ({error})") from error


def _to_json(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
