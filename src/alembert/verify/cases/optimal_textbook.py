"""Small optimal-control problems of the literature."""

import numpy as np

from alembert.optimal import Problem, System, examples, running, terminal
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Bryson, Denham, Dreyfus, Optimal programming problems with inequality constraints (1963), "
    "closed form J = 4/(9 l)",
    kind="closed form",
    tags=("optimal",),
    parameters={"limit": 1 / 9},
)
def bryson_denham(limit: float) -> Items:
    """Half the integral of the squared acceleration of a mass that may not go beyond 1/9."""
    example = examples.bryson_denham(limit)
    solution = example.solve(200)
    yield Check(
        "cost", solution.cost, example.published, 1e-5, "Hermite-Simpson with 200 steps; bounds at nodes only"
    )
    yield Check(
        "most x", solution.state("x").max(), limit, 1e-7, "the barrier leaves a distance of its least value"
    )
    yield Plot("t [s]", "x [m]", (Line("", solution.time, solution.state("x")),))


@case(
    source="Dolan, More, Munson, Benchmarking optimization software with COPS 3.0 (2004), catalyst mixing, n = 100",
    kind="published",
    tags=("optimal",),
)
def catalyst_mixing() -> Items:
    """The mixture of two catalysts that makes most of the product: one, a singular arc, the other."""
    tube = System(
        ["x1", "x2"],
        ["u"],
        lambda s: [s.u * (10 * s.x2 - s.x1), s.u * (s.x1 - 10 * s.x2) - (1 - s.u) * s.x2],
    )
    problem = Problem(
        tube,
        1.0,
        start={"x1": 1, "x2": 0},
        limits={"u": (0, 1)},
        cost=terminal(lambda s: s.x1 + s.x2 - 1),
    )
    guess = {"time": [0, 1], "x": [[1, 0], [0.9, 0.05]], "controls": [[0.5], [0.5]]}
    solution = problem.solve(100, transcription="rk4", guess=guess)
    yield Check(
        "cost",
        solution.cost,
        -0.0480556,
        5e-7,
        "six digits of print; methods and numbers of steps differ by 3e-7",
    )
    yield Plot(
        "along the tube", "u", (Line("", solution.time[: len(solution.control("u"))], solution.control("u")),)
    )


@case(
    source="Dolan, More, Munson, Benchmarking optimization software with COPS 3.0 (2004), Goddard rocket, n = 400",
    kind="published",
    tags=("optimal",),
)
def goddard_rocket() -> Items:
    """The greatest altitude of a rocket, with a singular arc and a free final time."""
    example = examples.goddard()
    solution = example.solve()
    yield Check("altitude", -solution.cost, -example.published, 1e-5, "six digits of print")
    yield Plot("t", "thrust", (Line("", solution.time[:-1], solution.control("thrust")),))


@case(
    source="Hager, Runge-Kutta methods in optimal control and the transformed adjoint system (2000)",
    kind="closed form",
    tags=("optimal",),
)
def hager_optimal_control() -> Items:
    """Least 1/2 int 1.25 y^2 + y u + u^2 with y' = y/2 + u, y(0) = 1."""
    example = examples.hager()
    solution, exact = example.solve(), example.published
    yield Check("closed form", exact, 0.3807970780, 1e-10, "ten digits")
    yield Check("cost", solution.cost, exact, 1e-8, "order 4 with 50 steps")


@case(
    source="Betts, Practical methods for optimal control using nonlinear programming, example 10.7; cost 6.7241, and "
    "6.724113810 computed independently on an infinite horizon",
    kind="published",
    tags=("optimal",),
)
def hypersensitive() -> Items:
    """The equation y' = -y^3 + u over 10000 s, of which only the first and the last few matter."""
    example = examples.hypersensitive()
    solution = example.solve()
    yield Check("cost", solution.cost, example.published, 1e-4, "the last digit in print")
    begin = solution.time < 10
    yield Plot("t [s]", "y", (Line("", solution.time[begin], solution.state("y")[begin]),))


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


@case(
    source="CasADi's example problem; reference computed independently to six digits",
    kind="published",
    tags=("optimal",),
)
def van_der_pol_optimal() -> Items:
    """Least int x1^2 + x2^2 + u^2 over 5 s from (0, 1)."""
    example = examples.van_der_pol()
    solution = example.solve(200)
    yield Check("cost", solution.cost, example.published, 2e-5, "the reference has six digits")
    yield Check(
        "simulated with its controls",
        solution.check.largest,
        0.0,
        1e-6,
        "order 4 with 200 steps",
    )
    yield Plot(
        "t [s]",
        "x",
        (Line("x1", solution.time, solution.state("x1")), Line("x2", solution.time, solution.state("x2"))),
    )
