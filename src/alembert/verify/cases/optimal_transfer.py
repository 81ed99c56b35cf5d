"""A transfer between two orbits in equinoctial elements about a flattened Earth, in four phases."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal import Moment, Phases, Problem, System, terminal
from alembert.verify.case import Check, Items, Line, Plot, case

MU, RADIUS, GRAVITY = 1.407645794e16, 20925662.73, 32.174
"""[ft^3/s^2], [ft], [ft/s^2]"""
HARMONICS = {2: 1082.639e-6, 3: -2.565e-6, 4: -1.608e-6}
THRUST, IMPULSE = 1.2, 300.0
"""[lb], [s]"""
STATES = ["p", "f", "g", "h", "k", "L", "w"]


def _rate(s: Moment, burning: bool) -> list[Any]:
    """Gauss's equations under the harmonics of gravity and the thrust, whose angles are seen from the velocity."""
    p, f, g, h, k, L = s.p, s.f, s.g, s.h, s.k, s.L
    c, n = ca.cos(L), ca.sin(L)
    q, squared, alpha = 1 + f * c + g * n, 1 + h**2 + k**2, h**2 - k**2
    r = p / q
    place = (
        r
        / squared
        * ca.vertcat(c + alpha * c + 2 * h * k * n, n - alpha * n + 2 * h * k * c, 2 * (h * n - k * c))
    )
    v = (
        ca.sqrt(MU / p)
        / squared
        * ca.vertcat(
            -(n + alpha * n - 2 * h * k * c + g - 2 * f * h * k + alpha * g),
            -(-c + alpha * c + 2 * h * k * n - f + 2 * g * h * k + alpha * f),
            2 * (h * c + k * n + f * h + g * k),
        )
    )
    up = place / r
    normal = ca.cross(place, v)
    normal = normal / ca.norm_2(normal)
    axes = ca.horzcat(up, ca.cross(normal, up), normal)
    north = ca.vertcat(0, 0, 1) - up[2] * up
    x = up[2]
    legendre = {2: (3 * x**2 - 1) / 2, 3: (5 * x**3 - 3 * x) / 2, 4: (35 * x**4 - 30 * x**2 + 3) / 8}
    slopes = {2: 3 * x, 3: (15 * x**2 - 3) / 2, 4: (140 * x**3 - 60 * x) / 8}
    pull = ca.SX.zeros(3)
    for j, J in HARMONICS.items():
        pull += MU / r**2 * (RADIUS / r) ** j * J * ((j + 1) * legendre[j] * up - slopes[j] * north)
    push = axes.T @ pull
    if burning:
        along = v / ca.norm_2(v)
        across = -normal
        third = ca.cross(along, across)
        a = THRUST * GRAVITY / s.w
        thrust = ca.cos(s.theta) * (ca.cos(s.phi) * along + ca.sin(s.phi) * across) + ca.sin(s.theta) * third
        push += axes.T @ (a * thrust)
    e = ca.sqrt(p / MU)
    turned = (h * n - k * c) * push[2] / q
    return [
        2 * p / q * e * push[1],
        e * (n * push[0] + ((q + 1) * c + f) / q * push[1] - g * turned),
        e * (-c * push[0] + ((q + 1) * n + g) / q * push[1] + f * turned),
        e * squared * c / (2 * q) * push[2],
        e * squared * n / (2 * q) * push[2],
        e * turned + ca.sqrt(MU * p) * (q / p) ** 2,
        -THRUST / IMPULSE if burning else 0 * s.w,
    ]


def _flown(system: System, x: np.ndarray, u: list[float], time: float, steps: int = 60) -> dict[str, Any]:
    """The motion under constant controls, as a guess."""
    state, controls = ca.SX.sym("x", 7), ca.SX.sym("u", len(u))
    f = ca.Function("f", [state, controls], [system.rate(ca.SX(0), state, controls, ca.SX(0, 1))])
    points, h = [x], time / steps
    for _ in range(steps):
        a = f(x, u).full()[:, 0]
        b = f(x + h / 2 * a, u).full()[:, 0]
        c = f(x + h / 2 * b, u).full()[:, 0]
        d = f(x + h * c, u).full()[:, 0]
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
        points.append(x)
    return {
        "time": np.linspace(0, time, steps + 1),
        "x": np.array(points),
        "controls": np.tile(u, (steps + 1, 1)),
    }


@case(
    source="""J. T. Betts, Practical methods for optimal control using nonlinear programming (2001), two-burn orbit transfer,
    as the example `twoburn` of PSOPT states it: weight 0.2367249""",
    kind="published",
    tags=("optimal",),
    parameters={"accuracy": 1e-6},
)
def betts_two_burns(accuracy: float) -> Items:
    """From a low inclined orbit to a geosynchronous one: coast, burn, coast, burn, with the largest weight at the end."""
    coasting = System(STATES, [], lambda s: _rate(s, False))
    burning = System(STATES, ["theta", "phi"], lambda s: _rate(s, True))
    none = terminal(lambda s: 0 * s.w)
    start = dict(zip(STATES, (21837080.052835, 0, 0, -0.25396764647494, 0, np.pi, 1), strict=True))
    end = {"p": 19323 * 6076.1154855643 + RADIUS, "f": 0, "g": 0, "h": 0, "k": 0}
    transfer = Phases(
        {
            "wait": Problem(coasting, (1000.0, 4000.0), start=start, cost=none),
            "burn": Problem(burning, (20.0, 249.0), cost=none),
            "coast": Problem(coasting, (10000.0, 30000.0), cost=none),
            "last burn": Problem(burning, (5.0, 200.0), end=end, cost=terminal(lambda s: -s.w)),
        }
    )
    guess, x = {}, np.array(list(start.values()), dtype=float)
    angles = np.deg2rad([[0.148637e-2, -9.08446], [-0.136658e-2, 49.7892]]).tolist()
    for name, time, u in (
        ("wait", 2600, []),
        ("burn", 140, angles[0]),
        ("coast", 18900, []),
        ("last burn", 50, angles[1]),
    ):
        guess[name] = _flown(burning if u else coasting, x, u, time)
        x = guess[name]["x"][-1]
    steps = {"wait": 6, "burn": 4, "coast": 8, "last burn": 4}
    solution = transfer.solve(steps, guess=guess, accuracy=accuracy)
    weight = float(solution["last burn"].state("w")[-1])
    yield Check("weight [lb]", weight, 0.2367249, 5e-7, "seven printed digits, of meshes of 1e-6 there")
    lines = tuple(
        Line(name, motion.time / 3600, motion.state("p") / 1e6) for name, motion in solution.items()
    )
    yield Plot("t [h]", "p [1e6 ft]", lines)
