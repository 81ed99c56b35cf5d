"""The power of reactions: none at speeds that keep the constraints, a check of forces against motions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints.states import states

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Parameters = Mapping[str, Any] | None


def power(
    model: Model, function: str, q: Any, v: Any, reactions: Mapping[str, Any], parameters: Parameters
) -> dict[str, Array]:
    """F . V_ab of loops, f . (G v) of couplings and equations."""
    rows = model.compute.constraint_rows
    system = rows.system(function, list(reactions))
    s = states(model, function, q, {"v": v}, parameters)
    if not system.count:
        return {}
    speeds = (system.terms(s).jacobian @ s.vectors[0][..., None])[..., 0].reshape(*s.shape, -1)
    loops = {loop.name: loop for loop in model.loops}
    found = {}
    for name, reaction in reactions.items():
        force = np.asarray(reaction, dtype=float)
        if name in loops:
            own: Any = rows.unconstrained
            ends = (loops[name].frame_a, loops[name].frame_b)
            V_a, V_b = (own.frame_velocity(q, v, x, reference="world", parameters=parameters) for x in ends)
            X = own.frame_pose(q, ends[1], parameters=parameters)
            R, p = np.asarray(X.rotation), np.asarray(X.translation)
            V = V_b - V_a  # of b relative to a, about the world's origin
            at_b = V[..., 3:] - np.cross(p, V[..., :3])
            moved = np.concatenate([V[..., :3], at_b], axis=-1).reshape(*V.shape[:-1], 2, 3)
            moved = np.einsum("...ji,...kj->...ki", R, moved).reshape(V.shape)
            found[name] = np.sum(force * moved, axis=-1)
        else:
            opened = speeds[..., system.slices[name]]
            found[name] = np.sum(
                force[..., None] * opened if rows.kinds[name] == "coupling" else force * opened, axis=-1
            )
    return found
