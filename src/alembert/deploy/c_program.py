"""A model as a C program: derivatives, outputs, their tangents and an integrator step; no Python, no allocation, no globals.

    derivatives   t, q, v, u, p -> q', v'
    outputs       t, q, v, u, p -> y
    tangent       t, q, v, u, p and directions of q, v, u, p -> directions of q', v', y
    step          t, h, u, p; q and v in place

u are efforts of the joints, or what a controller takes, and p the parameters of the model. The step is one of
`alembert.simulate.schemes`, cut where it asks for accelerations, so that the dynamics are there once and are called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import names, unknown
from alembert.engine.c_export import c_function
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.simulate.elements import Elements
from alembert.simulate.schemes import SCHEMES, Now, StatePoint
from alembert.spatial import quaternion

INTEGRATORS = tuple(name for name, scheme in SCHEMES.items() if not scheme.past)
Call = tuple[str, tuple[str, ...], tuple[str, ...]]
"""the name of a function, its arguments and results"""
PLACES = ("x", "y", "z", "qw", "qx", "qy", "qz")


@dataclass(frozen=True)
class Signal:
    """A number that goes in or comes out: its name, unit and value at the start."""

    name: str
    unit: str
    start: float = 0.0


@dataclass(frozen=True, eq=False)
class CProgram:
    """The text of a C file, and the signals of its functions, all called `PREFIX_...`."""

    model: Model
    prefix: str
    text: str
    integrator: str
    states: tuple[Signal, ...]
    speeds: tuple[Signal, ...]
    inputs: tuple[Signal, ...]
    parameters: tuple[Signal, ...]
    outputs: tuple[Signal, ...]
    operations: Mapping[str, int] = field(default_factory=dict)
    """of each function"""
    functions: Mapping[str, ca.Function] = field(default_factory=dict)
    prototypes: tuple[str, ...] = ()
    """of the functions that others may call"""
    stages: Mapping[str, ca.Function] = field(default_factory=dict)
    """what the step does between two calls of the derivatives"""
    calls: tuple[Call, ...] = ()
    """all calls of the step in order"""
    buffers: Mapping[str, int] = field(default_factory=dict)
    """the arrays of the step, with their sizes"""

    @property
    def sizes(self) -> dict[str, int]:
        parts = {
            "q": self.states,
            "v": self.speeds,
            "u": self.inputs,
            "p": self.parameters,
            "y": self.outputs,
        }
        return {name: len(part) for name, part in parts.items()}


def c_program(
    function: str,
    model: Model,
    prefix: str,
    *,
    integrator: str = "rk4",
    controller: ca.Function | None = None,
    inputs: Sequence[str] | None = None,
    forces: Any = (),
    frames: Sequence[str] = (),
    q0: Any = None,
    v0: Any = None,
    tangents: bool = True,
    more: Callable[[ca.SX, ca.SX, ca.SX], ca.SX] | None = None,
) -> CProgram:
    """See the module. `function` is what messages call the caller; `more(q, u, p)` gives further efforts."""
    _check(function, model, integrator)
    _identifier(function, prefix)
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    p = ca.SX.sym("p", len(model.parameters))
    u, signals, effort = _driven(function, model, controller, inputs, t, q, v)
    if forces:
        effort = effort + Elements(model, tuple(forces), None).total(t, q, v, p)
    if more is not None:
        effort = effort + more(q, u, p)
    given = p if model.parameters else None
    a = model.symbolic.forward_dynamics(q, v, effort, parameters=given)
    rate = model.space.rate(q, v)
    y, outputs = _outputs(function, model, frames, q, v, given)
    arguments = {"t": t, "q": q, "v": v, "u": u, "p": p}
    made: dict[str, ca.Function] = {
        "derivatives": _function("derivatives", arguments, {"rate": rate, "a": a}),
        "outputs": _function("outputs", arguments, {"y": y}),
    }
    if tangents:
        made["tangent"] = _tangent(arguments, {"d_rate": rate, "d_a": a, "d_y": y})
    stages, calls, buffers = _step(model, integrator, t, h, q, v)
    prototypes: list[str] = []
    operations: dict[str, int] = {}
    text = ["#include <math.h>\n#include <string.h>\n"]
    for name, f in {**made, **stages}.items():
        code, count = c_function(f, f"{prefix}_{name}", static=name not in made)
        text.append(code)
        operations[name] = count
        if name in made:
            prototypes.append(code.split("\n", 1)[0])
    operations["step"] = sum(operations[name] for name, _, _ in calls)
    lines = _step_text(model, prefix, integrator, calls, buffers)
    text.append("\n".join(lines))
    states = _start(function, "q0", q0, model.neutral(), model.space.check)
    speeds = _start(function, "v0", v0, np.zeros(model.nv), None)
    return CProgram(
        model,
        prefix,
        "\n".join(text),
        integrator,
        tuple(
            Signal(name, unit, x)
            for name, unit, x in zip(
                model.coordinate_names, model.space.coordinate_units, states, strict=True
            )
        ),
        tuple(
            Signal(name, unit, x)
            for name, unit, x in zip(model.speed_names, model.space.speed_units, speeds, strict=True)
        ),
        signals,
        tuple(Signal(name, "", value) for name, value in model.parameter_values.items()),
        outputs,
        operations,
        made,
        (*prototypes, lines[1]),
        stages,
        tuple(calls),
        buffers,
    )


def _check(function: str, model: Model, integrator: str) -> None:
    if not isinstance(model, Model):
        raise ArgumentError(f"{function}: model is {model!r}, expected a Model")
    if integrator not in INTEGRATORS:
        raise ArgumentError(unknown(f"{function}: no integrator", integrator, INTEGRATORS))
    if model.is_constrained:
        held = model.constrained_compute.rows.names[0]
        raise UnsupportedError(
            f"{function}: the model {model.name!r} has loops or couplings ({held!r}), whose integration is "
            "not exported yet; model.export_c writes their accelerations"
        )
    if model.nv == 0:
        raise ArgumentError(f"{function}: nothing moves in the model {model.name!r}")


def _identifier(function: str, prefix: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w*", prefix, flags=re.ASCII):
        raise ArgumentError(f"{function}: {prefix!r} is not a name in C; use letters, digits and underscores")


def effort_unit(speed: str) -> str:
    """What times a speed is a power."""
    return {"rad/s": "N.m", "m/s": "N"}.get(speed, "")


def _driven(
    function: str,
    model: Model,
    controller: ca.Function | None,
    inputs: Sequence[str] | None,
    t: ca.SX,
    q: ca.SX,
    v: ca.SX,
) -> tuple[ca.SX, tuple[Signal, ...], ca.SX]:
    """The inputs, their names, and the efforts that they make."""
    if controller is not None:
        sizes = [1, model.nq, model.nv]
        if not isinstance(controller, ca.Function):
            raise UnsupportedError(
                f"{function}: the controller is {controller!r}, which cannot be compiled; give a casadi.Function of t, q, v "
                "(and inputs)"
            )
        found = [controller.numel_in(k) for k in range(controller.n_in())]
        if (
            found[:3] != sizes
            or len(found) > 4
            or controller.n_out() != 1
            or controller.numel_out(0) != model.nv
        ):
            raise ArgumentError(
                f"{function}: the controller takes {found} numbers, expected {sizes} (t, q, v) and perhaps inputs; "
                f"and gives {model.nv} efforts"
            )
        count = found[3] if len(found) == 4 else 0
        labels = list(names(function, "inputs", inputs or [f"input{k + 1}" for k in range(count)]))
        if len(labels) != count or len(set(labels)) != count:
            raise ArgumentError(f"{function}: the controller takes {count} inputs, got the names {labels}")
        u = ca.SX.sym("u", count)
        effort = ca.SX(controller(t, q, v, *([u] if count else [])))
        return u, tuple(Signal(name, "") for name in labels), effort
    places = model.space.speed_places
    allowed = set(model.space.joint_speed_names)
    chosen: list[int] = []
    for name in names(function, "inputs", list(model.space.joint_speed_names) if inputs is None else inputs):
        if name not in places:
            raise ArgumentError(unknown(f"{function}: inputs: no joint", name, places))
        chosen += range(places[name].start, places[name].stop)
    chosen = [k for k in chosen if model.speed_names[k] in allowed]
    u = ca.SX.sym("u", len(chosen))
    effort = ca.SX(model.nv, 1)
    for k, column in enumerate(chosen):
        effort[column] = u[k]
    units = model.space.speed_units
    signals = tuple(Signal(f"effort.{model.speed_names[k]}", effort_unit(units[k])) for k in chosen)
    return u, signals, ca.densify(effort)


def _outputs(
    function: str, model: Model, frames: Sequence[str], q: ca.SX, v: ca.SX, p: Any
) -> tuple[ca.SX, tuple[Signal, ...]]:
    """Positions and quaternions of frames."""
    rows, signals = [ca.SX(0, 1)], []
    for frame in names(function, "frames", frames):
        model.compute.locate(function, frame, None)
        X = model.symbolic.frame_pose(q, frame, parameters=p)
        rows += [X.translation, quaternion.from_matrix(X.rotation)]
        signals += [Signal(f"frame.{frame}.{x}", "m" if k < 3 else "") for k, x in enumerate(PLACES)]
    return ca.densify(ca.vertcat(*rows)), tuple(signals)


def _function(name: str, arguments: Mapping[str, ca.SX], results: Mapping[str, ca.SX]) -> ca.Function:
    outputs = [ca.densify(ca.SX(x)) for x in results.values()]
    return ca.Function(name, list(arguments.values()), outputs, list(arguments), list(results))


def _tangent(arguments: Mapping[str, ca.SX], results: Mapping[str, ca.SX]) -> ca.Function:
    moved = [name for name in arguments if name != "t"]
    seeds = {f"d_{name}": ca.SX.sym(f"d_{name}", arguments[name].numel()) for name in moved}
    at, along = ca.vertcat(*(arguments[name] for name in moved)), ca.vertcat(*seeds.values())
    found = {name: ca.jtimes(x, at, along) if x.numel() else x for name, x in results.items()}
    return _function("tangent", {**arguments, **seeds}, found)


def _step(
    model: Model, integrator: str, t: ca.SX, h: ca.SX, q: ca.SX, v: ca.SX
) -> tuple[dict[str, ca.Function], list[Call], dict[str, int]]:
    """The functions between two calls of the derivatives, all calls in order, and the arrays between them."""
    known: dict[str, ca.SX] = {"t": t, "h": h, "q": q, "v": v}
    stages: dict[str, ca.Function] = {}
    buffers: dict[str, int] = {}
    calls: list[Call] = []

    def segment(label: str, values: Mapping[str, Any]) -> None:
        everything = ca.vertcat(*(ca.vec(ca.SX(x)) for x in values.values()))
        used = {name: x for name, x in known.items() if ca.depends_on(everything, x)}
        stages[label] = _function(label, used, {f"{name}_out": ca.SX(x) for name, x in values.items()})
        calls.append((label, tuple(used), tuple(values)))
        for name, x in values.items():
            buffers[name] = ca.SX(x).numel()
            known[name] = ca.SX.sym(name, buffers[name])

    def at(time: Any, configuration: Any, speeds: Any) -> StatePoint:
        k = sum(name.startswith("a_") for name in known)
        segment(f"stage{k}", {f"t_{k}": time, f"q_{k}": configuration, f"v_{k}": speeds})
        buffers[f"a_{k}"], buffers[f"rate_{k}"] = model.nv, model.nq
        known[f"a_{k}"] = ca.SX.sym(f"a_{k}", model.nv)
        calls.append(("derivatives", (f"t_{k}", f"q_{k}", f"v_{k}", "u", "p"), (f"rate_{k}", f"a_{k}")))
        return StatePoint(*(known[f"{x}_{k}"] for x in "tqva"))

    q1, v1, _ = SCHEMES[integrator].step(Now(t, q, v, ()), h, at, model.space)
    segment("finish", {"q_next": q1, "v_next": v1})
    return stages, calls, buffers


def _step_text(
    model: Model, prefix: str, integrator: str, calls: Sequence[Call], buffers: Mapping[str, int]
) -> list[str]:
    signature = "const double *t, const double *h, const double *u, const double *p, double *q, double *v"
    return [
        f"/* One step of {integrator}: q and v are advanced by h. */",
        f"void {prefix}_step({signature})",
        "{",
        *(f"  double {name}[{size}];" for name, size in buffers.items()),
        *(f"  {prefix}_{name}({', '.join([*given, *found])});" for name, given, found in calls),
        f"  memcpy(q, q_next, {model.nq} * sizeof(double));",
        f"  memcpy(v, v_next, {model.nv} * sizeof(double));",
        "}",
        "",
    ]


def _start(function: str, what: str, given: Any, default: np.ndarray, check: Any) -> list[float]:
    x = default if given is None else np.asarray(given, dtype=float)
    if x.shape != default.shape or not np.all(np.isfinite(x)):
        raise ArgumentError(
            f"{function}: {what} has shape {x.shape}, expected {default.shape} finite numbers"
        )
    if check is not None:
        check(function, x)
    return [float(value) for value in x]
