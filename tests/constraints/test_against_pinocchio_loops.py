"""Closed loops against Pinocchio's constraint dynamics (proximal, on the same mechanism)."""

import numpy as np
import pytest
from constraint_helpers import four_bars, parallelogram

pin = pytest.importorskip("pinocchio")


@pytest.mark.parametrize("windows", [1, 3])
def test_four_bars(windows):
    """A pin in the plane is a point contact in space there: one of three rows is redundant, and regularised."""
    model = four_bars(windows)
    other = pin.Model()
    other.gravity.linear = np.array([0.0, -9.81, 0.0])
    at = {"world": 0}
    for joint in model.joints:
        where = pin.SE3(np.eye(3), np.array(joint.placement.translation, dtype=float))
        at[joint.child] = other.addJoint(at[joint.parent], pin.JointModelRZ(), where, joint.name)
        inertia = model.body(joint.child).inertia
        xx, xy, yy, xz, yz, zz = (float(x) for x in inertia.tensor)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        body = pin.Inertia(float(inertia.mass), np.array(inertia.com, dtype=float), tensor)
        other.appendBodyToJoint(at[joint.child], body, pin.SE3.Identity())
    contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for i in range(windows):
        post, beam = (
            pin.SE3(np.eye(3), np.array([0.0, 1.0, 0.0])),
            pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0])),
        )
        contact = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D,
            other,
            at[f"post{i + 1}"],
            post,
            at[f"beam{i}"],
            beam,
            pin.ReferenceFrame.LOCAL,
        )
        contacts.append(contact)
        contact_data.append(contact.createData())
    data = other.createData()
    pin.initConstraintDynamics(other, data, contacts, contact_data)
    q, v = parallelogram(model, 0.4, -0.8)
    tau = np.random.default_rng(0).normal(size=model.nv)
    settings = pin.ProximalSettings(1e-14, 1e-10, 20)
    expected = pin.constraintDynamics(other, data, q, v, tau, contacts, contact_data, settings)
    found = model.constrained_dynamics(q, v, tau)
    np.testing.assert_allclose(found.accelerations, expected, atol=1e-10 * np.linalg.norm(expected))
