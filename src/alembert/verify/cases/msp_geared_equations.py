"""Chen and Ou 1989, equations (44)-(46)."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import RRC_MISSING, rrc_arm
from alembert.verify.papers import acc1989
from alembert.verify.random_models import ROUNDING, ROUNDING_REASON, states


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
    import dataclasses

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
