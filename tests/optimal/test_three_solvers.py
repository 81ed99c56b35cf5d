"""The sweep, IPOPT and FATROP find the same solutions and the same multipliers."""

import numpy as np
import pytest

import alembert as al
from alembert.optimal import Problem, effort, examples, terminal
from alembert.optimal.examples import EXAMPLES, Example

HANGING = examples.HANGING
STEPS = {
    **{"swing up": 12, "arm": 20, "acrobot": 40, "acrobot from 1 0": 40, "acrobot from 1 3": 40},
    **{"branched acrobot": 30, "obstacle": 12, "four bar": 8, "satellite": 8, "two wheels": 8, "pitcher": 8},
    **{"brachistochrone": 10, "bryson denham": 20, "hager": 10, "hypersensitive": None, "goddard": 40},
    "van der pol": 20,
}
"""fewer than the examples have by default: enough for the same kind of motion"""
REPEATED = ("satellite", "two_wheels")
"""at their ends all speeds are zero, which momentum says of six of them: multipliers are not determined"""


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


def test_every_example_is_here():
    assert set(STEPS) == set(EXAMPLES)


@pytest.mark.parametrize("make", [*EXAMPLES.values(), bounded, hand_speed], ids=lambda make: make.__name__)
def test_same_solution(make):
    """To the tolerance of 1e-8 of slopes, and of barriers where bounds hold: the sweep stops at a barrier of 1e-9.

    The others start from the solution of the sweep, since most problems have several local optima.
    """
    example, steps = make(), STEPS.get(make.__name__.replace("_", " "))
    sweep = example.solve(steps)
    assert sweep.success, sweep.diagnosis()
    name = make.__name__
    for solver in ("ipopt", "fatrop"):
        tolerance = 1e-6 if (name in REPEATED and solver == "fatrop") else 1e-9
        other = example.solve(steps, solver=solver, guess=sweep, tolerance=tolerance)
        assert other.success, other.message
        assert other.cost == pytest.approx(sweep.cost, rel=1e-6)
        far = 1e-5 if name in REPEATED else 1e-7  # speeds of wheels are some 20 rad/s
        np.testing.assert_allclose(other.x, sweep.x, rtol=far, atol=1e-4)
        if name in REPEATED:
            continue
        size = np.abs(sweep.costates).max()
        np.testing.assert_allclose(other.costates, sweep.costates, atol=1e-3 * size)
        for label, value in sweep.multipliers.items():
            np.testing.assert_allclose(other.multipliers[label], value, atol=2e-3 * size, err_msg=label)
        for label, slope in sweep.sensitivities().items():
            assert other.sensitivities()[label] == pytest.approx(slope, rel=1e-5)
