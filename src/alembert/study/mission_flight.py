"""What a mission's file describes, made: the vehicle (hub, wheels, panels, slosh, arms that follow paths, a visitor with its
port), surroundings, sensors, software; and how it flies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from alembert import spacecraft as craft
from alembert.joints import Fixed, Free, Revolute
from alembert.model import Box, Inertia, Model, ModelBuilder, Placement, Visual
from alembert.simulate import Attach, Run, ensemble, simulate
from alembert.spacecraft.astronomy import EQUATOR
from alembert.spacecraft.environment import ENTRY
from alembert.spacecraft.orbits import origins
from alembert.spatial import quaternion
from alembert.study.task import OptionError, Setting, described_at

if TYPE_CHECKING:
    from alembert.study.tasks.mission import ArmEntry, MissionTask, OrbitEntry, ThrusterEntry, VisitorEntry

Array = np.ndarray
HUB, FLIGHT, VISITOR, VISITOR_FLIGHT, PORT, PROBE, EXPERIMENT, TANK, PROPELLANT = (
    "hub", "flight", "visitor", "visitor_flight", "port", "probe", "experiment", "tank", "propellant_mass",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Vehicle:
    """The model, its wheels, the surfaces that air and light push on, and joints that follow motions."""

    model: Model
    wheels: list[craft.ReactionWheel]
    surfaces: list[craft.Facet]
    motions: dict[str, ca.Function] = field(default_factory=dict)

    @classmethod
    def of(cls, task: MissionTask) -> Vehicle:
        builder = ModelBuilder("spacecraft", gravity=(0.0, 0.0, 0.0))
        v = task.vehicle
        if not all(x > 0 for x in v.size):
            raise OptionError(("vehicle", "size"), f"is {v.size}, expected three positive lengths")
        inertia = Inertia.box(v.mass, v.size)
        if v.inertia is not None:
            a, b, c = v.inertia
            inertia = Inertia(v.mass, (0.0, 0.0, 0.0), (a, 0.0, b, 0.0, 0.0, c))
        builder.body(HUB, inertia, joint=Free(), joint_name=FLIGHT, visuals=[Visual(Box(tuple(v.size)))])
        optics = {"drag": v.drag, "specular": v.specular, "diffuse": v.diffuse}
        surfaces = craft.box(HUB, v.size, **optics)
        wheels: list[craft.ReactionWheel] = []
        motions: dict[str, ca.Function] = {}
        for name, w in task.wheels.items():
            given = {key: value for key, value in w.given().items() if value is not None and key != "start"}
            with described_at("wheels", name):
                wheels.append(craft.reaction_wheel(builder, name, HUB, **given))
        for name, p in task.panels.items():
            if len(p.size) != 2:
                raise OptionError(("panels", name, "size"), f"has {len(p.size)} numbers, expected 2")
            given = {**p.given(), "size": tuple(p.size)}
            with described_at("panels", name):
                craft.hinged_panel(builder, name, HUB, **given)
            out = np.array(p.along) / np.linalg.norm(p.along)
            normal = np.cross(p.hinge, out)
            center = tuple(p.size[0] / 2 * out)
            surfaces.append(craft.panel(name, tuple(p.size), tuple(normal), center=center))
        for name, x in task.slosh.items():
            with described_at("slosh", name):
                craft.slosh_mass(builder, name, HUB, **x.given())
        for name, arm in task.arms.items():
            motions |= _arm(builder, name, arm)
        if task.tank is not None:
            _tank(builder, task)
        if task.microgravity is not None:
            builder.frame(EXPERIMENT, HUB, tuple(task.microgravity))
        if task.visitor is not None:
            _visitor(builder, task.visitor)
            surfaces += craft.box(VISITOR, task.visitor.size, **optics)
        with described_at("vehicle"):
            return cls(builder.build(), wheels, surfaces, motions)

    def inertia(self, *, docked: VisitorEntry | None = None) -> Array:
        """Of all that flies with the hub, its joints held, about the centre of mass in the hub's axes."""
        q = self.model.neutral()
        for name, motion in self.motions.items():
            q[self.model.q_slice(name)] = float(motion(0.0))
        whole = _inertia(self.model, q, FLIGHT)
        if docked is not None:
            R, p = placed(docked, docked.reach)
            whole += _inertia(self.model, q, VISITOR_FLIGHT).at(Placement.from_matrix(R, tuple(p)))
        return whole.matrix()


def _inertia(model: Model, q: Array, joint: str) -> Inertia:
    """Of all that hangs on a free joint, in the axes of its body."""
    s = model.v_slice(joint).start
    M = model.mass_matrix(q)[s : s + 6, s : s + 6]
    moment = M[2, 4], M[0, 5], M[1, 3]  # of m [c]x
    return Inertia.from_ten_vector((M[3, 3], *moment, M[0, 0], M[0, 1], M[1, 1], M[0, 2], M[1, 2], M[2, 2]))


def _arm(builder: ModelBuilder, name: str, arm: ArmEntry) -> dict[str, ca.Function]:
    """Adds the links; gives the motions of its joints."""
    along = np.asarray(arm.along, dtype=float)
    if not np.linalg.norm(along) > 0:
        raise OptionError(("arms", name, "along"), "is zero, expected a direction")
    out = along / np.linalg.norm(along)
    if not arm.links:
        raise OptionError(("arms", name, "links"), "is empty, expected one or more")
    parent, at = HUB, tuple(arm.at)
    for k, link in enumerate(arm.links, start=1):
        tip = tuple(link.length * out)
        bar = Visual(Box(tuple(np.abs(tip) + 0.03 * link.length)), Placement(tuple(np.array(tip) / 2)))
        with described_at("arms", name, "links", str(k - 1)):
            builder.body(
                f"{name}_{k}",
                Inertia.rod(link.mass, (0, 0, 0), tip),
                joint=Revolute(tuple(link.axis)),
                joint_name=f"{name}_{k}",
                parent=parent,
                placement=at,
                visuals=[bar],
            )
        parent, at = f"{name}_{k}", tip
    if arm.payload is not None:
        size = tuple(arm.payload.size)
        builder.body(
            f"{name}_payload",
            Inertia.box(arm.payload.mass, size),
            joint=Fixed(),
            parent=parent,
            placement=at,
            visuals=[Visual(Box(size))],
        )
    return {f"{name}_{k + 1}": _motion(name, arm, k) for k in range(len(arm.links))}


def _motion(name: str, arm: ArmEntry, k: int) -> ca.Function:
    """The angle of joint k."""
    place = ("arms", name, "path")
    wanted = 1 + len(arm.links)
    for row in arm.path:
        if len(row) != wanted:
            raise OptionError(
                place, f"has a row of {len(row)} numbers, expected {wanted}: a time and the angles"
            )
    rows = np.asarray(arm.path, dtype=float).reshape(-1, wanted)
    if len(rows) < 1 or np.any(np.diff(rows[:, 0]) <= 0):
        raise OptionError(place, f"has the times {rows[:, 0].tolist()}, expected them to rise")
    return craft.rest_to_rest(rows[:, 0], np.radians(rows[:, 1 + k]))


def _tank(builder: ModelBuilder, task: MissionTask) -> None:
    tank = task.tank
    assert tank is not None
    if not task.thrusters:
        raise OptionError(("tank",), "has propellant that nothing burns, expected thrusters")
    if task.visitor is not None:
        raise OptionError(
            ("tank",), "does not go with a visitor: masses that fall and captures do not go together"
        )
    mass = builder.parameter(PROPELLANT, tank.propellant)
    inertia = Inertia.sphere(mass, tank.radius)
    with described_at("tank"):
        builder.body(TANK, inertia, joint=Fixed(), parent=HUB, placement=tuple(tank.at))


def _visitor(builder: ModelBuilder, v: VisitorEntry) -> None:
    builder.body(
        VISITOR,
        Inertia.box(v.mass, tuple(v.size)),
        joint=Free(),
        joint_name=VISITOR_FLIGHT,
        visuals=[Visual(Box(tuple(v.size)))],
    )
    for name, body, at, face in ((PORT, HUB, v.hub_port, v.hub_face), (PROBE, VISITOR, v.port, v.face)):
        R = _facing(face, "hub_face" if body == HUB else "face")
        craft.docking_port(builder, name, body, at, quaternion_wxyz=quaternion.from_matrix(R))


def _facing(direction: Any, key: str) -> Array:
    """(3, 3): axes whose x looks along a direction, z as far as may be along the body's."""
    d = np.asarray(direction, dtype=float)
    if not np.linalg.norm(d) > 0:
        raise OptionError(("visitor", key), "is zero, expected a direction")
    d = d / np.linalg.norm(d)
    up = np.array([0.0, 0.0, 1.0]) if abs(d[2]) < 0.9 else np.array([1.0, 0.0, 0.0])
    y = np.cross(up, d)
    y /= np.linalg.norm(y)
    return np.stack([d, y, np.cross(d, y)], axis=1)


def placed(v: VisitorEntry, distance: float, tilt: Any = (0.0, 0.0, 0.0)) -> tuple[Array, Array]:
    """Rotation and place of the visitor in the hub's axes with its port opposite to the hub's, `distance` away."""
    R_port, R_probe = _facing(v.hub_face, "hub_face"), _facing(v.face, "face")
    turned = np.diag([-1.0, -1.0, 1.0])  # they look at one another
    R = R_port @ turned @ R_probe.T
    R = R @ np.asarray(quaternion.to_matrix(quaternion.exp(np.asarray(tilt, dtype=float))))
    if len(v.offset) != 2:
        raise OptionError(("visitor", "offset"), f"has {len(v.offset)} numbers, expected 2")
    p = np.asarray(v.hub_port) + R_port @ np.r_[distance, v.offset] - R @ np.asarray(v.port)
    return R, p


def docking_events(model: Model, v: VisitorEntry) -> list[Any]:
    """Of the capture, of latches, and of the release."""
    from alembert.joints import Spherical
    from alembert.simulate import Event

    if v.latch is not None and v.release is not None and v.release <= v.latch:
        raise OptionError(
            ("visitor", "release"),
            f"is at {v.release:g} s, expected it after the latches close at {v.latch:g} s",
        )
    gap = math.hypot(v.distance, *v.offset)
    if gap <= v.reach:
        raise OptionError(
            ("visitor", "distance"),
            f"leaves {gap:g} m between the ports, expected more than their reach of {v.reach:g} m: it is captured where it "
            "comes within",
        )
    more: dict[str, Any] = {} if v.latch is None else {"joint": Spherical()}
    event, held = craft.docking(
        model, PORT, PROBE, reach=v.reach, speed=v.most_speed, angle=math.radians(v.most_angle_deg), **more
    )
    events: list[Any] = [event]
    what: Any = held
    if v.latch is not None:
        latch, what = craft.latching(held, v.latch)
        events.append(latch)
    if v.release is not None:
        at = v.release
        events.append(Event(lambda t, q, v: t - at, f"release of {PROBE}", 1, craft.Separate(what, v.push)))
    return events


_LOW = 350e3
"""height of the perigee [m] up to which a flight with drag may end by entry; watching for it asks the tasks in Python"""
_SWITCH = "captured"
"""the sensor that tells the software whether a visitor is held"""


class MissionFlight:
    """All that a file describes, made."""

    def __init__(self, task: MissionTask) -> None:
        self.task = task
        with described_at("epoch"):
            epoch = self.epoch = craft.Epoch.of(task.epoch)
            _ = epoch.utc  # reports, and how far the Earth has turned
        with described_at("orbit"):
            self.orbit = _orbit_of(task.orbit, epoch)
        world = craft.Encke(self.orbit) if task.formulation == "encke" else craft.Cowell()
        with described_at("epoch"):
            self.environment = craft.Environment(epoch, world)
        self.vehicle = Vehicle.of(task)
        self.model, self.wheels = self.vehicle.model, self.vehicle.wheels
        around = task.surroundings
        with described_at("surroundings"):
            self.gravity = self.environment.gravity(
                degree=around.degree, order=around.order, sun=around.sun, moon=around.moon
            )
        self.others: dict[str, Any] = {}
        low = around.drag and self.orbit.perigee - EQUATOR < _LOW
        if low and self.orbit.perigee - EQUATOR <= ENTRY:
            raise OptionError(
                ("orbit",),
                f"has its perigee at {(self.orbit.perigee - EQUATOR) / 1e3:.4g} km, expected more than "
                f"{ENTRY / 1e3:g} km: below, the atmosphere ends a flight at once (surroundings.drag = false leaves it "
                "out); lengths are in metres",
            )
        if around.drag:
            self.others["drag"] = self.environment.drag(self.vehicle.surfaces)
        if around.light:
            self.others["sunlight"] = self.environment.solar_pressure(self.vehicle.surfaces)
        self.forces = {"gravity": self.gravity, **self.others}
        with described_at("surroundings", "magnetic_degree"):
            field = self.environment.magnetic_field(around.magnetic_degree)
        self.events = [] if task.visitor is None else docking_events(self.model, task.visitor)
        if low:
            self.events.append(self.environment.entry(self.model, HUB))
        with described_at("sensors"):
            self.sensors = self._sensors(field)
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
            with described_at("software"):
                law = craft.manage(
                    self.wheels, inertia=J, orbital_rate=self.orbit.rate, period=s.period, delay=s.delay,
                    angle=math.radians(s.trade_deg), momentum=s.trade_momentum,
                )  # fmt: skip
        else:
            target: Any = s.target if isinstance(s.target, str) else np.asarray(s.target, dtype=float)
            with described_at("software"):
                law = craft.control(
                    self.wheels, inertia=J, period=s.period, bandwidth=s.bandwidth, damping_ratio=s.damping_ratio,
                    target=target, delay=s.delay, **retarget,
                )  # fmt: skip
        tasks.append(law)
        devices: dict[str, Any] = {"wheels": self.wheels}
        if s.dipole is not None:
            torquer = craft.MagneticTorquer("torquer", HUB, s.dipole)
            tasks.append(craft.unload(self.wheels, torquer, gain=s.unloading, period=s.period, delay=s.delay))
            devices["torquers"] = [torquer]
        if self.task.thrusters:
            devices["thrusters"] = thrusters = [_thruster(*x) for x in self.task.thrusters.items()]
            burns = {name: x.burns for name, x in self.task.thrusters.items()}
            with described_at("thrusters"):
                tasks.append(craft.scheduled_burns(thrusters, burns, period=s.period))
        with described_at("software"):
            return craft.FlightSoftware(tuple(tasks)), devices

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
        target = self.task.software.target
        if isinstance(target, str):
            return self._turned(time, q, v).magnitude()
        R = quaternion.to_scipy(q[:, self.model.q_slice(FLIGHT)][:, 3:])
        return (quaternion.to_scipy(target).inv() * R).magnitude()

    def _turned(self, time: Any, q: Array, v: Array) -> Rotation:
        """Of the hub against the local axes."""
        r0, v0 = origins(self.environment.world, np.broadcast_to(time, len(q)))
        at, moving = q[:, self.model.q_slice(FLIGHT)], v[:, self.model.v_slice(FLIGHT)]
        R = quaternion.to_scipy(at[:, 3:])
        local = craft.lvlh(at[:, :3] + r0, R.apply(moving[:, 3:]) + v0)
        return Rotation.from_matrix(local).inv() * R

    def pointing(self, run: Run) -> Array:
        """(N,): the angle to the target [rad]."""
        return self._off(run.time, run.q, run.v)

    def angles(self, run: Run) -> Array:
        """(N, 3): roll, pitch and yaw of the hub against the local axes [rad]: a rotation vector."""
        return self._turned(run.time, run.q, run.v).as_rotvec()

    def wheel_momentum(self, run: Run) -> Array:
        """(N, 3): of the wheels relative to the hub, in its axes [N m s]."""
        columns = [self.model.v_slice(w.name).start for w in self.wheels]
        axes = np.array([w.inertia * np.array(w.axis) for w in self.wheels])
        return run.v[:, columns] @ axes

    def orbit_at(self, run: Run, k: int) -> craft.Orbit:
        r, v = self.environment.inertial(run, HUB)
        return craft.Orbit.of_state(r[k], v[k], suborbital=True)


def _thruster(name: str, x: ThrusterEntry) -> craft.Thruster:
    with described_at("thrusters", name):
        return craft.Thruster(name, HUB, x.direction, x.force, x.minimum, x.specific_impulse, x.at)


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
