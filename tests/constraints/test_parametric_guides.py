"""Points on curves and surfaces that are given by functions of parameters."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ModelError
from alembert.simulate import simulate

G = 9.81


def bead(pair, name="bead"):
    """A point mass that can be anywhere, held by a pair to the world."""
    builder = al.ModelBuilder(name, gravity=(0, 0, -G))
    builder.body("bead", al.Inertia.point(0.5, (0, 0, 0)), joint=al.Translational(), joint_name="at")
    builder.loop("guide", pair, "world", "bead")
    return builder.build()


def test_cycloid():
    """Huygens' tautochrone: along x = r (s + sin s), z = r (1 - cos s) the arc 4 r sin(s/2) swings harmonically."""
    r, s0 = 0.4, 1.9
    m = bead(al.PointOnParametricCurve((f"{r} * (s + sin(s))", "0", f"{r} * (1 - cos(s))"), -3.0, 3.0))
    q0 = np.array([r * (s0 + np.sin(s0)), 0.0, r * (1 - np.cos(s0))])
    assert np.abs(m.constraint_residual(q0)).max() < 1e-15
    omega = np.sqrt(G / (4 * r))
    run = simulate(m, q0, duration=2 * np.pi / omega, tolerance=1e-11, interval=np.pi / omega / 20)
    s = 2 * np.arcsin(np.sin(s0 / 2) * np.cos(omega * run.time))
    expected = np.stack([r * (s + np.sin(s)), 0 * s, r * (1 - np.cos(s))], axis=-1)
    np.testing.assert_allclose(run.q, expected, rtol=0, atol=1e-8)  # tolerance times a period
    assert run.report.constraint_error < 1e-12
    # the curve only pushes across: no power
    force = m.constrained_dynamics(run.q[7], run.v[7], np.zeros(3)).reactions["guide"][3:]
    assert abs(force @ run.v[7]) < 1e-9


def test_helix_like_the_implicit_one():
    helix = bead(al.PointOnParametricCurve(("cos(s)", "sin(s)", "0.5 * s"), -6.0, 6.0, 64))
    other = bead(al.PointOnCurve(("x - cos(2 * z)", "y - sin(2 * z)")))
    for s in (-4.0, 0.3, 2.9, 5.9):
        q = np.array([np.cos(s), np.sin(s), 0.5 * s])
        v = 1.7 * np.array([-np.sin(s), np.cos(s), 0.5])
        tau = np.array([0.3, -0.2, 0.5])
        a, b = (m.constrained_dynamics(q, v, tau) for m in (helix, other))
        np.testing.assert_allclose(a.accelerations, b.accelerations, rtol=0, atol=1e-11)
        np.testing.assert_allclose(a.reactions["guide"], b.reactions["guide"], rtol=0, atol=1e-11)
        d, e = (m.constrained_dynamics_derivatives(q, v, tau) for m in (helix, other))
        t = v / np.linalg.norm(v)
        # along the curve: what else the rows say off it is another matter
        turn = 1.7 * np.array([-np.cos(s), -np.sin(s), 0]) / np.sqrt(1.25)
        np.testing.assert_allclose(d.dq @ t + d.dv @ turn, e.dq @ t + e.dv @ turn, rtol=0, atol=1e-8)
    state = helix.assemble([0.9, 0.5, 0.3], [1.0, 0.0, 0.0])
    assert state.residual < 1e-14


def test_torus_like_the_implicit_one():
    torus = bead(
        al.PointOnParametricSurface(
            ("(1 + 0.3 * cos(u)) * cos(w)", "(1 + 0.3 * cos(u)) * sin(w)", "0.3 * sin(u)")
        )
    )
    other = bead(al.PointOnSurface("sqrt((sqrt(x**2 + y**2) - 1)**2 + z**2) - 0.3"))
    for u, w in ((0.4, 1.0), (2.8, -2.5), (-1.0, 3.1)):
        ring = 1 + 0.3 * np.cos(u)
        q = np.array([ring * np.cos(w), ring * np.sin(w), 0.3 * np.sin(u)])
        v = torus.assemble(q, [0.7, -0.4, 0.9]).v
        a, b = (m.constrained_dynamics(q, v, np.zeros(3)) for m in (torus, other))
        np.testing.assert_allclose(a.accelerations, b.accelerations, rtol=0, atol=1e-10)
        np.testing.assert_allclose(a.reactions["guide"], b.reactions["guide"], rtol=0, atol=1e-10)


def test_in_files(tmp_path):
    m = bead(al.PointOnParametricSurface(("u", "w", "u * w"), (-1.0, -2.0), (1.0, 2.0), 5))
    al.save(m, tmp_path / "bead.toml")
    assert al.load(tmp_path / "bead.toml") == m


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: al.PointOnParametricCurve(("s", "0")), r"curve has 2 formulas, expected x, y and z as functions of s$"),
        (lambda: al.PointOnParametricCurve(("s", "x", "0")), r"curve: 'x' has 'x'; it may hold s alone$"),
        (lambda: al.PointOnParametricCurve(("s", "0", "0"), 1.0, -1.0), r"start 1.0 is not below end -1.0$"),
        (lambda: al.PointOnParametricCurve(("s", "0", "0"), np.inf), r"start is inf, expected 1 finite number"),
        (lambda: al.PointOnParametricCurve(("s", "0", "0"), samples=1), r"samples is 1, expected a whole number"),
        (lambda: al.PointOnParametricCurve(("1", "0", "0")), r"its formulas do not depend on s"),
        (lambda: al.PointOnParametricSurface(("u", "u", "0")), r"its formulas do not depend on u and w"),
    ],
)  # fmt: skip
def test_messages(make, match):
    with pytest.raises(ModelError, match=match):
        make()
