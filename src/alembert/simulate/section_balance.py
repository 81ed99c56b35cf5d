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
    _check_places(run, body, f"{body}.{node}")
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


def _check_places(run: Run, body: str, section: str) -> None:
    """Refuse forces of which only the efforts are known: they may act on this side of the section or beyond."""
    system = run._system
    laws = [*system.feedback.dynamic, *system.feedback.sampled_systems.values()]
    pushes = any(not isinstance(where, int) for law in laws for where, _ in getattr(law, "targets", ()))
    for what, found in (
        ("forces that read reactions", system.loads.reading is not None),
        ("a MassFlow", bool(system.feedback.flows)),
        ("a controller that pushes at a frame", pushes),
        (
            f"efforts on the modes of {body!r}",
            bool(np.any(run.efforts[..., run.model.space.of_bodies[body].v])),
        ),
    ):
        if found:
            raise UnsupportedError(
                f"simulate: record: section:{section} and {what} do not go together: where along the beam they act is not "
                "known; give forces as wrenches=... or as force elements"
            )


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
