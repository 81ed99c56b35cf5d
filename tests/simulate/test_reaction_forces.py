"""Forces that depend on reactions: friction and creep under normal forces that they change themselves, in closed form."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.simulate import ContactFriction, ForceElement, Forces, simulate
from alembert.simulate.chart_equation import Flow
from alembert.simulate.inputs import Inputs
from alembert.simulate.simulation import Simulation

G = 9.81
R, MU, MASS = 2.0, 0.3, 0.7


@pytest.fixture(scope="module")
def bead():
    """On a hoop, without gravity."""
    builder = al.ModelBuilder("bead", gravity=(0, 0, 0))
    builder.body("bead", al.Inertia.point(MASS, (0, 0, 0)), joint=al.Translational(), joint_name="at")
    hoop = al.PointOnParametricCurve((f"{R} * cos(s)", f"{R} * sin(s)", "0"), start=-3.1, end=3.1)
    builder.loop("hoop", hoop, "world", "bead")
    return builder.build()


def dry(t, poses, velocities, reactions):
    force, v = reactions["hoop"][3:6], velocities[0][3:6]
    N = ca.sqrt(ca.dot(force, force) + 1e-24)
    return ca.vertcat(0, 0, 0, -MU * N * v / ca.norm_2(v))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"integrator": "rk4", "step": 0.01}, 1e-8),  # (MU v h / R)^4 times a second
        ({"integrator": "rk4", "step": 0.01, "controller": lambda t, q, v: 0 * v}, 1e-8),
        ({"integrator": "dop853"}, 1e-8),  # tolerance 1e-9 and some steps
        ({"integrator": "radau", "tolerance": 1e-7}, 1e-6),
    ],
    ids=["compiled", "in python", "dop853", "radau"],
)
def test_a_bead_on_a_hoop_with_friction(bead, options, error):
    """N = m v^2 / R and v' = -mu v^2 / R: v = v0 / (1 + mu v0 t / R); reactions, work and energy go with it."""
    v0 = 3.0
    force = ForceElement("bead", wrenches=dry, reactions="hoop")
    run = simulate(
        bead, [R, 0, 0], [0, v0, 0], duration=1.0, forces=[force], record=["reaction:hoop"], **options
    )
    expected = v0 / (1 + MU * v0 * run.time / R)
    np.testing.assert_allclose(np.linalg.norm(run.v, axis=-1), expected, rtol=0, atol=error)
    normal = np.linalg.norm(run.recorded["reaction:hoop"].values[:, 3:], axis=-1)
    np.testing.assert_allclose(normal, MASS * expected**2 / R, rtol=0, atol=10 * error)
    assert run.report.energy_error < 10 * error
    assert run.work[-1] == pytest.approx(MASS * (expected[-1] ** 2 - v0**2) / 2, rel=1e-5)


def test_alone_and_in_a_batch_the_same_bits(bead):
    friction = [ContactFriction("hoop", MU)]
    v0 = np.array([[0, 3.0, 0], [0, 1.0, 0], [0, -2.0, 0]])
    q0 = np.tile([R, 0, 0], (3, 1))
    together = simulate(bead, q0, v0, duration=0.2, step=0.01, forces=friction)
    for k in range(3):
        alone = simulate(bead, q0[k], v0[k], duration=0.2, step=0.01, forces=friction)
        np.testing.assert_array_equal(alone.q, together.q[k])
        np.testing.assert_array_equal(alone.v, together.v[k])


def test_a_coefficient_that_varies_over_a_batch():
    """v' = -mu g on the level; the work of friction is the kinetic energy that is gone, in each motion."""
    builder = al.ModelBuilder("block", gravity=(0, 0, -G))
    mu = builder.parameter("mu", 0.1)
    builder.body("block", al.Inertia.point(MASS), joint=al.Translational(), joint_name="at")
    builder.loop("floor", al.PointOnPlane((0, 0, 1)), "world", "block")
    model = builder.build()
    friction = ContactFriction("floor", mu, speed=1e-9)
    values = np.array([0.1, 0.3])
    run = simulate(
        model, [[0.0] * 3] * 2, [[3.0, 0, 0]] * 2, duration=0.2, step=0.01, forces=[friction], parameters={"mu": values}
    )  # fmt: skip
    # (speed/v)^2 of friction is missing; the rest is rounding
    np.testing.assert_allclose(run.v[:, -1, 0], 3.0 - values * G * 0.2, rtol=1e-12)
    np.testing.assert_allclose(run.work[:, -1], MASS * (run.v[:, -1, 0] ** 2 - 9.0) / 2, rtol=1e-9)
    held = ca.Function("held", [t := ca.SX.sym("t")], [ca.vertcat(t, 0, 0)])
    with pytest.raises(NumericalError, match=r"redundant .*'floor' follows from others, or from prescribed"):
        simulate(model, np.zeros(3), [1.0, 0, 0], duration=0.1, forces=[friction], prescribed={"at": held})
    with pytest.raises(
        UnsupportedError, match="c_source: forces read the reactions of 'floor', and forces that are found"
    ):
        al.deploy.c_source(model, "nowhere", forces=[friction])


@pytest.fixture(scope="module")
def rod():
    """Of length 1, its lower end on the floor: Painleve's."""
    builder = al.ModelBuilder("rod", gravity=(0, -G, 0))
    builder.body("rod", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Planar(), joint_name="at")
    builder.loop("floor", al.PointOnPlane((0, 1, 0)), "world", "rod")
    return builder.build()


@pytest.mark.parametrize("sign", [1, -1])
def test_friction_changes_the_normal_force(rod, sign):
    """N (1 + 3 c (c + sign mu s)) = m (g - l s w^2), c and s of the angle to the floor, l half the length."""
    angle, rate, mu = 0.9, -0.4, 0.5
    c, s = np.cos(angle), np.sin(angle)
    friction = [ContactFriction("floor", mu, speed=1e-9)]
    run = simulate(
        rod, [0, 0, angle], [sign * 1.0, 0, rate], duration=0.02, step=0.01, forces=friction,
        record=["reaction:floor"],
    )  # fmt: skip
    N = (G - 0.5 * s * rate**2) / (1 + 3 * c * (c + sign * mu * s))
    found = run.recorded["reaction:floor"].values[0]
    # the point of contact is the frame's origin: no moment; the force is in the rod's axes
    np.testing.assert_allclose(found, [0, 0, 0, s * N, c * N, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("driven", [False, True])
def test_jacobian_knows_that_reactions_change(rod, driven):
    """Against central differences over 1e-6, of slopes up to 1e2: truncation and rounding are below 1e-7."""
    m = rod
    if driven:  # carried by a motor, which changes the reactions as well
        builder = al.ModelBuilder("carried", gravity=(0, -G, 0))
        builder.body("cart", al.Inertia.point(2.0), joint=al.Prismatic((1, 0, 0)), joint_name="cart")
        m = builder.build().attach(rod, to="cart")
    t = ca.SX.sym("t")
    motion = {"cart": ca.Function("x", [t], [0.3 * ca.sin(5 * t)])} if driven else None
    system = Simulation(m, Inputs(forces=[ContactFriction("floor", 0.5, speed=0.2)], prescribed=motion), ())
    flow, free = Flow(system, np.zeros(m.nv), 0.0), np.zeros(0)
    start = np.r_[np.zeros(m.nv - 1), 0.9], np.r_[np.zeros(m.nv - 3), 0.7, 0, -0.4]
    q0, v0 = system.settled(0.1, *start)

    def slope(y):
        """Off the surface by less than what is accepted at stages."""
        return flow.slope(0.1, q0 + y[: m.nv], v0 + y[m.nv :], free)[0]

    d = 1e-6
    columns = [(slope(d * e) - slope(-d * e)) / (2 * d) for e in np.eye(2 * m.nv)]
    np.testing.assert_allclose(flow.slopes(0.1, q0, v0, free)[0], np.array(columns).T, rtol=0, atol=1e-6)


def test_a_jammed_rod_is_told(rod):
    """Beyond mu = (1 + 3 c^2) / (3 c s) there is no normal force with which the rod could slide that way."""
    friction = [ContactFriction("floor", 2.0)]
    with pytest.raises(
        NumericalError, match=r"forces that read reactions \('floor'\) have no solution at t = 0 s"
    ):
        simulate(rod, [0, 0, 0.9], [-1.0, 0, 0], duration=0.1, integrator="dop853", forces=friction)
    with pytest.raises(NumericalError, match=r"not finite after t = 0 s.*its equations have no solution"):
        simulate(rod, [0, 0, 0.9], [-1.0, 0, 0], duration=0.1, step=0.01, forces=friction)


@pytest.mark.parametrize("how", ["symbols", "function"])
def test_a_sledge_that_is_pulled_along(how):
    """The drive of a prescribed motion gives m a + mu m g, the floor m g."""
    builder = al.ModelBuilder("sledge", gravity=(0, 0, -G))
    builder.body("rope", al.Inertia.point(1e-3), joint=al.Prismatic((1, 0, 0)), joint_name="pull")
    builder.body(
        "sledge", al.Inertia.point(2.0), parent="rope", joint=al.Prismatic((0, 0, 1)), joint_name="lift"
    )
    builder.loop("floor", al.PointOnPlane(), "world", "sledge")
    t = ca.SX.sym("t")
    motion = ca.Function("pull", [t], [t + t**2])
    if how == "function":
        motion = lambda t: ([t + t * t], [1 + 2 * t], [2.0])  # noqa: E731
    run = simulate(
        builder.build(), duration=0.1, step=0.01, integrator="rk4", prescribed={"pull": motion},
        forces=[ContactFriction("floor", 0.4, speed=1e-9)], record=["reaction:floor"],
    )  # fmt: skip
    np.testing.assert_allclose(run.recorded["reaction:floor"].values[:, 5], 2.0 * G, rtol=1e-12)
    np.testing.assert_allclose(run.q[:, 1], 0, atol=1e-14)
    # friction is a force element: the drive takes its inertia, and what friction takes is in the work
    np.testing.assert_allclose(run.required_efforts[:, 0], 2.001 * 2.0 + 0.4 * 2.0 * G, rtol=1e-9)
    assert run.report.energy_error < 1e-9


def test_creep_and_its_limit(rod):
    """A point that slides at a given speed: creep |s| / travel where that is small, mu N where it is large."""
    builder = al.ModelBuilder("point", gravity=(0, 0, -G))
    builder.parameter("mu", 0.5)
    builder.body("point", al.Inertia.point(3.0), joint=al.Translational(), joint_name="at")
    builder.loop("floor", al.PointOnPlane(), "world", "point")
    m = builder.build()
    N, travel, h = 3.0 * G, 10.0, 1e-4
    for mu, creep, speed in ((0.5, 10.0, 0.2), (0.5, 900.0, 0.2), (0.5, 1e5, 0.2), (0.1, 900.0, 0.2)):
        wheel = ContactFriction("floor", al.Expression("mu"), creep=creep, travel=travel)
        run = simulate(
            m, v0=[speed, 0, 0], duration=h, step=h, integrator="rk4", forces=wheel, parameters={"mu": mu}
        )
        T = creep * speed / travel
        expected = mu * N * (1 - (1 - min(1.0, T / (3 * mu * N))) ** 3)
        # over so short a time the force is constant to 3 / (travel m) creep h
        assert 3.0 * (speed - run.v[-1][0]) / h == pytest.approx(
            expected, rel=2 * creep * h / (travel * 3.0) + 1e-9
        )


def test_what_cannot_be(bead, rod):
    friction = ContactFriction("floor", 0.2)
    with pytest.raises(
        UnsupportedError, match="read reactions and integrator 'variational' do not go together"
    ):
        simulate(rod, [0, 0, 1.0], duration=0.1, step=0.01, integrator="variational", forces=friction)
    with pytest.raises(UnsupportedError, match=r"forces that read reactions \('floor'\) are for al.simulate"):
        Forces(rod, [friction])
    with pytest.raises(ArgumentError, match=r"read the reaction of no constraint 'flor'; .*'floor'"):
        simulate(rod, duration=0.1, forces=ForceElement("rod", wrenches=dry, reactions="flor"))
    with pytest.raises(ArgumentError, match=r"ContactFriction: no loop 'flor'; .*'floor'"):
        ContactFriction("flor", 0.1).check(rod)
    still = ForceElement("rod", wrenches=lambda t, X, V, r: ca.SX.zeros(6), reactions="floor")
    with pytest.raises(ArgumentError, match="read the reactions of 'floor' and do not depend on them"):
        simulate(rod, duration=0.1, forces=still)
    with pytest.raises(ArgumentError, match="a potential and reactions, expected two elements"):
        ForceElement("rod", potential=lambda t, X: 0, wrenches=dry, reactions="floor")
    with pytest.raises(ArgumentError, match=r"creep is 3.0 and travel None, expected both"):
        ContactFriction("floor", 0.2, creep=3.0)
    builder = al.ModelBuilder("held", gravity=(0, 0, -G))
    builder.body("bead", al.Inertia.point(1.0), joint=al.Translational())
    builder.loop("one", al.PointOnPlane(), "world", "bead").loop("two", al.PointOnPlane(), "world", "bead")
    builder.loop("rod", al.Distance(1.0), "world", "bead")
    m = builder.build()
    with pytest.raises(
        NumericalError, match=r"redundant \(loop '(one|two)' follows from others, or.*not unique"
    ):
        simulate(m, [1, 0, 0], [0, 1.0, 0], duration=0.1, step=0.01, forces=ContactFriction("one", 0.1))
    with pytest.raises(
        UnsupportedError, match="loop 'rod' is closed by 'distance', in which no point slides"
    ):
        ContactFriction("rod", 0.1).check(m)


def test_too_many_constraints_are_told(monkeypatch):
    from alembert.constraints import factors
    from alembert.verify.mechanisms import four_bars

    monkeypatch.setattr(factors, "LARGEST", 0)
    m = four_bars(2).replace(name="four_bars_70")
    law = ForceElement("beam0", wrenches=lambda t, X, V, r: r["window0"], reactions="window0")
    with pytest.raises(
        UnsupportedError, match=r"the constraints of model 'four_bars_70' are too many.*rows\)"
    ):
        simulate(m, duration=0.1, step=0.01, forces=law)
