"""Noisy-dSprites: the sprite on a background of noise, drawn at every access."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unweave.arrays import AnyArray
from unweave.data.dataset import Dataset
from unweave.data.factors import Rng
from unweave.data.recipe import Recipe
from unweave.data.sets import color_dsprites, dsprites


def load(folder: Path) -> Dataset:
    """dSprites with uniform noise added to each pixel and channel, cut at white.

    Parameters
    ----------
    folder
        of the data set; the sprites are in the folder dsprites beside it.

    Examples
    --------
    >>> uw.data.find("noisy_dsprites").images
    '737,280 of 64x64, colour'
    """
    base = dsprites.load(folder.parent / "dsprites")
    return base.with_parts(name="noisy_dsprites", image_shape=(64, 64, 3), noise=add_noise)


def add_noise(sprites: AnyArray, rng: Rng) -> AnyArray:
    """Sprites {0, 255} (n, H, W, 1) -> (n, H, W, 3): min(sprite + U(0, 1), 1), in bytes.

    A sprite is white, so it stays white; elsewhere the noise is one uniform byte per channel.

    Examples
    --------
    >>> sprites = np.zeros((1, 8, 8, 1), np.uint8)
    >>> sprites[0, 2, 2] = 255
    >>> add_noise(sprites, np.random.default_rng(0))[0, 2, 2]
    array([255, 255, 255], dtype=uint8)
    """
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    count = sprites.size * 3
    words = np.asarray(draw(0, 2**64, size=-(-count // 8), dtype=np.uint64))
    out = words.view(np.uint8)[:count].reshape(*sprites.shape[:3], 3)
    for channel in range(3):
        np.bitwise_or(out[..., channel], sprites[..., 0], out=out[..., channel])
    return out


RECIPE = Recipe(
    name="noisy_dsprites",
    title="Noisy-dSprites",
    summary="dSprites on a background of uniform colour noise, drawn at every access.",
    num_images=dsprites.RECIPE.num_images,
    image_shape=(64, 64, 3),
    space=dsprites.SPACE,
    licence=dsprites.RECIPE.licence,
    homepage=color_dsprites.RECIPE.homepage,
    citation=color_dsprites.RECIPE.citation,
    load=load,
)
