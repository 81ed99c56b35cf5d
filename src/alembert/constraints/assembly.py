"""Configurations that close all loops: the nearest to a guess (`assemble`), and back onto the surface (`project`).

Both are Newton's method on the constraint surface, q <- integrate(q, x) with G x = -phi. `assemble` starts anywhere and
damps its steps (Levenberg, Marquardt) in the metric of the user's weights, then slides along the surface
towards the guess (flexible bodies keep their shape where the loops close so); `project` starts close by and moves in the
metric of the mass matrix, so that what it does is what the constraint forces could do, and keeps coordinates that are held.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import saddle, solver
from alembert.constraints.dynamics import held_fixed, named_dofs, weight_vector
from alembert.constraints.results import CLOSED, CLOSURE, State
from alembert.constraints.solver import ConstrainedCall, Parameters
from alembert.constraints.states import RowTerms, States
from alembert.constraints.system import ConstraintSystem
from alembert.errors import NumericalError

if TYPE_CHECKING:
    from alembert.constraints.compute import ConstrainedCompute

Array = np.ndarray
Active = Sequence[str] | None

_STEPS = 200


def assemble(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    fixed: Sequence[str],
    weights: Mapping[str, float] | None,
    active: Active,
    parameters: Parameters,
) -> State:
    """State by state; residuals and iterations of a batch are the largest."""
    call = compute.call("assemble", active, None, parameters)
    system, model = call.system, call.model
    s = call.states(q, {"v": np.zeros(model.nv) if v is None else v})
    held = named_dofs(model, s.function, fixed, "fixed")
    root = np.sqrt(weight_vector(model, s.function, weights))
    found = []
    for k in range(len(s)):
        try:
            with solver.no_bare_errors(s.function):
                found.append(_assembled_stiffly(system, s.at(k), held, root, weights or {}))
        except NumericalError as error:
            raise NumericalError(f"{error}{s.which(k)}") from None
    q, v = s.q, s.vectors[0]
    if found:
        q, v = (np.array([getattr(x, name) for x in found]) for name in "qv")
    return State(
        s.shaped(q),
        s.shaped(v),
        max((x.residual for x in found), default=0.0),
        max((x.velocity_residual for x in found), default=0.0),
        max((x.iterations for x in found), default=0),
    )


def _assembled_stiffly(
    system: ConstraintSystem, s: States, held: Array, root: Array, weights: Mapping[str, float]
) -> State:
    """With flexible bodies as they are, if their loops close so and no weights of them are given."""
    bodies = system.model.space.of_bodies
    if bodies and not any(name.startswith(tuple(bodies)) for name in weights):
        modes = [np.arange(owner.v.start, owner.v.stop) for owner in bodies.values()]
        try:
            return _assembled(system, s, np.union1d(held, np.concatenate(modes)), root)
        except NumericalError:
            pass
    return _assembled(system, s, held, root)


def _assembled(system: ConstraintSystem, s: States, held: Array, root: Array) -> State:
    """At one state."""
    model, move = system.model, saddle.others(system.model.nv, held)
    guess, speeds = s.q[0].copy(), s.vectors[0][0]
    if not system.count:
        return State(guess, speeds.copy(), 0.0, 0.0, 0)
    closing = _Closing(system, s, move, root[move])
    q, count = closing.close(guess, held_fixed(model, held))
    q, more = closing.approach(q, guess)
    t = closing.terms(q)
    v = _consistent_speeds(system, s, t, speeds, move, root[move], held_fixed(model, held))
    opened, broken = (float(np.max(np.abs(x))) for x in (t.residual, t.jacobian[0] @ v))
    return State(q, v, opened, broken, count + more)


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

    def close(self, q: Array, held: str) -> tuple[Array, int]:
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
                f"{self.s.function}: {self.system.owner_name(i)} cannot be closed from this guess{held}: its residual stays "
                f"at {gap}. Start from a guess that is nearer, or fix fewer joints"
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
    system: ConstraintSystem, s: States, t: RowTerms, v: Array, move: Array, root: Array, held: str
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
            f"{s.function}: no speeds satisfy {system.owner_name(i)}{held}: it opens at {np.max(left):.3g} per second. "
            "Fix fewer joints, or give them other speeds"
        )
    return v


def project(compute: ConstrainedCompute, q: Any, v: Any, active: Active, parameters: Parameters) -> State:
    """Newton's method in the mass metric, for a batch of states."""
    call = compute.call("project", active, None, parameters)
    system, model = call.system, call.model

    def by_kept_set(given: Any, _: Any, last: Any) -> State | None:
        found = solver.projection(system, given[0], given[1], last, CLOSURE)
        return State(*found) if found is not None and found[0].shape[:-1] == found[1].shape[:-1] else None

    if v is not None and not (parameters or model.parameters):
        found = call.directly(by_kept_set, (q, v))
        if found is not None:
            return found
    s = call.states(q, {"v": np.zeros(model.nv) if v is None else v})
    speeds = s.vectors[0]
    if not system.count or not len(s):
        return State(s.shaped(s.q).copy(), s.shaped(speeds).copy(), 0.0, 0.0, 0)
    with solver.no_bare_errors(s.function):
        if system.prepare(s, CLOSED):
            found = by_kept_set((s.q, speeds), (), s.last)
            if found is not None:
                return dataclasses.replace(found, q=s.shaped(found.q), v=s.shaped(found.v))

        def step(s: States, t: RowTerms, c: Array, size: Array) -> Array:
            return solver.respond(system, s, t, c, size, forces=False)[0]

        s, t, count = _on_surface(system, s, step)
        after = speeds + step(s, t, -_times(t, speeds), np.linalg.norm(speeds, axis=-1))
        off = np.abs(t.residual) / t.scale
        if not np.max(off) <= CLOSURE:
            k, i = np.unravel_index(np.argmax(off), off.shape)
            raise NumericalError(
                f"{s.function}: {system.owner_name(int(i))} stays open by {system.gap(t.residual[k], int(i))} after {count} "
                "steps of Newton's method; the configuration is too far from the constraint surface: use model.assemble(q)"
            )
    system.check_finite(s, s.q, after)
    opened, broken = (float(np.max(np.abs(x))) for x in (t.residual, _times(t, after)))
    return State(s.shaped(s.q), s.shaped(after), opened, broken, count)


def project_held(call: ConstrainedCall, q: Array, v: Array, held: Array) -> tuple[Array, Array]:
    """The same, state by state, where drives hold the coordinates and speeds of some degrees of freedom."""
    system, model = call.system, call.model
    s = call.states(q, {"v": v})
    move = saddle.others(model.nv, held)
    found, speeds = s.q.copy(), s.vectors[0].copy()

    def step(s: States, t: RowTerms, c: Array, _: Array) -> Array:
        x, M = np.zeros((1, model.nv)), system.mass_matrix(s)[0]
        x[0, move] = saddle.least(M[np.ix_(move, move)], t.jacobian[0][:, move], c[0], t.scale[0])
        return x

    for k in range(len(s)):
        with solver.no_bare_errors(s.function):
            at, t, _ = _on_surface(system, s.at(k), step)
            speeds[k] += step(at, t, -_times(t, speeds[k : k + 1]), speeds)[0]
        found[k] = at.q[0]
        left, broken = (np.abs(x[0]) / t.scale[0] for x in (t.residual, _times(t, speeds[k : k + 1])))
        for what, values, limit in (
            ("stays open by", left, CLOSURE),
            ("opens at a rate of", broken, 1e-9 * max(1.0, float(np.linalg.norm(speeds[k])))),
        ):
            if not np.max(values, initial=0.0) <= limit:
                i = int(np.argmax(values))
                raise NumericalError(
                    f"{s.function}: {system.owner_name(i)} {what} {values[i]:.3g}{held_fixed(model, held)}: the mechanism "
                    "cannot follow the prescribed motion here"
                )
    return s.shaped(found, speeds)


def corrections(call: ConstrainedCall, q: Array, v: Array) -> tuple[Array, Array]:
    """x and y in the mass metric with G x = -phi and G y = -G v: one step of the projection, not taken."""
    system, s = call.system, call.states(q, {"v": v})
    t, v = system.terms(s), s.vectors[0]
    off = np.max(np.abs(t.residual) / t.scale, axis=-1, initial=0.0)
    x, _ = solver.respond(system, s, t, -t.residual, off + 1e-6, forces=False)
    size = np.linalg.norm(v, axis=-1) + 1e-6
    return s.shaped(x, solver.respond(system, s, t, -_times(t, v), size, forces=False)[0])


def _on_surface(
    system: ConstraintSystem, s: States, step: Callable[[States, RowTerms, Array, Array], Array]
) -> tuple[States, RowTerms, int]:
    """Newton's method while residuals halve; `step(s, t, c, size)` is x with G x = c."""
    t = system.terms(s)
    worst, count = np.inf, 0
    for count in range(20):  # noqa: B007  (told by the caller)
        off = np.max(np.abs(t.residual) / t.scale, axis=-1, initial=0.0)
        largest = float(np.max(off))
        if not largest < worst / 2 or largest <= 1e-15:  # rounding, or no longer converging
            break
        worst = largest
        # rounding of the residuals counts as a displacement of 1e-6 does in the check of dropped rows
        better = s.with_q(system.model.integrate(s.q, step(s, t, -t.residual, off + 1e-6)))
        t_better = system.terms(better)
        if float(np.max(np.abs(t_better.residual) / t_better.scale, initial=0.0)) >= largest:
            break
        s, t = better, t_better
    return s, t, count


def _times(t: RowTerms, v: Array) -> Array:
    """G v"""
    return (t.jacobian @ v[..., None])[..., 0]
