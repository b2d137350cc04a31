import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.errors import ArgumentError, MissingDataError


@pytest.mark.parametrize("name", uw.data.names())
def test_every_data_set_is_fully_described(name):
    recipe = uw.data.find(name)
    assert recipe.name == name
    for fact in ("title", "summary", "images", "factors", "licence", "homepage", "citation"):
        assert getattr(recipe, fact), fact
    for file in recipe.files:
        assert file.url.startswith("http")


@pytest.mark.parametrize("name", [name for name in uw.data.names() if not uw.data.find(name).offline])
def test_without_its_files_a_data_set_says_what_to_do(name, data_folder):
    with pytest.raises(MissingDataError, match=f"unweave data get {name}") as caught:
        uw.data.load(name)
    message = str(caught.value)
    assert any(
        file.url in message and str(data_folder / name / file.name) in message
        for file in uw.data.find(name).files
    )
    assert not (data_folder / name).exists()


def test_every_data_set_of_the_papers_is_there():
    expected = "dsprites color_dsprites noisy_dsprites scream_dsprites small_norb cars3d shapes3d mpi3d_toy "
    expected += "mpi3d_realistic mpi3d_real mnist fashion_mnist celeba chairs3d coil20 isomap_faces "
    expected += "rooms3d solids3d pendulum"
    assert set(expected.split()) <= set(uw.data.names())


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ArgumentError, match="did you mean 'dsprites'"):
        uw.data.load("dsprite")
    with pytest.raises(ArgumentError, match="known: "):
        uw.data.load("qqqqqq")


@pytest.fixture
def registered():
    """Registers data sets that are forgotten after the test."""
    before = set(uw.data.registry.RECIPES)
    yield uw.data.register_data
    for name in set(uw.data.registry.RECIPES) - before:
        uw.data.registry.RECIPES.unregister(name)


def test_a_registered_function_is_a_data_set(registered):
    @registered("stripes", label="Stripes", licence="CC0-1.0")
    def stripes():
        """Bright rows.

        More about them.
        """
        return np.arange(8, dtype=np.uint8)[:, None, None] * np.ones((4, 4), np.uint8), {"level": range(8)}

    data = uw.data.load("stripes")
    assert (data.name, len(data), data.image_shape, data.space.names) == ("stripes", 8, (4, 4, 1), ("level",))
    recipe = uw.data.find("stripes")
    assert (recipe.title, recipe.label, recipe.summary) == ("stripes", "Stripes", "Bright rows.")
    assert (recipe.images, recipe.factors, recipe.offline) == ("", "", True)
    assert "stripes" in uw.data.names()
    assert stripes()[0].shape == (8, 4, 4)  # the decorator leaves the function as it is


def test_a_registered_function_may_return_a_data_set_or_images_alone(registered, data_folder):
    asked = []

    @registered("simulated")
    def simulated(folder):
        asked.append(folder)
        return uw.data.from_function(["a", "b"], [3, 2], lambda factors: factors)

    @registered("unlabelled")
    def unlabelled():
        return np.zeros((5, 4, 4, 3), np.uint8)

    data = uw.data.load("simulated")
    assert (data.name, len(data)) == ("simulated", 6)
    uw.data.load("simulated", "elsewhere")
    assert asked == [data_folder / "simulated", Path("elsewhere")]
    assert repr(uw.data.load("unlabelled")) == "Dataset(unlabelled: 5 of 4x4x3; no factors)"


def test_what_cannot_be_registered_is_refused(registered):
    with pytest.raises(ArgumentError, match="name = 'dsprites': there is a data set of this name already"):
        registered("dsprites")(lambda: None)
    with pytest.raises(ArgumentError, match=r"name = 'my set': .* letters, digits and _"):
        registered("my set")(lambda: None)
    with pytest.raises(ArgumentError, match="takes size; allowed is folder alone"):
        registered("sized")(lambda size: None)


def test_a_folder_is_loaded_by_its_path(tmp_path, data_folder):
    images = tmp_path / "images"
    images.mkdir()
    for number in range(4):
        Image.new("L", (6, 6), number).save(images / f"{number}.png")
    for path in (images, str(images)):
        assert repr(uw.data.load(path)) == "Dataset(images: 4 of 6x6x1; no factors)"
    (images / "factors.csv").write_text("file,level\n" + "".join(f"{n}.png,{n}\n" for n in range(4)))
    assert uw.data.load(images).space.names == ("level",)
    assert uw.data.load(images, image_size=3).image_shape == (3, 3, 1)
    with pytest.raises(ArgumentError, match="folder = 'elsewhere'"):
        uw.data.load(images, "elsewhere")
    with pytest.raises(ArgumentError, match="there is no such folder"):
        uw.data.load(tmp_path / "nowhere")


def test_listing_all_data_sets_needs_no_reader_of_files():
    program = (
        "import sys, unweave.data as data; [data.find(name) for name in data.names()]; "
        "print(sorted({'torch', 'h5py', 'scipy', 'PIL', 'numba', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
