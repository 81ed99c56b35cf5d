"""Moving on the configuration manifold: integrate, difference and rate, joint by joint."""

from __future__ import annotations

import casadi as ca

from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.model import Model

_SIZES = {"integrate": ("q", "v", "q"), "difference": ("q", "q", "v"), "rate": ("q", "v", "q")}
_NAMES = {"integrate": ("q", "dv"), "difference": ("q0", "q1"), "rate": ("q", "v")}


def function(model: Model, name: str) -> ca.Function:
    _, second, _ = _SIZES[name]
    x = ca.SX.sym(_NAMES[name][0], model.nq)
    y = ca.SX.sym(_NAMES[name][1], model.nq if second == "q" else model.nv)
    parts = []
    for joint, sq, sv in zip(model.joints, model._q_slices, model._v_slices, strict=True):
        if joint.type.nv:
            parts.append(getattr(joint.type, name)(x[sq], y[sq if second == "q" else sv]))
    return ca.Function(name, [x, y], [ca.densify(ca.vertcat(ca.SX(0, 1), *parts))])


def kernel(model: Model, name: str) -> Kernel:
    sizes = {"q": model.nq, "v": model.nv}
    first, second, result = _SIZES[name]
    arguments = [
        Argument(label, (sizes[kind],), f"the model has {model.nq} coordinates and {model.nv} speeds")
        for label, kind in zip(_NAMES[name], (first, second), strict=True)
    ]
    return Kernel(
        name,
        arguments,
        [Argument(name, (sizes[result],))],
        key=f"{model.fingerprint}:{name}",
        build=lambda: FunctionSource(function(model, name)),
    )
