"""Least time and least fuel: controls that jump from bound to bound, steering with a control of constant size.

Sohl and Bobrow 2001: arms and acrobots at the least effort.

Optimal control in phases: an orbit raised by two burns, a rocket of two stages.
"""

from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal import (
    Moment,
    Phases,
    Problem,
    System,
    duration,
    examples,
    running,
    solve_splines,
    terminal,
)
from alembert.verify.case import SOHL_BOBROW, Check, Items, Line, Plot, acc1989, family
from alembert.verify.cases.optimal_designs import turned_thrust
from alembert.verify.mechanisms import rigid_body

case = family("optimal")


def _steps(times: np.ndarray, values: np.ndarray) -> Line:
    return Line("", np.repeat(times, 2)[1:-1], np.repeat(values, 2))


@case(
    source="Closed form: with g = 1.5 and thrust up to 3, from 10 up at -2: fall, then full thrust; fuel 2 sqrt(17)",
    kind="closed form",
)
def moon_lander(g: float = 1.5, thrust: float = 3.0, accuracy: float = 1e-6) -> Items:
    """A soft landing with the least fuel; the mesh finds the switch."""
    system = System(["h", "v"], ["u"], lambda s: [s.v, s.u - g])
    ends: dict[str, Any] = {"start": {"h": 10, "v": -2}, "end": {"h": 0, "v": 0}}
    problem = Problem(system, (1.0, 10.0), **ends, limits={"u": (0, thrust)}, cost=running(lambda s: s.u))
    solution = problem.solve(20, transcription="rk4", accuracy=accuracy)
    best = 2 * np.sqrt(17)
    reason = "the accuracy that is asked for, of the cost; times by the slope of the fuel along them, which is of order 1"
    yield Check("fuel", solution.cost, best, 10 * accuracy * best, reason)
    yield Check("time [s]", solution.duration, 4.164140834, 10 * accuracy * best, reason)
    at = np.searchsorted(-(solution.control("u") < thrust / 2).astype(int), -0.5)
    yield Check(
        "switch [s]", solution.time[at], 1.415403750, 2e-3, "within the shortest intervals of the mesh"
    )
    yield Plot("t [s]", "thrust", (_steps(solution.time, solution.control("u")),))


@case(
    source="""Bilimoria, Wie, Time-optimal three-axis reorientation of a rigid spacecraft, J. Guidance 16 (1993): five
    switches; 3.2430832758 from an independent calculation""",
    kind="reference",
)
def fastest_slew(accuracy: float = 1e-5) -> Items:
    """Half a turn of a ball with three bounded torques: not about the axis of the turn."""
    ends: dict[str, Any] = {"start": {"q": [1, 0, 0, 0], "v": 0}, "end": {"q": [0, 0, 0, 1], "v": 0}}
    problem = Problem(rigid_body((1.0, 1.0, 1.0)), (1.0, 10.0), **ends, limits={"tau": 1.0}, cost=duration())
    t = np.linspace(0, 3.5, 41)
    angle, still = np.pi * t / 3.5, np.zeros_like(t)
    torque = [np.cos(3 * angle) / 2, np.sin(2 * angle) / 2, np.where(t < 1.75, 0.9, -0.9)]
    guess = {
        "time": t,
        "q": np.column_stack([np.cos(angle / 2), still, still, np.sin(angle / 2)]),
        "v": np.column_stack([still, still, still + np.pi / 3.5]),
        "controls": np.column_stack(torque),
    }
    solution = problem.solve(40, transcription="rk4", guess=guess, accuracy=accuracy)
    yield Check("time [s]", solution.duration, 3.2430832758, 3.3 * accuracy, "the accuracy that is asked for")
    eigenaxis = 2 * np.sqrt(np.pi)
    yield Check.holds("less than about the axis [s]", solution.duration < eigenaxis, "2 sqrt(pi)")
    yield Plot("t [s]", "torque about z", (_steps(solution.time, solution.controls[:, 2]),))


@case(
    source=acc1989(
        "Bless, Hodges, Calise",
        "finite elements in time on the transfer of `bless_transfer`; T sqrt(a/h) computed independently by the rule",
    ),
    kind="reference",
    tags=("acc1989",),
)
def bless_elements(
    ratio: float = 0.75,
    times: tuple[tuple[int, float], ...] = ((2, 2.17298), (4, 2.13972), (8, 2.12621), (16, 2.12235)),
) -> Items:
    """Their weak form with elements of the lowest order is the implicit midpoint rule: the same numbers at every mesh."""
    problem, guess = turned_thrust(1 / np.sqrt(ratio))
    found = []
    for elements, time in times:
        solution = problem.solve(elements, transcription="midpoint", guess=guess)
        yield Check(f"T sqrt(a/h), {elements} elements", solution.duration, time, 6e-6, "six digits")
        found.append(solution.duration)
    yield Plot.line("elements", "T sqrt(a/h)", np.array([n for n, _ in times]), np.array(found))


@case(source="Closed form: full thrust to the middle and back, 2 sqrt(way)", kind="closed form")
def fastest_push(way: float = 4.0) -> Items:
    """A mass with a bounded force, from rest to rest; the switch is at a node."""
    mass = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends: dict[str, Any] = {"start": {"x": 0, "v": 0}, "end": {"x": way, "v": 0}}
    solution = Problem(mass, (0.5, 20.0), **ends, limits={"u": 1.0}, cost=duration()).solve(
        20, transcription="rk4"
    )
    yield Check("time [s]", solution.duration, 2 * np.sqrt(way), 1e-6, "the barrier of 20 bounds at 1e-9")
    yield Plot.line("t [s]", "x", solution.time, solution.state("x"))


@case(
    source="Maurer, Osmolovskii, Second order sufficient conditions for time-optimal bang-bang control, SIAM J. Control "
    "Optim. 42 (2004): van der Pol oscillator from (-0.4, 0.6) to (0.6, 0.4), 1.2540747",
    kind="published",
)
def van_der_pol_least_time() -> Items:
    """The least time between two states of an oscillator with a bounded force."""
    system = System(["x", "y"], ["u"], lambda s: [s.y, -s.x + s.y * (1 - s.x**2) + s.u])
    ends: dict[str, Any] = {"start": {"x": -0.4, "y": 0.6}, "end": {"x": 0.6, "y": 0.4}}
    problem = Problem(system, (0.5, 4.0), **ends, limits={"u": 1.0}, cost=duration())
    solution = problem.solve(40, transcription="rk4", accuracy=1e-6)
    yield Check(
        "time [s]", solution.duration, 1.2540747, 1e-6, "the accuracy that is asked for; eight digits"
    )
    yield Plot.line("x", "y", solution.state("x"), solution.state("y"))


@case(
    source="Maurer, Augustin, Sensitivity analysis and real-time control of parametric optimal control problems (2001): "
    "Rayleigh problem with |u| <= 4 in least time, 3.66817",
    kind="published",
)
def rayleigh_least_time() -> Items:
    """The least time to rest of an electric circuit with a tunnel diode."""
    system = System(["x", "y"], ["u"], lambda s: [s.y, -s.x + s.y * (1.4 - 0.14 * s.y**2) + s.u])
    ends: dict[str, Any] = {"start": {"x": -5, "y": -5}, "end": {"x": 0, "y": 0}}
    problem = Problem(system, (1.0, 6.0), **ends, limits={"u": 4.0}, cost=duration())
    solution = problem.solve(60, transcription="rk4", accuracy=1e-5)
    yield Check("time [s]", solution.duration, 3.66817, 4e-5, "the accuracy that is asked for; six digits")
    yield Plot.line("x", "y", solution.state("x"), solution.state("y"))


@case(
    source="Closed form: heading 1/sqrt(1 - c^2) against a current c, of a boat with speed 1",
    kind="closed form",
)
def boat_across_a_river(current: float = 0.6) -> Items:
    """Straight across a river with an even current."""
    boat = System(["x", "y"], ["a"], lambda s: [ca.cos(s.a) + current, ca.sin(s.a)])
    problem = Problem(boat, (0.5, 5.0), start={"x": 0, "y": 0}, end={"x": 0, "y": 1}, cost=duration())
    guess = {"time": [0, 1.5], "x": [[0, 0], [0, 1]], "controls": [[2.0], [2.0]]}
    solution = problem.solve(10, transcription="rk4", guess=guess)
    yield Check("time", solution.duration, 1 / np.sqrt(1 - current**2), 1e-7, "constant controls are exact")
    yield Plot.line("x", "y", solution.state("x"), solution.state("y"))


@case(
    source="Bryson, Ho, Applied optimal control (1975), 2.7: Zermelo's boat, current growing with y, from (3.66, -1.86)",
    kind="published",
)
def zermelo() -> Items:
    """The fastest way through a current that shears; headings from 105 to 240 degrees."""
    boat = System(["x", "y"], ["a"], lambda s: [ca.cos(s.a) - s.y, ca.sin(s.a)])
    problem = Problem(boat, (2.0, 10.0), start={"x": 3.66, "y": -1.86}, end={"x": 0, "y": 0}, cost=duration())
    guess = {"time": [0, 5], "x": [[3.66, -1.86], [0, 0]], "controls": [[1.83], [4.19]]}
    solution = problem.solve(40, guess=guess)
    for name, at, heading in (("first", 0, 105.0), ("last", -1, 240.0)):
        yield Check(
            f"{name} heading [deg]",
            np.degrees(solution.control("a")[at]),
            heading,
            2.0,
            "three digits, means",
        )
    # 1/cos a - y is the same all along (the Hamiltonian)
    ends = 1 / np.cos(solution.control_at([0.0, solution.duration])[:, 0])
    yield Check(
        "1/cos a over the way",
        float(ends[1] - ends[0]),
        1.86,
        1e-5,
        "controls at the ends of 40 steps of order 4",
    )
    yield Plot.line("x", "y", solution.state("x"), solution.state("y"))


@case(
    source=f"""{SOHL_BOBROW}, section 5.1: planar 2R arm from lying to standing with the least effort, Figure
    2""",
    kind="published",
    tags=("tree",),
    slow=True,
    missing="masses, lengths and time: the cost 9.9 cannot be compared, the kind of motion can",
)
def sohl_bobrow_arm() -> Items:
    """It swings down first and folds its second link; splines of the joints come near the optimum among all motions."""
    problem = examples.arm().problem
    best, lifted = examples.arm().solve(), problem.solve(100)
    yield Check.holds("solved", best.success and lifted.success, "the solver says so")
    yield Check.holds("it swings down first", best.q[:, 0].min() < -1, "the published motion")
    yield Check.holds("it folds up", np.abs(best.q[:, 1]).max() > 2.0, "the published motion")
    cheaper = best.cost < lifted.cost / 2
    yield Check.holds("at half the effort of lifting at once", cheaper, "both are local optima")
    splines = solve_splines(problem, 100, control_points=28, guess=best)
    reason = "28 control points for each joint; 40 change the cost by 1e-4"
    yield Check("cost of splines, relative", splines.cost / best.cost, 1.0, 0.005, reason)
    lines = tuple(Line(n, best.time, best.q[:, k]) for k, n in enumerate(("shoulder", "elbow")))
    yield Plot("t [s]", "q [rad]", lines)


@case(
    source=f"""{SOHL_BOBROW}, sections 5.2 and 5.3: acrobot from q1 = -1.0 and -1.3, branched acrobot from
    -1.0""",
    kind="published",
    tags=("tree",),
    slow=True,
    missing="masses, lengths and time: those of alembert.library, 4 s; no costs are printed",
)
def sohl_bobrow_acrobots() -> Items:
    """The passive base joint swings up to the vertical; IPOPT on the smallest form and FATROP find the same motion."""
    lines = []
    for name, example in (
        ("acrobot from -1.0", examples.acrobot(-1.0)),
        ("acrobot from -1.3", examples.acrobot(-1.3)),
        ("branched from -1.0", examples.branched_acrobot()),
    ):
        solution = example.solve()
        yield Check.holds(f"{name}: solved", solution.success, "the solver says so")
        off = np.abs([solution.q[-1, 0] - np.pi / 2, *solution.v[-1]]).max()
        yield Check(f"{name}: from upright at rest", off, 0.0, 1e-7, "tolerance of the solver")
        passive = np.abs(solution.efforts[:, 0]).max()
        yield Check(f"{name}: torque of the base [N m]", passive, 0.0, 0.0, "it has no motor")
        for solver in ("ipopt", "fatrop"):
            change = example.solve(solver=solver).cost / solution.cost - 1
            yield Check(f"{name}: cost by {solver}", change, 0.0, 1e-6, "both to 1e-8 of their slopes")
        lines.append(Line(name, solution.time, solution.q[:, 0]))
    yield Plot("t [s]", "q of the base [rad]", tuple(lines))


@case(
    source="Closed form: Tsiolkovsky's equation for both stages, less what gravity takes; full thrust is optimal",
    kind="closed form",
)
def two_stage_rocket(
    exhaust: tuple[float, float] = (2600.0, 4200.0),
    thrust: tuple[float, float] = (1.6e6, 5e5),
    g: float = 9.81,
) -> Items:
    """Straight up with the highest speed in the end: 100 t burn to 40, 8 are dropped, 32 burn to 10."""

    def stage(k: int, last: float, **more: object) -> Problem:
        system = System(["h", "v", "m"], ["u"], lambda s: [s.v, s.u / s.m - g, -s.u / exhaust[k]])
        return Problem(system, (20.0, 400.0), limits={"u": (0, thrust[k])}, end={"m": last}, **more)  # type: ignore[arg-type]

    first = stage(0, 4e4, start={"h": 0, "v": 0, "m": 1e5}, cost=terminal(lambda s: 0 * s.m))
    second = stage(1, 1e4, cost=terminal(lambda s: -s.v))
    rocket = Phases({"first": first, "second": second}, links={"second": {"m": lambda s: s.m - 8e3}})
    guess = {
        "first": {"time": [0, 120], "x": [[0, 0, 1e5], [6e4, 1200, 4e4]], "controls": [[1.2e6], [1.2e6]]},
        "second": {"time": [0, 250], "x": [[6e4, 1200, 3.2e4], [4e5, 4000, 1e4]], "controls": [[4e5], [4e5]]},
    }
    solution = rocket.solve(20, guess=guess)
    times = (6e4 * exhaust[0] / thrust[0], 2.2e4 * exhaust[1] / thrust[1])
    speed = exhaust[0] * np.log(100 / 40) + exhaust[1] * np.log(32 / 10) - g * sum(times)
    reason = "Hermite-Simpson with 20 steps, on 1/m"
    yield Check("speed [m/s]", -solution.cost, speed, 1e-6 * speed, reason)
    for name, time in zip(("first", "second"), times, strict=True):
        yield Check(
            f"time of the {name} stage [s]",
            solution[name].duration,
            time,
            1e-6 * time,
            "the barrier on thrust",
        )
    height = float(solution["second"].state("h")[-1])
    yield Check("height [m]", height, 513811.044, 5.0, "the same, integrated once more")
    lines = tuple(Line(name, solution[name].time, solution[name].state("v")) for name in ("first", "second"))
    yield Plot("t [s]", "v [m/s]", lines)


@case(
    source="""Two-burn transfer between circular orbits of radius 1 and 3 in canonical units, acceleration 0.1 at first,
    exhaust speed 1.5; reference values from an independent calculation by shooting on the conditions for a minimum""",
    kind="reference",
)
def two_burns(radius: float = 3.0, steps: int = 40) -> Items:
    """Burn, coast, burn to a higher circular orbit with the least change of speed; all three durations are free."""

    def rates(s: Moment, thrust: bool) -> list[ca.SX]:
        push, turn = (s.a * ca.sin(s.u), s.a * ca.cos(s.u)) if thrust else (0, 0)
        gains = s.a**2 / 1.5 if thrust else 0 * s.a
        return [s.vr, s.vt**2 / s.r - 1 / s.r**2 + push, -s.vr * s.vt / s.r + turn, gains]

    names = ["r", "vr", "vt", "a"]
    burning = System(names, ["u"], lambda s: rates(s, True))
    coasting = System(names, [], lambda s: rates(s, False))
    spent = running(lambda s: s.a)
    flight = Phases(
        {
            "burn": Problem(burning, (0.5, 5.0), start={"r": 1, "vr": 0, "vt": 1, "a": 0.1}, cost=spent),
            "coast": Problem(coasting, (2.0, 12.0)),
            "last burn": Problem(
                burning, (0.3, 4.0), end={"r": radius, "vr": 0, "vt": radius**-0.5}, cost=spent
            ),
        }
    )
    guess = {
        "burn": {"time": [0, 2.2], "x": [[1, 0, 1, 0.1], [1.2, 0.2, 1.05, 0.12]], "controls": [[0.4], [0.5]]},
        "coast": {"time": [0, 7.0], "x": [[1.2, 0.2, 1.05, 0.12], [2.9, 0.05, 0.45, 0.12]]},
        "last burn": {
            "time": [0, 1.3],
            "x": [[2.9, 0.05, 0.45, 0.12], [3, 0, 0.577, 0.13]],
            "controls": [[0.0], [0.0]],
        },
    }
    solution = flight.solve(steps, guess=guess)
    reason = "steps of order 4: 3.5e-5, 2.2e-6 and 1.4e-7 with 10, 20 and 40 of them"
    yield Check("change of speed", solution.cost, 0.39948783288, 2e-7, reason)
    for name, time in (("burn", 2.23479681), ("coast", 7.37857894), ("last burn", 1.27235461)):
        yield Check(
            f"duration of {name}",
            solution[name].duration,
            time,
            1e-5,
            "the minimum is flat: its error's root",
        )
    lines = tuple(Line(name, solution[name].time, solution[name].state("r")) for name in flight.phases)
    yield Plot("t", "r", lines)
