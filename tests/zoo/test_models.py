"""The models of the package: small, complete, and with the scores of their cards."""

import os
import shlex
from pathlib import Path

import pytest

import unweave as uw
from unweave.cli.app import app
from unweave.training.addresses import packaged_models
from unweave.training.manifest import MANIFEST, Manifest

NAMES = uw.zoo.names()
FILES = {"mnist": "mnist", "coil20": "coil-20"}
MOST_BYTES = 10_000_000
ROOT = Path(__file__).parents[2]


@pytest.fixture
def data_of(prepared_data, data_folder, monkeypatch):
    """The data set of a model: dSprites as prepared for all tests, others from the files that tests may have."""

    def load(name):
        data = uw.zoo.card(name).spec.data
        if data["name"] in FILES:
            files = os.environ.get("UNWEAVE_TEST_FILES")
            if not files or not (Path(files) / FILES[data["name"]]).is_dir():
                pytest.skip(f"needs the files of {data['name']}")
            folder = data_folder / data["name"]
            folder.mkdir(parents=True)
            for path in (Path(files) / FILES[data["name"]]).iterdir():
                if path.is_file() and path.name[0] != ".":  # a folder, or a lock, would be written to
                    (folder / path.name).symlink_to(path)
        else:
            monkeypatch.setenv("UNWEAVE_DATA", str(prepared_data))
        return uw.data.load(data["name"], image_size=data["image_shape"][0], split=data.get("split"))

    return load


def test_what_the_package_has():
    """The data sets and methods that the page promises."""
    assert {"dsprites/vae", "dsprites/beta_tcvae", "dsprites/factor_vae", "dsprites/full_vae"} <= set(NAMES)
    assert {name.partition("/")[0] for name in NAMES} == {"dsprites", "rooms3d", "mnist", "coil20"}


def test_the_page_has_the_table_and_a_picture_of_each(capsys):
    """docs/zoo.md shows what ``unweave zoo list --format md`` prints."""
    app(["zoo", "list", "--format", "md"], standalone_mode=False)
    page = (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out in page
    for name in NAMES:
        assert f"](../src/unweave/zoo/models/{name}/" in page


def test_16_bits_move_no_score():
    cards = [uw.zoo.card(name) for name in NAMES]
    assert {card.dtype for card in cards} == {"float16"}
    assert max(card.change for card in cards) < 0.005


def test_all_of_them_are_small():
    files = [path for folder in packaged_models().values() for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_complete(name):
    folder = packaged_models()[name]
    manifest = Manifest.read(folder / MANIFEST)
    manifest.check(folder)
    assert {path.name for path in folder.iterdir()} == {*manifest.files, MANIFEST}
    card = uw.zoo.card(name)
    assert card.name == name
    assert card.sha256 == manifest.files["weights.safetensors"].sha256
    assert set(card.pictures) <= set(manifest.files)
    assert card.summary
    assert uw.load(card.address).step == card.steps == card.spec.steps


@pytest.mark.parametrize("name", NAMES)
def test_the_command_of_the_card_is_that_of_the_run(name, monkeypatch, data_of):
    """The command line, up to where it would train, comes to the spec of the run."""
    data_of(name)
    card = uw.zoo.card(name)
    planned = []

    class StopError(Exception):
        pass

    def stop(method, data, **options):
        del options["out"], options["callbacks"]
        training = {key: options[key] for key in ("steps", "batch_size", "learning_rate", "seed")}
        planned.append(uw.training.plan(method, data, **training))
        raise StopError

    monkeypatch.setattr("unweave.train", stop)
    program, *arguments = shlex.split(card.command)
    assert program == "unweave"
    with pytest.raises(StopError):
        app(arguments, standalone_mode=False)
    assert planned[0].identity == card.spec.identity


@pytest.mark.parametrize("name", NAMES)
def test_quick_scores_are_those_of_the_card(name, data_of):
    data = data_of(name)
    different = [each for each in uw.zoo.evaluate(name, data, quick=True) if not each.same]
    assert not different


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_card(name, data_of):
    data = data_of(name)
    different = [each for each in uw.zoo.evaluate(name, data) if not each.same]
    assert not different
