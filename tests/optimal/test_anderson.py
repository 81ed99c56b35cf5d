"""Acceleration of Gauss-Newton steps."""

import casadi as ca
import numpy as np

import alembert as al
from alembert.optimal import Problem, effort, terminal
from alembert.optimal.interior_point import Anderson
from alembert.optimal.tuning import DEPTH

REACH = np.array([[0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8], [0.8, 0.3, 0.4, -1.2, 0.3, 1.9, 0.2]])


def test_a_linear_iteration_ends_after_as_many_steps_as_it_has_rates():
    """s(w) = A (w - w*), with rates of which some make w + s(w) diverge; the last entries are carried along."""
    rng = np.random.default_rng(0)
    A = -np.diag([0.3, 1.2, 2.6, 0.9])
    target, follow = rng.normal(size=4), rng.normal(size=(2, 4))
    w, method = np.zeros(4), Anderson(4)
    for _ in range(DEPTH + 1):
        step = A @ (w - target)
        step = np.concatenate([step, follow @ step])
        proposed = method.propose(step)
        taken = step if proposed is None else proposed
        np.testing.assert_allclose(taken[4:], follow @ taken[:4], atol=1e-9)
        method.moved(taken)
        w = w + taken[:4]
    np.testing.assert_allclose(w, target, atol=1e-9)  # in exact arithmetic zero


def test_a_reach_of_an_arm_without_the_curvature_of_its_dynamics():
    """Plain Gauss-Newton steps had not come to the tolerance in 200 iterations."""

    def miss(s):
        return 500 * (ca.sumsqr(s.q - REACH[1]) + ca.sumsqr(s.v))

    start = {"q": REACH[0], "v": 0}
    problem = Problem(
        al.library.arm7(friction=False), 1.0, start=start, cost=effort() + terminal(miss), limits=None
    )
    speed = np.tile(REACH[1] - REACH[0], (2, 1))
    guess = {"time": [0.0, 1.0], "q": REACH, "v": speed, "controls": np.zeros((2, 7))}
    found = problem.solve(100, transcription="euler", hessian="gauss-newton", guess=guess)
    assert found.success, found.message
    assert found.iterations < 80
    np.testing.assert_allclose(found.cost, 278.00668, rtol=1e-7)  # with exact Hessian, run of 2026-11-16
