"""The launch of a rocket in four phases, from the ground into a transfer orbit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal import Moment, Phases, Problem, System, terminal
from alembert.verify.case import Check, Items, Line, Plot, case

MU, RADIUS, TURN = 3.986012e14, 6378145.0, 7.29211585e-5
"""[m^3/s^2], [m], [rad/s]"""
BOOSTER = (628500.0, 17010.0, 75.2, 19290.0)
FIRST, SECOND = (1083100.0, 95550.0, 261.0, 104380.0), (110094.0, 16820.0, 700.0, 19300.0)
"""thrust [N], propellant [kg], time of burning [s], gross mass [kg]"""
PAYLOAD = 4164.0
TARGET = (24361140.0, 0.7308, *np.deg2rad([28.5, 269.8 - 360.0, 130.5]))
"""semi-major axis [m], eccentricity, inclination, node and argument of perigee"""
STATES = ["x", "y", "z", "vx", "vy", "vz", "m"]


def rocket(boosters: int, engine: tuple[float, ...]) -> System:
    """In inertial axes, under `boosters` and an engine, with the drag of 2 pi m^2 in an exponential atmosphere."""
    thrust = boosters * BOOSTER[0] + engine[0]
    flow = boosters * BOOSTER[1] / BOOSTER[2] + engine[1] / engine[2]

    def rate(s: Moment) -> list[Any]:
        r, v, u = ca.vertcat(s.x, s.y, s.z), ca.vertcat(s.vx, s.vy, s.vz), ca.vertcat(s.ux, s.uy, s.uz)
        height = ca.norm_2(r)
        wind = v - ca.vertcat(-TURN * s.y, TURN * s.x, 0)
        drag = -0.5 * 1.225 * ca.exp(-(height - RADIUS) / 7200.0) * 2 * np.pi * ca.norm_2(wind) * wind
        a = -MU * r / height**3 + (thrust * u + drag) / s.m
        return [s.vx, s.vy, s.vz, a[0], a[1], a[2], -flow]

    return System(STATES, ["ux", "uy", "uz"], rate)


def _orbit(s: Moment) -> dict[str, ca.SX]:
    r, v = ca.vertcat(s.x, s.y, s.z), ca.vertcat(s.vx, s.vy, s.vz)
    h, R = ca.cross(r, v), ca.norm_2(r)
    node, e = ca.vertcat(-h[1], h[0], 0), ca.cross(v, h) / MU - r / R
    return {
        "a": 1 / (2 / R - ca.dot(v, v) / MU) / TARGET[0],
        "e": ca.norm_2(e),
        "cosine of i": h[2] / ca.norm_2(h),
        "node": ca.atan2(node[1], node[0]),
        "perigee": ca.acos(ca.dot(node, e) / ca.norm_2(node) / ca.norm_2(e)),
    }


def _state_in_orbit() -> np.ndarray:
    """At the perigee of the target."""
    a, e, i, node, perigee = TARGET
    p = a * (1 - e**2)

    def about(k: int, angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        R, (j, k) = np.eye(3), ((k + 1) % 3, (k + 2) % 3)
        R[j, j] = R[k, k] = c
        R[j, k], R[k, j] = -s, s
        return R

    R = about(2, node) @ about(0, i) @ about(2, perigee)
    return np.concatenate([R @ [p / (1 + e), 0, 0], R @ [0, np.sqrt(MU / p) * (1 + e), 0]])


def delta_iii() -> tuple[Phases, dict[str, Any]]:
    """The phases, and the guess that is usual for this problem: on the ground, and then in orbit at once."""
    latitude = np.deg2rad(28.5)
    r0 = RADIUS * np.array([np.cos(latitude), 0, np.sin(latitude)])
    ground = np.concatenate([r0, np.cross([0, 0, TURN], r0)])
    empty, orbit = BOOSTER[3] - BOOSTER[1], _state_in_orbit()
    mass = PAYLOAD + SECOND[3] + FIRST[3] + 9 * BOOSTER[3]
    parts: dict[str, tuple[System, Any, float, int]] = {
        "six boosters": (rocket(6, FIRST), 75.2, 6 * empty, 6),
        "three boosters": (rocket(3, FIRST), 75.2, 3 * empty, 3),
        "main engine": (rocket(0, FIRST), FIRST[2] - 150.4, FIRST[3] - FIRST[1], 0),
        "second stage": (rocket(0, SECOND), (50.0, SECOND[2]), 0.0, 0),
    }
    problems: dict[str, Problem] = {}
    guess: dict[str, Any] = {}
    for k, (name, (system, time, dropped, boosters)) in enumerate(parts.items()):
        own: dict[str, Any] = {"cost": terminal(lambda s: 0 * s.m)}
        if k == 0:
            own["start"] = dict(zip(STATES, [*ground, mass], strict=True))
        if k == 3:
            own["end"] = {
                key: (lambda s, key=key: _orbit(s)[key], value)
                for key, value in zip(_KEYS, (1.0, TARGET[1], np.cos(TARGET[2]), *TARGET[3:]), strict=True)
            }
            own["cost"] = terminal(lambda s: -s.m)
        unit = {"length of the direction": (lambda s: s.ux**2 + s.uy**2 + s.uz**2, 1.0, 1.0)}
        problems[name] = Problem(system, time, path=unit, **own)
        span = time if isinstance(time, float) else time[1]
        engine = SECOND if k == 3 else FIRST
        burnt = span * (boosters * BOOSTER[1] / BOOSTER[2] + engine[1] / engine[2])
        x, u = (ground, [1.0, 0, 0]) if k < 2 else (orbit, [0, 1.0, 0])
        guess[name] = {"time": [0, span], "x": [[*x, mass], [*x, mass - burnt]], "controls": [u, u]}
        mass -= burnt + dropped
    links = {after: {"m": (lambda s, m=parts[before][2]: s.m - m)} for before, after in pairwise(parts)}
    return Phases(problems, links=links), guess


_KEYS = ("a", "e", "cosine of i", "node", "perigee")


@case(
    source="""D. A. Benson, A Gauss pseudospectral transcription for optimal control, thesis, MIT 2005, and the example
    `launch` of PSOPT: the Delta III into a transfer orbit, the largest mass; 7529.712296 kg by an independent
    calculation (PSOPT prints 7529.661 with its own mesh)""",
    kind="reference",
    tags=("optimal",),
    parameters={"accuracy": 1e-7},
)
def delta_iii_launch(accuracy: float) -> Items:
    """Four phases of a launch, with boosters that burn out and are dropped, into an orbit of five elements."""
    launch, guess = delta_iii()
    # far from a motion few steps of a simple method find their way in 10 iterations, also from guesses that are 1e-4 off
    coarse = launch.solve(6, guess=guess, transcription="midpoint")
    solution = launch.solve(6, guess=coarse, transcription="radau", accuracy=accuracy)
    reason = f"meshes refined to {accuracy:g} of the cost, times 2 for what is estimated"
    mass = float(solution["second stage"].state("m")[-1])
    yield Check("mass in orbit [kg]", mass, 7529.712296, 2 * accuracy * 7529.7, reason)
    heights = []
    for name, motion in solution.items():
        height = (np.linalg.norm(motion.x[:, :3], axis=1) - RADIUS) / 1e3
        heights.append(Line(name, motion.time, height))
    yield Plot("t [s]", "height [km]", tuple(heights))
