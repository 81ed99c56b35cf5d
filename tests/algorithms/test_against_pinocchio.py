"""Against Pinocchio: random trees of every joint type it has, built in both, and robots from URDF files.

Pinocchio puts linear parts first and has other coordinates for some joints; v' = T(q) v takes speeds there,
so efforts and Jacobians map with T as well (see `alembert.model.io.convert`).
"""

import dataclasses
import functools
import warnings
from pathlib import Path

import numpy as np
import pytest
from dynamics_helpers import states

from alembert import library
from alembert.errors import AlembertWarning
from alembert.joints import Gimbal
from alembert.model.io.convert import accelerations_from_pinocchio, accelerations_to_pinocchio, to_pinocchio
from alembert.model.io.urdf import load_urdf

pin = pytest.importorskip("pinocchio")
from alembert.verify.in_pinocchio import JOINTS, in_pinocchio  # noqa: E402

# Both programs round in their own way; 1e-10 is 5e5 eps, room for the condition of the articulated inertias (the mass
# matrices of most models have condition numbers up to 1e5). Accelerations of models with light hands on heavy trunks (iCub:
# 3e7) are known to eps times the condition number only, whichever way it rounds.
AGREEMENT = 1e-10
STATES, FEW = 500, 100


def random_model(seed, *, floating=False, armature=False):
    kinds = [*JOINTS, "fixed"]
    model = library.random_tree(seed, bodies=13, kinds=kinds, floating=floating)
    if armature:
        rng = np.random.default_rng(seed)
        # not on planar joints: Pinocchio's speeds there are in other axes, and so would the armature be
        geared = {"revolute", "prismatic", "screw", "spherical", "translational", "universal", "gimbal"}
        model = model.replace(
            joints=tuple(
                dataclasses.replace(j, armature=tuple(rng.uniform(0.05, 0.4, size=j.type.nv)))
                if j.type.kind in geared
                else j
                for j in model.joints
            )
        )
    return model


ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
URDF = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "kinova": ("kinova_description/robots/kinova.urdf", False),  # continuous joints
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "solo12": ("solo_description/robots/solo12.urdf", True),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True),
    "icub": ("icub_description/robots/icub_reduced.urdf", True),
}


def robot(name):
    """Pinocchio's algorithms know neither the friction nor the mimic joints of the file."""
    path, floating = URDF[name]
    file = ROBOTS / path
    if not file.exists():
        pytest.skip(f"no {file.name}: example-robot-data is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        model = load_urdf(file, floating=floating)
    # not by model.replace, which checks the inertias anew
    joints = tuple(dataclasses.replace(joint, friction=None) for joint in model.joints)
    model = dataclasses.replace(model, joints=joints, couplings=())
    root = [pin.JointModelFreeFlyer()] if floating else []
    return model, pin.buildModelFromUrdf(str(file), *root)


@functools.cache
def pair(name):
    if name in URDF:
        return robot(name)
    model = random_model(int(name.split()[-1]), floating="floating" in name, armature="geared" in name)
    return model, in_pinocchio(model)


RANDOM = ("fixed base 21", "geared floating base 22")
ALL = (*RANDOM, *URDF)


@pytest.fixture(params=ALL)
def both(request):
    return pair(request.param)


def speeds_there(model, other, q):
    """T(q), nv x nv."""
    _, columns = to_pinocchio(model, q, np.eye(model.nv), pin_model=other)
    return columns.T


def error(found, expected):
    """Relative to the size of the vector or matrix, state by state."""
    axes = tuple(range(1, np.ndim(found)))
    return float(np.max(np.abs(found - expected).max(axis=axes) / np.abs(expected).max(axis=axes)))


# --- tests -----------------------------------------------------------------------------------------------


def test_all_of_its_joint_types_are_met():
    kinds = {joint.type.kind for name in RANDOM for joint in pair(name)[0].joints}
    assert kinds == {*JOINTS, "fixed"}
    sequences = {
        j.type.sequence for name in RANDOM for j in pair(name)[0].joints if isinstance(j.type, Gimbal)
    }
    assert sequences


def test_forward_and_inverse_dynamics(both):
    model, other = both
    q, v, x = states(model, STATES)
    data = other.createData()
    qp, vp = to_pinocchio(model, q, v, pin_model=other)
    _, taup = to_pinocchio(model, q, x, pin_model=other)
    a = model.forward_dynamics(q, v, x)
    theirs = np.array([pin.aba(other, data, *s).copy() for s in zip(qp, vp, taup, strict=True)])
    condition = np.linalg.cond(model.mass_matrix(q)).max()
    known = max(AGREEMENT, np.finfo(float).eps * condition)
    assert error(accelerations_to_pinocchio(model, q, v, a, pin_model=other), theirs) < known
    back = accelerations_from_pinocchio(model, qp, vp, theirs, pin_model=other)
    assert error(a, back) < known
    ap = accelerations_to_pinocchio(model, q, v, x, pin_model=other)
    theirs = np.array([pin.rnea(other, data, *s).copy() for s in zip(qp, vp, ap, strict=True)])
    tau = model.inverse_dynamics(q, v, x)
    _, ours = to_pinocchio(model, q, tau, pin_model=other)
    assert error(ours, theirs) < AGREEMENT


def test_mass_matrix_momentum_and_energy(both):
    model, other = both
    q, v, _ = states(model, FEW)
    data = other.createData()
    qp, vp = to_pinocchio(model, q, v, pin_model=other)
    M, c = model.mass_matrix(q), model.center_of_mass(q)
    A, h = model.momentum_matrix(q), model.momentum(q, v)
    T, U = model.kinetic_energy(q, v), model.potential_energy(q)
    theirs = {name: [] for name in ("M", "c", "A", "h", "T", "U")}
    for k in range(FEW):
        turn = speeds_there(model, other, q[k])
        full = pin.crba(other, data, qp[k])
        full = np.triu(full) + np.triu(full, 1).T
        theirs["M"].append(turn.T @ full @ turn)
        theirs["c"].append(pin.centerOfMass(other, data, qp[k]).copy())
        swap = [3, 4, 5, 0, 1, 2]
        theirs["A"].append(pin.computeCentroidalMap(other, data, qp[k])[swap] @ turn)
        theirs["h"].append(pin.computeCentroidalMomentum(other, data, qp[k], vp[k]).vector[swap])
        theirs["T"].append(pin.computeKineticEnergy(other, data, qp[k], vp[k]))
        theirs["U"].append(pin.computePotentialEnergy(other, data, qp[k]))
    assert error(M, np.array(theirs["M"])) < AGREEMENT
    assert error(A, np.array(theirs["A"])) < AGREEMENT
    assert error(h, np.array(theirs["h"])) < AGREEMENT
    moving = sum(ten[0] for ten in model.compute.tree.ten_vectors)
    np.testing.assert_allclose(c, theirs["c"], rtol=0, atol=AGREEMENT * np.abs(c).max())
    np.testing.assert_allclose(U, theirs["U"], rtol=0, atol=AGREEMENT * moving * 9.81)
    np.testing.assert_allclose(T, np.einsum("ki,kij,kj->k", v, np.array(theirs["M"]), v) / 2, rtol=AGREEMENT)
    if not np.any(
        other.armature
    ):  # their energy (4.1) leaves out the armature of some joint types, unlike their M
        np.testing.assert_allclose(T, theirs["T"], rtol=AGREEMENT)


REFERENCES = {
    "local": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "local_world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


@pytest.mark.parametrize("name", [*RANDOM, "talos"])
def test_frames(name):
    model, other = pair(name)
    frames = [frame.name for frame in model.frames][-3:] or ["gripper_left_base_link", "leg_right_6_link"]
    q, v, a = states(model, 20)
    data = other.createData()
    qp, vp = to_pinocchio(model, q, v, pin_model=other)
    ap = accelerations_to_pinocchio(model, q, v, a, pin_model=other)
    swap = [3, 4, 5, 0, 1, 2]
    for frame in frames:
        index = other.getFrameId(frame)
        poses = model.frame_pose(q, frame)
        for reference, theirs in REFERENCES.items():
            J = model.frame_jacobian(q, frame, reference=reference)
            V = model.frame_velocity(q, v, frame, reference=reference)
            A = model.frame_acceleration(q, v, a, frame, reference=reference)
            size = np.abs(V).max(), np.abs(A).max()
            for k in range(len(q)):
                pin.forwardKinematics(other, data, qp[k], vp[k], ap[k])
                expected = pin.computeFrameJacobian(other, data, qp[k], index, theirs)[swap]
                expected = expected @ speeds_there(model, other, q[k])
                np.testing.assert_allclose(J[k], expected, rtol=0, atol=AGREEMENT * np.abs(expected).max())
                X = pin.updateFramePlacement(other, data, index)
                np.testing.assert_allclose(poses.rotation[k], X.rotation, atol=AGREEMENT)
                np.testing.assert_allclose(poses.translation[k], X.translation, atol=AGREEMENT * 10)
                theirs_V = pin.getFrameVelocity(other, data, index, theirs).vector[swap]
                np.testing.assert_allclose(V[k], theirs_V, rtol=0, atol=AGREEMENT * size[0])
                classical = reference == "local_world_aligned"
                get = pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
                theirs_A = get(other, data, index, theirs).vector[swap]
                np.testing.assert_allclose(A[k], theirs_A, rtol=0, atol=AGREEMENT * size[1])


def test_configurations():
    """integrate and difference are theirs (planar joints apart, which move along a screw there)."""
    model, other = pair("talos")
    q, v, _ = states(model, 50)
    qp, vp = to_pinocchio(model, q, v, pin_model=other)
    ours = to_pinocchio(model, model.integrate(q, v), pin_model=other)
    for k in range(50):
        moved = pin.integrate(other, qp[k], vp[k])
        np.testing.assert_allclose(
            pin.difference(other, moved, ours[k]), np.zeros(model.nv), atol=100 * AGREEMENT
        )


def test_long_chain():
    """150 links: compiled as loops over the bodies. Accelerations are compared by the efforts that they take, since
    the condition of the mass matrix grows with the cube of the length."""
    model = library.chain(150)
    other = in_pinocchio(model)
    data = other.createData()
    q, v, x = states(model, 50)
    theirs = np.array([pin.rnea(other, data, *s).copy() for s in zip(q, v, x, strict=True)])
    assert error(model.inverse_dynamics(q, v, x), theirs) < AGREEMENT
    a = model.forward_dynamics(q, v, x)
    back = np.array([pin.rnea(other, data, *s).copy() for s in zip(q, v, a, strict=True)])
    terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v))
    assert np.max(np.abs(back - x).max(axis=-1) / terms.max(axis=-1)) < AGREEMENT
    M = pin.crba(other, data, q[0])
    M = np.triu(M) + np.triu(M, 1).T
    np.testing.assert_allclose(model.mass_matrix(q[0]), M, rtol=0, atol=AGREEMENT * np.abs(M).max())
