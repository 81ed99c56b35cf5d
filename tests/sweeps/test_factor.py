"""The small factorisation that the steps are written with."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import solve

from alembert.sweeps.dynamics import Factor


@pytest.mark.parametrize("n", range(1, 7))
def test_solves_positive_definite_systems(n):
    rng = np.random.default_rng(n)
    M, B = ca.SX.sym("M", n, n), ca.SX.sym("B", n, 4)
    f = ca.Function("f", [M, B], [Factor(M).solve(B)])
    for _ in range(20):
        root = rng.normal(size=(n, n))
        matrix, right = root @ root.T + 0.1 * np.eye(n), rng.normal(size=(n, 4))
        expected = solve(matrix, right, assume_a="pos")
        # L D L^T is backward stable for these: n^2 roundings times the condition number
        tolerance = 10 * n**2 * np.finfo(float).eps * np.linalg.cond(matrix) * np.abs(expected).max()
        np.testing.assert_allclose(f(matrix, right).full(), expected, rtol=0, atol=tolerance)


def test_reads_the_lower_triangle_only():
    """So that a step need not make its matrices symmetric to the last bit."""
    M, b = ca.SX.sym("M", 3, 3), ca.SX.sym("b", 3)
    f = ca.Function("f", [M, b], [Factor(M).solve(b)])
    matrix = np.array([[2.0, 0.0, 0.0], [0.5, 3.0, 0.0], [0.1, 0.2, 1.0]])
    full = np.tril(matrix) + np.tril(matrix, -1).T
    right = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f(matrix, right).full(), f(full, right).full())


def test_structural_zeros_stay():
    M = ca.diag(ca.SX.sym("d", 4))
    solution = Factor(M).solve(ca.sparsify(ca.SX.eye(4)))
    assert ca.sparsify(solution).nnz() == 4


def test_nothing_to_solve():
    assert Factor(ca.SX(0, 0)).solve(ca.SX(0, 6)).shape == (0, 6)
