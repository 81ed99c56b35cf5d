"""Large sparse systems, descriptor systems and reduction within a band, against dense and plain systems."""

import numpy as np
import pytest
import scipy.sparse as sparse

from alembert import control
from alembert.control import Descriptor, LargeSystem, descriptor_of_second_order, frequency_limited_truncation
from alembert.errors import ArgumentError, NumericalError


def chain(n, damping=0.02):
    K = 100 * (2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    return np.eye(n) + 0.1 * np.diag(np.arange(n)) / n, damping * K + 0.1 * np.eye(n), K, np.eye(n)[:, :1]


def test_factors_of_low_rank_are_gramians():
    M, D, K, F = chain(30)
    large, plain = (
        LargeSystem.of_second_order(M, D, K, sparse.csc_array(F), sparse.csr_array(F.T)),
        control.SecondOrder(M, D, K, F, F.T).to_statespace(),
    )
    P, Q = control.gramians(plain)
    assert large.order == 60
    # the residual is 1e-10 of B B^T; the equation's condition, one over twice the slowest decay, is of the order of one
    Z = large.gramian().Z
    assert np.allclose(Z @ Z.T, P, atol=1e-7 * np.abs(P).max())
    # E stands on the other side of the dual equation: Q_large = E^-T Q E^-1
    Y = large.gramian("outputs").Z
    E = large.E.toarray()
    assert np.allclose(E.T @ Y @ Y.T @ E, Q, atol=1e-7 * np.abs(Q).max())


def test_reduction_of_a_plate_of_sparse_equations():
    """Heat in a plate of 900 points: the error at all frequencies tried lies below twice the sum of what was left out."""
    m = 30
    T = sparse.diags([-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1)], [-1, 0, 1]) * (m + 1) ** 2
    A = -(sparse.kron(T, sparse.identity(m)) + sparse.kron(sparse.identity(m), T))
    B, C = np.zeros((m * m, 1)), np.zeros((1, m * m))
    B[:m, 0], C[0, -m:] = 1, 1 / m
    plate = LargeSystem(A, B, C)
    found = plate.reduced(4)
    for w in (0.0, 10.0, 100.0, 1000.0):
        error = np.abs(plate.at(1j * w) - found.system.at(1j * w)).max()
        assert error <= found.estimate * (1 + 1e-3)
    dense = control.hankel_singular_values(control.StateSpace(A.toarray()[:, :], B, C)) if m < 10 else None
    assert dense is None
    assert found.system.is_stable
    with pytest.raises(ArgumentError, match=r"reduced: order is 0, expected 1 to"):
        plate.reduced(0)
    with pytest.raises(ArgumentError, match=r"gramian: kind is 'x', expected 'inputs' or 'outputs'"):
        plate.gramian("x")
    with pytest.raises(NumericalError, match=r"after 2 solves the residual is"):
        plate.gramian(most=2)


def test_large_refusals():
    with pytest.raises(ArgumentError, match=r"LargeSystem: A, E, B and C have shapes"):
        LargeSystem(np.eye(2), np.ones((3, 1)), np.ones((1, 2)))
    with pytest.raises(ArgumentError, match=r"LargeSystem: B has entries that are not finite"):
        LargeSystem(-np.eye(2), np.full((2, 1), np.nan), np.ones((1, 2)))
    assert LargeSystem(-np.eye(2), np.zeros((2, 1)), np.ones((1, 2))).gramian().solves == 0


def test_constrained_masses_are_one_mass():
    """Two masses that move together: index three, and the response of their sum."""
    bound = descriptor_of_second_order(
        np.eye(2), 0.1 * np.eye(2), np.diag([1.0, 2.0]), [[1.0], [0]], [[1.0, 0]], [[1, -1.0]]
    )
    one = control.tf([1], [2, 0.2, 3])
    assert bound.index == 3
    assert bound.is_proper
    assert np.allclose(bound.poles(), one.poles(), atol=1e-9)
    assert np.allclose(bound.at(0.3 + 0.4j), one.at(0.3 + 0.4j), rtol=1e-10)
    assert bound.hinf_norm().gain == pytest.approx(one.hinf_norm().gain, rel=1e-8)
    assert bound.h2_norm() == pytest.approx(one.h2_norm(), rel=1e-8)
    assert repr(bound) == "<Descriptor: 5 equations, shape (1, 1), index 3>"
    w = [0.3, 2.0]
    assert np.allclose(bound.frequency_response(w).response, one.frequency_response(w).response, rtol=1e-9)


def test_derivatives_of_inputs():
    """y = -u', as a chain of two infinite poles; and with a regular E nothing changes."""
    ideal = Descriptor([[0, 1.0], [0, 0]], np.eye(2), [[0], [1.0]], [[1.0, 0]])
    assert ideal.index == 2
    assert not ideal.is_proper
    assert np.allclose(ideal.frequency_response([2.0]).response, -2j)
    assert ideal.hinf_norm().gain == np.inf
    assert ideal.h2_norm() == np.inf
    with pytest.raises(
        ArgumentError, match=r"the system is not proper, its response grows with s\^1 \(index 2\)"
    ):
        ideal.to_statespace()
    plain = Descriptor(2 * np.eye(2), [[0, 2], [-2, -0.2]], [[0], [2.0]], [[1.0, 0.5]])
    assert plain.index == 0
    assert np.allclose(plain.zeros(), [-2.0])
    with pytest.raises(ArgumentError, match=r"zeros: the system has shape \(1, 2\)"):
        Descriptor(np.eye(1), -np.eye(1), [[1.0, 2.0]], [[1.0]]).zeros()
    with pytest.raises(ArgumentError, match=r"s E - A is singular for all s"):
        Descriptor(np.diag([1.0, 0]), np.diag([1.0, 0]), [[1.0], [0]], [[1.0, 0]])
    with pytest.raises(ArgumentError, match=r"Descriptor: dt is -1, expected seconds"):
        Descriptor(np.eye(1), -np.eye(1), [[1.0]], [[1.0]], dt=-1)


def test_reduction_within_a_band():
    """The mode within the band stays, though others have larger gains; over all frequencies it is plain truncation."""
    modes = [(1.0, 1.0), (10.0, 2.0), (50.0, 0.2)]
    G = sum(
        (control.tf([gain], [1, 0.04 * w, w * w]) * (w * w) for w, gain in modes[1:]),
        control.tf([1], [1, 0.04, 1]),
    )
    near = frequency_limited_truncation(G, 2, band=(30.0, 70.0))
    # the mode at 50 rad/s is what is left
    assert np.abs(near.system.poles().imag).max() == pytest.approx(50.0, rel=1e-2)
    far = frequency_limited_truncation(G, 4, band=(0.0, 1e7))
    assert np.allclose(far.singular_values, control.hankel_singular_values(G), rtol=1e-3)
    with pytest.raises(ArgumentError, match=r"band is \(3, 1\), expected \(low, high\)"):
        frequency_limited_truncation(G, 2, band=(3, 1))
    with pytest.raises(ArgumentError, match=r"is for continuous systems"):
        frequency_limited_truncation(G.sampled(0.01), 2, band=(0, 1))
