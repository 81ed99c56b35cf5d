"""The controlled oscillator of van der Pol."""

from alembert.optimal import examples
from alembert.verify.case import Check, Items, Line, Plot, case


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
