"""Energy and power, as methods of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.dynamics.arguments import Parameters, Wrenches, mapping

if TYPE_CHECKING:
    from alembert.model import Model


class Energy:
    """Mixed into `Model`."""

    def kinetic_energy(self: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self._evaluate("kinetic_energy", (q, v), parameters=parameters)[..., 0]

    def potential_energy(self: Model, q: Any, *, parameters: Parameters = None) -> Any:
        """Of gravity (zero when the centre of mass of what moves is at the world's origin) and of springs."""
        return self._evaluate("potential_energy", (q,), parameters=parameters)[..., 0]

    def energy(self: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self.kinetic_energy(q, v, parameters=parameters) + self.potential_energy(
            q, parameters=parameters
        )

    def power(
        self: Model,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> Any:
        """What efforts and wrenches feed in: tau . v + sum F . V. Friction takes out its own part."""
        tau, v = (self._numbers("power", name, x, self.nv) for name, x in (("tau", tau), ("v", v)))
        total = np.sum(tau * v, axis=-1)
        for frame, wrench in mapping("power", "wrenches", wrenches).items():
            V = self.frame_velocity(q, v, frame, parameters=parameters)
            total = total + np.sum(V * self._numbers("power", f"wrench on {frame!r}", wrench, 6), axis=-1)
        return total
