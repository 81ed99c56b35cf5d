"""Regulators: the published two-link case of Lin and Yae, decoupling, pole placement."""

import numpy as np
import pytest
from linear_helpers import runge_kutta, state, tree

from alembert import library
from alembert.errors import UnsupportedError
from alembert.linear import decoupled_pd, linearize, lqr, place_poles, trim
from alembert.verify.mechanisms import lin_yae_two_link
from refusals import refusal

# The paper gives no poles. Gains too low for the nonlinear weight lose the links from 1 rad (poles at -1 +- 1j do).
REGULATORS = {
    "decoupled": lambda linear: decoupled_pd(linear, [2.0, 3.0], 0.7),
    "robust": lambda linear: place_poles(linear, [-1.0, -1.5, -2.0, -2.5], method="KNV0"),
    "complex": lambda linear: place_poles(linear, [-3 + 2j, -3 - 2j, -4 + 2j, -4 - 2j]),
}


@pytest.mark.parametrize("deviation", [0.05, 1.0])
@pytest.mark.parametrize("name", REGULATORS)
def test_published_regulators_bring_the_two_link_back(name, deviation):
    model = lin_yae_two_link()
    regulator = REGULATORS[name](linearize(model, [0.0, 0.0]))
    assert np.all(regulator.poles().real < -0.9)
    q, v = runge_kutta(
        model, np.full(2, deviation), np.zeros(2), regulator.efforts, duration=12.0, steps=1200
    )
    assert np.abs(q).max() < 3 * deviation
    assert np.abs(q[-1]).max() < 1e-3 * deviation
    assert np.abs(v[-1]).max() < 1e-3 * deviation


def test_decoupled_pd_decouples():
    """The closed loop is one oscillator per degree of freedom, whatever the coupling, friction and springs."""
    model = tree("2")
    q, _, tau = state(model, seed=4)
    n = model.nv
    w, zeta = np.linspace(1.0, 3.0, n), np.linspace(0.1, 1.2, n)
    linear = linearize(model, q, np.zeros(n), tau)
    regulator = decoupled_pd(linear, w, zeta)
    closed = linear.A - linear.B @ regulator.K
    scale = 1e-11 * np.abs(linear.A).max()
    np.testing.assert_allclose(closed[n:, :n], -np.diag(w**2), atol=scale)
    np.testing.assert_allclose(closed[n:, n:], -np.diag(2 * zeta * w), atol=scale)
    M = model.mass_matrix(q)  # K_V = M L1 + P1, K_P = M L2 + P2 with P on the right-hand side
    np.testing.assert_allclose(regulator.K_V, M @ (np.diag(2 * zeta * w) + linear.A[n:, n:]), atol=scale * 10)
    np.testing.assert_allclose(regulator.K_P, M @ (np.diag(w**2) + linear.A[n:, :n]), atol=scale * 10)


def test_gains_for_a_model_and_along_a_trajectory():
    model = library.two_link()
    q = np.array([[0.1, 0.2], [0.5, -0.4], [1.0, 1.0]])
    v = np.ones((3, 2))
    tau = model.inverse_dynamics(q, v, np.zeros(2))
    along = decoupled_pd(linearize(model, q, v, tau), 4.0, 0.8)
    assert along.K.shape == (3, 2, 4)
    np.testing.assert_allclose(np.sort(along.poles().real), -3.2, rtol=1e-9)
    one = decoupled_pd(model, 4.0, 0.8, q=q[1], v=v[1], tau=tau[1])
    np.testing.assert_allclose(one.K, along.K[1], rtol=1e-12)
    np.testing.assert_allclose(along.efforts(q, v), tau, atol=1e-12)


def test_efforts_of_a_regulator_count_from_the_point_on_the_manifold():
    model = library.random_tree(3, bodies=1, kinds=("spherical",))
    q, _, _ = state(model)
    regulator = decoupled_pd(linearize(model, q), 2.0, 1.0)
    e = np.array([0.1, -0.2, 0.3])
    np.testing.assert_allclose(
        regulator.inputs(model.integrate(q, e), e), -regulator.K @ np.tile(e, 2), atol=1e-12
    )


def test_refusals():
    acrobot = linearize(library.acrobot(), [np.pi / 2, 0.0])
    assert refusal(decoupled_pd, acrobot, 1.0, 1.0) == (
        "decoupled_pd: 1 inputs (elbow_motor) for 2 degrees of freedom; it takes one independent input for each. "
        "Linearise with other inputs=, or use place_poles"
    )
    model = lin_yae_two_link()
    linear = linearize(model, [0.0, 0.0])
    assert refusal(decoupled_pd, linear, 0.0, 1.0) == (
        "decoupled_pd: frequency is 0.0, expected positive numbers"
    )
    assert refusal(decoupled_pd, linear, [1.0, 2.0, 3.0], 1.0) == (
        "decoupled_pd: frequency has shape (3,), expected a number or (2,)"
    )
    assert refusal(decoupled_pd, model, 1.0, 1.0) == (
        "decoupled_pd: a Model needs the configuration to linearise about, q="
    )
    assert refusal(decoupled_pd, linear, 1.0, 1.0, q=[0.0, 0.0]) == (
        "decoupled_pd: q, v and tau are those of the linear model; do not give them again"
    )
    ball = library.random_tree(3, bodies=1, kinds=("spherical",))
    spinning = linearize(ball, ball.neutral(), [1.0, 2.0, 3.0])
    assert refusal(decoupled_pd, spinning, 1.0, 1.0, error=UnsupportedError).startswith(
        "decoupled_pd: joints that turn in three dimensions are in motion at the point"
    )
    satellite = library.satellite()
    assert refusal(place_poles, linearize(satellite, satellite.neutral()), -np.arange(1.0, 19.0)).startswith(
        "place_poles: the inputs do not reach all of the state: rank 6 of 18"
    )
    assert refusal(place_poles, linear, [-1.0, -2.0]).startswith("place_poles: ")


def test_what_is_no_linear_model():
    model = library.pendulum()
    hint = (
        "expected a LinearModel; al.linearize(model, q, v, tau) makes one of a model, or linearize() of what al.trim has "
        "found"
    )
    assert refusal(lqr, model, 1.0) == f"lqr: linear is a Model, {hint}"
    assert refusal(place_poles, trim(model), [-1.0, -2.0]) == f"place_poles: linear is a Trim, {hint}"
    assert refusal(decoupled_pd, 3, 1.0, 1.0) == f"decoupled_pd: system is an int, {hint}"


def test_lqr_against_the_riccati_equation():
    """(2), and the cost from a state is x^T P x: what a simulated motion of the linear model costs."""
    from scipy.linalg import expm

    linear = linearize(library.acrobot(), [np.pi / 2, 0.0])
    Q, R = np.diag([10.0, 20.0, 1.0, 2.0]), np.array([[0.5]])
    regulator = lqr(linear, Q, R)
    A, B, K = linear.A, linear.B, regulator.K
    assert np.all(regulator.poles().real < 0)
    closed = A - B @ K
    x, h, cost = np.array([0.1, -0.05, 0.2, 0.0]), 1e-3, 0.0
    start, Phi, half = x, expm(h * closed), expm(h / 2 * closed)
    W = Q + K.T @ R @ K
    for _ in range(20_000):
        middle = half @ x
        after = Phi @ x
        cost += h / 6 * (x @ W @ x + 4 * middle @ W @ middle + after @ W @ after)
        x = after
    # P from K: the cost of any feedback solves a Lyapunov equation
    from scipy.linalg import solve_continuous_lyapunov

    P = solve_continuous_lyapunov(closed.T, -W)
    assert cost == pytest.approx(start @ P @ start, rel=1e-8)
    np.testing.assert_allclose(K, np.linalg.solve(R, B.T @ P), rtol=1e-6)  # the gains of least cost
    for same in (lqr(linear, [10.0, 20.0, 1.0, 2.0], 0.5), lqr(linear, Q, [0.5])):
        np.testing.assert_array_equal(same.K, K)


def test_regulators_are_controllers():
    from alembert.simulate import Sampled, simulate

    model = library.acrobot()
    regulator = lqr(linearize(model, [np.pi / 2, 0.0]), 10.0)
    for controller in (regulator, Sampled(regulator, period=0.005)):
        run = simulate(model, [np.pi / 2 + 0.02, -0.01], duration=6.0, step=0.005, controller=controller)
        np.testing.assert_allclose(run.q[-1], [np.pi / 2, 0.0], atol=1e-3)


def test_lqr_refuses():
    linear = linearize(library.acrobot(), [np.pi / 2, 0.0])
    assert refusal(lqr, linear, [1.0, 2.0]).startswith(
        "lqr: Q has shape (2,), expected a number, 4 numbers or a symm"
    )
    driven_by_nothing = linearize(library.acrobot(), [np.pi / 2, 0.0], inputs=[])
    assert refusal(lqr, driven_by_nothing, 1.0) == "lqr: the linear model has no inputs, or no states"
    assert refusal(lqr, linear, np.triu(np.ones((4, 4)))).startswith("lqr: Q differs from its transpose by 1")
    assert refusal(lqr, linear, "much").startswith("lqr: Q is 'much', expected real numbers")
    assert (
        refusal(lqr, linear, 1.0, 0.0) == "lqr: R has the eigenvalue 0, expected a positive definite matrix"
    )
    assert (
        refusal(lqr, linear, [1.0, -1.0, 1.0, 1.0])
        == "lqr: Q has the eigenvalue -1, expected none below zero"
    )
    satellite = library.satellite()
    assert refusal(lqr, linearize(satellite, satellite.neutral()), 1.0).startswith(
        "lqr: no feedback of least cost is stable: the inputs do not reach all of the state: rank 6 of 18"
    )
    hanging = linearize(library.two_link(), [-np.pi / 2, 0.0])
    assert refusal(lqr, hanging, 0.0).startswith(
        "lqr: no feedback of least cost is stable: Q does not see all modes: rank 0 of 4"
    )
    spinning = linearize(satellite, satellite.neutral()).reduced(
        ["attitude.wx", "attitude.wy", "attitude.wz"]
    )
    assert refusal(lqr, spinning, [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]).endswith("margin 1); lost: q:attitude.wz")
