"""Pictures of a trained model: reconstructions, latent traversals (still and moving), loss curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image
from torch import nn

from unweave.arrays import AnyArray
from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.figures.sheet import Row, compose
from unweave.figures.tiles import draw_tiles
from unweave.files import replacing
from unweave.methods import Decodes, Encodes, EncodesWithLabels
from unweave.methods.spec import MethodSpec
from unweave.objectives import usage

_KL_IMAGES = 256  # how many images tell which latents are in use
_FRAME_MILLISECONDS = 80


@runtime_checkable
class Autoencoder(Encodes, Decodes, Protocol):
    """A method that encodes and decodes: what reconstructions and traversals need."""

    @property
    def spec(self) -> MethodSpec: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


def reconstructions(method: Autoencoder, data: Dataset, seed: int = 0, columns: int = 12) -> Image.Image:
    """Random images above, their reconstructions from the mean code below."""
    images, batch = _draw(method, data, columns, seed)
    with torch.inference_mode():
        decoded = _to_array(data, method.decode(method.encode(batch).mean))
    above, below = draw_tiles(data, [images, decoded])
    return compose(
        f"{method.spec.name} on {data.name}", [Row("image", "", above), Row("reconstruction", "", below)]
    )


def traversals(
    method: Autoencoder, data: Dataset, seed: int = 0, columns: int = 11, span: float = 2.0
) -> Image.Image:
    """One row per latent, those with the largest KL first: the latent goes from -span to span, the others
    stay at the mean code of one random image.

    Where the prior is p(z|u), N(0, I) is no measure: KL is to a Gaussian with the codes' own moments, and span counts
    their standard deviations. Codes are those of ``method.encode``, which is not given labels.
    """
    rows = traversal_rows(method, data, seed, columns, span)
    return compose(f"{method.spec.name} on {data.name}: each latent by itself{units(method)}", rows)


def traversal_rows(
    method: Autoencoder, data: Dataset, seed: int = 0, columns: int = 11, span: float = 2.0
) -> list[Row]:
    """The rows of ``traversals``; the last has the values below it."""
    order, kl, frames = _traverse(method, data, seed, columns, span)
    values = np.linspace(-span, span, columns)
    tiles = draw_tiles(data, frames)
    return [
        Row(
            f"z{latent}",
            f"KL {kl[latent]:.2f}",
            row,
            [f"{value:.1f}" for value in values] if row is tiles[-1] else [],
        )
        for latent, row in zip(order, tiles, strict=True)
    ]


def units(method: Autoencoder) -> str:
    """What the values of a traversal are, where they are not the latent's own: to follow a title."""
    return (
        "" if not isinstance(method, EncodesWithLabels) else ", in deviations of its codes (labels not given)"
    )


def save_traversal_animation(
    method: Autoencoder, data: Dataset, path: Path | str, seed: int = 0, frames: int = 24, span: float = 2.0
) -> Path:
    """An animated GIF: all latents side by side, each swinging from -span to span and back."""
    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise ArgumentError("path", str(path), "an animation's name ends in .gif")
    # Evenly spaced in angle, so that the motion slows down where it turns.
    swing = span * np.sin(np.linspace(-np.pi / 2, np.pi / 2, frames // 2 + 1))
    order, kl, decoded = _traverse(method, data, seed, len(swing), span, swing)
    tiles = draw_tiles(data, decoded)
    labels = [f"z{latent}: {kl[latent]:.1f}" for latent in order]
    half = min(len(order), 5)
    pictures = []
    for frame in [*range(len(swing)), *range(len(swing) - 2, 0, -1)]:
        rows = [
            Row("", "", [row[frame] for row in tiles[start : start + half]], labels[start : start + half])
            for start in range(0, len(order), half)
        ]
        pictures.append(compose(None, rows))
    with replacing(target) as work:
        pictures[0].save(
            work, save_all=True, append_images=pictures[1:], duration=_FRAME_MILLISECONDS, loop=0
        )
    return target


def loss_curves(history: Sequence[Mapping[str, float]], title: str) -> Image.Image:
    """Every logged term against the step, one small plot each."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not history:
        raise ArgumentError("history", [], "has no records to plot")
    names = [name for name in history[-1] if name not in ("step", "images_per_second")]
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns, 0.4 + 2.4 * lines), dpi=110, layout="constrained")
    figure.suptitle(title, fontsize=11)
    canvas: Any = FigureCanvasAgg(figure)
    for place, name in enumerate(names):
        axes = figure.add_subplot(lines, columns, place + 1)
        points = [(record["step"], record[name]) for record in history if name in record]
        axes.plot(
            *zip(*points, strict=True), color="#0072b2", linewidth=1.3, marker="." if len(points) < 3 else ""
        )
        axes.set_title(name, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _traverse(
    method: Autoencoder, data: Dataset, seed: int, columns: int, span: float, values: AnyArray | None = None
) -> tuple[list[int], AnyArray, list[AnyArray]]:
    """Latents by falling KL, their KL, and per latent the decoded observations of its traversal."""
    if columns < 2 or not span > 0:
        raise ArgumentError("columns, span", (columns, span), "need at least 2 columns and a positive span")
    _, batch = _draw(method, data, _KL_IMAGES, seed)
    steps = np.linspace(-span, span, columns) if values is None else values
    with torch.inference_mode():
        mean, log_variance = method.encode(batch)
        used, centre, scale = usage(mean, log_variance, isinstance(method, EncodesWithLabels))
        kl = used.cpu().numpy()
        order = np.argsort(-kl, kind="stable").tolist()
        points = torch.as_tensor(steps, dtype=mean.dtype, device=mean.device)
        frames = []
        for latent in order:
            z = mean[:1].repeat(len(steps), 1)
            z[:, latent] = centre[latent] + scale[latent] * points
            frames.append(_to_array(data, method.decode(z)))
    return order, kl, frames


def _draw(method: Autoencoder, data: Dataset, n: int, seed: int) -> tuple[AnyArray, torch.Tensor]:
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
