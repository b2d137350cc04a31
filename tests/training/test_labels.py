"""Runs of methods that learn from labels: exact to resume, loaded ready to encode; other runs are as they were."""

import json
from functools import partial

import numpy as np
import pytest
import torch
import yaml

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.training import RunSpec, plan

train = partial(uw.train, pictures=False)

pytestmark = pytest.mark.usefixtures("small_priors")
FEW = {"labelled": 12, "encoding": "one_hot"}


@pytest.fixture
def small_priors(monkeypatch):
    """Networks on labels that take no time."""
    monkeypatch.setattr("unweave.methods.vae.conditional_prior.HIDDEN", (30, 30))


def create(squares, name, **options):
    return uw.methods.create(name, squares, latent_size=3, **options)


def assert_same_weights(first, second):
    assert first.state_dict().keys() == second.state_dict().keys()
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name


@pytest.mark.parametrize(
    ("name", "labels"),
    [("full_vae", {"labelled": 0.5}), ("ivae", ["x"]), ("idvae", None), ("ss_idvae", FEW)],
)
def test_a_stopped_run_goes_on_to_the_same_bits(squares, tmp_path, name, labels):
    options = {"batch_size": 8, "seed": 4}
    whole = train(create(squares, name, labels=labels), squares, 5, **options)
    train(create(squares, name, labels=labels), squares, 2, out=tmp_path / "run", **options)
    assert uw.load(tmp_path / "run").step == 2
    resumed = train(create(squares, name, labels=labels), squares, 5, out=tmp_path / "run", **options)
    assert_same_weights(whole.method, resumed.method)
    again = train(create(squares, name, labels=labels), squares, 5, out=tmp_path / "run", **options)
    assert_same_weights(whole.method, again.method)

    loaded = uw.load(tmp_path / "run").method
    images = to_tensor(squares.images(np.arange(6)))
    with torch.no_grad():
        for found, expected in zip(loaded.encode(images), whole.method.encode(images), strict=True):
            torch.testing.assert_close(found, expected)
        if isinstance(loaded, uw.methods.EncodesWithLabels):
            u = torch.from_numpy(loaded.labels_for(squares).known(np.arange(6)))
            torch.testing.assert_close(loaded.encode(images, u).mean, whole.method.encode(images, u).mean)


@pytest.mark.parametrize(
    ("name", "labels"),
    [("full_vae", None), ("ivae", None), ("idvae", FEW | {"labelled": 64}), ("ss_idvae", FEW)],
)
def test_training_learns(squares, name, labels):
    run = train(
        create(squares, name, labels=labels), squares, 60, learning_rate=1e-3, batch_size=16, log_every=1
    )
    losses = [record["loss"] for record in run.records]
    assert np.mean(losses[-5:]) < 0.5 * losses[0]


def test_what_few_labels_teach_is_learned(squares):
    """q(u|x) of ss_ivae learns from 12 labelled images, though batches of 16 rarely hold one."""
    method = create(squares, "ss_ivae", labels=FEW)
    run = train(method, squares, 60, learning_rate=1e-3, batch_size=16, log_every=1)
    assert run.records[-1]["label_likelihood"] < 0.5 * run.records[0]["label_likelihood"]
    labels = method.labels_for(squares)
    rows = labels.subset.rows
    predicted = method.predictor.predict(to_tensor(squares.images(rows))).mode().detach().numpy()
    assert (predicted == labels.of(rows)).mean() > 0.9


def test_labels_of_ones_own_are_part_of_the_runs_identity(squares, tmp_path):
    own = np.linspace(0, 1, 64)
    train(create(squares, "ivae", labels=own), squares, 1, batch_size=4, out=tmp_path / "run")
    assert uw.load(tmp_path / "run").method.label_modes == ("given", "unknown")
    with pytest.raises(ArgumentError, match=r"labels.array is"):
        train(create(squares, "ivae", labels=own[::-1]), squares, 2, batch_size=4, out=tmp_path / "run")
    train(create(squares, "ivae", labels=own), squares, 2, batch_size=4, out=tmp_path / "run")
    with pytest.raises(ArgumentError, match=r"uw.load\(path, labels=array\)"):
        train(uw.load(tmp_path / "run").method, squares, 3, batch_size=4)


def test_the_error_for_a_lacking_array_names_what_was_asked(squares, tmp_path):
    run = train(
        create(squares, "ss_ivae", labels=np.linspace(0, 1, 64)),
        squares,
        1,
        batch_size=4,
        out=tmp_path / "run",
    )
    with pytest.raises(
        ArgumentError, match=r"labels = 'given': .*: take predicted, unknown; in Python uw.load"
    ):
        uw.evaluate(uw.load(tmp_path / "run"), squares, ["mcc"], labels="given")
    own = np.linspace(0, 1, 64)
    loaded = uw.load(tmp_path / "run", labels=own)
    own[:] = 0
    assert loaded.method.labels_for(squares).spec == run.spec.method.labels


def test_a_loaded_run_takes_its_array_again(squares, tmp_path):
    own = np.linspace(0, 1, 64)
    run = train(create(squares, "ivae", labels=own), squares, 1, batch_size=4, out=tmp_path / "run")
    loaded = uw.load(tmp_path / "run", labels=own).method
    options = {"metrics": ["mcc"], "labels": "given", "num_train": 50, "num_test": 20}
    score = uw.evaluate(uw.load(tmp_path / "run", labels=own), squares, **options)["mcc"]
    assert score.value == uw.evaluate(run.method, squares, **options)["mcc"].value
    np.testing.assert_array_equal(loaded.labels_for(squares).known([5, 6])[:, 0], own[[5, 6]].astype("f4"))
    with pytest.raises(ArgumentError, match="others than the method was created for"):
        uw.load(tmp_path / "run", labels=own[::-1]).method.labels_for(squares)
    train(create(squares, "ivae"), squares, 1, batch_size=4, out=tmp_path / "other")
    with pytest.raises(ArgumentError, match="did not learn from an array"):
        uw.load(tmp_path / "other", labels=own)


def test_an_array_belongs_to_the_rows_of_its_data(squares):
    method = create(squares, "ivae", labels=np.linspace(0, 1, 64))
    mirrored = uw.data.from_arrays(squares.images(np.arange(64))[:, ::-1], name=squares.name)
    with pytest.raises(ArgumentError, match="has other images"):
        uw.evaluate(method, mirrored, ["unsupervised"], labels="given")


def test_missing_labels_are_predicted_in_the_kl_too(squares):
    own = np.linspace(0, 1, 64)
    own[::3] = np.nan
    method = create(squares, "ss_ivae", labels=own)
    details = uw.evaluate(
        method, squares, ["unsupervised"], labels="given", params={"unsupervised": {"num_images": 30}}
    )["unsupervised"].details
    assert np.isfinite([details["kl"], details["elbo"]]).all()


def test_labels_are_in_the_spec_and_come_back(squares, tmp_path):
    method = create(squares, "vae", prior="label_vae", labels={"names": ["y"], "noise": 0.1, "bins": 4})
    spec = plan(method, squares, 5, 4, 1e-3, 0, "32-true")
    spec.write(tmp_path / "spec.yaml")
    found = RunSpec.read(tmp_path / "spec.yaml")
    assert found == spec
    assert found.identity == spec.identity
    written = yaml.safe_load((tmp_path / "spec.yaml").read_text())["method"]
    assert written["prior"] == {"name": "label_vae"}
    assert written["labels"]["columns"] == [{"name": "y", "size": 4, "one_hot": False}]


def test_data_with_other_labels_is_refused(squares):
    images = squares.images(np.arange(64))
    other = uw.data.from_arrays(images, {"y": np.repeat(np.arange(4), 16), "x": np.tile(np.arange(8), 8)})
    method = create(squares, "ivae")
    with pytest.raises(ArgumentError, match="others than the method was created for"):
        train(method, other, 1)
    with pytest.raises(ArgumentError, match="has no factors"):
        train(method, uw.data.from_arrays(images), 1)


def test_endless_simulators_have_labels_too():
    data = uw.data.from_function(["a"], [(0.0, 1.0)], lambda factors: np.repeat(factors, 5, axis=1))
    run = train(uw.methods.create("idvae", data, latent_size=2), data, 2, batch_size=4)
    assert np.isfinite(run.records[-1]["loss"])


# The names of runs that were trained before there were labels: they must be found again.
IDENTITIES = {
    "vae": "d880fc2a90a67427",
    "beta_vae": "c89466a77b00121a",
    "annealed_vae": "96455e95605caf9f",
    "factor_vae": "d9142d6636355359",
    "beta_tcvae": "59afc5c76cb6fb56",
    "dip_vae_i": "1750c343ee71a60a",
    "dip_vae_ii": "9606ea52adb34b23",
}


@pytest.mark.parametrize(("name", "identity"), IDENTITIES.items())
def test_runs_without_labels_keep_their_identity(squares, name, identity):
    spec = plan(create(squares, name), squares, 5, 16, 1e-3, 3, "32-true")
    assert spec.identity.startswith(identity)
    assert list(spec.as_dict()["method"]) == [
        "name",
        "image_shape",
        "dataset_size",
        "hyperparameters",
        "latent_size",
        "architecture",
        "reconstruction",
        "correlation",
        "capacity",
        "extra_terms",
    ]
    assert json.dumps(spec.as_dict())
