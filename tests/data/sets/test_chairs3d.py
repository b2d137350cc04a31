import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from unweave.data.factors import FactorSpace
from unweave.data.sets import chairs3d
from unweave.errors import ArgumentError, DataError

SPACE = FactorSpace(["identity", "azimuth", "elevation"], [5, 3, 2])
CHAIRS = ["9f2", "01a", "c0d", "b77", "0ee"]
AZIMUTHS, ELEVATIONS = [11, 23, 104], [20, 30]


def colour(chair, azimuth, elevation):
    return [40 * CHAIRS.index(chair), azimuth, elevation]


def png(chair, azimuth, elevation, size=600):
    """A coloured middle of 400 pixels, its upper left quarter white, within a black frame."""
    pixels = np.zeros((size, size, 3), np.uint8)
    pixels[100:500, 100:500] = colour(chair, azimuth, elevation)
    pixels[100:300, 100:300] = 255
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def name(chair, azimuth, elevation):
    number = 1 + AZIMUTHS.index(azimuth) + 3 * ELEVATIONS.index(elevation)
    return f"rendered_chairs/{chair}/renders/image_{number:03d}_p{elevation:03d}_t{azimuth:03d}_r096.png"


FILES = {
    name(chair, azimuth, elevation): png(chair, azimuth, elevation)
    for chair in CHAIRS
    for elevation in ELEVATIONS
    for azimuth in AZIMUTHS
}
FIRST, LAST = next(iter(FILES)), list(FILES)[-1]


@pytest.fixture
def write(tmp_path):
    def write(changes=None, extra=(), unpacked=False):
        files = {"rendered_chairs/all_chair_names.mat": b"not read"} | FILES | (changes or {})
        files = {name: data for name, data in files.items() if data is not None}
        if unpacked:
            for name, data in files.items():
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_bytes(data)
            return tmp_path / "rendered_chairs"
        with tarfile.open(tmp_path / "rendered_chairs.tar", "w") as archive:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            for info in extra:
                archive.addfile(info)
        return tmp_path / "rendered_chairs.tar"

    return write


def load(folder, split="all"):
    return chairs3d.load(folder, SPACE, split)


@pytest.mark.parametrize("unpacked", [False, True])
def test_images_are_where_their_factors_say(tmp_path, write, unpacked):
    write(unpacked=unpacked)
    data = load(tmp_path)
    assert (len(data), data.image_shape) == (30, (64, 64, 3))
    for i, chair in enumerate(sorted(CHAIRS)):
        for j, azimuth in enumerate(AZIMUTHS):
            for k, elevation in enumerate(ELEVATIONS):
                image = data.images([[i, j, k]])[0]
                # The frame is cut off; far from the white quarter's edges the filter changes nothing.
                assert (image[:28, :28] == 255).all()
                assert (image[36:] == colour(chair, azimuth, elevation)).all()
                assert (image[:, 36:] == colour(chair, azimuth, elevation)).all()


def test_the_first_four_fifths_of_the_chairs_are_for_training(tmp_path, write):
    write()
    train, test = load(tmp_path, "train"), load(tmp_path, "test")
    assert (len(train), len(test)) == (24, 6)
    assert set(train.factors(np.arange(24))[:, 0]) == {0, 1, 2, 3}
    assert set(test.factors(np.arange(6))[:, 0]) == {4}
    assert (test.images([0]) == load(tmp_path).images([24])).all()
    with pytest.raises(ArgumentError, match="split"):
        load(tmp_path, "valid")


def test_a_chair_may_lack_a_view(tmp_path, write):
    write({LAST: None})
    data = load(tmp_path)
    assert len(data) == 29
    missing = sorted(CHAIRS).index(CHAIRS[-1])
    with pytest.raises(ArgumentError, match="no image"):
        data.images([[missing, 2, 1]])


def test_the_official_space_has_all_images():
    assert len(chairs3d.SPACE) == 86_366


DAMAGED = {
    "a chair too few": (
        dict.fromkeys([n for n in FILES if CHAIRS[0] in n]),
        ["'identity'", "4 values", "expected 5"],
    ),
    "another angle": ({FIRST.replace("t011", "t012"): FILES[FIRST]}, ["'azimuth'", "4 values"]),
    "the same view": ({FIRST.replace("_001_", "_009_"): FILES[FIRST]}, ["two images"]),
    "truncated": ({FIRST: FILES[FIRST][:1000]}, [FIRST, "not a readable"]),
    "no image": ({FIRST: b""}, [FIRST, "not a readable"]),
    "wrong size": ({FIRST: png(CHAIRS[0], 11, 20, size=500)}, [FIRST, "500 x 500", "600 x 600"]),
    "escapes": ({"rendered_chairs/../../evil.png": b""}, ["points outside"]),
    "nothing": (dict.fromkeys(FILES), ["'identity'", "0 values"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_wrong_archives_are_refused(write, refused, damage):
    changes, words = DAMAGED[damage]
    refused(load, write(changes), *words)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_in_place_of_an_image_is_refused(write, refused, kind):
    link = tarfile.TarInfo(LAST.replace("_006_", "_007_"))
    link.type, link.linkname = kind, "/etc/passwd"
    refused(load, write(extra=[link]), "link")


def test_truncated_archives_are_refused(write, refused):
    path = write()
    data = path.read_bytes()
    # In the middle of a file, in the middle of a header, and right behind the last file.
    header = data.rindex(LAST.encode())
    end = len(data.rstrip(b"\0"))
    for size in (0, 700, header - 100, header + 100, header + 1500, end + -end % 512):
        path.write_bytes(data[:size])
        refused(load, path)


def test_a_damaged_header_is_not_taken_for_the_end(write, refused):
    path = write()
    data = bytearray(path.read_bytes())
    data[data.rindex(LAST.encode()) + 150] ^= 255
    path.write_bytes(data)
    refused(load, path, "damaged at byte")


@pytest.mark.parametrize("listed", [None, CHAIRS[1:4]])
def test_masks_are_where_the_ground_is_not_white(write, tmp_path, listed):
    write()
    if listed is not None:
        (tmp_path / "models.txt").write_text("\n".join(listed) + "\n")
    data = chairs3d.load_masks(tmp_path, SPACE)
    models = len(listed or CHAIRS)
    assert len(data) == models * 6
    assert data.space.sizes == (models, 3, 2)
    image = data.images([0])[0, :, :, 0]
    assert not image[:30, :30].any()  # the white quarter
    assert (image[34:, 34:] == 255).all()
    assert set(np.unique(data.images(np.arange(len(data))))) == {0, 255}
    parts = [chairs3d.load_masks(tmp_path, SPACE, split=part) for part in ("train", "test")]
    assert sum(map(len, parts)) == len(data)
    assert not set(parts[0].factors(range(len(parts[0])))[:, 0]) & set(
        parts[1].factors(range(len(parts[1])))[:, 0]
    )


def test_a_model_in_the_list_that_is_not_there(write, tmp_path):
    write()
    (tmp_path / "models.txt").write_text("01a\nzzz\n")
    with pytest.raises(DataError, match="has no model zzz"):
        chairs3d.load_masks(tmp_path, SPACE)
