import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.distributions import Categorical, Normal

from unweave.errors import ArgumentError
from unweave.objectives import (
    categorical_entropy,
    gaussian_entropy,
    gumbel_noise,
    match_loss,
    straight_through,
)


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_match_is_the_cross_entropy_of_sigmoid_codes_with_labels():
    codes, labels = draw(5, 4), torch.rand(5, 3, dtype=torch.float64)
    p = 1 / (1 + torch.exp(-codes[:, :3]))
    expected = -(labels * p.log() + (1 - labels) * (1 - p).log()).sum(1).mean()
    torch.testing.assert_close(match_loss(codes, labels), expected)


def test_unknown_labels_have_no_part_in_the_match():
    codes = draw(2, 2).requires_grad_()
    labels = torch.tensor([[0.25, math.nan], [math.nan, math.nan]], dtype=torch.float64)
    p = torch.sigmoid(codes[0, 0])
    expected = -(0.25 * p.log() + 0.75 * (1 - p).log()) / 2
    loss = match_loss(codes, labels)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert codes.grad[0, 0] != 0
    assert (codes.grad.flatten()[1:] == 0).all()


def test_a_match_needs_a_code_for_each_label():
    with pytest.raises(ArgumentError, match=r"labels = \(5, 3\)"):
        match_loss(draw(5, 2), draw(5, 3))
    with pytest.raises(ArgumentError, match="labels"):
        match_loss(draw(5, 2), draw(4, 2))


def test_entropies_agree_with_torch():
    logits = 3 * draw(6, 4)
    torch.testing.assert_close(categorical_entropy(logits), Categorical(logits=logits).entropy())
    torch.testing.assert_close(gaussian_entropy(logits), Normal(0.0, (logits / 2).exp()).entropy())
    assert categorical_entropy(torch.zeros(1, 5)).item() == pytest.approx(math.log(5))
    assert categorical_entropy(torch.tensor([[0.0, -1e9]])).item() == 0
    assert gradcheck(categorical_entropy, logits.requires_grad_())


def test_draws_are_one_hot_and_distributed_as_the_softmax():
    logits = torch.tensor([1.0, 0.0, -1.0, 0.5]).expand(40_000, 4)
    noise = gumbel_noise(logits, torch.Generator().manual_seed(0))
    drawn = straight_through(logits, noise, 0.5)
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert (drawn.sum(1) == 1).all()
    probability = torch.softmax(logits[0], 0)
    error = 5 * (probability * (1 - probability) / len(logits)).sqrt()
    assert ((drawn.mean(0) - probability).abs() < error).all()


def test_draws_have_the_gradient_of_the_relaxed_ones():
    logits, weights = draw(3, 4).requires_grad_(), draw(3, 4, seed=1)
    noise = gumbel_noise(logits, torch.Generator().manual_seed(0))
    (straight_through(logits, noise, 0.7) * weights).sum().backward()
    relaxed = logits.detach().clone().requires_grad_()
    exponentials = ((relaxed + noise) / 0.7).exp()
    (exponentials / exponentials.sum(1, keepdim=True) * weights).sum().backward()
    torch.testing.assert_close(logits.grad, relaxed.grad)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_must_be_positive(temperature):
    with pytest.raises(ArgumentError, match="temperature"):
        straight_through(draw(2, 2), draw(2, 2), temperature)
