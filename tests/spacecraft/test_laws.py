"""Laws and estimators: closed forms, stability, and honest covariances."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import alembert as al
from alembert import ArgumentError
from alembert import spacecraft as sc
from alembert.simulate import Table
from alembert.spacecraft import (
    AttitudeFilter,
    gains,
    magnetic_unloading,
    momentum_management,
    quaternion_feedback,
    quest,
    sliding_design,
    sliding_mode,
    triad,
    wheel_momentum,
    wheel_torques,
)
from alembert.spacecraft.devices import ReactionWheel
from alembert.spatial import quaternion


def slew(law, q, w, J, duration, h=0.02):
    """Euler's equations under a law, by small steps."""
    for _ in range(int(duration / h)):
        u = law(q, w)
        w = w + h * np.linalg.solve(J, u - np.cross(w, J @ w))
        q = np.asarray(quaternion.multiply(q, quaternion.exp(h * w)))
    return q, w


@pytest.mark.parametrize("kind", ["feedback", "sliding"])
def test_slews_end_at_the_target(kind):
    J = np.diag([120.0, 150.0, 60.0])
    target = np.array([0.5, 0.5, -0.5, 0.5])
    kp, kd = gains(J, 0.3)

    def law(q, w):
        if kind == "feedback":
            return quaternion_feedback(q, w, inertia=J, stiffness=kp, damping=kd, target_wxyz=target)
        return sliding_mode(q, w, inertia=J, torque=5.0, slope=0.2, target_wxyz=target)

    q, w = slew(law, np.array([1.0, 0, 0, 0]), np.array([0.02, -0.01, 0.03]), J, 60.0)
    assert abs(q @ target) == pytest.approx(1.0, abs=1e-5)  # sliding: the layer of 0.01 leaves some 1e-3 rad
    assert np.linalg.norm(w) < 1e-3


def test_magnetic_unloading():
    """Law -k H_perp, H = (3, 4, 0), B along (0, 1, 1), k t = 1: the closed form is an exponential across B."""
    B = 3e-5 * np.array([0, 1.0, 1.0])
    H = np.array([3.0, 4.0, 0.0])
    n = 200
    for _ in range(n):
        middle = H + np.cross(magnetic_unloading(H, B, 1.0), B) / (2 * n)
        H = H + np.cross(magnetic_unloading(middle, B, 1.0), B) / n
    assert np.allclose(
        H, [1.103638324, 2.735758882, 1.264241118], atol=3e-5
    )  # the midpoint rule, 1/(6 n^2) of 4
    assert np.abs(magnetic_unloading(H, B, 1.0, dipole=2.0)).max() <= 2.0 + 1e-12
    assert np.allclose(magnetic_unloading(H, np.zeros(3), 1.0), 0.0)


def test_wheels_share_a_torque():
    axes = ([1, 0, 0], [0, 1, 0], [0, 0, 1], np.ones(3) / np.sqrt(3))
    wheels = [ReactionWheel(f"w{k}", tuple(a), 0.1, 1.0, 600.0) for k, a in enumerate(axes)]
    u = wheel_torques(wheels, [0.1, -0.2, 0.3])
    assert np.allclose(-np.array(axes).T @ u, [0.1, -0.2, 0.3])
    assert np.allclose(wheel_momentum(wheels, [10, 0, 0, 0]), [1.0, 0, 0])
    with pytest.raises(ArgumentError, match="span 2 directions"):
        wheel_torques(wheels[:2], [0, 0, 1])


def test_momentum_management_is_stable():
    """The closed loop of angles, momenta and their integrals, with the gravity gradient of a station."""
    J = np.diag([6.8e7, 1.5e7, 7.4e7])
    n = 1.1e-3
    pitch, both = momentum_management(J, n, momentum=5000.0)
    I1, I2, I3 = np.diag(J)
    A = np.zeros((4, 4))
    A[0, 1] = A[3, 2] = 1.0
    A[1, 0] = -3 * n**2 * (I1 - I3) / I2
    B = np.array([[0.0], [-1 / I2], [1.0], [0.0]])
    assert np.linalg.eigvals(A - B @ pitch).real.max() < -0.05 * n
    assert both.shape == (2, 8)


@pytest.mark.parametrize("moments", [(6.8e7, 1.5e7, 7.4e7), (10.0, 12.0, 9.0), (1000.0, 1500.0, 800.0)])
@pytest.mark.parametrize("momentum", [0.1, 1.0, 100.0])
def test_gains_on_the_integrals_of_momentum(moments, momentum):
    """Nothing depends on an integral but the law: Riccati's equation there is Q = K' R K, whatever the craft."""
    n = 1.1e-3
    pitch, both = momentum_management(np.diag(moments), n, momentum=momentum)
    # weights (n/h)^2 and 1/(h n)^2; the last digits of rates and momenta of 1e6 times the size are lost
    assert abs(pitch[0, 3]) == pytest.approx(n**2, rel=1e-8)
    on_sums = both[:, [3, 7]]
    np.testing.assert_allclose(on_sums.T @ on_sums, n**4 * np.eye(2), atol=1e-8 * n**4)


def test_triad_and_quest_find_the_attitude():
    rng = np.random.default_rng(0)
    q = quaternion.from_scipy(Rotation.random(rng=rng))
    R = np.asarray(quaternion.to_matrix(q))
    r = rng.normal(size=(4, 3))
    b = r @ R
    assert abs(triad((b[0], r[0]), (b[1], r[1])) @ q) == pytest.approx(1.0, abs=1e-12)
    found, P = quest(b, r, np.full(4, 1e6))
    assert abs(found @ q) == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.linalg.eigvalsh(P) > 0)
    with pytest.raises(ArgumentError, match="parallel"):
        triad((b[0], r[0]), (b[0], r[0]))
    with pytest.raises(ArgumentError, match="parallel"):
        quest([b[0], b[0]], [r[0], r[0]])
    with pytest.raises(ArgumentError, match="two or more"):
        quest([b[0]], [r[0]])


def test_the_covariance_of_quest_is_honest():
    rng = np.random.default_rng(1)
    r = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.6, 0, 0.8]])
    sigma = np.array([1e-3, 2e-3, 1e-3])
    total = 0.0
    for _ in range(400):
        noise = sigma[:, None] * rng.normal(size=(3, 3))
        b = r + noise - np.sum(noise * r, axis=1, keepdims=True) * r
        q, P = quest(b, r, 1 / sigma**2)
        a = 2 * q[1:]
        total += a @ np.linalg.solve(P, a)
    assert total / 400 == pytest.approx(3.0, abs=0.4)  # chi square of 1200: 0.12


@pytest.mark.parametrize("sensor", ["stars", "directions"])
def test_the_filter_is_consistent(sensor):
    """NEES: the mean of 40 runs, at the end of each, is 6 within the bounds of chi square with 240 degrees of freedom."""
    rng = np.random.default_rng(7)
    noise, walk, h, sigma = 1e-4, 1e-6, 0.5, 5e-5
    runs, steps = 40, 40
    off = (
        0.05 if sensor == "stars" else 1e-3
    )  # a direction's error is not linear: off^2/2 must be below sigma
    total = 0.0
    for _ in range(runs):
        w = 0.02 * rng.normal(size=3)
        bias = 1e-3 * rng.normal(size=3)
        q = quaternion.from_scipy(Rotation.random(rng=rng))
        start = np.asarray(quaternion.multiply(q, quaternion.exp(off * rng.normal(size=3))))
        filter_ = AttitudeFilter.start(start, noise=noise, walk=walk, angle=off, bias=1e-3)
        for k in range(steps):
            q = np.asarray(quaternion.multiply(q, quaternion.exp(w * h)))
            measured = w + bias + noise / np.sqrt(h) * rng.normal(size=3)
            bias = bias + walk * np.sqrt(h) * rng.normal(size=3)
            filter_ = filter_.propagate(measured, h)
            if sensor == "stars":
                seen = np.asarray(quaternion.multiply(q, quaternion.exp(sigma * rng.normal(size=3))))
                filter_ = filter_.with_attitude(seen, sigma)
            else:
                r = np.array([[1.0, 0, 0], [0, 0.6, 0.8]])[k % 2]
                b = np.asarray(quaternion.to_matrix(q)).T @ r
                filter_ = filter_.with_direction(b + sigma * rng.normal(size=3), r, sigma)
        filter_ = AttitudeFilter.of_message(filter_.as_message())
        total += filter_.consistency(q, bias)
        assert np.linalg.norm(filter_.rate(w + bias) - w) < 2e-3
    assert 4.2 < total / runs < 7.8  # 6 +- 3.3 sqrt(12/40)


def test_sliding_design_keeps_what_it_proves():
    """A craft at the edge of the ranges: surface in time, accuracy at the end, rate and torque below their bounds."""
    known = np.diag([120.0, 150.0, 60.0])
    design = sliding_design(
        known,
        slope=0.2,
        reach=15.0,
        accuracy=0.02,
        angle=2.5,
        rate=0.03,
        inertia_error=10.0,
        disturbance=0.05,
    )
    J = known - 10.0 * np.eye(3)
    q, w = np.array([np.cos(1.25), 0, np.sin(1.25) * 0.6, np.sin(1.25) * 0.8]), np.array([0.0, 0.018, 0.024])
    push = 0.05 * np.array([0.6, -0.8, 0.0])
    h = 0.01  # well below J p/k, which is 0.1 s here
    far = 2 * design.width * 0.75 * design.torque * 15.0 / (2 * 160.0 * design.start)  # 2 r
    for k in range(int(60.0 / h)):
        u = design.law(q, w)
        assert np.linalg.norm(u) < design.peak_torque
        assert np.linalg.norm(w) < design.rate
        if k * h > design.reach:  # sqrt(160/50) of 2 r, where it stays
            assert np.linalg.norm(w + design.slope * np.sign(q[0]) * q[1:]) < far * np.sqrt(160 / 50)
        w = w + h * np.linalg.solve(J, u + push - np.cross(w, J @ w))
        q = np.asarray(quaternion.multiply(q, quaternion.exp(h * w)))
    assert 2 * np.arcsin(np.linalg.norm(q[1:])) < design.accuracy


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"inertia": np.eye(2)}, r"inertia is .*expected a symmetric, positive matrix \(3, 3\)"),
        ({"slope": 0.0}, "slope is 0.0, expected a number above zero"),
        ({"slope": "a"}, "slope is 'a', expected a number above zero"),
        ({"reach": [1.0, 2.0]}, r"reach is \[1.0, 2.0\], expected a number above zero"),
        ({"inertia": "a"}, "inertia is 'a', expected numbers"),
        ({"angle": 60.0}, "angle is 60.0, expected at most pi, in rad"),
        ({"disturbance": -1.0}, "disturbance is -1.0, expected a number of zero or more"),
        ({"inertia_error": 2.0}, "inertia_error is 2 kg m.2, and the least moment of inertia 1; nothing"),
    ],
)
def test_sliding_design_refuses(change, sentence):
    given = {"inertia": np.eye(3), "slope": 0.1, "reach": 10.0, "accuracy": 0.01, **change}
    with pytest.raises(ArgumentError, match=sentence):
        sliding_design(given.pop("inertia"), **given)


def test_a_law_follows_a_turn():
    """Torques at an estimate on the plan are the plan's; beside it, those of the law: for small angles a product."""
    t = np.array([0.0, 10.0])
    half = np.array([0.0, 0.2])
    turn = Table(t, np.stack([np.cos(half), 0 * half, np.sin(half), 0 * half], axis=1))
    rate, torque = Table(t, np.tile([0.0, 0.04, 0.0], (2, 1))), Table(t, np.tile([0.1, 0.2, 0.3], (2, 1)))
    D = np.arange(18.0).reshape(3, 6)
    law = al.control.StateSpace(0.5 * np.eye(3), np.ones((3, 6)), np.eye(3), D, 0.1)
    wheels = [
        sc.ReactionWheel(name, axis, 0.1, 1.0, 100.0) for name, axis in zip("xyz", np.eye(3), strict=True)
    ]
    task = sc.follow(wheels, law, attitude=turn, rate=rate, torque=torque)
    assert task.period == 0.1
    q = np.array([np.cos(0.2), 0, np.sin(0.2), 0])
    names = ("attitude", "law")

    def asked(attitude, state):
        given = {name: ca.SX(ca.DM(x)) for name, x in zip(names, (attitude, state), strict=True)}
        found = task.function.law(ca.SX(10.0), given)
        return {name: np.array(ca.evalf(x)).ravel() for name, x in found.items()}

    state = np.array([1.0, 2.0, 3.0])
    on = asked(np.r_[q, 0, 0.04, 0], state)
    assert np.allclose(on["wheels"], [1.1, 2.2, 3.3], rtol=0, atol=1e-15)
    assert np.allclose(on["law"], 0.5 * state, rtol=0, atol=1e-15)
    off = np.array([1e-5, -2e-5, 3e-5])
    beside = asked(np.r_[quaternion.multiply(q, np.r_[1.0, off / 2]), 0, 0.04, 0.001], state)
    y = (
        np.r_[
            off,
            0.04 * np.cross(off, [0, 1, 0]),
        ]
        + np.r_[0, 0, 0, 0, 0, 0.001]
    )
    # what is left out is of second order in the angle: 1e-9 of it by gains up to 17
    assert np.allclose(beside["wheels"] - on["wheels"], D @ y, rtol=0, atol=2e-7)
    lost = asked(np.full(7, np.nan), state)
    assert lost["wheels"].tolist() == [0, 0, 0]
    assert lost["law"].tolist() == state.tolist()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"law": al.control.StateSpace(-np.eye(3), np.ones((3, 6)), np.eye(3), np.zeros((3, 6)))}, "law is continuous"),
        ({"law": al.control.StateSpace(np.eye(3), np.ones((3, 6)), np.eye(3), np.zeros((3, 6)), 0.1)}, "factor 1 a sample"),
        ({"rate": Table([0.0, 1.0], np.zeros((2, 2)))}, "follow: rate: 2, expected 3"),
        ({"torque": Table([0.0, 1.0], np.zeros((2, 2)))}, "follow: torque: 2, expected 3"),
    ],
)  # fmt: skip
def test_follow_refuses(change, sentence):
    wheels = [
        sc.ReactionWheel(name, axis, 0.1, 1.0, 100.0) for name, axis in zip("xyz", np.eye(3), strict=True)
    ]
    law = al.control.StateSpace(0.5 * np.eye(3), np.ones((3, 6)), np.eye(3), np.zeros((3, 6)), 0.1)
    t = [0.0, 1.0]
    given = {"law": law, "attitude": Table(t, np.zeros((2, 4))), "rate": Table(t, np.zeros((2, 3)))} | change
    with pytest.raises(ArgumentError, match=sentence):
        sc.follow(wheels, given.pop("law"), **given)


def test_samples_of_a_filter_count_once():
    """A sample that a filter would take twice is refused: the filter would be too sure."""
    software = sc.FlightSoftware([sc.estimate(period=0.1)])
    space = sc.Environment(sc.Epoch.of("2026-03-01T12:00:00"), sc.Encke(sc.Orbit.circular(600e3, 97.8)))
    sensors = [sc.star_tracker("stars", "hub", space, period=0.5), sc.gyro("rate", "hub", period=0.1)]
    with pytest.raises(ArgumentError, match=r"takes each sample of 'stars' once, which come every 0\.5 s"):
        software.controllers(sensors=sensors)


def test_principal_moments_are_a_diagonal_matrix():
    """With three moments for the matrix, J w was their product, a number, and the gyroscopic torque wrong in silence."""
    moments, w, q = [10.0, 20.0, 30.0], [0.1, -0.2, 0.3], [0.8, 0.2, 0.4, 0.4]
    np.testing.assert_array_equal(sc.gains(moments, 0.1), sc.gains(np.diag(moments), 0.1))
    np.testing.assert_allclose(sc.gains(moments, 0.1)[0], np.multiply(moments, 0.01))
    Kp, Kd = sc.gains(moments, 0.1)
    for law in (
        lambda J: sc.quaternion_feedback(q, w, inertia=J, stiffness=Kp, damping=Kd),
        lambda J: sc.sliding_mode(q, w, inertia=J, torque=1.0, slope=0.2),
    ):
        np.testing.assert_array_equal(law(moments), law(np.diag(moments)))
        with pytest.raises(
            ArgumentError, match=r"inertia has shape \(2,\), expected \(3, 3\), or three principal"
        ):
            law([1.0, 2.0])
    with pytest.raises(
        ArgumentError, match=r"stiffness has shape \(3, 3\), expected a number, or three by axis"
    ):
        sc.quaternion_feedback(q, w, inertia=moments, stiffness=np.eye(3), damping=Kd)
    one = sc.momentum_management(moments, 1e-3)
    np.testing.assert_array_equal(one[0], sc.momentum_management(np.diag(moments), 1e-3)[0])


def test_local_axes_of_a_fall():
    with pytest.raises(ArgumentError, match="lvlh: r or v is zero or not finite, or they are parallel"):
        sc.lvlh([7e6, 0, 0], [-1.0, 0, 0])


def test_what_laws_refuse():
    """What gave a wrong torque in silence, or an error of Python's."""
    wheels = [ReactionWheel(f"w{k}", tuple(axis), 0.01, 1.0, 100.0) for k, axis in enumerate(np.eye(3))]
    rest = {"inertia": np.eye(3), "stiffness": 1.0, "damping": 1.0}
    for call, message in (
        (
            lambda: sc.quaternion_feedback([2, 0.2, 0, 0], [0, 0, 0], **rest),
            "q_wxyz has length 2.00998, expected 1",
        ),
        (lambda: sc.quaternion_feedback([0, 0, 0, 0], [0, 0, 0], **rest), "q_wxyz has length 0, expected 1"),
        (
            lambda: sc.quaternion_feedback([1, 0, 0, 0], [0, 0, 0], target_wxyz=(2, 0, 0, 0), **rest),
            "quaternion_feedback: target_wxyz has length 2, expected 1",
        ),
        (
            lambda: sc.quaternion_feedback([1, 0, 0, 0], [0, 0], **rest),
            r"rate has shape \(2,\), expected \(3,\)",
        ),
        (lambda: sc.wheel_torques(wheels, [1, 0]), r"wheel_torques: torque has shape \(2,\)"),
        (lambda: sc.wheel_momentum(wheels, [1, 2]), r"wheel_momentum: speeds has shape \(2,\) for 3 wheels"),
        (
            lambda: sc.magnetic_unloading([1, 0], [0, 1, 0], 1.0),
            r"momentum has shape \(2,\), expected \(3,\)",
        ),
        (lambda: sc.gains(np.eye(3), -1.0), "gains: frequency is -1.0, expected a positive number"),
        (lambda: sc.gains(-np.eye(3), 1.0), "gains: inertia has the moments"),
        (lambda: sc.gains(np.eye(3), 1.0, -0.7), "gains: damping_ratio is -0.7, expected zero or more"),
        (lambda: sc.momentum_management(np.eye(3), 0.0), "orbital_rate is 0.0, expected a positive number"),
        (lambda: sc.momentum_management(np.eye(3), 1e-3), "needs moments of inertia that differ"),
        (lambda: sc.quest([[1, 0, 0], [0, 0, 0]], np.eye(3)[:2]), "quest: a direction is zero or not finite"),
        (lambda: sc.quest(np.eye(3)[:2], np.eye(3)[:2], [-1, 1]), "or a weight negative"),
        (
            lambda: sc.Orbit(7e6, 0.0, 51.6),
            "inclination is 51.6 rad, expected 0 to pi; 51.6 degrees are 0.9006",
        ),
    ):
        with pytest.raises(al.AlembertError, match=message):
            call()
