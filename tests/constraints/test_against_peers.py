"""Accelerations of closed mechanisms beside Pinocchio's constraint dynamics and MuJoCo's equality constraints."""

import numpy as np
import pytest
from constraint_helpers import close, possible_speeds

import alembert as al
from alembert import library
from alembert.model import WORLD


@pytest.mark.parametrize("kind", ["spherical", "fixed"])
@pytest.mark.parametrize("seed", [2, 5])
def test_pinocchio(kind, seed):
    """Its three- and six-dimensional contacts are our spherical and fixed loops."""
    pin = pytest.importorskip("pinocchio")
    from alembert.model.io.convert import accelerations_from_pinocchio, to_pinocchio
    from alembert.verify.in_pinocchio import in_pinocchio

    tree = library.random_tree(seed, bodies=9, kinds=("revolute", "prismatic", "spherical"), branching=0.3)
    m, q = close(tree, (kind,), seed=seed)
    v = possible_speeds(m, q)
    tau = np.random.default_rng(seed).normal(size=m.nv)
    other = in_pinocchio(tree)

    def end(name):
        body, placement = m.frame(name).body, m.frame(name).placement.pose()
        here = pin.SE3(np.asarray(placement.rotation), np.asarray(placement.translation).ravel())
        if body == WORLD:
            return 0, here
        return other.getJointId(m.joints[m.body_index(body)].name), here

    a, b = end(m.loops[0].frame_a), end(m.loops[0].frame_b)
    sort = pin.ContactType.CONTACT_3D if kind == "spherical" else pin.ContactType.CONTACT_6D
    contacts, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    contacts.append(pin.RigidConstraintModel(sort, other, *a, *b, pin.ReferenceFrame.LOCAL))
    data.append(contacts[0].createData())
    whole = other.createData()
    pin.initConstraintDynamics(other, whole, contacts, data)
    settings = pin.ProximalSettings(1e-14, 1e-12, 100)
    qp, vp = to_pinocchio(m, q, v, pin_model=other)
    efforts = to_pinocchio(m, q, tau, pin_model=other)[1]
    found = pin.constraintDynamics(other, whole, qp, vp, efforts, contacts, data, settings).copy()
    theirs = accelerations_from_pinocchio(m, qp, vp, found, pin_model=other)
    ours = m.constrained_dynamics(q, v, tau).accelerations
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.linalg.norm(theirs))  # its proximal terms


MUJOCO = """
<mujoco><compiler angle="radian"/>
  <option gravity="0 -9.81 0"><flag contact="disable" limit="disable"/></option>
  <worldbody>
    <body name="crank"><joint name="crank_joint" type="hinge" axis="0 0 1"/>
      <inertial pos="0.5 0 0" mass="1" diaginertia="0.01 0.09 0.08"/>
      <body name="coupler" pos="1 0 0"><joint name="coupler_joint" type="hinge" axis="0 0 1"/>
        <inertial pos="0.5 0 0" mass="1" diaginertia="0.01 0.09 0.08"/></body></body>
    <body name="rocker" pos="1.2 0 0"><joint name="rocker_joint" type="hinge" axis="0 0 1"/>
      <inertial pos="0.5 0 0" mass="1" diaginertia="0.01 0.09 0.08"/></body>
    <body name="wheel" pos="0 0 1"><joint name="wheel_joint" type="hinge" axis="0 0 1"/>
      <inertial pos="0.05 0 0" mass="2" diaginertia="0.01 0.01 0.02"/></body>
  </worldbody>
  <equality>{equality}</equality>
</mujoco>
"""
STIFF = 'solimp="0.99999 0.99999 0.001"'


@pytest.mark.parametrize("kind", ["connect", "joint", "both"])
def test_mujoco(kind):
    """Equality constraints give way by 1 - d = 1e-5, and leave out their bias: at rest they are ours to that."""
    mujoco = pytest.importorskip("mujoco")
    builder = al.ModelBuilder("linkage", gravity=(0, -9.81, 0))
    rod = al.Inertia(1.0, (0.5, 0, 0), (0.01, 0, 0.09, 0, 0, 0.08))
    builder.body("crank", rod, joint=al.Revolute())
    builder.body("coupler", rod, joint=al.Revolute(), parent="crank", placement=(1, 0, 0))
    builder.body("rocker", rod, joint=al.Revolute(), placement=(1.2, 0, 0))
    wheel = al.Inertia(2.0, (0.05, 0, 0), (0.01, 0, 0.01, 0, 0, 0.02))
    builder.body("wheel", wheel, joint=al.Revolute(), placement=(0, 0, 1))
    builder.frame("end", "coupler", (1, 0, 0))
    builder.frame("top", "rocker", (1, 0, 0))
    equality = ""
    if kind in ("connect", "both"):
        builder.loop("pin", al.Spherical(), "end", "top")
    if kind in ("joint", "both"):
        builder.coupling("gear", "wheel_joint", ["crank_joint"], [-1.5], 0.3)
        equality += f'<joint joint1="wheel_joint" joint2="crank_joint" polycoef="0.3 -1.5 0 0 0" {STIFF}/>'
    m = builder.build()
    q = m.assemble([1.3, -1.1, 1.4, 0.0], fixed=["crank_joint"]).q
    if kind in ("connect", "both"):
        equality += f'<connect site1="end" site2="top" {STIFF}/>'
    text = MUJOCO.format(equality=equality)
    for body, site in (("coupler", "end"), ("rocker", "top")):
        text = text.replace(
            f'<joint name="{body}_joint"', f'<site name="{site}" pos="1 0 0"/><joint name="{body}_joint"'
        )
    other = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(other)
    tau = np.array([0.7, -0.3, 0.2, 0.4])
    for name, x, effort in zip(m.speed_names, q, tau, strict=True):
        at = other.joint(name)
        data.qpos[at.qposadr[0]], data.qfrc_applied[at.dofadr[0]] = x, effort
    other.opt.tolerance, other.opt.iterations = 0, 500
    mujoco.mj_forward(other, data)
    theirs = np.array([data.qacc[other.joint(name).dofadr[0]] for name in m.speed_names])
    ours = m.constrained_dynamics(q, np.zeros(4), tau).accelerations
    free = m.constrained_dynamics(q, np.zeros(4), tau, active=[]).accelerations
    assert np.linalg.norm(ours - free) > 1.0  # the constraints matter
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-3 * np.linalg.norm(ours - free))
