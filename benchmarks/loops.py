"""Closed loops: the N four-bar windows of IFToMM A02, beside Pinocchio's constraint dynamics and Exudyn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

import alembert as al
from benchmarks import timing
from benchmarks.rows import Row, against
from benchmarks.timing import Effort

WINDOWS = 40
ACCURACY = 1e-4
"""rad, of the first post after a second: what both programs are to reach"""


def rows(effort: Effort, *, notes: dict[str, Any]) -> list[Row]:
    model = four_bars(WINDOWS)
    q, v = upright(model)
    tau, tilted = np.zeros(model.nv), 0.4 * v  # posts and beams turn against each other as they do in motion
    theirs = _pinocchio(model, WINDOWS)
    expected, found = theirs(tilted, v, tau), model.forward_dynamics(tilted, v, tau)
    if np.abs(found - expected).max() > 1e-6 * np.abs(expected).max():
        raise RuntimeError(
            f"{WINDOWS} windows: the accelerations of the two programs differ:\n{found}\n{expected}"
        )
    ours, peer = timing.best_of_each(
        [
            lambda: timing.best(lambda: model.forward_dynamics(tilted, v, tau), effort),
            lambda: timing.best(lambda: theirs(tilted, v, tau), effort),
        ],
        3,
    )
    label = f"constrained accelerations, {WINDOWS} four-bar windows, from Python"
    return [
        against("loops", label, "A02", ours, "pin.constraintDynamics", peer, 3.0),
        *_second(model, q, v, notes),
    ]


def four_bars(windows: int) -> al.Model:
    builder = al.ModelBuilder(f"windows{windows}", gravity=(0.0, -9.81, 0.0))
    upright = al.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0))
    beam = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    for i in range(windows + 1):
        builder.body(f"post{i}", upright, joint=al.Revolute(), placement=(float(i), 0, 0))
        builder.frame(f"top{i}", f"post{i}", (0.0, 1.0, 0.0))
    for i in range(windows):
        builder.body(f"beam{i}", beam, joint=al.Revolute(), parent=f"post{i}", placement=(0, 1.0, 0))
        builder.frame(f"end{i}", f"beam{i}", (1.0, 0.0, 0.0))
        builder.loop(f"window{i}", al.Revolute(), f"top{i + 1}", f"end{i}")
    return builder.build()


def upright(model: al.Model) -> tuple[np.ndarray, np.ndarray]:
    """The tops move at 1 m/s to the right."""
    return np.zeros(model.nq), np.array([-1.0 if n.startswith("post") else 1.0 for n in model.speed_names])


def _pinocchio(model: al.Model, windows: int) -> Any:
    other = pin.Model()
    other.gravity.linear = np.array([0.0, -9.81, 0.0])
    at = {"world": 0}
    for joint in model.joints:
        where = pin.SE3(np.eye(3), np.array(joint.placement.translation, dtype=float))
        at[joint.child] = other.addJoint(at[joint.parent], pin.JointModelRZ(), where, joint.name)
        inertia = model.body(joint.child).inertia
        xx, xy, yy, xz, yz, zz = (float(x) for x in inertia.tensor)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        body = pin.Inertia(float(inertia.mass), np.array(inertia.com, dtype=float), tensor)
        other.appendBodyToJoint(at[joint.child], body, pin.SE3.Identity())
    contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    ends = [pin.SE3(np.eye(3), np.array(p)) for p in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))]
    for i in range(windows):
        contact = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, other, at[f"post{i + 1}"], ends[0], at[f"beam{i}"], ends[1],
            pin.ReferenceFrame.LOCAL,
        )  # fmt: skip
        contacts.append(contact)
        contact_data.append(contact.createData())
    data = other.createData()
    pin.initConstraintDynamics(other, data, contacts, contact_data)
    settings = pin.ProximalSettings(1e-12, 1e-9, 10)
    return lambda q, v, tau: pin.constraintDynamics(other, data, q, v, tau, contacts, contact_data, settings)


def _second(model: al.Model, q: np.ndarray, v: np.ndarray, notes: dict[str, Any]) -> list[Row]:
    """The longest steps with which either program reaches the accuracy, and the time that the second then takes."""
    try:
        from benchmarks.exudyn_four_bars import SOLVERS, FourBars
    except ImportError:
        notes["without"] = "Exudyn is not installed (pip install exudyn); its rows are left out."
        return []
    import time

    def ours(steps: int) -> tuple[float, float]:
        start = time.perf_counter()
        run = al.simulate(
            model, q, v, duration=1.0, step=1.0 / steps, interval=1.0, integrator="rk4", progress=False
        )
        return time.perf_counter() - start, float(run.q[-1][0])

    exact = ours(320)[1]  # of fourth order: to 1e-9
    best, count = _coarsest(ours, exact, 10)
    other = FourBars(WINDOWS)
    peers = [_coarsest(lambda n, s=s: other.run(n, 1.0, s), exact, 25) for s in SOLVERS]  # type: ignore[misc]
    peer, steps = min(peers)
    label = f"a second of {WINDOWS} windows to {ACCURACY:g} rad ({count} steps, theirs {steps})"
    return [against("loops/second", label, "A02", best, "Exudyn", peer, 10.0)]


def _coarsest(run: Any, exact: float, steps: int) -> tuple[float, int]:
    for _ in range(12):
        _, angle = run(steps)
        if abs(angle - exact) <= ACCURACY:
            return min(run(steps)[0] for _ in range(3)), steps
        steps *= 2
    return float("inf"), steps
