"""A rocket that shall go high."""

from alembert.optimal import examples
from alembert.verify.case import Check, Items, Line, Plot, case


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
