"""Closed mechanisms for the tests: a random tree with one loop of every kind, all closed at one configuration, and
published planar ones. Dense solutions of the equations of motion to compare with."""

import functools

import numpy as np

from alembert import Inertia, ModelBuilder, Placement, Revolute, library
from alembert.joints import REGISTRY
from alembert.library.example_joints import example_joint
from alembert.model import Frame, LoopJoint
from alembert.spatial import Pose

EPS = float(np.finfo(float).eps)
KINDS = tuple(kind for kind in REGISTRY if kind not in ("custom", "free"))
BODIES = 9


@functools.cache
def closed():
    """The model and the configuration at which all its loops are closed; loop "revolute" is a revolute one, ..."""
    kinds = ("revolute", "spherical", "prismatic", "universal", "revolute")
    return close(library.random_tree(7, bodies=BODIES, kinds=kinds, floating=True), KINDS, seed=4)


def close(tree, kinds, seed=1):
    """A tree with loops of the given kinds, between random bodies (or a body and the world)."""
    rng = np.random.default_rng(seed)
    q = tree.random_configuration(rng)
    frames, loops = [], []
    for k, kind in enumerate(kinds):
        joint = example_joint(kind, rng)
        body_a, body_b = _apart(tree, q, rng, ground=k % 4 == 3)
        place = Placement.from_rpy(rng.uniform(-1, 1, 3), tuple(rng.uniform(-0.5, 0.5, 3)))
        q_c = joint.random(rng, np.full(joint.nq, -np.inf), np.full(joint.nq, np.inf))
        X_a = tree.frame_pose(q, body_a) @ place.pose() @ joint.placement(q_c)
        frames += [
            Frame(f"{kind}_a", body_a, place),
            Frame(f"{kind}_b", body_b, Placement.from_pose(tree.frame_pose(q, body_b).inverse() @ X_a)),
        ]
        loops.append(LoopJoint(kind, joint, f"{kind}_a", f"{kind}_b"))
    return tree.replace(frames=(*tree.frames, *frames), loops=tuple(loops)), q


def _apart(tree, q, rng, *, ground):
    """Two bodies that can move relative to each other in every way."""
    for _ in range(200):
        a, b = (str(name) for name in rng.permutation([body.name for body in tree.bodies])[:2])
        a = "world" if ground else a
        J_a, J_b = (tree.frame_jacobian(q, name, reference="world") for name in (a, b))
        if np.linalg.svd(J_b - J_a, compute_uv=False)[5] > 0.05:
            return a, b
    raise AssertionError("no two bodies of this tree can move freely relative to each other")


def possible_speeds(model, q, active=None, seed=0):
    """Random speeds with G v = 0, by the pseudo-inverse."""
    G = model.constraint_jacobian(q, active=active)
    v = np.random.default_rng(seed).normal(size=model.nv)
    for _ in range(2):
        v = v - np.linalg.lstsq(G, G @ v, rcond=1e-10)[0]
    return v


def tree_of(model):
    return model.replace(loops=(), couplings=(), equations=())


def dense_solution(model, q, v, tau, active=None, wrenches=None):
    """Accelerations and generalised constraint forces from [M G^T; G 0], by least squares."""
    tree = tree_of(model)
    G, gamma = model.constraint_jacobian(q, active=active), model.constraint_bias(q, v, active=active)
    M = tree.mass_matrix(q)
    m = len(G)
    root = np.linalg.cholesky(M)
    # in the coordinates root^T v the mass matrix is the identity, and the least-squares solution the right one
    H = np.linalg.solve(root, G.T).T
    free = np.linalg.solve(root, tau - tree.bias_forces(q, v, wrenches=wrenches))
    matrix = np.block([[np.eye(model.nv), -H.T], [H, np.zeros((m, m))]])
    x = np.linalg.lstsq(matrix, np.r_[free, -gamma], rcond=1e-11)[0]
    a = np.linalg.solve(root.T, x[: model.nv])
    return a, M @ a + tree.bias_forces(q, v, wrenches=wrenches) - tau


def opposite(model, q, loop, F):
    """The wrench on frame a that balances F on frame b."""
    X_a, X_b = (model.frame_pose(q, end) for end in (loop.frame_a, loop.frame_b))
    X = X_a.inverse() @ X_b
    return -np.r_[X.rotation @ F[:3] + np.cross(X.translation, X.rotation @ F[3:]), X.rotation @ F[3:]]


Z = (0.0, 0.0, 1.0)


@functools.cache
def four_bars(windows):
    """IFToMM A02: `windows` squares of 1 m bars side by side on the ground, in the plane of gravity."""
    builder = ModelBuilder(f"four_bars_{windows}", gravity=(0.0, -9.81, 0.0))
    for i in range(windows + 1):
        upright = Inertia.rod(1.0, (0, 0, 0), (0, 1, 0))
        builder.body(
            f"post{i}", upright, joint=Revolute(Z), joint_name=f"foot{i}", placement=(float(i), 0, 0)
        )
        builder.frame(f"top{i}", f"post{i}", (0.0, 1.0, 0.0))
    for i in range(windows):
        beam = Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
        builder.body(
            f"beam{i}",
            beam,
            joint=Revolute(Z),
            joint_name=f"knee{i}",
            parent=f"post{i}",
            placement=(0, 1.0, 0),
        )
        builder.frame(f"end{i}", f"beam{i}", (1.0, 0.0, 0.0))
        builder.loop(f"window{i}", Revolute(Z), f"top{i + 1}", f"end{i}")
    return builder.build()


def parallelogram(model, angle, rate):
    """All posts of `four_bars` at one angle (0: upright), beams level."""
    q = np.array([angle if name.startswith("foot") else -angle for name in model.coordinate_names])
    v = np.array([rate if name.startswith("foot") else -rate for name in model.speed_names])
    return q, v


def integrate(model, q, v, duration, steps, tau=None):
    """The classical Runge-Kutta method, each step followed by a projection."""
    h = duration / steps
    tau = np.zeros(model.nv) if tau is None else tau
    for _ in range(steps):
        a1 = model.forward_dynamics(q, v, tau)
        v2 = v + h / 2 * a1
        q2 = q + h / 2 * v
        a2 = model.forward_dynamics(q2, v2, tau)
        v3 = v + h / 2 * a2
        q3 = q + h / 2 * v2
        a3 = model.forward_dynamics(q3, v3, tau)
        v4 = v + h * a3
        q4 = q + h * v3
        a4 = model.forward_dynamics(q4, v4, tau)
        q = q + h / 6 * (v + 2 * v2 + 2 * v3 + v4)
        v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        state = model.project(q, v)
        q, v = state.q, state.v
    return q, v


def pose_error(X: Pose, Y: Pose) -> float:
    return float(np.max(np.abs(X.matrix() - Y.matrix())))
