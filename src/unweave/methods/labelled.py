"""Learning from labels: which ones a method was created with, and whether a batch has them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from unweave.arrays import AnyArray, ArrayLike, as_array
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, ImageBatches, LabelledBatch, LabelledBatches
from unweave.data.supervision.labels import Labels, labels_from_spec
from unweave.errors import ArgumentError
from unweave.methods.label_layout import LabelLayout
from unweave.methods.method import Method
from unweave.methods.registry import describe
from unweave.methods.spec import MethodSpec

NUM_DRAWS = 64  # of u, which stand for how labels are distributed
_HINT = "method.labels_for(data).known(rows) gives labels as the method learned from them"


class LabelledMethod(Method):
    """The base class of methods, other than VAEs, that learn from labels u.

    ``create`` gives the constructor the layout of u, and then the labels themselves to :meth:`take_labels`. Training
    batches are :class:`~unweave.data.batches.LabelledBatch`. The weights hold 64 draws of u, so that a run which was
    loaded can draw labels without its data.

    Parameters
    ----------
    labels
        which entries of u belong to which label.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("cgan", data, labels={"encoding": "one_hot"}, width=4)
    >>> method.batches(data).draw(step=0, batch_size=2, seed=0).u.shape
    torch.Size([2, 4])
    """

    label_draws: Tensor

    def __init__(self, labels: LabelLayout) -> None:
        super().__init__()
        self.label_layout = labels
        self.register_buffer("label_draws", torch.zeros(NUM_DRAWS, labels.width))

    @cached_property
    def label_supervision(self) -> LabelSupervision:
        """The labels of the method's spec."""
        return LabelSupervision(self.spec, may_lack=describe(self.spec.name).labels == "some")

    @property
    def label_size(self) -> int:
        """d, the number of entries of u."""
        return self.label_layout.width

    def take_labels(self, labels: Labels) -> None:
        """Keep how the labels are distributed that the method was created with, and the array that they are from."""
        self.label_supervision.array = labels.array
        self.label_draws = draw_labels(labels).to(self.label_draws)

    def labels_for(self, data: Dataset) -> Labels:
        """The labels of ``data`` that the method learns from."""
        labels = self.label_supervision.labels_for(data)
        assert labels is not None  # the layout is that of the spec's labels
        return labels

    @property
    def label_array(self) -> AnyArray | None:
        """The array of labels that the method was created with, and holds; None if its labels are factors."""
        return self.label_supervision.array

    def remember_labels(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with."""
        self.label_supervision.remember(array)

    def batches(self, data: Dataset) -> Batches:
        """Images of ``data`` with their labels."""
        return LabelledBatches(ImageBatches(data), self.labels_for(data))

    def sample_labels(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """u (n, d), as labels are distributed in the data."""
        draws = self.label_draws
        return draws[torch.randint(len(draws), (n,), generator=generator, device=draws.device)]


class LabelSupervision:
    """The labels that a method learns from, as its spec has them.

    Parameters
    ----------
    spec
        of the method; its ``labels`` say which labels it learns from, if any.
    may_lack
        whether the method can learn from images that have no labels.

    Examples
    --------
    >>> from unweave.data.supervision.labels import labels_of
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> spec = MethodSpec("cgan", [6], labels=labels_of(data).spec)
    >>> LabelSupervision(spec, may_lack=False).labels_for(data).of([3])
    array([[0.75]], dtype=float32)
    """

    def __init__(self, spec: MethodSpec, may_lack: bool) -> None:
        self.spec, self.may_lack = spec, may_lack
        self.layout = None if spec.labels is None else LabelLayout.of(spec.labels)
        self.array: AnyArray | None = None

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that the method learns from; None if it learns from none."""
        return None if self.spec.labels is None else labels_from_spec(self.spec.labels, data, self.array)

    @property
    def lacks_array(self) -> bool:
        """Whether the method learned from an array of labels that it has to be given again."""
        return "array" in (self.spec.labels or {}) and self.array is None

    def remember(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with; ``labels_for`` checks that it is."""
        if "array" not in (self.spec.labels or {}):
            message = f"this {self.spec.name} did not learn from an array"
            raise ArgumentError("labels", np.shape(array), message)
        self.array = np.array(array)

    def check_batch(self, batch: Batch) -> LabelledBatch:
        """The batch, with labels as tensors like the images; one that lacks labels is refused."""
        if not isinstance(batch, LabelledBatch):
            raise self._wrong_shape(None, len(batch))
        labelled = batch.labelled
        if labelled is not None:
            labelled = replace(labelled, u=self.check_labels(labelled.u, labelled.images))
        return replace(batch, u=self.check_labels(batch.u, batch.images), labelled=labelled)

    def check_labels(
        self, given: Tensor | ArrayLike | None, images: Tensor, *, entries: bool | None = None
    ) -> Tensor:
        """Labels as a tensor (n, d) like the images.

        Their ``entries`` are checked if they are on a CPU (None): anywhere else each check would wait for the device.
        """
        if self.layout is None:
            raise ArgumentError("u", "labels", f"{self.spec.name} does not learn from labels")
        u = given if given is None or isinstance(given, Tensor) else _as_tensor(given)
        if u is None or tuple(u.shape) != (len(images), self.layout.width):
            raise self._wrong_shape(u, len(images))
        if entries or (entries is None and u.is_cpu):
            self._check_entries(u, self.layout)
        return u.to(images)

    def _wrong_shape(self, u: Tensor | None, n: int) -> ArgumentError:
        columns = () if self.layout is None else self.layout.columns
        value = None if u is None else f"a tensor of shape {tuple(u.shape)}"
        names = ", ".join(column.name for column in columns)
        wanted = (n, sum(column.width for column in columns))
        needs = f"{self.spec.name} needs labels of shape {wanted} ({names})"
        return ArgumentError("u", value, f"{needs}; {_HINT}")

    def _check_entries(self, u: Tensor, layout: LabelLayout) -> None:
        """Refuse entries outside [0, 1], and NaN in a part of a one-hot label, or anywhere if labels may not lack."""
        wrong = (u < 0) | (u > 1)
        if wrong.any():
            row, entry = wrong.nonzero()[0].tolist()
            raise ArgumentError(f"u[{row}, {entry}]", u[row, entry].item(), f"needs 0 to 1, or NaN; {_HINT}")
        missing = u.isnan()
        if not missing.any():
            return
        if not self.may_lack:
            message = f"{self.spec.name} has no q(u|x) to predict missing labels; {_HINT}"
            raise ArgumentError("u", "NaN", message)
        partly = missing != layout.entries(missing[:, layout.starts])
        if partly.any():
            row, entry = partly.nonzero()[0].tolist()
            needs = f"all entries of {layout.names[entry]!r} are NaN, or none"
            raise ArgumentError(f"u[{row}, {entry}]", u[row, entry].item(), f"{needs}; {_HINT}")


def draw_labels(labels: Labels) -> Tensor:
    """64 draws of u, (64, d), as labels are distributed in the data.

    Examples
    --------
    >>> from unweave.data.supervision.labels import labels_of
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> draw_labels(labels_of(data)).shape
    torch.Size([64, 1])
    """
    return torch.from_numpy(labels.sample(NUM_DRAWS, np.random.default_rng(0)))


def _as_tensor(u: ArrayLike) -> Tensor:
    """Labels that are an array, or lists of numbers."""
    given = as_array(u, "u")
    if given.dtype.kind not in "biuf":
        raise ArgumentError("u", f"{given.dtype} array of shape {given.shape}", "needs numbers")
    return torch.from_numpy(given.astype(np.float64))
