"""Two catalysts along a tube."""

from alembert.optimal import Problem, System, terminal
from alembert.verify.case import Check, Items, Line, Plot, case


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
