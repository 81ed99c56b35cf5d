"""Waypoints, tables in rates, and least times that take patience."""

import re

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, RectBivariateSpline, RegularGridInterpolator
from scipy.optimize import fsolve

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, duration, effort, running, table, through
from alembert.simulate import ForceElement

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
        (([1.0], [1.0]), "expected from 2 to 200 points for each axis"),
        ((([0, 1], [0, 1, 2]), np.zeros((3, 2))), r"y \(3, 2\), expected .* of the grid \(2, 3\)"),
        ((([0, 1], [0, 2, 1]), np.zeros((2, 3))), "x to increase"),
        (([1.0, 1.0], [1.0, 2.0]), "x to increase"),
    ):
        with pytest.raises(ArgumentError, match=said):
            table(*given)
    with pytest.raises(ArgumentError, match="kind is 'square'"):
        table([0, 1], [0, 1], kind="square")


def test_tables_that_go_on_straight():
    """As steep as at their ends: values and slopes have no step there, along each axis."""
    x, s = np.array([0.0, 0.5, 1.2, 2.0, 3.5]), ca.SX.sym("s")
    spline = CubicSpline(x, np.sin(x))
    y = table(x, np.sin(x), beyond="slope")(s)
    both = ca.Function("f", [s], [y, ca.jacobian(y, s)])
    at = np.array([-2.0, 0.0, 1.0, 3.5, 5.0])
    ends = np.clip(at, 0, 3.5)
    found, slopes = (part.full().ravel() for part in both(at[None]))
    np.testing.assert_allclose(found, spline(ends) + spline(ends, 1) * (at - ends), atol=1e-13)
    np.testing.assert_allclose(slopes[[0, 2, 4]], spline(ends[[0, 2, 4]], 1), atol=1e-12)
    two = table((x, x), np.outer(x, 2 * x), kind="linear", beyond="slope")(s, s)
    np.testing.assert_allclose(ca.Function("f", [s], [two])(at[None]).full().ravel(), 2 * at**2, atol=1e-12)
    with pytest.raises(ArgumentError, match="beyond is 'nan', expected 'value' or 'slope'"):
        table([0, 1], [0, 1], beyond="nan")


def test_iterations_that_go_round_the_end_of_a_table():
    """Income grows with x up to 1, where the table ends: the best motion stays at that edge, where nothing has a slope."""
    system = System(["x"], ["u"], lambda s: [s.u])

    def stay(beyond):
        income = table([-9.0, -3.0, 0.0, 1.0], [-9.0, -3.0, 0.0, 1.0], beyond=beyond)
        cost = running(lambda s: 0.02 * s.u**2 - income(s.x) + 0.4 * s.x)
        return Problem(system, 4.0, start={"x": 0}, cost=cost).solve(20, transcription="radau", iterations=60)

    lost = stay("value")
    assert not lost.success
    assert (
        "the running cost: has edges (if_else, abs, min, max, a table), round which iterations may go"
        in lost.message
    )
    assert abs(lost.x[5:15, 0] - 1).max() < 0.2
    found = stay("slope")
    assert found.success
    assert found.iterations < 10  # the cost is quadratic
    # 0.04 u' = -0.6, u(4) = 0: x = 15 (4 t - t^2 / 2)
    np.testing.assert_allclose(found.x[:, 0], 15 * (4 * found.time - found.time**2 / 2), atol=1e-6)


def test_tables_of_two_arguments():
    """Values and slopes are those of FITPACK's bivariate spline, on a square grid too; three axes of a broken line."""
    draw = np.random.default_rng(3)
    grid = [np.sort(draw.uniform(-1, 3, 5)) for _ in range(2)]
    values = draw.normal(size=(5, 5))
    s = ca.SX.sym("s", 3)
    y = table(grid, values)(s[0], s[1])
    both = ca.Function("f", [s], [y, ca.jacobian(y, s)])
    at = np.array([draw.uniform(axis[0], axis[-1], 40) for axis in (*grid, [0.0, 1.0])])
    found, slopes = (
        np.array(part).reshape(40, -1) for part in zip(*(map(np.array, both(p)) for p in at.T), strict=True)
    )
    spline = RectBivariateSpline(*grid, values, s=0)
    np.testing.assert_allclose(
        found[:, 0], spline.ev(*at[:2]), atol=1e-12
    )  # sums of 25 terms of size 1 to 100
    np.testing.assert_allclose(slopes[:, 0], spline.ev(*at[:2], dx=1), atol=1e-11)
    np.testing.assert_allclose(slopes[:, 1], spline.ev(*at[:2], dy=1), atol=1e-11)
    more = np.stack([values, 2 * values, -values], axis=2)
    line = ca.Function("f", [s], [table([*grid, [0, 0.4, 1]], more, kind="linear")(*ca.vertsplit(s))])
    other = RegularGridInterpolator([*grid, [0, 0.4, 1]], more)
    np.testing.assert_allclose([float(line(p)) for p in at.T], other(at.T), atol=1e-13)
    corner = both([-9.0, 9.0, 0])[0]
    assert float(corner) == pytest.approx(values[0, -1], abs=1e-12)  # outside
    with pytest.raises(ArgumentError, match="called with 1 arguments, expected 2"):
        table(grid, values)(s[0])
    spline = ca.interpolant("spline", "bspline", [[0, 1, 2, 3]], [0, 1, 4, 9])
    with pytest.raises(ArgumentError, match=r"no expression, as interpolants are; write al.optimal.table"):
        System(["x"], ["u"], lambda s: [s.u - spline(s.x)])


def test_tables_in_rates_forces_and_paths():
    """Of polynomials that a cubic is, they are these polynomials: x' = v, v' = u - x^3 v, with a bound on x v; the same
    of a mass on a rail."""
    knots = np.linspace(-3, 3, 4)
    X, V = np.meshgrid(knots, knots, indexing="ij")
    drag, power = table((knots, knots), X**3 * V), table((knots, knots), X * V)
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    costs = []
    for force, product in ((drag, power), (lambda x, v: x**3 * v, lambda x, v: x * v)):
        system = System(["x", "v"], ["u"], lambda s, force=force: [s.v, s.u - force(s.x, s.v)])
        path = {"power": (lambda s, product=product: product(s.x, s.v), -10, 0.6)}
        costs.append(Problem(system, 1.0, **ends, path=path).solve(10, tolerance=1e-10).cost)
    assert costs[0] == pytest.approx(
        costs[1], rel=1e-9
    )  # both solved to 1e-10, of the same functions to rounding
    builder = al.ModelBuilder("rail", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1.0, 0, 0)), joint_name="x")
    chosen = ForceElement("mass", wrenches=lambda t, X, V: [0, 0, 0, 1 if V[0][3] > 0 else 0, 0, 0])
    with pytest.raises(ArgumentError, match=r"'force': wrenches: .* for a choice write casadi.if_else"):
        Problem(builder.build(), 1.0, forces=chosen).solve(4)
    resistance = ForceElement(
        "mass", wrenches=lambda t, X, V: ca.vertcat(0, 0, 0, -drag(X[0].translation[0], V[0][3]), 0, 0)
    )
    ends = {"start": {"q": [0], "v": 0}, "end": {"q": [1], "v": 0}}
    path = {"power": (lambda s: power(s.q[0], s.v[0]), -10, 0.6)}
    model = Problem(builder.build(), 1.0, **ends, forces=resistance, path=path)
    found = model.solve(
        10, transcription="hermite-simpson", tolerance=1e-10
    )  # what is left of barriers has other units
    assert found.cost == pytest.approx(costs[0], rel=1e-9)


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


def test_what_is_of_a_phase_is_looked_for_there():
    ends = {"start": {"q": 0, "v": 0}, "end": {"q": [1, 0], "v": 0}}
    solution = through(Problem(al.library.two_link(), 2.0, **ends), [{"q": [0.5, 1.0]}]).solve(10)
    first = next(iter(solution.phases.phases))
    for name, place in (
        ("time", f"solution[{first!r}].time"),
        ("costates", f"solution[{first!r}].solution.costates"),
    ):
        with pytest.raises(
            AttributeError, match=re.escape(f"{name} is that of a phase: {place}; phases are")
        ):
            getattr(solution, name)
    with pytest.raises(AttributeError, match="'PhasesSolution' object has no attribute 'colour'"):
        solution.colour
