"""Factors of the mass matrix, the Riccati equation, and the twin in time of the sweep over bodies.

The lemmas of the spatial operator algebra, on random trees.
"""

import numpy as np
import scipy

from alembert.model import Placement
from alembert.operators import I, admittance, diagonalising_velocities
from alembert.sweeps.linear_quadratic import LQProblem, Stage, solve_lq
from alembert.sweeps.twin import forward_dynamics_as_lq, gibbs_function
from alembert.verify.case import SOA, Check, Items, Line, Plot, acc1989, family
from alembert.verify.random_models import (
    OPERATOR_ALL,
    OPERATOR_PLAIN,
    OPERATOR_REASON,
    OPERATOR_ROUNDING,
    ROUNDING,
    ROUNDING_REASON,
    apart,
    operator_case,
)

case = family("operators")


def _small(what: str, error: float) -> Check:
    return Check(what, error, 0.0, OPERATOR_ROUNDING, OPERATOR_REASON)


@case(source=f"{SOA}: M = H phi M phi* H*", kind="published", tags=("random",))
def soa_newton_euler_factors() -> Items:
    """The mass matrix as a product of operators; with armature and rotors three more terms."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        o = c.ops
        X = o.H @ o.phi
        M = X @ o.M @ X.T + o.J_r + X @ o.R + o.R.T @ X.T
        yield _small(f"{name}: difference / norms", apart(M, c.mass_matrix, X, o.M, X))


@case(source=f"{SOA}, (0.25): M = P - E_phi [P - P H* D^-1 H P] E_phi*", kind="published", tags=("random",))
def soa_riccati() -> Items:
    """Articulated inertias satisfy the Riccati equation of a Kalman filter along the bodies."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        left = o.P - o.E_phi @ o.P @ o.E_phi.T + o.K @ o.D @ o.K.T
        yield _small(f"{name}: difference / norms", apart(left, o.M, o.E_phi, o.P, o.E_phi))


@case(
    source=f"""{SOA}, (0.37): accelerations under a constraint, b = D^-1/2 H psi B A* (3.13 of the 1989
    version lacks D^-1/2)""",
    kind="published",
    tags=("loops", "random"),
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


@case(
    source=acc1989("Rodriguez", "T = 1/2 n^T D n, n = [I + H phi K]* v"),
    kind="published",
    tags=("random", "acc1989"),
)
def innovations_energy() -> Items:
    """Velocities in which the kinetic energy is diagonal."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        n = np.asarray(diagonalising_velocities(c.model, c.q, c.v))
        T = c.model.kinetic_energy(c.q, c.v)
        yield Check(
            f"{name}: relative difference", n @ (c.ops.D @ n) / 2 / T - 1, 0.0, ROUNDING, ROUNDING_REASON
        )


@case(
    source="""D'Eleuterio, Damaren, The relationship between recursive multibody dynamics and discrete-time optimal
    control, IEEE Trans. Robotics and Automation 7 (1991), (32)-(42): inputs are accelerations, Gibbs' function is
    the cost""",
    kind="published",
    tags=("random",),
)
def twin_forward_dynamics() -> Items:
    """A tree's forward dynamics posed as an optimal-control problem, solved by the sweep in time."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        solution = solve_lq(forward_dynamics_as_lq(c.model, c.q, c.v, c.tau))
        a = c.model.forward_dynamics(c.q, c.v, c.tau)
        inputs = np.concatenate([np.ravel(u) for u in solution.inputs])
        error = apart(inputs, a, c.ops.mass_matrix.inverse, c.mass_matrix, a)
        yield _small(f"{name}: accelerations, difference / norms", error)
        d = 0.1 * c.a
        rise = gibbs_function(c.model, c.q, c.v, a + d, c.tau) - gibbs_function(c.model, c.q, c.v, a, c.tau)
        expected = d @ c.mass_matrix @ d / 2
        scale = abs(solution.cost) + a @ c.mass_matrix @ a + 1.0
        yield Check(
            f"{name}: rise of Gibbs' function / size",
            (rise - expected) / scale,
            0.0,
            1e-11,
            "differences of costs; rounding",
        )


@case(
    source="""Discrete-time regulator of a double integrator: the stationary Riccati equation (Bryson, Ho, Applied
    Optimal Control, 1975, ch. 5)""",
    kind="closed form",
)
def double_integrator_regulator(step: float = 0.1, stages: int = 60) -> Items:
    """The sweep that gives accelerations along bodies gives feedback gains along time."""
    A, B = np.array([[1.0, step], [0.0, 1.0]]), np.array([[step**2 / 2], [step]])
    Q, R = np.diag([1.0, 0.1]), np.array([[0.01]])
    solution = solve_lq(LQProblem([Stage(A, B, Q, R=R)] * stages, initial=[1.0, 0.0]))
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = np.linalg.solve(B.T @ P @ B + R, B.T @ P @ A)
    reason = "the closed loop forgets the end by 0.8 per stage: 0.8^120 = 2e-12"
    yield Check("gain of the first stage", solution.gains[0], K, 1e-9, reason)
    yield Check("cost to go of the first stage", solution.P[0], P, 1e-8, reason)
    x = np.array(solution.states)
    t = step * np.arange(1, len(x) + 1)
    yield Plot("t [s]", "state", (Line("place", t, x[:, 0]), Line("speed", t, x[:, 1])))


@case(source=f"{SOA}, Lemma 0.1: M = [I + H phi K] D [I + H phi K]*", kind="published", tags=("random",))
def soa_lemma_1_innovations() -> Items:
    """The innovations factorisation of the mass matrix."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        L = I + c.ops.H @ c.ops.phi @ c.ops.K
        error = apart(L @ c.ops.D @ L.T, c.mass_matrix, L, c.ops.D, L)
        yield _small(f"{name}: difference / norms", error)


@case(source=f"{SOA}, Lemma 0.2: [I + H phi K]^-1 = I - H psi K", kind="published", tags=("random",))
def soa_lemma_2_inverse_factor() -> Items:
    """The inverse of the innovations factor, without solving."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        L, X = I + o.H @ o.phi @ o.K, I - o.H @ o.psi @ o.K
        yield _small(f"{name}: difference / norms", apart(L @ X, np.eye(L.shape[0]), L, X))


@case(
    source=f"{SOA}, Lemma 0.3: M^-1 = [I - H psi K]* D^-1 [I - H psi K]", kind="published", tags=("random",)
)
def soa_lemma_3_inverse_mass_matrix() -> Items:
    """The inverse of the mass matrix as a product of operators."""
    for name in OPERATOR_ALL:
        c = operator_case(name)
        X = I - c.ops.H @ c.ops.psi @ c.ops.K
        inverse = X.T @ c.ops.D.inverse @ X
        error = apart(inverse @ c.mass_matrix, np.eye(c.model.nv), X, c.ops.D.inverse, X, c.mass_matrix)
        yield _small(f"{name}: difference / norms", error)


@case(source=f"{SOA}, Lemma 0.4: (I - H psi K) H phi = H psi", kind="published", tags=("random",))
def soa_lemma_4() -> Items:
    """Locked and free joints: phi and psi."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        error = apart((I - o.H @ o.psi @ o.K) @ o.H @ o.phi, o.H @ o.psi, o.H, o.psi, o.K, o.H, o.phi)
        yield _small(f"{name}: difference / norms", error)


@case(
    source=f"{SOA}, Lemma 5 (chains), and its extension to trees: Omega(k, m) = psi*(c, k) Y(c) psi(c, m)",
    kind="published",
    tags=("random",),
)
def soa_lemma_5_admittance() -> Items:
    """Operational-space admittance J M^-1 J^T of several frames.

    As printed (branches do not couple) the lemma holds for chains; where branches share a moving body they do couple.
    """
    o = operator_case("chain").ops
    tilde = o.psi - I
    printed = o.Upsilon + tilde.T @ o.Upsilon + o.Upsilon @ tilde
    yield _small("chain: Lemma 5", apart(o.Omega, printed, o.psi, o.Upsilon, o.psi))
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


@case(source=f"{SOA}, Lemma 6: M = P - E_psi P E_psi*", kind="published", tags=("random",))
def soa_lemma_6_joseph() -> Items:
    """Joseph's form of the Riccati equation; with rotors and armature three more terms."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        left = o.M + o.K @ o.J_r @ o.K.T - o.K @ o.R.T - o.R @ o.K.T
        error = apart(o.P - o.E_psi @ o.P @ o.E_psi.T, left, o.E_phi, o.tau_bar, o.P, o.tau_bar, o.E_phi)
        yield _small(f"{name}: difference / norms", error)


@case(
    source=f"{SOA}, Lemma 7: psi^-1 = phi^-1 + K H; psi M psi* = P + psi~ P + P psi~*; H psi M psi* H* = D",
    kind="published",
    tags=("random",),
)
def soa_lemma_7() -> Items:
    """Relations of the articulated and the composite operator."""
    for name in OPERATOR_ALL:
        o = operator_case(name).ops
        error = apart(o.psi.inverse, o.phi.inverse + o.K @ o.H, o.K, o.H)
        yield _small(f"{name}: psi^-1", error)
    for name in OPERATOR_PLAIN:
        o = operator_case(name).ops
        tilde = o.psi - I
        error = apart(o.psi @ o.M @ o.psi.T, o.P + tilde @ o.P + o.P @ tilde.T, o.psi, o.P, o.psi)
        yield _small(f"{name}: psi M psi*", error)
        error = apart(o.H @ o.psi @ o.M @ o.psi.T @ o.H.T, o.D, o.H, o.psi, o.P, o.psi, o.H)
        yield _small(f"{name}: H psi M psi* H*", error)
