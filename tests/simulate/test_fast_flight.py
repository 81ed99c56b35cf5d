import numpy as np
import pytest

import alembert as al
from alembert.simulate.flight import Flight


@pytest.mark.parametrize("joint", [al.Free(), al.Planar(), al.Translational()])
def test_a_shared_velocity_changes_nothing(joint):
    """Galileo: also with a child that turns, prescribed or not; both evaluate the same formulas, up to rounding."""
    rng = np.random.default_rng(5)
    builder = al.ModelBuilder("flying", gravity=(0.3, 0.2, -9.0))
    builder.body(
        "hub", al.Inertia.box(2.0, (0.3, 0.5, 0.9), (0.1, -0.2, 0.3)), joint=joint, placement=(0.4, 0.1, -0.3)
    )
    builder.body(
        "arm",
        al.Inertia.box(1.0, (0.1, 0.2, 0.7), (0.3, 0.1, 0.2)),
        joint=al.Revolute((0, 0, 1)),
        parent="hub",
        placement=(0.2, 0.1, 0),
    )
    m = builder.build()
    q, v, tau = m.random_configuration(rng), rng.normal(size=(3, m.nv)), rng.normal(size=m.nv)
    flight = Flight(m, np.zeros(m.nv, bool))
    assert flight.roots
    found, expected = flight.accelerations(q, v, tau), m.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        flight.efforts(q, v, expected), np.broadcast_to(tau, v.shape), rtol=1e-10, atol=1e-10
    )
    free = np.r_[np.ones(m.nv - 1), 0.0]
    a, total = flight.hybrid(q, v, tau, 2.0 * (1 - free), free)
    other = m.hybrid_dynamics(
        q, v, accelerations={m.joints[1].name: 2.0}, torques={m.joints[0].name: tau[:-1]}
    )
    np.testing.assert_allclose(a, other.accelerations, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(total, other.efforts, rtol=1e-10, atol=1e-10)
    assert not Flight(m, np.arange(m.nv) == 0).roots  # a root that follows a motion is left as it is


@pytest.mark.parametrize("part", [{"armature": (0.1,) * 6}, {"friction": al.Friction(viscous=(0.1,) * 6)}])
def test_roots_whose_joint_sees_the_velocity_are_left_as_they_are(part):
    """An armature in all directions is no mass that flies: its inertia is in the joint's own axes."""
    m = al.library.satellite()
    root = m.joints[0]
    m = m.replace_joint(root.name, **part)
    rng = np.random.default_rng(1)
    q, v, tau = m.random_configuration(rng), rng.normal(size=m.nv), rng.normal(size=m.nv)
    flight = Flight(m, np.zeros(m.nv, bool))
    np.testing.assert_array_equal(flight.accelerations(q, v, tau), m.forward_dynamics(q, v, tau))
    assert not flight.roots
