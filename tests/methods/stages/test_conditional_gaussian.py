"""Conditional Gaussians: their loss, the order of stages, and what they refuse."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import Batch
from unweave.errors import ArgumentError
from unweave.methods import Decodes, DecodesStages, Encodes, LearnsFromLabels, Samples

SHORT = {"batch_size": 16, "pictures": False}


def lines(n=64, name="lines"):
    """Straight lines of 5 points: slope a, and offset b."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, n))
    x = a[:, None] * np.linspace(0, 1, 5) + b[:, None]
    return uw.data.from_arrays(x.astype(np.float32), {"a": a, "b": b}, name=name)


@pytest.fixture(scope="module")
def first():
    data = lines()
    method = uw.methods.create("conditional_gaussian", data, labels=["a"], width=16)
    return uw.train(method, data, 3, **SHORT)


def create(first, labels=("a", "b"), data=None, **settings):
    data = lines() if data is None else data
    settings = {"width": 16, "first": first, "labels": list(labels), **settings}
    return uw.methods.create("conditional_gaussian", data, **settings)


@pytest.mark.parametrize("variance", ["learned", "one"])
def test_the_loss_is_the_density_of_a_gaussian(first, variance):
    data = lines()
    method = create(first, variance=variance)
    if variance == "learned":
        with torch.no_grad():
            method.raw_log_variance.copy_(torch.linspace(-0.3, 0.1, 5))
    batch = method.batches(data).draw(0, 8, seed=0)
    terms = method.loss(method.begin(batch, 0))
    mean, deviation = method.decode(batch.u), (method.log_variance / 2).exp()
    expected = torch.distributions.Normal(mean, deviation).log_prob(batch.images).sum(1).mean()
    torch.testing.assert_close(terms.values["log_density"], expected)
    torch.testing.assert_close(terms.loss, -expected)
    torch.testing.assert_close(terms.values["error"], (mean - batch.images).square().mean().sqrt())
    assert len(method.players()[0].parameters) == len(list(method.network.parameters())) + (
        variance == "learned"
    )


def test_the_variance_has_a_bound(first):
    method = create(first)
    with torch.no_grad():
        method.raw_log_variance.fill_(-100)
    assert method.log_variance.exp().min().item() == pytest.approx(1e-6)


def test_labels_of_the_first_stage_reach_the_second_through_y_alone(first):
    """With y0 held, the first stage's label changes nothing."""
    method = create(first).eval()
    u = torch.tensor([[0.1, 0.4], [0.9, 0.4]])
    stages = method.decode_stages(u)
    assert list(stages) == ["y0", "y1"]
    torch.testing.assert_close(stages["y0"], first.method.decode(u[:, :1]))
    torch.testing.assert_close(stages["y1"], method.network(stages["y0"], u[:, 1:]))
    assert not torch.allclose(stages["y1"][0], stages["y1"][1])


def test_the_order_of_labels_is_free(first):
    one, other = create(first, ("a", "b"), seed=3).eval(), create(first, ("b", "a"), seed=3).eval()
    torch.testing.assert_close(
        one.decode(torch.tensor([[0.2, 0.7]])), other.decode(torch.tensor([[0.7, 0.2]]))
    )


def test_nothing_reaches_the_first_stage(first):
    method = create(first).train()
    assert not method.first.training
    batch = method.batches(lines()).draw(0, 8, seed=0)
    method.loss(method.begin(batch, 0)).loss.backward()
    assert all(parameter.grad is None for parameter in method.first.parameters())
    assert all(parameter.grad is not None for parameter in method.players()[0].parameters)


def test_it_learns(tmp_path):
    """Lines are linear in their labels: a short training knows them well, and one folder holds both stages."""
    data = lines(256)
    options = {"batch_size": 64, "learning_rate": 3e-3, "pictures": False}
    one = uw.train(create(None, ("a",), data), data, 200, **options)
    two = uw.train(create(one, data=data), data, 200, out=tmp_path, **options)
    error = [run.records[-1]["error"] for run in (one, two)]
    assert error[0] == pytest.approx(np.sqrt(1 / 12), rel=0.15)  # b is not known to the first
    assert error[1] < 0.1
    loaded = uw.load(tmp_path)
    u = np.array([[0.5, 0.25]], np.float32)
    np.testing.assert_array_equal(loaded.decode(u), two.decode(u))
    np.testing.assert_allclose(loaded.decode(u)[0], 0.5 * np.linspace(0, 1, 5) + 0.25, atol=0.15)
    assert loaded.sample(4).shape == (4, 5)


def test_three_stages():
    data = uw.data.from_arrays(
        np.zeros((8, 4), np.float32), {name: np.linspace(0, 1, 8) for name in ("a", "b", "c")}
    )
    run = None
    for labels in (["a"], ["a", "b"], ["a", "b", "c"]):
        run = uw.train(create(run, labels, data), data, 1, **SHORT)
    assert list(run.method.decode_stages(torch.zeros(1, 3))) == ["y0", "y1", "y2"]


def test_images():
    images = np.random.default_rng(0).integers(0, 256, (8, 28, 28, 1)).astype(np.uint8)
    data = uw.data.from_arrays(images, {"kind": np.arange(8) % 2})
    method = create(None, ("kind",), data, variance="one")
    run = uw.train(method, data, 1, batch_size=4, pictures=False)
    decoded = run.decode([[0.0], [0.5]])
    assert decoded.shape == (2, 28, 28, 1)
    assert 0 <= decoded.min() <= decoded.max() <= 1


def test_the_width_of_images_counts_with_an_earlier_stage_too():
    images = np.zeros((8, 28, 28, 1), np.uint8)
    data = uw.data.from_arrays(images, {"kind": np.arange(8) % 2, "size": np.arange(8) // 2})
    first = uw.train(create(None, ("kind",), data, width=16), data, 1, batch_size=4, pictures=False)
    sizes = [
        sum(p.numel() for p in create(first, ("kind", "size"), data, width=width).network.parameters())
        for width in (16, 32)
    ]
    assert sizes[0] < sizes[1] / 3


def test_what_it_can_do(first):
    for capability in (Decodes, DecodesStages, Samples, LearnsFromLabels):
        assert isinstance(first.method, capability)
    assert not isinstance(first.method, Encodes)


# --- what is refused -------------------------------------------------------------------------------


def test_labels_that_do_not_continue_those_of_the_first_stage(first):
    with pytest.raises(ArgumentError, match="labels = 'b': the first stage learned from 'a'"):
        create(first, ("b",))
    with pytest.raises(ArgumentError, match="labels = 'a': are those of the first stage"):
        create(first, ("a",))


def test_data_without_labels():
    data = uw.data.from_arrays(np.zeros((4, 3), np.float32))
    with pytest.raises(ArgumentError, match="labels"):
        uw.methods.create("conditional_gaussian", data)
    with pytest.raises(ArgumentError, match="labels = 'c': known: a, b"):
        create(None, ("c",))


def test_a_batch_without_labels(first):
    with pytest.raises(ArgumentError, match="needs labels of shape"):
        first.method.begin(Batch(torch.zeros(2, 5)), 0)


def test_other_data_and_other_shapes(first):
    with pytest.raises(ArgumentError, match="trained on other data"):
        create(first, data=lines(65))
    create(first, data=lines(65), other_data=True)
    short = uw.data.from_arrays(np.zeros((4, 3), np.float32), {"a": np.linspace(0, 1, 4), "b": np.ones(4)})
    with pytest.raises(ArgumentError, match=r"is for observations \(5,\), the data has \(3,\)"):
        create(first, data=short)


def test_a_first_stage_of_another_kind():
    data = lines()
    vae = uw.train(uw.methods.create("vae", data, latent_size=2, reconstruction="gaussian"), data, 1, **SHORT)
    with pytest.raises(ArgumentError, match="first = 'vae': is no conditional_gaussian"):
        create(vae)


def test_codes_of_the_wrong_size(first):
    with pytest.raises(ArgumentError, match=r"needs labels of shape \(n, 1\)"):
        first.method.decode(torch.zeros(2, 3))
