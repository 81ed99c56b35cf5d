"""Motions for cases: any program's accelerations, integrated here, so that only they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from alembert.errors import NumericalError
from alembert.model import Model
from alembert.verify.programs import Dynamics

Array = np.ndarray
Efforts = Callable[[float, Array, Array], Array]


def motion(
    model: Model,
    dynamics: Dynamics,
    q0: Any,
    v0: Any = None,
    *,
    duration: float,
    efforts: Efforts | None = None,
    records: int = 201,
    tolerance: float = 1e-13,
) -> tuple[Array, Array, Array]:
    """Times (records,), configurations (records, nq) and speeds (records, nv) by DOP853 on (q, v).

    dq/dt is the rate of the model's coordinates: unit quaternions stay so to the tolerance.
    """
    q = np.asarray(q0, dtype=float)
    v = np.zeros(model.nv) if v0 is None else np.asarray(v0, dtype=float)
    zero = np.zeros(model.nv)

    def slope(t: float, x: Array) -> Array:
        q, v = x[: model.nq], x[model.nq :]
        tau = zero if efforts is None else efforts(t, q, v)
        return np.concatenate([model.rate(q, v), dynamics.forward_dynamics(q, v, tau)])

    found = scipy.integrate.solve_ivp(
        slope,
        (0.0, duration),
        np.concatenate([q, v]),
        method="DOP853",
        t_eval=np.linspace(0.0, duration, records),
        rtol=tolerance,
        atol=tolerance,
    )
    if not found.success:
        raise NumericalError(f"motion: {found.message}")
    return found.t, found.y[: model.nq].T, found.y[model.nq :].T


def runge_kutta(
    model: Model,
    q: Array,
    v: Array,
    *,
    duration: float,
    steps: int,
    accelerations: Callable[[Array, Array], Array] | None = None,
    each: Callable[[Array, Array], None] | None = None,
) -> tuple[Array, Array]:
    """The classical method for a model with loops, each step followed by a projection; `each` sees every state."""
    h = duration / steps
    zero = np.zeros(model.nv)
    a = accelerations or (lambda q, v: model.forward_dynamics(q, v, zero))
    for _ in range(steps):
        a1 = a(q, v)
        v2, q2 = v + h / 2 * a1, q + h / 2 * v
        a2 = a(q2, v2)
        v3, q3 = v + h / 2 * a2, q + h / 2 * v2
        a3 = a(q3, v3)
        v4, q4 = v + h * a3, q + h * v3
        a4 = a(q4, v4)
        state = model.project(q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4))
        q, v = state.q, np.asarray(state.v)
        if each is not None:
            each(q, v)
    return q, v
