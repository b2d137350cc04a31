import pytest

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
