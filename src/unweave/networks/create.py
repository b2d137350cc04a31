"""Encoder and decoder by architecture, and checks of a user's own modules.

An architecture is a name, or a mapping with a name and options:

====================  ===============================================================================================
"conv", "conv_dlib"   ``width`` times as many channels and features; or ``parameters``, the number of weights of
                      encoder and decoder together, for which the width is solved (:func:`width_for`);
                      ``labels_at``: where labels u join an encoder that takes them, "heads" (next to its features)
                      or "features" (one layer earlier)
"adain"               the encoder of "conv", and a decoder whose first ``c_size`` latents it reads while the others
                      modulate its layers: :class:`~unweave.networks.adain.SplitCodeDecoder` (``modulation``, ``width``)
"mlp"                 no options
====================  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from unweave.errors import ArgumentError, unknown_name
from unweave.networks.adain import Modulation, SplitCodeDecoder
from unweave.networks.conv import ConvDecoder, ConvEncoder, EarlyConvEncoder
from unweave.networks.mlp import MLPDecoder, MLPEncoder
from unweave.networks.shapes import CONV_CHANNELS, check_latent_size, number_of_values, tensor_shape
from unweave.parameters import Count, Positive, check_arguments, check_fields, check_value

Shape = tuple[int, ...]
Architecture = str | Mapping[str, Any]


class Family(Protocol):
    """What an architecture's name stands for: networks for images of a shape, by its options."""

    def encoder(self, image_shape: Shape, outputs: int, conditioning: int) -> nn.Module: ...

    def decoder(self, latent_size: int, image_shape: Shape) -> nn.Module: ...


@dataclass(frozen=True)
class Conv:
    """The convolutional networks of the papers, or of disentanglement_lib."""

    width: Positive = 1.0
    labels_at: Literal["heads", "features"] = "heads"
    variant: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        check_fields(self)

    def encoder(self, image_shape: Shape, outputs: int, conditioning: int) -> nn.Module:
        kind = EarlyConvEncoder if self.labels_at == "features" else ConvEncoder
        return kind(image_shape, outputs, conditioning, self.variant, self.width)

    def decoder(self, latent_size: int, image_shape: Shape) -> nn.Module:
        return ConvDecoder(latent_size, image_shape, self.width)


@dataclass(frozen=True)
class ConvDlib(Conv):
    """As :class:`Conv`, with disentanglement_lib's smaller kernels."""

    variant: ClassVar[str] = "dlib"


@dataclass(frozen=True)
class AdaIN:
    """A convolutional encoder; a decoder of c that is modulated by z."""

    c_size: Count = 5
    modulation: Modulation = "channel"
    width: Count = 64

    def __post_init__(self) -> None:
        check_fields(self)

    def encoder(self, image_shape: Shape, outputs: int, conditioning: int) -> nn.Module:
        return ConvEncoder(image_shape, outputs, conditioning)

    def decoder(self, latent_size: int, image_shape: Shape) -> nn.Module:
        return SplitCodeDecoder(latent_size, image_shape, self.c_size, self.modulation, self.width)


@dataclass(frozen=True)
class FullyConnected:
    """Fully connected networks, for any shape."""

    def encoder(self, image_shape: Shape, outputs: int, conditioning: int) -> nn.Module:
        return MLPEncoder(image_shape, outputs, conditioning=conditioning)

    def decoder(self, latent_size: int, image_shape: Shape) -> nn.Module:
        return MLPDecoder(latent_size, image_shape)


ARCHITECTURES: dict[str, Callable[..., Family]] = {
    "conv": Conv,
    "conv_dlib": ConvDlib,
    "adain": AdaIN,
    "mlp": FullyConnected,
}
PROBES = 2


def create_networks(
    architecture: Architecture,
    image_shape: tuple[int, ...],
    latent_size: int,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    conditioning: int = 0,
) -> tuple[nn.Module, nn.Module]:
    """Encoder and decoder for images of ``image_shape``, (H, W, C) as stored.

    ``architecture``: "conv" (the papers' network), "conv_dlib" (disentanglement_lib's), "adain", "mlp", "auto" ("conv"
    for (H, W, C) with 1 to 4 channels, otherwise "mlp"), or "custom": the given ``encoder`` and ``decoder``,
    and "auto" for the one that is missing; or a mapping with the name and options of one. A given module is used as it
    is, after a trial with two zeros: encoder(images (n, C, H, W)) -> (mean, log_variance), each (n, latent_size), and
    decoder(z (n, latent_size)) -> output shaped as the images. With ``conditioning`` = d the encoder takes
    labels u (n, d) as well: encoder(images, u).

    Examples
    --------
    >>> import torch
    >>> encoder, decoder = create_networks({"name": "conv", "width": 0.5}, (32, 32, 1), latent_size=3)
    >>> decoder(encoder(torch.zeros(2, 1, 32, 32))[0]).shape
    torch.Size([2, 1, 32, 32])
    """
    name = architecture_name(architecture)
    if name == "custom" and encoder is None and decoder is None:
        raise ArgumentError("architecture", architecture, "needs your own encoder, decoder or both")
    check_latent_size(latent_size)
    number_of_values(image_shape)
    family = _family(architecture, image_shape, latent_size, conditioning)
    if encoder is None:
        encoder = family.encoder(image_shape, latent_size, conditioning)
    else:
        _check_encoder(encoder, tensor_shape(image_shape), latent_size, conditioning)
    if decoder is None:
        decoder = family.decoder(latent_size, image_shape)
    else:
        _check_decoder(decoder, tensor_shape(image_shape), latent_size)
    return encoder, decoder


def architecture_name(architecture: Architecture) -> str:
    """The name of an architecture; an unknown one is refused.

    Examples
    --------
    >>> architecture_name({"name": "conv", "width": 2})
    'conv'
    """
    name = architecture.get("name") if isinstance(architecture, Mapping) else architecture
    known = ("auto", "custom", *ARCHITECTURES)
    if not isinstance(name, str) or name not in known:
        raise unknown_name("architecture", str(name), known)
    return name


def create_encoder(
    architecture: Architecture, image_shape: tuple[int, ...], outputs: int, conditioning: int = 0
) -> nn.Module:
    """An encoder alone: images (and labels u) to two arrays (n, outputs). "custom" is as "auto".

    Examples
    --------
    >>> import torch
    >>> create_encoder("mlp", (6,), outputs=3)(torch.zeros(2, 6))[0].shape
    torch.Size([2, 3])
    """
    return _family(architecture, image_shape, outputs, conditioning).encoder(
        image_shape, outputs, conditioning
    )


def width_for(
    parameters: Count,
    image_shape: tuple[int, ...],
    latent_size: Count,
    architecture: str = "conv",
    conditioning: int = 0,
) -> float:
    """The width with which a convolutional encoder and decoder together have so many parameters.

    The number grows with the width in small jumps, as channels are whole numbers: the result is the width, to four
    digits, that comes nearest. Big-VAE and Big-beta-TCVAE of the multi-stage paper have as many parameters as both
    stages of MS-VAE.

    Parameters
    ----------
    parameters
        how many there are to be.
    image_shape
        (H, W, C).
    latent_size
        of the code.
    architecture
        "conv" or "conv_dlib".
    conditioning
        the number of labels that the encoder reads.

    Examples
    --------
    >>> width_for(number_of_parameters("conv", (64, 64, 1), 10), (64, 64, 1), 10)
    1.0
    """

    def count(width: float) -> int:
        options = {"name": architecture, "width": width}
        return number_of_parameters(options, image_shape, latent_size, conditioning)

    parameters = check_value("parameters", parameters, Count)
    smallest = count(1e-3)
    if parameters < smallest:
        raise ArgumentError("parameters", parameters, f"the smallest networks have {smallest:,}")
    low, high = 1e-3, 1.0
    while count(high) < parameters:
        low, high = high, 2 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if count(middle) < parameters else (low, middle)
    near = {round(low, 4), round(high, 4), *(round(high + step * 1e-4, 4) for step in (-1, 1))}
    return min(sorted(width for width in near if width > 0), key=lambda width: abs(count(width) - parameters))


def number_of_parameters(
    architecture: Architecture, image_shape: tuple[int, ...], latent_size: int, conditioning: int = 0
) -> int:
    """How many parameters encoder and decoder have together; no memory is taken for them.

    Examples
    --------
    >>> number_of_parameters("conv", (64, 64, 1), 10)
    764245
    """
    with torch.device("meta"):
        networks = create_networks(architecture, image_shape, latent_size, conditioning=conditioning)
    return sum(parameter.numel() for network in networks for parameter in network.parameters())


def _family(architecture: Architecture, image_shape: Shape, latent_size: int, conditioning: int) -> Family:
    """The networks of an architecture, with its options."""
    name = architecture_name(architecture)
    options = dict(architecture) if isinstance(architecture, Mapping) else {}
    options.pop("name", None)
    if name in ("auto", "custom"):
        is_image = len(image_shape) == 3 and image_shape[2] in CONV_CHANNELS
        name = "conv" if is_image else "mlp"
    kind = ARCHITECTURES[name]
    if "parameters" in options and kind in (Conv, ConvDlib):
        if "width" in options:
            raise ArgumentError("architecture", dict(architecture), "has width or parameters, not both")  # type: ignore[arg-type]
        options["width"] = width_for(options.pop("parameters"), image_shape, latent_size, name, conditioning)
    return kind(**check_arguments(kind, options, f"option of the architecture {name}"))


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
