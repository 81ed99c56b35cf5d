"""Against MuJoCo on models of its joints with armature, damping and springs; no contacts, no limits."""

import numpy as np
import pytest
from dynamics_helpers import states

from alembert.model.io.convert import accelerations_to_mujoco, from_mujoco, to_mujoco
from alembert.model.io.mjcf import load_mjcf

mujoco = pytest.importorskip("mujoco")

# 5e5 eps: room for another order of operations and the condition of the mass matrix (up to 1e4 here)
AGREEMENT = 1e-10
STATES = 1000

OPTION = """
<option gravity="0.3 -0.2 -9.81"><flag contact="disable" limit="disable"/></option>
<compiler angle="radian" balanceinertia="false"/>
"""
ARM = f"""
<mujoco model="arm">{OPTION}
  <worldbody>
    <body name="base" pos="0.1 0.2 0.3" euler="0.3 -0.4 0.5">
      <joint name="slide" type="slide" axis="0.6 0 0.8" armature="0.3" damping="0.7"
             stiffness="5" springref="0.2"/>
      <inertial pos="0.1 0 0.05" mass="3" fullinertia="0.04 0.05 0.06 0.005 -0.004 0.003"/>
      <body name="upper" pos="0.2 0 0.1">
        <joint name="shoulder" type="ball" damping="0.2" armature="0.05"/>
        <inertial pos="0.2 0.1 0" mass="2" diaginertia="0.02 0.03 0.04" quat="0.8 0.6 0 0"/>
        <body name="fore" pos="0.4 0 0" quat="0.6 0 0.8 0">
          <joint name="elbow" type="hinge" axis="0 1 0" pos="0.05 0 0.02" damping="0.1" stiffness="2"/>
          <joint name="twist" type="hinge" axis="1 0 0" armature="0.02"/>
          <inertial pos="0.1 0 0.05" mass="1.5" diaginertia="0.01 0.02 0.02"/>
          <body name="plate" pos="0 0.1 0">
            <inertial pos="0.02 0 0" mass="0.4" diaginertia="0.001 0.001 0.002"/>
          </body>
        </body>
      </body>
      <body name="side" pos="0 0.3 0">
        <joint name="wheel" type="hinge" axis="0 0.6 0.8" armature="0.1"/>
        <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.01 0.02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
FLOATER = f"""
<mujoco model="floater">{OPTION}
  <worldbody>
    <body name="trunk">
      <freejoint name="root"/>
      <inertial pos="0.02 -0.03 0.1" mass="10" fullinertia="0.3 0.4 0.2 0.01 0.02 -0.03"/>
      <body name="leg1" pos="0.2 0.1 -0.1"><joint name="hip1" type="ball"/>
        <inertial pos="0 0 -0.2" mass="2" diaginertia="0.02 0.02 0.005"/>
        <body name="shin1" pos="0 0 -0.4">
          <joint name="knee1" type="hinge" axis="0 1 0" damping="0.3" armature="0.05"/>
          <inertial pos="0 0.01 -0.2" mass="1" diaginertia="0.01 0.01 0.002"/></body></body>
      <body name="leg2" pos="-0.2 0.1 -0.1"><joint name="hip2" type="hinge" axis="0.6 0.8 0"/>
        <inertial pos="0 0 -0.2" mass="2" diaginertia="0.02 0.02 0.005"/>
        <body name="shin2" pos="0 0 -0.4"><joint name="knee2" type="slide" axis="0 0 1" armature="0.5"/>
          <inertial pos="0 0 -0.2" mass="1" diaginertia="0.01 0.01 0.002"/></body></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module", params=[ARM, FLOATER], ids=["arm", "floater"])
def both(request):
    other = mujoco.MjModel.from_xml_string(request.param)
    return load_mjcf(request.param), other, mujoco.MjData(other)


def test_accelerations_and_efforts(both):
    model, other, data = both
    q, v, x = states(model, STATES)
    qpos, qvel = to_mujoco(model, q, v, mj_model=other)
    _, forces = to_mujoco(model, q, x, mj_model=other)
    given = accelerations_to_mujoco(model, q, v, x, mj_model=other)
    ours = accelerations_to_mujoco(model, q, v, model.forward_dynamics(q, v, x), mj_model=other)
    _, efforts = to_mujoco(model, q, model.inverse_dynamics(q, v, x), mj_model=other)
    qacc, inverse = np.empty_like(ours), np.empty_like(ours)
    for k in range(STATES):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos[k], qvel[k], forces[k]
        mujoco.mj_forward(other, data)
        qacc[k] = data.qacc
        data.qfrc_applied[:] = 0.0
        data.qacc[:] = given[k]
        mujoco.mj_inverse(other, data)
        inverse[k] = data.qfrc_inverse
    for found, expected in ((ours, qacc), (efforts, inverse)):
        scale = np.abs(expected).max(axis=-1, keepdims=True)
        assert np.max(np.abs(found - expected) / scale) < AGREEMENT


def test_mass_matrix_and_bias(both):
    model, other, data = both
    q, v, _ = states(model, 100, seed=1)
    qpos, qvel = to_mujoco(model, q, v, mj_model=other)
    M, bias = model.mass_matrix(q), model.bias_forces(q, v)
    zero = accelerations_to_mujoco(
        model, q, v, 0 * v, mj_model=other
    )  # what their speeds do when ours are constant
    _, ours = to_mujoco(model, q, bias, mj_model=other)
    full = np.empty((model.nv, model.nv))
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_forward(other, data)
        mujoco.mj_fullM(other, data, full)
        turn = to_mujoco(model, q[k], np.eye(model.nv), mj_model=other)[1].T
        np.testing.assert_allclose(M[k], turn.T @ full @ turn, rtol=0, atol=AGREEMENT * np.abs(full).max())
        expected = data.qfrc_bias - data.qfrc_passive + full @ zero[k]
        np.testing.assert_allclose(ours[k], expected, rtol=0, atol=AGREEMENT * np.abs(expected).max())


def test_energy_and_centre_of_mass(both):
    model, other, data = both
    q, v, _ = states(model, 100, seed=2)
    qpos, qvel = to_mujoco(model, q, v, mj_model=other)
    other.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    U, T, c = model.potential_energy(q), model.kinetic_energy(q, v), model.center_of_mass(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_forward(other, data)
        np.testing.assert_allclose((U[k], T[k]), data.energy, rtol=AGREEMENT, atol=AGREEMENT * 100)
        np.testing.assert_allclose(c[k], data.subtree_com[0], atol=AGREEMENT)
    back_q, back_v = from_mujoco(model, qpos, qvel, mj_model=other)
    np.testing.assert_allclose(back_q, q, atol=1e-14)
    np.testing.assert_allclose(back_v, v, atol=1e-13)
