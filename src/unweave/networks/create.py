"""Encoder and decoder by architecture name, and checks of a user's own modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from unweave.errors import ArgumentError, unknown_name
from unweave.networks.conv import ConvDecoder, ConvEncoder
from unweave.networks.mlp import MLPDecoder, MLPEncoder
from unweave.networks.shapes import CONV_CHANNELS, check_latent_size, number_of_values, tensor_shape

Shape = tuple[int, ...]
ENCODERS: dict[str, Callable[[Shape, int, int], nn.Module]] = {
    "conv": ConvEncoder,
    "conv_dlib": lambda image_shape, latent_size, conditioning: ConvEncoder(
        image_shape, latent_size, conditioning, variant="dlib"
    ),
    "mlp": lambda image_shape, latent_size, conditioning: MLPEncoder(
        image_shape, latent_size, conditioning=conditioning
    ),
}
DECODERS: dict[str, Callable[[int, Shape], nn.Module]] = {
    "conv": ConvDecoder,
    "conv_dlib": ConvDecoder,
    "mlp": MLPDecoder,
}
PROBES = 2


def create_networks(
    architecture: str,
    image_shape: tuple[int, ...],
    latent_size: int,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    conditioning: int = 0,
) -> tuple[nn.Module, nn.Module]:
    """Encoder and decoder for images of ``image_shape``, (H, W, C) as stored.

    ``architecture``: "conv" (the papers' network), "conv_dlib" (disentanglement_lib's), "mlp", "auto" ("conv"
    for (H, W, C) with 1 to 4 channels, otherwise "mlp"), or "custom": the given ``encoder`` and ``decoder``,
    and "auto" for the one that is missing. A given module is used as it is, after a trial with two zeros:
    encoder(images (n, C, H, W)) -> (mean, log_variance), each (n, latent_size), and
    decoder(z (n, latent_size)) -> output shaped as the images. With ``conditioning`` = d the encoder takes
    labels u (n, d) as well: encoder(images, u).

    Examples
    --------
    >>> import torch
    >>> encoder, decoder = create_networks("auto", (32, 32, 1), latent_size=3)
    >>> decoder(encoder(torch.zeros(2, 1, 32, 32))[0]).shape
    torch.Size([2, 1, 32, 32])
    """
    known = ("auto", "custom", *ENCODERS)
    if architecture not in known:
        raise unknown_name("architecture", architecture, known)
    if architecture == "custom" and encoder is None and decoder is None:
        raise ArgumentError("architecture", architecture, "needs your own encoder, decoder or both")
    check_latent_size(latent_size)
    number_of_values(image_shape)
    if encoder is None:
        encoder = create_encoder(architecture, image_shape, latent_size, conditioning)
    else:
        _check_encoder(encoder, tensor_shape(image_shape), latent_size, conditioning)
    if decoder is None:
        decoder = DECODERS[_resolved(architecture, image_shape)](latent_size, image_shape)
    else:
        _check_decoder(decoder, tensor_shape(image_shape), latent_size)
    return encoder, decoder


def create_encoder(
    architecture: str, image_shape: tuple[int, ...], outputs: int, conditioning: int = 0
) -> nn.Module:
    """An encoder alone: images (and labels u) to two arrays (n, outputs). "custom" is as "auto".

    Examples
    --------
    >>> import torch
    >>> create_encoder("mlp", (6,), outputs=3)(torch.zeros(2, 6))[0].shape
    torch.Size([2, 3])
    """
    return ENCODERS[_resolved(architecture, image_shape)](image_shape, outputs, conditioning)


def _resolved(architecture: str, image_shape: Shape) -> str:
    if architecture not in ("auto", "custom"):
        return architecture
    is_image = len(image_shape) == 3 and image_shape[2] in CONV_CHANNELS
    return "conv" if is_image else "mlp"


def _check_encoder(encoder: nn.Module, image: Shape, latent_size: int, conditioning: int) -> None:
    shapes = [(PROBES, *image), (PROBES, conditioning)] if conditioning else [(PROBES, *image)]
    given = _probe("encoder", encoder, *shapes)
    code = (PROBES, latent_size)
    if not isinstance(given, tuple | list) or [_shape(part) for part in given] != [code, code]:
        raise ArgumentError(
            "encoder",
            type(encoder).__name__,
            f"gave {_describe(given)} for images of shape {(PROBES, *image)}; "
            f"needs a pair (mean, log_variance) of shape {code} each",
        )


def _check_decoder(decoder: nn.Module, image: Shape, latent_size: int) -> None:
    given = _probe("decoder", decoder, (PROBES, latent_size))
    if _shape(given) != (PROBES, *image):
        raise ArgumentError(
            "decoder",
            type(decoder).__name__,
            f"gave {_describe(given)} for codes of shape {(PROBES, latent_size)}; "
            f"needs a tensor of shape {(PROBES, *image)}, as the images",
        )


def _probe(name: str, module: nn.Module, *shapes: Shape) -> object:
    """What ``module`` makes of zeros; its state and torch's random numbers stay as they were."""
    like = next(module.parameters(), torch.zeros(()))
    zeros = [torch.zeros(shape, dtype=like.dtype, device=like.device) for shape in shapes]
    try:
        with _evaluating(module), torch.no_grad(), torch.random.fork_rng(devices=[]):
            return module(*zeros)
    except Exception as error:
        # Whatever a user's module raises on a well-formed batch is the answer to "does it fit?".
        message = f"failed for an input of shape {' and '.join(map(str, shapes))}: {error}"
        raise ArgumentError(name, type(module).__name__, message) from error


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, so that running averages are not touched; each part gets its own mode back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _shape(value: object) -> Shape | None:
    return tuple(value.shape) if isinstance(value, Tensor) else None


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of ({', '.join(_describe(part) for part in value)})"
    return f"a {type(value).__name__}"
