"""The controlled oscillator of van der Pol."""

from alembert.optimal import Problem, System, running
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="CasADi's example problem; reference computed independently to six digits",
    kind="published",
    tags=("optimal",),
)
def van_der_pol_optimal() -> Items:
    """Least int x1^2 + x2^2 + u^2 over 5 s from (0, 1)."""
    oscillator = System(["x1", "x2"], ["u"], lambda s: [(1 - s.x2**2) * s.x1 - s.x2 + s.u, s.x1])
    cost = running(lambda s: s.x1**2 + s.x2**2 + s.u**2)
    solution = Problem(oscillator, 5.0, start={"x1": 0, "x2": 1}, cost=cost).solve(200)
    yield Check("cost", solution.cost, 2.86696, 2e-5, "the reference has six digits")
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
