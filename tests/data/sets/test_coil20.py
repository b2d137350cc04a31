import io
import stat
import zipfile

import numpy as np
import pytest
from PIL import Image

from unweave.data.factors import FactorSpace
from unweave.data.sets import coil20

SPACE = FactorSpace(["object", "azimuth"], [2, 12])


def picture(thing, azimuth):
    """Grows down and, at another rate, to the right; the offset tells which it is."""
    y, x = np.mgrid[:128, :128]
    return (y // 2 + x + 60 * thing + azimuth).clip(0, 255).astype(np.uint8)


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def name(thing, azimuth):
    return f"coil-20-proc/obj{thing + 1}__{azimuth}.png"


FILES = {name(i, j): png(picture(i, j)) for j in range(12) for i in range(2)}


@pytest.fixture
def write(tmp_path):
    def write(changes=None, links=()):
        path = tmp_path / "coil-20-proc.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("coil-20-proc/", b"")
            archive.writestr("coil-20-proc/Icon\r", b"")
            for entry, data in (FILES | (changes or {})).items():
                if data is not None:
                    archive.writestr(entry, data)
            for entry in links:
                info = zipfile.ZipInfo(entry)
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
                archive.writestr(info, "/etc/passwd")
        return path

    return write


def load(folder):
    return coil20.load(folder, SPACE)


def test_images_are_where_their_factors_say(tmp_path, write, lanczos, close):
    write()
    data = load(tmp_path)
    assert (len(data), data.image_shape) == (24, (64, 64, 1))
    for thing in range(2):
        for azimuth in range(12):
            close(data.images([[thing, azimuth]])[0], lanczos(picture(thing, azimuth)[:, :, None]))


DAMAGED = {
    "one too few": ({name(1, 4): None}, ["has 23 images", "expected 24"]),
    "one too many": ({name(0, 12): FILES[name(0, 0)]}, ["has 25 images"]),
    "another angle": ({name(1, 4): None, name(1, 12): FILES[name(1, 4)]}, ["'azimuth'", "12"]),
    "twice": ({name(1, 4): None, "coil-20-proc/obj2__05.png": FILES[name(1, 4)]}, ["full grid"]),
    "truncated": ({name(1, 4): FILES[name(1, 4)][:80]}, ["obj2__4.png", "not a readable"]),
    "no image": ({name(1, 4): b"hello"}, ["obj2__4.png", "not a readable"]),
    "wrong size": ({name(1, 4): png(picture(0, 0)[:64])}, ["obj2__4.png", "128 x 64", "128 x 128"]),
    "escapes": ({"coil-20-proc/../../evil.png": b""}, ["points outside"]),
    "absolute": ({"/evil.png": b""}, ["points outside"]),
    "of Windows": ({"C:\\evil.png": b""}, ["points outside"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_wrong_archives_are_refused(write, refused, damage):
    changes, words = DAMAGED[damage]
    refused(load, write(changes), *words)


def test_a_link_in_place_of_an_image_is_refused(write, refused):
    refused(load, write({name(1, 4): None}, links=[name(1, 4)]), "obj2__4.png", "link")


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_truncated_archives_are_refused(write, refused, keep):
    path = write()
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    refused(load, path, "damaged or not complete")


def test_the_real_file(real, lanczos, close):
    folder = real("coil-20")
    data = coil20.load(folder)
    assert (len(data), data.image_shape) == (1440, (64, 64, 1))
    with zipfile.ZipFile(folder / "coil-20-proc.zip") as archive:
        for thing, azimuth in ((0, 0), (4, 68), (19, 71)):
            with Image.open(archive.open(name(thing, azimuth))) as original:
                close(data.images([[thing, azimuth]])[0], lanczos(np.asarray(original)[:, :, None]))
    # A turn of five degrees changes a picture less than another object does.
    images = data.images(np.arange(1440)).reshape(20, 72, -1).astype(float)
    turned = np.abs(images[:, 1:] - images[:, :-1]).mean()
    assert 3 * turned < np.abs(images[1:] - images[:-1]).mean()
