"""Coordinates, speeds, efforts and actuators by name, and their units.

A name may say what it is before a colon: `q:elbow`, `v:elbow`, `tau:elbow`, `actuator:motor`, `wrench:tool`. After it comes
a joint (all of its degrees of freedom) or a single degree of freedom, named as in `model.speed_names`; for wrenches a frame,
or one component on it: `wrench:tool.fz` of mx, my, mz (moment), fx, fy, fz (force), in the frame's axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from alembert.arguments import check_known, mapping, unknown
from alembert.errors import ArgumentError
from alembert.expression import Expression, Scalar, evaluate
from alembert.model import Actuator, Model

Array = np.ndarray
_EFFORTS = {"rad/s": "N m", "m/s": "N"}
COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")


@runtime_checkable
class ForcesOfState(Protocol):
    """Efforts that depend on the state, with their derivatives: `alembert.simulate.Forces`."""

    def efforts(self, q: Any, v: Any = None, *, t: float = 0.0, parameters: Any = None) -> Array: ...

    def derivatives(self, q: Any, v: Any = None, *, t: float = 0.0, parameters: Any = None) -> Any: ...


def check_forces(model: Model, forces: Any, function: str) -> None:
    if forces is None:
        return
    if not isinstance(forces, ForcesOfState):
        raise ArgumentError(f"{function}: forces is {forces!r}, expected al.simulate.Forces(model, [...])")
    other = getattr(forces, "model", model)
    if other != model:
        raise ArgumentError(
            f"{function}: forces are those of the model {other.name!r}, expected {model.name!r}; make them for this model"
        )


def split(name: Any, kinds: Iterable[str], function: str, argument: str) -> tuple[str, str]:
    """(kind, rest) of `kind:rest`; the kind is empty where the name says none of `kinds`."""
    if not isinstance(name, str):
        raise ArgumentError(f"{function}: {argument}: {name!r} is no name")
    kind, colon, rest = name.partition(":")
    return (kind, rest) if colon and kind in kinds else ("", name)


def joint_names(model: Model) -> list[str]:
    return [joint.name for joint in model.joints]


def degrees_of_freedom(model: Model, name: str, function: str, argument: str) -> list[int]:
    """The indices of a joint's degrees of freedom, or of the one that is named."""
    if name in joint_names(model):
        s = model.v_slice(name)
        return list(range(s.start, s.stop))
    if name in model.speed_names:
        return [model.speed_names.index(name)]
    known = [*joint_names(model), *model.speed_names]
    raise ArgumentError(unknown(f"{function}: {argument}: no joint or degree of freedom", name, known))


def is_joint_or_dof(model: Model, name: str) -> bool:
    return name in joint_names(model) or name in model.speed_names


def actuators(model: Model) -> dict[str, Actuator]:
    return {actuator.name: actuator for actuator in model.actuators}


def driven(model: Model, actuator: Actuator) -> int:
    """The degree of freedom that an actuator drives."""
    return model.v_slice(actuator.joint).start + actuator.dof


def speed_units(model: Model) -> tuple[str, ...]:
    return model.space.speed_units


def displacement_units(model: Model) -> tuple[str, ...]:
    return tuple(unit.removesuffix("/s") for unit in speed_units(model))


def effort_units(model: Model) -> tuple[str, ...]:
    return tuple(_EFFORTS.get(unit, f"W/({unit})") for unit in speed_units(model))


@dataclass(frozen=True, eq=False)
class InputColumns:
    """tau = matrix u, (..., nv, number of inputs)."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    matrix: Array
    actuators: tuple[Actuator, ...]
    wrenches: tuple[tuple[int, str, int], ...]
    """(input, frame, component)"""


def inputs(
    model: Model, names: Sequence[str] | None, values: Mapping[str, Any], function: str, q: Array
) -> InputColumns:
    """By the names of joints, degrees of freedom, actuators and wrenches; None: all actuators, or all efforts.

    A wrench is worth the efforts J(q)^T F, with `values` of the parameters.
    """
    if names is None:
        names = [f"actuator:{a.name}" for a in model.actuators] or [
            f"tau:{n}" for n in model.space.joint_speed_names
        ]
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Iterable):
        raise ArgumentError(f"{function}: inputs is {names!r}, expected a list of names")
    units, known = effort_units(model), actuators(model)
    labels: list[str] = []
    found: list[str] = []
    columns: list[Array] = []
    used: list[Actuator] = []
    pushes: list[tuple[int, str, int]] = []
    for name in names:
        kind, rest = split(name, ("tau", "actuator", "wrench"), function, "inputs")
        kind = kind or _which(model, rest, function)
        if kind == "actuator":
            check_known(f"{function}: inputs: no actuator", rest, known)
            actuator = known[rest]
            k, gear = driven(model, actuator), number(actuator.gear, values)
            labels.append(rest)
            found.append(units[k] if np.all(gear == 1.0) else "")
            columns.append(gear[..., None] * np.eye(model.nv)[k])
            used.append(actuator)
        elif kind == "wrench":
            frame, components = wrench(model, rest, function, "inputs")
            J = wrench_efforts(model, frame, q, values)
            for k in components:
                pushes.append((len(labels), frame, k))
                labels.append(f"{frame}.{COMPONENTS[k]}")
                found.append("N m" if k < 3 else "N")
                columns.append(J[..., k])
        else:
            for k in degrees_of_freedom(model, rest, function, "inputs"):
                labels.append(model.speed_names[k])
                found.append(units[k])
                columns.append(np.eye(model.nv)[k])
    for label in labels:
        if labels.count(label) > 1:
            raise ArgumentError(f"{function}: inputs: {label!r} is named twice")
    matrix = np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros((model.nv, 0))
    return InputColumns(tuple(labels), tuple(found), matrix, tuple(used), tuple(pushes))


def wrench(model: Model, name: str, function: str, argument: str) -> tuple[str, tuple[int, ...]]:
    """The frame and the components that a name stands for."""
    frame, dot, component = name.rpartition(".")
    known = {f.name for f in model.frames} | {b.name for b in model.bodies}
    if name in known or not dot or component not in COMPONENTS:
        frame, components = name, tuple(range(6))
    else:
        components = (COMPONENTS.index(component),)
    check_known(f"{function}: {argument}: no frame", frame, known)
    model.compute.check_moves(function, frame)
    return frame, components


def wrenches(
    model: Model, given: Mapping[str, Any] | None, function: str, *, batch: bool = True
) -> dict[str, Array]:
    """Wrenches on frames that move, as arrays."""
    found = {}
    for frame, F in mapping(function, "wrenches", given).items():
        wrench(model, f"{frame}", function, "wrenches")
        found[frame] = model.compute.numbers(
            function, f"wrench on {frame!r}", F, 6, ": moment, then force", batch=batch
        )
    return found


def wrench_efforts(model: Model, frame: str, q: Array, values: Mapping[str, Any]) -> Array:
    """J^T, (..., nv, 6): the efforts that a wrench on the frame is worth."""
    given = dict(values) if model.parameters else None
    return np.swapaxes(model.frame_jacobian(q, frame, parameters=given), -1, -2)


def number(value: Scalar, values: Mapping[str, Any]) -> Array:
    """A number of the model, with numbers or arrays for its parameters."""
    if not isinstance(value, Expression):
        return np.asarray(float(value))
    names = sorted(value.names)

    def at(*entries: float) -> float:
        return float(evaluate(value, dict(zip(names, map(float, entries), strict=True))))

    return np.vectorize(at, otypes=[float])(*(np.asarray(values[name], dtype=float) for name in names))


def _which(model: Model, name: str, function: str) -> str:
    """Whether a bare name is an actuator or a joint; a name of both must drive it directly to mean the same."""
    actuator = actuators(model).get(name)
    if actuator is None:
        return "tau"
    if is_joint_or_dof(model, name):
        dofs = degrees_of_freedom(model, name, function, "inputs")
        if dofs != [driven(model, actuator)] or actuator.gear != 1.0:
            raise ArgumentError(
                f"{function}: inputs: {name!r} is an actuator and a joint; write 'actuator:{name}' or 'tau:{name}'"
            )
    return "actuator"
