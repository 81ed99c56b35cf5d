"""The sweep in time: the linear-quadratic problem of one Newton step, solved in O(N).

For stages k = 0 ... N-1 with states x_k, inputs u_k and

    x_{k+1} = A_k x_k + B_k u_k + b_k                                                         (1)
    J = sum_k 1/2 x_k' Q_k x_k + x_k' N_k u_k + 1/2 u_k' R_k u_k + q_k' x_k + r_k' u_k
        + 1/2 x_N' Q_N x_N + q_N' x_N                                                         (2)

the inward sweep eliminates the inputs from the last stage to the first by the step that finds articulated
inertias (`alembert.sweeps.linear_quadratic`, D'Eleuterio and Damaren (38)-(41)). Conditions at the end,

    C x_N + c = 0                                                                             (3)

have multipliers eta that are left open during the inward sweep: the cost to go is, with W and w besides P and z,

    V_k(x, eta) = 1/2 x' P x + x' (z + S eta) + 1/2 eta' W eta + eta' w                       (4)

(S: how the end depends on the state of stage k; -W: what can be reached, the Gramian). Conditions at the start
C_0 x_0 + c_0 = 0 and eta then follow from one small system, and the outward sweep gives the step,

    u_k = -K_k x_k + k_k,   lambda_k = P_k x_k + z_k + S_k eta                                (5)

Adding rho C'C to Q_N changes neither (1)-(3) nor the step. A large rho lets the inward sweep see that the
conditions at the end leave no room for a direction of negative curvature, as the limit of a penalty.

Bounds on d = d_0 + D (x_k, u_k) add a slope D' `push` to (2) (their curvature is in Q, N and R already).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np
import scipy.linalg as sl

from alembert.engine.stage_loop import SHARED, StageLoop
from alembert.sweeps.linear_quadratic import stage_gains, stage_record

Array = np.ndarray

LARGEST_UNROLLED = 30
"""states and inputs of a stage; beyond, the straight-line code of a stage is too long and LAPACK takes over"""
SINGULAR = 1e-11
"""of the largest eigenvalue: below it, conditions count as repeating each other"""
DOUBTFUL = 1e-4
"""the same: below it they may do so, away from the solution"""


@dataclass
class LinearStages:
    """(1) and (2); the first axis is the stage. Q and q have N + 1 entries; D has d_0 in its first column."""

    A: Array
    B: Array
    b: Array
    Q: Array
    N: Array
    R: Array
    q: Array
    r: Array
    D: Array
    push: Array

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Stages, states, inputs."""
        return self.B.shape


@dataclass
class Conditions:
    """C x + c = 0."""

    C: Array
    c: Array


class Indefinite(Exception):
    """The cost has no minimum: the inputs of this stage have a direction of negative curvature."""

    def __init__(self, stage: int) -> None:
        super().__init__(f"stage {stage}")
        self.stage = stage


class TimeSweep:
    """The minimum of (2) on arrays that stay where they are.

    After `solve`: `x` (N+1, n), `u` (N, m), `costates` (N+1, n; the first is that of the state at the start),
    `start` and `end`, the multipliers of the conditions, and the `gains` K of (5).
    """

    def __init__(self, stages: LinearStages, ends: int) -> None:
        self.stages = stages
        N, n, m = stages.sizes
        columns = 1 + ends
        self.P, self.z = np.zeros((N + 1, n, n)), np.zeros((N + 1, n, columns))
        self.W = np.zeros((N + 1, ends, columns))
        self.gains, self.offsets, self.flag = np.zeros((N, m, n)), np.zeros((N, m, columns)), np.zeros(N)
        self.x, self.u, self.costates = np.zeros((N + 1, n)), np.zeros((N, m)), np.zeros((N + 1, n))
        self.start, self.end = np.zeros(0), np.zeros(ends)
        self.weights, self._shift = np.ones(columns), np.zeros(1)
        self.unrolled = n + m <= LARGEST_UNROLLED
        s = stages
        if self.unrolled:
            given = (s.A, s.B, s.b, s.Q, s.N, s.R, s.q, s.r, s.D, s.push, self._shift, self.P, self.z, self.W)
            left = (self.P, self.z, self.W, self.gains, self.offsets, self.flag)
            self._compiled = inward_loop(n, m, columns, s.D.shape[1]).bind(N, [*given, *left])
        known = (s.A, s.B, s.b, self.gains, self.offsets, self.P, self.z, self.weights, self.x)
        self._outward = outward_loop(n, m, columns).bind(N, [*known, self.u, self.x, self.costates])

    def solve(
        self,
        start: Conditions,
        end: Conditions,
        *,
        shift: float = 0.0,
        rho: float = 1.0,
        damping: float = 0.0,
    ) -> None:
        """Minimise (2), with `shift` times the identity added to all R and to what is free at the start.

        `rho` is relative to the largest entries of C and R. Conditions at the end that can hardly be reached
        are pursued with `damping`, relative to those that can.
        """
        s, N = self.stages, len(self.u)
        size = np.abs(end.C).max() if end.C.size else 0.0
        rho = rho * max(1e-3, np.abs(s.R[-1]).max()) / size**2 if size else 0.0
        P, z = self.P[N], self.z[N]
        P[...] = s.Q[N]
        z[:, 0] = s.q[N]
        if size:
            P += rho * end.C.T @ end.C
            z[:, 0] += rho * end.C.T @ end.c
            z[:, 1:] = end.C.T
            self.W[N, :, 0], self.W[N, :, 1:] = end.c, 0.0
        self._shift[0] = shift
        if self.unrolled:
            done = self._compiled()
            if done < N:
                raise Indefinite(N - 1 - done)
        else:
            self._lapack(shift)
        self.x[0], self.start, eta = _close(self.P[0], self.z[0], self.W[0], start, shift, damping)
        self.weights[1:] = eta
        self.costates[0] = self.P[0] @ self.x[0] + self.z[0] @ self.weights
        self._outward()
        self.end = eta + rho * (end.C @ self.x[N] + end.c) if size else eta

    def residual(self, start: Conditions, end: Conditions, shift: float) -> tuple[Array, ...]:
        """What a step leaves of (1)-(3) and of the conditions for a minimum: q, r, b, c_0, c."""
        s, x, u, costates = self.stages, self.x, self.u, self.costates
        n = x.shape[1]
        forces = (
            np.matmul(s.push[:, None, :], s.D[:, :, 1:])[:, 0]
            if s.push.size
            else np.zeros((len(u), n + u.shape[1]))
        )
        q = np.matmul(s.Q, x[:, :, None])[:, :, 0] + s.q - costates
        q[:-1] += (
            np.matmul(s.N, u[:, :, None])[:, :, 0]
            + np.matmul(costates[1:, None, :], s.A)[:, 0]
            + forces[:, :n]
        )
        q[0] += start.C.T @ self.start + costates[0]
        q[-1] += end.C.T @ self.end
        if shift:  # of what the start leaves open
            free = _start(start, n)[1]
            q[0] += shift * free @ (free.T @ x[0])
        r = np.matmul(s.R, u[:, :, None])[:, :, 0] + s.r + shift * u + forces[:, n:]
        r += np.matmul(x[:-1, None, :], s.N)[:, 0] + np.matmul(costates[1:, None, :], s.B)[:, 0]
        b = np.matmul(s.A, x[:-1, :, None])[:, :, 0] + np.matmul(s.B, u[:, :, None])[:, :, 0] + s.b - x[1:]
        return q, r, b, start.C @ x[0] + start.c, end.C @ x[-1] + end.c

    def refine(self, start: Conditions, end: Conditions, *, shift: float, rho: float, damping: float) -> None:
        """Correct a step by what it leaves: bounds that nearly hold make weights of very different size."""
        s = self.stages
        kept = [a.copy() for a in (s.q, s.r, s.b, s.push)]
        found = [a.copy() for a in (self.x, self.u, self.costates, self.start, self.end)]
        s.q[...], s.r[...], s.b[...], first, last = self.residual(start, end, shift)
        s.push[...] = 0.0
        try:
            self.solve(
                Conditions(start.C, first), Conditions(end.C, last), shift=shift, rho=rho, damping=damping
            )
        finally:
            s.q[...], s.r[...], s.b[...], s.push[...] = kept
        more = [self.x, self.u, self.costates, self.start, self.end]
        if not all(np.all(np.isfinite(a)) for a in more):
            more = [np.zeros_like(a) for a in more]
        self.x[...], self.u[...], self.costates[...] = (
            a + b for a, b in zip(found[:3], more[:3], strict=True)
        )
        self.start, self.end = found[3] + more[3], found[4] + more[4]

    def _lapack(self, shift: float) -> None:
        """The elimination of `inward_loop` on arrays."""
        s, P, z, W, K, k = self.stages, self.P, self.z, self.W, self.gains, self.offsets
        N, n, m = s.sizes
        forces = np.matmul(s.push[:, None, :], s.D[:, :, 1:])[:, 0] if s.push.size else np.zeros((N, n + m))
        for i in reversed(range(N)):
            A, B, after = s.A[i], s.B[i], P[i + 1]
            moved = z[i + 1].copy()
            moved[:, 0] += after @ s.b[i]
            PA, PB = after @ A, after @ B
            D = s.R[i] + shift * np.eye(m) + B.T @ PB
            U = A.T @ PB + s.N[i]
            e = -B.T @ moved
            e[:, 0] -= s.r[i] + forces[i, n:]
            try:
                factor = sl.cho_factor(D, lower=True, check_finite=False)
            except sl.LinAlgError:
                raise Indefinite(i) from None
            K[i] = sl.cho_solve(factor, U.T, check_finite=False)
            k[i] = sl.cho_solve(factor, e, check_finite=False)
            P[i] = A.T @ PA - U @ K[i] + s.Q[i]
            P[i] = (P[i] + P[i].T) / 2
            z[i] = A.T @ moved + K[i].T @ e
            z[i, :, 0] += s.q[i] + forces[i, :n]
            W[i] = W[i + 1] - e[:, 1:].T @ k[i]
            W[i, :, 0] += z[i + 1, :, 1:].T @ s.b[i]


def _close(
    P: Array, z: Array, W: Array, start: Conditions, shift: float, damping: float
) -> tuple[Array, Array, Array]:
    """The stationary point of (4) at the first stage: x_0, the multipliers of the start, and eta.

    x_0 = x_p + Y y with C_0 Y = 0; what the start leaves open, y, and eta are found together.
    """
    x, Y = _start(start, len(P))
    free, S = Y.shape[1], z[:, 1:]
    if free:
        e = len(W)
        system = np.empty((free + e, free + e))
        system[:free, :free], system[free:, free:] = Y.T @ P @ Y + shift * np.eye(free), W[:, 1:]
        system[:free, free:] = Y.T @ S
        system[free:, :free] = system[:free, free:].T
        right = -np.concatenate([Y.T @ (P @ x + z[:, 0]), W[:, 0] + S.T @ x])
        found = _solve_symmetric(system, right, free, damping)
        eta = found[free:]
        x = x + Y @ found[:free]
    else:
        eta = _solve_symmetric(W[:, 1:], -(W[:, 0] + S.T @ x), 0, damping)
    if not len(start.c):
        return x, start.c, eta
    slope = P @ x + z[:, 0] + S @ eta
    if len(start.c) == len(P) and not free:
        return x, -np.linalg.solve(start.C.T, slope), eta
    return x, -np.linalg.lstsq(start.C.T, slope, rcond=1e-12)[0], eta


def _start(start: Conditions, n: int) -> tuple[Array, Array]:
    """The smallest x with C_0 x + c_0 = 0, and a basis of what C_0 leaves open."""
    if not len(start.c):
        return np.zeros(n), np.eye(n)
    if len(start.c) == n:
        try:
            x = -np.linalg.solve(start.C, start.c)
        except np.linalg.LinAlgError:
            x = np.full(n, np.nan)
        if np.abs(x).max() < 1e8:
            return x, np.empty((n, 0))
    U, values, V = np.linalg.svd(start.C)
    rank = int(np.sum(values > 1e-12 * values[0])) if len(values) else 0
    return -V[:rank].T @ ((U[:, :rank].T @ start.c) / values[:rank]), V[rank:].T


def _solve_symmetric(system: Array, right: Array, free: int, damping: float) -> Array:
    """The solution; where conditions repeat each other, or ask for what cannot be reached, the smallest one.

    A minimum over what is free at the start has as many positive eigenvalues.
    """
    if not len(system):
        return right
    if not np.isfinite(system).all():
        return np.full(len(right), np.nan)
    scale = 1 / np.sqrt(np.maximum(np.abs(system).max(axis=1), 1e-300))
    values, vectors = np.linalg.eigh(system * scale[:, None] * scale)
    sizes = np.abs(values)
    largest = sizes.max()
    if free and np.sum(values > SINGULAR * largest) < free:
        raise Indefinite(0)
    if sizes.min() < DOUBTFUL * largest:
        values = np.where(sizes > SINGULAR * largest, values, np.inf)
        if damping:
            values = values + (damping * largest) ** 2 / values
    return (vectors @ ((vectors.T @ (right * scale)) / values)) * scale


# --- machine code -------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def inward_loop(n: int, m: int, columns: int, bounds: int) -> StageLoop:
    """The inward sweep for stages of these sizes."""
    shapes = {
        **{"A": (n, n), "B": (n, m), "b": (n, 1), "Q": (n, n), "N": (n, m), "R": (m, m), "q": (n, 1)},
        **{"r": (m, 1), "D": (bounds, 1 + n + m), "push": (bounds, 1), "shift": (1, 1)},
        **{"P": (n, n), "z": (n, columns), "W": (columns - 1, columns)},
    }
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    rest = columns - 1
    force = s["D"][:, 1:].T @ s["push"]
    b = stage_record(
        {
            **{"P": s["P"], "z": s["z"], "A": s["A"], "B": s["B"], "N": s["N"]},
            "c": ca.horzcat(s["b"], ca.SX(n, rest)),
            "R": s["R"] + s["shift"] * ca.SX.eye(m),
            "t": ca.horzcat(-s["r"] - force[n:], ca.SX(m, rest)),
        },
        coupled=True,
    )
    K, k = stage_gains(b)
    P = b.parent.P.matrix() + s["Q"]
    z = b.parent.z.vector() + ca.horzcat(s["q"] + force[:n], ca.SX(n, rest))
    W = s["W"] - b.e[:, 1:].T @ k
    W[:, 0] += s["z"][:, 1:].T @ s["b"]
    function = ca.Function(
        "time_sweep_inward",
        list(s.values()),
        [ca.densify(x) for x in (P, z, W, K, k, b.factor.least_pivot)],
    )
    shifts = [SHARED if name == "shift" else 1 if name in ("P", "z", "W") else 0 for name in s]
    return StageLoop(function, [*shifts, 0, 0, 0, 0, 0, 0], backward=True, stop=5)


@lru_cache(maxsize=64)
def outward_loop(n: int, m: int, columns: int) -> StageLoop:
    """The outward sweep, (5)."""
    shapes = {
        **{"A": (n, n), "B": (n, m), "b": (n, 1), "K": (m, n), "k": (m, columns), "P": (n, n)},
        **{"z": (n, columns), "weights": (columns, 1), "x": (n, 1)},
    }
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    u = s["k"] @ s["weights"] - s["K"] @ s["x"]
    after = s["A"] @ s["x"] + s["B"] @ u + s["b"]
    costate = s["P"] @ after + s["z"] @ s["weights"]
    function = ca.Function("time_sweep_outward", list(s.values()), [u, after, costate])
    shifts = [0, 0, 0, 0, 0, 1, 1, SHARED, 0]
    return StageLoop(function, [*shifts, 0, 1, 1], backward=False)
