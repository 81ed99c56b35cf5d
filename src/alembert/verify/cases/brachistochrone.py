"""Bernoulli's problem."""

import casadi as ca

from alembert.optimal import Problem, System, duration
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Closed form: an arc of a cycloid through both points",
    kind="closed form",
    tags=("optimal",),
    parameters={"slides": ((9.80665, 10.0, 5.0, 1.8016031225), (9.8, 2.0, 2.0, 0.8247591432))},
)
def brachistochrone(slides: tuple[tuple[float, float, float, float], ...]) -> Items:
    """The fastest slides from rest to points 10 m away and 5 m below, 2 m away and 2 m below; the final time is free."""
    lines = []
    for gravity, far, drop, time in slides:
        problem = Problem(
            _slide(gravity),
            (0.1, 5.0),
            start={"x": 0, "y": 0, "v": 0},
            end={"x": far, "y": -drop},
            cost=duration(),
        )
        last = (2 * gravity * drop) ** 0.5
        guess = {"time": [0, 1.1 * time], "x": [[0, 0, 0], [far, -drop, last]], "controls": [[-1.0], [0.3]]}
        solution = problem.solve(100, guess=guess)
        yield Check(
            f"time to ({far:g}, {-drop:g}) [s]",
            solution.duration,
            time,
            1e-6,
            "Hermite-Simpson with 100 steps; the slope is singular at rest",
        )
        lines.append(Line(f"to ({far:g}, {-drop:g})", solution.state("x"), solution.state("y")))
    yield Plot("x [m]", "y [m]", tuple(lines))


def _slide(gravity: float) -> System:
    return System(
        ["x", "y", "v"],
        ["slope"],
        lambda s: [s.v * ca.cos(s.slope), s.v * ca.sin(s.slope), -gravity * ca.sin(s.slope)],
    )
