import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation import RepresentationTable


@pytest.fixture
def data():
    images = np.random.default_rng(0).integers(0, 256, (60, 32, 32, 1), dtype=np.uint8)
    return uw.data.from_arrays(
        images, {"a": np.repeat(np.arange(6), 10), "b": np.tile(np.arange(10), 6)}, name="small"
    )


@pytest.fixture
def run(data, tmp_path):
    method = uw.methods.create("beta_vae", data, latent_size=3)
    return uw.train(method, data, steps=2, batch_size=4, out=tmp_path / "run", pictures=False)


def test_codes_are_the_encoders(data, run):
    table = RepresentationTable(run, data)
    rows = np.array([5, 59, 5, 0])
    with torch.inference_mode():
        mean, log_variance = run.method.encode(uw.data.batches.to_tensor(data.images(rows)))
    np.testing.assert_allclose(table.codes(rows), mean.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(table.posterior(rows)[:, 1], log_variance.numpy(), rtol=1e-5, atol=1e-6)


def test_images_of_another_shape_are_refused(run):
    coloured = uw.data.from_arrays(np.zeros((4, 32, 32, 3), np.uint8), {"a": np.arange(4)}, name="coloured")
    told = r"data = 'coloured': has images \(32, 32, 3\), the method is for \(32, 32, 1\)"
    with pytest.raises(ArgumentError, match=told):
        RepresentationTable(run, coloured)
    with pytest.raises(ArgumentError, match=told):
        uw.evaluate(run.method, coloured)


def test_each_image_is_encoded_at_most_once(data, run):
    table = RepresentationTable(run, data)
    for rows in ([3, 3, 7], [7, 8], np.arange(60), [0, 59]):
        table.codes(np.asarray(rows))
    assert table.encoded == 60


def test_a_code_does_not_depend_on_its_companions(data, run):
    alone = RepresentationTable(run.method, data)
    together = RepresentationTable(run.method, data)
    everything = together.codes(np.arange(60))
    for row in (0, 31, 59):
        np.testing.assert_array_equal(alone.codes(np.array([row]))[0], everything[row])


def test_the_table_of_a_run_lies_on_disk_and_is_used_again(data, run):
    first = RepresentationTable(run, data)
    codes = first.codes(np.arange(40))
    first.flush()
    again = RepresentationTable(run, data)
    np.testing.assert_array_equal(again.codes(np.arange(40)), codes)
    assert again.encoded == 0
    assert list((run.path / "codes").iterdir())


def test_other_weights_have_another_table(data, run):
    before = RepresentationTable(run, data).codes(np.arange(5))
    with torch.no_grad():
        for parameter in run.method.encoder.parameters():
            parameter.add_(0.1)
    table = RepresentationTable(run, data)
    assert not np.allclose(table.codes(np.arange(5)), before)
    assert table.encoded == 5


def test_any_function_from_images_to_codes_will_do(data):
    table = RepresentationTable(lambda images: images[:, 0, :2, 0], data)
    np.testing.assert_array_equal(table.codes(np.array([4, 9])), data.images([4, 9])[:, 0, :2, 0])
    with pytest.raises(ArgumentError, match="needs a run, a method, or a function"):
        RepresentationTable("codes.npz", data)
    with pytest.raises(ArgumentError, match=r"gave uint8 of shape \(2, 32, 32, 1\)"):
        RepresentationTable(lambda images: images, data)


def test_noise_is_drawn_for_every_code(data):
    noisy = data.with_parts(noise=lambda images, rng: rng.integers(0, 256, images.shape, dtype=np.uint8))
    table = RepresentationTable(lambda images: images[:, 0, :2, 0], noisy)
    rng = np.random.default_rng(0)
    assert (table.codes(np.array([3, 3, 3]), rng) != table.codes(np.array([3, 3, 3]), rng)).any()
    same = [table.codes(np.array([3]), np.random.default_rng(5)) for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_weights_that_change_later_do_not_reach_the_table(data, run):
    table = RepresentationTable(run, data)
    first = table.codes(np.arange(5))
    before = {name: value.clone() for name, value in run.method.state_dict().items()}
    with torch.no_grad():
        for parameter in run.method.encoder.parameters():
            parameter.add_(0.1)
    later = table.codes(np.arange(10))
    table.flush()
    np.testing.assert_array_equal(later[:5], first)
    run.method.load_state_dict(before)
    on_disk = RepresentationTable(run, data)
    np.testing.assert_array_equal(on_disk.codes(np.arange(10)), later)
    assert on_disk.encoded == 0
    np.testing.assert_array_equal(RepresentationTable(run.method, data).codes(np.arange(10)), later)


@pytest.mark.parametrize("name", ["beta_vae", "ivae"])
def test_the_method_itself_is_left_as_it_was(data, name):
    method = uw.methods.create(name, data, latent_size=3).train()
    convolution = next(m for m in method.encoder.modules() if isinstance(m, torch.nn.Conv2d))
    strides = convolution.weight.stride()
    table = RepresentationTable(method, data)
    table.codes(np.arange(3))
    assert all(module.training for module in method.modules())
    assert all(parameter.requires_grad for parameter in method.encoder.parameters())
    assert convolution.weight.stride() == strides
    assert table.method is not method


def test_where_the_table_cannot_be_written_it_is_in_memory(data, run):
    (run.path / "codes").write_text("in the way")
    table = RepresentationTable(run, data)
    with pytest.warns(RuntimeWarning, match="codes are kept in memory only"):
        codes = table.codes(np.arange(40))
    for rows in ([3, 3, 7], np.arange(60), [0, 59]):
        table.codes(np.asarray(rows))
    assert table.encoded == 60
    np.testing.assert_array_equal(table.codes(np.arange(40)), codes)
    table.flush()


def test_a_disk_that_fills_up_loses_no_codes(data, run, monkeypatch):
    table = RepresentationTable(run, data)
    codes = table.codes(np.arange(20))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unweave.data.storage.lazy._Cache.store", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        everything = table.codes(np.arange(60))
    np.testing.assert_array_equal(everything[:20], codes)
    table.codes(np.arange(60))
    assert table.encoded == 20 + 40 + 40  # those that could not be written are encoded again


def test_a_function_sees_each_image_at_most_once(data):
    seen = []

    def encode(images):
        seen.extend(images[:, 0, :4, 0].tobytes()[4 * i : 4 * i + 4] for i in range(len(images)))
        return images[:, 0, :2, 0]

    table = RepresentationTable(encode, data)
    for rows in ([5, 5], np.arange(60), [0]):
        table.codes(np.asarray(rows))
    assert len(seen) == len(set(seen)) == table.encoded == 60


def test_a_method_encodes_only_what_is_asked_for(data, run):
    table = RepresentationTable(run.method, data)
    assert table.encoded == 0
    table.codes(np.array([8]))
    assert table.encoded == 1


def test_the_codes_of_a_function_keep_their_precision(data):
    exact = 1e6 + np.random.default_rng(1).normal(size=(60, 2))
    places = {image.tobytes(): row for row, image in enumerate(data.images(np.arange(60)))}

    def lookup(images):
        return exact[[places[image.tobytes()] for image in images]]

    np.testing.assert_array_equal(RepresentationTable(lookup, data).codes(np.arange(60)), exact)
    halved = RepresentationTable(lambda images: lookup(images).astype(np.float32), data).codes(np.arange(60))
    assert halved.dtype == np.float32
    with pytest.raises(ArgumentError, match="needs numbers"):
        RepresentationTable(lambda images: lookup(images) + 1j, data)
