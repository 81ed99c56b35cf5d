"""Burns that change the mass: propellant leaves through thrusters while they push.

What leaves takes its own momentum with it, at the speed of the craft there; what it gains relative to the craft is the
thrust. So (q, v) do not jump while the mass falls, and

    d/dt of the craft's motion = forces at the mass of that instant                                            (1)

A burn is cut into segments of constant mass. In each the propellant is such that the whole has the logarithmic mean of its
masses at both ends, (M0 - M1)/ln(M0/M1): pure translation then obeys the rocket equation exactly, and what turns or bends
converges with the square of the segments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.simulate import simulate
from alembert.spacecraft.balance import flying_mass
from alembert.spacecraft.devices import Thruster

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Burn:
    """States at the ends of the segments, `time` (N,), `q`, `v`, and what is left of the `propellant` [kg]."""

    time: Array
    q: Array
    v: Array
    propellant: Array


def burn(
    model: Model,
    q0: Any,
    v0: Any,
    thrusters: Sequence[Thruster],
    *,
    duration: float,
    propellant: str,
    segments: int = 20,
    parameters: dict[str, float] | None = None,
    step: float | None = None,
    **options: Any,
) -> Burn:
    """Let thrusters push for `duration` [s]; `propellant` is the model's parameter that is the mass they burn [kg].

    The parameter may be in any number of inertias (a tank's mass, its moments). `options` are those of `simulate`: gravity,
    forces, controllers, ...
    """
    known = {**model.parameter_values, **(parameters or {})}
    if propellant not in known:
        raise ArgumentError(unknown("burn: propellant: the model has no parameter", propellant, known))
    if not (isinstance(segments, int) and segments > 0):
        raise ArgumentError(f"burn: segments is {segments!r}, expected a positive number of them")
    if not (math.isfinite(duration) and duration > 0):
        raise ArgumentError(f"burn: duration is {duration!r}, expected a positive time in seconds")
    first, flow = float(known[propellant]), sum(thruster.flow for thruster in thrusters)
    if flow * duration > first:
        raise ArgumentError(
            f"burn: {duration:g} s take {flow * duration:.6g} kg, and {propellant!r} has {first:.6g} kg: they last "
            f"{first / flow:.6g} s"
        )
    wrenches: dict[str, Array] = {}
    for thruster in thrusters:
        wrenches[thruster.frame] = wrenches.get(thruster.frame, np.zeros(6)) + thruster.wrench
    h = duration / segments
    q, v = np.array(q0, dtype=float), np.array(v0, dtype=float)
    start = float(options.pop("start", 0.0))
    found = [(start, q, v, first)]
    for k in range(segments):
        before, after = first - flow * h * k, first - flow * h * (k + 1)
        mean = _mean_mass(model, known, propellant, before, after)
        run = simulate(
            model,
            q,
            v,
            duration=h,
            start=start + k * h,
            step=None if step is None else h / math.ceil(h / step - 1e-9),
            wrenches=wrenches,
            parameters={**known, propellant: mean},
            **{"progress": False, **options},
        )
        q, v = run.q[-1], run.v[-1]
        found.append((start + (k + 1) * h, q, v, after))
    return Burn(*(np.array(x) for x in zip(*found, strict=True)))


def _mean_mass(model: Model, known: dict[str, float], name: str, before: float, after: float) -> float:
    """What the parameter has to be for the whole to have its logarithmic mean mass."""
    whole = [flying_mass(model, {**known, name: value}) for value in (before, after)]
    lost = whole[0] - whole[1]
    if not lost > 1e-12 * whole[0]:
        return (before + after) / 2
    mean = lost / math.log(whole[0] / whole[1])
    return before - (before - after) * (whole[0] - mean) / lost
