"""Jacobian supervision: its loss by an independent computation, what it learns, and what it refuses."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import Batch, to_tensor
from unweave.errors import ArgumentError
from unweave.methods import Decodes, DecodesStages, Encodes, Samples

C, Z = 3, 2
SHORT = {"batch_size": 6, "pictures": False}


@pytest.fixture(scope="module")
def data():
    images = np.zeros((64, 28, 28, 1), np.uint8)
    row, column = np.divmod(np.arange(64), 8)
    for image, i, j in zip(images, row, column, strict=True):
        image[2 * i : 2 * i + 6, 2 * j : 2 * j + 6] = 255
    return uw.data.from_arrays(images, {"row": row, "column": column}, name="squares")


@pytest.fixture(scope="module")
def teacher(data):
    return uw.train(uw.methods.create("beta_vae", data, latent_size=C), data, 2, **SHORT)


def create(data, teacher, **settings):
    return uw.methods.create(
        "jacobian_supervision", data, first=teacher, **{"seed": 1, "latent_size": Z} | settings
    )


def test_the_loss_is_that_of_the_docstring(data, teacher):
    method = create(data, teacher).double()
    x = to_tensor(data.images(np.arange(5))).double()
    terms = method.loss(method.begin(Batch(x), 0))
    stage = method.first.method
    of_teacher = stage.encoder(x)[0]
    images = torch.sigmoid(stage.decoder(of_teacher))
    codes = method.encoder(x)[0]
    c, z = codes[:, :C], codes[:, C:]
    expected = dict.fromkeys(("reconstruction", "code_match", "jacobian_match"), 0.0)
    for i in range(5):
        j = (i - 1) % 5
        own = torch.sigmoid(method.decoder(codes[i : i + 1]))
        moved = torch.sigmoid(method.decoder(torch.cat([c[j], z[i]])[None]))
        expected["reconstruction"] += ((x[i] - own[0]) ** 2).mean() / 5
        expected["code_match"] += ((c[i] - of_teacher[i]) ** 2).mean() / 5
        change = (moved - own)[0] - (images[j] - images[i])
        expected["jacobian_match"] += (change**2).mean() / 5
    centred = (c - c.mean(0)).T @ (z - z.mean(0)) / 5
    expected["cross_covariance"] = (centred**2).sum().sqrt()
    for name, value in expected.items():
        torch.testing.assert_close(terms.values[name], value)
    assert terms.weights == {
        "reconstruction": 1.0,
        "code_match": 0.25,
        "jacobian_match": 0.1,
        "cross_covariance": 1e-3,
    }
    assert method.players()[0].optimiser.learning_rate == 3e-4


def test_nothing_reaches_the_teacher(data, teacher):
    method = create(data, teacher)
    before = {name: value.clone() for name, value in method.first.state_dict().items()}
    (player,) = method.players()
    player.loss(method.begin(method.batches(data).draw(0, 6, seed=0), 0)).loss.backward()
    reached = {name for name, value in method.named_parameters() if value.grad is not None}
    assert {name.split(".")[0] for name in reached} == {"encoder", "decoder"}
    assert len(reached) == len(player.parameters)
    uw.train(method, data, 3, **SHORT)
    for name, value in method.first.state_dict().items():
        assert torch.equal(before[name], value), name


def test_the_student_learns_the_teachers_codes_and_the_images(data, teacher):
    method = create(data, teacher)
    with torch.no_grad():  # of two steps of training the teacher's codes are near zero
        method.first.method.encoder.heads.mean.weight.mul_(30)
    run = uw.train(method, data, 60, batch_size=16, log_every=1, pictures=False)
    for name in ("reconstruction", "code_match"):
        assert run.records[-1][name] < 0.6 * run.records[0][name], name


def test_its_capabilities(data, teacher):
    method = create(data, teacher).eval()
    for capability in (Encodes, Decodes, DecodesStages):
        assert isinstance(method, capability), capability
    assert not isinstance(method, Samples)
    assert method.parts == {"c": slice(0, C), "z": slice(C, C + Z)}
    images = to_tensor(data.images(np.arange(4)))
    codes, log_variance = method.encode(images)
    assert method.noise_correlation is None
    assert torch.isneginf(log_variance).all()
    stages = method.decode_stages(codes)
    torch.testing.assert_close(stages["y"], method.first.method.decode(codes[:, :C]))
    torch.testing.assert_close(stages["x"], method.decode(codes))


def test_a_run_resumes_to_the_same_bits_and_cannot_sample(data, teacher, tmp_path):
    whole = uw.train(create(data, teacher), data, 4, **SHORT)
    uw.train(create(data, teacher), data, 2, out=tmp_path / "run", **SHORT)
    uw.train(create(data, teacher), data, 4, out=tmp_path / "run", **SHORT)
    loaded = uw.load(tmp_path / "run")
    for name, value in whole.method.state_dict().items():
        assert torch.equal(value, loaded.method.state_dict()[name]), name
    assert loaded.encode(data, part="c").shape == (64, C)
    with pytest.raises(ArgumentError, match=r"jacobian_supervision.*cannot sample images"):
        loaded.sample(2)


def test_wrong_teachers_and_batches_are_refused(data, teacher):
    with pytest.raises(ArgumentError, match="first = None"):
        uw.methods.create("jacobian_supervision", data)
    with pytest.raises(ArgumentError, match="latent_size = 0"):
        create(data, teacher, latent_size=0)
    with pytest.raises(ArgumentError, match="jacobian_weight = -1"):
        create(data, teacher, jacobian_weight=-1)
    labelled = uw.train(uw.methods.create("cgan", data, width=4, noise_size=1), data, 1, **SHORT)
    with pytest.raises(ArgumentError, match="cannot encode"):
        create(data, labelled)
    with pytest.raises(ArgumentError, match="batch_size = 1: needs two or more"):
        uw.train(create(data, teacher), data, 1, batch_size=1)
