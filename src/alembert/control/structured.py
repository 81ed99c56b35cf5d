"""Controllers of fixed order and structure, by nonsmooth optimisation with exact gradients.

A controller of n_K states is a static gain K = [A_K B_K; C_K D_K] of the plant that has n_K integrators beside it, so
that the closed loop is affine in K,

    A = A_0 + B_2 K C_2,   B = B_1 + B_2 K D_21,   C = C_1 + D_12 K C_2,   D = D_11 + D_12 K D_21,                    (1)

and K is affine in the parameters, K = K_0 + sum x_i E_i: entries that are free, zero (decentralised control) or tied.
Gradients:

    largest gain at w, u^H T v = sigma:     Re (u^H G_12)^T (G_21 v)^T,      G_12 = D_12 + C (jw - A)^-1 B_2           (2)
    H2 norm squared:                        2 (B_2^T Q + D_12^T C) P C_2^T + 2 B_2^T Q B D_21^T                         (3)
    spectral abscissa, A x = l x, y^H A = l y^H:     Re (y^H B_2)^T (C_2 x)^T / (y^H x)                                (4)
    after a step of w_j, at the time t of the largest |z_i|, with x' = A x + B_j, r(s) = C_i e^(A (t - s)):
                                            D_12^T (C_2 x(t) + D_21)^T + int B_2^T r(s)^T (C_2 x(s) + D_21)^T ds        (5)

(the integral is a block of one exponential, Van Loan 1978). Poles are asked to lie where Re l < -decay and
Re l < -damping |l|. Limits of goals are met by an exact penalty, made heavier until they are.

Norms are not differentiable where two peaks are equal, which is where optima are. BFGS with a weak Wolfe line search
(Lewis, Overton 2013, "Nonsmooth optimization via quasi-Newton methods") gets there; steps along the shortest vector
in the hull of the gradients at nearby points (gradient sampling, Burke, Lewis, Overton 2005) end it. First the
spectral abscissa is made negative. Optima are local: several starts are taken. One of them, where the structure holds
it, is the H-infinity controller of full order reduced to the order asked for, made tridiagonal by its modes.

The search goes in parameters y, x = x_0 + Y y: in sizes that follow from the plant, so that its units do not matter, and
with D = 0 where a goal is an H2 norm, which has no other finite value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from alembert.arguments import choice, real, whole
from alembert.control import arguments
from alembert.control.arguments import read_system
from alembert.control.gramian import Lyapunov
from alembert.control.hinf import hinfsyn
from alembert.control.interconnection import lft
from alembert.control.norms import peak_gain
from alembert.control.reachability import minimal
from alembert.control.reduction import balanced_truncation, loop_truncation
from alembert.control.responses import StepCurve
from alembert.control.statespace import StateSpace
from alembert.control.synthesis import count, divided, ordered, refuse, violations
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
GOALS = ("hinf", "h2", "peak")
_MET = 1e-4  # relative: by how much a limit may be missed
_PENALTIES = (10.0, 1e2, 1e3, 1e4)  # of a limit missed by its own size, in objectives
_NEARLY, _PEAKS = (
    0.98,
    10,
)  # of the largest at 20 times a period, 1.2 % below at most: peaks looked at more closely


_BACKOFFS = (
    1e-3,
    0.1,
)  # above the least norm: nearer to it controllers are faster, and lose more by reduction
_DISTINCT = 1e8  # condition of eigenvectors up to which modes are told apart


@dataclass(frozen=True, eq=False)
class ControllerStructure:
    """K = [A_K B_K; C_K D_K] = constant + sum of x_i directions[i], with `order` states."""

    order: int
    constant: Array
    directions: Array

    def matrix(self, x: Array) -> Array:
        return np.asarray(self.constant + np.tensordot(x, self.directions, axes=1))

    def system(self, x: Array) -> StateSpace:
        K, n = self.matrix(x), self.order
        return StateSpace(K[:n, :n], K[:n, n:], K[n:, :n], K[n:, n:])

    @property
    def size(self) -> int:
        return len(self.directions)


@dataclass(frozen=True)
class Goal:
    """weight * size ** power from some inputs to some outputs of the closed loop; all of them where left out.

    The size is the H-infinity norm ("hinf"), the H2 norm ("h2": the root of the variance for white noise), or the largest
    value that an output has after a unit step of an input ("peak": 1.1 is an overshoot of a tenth). With a `limit` the
    size is kept below it instead: a limit of "h2" is one of a covariance.
    """

    kind: str = "hinf"
    weight: float = 1.0
    power: float = 1.0
    outputs: Any = None
    inputs: Any = None
    limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("weight", "power", "limit"):
            if name != "limit" or self.limit is not None:
                real("Goal", name, getattr(self, name), "a number above zero", over=0.0)
        choice("Goal", "kind", self.kind, GOALS)


@dataclass(frozen=True, eq=False)
class Tuned:
    """The controller, the objective it reaches, its parameters, the closed loops, and what every start has reached."""

    controller: StateSpace
    value: float
    parameters: Array
    closed_loops: tuple[StateSpace, ...]
    starts: tuple[float, ...]


def fixed_order(order: int, controls: int, measurements: int, *, free: Any = None) -> ControllerStructure:
    """A_K tridiagonal, B_K, C_K and D_K free; `free` (controls, measurements) marks the entries of D_K that are."""
    n, m, p = order, controls, measurements
    whole("fixed_order", "order", order, "a number of states from 0 on", least=0)
    mask = np.zeros((n + m, n + p), bool)
    marked = np.ones((controls, measurements), dtype=bool) if free is None else np.asarray(free, dtype=bool)
    if marked.shape != (controls, measurements):
        raise ArgumentError(
            f"fixed_order: free has shape {marked.shape}, expected ({controls}, {measurements}), the entries of D_K"
        )
    mask[n:, n:] = marked
    mask[:n, n:] = mask[n:, :n] = True
    for i in range(n):
        for j in range(n):
            mask[i, j] = abs(i - j) <= 1
    return affine(np.zeros((n + m, n + p)), mask, order=n)


def affine(constant: Any, free: Any, *, order: int) -> ControllerStructure:
    """The entries of [A_K B_K; C_K D_K] that are `free` (marked), the others as in `constant`."""
    constant = arguments.matrix("affine", "constant", constant)
    mask = np.asarray(free, dtype=bool)
    if mask.shape != constant.shape:
        raise ArgumentError(f"affine: free has shape {mask.shape}, expected {constant.shape}")
    whole(
        "affine",
        "order",
        order,
        f"a number of states, 0 to {min(mask.shape) - 1}",
        least=0,
        most=min(mask.shape) - 1,
    )
    directions = np.zeros((int(mask.sum()), *constant.shape))
    for k, (i, j) in enumerate(np.argwhere(mask)):
        directions[k, i, j] = 1.0
    return ControllerStructure(order, constant, directions)


def pid(*, filter_time: float) -> ControllerStructure:
    """u = (k_p + k_i / s + k_d s / (filter_time s + 1)) y, one input and output; parameters k_p, k_i, k_d."""
    real("pid", "filter_time", filter_time, "seconds above zero", over=0.0)
    T = filter_time
    constant = np.array([[0.0, 0, 1], [0, -1 / T, 1], [0, 0, 0]])
    directions = np.zeros((3, 3, 3))
    directions[0, 2, 2] = 1.0
    directions[1, 2, 0] = 1.0
    directions[2, 2, 1], directions[2, 2, 2] = -1 / T**2, 1 / T
    return ControllerStructure(2, constant, directions)


def tune(
    plants: StateSpace | Sequence[StateSpace],
    structure: ControllerStructure | int,
    *,
    controls: Any,
    measurements: Any,
    goals: Sequence[Goal] = (Goal(),),
    start: Any = None,
    starts: int = 5,
    iterations: int = 300,
    decay: float = 0.0,
    damping: float = 0.0,
    seed: int = 0,
) -> Tuned:
    """The parameters of a structure that make the sum of the goals small, for the worst of the plants.

    `structure` is a `ControllerStructure`, or the order of a full one. `start` gives parameters to begin with, besides
    `starts` others: the H-infinity controller reduced to that order, where the structure holds it, or zeros; and random
    ones. `decay` asks for poles to the left of -decay, `damping` for damping ratios above it, of all poles that a
    controller can move (not those of weights). Goals with a `limit` are not made small, but kept below it.
    """
    if not (0 <= damping < 1 and decay >= 0):
        raise ArgumentError(
            f"tune: decay is {decay!r} and damping {damping!r}, expected zero or more, and a ratio from 0 to less than 1"
        )
    given = plants if isinstance(plants, Sequence) else [plants]
    if not given:
        raise ArgumentError("tune: plants is empty, expected one or more systems")
    if not isinstance(structure, ControllerStructure):
        whole("tune", "structure", structure, "a ControllerStructure, or an order from 0 on", least=0)
    whole("tune", "starts", starts, "a number of starts from 0 on", least=0)
    whole("tune", "iterations", iterations, "a number of iterations from 1 on")
    whole("tune", "seed", seed, "a whole number from 0 on", least=0)
    listed: list[StateSpace] = [read_system("tune", "plants", P) for P in given]
    loops = []
    for P in listed:
        P = ordered("tune", P, controls, measurements, channel=False)
        m, p = count(controls), count(measurements)
        if not (m and p):
            raise ArgumentError(f"tune: {m} controls and {p} measurements, expected one or more of each")
        if isinstance(structure, (int, np.integer)):
            structure = fixed_order(int(structure), m, p)
        loops.append(StructuredLoop(P, m, p, structure))
    assert isinstance(structure, ControllerStructure)
    rng = np.random.default_rng(seed)
    begun = [] if start is None else [arguments.numbers("tune", "start", start).ravel()]
    if begun and len(begun[0]) != structure.size:
        raise ArgumentError(f"tune: start has {len(begun[0])} parameters, expected {structure.size}")
    inside = -1e-3 * max(decay, float(np.exp(np.mean([np.log(loop.pace) for loop in loops]))))
    x0, Y = _within(loops, goals)
    begun = [np.linalg.lstsq(Y, x - x0)[0] for x in begun]
    structure = ControllerStructure(
        structure.order, structure.matrix(x0), np.tensordot(Y.T, structure.directions, axes=1)
    )
    for loop in loops:
        loop.structure = structure

    def objective(x: Array, heavy: float = _PENALTIES[0]) -> tuple[float, Array]:
        return max(
            (loop.value(x, goals, decay, damping, heavy) for loop in loops), key=lambda found: found[0]
        )

    def abscissa(x: Array) -> tuple[float, Array]:
        return max((loop.abscissa(x, decay, damping) for loop in loops), key=lambda found: found[0])

    def missed(x: Array) -> Array:
        """Of every goal with a limit, by how much it is missed, of its size."""
        return np.max([loop.missed(x, goals) for loop in loops], axis=0)

    guesses = [x for P in listed for x in _reduced(P, controls, measurements, structure)]
    # the best of them, or the one that is nearest to stability
    ranked = sorted(guesses, key=lambda x: (objective(x)[0], abscissa(x)[0]))
    begun += [*ranked, np.zeros(structure.size)][:1]
    begun += [rng.normal(size=structure.size) for _ in range(max(starts - 1, 0))]
    best, reached = (np.inf, begun[0]), []
    nearest = (np.inf, begun[0])
    for x in begun:
        x = _stabilised(abscissa, x, inside)
        if abscissa(x)[0] >= 0:
            reached.append(np.inf)
            continue
        found = minimise_nonsmooth(objective, x, iterations=iterations, rng=rng)
        for heavy in _PENALTIES[1:]:
            if missed(found[1]).max(initial=0.0) <= _MET:
                break
            found = minimise_nonsmooth(
                partial(objective, heavy=heavy), found[1], iterations=iterations, rng=rng
            )
        off = float(missed(found[1]).max(initial=0.0))
        nearest = min(nearest, (off, found[1]), key=lambda pair: pair[0])
        found = (found[0], found[1]) if off <= _MET else (np.inf, found[1])
        reached.append(found[0])
        best = min(best, found, key=lambda pair: pair[0])
    if not np.isfinite(best[0]) and _MET < nearest[0] < np.inf:
        shares = missed(nearest[1])
        k = int(np.argmax(shares))
        goal = [goal for goal in goals if goal.limit is not None][k]
        raise NumericalError(
            f"tune: the limit {goal.limit:g} of the goal {goal.kind!r} was not met, the best start comes to "
            f"{goal.limit * (1 + shares[k]):.4g}; give more starts=, a controller of higher order, or another limit"
        )
    if not np.isfinite(best[0]):
        worst = min(abscissa(_stabilised(abscissa, x, inside))[0] for x in begun)
        asked = f"; damping ratios above {damping:g} were asked for" if damping else ""
        raise NumericalError(
            f"tune: no start was made stable; the best one leaves a pole with real part {worst - decay:.4g}{asked}. Give "
            "start=, more starts=, or a controller of higher order"
        )
    K = structure.system(best[1])
    closed = tuple(lft(ordered("tune", P, controls, measurements, channel=False), K) for P in listed)
    return Tuned(K, best[0], x0 + Y @ best[1], closed, tuple(reached))


def _within(loops: Sequence[StructuredLoop], goals: Sequence[Goal]) -> tuple[Array, Array]:
    """x_0 and Y: of all parameters, those for which D = 0 of the goals "h2", in sizes that follow from the plants."""
    structure = loops[0].structure
    size = 1 / np.max([loop.sizes() for loop in loops], axis=0)
    x0, Y = np.zeros(structure.size), np.diag(size)
    for goal in goals:
        for loop in loops if goal.kind == "h2" else ():
            rows, columns = loop.picked(goal)
            direct = loop.closed(x0)[3][np.ix_(rows, columns)].ravel()
            moved = np.einsum("ij,kjl,lm->imk", loop.D12[rows], structure.directions, loop.D21[:, columns])
            M = moved.reshape(len(direct), structure.size) @ Y
            # of matrices with some digits: what is smaller is rounding
            U, s, Vt = np.linalg.svd(M, full_matrices=True)
            rank = int(np.count_nonzero(s > 1e-10 * np.abs(M).max(initial=0.0)))
            step = Vt[:rank].T @ (U[:, :rank].T @ direct / s[:rank])
            bound = np.abs(loop.D11[np.ix_(rows, columns)]).max(initial=0.0) + np.abs(direct).max(initial=0.0)
            if np.abs(direct - M @ step).max(initial=0.0) > 1e-10 * bound:
                raise ArgumentError(
                    "tune: white noise reaches an output of the goal 'h2' directly, whatever the controller of this "
                    "structure: its H2 norm is infinite. Filter that noise, or name other inputs= and outputs="
                )
            x0, Y = x0 - Y @ step, Y @ Vt[rank:].T
    if structure.size and not Y.shape[1]:
        raise ArgumentError(
            "tune: white noise reaches an output of the goal 'h2' directly by every parameter of this structure: its "
            "H2 norm is infinite but for one controller. Give an order above zero, or filter that noise"
        )
    return x0, Y


class StructuredLoop:
    """(1) for one plant and a structure."""

    def __init__(self, P: StateSpace, m: int, p: int, structure: ControllerStructure) -> None:
        if P.is_discrete:
            raise ArgumentError("tune: the plant is sampled; use `continuous(method='tustin')` first")
        refuse("tune", violations(P, divided(P, m, p)), ("i", "ii"))
        n, k = P.order, structure.order
        m1, p1 = P.shape[1] - m, P.shape[0] - p
        if np.any(P.D[p1:, m1:]):
            raise ArgumentError("tune: the controls reach the measurements directly (D22 is not zero)")
        if structure.constant.shape != (k + m, k + p):
            raise ArgumentError(
                f"tune: the structure is for {structure.constant.shape[0] - k} controls and "
                f"{structure.constant.shape[1] - k} measurements, the plant has {m} and {p}"
            )
        self.A = np.block([[P.A, np.zeros((n, k))], [np.zeros((k, n + k))]])
        self.B1 = np.vstack([P.B[:, :m1], np.zeros((k, m1))])
        self.B2 = np.block([[np.zeros((n, k)), P.B[:, m1:]], [np.eye(k), np.zeros((k, m))]])
        self.C1 = np.hstack([P.C[:p1], np.zeros((p1, k))])
        self.C2 = np.block([[np.zeros((k, n)), np.eye(k)], [P.C[p1:], np.zeros((p, k))]])
        self.D11 = P.D[:p1, :m1]
        self.D12 = np.hstack([np.zeros((p1, k)), P.D[:p1, m1:]])
        self.D21 = np.vstack([np.zeros((k, m1)), P.D[p1:, :m1]])
        # poles that no controller moves, of weights above all, are stable, and are nobody's decay or damping
        part = minimal(StateSpace(P.A, P.B[:, m1:], P.C[p1:]), 1e-10)
        self.moved = (
            scipy.linalg.block_diag(part.A, np.zeros((k, k))),
            scipy.linalg.block_diag(part.B, np.eye(k))[:, [*range(m, m + k), *range(m)]],
            scipy.linalg.block_diag(part.C, np.eye(k))[[*range(p, p + k), *range(p)]],
        )
        size = np.abs(np.linalg.eigvals(P.A))
        size = size[size > 1e-8 * size.max(initial=0.0)]
        # geometric mean of the poles
        self.pace = float(np.exp(np.log(size).mean())) if len(size) else 1.0
        self.structure = structure
        self.names = P.input_names[:m1], P.output_names[:p1]

    def sizes(self) -> Array:
        """What one of each parameter does to K at a frequency s, in units of controls and measurements that give the plant
        gains of one there, s being as large as the poles are and off the axis.

        Of what does nothing there, as B_K while C_K is zero: its entries, with the states in units in between.
        """
        n, k = self.structure.order, self.structure.directions
        A, w = self.A[: len(self.A) - n, : len(self.A) - n], self.pace
        s = w * np.exp(0.25j * np.pi)
        m1, C1, C2 = self.B1.shape[1], self.C1[:, : len(A)], self.C2[n:, : len(A)]
        X = np.linalg.solve(s * np.eye(len(A)) - A, np.hstack([self.B1, self.B2[:, n:]])[: len(A)])
        P12, P21, P22 = self.D12[:, n:] + C1 @ X[:, m1:], self.D21[n:] + C2 @ X[:, :m1], C2 @ X[:, m1:]
        u = _or_one(np.linalg.norm(P12, axis=0), np.linalg.norm(P22, axis=0))
        y = _or_one(np.linalg.norm(P21, axis=1), np.linalg.norm(P22, axis=1))
        gain = _or_one(np.array([np.abs(P22 / u / y[:, None]).max(initial=0.0)]))[0]
        left, right = (x[:, None] * np.sqrt(gain) for x in (u, y))
        into, out = (np.vstack([np.full((n, 1), w**-0.5), x]) for x in (left, right))
        entries = np.abs(into * k * out.T).max(axis=(1, 2), initial=0.0)
        K0 = self.structure.constant
        inner = s * np.eye(n) - K0[:n, :n]
        before = np.vstack([np.linalg.solve(inner, K0[:n, n:]), np.eye(len(y))])
        after = np.hstack([np.linalg.solve(inner.T, K0[n:, :n].T).T, np.eye(len(u))])
        effect = np.abs(left * (after @ k @ before) * right.T).max(axis=(1, 2), initial=0.0)
        return np.where(effect > 1e-8 * entries, effect, entries)

    def picked(self, goal: Goal) -> tuple[list[int], list[int]]:
        """The outputs and inputs of a goal."""
        rows = arguments.picked("tune", "outputs", self.names[1], goal.outputs)
        return rows, arguments.picked("tune", "inputs", self.names[0], goal.inputs)

    def closed(self, x: Array) -> tuple[Array, Array, Array, Array]:
        K = self.structure.matrix(x)
        return (
            self.A + self.B2 @ K @ self.C2,
            self.B1 + self.B2 @ K @ self.D21,
            self.C1 + self.D12 @ K @ self.C2,
            self.D11 + self.D12 @ K @ self.D21,
        )

    def abscissa(self, x: Array, decay: float = 0.0, damping: float = 0.0) -> tuple[float, Array]:
        """(4), of the pole that is farthest outside; negative where all are where they are asked to be."""
        A, B, C = self.moved
        values, X = np.linalg.eig(A + B @ self.structure.matrix(x) @ C)
        outside = _outside(values, decay, damping)
        k = int(np.argmax(outside))
        try:
            y = np.linalg.inv(X)[k]
        except np.linalg.LinAlgError:
            return float(outside[k]), np.zeros(self.structure.size)
        slanted = decay < damping * abs(values[k])
        turn = 1 + damping * values[k].conj() / abs(values[k]) if slanted else 1.0
        return float(outside[k]), self._gradient((turn * np.outer(y @ B, C @ X[:, k])).real)

    def value(
        self,
        x: Array,
        goals: Sequence[Goal],
        decay: float = 0.0,
        damping: float = 0.0,
        heavy: float = _PENALTIES[0],
    ) -> tuple[float, Array]:
        """The sum of the goals and its gradient; infinite where a pole is not where it is asked to be."""
        A, B, C = self.moved
        poles = np.linalg.eigvals(A + B @ self.structure.matrix(x) @ C)
        if not np.all(np.isfinite(poles)) or _outside(poles, decay, damping).max(initial=-np.inf) >= 0:
            return np.inf, np.zeros(len(x))
        total, gradient = 0.0, np.zeros(len(x))
        for goal in goals:
            size, slope = self._goal(x, goal)
            if goal.limit is None:
                total += goal.weight * size**goal.power
                gradient += goal.weight * goal.power * size ** (goal.power - 1) * slope
            elif size > goal.limit:
                total += heavy * (size / goal.limit - 1)
                gradient += heavy / goal.limit * slope
        return total, gradient

    def missed(self, x: Array, goals: Sequence[Goal]) -> Array:
        return np.array([self._goal(x, g)[0] / g.limit - 1 for g in goals if g.limit is not None] or [0.0])

    def _goal(self, x: Array, goal: Goal) -> tuple[float, Array]:
        A, B, C, D = self.closed(x)
        rows, columns = self.picked(goal)
        parts = A, B[:, columns], C[rows], D[np.ix_(rows, columns)]
        kinds = {"hinf": self._hinf, "h2": self._h2, "peak": self._peak}
        return kinds[goal.kind](parts, self.D12[rows], self.D21[:, columns])

    def _peak(self, parts: Any, D12: Array, D21: Array) -> tuple[float, Array]:
        """(5), the largest of the selected outputs and inputs"""
        A, B, C, D = parts
        n = len(A)
        found = [(*_largest_after_step(A, B[:, j], C, D[:, j]), j) for j in range(B.shape[1])]
        size, i, t, j = max(found)
        whole = np.zeros((2 * n + 1, 2 * n + 1))
        whole[:n, :n], whole[n : 2 * n, n : 2 * n], whole[2 * n, n : 2 * n] = A.T, A.T, B[:, j]
        whole[:n, 2 * n] = C[i]  # C_i^T times the state (0, 1) at the start
        E = scipy.linalg.expm(whole * t)
        x, moment = E[2 * n, n : 2 * n], E[:n, n:]
        z = float(C[i] @ x + D[i, j])
        seen = self.C2 @ x + D21[:, j]
        slope = np.outer(D12[i], seen) + self.B2.T @ (
            moment[:, :n] @ self.C2.T + np.outer(moment[:, n], D21[:, j])
        )
        return size, self._gradient(np.sign(z) * slope)

    def _hinf(self, parts: Any, D12: Array, D21: Array) -> tuple[float, Array]:
        """(2)"""
        A, B, C, D = parts
        peak = peak_gain(A, B, C, D, tolerance=1e-7)
        if np.isinf(peak.frequency):
            T, G12, G21 = D, D12, D21
        else:
            X = np.linalg.solve(1j * peak.frequency * np.eye(len(A)) - A, np.hstack([B, self.B2]))
            T, G12 = D + C @ X[:, : B.shape[1]], D12 + C @ X[:, B.shape[1] :]
            G21 = D21 + self.C2 @ X[:, : B.shape[1]]
        U, s, Vt = np.linalg.svd(T)
        return float(s[0]), self._gradient(np.outer(U[:, 0].conj() @ G12, G21 @ Vt[0].conj()).real)

    def _h2(self, parts: Any, D12: Array, D21: Array) -> tuple[float, Array]:
        """(3), as a norm"""
        A, B, C, _ = parts
        equation = Lyapunov(A)
        P, Q = equation.solve(B @ B.T), equation.adjoint(C.T @ C)
        norm = float(np.sqrt(max(np.trace(C @ P @ C.T), 1e-300)))
        slope = 2 * (self.B2.T @ Q + D12.T @ C) @ P @ self.C2.T + 2 * self.B2.T @ Q @ B @ D21.T
        return norm, self._gradient(slope) / (2 * norm)

    def _gradient(self, slope: Array) -> Array:
        """Of the parameters, from that of K."""
        return np.asarray(np.tensordot(self.structure.directions, slope, axes=2))


def _or_one(size: Array, other: Array | None = None) -> Array:
    """Sizes, others where they are zero, or one."""
    size = size if other is None else np.where(size > 0, size, other)
    return np.where(size > 0, size, 1.0)


def _reduced(P: StateSpace, controls: Any, measurements: Any, structure: ControllerStructure) -> list[Array]:
    """Parameters of H-infinity controllers of full order, reduced to that of a structure which holds them; perhaps none."""
    found: list[Array] = []
    if not structure.order:
        return found
    for backoff in _BACKOFFS:
        try:
            made = hinfsyn(P, controls=controls, measurements=measurements, tolerance=1e-3, backoff=backoff)
            small = [loop_truncation(made.controller, made.closed_loop, structure.order)]
        except (NumericalError, ArgumentError, np.linalg.LinAlgError):
            continue
        if structure.order < made.controller.order and made.controller.is_stable:
            small.append(balanced_truncation(made.controller, structure.order).system)
        found += [x for K in small if (x := _held(K, structure)) is not None]
    return found


def _held(K: StateSpace, structure: ControllerStructure) -> Array | None:
    """The parameters of a controller, in coordinates of its modes; None where the structure has none for it."""
    poles, V = np.linalg.eig(K.A)
    parts = [[v.real, v.imag] if p.imag else [v.real] for p, v in zip(poles, V.T, strict=True) if p.imag >= 0]
    T = np.array([x for part in parts for x in part]).T
    if np.linalg.cond(T) > _DISTINCT:
        return None
    K = K.transformed(T).balanced_scales()
    more = structure.order - K.order  # states that neither hear nor speak
    A = scipy.linalg.block_diag(K.A, -np.eye(more) * np.abs(poles).max(initial=1.0))
    whole = np.block(
        [[A, np.vstack([K.B, np.zeros((more, K.shape[1]))])], [K.C, np.zeros((K.shape[0], more)), K.D]]
    )
    flat = structure.directions.reshape(structure.size, -1)
    x = np.linalg.lstsq(flat.T, (whole - structure.constant).ravel(), rcond=None)[0]
    return x if np.abs(structure.matrix(x) - whole).max() < 1e-6 * np.abs(whole).max() else None


def _outside(poles: Array, decay: float, damping: float) -> Array:
    """How far poles are from where Re l < -decay and Re l < -damping |l|; negative inside, by more than rounding."""
    rounding = 1e-12 * np.abs(poles).max(initial=0.0)
    return np.asarray(np.maximum(poles.real + decay, poles.real + damping * np.abs(poles)) + rounding)


def _largest_after_step(A: Array, b: Array, C: Array, d: Array) -> tuple[float, int, float]:
    """The largest |z_i| of x' = A x + b from rest, z = C x + d, with i and its time.

    Looked at where `StepCurve` does, then between the neighbours of the largest ones.
    """
    curve = StepCurve(A, b, C, d)
    grid = curve.grid()
    z = np.abs(curve.at(grid))
    padded = np.pad(z, ((1, 1), (0, 0)))
    peaks = np.argwhere((z >= padded[:-2]) & (z >= padded[2:]) & (z >= _NEARLY * z.max()))
    best, where, when = -1.0, 0, 0.0
    for k, i in sorted(peaks.tolist(), key=lambda peak: -z[tuple(peak)])[:_PEAKS]:
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        if z[k, i] > best:
            best, where, when = float(z[k, i]), i, float(grid[k])
        # finer grids between the neighbours: to 1e-5 of the first, and of the value to its square
        for _ in range(4):
            near = np.linspace(low, high, 33)
            value = np.abs(curve.at(near)[:, i])
            j = int(np.argmax(value))
            if value[j] > best:
                best, where, when = float(value[j]), i, float(near[j])
            low, high = near[max(j - 1, 0)], near[min(j + 1, 32)]
    return best, where, when


def _stabilised(abscissa: Callable[[Array], tuple[float, Array]], x: Array, inside: float) -> Array:
    """Parameters with all poles where they are asked to be, if steps down the spectral abscissa find any."""
    if abscissa(x)[0] < inside:
        return x
    return minimise_nonsmooth(abscissa, x, iterations=150, rng=np.random.default_rng(0), below=inside)[1]


def minimise_nonsmooth(
    function: Callable[[Array], tuple[float, Array]],
    x: Array,
    *,
    iterations: int,
    rng: Any,
    below: float = -np.inf,
) -> tuple[float, Array]:
    """(value, place) after BFGS with a weak Wolfe line search, and gradient sampling; stops early `below` a value."""
    value, g = function(x)
    n = len(x)
    g = np.clip(g, -1e100, 1e100)
    H = np.eye(n) / max(float(np.linalg.norm(g)), 1e-12)
    restarted = False
    for _ in range(iterations):
        if value < below or not np.any(g):
            break
        with np.errstate(over="ignore", invalid="ignore"):
            p = -H @ g
            if not float(np.abs(p).max()) < 1e100 or p @ g >= 0:
                H, p = np.eye(n), -g / max(float(np.linalg.norm(g)), 1e-300)
        found = _weak_wolfe(function, x, value, g, p)
        if found is None or found[3] * float(np.linalg.norm(p)) < 1e-10 * max(1.0, float(np.linalg.norm(x))):
            if restarted:
                break
            H, restarted = np.eye(n) / max(float(np.linalg.norm(g)), 1e-12), True
            if found is None:
                continue
        new, at, slope, _ = found
        s, y = at - x, slope - g
        if y @ s > 1e-14 * np.linalg.norm(y) * np.linalg.norm(s):
            rho = 1 / (y @ s)
            V = np.eye(n) - rho * np.outer(s, y)
            H = V @ H @ V.T + rho * np.outer(s, s)
        if value - new > 1e-9 * abs(value):
            restarted = False
        value, x, g = new, at, slope
    return _sampled(function, value, x, g, rng, below) if value >= below else (value, x)


def _weak_wolfe(
    function: Callable[[Array], tuple[float, Array]], x: Array, value: float, g: Array, p: Array
) -> tuple[float, Array, Array, float] | None:
    low, high, t = 0.0, np.inf, 1.0
    slope = float(g @ p)
    best = None
    for _ in range(45):
        at = x + t * p
        new, gradient = function(at)
        if not np.isfinite(new) or new > value + 1e-4 * t * slope:
            high = t
        else:
            best = (new, at, gradient, t)
            if gradient @ p < 0.9 * slope:
                low = t
            else:
                return best
        t = (low + high) / 2 if np.isfinite(high) else 2 * low
    return best


def _sampled(
    function: Callable[[Array], tuple[float, Array]], value: float, x: Array, g: Array, rng: Any, below: float
) -> tuple[float, Array]:
    """Steps along the shortest vector in the hull of gradients in smaller and smaller neighbourhoods."""
    n = len(x)
    size = max(1.0, float(np.linalg.norm(x)))
    for radius in (1e-3 * size, 1e-4 * size, 1e-5 * size):
        for _ in range(12):
            gradients = [g]
            for _ in range(min(2 * n, 30)):
                near = function(x + radius * rng.uniform(-1, 1, size=n))
                if np.isfinite(near[0]):
                    gradients.append(near[1])
            d = -_shortest(np.array(gradients))
            length = float(np.linalg.norm(d))
            if length < 1e-9 * max(float(np.linalg.norm(g)), 1e-300):
                break
            t, improved = 10 * radius / length, False
            for _ in range(25):
                new, gradient = function(x + t * d)
                if new < value - 1e-6 * t * length**2:
                    improved = bool(value - new > 1e-10 * abs(value))
                    value, x, g = new, x + t * d, gradient
                    break
                t /= 2
            if not improved or value < below:
                break
    return value, x


def _shortest(gradients: Array) -> Array:
    """The shortest vector in the convex hull of the rows, by nonnegative least squares."""
    scale = max(float(np.abs(gradients).max()), 1e-300)
    rows = gradients / scale
    heavy = 1e3
    weights, _ = scipy.optimize.nnls(
        np.vstack([rows.T, heavy * np.ones(len(rows))]), np.concatenate([np.zeros(rows.shape[1]), [heavy]])
    )
    return np.asarray(weights @ rows / weights.sum() * scale)
