"""Coordinates, speeds, efforts and actuators by name, and their units; outputs by name, and their derivatives.

A name may say what it is before a colon: `q:elbow`, `v:elbow`, `tau:elbow`, `actuator:motor`, `wrench:tool`. After it comes
a joint (all of its degrees of freedom) or a single degree of freedom, named as in `model.speed_names`; for wrenches a frame,
or one component on it: `wrench:tool.fz` of mx, my, mz (moment), fx, fy, fz (force), in the frame's axes.

Outputs are

    q, v, a                all displacements (tangent), speeds, accelerations
    q:elbow, v:elbow       of a joint or of one degree of freedom; a bare `elbow` is `q:elbow`
    gyro1, sensor:gyro1    a sensor of the model
    frame:hand.position    and .rotation, .pose, .velocity, .angular_velocity, .acceleration

Position, velocity and acceleration are those of the frame's origin in world axes. The angular velocity and the
rotation, a small one from the point of linearisation on, are in the frame's own axes, and so is an
accelerometer's specific force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from alembert import arguments
from alembert.arguments import check_known, mapping, unknown
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError
from alembert.expression import Expression, Scalar, evaluate
from alembert.model import WORLD, Actuator, Model
from alembert.spatial import Pose, so3
from alembert.spatial.arrays import cross, unskew
from alembert.sweeps.dynamics import accelerate, move, place, place_in_world
from alembert.sweeps.program import Program, outward, unroll

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
    """The indices of a joint's degrees of freedom, of a body's modes, or of the one that is named."""
    return model.space.dofs(function, argument, [name])


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
    names = arguments.names(function, "inputs", names, or_one=True)
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


_QUANTITIES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "position": (("position", "xyz", "m"),),
    "rotation": (("rotation", "xyz", "rad"),),
    "pose": (("position", "xyz", "m"), ("rotation", "xyz", "rad")),
    "velocity": (("velocity", "xyz", "m/s"),),
    "angular_velocity": (("angular_velocity", "xyz", "rad/s"),),
    "acceleration": (("acceleration", "xyz", "m/s^2"),),
    "specific_force": (("specific_force", "xyz", "m/s^2"),),
}
_SENSORS = {
    "point": "position",
    "frame": "pose",
    "gyro": "angular_velocity",
    "accelerometer": "specific_force",
}
_KINDS = ("q", "v", "a", "sensor", "frame")
_OF_FRAMES = Program(
    "outputs",
    {"q": "q", "v": "v", "a": "v"},
    (outward(place), outward(place_in_world), outward(move), outward(accelerate)),
)


@dataclass(frozen=True)
class Output:
    """One row: `kind` is q, v or a with an index of a degree of freedom, or frame with (name, quantity, axis)."""

    name: str
    unit: str
    kind: str
    index: int = 0
    frame: str = ""
    quantity: str = ""


@dataclass(frozen=True, eq=False)
class OutputDerivatives:
    """Values (..., ny) and derivatives (..., ny, n) with respect to q (tangent), v, a and the parameters."""

    y: Array
    dq: Array
    dv: Array
    da: Array
    dp: Array


def outputs(model: Model, names: Sequence[str], function: str) -> tuple[Output, ...]:
    """The rows that the names stand for; no names at all: the state."""
    names = arguments.names(function, "outputs", names, or_one=True)
    rows = [row for name in (names or ("q", "v")) for row in _named_rows(model, name, function)]
    labels = [row.name for row in rows]
    for label in labels:
        if labels.count(label) > 1:
            raise ArgumentError(f"{function}: outputs: {label!r} is named twice")
    return tuple(rows)


def differentiate(
    model: Model, rows: Sequence[Output], q: Array, v: Array, a: Array, p: Array
) -> OutputDerivatives:
    """Everything about the outputs at a batch of states; p are the parameters."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in (q, v, a, p)))
    ny, nv, count = len(rows), model.nv, len(model.parameters)
    found = OutputDerivatives(
        np.zeros((*batch, ny)), *(np.zeros((*batch, ny, n)) for n in (nv, nv, nv, count))
    )
    values = {"q": _plain_coordinates(model, q), "v": v, "a": a}
    matrices = {"q": found.dq, "v": found.dv, "a": found.da}
    for k, row in enumerate(rows):
        if row.kind != "frame":
            matrices[row.kind][..., k, row.index] = 1.0
            found.y[..., k] = values[row.kind][..., row.index]
    at = [k for k, row in enumerate(rows) if row.kind == "frame"]
    if at:
        parts = _kernel(model, [rows[k] for k in at])(q, v, a, *([p] if count else []))
        for total, part in zip((found.y, found.dq, found.dv, found.da, found.dp), parts, strict=False):
            if part.ndim - len(batch) == 1:
                total[..., at] = part
            else:
                total[..., at, :] = part
    return found


def _named_rows(model: Model, name: str, function: str) -> list[Output]:
    """Rows by what they measure, or a row by its own name, as `hand.position.x`."""
    try:
        return _rows(model, name, function)
    except ArgumentError:
        row = find(model, name, function)
        if row is None:
            raise
        return [row]


def _rows(model: Model, name: Any, function: str) -> list[Output]:
    kind, rest = split(name, _KINDS, function, "outputs")
    if not kind and rest in ("q", "v", "a"):
        return [_dof(model, rest, k) for k in range(model.nv)]
    sensors = {sensor.name: sensor for sensor in model.sensors}
    if not kind:
        joint = is_joint_or_dof(model, rest) or rest in model.space.of_bodies
        if rest in sensors and joint:
            raise ArgumentError(
                f"{function}: outputs: {rest!r} is a sensor and a joint; write 'sensor:{rest}' or 'q:{rest}'"
            )
        if not joint and rest not in sensors:
            known = ["q", "v", "a", *sensors, *joint_names(model), *model.speed_names]
            frame = rest.split(".")[0]
            hint = f"; for a frame write 'frame:{frame}.position'" if _is_frame(model, frame) else ""
            raise ArgumentError(unknown(f"{function}: outputs: nothing is called", rest, known) + hint)
        kind = "q" if joint else "sensor"
    if kind == "sensor":
        check_known(f"{function}: outputs: no sensor", rest, sensors)
        sensor = sensors[rest]
        if sensor.of_joint:
            letter = "q" if sensor.kind == "joint_position" else "v"
            dofs = degrees_of_freedom(model, sensor.target, function, "outputs")
            several = len(dofs) > 1
            return [
                _dof(
                    model, letter, k, f"{rest}.{model.speed_names[k].rpartition('.')[2]}" if several else rest
                )
                for k in dofs
            ]
        return _of_frame(sensor.target, _SENSORS[sensor.kind], rest)
    if kind == "frame":
        frame, _, quantity = rest.rpartition(".")
        public = [key for key in _QUANTITIES if key != "specific_force"]
        if not frame or quantity not in public:
            raise ArgumentError(
                f"{function}: outputs: {name!r} is no quantity of a frame, expected 'frame:NAME.' and one of "
                f"{', '.join(public)}"
            )
        model.frame(frame)
        return _of_frame(frame, quantity, f"{frame}.{quantity}")
    return [_dof(model, kind, k) for k in degrees_of_freedom(model, rest, function, "outputs")]


def _is_frame(model: Model, name: str) -> bool:
    return name in (WORLD, *(body.name for body in model.bodies), *(frame.name for frame in model.frames))


def _dof(model: Model, kind: str, k: int, name: str = "") -> Output:
    speed = speed_units(model)[k]
    unit = {"q": displacement_units(model)[k], "v": speed, "a": f"{speed}^2"}[kind]
    return Output(name or f"{kind}:{model.speed_names[k]}", unit, kind, k)


def _of_frame(frame: str, quantity: str, label: str) -> list[Output]:
    rows = []
    parts = _QUANTITIES[quantity]
    for part, axes, unit in parts:
        prefix = label if len(parts) == 1 else f"{label}.{part}"
        rows += [Output(f"{prefix}.{axis}", unit, "frame", k, frame, part) for k, axis in enumerate(axes)]
    return rows


def _plain_coordinates(model: Model, q: Array) -> Array:
    """q where coordinates add, zero (the displacement from the point itself) for other joints, (..., nv)."""
    found = np.zeros((*q.shape[:-1], model.nv))
    for owner in model.space:
        if owner.type.is_vector_space:
            found[..., owner.v] = q[..., owner.q]
    return found


def _kernel(model: Model, rows: Sequence[Output]) -> Kernel:
    key = ("outputs", *((row.frame, row.quantity, row.index) for row in rows))
    ny, nv, count = len(rows), model.nv, len(model.parameters)
    given: dict[str, tuple[int, ...]] = {"q": (model.nq,), "v": (nv,), "a": (nv,)}
    results: dict[str, tuple[int, ...]] = {"y": (ny,), **{f"d{x}": (ny, nv) for x in "qva"}}
    if count:
        given["parameters"], results["dp"] = (count,), (ny, count)
    return model.compute.function_kernel("outputs", given, results, lambda: _function(model, rows), key=key)


def _function(model: Model, rows: Sequence[Output]) -> ca.Function:
    nv = model.nv
    q, v, a = ca.SX.sym("q", model.nq), ca.SX.sym("v", nv), ca.SX.sym("a", nv)
    p = ca.SX.sym("parameters", len(model.parameters))
    before = {name: ca.SX.sym("R", 3, 3) for name in dict.fromkeys(row.frame for row in rows)}
    vectors, rotations = _vectors(model, list(before), q, v, a, p)
    vectors |= {(name, "rotation"): unskew(R.T @ rotations[name]) for name, R in before.items()}
    y = ca.vertcat(*(vectors[row.frame, row.quantity][row.index] for row in rows))
    dq = ca.SX.sym("dq", nv)
    T = ca.jacobian(model.space.rate(q, dq), dq)
    found = [y, ca.jacobian(y, q) @ T, ca.jacobian(y, v), ca.jacobian(y, a)]
    if model.parameters:
        found.append(ca.jacobian(y, p))
    found = ca.substitute(found, list(before.values()), [ca.densify(rotations[name]) for name in before])
    arguments = [q, v, a, p] if model.parameters else [q, v, a]
    return ca.Function("outputs", arguments, [ca.densify(x) for x in found])


def _vectors(
    model: Model, frames: Sequence[str], q: ca.SX, v: ca.SX, a: ca.SX, p: ca.SX
) -> tuple[dict[tuple[str, str], ca.SX], dict[str, ca.SX]]:
    """Quantities of frames but for small rotations, by (frame, quantity); and the frames' rotation matrices."""
    records, base = unroll(_OF_FRAMES, model.compute.tree, {"q": q, "v": v, "a": a}, p)
    vectors: dict[tuple[str, str], ca.SX] = {}
    rotations = {}
    for name in frames:
        record, X_BC = _locate(model, name, records, base, p)
        X_WC = record.X_W @ X_BC
        V, A = X_BC.motion_inverse(record.V), X_BC.motion_inverse(record.A)
        felt = A.linear + cross(V.angular, V.linear)  # the world accelerates against gravity
        rotations[name] = X_WC.rotation
        vectors |= {
            (name, "position"): X_WC.translation,
            (name, "velocity"): X_WC.rotation @ V.linear,
            (name, "angular_velocity"): V.angular,
            (name, "acceleration"): X_WC.rotation @ felt + base.gravity,
            (name, "specific_force"): felt,
        }
    return vectors, rotations


def find(model: Model, name: str, function: str) -> Output | None:
    """The row that has this name, as `q:elbow`, `gyro.x` or `hand.position.x`; None where nothing has."""
    whole, dot, _ = name.rpartition(".")
    frame = whole.rpartition(".")[0] if whole.endswith((".position", ".rotation")) else ""
    candidates = [
        name,
        *([whole, f"frame:{whole}"] if dot else []),
        *([frame, f"frame:{frame}"] if frame else []),
    ]
    for candidate in candidates:
        try:
            rows = _rows(model, candidate, function)
        except ArgumentError:
            continue
        for row in rows:
            if row.name == name or (len(rows) == 1 and candidate == name):
                return row
    return None


def expressions(
    model: Model, rows: Sequence[Output], q: ca.SX, v: ca.SX, p: ca.SX, *, about: Array
) -> list[ca.SX]:
    """What the rows measure at a state, as expressions; accelerations are none of them.

    Displacements of joints whose coordinates do not add, and rotations, are those from the configuration `about` on.
    """
    moved = model.space.difference(ca.SX(about), q)
    curved = model.space.curved
    plain = {
        k: q[o.q][i]
        for o in model.space
        if o.type.is_vector_space
        for i, k in enumerate(range(o.v.start, o.v.stop))
    }
    frames = list(dict.fromkeys(row.frame for row in rows if row.kind == "frame"))
    vectors: dict[tuple[str, str], ca.SX] = {}
    if frames:
        vectors, rotations = _vectors(model, frames, q, v, ca.SX.zeros(model.nv), p)
        for name in frames:
            R = ca.DM(model.frame_pose(about, name).rotation)
            vectors[name, "rotation"] = so3.log(ca.densify(R.T @ rotations[name]))
    found = []
    for row in rows:
        if row.kind == "frame":
            found.append(vectors[row.frame, row.quantity][row.index])
        elif row.kind == "v":
            found.append(v[row.index])
        else:
            found.append(moved[row.index] if curved[row.index] else plain[row.index])
    return found


def _locate(model: Model, name: str, records: list[Any], base: Any, p: ca.SX) -> tuple[Any, Pose]:
    """The record of the node that carries a frame, and the frame's pose on it."""
    node, placement = model.compute.carrier(name)
    values = {key: p[k] for k, (key, _) in enumerate(model.parameters)}
    return (records[node] if node >= 0 else base), placement.symbolic_pose(values)
