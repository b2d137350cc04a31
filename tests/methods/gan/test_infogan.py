"""InfoGAN and InfoWGAN-GP: losses against independent computations, whose gradients go where, and whole runs."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

import unweave as uw
from unweave.cli import main
from unweave.errors import ArgumentError
from unweave.methods import (
    Decodes,
    Encodes,
    GeneratesFromNoise,
    HasCategories,
    HasDensity,
    HasEvidenceBound,
    Samples,
)
from unweave.methods.gan.infogan import CodePosterior
from unweave.training import Callback

NAMES = ["infogan", "info_wgan_gp"]
SMALL = {"num_categories": 3, "noise_size": 4, "width": 4}


def create(name, data, **settings):
    return uw.methods.create(name, data, seed=1, **SMALL | settings)


def play(method, data, n=6):
    """The result of ``begin`` on one batch."""
    batch = method.batches(data).draw(0, n, seed=0)
    return method.begin(batch, 0, torch.Generator().manual_seed(2))


def weights(method):
    return {name: value.clone() for name, value in method.state_dict().items()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


# --- losses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_model_terms_are_those_of_the_paper(digits, correlation):
    method = create("infogan", digits, correlation=correlation, num_continuous=3)
    game = play(method, digits)
    terms = method.model_terms(game)
    features = method.discriminator.features(game.fake)
    output = method.q(features).double()
    probability = torch.sigmoid(method.discriminator.output(features)[:, 0]).double()
    expected = {"generator": -probability.log().mean()}
    chosen = output[:, :3].softmax(1)[torch.arange(6), game.codes.category]
    expected["categorical"] = -chosen.log().mean()
    shape = (1 - correlation) * torch.eye(3) + correlation * torch.ones(3, 3)
    total = 0.0
    for row in range(6):
        deviation = torch.diag((output[row, 6:].exp() + 1e-6).sqrt())
        density = torch.distributions.MultivariateNormal(
            output[row, 3:6], deviation @ shape.double() @ deviation
        )
        total -= density.log_prob(game.codes.continuous[row].double())
    expected["continuous"] = total / 6
    assert terms.weights == {"generator": 1.0, "categorical": 1.0, "continuous": 0.1}
    for name, value in expected.items():
        torch.testing.assert_close(terms.values[name].double(), value, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        terms.loss.double(),
        expected["generator"] + expected["categorical"] + 0.1 * expected["continuous"],
        rtol=1e-4,
        atol=1e-5,
    )


def test_correlated_density_is_that_of_torch():
    torch.manual_seed(0)
    data = uw.data.from_arrays(np.zeros((2, 28, 28, 1), np.uint8))
    method = create("infogan", data, correlation=0.9)
    codes, mean, log_variance = torch.randn(3, 5, 2, dtype=torch.float64)
    posterior = CodePosterior(torch.zeros(5, 3), mean, log_variance)
    deviation = torch.diag_embed((0.5 * log_variance).exp())
    covariance = deviation @ torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64) @ deviation
    expected = torch.distributions.MultivariateNormal(mean, covariance).log_prob(codes)
    torch.testing.assert_close(method.continuous_log_density(codes, posterior), expected)


def test_discriminator_terms_are_the_cross_entropy(digits):
    method = create("infogan", digits)
    game = play(method, digits)
    terms = method.discriminator_terms(game)
    real, fake = method.discriminator(game.real), method.discriminator(game.fake)
    expected = 0.5 * (
        F.binary_cross_entropy_with_logits(real, torch.ones(6))
        + F.binary_cross_entropy_with_logits(fake, torch.zeros(6))
    )
    torch.testing.assert_close(terms.loss, expected)
    right = [*(real > 0).tolist(), *(fake < 0).tolist()]
    assert terms.values["discriminator_accuracy"].item() == pytest.approx(np.mean(right))
    assert [name for name, weight in terms.weights.items() if weight == 0] == [
        "discriminator_accuracy",
        "diversity",
        "collapsed",
    ]


def test_critic_terms_are_those_of_the_paper(digits):
    method = create("info_wgan_gp", digits, penalty=7.0)
    game = play(method, digits)
    random = torch.Generator()
    random.set_state(game.random.get_state())
    terms = method.discriminator_terms(game)
    critic = method.discriminator
    share = torch.rand(6, 1, 1, 1, generator=random)
    between = (share * game.real + (1 - share) * game.fake).detach().requires_grad_(True)
    (gradient,) = torch.autograd.grad(critic(between).sum(), between)
    penalty = ((gradient.square().sum((1, 2, 3)).sqrt() - 1) ** 2).mean()
    difference = critic(game.fake).mean() - critic(game.real).mean()
    torch.testing.assert_close(terms.loss, difference + 7 * penalty)
    real, fake = critic(game.real), critic(game.fake)
    ordered = np.mean([[a > b for b in fake.tolist()] for a in real.tolist()])
    assert terms.values["critic_accuracy"].item() == pytest.approx(ordered)
    model = method.model_terms(game)
    torch.testing.assert_close(model.values["generator"], -critic(game.fake).mean())


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_a_fixed_variance_is_one(digits, correlation):
    method = create("infogan", digits, correlation=correlation, variance="one")
    game = play(method, digits)
    mean = method.q(method.discriminator.features(game.fake))[:, 3:5].double()
    shape = torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=torch.float64)
    density = torch.distributions.MultivariateNormal(mean, shape)
    expected = -density.log_prob(game.codes.continuous.double()).mean()
    torch.testing.assert_close(
        method.model_terms(game).values["continuous"].double(), expected, rtol=1e-4, atol=1e-5
    )
    assert torch.all(method.encode(game.real).log_variance[:, 3:] == 0)


@pytest.mark.parametrize(("name", "share"), [("infogan", 0.5), ("info_wgan_gp", 1.0)])
def test_q_in_the_discriminators_loss_is_that_of_the_code_of_chen_et_al(digits, name, share):
    """Their loss of D is the sum of two cross entropies + -log Q, ours the mean of two + half of -log Q."""
    method, alone = create(name, digits, q_trains_body=True), create(name, digits)
    game = play(method, digits)
    state = game.random.get_state()  # of the gradient penalty
    terms = method.discriminator_terms(game)
    game.random.set_state(state)
    without = alone.discriminator_terms(game).loss
    model = method.model_terms(game).values
    torch.testing.assert_close(
        terms.loss, without + share * (model["categorical"] + 0.1 * model["continuous"])
    )


@pytest.mark.parametrize(("q_trains_body", "network"), [(False, "dcgan"), (True, "dcgan"), (True, "dense")])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_only_a_players_own_parameters(digits, name, q_trains_body, network):
    method = create(name, digits, ema=0.9, q_trains_body=q_trains_body, network=network)
    game = play(method, digits)
    players = method.players()
    owned = [{id(p) for p in player.parameters} for player in players]
    assert not owned[0] & owned[1]
    averaged = {id(p) for p in method.generator.average.parameters()}
    assert owned[0] | owned[1] | averaged == {id(p) for p in method.parameters()}
    assert {id(p) for p in method.q.parameters()} <= owned[0 if q_trains_body else 1]
    for player, own in zip(players, owned, strict=True):
        method.zero_grad(set_to_none=True)
        player.loss(game).loss.backward()
        reached = {id(p) for p in method.parameters() if p.grad is not None}
        # A critic's difference does not depend on the bias of its output, but has its gradient, 0.
        assert reached == own, player.name
        assert all(p.requires_grad for p in player.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_dense_networks_have_small_normal_weights_and_a_critic_no_batch_normalisation(digits, name):
    method = create(name, digits, network="dense", width=16, noise_size=62)
    weights = torch.cat([p.flatten() for p in method.generator.network.dense.parameters() if p.ndim > 1])
    assert weights.std().item() == pytest.approx(0.02, rel=0.02)
    assert weights.mean().abs() < 1e-4
    norms = [m for m in method.discriminator.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert len(norms) == (1 if name == "infogan" else 0)
    again = create(name, digits, network="dense", width=16, noise_size=62)
    assert_same(method.state_dict(), again.state_dict())


def test_players_have_the_papers_optimisers(digits):
    settings = {
        name: [
            (p.name, p.optimiser.learning_rate, p.optimiser.betas, p.every)
            for p in create(name, digits).players()
        ]
        for name in NAMES
    }
    assert settings == {
        "infogan": [("discriminator", 2e-4, (0.5, 0.999), 1), ("model", 1e-3, (0.5, 0.999), 1)],
        "info_wgan_gp": [("critic", 2e-4, (0.0, 0.9), 1), ("model", 2e-4, (0.0, 0.9), 5)],
    }
    assert uw.methods.hyperparameters("info_wgan_gp")["penalty"] == 10


def test_codes_have_their_prior(digits):
    method = create("infogan", digits, num_categories=4)
    category, continuous, noise = method.draw_codes(4000, torch.Generator().manual_seed(0))
    shares = torch.bincount(category, minlength=4) / 4000
    torch.testing.assert_close(shares, torch.full((4,), 0.25), rtol=0, atol=0.03)
    for values, size in ((continuous, 2), (noise, 4)):
        assert values.shape == (4000, size)
        assert -1 <= values.min() < -0.99
        assert 0.99 < values.max() <= 1
        assert values.mean().abs() < 0.03
        assert values.var().item() == pytest.approx(1 / 3, abs=0.02)


def test_a_certain_q_has_a_bounded_density(digits):
    method = create("infogan", digits)
    with torch.no_grad():
        method.q[-1].bias[-2:] = -1000.0
    log_variance = method.encode(digits.batch(0, 4).images).log_variance
    assert torch.all(log_variance[:, -2:] >= math.log(1e-6) - 1e-3)


# --- capabilities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_codes_and_images(digits, name):
    method = create(name, digits, correlation=0.9).eval()
    assert [
        isinstance(method, kind) for kind in (Encodes, Decodes, Samples, HasDensity, HasEvidenceBound)
    ] == [
        True,
        True,
        True,
        False,
        False,
    ]
    mean, log_variance = method.encode(digits.batch(0, 4).images)
    assert method.parts == {"c": slice(0, 5)}
    assert method.noise_correlation == 0.9
    torch.testing.assert_close(mean[:, :3].sum(1), torch.ones(4))
    assert torch.all(log_variance[:, :3] == -torch.inf)
    assert torch.all(log_variance[:, 3:].isfinite())
    images = method.decode(mean)
    assert images.shape == (4, 1, 28, 28)
    assert images.min() >= 0
    assert images.max() <= 1
    whole = torch.cat([mean, torch.zeros(4, 4)], dim=1)
    assert torch.equal(images, torch.sigmoid(method.generator.network(whole)))
    samples = [method.sample(3, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])
    assert isinstance(method, GeneratesFromNoise)
    codes, noise = method.sample_inputs(3, torch.Generator().manual_seed(1))
    assert (codes.shape, noise.shape) == ((3, 5), (3, 4))
    assert torch.equal(method.generate(codes, noise), samples[0])
    assert torch.equal(method.generate(codes, 0 * noise), method.decode(codes))
    assert isinstance(method, HasCategories)
    assert torch.equal(codes[:, method.categories[0]].sort(dim=1)[0], torch.eye(3)[2].expand(3, 3))


def test_a_moving_average_generates(digits):
    plain, averaged = (create("infogan", digits, ema=ema) for ema in (0.0, 0.75))
    for method in (plain, averaged):
        history = []

        class Keep(Callback):
            def on_log(self, step, values):
                history.append(method.generator.network.dense.weight.detach().clone())  # noqa: B023

        start = method.generator.network.dense.weight.detach().clone()
        uw.train(method, digits, 4, 4, log_every=1, callbacks=[Keep()])
    # The average begins with the weights at the first step, and is updated before each of the next.
    expected = start
    for weight in history[:-1]:
        expected = 0.75 * expected + 0.25 * weight
    average = averaged.generator.average.module
    torch.testing.assert_close(average.dense.weight, expected)
    codes = torch.rand(2, 5)
    assert torch.equal(averaged.decode(codes), torch.sigmoid(average(F.pad(codes, (0, 4)))))
    assert not torch.equal(
        averaged.decode(codes), torch.sigmoid(averaged.generator.network(F.pad(codes, (0, 4))))
    )
    assert plain.generator.average is None


# --- runs -------------------------------------------------------------------------------------------


class Stop(Callback):
    def on_log(self, step, values):
        if step == 5:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("infogan", {"ema": 0.9}),
        ("infogan", {"q_trains_body": True, "variance": "one", "network": "dense"}),
        ("info_wgan_gp", {"ema": 0.5}),
    ],
)
def test_a_stopped_run_goes_on_to_the_same_bits(digits, name, settings, tmp_path):
    options = {"batch_size": 4, "seed": 4, "log_every": 1, "pictures": False}
    settings = SMALL | settings
    whole = uw.train(uw.methods.create(name, digits, **settings), digits, 7, **options)
    with pytest.raises(KeyboardInterrupt):
        uw.train(
            uw.methods.create(name, digits, **settings),
            digits,
            7,
            out=tmp_path / "run",
            callbacks=[Stop()],
            checkpoint_every=3,
            **options,
        )
    assert uw.load(tmp_path / "run").step == 3
    resumed = uw.train(
        uw.methods.create(name, digits, **settings), digits, 7, out=tmp_path / "run", **options
    )
    assert_same(weights(whole.method), weights(resumed.method))
    loaded = uw.load(tmp_path / "run")
    assert_same(weights(whole.method), weights(loaded.method))
    assert loaded.method.spec == whole.method.spec
    np.testing.assert_array_equal(loaded.sample(3, seed=5), whole.sample(3, seed=5))
    np.testing.assert_array_equal(loaded.encode(digits, part="c"), whole.encode(digits))
    records = [{k: v for k, v in r.items() if k != "images_per_second"} for r in whole.records]
    assert records == [{k: v for k, v in r.items() if k != "images_per_second"} for r in loaded.records]


def test_the_history_has_every_term(digits):
    run = uw.train(create("infogan", digits), digits, 2, 4, log_every=1)
    signs = {"discriminator_accuracy", "diversity", "collapsed"}
    losses = {"loss", "discriminator_loss", "generator", "categorical", "continuous"}
    assert set(run.records[0]) == {"step", "images_per_second"} | losses | signs
    run = uw.train(create("info_wgan_gp", digits, critic_steps=2), digits, 2, 4, log_every=1)
    critic = {
        "critic_loss",
        "critic_difference",
        "gradient_penalty",
        "critic_accuracy",
        "diversity",
        "collapsed",
    }
    assert set(run.records[0]) == {"step", "images_per_second"} | critic
    model = {"loss", "generator", "categorical", "continuous"}
    assert set(run.records[1]) == {"step", "images_per_second"} | critic | model


def test_the_generator_of_a_wasserstein_gan_waits_for_the_critic(digits):
    method = create("info_wgan_gp", digits)
    start = {name: value.detach().clone() for name, value in method.named_parameters()}
    uw.train(method, digits, 4, 4)
    moved = {name for name, value in method.named_parameters() if not torch.equal(value, start[name])}
    assert moved
    assert all(name.startswith("discriminator.") for name in moved)
    method = create("info_wgan_gp", digits)
    uw.train(method, digits, 5, 4)
    moved = {name for name, value in method.named_parameters() if not torch.equal(value, start[name])}
    assert {name.partition(".")[0] for name in moved} == {"discriminator", "generator", "q"}


def test_q_learns_the_category(digits):
    """A generator that shows its category: after some steps Q reads it off most images."""
    run = uw.train(create("infogan", digits, width=8), digits, 60, 16, log_every=10)
    assert run.records[-1]["categorical"] < 0.6 * math.log(3)


def test_a_collapsed_generator_is_reported(digits):
    method = create("infogan", digits)
    with torch.no_grad():
        method.generator.network.convolutions[-1].weight.zero_()
    record = uw.train(method, digits, 1, 4).records[0]
    assert record["diversity"] == 0
    assert record["collapsed"] == 1


# --- names, command line, refusals ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"corelation": 0.9}, "'corelation': did you mean 'correlation'"),
        ({"correlation": 1}, "correlation = 1"),
        ({"num_categories": 1}, "num_categories = 1"),
        ({"num_continuous": 0}, "num_continuous = 0"),
        ({"noise_size": -1}, "noise_size = -1"),
        ({"ema": 1.0}, "ema = 1.0"),
        ({"continuous_weight": -0.1}, "continuous_weight = -0.1"),
        ({"latent_size": 3}, "'latent_size'"),
    ],
)
def test_wrong_hyperparameters_are_refused_by_name(digits, name, settings, message):
    with pytest.raises(ArgumentError, match=message):
        uw.methods.create(name, digits, **settings)


def test_wrong_data_and_batches_are_refused(digits):
    with pytest.raises(ArgumentError, match="image_shape"):
        uw.methods.create("infogan", uw.data.from_arrays(np.zeros((4, 9, 9, 1), np.uint8)))
    with pytest.raises(ArgumentError, match="batch_size = 1: needs two or more"):
        uw.train(create("infogan", digits), digits, 1, 1)


def test_the_command_line(tmp_path, capsys):
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(4):
        image = np.zeros((32, 32), np.uint8)
        image[number * 6 : number * 6 + 8] = 255
        Image.fromarray(image).save(folder / f"{number}.png")

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        return int(caught.value.code or 0), capsys.readouterr().out

    code, printed = run("methods")
    assert code == 0
    assert all(name in printed for name in NAMES)
    settings = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]
    out = tmp_path / "run"
    code, printed = run(
        "train",
        "infogan",
        "--data",
        folder,
        "--steps",
        2,
        "--batch-size",
        4,
        "--correlation",
        0.9,
        *settings,
        "--out",
        out,
    )
    assert code == 0, printed
    assert "collapsed" in printed
    assert uw.load(out).method.correlation == 0.9
    assert (out / "traversals.png").exists()
