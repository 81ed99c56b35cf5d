"""Spatial operators."""

import numpy as np

from alembert.operators import I
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    OPERATOR_ALL,
    OPERATOR_ROUNDING,
    apart,
    operator_case,
)


@case(
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992),
    (0.37): accelerations under a constraint, b = D^-1/2 H psi B A* (3.13 of the 1989 version lacks
    D^-1/2)""",
    kind="published",
    tags=("operators", "loops", "random"),
)
def soa_closed_chain() -> Items:
    """Constrained accelerations in closed form, against the dense equations."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        o = c.ops
        A = np.random.default_rng(3).normal(size=(2, 6))  # A J beta' = 0
        B = o.B(["tip13"])
        values, vectors = np.linalg.eigh(o.D.dense())
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        X = (I - o.H @ o.psi @ o.K).dense()
        b = root @ (o.H @ o.psi @ B).dense() @ A.T
        Lam = A @ (B.T @ o.Omega @ B).dense() @ A.T
        beta = X.T @ root @ (np.eye(len(b)) - b @ np.linalg.solve(Lam, b.T)) @ root @ X @ c.tau
        C = A @ o.jacobian(["tip13"]).dense()
        kkt = np.block([[c.mass_matrix, C.T], [C, np.zeros((2, 2))]])
        expected = np.linalg.solve(kkt, np.concatenate([c.tau, np.zeros(2)]))[: c.model.nv]
        error = apart(beta, expected, np.array([[np.linalg.cond(kkt)]]), expected)
        reason = "20 eps times the condition number, which the dense solution loses"
        yield Check(f"{name}: difference / condition", error, 0.0, OPERATOR_ROUNDING, reason)
