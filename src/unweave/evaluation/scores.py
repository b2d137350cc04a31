"""The scores of one representation, as a mapping that prints as a table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from unweave.metrics.result import Score

if TYPE_CHECKING:
    import pandas as pd


def points_text(points: Mapping[str, Any]) -> str:
    """How many points of how many rows, as a score's ``details["points"]`` has it, in words.

    Examples
    --------
    >>> points_text({"train": 200, "test": 100, "rows": 300})
    '200 + 100 points of 300 rows'
    >>> points_text({"every": 10_000, "rows": None})
    '10,000 points'
    >>> points_text({"every": 80, "rows": 300, "labelled": 80})
    '80 points of 80 labelled rows (of 300)'
    """
    numbers = [points[part] for part in ("train", "test", "every") if part in points]
    text = " + ".join(f"{number:,}" for number in numbers) + " points"
    if "labelled" in points:
        text += f" of {points['labelled']:,} labelled rows (of {points['rows']:,})"
    elif points["rows"] is not None:
        text += f" of {points['rows']:,} rows"
    return f"{text}, {points['shared']:.1%} of the latter among the former" if "shared" in points else text


class Scores(dict[str, Score]):
    """Scores by name: ``scores["mig"].value``. What :func:`unweave.evaluate` returns.

    Parameters
    ----------
    scores
        any number of them, as for a dictionary.
    protocol
        by which they were computed, if by one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(0, 4, (300, 2))
    >>> codes = factors + 0.1 * rng.standard_normal(factors.shape)
    >>> scores = Scores({"mig": uw.metrics.mig(codes, factors), "modularity": uw.metrics.modularity(codes, factors)})
    >>> print(scores)
    metric      value
    ----------  -----
    mig         0.956
    modularity  0.998
    >>> list(scores.to_frame().columns)
    ['value', 'higher_is_better', 'low', 'high']
    """

    def __init__(self, scores: Mapping[str, Score] | None = None, *, protocol: str = "") -> None:
        super().__init__(scores or {})
        self.protocol = protocol

    @property
    def caption(self) -> str:
        """What the table is of: the protocol and the points, in a line; "" where neither is known."""
        parts = [f"protocol {self.protocol}"] if self.protocol else []
        points = [score.details["points"] for score in self.values() if "points" in score.details]
        return "; ".join(parts + list(dict.fromkeys(map(points_text, points))))

    def to_frame(self) -> pd.DataFrame:
        """One row per metric: ``value``, ``higher_is_better``, and ``low`` and ``high`` of the 95 % interval."""
        import pandas as pd

        rows = [
            {
                "metric": name,
                "value": score.value,
                "higher_is_better": score.higher_is_better,
                "low": interval[0],
                "high": interval[1],
            }
            for name, score in self.items()
            for interval in [score.details.get("interval", (float("nan"), float("nan")))]
        ]
        columns = ["metric", "value", "higher_is_better", "low", "high"]
        return pd.DataFrame(rows, columns=columns).set_index("metric")

    def __repr__(self) -> str:
        if not self:
            return "no scores"
        rows = self._rows()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        lines += [f"({self.caption})"] if self.caption else []
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        if not self:
            return "no scores"
        head, *body = [[escape(cell) for cell in row] for row in self._rows()]
        header = "".join(f"<th>{cell}</th>" for cell in head)
        lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in body)
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return f"<table>{caption}<thead><tr>{header}</tr></thead><tbody>{lines}</tbody></table>"

    def _rows(self) -> list[list[str]]:
        """The table as text, its head first; intervals and numbers of images only where there are any."""
        with_interval = any("interval" in score.details for score in self.values())
        with_images = any(score.num_images for score in self.values())
        rows = [["metric", "value", *(["95 % interval"] if with_interval else [])]]
        rows[0] += ["images"] if with_images else []
        for name, score in self.items():
            row = [name, f"{score.value:.3f}"]
            if with_interval:
                interval: Any = score.details.get("interval")
                row.append("" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}")
            if with_images:
                row.append(score.num_images)
            rows.append(row)
            for part in score.shown:
                rows.append([f"  {part}", f"{score.details[part]:.4g}", *[""] * (len(row) - 2)])
        return rows
