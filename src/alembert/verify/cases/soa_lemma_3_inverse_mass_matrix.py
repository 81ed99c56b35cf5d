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
    Lemma 0.3: M^-1 = [I - H psi K]* D^-1 [I - H psi K]""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_3_inverse_mass_matrix() -> Items:
    """The inverse of the mass matrix as a product of operators."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        X = I - c.ops.H @ c.ops.psi @ c.ops.K
        inverse = X.T @ c.ops.D.inverse @ X
        error = apart(inverse @ c.mass_matrix, np.eye(c.model.nv), X, c.ops.D.inverse, X, c.mass_matrix)
        yield Check(f"{name}: difference / norms", error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)
