"""A rocket that shall go high."""

import casadi as ca
import numpy as np

from alembert.optimal import Problem, System, terminal
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Dolan, More, Munson, Benchmarking optimization software with COPS 3.0 (2004), Goddard rocket, n = 400",
    kind="published",
    tags=("optimal",),
)
def goddard_rocket() -> Items:
    """The greatest altitude of a rocket, with a singular arc and a free final time."""
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
        limits={"thrust": (0, 3.5), "v": (0, np.inf), "h": (1, np.inf), "m": (0.6, 1)},
        cost=terminal(lambda s: -s.h),
    )
    guess = {"time": [0, 0.2], "x": [[1, 0.05, 1], [1.01, 0.05, 0.6]], "controls": [[1.7], [1.7]]}
    solution = problem.solve(200, transcription="trapezoidal", guess=guess)
    yield Check("altitude", -solution.cost, 1.01283, 1e-5, "six digits of print")
    yield Plot("t", "thrust", (Line("", solution.time[:-1], solution.control("thrust")),))
