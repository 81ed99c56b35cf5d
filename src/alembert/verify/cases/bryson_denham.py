"""A bound on the state that holds for a while."""

from alembert.optimal import examples
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
