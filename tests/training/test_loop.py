import json
import math
from functools import partial

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError, DataError, UnweaveError
from unweave.methods import Method, Player, Terms, register_term
from unweave.training import Callback, RunSpec, TrainingError, plan

train = partial(uw.train, pictures=False)


def weights(method):
    return {name: value.clone() for name, value in method.state_dict().items()}


def assert_same_weights(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


@pytest.fixture
def make(squares):
    def create(name="beta_vae", **options):
        return uw.methods.create(name, squares, latent_size=3, **options)

    return create


def test_training_learns(make, squares):
    run = train(make(), squares, steps=120, learning_rate=1e-3, log_every=1)
    losses = [record["loss"] for record in run.records]
    assert losses[-1] < 0.5 * losses[0]
    assert [record["step"] for record in run.records] == list(range(1, 121))
    assert run.finished
    assert not run.method.training


def test_the_same_seed_gives_the_same_bits(make, squares):
    first = train(make("factor_vae"), squares, steps=4, seed=3)
    again = train(make("factor_vae"), squares, steps=4, seed=3)
    other = train(make("factor_vae"), squares, steps=4, seed=4)
    assert_same_weights(weights(first.method), weights(again.method))
    assert not torch.equal(*(next(iter(run.method.parameters())) for run in (first, other)))


def test_a_fresh_method_starts_from_the_seed_and_another_from_its_weights(make, squares):
    given = make(seed=9)
    start = weights(given)
    train(given, squares, steps=1, seed=1, learning_rate=1e-12)
    for name, value in start.items():
        torch.testing.assert_close(given.state_dict()[name], value)
    fresh = make()
    train(fresh, squares, steps=1, seed=9, learning_rate=1e-12)
    for name, value in start.items():
        torch.testing.assert_close(fresh.state_dict()[name], value)


def test_one_step_is_adam_on_the_loss_of_one_batch(make, squares):
    """Against plain PyTorch, without the engine, its fast path or its wrappers."""
    run = train(make(), squares, steps=3, batch_size=8, learning_rate=1e-3, seed=5, fast=False)
    from unweave.training.loop import step_generator

    method = make(seed=5)
    optimiser = torch.optim.Adam(method.parameters(), 1e-3, (0.9, 0.999), 1e-8)
    for step in range(3):
        generator = step_generator(torch.Generator(), 5, step)
        loss = method.loss(method.begin(squares.batch(step, 8, 5), step, generator)).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    for name, value in method.state_dict().items():
        torch.testing.assert_close(run.method.state_dict()[name], value, rtol=1e-4, atol=1e-4)


def test_each_player_has_its_own_optimiser(make, squares):
    """FactorVAE makes one update of each player per step, the adversary's with Adam(1e-4, 0.5, 0.9)."""
    method = make("factor_vae")
    counts = {"model": 0, "discriminator": 0}
    players = method.players()
    originals = {player.name: player.loss for player in players}

    def counted(name):
        def loss(made):
            counts[name] += 1
            assert made.step < 5  # one count of steps, not one per player
            return originals[name](made)

        return loss

    method.players = lambda: [
        uw.methods.Player(p.name, p.parameters, counted(p.name), p.optimiser) for p in players
    ]
    train(method, squares, steps=5)
    assert counts == {"model": 5, "discriminator": 5}
    adversary = players[1].optimiser
    assert (adversary.learning_rate, adversary.betas, adversary.epsilon) == (1e-4, (0.5, 0.9), 1e-8)


class Turns(uw.methods.Method):
    """Players that move at different steps, each by a gradient of 1; the numbers of their steps are counted."""

    def __init__(self, image_shape, every):
        super().__init__()
        self.spec = uw.methods.MethodSpec("turns", list(image_shape))
        self.weights = torch.nn.ParameterList(torch.zeros(1) for _ in every)
        self.every, self.begun, self.moved = every, [], [[] for _ in every]

    def begin(self, batch, step, generator):
        self.begun.append(step)
        return step

    def players(self):
        def loss(number):
            def terms(step):
                self.moved[number].append(step)
                return Terms.of(**{f"value_{number}": (self.weights[number].sum(), 1.0)})

            return terms

        return [
            Player(f"player_{number}", [self.weights[number]], loss(number), every=every)
            for number, every in enumerate(self.every)
        ]


def test_players_move_at_their_own_steps(squares):
    method = Turns(squares.image_shape, every=(3, 1, 2))
    run = train(method, squares, steps=7, log_every=1)
    assert method.begun == list(range(7))  # one forward pass per step, whoever moves first
    assert method.moved == [[2, 5], [0, 1, 2, 3, 4, 5, 6], [1, 3, 5]]
    assert [("value_0" in r, "value_1" in r, "value_2" in r) for r in run.records] == [
        ((step + 1) % 3 == 0, True, (step + 1) % 2 == 0) for step in range(7)
    ]


def test_a_step_at_which_nobody_moves_changes_nothing(squares):
    method = Turns(squares.image_shape, every=(2,))
    train(method, squares, steps=5)
    assert method.moved == [[1, 3]]
    assert method.begun == [1, 3]


def test_a_run_directory_has_everything_to_repeat_it(make, squares, tmp_path):
    run = train(make(beta=3), squares, steps=6, out=tmp_path / "run", log_every=2)
    assert {path.name for path in run.path.iterdir() if path.name != ".lock"} == {
        "spec.yaml",
        "weights.safetensors",
        "state.safetensors",
        "history.jsonl",
    }
    loaded = uw.load(tmp_path / "run").method
    assert_same_weights(weights(loaded), weights(run.method))
    assert loaded.spec == run.method.spec
    records = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == [2, 4, 6]
    assert {"loss", "reconstruction", "kl", "images_per_second"} <= records[0].keys()
    assert uw.load(tmp_path / "run").records == records


def test_a_finished_run_is_not_trained_again(make, squares, tmp_path):
    first = train(make(), squares, steps=4, out=tmp_path / "run")
    before = (tmp_path / "run" / "weights.safetensors").stat().st_mtime_ns
    again = train(make(), squares, steps=4, out=tmp_path / "run")
    assert again.finished
    assert_same_weights(weights(again.method), weights(first.method))
    assert (tmp_path / "run" / "weights.safetensors").stat().st_mtime_ns == before


def test_more_steps_continue_a_finished_run(make, squares, tmp_path):
    train(make(), squares, steps=3, out=tmp_path / "run", log_every=1)
    longer = train(make(), squares, steps=7, out=tmp_path / "run", log_every=1)
    whole = train(make(), squares, steps=7)
    assert_same_weights(weights(longer.method), weights(whole.method))
    assert [record["step"] for record in longer.records] == list(range(1, 8))
    with pytest.raises(ArgumentError, match="is for 7 steps already"):
        train(make(), squares, steps=5, out=tmp_path / "run")


def test_a_directory_of_another_spec_is_refused(make, squares, tmp_path):
    train(make(beta=3), squares, steps=2, out=tmp_path / "run")
    with pytest.raises(ArgumentError, match=r"hyperparameters.beta is 3 there, 4 here"):
        train(make(beta=4), squares, steps=2, out=tmp_path / "run")
    with pytest.raises(ArgumentError, match="seed is 0 there, 1 here"):
        train(make(beta=3), squares, steps=2, seed=1, out=tmp_path / "run")


def test_two_processes_cannot_train_one_run(make, squares, tmp_path):
    class Second(Callback):
        def on_log(self, step, values):
            with pytest.raises(UnweaveError, match="another process is training this run"):
                train(make(), squares, steps=2, out=tmp_path / "run")

    train(make(), squares, steps=2, out=tmp_path / "run", callbacks=[Second()])


def test_a_folder_with_other_files_is_refused(make, squares, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="not a run directory"):
        train(make(), squares, steps=2, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@register_term("breaks_at")
class BreaksAt:
    """A term that is not a number from some step on."""

    def __init__(self, step=5, value=math.nan):
        self.step, self.value = step, value

    def __call__(self, made):
        factor = self.value if made.step >= self.step else 0.0
        return Terms.of(broken=(made.mean.sum() * 0 + factor, 1.0))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e20])
def test_a_bad_loss_stops_the_run_and_overwrites_nothing(make, squares, tmp_path, value):
    method = make(extra_terms=[BreaksAt(5, value)])
    with pytest.raises(TrainingError, match=r"step 5: broken = .*rows \[") as caught:
        train(method, squares, steps=9, batch_size=4, out=tmp_path / "run", checkpoint_every=4)
    report = json.loads((tmp_path / "run" / "failure.json").read_text())
    assert report["step"] == 5
    assert report["rows"] == squares.batch(5, 4, 0).rows.tolist()
    assert "failure.json" in str(caught.value)
    healthy = train(make(), squares, steps=5, batch_size=4)
    assert_same_weights(weights(method), weights(healthy.method))
    kept = uw.load(tmp_path / "run", terms=(BreaksAt(),))
    assert kept.step == 4
    assert all(torch.isfinite(value).all() for value in weights(kept.method).values())


@pytest.mark.parametrize("keep", [0, 7, 1000])
def test_a_truncated_checkpoint_is_one_clear_error(make, squares, tmp_path, keep):
    train(make(), squares, steps=3, out=tmp_path / "run")
    state = tmp_path / "run" / "state.safetensors"
    damaged = state.read_bytes()[:keep]
    state.write_bytes(damaged)
    with pytest.raises(DataError, match=r"state.safetensors: truncated or damaged.*Delete it"):
        train(make(), squares, steps=5, out=tmp_path / "run")
    assert state.read_bytes() == damaged


def test_a_full_disk_keeps_the_last_checkpoint(make, squares, tmp_path, monkeypatch):
    train(make(), squares, steps=2, out=tmp_path / "run")
    before = (tmp_path / "run" / "state.safetensors").read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unweave.training.checkpoint.write_tensors", full)
    with pytest.raises(DataError, match=r"No space left on device.*the last checkpoint is as it was"):
        train(make(), squares, steps=6, out=tmp_path / "run", checkpoint_every=3)
    assert (tmp_path / "run" / "state.safetensors").read_bytes() == before
    assert not list((tmp_path / "run").glob(".state*"))


def test_callbacks_hear_what_happens(make, squares, tmp_path):
    heard = []

    class Listener(Callback):
        def on_start(self, run):
            heard.append("start")

        def on_log(self, step, values):
            heard.append((step, round(values["loss"])))

        def on_checkpoint(self, run, step):
            heard.append(f"checkpoint {step}")

        def on_end(self, run):
            heard.append(f"end {run.step}")

    run = train(
        make(),
        squares,
        steps=4,
        out=tmp_path / "run",
        callbacks=[Listener()],
        log_every=2,
        checkpoint_every=2,
    )
    losses = [round(record["loss"]) for record in run.records]
    assert heard == ["start", (2, losses[0]), "checkpoint 2", (4, losses[1]), "checkpoint 4", "end 4"]


def test_the_users_own_encoder_can_be_trained_and_loaded(squares, tmp_path):
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1024, 4)

        def forward(self, x):
            return self.layer(x.flatten(1)).chunk(2, dim=1)

    torch.manual_seed(0)
    method = uw.methods.create("vae", squares, latent_size=2, encoder=Encoder())
    run = train(method, squares, steps=2, out=tmp_path / "run")
    loaded = uw.load(tmp_path / "run", encoder=Encoder()).method
    assert_same_weights(weights(loaded), weights(run.method))
    with pytest.raises(ArgumentError, match="needs your own encoder"):
        uw.load(tmp_path / "run")


def test_endless_simulators_train_too():
    data = uw.data.from_function(["a"], [(0.0, 1.0)], lambda factors: np.repeat(factors, 5, axis=1))
    method = uw.methods.create("beta_tcvae", data, latent_size=2)
    run = train(method, data, steps=3, batch_size=8)
    assert math.isfinite(run.records[-1]["loss"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"steps": 0}, "steps = 0"),
        ({"steps": 2.5}, "steps = 2.5"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"learning_rate": -1}, "learning_rate = -1"),
        ({"seed": -1}, "seed = -1"),
        ({"device": "tpu"}, "device = 'tpu'"),
        ({"device": "cpu:x"}, "device = 'cpu:x'"),
        ({"precision": "7-bit"}, "precision = '7-bit'"),
        ({"log_every": 0}, "log_every = 0"),
        ({"checkpoint_every": 0}, "checkpoint_every = 0"),
        ({"devices": 0}, "devices = 0"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(make, squares, tmp_path, arguments, named):
    with pytest.raises(ArgumentError, match=named):
        train(make(), squares, **{"steps": 2, "out": tmp_path / "run", **arguments})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["beta_vae", None, torch.nn.Linear(1, 1)])
def test_what_is_no_method_is_refused(squares, method):
    with pytest.raises(ArgumentError, match=r"method = .*unweave\.methods\.create"):
        train(method, squares, steps=1)


@pytest.mark.parametrize("data", ["squares", None, np.zeros((4, 32, 32, 1), np.uint8)])
def test_what_is_no_data_set_is_refused(make, data):
    with pytest.raises(ArgumentError, match=r"data = .*needs a Dataset"):
        train(make(), data, steps=1)


def test_swapped_arguments_are_refused(make, squares):
    with pytest.raises(ArgumentError, match="method = 'Dataset'"):
        train(squares, make(), steps=1)


def test_a_method_without_a_spec_says_how_to_get_one(squares):
    class Unregistered(Method):
        def __init__(self, image_shape):
            super().__init__()

    with pytest.raises(ArgumentError, match=r"method = 'Unregistered': .*@register_method.*create"):
        train(Unregistered(squares.image_shape), squares, steps=1)


def test_a_file_in_place_of_the_directory_is_refused(make, squares, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    for out in (file, file / "run"):
        with pytest.raises(ArgumentError, match=r"out = .*needs a directory"):
            train(make(), squares, steps=1, out=out)
    with pytest.raises(ArgumentError, match=r"out = 3: needs the path"):
        train(make(), squares, steps=1, out=3)
    assert file.read_text() == "kept"


def test_numpy_scalars_are_numbers(make, squares, tmp_path):
    given = [np.int64(2), np.int32(4), np.float32(2**-10), np.uint64(3)]
    options = {"log_every": np.int64(1), "checkpoint_every": np.int64(1), "checkpoint_seconds": np.float32(9)}
    run = train(make(), squares, *given, out=tmp_path / "run", **options)
    assert RunSpec.read(tmp_path / "run" / "spec.yaml") == run.spec
    assert run.spec.identity == plan(make(), squares, 2, 4, 2**-10, 3, "32-true").identity
    counts = {"num_train": np.int64(50), "num_test": np.int64(20), "seed": np.int64(1)}
    params = {"mig": {"num_bins": np.int64(5)}, "unsupervised": {"num_images": np.int64(10)}}
    assert uw.evaluate(run, squares, list(params), **counts, params=params)["mig"].params["num_bins"] == 5
    with pytest.raises(ArgumentError, match="steps = True"):
        train(make(), squares, np.bool_(True))


def test_data_of_another_shape_is_refused(make):
    other = uw.data.from_arrays(np.zeros((3, 28, 28, 1), np.uint8))
    with pytest.raises(ArgumentError, match=r"has images \(28, 28, 1\)"):
        train(make(), other, steps=1)


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="not a run directory"):
        uw.load(tmp_path)
    (tmp_path / "spec.yaml").write_text("method: [")
    with pytest.raises(DataError, match="not a run spec"):
        uw.load(tmp_path)


def test_mixed_precision_comes_from_the_engine(make, squares):
    run = train(make(), squares, steps=3, precision="bf16-mixed")
    assert math.isfinite(run.records[-1]["loss"])
    assert all(value.dtype == torch.float32 for value in run.method.parameters())
