"""Energy and power, of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms.arguments import Parameters, Wrenches, common, mapping
from alembert.algorithms.kinematics import Kinematics
from alembert.errors import NumericalError

if TYPE_CHECKING:
    pass


class Energy(Kinematics):
    """Kinetic and potential energy, and power."""

    def kinetic_energy(self, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self.evaluate("kinetic_energy", (q, v), parameters=parameters)[..., 0]

    def potential_energy(self, q: Any, *, parameters: Parameters = None) -> Any:
        return self.evaluate("potential_energy", (q,), parameters=parameters)[..., 0]

    def energy(self, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self.kinetic_energy(q, v, parameters=parameters) + self.potential_energy(
            q, parameters=parameters
        )

    def power(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> Any:
        tau, v = (self.numbers("power", name, x, self.model.nv) for name, x in (("tau", tau), ("v", v)))
        parts = {"tau": (tau, v)}
        for frame, wrench in mapping("power", "wrenches", wrenches).items():
            F = self.numbers("power", f"wrench on {frame!r}", wrench, 6)
            parts[f"wrench on {frame!r}"] = F, self.frame_velocity(q, v, frame, parameters=parameters)
        common("power", [("v", v.shape[:-1]), *((what, F.shape[:-1]) for what, (F, _) in parts.items())])
        total = sum(np.sum(F * V, axis=-1) for F, V in parts.values())
        if not np.all(np.isfinite(total)):
            raise NumericalError("power: the result is not finite; nor are all of v, tau and wrenches")
        return total
