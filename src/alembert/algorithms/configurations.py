"""Configurations: moving along tangents and back, as methods of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import manifold
from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel
    from alembert.model import Model

Array = np.ndarray


class Configurations:
    """Mixed into `Model`."""

    def integrate(self: Model, q: Any, dv: Any) -> Array:
        """The configuration reached from q by the tangent displacement dv."""
        return self._checked("integrate", self._manifold_kernel("integrate"), (q, dv))

    def difference(self: Model, q0: Any, q1: Any) -> Array:
        """The tangent displacement from q0 to q1: integrate(q0, difference(q0, q1)) = q1."""
        return self._checked("difference", self._manifold_kernel("difference"), (q0, q1))

    def rate(self: Model, q: Any, v: Any) -> Array:
        """dq/dt, (..., nq)."""
        return self._checked("rate", self._manifold_kernel("rate"), (q, v))

    def check_configuration(self: Model, q: Any) -> None:
        """Raise `ArgumentError` naming the joint when q is no configuration (shape, NaN, quaternion length)."""
        x = np.asarray(q, dtype=float)
        if x.ndim == 0 or x.shape[-1] != self.nq:
            raise ArgumentError(f"check_configuration: q has shape {x.shape}, expected (..., {self.nq})")
        for joint, s in zip(self.joints, self._q_slices, strict=True):
            if not np.all(np.isfinite(x[..., s])):
                raise ArgumentError(f"check_configuration: joint {joint.name!r}: q is not finite")
            problem = joint.type.problem(x[..., s])
            if problem:
                raise ArgumentError(f"check_configuration: joint {joint.name!r}: {problem}")

    def _manifold_kernel(self: Model, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = manifold.kernel(self, name)
        return self._kernels[name]
