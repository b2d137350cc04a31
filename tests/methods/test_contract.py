"""The contract of methods, proved by two that are no VAEs and are written here, outside the package."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.methods import (
    Decodes,
    Encodes,
    EncodesWithLabels,
    HasDensity,
    HasEvidenceBound,
    Method,
    OptimiserSettings,
    Player,
    Posterior,
    Samples,
    Terms,
    register_method,
)
from unweave.parameters import Count, Positive
from unweave.training import Callback


@pytest.fixture(autouse=True, scope="module")
def _registered():
    register_method("small_gan", label="Small GAN", paper="nobody 2020")(SmallGAN)
    register_method("affine_flow")(AffineFlow)
    yield
    uw.methods.METHODS.unregister("small_gan")
    uw.methods.METHODS.unregister("affine_flow")


class SmallGAN(Method):
    """A generator against a discriminator that also finds the code of an image, as InfoGAN does."""

    def __init__(self, image_shape, *, weight: Positive = 1.0, code_size: Count = 3):
        super().__init__()
        height, width, channels = image_shape
        self.shape, self.weight = (channels, height, width), weight
        self.generator = nn.Sequential(
            nn.Linear(code_size, 32), nn.ReLU(), nn.Linear(32, math.prod(self.shape))
        )
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(self.shape), 32), nn.ReLU())
        self.judge, self.guess = nn.Linear(32, 1), nn.Linear(32, code_size)
        self.code_size = code_size

    def begin(self, batch, step, generator):
        codes = torch.randn(len(batch), self.code_size, generator=generator, device=batch.images.device)
        return batch.images, codes, self.decode(codes)

    def players(self):
        critic = [*self.features.parameters(), *self.judge.parameters()]
        model = [*self.generator.parameters(), *self.guess.parameters()]
        return [
            Player("model", model, self._model_loss),
            Player("critic", critic, self._critic_loss, OptimiserSettings(2e-4, (0.5, 0.9))),
        ]

    def _model_loss(self, result):
        _, codes, fake = result
        features = self.features(fake)
        fooled = nn.functional.softplus(-self.judge(features)).mean()
        information = (self.guess(features) - codes).square().mean()
        return Terms.of(fooled=(fooled, 1.0), information=(information, self.weight))

    def _critic_loss(self, result):
        real, _, fake = result
        right = nn.functional.softplus(-self.judge(self.features(real))).mean()
        wrong = nn.functional.softplus(self.judge(self.features(fake.detach()))).mean()
        return Terms.of(critic=(right + wrong, 1.0))

    @property
    def parts(self):
        return {"c": slice(0, 1), "z": slice(1, self.code_size)}

    noise_correlation = 0.0

    def encode(self, images):
        mean = self.guess(self.features(images))
        return Posterior(mean, torch.full_like(mean, -torch.inf))

    def decode(self, codes):
        return torch.sigmoid(self.generator(codes)).view(-1, *self.shape)

    def sample(self, n, generator=None):
        return self.decode(torch.randn(n, self.code_size, generator=generator))


class AffineFlow(Method):
    """x = exp(s) * noise + m, pixel by pixel: a density in closed form."""

    def __init__(self, image_shape, least: Positive = 0.01):
        super().__init__()
        height, width, channels = image_shape
        self.least = least
        self.shift = nn.Parameter(torch.zeros(channels, height, width))
        self.log_scale = nn.Parameter(torch.zeros(channels, height, width))

    def initialise(self, seed):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.shift.copy_(torch.rand(self.shift.shape, generator=generator))
            self.log_scale.zero_()

    def begin(self, batch, step, generator):
        return -self.log_density(batch.images).mean()

    def players(self):
        return [Player("model", list(self.parameters()), lambda result: Terms.of(surprise=(result, 1.0)))]

    def log_density(self, images, generator=None):
        scale = self.log_scale.exp() + self.least
        return torch.distributions.Normal(self.shift, scale).log_prob(images).flatten(1).sum(1)

    def sample(self, n, generator=None):
        noise = torch.randn(n, *self.shift.shape, generator=generator)
        return self.shift + (self.log_scale.exp() + self.least) * noise


NAMES = ["small_gan", "affine_flow"]


@pytest.fixture
def bars():
    """64 images of 8x8 pixels: a bright row and a bright column."""
    images = np.zeros((64, 8, 8, 1), np.uint8)
    row, column = np.divmod(np.arange(64), 8)
    images[np.arange(64), row], images[np.arange(64), :, column] = 200, 255
    return uw.data.from_arrays(images, {"row": row, "column": column}, name="bars")


def weights(method):
    return {name: value.clone() for name, value in method.state_dict().items()}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


class Stop(Callback):
    def __init__(self, step):
        self.step = step

    def on_log(self, step, values):
        if step == self.step:
            raise KeyboardInterrupt


def test_capabilities_are_what_a_method_has(bars):
    gan, flow = (uw.methods.create(name, bars) for name in NAMES)
    vae, conditional = (uw.methods.create(name, bars, architecture="mlp") for name in ("vae", "ivae"))
    kinds = (Encodes, EncodesWithLabels, Decodes, Samples, HasDensity, HasEvidenceBound)
    assert [isinstance(gan, kind) for kind in kinds] == [True, False, True, True, False, False]
    assert [isinstance(flow, kind) for kind in kinds] == [False, False, False, True, True, False]
    assert [isinstance(vae, kind) for kind in kinds] == [True, False, True, True, False, True]
    assert [isinstance(conditional, kind) for kind in kinds] == [True, True, True, True, False, True]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_created_by_name_with_its_hyperparameters(bars, name):
    method = uw.methods.create(name, bars, seed=3)
    assert method.spec.as_dict() == {
        "name": name,
        "image_shape": [8, 8, 1],
        "dataset_size": 64,
        "hyperparameters": {},
    }
    assert uw.methods.MethodSpec.from_dict(method.spec.as_dict()) == method.spec
    assert_same(weights(method), weights(uw.methods.create(name, bars, seed=3)))
    assert not method.fresh


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("small_gan", {"weigth": 1}, "hyperparameter of small_gan = 'weigth': did you mean 'weight'"),
        ("small_gan", {"weight": 0}, "weight = 0: needs a number > 0"),
        ("small_gan", {"code_size": 2.5}, "code_size = 2.5"),
        ("small_gan", {"latent_size": 3}, "hyperparameter of small_gan = 'latent_size'"),
        ("affine_flow", {"prior": "conditional"}, "hyperparameter of affine_flow = 'prior'"),
    ],
)
def test_wrong_settings_are_refused_by_name(bars, name, settings, message):
    with pytest.raises(ArgumentError, match=message):
        uw.methods.create(name, bars, **settings)


def test_facts_without_being_asked():
    gan, flow = map(uw.methods.describe, NAMES)
    assert (gan.label, gan.paper, gan.strength, gan.is_vae) == ("Small GAN", "nobody 2020", "weight", False)
    assert (flow.label, flow.summary) == ("affine flow", AffineFlow.__doc__)
    assert gan.settings == ("weight", "code_size")
    styles = [uw.methods.style(name) for name in uw.methods.names()]
    assert len(set(styles)) == len(styles)
    assert uw.methods.style("affine_flow") == (flow.color, flow.marker)
    assert uw.methods.label_need("small_gan") == "none"


@pytest.mark.parametrize("name", NAMES)
def test_it_learns(bars, name):
    run = uw.train(uw.methods.create(name, bars), bars, 60, 32, 1e-2, log_every=10)
    records = run.records
    key = "information" if name == "small_gan" else "surprise"
    assert records[-1][key] < 0.8 * records[0][key]
    losses = {
        "small_gan": {"loss", "critic_loss", "fooled", "information"},
        "affine_flow": {"loss", "surprise"},
    }
    assert set(records[0]) == {"step", "images_per_second"} | losses[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_stopped_run_goes_on_to_the_same_bits(bars, name, tmp_path):
    options = {"batch_size": 8, "seed": 4, "log_every": 1}
    whole = uw.train(uw.methods.create(name, bars), bars, 7, **options)
    with pytest.raises(KeyboardInterrupt):
        uw.train(
            uw.methods.create(name, bars),
            bars,
            7,
            out=tmp_path / "run",
            callbacks=[Stop(5)],
            checkpoint_every=3,
            pictures=False,
            **options,
        )
    assert uw.load(tmp_path / "run").step == 3
    resumed = uw.train(uw.methods.create(name, bars), bars, 7, out=tmp_path / "run", **options)
    assert_same(weights(whole.method), weights(resumed.method))
    again = uw.train(uw.methods.create(name, bars), bars, 7, out=tmp_path / "run", **options)
    assert_same(weights(whole.method), weights(again.method))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_saved_loaded_and_sampled_from(bars, name, tmp_path):
    settings = {"code_size": 2} if name == "small_gan" else {"least": 0.05}
    run = uw.train(uw.methods.create(name, bars, **settings), bars, 3, 8, out=tmp_path / "run")
    loaded = uw.load(tmp_path / "run").method
    assert loaded.spec == run.method.spec
    assert_same(weights(loaded), weights(run.method))
    images = [m.sample(4, torch.Generator().manual_seed(1)) for m in (loaded, run.method)]
    assert images[0].shape == (4, 1, 8, 8)
    assert torch.equal(*images)
    if isinstance(loaded, HasDensity):
        batch = bars.batch(0, 5).images
        assert torch.equal(loaded.log_density(batch), run.method.log_density(batch))


def test_a_spec_of_an_unknown_method_is_refused(bars, tmp_path):
    uw.train(uw.methods.create("affine_flow", bars), bars, 1, 8, out=tmp_path / "run")
    uw.methods.METHODS.unregister("affine_flow")
    try:
        with pytest.raises(uw.UnweaveError, match="affine_flow"):
            uw.load(tmp_path / "run")
    finally:
        register_method("affine_flow")(AffineFlow)


def test_other_data_and_parts_are_refused(bars):
    method = uw.methods.create("affine_flow", bars)
    other = uw.data.from_arrays(np.zeros((3, 28, 28, 1), np.uint8))
    with pytest.raises(ArgumentError, match=r"has images \(28, 28, 1\), the method is for \(8, 8, 1\)"):
        uw.train(method, other, 1)
    with pytest.raises(ArgumentError, match="encoder = 'Linear': affine_flow takes none"):
        uw.methods.build(method.spec, encoder=nn.Linear(2, 2))


def test_mixed_precision(bars):
    run = uw.train(uw.methods.create("small_gan", bars), bars, 2, 8, precision="bf16-mixed")
    assert math.isfinite(run.records[-1]["loss"])


def test_what_is_registered_is_checked():
    for wrong, message in (
        (type("Nothing", (), {}), "a subclass of Method"),
        (type("Bare", (Method,), {"__init__": lambda self: None}), "needs the argument image_shape"),
        (lambda beta: [], "beta = 'hyperparameter of wrong': needs a default"),
    ):
        with pytest.raises(ArgumentError, match=message):
            register_method("wrong")(wrong)
    with pytest.raises(ArgumentError, match="there is a method of this name already"):
        register_method("beta_vae")(AffineFlow)
    with pytest.raises(ArgumentError, match="strength = 'beta'"):
        register_method("wrong", strength="beta")(AffineFlow)
    assert "wrong" not in uw.methods.METHODS


def test_what_encodes_is_evaluated(bars, tmp_path):
    run = uw.train(uw.methods.create("small_gan", bars), bars, 3, 8, out=tmp_path / "run", pictures=False)
    options = {"num_train": 60, "num_test": 30}
    scores = uw.evaluate(run, bars, ["mig", "sap"], **options)
    with torch.no_grad():
        codes = run.method.encode(to_tensor(bars.images(np.arange(64)))).mean.numpy()
    by_hand = uw.evaluate(lambda images: codes[_rows(images)], bars, ["mig", "sap"], **options)
    for name in ("mig", "sap"):
        assert scores[name].value == pytest.approx(by_hand[name].value, abs=1e-6)
    again = uw.evaluate(uw.load(tmp_path / "run"), bars, ["mig", "sap"], **options)
    assert again["mig"].value == scores["mig"].value
    with pytest.raises(ArgumentError, match="unsupervised"):
        uw.evaluate(run, bars, ["unsupervised"])
    with pytest.raises(ArgumentError):
        uw.evaluate(uw.methods.create("affine_flow", bars), bars, ["mig"])


def _rows(images):
    """The rows of images of ``bars``: where they are bright."""
    column = (images[..., 0] == 255).all(1).argmax(1)
    return 8 * (images[..., 0] >= 200).all(2).argmax(1) + column
