"""The programs of a method: how its codes become images, and images codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from unweave.explorer.arrays import FINE_STEPS, STEPS, ArrayBlock, Kind
from unweave.explorer.layers import Program, record
from unweave.figures.traversal import decode_stages
from unweave.methods import Encodes, Method

_FEW = 4096  # entries of a constant that keep single precision


def encoder_program(method: Method, images: Tensor) -> Program | None:
    """From an observation to "mean" and "log_variance" of its code; None for a method that does not encode.

    Parameters
    ----------
    method
        in evaluation mode.
    images
        two or more observations (n, C, H, W), on which it is recorded.

    Examples
    --------
    >>> import torch
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp").eval()
    >>> encoder_program(method, torch.rand(2, 1, 8, 8)).outputs
    {'mean': 5, 'log_variance': 6}
    """
    if not isinstance(method, Encodes):
        return None

    def encode(image: Tensor) -> Mapping[str, Tensor]:
        mean, log_variance = method.encode(image)
        return {"mean": mean, "log_variance": log_variance.expand_as(mean)}

    return record(encode, [[image[None]] for image in images], f"the encoder of {method.spec.name}")


def decoder_program(method: Method, codes: Tensor, noise: Tensor | None = None) -> Program:
    """From a code, and noise if the method takes some, to its image after each stage.

    Parameters
    ----------
    method
        in evaluation mode.
    codes
        two or more (n, D), on which it is recorded.
    noise
        (n, E) or None.

    Examples
    --------
    >>> import torch
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp").eval()
    >>> list(decoder_program(method, torch.randn(2, 2)).outputs)
    ['']
    """

    def decode(code: Tensor, noise: Tensor | None = None) -> Mapping[str, Tensor]:
        return decode_stages(method, code, noise)

    arguments = [codes] if noise is None else [codes, noise]
    examples = [[part[row][None] for part in arguments] for row in range(len(codes))]
    return record(decode, examples, f"the decoder of {method.spec.name}")


def program_content(program: Program, block: ArrayBlock) -> dict[str, Any]:
    """A program as JSON has it, its arrays put into a block."""
    layers = []
    num_steps = FINE_STEPS if any(layer.kind == "normalise" for layer in program.layers) else STEPS
    for layer in program.layers:
        constants = {}
        for name, array in layer.constants.items():
            is_weight = array.ndim == 2 and array.size > _FEW and name in ("weight", "table")
            kind: Kind = "i4" if array.dtype.kind == "i" else "q2" if is_weight else "f4"
            constants[name] = block.add(array, kind, num_steps)
        content: dict[str, Any] = {"kind": layer.kind, "inputs": layer.inputs, "shape": layer.shape}
        content |= {"options": layer.options} if layer.options else {}
        content |= {"constants": constants} if constants else {}
        content |= {"double": True} if layer.double else {}
        layers.append(content)
    return {"inputs": program.inputs, "layers": layers, "outputs": program.outputs}
