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

Where a minimum does not exist, a `shift` times the identity is added to all Q and R.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dgeqrf, dorgqr, dpotrf, dpotrs

from alembert.engine import elimination
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.dense import RowsSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.stage_loop import SHARED, StageLoop, elimination_loop
from alembert.sweeps.dynamics import Factor
from alembert.sweeps.linear_quadratic import stage_gains, stage_record

Array = np.ndarray

LARGEST_SCALAR = 8
"""states and inputs of a stage; beyond, its matrices are worked on in vectors"""
LARGEST_OUTWARD = 24
"""the same for the outward sweep; beyond, it goes in loops over rows, which take no longer then (measured)"""
LARGEST_END = 24
"""states up to which the small systems at the ends are compiled"""
SINGULAR = 1e-11
"""of the largest eigenvalue: below it, conditions count as repeating each other"""
UNREACHED = 1e-5
"""of the largest entry of the Gramian's diagonal"""
LARGEST_ETA = 1e2
"""the first limit of `Reach`, in units of the scaled cost, whose multipliers are of the order of one"""
LARGEST_INVERSE = 1e8
"""of an entry of the pseudoinverse of the conditions at the start: beyond, they nearly repeat each other"""
INFINITE = 1e300
"""pivots beyond it are of a matrix that is singular"""
DOUBTFUL = 1e-4
"""the same: below it they may do so, away from the solution"""
HELD = 1e4
"""rho of (6), over the curvature at the start: what conditions hold there bends as little as to count for nothing, and
rounding is 1e-12 of that curvature"""


@dataclass
class LinearStages:
    """(1) and (2); the first axis is the stage. Q and q have N + 1 entries."""

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
    """The minimum of (2) with the conditions `first` and `last`, all on arrays that stay where they are.

    After `solve`: `x` (N+1, n), `u` (N, m), `costates` (N+1, n; the first is that of the state at the start),
    `start` and `end`, the multipliers of the conditions, all of them parts of `found`; and the `gains` K of (5).
    """

    def __init__(self, stages: LinearStages, first: Conditions, last: Conditions) -> None:
        self.stages, self.first, self.last = stages, first, last
        N, n, m = stages.sizes
        starts, ends = len(first.c), len(last.c)
        columns = 1 + ends
        self.P, self.z = np.zeros((N + 1, n, n)), np.zeros((N + 1, n, columns))
        self.W = np.zeros((N + 1, ends, columns))
        self.gains, self.offsets, self.flag = np.zeros((N, m, n)), np.zeros((N, m, columns)), np.zeros(N)
        self.found, (self.x, self.u, self.costates, self.start, self.end) = together(
            (N + 1, n), (N, m), (N + 1, n), (starts,), (ends,)
        )
        self.reach = Reach()
        self.weights, self._shift, self._rho = np.ones(columns), np.zeros(1), np.zeros(1)
        self._penalty, self._trace, self._squares = np.zeros(1), np.zeros(1), np.zeros((n, n))
        s = stages
        given = (s.A, s.B, s.b, s.Q, s.N, s.R, s.q, s.r, s.D, s.push, self._shift, self.P, self.z, self.W)
        left = (self.P, self.z, self.W, self.gains, self.offsets, self.flag)
        self._inward = inward_loop(n, m, columns, s.D.shape[1]).bind(N, [*given, *left])
        known = (s.A, s.B, s.b, self.gains, self.offsets, self.P, self.z, self.weights, self.x)
        self._outward = outward_loop(n, m, columns).bind(N, [*known, self.u, self.x, self.costates])
        self._check: tuple[Callable[[], int], tuple[Array, ...]] | None = None
        self._open = self._close = self._finish = None
        if n <= LARGEST_END:
            opening, finishing = end_kernels(n, m, ends)
            self._open = opening.bind(
                1,
                [s.Q[N], s.q[N], s.R[-1], last.C, last.c, self._squares, self._rho, self._shift],
                [self.P[N], self.z[N], self.W[N], self._penalty],
            )
            self._finish = finishing.bind(
                1, [last.C, last.c, self.x[N], self.weights, self._penalty], [self.end]
            )
            self._known, self._regular = b"", False
            self._inverse, self._open_ways = np.zeros((n, starts)), np.zeros((n, n - starts))
            if starts <= n:
                self._close = closing_kernel(n, starts, ends).bind(
                    1,
                    [self.P[0], self.z[0], self.W[0], self._inverse, self._open_ways, first.c],
                    [self.x[0], self.start, self.weights, self.costates[0], self._trace],
                )

    def solve(self, *, shift: float = 0.0, rho: float = 1.0, damping: float = 0.0) -> None:
        """Minimise (2).

        `rho` is relative to the largest entries of C and R. Conditions at the end that can hardly be reached
        are pursued with `damping`, relative to those that can.
        """
        N = len(self.u)
        self._shift[0], self._rho[0] = shift, rho
        np.matmul(self.last.C.T, self.last.C, out=self._squares)
        if self._open is not None:
            self._open()
        else:
            self._set_end(shift, rho)
        done = self._inward()
        if done < N:
            raise Indefinite(N - 1 - done)
        if not (self._close is not None and self._closed()):
            self.x[0], self.start[...], self.weights[1:] = stationary(
                self.P[0], self.z[0], self.W[0], self.first, damping, self.reach
            )
            self.costates[0] = self.P[0] @ self.x[0] + self.z[0] @ self.weights
        self._outward()
        if self._finish is not None:
            self._finish()
        else:
            self.end[...] = self.weights[1:] + self._penalty * (self.last.C @ self.x[N] + self.last.c)

    def _set_end(self, shift: float, rho: float) -> None:
        """The cost to go (4) at the end."""
        s, C, N = self.stages, self.last.C, len(self.u)
        size = np.abs(C).max(initial=0.0)
        self._penalty[0] = rho * max(1e-3, np.abs(s.R[-1]).max()) / size**2 if size else 0.0
        self.P[N] = s.Q[N] + self._penalty * self._squares + shift * np.eye(len(s.Q[N]))
        self.z[N, :, 0] = s.q[N] + self._penalty * C.T @ self.last.c
        self.z[N, :, 1:] = C.T
        self.W[N, :, 0], self.W[N, :, 1:] = self.last.c, 0.0

    def _closed(self) -> bool:
        """The small system at the start, compiled; False when it wants more care."""
        C = self.first.C
        known = C.tobytes()
        if known != self._known:  # conditions on the state itself never change
            inverse, ways, self._regular = _start(C.shape, known)
            self._known = known
            if self._regular:
                self._inverse[...], self._open_ways[...] = inverse, ways
        if not self._regular:
            return False
        assert self._close is not None
        self._close()
        return 0 <= self._trace.item() < 1 / DOUBTFUL

    def residual(self, shift: float) -> tuple[Array, ...]:
        """What a step leaves of (1)-(3) and of the conditions for a minimum: q, r, b, c_0, c."""
        s, x, first, last = self.stages, self.x, self.first, self.last
        if self._check is None:
            left = (np.zeros_like(s.q), np.zeros_like(s.r), np.zeros_like(s.b))
            given = (s.A, s.B, s.b, s.Q, s.N, s.R, s.q, s.r, s.D, s.push, self._shift, x, self.u, x)
            N, n, m = s.sizes
            loop = residual_loop(n, m, s.D.shape[1])
            self._check = loop.bind(N, [*given, self.costates, self.costates, *left]), left
        self._shift[0] = shift
        check, (q, r, b) = self._check
        check()
        q[-1] = s.Q[-1] @ x[-1] + s.q[-1] + shift * x[-1] - self.costates[-1] + last.C.T @ self.end
        q[0] += first.C.T @ self.start + self.costates[0]
        return q, r, b, first.C @ x[0] + first.c, last.C @ x[-1] + last.c

    def refine(self, *, shift: float, rho: float, damping: float) -> None:
        """Correct a step by what it leaves: bounds that nearly hold make weights of very different size."""
        s = self.stages
        right = (s.q, s.r, s.b, self.first.c, self.last.c)
        kept, push, found = [a.copy() for a in right], s.push.copy(), self.found.copy()
        for a, value in zip(right, self.residual(shift), strict=True):
            a[...] = value
        s.push[...] = 0.0
        try:
            self.solve(shift=shift, rho=rho, damping=damping)
        finally:
            s.push[...] = push
            for a, value in zip(right, kept, strict=True):
                a[...] = value
        if np.isfinite(self.found).all():
            self.found += found
        else:
            self.found[...] = found


def together(*shapes: tuple[int, ...]) -> tuple[Array, list[Array]]:
    """An array, and parts of it in these shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    whole = np.zeros(sum(sizes))
    parts = np.split(whole, np.cumsum(sizes)[:-1])
    return whole, [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def stationary(
    P: Array, z: Array, W: Array, start: Conditions, damping: float, reach: Reach | None = None
) -> tuple[Array, Array, Array]:
    """The stationary point of (4) at the first stage: x_0, the multipliers of the start, and eta.

    x_0 = x_p + Y y with C_0 Y = 0; what the start leaves open, y, and eta are found together.
    """
    inverse, Y, _ = _start(start.C.shape, start.C.tobytes())
    x = -inverse @ start.c
    free, S = Y.shape[1], z[:, 1:]
    if free:
        e = len(W)
        system = np.empty((free + e, free + e))
        system[:free, :free], system[free:, free:] = Y.T @ P @ Y, W[:, 1:]
        system[:free, free:] = Y.T @ S
        system[free:, :free] = system[:free, free:].T
        right = -np.concatenate([Y.T @ (P @ x + z[:, 0]), W[:, 0] + S.T @ x])
        found = _solve_free(system, right, free, damping, reach)
        eta = found[free:]
        x = x + Y @ found[:free]
    else:
        eta = _solve_symmetric(W[:, 1:], -(W[:, 0] + S.T @ x), 0, damping, reach)
    if not len(start.c):
        return x, start.c, eta
    return x, -inverse.T @ (P @ x + z[:, 0] + S @ eta), eta


@lru_cache(maxsize=64)
def _start(shape: tuple[int, int], entries: bytes) -> tuple[Array, Array, bool]:
    """The pseudoinverse of C_0, a basis of what it leaves open, and whether no rows nearly repeat each other.

    Conditions on the state itself never change.
    """
    C = np.frombuffer(entries).reshape(shape)
    count, n = shape
    if not count:
        return np.full((n, 0), np.nan), np.eye(n), True
    if count <= n:  # C_0' = Q R; where rows nearly repeat each other, singular values tell more
        reflected = np.zeros((n, n), order="F")
        reflected[:, :count] = C.T
        reflected, tau, _, _ = dgeqrf(reflected, overwrite_a=1)
        R = reflected[:count, :count].copy(order="F")
        basis = dorgqr(reflected, tau, overwrite_a=1)[0]
        inverse = dtrsm(1.0, R, basis[:, :count].T)  # unlike dtrtrs it waits for no threads
        if np.abs(inverse).max() <= LARGEST_INVERSE:
            return inverse.T, basis[:, count:], True
    if not np.isfinite(C).all():
        return np.full((n, count), np.nan), np.empty((n, 0)), False
    U, values, V = np.linalg.svd(C)
    rank = int(np.sum(values > 1e-12 * values[0]))
    return (V[:rank].T / values[:rank]) @ U[:, :rank].T, V[rank:].T, False


def _solve_free(system: Array, right: Array, free: int, damping: float, reach: Reach | None) -> Array:
    """What is free first, where it has a minimum of its own: weights of equations in it may be of any size."""
    if not np.isfinite(right).all():
        raise Indefinite(0)
    factor, failed = dpotrf(system[:free, :free], lower=1)
    if failed or not np.isfinite(system).all():
        return _solve_symmetric(system, right, free, damping, reach)
    S = system[:free, free:]
    K = dpotrs(factor, np.column_stack([S, right[:free]]), lower=1)[0]
    left = (system[free:, free:] - S.T @ K[:, :-1], right[free:] - S.T @ K[:, -1])
    eta = _solve_symmetric(*left, 0, damping, reach)
    return np.concatenate([K[:, -1] - K[:, :-1] @ eta, eta])


def _solve_symmetric(
    system: Array, right: Array, free: int, damping: float, reach: Reach | None = None
) -> Array:
    """The solution; where conditions repeat each other, or ask for what cannot be reached, the smallest one.

    A minimum over what is free at the start has as many positive eigenvalues.
    """
    if not len(system):
        return right
    if not np.isfinite(system).all():
        return np.full(len(right), np.nan)
    rows = np.abs(system).max(axis=1)
    if not rows.any():  # nothing is asked for
        return np.zeros(len(right))
    scale = 1 / np.sqrt(np.maximum(rows, SINGULAR**2 * rows.max()))
    scaled = system * scale[:, None] * scale
    if (
        not free and rows.min() > UNREACHED * rows.max()
    ):  # of eta alone: a Gramian, unless what is asked for repeats itself
        factor, failed = dpotrf(-scaled, lower=1)
        if not failed:
            inverse = dpotrs(factor, np.eye(len(scaled)), lower=1)[0]
            if -np.trace(scaled) * np.trace(inverse) < 1 / DOUBTFUL:
                return -dpotrs(factor, right * scale, lower=1)[0] * scale
    values, vectors = np.linalg.eigh(scaled)
    sizes = np.abs(values)
    largest = sizes.max()
    if free and np.sum(values > SINGULAR * largest) < free:
        raise Indefinite(0)
    if sizes.min() < DOUBTFUL * largest:
        values = np.where(sizes > SINGULAR * largest, values, np.inf)
        if damping:
            values = values + (damping * largest) ** 2 / values
    found = (vectors.T @ (right * scale)) / values
    if reach is not None and not free:
        along = np.abs(found) * np.abs(vectors * scale[:, None]).max(axis=0)
        hardly = rows @ vectors**2 < UNREACHED * rows.max()
        reach.limit(found, along, hardly | (sizes < DOUBTFUL * largest))
    return (vectors @ found) * scale


@dataclass
class Reach:
    """How large multipliers of conditions at the end may become that can hardly be reached.

    Where what is conserved makes conditions repeat each other (the momentum of what floats freely), they do so at motions
    of the model only: away from them the Gramian is nearly singular, and the multipliers that it gives, of any size, make
    a Hessian of no use. A multiplier that is limited leaves a part of its condition to the next steps; the limit gives
    way, for conditions that are hard to reach and ask for such multipliers.
    """

    largest: float = LARGEST_ETA
    was_met: bool = False

    def limit(self, found: Array, sizes: Array, doubtful: Array) -> None:
        over = doubtful & (sizes > self.largest)
        if over.any():
            found[over] *= self.largest / sizes[over]
            self.was_met = True

    def give_way(self) -> None:
        """After a step."""
        self.largest *= 2 if self.was_met else 1
        self.was_met = False


# --- machine code -------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def inward_loop(n: int, m: int, columns: int, bounds: int) -> StageLoop:
    """The inward sweep for stages of these sizes."""
    if m and n + m > LARGEST_SCALAR:
        return elimination_loop(n, m, columns, bounds)
    shifts = [SHARED if name == "shift" else int(name in ("P", "z", "W")) for name in elimination.NAMES]
    function = inward_function(n, m, columns, bounds)
    return StageLoop(function, [*shifts, 0, 0, 0, 0, 0, 0], backward=True, stop=5)


def inward_function(n: int, m: int, columns: int, bounds: int) -> ca.Function:
    """One stage of it: from P, z and W of the stage after to its own, the gains K and k, and its least pivot."""
    shapes = {
        **{"A": (n, n), "B": (n, m), "b": (n, 1), "Q": (n, n), "N": (n, m), "R": (m, m), "q": (n, 1)},
        **{"r": (m, 1), "D": (bounds, n + m), "push": (bounds, 1), "shift": (1, 1)},
        **{"P": (n, n), "z": (n, columns), "W": (columns - 1, columns)},
    }
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    rest = columns - 1
    force = s["D"].T @ s["push"]
    b = stage_record(
        {
            **{"P": s["P"], "z": s["z"], "A": s["A"], "B": s["B"], "N": s["N"]},
            "c": ca.horzcat(s["b"], ca.SX(n, rest)),
            "R": s["R"] + s["shift"] * ca.SX.eye(m),
            "t": ca.horzcat(-s["r"] - force[n:, :], ca.SX(m, rest)),
        },
        coupled=True,
    )
    K, k = stage_gains(b)
    P = b.parent.P.matrix() + s["Q"] + s["shift"] * ca.SX.eye(n)
    z = b.parent.z.vector() + ca.horzcat(s["q"] + force[:n], ca.SX(n, rest))
    W = s["W"] - b.e[:, 1:].T @ k
    W[:, 0] += s["z"][:, 1:].T @ s["b"]
    return ca.Function(
        "time_sweep_inward",
        list(s.values()),
        [ca.densify(x) for x in (P, z, W, K, k, b.factor.least_pivot)],
    )


@lru_cache(maxsize=64)
def outward_loop(n: int, m: int, columns: int) -> StageLoop:
    """The outward sweep; of stages of many states in loops over rows."""
    shifts = [0, 0, 0, 0, 0, 1, 1, SHARED, 0]
    if n + m > LARGEST_OUTWARD:
        sizes = {"A": n * n, "B": n * m, "b": n, "K": m * n, "k": m * columns, "P": n * n, "z": n * columns}
        results = {
            "u": (m, "", [("k", "weights", 1), ("K", "x", -1)]),
            "after": (n, "b", [("A", "x", 1), ("B", "u", 1)]),
            "costate": (n, "", [("P", "after", 1), ("z", "weights", 1)]),
        }
        source: KernelSource = RowsSource({**sizes, "weights": columns, "x": n}, results)
    else:
        source = FunctionSource(outward_function(n, m, columns))
    key = f"time_sweep_outward {n} {m} {columns} {n + m > LARGEST_OUTWARD}"
    return StageLoop(source, [*shifts, 0, 1, 1], backward=False, key=key)


def outward_function(n: int, m: int, columns: int) -> ca.Function:
    """One stage of it, (5)."""
    shapes = {
        **{"A": (n, n), "B": (n, m), "b": (n, 1), "K": (m, n), "k": (m, columns), "P": (n, n)},
        **{"z": (n, columns), "weights": (columns, 1), "x": (n, 1)},
    }
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    u = s["k"] @ s["weights"] - s["K"] @ s["x"]
    after = s["A"] @ s["x"] + s["B"] @ u + s["b"]
    costate = s["P"] @ after + s["z"] @ s["weights"]
    return ca.Function("time_sweep_outward", list(s.values()), [u, after, costate])


@lru_cache(maxsize=16)
def residual_loop(n: int, m: int, bounds: int) -> StageLoop:
    """What a step leaves in a stage of the slopes in x and u, and of (1)."""
    shapes = {
        **{"A": (n, n), "B": (n, m), "b": (n, 1), "Q": (n, n), "N": (n, m), "R": (m, m), "q": (n, 1)},
        **{"r": (m, 1), "D": (bounds, n + m), "push": (bounds, 1), "shift": (1, 1)},
        **{"x": (n, 1), "u": (m, 1), "after": (n, 1), "costate": (n, 1), "next": (n, 1)},
    }
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    x, u, costate, force = s["x"], s["u"], s["next"], s["D"].T @ s["push"]
    q = s["Q"] @ x + s["q"] + s["shift"] * x - s["costate"] + s["N"] @ u + s["A"].T @ costate + force[:n]
    r = s["R"] @ u + s["r"] + s["shift"] * u + s["N"].T @ x + s["B"].T @ costate + force[n:, :]
    b = s["A"] @ x + s["B"] @ u + s["b"] - s["after"]
    found = [ca.densify(ca.SX(value)) for value in (q, r, b)]
    function = ca.Function("time_sweep_residual", list(s.values()), found)
    shifts = [SHARED if name == "shift" else int(name in ("after", "next")) for name in shapes]
    return StageLoop(function, [*shifts, 0, 0, 0], backward=False)


@lru_cache(maxsize=64)
def end_kernels(n: int, m: int, ends: int) -> tuple[Kernel, Kernel]:
    """What is done once per sweep: the cost to go at the end, from the squares C'C too, and the multipliers of the end."""
    columns = 1 + ends
    key = f"{n} {m} {ends}"

    def opening(
        Q: ca.SX, q: ca.SX, R: ca.SX, C: ca.SX, c: ca.SX, squares: ca.SX, rho: ca.SX, shift: ca.SX
    ) -> list[ca.SX]:
        size = _largest(C)
        penalty = (
            ca.if_else(size > 0, rho * ca.fmax(1e-3, _largest(R)) / (size * size), 0) if ends else ca.SX(0)
        )
        P = Q + shift * ca.SX.eye(n) + penalty * squares
        return [P, ca.horzcat(q + penalty * (C.T @ c), C.T), ca.horzcat(c, ca.SX(ends, ends)), penalty]

    def finishing(C: ca.SX, c: ca.SX, x: ca.SX, weights: ca.SX, penalty: ca.SX) -> list[ca.SX]:
        return [weights[1:, :] + penalty * (C @ x + c)]

    end = {"C": (ends, n), "c": (ends,)}
    return (
        _end_kernel(
            "opening",
            key,
            {"Q": (n, n), "q": (n,), "R": (m, m), **end, "squares": (n, n), "rho": (1,), "shift": (1,)},
            {"P": (n, n), "z": (n, columns), "W": (ends, columns), "penalty": (1,)},
            opening,
        ),
        _end_kernel(
            "finishing",
            key,
            end | {"x": (n,), "weights": (columns,), "penalty": (1,)},
            {"end": (ends,)},
            finishing,
        ),
    )


def _end_kernel(
    name: str, key: str, inputs: dict[str, tuple[int, ...]], results: dict[str, tuple[int, ...]], graph: Any
) -> Kernel:
    def build() -> FunctionSource:
        symbols = {label: ca.SX.sym(label, *shape) for label, shape in inputs.items()}
        found = [ca.densify(ca.SX(x)) for x in graph(**symbols)]
        return FunctionSource(ca.Function(name, list(symbols.values()), found))

    return Kernel(
        f"time sweep ({name})",
        [Argument(*item) for item in inputs.items()],
        [Argument(*item) for item in results.items()],
        key=f"time sweep {name} {key}",
        build=build,
        bound=True,
    )


@lru_cache(maxsize=64)
def closing_kernel(n: int, starts: int, ends: int) -> Kernel:
    """`stationary`, where what is free has a minimum of its own and the end can be reached; else the trace is -1.

    `inverse` and Y are those of the conditions at the start: x_0 = -inverse c + Y y.
    """
    columns, free = 1 + ends, n - starts

    def closing(P: ca.SX, z: ca.SX, W: ca.SX, inverse: ca.SX, Y: ca.SX, c: ca.SX) -> list[ca.SX]:
        x = -inverse @ c if starts else ca.SX.zeros(n)
        S = z[:, 1:]
        M, right, least = -W[:, 1:], W[:, 0] + S.T @ x, ca.SX(1)
        if free:
            H = Factor(ca.tril2symm(ca.tril(Y.T @ P @ Y)))
            along = Y.T @ S
            K = H.solve(ca.horzcat(along, -(Y.T @ (P @ x + z[:, 0]))))
            M, right, least = M + along.T @ K[:, :-1], right + along.T @ K[:, -1], H.least_pivot
        eta, trace = _scaled_solution(M, right)
        if free:
            x = x + Y @ (K[:, -1] - K[:, :-1] @ eta)
            trace = ca.if_else(ca.logic_and(least > 0, least < INFINITE), trace, -1)
        slope = P @ x + z[:, 0] + S @ eta
        return [x, -inverse.T @ slope, ca.vertcat(1, eta), slope, trace]

    return _end_kernel(
        "closing",
        f"{n} {starts} {ends}",
        {
            **{"P": (n, n), "z": (n, columns), "W": (ends, columns), "inverse": (n, starts)},
            **{"Y": (n, free), "c": (starts,)},
        },
        {"x": (n,), "start": (starts,), "weights": (columns,), "costate": (n,), "trace": (1,)},
        closing,
    )


def closing_function(n: int, starts: int, ends: int) -> ca.Function:
    """The small system at the start, for any number of conditions there: what `stationary` finds where it is regular.

    Of P, z, W, C_0 and c_0: the step of the first state, the multipliers of the start, the weights (1, eta), the costate,
    and whether it is regular. With B = (C_0', S), and rho C_0' (C_0 x + c_0) = 0 added to the first row so that only what
    the conditions leave free has to have a minimum, that is

        (P + rho C_0' C_0) x + B lambda = -(z_0 + rho C_0' c_0),    B' x + (0, W eta) = -(c_0, w)         (6)
    """
    columns = 1 + ends
    shapes = {"P": (n, n), "z": (n, columns), "W": (ends, columns), "C": (starts, n), "c": (starts, 1)}
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    P, z, W, C, c = s.values()
    size = _largest(C)
    rho = ca.if_else(size > 0, HELD * ca.fmax(1, _largest(P)) / (size * size), 0) if starts else ca.SX(0)
    least = SINGULAR * _largest(P)  # for what neither costs nor conditions see: it stays where it is
    A = Factor(ca.tril2symm(ca.tril(P + rho * (C.T @ C) + least * ca.SX.eye(n))))
    B = ca.horzcat(C.T, z[:, 1:])
    solved = A.solve(ca.horzcat(B, -(z[:, 0] + rho * (C.T @ c))))
    M = B.T @ solved[:, :-1]
    M[starts:, starts:] -= W[:, 1:]
    found, trace = _scaled_solution(M, B.T @ solved[:, -1] + ca.vertcat(c, W[:, 0]), first=starts)
    x = solved[:, -1] - solved[:, :-1] @ found
    weights = ca.vertcat(1, found[starts:] if ends else ca.SX(0, 1))
    regular = ca.logic_and(A.least_pivot > 0, ca.logic_and(trace >= 0, trace < 1 / DOUBTFUL))
    results = [x, found[:starts] if starts else ca.SX(0, 1), weights, P @ x + z @ weights, regular]
    return ca.Function("closing", list(s.values()), [ca.densify(ca.SX(value)) for value in results])


def _scaled_solution(M: ca.SX, right: ca.SX, first: int = 0) -> tuple[ca.SX, ca.SX]:
    """The solution for a positive definite M, and the trace of the inverse of M with a diagonal of ones.

    That is -1 where M is not definite, or its rows from `first` on ask for what cannot be reached.
    """
    count = M.shape[0]
    if not count:
        return ca.SX(0, 1), ca.SX(0)
    T = 1 / ca.sqrt(ca.fmax(ca.diag(M), 1e-300))
    by_rows = ca.repmat(T, 1, count)
    factor = Factor(ca.tril2symm(ca.tril(M)) * by_rows * by_rows.T)
    halves = factor.inward(ca.SX.eye(count))
    trace = ca.dot(halves, factor.scaled(halves))
    # what cannot be reached has a Gramian of rounding errors
    reach = ca.vertcat(ca.SX(0, 1), *(M[k, k] for k in range(first, count)))
    doubtful = ca.mmin(reach) < UNREACHED * ca.mmax(reach) if first < count else ca.SX(0)
    good = ca.logic_and(factor.least_pivot > 0, ca.logic_not(doubtful))
    return T * factor.solve(T * right), ca.if_else(good, trace, -1)


def _largest(M: ca.SX) -> ca.SX:
    return ca.fmax(0, ca.mmax(ca.fabs(M))) if M.numel() else ca.SX(0)
