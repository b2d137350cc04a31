"""Codes of an encoder that takes labels: given, predicted or unknown. And what is refused."""

import numpy as np
import pytest
import torch
import yaml

import unweave as uw
from unweave.data.batches import Batch, LabelledBatch, to_tensor
from unweave.errors import ArgumentError
from unweave.networks import MLPEncoder

N, D = 10, 3
NAN = float("nan")


@pytest.fixture
def images(vectors):
    return to_tensor(vectors.images(np.arange(N)))


def create(name, vectors, **options):
    return uw.methods.create(name, vectors, latent_size=D, seed=1, **options)


def test_given_labels_go_to_the_encoder(vectors, images):
    method = create("ivae", vectors)
    assert method.label_modes == ("given", "unknown")
    u = torch.rand(N, 2)
    mean, log_variance = method.encoder(images, u)
    for found in (method.encode(images, u), method.posterior(images, "given", u)):
        torch.testing.assert_close(found.mean, mean)
        torch.testing.assert_close(found.log_variance, log_variance)
    assert not torch.allclose(method.encode(images, 1 - u).mean, mean)


def test_given_labels_may_be_an_array(vectors, images):
    method = create("ss_ivae", vectors)
    u = method.labels_for(vectors).known(np.arange(N))
    u.setflags(write=False)
    expected = method.encoder(images, torch.tensor(u))[0]
    for given in (u, u.astype(np.float64), u.tolist()):
        torch.testing.assert_close(method.posterior(images, "given", given).mean, expected)
        torch.testing.assert_close(method.encode(images, given).mean, expected)
    missing = np.full((N, 2), NAN)
    predicted = method.posterior(images, "predicted").mean
    torch.testing.assert_close(method.encode(images, missing).mean, predicted)


@pytest.mark.parametrize("encoding", ["scaled", "one_hot"])
def test_predicted_labels_are_the_most_probable(vectors, images, encoding):
    method = create("ss_idvae", vectors, labels={"labelled": 9, "encoding": encoding})
    assert method.label_modes == ("given", "predicted", "unknown")
    location, _ = method.predictor.network(images)
    if encoding == "one_hot":
        best = location.reshape(N, 2, 8).argmax(2)
        location = torch.nn.functional.one_hot(best, 8).float().reshape(N, 16)
    expected = method.encoder(images, location)[0]
    torch.testing.assert_close(method.encode(images).mean, expected)
    torch.testing.assert_close(method.posterior(images, "predicted").mean, expected)


def test_a_missing_label_among_given_ones_is_predicted(vectors, images):
    u = torch.rand(N, 2)
    u[3, 1] = NAN
    method = create("ss_ivae", vectors)
    filled = u.clone()
    filled[3, 1] = method.predictor.network(images)[0][3, 1]
    torch.testing.assert_close(method.encode(images, u).mean, method.encode(images, filled).mean)
    with pytest.raises(ArgumentError, match=r"u = 'NaN': ivae has no q\(u\|x\)"):
        create("ivae", vectors).encode(images, u)


class OwnEncoder(torch.nn.Module):
    """Not linear in u, and without our parts."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 6)

    def forward(self, x, u):
        return torch.tanh(3 * self.layer(torch.cat([x, u], 1))).chunk(2, 1)


class NamesakeEncoder(OwnEncoder):
    """Has parts of the same names as ours, which do other things."""

    def __init__(self):
        super().__init__()
        self.heads = torch.nn.Linear(3, 3)

    def extract(self, x):
        raise AssertionError("not meant to be called")


class ChangedEncoder(MLPEncoder):
    """One of ours that takes u in another way."""

    def __init__(self):
        super().__init__((6,), D, (5,), conditioning=2)

    def forward(self, x, u):
        return super().forward(x, torch.tanh(u + x[:, :2]))


@pytest.mark.parametrize("encoder", [None, OwnEncoder, NamesakeEncoder, ChangedEncoder])
def test_unknown_labels_are_averaged_over(vectors, images, encoder):
    method = create("idvae", vectors, encoder=encoder and encoder())
    draws = method.label_draws
    possible = method.labels_for(vectors).of(np.arange(64))
    assert {tuple(u) for u in draws.tolist()} <= {tuple(u) for u in possible.tolist()}
    means, variances = [], []
    for u in draws:
        mean, log_variance = method.encoder(images, u.expand(N, 2))
        means.append(mean)
        variances.append(log_variance.exp())
    means, variances = torch.stack(means), torch.stack(variances)
    second = (variances + means**2).mean(0)  # E[z^2] of the mixture
    for found in (method.encode(images), method.posterior(images, "unknown")):
        torch.testing.assert_close(found.mean, means.mean(0))
        torch.testing.assert_close(
            found.log_variance.exp(), second - means.mean(0) ** 2, rtol=1e-4, atol=1e-5
        )
    assert method.reconstruct(images).shape == images.shape


def test_unknown_labels_are_kept_with_the_weights(vectors, images):
    method = create("ivae", vectors)
    again = uw.methods.build(uw.methods.MethodSpec.from_dict(method.spec.as_dict()))
    again.load_state_dict(method.state_dict())
    torch.testing.assert_close(again.encode(images).mean, method.encode(images).mean)


@pytest.mark.parametrize("name", ["vae", "full_vae"])
def test_encoders_without_labels_are_as_they_were(vectors, images, name):
    method = create(name, vectors)
    assert not isinstance(method, uw.methods.EncodesWithLabels)
    torch.testing.assert_close(method.encode(images).mean, method.encoder(images)[0])
    assert not any("label" in key for key in method.state_dict())
    with pytest.raises(ArgumentError, match="its encoder takes no labels"):
        method.evidence_bound(images, labels="given", u=torch.rand(N, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predicted",), "labels = 'predicted': ivae has given, unknown"),
        (("known",), "labels = 'known'"),
        (("given",), "u = None: goes with 'given'"),
        (("unknown", torch.rand(N, 2)), "goes with 'given'"),
        (("given", torch.rand(N, 3)), r"needs labels of shape \(10, 2\) \(a, b\)"),
        (("given", torch.rand(N - 1, 2)), r"u = 'a tensor of shape \(9, 2\)'"),
        (("given", np.zeros((N, 3))), r"needs labels of shape \(10, 2\) \(a, b\)"),
        (("given", np.full((N, 2), "a")), "u = '<U1 array .*': needs numbers"),
        (("given", [[1.0], [1.0, 2.0]]), "u = 'list': cannot be converted to a numpy array"),
        (
            ("given", np.full((N, 2), 3)),
            r"u\[0, 0\] = 3.0: needs 0 to 1, .*labels_for\(data\)\.known\(rows\)",
        ),
        (("given", torch.full((N, 2), -0.1)), r"u\[0, 0\] = -0.1"),
        (("given", np.full((N, 2), np.inf)), r"u\[0, 0\] = inf"),
    ],
)
def test_wrong_ways_to_encode_are_refused(vectors, images, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        create("ivae", vectors).posterior(images, *arguments)


def partly_labelled(columns=2):
    labels = np.random.default_rng(0).random((64, columns))
    labels[3] = NAN
    return labels


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("vae", {"labels": ["a"]}, "vae does not learn from labels"),
        ("beta_tcvae", {"labels": np.zeros(64)}, "labels = 'ndarray'"),
        ("vae", {"labels": {"names": ["a"]}}, r"labels = \{'names': \['a'\]\}: vae does not learn"),
        ("vae", {"labels": {"array": np.zeros(64)}}, r"labels = \{'array': 'ndarray'\}: "),
        ("ivae", {"labels": ["c"]}, "labels = 'c'"),
        ("ivae", {"labels": {"name": ["a"]}}, "labels = 'name': did you mean 'names'"),
        ("ivae", {"labels": {"labelled": 0.5}}, "ivae needs the labels of every row; ss_ivae learns from"),
        ("idvae", {"labels": partly_labelled()}, "idvae needs the labels of every row; ss_idvae"),
        ("vae", {"prior": "conditional", "labels": {"labelled": 3}}, "vae needs the labels of every row"),
        ("idvae", {"labels": np.zeros(63)}, "labels = '63 rows': arrays has 64"),
        ("idvae", {"labels": np.full(64, 2.5)}, r"labels\[0, 0\] = 2.5"),
        ("ss_idvae", {"labels": np.full(64, NAN)}, "all NaN"),
        (
            "full_vae",
            {"labels": {"encoding": "one_hot"}},
            "encoding = 'one_hot': makes a, b .* needs 'scaled'",
        ),
        ("full_vae", {"latent_size": 1}, "latent_size = 1: needs at least 2"),
        ("full_vae", {"prior": "conditional"}, "the encoder must not see them"),
        ("idvae", {"extra_terms": [{"name": "label_match"}]}, "the encoder must not see them"),
        ("idvae", {"prior": "conditional"}, "idvae has a prior of its own"),
        ("vae", {"prior": "conditionnal"}, "did you mean 'conditional'"),
        ("vae", {"prior": 3}, r"prior = 3: needs a name \(conditional, label_vae\)"),
        ("vae", {"prior": {"name": ["label_vae"]}}, "prior = .* known: conditional, label_vae"),
        ("vae", {"prior": {"name": "label_vae", "variance": 2}}, "'variance': did you mean 'label_variance'"),
        (
            "vae",
            {"prior": {"name": "label_vae", "foo": 1}},
            "parameter of label_vae = 'foo': known: hidden_size, label_var",
        ),
        (
            "vae",
            {"prior": {"name": "conditional", "foo": 1}},
            "parameter of conditional = 'foo': known: hidden_size, name",
        ),
        ("idvae", {"label_variance": 0}, "label_variance = 0"),
        ("ivae", {"beta": -1}, "beta = -1"),
        ("full_vae", {"gamma": -1}, "gamma = -1"),
        ("ss_ivae", {"alpha": -1}, "alpha = -1"),
        ("ss_idvae", {"temperature": 0}, "temperature = 0"),
    ],
)
def test_wrong_labels_and_parts_are_refused_by_name(vectors, name, options, message):
    with pytest.raises(ArgumentError, match=message):
        uw.methods.create(name, vectors, **options)


def test_a_method_that_needs_labels_refuses_data_without_factors():
    bare = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    with pytest.raises(ArgumentError, match="has no factors to learn from"):
        uw.methods.create("ivae", bare)
    assert uw.methods.create("ivae", bare, labels=[0, 1, 1, 0]).spec.labels["columns"][0]["size"] == 2


def test_a_batch_without_labels_is_refused(vectors, images):
    with pytest.raises(ArgumentError, match=r"u = None: ivae needs labels of shape \(10, 2\)"):
        create("ivae", vectors).begin(Batch(images), 0)


def test_factors_are_not_taken_for_labels(vectors, images):
    """Values of factors have the shape of scaled labels."""
    factors = vectors.factors(np.arange(8, 8 + N))
    for name in ("ivae", "ss_idvae", "full_vae"):
        with pytest.raises(ArgumentError, match=r"u\[2, 1\] = 2: .*known\(rows\)"):
            create(name, vectors).begin(LabelledBatch(images, u=torch.from_numpy(factors)), 0)
    with pytest.raises(ArgumentError, match=r"u\[2, 1\] = 2.0: .*known\(rows\)"):
        create("ivae", vectors).encode(images, factors)


def test_labels_out_of_range_are_refused_next_to_a_batch(vectors, images):
    with pytest.raises(ArgumentError, match=r"u\[0, 0\] = 2.0"):
        create("ss_ivae", vectors).begin(
            LabelledBatch(
                images, u=torch.rand(N, 2), labelled=LabelledBatch(images, u=torch.full((N, 2), 2.0))
            ),
            0,
        )


@pytest.mark.parametrize("name", ["ivae", "idvae"])
def test_a_batch_without_some_labels_is_refused_where_none_can_be_predicted(vectors, images, name):
    u = torch.rand(N, 2)
    u[4, 1] = NAN
    with pytest.raises(ArgumentError, match=rf"u = 'NaN': {name} has no q\(u\|x\)"):
        create(name, vectors).begin(LabelledBatch(images, u=u), 0)
    for other in ("full_vae", f"ss_{name}"):
        method = create(other, vectors)
        assert torch.isfinite(method.loss(method.begin(LabelledBatch(images, u=u), 0)).loss)


def test_a_one_hot_label_is_known_or_not(vectors, images):
    method = create("ss_ivae", vectors, labels={"encoding": "one_hot"})
    u = torch.from_numpy(method.labels_for(vectors).known(np.arange(N)))
    u[3, 8:] = NAN
    assert torch.isfinite(method.encode(images, u).mean).all()
    u[3, 12] = 1.0
    for call in (method.encode, lambda x, given: method.begin(LabelledBatch(x, u=given), 0)):
        with pytest.raises(ArgumentError, match=r"u\[3, 12\] = 1.0: all entries of 'b' are NaN, or none"):
            call(images, u)


def test_predicted_labels_may_be_out_of_range(vectors, images):
    method = create("ss_ivae", vectors)
    with torch.no_grad():
        method.predictor.network.heads.mean.bias += 5
    u = torch.full((N, 2), NAN)
    assert (method.complete(images, u) > 1).all()
    torch.testing.assert_close(method.encode(images, u).mean, method.encode(images).mean)
    assert torch.isfinite(method.loss(method.begin(LabelledBatch(images, u=u), 0)).loss)


def test_numpy_scalars_are_numbers(vectors):
    """They are kept as Python's own, so that specs can be written."""
    method = uw.methods.create(
        "ss_ivae",
        vectors,
        latent_size=np.int64(3),
        beta=np.float32(4),
        alpha=np.float64(0.5),
        correlation=np.float16(0.5),
        capacity={"c_max": np.float32(5), "gamma": np.int32(10), "steps": np.int64(7)},
        extra_terms=[{"name": "dip_ii", "lambda_od": np.float64(5), "lambda_d": np.float64(5)}],
        labels={
            "labelled": np.float64(0.5),
            "bins": np.int64(4),
            "noise": np.float32(0.25),
            "seed": np.int64(1),
        },
        seed=np.int64(3),
    )
    plain = uw.methods.create(
        "ss_ivae",
        vectors,
        latent_size=3,
        beta=4.0,
        alpha=0.5,
        correlation=0.5,
        capacity={"c_max": 5.0, "gamma": 10, "steps": 7},
        extra_terms=[{"name": "dip_ii", "lambda_od": 5.0, "lambda_d": 5.0}],
        labels={"labelled": 0.5, "bins": 4, "noise": 0.25, "seed": 1},
        seed=3,
    )
    assert yaml.safe_load(yaml.safe_dump(method.spec.as_dict())) == plain.spec.as_dict()
    assert torch.equal(method.encoder.heads.mean.weight, plain.encoder.heads.mean.weight)
    uw.methods.create("vae", vectors, prior={"name": "label_vae", "label_variance": np.float32(0.5)})
    uw.methods.create("ada_gvae", vectors, k=np.int64(1))
    with pytest.raises(ArgumentError, match="beta = True"):
        uw.methods.create("beta_vae", vectors, beta=np.bool_(True))


def test_the_error_for_mixed_labels_names_them():
    factors = {"shape": np.repeat(["ball", "cube"], 4), "size": np.tile(np.arange(4), 2)}
    data = uw.data.from_arrays(np.zeros((8, 6), np.float32), factors)
    with pytest.raises(ArgumentError, match="encoding = 'mixed': makes shape one-hot"):
        uw.methods.create("full_vae", data, labels={"encoding": "mixed"})


def test_the_first_hyperparameter_is_the_strength():
    first = {name: next(iter(uw.methods.hyperparameters(name)), None) for name in uw.methods.names()}
    assert first["full_vae"] == "gamma"
    assert all(first[name] == "beta" for name in ("ivae", "idvae", "ss_ivae", "ss_idvae"))
