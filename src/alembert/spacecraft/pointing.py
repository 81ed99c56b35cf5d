"""Ready flight software: estimate the attitude, hold it with wheels, unload them with magnets.

Three tasks: `estimate` runs the filter on star tracker and gyro, `control` gives the wheels torques by quaternion feedback,
`unload` gives the torquers a dipole against the wheels' momentum. Each is a plain `FlightTask`; take them apart,
replace one, add
your own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Sensor
from alembert.simulate.sensors import Measured
from alembert.spacecraft.devices import MagneticTorquer, ReactionWheel
from alembert.spacecraft.estimators import AttitudeFilter
from alembert.spacecraft.flight import FlightTask, Messages
from alembert.spacecraft.frames import lvlh
from alembert.spacecraft.laws import (
    gains,
    magnetic_unloading,
    quaternion_feedback,
    wheel_momentum,
    wheel_torques,
)
from alembert.spatial import quaternion

Array = np.ndarray


def wheel_speeds(wheels: Sequence[ReactionWheel], *, period: float, **options: Any) -> list[Measured]:
    """Tachometers, called `WHEEL_speed`."""
    return [
        Measured(Sensor(f"{wheel.name}_speed", "joint_rate", wheel.name), period, **options)
        for wheel in wheels
    ]


def estimate(
    *,
    period: float,
    tracker: str = "stars",
    gyro: str = "rate",
    tracker_noise: Any = 5e-5,
    gyro_noise: float = 1e-5,
    gyro_walk: float = 1e-7,
    **options: Any,
) -> FlightTask:
    """The filter: writes `filter` (its memory) and `attitude` (quaternion and rate, 7 numbers).

    Until the star tracker has seen something, the attitude is NaN.
    """
    blank = AttitudeFilter.start([1.0, 0, 0, 0], noise=gyro_noise, walk=gyro_walk, angle=10.0).as_message()

    def function(t: float, m: Messages) -> Messages:
        state, seen = AttitudeFilter.of_message(m["filter"]), m[tracker]
        if state.P[0, 0] > 1.0:
            if not np.all(np.isfinite(seen)):
                return {"attitude": np.full(7, np.nan)}
            state = AttitudeFilter.start(
                seen, noise=gyro_noise, walk=gyro_walk, angle=float(np.max(tracker_noise)), bias=1e-4
            )
        else:
            state = state.propagate(m[gyro], period)
            if np.all(np.isfinite(seen)):
                state = state.with_attitude(seen, tracker_noise)
        return {"filter": state.as_message(), "attitude": np.r_[state.q, state.rate(m[gyro])]}

    writes = {"filter": blank, "attitude": np.full(7, np.nan)}
    return FlightTask(
        "estimate", function, period, (tracker, gyro, "filter"), writes, **{"priority": 3, **options}
    )


def control(
    wheels: Sequence[ReactionWheel],
    *,
    inertia: Any,
    period: float,
    bandwidth: float = 0.1,
    damping_ratio: float = 0.7071,
    target: Any = "lvlh",
    fix: str = "fix",
    **options: Any,
) -> FlightTask:
    """Quaternion feedback towards local axes ("lvlh", which needs a position fix) or a fixed attitude (wxyz); writes
    `wheels`.
    """
    local = isinstance(target, str)
    if local and target != "lvlh":
        raise ArgumentError(f"control: target is {target!r}, expected 'lvlh' or a quaternion (w, x, y, z)")
    J = np.asarray(inertia, dtype=float)
    if J.shape != (3, 3) or np.any(np.linalg.eigvalsh((J + J.T) / 2) <= 0):
        raise ArgumentError("control: inertia, expected a positive 3 x 3 matrix")
    stiffness, damping = gains(J, bandwidth, damping_ratio)
    speeds = tuple(f"{wheel.name}_speed" for wheel in wheels)

    def function(t: float, m: Messages) -> Messages:
        known = m["attitude"]
        aim, turning = np.asarray((1.0, 0, 0, 0) if local else target, dtype=float), np.zeros(3)
        if local:
            r, v = m[fix][:3], m[fix][3:]
            aim = np.asarray(quaternion.from_matrix(lvlh(r, v)), dtype=float)
            turning = np.array([0.0, -np.linalg.norm(np.cross(r, v)) / (r @ r), 0.0])
        if not (np.all(np.isfinite(known)) and np.all(np.isfinite(aim))):
            return {"wheels": np.zeros(len(wheels))}
        h = wheel_momentum(wheels, [float(m[name][0]) for name in speeds])
        u = quaternion_feedback(
            known[:4],
            known[4:],
            inertia=J,
            stiffness=stiffness,
            damping=damping,
            target_wxyz=aim,
            target_rate=turning,
            momentum=h,
        )
        return {"wheels": wheel_torques(wheels, u)}

    reads = ("attitude", *speeds, *((fix,) if local else ()))
    writes = {"wheels": np.zeros(len(wheels))}
    return FlightTask("control", function, period, reads, writes, **{"priority": 2, **options})


def unload(
    wheels: Sequence[ReactionWheel],
    torquer: MagneticTorquer,
    *,
    gain: float,
    period: float,
    field: str = "field",
    momentum: Any = (0.0, 0.0, 0.0),
    **options: Any,
) -> FlightTask:
    """Take the wheels' momentum towards `momentum` [N m s], with a `gain` [1/s]; writes `torquers`."""
    if not (math.isfinite(gain) and gain > 0):
        raise ArgumentError(f"unload: gain is {gain!r}, expected a positive rate in 1/s")
    speeds = tuple(f"{wheel.name}_speed" for wheel in wheels)

    def function(t: float, m: Messages) -> Messages:
        B = m[field]
        if not np.all(np.isfinite(B)):
            return {"torquers": np.zeros(3)}
        h = wheel_momentum(wheels, [float(m[name][0]) for name in speeds]) - np.asarray(momentum, dtype=float)
        return {"torquers": magnetic_unloading(h, B, gain, dipole=torquer.dipole)}

    return FlightTask(
        "unload", function, period, (field, *speeds), {"torquers": np.zeros(3)}, **{"priority": 1, **options}
    )
