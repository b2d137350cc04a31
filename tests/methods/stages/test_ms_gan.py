"""MS-GAN: its losses, supervised and not, what it keeps of the first stage, and what it refuses."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import unweave as uw
from unweave.data.batches import Batch
from unweave.errors import ArgumentError
from unweave.methods import (
    Decodes,
    DecodesStages,
    Encodes,
    GeneratesFromNoise,
    LearnsFromLabels,
    Samples,
)
from unweave.networks import adain

C, Z = 3, 2
SHORT = {"batch_size": 6, "pictures": False}
SMALL = {"noise_size": Z, "width": 4}


@pytest.fixture(autouse=True)
def _few_channels(monkeypatch):
    """G as it is, with fewer channels."""
    monkeypatch.setattr(adain, "CHANNELS", (4, 4, 4, 4, 4))


@pytest.fixture(scope="module")
def data():
    """Images of a bright square, of 8 heights and 8 widths."""
    images = np.zeros((64, 28, 28, 1), np.uint8)
    row, column = np.divmod(np.arange(64), 8)
    for image, i, j in zip(images, row, column, strict=True):
        image[2 * i : 2 * i + 6, 2 * j : 2 * j + 6] = 255
    return uw.data.from_arrays(images, {"row": row, "column": column}, name="squares")


@pytest.fixture(scope="module")
def encoding(data):
    """A first stage that encodes."""
    return uw.train(uw.methods.create("beta_vae", data, latent_size=C), data, 2, **SHORT)


@pytest.fixture(scope="module")
def labelled(data):
    """A first stage whose codes are labels."""
    settings = {"noise_size": 1, "width": 4, "labels": {"names": ["row"], "encoding": "one_hot"}}
    return uw.train(uw.methods.create("cgan", data, **settings), data, 2, **SHORT)


@pytest.fixture(params=["encoding", "labelled"])
def first(request):
    return request.getfixturevalue(request.param)


def create(data, first, **settings):
    return uw.methods.create("ms_gan", data, first=first, **{"seed": 1} | SMALL | settings)


def play(method, data, n=6):
    batch = method.batches(data).draw(0, n, seed=0)
    return batch, method.begin(batch, 0, torch.Generator().manual_seed(2))


def reached(method, terms):
    """The names of the weights that a loss reaches."""
    method.zero_grad(set_to_none=True)
    terms.loss.backward()
    return {name for name, value in method.named_parameters() if value.grad is not None}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


# --- the objective ----------------------------------------------------------------------------------


def test_the_losses_are_those_of_a_gan_given_y(data, first):
    method = create(data, first)
    batch, game = play(method, data)
    stage = method.first.method
    c = batch.u if method.first.supervised else stage.encode(batch.images).mean
    torch.testing.assert_close(game.y, stage.decode(c))
    noise = torch.randn(6, Z, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(game.fake, torch.sigmoid(method.generator.network(game.y, noise)))
    real = method.discriminator(torch.cat([batch.images, game.y], 1))
    fake = method.discriminator(torch.cat([game.fake, game.y], 1))
    ones, zeros = torch.ones(6), torch.zeros(6)
    expected = (
        F.binary_cross_entropy_with_logits(real, ones) + F.binary_cross_entropy_with_logits(fake, zeros)
    ) / 2
    torch.testing.assert_close(method.discriminator_terms(game).loss, expected)
    torch.testing.assert_close(
        method.generator_terms(game).loss, F.binary_cross_entropy_with_logits(fake, ones)
    )


def test_each_loss_reaches_its_own_weights_and_none_the_first_stage(data, first):
    method = create(data, first)
    names = {name for name, _ in method.named_parameters()}
    for player in method.players():
        found = reached(method, player.loss(play(method, data)[1]))
        network = "discriminator." if player.name == "discriminator" else "generator."
        assert found == {name for name in names if name.startswith(network)}
        assert all(parameter.requires_grad for parameter in player.parameters)
    assert not any(parameter.requires_grad for parameter in method.first.parameters())
    assert not method.train().first.training


def test_training_changes_the_second_stage_alone(data, first):
    method = create(data, first)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    uw.train(method, data, 2, **SHORT)
    after = method.state_dict()
    changed = {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"generator", "discriminator"}


def test_draws_of_c_give_other_y_than_its_mean(data, encoding):
    mean, draw = (play(create(data, encoding, y_from=source), data)[1].y for source in ("mean", "draw"))
    assert not torch.equal(mean, draw)


# --- capabilities -----------------------------------------------------------------------------------


def test_what_it_can_do_depends_on_its_first_stage(data, encoding, labelled):
    unsupervised, supervised = (create(data, first).eval() for first in (encoding, labelled))
    for method in (unsupervised, supervised):
        for capability in (Decodes, DecodesStages, Samples, GeneratesFromNoise):
            assert isinstance(method, capability), capability
    assert isinstance(unsupervised, Encodes)
    assert not isinstance(supervised, Encodes)
    assert isinstance(supervised, LearnsFromLabels)
    assert unsupervised.parts == {"c": slice(0, C)}
    images = play(unsupervised, data)[0].images
    torch.testing.assert_close(
        unsupervised.encode(images).mean, unsupervised.first.method.encode(images).mean
    )
    assert unsupervised.labels_for(data) is None
    assert [column.name for column in supervised.labels_for(data).columns] == ["row"]


def test_decoding_is_generation_with_noise_0(data, first):
    method = create(data, first).eval()
    codes, noise = method.sample_inputs(4, torch.Generator().manual_seed(0))
    assert codes.shape == (4, method.first.code_size)
    assert noise.shape == (4, Z)
    y = method.first.decode(codes)
    expected = torch.sigmoid(method.generator.network(y, torch.zeros(4, Z)))
    torch.testing.assert_close(method.decode(codes), expected)
    stages = method.decode_stages(codes)
    assert list(stages) == ["y", "x"]
    torch.testing.assert_close(stages["y"], y)
    torch.testing.assert_close(stages["x"], expected)
    torch.testing.assert_close(method.generate(codes, noise), method.refine(y, noise))
    assert method.sample(3).shape == (3, 1, 28, 28)


# --- runs -------------------------------------------------------------------------------------------


def test_a_run_resumes_to_the_same_bits_and_is_whole_in_one_folder(data, first, tmp_path):
    whole = uw.train(create(data, first, ema=0.9), data, 4, **SHORT)
    uw.train(create(data, first, ema=0.9), data, 2, out=tmp_path / "run", **SHORT)
    resumed = uw.train(create(data, first, ema=0.9), data, 4, out=tmp_path / "run", **SHORT)
    loaded = uw.load(tmp_path / "run")
    assert_same(whole.method.state_dict(), resumed.method.state_dict())
    assert_same(whole.method.state_dict(), loaded.method.state_dict())
    assert type(loaded.method) is type(whole.method)
    np.testing.assert_array_equal(loaded.sample(3), whole.sample(3))
    assert_same(loaded.method.first.method.state_dict(), first.method.state_dict())


def test_an_array_of_labels_is_that_of_the_first_stage(data, tmp_path):
    array = np.arange(64) % 3
    method = uw.methods.create("cgan", data, noise_size=1, width=4, labels=array)
    stage = uw.train(method, data, 1, out=tmp_path / "first", **SHORT)
    run = uw.train(create(data, stage), data, 1, out=tmp_path / "second", **SHORT)
    assert np.array_equal(run.method.label_array[:, 0], array)
    loaded = uw.load(tmp_path / "second", labels=array)
    expected = run.method.labels_for(data).of([0, 1, 2])
    assert np.array_equal(loaded.method.labels_for(data).of([0, 1, 2]), expected)


# --- what it refuses --------------------------------------------------------------------------------


def test_wrong_first_stages_are_refused_before_any_work(data, encoding):
    with pytest.raises(ArgumentError, match="first = None: needs the run of a first stage"):
        uw.methods.create("ms_gan", data, **SMALL)
    other = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8), name="dark")
    with pytest.raises(ArgumentError, match="was trained on other data"):
        create(other, encoding)
    with pytest.raises(ArgumentError, match="noise_size = 0"):
        create(data, encoding, noise_size=0)
    with pytest.raises(ArgumentError, match="ms_gan does not learn from labels"):
        create(data, encoding, labels="row")


def test_batches_without_labels_and_images_without_codes_are_refused(data, labelled):
    method = create(data, labelled)
    with pytest.raises(ArgumentError, match="has no labels"):
        method.begin(Batch(torch.rand(4, 1, 28, 28)), 0)
    run = uw.train(method, data, 1, **SHORT)
    with pytest.raises(ArgumentError, match=r"ms_gan.*cannot encode images"):
        run.encode(data)
    with pytest.raises(ArgumentError, match="cannot encode: its codes are labels"):
        method.first.encode(torch.rand(4, 1, 28, 28))
    with pytest.raises(ArgumentError, match="batch_size = 1"):
        uw.train(create(data, labelled), data, 1, batch_size=1)
