"""Paths in time: the fastest motion is bang-bang where one joint moves, and no limit is passed anywhere."""

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, NumericalError, library, reach


def hinge():
    builder = al.ModelBuilder("hinge")
    builder.body("rod", al.Inertia.point(1.0, (0.5, 0, 0)), joint=al.Revolute((0, 0, 1)), joint_name="turn")
    builder.frame("tip", "rod", (1.0, 0.0, 0.0))
    return builder.build()


def test_one_joint_is_driven_full_speed_ahead_and_full_stop():
    """Over an angle L with acceleration a and speed v: 2 sqrt(L/a) without, L/v + v/a with a speed limit that is met."""
    model, L, a, v = hinge(), 2.0, 4.0, 1.0
    q = np.linspace(0, L, 401)[:, None]
    free = reach.time_scaled(model, q, accelerations=a)
    limited = reach.time_scaled(model, q, accelerations=a, speeds=v)
    # places are 1/400 of the way apart, and the switch falls on one of them
    np.testing.assert_allclose(free.duration, 2 * np.sqrt(L / a), rtol=1e-6)
    np.testing.assert_allclose(limited.duration, L / v + v / a, rtol=1e-6)
    assert np.max(np.abs(limited.v)) <= v * (1 + 1e-9)
    assert np.max(np.abs(free.a)) <= a * (1 + 1e-6)
    assert "401 configurations" in repr(free)


def _before(model, way):
    """Accelerations just before each configuration but the first: u there is that of the interval that ends."""
    h = np.linalg.norm(model.difference(way.q[:-1], way.q[1:]), axis=1)
    rate = [0.0]
    for k, on in enumerate(np.diff(way.time)):
        rate.append(2 * h[k] / on - rate[-1])
    u = np.diff(np.square(rate)) / (2 * h)
    change = np.append(u[:-1] - u[1:], 0.0)  # the last one serves twice
    slope = np.divide(way.v[1:], np.array(rate)[1:, None], out=np.zeros_like(way.v[1:]), where=way.v[1:] != 0)
    return way.a[1:] + change[:, None] * slope


def test_an_arm_follows_a_line_within_its_limits():
    arm = library.arm7()
    q0 = np.array([0.2, 0.4, 0.1, -1.2, 0.1, 1.0, 0.3])
    X = arm.frame_pose(q0, "tool")
    line = X.translation + np.linspace(0, 1, 81)[:, None] * [-0.1, -0.25, -0.05]
    way = reach.follow(
        arm,
        [reach.position("tool", line), reach.orientation("tool", X.rotation)],
        start=q0,
        accelerations=6.0,
    )
    np.testing.assert_allclose(arm.frame_pose(way.q, "tool").translation, line, atol=1e-9)
    assert np.all(np.abs(way.v) <= arm.space.limits("velocity") * (1 + 1e-9))
    assert np.max(np.abs(way.a)) <= 6.0 * (1 + 1e-6)
    # somewhere something is at a limit, in all intervals but the first and the last: the motion could not be faster
    before = _before(arm, way)
    assert np.max(np.abs(before)) <= 6.0 * (1 + 1e-6)
    speeds = np.max(np.abs(way.v) / arm.space.limits("velocity"), axis=1)
    busy = (
        *(speeds[:-1], speeds[1:]),
        *(np.max(np.abs(way.a[:-1]) / 6.0, axis=1), np.max(np.abs(before) / 6.0, axis=1)),
    )
    assert np.mean(np.max(busy, axis=0)[1:-1] > 0.99) > 0.95
    # between: differences of the motion agree with its speeds
    t = np.linspace(0, way.duration, 57)[1:-1]
    q, v = way.at(arm, t)
    ahead, behind = way.at(arm, t + 1e-6)[0], way.at(arm, t - 1e-6)[0]
    np.testing.assert_allclose((ahead - behind) / 2e-6, v, atol=1e-6)
    assert (
        np.max(
            np.linalg.norm(
                np.cross(arm.frame_pose(q, "tool").translation - line[0], line[-1] - line[0]), axis=1
            )
        )
        < 1e-5
    )


def test_limits_hold_at_both_ends_of_every_interval():
    """Where the path bends: the acceleration just before a configuration is that along its tangent there, too."""
    most, found = np.array([3.0, 4.0]), []
    for count in (50, 800):
        s = np.linspace(0, 2.0, count)
        q = np.column_stack([np.sin(2 * s), np.cos(3 * s)])
        way = reach.time_scaled(library.two_link(), q, speeds=[1.0, 2.0], accelerations=most)
        assert np.all(np.abs(way.v) <= np.array([1.0, 2.0]) * (1 + 1e-9))
        assert np.all(np.abs(way.a) <= most * (1 + 1e-9))
        # the mean over an interval, but for what the slope of the path changes in it
        steps = np.diff(way.v, axis=0) / np.diff(way.time)[:, None]
        assert np.all(np.abs(steps) <= most * (1 + 4 / count))
        found.append(way.duration)
    assert abs(found[0] / found[1] - 1) < 0.02  # 1/50, of first order


def test_configurations_may_be_unevenly_spaced():
    """One joint over an angle of 1: L/v + v/a, however the configurations lie along it."""
    model, rng = hinge(), np.random.default_rng(0)
    for q in (np.linspace(0, 1, 101) ** 2, np.concatenate([[0.0], np.sort(rng.uniform(0, 1, 200)), [1.0]])):
        way = reach.time_scaled(model, q[:, None], speeds=0.5, accelerations=1.0)
        # too late by what a switch between two configurations costs: less than a spacing of 0.02 over the speed
        assert 2.5 - 1e-9 < way.duration < 2.5 + 0.04
        assert np.max(np.abs(way.v)) <= 0.5 * (1 + 1e-9)
        assert np.max(np.abs(way.a)) <= 1.0 + 1e-9


def test_speeds_between_are_those_of_the_motion_where_coordinates_are_curved():
    """Of a ball joint on a winding path: the derivative of q between configurations, and none jumps at one."""
    builder = al.ModelBuilder("ball")
    builder.body("ball", al.Inertia.box(1.0, (1, 1, 1)), joint=al.Spherical())
    model = builder.build()
    q = [model.neutral()]
    for k in range(6):
        q.append(model.integrate(q[-1], np.array([0.3 * np.cos(k), 0.3 * np.sin(k), 0.2])))
    way = reach.time_scaled(model, q, speeds=1.0, accelerations=2.0)
    t, h = np.linspace(0, way.duration, 40)[1:-1], 1e-5
    moved = model.difference(way.at(model, t - h)[0], way.at(model, t + h)[0]) / (2 * h)
    # h^2 of a third derivative of some 10, and rounding over h
    np.testing.assert_allclose(way.at(model, t)[1], moved, atol=1e-8)
    np.testing.assert_allclose(way.at(model, way.time - 1e-12)[1], way.v, atol=1e-9)


def test_what_is_refused():
    model = hinge()
    for call, message in (
        (lambda: reach.time_scaled(model, [[0.0], [1.0]], accelerations=1.0), "with N at least 3"),
        (
            lambda: reach.time_scaled(model, [[0.0], [0.0], [1.0]], accelerations=1.0),
            "configurations 0 and 1 are the same",
        ),
        (lambda: reach.time_scaled(model, [[0.0], [0.5], [1.0]]), "accelerations are needed"),
        (
            lambda: reach.time_scaled(model, [[0.0], [0.5], [1.0]], accelerations=-1.0),
            "expected a positive number or 1",
        ),
        (lambda: reach.follow(model, {"tip": [1.0, 0, 0]}, accelerations=1.0), "expected targets"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    angles = np.array([0.0, 0.2, 2.0])
    points = np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
    with pytest.raises(NumericalError, match=r"between targets 1 and 2 a joint moves by 1.8"):
        reach.follow(model, {"tip": points}, start=[0.0], accelerations=1.0)
    points[1] *= 2
    with pytest.raises(NumericalError, match="target 1 of 3: out of reach: position of tip by 1 m"):
        reach.follow(model, {"tip": points}, start=[0.0], accelerations=1.0)
