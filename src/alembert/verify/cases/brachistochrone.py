"""Bernoulli's problem."""

import casadi as ca

from alembert.optimal import Problem, System, duration
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Closed form: an arc of a cycloid through both points",
    kind="closed form",
    tags=("optimal",),
    parameters={"gravity": 9.80665, "height": 10.0, "far": 10.0, "low": 5.0},
)
def brachistochrone(gravity: float, height: float, far: float, low: float) -> Items:
    """The fastest slide from (0, 10) to (10, 5), with a free final time."""
    slide = System(
        ["x", "y", "v"],
        ["slope"],
        lambda s: [s.v * ca.cos(s.slope), s.v * ca.sin(s.slope), -gravity * ca.sin(s.slope)],
    )
    problem = Problem(
        slide, (0.5, 5.0), start={"x": 0, "y": height, "v": 0}, end={"x": far, "y": low}, cost=duration()
    )
    guess = {"time": [0, 2], "x": [[0, height, 0], [far, low, 9.9]], "controls": [[-1.0], [0.3]]}
    solution = problem.solve(100, guess=guess)
    yield Check(
        "time [s]",
        solution.duration,
        1.8016031225,
        1e-6,
        "Hermite-Simpson with 100 steps; the slope is singular at rest",
    )
    yield Plot("x [m]", "y [m]", (Line("", solution.state("x"), solution.state("y")),))
