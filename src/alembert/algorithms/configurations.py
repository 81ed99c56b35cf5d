"""Configurations: moving along tangents and back, of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import manifold
from alembert.algorithms.evaluation import Evaluation
from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel

Array = np.ndarray


class Configurations(Evaluation):
    """Moves on the manifold of configurations."""

    def integrate(self, q: Any, dv: Any) -> Array:
        return self.checked("integrate", self._manifold_kernel("integrate"), (q, dv))

    def difference(self, q0: Any, q1: Any) -> Array:
        return self.checked("difference", self._manifold_kernel("difference"), (q0, q1))

    def rate(self, q: Any, v: Any) -> Array:
        return self.checked("rate", self._manifold_kernel("rate"), (q, v))

    def check_configuration(self, q: Any) -> None:
        x = np.asarray(q, dtype=float)
        if x.ndim == 0 or x.shape[-1] != self.model.nq:
            raise ArgumentError(
                f"check_configuration: q has shape {x.shape}, expected (..., {self.model.nq})"
            )
        for joint, s in zip(self.model.joints, self.model._q_slices, strict=True):
            if not np.all(np.isfinite(x[..., s])):
                raise ArgumentError(f"check_configuration: joint {joint.name!r}: q is not finite")
            problem = joint.type.problem(x[..., s])
            if problem:
                raise ArgumentError(f"check_configuration: joint {joint.name!r}: {problem}")

    def _manifold_kernel(self, name: str) -> Kernel:
        if name not in self.kernels:
            self.kernels[name] = manifold.kernel(self.model, name)
        return self.kernels[name]
