"""What is free in an equilibrium, by name, and what is to vanish there: the equations of `equilibria`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.arguments import unknown
from alembert.errors import ArgumentError
from alembert.linear import quantities
from alembert.model import Model

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
    try:
        model.check_configuration(point["q"])
    except ArgumentError as error:
        raise ArgumentError(str(error).replace("check_configuration", "trim", 1)) from None
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
    if (
        kind == "q"
        and rest not in quantities.joint_names(model)
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
        where = (
            model.q_slice(rest)
            if rest in quantities.joint_names(model)
            else [model.coordinate_names.index(rest)]
        )
    x = model.compute.numbers("trim", f"fixed: {name!r}", value)
    width = len(point[kind][where])
    if x.shape != (width,) and not (width == 1 and x.shape == ()):
        raise ArgumentError(f"trim: fixed: {name!r} has shape {x.shape}, expected ({width},)")
    point[kind][where] = x
    return dofs


def listed(free: Sequence[str] | None) -> Sequence[str] | None:
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
