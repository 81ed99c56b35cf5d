"""Papers of the 1989 conference on mass matrices and equations of trees and loops."""

import numpy as np

from alembert import library
from alembert.joints import Fixed, Free
from alembert.joints.closure import across
from alembert.model import WORLD, Inertia, ModelBuilder, Placement
from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import NIKRAVESH_AXIS, NIKRAVESH_PRINTED, nikravesh
from alembert.verify.papers import acc1989
from alembert.verify.programs import DynamicsProgram
from alembert.verify.random_models import ROUNDING_REASON


@case(
    source=acc1989(
        "Chou",
        "translational and rotational equations in absolute coordinates, spherical joints",
    ),
    kind="published",
    tags=("tree", "acc1989", "random"),
    parameters={"bodies": 10, "seed": 4},
    missing="""body data and results (lost figures); the equations are used on random bodies, the sign of the
    torque as derived""",
)
def chou_pendulum(program: DynamicsProgram, bodies: int, seed: int) -> Items:
    """Ten bodies on spherical joints: Newton's and Euler's equations of every body, with the forces in the joints."""
    model = library.random_tree(seed, bodies=bodies, kinds=("spherical",), branching=0.0)
    rng = np.random.default_rng(seed)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    a = program.load(model).forward_dynamics(q, v, np.zeros(model.nv))
    force, worst, size = np.zeros(3), 0.0, 0.0
    outboard = np.zeros(3)
    for k in reversed(range(bodies)):
        name, inertia = model.bodies[k].name, model.bodies[k].inertia
        X = model.frame_pose(q, name)
        com = np.array([model.value(x) for x in inertia.com])
        xx, xy, yy, xz, yz, zz = (model.value(x) for x in inertia.tensor)
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        V = model.frame_velocity(q, v, name)
        A = model.frame_acceleration(q, v, a, name, reference="local_world_aligned")
        w, al = V[:3], X.rotation.T @ A[:3]
        center = A[3:] + X.rotation @ (np.cross(al, com) + np.cross(w, np.cross(w, com)))
        z = model.value(inertia.mass) * (center - np.array(model.gravity))
        before = force
        force = force + z
        # moments about the centre of mass, in body axes: -com x force of the joint, and that of the next body
        arm = X.rotation.T @ (outboard - X.translation) - com
        torque = np.cross(-com, X.rotation.T @ force) - np.cross(arm, X.rotation.T @ before)
        residual = J @ al + np.cross(w, J @ w) - torque
        worst, size = max(worst, float(np.max(np.abs(residual)))), max(size, float(np.max(np.abs(force))))
        outboard = X.translation
    yield Check(
        "residual / force",
        worst / size,
        0.0,
        1e-12,
        "rounding times the condition of the mass matrix, some 1e3",
    )


@case(
    source=acc1989(
        "Fijany, Bejczy",
        "variant of Newton-Euler based algorithm, (25)-(30)",
    ),
    kind="published",
    tags=("tree", "acc1989", "random"),
    parameters={"joints": 6, "seed": 8},
)
def fijany_bejczy_mass_matrix(program: DynamicsProgram, joints: int, seed: int) -> Items:
    """The mass matrix of a random 6R arm, column by column from unit accelerations.

    (10) of the paper omits H x V' and (13) prints j + 1; (25)-(30) are right.
    """
    model = library.random_tree(seed, bodies=joints, kinds=("revolute",), branching=0.0)
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(3):
        q = model.random_configuration(rng)
        X = [model.frame_pose(q, body.name) for body in model.bodies]
        Z = [x.rotation @ np.array(j.type.axis) for x, j in zip(X, model.joints, strict=True)]  # type: ignore[attr-defined]
        O = [x.translation for x in X]
        A = np.zeros((joints, joints))
        for i in range(joints):
            F, N = np.zeros(3), np.zeros(3)
            for j in reversed(range(i, joints)):
                inertia = model.bodies[j].inertia
                m, R = model.value(inertia.mass), X[j].rotation
                c = R @ np.array([model.value(x) for x in inertia.com])
                xx, xy, yy, xz, yz, zz = (model.value(x) for x in inertia.tensor)
                K = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T + m * (
                    c @ c * np.eye(3) - np.outer(c, c)
                )
                V = np.cross(Z[i], O[j] - O[i])
                if j + 1 < joints:
                    N = N + np.cross(O[j + 1] - O[j], F)
                F = F + m * V + np.cross(Z[i], m * c)
                N = N + K @ Z[i] + m * np.cross(c, V)
                A[j, i] = A[i, j] = Z[j] @ N
        M = program.load(model).mass_matrix(q)
        worst = max(worst, float(np.max(np.abs(M - A)) / np.max(np.abs(A))))
    yield Check("relative difference", worst, 0.0, 1e-13, ROUNDING_REASON)


@case(
    source=acc1989(
        "Nikravesh, Gim, Arabyan, Rein",
        "matrices D*B, C and E",
    ),
    kind="published",
    tags=("loops", "acc1989"),
    missing="the geometry; the printed matrix D*B determines it",
)
def nikravesh_matrices() -> Items:
    """Constraint Jacobian, rank and velocity transformation of a closed loop cut at a revolute joint."""
    model = nikravesh()
    q = np.zeros(4)
    G = model.constraint_jacobian(q)
    basis = np.column_stack([*across(NIKRAVESH_AXIS), NIKRAVESH_AXIS])
    yield Check("rows of rotation", G[:2], np.zeros((2, 4)), 1e-15, "parallel axes stay parallel")
    yield Check("D*B", basis @ G[2:], NIKRAVESH_PRINTED, 1e-14, "entries are sqrt(2), printed as 1.4142")
    found = model.constraint_analysis(q)
    yield Check("rank, freedoms", (found.rank, found.degrees_of_freedom), (2, 2), 0, "integers")
    E = model.independent_coordinates(q, independent=["T1", "R2"]).E
    yield Check("E", E, [[1, 0], [0, 1], [0, -1], [0, 1]], 1e-14, "integers in print; rounding")


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
