"""Traversals by factor: from a real image, the latent that knows most about each factor is moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.figures.grids import Row, image_grid
from unweave.figures.model_pictures import rows_of
from unweave.figures.tiles import draw_tiles
from unweave.figures.traversal import decode_stages, device_of, draw_images, to_observations, traverse, using
from unweave.methods import Decodes, Encodes, Method
from unweave.metrics import mig
from unweave.parameters import Count, Positive, Seed, check_arguments

_BATCH = 64


@dataclass(frozen=True)
class Match:
    """A factor, the latent that knows most about it, and which part of the factor's entropy that is."""

    factor: str
    latent: int
    share: float


def factor_traversals(
    method: Method,
    data: Dataset,
    seed: Seed = 0,
    columns: Count = 9,
    span: Positive = 2.0,
    num_points: Count = 2000,
    title: str | None = None,
) -> Image.Image:
    """A real image and its reconstruction; below, for each factor, the latent that knows most about it, moved alone.

    Where a representation is disentangled, each row has a latent of its own and shows its factor change, and nothing
    else. Where one latent serves two rows, it mixes two factors.

    Parameters
    ----------
    method
        that encodes and decodes.
    data
        with discrete factors.
    seed
        of the image, and of the points by which latents and factors are matched.
    columns
        the number of values of each latent, at least 2.
    span
        the largest value.
    num_points
        how many images decide which latent knows most, by mutual information with 20 bins, as MIG has it.
    title
        of the picture; None: the method and the data.

    Returns
    -------
    PIL.Image.Image
        the picture.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), np.uint8)
    >>> data = uw.data.from_arrays(images, {"size": np.arange(40) % 4, "colour": np.arange(40) % 2})
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.factor_traversals(method, data, columns=3, num_points=40).height
    420
    """
    check_arguments(
        factor_traversals, {"seed": seed, "columns": columns, "span": span, "num_points": num_points}
    )
    if columns < 2:
        raise ArgumentError("columns", columns, "needs at least 2")
    if not (isinstance(method, Encodes) and isinstance(method, Decodes)):
        name = method.spec.name if isinstance(method, Method) else type(method).__name__
        raise ArgumentError("method", name, "does not both encode and decode images")
    matches = match_latents(method, data, seed, num_points)
    values = np.linspace(-span, span, columns)
    moved = traverse(method, data, values, seed, latents=[match.latent for match in matches])
    labelled = [
        replace(one, label=match.factor.replace("_", " "), detail=f"{one.label} knows {match.share:.0%}")
        for one, match in zip(moved, matches, strict=True)
    ]
    start = _start(method, data, seed)
    return image_grid(
        title or f"{method.spec.name} on {data.name}: the latent of each factor, moved by itself",
        [start, *rows_of(data, labelled)],
    )


def match_latents(method: Method, data: Dataset, seed: Seed = 0, num_points: Count = 2000) -> list[Match]:
    """For each factor with several values, the latent with the largest mutual information with it.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), np.uint8)
    >>> data = uw.data.from_arrays(images, {"size": np.arange(40) % 4})
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> [match.factor for match in match_latents(method, data, num_points=40)]
    ['size']
    """
    if not data.space or not data.space.discrete or not data.finite:
        raise ArgumentError("data", data.name, "needs discrete factors")
    assert isinstance(method, Encodes)
    rng = np.random.default_rng(seed)
    rows = data.sample_rows(num_points, rng)
    codes = []
    with using(method):
        for part in np.array_split(rows, -(-len(rows) // _BATCH)):
            images = to_tensor(data.images(part, rng)).to(device_of(method))
            codes.append(method.encode(images).mean.float().cpu().numpy())
    factors = data.factors(rows)
    score = mig(np.concatenate(codes), factors)
    matrix = np.asarray(score.details["matrix"])
    matches = []
    for column, name in enumerate(data.space.names):
        frequencies = np.unique(factors[:, column], return_counts=True)[1] / len(factors)
        entropy = float(-(frequencies * np.log(frequencies)).sum())
        if entropy > 0:
            latent = int(matrix[:, column].argmax())
            matches.append(Match(name, latent, float(matrix[latent, column]) / entropy))
    return matches


def _start(method: Method, data: Dataset, seed: int) -> Row:
    """The image where all traversals start, and what the method makes of it."""
    assert isinstance(method, Encodes)
    image = draw_images(data, 256, seed)[:1]  # as `traverse` draws them
    with using(method):
        code = method.encode(to_tensor(image).to(device_of(method))).mean
        reconstruction = list(decode_stages(method, code).values())[-1]
    tiles: Sequence[Sequence[Image.Image]] = draw_tiles(data, [image, to_observations(data, reconstruction)])
    return Row("start", "", [tiles[0][0], tiles[1][0]], ("image", "from its code"))
