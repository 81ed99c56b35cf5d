"""Spatial operators."""

from alembert.operators import I
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    OPERATOR_ALL,
    OPERATOR_PLAIN,
    OPERATOR_REASON,
    OPERATOR_ROUNDING,
    apart,
    operator_case,
)


@case(
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992),
    Lemma 7: psi^-1 = phi^-1 + K H; psi M psi* = P + psi~ P + P psi~*; H psi M psi* H* = D""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_7() -> Items:
    """Relations of the articulated and the composite operator."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        error = apart(o.psi.inverse, o.phi.inverse + o.K @ o.H, o.K, o.H)
        yield Check(f"{name}: psi^-1", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
    for name in OPERATOR_PLAIN:
        o = operator_case(name).ops
        tilde = o.psi - I
        error = apart(o.psi @ o.M @ o.psi.T, o.P + tilde @ o.P + o.P @ tilde.T, o.psi, o.P, o.psi)
        yield Check(f"{name}: psi M psi*", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
        error = apart(o.H @ o.psi @ o.M @ o.psi.T @ o.H.T, o.D, o.H, o.psi, o.P, o.psi, o.H)
        yield Check(f"{name}: H psi M psi* H*", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
