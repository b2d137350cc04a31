"""Images as users have them, and the tensors that methods take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from unweave.arrays import AnyArray, SingleArray, as_array
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError


def images_to_tensor(images: Any, image_shape: Sequence[int]) -> Tensor:
    """A user's images as a float tensor (n, C, H, W) in [0, 1].

    Parameters
    ----------
    images
        an array or a tensor: bytes from 0 to 255, or floats in [0, 1]; channels last (n, H, W, C) or first
        (n, C, H, W). Other observations than images: numbers (n, …).
    image_shape
        (H, W, C) of one image, or the shape of one observation.

    Examples
    --------
    >>> images_to_tensor(np.full((2, 4, 4, 3), 255, np.uint8), (4, 4, 3)).shape
    torch.Size([2, 3, 4, 4])
    """
    array = images.detach().cpu().numpy() if isinstance(images, Tensor) else as_array(images, "images")
    array = _with_channels_last(array, tuple(image_shape), prefer_first=isinstance(images, Tensor))
    if len(image_shape) == 3:
        _check_values(array)
    elif array.dtype.kind not in "fiub":
        raise ArgumentError("images", str(array.dtype), "needs numbers")
    return to_tensor(array)


def tensor_to_images(tensor: Tensor) -> SingleArray:
    """Images (n, C, H, W) of a method as a float array, channels last; other observations as they are.

    Examples
    --------
    >>> import torch
    >>> tensor_to_images(torch.zeros(2, 3, 4, 4)).shape
    (2, 4, 4, 3)
    """
    array = tensor.detach().float().cpu().numpy()
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1) if array.ndim == 4 else array)


def _with_channels_last(array: AnyArray, shape: tuple[int, ...], prefer_first: bool) -> AnyArray:
    first = (shape[2], *shape[:2]) if len(shape) == 3 else shape
    is_last, is_first = array.shape[1:] == shape, array.shape[1:] == first
    if array.ndim != len(shape) + 1 or not (is_last or is_first):
        others = f" or {('n', *first)}" if first != shape else ""
        needed = f"{('n', *shape)}{others}".replace("'", "")
        raise ArgumentError("images", f"an array of shape {array.shape}", f"needs the shape {needed}")
    if len(shape) == 3 and is_first and (prefer_first or not is_last):
        return array.transpose(0, 2, 3, 1)
    return array


def _check_values(array: AnyArray) -> None:
    """Refuse what is neither bytes nor floats in [0, 1]; a decoder's outputs may exceed it a little."""
    if array.dtype == np.uint8:
        return
    if array.dtype.kind != "f":
        raise ArgumentError("images", str(array.dtype), "needs bytes (uint8) or floats in [0, 1]")
    largest = float(np.max(np.abs(array), initial=0))
    if math.isnan(largest):
        raise ArgumentError("images", largest, "needs floats in [0, 1]; some are not a number")
    if largest > 2:
        raise ArgumentError(
            "images", largest, "floats need values in [0, 1]; pass values from 0 to 255 as uint8"
        )
