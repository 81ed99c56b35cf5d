"""A linear-quadratic problem for the order of methods."""

from alembert.optimal import examples
from alembert.verify.case import Check, Items, case


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
