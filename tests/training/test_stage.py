"""Earlier stages given as mappings: trained first, as runs of their own."""

import shutil

import numpy as np
import pytest
import torch
from torch import nn

import unweave as uw
from unweave.cli import main
from unweave.cli.options import parse_nested_settings
from unweave.errors import ArgumentError
from unweave.methods import Method, Player, Stage, Terms, register_method
from unweave.training import Callback

FIRST = {"method": "beta_vae", "beta": 4, "latent_size": 2, "architecture": "mlp"}
SHORT = {"batch_size": 4, "pictures": False, "log_every": 1}


class Shifted(Method):
    """What its first stage decodes, and a shift."""

    noise_correlation = 0.0

    def __init__(self, image_shape, first: Stage = None, scale: float = 1.0):
        super().__init__()
        self.first = first.requires_grad_(False)
        self.shift = nn.Parameter(torch.zeros(()))

    @property
    def parts(self):
        return self.first.parts

    def encode(self, images):
        return self.first.encode(images)

    def decode(self, codes):
        return self.first.decode(codes) + self.shift

    def begin(self, batch, step, generator):
        with torch.no_grad():
            y = self.first.decode(self.first.encode(batch.images).mean)
        return (batch.images - y - self.shift).square().mean()

    def players(self):
        return [Player("model", [self.shift], lambda error: Terms.of(error=(error, 1.0)))]

    def initialise(self, seed):
        with torch.no_grad():
            self.shift.zero_()


@pytest.fixture(autouse=True)
def _registered():
    register_method("shifted")(Shifted)
    yield
    uw.methods.METHODS.unregister("shifted")


@pytest.fixture
def data():
    images = np.random.default_rng(0).integers(0, 256, (32, 6, 6, 1)).astype(np.uint8)
    return uw.data.from_arrays(images, name="noise")


def assert_same(one, other):
    assert one.method.state_dict().keys() == other.method.state_dict().keys()
    for name, value in one.method.state_dict().items():
        assert torch.equal(value, other.method.state_dict()[name]), name


def test_a_mapping_is_the_run_at_its_settings(data, tmp_path):
    settings = {**FIRST, "steps": 5, "seed": 3, "learning_rate": 1e-3}
    run = uw.train(
        uw.methods.create("shifted", data, first=settings), data, 4, seed=1, out=tmp_path / "run", **SHORT
    )
    (folder,) = [path for path in tmp_path.iterdir() if path.name != "run"]
    plain = uw.methods.create("beta_vae", data, beta=4, latent_size=2, architecture="mlp")
    spec = uw.training.plan(plain, data, 5, 4, 1e-3, 3)
    assert folder.name == uw.training.run_name(spec) == f"beta_vae-noise-{spec.identity[:10]}"
    assert uw.load(folder).spec == spec
    same = uw.train(uw.methods.create("shifted", data, first=folder), data, 4, seed=1, **SHORT)
    assert same.spec.identity == run.spec.identity
    assert_same(run, same)
    folder.rename(tmp_path / "gone")
    assert_same(uw.load(tmp_path / "run"), run)


def test_the_name_of_a_run_is_that_of_a_file():
    data = uw.data.from_arrays(np.zeros((4, 6), np.float32), name="../my data")
    spec = uw.training.plan(uw.methods.create("vae", data), data, 1)
    assert uw.training.run_name(spec) == f"vae-.._my_data-{spec.identity[:10]}"


def test_what_a_mapping_leaves_out_is_that_of_the_later_stage(data):
    method = uw.methods.create("shifted", data, first=FIRST)
    run = uw.train(method, data, 3, 4, 2e-4, 7, pictures=False)
    first = run.spec.method.hyperparameters["first"]
    assert {key: first[key] for key in ("steps", "batch_size", "learning_rate", "seed")} == {
        "steps": 3,
        "batch_size": 4,
        "learning_rate": 2e-4,
        "seed": 7,
    }
    assert first["data"] == run.spec.data
    plain = uw.methods.create("beta_vae", data, beta=4, latent_size=2, architecture="mlp")
    trained = uw.train(plain, data, 3, 4, 2e-4, 7, pictures=False).method
    for name, value in trained.state_dict().items():
        assert torch.equal(value, run.method.first.state_dict()[name])


def test_a_hyperparameter_that_is_called_as_a_setting_of_training(data):
    first = {"method": "annealed_vae", "method.steps": 9, "steps": 2, "architecture": "mlp"}
    run = uw.train(uw.methods.create("shifted", data, first=first), data, 1, **SHORT)
    spec = run.spec.method.hyperparameters["first"]
    assert spec["steps"] == 2
    assert spec["method"]["hyperparameters"] == {"steps": 9}


def test_stages_of_any_depth(data, tmp_path):
    first = {"method": "shifted", "steps": 2, "first": {"method": "shifted", "first": {**FIRST, "steps": 4}}}
    run = uw.train(uw.methods.create("shifted", data, first=first), data, 3, out=tmp_path / "run", **SHORT)
    names = sorted(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert names == ["beta_vae", "run", "shifted", "shifted"]
    spec = run.spec.method
    steps = []
    while "first" in spec.hyperparameters:
        stage = spec.hyperparameters["first"]
        steps.append(stage["steps"])
        spec = uw.methods.spec.MethodSpec.from_dict(stage["method"])
    assert steps == [2, 2, 4]  # what is left out is that of the next later stage
    assert_same(uw.load(tmp_path / "run"), run)


def test_later_stages_share_a_first_one(data, tmp_path):
    seconds = []
    for scale in (1.0, 2.0):
        method = uw.methods.create("shifted", data, first={**FIRST, "steps": 3}, scale=scale)
        uw.train(method, data, 2, out=tmp_path / f"run{scale}", **SHORT)
        (folder,) = tmp_path.glob("beta_vae-*")
        seconds.append((folder / "weights.safetensors").stat().st_mtime_ns)
    assert seconds[0] == seconds[1]


class Stop(Callback):
    """Stops a run at a record."""

    def on_log(self, step, values):
        if step == 3:
            raise KeyboardInterrupt


def test_an_interrupted_first_stage_goes_on_to_the_same_bits(data, tmp_path):
    def create():
        return uw.methods.create("shifted", data, first={**FIRST, "steps": 6})

    whole = uw.train(create(), data, 2, **SHORT)
    plain = uw.methods.create("beta_vae", data, beta=4, latent_size=2, architecture="mlp")
    folder = tmp_path / uw.training.run_name(uw.training.plan(plain, data, 6, 4))
    with pytest.raises(KeyboardInterrupt):  # as when the first stage of the call below had been stopped
        uw.train(plain, data, 6, out=folder, callbacks=[Stop()], checkpoint_every=2, **SHORT)
    assert uw.load(folder).step == 2
    assert_same(uw.train(create(), data, 2, out=tmp_path / "run", **SHORT), whole)
    assert uw.load(folder).finished


@pytest.mark.parametrize("nested", [False, True])
def test_a_run_goes_on_without_the_runs_of_its_stages(data, tmp_path, nested):
    def create(steps=3):
        first = {**FIRST, "steps": steps}
        return uw.methods.create(
            "shifted", data, first={"method": "shifted", "steps": 2, "first": first} if nested else first
        )

    whole = uw.train(create(), data, 5, **SHORT)
    with pytest.raises(KeyboardInterrupt):
        uw.train(create(), data, 5, out=tmp_path / "run", callbacks=[Stop()], checkpoint_every=2, **SHORT)
    for folder in [path for path in tmp_path.iterdir() if path.name != "run"]:
        shutil.rmtree(folder)
    for _ in range(2):  # unfinished, then finished
        run = uw.train(create(), data, 5, out=tmp_path / "run", **SHORT)
        assert_same(run, whole)
        assert run.spec == whole.spec
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with pytest.raises(ArgumentError, match="steps is 3 there, 4 here"):
        uw.train(create(4), data, 5, out=tmp_path / "run", **SHORT)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ({"beta": 4}, "first = {'beta': 4}: needs a method"),
        ({"method": "beta_wae"}, "method = 'beta_wae'"),
        ({**FIRST, "gamma": 4}, "hyperparameter of beta_vae = 'gamma'"),
        ({**FIRST, "data": 3}, "first.data = 3"),
        ({**FIRST, "beta": -1}, "beta = -1"),
        ({**FIRST, "steps": 0}, "first.steps = 0: needs a whole number >= 1"),
    ],
)
def test_wrong_mappings_are_refused_by_create(data, first, message):
    with pytest.raises(ArgumentError, match=message):
        uw.methods.create("shifted", data, first=first)


def test_wrong_steps_are_refused_before_any_training(data, tmp_path):
    method = uw.methods.create("shifted", data, first={**FIRST, "steps": 2})
    with pytest.raises(ArgumentError, match="steps = 0"):
        uw.train(method, data, 0, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_nested_settings_of_the_command_line():
    texts = ["first.method=vae", "first.first.beta=1e-3", "beta=6", "first.method.steps=9"]
    assert parse_nested_settings("--set", texts) == {
        "first": {"method": "vae", "first": {"beta": 1e-3}, "method.steps": 9},
        "beta": 6,
    }
    for wrong in (["first=run", "first.beta=4"], ["first.beta=4", "first=run"]):
        with pytest.raises(ArgumentError, match="already"):
            parse_nested_settings("--set", wrong)


def test_the_command_line_trains_a_first_stage_beside_the_second(tmp_path, capsys, monkeypatch):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    for number in range(6):
        Image.fromarray(np.full((8, 8), 40 * number, np.uint8)).save(tmp_path / "images" / f"{number}.png")
    first = ["--set", "first.method=beta_vae", "--set", "first.architecture=mlp", "--set", "first.steps=2"]
    command = ["train", "shifted", "--data", "images", "--steps", "3", "--batch-size", "2", "--no-pictures"]
    for _ in range(2):  # the second time nothing is trained
        with pytest.raises(SystemExit) as caught:
            main([*command, *first])
        assert not caught.value.code, capsys.readouterr().err
        names = sorted(path.name.split("-")[0] for path in (tmp_path / "runs").iterdir())
        assert names == ["beta_vae", "shifted"]
