"""With some degrees of freedom held, because drives make them follow a motion: projection and impulse.

    min x^T M x,   G x = b,   x_h = 0                                                                  (1)
    M_mm x_m = G_m^T f,    p_h = M_hm x_m - G_h^T f                                                     (2)

m are the degrees of freedom that move, h those that are held. For a jump of the speeds b = -G v: f are the impulses of the
constraints, p_h those of the drives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from alembert.constraints.assembly import CLOSURE, _held
from alembert.constraints.results import ImpulseResult
from alembert.constraints.states import States, Terms, states
from alembert.constraints.system import ConstraintSystem
from alembert.constraints.tolerances import CONSISTENT, RANK
from alembert.errors import NumericalError

Array = np.ndarray


def project(
    system: ConstraintSystem,
    function: str,
    q: Array,
    v: Array,
    held: Array,
    parameters: Mapping[str, Any] | None,
) -> tuple[Array, Array]:
    """(1) for x with b = -phi until the loops are closed, and for the speeds with b = -G v; state by state."""
    model = system.model
    s = states(model, function, q, {"v": v}, parameters)
    move = np.setdiff1d(np.arange(model.nv), held)
    found, speeds = s.q.copy(), s.vectors[0].copy()
    for k in range(len(s)):
        at = s.at(k)
        worst = np.inf
        for _ in range(20):
            t = system.terms(at)
            off = np.abs(t.residual[0]) / t.scale[0]
            largest = float(np.max(off, initial=0.0))
            if not largest < worst / 2 or largest <= 1e-15:
                break
            worst, closest = largest, at
            x = _least_energy(system, at, t, -t.residual[0], move)
            at = at.with_q(model.integrate(at.q, x[None]))
        at = at if largest <= worst else closest
        t = system.terms(at)
        left = np.abs(t.residual[0]) / t.scale[0]
        y = _least_energy(system, at, t, -(t.jacobian[0] @ speeds[k]), move)
        speeds[k] += y
        found[k] = at.q[0]
        broken = np.abs(t.jacobian[0] @ speeds[k]) / t.scale[0]
        for what, values, limit in (
            ("stays open by", left, CLOSURE),
            ("opens at a rate of", broken, 1e-9 * max(1.0, float(np.linalg.norm(speeds[k])))),
        ):
            if not np.max(values, initial=0.0) <= limit:
                i = int(np.argmax(values))
                raise NumericalError(
                    f"{function}: {system.owner_name(i)} {what} {values[i]:.3g}{_held(model, held)}: the mechanism cannot "
                    "follow the prescribed motion here"
                )
    return found.reshape(*s.shape, found.shape[-1]), speeds.reshape(*s.shape, speeds.shape[-1])


def impulse(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    held: Array,
    parameters: Mapping[str, Any] | None,
    closed: float,
) -> ImpulseResult:
    """(2)"""
    model = system.model
    s = states(model, function, q, {"v": v}, parameters)
    t = system.terms(s)
    system.check_closed(function, s, t, None, closed)
    move = np.setdiff1d(np.arange(model.nv), held)
    x, p, f = np.zeros((len(s), model.nv)), np.zeros((len(s), model.nv)), np.zeros((len(s), system.count))
    for k in range(len(s)):
        at, G, speeds = s.at(k), t.jacobian[k], s.vectors[0][k]
        of_k = Terms(*(y[k : k + 1] for y in (t.residual, t.jacobian, t.bias, t.basis, t.scale, t.slack)))
        x[k] = _least_energy(system, at, of_k, -(G @ speeds), move)
        left = np.abs(G @ (speeds + x[k])) / t.scale[k]
        if np.max(left, initial=0.0) > CONSISTENT * np.linalg.norm(speeds):
            i = int(np.argmax(left))
            raise NumericalError(
                f"{function}: no impulse makes all constraints hold{_held(model, held)}: {system.owner_name(i)} would open "
                f"at {left[i]:.3g} per second"
            )
        Mx = system.mass_matrix(at)[0] @ x[k]
        f[k] = np.linalg.lstsq(G[:, move].T, Mx[move], rcond=RANK)[0]
        p[k, held] = Mx[held] - G[:, held].T @ f[k]
    after, drives = (y.reshape(*s.shape, model.nv) for y in (s.vectors[0] + x, p))
    return ImpulseResult(after, system.reactions(s, t, f), drives)


def _least_energy(system: ConstraintSystem, s: States, t: Terms, b: Array, move: Array) -> Array:
    """(1); of rows that contradict, the nearest."""
    U = np.linalg.cholesky(system.mass_matrix(s)[0][move[:, None], move]).T
    scale = t.scale[0]
    A = np.linalg.solve(U.T, (t.jacobian[0][:, move] / scale[:, None]).T).T
    x = np.zeros(system.model.nv)
    x[move] = np.linalg.solve(U, np.linalg.lstsq(A, b / scale, rcond=1e-9)[0])
    return x
