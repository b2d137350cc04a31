"""Direct convolutions are torch's, computed anew in double precision; where they do not fit, torch's are taken."""

from __future__ import annotations

import copy
import itertools
import os

import pytest
import torch
import torch.nn.functional as F

import unweave as uw
from unweave.networks import ConvReLU, ConvTransposeOut, ConvTransposeReLU, accelerate, direct_conv, fast_conv

SIZES = [(2, 2), (4, 4), (2, 8), (6, 10), (8, 16), (16, 4), (32, 32)]


@pytest.fixture(autouse=True)
def on_any_processor(monkeypatch):
    """The compiler cuts the registers into smaller ones where there are no such large ones."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(fast_conv, "has_registers", lambda: True)
    yield
    torch.set_num_threads(threads)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def exact(layer, x, gradient=None):
    """Values and gradients of a layer by torch in double precision, with a ReLU that is off where the layer's own is.

    A value within rounding of zero would else turn it on in one of the two.
    """
    precise = copy.deepcopy(layer).double()
    x_precise = x.detach().double().requires_grad_()
    convolve = F.conv2d if isinstance(layer, ConvReLU) else F.conv_transpose2d
    y = convolve(x_precise, precise.weight, precise.bias, stride=2, padding=1)
    if not isinstance(layer, ConvTransposeOut):
        y = y * (layer(x.detach()) > 0)
    gradient = torch.ones_like(y) if gradient is None else gradient.double()
    return [y, *torch.autograd.grad(y, [x_precise, precise.weight, precise.bias], gradient)]


def fast(layer, x, gradient=None):
    x = x.detach().requires_grad_(layer.in_channels >= 32)
    y = layer(x)
    wanted = [*([x] if x.requires_grad else []), layer.weight, layer.bias]
    gradient = torch.ones_like(y) if gradient is None else gradient
    gradients = torch.autograd.grad(y, wanted, gradient)
    return [y, *([None] if not x.requires_grad else []), *gradients]


def assert_same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        if a is not None:
            assert a.shape == b.shape
            largest = float(b.detach().abs().max()) if b.numel() else 1.0
            torch.testing.assert_close(a.double(), b, rtol=0, atol=5e-6 * max(1.0, largest))


def layers(*channels):
    for index, (kind, inputs, outputs) in enumerate(channels):
        layer = accelerate(kind(inputs, outputs))
        generator = torch.Generator().manual_seed(index)
        torch.nn.init.normal_(layer.weight, std=(16 * inputs) ** -0.5, generator=generator)
        torch.nn.init.normal_(layer.bias, std=0.3, generator=generator)
        yield layer


LAYERS = list(
    layers(
        *(
            (ConvReLU, inputs, outputs)
            for inputs, outputs in [(1, 32), (3, 64), (32, 32), (32, 64), (64, 32)]
        ),
        *((ConvTransposeReLU, inputs, outputs) for inputs, outputs in [(32, 32), (64, 32), (32, 96)]),
        *((ConvTransposeOut, inputs, outputs) for inputs, outputs in [(32, 1), (64, 3), (32, 4)]),
    )
)


@pytest.fixture
def calls(monkeypatch):
    """How often each direct convolution was called."""
    counts = {}

    def counted(name, function):
        def call(*arguments):
            counts[name] = counts.get(name, 0) + 1
            return function(*arguments)

        return call

    for name in (
        "conv",
        "conv_transpose",
        "conv_transpose_to_image",
        "conv_gradients",
        "conv_transpose_gradients",
    ):
        monkeypatch.setattr(direct_conv, name, counted(name, getattr(direct_conv, name)))
    return counts


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_values_and_gradients(layer, size, calls):
    height, width = size
    if isinstance(layer, ConvReLU):
        height, width = 2 * height, 2 * width
    x = random(3, layer.in_channels, height, width)
    gradient = random(*layer(x).shape, seed=1)
    calls.clear()
    ours = fast(layer, x, gradient)
    assert sum(calls.values()) == 2  # forward and back
    assert_same(ours, exact(layer, x, gradient))


@pytest.mark.parametrize("batch", [0, 1, 7, 64])
def test_any_batch(batch):
    for layer in LAYERS[2], LAYERS[5], LAYERS[8]:
        x = random(batch, 32, 8, 8)
        assert_same(fast(layer, x), exact(layer, x))


def test_any_layout_of_images_weights_and_gradients():
    for layer in copy.deepcopy([LAYERS[3], LAYERS[6], LAYERS[9], LAYERS[1]]):
        x = random(4, 2 * layer.in_channels, 8, 9)[::2, ::2, :, 1:]
        expected = exact(layer, x)
        for form in (torch.channels_last, torch.contiguous_format):
            layer.weight.data = layer.weight.data.contiguous(memory_format=form)
            assert_same(fast(layer, x), expected)
        one = torch.ones(())
        assert_same(fast(layer, x, one.expand(layer(x).shape)), expected)
        assert one.item() == 1


@pytest.mark.parametrize("wanted", list(itertools.product([False, True], repeat=3))[1:], ids=str)
def test_only_what_is_wanted_is_computed(wanted, monkeypatch):
    results = []

    def kept(function):
        def call(*arguments):
            results.append(function(*arguments))
            return results[-1]

        return call

    for name in ("conv_gradients", "conv_transpose_gradients"):
        monkeypatch.setattr(direct_conv, name, kept(getattr(direct_conv, name)))
    for layer in copy.deepcopy([LAYERS[2], LAYERS[5], LAYERS[8]]):
        x = random(2, 32, 8, 8)
        expected = exact(layer, x)[1:]
        tensors = [x, layer.weight, layer.bias]
        for tensor, is_wanted in zip(tensors, wanted, strict=True):
            tensor.requires_grad_(is_wanted)
        inputs = [tensor for tensor in tensors if tensor.requires_grad]
        ours = torch.autograd.grad(layer(x).sum(), inputs)
        assert_same(ours, [value for value, is_wanted in zip(expected, wanted, strict=True) if is_wanted])
    # The bias of the last layer is added by torch.
    parts = [wanted, wanted, (*wanted[:2], False)]
    assert [tuple(value is not None for value in result) for result in results] == [
        part for part in parts if any(part)
    ]


def test_what_is_not_a_number_stays_so():
    layer = LAYERS[2]
    x = random(2, 32, 8, 8)
    x[1, 0, 0, 0] = torch.nan
    y = layer(x)
    assert y[0].isfinite().all()
    assert y[1, :, 0, 0].isnan().all()
    assert y[1, :, 2:].isfinite().all()


def test_second_derivatives_are_those_of_torch():
    for layer in LAYERS[3], LAYERS[6], LAYERS[9]:
        results = []
        for dtype in (torch.float32, torch.float64):
            one = copy.deepcopy(layer).to(dtype)
            x = random(2, layer.in_channels, 4, 4).to(dtype).requires_grad_()
            (gradient,) = torch.autograd.grad(one(x).square().sum(), x, create_graph=True)
            results.append(torch.autograd.grad(gradient.square().sum(), [x, one.weight]))
        for a, b in zip(*results, strict=True):
            assert (a.double() - b).norm() <= 1e-5 * b.norm()


def test_a_gradient_for_the_image():
    layer = LAYERS[1]
    x = random(2, 3, 8, 8).requires_grad_()
    (ours,) = torch.autograd.grad(layer(x).sum(), x)
    torch.testing.assert_close(ours.double(), exact(layer, x)[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "layer", [ConvReLU(32, 40), ConvReLU(5, 32), ConvReLU(32, 32, 2), ConvTransposeReLU(40, 32)], ids=str
)
def test_other_channels_and_kernels_take_torchs(layer, calls):
    layer(random(2, layer.in_channels, 8, 8))
    accelerate(layer)(random(2, layer.in_channels, 8, 8))
    assert calls == {}


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_share_a_batch(threads, calls, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    torch.set_num_threads(threads)
    for layer in LAYERS[0], LAYERS[2], LAYERS[5], LAYERS[8]:
        for batch in 0, 2, 16:
            x = random(batch, layer.in_channels, 8, 8)
            calls.clear()
            ours, again = fast(layer, x), fast(layer, x)
            assert sum(calls.values()) == 4
            assert_same(ours, exact(layer, x))
            for a, b in zip(ours, again, strict=True):  # whichever thread is first
                assert a is b or torch.equal(a, b)


def test_a_forked_process_has_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    torch.set_num_threads(2)
    LAYERS[2](random(4, 32, 8, 8))
    assert direct_conv._pool(os.getpid(), 2) is not direct_conv._pool(os.getpid() + 1, 2)


def test_odd_sizes_spinning_threads_double_precision_and_other_processors_take_torchs(calls, monkeypatch):
    conv, transpose, _ = LAYERS[2], LAYERS[5], LAYERS[8]
    conv(random(1, 32, 6, 8))
    transpose(random(1, 32, 3, 4))
    copy.deepcopy(conv).double()(random(1, 32, 8, 8).double())
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    torch.set_num_threads(2)
    for layer in LAYERS[2], LAYERS[5], LAYERS[8]:
        layer(random(1, 32, 8, 8))
    torch.set_num_threads(1)
    monkeypatch.setattr(fast_conv, "has_registers", lambda: False)
    for layer in LAYERS[2], LAYERS[5], LAYERS[8]:
        layer(random(1, 32, 8, 8))
    assert calls == {}


def test_a_step_of_the_papers_networks_is_direct_throughout(calls):
    data = uw.data.load("dsprites", image_size=32)
    uw.train(uw.methods.create("vae", data), data, steps=1, batch_size=4, device="cpu")
    assert calls == {
        "conv": 4,
        "conv_transpose": 3,
        "conv_transpose_to_image": 1,
        "conv_gradients": 4,
        "conv_transpose_gradients": 4,
    }


def test_other_channels_than_the_weights_are_refused():
    for layer, channels in (LAYERS[0], 3), (LAYERS[1], 1), (LAYERS[2], 64), (LAYERS[5], 64), (LAYERS[8], 64):
        with pytest.raises(RuntimeError):
            layer(random(2, channels, 8, 8))


def test_torchs_defaults_change_nothing():
    for layer in LAYERS[2], LAYERS[5], LAYERS[8]:
        x = random(2, 32, 8, 8)
        expected = fast(layer, x)
        torch.set_default_dtype(torch.float64)
        try:
            with torch.device("meta"):
                y = layer(x)
            gradient = torch.autograd.grad(y, layer.weight, torch.ones_like(y))[0]
        finally:
            torch.set_default_dtype(torch.float32)
        assert torch.equal(y, expected[0])
        assert torch.equal(gradient, expected[2])


def test_saved_tensors_may_come_back_in_another_layout():
    for layer in LAYERS[2], LAYERS[5], LAYERS[8]:
        x = random(2, 32, 8, 8).requires_grad_()
        expected = torch.autograd.grad(layer(x).square().sum(), [x, layer.weight])
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda tensor: tensor.clone(memory_format=torch.contiguous_format), lambda tensor: tensor):
            y = layer(x)
        for a, b in zip(torch.autograd.grad(y, [x, layer.weight], 2 * y.detach()), expected, strict=True):
            torch.testing.assert_close(a, b)


def test_fake_tensors_and_gradients_in_batches_take_torchs(calls):
    from torch._subclasses.fake_tensor import FakeTensorMode

    for layer in LAYERS[2], LAYERS[5]:
        fake = FakeTensorMode(allow_non_fake_inputs=True).from_tensor(random(2, 32, 8, 8))
        assert layer(fake).shape[:2] == (2, 32)
        assert calls == {}
        x = random(2, 32, 8, 8).requires_grad_()
        y = layer(x)
        several = random(3, *y.shape)
        (batched,) = torch.autograd.grad(y, x, several, is_grads_batched=True, retain_graph=True)
        for a, gradient in zip(batched, several, strict=True):
            torch.testing.assert_close(
                a, torch.autograd.grad(y, x, gradient, retain_graph=True)[0], atol=1e-5, rtol=0
            )
        calls.clear()


def test_results_can_be_changed_in_place():
    for layer in copy.deepcopy([LAYERS[2], LAYERS[5]]):
        y = layer.requires_grad_(False)(random(2, 32, 8, 8))
        y.add_(torch.zeros((), requires_grad=True)).sum().backward()


def test_gradients_that_are_not_numbers_stay_so():
    for layer in LAYERS[2], LAYERS[5]:
        one = copy.deepcopy(layer)
        one.bias.data[1] = torch.nan
        x = random(1, 32, 4, 4).requires_grad_()
        (gradient,) = torch.autograd.grad(one(x).sum(), one.bias)
        size = one(x)[0, 0].numel()
        assert gradient[1] == size  # as torch: a mask is false only where y <= 0


def test_any_layout_of_a_bias():
    layer = copy.deepcopy(LAYERS[2])
    x, expected = random(2, 32, 8, 8), LAYERS[2](random(2, 32, 8, 8))
    layer.bias.data = torch.stack([layer.bias.data, torch.zeros(32)], 1)[:, 0]
    assert torch.equal(layer(x), expected)
