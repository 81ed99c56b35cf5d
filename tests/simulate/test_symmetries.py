import numpy as np
import pytest

import alembert as al
from alembert.simulate.symmetries import FreeRoots


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
    flight = FreeRoots(m, np.zeros(m.nv, bool))
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
    assert not FreeRoots(m, np.arange(m.nv) == 0).roots  # a root that follows a motion is left as it is


@pytest.mark.parametrize("part", [{"armature": (0.1,) * 6}, {"friction": al.Friction(viscous=(0.1,) * 6)}])
def test_roots_whose_joint_sees_the_velocity_are_left_as_they_are(part):
    """An armature in all directions is no mass that flies: its inertia is in the joint's own axes."""
    m = al.library.satellite()
    root = m.joints[0]
    m = m.replace_joint(root.name, **part)
    rng = np.random.default_rng(1)
    q, v, tau = m.random_configuration(rng), rng.normal(size=m.nv), rng.normal(size=m.nv)
    flight = FreeRoots(m, np.zeros(m.nv, bool))
    np.testing.assert_array_equal(flight.accelerations(q, v, tau), m.forward_dynamics(q, v, tau))
    assert not flight.roots


def vehicle(loop_to="rocker"):
    """A hub with a four-bar linkage on it; or with its last bar pinned to something else."""
    builder = al.ModelBuilder("vehicle", gravity=(0, 0, 0))
    hub = al.Inertia(100.0, (0.3, 0.1, -0.2), (80.0, 1, 90.0, -2, 3, 50.0))
    builder.body("hub", hub, joint=al.Free(), joint_name="flight")
    rod = al.Inertia.rod(5.0, (0, 0, 0), (1, 0, 0))
    builder.body("crank", rod, joint=al.Revolute(), parent="hub")
    builder.body("coupler", rod, joint=al.Revolute(), parent="crank", placement=(1, 0, 0))
    builder.body("rocker", rod, joint=al.Revolute(), parent="hub", placement=(1, 0, 0))
    builder.body("other", hub, joint=al.Free(), joint_name="companion")
    builder.frame("end", "coupler", (1, 0, 0)).frame("far", loop_to, (1, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "far")
    return builder.build()


@pytest.mark.parametrize(("loop_to", "found"), [("rocker", 2), ("world", 1), ("other", 0), ("hub", 2)])
def test_which_roots_constraints_see(loop_to, found):
    assert len(FreeRoots(vehicle(loop_to), np.zeros(15, bool)).roots) == found


@pytest.mark.parametrize("options", [{"integrator": "rk4", "step": 0.1}, {"integrator": "dop853"}])
def test_a_mechanism_in_orbit_moves_as_at_rest(options):
    """7000 km out at 7.4 km/s: turns, speeds and loops as at the origin at rest, to the rounding of what was set alike.

    (Evaluated from the world's origin, the loop would be open by 7e6 times 1e-16, and v x m v would turn the hub.)
    """
    m = vehicle()
    q = m.neutral()
    q[7:10] = 1.4, -1.4, 1.4
    q = m.assemble(q).q
    v = np.zeros(m.nv)
    v[:3], v[6] = [0.01, 0.02, -0.01], 0.1
    v = m.project(q, v).v
    far, fast = q.copy(), v.copy()
    far[:3], fast[3:6] = [4e6, -5e6, 2e6], [7000.0, 2500.0, 1000.0]
    here, there = (
        al.simulate(m, *start, duration=50.0, interval=10.0, **options) for start in ((q, v), (far, fast))
    )
    turning = slice(3, 10)
    # 500 projections to rounding, 1e-15, of a motion in which errors of speeds grow with time (50 s) and with turns of the
    # linkage; error control may take other steps: its tolerance 1e-9 then is the measure
    within = 1e-10 if "step" in options else 1e-8
    np.testing.assert_allclose(there.q[:, turning], here.q[:, turning], rtol=0, atol=within)
    assert there.report.constraint_error < 1e-13


def test_compiled_steps_of_a_satellite_do_not_feel_its_speed():
    """The same bits: what is shared is taken away before, and w x v, which comes back, moves the hub alone."""
    m = al.library.satellite()
    v = 0.01 * np.arange(1.0, m.nv + 1)
    v[3:6] = 0.0
    fast = v.copy()
    fast[3:6] = [7000.0, 2500.0, 1000.0]
    slow, quick = (
        al.simulate(m, m.neutral(), x, duration=2.0, step=0.02, integrator="adams_bashforth4")
        for x in (v, fast)
    )
    np.testing.assert_array_equal(quick.q[:, 3:], slow.q[:, 3:])
