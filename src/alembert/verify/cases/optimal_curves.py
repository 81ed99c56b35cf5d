"""The oldest optimal problems: the fastest slide, the hanging chain."""

import casadi as ca
import numpy as np
from scipy.optimize import brentq

from alembert.optimal import Problem, System, examples, running
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
        solution = examples.brachistochrone(gravity, (0.0, 0.0), (far, -drop)).solve()
        yield Check(
            f"time to ({far:g}, {-drop:g}) [s]",
            solution.duration,
            time,
            1e-6,
            "Hermite-Simpson with 100 steps; the slope is singular at rest",
        )
        lines.append(Line(f"to ({far:g}, {-drop:g})", solution.state("x"), solution.state("y")))
    yield Plot("x [m]", "y [m]", tuple(lines))


@case(
    source="""Dolan, More, Munson, Benchmarking optimization software with COPS 3.0 (2004), hanging chain; the
    catenary in closed form""",
    kind="closed form",
    tags=("optimal",),
    parameters={"left": 1.0, "right": 3.0, "length": 4.0},
)
def hanging_chain(left: float, right: float, length: float) -> Items:
    """The shape of least potential energy of a chain of given length between two points."""
    # y = c cosh((x - m)/c) + d: length^2 - rise^2 = (2 c sinh(1/(2c)))^2
    rise = right - left
    c = brentq(lambda c: 2 * c * np.sinh(0.5 / c) - np.sqrt(length**2 - rise**2), 0.05, 5.0)
    m = 0.5 - c * np.arctanh(rise / length)
    d = left - c * np.cosh(m / c)
    exact = c / 2 + c**2 / 4 * (np.sinh(2 * (1 - m) / c) + np.sinh(2 * m / c)) + d * length
    chain = System(["y", "used"], ["slope"], lambda s: [s.slope, ca.sqrt(1 + s.slope**2)])
    problem = Problem(
        chain,
        1.0,
        start={"y": left, "used": 0},
        end={"y": right, "used": length},
        limits={"slope": 20.0, "y": (0, 10)},
        cost=running(lambda s: s.y * ca.sqrt(1 + s.slope**2)),
    )
    x = np.linspace(0, 1, 21)
    parabola, slope = 4 * rise * x * (x / 2 - 0.25) + left, 4 * rise * (x - 0.25)  # the start of COPS
    used = np.concatenate([[0], np.cumsum(np.sqrt(1 + slope[:-1] ** 2) / 20)])
    guess = {"time": x, "x": np.stack([parabola, used], 1), "controls": slope[:, None]}
    solution = problem.solve(100, transcription="radau", guess=guess)
    yield Check("energy", solution.cost, exact, 1e-7, "collocation of order 5 with 100 steps")
    yield Check(
        "energy, in print", exact, 5.06891, 5e-4, "theirs is of a grid with the trapezoidal rule, from above"
    )
    shape = c * np.cosh((solution.time - m) / c) + d
    yield Check(
        "height along the chain",
        solution.state("y"),
        shape,
        3e-4,
        "energy is least there: the root of its tolerance",
    )
    yield Plot(
        "x", "y", (Line("", solution.time, solution.state("y")), Line("catenary", solution.time, shape))
    )
