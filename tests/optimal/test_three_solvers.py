"""The sweep, IPOPT and FATROP find the same solutions and the same multipliers."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.optimal import Problem, System, duration, effort, running, terminal

HANGING, UPRIGHT = [-np.pi / 2, 0.0], [np.pi / 2, 0.0]


def two_link():
    limits = {"tau": {"shoulder": 60.0, "elbow": 12.0}}
    return Problem(
        al.library.two_link(),
        1.0,
        start={"q": [-0.5, 0], "v": 0},
        end={"q": [0.5, 0.3], "v": 0},
        limits=limits,
    ), {}


def acrobot():
    return Problem(al.library.acrobot(), 4.0, start={"q": HANGING, "v": 0}, end={"q": UPRIGHT, "v": 0}), {}


def brachistochrone():
    slide = System(
        ["x", "y", "v"],
        ["slope"],
        lambda s: [s.v * ca.cos(s.slope), s.v * ca.sin(s.slope), -9.80665 * ca.sin(s.slope)],
    )
    guess = {"time": [0, 2], "x": [[0, 10, 0], [10, 5, 9.9]], "controls": [[-1.0], [0.3]]}
    ends = {"start": {"x": 0, "y": 10, "v": 0}, "end": {"x": 10, "y": 5}}
    return Problem(slide, (0.5, 5.0), **ends, cost=duration()), {"guess": guess}


def bryson_denham():
    cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a])
    return Problem(cart, 1.0, start={"x": 0, "v": 1}, end={"x": 0, "v": -1}, limits={"x": (0, 1 / 9)}), {}


def hager():
    """With a parameter, for which the slope of the cost is known: J = 0.38... y(0)^2."""
    system = System(["y"], ["u"], lambda s: [s.y / 2 + s.gain * s.u], parameters={"gain": 1.0})
    cost = running(lambda s: (1.25 * s.y**2 + s.y * s.u + s.u**2) / 2)
    return Problem(system, 1.0, start={"y": 1}, cost=cost), {}


def van_der_pol():
    oscillator = System(["x1", "x2"], ["u"], lambda s: [(1 - s.x2**2) * s.x1 - s.x2 + s.u, s.x1])
    cost = running(lambda s: s.x1**2 + s.x2**2 + s.u**2)
    return Problem(oscillator, 5.0, start={"x1": 0, "x2": 1}, cost=cost), {}


def goddard():
    rocket = System(
        ["h", "v", "m"],
        ["thrust"],
        lambda s: [
            s.v,
            (s.thrust - 310 * s.v**2 * ca.exp(500 * (1 - s.h))) / s.m - 1 / s.h**2,
            -s.thrust / 0.5,
        ],
    )
    problem = Problem(
        rocket,
        (0.01, 1.0),
        start={"h": 1, "v": 0, "m": 1},
        end={"m": 0.6},
        limits={"thrust": (0, 3.5), "v": (0, np.inf), "h": (1, np.inf), "m": (0.5, 1)},
        cost=terminal(lambda s: -s.h),
    )
    guess = {"time": [0, 0.2], "x": [[1, 0.05, 1], [1.01, 0.05, 0.6]], "controls": [[1.7], [1.7]]}
    return problem, {"guess": guess, "transcription": "trapezoidal"}


def hand_speed():
    """As the pitcher has it: free time, bounds, the speed of a point at the end."""
    problem = Problem(
        al.library.two_link(),
        (0.3, 1.0),
        start={"q": HANGING, "v": 0},
        end={"up": (lambda s: s.frame("tip").translation[2], (0.0, np.inf))},
        limits={"tau": 40.0, "v": 20.0},
        cost=terminal(lambda s: -s.velocity("tip")[0]) + 1e-3 * effort(),
    )
    near = problem.solve(
        12, solver="ipopt", guess={"time": [0, 0.6], "q": [HANGING, [0.5, 0.3]]}, tolerance=1e-3
    )
    return problem, {"guess": near}


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        *((two_link, 12), (acrobot, 40), (brachistochrone, 10), (bryson_denham, 20), (hager, 10)),
        *((van_der_pol, 20), (goddard, 40), (hand_speed, 12)),
    ],
)
def test_same_solution(make, steps):
    """To the tolerance of 1e-8 of slopes, and of barriers where bounds hold: the sweep stops at a barrier of 1e-9."""
    problem, options = make()
    sweep = problem.solve(steps, **options)
    assert sweep.success, sweep.diagnosis()
    options = options | {"guess": sweep, "tolerance": 1e-9}
    for solver in ("ipopt", "fatrop"):
        other = problem.solve(steps, solver=solver, **options)
        assert other.success, other.message
        assert other.cost == pytest.approx(sweep.cost, rel=1e-6)
        np.testing.assert_allclose(other.x, sweep.x, atol=1e-4)
        size = np.abs(sweep.costates).max()
        np.testing.assert_allclose(other.costates, sweep.costates, atol=1e-3 * size)
        for name, value in sweep.multipliers.items():
            np.testing.assert_allclose(other.multipliers[name], value, atol=2e-3 * size, err_msg=name)
        for name, slope in sweep.sensitivities().items():
            assert other.sensitivities()[name] == pytest.approx(slope, rel=1e-5)
