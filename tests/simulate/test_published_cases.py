"""Published problems and closed forms (see the sources at each)."""

import numpy as np
import pytest
from scipy.special import ellipk

import alembert as al
from alembert.simulate import Event, Table, simulate

PERIOD = 2.3678419475762  # s; 4 K(1/2) sqrt(l/g) of the pendulum released at 90 degrees


def test_pendulum_position():
    """IFToMM benchmark A01: a point mass of 1 kg on 1 m, released horizontally; position after 10 s in closed form."""
    m = al.library.pendulum()
    for integrator, options in (
        ("dop853", {"tolerance": 1e-12, "absolute_tolerance": 1e-13}),
        ("rk4", {"step": 5e-4}),
    ):
        run = simulate(m, [-np.pi / 2], duration=10.0, integrator=integrator, interval=0.1, **options)
        x, _, z = m.frame_pose(run.q[-1], "tip").translation
        assert (x, z) == pytest.approx((-0.275087462576, -0.961419205099), abs=1e-10)


def test_pendulum_period():
    """Four quarter swings, located as events."""
    m = al.library.pendulum()
    assert pytest.approx(PERIOD, abs=1e-12) == 4 * ellipk(0.5) / np.sqrt(9.81)
    rest = Event(lambda t, q, v: v[0], "rest", direction=1, action="note", tolerance=1e-12)
    run = simulate(
        m, [-np.pi / 2], duration=5 * PERIOD, events=rest, tolerance=1e-12, absolute_tolerance=1e-13
    )
    times = np.array([event.time for event in run.events])
    np.testing.assert_allclose(times, PERIOD * np.arange(1, len(times) + 1), rtol=0, atol=1e-9)
    assert len(times) >= 4


def test_intermediate_axis():
    """Dzhanibekov's body, I = (1, 2, 3), w0 = (0.01, 2, 0.01): the flip in closed form (elliptic integral)."""
    builder = al.ModelBuilder("nut", gravity=(0, 0, 0))
    builder.body("nut", al.Inertia(1.0, (0, 0, 0), (1.0, 0.0, 2.0, 0.0, 0.0, 3.0)), joint=al.Spherical())
    m = builder.build()
    flip = 10.977572939663
    run = simulate(m, m.neutral(), [0.01, 2, 0.01], duration=flip, integrator="dop853", tolerance=1e-12,
                   absolute_tolerance=1e-14)  # fmt: skip
    # the unstable motion multiplies errors by exp(2 t/sqrt(3)) up to the flip, some 1e3, and shrinks them again
    assert run.v[-1] == pytest.approx([-0.01, -2.0, 0.01], abs=1e-9)
    run = simulate(
        m,
        m.neutral(),
        [0.01, 2, 0.01],
        duration=flip,
        step=flip / 20000,
        interval=flip / 10,
        integrator="rk4",
    )
    assert run.v[-1] == pytest.approx([-0.01, -2.0, 0.01], abs=1e-9)


def test_heavy_top():
    """The fast top of the Lie-group literature, m = 15, spinning at 150 rad/s about its axis: attitude after 0.2 s."""
    builder = al.ModelBuilder("top")
    inertia = al.Inertia(15.0, (0, 1, 0), (0.234375, 0.0, 0.46875, 0.0, 0.0, 0.234375))
    builder.body("top", inertia, joint=al.Spherical())
    m = builder.build()
    expected = np.array([-0.70827915, 0.43878109, 0.54572840, 0.08939975])
    for integrator, options in (("dop853", {"tolerance": 1e-12}), ("rk4", {"step": 2e-5, "interval": 0.1})):
        run = simulate(m, m.neutral(), [0, 150, -4.61538], duration=0.2, integrator=integrator, **options)
        np.testing.assert_allclose(run.q[-1], expected, rtol=0, atol=1e-8)


@pytest.fixture(scope="module")
def manipulator():
    """Four links with geared motors on the links before, as MSP takes them; the first axis along gravity, its motor direct.

    Chen and Ou, "MSP: a telerobot simulation program" (1989), state the tests but not all data: masses,
    rotors and lengths are those of the first links of their seven-link arm, orientations are ours.
    """
    builder = al.ModelBuilder("msp")
    axes = [(0, 0, 1), (1, 0, 0), (0, 1, 0), (1, 0, 0)]
    masses = (104.2, 55.4, 28.8, 20.4)
    inertias = ((2.05, 2.05, 0.7), (0.4, 0.4, 0.3), (0.6, 0.6, 0.2), (0.2, 0.2, 0.2))
    offsets = ((0, 0, 0), (0, 0, 0.5), (0.3, 0.1, 0), (0.1, 0, 0.3))
    ratios, rotors = (1.0, 160.0, 200.0, 200.0), (0.003, 0.003, 0.0003, 0.0003)
    for k, axis in enumerate(axes):
        xx, yy, zz = inertias[k]
        builder.body(
            f"link{k + 1}",
            al.Inertia(masses[k], (0, 0, 0), (xx, 0.0, yy, 0.0, 0.0, zz)),
            joint=al.Revolute(axis),
            parent=f"link{k}" if k else "world",
            placement=offsets[k],
            rotors=[al.Rotor(ratios[k], rotors[k], axis)],
        )
    return builder.build()


MSP = {
    "q0": [0.3, 0.4, -0.5, 0.2],
    "v0": [0.5, -0.4, 0.3, 0.2],
    "duration": 2.0,
    "step": 5e-4,
    "interval": 0.01,
}


@pytest.mark.parametrize("integrator", ["rk4", "adams_moulton4", "variational"])
def test_msp_1_energy_without_torques(manipulator, integrator):
    """(I): all torques zero, K + V is constant to the integrator's order."""
    run = simulate(manipulator, integrator=integrator, **MSP)
    tolerance = 1e-4 if integrator == "variational" else 1e-8
    assert np.max(np.abs(run.energy - run.energy[0])) < tolerance * np.max(run.kinetic_energy)


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0, 0, -9.81)], ids=["IIa", "IIb"])
@pytest.mark.parametrize(("integrator", "tolerance"), [("rk4", 1e-9), ("variational", 1e-12)])
def test_msp_2_angular_momentum_about_the_first_axis(manipulator, gravity, integrator, tolerance):
    """(IIa) without gravity, (IIb) with gravity along the axis: no torque on joint 1, H . z1 is constant whatever the
    others do; exactly so with the variational scheme."""
    efforts = [0.0, 100.0, -30.0, 5.0]
    run = simulate(manipulator, integrator=integrator, gravity=gravity, efforts=efforts, **MSP)
    h = run.momentum[:, 2]
    assert np.max(np.abs(h - h[0])) < tolerance * np.max(np.abs(run.momentum))
    assert np.ptp(run.energy) > 1.0


def test_satellite_with_rotors():
    """Leyendecker et al. 2009, section 7.2: internal torques leave the total angular momentum, to 1e-12.

    The momentum map is that about a fixed point; about the centre of mass it differs by c x p, and c follows p/m to
    the order of the scheme only.
    """
    m = al.library.satellite()
    v0 = np.r_[0.1, -0.2, 0.05, np.zeros(3), 1.0, 2.0, 3.0]
    efforts = {"spin_x": 2.0, "spin_y": -3.0, "spin_z": 1.0}
    for integrator in ("variational", "rk4"):
        run = simulate(m, m.neutral(), v0, duration=5.0, step=0.005, efforts=efforts, integrator=integrator)
        h = run.momentum[:, :3]
        limit = 1e-12 if integrator == "variational" else 1e-9
        assert np.max(np.abs(h - h[0])) < limit * np.max(np.abs(h))
        assert np.ptp(run.v[:, 2]) > 0.01


def test_dart_reorientation():
    """Keat, "Dynamics simulation by DART" (1989), first study: a hub with four booms, turned by one cycle of a sine torque.

    No data are printed, so these are ours; booms are hinged and sprung. The impulse of a full cycle is zero: the angular
    momentum returns to nothing, and with stiff booms the hub has turned by A T^2/(2 pi J), J of all.
    """
    builder = al.ModelBuilder("hub", gravity=(0, 0, 0))
    builder.body(
        "hub",
        al.Inertia.cylinder(500.0, 1.0, 1.0, (0, 0, 1)),
        joint=al.Revolute((0, 0, 1)),
        joint_name="turn",
    )
    boom = al.Inertia.rod(10.0, (0, 0, 0), (5, 0, 0))
    for k in range(4):
        c, s = np.cos(k * np.pi / 2), np.sin(k * np.pi / 2)
        builder.body(
            f"boom{k}",
            boom,
            joint=al.Revolute((0, 0, 1)),
            parent="hub",
            placement=al.Placement.from_rpy((0, 0, k * np.pi / 2), (c, s, 0)),
            spring=al.Spring((4e4,)),
        )
    m = builder.build()
    period, amplitude = 40.0, 20.0
    times = np.linspace(0, period, 201)
    torque = Table(times, amplitude * np.sin(2 * np.pi * times / period), "cubic", outside="zero")
    run = simulate(
        m, np.zeros(5), duration=44.0, step=0.02, interval=0.2, integrator="rk4", efforts={"turn": torque}
    )
    inertia = m.mass_matrix(np.zeros(5))[0, 0]
    h = run.momentum[:, 2]
    assert abs(h[-1]) < 1e-8 * np.abs(h).max()
    # booms bend by 1e-4 rad, the spline is good to (2 pi/200)^4/384
    assert run.q[-1, 0] == pytest.approx(amplitude * period**2 / (2 * np.pi * inertia), rel=1e-3)
    assert np.abs(run.q[:, 1:]).max() < 0.05
    assert run.report.energy_error < 1e-4
