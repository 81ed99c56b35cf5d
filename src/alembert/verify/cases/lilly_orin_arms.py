"""Lilly and Orin 1989."""

import numpy as np

from alembert import library
from alembert.joints import Fixed, Free
from alembert.model import WORLD, Inertia, ModelBuilder, Placement
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Lilly, Orin",
        "steps 1-4, the 6 x 6 form",
    ),
    kind="independent program",
    tags=("loops", "acc1989", "random"),
    parameters={"chains": 3, "links": 6, "seed": 3},
    slow=True,
)
def lilly_orin_arms(chains: int, links: int, seed: int) -> Items:
    """Three arms that hold an object rigidly: object, arms and grasp forces by the 6 x 6 form of the paper.

    With rigid grasps: Lambda_k = (J H^-1 J^T)^-1 of each arm,
    [M0 + sum J0^T Lambda J0] a0 = sum J0^T Lambda (x'' open - bias) - b0.
    """
    rng = np.random.default_rng(seed)
    arms = [
        library.random_tree(seed + k, bodies=links, kinds=("revolute",), branching=0.0) for k in range(chains)
    ]
    q_arms = [arm.random_configuration(rng) for arm in arms]
    builder = ModelBuilder("object")
    builder.body(
        "object", Inertia.box(4.0, (0.3, 0.4, 0.5), (0.02, 0.01, -0.03)), joint=Free(), joint_name="float"
    )
    lone = builder.build()
    q0 = lone.random_configuration(rng)
    X_0 = lone.frame_pose(q0, "object")
    # one model: the arms on one stand, and the object in all their hands
    together = ModelBuilder("together")
    together.body("object", lone.bodies[0].inertia, joint=Free(), joint_name="float")
    for k, (arm, q) in enumerate(zip(arms, q_arms, strict=True)):
        for body, joint in zip(arm.bodies, arm.joints, strict=True):
            parent = joint.parent if joint.parent == WORLD else f"a{k}_{joint.parent}"
            together.body(
                f"a{k}_{body.name}",
                body.inertia,
                joint=joint.type,
                joint_name=f"a{k}_{joint.name}",
                parent=parent,
                placement=joint.placement,
            )
        hand = f"a{k}_{arm.bodies[-1].name}"
        grasp = X_0.inverse() @ arm.frame_pose(q, arm.bodies[-1].name)
        together.frame(f"grasp{k}", "object", Placement.from_pose(grasp))
        together.loop(f"hold{k}", Fixed(), f"grasp{k}", hand)
    model = together.build()
    q = model.neutral()
    q[model.q_slice("float")] = q0
    v0 = 0.3 * rng.normal(size=6)
    v, tau = np.zeros(model.nv), rng.normal(size=model.nv)
    v[model.v_slice("float")] = v0
    tau[model.v_slice("float")] = 0.0
    J0 = lone.frame_jacobian(q0, "object", reference="world")
    d0 = lone.frame_acceleration(q0, v0, np.zeros(6), "object", reference="world")
    left, right = lone.mass_matrix(q0), -lone.bias_forces(q0, v0)
    parts = []
    for k, (arm, q_k) in enumerate(zip(arms, q_arms, strict=True)):
        hand = arm.bodies[-1].name
        s = [model.v_slice(f"a{k}_{joint.name}").start for joint in arm.joints]
        J = arm.frame_jacobian(q_k, hand, reference="world")
        v_k = np.linalg.solve(J, J0 @ v0)
        q[[model.q_slice(f"a{k}_{joint.name}").start for joint in arm.joints]] = q_k
        v[s] = v_k
        a_open = arm.forward_dynamics(q_k, v_k, tau[s])
        x_open = arm.frame_acceleration(q_k, v_k, a_open, hand, reference="world")
        Lambda = np.linalg.inv(J @ arm.solve_mass_matrix(q_k, J).T)
        left = left + J0.T @ Lambda @ J0
        right = right + J0.T @ Lambda @ (x_open - d0)
        parts.append((arm, q_k, J, a_open, x_open, Lambda, s))
    a0 = np.linalg.solve(left, right)
    found = model.constrained_dynamics(q, v, tau)
    scale = float(np.max(np.abs(found.accelerations)))
    reason = "rounding times the condition of the arms' Jacobians, some 1e3"
    yield Check(
        "object: difference / size",
        np.max(np.abs(found.accelerations[model.v_slice("float")] - a0)) / scale,
        0.0,
        1e-9,
        reason,
    )
    for k, (arm, q_k, J, a_open, x_open, Lambda, s) in enumerate(parts):
        f = Lambda @ (x_open - J0 @ a0 - d0)
        a = a_open - arm.solve_mass_matrix(q_k, J.T @ f)
        yield Check(
            f"arm {k + 1}: difference / size",
            np.max(np.abs(found.accelerations[s] - a)) / scale,
            0.0,
            1e-9,
            reason,
        )
