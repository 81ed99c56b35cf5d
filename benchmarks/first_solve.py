"""The first solve in a process, and further ones: the brachistochrone and the climb of an F-4 in least time, beside Dymos.

Both build the problem, transcribe and solve it, in a process of their own; times are of the processor, without imports.
Dymos is given SLSQP, the optimiser that comes with it, and the tolerances and segments of its examples (10 and 15 of
Gauss-Lobatto's of order 3, which is Hermite-Simpson); ours has the same. On 15 intervals the middle of the first one dives
below sea level, where the table of thrusts ends: like Dymos we go on along its slope there (`beyond="slope"`: a table that
ends has an edge, and with it iterations went round that edge).
`python -m benchmarks.first_solve` prints ours as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal import Moment, Problem, System, duration, table
from benchmarks.environments import peer_python
from benchmarks.rows import Row

PACKAGES = ("dymos==1.15.0", "openmdao==3.45.1")
AGAIN = 5
AREA, IMPULSE, G0 = 49.2386, 1600.0, 9.80665


def rows(*, notes: dict[str, Any]) -> list[Row]:
    python = peer_python("dymos", PACKAGES)
    theirs: dict[str, Any] = {}
    if python is not None:
        with tempfile.TemporaryDirectory() as folder:  # it leaves files where it runs
            theirs = _run([str(python), str(Path(__file__).parent / "dymos_first_solve.py")], folder)
    else:
        notes["without_dymos"] = f"{' with '.join(PACKAGES)} could not be installed; its rows have no peer."
    given = json.dumps(theirs.get("thrust"))
    command = [sys.executable, "-m", "benchmarks.first_solve", given]
    _run(command)  # fills the cache
    ours = _run(command)
    found = []
    for name, label in (("brachistochrone", "Brachistochrone"), ("climb", "Climb in least time")):
        if name not in ours:
            continue
        peer = theirs.get(name, {}).get("seconds", [None, None])
        for k, (when, goal) in enumerate(
            (("first solve in a process, from the cache", 3.0), ("solved again", 30.0))
        ):
            found.append(
                Row(
                    *(f"first_solve_{name}_{k}", f"{label}: {when}", "", ours[name][k]),
                    peer="Dymos, SLSQP" if peer[k] else "",
                    theirs=peer[k],
                    measure="ratio",
                    goal=goal if peer[k] else None,
                )
            )
    return found


def _run(command: list[str], folder: str | None = None) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENMDAO_REPORTS": "0"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=folder)
    return dict(json.loads(run.stdout.splitlines()[-1]))


def brachistochrone() -> tuple[Problem, int, dict[str, Any]]:
    system = System(
        ["x", "y", "v"],
        ["theta"],
        lambda s: [s.v * ca.sin(s.theta), -s.v * ca.cos(s.theta), G0 * ca.cos(s.theta)],
    )
    problem = Problem(
        system,
        (0.5, 10.0),
        start={"x": 0, "y": 10, "v": 0},
        end={"x": 10, "y": 5},
        limits={"theta": np.radians([0.01, 179.9])},
        cost=duration(),
    )
    guess = {"time": [0, 2], "x": [[0, 10, 0], [10, 5, 9.9]], "controls": np.radians([[5.0], [100.5]])}
    return problem, 10, guess


def climb(data: dict[str, Any]) -> tuple[Problem, int, dict[str, Any]]:
    """`data`: thrust [lbf] over height [ft] and Mach number."""
    h, mach_, newtons = (
        np.array(data["h"]) * 0.3048,
        np.array(data["mach"]),
        np.array(data["thrust"]) * 4.4482216,
    )
    thrust = table((h, mach_), newtons, beyond="slope")

    def mach(s: Moment) -> Any:
        return s.v / _air(s.h)[1]

    def rate(s: Moment) -> list[Any]:
        M, push = mach(s), AREA * _air(s.h)[0] * s.v**2 / 2
        drag, lift, induced = _aerodynamics(M)
        L, D, F = push * lift * s.alpha, push * (drag + lift * induced * s.alpha**2), thrust(s.h, M)
        return [
            s.v * ca.cos(s.gam),
            s.v * ca.sin(s.gam),
            (F * ca.cos(s.alpha) - D) / s.m - G0 * ca.sin(s.gam),
            (F * ca.sin(s.alpha) + L) / (s.m * s.v) - G0 / s.v * ca.cos(s.gam),
            -F / (G0 * IMPULSE),
        ]

    problem = Problem(
        System(["r", "h", "v", "gam", "m"], ["alpha"], rate),
        (50.0, 400.0),
        start={"r": 0, "h": 100, "v": 135.964, "gam": 0, "m": 19030.468},
        end={"h": 20000, "gam": 0, "mach": (mach, 1.0)},
        limits={
            "alpha": np.radians(8),
            "h": (100, 20000),
            "v": (10, np.inf),
            "gam": 1.5,
            "m": (10, 1e5),
            "r": (0, 1e6),
        },
        path={"mach": (mach, 0.1, 1.8)},
        cost=duration(),
    )
    guess = {
        "time": [0, 350],
        "x": [[0, 100, 135.964, 0, 19030.468], [5e4, 2e4, 283.159, 0, 1e4]],
        "controls": [[0.0], [0.0]],
    }
    return problem, 15, guess


def _air(h: Any) -> tuple[Any, Any]:
    """Density and speed of sound of the standard atmosphere up to 20 km."""
    h = h * 6356766 / (6356766 + h)
    low = h <= 11000
    T = ca.if_else(low, 288.15 - 0.0065 * h, 216.65)
    thin = 22632.06 * ca.exp(-(h - 11000) * G0 / (287.05287 * 216.65))
    pressure = ca.if_else(low, 101325 * (T / 288.15) ** 5.2558797, thin)
    return pressure / (287.05287 * T), ca.sqrt(1.4 * 287.05287 * T)


def _aerodynamics(M: Any) -> tuple[Any, Any, Any]:
    """C_D0, C_L alpha and kappa of the F-4, with edges at Mach 1.15 (Bryson, Desai and Hoffman 1969)."""
    slow, over = M < 1.15, M - 1.15
    drag = 0.013 + 0.0144 * (1 + ca.tanh((M - 0.98) / 0.06))
    fast = 0.013 + 0.0144 * (1 + np.tanh(0.17 / 0.06)) - 0.011 * over
    lift = 3.44 + 1 / ca.cosh((M - 1) / 0.06) ** 2
    less = 3.44 + 1 / np.cosh(0.15 / 0.06) ** 2 - 0.96 / 0.63 * over
    induced = 0.54 + 0.15 * (1 + ca.tanh((M - 0.9) / 0.06))
    more = 0.54 + 0.15 * (1 + np.tanh(0.25 / 0.06)) + 0.14 * over
    return ca.if_else(slow, drag, fast), ca.if_else(slow, lift, less), ca.if_else(slow, induced, more)


def main(data: dict[str, Any] | None) -> dict[str, Any]:
    """Processor seconds of the first solve, with the problem made, and of the same solve again."""
    found: dict[str, Any] = {}
    for name in ("brachistochrone", *(["climb"] if data else [])):
        began = time.process_time()
        problem, steps, guess = brachistochrone() if name == "brachistochrone" else climb(data or {})
        solution = problem.solve(steps, guess=guess)
        first = time.process_time() - began
        if not solution.converged:
            raise RuntimeError(f"{name}: {solution.message}")
        again = []
        for _ in range(AGAIN):
            began = time.process_time()
            problem.solve(steps, guess=guess)
            again.append(time.process_time() - began)
        found[name] = [first, min(again), solution.duration]
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
