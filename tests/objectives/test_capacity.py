import pytest
import torch
from torch.autograd import gradcheck

from unweave.errors import ArgumentError
from unweave.objectives.capacity import capacity_penalty, linear_capacity


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (1, 0.00025), (50_000, 12.5), (100_000, 25.0), (300_000, 25.0)]
)
def test_capacity_grows_linearly_and_then_stays(step, expected):
    assert linear_capacity(step, c_max=25.0, steps=100_000) == pytest.approx(expected)


def test_the_penalty_is_of_the_batch_mean():
    kl = torch.tensor([10.0, 30.0], dtype=torch.float64)
    penalty = capacity_penalty(kl.mean(), 20.0)
    assert penalty.item() == 0
    assert (kl - 20).abs().mean() == 10  # what a penalty per sample would have been


def test_a_kl_per_sample_is_refused():
    for shape in [(2,), (1,), (2, 3)]:
        with pytest.raises(ArgumentError, match="batch mean"):
            capacity_penalty(torch.ones(shape), 20.0)


@pytest.mark.parametrize(("kl", "sign"), [(30.0, 1), (10.0, -1)])
def test_all_samples_are_pushed_the_same_way(kl, sign):
    samples = torch.tensor([kl, 25.0, kl], dtype=torch.float64, requires_grad=True)
    penalty = capacity_penalty(samples.mean(), 20.0)
    assert penalty.item() == pytest.approx(abs(samples.mean().item() - 20))
    penalty.backward()
    torch.testing.assert_close(samples.grad, torch.full((3,), sign / 3, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_type_is_kept(dtype):
    assert capacity_penalty(torch.tensor(3.0, dtype=dtype), 5.0).dtype == dtype


def test_gradient():
    kl = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda kl: capacity_penalty(kl, 5.0), [kl])


def test_bad_arguments_are_refused():
    with pytest.raises(ArgumentError, match="step"):
        linear_capacity(-1, 25.0, 10)
    with pytest.raises(ArgumentError, match="steps"):
        linear_capacity(1, 25.0, 0)
    with pytest.raises(ArgumentError, match="c_max"):
        linear_capacity(1, -1.0, 10)
