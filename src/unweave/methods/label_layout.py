"""Which entries of labels u belong to which label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from unweave.data.supervision.labels import LabelColumn
from unweave.errors import ArgumentError
from unweave.methods.spec import MethodSpec

UNIFORM_VARIANCE = 1 / 12  # of a number that is uniform in [0, 1]
CONTINUOUS_ROUNDING = 1e-4  # variance: a standard deviation of 1 % of the range
# The least variance, 0.1 % of the range. No network knows a label more exactly, and squared errors that are divided by
# the rounding error of a million values exceed all else in the loss. Labels of up to 288 values are above it.
LEAST_ROUNDING = 1e-6


@dataclass(frozen=True)
class LabelLayout:
    """Which entries of u (n, d) belong to which of K labels.

    Examples
    --------
    >>> columns = [{"name": "shape", "size": 3, "one_hot": True}, {"name": "x", "size": 8, "one_hot": False}]
    >>> layout = LabelLayout.of({"columns": columns})
    >>> layout.width, layout.starts
    (4, [0, 3])
    """

    columns: tuple[LabelColumn, ...]

    @staticmethod
    def of(labels: Mapping[str, Any]) -> LabelLayout:
        """The layout of labels as a method's spec describes them."""
        return LabelLayout(tuple(LabelColumn(**column) for column in labels["columns"]))

    @staticmethod
    def from_spec(spec: MethodSpec) -> LabelLayout:
        """The layout of the labels that the method of a spec learns from."""
        if spec.labels is None:
            raise ArgumentError("labels", None, f"{spec.name} learns from labels: the spec needs them")
        return LabelLayout.of(spec.labels)

    @property
    def width(self) -> int:
        """d, the number of entries of u."""
        return sum(column.width for column in self.columns)

    @cached_property
    def starts(self) -> list[int]:
        """The first entry of each label."""
        widths = [column.width for column in self.columns]
        return [sum(widths[:label]) for label in range(len(widths))]

    @cached_property
    def names(self) -> list[str]:
        """The label that each entry belongs to."""
        return [column.name for column in self.columns for _ in range(column.width)]

    @property
    def categories(self) -> tuple[slice, ...]:
        """The entries of each label that is one-hot."""
        starts = zip(self.columns, self.starts, strict=True)
        return tuple(slice(start, start + column.width) for column, start in starts if column.one_hot)

    @property
    def scaled(self) -> list[int]:
        """The labels (not entries) that are one number."""
        return [label for label, column in enumerate(self.columns) if not column.one_hot]

    def known(self, u: Tensor) -> Tensor:
        """Which labels of u (n, d) are given, (n, K)."""
        return ~u[:, self.starts].isnan()

    def entries(self, by_label: Tensor) -> Tensor:
        """One value per label, (…, K), repeated for each of its entries, (…, d)."""
        widths = torch.tensor([column.width for column in self.columns], device=by_label.device)
        return by_label.repeat_interleave(widths, dim=-1, output_size=self.width)

    def rounding(self) -> Tensor:
        """(d,): the variance within which a label can be known.

        For one of ``size`` values, 1 / size apart, that is their rounding error, 1 / (12 size^2), or 1e-6 if that is
        less.
        """
        variances = [
            CONTINUOUS_ROUNDING
            if column.size is None
            else max(UNIFORM_VARIANCE / column.size**2, LEAST_ROUNDING)
            for column in self.columns
        ]
        return self.entries(torch.tensor(variances))

    def uniform_moments(self) -> tuple[Tensor, Tensor]:
        """(d,) each: mean and variance of each label, scaled, if all its values are equally frequent.

        Of ``size`` values 0, 1 / size, …, (size - 1) / size these are (size - 1) / (2 size) and (size^2 - 1) /
        (12 size^2), of a number in [0, 1] 1/2 and 1/12. A label of one value has its rounding error for a variance.
        """
        sizes = [column.size for column in self.columns]
        means = [0.5 if size is None else (size - 1) / (2 * size) for size in sizes]
        variances = [
            UNIFORM_VARIANCE * (1 if size is None or size == 1 else (size**2 - 1) / size**2) for size in sizes
        ]
        return self.entries(torch.tensor(means)), self.entries(torch.tensor(variances))
