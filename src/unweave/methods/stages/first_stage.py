"""The earlier stage of a multi-stage model: a trained method that is held and never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from unweave.arrays import AnyArray, ArrayLike
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, ImageBatches, LabelledBatch
from unweave.data.registry import describe_data
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError
from unweave.methods.method import Decodes, DecodesLabels, Encodes, Method, Posterior, Samples, code_size
from unweave.objectives import reparameterise, standard_noise

if TYPE_CHECKING:

    class Autoencoder(Method, Encodes, Decodes):
        """A method that encodes and decodes."""

    class LabelledStage(Method, DecodesLabels):
        """A method whose codes are labels."""


CodeSource = Literal["mean", "draw"]


class FirstStage(nn.Module):
    """C -> Y: codes c of images, and the images y that they are decoded to.

    Its weights get no gradient, and it is always in evaluation mode. The codes of a supervised stage are the labels of
    the images, which training batches have; it cannot encode images without them.

    Parameters
    ----------
    method
        as trained: it must encode and decode.
    image_shape
        (H, W, C) of the images that the later stage is for.
    may_be_supervised
        whether it may, instead of encoding, be a :class:`~unweave.methods.method.DecodesLabels`.

    Examples
    --------
    >>> import torch
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> first = FirstStage(uw.methods.create("vae", data, latent_size=2), (6,))
    >>> first.train().training, any(weight.requires_grad for weight in first.parameters())
    (False, False)
    >>> first.reconstruct(torch.zeros(3, 6), "mean").shape
    torch.Size([3, 6])
    """

    def __init__(self, method: Method, image_shape: tuple[int, ...], may_be_supervised: bool = False) -> None:
        super().__init__()
        self.method = _checked(method, image_shape, may_be_supervised)
        self.supervised = not isinstance(method, Encodes)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode, whatever ``mode`` is."""
        return super().train(False)

    @property
    def code_size(self) -> int:
        """|C|, the number of columns of a code."""
        return self._labelled.label_size if self.supervised else code_size(self.method)

    def encode(self, images: Tensor) -> Posterior:
        """q(c|x) of images (n, C, H, W)."""
        if self.supervised:
            raise ArgumentError("first", self.method.spec.name, "cannot encode: its codes are labels")
        return self.method.encode(images)

    def decode(self, c: Tensor) -> Tensor:
        """y, the expected images (n, C, H, W) of codes (n, |C|)."""
        return self.method.decode(c)

    @torch.no_grad()
    def reconstruct(
        self, images: Tensor, source: CodeSource, generator: torch.Generator | None = None
    ) -> Tensor:
        """y of images (n, C, H, W): that of the mean of q(c|x), or of one draw from it."""
        posterior = self.encode(images)
        if source == "mean":
            return self.decode(posterior.mean)
        return self.decode(reparameterise(*posterior, standard_noise(posterior.mean, generator=generator)))

    def batches(self, data: Dataset) -> Batches:
        """Training batches of ``data`` for a later stage: images, with the labels of a supervised stage."""
        return self._labelled.batches(data) if self.supervised else ImageBatches(data)

    @torch.no_grad()
    def reconstruct_batch(
        self, batch: Batch, source: CodeSource, generator: torch.Generator | None = None
    ) -> Tensor:
        """y of the images of a batch; of a supervised stage that of their labels."""
        if not self.supervised:
            return self.reconstruct(batch.images, source, generator)
        if not isinstance(batch, LabelledBatch):
            message = f"has no labels, and the codes of the first stage, {self.method.spec.name}, are labels"
            raise ArgumentError("batch", f"{len(batch)} images", message)
        return self.decode(batch.u)

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that are its codes; None if it is not supervised."""
        return self._labelled.labels_for(data) if self.supervised else None

    @property
    def label_array(self) -> AnyArray | None:
        """The array that its labels are from; None if they are factors, or it has none."""
        return self._labelled.label_array if self.supervised else None

    def remember_labels(self, array: ArrayLike) -> None:
        """Give it again the array of labels that it was created with."""
        if not self.supervised:
            message = f"the first stage, {self.method.spec.name}, encodes images: its codes are no labels"
            raise ArgumentError("labels", np.shape(array), message)
        self._labelled.remember_labels(array)

    def sample_codes(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` codes (n, |C|): labels as they are distributed in the data, or the codes of images that it samples."""
        if self.supervised:
            return self._labelled.sample_labels(n, generator)
        return self.encode(self.sample(n, generator)).mean

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """y of ``n`` codes from the prior p(c), or of labels as they are distributed in the data."""
        if self.supervised:
            return self.decode(self.sample_codes(n, generator))
        if not isinstance(self.method, Samples):
            raise ArgumentError("first", self.method.spec.name, "cannot sample")
        return self.method.sample(n, generator)

    @property
    def _labelled(self) -> LabelledStage:
        stage: Any = self.method
        labelled: LabelledStage = stage
        return labelled


def check_same_data(spec: dict[str, Any], data: Dataset) -> None:
    """Refuse data that is not what a first stage was trained on, by the stage's spec.

    Examples
    --------
    >>> data, other = (uw.data.from_arrays(np.zeros((n, 6), np.float32), name="zeros") for n in (4, 5))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2), data, steps=1)
    >>> check_same_data({"data": run.spec.data, "method": {"name": "vae"}}, other)
    Traceback (most recent call last):
    unweave.errors.ArgumentError: first = 'vae': was trained on other data: size is 4 there, 5 here; \
other_data=True allows that
    """
    there, here = spec["data"], describe_data(data)
    different = [key for key in here if there.get(key) != here[key]]
    if different:
        changes = ", ".join(f"{key} is {there.get(key)!r} there, {here[key]!r} here" for key in different)
        message = f"was trained on other data: {changes}; other_data=True allows that"
        raise ArgumentError("first", spec["method"]["name"], message)


def first_weights(method: Method) -> str:
    """A hash of the weights of a later stage's first stage, as the spec of its run has it."""
    weights: str = method.spec.hyperparameters["first"]["weights"]
    return weights


def _checked(method: Method | None, image_shape: tuple[int, ...], may_be_supervised: bool) -> Autoencoder:
    """The method, if it can be a first stage for images of this shape."""
    if method is None:
        raise ArgumentError("first", None, "needs the run of a first stage, or its folder")
    name = method.spec.name
    if not isinstance(method, Decodes):
        raise ArgumentError("first", name, "cannot decode: a first stage turns codes c into images y")
    if not isinstance(method, Encodes) and not (may_be_supervised and isinstance(method, DecodesLabels)):
        raise ArgumentError("first", name, "cannot encode: a first stage gives images codes c")
    if list(method.spec.image_shape) != list(image_shape):
        message = f"is for images {tuple(method.spec.image_shape)}, the data has {tuple(image_shape)}"
        raise ArgumentError("first", name, message)
    if isinstance(method, Encodes) and method.noise_correlation:
        message = f"its codes have correlated noise (s = {method.noise_correlation:g}), and z would have none"
        raise ArgumentError("first", name, message)
    autoencoder: Autoencoder = method  # type: ignore[assignment]
    return autoencoder
