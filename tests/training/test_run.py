"""A run encodes, decodes, samples, remembers its history and shows itself."""

import base64
import io
import json
import re
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError, DataError
from unweave.methods import Method, Player, Terms
from unweave.methods.spec import MethodSpec
from unweave.training import Run
from unweave.training.spec import RunSpec


@pytest.fixture(scope="module")
def data():
    images = np.random.default_rng(0).integers(0, 256, (100, 8, 8, 3), np.uint8)
    return uw.data.from_arrays(images, {"row": np.arange(100)}, name="noise")


@pytest.fixture(scope="module")
def run(data):
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp")
    return uw.train(method, data, steps=4, batch_size=8, log_every=2)


@pytest.fixture(scope="module")
def expected(run, data):
    """Mean and log-variance of all images by the method's own tensors."""
    with torch.no_grad():
        return [part.numpy() for part in run.method.encode(to_tensor(data.images(np.arange(100))))]


# --- codes ------------------------------------------------------------------------------------------


def test_a_data_set_is_encoded_by_rows(run, data, expected):
    codes = run.encode(data)
    assert codes.dtype == np.float32
    assert codes.shape == (100, 3)
    np.testing.assert_allclose(codes, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run.encode(data, [7, 3]), codes[[7, 3]])
    np.testing.assert_array_equal(run.encode(data, rows=np.arange(90)), codes[:90])


def test_a_code_does_not_depend_on_the_images_next_to_it(run, data):
    alone = np.concatenate([run.encode(data, [row]) for row in range(5)])
    np.testing.assert_array_equal(alone, run.encode(data)[:5])


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("method", "architecture"), [("beta_vae", "mlp"), ("factor_vae", "conv"), ("beta_vae", "conv_dlib")]
)
def test_codes_have_the_same_bits_just_trained_and_loaded(method, architecture, fast, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (70, 64, 64, 1), np.uint8)
    data = uw.data.from_arrays(images, name="noise")
    options = {"steps": 2, "batch_size": 8, "out": tmp_path / "run", "pictures": False, "fast": fast}
    model = uw.methods.create(method, data, latent_size=3, architecture=architecture)
    trained = uw.train(model, data, **options)
    loaded = uw.load(tmp_path / "run")
    again = uw.train(
        uw.methods.create(method, data, latent_size=3, architecture=architecture), data, **options
    )
    assert again.finished
    for other in (loaded, again):
        np.testing.assert_array_equal(other.posterior(data), trained.posterior(data))
        np.testing.assert_array_equal(other.decode(np.eye(3)), trained.decode(np.eye(3)))
        np.testing.assert_array_equal(other.sample(5), trained.sample(5))


@pytest.mark.parametrize(
    "form",
    [
        lambda images: images,
        lambda images: images.tolist() and images.astype(np.float32) / np.float32(255),
        lambda images: images.astype(np.float64) / 255,
        lambda images: images.transpose(0, 3, 1, 2),
        lambda images: (images / np.float32(255)).transpose(0, 3, 1, 2),
        lambda images: to_tensor(images),
        lambda images: torch.from_numpy(images),
        lambda images: to_tensor(images).requires_grad_(),
    ],
    ids=["bytes", "float32", "float64", "bytes first", "floats first", "tensor", "byte tensor", "gradients"],
)
def test_images_are_taken_in_every_form(run, data, expected, form):
    images = data.images(np.arange(70))
    np.testing.assert_allclose(run.encode(form(images)), expected[0][:70], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        run.encode(form(images), rows=[4, 2]), expected[0][[4, 2]], rtol=1e-4, atol=1e-6
    )


def test_the_posterior_has_a_mean_and_a_log_variance(run, data, expected):
    for part, other in zip(run.posterior(data), expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-5, atol=1e-6)


def test_a_named_part_of_a_code(run, data):
    np.testing.assert_array_equal(run.encode(data, part="z"), run.encode(data))

    class TwoParts(Encoder):
        parts: ClassVar = {"c": slice(0, 1), "z": slice(1, 3)}

    two = in_memory(TwoParts(), (8, 8, 3))
    np.testing.assert_array_equal(two.encode(data, part="c"), two.encode(data)[:, :1])
    np.testing.assert_array_equal(two.encode(data, part="z"), two.encode(data)[:, 1:])
    with pytest.raises(ArgumentError, match=r"part = 'x': .*known: .*c, z"):
        two.encode(data, part="x")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 8, 9, 3), np.uint8), r"shape \(2, 8, 9, 3\)'.*\(n, 8, 8, 3\) or \(n, 3, 8, 8\)"),
        (np.zeros((8, 8, 3), np.uint8), r"shape \(8, 8, 3\)"),
        (np.zeros((2, 8, 8, 3), np.int64), r"int64.*needs bytes \(uint8\) or floats"),
        (np.full((2, 8, 8, 3), 255.0), "pass values from 0 to 255 as uint8"),
        (np.zeros((0, 8, 8, 3), np.uint8), "images = .*at least one"),
        (np.full((2, 8, 8, 3), np.nan), "images = nan: .*not a number"),
        (np.where(np.arange(192).reshape(1, 8, 8, 3) == 5, np.nan, 0.5), "images = nan: .*not a number"),
        (np.full((2, 8, 8, 3), np.inf), "images = inf"),
        ("noise", "shape"),
    ],
)
def test_other_images_are_refused(run, images, message):
    with pytest.raises(ArgumentError, match=message):
        run.encode(images)


@pytest.mark.parametrize(
    "rows",
    [[2, 5, 6], (2, 5, 6), np.array([2, 5, 6]), torch.tensor([2, 5, 6]), np.isin(np.arange(100), [2, 5, 6])],
)
def test_rows_of_data_and_of_images_are_given_alike(run, data, expected, rows):
    images = data.images(np.arange(100))
    for source in (data, images, torch.from_numpy(images)):
        np.testing.assert_allclose(run.encode(source, rows), expected[0][[2, 5, 6]], rtol=1e-5, atol=1e-6)


def test_rows_may_be_a_slice(run, data, expected):
    for source in (data, data.images(np.arange(100))):
        for rows in (slice(3), slice(90, None, 4), slice(None, None, -1)):
            np.testing.assert_allclose(run.encode(source, rows), expected[0][rows], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, r"rows = .*needs whole numbers \(n,\), a slice, or a mask \(100,\)"),
        ([0.5], "rows = 'float64 of shape"),
        (["a"], "rows = .*needs whole numbers"),
        ([100], r"rows = 100: needs 0 <= row < 100"),
        ([-1], r"rows = -1: needs 0 <= row < 100"),
        ([True, False], r"rows = 'bool of shape \(2,\)': .*a mask \(100,\)"),
        (np.ones((100, 1), bool), "rows = 'bool of shape"),
        (slice("a"), r"rows = slice\(None, 'a'"),
        ([], "rows = .*at least one"),
        (slice(0), "rows = .*at least one"),
        (np.zeros(100, bool), "rows = .*at least one"),
    ],
)
def test_other_rows_are_refused(run, data, rows, message):
    for source in (data, data.images(np.arange(100))):
        with pytest.raises(ArgumentError, match=message):
            run.encode(source, rows)


def test_factors_stand_for_rows_of_a_data_set(run, data, expected):
    np.testing.assert_allclose(run.encode(data, [[2], [5]]), expected[0][[2, 5]], rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match="rows = "):
        run.encode(data.images(np.arange(100)), [[2], [5]])


def test_data_of_another_shape_is_refused(run):
    with pytest.raises(ArgumentError, match=r"has images \(28, 28, 1\)"):
        run.encode(uw.data.from_arrays(np.zeros((3, 28, 28, 1), np.uint8)))


def test_encoding_leaves_the_method_as_it_was(run, data):
    run.method.train()
    run.encode(data, [0])
    assert run.method.training
    run.method.eval()
    run.encode(data, [0])
    assert not run.method.training
    assert all(parameter.grad is None or parameter.requires_grad for parameter in run.method.parameters())


def test_noise_of_a_stochastic_data_set_comes_from_the_seed(run, data):
    noisy = data.with_parts(
        noise=lambda images, rng: rng.integers(0, 256, images.shape, np.uint8), name="noisy"
    )
    np.testing.assert_array_equal(run.encode(noisy, [1, 2]), run.encode(noisy, [1, 2]))
    assert not np.array_equal(run.encode(noisy, [1, 2]), run.encode(noisy, [1, 2], seed=1))


def test_vectors_are_observations_too():
    vectors = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)
    data = uw.data.from_arrays(vectors)
    method = uw.methods.create("vae", data, latent_size=2, reconstruction="gaussian", seed=0)
    run = uw.train(method, data, steps=1, batch_size=4)
    np.testing.assert_array_equal(run.encode(vectors), run.encode(data))
    assert run.decode(run.encode(vectors)).shape == (10, 6)
    assert "<img" not in run._repr_html_()


# --- images -----------------------------------------------------------------------------------------


def test_codes_are_decoded(run, data):
    codes = run.encode(data)
    images = run.decode(codes)
    assert images.shape == (100, 8, 8, 3)
    assert images.dtype == np.float32
    with torch.no_grad():
        expected = run.method.decode(torch.from_numpy(codes)).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(images, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run.decode(codes.tolist()), images)
    np.testing.assert_array_equal(run.decode(torch.from_numpy(codes)), images)
    assert run.encode(images).shape == (100, 3)


@pytest.mark.parametrize("codes", [np.zeros(3), np.zeros((2, 4)), [["a", "b", "c"]], np.zeros((0, 3))])
def test_other_codes_are_refused(run, codes):
    with pytest.raises(ArgumentError, match="codes = "):
        run.decode(codes)


def test_samples_come_from_the_model(run):
    images = run.sample(5, seed=3)
    assert images.shape == (5, 8, 8, 3)
    with torch.no_grad():
        expected = run.method.sample(5, torch.Generator().manual_seed(3)).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(images, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(images, run.sample(5, seed=3))
    assert not np.array_equal(images, run.sample(5))
    with pytest.raises(ArgumentError, match="n = 0: needs a whole number >= 1"):
        run.sample(0)


# --- capabilities -----------------------------------------------------------------------------------


class Nothing(Method):
    """A method that can only be trained."""

    def __init__(self):
        super().__init__()
        self.spec = MethodSpec("nothing", [8, 8, 3])
        self.weight = torch.nn.Parameter(torch.ones(1))

    def begin(self, batch, step, generator):
        return batch

    def players(self):
        return [Player("model", [self.weight], lambda batch: Terms.of(loss=(self.weight.sum(), 1.0)))]


class Encoder(Nothing):
    parts: ClassVar = {"z": slice(0, 3)}
    noise_correlation = 0.0

    def encode(self, images):
        mean = images.flatten(1)[:, :3]
        return mean, torch.full_like(mean, -torch.inf)


def in_memory(method, image_shape):
    return Run(RunSpec(method.spec, {"name": "noise"}, 1, 1, 1e-4, 0), method)


def test_what_a_method_cannot_do_is_named(data):
    run = in_memory(Nothing(), (8, 8, 3))
    for call, what in (
        (lambda: run.encode(data), "encode images: Nothing is not an unweave.methods.method.Encodes"),
        (
            lambda: run.decode(np.zeros((1, 3))),
            "decode codes: Nothing is not an unweave.methods.method.Decodes",
        ),
        (lambda: run.sample(1), "sample images: Nothing is not an unweave.methods.method.Samples"),
    ):
        with pytest.raises(ArgumentError, match=f"method = 'nothing': cannot {re.escape(what)}"):
            call()
    assert "<img" not in run._repr_html_()


def test_codes_without_noise(data):
    mean, log_variance = in_memory(Encoder(), (8, 8, 3)).posterior(data, [0, 1])
    np.testing.assert_allclose(mean, to_tensor(data.images([0, 1])).flatten(1)[:, :3], rtol=1e-6)
    assert (log_variance == -np.inf).all()


# --- history and display ----------------------------------------------------------------------------


def test_the_history_is_a_frame(run):
    assert isinstance(run.history, pd.DataFrame)
    assert run.history.index.tolist() == [2, 4]
    assert run.history.loc[4, "loss"] == run.records[-1]["loss"]
    empty = Run(run.spec, run.method).history
    assert len(empty) == 0
    assert empty.index.name == "step"


def test_a_short_repr(run, tmp_path):
    assert repr(run) == "Run(beta_vae on noise: 4 of 4 steps, seed 0, in memory)"
    assert repr(Run(run.spec, run.method, tmp_path, 1)) == (
        f"Run(beta_vae on noise: 1 of 4 steps, seed 0, in {tmp_path})"
    )


def pictures_of(card):
    return [
        np.asarray(Image.open(io.BytesIO(base64.b64decode(text))))
        for text in re.findall(r"src='data:image/png;base64,([^']*)'", card)
    ]


def test_a_card_shows_images_and_their_reconstructions(run, data):
    card = run._repr_html_()
    assert "beta_vae" in card
    assert "4 of 4" in card
    (picture,) = pictures_of(card)
    assert picture.shape == (128, 512, 3)
    rows = data.sample_rows(8, np.random.default_rng(0))
    np.testing.assert_array_equal(picture[:64:8, :64:8], data.images(rows[:1])[0])
    below = run.decode(run.encode(data, rows[:1]))[0]
    np.testing.assert_array_equal(picture[64::8, :64:8], np.rint(below * 255).astype(np.uint8))


def test_a_loaded_run_shows_samples(data, tmp_path):
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    uw.train(method, data, steps=1, batch_size=4, out=tmp_path / "run", pictures=False)
    loaded = uw.load(tmp_path / "run")
    card = loaded._repr_html_()
    assert "samples" in card
    assert pictures_of(card)[0].shape == (64, 512, 3)


def test_a_card_shows_the_scores_of_a_study(run, tmp_path):
    folder = tmp_path / "scores"
    folder.mkdir()
    (folder / "1.json").write_text(json.dumps({"metric": "mig", "rows": [["mig", "mean", 0.25]]}))
    (folder / "2.json").write_text(json.dumps({"rows": [["<b>sap", "mean", 0.5], ["sap.x", "mean", 1]]}))
    (folder / "3.json").write_text("{")
    card = Run(run.spec, run.method, tmp_path)._repr_html_()
    assert "&lt;b&gt;sap (mean) 0.500, mig (mean) 0.250<" in card


def test_hostile_names_stay_text(data, tmp_path):
    spec = MethodSpec("<script>alert(1)</script>", [8, 8, 3], hyperparameters={"<b>": "'\"><img src=x>"})
    method = Nothing()
    method.spec = spec
    run = Run(
        RunSpec(spec, {"name": "<i>&amp;"}, 1, 1, 1e-4, 0),
        method,
        tmp_path / "<u>",
        records=[{"step": 1, "<svg onload=x>": 1.0}],
    )
    card = run._repr_html_()
    for text in ("<script", "<b>", "<img", "<i>", "<u>", "<svg"):
        assert text not in card
    assert "&lt;script&gt;" in card
    assert "&lt;i&gt;&amp;amp;" in card


# --- extensions -------------------------------------------------------------------------------------

EXTENSION = """
import unweave as uw
from unweave.methods import KL, Terms

@uw.register_method("gentle_vae_of_a_file")
def gentle(beta: float = 0.5):
    return [KL(beta)]

@uw.register_term("nothing_of_a_file")
class Nothing:
    def __call__(self, forward_pass):
        return Terms.of(nothing=(forward_pass.mean.sum() * 0, 1.0))
"""


@pytest.fixture
def extension(tmp_path):
    """A user's file, loaded; forgotten after the test."""
    from unweave import extensions

    path = tmp_path / "my_methods.py"
    path.write_text(EXTENSION)
    (name,) = extensions.load([path])
    yield name
    forget(name)


def forget(name):
    """As in a process that has never imported the file."""
    from unweave import extensions

    uw.methods.METHODS.unregister("gentle_vae_of_a_file")
    uw.methods.TERMS.unregister("nothing_of_a_file")
    extensions._loaded.pop(name, None)


@pytest.mark.parametrize(
    ("name", "options", "unknown"),
    [
        ("gentle_vae_of_a_file", {}, "the method 'gentle_vae_of_a_file'"),
        ("vae", {"extra_terms": [{"name": "nothing_of_a_file"}]}, "the term 'nothing_of_a_file'"),
    ],
)
def test_a_spec_remembers_what_it_needs_and_loading_imports_nothing(
    data, tmp_path, extension, name, options, unknown
):
    def create():
        return uw.methods.create(name, data, latent_size=2, architecture="mlp", **options)

    run = uw.train(create(), data, steps=1, batch_size=4, out=tmp_path / "run", pictures=False)
    assert run.spec.imports == [extension]
    assert RunSpec.read(tmp_path / "run" / "spec.yaml").imports == [extension]
    forget(extension)
    with pytest.raises(DataError, match=f"{unknown} is not known here") as caught:
        uw.load(tmp_path / "run")
    assert f"imports=['{extension}']" in str(caught.value)
    assert f"--import {extension}" in str(caught.value)
    assert uw.load(tmp_path / "run", imports=[extension]).step == 1


def test_imports_are_no_part_of_the_identity(data, tmp_path):
    spec = uw.training.plan(uw.methods.create("vae", data, architecture="mlp"), data, 3)
    assert "imports" not in spec.as_dict()
    other = RunSpec(**{**vars(spec), "imports": ["my_module"]})
    assert other.as_dict()["imports"] == ["my_module"]
    assert other.identity == spec.identity
    assert other == spec
    other.check_same_run(spec, tmp_path)
    other.write(tmp_path / "spec.yaml")
    assert RunSpec.read(tmp_path / "spec.yaml").imports == ["my_module"]
