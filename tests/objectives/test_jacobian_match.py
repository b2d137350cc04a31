"""Jacobian supervision: the terms against autograd's Jacobians and numpy's covariances."""

import numpy as np
import torch
from torch import nn

from unweave.objectives.jacobian_match import cross_covariance_norm, jacobian_match


def networks():
    """A student of (c, z) and a teacher of c, small and smooth, in double precision."""
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6)).double()
    teacher = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 6)).double()
    return student, teacher, torch.randn(4, 3).double(), torch.randn(4, 2).double()


def test_for_near_codes_it_is_the_difference_of_the_jacobians():
    student, teacher, c, z = networks()
    direction, step = torch.randn(4, 3).double(), 1e-5
    moved = c + step * direction
    loss = jacobian_match(
        student(torch.cat([c, z], 1)), student(torch.cat([moved, z], 1)), teacher(c), teacher(moved)
    )
    errors = []
    for row in range(4):
        of_student = torch.autograd.functional.jacobian(
            lambda codes, row=row: student(torch.cat([codes, z[row]])), c[row]
        )
        of_teacher = torch.autograd.functional.jacobian(teacher, c[row])
        errors.append(((of_student - of_teacher) @ direction[row]).square().mean())
    torch.testing.assert_close(loss / step**2, torch.stack(errors).mean(), rtol=1e-4, atol=0)


def test_a_student_with_the_teachers_jacobian_has_no_loss():
    _, teacher, c, z = networks()
    detail = nn.Linear(2, 6).double()
    moved = c.roll(1, 0)
    loss = jacobian_match(teacher(c) + detail(z), teacher(moved) + detail(z), teacher(c), teacher(moved))
    assert loss.item() < 1e-28


def test_its_gradient_agrees_with_finite_differences():
    student, teacher, c, z = networks()
    moved = c.roll(1, 0)

    def loss(weight):
        def images(codes):
            hidden = torch.tanh(torch.cat([codes, z], 1) @ weight.T + student[0].bias)
            return student[2](hidden)

        return jacobian_match(images(c), images(moved), teacher(c), teacher(moved))

    assert torch.autograd.gradcheck(loss, [student[0].weight])


def test_the_cross_covariance_is_numpys():
    _, _, c, z = networks()
    joint = np.cov(np.concatenate([c.numpy(), z.numpy()], axis=1).T, ddof=0)
    expected = np.sqrt((joint[:3, 3:] ** 2).sum())
    np.testing.assert_allclose(cross_covariance_norm(c, z).item(), expected)


def test_the_gradient_of_no_covariance_is_finite():
    c = torch.ones(4, 3, requires_grad=True)
    cross_covariance_norm(c, torch.randn(4, 2)).backward()
    assert torch.isfinite(c.grad).all()
