"""Live pages: one HTML file with a model's dynamics as WebAssembly, which simulates in the browser, from disk."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.deploy.c_program import CProgram, c_program
from alembert.deploy.wasm import WasmModule
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.view.page import Still, write_page

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
    controller: ca.Function | None = None,
    forces: Any = (),
    title: str = "",
    theme: str = "auto",
    autoplay: bool = True,
) -> Path:
    """Write a page that simulates the model in the browser: play, move joints, change gravity, damping and parameters.

    The dynamics are WebAssembly in the page, stepped by `integrator` every `step` seconds; no compiler is needed.
    `controller` is a `casadi.Function` of t, q and v, `forces` as in `al.simulate`. Sliders are there for gravity (1 is
    the model's own), for damping of all joints and for every parameter of the model. The file opens from disk and asks
    nothing of a network.
    """
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step <= 0.1:
        raise ArgumentError(f"live_page: step is {step!r}, expected a time in seconds, at most 0.1")
    law = _driven(model, controller)
    program = c_program(
        "live_page",
        model,
        "live",
        integrator=integrator,
        controller=law,
        inputs=["gravity", "damping"],
        forces=forces,
        q0=q0,
        v0=v0,
        tangents=False,
        more=lambda q, u, p: _lightened(model, q, u, p),
    )
    module = web_assembly(program)
    binary = module.binary()
    live = {
        "wasm": base64.b64encode(binary).decode(),
        "places": module.places,
        "step": float(step),
        "q": [s.start for s in program.states],
        "v": [s.start for s in program.speeds],
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


def _driven(model: Model, controller: ca.Function | None) -> ca.Function:
    """The controller and damping, as efforts; the second input is the damping."""
    t, q, v, w = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("w", 2)
    own = ca.SX.zeros(model.nv) if controller is None else ca.SX(controller(t, q, v))
    return ca.Function("live", [t, q, v, w], [ca.densify(own - w[1] * v)])


def _lightened(model: Model, q: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
    """What takes away gravity but for its factor, with the parameters as they are."""
    return (1 - u[0]) * model.symbolic.gravity_forces(q, parameters=p if model.parameters else None)


def _sliders(program: CProgram) -> list[dict[str, Any]]:
    model = program.model
    q = np.array([s.start for s in program.states])
    scale = float(np.mean(np.diag(_mass_matrix(model, q))))
    found: list[dict[str, Any]] = [
        {"name": "gravity", "unit": "×", "low": -1.0, "high": 3.0, "value": 1.0, "array": "u", "index": 0},
        {
            "name": "damping",
            "unit": "",
            "low": 0.0,
            "high": DAMPING * scale,
            "value": 0.0,
            "array": "u",
            "index": 1,
        },
    ]
    for k, signal in enumerate(program.parameters):
        ends = sorted((0.2 * signal.start, 3.0 * signal.start)) if signal.start else [-1.0, 1.0]
        found.append(
            {
                "name": signal.name,
                "unit": "",
                "low": ends[0],
                "high": ends[1],
                "value": signal.start,
                "array": "p",
                "index": k,
            }
        )
    return found


def _mass_matrix(model: Model, q: np.ndarray) -> np.ndarray:
    """At one configuration, without compiling it."""
    x = ca.SX.sym("q", model.nq)
    return np.asarray(ca.Function("M", [x], [model.symbolic.mass_matrix(x)])(q))


def web_assembly(program: CProgram) -> WasmModule:
    """`step` advances q and v by h; `poses` gives x: 12 numbers per body, rotation by rows, then origin."""
    model, sizes = program.model, program.sizes
    module = WasmModule()
    module.place(t=1, h=1, q=sizes["q"], v=sizes["v"], u=sizes["u"], p=sizes["p"], x=12 * len(model.bodies))
    module.place(t_at=1, q_at=sizes["q"], v_at=sizes["v"], rate_at=sizes["q"], a_at=sizes["v"])
    module.place(**program.buffers)
    at = ("t_at", "q_at", "v_at", "u", "p")
    module.add("derivatives", program.functions["derivatives"], at, ("rate_at", "a_at"))
    steps: list[str | tuple[str, str]] = []
    for name, arguments, results in program.calls:
        if name == "derivatives":
            steps += list(zip(arguments[:3], at[:3], strict=True))
            steps += [name, ("a_at", results[1])]
        else:
            module.add(name, program.stages[name], arguments, results)
            steps.append(name)
    module.sequence("step", [*steps, ("q_next", "q"), ("v_next", "v")])
    module.add("poses", _poses(model), ("q", "p"), ("x",))
    return module


def _poses(model: Model) -> ca.Function:
    q, p = ca.SX.sym("q", model.nq), ca.SX.sym("p", len(model.parameters))
    rows: list[ca.SX] = []
    for body in model.bodies:
        X = model.symbolic.frame_pose(q, body.name, parameters=p if model.parameters else None)
        rows += [ca.vec(ca.SX(X.rotation).T), ca.SX(X.translation)]
    return ca.Function("poses", [q, p], [ca.densify(ca.vertcat(*rows))])
