"""An arm that lets gravity help."""

import numpy as np

from alembert.optimal import examples, solve_splines
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Sohl, Bobrow, A recursive multibody dynamics and sensitivity algorithm for branched kinematic chains (2001), "
    "section 5.1: planar 2R arm from lying to standing with the least effort, Figure 2",
    kind="published",
    tags=("optimal", "tree"),
    slow=True,
    missing="masses, lengths and time: the cost 9.9 cannot be compared, the kind of motion can",
)
def sohl_bobrow_arm() -> Items:
    """It swings down first and folds its second link; splines of the joints come near the optimum among all motions."""
    problem = examples.arm().problem
    best, lifted = examples.arm().solve(), problem.solve(100)
    yield Check("solved", float(best.success and lifted.success), 1.0, 0.0, "the solver says so")
    yield Check("it swings down first", float(best.q[:, 0].min() < -1), 1.0, 0.0, "the published motion")
    yield Check("it folds up", float(np.abs(best.q[:, 1]).max() > 2.0), 1.0, 0.0, "the published motion")
    cheaper = float(best.cost < lifted.cost / 2)
    yield Check("at half the effort of lifting at once", cheaper, 1.0, 0.0, "both are local optima")
    splines = solve_splines(problem, 100, control_points=28, guess=best)
    reason = "28 control points for each joint; 40 change the cost by 1e-4"
    yield Check("cost of splines, relative", splines.cost / best.cost, 1.0, 0.005, reason)
    lines = tuple(Line(n, best.time, best.q[:, k]) for k, n in enumerate(("shoulder", "elbow")))
    yield Plot("t [s]", "q [rad]", lines)
