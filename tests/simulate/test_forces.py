"""Force elements against closed forms, their own potentials, and the balance of energy and momentum."""

import casadi as ca
import numpy as np
import pytest
from simulate_helpers import MODELS, model, state

import alembert as al
from alembert.errors import ArgumentError, ModelError, UnsupportedError
from alembert.simulate import Bushing, Drag, ForceElement, SoftStop, SpringDamper, simulate
from alembert.simulate.elements import Elements

PAIRS = {"ball": ("world", "tip"), "craft": ("bus", "slide"), "bench": ("a", "d")}


def slider(**options):
    """One kilogram along x, without gravity."""
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="rail", **options)
    return builder.build()


def elements(name):
    a, b = PAIRS[name]
    return [SpringDamper(a, b, 30.0, length=0.4), Bushing(a, b, (1.0, 2.0, 3.0, 10.0, 20.0, 30.0))]


@pytest.mark.parametrize("name", MODELS)
def test_efforts_are_the_slopes_of_the_potential(name):
    m = model(name)
    q, v = state(name)
    kernel = Elements(m, elements(name), None).kernel("numbers")
    kept, other, _, _ = kernel(np.zeros(1), q, v)
    step = 1e-5

    def slope(k):
        d = step * np.eye(m.nv)[k]
        (up,), (down,) = (kernel(np.zeros(1), m.integrate(q, x), v)[3] for x in (d, -d))
        return (up - down) / (2 * step)

    # truncation 1e-10 and rounding 1e-16/1e-5 times energies of about 10 J
    np.testing.assert_allclose(kept, [-slope(k) for k in range(m.nv)], rtol=0, atol=2e-8)
    assert not np.any(other)


@pytest.mark.parametrize(
    ("integrator", "energy", "momentum"),
    [
        ("rk4", 1e-7, 1e-7),  # some (w h)^4 with w = 10/s
        ("adams_moulton4", 1e-6, 1e-6),
        ("variational", 1e-4, 1e-13),  # order 2; momentum to rounding
        ("generalised_alpha", 1e-3, 1e-3),
        ("dop853", 1e-8, 1e-8),
    ],
)
def test_energy_and_momentum_are_kept(integrator, energy, momentum):
    step = None if integrator == "dop853" else 2e-3
    q, v = state("craft")
    run = simulate(
        model("craft"), q, v, duration=1.0, step=step, integrator=integrator, forces=elements("craft")
    )
    assert run.report.work is None
    assert run.report.energy_error < energy
    assert max(run.report.momentum_error) < momentum


def test_auto_knows_that_potentials_keep_the_energy():
    q, v = state("craft")
    run = simulate(model("craft"), q, v, duration=0.01, step=1e-3, forces=elements("craft"))
    assert run.integrator == "variational"
    spring = [SpringDamper("bus", "slide", 30.0, damping=1.0)]
    run = simulate(model("craft"), q, v, duration=0.01, step=1e-3, forces=spring)
    assert run.integrator == "rk4"


@pytest.mark.parametrize("integrator", ["rk4", "variational", "radau"])
def test_what_dampers_take_out_is_in_the_balance(integrator):
    a, b = PAIRS["bench"]
    forces = [
        SpringDamper(a, b, 30.0, 2.0, 0.4),
        Bushing(a, b, (1.0,) * 6, (0.1, 0.2, 0.3, 1.0, 2.0, 3.0)),
        Drag("d", 1.2, 0.3),
        Drag("c", 1.2, 0.3, normal=(0, 0, 2)),
    ]
    q, v = state("bench")
    step = None if integrator == "radau" else 2e-3
    run = simulate(
        model("bench"), q, v, duration=0.5, step=step, integrator=integrator, forces=forces, tolerance=1e-8
    )
    assert run.report.work < -0.1
    assert run.report.energy_error < (1e-3 if integrator == "variational" else 1e-5)
    assert run.report.momentum_error is None


def test_oscillator_in_closed_form():
    m = slider()
    anchor = m.replace(frames=(al.Frame("anchor", "world", al.Placement((-1.0, 0, 0))),))
    k, c, t = 25.0, 1.2, 2.0
    spring = SpringDamper("anchor", "mass", k, c, length=1.0)
    run = simulate(anchor, [0.3], duration=t, step=1e-3, integrator="rk4", forces=spring)
    decay, w = c / 2, np.sqrt(k - c * c / 4)
    expected = 0.3 * np.exp(-decay * t) * (np.cos(w * t) + decay / w * np.sin(w * t))
    assert run.q[-1, 0] == pytest.approx(expected, abs=1e-10)


def test_a_cable_pulls_only():
    m = slider()
    cable = SpringDamper("world", "mass", 100.0, length=1.0, tension_only=True)
    run = simulate(m, [0.0], [2.0], duration=2.0, tolerance=1e-11, forces=cable)
    # free to 1 m, half a swing of 10 rad/s on the cable, and back at the same speed
    turn = 0.5 + np.pi / 10
    assert run.v[np.searchsorted(run.time, 0.49), 0] == pytest.approx(2.0, abs=1e-12)
    assert run.v[np.searchsorted(run.time, turn + 0.1), 0] == pytest.approx(-2.0, abs=1e-7)
    assert run.report.energy_error < 1e-9


def test_terminal_speed():
    builder = al.ModelBuilder("drop")
    builder.body("drop", al.Inertia.sphere(2.0, 0.1), joint=al.Free())
    m = builder.build()
    drag = Drag("drop", 0.5, 0.8, density=1.2)
    terminal = np.sqrt(2 * 2.0 * 9.81 / (1.2 * 0.5 * 0.8))
    run = simulate(m, m.neutral(), duration=3.0, tolerance=1e-11, forces=drag)
    np.testing.assert_allclose(run.v[:, 5], -terminal * np.tanh(9.81 * run.time / terminal), atol=1e-8)
    up = Drag("drop", 0.5, 0.8, 1.2, wind=(0, 0, terminal))  # it carries the drop
    assert np.abs(simulate(m, m.neutral(), duration=3.0, forces=up).v).max() < 1e-9


def test_density_may_depend_on_the_place():
    builder = al.ModelBuilder("drop", gravity=(0, 0, 0))
    builder.body("drop", al.Inertia.point(2.0), joint=al.Prismatic((0, 0, 1)))
    m = builder.build()
    run = simulate(m, [0.0], [-10.0], duration=1.0, tolerance=1e-11,
                   forces=Drag("drop", 1.0, 1.0, density=lambda x: ca.exp(x[2])))  # fmt: skip
    # dv/dz = -(rho/2) v / m, so that v = -10 exp((exp(z) - 1)/4) falling from 0 (minus: it slows down)
    np.testing.assert_allclose(run.v[:, 0], -10 * np.exp((np.exp(run.q[:, 0]) - 1) / 4), rtol=1e-8)


@pytest.mark.parametrize("integrator", ["rk4", "variational", "dop853"])
def test_soft_stop_turns_a_joint_back(integrator):
    m = slider(limits=al.Limits(lower=(-0.5,), upper=(0.5,)))
    stop = SoftStop(1e4)
    run = simulate(
        m, [0.0], [1.0], duration=0.7, step=1e-4, integrator=integrator, forces=stop, tolerance=1e-11
    )
    assert run.v[-1, 0] == pytest.approx(-1.0, abs=1e-5)
    assert run.q.max() == pytest.approx(0.5 + 1 / 100, abs=1e-6)
    damped = simulate(m, [0.0], [1.0], duration=0.7, step=1e-4, integrator="rk4", forces=SoftStop(1e4, 20.0))
    assert -1.0 < damped.v[-1, 0] < -0.3
    assert damped.report.energy_error < 1e-4  # Simpson's rule over the kink at the limit


def test_own_elements_are_as_good_as_those_that_are_there():
    m = model("ball")
    q, v = state("ball")

    def energy(t, a, b):
        r = b.translation - a.translation
        return 15.0 * (ca.norm_2(r) - 0.4) ** 2

    def damper(t, poses, velocities):
        r = poses[1].translation - poses[0].translation
        u = r / ca.norm_2(r)
        f = -2.0 * ca.dot(u, velocities[1][3:] - velocities[0][3:]) * u
        return [ca.vertcat(0, 0, 0, -f), ca.vertcat(0, 0, 0, f)]

    own = ForceElement(("world", "tip"), energy, damper)
    given = SpringDamper("world", "tip", 30.0, 2.0, 0.4)
    runs = [simulate(m, q, v, duration=0.5, step=1e-3, integrator="rk4", forces=x) for x in (own, [given])]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-13)
    assert runs[0].report.work == pytest.approx(runs[1].report.work)


def test_formulas_and_batches():
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.parameter("k", 25.0)
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)))
    builder.frame("anchor", "world", (-1.0, 0, 0))
    m = builder.build()
    spring = SpringDamper("anchor", "mass", al.Expression("k"), length=1.0)
    k = np.array([25.0, 36.0, 49.0])
    run = simulate(m, [0.1], duration=1.0, step=1e-3, integrator="rk4", forces=spring, parameters={"k": k})
    np.testing.assert_allclose(run.q[:, -1, 0], 0.1 * np.cos(np.sqrt(k)), atol=1e-10)
    assert run.report.energy_error < 1e-9


def test_springs_on_coupled_joints():
    """Two wheels geared together; a spring between their rims keeps the energy."""
    builder = al.ModelBuilder("gear", gravity=(0, 0, 0))
    for k, name in enumerate("ab"):
        wheel = al.Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1))
        builder.body(name, wheel, joint=al.Revolute((0, 0, 1)), joint_name=name, placement=(2.0 * k, 0, 0))
        builder.frame(f"rim_{name}", name, (0, 0.5, 0))
    m = builder.build().replace(couplings=(al.Coupling("gear", "b", ("a",), (-2.0,)),))
    spring = SpringDamper("rim_a", "rim_b", 40.0, length=1.0)
    run = simulate(m, [0.1, -0.2], duration=1.0, step=2e-3, integrator="rk4", forces=spring)
    assert np.ptp(run.q[:, 0]) > 0.1
    assert run.report.work is None
    assert run.report.energy_error < 1e-6


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SpringDamper("a", "b", -1.0), ArgumentError, "SpringDamper: stiffness is -1.0, expected zero or more"),
        (lambda: Bushing("a", "b", (1.0,) * 6, (1, 1, 1, 1, 1, -2.0)), ArgumentError, "Bushing: damping is"),
        (lambda: Drag("a", 1.0, 1.0, normal=(0, 0, 0)), ArgumentError, "Drag: normal is"),
        (lambda: SoftStop(0.0), ArgumentError, "SoftStop: stiffness is 0.0, expected positive"),
        (lambda: ForceElement("a"), ArgumentError, "ForceElement 'force': expected a potential"),
        (lambda: ForceElement("a", potential=3), ArgumentError, "potential is 3, expected a function"),
    ],
)  # fmt: skip
def test_messages_of_elements(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("forces", "error", "message"),
    [
        (SpringDamper("mass", "nowhere"), ArgumentError, "no frame 'nowhere'"),
        (SpringDamper("mass", "mass"), ArgumentError, "between 'mass' and itself"),
        (
            SpringDamper("world", "mass", al.Expression("kk")),
            ModelError,
            "uses the parameter 'kk', which has no value",
        ),
        (SoftStop(1.0), ArgumentError, "no joint of the model 'slider' has position limits"),
        (SoftStop(1.0, joints=("rail",)), ArgumentError, "joint 'rail' has no position limits"),
        (SoftStop(1.0, joints=("rial",)), ArgumentError, "SoftStop: no joint 'rial'"),
        ("spring", ArgumentError, "forces has 'spring', expected SpringDamper"),
        (
            ForceElement("mass", wrenches=lambda t, X, V: [ca.SX(5, 1)]),
            ArgumentError,
            "expected 1 vectors of moment and force",
        ),
        (
            ForceElement("mass", potential=lambda t, X: X.translation),
            ArgumentError,
            "expected one number",
        ),
    ],
)
def test_messages(forces, error, message):
    with pytest.raises(error, match=message):
        simulate(slider(), [0.0], duration=0.1, step=0.01, integrator="rk4", forces=forces)


def test_stops_of_joints_that_do_not_add():
    builder = al.ModelBuilder("ball")
    builder.body("a", al.Inertia.sphere(1.0, 0.1), joint=al.Spherical(), joint_name="ball",
                 limits=al.Limits(upper=(1.0,) * 4))  # fmt: skip
    m = builder.build()
    with pytest.raises(UnsupportedError, match="limits of joint 'ball' and joint type 'spherical'"):
        simulate(m, m.neutral(), duration=0.1, step=0.01, integrator="rk4", forces=SoftStop(1.0))


def test_outside_of_a_run():
    """The accelerations of a run, derivatives against differences, the potential's gradient, and symbols."""
    builder = al.ModelBuilder("ball")
    builder.parameter("k", 30.0)
    rod = al.Inertia.box(1.0, (1.0, 0.1, 0.2), (0.5, 0, 0))
    builder.body("upper", rod, joint=al.Spherical(), joint_name="ball")
    builder.body(
        "lower", rod, joint=al.Revolute((0, 1, 0)), joint_name="elbow", parent="upper", placement=(1, 0, 0)
    )
    m = builder.build()
    spring = al.simulate.SpringDamper("world", "lower", al.Expression("2 * k"), 3.0, length=0.7)
    elements = [spring, al.simulate.Drag("lower", 1.2, 0.3)]
    forces = al.simulate.Forces(m, elements)
    rng = np.random.default_rng(0)
    q = np.stack([m.random_configuration(rng) for _ in range(5)])
    v = rng.normal(size=(5, m.nv))
    given = {"parameters": {"k": np.linspace(10, 50, 5)}}
    tau = forces.efforts(q, v, **given)
    assert tau.shape == (5, m.nv)
    run = simulate(m, q, v, duration=0.01, step=0.01, integrator="rk4", forces=elements, **given)
    np.testing.assert_allclose(
        run.accelerations[:, 0], m.forward_dynamics(q, v, tau, **given), rtol=0, atol=1e-10
    )
    d, h = forces.derivatives(q, v, **given), 1e-6
    for k, e in enumerate(np.eye(m.nv)):
        dq = forces.efforts(m.integrate(q, h * e), v, **given) - forces.efforts(
            m.integrate(q, -h * e), v, **given
        )
        np.testing.assert_allclose(d.dq[..., k], dq / (2 * h), rtol=0, atol=1e-6)  # h^2 and rounding / h
        dv = forces.efforts(q, v + h * e, **given) - forces.efforts(q, v - h * e, **given)
        np.testing.assert_allclose(d.dv[..., k], dv / (2 * h), rtol=0, atol=1e-6)
        dU = forces.potential(m.integrate(q, h * e), **given) - forces.potential(
            m.integrate(q, -h * e), **given
        )
        at_rest = forces.efforts(q, **given)[:, k]
        np.testing.assert_allclose(dU / (2 * h), -at_rest, rtol=0, atol=1e-6)
    symbolic = np.array(forces.function(0.0, q[1], v[1], 20.0)).ravel()
    np.testing.assert_allclose(symbolic, tau[1], rtol=1e-12)
    with pytest.raises(ArgumentError, match=r"Forces: q has shape \(3,\), expected \(..., 5\)"):
        forces.efforts([0, 0, 0])
