"""CelebA: 202,599 photographs of faces with 40 binary attributes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from unweave.arrays import ByteArray
from unweave.data.dataset import Dataset, from_table
from unweave.data.factors import FactorSpace
from unweave.data.files.archives import member_names, read_members
from unweave.data.files.images import centre_crop, decode_image, resize
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError, unknown_name
from unweave.files import check_regular
from unweave.progress import progress

# fmt: off
ATTRIBUTES = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips",
    "Big_Nose", "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin",
    "Eyeglasses", "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open",
    "Mustache", "Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline",
    "Rosy_Cheeks", "Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat",
    "Wearing_Lipstick", "Wearing_Necklace", "Wearing_Necktie", "Young",
)
# fmt: on
SPACE = FactorSpace(
    ATTRIBUTES,
    [2] * len(ATTRIBUTES),
    categorical=ATTRIBUTES,
    value_names={name: ["no", "yes"] for name in ATTRIBUTES},
)
HOMEPAGE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
UNPACKED = "img_align_celeba"
# The files are on Google Drive and are fetched by hand, from the links on the homepage.
IMAGES = SourceFile(
    "img_align_celeba.zip",
    HOMEPAGE,
    size=1_443_490_838,
    sha256="46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
    alternatives=(UNPACKED,),
)
LIST = SourceFile(
    "list_attr_celeba.txt",
    HOMEPAGE,
    size=26_721_026,
    sha256="f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
)
TRAIN_FRACTION = 0.9
_SIZE = (178, 218)
_CROP = 148


def load(folder: Path, space: FactorSpace = SPACE, split: str = "all") -> Dataset:
    """CelebA, aligned: the middle 148 x 148 of the 178 x 218 pixels, resized to 64 x 64, antialiased.

    ``folder`` holds ``list_attr_celeba.txt`` and either ``img_align_celeba.zip`` or that archive unpacked,
    ``img_align_celeba/``. Rows are in the order of the list; an attribute is 1 where the list has 1, else 0.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.
    split
        "all", "train" (the first 90 % of the list, as many as Kumar et al. train on) or "test" (the others).

    Examples
    --------
    >>> uw.data.find("celeba").images
    '202,599 of 64x64, colour'
    """
    if split not in ("all", "train", "test"):
        raise unknown_name("split", split, ("all", "train", "test"))
    source = folder / IMAGES.name_in(folder)

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        names, attributes = read_attributes(paths[LIST.name], space)
        _decode_all(source, paths[LIST.name], names, out)
        out.save("factors", attributes)

    arrays = prepared(folder, [LIST] if source.is_dir() else [IMAGES, LIST], build)
    boundary = int(TRAIN_FRACTION * len(arrays["images"]))
    rows = {"all": slice(None), "train": slice(boundary), "test": slice(boundary, None)}[split]
    return from_table("celeba", space, arrays["images"][rows], arrays["factors"][rows])


def read_attributes(path: Path, space: FactorSpace) -> tuple[list[str], ByteArray]:
    """The list's image names, and attributes (n, K) in {0, 1}.

    Its lines: the count; the names of the attributes; for each image its name and values -1 or 1.

    Examples
    --------
    >>> path = Path("list_attr_celeba.txt")
    >>> _ = path.write_text("1\\nSmiling Young\\n000001.jpg 1 -1\\n")
    >>> read_attributes(path, FactorSpace(["Smiling", "Young"], [2, 2]))
    (['000001.jpg'], array([[1, 0]], dtype=uint8))
    """
    check_regular(path)
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({error})") from error
    if len(lines) < 2 or not lines[0].strip().isdecimal() or tuple(lines[1].split()) != space.names:
        expected = f"a count, then the {space.num_factors} attributes {', '.join(space.names[:2])} …"
        raise DataError(f"{path}: the first two lines are not as expected: {expected}")
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(lines[0]):
        raise DataError(f"{path}: has {len(rows)} rows; expected {int(lines[0])}, as its first line says")
    attributes = np.empty((len(rows), space.num_factors), np.uint8)
    bit = {"-1": 0, "1": 1}
    for i, row in enumerate(rows):
        values = [bit.get(value, 2) for value in row[1:]]
        if len(values) != space.num_factors or 2 in values:
            expected = f"an image name and {space.num_factors} values -1 or 1"
            raise DataError(f"{path}: row {i + 1} is not as expected: {expected}")
        attributes[i] = values
    return [row[0] for row in rows], attributes


def _decode_all(source: Path, listing: Path, names: list[str], out: Writer) -> None:
    row_of = {f"{UNPACKED}/{name}": row for row, name in enumerate(names)}
    stored = set(member_names(source, _is_image))
    if len(row_of) != len(names) or stored != row_of.keys():
        differing = sorted(stored ^ row_of.keys())[:3]
        raise DataError(
            f"{source}: has {len(stored)} images, {listing.name} lists {len(names)}; expected the same, "
            f"each once (compare {', '.join(differing) or 'the list'})"
        )
    images = out.create("images", (len(names), 64, 64, 3))
    with progress("Preparing CelebA", len(names), "images") as advance:
        for name, data in read_members(source, _is_image):
            face = centre_crop(decode_image(data, f"{source}: {name}", "RGB", _SIZE), _CROP)
            images[row_of[name]] = resize(face[np.newaxis])[0]
            advance(1)


def _is_image(name: str) -> bool:
    return name.startswith(f"{UNPACKED}/") and name.endswith(".jpg")


RECIPE = Recipe(
    name="celeba",
    title="CelebA",
    summary="Faces of celebrities: 202,599 colour 64x64 images with 40 binary attributes.",
    num_images=202_599,
    image_shape=(64, 64, 3),
    space=SPACE,
    licence="for non-commercial research only",
    homepage=HOMEPAGE,
    citation="Liu, Luo, Wang, Tang: Deep Learning Face Attributes in the Wild, ICCV 2015.",
    load=load,
    splits={part: partial(load, split=part) for part in ("train", "test")},
    files=(IMAGES, LIST),
)
