"""Linear problems as linear programs: HiGHS, against closed forms and the sweep in time."""

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from alembert.errors import UnsupportedError
from alembert.optimal import Phases, Problem, System, running, terminal

CART = System(["x", "v"], ["u"], lambda s: [s.v, s.u])


def furthest(**more):
    """As far as |u| <= 1 brings it in 2 s, with a speed of 1/2 at the end: u = 1 for 1.25 s, then -1."""
    return Problem(
        CART,
        2.0,
        start={"x": 0, "v": 0},
        end={"v": 0.5},
        limits={"u": 1.0, **more},
        cost=terminal(lambda s: -s.x),
    )


def test_a_vertex():
    """v rises to 1.25 and falls to 0.5: x = 1.25^2/2 + (1.25^2 - 0.5^2)/2 with the switch at a node of 8 intervals."""
    problem = furthest()
    solution = problem.solve(8, transcription="rk4", solver="highs")
    assert solution.success
    exact = 1.25**2 / 2 + (1.25**2 - 0.5**2) / 2
    assert -solution.cost == pytest.approx(exact, abs=1e-12)
    np.testing.assert_allclose(solution.controls[:, 0], [1, 1, 1, 1, 1, -1, -1, -1], atol=1e-12)
    # with the switch within an interval multipliers are unique
    solution, swept = (problem.solve(10, transcription="rk4", solver=solver) for solver in ("highs", "sweep"))
    assert swept.cost == pytest.approx(solution.cost, abs=1e-7)
    np.testing.assert_allclose(solution.costates, swept.costates, atol=1e-5)
    np.testing.assert_allclose(solution.multipliers["end v"], swept.multipliers["end v"], atol=1e-5)
    np.testing.assert_allclose(solution.multipliers["u"], swept.multipliers["u"], atol=1e-5)


def test_bounds_of_states_have_their_sign():
    """With v <= 1 the multiplier of the bound is what its relaxation brings."""
    found = [
        furthest(v=(-1.0, most)).solve(8, transcription="rk4", solver="highs") for most in (1.0, 1.0 + 1e-3)
    ]
    gain = found[0].cost - found[1].cost
    assert gain > 0
    assert 1e-3 * found[0].multipliers["v"].sum() == pytest.approx(gain, rel=1e-6)


def test_what_highs_does_not_take(monkeypatch):
    for problem, said in (
        (furthest().replace(cost=running(lambda s: s.u**2)), "the running cost is not linear"),
        (furthest().replace(duration=(1.0, 2.0)), "a free duration multiplies the rates"),
        (furthest().replace(path={"disc": (lambda s: s.x**2, -1, 1)}), "'disc' is not linear"),
        (furthest().replace(cost=terminal(lambda s: s.x**2)), "at an end is not linear"),
        (furthest().replace(plant=System(["x", "v"], ["u"], lambda s: [s.v, s.u * s.x])), "the motion of"),
        (
            Phases({"a": furthest(), "b": furthest()}, links={"b": {"x": None, "v": None}}),
            "takes no phases",
        ),
    ):
        with pytest.raises(UnsupportedError, match=said):
            problem.solve(4, transcription="rk4", solver="highs")
    given = []
    ended = OptimizeResult(status=1, x=None, nit=0, message="time limit reached")
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, options, **__: given.append(options) or ended)
    late = furthest().solve(4, transcription="rk4", solver="highs", time_limit=1e-9)
    monkeypatch.undo()
    assert given[0]["time_limit"] < 1e-3
    assert (late.status, late.success) == ("time", False)
    impossible = furthest().replace(end={"x": 9.0}).solve(4, transcription="rk4", solver="highs")
    assert impossible.status == "infeasible"
    assert "no feasible point" in impossible.message
    endless = furthest().replace(limits=None, end=None).solve(4, transcription="rk4", solver="highs")
    assert "unbounded" in endless.message
