"""MS-FLOW: its exact density, its inverse, what training moves, and what it refuses."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.cli import main
from unweave.data.batches import Batch, to_tensor
from unweave.errors import ArgumentError, UnweaveError
from unweave.methods import (
    Decodes,
    DecodesStages,
    Encodes,
    GeneratesFromNoise,
    HasCategories,
    HasPixelDensity,
    Samples,
)

SHORT = {"batch_size": 32, "pictures": False}


def bananas(n=400, name="bananas"):
    """Two bent clusters, which no mixture of two Gaussians describes well."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    x[:, 1] = 0.3 * x[:, 1] + x[:, 0] ** 2
    x[::2] = -x[::2] - 4
    return uw.data.from_arrays(x.astype(np.float32), name=name)


@pytest.fixture(scope="module")
def data():
    return bananas()


@pytest.fixture(scope="module")
def first(data, tmp_path_factory):
    method = uw.methods.create("gaussian_mixture", data, num_components=2)
    return uw.train(
        method, data, 20, batch_size=100, pictures=False, out=tmp_path_factory.mktemp("first") / "run"
    )


@pytest.fixture(scope="module")
def run(data, first, tmp_path_factory):
    method = uw.methods.create("ms_flow", data, first=first, width=16, layers=4)
    out = tmp_path_factory.mktemp("flow") / "run"
    return uw.train(
        method, data, 200, learning_rate=3e-3, batch_size=64, log_every=20, pictures=False, out=out
    )


@pytest.fixture
def values(data):
    return torch.from_numpy(data.images(np.arange(20))).double()


def test_the_inverse_takes_everything_back(run, values):
    method = run.method
    components = torch.arange(20) % 2
    with torch.no_grad():
        noise = method.noise(values, components)
        again = method.to_values(components, noise)
    assert (again - values).abs().max() < 1e-5


def test_the_log_determinant_is_that_of_autograd(run, values):
    """log p(v|y) = log N(z) + log |det dz/dv|, the determinant by differentiation."""
    method = run.method
    for row, component in ((0, 0), (1, 1), (2, 1)):
        v, c = values[row], torch.tensor([component])
        z = method.noise(v[None], c)[0].detach().double()
        jacobian = torch.autograd.functional.jacobian(lambda v, c=c: method.noise(v[None], c)[0], v)
        expected = -0.5 * (z.square() + np.log(2 * np.pi)).sum() + torch.linalg.slogdet(jacobian.double())[1]
        given = method.log_density_given(v[None], c)[0]
        assert given.item() == pytest.approx(expected.item(), abs=1e-4)


def test_the_density_integrates_to_one(run):
    axis = torch.linspace(-14, 14, 281, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        density = run.method.log_density(grid).exp()
    assert density.sum().item() * 0.1**2 == pytest.approx(1, abs=0.02)


def test_the_density_is_a_sum_over_components(run, values):
    with torch.no_grad():
        given = [run.method.log_density_given(values, torch.full((20,), c)) for c in (0, 1)]
        whole = run.method.log_density(values)
    weights = run.method.mixture.weights
    torch.testing.assert_close(whole, (weights[0] * given[0].exp() + weights[1] * given[1].exp()).log())


def test_a_new_flow_is_about_the_mixture(data, first, values):
    method = uw.methods.create("ms_flow", data, first=first, width=16, seed=0).eval()
    with torch.no_grad():
        difference = method.log_density(values) - first.method.log_density(values)
    assert difference.abs().max() < 0.2


def test_training_improves_on_the_mixture(run, first, data):
    rows = to_tensor(data.images(np.arange(len(data))))
    with torch.no_grad():
        assert run.method.log_density(rows).mean() > first.method.log_density(rows).mean() + 0.2
    assert run.records[-1]["gain"] > 0.2


def test_nothing_reaches_the_first_stage(data, first):
    method = uw.methods.create("ms_flow", data, first=first, width=8).train()
    before = {name: value.clone() for name, value in method.first.state_dict().items()}
    batch = Batch(to_tensor(data.images(np.arange(32))))
    (player,) = method.players()
    player.loss(method.begin(batch, 0, torch.Generator().manual_seed(0))).loss.backward()
    assert all(parameter.grad is None for parameter in method.first.parameters())
    assert all(parameter.grad is not None for parameter in player.parameters)
    assert not method.first.training
    for name, value in method.first.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("y_from", ["mean", "draw"])
def test_the_loss_is_the_density_given_a_component_of_each_image(data, first, y_from, monkeypatch):
    """In evaluation mode and with y the mean, begin gives log p(v|y_c) of components drawn by p(c|v)."""
    method = uw.methods.create("ms_flow", data, first=first, width=8, y_from=y_from).eval()
    x = to_tensor(data.images(np.arange(16)))
    with torch.no_grad():
        result = method.begin(Batch(x), 0, torch.Generator().manual_seed(3))
        probabilities = method.mixture.responsibilities(x.double())
        components = torch.multinomial(probabilities, 1, generator=torch.Generator().manual_seed(3))[:, 0]
        expected = method.log_density_given(x.double(), components)
        gaussian = (
            torch.distributions.Normal(
                method.mixture.means[components], method.mixture.variances[components].sqrt()
            )
            .log_prob(x.double())
            .sum(1)
        )
    torch.testing.assert_close(result.component_log_density, gaussian, rtol=1e-5, atol=1e-5)
    assert torch.allclose(result.log_density, expected) == (y_from == "mean")


def test_it_can_do_what_it_says(run, data):
    method = run.method
    for capability in (
        Encodes,
        Decodes,
        DecodesStages,
        Samples,
        HasPixelDensity,
        GeneratesFromNoise,
        HasCategories,
    ):
        assert isinstance(method, capability), capability
    assert run.encode(data, rows=[0, 1], part="c").shape == (2, 2)
    assert run.sample(7, seed=1).shape == (7, 2)
    codes, noise = method.sample_inputs(5, torch.Generator().manual_seed(0))
    assert method.generate(codes, noise).shape == (5, 2)
    stages = method.decode_stages(codes)
    assert list(stages) == ["y", "x"]
    assert torch.equal(stages["x"], method.decode(codes))


def test_samples_have_the_density_that_they_should(run):
    """The mean log density of the model's samples is an estimate of -entropy; so is that of a grid."""
    axis = torch.linspace(-14, 14, 281, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        on_grid = run.method.log_density(grid)
        entropy = -(on_grid.exp() * on_grid).sum().item() * 0.1**2
        sampled = run.method.log_density(run.method.sample(4000, torch.Generator().manual_seed(0)))
    assert sampled.mean().item() == pytest.approx(-entropy, abs=0.1)


def test_images_stay_bytes():
    images = np.random.default_rng(0).integers(0, 256, (30, 4, 4, 1)).astype(np.uint8)
    data = uw.data.from_arrays(images, name="noise")
    first = uw.train(uw.methods.create("gaussian_mixture", data, num_components=2), data, 2, batch_size=30)
    run = uw.train(uw.methods.create("ms_flow", data, first=first, width=8), data, 2, **SHORT)
    sample = run.sample(3) * 255
    assert np.array_equal(sample, sample.round())
    codes, x = run.encode(data, [0, 1]), to_tensor(images[:2])
    values = run.method.mixture.values.of(x)
    with torch.no_grad():
        noise = run.method.noise(values, torch.from_numpy(codes).argmax(1))
        assert torch.equal(run.method.generate(torch.from_numpy(codes), noise), x)


def test_one_folder_is_enough(run, data, values):
    loaded = uw.load(run.path)
    with torch.no_grad():
        assert torch.equal(loaded.method.log_density(values), run.method.log_density(values))


def test_the_command_line_trains_both_stages(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(8):
        Image.fromarray(rng.integers(0, 256, (4, 4), dtype=np.uint8)).save(folder / f"{i}.png")
    first, second = tmp_path / "first", tmp_path / "second"

    def train(method, *options):
        common = ["--data", str(folder), "--steps", "2", "--batch-size", "8"]
        with pytest.raises(SystemExit) as caught:
            main(["train", method, *common, *options])
        assert not caught.value.code

    train("gaussian_mixture", "--set", "num_components=2", "--out", str(first))
    train("ms_flow", "--set", f"first={first}", "--set", "width=4", "--out", str(second))
    assert uw.load(second).sample(2).shape == (2, 4, 4, 1)


# --- what is refused -------------------------------------------------------------------------------


def test_a_first_stage_without_components(data):
    vae = uw.train(uw.methods.create("vae", data, latent_size=2, reconstruction="gaussian"), data, 1, **SHORT)
    with pytest.raises(ArgumentError, match="first = 'vae': has no components"):
        uw.methods.create("ms_flow", data, first=vae)
    with pytest.raises(ArgumentError, match="first = None: needs the run of a first stage"):
        uw.methods.create("ms_flow", data)


def test_other_data(first):
    other = bananas(401)
    with pytest.raises(ArgumentError, match="trained on other data: size is 400 there, 401 here"):
        uw.methods.create("ms_flow", other, first=first)
    uw.methods.create("ms_flow", other, first=first, width=4, other_data=True)


@pytest.mark.parametrize(("name", "value"), [("layers", 1), ("width", 0), ("y_from", "mode")])
def test_wrong_settings(data, first, name, value):
    with pytest.raises(ArgumentError, match=name):
        uw.methods.create("ms_flow", data, first=first, **{name: value})


def test_a_batch_of_one(data, first):
    with pytest.raises(ArgumentError, match="batch_size = 1: needs two or more"):
        uw.train(uw.methods.create("ms_flow", data, first=first, width=4), data, 1, batch_size=1)


def test_a_singular_flow(data, first, values):
    method = uw.methods.create("ms_flow", data, first=first, width=4).eval()
    with torch.no_grad():
        method.flow.couplings[0].scale[-1].bias.fill_(torch.inf)
        with pytest.raises(
            UnweaveError, match="the flow is singular: the density of an image is not a number"
        ):
            method.log_density(values)
        method.flow.norms[0].log_scale.fill_(-200)  # e^-200 is 0 in single precision
        with pytest.raises(UnweaveError, match="the flow is singular: its inverse is not finite"):
            method.sample(2)
