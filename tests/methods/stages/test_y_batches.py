"""y of a row: computed once, kept, and the same whether it is kept or not."""

import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import ImageBatches, to_tensor
from unweave.data.storage.prepared import data_folder
from unweave.errors import ArgumentError
from unweave.methods.stages import y_batches
from unweave.methods.stages.y_batches import YBatch, YBatches

SHORT = {"batch_size": 8, "pictures": False, "log_every": 1}


@pytest.fixture
def data():
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28, 1)).astype(np.uint8)
    return uw.data.from_arrays(images, name="noise")


@pytest.fixture
def first(data):
    return uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, 2, 8)


@pytest.fixture
def create(data, first):
    def create(**settings):
        return uw.methods.create("ms_vae", data, first=first, latent_size=2, width=4, **settings)

    return create


@pytest.fixture
def computed(monkeypatch):
    """How many rows' y were computed."""
    counts = []
    compute = YBatches._compute

    def counted(self, images, which):
        counts.append(len(images))
        return compute(self, images, which)

    monkeypatch.setattr(YBatches, "_compute", counted)
    return counts


def weights(run):
    return torch.cat([value.flatten() for value in run.method.state_dict().values()])


def test_y_is_what_the_first_stage_makes_of_the_image(data, create):
    batch = create().batches(data).draw(step=0, batch_size=7, seed=1)
    assert isinstance(batch, YBatch)
    plain = ImageBatches(data).draw(step=0, batch_size=7, seed=1)
    assert torch.equal(batch.images, plain.images)
    assert batch.y.stride() == batch.images.stride()
    torch.testing.assert_close(batch.y, create().first.reconstruct(plain.images, "mean"))


def test_y_of_a_row_does_not_depend_on_the_batch(data, create):
    method = create(keep_y=False)
    seen = {}
    for step, size in enumerate((1, 7, 32, 33, 64)):
        batch = method.batches(data).draw(step, size, seed=1)
        for row, y in zip(batch.rows.tolist(), batch.y, strict=True):
            assert torch.equal(seen.setdefault(row, y), y)
    kept = create().batches(data).draw(0, 64, seed=1)
    for row, y in zip(kept.rows.tolist(), kept.y, strict=True):
        assert torch.equal(seen.setdefault(row, y), y)


@pytest.mark.parametrize("settings", [{}, {"y_from": "draw", "num_y": 3}])
def test_training_with_and_without_kept_y_is_the_same(data, create, settings):
    runs = [uw.train(create(keep_y=keep, **settings), data, 4, **SHORT) for keep in (True, False)]
    assert torch.equal(weights(runs[0]), weights(runs[1]))


def test_ms_gan_has_the_y_that_ms_vae_has_kept(data, create, first, computed):
    uw.train(create(), data, 15, **{**SHORT, "batch_size": 64})
    before = sum(computed)
    gc.collect()
    runs = []
    for keep in (True, False):
        gan = uw.methods.create("ms_gan", data, first=first, noise_size=2, width=4, keep_y=keep)
        runs.append(uw.train(gan, data, 4, **SHORT))
        assert sum(computed) == before + (0 if keep else 4 * 8)
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    drawn = uw.methods.create("ms_gan", data, first=first, noise_size=2, width=4, y_from="draw")
    assert not isinstance(drawn.batches(data).draw(0, 8, seed=1), YBatch)


def test_each_y_is_computed_once(data, create, computed):
    uw.train(create(), data, 15, **{**SHORT, "batch_size": 64})
    assert sum(computed) == len(data)  # 960 images were shown
    gc.collect()  # what a run has kept is there for others when its batches are gone
    uw.train(create(beta=2.0), data, 5, seed=3, **SHORT)  # shares the first stage
    assert sum(computed) == len(data)
    (folder,) = (data_folder() / "stages").iterdir()
    kept = np.load(folder / "rendered-v1" / "images.npy", mmap_mode="r")
    assert kept.shape == (40, 28, 28, 1)
    assert kept.dtype == np.float32


def test_y_of_another_first_stage_or_of_other_images_is_not_taken(data, create, computed):
    uw.train(create(), data, 1, **SHORT)
    other = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, 3, 8)
    uw.train(uw.methods.create("ms_vae", data, first=other, width=4), data, 1, **SHORT)
    images = data.images(np.arange(40)).copy()
    images[7] = 0
    changed = uw.data.from_arrays(images, name="noise")
    uw.train(create(), changed, 1, **SHORT)
    assert len(list((data_folder() / "stages").iterdir())) == 3
    assert len(computed) == 3


def test_too_many_bytes_are_not_kept(data, create, computed, monkeypatch):
    monkeypatch.setattr(y_batches, "LARGEST", 1000)
    uw.train(create(), data, 3, **SHORT)
    assert sum(computed) == 24
    assert not (data_folder() / "stages").exists()


def test_several_y_of_an_image_are_drawn_once(data, create, first):
    batches = create(y_from="draw", num_y=2).batches(data)
    seen = {}
    for step in range(20):
        batch = batches.draw(step, 64, seed=0)
        for row, y in zip(batch.rows.tolist(), batch.y, strict=True):
            seen.setdefault(row, set()).add(y.numpy().tobytes())
    assert {len(ys) for ys in seen.values()} == {2}
    posterior = first.method.encode(to_tensor(data.images(np.arange(40))))
    mean, log_variance = (part.detach() for part in posterior)
    drawn = np.stack([y_batches._noise(number, 3) for number in range(80)]).reshape(40, 2, 3)
    c = mean[:, None] + (log_variance / 2).exp()[:, None] * torch.from_numpy(drawn)
    with torch.no_grad():
        y = first.method.decode(c.flatten(0, 1))
    np.testing.assert_allclose(batches._compute_rows(np.arange(80)), y.permute(0, 2, 3, 1), atol=1e-5)


def test_the_noise_of_draws_is_standard_normal():
    noise = np.stack([y_batches._noise(number, 4) for number in range(2000)])
    assert abs(noise.mean()) < 0.04
    assert abs(noise.std() - 1) < 0.04
    assert abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.1
    assert abs(np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1]) < 0.1


def test_draws_anew_are_not_kept(data, create):
    assert not isinstance(create(y_from="draw").batches(data).draw(0, 4, seed=0), YBatch)
    uw.train(create(y_from="draw"), data, 2, **SHORT)
    assert not (data_folder() / "stages").exists()


def test_images_that_change_have_no_kept_y():
    def draw(factors, rng):
        return rng.integers(0, 256, (len(factors), 28, 28, 1)).astype(np.uint8)

    noisy = uw.data.from_function(["level"], [4], draw, stochastic=True, name="noisy")
    stage = uw.train(uw.methods.create("vae", noisy, latent_size=2), noisy, 1, 2)
    method = uw.methods.create("ms_vae", noisy, first=stage, width=4)
    assert not isinstance(method.batches(noisy).draw(0, 4, seed=0), YBatch)
    with pytest.raises(ArgumentError, match="num_y = 2"):
        uw.methods.create("ms_vae", noisy, first=stage, width=4, y_from="draw", num_y=2)


_SCRIPT = """
import os, signal, sys
import numpy as np
import unweave as uw
import unweave.training.ahead
from unweave.methods.stages.y_batches import YBatches

unweave.training.ahead.MOST = 1  # two steps are made before the third batch is drawn
images = np.random.default_rng(0).integers(0, 256, (40, 28, 28, 1)).astype(np.uint8)
data = uw.data.from_arrays(images, name="noise")
method = uw.methods.create("ms_vae", data, first=sys.argv[1], latent_size=2, width=4)
compute, calls = YBatches._compute, []
def dying(self, images, which):
    calls.append(0)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(self, images, which)
YBatches._compute = dying
uw.train(method, data, 9, 8, out=sys.argv[2], pictures=False, checkpoint_every=1)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits(data, tmp_path):
    plain = uw.methods.create("beta_vae", data, latent_size=3)
    uw.train(plain, data, 2, 8, out=tmp_path / "first", pictures=False)

    def create(**settings):
        return uw.methods.create("ms_vae", data, first=tmp_path / "first", latent_size=2, width=4, **settings)

    whole = uw.train(create(keep_y=False), data, 9, **SHORT)
    # As many threads as here: sums in another order differ in their last bits, which Adam makes visible.
    environment = {**os.environ, "UNWEAVE_DATA": str(data_folder()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _SCRIPT, tmp_path / "first", tmp_path / "run"]
    died = subprocess.run(command, env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    assert 0 < uw.load(tmp_path / "run").step < 9
    resumed = uw.train(create(), data, 9, **{**SHORT, "log_every": 100}, out=tmp_path / "run")
    torch.testing.assert_close(weights(whole), weights(resumed), rtol=1e-4, atol=1e-6)
