"""JointDrives against closed forms; geared rotors against rotors of the model; continuation with their states."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulate_helpers import slope

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.simulate import Drive, Gear, Sampled, simulate


@pytest.fixture(scope="module")
def wheel():
    """1 kg m^2 about z."""
    builder = al.ModelBuilder("wheel", gravity=(0, 0, 0))
    builder.body(
        "wheel",
        al.Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0)),
        joint=al.Revolute((0, 0, 1)),
        joint_name="spin",
    )
    return builder.build()


def step_response(w, zeta, t):
    """x of x'' + 2 zeta w x' + w^2 x = w^2 from rest."""
    found = solve_ivp(
        lambda t, y: [y[1], w * w * (1 - y[0]) - 2 * zeta * w * y[1], y[0]],
        (0, t[-1]), [0, 0, 0], t_eval=t, rtol=1e-11, atol=1e-13, method="DOP853",
    )  # fmt: skip
    return found.y


@pytest.mark.parametrize("zeta", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("integrator", ["rk4", "variational"])
def test_lag_of_second_order(wheel, zeta, integrator):
    """The step response exactly, at any step; the speed is its integral."""
    drive = Drive(frequency=12.0, damping_ratio=zeta)
    run = simulate(wheel, [0.0], duration=1.0, step=0.02, integrator=integrator, controller=lambda t, q, v: [1.0],
                   drives={"spin": drive})  # fmt: skip
    x, rate, integral = step_response(12.0, zeta, run.time)
    np.testing.assert_allclose(run.drive_states[:, 0, 0], x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.drive_states[:, 1, 0], rate, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.v[:, 0], integral, rtol=0, atol=1e-9)
    assert run.report.energy_error < 1e-12


@pytest.mark.parametrize("integrator", ["dop853", "rk45", "radau", "bdf", "cvode", "ida"])
def test_lags_with_error_control(wheel, integrator):
    """Their states are part of the equations: two orders of lag, commands of the state and of samples."""
    w, zeta, T = 8.0, 0.7, 0.1
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    law = ca.Function("law", [t, q, v], [-4 * q - v])
    options = {"duration": 1.0, "interval": 0.1, "integrator": integrator, "controller": law}

    def second(t, y):
        return [y[1], y[2], y[3], w * w * (-4 * y[0] - y[1] - y[2]) - 2 * zeta * w * y[3]]

    def first(t, y):
        return [y[1], y[2], (-4 * y[0] - y[1] - y[2]) / T]

    for drive, equations, size in (
        (Drive(frequency=w, damping_ratio=zeta), second, 4),
        (Drive(lag=T), first, 3),
    ):
        run = simulate(wheel, [0.5], drives={"spin": drive}, **options)
        exact = solve_ivp(equations, (0, 1), [0.5] + [0] * (size - 1), t_eval=run.time, rtol=1e-11, atol=1e-13,
                          method="DOP853").y  # fmt: skip
        # multistep formulas let errors grow to some hundred tolerances of 1e-9
        found = np.c_[run.q, run.v, run.drive_states[:, :, 0]][:, :size]
        np.testing.assert_allclose(found, exact.T, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(run.efforts, run.drive_states[:, 0])
        assert run.report.energy_error < 1e-2  # of the records' quadrature


@pytest.mark.parametrize(
    "drive", [Drive(rate=2.0, limit=0.6), Drive(rate=2.0, lag=0.02), Drive(rate=1.5, frequency=60.0)]
)
def test_rate_limits_with_error_control(wheel, drive):
    """As with fixed steps in the limit of short ones."""
    controller = Sampled(lambda t, q, v: [np.cos(5 * t)], period=0.25)
    options = {"duration": 1.0, "interval": 0.05, "controller": controller, "drives": {"spin": drive}}
    run = simulate(wheel, [0.0], integrator="dop853", **options)
    fine = simulate(wheel, [0.0], integrator="rk4", step=2.5e-4, **options)
    # of first order in the step where the limit of the rate begins and ceases to hold
    np.testing.assert_allclose(run.v, fine.v, rtol=0, atol=2e-4)
    np.testing.assert_allclose(run.efforts, fine.efforts, rtol=0, atol=1e-3)
    if not drive.lag and not drive.frequency:  # straight lines
        t = run.time[run.time < 0.25]
        np.testing.assert_allclose(run.efforts[: len(t), 0], np.minimum(2 * t, 0.6), rtol=0, atol=1e-14)


def test_order_with_a_controller_in_continuous_time(wheel):
    """A law of the state through a lag: of second order, since the command is taken at the middle of the step."""
    w, zeta = 8.0, 0.7

    def exact(t, y):
        q, v, x, r = y
        return [v, x, r, w * w * (-4 * q - v - x) - 2 * zeta * w * r]

    end = solve_ivp(exact, (0, 1), [0.5, 0, 0, 0], rtol=1e-11, atol=1e-13, method="DOP853").y[:2, -1]
    steps, errors = [0.02, 0.01, 0.005], []
    for h in steps:
        run = simulate(wheel, [0.5], duration=1.0, step=h, integrator="rk4", controller=lambda t, q, v: -4 * q - v,
                       drives={"spin": Drive(frequency=w, damping_ratio=zeta)})  # fmt: skip
        errors.append(np.abs([run.q[-1, 0], run.v[-1, 0]] - end).max())
    assert slope(errors, steps) > 1.8


def test_saturation_after_the_lag(wheel):
    """The overshoot of a weakly damped drive is cut off."""
    drive = Drive(limit=1.0, frequency=20.0, damping_ratio=0.1)
    run = simulate(wheel, [0.0], duration=0.5, step=1e-3, integrator="rk4", controller=lambda t, q, v: [5.0],
                   drives={"spin": drive})  # fmt: skip
    assert run.efforts.max() == 1.0
    assert run.drive_states[:, 0].max() > 1.5


def test_rate_limit_with_a_lag(wheel):
    drive = Drive(rate=2.0, frequency=50.0)
    run = simulate(wheel, [0.0], duration=1.0, step=1e-3, integrator="rk4", controller=lambda t, q, v: [1.0],
                   drives={"spin": drive})  # fmt: skip
    assert np.diff(run.drive_states[:, 0, 0]).max() <= 2.0 * 1e-3 * (1 + 1e-12)
    assert run.drive_states[-1, 0, 0] == pytest.approx(1.0, abs=1e-6)


def test_a_geared_rotor_is_one_of_the_model():
    """The same motion as the model with that rotor and the reflected friction."""
    m = al.library.two_link()
    name = m.joints[1].name
    gear = Gear(50.0, 1e-4, viscous=2e-5, coulomb=1e-3)
    axis = m.joint(name).type.axis
    same = m.replace_joint(
        name, rotors=(al.Rotor(50.0, 1e-4, axis),), friction=al.Friction((50.0**2 * 2e-5,), (50 * 1e-3,))
    )
    options = {"duration": 0.5, "step": 1e-3, "integrator": "rk4"}
    run = simulate(m, [0.4, -0.2], drives={name: Drive(gear=gear)}, **options)
    expected = simulate(same, [0.4, -0.2], **options)
    np.testing.assert_array_equal(run.q, expected.q)
    assert run.report.energy_error < 1e-5
    assert run.model == same


def test_motor_limits_count_at_the_joint(wheel):
    gear = Gear(10.0, 0.02)
    run = simulate(wheel, [0.0], duration=1.0, step=0.01, integrator="rk4", controller=lambda t, q, v: [100.0],
                   drives={"spin": Drive(limit=0.6, gear=gear)})  # fmt: skip
    assert run.efforts.max() == pytest.approx(6.0)
    assert run.v[-1, 0] == pytest.approx(6.0 / (1 + 100 * 0.02))


def test_continuation_is_bitwise_equal(wheel):
    options = {
        "controller": [Sampled(lambda t, q, v: -4 * q - v, 0.02, delay=0.01), lambda t, q, v: -q],
        "drives": {
            "spin": Drive(limit=2.0, rate=30.0, frequency=15.0, damping_ratio=0.5, gear=Gear(5.0, 0.01))
        },
        "step": 0.01,
        "integrator": "rk4",
    }
    run = simulate(wheel, [0.5], duration=1.0, **options)
    again = run.resume(0.6, time=0.4)
    np.testing.assert_array_equal(again.q, run.q[40:])
    np.testing.assert_array_equal(again.drive_states, run.drive_states[40:])
    assert run.report.energy_error < 1e-4


def test_batches(wheel):
    options = {"duration": 0.5, "step": 0.01, "integrator": "rk4", "controller": lambda t, q, v: -4 * q - v,
               "drives": {"spin": Drive(frequency=15.0)}}  # fmt: skip
    run = simulate(wheel, [[0.5], [0.2]], **options)
    alone = simulate(wheel, [0.2], **options)
    np.testing.assert_allclose(run.q[1], alone.q, rtol=0, atol=1e-15)
    assert run.drive_states.shape == (2, 51, 2, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Drive(frequency=-1.0), "Drive: frequency is -1.0, expected zero or more"),
        (lambda: Drive(lag=0.1, frequency=3.0), "expected a lag of first or of second order"),
        (lambda: Drive(gear=5.0), "Drive: gear is 5.0, expected a Gear"),
        (lambda: Gear(0.0, 1.0), "Gear: ratio is 0.0, expected a number other than zero"),
        (lambda: Gear(2.0, -1.0), "Gear: inertia is -1.0, expected zero or more"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_messages_of_runs(wheel):
    def run(m, drives, **options):
        return simulate(
            m, m.neutral(), duration=0.1, step=0.01, drives=drives, **{"integrator": "rk4", **options}
        )

    gear = Drive(gear=Gear(2.0, 0.1))
    with pytest.raises(ArgumentError, match="drives is 3, expected a mapping"):
        run(wheel, 3)
    with pytest.raises(ArgumentError, match="a gear needs a joint, there is no 'spit'"):
        run(wheel, {"spit": gear})
    geared = wheel.replace_joint("spin", rotors=(al.Rotor(2.0, 0.1),))
    with pytest.raises(ArgumentError, match="joint 'spin' has a rotor in the model already"):
        run(geared, {"spin": gear})
    with pytest.raises(ArgumentError, match="a gear on dof 1 of joint 'spin', which has 1"):
        run(wheel, {"spin": Drive(gear=Gear(2.0, 0.1, dof=1))})
    ball = wheel.replace_joint("spin", type=al.Spherical())
    with pytest.raises(ArgumentError, match="a spherical joint has no axis for the rotor of 'spin'"):
        run(ball, {"spin": gear})
    with pytest.raises(
        UnsupportedError,
        match=r"limited rate and no lag \('spin'\), a continuous controller and integrator 'dop853'",
    ):
        run(wheel, {"spin": Drive(rate=3.0)}, integrator="dop853", controller=lambda t, q, v: -q)


def symbolic(u):
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    return ca.Function("u", [t, q, v], [ca.SX(u)])


@pytest.mark.parametrize("lag", [0.0, 1e-4])
@pytest.mark.parametrize(
    ("integrator", "step"),
    [("rk4", 0.05), ("generalised_alpha", 0.05), ("variational", 0.05), ("dop853", None), ("radau", None)],
)
@pytest.mark.parametrize(
    ("laws", "effort"),
    [
        ([lambda t, q, v: [8.0], symbolic(8.0)], 10.0),
        ([Sampled(lambda t, q, v: [8.0], 0.1), symbolic(8.0)], 10.0),
        ([Sampled(lambda t, q, v: [-8.0], 0.1), symbolic(15.0)], 7.0),
        ([Sampled(lambda t, q, v: [-8.0], 0.1), lambda t, q, v: [15.0]], 7.0),
    ],
)
def test_the_limit_of_a_drive_is_that_of_all_controllers_together(laws, effort, integrator, step, lag):
    """What they ask for adds up, and the drive gives as much of it as it can; 2 kg, from rest."""
    builder = al.ModelBuilder("cart", gravity=(0, 0, 0))
    builder.body("cart", al.Inertia.point(2.0), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    drives = {"x": Drive(limit=10.0, lag=lag)}
    run = al.simulate(
        builder.build(), duration=1.0, step=step, integrator=integrator, controller=laws, drives=drives
    )
    assert run.efforts[-1, 0] == pytest.approx(effort, rel=1e-9)
    assert run.v[-1, 0] == pytest.approx(
        effort / 2, abs=1e-3 if lag else 1e-7
    )  # 15 N, or 8, of the lag are missing


def test_limits_of_drives_are_none_of_nozzles():
    builder = al.ModelBuilder("sledge", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 1.0)
    builder.body("cart", al.Inertia.point(2.0), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    builder.body("tank", al.Inertia.point(fuel), joint=al.Fixed(), parent="cart")
    jet = al.spacecraft.Thruster("jet", "cart", (1, 0, 0), 30.0, specific_impulse=1e6)
    flow = al.simulate.MassFlow([jet], "fuel")
    run = al.simulate(
        builder.build(), duration=1.0, step=0.1, integrator="rk4", controller=[flow, symbolic(12.0)],
        drives={"x": Drive(limit=10.0)},
    )  # fmt: skip
    assert run.v[-1, 0] == pytest.approx((30.0 + 10.0) / 3.0, rel=1e-5)  # 3e-6 kg are burnt


def test_limits_of_drives_are_none_of_wrenches_that_a_controller_gives():
    builder = al.ModelBuilder("cart", gravity=(0, 0, 0))
    builder.body("cart", al.Inertia.point(2.0), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    law = ca.Function(
        "law", [ca.SX.sym("t"), ca.SX.sym("y"), ca.SX.sym("x", 0)], [ca.SX([30.0, 12.0]), ca.SX(0, 1)]
    )
    push = al.simulate.DynamicController(law, inputs=("q:x",), outputs=("tip.fx", "x"))
    model = builder.frame("tip", "cart").build()
    for options in ({"integrator": "rk4", "step": 0.1}, {"integrator": "radau"}):
        run = al.simulate(model, duration=1.0, controller=push, drives={"x": Drive(limit=10.0)}, **options)
        assert run.v[-1, 0] == pytest.approx((30.0 + 10.0) / 2.0, rel=1e-9)
