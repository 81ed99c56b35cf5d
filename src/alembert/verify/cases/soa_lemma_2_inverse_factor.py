"""Spatial operators."""

import numpy as np

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
    Lemma 0.2: [I + H phi K]^-1 = I - H psi K""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_2_inverse_factor() -> Items:
    """The inverse of the innovations factor, without solving."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        L, X = I + o.H @ o.phi @ o.K, I - o.H @ o.psi @ o.K
        yield Check(
            f"{name}: difference / norms",
            apart(L @ X, np.eye(L.shape[0]), L, X),
            0.0,
            OPERATOR_ROUNDING,
            OPERATOR_REASON,
        )
