"""Least time and least fuel: controls that jump from bound to bound, steering with a control of constant size."""

from typing import Any

import casadi as ca
import numpy as np

from alembert.joints import Spherical
from alembert.model import Inertia, ModelBuilder
from alembert.optimal import Problem, System, duration, running
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989


def _steps(times: np.ndarray, values: np.ndarray) -> Line:
    return Line("", np.repeat(times, 2)[1:-1], np.repeat(values, 2))


@case(
    source="Closed form: with g = 1.5 and thrust up to 3, from 10 up at -2: fall, then full thrust; fuel 2 sqrt(17)",
    kind="closed form",
    tags=("optimal",),
    parameters={"g": 1.5, "thrust": 3.0, "accuracy": 1e-6},
)
def moon_lander(g: float, thrust: float, accuracy: float) -> Items:
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
    tags=("optimal",),
    parameters={"accuracy": 1e-5},
)
def fastest_slew(accuracy: float) -> Items:
    """Half a turn of a ball with three bounded torques: not about the axis of the turn."""
    builder = ModelBuilder("ball", gravity=(0, 0, 0))
    builder.body(
        "ball", Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0)), joint=Spherical(), joint_name="turn"
    )
    ends: dict[str, Any] = {"start": {"q": [1, 0, 0, 0], "v": 0}, "end": {"q": [0, 0, 0, 1], "v": 0}}
    problem = Problem(builder.build(), (1.0, 10.0), **ends, limits={"tau": 1.0}, cost=duration())
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
    yield Check("less than about the axis [s]", float(solution.duration < eigenaxis), 1.0, 0.0, "2 sqrt(pi)")
    yield Plot("t [s]", "torque about z", (_steps(solution.time, solution.controls[:, 2]),))


@case(
    source=acc1989(
        "Bless, Hodges, Calise",
        "finite elements in time on the transfer of `bless_transfer`; T sqrt(a/h) computed independently by the rule",
    ),
    kind="reference",
    tags=("optimal", "acc1989"),
    parameters={"ratio": 0.75, "times": ((2, 2.17298), (4, 2.13972), (8, 2.12621), (16, 2.12235))},
)
def bless_elements(ratio: float, times: tuple[tuple[int, float], ...]) -> Items:
    """Their weak form with elements of the lowest order is the implicit midpoint rule: the same numbers at every mesh."""
    speed = 1 / np.sqrt(ratio)
    craft = System(["x", "y", "vx", "vy"], ["u"], lambda m: [m.vx, m.vy, ca.cos(m.u), ca.sin(m.u)])
    problem = Problem(
        craft,
        (0.5, 10.0),
        start={"x": 0, "y": 0, "vx": 0, "vy": 0},
        end={"y": 1, "vx": speed, "vy": 0},
        cost=duration(),
    )
    guess = {"time": [0, 2], "x": [[0, 0, 0, 0], [1, 1, speed, 0]], "controls": [[1.0], [-1.0]]}
    found = []
    for elements, time in times:
        solution = problem.solve(elements, transcription="midpoint", guess=guess)
        yield Check(f"T sqrt(a/h), {elements} elements", solution.duration, time, 6e-6, "six digits")
        found.append(solution.duration)
    yield Plot("elements", "T sqrt(a/h)", (Line("", np.array([n for n, _ in times]), np.array(found)),))


@case(
    source="Closed form: full thrust to the middle and back, 2 sqrt(way)",
    kind="closed form",
    tags=("optimal",),
    parameters={"way": 4.0},
)
def fastest_push(way: float) -> Items:
    """A mass with a bounded force, from rest to rest; the switch is at a node."""
    mass = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    ends: dict[str, Any] = {"start": {"x": 0, "v": 0}, "end": {"x": way, "v": 0}}
    solution = Problem(mass, (0.5, 20.0), **ends, limits={"u": 1.0}, cost=duration()).solve(
        20, transcription="rk4"
    )
    yield Check("time [s]", solution.duration, 2 * np.sqrt(way), 1e-6, "the barrier of 20 bounds at 1e-9")
    yield Plot("t [s]", "x", (Line("", solution.time, solution.state("x")),))


@case(
    source="Maurer, Osmolovskii, Second order sufficient conditions for time-optimal bang-bang control, SIAM J. Control "
    "Optim. 42 (2004): van der Pol oscillator from (-0.4, 0.6) to (0.6, 0.4), 1.2540747",
    kind="published",
    tags=("optimal",),
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
    yield Plot("x", "y", (Line("", solution.state("x"), solution.state("y")),))


@case(
    source="Maurer, Augustin, Sensitivity analysis and real-time control of parametric optimal control problems (2001): "
    "Rayleigh problem with |u| <= 4 in least time, 3.66817",
    kind="published",
    tags=("optimal",),
)
def rayleigh_least_time() -> Items:
    """The least time to rest of an electric circuit with a tunnel diode."""
    system = System(["x", "y"], ["u"], lambda s: [s.y, -s.x + s.y * (1.4 - 0.14 * s.y**2) + s.u])
    ends: dict[str, Any] = {"start": {"x": -5, "y": -5}, "end": {"x": 0, "y": 0}}
    problem = Problem(system, (1.0, 6.0), **ends, limits={"u": 4.0}, cost=duration())
    solution = problem.solve(60, transcription="rk4", accuracy=1e-5)
    yield Check("time [s]", solution.duration, 3.66817, 4e-5, "the accuracy that is asked for; six digits")
    yield Plot("x", "y", (Line("", solution.state("x"), solution.state("y")),))


@case(
    source="Closed form: heading 1/sqrt(1 - c^2) against a current c, of a boat with speed 1",
    kind="closed form",
    tags=("optimal",),
    parameters={"current": 0.6},
)
def boat_across_a_river(current: float) -> Items:
    """Straight across a river with an even current."""
    boat = System(["x", "y"], ["a"], lambda s: [ca.cos(s.a) + current, ca.sin(s.a)])
    problem = Problem(boat, (0.5, 5.0), start={"x": 0, "y": 0}, end={"x": 0, "y": 1}, cost=duration())
    guess = {"time": [0, 1.5], "x": [[0, 0], [0, 1]], "controls": [[2.0], [2.0]]}
    solution = problem.solve(10, transcription="rk4", guess=guess)
    yield Check("time", solution.duration, 1 / np.sqrt(1 - current**2), 1e-7, "constant controls are exact")
    yield Plot("x", "y", (Line("", solution.state("x"), solution.state("y")),))


@case(
    source="Bryson, Ho, Applied optimal control (1975), 2.7: Zermelo's boat, current growing with y, from (3.66, -1.86)",
    kind="published",
    tags=("optimal",),
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
    yield Plot("x", "y", (Line("", solution.state("x"), solution.state("y")),))
