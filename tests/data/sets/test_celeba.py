import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from unweave.data.sets import celeba
from unweave.errors import MissingDataError

N = 4


def face(i):
    """Smooth, so that JPEG changes little; the channels differ, and so do the axes."""
    y, x = np.mgrid[:218, :178]
    return np.stack([y, x + 10 * i, np.full_like(y, 40 * i)], axis=2).astype(np.uint8)


def jpeg(pixels, kind="JPEG"):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(
        buffer, kind, **({"quality": 100, "subsampling": 0} if kind == "JPEG" else {})
    )
    return buffer.getvalue()


def bits():
    return np.random.default_rng(0).integers(2, size=(N, 40))


def listing(values=None, count=N, names=celeba.ATTRIBUTES):
    rows = [
        f"{i + 1:06d}.jpg " + " ".join(f"{2 * bit - 1:2d}" for bit in row)
        for i, row in enumerate(bits() if values is None else values)
    ]
    return "\n".join([str(count), " ".join(names), *rows]) + "\n"


@pytest.fixture
def write(tmp_path):
    def write(changes=None, text=None, unpacked=False):
        # Stored in another order than listed.
        files = {f"img_align_celeba/{i + 1:06d}.jpg": jpeg(face(i)) for i in (2, 0, 3, 1)} | (changes or {})
        files = {name: data for name, data in files.items() if data is not None}
        (tmp_path / "list_attr_celeba.txt").write_bytes((text or listing()).encode("latin-1"))
        if unpacked:
            for name, data in files.items():
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_bytes(data)
            return tmp_path / "img_align_celeba"
        with zipfile.ZipFile(tmp_path / "img_align_celeba.zip", "w") as archive:
            archive.writestr("img_align_celeba/", b"")
            for name, data in files.items():
                archive.writestr(name, data)
        return tmp_path / "img_align_celeba.zip"

    return write


@pytest.mark.parametrize("unpacked", [False, True])
def test_crops_and_attributes(tmp_path, write, lanczos, unpacked):
    write(unpacked=unpacked)
    data = celeba.load(tmp_path)
    assert (len(data), data.image_shape) == (N, (64, 64, 3))
    assert (data.factors(np.arange(N)) == bits()).all()
    for i, image in enumerate(data.images(np.arange(N))):
        # 148 x 148 in the middle of 178 x 218 starts at column 15, row 35.
        expected = lanczos(face(i)[35:183, 15:163])
        assert np.abs(image - expected).max() <= 4  # what JPEG loses
        assert np.abs(image - expected).mean() < 1


def test_there_are_40_binary_attributes():
    assert len(set(celeba.ATTRIBUTES)) == 40
    assert celeba.SPACE.categorical == set(celeba.ATTRIBUTES)
    assert celeba.SPACE.value_names["Smiling"] == ("no", "yes")


def test_both_files_are_asked_for(tmp_path):
    with pytest.raises(MissingDataError) as caught:
        celeba.load(tmp_path)
    assert "img_align_celeba.zip" in str(caught.value)
    assert "list_attr_celeba.txt" in str(caught.value)


FIRST = "img_align_celeba/000001.jpg"
IMAGES = {
    "missing": ({FIRST: None}, ["has 3 images", "lists 4", "000001.jpg"]),
    "not listed": ({"img_align_celeba/000009.jpg": jpeg(face(0))}, ["has 5 images", "000009.jpg"]),
    "truncated": ({FIRST: jpeg(face(0))[:500]}, ["000001.jpg", "not a readable"]),
    "no image": ({FIRST: b"hello"}, ["000001.jpg", "not a readable"]),
    "wrong size": ({FIRST: jpeg(face(0)[:178])}, ["000001.jpg", "178 x 178", "178 x 218"]),
    "other format": ({FIRST: jpeg(face(0), "BMP")}, ["000001.jpg", "not a readable"]),
    "escapes": ({"../evil.jpg": b""}, ["../evil.jpg", "points outside"]),
    "absolute": ({"/evil.jpg": b""}, ["/evil.jpg", "points outside"]),
}


@pytest.mark.parametrize("change", IMAGES)
def test_wrong_images_are_refused(write, refused, change):
    changes, words = IMAGES[change]
    refused(celeba.load, write(changes), *words)


TEXTS = {
    "wrong count": (listing(count=5), ["4 rows", "expected 5"]),
    "no count": (listing().split("\n", 1)[1], ["first two lines"]),
    "other attributes": (listing(names=celeba.ATTRIBUTES[::-1]), ["first two lines"]),
    "a value too few": (listing(bits()[:, 1:]), ["row 1", "40 values"]),
    "a value of 3": (listing(bits() * 2), ["row 1", "-1 or 1"]),
    "NaN": (listing().replace(" -1", " nan", 1), ["row 1", "-1 or 1"]),
    "not text": ("\xff\xfe", ["cannot be read as text"]),
    "empty": (" ", ["first two lines"]),
    "twice the same": (listing().replace("000002", "000001"), ["each once"]),
}


@pytest.mark.parametrize("change", TEXTS)
def test_lists_that_do_not_fit_are_refused(write, refused, change):
    text, words = TEXTS[change]
    write(text=text)
    refused(celeba.load, "list_attr_celeba.txt", *words)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_truncated_archives_are_refused(write, refused, keep):
    path = write()
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    refused(celeba.load, path, "damaged or not complete")


def test_a_flipped_bit_is_found(write, refused):
    path = write()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    refused(celeba.load, path, "CRC")
