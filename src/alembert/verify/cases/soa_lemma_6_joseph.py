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
    Lemma 6: M = P - E_psi P E_psi*""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_6_joseph() -> Items:
    """Joseph's form of the Riccati equation; with rotors and armature three more terms."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        left = o.M + o.K @ o.J_r @ o.K.T - o.K @ o.R.T - o.R @ o.K.T
        error = apart(o.P - o.E_psi @ o.P @ o.E_psi.T, left, o.E_phi, o.tau_bar, o.P, o.tau_bar, o.E_phi)
        yield Check(f"{name}: difference / norms", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
