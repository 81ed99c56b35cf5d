"""Live pages: one HTML file with a model's dynamics as WebAssembly, which simulates in the browser, from disk."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import names, numbers
from alembert.deploy.acting import Given, Signal
from alembert.deploy.c_program import CProgram, c_program
from alembert.deploy.wasm import WasmModule
from alembert.errors import ArgumentError
from alembert.expression import Expression
from alembert.model import Inertia, Model
from alembert.view.page import Still, write_page

COMMANDS = (Signal("gravity", "×", 1.0), Signal("damping", ""))
DAMPING = 2.0
"""the largest of the slider, as a fraction of what the mass matrix at the start is worth in a second"""


def live_page(
    model: Model,
    path: str | os.PathLike[str],
    *,
    q0: Any = None,
    v0: Any = None,
    step: float = 1e-3,
    integrator: str = "rk4",
    masses: Sequence[str] = (),
    controller: Any = None,
    inputs: Mapping[str, float] | None = None,
    drives: Mapping[str, Any] | None = None,
    sensors: Any = (),
    forces: Any = (),
    title: str = "",
    theme: str = "auto",
    autoplay: bool = True,
) -> Path:
    """Write a page that simulates the model in the browser: play, move joints, change gravity, damping, masses, gains.

    The dynamics are WebAssembly in the page, stepped by `integrator` every `step` seconds; no compiler is needed.
    `controller`, `drives`, `sensors` and `forces` are as in `al.deploy.fmu`. Sliders are there for gravity (1 is the model's
    own), for damping of all joints, for every parameter of the model, for the mass of each body in `masses` (its moments of
    inertia go with it), and for what a controller takes: set points that are numbers, and what a `casadi.Function` has as
    its fourth argument, such as gains. `inputs` names these, with their values at the start. The file opens from disk and
    asks nothing of a network.
    """
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step <= 0.1:
        raise ArgumentError(f"live_page: step is {step!r}, expected a time in seconds, at most 0.1")
    model, labels = _with_masses(model, masses)
    begin = _at_start(inputs)
    if begin and controller is None:
        raise ArgumentError(
            f"live_page: inputs are {list(begin)}, and there is no controller that takes them"
        )
    program = c_program(
        "live_page",
        model,
        "live",
        Given(controller, tuple(begin) if begin or controller is None else None, drives, sensors, forces),
        integrator=integrator,
        q0=q0,
        v0=v0,
        tangents=False,
        more=_hands,
        commands=COMMANDS,
    )
    program = replace(
        program,
        inputs=(
            *COMMANDS,
            *(replace(x, start=begin.get(x.name, x.start)) for x in program.inputs[len(COMMANDS) :]),
        ),
        parameters=tuple(labels.get(x.name, x) for x in program.parameters),
    )
    every = round(program.tick / step)
    if program.tick and (every < 1 or abs(every * step - program.tick) > 1e-9 * program.tick):
        raise ArgumentError(
            f"live_page: step is {step:g} s, expected a part of {program.tick:g} s, the longest time of which all periods, "
            "delays and offsets are multiples"
        )
    module = web_assembly(program)
    live = {
        "wasm": base64.b64encode(module.binary()).decode(),
        "places": module.places,
        "step": float(step),
        "every": every,
        **{name: program.starts[name] for name in "qvxd"},
        "sliders": _sliders(program),
        "joints": [
            [o.v.start + k, o.q.start + k]
            for o in model.space
            if o.type.is_vector_space
            for k in range(o.type.nv)
        ],
    }
    still = Still(model, np.array(live["q"]), title, live=live)
    return write_page(path, [still], title=title, theme=theme, autoplay=autoplay)


def _with_masses(model: Model, masses: Sequence[str]) -> tuple[Model, dict[str, Signal]]:
    """A copy in which the masses of these bodies are parameters; by parameter, what its slider is called."""
    labels: dict[str, Signal] = {}
    for k, name in enumerate(names("live_page", "masses", masses)):
        given, key = model.body(name), f"mass_of_body_{k + 1}"
        m = given.inertia.mass
        if given.flexible is not None:
            raise ArgumentError(f"live_page: masses has {name!r}, which is flexible, expected rigid bodies")
        if isinstance(m, Expression) or any(isinstance(x, Expression) for x in given.inertia.tensor):
            raise ArgumentError(
                f"live_page: masses has {name!r}, whose inertia is a formula of parameters, which have sliders already"
            )
        if not m > 0:
            raise ArgumentError(f"live_page: masses has {name!r}, which has a mass of {m:g} kg")
        mass = Expression(key)
        tensor = tuple(mass * (float(x) / m) for x in given.inertia.tensor)  # type: ignore[arg-type]
        model = model.replace(parameters=(*model.parameters, (key, m))).replace_body(
            name, inertia=Inertia(mass, given.inertia.com, tensor)
        )
        labels[key] = Signal(f"mass of {name}", "kg", float(m))
    return model, labels


def _at_start(inputs: Mapping[str, float] | None) -> dict[str, float]:
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"live_page: inputs is {inputs!r}, expected names with their values at the start")
    found = {}
    for name, value in (inputs or {}).items():
        if numbers("live_page", f"inputs[{name!r}]", value).ndim:
            raise ArgumentError(f"live_page: inputs[{name!r}] is {value!r}, expected a number")
        found[name] = float(value)
    return found


def _hands(model: Model, q: ca.SX, v: ca.SX, w: ca.SX, p: ca.SX) -> ca.SX:
    """What takes away gravity but for its factor, and the damping."""
    weight = model.symbolic.gravity_forces(q, parameters=p if model.parameters else None)
    return (1 - w[0]) * weight - w[1] * v


def _sliders(program: CProgram) -> list[dict[str, Any]]:
    model = program.model
    q = np.array([s.start for s in program.states])
    scale = float(np.mean(np.diag(_mass_matrix(model, q))))
    bounds = {"gravity": (-1.0, 3.0), "damping": (0.0, DAMPING * scale)}
    found = []
    for array, signals in (("u", program.inputs), ("p", program.parameters)):
        for k, s in enumerate(signals):
            ends = (0.2 * s.start, 3.0 * s.start) if s.start else (-1.0, 1.0)
            if array == "u" and s.start:
                ends = (-2.0 * abs(s.start), 2.0 * abs(s.start))
            low, high = bounds[s.name] if array == "u" and k < len(COMMANDS) else sorted(ends)
            about = {"name": s.name, "unit": s.unit, "low": low, "high": high, "value": s.start}
            found.append({**about, "array": array, "index": k})
    return found


def _mass_matrix(model: Model, q: np.ndarray) -> np.ndarray:
    """At one configuration, without compiling it."""
    x = ca.SX.sym("q", model.nq)
    return np.asarray(ca.Function("M", [x], [model.symbolic.mass_matrix(x)])(q))


def web_assembly(program: CProgram) -> WasmModule:
    """`step` advances q, v and x by h; `poses` gives poses: 12 numbers per body, rotation by rows, then origin.

    `instant` is there where sampled laws are, `settle` where loops are.
    """
    model, parts = program.model, program.parts
    module = WasmModule()
    module.place(t=1, h=1, poses=12 * len(model.bodies))
    module.place(**{name: size for name, size in program.sizes.items() if name != "y"})
    for name, function in parts.functions.items():
        if name not in ("outputs", "tangent"):
            module.add(name, function)
    for name in parts.routines:
        module.routine(parts, name)
    module.add("bodies", _poses(model))
    for name in ("step", "instant", "settle"):
        if name in parts.routines:
            module.export(f"{name}_now", name, parts.routines[name].arguments)
    module.export("poses_now", "bodies", ("q", "p", "poses"))
    return module


def _poses(model: Model) -> ca.Function:
    """Of the parameters, those that are its own; set points do not move bodies."""
    q, p = ca.SX.sym("q", model.nq), ca.SX.sym("p", len(model.parameters))
    rows: list[ca.SX] = []
    for body in model.bodies:
        X = model.symbolic.frame_pose(q, body.name, parameters=p if model.parameters else None)
        rows += [ca.vec(ca.SX(X.rotation).T), ca.SX(X.translation)]
    return ca.Function("poses", [q, p], [ca.densify(ca.vertcat(*rows))])
