"""Weights, checkpoints and codes are those of the run beside them, byte for byte, or they are refused."""

import datetime
import json
import os
import shutil
import time
import warnings

import numpy as np
import pytest
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import unweave as uw
from unweave.errors import DamagedFileError, DataError
from unweave.training.history import append_record, read_history
from unweave.training.run import STATE, WEIGHTS
from unweave.training.spec import RunSpec


@pytest.fixture(scope="module")
def data():
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), np.uint8)
    return uw.data.from_arrays(
        images, {"a": np.repeat(np.arange(6), 10), "b": np.tile(np.arange(10), 6)}, name="small"
    )


def train(data, out, *, seed=0, steps=3, **options):
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp")
    return uw.train(method, data, steps, 4, seed=seed, out=out, pictures=False, **options)


@pytest.fixture
def run(data, tmp_path):
    return train(data, tmp_path / "run")


def flip(path, position=-5):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_the_same_tensors_have_the_same_bytes(data, tmp_path):
    files = [train(data, tmp_path / str(i)).path / WEIGHTS for i in range(4)]
    assert len({file.read_bytes() for file in files}) == 1


def test_any_reader_of_safetensors_reads_the_weights(run):
    with safe_open(run.path / WEIGHTS, "pt") as file:
        assert file.metadata()["identity"] == run.spec.identity
    for name, tensor in load_file(run.path / WEIGHTS).items():
        assert (tensor == run.method.state_dict()[name]).all()


@pytest.mark.parametrize("name", [WEIGHTS, STATE])
def test_weights_of_another_seed_are_refused(data, run, tmp_path, name):
    other = train(data, tmp_path / "other", seed=1)
    (run.path / WEIGHTS).unlink()
    shutil.copy(other.path / name, run.path / name)
    with pytest.raises(DamagedFileError, match=rf"{name}.*of another run than .*spec\.yaml"):
        uw.load(run.path)


@pytest.mark.parametrize("name", [WEIGHTS, STATE])
def test_a_changed_bit_is_refused(data, run, name):
    if name == STATE:
        (run.path / WEIGHTS).unlink()
    flip(run.path / name)
    with pytest.raises(DamagedFileError, match=f"{name}.*not the hash that was written"):
        uw.load(run.path)
    with pytest.raises(DamagedFileError, match=name):
        train(data, run.path, steps=3 if name == WEIGHTS else 5)


def test_files_of_earlier_versions_still_load(data, run):
    """Those had the step and the identity as their notes, and no hash."""
    for name in (WEIGHTS, STATE):
        notes = {"step": "3", "identity": run.spec.identity}
        save_file(load_file(run.path / name), run.path / name, notes)
    np.testing.assert_array_equal(uw.load(run.path).encode(data), run.encode(data))
    assert train(data, run.path, steps=5).step == 5


def test_weights_of_another_run_that_an_earlier_version_wrote_are_refused(data, run, tmp_path):
    other = train(data, tmp_path / "other", seed=1)
    notes = {"step": "3", "identity": other.spec.identity}
    save_file(load_file(other.path / WEIGHTS), run.path / WEIGHTS, notes)
    with pytest.raises(DamagedFileError, match="of another run"):
        uw.load(run.path)


def test_a_run_that_is_given_more_steps_is_the_same_run(data, run):
    longer = train(data, run.path, steps=6)
    assert longer.step == 6
    assert uw.load(run.path).step == 6


def test_the_versions_of_the_start_are_kept(data, run):
    text = (run.path / "spec.yaml").read_text()
    (run.path / "spec.yaml").write_text(text.replace(f"unweave: {uw.__version__}", "unweave: 0.0.1"))
    assert train(data, run.path, steps=5).spec.versions["unweave"] == "0.0.1"
    assert RunSpec.read(run.path / "spec.yaml").versions["unweave"] == "0.0.1"


# --- codes -----------------------------------------------------------------------------------------


def forge(run, checksums=False):
    """Put the factors in the place of the codes, as somebody would who wants a good score."""
    (folder,) = (run.path / "codes").glob("*/rendered-v1")
    images = np.load(folder / "images.npy", mmap_mode="r+")
    images[:, 0, 0] = np.repeat(np.arange(6), 10)
    images.flush()
    if checksums:  # and knows the checksums
        from unweave.data.storage.row_checksums import row_checksums

        rows = np.arange(60)
        identity = f"{folder.parent.name} {images.shape[1:]} {images.dtype.str}"
        np.load(folder / "checksums.npy", mmap_mode="r+")[:] = row_checksums(identity)(rows, np.array(images))


@pytest.mark.parametrize("checksums", [False, True])
def test_forged_codes_are_not_scored(data, run, checksums):
    right = uw.evaluate(run, data, "mig", num_train=500)["mig"].value
    forge(run, checksums)
    with pytest.warns(RuntimeWarning, match="not what was written|that this model does not give"):
        assert uw.evaluate(run, data, "mig", num_train=500)["mig"].value == right


def test_codes_that_were_kept_are_used_without_a_warning(data, run):
    uw.evaluate(run, data, "mig", num_train=500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uw.evaluate(uw.load(run.path), data, "mig", num_train=500)


@pytest.mark.parametrize("link", ["codes", "table", "images.npy"])
def test_evaluation_writes_through_no_link(data, run, tmp_path, link):
    uw.evaluate(run, data, "mig", num_train=500)
    (table,) = (run.path / "codes").iterdir()
    path = {"codes": table.parent, "table": table, "images.npy": table / "rendered-v1" / "images.npy"}[link]
    path.rename(tmp_path / "victim")
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(DataError, match="is a link"):
        uw.evaluate(run, data, "mig", num_train=500)


# --- directories of strangers ----------------------------------------------------------------------


def write_spec(run, **changes):
    values = yaml.safe_load((run.path / "spec.yaml").read_text())
    for name, value in changes.items():
        target, _, key = name.rpartition("__")
        (values[target] if target else values)[key] = value
    (run.path / "spec.yaml").write_text(yaml.safe_dump(values))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 10**30),
        ("steps", "many"),
        ("steps", [3]),
        ("batch_size", -1),
        ("seed", 10**25),
        ("learning_rate", {}),
        ("versions", "x"),
        ("imports", "x"),
        ("data", []),
        ("data", {"name": 3}),
        ("method", "vae"),
        ("method__latent_size", 10**15),
        ("method__latent_size", 60_000),
        ("method__latent_size", None),
        ("method__image_shape", [10**9, 10**9, 3]),
        ("method__image_shape", 8),
        ("method__image_shape", [4096, 4096, 1]),
        ("method__hyperparameters", [1]),
        ("method__extra_terms", [1]),
        ("method__name", {"a": 1}),
        ("method__name", "no_such_method"),
        ("method__reconstruction", []),
        ("method__architecture", 3),
        ("method__hyperparameters", None),
        ("method__name", "x" * 20_000),
        ("imports", ["x" * 20_000]),
        ("data__size", datetime.date(2024, 1, 1)),
        ("data__factors", b"x"),
    ],
)
def test_absurd_specs_are_one_clear_error_in_no_time(run, name, value):
    write_spec(run, **{name: value, **({"method__name": "my_own"} if name == "imports" else {})})
    start = time.monotonic()
    with pytest.raises(DataError, match=r"spec\.yaml|is not known here") as caught:
        uw.load(run.path)
    assert time.monotonic() - start < 5
    assert len(str(caught.value)) < 1000


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8), name="dark")
    first = {"method": "vae", "latent_size": 2}
    method = uw.methods.create("ms_vae", data, first=first, width=2)
    return uw.train(method, data, 1, 2, out=tmp_path_factory.mktemp("staged") / "run", pictures=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", 3),
        ("", []),
        ("", {}),
        ("", "run"),
        ("method", None),
        ("method", {}),
        ("method", {"name": "vae"}),
        ("method.name", ["vae"]),
        ("method.name", "no_such_method"),
        ("method.image_shape", [10**9, 10**9, 3]),
        ("method.latent_size", 10**15),
        ("method.hyperparameters", None),
        ("method.hyperparameters", {"first": 3}),
    ],
)
def test_absurd_specs_of_an_earlier_stage_are_one_clear_error(staged, tmp_path, name, value):
    shutil.copytree(staged.path, tmp_path / "run")
    values = yaml.safe_load((tmp_path / "run" / "spec.yaml").read_text())
    target, key = values["method"]["hyperparameters"], "first"
    for part in name.split(".") if name else ():
        target, key = target[key], part
    target[key] = value
    (tmp_path / "run" / "spec.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(DataError, match=r"spec\.yaml|is not known here") as caught:
        uw.load(tmp_path / "run")
    assert len(str(caught.value)) < 1000


def test_nothing_is_built_of_a_spec_without_weights(run):
    write_spec(run, method__image_shape=[8192, 8192, 1])
    for name in (WEIGHTS, STATE):
        (run.path / name).unlink()
    with pytest.raises(DataError, match="the run has no weights yet"):
        uw.load(run.path)


@pytest.mark.parametrize("name", [WEIGHTS, STATE])
def test_a_file_of_holes_is_not_read_into_memory(run, name):
    if name == STATE:
        (run.path / WEIGHTS).unlink()
    os.truncate(run.path / name, 1 << 40)
    with pytest.raises(DataError, match=f"{name}: has 1,099,511,627,776 bytes, more than"):
        uw.load(run.path)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_something_else_in_the_place_of_the_lock_is_one_clear_error(data, run, tmp_path, kind):
    (tmp_path / "victim").write_text("as it was")
    (run.path / ".lock").unlink(missing_ok=True)
    if kind == "link":
        (run.path / ".lock").symlink_to(tmp_path / "victim")
    else:
        (run.path / ".lock").mkdir()
    with pytest.raises(DataError, match=r"\.lock: cannot be locked"):
        train(data, run.path, steps=5)
    assert (tmp_path / "victim").read_text() == "as it was"


def test_a_spec_of_many_aliases_is_refused(run):
    lines = ["a0: &a0 [lol]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    with open(run.path / "spec.yaml", "a") as file:
        file.write("\n".join(lines))
    start = time.monotonic()
    with pytest.raises(DataError, match=r"spec\.yaml: not a run spec .*more than 100,000 values"):
        uw.load(run.path)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("name", ["spec.yaml", WEIGHTS, "history.jsonl"])
def test_a_fifo_in_the_place_of_a_file_is_refused(run, name):
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    with pytest.raises(DataError, match=f"{name}: is not a regular file"):
        uw.load(run.path)


# --- history ---------------------------------------------------------------------------------------


def test_a_history_with_damaged_lines_keeps_the_others(tmp_path):
    path = tmp_path / "history.jsonl"
    for step in range(1, 5):
        append_record(path, {"step": step, "loss": 0.5})
    lines = path.read_bytes().splitlines()
    lines[1] = b"\xff\xfe"
    path.write_bytes(b"\n".join(lines))
    with pytest.warns(RuntimeWarning, match=r"history\.jsonl: line 2 is no record; 1 such"):
        assert [record["step"] for record in read_history(path)] == [1, 3, 4]


@pytest.mark.parametrize(
    "line",
    [
        '{"step": -1}',
        '{"step": true}',
        '{"step": 1' + "0" * 30 + "}",
        '{"loss": 1}',
        "[]",
        "3",
        '{"step": "x"}',
        '{"step": 2, "loss": "a"}',
        "[" * 9999,
    ],
)
def test_lines_that_are_no_records_are_left_out(tmp_path, line):
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n" + line)
    assert read_history(path) == [{"step": 1, "loss": 2.0}]


# --- full disks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kilobytes", [200, 300, 400, 500, 600])
def test_a_full_disk_is_one_error_and_the_last_checkpoint_stays(data, small_disk, kilobytes):
    folder = small_disk(kilobytes)
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp")
    with open(folder / "other", "wb") as other:
        other.write(bytes((kilobytes - 200) << 10))
    with pytest.raises((DataError, OSError), match="No space left"):
        uw.train(method, data, 4, 4, out=folder / "run", pictures=False, checkpoint_every=1, log_every=1)
    if (folder / "run" / STATE).exists():
        uw.load(folder / "run")


def test_training_goes_on_to_the_same_bits_once_there_is_space(data, small_disk, tmp_path):
    folder = small_disk(200_000)
    method = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp")
    options = {"pictures": False, "checkpoint_every": 1, "log_every": 1}
    uw.train(method, data, 2, 4, out=folder / "run", **options)
    size = (folder / "run" / STATE).stat().st_size
    free = os.statvfs(folder)
    with open(folder / "other", "wb") as other:
        other.write(bytes(free.f_bavail * free.f_frsize - size // 2))
    again = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp")
    with pytest.raises(DataError, match="No space left"):
        uw.train(again, data, 4, 4, out=folder / "run", **options)
    (folder / "other").unlink()
    once_more = uw.methods.create("beta_vae", data, latent_size=3, architecture="mlp")
    resumed = uw.train(once_more, data, 4, 4, out=folder / "run", **options)
    straight = train(data, tmp_path / "straight", steps=4)
    assert (resumed.path / WEIGHTS).read_bytes() == (straight.path / WEIGHTS).read_bytes()
