"""Feedback under noise on grids, against the linear-quadratic limit and bounds."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.optimal import JumpNoise, dynamic_programming

FREE = (-np.inf, np.inf)
LINE = {
    "grid": {"x": np.linspace(-3, 3, 61)},
    "controls": {"u": FREE},
    "duration": 1.0,
    "drift": lambda t, x: [0.5 * x[0]],
    "effect": lambda t, x: [[1.0]],
    "running": lambda t, x: 0.5 * x[0] ** 2,
    "weight": 0.5,
}


def test_gaussian_and_poisson_noise():
    """dx = (x/2 + u) dt + 0.4 dW + 0.3 dP with 2 jumps a second: V = k x^2/2 + b x + c, whose equations were integrated
    independently. Space is exact for parabolas; steps in time are of order two and shrink with the square of the spacing."""
    reference, errors = np.array([0.776458002, 0.124826483]), []
    for count in (41, 81):
        grid = {"x": np.linspace(-4, 4, count)}
        jumps = [JumpNoise(2.0, lambda t, x: [0.3])]
        found = dynamic_programming(**LINE | {"grid": grid}, noise=lambda t, x: [[0.4]], jumps=jumps)
        errors.append(np.abs(found.value([[1.0], [0.0]]) - reference).max())
        assert found.control([1.0])[0] == pytest.approx(-2.167427536, abs=200 * errors[-1])
    assert errors[1] < 2e-5
    assert errors[1] < errors[0] / 3


def test_two_states_are_the_riccati_equation():
    """V = x'P x/2 + s, -P' = A'P + PA - PB R^-1 B'P + Q, -s' = tr(G G' P)/2."""
    A, B, Q, r = np.array([[0.0, 1.0], [-1.0, 0.2]]), np.array([[0.0], [1.0]]), np.diag([1.0, 0.5]), 0.4
    G = np.array([[0.1, 0.0], [0.05, 0.2]])

    def back(_, y):
        P = y[:4].reshape(2, 2)
        rate = A.T @ P + P @ A - P @ B @ B.T @ P / r + Q
        return [*rate.ravel(), 0.5 * np.trace(G @ G.T @ P)]

    end = solve_ivp(back, (0, 0.8), np.zeros(5), rtol=1e-11, atol=1e-12).y[:, -1]
    P, s = end[:4].reshape(2, 2), end[4]
    found = dynamic_programming(
        {"x": np.linspace(-2, 2, 21), "v": np.linspace(-2, 2, 25)},
        {"u": FREE},
        0.8,
        drift=lambda t, x: [x[1], -x[0] + 0.2 * x[1]],
        effect=lambda t, x: [[0.0], [1.0]],
        running=lambda t, x: 0.5 * (x[0] ** 2 + 0.5 * x[1] ** 2),
        weight=r,
        noise=lambda t, x: G.tolist(),
    )
    points = np.array([[0.5, -0.3], [-1.0, 0.7], [0.0, 0.0]])
    exact = 0.5 * np.einsum("ki,ij,kj->k", points, P, points) + s
    # exact in space; in time order two, with dt of 1/30 of the fastest motion
    np.testing.assert_allclose(found.value(points), exact, rtol=1e-3)
    np.testing.assert_allclose(found.control(points)[:, 0], -(points @ P[:, 1]) / r, rtol=2e-3, atol=1e-3)
    assert found.values.shape == (21, 21, 25)
    assert repr(found) == "<FeedbackOnGrid of x, v: 21x25 points>"


def test_steps_follow_controls_that_grow():
    """x' = u, int (4 x^2 + u^2) / 2 over 5 s: nothing moves at the end, where V is zero; V = tanh(10) x^2 at the start."""
    given = {
        "drift": lambda t, x: [0.0],
        "running": lambda t, x: 2 * x[0] ** 2,
        "weight": 1.0,
        "duration": 5.0,
    }
    found = dynamic_programming(**LINE | given)
    # parabolas are exact in space, and V is at rest at t = 0
    assert found.value([1.0]) == pytest.approx(np.tanh(10.0), rel=1e-6)
    assert found.control([1.0])[0] == pytest.approx(-2 * np.tanh(10.0), rel=1e-6)


@pytest.mark.parametrize("bound", [2.0, np.inf])
def test_two_ways_that_are_equally_good(bound):
    """x' = u, int u^2/2 dt + e(x(T)): V = min_y e(y) + (x - y)^2 / (2 T) (Hopf and Lax), with an edge at x = 0.

    Differences across the edge grew without end: V = -17746 instead of 1/3. Errors are those of one spacing at the edge, and
    of time elsewhere (two parabolas: exact in space).
    """
    x = np.array([[0.0], [0.05], [0.2], [0.5], [1.0], [2.0]])
    given = {"grid": {"x": np.linspace(-3, 3, 121)}, "controls": {"u": (-bound, bound)}, "weight": 1.0}
    given |= {"drift": lambda t, x: [0.0], "running": lambda t, x: 0.0}
    goals = dynamic_programming(**LINE | given, final=lambda x: np.minimum((x[0] - 1) ** 2, (x[0] + 1) ** 2))
    away = dynamic_programming(**LINE | given, final=lambda x: -np.abs(x[0]))
    side = np.abs(x[:, 0])
    for found, exact, control in (
        (goals, (side - 1) ** 2 / 3, -2 * (side - 1) / 3),
        (away, -side - 0.5, np.ones(6)),
    ):
        error = np.abs(found.value(x) - exact)
        assert error[:2].max() < 0.05
        assert error[2:].max() < 1e-3
        np.testing.assert_allclose(found.control(x[2:])[:, 0], control[2:], atol=0.05)


def test_round_an_obstacle_to_either_side():
    """A bump of the running cost at the middle of a line that must be left for one side or the other; finer grids agree."""
    values = []
    for count in (31, 61):
        found = dynamic_programming(
            {"x": np.linspace(-2, 2, count), "y": np.linspace(-2, 2, count)},
            {"u": (-3.0, 3.0), "w": (-3.0, 3.0)},
            1.0,
            drift=lambda t, x: [0.0, 0.0],
            effect=lambda t, x: [[1.0, 0.0], [0.0, 1.0]],
            running=lambda t, x: 20 * np.exp(-(x[0] ** 2 + x[1] ** 2) / 0.1),
            weight=1.0,
            final=lambda x: 5 * ((x[0] + 1) ** 2 + x[1] ** 2),
        )
        values.append(found.value([[1.0, 0.0], [1.0, 0.4], [1.0, -0.4]]))
        # as the problem is, so is V: the same on both sides
        np.testing.assert_allclose(values[-1][1], values[-1][2], rtol=1e-9)
    # straight on without the obstacle: min over y of 5 (y + 1)^2 + (1 - y)^2 / 2, which is 20/11
    assert np.all(values[1] > 20 / 11)
    np.testing.assert_allclose(values[0], values[1], rtol=0.05)


def test_bounds_are_kept_and_cost_something():
    free = dynamic_programming(**LINE)
    bound = dynamic_programming(**LINE | {"controls": {"u": (-0.8, 0.5)}}, final=lambda x: 0 * x[0])
    assert bound.controls.min() == -0.8
    assert bound.controls.max() == 0.5
    assert np.all(bound.value([[1.5], [-1.5]]) > free.value([[1.5], [-1.5]]))
    assert bound.value([0.1]) == pytest.approx(free.value([0.1]), rel=1e-2)
    linear = dynamic_programming(**LINE, linear=lambda t, x: [0.3 + 0 * x[0]])
    assert linear.control([0.0], 1.0)[0] == pytest.approx(-0.6)  # V is zero at the end: -R^-1 d


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"grid": {}}, ArgumentError, "expected points by the names"),
        ({"grid": {"x": [0, 1, 3, 4, 5]}}, ArgumentError, "evenly spaced"),
        ({"grid": {k: np.linspace(0, 1, 200) for k in "abc"}}, ArgumentError, "8000000 points"),
        ({"controls": {}}, ArgumentError, "expected pairs"),
        ({"controls": {"u": (1, 0)}}, ArgumentError, "expected pairs"),
        ({"controls": {"u": ("a", 1)}}, ArgumentError, "expected pairs"),
        ({"final": lambda x: [1, 2]}, ArgumentError, "final does not return one numbers"),
        (
            {"jumps": [JumpNoise(1.0, lambda t, x: [50.0])]},
            ArgumentError,
            "a jump is 50 long, the grid 6 wide",
        ),
        ({"weight": -1.0}, ArgumentError, "positive definite"),
        ({"duration": -1.0}, ArgumentError, "expected seconds"),
        ({"records": 1}, ArgumentError, "expected 2 or more"),
        ({"drift": lambda t, x: [1, 2]}, ArgumentError, "drift does not return 1 numbers"),
        (
            {"drift": lambda t, x: [x[1]]},
            ArgumentError,
            "drift: list index out of range. It gets t and the states x",
        ),
        (
            {"running": lambda x: x[0] ** 2},
            ArgumentError,
            "running: .* takes 1 positional argument but 2 were given",
        ),
        ({"effect": lambda t, x: [1]}, ArgumentError, "effect does not return 1 x 1 numbers"),
        ({"running": lambda t, x: [1, 2]}, ArgumentError, "running does not return one numbers"),
        ({"noise": lambda t, x: [[30.0]]}, NumericalError, "steps in time are needed"),
        ({"final": lambda x: np.full_like(x[0], np.nan)}, NumericalError, "not finite"),
        ({"running": lambda t, x: np.nan}, NumericalError, "running is not finite on the grid"),
        ({"running": lambda t, x: -1e6 * x[0] ** 2}, NumericalError, "is not found with"),
        ({"noise": lambda t, x: [0.1]}, ArgumentError, "noise does not return rows"),
        ({"grid": {"x": "wide"}}, ArgumentError, "grid of 'x' is 'wide', expected numbers"),
        (
            {"controls": {"u": (0, 1), "w": (0, 1)}, "weight": [[2.0, 1.0], [1.0, 2.0]]},
            *(UnsupportedError, "weight is to be diagonal"),
        ),
    ],
)
def test_what_is_refused(given, error, said):
    with pytest.raises(error, match=said):
        dynamic_programming(**LINE | given)


def test_points_outside_are_refused():
    with pytest.raises(ArgumentError, match=r"rate is -1.0, expected jumps per second"):
        JumpNoise(-1.0, lambda t, x: [0.1])
    found = dynamic_programming(**LINE)
    for x, t, said in (
        ({"x": 1.0}, 0.0, "x is .*, expected numbers"),
        ([9.0], 0.0, "x leaves the grid"),
        ([0.0, 1.0], 0.0, "expected"),
        ([0.0], 3.0, "t is 3 s"),
    ):
        with pytest.raises(ArgumentError, match=said):
            found.value(x, t)
