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


def test_what_a_large_chain_is_told_to_do_can_be_done():
    """5000 masses, damped by 1e-5 of their stiffness: all modes matter, and the gramian is refused with another way."""
    n = 5000
    one, ends = sparse.identity(n, format="csc"), np.eye(n, 1)
    K = 100 * sparse.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1], format="csc")
    large = LargeSystem.of_second_order(one, 1e-5 * K, K, ends, ends.T)
    with pytest.raises(
        NumericalError, match=r"keep those of interest, `k, Phi = .*eigsh\(K, 50, M, sigma=0\)`"
    ):
        large.gramian(most=10)
    k, Phi = sparse.linalg.eigsh(K, 50, one, sigma=0)
    few = control.SecondOrder(
        np.eye(50), Phi.T @ (1e-5 * K) @ Phi, np.diag(k), Phi.T @ ends, ends.T @ Phi
    ).to_statespace()
    peak = few.hinf_norm()
    # the other 4950 modes add what they bend at rest, which is that of the whole less that of the few
    rest = large.at(0) - few.at(0)
    assert abs(large.at(1j * peak.frequency) - rest)[0, 0] == pytest.approx(peak.gain, rel=1e-3)


def test_large_refusals():
    with pytest.raises(ArgumentError, match=r"LargeSystem: B has shape"):
        LargeSystem(np.eye(2), np.ones((3, 1)), np.ones((1, 2)))
    with pytest.raises(ArgumentError, match=r"LargeSystem: B has entries that are not finite"):
        LargeSystem(-np.eye(2), np.full((2, 1), np.nan), np.ones((1, 2)))
    assert LargeSystem(-np.eye(2), np.zeros((2, 1)), np.ones((1, 2))).gramian().solves == 0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LargeSystem(np.eye(2), np.ones((2, 1)), np.ones((1, 2)), E=np.eye(3)), r"have shapes .* which do not fit"),
        (lambda: LargeSystem([[1j]], [[1.0]], [[1.0]]), "A is of type list, expected a sparse or dense matrix of real"),
        (lambda: LargeSystem([[np.inf]], [[1.0]], [[1.0]]), "A has entries that are not finite"),
        (lambda: LargeSystem.of_second_order(np.eye(2), np.eye(3), np.eye(2), [1, 0], [1, 0]), "M, D and K have shapes"),
        (lambda: LargeSystem(-np.eye(2), [1, 0], [1, 0]).reduced(1, tolerance=0), "gramian: tolerance is 0"),
        (lambda: LargeSystem(-np.eye(2), [1, 0], [1, 0]).gramian(most=0), "gramian: most is 0"),
        (lambda: LargeSystem(-np.eye(2), [1, 0], [0, 1]).reduced(1), "the inputs do not act on the outputs"),
    ],
)  # fmt: skip
def test_large_systems_that_are_none(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("A", "sentence"),
    [
        (
            np.diag([0.37, -2.0]),
            r"gramian: A - s E is singular at s = 0.37: the system is not stable, or E is singular",
        ),
        (np.array([[0.0, 1], [0, 0]]), "gramian: "),
    ],
)
def test_unstable_large_systems(A, sentence):
    with pytest.raises(NumericalError, match=sentence):
        LargeSystem(A, [1.0, 1], [1.0, 1]).reduced(1)


def test_points_of_a_large_response():
    G = LargeSystem(np.diag([-1.0, -2.0]), [1, 1], [1, 2], input_names="u", output_names="y")
    assert repr(G) == "<LargeSystem: 2 states, shape (1, 1)>"
    found = G.frequency_response([0.0, 1.0])
    np.testing.assert_allclose(found.response[:, 0, 0], [2.0, 1 / (1 + 1j) + 2 / (2 + 1j)])
    assert (found.input_names, found.output_names) == (("u",), ("y",))
    assert G.reduced(1).system.input_names == ("u",)
    with pytest.raises(NumericalError, match=r"at: A - s E is singular at s = -1: it is a pole"):
        G.at(-1)
    with pytest.raises(
        ArgumentError, match=r"lqr: plant is of type LargeSystem.*reduced\(order\).system is one"
    ):
        control.lqr(G, 1.0)


def test_many_weakly_damped_modes():
    """60 masses, damping ratios from 1e-6 on: with two dozen shifts at once 600 solves left a fifth of the residual."""
    M, _, K, F = chain(60)
    large = LargeSystem.of_second_order(M, 1e-6 * K, K, F, F.T)
    assert large.gramian().solves < 200
    # all modes but those above 19 rad/s: the others are more than 1 rad/s away, 1e3 of their widths
    found, plain = large.reduced(40), control.SecondOrder(M, 1e-6 * K, K, F, F.T)
    w = np.array([0.0, 1.0, 3.0])
    error = np.abs(found.system.frequency_response(w).response - plain.frequency_response(w).response).max()
    assert error <= found.estimate


def test_states_below_the_accuracy_of_gramians():
    """A chain with slow motions: its small singular values are rounding, and the error is seen, not summed up."""
    n = 150
    K = sparse.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1]) * 1e4
    F, C = np.eye(n)[:, :1], np.eye(n)[20:21]
    large = LargeSystem.of_second_order(sparse.identity(n), 2 * sparse.identity(n) + 5e-3 * K, K, F, C)
    found = large.reduced(30, tolerance=1e-6)
    assert 2 * found.singular_values[30:].sum() < found.estimate
    for w in (0.0, 0.3, 10.0):
        error = np.abs(large.at(1j * w) - found.system.at(1j * w)).max()
        assert error <= 2 * found.estimate  # seen at frequencies nearby
    with pytest.raises(
        NumericalError, match=r"reduced: with \d+ states the result is not stable: singular values of"
    ):
        for order in (15, 40):  # one of them, by rounding
            large.reduced(order, tolerance=1e-4)


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


@pytest.mark.parametrize(("length", "stiffness"), [(1e-6, 3.0), (1e9, 3.0), (1.0, 3e9), (1e3, 1e-8)])
def test_units_of_descriptor_systems_do_not_matter(length, stiffness):
    """The two masses with lengths, and time by the stiffness, in other units."""
    M, D, K = (np.diag(x) / length for x in ([1.0, 2], [0.1, 0], [stiffness, 0]))
    bound = descriptor_of_second_order(M, D, K, [[1.0], [0]], [[1.0, 0]], [[1, -1.0]])
    s = 1.3j * np.sqrt(stiffness / 3)
    assert (bound.index, bound.to_statespace().order) == (3, 2)
    # 1e-16 times a condition of 1e4 between positions and reactions
    assert bound.to_statespace().at(s) == pytest.approx(length / (3 * s * s + 0.1 * s + stiffness), rel=1e-10)


def test_hidden_states_in_any_units():
    """Equations and unknowns mixed, and in units up to 2^20 apart: orders and responses of the parts they were made of."""
    rng = np.random.default_rng(4)
    for n1, n2 in ((1, 2), (3, 3), (5, 2)):
        n = n1 + n2
        T, W = rng.standard_normal((2, n, n))
        E, A = np.zeros((n, n)), np.eye(n)
        E[:n1, :n1], A[:n1, :n1] = np.eye(n1), rng.standard_normal((n1, n1))
        E[n1:, n1:] = np.eye(n2, k=1)
        E, A, B, C = T @ E @ W, T @ A @ W, rng.standard_normal((n, 1)), rng.standard_normal((1, n))
        rows, columns = 2.0 ** rng.integers(-20, 20, (2, n))
        both = rows[:, None] * columns
        G = Descriptor(both * E, both * A, rows[:, None] * B, C * columns, input_names="u", output_names="y")
        assert len(G.poles()) == n1
        found = G.frequency_response([1.3])
        expected = C @ np.linalg.solve(1.3j * E - A, B.astype(complex))
        np.testing.assert_allclose(found.response[0], expected, rtol=1e-9)  # 1e-16 times conditions up to 1e5
        assert (found.input_names, found.output_names) == (("u",), ("y",))


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
