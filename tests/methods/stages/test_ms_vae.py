"""MS-VAE: its loss, what it keeps of the first stage, and what it refuses."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

import unweave as uw
from unweave.cli import main
from unweave.data.batches import Batch, to_tensor
from unweave.errors import ArgumentError, DataError
from unweave.methods import (
    Decodes,
    DecodesStages,
    Encodes,
    EncodesWithLabels,
    HasDensity,
    HasEvidenceBound,
    Method,
    Player,
    Posterior,
    Samples,
    Stage,
    Terms,
    register_method,
)
from unweave.methods.registry import extensions_of, unknown_names
from unweave.training import Callback

C, Z = 3, 2
SMALL = {"width": 4}  # G with few channels: 60,000 weights instead of 20 million
SHORT = {"batch_size": 8, "pictures": False}


def squares(n=64, size=28, name="squares"):
    """Images of a bright square, of 8 heights and 8 widths."""
    images = np.zeros((n, size, size, 1), np.uint8)
    row, column = np.divmod(np.arange(n) % 64, 8)
    for image, i, j in zip(images, row, column, strict=True):
        image[2 * i : 2 * i + 6, 2 * j : 2 * j + 6] = 255
    return uw.data.from_arrays(images, {"row": row, "column": column}, name=name)


@pytest.fixture(scope="module")
def data():
    return squares()


@pytest.fixture(scope="module")
def first(data, tmp_path_factory):
    """A trained first stage, with a folder."""
    method = uw.methods.create("beta_vae", data, latent_size=C)
    return uw.train(method, data, 5, out=tmp_path_factory.mktemp("first") / "run", **SHORT)


@pytest.fixture
def create(data, first):
    def create(**settings):
        return uw.methods.create("ms_vae", data, **{"first": first, "latent_size": Z, **SMALL, **settings})

    return create


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


# --- the objective ---------------------------------------------------------------------------------


@pytest.mark.parametrize("modulation", ["channel", "position"])
@pytest.mark.parametrize("y_from", ["mean", "draw"])
def test_the_loss_is_term_b_of_equation_2(data, create, y_from, modulation):
    method = create(y_from=y_from, modulation=modulation, seed=1).double()
    with torch.no_grad():  # so that codes are not near zero and their scales differ
        for encoder in (method.first.method.encoder, method.encoder):
            for parameter in encoder.heads.parameters():
                parameter.mul_(3)
    x = to_tensor(data.images(np.arange(6))).double()
    terms = method.loss(method.begin(Batch(x), 0, torch.Generator().manual_seed(5)))

    generator, stage = torch.Generator().manual_seed(5), method.first.method
    c, c_log_variance = stage.encoder(x)
    if y_from == "draw":
        c = c + (c_log_variance / 2).exp() * torch.randn(6, C, generator=generator, dtype=x.dtype)
    y = 1 / (1 + (-stage.decoder(c)).exp())
    mean, log_variance = method.encoder(x - y)
    posterior = Normal(mean, (log_variance / 2).exp())
    z = mean + posterior.scale * torch.randn(6, Z, generator=generator, dtype=x.dtype)
    p = torch.sigmoid(method.decoder(y, z))
    cross_entropy = -(x * p.log() + (1 - x) * (1 - p).log()).sum((1, 2, 3)).mean()
    kl = kl_divergence(posterior, Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(terms.values["reconstruction"], cross_entropy)
    torch.testing.assert_close(terms.values["kl"], kl)
    torch.testing.assert_close(terms.loss, cross_entropy + kl)


def test_the_gradient_agrees_with_finite_differences(data, create):
    method = create(seed=1, y_from="draw").double()
    batch = Batch(to_tensor(data.images(np.arange(4))).double())

    def loss():
        return method.loss(method.begin(batch, 0, torch.Generator().manual_seed(5))).loss

    for parameter in (method.encoder.heads.mean.weight, method.decoder.dense_norm.scale.weight):
        (gradient,) = torch.autograd.grad(loss(), parameter)
        direction, step = torch.randn_like(parameter), 1e-6
        with torch.no_grad():
            parameter.add_(step * direction)
            above = loss()
            parameter.sub_(2 * step * direction)
            below = loss()
            parameter.add_(step * direction)
        numeric = (above - below) / (2 * step)
        torch.testing.assert_close((gradient * direction).sum(), numeric, rtol=1e-5, atol=1e-6)


def test_it_learns(data, create):
    records = uw.train(create(), data, 40, 16, 1e-2, log_every=5).records
    assert records[-1]["reconstruction"] < 0.6 * records[0]["reconstruction"]
    assert set(records[0]) == {"step", "loss", "reconstruction", "kl", "images_per_second"}


# --- the first stage is frozen -----------------------------------------------------------------------


class NormalisedStage(Method):
    """An autoencoder with batch normalisation and dropout: both differ between training and evaluation."""

    noise_correlation = 0.0

    def __init__(self, image_shape):
        super().__init__()
        self.code = nn.Sequential(nn.Flatten(), nn.Linear(784, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        self.image = nn.Linear(3, 784)

    parts: ClassVar = {"z": slice(0, 3)}

    def encode(self, images):
        mean = self.code(images)
        return Posterior(mean, torch.full_like(mean, -torch.inf))

    def decode(self, codes):
        return torch.sigmoid(self.image(codes)).view(-1, 1, 28, 28)

    def begin(self, batch, step, generator):
        return (self.decode(self.encode(batch.images).mean) - batch.images).square().mean()

    def players(self):
        return [Player("model", list(self.parameters()), lambda error: Terms.of(error=(error, 1.0)))]


class OnlyEncodes(NormalisedStage):
    decode = None


class OnlyDecodes(NormalisedStage):
    encode = None

    def begin(self, batch, step, generator):
        return self.decode(self.code(batch.images)).mean()


@pytest.fixture
def registered():
    """Register methods for one test."""
    names = []

    def register(name, method):
        register_method(name)(method)
        names.append(name)

    yield register
    for name in names:
        uw.methods.METHODS.unregister(name)


@pytest.mark.parametrize("y_from", ["mean", "draw"])
def test_nothing_reaches_the_first_stage(data, registered, y_from):
    registered("normalised", NormalisedStage)
    stage = uw.train(uw.methods.create("normalised", data), data, 3, 8)
    before = weights(stage.method)
    assert before["code.2.num_batches_tracked"] == 3
    method = uw.methods.create("ms_vae", data, first=stage, latent_size=Z, y_from=y_from, **SMALL)
    run = uw.train(method, data, 4, 8)
    assert_same(weights(run.method.first.method), before)
    assert_same(weights(stage.method), before)
    assert all(parameter.grad is None for parameter in method.first.parameters())
    assert all(parameter.requires_grad for parameter in stage.method.parameters())
    moved = {id(parameter) for player in method.players() for parameter in player.parameters}
    assert moved == {id(p) for network in (method.encoder, method.decoder) for p in network.parameters()}


def test_the_first_stage_is_always_in_evaluation_mode(create):
    method = create()
    method.train()
    assert method.training
    assert method.decoder.training
    assert not any(module.training for module in method.first.modules())


def test_a_seed_draws_the_second_stage_alone(create, first):
    one, same, other = create(seed=1), create(seed=1), create(seed=2)
    assert_same(weights(one), weights(same))
    assert not torch.equal(one.decoder.dense.weight, other.decoder.dense.weight)
    for method in (one, other):
        assert_same(weights(method.first.method), weights(first.method))


# --- runs --------------------------------------------------------------------------------------------


class Stop(Callback):
    def on_log(self, step, values):
        if step == 5:
            raise KeyboardInterrupt


@pytest.mark.parametrize("y_from", ["mean", "draw"])
def test_a_stopped_run_goes_on_to_the_same_bits(data, create, tmp_path, y_from):
    options = {**SHORT, "seed": 4, "log_every": 1}
    whole = uw.train(create(y_from=y_from), data, 7, **options)
    with pytest.raises(KeyboardInterrupt):
        uw.train(
            create(y_from=y_from),
            data,
            7,
            out=tmp_path / "run",
            callbacks=[Stop()],
            checkpoint_every=3,
            **options,
        )
    assert uw.load(tmp_path / "run").step == 3
    resumed = uw.train(create(y_from=y_from), data, 7, out=tmp_path / "run", **options)
    assert_same(weights(whole.method), weights(resumed.method))


def test_one_folder_has_both_stages(data, tmp_path):
    stage = uw.train(
        uw.methods.create("beta_tcvae", data, latent_size=C), data, 2, out=tmp_path / "first", **SHORT
    )
    method = uw.methods.create("ms_vae", data, first=tmp_path / "first", latent_size=Z, **SMALL)
    run = uw.train(method, data, 2, out=tmp_path / "second", **SHORT)
    (tmp_path / "first").rename(tmp_path / "gone")
    loaded = uw.load(tmp_path / "second")
    assert loaded.spec == run.spec
    assert str(tmp_path) not in (tmp_path / "second" / "spec.yaml").read_text()
    assert_same(weights(loaded.method), weights(run.method))
    np.testing.assert_array_equal(loaded.encode(data), run.encode(data))
    recorded = loaded.spec.method.hyperparameters["first"]
    assert recorded["method"] == stage.spec.method.as_dict()
    assert recorded["data"] == stage.spec.data
    assert recorded["steps"] == 2


def test_a_run_and_its_folder_are_the_same_first_stage(create, first):
    one, other = create(), create(first=str(first.path))
    assert one.spec == other.spec
    assert_same(weights(one), weights(other))


def test_a_run_of_another_first_stage_is_not_continued(data, create, tmp_path):
    uw.train(create(), data, 2, out=tmp_path / "run", **SHORT)
    other = uw.train(uw.methods.create("beta_vae", data, latent_size=C), data, 5, seed=1, **SHORT)
    with pytest.raises(ArgumentError, match=r"first\.seed is 0 there, 1 here"):
        uw.train(create(first=other), data, 2, out=tmp_path / "run", **SHORT)


def test_a_stage_may_have_stages(data, create, tmp_path):
    second = uw.train(create(), data, 2, **SHORT)
    method = uw.methods.create("ms_vae", data, first=second, latent_size=4, **SMALL)
    run = uw.train(method, data, 2, out=tmp_path / "third", **SHORT)
    assert method.parts == {"c": slice(0, C + Z), "z": slice(C + Z, C + Z + 4)}
    loaded = uw.load(tmp_path / "third")
    assert_same(weights(loaded.method), weights(run.method))
    assert_same(weights(loaded.method.first.method), weights(second.method))


def test_the_command_line_takes_a_folder(tmp_path, capsys):
    from PIL import Image

    (tmp_path / "images").mkdir()
    for number, image in enumerate(squares(8).images(np.arange(8))):
        Image.fromarray(image[..., 0]).save(tmp_path / "images" / f"{number}.png")
    common = ["--data", tmp_path / "images", "--steps", 2, "--batch-size", 4, "--latent-size", 2]

    def train(method, *options):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in ("train", method, *common, *options)])
        assert not caught.value.code, capsys.readouterr().err

    train("beta_vae", "--out", tmp_path / "first")
    train("ms_vae", "--set", f"first={tmp_path / 'first'}", "--set", "width=4", "--out", tmp_path / "second")
    run = uw.load(tmp_path / "second")
    assert run.spec.method.hyperparameters["latent_size"] == 2
    assert {"reconstructions.png", "traversals.png"} <= {path.name for path in run.path.iterdir()}


# --- capabilities --------------------------------------------------------------------------------------


def test_capabilities(create):
    kinds = (Encodes, EncodesWithLabels, Decodes, Samples, HasDensity, HasEvidenceBound)
    assert [isinstance(create(), kind) for kind in kinds] == [True, False, True, True, False, True]


def test_codes_have_two_parts(data, create, first):
    run = uw.train(create(), data, 3, **SHORT)
    codes = run.encode(data)
    assert codes.shape == (64, C + Z)
    assert run.method.parts == {"c": slice(0, C), "z": slice(C, C + Z)}
    np.testing.assert_array_equal(run.encode(data, part="c"), codes[:, :C])
    np.testing.assert_array_equal(run.encode(data, part="z"), codes[:, C:])
    np.testing.assert_array_equal(run.encode(data, part="c"), first.encode(data))
    np.testing.assert_array_equal(run.posterior(data, part="c")[1], first.posterior(data)[1])
    x = to_tensor(data.images(np.arange(64)))
    mean, log_variance = run.method.encoder(x - run.method.first.decode(torch.from_numpy(codes[:, :C])))
    torch.testing.assert_close(torch.from_numpy(codes[:, C:]), mean.detach())
    torch.testing.assert_close(torch.from_numpy(run.posterior(data, part="z")[1]), log_variance.detach())
    with pytest.raises(ArgumentError, match="part = 'y'"):
        run.encode(data, part="y")


def test_codes_are_decoded_by_both_stages(create, first):
    method, codes = create(seed=1).eval(), torch.randn(5, C + Z)
    with torch.no_grad():
        y = first.method.decode(codes[:, :C])
        torch.testing.assert_close(method.decode_first(codes), y)
        torch.testing.assert_close(method.decode(codes), torch.sigmoid(method.decoder(y, codes[:, C:])))
        assert isinstance(method, DecodesStages)
        stages = method.decode_stages(codes)
        assert list(stages) == ["y", "x"]
        torch.testing.assert_close(stages["y"], y)
        torch.testing.assert_close(stages["x"], method.decode(codes))


def test_samples_are_of_both_priors(create, first):
    method = create(seed=1).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        y = first.method.decode(torch.randn(4, C, generator=generator))
        expected = torch.sigmoid(method.decoder(y, torch.randn(4, Z, generator=generator)))
    torch.testing.assert_close(method.sample(4, torch.Generator().manual_seed(3)), expected)


def test_mig_of_c_is_mig_of_the_first_stage(data, create, first):
    run = uw.train(create(), data, 3, **SHORT)
    ours, theirs, z = (
        uw.evaluate(each, data, ["mig"], num_train=64, part=part)["mig"].value
        for each, part in ((run, "c"), (first, None), (run, "z"))
    )
    assert ours == theirs
    assert z != ours


def test_the_bound_is_of_term_b(data, create):
    method, x = create(seed=1).eval(), to_tensor(data.images(np.arange(6)))
    with torch.no_grad():
        bound = method.evidence_bound(x, torch.Generator().manual_seed(5))
        terms = method.loss(method.begin(Batch(x), 0, torch.Generator().manual_seed(5))).values
    torch.testing.assert_close(bound.reconstruction, terms["reconstruction"])
    assert bound.kl.shape == (6, C + Z)
    assert not bound.kl[:, :C].any()
    torch.testing.assert_close(bound.kl.sum(1).mean(), terms["kl"])
    torch.testing.assert_close(bound.posterior.mean, method.encode(x).mean)
    with pytest.raises(ArgumentError, match="labels = 'given'"):
        method.evidence_bound(x, labels="given")


@pytest.mark.parametrize("size", [28, 32, 64, 128])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_all_sizes(size, channels):
    images = np.zeros((4, size, size, channels), np.uint8)
    data = uw.data.from_arrays(images)
    stage = uw.train(uw.methods.create("vae", data, latent_size=C), data, 1, 2)
    method = uw.methods.create("ms_vae", data, first=stage, latent_size=Z, **SMALL)
    run = uw.train(method, data, 1, 2)
    assert run.decode(run.encode(data)).shape == images.shape


# --- wrong input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"latent_size": 0}, "latent_size = 0: needs a whole number >= 1"),
        ({"first": None}, "first = None: needs the run of a first stage, or its folder"),
        ({"first": {"beta": 4}}, "first = {'beta': 4}: needs a method"),
        ({"first": 3}, "first = 3: needs a run, its folder, or a mapping"),
        ({"y_from": "mode"}, "y_from = 'mode': "),
        ({"modulation": "pixel"}, "modulation = 'pixel': "),
        ({"gamma": 4}, "hyperparameter of ms_vae = 'gamma'"),
        ({"num_y": 3}, "num_y = 3: needs y_from='draw'"),
        ({"num_y": 3, "y_from": "draw", "condition": "c"}, "num_y = 3: needs condition='y'"),
    ],
)
def test_wrong_settings_are_refused(create, settings, message):
    with pytest.raises(ArgumentError, match=message):
        create(**settings)


def test_a_folder_without_a_run_is_refused(create, tmp_path):
    with pytest.raises(DataError, match="not a run directory"):
        create(first=tmp_path)


def test_an_unfinished_first_stage_is_refused(data, create, tmp_path):
    method = uw.methods.create("vae", data, latent_size=C)
    with pytest.raises(KeyboardInterrupt):
        uw.train(method, data, 9, out=tmp_path / "run", callbacks=[Stop()], checkpoint_every=3, log_every=1)
    with pytest.raises(ArgumentError, match=r"first = Run\(vae on squares: 3 of 9 steps.*is not finished"):
        create(first=tmp_path / "run")


def test_a_first_stage_for_other_images_is_refused(first):
    with pytest.raises(
        ArgumentError, match=r"first = 'beta_vae': is for images \(28, 28, 1\), .* \(32, 32, 1\)"
    ):
        uw.methods.create("ms_vae", squares(size=32), first=first, **SMALL)


@pytest.mark.parametrize("asked", [False, True])
def test_a_first_stage_of_other_data_is_refused_unless_asked_for(first, create, asked):
    other = squares(name="others")
    message = "first = 'beta_vae': was trained on other data: name is 'squares' there, 'others' here"
    if not asked:
        with pytest.raises(ArgumentError, match=message):
            uw.methods.create("ms_vae", other, first=first, **SMALL)
        with pytest.raises(ArgumentError, match=message):
            uw.train(create(), other, 1)
        return
    method = uw.methods.create("ms_vae", other, first=first, other_data=True, **SMALL)
    run = uw.train(method, other, 1, 2)
    assert run.spec.method.hyperparameters["other_data"] is True
    assert run.spec.method.hyperparameters["first"]["data"]["name"] == "squares"


@pytest.mark.parametrize(
    ("method", "message"), [(OnlyEncodes, "cannot decode"), (OnlyDecodes, "cannot encode")]
)
def test_a_first_stage_must_encode_and_decode(data, registered, method, message):
    registered("half", method)
    stage = uw.methods.create("half", data)
    with pytest.raises(ArgumentError, match=f"first = 'half': {message}"):
        uw.methods.FirstStage(stage, (28, 28, 1))


def test_correlated_noise_in_the_first_stage_is_refused(data):
    stage = uw.train(uw.methods.create("vae", data, latent_size=C, correlation=0.5), data, 1, 2)
    with pytest.raises(ArgumentError, match=r"first = 'vae': its codes have correlated noise \(s = 0.5\)"):
        uw.methods.create("ms_vae", data, first=stage, **SMALL)


def test_a_first_stage_that_cannot_sample_has_no_samples(data, registered):
    registered("normalised", NormalisedStage)
    stage = uw.train(uw.methods.create("normalised", data), data, 1, 8)
    run = uw.train(uw.methods.create("ms_vae", data, first=stage, **SMALL), data, 1, 2)
    with pytest.raises(ArgumentError, match="first = 'normalised': cannot sample"):
        run.sample(2)


# --- stages in general -----------------------------------------------------------------------------------


class Shifted(Method):
    """A method outside the package with two earlier stages."""

    def __init__(self, image_shape, one: Stage = None, two: Stage = None, scale: float = 1.0):
        super().__init__()
        self.one, self.two = one, two
        self.shift = nn.Parameter(torch.zeros(()))

    def begin(self, batch, step, generator):
        return self.shift.square()

    def players(self):
        return [Player("model", [self.shift], lambda result: Terms.of(shift=(result, 1.0)))]


def test_any_method_can_have_stages(data, first, registered, tmp_path):
    registered("shifted", Shifted)
    assert uw.methods.describe("shifted").stages == ("one", "two")
    assert uw.methods.describe("ms_vae").stages == ("first",)
    assert uw.methods.describe("beta_vae").stages == ()
    method = uw.methods.create("shifted", data, one=first, two=first.path, seed=1)
    uw.train(method, data, 1, 2, out=tmp_path / "run", pictures=False)
    loaded = uw.load(tmp_path / "run").method
    assert_same(weights(loaded), weights(method))
    assert type(loaded.two) is type(first.method)
    assert uw.methods.create("shifted", data, one=first).two is None


def test_what_a_stage_was_registered_by_is_known(data, registered, monkeypatch):
    registered("normalised", NormalisedStage)
    stage = uw.train(uw.methods.create("normalised", data), data, 1, 8)
    spec = uw.methods.create("ms_vae", data, first=stage, **SMALL).spec
    assert extensions_of(spec) == extensions_of(stage.spec.method)
    assert unknown_names(spec) == []
    spec.hyperparameters["first"]["method"]["name"] = "lost"
    assert unknown_names(spec) == ["the method 'lost'"]


# --- the paper's ablations -------------------------------------------------------------------------------

ABLATIONS = {
    "M2": {"condition": "concatenation"},
    "M3": {"condition": "c"},
    "M4": {},
    "M5": {"condition": "concatenation", "encode_from": "image", "first_part": "z", "beta": 4},
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_ablations_train_save_and_decode(data, create, tmp_path, name):
    run = uw.train(create(**ABLATIONS[name]), data, 2, out=tmp_path / "run", **SHORT)
    codes = run.encode(data)
    parts = ("z", "c") if name == "M5" else ("c", "z")
    assert list(run.method.parts) == list(parts)
    np.testing.assert_array_equal(run.encode(data, part=parts[0]), codes[:, :C])
    np.testing.assert_array_equal(run.encode(data, part=parts[1]), codes[:, C:])
    loaded = uw.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.decode(codes), run.decode(codes))
    assert run.sample(3).shape == (3, 28, 28, 1)
    assert set(run.method.decode_stages(torch.from_numpy(codes))) == {"y", "x"}


@pytest.mark.parametrize("name", ABLATIONS)
def test_what_decoder_and_encoder_of_an_ablation_read(data, create, name):
    method = create(**ABLATIONS[name], seed=1).eval()
    x = to_tensor(data.images(np.arange(6)))
    with torch.no_grad():
        c = method.first.encode(x).mean
        y = method.first.decode(c)
        seen = x if name == "M5" else x - y
        mean, log_variance = method.encoder(seen)
        torch.testing.assert_close(method.encode(x).mean[:, C:], mean)
        z = torch.randn(6, Z)
        logits = {
            "M2": lambda: method.decoder(torch.cat([c, z], 1)),
            "M3": lambda: method.decoder(c, z),
            "M4": lambda: method.decoder(y, z),
            "M5": lambda: method.decoder(torch.cat([c, z], 1)),
        }[name]()
        torch.testing.assert_close(method.decode(torch.cat([c, z], 1)), torch.sigmoid(logits))
        terms = method.loss(method.begin(Batch(x), 0, torch.Generator().manual_seed(0)))
    kl = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(terms.values["kl"], kl)
    torch.testing.assert_close(terms.loss, terms.values["reconstruction"] + (4 if name == "M5" else 1) * kl)


@pytest.mark.parametrize("name", ABLATIONS)
def test_nothing_reaches_the_first_stage_of_an_ablation(data, registered, name):
    registered("normalised", NormalisedStage)
    stage = uw.train(uw.methods.create("normalised", data), data, 3, 8)
    method = uw.methods.create("ms_vae", data, first=stage, **SMALL, **ABLATIONS[name])
    before = weights(method.first)
    run = uw.train(method, data, 3, **SHORT)
    assert_same(weights(run.method.first), before)
    assert all(parameter.grad is None for parameter in run.method.first.parameters())


def test_m1_is_a_vae_with_a_penalty_on_c_alone(data):
    method = uw.methods.create(
        "vae",
        data,
        latent_size=C + Z,
        architecture={"name": "adain", "c_size": C, "width": 4},
        extra_terms=[{"name": "kl_of_first", "latents": C, "weight": 3}],
        seed=1,
    )
    assert method.parts == {"c": slice(0, C), "z": slice(C, C + Z)}
    x = to_tensor(data.images(np.arange(6)))
    terms = method.players()[0].loss(method.begin(Batch(x), 0, torch.Generator().manual_seed(0)))
    mean, log_variance = method.encoder(x)
    kl = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).mean(0)
    expected = terms.values["reconstruction"] + 4 * kl[:C].sum() + kl[C:].sum()  # beta = 4 on c, 1 on z
    torch.testing.assert_close(terms.loss, expected)
    with pytest.raises(ArgumentError, match="latents = 9: needs at most 5"):
        uw.methods.create("vae", data, latent_size=5, extra_terms=[{"name": "kl_of_first", "latents": 9}])


def test_refine_is_the_decoder_of_any_y(data, create):
    method = create(seed=1).eval()
    y, z = torch.rand(3, 1, 28, 28), torch.randn(3, Z)
    with torch.no_grad():
        torch.testing.assert_close(method.refine(y, z), torch.sigmoid(method.decoder(y, z)))
        other = create(seed=1, condition="c").eval()
        c = other.first.encode(y).mean
        torch.testing.assert_close(other.refine(y, z), torch.sigmoid(other.decoder(c, z)))
