"""Image shapes: channels last as stored, channels first as tensors."""

from __future__ import annotations

from math import prod

from unweave.errors import ArgumentError

CONV_SIZES = (28, 32, 64, 128)
CONV_CHANNELS = range(1, 5)


def tensor_shape(image_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one image as a tensor: (H, W, C) becomes (C, H, W), any other shape stays.

    Examples
    --------
    >>> tensor_shape((64, 32, 3))
    (3, 64, 32)
    """
    if len(image_shape) == 3:
        height, width, channels = image_shape
        return channels, height, width
    return tuple(image_shape)


def number_of_values(image_shape: tuple[int, ...]) -> int:
    """How many numbers one image has; refuses shapes that hold none.

    Examples
    --------
    >>> number_of_values((64, 64, 3))
    12288
    """
    if not image_shape or min(image_shape) < 1:
        raise ArgumentError("image_shape", image_shape, "needs one or more sizes >= 1")
    return prod(image_shape)


def check_conv_shape(image_shape: tuple[int, ...]) -> tuple[int, int]:
    """The size and channels of an image that the convolutional networks take; any other shape is refused.

    Examples
    --------
    >>> check_conv_shape((64, 64, 3))
    (64, 3)
    """
    if len(image_shape) == 3:
        height, width, channels = image_shape
        if height == width and height in CONV_SIZES and channels in CONV_CHANNELS:
            return height, channels
    raise ArgumentError(
        "image_shape",
        tuple(image_shape),
        "the convolutional networks take square images of size 28, 32, 64 or 128 with 1 to 4 channels, "
        "as (height, width, channels); of a VAE's architectures, 'mlp' takes any shape",
    )


def check_latent_size(latent_size: int) -> None:
    """Refuse a code without dimensions.

    Examples
    --------
    >>> check_latent_size(10)
    """
    if latent_size < 1:
        raise ArgumentError("latent_size", latent_size, "needs a whole number >= 1")
