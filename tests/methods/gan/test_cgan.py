"""CGAN: losses against independent computations, whose gradients go where, its labels, and whole runs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import unweave as uw
from unweave.cli import main
from unweave.data.batches import Batch
from unweave.errors import ArgumentError, DataError
from unweave.methods import (
    Decodes,
    DecodesLabels,
    Encodes,
    GeneratesFromNoise,
    HasCategories,
    LabelLayout,
    LabelledMethod,
    LearnsFromLabels,
    Player,
    Samples,
    Terms,
    register_method,
)
from unweave.study.planning import plan_jobs
from unweave.study.spec import Study

SMALL = {"noise_size": 4, "width": 4}
ONE_HOT = {"encoding": "one_hot", "names": ["size"]}
SHORT = {"batch_size": 6, "pictures": False}


def create(data, **settings):
    return uw.methods.create("cgan", data, **{"seed": 1, "labels": ONE_HOT} | SMALL | settings)


def play(method, data, n=6):
    """The result of ``begin`` on one batch."""
    batch = method.batches(data).draw(0, n, seed=0)
    return method.begin(batch, 0, torch.Generator().manual_seed(2))


def gradients(method, terms):
    """The names of the weights that a loss reaches."""
    method.zero_grad(set_to_none=True)
    terms.loss.backward()
    return {name for name, value in method.named_parameters() if value.grad is not None}


# --- losses -----------------------------------------------------------------------------------------


def test_the_losses_are_those_of_the_joint_of_images_and_labels(digits):
    method = create(digits)
    game = play(method, digits)
    channels = game.u[:, :, None, None] * torch.ones(1, 1, 28, 28)
    real = method.discriminator(torch.cat([game.real, channels], 1))
    fake = method.discriminator(torch.cat([game.fake, channels], 1))
    ones, zeros = torch.ones(6), torch.zeros(6)
    expected = (
        F.binary_cross_entropy_with_logits(real, ones) + F.binary_cross_entropy_with_logits(fake, zeros)
    ) / 2
    torch.testing.assert_close(method.discriminator_terms(game).loss, expected)
    torch.testing.assert_close(
        method.generator_terms(game).loss, F.binary_cross_entropy_with_logits(fake, ones)
    )


def test_images_are_generated_for_the_labels_of_the_batch(digits):
    method = create(digits)
    batch = method.batches(digits).draw(0, 6, seed=0)
    game = method.begin(batch, 0, torch.Generator().manual_seed(2))
    assert torch.equal(game.u, F.one_hot(torch.tensor(batch.factors[:, 0]), 4).float())
    noise = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    expected = torch.sigmoid(method.generator.network(torch.cat([game.u, noise], 1)))
    torch.testing.assert_close(game.fake, expected)


def test_each_loss_reaches_its_own_weights_alone(digits):
    method = create(digits)
    reached = gradients(method, method.discriminator_terms(play(method, digits)))
    assert reached == {name for name, _ in method.named_parameters() if name.startswith("discriminator.")}
    reached = gradients(method, method.generator_terms(play(method, digits)))
    assert reached == {name for name, _ in method.named_parameters() if name.startswith("generator.")}
    players = {player.name: {id(p) for p in player.parameters} for player in method.players()}
    assert not players["discriminator"] & players["model"]
    assert len(players["discriminator"] | players["model"]) == len(list(method.parameters()))


# --- capabilities -----------------------------------------------------------------------------------


def test_it_decodes_labels_and_samples_and_does_not_encode(digits):
    method = create(digits).eval()
    for capability in (Decodes, DecodesLabels, Samples, GeneratesFromNoise, HasCategories, LearnsFromLabels):
        assert isinstance(method, capability), capability
    assert not isinstance(method, Encodes)
    assert method.categories == (slice(0, 4),)
    u = torch.eye(4)
    zeros = torch.zeros(4, 4)
    assert torch.equal(method.decode(u), method.decode(torch.cat([u, zeros], 1)))
    assert torch.equal(method.decode(u), method.generate(u, zeros))
    with pytest.raises(ArgumentError, match=r"needs labels \(n, 4\), or labels and noise \(n, 8\)"):
        method.decode(torch.zeros(1, 5))


def test_sampled_labels_are_those_of_the_data(digits):
    method = create(digits)
    labels = method.sample_labels(200, torch.Generator().manual_seed(0))
    assert torch.equal(labels.sum(1), torch.ones(200))
    assert 20 < labels[:, 0].sum() < 80  # a quarter of the images has each of the four


def test_a_run_cannot_encode_and_says_so(digits):
    run = uw.train(create(digits), digits, 1, **SHORT)
    with pytest.raises(ArgumentError, match=r"cgan.*cannot encode images"):
        run.encode(digits)
    assert run.decode(np.eye(4)).shape == (4, 28, 28, 1)


# --- labels -----------------------------------------------------------------------------------------


def test_labels_that_are_missing_are_refused_before_any_work(digits):
    bare = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    with pytest.raises(ArgumentError, match="data"):
        uw.methods.create("cgan", bare)
    with pytest.raises(ArgumentError, match="cgan needs the labels of every row"):
        create(digits, labels={"labelled": 10})
    some = np.where(np.arange(40) < 5, np.nan, 0.5)
    with pytest.raises(ArgumentError, match="cgan needs the labels of every row"):
        create(digits, labels=some)
    method = create(digits)
    with pytest.raises(ArgumentError, match="cgan needs labels of shape"):
        method.begin(Batch(torch.rand(4, 1, 28, 28)), 0, torch.Generator())
    with pytest.raises(ArgumentError, match=r"labels.*infogan does not learn from labels"):
        uw.methods.create("infogan", digits, labels="size")


def test_noise_of_size_0_and_batches_of_one_are_refused(digits):
    with pytest.raises(ArgumentError, match="noise_size = 0"):
        create(digits, noise_size=0)
    method = create(digits)
    with pytest.raises(ArgumentError, match="batch_size = 1"):
        uw.train(method, digits, 1, batch_size=1)


def test_an_array_of_labels_has_to_be_given_again(digits, tmp_path):
    array = np.arange(40) % 3
    method = create(digits, labels={"array": array, "encoding": "one_hot"})
    run = uw.train(method, digits, 2, out=tmp_path / "run", **SHORT)
    loaded = uw.load(tmp_path / "run")
    assert np.array_equal(loaded.sample(3), run.sample(3))
    with pytest.raises(ArgumentError, match="needs again"):
        loaded.method.labels_for(digits)
    again = uw.load(tmp_path / "run", labels=array)
    assert np.array_equal(again.method.labels_for(digits).of([4]), [[0, 1, 0]])


# --- runs -------------------------------------------------------------------------------------------


def test_a_run_resumes_to_the_same_bits(digits, tmp_path):
    whole = uw.train(create(digits, ema=0.9), digits, 4, **SHORT)
    uw.train(create(digits, ema=0.9), digits, 2, out=tmp_path / "run", **SHORT)
    resumed = uw.train(create(digits, ema=0.9), digits, 4, out=tmp_path / "run", **SHORT)
    loaded = uw.load(tmp_path / "run")
    for name, value in whole.method.state_dict().items():
        assert torch.equal(value, resumed.method.state_dict()[name]), name
        assert torch.equal(value, loaded.method.state_dict()[name]), name
    assert loaded.spec.method.labels == whole.spec.method.labels
    assert loaded.spec.identity == resumed.spec.identity


def test_the_command_line_trains_it_with_labels(digits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "images"
    folder.mkdir()
    for row in range(8):
        Image.fromarray(digits.images([row])[0, ..., 0]).save(folder / f"{row}.png")
    lines = "".join(f"{row}.png,{row % 2}\n" for row in range(8))
    (folder / "factors.csv").write_text("file,shape\n" + lines)
    options = ["--steps", "2", "--batch-size", "4", "--set", "width=4", "--label-encoding", "one_hot"]
    with pytest.raises(SystemExit) as stopped:
        main(["train", "cgan", "--data", "images", "--size", "28", *options, "--out", "run", "--no-pictures"])
    assert stopped.value.code == 0
    assert uw.load("run").spec.method.labels["columns"][0]["one_hot"]


def test_a_study_gives_labels_to_methods_that_learn_from_them():
    grid = {"data": "mnist", "method": ["cgan", "infogan"], "seed": 0}
    study = Study(name="s", training={"labels": {"encoding": "one_hot"}}, runs=grid)
    with_labels, without = plan_jobs(study)
    assert with_labels.training["labels"] == {"encoding": "one_hot"}
    assert "labels" not in without.training
    (other,) = plan_jobs(Study(name="s", runs={**grid, "method": "cgan"}))
    assert other.identity != with_labels.identity
    with pytest.raises(DataError, match="infogan does not take it: it does not learn from labels"):
        plan_jobs(Study(name="s", runs={**grid, "labels": "class"}))


# --- a user's own method ----------------------------------------------------------------------------


def test_a_users_class_that_takes_labels_learns_from_them(digits):
    @register_method("class_mean")
    class ClassMean(LabelledMethod):
        """Mean image of each class."""

        def __init__(self, image_shape: tuple[int, ...], labels: LabelLayout, scale: float = 1.0) -> None:
            super().__init__(labels)
            height, width, channels = image_shape
            self.means = torch.nn.Parameter(torch.zeros(labels.width, channels * height * width))

        def begin(self, batch, step, generator):
            u = self.label_supervision.check_batch(batch).u
            return (batch.images.flatten(1) - u @ self.means).square().sum(1).mean()

        def players(self):
            return [Player("model", [self.means], lambda error: Terms.of(error=(error, 1.0)))]

    info = uw.methods.describe("class_mean")
    assert info.labels == "all"
    assert dict(info.hyperparameters) == {"scale": 1.0}
    method = uw.methods.create("class_mean", digits, labels=ONE_HOT)
    run = uw.train(method, digits, 2, **SHORT)
    assert run.method.means.abs().sum() > 0
    with pytest.raises(ArgumentError, match="constructor that takes labels"):
        register_method("no_labels", labels="all")(type("NoLabels", (Plain,), {}))


class Plain(uw.methods.Method):
    def __init__(self, image_shape: tuple[int, ...]) -> None:
        super().__init__()
