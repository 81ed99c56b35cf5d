"""Published problems with smooth controls: orbits, reactors, oscillators, obstacles."""

from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal import Moment, Problem, System, running, terminal
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Bryson, Ho, Applied optimal control (1975), 2.5: thrust 0.1405, mass flow 0.07489, 3.32 units of time; "
    "radius 1.525",
    kind="published",
    tags=("optimal",),
    parameters={"thrust": 0.1405, "flow": 0.07489, "time": 3.32},
)
def largest_orbit(thrust: float, flow: float, time: float) -> Items:
    """The largest circular orbit that a small steady thrust reaches in a given time."""

    def rates(s: Moment) -> list[ca.SX]:
        a = thrust / (1 - flow * s.t)
        return [s.u, s.v**2 / s.r - 1 / s.r**2 + a * ca.sin(s.a), -s.u * s.v / s.r + a * ca.cos(s.a)]

    end = {"u": 0, "circular": (lambda s: s.v - 1 / ca.sqrt(s.r), 0.0)}
    system = System(["r", "u", "v"], ["a"], rates)
    problem = Problem(system, time, start={"r": 1, "u": 0, "v": 1}, end=end, cost=terminal(lambda s: -s.r))
    guess = {
        "time": [0, 1.6, 1.7, time],
        "x": [[1, 0, 1], [1.2, 0.2, 1], [1.25, 0.2, 0.95], [1.5, 0, 0.8]],
        "controls": [[0.5], [1.5], [4.7], [5.5]],
    }
    solution = problem.solve(60, transcription="rk4", guess=guess)
    yield Check(
        "radius", -solution.cost, 1.525, 5e-4, "four digits of print; 60 steps of order 2 in the control"
    )
    yield Plot("t", "r", (Line("", solution.time, solution.state("r")),))


@case(
    source="Jacobson, Mayne, Differential dynamic programming (1970), Rayleigh equation, cost 29.376 (Maurer: 29.376080)",
    kind="published",
    tags=("optimal",),
)
def rayleigh() -> Items:
    """An electric circuit with a tunnel diode, brought towards rest with little current."""
    system = System(["x", "y"], ["u"], lambda s: [s.y, -s.x + s.y * (1.4 - 0.14 * s.y**2) + 4 * s.u])
    cost = running(lambda s: s.u**2 + s.x**2)
    solution = Problem(system, 2.5, start={"x": -5, "y": -5}, cost=cost).solve(30, accuracy=1e-6)
    yield Check("cost", solution.cost, 29.376080, 3e-4, "ten times the accuracy that is asked for")
    yield Plot("t", "u", (Line("", solution.time[:-1], solution.control("u")),))


@case(
    source="Logsdon, Biegler, Accurate solution of differential-algebraic optimization problems (1989): batch reactor, "
    "0.57353",
    kind="published",
    tags=("optimal",),
)
def batch_reactor() -> Items:
    """The most of B in A -> B, A -> C, by temperature."""
    system = System(["a", "b"], ["u"], lambda s: [-(s.u + s.u**2 / 2) * s.a, s.u * s.a])
    problem = Problem(
        system, 1.0, start={"a": 1, "b": 0}, limits={"u": (0, 5)}, cost=terminal(lambda s: -s.b)
    )
    guess = {"time": [0, 1], "x": [[1, 0], [0.3, 0.5]], "controls": [[1.0], [1.0]]}
    solution = problem.solve(50, transcription="rk4", guess=guess)
    yield Check(
        "B", -solution.cost, 0.57353, 5e-5, "five digits of print; 50 steps of order 2 in the control"
    )
    yield Plot("t", "u", (Line("", solution.time[:-1], solution.control("u")),))


@case(
    source="Kirk, Optimal control theory (1970), example 6.2-2: stirred tank reactor, cost 0.02660",
    kind="published",
    tags=("optimal",),
)
def stirred_tank() -> Items:
    """A chemical reactor is brought back to its state at rest by cooling."""

    def rates(s: Moment) -> list[ca.SX]:
        r = (s.y + 0.5) * ca.exp(25 * s.x / (s.x + 2))
        return [-2 * (s.x + 0.25) + r - s.u * (s.x + 0.25), 0.5 - s.y - r]

    cost = running(lambda s: s.x**2 + s.y**2 + 0.1 * s.u**2)
    solution = Problem(System(["x", "y"], ["u"], rates), 0.78, start={"x": 0.05, "y": 0}, cost=cost).solve(40)
    yield Check("cost", solution.cost, 0.02660, 5e-6, "four digits of print")
    yield Plot("t", "u", (Line("", solution.time[:-1], solution.control("u")),))


@case(
    source="Becerra, PSOPT manual (2010), obstacle avoidance problem: 4.571044",
    kind="published",
    tags=("optimal",),
    parameters={"speed": 2.138},
)
def two_obstacles(speed: float) -> Items:
    """A vehicle of constant speed passes two discs."""
    vehicle = System(["x", "y"], ["a"], lambda s: [speed * ca.cos(s.a), speed * ca.sin(s.a)])
    path = {
        "one": (lambda s: (s.x - 0.4) ** 2 + (s.y - 0.5) ** 2, 0.1, np.inf),
        "two": (lambda s: (s.x - 0.8) ** 2 + (s.y - 1.5) ** 2, 0.1, np.inf),
    }
    cost = running(lambda s: speed**2 * (ca.cos(s.a) ** 2 + ca.sin(s.a) ** 2))
    ends: dict[str, Any] = {"start": {"x": 0, "y": 0}, "end": {"x": 1.2, "y": 1.6}}
    solution = Problem(vehicle, 1.0, **ends, path=path, cost=cost).solve(40, transcription="rk4")
    yield Check("cost", solution.cost, 4.571044, 1e-6, "the square of the speed")
    for name, x, y in (("one", 0.4, 0.5), ("two", 0.8, 1.5)):
        room = np.hypot(solution.state("x") - x, solution.state("y") - y).min()
        yield Check(
            f"within disc {name}", min(float(room - np.sqrt(0.1)), 0.0), 0.0, 1e-6, "the tolerance, at nodes"
        )
    yield Plot("x", "y", (Line("", solution.state("x"), solution.state("y")),))


@case(
    source="Closed form: x'' = u with 1/2 int u^2, from rest to rest over 1 in 1 s: u = 6 - 12 t",
    kind="closed form",
    tags=("optimal",),
    parameters={"steps": (4, 8)},
)
def least_effort(steps: tuple[int, ...]) -> Items:
    """Every transcription on the simplest problem there is: 6, or 6/(1 - h^2) where controls are held."""
    mass = System(["x", "v"], ["u"], lambda s: [s.v, s.u])
    problem = Problem(mass, 1.0, start={"x": 0, "v": 0}, end={"x": 1, "v": 0})
    for n in steps:
        for name in ("rk4", "midpoint", "hermite-simpson"):
            held = 1 - n**-2 if name != "hermite-simpson" else 1.0
            reason = "exact: rounding, and the tolerance of 1e-8"
            yield Check(
                f"{name}, {n} steps", problem.solve(n, transcription=name).cost, 6 / held, 1e-7, reason
            )
