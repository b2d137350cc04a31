import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch.autograd import gradcheck, gradgradcheck

from unweave.errors import ArgumentError
from unweave.objectives.reconstruction import bernoulli, gaussian, laplace, squared_error

LOSSES = [bernoulli, gaussian, laplace, squared_error]
SHAPES = [(4,), (3, 5), (2, 3, 4, 5), (2, 2, 3, 4, 2)]


def pair(shape, spread=3.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    prediction = spread * torch.randn(shape, generator=generator, dtype=torch.float64)
    return prediction, torch.rand(shape, generator=generator, dtype=torch.float64)


def per_sample(array):
    return array.reshape(len(array), -1).sum(1)


@pytest.mark.parametrize("shape", SHAPES)
def test_bernoulli_agrees_with_torch_in_value_and_gradient(shape):
    logits, images = pair(shape)
    before = logits.clone(), images.clone()
    ours, theirs = logits.requires_grad_(), logits.detach().clone().requires_grad_()
    reference = F.binary_cross_entropy_with_logits(theirs, images, reduction="sum") / shape[0]
    loss = bernoulli(ours, images)
    torch.testing.assert_close(loss, reference, rtol=1e-13, atol=0)
    (3 * loss).backward()
    (3 * reference).backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12, atol=1e-14)
    assert torch.equal(ours, before[0])  # neither argument is changed
    assert torch.equal(images, before[1])


def test_bernoulli_is_the_likelihood_of_binary_pixels():
    logits, images = pair((3, 2, 4))
    binary = images.round()
    expected = -stats.bernoulli.logpmf(binary.numpy(), 1 / (1 + np.exp(-logits.numpy())))
    np.testing.assert_allclose(bernoulli(logits, binary, "none").numpy(), per_sample(expected), rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_bernoulli_survives_extreme_logits(dtype, reduction):
    logits = torch.tensor([[200.0, -200.0], [200.0, -200.0], [22.0, -22.0]], dtype=dtype, requires_grad=True)
    images = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.25]], dtype=dtype)
    loss = bernoulli(logits, images, reduction)
    tolerance = 1e-14 if dtype == torch.float64 else 1e-7
    exact = torch.tensor([0.0, 400.0, 11.0 + 5.5 + 2 * np.log1p(np.exp(-22))], dtype=dtype)
    torch.testing.assert_close(
        loss, exact.mean() if reduction == "mean" else exact, rtol=tolerance, atol=1e-12
    )
    loss.sum().backward()
    gradient = torch.tensor([[0.0, 0.0], [1.0, -1.0], [0.5, -0.25]], dtype=dtype)
    torch.testing.assert_close(
        logits.grad, gradient / (3 if reduction == "mean" else 1), rtol=1e-6, atol=1e-7
    )


def test_bernoulli_keeps_its_digits_when_a_decoder_is_confident():
    generator = torch.Generator().manual_seed(1)
    images = (torch.rand(64, 1, 64, 64, generator=generator) < 0.05).float()
    logits = 15 * (2 * images - 1) + torch.randn(images.shape, generator=generator)
    logits[:, :, ::16, ::16] *= -1
    exact = F.binary_cross_entropy_with_logits(logits.double(), images.double(), reduction="sum") / 64
    torch.testing.assert_close(bernoulli(logits, images).double(), exact, rtol=2e-6, atol=0)


@pytest.mark.parametrize("layouts", ["both", "logits", "images"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_channels_last_changes_nothing(layouts, reduction):
    logits, images = pair((2, 3, 4, 5))
    expected = bernoulli(logits, images, reduction)
    if layouts in ("both", "logits"):
        logits = logits.contiguous(memory_format=torch.channels_last)
    if layouts in ("both", "images"):
        images = images.contiguous(memory_format=torch.channels_last)
    logits.requires_grad_()
    loss = bernoulli(logits, images, reduction)
    torch.testing.assert_close(loss, expected, rtol=1e-13, atol=0)
    loss.sum().backward()
    scale = 2 if reduction == "mean" else 1
    torch.testing.assert_close(logits.grad, (torch.sigmoid(logits) - images).detach() / scale)
    assert logits.grad.stride() == logits.stride()


def test_mean_bernoulli_saves_its_inputs_and_nothing_else():
    logits, images = (x.contiguous(memory_format=torch.channels_last) for x in pair((2, 3, 4, 5)))
    logits.requires_grad_()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x.data_ptr()) or x, lambda x: x):
        bernoulli(logits, images)
    assert sorted(set(saved)) == sorted({logits.data_ptr(), images.data_ptr()})


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_bernoulli_has_the_right_second_derivatives(reduction):
    inputs = [x.requires_grad_() for x in pair((2, 3))]
    assert gradgradcheck(lambda *x: bernoulli(*x, reduction), inputs)


def test_a_gradient_penalty_through_a_decoder_sees_the_curvature_of_bernoulli():
    _, images = pair((4, 3))
    weight, z = pair((2, 3), seed=1)[0], pair((4, 2), seed=2)[0].requires_grad_()

    def penalty(loss):
        leaf = weight.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(z @ leaf), z, create_graph=True)
        slope.square().sum().backward()
        return leaf.grad

    expected = penalty(lambda x: F.binary_cross_entropy_with_logits(x, images, reduction="sum") / 4)
    torch.testing.assert_close(penalty(lambda x: bernoulli(x, images)), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_gaussian_is_the_full_negative_log_likelihood(shape):
    mean, images = pair(shape)
    log_variance = -0.7
    expected = -stats.norm.logpdf(images.numpy(), mean.numpy(), np.exp(log_variance / 2))
    np.testing.assert_allclose(gaussian(mean, images, log_variance, "none").numpy(), per_sample(expected))
    assert gaussian(mean, images, log_variance).item() == pytest.approx(per_sample(expected).mean())
    learned = torch.tensor(log_variance)  # float32: a parameter may be of another type than the images
    torch.testing.assert_close(gaussian(mean, images, learned), gaussian(mean, images, learned.item()))


@pytest.mark.parametrize("shape", SHAPES)
def test_laplace_is_the_full_negative_log_likelihood(shape):
    location, images = pair(shape)
    expected = -stats.laplace.logpdf(images.numpy(), location.numpy(), np.exp(0.4))
    np.testing.assert_allclose(laplace(location, images, 0.4, "none").numpy(), per_sample(expected))
    assert laplace(location, images, 0.4).item() == pytest.approx(per_sample(expected).mean())


@pytest.mark.parametrize("shape", [(3, 1, 1), (4, 5), (1,), (2, 1, 1, 1), (2, 3, 4, 5)])
def test_scale_parameters_broadcast_over_pixels(shape):
    prediction, images = pair((2, 3, 4, 5))
    parameter = pair(shape, seed=5)[0] / 3
    whole = np.broadcast_to(parameter.numpy(), images.shape)
    expected = -stats.norm.logpdf(images.numpy(), prediction.numpy(), np.exp(whole / 2))
    np.testing.assert_allclose(gaussian(prediction, images, parameter, "none"), per_sample(expected))
    expected = -stats.laplace.logpdf(images.numpy(), prediction.numpy(), np.exp(whole))
    np.testing.assert_allclose(laplace(prediction, images, parameter, "none"), per_sample(expected))


def test_squared_error_sums_over_pixels_and_averages_over_samples():
    prediction, images = pair((2, 3, 4))
    expected = per_sample((prediction.numpy() - images.numpy()) ** 2)
    np.testing.assert_allclose(squared_error(prediction, images, "none").numpy(), expected)
    assert squared_error(prediction, images).item() == pytest.approx(expected.mean())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_type_is_kept_and_mixed_types_become_the_wider(loss, dtype):
    prediction, images = pair((2, 3))
    assert loss(prediction.to(dtype), images.to(dtype)).dtype == dtype
    assert loss(prediction.to(dtype), images).dtype == torch.float64
    leaf = prediction.float().requires_grad_()
    loss(leaf, images).backward()
    assert leaf.grad.dtype == torch.float32


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradients_reach_prediction_and_images(loss, reduction):
    inputs = [x.requires_grad_() for x in pair((2, 3))]
    assert gradcheck(lambda a, b: loss(a, b, reduction=reduction), inputs)


@pytest.mark.parametrize("loss", [gaussian, laplace])
def test_gradients_reach_a_learned_scale(loss):
    scale = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda scale: loss(*pair((2, 3)), scale), [scale])


@pytest.mark.parametrize("loss", LOSSES)
def test_bad_arguments_are_refused(loss):
    with pytest.raises(ArgumentError, match="images"):
        loss(torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4))
    with pytest.raises(ArgumentError, match="images"):
        loss(torch.zeros(0, 3), torch.zeros(0, 3))
    with pytest.raises(ArgumentError, match="floating"):
        loss(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.uint8))
    with pytest.raises(ArgumentError, match="reduction"):
        loss(torch.zeros(2, 3), torch.zeros(2, 3), reduction="sum")


@pytest.mark.parametrize("loss", [gaussian, laplace])
def test_a_scale_that_would_enlarge_the_images_is_refused(loss):
    for images, scale in [((2, 3), (5, 2, 3)), ((2, 3), (2,)), ((2, 1), (2, 3))]:
        with pytest.raises(ArgumentError, match="broadcast"):
            loss(torch.zeros(images), torch.zeros(images), torch.zeros(scale))
