"""Bernoulli's problem."""

from alembert.optimal import examples
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Closed form: an arc of a cycloid through both points",
    kind="closed form",
    tags=("optimal",),
    parameters={"slides": ((9.80665, 10.0, 5.0, 1.8016031225), (9.8, 2.0, 2.0, 0.8247591432))},
)
def brachistochrone(slides: tuple[tuple[float, float, float, float], ...]) -> Items:
    """The fastest slides from rest to points 10 m away and 5 m below, 2 m away and 2 m below; the final time is free."""
    lines = []
    for gravity, far, drop, time in slides:
        solution = examples.brachistochrone(gravity, (0.0, 0.0), (far, -drop)).solve()
        yield Check(
            f"time to ({far:g}, {-drop:g}) [s]",
            solution.duration,
            time,
            1e-6,
            "Hermite-Simpson with 100 steps; the slope is singular at rest",
        )
        lines.append(Line(f"to ({far:g}, {-drop:g})", solution.state("x"), solution.state("y")))
    yield Plot("x [m]", "y [m]", tuple(lines))
