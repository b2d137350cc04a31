"""A score that is kept in a run's directory: what is written, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import DamagedFileError, DataError, show
from unweave.files import read_hashed_json, write_hashed_json

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
        write_hashed_json(path, vars(self), _to_json)

    @staticmethod
    def read(path: Path) -> ScoreFile:
        """Read it again."""
        try:
            values = read_hashed_json(path)
            known = {name: values[name] for name in ("seconds", "params", "details") if name in values}
            rows = values["rows"]
            for metric, representation, value in rows:
                if not isinstance(metric, str) or not isinstance(representation, str):
                    raise TypeError(f"{show([metric, representation, value])} is no score")
                float(value)
            float(known.get("seconds", 0.0))
            return ScoreFile(values.get("metric", ""), rows, **known)
        except FileNotFoundError as error:
            raise DataError(f"{path}: not found") from error
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedFileError(path, f"not a score: {error}") from error


def _to_json(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
