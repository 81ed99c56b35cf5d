"""Phases that follow each other: models, masses and speeds that change between them, meshes and durations of their own."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.optimal import (
    Cases,
    Phases,
    Problem,
    System,
    continuation,
    effort,
    impact,
    running,
    same_bodies,
    terminal,
)

CART = System(["x", "v"], ["u"], lambda s: [s.v, s.u])


def slider():
    builder = al.ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic((1.0, 0, 0)), joint_name="slide")
    return builder.build()


def bounce(**more):
    """To a wall, from which half the speed comes back, and home; 1 s each."""
    model = slider()
    there = Problem(model, 1.0, start={"q": [0.0], "v": 0}, end={"q": [1.0]}, cost=effort())
    back = Problem(model, 1.0, end={"q": [0.0], "v": 0}, cost=effort())
    return Phases({"there": there, "back": back}, links={"back": impact("mass", restitution=0.5)}, **more)


@pytest.mark.parametrize("solver", ["sweep", "ipopt", "fatrop"])
def test_impact_with_restitution(solver):
    """With v at the wall the efforts cost 6 - 6 v + 2 v^2 and 6 - 3 v + v^2 / 2: least for v = 1.8. Controls are linear, for
    which the transcription is exact, on any mesh."""
    solution = bounce().solve({"there": 10, "back": 4}, transcription="hermite-simpson", solver=solver)
    assert solution.success, solution.diagnosis()
    assert solution.cost == pytest.approx(3.9, rel=1e-8)
    there, back = solution["there"], solution["back"]
    assert there.v[-1, 0] == pytest.approx(1.8, abs=1e-6)
    assert back.v[0, 0] == pytest.approx(-0.9, abs=1e-6)
    assert back.q[0, 0] == pytest.approx(1.0, abs=1e-8)
    assert solution.duration == 2.0
    np.testing.assert_allclose(back.time[[0, -1]], [1.0, 2.0])
    assert there.control("slide").shape == (10,)
    assert back.control("slide").shape == (4,)
    # costates are slopes of the cost to go: the impact passes -v/2 on, and the wall takes the rest of q's
    np.testing.assert_allclose(
        there.solution.costates[-1][1], -0.5 * back.solution._outcome.iterate.costates[0, 1], atol=1e-6
    )
    np.testing.assert_allclose(
        back.solution.multipliers["end q slide"], back.solution.costates[-1][0], atol=1e-6
    )


def test_a_transcription_for_each_phase():
    """With both of order 2 or more, and another number of steps: 3.9 as the steps become short, (1/40)^2 times a few."""
    solution = bounce().solve({"there": 40, "back": 30}, transcription={"there": "dmoc", "back": "midpoint"})
    assert solution.success
    assert solution.cost == pytest.approx(3.9, rel=2e-3)
    assert [motion.solution.transcription for _, motion in solution.items()] == ["dmoc", "midpoint"]


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
    assert phases.solve(10, guess=first).iterations == 0
    # linear-quadratic, so that one step would do; but steps far from a solution leave 1e-8 of the links to the next
    assert phases.solve(20, guess=first).iterations <= 2


def test_files_pages_and_families(tmp_path):
    phases = bounce()
    first = phases.solve(10)
    first.save(tmp_path / "phases.npz")
    again = phases.solve(10, guess=tmp_path / "phases.npz")
    assert again.success
    first["there"].solution.save(tmp_path / "one.npz")
    with pytest.raises(
        ArgumentError, match=r"expected guesses by phase, or a file of phases from solution\.save"
    ):
        phases.solve(10, guess=tmp_path / "one.npz")
    assert "there" in first.to_html(tmp_path / "page.html").read_text()
    said = first.summary().splitlines()
    assert said[0] == f"solved: cost {first.cost:.10g}, duration 2 s"
    assert said[1].startswith("there: 1 s from 0 s, cost ")
    assert "dmoc, 10 steps; simulated with the same controls" in said[2]
    assert "<img" in first._repr_html_()
    with pytest.raises(FileError, match="cannot be written: No such file"):
        first.save(tmp_path / "nowhere" / "phases.npz")
    with pytest.raises(FileError, match="cannot be written: No such file"):
        first["there"].solution.save(tmp_path / "nowhere" / "one.npz")
    family = continuation(
        lambda T: Phases({"one": Problem(CART, T, start={"x": 0, "v": 0}, end={"x": 1})}), [1.0, 2.0], 4
    )
    assert family.success
    assert [s.cost for s in family.solutions] == pytest.approx([1.5, 1.5 / 8], rel=1e-6)


def test_free_joints_go_on():
    """A turn in two phases with other meshes is the turn in one: nodes where the phases meet are nodes of the whole."""
    builder = al.ModelBuilder("rigid", gravity=(0, 0, 0))
    builder.body("body", al.Inertia.box(3.0, (0.2, 0.5, 1.0)), joint=al.Spherical())
    model = builder.build()
    q1 = model.integrate(model.neutral(), np.array([0.5, -1.0, 0.7]))
    start, end = {"q": model.neutral(), "v": 0}, {"q": q1, "v": 0}
    whole = Problem(model, 2.0, start=start, end=end).solve(
        8, nodes=[0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1]
    )
    parts = Phases({"one": Problem(model, 1.0, start=start), "two": Problem(model, 1.0, end=end)})
    solution = parts.solve({"one": 2, "two": 6}, nodes={"two": [0, 0.2, 0.4, 0.6, 0.8, 0.9, 1]})
    assert whole.converged
    assert solution.converged
    assert solution.cost == pytest.approx(whole.cost, rel=1e-7)  # both solved to 1e-8


def two_carts():
    """Two masses on a line, apart and docked; the second is 3 kg."""
    apart, docked = (al.ModelBuilder(name, gravity=(0, 0, 0)) for name in ("apart", "docked"))
    rail = al.Prismatic((1.0, 0, 0))
    for builder in (apart, docked):
        builder.body("tug", al.Inertia.point(1.0), joint=rail, joint_name="tug rail")
    apart.body("load", al.Inertia.point(3.0), joint=rail, joint_name="load rail")
    docked.body("load", al.Inertia.point(3.0), joint=al.Fixed(), joint_name="clamp", parent="tug")
    return apart.build(), docked.build()


@pytest.mark.parametrize("transcription", ["radau", "midpoint"])
def test_a_body_that_turns_beside_another_phase(transcription):
    """Stages that hand on their accelerations, in the sizes of all phases: two cases cost what each does alone."""
    model = al.library.satellite()
    turned = {"q": {"attitude": {"orientation": [np.cos(0.2), 0, 0, np.sin(0.2)]}}, "v": 0}
    turn = Problem(model, 5.0, start={"q": 0, "v": 0}, end=turned)
    move = Problem(CART, 1.0, start={"x": 0, "v": 0}, end={"x": 1, "v": 0})
    both = Cases({"turn": turn, "move": move}).solve(4, transcription=transcription)
    apart = [problem.solve(4, transcription=transcription).cost for problem in (turn, move)]
    assert both.success
    assert both.cost == pytest.approx(sum(apart), rel=1e-8)


def test_docking_keeps_momentum():
    """The tug reaches the load at 1 m within 1 s and brings both to 2 m, at rest, in 1 s more. With v when they meet efforts
    are 6 - 6 v + 2 v^2, and from v/4 with 4 kg (16 times that of 1 kg) 16 (6 - 6 v/4 + 2 v^2/16): least at v = 30/8."""
    apart, docked = two_carts()
    meet = Problem(
        *(apart, 1.0),
        start={"q": [0.0, 1.0], "v": 0},
        end={"q": {"tug rail": 1.0}},
        actuated=["tug rail"],
    )
    bring = Problem(docked, 1.0, end={"q": [2.0], "v": 0})
    solution = Phases({"meet": meet, "bring": bring}, links={"bring": same_bodies(docked)}).solve(
        6, transcription="hermite-simpson"
    )
    assert solution.success, solution.diagnosis()
    v = float(solution["meet"].v[-1, 0])
    assert v == pytest.approx(30 / 8, abs=1e-6)
    assert solution["bring"].v[0, 0] == pytest.approx(v / 4, rel=1e-9)
    assert solution.cost == pytest.approx(
        6 - 6 * v + 2 * v**2 + 16 * (6 - 6 * v / 4 + 2 * v**2 / 16), rel=1e-8
    )


def test_bodies_that_jump_are_no_motion():
    """Nothing brings the tug to its load: clamped to the tug, this would be 0.7 m from where it was."""
    apart, docked = two_carts()
    ways = {"start": {"q": [0.0, 1.0], "v": 0}, "end": {"q": {"tug rail": 0.3}}, "actuated": ["tug rail"]}
    meet, bring = Problem(apart, 1.0, **ways), Problem(docked, 1.0, end={"q": [2.0], "v": 0})
    solution = Phases({"meet": meet, "bring": bring}, links={"bring": same_bodies(docked)}).solve(6)
    assert not solution.success
    assert solution.status == "failed"
    said = "the body 'load' jumps by 0.7 m where 'bring' begins: same_bodies keeps momentum; state a condition at the end of"
    assert solution.message.startswith(said)
    # released elsewhere than it was carried, as told by a configuration of one's own
    carry = Problem(docked, 1.0, start={"q": [0.0], "v": 0}, end={"q": [1.0]})
    leave = Problem(apart, 1.0, end={"v": {"tug rail": 0.0}}, actuated=["tug rail"])
    for off, success in ((0.0, True), (0.5, False)):
        link = same_bodies(apart, configuration=lambda s, off=off: ca.vertcat(s.q, s.q + off))
        released = Phases({"carry": carry, "leave": leave}, links={"leave": link}).solve(6)
        assert released.success == success, released.message
        np.testing.assert_allclose(released["leave"].v[0], released["carry"].v[-1, 0], rtol=1e-9)


def test_conditions_and_costs_across_phases():
    """A way of 1 m from rest to rest in 2 s costs 6/8; two phases together do the same, wherever they meet."""
    one = Problem(CART, (0.2, 1.9), start={"x": 0, "v": 0})
    two = Problem(CART, (0.2, 1.9), end={"x": 1, "v": 0})
    total = {"all in all": (lambda s: s["one"].duration + s["two"].duration, 2.0, 2.0)}
    free = Phases({"one": one, "two": two}, across=total).solve(6)
    assert free.success, free.diagnosis()
    assert free.cost == pytest.approx(0.75, rel=1e-8)
    assert free.duration == pytest.approx(2.0, rel=1e-8)
    assert free.multipliers["all in all"] == pytest.approx(3 * 6 / 2.0**4, rel=1e-6)  # of 6/T^3
    assert free.multipliers["two: end v"] == pytest.approx(1.5, rel=1e-6)  # of 6 x^2 / T^3 - 6 x v / T^2
    same = total | {"as long": (lambda s: s["one"].duration - s["two"].duration, 0.0, 0.0)}
    drawn = Phases({"one": one, "two": two}, across=same, cost=lambda s: 50 * (s["one"].end.x - 0.4) ** 2)
    solution = drawn.solve({"one": 5, "two": 6})
    assert solution["one"].duration == pytest.approx(1.0, rel=1e-7)
    # through (x, v) in the middle: 6 x^2 - 6 x v + 2 v^2 and 6 (1-x)^2 - 6 (1-x) v + 2 v^2, least for v = 3/4
    x = solution["one"].state("x")[-1]
    by_hand = 24 * (x - 0.5) + 100 * (x - 0.4)
    assert by_hand == pytest.approx(0.0, abs=1e-6)
    between = Phases({"one": one, "two": two}, across=total | {"far": (lambda s: s["one"].end.x, 0.7, 0.9)})
    assert between.solve(6)["one"].state("x")[-1] >= 0.7 - 1e-7
    moved = Phases(
        {"one": one, "two": two}, across=total | {"way": (lambda s: s["two"].end.x - s["one"].start.v, 1, 1)}
    )
    assert moved.solve(6, solver="ipopt").cost == pytest.approx(0.75, rel=1e-7)
    late = Phases({"one": one, "two": two}, across={"late": (lambda s: s["one"].duration, 2.5, 3.0)}).solve(4)
    assert not late.success
    assert "across: late" in [v.name for v in late.violations()]
    with pytest.raises(UnsupportedError, match="'highs' takes no phases"):
        free.phases.solve(4, solver="highs")


def test_meshes_refine_by_phase():
    """Only the phase that is stiff at its end needs short intervals there."""
    fast = System(["x"], ["u"], lambda s: [-20 * s.x + s.u])
    slow = System(["x"], ["u"], lambda s: [s.u])
    cost = running(lambda s: s.x**2 + s.u**2)
    one = Problem(slow, 1.0, start={"x": 1.0}, cost=cost)
    two = Problem(fast, 1.0, end={"x": 1.0}, cost=cost)
    solution = Phases({"one": one, "two": two}).solve(6, accuracy=1e-5)
    assert solution.success
    counts = {name: motion.solution.steps for name, motion in solution.items()}
    assert counts["two"] > counts["one"]
    assert max(r.estimate for r in solution.meshes[-1].values()) <= 1e-5
    assert solution.accuracy["two"].worst <= 1e-5
    assert len(solution.plot().axes) == 2  # x and u
    drawn = solution.plot_convergence().axes
    assert len(drawn) == 3
    assert drawn[2].get_legend().get_texts()[0].get_text().startswith("one: 6, ")
    assert len(solution["one"].solution.plot_convergence().axes) == 2
    short = Phases({"one": one, "two": two}).solve(6, accuracy=1e-14)
    assert "the accuracy that was asked for is not reached" in short.message


def test_names_say_which_phase():
    phases = bounce()
    still = {"time": [0, 1], "q": [[1.0], [0.0]], "v": [[0.0], [0.0]]}
    failed = phases.solve(10, iterations=0, guess={"back": still})
    assert not failed.success
    assert "link to back: p slide" in " ".join(v.name for v in failed.violations())
    assert "back: motion of q slide" in failed.diagnosis()
    bad = System(["x"], ["u"], lambda s: [1 / s.x + s.u])
    one = Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, start={"x": 1.0}, end={"x": 0.0})
    broken = Phases({"one": one, "two": Problem(bad, 1.0)}).solve(4)
    assert broken.status == "failed"
    assert "in two: stage 0, t = 0 s (first two: x" in broken.message


def test_what_is_refused():
    model = slider()
    one = Problem(model, 1.0, start={"q": [0.0], "v": 0})
    for phases, links, message in (
        ({}, None, "expected problems by name"),
        ({"a": model}, None, "'a' is a Model, expected a Problem for each phase"),
        ({"a": one, "b": one}, {"a": {}}, "no phase that follows another 'a'"),
        ({"a": one, "b": one}, {"b": {"q slip": None}}, "no state 'q slip'"),
        ({"a": one, "b": one}, {"b": {"q slide": 3.0}}, "expected a function of the moment at the end"),
        (
            {"a": one, "b": one},
            {"b": lambda s: s.q},
            "links of 'b' is <function .*, expected a function or None for",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            Phases(phases, links=links)
    free = Problem(al.library.satellite(), 1.0)
    with pytest.raises(UnsupportedError, match="goes on from nothing, and its coordinates do not add"):
        Phases({"a": one, "b": free})
    with pytest.raises(UnsupportedError, match="'a' is periodic"):
        Phases({"a": Problem(model, 1.0, periodic=True)})
    phases = bounce()
    for options, message in (
        ({"guess": 3}, "expected guesses by phase"),
        ({"guess": {"up": None}}, "the guess has no phase 'up'"),
        ({"steps": {"up": 3}}, "steps: no phase 'up'"),
        ({"moonshine": 3}, "no option 'moonshine'"),
        ({"accuracy": 3}, "expected a share of the motion"),
    ):
        with pytest.raises(ArgumentError, match=message):
            phases.solve(**options)
    with pytest.raises(UnsupportedError, match="'splines' has no stages"):
        phases.solve(10, transcription="splines")
    with pytest.raises(UnsupportedError, match="ipopt takes exact Hessians only"):
        phases.solve(10, solver="ipopt", hessian="gauss-newton")
    for refused in ("prepare", "compile", "export_c"):
        with pytest.raises(AttributeError, match="phases are not prepared, compiled or exported"):
            getattr(phases, refused)
    solution = phases.solve(10)
    with pytest.raises(ArgumentError, match="there is no phase 'up'"):
        solution["up"]
    with pytest.raises(ArgumentError, match="the solution has no state 'q slip'"):
        solution["back"].state("q slip")
    line = Problem(System(["x"], [], lambda s: [s.x]), 1.0, start={"x": 1})
    with pytest.raises(
        ArgumentError, match="no `design`, a given duration and a start that is stated, so that"
    ):
        line.solve(5)
    with pytest.raises(ArgumentError, match="nothing is to be chosen"):
        Phases({"a": line}).solve(5)
    coast = Phases({"a": Problem(System(["x"], ["u"], lambda s: [s.u]), 1.0, start={"x": 0}), "b": line})
    with pytest.raises(UnsupportedError, match=r"solution\.q is for models"):
        coast.solve(5)["a"].q


def test_links_and_conditions_that_are_refused():
    model = slider()
    one = Problem(model, 1.0, start={"q": [0.0], "v": 0})
    pair = {"a": one, "b": one}
    choice = lambda s: 1 if s["a"].duration + s["a"].end.q[0] > 0 else 0  # noqa: E731
    for given, message in (
        ({"across": {"c": (choice, 0, 1)}}, "Phases: across 'c': .* For a choice write casadi.if_else"),
        ({"cost": choice}, "Phases: the cost: .* For a choice write casadi.if_else"),
        ({"across": 3}, "across is 3, expected"),
        ({"cost": 3}, "cost is 3, expected a function"),
        ({"across": {"c": (lambda s: s["up"].duration, 0, 1)}}, "there is no phase 'up'"),
        ({"across": {"c": (lambda s: s["a"].duration, 2, 1)}}, "across 'c': 2 is above 1"),
        (
            {"across": {"c": (lambda s: s["a"].end.controls[0], 0, 1)}},
            "'c' depends on controls, which have no",
        ),
        ({"cost": lambda s: s["a"].end.controls[0] ** 2}, "the cost across phases depends on controls"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Phases(pair, **given)
    with pytest.raises(ArgumentError, match="'v' has 2 entries, expected 1"):
        Phases(pair, links={"b": {"v": lambda s: [s.v[0], 0]}}).solve(4)
    with pytest.raises(ArgumentError, match=r"links of 'b': 'v slide': .* For a choice write casadi.if_else"):
        Phases(pair, links={"b": {"v slide": lambda s: s.v if s.v[0] > 0 else 0}}).solve(4)
    with pytest.raises(ArgumentError, match="a link of 'b' depends on controls"):
        Phases(pair, links={"b": {"v slide": lambda s: s.controls[0]}}).solve(4)
    with pytest.raises(ArgumentError, match="'v slide': there is no quantity 'speed_of_light'"):
        Phases(pair, links={"b": {"v slide": lambda s: s.speed_of_light}}).solve(4)
    for given, message in (
        ({"frame": []}, "expected the name of a frame"),
        ({"frame": "mass", "restitution": 2.0}, "restitution is 2.0"),
        ({"frame": "mass", "directions": [1.0, 2.0]}, "expected vectors of three numbers"),
    ):
        with pytest.raises(ArgumentError, match=message):
            impact(**given)
    for link, message in (
        (impact("wing"), "has no frame 'wing'"),
        (impact("mass", directions=[(0, 1, 0)]), "nothing moves these frames in these directions"),
        (same_bodies(two_carts()[1]), "no joint 'tug rail'"),
        (same_bodies(two_carts()[1], configuration=lambda s: s.q), "'load' is in one of the two models only"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Phases(pair, links={"b": {"v": link["v"]}}).solve(4)
    system = Problem(CART, 1.0, start={"x": 0, "v": 0})
    with pytest.raises(ArgumentError, match="impacts are of models"):
        Phases({"a": system, "b": one}, links={"b": {"v": impact("mass")["v"]}}).solve(4)
    with pytest.raises(ArgumentError, match="after is a int"):
        same_bodies(3)
    free = al.ModelBuilder("free")
    free.body("arm", al.Inertia.point(free.parameter("m", 1.0)), joint=al.Prismatic((1, 0, 0)))
    with pytest.raises(UnsupportedError, match="has parameters or bending bodies"):
        same_bodies(free.build())
    geared = al.ModelBuilder("geared")
    geared.body("arm", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="drive", armature=2.0)
    with pytest.raises(UnsupportedError, match="the joint 'drive' has a rotor"):
        same_bodies(geared.build())
    with pytest.raises(ArgumentError, match="expected vectors of three numbers"):
        impact("mass", directions=[[np.nan, 0, 0]])


def test_an_impact_ignores_directions_that_are_rounding():
    """A slide of any direction: across it velocities are 1e-17 instead of zero, which is no row to stop."""
    for seed in (3, 5):  # where rounding leaves something
        rng = np.random.default_rng(seed)
        axis, other = rng.normal(size=(2, 3))
        axis /= np.linalg.norm(axis)
        builder = al.ModelBuilder("slide", gravity=(0, 0, 0))
        builder.body("mass", al.Inertia.point(1.0), joint=al.Prismatic(tuple(axis)), joint_name="slide")
        model = builder.build()

        def motion(directions, model=model):
            there = Problem(model, 1.0, start={"q": [0], "v": [1]}, end={"v": [1]})
            back = Problem(model, 1.0, end={"v": [0]})
            hit = impact("mass", directions=directions, restitution=0.5)
            return Phases({"there": there, "back": back}, links={"back": hit}).solve(3, progress=False)

        across = np.cross(axis, other)
        v = motion([across, axis])["back"].solution.v[0]
        assert v == pytest.approx([-0.5], abs=1e-8)  # the tolerance of the solver
        with pytest.raises(ArgumentError, match="nothing moves these frames in these directions"):
            motion([across])


def rods(held):
    """Two rods with a hinge between them, held by the end of one or the other."""
    builder = al.ModelBuilder(f"held by {held}")
    free = "two" if held == "one" else "one"
    mass = {"one": 1.0, "two": 2.0}
    hinge = al.Revolute((0, 1.0, 0))
    builder.body(held, al.Inertia.rod(mass[held], (0, 0, 0), (0, 0, 1)), joint=hinge, joint_name="ground")
    builder.body(
        *(free, al.Inertia.rod(mass[free], (0, 0, 0), (0, 0, -1))),
        joint=hinge,
        joint_name="hip",
        parent=held,
        placement=(0, 0, 1),
    )
    builder.frame("foot", free, (0, 0, -1))
    return builder.build()


def test_bodies_that_are_held_elsewhere():
    """A step of two rods: the momentum about the new foot is kept, and that of the rod behind about the hinge; energy is
    lost. Frames of bodies are those of their joints, which are others now."""
    import casadi as ca

    before, after = rods("one"), rods("two")
    q, v = np.array([0.3, -0.7]), np.array([1.0, -3.0])
    place = lambda s: ca.vertcat(s.q[0] + s.q[1], -s.q[1])  # noqa: E731
    link = same_bodies(after, configuration=place)
    problem = Problem(before, 1.0, start={"q": [0, 0], "v": 0})
    s = problem.moment(ca.SX(0), ca.SX(np.concatenate([q, v])), ca.SX.zeros(2), ca.SX(0, 1), ca.SX(1.0))
    q2, v2 = (ca.evalf(ca.SX(link[key](s))).full()[:, 0] for key in "qv")
    foot = before.frame_pose(q, "foot").translation
    h, h2 = before.momentum(q, v, about="world"), after.momentum(q2, v2, about="world")
    np.testing.assert_allclose(h2[1], h[1] - np.cross(foot, h[3:])[1], rtol=1e-12)
    assert after.kinetic_energy(q2, v2) < before.kinetic_energy(q, v)
    heavier = al.ModelBuilder("heavier")
    for name, parent in (("one", "world"), ("two", "one")):
        heavier.body(name, al.Inertia.point(5.0, (0, 0, 1)), joint=al.Revolute((0, 1.0, 0)), parent=parent)
    with pytest.raises(ArgumentError, match="'one' has 1 kg before and 5 kg after"):
        same_bodies(heavier.build(), configuration=lambda s: s.q)["v"](s)
    still = same_bodies(before)  # nothing changes where nothing is locked
    same = ca.evalf(ca.SX(still["v"](s))).full()[:, 0]
    np.testing.assert_allclose(same, v, rtol=1e-12)


def test_cycles():
    """A pendulum driven round and round: the angle moves on by a turn, the speed returns. A cycle of one phase is what a
    problem with both as conditions at its ends is."""
    import casadi as ca

    crank = System(["x", "v"], ["u"], lambda s: [s.v, s.u - 0.5 * s.v - ca.sin(s.x)])
    one, two = Problem(crank, 1.0, start={"x": 0}), Problem(crank, 1.0)
    links = {"one": {"x": lambda s: s.x - 2 * np.pi}}
    solution = Phases({"one": one, "two": two}, links=links, cyclic=True).solve({"one": 20, "two": 24})
    assert solution.success
    first, last = solution["one"].x[0], solution["two"].x[-1]
    np.testing.assert_allclose(last - first, [2 * np.pi, 0], atol=1e-7)
    again = Phases({"all": Problem(crank, 2.0, start={"x": 0})}, links={"all": links["one"]}, cyclic=True)
    assert again.solve(40).cost == pytest.approx(solution.cost, rel=1e-5)  # order 4: (2/40)^4 times a few
    with pytest.raises(UnsupportedError, match="cyclic: the coordinates of 'q attitude' do not add"):
        Phases({"a": Problem(al.library.satellite(), 1.0)}, cyclic=True)


def test_phases_say_what_is_odd_about_them():
    """As single problems do: a control that zigzags where nothing decides about it, one that nothing keeps small, steps of
    more than half a turn, whose motion is none."""
    line = System(["x"], ["u"], lambda s: [s.u])
    near = Problem(line, 2.0, start={"x": 1}, limits={"u": 1}, cost=running(lambda s: s.x**2))
    found = Phases({"there": near, "stay": near.replace(start=None)}).solve(40)
    assert found.success
    assert "there: u zigzags from node to node" in found.message
    far = Problem(CART, 1.0, start={"x": 0, "v": 0}, cost=terminal(lambda s: -s.x))
    found = Phases({"one": far, "two": far.replace(start=None)}).solve(10, iterations=20)
    assert "one: nothing keeps u small; two: nothing keeps u small" in found.message.replace(
        ": state limits, or a cost", ""
    )
    log = System(["x"], ["u"], lambda s: [ca.log(s.x) + s.u])
    lost = Problem(log, 1.0, end={"x": 1})
    found = Phases({"to": near.replace(end={"x": -1}), "lost": lost}).solve(5)
    assert found.status == "failed"
    assert "lost: x at point 2 is not finite between t = 0 and 0.2 s" in found.message
    builder = al.ModelBuilder("body", gravity=(0, 0, 0))
    inertia = al.Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0))
    builder.body("body", inertia, joint=al.Spherical(), joint_name="turn")
    model = builder.build()
    fast = Problem(model, 1.0, start={"q": model.neutral(), "v": [0, 0, 9.0]}, end={"v": [0, 0, 9.0]})
    found = Phases({"one": fast, "two": fast.replace(start=None)}).solve(2)
    assert found.status == "failed"
    assert "one: turn turns by 4.5 rad within a step" in found.message


def test_a_guess_of_the_first_phase_alone():
    """What goes on from it to the next is 1e-16 where it means 0, which was a unit of its own: then no step led on."""
    there = Problem(CART, 1.0, start={"x": 0, "v": 0}, end={"x": 1, "v": 0})
    back = there.replace(start=None, end={"x": 0, "v": 0})
    both = Phases({"there": there, "back": back})
    alone = there.solve(5)
    found = both.solve(5, guess={"there": alone})
    assert found.success
    assert found.iterations <= 3  # linear-quadratic
    assert found.cost == pytest.approx(12.0)
    zeros = {"time": [0, 1], "x": [[0, 1e-16], [1, 0]], "controls": [[0], [0]]}
    for x in ([[0, 1e-16], [1, 0]], [[0, 0], [1e-16, 0]], [[0, 0], [1e-16, 1e-17]]):
        assert there.solve(5, guess=zeros | {"x": x}).iterations <= 2
