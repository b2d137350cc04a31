"""Pictures of a method: reconstructions, latent traversals (still and moving), samples.

Each asks for what it needs, a capability of :mod:`unweave.methods.method`, and takes any method that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image
from torch import nn

from unweave.arrays import AnyArray
from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.figures.grids import Row, image_grid
from unweave.figures.tiles import draw_tiles
from unweave.files import replacing
from unweave.methods import Decodes, Encodes, EncodesWithLabels, Method, Samples
from unweave.methods.spec import MethodSpec
from unweave.objectives import usage
from unweave.parameters import Count, Positive, Seed, check_arguments

_KL_IMAGES = 256  # how many images decide which latents are in use
_FRAME_MILLISECONDS = 80


class _Drawable(Protocol):
    """What every method has: a spec for the title, and parameters on a device."""

    @property
    def spec(self) -> MethodSpec: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


@runtime_checkable
class Autoencoder(Encodes, Decodes, _Drawable, Protocol):
    """A method that encodes and decodes: what reconstructions and traversals need."""


@runtime_checkable
class Generator(Samples, _Drawable, Protocol):
    """A method that generates images."""


def reconstructions(method: Autoencoder, data: Dataset, seed: Seed = 0, columns: Count = 12) -> Image.Image:
    """Random images above, their reconstructions from the mean code below.

    Parameters
    ----------
    method
        that encodes and decodes.
    data
        from which ``columns`` images are drawn.
    seed
        of the choice of images.
    columns
        the number of images.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title and labels.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.reconstructions(method, data, columns=3).size
    (492, 276)
    """
    check_arguments(reconstructions, {"seed": seed, "columns": columns})
    _check(method, Autoencoder, "does not both encode and decode images")
    images, batch = _draw(method, data, columns, seed)
    with torch.inference_mode():
        decoded = _to_array(data, method.decode(method.encode(batch).mean))
    above, below = draw_tiles(data, [images, decoded])
    rows = [Row("image", "", above), Row("reconstruction", "", below)]
    return image_grid(f"{method.spec.name} on {data.name}", rows)


def traversals(
    method: Autoencoder, data: Dataset, seed: Seed = 0, columns: Count = 11, span: Positive = 2.0
) -> Image.Image:
    """One row per latent, those with the largest KL first: the latent goes from -span to span, the others stay.

    The others stay at the mean code of one random image. Where the prior is p(z|u), N(0, I) is no measure: KL is to a
    Gaussian with the moments of the codes, and span counts their standard deviations. Codes are those of
    ``method.encode``, which is not given labels.

    Parameters
    ----------
    method
        that encodes and decodes.
    data
        from which the image and those for the KL are drawn.
    seed
        of the choice of images.
    columns
        the number of values of each latent, at least 2.
    span
        the largest value.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title, labels, and the values below the last row.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.traversals(method, data, columns=3).height
    298
    """
    rows = traversal_rows(method, data, seed, columns, span)
    return image_grid(
        f"{method.spec.name} on {data.name}: each latent by itself{traversal_units(method)}", rows
    )


def traversal_rows(
    method: Autoencoder,
    data: Dataset,
    seed: Seed = 0,
    columns: Count = 11,
    span: Positive = 2.0,
    latents: Sequence[int] | None = None,
) -> list[Row]:
    """The rows of :func:`traversals`, or of some latents; the last has the values below it."""
    check_arguments(traversals, {"seed": seed, "columns": columns, "span": span})
    if columns < 2:
        raise ArgumentError("columns", columns, "needs at least 2")
    values = np.linspace(-span, span, columns)
    order, kl, frames = _traverse(method, data, seed, values)
    if latents is not None:
        for latent in latents:
            if latent not in order:
                raise ArgumentError("latents", latent, f"the model has latents 0 to {len(order) - 1}")
        chosen = [order.index(latent) for latent in latents]
        order, frames = [order[position] for position in chosen], [frames[position] for position in chosen]
    tiles = draw_tiles(data, frames)
    captions = [f"{value:.1f}" for value in values]
    return [
        Row(f"z{latent}", f"KL {kl[latent]:.2f}", row, captions if row is tiles[-1] else [])
        for latent, row in zip(order, tiles, strict=True)
    ]


def traversal_units(method: Encodes) -> str:
    """What the values of a traversal count, where they are not values of the latent: to follow a title."""
    return ", in deviations of its codes (labels not given)" if isinstance(method, EncodesWithLabels) else ""


def save_traversal_animation(
    method: Autoencoder,
    data: Dataset,
    path: Path | str,
    seed: Seed = 0,
    frames: Count = 24,
    span: Positive = 2.0,
) -> Path:
    """Write an animated GIF: all latents side by side, each swinging from -span to span and back.

    Parameters
    ----------
    method, data, seed, span
        as for :func:`traversals`.
    path
        that ends in .gif.
    frames
        the number of pictures, at least 2.

    Returns
    -------
    Path
        of the file.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.save_traversal_animation(method, data, "traversals.gif", frames=4).name
    'traversals.gif'
    """
    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise ArgumentError("path", str(path), "an animation's name ends in .gif")
    check_arguments(save_traversal_animation, {"seed": seed, "frames": frames, "span": span})
    if frames < 2:
        raise ArgumentError("frames", frames, "needs at least 2")
    # Evenly spaced in angle, so that the motion slows down where it turns.
    swing = span * np.sin(np.linspace(-np.pi / 2, np.pi / 2, frames // 2 + 1))
    order, kl, decoded = _traverse(method, data, seed, swing)
    tiles = draw_tiles(data, decoded)
    labels = [f"z{latent}: {kl[latent]:.1f}" for latent in order]
    across = min(len(order), 5)
    pictures = []
    for frame in [*range(len(swing)), *range(len(swing) - 2, 0, -1)]:
        rows = [
            Row("", "", [row[frame] for row in tiles[start : start + across]], labels[start : start + across])
            for start in range(0, len(order), across)
        ]
        pictures.append(image_grid(None, rows))
    with replacing(target) as work:
        pictures[0].save(
            work, save_all=True, append_images=pictures[1:], duration=_FRAME_MILLISECONDS, loop=0
        )
    return target


def samples(
    method: Generator, data: Dataset, seed: Seed = 0, rows: Count = 4, columns: Count = 12
) -> Image.Image:
    """Images that a method generates, for example a GAN.

    Parameters
    ----------
    method
        that samples.
    data
        that it was trained on: decides how its observations are drawn.
    seed
        of the samples.
    rows, columns
        of the picture.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.samples(method, data, rows=2, columns=4).size
    (436, 276)
    """
    check_arguments(samples, {"seed": seed, "rows": rows, "columns": columns})
    _check(method, Generator, "does not generate images")
    device = next(method.parameters()).device
    with torch.inference_mode():
        generated = method.sample(rows * columns, torch.Generator(device).manual_seed(seed))
    tiles = draw_tiles(data, [_to_array(data, generated)])[0]
    grid = [Row("", "", tiles[start : start + columns]) for start in range(0, len(tiles), columns)]
    return image_grid(f"{method.spec.name} on {data.name}: samples", grid)


def _check(method: object, capability: type, message: str) -> None:
    """Refuse a method that lacks a capability, by its name."""
    if not isinstance(method, capability):
        name = method.spec.name if isinstance(method, Method) else type(method).__name__
        raise ArgumentError("method", name, message)


def _traverse(
    method: Autoencoder, data: Dataset, seed: int, values: AnyArray
) -> tuple[list[int], AnyArray, list[AnyArray]]:
    """Latents by falling KL, their KL, and per latent the observations that its ``values`` decode to."""
    _check(method, Autoencoder, "does not both encode and decode images")
    _, batch = _draw(method, data, _KL_IMAGES, seed)
    with torch.inference_mode():
        mean, log_variance = method.encode(batch)
        used, centre, scale = usage(mean, log_variance, isinstance(method, EncodesWithLabels))
        kl = used.cpu().numpy()
        order = np.argsort(-kl, kind="stable").tolist()
        points = torch.as_tensor(values, dtype=mean.dtype, device=mean.device)
        frames = []
        for latent in order:
            z = mean[:1].repeat(len(values), 1)
            z[:, latent] = centre[latent] + scale[latent] * points
            frames.append(_to_array(data, method.decode(z)))
    return order, kl, frames


def _draw(method: Autoencoder, data: Dataset, n: int, seed: int) -> tuple[AnyArray, torch.Tensor]:
    """``n`` random images, as the data set gives them and as the method takes them."""
    rng = np.random.default_rng(seed)
    which = data.sample_rows(n, rng) if data.finite else data.sample_factors(n, rng)
    images = data.images(which, rng)
    device = next(method.parameters()).device
    return images, to_tensor(images).to(device)


def _to_array(data: Dataset, decoded: torch.Tensor) -> AnyArray:
    """Decoded observations as the data set gives them: channels last, bytes for images."""
    array = decoded.float().cpu().numpy()
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    return np.rint(np.clip(array, 0, 1) * 255).astype(np.uint8) if data.is_images else array
