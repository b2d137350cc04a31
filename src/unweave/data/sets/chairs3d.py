"""3D Chairs: 86,366 renderings of 1,393 chairs from 31 azimuths and 2 elevations; or their masks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from unweave.arrays import ByteArray
from unweave.data.dataset import Dataset, from_table
from unweave.data.factors import FactorSpace
from unweave.data.files.archives import member_names, read_members
from unweave.data.files.factor_table import ranks
from unweave.data.files.images import centre_crop, decode_image, resize
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError, unknown_name
from unweave.progress import progress

SPACE = FactorSpace(
    ["identity", "azimuth", "elevation"],
    [1393, 31, 2],
    categorical=["identity"],
    value_names={"elevation": ["20°", "30°"]},
)
FILE = SourceFile(
    "rendered_chairs.tar",
    "https://www.di.ens.fr/willow/research/seeing3Dchairs/data/rendered_chairs.tar",
    alternatives=("rendered_chairs",),
)
MODELS = "models.txt"
TRAIN_FRACTION = 0.8
_SIZE = (600, 600)
_CROP = 400
_IMAGE = re.compile(r"rendered_chairs/([^/]+)/renders/image_\d+_p(\d+)_t(\d+)_r\d+\.png")


def load(folder: Path, space: FactorSpace = SPACE, split: str = "all") -> Dataset:
    """3D Chairs: the middle 400 x 400 of the 600 x 600 pixels, resized to 64 x 64 colour, antialiased.

    ``folder`` holds ``rendered_chairs.tar`` or that archive unpacked, ``rendered_chairs/``. Chairs are
    numbered in the order of their folders' names; views are ordered by their angles.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.
    split
        "all", "train" (the first 80 % of the chairs) or "test" (the others); the numbering is the same in each.

    Examples
    --------
    >>> uw.data.find("chairs3d").images
    '86,366 of 64x64, colour'
    """
    if split not in ("all", "train", "test"):
        raise unknown_name("split", split, ("all", "train", "test"))
    source = folder / FILE.name_in(folder)

    def build(_: Mapping[str, Path], out: Writer) -> None:
        _build(source, space, out)

    arrays = prepared(folder, [] if source.is_dir() else [FILE], build)
    factors = arrays["factors"]
    # Rows are sorted by chair, so each part of the chairs is one piece.
    boundary = int(np.searchsorted(factors[:, 0], int(TRAIN_FRACTION * space.size("identity"))))
    rows = {"all": slice(None), "train": slice(boundary), "test": slice(boundary, None)}[split]
    return from_table("chairs3d", space, arrays["images"][rows], factors[rows])


def load_masks(folder: Path, space: FactorSpace = SPACE, split: str = "all") -> Dataset:
    """The masks of the chairs: 1 where a rendering shows the chair, 0 on its white ground; 64 x 64 pixels.

    Kumar et al. and Higgins et al. learn from these, of the 809 models that are left without near-duplicates. Which
    ones these are is listed with the code of Dosovitskiy et al. (2015): a file ``models.txt`` in ``folder``, with the
    name of a model's folder in each line, chooses models; without it there are all.

    Parameters
    ----------
    folder
        of the official files; where there is none, that of chairs3d beside it.
    space
        the factors, whose number of models does not count; tests pass a smaller grid.
    split
        "all", "train" (the first 80 % of the models) or "test" (the others).

    Examples
    --------
    >>> uw.data.find("chairs3d_masks").label
    '3D Chairs (masks)'
    """
    if split not in ("all", "train", "test"):
        raise unknown_name("split", split, ("all", "train", "test"))
    beside = folder.parent / "chairs3d"
    folder = beside if beside.is_dir() and not folder.is_dir() else folder
    source = folder / FILE.name_in(folder)
    listed = _listed_models(folder / MODELS)

    def build(_: Mapping[str, Path], out: Writer) -> None:
        names = [
            name for name in member_names(source, _IMAGE.fullmatch) if _model(name) in listed or not listed
        ]
        models = {_model(name) for name in names}
        if listed and models != listed:
            raise DataError(f"{folder / MODELS}: {source.name} has no model {sorted(listed - models)[0]}")
        _build(source, _with_models(space, len(models)), out, masks=True, names=names)

    # The list is part of what the arrays are: another one makes other arrays.
    version = int.from_bytes(hashlib.sha256("\n".join(sorted(listed)).encode()).digest()[:6], "big")
    arrays = prepared(folder, [] if source.is_dir() else [FILE], build, version=version, name="masks")
    factors = arrays["factors"]
    models = int(factors[:, 0].max()) + 1
    boundary = int(np.searchsorted(factors[:, 0], int(TRAIN_FRACTION * models)))
    rows = {"all": slice(None), "train": slice(boundary), "test": slice(boundary, None)}[split]
    chosen = _with_models(space, models)
    return from_table("chairs3d_masks", chosen, arrays["images"][rows], factors[rows])


def mask_of(rendering: ByteArray) -> ByteArray:
    """Where a rendering (n, H, W, 3) is not white, reduced to (n, 64, 64, 1): 255 where at least half is the chair.

    Examples
    --------
    >>> image = np.full((1, 128, 128, 3), 255, np.uint8)
    >>> image[:, :64] = 30
    >>> mask_of(image)[0, [0, 63], 0, 0]
    array([255,   0], dtype=uint8)
    """
    inside = np.where((rendering < 255).any(axis=3, keepdims=True), 255, 0).astype(np.uint8)
    return np.where(resize(inside) >= 128, 255, 0).astype(np.uint8)


def _with_models(space: FactorSpace, models: int) -> FactorSpace:
    sizes = [models, *space.grid_shape[1:]]
    return FactorSpace(space.names, sizes, space.categorical, space.value_names)


def _model(name: str) -> str:
    match = _IMAGE.fullmatch(name)
    return match[1] if match else ""


def _listed_models(path: Path) -> set[str]:
    """The names of models in a list; none if there is no list."""
    if not path.is_file():
        return set()
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if line}


def _build(
    source: Path, space: FactorSpace, out: Writer, masks: bool = False, names: Sequence[str] | None = None
) -> None:
    names = member_names(source, _IMAGE.fullmatch) if names is None else names
    matches = [_IMAGE.fullmatch(name) for name in names]
    views = [(match[1], int(match[3]), int(match[2])) for match in matches if match]
    chairs = {chair: i for i, chair in enumerate(sorted({view[0] for view in views}))}
    angles = np.array([(chairs[chair], *angle) for chair, *angle in views], np.float64).reshape(-1, 3)
    factors = ranks(source, space, angles)
    if len(np.unique(factors, axis=0)) != len(factors):
        raise DataError(f"{source}: some chair has two images of the same view; expected one")
    order = np.lexsort(factors.T[::-1])
    out.save("factors", factors[order])
    row_of = {names[i]: row for row, i in enumerate(order)}
    images = out.create("images", (len(names), 64, 64, 1 if masks else 3))
    with progress("Preparing 3D Chairs", len(names), "images") as advance:
        for name, data in read_members(source, row_of.__contains__):
            chair = centre_crop(decode_image(data, f"{source}: {name}", "RGB", _SIZE), _CROP)
            images[row_of[name]] = (mask_of if masks else resize)(chair[np.newaxis])[0]
            advance(1)


RECIPE = Recipe(
    name="chairs3d",
    title="3D Chairs",
    summary="Renderings of 1,393 chairs from 62 sides: 86,366 colour 64x64 images, training and test chairs.",
    num_images=86_366,
    image_shape=(64, 64, 3),
    space=SPACE,
    licence="none stated",
    homepage="https://www.di.ens.fr/willow/research/seeing3Dchairs/",
    citation="Aubry, Maturana, Efros, Russell, Sivic: Seeing 3D Chairs: Exemplar Part-based 2D-3D Alignment "
    "using a Large Dataset of CAD Models, CVPR 2014.",
    load=load,
    splits={part: partial(load, split=part) for part in ("train", "test")},
    files=(FILE,),
)
MASKS = Recipe(
    name="chairs3d_masks",
    title="3D Chairs (masks)",
    summary="Binary 64x64 masks of rendered chairs from 62 sides; a list chooses models (809 without duplicates).",
    image_shape=(64, 64, 1),
    factor_names=SPACE.names,
    licence=RECIPE.licence,
    homepage=RECIPE.homepage,
    citation=RECIPE.citation,
    load=load_masks,
    splits={part: partial(load_masks, split=part) for part in ("train", "test")},
    files=(FILE,),
)
