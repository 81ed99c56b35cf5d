"""Derivatives of a stage, with those of the accelerations from the sweeps over the bodies; and their condensing.

A scheme asks for the accelerations a_k of a model at points (q_k, v_k, tau_k) of a stage, each of which may depend on
the accelerations before it. With symbols in their places, a stage is y = F(w, a_1, ..., a_K), and

    dy/dw = F_w + sum_k F_{a_k} A_k                                                               (1)
    A_k = a_q dq_k/dw + a_v dv_k/dw + a_tau dtau_k/dw                                             (2)
    d(q_k, v_k, tau_k)/dw = G_w + sum_{j<k} G_{a_j} A_j                                           (3)

where a_q, a_v and a_tau = M^-1 are `forward_dynamics_derivatives`. For an arm of seven joints this takes half the operations
of automatic differentiation in a step of Euler's method, and a quarter in one of Runge and Kutta's (counted).

For second derivatives of L = phi(w, a_1, ..., a_K), accelerations are unknowns that keep the equations of motion,
tau(q_k, v_k, a_k) = tau_k, with the multipliers m_k = M^-1 b_k. With t_k = (q_k, v_k, tau_k), A = (1, A_1, ..., A_K),

    L'' = A' (phi + sum_k c_k . t_k)'' A - sum_k (q_k, v_k, a_k)_w' (m_k . tau)'' (q_k, v_k, a_k)_w  (4)
    b_k = phi_{a_k} + sum_{j>k} (dt_j/da_k)' c_j,    c_k = (a_q, a_v, a_tau)' b_k                     (5)

with the second derivatives of `alembert.sensitivity.inverse_dynamics` in (4), where joints allow it. For the same arm and
Euler's method an iteration's functions take a third of the operations of automatic differentiation.

Stages of many z, whose expressions would be too long, are condensed ((1) and (2) of `alembert.optimal.evaluation`) on
arrays. Of a stage, with w = (x, u), the slopes C = [C_w G] of c, F of the gap, D of d and g of the cost, and the Hessian H
of the Lagrangian with the barrier, from Z = (z_0, Z_w) = -G^-1 (c, C_w) and H_z = H_zz Z_w + H_zw follow

    A, B: F_w + F_z Z_w,   Q, N, R: H_ww + H_wz Z_w + Z_w' H_z,   q, r: g_w + Z_w' g_z + H_z' z_0          (6)

`Evaluation._condensed_graph` has expressions of all of this; `tests/optimal/test_stage_derivatives.py` holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from alembert.optimal.plant import Mechanics
from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_CURVATURE, has_curvature

Functions = Callable[[list[ca.SX]], list[ca.SX]]
Lagrangian = Callable[[list[ca.SX]], ca.SX]


@dataclass(frozen=True, eq=False)
class Expansion:
    """Functions of a stage near a point."""

    values: list[ca.SX]
    slopes: list[ca.SX]
    """(1)"""
    second: Callable[[Lagrangian, Sequence[ca.SX], Sequence[ca.SX], ca.SX], ca.SX] | None
    """(4) of an expression of the functions, which may have further symbols: these, and their values; from `known` or
    symbols in its place; None without (4)"""
    known: ca.SX
    """the accelerations, and their derivatives by configuration, speed and effort, as a column"""


class Asked(Mechanics):
    """A plant that gives symbols for accelerations, and keeps in `calls` what they stand for: (q, v, tau, symbol)."""

    def __init__(self, plant: Mechanics) -> None:
        super().__init__(plant.model, plant.driven)
        self.form = plant.form
        self.calls: list[tuple[ca.SX, ca.SX, ca.SX, ca.SX]] = []

    def accelerations(self, t: ca.SX, q: ca.SX, v: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        a = ca.SX.sym(f"a{len(self.calls)}", self.model.nv)
        self.calls.append((q, v, self.effort(u), a))
        return a


def asked(plant: Any) -> Asked | None:
    """`plant` with its calls kept; None where accelerations are not those of a tree of rigid bodies."""
    simple = type(plant) is Mechanics and plant.closure is None and not plant.model.is_constrained
    simple = simple and not plant.model.space.of_bodies and plant.elements is None
    return Asked(plant) if simple else None


@dataclass(frozen=True, eq=False)
class Opened:
    """A stage with symbols for accelerations."""

    plant: Asked
    stage: ca.Function
    """(x, u, z, s, p, a_1, ...) -> f, l, c, d"""
    points: ca.Function
    """(x, u, z, s, p, a_1, ...) -> q_1, v_1, tau_1, ..."""

    @classmethod
    def of(cls, plant: Asked, place: Sequence[ca.SX], found: list[ca.SX]) -> Opened:
        """`found` are f, l, c and d at the symbols `place`, made with `plant`."""
        symbols = [call[3] for call in plant.calls]
        stage = ca.Function("opened", [*place, *symbols], found)
        return cls(
            plant, stage, ca.Function("points", [*place, *symbols], [e for c in plant.calls for e in c[:3]])
        )

    @cached_property
    def has_second(self) -> bool:
        """Whether (4) is there."""
        return has_curvature(self.plant.shared.compute.tree)

    @property
    def known_size(self) -> int:
        """Of `Expansion.known`."""
        nv = self.plant.model.nv
        return len(self.plant.calls) * nv * (1 + 3 * nv)

    @property
    def symbols(self) -> list[ca.SX]:
        return [ca.SX.sym(f"a{k}", self.plant.model.nv) for k in range(len(self.plant.calls))]

    def closed(self, place: Sequence[ca.SX]) -> list[ca.SX]:
        """f, l, c and d."""
        p, values = place[-1], self.symbols
        dynamics, values_of = self.plant.shared.symbolic.forward_dynamics, self.plant.shared_values(p)
        for k in range(len(values)):
            values[k] = dynamics(*self._point(k, place, values), parameters=values_of)
        return self.stage.call([*place, *values])

    def _point(self, k: int, place: Sequence[ca.SX], values: list[ca.SX]) -> list[ca.SX]:
        """(q_k, v_k, tau_k), which depends only on the first k values."""
        return self.points.call([*place, *values])[3 * k : 3 * k + 3]

    def expand(
        self, place: Sequence[ca.SX], functions: Functions, w: ca.SX, free: Sequence[ca.SX], at: Sequence[Any]
    ) -> Expansion:
        """`functions` of f, l, c and d with their derivatives by w, for the symbols `free` at the values `at`.

        `place` and w are expressions of `free`; the parameters, the last of `place`, stay symbols.
        """
        model, numbers = self.plant.shared, self.plant.shared_values(place[-1])
        symbols, count = self.symbols, len(self.plant.calls)
        chart = self.plant.chart
        points = [self._point(k, place, symbols) for k in range(count)]
        here = ca.Function("here", [*free, *symbols], [e for point in points for e in point])
        values, slopes = list(symbols), []
        for k in range(count):
            q, v, tau = here.call([*at, *values])[3 * k : 3 * k + 3]
            by_body: Any = model.symbolic.forward_dynamics_derivatives(q, v, tau, parameters=numbers)
            values[k] = by_body.acceleration
            slopes.append(ca.horzcat(by_body.dq, by_body.dv, by_body.dtau))
        near = [ca.SX.sym("near", model.nq) for _ in points]
        # q_k changes by tangent vectors: it is seen from itself
        tangents = [
            ca.vertcat(chart.local(ca.vertcat(c, v), ca.vertcat(q, v), near=True)[: model.nv], v, tau)
            for c, (q, v, tau) in zip(near, points, strict=True)
        ]
        results = functions(self.stage.call([*place, *symbols]))
        everything = [*tangents, *results]
        rows = np.cumsum([0, *(e.numel() for e in everything)]).tolist()
        columns = np.cumsum([0, w.numel(), *(a.numel() for a in symbols)]).tolist()
        whole = ca.jacobian(ca.veccat(*everything), ca.veccat(w, *symbols))
        by = [part for parts in ca.blocksplit(whole, rows, columns) for part in parts]
        f = ca.Function("opened", [*free, *symbols, *near], [*results, *by])

        def near_points(values: Sequence[ca.SX], slopes: Sequence[ca.SX]) -> _AtPoints:
            at_points = here.call([*at, *values])
            there = [*at, *values, *at_points[::3]]
            found = f.call(there)
            tables = [found[len(results) + i * (count + 1) :][: count + 1] for i in range(len(everything))]
            A: list[ca.SX] = []
            moves: list[ca.SX] = []
            for k in range(count):
                moves.append(_total(tables[k], A))
                A.append(slopes[k] @ moves[k])
            return _AtPoints(at_points, there, found[: len(results)], tables, moves, A)

        def second(
            lagrangian: Lagrangian, more: Sequence[ca.SX], at_more: Sequence[ca.SX], known: ca.SX
        ) -> ca.SX:
            nv = model.nv
            parts = ca.vertsplit(known, np.cumsum([0, *[nv] * count, *[3 * nv * nv] * count]).tolist())
            values, slopes = parts[:count], [ca.reshape(x, nv, 3 * nv) for x in parts[count:]]
            near_here = near_points(values, slopes)
            there, tables, moves, A = near_here.there, near_here.tables, near_here.moves, near_here.A
            phi = lagrangian(results)
            c = [ca.SX.sym("c", 3 * model.nv) for _ in range(count)]
            bent = phi + sum((ca.dot(*pair) for pair in zip(c, tangents, strict=True)), ca.SX(0))
            unknowns = ca.vertcat(w, *symbols)
            inputs = [*free, *symbols, *near, *more]
            by_a = ca.Function("by_a", inputs, [ca.gradient(phi, a) for a in symbols])
            b = by_a.call([*there, *at_more])
            for k in reversed(range(count)):  # (5)
                for j in range(k + 1, count):
                    b[k] = b[k] + tables[j][1 + k].T @ (slopes[j].T @ b[j])
            bending = ca.Function("bending", [*inputs, *c], [ca.hessian(bent, unknowns)[0]])
            weights = [slope.T @ b_k for slope, b_k in zip(slopes, b, strict=True)]
            D = ca.vertcat(ca.SX.eye(w.numel()), *A)
            H = D.T @ bending.call([*there, *at_more, *weights])[0] @ D
            curvature = model.symbolic.function(INVERSE_DYNAMICS_CURVATURE, ("q", "v", "a", "m"))
            for k in range(count):  # the last sum of (4)
                q, v, _ = near_here.points[3 * k : 3 * k + 3]
                state = [q, v, values[k], weights[k][2 * nv :], *([] if numbers is None else [numbers])]
                qq, vq, vv, aq = (ca.sparsify(x) for x in curvature.call(state))
                q_w, v_w = moves[k][:nv, :], moves[k][nv : 2 * nv, :]
                half = qq / 2 @ q_w + vq.T @ v_w + aq.T @ A[k]
                X = q_w.T @ half + v_w.T @ (vv / 2 @ v_w)
                H = H - (X + X.T)
            return H

        near_here = near_points(values, slopes)
        by_w = [_total(table, near_here.A) for table in near_here.tables[count:]]
        known = ca.veccat(*values, *(ca.densify(x) for x in slopes))
        return Expansion(near_here.results, by_w, second if self.has_second else None, known)


@dataclass(frozen=True, eq=False)
class _AtPoints:
    """What a stage is near the points whose accelerations it asks for."""

    points: list[ca.SX]
    """(q_1, v_1, tau_1, ...)"""
    there: list[Any]
    """all that the functions of the stage take"""
    results: list[ca.SX]
    tables: list[list[ca.SX]]
    """for (q_1, v_1, tau_1), ... and for the results, slopes by w and by every acceleration"""
    moves: list[ca.SX]
    """(3)"""
    A: list[ca.SX]
    """(2)"""


def _total(table: Sequence[ca.SX], A: Sequence[ca.SX]) -> ca.SX:
    """(1), or (3) with those accelerations that come before."""
    slope = table[0]
    for G, a_w in zip(table[1:], A, strict=False):
        if G.nnz():
            slope = slope + G @ a_w
    return slope


Array = np.ndarray


def eliminated(
    first: Callable[[], None],
    second: Callable[[], None],
    given: Mapping[str, Array],
    left: Mapping[str, Array],
) -> Callable[[], None]:
    """A function that computes (6) on always the same arrays.

    `first` leaves slopes and residuals in `given`, `second` the Hessian, from the multipliers "nu" there.
    """
    right, G, nu = given["right"], given["G"], given["nu"]
    count, columns, nz = right.shape
    n = given["F"].shape[1]
    Z = np.zeros((count, columns, nz))  # by columns, as LAPACK has them

    def run() -> None:
        first()
        for k in range(count):
            factor, order, failed = dgetrf(G[k].T)
            if failed:
                Z[k], nu[k] = np.nan, np.nan
                continue
            Z[k] = -dgetrs(factor, order, right[k].T, trans=1)[0].T
            nu[k] = -dgetrs(factor, order, given["along_z"][k])[0]
        second()
        z_0, Zw = Z[:, 0], Z[:, 1:]
        to_z = np.ascontiguousarray(Zw.transpose(0, 2, 1))
        bent = Zw @ given["H_zz"]
        half = (given["H_wz"] + 0.5 * bent) @ to_z
        H_z = given["H_wz"] + bent
        whole = given["H_ww"] + half + half.transpose(0, 2, 1)
        slope, slopes = given["g"], given["along"] + _times(right[:, 1:], nu)
        linear = slope[:, : columns - 1] + _times(Zw, slope[:, columns - 1 :]) + _times(H_z, z_0)
        moved = given["F"] + given["F_z"] @ to_z
        found = {
            **{"A": moved[:, :, :n], "B": moved[:, :, n:], "b": given["gap"] + _times(given["F_z"], z_0)},
            **{"Q": whole[:, :n, :n], "N": whole[:, :n, n:], "R": whole[:, n:, n:]},
            **{"q": linear[:, :n], "r": linear[:, n:], "slope_x": slopes[:, :n], "slope_u": slopes[:, n:]},
            **{
                "Z": to_z,
                "z_0": z_0,
                "D": given["D"] + given["D_z"] @ to_z,
                "d_0": _times(given["D_z"], z_0),
            },
            **{"H_z": H_z.transpose(0, 2, 1)},
        }
        for name, array in left.items():
            if name in found:
                array[...] = found[name]

    return run


def _times(M: Array, v: Array) -> Array:
    return np.matmul(M, v[:, :, None])[:, :, 0]
