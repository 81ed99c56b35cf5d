"""Constrained dynamics of mechanisms with many loops: cost linear in their number, compile time independent of it.

The equations are those of `compiled`, in parts that are all loops over data:

    poses, velocities and columns of the tree      rolled sweeps over the bodies
    rows of the loops                              one kernel per type of loop, over all loops of the type at once
    G, M                                           their entries, as products of these
    L^T D L = M,  Z,  Lambda,  f,  a               sparse elimination (`factors`)

Loops that share no joint do not meet in Lambda; a minimum-degree order keeps its factor sparse, so that for a chain of
loops the work is linear in their number.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints.equations import carrier, movers, pair_rows, rate_of_rows
from alembert.constraints.factors import Admittance
from alembert.constraints.kernels import function_of
from alembert.constraints.results import STILL
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.expression import Expression
from alembert.joints import Pair
from alembert.sensitivity.mass_factor import Pattern
from alembert.spatial import Motion, Pose

if TYPE_CHECKING:
    from alembert.model import LoopJoint, Model

Array = np.ndarray


def supports(model: Model) -> bool:
    """Whether the model's constraints can be taken in loops: no equations, rotors, parameters or flexible bodies."""
    special = model.equations or model.parameters or model.space.of_bodies
    return not (special or any(joint.rotors for joint in model.joints))


_WORLD = np.r_[1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]


@dataclass(frozen=True, eq=False)
class _PairLoops:
    """All loops of one type: their numbers, rows, and constants by loop."""

    kernel: Kernel
    loops: Array
    rows: Array
    node_a: Array
    node_b: Array
    data: tuple[Array, Array, Array]


class Looped:
    """The constraints of one model."""

    def __init__(self, model: Model, primary: Model, slices: Sequence[slice]) -> None:
        self.model, self.primary, self.slices = model, primary, slices
        self.count = slices[-1].stop
        tree = model.compute.tree
        self.pattern = Pattern(tree)
        self.groups = self._group(model.loops)
        rows, columns, signs = [], [], []
        for k, loop in enumerate(model.loops):
            a, b = (carrier(tree, name)[0] for name in (loop.frame_a, loop.frame_b))
            moved = [
                (dof, sign)
                for node, _, sign in movers(tree, a, b)
                for dof in range(tree.v_slices[node].start, tree.v_slices[node].stop)
            ]
            for r in range(slices[k].start, slices[k].stop):
                rows += [r] * len(moved)
                columns += [dof for dof, _ in moved]
                signs += [sign for _, sign in moved]
        fixed: dict[tuple[int, int], float] = {}
        self.offsets = np.zeros(self.count)
        self.coupled: list[tuple[int, Array, Array]] = []
        for k, coupling in enumerate(model.couplings, len(model.loops)):
            r = slices[k].start
            names = (coupling.joint, *coupling.masters)
            values = [1.0, *(-float(x) for x in coupling.ratios)]  # type: ignore[arg-type]
            self.offsets[r] = -float(coupling.offset)  # type: ignore[arg-type]
            at = np.array([model.q_slice(name).start for name in names])
            self.coupled.append((r, at, np.array(values)))
            for name, value in zip(names, values, strict=True):
                key = (r, model.v_slice(name).start)
                fixed[key] = fixed.get(key, 0.0) + value
        self.loop_entries = len(rows)
        self.rows = np.array([*rows, *(r for r, _ in fixed)], dtype=int)
        self.columns = np.array([*columns, *(c for _, c in fixed)], dtype=int)
        self.signs = np.array(signs)
        self.fixed = np.array(list(fixed.values()))
        outer = [(k, i) for k, i in self.pattern.positions]
        self.outer = np.array([k for k, _ in outer], dtype=int)
        self.inner = np.array([i for _, i in outer], dtype=int)
        self.armature = np.concatenate(
            [
                np.arange(0.0),
                *(np.asarray(j.armature or np.zeros(j.type.nv), dtype=float) for j in model.joints),
            ]
        )

    # --- the rows -------------------------------------------------------------------------------------------

    def _group(self, loops: Sequence[LoopJoint]) -> list[_PairLoops]:
        tree = self.model.compute.tree
        found: dict[Any, list[int]] = {}
        for k, loop in enumerate(loops):
            found.setdefault(pair_signature(loop.type), []).append(k)
        groups = []
        for signature, members in found.items():
            ends = [[carrier(tree, name) for name in (loops[k].frame_a, loops[k].frame_b)] for k in members]
            places = [np.array([flat_pose(end[side][1].pose()) for end in ends]) for side in (0, 1)]
            constants = np.array([[pair_number(x) for x in loops[k].type.constants()] for k in members])
            nodes = [np.array([end[side][0] for end in ends]) for side in (0, 1)]
            rows = np.array(
                [np.arange(self.slices[k].start, self.slices[k].stop) for k in members], dtype=int
            )
            kernel = pair_kernel(loops[members[0]].type, repr(signature))
            data = (places[0], places[1], constants)
            groups.append(_PairLoops(kernel, np.array(members), rows, nodes[0], nodes[1], data))
        return groups

    def evaluate(self, q: Array, v: Array) -> _State:
        """All rows at one state."""
        tree = self.primary
        columns, X = tree.compute.kernel("subspaces")(q)
        Y = tree.compute.kernel("world_momentum_rows")(q)
        V, A = (
            tree.compute.kernel("velocities")(q, v),
            tree.compute.kernel("accelerations")(q, v, np.zeros(len(v))),
        )
        X, V, A = (
            np.vstack([x, last]) for x, last in ((X, _WORLD), (V, _WORLD[1:7] * 0), (A, _WORLD[1:7] * 0))
        )
        residual, gamma = np.zeros(self.count), np.zeros(self.count)
        basis, world = np.zeros((self.count, 6)), np.zeros((self.count, 6))
        for g in self.groups:
            if not g.rows.shape[1]:
                continue
            a, b = g.node_a, g.node_b
            phi, B, B_W, bias = g.kernel(X[a], X[b], V[a], V[b], A[a], A[b], *g.data)
            residual[g.rows], gamma[g.rows] = phi, bias
            basis[g.rows], world[g.rows] = B, B_W
        for r, at, values in self.coupled:
            residual[r] = self.offsets[r] + values @ q[at]
        n = self.loop_entries
        moved = np.einsum("ij,ij->i", world[self.rows[:n]], columns[self.columns[:n]])
        entries = np.concatenate([self.signs * moved, self.fixed])
        M = np.empty(self.pattern.size)
        M[: len(self.outer)] = np.einsum("ij,ij->i", Y[self.outer], columns[self.inner])
        M[len(self.outer) :] = np.einsum("ij,ij->i", Y, columns) + self.armature
        lengths = np.bincount(self.rows, entries * entries, minlength=self.count)
        return _State(residual, gamma, basis, entries, M, lengths)

    def dense(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """phi, G, gamma and B of a batch, as arrays."""
        states = [
            self.evaluate(*state)
            for state in zip(q, np.broadcast_to(v, (len(q), self.model.nv)), strict=True)
        ]
        G = np.zeros((len(states), self.count, self.model.nv))
        for k, t in enumerate(states):
            np.add.at(G[k], (self.rows, self.columns), t.entries)
        parts = [np.array([getattr(t, name) for t in states]) for name in ("residual", "gamma", "basis")]
        return parts[0], G, parts[1], parts[2]

    @cached_property
    def scale_groups(self) -> Array:
        return np.concatenate([np.full(s.stop - s.start, k) for k, s in enumerate(self.slices)])

    # --- the solution ---------------------------------------------------------------------------------------

    @cached_property
    def lively(self) -> Array:
        """Rows that do not vanish everywhere, by samples; the others are left to the check of dropped rows."""
        lengths = np.zeros(self.count)
        for seed in range(3):
            lengths += self.evaluate(self.model.random_configuration(seed), np.zeros(self.model.nv)).lengths
        return np.flatnonzero(lengths > 1e-24)

    @cached_property
    def elimination(self) -> _Elimination:
        return _Elimination(self)

    def accelerations(
        self, given: tuple[Any, ...], pushes: tuple[Any, ...], chosen: Array, active: Array
    ) -> tuple[Any, ...] | None:
        """As `solver.accelerations`, state by state; there is no factor of the tree."""
        q, v, tau = (np.asarray(x, dtype=float) for x in given)
        nv = self.model.nv
        bias = self.primary.compute.kernel("inverse_dynamics", wrenches=bool(pushes))(
            q, v, np.zeros(nv), *pushes
        )
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in (q, v, tau, bias)))
        flat = [
            np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v, tau - bias)
        ]
        found = [self.solve(q_k, v_k, rest, chosen, active) for q_k, v_k, rest in zip(*flat, strict=True)]
        if not found or any(one is None for one in found):
            return None
        columns = zip(*(one for one in found if one is not None), strict=True)
        return *(np.array(x).reshape(*shape, *x[0].shape) for x in columns), None

    def solve(
        self, q: Array, v: Array, rest: Array, chosen: Array, active: Array
    ) -> tuple[Array, ...] | None:
        """a, f, wrenches and status (5) of `compiled`, at one state; None where a chosen row is not in the elimination."""
        e = self.elimination
        if not np.all(e.known[chosen > 0]):
            return None
        t = self.evaluate(q, v)
        a, a_free, f, quality = e.run(t, rest, -t.gamma, chosen)
        root, scale = self._scales(t)
        left = np.max(active * np.abs(self._times(t, a) + t.gamma) / root)
        broken = np.max(active * np.abs(self._times(t, v)) / root)
        opened = np.max(active * np.abs(t.residual) / root)
        speed = float(v @ v)
        size = float(np.linalg.norm(a) + np.linalg.norm(a_free) + speed)
        slack = opened + broken / max(np.sqrt(speed), STILL)
        other = np.max((active - chosen) * t.lengths / scale)
        count = len(self.model.loops)
        wrenches = np.zeros((max(1, count), 6))
        if count:
            pushed = f[:, None] * t.basis
            np.add.at(
                wrenches,
                self.scale_groups[: self.slices[count - 1].stop],
                pushed[: self.slices[count - 1].stop],
            )
        return a, f, wrenches, np.array([quality, left, size, slack, other])

    def project(self, q: Array, v: Array, chosen: Array, active: Array) -> tuple[Array, ...] | None:
        """x, y and status (6) of `compiled`, at one state."""
        e = self.elimination
        if not np.all(e.known[chosen > 0]):
            return None
        t = self.evaluate(q, v)
        zero = np.zeros(self.model.nv)
        x, _, _, quality = e.run(t, zero, -active * t.residual, chosen)
        y, _, _, _ = e.run(t, zero, -self._times(t, v), chosen)
        root, _ = self._scales(t)
        phi = np.abs(active * t.residual)
        broken = np.max(active * np.abs(self._times(t, v + y)))
        return x, y, np.array([quality, np.max(phi / root), np.max(phi), broken])

    def _times(self, t: _State, x: Array) -> Array:
        """G x"""
        return np.bincount(self.rows, t.entries * x[self.columns], minlength=self.count)

    def _scales(self, t: _State) -> tuple[Array, Array]:
        longest = np.zeros(len(self.slices))
        np.maximum.at(longest, self.scale_groups, t.lengths)
        scale = np.where(longest > 0, longest, 1.0)[self.scale_groups]
        return np.sqrt(scale), scale


@dataclass(frozen=True, eq=False)
class _State:
    """phi, gamma, B, the entries of G and of M (off the diagonal, then on it), squared lengths of rows."""

    residual: Array
    gamma: Array
    basis: Array
    entries: Array
    M: Array
    lengths: Array


class _Elimination:
    """The system of `factors` for the rows that do not vanish everywhere, from the entries of M and of these rows.

    It is sparse: of a row Z, only the speeds inboard of those that it touches, so that for a chain of loops its instructions
    are linear in their number.
    """

    def __init__(self, looped: Looped) -> None:
        self.lively, self._pattern = looped.lively, looped.pattern
        self.known = np.isin(np.arange(looped.count), self.lively)
        self.used = np.flatnonzero(self.known[looped.rows])
        """which entries of G are in these rows"""
        rows = np.searchsorted(self.lively, looped.rows[self.used])
        self._places = [*zip(rows.tolist(), looped.columns[self.used].tolist(), strict=True)]
        ends = [(np.searchsorted(self.lively, [s.start, s.stop])).tolist() for s in looped.slices]
        self._slices = [slice(*pair) for pair in ends]
        nv, count = looped.model.nv, len(self.lively)
        self._sizes = {"M": self._pattern.size, "G": len(self.used), "rest": nv, "c": count, "chosen": count}
        results = {"a": (nv,), "a_free": (nv,), "f": (count,), "quality": (1,)}
        content = repr((self._pattern.inboard, self._pattern.guarded, self._places, ends))
        self.kernel = Kernel(
            "constraint_elimination",
            [Argument(name, (size,)) for name, size in self._sizes.items()],
            [Argument(*item) for item in results.items()],
            key=f"elimination:{hashlib.sha256(content.encode()).hexdigest()}",
            build=self.source,
        )

    def source(self) -> FunctionSource:
        x = {name: ca.SX.sym(name, size) for name, size in self._sizes.items()}
        pattern, nv, count = self._pattern, self._sizes["rest"], self._sizes["c"]
        positions = [*pattern.positions, *((k, k) for k in range(nv))]
        M = _sparse(nv, nv, dict(zip(positions, x["M"].elements(), strict=True)))
        factor = pattern.factor(M)
        L = factor.elements()
        rows: list[dict[int, Any]] = [{} for _ in range(count)]
        for (r, c), value in zip(self._places, x["G"].elements(), strict=True):
            rows[r][c] = rows[r].get(c, 0.0) + value
        G = _sparse(count, nv, {(r, c): value for r, row in enumerate(rows) for c, value in row.items()})
        for z in rows:  # Z = L^-T G^T
            for k in sorted({i for c in z for i in (c, *pattern.inboard[c])}, reverse=True):
                for i in pattern.inboard[k]:
                    z[i] = z.get(i, 0.0) - L[pattern.positions[k, i]] * z[k]
        Z = _sparse(nv, count, {(c, r): value for r, z in enumerate(rows) for c, value in z.items()})
        by = Admittance(pattern, self._slices, factor, x["chosen"], G, Z)
        z0 = by.inward(x["rest"])
        free = by.inverse * z0
        f = by.solve(x["c"] - by.weighted.T @ z0)
        found = [by.outward(free + by.weighted @ f), by.outward(free), f, by.quality()]
        return FunctionSource(function_of("elimination", list(x.values()), found))

    def run(self, t: _State, rest: Array, c: Array, chosen: Array) -> tuple[Array, Array, Array, float]:
        """a, a_free, f and their quality, for the right-hand sides of the tree and of all rows; for rest = 0, R a = c."""
        f = np.zeros(len(c))
        given = (t.M, t.entries[self.used], rest, c[self.lively], chosen[self.lively])
        a, a_free, f[self.lively], quality = self.kernel(*given)
        return a, a_free, f, float(quality[0])


def _sparse(count: int, width: int, entries: Mapping[tuple[int, int], Any]) -> ca.SX:
    order = sorted(entries, key=lambda place: (place[1], place[0]))
    sparsity = ca.Sparsity.triplet(count, width, [i for i, _ in order], [j for _, j in order])
    return ca.SX(sparsity, ca.vertcat(ca.SX(0, 1), *(entries[place] for place in order)))


def pair_signature(pair: Pair) -> Any:
    """What makes code: the type, its structural fields, and which constants are zero (columns that vanish)."""
    fixed = tuple(
        (f.name, getattr(pair, f.name)) for f in dataclasses.fields(pair) if f.metadata.get("structural")
    )
    return type(pair).__module__, type(pair).__qualname__, pair.kind, fixed, len(pair.constants())


def pair_number(x: Any) -> float:
    return float(x.evaluate({})) if isinstance(x, Expression) else float(x)


def flat_pose(X: Pose) -> Array:
    return np.concatenate([np.asarray(X.rotation).ravel(), np.asarray(X.translation).ravel()])


def pair_kernel(pair: Pair, signature: str) -> Kernel:
    """Rows of a pair from the motion of the two bodies: phi, B, B Ad(X_Wb)^-1 and gamma."""
    m, c = len(pair.holonomic), len(pair.constants())
    names = {
        "X_a": 12,
        "X_b": 12,
        "V_a": 6,
        "V_b": 6,
        "A_a": 6,
        "A_b": 6,
        "C_a": 12,
        "C_b": 12,
        "constants": c,
    }
    inputs = [Argument(name, (size,)) for name, size in names.items()]
    results = [Argument("phi", (m,)), Argument("B", (m, 6)), Argument("B_W", (m, 6)), Argument("gamma", (m,))]

    def build() -> FunctionSource:
        x = {name: ca.SX.sym(name, size) for name, size in names.items()}
        bodies = {end: _pose(x[f"X_{end}"]) for end in "ab"}
        X_Wa, X_Wb = (X @ _pose(x[f"C_{end}"]) for end, X in bodies.items())
        V_a, V_b, A_a, A_b = (
            bodies[name[-1]].motion(Motion.from_vector(x[name])) for name in ("V_a", "V_b", "A_a", "A_b")
        )
        X = X_Wa.inverse() @ X_Wb
        V = X_Wb.motion_inverse(V_b - V_a).vector()
        rows = pair_rows(pair, x["constants"], X)
        B = rows.of_pairs[0]
        turned = rate_of_rows(
            lambda poses, _: pair_rows(pair, x["constants"], poses[0], residual=False), [X], [V]
        )
        gamma = B @ X_Wb.motion_inverse(A_b - A_a + V_b.cross(V_a)).vector() + turned
        inverse = ca.horzcat(
            *(X_Wb.motion_inverse(Motion.from_vector(e)).vector() for e in ca.horzsplit(ca.SX.eye(6)))
        )
        outputs = [rows.residual, B, B @ inverse, gamma]
        return FunctionSource(ca.Function("pair", list(x.values()), [ca.densify(y) for y in outputs]))

    return Kernel("constraint_rows", inputs, results, key=f"pair:{signature}", build=build)


def _pose(x: ca.SX) -> Pose:
    return Pose(ca.reshape(x[:9], 3, 3).T, x[9:])
