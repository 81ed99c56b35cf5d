"""Poses, velocities, accelerations and Jacobians of frames, in every reference."""

import numpy as np
import pytest
from dynamics_helpers import RATE, ROUNDING, rate_along, relative, states, tree

from alembert import Fixed, Inertia, ModelBuilder, Placement, Revolute, Spherical
from alembert.spatial import Pose

BATCH = 16
REFERENCES = ("local", "world", "local_world_aligned")
FRAMES = ("tip3", "tip8", "tip13", "body6", "on_fixed")


@pytest.fixture(scope="module")
def model():
    """All joint types; one frame sits with an offset on a body that is welded to another welded body."""
    base = tree("plain")
    welded = ModelBuilder("welded")
    turned = Placement.from_rpy((0.3, -0.7, 1.1), (0.1, 0.2, -0.3))
    welded.body("plate", Inertia.box(0.3, (0.1, 0.1, 0.1)), joint=Fixed(), placement=turned)
    welded.body("lamp", Inertia.box(0.2, (0.1, 0.1, 0.1)), joint=Fixed(), parent="plate", placement=turned)
    welded.frame("on_fixed", "lamp", Placement.from_rpy((1.0, 0.2, 0.4), (-0.2, 0.05, 0.4)))
    return base.attach(welded.build(), to="tip13")


def test_pose_of_a_frame_is_the_product_of_poses_along_the_path(model):
    q, _, _ = states(model, 3)
    for frame in FRAMES:
        found = model.frame_pose(q, frame)
        for k, x in enumerate(q):
            own = model.frame(frame)
            X, body = own.placement.pose({}), own.body
            while body != "world":
                joint = model.joints[model.body_index(body)]
                motion = joint.type.placement(x[model.q_slice(joint.name)])
                X = (
                    joint.placement.pose({})
                    @ Pose(np.asarray(motion.rotation), np.ravel(motion.translation))
                    @ X
                )
                body = joint.parent
            np.testing.assert_allclose(found.rotation[k], X.rotation, atol=ROUNDING)
            np.testing.assert_allclose(found.translation[k], np.ravel(X.translation), atol=20 * ROUNDING)


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("frame", FRAMES)
def test_velocity_is_jacobian_times_speeds(model, frame, reference):
    q, v, _ = states(model, BATCH)
    J = model.frame_jacobian(q, frame, reference=reference)
    V = model.frame_velocity(q, v, frame, reference=reference)
    assert J.shape == (BATCH, 6, model.nv)
    assert relative(V - (J @ v[..., None])[..., 0], np.linalg.norm(J, axis=-1) * 3) < ROUNDING


def test_velocity_is_the_rate_of_the_pose(model):
    q, v, _ = states(model, BATCH)
    for frame in FRAMES:
        X = model.frame_pose(q, frame)
        dR = rate_along(lambda q, v, f=frame: model.frame_pose(q, f).rotation, model, q, v, 0 * v)
        dp = rate_along(lambda q, v, f=frame: model.frame_pose(q, f).translation, model, q, v, 0 * v)
        W = dR @ np.swapaxes(X.rotation, -1, -2)  # skew(w) in world axes
        V = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0], *dp.T], axis=-1)
        found = model.frame_velocity(q, v, frame, reference="local_world_aligned")
        assert relative(found - V, V) < RATE


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("frame", FRAMES)
def test_acceleration_is_the_rate_of_the_velocity(model, frame, reference):
    q, v, a = states(model, BATCH)
    found = model.frame_acceleration(q, v, a, frame, reference=reference)
    velocity = lambda q, v: model.frame_velocity(q, v, frame, reference=reference)  # noqa: E731
    expected = rate_along(velocity, model, q, v, a)
    assert relative(found - expected, np.abs(expected) + np.abs(velocity(q, v))) < RATE
    J = model.frame_jacobian(q, frame, reference=reference)
    bias = model.frame_jacobian_rate(q, v, frame, reference=reference)
    assert relative(found - bias - (J @ a[..., None])[..., 0], np.abs(found) + np.abs(bias)) < ROUNDING


def test_references_are_the_same_motion(model):
    q, v, _ = states(model, BATCH)
    X = model.frame_pose(q, "on_fixed")
    local, world, aligned = (model.frame_velocity(q, v, "on_fixed", reference=r) for r in REFERENCES)
    turn = lambda x: (X.rotation @ x[..., None])[..., 0]  # noqa: E731
    size = np.abs(world).max()
    np.testing.assert_allclose(aligned[:, :3], turn(local[:, :3]), atol=ROUNDING * size)
    np.testing.assert_allclose(aligned[:, 3:], turn(local[:, 3:]), atol=ROUNDING * size)
    np.testing.assert_array_equal(world[:, :3], aligned[:, :3])
    at_origin = aligned[:, 3:] - np.cross(aligned[:, :3], X.translation)
    np.testing.assert_allclose(world[:, 3:], at_origin, atol=ROUNDING * size)


@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobian_of_a_point(model, reference):
    """The frame moved to a point of the body, axes unchanged."""
    q, v, _ = states(model, BATCH)
    point = np.array([0.3, -0.2, 0.5])
    J = model.frame_jacobian(q, "tip8", reference=reference, point=point)
    V = model.frame_velocity(q, v, "tip8", reference=reference)
    expected = V.copy()
    if reference != "world":  # about the world's origin a body has one velocity
        arm = np.tile(point, (BATCH, 1))
        if reference == "local_world_aligned":
            arm = (model.frame_pose(q, "tip8").rotation @ arm[..., None])[..., 0]
        expected[:, 3:] += np.cross(V[:, :3], arm)
    assert relative((J @ v[..., None])[..., 0] - expected, np.linalg.norm(J, axis=-1) * 3) < ROUNDING


def test_columns_of_joints_that_do_not_move_the_frame_are_zero(model):
    q, _, _ = states(model, 2)
    J = model.frame_jacobian(q, "tip8")
    inboard = set(model.path("world", "body8"))
    for joint in model.joints:
        columns = J[..., model.v_slice(joint.name)]
        assert np.any(columns) == (joint.child in inboard and joint.type.nv > 0)


def test_the_world_is_a_frame_at_rest(model):
    q, v, a = states(model, 2)
    X = model.frame_pose(q, "world")
    np.testing.assert_array_equal(X.rotation, np.broadcast_to(np.eye(3), (2, 3, 3)))
    np.testing.assert_array_equal(X.translation, np.zeros((2, 3)))
    for reference in REFERENCES:
        assert not np.any(model.frame_velocity(q, v, "world", reference=reference))
        assert not np.any(model.frame_acceleration(q, v, a, "world", reference=reference))
        assert not np.any(model.frame_jacobian(q, "world", reference=reference))


def test_frames_that_depend_on_parameters():
    builder = ModelBuilder("arm")
    length = builder.parameter("length", 0.5)
    builder.body("link", Inertia.box(1.0, (0.1, 0.1, 0.1)), joint=Revolute((0, 0, 1)))
    builder.body("hand", Inertia.box(1.0, (0.1, 0.1, 0.1)), joint=Spherical(), parent="link")
    builder.frame("end", "link", Placement((length, 0.0, 0.0)))
    model = builder.build()
    q = model.neutral()
    np.testing.assert_allclose(model.frame_pose(q, "end").translation, (0.5, 0, 0))
    np.testing.assert_allclose(model.frame_pose(q, "end", parameters={"length": 2.0}).translation, (2, 0, 0))
    V = model.frame_velocity(q, np.eye(4)[0], "end", parameters={"length": 2.0})
    np.testing.assert_allclose(V, (0, 0, 1, 0, 2, 0), atol=ROUNDING)
    J = model.frame_jacobian(q, "end", parameters={"length": 3.0}, reference="local_world_aligned")
    np.testing.assert_allclose(J[:, 0], (0, 0, 1, 0, 3, 0), atol=ROUNDING)
    # the wrench acts where the frame is for these parameters
    F = np.array([0, 0, 0, 0, 1.0, 0])
    tau = model.inverse_dynamics(q, np.zeros(4), np.zeros(4), wrenches={"end": F}, parameters={"length": 4.0})
    plain = model.inverse_dynamics(q, np.zeros(4), np.zeros(4))
    np.testing.assert_allclose(plain - tau, (4.0, 0, 0, 0), atol=100 * ROUNDING)
