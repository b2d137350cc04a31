import pytest
import torch

from unweave.errors import ArgumentError
from unweave.networks.coupling import CouplingFlow, InvertibleBatchNorm


@pytest.fixture
def flow():
    torch.manual_seed(0)
    flow = CouplingFlow(5, 3, layers=4, hidden=(16, 16)).double()
    flow.train()
    for _ in range(20):  # running statistics away from their start
        flow(2 * torch.randn(64, 5, dtype=torch.float64) + 1, torch.randn(64, 3, dtype=torch.float64))
    return flow.eval()


@pytest.fixture
def points():
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(7, size, generator=generator, dtype=torch.float64) for size in (5, 3))


def test_the_inverse_takes_everything_back(flow, points):
    x, y = points
    noise, _ = flow(x, y)
    torch.testing.assert_close(flow.inverse(noise, y), x, rtol=0, atol=1e-10)
    again, _ = flow(flow.inverse(x, y), y)
    torch.testing.assert_close(again, x, rtol=0, atol=1e-10)


def test_the_inverse_in_single_precision():
    torch.manual_seed(0)
    flow = CouplingFlow(784, 784, layers=5, hidden=(64,)).eval()
    x, y = torch.randn(4, 784), torch.rand(4, 784)
    assert (flow.inverse(flow(x, y)[0], y) - x).abs().max() < 1e-5


def test_the_log_determinant_is_that_of_the_jacobian(flow, points):
    x, y = points
    _, log_determinant = flow(x, y)
    for i in range(len(x)):
        jacobian = torch.autograd.functional.jacobian(lambda v, i=i: flow(v[None], y[i : i + 1])[0][0], x[i])
        assert torch.linalg.slogdet(jacobian)[1].item() == pytest.approx(log_determinant[i].item(), abs=1e-9)


def test_a_flow_of_one_entry_integrates_to_one():
    torch.manual_seed(0)
    flow = CouplingFlow(1, 1, layers=2, hidden=(8,)).double().eval()
    grid = torch.linspace(-30, 30, 20_001, dtype=torch.float64)
    density = flow.log_density(grid[:, None], torch.ones(len(grid), 1, dtype=torch.float64)).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-6)


def test_entries_change_in_turn():
    flow = CouplingFlow(6, 2, layers=3, hidden=(4,))
    assert [c.changed.tolist() for c in flow.couplings] == [[0, 2, 4], [1, 3, 5], [0, 2, 4]]
    assert len(flow.norms) == 2


def test_batch_norm_normalises_in_training_and_is_fixed_in_evaluation():
    norm = InvertibleBatchNorm(3).double()
    x = 5 + 3 * torch.randn(200, 3, dtype=torch.float64)
    result, log_determinant = norm(x)
    torch.testing.assert_close(result.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(
        result.var(0, correction=0), torch.ones(3, dtype=torch.float64), atol=1e-5, rtol=0
    )
    expected = -0.5 * (x.var(0, correction=0) + 1e-5).log().sum()
    torch.testing.assert_close(log_determinant, expected.expand(200))
    norm.eval()
    torch.testing.assert_close(norm(x[:1])[0], norm(x)[0][:1])
    torch.testing.assert_close(norm.inverse(norm(x)[0]), x)


def test_a_trained_flow_knows_a_gaussian():
    """x | y ~ N(y, 0.5^2): the best log density is the Gaussian's own, -log(0.5) - 1/2 log(2 pi e) on average."""
    torch.manual_seed(0)
    flow = CouplingFlow(2, 2, layers=2, hidden=(16,))
    optimiser = torch.optim.Adam(flow.parameters(), 1e-2)
    for _ in range(300):
        y = torch.randn(256, 2)
        loss = -flow.log_density(y + 0.5 * torch.randn(256, 2), y).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    flow.eval()
    y = torch.randn(4000, 2)
    x = y + 0.5 * torch.randn(4000, 2)
    entropy = 2 * (torch.tensor(0.5).log() + 1.4189385)
    assert flow.log_density(x, y).mean().item() == pytest.approx(-entropy.item(), abs=0.1)


def test_sizes_are_checked():
    with pytest.raises(ArgumentError, match="size = 0: needs a whole number >= 1"):
        CouplingFlow(0, 2)
    with pytest.raises(ArgumentError, match="layers = 0"):
        CouplingFlow(2, 2, layers=0)
