"""Discrete-time linear-quadratic problems, solved by the sweep of forward dynamics.

Source: D'Eleuterio and Damaren 1991, section IV.

Stages hang from one another like bodies: in time each from the one before, in general as a tree. With x_P the
state of the stage that a stage hangs from,

    x = A x_P + B u + c                                                                     (1)
    J = sum  1/2 x^T M x + h^T x + 1/2 u^T R u + x_P^T N u - t^T u                          (2)

is minimised over the inputs u. The paper has R, N and c zero and one stage after the other; it writes
(32)-(33) with A, B, t, u under the index of the stage they lead *from*, we under that of the stage they lead
*to*. R is what armature is to a joint, N what a rotor on the parent is, c what an acceleration bias is.

The inward sweep finds the cost to go 1/2 x^T P x + z^T x of each stage with all that hangs from it, (38)-(41)
of the paper, by the very step that finds articulated inertias; the outward sweep is the feedback law

    u = -K x_P + k,    x = A x_P + B u + c                                                  (3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, NumericalError
from alembert.spatial.arrays import symmetric
from alembert.sweeps.dynamics import eliminate, respond
from alembert.sweeps.node import RIGID_ATTACHMENT, Record

Array = np.ndarray
BEFORE = -2
"""As the parent of a stage: the stage before it in the list."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One term of (1) and (2); what is left out is zero. `parent` is a stage's index, or -1 for the start."""

    A: Any
    B: Any
    M: Any
    h: Any = None
    t: Any = None
    R: Any = None
    N: Any = None
    c: Any = None
    parent: int = BEFORE

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many entries x_P, x and u have."""
        return self.A.shape[1], *self.B.shape


@dataclass(frozen=True, eq=False)
class LQProblem:
    """Stages, parents first, and the state `initial` that the first ones hang from (by default zero)."""

    stages: tuple[Stage, ...]
    initial: Array

    def __init__(self, stages: Sequence[Stage], initial: Any = None) -> None:
        if initial is None:
            initial = np.zeros(np.atleast_1d(stages[0].A).shape[-1] if stages else 0)
        start = np.atleast_1d(np.asarray(initial, dtype=float))
        checked: list[Stage] = []
        for k, stage in enumerate(stages):
            parent = k - 1 if stage.parent == BEFORE else stage.parent
            if not -1 <= parent < k:
                raise ArgumentError(
                    f"LQProblem: stage {k} hangs from stage {parent}, expected -1 or an earlier one"
                )
            width = len(start) if parent < 0 else len(checked[parent].M)
            checked.append(_checked(stage, k, parent, width))
        object.__setattr__(self, "stages", tuple(checked))
        object.__setattr__(self, "initial", start)

    def states(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """(1) from the first stage to the last."""
        found: list[Array] = []
        for stage, u in zip(self.stages, inputs, strict=True):
            found.append(stage.A @ self.parent_state(stage, found) + stage.B @ u + stage.c)
        return tuple(found)

    def cost(self, inputs: Sequence[Array]) -> float:
        """(2) for any inputs, one array per stage."""
        states, total = self.states(inputs), 0.0
        for s, x, u in zip(self.stages, states, inputs, strict=True):
            total += float(x @ s.M @ x / 2 + s.h @ x + u @ s.R @ u / 2 - s.t @ u)
            total += float(self.parent_state(s, states) @ s.N @ u)
        return total

    def parent_state(self, stage: Stage, states: Sequence[Array]) -> Array:
        return states[stage.parent] if stage.parent >= 0 else self.initial


@dataclass(frozen=True, eq=False)
class LQSolution:
    """The minimum; each field but the cost has one array per stage."""

    inputs: tuple[Array, ...]
    states: tuple[Array, ...]
    costates: tuple[Array, ...]
    """-(P x + z): between bodies, the force on the inboard one"""
    P: tuple[Array, ...]
    z: tuple[Array, ...]
    """the cost to go from x with all that hangs from it is 1/2 x^T P x + z^T x and a constant"""
    gains: tuple[Array, ...]
    offsets: tuple[Array, ...]
    """K and k of (3)"""
    cost: float


def solve_lq(problem: LQProblem) -> LQSolution:
    """Minimise (2) in one sweep inward and one outward; O(number of stages)."""
    if not isinstance(problem, LQProblem):
        raise ArgumentError(f"solve_lq: problem is a {type(problem).__name__}, expected an LQProblem")
    stages = problem.stages
    P, z = [s.M.copy() for s in stages], [np.array(s.h) for s in stages]
    gains, offsets, inputs, states = ([np.empty(0)] * len(stages) for _ in range(4))
    for k in reversed(range(len(stages))):
        s = stages[k]
        inward, _ = _steps(*s.sizes, bool(np.any(s.N)))
        P_parent, z_parent, D, gains[k], offsets[k] = _call(inward, P[k], z[k], s)
        _check_definite(D, k)
        if s.parent >= 0:
            P[s.parent] += P_parent
            z[s.parent] += z_parent[:, 0]
    for k, s in enumerate(stages):
        _, outward = _steps(*s.sizes, bool(np.any(s.N)))
        u, x = _call(outward, P[k], z[k], s, problem.parent_state(s, states))
        inputs[k], states[k] = u[:, 0], x[:, 0]
    return LQSolution(
        tuple(inputs),
        tuple(states),
        tuple(-(P[k] @ x + z[k]) for k, x in enumerate(states)),
        tuple(P),
        tuple(z),
        tuple(gains),
        tuple(k[:, 0] for k in offsets),
        problem.cost(inputs),
    )


# --- stages in the place of bodies --------------------------------------------------------------------------


class _Vector:
    """Stands for a motion or a force."""

    def __init__(self, x: ca.SX) -> None:
        self._x = x

    @classmethod
    def from_vector(cls, x: ca.SX) -> _Vector:
        return cls(x)

    def vector(self) -> ca.SX:
        return self._x

    def __add__(self, other: _Vector) -> _Vector:
        return _Vector(self._x + other._x)


class _Weight:
    """Stands for an articulated inertia."""

    def __init__(self, M: ca.SX) -> None:
        self._M = M

    @classmethod
    def from_matrix(cls, M: ca.SX) -> _Weight:
        return cls(symmetric(M))

    def matrix(self) -> ca.SX:
        return self._M

    def columns(self, B: ca.SX) -> ca.SX:
        return self._M @ B

    def transform(self, X: _Transition) -> _Weight:
        return _Weight.from_matrix(X.A.T @ self._M @ X.A)

    def __matmul__(self, x: _Vector) -> _Vector:
        return _Vector(self._M @ x.vector())

    def __sub__(self, other: _Weight) -> _Weight:
        return _Weight(self._M - other._M)


class _Transition:
    """Stands for the pose of a body on its parent: takes states outward and costates inward."""

    def __init__(self, A: ca.SX) -> None:
        self.A = A

    def motion_inverse(self, x: _Vector) -> _Vector:
        return _Vector(self.A @ x.vector())

    def force(self, f: _Vector) -> _Vector:
        return _Vector(self.A.T @ f.vector())


def stage_record(given: Mapping[str, ca.SX], *, coupled: bool) -> Record:
    """A stage with the fields of (1) and (2) in `given`, in the place of a body; `eliminate` has run on it.

    z, c and t may have several columns: problems with the same A, B, P, R and N that share the work.
    """
    columns = given["z"].shape[1]
    b = Record(
        node=SimpleNamespace(
            reflected_inertia=given["R"],
            rotor_momentum=given["N"] if coupled else None,
            attachment=RIGID_ATTACHMENT,
            structure=SimpleNamespace(guarded=False, stiffening=""),
        ),
        parent=Record(),
        passive=False,
        P=_Weight(symmetric(given["P"])),
        z=_Vector(given["z"]),
        c=_Vector(given["c"]),
        X=_Transition(given["A"]),
        S=given["B"],
        tau=given["t"],
        reaction=_Vector(ca.SX(given["A"].shape[1], columns)),
    )
    eliminate(b)
    return b


def stage_gains(b: Record) -> tuple[ca.SX, ca.SX]:
    """K and k of (3)."""
    K = b.factor.solve((b.U_P if b.has("U_P") else b.X.A.T @ b.U).T)
    return K, b.factor.solve(b.e)


@lru_cache(maxsize=128)
def _steps(n_parent: int, n: int, m: int, coupled: bool) -> tuple[ca.Function, ca.Function]:
    """`eliminate` and `respond` of forward dynamics for a stage of these sizes, as CasADi functions."""
    shapes = {
        **{"P": (n, n), "z": (n, 1), "A": (n, n_parent), "B": (n, m), "c": (n, 1)},
        **{"R": (m, m), "N": (n_parent, m), "t": (m, 1), "x_P": (n_parent, 1)},
    }
    given = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    b = stage_record(given, coupled=coupled)
    b.parent.A = _Vector(given["x_P"])
    respond(b)
    *most, x_P = given.values()
    results = [b.parent.P.matrix(), b.parent.z.vector(), b.D, *stage_gains(b)]
    return (
        ca.Function("eliminate", most, [ca.densify(value) for value in results]),
        ca.Function("respond", [*most, x_P], [ca.densify(b.a), ca.densify(b.A.vector())]),
    )


def _call(function: ca.Function, P: Array, z: Array, s: Stage, *more: Array) -> list[Array]:
    values = function.call([ca.DM(x) for x in (P, z, s.A, s.B, s.c, s.R, s.N, s.t, *more)])
    return [value.full() for value in values]


# --- checks -------------------------------------------------------------------------------------------------


def _checked(stage: Stage, k: int, parent: int, width: int) -> Stage:
    """All fields as float arrays of the right shapes."""
    A, B = (np.asarray(x, dtype=float) for x in (stage.A, stage.B))
    if A.ndim != 2 or B.ndim != 2:
        raise ArgumentError(
            f"LQProblem: stage {k}: A and B have shapes {A.shape} and {B.shape}, not matrices"
        )
    n, m = B.shape
    shapes = {
        **{"A": (n, width), "B": (n, m), "M": (n, n), "h": (n,), "t": (m,)},
        **{"R": (m, m), "N": (width, m), "c": (n,)},
    }
    fields: dict[str, Array] = {}
    for name, shape in shapes.items():
        value = getattr(stage, name)
        fields[name] = np.zeros(shape) if value is None else np.asarray(value, dtype=float)
        if fields[name].shape != shape:
            raise ArgumentError(
                f"LQProblem: stage {k}: {name} has shape {fields[name].shape}, expected {shape}; "
                f"x_P, x and u have {width}, {n} and {m} entries"
            )
        if not np.all(np.isfinite(fields[name])):
            raise ArgumentError(f"LQProblem: stage {k}: {name} is not finite")
    for name in ("M", "R"):
        W = fields[name]
        if not np.allclose(W, W.T, rtol=0, atol=1e-9 * np.max(np.abs(W), initial=0.0)):
            raise ArgumentError(f"LQProblem: stage {k}: {name} is not symmetric")
    return Stage(**fields, parent=parent)


def _check_definite(D: Array, k: int) -> None:
    """The minimum over u exists when D = B^T P B + R is positive definite."""
    if not np.all(np.isfinite(D)):
        raise NumericalError(f"solve_lq: stage {k}: the cost is not finite")
    least = np.min(np.linalg.eigvalsh(D), initial=np.inf)
    if least <= 0:
        raise NumericalError(
            f"solve_lq: stage {k}: the cost has no minimum over the input: B^T P B + R has the eigenvalue "
            f"{least:.3g}, expected positive ones"
        )
