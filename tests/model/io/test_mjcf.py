"""MJCF against MuJoCo: poses, velocities, mass matrices, potential energy and constraint residuals."""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from reference_kinematics import poses, velocities

from alembert import (
    Actuator,
    AlembertWarning,
    ArgumentError,
    Coupling,
    FileError,
    Fixed,
    Free,
    Friction,
    Limits,
    Prismatic,
    Revolute,
    Sensor,
    Spherical,
    Spring,
    UnsupportedError,
)
from alembert.model.elements import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere
from alembert.model.io import mjcf_source, xml
from alembert.model.io.convert import accelerations_from_mujoco, from_mujoco, to_mujoco
from alembert.model.io.mjcf import keyframes, load_mjcf
from alembert.model.io.mjcf_source import joint_names

mujoco = pytest.importorskip("mujoco")

GEOM = '<geom size=".1 .2 .3" type="box" pos=".1 -.2 .05" euler="10 20 30" contype="0" conaffinity="0"/>'


def document(body, rest="", option=""):
    return f'<mujoco model="m">\n<option {option}/>\n<worldbody>\n{body}\n</worldbody>\n{rest}\n</mujoco>'


AT = 'name="a" pos="1 2 3" euler="10 20 30"'
CHAINS = {
    "hinge": f'<body {AT}><joint axis="1 2 3"/>{GEOM}</body>',
    "hinge with anchor": f'<body {AT}><joint axis="1 2 3" pos=".1 .2 .3"/>{GEOM}</body>',
    "hinge with anchor and ref": f"""<body {AT}>
        <joint name="j" axis="1 2 3" pos=".1 .2 .3" ref="40"/>{GEOM}</body>""",
    "slide with ref": f'<body {AT}><joint type="slide" axis="1 2 3" pos="1 1 1" ref=".3"/>{GEOM}</body>',
    "ball with anchor": f'<body {AT}><joint type="ball" pos=".1 .2 .3"/>{GEOM}</body>',
    "free": f"<body {AT}><freejoint/>{GEOM}</body>",
    "several joints": f"""<body {AT}>
        <joint name="x" type="slide" axis="1 0 0" ref="1"/>
        <joint name="h" axis="0 1 1" pos="0 .5 0" ref="20"/>
        <joint name="y" type="slide" axis="0 1 0"/>
        <joint name="k" axis="1 0 1" pos=".2 0 0"/>{GEOM}</body>""",
    "slides and ball": f"""<body name="a"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
        <joint type="ball" pos="0 0 .2"/>{GEOM}</body>""",
    "tree": f"""<body name="base" pos="0 0 1"><freejoint name="root"/>{GEOM}
        <body name="left" pos=".1 .2 0" quat=".8 0 .6 0">
            <joint name="l" pos=".1 0 0" ref="10" axis="0 1 0"/>{GEOM}
            <body name="plate" pos="0 0 .3" euler="5 0 0">{GEOM}
                <body pos="0 .1 .1"><joint type="ball"/>{GEOM}</body></body></body>
        <body name="right" pos="-.1 .2 0"><joint name="r1"/><joint name="r2" axis="1 0 0" pos="0 0 .1"/>{GEOM}
            <site name="tip" pos="0 0 .3" euler="0 30 0"/></body></body>
        <body name="other" pos="3 0 0">{GEOM}<body name="rider"><joint/>{GEOM}</body></body>
        <body name="second"><freejoint/>{GEOM}</body>""",
}
ARMS = {name: document(body) for name, body in CHAINS.items()}


def _mass_matrix(model, q):
    """sum J^T M J by the kinematics of the test; armature is added."""
    M = np.zeros((model.nv, model.nv))
    J = [velocities(model, q, e) for e in np.eye(model.nv)]
    for body in model.bodies:
        columns = np.array([V[body.name] for V in J]).T.reshape(6, model.nv)
        m, I, c = body.inertia.mass, body.inertia.matrix(), np.array(body.inertia.com)
        at_com = columns[3:] + np.cross(columns[:3].T, c).T
        M += columns[:3].T @ I @ columns[:3] + m * at_com.T @ at_com
    return M


@pytest.mark.parametrize("text", ARMS.values(), ids=ARMS.keys())
def test_agrees_with_mujoco(text):
    model, peer = load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    rng = np.random.default_rng(1)
    assert [joint.name for joint in model.joints if joint.type.nv] == joint_names(peer)
    np.testing.assert_allclose(model.mass, peer.body_mass.sum(), rtol=1e-15)
    names = [peer.body(i).name or f"body{i}" for i in range(peer.nbody)]
    for _ in range(3):
        q, v = model.random_configuration(rng), rng.normal(size=model.nv)
        for given in ({}, {"mj_model": peer}):
            data.qpos[:], data.qvel[:] = to_mujoco(model, q, v, **given)
            back_q, back_v = from_mujoco(model, data.qpos, data.qvel, **given)
            np.testing.assert_allclose(back_q, q, atol=1e-15)
            np.testing.assert_allclose(back_v, v, atol=1e-14)
        mujoco.mj_forward(peer, data)
        X, V = poses(model, q), velocities(model, q, v)
        for i, name in enumerate(names):
            assert model.frame(name).placement.is_identity
            np.testing.assert_allclose(X[name].translation, data.xpos[i], atol=1e-12)
            np.testing.assert_allclose(X[name].rotation, data.xmat[i].reshape(3, 3), atol=1e-12)
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(peer, data, mujoco.mjtObj.mjOBJ_XBODY, i, velocity, 1)
            np.testing.assert_allclose(V[name], velocity, atol=1e-12)
        for i in range(peer.nsite):
            name = peer.site(i).name
            np.testing.assert_allclose(X[name].translation, data.site_xpos[i], atol=1e-12)
            np.testing.assert_allclose(X[name].rotation, data.site_xmat[i].reshape(3, 3), atol=1e-12)
        # kinetic energy v^T M v / 2 of every pair of speeds: M_mujoco = T M T^T with v' = T v
        M_there = np.zeros((peer.nv, peer.nv))
        mujoco.mj_fullM(peer, data, M_there)
        T = to_mujoco(model, q, np.eye(model.nv))[1].T
        np.testing.assert_allclose(T.T @ M_there @ T, _mass_matrix(model, q), rtol=1e-11, atol=1e-10)
        mujoco.mj_energyPos(peer, data)
        height = sum(b.inertia.mass * X[b.name].point(np.array(b.inertia.com))[2] for b in model.bodies)
        np.testing.assert_allclose(9.81 * height, data.energy[0], rtol=1e-11, atol=1e-9)


FORCES = document(
    f"""<body name="a"><joint ref="10" armature=".1" damping=".2" stiffness="4" springref="30" pos=".1 .2 .3"
    axis="0 1 1"/>{GEOM}<body><joint type="slide" damping="1" stiffness="3" springref=".2" ref=".1"/>{GEOM}
    <body pos="0 0 .2"><joint type="ball" armature=".1" damping=".2" stiffness="3" pos="0 .1 0"/>{GEOM}</body>
    </body></body><body><joint type="free" damping=".5"/>{GEOM}</body>""",
    option='gravity="1 2 -9"',
)


@pytest.mark.parametrize(
    "text", [ARMS["tree"], ARMS["several joints"], FORCES], ids=["tree", "several", "forces"]
)
def test_accelerates_as_in_mujoco(text):
    """Springs, dampers, armature, reference positions and anchors together, in forward dynamics."""
    model, peer = load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    rng = np.random.default_rng(2)
    q, v, tau = model.random_configuration(rng), *rng.normal(size=(2, model.nv))
    data.qpos[:], data.qvel[:] = to_mujoco(model, q, v)
    data.qfrc_applied[:] = to_mujoco(model, q, tau)[1]
    mujoco.mj_forward(peer, data)
    expected = accelerations_from_mujoco(model, data.qpos, data.qvel, data.qacc)
    # relative to the largest: the condition number of these mass matrices is below 1e3
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, tau), expected, atol=1e-12 * np.abs(expected).max()
    )


def test_chains_of_joints_and_their_names():
    model = load_mjcf(ARMS["several joints"])
    assert [(j.name, j.type.kind, j.parent, j.child) for j in model.joints] == [
        ("x", "prismatic", "world", "a/x"),
        ("h", "revolute", "a/x", "a/h"),
        ("y", "prismatic", "a/h", "a/y"),
        ("k", "revolute", "a/y", "a/k"),
        ("a/anchor", "fixed", "a/k", "a"),
    ]
    assert [body.name for body in model.bodies if body.inertia.mass] == ["a"]
    model = load_mjcf(ARMS["slides and ball"])
    assert [j.name for j in model.joints] == ["a_joint0", "a_joint1", "a_joint2", "a/anchor"]


def test_unnamed_things_get_names_that_are_free():
    text = document(
        f'<body name="a"><joint/>{GEOM}<body name="b"><joint name="a_joint"/>{GEOM}</body>'
        f'<body name="c">{GEOM}</body><body name="d"><joint name="c_joint"/>{GEOM}</body></body>'
    )
    assert [j.name for j in load_mjcf(text).joints] == ["a_joint_", "a_joint", "c_joint_", "c_joint"]


def test_joint_options():
    text = document(
        f"""<body name="a"><joint name="h" ref="10" range="-90 180" armature=".1" damping=".2"
        frictionloss=".3" stiffness="4" springref="30" actuatorfrcrange="-5 5" axis="0 0 1"/>{GEOM}
        <body name="b"><joint name="s" type="slide" axis="1 0 0"/>{GEOM}
        <body name="c"><joint name="b" type="ball" armature=".1" damping=".2" stiffness="3"/>
        {GEOM}</body></body></body>
        <body name="f"><joint name="free" type="free" damping=".5"/>{GEOM}</body>"""
    )
    model = load_mjcf(text)
    hinge = model.joint("h")
    assert hinge.type == Revolute((0.0, 0.0, 1.0))
    np.testing.assert_allclose(hinge.limits.lower + hinge.limits.upper, (-np.pi / 2, np.pi), rtol=1e-15)
    assert hinge.limits.effort == (5.0,)
    assert hinge.spring == Spring(4.0, np.radians(30))
    assert hinge.friction == Friction(0.2, 0.3)
    assert hinge.armature == (0.1,)
    slide = model.joint("s")
    assert slide.type == Prismatic((1.0, 0.0, 0.0))
    assert (slide.limits, slide.spring, slide.friction, slide.armature) == (Limits(), None, None, ())
    ball = model.joint("b")
    assert ball.type == Spherical()
    assert ball.spring == Spring((3.0,) * 3, (1.0, 0.0, 0.0, 0.0))
    assert ball.friction == Friction((0.2,) * 3)
    assert ball.armature == (0.1,) * 3
    assert model.joint("free").type == Free()
    assert model.joint("free").friction == Friction((0.5,) * 6)
    assert model.name == "m"


def test_gravity_and_disabled_parts():
    joint = '<joint name="h" damping="1" stiffness="2" frictionloss="3" range="0 1"/>'
    body = f'<body name="a">{joint}{GEOM}</body><body name="b"><joint/>{GEOM}</body>'
    rest = """<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>
        <actuator><motor joint="h"/></actuator>"""
    assert load_mjcf(document(body, option='gravity="1 2 3"')).gravity == (1, 2, 3)
    flags = '<option><flag {}="disable"/></option>'
    load = lambda name: load_mjcf(document(body, rest + flags.format(name)))  # noqa: E731
    full = load_mjcf(document(body, rest))
    assert full.joint("h").friction == Friction(1.0, 3.0)
    assert (len(full.loops), len(full.actuators)) == (1, 1)
    assert load("gravity").gravity == (0, 0, 0)
    assert load("damper").joint("h").friction == Friction((), 3.0)
    assert load("frictionloss").joint("h").friction == Friction(1.0)
    assert load("spring").joint("h").spring is None
    assert load("limit").joint("h").limits == Limits()
    assert load("equality").loops == ()
    assert load("actuation").actuators == ()
    constraint = load("constraint")
    assert constraint.joint("h").friction == Friction(1.0)
    assert constraint.loops == ()


# --- equalities -----------------------------------------------------------------------------------

TWO = f"""<body name="a" pos="0 0 1"><freejoint/>{GEOM}<site name="sa" pos="0 .1 0" euler="10 0 0"/></body>
    <body name="b" pos="0 1 0"><joint type="ball"/>{GEOM}
        <site name="sb" pos="0 0 .2" euler="0 20 0"/></body>"""


@pytest.mark.parametrize(
    "equality",
    [
        '<connect name="e" body1="a" body2="b" anchor=".1 .2 .3"/>',
        '<connect name="e" body1="a" anchor=".1 .2 .3"/>',
        '<connect name="e" site1="sa" site2="sb"/>',
        '<weld name="e" body1="a" body2="b"/>',
        '<weld name="e" body1="a" body2="b" anchor=".1 .2 .3" relpose="1 2 3 .8 0 .6 0"/>',
        '<weld name="e" body1="b"/>',
        '<weld name="e" site1="sa" site2="sb"/>',
    ],
)
def test_loops_close_where_mujocos_do(equality):
    """MuJoCo's residual is the distance of the frames; for a weld also the sine of half the angle."""
    text = document(TWO, f"<equality>{equality}</equality>")
    model, peer = load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    (loop,) = model.loops
    weld = equality.startswith("<weld")
    assert loop.name == "e"
    assert loop.type == (Fixed() if weld else Spherical())
    for seed in range(3):
        q = model.random_configuration(seed)
        data.qpos[:] = to_mujoco(model, q)
        mujoco.mj_forward(peer, data)
        X = poses(model, q)
        X_A, X_B = X[loop.frame_a], X[loop.frame_b]
        np.testing.assert_allclose(X_A.translation - X_B.translation, data.efc_pos[:3], atol=1e-12)
        if weld:  # |vector part of the relative quaternion| = |sin(angle/2)| = sqrt((3 - trace)/4)
            sine = np.sqrt((3 - np.trace(X_A.rotation.T @ X_B.rotation)) / 4)
            np.testing.assert_allclose(sine, np.linalg.norm(data.efc_pos[3:6]), atol=1e-9)


def test_joint_equalities_become_couplings():
    body = (
        f'<body name="a"><joint name="x" ref="30"/>{GEOM}<body><joint name="y" ref="20"/>{GEOM}</body></body>'
    )
    equality = '<equality><joint name="e" joint1="y" joint2="x" polycoef=".1 .2"/></equality>'
    model = load_mjcf(document(body, equality))
    (coupling,) = model.couplings
    assert (coupling.joint, coupling.masters) == ("y", ("x",))
    q_x = 0.7  # y - y0 = .1 + .2 (x - x0)
    expected = np.radians(20) + 0.1 + 0.2 * (q_x - np.radians(30))
    np.testing.assert_allclose(coupling.offset + coupling.ratios[0] * q_x, expected, rtol=1e-14)
    constant = load_mjcf(document(body, '<equality><joint name="e" joint1="y" polycoef=".1"/></equality>'))
    assert constant.couplings == (Coupling("e", "y", (), (), np.radians(20) + 0.1),)


LINKED = f"""<body name="a"><joint name="x" type="slide" axis="1 0 0" ref=".2"/>{GEOM}<site name="p" pos=".1 .2 .3"/>
    <body pos="0 0 .5"><joint name="y" ref="20" axis="0 1 1"/>{GEOM}<site name="q" pos=".3 0 .3"/></body></body>
    <body name="c" pos="0 1 0"><joint name="z" axis="1 1 0"/>{GEOM}<site name="r" pos="0 .4 .3"/></body>"""
TENDONS = """<tendon><fixed name="f"><joint joint="x" coef="2"/><joint joint="y" coef="-.5"/></fixed>
    <spatial name="s"><site site="p"/><site site="r"/></spatial>
    <spatial name="l"><site site="p"/><site site="q"/><site site="r"/></spatial></tendon>"""


@pytest.mark.parametrize(
    ("equality", "kind"),
    [
        ('<joint name="e" joint1="y" joint2="x" polycoef=".1 .2 .3 -.1 .2"/>', "equation"),
        ('<tendon name="e" tendon1="f" polycoef=".1"/>', "equation"),
        ('<tendon name="e" tendon1="s" polycoef=".1"/>', "distance"),
        ('<tendon name="e" tendon1="l" polycoef="-.1"/>', "equation"),
        ('<tendon name="e" tendon1="l" tendon2="f" polycoef="0 .5 .2"/>', "equation"),
    ],
)
def test_equalities_of_joints_and_tendons_are_those_of_mujoco(equality, kind):
    """The same residual and the same gradient at any configuration."""
    text = document(LINKED, f"{TENDONS}<equality>{equality}</equality>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)  # the tendons that are not used
        model = load_mjcf(text)
    assert len(model.equations if kind == "equation" else model.loops) == 1
    peer = mujoco.MjModel.from_xml_string(text)
    peer.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(peer)
    for seed in range(3):
        q = model.random_configuration(seed)
        data.qpos[:] = to_mujoco(model, q)
        mujoco.mj_forward(peer, data)
        np.testing.assert_allclose(model.constraint_residual(q), data.efc_pos[:1], atol=1e-12)
        np.testing.assert_allclose(model.constraint_jacobian(q).ravel(), data.efc_J[: model.nv], atol=1e-12)


# --- actuators, sensors, shapes -------------------------------------------------------------------

DRIVEN = f"""<body name="a"><joint name="h"/>{GEOM}
    <body name="b"><joint name="b" type="ball"/>{GEOM}</body></body>"""
TENDON = '<tendon><fixed name="t" {}><joint joint="h" coef="1"/></fixed></tendon>'
DRIVEN += f'<body name="f"><freejoint name="f"/>{GEOM}</body>'


def test_motors():
    motors = """<actuator><motor name="m1" joint="h" gear="3" ctrlrange="-1 2"/>
        <general name="m2" joint="h" gear="2" gainprm="-4" forcerange="-8 4" ctrlrange="-1.5 9"/>
        <motor name="m3" joint="b" gear="0 5 0"/><motor name="m4" joint="f" gear="0 0 0 0 0 6"/>
        <motor name="off" joint="h" group="3"/></actuator>"""
    model = load_mjcf(document(DRIVEN, motors, option='actuatorgroupdisable="3"'))
    assert model.actuators == (
        Actuator("m1", "h", 0, 3.0, (-1.0, 2.0)),
        Actuator("m2", "h", 0, -8.0, (-1.0, 2.0)),
        Actuator("m3", "b", 1, 5.0),
        Actuator("m4", "f", 2, 6.0),
    )
    data = mujoco.MjData(peer := mujoco.MjModel.from_xml_string(document(DRIVEN, motors)))
    data.qpos[:] = to_mujoco(model, q := model.random_configuration(0))
    data.ctrl[:4] = 1.0, 2.0, 0.5, 0.25
    mujoco.mj_forward(peer, data)
    tau = np.zeros(model.nv)
    for actuator, ctrl in zip(model.actuators, data.ctrl, strict=False):
        tau[model.v_slice(actuator.joint).start + actuator.dof] += actuator.gear * ctrl
    np.testing.assert_allclose(to_mujoco(model, q, tau)[1], data.qfrc_actuator, atol=1e-12)


@pytest.mark.parametrize(
    ("actuator", "problem"),
    [
        ('<position name="n" joint="h"/>', "bias affine (a servo of position or velocity)"),
        ('<velocity name="n" joint="h"/>', "bias affine (a servo of position or velocity)"),
        ('<muscle name="n" joint="h" lengthrange="0 1"/>', "dynamics muscle"),
        ('<general name="n" joint="h" gaintype="affine"/>', "gain affine"),
        ('<motor name="n" jointinparent="b" gear="1"/>', "transmission jointinparent"),
        ('<motor name="n" joint="b" gear="1 2 3"/>', "gear (1.0, 2.0, 3.0) on several degrees of freedom"),
        ('<motor name="n" joint="f" gear="1 0 0 0 0 0"/>', "a force in world axes"),
        ('<motor name="n" joint="h" damping="1"/>', "damping"),
        ('<motor name="n" joint="h" armature="1"/>', "armature"),
        ('<motor name="n" tendon="t"/>', "transmission tendon"),
    ],
)
def test_other_actuators_are_refused_or_left_out(actuator, problem):
    tendon = TENDON.format("") if "tendon" in actuator else ""
    text = document(DRIVEN, f"<actuator>{actuator}</actuator>{tendon}")
    message = (
        f"<text>:7: actuator 'n' with {problem} (without strict=True it is left out), which is not supported"
    )
    with pytest.raises(UnsupportedError) as refused:
        load_mjcf(text, strict=True)
    assert str(refused.value) == message
    with pytest.warns(AlembertWarning, match=re.escape(f"actuator 'n' with {problem}")):
        assert load_mjcf(text).actuators == ()


def test_sites_and_sensors():
    body = f"""<body name="a"><joint name="h"/>{GEOM}<site name="a" pos="1 2 3"/><site name="tip"/>
        <body name="b"><joint name="b" type="ball"/>{GEOM}</body></body><site name="home"/>"""
    sensors = """<sensor><jointpos name="1" joint="h"/><jointvel name="2" joint="h"/>
        <ballquat name="3" joint="b"/><ballangvel name="4" joint="b"/>
        <gyro name="5" site="tip"/><accelerometer name="6" site="a"/>
        <framepos name="7" objtype="xbody" objname="a"/><framepos name="8" objtype="site" objname="home"/>
        <framepos objtype="body" objname="a"/><clock/></sensor>"""
    with pytest.warns(AlembertWarning, match="sensors of type framepos; sensors of type clock$"):
        model = load_mjcf(document(body, sensors))
    assert model.frame("a_site").body == "a"
    assert model.frame("a_site").placement.translation == (1, 2, 3)
    assert model.frame("home").body == "world"
    assert model.sensors == (
        Sensor("1", "joint_position", "h"),
        Sensor("2", "joint_rate", "h"),
        Sensor("3", "joint_position", "b"),
        Sensor("4", "joint_rate", "b"),
        Sensor("5", "gyro", "tip"),
        Sensor("6", "accelerometer", "a_site"),
        Sensor("7", "point", "a"),
        Sensor("8", "point", "home"),
    )


def test_shapes():
    geoms = """<geom type="sphere" size=".1"/><geom type="capsule" size=".1 .2" pos="1 2 3"/>
        <geom type="cylinder" size=".1 .2" rgba="1 0 0 1"/><geom type="box" size=".1 .2 .3" material="blue"/>
        <geom type="ellipsoid" size=".1 .2 .3"/><geom type="sphere" size="1" group="3"/>"""
    text = document(
        f'<geom type="plane" size="1 1 1"/><body name="a"><joint/>{geoms}</body>',
        '<asset><material name="blue" rgba="0 0 1 1"/></asset>',
    )
    with pytest.warns(AlembertWarning) as caught:
        model = load_mjcf(text)
    visuals = model.body("a").visuals
    (message,) = [str(warning.message) for warning in caught]
    assert message == "<text>: not read by Alembert: contacts, which are not modelled"
    (floor,) = model.visuals  # a plate whose upper side is the plane
    assert floor.shape.size[:2] == (2, 2)
    assert floor.placement.translation[2] == -floor.shape.size[2] / 2 < 0
    assert [v.shape for v in visuals] == [
        Sphere(0.1),
        Capsule(0.1, 0.4),
        Cylinder(0.1, 0.4),
        Box((0.2, 0.4, 0.6)),
        Ellipsoid((0.1, 0.2, 0.3)),
    ]
    assert visuals[1].placement.translation == (1, 2, 3)
    np.testing.assert_allclose([visuals[2].color, visuals[3].color], [(1, 0, 0, 1), (0, 0, 1, 1)])


def test_meshes_are_placed_back_to_the_frame_of_their_file(tmp_path):
    corners = np.array([[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1]])
    obj = "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "tet.obj").write_text(obj)
    geom = '<geom type="mesh" mesh="tet" pos="1 2 3" euler="10 20 30" contype="0"/>'
    body = f'<body name="a"><joint/>{geom}</body>'
    assets = '<compiler meshdir="meshes"/><asset><mesh name="tet" file="tet.obj" scale="1 1 .5"/></asset>'
    path = tmp_path / "m.xml"
    path.write_text(document(body, assets))
    (visual,) = load_mjcf(path).body("a").visuals
    assert visual.shape == Mesh(str(tmp_path / "meshes" / "tet.obj"), (1.0, 1.0, 0.5))
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    world = data.geom_xpos[0] + peer.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T
    X = visual.placement.pose()
    ours = np.array([X.point(corner * [1, 1, 0.5]) for corner in corners])
    distances = np.linalg.norm(world[:, None] - ours[None], axis=-1)
    assert distances.min(axis=0).max() < 1e-6  # MuJoCo keeps vertices in single precision
    inline = '<asset><mesh name="tet" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    with pytest.warns(AlembertWarning, match="meshes without a file of their own"):
        assert load_mjcf(document(body, inline)).body("a").visuals == ()


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            document(DRIVEN, option='density="1.2"'),
            "<text>:2: drag by a fluid (density 1.2, viscosity 0)",
        ),
        (
            document(f'<body name="a" gravcomp="1"><joint/>{GEOM}</body>'),
            "<text>:4: gravity compensation of body 'a'",
        ),
        (document(f'<body name="a" mocap="true">{GEOM}</body>'), "<text>:4: a mocap body"),
        (document(DRIVEN, TENDON.format('stiffness="1"')), "<text>:7: tendon 't' with stiffness"),
        (document(DRIVEN, TENDON.format('damping="1"')), "<text>:7: tendon 't' with damping"),
        (
            document(
                DRIVEN.replace("</body></body>", '<site name="s"/></body></body><site name="r"/>', 1),
                '<tendon><spatial name="t"><site site="s"/><site site="r"/><pulley divisor="2"/><site site="r"/>'
                '<site site="s"/></spatial></tendon><equality><tendon name="e" tendon1="t"/></equality>',
            ),
            "<text>:7: equality 'e' of a tendon over a pulley",
        ),
        *(
            (
                document(f'<body><joint type="free" name="f" {what}="1"/>{GEOM}</body>'),
                f"<text>:4: free joint 'f' with {what}",
            )
            for what in ("armature", "stiffness", "frictionloss")
        ),
        (
            document(
                '<flexcomp name="c" type="grid" count="2 2 2" spacing=".1 .1 .1" dim="3" radius=".01">'
                '<contact selfcollide="none"/></flexcomp>'
            ),
            "<text>:4: a flex (deformable body)",
        ),
    ],
)
def test_unsupported_features(text, message):
    with pytest.raises(UnsupportedError) as refused:
        load_mjcf(text)
    assert str(refused.value) == message + " is not supported"


@pytest.mark.skipif(
    int(mujoco.__version__.split(".")[0]) < 4, reason="polynomials and yield came with MuJoCo 4"
)
@pytest.mark.parametrize(
    ("attribute", "what"),
    [
        ('damping="1 2"', "joint 'h' with a damping polynomial"),
        ('stiffness="1 2"', "joint 'h' with a stiffness polynomial"),
        ('stiffness="1" springyield="1"', "plasticity"),
    ],
)
def test_unsupported_springs_and_dampers(attribute, what):
    with pytest.raises(UnsupportedError, match=re.escape(what)):
        load_mjcf(document(f'<body><joint name="h" {attribute}/>{GEOM}</body>'))


def test_idle_tendons_ranges_of_balls_and_inactive_equalities_are_passed_over():
    body = f"""<body name="a"><joint name="h" actuatorfrcrange="-1 2"/>{GEOM}
        <body><joint name="b" type="ball" range="0 90"/>{GEOM}</body></body>"""
    rest = TENDON.format("") + '<equality><weld name="w" body1="a" active="false"/></equality>'
    with pytest.warns(AlembertWarning) as caught:
        model = load_mjcf(document(body, rest))
    (message,) = [str(warning.message) for warning in caught]
    assert message == (
        "<text>: not read by Alembert: tendon 't', which exerts no force; "
        "actuatorfrcrange of joint 'h', which is not symmetric; range of the ball joint 'b'; "
        "equality 'w', which is not active"
    )
    assert model.loops == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot/>", "<text>:1: the root element is <robot>, expected <mujoco>; use load_urdf for a URDF"),
        ("<sdf/>", "<text>:1: the root element is <sdf>, expected <mujoco>"),
        ("<mujoco", "<text>:1: not well-formed XML: unclosed token"),
        ("<mujoco>\n<foo/></mujoco>", "<text>:2: MuJoCo refuses it: XML Error: Schema violation"),
        (
            document("<body><joint/></body>"),
            "<text>:4: MuJoCo refuses it: Error: mass and inertia of moving bodies must be larger than",
        ),
        ("<!DOCTYPE mujoco>\n<mujoco/>", "<text>:1: the document has a DOCTYPE"),
        ("<mujoco>" * 200, "<text>:1: elements nested deeper than 100 levels"),
        (
            document(
                f'<body name="a"><joint/>{GEOM}<site name="s"/><site name="t"/></body>',
                '<equality><connect name="e" site1="s" site2="t"/></equality>',
            ),
            "<text>:6: loop 'e' joins two frames of the same body 'a'",
        ),
    ],
)
def test_refused_files(text, message):
    with pytest.raises(FileError, match="^" + re.escape(message)):
        load_mjcf(text)


def test_included_files_are_checked_too(tmp_path):
    main, part = tmp_path / "main.xml", tmp_path / "part.xml"
    main.write_text('<mujoco><include file="part.xml"/></mujoco>')
    part.write_text(f'<mujoco><worldbody><body name="a"><joint/>{GEOM}</body></worldbody></mujoco>')
    assert load_mjcf(main).nv == 1
    part.write_text('<!DOCTYPE x [<!ENTITY a "a">]><mujoco/>')
    with pytest.raises(FileError, match=r"part\.xml:1: the document has a DOCTYPE"):
        load_mjcf(main)
    with pytest.raises(FileError, match=r"main\.xml.*MuJoCo refuses it"):
        part.unlink()
        load_mjcf(main)


def test_keyframes_are_read_beside_the_model(tmp_path):
    path = tmp_path / "robot.xml"
    body = f"""<body name="trunk" pos="1 2 3" euler="0 0 90"><freejoint/>{GEOM}
        <body name="leg"><joint name="hip" axis="0 1 0" ref="30"/>{GEOM}</body></body>"""
    key = """<keyframe><key name="bent" qpos="0 0 1 1 0 0 0 0.7" qvel="1 2 3 4 5 6 7"/>
        <key qpos="0 0 2 1 0 0 0 0"/></keyframe>"""
    path.write_text(document(body, key))
    with pytest.warns(
        AlembertWarning, match=r"keyframes, which alembert\.convert\.keyframes reads \(line 7\)"
    ):
        model = load_mjcf(path)
    found = keyframes(model, path)
    assert list(found) == ["qpos0", "bent", "key1"]
    compiled = mujoco.MjModel.from_xml_path(str(path))
    for name, qpos in {
        "qpos0": compiled.qpos0,
        "bent": compiled.key_qpos[0],
        "key1": compiled.key_qpos[1],
    }.items():
        np.testing.assert_allclose(to_mujoco(model, found[name][0], mj_model=compiled), qpos, atol=1e-15)
    qvel = to_mujoco(model, *found["bent"], mj_model=compiled)[1]
    np.testing.assert_allclose(qvel, compiled.key_qvel[0], atol=1e-15)
    assert abs(found["qpos0"][0][-1] - np.deg2rad(30)) < 1e-15  # not that of model.neutral()


def test_too_many_included_files(tmp_path, monkeypatch):
    monkeypatch.setattr(mjcf_source, "MAX_INCLUDES", 1)
    main = tmp_path / "main.xml"
    main.write_text('<mujoco><include file="a.xml"/>\n<include file="b.xml"/></mujoco>')
    for name in "ab":
        (tmp_path / f"{name}.xml").write_text("<mujoco/>")
    with pytest.raises(FileError, match=r"main\.xml:2: more than 1 included files"):
        load_mjcf(main)


def test_arguments():
    with pytest.raises(ArgumentError, match="actuators is 'drop', expected 'error' or 'skip'"):
        load_mjcf("<mujoco/>", actuators="drop")
    with pytest.raises(ArgumentError, match="unphysical is 'ignore', expected 'error' or 'warn'"):
        load_mjcf("<mujoco/>", unphysical="ignore")


def test_without_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(UnsupportedError, match=re.escape('pip install "alembert[mjcf]"')):
        load_mjcf("<mujoco/>")


def test_remarks_of_mujoco_are_passed_on_and_not_written_to_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flex = '<flexcomp name="c" type="grid" count="2 2 2" spacing=".1 .1 .1" dim="3" radius=".01"/>'
    _, remarks = mjcf_source.compiled(xml.read(document(flex)))
    assert any("flex 'c' is not rigid" in remark for remark in remarks)
    assert list(tmp_path.iterdir()) == []
    empty = mujoco.MjModel.from_xml_string("<mujoco/>")
    monkeypatch.setattr(mjcf_source, "compiled", lambda source: (empty, ["oh"]))
    with pytest.warns(AlembertWarning, match="what MuJoCo remarks: oh"):
        load_mjcf("<mujoco/>")


def test_mujocos_own_test_model_is_refused_for_its_fluid():
    path = Path(mujoco.__file__).parent / "testdata" / "model.xml"
    if not path.is_file():
        pytest.skip("this mujoco ships no test model")
    with pytest.raises(UnsupportedError, match=r"model\.xml:2: drag by a fluid"):
        load_mjcf(path)


def test_damaged_files_end_in_errors_of_alembert():
    text = ARMS["tree"]
    for length in range(1, len(text), 29):
        with pytest.raises(FileError, match=r"^<text>:\d+: "):
            load_mjcf(text[:length])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        for place in list(re.finditer(r'"[^"]*"', text)):
            try:
                load_mjcf(text[: place.start()] + '"nan x"' + text[place.end() :])
            except (FileError, UnsupportedError) as error:
                assert str(error).startswith("<text>")  # noqa: PT017
