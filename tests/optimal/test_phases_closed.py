"""Loops and prescribed joints in phases: those that stay, those that close or open between phases."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import UnsupportedError
from alembert.optimal import Phases, Problem, System, impact, same_bodies
from alembert.optimal.consistency import independent
from alembert.verify.mechanisms import four_bars, parallelogram

Z = (0.0, 0.0, 1.0)
SINGLE = System(["q", "w"], ["tau"], lambda s: [s.w, (s.tau + 2 * 9.81 * ca.sin(s.q)) / (5 / 3)])
"""the angle of `four_bars(1)`: see test_closure"""


def at(model, angle):
    return parallelogram(model, angle, 0)[0]


def names(solution):
    return [name for between in solution.chain.between for name in between.row_names]


@pytest.mark.parametrize(("transcription", "solvers"), [("dmoc", ("ipopt", "fatrop")), ("euler", ("sweep",))])
def test_a_loop_that_goes_on(transcription, solvers):
    """A motion cut into two phases of the same intervals is the motion: the link asks for nothing that holds already."""
    model = four_bars(1)
    start, end = {"q": at(model, 0.5), "v": 0}, {"q": {"foot0": -0.5}, "v": 0}
    parts = {
        "one": Problem(model, 0.5, start=start, actuated=["foot0"]),
        "two": Problem(model, 0.5, end=end, actuated=["foot0"]),
    }
    whole = Problem(model, 1.0, start=start, end=end, actuated=["foot0"])
    whole = whole.solve(8, transcription=transcription)
    for solver in solvers:
        solution = Phases(parts).solve(4, transcription=transcription, solver=solver)
        assert solution.converged
        assert names(solution) == []
        assert solution.cost == pytest.approx(whole.cost, rel=1e-8)  # both solved to 1e-8
        np.testing.assert_allclose(solution["two"].q[-1], whole.q[-1], atol=1e-7)


def test_an_impact_of_a_loop_and_a_cycle():
    """There and back for ever, by a wall that half the speed comes back from: the parallelogram is one angle, whose midpoint
    rule its discrete mechanics are (test_closure). Of its six states two are free to return."""
    model = four_bars(1)
    link = impact("end0", directions=[(1.0, 0, 0)], restitution=0.5)
    there = Problem(model, 0.5, start={"q": {"foot0": 0.5}}, end={"q": {"foot0": 0.0}}, actuated=["foot0"])
    back = Problem(model, 0.5, actuated=["foot0"])
    closed = Phases({"there": there, "back": back}, links={"back": link}, cyclic=True).solve(6)
    one = Problem(SINGLE, 0.5, start={"q": 0.5}, end={"q": 0.0})
    single = Phases(
        {"there": one, "back": Problem(SINGLE, 0.5)},
        links={"back": {"w": lambda s: -0.5 * s.w}},
        cyclic=True,
    ).solve(6, transcription="midpoint")
    assert closed.converged
    assert [row.name for row, _ in closed.chain.final.rows] == [
        "there: q foot0 again",
        "there: v foot0 again",
    ]
    assert closed.cost == pytest.approx(single.cost, rel=1e-8)
    np.testing.assert_allclose(closed["back"].q[-1], closed["there"].q[0], atol=1e-7)
    np.testing.assert_allclose(closed["back"].v[0], -0.5 * closed["there"].v[-1], atol=1e-7)


def bars():
    """The bars of `four_bars(1)` before they are pinned together."""
    builder = al.ModelBuilder("open", gravity=(0.0, -9.81, 0.0))
    upright, beam = (al.Inertia.rod(1.0, (0, 0, 0), end) for end in ((0, 1, 0), (1, 0, 0)))
    for i in (0, 1):
        builder.body(
            f"post{i}", upright, joint=al.Revolute(Z), joint_name=f"foot{i}", placement=(float(i), 0, 0)
        )
    builder.body(
        *("beam0", beam), joint=al.Revolute(Z), joint_name="knee0", parent="post0", placement=(0, 1.0, 0)
    )
    return builder.build()


def test_a_loop_that_closes_while_it_moves():
    """A pin falls into its hole: the first phase has to bring it there; the speeds jump by an impulse of the loop
    alone, M (v+ - v-) = G' f, and lose energy."""
    opened, closed = bars(), four_bars(1)
    # joints by name: foot0, knee0, foot1 in another order in each of them
    begin = {"q": {"foot0": 0.5, "foot1": 0.2, "knee0": -0.9}, "v": 0}
    reach = Problem(opened, (0.4, 0.8), start=begin)
    held = Problem(closed, 0.6, end={"q": {"foot0": 0.1}, "v": 0}, actuated=["foot0"])
    solution = Phases({"reach": reach, "held": held}, links={"held": same_bodies(closed)}).solve(8)
    assert solution.converged
    assert names(solution) == ["start window0 row 3", "start window0 row 4"]
    q, before, after = solution["held"].q[0], solution["reach"].v[-1], solution["held"].v[0]
    assert np.abs(closed.constraint_residual(q)).max() < 1e-7  # solved to 1e-8 in units of 1 m
    G = closed.constraint_jacobian(q)
    assert np.abs(G @ after).max() < 1e-7
    order = [opened.speed_names.index(name) for name in closed.speed_names]
    jump = closed.mass_matrix(q) @ (after - before[order])
    assert np.abs(jump).max() > 1e-3
    f = np.linalg.lstsq(G.T, jump, rcond=1e-10)[0]
    np.testing.assert_allclose(G.T @ f, jump, atol=1e-9 * np.abs(jump).max())
    assert closed.kinetic_energy(q, after) < closed.kinetic_energy(q, before[order])
    # and as a loop opens nothing jumps
    s = held.moment(ca.SX(0), ca.SX(np.concatenate([q, after])), ca.SX(0), ca.SX(0, 1), ca.SX(1.0))
    again = ca.evalf(ca.SX(same_bodies(opened)["v"](s))).full()[:, 0]
    np.testing.assert_allclose(again[order], after, rtol=1e-10, atol=1e-10)


def test_prescribed_joints_that_go_on_or_are_met():
    """A joint that is prescribed from the second phase on is met there, at its place and speed; where both phases agree
    nothing is asked."""
    model = bars()
    free = Problem(model, 0.5, start={"q": 0, "v": 0})
    driven = Problem(model, 0.5, prescribed={"foot1": lambda t: 0.25 + t})
    end = {what: {"foot0": 0.2, "knee0": 0.0} for what in "qv"}
    further = Problem(model, 0.5, prescribed={"foot1": lambda t: 0.75 + t}, end=end)
    solution = Phases({"free": free, "driven": driven, "further": further}).solve(4)
    assert solution.converged
    assert names(solution) == ["start motion of foot1", "start speed of motion of foot1"]
    k = model.speed_names.index("foot1")
    np.testing.assert_allclose([solution["free"].q[-1, k], solution["free"].v[-1, k]], [0.25, 1.0], atol=1e-7)
    assert solution["further"].q[-1, k] == pytest.approx(1.25, abs=1e-9)


def test_which_rows_repeat_others():
    """On a circle of radius 1: a second circle repeats it, one of radius 2 contradicts it, and then all are kept; what is 0
    but for rounding says nothing."""
    y = ca.SX.sym("y", 2)
    circle, place = ca.sumsqr(y) - 1, np.array([0.8, 0.6])
    rounding = 1e-13 * y[0]
    assert independent(y, circle, ca.vertcat(2 * circle * y[0], y[1], rounding), place) == [1]
    assert independent(y, circle, ca.vertcat(circle - 3, y[1]), place) == [0, 1]
    assert independent(y, circle, ca.sqrt(-1 - y[0] ** 2), place) == [0]


def test_skates_are_refused():
    builder = al.ModelBuilder("skate")
    builder.body("sled", al.Inertia.box(1.0, (1, 1, 1)), joint=al.Planar(), joint_name="ice")
    builder.frame("blade", "sled", (0.5, 0, 0))
    builder.loop("edge", al.Skate((0.0, 1.0, 0.0)), "world", "blade")
    with pytest.raises(UnsupportedError, match="same_bodies: the model has constraints on speeds"):
        same_bodies(builder.build())
