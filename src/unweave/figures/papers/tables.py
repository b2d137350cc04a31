"""Cells and rows of the papers' tables: values with intervals, methods with settings, in the papers' order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.figures.style import method_name, method_order
from unweave.methods import METHODS


def format_interval(
    value: float, low: float, high: float, digits: int = 3, values: Sequence[float] = ()
) -> str:
    """A median with its interval, or with the ``values`` where they are too few for one; empty for NaN.

    >>> format_interval(0.412, 0.38, 0.441)
    '0.412 [0.380, 0.441]'
    >>> format_interval(0.4, np.nan, np.nan, digits=1, values=[0.3, 0.4, 0.9])
    '0.4 (0.3, 0.4, 0.9)'
    """
    if np.isnan(value):
        return ""
    if np.isnan(low) or np.isnan(high):
        all_values = ", ".join(f"{one:.{digits}f}" for one in values)
        return f"{value:.{digits}f} ({all_values})" if len(values) > 1 else f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def interval_column(
    rows: pd.DataFrame, value: str, low: str = "low", high: str = "high", values: str = "values"
) -> pd.Series[str]:
    """``format_interval`` of each row, from the columns of these names; there need be no ``values``."""
    numbers = rows[[value, low, high]].to_numpy(dtype=np.float64)
    few = rows[values] if values in rows else [()] * len(rows)
    cells = [
        format_interval(row[0], row[1], row[2], values=some) for row, some in zip(numbers, few, strict=True)
    ]
    return pd.Series(cells, index=rows.index, dtype="str")


def method_column(rows: pd.DataFrame) -> pd.Series[str]:
    """The name of each row's method and variant."""
    names = [method_name(*pair) for pair in zip(rows["method"], rows["variant"], strict=True)]
    return pd.Series(names, index=rows.index, dtype="str")


def setting_column(rows: pd.DataFrame) -> pd.Series[str]:
    """The name of each row's method, strength and variant: "β-VAE (β = 4)"."""
    names = []
    for method, variant, name, strength in zip(
        rows["method"], rows["variant"], rows["strength_name"], rows["strength"], strict=True
    ):
        setting = "" if pd.isna(strength) else f"{_strength_label(method, name)} = {strength:g}"
        names.append(method_name(method, setting, variant))
    return pd.Series(names, index=rows.index, dtype="str")


def sort_rows(rows: pd.DataFrame, data: Sequence[str]) -> pd.DataFrame:
    """Rows in the order of the data sets ``data``, then of the methods in the papers, then from weak to strong."""
    pairs = pd.Series(list(zip(rows["method"], rows["variant"], strict=True)), index=rows.index)
    ranks = {
        pair: rank for rank, pair in enumerate(sorted(pairs.unique(), key=lambda pair: method_order(*pair)))
    }
    keys = pd.DataFrame(
        {
            "data": rows["data"].map({name: position for position, name in enumerate(data)}),
            "method": pairs.map(ranks),
            "strength": rows.get("strength", 0.0),
        }
    )
    return rows.loc[keys.sort_values(["data", "method", "strength"], kind="stable").index].reset_index(
        drop=True
    )


def _strength_label(method: str, name: str) -> str:
    """The strength for people; its name where the method is not known or the table has another strength."""
    info = METHODS.get(method)
    return info.strength_label if info is not None and info.strength == name else name
