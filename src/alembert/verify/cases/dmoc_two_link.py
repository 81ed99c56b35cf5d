"""What DMOC keeps."""

import numpy as np

from alembert import library
from alembert.optimal import Problem, examples
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Leyendecker, Ober-Blöbaum, Marsden, Ortiz, Discrete mechanics and optimal control for constrained systems "
    "(2009/2010), section 7.1: two-link pendulum, Figure 8",
    kind="published",
    tags=("optimal", "tree"),
    missing="masses and lengths are not stated: what is checked does not depend on them",
)
def dmoc_two_link() -> Items:
    """DMOC equals midpoint collocation in momenta, and changes momentum by the applied torques alone."""
    problem = examples.swing_up().problem
    dmoc = problem.solve(64)
    momenta = problem.solve(64, transcription="midpoint-momenta", guess=dmoc)
    yield Check(
        "difference of the costs", momenta.cost - dmoc.cost, 0.0, 1e-6, "both solved to 1e-8 of their slopes"
    )
    flat = library.two_link().replace(gravity=(0.0, 0.0, 0.0))
    reach = Problem(flat, 1.0, start={"q": examples.HANGING, "v": 0}, end={"q": [0.5, 1.0], "v": 0})
    kept = reach.solve(64)
    change = np.diff(kept.momenta[:, 0]) - kept.controls[:, 0] / 64
    yield Check(
        "momentum less impulse", np.abs(change).max(), 0.0, 1e-10, "the published claim: numerical accuracy"
    )
    velocities = reach.solve(64, transcription="midpoint", guess=kept)
    lost = np.abs(np.diff(velocities.momenta[:, 0]) - velocities.controls[:, 0] / 64).max()
    yield Check("collocation in velocities loses it", float(lost > 1e-8), 1.0, 0.0, "the published contrast")
    yield Plot(
        "t [s]",
        "q [rad]",
        tuple(Line(n, dmoc.time, dmoc.q[:, k]) for k, n in enumerate(("shoulder", "elbow"))),
    )
