"""Nikravesh, Gim, Arabyan and Rein 1989."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import NIKRAVESH_AXIS, NIKRAVESH_PRINTED, nikravesh
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Nikravesh, Gim, Arabyan, Rein",
        "matrices D*B, C and E",
    ),
    kind="published",
    tags=("loops", "acc1989"),
    missing="the geometry; the printed matrix D*B determines it",
)
def nikravesh_matrices() -> Items:
    """Constraint Jacobian, rank and velocity transformation of a closed loop cut at a revolute joint."""
    from alembert.joints.closure import across

    model = nikravesh()
    q = np.zeros(4)
    G = model.constraint_jacobian(q)
    basis = np.column_stack([*across(NIKRAVESH_AXIS), NIKRAVESH_AXIS])
    yield Check("rows of rotation", G[:2], np.zeros((2, 4)), 1e-15, "parallel axes stay parallel")
    yield Check("D*B", basis @ G[2:], NIKRAVESH_PRINTED, 1e-14, "entries are sqrt(2), printed as 1.4142")
    found = model.constraint_analysis(q)
    yield Check("rank, freedoms", (found.rank, found.degrees_of_freedom), (2, 2), 0, "integers")
    E = model.independent_coordinates(q, independent=["T1", "R2"]).E
    yield Check("E", E, [[1, 0], [0, 1], [0, -1], [0, 1]], 1e-14, "integers in print; rounding")
