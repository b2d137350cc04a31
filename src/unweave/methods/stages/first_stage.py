"""The earlier stage of a multi-stage model: a trained method that is held and never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import Tensor, nn

from unweave.data import Dataset
from unweave.data.registry import describe_data
from unweave.errors import ArgumentError
from unweave.methods.method import Decodes, Encodes, Method, Posterior, Samples, code_size
from unweave.objectives import reparameterise, standard_noise

if TYPE_CHECKING:

    class Autoencoder(Method, Encodes, Decodes):
        """A method that encodes and decodes."""


CodeSource = Literal["mean", "draw"]


class FirstStage(nn.Module):
    """C -> Y: codes c of images, and the images y that they are decoded to.

    Its weights get no gradient, and it is always in evaluation mode.

    Parameters
    ----------
    method
        as trained: it must encode and decode.
    image_shape
        (H, W, C) of the images that the later stage is for.

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

    def __init__(self, method: Method, image_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.method = _checked(method, image_shape)
        self.code_size = code_size(self.method)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode, whatever ``mode`` is."""
        return super().train(False)

    def encode(self, images: Tensor) -> Posterior:
        """q(c|x) of images (n, C, H, W)."""
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

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """y of ``n`` codes from the prior p(c)."""
        if not isinstance(self.method, Samples):
            raise ArgumentError("first", self.method.spec.name, "cannot sample")
        return self.method.sample(n, generator)


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


def _checked(method: Method | None, image_shape: tuple[int, ...]) -> Autoencoder:
    """The method, if it can be a first stage for images of this shape."""
    if method is None:
        raise ArgumentError("first", None, "needs the run of a first stage, or its folder")
    name = method.spec.name
    if not isinstance(method, Encodes):
        raise ArgumentError("first", name, "cannot encode: a first stage gives images codes c")
    if not isinstance(method, Decodes):
        raise ArgumentError("first", name, "cannot decode: a first stage turns codes c into images y")
    if list(method.spec.image_shape) != list(image_shape):
        message = f"is for images {tuple(method.spec.image_shape)}, the data has {tuple(image_shape)}"
        raise ArgumentError("first", name, message)
    if method.noise_correlation:
        message = f"its codes have correlated noise (s = {method.noise_correlation:g}), and z would have none"
        raise ArgumentError("first", name, message)
    autoencoder: Autoencoder = method  # type: ignore[assignment]
    return autoencoder
