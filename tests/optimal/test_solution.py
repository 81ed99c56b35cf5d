"""What a solution tells: limits kept, sensitivities, diagnosis, hand-over."""

import re
import warnings

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal import Problem, System, continuation, duration, effort, report, running, terminal
from alembert.optimal.outcome import NO_SLOPE, warm

MASS = System(["x", "v"], ["force"], lambda s: [s.v, s.force / s.mass], parameters={"mass": 2.0})
REST = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}


@pytest.fixture(scope="module")
def move():
    return Problem(MASS, 1.0, **REST).solve(40)


def test_closed_form_of_the_least_effort(move):
    """1/2 int f^2 from rest to rest over x = 1 in 1 s is 6 m^2."""
    assert move.success
    assert move.cost == pytest.approx(6 * 2.0**2, rel=1e-9)
    assert move.sensitivities()["mass"] == pytest.approx(12 * 2.0, rel=1e-6)
    assert move.iterations == 1  # linear and quadratic


def test_sensitivity_is_the_slope_of_the_cost():
    system = System(["x", "v"], ["f"], lambda s: [s.v, (s.f - ca.sin(s.k * s.x)) / 2], parameters={"k": 1.3})
    costs = {}
    for k in (1.3 - 1e-4, 1.3, 1.3 + 1e-4):
        solution = Problem(system, 1.0, **REST, parameters={"k": k}).solve(30, tolerance=1e-11)
        costs[k] = solution.cost
        if k == 1.3:
            slope = solution.sensitivities()["k"]
    low, _, high = costs.values()
    assert slope == pytest.approx((high - low) / 2e-4, rel=1e-6)


def test_least_time_is_bang_bang():
    """|f| <= 2 with m = 2 over x = 1: T = 2 sqrt(x m / f) = 2."""
    problem = Problem(MASS, (0.5, 5.0), **REST, limits={"force": 2.0}, cost=duration())
    solution = problem.solve(40, transcription="midpoint")
    assert solution.success
    assert solution.duration == pytest.approx(2.0, abs=1e-6)
    assert np.abs(solution.controls).max() <= 2 + 1e-7
    assert solution.multipliers["force"].min() < 0 < solution.multipliers["force"].max()


def test_rates_of_controls_are_bounded():
    problem = Problem(MASS, 1.0, **REST, limits={"rate": {"force": 60.0}})
    solution = problem.solve(50, transcription="midpoint")
    free = Problem(MASS, 1.0, **REST).solve(50, transcription="midpoint")
    rates = np.diff(solution.controls[:, 0]) * 50
    assert np.abs(rates).max() <= 60 + 1e-5
    assert np.abs(np.diff(free.controls[:, 0]) * 50).max() < 60 * 1.2
    assert solution.success


@pytest.mark.parametrize("transcription", ["trapezoidal", "hermite-simpson", "radau"])
def test_rates_of_controls_are_bounded_between_nodes_too(transcription):
    """The slope of the control's polynomial inside every interval, by differences of what `control_within` gives."""
    problem = Problem(MASS, 1.0, **REST, limits={"rate": {"force": 60.0}, "force": 10.0})
    solution = problem.solve(11, transcription=transcription)
    assert solution.success
    shares = np.linspace(0, 1, 51)
    for k in range(11):
        u = solution.control_within(np.full(51, k), shares)[:, 0]
        assert np.abs(np.diff(u)).max() * 50 * 11 <= 60 * (1 + 1e-6)


def test_path_constraint_and_free_start():
    """A mass that starts anywhere left of -1 and must keep x v below a bound."""
    problem = Problem(
        MASS,
        2.0,
        start={"x": (-np.inf, -1), "v": 0},
        end={"x": 0, "v": 0},
        path={"power": (lambda s: s.force * s.v, -1.0, 1.0)},
    )
    solution = problem.solve(60, transcription="midpoint")
    assert solution.success
    assert solution.x[0, 0] == pytest.approx(-1, abs=1e-6)
    middle = (solution.x[1:, 1] + solution.x[:-1, 1]) / 2
    assert np.abs(solution.controls[:, 0] * middle).max() <= 1.0 + 1e-6


def test_periodic_motion():
    """A driven oscillator follows a periodic reference with a state that returns."""
    system = System(["x", "v"], ["f"], lambda s: [s.v, s.f - s.x])
    cost = running(lambda s: (s.x - ca.cos(2 * np.pi * s.t)) ** 2 + 0.01 * s.f**2)
    solution = Problem(system, 1.0, cost=cost, periodic=True).solve(60)
    assert solution.success
    np.testing.assert_allclose(solution.x[0], solution.x[-1], atol=1e-8)
    assert solution.cost < 0.5  # what staying at rest costs


def test_contradiction_is_diagnosed():
    """Bounds on speed and force make the distance unreachable in the time."""
    problem = Problem(MASS, 1.0, **REST, limits={"v": 1.5, "force": 3.0})
    solution = problem.solve(20, iterations=60, transcription="midpoint")
    assert not solution.success
    assert solution.violations()
    text = solution.diagnosis()
    assert "off by" in text
    assert "t = " in text
    assert "constraints are off by more than 1e-6" in solution.summary()


def test_an_integral_that_cannot_be():
    """From rest to rest takes an integral of u^2 of 12 at least; what a search that ends says is that it came no nearer."""
    line = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    problem = Problem(line, 1.0, **REST, integrals={"work": (lambda s: s.u**2, 0, 5)})
    found = problem.solve(20, iterations=200)
    assert not found.success
    assert (
        "constraints came no nearer in the last 101, so that perhaps no motion keeps them all"
        in found.message
    )
    assert problem.replace(integrals={"work": (lambda s: s.u**2, 0, 12.1)}).solve(20).success


def test_function_that_is_not_finite_is_located():
    system = System(["x"], ["u"], lambda s: [s.u + ca.log(s.x - 0.5)])
    solution = Problem(system, 1.0, start={"x": 1}, end={"x": 0.2}).solve(10)
    assert solution.status == "failed"
    assert re.search(r"^x at point 2 is not finite between t = .* and .* s$", solution.message)
    assert "at t = " in solution.diagnosis()
    assert "every constraint is kept" not in solution.diagnosis()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("solver", ["sweep", "ipopt", "fatrop"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"cost": running(lambda s: ca.sqrt(s.x - 2))},
            "the running cost is not finite between t = 0 and 0.2 s",
        ),
        ({"cost": effort() + terminal(lambda s: ca.log(s.v - 3))}, "the terminal cost is not finite"),
        (
            {"path": {"pace": (lambda s: ca.sqrt(s.v), 0.0, 9.0)}},
            "the slope of 'pace' is not finite between t = 0 and 0.2 s" + NO_SLOPE,
        ),
        (
            {"end": {"x": (1, 2), "near": (lambda s: ca.sqrt(s.v), (0.0, 1.0))}},
            "the slope of 'near' at the end is not finite" + NO_SLOPE,
        ),
    ],
)
def test_what_is_not_finite_at_the_guess_is_named_by_every_solver(solver, given, message):
    """FATROP itself would not come back. NumPy does not warn of it first."""
    solution = Problem(MASS, 1.0, **(REST | given)).solve(5, solver=solver, transcription="rk4")
    assert solution.status == "failed"
    assert solution.message == message
    assert message in solution.diagnosis()


def test_slope_that_is_not_finite_is_located():
    """sqrt has a value at 0, and no slope."""
    system = System(["x", "y"], ["u"], lambda s: [s.u, ca.sqrt(s.x)])
    solution = Problem(system, 1.0, start={"x": 0, "y": 0}, end={"x": 1}).solve(10, transcription="rk4")
    assert solution.status == "failed"
    assert solution.message == "the slope of the motion of y is not finite between t = 0 and 0.1 s" + NO_SLOPE


def test_values_of_a_continuation_are_numbers():
    with pytest.raises(ArgumentError, match=r"continuation: values is \['slow'\], expected numbers"):
        continuation(lambda x: Problem(MASS, x, **REST), ["slow"])


def test_a_guess_of_another_kind_is_refused(move):
    with pytest.raises(ArgumentError, match="the guess is a solution of a System, expected one of a model"):
        Problem(al.library.two_link(), 1.0).solve(5, guess=move)


def test_save_and_use_as_guess(move, tmp_path):
    move.save(tmp_path / "move.npz")
    again = Problem(MASS, 1.0, **REST).solve(80, guess=tmp_path / "move.npz")
    assert again.cost == pytest.approx(move.cost, rel=1e-9)
    assert Problem(MASS, 1.0, **REST).solve(20, guess=move).success


def test_hand_over(move):
    data = move.to_xarray()
    assert data.attrs["status"] == "solved"
    np.testing.assert_array_equal(data["x"].sel(state="v"), move.state("v"))
    assert data["controls"].sizes == {"interval": 40, "control": 1}
    assert "solved, cost 24" in repr(move)
    assert "simulated with the same controls" in move.summary()
    figure = move.plot()
    assert len(figure.axes) == 3  # x, v and the force, which have no units to share
    np.testing.assert_allclose(move.control_at(0.5), 0, atol=1e-8)
    with pytest.raises(ArgumentError, match="the solution has no state 'y'; there is x, v"):
        move.state("y")
    with pytest.raises(ArgumentError, match="the solution has no control 'g'; there is force"):
        move.control("g")
    with pytest.raises(UnsupportedError, match=r"solution.q is for models"):
        _ = move.q
    other = Problem(MASS, 1.0, **REST).solve(10, solver="ipopt")
    with pytest.raises(UnsupportedError, match=r"solution.gains: ipopt gives none"):
        _ = other.gains
    assert "bounds that hold" not in other.diagnosis()


def test_interruption_gives_the_best_iterate():
    """The cheapest of those that keep all to 1e-6, or the nearest to it; not the one where Ctrl-C happens to come."""
    example, seen = al.optimal.examples.goddard(), []
    for last in (9, 14, 20):
        seen.clear()

        def watch(it, last=last):
            seen.append((it.infeasibility if it.infeasibility > 1e-6 else 0.0, it.cost))
            if it.number == last:
                raise KeyboardInterrupt

        found = example.solve(40, progress=watch)
        assert found.status == "interrupted"
        assert "best iterate so far" in found.message
        off = found._outcome.infeasibility
        assert (off if off > 1e-6 else 0.0, found._outcome.cost) == min(seen)
        assert np.isfinite(found._outcome.slope)


def test_progress_and_interruption():
    lines = []
    Problem(MASS, 1.0, **REST).solve(10, progress=lines.append)
    assert [line.number for line in lines] == [0, 1]

    def stop(line):
        if line.number == 3:
            raise KeyboardInterrupt

    problem = Problem(
        al.library.acrobot(), 4.0, start={"q": [-np.pi / 2, 0], "v": 0}, end={"q": [np.pi / 2, 0], "v": 0}
    )
    for options in ({"solver": "ipopt"}, {"transcription": "splines"}):
        lines.clear()
        problem.solve(20, iterations=3, progress=lines.append, **options)
        assert [line.number for line in lines] == [0, 1, 2, 3]
        assert all(line.step > 0 and line.slope > 0 for line in lines[1:])
        told = [line.barrier > 0 for line in lines]
        assert all(told) if options.get("solver") == "ipopt" else not any(told)  # splines have none
    solution = problem.solve(50, progress=stop)
    assert solution.status == "interrupted"
    assert solution.iterations == 3


@pytest.mark.parametrize(
    "problem",
    [
        Problem(MASS, 1.0, **REST),
        Problem(MASS, 1.0, **REST, limits={"v": 1.2, "force": 30.0}),
        Problem(
            al.library.two_link(),
            1.0,
            start={"q": [-0.5, 0], "v": 0},
            end={"q": [0.5, 0.3], "v": 0},
            limits={"tau": {"shoulder": 60.0, "elbow": 12.0}},
            path={"same": (lambda s: s.q[0] - s.q[1] + s.v[0], -3.0, 3.0)},
        ),
    ],
    ids=["plain", "bounds", "momenta and bounds"],
)
def test_a_solution_as_guess_brings_its_multipliers(problem):
    """Solved again, a problem is solved already; on finer steps they lead to the same solution as without them."""
    first = problem.solve(20)
    again = problem.solve(20, guess=first)
    assert again.success
    assert again.iterations <= 1
    np.testing.assert_allclose(again.x, first.x, atol=1e-7)
    bare = {"time": first.time, "controls": np.vstack([first.controls, first.controls[-1:]])}
    bare |= {"x": first.x} if first.model is None else {"q": first.q, "v": first.v}
    finer, cold = problem.solve(60, guess=first), problem.solve(60, guess=bare)
    assert finer.success
    assert finer.cost == pytest.approx(cold.cost, rel=1e-6)


def test_multipliers_of_other_problems_are_left_alone():
    """Other names, or a motion without success: the guess is a motion only."""
    first = Problem(MASS, 1.0, **REST).solve(20)
    assert warm(first.stages, first) is not None
    limited = Problem(MASS, 1.0, **REST, limits={"v": 1.2}).solve(20, guess=first)
    assert limited.success
    assert warm(limited.stages, first) is None
    assert warm(first.stages, Problem(MASS, 1.0, **REST).solve(20, iterations=0)) is None
    assert warm(first.stages, {"time": [0, 1]}) is None


@pytest.mark.parametrize("transcription", ["hermite-simpson", "trapezoidal"])
def test_controls_that_zigzag_are_named(transcription):
    """On a singular arc only sums of neighbouring controls matter, unless the control costs something."""

    def arc(weight=0.0, name=transcription):
        cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a])
        cost = running(lambda s: s.x**2 + s.v**2 + weight * s.a**2)
        return Problem(cart, 5.0, start={"x": 1, "v": 0}, limits={"a": 1.0}, cost=cost).solve(
            40, transcription=name
        )

    free = arc()
    assert free.success
    assert f"a zigzags from node to node, which {transcription!r} leaves open" in free.message
    assert "zigzags" in free.summary()
    assert arc(1e-3).message == "solved"
    assert arc(name="rk4").message == "solved"


def test_states_without_units_have_panels_of_their_own():
    """A position and a speed of different size are not drawn on one axis, those of the same unit are."""
    own = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    found = report.panels(Problem(own, 1.0, start={"x": 0, "v": 0}, end={"x": 1000, "v": 0}).solve(4))
    assert [(panel.title, list(panel.lines)) for panel in found] == [("x", ["x"]), ("v", ["v"]), ("u", ["u"])]
    units = {"x": "m", "y": "m", "u": "N"}
    own = System(["x", "y"], ["u"], lambda s: [s.u, s.x], units=units)
    found = report.panels(Problem(own, 1.0, start={"x": 0, "y": 0}, end={"x": 1}).solve(4))
    assert [list(panel.lines) for panel in found] == [["x", "y"], ["u"]]


def test_ranges_and_panels_have_units_and_limits():
    cart = al.library.cart_pole()
    problem = Problem(
        cart,
        1.5,
        start={"q": 0, "v": 0},
        end={"q": [0.3, 0.0], "v": 0},
        limits={"q": {"slide": 0.5}, "tau": 40.0},
    )
    solution = problem.solve(20)
    assert solution.success
    table = {row[0]: row[1:] for row in solution.ranges()}
    assert set(table) == {
        *(
            "slide position [m]",
            "hinge angle [rad]",
            "slide speed [m/s]",
            "hinge speed [rad/s]",
            "slide force [N]",
        )
    }
    assert table["slide position [m]"] == ("0 at 0 s", "0.3 at 1.5 s", "-0.5 .. 0.5")
    assert table["hinge speed [rad/s]"][2] == "-"
    motion = solution.motion()
    assert list(motion.series) == [
        *("forces [N]", "speeds [rad/s]", "speeds [m/s]", "angles [rad]", "positions [m]")
    ]
    assert motion.notes["steps"] == "20 of dmoc"
    data = solution.to_xarray()
    assert data.control_unit.values.tolist() == ["N"]
    assert data.coordinate_unit.values.tolist() == ["m", "rad"]
    assert data.attrs["solver"] == "sweep"


def test_units_of_a_system():
    units = {"x": "m", "force": "N"}
    mass = System(["x", "v"], ["force"], lambda s: [s.v, s.force / 2], units=units)
    solution = Problem(mass, 1.0, **REST).solve(10)
    assert solution.to_xarray().state_unit.values.tolist() == ["m", ""]
    assert [row[0] for row in solution.ranges()] == ["x [m]", "v", "force [N]"]


def test_parameters_of_the_solution_are_drawn():
    builder = al.ModelBuilder("pendulum")
    length = builder.parameter("l", 0.8)
    builder.body("rod", al.Inertia.rod(1.0, (0, 0, 0), (0, 0, -length)), joint=al.Revolute(axis=(0, 1, 0)))
    model = builder.build()
    problem = Problem(model, 1.0, start={"q": 0, "v": 0}, end={"q": [1.0], "v": 0}, parameters={"l": 0.5})
    assert problem.solve(10).motion().parameters == {"l": 0.5}


def test_steps_that_are_too_long_are_told():
    """Euler's method has no idea of a vibration of 20 rad/s with steps of 0.1 s."""
    spring = System(["x", "v"], ["u"], lambda s: [s.v, s.u - 400 * s.x])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 0.1, "v": 0}}
    coarse = Problem(spring, 1.0, **ends).solve(10, transcription="euler")
    assert coarse.converged
    assert not coarse.success
    assert coarse.status == "coarse"
    assert "an optimum of this mesh rather than of the problem: v is off by" in coarse.message
    assert coarse.check.is_coarse
    assert "The steps are too long for this motion: one is off by" in coarse.summary()
    fine = Problem(spring, 1.0, **ends).solve(100, transcription="radau")
    assert fine.check.share < 1e-6
    assert "too long" not in fine.summary()


def test_jumps_of_controls_whose_rates_are_limited_are_told():
    """Between the last value before a node and the first one after it a straight line of Radau's has room for a jump."""
    cart = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    fastest = Problem(cart, (0.1, 10.0), **ends, limits={"u": 1.0, "rate": {"u": 2.0}}, cost=duration())
    rough, smooth = (fastest.solve(20, transcription=name) for name in ("radau-3", "hermite-simpson"))
    size, at = re.search(
        r"u jumps by (\S+) at the node at t = (\S+) s, although its rate is limited", rough.message
    ).groups()
    node = rough.time[np.argmin(np.abs(rough.time - float(at)))]
    before, after = (rough.control_at(node + d)[0] for d in (-1e-9, 1e-9))
    assert abs(after - before) == pytest.approx(float(size), rel=0.05)  # it is told to two digits
    assert smooth.message == "solved"


@pytest.mark.parametrize("transcription", ["rk4", "radau"])
def test_a_node_belongs_to_the_interval_that_begins_there(transcription):
    """Also where t/T is not the fraction that the node is at: else controls and gains jump just after the times that
    `controller().breaks` tells."""
    model = al.library.two_link()
    ends = {"start": {"q": [-1.0, 0.3], "v": 0}, "end": {"q": [0.5, 0.0], "v": 0}}
    solution = Problem(model, 3.0, **ends).solve(60, transcription=transcription)
    k = np.arange(60)
    np.testing.assert_array_equal(
        solution.control_at(solution.time[:-1]), solution.control_within(k, np.zeros(60))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        al.simulate(model, solution.q[0], solution.v[0], duration=3.0, controller=solution.controller())


def test_the_controller_tells_its_end():
    """Once: its last controls keep no motion."""
    model = al.library.two_link()
    ends = {"start": {"q": [-1.0, 0.3], "v": 0}, "end": {"q": [0.5, 0.0], "v": 0}}
    solution = Problem(model, 1.0, **ends).solve(20)
    with pytest.warns(al.AlembertWarning, match="after the end of the solution at 1 s") as told:
        al.simulate(
            model, solution.q[0], solution.v[0], duration=2.0, step=0.01, controller=solution.controller()
        )
    assert sum("after the end" in str(one.message) for one in told) == 1
