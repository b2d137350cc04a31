import io

import numpy as np
import pytest
from scipy.io import savemat

from unweave.data.sets import isomap_faces
from unweave.errors import ArgumentError, MissingDataError

COUNT = 5


def faces(side):
    """Dark at the top, bright at the bottom, and different to the left and to the right."""
    y, x = np.mgrid[:side, :side]
    return np.stack([(2 * y + x + i) / 255 for i in range(COUNT)])


def columns(images):
    return np.stack([image.flatten(order="F") for image in images], axis=1)


FACTORS = np.array([[-75.0, 10, 0], [30, -8, 0.5], [75, 0, 1.5], [1, 2, 3], [4, 5, 6]])


def mat(**arrays):
    buffer = io.BytesIO()
    savemat(buffer, arrays)
    return buffer.getvalue()


def original(**changes):
    arrays = {"images": columns(faces(64)), "poses": FACTORS[:, :2].T, "lights": FACTORS[:, 2:].T} | changes
    return mat(**{name: array for name, array in arrays.items() if array is not None})


def small(**changes):
    arrays = {"dataY": columns(faces(32)), "dataT": FACTORS[:, [2, 0, 1]].T} | changes
    return mat(**{name: array for name, array in arrays.items() if array is not None})


def load(folder):
    return isomap_faces.load(folder, COUNT)


@pytest.mark.parametrize(("name", "data", "side"), [("face_data", original, 64), ("face_1024", small, 32)])
def test_faces_are_upright_and_have_their_factors(tmp_path, name, data, side):
    (tmp_path / f"{name}.mat").write_bytes(data())
    found = load(tmp_path)
    rows = np.arange(COUNT)
    assert found.image_shape == (side, side, 1)
    assert (found.images(rows)[..., 0] == np.rint(faces(side) * 255)).all()
    assert (found.factors(rows) == FACTORS).all()
    assert found.space.names == ("left_right", "up_down", "light")
    assert found.space.sizes == ((-75.0, 75.0), (-8.0, 10.0), (0.0, 6.0))
    with pytest.raises(ArgumentError, match="by row"):
        found.images(FACTORS)


def test_the_official_address_is_named_when_nothing_is_there(tmp_path):
    with pytest.raises(MissingDataError, match=r"isomap.stanford.edu/face_data.mat.Z"):
        load(tmp_path)


def with_nan(array):
    array = array.copy()
    array.flat[3] = np.nan
    return array


POSES, PIXELS = FACTORS[:, :2].T, columns(faces(64))
DAMAGED = {
    "no poses": (original(poses=None), ["'poses'"]),
    "wrong shape": (original(images=PIXELS[1:]), ["(4095, 5)", "(4096, 5)"]),
    "bytes": (original(images=(PIXELS * 255).astype("u1")), ["uint8", "float64"]),
    "too bright": (original(images=PIXELS * 255), ["expected [0, 1]"]),
    "NaN pixels": (original(images=with_nan(PIXELS)), ["expected [0, 1]"]),
    "NaN poses": (original(poses=with_nan(POSES)), ["NaN"]),
    "a pose that never varies": (original(poses=POSES * [[0], [1]]), ["that vary"]),
    "truncated": (original()[:2000], ["not a complete .mat"]),
    "text": (b"<html>404</html>", ["not a complete .mat"]),
    "empty": (b"", ["not a complete .mat"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files_are_refused(tmp_path, refused, damage):
    data, words = DAMAGED[damage]
    (tmp_path / "face_data.mat").write_bytes(data)
    refused(load, tmp_path / "face_data.mat", *words)


def packed(data):
    """A .Z file as simple as can be: groups of seven bytes and the code that clears the table."""
    data = data + bytes(-len(data) % 7)
    groups = [[*data[i : i + 7], 256] for i in range(0, len(data), 7)]
    bits = [sum(code << (9 * i) for i, code in enumerate(group)) for group in groups]
    return b"\x1f\x9d\x90" + b"".join(group.to_bytes(9, "little") for group in bits)


def test_the_packed_file_is_read_too(tmp_path):
    (tmp_path / "face_data.mat.Z").write_bytes(packed(original()))
    assert (load(tmp_path).images([0])[0, :, :, 0] == np.rint(faces(64)[0] * 255)).all()


def test_a_damaged_packed_file_is_refused(tmp_path, refused):
    (tmp_path / "face_data.mat.Z").write_bytes(original())
    refused(load, tmp_path / "face_data.mat.Z", "not a .Z file")


def test_the_real_file(real):
    data = isomap_faces.load(real("isomap-faces"))
    assert len(data) == 698
    assert data.image_shape == (32, 32, 1)
    rows = np.arange(698)
    images, factors = data.images(rows)[..., 0].astype(float), data.factors(rows)
    assert images.max() == 255
    # Light from one side makes that half of the face brighter, and the light factor tells the side.
    brighter_left = images[:, :, :16].mean(axis=(1, 2)) - images[:, :, 16:].mean(axis=(1, 2))
    assert np.corrcoef(brighter_left, factors[:, data.space.position("light")])[0, 1] < -0.5
    # Turned to one side, the head fills that side less.
    head = images > 20
    middle = (head * np.arange(32)).sum(axis=(1, 2)) / head.sum(axis=(1, 2))
    assert np.corrcoef(middle, factors[:, data.space.position("left_right")])[0, 1] < -0.8
    # Upright: beside the neck the ground is black, beside the hair it is often covered.
    assert max(images[:, -4:, :4].mean(), images[:, -4:, -4:].mean()) < 5
    assert min(images[:, :4, :4].mean(), images[:, :4, -4:].mean()) > 20
