"""What a mission's file describes, made: vehicle, surroundings, sensors, software; and how it flies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert import spacecraft as craft
from alembert.simulate import Attach, Run, ensemble, simulate
from alembert.spacecraft.astronomy import EQUATOR
from alembert.spacecraft.environment import ENTRY
from alembert.spacecraft.orbits import origins
from alembert.spatial import quaternion
from alembert.study.mission.vehicle import (
    FLIGHT,
    HUB,
    PORT,
    PROBE,
    PROPELLANT,
    VISITOR_FLIGHT,
    Vehicle,
    docking_events,
    named,
    placed,
)
from alembert.study.task import OptionError, Setting

if TYPE_CHECKING:
    from alembert.study.mission.tables import OrbitEntry
    from alembert.study.tasks.mission import MissionTask

Array = np.ndarray
_LOW = 350e3
"""height of the perigee [m] up to which a flight with drag may end by entry; watching for it asks the tasks in Python"""
_SWITCH = "captured"
"""the sensor that tells the software whether a visitor is held"""


class MissionFlight:
    """All that a file describes, made."""

    def __init__(self, task: MissionTask) -> None:
        self.task = task
        epoch = self.epoch = named(("epoch",), lambda: craft.Epoch.of(task.epoch))
        self.orbit = named(("orbit",), lambda: _orbit_of(task.orbit, epoch))
        world = craft.Encke(self.orbit) if task.formulation == "encke" else craft.Cowell()
        self.environment = named(("epoch",), lambda: craft.Environment(epoch, world))
        self.vehicle = Vehicle.of(task)
        self.model, self.wheels = self.vehicle.model, self.vehicle.wheels
        around = task.surroundings
        self.gravity = named(
            ("surroundings",),
            lambda: self.environment.gravity(
                degree=around.degree, order=around.order, sun=around.sun, moon=around.moon
            ),
        )
        self.others: dict[str, Any] = {}
        low = around.drag and self.orbit.perigee - EQUATOR < _LOW
        if low and self.orbit.perigee - EQUATOR <= ENTRY:
            raise OptionError(
                ("orbit",),
                f"has its perigee at {(self.orbit.perigee - EQUATOR) / 1e3:.4g} km, expected more than "
                f"{ENTRY / 1e3:g} km: below, the atmosphere ends a flight at once (surroundings.drag = false leaves it out)",
            )
        if around.drag:
            self.others["drag"] = self.environment.drag(self.vehicle.surfaces)
        if around.light:
            self.others["sunlight"] = self.environment.solar_pressure(self.vehicle.surfaces)
        self.forces = {"gravity": self.gravity, **self.others}
        field = named(
            ("surroundings", "magnetic_degree"),
            lambda: self.environment.magnetic_field(around.magnetic_degree),
        )
        self.events = [] if task.visitor is None else docking_events(self.model, task.visitor)
        if low:
            self.events.append(self.environment.entry(self.model, HUB))
        self.sensors = named(("sensors",), lambda: self._sensors(field))
        self.software, devices = self._software()
        tank = None if task.tank is None else PROPELLANT
        self.hardware = craft.Hardware(self.model, devices, task.software.period, magnetic=field, tank=tank)
        self.q0, self.v0 = self._start()

    def _software(self) -> tuple[craft.FlightSoftware, dict[str, Any]]:
        s, x, visitor = self.task.software, self.task.sensors, self.task.visitor
        J = self.vehicle.inertia()
        tasks = [
            craft.estimate(
                period=s.period, tracker_noise=x.tracker_noise or 1e-6, gyro_noise=x.gyro_noise or 1e-7,
                gyro_walk=x.gyro_walk or 1e-9,
            )
        ]  # fmt: skip
        retarget: dict[str, Any] = {}
        if visitor is not None:
            tasks.append(craft.note_docking(switch=_SWITCH, period=s.period))
            retarget = {"docked": "docked", "docked_inertia": self.vehicle.inertia(docked=visitor)}
        if s.law == "momentum":
            for what, wrong in (("a visitor", visitor is not None), ("a dipole", s.dipole is not None)):
                if wrong:
                    raise OptionError(("software", "law"), f'is "momentum", which does not go with {what}')
            if s.target != "lvlh":
                raise OptionError(("software", "target"), 'expected "lvlh" with the law "momentum"')
            law = named(
                ("software",),
                lambda: craft.manage(
                    self.wheels, inertia=J, orbital_rate=self.orbit.rate, period=s.period, delay=s.delay,
                    angle=math.radians(s.trade_deg), momentum=s.trade_momentum,
                ),
            )  # fmt: skip
        else:
            target: Any = s.target if isinstance(s.target, str) else np.asarray(s.target, dtype=float)
            law = named(
                ("software",),
                lambda: craft.control(
                    self.wheels, inertia=J, period=s.period, bandwidth=s.bandwidth, damping_ratio=s.damping_ratio,
                    target=target, delay=s.delay, **retarget,
                ),
            )  # fmt: skip
        tasks.append(law)
        devices: dict[str, Any] = {"wheels": self.wheels}
        if s.dipole is not None:
            torquer = craft.MagneticTorquer("torquer", HUB, s.dipole)
            tasks.append(craft.unload(self.wheels, torquer, gain=s.unloading, period=s.period, delay=s.delay))
            devices["torquers"] = [torquer]
        if self.task.thrusters:
            devices["thrusters"] = thrusters = [
                named(
                    ("thrusters", name),
                    lambda name=name, x=x: craft.Thruster(  # type: ignore[misc]
                        name, HUB, x.direction, x.force, x.minimum, x.specific_impulse, x.at
                    ),
                )
                for name, x in self.task.thrusters.items()
            ]
            burns = {name: x.burns for name, x in self.task.thrusters.items()}
            tasks.append(
                named(("thrusters",), lambda: craft.scheduled_burns(thrusters, burns, period=s.period))
            )
        return named(("software",), lambda: craft.FlightSoftware(tuple(tasks))), devices

    def _sensors(self, field: Any) -> list[Any]:
        x, e = self.task.sensors, self.environment
        period = x.period or self.task.software.period
        common: dict[str, Any] = {"period": period, "seed": x.seed}
        tracker = craft.star_tracker(
            "stars", HUB, e, noise=x.tracker_noise, dropout=x.tracker_dropout, boresight=(0.0, 0.0, -1.0),
            sun_exclusion=math.radians(x.sun_exclusion_deg), **common,
        )  # fmt: skip
        rate = craft.gyro(
            "rate", HUB, noise_density=x.gyro_noise, walk_density=x.gyro_walk, bias=x.gyro_bias, **common
        )
        found = [tracker, rate, *craft.wheel_speeds(self.wheels, period=period)]
        if self.task.software.dipole is not None:
            found.append(craft.magnetometer("field", HUB, e, noise=x.field_noise, magnetic=field, **common))
        spread = (*(x.position_noise,) * 3, *(1e-3 * x.position_noise,) * 3)
        found.append(craft.position_fix("fix", HUB, e, noise=spread, **common))
        if self.task.visitor is not None:
            found.append(craft.port_range("ports", PORT, PROBE, period=period))
            held = [event.action for event in self.events if isinstance(event.action, Attach)]
            found.append(craft.docking_switch(_SWITCH, *held, period=period))
        return found

    def _target(self, r: Array, v: Array) -> tuple[Array, Array]:
        """Attitude (wxyz) and rate in its axes."""
        target = self.task.software.target
        if not isinstance(target, str):
            q = np.asarray(target, dtype=float)
            if q.shape != (4,) or not abs(np.linalg.norm(q) - 1) < 1e-6:
                raise OptionError(
                    ("software", "target"), f"is {target}, expected 'lvlh' or a unit quaternion"
                )
            return q / np.linalg.norm(q), np.zeros(3)
        q = np.asarray(quaternion.from_matrix(craft.lvlh(r, v)), dtype=float)
        return q, np.array([0.0, -np.linalg.norm(np.cross(r, v)) / (r @ r), 0.0])

    def _start(self, attitude: Any = None, rate: Any = None) -> tuple[Array, Array]:
        task = self.task
        aim, turning = self._target(*self.orbit.state())
        off = np.radians(task.attitude_deg) + (0.0 if attitude is None else attitude)
        turn = quaternion.exp(off)
        q_wxyz = np.asarray(quaternion.multiply(aim, turn), dtype=float)
        w = np.asarray(quaternion.to_matrix(turn), dtype=float).T @ turning
        w = w + np.radians(task.rate_deg) + (0.0 if rate is None else rate)
        q, v = self.environment.start(self.model, self.orbit, attitude=q_wxyz, rate=w, joint=FLIGHT)
        for name, wheel in task.wheels.items():
            if wheel.speed is not None and abs(wheel.start) > wheel.speed:
                raise OptionError(
                    ("wheels", name, "start"),
                    f"is {wheel.start:g} rad/s, beyond the wheel's speed of {wheel.speed:g}",
                )
            v[self.model.v_slice(name)] = wheel.start
        if task.visitor is not None:
            self._place_visitor(q, v)
        return q, v

    def _place_visitor(self, q: Array, v: Array) -> None:
        """Opposite to the port, at rest in the axes of the hub but for its approach."""
        model, given = self.model, self.task.visitor
        assert given is not None
        R, p = placed(given, given.distance, np.radians(given.tilt_deg))
        hub, flight = q[model.q_slice(FLIGHT)], v[model.v_slice(FLIGHT)]
        R_hub = np.asarray(quaternion.to_matrix(hub[3:]), dtype=float)
        face = np.asarray(given.hub_face) / np.linalg.norm(given.hub_face)
        speed = flight[3:] + np.cross(flight[:3], p) - given.speed * face
        q[model.q_slice(VISITOR_FLIGHT)] = np.r_[hub[:3] + R_hub @ p, quaternion.from_matrix(R_hub @ R)]
        v[model.v_slice(VISITOR_FLIGHT)] = np.r_[R.T @ flight[:3], R.T @ speed]

    @property
    def options(self) -> dict[str, Any]:
        return {
            "duration": self.task.time,
            "step": self.task.step,
            "integrator": "rk4",
            "gravity": self.gravity,
            "forces": list(self.others.values()),
            "controller": self.software.controllers(self.hardware, self.sensors),
            "sensors": self.sensors,
            "prescribed": self.vehicle.motions,
            "events": self.events,
        }

    def simulate(self, setting: Setting) -> Run:
        return simulate(self.model, self.q0, self.v0, progress=setting.progress, **self.options)

    def members(self, setting: Setting, end: float) -> list[float]:
        """The pointing error of each of the dispersions when the flight ended; NaN where one had ended before."""
        given = self.task.dispersions
        period = self.task.software.period
        duration = self.task.time if end >= self.task.time - period / 2 else math.floor(end / period) * period
        if given is None or duration <= 0:
            return []
        angle, rate = math.radians(given.attitude_deg), math.radians(given.rate_deg)

        def vary(rng: np.random.Generator) -> dict[str, Any]:
            q, v = self._start(angle * rng.standard_normal(3), rate * rng.standard_normal(3))
            return {"q0": q, "v0": v}

        found = ensemble(
            self.model,
            vary,
            members=given.members,
            seed=given.seed,
            backend="batch",
            progress=setting.progress,
            **{**self.options, "events": (), "duration": duration},
        )
        return self._off(duration, found.q[:, -1], found.v[:, -1]).tolist()

    # --- what was flown ---------------------------------------------------------------------------------------------

    def _off(self, time: Any, q: Array, v: Array) -> Array:
        """(N,): the angle to the target [rad] of states at times, or at one time."""
        r0, v0 = origins(self.environment.world, np.broadcast_to(time, len(q)))
        s, u = self.model.q_slice(FLIGHT), self.model.v_slice(FLIGHT)
        R = quaternion.to_scipy(q[:, s][:, 3:])
        target = self.task.software.target
        if isinstance(target, str):
            local = craft.lvlh(q[:, s][:, :3] + r0, R.apply(v[:, u][:, 3:]) + v0)
            return scipy.spatial.transform.Rotation.from_matrix(
                np.swapaxes(local, -1, -2) @ R.as_matrix()
            ).magnitude()
        return (quaternion.to_scipy(target).inv() * R).magnitude()

    def pointing(self, run: Run) -> Array:
        """(N,): the angle to the target [rad]."""
        return self._off(run.time, run.q, run.v)

    def angles(self, run: Run) -> Array:
        """(N, 3): roll, pitch and yaw of the hub against the local axes [rad]: a rotation vector."""
        local = craft.lvlh(*self.environment.inertial(run, HUB))
        R = self.model.frame_pose(run.q, HUB).rotation
        return scipy.spatial.transform.Rotation.from_matrix(np.swapaxes(local, -1, -2) @ R).as_rotvec()

    def wheel_momentum(self, run: Run) -> Array:
        """(N, 3): of the wheels relative to the hub, in its axes [N m s]."""
        columns = [self.model.v_slice(w.name).start for w in self.wheels]
        axes = np.array([w.inertia * np.array(w.axis) for w in self.wheels])
        return run.v[:, columns] @ axes

    def orbit_at(self, run: Run, k: int) -> craft.Orbit:
        r, v = self.environment.inertial(run, HUB)
        return craft.Orbit.of_state(r[k], v[k], suborbital=True)


def _orbit_of(entry: OrbitEntry, epoch: craft.Epoch) -> craft.Orbit:
    if entry.tle is not None:
        if len(entry.tle) != 2:
            raise OptionError(("orbit", "tle"), f"has {len(entry.tle)} lines, expected 2")
        return craft.Orbit.of_tle(*entry.tle, epoch=epoch)
    if entry.altitude is None:
        raise OptionError(("orbit",), "has no altitude and no tle, expected one of them")
    return craft.Orbit(
        EQUATOR + entry.altitude,
        entry.eccentricity,
        math.radians(entry.inclination_deg),
        math.radians(entry.node_deg),
        math.radians(entry.argument_deg),
        math.radians(entry.anomaly_deg),
        epoch,
    )
