"""Loads in sections of beams along a run: the equilibrium of the part beyond, with all that acts in the run.

With the cut coordinates c of `alembert.flexible.section_loads` the load is -Q_c, and

    Q = ID(q, v, a) - Q_elements - J' f,      J' f = ID(q, v, a) - Q_elements - tau    in the uncut model      (1)

J are the Jacobians of constraints, of the cut model in the first and of the uncut one in the second, f their forces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import UnsupportedError
from alembert.flexible.section_loads import cut_at
from alembert.simulate.elements import Elements

if TYPE_CHECKING:
    from alembert.simulate.result import Run

Array = np.ndarray


def balanced(run: Run, body: str, node: str, parameters: Mapping[str, float]) -> Array:
    """(..., N, 6): moment and force that the part of a beam beyond a node exerts, in the axes of the section."""
    system, model = run._system, run.model
    if system.switches:
        raise UnsupportedError(
            f"simulate: record: section:{body}.{node} and a changing topology do not go together: its equilibrium needs the "
            "forces of all constraints"
        )
    cut = cut_at(model, body, node, tuple(parameters.items()))
    values = parameters or None
    wrenches = _wrenches(run)
    q, v = cut.widened(run.q, "q"), cut.widened(run.v, "v")
    Q = cut.hold(run.q, run.v, run.accelerations, wrenches, values)
    if system.loads.elements is not None:
        given = [run.time[:, None], q, v]
        if model.parameters:
            given.append(np.array([parameters[name] for name, _ in model.parameters]))
        kept, other, _, _ = Elements(cut.model, system.loads.elements.elements, None).kernel("numbers")(
            *given
        )
        Q = Q - kept - other
    if model.is_constrained:
        tau = np.where(system.prescribed, run.required_efforts, run.efforts)
        stop = cut.model.space.of_bodies[body].v.stop
        own = (
            np.delete(Q, np.s_[stop - 6 : stop], axis=-1) - tau
        )  # (1): without the cut the models are the same
        J, J_cut = model.constraint_jacobian(run.q, parameters=values), cut.constrained.constraint_jacobian(q)
        f = np.einsum("...ij,...j->...i", np.linalg.pinv(np.swapaxes(J, -1, -2)), own)
        Q = Q - np.einsum("...ji,...j->...i", J_cut, f)
    return cut.load(Q, run.q, parameters)


def _wrenches(run: Run) -> dict[str, Any] | None:
    """Of the whole run, by frames."""
    loads = run._system.loads
    if not loads.has_wrenches:
        return None
    at = [
        loads.wrenches_at(float(t), run.q[..., k, :], run.v[..., k, :]) or {} for k, t in enumerate(run.time)
    ]
    shape = (*run.q.shape[:-2], 6)
    return {frame: np.stack([np.broadcast_to(x[frame], shape) for x in at], axis=-2) for frame in at[0]}
