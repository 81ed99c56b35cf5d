"""Moving on the configuration manifold: integrate, difference and rate, joint by joint."""

from __future__ import annotations

import casadi as ca

from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.model import Model

_SIZES = {"integrate": ("q", "v", "q"), "difference": ("q", "q", "v"), "rate": ("q", "v", "q")}
NAMES = {"integrate": ("q", "dv"), "difference": ("q0", "q1"), "rate": ("q", "v")}


def expression(model: Model, name: str, x: ca.SX, y: ca.SX) -> ca.SX:
    _, second, _ = _SIZES[name]
    parts = []
    for joint, sq, sv in zip(model.joints, model._q_slices, model._v_slices, strict=True):
        if joint.type.nv:
            parts.append(getattr(joint.type, name)(x[sq], y[sq if second == "q" else sv]))
    return ca.densify(ca.vertcat(ca.SX(0, 1), *parts))


def function(model: Model, name: str) -> ca.Function:
    x = ca.SX.sym(NAMES[name][0], model.nq)
    y = ca.SX.sym(NAMES[name][1], model.nq if _SIZES[name][1] == "q" else model.nv)
    return ca.Function(name, [x, y], [expression(model, name, x, y)])


def kernel(model: Model, name: str) -> Kernel:
    sizes = {"q": model.nq, "v": model.nv}
    first, second, result = _SIZES[name]
    arguments = [
        Argument(label, (sizes[kind],), f"the model has {model.nq} coordinates and {model.nv} speeds")
        for label, kind in zip(NAMES[name], (first, second), strict=True)
    ]
    return Kernel(
        name,
        arguments,
        [Argument(name, (sizes[result],))],
        key=f"{model.fingerprint}:{name}",
        build=lambda: FunctionSource(function(model, name)),
    )
