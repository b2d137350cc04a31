import io

import numpy as np
import pytest
from PIL import Image

from unweave.data.files.images import centre_crop, decode_image, resize
from unweave.errors import ArgumentError, DataError


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


COLOURS = np.array(
    [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[9, 8, 7], [1, 2, 3], [255, 255, 255]]], np.uint8
)


def test_decoding_keeps_axes_and_channels():
    assert (decode_image(png(COLOURS), "a.png", "RGB", (3, 2)) == COLOURS).all()
    grey = decode_image(png(COLOURS[..., 0]), "a.png", "L", (3, 2))
    assert grey.shape == (2, 3, 1)
    assert (grey[..., 0] == COLOURS[..., 0]).all()
    assert (decode_image(png(COLOURS[..., 0]), "a.png", "RGB", (3, 2)) == COLOURS[..., :1]).all()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (png(COLOURS.transpose(1, 0, 2)), "2 x 3 pixels; expected 3 x 2"),
        (png(COLOURS)[:-30], "not a readable"),
        (png(COLOURS).replace(b"IDAT", b"IDAU"), "not a readable"),
        (b"GIF89a" + bytes(50), "not a readable"),
        (b"", "not a readable"),
    ],
)
def test_other_pictures_are_refused(data, words):
    with pytest.raises(DataError, match=f"a.png: .*{words}"):
        decode_image(data, "a.png", "RGB", (3, 2))


def test_an_enormous_picture_is_not_decoded():
    # A header that claims 60,000 x 60,000 pixels.
    data = bytearray(png(COLOURS))
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    with pytest.raises(DataError, match=r"a.png"):
        decode_image(bytes(data), "a.png", "RGB", (3, 2))


def test_the_centre():
    image = np.arange(6 * 9).reshape(6, 9, 1).astype(np.uint8)
    assert (centre_crop(image, 3) == image[1:4, 3:6]).all()
    assert (centre_crop(image, 6) == image[:, 1:7]).all()


def test_resizing_is_antialiased():
    # Stripes of one pixel: taking every other pixel would give 0 or 255, the average is grey.
    stripes = np.zeros((1, 128, 128, 1), np.uint8)
    stripes[:, ::2] = 255
    # Far from the border, where half a window is mirrored by nothing.
    assert np.abs(resize(stripes)[0, 8:-8].astype(int) - 127.5).max() < 2


def test_resizing_keeps_constants_and_channels():
    images = np.zeros((2, 96, 96, 3), np.uint8)
    images[0], images[1] = [255, 0, 100], [1, 200, 30]
    small = resize(images)
    assert small.shape == (2, 64, 64, 3)
    assert (small == images[:, :64, :64]).all()
    assert resize(small) is small


@pytest.mark.parametrize(
    "images", [np.zeros((1, 8, 8, 1), np.int8), np.zeros((1, 8, 8, 1)), np.zeros((8, 8, 3), np.uint8)]
)
def test_only_bytes_are_resized(images):
    with pytest.raises(ArgumentError, match="uint8"):
        resize(images)
