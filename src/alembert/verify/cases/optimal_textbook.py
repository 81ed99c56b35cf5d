"""Small optimal-control problems of the literature.

The oldest optimal problems: the fastest slide, the hanging chain.

Published problems with smooth controls: orbits, reactors, oscillators, obstacles.
"""

from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.optimal import Moment, Phases, Problem, System, examples, running, terminal, through
from alembert.verify.case import COPS, Check, Items, Line, Plot, family

case = family("optimal")


@case(
    source="Bryson, Denham, Dreyfus, Optimal programming problems with inequality constraints (1963), "
    "closed form J = 4/(9 l)",
    kind="closed form",
)
def bryson_denham(limit: float = 1 / 9) -> Items:
    """Half the integral of the squared acceleration of a mass that may not go beyond 1/9."""
    example = examples.bryson_denham(limit)
    solution = example.solve(200)
    yield Check(
        "cost", solution.cost, example.published, 1e-5, "Hermite-Simpson with 200 steps; bounds at nodes only"
    )
    yield Check(
        "most x", solution.state("x").max(), limit, 1e-7, "the barrier leaves a distance of its least value"
    )
    yield Plot.line("t [s]", "x [m]", solution.time, solution.state("x"))


@case(source=f"{COPS}, catalyst mixing, n = 100", kind="published")
def catalyst_mixing() -> Items:
    """The mixture of two catalysts that makes most of the product: one, a singular arc, the other."""
    tube = System(
        ["x1", "x2"], ["u"], lambda s: [s.u * (10 * s.x2 - s.x1), s.u * (s.x1 - 10 * s.x2) - (1 - s.u) * s.x2]
    )
    problem = Problem(
        tube, 1.0, start={"x1": 1, "x2": 0}, limits={"u": (0, 1)}, cost=terminal(lambda s: s.x1 + s.x2 - 1)
    )
    guess = {"time": [0, 1], "x": [[1, 0], [0.9, 0.05]], "controls": [[0.5], [0.5]]}
    solution = problem.solve(100, transcription="rk4", guess=guess)
    yield Check(
        "cost",
        solution.cost,
        -0.0480556,
        5e-7,
        "six digits of print; methods and numbers of steps differ by 3e-7",
    )
    yield Plot.line("along the tube", "u", solution.time[: len(solution.control("u"))], solution.control("u"))


@case(source=f"{COPS}, Goddard rocket, n = 400", kind="published")
def goddard_rocket() -> Items:
    """The greatest altitude of a rocket, with a singular arc and a free final time."""
    example = examples.goddard()
    solution = example.solve()
    yield Check("altitude", -solution.cost, -example.published, 1e-5, "six digits of print")
    yield Plot.line("t", "thrust", solution.time[:-1], solution.control("thrust"))


@case(
    source="Hager, Runge-Kutta methods in optimal control and the transformed adjoint system (2000)",
    kind="closed form",
)
def hager_optimal_control() -> Items:
    """Least 1/2 int 1.25 y^2 + y u + u^2 with y' = y/2 + u, y(0) = 1."""
    example = examples.hager()
    solution, exact = example.solve(), example.published
    yield Check("closed form", exact, 0.3807970780, 1e-10, "ten digits")
    yield Check("cost", solution.cost, exact, 1e-8, "order 4 with 50 steps")


@case(
    source="Betts, Practical methods for optimal control using nonlinear programming, example 10.7; cost 6.7241, and "
    "6.724113810 computed independently on an infinite horizon",
    kind="published",
)
def hypersensitive() -> Items:
    """The equation y' = -y^3 + u over 10000 s, of which only the first and the last few matter."""
    example = examples.hypersensitive()
    solution = example.solve()
    yield Check("cost", solution.cost, example.published, 1e-4, "the last digit in print")
    begin = solution.time < 10
    yield Plot.line("t [s]", "y", solution.time[begin], solution.state("y")[begin])


@case(
    source="""Rao, Mease, Dichotomic basis approach to solving hyper-sensitive optimal control problems, Automatica 35
    (1999), linear example; closed form from the two exponentials exp(+-sqrt(2) t)""",
    kind="closed form",
)
def linear_hypersensitive(time: float = 10.0, start: float = 1.5, end: float = 1.0) -> Items:
    """The least 1/2 int x^2 + u^2 with x' = -x + u, from 1.5 to 1 in a long time."""
    # x = A exp(-w t) + B exp(w (t - T)) with w = sqrt(2), and u = x' + x
    w = np.sqrt(2)
    A, B = np.linalg.solve([[1, np.exp(-w * time)], [np.exp(-w * time), 1]], [start, end])
    # d/dt of 1/2 (w - 1) A^2 exp(-2 w t) ...: the square terms, and the mixed one, which is constant in time
    squares = (1 - np.exp(-2 * w * time)) * (A**2 * (w - 1) + B**2 * (w + 1)) / 2
    mixed = A * B * np.exp(-w * time) * time * (1 + (1 - w) * (1 + w))
    exact = squares + mixed
    plain = System(["x"], ["u"], lambda s: [-s.x + s.u])
    problem = Problem(
        plain, time, start={"x": start}, end={"x": end}, cost=running(lambda s: (s.x**2 + s.u**2) / 2)
    )
    solution = problem.solve(200, transcription="radau")
    yield Check("cost", solution.cost, exact, 1e-7, "collocation of order 5 with steps of 0.05")
    yield Check("cost, to the digits of a calculation by others", exact, 1.6730939784, 5e-11, "eleven digits")
    expected = A * np.exp(-w * solution.time) + B * np.exp(w * (solution.time - time))
    yield Check("x along the way", solution.state("x"), expected, 1e-6, "the same")
    yield Plot.line("t", "x", solution.time, solution.state("x"))


@case(source="CasADi's example problem; reference computed independently to six digits", kind="published")
def van_der_pol_optimal() -> Items:
    """Least int x1^2 + x2^2 + u^2 over 5 s from (0, 1)."""
    example = examples.van_der_pol()
    solution = example.solve(200)
    yield Check("cost", solution.cost, example.published, 2e-5, "the reference has six digits")
    yield Check("simulated with its controls", solution.check.largest, 0.0, 1e-6, "order 4 with 200 steps")
    yield Plot(
        "t [s]",
        "x",
        (Line("x1", solution.time, solution.state("x1")), Line("x2", solution.time, solution.state("x2"))),
    )


@case(source="Closed form: an arc of a cycloid through both points", kind="closed form")
def brachistochrone(
    slides: tuple[tuple[float, float, float, float], ...] = (
        (9.80665, 10.0, 5.0, 1.8016031225),
        (9.8, 2.0, 2.0, 0.8247591432),
    ),
) -> Items:
    """The fastest slides from rest to points 10 m away and 5 m below, 2 m away and 2 m below; the final time is free."""
    lines = []
    for gravity, far, drop, time in slides:
        solution = examples.brachistochrone(gravity, (0.0, 0.0), (far, -drop)).solve()
        yield Check(
            f"time to ({far:g}, {-drop:g}) [s]",
            solution.duration,
            time,
            1e-6,
            "Hermite-Simpson with 100 steps; the slope is singular at rest",
        )
        lines.append(Line(f"to ({far:g}, {-drop:g})", solution.state("x"), solution.state("y")))
    yield Plot("x [m]", "y [m]", tuple(lines))


@case(source=f"{COPS}, hanging chain; the catenary in closed form", kind="closed form")
def hanging_chain(left: float = 1.0, right: float = 3.0, length: float = 4.0) -> Items:
    """The shape of least potential energy of a chain of given length between two points."""
    # y = c cosh((x - m)/c) + d: length^2 - rise^2 = (2 c sinh(1/(2c)))^2
    rise = right - left
    c = scipy.optimize.brentq(lambda c: 2 * c * np.sinh(0.5 / c) - np.sqrt(length**2 - rise**2), 0.05, 5.0)
    m = 0.5 - c * np.arctanh(rise / length)
    d = left - c * np.cosh(m / c)
    exact = c / 2 + c**2 / 4 * (np.sinh(2 * (1 - m) / c) + np.sinh(2 * m / c)) + d * length
    chain = System(["y", "used"], ["slope"], lambda s: [s.slope, ca.sqrt(1 + s.slope**2)])
    problem = Problem(
        chain,
        1.0,
        start={"y": left, "used": 0},
        end={"y": right, "used": length},
        limits={"slope": 20.0, "y": (0, 10)},
        cost=running(lambda s: s.y * ca.sqrt(1 + s.slope**2)),
    )
    x = np.linspace(0, 1, 21)
    parabola, slope = 4 * rise * x * (x / 2 - 0.25) + left, 4 * rise * (x - 0.25)  # the start of COPS
    used = np.concatenate([[0], np.cumsum(np.sqrt(1 + slope[:-1] ** 2) / 20)])
    guess = {"time": x, "x": np.stack([parabola, used], 1), "controls": slope[:, None]}
    solution = problem.solve(100, transcription="radau", guess=guess)
    yield Check("energy", solution.cost, exact, 1e-7, "collocation of order 5 with 100 steps")
    yield Check(
        "energy, in print", exact, 5.06891, 5e-4, "theirs is of a grid with the trapezoidal rule, from above"
    )
    shape = c * np.cosh((solution.time - m) / c) + d
    yield Check(
        "height along the chain",
        solution.state("y"),
        shape,
        3e-4,
        "energy is least there: the root of its tolerance",
    )
    yield Plot(
        "x", "y", (Line("", solution.time, solution.state("y")), Line("catenary", solution.time, shape))
    )


@case(
    source="Bryson, Ho, Applied optimal control (1975), 2.5: thrust 0.1405, mass flow 0.07489, 3.32 units of time; "
    "radius 1.525",
    kind="published",
)
def largest_orbit(thrust: float = 0.1405, flow: float = 0.07489, time: float = 3.32) -> Items:
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
    yield Plot.line("t", "r", solution.time, solution.state("r"))


@case(
    source="Jacobson, Mayne, Differential dynamic programming (1970), Rayleigh equation, cost 29.376 (Maurer: 29.376080)",
    kind="published",
)
def rayleigh() -> Items:
    """An electric circuit with a tunnel diode, brought towards rest with little current."""
    system = System(["x", "y"], ["u"], lambda s: [s.y, -s.x + s.y * (1.4 - 0.14 * s.y**2) + 4 * s.u])
    cost = running(lambda s: s.u**2 + s.x**2)
    solution = Problem(system, 2.5, start={"x": -5, "y": -5}, cost=cost).solve(30, accuracy=1e-6)
    yield Check("cost", solution.cost, 29.376080, 3e-4, "ten times the accuracy that is asked for")
    yield Plot.line("t", "u", solution.time[:-1], solution.control("u"))


@case(
    source="Logsdon, Biegler, Accurate solution of differential-algebraic optimization problems (1989): batch reactor, "
    "0.57353",
    kind="published",
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
    yield Plot.line("t", "u", solution.time[:-1], solution.control("u"))


@case(
    source="Kirk, Optimal control theory (1970), example 6.2-2: stirred tank reactor, cost 0.02660",
    kind="published",
)
def stirred_tank() -> Items:
    """A chemical reactor is brought back to its state at rest by cooling."""

    def rates(s: Moment) -> list[ca.SX]:
        r = (s.y + 0.5) * ca.exp(25 * s.x / (s.x + 2))
        return [-2 * (s.x + 0.25) + r - s.u * (s.x + 0.25), 0.5 - s.y - r]

    cost = running(lambda s: s.x**2 + s.y**2 + 0.1 * s.u**2)
    solution = Problem(System(["x", "y"], ["u"], rates), 0.78, start={"x": 0.05, "y": 0}, cost=cost).solve(40)
    yield Check("cost", solution.cost, 0.02660, 5e-6, "four digits of print")
    yield Plot.line("t", "u", solution.time[:-1], solution.control("u"))


@case(source="Becerra, PSOPT manual (2010), obstacle avoidance problem: 4.571044", kind="published")
def two_obstacles(speed: float = 2.138) -> Items:
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
    yield Plot.line("x", "y", solution.state("x"), solution.state("y"))


@case(
    source="""Becerra, PSOPT manual (2010), interior point constraint: 0.9205314; closed form of each arc from a to b in T,
    ((a^2 + b^2) cosh T - 2 a b) / sinh T""",
    kind="closed form",
)
def interior_point(
    places: tuple[float, ...] = (1.0, 0.9, 0.75), times: tuple[float, ...] = (0.75, 0.25)
) -> Items:
    """The integral of x^2 + u^2 with x' = u, which passes a given point on its way."""
    system, (first, middle, last) = System(["x"], ["u"], lambda s: [s.u]), places
    cost = running(lambda s: s.x**2 + s.u**2)
    problem = Problem(system, sum(times), start={"x": first}, end={"x": last}, cost=cost)
    solution = through(problem, [{"x": middle}], times=[times[0]]).solve(20, transcription="radau")
    arcs = zip((first, middle), (middle, last), times, strict=True)
    exact = sum(((a**2 + b**2) * np.cosh(T) - 2 * a * b) / np.sinh(T) for a, b, T in arcs)
    yield Check("cost", solution.cost, exact, 1e-8, "20 steps of order five in each arc; the tolerance")
    yield Check("cost as printed", solution.cost, 0.9205314, 1e-7, "printed digits")
    lines = tuple(Line(name, solution[name].time, solution[name].state("x")) for name in ("1", "2"))
    yield Plot("t", "x", lines)


@case(source="Becerra, PSOPT manual (2010), two-phase path tracking robot: 1.042568", kind="published")
def tracking_robot() -> Items:
    """Two masses follow references that turn a corner after a second: a phase on either side of it."""
    robot = System(["x", "y", "vx", "vy"], ["ax", "ay"], lambda s: [s.vx, s.vy, s.ax, s.ay])

    def along(x: Any, y: Any, vx: float, vy: float) -> Any:
        """The cost of being elsewhere; x and y are functions of the time."""
        return running(
            lambda s: (
                100 * ((s.x - x(s.t)) ** 2 + (s.y - y(s.t)) ** 2)
                + 500 * ((s.vx - vx) ** 2 + (s.vy - vy) ** 2)
            )
        )

    names, limits = ("x", "y", "vx", "vy"), {"ax": 10.0, "ay": 10.0}
    ends = [dict(zip(names, values, strict=True)) for values in ((0, 0, 0.5, 0), (0.5, 0.5, 0, 0.5))]
    there = Problem(
        robot, 1.0, start=ends[0], limits=limits, cost=along(lambda t: t / 2, lambda t: 0 * t, 0.5, 0)
    )
    up = Problem(robot, 1.0, end=ends[1], limits=limits, cost=along(lambda t: 0.5, lambda t: t / 2, 0, 0.5))
    solution, finer = (
        Phases({"there": there, "up": up}).solve(steps, transcription="radau") for steps in (40, 80)
    )
    # both speeds change by 1/2 at full control within s = 0.025 of the corner, and 10 t, 5 t^2 are what they are off
    s = 0.5 / 10 / 2
    least = 4 * (500 * 10**2 * s**3 / 3 + 100 * 5**2 * s**5 / 5)
    reason = "arcs that are not at full control gain 8e-10; 1e-8/11 for each of 1920 bounds, in units of the scaled cost"
    for what, found in (("cost", solution), ("cost on twice the intervals", finer)):
        yield Check(what, found.cost, least, 1e-6, reason)
    reason = "the source's mesh: collocation on its 30 Legendre points a phase has 1.042533, which is 8.1e-4 too much"
    yield Check("cost of the source", solution.cost, 1.042568, 1e-3, reason)
    lines = tuple(
        Line(name, solution[name].state("x"), solution[name].state("y")) for name in ("there", "up")
    )
    yield Plot("x", "y", lines)


@case(
    source="Closed form: x'' = u with 1/2 int u^2, from rest to rest over 1 in 1 s: u = 6 - 12 t",
    kind="closed form",
)
def least_effort(steps: tuple[int, ...] = (4, 8)) -> Items:
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
