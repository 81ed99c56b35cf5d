"""How well a run kept what the physics keeps, and whether it stayed within the limits of its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from alembert.model import Model
from alembert.simulate.simulation import Simulation
from alembert.simulate.work import by_simpson

if TYPE_CHECKING:
    from alembert.simulate.result import Run

Array = np.ndarray
ROUNDING = 1e-6
"""in SI units: less beyond a limit is not told"""


@dataclass(frozen=True)
class Report:
    """How well a run kept what the physics keeps. Numbers are the worst over the run (and the batch).

    `energy_error` is |E - E(0) - work| over the largest kinetic energy; with `work` None no work was done,
    otherwise it is the work of efforts, wrenches and friction up to the end. `momentum_error` is the largest
    change of the momentum over the size of its terms, angular and linear; None where something outside acts
    on the model.
    """

    integrator: str
    reason: str
    steps: int
    energy_start: float
    energy_error: float
    work: float | None
    momentum_error: tuple[float, float] | None
    quaternion_error: float | None
    constraint_error: float | None = None
    """the largest residual of loops and couplings [m, rad]"""
    event_energy: float | None = None
    """what events (impacts, docking) have added to the energy, counted in the balance; None without events"""
    work_error: float | None = None
    """with fixed steps in Python, so many that only records further apart are kept, how well the work is known from them,
    on the scale of `energy_error`; None where this is not what limits the balance"""
    spin_error: float | None = None
    """as `momentum_error`, of the angular momentum about the centre of mass; the other is about the world's origin"""
    energy_limit: float = np.inf
    """an `energy_error` beyond it means that the run is wrong somewhere"""
    beyond_limits: Mapping[str, float] = field(default_factory=dict)
    """by how much limits of the model were passed, where they were: coordinates, speeds (`v:`), efforts (`tau:`) and
    actuators (`actuator:`); a run does not keep them by itself"""
    passages: tuple[float, ...] = ()
    """times at which the motion went through places where loops and couplings lose rank"""

    def __str__(self) -> str:
        lines = [f"{self.integrator}: {self.reason}", f"steps: {self.steps}"]
        if not self.is_balanced:
            lines.append(
                "THE BALANCE OF ENERGY IS BROKEN: do not trust this run; a smaller step or tolerance may help"
            )
        if self.work is None:
            lines.append(f"energy kept to {self.energy_error:.1e} of the largest kinetic energy")
        else:
            lines.append(
                f"energy and work ({self.work:.6g} J) balance to {self.energy_error:.1e} of the largest kinetic energy"
            )
        if self.work_error is not None:
            lines.append(
                f"  (the work is summed over the records, and known to {self.work_error:.1e} from them: a shorter interval "
                "tells more)"
            )
        if self.momentum_error is not None:
            angular, linear = self.momentum_error
            lines.append(f"momentum kept to {angular:.1e} (angular) and {linear:.1e} (linear) of its terms")
            if self.spin_error is not None:
                lines.append(
                    f"  about the world's origin; about the centre of mass to {self.spin_error:.1e} (angular)"
                )
        if self.quaternion_error is not None:
            lines.append(f"unit quaternions to {self.quaternion_error:.1e}")
        if self.constraint_error is not None:
            lines.append(f"loops and couplings closed to {self.constraint_error:.1e}")
        if self.passages:
            times = ", ".join(f"{t:.6g}" for t in self.passages[:5]) + (
                ", ..." if len(self.passages) > 5 else ""
            )
            lines.append(
                f"went through {len(self.passages)} singular places of loops and couplings (t = {times} s), where other "
                "motions branch off"
            )
        if self.beyond_limits:
            listed = ", ".join(f"{name} by {x:.3g}" for name, x in self.beyond_limits.items())
            kept = "positions are kept by JointStops or SoftStop, efforts by Drive(limit=...)"
            lines.append(f"limits of the model were passed: {listed} ({kept})")
        if self.event_energy:
            lines.append(f"events added {self.event_energy:.6g} J, which the balance counts")
        return "\n".join(lines)

    @property
    def is_balanced(self) -> bool:
        """Whether the energy is kept, or balances the work, as well as this integrator should."""
        return self.energy_error <= self.energy_limit


def report_of(run: Run) -> Report:
    model, system = run.model, run._system
    E = run.energy
    # next to rest, the rounding of the potential energy is what can be kept
    scale = max(float(np.max(run.kinetic_energy)), 1e-9 * float(np.max(np.abs(E))), np.finfo(float).tiny)
    closed = system.conserves_energy
    error = E - E[..., :1] - (0.0 if closed else run.work) - run._jumps
    energy_error = float(np.max(np.abs(error))) / scale
    momentum, spin = None, None
    if _is_isolated(system, run.efforts) and all(event.internal for event in run.events):
        h = run.momentum
        moved = np.abs(h - h[..., :1, :])
        A = model.momentum_matrix(run.q, about="world", parameters=run.parameters)
        terms = np.einsum(
            "...ij,...j->...i", np.abs(A), np.abs(run.v)
        )  # the body at rest too may have parts that move
        parts = [slice(0, 3), slice(3, 6)]
        momentum = tuple(
            float(np.max(moved[..., s]) / max(np.max(terms[..., s]), np.finfo(float).tiny)) for s in parts
        )
        centre = model.center_of_mass(run.q, parameters=run.parameters)
        own = h[..., :3] - np.cross(centre, h[..., 3:])
        spin = float(
            np.max(np.abs(own - own[..., :1, :])) / max(float(np.max(terms[..., :3])), np.finfo(float).tiny)
        )
    lengths = [
        np.abs(np.linalg.norm(run.q[..., [s.start + k for k in entries]], axis=-1) - 1)
        for s, entries in _quaternions(model)
    ]
    return Report(
        run.integrator,
        run.reason,
        run.steps,
        float(E[..., 0].flat[0]) if E.ndim > 1 else float(E[0]),
        energy_error,
        None if closed else float(np.asarray(run.work[..., -1]).flat[0]),
        momentum,  # type: ignore[arg-type]
        max((float(np.max(x)) for x in lengths), default=None),
        _constraint_error(run) if system.constrained else None,
        float(run._jumps[-1]) if run.events else None,
        None if closed else _work_error(run, energy_error, scale),
        spin,
        run._energy_limit * max(1.0, run._slow / scale),
        _beyond_limits(run),
        run.passages,
    )


def _work_error(run: Run, energy_error: float, scale: float) -> float | None:
    """What half as many records change of the work, where this may be what is missing in the balance."""
    interval = run._settings.interval
    known = run._notes is not None or run._work is not None
    if known or run.step is None or interval is None or interval < 1.5 * run.step or len(run.time) < 5:
        return None
    P = run._power_over_records
    coarse = by_simpson(P[..., ::2], run.time[::2])
    fine = by_simpson(P, run.time)[..., ::2]
    found = float(np.max(np.abs(fine - coarse))) / scale
    return found if found > 0.1 * energy_error else None


def _constraint_error(run: Run) -> float:
    """The largest residual of what holds, at any record."""
    system, worst = run._system, 0.0
    firsts = [first for first, _ in run._topologies] + [len(run.time)]
    for (first, topology), last in zip(run._topologies, firsts[1:], strict=True):
        if topology.active and last > first:
            values = {name: np.asarray(x) for name, x in topology.values.items()}
            residual = system.model.constraint_residual(
                run.q[..., first:last, :],
                active=topology.active,
                parameters={**(run.parameters or {}), **values} or None,
            )
            worst = max(worst, float(np.max(np.abs(residual))))
    return worst


def _beyond_limits(run: Run) -> dict[str, float]:
    """By name, how far the worst record is beyond a limit; rounding at a stop is none."""
    model = run.model
    given = run.efforts + run.required_efforts
    looked_at = [
        ("", model.coordinate_names, run.q, model.lower_limits, model.upper_limits),
        ("v:", model.speed_names, run.v, -model.velocity_limits, model.velocity_limits),
        ("tau:", model.speed_names, given, -model.effort_limits, model.effort_limits),
    ]
    driven = [(actuator.joint, actuator.dof) for actuator in model.actuators]
    for actuator in model.actuators:
        if driven.count((actuator.joint, actuator.dof)) == 1:  # which of several gives what is not known
            x = run.channel(f"actuator:{actuator.name}").values
            low, high = map(np.array, actuator.limits)
            looked_at.append(("actuator:", (actuator.name,), x, low, high))
    found: dict[str, float] = {}
    for prefix, names, x, low, high in looked_at:
        over = np.fmax.reduce(np.fmax(low - x, x - high).reshape(-1, len(names)), axis=0)
        found |= {f"{prefix}{name}": float(most) for name, most in zip(names, over, strict=True)}
    return {name: most for name, most in found.items() if most > ROUNDING}


def _quaternions(model: Model) -> list[tuple[slice, list[int]]]:
    """Joints with a unit quaternion, and its entries."""
    found = []
    for owner in model.space:
        labels = [label for label, _ in owner.type.coordinates]
        entries = [k for k, label in enumerate(labels) if label in ("qw", "qx", "qy", "qz")]
        if len(entries) == 4:
            found.append((owner.q, entries))
    return found


def _is_isolated(system: Simulation, efforts: Array) -> bool:
    """Nothing from outside acts: free joints to the world without anything on them, no gravity, no wrenches."""
    model = system.model
    if system.loads.has_wrenches or any(model.value(g) for g in model.gravity):
        return False
    if system.loads.reading is not None:
        return False
    if system.loads.elements is not None and not system.loads.elements.internal:
        return False
    for joint in model.joints:
        if joint.parent != "world":
            continue
        bare = not (joint.spring or joint.friction or joint.armature or joint.rotors)
        s = model.v_slice(joint.name)
        if joint.type.nv != 6 or not bare or np.any(efforts[..., s]) or np.any(system.prescribed[s]):
            return False
    return True
