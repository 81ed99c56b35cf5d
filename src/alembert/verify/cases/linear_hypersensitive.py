"""A problem whose motion leaves and comes back to rest."""

import numpy as np

from alembert.optimal import Problem, System, running
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="""Rao, Mease, Dichotomic basis approach to solving hyper-sensitive optimal control problems, Automatica 35
    (1999), linear example; closed form from the two exponentials exp(+-sqrt(2) t)""",
    kind="closed form",
    tags=("optimal",),
    parameters={"time": 10.0, "start": 1.5, "end": 1.0},
)
def linear_hypersensitive(time: float, start: float, end: float) -> Items:
    """The least 1/2 int x^2 + u^2 with x' = -x + u, from 1.5 to 1 in a long time."""
    # x = A exp(-w t) + B exp(w (t - T)) with w = sqrt(2), and u = x' + x
    w = np.sqrt(2)
    A, B = np.linalg.solve([[1, np.exp(-w * time)], [np.exp(-w * time), 1]], [start, end])
    # d/dt of 1/2 (w - 1) A^2 exp(-2 w t) ...: the square terms, and the mixed one, which is constant in time
    squares = (1 - np.exp(-2 * w * time)) * (A**2 * (w - 1) + B**2 * (w + 1)) / 2
    mixed = A * B * np.exp(-w * time) * time * (1 + (1 - w) * (1 + w))
    exact = squares + mixed
    plain = System(["x"], ["u"], lambda s: [-s.x + s.u])
    problem = Problem(
        plain, time, start={"x": start}, end={"x": end}, cost=running(lambda s: (s.x**2 + s.u**2) / 2)
    )
    solution = problem.solve(200, transcription="radau")
    yield Check("cost", solution.cost, exact, 1e-7, "collocation of order 5 with steps of 0.05")
    yield Check("cost, to the digits of a calculation by others", exact, 1.6730939784, 5e-11, "eleven digits")
    expected = A * np.exp(-w * solution.time) + B * np.exp(w * (solution.time - time))
    yield Check("x along the way", solution.state("x"), expected, 1e-6, "the same")
    yield Plot("t", "x", (Line("", solution.time, solution.state("x")),))
