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
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992): M =
    H phi M phi* H*""",
    kind="published",
    tags=("operators", "random"),
)
def soa_newton_euler_factors() -> Items:
    """The mass matrix as a product of operators; with armature and rotors three more terms."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        o = c.ops
        X = o.H @ o.phi
        M = X @ o.M @ X.T + o.J_r + X @ o.R + o.R.T @ X.T
        yield Check(
            f"{name}: difference / norms",
            apart(M, c.mass_matrix, X, o.M, X),
            0.0,
            OPERATOR_ROUNDING,
            OPERATOR_REASON,
        )
