"""Loops and prescribed joints in optimal control, equations along the path, and continuation."""

import sys

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Continuation, Problem, System, continuation
from alembert.verify.mechanisms import four_bars, parallelogram

START, END = 0.5, -0.5


def window(**more):
    """A four-bar of equal bars, driven at its first foot."""
    model = four_bars(1)
    q, _ = parallelogram(model, START, 0)
    given = {"start": {"q": q, "v": 0}, "end": {"q": {"foot0": END}, "v": 0}, "actuated": ["foot0"]} | more
    return Problem(model, 1.0, **given)


@pytest.fixture(scope="module")
def swung():
    return window().solve(20)


def test_a_parallelogram_is_a_single_body(swung):
    """Its joint angles are equal and opposite, and so are their means: the discrete Lagrangian is that of one angle.

    T = 1/2 (5/3) w^2 and V = 2 g cos(q): the cost and the motion agree to what the solvers leave.
    """
    single = System(["q", "w"], ["tau"], lambda s: [s.w, (s.tau + 2 * 9.81 * ca.sin(s.q)) / (5 / 3)])
    ends = {"start": {"q": START, "w": 0}, "end": {"q": END, "w": 0}}
    reference = Problem(single, 1.0, **ends).solve(20, transcription="midpoint")
    assert swung.status == "solved"
    assert swung.cost == pytest.approx(reference.cost, rel=1e-9)
    np.testing.assert_allclose(swung.state("q foot0"), reference.state("q"), atol=1e-8)


def test_loops_are_closed_at_every_node(swung):
    model = swung.model
    assert np.abs(model.constraint_residual(swung.q)).max() < 1e-10
    G = model.constraint_jacobian(swung.q)
    assert np.abs(np.einsum("kij,kj->ki", G, swung.v)).max() < 1e-9
    np.testing.assert_allclose(swung.q[-1], parallelogram(model, END, 0)[0], atol=1e-8)
    assert swung.check.largest < 0.2  # order 2, and the upright is unstable
    assert not swung.required_efforts.any()
    assert np.isfinite(swung.gains).all()


def test_other_solvers_agree_on_loops(swung):
    for solver in ("ipopt", "fatrop"):
        other = window().solve(20, solver=solver)
        assert other.cost == pytest.approx(swung.cost, rel=1e-8)
        np.testing.assert_allclose(other.q, swung.q, atol=1e-7)


def test_redundant_rows_and_more_stated_than_needed(swung):
    """Ends stated for all joints repeat each other through the loop; a guess from a coarser solution."""
    model = swung.model
    whole = window(end={"q": parallelogram(model, END, 0)[0], "v": 0}).solve(20, guess=swung)
    assert whole.cost == pytest.approx(swung.cost, rel=1e-9)
    assert whole.stages.end_names == ("q foot0", "v foot0")


def test_an_open_loop_is_refused():
    model = four_bars(1)
    with pytest.raises(
        ArgumentError, match=r"the start leaves the loop 'window0' open by 1.75; .*model.assemble"
    ):
        window(start={"q": [0.5, 0.5, -0.6], "v": 0})
    q, _ = parallelogram(model, END, 0)
    with pytest.raises(ArgumentError, match="the end leaves the loop 'window0' open"):
        window(end={"q": q + np.array([0, 0.1, 0]), "v": 0})
    with pytest.raises(ArgumentError, match="the speeds at the start would tear the loop 'window0' open"):
        window(start={"q": parallelogram(model, START, 0)[0], "v": [1, 0, 0]})


def test_a_start_that_cannot_be_assembled():
    model = four_bars(1)
    with pytest.raises(ArgumentError, match=r"the start cannot be assembled as it is stated.*range"):
        Problem(model, 1.0, start={"q": {"foot0": 1.5, "foot1": -1.5}}, actuated=["foot0"])


@pytest.mark.parametrize("angle", [2.5, 5.0])
def test_a_straight_guess_stays_in_its_assembly(angle):
    """Nodes that are closed each for itself jump to the other assembly of a crank-rocker; the solver was lost there."""
    builder = al.ModelBuilder("four_bar")
    hinge = al.Revolute((0.0, -1.0, 0.0))
    for name, parent, length, place in (
        ("crank", "world", 0.4, (0, 0, 0)),
        ("coupler", "crank", 1.1, (0.4, 0, 0)),
        ("rocker", "world", 0.9, (1.2, 0, 0)),
    ):
        rod = al.Inertia.rod(2 * length, (0, 0, 0), (length, 0, 0))
        builder.body(name, rod, joint=hinge, parent=parent, placement=place, joint_name=f"{name}_joint")
        builder.frame(f"{name}_end", name, (length, 0, 0))
    builder.loop("pin", hinge, "coupler_end", "rocker_end").actuator("motor", "crank_joint")
    model = builder.build()
    start = model.assemble([0.0, 0.8, 1.8], fixed=["crank_joint"]).q
    problem = Problem(
        model,
        1.0,
        start={"q": start, "v": 0},
        end={"q": {"crank_joint": angle}, "v": 0},
        actuated=["crank_joint"],
    )
    guess = problem.solve(50, iterations=0)
    assert np.abs(np.diff(guess.q, axis=0)).max() < 0.2
    np.testing.assert_allclose(guess.q[:, 0], np.linspace(0, angle, 51), atol=1e-2)  # closed again at nodes
    found = problem.solve(50)
    assert found.success
    assert found.iterations < 20
    assert np.abs(np.diff(found.q, axis=0)).max() < 0.5
    assert abs(model.constraint_residual(found.q)).max() < 1e-10


def test_geared_wheels_are_one():
    """Two wheels, 1 and 2^2 times their inertia about the first one's axis, turned by pi within 1 s: 6 (5 I pi)^2."""
    builder = al.ModelBuilder("geared", gravity=(0, 0, 0))
    for name in ("a", "b"):
        wheel = al.Inertia.box(6.0, (1, 1, 1))
        builder.body(name, wheel, joint=al.Revolute((0, 0, 1)), joint_name=f"turn_{name}")
    builder.coupling("gear", "turn_a", ["turn_b"], [2.0])
    ends = {"start": {"q": 0 * np.ones(2), "v": 0}, "end": {"q": {"turn_b": np.pi}, "v": 0}}
    solution = Problem(builder.build(), 1.0, **ends, actuated=["turn_b"]).solve(10, solver="ipopt")
    np.testing.assert_allclose(solution.q[:, 0], 2 * solution.q[:, 1], atol=1e-9)
    # controls that are constant over ten steps instead of linear: sum over them of a (1 - (2k + 1)/10)
    linear = np.arange(10) + 0.5 - 5
    distance = np.sum(np.abs(np.cumsum(-linear) - (-linear) / 2)) / 100  # of that acceleration
    assert solution.cost == pytest.approx((5 * np.pi / distance) ** 2 * np.sum(linear**2) / 20, rel=1e-9)


def test_rolling_is_refused():
    builder = al.ModelBuilder("skater", gravity=(0, 0, 0))
    builder.body("blade", al.Inertia.box(1.0, (1, 1, 1)), joint=al.Planar(), joint_name="ice")
    builder.loop("edge", al.Skate((0.0, 1.0, 0.0)), "world", "blade")
    with pytest.raises(UnsupportedError, match="loop 'edge' is about speeds"):
        Problem(builder.build(), 1.0)


SWAY = -np.pi / 2


def swayed(span=1.0, **more):
    """The shoulder sways by itself, the elbow is driven."""
    return Problem(
        al.library.two_link(),
        span,
        **{
            "prescribed": {"shoulder": lambda t: SWAY + 0.5 * ca.sin(3 * t)},
            "start": {"q": {"elbow": 0}, "v": {"elbow": 0}},
            "end": {"q": {"elbow": 1.0}, "v": {"elbow": 0}},
            **more,
        },
    )


def test_prescribed_joints_follow_their_motion():
    problem = swayed()
    assert problem.plant.controls == ("elbow",)
    solution = problem.solve(40)
    wanted = SWAY + 0.5 * np.sin(3 * solution.time)
    np.testing.assert_allclose(solution.q[:, 0], wanted, atol=1e-12)
    accurate = problem.solve(40, transcription="hermite-simpson")
    np.testing.assert_allclose(accurate.q[:, 0], wanted, atol=1e-7)  # order 4
    assert solution.cost == pytest.approx(accurate.cost, rel=2e-3)  # order 2
    assert accurate.check.largest < 1e-5
    # the motor of the shoulder gives what the others do not: inverse dynamics of the same accelerations
    model, tau = al.library.two_link(), accurate.required_efforts
    assert not tau[:, 1].any()
    tau = tau + np.column_stack([0 * accurate.time, accurate.control_at(accurate.time)])
    found = model.forward_dynamics(accurate.q, accurate.v, tau)
    np.testing.assert_allclose(found[:, 0], -4.5 * np.sin(3 * accurate.time), atol=1e-9)
    for solver in ("ipopt", "fatrop"):
        assert problem.solve(40, solver=solver).cost == pytest.approx(solution.cost, rel=1e-7)


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({"prescribed": {"wrist": 1.0}}, ArgumentError, "Problem: prescribed: no joint 'wrist'"),
        ({"actuated": ["shoulder"]}, ArgumentError, "is prescribed and has a control as well"),
        ({"start": {"q": [0, 0]}}, ArgumentError, "is prescribed, and its motion says where it is"),
        ({"prescribed": {"shoulder": lambda t: [t, t]}}, ArgumentError, "has 2 coordinates, expected 1"),
        ({"prescribed": {"shoulder": lambda t: "up"}}, ArgumentError, "no expression of the time t"),
        ({"limits": {"v": 1.0}}, ArgumentError, "has v shoulder = 1.5 at 0 s, outside its limits -1 .. 1"),
        (
            {"periodic": True, "end": None},
            ArgumentError,
            "periodic, but the prescribed motion of 'shoulder' ends with q off by 0.0706 from its start",
        ),
        (
            {"periodic": True, "end": None, "span": (1.0, 2.0)},
            UnsupportedError,
            "periodic, with a free duration and a prescribed motion of 'shoulder': give the duration",
        ),
    ],
)
def test_bad_prescribed_motion(more, kind, message):
    with pytest.raises(kind, match=message):
        swayed(**more)


def test_a_free_body_cannot_be_prescribed():
    with pytest.raises(
        ArgumentError, match=r"no expression of the time t: .*; for a choice write casadi.if_else"
    ):
        Problem(four_bars(1), 1.0, prescribed={"foot1": lambda t: t if t > 1 else 0}, actuated=["foot0"])
    with pytest.raises(UnsupportedError, match="only joints whose coordinates simply add can be prescribed"):
        Problem(al.library.satellite(), 1.0, prescribed={"attitude": [0.0] * 7})
    with pytest.raises(ArgumentError, match="`prescribed` is for models"):
        Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, prescribed={"x": 0})


def test_a_loop_that_determines_a_prescribed_joint():
    model = four_bars(1)
    with pytest.raises(ArgumentError, match="already determine a prescribed joint"):
        Problem(
            model, 1.0, prescribed={"foot0": 0.5, "foot1": 0.5}, start={"v": {"knee0": 0}}, actuated=["knee0"]
        )


def test_continuation_in_the_duration_and_in_a_parameter():
    cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a / s.mass], parameters={"mass": 1.0})
    problem = Problem(cart, 1.0, start={"x": 0, "v": 0}, end={"x": 1, "v": 0})
    found = problem.continuation("duration", [1.0, 2.0, 4.0], steps=20)
    assert found.success
    # the cost is 6 / T^3: 12 (1/2 T a)^2 ... of a parabola's second derivative; Hermite-Simpson is exact on it
    np.testing.assert_allclose([s.cost for s in found.solutions], [6, 6 / 8, 6 / 64], rtol=1e-9)
    assert found.last.duration == 4.0
    assert found.solves == 3
    heavier = problem.continuation("mass", [1.0, 3.0], steps=20)
    assert heavier.last.cost == pytest.approx(54.0)
    assert "solved at all 2 values" in repr(heavier)


def test_continuation_goes_round_values_that_fail():
    """A solver that only takes steps up to 0.3 gets there with values in between."""
    cart = System(["x"], ["a"], lambda s: [s.a])

    def make(x):
        return Problem(cart, 1.0, start={"x": 0}, end={"x": x})

    solved = Problem.solve
    seen = []

    def careful(problem, steps, guess=None, **options):
        found = solved(problem, steps, guess=guess, **options)
        if guess is not None and abs(found.x[-1, 0] - guess.x[-1, 0]) > 0.3:
            found._status, found._message = "failed", "too far"
        seen.append(round(float(found.x[-1, 0]), 3))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Problem, "solve", careful)
        found = continuation(make, [0, 1], steps=5)
        assert isinstance(found, Continuation)
        assert found.success
        assert seen == [0.0, 1.0, 0.5, 0.25, 0.75, 0.5, 1.0, 0.75, 1.0]
        patch.setattr(sys.modules["alembert.optimal.solve"], "SMALLEST", 0.5)
        short = continuation(make, [0, 1], steps=5)
        assert not short.success
        assert "stopped at 0.0 on the way to 1.0: too far" in short.message


def test_bad_continuation():
    cart = System(["x"], ["a"], lambda s: [s.a])
    problem = Problem(cart, 1.0, start={"x": 0})
    with pytest.raises(ArgumentError, match="no parameter 'gravity'"):
        problem.continuation("gravity", [1.0])
    with pytest.raises(ArgumentError, match="values is empty"):
        problem.continuation("duration", [])
    with pytest.raises(ArgumentError, match="expected a function from a value to a Problem"):
        continuation(problem, [1.0])
    with pytest.raises(ArgumentError, match="is a int, expected a Problem"):
        continuation(lambda v: 1, [1.0])
    with pytest.raises(ArgumentError, match="no argument 'time'"):
        problem.replace(time=1.0)
    first = continuation(lambda v: problem.replace(end={"x": v}), [1.0], steps=5, iterations=0)
    assert not first.success
    assert "no solution at the first value, 1.0" in first.message


@pytest.mark.parametrize("solver", ["sweep", "ipopt", "fatrop"])
@pytest.mark.parametrize("transcription", ["hermite-simpson", "rk4"])
def test_path_equations_with_controls(solver, transcription):
    """Two motors on one cart, one of which always gives twice as much: (4 + 1)/9 of the cost of one alone."""
    cart = System(["x", "v"], ["a", "b"], lambda s: [s.v, s.a + s.b])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    both = Problem(cart, 1.0, **ends, path={"share": (lambda s: s.a - 2 * s.b, 0, 0)})
    alone = Problem(System(["x", "v"], ["a"], lambda s: [s.v, s.a]), 1.0, **ends)
    found = both.solve(20, solver=solver, transcription=transcription)
    assert found.success
    np.testing.assert_allclose(found.controls[:, 0], 2 * found.controls[:, 1], atol=1e-7)
    best = alone.solve(20, transcription=transcription)
    assert found.cost == pytest.approx(best.cost * 5 / 9, rel=1e-7)


line_height = (lambda s: s.frame("tip").translation[2], 0.8, 0.8)


def on_a_line(height=0.8):
    def reach(x, z):
        bend = np.arccos((x * x + z * z - 2) / 2)
        return [np.arctan2(z, x) - np.arctan2(np.sin(bend), 1 + np.cos(bend)), bend]

    return Problem(
        al.library.two_link(),
        1.0,
        start={"q": reach(1.2, 0.8), "v": 0},
        end={"q": reach(-0.5, 0.8), "v": 0},
        path={"line": line_height if height == 0.8 else (line_height[0], height, height)},
    )


@pytest.mark.parametrize("transcription", ["dmoc", "hermite-simpson", "rk4", "trapezoidal"])
def test_path_equations_on_the_configuration(transcription):
    """No control of a stage moves its configuration: the equations are about what the stages before have decided."""
    swept, peer = (on_a_line().solve(20, solver=s, transcription=transcription) for s in ("sweep", "ipopt"))
    assert swept.success, swept.diagnosis()
    assert swept.iterations <= 2 * peer.iterations
    heights = al.library.two_link().frame_pose(swept.q, "tip").translation[:, 2]
    np.testing.assert_allclose(heights, 0.8, atol=1e-8)
    assert swept.cost == pytest.approx(peer.cost, rel=1e-7)
    np.testing.assert_allclose(swept.q, peer.q, atol=1e-6)
    y = peer.multipliers["line"]  # where nothing else stands for them; those of the sweep are off by 1e-6
    np.testing.assert_allclose(swept.multipliers["line"], y, atol=1e-4 * np.abs(y).max())


def test_path_equations_that_repeat_each_other():
    """The motion is that with one of them."""
    line = on_a_line()
    twice = {"line": line_height, "again": (lambda s: 2 * s.frame("tip").translation[2], 1.6, 1.6)}
    found = line.replace(path=twice).solve(20)
    assert found.success, found.diagnosis()
    np.testing.assert_allclose(found.q, line.solve(20).q, atol=1e-6)


def test_path_equations_that_reach_to_the_end():
    """Where the end leaves the configuration open, the equation holds there as well."""
    line = on_a_line()
    free = line.replace(end={"x": (lambda s: s.frame("tip").translation[0], -0.5), "v": 0})
    found = free.solve(20)
    assert found.success, found.diagnosis()
    assert free.solve(20, solver="ipopt").cost == pytest.approx(found.cost, rel=1e-7)
    np.testing.assert_allclose(al.library.two_link().frame_pose(found.q[-1], "tip").translation[2], 0.8)


def test_ends_outside_the_path():
    with pytest.raises(ArgumentError, match=r"the start has 'line' = 0.8, outside the path's 0.9"):
        on_a_line(0.9)
    cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a])
    with pytest.raises(ArgumentError, match=r"the end has 'wall' = 2, outside the path's -inf .. 1"):
        Problem(cart, 1.0, start={"x": 0}, end={"x": 2, "v": 0}, path={"wall": (lambda s: s.x, -np.inf, 1)})
