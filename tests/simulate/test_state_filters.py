"""Extended and unscented filters on models: consistency, agreement with the linear filter, flight."""

import numpy as np
import pytest
from scipy.stats import chi2

import alembert as al
from alembert import control, library
from alembert.control.quadratic import SquareRootKalman
from alembert.errors import AlembertWarning, ArgumentError, NumericalError, UnsupportedError
from alembert.model import Sensor
from alembert.simulate import Measured, Sampled, StateFilter

DT = 0.02
CART = library.make("cart_pole")


def encoders(dt=DT, **given):
    return [
        Measured(Sensor(name, "joint_position", name), dt, noise=noise, **given)
        for name, noise in (("slide", 0.01), ("hinge", 0.02))
    ]


def satellite():
    builder = al.ModelBuilder("satellite", gravity=(0, 0, 0))
    turning = builder.parameter("transverse", 2.0)
    inertia = al.Inertia(1.0, (0, 0, 0), (1.2, 0, turning, 0, 0, 2.5))
    builder.body("hub", inertia, joint=al.Spherical(), joint_name="attitude")
    return builder.build()


def flown(found, start, rng, steps):
    """Squares of the last error and of innovations, of a motion drawn as the filter expects it."""
    model = found.model
    d = start.S @ rng.normal(size=found.size)
    now, nis = start, 0.0
    q, v = model.integrate(start.q, d[: model.nv]), start.v + d[model.nv : 2 * model.nv]
    p = start.p + d[2 * model.nv :]
    for k in range(steps):
        readings = {}
        for one, y in zip(
            found.instruments, found._told(found.instruments, (q, v, p), np.zeros(model.nv), 0.0), strict=True
        ):
            noise = one.noise * rng.normal(size=one.width)
            if (
                one.sensor.kind == "joint_position"
                and not model.joint(one.sensor.target).type.is_vector_space
            ):
                y = model.integrate(y, noise)
            else:
                y = y + noise
            readings[one.name] = y
        now, told = found.correct(now, readings)
        nis += told.nis
        if k < steps - 1:
            now = found.predict(now)
            push = found.process * rng.normal(size=model.nv)
            q, v, p = found._step((q, v, p), push, 0.0)
    return found.nees(now, q, v, p), nis


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_errors_fit_their_covariance(kind):
    """NEES of many motions: a sum of independent squares, within bounds that chance leaves once in 10^4 on each side."""
    found, rng = StateFilter(CART, encoders(), process=0.1, kind=kind), np.random.default_rng(1)
    start = found.start([0, 2.5], deviations=[0.05, 0.1, 0.1, 0.2])
    runs = [flown(found, start, rng, 12) for _ in range(25)]
    nees, nis = np.sum(runs, axis=0)
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 4 * 25)
    assert low < nees < high
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 2 * 12 * 25)
    assert low < nis < high


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_attitudes_and_parameters(kind):
    """A tumbling body with a quaternion, star tracker and gyro; an inertia is estimated along."""
    model = satellite()
    sensors = [
        Measured(Sensor("tracker", "joint_position", "attitude"), 0.1, noise=0.01),
        Measured(Sensor("gyro", "gyro", "hub"), 0.1, noise=0.02),
    ]
    found = StateFilter(model, sensors, process=0.05, kind=kind, estimate="transverse")
    rng = np.random.default_rng(2)
    start = found.start(None, [0.5, -0.4, 0.3], deviations=[0.2] * 3 + [0.1] * 3 + [0.15], transverse=2.1)
    runs = [flown(found, start, rng, 8) for _ in range(12)]
    nees, nis = np.sum(runs, axis=0)
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 7 * 12)
    assert low < nees < high
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 6 * 8 * 12)
    assert low < nis < high
    assert found.names[-1] == "transverse"
    assert found.size == 7


def test_a_linear_model_has_the_linear_filter():
    """A mass on a rail: both kinds are the Kalman filter, whose steps are exact."""
    builder = al.ModelBuilder("mass", gravity=(0, 0, 0))
    builder.body("block", al.Inertia.point(2.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="rail")
    model = builder.build()
    sensor = Measured(Sensor("place", "joint_position", "rail"), 0.1, noise=0.05)
    plant = control.c2d(control.StateSpace([[0, 1], [0, 0]], [[0], [0.5]], [[1, 0]]), 0.1)
    linear = SquareRootKalman(plant, 0.3**2 / 0.1, 0.05**2)
    for kind, center in (("extended", 0.0), ("unscented", 0.0), ("unscented", 0.3)):
        found = StateFilter(model, sensor, process={"rail": 0.3}, kind=kind, center=center)
        a, b = found.start([1.0], [0.2], deviations=[0.3, 0.4]), linear.start([1.0, 0.2], [0.09, 0.16])
        for y in (1.1, 0.9, 1.3):
            a, _ = found.correct(a, {"place": np.array([y])})
            b, _ = linear.correct(b, [y])
            assert np.allclose([*a.q, *a.v], b.x, rtol=1e-9)
            assert np.allclose(a.P, b.P, rtol=1e-8)
            a, b = found.predict(a, [0.7]), linear.predict(b, [0.7])
            assert np.allclose([*a.q, *a.v], b.x, rtol=1e-9)
            assert np.allclose(a.P, b.P, rtol=1e-8)


def test_far_from_the_origin():
    """At 7e6 m the filter has the covariances that it has at the origin.

    Differences are 70 m there, and 0.7 m/s: of what rounding leaves of 7e6 m, 1e-9 m a step, they keep 2e-9 of it.
    With displacements of 1e-5 m it were 1e-4.
    """
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(50.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    model = builder.build()
    sensor = Measured(Sensor("place", "frame", "hub"), 1.0, noise=[1e-3] * 3 + [5.0] * 3)
    found = StateFilter(model, [sensor], process=[0.01] * 3 + [0.3] * 3)
    covariances = []
    for place in (0.0, 7e6):
        q = model.neutral()
        q[0] = place
        now = found.start(q, deviations=[0.01] * 3 + [10.0] * 3 + [1e-3] * 3 + [0.1] * 3)
        for _ in range(3):
            now, _ = found.correct(now, {"place": np.concatenate([now.q[:3], now.q[3:]])})
            now = found.predict(now)
        covariances.append(now.P)
    size = np.sqrt(np.diag(covariances[0]))
    np.testing.assert_allclose(
        covariances[1] / np.outer(size, size), covariances[0] / np.outer(size, size), atol=1e-7
    )


def test_flight_with_a_regulator_on_estimates():
    """The pole is held up from encoders alone, under the noise that the filter expects; errors fit their covariance."""
    linear = al.linearize(CART, [0.0, np.pi])
    regulator = al.linear.lqr(linear, np.diag([1.0, 5.0, 1.0, 1.0]), 0.1)
    found = StateFilter(CART, encoders(), process=0.05)
    start = found.start([0.0, np.pi], deviations=[0.05, 0.1, 0.1, 0.1])

    def push(t):
        return 0.05 / np.sqrt(DT) * np.random.default_rng(round(t / DT)).normal(size=2)

    run = al.simulate(
        CART,
        [0.03, np.pi - 0.08],
        duration=3.0,
        step=DT,
        controller=[found.controller(start, regulator), Sampled(lambda t, q, v: push(t), DT)],
        sensors=encoders(seed=4),
    )
    told, spread = run.measurements["estimate"], run.measurements["estimate.deviations"]
    k = np.rint(told.time / DT).astype(int)
    error = told.values - np.concatenate([run.q[k], run.v[k]], axis=1)
    assert abs(run.q[-1, 1] - np.pi) < 0.1
    # each of 4 x 150 errors is normal: five deviations are left once in 3000 such runs
    assert np.all(np.abs(error) < 5 * spread.values)
    # the mean square over time of a stationary, correlated error: 150 samples hold some tens of independent ones
    assert 0.3 < np.mean((error[20:] / spread.values[20:]) ** 2) < 3


def test_accelerometers_frames_and_lost_samples():
    """Sensors of all kinds are foretold; a sample of the mean changes nothing but the deviations."""
    builder = al.ModelBuilder("arm")
    builder.body("link", al.Inertia.point(1.0, (0, 0, -1)), joint=al.Revolute((0, 1, 0)), joint_name="hinge")
    builder.frame("tip", "link", (0, 0, -1.0))
    model = builder.build()
    kinds = ("accelerometer", "frame", "gyro", "point", "joint_rate")
    sensors = [
        Measured(Sensor(kind, kind, "hinge" if kind == "joint_rate" else "tip"), 0.1, noise=0.1)
        for kind in kinds
    ]
    for kind in ("extended", "unscented"):
        found = StateFilter(model, sensors, process=0.1, kind=kind)
        start = found.start([0.4], [0.2], deviations=1e-3)
        x = (start.q, start.v, start.p)
        told = dict(zip(kinds, found._told(found.instruments, x, np.array([0.5]), 0.0), strict=True))
        after, found_nis = found.correct(start, told, efforts=[0.5])
        # the mean of sigma points differs from the value at the mean by curvature, 1e-6
        assert np.allclose(after.q, start.q, atol=1e-7)
        assert found_nis.nis < 1e-6
        assert np.all(after.deviations < start.deviations)
        same, _ = found.correct(start, {"gyro": [np.nan] * 3})
        assert same is start


def test_sensors_with_an_offset():
    """The filter takes samples when they are made. Errors of a fitting filter are beyond five deviations once in a million;
    half a period late, 80 deviations of a pole that swings at 4 rad/s."""
    sensors = encoders(offset=DT / 2)
    found = StateFilter(CART, sensors, process=0.01)
    start = found.start([0, 2.0], deviations=0.01)
    run = al.simulate(
        CART,
        [0, 2.0],
        duration=1.0,
        step=DT / 2,
        controller=found.controller(start, name="x"),
        sensors=sensors,
    )
    told, sure = run.measurements["x"], run.measurements["x.deviations"]
    np.testing.assert_allclose(told.time, DT / 2 + DT * np.arange(len(told.time)), atol=1e-12)
    at = np.round(told.time / (DT / 2)).astype(int)
    assert np.all(np.abs(told.values[:, :2] - run.q[at]) < 5 * sure.values[:, :2])


def test_refusals():
    dt = DT
    with pytest.raises(ArgumentError, match=r"kind is 'best', expected one of extended, unscented"):
        StateFilter(CART, encoders(), process=1.0, kind="best")
    with pytest.raises(ArgumentError, match=r"process\['x'\] is 'a', expected (a )?number"):
        StateFilter(CART, encoders(), process={"x": "a"})
    with pytest.raises(ArgumentError, match=r"center is 1.0, expected a weight from 0 to less than 1"):
        StateFilter(CART, encoders(), process=1.0, center=1.0)
    with pytest.raises(ArgumentError, match=r"steps is 0, expected a whole number from 1"):
        StateFilter(CART, encoders(), process=1.0, steps=0)
    plain = StateFilter(CART, encoders(), process=1.0)
    with pytest.raises(ArgumentError, match=r"start: deviations is -1, expected numbers from zero on"):
        plain.start(deviations=-1)
    with pytest.raises(ArgumentError, match=r"start: deviations is \{'x': 1\}, expected numbers"):
        plain.start(deviations={"x": 1})
    with pytest.raises(
        ArgumentError, match=r"StateFilter.predict: efforts is \[nan, 0\], expected finite numbers"
    ):
        plain.predict(plain.start(deviations=0.1), [float("nan"), 0])
    with pytest.raises(ArgumentError, match=r"estimate: no parameter 'mass'"):
        StateFilter(CART, encoders(), process=1.0, estimate=["mass"])
    with pytest.raises(ArgumentError, match=r"drift: no estimated parameter 'mass'"):
        StateFilter(CART, encoders(), process=1.0, drift={"mass": 1.0})
    with pytest.raises(
        ArgumentError, match=r"drift of 'transverse' is -1.0, expected zero or a positive number"
    ):
        sensor = Measured(Sensor("gyro", "gyro", "hub"), 0.1, noise=0.1)
        StateFilter(satellite(), sensor, process=1.0, estimate="transverse", drift={"transverse": -1.0})
    with pytest.raises(ArgumentError, match=r"the periods of the sensors are 'slide' 0.02 s, 'hinge' 0.01 s"):
        StateFilter(CART, [encoders()[0], encoders(0.01)[1]], process=1.0)
    with pytest.raises(ArgumentError, match=r"the offsets of the sensors are 'slide' 0 s, 'hinge' 0.01 s"):
        StateFilter(CART, [encoders()[0], encoders(offset=0.01)[1]], process=1.0)
    with pytest.raises(ArgumentError, match=r"sensors has 'slide' more than once"):
        StateFilter(CART, [encoders()[0], *encoders()], process=1.0)
    with pytest.raises(ArgumentError, match=r"sensors has 'slide', expected Measured"):
        StateFilter(CART, ["slide"], process=1.0)
    with pytest.raises(ArgumentError, match=r"'slide' has no noise; give Measured\(noise=...\)"):
        StateFilter(CART, Measured(Sensor("slide", "joint_position", "slide"), dt), process=1.0)
    with pytest.raises(UnsupportedError, match=r"'slide' delivers 0.02 s late"):
        StateFilter(CART, encoders(delay=0.02), process=1.0)
    with pytest.raises(
        ArgumentError, match=r"process is \[1, 2, 3\], expected zero or positive: a number, 2"
    ):
        StateFilter(CART, encoders(), process=[1, 2, 3])
    with pytest.raises(UnsupportedError, match=r"a model with loops, couplings or equations"):
        builder = al.ModelBuilder("geared")
        for name in ("slide", "hinge"):
            builder.body(name, al.Inertia.sphere(1.0, 0.1), joint=al.Revolute((0, 0, 1)), joint_name=name)
        StateFilter(builder.coupling("gear", "hinge", ["slide"], [2.0]).build(), encoders(), process=1.0)
    found = StateFilter(CART, encoders(), process=1.0)
    start = found.start(deviations=0.1)
    with pytest.raises(ArgumentError, match=r"start: no estimated parameter 'mass'"):
        found.start(deviations=0.1, mass=2.0)
    with pytest.raises(ArgumentError, match=r"correct: no sensor 'gyro'"):
        found.correct(start, {"gyro": 1.0})
    with pytest.raises(ArgumentError, match=r"sensor 'slide' reads shape \(2,\), expected \(1,\)"):
        found.correct(start, {"slide": [1.0, 2.0]})
    with pytest.raises(ArgumentError, match=r"correct: the sample of 'slide' is 'a', expected numbers"):
        found.correct(start, {"slide": "a"})
    with pytest.raises(ArgumentError, match=r"StateFilter.correct: efforts is .* expected finite numbers"):
        found.correct(start, {"slide": [0.0]}, efforts=[np.inf, 0])
    given = {"duration": 0.2, "step": 0.01, "controller": found.controller(start)}
    for other in (encoders(0.04), encoders(offset=0.01), encoders(delay=0.02)):
        with pytest.raises(
            ArgumentError, match=r"made for .*every 0.02 s from 0 s on; the run has .*old samples"
        ):
            al.simulate(CART, sensors=other, **given)
    faster = encoders(0.01)  # new samples whenever the filter asks
    assert al.simulate(CART, sensors=faster, **given).reason
    with pytest.raises(ArgumentError, match=r"law is 3, expected a function"):
        found.controller(start, 3)
    with (
        pytest.warns(AlembertWarning),
        pytest.raises(NumericalError, match=r"a step of 0.02 s from t = 0 s is not finite"),
    ):
        found.predict(found.start(v=[1e200, 1e200], deviations=0.1))

    class Odd:
        name, width = "odd", 1

        def check(self, model):
            pass

        def observe(self, model, t, q, v, error, chance, parameters):
            return error

    with pytest.raises(UnsupportedError, match=r"'odd' is a sensor of its own kind"):
        StateFilter(CART, Measured(Odd(), dt, noise=1.0), process=1.0)


def test_tangents_of_the_extended_filter_are_derivatives():
    """A pendulum, q'' = -g/l sin q: the slope of rk4's step by complex numbers, exact to rounding."""
    builder = al.ModelBuilder("pendulum")
    builder.body("bob", al.Inertia.point(1.0, (0, 0, -0.7)), joint=al.Revolute((0, 1, 0)), joint_name="hinge")
    model = builder.build()
    dt = 0.05
    watch = StateFilter(
        model, Measured(Sensor("angle", "joint_position", "hinge"), dt, noise=0.1), process=0.0
    )

    def rate(x):
        return np.array([x[1], -9.81 / 0.7 * np.sin(x[0])])

    def step(x):
        a = rate(x)
        b = rate(x + dt / 2 * a)
        c = rate(x + dt / 2 * b)
        return x + dt / 6 * (a + 2 * b + 2 * c + rate(x + dt * c))

    start = np.array([1.1, -2.0])
    slopes = np.array([step(start + 1e-30j * unit).imag / 1e-30 for unit in np.eye(2)]).T
    S = np.diag([0.3, 0.5])
    found = watch.predict(watch.start(start[:1], start[1:], deviations=[0.3, 0.5]))
    np.testing.assert_allclose(np.concatenate([found.q, found.v]), step(start), rtol=1e-12)
    # differences of 1e-5: 1e-10 by curvature, and rounding of 1e-16 over 1e-5
    np.testing.assert_allclose(found.P, slopes @ S @ S @ slopes.T, rtol=1e-9)
