"""Chen and Ou 1989: the seven-link RRC arm."""

import dataclasses

import numpy as np

from alembert.simulate import simulate
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import RRC_MISSING, rrc_arm
from alembert.verify.papers import acc1989
from alembert.verify.random_models import ROUNDING, ROUNDING_REASON, states


@case(
    source=acc1989(
        "Chen, Ou",
        "validation (I), seven-link RRC arm",
    ),
    kind="published",
    tags=("tree", "simulation", "acc1989"),
    parameters={"duration": 1.0, "step": 5e-4},
    missing=RRC_MISSING,
)
def msp_energy(duration: float, step: float) -> Items:
    """Without torques the energy of a geared arm is constant."""
    model = rrc_arm(oblique=True)
    q0 = [0.2, 0.4, -0.6, 0.8, 0.3, -0.5, 0.7]
    v0 = [0.3, -0.5, 0.8, 1.0, -0.7, 0.9, 1.2]
    run = simulate(
        model, q0, v0, duration=duration, step=step, integrator="rk4", interval=0.01, progress=False
    )
    drift = (run.energy - run.energy[0]) / np.max(run.kinetic_energy)
    yield Check("drift / kinetic energy", np.max(np.abs(drift)), 0.0, 1e-8, "order 4 at h = 0.5 ms")
    yield Check("change of the speeds > 0.3", float(np.max(np.abs(run.v[-1] - v0)) > 0.3), 1.0, 0, "it moves")
    yield Plot("t [s]", "drift / kinetic energy", (Line("", run.time, drift),))


@case(
    source=acc1989(
        "Chen, Ou",
        "validations (II-a) and (II-b), seven-link RRC arm",
    ),
    kind="published",
    tags=("tree", "simulation", "acc1989"),
    parameters={"duration": 1.0, "step": 5e-4},
    missing=RRC_MISSING,
)
def msp_angular_momentum(duration: float, step: float) -> Items:
    """No torque on a direct-drive first joint along gravity: H . z1 is constant, whatever the others do."""
    q0 = [0.2, 0.4, -0.6, 0.8, 0.3, -0.5, 0.7]
    v0 = [0.3, -0.5, 0.8, 1.0, -0.7, 0.9, 1.2]
    efforts = [0.0, 100.0, -30.0, 20.0, 10.0, -5.0, 3.0]
    lines = []
    for name, gravity in (("II-a", 0.0), ("II-b", -9.81)):
        model = rrc_arm(first_ratio=1.0, oblique=True, gravity=gravity)
        run = simulate(
            model,
            q0,
            v0,
            duration=duration,
            step=step,
            integrator="rk4",
            interval=0.01,
            efforts=efforts,
            progress=False,
        )
        h = run.momentum[:, 2]
        drift = (h - h[0]) / np.max(np.abs(run.momentum[:, :3]))
        yield Check(f"{name}: drift / momentum", np.max(np.abs(drift)), 0.0, 1e-8, "order 4 at h = 0.5 ms")
        lines.append(Line(name, run.time, drift))
    yield Plot("t [s]", "drift / momentum", tuple(lines))


@case(
    source=acc1989(
        "Chen, Ou",
        "equations (44)-(46), K and H of the geared arm",
    ),
    kind="published",
    tags=("tree", "acc1989"),
    parameters={"states_": 5},
    missing=RRC_MISSING,
)
def msp_geared_equations(states_: int) -> Items:
    """Mass matrix, bias, energy and momentum of an arm with geared rotors, oblique to the joints.

    A_ri = A'_ri + mu_i J_i z_r . e_i (r < i), A_rr = A'_rr + mu_r^2 J_r; the bias has in addition
    mu_r J_r al'_{r-1} . e_r - sum_{i > r} mu_i J_i qd_i (w_{i-1} x z_r) . e_i.
    """
    model = rrc_arm(oblique=True, center=(0.05, -0.02, 0.1))
    plain = model.replace(joints=tuple(dataclasses.replace(joint, rotors=()) for joint in model.joints))
    worst = np.zeros(4)
    n = model.nv
    for q, v, _ in zip(*states(model, states_), strict=True):
        poses = [np.eye(3), *(model.frame_pose(q, f"link{i + 1}").rotation for i in range(n - 1))]
        z = np.array([R @ np.array(j.type.axis) for R, j in zip(poses, model.joints, strict=True)])  # type: ignore[attr-defined]
        e = np.array([R @ np.array(j.rotors[0].axis) for R, j in zip(poses, model.joints, strict=True)])
        ratio = np.array([model.value(j.rotors[0].ratio) for j in model.joints])
        gear = ratio * np.array([model.value(j.rotors[0].inertia) for j in model.joints])
        zero = np.zeros(n)
        w = np.zeros((n, 3))
        al = np.zeros((n, 3))
        for i in range(1, n):
            w[i] = model.frame_velocity(q, v, f"link{i}", reference="local_world_aligned")[:3]
            al[i] = model.frame_acceleration(q, v, zero, f"link{i}", reference="local_world_aligned")[:3]
        coupling = np.triu(z @ (gear * e.T), 1)
        A = plain.mass_matrix(q) + coupling + coupling.T + np.diag(ratio * gear)
        G = -gear * np.sum(al * e, axis=1)
        for r in range(n):
            for i in range(r + 1, n):
                G[r] += gear[i] * v[i] * np.cross(w[i], z[r]) @ e[i]
        bias = plain.bias_forces(q, v) - G
        K = plain.kinetic_energy(q, v) + np.sum(ratio * gear * v**2 / 2 + gear * v * np.sum(w * e, axis=1))
        H = plain.momentum(q, v, about="world")
        H[:3] += (gear * v) @ e
        pairs = (
            (model.mass_matrix(q), A),
            (model.bias_forces(q, v), bias),
            (model.kinetic_energy(q, v), K),
            (model.momentum(q, v, about="world"), H),
        )
        worst = np.maximum(worst, [np.max(np.abs(x - y)) / np.max(np.abs(y)) for x, y in pairs])
    for name, error in zip(("mass matrix", "bias", "kinetic energy", "momentum"), worst, strict=True):
        yield Check(f"{name}: relative difference", error, 0.0, ROUNDING, ROUNDING_REASON)
