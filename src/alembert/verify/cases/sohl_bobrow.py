"""Sohl and Bobrow 2001: arms and acrobots at the least effort."""

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


@case(
    source="Sohl, Bobrow, A recursive multibody dynamics and sensitivity algorithm for branched kinematic chains (2001), "
    "sections 5.2 and 5.3: acrobot from q1 = -1.0 and -1.3, branched acrobot from -1.0",
    kind="published",
    tags=("optimal", "tree"),
    slow=True,
    missing="masses, lengths and time: those of alembert.library, 4 s; no costs are printed",
)
def sohl_bobrow_acrobots() -> Items:
    """The passive base joint swings up to the vertical; IPOPT on the smallest form and FATROP find the same motion."""
    lines = []
    for name, example in (
        ("acrobot from -1.0", examples.acrobot(-1.0)),
        ("acrobot from -1.3", examples.acrobot(-1.3)),
        ("branched from -1.0", examples.branched_acrobot()),
    ):
        solution = example.solve()
        yield Check(f"{name}: solved", float(solution.success), 1.0, 0.0, "the solver says so")
        off = np.abs([solution.q[-1, 0] - np.pi / 2, *solution.v[-1]]).max()
        yield Check(f"{name}: from upright at rest", off, 0.0, 1e-7, "tolerance of the solver")
        passive = np.abs(solution.efforts[:, 0]).max()
        yield Check(f"{name}: torque of the base [N m]", passive, 0.0, 0.0, "it has no motor")
        for solver in ("ipopt", "fatrop"):
            change = example.solve(solver=solver).cost / solution.cost - 1
            yield Check(f"{name}: cost by {solver}", change, 0.0, 1e-6, "both to 1e-8 of their slopes")
        lines.append(Line(name, solution.time, solution.q[:, 0]))
    yield Plot("t [s]", "q of the base [rad]", tuple(lines))
