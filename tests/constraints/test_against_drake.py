"""Loops beside Drake's: ball, distance and coupler constraints of its discrete solver (skipped where it is missing).

Drake keeps constraints only in plants that advance by steps, by a solver of first order, so that its motions are compared:
they must approach ours linearly as its step gets smaller.
"""

import numpy as np
import pytest

import alembert as al

drake = pytest.importorskip("pydrake.all", reason="drake is not installed")
GRAVITY = (0.0, -9.81, 0.0)


def build(kind):
    builder = al.ModelBuilder(kind, gravity=GRAVITY)
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("crank", rod, joint=al.Revolute())
    builder.body("coupler", rod, joint=al.Revolute(), parent="crank", placement=(1, 0, 0))
    builder.body("rocker", rod, joint=al.Revolute(), placement=(1.2, 0, 0))
    builder.frame("end", "coupler", (1, 0, 0))
    builder.frame("top", "rocker", (1, 0, 0))
    if kind == "ball":
        builder.loop("loop", al.Spherical(), "end", "top")
    elif kind == "distance":
        builder.loop("loop", al.Distance(0.5), "end", "top")
    else:
        builder.coupling("loop", "crank_joint", ["rocker_joint"], [1.5], 0.2)
    return builder.build()


def theirs(model, kind, q, v, duration, step):
    plant = drake.MultibodyPlant(time_step=step)
    plant.set_discrete_contact_approximation(drake.DiscreteContactApproximation.kSap)
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY)
    bodies = {"world": plant.world_body()}
    joints = {}
    for joint in model.joints:
        inertia = model.body(joint.child).inertia
        mass, com = float(inertia.mass), np.array(inertia.com, dtype=float)
        xx, xy, yy, xz, yz, zz = (float(x) for x in inertia.tensor)
        about = drake.RotationalInertia(xx, yy, zz, xy, xz, yz).ShiftFromCenterOfMass(mass, com)
        unit = drake.UnitInertia()
        unit.SetFromRotationalInertia(about, mass)
        bodies[joint.child] = plant.AddRigidBody(joint.child, drake.SpatialInertia(mass, com, unit))
        where = drake.RigidTransform(np.array(joint.placement.translation, dtype=float))
        joints[joint.name] = plant.AddJoint(
            drake.RevoluteJoint(
                joint.name,
                drake_frame(plant, bodies[joint.parent], where, joint.name),
                bodies[joint.child].body_frame(),
                [0, 0, 1],
            )
        )
    ends = (bodies["coupler"], [1.0, 0, 0], bodies["rocker"], [1.0, 0, 0])
    if kind == "ball":
        plant.AddBallConstraint(*ends)
    elif kind == "distance":
        plant.AddDistanceConstraint(*ends, 0.5)
    else:
        plant.AddCouplerConstraint(joints["crank_joint"], joints["rocker_joint"], 1.5, 0.2)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    for joint in model.joints:
        joints[joint.name].set_angle(context, float(q[model.q_slice(joint.name)][0]))
        joints[joint.name].set_angular_rate(context, float(v[model.v_slice(joint.name)][0]))
    simulator = drake.Simulator(plant, context)
    simulator.AdvanceTo(duration)
    return np.array([joints[joint.name].get_angle(context) for joint in model.joints])


def drake_frame(plant, body, where, name):
    return plant.AddFrame(drake.FixedOffsetFrame(f"at_{name}", body.body_frame(), where))


@pytest.mark.parametrize("kind", ["ball", "distance", "coupler"])
def test_motion_approaches_ours(kind):
    m = build(kind)
    q = m.assemble([1.3, -1.1, 1.4], fixed=["crank_joint"]).q
    v = m.assemble(q, [0.8, 0.0, 0.0], fixed=["crank_joint"]).v
    ours = al.simulate(m, q, v, duration=0.4, tolerance=1e-10).q[-1]
    steps = (2e-3, 1e-3, 5e-4)
    errors = [np.abs(theirs(m, kind, q, v, 0.4, h) - ours).max() for h in steps]
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert order == pytest.approx(1, abs=0.25), errors
    assert errors[-1] < 5e-3  # some steps' worth of first-order error
