"""Force elements outside of a run: the efforts they put on the joints, for dynamics and for problems of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from alembert.model import Model
from alembert.simulate.acting import Acting

Array = np.ndarray


class Slopes(NamedTuple):
    """Derivatives of efforts with respect to q (tangent) and v, (..., nv, nv)."""

    dq: Array
    dv: Array


class Forces:
    """`SpringDamper`, `Bushing`, `Drag`, `SoftStop`, `ForceElement` on a model, all together.

    `efforts` are added to those of the drives: forward_dynamics(q, v, tau + forces.efforts(q, v)). Batches and
    `parameters` are as in the model's own algorithms.
    """

    def __init__(self, model: Model, elements: Any) -> None:
        _ = model.symbolic  # makes the model's algorithms known
        self.model = model
        self._acting = Acting(model, elements if isinstance(elements, list | tuple) else (elements,), None)

    def efforts(
        self, q: Any, v: Any = None, *, t: float = 0.0, parameters: Mapping[str, Any] | None = None
    ) -> Array:
        """(..., nv)."""
        kept, other, _, _ = self._acting.kernel("numbers")(*self._given(q, v, t, parameters))
        return kept + other

    def potential(self, q: Any, *, parameters: Mapping[str, Any] | None = None) -> Array:
        """(...,): the energy of springs [J]."""
        return self._acting.kernel("numbers")(*self._given(q, None, 0.0, parameters))[3][..., 0]

    def derivatives(
        self, q: Any, v: Any = None, *, t: float = 0.0, parameters: Mapping[str, Any] | None = None
    ) -> Slopes:
        """Of the efforts; with D those of forward dynamics, accelerations have D.dq + D.dtau @ dq and D.dv + D.dtau @ dv."""
        return Slopes(*self._acting.kernel("slopes")(*self._given(q, v, t, parameters)))

    @property
    def function(self) -> ca.Function:
        """(t, q, v, parameters) to the efforts, on `SX`; `parameters` as in `model.parameters`."""
        return self._acting.total

    def _given(self, q: Any, v: Any, t: float, parameters: Mapping[str, Any] | None) -> list[Array]:
        model = self.model
        q = model.compute.numbers("Forces", "q", q, model.nq, f"; the model has {model.nq} coordinates")
        v = np.zeros(model.nv) if v is None else v
        v = model.compute.numbers(
            "Forces", "v", v, model.nv, f"; the model has {model.nv} degrees of freedom"
        )
        found = [np.array([float(t)]), q, v]
        return [*found, model.compute.parameter_array("Forces", parameters)] if model.parameters else found
