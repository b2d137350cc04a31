"""Disentanglement and completeness of an importance matrix (Eastwood and Williams, 2018)."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray

FLOOR = 1e-11  # added to every importance, as in disentanglement_lib: a row of zeros becomes uniform


def disentanglement(importances: FloatArray) -> float:
    """D = sum_i rho_i D_i, rho_i the share of code i in all importances; ``importances`` is (D codes, K factors).

    0 if all importances are 0, where rho is uniform.
    """
    return _weighted(disentanglement_per_code(importances), importances.sum(axis=1))


def completeness(importances: FloatArray) -> float:
    """C = sum_j rho_j C_j, rho_j the share of factor j in all importances; 0 if all importances are 0."""
    return _weighted(completeness_per_factor(importances), importances.sum(axis=0))


def disentanglement_per_code(importances: FloatArray) -> FloatArray:
    """D_i = 1 - H(P_i) in base K, P_ij = R_ij / sum_j R_ij, for importances R (D, K): shape (D,).

    1 for a code that serves one factor, 0 for one that serves all equally or none. With one factor every code
    serves only that: 1, also for a code that serves none (it has no weight in D).
    """
    return 1.0 - _relative_entropy(importances)


def completeness_per_factor(importances: FloatArray) -> FloatArray:
    """C_j = 1 - H(P_j) in base D, P_ij = R_ij / sum_i R_ij, for importances R (D, K): shape (K,).

    1 for a factor that one code serves, 0 for one that all serve equally or none does. 1 with a single code.
    """
    return 1.0 - _relative_entropy(importances.T)


def _relative_entropy(rows: FloatArray) -> FloatArray:
    """The entropy of each row, scaled to sum to 1, over that of a uniform row; 0 for rows of one entry."""
    if rows.shape[1] == 1:
        return np.zeros(len(rows))
    share = rows + FLOOR
    share = share / share.sum(axis=1, keepdims=True)
    entropy: FloatArray = -(share * np.log(share)).sum(axis=1) / np.log(rows.shape[1])
    return entropy


def _weighted(scores: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    return float(scores @ weights / total) if total > 0 else float(scores.mean())
