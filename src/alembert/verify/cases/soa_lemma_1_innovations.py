"""Spatial operators."""

from alembert.operators import I
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
    Lemma 0.1: M = [I + H phi K] D [I + H phi K]*""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_1_innovations() -> Items:
    """The innovations factorisation of the mass matrix."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        L = I + c.ops.H @ c.ops.phi @ c.ops.K
        error = apart(L @ c.ops.D @ L.T, c.mass_matrix, L, c.ops.D, L)
        yield Check(f"{name}: difference / norms", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
