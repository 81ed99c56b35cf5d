"""A linear-quadratic problem for the order of methods."""

import numpy as np

from alembert.optimal import Problem, System, running
from alembert.verify.case import Check, Items, case


@case(
    source="Hager, Runge-Kutta methods in optimal control and the transformed adjoint system (2000)",
    kind="closed form",
    tags=("optimal",),
)
def hager_optimal_control() -> Items:
    """Least 1/2 int 1.25 y^2 + y u + u^2 with y' = y/2 + u, y(0) = 1."""
    system = System(["y"], ["u"], lambda s: [s.y / 2 + s.u])
    cost = running(lambda s: (1.25 * s.y**2 + s.y * s.u + s.u**2) / 2)
    solution = Problem(system, 1.0, start={"y": 1}, cost=cost).solve(50)
    exact = np.e**2 * np.sinh(2) / (1 + np.e**2) ** 2
    yield Check("closed form", exact, 0.3807970780, 1e-10, "ten digits")
    yield Check("cost", solution.cost, exact, 1e-8, "order 4 with 50 steps")
