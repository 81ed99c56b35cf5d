"""Optimal control in phases: an orbit raised by two burns, a rocket of two stages."""

import casadi as ca
import numpy as np

from alembert.optimal import Moment, Phases, Problem, System, running, terminal
from alembert.verify.case import Check, Items, Line, Plot, case


@case(
    source="Closed form: Tsiolkovsky's equation for both stages, less what gravity takes; full thrust is optimal",
    kind="closed form",
    tags=("optimal",),
    parameters={"exhaust": (2600.0, 4200.0), "thrust": (1.6e6, 5e5), "g": 9.81},
)
def two_stage_rocket(exhaust: tuple[float, float], thrust: tuple[float, float], g: float) -> Items:
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
    tags=("optimal",),
    parameters={"radius": 3.0, "steps": 40},
)
def two_burns(radius: float, steps: int) -> Items:
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
