"""Two surfaces that touch: against distances between centres, offset surfaces and the closed form of a pendulum."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ModelError
from alembert.simulate import simulate
from alembert.spatial import Pose

G = 9.81


def ball(r):
    return (f"{r} * cos(u) * cos(w)", f"{r} * sin(u) * cos(w)", f"{r} * sin(w)")


POLE = 1.4  # of the sampled part: at the poles of a ball its parameters are singular


def rolling(pair, name="free", inertia=None):
    """A body that may be anywhere, held by a pair to the world."""
    builder = al.ModelBuilder(name, gravity=(0, 0, -G))
    builder.body("b", inertia or al.Inertia.box(0.7, (0.2, 0.3, 0.4)), joint=al.Free(), joint_name="at")
    builder.loop("touch", pair, "world", "b")
    return builder.build()


def test_two_balls_are_a_distance():
    """The centres of balls stay apart by the sum of the radii: forces and accelerations are those of a rod."""
    corners = {
        "start_a": (-np.pi, -POLE),
        "end_a": (np.pi, POLE),
        "start_b": (-np.pi, -POLE),
        "end_b": (np.pi, POLE),
    }
    m = rolling(al.TouchingSurfaces(ball(1.0), ball(0.4), **corners, samples=8))
    rod = rolling(al.Distance(1.4), "rod")
    rng = np.random.default_rng(3)
    for _ in range(4):
        n = rng.normal(size=3) * [1, 1, 0.4]
        q = m.neutral()
        turn = rng.normal(size=4)
        q[:3], q[3:7] = 1.4 * n / np.linalg.norm(n), turn / np.linalg.norm(turn)
        assert np.abs(m.constraint_residual(q)).max() < 1e-14
        v = rod.project(q, rng.normal(size=6)).v
        tau = rng.normal(size=6)
        a, b = (x.constrained_dynamics(q, v, tau) for x in (m, rod))
        np.testing.assert_allclose(a.accelerations, b.accelerations, rtol=0, atol=1e-9)
        # the force is that of the rod; on the ball it acts where it touches, so that it has no moment about the centre
        np.testing.assert_allclose(a.reactions["touch"][3:], b.reactions["touch"][3:], rtol=0, atol=1e-9)
        np.testing.assert_allclose(a.reactions["touch"][:3], 0, atol=1e-9)


def test_rows_are_the_derivative_of_the_residual():
    """An egg on a saddle that is not flat: where they touch, d phi = rows V for every motion."""
    pair = al.TouchingSurfaces(
        ("u", "w", "0.1 * u**2 - 0.2 * w**2 + 0.05 * u * w"),
        ("0.5 * cos(u) * cos(w)", "0.4 * sin(u) * cos(w)", "0.3 * sin(w)"),
        (-2.0, -2.0),
        (2.0, 2.0),
        (-np.pi, -POLE),
        (np.pi, POLE),
        samples=9,
    )
    m = rolling(pair)
    q = m.assemble(np.array([0.3, -0.2, 0.4, 0.9, 0.3, 0.2, np.sqrt(1 - 0.81 - 0.09 - 0.04)])).q
    assert np.abs(m.constraint_residual(q)).max() < 1e-13
    row, h = m.constraint_jacobian(q)[0], 1e-4
    for k in range(6):
        d = np.eye(6)[k] * h
        ahead, back = (m.constraint_residual(m.integrate(q, x))[0] for x in (d, -d))
        np.testing.assert_allclose(
            (ahead - back) / (2 * h), row[k], rtol=0, atol=1e-6
        )  # h^2 times curvatures


def test_a_ball_in_a_trough_swings_like_a_pendulum():
    """A small ball that slides without turning in a trough of radius R: a pendulum of length R - r."""
    R, r = 1.0, 0.25
    trough = ("u", f"{R} * sin(w)", f"-{R} * cos(w)")
    pair = al.TouchingSurfaces(trough, ball(r), (-1.0, -1.5), (1.0, 1.5), (-np.pi, -POLE), (np.pi, POLE), 8)
    builder = al.ModelBuilder("ball", gravity=(0, 0, -G))
    builder.body("b", al.Inertia.point(0.7, (0, 0, 0)), joint=al.Translational(), joint_name="at")
    # the frame is turned so that the ball touches near its equator
    builder.frame("skin", "b", al.Placement.from_rpy((0.0, np.pi / 2, 0.0)))
    builder.loop("touch", pair, "world", "skin")
    m = builder.build()
    start = 0.8
    q = np.array([0.0, (R - r) * np.sin(start), -(R - r) * np.cos(start)])
    run = simulate(m, q, duration=2.0, tolerance=1e-10, interval=0.1)
    like = simulate(
        al.library.pendulum(length=R - r),
        [start],
        duration=2.0,
        tolerance=1e-12,
        interval=0.1,
        integrator="dop853",
    )
    np.testing.assert_allclose(np.arctan2(run.q[:, 1], -run.q[:, 2]), like.q[:, 0], atol=1e-7)
    assert np.abs(run.q[:, 0]).max() < 1e-9
    where = pair.contact(m.frame_pose(run.q[5], "skin"))
    assert np.linalg.norm(where[:3]) == pytest.approx(r)
    assert np.linalg.norm(where[3:]) == pytest.approx(1)


def test_in_files_and_messages(tmp_path):
    m = rolling(al.TouchingSurfaces(("u", "w", "0"), ball(0.3)))
    al.save(m, tmp_path / "m.toml")
    assert al.load(tmp_path / "m.toml") == m
    with pytest.raises(ModelError, match="parametric surface has 2 formulas"):
        al.TouchingSurfaces(("u", "w"), ball(0.3))
    with pytest.raises(ModelError, match="samples is 0"):
        al.TouchingSurfaces(("u", "w", "0"), ball(0.3), samples=0)
    plane = al.TouchingSurfaces(("u", "w", "0"), ball(0.3))
    assert plane.residual(Pose(np.eye(3)[[0, 2, 1]] * [1, -1, 1], np.array([0.1, 0.2, 0.35])))[
        0
    ] == pytest.approx(0.05)
