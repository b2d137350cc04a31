"""Contact sheets: the right images in the right places, for every kind of data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unweave.data.dataset import Dataset, from_grid, from_table
from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError, UnweaveError
from unweave.figures import check_picture_path, contact_sheet, gallery, save_picture
from unweave.figures.data_pictures import _traversals
from unweave.figures.tiles import draw_tiles

SPACE = FactorSpace(["x", "y"], [12, 3], value_names={"y": ["low", "middle", "high"]})


def grid(channels: int = 3) -> Dataset:
    """Image of (x, y): all pixels 20 x + 5 y."""
    value = SPACE.factors(np.arange(len(SPACE))) @ [20, 5]
    images = np.broadcast_to(value[:, None, None, None], (36, 16, 16, channels)).astype(np.uint8)
    return from_grid("toy", SPACE, images)


def simulator(shape: tuple[int, ...] = (50,), noisy: bool = False) -> Dataset:
    space = FactorSpace(["level", "kind"], [(-1.0, 1.0), 3])

    def function(factors, rng):
        out = np.zeros((len(factors), *shape))
        out += factors[:, 0].reshape(-1, *[1] * len(shape))
        return out + rng.normal(size=out.shape) if noisy else out

    return Dataset("waves", space, shape, None, function=function, stochastic_function=noisy)


def table() -> Dataset:
    """100 rows of one category, one angle: the combination (category 1, angle > 0.5) is missing."""
    rng = np.random.default_rng(0)
    space = FactorSpace(["category", "angle", "light"], [3, (0.0, 1.0), 5], categorical=["category"])
    factors = np.stack([rng.integers(3, size=100), rng.random(100), rng.integers(4, size=100)], axis=1)
    factors = factors[~((factors[:, 0] == 1) & (factors[:, 1] > 0.5))]
    return from_table(
        "table", space, rng.integers(256, size=(len(factors), 8, 8, 1)).astype(np.uint8), factors
    )


def unlabelled() -> Dataset:
    images = np.random.default_rng(0).integers(256, size=(7, 20, 10, 3)).astype(np.uint8)
    return from_table("faces", FactorSpace([], []), images, np.zeros((7, 0)))


ALL = [
    grid(),
    grid(1),
    simulator(),
    simulator(noisy=True),
    simulator((20, 2)),
    simulator((4, 5, 6)),
    table(),
    unlabelled(),
]


@pytest.mark.parametrize("data", ALL, ids=lambda data: f"{data.name}-{data.image_shape}")
def test_depends_on_the_seed_only(data: Dataset) -> None:
    first, again, other = (np.asarray(contact_sheet(data, seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()
    assert (first[:20] == 255).all()  # the margin
    assert (first[:, -20:] == 255).all()


def grey_values_in_last_row(sheet: Image.Image) -> list[int]:
    """Of the last row of tiles, each 96 pixels wide and of one grey: the greys from left to right."""
    line = np.asarray(sheet)[-80, :, 0]
    return [grey for grey in dict.fromkeys(line.tolist()) if (line == grey).sum() == 96]


def test_the_pixels_of_a_traversal_are_those_of_the_images() -> None:
    first, *others = grey_values_in_last_row(contact_sheet(grid(), columns=4))
    assert first % 20 == 0
    assert others == [first + 5, first + 10]


def test_traversal_of_a_grid() -> None:
    (x, x_names), (y, y_names) = _traversals(grid(), 5, np.random.default_rng(0))
    np.testing.assert_array_equal(x[:, 0], [0, 3, 6, 8, 11])
    assert x_names == ["0", "3", "6", "8", "11"]
    assert len(np.unique(x[:, 1])) == 1
    np.testing.assert_array_equal(y[:, 1], [0, 1, 2])
    assert y_names == ["low", "middle", "high"]
    assert y[0, 0] == y[2, 0]


def test_traversal_of_a_simulator() -> None:
    (level, _), (kind, _) = _traversals(simulator(), 5, np.random.default_rng(0))
    np.testing.assert_allclose(level[:, 0], [-1, -0.5, 0, 0.5, 1])
    np.testing.assert_array_equal(kind[:, 1], [0, 1, 2])


def test_traversal_of_a_table() -> None:
    data = table()
    rng = np.random.default_rng(3)
    base = data.factors([np.random.default_rng(3).integers(len(data))])[0]
    (category, _), (angle, _), (light, names) = _traversals(data, 6, rng)
    np.testing.assert_array_equal(data.factors(category)[:, 0], [0, 1, 2])
    angles = data.factors(angle)[:, 1]
    assert len(angles) == 6
    assert (np.diff(angles) > 0).all()
    np.testing.assert_array_equal(data.factors(light)[:, 2], [0, 1, 2, 3])  # 4 is never shown
    assert names == ["0", "1", "2", "3"]
    # Among the rows of its value, each is the nearest to the chosen one in the other factors.
    everything = data.factors(np.arange(len(data)))
    away = (everything[:, 0] != base[0]) + np.abs(everything[:, 1] - base[1])
    for row in light:
        same = everything[:, 2] == everything[row, 2]
        assert away[row] == pytest.approx(away[same].min())


def test_what_is_drawn_is_held_along_a_traversal() -> None:
    def brighten(images, rng):
        return (images // 5 + rng.integers(200, size=(len(images), 1, 1, 1))).astype(np.uint8)

    first, *others = grey_values_in_last_row(contact_sheet(grid().with_parts(noise=brighten), columns=3))
    assert others == [first + 1, first + 2]


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((64, 64, 1), (128, 128)),
        ((28, 28, 1), (84, 84)),
        ((128, 128, 3), (128, 128)),
        ((218, 178, 3), (78, 96)),
    ],
)
def test_tiles(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    images = np.zeros((2, *shape), np.uint8)
    data = from_grid("toy", FactorSpace(["x"], [2]), images)
    assert [tile.size for tile in draw_tiles(data, [images])[0]] == [size, size]


def test_tiles_repeat_pixels() -> None:
    images = np.random.default_rng(0).integers(256, size=(1, 32, 32, 3)).astype(np.uint8)
    tile = np.asarray(draw_tiles(from_grid("toy", FactorSpace(["x"], [1]), images), [images])[0][0])
    np.testing.assert_array_equal(tile, images[0].repeat(3, axis=0).repeat(3, axis=1))


def test_gallery() -> None:
    picture = gallery(ALL, columns=6)
    assert picture.width > 6 * 96
    with pytest.raises(ArgumentError, match="at least one"):
        gallery([])


@pytest.mark.parametrize("columns", [0, -1])
def test_columns(columns: int) -> None:
    with pytest.raises(ArgumentError, match="columns"):
        contact_sheet(grid(), columns=columns)


def test_no_images() -> None:
    empty = from_table("empty", FactorSpace([], []), np.zeros((0, 8, 8, 1), np.uint8), np.zeros((0, 0)))
    with pytest.raises(ArgumentError, match="no images"):
        contact_sheet(empty)


def test_long_names_are_shortened() -> None:
    space = FactorSpace(["a_very_long_name_" * 10], [2])
    data = from_grid("toy", space, np.zeros((2, 32, 32, 1), np.uint8))
    assert contact_sheet(data, columns=2).width < 600


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "PNG"])
def test_save_picture(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / "new" / f"sheet.{suffix}"
    assert save_picture(Image.new("RGB", (5, 4)), target) == target
    with Image.open(target) as read:
        assert read.size == (5, 4)
    assert [path.name for path in target.parent.iterdir()] == [target.name]


@pytest.mark.parametrize("name", ["sheet.txt", "sheet", "sheet.npz"])
def test_save_picture_refuses(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArgumentError, match=r"\.png"):
        save_picture(Image.new("RGB", (5, 4)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_save_picture_failures(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ArgumentError, match="is a folder"):
        check_picture_path(tmp_path / "folder.png")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnweaveError, match="cannot be written"):
        save_picture(Image.new("RGB", (5, 4)), tmp_path / "file" / "sheet.png")
