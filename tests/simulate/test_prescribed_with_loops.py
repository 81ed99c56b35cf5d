"""Joints that follow a motion in mechanisms with closed loops, and supports that move in a known way."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.constraints import compiled
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.simulate import Event, ForceElement, events, simulate
from alembert.simulate.adaptive import Counters, _jacobian
from alembert.simulate.chart_equation import Flow
from alembert.simulate.inputs import Inputs
from alembert.simulate.simulation import Simulation
from alembert.verify.mechanisms import four_bars, parallelogram

R, L = 0.2, 0.7
RATE = 5.0


@pytest.fixture(scope="module")
def slider_crank():
    """Crank R, rod L, piston of 2 kg along x: x = R cos a + sqrt(L^2 - R^2 sin^2 a)."""
    builder = al.ModelBuilder("slider_crank", gravity=(0, 0, 0))
    builder.body("crank", al.Inertia.rod(1.0, (0, 0, 0), (R, 0, 0)), joint=al.Revolute(), joint_name="crank")
    builder.body(
        "rod", al.Inertia.rod(0.5, (0, 0, 0), (L, 0, 0)), joint=al.Revolute(), parent="crank",
        placement=(R, 0, 0), joint_name="rod",
    )  # fmt: skip
    builder.body(
        "piston", al.Inertia.point(2.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="slide"
    )
    builder.frame("end", "rod", (L, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "piston")
    return builder.build()


def place(angle):
    return R * np.cos(angle) + np.sqrt(L**2 - (R * np.sin(angle)) ** 2)


def turning():
    t = ca.SX.sym("t")
    return ca.Function("turn", [t], [RATE * t])


@pytest.mark.parametrize("integrator", ["rk4", "dop853", "adams_bashforth4"])
@pytest.mark.parametrize("how", ["symbols", "function"])
def test_driven_slider_crank(slider_crank, integrator, how):
    """The piston is where geometry puts it, at every record; loops stay closed to rounding."""
    m = slider_crank
    motion = turning() if how == "symbols" else (lambda t: ([RATE * t], [RATE], [0.0]))
    q0 = m.assemble([0.0, 0.0, R + L]).q
    v0 = m.assemble(q0, [RATE, 0.0, 0.0], fixed=["crank"]).v
    run = simulate(
        m, q0, v0, duration=0.8, step=0.02, integrator=integrator, prescribed={"crank": motion},
        record=["reaction:pin"],
    )  # fmt: skip
    np.testing.assert_allclose(run.q[:, 0], RATE * run.time, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.v[:, 0], RATE, rtol=0, atol=1e-14)
    # one degree of freedom, prescribed: nothing is left to integrate, so no error of the scheme remains
    np.testing.assert_allclose(run.q[:, 2], place(RATE * run.time), rtol=0, atol=1e-12)
    assert run.report.constraint_error < 1e-12
    # the work of the motor is what the kinetic energy takes
    energy = run.kinetic_energy
    np.testing.assert_allclose(energy - energy[0], run.work, rtol=0, atol=1e-4 * np.ptp(energy))  # Simpson
    assert np.all(run.required_efforts[:, 1:] == 0)
    # the pin pushes the piston: force along x is its mass times its acceleration
    h = 1e-4
    found = run.recorded["reaction:pin"].values
    for k in (3, 10, 31):
        t = run.time[k]
        second = (place(RATE * (t + h)) - 2 * place(RATE * t) + place(RATE * (t - h))) / h**2
        assert found[k, 3] == pytest.approx(2.0 * second, rel=1e-5)


def test_an_implicit_scheme_starts_from_rest(slider_crank):
    """Its first iterates have a driven crank that turns and a piston that stands still."""
    m, t = slider_crank, ca.SX.sym("t")
    q0 = m.assemble([0.3, 0.0, R + L], fixed=["crank"]).q
    motion = ca.Function("start", [t], [0.3 + t**2])
    run = simulate(m, q0, duration=0.5, interval=0.1, integrator="radau", prescribed={"crank": motion})
    # prescribed altogether: states at the ends of steps are projected, records between are to the tolerance
    np.testing.assert_allclose(run.q[:, 2], place(0.3 + run.time**2), rtol=0, atol=1e-6)


def test_free_joint_beside_the_prescribed_one(slider_crank):
    """A pendulum on the piston of a driven crank moves as one whose support is prescribed: fourth order."""
    bodies = al.ModelBuilder("carried", gravity=(0, -9.81, 0))
    bob = al.Inertia.point(1.0, (0, -0.5, 0))
    alone = (
        bodies.body(
            "piston", al.Inertia.point(2.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="slide"
        )
        .body("bob", bob, joint=al.Revolute(), parent="piston", joint_name="swing")
        .build()
    )
    t = ca.SX.sym("t")
    known = ca.Function("x", [t], [R * ca.cos(RATE * t) + ca.sqrt(L**2 - (R * ca.sin(RATE * t)) ** 2)])
    expected = simulate(
        alone, [R + L, 0.3], duration=0.8, tolerance=1e-12, interval=0.8, prescribed={"slide": known}
    )
    builder = al.ModelBuilder("driven", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(0.5, (0, 0, 0), (L, 0, 0))
    crank = al.Inertia.rod(1.0, (0, 0, 0), (R, 0, 0))
    builder.body("crank", crank, joint=al.Revolute(), joint_name="crank")
    builder.body("rod", rod, joint=al.Revolute(), parent="crank", placement=(R, 0, 0), joint_name="rod")
    piston = al.Inertia.point(2.0, (0, 0, 0))
    builder.body("piston", piston, joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.body("bob", bob, joint=al.Revolute(), parent="piston", joint_name="swing")
    builder.frame("end", "rod", (L, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "piston")
    m = builder.build()
    q0 = m.assemble([0.0, 0.0, R + L, 0.3], fixed=["swing"]).q
    v0 = m.assemble(q0, [RATE, 0, 0, 0], fixed=["crank", "swing"]).v
    errors, steps = [], [0.04, 0.02, 0.01]
    for h in steps:
        run = simulate(m, q0, v0, duration=0.8, step=h, integrator="rk4", prescribed={"crank": turning()})
        errors.append(abs(run.q[-1][3] - expected.q[-1][1]))
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert order == pytest.approx(4, abs=0.4)
    accurate = simulate(m, q0, v0, duration=0.8, tolerance=1e-11, prescribed={"crank": turning()})
    assert accurate.q[-1][3] == pytest.approx(expected.q[-1][1], abs=1e-9)


def test_known_motion_of_a_support():
    """A linkage whose foundation shakes: the same as one that stands still in a field of inertial forces."""
    amplitude, frequency = 0.05, 9.0

    def linkage(moving):
        builder = al.ModelBuilder("shaken", gravity=(0, -9.81, 0))
        parent = "world"
        if moving:
            builder.body(
                "ground", al.Inertia.sphere(5.0, 0.1), joint=al.Prismatic((1, 0, 0)), joint_name="support"
            )
            parent = "ground"
        rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
        builder.body("crank", rod, joint=al.Revolute(), parent=parent)
        builder.body("coupler", rod, joint=al.Revolute(), parent="crank", placement=(1, 0, 0))
        builder.body("rocker", rod, joint=al.Revolute(), parent=parent, placement=(1, 0, 0))
        builder.frame("end of coupler", "coupler", (1, 0, 0))
        builder.frame("end of rocker", "rocker", (1, 0, 0))
        builder.loop("pin", al.Revolute(), "end of coupler", "end of rocker")
        return builder.build()

    still, shaken = linkage(False), linkage(True)
    t = ca.SX.sym("t")
    motion = ca.Function("shake", [t], [amplitude * ca.sin(frequency * t)])
    q0 = still.assemble([1.4, -1.4, 1.4]).q
    start = simulate(
        shaken, np.r_[0.0, q0], np.r_[amplitude * frequency, np.zeros(3)], duration=0.6, step=0.01,
        integrator="rk4", prescribed={"support": motion},
    )  # fmt: skip
    bodies = ("crank", "coupler", "rocker")

    def push(body):
        def wrench(t, q, v):
            rotation = still.frame_pose(q, body).rotation
            force = rotation.T @ [amplitude * frequency**2 * np.sin(frequency * t), 0.0, 0.0]
            return np.r_[np.cross([0.5, 0, 0], force), force]

        return wrench

    inertial = simulate(
        still, q0, duration=0.6, step=0.01, integrator="rk4", wrenches={body: push(body) for body in bodies}
    )
    np.testing.assert_allclose(start.q[:, 1:], inertial.q, rtol=0, atol=2e-6)  # fourth order, step 0.01


def test_batch(slider_crank):
    m = slider_crank
    q0 = m.assemble([0.0, 0.0, R + L]).q
    v0 = m.assemble(q0, [RATE, 0.0, 0.0], fixed=["crank"]).v
    run = simulate(
        m, np.array([q0, q0]), np.array([v0, v0]), duration=0.1, step=0.02, integrator="rk4",
        prescribed={"crank": turning()},
    )  # fmt: skip
    np.testing.assert_allclose(run.q[1, :, 2], place(RATE * run.time), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("large", "driven"), [(False, ("foot0", "foot2")), (True, ("foot0",))])
def test_machine_code_makes_the_steps_of_python(large, driven, monkeypatch):
    """A motion of symbols is compiled with loops, one that Python gives is not: the same equations, the same steps.

    Also where drives hold more than is free: one motion then follows from the other, and rows of the loops from others.
    """
    monkeypatch.setattr(compiled, "PAIRS", 0 if large else 200)  # loops over the tree, or straight code
    four_bars.cache_clear()
    m = four_bars(2)
    t = ca.SX.sym("t")
    angle = ca.Function("angle", [t], [0.3 + 0.2 * ca.sin(3 * t)])

    def numbers(t):
        return [0.3 + 0.2 * np.sin(3 * t)], [0.6 * np.cos(3 * t)], [-1.8 * np.sin(3 * t)]

    q0, v0 = parallelogram(m, 0.3, 0.6)
    found = [
        simulate(
            m, q0, v0, duration=0.2, step=0.01, integrator="rk4", prescribed=dict.fromkeys(driven, motion),
            efforts={"knee1": 0.5}, wrenches={"beam1": [0, 0, 0, 0.3, 0.1, 0]},
        )
        for motion in (angle, numbers)
    ]  # fmt: skip
    four_bars.cache_clear()
    # the mechanism has one degree of freedom and follows the angle; speeds to the rounding of a projection
    np.testing.assert_allclose(found[0].q, found[1].q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[0].v, found[1].v, rtol=0, atol=1e-11)
    if len(driven) == 1:
        np.testing.assert_allclose(found[0].required_efforts, found[1].required_efforts, rtol=0, atol=1e-8)


def test_what_cannot_be(slider_crank):
    m = slider_crank
    q0 = m.assemble([0.5, 0.0, R + L], fixed=["crank"]).q
    with (
        pytest.warns(al.AlembertWarning, match="'slide' is .* in q0, but it is prescribed"),
        pytest.raises(
            NumericalError,
            match=r"simulate: loop 'pin' stays open by .* with 'slide' fixed: the mechanism cannot follow",
        ),
    ):
        simulate(m, q0, duration=0.1, step=0.01, integrator="rk4", prescribed={"slide": 2 * (R + L)})
    held = float(q0[2])
    with pytest.raises(
        (ArgumentError, NumericalError),
        match=r"simulate: .*(cannot all follow|cannot follow the prescribed motion)",
    ):
        t = ca.SX.sym("t")
        moving = ca.Function("turn", [t], [0.5 + t**2])
        simulate(
            m, q0, duration=0.1, step=0.01, integrator="rk4", prescribed={"slide": held, "crank": moving}
        )
    with pytest.raises(UnsupportedError, match="prescribed motion and stabilisation 'baumgarte' do not go"):
        simulate(
            m,
            q0,
            duration=0.1,
            step=0.01,
            integrator="rk4",
            prescribed={"crank": 0.5},
            stabilisation="baumgarte",
        )
    t = ca.SX.sym("t")
    with pytest.raises(
        NumericalError,
        match=r"impulse: no impulse makes all constraints hold with 'crank' fixed: loop 'pin' would open at",
    ):
        simulate(
            m, q0, duration=0.1, step=0.01, integrator="rk4",
            prescribed={"crank": ca.Function("turn", [t], [0.5 + t])},
            events=Event(lambda t, q, v: t - 0.05, action=events.Lock("slide")),
        )  # fmt: skip


@pytest.mark.parametrize(("closed", "reading"), [(False, False), (True, False), (True, True)])
def test_jacobian_of_implicit_schemes_is_exact(slider_crank, closed, reading):
    """Against central differences, with a controller on the free joints: 1e-12 of truncation, and rounding over the step of
    1e-6, of slopes up to 140: 1e-5 is far above both. A wrong or missing term is as large as the slopes."""
    m, joint = al.library.two_link(), "shoulder"
    if closed:
        builder = al.ModelBuilder("carried", gravity=(0, -9.81, 0))
        builder.body("bob", al.Inertia.point(1.0, (0, -0.5, 0)), joint=al.Revolute(), joint_name="swing")
        m, joint = slider_crank.attach(builder.build(), to="piston"), "crank"
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    motion = ca.Function("turn", [t], [0.3 + RATE * t + 0.4 * ca.sin(3 * t)])
    law = ca.Function("law", [t, q, v], [-30 * q - 2 * v])

    def worn(t, poses, velocities, reactions):
        """Rubs as the pin is loaded: its force depends on the state through reactions as well."""
        N = ca.sqrt(ca.sumsqr(reactions["pin"][3:6]) + 1.0)
        return ca.vertcat(0, 0, 0, -0.3 * N * velocities[0][3:6])

    forces = [ForceElement("piston", wrenches=worn, reactions="pin")] if reading else []
    push = {"piston": [0, 0, 0, 3.0, 0, 0]} if closed else None
    system = Simulation(
        m, Inputs(prescribed={joint: motion}, controller=law, forces=forces, wrenches=push), ()
    )
    flow, rng = Flow(system, np.zeros(m.nv), 0.0), np.random.default_rng(0)
    start = rng.normal(size=m.nq)
    if closed:
        start = m.assemble(
            system.prescribed_motions.imposed(0.1, m.neutral(), np.zeros(m.nv))[0], fixed=[joint]
        ).q
    q0, v0 = system.settled(0.1, start, rng.normal(size=m.nv))

    def slope(y):
        """Coordinates of these models simply add."""
        return np.concatenate([y[m.nv :], flow.slope(0.1, q0 + y[: m.nv], y[m.nv :].copy(), np.zeros(0))[0]])

    y, d = np.concatenate([np.zeros(m.nv), v0]), 1e-6
    columns = [(slope(y + d * e) - slope(y - d * e)) / (2 * d) for e in np.eye(2 * m.nv)]
    assert flow.exact
    np.testing.assert_allclose(
        _jacobian(flow, q0, Counters())(0.1, y), np.array(columns).T, rtol=0, atol=1e-5
    )
    if closed:
        flow.begin(q0, v0)
        for _ in range(3):
            y = np.concatenate([1e-4 * rng.normal(size=m.nv), v0 * (1 + 1e-4 * rng.normal(size=m.nv))])
            t = 0.1 + 1e-3 * rng.random()
            q, v = q0 + y[: m.nv], y[m.nv :].copy()
            # accelerations reach 1e3; their factors have conditions up to 1e3
            a = flow.slope(t, q, v, np.zeros(0))[0]
            np.testing.assert_allclose(flow.rates(t, y), np.r_[v, a], rtol=0, atol=1e-8)
            settled = flow.rates.settled(t, q, v)
            for x, other in zip(settled, system.settled(t, q, v), strict=True):
                np.testing.assert_allclose(x, other, rtol=0, atol=1e-11)
            found = flow.rates.efforts(
                np.array([t, t]), *(np.tile(x, (2, 1)) for x in settled), np.zeros((2, 0))
            )
            expected = flow.efforts(t, *settled, np.zeros(0))
            np.testing.assert_allclose(found, [expected, expected], rtol=0, atol=1e-8)
