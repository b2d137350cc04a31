import io
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from unweave.data.factors import FactorSpace
from unweave.data.sets import cars3d

ELEVATIONS, AZIMUTHS, CARS = 2, 3, 2
SPACE = FactorSpace(["elevation", "azimuth", "object"], [ELEVATIONS, AZIMUTHS, CARS])


def mesh(car):
    """(128, 128, 3, azimuth, elevation): red grows down, green to the right, blue tells the view."""
    im = np.empty((128, 128, 3, AZIMUTHS, ELEVATIONS), np.uint8)
    im[:, :, 0] = np.arange(128)[:, None, None, None]
    im[:, :, 1] = (2 * np.arange(128))[None, :, None, None]
    im[:, :, 2] = 100 * car + 10 * np.arange(AZIMUTHS)[:, None] + np.arange(ELEVATIONS)
    return im


def mat(**arrays):
    buffer = io.BytesIO()
    savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


def members():
    # Not in the order of the names: the archive's order must not matter.
    return {
        "data/": None,
        "data/shapes48.mat": b"not read",
        "data/cars/car_010_mesh.mat": mat(im=mesh(1), mask=np.ones((128, 128, 3, 2))),
        "data/cars/._car_002_mesh.mat": b"left by a Mac",
        "data/cars/car_002_mesh.mat": mat(im=mesh(0)),
        "data/cars/list.txt": b"car_002_mesh\ncar_010_mesh\n",
        "data/sprites/sprites_1.mat": b"not read",
    }


@pytest.fixture
def write(tmp_path):
    def write(files, extra=()):
        path = tmp_path / "nips2015-analogy-data.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
                info.size = len(data or b"")
                archive.addfile(info, io.BytesIO(data or b""))
            for info in extra:
                archive.addfile(info)
        return path

    return write


def load(folder):
    return cars3d.load(folder, SPACE)


def test_views_are_where_their_factors_say(tmp_path, write, lanczos, close):
    write(members())
    data = load(tmp_path)
    assert (len(data), data.image_shape) == (12, (64, 64, 3))
    for elevation in range(ELEVATIONS):
        for azimuth in range(AZIMUTHS):
            for car in range(CARS):
                found = data.images([[elevation, azimuth, car]])[0]
                close(found, lanczos(mesh(car)[:, :, :, azimuth, elevation]))
                assert (found[..., 2] == 100 * car + 10 * azimuth + elevation).all()


def test_the_official_space_has_all_images():
    assert len(cars3d.SPACE) == 17_568


def replaced(**changes):
    return members() | {f"data/cars/{name}.mat": data for name, data in changes.items()}


DAMAGED = {
    "no im": (dict(car_002_mesh=mat(mask=mesh(0))), ["car_002_mesh.mat", "'im'"]),
    "wrong shape": (dict(car_002_mesh=mat(im=mesh(0)[:64])), ["car_002_mesh.mat", "(64, 128, 3, 3, 2)"]),
    "wrong type": (dict(car_002_mesh=mat(im=mesh(0).astype("u2"))), ["car_002_mesh.mat", "uint16", "uint8"]),
    "truncated": (dict(car_002_mesh=mat(im=mesh(0))[:300]), ["car_002_mesh.mat", "not a complete .mat"]),
    "not a mat": (dict(car_002_mesh=b"hello"), ["car_002_mesh.mat", "not a complete .mat"]),
    "empty": (dict(car_002_mesh=b""), ["car_002_mesh.mat", "not a complete .mat"]),
    "too many": (dict(car_011_mesh=mat(im=mesh(0))), ["has 3 files", "expected 2"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_members_are_refused(write, refused, damage):
    changes, words = DAMAGED[damage]
    refused(load, write(replaced(**changes)), *words)


@pytest.mark.parametrize("name", ["../evil.mat", "/etc/evil.mat", "data/cars/../../evil.mat", "C:\\evil.mat"])
def test_entries_that_escape_are_refused(tmp_path, write, refused, name):
    path = write(members() | {name: b"evil"})
    refused(load, path, "points outside")
    assert not list(tmp_path.parent.glob("**/evil.mat"))


def test_a_link_in_place_of_a_car_is_refused(write, refused):
    link = tarfile.TarInfo("data/cars/car_001_mesh.mat")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    refused(load, write(members(), [link]), "car_001_mesh.mat", "link")


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.999])
def test_truncated_archives_are_refused(write, refused, keep):
    path = write(members())
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    refused(load, path)


def test_no_archive_at_all_is_refused(tmp_path, refused):
    path = tmp_path / "nips2015-analogy-data.tar.gz"
    path.write_text("<html>404</html>")
    refused(load, path, "damaged or not complete")
