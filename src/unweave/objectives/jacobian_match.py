"""Jacobian supervision (Lezama 2019): a student's images vary with its codes c as those of a teacher do."""

from __future__ import annotations

from torch import Tensor


def jacobian_match(student: Tensor, student_moved: Tensor, teacher: Tensor, teacher_moved: Tensor) -> Tensor:
    """Mean squared difference of how the images of a student and of a teacher change when codes c_i become c_j.

        mean |(S(c_j, z_i) - S(c_i, z_i)) - (T(c_j) - T(c_i))|^2

    To first order that is |(J_S - J_T) (c_j - c_i)|^2, with the Jacobians of the images by c: for all pairs of codes
    it is 0 only where these are equal. The mean is over images and pixels.

    Parameters
    ----------
    student, student_moved
        S(c_i, z_i) and S(c_j, z_i), (n, …).
    teacher, teacher_moved
        T(c_i) and T(c_j), alike.

    Examples
    --------
    >>> import torch
    >>> image, change = torch.rand(2, 1, 4, 4), torch.rand(2, 1, 4, 4)
    >>> jacobian_match(image, image + change, torch.zeros_like(image), change).item() < 1e-12
    True
    """
    difference = (student_moved - student) - (teacher_moved - teacher)
    return difference.square().mean()


def cross_covariance_norm(c: Tensor, z: Tensor) -> Tensor:
    """Frobenius norm of the covariances of c (n, C) with z (n, Z) in a batch: 0 if none is linear in the other.

        |1/n sum_i (c_i - mean c) (z_i - mean z)^T|

    Examples
    --------
    >>> import torch
    >>> c = torch.tensor([[1.0], [-1.0]])
    >>> cross_covariance_norm(c, 2 * c), cross_covariance_norm(c, torch.ones(2, 1))
    (tensor(2.), tensor(0.))
    """
    covariance = (c - c.mean(0)).T @ (z - z.mean(0)) / len(c)
    norm: Tensor = covariance.norm()
    return norm
