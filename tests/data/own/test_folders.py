import os

import numpy as np
import pytest
from PIL import Image

from unweave.data.own import folders as module
from unweave.data.own.folders import from_folder
from unweave.data.rows import Grid, Table
from unweave.data.split import labelled_part, random_part
from unweave.errors import ArgumentError, DataError, MissingDataError


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "toys"
    path.mkdir()
    return path


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(path, **options)


def colour(value, height=4, width=6):
    """An image with a different value in each channel and pixel."""
    return (np.arange(height * width * 3).reshape(height, width, 3) + value) % 256


def fill(folder, names, csv=None):
    for number, name in enumerate(names):
        save(folder / name, colour(number))
    if csv is not None:
        (folder / "factors.csv").write_text(csv)


CSV = "file,shape,x\nb.png,ball,10\nsub/a.png,cube,20\nsub/d.png,ball,30\n"
NAMES = ["b.png", "sub/a.png", "sub/d.png"]


# --- what it makes -----------------------------------------------------------------------------


def test_images_and_factors(folder):
    fill(folder, NAMES, CSV)
    data = from_folder(folder)
    assert repr(data) == "Dataset(toys: 3 of 4x6x3; shape=2, x=3)"
    assert data.space.categorical == {"shape"}
    assert data.space.value_names == {"shape": ("ball", "cube"), "x": ("10", "20", "30")}
    np.testing.assert_array_equal(data.images([0, 1, 2]), [colour(0), colour(1), colour(2)])
    np.testing.assert_array_equal(data.factors([0, 1, 2]), [[0, 0], [1, 1], [0, 2]])
    assert isinstance(data.index, Table)
    np.testing.assert_array_equal(data.images([[1, 1]]), [colour(1)])
    with pytest.raises(ArgumentError, match="no image of this combination"):
        data.images([[1, 0]])
    assert data.batch(0, batch_size=2).images.shape == (2, 3, 4, 6)


def test_rows_are_in_the_order_of_paths_whatever_the_table_says(folder):
    csv = "file,x,real\nsub/d.png,3,0.5\n./b.png,1,1.5\n\nsub\\a.png,2,1e-1\n"
    fill(folder, NAMES, csv)
    data = from_folder(str(folder), name="mine")
    assert data.name == "mine"
    assert data.space.sizes == (3, (0.1, 1.5))
    np.testing.assert_array_equal(data.factors([0, 1, 2]), [[0, 1.5], [1, 0.1], [2, 0.5]])


def test_a_full_grid_is_recognised(folder):
    fill(
        folder, ["0.png", "1.png", "2.png", "3.png"], "file,a,b\n0.png,0,x\n1.png,0,y\n2.png,1,x\n3.png,1,y\n"
    )
    assert isinstance(from_folder(folder).index, Grid)
    assert from_folder(folder, categorical=["a"]).space.categorical == {"a", "b"}


def test_images_without_labels(folder):
    fill(folder, NAMES)
    data = from_folder(folder, None)
    assert repr(data) == "Dataset(toys: 3 of 4x6x3; no factors)"
    assert data.factors([0]).shape == (1, 0)
    assert data.batch(0, batch_size=2).images.shape == (2, 3, 4, 6)


def test_a_table_elsewhere(folder, tmp_path):
    fill(folder, NAMES)
    (tmp_path / "labels.csv").write_text("\ufeff" + CSV.replace("\n", "\r\n"), encoding="utf-8")
    assert from_folder(folder, tmp_path / "labels.csv").space.names == ("shape", "x")
    assert from_folder(folder, "../labels.csv").space.names == ("shape", "x")


def test_hidden_and_other_files_are_passed_over(folder):
    fill(folder, [*NAMES, ".hidden.png", ".cache/e.png"], CSV)
    (folder / "notes.txt").write_text("not an image")
    assert len(from_folder(folder)) == 3


def test_links_are_followed_but_not_in_circles(folder, tmp_path):
    fill(folder, ["b.png"])
    fill(tmp_path / "elsewhere", ["c.png"])
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(folder)
    (folder / "z.png").symlink_to(tmp_path / "elsewhere" / "c.png")
    (folder / "factors.csv").write_text("file,x\nb.png,1\nmore/c.png,2\nz.png,3\n")
    assert len(from_folder(folder)) == 3


@pytest.mark.parametrize("suffix", ["png", "BMP", "webp", "tif", "TIFF", "ppm"])
def test_lossless_formats(folder, suffix):
    save(folder / f"a.{suffix}", colour(7), **({"lossless": True} if suffix == "webp" else {}))
    np.testing.assert_array_equal(from_folder(folder, None).images([0]), [colour(7)])


@pytest.mark.parametrize("suffix", ["jpg", "jpeg"])
def test_jpeg(folder, suffix):
    save(folder / f"a.{suffix}", np.full((8, 8, 3), 100), quality=95)
    assert np.abs(from_folder(folder, None).images([0]).astype(int) - 100).max() <= 2


# --- pixels ------------------------------------------------------------------------------------


def only(folder, image, name="a.png", **options):
    """The pixels of the one image in the folder."""
    image.save(folder / name)
    return from_folder(folder, None, **options).images([0])[0]


def test_grey_stays_grey_unless_colour_is_asked_for(folder):
    grey = np.arange(24, dtype=np.uint8).reshape(4, 6)
    np.testing.assert_array_equal(only(folder, Image.fromarray(grey))[..., 0], grey)
    three = from_folder(folder, None, channels=3).images([0])[0]
    np.testing.assert_array_equal(three, np.repeat(grey[..., None], 3, axis=2))


def test_one_colour_image_makes_all_colour(folder):
    save(folder / "a.png", np.full((4, 6), 9))
    save(folder / "b.png", colour(0))
    data = from_folder(folder, None)
    assert data.image_shape == (4, 6, 3)
    assert (data.images([0]) == 9).all()
    # Luma of ITU-R 601-2, as Pillow rounds it.
    luma = colour(0) @ [0.299, 0.587, 0.114]
    assert np.abs(from_folder(folder, None, channels=1).images([1])[0, ..., 0] - luma).max() <= 1


def test_transparency_is_laid_on_white(folder):
    rgba = np.zeros((2, 2, 4), np.uint8)
    rgba[0] = [200, 100, 0, 255]
    rgba[1] = [200, 100, 0, 0]
    expected = [[[200, 100, 0]] * 2, [[255, 255, 255]] * 2]
    np.testing.assert_array_equal(only(folder, Image.fromarray(rgba)), expected)
    half = np.full((2, 2, 2), [100, 128], np.uint8)  # grey with alpha
    found = only(folder, Image.fromarray(half))
    assert found.shape == (2, 2, 1)
    assert np.abs(found.astype(int) - (100 * 128 + 255 * 127) / 255).max() <= 1


def test_palettes_become_colours(folder):
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[:2] = [255, 0, 0]
    pixels[2:] = [0, 0, 255]
    image = Image.fromarray(pixels).quantize(2)
    assert image.mode == "P"
    np.testing.assert_array_equal(only(folder, image), pixels)
    image.save(folder / "a.png", transparency=image.getpixel((0, 0)))
    np.testing.assert_array_equal(from_folder(folder, None).images([0])[0, :2], 255)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.pgm"])
def test_16_bits_are_scaled_to_8(folder, name):
    values = np.array([[0, 257, 65535], [256, 128, 129]], dtype=np.uint16)
    found = only(folder, Image.fromarray(values), name=name)
    np.testing.assert_array_equal(found[..., 0], [[0, 1, 255], [1, 0, 1]])


def test_black_and_white_and_cmyk(folder):
    found = only(folder, Image.fromarray(np.array([[True, False]])))
    np.testing.assert_array_equal(found[..., 0], [[255, 0]])
    (folder / "a.png").unlink()
    assert (
        only(folder, Image.new("CMYK", (2, 2), (0, 0, 0, 0)), name="a.tif").tolist() == [[[255] * 3] * 2] * 2
    )


def test_a_photo_taken_sideways_is_turned_upright(folder):
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, 8:] = 255  # the right half is white
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    Image.fromarray(pixels).save(folder / "a.jpg", exif=exif, quality=95)
    image = from_folder(folder, None).images([0])[0]
    assert image.shape == (16, 8, 3)
    assert image[:7].max() < 10
    assert image[9:].min() > 245


# --- sizes -------------------------------------------------------------------------------------


def test_images_are_cut_around_the_centre_and_resized(folder):
    wide = np.zeros((8, 24, 3), np.uint8)
    wide[:, 8:16] = [10, 200, 30]  # the middle square has one colour
    save(folder / "a.png", wide)
    save(folder / "b.png", wide.transpose(1, 0, 2))
    data = from_folder(folder, None, size=4)
    assert data.image_shape == (4, 4, 3)
    assert (data.images([0, 1]) == [10, 200, 30]).all()
    flat = from_folder(folder, None, size=(2, 6)).images([0])[0]
    assert flat.shape == (2, 6, 3)
    assert (flat[:, 0] == 0).all()
    assert (flat[:, 2:4] != 0).any()


def test_resizing_is_antialiased(folder):
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    save(folder / "a.png", stripes)
    # Away from the borders every output pixel is the mean of black and white.
    inner = from_folder(folder, None, size=8).images([0])[0, 2:-2, 2:-2].astype(int)
    assert np.abs(inner - 127.5).max() < 4


def test_images_of_the_asked_size_are_not_touched(folder):
    fill(folder, NAMES)
    np.testing.assert_array_equal(from_folder(folder, None, size=(4, 6)).images([1])[0], colour(1))


def test_different_sizes_are_refused(folder):
    fill(folder, NAMES)
    save(folder / "c.png", colour(0, 5, 7))
    with pytest.raises(
        DataError, match=r"toys: images differ in size: b.png is 4 x 6 and c.png is 5 x 7. Pass size=64"
    ):
        from_folder(folder, None)
    assert from_folder(folder, None, size=3).image_shape == (3, 3, 3)


# --- preparing once ----------------------------------------------------------------------------


def prepared_folders(store):
    return sorted(path for path in store.rglob("prepared*") if path.is_dir())


def test_a_second_load_decodes_nothing(folder, monkeypatch):
    fill(folder, NAMES, CSV)
    first = from_folder(folder).images([0, 1, 2])
    for name in ("read_image", "read_header"):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("decoded again"))
    again = from_folder(folder)
    np.testing.assert_array_equal(again.images([0, 1, 2]), first)
    assert isinstance(again.array, np.memmap)


def test_a_changed_folder_is_prepared_anew_in_the_same_place(folder, store):
    fill(folder, NAMES, CSV)
    old = from_folder(folder)
    save(folder / "b.png", colour(100))
    os.utime(folder / "b.png", ns=(1, 1))  # even where the clock is coarse
    np.testing.assert_array_equal(from_folder(folder).images([0]), [colour(100)])
    np.testing.assert_array_equal(old.images([0]), [colour(0)])  # what is open stays as it was
    save(folder / "e.png", colour(9))
    assert len(from_folder(folder, None)) == 4
    (folder / "e.png").unlink()
    assert len(from_folder(folder)) == 3
    assert len(prepared_folders(store)) == 1


def test_a_changed_table_needs_no_preparing(folder, monkeypatch):
    fill(folder, NAMES, CSV)
    from_folder(folder)
    monkeypatch.setattr(module, "read_image", lambda *_: pytest.fail("decoded again"))
    (folder / "factors.csv").write_text(CSV.replace("cube", "ball"))
    assert from_folder(folder).space.sizes == (1, 3)


def test_options_have_their_own_preparation(folder, store):
    fill(folder, NAMES)
    for options in ({}, {"size": 2}, {"channels": 1}):
        from_folder(folder, None, **options)
    assert from_folder(folder, None).image_shape == (4, 6, 3)
    assert len(prepared_folders(store)) == 3


def test_many_images_cross_blocks(folder, monkeypatch):
    monkeypatch.setattr(module, "_AT_A_TIME", 4)
    names = [f"{number:02}.png" for number in range(11)]
    fill(folder, names)
    np.testing.assert_array_equal(
        from_folder(folder, None).images(np.arange(11)), [colour(n) for n in range(11)]
    )


def bad_image(folder, kind):
    path = folder / "c.png"
    if kind == "text":
        path.write_text("no image")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "truncated":
        save(path, np.random.default_rng(0).integers(256, size=(4, 6, 3)))
        path.write_bytes(path.read_bytes()[:-30])
    elif kind == "32 bits":
        path = folder / "c.tif"
        Image.fromarray(np.zeros((4, 6), np.float32)).save(path)
    return path


@pytest.mark.parametrize("kind", ["text", "empty", "truncated", "32 bits"])
def test_an_unreadable_image_is_named_and_leaves_nothing(folder, store, kind):
    fill(folder, NAMES)
    path = bad_image(folder, kind)
    with pytest.raises(DataError, match=rf"toys/{path.name}: not a readable image \(.+\)"):
        from_folder(folder, None)
    assert not [p for p in store.rglob("*") if p.is_file() and not p.name.endswith(".lock")]
    path.unlink()
    assert len(from_folder(folder, None)) == 3


# --- what is wrong with the table --------------------------------------------------------------


@pytest.mark.parametrize(
    ("csv", "message"),
    [
        ("file,x\nb.png,\nsub/a.png,\n", r"factors.csv: column 'x' has no value for any image"),
        (CSV + "q.png,cube,1\n", r"factors.csv, line 5: there is no image 'q.png' in .*toys"),
        (CSV + "./b.png,cube,1\n", r"factors.csv, line 5: './b.png' is already on line 2"),
        (CSV + "../x.png,cube,1\n", r"line 5: '../x.png' is not a path inside the folder"),
        (CSV + "sub/../../x.png,cube,1\n", r"line 5: .* is not a path inside"),
        (CSV + "..,cube,1\n", r"line 5: '..' is not a path inside"),
        (CSV + "/etc/x.png,cube,1\n", r"line 5: '/etc/x.png' is not a path inside"),
        (CSV + "C:\\x.png,cube,1\n", r"line 5: .* is not a path inside"),
        (CSV.replace("cube,20", "cube"), r"line 3: has 2 cells, the header has 3"),
        (CSV.replace("cube,20", "cube,20,5"), r"line 3: has 4 cells, the header has 3"),
        (CSV.replace("20", "-inf"), r"line 3: column 'x' is '-inf'"),
        (CSV.replace("20", "1e999"), r"line 3: column 'x' is '1e999'"),
        (CSV.replace("shape,x", "x,x"), r"line 1: column 3 is called 'x'; needs another name"),
        (CSV.replace("shape", ""), r"line 1: column 2 is called ''"),
        (CSV.split("\n", 1)[1], r"line 1: is an image, not a header"),
        (CSV.replace(",", ";"), r"line 1: 'file;shape;x' has no comma"),
        ("", r"factors.csv: is empty"),
        (CSV + '"b.png,1', r"line 5: unexpected end of data"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(folder, store, csv, message):
    fill(folder, NAMES, csv)
    with pytest.raises(DataError, match=message):
        from_folder(folder)
    assert not store.exists()  # refused before any work


NAN = np.nan


@pytest.mark.parametrize(
    ("csv", "expected"),
    [
        (CSV.replace("20", " "), [[0, 0], [1, NAN], [0, 1]]),
        (CSV.replace("20", "NaN"), [[0, 0], [1, NAN], [0, 1]]),
        (CSV.replace("ball,10", ",10"), [[NAN, 0], [1, 1], [0, 2]]),
        ("file,shape,x\nsub/d.png,ball,30\nb.png,cube,0.5\n", [[1, 0.5], [NAN, NAN], [0, 30]]),
    ],
)
def test_empty_cells_and_missing_lines_are_unknown(folder, csv, expected):
    fill(folder, NAMES, csv)
    data = from_folder(folder)
    np.testing.assert_array_equal(data.factors([0, 1, 2]), expected)
    assert data.files == tuple(NAMES)
    assert len(data.labelled_rows()) == 2
    assert "2 labelled" in repr(data)


def test_files_follow_their_rows(folder):
    fill(folder, [f"{number}.png" for number in range(10)])
    data = from_folder(folder, {"3.png": 1, "7.png": 2})
    part = random_part(data, 0.5, seed=0)
    rows = np.flatnonzero(~np.isnan(part.factors(np.arange(5))[:, 0]))
    assert {part.files[row] for row in rows} == {"3.png", "7.png"} & set(part.files)
    for row, name in enumerate(part.files):
        np.testing.assert_array_equal(part.images([row])[0], colour(int(name[0])))
    labelled = labelled_part(data)
    assert (labelled.files, labelled.split) == (("3.png", "7.png"), "labelled")
    assert labelled.factors([0, 1]).dtype == np.int64


def test_all_unreadable_images_are_named_at_once(folder, store):
    fill(folder, NAMES, CSV)
    (folder / "bad.png").write_text("no image")
    (folder / "cut.png").write_bytes((folder / "b.png").read_bytes()[:-30])
    (folder / "sub" / "empty.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"3 of 6 images cannot be read; .*--skip-bad") as caught:
        from_folder(folder)
    for name in ("toys/bad.png:", "toys/cut.png:", "toys/sub/empty.jpg:"):
        assert name in str(caught.value)
    assert not [p for p in store.rglob("*") if p.is_file() and not p.name.endswith(".lock")]


def test_unreadable_images_are_left_out_if_asked(folder):
    fill(folder, NAMES, CSV + "bad.png,cube,40\n")
    (folder / "bad.png").write_text("no image")
    (folder / "cut.png").write_bytes((folder / "b.png").read_bytes()[:-30])
    for _ in range(2):  # prepared, and again from what was kept
        with pytest.warns(
            UserWarning, match=r"2 of 5 images cannot be read and are left out: bad.png, cut.png"
        ):
            data = from_folder(folder, skip_bad=True)
        assert data.files == tuple(NAMES)
        assert data.skip_bad
        np.testing.assert_array_equal(data.images([0, 1, 2]), [colour(0), colour(1), colour(2)])
        np.testing.assert_array_equal(data.factors([0, 1, 2]), [[0, 0], [1, 1], [0, 2]])


def test_no_readable_image_is_an_error(folder):
    (folder / "a.png").write_text("no image")
    (folder / "b.png").write_text("no image")
    with pytest.raises(DataError, match="2 of 2 images cannot be read"):
        from_folder(folder, None, skip_bad=True)


def test_a_table_that_is_not_text(folder):
    fill(folder, NAMES)
    (folder / "factors.csv").write_bytes(CSV.encode() + b"b\xff.png,1,2\n")
    with pytest.raises(DataError, match=r"factors.csv, line 5: not UTF-8 text"):
        from_folder(folder)


def test_a_missing_table_says_how_to_do_without(folder):
    fill(folder, NAMES)
    with pytest.raises(MissingDataError, match=r"factors.csv: not found.*factors=None"):
        from_folder(folder)


def test_a_table_of_paths_alone_has_no_factors(folder):
    fill(folder, NAMES, "file\nb.png\nsub/a.png\nsub/d.png\n")
    assert from_folder(folder).space.names == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, r"size = 0: needs a whole number >= 1"),
        ({"size": (4, -1)}, r"size = \(4, -1\)"),
        ({"size": (4, 4, 3)}, r"size = "),
        ({"size": 2.5}, r"size = 2.5"),
        ({"size": True}, r"size = True"),
        ({"channels": 4}, r"channels = 4: needs 1, 3 or None"),
        ({"categorical": ["shap"]}, r"did you mean 'shape'"),
    ],
)
def test_bad_options_are_refused(folder, store, options, message):
    fill(folder, NAMES, CSV)
    with pytest.raises(ArgumentError, match=message):
        from_folder(folder, **options)
    assert not store.exists()


def test_folders_without_images_are_refused(folder):
    with pytest.raises(DataError, match=r"toys: no images here \(.*\.png"):
        from_folder(folder, None)
    with pytest.raises(ArgumentError, match=r"path = .*nowhere.*: needs a folder"):
        from_folder(folder / "nowhere")
