"""Drives for a prescribed tip: what is planned is what flies, early action as the linear inversion has it, refusals."""

import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam, invert_motion, stable_inversion


def smooth(s):
    """From 0 to 1, with three derivatives at rest."""
    s = np.clip(s, 0.0, 1.0)
    return 35 * s**4 - 84 * s**5 + 70 * s**6 - 20 * s**7


@pytest.fixture(scope="module")
def arm():
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    hub = al.Inertia(1.0, (0, 0, 0), (0.1, 0, 0.1, 0, 0, 0.1))
    builder.body("hub", hub, joint=al.Revolute((0, 0, 1)), joint_name="hub")
    boom = beam(1.0, 1.0, EI_z=5.0, bending_y=2, damping=(0.0, 1e-4))
    builder.body("boom", boom, joint=al.Fixed(), parent="hub")
    builder.frame("tip", "boom", node="tip")
    return builder.build()


def test_the_tip_flies_as_planned(arm):
    """Over an angle of more than a radian; the torque alone, joined by lines, brings the tip along."""
    t = np.linspace(0.0, 1.5, 151)
    plan = invert_motion(arm, ["tip.y"], t, np.sin(1.2 * smooth(t / 1.5)), before=0.8, after=0.8)
    assert plan.lead > 0.05  # it begins early
    np.testing.assert_allclose(plan.efforts[:, 1:], 0.0)
    table = al.simulate.Table(plan.t - plan.t[0], plan.efforts[:, 0])
    span = float(plan.t[-1] - plan.t[0])
    run = al.simulate(arm, plan.q[0], duration=span, efforts={"hub": table}, interval=0.1, tolerance=1e-9)
    tip = run.channel("frame:tip.position").values[:, 1]
    wanted = np.sin(1.2 * smooth((run.time + plan.t[0]) / 1.5))
    # torques of 1.5 N m with fourth derivatives of the motion, on lines of 0.01 s: 1e-4 of the way
    assert np.abs(tip - wanted).max() < 2e-4
    assert np.abs(run.v[-1]).max() < 2e-3  # nothing is left


def test_small_motion_is_that_of_the_linear_inversion(arm):
    t = np.linspace(0.0, 1.0, 201)
    s, dt = t, t[1] - t[0]
    size = 1e-3
    second = size * (420 * s**2 - 1680 * s**3 + 2100 * s**4 - 840 * s**5)
    G = al.linearize(arm, arm.neutral(), inputs=["hub"], outputs=["frame:tip.position"]).to_statespace()
    linear = stable_inversion(type(G)(G.A, G.B, G.C[[1]], G.D[[1]]), t, second, before=1.0, after=1.0)
    plan = invert_motion(arm, ["tip.y"], t, size * smooth(t), before=1.0, after=1.0)
    at = np.abs(plan.t[:, None] - linear.t).argmin(axis=1)
    assert np.abs(linear.t[at] - plan.t).max() < 1e-9
    # differences of order four: (w dt)^4 / 30 of parts of up to 100 rad/s, and the window of the transform
    np.testing.assert_allclose(
        plan.efforts[:, 0], linear.u[at, 0], atol=(100 * dt) ** 4 * np.abs(linear.u).max()
    )


def test_a_tip_that_stays_is_held(arm):
    """Nothing moves and nothing drives, also where the constant has the rounding of a computation."""
    t = np.linspace(0.0, 0.5, 26)
    for wanted in (np.full(26, 0.3), 0.3 + 1e-16 * np.arange(26), np.zeros(26)):
        plan = invert_motion(arm, ["tip.y"], t, wanted, before=0.1, after=0.1)
        assert plan.lead == 0.0
        assert np.all(plan.v == 0)
        assert (
            np.abs(plan.efforts).max() < 1e-9
        )  # rounding of the guess at rest, times stiffnesses of some 1e3
        assert np.sin(plan.q[-1, 0]) == pytest.approx(wanted[0], abs=1e-9)


def test_two_links_under_weight():
    """Two outputs and two drives; at both ends the drives hold the weight of a bent arm."""
    builder = al.ModelBuilder("arm", gravity=(0, -9.81, 0))
    link = beam(0.5, 0.6, EI_z=8.0, bending_y=1, damping=(0.0, 1e-4))
    builder.body("upper", link, joint=al.Revolute((0, 0, 1)), joint_name="shoulder")
    builder.body("lower", link, joint=al.Revolute((0, 0, 1)), joint_name="elbow", parent="upper", node="tip")
    builder.frame("hand", "lower", node="tip")
    model = builder.build()
    t = np.linspace(0.0, 1.0, 81)
    way = 0.6 + 0.2 * smooth(t)[:, None] * [0.5, -2.0]
    guess = model.configuration({"shoulder": 1.2, "elbow": -0.8})
    plan = invert_motion(model, ["hand.x", "hand.y"], t, way, q=guess, before=0.5, after=0.5)
    places = model.frame_pose(plan.q, "hand").translation[:, :2]
    np.testing.assert_allclose(places[40:121], way, atol=1e-9)
    tau = model.inverse_dynamics(plan.q, plan.v, plan.a)
    modes = [model.v_slice(n).start for n in ("shoulder", "elbow")]
    np.testing.assert_allclose(np.delete(tau, modes, axis=1)[1:-1], 0.0, atol=1e-8)
    for k in (0, -1):  # at rest
        held = model.inverse_dynamics(plan.q[k], np.zeros(4), np.zeros(4))
        np.testing.assert_allclose(plan.efforts[k], held, atol=1e-2)


def test_messages(arm, monkeypatch):
    t = np.linspace(0.0, 1.0, 51)
    y = 0.1 * smooth(t)
    for call, error, message in (
        (lambda: invert_motion(arm, ["tip"], t, y), al.ArgumentError, "expected FRAME.x, FRAME.y or FRAME.z"),
        (lambda: invert_motion(arm, ["tip.y"], t, y, drives=["hip"]), al.ArgumentError, "no joint 'hip'"),
        (
            lambda: invert_motion(arm, ["tip.y"], t, y, drives=[]),
            al.ArgumentError,
            "as many drives as outputs",
        ),
        (lambda: invert_motion(arm, ["tip.y"], t**2, y), al.ArgumentError, "equally spaced times"),
        (lambda: invert_motion(arm, ["tip.y"], t, 3 + y), al.NumericalError, "they may be out of reach"),
        (
            lambda: invert_motion(arm, ["tip.z"], t, y),
            al.NumericalError,
            "they may be out of reach",
        ),  # across the plane
        (
            lambda: invert_motion(arm, ["tip.y"], t, np.nan * y),
            al.ArgumentError,
            "wanted has entries that are not finite",
        ),
        (lambda: invert_motion(arm, ["tip.y"], t, y, before=0.0), al.NumericalError, "have not died out"),
        (
            lambda: invert_motion(arm, ["tip.y"], t, y, after=-1.0),
            al.ArgumentError,
            "after is -1.0, expected",
        ),
    ):
        with pytest.raises(error, match=message):
            call()
    ball = al.ModelBuilder("ball")
    ball.body("ball", al.Inertia.sphere(1.0, 0.1), joint=al.Free())
    with pytest.raises(al.UnsupportedError, match="coordinates do not add"):
        invert_motion(ball.build(), ["ball.x"], t, y)
    builder = al.ModelBuilder("loop")
    builder.body("rod", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.loop("held", al.Fixed(), "rod", "world")
    with pytest.raises(al.UnsupportedError, match="open the loops"):
        invert_motion(builder.build(), ["rod.x"], t, y)
    monkeypatch.setattr("alembert.flexible.motion_inversion._TIGHT", -1.0)
    with pytest.raises(al.NumericalError, match="Newton's method did not end; its last step was"):
        invert_motion(arm, ["tip.y"], t, y)
