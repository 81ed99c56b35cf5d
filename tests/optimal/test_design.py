"""Parameters that are found with the motion, integrals that are bounded, and what acts on models besides controls."""

import math

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import (
    Cases,
    Phases,
    Problem,
    System,
    duration,
    effort,
    lagrange_form,
    running,
    terminal,
)
from alembert.simulate import CentralGravity, SpringDamper

ENDS = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}


def cart(price=3.0, way=1.0, **more):
    """x'' = u/m from rest to rest in 1 s takes 6 m^2 way^2; light carts are dear: + price/m."""
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u / s.m], parameters={"m": 1.0})
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": way, "v": 0}}
    own = {"design": {"m": (0.1, 5.0)}, "cost": effort() + terminal(lambda s: price / s.m)}
    return Problem(system, 1.0, **ends, **own | more)


@pytest.mark.parametrize("solver", ["sweep", "ipopt"])
def test_the_best_mass(solver):
    """6 m^2 + 3/m is least at m^3 = 1/4. Hermite-Simpson is exact for this motion."""
    solution = cart().solve(8, solver=solver)
    best = 0.25 ** (1 / 3)
    assert solution.success
    assert solution.design == {"m": pytest.approx(best, rel=1e-6)}  # cost to 1e-8: a parabola to its root
    assert solution.cost == pytest.approx(6 * best**2 + 3 / best, rel=1e-8)
    assert solution.problem.parameter_values == solution.design
    assert solution.accuracy.worst < 1e-10  # with the mass that was found


def test_a_bound_of_the_design_holds_and_a_guess_brings_its_value():
    solution = cart(design={"m": (0.7, 5.0)}).solve(8)
    assert solution.design["m"] == pytest.approx(0.7, abs=1e-6)
    finer = cart(design={"m": (0.7, 5.0)}).solve(16, guess=solution)
    assert finer.design["m"] == pytest.approx(0.7, abs=1e-6)
    assert finer.iterations <= solution.iterations


def test_the_mass_of_a_model():
    """DMOC: its momenta are those of the mass that is found."""
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    mass = al.Inertia.point(builder.parameter("m", 1.0))
    builder.body("mass", mass, joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
    ends = {"start": {"q": [0], "v": 0}, "end": {"q": [1], "v": 0}}
    cost = effort() + terminal(lambda s: 3 / s.parameters[0])
    solution = Problem(builder.build(), 1.0, **ends, design={"m": (0.1, 5.0)}, cost=cost).solve(20)
    assert solution.success
    # controls held over intervals of h take 1/(1 - h^2) of the effort: m^3 = (1 - h^2)/4
    assert solution.design["m"] == pytest.approx(((1 - 1 / 400) / 4) ** (1 / 3), rel=1e-6)
    np.testing.assert_allclose(solution.momenta, solution.design["m"] * solution.v, atol=1e-12)


def test_cases_share_a_design():
    """Ways of 1 and of 2: 6 m^2 (1 + 4) + (1 + 3)/m, least at m^3 = 4/60."""
    cases = Cases({"short": cart(1.0, 1.0), "long": cart(3.0, 2.0)})
    found = cases.solve(6)
    assert found.success
    assert found.design == {"m": pytest.approx((4 / 60) ** (1 / 3), rel=1e-6)}
    assert found["long"].state("x")[-1] == pytest.approx(2.0)
    assert found["long"].state("x")[0] == pytest.approx(0.0)
    assert repr(cases) == "<Cases: short, long>"


def test_the_widest_bow_of_a_given_energy():
    """The largest int x with int u^2 = 1, x' = u, x(0) = x(1) = 0: x = sqrt(3) t (1 - t), 1/sqrt(12)."""
    bow = System(["x"], ["u"], lambda s: [s.u])
    for pair in ((-np.inf, 1.0), (1.0, 1.0)):
        energy = {"energy": (lambda s: s.u**2, *pair)}
        problem = Problem(
            bow, 1.0, start={"x": 0}, end={"x": 0}, integrals=energy, cost=running(lambda s: -s.x)
        )
        solution = problem.solve(8)
        assert solution.success
        assert solution.cost == pytest.approx(-1 / np.sqrt(12), rel=1e-6)
    halves = Phases(
        {"one": Problem(bow, 0.5, start={"x": 0}, integrals={"energy": (lambda s: s.u**2, 0.25, 0.25)})}
    )
    half = halves.solve(4)["one"].solution
    assert half.stages.x_names[-1] == "integral of energy"
    assert half.cost == pytest.approx(0.25 / 2, rel=1e-6)  # half of it is the effort


def slider(**more):
    builder = al.ModelBuilder("slider", gravity=(0, 0, -9.81))
    builder.body("mass", al.Inertia.point(2.0), joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
    builder.frame("wall", "world", (0, 0, 0))
    ends = {"start": {"q": [0], "v": 0}, "end": {"q": [1], "v": 0}}
    return Problem(builder.build(), 1.0, **ends, cost=effort(), **more)


def test_springs_act():
    """As in equations of one's own: 2 x'' = u - 8 x - x'."""
    spring = SpringDamper("wall", "mass", stiffness=8.0, damping=1.0)
    system = System(["x", "v"], ["u"], lambda s: [s.v, (s.u - 8 * s.x - s.v) / 2])
    mine = Problem(system, 1.0, **ENDS, cost=effort()).solve(20)
    ours = slider(forces=[spring]).solve(20, transcription="hermite-simpson")
    # the damper's direction is that of x, smoothed by 1e-12 m at x = 0
    assert ours.cost == pytest.approx(mine.cost, rel=1e-6)
    discrete = slider(forces=[spring]).solve(40)
    assert discrete.transcription == "dmoc"
    assert discrete.cost == pytest.approx(mine.cost, rel=3e-3)  # order 2: (1/40)^2 times a few
    assert slider(forces=spring).solve(20, transcription="hermite-simpson").cost == ours.cost


def test_another_gravity():
    """A vector replaces that of the model, a field acts by place: along x it is the slider's."""
    pulled = slider(gravity=(3.0, 0, 0)).solve(10, transcription="midpoint")
    field = slider(gravity=CentralGravity(3.0e12, (1e6, 0, 0), gradient=False)).solve(
        10, transcription="midpoint"
    )
    assert pulled.cost < slider().solve(10, transcription="midpoint").cost + 40
    assert pulled.cost == pytest.approx(field.cost, rel=1e-4)  # 1e6 m away it hardly changes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"design": {"k": (0, 1)}}, "design: no parameter 'k'"),
        ({"design": {"m": 3.0}}, r"design 'm' is 3.0, expected a pair \(lower, upper\)"),
        ({"design": {"m": "heavy"}}, r"design .m. is .heavy., expected numbers"),
        ({"design": ["m"]}, r"design is \['m'\], expected bounds of parameters by name"),
        ({"integrals": [1]}, r"integrals is \[1\], expected \(function, lower, upper\) by names"),
        ({"integrals": {"e": 1.0}}, "integral 'e' is 1.0, expected"),
        ({"forces": []}, "`forces` is for models"),
        ({"parameters": [1]}, r"Problem: parameters is \[1\], expected a dictionary by names"),
        (
            {"path": {"a": (lambda s: s.frame("tip").translation[0], 0, 1)}},
            "path 'a': this is a moment of a System",
        ),
    ],
)
def test_refused(given, said):
    with pytest.raises(ArgumentError, match=said):
        cart(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gravity": "down"}, "Problem: gravity is 'down', expected 3 numbers"),
        ({"gravity": (0, -9.81)}, "Problem: gravity has 2 entries, expected 3"),
        ({"forces": lambda t, q, v: 0}, "Problem: forces has <function .*, expected SpringDamper"),
        (
            {"path": {"a": (lambda s: s.q["slide"], 0, 1)}},
            r"path 'a': .* by name there are s.position\(joint\)",
        ),
    ],
)
def test_what_acts_on_a_model_and_is_refused(given, said):
    with pytest.raises(ArgumentError, match=said):
        slider(**given)


def test_numbers_of_a_system_that_are_none():
    for value in ("heavy", np.nan, None):
        with pytest.raises(ArgumentError, match=r"System: parameter 'm' is .*, expected a finite number"):
            System(["x"], ["u"], lambda s: [s.u / s.m], parameters={"m": value})


def test_refused_with_prescribed_joints_and_with_other_bounds():
    builder = al.ModelBuilder("arm")
    mass = al.Inertia.point(builder.parameter("m", 1.0), (1.0, 0, 0))
    builder.body("upper", mass, joint=al.Revolute((0, 0, 1)), joint_name="a")
    builder.body(
        "lower", mass, joint=al.Revolute((0, 0, 1)), joint_name="b", parent="upper", placement=(1, 0, 0)
    )
    with pytest.raises(UnsupportedError, match="design parameters are not found for models with loops"):
        Problem(builder.build(), 1.0, prescribed={"a": 0.0}, design={"m": (0.1, 2.0)})
    with pytest.raises(ArgumentError, match="it is shared, so its bounds are the same"):
        Cases({"one": cart(), "two": cart(design={"m": (0.2, 5.0)})})


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (lambda s: [1.0 if s.x > 0 else s.u], "the rate chooses by `if`, `max` or a comparison"),
        (lambda s: [max(s.x, s.u)], "fmax or fmin"),
        (
            lambda s: [s.u * math.sin(s.x)],
            "the rate has a NaN in it: functions of `math` and SciPy make numbers",
        ),
    ],
)
def test_rates_that_are_no_expressions(rate, said):
    with pytest.raises(ArgumentError, match=said):
        System(["x"], ["u"], rate)


def test_integrals_that_are_no_expressions():
    with pytest.raises(ArgumentError, match=r"integral 'e': .*casadi.if_else"):
        cart(integrals={"e": (lambda s: 1.0 if s.u > 0 else 0.0, 0.0, 1.0)})


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"forces": [SpringDamper("mass", "anchor", stiffness=2.0)]}, "forces"),
        ({"gravity": CentralGravity(1.0, (0, 0, -3))}, "gravity"),
        ({"integrals": {"work": (lambda s: s.tau[0] ** 2, 0.0, 9.0)}}, "integrals"),
    ],
)
def test_forms_that_know_nothing_else_refuse_it(given, name):
    """Splines and the form with multipliers would leave it out without a word."""
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 0, 1)))
    builder.frame("anchor", "world", (0, 1, 0))
    ends = {"start": {"q": [0], "v": 0}, "end": {"q": [1], "v": 0}}
    problem = Problem(builder.build(), 1.0, **ends, **given)
    with pytest.raises(UnsupportedError, match=rf"solve_splines does not take `{name}`"):
        problem.solve(10, transcription="splines", control_points=8)
    with pytest.raises(UnsupportedError, match=rf"lagrange_form does not take `{name}`"):
        lagrange_form(problem, 10)


def test_gains_without_controls():
    """x'' = -x - k x' for least int x^2 from (1, 0): (1 + k^2) / (2 k), least at k = 1 with the value 1; by every solver."""
    system = System(["x", "v"], [], lambda s: [s.v, -s.x - s.k * s.v], parameters={"k": 0.5})
    problem = Problem(
        system, 40.0, start={"x": 1, "v": 0}, design={"k": (0.1, 5)}, cost=running(lambda s: s.x**2)
    )
    for solver in ("sweep", "ipopt"):
        solution = problem.solve(80, transcription="radau", solver=solver)
        assert solution.success
        assert solution.design["k"] == pytest.approx(1.0, abs=1e-4)  # a flat minimum, solved to 1e-8
        assert solution.cost == pytest.approx(
            1.0, abs=1e-4
        )  # order 5 with steps of 0.5: 0.5^5 of what moves, over 5!
    exact = System(["x", "y"], [], lambda s: [-s.k * s.x, -s.y], parameters={"k": 0.5})
    off = running(lambda s: (s.x - s.y) ** 2)
    fit = Problem(exact, 2.0, start={"x": 1, "y": 1}, design={"k": (0.1, 5)}, cost=off).solve(10)
    assert fit.status == "solved"  # a cost of 1e-20 is none, and no error of the mesh
    assert fit.design["k"] == pytest.approx(1.0, abs=1e-6)
    free = al.ModelBuilder("fall", gravity=(0, 0, -10.0))
    free.body("stone", al.Inertia.point(1.0), joint=al.Prismatic((0, 0, 1.0)), joint_name="z")
    fall = Problem(
        *(free.build(), (0.1, 5.0)),
        start={"q": [5.0], "v": 0},
        end={"q": [0.0]},
        actuated=[],
        cost=duration(),
    )
    assert fall.solve(10).duration == pytest.approx(1.0, rel=1e-7)  # steps of DMOC are exact for a fall


def test_values_of_integrals():
    """x' = u from 0 to 1 in 1 s, u = 1: int u^2 = 1 and int x = 1/2; design and a free duration stand behind them."""
    system = System(["x"], ["u"], lambda s: [s.k * s.u], parameters={"k": 1.0})
    integrals = {"energy": (lambda s: s.u**2, 0, 9), "area": (lambda s: s.x, 0, 9)}
    ends = {"start": {"x": 0}, "end": {"x": 1}}
    fixed = Problem(system, 1.0, **ends, integrals=integrals)
    wanted = {"energy": pytest.approx(1.0, rel=1e-6), "area": pytest.approx(0.5, rel=1e-6)}
    assert fixed.solve(6).integrals == wanted
    free = fixed.replace(duration=(0.5, 1.0), design={"k": (0.5, 1.0)})  # both at their upper bounds
    assert free.solve(6).integrals == wanted
    assert fixed.replace(integrals=None).solve(6).integrals == {}
    phase = Phases({"one": fixed}).solve(6)["one"].solution
    assert phase.integrals == wanted


def test_slopes_along_inputs():
    """x from 0 to a in 1 s, J = a^2/2 + (x(1) - b)'(x(1) - b)/2 by each entry."""
    system = System(["x", "y"], ["u", "w"], lambda s: [s.u, s.w])
    cost = effort() + terminal(
        lambda s: (s.x - s.goal[0]) ** 2 / 2 + (s.y - s.goal[1]) ** 2 / 2 + 3 * s.price
    )
    problem = Problem(
        system, 1.0, start={"x": 0, "y": 0}, cost=cost, inputs={"goal": [1.0, 2.0], "price": 1.0}
    )
    slopes = problem.solve(6).sensitivities()  # J = goal^2 / 4
    assert slopes["goal"] == pytest.approx([0.5, 1.0], rel=1e-6)
    assert slopes["price"] == pytest.approx(3.0)
