"""Spatial operators."""

import numpy as np

from alembert.model import Placement
from alembert.operators import I, admittance
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    OPERATOR_ALL,
    OPERATOR_REASON,
    OPERATOR_ROUNDING,
    apart,
    operator_case,
)


@case(
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992),
    Lemma 5 (chains), and its extension to trees: Omega(k, m) = psi*(c, k) Y(c) psi(c, m)""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_5_admittance() -> Items:
    """Operational-space admittance J M^-1 J^T of several frames.

    As printed (branches do not couple) the lemma holds for chains; where branches share a moving body they do couple.
    """
    o = operator_case("chain").ops
    tilde = o.psi - I
    printed = o.Upsilon + tilde.T @ o.Upsilon + o.Upsilon @ tilde
    yield Check(
        "chain: Lemma 5",
        apart(o.Omega, printed, o.psi, o.Upsilon, o.psi),
        0.0,
        OPERATOR_ROUNDING,
        OPERATOR_REASON,
    )
    for name in OPERATOR_ALL:
        c = operator_case(name)
        frames: list[str | tuple[str, Placement]] = [
            "tip13",
            ("body7", Placement.from_rpy((0.3, -0.2, 0.5), (0.1, 0.2, 0.3))),
            "tip4",
        ]
        J = c.ops.jacobian(frames).dense()
        dense = J @ np.linalg.solve(c.mass_matrix, J.T)
        condition = np.array([[np.linalg.cond(c.mass_matrix)]])
        error = apart(admittance(c.model, c.q, frames), dense, J, np.linalg.inv(c.mass_matrix), J, condition)
        reason = "20 eps times the norms and the condition number of M, which the dense solution loses"
        yield Check(f"{name}: difference / norms", error, 0.0, OPERATOR_ROUNDING, reason)
