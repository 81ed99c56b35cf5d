"""Nothing happens for most of the time."""

from alembert.optimal import examples
from alembert.verify.case import Check, Items, Line, Plot, case


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
