"""Optimal control at the 1989 conference: a transfer, a rocket."""

import casadi as ca
import numpy as np
from scipy.optimize import brentq

from alembert.optimal import JumpNoise, Problem, System, duration, dynamic_programming, terminal
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Bless, Hodges, Calise",
        "transfer in the least time, a h/U^2 = 0.75 (Bryson, Ho, Applied Optimal Control, 1975, 2.7.9): tan u is linear in "
        "time",
    ),
    kind="closed form",
    tags=("optimal", "acc1989"),
    parameters={"ratio": 0.75},
)
def bless_transfer(ratio: float) -> Items:
    """A thrust of constant size is turned so that height and speed are reached soonest."""
    # with s = tan(u0), T = time: U = a T asinh(s)/s and h = a T^2/(4 s^2) (s sqrt(1 + s^2) - asinh s)
    s = brentq(
        lambda s: (s * np.sqrt(1 + s**2) - np.arcsinh(s)) / (4 * np.arcsinh(s) ** 2) - ratio, 0.1, 50.0
    )
    speed = 1 / np.sqrt(ratio)  # a = h = 1
    time = speed * s / np.arcsinh(s)
    craft = System(["x", "y", "vx", "vy"], ["u"], lambda m: [m.vx, m.vy, ca.cos(m.u), ca.sin(m.u)])
    problem = Problem(
        craft,
        (0.5, 10.0),
        start={"x": 0, "y": 0, "vx": 0, "vy": 0},
        end={"y": 1, "vx": speed, "vy": 0},
        limits={"u": (-np.pi / 2, np.pi / 2)},
        cost=duration(),
    )
    guess = {
        "time": [0, 2],
        "x": [[0, 0, 0, 0], [1, 1, speed, 0]],
        "controls": [[1.0], [-1.0]],
    }
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
    yield Plot(
        "t", "u [rad]", (Line("", solution.time[: len(solution.control("u"))], solution.control("u")),)
    )


@case(
    source=acc1989(
        "Psiaki", "rocket of 24 stages: greatest range in 12 s, |u| up to 5 g, 10 g s of fuel, above ground"
    ),
    kind="closed form",
    tags=("optimal", "acc1989"),
    parameters={"g": 32.2, "thrust": 5.0, "fuel": 10.0, "time": 12.0, "stages": 24},
    missing="""the range in the paper is that of an octagon instead of the circle |u| = 5 g, and is only drawn; used are the
    data, and the exact optimum: full thrust at one angle, then a throw""",
)
def psiaki_rocket(g: float, thrust: float, fuel: float, time: float, stages: int) -> Items:
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
    yield Plot("x [g s^2]", "y", (Line("", solution.state("x"), solution.state("y")),))


@case(
    source=acc1989(
        "Psiaki",
        "the same rocket as a dynamic linear program, with an octagon instead of the circle of thrusts",
    ),
    kind="reference",
    tags=("optimal", "acc1989"),
    parameters={"g": 32.2, "thrust": 5.0, "fuel": 10.0, "time": 12.0, "stages": 24},
    missing="""the paper draws its result and does not print it; the references are those of an independent calculation, for
    both ways to lay the octagon around the circle""",
)
def psiaki_octagon(g: float, thrust: float, fuel: float, time: float, stages: int) -> Items:
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
    tags=("optimal", "acc1989"),
    parameters={"noise": 0.4, "jump": 0.3, "rate": 2.0, "time": 1.0, "points": 161},
    missing="""the paper prints no solution; the reference is V = k x^2/2 + b x + c of the linear-quadratic problem, whose
    three equations were integrated independently""",
)
def hanson_jumps(noise: float, jump: float, rate: float, time: float, points: int) -> Items:
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
    yield Plot("x", "u at t = 0", (Line("", x, found.controls[0, 0]),))
