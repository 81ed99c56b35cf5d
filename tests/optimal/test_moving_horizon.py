"""Estimates from windows of samples: the Kalman filter where it is exact, and what filters cannot do."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import control
from alembert.control import SquareRootKalman
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.flexible import beam
from alembert.model import Sensor
from alembert.optimal import MovingHorizonEstimator
from alembert.simulate import ForceElement, Measured, StateFilter

DT = 0.1


def mass():
    builder = al.ModelBuilder("mass", gravity=(0, 0, 0))
    builder.body("block", al.Inertia.point(2.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="rail")
    return builder.build()


def place(noise=0.05, **more):
    return Measured(Sensor("place", "joint_position", "rail"), DT, noise=noise, **more)


@pytest.fixture(scope="module")
def free():
    return MovingHorizonEstimator(mass(), place(), process={"rail": 0.3}, window=3)


def test_a_linear_model_has_the_linear_filter(free):
    """While the window fills, when it is full, and where samples are lost.

    Solves end with errors of 1e-8 in units of the scaled cost, of which Newton's last step leaves the square; the covariance
    comes from differences that are exact to 1e-10.
    """
    plant = control.c2d(control.StateSpace([[0, 1], [0, 0]], [[0], [0.5]], [[1, 0]]), DT)
    linear = SquareRootKalman(plant, 0.3**2 / DT, 0.05**2)
    a, b = free.start([1.0], [0.2], deviations=[0.3, 0.4]), linear.start([1.0, 0.2], [0.09, 0.16])
    rng = np.random.default_rng(0)
    for k in range(7):
        y, u = 1 + rng.normal(0, 0.1), rng.normal()
        if k != 4:
            a, (b, _) = (
                free.correct(a, {"place": [y if k != 2 else np.nan]}),
                (b, 0) if k == 2 else linear.correct(b, [y]),
            )
            assert a.status == "solved"
        np.testing.assert_allclose([*a.q, *a.v], b.x, atol=1e-8)
        np.testing.assert_allclose(a.deviations, np.sqrt(np.diag(b.P)), rtol=1e-7)
        a, b = free.predict(a, [u]), linear.predict(b, [u])
        np.testing.assert_allclose([*a.q, *a.v], b.x, atol=1e-8)


def test_limits_hold_where_filters_leave_them():
    """A block that a wall at zero keeps out: readings behind the wall are noise."""
    limited = MovingHorizonEstimator(
        mass(), place(0.2), process={"rail": 0.3}, window=3, limits={"q": {"rail": (0.0, 10.0)}}
    )
    plain = StateFilter(mass(), place(0.2), process={"rail": 0.3})
    a, b = (
        limited.start([0.02], [0.0], deviations=[0.3, 0.2]),
        plain.start([0.02], [0.0], deviations=[0.3, 0.2]),
    )
    lowest = 1.0
    for y in (-0.3, -0.1, -0.25, 0.05):
        a, (b, _) = limited.correct(a, {"place": [y]}), plain.correct(b, {"place": [y]})
        assert a.q[0] >= -1e-9  # interior points keep to it, up to rounding
        assert a.points[:, 0].min() >= -1e-9
        lowest = min(lowest, b.q[0])
        a, b = limited.predict(a), plain.predict(b)
    assert lowest < -0.1


def test_later_samples_correct_earlier_linearisations():
    """A pendulum seen by the place of its tip, from a start that is 1.3 rad off, without noise.

    The motion that fits best is the true one but for what the start pulls: (noise / deviation)^2 = 4e-6 of 1.3 rad for each
    sample. A filter that linearises once stays off by the curvature of that, 1.3^2 / 2.
    """
    builder = al.ModelBuilder("pendulum")
    builder.body("rod", al.Inertia.point(1.0, (0, 0, -1)), joint=al.Revolute((0, 1, 0)), joint_name="hinge")
    builder.frame("tip", "rod", (0, 0, -1))
    model = builder.build()
    tip = Measured(Sensor("tip", "point", "tip"), DT, noise=0.002)
    found = MovingHorizonEstimator(model, tip, process=0.01, window=4)
    plain = StateFilter(model, tip, process=0.01)
    true = al.simulate(model, [1.0], [0.5], duration=4 * DT, step=DT, integrator="rk4")
    a, b = (x.start([2.3], [0.0], deviations=[1.0, 1.0]) for x in (found, plain))
    for k, q in enumerate(true.q):
        y = {"tip": model.frame_pose(q, "tip").translation}
        a, (b, _) = found.correct(a, y), plain.correct(b, y)
        if k < 4:
            a, b = found.predict(a), plain.predict(b)
    off, of_filter = (abs(x.q[0] - true.q[-1, 0]) + abs(x.v[0] - true.v[-1, 0]) for x in (a, b))
    assert off < 1e-3
    assert of_filter > 10 * off


def test_orientations():
    """A body that turns, seen by its joint and by its pose: with a window that holds all samples, as the filter has it to
    second order of its errors (0.02 rad)."""
    builder = al.ModelBuilder("body", gravity=(0, 0, 0))
    inertia = al.Inertia(1.0, (0, 0, 0), (1.0, 0, 2.0, 0, 0, 3.0))
    builder.body("body", inertia, joint=al.Spherical(), joint_name="turn")
    model = builder.build()
    sensors = [
        Measured(Sensor("turned", "joint_position", "turn"), DT, noise=0.02),
        Measured(Sensor("pose", "frame", "body"), DT, noise=[0.02] * 3 + [0.1] * 3),
    ]
    found, plain = (
        make(model, sensors, process=0.1, **more)
        for make, more in ((MovingHorizonEstimator, {"window": 1}), (StateFilter, {}))
    )
    a, b = (
        x.start(model.neutral(), [0.1, 0.2, 0.0], deviations=[0.05] * 3 + [0.1] * 3) for x in (found, plain)
    )
    for k in range(2):
        q = model.integrate(model.neutral(), [0.02, 0.03 * k, -0.01])
        y = {"turned": q, "pose": np.concatenate([np.zeros(3), q])}
        a, (b, _) = found.correct(a, y), plain.correct(b, y)
        assert np.abs(plain.error(b, a.q, a.v)).max() < 0.02**2
        a, b = found.predict(a, [0.1, 0.0, 0.0]), plain.predict(b, [0.1, 0.0, 0.0])


def test_a_flexible_body():
    """A hub that turns, with a panel whose bending only the hub's angle tells: motions so small (1e-4 rad) that the model is
    linear to their square, and window and filter say the same (solves to 1e-8 leave 1e-7); the bending is found."""
    builder = al.ModelBuilder("slew", gravity=(0, 0, 0))
    hub = al.Inertia(1.0, (0, 0, 0), (0.4, 0, 0.4, 0, 0, 0.4))
    builder.body("hub", hub, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    panel = beam(1.0, 1.0, EI_z=1.0, bending_y=1)
    builder.body("panel", panel, joint=al.Fixed(), parent="hub")
    model, step = builder.build(), 0.05
    truth = al.simulate(model, [0, 1e-4], [0, 0], duration=20 * step, step=step, interval=step)
    angle = Measured(Sensor("angle", "joint_position", "pin"), step, noise=1e-7)
    found, plain = (
        make(model, angle, process={"pin": 1e-6}, **more)
        for make, more in ((MovingHorizonEstimator, {"window": 20, "tolerance": 1e-11}), (StateFilter, {}))
    )
    a, b = (x.start([0, 0], [0, 0], deviations=[1e-6, 1e-3, 1e-6, 1e-3]) for x in (found, plain))
    for k, q in enumerate(truth.q):
        y = {"angle": q[:1]}
        a, (b, _) = found.correct(a, y), plain.correct(b, y)
        assert a.status == "solved"
        assert (
            np.abs(plain.error(b, a.q, a.v)).max() < 1e-7
        )  # of 1e-3 rad and rad/s that are not known at first
        if k < len(truth.q) - 1:
            a, b = found.predict(a, [0, 0]), plain.predict(b, [0, 0])
    assert abs(a.q[1] - truth.q[-1, 1]) < 5e-2 * 1e-4


def test_in_the_loop(free):
    """A law on estimates; the run is the same every time, and its errors fit their covariance."""
    start = free.start([0.3], [0.0], deviations=[0.3, 0.3])
    law = free.controller(start, lambda t, q, v: -4 * q - 4 * v)
    runs = [
        al.simulate(mass(), [0.5], [0.1], duration=2.0, step=DT, controller=law, sensors=place(seed=3))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)
    told, spread = (runs[0].measurements[name] for name in ("estimate", "estimate.deviations"))
    k = np.rint(told.time / DT).astype(int)
    error = told.values - np.concatenate([runs[0].q[k], runs[0].v[k]], axis=1)
    assert np.all(np.abs(error) < 5 * spread.values)  # each is normal: once in 40,000 such runs
    assert abs(runs[0].q[-1, 0]) < 0.2


def test_refused(free):
    with pytest.raises(ArgumentError, match="window is 0, expected intervals from 1 on"):
        MovingHorizonEstimator(mass(), place(), process=1.0, window=0)
    with pytest.raises(ArgumentError, match="process is zero for all degrees of freedom"):
        MovingHorizonEstimator(mass(), place(), process=0.0)
    with pytest.raises(ArgumentError, match="MovingHorizonEstimator: sensors has 'e', expected Measured"):
        MovingHorizonEstimator(mass(), "encoder", process=1.0)
    shaken = Measured(Sensor("shaken", "accelerometer", "block"), DT, noise=1.0)
    with pytest.raises(
        UnsupportedError, match="'shaken' is an accelerometer, which reads the unknown efforts"
    ):
        MovingHorizonEstimator(mass(), shaken, process=1.0)
    start = free.start([0.0], deviations=0.1)
    with pytest.raises(ArgumentError, match="correct: no sensor 'speed'"):
        free.correct(start, {"speed": [0.0]})
    with pytest.raises(ArgumentError, match="sensor 'place' reads 2 numbers, expected 1"):
        free.correct(start, {"place": [0.0, 1.0]})
    with pytest.raises(ArgumentError, match="sensor 'place' reads 'far', expected numbers"):
        free.correct(start, {"place": "far"})
    with pytest.raises(ArgumentError, match="readings is 3, expected numbers by sensor"):
        free.correct(start, 3)
    with pytest.raises(ArgumentError, match="tolerance is -1, expected a number between 0 and 1"):
        MovingHorizonEstimator(mass(), place(), process=1.0, tolerance=-1)
    with pytest.raises(UnsupportedError, match="limits: 'rate' bounds how fast controls change"):
        MovingHorizonEstimator(mass(), place(), process=1.0, limits={"rate": {"rail": 1.0}})
    gust = ForceElement("block", wrenches=lambda t, poses, v: [ca.vertcat(0, 0, 0, ca.sin(t), 0, 0)])
    with pytest.raises(
        UnsupportedError, match="forces or gravity depend on the time, which begins at 0 in every"
    ):
        MovingHorizonEstimator(mass(), place(), process=1.0, forces=[gust])
    once = free.correct(start, {"place": [0.0]})
    with pytest.raises(ArgumentError, match="this sample was taken in already"):
        free.correct(once, {"place": [0.0]})
    with pytest.raises(ArgumentError, match="law is 3, expected a function"):
        free.controller(start, 3)
    with pytest.raises(ArgumentError, match="deviations at the start are zero for some errors"):
        free.correct(free.start([0.0], deviations=[0.1, 0.0]), {"place": [0.0]})
    hasty = MovingHorizonEstimator(
        mass(), place(), process=1.0, window=1, iterations=1, limits={"q": {"rail": (0.0, 1e-3)}}
    )
    with pytest.raises(NumericalError, match="the motion of the last 1 samples was not found: iterations"):
        hasty.correct(hasty.start([0.0], deviations=0.1), {"place": [0.5]})
    cart = al.library.cart_pole()
    sensor = Measured(Sensor("slide", "joint_position", "slide"), DT, noise=0.1)
    some = MovingHorizonEstimator(cart, sensor, process={"slide": 1.0}, window=1)
    with pytest.raises(UnsupportedError, match="'hinge' has an effort, and no unknown one"):
        some.predict(some.start(deviations=0.1), [0.0, 1.0])
