"""What a method is, as plain data: enough to build it again on another machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

from unweave.errors import ArgumentError
from unweave.parameters import Count, Natural, check_value

# The annotation of a hyperparameter that is an earlier stage, a method that was trained before. `create` takes a run,
# its folder, or a mapping of settings; the spec holds what that run was, its method under "method"; the constructor
# gets the method itself.
Stage = Annotated[Any, "stage"]


@dataclass(frozen=True)
class MethodSpec:
    """The name and hyperparameters of a method, and the shape and size of the data set that it was created for.

    ``labels`` is the ``spec`` of the :class:`~unweave.data.supervision.labels.Labels` that it learns from, if it does.

    Examples
    --------
    >>> spec = MethodSpec("my_gan", [64, 64, 1], hyperparameters={"gamma": 10})
    >>> MethodSpec.from_dict(spec.as_dict()) == spec
    True
    """

    name: str
    image_shape: list[int]
    dataset_size: int | None = None
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, Any] | None = field(default=None, kw_only=True)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they are written to a run's spec.yaml.

        Without ``labels`` and a VAE's ``prior`` and ``correlated``, where there are none: the identity of a run depends
        on these values, and runs are older than the three.
        """
        optional = ("labels", "prior", "correlated")
        return {key: value for key, value in asdict(self).items() if key not in optional or value is not None}

    def check(self) -> None:
        """Refuse values of another type, and shapes that no image has, of a spec that was read from a file.

        Examples
        --------
        >>> MethodSpec("vae", [10**9, 10**9, 3]).check()
        Traceback (most recent call last):
        unweave.errors.ArgumentError: image_shape = [1000000000, 1000000000, 3]: needs at most 2^26 numbers
        """
        check_value("name", self.name, str)
        shape = check_value("image_shape", self.image_shape, list[Count])
        if not shape or len(shape) > 8 or math.prod(shape) > 2**26:
            raise ArgumentError("image_shape", self.image_shape, "needs at most 2^26 numbers")
        check_value("dataset_size", self.dataset_size, Natural | None)
        for field_name in ("hyperparameters", "capacity", "prior", "labels"):
            value = vars(self).get(field_name)
            is_optional = field_name != "hyperparameters"
            if not isinstance(value, dict) and not (is_optional and value is None):
                raise ArgumentError(field_name, value, "needs a mapping")
        terms = vars(self).get("extra_terms", [])
        if not isinstance(terms, list) or not all(
            isinstance(term, dict) and "name" in term for term in terms
        ):
            raise ArgumentError("extra_terms", terms, "needs a list of mappings with a name")

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> MethodSpec:
        """The reverse of ``as_dict``: a :class:`VAESpec` if there is more than every method has."""
        if not isinstance(values, Mapping) or not {"name", "image_shape"} <= set(values):
            raise ArgumentError("method", values, "needs a mapping with a name and an image_shape")
        common = {each.name for each in fields(MethodSpec)}
        if set(values) <= common:
            return MethodSpec(**values)
        known = {each.name for each in fields(VAESpec)}
        unknown = set(values) - known
        if unknown:
            raise ArgumentError(
                "method spec", sorted(map(str, unknown)), f"unknown keys; known: {sorted(known)}"
            )
        return VAESpec(**values)


@dataclass(frozen=True)
class VAESpec(MethodSpec):
    """What a VAE is besides: its networks, likelihood, noise, further terms and prior.

    The fields are arguments of :func:`unweave.methods.vae.create.create_vae`.

    Examples
    --------
    >>> VAESpec("beta_vae", [64, 64, 1], hyperparameters={"beta": 6}).latent_size
    10
    """

    latent_size: int = 10
    architecture: str | dict[str, Any] = "auto"
    reconstruction: str = "bernoulli"
    correlation: float = 0.0
    capacity: dict[str, Any] | None = None
    extra_terms: list[dict[str, Any]] = field(default_factory=list)
    prior: dict[str, Any] | None = None
    correlated: str | None = None
