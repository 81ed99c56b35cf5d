"""The optimal-control twin."""

import numpy as np

from alembert.sweeps.linear_quadratic import solve_lq
from alembert.sweeps.twin import forward_dynamics_as_lq, gibbs_function
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    OPERATOR_ALL,
    OPERATOR_REASON,
    OPERATOR_ROUNDING,
    apart,
    operator_case,
)


@case(
    source="""D'Eleuterio, Damaren, The relationship between recursive multibody dynamics and discrete-time optimal
    control, IEEE Trans. Robotics and Automation 7 (1991), (32)-(42): inputs are accelerations, Gibbs' function is
    the cost""",
    kind="published",
    tags=("operators", "random"),
)
def twin_forward_dynamics() -> Items:
    """A tree's forward dynamics posed as an optimal-control problem, solved by the sweep in time."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        solution = solve_lq(forward_dynamics_as_lq(c.model, c.q, c.v, c.tau))
        a = c.model.forward_dynamics(c.q, c.v, c.tau)
        inputs = np.concatenate([np.ravel(u) for u in solution.inputs])
        error = apart(inputs, a, c.ops.mass_matrix.inverse, c.mass_matrix, a)
        yield Check(
            f"{name}: accelerations, difference / norms", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON
        )
        d = 0.1 * c.a
        rise = gibbs_function(c.model, c.q, c.v, a + d, c.tau) - gibbs_function(c.model, c.q, c.v, a, c.tau)
        expected = d @ c.mass_matrix @ d / 2
        scale = abs(solution.cost) + a @ c.mass_matrix @ a + 1.0
        yield Check(
            f"{name}: rise of Gibbs' function / size",
            (rise - expected) / scale,
            0.0,
            1e-11,
            "differences of costs; rounding",
        )
