"""Arcs of controls: at bounds, between them, singular."""

import numpy as np

from alembert.optimal import Problem, System, duration, effort, running


def settle(**more):
    """x' = u, |u| <= 1, from 1: least int x^2 over 2.5 s goes down in 1 s, and stays, where nothing but x asks for u = 0."""
    line = System(["x"], ["u"], lambda s: [s.u])
    given = {"limits": {"u": 1.0}, "cost": running(lambda s: s.x**2)} | more
    return Problem(line, 2.5, start={"x": 1}, **given)


def test_a_singular_arc_is_named():
    solution = settle().solve(20, transcription="rk4")
    first, second = solution.arcs
    assert (first.control, first.kind, first.start) == ("u", "lower", 0.0)
    assert (second.kind, second.end) == ("singular", 2.5)
    assert abs(second.start - 1.0) <= 2.5 / 20  # to an interval
    assert "u is singular from 1 to 2.5 s" in solution.diagnosis()


def test_its_beginning_is_put_on_the_mesh():
    """7 intervals have no node near 1 s; refined ones bring it to a thousandth of the duration, or to the accuracy."""
    solution = settle().solve(7, transcription="rk4", accuracy=1e-7)
    assert solution.success
    start = next(arc.start for arc in solution.arcs if arc.kind == "singular")
    assert abs(start - 1.0) < 0.02
    assert abs(solution.cost - 1 / 3) < 1e-6


def test_what_is_curved_is_not_singular():
    """With a cost on u the arc between the bounds is a regular one; controls without bounds have no arcs."""
    solution = settle(cost=running(lambda s: s.x**2) + effort(0.1)).solve(20, transcription="rk4")
    assert [arc.kind for arc in solution.arcs] == ["lower", "between"]
    assert str(solution.arcs[1]).startswith("u is between its bounds from")
    assert settle(limits=None, cost=effort()).solve(4).arcs == []


def test_switches_within_an_interval_are_no_arcs():
    cart = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"v": 0.3}}
    push = Problem(cart, 2.0, **ends, limits={"u": 1.0}, cost=running(lambda s: -s.v))
    solution = push.solve(10, transcription="rk4")
    assert [arc.kind for arc in solution.arcs] == ["upper", "lower"]
    np.testing.assert_allclose(solution.arcs[0].end, 1.15, atol=0.2)


def test_what_a_limit_of_a_state_decides_is_not_singular():
    """Least time over 3 m with |v| <= 1 and |u| <= 1: 1 s up, 2 s along the limit, 1 s down."""
    cart = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 3, "v": 0}}
    solution = Problem(cart, (0.5, 10.0), **ends, limits={"u": 1.0, "v": 1.0}, cost=duration()).solve(20)
    assert [arc.kind for arc in solution.arcs] == ["upper", "constrained", "lower"]
    assert "singular" not in solution.diagnosis()
