"""MS-VAE on vectors and on supervised stages: the deeper MS-VAE."""

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

import unweave as uw
from unweave.data.batches import Batch, to_tensor
from unweave.errors import ArgumentError
from unweave.methods import (
    Decodes,
    DecodesStages,
    Encodes,
    EncodesWithLabels,
    HasEvidenceBound,
    LearnsFromLabels,
    Samples,
)
from unweave.methods.stages.ms_vae import MSVAE
from unweave.methods.stages.supervised_ms_vae import SupervisedMSVAE

SHORT = {"batch_size": 16, "pictures": False}
STAGE = {"width": 8, "other_data": True}


@pytest.fixture(scope="module")
def data():
    return uw.data.load("pendulum")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """L -> y0, (B, y0) -> y1, barely trained."""
    run = None
    for name in ("pendulum_undamped", "pendulum_unit_mass"):
        observations = uw.data.load(name)
        method = uw.methods.create("conditional_gaussian", observations, first=run, **STAGE)
        run = uw.train(method, observations, 2, out=tmp_path_factory.mktemp(name) / "run", **SHORT)
    return run


@pytest.fixture
def create(data, first):
    def create(**settings):
        return uw.methods.create(
            "ms_vae", data, **{"first": first, "latent_size": 1, "width": 4, "other_data": True, **settings}
        )

    return create


@pytest.fixture
def batch(data, create):
    return create().batches(data).draw(0, 6, seed=0)


def test_the_loss_is_term_b_of_equation_2(create, batch):
    method = create(seed=1)
    with torch.no_grad():
        method.likelihood.log_variance.fill_(-1.0)
    terms = method.loss(method.begin(batch, 0, torch.Generator().manual_seed(5)))
    y = method.first.method.decode(batch.u)
    mean, log_variance = method.encoder(batch.images - y)
    posterior = Normal(mean, (log_variance / 2).exp())
    z = mean + posterior.scale * torch.randn(6, 1, generator=torch.Generator().manual_seed(5))
    x = Normal(method.decoder(y, z), np.exp(-0.5))
    torch.testing.assert_close(terms.values["reconstruction"], -x.log_prob(batch.images).sum(1).mean())
    kl = kl_divergence(posterior, Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(terms.values["kl"], kl)
    torch.testing.assert_close(terms.loss, terms.values["reconstruction"] + kl)


def test_codes_are_labels_and_z(create, batch):
    method = create()
    assert isinstance(method, SupervisedMSVAE)
    assert method.parts == {"c": slice(0, 2), "z": slice(2, 3)}
    posterior = method.posterior(batch.images, "given", batch.u)
    assert torch.equal(posterior.mean[:, :2], batch.u)
    assert torch.isneginf(posterior.log_variance[:, :2]).all()
    mean, log_variance = method.encoder(batch.images - method.first.decode(batch.u))
    torch.testing.assert_close(posterior.mean[:, 2:], mean)
    torch.testing.assert_close(posterior.log_variance[:, 2:], log_variance)
    prior = method.prior_given(batch.u)
    assert torch.equal(prior.mean[:, 2:], torch.zeros(6, 1))


def test_unknown_labels_are_a_mixture(create, batch):
    method = create()
    draws = method.stage.label_draws
    posterior = method.encode(batch.images[:1])
    each = method.posterior(batch.images[:1].expand(len(draws), -1), "given", draws)
    torch.testing.assert_close(posterior.mean[0], each.mean.mean(0))
    variance = each.log_variance.exp().mean(0) + each.mean.var(0, correction=0)
    torch.testing.assert_close(posterior.log_variance[0].exp(), variance)


def test_stages_in_order(create, batch):
    method = create()
    codes = torch.cat([batch.u, torch.zeros(6, 1)], dim=1)
    stages = method.decode_stages(codes)
    assert list(stages) == ["y0", "y1", "x"]
    torch.testing.assert_close(stages["y0"], method.stage.first.decode(batch.u[:, :1]))
    torch.testing.assert_close(stages["y1"], method.stage.decode(batch.u))
    torch.testing.assert_close(stages["x"], method.decoder(stages["y1"], codes[:, 2:]))
    assert method.sample(5, torch.Generator().manual_seed(0)).shape == (5, 100)


def test_nothing_reaches_the_earlier_stages(create, batch):
    method = create().train()
    method.loss(method.begin(batch, 0, torch.Generator())).loss.backward()
    assert all(weight.grad is None for weight in method.first.parameters())
    assert all(weight.grad is not None for weight in method.players()[0].parameters)
    assert not any(module.training for module in method.first.modules())


def test_the_evidence_bound_needs_labels(create, batch):
    method = create()
    bound = method.evidence_bound(batch.images, torch.Generator().manual_seed(5), "given", batch.u)
    terms = method.loss(method.begin(batch, 0, torch.Generator().manual_seed(5)))
    torch.testing.assert_close(bound.reconstruction, terms.values["reconstruction"])
    torch.testing.assert_close(bound.kl.sum(1).mean(), terms.values["kl"])
    with pytest.raises(ArgumentError, match="labels = 'unknown'"):
        method.evidence_bound(batch.images, None, "unknown")


def test_the_whole_way(create, data, tmp_path):
    """Train, load from one folder, encode, decode, sample, score: curves go through the whole package."""
    run = uw.train(create(), data, 3, out=tmp_path, **SHORT)
    loaded = uw.load(tmp_path)
    assert isinstance(loaded.method, SupervisedMSVAE)
    factors = [[1.5, 0.5, 1.0], [2.0, 1.0, 0.5]]
    assert loaded.encode(data, factors, part="z").shape == (2, 1)
    codes = [[0.5, 0.5, 0.0]]
    np.testing.assert_array_equal(loaded.decode(codes), run.decode(codes))
    assert loaded.sample(3).shape == (3, 100)
    scores = uw.evaluate(
        loaded,
        data,
        ["latent_factor_correlation", "unsupervised"],
        labels="given",
        part="z",
        num_train=40,
        num_test=20,
        params={"unsupervised": {"num_images": 30}},
    )
    assert scores["latent_factor_correlation"].details["matrix"].shape == (1, 3)
    assert np.isfinite(scores["unsupervised"].details["elbo"])


def test_pictures_of_curves(create, data, tmp_path):
    method = create()
    assert uw.figures.traversals(method, data, columns=3).width > 0
    assert uw.figures.reconstructions(method, data, columns=2).width > 0
    assert uw.figures.samples(method, data, rows=1, columns=2).width > 0


def test_z_finds_what_labels_do_not_tell():
    """Lines with a known slope and an unknown offset: z follows the offset, not the slope."""
    rng = np.random.default_rng(0)
    slope, offset = rng.uniform(size=(2, 512))
    x = slope[:, None] * np.linspace(0, 1, 6) + 0.5 * offset[:, None]
    data = uw.data.from_arrays(x.astype(np.float32), {"slope": slope, "offset": offset})
    options = {"batch_size": 64, "learning_rate": 3e-3, "pictures": False}
    first = uw.methods.create("conditional_gaussian", data, labels=["slope"], width=16)
    first = uw.train(first, data, 150, **options)
    method = uw.methods.create("ms_vae", data, first=first, latent_size=1, width=8)
    run = uw.train(method, data, 300, **options)
    scores = uw.evaluate(
        run, data, "latent_factor_correlation", labels="given", part="z", num_train=400, num_test=100
    )
    at_slope, at_offset = scores["latent_factor_correlation"].details["per_factor"]
    assert at_offset > 0.95
    assert at_slope < 0.3


def test_capabilities(create):
    method = create()
    for capability in (
        EncodesWithLabels,
        Decodes,
        DecodesStages,
        Samples,
        HasEvidenceBound,
        LearnsFromLabels,
    ):
        assert isinstance(method, capability), capability


def test_vectors_on_an_unsupervised_stage():
    """An MS-VAE on a VAE of vectors, and another MS-VAE on that: three stages without labels."""
    data = uw.data.from_arrays(np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    run = uw.train(uw.methods.create("vae", data, latent_size=2, reconstruction="gaussian"), data, 1, **SHORT)
    for size in (3, 4):
        method = uw.methods.create("ms_vae", data, first=run, latent_size=size, width=4)
        assert type(method) is MSVAE
        run = uw.train(method, data, 2, **SHORT)
    assert isinstance(run.method, Encodes)
    assert run.method.parts == {"c": slice(0, 5), "z": slice(5, 9)}
    assert run.decode(run.encode(data)).shape == (40, 6)
    assert run.method.decode(run.method.encode(to_tensor(data.images([0]))).mean).min() < 0  # not in [0, 1]


# --- what is refused -------------------------------------------------------------------------------


def test_data_without_the_labels(first):
    bare = uw.data.from_arrays(np.zeros((4, 100), np.float32))
    with pytest.raises(ArgumentError, match="has no factors to learn from"):
        uw.methods.create("ms_vae", bare, first=first, other_data=True)


def test_other_data_must_be_asked_for(first, data):
    with pytest.raises(ArgumentError, match="other_data=True allows that"):
        uw.methods.create("ms_vae", data, first=first)


def test_a_batch_without_labels(create):
    with pytest.raises(ArgumentError, match="labels"):
        create().begin(Batch(torch.zeros(2, 100)), 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"condition": "c"}, "condition = 'c': needs images"), ({"latent_size": 0}, "latent_size = 0")],
)
def test_wrong_settings(create, settings, message):
    with pytest.raises(ArgumentError, match=message):
        create(**settings)


@pytest.mark.parametrize("condition", ["c", "concatenation"])
def test_samples_of_a_decoder_that_reads_labels_have_labels_of_the_data(condition, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (8, 28, 28, 1)).astype(np.uint8)
    data = uw.data.from_arrays(images, {"kind": np.arange(8) % 2})
    stage = uw.methods.create("conditional_gaussian", data, width=8)
    first = uw.train(stage, data, 1, batch_size=4, pictures=False)
    method = uw.methods.create("ms_vae", data, first=first, latent_size=2, width=4, condition=condition)
    seen, decode = [], type(method).decode
    monkeypatch.setattr(type(method), "decode", lambda self, codes: seen.append(codes) or decode(self, codes))
    assert method.sample(20, torch.Generator().manual_seed(0)).shape == (20, 1, 28, 28)
    labels = method.labels_for(data).known(np.arange(8))
    assert {tuple(row) for row in seen[-1][:, method.parts["c"]].tolist()} == {
        tuple(row) for row in labels.tolist()
    }


def test_predicted_labels(create, batch):
    with pytest.raises(ArgumentError, match=r"labels = 'predicted': .*known: given, unknown"):
        create().posterior(batch.images, "predicted")
