"""Design parameters, integrals, forces of elements and jumps between phases, against closed forms.

Optimal control at the 1989 conference: a transfer, a rocket.
"""

from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.joints import Prismatic
from alembert.model import Inertia, Model, ModelBuilder
from alembert.optimal import (
    Cases,
    JumpNoise,
    Phases,
    Problem,
    System,
    duration,
    dynamic_programming,
    effort,
    running,
    terminal,
)
from alembert.simulate import SpringDamper
from alembert.verify.case import Check, Items, Line, Plot, acc1989, family

case = family("optimal")

ENDS: dict[str, Any] = {"start": {"q": [0], "v": 0}, "end": {"q": [1], "v": 0}}


def _slider(mass: float) -> Model:
    builder = ModelBuilder("slider", gravity=(0, 0, 0))
    builder.body("mass", Inertia.point(mass), joint=Prismatic((1.0, 0, 0)), joint_name="slide")
    builder.frame("wall", "world", (0, 0, 0))
    return builder.build()


def _cart(price: float, way: float) -> Problem:
    system = System(["x", "v"], ["u"], lambda s: [s.v, s.u / s.m], parameters={"m": 1.0})
    return Problem(
        system,
        1.0,
        start={"x": 0, "v": 0},
        end={"x": way, "v": 0},
        design={"m": (0.1, 5.0)},
        cost=effort() + terminal(lambda s: price / s.m),
    )


@case(
    source="Closed form: 1/2 int u^2 = 6 m^2, so that 6 m^2 + 3/m is least at m^3 = 1/4",
    kind="closed form",
)
def best_mass(price: float = 3.0) -> Items:
    """The mass of a cart that is pushed from rest to rest, where light carts are dear; found with the motion."""
    solution = _cart(price, 1.0).solve(8)
    mass = (price / 12) ** (1 / 3)
    yield Check(
        "mass",
        solution.design["m"],
        mass,
        1e-6,
        "the root of the tolerance 1e-8 would be 1e-4; Newton's last step",
    )
    yield Check(
        "cost", solution.cost, 6 * mass**2 + price / mass, 1e-7, "Hermite-Simpson is exact for parabolas"
    )
    yield Plot.line("t [s]", "x [m]", solution.time, solution.state("x"))


@case(
    source="Closed form: 6 m^2 (1 + 4) + (1 + 3)/m for ways of 1 and 2, least at m^3 = 4/60",
    kind="closed form",
)
def one_mass_for_two_ways() -> Items:
    """One design for two motions, whose costs add."""
    solution = Cases({"short": _cart(1.0, 1.0), "long": _cart(3.0, 2.0)}).solve(6)
    mass = (4 / 60) ** (1 / 3)
    yield Check("mass", solution.design["m"], mass, 1e-6, "as for one motion")
    yield Check(
        "cost", solution.cost, 30 * mass**2 + 4 / mass, 1e-7, "Hermite-Simpson is exact for parabolas"
    )


@case(
    source="Closed form: x'' = -k x takes (1, 0) to (-1, 0) in 1 s by itself for k = pi^2", kind="closed form"
)
def tuned_spring() -> Items:
    """The stiffness with which a swing takes no effort."""
    system = System(["x", "v"], ["u"], lambda s: [s.v, -s.k * s.x + s.u], parameters={"k": 6.0})
    ends: dict[str, Any] = {"start": {"x": 1, "v": 0}, "end": {"x": -1, "v": 0}}
    solution = Problem(system, 1.0, **ends, design={"k": (5.0, 15.0)}, cost=effort()).solve(30)
    yield Check("stiffness", solution.design["k"], np.pi**2, 1e-5, "order 4: (pi/30)^4/24 of it and less")
    yield Check("effort", solution.cost, 0.0, 1e-10, "the square of what is missing")


@case(
    source="Closed form: the widest bow x(t) over [0, 1] with int x'^2 = 1 is a parabola, of area 1/sqrt(12)",
    kind="closed form",
)
def widest_bow() -> Items:
    """An integral that is given, as in Dido's problem."""
    bow = System(["x"], ["u"], lambda s: [s.u])
    energy = {"energy": (lambda s: s.u**2, 1.0, 1.0)}
    problem = Problem(bow, 1.0, start={"x": 0}, end={"x": 0}, integrals=energy, cost=running(lambda s: -s.x))
    solution = problem.solve(8)
    yield Check(
        "area",
        -solution.cost,
        1 / np.sqrt(12),
        1e-7,
        "Simpson's rule is exact for parabolas and their squares",
    )
    yield Check("largest x", solution.state("x").max(), np.sqrt(3) / 4, 1e-6, "the same")
    yield Plot.line("t", "x", solution.time, solution.state("x"))


@case(
    source="Closed form: the Gramian W of (A, B) over [0, 1], least effort 1/2 d' W^-1 d",
    kind="closed form",
)
def reach_against_a_spring(mass: float = 2.0, stiffness: float = 8.0, steps: int = 30) -> Items:
    """A force element of `al.simulate` acts on the model: a mass is brought 1 m away from rest to rest."""
    spring = SpringDamper("wall", "mass", stiffness=stiffness)
    problem = Problem(_slider(mass), 1.0, **ENDS, forces=[spring])
    solution = problem.solve(steps, transcription="hermite-simpson")
    A, B = np.array([[0, 1], [-stiffness / mass, 0]]), np.array([[0], [1 / mass]])
    block = np.block([[-A, B @ B.T], [np.zeros((2, 2)), A.T]])
    grown = scipy.linalg.expm(block)
    W = grown[2:, 2:].T @ grown[:2, 2:]
    d = np.array([1.0, 0.0])
    exact = float(d @ np.linalg.solve(W, d)) / 2
    yield Check("effort", solution.cost, exact, 1e-5 * exact, "order 4: (2/30)^4 and less")
    yield Plot.line("t [s]", "force [N]", solution.time[:-1], solution.controls[:, 0])


@case(
    source="Closed form: 1/2 int u^2 of cubics, 2 v^2 - 6 v + 6 on the way there and v^2/2 - 3 v + 6 back, least at v = 1.8",
    kind="closed form",
)
def thrown_at_a_wall(restitution: float = 0.5) -> Items:
    """A mass reaches a wall, comes back with half of its speed and has to be home at rest: two phases of one model."""
    model = _slider(1.0)
    bounce = Phases(
        {
            "there": Problem(model, 1.0, start={"q": [0], "v": 0}, end={"q": [1]}),
            "back": Problem(model, 1.0, end={"q": [0], "v": 0}),
        },
        links={"back": {"v slide": lambda s: -restitution * s.v[0]}},
    )
    solution = bounce.solve(10, transcription="hermite-simpson")
    r = restitution
    v = (6 + 6 * r) / (4 + 4 * r**2)
    exact = 2 * v**2 - 6 * v + 6 + 2 * (r * v) ** 2 - 6 * r * v + 6
    reason = "Hermite-Simpson is exact for cubics"
    yield Check("effort", solution.cost, exact, 1e-6, reason)
    yield Check("speed at the wall", float(solution["there"].v[-1, 0]), v, 1e-6, reason)


@case(
    source="Closed form: x' = u with int x^2 + u^2 over T costs tanh(T), with the feedback -tanh(T - t) x",
    kind="closed form",
)
def regulator(time: float = 2.0) -> Items:
    """The linear-quadratic regulator of one state, and its gain at the start from the sweep."""
    system = System(["x"], ["u"], lambda s: [s.u])
    solution = Problem(system, time, start={"x": 1}, cost=running(lambda s: s.x**2 + s.u**2)).solve(
        40, transcription="rk4"
    )
    h = time / 40
    yield Check("cost", solution.cost, np.tanh(time), h**2, "controls held over steps of h")
    gain = np.tanh(time - h / 2)
    yield Check(
        "gain of the first step",
        float(solution.gains[0, 0, 0]),
        gain,
        h,
        "the mean of a step, x at its start",
    )
    yield Plot.line("t", "x", solution.time, solution.state("x"))


SHORT_PERIOD = (-0.8, -4.0, -1.0, -6.0)
"""Z_alpha, M_alpha, M_q, M_delta [1/s, 1/s^2]"""
FEEDBACK, DEFLECTION_RATE, LAG = np.radians(4.0), np.radians(26.0), 0.05
"""limit of the pitch rate that is fed back [rad/s], of the elevator's rate [rad/s], and its lag [s]"""


def _damped(
    alpha: Any, q: Any, delta: Any, fit: Any, rate: Any, gain: Any, w: Any, zeta: float, tanh: Any
) -> list[Any]:
    """Short period with a pitch damper of limited feedback and elevator, beside an oscillator of the damping asked for."""
    Z, M_alpha, M_q, M_delta = SHORT_PERIOD
    asked = gain * FEEDBACK * tanh(q / FEEDBACK)
    moved = DEFLECTION_RATE * tanh((asked - delta) / (LAG * DEFLECTION_RATE))
    pitch = M_alpha * alpha + M_q * q + M_delta * delta
    return [Z * alpha + q, pitch, moved, rate, -2 * zeta * w * rate - w**2 * fit]


@case(
    source=acc1989(
        "Lan, Ge",
        "pitch damper for a damping of 0.65, found on simulated responses, within limits of the elevator",
    ),
    kind="closed form",
    tags=("acc1989",),
    missing="""the aerodynamic tables of the F-5A (its gain is 4.36); used are the method, the limits of rates, and a short
    period of our own. Without limits the gain follows from the characteristic equation, with them from simulations within
    least squares of SciPy""",
)
def pitch_damper(zeta: float = 0.65, disturbance_deg: float = 8.0) -> Items:
    """A gain and the frequency of the response that fits best, found together as design parameters of a simulation."""
    Z, M_alpha, M_q, M_delta = SHORT_PERIOD
    bounds: dict[str, Any] = {"gain": (0.0, 5.0), "w": (0.5, 6.0)}

    def matrix(gain: float) -> Any:
        return np.array([[Z, 1.0], [M_alpha, M_q + M_delta * gain]])

    def damping(gain: float) -> float:
        A = matrix(gain)
        return float(-np.trace(A) / 2 / np.sqrt(np.linalg.det(A)))

    exact = float(scipy.optimize.brentq(lambda gain: damping(gain) - zeta, 0.0, 1.0))
    linear = System(
        ["alpha", "q", "fit", "rate"],
        [],
        lambda s: [
            Z * s.alpha + s.q,
            M_alpha * s.alpha + (M_q + M_delta * s.gain) * s.q,
            s.rate,
            -2 * zeta * s.w * s.rate - s.w**2 * s.fit,
        ],
        parameters={"gain": 0.1, "w": 2.0},
    )
    start = {"alpha": 0.1, "q": 0, "fit": 0.1, "rate": Z * 0.1}
    off = running(lambda s: (s.alpha - s.fit) ** 2)
    found = Problem(linear, 5.0, start=start, design=bounds, cost=off).solve(30, transcription="radau")
    reason = "order 5 with 30 steps; the cost is 0 at the solution, so that a tolerance of 1e-8 in slopes is 1e-7 in them"
    yield Check("gain without limits", found.design["gain"], exact, 1e-6, reason)
    yield Check("frequency [rad/s]", found.design["w"], np.sqrt(np.linalg.det(matrix(exact))), 1e-6, reason)

    size = float(np.radians(disturbance_deg))
    aircraft = System(
        ["alpha", "q", "delta", "fit", "rate"],
        [],
        lambda s: _damped(s.alpha, s.q, s.delta, s.fit, s.rate, s.gain, s.w, zeta, ca.tanh),
        parameters={"gain": 0.1, "w": 2.0},
    )
    begin = {"alpha": size, "q": 0, "delta": 0, "fit": size, "rate": Z * size}
    relative = running(lambda s: ((s.alpha - s.fit) / size) ** 2)
    limited = Problem(aircraft, 5.0, start=begin, design=bounds, cost=relative).solve(
        30, transcription="radau"
    )
    direct, cost = _by_simulation(np.array(list(begin.values()), dtype=float), zeta)
    reason = "both to 1e-7 of a flat minimum: its square root, and Simpson's rule on 201 points"
    yield Check("gain with limits", limited.design["gain"], direct[0], 2e-4, reason)
    yield Check("frequency [rad/s]", limited.design["w"], direct[1], 1e-3, reason)
    yield Check(
        "what is left of the fit, relative", limited.cost / cost, 1.0, 5e-3, "Simpson's rule on 201 points"
    )
    lines = [
        Line(name, limited.time, np.degrees(limited.state(key)))
        for name, key in (("alpha", "alpha"), ("fit", "fit"))
    ]
    yield Plot("t [s]", "alpha [deg]", tuple(lines))


def _by_simulation(begin: Any, zeta: float) -> tuple[Any, float]:
    """The same by simulations within an optimiser, as in the paper: gain and frequency, and the cost."""
    t = np.linspace(0, 5, 201)
    weights = np.sqrt(scipy.integrate.simpson(np.eye(201), x=t))

    def off(p: Any) -> Any:
        def rates(_: float, x: Any) -> Any:
            return _damped(x[0], x[1], x[2], x[3], x[4], p[0], p[1], zeta, np.tanh)

        y = scipy.integrate.solve_ivp(rates, (0, 5), begin, t_eval=t, rtol=1e-8, atol=1e-11).y
        return weights * (y[0] - y[3]) / begin[0]

    found = scipy.optimize.least_squares(off, [0.1, 2.0], xtol=1e-10, ftol=1e-12, gtol=1e-12)
    return found.x, float(2 * found.cost)


def turned_thrust(speed: float, **more: Any) -> tuple[Problem, dict[str, Any]]:
    """To the height 1 and this speed in the least time, by a thrust of size 1; and a guess."""
    craft = System(["x", "y", "vx", "vy"], ["u"], lambda m: [m.vx, m.vy, ca.cos(m.u), ca.sin(m.u)])
    ends: dict[str, Any] = {
        "start": {"x": 0, "y": 0, "vx": 0, "vy": 0},
        "end": {"y": 1, "vx": speed, "vy": 0},
    }
    guess = {"time": [0, 2], "x": [[0, 0, 0, 0], [1, 1, speed, 0]], "controls": [[1.0], [-1.0]]}
    return Problem(craft, (0.5, 10.0), **ends, cost=duration(), **more), guess


@case(
    source=acc1989(
        "Bless, Hodges, Calise",
        "transfer in the least time, a h/U^2 = 0.75 (Bryson, Ho, Applied Optimal Control, 1975, 2.7.9): tan u is linear in "
        "time",
    ),
    kind="closed form",
    tags=("acc1989",),
)
def bless_transfer(ratio: float = 0.75) -> Items:
    """A thrust of constant size is turned so that height and speed are reached soonest."""
    # with s = tan(u0), T = time: U = a T asinh(s)/s and h = a T^2/(4 s^2) (s sqrt(1 + s^2) - asinh s)
    s = scipy.optimize.brentq(
        lambda s: (s * np.sqrt(1 + s**2) - np.arcsinh(s)) / (4 * np.arcsinh(s) ** 2) - ratio, 0.1, 50.0
    )
    speed = 1 / np.sqrt(ratio)  # a = h = 1
    time = speed * s / np.arcsinh(s)
    problem, guess = turned_thrust(speed, limits={"u": (-np.pi / 2, np.pi / 2)})
    solution = problem.solve(64, transcription="hermite-simpson", guess=guess)
    reason = "Hermite-Simpson with 64 steps; the closed form to rounding"
    yield Check("time sqrt(a/h)", solution.duration, time, 2e-6, reason)
    yield Check("time sqrt(a/h), to the digits of a calculation by others", time, 2.12106, 5e-6, "six digits")
    middle = (solution.time[0] + solution.time[1]) / 2
    first = np.degrees(np.arctan(s * (1 - 2 * middle / time)))
    yield Check(
        "angle of the first step [deg]",
        np.degrees(solution.control("u")[0]),
        first,
        0.02,
        "the mean of a step",
    )
    yield Check("distance / h", solution.state("x")[-1], time * speed / 2, 1e-5, "by symmetry, half of U T")
    yield Plot.line("t", "u [rad]", solution.time[: len(solution.control("u"))], solution.control("u"))


@case(
    source=acc1989(
        "Psiaki", "rocket of 24 stages: greatest range in 12 s, |u| up to 5 g, 10 g s of fuel, above ground"
    ),
    kind="closed form",
    tags=("acc1989",),
    missing="""the range in the paper is that of an octagon instead of the circle |u| = 5 g, and is only drawn; used are the
    data, and the exact optimum: full thrust at one angle, then a throw""",
)
def psiaki_rocket(
    g: float = 32.2, thrust: float = 5.0, fuel: float = 10.0, time: float = 12.0, stages: int = 24
) -> Items:
    """All fuel at once, at the angle that brings the rocket down at the end."""
    burn = fuel / thrust
    reach = fuel * (time - burn / 2)  # distance in units of g along the thrust, without weight
    exact = g * np.sqrt(reach**2 - (time**2 / 2) ** 2)
    rocket = System(
        ["x", "y", "vx", "vy", "used"],
        ["size", "angle"],
        lambda s: [s.vx, s.vy, s.size * ca.cos(s.angle), s.size * ca.sin(s.angle) - 1.0, s.size],
    )  # lengths in units of g
    problem = Problem(
        rocket,
        time,
        start={"x": 0, "y": 0, "vx": 0, "vy": 0, "used": 0},
        end={"used": (0, fuel)},
        limits={"size": (0, thrust), "y": (0, np.inf), "angle": (0, np.pi / 2)},
        cost=terminal(lambda s: -s.x),
    )
    guess = {
        "time": [0, time],
        "x": [[0, 0, 0, 0, 0], [80, 0, 7, -5, fuel]],
        "controls": [[2.0, 0.8], [0.1, 0.8]],
    }
    solution = problem.solve(stages, transcription="rk4", guess=guess)
    reason = "piecewise constant thrust holds the optimum, as burning ends at a node"
    yield Check("range [ft]", -solution.cost * g, exact, 0.05, reason)
    size = solution.control("size")
    last = round(burn / time * stages)
    yield Check("thrust while it burns [g]", size[:last].min(), thrust, 0.01, reason)
    yield Check("thrust after [g]", size[last:].max(), 0.0, 0.01, reason)
    angle = np.arcsin(time**2 / 2 / reach)
    yield Check("angle [deg]", np.degrees(solution.control("angle")[:last]), np.degrees(angle), 0.1, reason)
    yield Plot.line("x [g s^2]", "y", solution.state("x"), solution.state("y"))


@case(
    source=acc1989(
        "Psiaki",
        "the same rocket as a dynamic linear program, with an octagon instead of the circle of thrusts",
    ),
    kind="reference",
    tags=("acc1989",),
    missing="""the paper draws its result and does not print it; the references are those of an independent calculation, for
    both ways to lay the octagon around the circle""",
)
def psiaki_octagon(
    g: float = 32.2, thrust: float = 5.0, fuel: float = 10.0, time: float = 12.0, stages: int = 24
) -> Items:
    """A range that a linear program finds exactly: it ends at a vertex, with controls at their bounds."""
    states = ["x", "y", "vx", "vy", "used"]
    rocket = System(states, ["ux", "uy", "size"], lambda s: [s.vx, s.vy, s.ux, s.uy - 1.0, s.size])
    for turned, reference in ((0.0, 2690.74), (np.pi / 8, 2873.52)):
        angles = 2 * np.pi * np.arange(8) / 8 + turned
        sides = {
            f"side {k}": ((lambda s, a=a: np.cos(a) * s.ux + np.sin(a) * s.uy - s.size), -np.inf, 0.0)
            for k, a in enumerate(angles)
        }
        problem = Problem(
            *(rocket, time),
            start=dict.fromkeys(states, 0),
            end={"used": (0, fuel)},
            limits={"size": (0, thrust), "y": (0, np.inf)},
            path=sides,
            cost=terminal(lambda s: -s.x),
        )
        solution = problem.solve(stages, transcription="rk4", solver="highs")
        name = f"range, octagon turned by {np.degrees(turned):g} deg [ft]"
        yield Check(
            name,
            -solution.cost * g,
            reference,
            0.005,
            "printed digits; constant thrust in each stage is exact",
        )


@case(
    source=acc1989(
        "Hanson",
        "(1.1)-(1.8), stochastic dynamic programming with Gaussian and Poisson noise; linear-quadratic limit",
    ),
    kind="closed form",
    tags=("acc1989",),
    missing="""the paper prints no solution; the reference is V = k x^2/2 + b x + c of the linear-quadratic problem, whose
    three equations were integrated independently""",
)
def hanson_jumps(
    noise: float = 0.4, jump: float = 0.3, rate: float = 2.0, time: float = 1.0, points: int = 161
) -> Items:
    """The value and the feedback of dx = (x/2 + u) dt + 0.4 dW + 0.3 dP with 2 jumps a second, on a grid."""
    found = dynamic_programming(
        {"x": np.linspace(-4, 4, points)},
        {"u": (-np.inf, np.inf)},
        time,
        drift=lambda t, x: [0.5 * x[0]],
        effect=lambda t, x: [[1.0]],
        running=lambda t, x: 0.5 * x[0] ** 2,
        weight=0.5,
        noise=lambda t, x: [[noise]],
        jumps=[JumpNoise(rate, lambda t, x: [jump])],
    )
    reason = "parabolas are exact in space; in time order two, and 6e-6 with half the points: 1/16 of it"
    yield Check("value at 1", float(found.value([1.0])), 0.776458002, 2e-6, reason)
    yield Check("control at 1", float(found.control([1.0])[0]), -2.167427536, 5e-6, reason)
    yield Check("value at 0", float(found.value([0.0])), 0.124826483, 2e-6, reason)
    x = found.axes[0]
    yield Plot.line("x", "u at t = 0", x, found.controls[0, 0])
