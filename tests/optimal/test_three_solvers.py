"""The sweep, IPOPT and FATROP find the same solutions and the same multipliers."""

import re

import numpy as np
import pytest

import alembert as al
from alembert.optimal import Problem, effort, examples, terminal
from alembert.optimal.examples import EXAMPLES, Example

HANGING = examples.HANGING
STEPS = {"brachistochrone": 10, "bryson_denham": 20, "hager": 10, "goddard": 40, "van_der_pol": 20}
"""fewer than the examples have, so that what barriers leave does not hide in flat directions; else those they have"""
REPEATED = ("satellite", "two_wheels")
"""at their ends all speeds are zero, which momentum says of six of them: multipliers are not determined. Those of IPOPT may
grow on its way, and it sees errors relative to them: on some machines it then stops before its tolerance, or far from the
optimum. So it begins at the solution of the sweep, where a step of Newton's leaves an error of rounding, and has to stay"""

ROUNDED = (("pitcher", "fatrop"),)
"""what rounding stops before the tolerance: at errors of 4e-6"""
FAR = {("two_wheels", "fatrop"): 6e-4, ("pitcher", "ipopt"): 2e-3, ("pitcher", "fatrop"): 2e-3}
"""how far states may be apart, where speeds are some 30 rad/s and the cost is flat about the optimum; they are
4.4e-4, 1.3e-3 and 1.0e-3 apart, whatever the tolerance"""
FLAT = ("pitcher",)
"""where rounding decides at which place of a flat valley the sweep meets its tolerance: it goes on from IPOPT's end"""


def bounded():
    """Where bounds on the efforts hold."""
    limits = {"tau": {"shoulder": 60.0, "elbow": 12.0}}
    ends = {"start": {"q": [-0.5, 0], "v": 0}, "end": {"q": [0.5, 0.3], "v": 0}}
    return Example(Problem(al.library.two_link(), 1.0, **ends, limits=limits), 12)


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
    return Example(problem, 12, {"guess": near})


def error_told(solution):
    """Of a solve that stopped before its tolerance, from its message."""
    return float(re.search(r"stopped at the error (\S+),", solution.message)[1])


@pytest.mark.parametrize("make", [*EXAMPLES.values(), bounded, hand_speed], ids=lambda make: make.__name__)
def test_same_solution(make):
    """To the tolerance of 1e-8 of slopes, and of barriers where bounds hold: the sweep stops at a barrier of 1e-9.

    All three start from the guess that the example has, with its steps.
    """
    example, steps = make(), STEPS.get(make.__name__)
    sweep = example.solve(steps)
    assert sweep.converged, sweep.diagnosis()
    name = make.__name__
    for solver in ("ipopt", "fatrop"):
        tolerance = 1e-6 if (name in REPEATED and solver == "fatrop") else 1e-9
        own = {"guess": sweep} if name in REPEATED and solver == "ipopt" else {}
        other = example.solve(steps, solver=solver, tolerance=tolerance, **own)
        if (name, solver) in ROUNDED and other.status == "stalled":
            assert error_told(other) <= 1e-5
            near = example.solve(steps, solver=solver, tolerance=0.2 * error_told(other))
            assert near.converged, near.message
            other = example.solve(steps, solver=solver, tolerance=tolerance, guess=near)
            assert other.converged or error_told(other) <= 1e-5, other.message
        else:
            assert other.converged, other.message
        assert other.cost == pytest.approx(sweep.cost, rel=1e-6)
        if name in FLAT and solver == "ipopt":
            sweep = example.solve(steps, guess=other)
            assert sweep.converged, sweep.message
            assert other.cost == pytest.approx(sweep.cost, rel=1e-6)
        if other.status == "acceptable":  # rounding has stopped it: on from there, with a small barrier
            other = example.solve(steps, solver=solver, tolerance=tolerance, guess=other)
            assert other.converged, other.message
        np.testing.assert_allclose(other.x, sweep.x, rtol=1e-7, atol=FAR.get((name, solver), 1e-4))
        if name in REPEATED:
            continue
        size = np.abs(sweep.costates).max()
        np.testing.assert_allclose(other.costates, sweep.costates, atol=1e-3 * size)
        for label, value in sweep.multipliers.items():
            np.testing.assert_allclose(other.multipliers[label], value, atol=2e-3 * size, err_msg=label)
        for label, slope in sweep.sensitivities().items():
            assert other.sensitivities()[label] == pytest.approx(slope, rel=1e-5)
