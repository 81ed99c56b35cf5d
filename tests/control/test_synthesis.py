"""Riccati equations, regulators, filters, H2, H-infinity and loop shaping: published optima, and what is refused."""

import numpy as np
import pytest
import scipy.linalg
from control_helpers import random_system
from scipy.optimize import brentq

from alembert.control import (
    SecondOrder,
    StateSpace,
    append,
    augment,
    care,
    coprime,
    dare,
    feedback,
    gap,
    h2syn,
    hinf_norm,
    hinfsyn,
    lft,
    lqe,
    lqg,
    lqr,
    ltr,
    margins,
    ncf_margin,
    ncfsyn,
    nu_gap,
    output_ltr,
    place,
    place_by_outputs,
    reduced_lqg,
    riccati,
    sampled_lqe,
    sampled_lqg,
    sampled_lqr,
    series,
    static,
    tf,
    weighted_lqg,
    wiener_hopf,
)
from alembert.control.riccati import modal_solution
from alembert.errors import AlembertWarning, ArgumentError, NumericalError, UnsupportedError
from alembert.verify.control_plants import (
    SB10_A,
    SB10_B,
    compleib,
    distillation,
    himat,
    mass_chain,
    sb10dd,
    sb10fd,
    sb10hd,
)

DOUBLE = StateSpace([[0, 1], [0, 0]], [[0], [1]], np.eye(2))


@pytest.mark.parametrize("n", [1, 4, 12])
def test_riccati_equations_agree_with_scipy(n):
    rng = np.random.default_rng(n)
    A, B, S = rng.normal(size=(n, n)), rng.normal(size=(n, 2)), 0.1 * rng.normal(size=(n, 2))
    Q, R = np.eye(n), np.diag([1.0, 2.0])
    found = care(A, B, Q, R, S)
    assert found.residual < 1e-11
    assert found.poles.real.max() < 0
    expected = scipy.linalg.solve_continuous_are(A, B, Q, R, s=S)
    np.testing.assert_allclose(found.X, expected, atol=1e-8 * np.abs(expected).max())
    found = dare(A, B, Q, R, S)
    assert found.residual < 1e-11
    assert np.abs(found.poles).max() < 1
    expected = scipy.linalg.solve_discrete_are(A, B, Q, R, s=S)
    np.testing.assert_allclose(found.X, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("discrete", [False, True])
def test_doubling_and_the_pencil_give_one_solution(discrete, monkeypatch):
    """A chain near the axis, with cross terms: thin and full doubling (rank 2 of 24, and 2 of 3), and QZ."""
    solve = dare if discrete else care
    for G in (mass_chain(12).to_statespace(), tf([1, 2], [1, 0, 0, 1])):
        G = G.sampled(0.2) if discrete else G
        n, m = G.B.shape
        weights = np.eye(n), 0.5 * np.eye(m), 0.1 * G.B
        quick = solve(G.A, G.B, *weights)
        assert riccati._quick(
            riccati._scaled(G.A, G.B, weights[0], weights[2], weights[1])[0], discrete=discrete
        )
        with monkeypatch.context() as patch:
            patch.setattr(riccati, "_quick", lambda *a, **k: None)
            sure = solve(G.A, G.B, *weights)
        assert max(quick.residual, sure.residual) < 1e-12
        # residuals of 1e-12 times the slowest decay's inverse, some hundreds for the chain
        np.testing.assert_allclose(quick.X, sure.X, rtol=0, atol=1e-8 * np.abs(sure.X).max())


@pytest.mark.parametrize("damping", [1e-6, 1e-3, 0.15])
def test_riccati_equation_in_modes_is_that_of_the_pencil(damping, monkeypatch):
    """A chain whose fast modes have real poles with the largest damping; regulator and filter, the transposed equation."""
    k = 24
    K = 100 * (2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1))
    B = np.eye(2 * k)[:, [k, 2 * k - 1]]
    A = np.block([[np.zeros((k, k)), np.eye(k)], [-K, -damping * K]])
    Q, R = np.diag(np.linspace(0.5, 2, 2 * k)), np.diag([0.5, 2.0])
    for matrices in ((A, B, Q, R), (A.T, np.roll(B, k, axis=0), Q, R)):
        assert modal_solution(*matrices[:2], Q) is not None
        found = care(*matrices)
        with monkeypatch.context() as patch:
            patch.setattr(riccati, "_quick", lambda *a, **k: None)
            sure = care(*matrices)
        assert max(found.residual, sure.residual) < 1e-12
        # residuals of 1e-12 times the slowest decay's inverse, some hundreds where the control has to bring the damping
        np.testing.assert_allclose(found.X, sure.X, rtol=0, atol=1e-9 * np.abs(sure.X).max())


def test_modes_do_not_solve_what_is_not_theirs():
    """Unstable, with damping that couples modes, with many inputs, of another form, of few states."""
    k = 24
    K = 100 * (2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1))
    A = np.block([[np.zeros((k, k)), np.eye(k)], [-K, -1e-3 * K]])
    B, Q, one = np.eye(2 * k)[:, -2:], np.eye(2 * k), np.zeros_like(A)
    assert modal_solution(A, B, Q) is not None
    one[k, k] = 0.1
    for other in (A - one, A + 1e-3 * np.diag(np.arange(2 * k) < k), -A):
        assert modal_solution(other, B, Q) is None
    assert modal_solution(A, np.eye(2 * k)[:, -4:], Q) is None
    assert modal_solution(np.array([[0.0, 1], [-1, -0.1]]), np.array([[0.0], [1]]), np.eye(2)) is None


def test_riccati_equation_keeps_its_digits_in_bad_units():
    """The same regulator in metres and in nanometres: X scales exactly by the squares of the units."""
    A, B = np.array([[0.0, 1], [-3, -0.1]]), np.array([[0.0], [1]])
    plain = care(A, B, np.eye(2), np.eye(1))
    T = np.diag([1e9, 1e-6])
    scaled = care(T @ A @ np.linalg.inv(T), T @ B, np.linalg.inv(T) ** 2, np.eye(1))
    np.testing.assert_allclose(T @ scaled.X @ T, plain.X, rtol=1e-10)
    assert scaled.residual < 1e-12


@pytest.mark.parametrize("slow", [1e-2, 1e-6, 1e-9])
def test_cost_of_a_slow_state_that_nothing_reaches(slow):
    """x2 decays by itself: X22 = int x^T (Q + K^T K) x, by hand 1 / (2 slow) of what x2 costs with x1 driven by it."""
    a, b = -0.8, 3.0
    found = care([[a, b], [0, -slow]], [[1.0], [0]], np.eye(2), np.eye(1))
    x11 = a + np.sqrt(a**2 + 1)
    x12 = b * x11 / (x11 - a + slow)
    # some roundings, of 1 / slow where slow is the sum of larger numbers
    np.testing.assert_allclose(
        found.X, [[x11, x12], [x12, (1 + 2 * b * x12 - x12**2) / (2 * slow)]], rtol=1e-14 + 1e-15 / slow
    )


@pytest.mark.parametrize("solve", [care, dare])
@pytest.mark.parametrize("hidden", ["cost", "inputs"])
def test_a_hidden_mode_without_damping_is_refused(solve, hidden):
    """Nothing damps a mode on the axis that Q does not see, or B does not reach; rounding moves its pole by its root."""
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4) * 10:
        w = rng.uniform(0.5, 5.0, n)
        A = scipy.linalg.block_diag(*([[0, 1], [-x * x, 0]] for x in w))
        A = A if solve is care else scipy.linalg.expm(0.1 * A)
        kept = np.repeat(np.arange(n) != rng.integers(n), 2).astype(float)
        T = np.linalg.qr(rng.normal(size=(2 * n, 2 * n)))[0]
        Q, B = np.diag(kept if hidden == "cost" else np.ones(2 * n)), rng.normal(size=(2 * n, 2))
        B = B if hidden == "cost" else kept[:, None] * B
        with pytest.raises(
            NumericalError, match=r"the inputs do not reach, or the cost does not see|keeps the pole"
        ):
            solve(T @ A @ T.T, T @ B, T @ Q @ T.T, np.eye(2))


def test_a_hidden_mode_with_little_damping_stays_as_it_is():
    found = care([[0, 1], [-4, -1e-10]], [[0], [1]], np.zeros((2, 2)), [[1]])
    np.testing.assert_allclose(found.poles.real, -5e-11, rtol=1e-4)  # rounding of 4 in 5e-11
    assert not found.K.any()


def test_riccati_equation_of_sizes_far_apart():
    """Slow integrators and a large cost: the poles of the closed loop are a hundred times those of a plant of this size."""
    found = care(1e-6 * np.diag(np.ones(3), 1), 1e-6 * np.eye(4)[:, 3:], 1e12 * np.eye(4), np.eye(1))
    assert found.residual < 1e-12
    assert np.linalg.eigvalsh(found.X)[0] > 0


def test_rough_solutions_are_told(monkeypatch):
    monkeypatch.setattr(riccati, "_refined", lambda X, residual, discrete: (X, 1e-3))
    monkeypatch.setattr(riccati, "_quick", lambda scaled, discrete: None)
    told = "the Riccati equation is solved to 1.0e-03 of its largest term only"
    with pytest.warns(AlembertWarning, match=f"lqr: {told}"):
        lqr(DOUBLE, 1.0, 1.0)
    with pytest.warns(AlembertWarning, match=f"care: {told}"):
        care(DOUBLE.A, DOUBLE.B, np.eye(2), np.eye(1))
    with pytest.warns(AlembertWarning, match=f"dare: {told}"):
        dare([[0.5]], [[1.0]], [[1.0]], [[1.0]])


@pytest.mark.parametrize(("solve", "words"), [(care, "care: R is"), (dare, r"dare: R \+ B\^T X B is")])
def test_controls_that_cost_nothing_in_a_riccati_equation(monkeypatch, solve, words):
    def singular(*args, **kwargs):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(
        riccati, "_gain", singular
    )  # where rounding makes it so, which is not the same everywhere
    with pytest.raises(NumericalError, match=f"{words} singular, controls of some kind cost nothing"):
        solve([[0.5]], [[1.0]], [[1.0]], [[1.0]])


def test_sampled_cost_of_a_double_integrator():
    found = sampled_lqr(DOUBLE, 0.1, 1.0, 1.0)
    np.testing.assert_allclose(found.K, [[0.91779524, 1.63644083]], atol=6e-9)
    np.testing.assert_allclose(found.X, [[1.73301298, 1.00125033], [1.00125033, 1.73373564]], atol=6e-9)
    np.testing.assert_allclose(found.poles, [0.91588347 - 0.04585152j, 0.91588347 + 0.04585152j], atol=6e-9)


@pytest.mark.parametrize("rate", [60.0, 1e5])
def test_sampled_cost_with_a_fast_actuator(rate):
    """A lag that is over long before the next sample: the gains are those of the integrator alone, but for what
    the lag holds back; exp(rate h) took all digits, or was infinite."""
    slow = StateSpace(0, 1, 1)
    cart = series(tf([rate], [1, rate]), slow)
    alone, found = sampled_lqr(slow, 1.0, 1.0, 1.0).K[0, 0], sampled_lqr(cart, 1.0, [0.0, 1.0], 1.0).K[0]
    np.testing.assert_allclose(found[1], alone, atol=0.1 / rate)
    noise = sampled_lqe(slow, 1.0, 1.0, 0.1).L[0, 0], sampled_lqe(cart, 1.0, 1.0, 0.1).L[1, 0]
    np.testing.assert_allclose(*noise, atol=2 / rate)


def test_sampled_cost_goes_to_the_continuous_one():
    G = random_system(np.random.default_rng(3), 4, 2, 2)
    cont = lqr(G, 2.0, [1.0, 3.0])
    for h in (1e-2, 1e-3):
        np.testing.assert_allclose(sampled_lqr(G, h, 2.0, [1.0, 3.0]).K, cont.K, atol=20 * h)
    assert cont.closed_loop().is_stable
    loop = cont.loop().frequency_response(np.geomspace(0.01, 100, 50)).response
    R = np.diag([1.0, 3.0])  # Kalman's inequality (1 + L)^H R (1 + L) >= R
    for L in loop:
        gap_ = (np.eye(2) + L).conj().T @ R @ (np.eye(2) + L) - R
        assert np.linalg.eigvalsh(gap_)[0] > -1e-9


def test_output_weights_and_cross_terms():
    G = random_system(np.random.default_rng(4), 3, 2, 2)
    by_outputs = lqr(G, [2.0, 1.0], 1.0, weigh="outputs")
    W = np.diag([2.0, 1.0])
    direct = lqr(G, G.C.T @ W @ G.C, np.eye(2) + G.D.T @ W @ G.D, cross=G.C.T @ W @ G.D)
    np.testing.assert_allclose(by_outputs.K, direct.K, atol=1e-10)


def test_cross_terms_of_output_weights():
    """[y; u] = [C D; 0 1] [x; u]: weights of the one are weights of the other."""
    rng = np.random.default_rng(5)
    G = random_system(rng, 3, 2, 2)
    root = rng.normal(size=(4, 4))
    W, T = root @ root.T, np.block([[G.C, G.D], [np.zeros((2, 3)), np.eye(2)]])
    Z = T.T @ W @ T
    by_outputs = lqr(G, W[:2, :2], W[2:, 2:], cross=W[:2, 2:], weigh="outputs")
    direct = lqr(G, Z[:3, :3], Z[3:, 3:], cross=Z[:3, 3:])
    np.testing.assert_allclose(by_outputs.K, direct.K, atol=1e-10)


def test_sampled_filter_gathers_the_noise():
    """Of a double integrator pushed by white noise: covariance [h^3/3 h^2/2; h^2/2 h] from sample to sample."""
    h = 0.4
    gathered = np.array([[h**3 / 3, h**2 / 2], [h**2 / 2, h]])
    expected = lqe(DOUBLE.sampled(h), 1.0, [0.2] * len(DOUBLE.C), through=np.linalg.cholesky(gathered))
    found = sampled_lqe(DOUBLE, h, 1.0, 0.2)
    np.testing.assert_allclose(found.L, expected.L, atol=1e-12)
    design = sampled_lqg(DOUBLE, h, 1.0, 0.5, 1.0, 0.2)
    assert design.controller.dt == h
    np.testing.assert_allclose(design.regulator.K, sampled_lqr(DOUBLE, h, 1.0, 0.5).K)
    np.testing.assert_allclose(
        np.sort(np.abs(design.closed_loop().poles())), np.sort(np.abs(design.poles)), atol=1e-9
    )


def test_poles_that_are_wanted_again():
    """With one input the gain is unique: (s + 1)^3 of three integrators is 1, 3, 3; two samples stop a mass (deadbeat)."""
    chain = StateSpace(np.eye(3, k=1), [0, 0, 1.0], np.eye(3))
    np.testing.assert_allclose(place(chain, [-1, -1, -1]).K, [[1, 3, 3]], atol=1e-13)
    np.testing.assert_allclose(place_by_outputs(chain, [-1, -1, -1]).K, [[1, 3, 3]], atol=1e-12)
    turned = place(chain, [-2, -1 + 2j, -1 - 2j]).K
    alike = place(chain.transformed([[1, 0.2, 0], [0.5, 1, 0], [0, 0.3, 2]]), [-1, -1, -1])
    assert alike.error < 1e-4  # the third root of rounding
    np.testing.assert_allclose(turned, [np.poly([-2, -1 + 2j, -1 - 2j])[:0:-1].real], atol=1e-12)
    mass = StateSpace([[0, 1], [0, 0]], [0, 1.0], [1.0, 0]).sampled(0.1)
    K = place(mass, [0, 0]).K
    np.testing.assert_allclose(np.linalg.matrix_power(mass.A - mass.B @ K, 2), 0, atol=1e-13)
    rng = np.random.default_rng(6)
    several = random_system(rng, 5, 3, 3, direct=False)
    found = place_by_outputs(several, [-1, -1, -2, -2, -3])
    np.testing.assert_allclose(found.poles, [-3, -2, -2, -1, -1], atol=1e-4)
    assert found.error < 1e-4


@pytest.mark.parametrize(
    ("recovery", "gain", "phase"),
    [
        (0, [30.00141379, -49.96111559], 14.850631),
        (100, [26.83014994, -40.21166563], 19.402805),
        (500, [20.38131839, -17.74738869], 32.372130),
        (1000, [16.68698394, -1.93186915], 42.512683),
        (10000, [6.93876412, 84.61564330], 74.439659),
    ],
)
def test_loop_transfer_recovery(recovery, gain, phase):
    """Doyle and Stein (1979): the filter's gain and the phase margin; the paper has [30 -50] and less than 15 degrees."""
    G = StateSpace([[0, 1], [-3, -4]], [[0], [1]], [[2, 1]])
    found = ltr([[50, 10]], recovery, 1.0, 1.0, plant=G, through=[[35], [-61]])
    np.testing.assert_allclose(found.filter.L[:, 0], gain, atol=1e-7)
    margin = margins(-(found.controller * G))
    assert margin.phase_deg == pytest.approx(phase, abs=1e-6)
    assert margin.stable
    if recovery == 0:
        assert margin.phase_frequency == pytest.approx(12.615242, abs=1e-6)
        assert margin.distance == pytest.approx(0.207499, abs=1e-6)
    if recovery == 10000:
        assert margin.distance == pytest.approx(0.929706, abs=1e-6)


def test_two_masses():
    """LQG that is optimal and has hardly a margin: stable for 0.94 < k < 1.35 only."""

    def plant(k):
        A = [[0, 0, 1, 0], [0, 0, 0, 1], [-k, k, 0, 0], [k, -k, 0, 0]]
        return StateSpace(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]])

    found = lqg(plant(1.0), [0, 1, 0, 0], 0.1, 1.0, 0.01, through=[[0], [0], [0], [1]])
    np.testing.assert_allclose(
        found.regulator.K, [[3.08189689, 0.08038077, 2.48269889, 3.18658131]], atol=6e-9
    )
    np.testing.assert_allclose(
        found.filter.L[:, 0], [0.92445355, 4.33158047, 0.61870532, 9.38129468], atol=6e-9
    )
    np.testing.assert_allclose(found.closed_loop().poles(), found.poles, atol=1e-7)
    worst = lambda k: feedback(plant(k), found.controller, sign=1).poles().real.max()  # noqa: E731
    assert brentq(worst, 0.9, 1.0, xtol=1e-12) == pytest.approx(0.9421823041, abs=1e-9)
    assert brentq(worst, 1.2, 1.5, xtol=1e-12) == pytest.approx(1.3452287536, abs=1e-9)


def test_lqg_is_the_h2_controller():
    """With z = (sqrt(Q) x, sqrt(R) u) and unit noises the two designs are one."""
    G = random_system(np.random.default_rng(6), 4, 1, 1, direct=False)
    n = 4
    P = StateSpace(
        G.A,
        np.hstack([np.eye(n), np.zeros((n, 1)), G.B]),
        np.vstack([np.eye(n), np.zeros((1, n)), G.C]),
        np.block(
            [
                [np.zeros((n, n + 2))],
                [np.zeros((1, n + 1)), np.eye(1)],
                [np.zeros((1, n)), np.eye(1), np.zeros((1, 1))],
            ]
        ),
    )
    found = h2syn(P, controls=1, measurements=1)
    other = lqg(G, 1.0, 1.0, 1.0, 1.0, through=np.eye(n))
    for s in (0.3j, 2j, 1.0):
        np.testing.assert_allclose(found.controller.at(s), other.controller.at(s), atol=1e-8)


def test_discrete_lqg_is_stable():
    G = random_system(np.random.default_rng(8), 4, 2, 2, stable=False, dt=0.1)
    found = lqg(G, 1.0, 1.0, 1.0, 1.0)
    np.testing.assert_allclose(
        np.sort(np.abs(found.closed_loop().poles())), np.sort(np.abs(found.poles)), atol=1e-8
    )
    assert np.abs(found.poles).max() < 1


# --- H2 and H-infinity -----------------------------------------------------------------------------------------


def test_h2_of_slicot():
    found = h2syn(sb10hd(), controls=2, measurements=2)
    assert found.norm == pytest.approx(35.1826166517, rel=1e-11)
    expected = [
        [-2.3346, 3.2556, 0.7150, -0.9724, 0.6962, 0.4074],
        [7.6899, -8.4558, -2.9642, 7.0365, -4.2844, 0.1390],
    ]
    np.testing.assert_allclose(found.controller.C, expected, atol=6e-5)
    assert not np.any(found.controller.D)


def test_hinf_of_slicot():
    P = sb10fd()
    found = hinfsyn(P, controls=2, measurements=2, tolerance=1e-10)
    assert found.lower <= 10.184256363
    assert found.upper == pytest.approx(10.184256361, rel=2e-9)
    assert found.norm < found.upper * 1.0011
    at_15 = hinfsyn(P, controls=2, measurements=2, gamma=15.0)
    printed = [-107.31, -66.556, -20.089, -1.7178, -4.1466, -7.6437]
    printed += [
        -38.269 + 13.114j,
        -38.269 - 13.114j,
        -6.2557 + 12.961j,
        -6.2557 - 12.961j,
        -3.2405 + 6.7998j,
        -3.2405 - 6.7998j,
    ]
    np.testing.assert_allclose(at_15.closed_loop.poles(), np.sort_complex(printed), rtol=6e-5)
    with pytest.raises(NumericalError, match=r"below 10: \(d\) the Hamiltonian matrix of the filter"):
        hinfsyn(P, controls=2, measurements=2, gamma=10.0)
    with pytest.raises(NumericalError, match=r"\(a\) the direct part D11 alone"):
        hinfsyn(P, controls=2, measurements=2, gamma=0.1)


def test_sampled_hinf_of_slicot():
    found = hinfsyn(sb10dd(), controls=2, measurements=2)
    assert found.upper == pytest.approx(111.2932, abs=6e-5)
    assert found.controller.dt == 1.0
    assert hinf_norm(lft(sb10dd(), found.controller)).gain == pytest.approx(found.norm, rel=1e-6)


def _mixed(G, W1, W2=None, W3=None, tolerance=1e-9):
    return hinfsyn(augment(G, W1, W2, W3), controls=G.shape[1], measurements=G.shape[0], tolerance=tolerance)


@pytest.mark.parametrize(
    ("P", "controls", "measurements", "least"),
    [
        (sb10fd(), 2, 2, 10.184256361),
        (distillation()[1], 2, 2, 1.1797776),
        (himat(), 2, 2, 1.6751696913),
        (sb10dd(), 2, 2, 111.29319),
        (*compleib("AC8"), 1.616481),
        (*compleib("AC15"), None),
        (*compleib("HE1"), None),
        (*compleib("NN2"), None),
    ],
)  # fmt: skip
def test_optimal_controller_has_a_state_less(P, controls, measurements, least):
    """Safonov, Limebeer, Chiang 1989: at the least level rho(X Y) = g^2, and the descriptor form of the controller loses a
    state. The norm is that level, to the accuracy of the level and of the eigenvalue that is taken as zero."""
    found = hinfsyn(P, controls=controls, measurements=measurements, backoff=0)
    near = hinfsyn(P, controls=controls, measurements=measurements)
    assert found.controller.order == P.order - 1
    assert found.closed_loop.is_stable
    assert found.lower <= found.norm * (1 + 1e-9) <= found.upper / (1 + 1e-7) * (1 + 1e-6)
    # without noise on y only the direct parts tell that no controller is better
    assert found.notes or found.upper <= found.lower * (1 + 3e-7)
    assert hinf_norm(lft(P, found.controller)).gain == pytest.approx(found.norm, rel=1e-6)
    assert found.norm < near.norm
    if least is not None:
        assert found.norm == pytest.approx(least, rel=1e-6)


def test_least_level_that_rounding_hides_stays_a_bound():
    """No state is lost at the optimum, and near it no loop confirms the level: the lower bound is that of the tests."""
    W = np.polymul([1 / np.sqrt(1.5), 10], [1 / np.sqrt(1.5), 10])
    G = tf([200], np.polymul([10, 1], np.polymul([0.05, 1], [0.05, 1])))
    P = augment(G, tf(W, np.polymul([1, 1e-3], [1, 1e-3])), 1.0)
    found = hinfsyn(P, controls=1, measurements=1, backoff=0)
    assert found.lower == pytest.approx(2.20826571, rel=2e-6)  # 400 bits
    assert found.lower < found.norm < 2.20826571 * 1.02


def test_chiang_and_safonov():
    """Design of 1989 with a weight s^2/40000 that is not proper."""
    G, W3 = tf([400], [1, 2, 400]), ([1, 0, 0], [40000])
    W1 = lambda rho: tf(rho * 100 * np.polymul([0.005, 1], [0.005, 1]), np.polymul([0.2, 1], [0.2, 1]))  # noqa: E731
    assert _mixed(G, W1(1.0), None, W3).upper == pytest.approx(0.5254456744, rel=3e-9)
    assert _mixed(G, W1(3.160423315), None, W3).upper == pytest.approx(1.0, rel=3e-9)


def test_skogestad_and_postlethwaite():
    """Examples 2.17 and 3.8; the book has 1.37, 2.80, 2.92 and 6.73."""
    G = tf([200], np.polymul([10, 1], np.polymul([0.05, 1], [0.05, 1])))
    assert _mixed(G, tf([1 / 1.5, 10], [1, 1e-3]), 1.0).upper == pytest.approx(1.3659252159, rel=3e-9)
    steep = tf([1 / np.sqrt(1.5), 10], [1, 1e-3])
    # by 400 bits; SLICOT, in double precision, has 2.20826933
    assert _mixed(G, steep * steep, 1.0).upper == pytest.approx(2.20826571, rel=1e-8)
    G = tf([[1, 1], [[2, 1], 2]], np.polymul([0.2, 1], [1, 1]))
    for bandwidths, value in (((0.25, 0.25), 2.7954835), ((0.25, 25), 2.9161765), ((25, 0.25), 6.7228488)):
        W1 = append(*(tf([1 / 1.5, w], [1, w * 1e-4]) for w in bandwidths))
        assert _mixed(G, W1, 1.0).upper == pytest.approx(value, abs=6e-8)


def test_more_published_optima():
    """Scherer, Gahinet, Chilali (1997), example 7; COMPleib's AC4 and AC8."""
    P = StateSpace(
        [[0, 10, 2], [-1, 1, 0], [0, 2, -5]],
        [[1, 0], [0, 1], [1, 0]],
        [[1, 0, 0], [0, 0, 0], [0, 1, 0]],
        [[0, 0], [0, 1], [2, 0]],
    )
    assert hinfsyn(P, controls=1, measurements=1, tolerance=1e-10).upper == pytest.approx(
        9.5080854626, rel=1e-9
    )
    for name, value, digits in (("AC4", 0.55729069, 5e-9), ("AC8", 1.61648, 5e-6)):
        P, m, p = compleib(name)
        assert hinfsyn(P, controls=m, measurements=p, tolerance=1e-9).upper == pytest.approx(
            value, abs=digits
        )


def test_no_lower_bound_of_a_problem_that_was_changed():
    """Position of a mass with a spring, measured without noise, at no cost: high gain makes it as small as one likes. What
    the small cost and noise that are added allow is no bound: the controller itself is below it."""
    P = StateSpace([[0, 1], [-1, -0.1]], [[0, 0], [1, 1.0]], [[1, 0], [1, 0.0]])
    found = hinfsyn(P, controls=1, measurements=1)
    assert found.lower == 0 < found.norm < found.upper
    assert len(found.notes) == 2


@pytest.mark.parametrize("direct", [0.0, 0.7])
def test_sampled_h2_controller_is_the_best(direct):
    """No other controller with as many states has a smaller norm: its slope vanishes. The norm is that of all pulses."""
    D = [[direct, 0.2 * direct, 0], [0, 0, 1.0], [0.1, 0.5, 0.3 * direct]]
    P = StateSpace(
        [[1.1, 0.3], [0, 0.8]], [[1.0, 0, 1.0], [0.5, 0, 0.2]], [[1.0, 0], [0, 0], [1.0, 0.5]], D, 0.1
    )
    found = h2syn(P, controls=1, measurements=1)
    A, B, C, D = found.closed_loop.matrices
    pulses = [D, *(C @ np.linalg.matrix_power(A, k) @ B for k in range(400))]
    assert found.norm == pytest.approx(np.linalg.norm(pulses), rel=1e-9)
    A, B, C, D = found.controller.matrices

    def norm(step):
        a, b, c, d = np.split(step, [4, 6, 8])
        K = StateSpace(A + a.reshape(2, 2), B + b[:, None], C + c, D + d, 0.1)
        return lft(P, K).h2_norm()

    # at a smooth minimum a step of 1e-3 raises the norm, in both directions alike but for its third power
    for step in 1e-3 * np.eye(9):
        up, down = norm(step), norm(-step)
        assert min(up, down) >= found.norm * (1 - 1e-12)
        assert abs(up - down) < 1e-2 * (up + down - 2 * found.norm) + 1e-9


def test_singular_problems_are_answered_with_a_sentence():
    """python-control's issues 152 and 973: infima 0.8 and 2/3, not reached by any controller."""
    P = StateSpace(
        [[-0.01, -0.992], [0, -0.75]], [[0.992, 0], [0, 1]], [[1, -0.8], [0, -1]], [[0.8, 0], [1, 0]]
    )
    found = hinfsyn(P, controls=1, measurements=1)
    assert found.norm == pytest.approx(0.8, abs=1e-3)
    assert "D12 has rank 0" in found.notes[0]
    found = _mixed(tf([1, 1], [1, 0.5, 4]), tf([2, -2.2, 1], [3, 0.2, 0.01]), tolerance=1e-7)
    assert found.norm == pytest.approx(2 / 3, abs=1e-3)
    assert "a cost of" in found.notes[0]


@pytest.mark.parametrize("damping", [1e-3, 1e-5, 0.0])
def test_chains_near_the_imaginary_axis(damping):
    """What is returned is confirmed by the closed loop, and the level below it is refused by a test."""
    S = mass_chain(6)
    G = StateSpace(
        np.block([[np.zeros((6, 6)), np.eye(6)], [-S.K, -damping * S.K]]),
        np.eye(12)[:, [6]],
        np.eye(12)[[5]],
    )
    disturbance = np.eye(12)[:, [11]]
    P = StateSpace(
        G.A,
        np.hstack([disturbance, np.zeros((12, 1)), G.B]),
        np.vstack([G.C, np.zeros((1, 12)), G.C]),
        [[0, 0, 0], [0, 0, 1], [0, 0.1, 0]],
    )
    found = hinfsyn(P, controls=1, measurements=1)
    assert found.lower < found.upper <= found.norm * 1.001
    assert found.norm <= found.upper * 1.0011
    with pytest.raises(NumericalError, match="no controller has a norm below"):
        hinfsyn(P, controls=1, measurements=1, gamma=0.99 * found.lower)


def test_free_plant_under_mixed_sensitivity():
    """A double integrator: P21 has zeros on the axis; a small noise on the states makes the problem regular."""
    found = _mixed(tf([1], [1, 0, 0]), tf([0.5, 0.3], [1, 0.01]), 0.1, tolerance=1e-6)
    assert any("P21 has a zero on the imaginary axis" in note for note in found.notes)
    assert found.closed_loop.is_stable
    assert found.norm < 1.05 * found.upper


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (
            lambda: lqr(DOUBLE, 1.0, 0.0),
            ArgumentError,
            "R has the eigenvalue 0, expected a positive definite",
        ),
        (
            lambda: lqr(DOUBLE, [1, -1], 1.0),
            ArgumentError,
            "Q has the eigenvalue -1, expected none below zero",
        ),
        (
            lambda: lqr(DOUBLE, np.ones(3), 1.0),
            ArgumentError,
            r"Q has shape \(3,\), expected a number, 2 numbers",
        ),
        (lambda: lqr(DOUBLE, 1.0, 1.0, weigh="inputs"), ArgumentError, "weigh is 'inputs'"),
        (lambda: sampled_lqr(DOUBLE.sampled(0.1), 0.1, 1.0), ArgumentError, "sampled already"),
        (
            lambda: sampled_lqe(DOUBLE.sampled(0.1), 0.1, 1, 1),
            ArgumentError,
            "sampled_lqe: .*sampled already",
        ),
        (
            lambda: sampled_lqg(DOUBLE.sampled(0.1), 0.1, 1, 1, 1, 1),
            ArgumentError,
            "sampled_lqg: .*sampled already",
        ),
        (lambda: sampled_lqg(DOUBLE, -0.1, 1, 1, 1, 1), ArgumentError, "sampled_lqg: dt is -0.1"),
        (lambda: lqr(DOUBLE, 1.0, 1.0, cross=[[0.1]] * 3, weigh="outputs"), ArgumentError, "cross has shape"),
        (lambda: ltr([[1, 1]], 1.0, 1.0, 1.0), ArgumentError, "needs plant="),
        (lambda: ltr([[1, 1]], -1.0, 1.0, 1.0, plant=DOUBLE), ArgumentError, "recovery is -1"),
        (lambda: h2syn(sb10fd(), controls=2, measurements=2), ArgumentError, "D11 is not zero"),
        (
            lambda: h2syn(sb10hd(), controls=9, measurements=2),
            ArgumentError,
            "controls is 9, expected 1 to 5",
        ),
        (
            lambda: h2syn(StateSpace([[-1.0]], [[1, 1]], [[1], [1]]), controls=1, measurements=1),
            NumericalError,
            "D12 has rank 0, and there are 1 controls.*D21 has rank 0",
        ),
        (lambda: augment(tf([1], [1, 1])), ArgumentError, "no weight was given"),
        (
            lambda: augment(tf([1], [1, 1]), static(np.eye(2))),
            ArgumentError,
            "W1 has 2 inputs, expected 1 or 1",
        ),
        (lambda: augment(tf([1], [1, 1]), W3=([1, 0, 0], [1])), ArgumentError, "W3 G is not proper"),
        (lambda: augment(tf([1], [1, 1], 0.1), W3=([1, 0], [1])), ArgumentError, "the plant is sampled"),
        (lambda: margins(static(np.eye(2))), ArgumentError, "expected one input and one output"),
        (lambda: nu_gap(static(1.0), static(np.eye(2))), ArgumentError, "have shapes"),
        (lambda: ncfsyn(tf([1], [1, 1]), factor=0.5), ArgumentError, "factor is 0.5"),
        (lambda: ncfsyn(tf([1], [1, 1]), np.eye(2)), ArgumentError, "W1 has shape"),
    ],
)
def test_refusals_name_the_thing(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


# --- coprime factors -------------------------------------------------------------------------------------------


def test_coprime_factors_are_normalised():
    for dt in (0.0, 0.2):
        G = random_system(np.random.default_rng(5), 3, 2, 2, stable=False, dt=dt)
        N, M = coprime(G)
        for w in (0.1, 1.0, 5.0):
            n, m, g = (X.frequency_response(w).response[0] for X in (N, M, G))
            np.testing.assert_allclose(n.conj().T @ n + m.conj().T @ m, np.eye(2), atol=1e-9)
            np.testing.assert_allclose(n @ np.linalg.inv(m), g, atol=1e-8)
        assert N.is_stable


def test_gap_metrics():
    """MATLAB's example of gapmetric: 0.0020 and 0.0021 (to its tolerance of 1e-3); closed form 2000/(1 + 1e6)."""
    a, b = tf([1], [1, -0.001]), tf([1], [1, 0.001])
    assert nu_gap(a, b) == pytest.approx(2000 / (1 + 1e6), rel=1e-9)
    assert nu_gap(a, b) - 1e-9 <= gap(a, b) == pytest.approx(0.0021, abs=1e-3)
    assert nu_gap(a, -b) == 1.0
    # the chordal distance at zero frequency is 1 itself: a number of order one and its rounding
    assert nu_gap(tf([1], [1, -1]), tf([1], [1, 1])) == pytest.approx(1.0, abs=1e-12)
    assert nu_gap(a, a) == pytest.approx(0.0, abs=1e-9)
    # the gap is never the smaller one, also where both are the same (poles on the axis, gains alone)
    for G in (tf([1], [1, 0]), tf([1], [1, 0, 0]), static(3.0)):
        assert nu_gap(G, 0.9 * G) <= gap(G, 0.9 * G) == pytest.approx(nu_gap(G, 0.9 * G), rel=1e-6)
    assert nu_gap(static(3.0), static(2.0)) == pytest.approx(
        1 / np.sqrt(10 * 5), rel=1e-12
    )  # chordal distance


def test_gains_without_states_have_factors():
    """N = 3/sqrt(10), M = 1/sqrt(10); the best controller of y = 3 u is -3: no perturbation of size below one matters."""
    N, M = coprime(static(3.0))
    assert (N.D[0, 0], M.D[0, 0]) == pytest.approx((3 / np.sqrt(10), 1 / np.sqrt(10)))
    found = ncfsyn(static(3.0))
    assert found.best_margin == pytest.approx(1.0)
    assert found.controller.D[0, 0] == pytest.approx(-3.0)
    for solve in (care, dare):
        assert solve(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((0, 0)), [[1.0]]).K.shape == (1, 0)


def test_ncf_margin():
    """MATLAB's example of ncfmargin: 0.7069 and 0.0995; with K = 10 the peak is at infinity, 1/sqrt(101)."""
    G = tf([4], [1, -0.001])
    assert ncf_margin(G, static(1.0)) == pytest.approx(0.7069299824, rel=1e-9)
    assert ncf_margin(G, static(10.0)) == pytest.approx(1 / np.sqrt(101), rel=1e-9)
    assert ncf_margin(G, static(-1.0)) == 0.0


def test_loop_shaping():
    """SLICOT's SB10ID; Skogestad and Postlethwaite, example 9.3 (2.34)."""
    C = [[1, -1, 2, -4, 0, -3], [-3, 0, 5, -1, 1, 1], [-7, 5, 0, -8, 2, -2]]
    G = StateSpace(SB10_A, SB10_B[:, :2], C, [[1, -2], [0, 4], [5, -3]])
    found = ncfsyn(G)
    assert found.least_gamma == pytest.approx(3.3209163792, rel=1e-10)
    assert found.best_margin == pytest.approx(0.3011217043, rel=1e-9)
    assert found.gamma <= 1.1 * found.least_gamma * (1 + 1e-9)
    G = tf([200], np.polymul([10, 1], np.polymul([0.05, 1], [0.05, 1])))
    found = ncfsyn(G, tf([1, 2], [1, 0]))
    assert found.least_gamma == pytest.approx(2.3387667449, rel=1e-10)
    assert feedback(G, found.controller, sign=1).is_stable
    sampled = ncfsyn(G.sampled(0.02))
    assert sampled.controller.dt == 0.02
    assert sampled.gamma <= 1.1 * sampled.least_gamma * (1 + 1e-9)


def test_margins_of_a_known_loop():
    """L = k/(s (s + 1)(s + 2)) is unstable from k = 6 on, at sqrt(2) rad/s."""
    L = tf([1], [1, 3, 2, 0])
    found = margins(L)
    assert found.gain == pytest.approx(6.0, rel=1e-9)
    assert found.gain_frequency == pytest.approx(np.sqrt(2), rel=1e-9)
    w = found.phase_frequency
    value = complex(L.at(1j * w)[0, 0])
    assert abs(value) == pytest.approx(1.0, rel=1e-10)
    assert found.phase_deg == pytest.approx(180 + np.degrees(np.angle(value)), rel=1e-9)
    assert found.delay == pytest.approx(np.radians(found.phase_deg) / w, rel=1e-9)
    conditional = margins(tf(3 * np.polymul([1, 1], [1, 1]), [1, 0, 0, 0]))  # k (s + 1)^2/s^3 needs k > 1/2
    assert conditional.gain_down == pytest.approx(1 / 6, rel=1e-6)
    assert conditional.gain == np.inf
    sampled = margins(L.sampled(0.01))
    assert sampled.gain == pytest.approx(6.0, rel=0.05)
    assert margins(tf([2], [1, -1])).stable


def test_only_what_is_not_reached_is_named():
    """Two masses apart, a force on the first, its place measured: at the pole zero only the second is lost."""
    A, B, C = np.zeros((4, 4)), [[0], [0], [1], [0]], [[1, 0, 0, 0]]
    A[:2, 2:] = np.eye(2)
    G = StateSpace(A, B, C, state_names=("q:a", "q:b", "v:a", "v:b"), input_names="a", output_names="q:a")
    with pytest.raises(
        NumericalError,
        match=r"lqr: the inputs \(a\) do not reach the pole 0 \(states v:b: free motion of b\)$",
    ):
        lqr(G, 1.0)
    with pytest.raises(
        NumericalError,
        match=r"lqe: the outputs \(q:a\) do not see the pole 0 \(states q:b: free motion of b\)$",
    ):
        lqe(G, 1.0, 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_lqg_with_the_current_sample_is_the_best_of_all(seed):
    """Of sampled plants, unstable ones too: with the sample of the instant LQG costs what `h2syn` finds by other equations,
    without it more."""
    rng = np.random.default_rng(seed)
    n, m, p = 4, 2, 2
    A, B, C = rng.normal(size=(n, n)) / 2, rng.normal(size=(n, m)), rng.normal(size=(p, n))
    plant = StateSpace(A, B, C, dt=0.1)
    noise = np.sqrt(0.3)
    P = StateSpace(
        A,
        np.hstack([np.eye(n), np.zeros((n, p)), B]),
        np.vstack([np.eye(n), np.zeros((m, n)), C]),
        np.block([[np.zeros((n, n + p + m))], [np.zeros((m, n + p)), np.eye(m)], [np.zeros((p, n)), noise * np.eye(p),
                  np.zeros((p, m))]]),
        dt=0.1,
    )  # fmt: skip
    best = h2syn(P, controls=m, measurements=p).norm
    late, now = (
        lqg(plant, 1.0, 1.0, 1.0, noise**2, through=np.eye(n), current=current) for current in (False, True)
    )
    assert lft(P, now.controller).h2_norm() == pytest.approx(best, rel=1e-9)
    assert lft(P, late.controller).h2_norm() > best * (1 + 1e-3)
    closed = np.sort_complex(now.closed_loop().poles())
    np.testing.assert_allclose(np.sort(np.abs(closed)), np.sort(np.abs(now.poles)), atol=1e-7)


def test_lqg_of_a_held_input_with_the_current_sample():
    """A double integrator: what the filter by hand makes of some samples."""
    plant = tf([1], [1, 0, 0])
    found = sampled_lqg(plant, 0.1, [1, 1], 0.1, 1.0, 0.01, current=True)
    G, M = found.filter.plant, found.filter.M
    y, u, x, state = np.array([0.3, -0.1, 0.4]), np.zeros((3, 1)), np.zeros(2), np.zeros(2)
    for k, sample in enumerate(y):  # the filter by hand
        x = x + M @ (sample - G.C @ x)
        u[k] = -found.regulator.K @ x
        x = G.A @ x + G.B @ u[k]
    K = found.controller
    for k, sample in enumerate(y):
        np.testing.assert_allclose(K.C @ state + K.D @ [sample], u[k], atol=1e-14)
        state = K.A @ state + K.B @ [sample]


def test_wiener_hopf_takes_what_has_a_state_space():
    """A mechanical system and its StateSpace have the same best controller."""
    body = SecondOrder([[2.0]], [[0.5]], [[3.0]], [[1.0]], [[1.0]])
    shape = tf([1], [1, 1])
    one, other = (wiener_hopf(G, shape, samples=256) for G in (body, body.to_statespace()))
    assert one.cost == other.cost


def test_wiener_hopf_has_the_taps_of_its_parameter():
    """The impulse response of Y, summed, is Y at zero frequency; u = -Y (y - G u) has the closed loop of C."""
    G, shape = tf([2], [1, 1]), tf([3], [1, 2])
    found = wiener_hopf(G, shape, effort=0.1, sensor=0.3, samples=256)
    t = (
        np.arange(0, 20, 0.002) + 0.001
    )  # midpoints: 0.002^2/24 of the slope -100 at the start, 7e-5 of the sum
    still = found.parameter[0, 0, 0].real  # the first frequency is 0.6 % of the scale: its square is left
    assert found.impulse(t)[:, 0, 0].sum() * 0.002 == pytest.approx(still, rel=1e-3)
    assert not np.any(found.impulse([-1.0]))
    plant = G.frequency_response(found.frequency).response
    C = found.parameter / (1 - found.parameter * plant)
    np.testing.assert_allclose(found.controller, C, rtol=1e-12)
    assert found.accuracy < 1e-9


def test_a_spectral_factor_that_is_not_found_is_told():
    """Two outputs that are nearly the same, on few samples."""
    G = StateSpace(np.diag([-1.0, -50.0]), np.eye(2), [[1, 1], [1, 1.0001]])
    with pytest.raises(NumericalError, match=r"wiener_hopf: Wilson's iteration .* did not converge \(0.00"):
        wiener_hopf(G, G, effort=1e-3, sensor=1e-2, samples=64)
    assert wiener_hopf(G, G, effort=1e-3, sensor=1e-2, samples=512).accuracy < 1e-9


def test_reduced_order_of_a_plant_that_needs_no_more():
    """A second state that noise does not reach and the cost does not see: order one is as good as LQG."""
    plant = StateSpace(np.diag([0.3, -2.0]), [[1], [0.5]], [[1, 0]])
    found = reduced_lqg(plant, 1, np.diag([1.0, 0]), 0.5, 1.0, 0.2, through=[[1.0], [0]])
    assert found.cost == pytest.approx(found.full_cost, rel=1e-9)
    assert found.controller.order == 1
    assert found.residual < 1e-7
    again = reduced_lqg(
        plant, 1, np.diag([1.0, 0]), 0.5, 1.0, 0.2, through=[[1.0], [0]], start=found.controller
    )
    assert again.cost == pytest.approx(found.cost, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda G: wiener_hopf(G, G, samples=7), ArgumentError, "samples is 7, expected an even number"),
        (lambda G: wiener_hopf(tf([1], [1, -1]), G), ArgumentError, "the plant is not stable, expected"),
        (lambda G: wiener_hopf(G, G.sampled(0.1)), ArgumentError, "the disturbance is sampled, expected"),
        (lambda G: wiener_hopf(lambda w: w, lambda w: w), ArgumentError, "scale is not given"),
        (lambda G: wiener_hopf(G + static(0.5), G), ArgumentError, "the plant has a direct part D"),
        (lambda G: wiener_hopf(G, G, scale=-1.0), ArgumentError, "scale is -1.0, expected rad/s"),
        (
            lambda G: wiener_hopf(lambda w: w[:3], G),
            ArgumentError,
            r"the plant gives an array of shape \(3,\) for 1024 frequencies",
        ),
        (
            lambda G: wiener_hopf(G, lambda w: np.ones((len(w), 2, 1))),
            ArgumentError,
            "the disturbance has 2 outputs, the plant 1",
        ),
        (
            lambda G: wiener_hopf(lambda w: 1 / (1j * w - 1), G),
            NumericalError,
            "100 % of the plant's impulse response comes before time zero",
        ),
        (
            lambda G: wiener_hopf(tf([1], [1, 1e-3, 1]), G, effort=1e-6, sensor=1e-6, samples=64),
            NumericalError,
            "samples",
        ),
        (lambda G: reduced_lqg(G, 2, 1.0, 1.0, 1.0, 1.0), ArgumentError, "order is 2, expected a whole"),
        (lambda G: reduced_lqg(G, 1, 0.0, 1.0, 1.0, 1.0), NumericalError, "no controller is best"),
        (lambda G: reduced_lqg(G, 1, 1.0, 1.0, 1.0, 1.0, start=G * G), ArgumentError, "start has 2 states"),
        (
            lambda G: reduced_lqg(G.sampled(0.1), 1, 1.0, 1.0, 1.0, 1.0),
            UnsupportedError,
            "the plant is sampled or has a direct part",
        ),
        (
            lambda G: reduced_lqg(G, 1, 1.0, 1.0, 1.0, 1.0, start=tf([-1], [1, 1]) * 1.0 + static(0.1)),
            ArgumentError,
            "start has a direct part",
        ),
        (
            lambda G: reduced_lqg(tf([1], [1, 0, -1]), 1, 1.0, 1.0, 1.0, 1.0, start=tf([1], [1, 1])),
            NumericalError,
            "no controller of order 1 to begin with makes the loop stable",
        ),
    ],
)
def test_refusals_of_designs(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make(tf([1], [1, 1]))


# --- recovery at the outputs, weights over frequency ------------------------------------------------------------------


def test_recovery_at_the_outputs():
    """The loop G K at the outputs goes to that of the filter, C (s - A)^-1 L, where the plant has no zeros to the right."""
    G = StateSpace([[0, 1], [-3, -4]], [[0], [1]], [[2, 1]])
    filter = lqe(G, 1.0, 1.0, through=[[35], [-61]])
    target = StateSpace(G.A, filter.L, G.C)
    w = np.geomspace(0.1, 100, 30)
    wanted = target.frequency_response(w).response
    off = []
    for recovery in (1e2, 1e6, 1e10):
        found = output_ltr(filter, recovery)
        assert found.closed_loop().is_stable
        loop = (G * -found.controller).frequency_response(w).response
        off.append(np.abs(loop - wanted).max() / np.abs(wanted).max())
    assert off[2] < 0.01 < off[1] < off[0]
    by_gain = output_ltr(filter.L, 1e6, plant=G)
    np.testing.assert_allclose(by_gain.regulator.K, output_ltr(filter, 1e6).regulator.K)
    with pytest.raises(ArgumentError, match="output_ltr: a gain L needs plant="):
        output_ltr(filter.L, 1.0)
    with pytest.raises(ArgumentError, match="output_ltr: recovery is -1"):
        output_ltr(filter, -1.0)


@pytest.mark.parametrize("dt", [0.0, 0.1])
def test_constant_weights_are_those_of_lqg(dt):
    G = mass_chain(2).to_statespace()
    G = G.sampled(dt) if dt else G
    found = weighted_lqg(G, 2.0, 0.5, 1.0, 0.1)
    expected = lqg(G, 4.0, 0.25, 1.0, 0.1, weigh="outputs")
    w = np.geomspace(0.1, 30, 20)
    a, b = (K.frequency_response(w).response for K in (found.controller, expected.controller))
    if dt == 0:
        # both solve the same Riccati equations, to residuals of 1e-12; the H2 controller of a sampled plant is newer
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-7 * np.abs(b).max())
    else:  # it may use the sample at once, `lqg` that before: no worse
        assert found.norm**2 <= _sampled_cost(G, expected) * (1 + 1e-9)
    assert found.closed_loop.is_stable


def _sampled_cost(G, design):
    """E |2 y|^2 + |u/2|^2 of the loop with noise of 1 at the inputs and 0.1 at the outputs."""
    p, m = G.shape
    n = G.order
    plant = StateSpace(
        G.A,
        np.hstack([G.B, np.zeros((n, p)), G.B]),
        np.vstack([2 * G.C, np.zeros((m, n)), G.C]),
        np.block([
            [np.zeros((p, m + p)), 2 * G.D],
            [np.zeros((m, m + p)), 0.5 * np.eye(m)],
            [np.zeros((p, m)), np.sqrt(0.1) * np.eye(p), G.D],
        ]),
        G.dt,
    )  # fmt: skip
    return lft(plant, design.controller).h2_norm() ** 2


def test_weights_over_frequency_let_the_controller_roll_off():
    """A cost of controls that grows above 10 rad/s, and a disturbance below 1 rad/s: less gain there, more here."""
    G = tf([1], [1, 0.1, 1])
    plain = weighted_lqg(G, 1.0, 0.3, 1.0, 0.01)
    steep = weighted_lqg(G, 1.0, ([30, 100], [1, 1000 / 3]), 1.0, 0.01)
    slow = weighted_lqg(G, 1.0, 0.3, 1.0, 0.01, disturbance=([3.0], [1, 0.1]))
    gain = lambda K, w: abs(K.controller.frequency_response([w]).response[0, 0, 0])  # noqa: E731
    assert gain(steep, 100.0) < 0.3 * gain(plain, 100.0)
    assert gain(slow, 0.01) > 2 * gain(plain, 0.01)
    assert steep.controller.order == 3
    for found in (plain, steep, slow):
        assert found.closed_loop.is_stable
    with pytest.raises(NumericalError, match="weighted_lqg: D12 has rank 0, and there are 1 controls"):
        weighted_lqg(G, 1.0, ([1], [1, 1]), 1.0, 0.01)
    with pytest.raises(ArgumentError, match="weighted_lqg: output_weight has 2 inputs, expected 1 or 1"):
        weighted_lqg(G, static(np.eye(2)), 1.0, 1.0, 0.01)


@pytest.mark.parametrize("seed", [1, 8, 16])
def test_controllers_of_low_order_in_other_units(seed):
    """States, inputs, outputs and time in units from 1e-4 to 1e4: costs were up to 5 % higher, or there was no start."""
    rng = np.random.default_rng(seed)
    n = 5
    A, B, C = rng.normal(size=(n, n)), rng.normal(size=(n, 2)), rng.normal(size=(1, n))
    x, u, y, pace = (10 ** rng.uniform(-4, 4, k) for k in (n, 2, 1, 1))
    plain = StateSpace(A, B, C)
    other = StateSpace(pace * A * x[:, None] / x, pace * B * x[:, None] / u, C / x * y)
    Q = rng.uniform(0, 1, n)
    one = reduced_lqg(plain, n - 1, Q, 1.0, np.ones(n), 0.1, through=np.eye(n))
    two = reduced_lqg(other, n - 1, Q / x**2, 1 / u**2, pace * x**2, 0.1 * y**2 / pace, through=np.eye(n))
    # a cost per second either way; the search ends where its minimum is flat
    assert two.cost == pytest.approx(one.cost, rel=1e-4)
    assert two.full_cost == pytest.approx(one.full_cost, rel=1e-6)
    assert feedback(other, two.controller, sign=1).is_stable
