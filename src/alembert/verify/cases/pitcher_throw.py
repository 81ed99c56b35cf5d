"""A pitch."""

import numpy as np

from alembert.optimal import examples
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010), section 7.3: the optimal pitch, Figures 15 and 16",
    kind="published",
    tags=("optimal", "tree"),
    slow=True,
    missing="masses, sizes and bounds: T = 0.41545 s and the momentum 24.502 cannot be compared",
)
def pitcher_throw() -> Items:
    """In a time that is found, within bounds: the momentum about the vertical changes by the torso's torque alone."""
    solution = examples.pitcher().solve()
    yield Check("solved", float(solution.success), 1.0, 0.0, "the solver says so")
    step = solution.duration / 35
    about_vertical = solution.momenta[:, 0]
    lost = np.abs(np.diff(about_vertical) - step * solution.efforts[:, 0]).max()
    yield Check(
        "momentum less impulse [N m s]", lost, 0.0, 1e-9, "the published claim; rounding of some 10 N m s"
    )
    torque = np.abs(solution.efforts[:, 0]).max()
    yield Check("torque of the torso within 150 N m", max(0.0, torque - 150), 0.0, 1e-5, "bounds are kept")
    elbow = solution.q[:, -1]
    bent = max(0.0, -elbow.min(), elbow.max() - 2.5)
    yield Check("the elbow bends one way [rad]", bent, 0.0, 1e-6, "bounds are kept")
    lines = tuple(Line(n, solution.time, solution.q[:, k]) for k, n in ((0, "torso"), (-1, "elbow")))
    yield Plot("t [s]", "q [rad]", lines)
