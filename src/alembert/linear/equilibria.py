"""Equilibria and steady motions: states whose accelerations vanish.

The residual is what inverse dynamics at a = 0 asks of the joints beyond the efforts that are there,

    r = ID(q, v, 0) - tau - G u - J^T F = 0,                                                 (1)

over the free ones of q (tangent), v, tau, the actuators' u and the wrenches F. Levenberg-Marquardt steps on the manifold,
with exact derivatives; where (1) leaves a choice, the solution nearest to the guess is found by

    x <- x + g - J^+ (r + J g),   g = guess - x                                              (2)

Descent of |r| may miss a nearer solution that lies behind a hump of |r|. Where the first Newton step does not lead
about where the search ends, it is repeated from the other side of the guess, and the nearest solution is kept.

Loops, couplings and equations add their forces f to what is free, and their rows to what is to vanish:

    r - G^T f = 0,   phi(q) = 0,   G v = 0,   gamma(q, v) = 0                                (3)

What is free in an equilibrium, and what is to vanish there, is said by name (`TrimProblem`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert import arguments
from alembert.algorithms.failures import heavy
from alembert.arguments import mapping, unknown
from alembert.errors import ArgumentError, NumericalError, warn
from alembert.linear import quantities
from alembert.linear.linear_model import LinearModel
from alembert.linear.linearization import linearize
from alembert.linear.modes import settled_poles
from alembert.model import Model, printing
from alembert.model.model import check_model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class TrimPoint:
    q: Array
    v: Array
    tau: Array
    u: Array
    F: Array
    """the wrenches, (6 frames,)"""
    f: Array
    """of the constraints"""


@dataclass(frozen=True, eq=False)
class TrimProblem:
    """What is free, by index, and the model with its parameters."""

    model: Model
    parameters: Mapping[str, float]
    q: list[int]
    v: list[int]
    tau: list[int]
    u: list[int]
    F: list[int]
    actuators: tuple[str, ...]
    frames: tuple[str, ...]
    G: Array
    rows: int
    """of the constraints"""
    weight: float
    """of residuals of constraints against missing efforts"""
    forces: quantities.ForcesOfState | None = None
    time: float = 0.0

    @property
    def size(self) -> int:
        return sum(self.widths) + self.rows

    @property
    def widths(self) -> list[int]:
        return [len(x) for x in (self.q, self.v, self.tau, self.u, self.F)]

    def wrenches(self, at: TrimPoint) -> dict[str, Array]:
        return dict(zip(self.frames, at.F.reshape(-1, 6), strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        speeds = self.model.speed_names
        return (
            *(f"q:{speeds[k]}" for k in self.q),
            *(f"v:{speeds[k]}" for k in self.v),
            *(f"tau:{speeds[k]}" for k in self.tau),
            *(f"actuator:{self.actuators[k]}" for k in self.u),
            *(f"wrench:{self.frames[k // 6]}.{quantities.COMPONENTS[k % 6]}" for k in self.F),
        )

    def evaluate(self, at: TrimPoint) -> tuple[Array, Array, float]:
        """r and J of (1), and the size of the efforts that residuals are judged against."""
        model = self.model
        effort = at.tau + self.G @ at.u
        asked, dq, dv, da, pushes = self._tree(at)
        if self.forces is not None:
            given: dict[str, Any] = {"t": self.time, "parameters": self.parameters or None}
            slopes = self.forces.derivatives(at.q, at.v, **given)
            asked = asked - self.forces.efforts(at.q, at.v, **given)
            dq, dv = dq - slopes.dq, dv - slopes.dv
        one = np.eye(model.nv)
        J = np.concatenate(
            [dq[:, self.q], dv[:, self.v], -one[:, self.tau], -self.G[:, self.u], -pushes[:, self.F]], axis=1
        )
        scale = max(np.abs(x).max(initial=0.0) for x in (asked, effort, pushes @ at.F, dq, dv, da))
        if self.rows:
            return self.constrained(at, asked - effort, J, float(scale))
        return asked - effort, J, float(scale)

    def _tree(self, at: TrimPoint) -> tuple[Array, Array, Array, Array, Array]:
        """Inverse dynamics at rest accelerations without the constraints, its derivatives, and J^T of the wrenches."""
        model, parameters = self.model, self.parameters or None
        zero = np.zeros(model.nv)
        wrenches = self.wrenches(at)
        pushes = [
            np.zeros((model.nv, 0)),
            *model.compute.generalised_forces(at.q, wrenches, parameters).values(),
        ]
        if not self.rows:
            given: dict[str, Any] = {"parameters": parameters, "wrenches": wrenches or None}
            asked = model.inverse_dynamics(at.q, at.v, zero, **given)
            d = model.inverse_dynamics_derivatives(at.q, at.v, zero, **given)
            return asked, d.dq, d.dv, d.da, np.concatenate(pushes, axis=1)
        forces = [model.compute.wrench_array("trim", wrenches, parameters)] if wrenches else []
        inputs = model.compute.with_parameters("trim", parameters, at.q, at.v, zero, *forces)
        found = [
            model.compute.kernel(name, wrenches=bool(forces))(*inputs)
            for name in ("inverse_dynamics", "inverse_dynamics_derivatives")
        ]
        return found[0], *found[1], np.concatenate(pushes, axis=1)

    def constrained(self, at: TrimPoint, r: Array, J: Array, scale: float) -> tuple[Array, Array, float]:
        """(3)"""
        model = self.model
        c = model.constrained_compute.constraint_slopes("trim", at.q, at.v, at.f, self.parameters or None)
        J[:, : len(self.q)] -= c.push_q[:, self.q]
        blocks = [[J, -c.G.T]]
        none = np.zeros((self.rows, sum(self.widths[2:]) + self.rows))
        left = [r - c.G.T @ at.f, self.weight * c.residual]
        blocks.append(
            [
                np.hstack([c.G[:, self.q] * c.holonomic[:, None], np.zeros((self.rows, len(self.v))), none])
                * self.weight
            ]
        )
        if np.any(at.v) or self.v:
            left += [self.weight * (c.G @ at.v), self.weight * c.bias]
            blocks.append([np.hstack([c.speed_q[:, self.q], c.G[:, self.v], none]) * self.weight])
            blocks.append([np.hstack([c.bias_q[:, self.q], c.bias_v[:, self.v], none]) * self.weight])
        return np.concatenate(left), np.vstack([np.hstack(row) for row in blocks]), scale

    def move(self, at: TrimPoint, step: Array) -> TrimPoint:
        parts = np.split(step, np.cumsum(self.widths))
        dq = np.zeros(self.model.nv)
        dq[self.q] = parts[0]
        moved = TrimPoint(
            self.model.integrate(at.q, dq), *(x.copy() for x in (at.v, at.tau, at.u, at.F, at.f))
        )
        everything = range(self.rows)
        for x, where, part in zip(
            (moved.v, moved.tau, moved.u, moved.F, moved.f),
            (self.v, self.tau, self.u, self.F, everything),
            parts[1:],
            strict=True,
        ):
            x[where] += part
        return moved

    def difference(self, at: TrimPoint, to: TrimPoint) -> Array:
        return np.concatenate(
            [
                self.model.difference(at.q, to.q)[self.q],
                (to.v - at.v)[self.v],
                (to.tau - at.tau)[self.tau],
                (to.u - at.u)[self.u],
                (to.F - at.F)[self.F],
                to.f - at.f,
            ]
        )


def set_up(
    model: Model,
    q: Any,
    v: Any,
    tau: Any,
    fixed: Mapping[str, Any],
    free: Sequence[str] | None,
    parameters: dict[str, float],
    pushes: dict[str, Array],
    forces: quantities.ForcesOfState | None,
    time: float,
) -> tuple[TrimPoint, TrimProblem]:
    zero = np.zeros(model.nv)
    guess = {"q": (q, model.neutral()), "v": (v, zero), "tau": (tau, zero)}
    point = {
        name: (other if x is None else model.compute.numbers("trim", name, x, len(other), batch=False)).copy()
        for name, (x, other) in guess.items()
    }
    known = quantities.actuators(model)
    held: dict[str, set[int]] = {"q": set(), "v": set(), "tau": set()}
    inputs: dict[str, float] = {}
    for name, value in fixed.items():
        kind, rest = _kind(model, name, "fixed")
        if kind == "actuator":
            x = model.compute.numbers("trim", f"fixed: {name!r}", value)
            if x.ndim:
                raise ArgumentError(f"trim: fixed: {name!r} has shape {x.shape}, expected a number")
            inputs[rest] = float(x)
        else:
            dofs = _fix(model, kind, rest, name, value, point)
            _refuse(name, [n for n in dofs if n in held[kind]], model, "fixed", "is fixed twice")
            held[kind].update(dofs)
    loose: dict[str, list[int]] = {"q": [], "v": [], "tau": []}
    driving: list[str] = []
    pushing: list[tuple[str, int]] = []
    for name in _default_free(model, held) if free is None else free:
        kind, rest = _kind(model, name, "free")
        if kind == "actuator":
            names = [x for x in known if x not in inputs] if not rest else [rest]
            if rest in inputs:
                raise ArgumentError(f"trim: {name!r} is both fixed and free")
            driving += [x for x in names if x not in driving]
        elif kind == "wrench":
            frame, components = quantities.wrench(model, rest, "trim", "free")
            pushes.setdefault(frame, np.zeros(6))
            pushing += [(frame, k) for k in components if (frame, k) not in pushing]
        elif not rest:
            taken = {quantities.driven(model, known[x]) for x in inputs} if kind == "tau" else set()
            loose[kind] += [
                k for k in range(model.nv) if k not in held[kind] | taken and k not in loose[kind]
            ]
        else:
            dofs = quantities.degrees_of_freedom(model, rest, "trim", "free")
            _refuse(name, [k for k in dofs if k in held[kind]], model, "free", "is both fixed and free")
            loose[kind] += [k for k in dofs if k not in loose[kind]]
    used = (*inputs, *driving)
    values = model.parameter_values | parameters
    model.compute.parameter_array("trim", parameters)
    G = np.zeros((model.nv, len(used)))
    u = np.zeros(len(used))
    for column, name in enumerate(used):
        k = quantities.driven(model, known[name])
        G[k, column] = quantities.number(known[name].gear, values)
        if k in held["tau"] or k in loose["tau"]:
            raise ArgumentError(
                f"trim: the actuator {name!r} and tau:{model.speed_names[k]} are both named; an actuator gives all "
                "the effort of its degree of freedom"
            )
        u[column] = inputs.get(name, point["tau"][k] / G[k, column] if G[k, column] else 0.0)
    for name in used:
        point["tau"][quantities.driven(model, known[name])] = 0.0
    model.space.check("trim", point["q"])
    rows = model.constrained_compute.rows.count if model.is_constrained else 0
    problem = TrimProblem(
        model,
        parameters,
        sorted(loose["q"]),
        sorted(loose["v"]),
        sorted(loose["tau"]),
        list(range(len(inputs), len(used))),
        sorted(6 * list(pushes).index(frame) + k for frame, k in pushing),
        used,
        tuple(pushes),
        G,
        rows,
        model.mass if rows else 1.0,
        forces,
        time,
    )
    F = np.concatenate([np.zeros(0), *pushes.values()])
    return TrimPoint(point["q"], point["v"], point["tau"], u, F, np.zeros(rows)), problem


def _kind(model: Model, name: str, argument: str) -> tuple[str, str]:
    """What a name means; the rest is empty where it means all of a kind."""
    if name in ("q", "v", "tau"):
        return name, ""
    if name == "actuators" and argument == "free":
        return "actuator", ""
    kinds = ("q", "v", "tau", "actuator", *(("wrench",) if argument == "free" else ()))
    kind, rest = quantities.split(name, kinds, "trim", argument)
    known = quantities.actuators(model)
    if not kind:
        joint = quantities.is_joint_or_dof(model, rest) or rest in model.coordinate_names
        if joint and rest in known:
            raise ArgumentError(
                f"trim: {argument}: {rest!r} is a joint and an actuator; write 'q:{rest}' or 'actuator:{rest}'"
            )
        if not joint and rest not in known:
            names = [*quantities.joint_names(model), *model.speed_names, *known]
            raise ArgumentError(
                unknown(f"trim: {argument}: no joint, degree of freedom or actuator", rest, names)
            )
        kind = "q" if joint else "actuator"
    if kind == "actuator" and rest not in known:
        raise ArgumentError(unknown(f"trim: {argument}: no actuator", rest, known))
    return kind, rest


def _fix(model: Model, kind: str, rest: str, name: str, value: Any, point: dict[str, Array]) -> list[int]:
    """Put a fixed value into the point; the degrees of freedom that it holds."""
    if not rest:
        width = model.nq if kind == "q" else model.nv
        point[kind][:] = model.compute.numbers("trim", f"fixed: {name!r}", value, width, batch=False)
        return list(range(model.nv))
    for owner in model.space if kind == "q" else ():
        one = rest != owner.name and rest in (*owner.coordinate_names, *owner.speed_names)
        if one and not owner.type.is_vector_space:
            raise ArgumentError(
                f"trim: fixed: {name!r}: the coordinates of a {owner.type.kind} joint are only fixed together, "
                f"{owner.name!r}; to fix some of its directions, leave them out of free"
            )
    dofs = quantities.degrees_of_freedom(model, rest, "trim", "fixed")
    where: Any = model.space.coordinate_places.get(rest, slice(0, 0)) if kind == "q" else dofs
    x = model.compute.numbers("trim", f"fixed: {name!r}", value)
    width = len(point[kind][where])
    if x.shape != (width,) and not (width == 1 and x.shape == ()):
        raise ArgumentError(f"trim: fixed: {name!r} has shape {x.shape}, expected ({width},)")
    point[kind][where] = x
    return dofs


def _default_free(model: Model, held: dict[str, set[int]]) -> Iterable[str]:
    if len(held["q"]) < model.nv:
        return ("q",)
    return ("actuators",) if model.actuators else ("tau",)


def _refuse(name: str, dofs: list[int], model: Model, argument: str, what: str) -> None:
    if dofs:
        listed = ", ".join(model.speed_names[k] for k in dofs)
        raise ArgumentError(f"trim: {argument}: {name!r} {what} ({listed})")


_TOLERANCE = 1e-10  # of the residual, relative to efforts and their derivatives
_ROUNDING = 1e-9  # rad, m, N m or N: less beyond a limit is not worth a warning
_UNDAMPED = 1e-6  # of a pole: a smaller real part is neither stable nor unstable
_RESTARTS = tuple(radius for radius in (0.1, 0.5, 1.5, 3.0) for _ in range(4))  # rad or m
_ALIKE = 3  # restarts that end with as much missing as the guess did: it will not get better
_STRAIGHT = 0.5  # of the way to the solution: how far off the first Newton step may be
_SAME = 1e-6  # of a distance: solutions that are nearer by less are as near
_LISTED = 8
_HOLD = "; what is fixed may take an effort to hold, free=['q', 'actuators'] or ['q', 'tau:JOINT']"


@dataclass(frozen=True, eq=False)
class Trim:
    """An equilibrium (or, with speeds, a steady motion)."""

    model: Model
    q: Array
    v: Array
    tau: Array
    inputs: Mapping[str, float]
    """of the actuators that were named; their efforts are in `tau`"""
    residual: Array
    """efforts that are still missing, (nv,)"""
    free: tuple[str, ...]
    iterations: int
    parameter_values: Mapping[str, float]
    wrenches: Mapping[str, Array]
    """on frames, (6,) each"""
    forces: quantities.ForcesOfState | None = None
    time: float = 0.0

    def linearize(self, **options: Any) -> LinearModel:
        """The linear model there; options as those of `alembert.linearize`."""
        return linearize(
            self.model,
            self.q,
            self.v,
            self.tau,
            parameter_values=self.parameter_values or None,
            wrenches=self.wrenches,
            **{"forces": self.forces, "t": self.time, **options},
        )

    def eigenvalues(self) -> Array:
        """The poles of the linear model."""
        return self.linearize().poles()

    @property
    def stability(self) -> str:
        """ "stable" or "unstable" by the poles, "marginal" where the linear model leaves it open."""
        poles = settled_poles(self.linearize())
        if np.any(poles.real > _UNDAMPED * np.abs(poles)):
            return "unstable"
        return "stable" if np.all(poles.real < -_UNDAMPED * np.abs(poles)) else "marginal"

    def __rich__(self) -> Any:
        model = self.model
        coordinates = model.space.coordinate_units
        speeds, efforts = quantities.speed_units(model), quantities.effort_units(model)
        rows = [
            *((f"q:{n}", x, u) for n, x, u in zip(model.coordinate_names, self.q, coordinates, strict=True)),
            *((f"v:{n}", x, u) for n, x, u in zip(model.speed_names, self.v, speeds, strict=True) if x),
            *((f"tau:{n}", x, u) for n, x, u in zip(model.speed_names, self.tau, efforts, strict=True)),
            *((f"actuator:{n}", x, "") for n, x in self.inputs.items()),
            *(
                (f"wrench:{frame}.{quantities.COMPONENTS[k]}", x, "N m" if k < 3 else "N")
                for frame, F in self.wrenches.items()
                for k, x in enumerate(F)
                if x
            ),
        ]
        title = f"equilibrium of {model.name}, found with {_shortened(self.free)} free"
        body = ((name, printing.number(x, 8), unit) for name, x, unit in rows)
        return printing.table(title, ("", "value", "unit"), body)

    def __str__(self) -> str:
        return printing.as_text(self.__rich__())


def trim(
    model: Model,
    q: Any = None,
    v: Any = None,
    tau: Any = None,
    *,
    fixed: Mapping[str, Any] | None = None,
    free: Sequence[str] | None = None,
    parameter_values: Mapping[str, float] | None = None,
    wrenches: Mapping[str, Any] | None = None,
    forces: quantities.ForcesOfState | None = None,
    t: float = 0.0,
) -> Trim:
    """Find a state without accelerations.

    `q`, `v` and `tau` are the guess (neutral and zero when left out). What is `free` changes, all else stays as it is in
    the guess or as `fixed` says. Names are those of coordinates (`elbow` or `q:elbow`), speeds (`v:elbow`), efforts
    (`tau:elbow`) and actuators (`motor` or `actuator:motor`), of a whole joint or of one degree of freedom; `q`, `v`, `tau`
    and `actuators` stand for all that are not fixed. An actuator that is named gives all the effort of its degree of
    freedom. `wrenches` (6,) act on frames, fixed in the frames' axes; `wrench:foot` or `wrench:foot.fz` among the free ones
    are found as well, from there on or from zero. `forces`, `al.simulate.Forces(model, [...])`, act besides, as they are at
    the time `t`.

    By default all coordinates that are not fixed are free; when all are fixed, the actuators are (or all efforts,
    where the model has no actuators). Raises `NumericalError` with the joints that cannot be held.
    """
    check_model("trim", model)
    quantities.check_forces(model, forces, "trim")
    held = mapping("trim", "fixed", fixed)
    guess, problem = set_up(
        model,
        q,
        v,
        tau,
        held,
        None if free is None else arguments.names("trim", "free", free, or_one=True),
        dict(mapping("trim", "parameter_values", parameter_values)),
        quantities.wrenches(model, wrenches, "trim", batch=False),
        forces,
        t,
    )
    at, iterations = _solve(problem, guess)
    r, J, scale = problem.evaluate(at)
    if np.abs(r).max(initial=0.0) > _TOLERANCE * scale:
        rng = np.random.default_rng(0)
        alike, least = 0, float(np.linalg.norm(r))
        for radius in _RESTARTS if problem.q or problem.v else ():
            step = np.zeros(problem.size)
            moving = len(problem.q) + len(problem.v)
            step[:moving] = rng.uniform(-radius, radius, size=moving)
            other, more = _solve(problem, problem.move(guess, step))
            iterations += more
            found = problem.evaluate(other)
            if np.abs(found[0]).max(initial=0.0) <= _TOLERANCE * found[2]:
                at, (r, J, scale) = other, found
                break
            alike += bool(np.isclose(np.linalg.norm(found[0]), least, rtol=1e-6))
            if alike == _ALIKE:
                raise NumericalError(_failure(problem, r))
        else:
            raise NumericalError(_failure(problem, r))
    else:
        at, more = _nearest_root(problem, guess, at)
        iterations += more
        r, J, scale = problem.evaluate(at)
    if problem.size and np.linalg.matrix_rank(J, tol=1e-9 * max(scale, 1e-300)) < problem.size:
        at = _nearest(problem, at, guess)
        r = problem.evaluate(at)[0]
    effort = at.tau + problem.G @ at.u
    r = r[: model.nv]
    _warn_of_limits(problem, at, effort)
    for sentence in heavy(model, at.q, problem.parameters):
        warn(f"trim: {sentence}")
    return Trim(
        model,
        at.q,
        at.v,
        effort,
        dict(zip(problem.actuators, map(float, at.u), strict=True)),
        r,
        problem.names,
        iterations,
        problem.parameters,
        problem.wrenches(at),
        forces,
        t,
    )


# --- solving --------------------------------------------------------------------------------------------------


def _solve(problem: TrimProblem, start: TrimPoint) -> tuple[TrimPoint, int]:
    """Levenberg-Marquardt from `start`, as far as it goes."""
    at, damping = start, 1e-4
    r, J, scale = problem.evaluate(at)
    for k in range(200):
        size = float(np.linalg.norm(r))
        if not problem.size or size <= 1e-15 * scale or damping > 1e8:
            return at, k
        mu = damping * float(np.linalg.norm(J, 2)) ** 2
        stacked = np.vstack([J, np.sqrt(mu) * np.eye(problem.size)])
        step = np.linalg.lstsq(stacked, np.concatenate([-r, np.zeros(problem.size)]), rcond=None)[0]
        step *= min(1.0, 1.0 / max(float(np.abs(step[: len(problem.q)]).max(initial=0.0)), 1e-300))
        moved = problem.move(at, step)
        found = problem.evaluate(moved)
        if np.linalg.norm(found[0]) < size:
            at, (r, J, scale) = moved, found
            damping = 0.0 if damping < 1e-12 else damping / 10
        elif size <= 1e-13 * scale:
            return at, k
        else:
            damping = max(10 * damping, 1e-12)
    return at, 200


def _nearest_root(problem: TrimProblem, guess: TrimPoint, found: TrimPoint) -> tuple[TrimPoint, int]:
    """Of `found` and the solutions that starts beyond the guess lead to, the nearest to the guess in q and v."""
    moving = len(problem.q) + len(problem.v)
    r, J, _ = problem.evaluate(guess)
    way = problem.difference(guess, found)[:moving]
    newton = -np.linalg.pinv(J, rcond=1e-9) @ r
    if not moving or np.linalg.norm(newton[:moving] - way) <= _STRAIGHT * np.linalg.norm(way):
        return found, 0
    best, distance, iterations = found, float(np.linalg.norm(way)), 0
    _, s, V = np.linalg.svd(J[:, :moving])
    weak = V[int(np.sum(s > 1e-9 * s[0])) - 1]  # where J says least of how far to go
    for start in (-way, distance * weak, -distance * weak):
        step = np.concatenate([start, np.zeros(problem.size - moving)])
        other, more = _solve(problem, problem.move(guess, step))
        iterations += more
        r, _, scale = problem.evaluate(other)
        away = float(np.linalg.norm(problem.difference(guess, other)[:moving]))
        if np.abs(r).max(initial=0.0) <= _TOLERANCE * scale and away < distance * (1 - _SAME):
            best, distance = other, away
    return best, iterations


def _nearest(problem: TrimProblem, at: TrimPoint, guess: TrimPoint) -> TrimPoint:
    """(2), as long as the residual stays within the tolerance and the guess comes nearer."""
    best, distance = at, float(np.linalg.norm(problem.difference(guess, at)))
    for _ in range(100):
        r, J, scale = problem.evaluate(at)
        g = problem.difference(at, guess)
        step = g - np.linalg.pinv(J, rcond=1e-9) @ (r + J @ g)
        at = problem.move(at, step)
        r, _, scale = problem.evaluate(at)
        now = float(np.linalg.norm(problem.difference(guess, at)))
        if np.abs(r).max(initial=0.0) <= _TOLERANCE * scale and now < distance:
            best, distance = at, now
        if np.linalg.norm(step) <= 1e-10 or not np.isfinite(now):
            break
    return best


def _failure(problem: TrimProblem, r: Array) -> str:
    model = problem.model
    units, names = quantities.effort_units(model), model.speed_names
    of_joints = model.space.joint_speed_names
    largest = np.argsort(-np.abs(r[: model.nv]), kind="stable")[:3]
    missing = ", ".join(
        f"{'joint' if names[k] in of_joints else 'mode'} {names[k]!r} lacks {r[k]:.4g} {units[k]}"
        for k in largest
        if abs(r[k]) > 1e-3 * np.abs(r).max()
    )
    free = _shortened(problem.names)
    held = problem.rows and len(problem.q) < model.nv and not (problem.tau or problem.u or problem.F)
    if problem.rows and np.argmax(np.abs(r)) >= model.nv:
        row = (int(np.argmax(np.abs(r))) - model.nv) % problem.rows
        owner = model.constrained_compute.rows.system("trim", None).owner_name(row)
        return f"trim: no equilibrium found: {owner} cannot be satisfied, with {free} free{_HOLD if held else ''}"
    one = problem.size == 1
    hint = (
        f"; {problem.size} free {'quantity' if one else 'quantities'} cannot hold {model.nv} degrees of freedom in general"
        if problem.size < model.nv
        else "; free an effort, or start from another guess"
    )
    worst = next(o for o in model.space if o.v.start <= largest[0] < o.v.stop)
    if held:
        hint = _HOLD
    if worst.type.kind == "free" and not problem.frames:
        hint = "; nothing carries the base: free forces on it as well, such as 'wrench:FOOT' for a frame FOOT"
    return f"trim: no equilibrium found: {missing} at the best point, with {free} free{hint}"


def _shortened(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "") or "nothing"


def _warn_of_limits(problem: TrimProblem, at: TrimPoint, effort: Array) -> None:
    model = problem.model
    found = [
        (name, x)
        for name, x, low, high in zip(
            model.coordinate_names, at.q, model.lower_limits, model.upper_limits, strict=True
        )
        if not low - _ROUNDING <= x <= high + _ROUNDING
    ]
    found += [
        (f"tau:{name}", x)
        for name, x, high in zip(model.speed_names, effort, model.effort_limits, strict=True)
        if abs(x) > high + _ROUNDING
    ]
    limits = quantities.actuators(model)
    for name, u in zip(problem.actuators, at.u, strict=True):
        low, high = limits[name].limits
        if not low - _ROUNDING <= u <= high + _ROUNDING:
            found.append((f"actuator:{name}", u))
    if found:
        listed = ", ".join(f"{name} = {x:.4g}" for name, x in found)
        warn(f"trim: beyond limits at the equilibrium: {listed}")
