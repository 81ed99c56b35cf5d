"""Responses, zeros, norms, gramians and sampling: published values, and identities on random systems."""

from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from control_helpers import random_system

from alembert import control
from alembert.control import (
    SecondOrder,
    StateSpace,
    linf_norm,
    load_mat,
    norms,
    static,
    tf,
)
from alembert.control.gramian import lyapunov, lyapunov_by_modes, modal_form
from alembert.control.norms import impulse_gain, peak_gain
from alembert.control.reachability import lost_modes
from alembert.control.responses import ResponseEvaluator, bilinear
from alembert.errors import ArgumentError, NumericalError
from alembert.verify.control_plants import mass_chain, power_system, three_modes

ISS = Path(__file__).parent / "data" / "iss1_2.mat"


def test_norms_of_three_weakly_damped_modes():
    """SLICOT's AB13DD prints 0.5e6 at 1.414; the digits are those of two other computations."""
    G = three_modes()
    found = G.hinf_norm()
    assert found.gain == pytest.approx(500000.0001, rel=1e-9)
    assert found.frequency == pytest.approx(1.4142135624, rel=1e-10)
    assert found.gain <= found.upper <= 1.00001 * found.gain
    assert G.h2_norm() == pytest.approx(526.7826889, rel=1e-9)


def test_space_station():
    """COMPleib's ISS1, 270 states."""
    G = load_mat(ISS)
    found = G.hinf_norm()
    assert found.gain == pytest.approx(0.1158873137, rel=1e-9)
    assert found.frequency == pytest.approx(0.7750930578, rel=1e-8)
    expected = [0.05794274, 0.05794011, 0.01689768, 0.01689605, 0.00601035, 0.00601017]
    np.testing.assert_allclose(G.hankel_singular_values()[:6], expected, atol=6e-9)
    P, _ = G.gramians()
    residual = G.A @ P + P @ G.A.T + G.B @ G.B.T
    assert np.abs(residual).max() < 1e-9 * np.abs(G.A @ P).max()


def test_rounding_of_modes_is_bounded_entry_by_entry():
    """The products of conjugate vectors, by real and imaginary parts, are those of complex matrices."""
    A = np.random.default_rng(4).normal(size=(31, 31))
    modes = modal_form(A)
    np.testing.assert_allclose(modes.inverse @ modes.V, np.eye(31), atol=1e-11)  # condition 1e3, 31 terms
    spoiled, inverse = A + 1e-3, 1.001 * modes.inverse
    N, M = norms.rounding_of_modes(spoiled, modes.V, inverse, modes)
    np.testing.assert_allclose(N, np.abs(inverse @ (spoiled @ modes.V - modes.V * modes.poles)), atol=1e-11)
    np.testing.assert_allclose(M, np.abs(inverse @ modes.V - np.eye(31)), atol=1e-11)


def test_power_system():
    G = power_system()
    expected = [2.51387937, 2.08456252, 1.91779535, 0.76664150, 0.54728542, 0.02526614, 0.02458239]
    np.testing.assert_allclose(G.hankel_singular_values(), expected, atol=6e-9)
    found = G.hinf_norm()
    assert found.gain == pytest.approx(4.2327751327, rel=1e-9)
    assert found.frequency == pytest.approx(3.09328, abs=6e-6)


def test_chain_stays_of_second_order():
    S = mass_chain()
    expected = [0.19350926, 0.12833534, 0.08443601, 0.05707717, 0.03854163, 0.02526469]
    np.testing.assert_allclose(S.position_singular_values()[:6], expected, atol=6e-9)
    G = S.to_statespace()
    np.testing.assert_allclose(
        G.hankel_singular_values()[:4], [0.19438975, 0.19260731, 0.12913911, 0.12746145], atol=6e-9
    )
    w = np.geomspace(0.1, 100, 40)
    expected = G.frequency_response(w).response
    np.testing.assert_allclose(S.frequency_response(w).response, expected, atol=1e-12)
    np.testing.assert_allclose(
        S.in_modes().to_statespace().frequency_response(w).response, expected, atol=1e-12
    )
    uneven = SecondOrder(S.M, S.D + np.diag(np.linspace(0, 0.1, 10)), S.K, S.F, S.C_q, S.C_q)
    expected = uneven.to_statespace().frequency_response(w).response
    np.testing.assert_allclose(uneven.frequency_response(w).response, expected, atol=1e-11)
    errors = [float((S.reduced(k).to_statespace() - G).hinf_norm()) for k in (2, 5, 9, 10)]
    assert errors[0] > errors[1] > errors[2] > 1e-6
    assert errors[3] < 1e-9
    small = S.reduced(3)  # its K is not symmetric
    expected = small.to_statespace().frequency_response(w).response
    np.testing.assert_allclose(small.frequency_response(w).response, expected, atol=1e-11)
    low = S.truncated(range(4))
    np.testing.assert_allclose(low.to_statespace().is_stable, True)
    np.testing.assert_allclose(np.sort(np.abs(low.poles())), np.sort(np.abs(S.poles()))[:8], rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda S: SecondOrder(-S.M, S.D, S.K, S.F, S.C_q), ArgumentError, "M has the eigenvalue -1"),
        (lambda S: S.reduced(11), ArgumentError, "expected 1 to 10 positions"),
        (
            lambda S: SecondOrder(S.M, S.D, S.K + np.eye(10, k=1), S.F, S.C_q).in_modes(),
            ArgumentError,
            "not symmetric",
        ),
        (lambda S: SecondOrder(S.M, -S.D, S.K, S.F, S.C_q).reduced(2), NumericalError, "not stable"),
        (
            lambda S: SecondOrder(np.eye(1), [[0]], [[4.0]], [[1]], [[1]]).frequency_response(2.0),
            NumericalError,
            "undamped mode",
        ),
    ],
)
def test_refusals_of_second_order_systems(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make(mass_chain())


@pytest.mark.parametrize("seed", range(6))
def test_peak_is_never_below_a_dense_grid(seed):
    rng = np.random.default_rng(seed)
    G = random_system(rng, 6, 2, 3, direct=seed % 2 == 0, dt=0.0 if seed < 4 else 0.3)
    found = G.hinf_norm()
    top = np.pi / G.dt if G.is_discrete else 1e4
    w = np.concatenate([[0.0], np.geomspace(1e-4, top, 20000)])
    grid = G.frequency_response(w).singular_values[:, 0].max()
    assert grid <= found.gain * (1 + 1e-9)
    assert grid == pytest.approx(found.gain, rel=1e-3)
    at = min(found.frequency, 1e12)
    assert G.frequency_response(at).singular_values[0, 0] == pytest.approx(found.gain, rel=1e-8)


def test_direct_part_sets_the_level_and_hides_a_peak():
    """1 + a little resonance: the peak rises above the level at infinity by 1e-4 in a band of 1e-3."""
    G = static(1.0) + 2e-7 * tf([1, 0], [1, 2e-3, 1])
    found = G.hinf_norm()
    assert found.gain == pytest.approx(1 + 1e-4, rel=1e-9)
    assert found.frequency == pytest.approx(1.0, rel=1e-4)
    assert static(-3.0).hinf_norm().gain == 3.0
    falling = tf([1, 3], [1, 1])
    assert falling.hinf_norm().frequency == pytest.approx(0.0, abs=1e-6)
    rising = tf([3, 1], [1, 1])
    assert rising.hinf_norm().gain == pytest.approx(3.0, rel=1e-12)
    assert rising.hinf_norm().frequency == np.inf


def test_unstable_systems_have_no_finite_norm():
    G = tf([1], [1, -1])
    assert G.hinf_norm().gain == np.inf
    assert G.h2_norm() == np.inf
    assert linf_norm(G).gain == pytest.approx(1.0)
    assert tf([1, 1], [1, 2]).h2_norm() == np.inf
    assert linf_norm(tf([1], [1, 0, 1])).gain == np.inf
    assert float(tf([2], [1, 1]).hinf_norm()) == pytest.approx(2.0)
    with pytest.raises(NumericalError, match="not stable, it has the pole 1"):
        G.gramians()


def _structure(rng, modes, *, damping=(1e-4, 1e-1), inputs=2, outputs=2, direct=0.0):
    """Modes of random frequencies and damping ratios, in coordinates that mix them all."""
    w, d = np.sort(rng.uniform(0.1, 30, modes)), 10 ** rng.uniform(*np.log10(damping), modes)
    A = np.block([[np.zeros((modes, modes)), np.eye(modes)], [-np.diag(w**2), -np.diag(2 * d * w)]])
    T = np.linalg.qr(rng.normal(size=A.shape))[0]
    B, C = rng.normal(size=(2 * modes, inputs)), rng.normal(size=(outputs, 2 * modes))
    return StateSpace(A, B, C, direct * rng.normal(size=(outputs, inputs))).transformed(T)


@pytest.mark.parametrize("seed", range(8))
def test_intervals_find_the_peak_that_eigenvalues_find(seed):
    rng = np.random.default_rng(seed)
    G = [
        lambda: _structure(rng, 25),
        lambda: _structure(rng, 20, damping=(1e-7, 1e-5), inputs=1, outputs=3),
        lambda: _structure(rng, 20, direct=30.0),
        lambda: random_system(rng, 40, 2, 3),
        lambda: random_system(rng, 40, 3, 2, direct=True),
        lambda: random_system(rng, 36, 2, 2, direct=True, dt=0.2),
        lambda: _structure(rng, 20, damping=(0.3, 3.0)),  # some overdamped
        lambda: _structure(rng, 16) * static(np.diag([1.0, 0.0])),  # not all reached
    ][seed]()
    found, expected = G.hinf_norm(), linf_by_eigenvalues(G)
    # with damping ratios of 1e-7 the response itself is rounded by 1e-7: what is true is computed with more digits
    true = _gain_with_more_digits(bilinear(G) if G.is_discrete else G, expected.frequency)
    assert found.gain == pytest.approx(true, rel=1e-8, abs=found.upper - found.gain)
    assert found.gain <= found.upper <= found.gain * (1 + (1.1e-5 if seed == 1 else 1e-8))
    assert true <= found.upper


def _gain_with_more_digits(G, w):
    """Of C X + D, where the residual of X is computed in long double."""
    A, B, C, D = (x.astype(np.clongdouble) for x in G.matrices)
    if not np.isfinite(w):
        return float(np.linalg.norm(G.D, 2))
    M = 1j * np.longdouble(w) * np.eye(len(A)) - A
    X = np.zeros_like(B)
    for _ in range(5):
        X = X + np.linalg.solve(M.astype(complex), (B - M @ X).astype(complex))
    return float(np.linalg.norm((C @ X + D).astype(complex), 2))


def test_a_climb_between_neighbours_ends():
    """Of an interval without numbers inside, as rounding may leave; found on another processor."""
    G = _structure(np.random.default_rng(0), 20)
    search = norms._Search(*G.matrices, modal_form(G.A), 1e-9)
    search.climb(1.0, float(np.nextafter(1.0, 2.0)))
    assert search.best == pytest.approx(np.linalg.norm(G.frequency_response([1.0]).response[0], 2), rel=1e-9)


def linf_by_eigenvalues(G):
    twin = bilinear(G) if G.is_discrete else G
    return peak_gain(*twin.balanced_scales().matrices)


@pytest.mark.parametrize("size", [(2, 3), (3, 1)])
def test_impulse_responses_prove_stability_and_the_peak(size):
    """Powers of the bilinear transform of a dense matrix say that it is stable, their rows and columns how large it gets."""
    rng = np.random.default_rng(size[1])
    G = random_system(rng, 60, *size)
    found, expected = impulse_gain(*G.matrices, 1e-9), linf_by_eigenvalues(G)
    assert found is not None
    assert found.gain == pytest.approx(expected.gain, rel=1e-9)
    assert found.frequency == pytest.approx(expected.frequency, rel=1e-4, abs=1e-6)  # flat at the peak
    assert expected.gain <= found.upper <= found.gain * (1 + 1e-8)
    assert G.hinf_norm() == impulse_gain(*G.balanced_scales().matrices, 1e-9)
    beyond = G.A - (np.linalg.eigvals(G.A).real.max() - 1e-9) * np.eye(60)
    assert impulse_gain(beyond, *G.matrices[1:], 1e-9) is None
    assert StateSpace(beyond, *G.matrices[1:]).hinf_norm().gain == np.inf


def test_traces_tell_the_mean_damping():
    """Of poles -d +- j w, whatever the coordinates: the mean of d over the root mean square of w, if all d are equal."""
    rng = np.random.default_rng(5)
    w = np.array([1.0, 2.0, 5.0])
    T = rng.normal(size=(6, 6))
    A = T @ scipy.linalg.block_diag(*([[-0.1, x], [-x, -0.1]] for x in w)) @ np.linalg.inv(T)
    assert norms.mean_damping(A) == pytest.approx(0.1 / np.sqrt(np.mean(w**2)), rel=1e-9)
    assert norms.mean_damping(-np.diag([1.0, 2.0, 3.0])) == np.inf


def test_impulses_prove_what_oscillates_and_has_no_modes():
    """Twenty equal, coupled oscillators in a row: no eigenvectors, and poles that look as if modes were faster."""
    n, rng = 40, np.random.default_rng(6)
    A = np.kron(np.eye(20), [[-0.4, 1], [-1, -0.4]]) + np.diag(np.full(n - 2, 0.2), 2)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    G = StateSpace(Q @ A @ Q.T, Q[:, -2:], Q[:, :2].T)
    assert norms.mean_damping(G.A) < 0.5
    assert modal_form(G.A) is None
    found = G.hinf_norm()
    assert found == impulse_gain(*G.balanced_scales().matrices, 1e-9)
    assert found.gain == pytest.approx(linf_by_eigenvalues(G).gain, rel=1e-9)


def test_what_impulse_responses_leave_to_modes():
    """Nothing to excite, powers that overflow, responses that last, and a transform without an inverse."""
    rng = np.random.default_rng(2)
    A, B, C, D = random_system(rng, 30, 1, 1).matrices
    assert impulse_gain(A, 0 * B, C, D, 1e-9) is None
    assert impulse_gain(A + 1e6 * np.eye(30), B, C, D, 1e-9) is None
    assert impulse_gain(*_structure(rng, 20).matrices, 1e-9) is None
    assert impulse_gain(np.eye(30), B, C, D, 1e-9) is None
    assert impulse_gain(0 * A, B, C, D, 1e-9) is None


def test_intervals_see_a_peak_between_all_poles():
    """Two strong, well damped modes hide a weak one whose peak lies between them; many others lie beside."""
    others = _structure(np.random.default_rng(3), 20, damping=(0.2, 0.3), inputs=1, outputs=1)
    hidden = tf([1], [1, 2e-6, 25.0]) * 2e-4
    G = others / others.hinf_norm().gain + hidden
    found = G.hinf_norm()
    assert found.gain == pytest.approx(20.0, rel=0.1)  # 2e-4 / (2e-6 * 5), and up to 1 of the others
    assert found.gain == pytest.approx(linf_by_eigenvalues(G).gain, rel=1e-8)
    notch = tf([1, 1e-4, 1], [1, 1e-4 * 1.001, 1])  # a pole and a zero that nearly cancel
    G = notch * others
    assert G.hinf_norm().gain == pytest.approx(linf_by_eigenvalues(G).gain, rel=1e-8)


def test_intervals_where_the_direct_part_sets_the_level():
    small = _structure(np.random.default_rng(5), 20, damping=(0.1, 0.3), inputs=1, outputs=1)
    small = small * (1e-3 / small.hinf_norm().gain)
    G = static(1.0) + small * tf(
        [-1, 0], [1, 1]
    )  # the level at infinity, and a little more or less elsewhere
    found = G.hinf_norm()
    assert found.gain == pytest.approx(linf_by_eigenvalues(G).gain, rel=1e-8)
    G = static(1.0) + static(-1e-3) * many_lags(20)
    found = G.hinf_norm()  # below one everywhere but at infinity
    assert (found.gain, found.frequency) == (pytest.approx(1.0, rel=1e-12), np.inf)


def many_lags(count):
    """A sum of lags, which is positive real."""
    return StateSpace(
        -np.diag(np.geomspace(1e-2, 1e3, 2 * count)), np.ones((2 * count, 1)), np.ones((1, 2 * count))
    )


def test_systems_without_modes_take_the_way_of_eigenvalues():
    """A chain of 40 equal lags has one pole; the gain of (a / (s + 1))^40 is largest at zero frequency."""
    n = 40
    A = -np.eye(n) + np.diag(np.full(n - 1, 1.1), -1)
    G = StateSpace(A, np.eye(n)[:, :1], np.eye(n)[-1:])
    assert modal_form(A) is None
    assert G.hinf_norm().gain == pytest.approx(1.1 ** (n - 1), rel=1e-9)
    nonnormal = StateSpace(
        np.triu(np.full((n, n), 0.4), 1) - np.diag(np.linspace(1, 2, n)), np.ones((n, 1)), np.ones((1, n))
    )
    w = np.linspace(0, 20, 20001)
    grid = nonnormal.frequency_response(w).singular_values.max()
    assert nonnormal.hinf_norm().gain >= grid * (1 - 1e-9)


def test_poles_at_the_axis_and_beyond():
    G = _structure(np.random.default_rng(6), 20)
    free = G[0, 0] + tf([1], [1, 0, 4])
    assert free.hinf_norm().gain == np.inf
    assert linf_norm(free).gain == np.inf
    for damping in (
        1e-6,
        1e-9,
        1e-11,
    ):  # nearly free: 1 / (damping w) is the peak, or more digits are lost than given
        near = G[0, 0] + tf([1], [1, damping, 4])
        assert near.hinf_norm().gain == pytest.approx(1 / (2 * damping), rel=max(1e-4, 3e-16 / damping))
    A = G.A + 0.2 * np.eye(G.order)  # some modes grow
    unstable = StateSpace(A, G.B, G.C)
    assert unstable.hinf_norm().gain == np.inf
    assert linf_norm(unstable).gain == pytest.approx(linf_by_eigenvalues(unstable).gain, rel=1e-8)


def test_modes_of_mechanical_systems_of_half_their_size():
    S = mass_chain()
    for damping in (
        S.D,
        100 * S.D,
        S.D + np.diag(np.linspace(0, 0.1, 10)),
    ):  # light, some overdamped, coupled
        A = SecondOrder(S.M, damping, S.K, S.F, S.C_q).to_statespace().A
        form = modal_form(A)
        np.testing.assert_allclose(
            form.V @ np.diag(form.poles) @ form.inverse, A, atol=1e-9 * np.abs(A).max()
        )
        np.testing.assert_allclose(form.inverse @ form.V, np.eye(len(A)), atol=1e-9)
        expected = np.sort_complex(np.linalg.eigvals(A))
        np.testing.assert_allclose(np.sort_complex(form.poles), expected, atol=1e-9 * np.abs(A).max())
    assert modal_form(np.array([[0.0, 1.0], [0.0, 0.0]])) is None
    assert modal_form(np.array([[0.0, 1.0], [-1.0, -2.0]])) is None  # critically damped
    assert modal_form(np.zeros((0, 0))) is None


def test_peak_of_complex_systems_is_two_sided():
    A = np.array([[-0.1 - 3j]])
    found = peak_gain(A, np.eye(1), np.eye(1), np.zeros((1, 1)))
    assert found.gain == pytest.approx(10.0)
    assert found.frequency == pytest.approx(-3.0)


@pytest.mark.parametrize("dt", [0.0, 0.1])
def test_h2_norm_is_the_energy_of_the_impulse_response(dt):
    G = random_system(np.random.default_rng(7), 4, 2, 2, direct=dt > 0, dt=dt)
    n = 40000
    t = (dt or 1e-3) * np.arange(n)
    y = [G.impulse_response(t, input=k).y for k in range(2)]
    energy = (
        sum(np.sum(x**2) for x in y)
        if dt
        else sum(scipy.integrate.simpson(x**2, x=t, axis=0).sum() for x in y)
    )
    assert G.h2_norm() ** 2 == pytest.approx(energy, rel=1e-8)  # Simpson's rule with h^4 = 1e-12


def test_modal_and_schur_evaluation_agree():
    rng = np.random.default_rng(8)
    for n, m, p in ((5, 2, 3), (8, 3, 1), (1, 1, 1)):
        G = random_system(rng, n, m, p)
        jordan = StateSpace(np.diag(-np.ones(n)) + np.eye(n, k=1), G.B, G.C, G.D)  # no eigenvectors
        for H, modal in ((G, True), (jordan, n == 1)):
            evaluate = ResponseEvaluator(*H.matrices)
            assert (evaluate.modes is not None) == modal
            s = 1j * np.array([0.0, 0.3, 2.0])
            np.testing.assert_allclose(evaluate(s), [H.at(x) for x in s], rtol=1e-9, atol=1e-9)
    with pytest.raises(NumericalError, match="the frequency 1 rad/s is a pole"):
        tf([1], [1, 0, 1]).frequency_response([0.5, 1.0])


@pytest.mark.parametrize(
    "kind", ["modal damping", "masses", "a dashpot", "in balanced units", "a strong dashpot"]
)
def test_lyapunov_equations_by_modes_agree_with_bartels_and_stewart(kind, monkeypatch):
    """Both ways of (A, A^T); damping that couples modes is left to the Schur form."""
    n, rng = 40, np.random.default_rng(3)
    S = mass_chain(n)
    M, D = np.eye(n), S.D.copy()
    if kind != "modal damping":
        M = np.diag(rng.uniform(1, 3, n)) + 0.1 * np.eye(n, k=1) + 0.1 * np.eye(n, k=-1)
        D = 0.002 * S.K + 0.01 * M
    D[3, 3] += {"a dashpot": 1e-3, "a strong dashpot": 5.0}.get(kind, 0.0)
    G = SecondOrder(M, D, S.K, S.F, S.C_q).to_statespace()
    G = G.balanced_scales() if kind == "in balanced units" else G
    for A in (G.A, G.A.T):
        Q = rng.normal(size=(2 * n, 3))
        Q = Q @ Q.T
        by_modes = lyapunov_by_modes(A, Q)
        assert (by_modes is None) == ("dashpot" in kind)
        found, expected = lyapunov(A, Q), scipy.linalg.solve_continuous_lyapunov(A, -Q)
        # rounding in A of n eps |A| moves X by that over twice the slowest decay, 0.005: 80 * 2e-16 * 400 / 0.01
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
        if by_modes is not None:
            np.testing.assert_array_equal(found, by_modes)


def test_what_the_modal_form_of_lyapunov_equations_leaves_to_others():
    for A in (
        np.eye(3),  # odd
        np.eye(4),  # no positions
        [[0, 0, 1, 1], [0, 0, 0, 1], [-1, 0, -1, 0], [0, -1, 0, -1]],  # rates mixed
        [[0, 0, 1, 0], [0, 0, 0, 1], [0, -1, -1, 0], [1, 0, 0, -1]],  # circulatory: complex modes
        [[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, -1, 0], [0, -1, 0, -1]],  # a double mode with one vector
        [[0, 1], [-1, 0]],  # no damping
    ):
        assert lyapunov_by_modes(np.array(A, dtype=float), np.eye(len(A))) is None


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
def test_zeros_make_the_system_matrix_lose_rank(shape):
    rng = np.random.default_rng(9)
    p, m = shape
    G = random_system(rng, 5, m, p, direct=False)
    if m == p:
        z = G.zeros()
        assert len(z) == 3  # n - m with a regular C B
        for s in z:
            M = np.block([[G.A - s * np.eye(5), G.B], [G.C, G.D]])
            values = np.linalg.svd(M, compute_uv=False)
            assert values[-1] < 1e-9 * values[0]
    else:
        assert len(G.zeros()) == 0  # none in general
    from alembert.control import series

    both = series(tf([1, -2], [1, 3]) * np.eye(1), static(np.ones((2, 1))))
    np.testing.assert_allclose(both.zeros(), [2.0], atol=1e-10)


def test_zeros_of_transfer_functions():
    np.testing.assert_allclose(tf([1, -2], [1, 3, 2]).zeros(), [2.0], atol=1e-12)
    np.testing.assert_allclose(tf([1, 0, 1], [1, 3, 2]).zeros(), [-1j, 1j], atol=1e-12)
    G = tf([[1, 1], [[2, 1], 2]], np.polymul([0.2, 1], [1, 1]))  # Skogestad and Postlethwaite, example 3.8
    np.testing.assert_allclose(G.zeros(), [0.5], atol=1e-10)
    assert len(static(np.eye(2)).zeros()) == 0
    assert len(tf([1], [1, 0, 0]).zeros()) == 0


def test_minimal_realisation():
    G = tf([1, 1], [1, 3, 2])  # (s + 1) cancels
    H = (G + G).minimal()
    assert H.order == 1
    np.testing.assert_allclose(H.at(1j), 2 * G.at(1j), atol=1e-12)
    assert not G.controllable() or not G.observable()
    full = random_system(np.random.default_rng(4), 5, 2, 2)
    assert full.minimal().order == 5


def test_what_inputs_reach_does_not_depend_on_the_units_of_the_states():
    """A stiff chain (1e6 rad/s) beside an oscillator that nothing drives; and the same with states in far apart units."""
    K = scipy.linalg.block_diag(1e12 * (2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)), 1e12)
    ends = np.eye(5)[:, [0, 3]]
    G = control.SecondOrder(np.eye(5), 1e-9 * K, K, ends[:, :1], ends[:, 1:].T).to_statespace()
    units = np.diag(10.0 ** np.random.default_rng(0).uniform(-8, 8, 10))
    for H in (G, G.transformed(units)):
        for found in (H.controllable(), H.observable()):
            assert (found.rank, found.size) == (8, 10)
            np.testing.assert_allclose(found.lost @ found.lost.T, np.eye(2), atol=1e-12)
            own = np.abs(found.lost[:, [4, 9]])  # position and speed of the oscillator
            np.testing.assert_allclose(np.linalg.norm(own), np.sqrt(2), rtol=1e-9)


@pytest.mark.parametrize("method", ["zoh", "foh", "tustin"])
def test_sampling_and_back(method):
    G = random_system(np.random.default_rng(11), 4, 2, 2)
    D = G.sampled(0.05, method=method)
    for a, b in zip(D.continuous(method=method).matrices, G.matrices, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    name = {"tustin": "bilinear"}.get(method, method)
    expected = scipy.signal.cont2discrete(G.matrices, 0.05, method=name)
    theirs = StateSpace(*expected[:4], dt=0.05)
    w = np.array([0.1, 2.0, 30.0])
    ours = D.frequency_response(w).response
    np.testing.assert_allclose(ours, theirs.frequency_response(w).response, atol=1e-10)


def test_prewarping_keeps_the_response():
    G = tf([1], [1, 0.1, 1])
    D = G.sampled(0.5, method="tustin", prewarp=1.0)
    np.testing.assert_allclose(
        D.frequency_response(1.0).response, G.frequency_response(1.0).response, rtol=1e-12
    )
    np.testing.assert_allclose(D.continuous(method="tustin", prewarp=1.0).A, G.A, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda G: G.sampled(0.1).sampled(0.1), ArgumentError, "sampled already"),
        (lambda G: G.sampled(0.0), ArgumentError, "dt is 0.0"),
        (lambda G: G.sampled(0.1, method="zho"), ArgumentError, "method is 'zho', expected one of 'zoh'"),
        (lambda G: G.sampled(0.1, prewarp=1.0), ArgumentError, "prewarp is for the method 'tustin'"),
        (lambda G: G.sampled(0.1, method="tustin", prewarp=40.0), ArgumentError, "below that of Nyquist"),
        (lambda G: G.continuous(), ArgumentError, "continuous already"),
        (
            lambda G: StateSpace([[-0.5]], [1], [1], dt=1.0).continuous(),
            NumericalError,
            "real and not positive",
        ),
        (
            lambda G: StateSpace([[2.0]], [1], [1]).sampled(1.0, method="tustin"),
            NumericalError,
            "sends to infinity",
        ),
        (
            lambda G: StateSpace([[-1.0]], [1], [1], dt=1.0).continuous(method="tustin"),
            NumericalError,
            "pole at -1",
        ),
        (lambda G: G.simulate([1.0, 0.0]), ArgumentError, "increasing times"),
        (lambda G: G.simulate([0.0, 1.0], np.ones((3, 1))), ArgumentError, r"u has shape \(3, 1\)"),
        (lambda G: G.simulate([0.0, 1.0], None, [1.0]), ArgumentError, r"x0 has shape \(1,\)"),
        (lambda G: G.simulate([0.0, 1.0], hold="second"), ArgumentError, "hold is 'second'"),
        (lambda G: G.sampled(0.1).simulate([0.0, 0.2]), ArgumentError, "go up by dt = 0.1"),
    ],
)
def test_refusals(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make(tf([1], [1, 0.1, 1]))


def test_time_responses():
    G = tf([1], [1, 0.4, 1])
    t = np.linspace(0, 20, 300)
    wd = np.sqrt(1 - 0.04)
    expected = 1 - np.exp(-0.2 * t) * (np.cos(wd * t) + 0.2 / wd * np.sin(wd * t))
    np.testing.assert_allclose(G.step_response(t).y[:, 0], expected, atol=1e-12)
    impulse = np.exp(-0.2 * t) * np.sin(wd * t) / wd
    np.testing.assert_allclose(G.impulse_response(t).y[:, 0], impulse, atol=1e-12)
    ramp = G.simulate(t, t, hold="first").y[:, 0]  # the integral of the step response
    np.testing.assert_allclose(ramp, tf([1], [1, 0.4, 1, 0]).step_response(t).y[:, 0], atol=1e-10)
    assert G.step_response().y[-1, 0] == pytest.approx(1.0, abs=0.02)
    D = G.sampled(0.1)
    np.testing.assert_allclose(
        D.step_response().y[:50, 0], G.step_response(0.1 * np.arange(50)).y[:, 0], atol=1e-12
    )
    assert D.impulse_response().y[0, 0] == 0


@pytest.mark.parametrize("seed", range(3))
def test_units_of_states_do_not_matter(seed):
    """The same system with its states in units up to 1e12 apart: norms, singular values, reductions, placement."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 6))
    A -= np.eye(6) * (np.linalg.eigvals(A).real.max() + 0.3)
    G = control.StateSpace(A, rng.standard_normal((6, 2)), rng.standard_normal((2, 6)), np.eye(2))
    H = G.transformed(np.diag(10.0 ** rng.uniform(-6, 6, 6)))
    plain, moved = (control.StateSpace(*x.matrices[:3]) for x in (G, H))
    assert moved.h2_norm() == pytest.approx(plain.h2_norm(), rel=1e-12)
    # powers of two do not undo the units to the last digit; small values have 1e-16 of the first ones
    first = control.hankel_singular_values(plain)
    np.testing.assert_allclose(control.hankel_singular_values(moved), first, rtol=1e-9, atol=1e-9 * first[0])
    for reduce in (
        lambda x: control.balanced_truncation(x, 4),
        lambda x: control.stochastic_truncation(x, 4),
        lambda x: control.frequency_limited_truncation(x, 4, band=(0.1, 2.0)),
    ):
        np.testing.assert_allclose(reduce(H).system.at(1j), reduce(G).system.at(1j), rtol=1e-6, atol=1e-6)
    found = control.place(H, -1 - np.arange(6.0))
    assert found.error < 1e-5
    unstable = H.with_matrices(H.A + np.eye(6), H.B, H.C, H.D)
    assert lost_modes(unstable) == ""


@pytest.mark.parametrize("spread", [1, 2, 4])
def test_gramians_in_units_far_apart(spread):
    """States in units from 10^-4 to 10^4: entries that were small in these units were rounding, variances negative."""
    rng = np.random.default_rng(spread)
    for n in (2, 5, 8):
        A = rng.normal(size=(n, n))
        A -= (np.linalg.eigvals(A).real.max() + 0.3) * np.eye(n)
        B, C, x = rng.normal(size=(n, 1)), rng.normal(size=(1, n)), 10 ** rng.uniform(-spread, spread, n)
        P, Q = control.gramians(StateSpace(A, B, C))
        p, q = control.gramians(StateSpace(A * x[:, None] / x, B * x[:, None], C / x))
        np.testing.assert_allclose(p / x / x[:, None], P, rtol=0, atol=1e-10 * np.abs(P).max())
        np.testing.assert_allclose(q * x * x[:, None], Q, rtol=0, atol=1e-10 * np.abs(Q).max())
