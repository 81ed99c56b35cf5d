"""Inverse kinematics: what is found does what was asked, and is the best there is where that cannot be."""

import re

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import AlembertWarning, ArgumentError, Pose, UnsupportedError, library, reach
from alembert.reach.tasks import Symbols
from alembert.verify.mechanisms import four_bars

DONE = 1e-9


def planar(links=3, **options):
    """Rods of one metre about z, with a frame at the tip."""
    builder = al.ModelBuilder("planar")
    for k in range(links):
        builder.body(
            f"rod{k}",
            al.Inertia.point(1.0, (0.5, 0.0, 0.0)),
            joint=al.Revolute((0.0, 0.0, 1.0)),
            joint_name=f"joint{k}",
            parent=f"rod{k - 1}" if k else "world",
            placement=(1.0 if k else 0.0, 0.0, 0.0),
            **options,
        )
    builder.frame("tip", f"rod{links - 1}", (1.0, 0.0, 0.0))
    return builder.build()


@pytest.fixture(scope="module")
def arm():
    return library.arm7()


@pytest.fixture(scope="module")
def poses(arm):
    rng = np.random.default_rng(3)
    q = np.array([arm.random_configuration(rng) for _ in range(200)])
    return arm.frame_pose(q, "tool")


def test_poses_of_an_arm_are_reached_within_its_limits(arm, poses):
    found = al.reach(arm, {"tool": poses})
    assert np.all(found.reached)
    X = arm.frame_pose(found.q, "tool")
    assert np.max(np.linalg.norm(X.translation - poses.translation, axis=-1)) <= DONE
    # the angle of R^T R is not better known than the root of rounding; the chord is
    assert np.max(np.abs(X.rotation - poses.rotation)) <= 2 * DONE
    assert np.all(found.q >= arm.space.limits("lower"))
    assert np.all(found.q <= arm.space.limits("upper"))
    assert set(found.errors) == {"pose of tool: position", "pose of tool: orientation"}
    assert found.out_of_reach == {}
    assert found.message == "all tasks are reached"
    assert "all tasks" in repr(found)


def test_one_target_gives_what_it_gives_in_a_batch(arm, poses):
    few = Pose(poses.rotation[:20], poses.translation[:20])
    solve = reach.solver(arm, {"tool": few})
    together = solve(few)
    first = together.attempts == 1  # other starts are drawn for the whole batch
    assert np.sum(first) > 5
    for k in np.flatnonzero(first):
        alone = solve(Pose(few.rotation[k], few.translation[k]))
        np.testing.assert_array_equal(alone.q, together.q[k])
        assert alone.reached is True
        assert alone.iterations == together.iterations[k]


def test_two_links_as_by_the_law_of_cosines():
    model = planar(2)
    target = np.array([0.7, 0.9, 0.0])
    found = al.reach(model, {"tip": target}, start=[0.3, 0.5])
    c = (target @ target - 2) / 2
    elbow = np.arccos(c)
    shoulder = np.arctan2(target[1], target[0]) - np.arctan2(np.sin(elbow), 1 + c)
    np.testing.assert_allclose(
        found.q, [shoulder, elbow], atol=1e-8
    )  # tolerance over the least singular value


def test_what_is_out_of_reach_is_named_with_the_distance():
    model = planar(3)
    with pytest.warns(AlembertWarning, match=r"reach: out of reach: position of tip by 1 m"):
        found = al.reach(model, {"tip": [0.0, 4.0, 0.0]}, restarts=8)
    assert found.reached is False
    np.testing.assert_allclose(found.errors["position of tip"], 1.0, atol=1e-8)
    np.testing.assert_allclose(model.frame_pose(found.q, "tip").translation, [0, 3, 0], atol=1e-3)
    assert list(found.out_of_reach) == ["position of tip"]
    with pytest.warns(
        AlembertWarning, match=r"1 of 2 targets are out of reach; at most: position of tip by 1 m"
    ):
        found = al.reach(model, {"tip": [[0.0, 4.0, 0.0], [0.5, 1.0, 0.0]]}, restarts=8)
    assert found.reached.tolist() == [False, True]


def test_a_large_batch_out_of_reach_keeps_each_target_with_its_own_answer():
    """None of them leaves the batch, and they end their tries at different times."""
    model = planar(3)
    angle = np.linspace(-3.0, 3.0, 300)
    size = np.linspace(3.1, 3.5, 300)[:, None]
    targets = size * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
    with pytest.warns(AlembertWarning):
        found = al.reach(model, {"tip": targets}, restarts=3)
    away = np.linalg.norm(model.frame_pose(found.q, "tip").translation - targets, axis=-1)
    # the nearest point is on the circle of three links; a slope that is left adds its square
    np.testing.assert_allclose(away, size[:, 0] - 3.0, atol=1e-6)
    np.testing.assert_allclose(found.errors["position of tip"], away, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_derivative_that_they_are_given(seed):
    """Of every task, on trees with every kind of joint: differences along integrate(q, e)."""
    model = library.random_tree(seed, bodies=14)
    rng = np.random.default_rng(seed)
    frame, base = model.bodies[-1].name, model.bodies[2].name
    R = model.frame_pose(model.random_configuration(rng), frame).rotation
    tasks = [
        reach.position(frame, rng.normal(size=3), point=(0.1, 0.2, 0.3), axes="zx", relative_to=base),
        reach.orientation(frame, R),
        reach.pose(frame, Pose(R, rng.normal(size=3)), relative_to=base, turning=0.3),
        reach.point_at(frame, rng.normal(size=3), axis=(1.0, 2.0, 2.0)),
        reach.distance(frame, 0.7, relative_to=base),
        reach.center_of_mass(rng.normal(size=3)),
        reach.custom(lambda q: ca.sin(q[:2]) * q[2], [0.1, 0.2], name="own"),
        reach.posture(model.random_configuration(rng)),
    ]
    q = ca.SX.sym("q", model.nq)
    p = ca.SX.sym("p", len(model.parameters))
    at, values = model.random_configuration(rng), list(model.parameter_values.values())
    e, h = rng.normal(size=model.nv), 1e-5
    e /= np.linalg.norm(e)
    for task in tasks:
        rows = task.rows(Symbols(model, q, p), ca.SX(task.target))
        f = ca.Function("f", [q, p], [rows.residual, rows.jacobian, *rows.errors])
        ahead, behind = (f(model.integrate(at, s * h * e), values)[0].full().ravel() for s in (1, -1))
        slope = (ahead - behind) / (2 * h)
        J = f(at, values)[1].full()
        # differences: h^2 of third derivatives, which are of the order of the tree's size, and rounding over h
        np.testing.assert_allclose(J @ e, slope, atol=3e-7, err_msg=task.name)


@pytest.mark.parametrize("seed", [0, 1])
def test_trees_with_every_kind_of_joint_reach_what_they_can(seed):
    model = library.random_tree(seed, bodies=7, branching=0.0)
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(20)])
    frame = model.bodies[-1].name
    target = model.frame_pose(q, frame)
    found = al.reach(model, {frame: target.translation}, limits=False)
    assert np.all(found.reached)
    for k in range(20):
        model.check_configuration(found.q[k])
    p = model.frame_pose(found.q, frame).translation
    assert np.max(np.linalg.norm(p - target.translation, axis=-1)) <= DONE


def test_first_things_first():
    """The tip of the arm has its place; another point is as near to its own as that allows."""
    model = planar(4)
    wish = np.array([-0.5, 1.8, 0.0])
    tasks = [
        reach.position("tip", [1.5, 1.0, 0.0]),
        reach.position("rod2", wish, priority=2, name="elbow"),
    ]
    found = al.reach(model, tasks, start=[0.5, 0.5, -0.5, -0.5], iterations=200)
    assert found.reached
    assert found.errors["position of tip"] <= DONE
    assert found.errors["elbow"] > 0.1
    assert list(found.out_of_reach) == ["elbow"]
    # stationary: what is left of the second gradient is normal to all motions that keep the tip where it is
    J1 = model.frame_jacobian(found.q, "tip", reference="local_world_aligned")[3:5]
    J2 = model.frame_jacobian(found.q, "rod2", reference="local_world_aligned")[3:5]
    g = J2.T @ (model.frame_pose(found.q, "rod2").translation - wish)[:2]
    null = np.linalg.svd(J1)[2][2:]
    assert np.linalg.norm(null @ g) < 1e-5 * np.linalg.norm(g)


def test_the_message_tells_of_later_tasks_that_are_missed(arm):
    target = arm.frame_pose(np.full(7, 0.3), "tool").translation
    first = reach.position("tool", target)
    found = reach(arm, [first, reach.position("flange", target, priority=2)])
    assert found.reached
    assert re.search("first priority are reached; after them are missed position of flange by", found.message)
    assert reach(arm, [first]).message == "all tasks are reached"


@pytest.mark.parametrize("second", ["orientation", "posture"])
@pytest.mark.parametrize("limits", [True, False])
def test_what_is_out_of_reach_is_missed_by_no_more_for_tasks_of_lower_priority(arm, second, limits):
    """The nearest point is that of the first task alone; the second has what freedom is left there."""
    directions = np.random.default_rng(3).normal(size=(6, 3))
    far = 2.0 * directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    first = reach.position("tool", far)
    other = (
        reach.orientation("tool", np.eye(3), priority=2)
        if second == "orientation"
        else reach.posture(np.full(7, 0.2), priority=2)
    )
    with pytest.warns(AlembertWarning, match="out of reach"):
        alone = al.reach(arm, [first], limits=limits)
    with pytest.warns(AlembertWarning, match="out of reach"):
        both = al.reach(arm, [first, other], limits=limits)
    more = both.errors["position of tool"] - alone.errors["position of tool"]
    assert np.max(more) < 1e-7  # at most |r_2| / R with R = 1e7; 4e-12 found
    if second == "posture":
        assert np.all(np.linalg.norm(both.q - 0.2, axis=-1) < np.linalg.norm(alone.q - 0.2, axis=-1))
    else:
        R = np.trace(arm.frame_pose(alone.q, "tool").rotation, axis1=-2, axis2=-1)
        assert np.all(both.errors["orientation of tool"] < np.arccos((R - 1) / 2))
    with pytest.warns(AlembertWarning, match="out of reach"):
        one = al.reach(arm, [reach.position("tool", far[0]), other], limits=limits)
    assert one.errors["position of tool"] < alone.errors["position of tool"][0] + 1e-7


def test_redundancy_goes_to_the_posture_and_to_the_middle(arm, poses):
    x = Pose(poses.rotation[0], poses.translation[0])
    rest = arm.random_configuration(np.random.default_rng(7))
    for preference, gradient in (
        (reach.posture(rest), lambda q: q - rest),
        (
            reach.centered(),
            lambda q: (
                (q - (arm.space.limits("lower") + arm.space.limits("upper")) / 2)
                / ((arm.space.limits("upper") - arm.space.limits("lower")) / 2) ** 2
            ),
        ),
    ):
        found = al.reach(arm, [reach.pose("tool", x), preference], limits=False, iterations=300)
        assert found.reached
        null = np.linalg.svd(arm.frame_jacobian(found.q, "tool"))[2][6:]
        assert np.linalg.norm(null @ gradient(found.q)) < 1e-5


def test_weights_share_what_cannot_be_done_together():
    """One revolute joint between two targets: the angle is the weighted mean of small ones."""
    model = planar(1)
    ends = [
        reach.position("tip", [np.cos(a), np.sin(a), 0.0], weight=w, name=f"{a}")
        for a, w in ((0.0, 3.0), (0.02, 1.0))
    ]
    with pytest.warns(AlembertWarning, match="out of reach"):
        found = al.reach(model, ends, start=[0.1], restarts=0)
    # of the squares of chords, 3 (1 - cos x) + (1 - cos(x - 0.02)): tan x = sin 0.02 / (3 + cos 0.02)
    np.testing.assert_allclose(found.q[0], np.arctan2(np.sin(0.02), 3 + np.cos(0.02)), atol=1e-8)


def test_loops_stay_closed_and_couplings_hold():
    model = four_bars(2)
    found = al.reach(model, [reach.custom(lambda q: q[0], 0.4, name="crank", unit="rad")])
    assert found.reached
    assert np.max(np.abs(model.constraint_residual(found.q))) <= DONE
    assert found.errors["loops and couplings"] <= DONE
    np.testing.assert_allclose(found.q[0], 0.4, atol=DONE)

    builder = al.ModelBuilder("geared")
    builder.body("a", al.Inertia.point(1.0, (0.5, 0, 0)), joint=al.Revolute((0, 0, 1)), joint_name="one")
    builder.body(
        "b",
        al.Inertia.point(1.0, (0.5, 0, 0)),
        parent="a",
        joint=al.Revolute((0, 0, 1)),
        joint_name="two",
        placement=(1.0, 0, 0),
    )
    builder.frame("tip", "b", (1.0, 0.0, 0.0))
    builder.coupling("gear", "two", ["one"], [2.0])
    geared = builder.build()
    found = al.reach(geared, [reach.distance("tip", 1.5)])
    assert found.reached
    np.testing.assert_allclose(found.q[1], 2 * found.q[0], atol=2 * DONE)
    np.testing.assert_allclose(2 + 2 * np.cos(found.q[1]), 1.5**2, atol=1e-8)


def test_a_free_body_and_its_limbs():
    """A floating tree keeps one end where it is, its centre of mass over a point, and moves another end."""
    model = library.random_tree(4, bodies=5, floating=True, kinds=["revolute", "spherical", "prismatic"])
    q0 = model.random_configuration(np.random.default_rng(1))
    one, other = model.bodies[-1].name, model.bodies[-2].name
    c = model.center_of_mass(q0)
    tasks = [
        reach.pose(one, model.frame_pose(q0, one)),
        reach.center_of_mass(np.add(c, [0.02, 0.01, 0.0]), axes="xy"),
        reach.position(other, np.add(model.frame_pose(q0, other).translation, [0.05, 0.0, 0.02]), priority=2),
        reach.posture(q0, priority=3),
    ]
    found = al.reach(model, tasks, start=q0, limits=False)
    assert found.reached, found.message
    model.check_configuration(found.q)
    np.testing.assert_allclose(model.center_of_mass(found.q)[:2], np.add(c[:2], [0.02, 0.01]), atol=DONE)
    X, X0 = model.frame_pose(found.q, one), model.frame_pose(q0, one)
    np.testing.assert_allclose(X.translation, X0.translation, atol=DONE)
    np.testing.assert_allclose(X.rotation, X0.rotation, atol=2 * DONE)


def test_pointing_from_the_opposite_direction():
    """Exactly backwards the rows vanish; the error does not, and other starts are tried."""
    model = planar(1)
    task = reach.point_at("rod0", [0.0, 2.0, 0.0], axis=(1.0, 0.0, 0.0))
    found = al.reach(model, [task], start=[-np.pi / 2])
    assert found.reached
    np.testing.assert_allclose(np.cos(found.q[0] - np.pi / 2), 1.0, atol=DONE)


def test_what_is_fixed_stays(arm, poses):
    x = poses.translation[5]
    start = arm.random_configuration(np.random.default_rng(0))
    found = al.reach(arm, {"tool": x}, start=start, fixed=["joint3", "joint5"])
    assert found.reached
    assert found.q[2] == start[2]
    assert found.q[4] == start[4]


def test_parameters_are_those_of_the_call():
    builder = al.ModelBuilder("telescope")
    length = builder.parameter("length", 1.0)
    builder.body("rod", al.Inertia.point(1.0), joint=al.Revolute((0, 0, 1)), joint_name="turn")
    builder.frame("tip", "rod", (length, 0.0, 0.0))
    model = builder.build()
    found = al.reach(model, {"tip": [0.0, 2.0, 0.0]}, parameters={"length": 2.0})
    np.testing.assert_allclose(found.q, [np.pi / 2], atol=1e-8)


def test_flexible_bodies_are_at_rest():
    """Modes stay as the start has them: only joints reach."""
    builder = al.ModelBuilder("boom")
    boom = al.flexible.beam(length=2.0, rhoA=1.2, EI_z=1.4e2, bending_y=2)
    builder.body("boom", boom, joint=al.Revolute((0, 0, 1)), joint_name="hub")
    builder.frame("tip", "boom", node="tip")
    model = builder.build()
    found = al.reach(model, {"tip": [0.0, 2.0, 0.0]})
    np.testing.assert_allclose(found.q, [np.pi / 2, 0.0, 0.0], atol=1e-8)
    bent = al.reach(model, [reach.position("tip", [0.0, 2.0, 0.0], axes="x")], start=[1.0, 0.1, 0.0])
    assert bent.reached
    assert bent.q[1] == 0.1


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({}, "expected tasks"),
        (3, "expected tasks"),
        ({"tool": [1.0, 2.0]}, r"target of the position of tool has shape \(2,\), expected \(..., 3\)"),
        ({"hand": [1.0, 2.0, 3.0]}, "hand"),
        ({"tool": [np.nan, 0, 0]}, "target of 'position of tool' is not finite"),
    ],
)
def test_messages_about_tasks(arm, tasks, message):
    with pytest.raises(ArgumentError, match=message):
        al.reach(arm, tasks)


def test_messages_about_options(arm):
    at = {"tool": [0.3, 0.2, 0.5]}
    for options, message in (
        ({"tolerance": 0}, "tolerance is 0, expected a positive number"),
        ({"iterations": 0}, "iterations is 0, expected a whole number from 1"),
        (
            {"restarts": -1, "start": np.zeros(7), "iterations": 1},
            "restarts is -1, expected a whole number from 0",
        ),
        ({"fixed": ["joint9"]}, "fixed: no joint or degree of freedom 'joint9'"),
        ({"fixed": [f"joint{k}" for k in range(1, 8)]}, "no joint is left to move"),
        ({"start": [0.0]}, r"start has shape \(1,\)"),
        ({"limits": 3}, "limits is 3, expected True, False or a pair"),
        ({"limits": (np.ones(7), np.zeros(7))}, "a lower bound is above"),
        ({"parameters": {"m": 1.0}}, "m"),
    ):
        with pytest.raises(ArgumentError, match=message):
            al.reach(arm, at, **options)
    with pytest.raises(ArgumentError, match="two tasks are called 'a'"):
        al.reach(arm, [reach.distance("tool", 0.5, name="a"), reach.distance("flange", 0.5, name="a")])
    for make, message in (
        (lambda: reach.position("tool", [0, 0, 0], axes="xw"), "axes is 'xw', expected some of 'xyz'"),
        (lambda: reach.position("tool", [0, 0, 0], weight=-1), "weight of 'position of tool' is -1"),
        (lambda: reach.position("tool", [0, 0, 0], priority=0), "priority of 'position of tool' is 0"),
        (lambda: reach.orientation("tool", 2 * np.eye(3)), "is no rotation"),
        (lambda: reach.orientation("tool", np.eye(2)), "expected"),
        (lambda: reach.pose("tool", np.eye(3)), r"expected a Pose or \(..., 4, 4\)"),
        (lambda: reach.point_at("tool", [0, 0, 1], axis=(0, 0, 0)), "expected a direction"),
        (lambda: reach.distance("tool", -1.0), "expected no negative length"),
        (lambda: reach.custom(3, name="x"), "needs a function of q"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()
    with pytest.raises(ArgumentError, match="gives 1 numbers, its target has 2"):
        al.reach(arm, [reach.custom(lambda q: q[0], [0, 1], name="x")])
    solve = reach.solver(arm, at)
    with pytest.raises(ArgumentError, match="got 2 targets for 1 tasks"):
        solve([0, 0, 0], [1, 1, 1])
    with pytest.raises(ArgumentError, match=r"has shape \(2,\), expected finite numbers \(..., 3\)"):
        solve([0, 0])


def test_limits_of_quaternions_are_refused():
    builder = al.ModelBuilder("ball")
    low, high = (-1.0,) * 7, (1.0,) * 7
    builder.body("ball", al.Inertia.point(1.0), joint=al.Free(), limits=al.Limits(low, high))
    model = builder.build()
    with pytest.raises(UnsupportedError, match="limits of the free joint"):
        al.reach(model, {"ball": [0.1, 0.2, 0.3]})
    assert al.reach(model, {"ball": [0.1, 0.2, 0.3]}, limits=False).reached
