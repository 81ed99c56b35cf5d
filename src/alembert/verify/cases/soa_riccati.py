"""Spatial operators."""

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
    (0.25): M = P - E_phi [P - P H* D^-1 H P] E_phi*""",
    kind="published",
    tags=("operators", "random"),
)
def soa_riccati() -> Items:
    """Articulated inertias satisfy the Riccati equation of a Kalman filter along the bodies."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        left = o.P - o.E_phi @ o.P @ o.E_phi.T + o.K @ o.D @ o.K.T
        yield Check(
            f"{name}: difference / norms",
            apart(left, o.M, o.E_phi, o.P, o.E_phi),
            0.0,
            OPERATOR_ROUNDING,
            OPERATOR_REASON,
        )
