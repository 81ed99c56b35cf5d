import re
from types import SimpleNamespace

import numpy as np
import pytest
from reference_kinematics import poses, velocities

from alembert import (
    ArgumentError,
    Fixed,
    Free,
    Gimbal,
    Inertia,
    ModelBuilder,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translational,
    UnsupportedError,
)
from alembert.model.io import convert
from alembert.model.io.mjcf import load_mjcf
from alembert.model.placement import Placement

pin = pytest.importorskip("pinocchio")
mujoco = pytest.importorskip("mujoco")

BODY = Inertia.box(1.0, (0.1, 0.2, 0.3), (0.1, 0.0, 0.2))
PLACE = (0.1, 0.2, 0.3)
# Alembert's joint, Pinocchio's
JOINTS = {
    "base": (Free(), pin.JointModelFreeFlyer()),
    "table": (Planar(), pin.JointModelPlanar()),
    "ball": (Spherical(), pin.JointModelSpherical()),
    "wheel": (Revolute((0.0, 1.0, 0.0)), pin.JointModelRUBY()),
    "hinge": (Revolute((1.0, 0.0, 0.0)), pin.JointModelRX()),
    "slide": (Prismatic((0.0, 0.0, 1.0)), pin.JointModelPZ()),
    "gimbal": (Gimbal("zyx"), pin.JointModelSphericalZYX()),
    "stage": (Translational(), pin.JointModelTranslation()),
}


def _chain(names):
    builder = ModelBuilder()
    parent = "world"
    for name in names:
        builder.body(name, BODY, joint=JOINTS[name][0], parent=parent, joint_name=name, placement=PLACE)
        builder.body(f"{name}+", BODY, joint=Fixed(), parent=name)
        parent = f"{name}+"
    return builder.build()


def _pin_chain(names, extra=()):
    model, parent = pin.Model(), 0
    for name in extra:
        model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), name)
    for name in names:
        parent = model.addJoint(parent, JOINTS[name][1], pin.SE3(np.eye(3), np.array(PLACE)), name)
    return model


def _branches(names):
    """Every joint on the world by itself, so that their order is free."""
    builder, peer = ModelBuilder(), pin.Model()
    for name in names:
        builder.body(name, BODY, joint=JOINTS[name][0], joint_name=name, placement=PLACE)
    for name in reversed(names):
        peer.addJoint(0, JOINTS[name][1], pin.SE3(np.eye(3), np.array(PLACE)), name)
    return builder.build(), peer


@pytest.mark.parametrize("name", JOINTS)
def test_each_joint_moves_as_pinocchios(name):
    model, peer = _chain([name]), _pin_chain([name])
    data = peer.createData()
    rng = np.random.default_rng(0)
    q, v, a = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
    q_pin, v_pin = convert.to_pinocchio(model, q, v, pin_model=peer)
    a_pin = convert.accelerations_to_pinocchio(model, q, v, a, pin_model=peer)
    pin.forwardKinematics(peer, data, q_pin, v_pin, a_pin)
    X, V = poses(model, q)[name], velocities(model, q, v)[name]
    np.testing.assert_allclose(X.rotation, data.oMi[1].rotation, atol=1e-14)
    np.testing.assert_allclose(X.translation, data.oMi[1].translation, atol=1e-14)
    np.testing.assert_allclose(V, np.r_[data.v[1].angular, data.v[1].linear], atol=1e-14)
    # the body's acceleration is the rate of its velocity along the motion; central difference, h^2 ~ 1e-10
    type, h = model.joints[0].type, 1e-5
    ahead, behind = (
        velocities(model, np.asarray(type.integrate(q, s * (v + s * a / 2))).ravel(), v + s * a)[name]
        for s in (h, -h)
    )
    np.testing.assert_allclose(
        (ahead - behind) / (2 * h), np.r_[data.a[1].angular, data.a[1].linear], atol=1e-7
    )


def test_joints_are_matched_by_name_and_batches_are_kept():
    names = list(JOINTS)
    model, peer = _branches(names)
    assert list(peer.names)[1:] == names[::-1]
    rng = np.random.default_rng(1)
    q = np.array([[model.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    v = rng.normal(size=(2, 3, model.nv))
    q_pin, v_pin = convert.to_pinocchio(model, q, v, pin_model=peer)
    assert q_pin.shape == (2, 3, peer.nq)
    assert v_pin.shape == (2, 3, peer.nv)
    back_q, back_v = convert.from_pinocchio(model, q_pin, v_pin, pin_model=peer)
    np.testing.assert_allclose(back_q, q, atol=1e-15)
    np.testing.assert_allclose(back_v, v, atol=1e-14)
    np.testing.assert_array_equal(convert.to_pinocchio(model, q, pin_model=peer), q_pin)
    np.testing.assert_array_equal(convert.from_pinocchio(model, q_pin, pin_model=peer), back_q)
    one = convert.to_pinocchio(model, q[1, 2], v[1, 2], pin_model=peer)
    np.testing.assert_array_equal(one[0], q_pin[1, 2])
    np.testing.assert_array_equal(one[1], v_pin[1, 2])


def test_one_configuration_serves_a_batch_of_speeds():
    model = _chain(["base", "hinge"])
    q, v = model.random_configuration(0), np.random.default_rng(0).normal(size=(5, model.nv))
    q_pin, v_pin = convert.to_pinocchio(model, q, v)
    assert q_pin.shape == (8,)
    assert v_pin.shape == (5, 7)
    back_q, back_v = convert.from_mujoco(model, *convert.to_mujoco(model, q, v))
    assert back_q.shape == (8,)
    np.testing.assert_allclose(back_v, v, atol=1e-14)


def test_without_a_pinocchio_model_the_order_is_the_same():
    names = ["base", "table", "ball", "hinge", "slide"]
    model, peer = _chain(names), _pin_chain(names)
    q, v = model.random_configuration(3), np.arange(model.nv, dtype=float)
    for ours, by_name in zip(
        convert.to_pinocchio(model, q, v), convert.to_pinocchio(model, q, v, pin_model=peer), strict=True
    ):
        np.testing.assert_array_equal(ours, by_name)


def test_efforts_convert_as_speeds_and_keep_power():
    model, peer = _branches(list(JOINTS))
    rng = np.random.default_rng(2)
    q, v, tau = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
    _, v_pin = convert.to_pinocchio(model, q, v, pin_model=peer)
    _, tau_pin = convert.to_pinocchio(model, q, tau, pin_model=peer)
    np.testing.assert_allclose(tau_pin @ v_pin, tau @ v, rtol=1e-14)
    moves = _chain(["base", "ball", "hinge"])
    q, v, tau = moves.random_configuration(rng), *rng.normal(size=(2, moves.nv))
    (_, v_mj), (_, tau_mj) = convert.to_mujoco(moves, q, v), convert.to_mujoco(moves, q, tau)
    np.testing.assert_allclose(tau_mj @ v_mj, tau @ v, rtol=1e-14)


def test_accelerations_go_there_and_back():
    model, peer = _branches(list(JOINTS))
    rng = np.random.default_rng(4)
    q, v, a = model.random_configuration(rng), *rng.normal(size=(2, 3, model.nv))
    there = convert.accelerations_to_pinocchio(model, q, v, a, pin_model=peer)
    q_pin, v_pin = convert.to_pinocchio(model, q, v, pin_model=peer)
    back = convert.accelerations_from_pinocchio(model, q_pin, v_pin, there, pin_model=peer)
    np.testing.assert_allclose(back, a, atol=1e-14)


def test_accelerations_of_mujoco():
    """The accelerations of a free box follow Newton's and Euler's laws in both conventions."""
    body = '<body name="a"><freejoint/><geom type="box" size=".1 .2 .3"/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    model, peer = load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    rng = np.random.default_rng(5)
    q, v = model.random_configuration(rng), rng.normal(size=6)
    data.qpos[:], data.qvel[:] = convert.to_mujoco(model, q, v, mj_model=peer)
    mujoco.mj_forward(peer, data)
    a = convert.accelerations_from_mujoco(model, data.qpos, data.qvel, data.qacc, mj_model=peer)
    # body axes: dv/dt = R^T g - w x v,  I dw/dt = -w x I w
    inertia, R = model.body("a").inertia.matrix(), poses(model, q)["a"].rotation
    w, u = v[:3], v[3:]
    np.testing.assert_allclose(a[3:], R.T @ model.gravity - np.cross(w, u), atol=1e-12)
    np.testing.assert_allclose(inertia @ a[:3], -np.cross(w, inertia @ w), atol=1e-11)
    np.testing.assert_allclose(convert.accelerations_to_mujoco(model, q, v, a), data.qacc, atol=1e-12)


def test_from_cosine_and_sine_within_half_a_turn():
    model, peer = _chain(["wheel"]), _pin_chain(["wheel"])
    q = convert.from_pinocchio(model, convert.to_pinocchio(model, [4.0], pin_model=peer), pin_model=peer)
    np.testing.assert_allclose(q, [4.0 - 2 * np.pi], rtol=1e-15)


# --- refused --------------------------------------------------------------------------------------


def test_shapes_are_checked():
    model = _chain(["base", "hinge"])
    for call, message in (
        (
            lambda: convert.to_pinocchio(model, np.zeros(7)),
            "to_pinocchio: q has shape (7,), expected (..., 8)",
        ),
        (
            lambda: convert.to_mujoco(model, np.zeros(8), np.zeros((2, 8))),
            "to_mujoco: v has shape (2, 8), expected (..., 7)",
        ),
        (lambda: convert.from_mujoco(model, 1.0), "from_mujoco: q has shape (), expected (..., 8)"),
        (
            lambda: convert.from_pinocchio(model, "x"),
            "from_pinocchio: q is str, expected an array of numbers",
        ),
        (
            lambda: convert.accelerations_to_mujoco(model, np.zeros(8), np.zeros(7), np.zeros(8)),
            "accelerations_to_mujoco: a has shape (8,), expected (..., 7)",
        ),
        (
            lambda: convert.from_pinocchio(model, np.zeros((3, 8)), np.zeros((2, 7))),
            "from_pinocchio: the batch dimensions do not go together: q (3,), v (2,)",
        ),
    ):
        with pytest.raises(ArgumentError, match="^" + re.escape(message) + "$"):
            call()


def test_models_must_have_the_same_joints():
    model = _chain(["hinge", "slide"])
    q = np.zeros(2)
    with pytest.raises(ArgumentError, match="the Pinocchio model has no joint 'slide'; there is hinge"):
        convert.to_pinocchio(model, q, pin_model=_pin_chain(["hinge"]))
    with pytest.raises(
        ArgumentError, match="the Pinocchio model has a joint 'more' that the model 'model' has not"
    ):
        convert.to_pinocchio(model, q, pin_model=_pin_chain(["hinge", "slide"], extra=["more"]))
    peer = pin.Model()
    peer.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "hinge")
    with pytest.raises(
        ArgumentError,
        match=re.escape(
            "joint 'hinge' (revolute) has 4 coordinates and 3 speeds in the Pinocchio model, expected 1 and 1"
        ),
    ):
        convert.to_pinocchio(_chain(["hinge"]), [0.0], pin_model=peer)
    text = '<mujoco><worldbody><body><joint name="h"/><geom size=".1"/></body></worldbody></mujoco>'
    with pytest.raises(ArgumentError, match="the MuJoCo model has no joint 'hinge'"):
        convert.to_mujoco(_chain(["hinge"]), [0.0], mj_model=mujoco.MjModel.from_xml_string(text))


def test_joints_that_mujoco_has_not():
    with pytest.raises(UnsupportedError, match="joint 'table' is planar; MuJoCo has no such joint"):
        convert.to_mujoco(_chain(["table"]), np.zeros(3))


def test_models_without_moving_joints():
    builder = ModelBuilder()
    builder.body("a", BODY, joint=Fixed())
    model = builder.build()
    q, v = convert.to_pinocchio(model, np.zeros(0), np.zeros((3, 0)))
    assert (q.shape, v.shape) == ((0,), (3, 0))
    nothing = SimpleNamespace(names=["universe"], joints=[None], nq=0, nv=0)
    assert convert.to_pinocchio(model, np.zeros((2, 0)), pin_model=nothing).shape == (2, 0)


def test_placed_free_joint_is_where_mujoco_has_it():
    """MuJoCo counts free joints from the world, whatever the placement; Alembert from the placement."""
    turn = np.array([0.5, -0.5, 0.5, 0.5])
    builder = ModelBuilder()
    builder.body("box", BODY, joint=Free(), joint_name="base", placement=Placement(PLACE, tuple(turn)))
    model = builder.build()
    text = '<mujoco><worldbody><body name="b"><freejoint name="base"/><geom size=".1"/></body></worldbody></mujoco>'
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    rng = np.random.default_rng(4)
    q, v, a = model.random_configuration(rng), *rng.normal(size=(2, 6))
    data.qpos, data.qvel = convert.to_mujoco(model, q, v, mj_model=peer)
    mujoco.mj_forward(peer, data)
    X, V = poses(model, q)["box"], velocities(model, q, v)["box"]
    np.testing.assert_allclose(data.xpos[1], X.translation, atol=1e-14)
    np.testing.assert_allclose(data.xmat[1].reshape(3, 3), X.rotation, atol=1e-14)
    np.testing.assert_allclose(data.qvel[:3], X.rotation @ V[3:], atol=1e-14)
    back_q, back_v = convert.from_mujoco(model, data.qpos, data.qvel, mj_model=peer)
    np.testing.assert_allclose(model.difference(q, back_q), 0, atol=1e-14)
    np.testing.assert_allclose(back_v, v, atol=1e-14)
    # the world's acceleration of the origin: central difference of the world's velocity, h^2 ~ 1e-10
    h = 1e-5
    ahead, behind = (
        convert.to_mujoco(model, model.integrate(q, s * (v + s * a / 2)), v + s * a, mj_model=peer)[1]
        for s in (h, -h)
    )
    converted = convert.accelerations_to_mujoco(model, q, v, a, mj_model=peer)
    np.testing.assert_allclose((ahead - behind) / (2 * h), converted, atol=1e-7)
