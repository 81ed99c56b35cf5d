"""The equations of motion over a span in which nothing jumps, as integrators with error control see them.

The state is q, v and z, what drives with a lag remember (`alembert.simulate.lags`):

    v' = a(t, q, v, tau),    z' = r(z, u),    tau = held + given(z, u),    u = u(t, q, v)          (1)
"""

from __future__ import annotations

import numpy as np

from alembert.simulate.lags import Lags, Ramp
from alembert.simulate.system import System

Array = np.ndarray


class Flow:
    """(1) under efforts that are held.

    `effort` is all that is held; with `lags`, `command` is what sampled controllers ask the drives for, and `effort` the
    rest. Tables that hold are read at the time `within` the span.
    """

    def __init__(
        self,
        system: System,
        effort: Array,
        within: float,
        *,
        lags: Lags | None = None,
        command: Array | None = None,
        ramp: Ramp | None = None,
    ) -> None:
        self.system, self.effort, self.within = system, effort, within
        self.lags, self.command, self.ramp = lags, command, ramp
        self.size = 0 if lags is None else lags.size
        self.exact = not (system.laws or system.wrench_laws or system.motions or system.prescribes)
        """whether the Jacobian is known"""
        self.on_surface = system.constrained and system.stabilisation.method == "projection"
        self.project, self.distance = system.settled, system.distance

    def asked(self, t: float, q: Array, v: Array) -> Array:
        """u."""
        assert self.command is not None
        return self.command + self.system.command(t, q, v)

    def given(self, t: float, z: Array, u: Array) -> Array:
        assert self.lags is not None
        found = self.lags.given(z, u)
        if self.ramp is not None:
            found[..., self.ramp.where] = self.ramp.at(t)
        return np.where(self.system.prescribed, 0.0, found)

    def _effort(self, t: float, q: Array, v: Array, z: Array) -> Array:
        """Efforts as numbers, those of continuous controllers among them if there are lags."""
        return self.effort if self.lags is None else self.effort + self.given(t, z, self.asked(t, q, v))

    def efforts(self, t: float, q: Array, v: Array, z: Array) -> Array:
        """All that drives, controllers and tables give, also on joints that follow a motion."""
        system = self.system
        given = self._effort(t, q, v, z) + system.feeds.fed_efforts(np.array([t]))[0]
        if self.lags is None:
            given = given + system.command(t, q, v)
        if system.prescribes:
            return np.where(system.prescribed, system.required_efforts(t, q, v, given), given)
        return given

    def slope(self, t: float, q: Array, v: Array, z: Array) -> tuple[Array, Array]:
        """v' and z'."""
        if self.lags is None:
            return self.system.point(t, q, v, self.effort, within=self.within).a, z
        u = self.asked(t, q, v)
        a = self.system.point(t, q, v, self.effort + self.given(t, z, u), held=True, within=self.within).a
        return a, self.lags.rates(z, u)

    def _effort_slopes(self, t: float, q: Array, v: Array, z: Array) -> tuple[Array, Array, Array, Array]:
        """d tau/dq, dv and dz; and the rows of z' with respect to q, v and z."""
        system, nv = self.system, self.system.model.nv
        if self.lags is None:
            found = system.slopes(t, q, v)
            dq, dv = (np.zeros((nv, nv)),) * 2 if found is None else found
            return dq, dv, np.zeros((nv, 0)), np.zeros((0, 2 * nv))
        u_q, u_v = (np.zeros((nv, nv)),) * 2
        if system.law is not None:
            u_q, u_v = system.feedback.slopes(np.array([t]), q, v)
        by_u, by_z, rate_u, rate_z = self.lags.slopes(z, self.asked(t, q, v))
        if self.ramp is not None:
            by_u[self.ramp.where] = 0.0
        dq, dv = by_u[:, None] * u_q, by_u[:, None] * u_v
        if system.acting is not None:
            s_q, s_v = system.acting.kernel("slopes")(*system._given(t, q, v))
            dq, dv = dq + s_q, dv + s_v
        return dq, dv, by_z, np.hstack([rate_u @ u_q, rate_u @ u_v, rate_z])

    def _total(self, t: float, q: Array, v: Array, z: Array) -> Array:
        return self.system.all_efforts(t, q, v, self._effort(t, q, v, z), held=self.lags is not None)

    def slopes(self, t: float, q: Array, v: Array, z: Array) -> tuple[Array, Array]:
        """Derivatives of v' (nv, 2 nv + size) and z' (size, 2 nv + size) with respect to q (tangent), v and z."""
        d = self.system.derivatives(t, q, v, self._total(t, q, v, z), self.within)
        dq, dv, dz, rows = self._effort_slopes(t, q, v, z)
        return np.hstack([d.dq + d.dtau @ dq, d.dv + d.dtau @ dv, d.dtau @ dz]), rows

    def balance(self, t: float, q: Array, v: Array, z: Array, a: Array) -> Array:
        """What is missing in the balance of efforts with accelerations a."""
        system = self.system
        given = system.wrenches_at(t, q, v, self.within)
        required = system.model.inverse_dynamics(q, v, a, wrenches=given, parameters=system.parameters)
        return required - self._total(t, q, v, z)

    def balance_slopes(self, t: float, q: Array, v: Array, z: Array, a: Array) -> tuple[Array, Array, Array]:
        """Derivatives of the balance with respect to (q, v, z), and to a; and those of z' as in `slopes`."""
        system = self.system
        given = system.wrenches_at(t, q, v, self.within)
        d = system.model.inverse_dynamics_derivatives(q, v, a, wrenches=given, parameters=system.parameters)
        dq, dv, dz, rows = self._effort_slopes(t, q, v, z)
        return np.hstack([d.dq - dq, d.dv - dv, -dz]), d.da, rows
