import math

import pytest
import torch

from unweave.objectives.adversarial import critic_loss, generator_loss, gradient_penalty, real_fake_loss


def test_losses_by_their_formulas():
    real, fake = (
        torch.tensor([1.5, -0.3], dtype=torch.float64),
        torch.tensor([0.2, -2.0], dtype=torch.float64),
    )
    d_real, d_fake = real.sigmoid(), fake.sigmoid()
    expected = -0.5 * (d_real.log().mean() + (1 - d_fake).log().mean())
    torch.testing.assert_close(real_fake_loss(real, fake), expected)
    torch.testing.assert_close(generator_loss(fake), -d_fake.log().mean())
    torch.testing.assert_close(critic_loss(real, fake), fake.mean() - real.mean())


def test_losses_stay_finite_for_sure_discriminators():
    far = torch.tensor([1e4])
    assert real_fake_loss(far, -far) == 0
    assert generator_loss(-far) == pytest.approx(1e4)


def test_the_best_discriminator_knows_the_density_ratio():
    """Trained on two Gaussians, the logit is log N(x; 1, 1) - log N(x; 0, 1) = x - 1/2."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.zeros(2, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight], max_iter=50)
    real = 1 + torch.randn(20_000, generator=generator)
    fake = torch.randn(20_000, generator=generator)

    def loss():
        optimiser.zero_grad()
        value = real_fake_loss(weight[0] * real + weight[1], weight[0] * fake + weight[1])
        value.backward()
        return value

    optimiser.step(loss)
    assert weight.tolist() == pytest.approx([1, -0.5], abs=0.05)


def test_gradient_penalty_of_a_known_critic():
    """f(x) = a |x|^2 / 2 has the gradient a x, at points between real and generated images."""
    real, fake = torch.full((3, 1, 2, 2), 2.0), torch.full((3, 1, 2, 2), 2.0)
    penalty = gradient_penalty(lambda x: 0.75 * x.flatten(1).square().sum(1) / 2, real, fake)
    assert penalty.item() == pytest.approx((0.75 * math.sqrt(4 * 4) - 1) ** 2)


def test_gradient_penalty_draws_between_the_two_and_repeats_by_its_generator():
    real, fake = torch.ones(50, 1), torch.zeros(50, 1)
    seen = []

    def critic(x):
        seen.append(x.detach())
        return x.squeeze(1).square()

    values = [gradient_penalty(critic, real, fake, torch.Generator().manual_seed(1)).item() for _ in range(2)]
    assert values[0] == values[1]
    assert 0 <= seen[0].min() < 0.1
    assert 0.9 < seen[0].max() <= 1


def test_gradient_penalty_agrees_with_finite_differences():
    torch.manual_seed(0)
    critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    real, fake = torch.rand(2, 5, 4, dtype=torch.float64)
    penalty = gradient_penalty(lambda x: critic(x)[:, 0], real, fake, torch.Generator().manual_seed(3))
    share = torch.rand(5, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    between, step = share * real + (1 - share) * fake, 1e-5
    moves = step * torch.eye(4, dtype=torch.float64)
    with torch.no_grad():
        slopes = [(critic(between + move) - critic(between - move))[:, 0] / (2 * step) for move in moves]
    expected = ((torch.stack(slopes, 1).norm(dim=1) - 1) ** 2).mean()
    torch.testing.assert_close(penalty.detach(), expected, rtol=1e-7, atol=1e-9)


def test_gradient_penalty_trains_the_critic_and_nobody_else():
    weight = torch.tensor([2.0, 1.0], requires_grad=True)
    real = torch.randn(4, 2, requires_grad=True)
    fake = torch.randn(4, 2, requires_grad=True)
    gradient_penalty(lambda x: x @ weight, real, fake).backward()
    norm = weight.detach().norm()
    torch.testing.assert_close(weight.grad, 2 * (norm - 1) * weight.detach() / norm)
    assert real.grad is None
    assert fake.grad is None
