"""What a method is, as plain data: enough to build it again on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from unweave.errors import ArgumentError

_OPTIONAL = ("prior", "labels")  # without them a spec, and the identity of a run, is what it always was


@dataclass(frozen=True)
class MethodSpec:
    """The arguments of ``unweave.methods.create``, and the shape and size of the data set it was made for.

    ``labels`` tells what u is (:class:`unweave.data.supervision.labels.Labels`), for methods that learn from labels.
    """

    name: str
    image_shape: list[int]
    dataset_size: int | None = None
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    latent_size: int = 10
    architecture: str = "auto"
    reconstruction: str = "bernoulli"
    correlation: float = 0.0
    capacity: dict[str, Any] | None = None
    extra_terms: list[dict[str, Any]] = field(default_factory=list)
    prior: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they are written to a run's spec.yaml. What only some methods have is left out of others."""
        values = asdict(self)
        return {key: value for key, value in values.items() if key not in _OPTIONAL or value is not None}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> MethodSpec:
        """The reverse of ``as_dict``; unknown keys are refused."""
        known = {f.name for f in fields(MethodSpec)}
        unknown = set(values) - known
        if unknown:
            raise ArgumentError("method spec", sorted(unknown), f"unknown keys; known: {sorted(known)}")
        return MethodSpec(**values)
