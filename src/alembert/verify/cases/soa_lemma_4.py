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
    Lemma 0.4: (I - H psi K) H phi = H psi""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_4() -> Items:
    """Locked and free joints: phi and psi."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        error = apart((I - o.H @ o.psi @ o.K) @ o.H @ o.phi, o.H @ o.psi, o.H, o.psi, o.K, o.H, o.phi)
        yield Check(f"{name}: difference / norms", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
