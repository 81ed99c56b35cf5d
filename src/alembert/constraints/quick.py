"""Constrained accelerations and projections by compiled functions, where the minimal set in use serves the states.

None says: look closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints.tolerances import CLOSED, CONSISTENT, GOOD, OFF, RANK

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintSystem

Array = np.ndarray


def accelerations(
    system: ConstraintSystem, given: Sequence[Any], *, wrenches: bool, closed: float, unique: bool
) -> Any:
    """Accelerations, forces and wrenches by the compiled function, if the minimal set serves all states.

    `given` are q, v, tau and, where there are, wrenches and parameters. None says: look closer. With `unique`, forces
    count as well: there must be no choice among them.
    """
    if system.kept is None:
        return None
    chosen, active = system.masks
    if system.all.solution is None:
        return _looped(system, given, wrenches=wrenches, closed=closed, unique=unique)
    last = given[-1:] if system.model.parameters else ()
    factor, rest = system.all.tree(wrenches=wrenches)(*given)
    a, f, reactions, status = system.all.solution(given[0], given[1], factor, rest, chosen, active, *last)
    if status.ndim == 1:
        good = _good(status, closed, unique=unique)
    else:
        quality, left, size, slack, other = np.moveaxis(status, -1, 0)
        fine = (quality > GOOD * GOOD) & (slack <= closed)
        fine &= left <= (CONSISTENT + np.minimum(100 * slack, OFF)) * size
        good = bool(np.all(fine & (other <= RANK**2) if unique else fine))
    return (a, f, reactions) if good else None


def _looped(
    system: ConstraintSystem, given: Sequence[Any], *, wrenches: bool, closed: float, unique: bool
) -> Any:
    """The same in loops, state by state."""
    loops = system.all.looped
    if loops is None:
        return None
    chosen, active = system.masks
    q, v, tau = (np.asarray(x, dtype=float) for x in given[:3])
    zero = np.zeros(system.model.nv)
    kernel = system.all.primary.compute.kernel("inverse_dynamics", wrenches=wrenches)
    bias = kernel(q, v, zero, *given[3:])
    shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1], bias.shape[:-1])
    rest = np.broadcast_to(tau - bias, (*shape, system.model.nv)).reshape(-1, system.model.nv)
    flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v)]
    found = []
    for q_k, v_k, rest_k in zip(flat[0], flat[1], rest, strict=True):
        one = loops.solve(q_k, v_k, rest_k, chosen, active)
        if one is None or not _good(one[-1], closed, unique=unique):
            return None
        found.append(one[:3])
    return tuple(np.array(x).reshape(*shape, *x[0].shape) for x in zip(*found, strict=True))


def projection(system: ConstraintSystem, q: Any, v: Any, last: tuple[Array, ...], goal: float) -> Any:
    """Configurations and speeds on the surface, what is left of the residuals, and the steps; or None.

    `last` are the parameters, where the model has any.
    """
    if system.kept is None:
        return None
    chosen, active = system.masks
    compiled, loops = system.all.projection, system.all.looped
    if compiled is None:
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if loops is None or q.ndim > 1 or v.ndim > 1:
            return None
    tree = system.all.tree(wrenches=False) if compiled is not None else None
    zero = np.zeros(system.model.nv)
    worst: Any = np.inf
    for count in range(10):  # noqa: B007  (returned)
        if compiled is not None and tree is not None:
            factor, _ = tree(q, zero, zero, *last)
            x, y, status = compiled(q, v, factor, chosen, active, *last)
        else:
            found = loops.project(q, v, chosen, active) if loops is not None else None
            if found is None:
                return None
            x, y, status = found
        quality, opened, residual, broken = _worst(status)
        if not (quality > GOOD * GOOD and opened <= CLOSED):
            return None
        if status.ndim > 1:
            # each state ends when it would alone, so that its bits do not depend on the others
            each = status[..., 1]
            going = (each > 1e-15) & (each < worst / 2)
            if not going.any():
                break
            worst = np.where(going, each, 0.0)
            q = np.where(going[..., None], system.model.integrate(q, x), q)
            continue
        if opened <= 1e-15 or opened >= worst / 2:
            break
        worst = opened
        q = system.model.integrate(q, x)
    after = v + y
    if not (opened <= goal and broken <= 1e-10 * max(1.0, float(np.max(np.abs(after))))):
        return None
    return np.array(q, dtype=float), after, residual, broken, count


def _worst(status: Array) -> tuple[float, float, float, float]:
    """(6) of `compiled`, over a batch."""
    if status.ndim == 1:
        quality, opened, residual, broken = status.tolist()
        return quality, opened, residual, broken
    low, high = status.reshape(-1, 4).min(axis=0), status.reshape(-1, 4).max(axis=0)
    return float(low[0]), float(high[1]), float(high[2]), float(high[3])


def _good(status: Array, closed: float, *, unique: bool) -> bool:
    quality, left, size, slack, other = status.tolist()
    return bool(
        quality > GOOD * GOOD
        and left <= (CONSISTENT + min(100 * slack, OFF)) * size
        and slack <= closed
        and not (unique and other > RANK**2)
    )
