"""A run becomes a published model, which loads as it was scored."""

import json

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError, DataError, UnweaveError
from unweave.tensor_file import read_tensors
from unweave.training.manifest import MANIFEST, Manifest
from unweave.zoo.command import command_of

SMALL = uw.zoo.Evaluation("paper", 0, 60, 30, {}, {})


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    factors = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(-1, 2)
    images = np.zeros((64, 8, 8, 1), np.uint8)
    for image, (row, column) in zip(images, factors, strict=True):
        image[row, column] = 255
    images[:, 0, 0, 0] += rng.integers(0, 20, 64, np.uint8)
    return uw.data.from_arrays(images, {"row": factors[:, 0], "column": factors[:, 1]}, name="dots")


def train(data, folder, name="vae", steps=20, **options):
    method = uw.methods.create(name, data, latent_size=3, architecture="mlp", **options)
    return uw.train(method, data, steps=steps, batch_size=16, learning_rate=1e-3, out=folder, pictures=False)


def publish(run, data, folder, **options):
    given = {"metrics": ["mig", "reconstruction_error"], "full": SMALL, "quick": SMALL, **options}
    return uw.zoo.publish(run, "dots/vae", folder, "Dots.", data=data, **given)


def test_weights_of_16_bits_load_and_score_as_the_card_says(data, tmp_path):
    run = train(data, tmp_path / "run")
    card = publish(run, data, tmp_path / "models")
    loaded = uw.load(tmp_path / "models" / "dots" / "vae")
    for (name, weight), stored in zip(run.method.named_parameters(), loaded.method.parameters(), strict=True):
        assert stored.dtype == torch.float32
        assert torch.equal(stored, weight.half().float()), name
    scores = uw.evaluate(loaded, data, ["mig", "reconstruction_error"], num_train=60, num_test=30)
    assert card.full.scores["mig"] == scores["mig"].value
    assert card.full.scores["reconstruction_error"] == scores["reconstruction_error"].value
    assert card.change < 0.005
    comparisons = uw.zoo.evaluate(str(card.folder), data)
    assert all(each.same and each.card == each.value for each in comparisons)
    assert len(comparisons) == len(card.full.scores)


def test_the_folder_is_complete_and_nothing_else_is_in_it(data, tmp_path):
    card = publish(train(data, tmp_path / "run"), data, tmp_path / "models")
    Manifest.read(card.folder / MANIFEST).check(card.folder)
    pictures = ["reconstructions.png", "traversals.png", "factors.png"]
    assert card.pictures == pictures
    expected = ["card.json", "history.jsonl", MANIFEST, "spec.yaml", "weights.safetensors", *pictures]
    assert sorted(path.name for path in card.folder.iterdir()) == sorted(expected)
    assert uw.zoo.card(str(card.folder)) == card
    assert [path.name for path in card.folder.parent.iterdir()] == ["vae"]


def test_classes_alone_are_no_factors_to_move(data, tmp_path):
    classes = uw.data.from_arrays(data.images(range(64)), {"class": np.arange(64) // 8}, name="dots")
    card = publish(train(classes, tmp_path / "run"), classes, tmp_path / "models")
    assert card.pictures == ["reconstructions.png", "traversals.png"]


def test_an_adversary_is_left_out_and_the_rest_is_the_same(data, tmp_path):
    run = train(data, tmp_path / "run", "factor_vae", steps=2)
    card = publish(run, data, tmp_path / "models", dtype="float32")
    assert card.left_out == ["discriminator"]
    entries, _ = read_tensors(card.folder / "weights.safetensors")
    assert not any("discriminator" in name for name in entries)
    assert card.num_weights == sum(int(np.prod(entry.shape)) for entry in entries.values())
    loaded = uw.load(card.folder)
    for name, weight in run.method.state_dict().items():
        if name in entries:
            assert torch.equal(loaded.method.state_dict()[name], weight), name
    np.testing.assert_array_equal(loaded.encode(data), run.encode(data))


def test_a_file_cannot_leave_out_what_it_does_not_name(data, tmp_path):
    run = train(data, tmp_path / "run", steps=1)
    from unweave.training.checkpoint import load_weights, save_weights

    name = next(name for name, _ in run.method.named_parameters())
    save_weights(tmp_path / "a.safetensors", run.method, run.spec, 1, left_out=[name])
    load_weights(tmp_path / "a.safetensors", run.method, run.spec)
    from unweave.tensor_file import write_tensors

    entries, notes = read_tensors(tmp_path / "a.safetensors")
    del notes["left_out"], notes["sha256"]
    write_tensors(tmp_path / "b.safetensors", entries, notes)
    with pytest.raises(DataError, match="does not fit"):
        load_weights(tmp_path / "b.safetensors", run.method, run.spec)
    write_tensors(tmp_path / "c.safetensors", entries, notes | {"left_out": "{"})
    with pytest.raises(DataError, match="damaged"):
        load_weights(tmp_path / "c.safetensors", run.method, run.spec)


def test_weights_that_16_bits_cannot_hold_stay_as_they_are(data, tmp_path):
    run = train(data, tmp_path / "run", steps=1)
    with torch.no_grad():
        last = [weight for name, weight in run.method.named_parameters() if "decoder" in name][-1]
        last += 1e6
    card = publish(run, data, tmp_path / "models")
    assert card.dtype == "float32"


def test_an_earlier_model_is_replaced_and_other_folders_are_not(data, tmp_path):
    run = train(data, tmp_path / "run", steps=1)
    publish(run, data, tmp_path / "models")
    other = train(data, tmp_path / "other", steps=2)
    assert publish(other, data, tmp_path / "models").steps == 2
    (tmp_path / "elsewhere" / "dots" / "vae").mkdir(parents=True)
    with pytest.raises(ArgumentError, match="not a published model"):
        publish(run, data, tmp_path / "elsewhere")


def test_what_cannot_be_published(data, tmp_path):
    run = train(data, tmp_path / "run", steps=1)
    for name in ("dots", "../up/vae", "Dots/vae", ""):
        with pytest.raises(ArgumentError, match="DATA/METHOD"):
            uw.zoo.publish(run, name, tmp_path / "models", data=data)
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    in_memory = uw.train(method, data, steps=1, batch_size=4)
    with pytest.raises(ArgumentError, match="with a directory"):
        uw.zoo.publish(in_memory, "dots/vae", tmp_path / "models", data=data)
    with pytest.raises(DataError, match="not a run directory"):
        uw.zoo.publish(tmp_path / "nothing", "dots/vae", tmp_path / "models")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"steps": -1},
        {"full": 3},
        {"quick": {}},
        {"pictures": "a.png"},
        {"dtype": "float8"},
        {"more": 1},
    ],
)
def test_strange_cards_are_refused(data, tmp_path, change):
    folder = publish(train(data, tmp_path / "run", steps=1), data, tmp_path / "models").folder
    content = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(content | change))
    with pytest.raises(DataError, match=r"card\.json: not a card"):
        uw.zoo.card(str(folder))


def test_a_run_without_a_card(data, tmp_path):
    train(data, tmp_path / "run", steps=1)
    with pytest.raises(DataError, match="no card"):
        uw.zoo.card(str(tmp_path / "run"))


def test_runs_that_no_command_can_repeat(data, tmp_path):
    assert command_of(train(data, tmp_path / "run", steps=1).spec) is None


@pytest.mark.parametrize(
    ("part", "given", "message"),
    [
        ("scores", {"mig.best": 1.0}, "has a score 'mig.best', which no metric gives"),
        ("scores", {"migg": 1.0}, "did you mean 'mig'"),
        ("params", {"mig": 5}, "params: mig = 5: needs a mapping"),
        ("params", {"mig": {"bogus": 5}}, "parameter of mig = 'bogus'"),
    ],
)
def test_cards_of_scores_that_cannot_be_computed(data, tmp_path, part, given, message):
    card = publish(train(data, tmp_path / "run", steps=1), data, tmp_path / "models", metrics=["mig"])
    path = card.folder / "card.json"
    content = json.loads(path.read_text())
    content["quick"][part].update(given)
    path.write_text(json.dumps(content))
    with pytest.raises(UnweaveError) as error:
        uw.zoo.evaluate(str(card.folder), data, quick=True)
    assert message in str(error.value)


def test_the_command_has_every_digit_of_the_learning_rate():
    data = uw.data.load("pendulum")
    method = uw.methods.create("vae", data, latent_size=3, reconstruction="mse")
    for rate in (0.00123456789, {"peak": 0.00123456789, "warmup": 2}):
        command = command_of(uw.training.plan(method, data, steps=10, learning_rate=rate))
        assert "--learning-rate 0.00123456789" in command


@pytest.mark.parametrize(
    ("points", "quick", "tolerance"), [(40, False, 0.005), (60, False, 0.02), (40, True, 0.02)]
)
def test_scores_of_few_points_have_a_larger_tolerance(points, quick, tolerance, data, tmp_path):
    """64 images are fewer than 60 + 30 points; quick scores are always of few."""
    settings = uw.zoo.Evaluation("paper", 0, points, points - 30, {}, {})
    card = publish(train(data, tmp_path / "run"), data, tmp_path / "models", full=settings, quick=settings)
    comparisons = uw.zoo.evaluate(str(card.folder), data, quick=quick)
    assert {each.tolerance for each in comparisons} == {tolerance}
