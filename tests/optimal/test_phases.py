"""Phases that follow each other: dynamics, masses and speeds that change between them, and free durations."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Phases, Problem, System, effort, terminal


def slider():
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
    return builder.build()


def bounce(**more):
    """To a wall, from which half the speed comes back, and home; 1 s each."""
    model = slider()
    there = Problem(model, 1.0, start={"q": [0.0], "v": 0}, end={"q": [1.0]}, cost=effort())
    back = Problem(model, 1.0, end={"q": [0.0], "v": 0}, cost=effort())
    links = {"back": {"v slide": lambda s: -0.5 * s.v[0]}}
    return Phases({"there": there, "back": back}, links=links, **more)


@pytest.mark.parametrize("solver", ["sweep", "ipopt"])
def test_impact_with_restitution(solver):
    """With v at the wall the efforts cost 6 - 6 v + 2 v^2 and 6 - 3 v + v^2 / 2: least for v = 1.8. Controls are linear, for
    which the transcription is exact."""
    solution = bounce().solve(10, solver=solver)
    assert solution.success, solution.diagnosis()
    assert solution.cost == pytest.approx(3.9, rel=1e-8)
    there, back = solution["there"], solution["back"]
    assert there.v[-1, 0] == pytest.approx(1.8, abs=1e-6)
    assert back.v[0, 0] == pytest.approx(-0.9, abs=1e-6)
    assert back.q[0, 0] == pytest.approx(1.0, abs=1e-8)
    assert solution.duration == 2.0
    np.testing.assert_allclose(back.time[[0, -1]], [1.0, 2.0])
    assert there.control("slide").shape == (10,)


def test_rocket_that_drops_a_stage():
    """Full thrust all along: v = c1 ln(100/40) + c2 ln(32/10) - g T. Thrust is constant, mass linear in time; the rest is
    the error of steps of order 4 in 1/m."""
    g = 9.81

    def stage(c, most, **more):
        system = System(["h", "v", "m"], ["u"], lambda s: [s.v, s.u / s.m - g, -s.u / c])
        return Problem(system, (20.0, 400.0), limits={"u": (0, most)}, **more)

    first = stage(
        2600.0, 1.6e6, start={"h": 0, "v": 0, "m": 1e5}, end={"m": 4e4}, cost=terminal(lambda s: 0 * s.m)
    )
    second = stage(4200.0, 5e5, end={"m": 1e4}, cost=terminal(lambda s: -s.v))
    rocket = Phases({"first": first, "second": second}, links={"second": {"m": lambda s: s.m - 8e3}})
    guess = {
        "first": {"time": [0, 120], "x": [[0, 0, 1e5], [6e4, 1200, 4e4]], "controls": [[1.2e6], [1.2e6]]},
        "second": {"time": [0, 250], "x": [[6e4, 1200, 3.2e4], [4e5, 4000, 1e4]], "controls": [[4e5], [4e5]]},
    }
    solution = rocket.solve(20, guess=guess)
    assert solution.success, solution.diagnosis()
    assert -solution.cost == pytest.approx(4498.226304, rel=1e-6)
    assert solution["first"].duration == pytest.approx(97.5, rel=1e-6)
    assert solution["second"].duration == pytest.approx(184.8, rel=1e-6)
    assert solution["second"].state("m")[0] == pytest.approx(3.2e4, rel=1e-9)
    assert solution["second"].state("h")[-1] == pytest.approx(513811.044, rel=1e-5)


def test_a_solution_is_a_guess():
    phases = bounce()
    first = phases.solve(10)
    assert phases.solve(10, guess=first).iterations <= 1


def test_names_say_which_phase():
    phases = bounce()
    names = phases.problem.plant.states
    assert names == (
        *("there: q slide", "there: v slide", "back: q slide", "back: v slide"),
        *("link to back: q slide", "link to back: v slide"),
    )
    failed = phases.solve(10, iterations=0)
    assert not failed.success
    assert "back: v slide" in failed.diagnosis()


def test_what_is_refused():
    model = slider()
    one = Problem(model, 1.0, start={"q": [0.0], "v": 0})
    for phases, links, message in (
        ({}, None, "expected problems by name"),
        ({"a": model}, None, "'a' is a Model, expected a Problem for each phase"),
        ({"a": one, "b": one}, {"a": {}}, "no phase that follows another 'a'"),
        ({"a": one, "b": one}, {"b": {"q slip": None}}, "no state 'q slip'"),
        ({"a": one, "b": one}, {"b": {"q slide": 3.0}}, "expected a function of the moment at the end"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Phases(phases, links=links)
    free = Problem(al.library.satellite(), 1.0)
    with pytest.raises(UnsupportedError, match="joints whose coordinates do not add"):
        Phases({"a": free})
    with pytest.raises(UnsupportedError, match="'a' is periodic"):
        Phases({"a": Problem(model, 1.0, periodic=True)})
    rated = Problem(model, (1.0, 2.0), start={"q": [0.0], "v": 0}, limits={"rate": 1.0})
    with pytest.raises(UnsupportedError, match="limits the rate of 'slide' and has a free duration"):
        Phases({"a": rated})
    phases = bounce()
    with pytest.raises(ArgumentError, match="expected guesses by phase"):
        phases.solve(10, guess=3)
    with pytest.raises(ArgumentError, match="the guess has no phase 'up'"):
        phases.solve(10, guess={"up": None})
    solution = phases.solve(10)
    with pytest.raises(ArgumentError, match="there is no phase 'up'"):
        solution["up"]
    with pytest.raises(ArgumentError, match="this phase has no state 'q slip'"):
        solution["back"].state("q slip")
    line = Problem(System(["x"], [], lambda s: [s.x]), 1.0, start={"x": 1})
    with pytest.raises(ArgumentError, match="the system has no controls"):
        line.solve(5)
    coast = Phases({"a": Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, start={"x": 0}), "b": line})
    with pytest.raises(UnsupportedError, match="no q and v"):
        coast.solve(5)["a"].q
