"""Ready flight software: estimate the attitude, hold it with wheels, unload them with magnets or the gravity gradient.

The tasks are expressions: with sensors they become part of the compiled loop. `estimate` runs the filter on star tracker and
gyro, `control` gives the wheels torques by quaternion feedback, `unload` gives the torquers a dipole against the wheels'
momentum. Each is a plain `FlightTask`; take them apart, replace one, add your own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, check_known, numbers, real
from alembert.control import StateSpace, c2d
from alembert.errors import ArgumentError
from alembert.model import Sensor
from alembert.simulate.controllers import SymbolicLaw
from alembert.simulate.inputs import Table
from alembert.simulate.sensors import Measured
from alembert.spacecraft.astronomy import lvlh
from alembert.spacecraft.attitude import (
    AttitudeFilter,
    attitude_error,
    gains,
    local_motion,
    magnetic_unloading,
    momentum_management,
    quaternion_feedback,
    wheel_momentum,
    wheel_torques,
)
from alembert.spacecraft.devices import MagneticTorquer, ReactionWheel, Thruster, positive
from alembert.spacecraft.flight import HUGE, FlightTask
from alembert.spatial import quaternion
from alembert.spatial.arrays import vector, where


def finite(x: Any) -> Any:
    """Whether all entries of an expression are numbers: what a sensor lost is NaN."""
    return ca.sum1(ca.fabs(x) <= HUGE) == x.numel()


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
    tracker_noise: Numbers = 5e-5,
    gyro_noise: float = 1e-5,
    gyro_walk: float = 1e-7,
    **options: Any,
) -> FlightTask:
    """The filter: writes `filter` and `before` (its memory) and `attitude` (quaternion and rate, 7 numbers).

    Between samples it turns at the mean of the gyro's last two readings. Until the star tracker has seen something, the
    attitude is NaN.
    """
    blank = AttitudeFilter.start([1.0, 0, 0, 0], noise=gyro_noise, walk=gyro_walk, angle=10.0).as_message()

    def function(t: Any, m: Any) -> dict[str, Any]:
        state, seen = AttitudeFilter.of_message(m["filter"]), m[tracker]
        there, begun = finite(seen), state.P[0, 0] < 1.0
        first = AttitudeFilter.start(
            seen, noise=gyro_noise, walk=gyro_walk, angle=float(np.max(tracker_noise)), bias=1e-4
        ).as_message()
        before = where(finite(m["before"]), m["before"], m[gyro])
        moved = state.propagate((m[gyro] + before) / 2, period)
        told = moved.with_attitude(seen, tracker_noise).as_message()
        going = where(there, told, moved.as_message())
        following = where(begun, going, where(there, first, m["filter"]))
        known = AttitudeFilter.of_message(following)
        attitude = vector(known.q, known.rate(m[gyro]))
        known_at_all = begun + there > 0
        known_attitude = where(known_at_all, attitude, ca.SX.nan(7))
        return {"filter": following, "attitude": known_attitude, "before": m[gyro]}

    writes = {"filter": blank, "attitude": np.full(7, np.nan), "before": np.full(3, np.nan)}
    return FlightTask(
        "estimate",
        SymbolicLaw(function),
        period,
        (tracker, gyro, "filter", "before"),
        writes,
        **{"priority": 3, "counts_once": (tracker,), **options},
    )


def control(
    wheels: Sequence[ReactionWheel],
    *,
    inertia: Numbers,
    period: float,
    bandwidth: float = 0.1,
    damping_ratio: float = 0.7071,
    target: Any = "lvlh",
    fix: str = "fix",
    docked: str | None = None,
    docked_inertia: Numbers = None,
    **options: Any,
) -> FlightTask:
    """Quaternion feedback towards local axes ("lvlh", which needs a position fix) or a fixed attitude (wxyz); writes
    `wheels`.

    With `docked`, the name of a message that is 1 from a docking on (see `note_docking`), it then takes
    `docked_inertia` [kg m^2], that of all that flies together, with gains for it.
    """
    local = isinstance(target, str)
    if local and target != "lvlh":
        raise ArgumentError(f"control: target is {target!r}, expected 'lvlh' or a quaternion (w, x, y, z)")
    if not local:
        aimed = numbers("control", "target", target, 4, batch=False)
        if not abs(np.linalg.norm(aimed) - 1) < 1e-6:
            raise ArgumentError(f"control: target is {target!r}, expected a unit quaternion (w, x, y, z)")
    positive("control", period=period, bandwidth=bandwidth, damping_ratio=damping_ratio)
    if bandwidth * damping_ratio * period >= 1:  # a pole of the sampled loop of a rigid body is at -1
        raise ArgumentError(
            f"control: a bandwidth of {bandwidth:g} rad/s is unstable with commands every {period:g} s and a damping ratio "
            f"of {damping_ratio:g}; expected less than 1/(damping_ratio * period) = {1 / (damping_ratio * period):.3g} rad/s"
        )
    J = _inertia("control: inertia", inertia)
    if (docked is None) != (docked_inertia is None):
        raise ArgumentError("control: docked and docked_inertia go together, expected both or none")
    both = J if docked is None else _inertia("control: docked_inertia", docked_inertia)
    (stiffness, damping), (stiffer, damped) = (gains(x, bandwidth, damping_ratio) for x in (J, both))
    speeds = tuple(f"{wheel.name}_speed" for wheel in wheels)

    def function(t: Any, m: Any) -> dict[str, Any]:
        known = m["attitude"]
        aim, turning = ca.SX([1.0, 0, 0, 0] if local else list(target)), ca.SX.zeros(3)
        there = finite(known)
        if local:
            r, v = m[fix][:3], m[fix][3:]
            aim = quaternion.from_matrix(lvlh(r, v))
            h = ca.cross(r, v)
            turning[1] = -ca.sqrt(ca.dot(h, h)) / ca.dot(r, r)
            there = ca.logic_and(there, finite(m[fix]))
        now, Kp, Kd = J, stiffness, damping
        if docked is not None:
            together = m[docked] > 0.5
            now, Kp, Kd = (
                ca.if_else(together, ca.DM(b), ca.DM(a))
                for a, b in ((J, both), (stiffness, stiffer), (damping, damped))
            )
        u = quaternion_feedback(
            known[:4],
            known[4:],
            inertia=now,
            stiffness=Kp,
            damping=Kd,
            target_wxyz=aim,
            target_rate=turning,
            momentum=wheel_momentum(wheels, vector(*(m[name] for name in speeds))),
        )
        return {"wheels": where(there, wheel_torques(wheels, u), ca.SX.zeros(len(wheels)))}

    reads = ("attitude", *speeds, *((fix,) if local else ()), *((docked,) if docked else ()))
    writes = {"wheels": np.zeros(len(wheels))}
    return FlightTask("control", SymbolicLaw(function), period, reads, writes, **{"priority": 2, **options})


def follow(
    wheels: Sequence[ReactionWheel],
    law: StateSpace,
    *,
    attitude: Table,
    rate: Table,
    torque: Table | None = None,
    **options: Any,
) -> FlightTask:
    """A sampled linear law that holds the craft to a planned turn; writes `wheels`, and `law`, its states.

    Inputs of the law are the small rotation from the planned attitude to the estimated one, and the difference of
    rates, both in the craft's axes; its outputs are the torques of the motors. The plan has quaternions (N, 4), rates
    (N, 3) [rad/s] and, if given, torques of the motors (N, wheels) [N m] that are added. The task's period is the law's.
    """
    if law.dt <= 0:
        raise ArgumentError(
            "follow: law is continuous, expected a sampled one; take al.control.c2d(law, period)"
        )
    expected = {"inputs of the law": 6, "outputs of the law": len(wheels), "attitude": 4, "rate": 3}
    given = dict(zip(expected, (law.D.shape[1], law.D.shape[0], attitude.width, rate.width), strict=True))
    if torque is not None:
        expected["torque"], given["torque"] = len(wheels), torque.width
    for what, count in expected.items():
        if given[what] != count:
            raise ArgumentError(f"follow: {what}: {given[what]}, expected {count}")
    grows = float(np.abs(np.linalg.eigvals(law.A)).max(initial=0.0))
    if grows > 1 - 1e-9:
        raise ArgumentError(
            f"follow: a state of law has the factor {grows:.6g} a sample: it would run away while a motor is at its limit; "
            "expected a stable law, or a DynamicController, which has anti-windup"
        )

    def function(t: Any, m: Any) -> dict[str, Any]:
        known = m["attitude"]
        there = finite(known)
        error = quaternion.log(attitude_error(known[:4], quaternion.normalize(attitude.symbolic(t))))
        turning = quaternion.to_matrix(quaternion.exp(error)).T @ rate.symbolic(t)
        y = vector(error, known[4:] - turning)
        x = m["law"]
        u = ca.DM(law.C) @ x + ca.DM(law.D) @ y
        if torque is not None:
            u = u + torque.symbolic(t)
        following = ca.DM(law.A) @ x + ca.DM(law.B) @ y
        return {"wheels": where(there, u, ca.SX.zeros(len(wheels))), "law": where(there, following, x)}

    return FlightTask(
        "follow",
        SymbolicLaw(function),
        law.dt,
        ("attitude", "law"),
        {"wheels": np.zeros(len(wheels)), "law": np.zeros(len(law.A))},
        **{"priority": 2, **options},
    )


def _inertia(what: str, given: Any) -> np.ndarray:
    J = np.asarray(given, dtype=float)
    if J.shape != (3, 3) or np.any(np.linalg.eigvalsh((J + J.T) / 2) <= 0):
        raise ArgumentError(f"{what}, expected a positive 3 x 3 matrix")
    return J


def note_docking(
    *,
    period: float,
    switch: str | None = None,
    reach: float | None = None,
    distance: str = "ports",
    **options: Any,
) -> FlightTask:
    """Note that ports are together: writes `docked`, 1 while a `docking_switch` says so, or, without one, from the first
    sample of their `distance` within `reach` [m] on: that is so too for a visitor that was refused, and bounces off."""
    if (switch is None) == (reach is None):
        raise ArgumentError("note_docking: switch and reach, expected one of them")
    if reach is not None:
        real("note_docking", "reach", reach, "a positive distance", over=0.0)

    def function(t: Any, m: Any) -> dict[str, Any]:
        if switch is not None:
            return {"docked": m[switch] > 0.5}
        return {"docked": ca.fmax(m["docked"], m[distance] <= reach)}

    return FlightTask(
        "note_docking",
        SymbolicLaw(function),
        period,
        (switch,) if switch is not None else (distance, "docked"),
        {"docked": np.zeros(1)},
        **{"priority": 4, **options},
    )


def manage(
    wheels: Sequence[ReactionWheel],
    *,
    inertia: Numbers,
    orbital_rate: float,
    period: float,
    angle: float = 0.02,
    momentum: float = 100.0,
    fix: str = "fix",
    **options: Any,
) -> FlightTask:
    """Momentum management (`momentum_management`): gives up some attitude, so that the gravity gradient takes out the
    momentum of the wheels; writes `wheels` and `sums`, its integrals of their momentum.

    It holds local axes, for angles that are small; `angle` [rad] and `momentum` [N m s] weigh one against the other.
    """
    real("manage", "orbital_rate", orbital_rate, "a positive rate in rad/s", over=0.0)
    J = _inertia("manage: inertia", inertia)
    pitch, roll_yaw = momentum_management(J, orbital_rate, angle=angle, momentum=momentum)
    for (A, B), K in zip(local_motion(J, orbital_rate), (pitch, roll_yaw), strict=True):
        held = c2d(StateSpace(A, B, np.eye(len(A))), period)
        grows = float(np.abs(np.linalg.eigvals(held.A - held.B @ K)).max())
        if not grows < 1:
            fastest = float(np.abs(np.linalg.eigvals(A - B @ K)).max())
            raise ArgumentError(
                f"manage: momentum is {momentum:g} N m s and angle {angle:g} rad, a loop of {fastest:.3g} rad/s: "
                f"sampled every {period:g} s it is not stable; weigh by less momentum (of the wheels), or by a larger angle"
            )
    speeds = tuple(f"{wheel.name}_speed" for wheel in wheels)

    def function(t: Any, m: Any) -> dict[str, Any]:
        known = m["attitude"]
        local = lvlh(m[fix][:3], m[fix][3:])
        R = local.T @ quaternion.to_matrix(known[:4])
        angles = vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / 2
        rates = known[4:] + R.T @ ca.DM([0.0, orbital_rate, 0.0])
        h = wheel_momentum(wheels, vector(*(m[name] for name in speeds)))
        sums = m["sums"] + period * h
        x = ca.horzcat(angles, rates, h, sums)
        roll, yaw = ca.vertsplit(-ca.DM(roll_yaw) @ ca.vertcat(x[0, :].T, x[2, :].T))
        given = vector(roll, -ca.DM(pitch) @ x[1, :].T, yaw)
        there = ca.logic_and(finite(known), finite(m[fix]))
        torque = wheel_torques(wheels, -given)
        return {
            "wheels": where(there, torque, ca.SX.zeros(len(wheels))),
            "sums": where(there, sums, m["sums"]),
        }

    return FlightTask(
        "manage",
        SymbolicLaw(function),
        period,
        ("attitude", fix, "sums", *speeds),
        {"wheels": np.zeros(len(wheels)), "sums": np.zeros(3)},
        **{"priority": 2, **options},
    )


def unload(
    wheels: Sequence[ReactionWheel],
    torquer: MagneticTorquer,
    *,
    gain: float,
    period: float,
    field: str = "field",
    momentum: Numbers = (0.0, 0.0, 0.0),
    **options: Any,
) -> FlightTask:
    """Take the wheels' momentum towards `momentum` [N m s], with a `gain` [1/s]; writes `torquers`."""
    real("unload", "gain", gain, "a positive rate in 1/s", over=0.0)
    speeds = tuple(f"{wheel.name}_speed" for wheel in wheels)
    aim = np.asarray(momentum, dtype=float)

    def function(t: Any, m: Any) -> dict[str, Any]:
        h = wheel_momentum(wheels, vector(*(m[name] for name in speeds))) - ca.DM(aim)
        u = magnetic_unloading(h, m[field], gain, dipole=torquer.dipole)
        return {"torquers": where(finite(m[field]), u, ca.SX.zeros(3))}

    return FlightTask(
        "unload",
        SymbolicLaw(function),
        period,
        (field, *speeds),
        {"torquers": np.zeros(3)},
        **{"priority": 1, **options},
    )


def scheduled_burns(
    thrusters: Sequence[Thruster],
    burns: Mapping[str, Sequence[Sequence[float]]],
    *,
    period: float,
    **options: Any,
) -> FlightTask:
    """Open thrusters by a plan, for each name a list of (start, duration) [s]; writes `thrusters`."""
    plans = []
    known = [x.name for x in thrusters]
    for name in burns:
        check_known("scheduled_burns: no thruster", name, known)
    for name in known:
        plan = sorted(tuple(float(x) for x in burn) for burn in burns.get(name, ()))
        if any(len(x) != 2 or not (x[0] >= 0 and math.isfinite(x[0]) and x[1] > 0) for x in plan):
            raise ArgumentError(
                f"scheduled_burns: burns of {name!r} are {plan}, expected a start and a positive duration each"
            )
        for (start, duration), (later, _) in itertools.pairwise(plan):
            if later < start + duration:
                raise ArgumentError(
                    f"scheduled_burns: a burn of {name!r} from {start:g} s for {duration:g} s and the next at {later:g} s "
                    "overlap"
                )
        plans.append(plan)

    def function(t: Any, m: Any) -> dict[str, Any]:
        message = []
        for plan in plans:
            now = ca.SX.zeros(2)
            for start, duration in reversed(plan):
                now = ca.if_else(t < start + duration, ca.DM([duration, start]), now)
            message.append(now)
        return {"thrusters": ca.vertcat(*message)}

    writes = {"thrusters": np.zeros(2 * len(plans))}
    return FlightTask("burns", SymbolicLaw(function), period, (), writes, **{"priority": 1, **options})
