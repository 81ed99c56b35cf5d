"""Structured singular values, their peak, margins of several loops and D-K iteration."""

from fractions import Fraction

import numpy as np
import pytest
import scipy
from control_helpers import random_system

from alembert.control import (
    DeltaBlock,
    StateSpace,
    append,
    disk_margins,
    dksyn,
    feedback,
    hinf,
    hinf_norm,
    hinfsyn,
    lft,
    linf_norm,
    mu,
    mu_peak,
    mu_response,
    multiloop_disk_margin,
    series,
    stability_margin,
    static,
    tf,
    worst_case_gain,
)
from alembert.control.hinf import fitted_magnitude
from alembert.control.mu_proof import Proof
from alembert.control.mu_upper import Scalings
from alembert.errors import ArgumentError, NumericalError
from alembert.verify.control_plants import distillation, himat

SCALAR = DeltaBlock("complex")


def slicot_matrix():
    rows = [
        [-1 + 6j, 2 - 3j, 3 + 8j, 3 + 8j, -5 - 9j, -6 + 2j],
        [4 + 2j, -2 + 5j, -6 - 7j, -4 + 11j, 8 - 7j, 12 - 1j],
        [5 - 4j, -4 - 8j, 1 - 3j, -6 + 14j, 2 - 5j, 4 + 16j],
    ]
    return np.array(rows * 2), [DeltaBlock("real"), DeltaBlock("real"), DeltaBlock("full", 2), SCALAR, SCALAR]


def morton():
    """Packard and Doyle (1993), after Morton: four complex numbers, mu below its bound."""
    al, be = 3 + np.sqrt(3), np.sqrt(3) - 1
    a, b, d, f = np.sqrt(2 / al), 1 / np.sqrt(al), -np.sqrt(be / al), (1 + 1j) / np.sqrt(al * be)
    U = np.array([[a, 0], [b, b], [b, 1j * b], [d, f]])
    V = np.array([[0, a], [b, -b], [b, -1j * b], [-1j * f, -d]])
    return U @ V.conj().T


def test_mixed_bound_of_slicot():
    """AB13MD prints 0.4174753408D+02."""
    M, blocks = slicot_matrix()
    found = mu(M, blocks)
    assert found.upper == pytest.approx(41.74753408, rel=1e-9)
    assert found.lower == pytest.approx(41.74753408, rel=1e-6)
    _check_bounds(M, blocks, found)


def test_gap_between_mu_and_its_bound():
    M = morton()
    found = mu(M, [SCALAR] * 4)
    assert found.upper == pytest.approx(1.0, abs=1e-9)
    assert found.lower == pytest.approx(0.8723592394, abs=1e-8)
    _check_bounds(M, [SCALAR] * 4, found)


def _check_bounds(M, blocks, found):
    """D and G prove the upper bound, Delta has the structure and makes 1 - M Delta singular."""
    cross = found.G @ M
    F = (
        (1.0000001 * found.upper) ** 2 * found.D_right
        - M.conj().T @ found.D_left @ M
        - 1j * (cross - cross.conj().T)
    )
    assert np.linalg.eigvalsh(F)[0] > -1e-9 * np.linalg.norm(F)
    assert np.linalg.eigvalsh(found.D_right)[0] > 0
    delta = found.delta
    assert np.linalg.norm(delta, 2) == pytest.approx(1 / found.lower, rel=1e-9)
    assert np.linalg.svd(np.eye(len(M)) - M @ delta, compute_uv=False)[-1] < 1e-8
    row = column = 0
    rest = delta.copy()
    for block in blocks:
        part = delta[row : row + block.rows, column : column + block.columns]
        rest[row : row + block.rows, column : column + block.columns] = 0
        if block.kind != "full":
            np.testing.assert_allclose(part, part[0, 0] * np.eye(block.rows), atol=1e-12)
        if block.kind == "real":
            assert np.abs(part.imag).max() < 1e-12
        row, column = row + block.rows, column + block.columns
    assert not np.any(rest)


@pytest.mark.parametrize(
    "blocks",
    [
        [SCALAR] * 3,
        [DeltaBlock("full", 2), SCALAR],
        [DeltaBlock("full", 1, 2), DeltaBlock("full", 2, 1)],
        [DeltaBlock("complex", 2), SCALAR],
    ],
)
def test_bounds_are_tight_for_two_and_three_blocks(blocks):
    """The complex bound is exact for 2 s + f <= 3 (s repeated, f full blocks; Packard and Doyle 1993)."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        M = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
        found = mu(M, blocks)
        _check_bounds(M, blocks, found)
        assert found.lower == pytest.approx(found.upper, rel=1e-5)


def test_extreme_structures():
    """One full block is the largest singular value, one repeated number the spectral radius."""
    rng = np.random.default_rng(1)
    M = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    assert mu(M, [DeltaBlock("full", 3)]).upper == pytest.approx(np.linalg.norm(M, 2))
    radius = np.abs(np.linalg.eigvals(M)).max()
    found = mu(M, [DeltaBlock("complex", 3)])
    assert found.upper == pytest.approx(radius, rel=1e-3)  # the infimum over D is approached, not reached
    assert found.lower == pytest.approx(radius, rel=1e-9)
    real = rng.normal(size=(3, 3))
    values = np.linalg.eigvals(real)
    largest = np.abs(values[np.abs(values.imag) < 1e-12].real).max()
    assert mu(real, [DeltaBlock("real", 3)]).upper >= largest * (1 - 1e-9)


def test_satellite():
    """Loop at a time all is well; a few per cent in both loops break it (MATLAB's page on diskmargin: 0.9051, 1.1049)."""
    G = StateSpace([[0, 10], [-10, 0]], np.eye(2), [[1, 10], [-10, 1]])
    for one in disk_margins(G):
        assert one.margin == pytest.approx(2.0, rel=1e-9)
        assert one.gain == np.inf
        assert one.gain_down == 0.0
    both = multiloop_disk_margin(G)
    assert both.margin == pytest.approx(0.0997512, abs=6e-8)
    assert 1 / both.margin == pytest.approx(10.0249378, abs=6e-7)
    assert both.frequency == pytest.approx(0.0499, abs=6e-5)
    assert both.gain_down == pytest.approx(0.9049876, abs=6e-8)
    assert both.gain == pytest.approx(1.1049876, abs=6e-8)
    assert both.phase_deg == pytest.approx(5.710593, abs=6e-7)
    assert both.guaranteed <= both.margin


def test_diagonal_perturbations_of_chiang_and_safonov():
    """K_m = 2 where singular values promise 1/12."""
    across = np.polyadd(np.polymul([4, 0], [1, 8]), np.polymul([8, 0], [1, 4]))
    G = tf([[[4], 0], [across, [8]]], [[[1, 4], 1], [[1, 12, 32], [1, 8]]])
    T = G * feedback(static(np.eye(2)), G)
    assert linf_norm(T).gain == pytest.approx(12.0, rel=1e-9)
    found = mu_peak(T, [SCALAR] * 2)
    assert 1 / found.peak == pytest.approx(2.0, rel=1e-9)
    assert found.upper == pytest.approx(0.5, rel=1.1e-3)


def test_distillation():
    """Inverse-based control of the column: NP 0.5, RS 0.53, RP 5.77 in the book; RS has a closed form."""
    gains, P = distillation()
    blocks = [SCALAR, SCALAR, DeltaBlock("full", 2)]
    K = series(static(np.linalg.inv(gains)), append(*[0.7 * tf([75, 1], [1, 0])] * 2))
    M = lft(P, K).minimal(tolerance=1e-9)
    assert hinf_norm(M[2:, 2:]).gain == pytest.approx(0.5, abs=1e-8)
    assert mu_peak(M[:2, :2], blocks[:2]).peak == pytest.approx(0.5261584824, abs=1e-9)
    found = mu_peak(M, blocks)
    assert found.peak == pytest.approx(5.7818282, abs=6e-7)
    assert found.frequency == pytest.approx(1.4635, abs=6e-5)
    assert found.peak <= found.upper <= 1.0011 * found.peak
    assert found.lower == pytest.approx(found.peak, rel=1e-5)
    # the destabilising perturbation, realised at that frequency, gives the loop a pole there
    value = M.frequency_response(found.frequency).response[0]
    assert abs(np.linalg.det(np.eye(4) - value @ found.delta)) < 1e-6


def test_hinf_and_mu_of_the_distillation_column():
    _, P = distillation()
    found = hinfsyn(P, controls=2, measurements=2, tolerance=1e-8, backoff=1e-6)
    assert found.upper == pytest.approx(1.1797779, rel=1e-6)
    peak = mu_peak(found.closed_loop, [SCALAR, SCALAR, DeltaBlock("full", 2)], tolerance=3e-3)
    assert peak.peak == pytest.approx(1.17955, rel=3e-4)


def test_d_k_iteration_lowers_mu():
    """The H-infinity controller has mu 1.18; one step of D-K gets below 1.05 (the best known controller has 0.974)."""
    _, P = distillation()
    found = dksyn(
        P,
        [SCALAR, SCALAR, DeltaBlock("full", 2)],
        controls=2,
        measurements=2,
        iterations=2,
        frequency=np.geomspace(1e-4, 100, 30),
        tolerance=5e-3,
    )
    assert found.history[0] == pytest.approx(1.18, abs=1e-2)
    assert found.peak.peak < 1.05
    assert found.closed_loop.is_stable


def free_satellite():
    """A hub free to turn with two lightly damped modes of its panels, the stiffness of the first known to 25 %; torque and
    angle, w = (stiffness, disturbance, noise), z = (strain, angle, torque)."""
    M = np.array([[100.0, 6, 2], [6, 1, 0], [2, 0, 1]])
    stiff, damping = np.diag([0, 1.44, 16.0]), np.diag([0, 0.0072, 0.024])
    force = np.array([[0, 0.05, 0, 1], [-1, 0, 0, 0], [0, 0, 0, 0]])
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.linalg.solve(M, stiff), -np.linalg.solve(M, damping)]])
    B = np.vstack([np.zeros((3, 4)), np.linalg.solve(M, force)])
    C, D = np.zeros((4, 6)), np.zeros((4, 4))
    C[0, 1], C[1, 0], C[3, 0] = 0.36, 100, 1
    D[2, 3], D[3, 2] = 0.02, 1e-3
    return StateSpace(A, B, C, D), [DeltaBlock("real"), DeltaBlock("full", 2)]


@pytest.mark.parametrize(
    ("plant", "signals"),
    [(lambda: (himat(), [DeltaBlock("full", 2)] * 2), 2), (free_satellite, 1)],
    ids=["himat", "satellite"],
)
def test_d_k_iteration_of_other_plants(plant, signals):
    """The step lengths suit more than the column: mu comes below one from above, and the least one found is proven (the
    grid is fine enough: the peak between its points is higher by 2 % at most)."""
    P, blocks = plant()
    found = dksyn(P, blocks, controls=signals, measurements=signals, tolerance=1e-2)
    assert found.history[0] > 1
    assert found.peak.upper < 1
    assert found.peak.peak == pytest.approx(min(found.history), rel=2e-2)
    assert found.closed_loop.is_stable


def test_d_k_iteration_of_a_sampled_plant():
    """Tustin's plant has the mu of the continuous one, at bent frequencies; the controller is sampled and has its names."""
    P, blocks = free_satellite()
    given = {"controls": 1, "measurements": 1, "iterations": 2, "tolerance": 1e-2}
    sampled = P.sampled(0.05, method="tustin")
    w = np.geomspace(1e-3, 50, 40)
    found = dksyn(sampled, blocks, frequency=w, **given)
    same = dksyn(P, blocks, frequency=np.tan(0.025 * w) / 0.025, **given)
    assert found.controller.dt == 0.05
    assert found.controller.input_names == sampled.output_names[-1:]
    assert found.closed_loop.is_stable
    np.testing.assert_allclose(
        found.history[0], same.history[0], rtol=1e-3
    )  # levels of H-infinity are found to 1e-4; whether a next step of scalings near 1e4 is taken hangs on rounding
    value = found.closed_loop.frequency_response(found.peak.frequency).response[0]
    assert mu(value, blocks).upper == pytest.approx(found.peak.peak, rel=1e-3)


def test_d_k_iteration_returns_what_can_be_proven(monkeypatch):
    """A controller with less mu whose peak cannot be proven does not cost the one before it."""
    _, P = distillation()
    given = {"controls": 2, "measurements": 2, "iterations": 2, "frequency": np.geomspace(1e-4, 100, 30)}
    proofs = []

    def only_the_second(M, blocks, **options):
        proofs.append(M)
        if len(proofs) == 1:
            raise NumericalError("mu_peak: no proof")
        return mu_peak(M, blocks, **options)

    monkeypatch.setattr(hinf, "mu_peak", only_the_second)
    found = dksyn(P, [SCALAR, SCALAR, DeltaBlock("full", 2)], tolerance=5e-3, **given)
    assert found.closed_loop is proofs[1]
    assert found.peak.peak == pytest.approx(found.history[0], abs=1e-2)

    def never(*_, **__):
        raise NumericalError("mu_peak: no proof")

    monkeypatch.setattr(hinf, "mu_peak", never)
    with pytest.raises(
        NumericalError, match="dksyn: of no controller found the peak can be proven; mu_peak: no"
    ):
        dksyn(P, [SCALAR, SCALAR, DeltaBlock("full", 2)], tolerance=5e-3, **given)


def test_himat():
    """The first step of mu synthesis for the aircraft of the mu-Tools manual."""
    found = hinfsyn(himat(), controls=2, measurements=2, tolerance=1e-9)
    assert found.upper == pytest.approx(1.6751696913, rel=1e-8)


def test_narrow_peak_is_not_missed():
    """A resonance of width 1e-7 away from all grid points: the proof finds it."""
    M = append(tf([0.1], [1, 1]), 4e-7 * tf([1, 0], [1, 2e-7, 3.0]))
    found = mu_peak(M, [SCALAR] * 2)
    assert found.peak == pytest.approx(2.0, rel=1e-6)
    assert found.frequency == pytest.approx(np.sqrt(3), rel=1e-6)


def test_mu_over_frequency_lies_below_the_peak():
    M = random_system(np.random.default_rng(3), 5, 3, 3)
    blocks = [SCALAR, DeltaBlock("full", 2)]
    peak = mu_peak(M, blocks)
    found = mu_response(M, blocks, np.geomspace(0.01, 100, 25), starts=4)
    assert found.upper.max() <= peak.upper
    assert np.all(found.lower <= found.upper)
    sampled = mu_peak(M.sampled(0.1, method="tustin"), blocks)  # the same frequency axis, bent
    assert sampled.peak == pytest.approx(peak.peak, rel=1e-6)


def test_a_real_number_that_takes_a_pole_through_infinity():
    """A sampled pole that leaves the circle at -1 does so at half the sampling frequency; a continuous one that goes to the
    other side, at infinity: -1 + d / 2 / (1 + 2 d) is about to for d = -1/2."""
    M = StateSpace([[0.2]], [[-1.0]], [[1.0]], [[0.0]], 0.5)
    found = mu_peak(M, [DeltaBlock("real")])
    assert found.lower == pytest.approx(1 / 0.8, rel=1e-9)  # the pole 0.2 - d is 1 for d = -0.8
    assert found.frequency == pytest.approx(0.0, abs=1e-9)
    M = StateSpace([[-0.2]], [[1.0]], [[-1.0]], [[0.0]], 0.5)
    found = mu_peak(M, [DeltaBlock("real")])
    assert found.lower == pytest.approx(1 / 0.8, rel=1e-9)  # the pole -0.2 - d is -1 for d = 0.8
    assert found.frequency == pytest.approx(np.pi / 0.5, rel=1e-9)
    assert found.delta == pytest.approx(np.array([[0.8]]))
    found = mu_peak(StateSpace([[-1.0]], [[1.0]], [[0.5]], [[-2.0]]), [DeltaBlock("real")])
    assert (found.lower, found.frequency) == (pytest.approx(2.0, rel=1e-9), np.inf)


def test_many_matrices_are_bounded_as_each_alone():
    """Side by side or alone: the same steps, to rounding that Newton's method does not let grow (1e-6 is what was asked)."""
    rng = np.random.default_rng(5)
    M = rng.normal(size=(6, 4, 4)) + 1j * rng.normal(size=(6, 4, 4))
    scalings = Scalings([DeltaBlock("real", 2), DeltaBlock("full", 2)])
    together = [x.level for x in scalings.least_of(M, tolerance=1e-9)]
    np.testing.assert_allclose(together, [scalings.least(X, tolerance=1e-9).level for X in M], rtol=1e-6)
    # one set of scalings for three matrices: as high as the highest at least, and it proves all of them
    one = scalings.least(M[:3], tolerance=1e-9)
    assert one.level >= max(together[:3]) * (1 - 1e-6)
    for X in M[:3]:
        cross = 1j * one.G @ X
        F = (1.0000001 * one.level) ** 2 * one.D_right - X.conj().T @ one.D_left @ X - cross - cross.conj().T
        assert np.linalg.eigvalsh(F)[0] > -1e-9 * np.linalg.norm(F)


def _proves(bound, M):
    """Whether b^2 D - M^H D M - j (G M - M^H G) > 0 for the numbers as they are, in fractions: all pivots are positive."""

    def exact(X):
        parts = np.block([[X.real, -X.imag], [X.imag, X.real]])
        return np.array([[Fraction(float(x)) for x in row] for row in parts], dtype=object)

    M, D_left, D_right, G = (exact(np.asarray(X, complex)) for X in (M, bound.D_left, bound.D_right, bound.G))
    half = exact(1j * np.eye(len(G) // 2)) @ G @ M + M.T @ D_left @ M / 2
    F = Fraction(bound.level) ** 2 * D_right - half - half.T
    for k in range(len(F)):
        if F[k, k] <= 0:
            return False
        F[k + 1 :, k + 1 :] -= np.outer(F[k + 1 :, k], F[k, k + 1 :] / F[k, k])
    return True


@pytest.mark.parametrize(
    "blocks",
    [
        [DeltaBlock("real", 2), DeltaBlock("real", 2)],
        [DeltaBlock("real", 3), DeltaBlock("complex", 1)],
        [DeltaBlock("real"), DeltaBlock("full", 1, 2), DeltaBlock("complex"), DeltaBlock("full", 1)],
    ],
)
def test_bounds_from_above_hold_without_rounding(blocks):
    """D may be nearly singular and G large where the bound is least: the level leaves room for what rounding does there."""
    rng = np.random.default_rng(7)
    shape = 8, sum(b.columns for b in blocks), sum(b.rows for b in blocks)
    M = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    M[::2] *= np.geomspace(1e-3, 1e3, shape[1])[:, None]
    scalings = Scalings(blocks)
    near, far = (scalings.least_of(M, tolerance=x) for x in (1e-9, 1e-3))
    assert all(_proves(bound, X) for bound, X in zip([*near, *far], [*M, *M], strict=True))
    # what was asked: within the tolerance of the least bound, which the room for rounding does not spoil by more than 1e-4
    np.testing.assert_allclose([x.level for x in far], [x.level for x in near], rtol=1.1e-3)


def test_repeated_real_parameter_crosses_at_one_frequency():
    """M = C (s - A)^-1 B with w = d z is A + d B C: the bound meets the d that brings a pole to the axis, off all grids."""
    rng = np.random.default_rng(3)
    A, B, C = rng.normal(size=(6, 6)), rng.normal(size=(6, 4)), rng.normal(size=(4, 6))
    A = A - (np.linalg.eigvals(A).real.max() + 0.3) * np.eye(6)
    found = mu_peak(StateSpace(A, B, C), [DeltaBlock("real", 4)], tolerance=0.02)
    np.testing.assert_allclose(found.delta, found.delta[0, 0] * np.eye(4), atol=0)
    values = np.linalg.eigvals(A + B @ found.delta @ C)
    worst = values[np.argmax(values.real)]
    assert abs(worst.real) < 1e-9  # brentq's 1e-13 times slope and condition of the pole, some 1e2
    assert abs(worst.imag) == pytest.approx(found.frequency, rel=1e-9)
    assert found.lower <= found.peak * (1 + 1e-9)
    # no d within the margin is unstable: by poles, on a fine grid
    for d in np.linspace(-found.margin, found.margin, 201):
        assert np.linalg.eigvals(A + d * B @ C).real.max() < 0


def test_allowance_for_rounding_grows_with_the_condition():
    """The same system in coordinates with eigenvectors of condition 1e6: the allowance knows, the level is the same."""
    M = random_system(np.random.default_rng(3), 5, 3, 3)
    blocks = [SCALAR, DeltaBlock("full", 2)]
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    T = Q * np.geomspace(1, 1e6, 5)  # condition 1e6
    skew = M.with_matrices(T @ M.A @ np.linalg.inv(T), T @ M.B, M.C @ np.linalg.inv(T), M.D)
    plain, other = Proof(M, blocks), Proof(skew, blocks)
    assert plain.diagonal
    assert other.diagonal
    assert plain.errors[0].max() < 1e-11 < other.errors[0].max()
    # the allowance: n eps times the condition of V, squared at most, of the size of A
    assert other.errors[0].max() < 1e2 * 5 * np.finfo(float).eps * 1e12
    assert other.peak(1e-2)[0] == pytest.approx(plain.peak(1e-2)[0], rel=1e-2)


def test_proof_that_does_not_end(monkeypatch):
    monkeypatch.setattr("alembert.control.mu_proof._TRIES", 1)
    with pytest.raises(NumericalError, match="mu_peak: no proof in 1 intervals at the level"):
        mu_peak(random_system(np.random.default_rng(3), 5, 3, 3), [SCALAR] * 3)


def test_proof_with_a_pole_that_rounding_hides():
    """Poles from 1e-10 to 1000 in coordinates that mix them: thirteen digits apart."""
    T = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    B = T @ np.array([[1e-10, 0], [0, 1.0], [3, 1], [0, 100.0]])
    C = np.array([[1, 0.3, 0, 1], [0, 1, 1, 0.5]]) @ T.T
    M = StateSpace(T @ np.diag([-1e-10, -1.0, -30.0, -1000.0]) @ T.T, B, C)
    with pytest.raises(
        NumericalError, match=r"at frequency zero .* the slowest one, \S+e-\d+, is lost in rounding"
    ):
        mu_peak(M, [SCALAR] * 2)


def test_worst_case_gain_of_a_first_order_lag():
    """1/(s + 1 + 0.5 d), |d| <= 1: the gain is at most 2."""
    M = StateSpace([[-1.0]], [[0.5, 1.0]], [[-1.0], [1.0]])
    low, high = worst_case_gain(M, [DeltaBlock("real")], tolerance=5e-3)
    assert 1.0 <= low <= 2.0 <= high * (1 + 1e-3)
    assert high == pytest.approx(2.0, rel=2e-2)
    assert worst_case_gain(StateSpace([[-1.0]], [[2.0, 1.0]], [[-1.0], [1.0]]), [SCALAR])[1] == np.inf


def test_fitted_magnitudes_are_stable_and_near():
    w = np.geomspace(0.01, 100, 40)
    target = np.abs((1j * w + 1) * (1j * w + 5) / ((1j * w + 0.2) * (1j * w + 20)))
    found = fitted_magnitude(w, target, 2)
    np.testing.assert_allclose(np.abs(found.frequency_response(w).response[:, 0, 0]), target, rtol=1e-3)
    assert found.is_stable
    assert found.inverse().is_stable


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: DeltaBlock("imaginary"), ArgumentError, "kind is 'imaginary'"),
        (lambda: DeltaBlock("real", 2, 3), ArgumentError, "a real block of 2 x 3; expected a square one"),
        (
            lambda: mu(np.eye(2), [SCALAR]),
            ArgumentError,
            r"M has shape \(2, 2\), and the blocks take 1 outputs",
        ),
        (lambda: mu(np.eye(2), []), ArgumentError, "a list of DeltaBlock"),
        (
            lambda: mu_peak(tf([1], [1, -1]), [SCALAR]),
            NumericalError,
            "the nominal loop is not stable, it has the pole 1",
        ),
        (lambda: disk_margins(static(np.ones((1, 2)))), ArgumentError, "as many outputs as inputs"),
        (lambda: disk_margins(tf([0.5], [1, -1])), NumericalError, "the closed loop is not stable"),
        (lambda: worst_case_gain(tf([1], [1, 1]), [SCALAR]), ArgumentError, "nothing is left"),
    ],
)
def test_refusals(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_real_numbers_alone_have_bounds_from_below():
    """M = u v^T has det(1 - M Delta) = 1 - sum_k d_k c_k, c = u v: mu is a linear program, and both bounds meet it."""
    rng = np.random.default_rng(8)
    u, v = rng.normal(size=(2, 5, 2)) @ np.array([1, 1j])
    c = u * v
    exact = scipy.optimize.linprog(-c.real, A_eq=c.imag[None], b_eq=[0.0], bounds=(-1, 1))
    found = mu(np.outer(u, v), [DeltaBlock("real")] * 5)
    assert found.lower == pytest.approx(-exact.fun, rel=1e-9)
    assert found.upper == pytest.approx(-exact.fun, rel=1e-6)
    # of any matrix: a real perturbation that does what it should, both signs of repeated numbers; three numbers for two
    # equations may be too few, and the search is local, so that not all of those are found by every arithmetic
    for blocks, least in (
        ([DeltaBlock("real")] * 5, 5),
        ([DeltaBlock("real", 2), DeltaBlock("real"), DeltaBlock("real", 2)], 3),
    ):
        tried = [(M, mu(M, blocks)) for M in rng.normal(size=(5, 5, 5, 2)) @ np.array([1, 1j])]
        assert sum(found.lower > 0 for _, found in tried) >= least
        for M, found in tried:
            assert found.lower <= found.upper
            if not found.lower:
                assert found.delta is None
                continue
            assert not np.any(found.delta.imag)
            assert np.abs(np.diag(found.delta)).max() == pytest.approx(1 / found.lower)
            assert np.linalg.svd(np.eye(5) - M @ found.delta, compute_uv=False)[-1] < 1e-8
            assert len(np.unique(np.diag(found.delta))) <= len(blocks)


def test_loops_that_are_not_stable_are_named_by_the_function_called():
    M = append(tf([1], [1, -0.5]), tf([1], [1, 3]))
    for function, sentence in (
        (
            lambda: worst_case_gain(M, [SCALAR]),
            "worst_case_gain: the nominal loop is not stable, it has the pole 0.5",
        ),
        (lambda: stability_margin(M, [SCALAR] * 2), "stability_margin: the nominal loop is not stable"),
        (lambda: mu_peak(M, [SCALAR] * 2), "mu_peak: the nominal loop is not stable"),
        (
            lambda: disk_margins(tf([1], [1, -2])),
            r"disk_margins: the closed loop is not stable, it has the pole 1\+0j",
        ),
    ):
        with pytest.raises(NumericalError, match=sentence):
            function()
