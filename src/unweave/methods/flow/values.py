"""Images as the vectors that a density model describes: dequantised logits, or the numbers themselves."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import ArgumentError
from unweave.networks.shapes import number_of_values, tensor_shape

Preprocessing = Literal["auto", "logit", "none"]

LEVELS = 256  # of a byte
MARGIN = 1e-6  # by which values stay away from 0 and 1, where the logit has no bound


class Values:
    r"""The map from images to the vectors v whose density is modelled, and back.

    With "logit", the usual preprocessing of flows (Papamakarios et al. 2017; appendix D of the multi-stage paper): a
    pixel k of 0 .. 255 becomes

    .. math:: v = \mathrm{logit}(a + (1 - 2a) (k + u) / 256), \quad u \sim U(0, 1), \quad a = 10^{-6}

    With "none" v are the numbers themselves, flattened. "auto" is "logit" for images and "none" for vectors.

    Parameters
    ----------
    image_shape
        (H, W, C), or the shape of another observation.
    preprocessing
        "auto", "logit" or "none".

    Examples
    --------
    >>> import torch
    >>> values = Values((1, 2, 1))
    >>> v = values.of(torch.tensor([[[[0.0, 1.0]]]]))    # black and white
    >>> v
    tensor([[-6.2359,  6.2359]], dtype=torch.float64)
    >>> values.to_images(v)
    tensor([[[[0., 1.]]]])
    """

    def __init__(self, image_shape: tuple[int, ...], preprocessing: Preprocessing = "auto") -> None:
        is_image = len(image_shape) == 3
        if preprocessing == "logit" and not is_image:
            message = f"is for images; observations of shape {tuple(image_shape)} need none"
            raise ArgumentError("preprocessing", preprocessing, message)
        self.logit = preprocessing == "logit" or (preprocessing == "auto" and is_image)
        self.size = number_of_values(image_shape)
        self.image_shape = tensor_shape(image_shape)

    def of(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """v (n, D), double precision, of images (n, C, H, W) in [0, 1].

        ``generator`` draws u; without one u is 1/2, the middle of a pixel's interval.
        """
        flat = images.flatten(1).double()
        if not self.logit:
            return flat
        if len(flat) and (flat.min() < 0 or flat.max() > 1):
            shown = f"values from {float(flat.min()):g} to {float(flat.max()):g}"
            raise ArgumentError("images", shown, "the logit needs pixels in [0, 1]")
        u: Tensor | float = 0.5
        if generator is not None:
            u = torch.rand(flat.shape, generator=generator, dtype=flat.dtype, device=flat.device)
        return torch.logit(MARGIN + (1 - 2 * MARGIN) * ((LEVELS - 1) * flat + u) / LEVELS)

    def to_images(self, values: Tensor) -> Tensor:
        """The images (n, C, H, W), single precision, that values (n, D) stand for; pixels are bytes / 255."""
        if self.logit:
            levels = (self._unit(values) * LEVELS).floor()
            values = levels.clamp(0, LEVELS - 1) / (LEVELS - 1)
        return values.float().reshape(-1, *self.image_shape)

    def to_mean_images(self, values: Tensor) -> Tensor:
        """As :meth:`to_images`, for values that are means: pixels are not rounded."""
        if self.logit:
            values = ((self._unit(values) * LEVELS - 0.5) / (LEVELS - 1)).clamp(0, 1)
        return values.float().reshape(-1, *self.image_shape)

    def log_volume(self, values: Tensor) -> Tensor:
        """log |dv / dk| (n,): added to a log density of v it gives that of pixels k in [0, 256); 0 without logit."""
        if not self.logit:
            return values.new_zeros(len(values))
        slope = F.softplus(values) + F.softplus(-values)  # -log of sigmoid(v) (1 - sigmoid(v))
        return (slope + math.log1p(-2 * MARGIN) - math.log(LEVELS)).sum(1)

    def _unit(self, values: Tensor) -> Tensor:
        return (torch.sigmoid(values) - MARGIN) / (1 - 2 * MARGIN)


def fixed_noise(images: Tensor) -> torch.Generator:
    """The source of u where a caller gives none: the same at each call."""
    return torch.Generator(images.device).manual_seed(0)
