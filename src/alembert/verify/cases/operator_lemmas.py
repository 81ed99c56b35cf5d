"""The lemmas of the spatial operator algebra, on random trees."""

import numpy as np

from alembert.model import Placement
from alembert.operators import I, admittance
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


@case(
    source="""Rodriguez, Jain, Kreutz-Delgado, Spatial operator algebra for multibody system dynamics (1992),
    Lemma 5 (chains), and its extension to trees: Omega(k, m) = psi*(c, k) Y(c) psi(c, m)""",
    kind="published",
    tags=("operators", "random"),
)
def soa_lemma_5_admittance() -> Items:
    """Operational-space admittance J M^-1 J^T of several frames.

    As printed (branches do not couple) the lemma holds for chains; where branches share a moving body they do couple.
    """
    o = operator_case("chain").ops
    tilde = o.psi - I
    printed = o.Upsilon + tilde.T @ o.Upsilon + o.Upsilon @ tilde
    yield Check(
        "chain: Lemma 5",
        apart(o.Omega, printed, o.psi, o.Upsilon, o.psi),
        0.0,
        OPERATOR_ROUNDING,
        OPERATOR_REASON,
    )
    for name in OPERATOR_ALL:
        c = operator_case(name)
        frames: list[str | tuple[str, Placement]] = [
            "tip13",
            ("body7", Placement.from_rpy((0.3, -0.2, 0.5), (0.1, 0.2, 0.3))),
            "tip4",
        ]
        J = c.ops.jacobian(frames).dense()
        dense = J @ np.linalg.solve(c.mass_matrix, J.T)
        condition = np.array([[np.linalg.cond(c.mass_matrix)]])
        error = apart(admittance(c.model, c.q, frames), dense, J, np.linalg.inv(c.mass_matrix), J, condition)
        reason = "20 eps times the norms and the condition number of M, which the dense solution loses"
        yield Check(f"{name}: difference / norms", error, 0.0, OPERATOR_ROUNDING, reason)


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
