"""Equilibria and steady motions: states whose accelerations vanish.

The residual is what inverse dynamics at a = 0 asks of the joints beyond the efforts that are there,

    r = ID(q, v, 0) - tau - G u = 0,                                                         (1)

over the free ones of q (tangent), v, tau and the actuators' u. Levenberg-Marquardt steps on the manifold, with exact
derivatives; where (1) leaves a choice, the solution nearest to the guess is found by

    x <- x + g - J^+ (r + J g),   g = guess - x                                              (2)

Loops, couplings and equations add their forces f to what is free, and their rows to what is to vanish:

    r - G^T f = 0,   phi(q) = 0,   G v = 0,   gamma(q, v) = 0                                (3)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.dynamics.arguments import mapping
from alembert.errors import AlembertWarning, ArgumentError, NumericalError
from alembert.linear import printing, quantities
from alembert.linear.linear_model import LinearModel
from alembert.linear.linearization import linearize
from alembert.model import Model
from alembert.model.model import check_model
from alembert.model.printing import unknown

Array = np.ndarray

_TOLERANCE = 1e-10  # of the residual, relative to efforts and their derivatives
_ROUNDING = 1e-9  # rad, m, N m or N: less beyond a limit is not worth a warning
_CLOUD = 1e-6  # of the fastest pole: what counts as neither stable nor unstable
_RESTARTS = tuple(radius for radius in (0.1, 0.5, 1.5, 3.0) for _ in range(4))  # rad or m


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

    def linearize(self, **options: Any) -> LinearModel:
        """The linear model there; options as those of `alembert.linearize`."""
        return linearize(
            self.model, self.q, self.v, self.tau, parameter_values=self.parameter_values or None, **options
        )

    def eigenvalues(self) -> Array:
        """The poles of the linear model."""
        return self.linearize().poles()

    @property
    def stability(self) -> str:
        """ "stable" or "unstable" by the poles, "marginal" where the linear model leaves it open."""
        poles = self.eigenvalues()
        limit = _CLOUD * np.abs(poles).max(initial=0.0)
        if np.any(poles.real > limit):
            return "unstable"
        return "stable" if np.all(poles.real < -limit) else "marginal"

    def __rich__(self) -> Any:
        model = self.model
        coordinates = [unit for joint in model.joints for _, unit in joint.type.coordinates]
        speeds, efforts = quantities.speed_units(model), quantities.effort_units(model)
        rows = [
            *((f"q:{n}", x, u) for n, x, u in zip(model.coordinate_names, self.q, coordinates, strict=True)),
            *((f"v:{n}", x, u) for n, x, u in zip(model.speed_names, self.v, speeds, strict=True) if x),
            *((f"tau:{n}", x, u) for n, x, u in zip(model.speed_names, self.tau, efforts, strict=True)),
            *((f"actuator:{n}", x, "") for n, x in self.inputs.items()),
        ]
        title = f"equilibrium of {model.name}, found with {', '.join(self.free) or 'nothing'} free"
        body = ((name, printing.number(x, 8), unit) for name, x, unit in rows)
        return printing.table(title, ("", "value", "unit"), body)

    def __str__(self) -> str:
        return printing.text(self.__rich__())


@dataclass(frozen=True, eq=False)
class _Point:
    q: Array
    v: Array
    tau: Array
    u: Array
    f: Array
    """of the constraints"""


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is free, by index, and the model with its parameters."""

    model: Model
    parameters: Mapping[str, float]
    q: list[int]
    v: list[int]
    tau: list[int]
    u: list[int]
    actuators: tuple[str, ...]
    G: Array
    rows: int
    """of the constraints"""
    weight: float
    """of residuals of constraints against missing efforts"""

    @property
    def size(self) -> int:
        return len(self.q) + len(self.v) + len(self.tau) + len(self.u) + self.rows

    @property
    def names(self) -> tuple[str, ...]:
        speeds = self.model.speed_names
        return (
            *(f"q:{speeds[k]}" for k in self.q),
            *(f"v:{speeds[k]}" for k in self.v),
            *(f"tau:{speeds[k]}" for k in self.tau),
            *(f"actuator:{self.actuators[k]}" for k in self.u),
        )

    def evaluate(self, at: _Point) -> tuple[Array, Array, float]:
        """r and J of (1), and the size of the efforts that residuals are judged against."""
        zero = np.zeros(self.model.nv)
        parameters = self.parameters or None
        effort = at.tau + self.G @ at.u
        tree = self.model._constraint_rows.primary if self.rows else self.model
        asked = tree.inverse_dynamics(at.q, at.v, zero, parameters=parameters)
        d = tree.inverse_dynamics_derivatives(at.q, at.v, zero, parameters=parameters)
        one = np.eye(self.model.nv)
        J = np.concatenate([d.dq[:, self.q], d.dv[:, self.v], -one[:, self.tau], -self.G[:, self.u]], axis=1)
        scale = max(np.abs(x).max(initial=0.0) for x in (asked, effort, d.dq, d.dv, d.da))
        if self.rows:
            return self.constrained(at, asked - effort, J, float(scale))
        return asked - effort, J, float(scale)

    def constrained(self, at: _Point, r: Array, J: Array, scale: float) -> tuple[Array, Array, float]:
        """(3)"""
        model = self.model
        c = model._constraint_slopes("trim", at.q, at.v, at.f, self.parameters or None)
        J[:, : len(self.q)] -= c.push_q[:, self.q]
        blocks = [[J, -c.G.T]]
        none = np.zeros((self.rows, len(self.tau) + len(self.u) + self.rows))
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

    def move(self, at: _Point, step: Array) -> _Point:
        parts = np.split(step, np.cumsum([len(self.q), len(self.v), len(self.tau), len(self.u)]))
        dq = np.zeros(self.model.nv)
        dq[self.q] = parts[0]
        moved = _Point(self.model.integrate(at.q, dq), at.v.copy(), at.tau.copy(), at.u.copy(), at.f.copy())
        everything = range(self.rows)
        for x, where, part in zip(
            (moved.v, moved.tau, moved.u, moved.f),
            (self.v, self.tau, self.u, everything),
            parts[1:],
            strict=True,
        ):
            x[where] += part
        return moved

    def difference(self, at: _Point, to: _Point) -> Array:
        return np.concatenate(
            [
                self.model.difference(at.q, to.q)[self.q],
                (to.v - at.v)[self.v],
                (to.tau - at.tau)[self.tau],
                (to.u - at.u)[self.u],
                to.f - at.f,
            ]
        )


def trim(
    model: Model,
    *,
    q: Any = None,
    v: Any = None,
    tau: Any = None,
    fixed: Mapping[str, Any] | None = None,
    free: Sequence[str] | None = None,
    parameter_values: Mapping[str, float] | None = None,
) -> Trim:
    """Find a state without accelerations.

    `q`, `v` and `tau` are the guess (neutral and zero when left out). What is `free` changes, all else stays as it is in
    the guess or as `fixed` says. Names are those of coordinates (`elbow` or `q:elbow`), speeds (`v:elbow`), efforts
    (`tau:elbow`) and actuators (`motor` or `actuator:motor`), of a whole joint or of one degree of freedom; `q`, `v`, `tau`
    and `actuators` stand for all that are not fixed. An actuator that is named gives all the effort of its degree of
    freedom.

    By default all coordinates that are not fixed are free; when all are fixed, the actuators are (or all efforts,
    where the model has no actuators). Raises `NumericalError` with the joints that cannot be held.
    """
    check_model("trim", model)
    held = mapping("trim", "fixed", fixed)
    guess, problem = _set_up(model, q, v, tau, held, _names(free), dict(parameter_values or {}))
    at, iterations = _solve(problem, guess)
    r, J, scale = problem.evaluate(at)
    if np.abs(r).max(initial=0.0) > _TOLERANCE * scale:
        rng = np.random.default_rng(0)
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
        else:
            raise NumericalError(_failure(problem, r))
    if problem.size and np.linalg.matrix_rank(J, tol=1e-9 * max(scale, 1e-300)) < problem.size:
        at = _nearest(problem, at, guess)
        r = problem.evaluate(at)[0]
    effort = at.tau + problem.G @ at.u
    r = r[: model.nv]
    _warn_of_limits(problem, at, effort)
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
    )


# --- solving --------------------------------------------------------------------------------------------------


def _solve(problem: _Problem, start: _Point) -> tuple[_Point, int]:
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


def _nearest(problem: _Problem, at: _Point, guess: _Point) -> _Point:
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


def _failure(problem: _Problem, r: Array) -> str:
    model = problem.model
    units, names = quantities.effort_units(model), model.speed_names
    largest = np.argsort(-np.abs(r[: model.nv]), kind="stable")[:3]
    missing = ", ".join(
        f"joint {names[k]!r} lacks {r[k]:.4g} {units[k]}"
        for k in largest
        if abs(r[k]) > 1e-3 * np.abs(r).max()
    )
    free = ", ".join(problem.names) or "nothing"
    if problem.rows and np.argmax(np.abs(r)) >= model.nv:
        row = (int(np.argmax(np.abs(r))) - model.nv) % problem.rows
        owner = model._constraint_rows.system("trim", None).owner_name(row)
        return f"trim: no equilibrium found: {owner} cannot be satisfied, with {', '.join(problem.names) or 'nothing'} free"
    one = problem.size == 1
    hint = (
        f"; {problem.size} free {'quantity' if one else 'quantities'} cannot hold {model.nv} degrees of freedom in general"
        if problem.size < model.nv
        else "; free an effort, or start from another guess"
    )
    return f"trim: no equilibrium found: {missing} at the best point, with {free} free{hint}"


def _warn_of_limits(problem: _Problem, at: _Point, effort: Array) -> None:
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
        warnings.warn(f"trim: beyond limits at the equilibrium: {listed}", AlembertWarning, stacklevel=3)


# --- names ----------------------------------------------------------------------------------------------------


def _set_up(
    model: Model,
    q: Any,
    v: Any,
    tau: Any,
    fixed: Mapping[str, Any],
    free: Sequence[str] | None,
    parameters: dict[str, float],
) -> tuple[_Point, _Problem]:
    point = {
        "q": model.neutral() if q is None else model._numbers("trim", "q", q, model.nq, batch=False).copy(),
        "v": np.zeros(model.nv)
        if v is None
        else model._numbers("trim", "v", v, model.nv, batch=False).copy(),
        "tau": np.zeros(model.nv)
        if tau is None
        else model._numbers("trim", "tau", tau, model.nv, batch=False).copy(),
    }
    known = quantities.actuators(model)
    held: dict[str, set[int]] = {"q": set(), "v": set(), "tau": set()}
    inputs: dict[str, float] = {}
    for name, value in fixed.items():
        kind, rest = _kind(model, name, "fixed")
        if kind == "actuator":
            x = model._numbers("trim", f"fixed: {name!r}", value)
            if x.ndim:
                raise ArgumentError(f"trim: fixed: {name!r} has shape {x.shape}, expected a number")
            inputs[rest] = float(x)
        else:
            dofs = _fix(model, kind, rest, name, value, point)
            _refuse(name, [n for n in dofs if n in held[kind]], model, "fixed", "is fixed twice")
            held[kind].update(dofs)
    loose: dict[str, list[int]] = {"q": [], "v": [], "tau": []}
    driving: list[str] = []
    for name in _default_free(model, held) if free is None else free:
        kind, rest = _kind(model, name, "free")
        if kind == "actuator":
            names = [x for x in known if x not in inputs] if not rest else [rest]
            if rest in inputs:
                raise ArgumentError(f"trim: {name!r} is both fixed and free")
            driving += [x for x in names if x not in driving]
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
    model._parameter_array("trim", parameters)
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
        guess = point["tau"][k] / G[k, column] if G[k, column] else 0.0
        u[column] = inputs.get(name, guess)
    for name in used:
        point["tau"][quantities.driven(model, known[name])] = 0.0
    try:
        model.check_configuration(point["q"])
    except ArgumentError as error:
        raise ArgumentError(str(error).replace("check_configuration", "trim", 1)) from None
    rows = model._constraint_rows.count if model.is_constrained else 0
    problem = _Problem(
        model,
        parameters,
        sorted(loose["q"]),
        sorted(loose["v"]),
        sorted(loose["tau"]),
        list(range(len(inputs), len(used))),
        used,
        G,
        rows,
        model.mass if rows else 1.0,
    )
    return _Point(point["q"], point["v"], point["tau"], u, np.zeros(rows)), problem


def _kind(model: Model, name: str, argument: str) -> tuple[str, str]:
    """What a name means; the rest is empty where it means all of a kind."""
    if name in ("q", "v", "tau"):
        return name, ""
    if name == "actuators" and argument == "free":
        return "actuator", ""
    kind, rest = quantities.split(name, ("q", "v", "tau", "actuator"), "trim", argument)
    known = quantities.actuators(model)
    if not kind:
        joint = quantities.is_joint_or_dof(model, rest) or rest in model.coordinate_names
        if joint and rest in known:
            raise ArgumentError(
                f"trim: {argument}: {rest!r} is a joint and an actuator; write 'q:{rest}' or 'actuator:{rest}'"
            )
        if not joint and rest not in known:
            names = [*model._joint_index, *model.speed_names, *known]
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
        point[kind][:] = model._numbers("trim", f"fixed: {name!r}", value, width, batch=False)
        return list(range(model.nv))
    if (
        kind == "q"
        and rest not in model._joint_index
        and rest in (*model.coordinate_names, *model.speed_names)
    ):
        joint = next(j for j in model.joints if rest.startswith(f"{j.name}."))
        if not joint.type.is_vector_space:
            raise ArgumentError(
                f"trim: fixed: {name!r}: the coordinates of a {joint.type.kind} joint are only fixed together, "
                f"{joint.name!r}; to fix some of its directions, leave them out of free"
            )
    dofs = quantities.degrees_of_freedom(model, rest, "trim", "fixed")
    where: Any = dofs
    if kind == "q":
        where = model.q_slice(rest) if rest in model._joint_index else [model.coordinate_names.index(rest)]
    x = model._numbers("trim", f"fixed: {name!r}", value)
    width = len(point[kind][where])
    if x.shape != (width,) and not (width == 1 and x.shape == ()):
        raise ArgumentError(f"trim: fixed: {name!r} has shape {x.shape}, expected ({width},)")
    point[kind][where] = x
    return dofs


def _names(free: Sequence[str] | None) -> Sequence[str] | None:
    if isinstance(free, str):
        return [free]
    if free is not None and not (isinstance(free, Iterable) and all(isinstance(name, str) for name in free)):
        raise ArgumentError(f"trim: free is {free!r}, expected a list of names")
    return free


def _default_free(model: Model, held: dict[str, set[int]]) -> Iterable[str]:
    if len(held["q"]) < model.nv:
        return ("q",)
    return ("actuators",) if model.actuators else ("tau",)


def _refuse(name: str, dofs: list[int], model: Model, argument: str, what: str) -> None:
    if dofs:
        listed = ", ".join(model.speed_names[k] for k in dofs)
        raise ArgumentError(f"trim: {argument}: {name!r} {what} ({listed})")
