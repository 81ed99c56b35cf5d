"""Waypoints, tables in rates, and least times that take patience."""

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import fsolve

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, duration, effort, running, table, through

CART = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
REST = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}


def test_through_a_point_at_a_given_time():
    """x'' = u through 0.8 at 1 s of 2 s: with (x, v) there, 6 x^2 - 6 x v + 2 v^2, and the same with 1 - x: v = 3/4."""
    motion = through(Problem(CART, 2.0, **REST), [{"x": 0.8}], times=[1.0]).solve(6)
    assert motion.success
    v = 0.75
    exact = 6 * 0.64 - 6 * 0.8 * v + 2 * v**2 + 6 * 0.04 - 6 * 0.2 * v + 2 * v**2
    assert motion.cost == pytest.approx(exact, rel=1e-8)
    assert motion["2"].state("v")[0] == pytest.approx(v, abs=1e-7)


def test_times_of_waypoints_are_found():
    """On the way of the best motion they cost nothing: u = 6/4 (1 - t) is at x = 0.5 after half the time."""
    motion = through(Problem(CART, 2.0, **REST), [{"x": 0.5}]).solve({"1": 6, "2": 8})
    assert motion.success
    assert motion.cost == pytest.approx(0.75, rel=1e-7)
    assert motion["1"].duration == pytest.approx(
        1.0, abs=1e-3
    )  # the minimum is flat: 1e-8 of the cost, its root
    free = through(Problem(CART, (0.5, 3.0), **REST, cost=effort() + duration()), [{"x": 0.2}, {"x": 0.7}])
    whole = Problem(CART, (0.5, 3.0), **REST, cost=effort() + duration()).solve(20)
    assert free.solve(6).cost == pytest.approx(whole.cost, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"waypoints": []}, ArgumentError, "expected conditions by name"),
        ({"waypoints": [{"x": 1}], "times": [3.0]}, ArgumentError, "expected 1 increasing times within 2 s"),
        ({"problem": 3, "waypoints": [{"x": 1}]}, ArgumentError, "expected a Problem"),
        (
            {"problem": Problem(CART, (1.0, 2.0)), "waypoints": [{}], "times": [1.0]},
            ArgumentError,
            "is found",
        ),
        (
            {"problem": Problem(CART, 2.0, periodic=True), "waypoints": [{}]},
            UnsupportedError,
            "state them as",
        ),
        (
            {"problem": Problem(CART, 2.0, limits={"rate": 4.0}), "waypoints": [{"x": 1}]},
            *(UnsupportedError, "limits of the rates of controls do not hold"),
        ),
        (
            {"problem": Problem(CART, 2.0, cost=running(lambda s: s.t * s.u**2)), "waypoints": [{}]},
            *(UnsupportedError, "depend on the time"),
        ),
    ],
)
def test_waypoints_that_are_refused(given, error, said):
    with pytest.raises(error, match=said):
        through(**{"problem": Problem(CART, 2.0)} | given)


def test_tables_are_the_splines_of_scipy():
    x = np.array([0.0, 0.5, 1.2, 2.0, 3.5])
    y = np.sin(x)
    at = np.linspace(0, 3.5, 41)
    s = ca.SX.sym("s")
    cubic, line = (ca.Function("f", [s], [table(x, y, kind=k)(s)]) for k in ("cubic", "linear"))
    np.testing.assert_allclose(cubic(at).full().ravel(), CubicSpline(x, y)(at), atol=1e-13)
    np.testing.assert_allclose(line(at).full().ravel(), np.interp(at, x, y), atol=1e-13)
    outside = cubic(np.array([-1.0, 9.0])).full().ravel()
    np.testing.assert_allclose(outside, y[[0, -1]], atol=1e-13)
    wide = np.logspace(-4, 4, 30)  # each interval is computed by itself: rounding of the values
    both = ca.Function("f", [s], [table(wide, np.log(wide))(s), ca.jacobian(table(wide, np.log(wide))(s), s)])
    at = np.concatenate([wide, wide[:-1] + np.diff(wide) / 3])
    found, slope = (part.full().ravel() for part in both(at[None]))
    spline = CubicSpline(wide, np.log(wide))
    np.testing.assert_allclose(found, spline(at), atol=1e-12)
    np.testing.assert_allclose(slope[1:29], spline(at[1:29], 1), rtol=1e-9)
    for given, said in (
        ((["a"], [1.0]), "are not numbers"),
        (([1.0], [1.0]), "from 2 to 200"),
        (([1.0, 1.0], [1.0, 2.0]), "x to increase"),
    ):
        with pytest.raises(ArgumentError, match=said):
            table(*given)
    with pytest.raises(ArgumentError, match="kind is 'square'"):
        table([0, 1], [0, 1], kind="square")


def test_a_table_in_a_rate():
    """Of a function that a cubic is, it is that function: x' = u - x^3."""
    knots = np.linspace(-2, 2, 9)
    power = table(knots, knots**3)
    found = [
        Problem(System(["x"], ["u"], rate), 1.0, start={"x": 0}, end={"x": 1}).solve(10).cost
        for rate in (lambda s: [s.u - power(s.x)], lambda s: [s.u - s.x**3])
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_least_time_of_an_oscillator_from_far_away(monkeypatch):
    """x'' = -x + u, |u| <= 1 from (3, 0): arcs about +-1, the middle one of half a turn. The straight guess leads to a
    motion that is too short, from where no step leads on."""

    def arrived(times):
        """Back from rest: arcs of times[1] with u = -1, pi with 1, times[0] with -1."""
        z = 0j
        for u, t in ((-1.0, times[1]), (1.0, np.pi), (-1.0, times[0])):
            z = u + (z - u) * np.exp(1j * t)  # x + i v turns the other way in time
        return [z.real - 3.0, z.imag]

    exact = np.pi + float(np.sum(fsolve(arrived, [0.5, 1.0])))
    swing = System(["x", "v"], ["u"], lambda s: [s.v, -s.x + s.u])
    ends = {"start": {"x": 3.0, "v": 0.0}, "end": {"x": 0, "v": 0}}
    problem = Problem(swing, (0.1, 20.0), **ends, limits={"u": 1.0}, cost=duration())
    limits = []
    plain = Problem.solve
    monkeypatch.setattr(
        Problem, "solve", lambda self, *a, **k: limits.append(k["time_limit"]) or plain(self, *a, **k)
    )
    solution = plain(problem, 50, time_limit=300.0)
    assert limits
    assert max(limits) < 300.0  # what the first attempt left
    assert solution.success
    assert "begun from the least effort in" in solution.message
    assert solution.cost == pytest.approx(exact, rel=1e-3)  # two switches within intervals of 2 % of the time
