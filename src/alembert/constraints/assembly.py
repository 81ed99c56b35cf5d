"""Configurations that close all loops: the nearest to a guess (`assemble`), and back onto the surface (`project`).

Both are Newton's method on the constraint surface, q <- integrate(q, x) with G x = -phi. `assemble` starts anywhere and
damps its steps (Levenberg, Marquardt) in the metric of the user's weights, then slides along the surface
towards the guess; `project` starts close by and moves in the metric of the mass matrix, so that what it does is what
the constraint forces could do, and keeps coordinates that are held.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import rank, saddle, solver
from alembert.constraints.dynamics import held_fixed, named_dofs, weight_vector
from alembert.constraints.results import State
from alembert.constraints.states import RowTerms, States, states
from alembert.constraints.system import ConstraintSystem
from alembert.constraints.tolerances import CLOSED, CLOSURE
from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray

_STEPS = 200


def assemble(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    fixed: Sequence[str],
    weights: Mapping[str, float] | None,
    parameters: Mapping[str, Any] | None,
) -> State:
    model = system.model
    speeds = np.zeros(model.nv) if v is None else v
    s = states(model, function, q, {"v": speeds}, parameters)
    if s.shape:
        return _each(system, function, s, fixed, weights)
    held = named_dofs(model, function, fixed, "fixed")
    move = np.setdiff1d(np.arange(model.nv), held)
    root = np.sqrt(weight_vector(model, function, weights))[move]
    guess, speeds = s.q[0].copy(), s.vectors[0][0]
    if not system.count:
        return State(guess, speeds.copy(), 0.0, 0.0, 0)
    closing = _Closing(system, s, move, root)
    q, count = closing.close(function, guess, held_fixed(model, held))
    q, more = closing.approach(q, guess)
    t = closing.terms(q)
    v = _consistent_speeds(system, function, t, speeds, move, root, held_fixed(model, held))
    return State(
        q, v, float(np.max(np.abs(t.residual))), float(np.max(np.abs(t.jacobian[0] @ v))), count + more
    )


def _each(
    system: ConstraintSystem,
    function: str,
    s: States,
    fixed: Sequence[str],
    weights: Mapping[str, float] | None,
) -> State:
    """A batch, state by state; residuals and iterations are the largest."""
    names = [name for name, _ in system.model.parameters]
    found = []
    for k in range(len(s)):
        at = None if s.parameters is None else dict(zip(names, s.parameters[k], strict=True))
        try:
            found.append(assemble(system, function, s.q[k], s.vectors[0][k], fixed, weights, at))
        except NumericalError as error:
            raise NumericalError(f"{error}{s.which(k)}") from None
    q, v = (np.array([getattr(x, name) for x in found]) for name in "qv")
    return State(
        q.reshape(*s.shape, system.model.nq),
        v.reshape(*s.shape, system.model.nv),
        max((x.residual for x in found), default=0.0),
        max((x.velocity_residual for x in found), default=0.0),
        max((x.iterations for x in found), default=0),
    )


class _Closing:
    """Newton's method in the moving columns only, rows scaled by their loop, columns by the weights."""

    def __init__(self, system: ConstraintSystem, s: States, move: Array, root: Array) -> None:
        self.system, self.s, self.move, self.root = system, s, move, root

    def terms(self, q: Array) -> RowTerms:
        return self.system.terms(self.s.with_q(q[None]))

    def step(self, q: Array, scaled: Array) -> Array:
        dv = np.zeros(self.system.model.nv)
        dv[self.move] = scaled / self.root
        return self.system.model.integrate(q, dv)

    def linearised(self, t: RowTerms) -> tuple[Array, Array]:
        """Of the holonomic rows: the others do not say where a state may be."""
        rows = self.system.holonomic
        A = t.jacobian[0][rows][:, self.move] / self.root / t.scale[0][rows, None]
        return A, t.residual[0][rows] / t.scale[0][rows]

    def close(self, function: str, q: Array, held: str) -> tuple[Array, int]:
        """Levenberg-Marquardt until the residual no longer shrinks."""
        damping = 1e-3
        t = self.terms(q)
        for count in range(_STEPS):
            A, r = self.linearised(t)
            size = np.linalg.norm(r)
            if np.max(np.abs(r), initial=0.0) <= 1e-15:
                return q, count
            U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
            sigma = np.where(sigma > 1e-10 * max(sigma[0], 1e-300), sigma, 0.0) if len(sigma) else sigma
            if not sigma.any():
                break
            for _ in range(30):
                gain = np.where(
                    sigma > 0, sigma / np.maximum(sigma**2 + damping * sigma[0] ** 2, 1e-300), 0.0
                )
                tried = self.step(q, -Vt.T @ (gain * (U.T @ r)))
                t_new = self.terms(tried)
                size_new = np.linalg.norm((t_new.residual[0] / t.scale[0])[self.system.holonomic])
                if size_new < size:
                    break
                damping = max(10 * damping, 1e-12)
            else:
                break  # no step helps: closed to rounding, or stuck
            q, t = tried, t_new
            damping = damping / 10 if size_new > 0.1 * size else damping / 1000
            if damping < 1e-15:
                damping = 0.0
        _, r = self.linearised(t)
        if not np.max(np.abs(r)) <= CLOSURE:
            i = int(np.flatnonzero(self.system.holonomic)[np.argmax(np.abs(r))])
            gap = self.system.gap(t.residual[0], i)
            raise NumericalError(
                f"{function}: {self.system.owner_name(i)} cannot be closed from this guess{held}: its residual stays at "
                f"{gap}. Start from a guess that is nearer, or fix fewer joints"
            )
        return q, count

    def approach(self, q: Array, guess: Array) -> tuple[Array, int]:
        """Slide along the surface while the distance from the guess gets smaller."""
        model = self.system.model
        distance: Callable[[Array], Array] = lambda x: model.difference(guess, x)[self.move] * self.root  # noqa: E731
        d = distance(q)
        for count in range(_STEPS):
            A, _ = self.linearised(self.terms(q))
            _, sigma, Vt = np.linalg.svd(A, full_matrices=False)
            V = Vt[sigma > 1e-9 * max(np.max(sigma, initial=0.0), 1e-300)]
            slide = d - V.T @ (V @ d)
            if np.linalg.norm(slide) <= 1e-9 * np.linalg.norm(d):
                return q, count
            length = 1.0
            while length > 1e-3:
                tried = self._reclosed(self.step(q, -length * slide))
                if tried is not None and np.linalg.norm(distance(tried)) < np.linalg.norm(d) * (1 - 1e-12):
                    break
                length /= 2
            else:
                return q, count
            q, d = tried, distance(tried)
        return q, _STEPS

    def _reclosed(self, q: Array) -> Array | None:
        """Plain Newton steps from nearby; None where they do not get there."""
        before = np.inf
        for _ in range(12):
            t = self.terms(q)
            A, r = self.linearised(t)
            worst = float(np.max(np.abs(r), initial=0.0))
            if worst >= before / 2:
                break
            before = worst
            q = self.step(q, -np.linalg.lstsq(A, r, rcond=1e-9)[0])
        return q if before <= CLOSURE else None


def _consistent_speeds(
    system: ConstraintSystem, function: str, t: RowTerms, v: Array, move: Array, root: Array, held: str
) -> Array:
    """The nearest speeds with G v = 0 that keep those of the fixed joints."""
    G = t.jacobian[0] / t.scale[0][:, None]
    A = G[:, move] / root
    for _ in range(2):  # the second time for rounding
        change = np.zeros_like(v)
        change[move] = np.linalg.lstsq(A, -(G @ v), rcond=1e-9)[0] / root
        v = v + change
    left = np.abs(G @ v)
    if np.max(left) > 1e-10 * max(1.0, float(np.linalg.norm(v))):
        i = int(np.argmax(left))
        raise NumericalError(
            f"{function}: no speeds satisfy {system.owner_name(i)}{held}: it opens at {np.max(left):.3g} per second. "
            "Fix fewer joints, or give them other speeds"
        )
    return v


def project(
    system: ConstraintSystem, function: str, q: Any, v: Any, parameters: Mapping[str, Any] | None
) -> State:
    """Newton's method in the mass metric, for a batch of states."""
    model = system.model

    def by_kept_set(given: Any, _: Any, last: Any) -> State | None:
        found = solver.projection(system, given[0], given[1], last, CLOSURE)
        return State(*found) if found is not None and found[0].shape[:-1] == found[1].shape[:-1] else None

    if v is not None and not (parameters or model.parameters):
        found = solver.directly(by_kept_set, system, function, (q, v), None, parameters)
        if found is not None:
            return found
    s = states(model, function, q, {} if v is None else {"v": v}, parameters)
    speeds = s.vectors[0] if s.vectors else np.zeros((len(s), model.nv))
    if not system.count or not len(s):
        return State(s.shaped(s.q).copy(), s.shaped(speeds).copy(), 0.0, 0.0, 0)
    if system.prepare(s, CLOSED):
        found = by_kept_set((s.q, speeds), (), s.last)
        if found is not None:
            return dataclasses.replace(found, q=s.shaped(found.q), v=s.shaped(found.v))
    s, t, count = _on_surface(system, function, s)
    y, left = _kept_speeds(system, function, s, t, speeds)
    opened, broken = (float(np.max(np.abs(x))) for x in (t.residual, left))
    return State(s.shaped(s.q), s.shaped(speeds + y), opened, broken, count)


def _kept_speeds(
    system: ConstraintSystem, function: str, s: States, t: RowTerms, v: Array, rounding: float = 0.0
) -> tuple[Array, Array]:
    """y in the mass metric with G y = -G v, and G (v + y)."""
    c = -(t.jacobian @ v[..., None])[..., 0]
    y, _ = solver.respond(system, function, s, t, c, np.linalg.norm(v, axis=-1) + rounding, forces=False)
    return y, (t.jacobian @ (v + y)[..., None])[..., 0]


def corrections(
    system: ConstraintSystem, function: str, q: Array, v: Array, parameters: Mapping[str, Any] | None
) -> tuple[Array, Array]:
    """x and y in the mass metric with G x = -phi and G y = -G v: one step of the projection, not taken."""
    s = states(system.model, function, q, {"v": v}, parameters)
    t = system.terms(s)
    off = np.max(np.abs(t.residual) / t.scale, axis=-1, initial=0.0)
    x, _ = solver.respond(system, function, s, t, -t.residual, off + 1e-6, forces=False)
    return s.shaped(x, _kept_speeds(system, function, s, t, s.vectors[0], 1e-6)[0])


def _on_surface(system: ConstraintSystem, function: str, s: States) -> tuple[States, RowTerms, int]:
    t = system.terms(s)
    worst, count = np.inf, 0
    for count in range(20):  # noqa: B007  (told below)
        off = np.max(np.abs(t.residual) / t.scale, axis=-1)
        largest = float(np.max(off))
        if not largest < worst / 2 or largest <= 1e-15:  # rounding, or no longer converging
            break
        worst = largest
        # rounding of the residuals counts as a displacement of 1e-6 does in the check of dropped rows
        x, _ = solver.respond(system, function, s, t, -t.residual, off + 1e-6, forces=False)
        better = s.with_q(system.model.integrate(s.q, x))
        t_better = system.terms(better)
        if float(np.max(np.abs(t_better.residual) / t_better.scale)) >= largest:
            break
        s, t = better, t_better
    off = np.max(np.abs(t.residual) / t.scale, axis=-1)
    if not np.max(off) <= CLOSURE:
        k = int(np.argmax(off))
        i = int(np.argmax(np.abs(t.residual[k]) / t.scale[k]))
        raise NumericalError(
            f"{function}: {system.owner_name(i)} stays open by {system.gap(t.residual[k], i)} after {count} steps of "
            "Newton's method; the configuration is too far from the constraint surface: use model.assemble(q)"
        )
    return s, t, count


def _held(model: Model, held: Array) -> str:
    if not len(held):
        return ""
    return f" with {', '.join(repr(model.speed_names[k]) for k in held)} fixed"


def project_held(
    system: ConstraintSystem,
    function: str,
    q: Array,
    v: Array,
    held: Array,
    parameters: Mapping[str, Any] | None,
) -> tuple[Array, Array]:
    """The same, state by state, where drives hold the coordinates and speeds of some degrees of freedom."""
    model = system.model
    s = states(model, function, q, {"v": v}, parameters)
    move = rank.others(model.nv, held)
    found, speeds = s.q.copy(), s.vectors[0].copy()

    def nearest(at: States, t: RowTerms, c: Array) -> Array:
        x, M = np.zeros(model.nv), system.mass_matrix(at)[0]
        x[move] = saddle.least(M[np.ix_(move, move)], t.jacobian[0][:, move], c, t.scale[0])
        return x

    for k in range(len(s)):
        at = closest = s.at(k)
        worst = np.inf
        for _ in range(20):
            t = system.terms(at)
            largest = float(np.max(np.abs(t.residual[0]) / t.scale[0], initial=0.0))
            if not largest < worst / 2 or largest <= 1e-15:
                break
            worst, closest = largest, at
            at = at.with_q(model.integrate(at.q, nearest(at, t, -t.residual[0])[None]))
        at = at if largest <= worst else closest
        t = system.terms(at)
        speeds[k] += nearest(at, t, -(t.jacobian[0] @ speeds[k]))
        found[k] = at.q[0]
        left, broken = (np.abs(x) / t.scale[0] for x in (t.residual[0], t.jacobian[0] @ speeds[k]))
        for what, values, limit in (
            ("stays open by", left, CLOSURE),
            ("opens at a rate of", broken, 1e-9 * max(1.0, float(np.linalg.norm(speeds[k])))),
        ):
            if not np.max(values, initial=0.0) <= limit:
                i = int(np.argmax(values))
                raise NumericalError(
                    f"{function}: {system.owner_name(i)} {what} {values[i]:.3g}{held_fixed(model, held)}: the mechanism "
                    "cannot follow the prescribed motion here"
                )
    return s.shaped(found, speeds)
