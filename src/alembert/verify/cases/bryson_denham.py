"""A bound on the state that holds for a while."""

from alembert.optimal import Problem, System
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
    cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a])
    problem = Problem(cart, 1.0, start={"x": 0, "v": 1}, end={"x": 0, "v": -1}, limits={"x": (0, limit)})
    solution = problem.solve(200)
    yield Check(
        "cost", solution.cost, 4 / (9 * limit), 1e-5, "Hermite-Simpson with 200 steps; bounds at nodes only"
    )
    yield Check(
        "most x", solution.state("x").max(), limit, 1e-7, "the barrier leaves a distance of its least value"
    )
    yield Plot("t [s]", "x [m]", (Line("", solution.time, solution.state("x")),))
