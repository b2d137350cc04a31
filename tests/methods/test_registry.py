import dataclasses

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.methods import Terms
from unweave.methods.registry import METHODS, TERMS


def test_an_unpublished_composition(vectors):
    method = uw.methods.create(
        "beta_tcvae",
        vectors,
        latent_size=4,
        beta=3,
        correlation=0.5,
        capacity={"c_max": 10, "gamma": 50, "steps": 100},
        extra_terms=[
            {"name": "dip_ii", "lambda_od": 2, "lambda_d": 5},
            {"name": "density_ratio", "weight": 3},
        ],
    )
    batch = vectors.batch(0, 16)
    made = method.begin(batch, 50)
    terms = method.loss(made)
    expected = {"reconstruction", "kl_capacity", "kl", "total_correlation", "dip_ii", "total_correlation_2"}
    assert set(terms.values) == expected
    assert terms.weights["kl"] == 0
    assert terms.weights["kl_capacity"] == 50
    assert [player.name for player in method.players()] == ["model", "discriminator"]
    again = uw.methods.build(uw.methods.MethodSpec.from_dict(method.spec.as_dict()))
    again.load_state_dict(method.state_dict())
    assert set(again.loss(again.begin(batch, 50)).values) == expected


def test_an_own_term_is_ten_lines(vectors):
    @uw.methods.register_term("sparsity")
    @dataclasses.dataclass(frozen=True)
    class Sparsity:
        """weight * mean absolute code."""

        weight: float = 1.0

        def __call__(self, made):
            return Terms.of(sparsity=(made.mean.abs().sum(1).mean(), self.weight))

    for extra in (Sparsity(2.0), {"name": "sparsity", "weight": 2.0}):
        method = uw.methods.create("vae", vectors, extra_terms=[extra])
        terms = method.loss(method.begin(vectors.batch(0, 8), 0))
        assert terms.weights["sparsity"] == 2.0
        assert method.spec.extra_terms == [{"name": "sparsity", "weight": 2.0}]


def test_own_networks_are_used_as_they_are(vectors):
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 4)

        def forward(self, x):
            return self.layer(x), self.layer(x)

    encoder = Encoder()
    before = encoder.layer.weight.clone()
    method = uw.methods.create("vae", vectors, latent_size=4, encoder=encoder, seed=3)
    assert torch.equal(encoder.layer.weight, before)
    assert method.spec.architecture == "custom"
    assert method.encode(vectors.batch(0, 5).images).mean.shape == (5, 4)
    with pytest.raises(ArgumentError, match="encoder"):
        uw.methods.create("vae", vectors, latent_size=5, encoder=encoder)


def test_the_seed_decides_the_weights(vectors):
    def weights(seed):
        return next(iter(uw.methods.create("vae", vectors, seed=seed).encoder.parameters()))

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize("reconstruction", ["bernoulli", "gaussian", "gaussian_learned", "laplace", "mse"])
def test_every_likelihood_trains(vectors, reconstruction):
    method = uw.methods.create("vae", vectors, reconstruction=reconstruction, seed=0)
    made = method.begin(vectors.batch(0, 16), 0)
    method.loss(made).loss.backward()
    assert all(p.grad is not None for p in method.parameters() if p.requires_grad)
    assert method.decode(made.z).shape == (16, 6)
    learned = (
        any(p is method.likelihood.log_variance for p in method.players()[0].parameters)
        if "gauss" in reconstruction
        else False
    )
    assert learned == (reconstruction == "gaussian_learned")


@pytest.mark.parametrize("size", [28, 32, 64, 128])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_image_size_trains(size, channels):
    data = uw.data.from_arrays(np.zeros((4, size, size, channels), np.uint8))
    method = uw.methods.create("beta_vae", data, latent_size=2)
    made = method.begin(data.batch(0, 2), 0)
    assert made.output.shape == (2, channels, size, size)
    method.loss(made).loss.backward()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("beta_vea", {}, "did you mean 'beta_vae'"),
        ("beta_vae", {"betta": 4}, "did you mean 'beta'"),
        ("vae", {"beta": 4}, "hyperparameter of vae = 'beta'"),
        ("beta_vae", {"beta": -1}, "beta = -1: needs a number >= 0"),
        ("beta_tcvae", {"beta": 0.5}, "needs a number >= 1"),
        ("beta_tcvae", {"estimator": "wheighted"}, "did you mean 'weighted'"),
        ("factor_vae", {"gamma": -3}, "gamma = -3"),
        ("annealed_vae", {"steps": 0}, "steps = 0"),
        ("dip_vae_i", {"lambda_od": -1}, "lambda_od = -1"),
        ("vae", {"latent_size": 0}, "latent_size = 0"),
        ("vae", {"latent_size": 2.5}, "latent_size = 2.5"),
        ("vae", {"correlation": 1.0}, "correlation = 1.0"),
        ("vae", {"architecture": "resnet"}, "architecture = 'resnet'"),
        ("vae", {"architecture": "conv"}, "shape"),
        ("vae", {"reconstruction": "poisson"}, "reconstruction = 'poisson'"),
        ("vae", {"extra_terms": [{"weight": 2}]}, "needs a 'name'"),
        ("vae", {"extra_terms": [{"name": "dip_3"}]}, "term = 'dip_3'"),
        ("vae", {"capacity": {"c_max": -1}}, "c_max = -1"),
    ],
)
def test_wrong_arguments_are_refused_by_name(vectors, name, options, message):
    with pytest.raises(ArgumentError, match=message):
        uw.methods.create(name, vectors, **options)


def test_an_estimator_that_needs_a_size_refuses_endless_data():
    data = uw.data.load("pendulum")
    with pytest.raises(ArgumentError, match="finite data set"):
        uw.methods.create("beta_tcvae", data, estimator="stratified")


@pytest.mark.parametrize("data", [None, "dsprites", np.zeros((4, 6))])
def test_a_method_is_created_for_a_data_set(data):
    with pytest.raises(ArgumentError, match=r"data = .*needs a Dataset"):
        uw.methods.create("beta_vae", data)


def test_swapped_arguments_are_refused(vectors):
    with pytest.raises(ArgumentError, match=r"method = .*known: .*beta_vae"):
        uw.methods.create(vectors, "beta_vae")


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, True, "a"])
def test_a_wrong_seed_is_refused(vectors, seed):
    with pytest.raises(ArgumentError, match="seed = "):
        uw.methods.create("beta_vae", vectors, seed=seed)


@pytest.mark.parametrize("register", [uw.methods.register_method, uw.methods.register_term])
@pytest.mark.parametrize("name", ["my vae", "", 3, None])
def test_a_bad_name_is_refused_before_anything_is_decorated(register, name):
    with pytest.raises(ArgumentError, match=r"name = .*letters, digits and _"):
        register(name)


def test_without_brackets_the_name_is_that_of_the_function_or_class(vectors):
    @uw.methods.register_method
    def bare_vae(beta: float = 2.0):
        """reconstruction + beta * KL."""
        return [uw.methods.KL(beta)]

    @uw.methods.register_method
    class BareMethod(uw.methods.Method):
        def __init__(self, image_shape):
            super().__init__()

    @uw.methods.register_term
    def bare_term():
        """Nothing."""
        return lambda forward_pass: Terms()

    try:
        assert uw.methods.create("bare_vae", vectors).spec.name == "bare_vae"
        assert bare_vae(1.0) == [uw.methods.KL(1.0)]
        assert isinstance(uw.methods.create("BareMethod", vectors), BareMethod)
        uw.methods.create_term("bare_term")
    finally:
        for name in ("bare_vae", "BareMethod"):
            METHODS.unregister(name)
        TERMS.unregister("bare_term")


@pytest.mark.parametrize("result", [uw.methods.KL(1.0), None, 3, [None], [[uw.methods.KL(1.0)]]])
def test_a_method_that_returns_no_terms_is_named(vectors, result):
    uw.methods.register_method("returns_wrongly")(lambda: result)
    try:
        with pytest.raises(ArgumentError, match=r"method = 'returns_wrongly': .*a list of terms"):
            uw.methods.create("returns_wrongly", vectors)
    finally:
        METHODS.unregister("returns_wrongly")


def test_a_term_without_a_docstring_has_no_summary():
    """What ``dataclass`` writes in its place is a signature."""

    @uw.methods.register_term("undescribed")
    @dataclasses.dataclass(frozen=True)
    class Undescribed(uw.methods.Term):
        weight: float = 1.0

        def __call__(self, forward_pass):
            return Terms()

    assert uw.methods.term_summaries()["undescribed"] == ""


def test_a_method_without_hyperparameters_says_so(vectors):
    with pytest.raises(ArgumentError, match="hyperparameter of vae = 'beta': there are none"):
        uw.methods.create("vae", vectors, beta=4)
