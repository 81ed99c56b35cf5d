"""Configurations: moving along tangents and back, compiled for batches."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from alembert.algorithms.evaluation import Evaluation
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.model import Model

Array = np.ndarray
_SIZES = {"integrate": ("q", "v", "q"), "difference": ("q", "q", "v"), "rate": ("q", "v", "q")}
NAMES = {"integrate": ("q", "dv"), "difference": ("q0", "q1"), "rate": ("q", "v")}


def function(model: Model, name: str) -> ca.Function:
    sizes = {"q": model.nq, "v": model.nv}
    x, y = (ca.SX.sym(label, sizes[kind]) for label, kind in zip(NAMES[name], _SIZES[name], strict=False))
    return ca.Function(name, [x, y], [getattr(model.space, name)(x, y)])


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


class Configurations(Evaluation):
    """Moves on the manifold of configurations, `model.space`."""

    def integrate(self, q: Any, dv: Any) -> Array:
        return self._moved("integrate", q, dv)

    def difference(self, q0: Any, q1: Any) -> Array:
        return self._moved("difference", q0, q1)

    def rate(self, q: Any, v: Any) -> Array:
        return self._moved("rate", q, v)

    def check_configuration(self, q: Any) -> None:
        self.model.space.check("check_configuration", q)

    def _moved(self, name: str, x: Any, y: Any) -> Array:
        if name not in self.kernels:
            self.kernels[name] = kernel(self.model, name)
        return self.checked(name, self.kernels[name], (x, y))
