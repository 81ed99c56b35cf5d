"""Chou 1989."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989
from alembert.verify.programs import Program


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
def chou_pendulum(program: Program, bodies: int, seed: int) -> Items:
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
