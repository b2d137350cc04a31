"""The mixture: its density and EM against scikit-learn and scipy, and what it refuses."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Reference

import unweave as uw
from unweave.cli import main
from unweave.errors import ArgumentError, UnweaveError
from unweave.methods import Decodes, Encodes, HasDensity, HasPixelDensity, Samples
from unweave.methods.flow.gaussian_mixture import kmeans
from unweave.training import Callback

SHORT = {"batch_size": 50, "pictures": False}


def clusters(n=200, name="clusters"):
    """Three overlapping clusters in three dimensions."""
    rng = np.random.default_rng(0)
    centres, scales = rng.normal(0, 1.5, (3, 3)), rng.uniform(0.3, 1, (3, 3))
    which = rng.integers(3, size=n)
    points = centres[which] + scales[which] * rng.normal(size=(n, 3))
    return uw.data.from_arrays(points.astype(np.float32), name=name)


def squares(n=60):
    """Small images of two kinds."""
    images = np.zeros((n, 4, 4, 1), np.uint8)
    images[::2, :2] = 200
    images[1::2, 2:] = 255
    return uw.data.from_arrays(images, name="squares")


def points_of(data):
    return data.images(np.arange(len(data))).astype(np.float64)


def train(data, passes, seed=0, batch_size=50, out=None, **settings):
    method = uw.methods.create("gaussian_mixture", data, num_components=3, **settings)
    steps = passes * -(-len(data) // batch_size)
    return uw.train(
        method, data, steps, seed=seed, batch_size=batch_size, log_every=1, pictures=False, out=out
    )


def reference(method):
    """scikit-learn's mixture with the same parameters."""
    mixture = Reference(method.num_components, covariance_type="diag")
    mixture.weights_ = method.weights.numpy()
    mixture.means_, mixture.covariances_ = method.means.numpy(), method.variances.numpy()
    mixture.precisions_cholesky_ = 1 / np.sqrt(mixture.covariances_)
    return mixture


def test_the_density_is_that_of_scipy_and_of_scikit_learn():
    data = clusters()
    method, points = train(data, 2).method, points_of(data)
    density = method.log_density(torch.from_numpy(points)).numpy()
    parts = [
        w * multivariate_normal(m, np.diag(v)).pdf(points)
        for w, m, v in zip(
            method.weights.tolist(), method.means.numpy(), method.variances.numpy(), strict=True
        )
    ]
    np.testing.assert_allclose(density, np.log(np.sum(parts, axis=0)), rtol=1e-10)
    np.testing.assert_allclose(density, reference(method).score_samples(points), rtol=1e-10)
    np.testing.assert_allclose(
        method.encode(torch.from_numpy(points)).mean.numpy(),
        reference(method).predict_proba(points),
        atol=1e-6,
    )


def test_a_pass_is_an_iteration_of_em():
    """One more pass gives what scikit-learn's E and M steps give from the same parameters."""
    data = clusters()
    before, after = train(data, 3).method, train(data, 4).method
    theirs = Reference(
        3,
        covariance_type="diag",
        max_iter=1,
        weights_init=before.weights.numpy(),
        means_init=before.means.numpy(),
        precisions_init=1 / before.variances.numpy(),
    )
    with pytest.warns(UserWarning, match="did not converge"):
        theirs.fit(points_of(data))
    np.testing.assert_allclose(after.weights.numpy(), theirs.weights_, atol=1e-8)
    np.testing.assert_allclose(after.means.numpy(), theirs.means_, atol=1e-8)
    np.testing.assert_allclose(after.variances.numpy(), theirs.covariances_, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))  # of seed 3 a component shrinks to a point, and is refused
@pytest.mark.parametrize("batch_size", [200, 50, 70])
def test_the_likelihood_never_falls(seed, batch_size):
    data = clusters()
    run = train(data, 15, seed, batch_size, least_variance=0.0)
    batches = -(-len(data) // batch_size)
    sizes = np.resize(
        [batch_size] * (len(data) // batch_size) + [len(data) % batch_size or batch_size], batches
    )
    densities = np.array([record["log_density"] for record in run.records]).reshape(-1, batches)
    per_pass = densities @ sizes / sizes.sum()
    assert (np.diff(per_pass) > -1e-9).all()
    assert per_pass[-1] > per_pass[0] + 0.01


def test_a_pass_is_the_same_in_batches_of_any_size():
    """From the same parameters, the next ones are sums over all rows, however these are read."""
    data, start = clusters(), train(clusters(), 2).method
    after = []
    for size in (200, 50, 70):
        method = uw.methods.create("gaussian_mixture", data, num_components=3)
        method.load_state_dict(start.state_dict())
        batches = method.batches(data)
        for step in range(-(-len(data) // size)):
            # Step 0 of a run finds the start; this is a later pass.
            method.begin(batches.draw(step, size, seed=size), step + 1000, torch.Generator())
        assert method.counts.sum() == 0
        after.append(method)
    for method in after[1:]:
        torch.testing.assert_close(method.means.data, after[0].means.data)
        torch.testing.assert_close(method.variances.data, after[0].variances.data)
        torch.testing.assert_close(method.weights.data, after[0].weights.data)


def test_images_and_their_codes():
    data = squares()
    method = uw.methods.create("gaussian_mixture", data, num_components=2)
    run = uw.train(method, data, 8, batch_size=30, pictures=False)
    codes = run.encode(data)
    assert codes.shape == (60, 2)
    assert np.allclose(codes.sum(1), 1)
    assert len(set(codes[::2].argmax(1))) == 1
    assert codes[0].argmax() != codes[1].argmax()
    decoded = run.decode(np.eye(2)[codes.argmax(1)])
    np.testing.assert_allclose(decoded, data.images(np.arange(60)) / 255, atol=0.02)
    assert run.sample(5).shape == (5, 4, 4, 1)
    assert 0 <= run.sample(50).min() <= run.sample(50).max() <= 1
    assert method.parts == {"c": slice(0, 2)}
    assert method.categories == (slice(0, 2),)
    for capability in (Encodes, Decodes, Samples, HasDensity, HasPixelDensity):
        assert isinstance(method, capability)


def test_the_density_of_images_is_repeatable_and_normalised():
    """Samples of the mixture, taken back to values, have the density's own mean: E log p = -entropy of one Gaussian."""
    data = squares(4)
    method = uw.methods.create("gaussian_mixture", data, num_components=1)
    uw.train(method, data, 2, batch_size=4, pictures=False)
    images = torch.rand(3, 1, 4, 4)
    assert torch.equal(method.log_density(images), method.log_density(images))
    drawn = [method.log_density(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    values = method.sample_values(torch.zeros(20_000, dtype=torch.int64), torch.Generator().manual_seed(0))
    entropy = 0.5 * (method.variances.log() + np.log(2 * np.pi * np.e)).sum().item()
    assert method._joint(values).logsumexp(1).mean().item() == pytest.approx(-entropy, abs=0.1)


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path):
    class Stop(Callback):
        def on_log(self, step, values):
            if step == 5:
                raise KeyboardInterrupt

    data = clusters()
    whole = train(data, 3)
    method = uw.methods.create("gaussian_mixture", data, num_components=3)
    options = {"batch_size": 50, "log_every": 1, "pictures": False, "out": tmp_path, "checkpoint_every": 1}
    with pytest.raises(KeyboardInterrupt):
        uw.train(method, data, 12, callbacks=[Stop()], **options)
    resumed = uw.train(uw.methods.create("gaussian_mixture", data, num_components=3), data, 12, **options)
    loaded = uw.load(tmp_path).method
    for name, value in whole.method.state_dict().items():
        assert torch.equal(value, resumed.method.state_dict()[name]), name
        assert torch.equal(value, loaded.state_dict()[name]), name


def test_the_command_line_trains_it(tmp_path, capsys):
    folder = tmp_path / "images"
    folder.mkdir()
    from PIL import Image

    for i, image in enumerate(points_of(squares(8)).astype(np.uint8)):
        Image.fromarray(image[..., 0]).save(folder / f"{i}.png")
    out = tmp_path / "run"
    command = ["train", "gaussian_mixture", "--data", str(folder), "--steps", "3", "--batch-size", "8"]
    with pytest.raises(SystemExit) as caught:
        main([*command, "--set", "num_components=2", "--out", str(out)])
    assert not caught.value.code
    assert uw.load(out).method.num_components == 2
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main([*command, "--set", "num_components=9", "--out", str(tmp_path / "other")])
    assert caught.value.code == 2
    assert "num_components = 9" in capsys.readouterr().err


# --- what is refused -------------------------------------------------------------------------------


def test_more_components_than_rows():
    with pytest.raises(
        ArgumentError, match="num_components = 5: few has 4 rows: some components would be em"
    ):
        uw.methods.create("gaussian_mixture", clusters(4, "few"), num_components=5)


def test_more_components_than_a_batch_has_rows():
    data = clusters()
    method = uw.methods.create("gaussian_mixture", data, num_components=10)
    with pytest.raises(ArgumentError, match="batch_size = 9: needs at least 10"):
        uw.train(method, data, 1, batch_size=9)


def test_more_components_than_different_observations():
    data = uw.data.from_arrays(np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0).astype(np.float32))
    method = uw.methods.create("gaussian_mixture", data, num_components=3)
    with pytest.raises(UnweaveError, match="the first batch has 2 different observations for 3 components"):
        uw.train(method, data, 1, batch_size=20)


def test_a_component_that_becomes_empty():
    method = train(clusters(), 1).method
    method.counts.copy_(torch.tensor([10.0, 0.0, 5.0]))
    with pytest.raises(UnweaveError, match="component 1 of 3 is empty"):
        method._maximise()


def test_a_singular_covariance():
    points = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    points[:, 1] = 3
    data = uw.data.from_arrays(points)
    method = uw.methods.create("gaussian_mixture", data, num_components=2, least_variance=0.0)
    with pytest.raises(UnweaveError, match="singular: entry 1 is the same"):
        uw.train(method, data, 1, batch_size=20)
    uw.train(uw.methods.create("gaussian_mixture", data, num_components=2), data, 3, batch_size=20)


def test_endless_data_and_data_that_is_not_uniform():
    with pytest.raises(ArgumentError, match="data = 'pendulum': is endless"):
        uw.methods.create("gaussian_mixture", uw.data.load("pendulum"))
    data = clusters().with_parts(sampler=lambda n, rng: np.zeros(n, int))
    with pytest.raises(ArgumentError, match="does not draw its rows uniformly"):
        uw.methods.create("gaussian_mixture", data)


def test_kmeans_leaves_no_cluster_empty():
    points = torch.cat([torch.zeros(30, 1), torch.ones(1, 1), 2 * torch.ones(1, 1)]).double()
    for seed in range(5):
        assert kmeans(points, 3, torch.Generator().manual_seed(seed)).unique().tolist() == [0, 1, 2]
