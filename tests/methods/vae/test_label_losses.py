"""Methods that learn from labels: their losses against the formulas of Mita et al., computed anew in float64."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu

import unweave as uw
from unweave.data.batches import LabelledBatch, to_tensor
from unweave.methods.label_layout import LabelLayout

N, D = 12, 3
NAN = float("nan")


@pytest.fixture
def made(vectors):
    """A method in float64, a forward pass of it, and the random numbers that the pass has drawn."""

    def make(name, labels=None, **options):
        method = uw.methods.create(name, vectors, latent_size=D, labels=labels, seed=1, **options).double()
        with torch.no_grad():  # so that nothing is near zero
            for parameter in method.parameters():
                parameter.mul_(2) if parameter.ndim > 1 else parameter.add_(0.1)
        rows = np.arange(N)
        images = to_tensor(vectors.images(rows)).double()
        found = method.labels_for(vectors)
        batch = LabelledBatch(images, u=torch.from_numpy(found.of(rows)))
        if found.subset is not None:
            some = found.subset.rows[:5]
            labelled = to_tensor(vectors.images(some)).double()
            batch.labelled = LabelledBatch(labelled, u=torch.from_numpy(found.of(some)))
        return method, method.begin(batch, 0, torch.Generator().manual_seed(5)), batch

    return make


def scale(log_variance):
    return (log_variance / 2).exp()


def reconstruction(method, z, images):
    """-log p(x|z) of each image."""
    return binary_cross_entropy_with_logits(method.decoder(z), images, reduction="none").sum(1)


def label_network(network, u):
    """Three layers with leaky ReLU, then the heads, written out."""
    for layer in list(network.features)[::2]:
        u = leaky_relu(u @ layer.weight.T + layer.bias, 0.2)
    heads = network.heads
    return [u @ head.weight.T + head.bias for head in (heads.mean, heads.log_variance)]


def kl_to_prior(method, images, u):
    mean, log_variance = method.encoder(images, u)
    prior_mean, prior_log_variance = label_network(method.prior.encoder, u)
    return kl_divergence(
        Normal(mean, scale(log_variance)), Normal(prior_mean, scale(prior_log_variance))
    ).sum(1)


def label_elbo(method, u, noise, one_hot):
    """E_q(z|u)[log p(u|z)] - KL(q(z|u) || p(z)) of each image, for one draw of z."""
    mean, log_variance = label_network(method.prior.encoder, u)
    output = method.prior.decoder(mean + scale(log_variance) * noise)
    kl = kl_divergence(Normal(mean, scale(log_variance)), Normal(0.0, 1.0)).sum(1)
    if one_hot:
        blocks = output.reshape(len(u), 2, 8), u.reshape(len(u), 2, 8)
        return Categorical(logits=blocks[0]).log_prob(blocks[1].argmax(2)).sum(1) - kl
    return Normal(output, 0.05).log_prob(u).sum(1) - kl  # the rounding error of 8 values is less


def check(method, made_pass, expected):
    torch.testing.assert_close(
        method.loss(made_pass).loss, expected, rtol=1e-6, atol=1e-9
    )  # constants are kept in float32


def test_the_label_networks_are_those_of_the_paper(vectors):
    """Table 3: three layers of 1000 with leaky ReLU in both, and 2 x D and d outputs."""
    prior = uw.methods.create("idvae", vectors, latent_size=D).prior
    sizes = [tuple(layer.weight.shape) for layer in prior.modules() if isinstance(layer, torch.nn.Linear)]
    encoder = [(1000, 2), (1000, 1000), (1000, 1000), (D, 1000), (D, 1000)]
    assert sizes == [*encoder, (1000, D), (1000, 1000), (1000, 1000), (2, 1000)]
    assert sum(isinstance(layer, torch.nn.LeakyReLU) for layer in prior.modules()) == 6
    alone = uw.methods.create("ivae", vectors, latent_size=D).prior
    sizes = [tuple(layer.weight.shape) for layer in alone.modules() if isinstance(layer, torch.nn.Linear)]
    assert sizes == encoder


# --- all labels known ------------------------------------------------------------------------------


def test_full_vae_matches_codes_to_labels(made):
    method, p, batch = made("full_vae", gamma=6, beta=2)
    u = batch.u.double()
    chance = torch.sigmoid(p.mean[:, :2])
    match = -(u * chance.log() + (1 - u) * (1 - chance).log()).sum(1).mean()
    kl = kl_divergence(Normal(p.mean, scale(p.log_variance)), Normal(0.0, 1.0)).sum(1).mean()
    check(method, p, reconstruction(method, p.z, p.images).mean() + 2 * kl + 6 * match)


def test_full_vae_with_few_labels_matches_those(made):
    method, p, batch = made("full_vae", {"labelled": 9}, gamma=6)
    mean = method.encoder(batch.labelled.images)[0]
    match = binary_cross_entropy_with_logits(mean[:, :2], batch.labelled.u.double(), reduction="none")
    torch.testing.assert_close(method.loss(p).values["label_match"], match.sum(1).mean())


def test_ivae_is_held_to_the_prior_of_its_labels(made):
    method, p, batch = made("ivae", beta=4)
    u = batch.u.double()
    mean, log_variance = method.encoder(p.images, u)
    z = mean + scale(log_variance) * torch.randn(
        N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(5)
    )
    expected = reconstruction(method, z, p.images) + 4 * kl_to_prior(method, p.images, u)
    check(method, p, expected.mean())


@pytest.mark.parametrize("one_hot", [False, True])
def test_idvae_has_a_second_vae_on_labels(made, one_hot):
    method, p, batch = made("idvae", {"encoding": "one_hot" if one_hot else "scaled"}, beta=4)
    u = batch.u.double()
    generator = torch.Generator().manual_seed(5)
    first, second = (torch.randn(N, D, dtype=torch.float64, generator=generator) for _ in range(2))
    mean, log_variance = method.encoder(p.images, u)
    z = mean + scale(log_variance) * first
    expected = reconstruction(method, z, p.images) + 4 * kl_to_prior(method, p.images, u)
    check(method, p, (expected - label_elbo(method, u, second, one_hot)).mean())


def test_the_variance_of_labels_can_be_chosen(made):
    method = made("idvae", label_variance=0.5)[0]
    mean = torch.randn(4, 2, dtype=torch.float64)
    method.prior.decoder = torch.nn.Identity()
    u = torch.rand(4, 2, dtype=torch.float64)
    squares = (u - mean).square() + 0.5 * math.log(math.pi)  # variance 1/2: the sum of squared errors
    torch.testing.assert_close(-method.prior.labels(mean).log_probability(u), squares)


@pytest.mark.parametrize(
    ("size", "variance"), [(8, 1 / 768), (183, 1 / (12 * 183**2)), (288, 1 / (12 * 288**2)), (289, 1e-6)]
)
def test_a_label_is_known_to_its_rounding_error_or_a_thousandth(size, variance):
    column = {"name": "a", "size": size, "one_hot": False}
    layout = LabelLayout.of({"columns": [column]})
    torch.testing.assert_close(layout.rounding(), torch.tensor([variance]))


@pytest.mark.parametrize(("size", "variance"), [(2, 1 / 48), (5, 1 / 300), (6, 0.0025), (1000, 0.0025)])
def test_a_label_is_told_to_its_rounding_error_or_a_twentieth(vectors, size, variance):
    method = uw.methods.create("idvae", vectors, latent_size=D, labels=np.arange(64) * (size - 1) // 63)
    told = method.prior.labels(torch.zeros(1, D))
    torch.testing.assert_close(told.log_variance.exp(), torch.tensor([variance]))


@pytest.mark.parametrize("name", ["idvae", "ss_idvae"])
def test_labels_of_a_million_values_can_be_learned(vectors, name):
    method = uw.methods.create(name, vectors, latent_size=D, labels=np.arange(64) * 20_000)
    run = uw.train(method, vectors, steps=30, batch_size=16, log_every=1)
    losses = [record["label_reconstruction"] for record in run.records]
    assert losses[0] < 1e6
    assert losses[-1] < losses[0] / 2


# --- some labels missing (appendix C) --------------------------------------------------------------


def written_out(method, p, batch, one_hot, bound):
    """Equations 21 to 23 and the further term, image by image. ``bound``: -log p(u) of labels, by image."""
    u, generator = batch.u.double(), torch.Generator().manual_seed(5)
    width = u.shape[1]
    gaussian = torch.randn(N, width, dtype=torch.float64, generator=generator)
    location, log_variance = method.predictor.network(p.images)
    variance = log_variance.exp() + 1 / (12 * 8**2)
    if one_hot:
        gumbel = -torch.empty(N, width, dtype=torch.float64).exponential_(generator=generator).log()
        best = (location + gumbel).reshape(N, 2, 8).argmax(2)
        drawn = torch.nn.functional.one_hot(best, 8).double().reshape(N, width)
        entropies = Categorical(logits=location.reshape(N, 2, 8)).entropy().sum(1)
    else:
        drawn = location + variance.sqrt() * gaussian
        entropies = Normal(location, variance.sqrt()).entropy().sum(1)
    first, second = (torch.randn(N, D, dtype=torch.float64, generator=generator) for _ in range(2))
    total = 0.0
    for row in range(N):
        one = slice(row, row + 1)
        is_labelled = not u[row].isnan().any()
        its_u = u[one] if is_labelled else drawn[one]
        mean, spread = method.encoder(p.images[one], its_u)
        z = mean + scale(spread) * first[one]
        loss = reconstruction(method, z, p.images[one]) + 3 * kl_to_prior(method, p.images[one], its_u)
        loss = loss + bound(its_u, second[one], is_labelled, location[one], variance[one])
        total = total + (loss if is_labelled else loss - entropies[row])
    location, log_variance = method.predictor.network(batch.labelled.images)
    known = batch.labelled.u.double()
    if one_hot:
        q = Categorical(logits=location.reshape(-1, 2, 8)).log_prob(known.reshape(-1, 2, 8).argmax(2))
    else:
        q = Normal(location, (log_variance.exp() + 1 / (12 * 8**2)).sqrt()).log_prob(known)
    return total.squeeze() / N - 0.7 * q.sum(1).mean()


@pytest.mark.parametrize("one_hot", [False, True])
def test_semi_supervised_idvae(made, one_hot):
    labels = {"labelled": 30, "encoding": "one_hot" if one_hot else "scaled"}
    method, p, batch = made("ss_idvae", labels, beta=3, alpha=0.7)
    assert 0 < p.missing.all(1).sum() < N
    expected = written_out(
        method, p, batch, one_hot, lambda u, noise, *_: -label_elbo(method, u, noise, one_hot)
    )
    check(method, p, expected)


@pytest.mark.parametrize("one_hot", [False, True])
def test_semi_supervised_ivae_has_a_fixed_distribution_of_labels(made, one_hot):
    labels = {"labelled": 30, "encoding": "one_hot" if one_hot else "scaled"}
    method, p, batch = made("ss_ivae", labels, beta=3, alpha=0.7)

    def bound(u, noise, is_labelled, location, variance):
        if is_labelled:
            return 0.0  # a constant
        if one_hot:
            return 2 * math.log(8)
        values = torch.arange(8, dtype=torch.float64) / 8
        q, prior = Normal(location, variance.sqrt()), Normal(values.mean(), values.std(correction=0))
        return (kl_divergence(q, prior) + q.entropy()).sum()  # -E_q[log p] = KL(q || p) + H(q)

    check(method, p, written_out(method, p, batch, one_hot, bound))


@pytest.mark.parametrize("size", [1, 2, 7, 300, None])
def test_the_fixed_distribution_of_labels_has_the_moments_of_their_values(vectors, size):
    """Against the integral of -q(u) log p(u) over a grid."""
    own = np.linspace(0, 1, 64) if size is None else np.where(np.arange(64) == 0, size - 1, 0)
    method = uw.methods.create("ss_ivae", vectors, latent_size=D, labels=own).double()
    values = np.linspace(0, 1, 100_001) if size is None else np.arange(size) / size
    mean, deviation = values.mean(), values.std()
    if size == 1:
        deviation = math.sqrt(1 / 12)  # nothing to tell from values: the rounding error
    location, variance = torch.tensor([[0.2], [0.9]]).double(), torch.tensor([[0.01], [0.3]]).double()
    q = uw.methods.LabelDistribution(method.layout, location, variance.log())
    found = q.cross_entropy(method.prior.label_mean, method.prior.label_variance)
    grid = torch.linspace(-12, 12, 200_001).double()
    density = Normal(location, variance.sqrt()).log_prob(grid).exp()
    expected = torch.trapezoid(-density * Normal(mean, deviation).log_prob(grid), grid)
    torch.testing.assert_close(found[:, 0], expected, rtol=1e-4, atol=1e-6)


def test_semi_supervised_with_all_labels_is_supervised_and_q(made):
    method, p, batch = made("ss_idvae", alpha=0.7)
    values = method.loss(p).values
    assert values["label_entropy"].item() == 0
    location, log_variance = method.predictor.network(p.images)
    variance = log_variance.exp() + 1 / (12 * 8**2)
    expected = -Normal(location, variance.sqrt()).log_prob(batch.u.double()).sum(1).mean()
    torch.testing.assert_close(values["label_likelihood"], expected)
    torch.testing.assert_close(p.u, batch.u.double())


def test_an_image_may_have_some_of_its_labels(vectors):
    own = np.random.default_rng(0).random((64, 2))
    own[::2, 0] = NAN
    own[::3, 1] = NAN
    method = uw.methods.create("ss_idvae", vectors, latent_size=D, labels=own, seed=1).double()
    u = torch.from_numpy(own[:N])
    images = to_tensor(vectors.images(np.arange(N))).double()
    p = method.begin(LabelledBatch(images, u=u), 0, torch.Generator().manual_seed(0))
    torch.testing.assert_close(p.u[~u.isnan()], u[~u.isnan()])
    assert not p.u.isnan().any()
    q = method.predictor.predict(images)
    floor = 1e-4  # own labels are continuous
    _, log_variance = method.predictor.network(images)
    each = Normal(q.location, (log_variance.exp() + floor).sqrt())
    values = method.loss(p).values
    torch.testing.assert_close(values["label_entropy"], each.entropy()[u.isnan()].sum() / N)
    likelihood = each.log_prob(u.nan_to_num())[~u.isnan()].sum() / N
    torch.testing.assert_close(values["label_likelihood"], -likelihood)


# --- which weights each term reaches ---------------------------------------------------------------

REACHED = {
    ("full_vae", None): {
        "reconstruction": {"encoder", "decoder"},
        "kl": {"encoder"},
        "label_match": {"encoder"},
    },
    ("ivae", None): {"reconstruction": {"encoder", "decoder"}, "kl": {"encoder", "prior.encoder"}},
    ("idvae", None): {
        "reconstruction": {"encoder", "decoder"},
        "kl": {"encoder"},
        "label_reconstruction": {"prior.encoder", "prior.decoder"},
        "label_kl": {"prior.encoder"},
    },
    ("ss_ivae", "scaled"): {
        "reconstruction": {"encoder", "decoder", "predictor"},
        "kl": {"encoder", "prior.encoder", "predictor"},
        "label_prior": {"predictor"},
        "label_entropy": {"predictor"},
        "label_likelihood": {"predictor"},
    },
    ("ss_idvae", "scaled"): {
        "reconstruction": {"encoder", "decoder", "predictor"},
        "kl": {"encoder", "predictor"},
        "label_reconstruction": {"prior.encoder", "prior.decoder", "predictor"},
        "label_kl": {"prior.encoder", "predictor"},
        "label_entropy": {"predictor"},
        "label_likelihood": {"predictor"},
    },
    ("ss_idvae", "one_hot"): {
        "reconstruction": {"encoder", "decoder", "predictor"},
        "kl": {"encoder", "predictor"},
        "label_reconstruction": {"prior.encoder", "prior.decoder", "predictor"},
        "label_kl": {"prior.encoder", "predictor"},
        "label_entropy": {"predictor"},
        "label_likelihood": {"predictor"},
    },
}


@pytest.mark.parametrize(("case", "reached"), REACHED.items())
def test_which_weights_each_term_reaches(made, case, reached):
    name, encoding = case
    method, p, _ = made(name, None if encoding is None else {"labelled": 30, "encoding": encoding})
    groups = {
        group: [q for key, q in method.named_parameters() if key.startswith(group) and q.requires_grad]
        for group in (
            "encoder",
            "decoder",
            "prior.encoder",
            "prior.decoder",
            "predictor",
        )
    }
    terms = method.loss(p)
    assert set(terms.values) == set(reached)
    for term, value in terms.values.items():
        found = set()
        for group, parameters in groups.items():
            gradients = (
                torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
                if parameters
                else []
            )
            if any(gradient is not None and gradient.abs().max() > 0 for gradient in gradients):
                found.add(group)
        assert found == reached[term], term
    method.loss(p).loss.backward()
    (player,) = method.players()
    assert all(parameter.grad is not None for parameter in player.parameters)


@pytest.mark.parametrize(("name", "passes"), [("idvae", 1), ("ss_idvae", 2)])
def test_the_label_encoder_runs_once_where_labels_are_given(vectors, name, passes):
    """With drawn labels it runs twice: gradients of the KL go to them and not to its weights."""
    method = uw.methods.create(name, vectors, latent_size=D, seed=1)
    u = torch.from_numpy(method.labels_for(vectors).of(np.arange(N)))
    if name == "ss_idvae":
        u[::2] = NAN
    calls = []
    method.prior.encoder.register_forward_hook(lambda *_: calls.append(1))
    made = method.begin(LabelledBatch(to_tensor(vectors.images(np.arange(N))), u=u), 0)
    method.loss(made).loss.backward()
    assert len(calls) == passes
    expected = method.prior.given(made.u)
    assert torch.equal(made.prior.mean, expected.mean)
    assert torch.equal(made.prior.log_variance, expected.log_variance)


def test_the_entropy_has_the_sign_of_a_bound(made):
    """Together, what missing labels add to the loss of ss_ivae is KL(q(u|x) || p(u)): least for q = p."""
    method, p, _ = made("ss_ivae", {"labelled": 1, "names": ["a"], "encoding": "one_hot"})
    p.missing = torch.ones(N, 1, dtype=torch.bool)
    for logits in (torch.zeros(N, 8).double(), torch.randn(N, 8).double()):
        p.prediction = uw.methods.LabelDistribution(method.layout, logits, logits)
        terms = method.loss(p)
        cost = sum(terms.weights[name] * terms.values[name] for name in ("label_prior", "label_entropy"))
        uniform = Categorical(logits=torch.zeros(8).double())
        torch.testing.assert_close(cost, kl_divergence(Categorical(logits=logits), uniform).mean())


# --- parts that are handed to other methods --------------------------------------------------------


@pytest.mark.parametrize("prior", ["conditional", {"name": "label_vae", "label_variance": 0.1}])
@pytest.mark.parametrize("name", ["beta_tcvae", "factor_vae", "dip_vae_ii", "annealed_vae"])
def test_any_method_takes_a_prior_and_correlated_noise(vectors, name, prior):
    method = uw.methods.create(
        name, vectors, latent_size=D, prior=prior, labels=["a"], correlation=0.5, seed=0
    )
    u = torch.from_numpy(method.labels_for(vectors).of(np.arange(N)))
    made = method.begin(LabelledBatch(to_tensor(vectors.images(np.arange(N))), u=u), 3)
    terms = method.loss(made)
    assert torch.isfinite(terms.loss)
    mean, log_variance = label_network(method.prior.encoder, u)
    covariance = 0.5 * torch.eye(D) + 0.5
    spread = torch.diag_embed(scale(made.log_variance))
    posterior = torch.distributions.MultivariateNormal(made.mean, spread @ covariance @ spread)
    expected = torch.distributions.MultivariateNormal(mean, torch.diag_embed(log_variance.exp()))
    torch.testing.assert_close(terms.values["kl"], kl_divergence(posterior, expected).mean())
    again = uw.methods.build(uw.methods.MethodSpec.from_dict(method.spec.as_dict()))
    again.load_state_dict(method.state_dict())
    torch.testing.assert_close(again.encode(made.images, u).mean, method.encode(made.images, u).mean)


def test_a_capacity_holds_the_conditional_kl(made):
    method, p, batch = made("idvae", capacity={"c_max": 5, "gamma": 10, "steps": 1})
    terms = method.loss(p)
    expected = kl_to_prior(method, p.images, batch.u.double()).mean()
    torch.testing.assert_close(terms.values["kl_capacity"], expected.abs())
    assert terms.weights["kl"] == 0


def test_codes_can_be_matched_in_other_methods(vectors):
    method = uw.methods.create("beta_tcvae", vectors, extra_terms=[{"name": "label_match", "weight": 3}])
    assert method.spec.labels is not None
    made = method.begin(LabelledBatch(vectors.batch(0, 4).images, u=torch.rand(4, 2)), 0)
    assert method.loss(made).weights["label_match"] == 3
