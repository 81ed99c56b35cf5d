"""Controllers that make the largest gain from w to z small (H-infinity), by two Riccati equations.

With D12 = [0; 1], D21 = [0 1] after scaling of u and y and rotation of z and w, D11 = [D1111 D1112; D1121 D1122],
B = [B1 B2], C = [C1; C2], D1. = [D11 D12], D.1 = [D11; D21] and a level g (Glover and Doyle 1988, "State-space
formulae for all stabilizing controllers that satisfy an H-infinity norm bound", Systems and Control Letters 11):

    R  = D1.^T D1. - diag(g^2, 0),     X: stable subspace of [A 0; -C1^T C1 -A^T] - [B; -C1^T D1.] R^-1 [D1.^T C1  B^T]
    R~ = D.1 D.1^T - diag(g^2, 0),     Y: stable subspace of [A^T 0; -B1 B1^T -A] - [C^T; -B1 D.1^T] R~^-1 [D.1 B1^T  C]  (1)

A controller with a norm below g exists just where, one by one,

    (a) g > max(|[D1111 D1112]|, |[D1111; D1121]|)        (b) the first Hamiltonian matrix has no imaginary eigenvalue
    (c) X >= 0          (d) nor has the second one        (e) Y >= 0         (f) rho(X Y) < g^2                          (2)

and the central one is, with F = -R^-1 [D1.^T C1 + B^T X], L = -[B1 D.1^T + Y C^T] R~^-1, Z = (1 - Y X / g^2)^-1,

    D^ = -D1121 D1111^T (g^2 - D1111 D1111^T)^-1 D1112 - D1122
    B^ = -Z L2 + Z (B2 + L12) D^,      C^ = F2 - D^ (C2 + F12),      A^ = A + B F - B^ (C2 + F12)                        (3)

At the least g, test (f) makes Z infinite. Times Z^-1 = E = 1 - Y X / g^2 the equations of (3) stay finite,

    E x' = (E (A + B F) - E B^ (C2 + F12)) x + E B^ y,      u = C^ x + D^ y,                                             (4)

and where E is singular they are solved for the states that E leaves without a rate (Safonov, Limebeer, Chiang 1989,
"Simplifying the H-infinity theory via loop-shifting, matrix-pencil and descriptor concepts").

The least g is found by bisection between a level that fails (2) and the norm that the H2 controller reaches. The norm
of the closed loop is then computed from the loop itself: a level at which (2) held only by rounding, as happens on
lightly damped structures, is found out there, and the search goes on above it.

Problems in which D12 or D21 is deficient, or P12 or P21 has zeros on the axis (free or undamped modes), are made
regular by a small cost on u and x and a small noise on y and x; a note says so.

D-K iteration finds controllers for plants with structured uncertainty: mu of the closed loop M = F_l(P, K) is bounded by
the gain of D M D^-1. The iteration (Doyle 1985) makes it small in turns: the H-infinity controller of the plant scaled by
D, then D at every frequency for that K, fitted by stable systems with stable inverses,

    d(s) = k prod (s^2 + 2 z w s + w^2) / (s^2 + 2 y v s + v^2),      z, w, y, v > 0,                                 (5)

by least squares of log |d|, heavier where mu is large. Plain steps creep: after the first they are made longer after each
one that lowers mu, and shorter, from the same D, after one that does not. The best controller whose peak can be proven for
all frequencies (`mu_peak`) is returned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import positive, real, whole
from alembert.control import arguments
from alembert.control.arguments import takes_systems
from alembert.control.interconnection import append, lft, series, static
from alembert.control.mu_bounds import DeltaBlock
from alembert.control.mu_upper import Scalings
from alembert.control.norms import hinf_norm
from alembert.control.responses import bilinear
from alembert.control.riccati import hamiltonian_solution
from alembert.control.robustness import MuPeak, mu_peak
from alembert.control.statespace import StateSpace
from alembert.control.synthesis import (
    Plant4,
    Synthesis,
    around,
    count,
    divided,
    finished,
    h2_controller,
    ordered,
    refuse,
    violations,
)
from alembert.control.transfer import tf
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
_STEPS = 80
_SINGULAR = (
    1e-4  # eigenvalues of E in (4): at the least level, found to some 1e-7, rho(X Y) is as near to g^2
)
_NO_BACKOFF = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # the optimum, and levels for when rounding spoils it
_SMALL = 1e-4  # cost and noise that make a singular problem regular, relative to C1 and B1
_ROUNDING = 1e-7  # how far below zero the least eigenvalue of X may be, relative to the largest


@dataclass(frozen=True, eq=False)
class _Level:
    """The tests (2) at a level: which one failed, and what the controller is made of."""

    failed: str
    X: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    Y: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))


@takes_systems()
def hinfsyn(
    P: StateSpace,
    *,
    controls: Any,
    measurements: Any,
    gamma: float | None = None,
    tolerance: float = 1e-7,
    backoff: float = 1e-3,
) -> Synthesis:
    """The controller of least H-infinity norm from w to z, or one below the level `gamma`.

    `controls` and `measurements` are names of signals, or how many of the last ones. The level is found to `tolerance`
    (relative); the controller is that of a level higher by `backoff`, since the optimal one is often fast. With a `backoff`
    of zero it is the optimal one, by (4), as a rule with a state less.
    """
    P = ordered("hinfsyn", P, controls, measurements)
    if gamma is not None:
        positive("hinfsyn", "gamma", gamma)
    positive("hinfsyn", "tolerance", tolerance)
    real("hinfsyn", "backoff", backoff, "zero or a positive number", least=0.0)
    p = divided(P, count(controls), count(measurements), scaled=True)
    wrong = violations(P, p)
    refuse("hinfsyn", wrong, ("i", "ii"))
    direct = _direct_level(p)
    p, notes = _regular(p, wrong)
    problem = _Normal(p)

    def closed(g: float, *, optimal: bool = False) -> tuple[StateSpace, StateSpace, float] | None:
        """Controller, loop and norm at a level that passes (2); None where one of them says otherwise."""
        level = problem.tests(g)
        if level.failed:
            return None
        try:
            K = finished(P, around(problem.controller(g, level, optimal=optimal), p.D22))
            loop = lft(P, K)
        except (np.linalg.LinAlgError, NumericalError):
            return None
        norm = hinf_norm(loop, tolerance=1e-8).gain
        return (K, loop, norm) if norm <= g * (1 + (1e-5 if optimal else 1e-6)) else None

    if gamma is not None:
        level = problem.tests(float(gamma))
        made = closed(float(gamma))
        if made is None:
            why = level.failed + problem.where(float(gamma), level.failed)
            why = why or "the closed loop of the central controller is above it"
            raise NumericalError(f"hinfsyn: no controller has a norm below {gamma:g}: {why}")
        return Synthesis(*made, 0.0, float(gamma), notes)

    low, high = problem.least_level(), _reached(problem)
    passes: Callable[[float], bool] = problem.passes
    lower = None
    for _ in range(5):
        low, high = _bisected(low, high, tolerance, passes)
        lower = low if lower is None else lower  # of (2) alone: that no loop was found is no proof
        for more in (backoff, 3 * backoff, 10 * backoff, 30 * backoff) if backoff else _NO_BACKOFF:
            made = closed(high * (1 + more), optimal=not more)
            if made is not None:
                # what was added for regularity makes levels higher, so that (2) tells nothing of the given problem
                return Synthesis(*made, direct if notes else lower, high * (1 + tolerance), notes)
        # the tests held by rounding only: from here on a level counts with its closed loop
        low, high, passes = high, _reached(problem), lambda g: closed(g) is not None
    raise NumericalError(
        f"hinfsyn: the tests hold at {high:.6g}, but no controller was found whose closed loop confirms it; the plant "
        "is too ill-conditioned: scale its signals, or reduce it"
    )


class _Normal:
    """The plant with D12 = [0; 1] and D21 = [0 1]."""

    def __init__(self, p: Plant4) -> None:
        U, s, Vt = np.linalg.svd(p.D12)
        m2, p1 = len(s), len(p.D12)
        self.u = Vt.T / s  # u = (...) u~
        left = np.hstack([U[:, m2:], U[:, :m2]]).T  # z~ = left z
        U, s, Vt = np.linalg.svd(p.D21)
        p2, m1 = len(s), p.D21.shape[1]
        self.y = (U / s).T  # y~ = (...) y
        right = np.vstack([Vt[p2:], Vt[:p2]]).T  # w = right w~
        self.A, self.B1, self.B2 = p.A, p.B1 @ right, p.B2 @ self.u
        self.C1, self.C2 = left @ p.C1, self.y @ p.C2
        self.D11 = left @ p.D11 @ right
        self.D12, self.D21 = np.eye(p1, m2, k=-(p1 - m2)), np.eye(p2, m1, k=m1 - p2)
        self.sizes = m1, m2, p1, p2
        a, b = p1 - m2, m1 - p2
        self.parts = self.D11[:a, :b], self.D11[:a, b:], self.D11[a:, :b], self.D11[a:, b:]
        self.original = p

    def least_level(self) -> float:
        """(a)"""
        D1111, D1112, D1121, _ = self.parts
        rows, columns = np.hstack([D1111, D1112]), np.vstack([D1111, D1121])
        return max(float(np.linalg.norm(x, 2)) if x.size else 0.0 for x in (rows, columns))

    def passes(self, g: float) -> bool:
        return not self.tests(g).failed

    def tests(self, g: float) -> _Level:
        """(2) at the level g."""
        if g <= self.least_level():
            return _Level(f"(a) the direct part D11 alone has the gain {self.least_level():.6g}")
        found = _subspace(*self._control_equation(g))
        if found is None:
            return _Level("(b) the Hamiltonian matrix of the control has imaginary eigenvalues")
        if not _semidefinite(*found):
            return _Level("(c) the Riccati solution X of the control is not positive semidefinite")
        other = _subspace(*self._filter_equation(g))
        if other is None:
            return _Level("(d) the Hamiltonian matrix of the filter has imaginary eigenvalues")
        if not _semidefinite(*other):
            return _Level("(e) the Riccati solution Y of the filter is not positive semidefinite")
        X, Y = found[0], other[0]
        rho = float(np.abs(np.linalg.eigvals(X @ Y)).max(initial=0.0))
        if rho >= g**2:
            return _Level(
                f"(f) control and filter do not go together, rho(X Y) = {rho:.6g} is not below {g**2:.6g}"
            )
        return _Level("", X, Y)

    def _control_equation(self, g: float) -> tuple[Array, ...]:
        """A, B, C1, D1. and R of (1), with u + D1b w + C1b x for u: what these parts of z cancel is not computed."""
        a = self.sizes[2] - self.sizes[1]
        return _without(self.A, self.B1, self.B2, self.C1[:a], self.C1[a:], self.D11[:a], self.D11[a:], g)

    def _filter_equation(self, g: float) -> tuple[Array, ...]:
        """The same of the transposed plant."""
        m1, _, _, p2 = self.sizes
        b, B1, D = m1 - p2, self.B1.T, self.D11.T
        return _without(self.A.T, self.C1.T, self.C2.T, B1[:b], B1[b:], D[:b], D[b:], g)

    def where(self, g: float, failed: str) -> str:
        """The frequencies of the imaginary eigenvalues that made (b) or (d) fail."""
        if failed[:3] not in ("(b)", "(d)"):
            return ""
        H = _hamiltonian(*(self._control_equation(g) if failed[:3] == "(b)" else self._filter_equation(g)))
        if H is None:
            return ""
        values = np.linalg.eigvals(H)
        size = np.abs(values).max()
        on = values[(np.abs(values.real) <= 1e-7 * size) & (values.imag >= 0)]
        near = on if len(on) else values[[np.argmin(np.abs(values.real))]]
        listed = sorted({f"{abs(x):.4g}" for x in near.imag}, key=float)
        return f", at {', '.join(listed[:4])} rad/s" + (" and more" if len(listed) > 4 else "")

    def controller(self, g: float, level: _Level, *, optimal: bool) -> StateSpace:
        """(4), for D22 = 0; for the optimum with the eigenvalues of E that vanish there taken as zero."""
        X, Y = level.X, level.Y
        m1, m2, p1, p2 = self.sizes
        A, B, C = self.A, np.hstack([self.B1, self.B2]), np.vstack([self.C1, self.C2])
        D1, D_1 = np.hstack([self.D11, self.D12]), np.vstack([self.D11, self.D21])
        R = D1.T @ D1 - np.diag([g**2] * m1 + [0.0] * m2)
        R_ = D_1 @ D_1.T - np.diag([g**2] * p1 + [0.0] * p2)
        F = -np.linalg.solve(R, D1.T @ self.C1 + B.T @ X)
        L = -np.linalg.solve(R_, (self.B1 @ D_1.T + Y @ C.T).T).T
        F12, F2 = F[m1 - p2 : m1], F[m1:]
        L12, L2 = L[:, p1 - m2 : p1], L[:, p1:]
        D1111, D1112, D1121, D1122 = self.parts
        inner = g**2 * np.eye(len(D1111)) - D1111 @ D1111.T
        D = -D1121 @ D1111.T @ np.linalg.solve(inner, D1112) - D1122
        E = np.eye(len(A)) - Y @ X / g**2
        U, sigma, Vt = np.linalg.svd(E)
        k = int(np.sum(np.abs(np.linalg.eigvals(E)) > _SINGULAR)) if optimal else len(E)
        right = -L2 + (self.B2 + L12) @ D
        left = (U * sigma) @ Vt @ (A + B @ F) - right @ (self.C2 + F12)
        # E = U diag(sigma) V^T; the last rows are algebraic, and give the last states by the others and y
        A_, B_, C_ = U.T @ left @ Vt.T, U.T @ right, (F2 - D @ (self.C2 + F12)) @ Vt.T
        by_others = np.linalg.solve(A_[k:, k:], np.hstack([A_[k:, :k], B_[k:]]))
        both = np.hstack([A_[:k, :k], B_[:k]]) - A_[:k, k:] @ by_others
        out = np.hstack([C_[:, :k], D]) - C_[:, k:] @ by_others
        both = both / sigma[:k, None]
        return StateSpace(
            both[:, :k], both[:, k:] @ self.y, self.u @ out[:, :k], self.u @ out[:, k:] @ self.y
        )


def _direct_level(p: Plant4) -> float:
    """No controller changes what D11 does from all of w to the z that u does not reach at once, nor from the w that y does
    not see at once (Parrott's theorem); (a) where D12 and D21 have full rank."""
    rows, columns = scipy.linalg.null_space(p.D12.T), scipy.linalg.null_space(p.D21)
    parts = rows.T @ p.D11, p.D11 @ columns
    return max(float(np.linalg.norm(x, 2)) if x.size else 0.0 for x in parts)


def _without(
    A: Array, B1: Array, B2: Array, C: Array, C_u: Array, D: Array, D_u: Array, g: float
) -> tuple[Array, ...]:
    """(A, B, C1, D1., R) of (1) for z = (C x + D w, C_u x + D_u w + u), written for the sum in the second part as u."""
    m1, m2 = B1.shape[1], B2.shape[1]
    R = scipy.linalg.block_diag(D.T @ D - g**2 * np.eye(m1), np.eye(m2))
    return A - B2 @ C_u, np.hstack([B1 - B2 @ D_u, B2]), C, np.hstack([D, np.zeros((len(D), m2))]), R


def _hamiltonian(A: Array, B: Array, C1: Array, D1: Array, R: Array) -> Array | None:
    """(1)"""
    n = len(A)
    try:
        right = np.linalg.solve(R, np.hstack([D1.T @ C1, B.T]))
    except np.linalg.LinAlgError:
        return None
    H = np.block([[A, np.zeros((n, n))], [-C1.T @ C1, -A.T]]) - np.vstack([B, -C1.T @ D1]) @ right
    return np.asarray(H)


def _subspace(A: Array, B: Array, C1: Array, D1: Array, R: Array) -> tuple[Array, float] | None:
    """The solution of (1), and the size that its entries are compared with."""
    n = len(A)
    H = _hamiltonian(A, B, C1, D1, R)
    if H is None:
        return None
    up, down = np.abs(H[:n, n:]).max(initial=0.0), np.abs(C1.T @ C1).max(initial=0.0)
    size = float(np.sqrt(down / up)) if up > 0 and down > 0 else 1.0
    X = hamiltonian_solution(H, size)
    return None if X is None else (X, size)


def _semidefinite(X: Array, size: float) -> bool:
    values = np.linalg.eigvalsh(X) if len(X) else np.zeros(1)
    return bool(values[0] >= -_ROUNDING * max(values[-1], 0.01 * size))


def _reached(problem: _Normal) -> float:
    """A level that some controller is known to stay below: the norm with the H2 controller, or the first that passes (2)."""
    p = problem.original
    P = StateSpace(
        p.A,
        np.hstack([p.B1, p.B2]),
        np.vstack([p.C1, p.C2]),
        np.block([[p.D11, p.D12], [p.D21, np.zeros_like(p.D22)]]),
    )
    try:
        level = 1.0001 * hinf_norm(lft(P, h2_controller(p)), tolerance=1e-4).gain
    except NumericalError:
        level = np.inf
    if not np.isfinite(level):
        level = max(1.0, 2 * problem.least_level())
    for _ in range(60):
        if not problem.tests(level).failed:
            return float(level)
        level *= 2
    raise NumericalError(
        f"hinfsyn: no level up to {level:.3g} passes the tests; the last one says: {problem.tests(level).failed}"
    )


def _bisected(low: float, high: float, tolerance: float, holds: Any) -> tuple[float, float]:
    for _ in range(_STEPS):
        if high - low <= tolerance * high:
            break
        middle = np.sqrt(low * high) if low > 0 and high > 4 * low else (low + high) / 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return float(low), float(high)


def _regular(p: Plant4, wrong: dict[str, str]) -> tuple[Plant4, tuple[str, ...]]:
    """With a small cost or noise where the problem is singular, and the sentences that say so."""
    notes: list[str] = []
    for turned, what, on_states, on_others in ((False, "cost", "v", "iii"), (True, "noise", "vi", "iv")):
        q = _dual(p) if turned else p
        sizes = (float(np.abs(x).max(initial=0.0)) for x in (q.C1, q.D12 if turned else q.D11))
        small = _SMALL * max(1e-8, *sizes)
        n, m = q.B2.shape
        C, D = np.zeros((0, n)), np.zeros((0, m))
        if on_states in wrong:
            C, D = np.vstack([C, small * np.eye(n)]), np.vstack([D, np.zeros((n, m))])
            notes.append(f"{wrong[on_states]}: a {what} of {small:.2g} on the states was added")
        if on_others in wrong:
            C, D = np.vstack([C, np.zeros((m, n))]), np.vstack([D, small * np.eye(m)])
            notes.append(f"{wrong[on_others]}: a {what} of {small:.2g} on them was added")
        q = dataclasses.replace(
            q,
            C1=np.vstack([q.C1, C]),
            D12=np.vstack([q.D12, D]),
            D11=np.vstack([q.D11, np.zeros((len(C), q.B1.shape[1]))]),
        )
        p = _dual(q) if turned else q
    return p, tuple(notes)


def _dual(p: Plant4) -> Plant4:
    """The transposed plant, in which measurements are controls."""
    return Plant4(
        p.A.T, p.C1.T, p.C2.T, p.B1.T, p.B2.T, p.D11.T, p.D21.T, p.D12.T, p.D22.T,
        p.state_names, p.measurement_names, p.control_names,
    )  # fmt: skip


_LONGER, _SHORTER, _LONGEST, _SHORTEST = (
    1.3,
    0.5,
    30.0,
    0.3,
)  # steps of log D, after one that lowered mu, after one that did not
_ABOVE = 1e-5  # of the least level: D is the centre there, of which there is one; at the least level rounding chooses D
_MOST = 25.0  # of the logarithms of frequencies, damping ratios and gains in d(s)


@dataclass(frozen=True, eq=False)
class MuSynthesis:
    """The controller of least peak of mu that was found, the closed loop, its proven peak, and the peak of every step."""

    controller: StateSpace
    closed_loop: StateSpace
    peak: MuPeak
    history: tuple[float, ...]


@takes_systems()
def dksyn(
    P: StateSpace,
    blocks: Sequence[DeltaBlock],
    *,
    controls: Any,
    measurements: Any,
    iterations: int = 6,
    order: int = 4,
    frequency: Any = None,
    relaxation: float = 1.5,
    tolerance: float = 1e-3,
) -> MuSynthesis:
    """D-K iteration; the last of the `blocks` is usually the full one of performance.

    `order` is that of every d(s), `frequency` [rad/s] where it is fitted. The first step of log D is plain; `relaxation` is
    the length of the next, in units of a plain one. Blocks have one number d each: repeated and real ones are taken as if
    they were full. A sampled plant is worked on by its bilinear twin, which has the same mu.
    """
    P = ordered("dksyn", P, controls, measurements)
    whole("dksyn", "iterations", iterations, "a whole number of one or more")
    whole("dksyn", "order", order, "a whole number of zero or more", least=0)
    real("dksyn", "relaxation", relaxation, f"above zero, {_LONGEST:g} at most", over=0.0, most=_LONGEST)
    positive("dksyn", "tolerance", tolerance)
    if frequency is not None:
        frequency = arguments.frequencies("dksyn", frequency)
        if np.any(frequency <= 0) or len(frequency) < 2:
            raise ArgumentError(
                f"dksyn: frequency is {frequency.tolist()}, expected two or more in rad/s above zero"
            )
    m, r = count(controls), count(measurements)
    z, w = P.shape[0] - r, P.shape[1] - m
    takes, gives = sum(b.columns for b in blocks), sum(b.rows for b in blocks)
    if (takes, gives) != (z, w):
        raise ArgumentError(
            f"dksyn: the blocks take {takes} outputs and give {gives} inputs, expected the {z} and {w} that P has beside "
            "y and u; performance is a block too: DeltaBlock('full', inputs, outputs)"
        )
    if P.is_discrete:
        bent = None if frequency is None else np.tan(np.asarray(frequency, dtype=float) * P.dt / 2)
        twin = dksyn(bilinear(P), blocks, controls=m, measurements=r, iterations=iterations, order=order,
                     frequency=bent, relaxation=relaxation, tolerance=tolerance)  # fmt: skip
        peak = dataclasses.replace(twin.peak, frequency=2 * np.arctan(twin.peak.frequency) / P.dt)
        K = finished(P, twin.controller)
        return MuSynthesis(K, lft(P, K), peak, twin.history)
    scalings = Scalings([DeltaBlock("full", b.rows, b.columns, b.name) for b in blocks])
    grid = _grid(P) if frequency is None else np.asarray(frequency, dtype=float)
    scaled, length = P, 1.0
    history: list[float] = []
    best: list[tuple[float, StateSpace, StateSpace]] = []
    """peak, controller and loop of the steps that lowered mu"""
    log_d = way = np.zeros((len(grid), len(blocks)))
    fits: list[StateSpace] = []
    for _ in range(iterations):
        try:
            K = hinfsyn(scaled, controls=m, measurements=r, tolerance=1e-4).controller
            M = lft(P, K)
            levels, wanted = _levels(M, scalings, grid)
        except NumericalError as error:
            if not best:
                raise NumericalError(f"dksyn: the first step has no controller; {error}") from None
            levels, wanted = np.array([np.inf]), log_d  # the Riccati equations cannot take these scalings
        if np.isfinite(levels[0]):
            history.append(float(levels.max()))
        if not best or levels.max() < best[-1][0]:
            if best:
                length = relaxation if len(best) == 1 else min(_LONGER * length, _LONGEST)
                log_d = _log_gains(fits, grid)
            best.append((float(levels.max()), K, M))
            way, weight = wanted - log_d, np.maximum(levels / levels.max(), 0.1)
        else:
            length *= _SHORTER
            if length < _SHORTEST:
                break
        target = log_d + length * way
        fits = [fitted_magnitude(grid, np.exp(x), order, weight) for x in target.T[:-1]] + [static(1.0)]
        scaled = _scaled(P, scalings.blocks, fits, m, r)
    for _, K, M in reversed(best):
        try:
            return MuSynthesis(K, M, mu_peak(M, blocks, tolerance=tolerance), tuple(history))
        except NumericalError as error:
            unproven = error
    raise NumericalError(f"dksyn: of no controller found the peak can be proven; {unproven}")


def _log_gains(fits: Sequence[StateSpace], grid: Array) -> Array:
    return np.array([np.log(np.abs(f.frequency_response(grid).response[:, 0, 0])) for f in fits]).T


def _levels(M: StateSpace, scalings: Scalings, grid: Array) -> tuple[Array, Array]:
    """Upper bounds of mu, and log d of every block relative to the last one, (frequencies, blocks)."""
    response = M.frequency_response(grid).response
    levels = np.array([bound.level for bound in scalings.least_of(response, tolerance=1e-8)])
    bounds = scalings.least_of(response, tolerance=1e-8, below=levels * (1 + _ABOVE))
    values = [[0.5 * np.log(x.D_right[at.start, at.start].real) for at in scalings.w] for x in bounds]
    d = np.array(values)
    return levels, d - d[:, -1:]


def _scaled(
    P: StateSpace, blocks: Sequence[DeltaBlock], fits: Sequence[StateSpace], m: int, r: int
) -> StateSpace:
    """D_left P D_right^-1"""
    left = append(*(append(*[f] * b.columns) for f, b in zip(fits, blocks, strict=True)), static(np.eye(r)))
    right = append(
        *(append(*[f.inverse()] * b.rows) for f, b in zip(fits, blocks, strict=True)), static(np.eye(m))
    )
    return series(right, P, left)


def fitted_magnitude(w: Array, magnitude: Array, order: int, weight: Array | None = None) -> StateSpace:
    """(5): a stable system with a stable inverse whose gain is near `magnitude` at the frequencies w."""
    target = np.log(magnitude)
    weight = np.ones_like(w) if weight is None else weight
    pairs, single = divmod(order, 2)
    if order == 0 or np.ptp(target) < 1e-6:
        return static(float(np.exp(np.average(target, weights=weight))))

    def log_gain(x: Array) -> Array:
        g = np.full(len(w), x[0])
        for k in range(pairs):
            wz, zz, wp, zp = np.exp(x[1 + 4 * k : 5 + 4 * k])
            g += 0.5 * np.log((wz**2 - w**2) ** 2 + (2 * zz * wz * w) ** 2)
            g -= 0.5 * np.log((wp**2 - w**2) ** 2 + (2 * zp * wp * w) ** 2)
        if single:
            a, b = np.exp(x[-2:])
            g += 0.5 * np.log(w**2 + a**2) - 0.5 * np.log(w**2 + b**2)
        return g

    low, high = np.log(w[w > 0].min()), np.log(w.max())
    best = None
    for shift in (0.0, 0.5):
        start = [float(np.mean(target))]
        for k in range(pairs):
            centre = low + (high - low) * (k + 0.5 + shift / 2) / (pairs + shift)
            start += [centre, 0.3, centre + 0.1, 0.3]
        if single:
            start += [(low + high) / 2, (low + high) / 2 + 0.1]
        found = scipy.optimize.least_squares(
            lambda x: weight * (log_gain(x) - target), start, bounds=(-_MOST, _MOST), max_nfev=200
        )
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    x = best.x
    made = static(float(np.exp(x[0])))
    for k in range(pairs):
        wz, zz, wp, zp = np.exp(x[1 + 4 * k : 5 + 4 * k])
        made = series(made, tf([1, 2 * zz * wz, wz**2], [1, 2 * zp * wp, wp**2]))
    if single:
        a, b = np.exp(x[-2:])
        made = series(made, tf([1, a], [1, b]))
    return made


def _grid(P: StateSpace) -> Array:
    """Five decades up to ten times the fastest pole: what is slower (an integrator, nearly) does not shape D."""
    top = 10 * float(np.abs(P.poles()).max(initial=1.0))
    return np.geomspace(1e-6 * top, top, 50)
