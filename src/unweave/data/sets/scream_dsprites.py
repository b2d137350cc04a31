"""Scream-dSprites: the sprite as inverted pixels on a patch of Munch's painting."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO

import numpy as np

from unweave.arrays import AnyArray
from unweave.data.dataset import Dataset
from unweave.data.factors import Rng, integers
from unweave.data.recipe import Recipe
from unweave.data.sets import color_dsprites, dsprites


def load(folder: Path) -> Dataset:
    """dSprites in front of random 64x64 patches of The Scream.

    Parameters
    ----------
    folder
        of the data set; the sprites are in the folder dsprites beside it.

    Examples
    --------
    >>> uw.data.find("scream_dsprites").images
    '737,280 of 64x64, colour'
    """
    base = dsprites.load(folder.parent / "dsprites")
    return base.with_parts(name="scream_dsprites", image_shape=(64, 64, 3), noise=paint_background)


def paint_background(sprites: AnyArray, rng: Rng) -> AnyArray:
    """Sprites {0, 255} (n, 64, 64, 1) -> (n, 64, 64, 3).

    background = (random patch of the painting + random colour) / 2; where the sprite is, 1 - background.

    Examples
    --------
    >>> paint_background(np.zeros((2, 64, 64, 1), np.uint8), np.random.default_rng(0)).shape
    (2, 64, 64, 3)
    """
    n, height, width = sprites.shape[:3]
    patches = np.lib.stride_tricks.sliding_window_view(_painting(), (height, width, 3))[:, :, 0]
    patch = patches[integers(rng, patches.shape[0], n), integers(rng, patches.shape[1], n)]
    colour = np.rint(rng.uniform(0, 1, size=(n, 1, 1, 3)) * 255).astype(np.uint16)
    out = np.empty((n, height, width, 3), np.uint8)
    for channel in range(3):
        background = ((patch[..., channel] + colour[..., channel]) >> 1).astype(np.uint8)
        np.bitwise_xor(background, sprites[..., 0], out=out[..., channel])  # b ^ 255 = 255 - b
    return out


def fit_painting(source: Path | IO[bytes]) -> AnyArray:
    """A photograph of the painting, fitted within 350 x 274 pixels (height 274 binds), antialiased.

    Examples
    --------
    >>> from PIL import Image
    >>> Image.new("RGB", (700, 900)).save("photograph.png")
    >>> fit_painting(Path("photograph.png")).shape
    (274, 213, 3)
    """
    from PIL import Image

    with Image.open(source) as photograph:
        picture = photograph.convert("RGB")
    scale = min(350 / picture.width, 274 / picture.height)
    size = (round(picture.width * scale), round(picture.height * scale))
    return np.asarray(picture.resize(size, Image.Resampling.LANCZOS))


@cache
def _painting() -> AnyArray:
    from PIL import Image

    # Stored already fitted, without loss: the pixels then do not depend on the version of Pillow.
    with (files("unweave.data.sets") / "scream.png").open("rb") as file, Image.open(file) as picture:
        return np.asarray(picture.convert("RGB"))


RECIPE = Recipe(
    name="scream_dsprites",
    title="Scream-dSprites",
    summary="dSprites as inverted pixels on random patches of The Scream, drawn at every access.",
    num_images=dsprites.RECIPE.num_images,
    image_shape=(64, 64, 3),
    space=dsprites.SPACE,
    licence="Apache-2.0 (dSprites); the painting (Edvard Munch, 1893) is in the public domain",
    homepage=color_dsprites.RECIPE.homepage,
    citation=color_dsprites.RECIPE.citation,
    load=load,
)
