"""Images as values: the preprocessing of flows, and its volume."""

import math

import pytest
import torch

from unweave.errors import ArgumentError
from unweave.methods.flow.values import Values


def images(n=3):
    """Images whose pixels are bytes / 255."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (n, 1, 2, 3), generator=generator).float() / 255


def test_logits_are_those_of_the_paper():
    x, noise = images(), torch.rand(3, 6, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    unit = 1e-6 + (1 - 2e-6) * ((x.flatten(1).double() * 255).round() + noise) / 256
    expected = (unit / (1 - unit)).log()
    torch.testing.assert_close(
        Values((2, 3, 1)).of(x, torch.Generator().manual_seed(4)), expected, rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_the_way_back_gives_the_same_bytes(seed):
    x = torch.arange(256).float().reshape(1, 1, 16, 16) / 255
    values = Values((16, 16, 1))
    v = values.of(x, None if seed is None else torch.Generator().manual_seed(seed))
    assert torch.equal(values.to_images(v), x)
    torch.testing.assert_close(values.to_mean_images(values.of(x)), x, rtol=0, atol=1e-6)


def test_the_volume_is_that_of_the_jacobian():
    """dv/dk by differentiation of the map from pixels k in [0, 256)."""
    values = Values((2, 3, 1))
    k = (images(2).flatten(1).double() * 255 + 0.3).requires_grad_()
    v = torch.logit(1e-6 + (1 - 2e-6) * k / 256)
    (slope,) = torch.autograd.grad(v.sum(), k)
    torch.testing.assert_close(values.log_volume(v.detach()), slope.log().sum(1))


def test_a_uniform_density_of_bytes_has_eight_bits():
    """v of k uniform in [0, 256): the density of v is that of the logistic distribution, and bits are log2 256."""
    v = torch.linspace(-5, 5, 11, dtype=torch.float64)[:, None]
    logistic = -torch.nn.functional.softplus(v) - torch.nn.functional.softplus(-v)
    bits = -(logistic[:, 0] + Values((1, 1, 1)).log_volume(v)) / math.log(2)
    torch.testing.assert_close(bits, torch.full((11,), 8.0, dtype=torch.float64), rtol=0, atol=1e-5)


def test_vectors_stay_as_they_are():
    values, x = Values((3,)), torch.tensor([[-5.0, 0.0, 7.0]])
    assert torch.equal(values.of(x), x.double())
    assert torch.equal(values.to_images(values.of(x)), x)
    assert values.log_volume(x).tolist() == [0]


def test_bad_input():
    with pytest.raises(ArgumentError, match="preprocessing = 'logit': is for images"):
        Values((3,), "logit")
    with pytest.raises(ArgumentError, match=r"values from 0 to 2': the logit needs pixels in \[0, 1\]"):
        Values((1, 2, 1)).of(torch.tensor([[[[0.0, 2.0]]]]))
