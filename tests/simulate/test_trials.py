"""What trials by users found: refused with a sentence, or right."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import AlembertWarning, ArgumentError
from alembert.simulate import Drive, Event, Lock, Measured, Sampled, Table, simulate


@pytest.fixture(scope="module")
def model():
    m = al.library.two_link()
    return m.replace(
        sensors=(
            al.Sensor("pose", "frame", m.bodies[-1].name),
            al.Sensor("q1", "joint_position", m.joints[0].name),
        )
    )


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_pose_sensors_in_batches(model, noise):
    """Each motion of the batch has what it has alone, bit for bit."""
    q = np.array([[0.1, 0.2], [0.3, -0.4], [1.0, 2.0], [-0.5, 0.2]])
    options = {"duration": 0.3, "step": 0.1, "integrator": "rk4"}
    seeds = np.arange(4)
    many = simulate(model, q, sensors=[Measured("pose", 0.1, noise=noise, seed=seeds)], **options)
    assert many.measurements["pose"].values.shape == (4, 4, 7)
    for k in range(4):
        one = simulate(model, q[k], sensors=[Measured("pose", 0.1, noise=noise, seed=k)], **options)
        np.testing.assert_array_equal(one.measurements["pose"].values, many.measurements["pose"].values[k])


@pytest.mark.parametrize("integrator", ["bdf", "cvode", "radau", "dop853"])
def test_a_lock_on_a_tree(integrator):
    if integrator == "cvode":
        pytest.importorskip("sksundae")
    m = al.library.two_link()
    joint = m.joints[1].name
    event = Event(lambda t, q, v: t - 0.1, "hold", 1, Lock(joint))
    run = simulate(m, [0.4, 0.3], duration=0.3, integrator=integrator, tolerance=1e-7, events=event)
    assert [e.name for e in run.events] == ["hold"]
    assert np.ptp(run.q[run.time > 0.11, 1]) < 1e-6


@pytest.mark.parametrize("joint", [al.Universal(), al.Gimbal(), al.Planar()], ids=lambda x: x.kind)
def test_variational_with_loops_and_joints_whose_axes_turn(joint):
    """Two bodies on the joint, the foot on a rod to an anchor: closed to rounding, energy to second order in the step."""
    builder = al.ModelBuilder("held")
    upper, lower = (al.Inertia.box(1.0, (width, 0.2, 0.5), (0, 0, -0.25)) for width in (0.3, 0.2))
    builder.body("a", upper, joint=joint)
    builder.body("b", lower, joint=al.Revolute((0, 1, 0)), parent="a", placement=(0, 0, -0.5))
    m = builder.build()
    ends = (
        al.Frame("anchor", "world", al.Placement((0.5, 0.0, -1.0))),
        al.Frame("foot", "b", al.Placement((0, 0, -0.5))),
    )
    m = m.replace(frames=(*m.frames, *ends), loops=(al.LoopJoint("rod", al.Distance(0.5), "anchor", "foot"),))
    v = m.project(m.neutral(), np.linspace(0.5, 1.0, m.nv)).v
    errors = []
    for step in (0.01, 0.005):
        run = simulate(m, m.neutral(), v, duration=0.2, step=step, integrator="variational")
        assert run.report.constraint_error < 1e-12
        errors.append(run.report.energy_error)
    assert errors[0] < 1e-2
    assert errors[1] < 0.35 * errors[0]


def test_a_casadi_law_that_reads_sensors(model):
    """As the same law in Python."""
    t, y = ca.SX.sym("t"), ca.SX.sym("y", 1)
    law = ca.Function("law", [t, y], [ca.vertcat(-3 * y, 0)])
    sensors = [Measured("q1", 0.01)]
    options = {"duration": 0.5, "step": 0.01, "integrator": "rk4", "sensors": sensors}
    runs = [
        simulate(model, [0.4, 0.1], controller=Sampled(f, 0.01, reads="q1"), **options)
        for f in (law, lambda t, read: np.array([-3 * read["q1"][0], 0.0]))
    ]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)
    many = simulate(model, [[0.4, 0.1], [0.2, 0.1]], controller=Sampled(law, 0.01, reads="q1"), **options)
    np.testing.assert_array_equal(many.q[0], runs[0].q)
    with pytest.raises(
        ArgumentError,
        match=r"a casadi.Function of 2 arguments that gives 1 results, expected 3 \(t, q and v\) and 1",
    ):
        Sampled(law, 0.01)
    wide = ca.Function("law", [t, ca.SX.sym("y", 3)], [ca.SX.zeros(2)])
    with pytest.raises(
        ArgumentError, match=r"a sampled casadi\.Function takes 3 entries of 'q1', expected 1"
    ):
        simulate(model, [0.4, 0.1], controller=Sampled(wide, 0.01, reads="q1"), **options)


def test_prescribed_motions_that_contradict_themselves_are_refused():
    m = al.library.two_link()
    name = m.joints[0].name
    options = {"duration": 1.0, "step": 0.01, "integrator": "rk4"}

    def good(t):
        return [np.sin(2 * t)], [2 * np.cos(2 * t)], [-4 * np.sin(2 * t)]

    simulate(m, prescribed={name: good}, **options)
    with pytest.raises(
        ArgumentError,
        match=f"the prescribed motion of '{name}' returned speeds .* but its coordinates change at",
    ):
        simulate(m, prescribed={name: lambda t: (np.sin(2 * t), np.cos(2 * t), 0.0)}, **options)
    with pytest.raises(ArgumentError, match=r"returned accelerations .* but its speeds change at"):
        simulate(m, prescribed={name: lambda t: (np.sin(2 * t), 2 * np.cos(2 * t), 1.0)}, **options)


def test_efforts_on_a_prescribed_joint_are_refused():
    m = al.library.two_link()
    names = [joint.name for joint in m.joints]
    options = {"duration": 0.1, "step": 0.01, "integrator": "rk4", "prescribed": {names[0]: 0.2}}
    simulate(m, efforts={names[1]: 1.0}, **options)
    for effort in (1.0, Table([0.0, 1.0], [0.0, 1.0])):
        with pytest.raises(
            ArgumentError, match=f"efforts act on '{names[0]}', which follows a prescribed motion"
        ):
            simulate(m, efforts={names[0]: effort}, **options)


@pytest.mark.parametrize(
    "more",
    [
        {"efforts": [1.0, -0.5]},
        {"controller": lambda t, q, v: np.array([np.sin(3 * t), -0.5 * v[1]])},
        {"controller": Sampled(lambda t, q, v: np.array([np.sin(3 * t), -0.5 * v[1]]), 0.01)},
        {"wrenches": {"world_frame_of_tip": None}},
        {"q0": [[0.5, 0.0], [0.2, 0.1]], "efforts": [1.0, -0.5]},
        {"events": Event(lambda t, q, v: q[0], "crosses", action="note"), "efforts": [1.0, -0.5]},
        {"integrator": "adams_bashforth4", "efforts": [1.0, -0.5]},
        {"integrator": "variational", "efforts": [1.0, -0.5]},
    ],
    ids=["efforts", "python", "sampled", "wrench", "batch", "events", "multistep", "variational"],
)
def test_work_does_not_depend_on_the_interval_of_records(more):
    """Records every step and every half second: the same work at the same times, and the same balance."""
    m = al.library.two_link()
    m = m.replace_joint(m.joints[0].name, friction=al.Friction(viscous=(0.3,)))
    if "wrenches" in more:
        more = {"wrenches": {m.bodies[-1].name: (0.0, 0.4, 0.0, 0.2, 0.0, 0.0)}}
    options = {"duration": 2.0, "step": 1e-3, "integrator": "rk4", "q0": [0.5, 0.0], **more}
    q0 = options.pop("q0")
    fine, coarse = (simulate(m, q0, interval=x, **options) for x in (None, 0.5))
    np.testing.assert_array_equal(coarse.q, fine.q[..., ::500, :])
    scale = np.max(np.abs(fine.work))
    assert scale > 0.1
    np.testing.assert_allclose(coarse.work, fine.work[..., ::500], atol=1e-8 * scale)
    limit = 1e-4 if options["integrator"] == "variational" or callable(more.get("controller")) else 1e-6
    assert coarse.report.energy_error < max(limit, 2 * fine.report.energy_error)
    assert coarse.report.work_error is None


def test_a_start_that_a_prescribed_motion_contradicts():
    m, motion = al.library.two_link(), {"shoulder": lambda t: (0.4 + np.sin(t), np.cos(t), -np.sin(t))}
    given = {"duration": 0.1, "step": 0.01, "prescribed": motion, "progress": False}
    with pytest.warns(AlembertWarning, match="'shoulder' is 0.5 in q0, but .* begins at 0.4: the run begins"):
        run = simulate(m, [0.5, 0.2], [1.0, 0.0], **given)
    np.testing.assert_allclose(run.q[0], [0.4, 0.2])
    with pytest.warns(AlembertWarning, match="'shoulder' is 2 in v0, but .* begins at 1: the run begins"):
        simulate(m, None, {"shoulder": 2.0}, **given)
    simulate(m, [0.4, 0.2], [1.0, 0.0], **given)  # as it is, or left out: nothing is told
    simulate(m, [0.0, 0.2], **given)


@pytest.mark.parametrize("law", [None, lambda t, q, v: 0 * v], ids=["compiled", "python"])
def test_divergence_is_told_alike(law):
    """Under a controller in Python as without: the time and the step."""
    m = al.library.two_link()
    m = m.replace_joint(m.joints[0].name, spring=al.Spring(stiffness=(1e7,)))
    m = m.replace(couplings=(al.Coupling("gear", m.joints[1].name, (m.joints[0].name,), (0.5,)),))
    with pytest.raises(
        al.NumericalError,
        match=r"the motion is not finite after t = \S+ s, in steps of 0.05 s; the step is too long",
    ):
        simulate(m, [0.2, 0.1], duration=20.0, step=0.05, integrator="rk4", controller=law)


def test_an_orbit_is_computed_at_its_own_scale():
    """A satellite with two panels on a circle around the earth, a tenth of it. With 7.5 km/s in velocity products, angular
    accelerations would have a rounding of 1e-9 rad/s^2, and error control would take thousands of steps."""
    builder = al.ModelBuilder("satellite", gravity=(0, 0, 0))
    builder.body("bus", al.Inertia.box(500.0, (2.0, 1.5, 1.0)), joint=al.Free())
    for k, side in enumerate((-1.0, 1.0)):
        panel = al.Inertia.box(20.0, (0.05, 3.0, 1.0), (0, 1.5 * side, 0))
        builder.body(
            f"panel{k}", panel, joint=al.Revolute((0, 1, 0)), parent="bus", placement=(0, 0.75 * side, 0)
        )
    m = builder.build()
    mu, radius = 3.986004418e14, 7.0e6
    q = m.neutral()
    q[0] = radius
    v = np.zeros(m.nv)
    v[4] = np.sqrt(mu / radius)
    period = 2 * np.pi * np.sqrt(radius**3 / mu)
    run = simulate(m, q, v, duration=period / 10, gravity=al.simulate.CentralGravity(mu))
    assert run.integrator == "dop853"
    assert run.steps < 200
    assert np.abs(np.linalg.norm(run.q[:, :3], axis=1) / radius - 1).max() < 1e-6
    for integrator in ("bdf", "radau", "ida"):
        stiff = simulate(m, q, v, duration=1.0, integrator=integrator, gravity=al.simulate.CentralGravity(mu))
        assert stiff.steps < 200
        # per mille of the relative tolerance, of the radius
        np.testing.assert_allclose(stiff.q[-1, :3], _fallen(q[:3], v[3:6], mu, 1.0), rtol=0, atol=1e-4)


def _fallen(r, v, mu, t):
    """Where a point is after a second: the series of Kepler's motion to t^4; the next term is 1e-9 m."""
    n = mu / np.linalg.norm(r) ** 3
    return r * (1 - n * t**2 / 2 + n**2 * t**4 / 24) + v * (t - n * t**3 / 6)


def test_trials_of_implicit_schemes_may_diverge():
    """A step is made shorter where the dynamics cannot be evaluated; the run ends, or says where it cannot go on."""
    m = al.library.pendulum()

    def law(t, q, v):
        if abs(q[0]) > 2.0:
            raise al.NumericalError("far outside")
        return -1e6 * (q - 0.5) - 1e3 * v

    for integrator in ("radau", "ida"):
        run = simulate(m, [1.5], duration=0.5, integrator=integrator, controller=law, tolerance=1e-6)
        assert run.q[-1, 0] == pytest.approx(0.5, abs=1e-3)

    def wall(t, q, v):
        if t > 0.25:
            raise al.NumericalError("no way")
        return 0 * v

    for integrator in ("dop853", "radau", "bdf", "cvode", "ida"):
        with pytest.raises(
            al.NumericalError, match=r"cannot go on at t = 0\.2\d* s: .* \(last, at t = .* s: no way\)"
        ):
            simulate(m, [0.5], duration=0.5, integrator=integrator, controller=wall)

    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    root = ca.Function(
        "root", [t, q, v], [-1e4 * (ca.sqrt(2.0 - q * q) - 1.2) * q - 50 * v]
    )  # ends at 1.41 rad
    for integrator in ("bdf", "cvode"):  # their Jacobians are those at trials
        with pytest.raises(
            al.NumericalError,
            match=r"cannot go on at t = 0\.001\d* s: a controller gives nan for 'pivot' at t = 0\.001",
        ):
            simulate(m, [1.39], [0.5], duration=0.5, integrator=integrator, controller=root, tolerance=1e-3)


def test_a_balance_that_breaks_is_told():
    """Near gimbal lock rk4 steps over what it cannot resolve."""
    builder = al.ModelBuilder("top", gravity=(0, 0, 0))
    builder.body("top", al.Inertia.box(1.0, (0.4, 0.6, 0.9)), joint=al.Gimbal(), joint_name="gimbal")
    m = builder.build()
    q, v = np.array([0.1, np.pi / 2 - 0.3, 0.0]), np.array([3.0, 1.4, 1.0])
    with pytest.warns(
        al.AlembertWarning, match="the energy is not kept: .* joint 'gimbal' comes near to a singular place"
    ):
        run = simulate(m, q, v, duration=2.0, step=0.1, integrator="rk4")
    assert not run.report.is_balanced
    assert "THE BALANCE OF ENERGY IS BROKEN" in str(run.report)
    fine = simulate(m, q, v, duration=0.5, step=1e-3, integrator="rk4")
    assert fine.report.is_balanced
    assert "BROKEN" not in str(fine.report)
    with pytest.warns(al.AlembertWarning, match="the energy is not kept"):  # five records tell as well
        simulate(m, q, v, duration=2.0, step=0.1, integrator="rk4", interval=0.5)
    simulate(m, q, v, duration=0.5, step=1e-3, integrator="rk4", interval=0.25)


def test_records_at_rest_alone_are_no_broken_balance():
    """Two records of a pendulum, both where it turns back: what it does in between is not known from them."""
    m = al.library.pendulum()
    period = simulate(m, [1.0], duration=3.0, events=Event(lambda t, q, v: v[0], direction=-1)).events[0].time
    run = simulate(
        m,
        [1.0],
        duration=round(period, 4),
        step=round(period, 4) / 200,
        integrator="rk4",
        interval=round(period, 4),
    )
    assert run.report.is_balanced


def test_momentum_about_the_centre_of_mass_is_told_as_well():
    """The variational scheme keeps the one about the world's origin to rounding, the other to second order in the step."""
    builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
    builder.body("a", al.Inertia.box(5.0, (0.4, 0.6, 0.9)), joint=al.Free())
    builder.body(
        "b", al.Inertia.box(1.0, (0.1, 0.2, 0.8), (0, 0, 0.4)), joint=al.Revolute((0, 1, 0)), parent="a"
    )
    m = builder.build()
    v = np.linspace(0.5, 1.5, m.nv)
    reports = [
        simulate(m, None, v, duration=1.0, step=h, integrator="variational").report for h in (0.02, 0.01)
    ]
    for report in reports:
        assert max(report.momentum_error) < 1e-12
        assert "about the world's origin; about the centre of mass to" in str(report)
    assert 2.5 < reports[0].spin_error / reports[1].spin_error < 6


@pytest.mark.parametrize("integrator", ["auto", "radau"])
def test_laws_that_jump_at_known_times(integrator):
    """Between the jumps the motion is smooth, so that a law that tells them is asked far less often, and is the same."""
    m = al.library.two_link()
    times = np.linspace(0.0, 1.0, 21)
    levels = np.random.default_rng(0).normal(size=(21, 2))
    asked = []

    def law(t, q, v):
        asked.append(t)
        return levels[min(20, int(np.searchsorted(times, t, side="right")) - 1)]

    options = {"duration": 1.0, "interval": 0.5, "integrator": integrator, "tolerance": 1e-8}
    with pytest.warns(
        al.AlembertWarning, match=r"jump \d+ times without telling, first at t = 0.05\d* s: .* \(breaks\)"
    ):
        searched = simulate(m, [0.4, 0.2], controller=law, **options)
    many = len(asked)
    asked.clear()
    law.breaks = times
    told = simulate(m, [0.4, 0.2], controller=law, **options)
    assert len(asked) < 0.8 * many
    np.testing.assert_allclose(told.q, searched.q, atol=1e-6)
    names = [joint.name for joint in m.joints]
    held = {name: Table(times, levels[:, k], "hold") for k, name in enumerate(names)}
    table = simulate(m, [0.4, 0.2], efforts=held, **options)
    np.testing.assert_allclose(told.q, table.q, atol=1e-6)


@pytest.mark.parametrize("integrator", ["dop853", "cvode"])
def test_motion_along_a_jump_is_refused(integrator):
    """A sign of the speed brings a joint to rest and holds it there: no step is short enough."""
    m = al.library.pendulum()
    with pytest.raises(
        al.NumericalError,
        match=r"cannot go on at t = \S+ s: the forces jump to and fro there, .* \(Sampled\)",
    ):
        simulate(m, [0.3], duration=5.0, integrator=integrator, controller=lambda t, q, v: -5.0 * np.sign(v))


def test_tables_of_efforts_go_by_joint(model):
    with pytest.raises(
        ArgumentError,
        match=r"simulate: efforts is a table, expected numbers, or tables by joint: efforts=\{'",
    ):
        simulate(model, duration=0.1, step=0.01, efforts=Table([0.0, 1.0], [[0.0, 0.0], [1.0, 1.0]]))
    with pytest.raises(ArgumentError, match="ensemble: efforts is a table"):
        al.ensemble(
            model,
            dict,
            members=2,
            duration=0.1,
            step=0.01,
            efforts=Table([0.0, 1.0], [[0.0, 0.0], [1.0, 1.0]]),
        )


def test_degrees_at_the_start_are_told():
    """90 for a right angle, 4.9 where limits are one radian; not wheels that have turned 500 times, nor metres."""
    arm = al.library.two_link()
    with pytest.warns(
        AlembertWarning, match=r"'elbow' starts at 90 rad; angles are in radians: 90 degrees are 1.571"
    ):
        al.simulate(arm, [0.1, 90], duration=0.01, step=0.01)
    limited = arm.replace_joint("elbow", limits=al.Limits((-1.0,), (1.0,)))
    with pytest.warns(
        AlembertWarning, match=r"'elbow' starts at 4.9 rad, limits -1 .. 1; .* 4.9 degrees are 0.08552"
    ):
        al.simulate(limited, {"elbow": 4.9}, duration=0.01, step=0.01)
    al.simulate(arm, [3141.7, 0.0], duration=0.01, step=0.01)
    al.simulate(limited, {"elbow": 1.2}, duration=0.01, step=0.01)
    cart = al.library.cart_pole()
    al.simulate(cart, [90.0, 0.1], duration=0.01, step=0.01)


def swinging(model):
    """A law of two degrees of freedom, in Python."""
    return lambda t, q, v: -0.3 * v + 0.5 * np.sin(3 * t)


@pytest.mark.parametrize(
    "drive",
    [Drive(lag=0.03), Drive(frequency=60.0, damping_ratio=0.7), Drive(lag=0.02, rate=3.0, limit=0.5)],
    ids=["lag", "second order", "limits"],
)
def test_auto_follows_drives_between_samples(model, drive):
    """Fixed steps follow what drives remember to second order only: not of the length of a period."""
    given = {
        "duration": 0.6,
        "controller": Sampled(swinging(model), 0.05),
        "drives": {model.joints[0].name: drive},
    }
    found, right = (
        al.simulate(model, [0.3, -0.2], [0.2, -0.3], integrator=x, **given) for x in ("auto", "radau")
    )
    # both to 1e-9 a step, over a hundred of them
    np.testing.assert_allclose(found.q[-1], right.q[-1], atol=1e-7)


def test_auto_has_steps_for_rate_limits_of_continuous_laws(model):
    given = {
        "duration": 0.6,
        "controller": swinging(model),
        "drives": {model.joints[0].name: Drive(rate=2.0)},
        "efforts": {model.joints[1].name: Table([0.0, 0.25], [0.1, -0.1], "hold")},
    }
    run = al.simulate(model, [0.3, -0.2], [0.2, -0.3], **given)
    assert run.integrator == "rk4"
    assert "limits the rate of a continuous controller" in run.reason
    fine = al.simulate(model, [0.3, -0.2], [0.2, -0.3], integrator="rk4", step=2e-4, **given)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], atol=1e-4)  # what a drive gives is of second order


def test_auto_with_samples_and_tables_that_hold_at_other_instants(model):
    given = {
        "duration": 0.6,
        "controller": Sampled(swinging(model), 0.05),
        "efforts": {model.joints[0].name: Table([0.0, 0.13, 0.3], [0.0, 1.0, -1.0], "hold")},
    }
    found, right = (
        al.simulate(model, [0.3, -0.2], [0.2, -0.3], integrator=x, **given) for x in ("auto", "radau")
    )
    np.testing.assert_allclose(found.q[-1], right.q[-1], atol=1e-7)


@pytest.mark.parametrize("action", ["stop", lambda t, q, v: (q, 0.5 * v)], ids=["stop", "change"])
def test_the_work_of_what_is_held_ends_with_events(model, action):
    """Within a step: what is held does its work up to the event, and from the changed state on."""
    event = Event(lambda t, q, v: t - 0.20037, action=action, name="event")
    run = al.simulate(
        model,
        [0.3, -0.2],
        [0.2, -0.3],
        duration=0.4,
        step=1e-2,
        integrator="rk4",
        controller=Sampled(swinging(model), 0.05),
        events=event,
    )
    assert run.report.energy_error < 1e-6  # (0.01 s * 5/s)^4, where it was 1e-3


LOADS = {
    "sampled": lambda m: {"controller": Sampled(swinging(m), 0.02)},
    "python": lambda m: {"controller": swinging(m)},
    "table": lambda m: {"efforts": {m.joints[0].name: Table([0.0, 0.12, 0.3], [0.0, 5.0, -5.0], "hold")}},
    "lag": lambda m: {
        "controller": swinging(m),
        "drives": {m.joints[0].name: Drive(lag=0.03)},
        **LOADS["table"](m),
    },
    "wrench": lambda m: {
        "wrenches": {m.bodies[-1].name: Table([0.0, 0.12], np.ones((2, 6)) * [[1], [-1]], "hold")}
    },
    "wrench law": lambda m: {
        "wrenches": {
            m.bodies[-1].name: lambda t, q, v: np.array([0, 0, 0, np.sin(5 * t), 1 - v[0], 3 * v[1]])
        }
    },
}


@pytest.mark.parametrize("interval", [None, 0.2], ids=["every step", "apart"])
@pytest.mark.parametrize(
    "action",
    ["stop", lambda t, q, v: (q, v * [1.0, 0.3]), Lock(al.library.two_link().joints[1].name)],
    ids=["stop", "change", "lock"],
)
@pytest.mark.parametrize("load", ["law", "friction", "prescribed", "wrench"])
def test_the_work_across_events_is_as_exact_as_the_rest(model, load, action, interval):
    """Within a step speeds jump, and with them the power: halving the step divides the error by 16, and not by 2."""
    first = model.joints[0].name
    given = {
        "law": {"controller": lambda t, q, v: np.array([np.sin(5 * t) - 2 * q[0], 3 * np.cos(4 * t) - v[1]])},
        "friction": {"efforts": [1.0, 0.5]},
        "wrench": LOADS["wrench"](model),  # which jumps at 0.12 s
        "prescribed": {"prescribed": {first: lambda t: (0.3 + np.sin(t), np.cos(t), -np.sin(t))}},
    }[load]
    rubbing = model.replace_joint(first, friction=al.Friction(viscous=(0.8,)))
    errors = []
    for h in (1e-2, 5e-3):
        event = Event(lambda t, q, v: t - 0.30037, action=action, name="event")
        run = simulate(
            rubbing, [0.3, -0.2], [1.0, -1.0], duration=0.4, step=h, integrator="rk4", events=event,
            interval=interval, progress=False, **given,
        )  # fmt: skip
        errors.append(run.report.energy_error)
    assert errors[0] < 1e-4  # where it was 1e-3 to 1e-2
    assert np.log2(errors[0] / errors[1]) > 3.3


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(
    ("integrator", "order"), [("adams_bashforth3", 3), ("generalised_alpha", 2), ("rk4", 4)]
)
def test_orders_hold_where_loads_jump(model, load, integrator, order):
    """Schemes that look back must not do so across a jump; what is held over steps is asked where they take it."""
    given = {"duration": 0.4, "progress": False, **LOADS[load](model)}
    start = ([0.3, -0.2], [0.2, -0.3])
    right = simulate(model, *start, integrator="dop853", tolerance=1e-11, **given)
    errors = []
    for h in (4e-3, 2e-3):
        run = simulate(model, *start, integrator=integrator, step=h, **given)
        errors.append(np.abs(run.v[-1] - right.v[-1]).max())
    expected = 2 if load == "lag" else order  # drives are followed to second order
    assert np.log2(errors[0] / errors[1]) > expected - 0.5


def test_sampled_laws_in_machine_code_do_not_spoil_multistep_schemes(model):
    law = al.simulate.SymbolicLaw(lambda t, m, at: {"efforts": -0.3 * at.v + 0.5 * ca.sin(3 * t)})
    given = {"duration": 0.4, "controller": Sampled(law, 0.02, state=True), "progress": False}
    right = simulate(model, [0.3, -0.2], integrator="rk4", step=1e-3, **given)
    run = simulate(model, [0.3, -0.2], integrator="adams_bashforth4", step=1e-3, **given)
    assert "the integrator is 'adams_bashforth4'" in run.reason
    np.testing.assert_allclose(run.q[-1], right.q[-1], atol=1e-9)


def test_a_rate_limit_alone_is_followed_to_second_order():
    """The command is met within a step, and left again: an effort that is off by rate times step was first order."""
    builder = al.ModelBuilder("cart", gravity=(0, 0, 0))
    builder.body("cart", al.Inertia.point(1.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    m = builder.build()
    given = {
        "controller": lambda t, q, v: -20.0 * v - 30.0 * q + 0.5 * np.sin(3 * t),
        "drives": {"x": Drive(rate=40.0)},
        "efforts": {"x": Table([0.0, 0.13, 0.3], [0.0, 20.0, -20.0], "hold")},
        "duration": 0.6,
        "integrator": "rk4",
        "progress": False,
    }
    right = simulate(m, [0.1], [0.2], step=1e-4, **given).v[-1]
    for h in (2e-3, 1e-3):
        # some 4 places where it is met or left, each off by about rate h^2 = 40 h^2 in effort times the time after it
        assert np.abs(simulate(m, [0.1], [0.2], step=h, **given).v[-1] - right).max() < 100 * h**2
    # a command that jumps: min(40 t, 1) for 0.1 s, whatever the step
    step = {**given, "controller": Sampled(lambda t, q, v: np.ones(1), 0.1), "efforts": None, "duration": 0.1}
    assert simulate(m, [0.0], [0.0], step=0.02, **step).v[-1, 0] == pytest.approx(0.1 - 0.025 / 2, abs=1e-14)
