"""The task `mission`: a spacecraft on an orbit, with devices, sensors and flight software, as one file describes it.

[task]
type = "mission"                        [task.vehicle]               [task.wheels.x]
epoch = "2026-03-01T12:00:00"           mass = 320.0                 axis = [1, 0, 0]
time = 600.0                            size = [1.2, 1.0, 1.5]       inertia = 0.03
step = 0.1
                                        [task.orbit]                 [task.software]
                                        altitude = 500e3             bandwidth = 0.1
                                        inclination_deg = 97.4       target = "lvlh"
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictStr

from alembert.errors import AlembertError
from alembert.joints import Free
from alembert.model import Box, Inertia, Model, ModelBuilder, Visual
from alembert.model.io.schema import FileTable, Vector
from alembert.study import figures
from alembert.study.parts import Grid
from alembert.study.task import (
    Count,
    Number,
    Numbers,
    OptionError,
    OutputFile,
    Positive,
    Setting,
    Task,
    TaskResult,
)
from alembert.view import figures as drawing

if TYPE_CHECKING:
    from alembert.simulate import Run
    from alembert.spacecraft import Environment, MomentumBalance, Orbit

Array = np.ndarray
PLOT = (".png", ".svg", ".pdf")


class OrbitEntry(FileTable):
    """Osculating elements at the epoch, or two-line elements."""

    altitude: Number | None = Field(
        default=None, description="Of the semi-major axis over the equator's radius, m."
    )
    eccentricity: Number = 0.0
    inclination_deg: Number = 0.0
    node_deg: Number = Field(default=0.0, description="Right ascension of the ascending node.")
    argument_deg: Number = Field(default=0.0, description="Of the perigee.")
    anomaly_deg: Number = Field(default=0.0, description="True anomaly.")
    tle: list[StrictStr] | None = Field(
        default=None, description="Two lines, in place of all others (needs sgp4)."
    )


class VehicleEntry(FileTable):
    """The rigid hub: a cuboid, whose sides are those that air and light push on."""

    mass: Positive = Field(description="kg.")
    size: Vector = Field(description="m, along its axes.")
    inertia: Vector | None = Field(
        default=None, description="Principal moments, kg m^2; those of a uniform cuboid."
    )
    specular: Number = Field(default=0.2, description="Part of the light that is mirrored.")
    diffuse: Number = Field(default=0.2, description="Part of the light that is scattered.")
    drag: Number = Field(default=2.2, description="Drag coefficient.")


class WheelEntry(FileTable):
    """A reaction wheel on the hub."""

    axis: Vector
    inertia: Positive = Field(description="About the axis, kg m^2.")
    torque: Positive | None = Field(default=None, description="At most, N m.")
    speed: Positive | None = Field(default=None, description="At most, rad/s.")
    start: Number = Field(default=0.0, description="Speed at the start, rad/s.")
    viscous: Number = Field(default=0.0, description="Friction, N m s.")
    coulomb: Number = Field(default=0.0, description="Friction, N m.")
    static_imbalance: Number = Field(default=0.0, description="kg m.")
    dynamic_imbalance: Number = Field(default=0.0, description="kg m^2.")


class PanelEntry(FileTable):
    """A hinged panel on the hub; air and light push on both sides."""

    mass: Positive = Field(description="kg.")
    size: Numbers = Field(description="Along and across, m.")
    at: Vector = Field(description="Place of the hinge on the hub, m.")
    along: Vector = Field(default=(0.0, 1.0, 0.0), description="Where it reaches out to.")
    hinge: Vector = Field(default=(1.0, 0.0, 0.0), description="Axis of the hinge.")
    stiffness: Number = Field(default=0.0, description="Of the hinge, N m/rad.")
    damping: Number = Field(default=0.0, description="Of the hinge, N m s/rad.")


class SloshEntry(FileTable):
    """Propellant on a spring along an axis."""

    mass: Positive = Field(description="kg.")
    stiffness: Positive = Field(description="N/m.")
    damping: Number = Field(default=0.0, description="N s/m.")
    axis: Vector = Field(default=(1.0, 0.0, 0.0), description="Along which it moves.")
    at: Vector = Field(default=(0.0, 0.0, 0.0), description="m.")


class SurroundingsEntry(FileTable):
    """What acts from outside."""

    degree: int = Field(
        default=2, strict=True, description="Of the Earth's gravity: 0 a point, 2 with J2, up to 20."
    )
    order: int = Field(default=0, strict=True, description="Of terms that turn with the Earth.")
    sun: bool = Field(default=False, strict=True, description="Gravity of the Sun.")
    moon: bool = Field(default=False, strict=True, description="Gravity of the Moon.")
    drag: bool = Field(default=True, strict=True, description="Of the atmosphere, CIRA-72.")
    light: bool = Field(
        default=True, strict=True, description="Pressure of sunlight, with the Earth's shadow."
    )
    magnetic_degree: int = Field(
        default=8, strict=True, description="Of the magnetic field (IGRF-14), 1 to 13."
    )


class SensorsEntry(FileTable):
    """Star tracker, gyro, magnetometer and position fixes."""

    period: Positive | None = Field(default=None, description="Between samples, s; that of the software.")
    tracker_noise: Number = Field(default=5e-5, description="Of each small angle, rad.")
    tracker_dropout: Number = Field(default=0.0, description="Chance that a sample is lost.")
    sun_exclusion_deg: Number = Field(default=0.0, description="About the boresight, which looks along -z.")
    gyro_noise: Number = Field(default=1e-5, description="Angle random walk, rad/sqrt(s).")
    gyro_walk: Number = Field(default=1e-7, description="Of the bias, rad/s/sqrt(s).")
    gyro_bias: Number = Field(default=0.0, description="At the start, rad/s.")
    field_noise: Number = Field(default=5e-8, description="T.")
    position_noise: Number = Field(default=5.0, description="m.")
    seed: int = Field(default=0, strict=True, ge=0, description="Of the random numbers.")


class SoftwareEntry(FileTable):
    """Estimate, control and unload."""

    period: Positive = Field(default=0.2, description="Of all tasks, s; a multiple of the step.")
    delay: Number = Field(default=0.0, description="From samples to commands, s.")
    bandwidth: Positive = Field(default=0.1, description="Of the attitude loop, rad/s.")
    damping_ratio: Positive = Field(default=0.7071, description="Of the attitude loop.")
    target: Literal["lvlh"] | Numbers = Field(
        default="lvlh", description='"lvlh", or a quaternion (w, x, y, z).'
    )
    dipole: Positive | None = Field(
        default=None, description="Of three torquers, A m^2; without it no unloading."
    )
    unloading: Positive = Field(default=1e-3, description="Gain of unloading, 1/s.")


class DispersionsEntry(FileTable):
    """Runs from scattered starts, besides the nominal one."""

    members: Count
    seed: int = Field(default=0, strict=True, ge=0, description="Of the random numbers.")
    attitude_deg: Number = Field(default=1.0, description="Standard deviation about each axis.")
    rate_deg: Number = Field(default=0.05, description="Of each component, deg/s.")


class MissionTask(Task):
    """Fly a spacecraft: orbit, environment, devices, sensors and flight software, with budgets of momentum."""

    NEEDS_MODEL: ClassVar[bool] = False
    KEYS: ClassVar = {
        "model": "its name",
        "epoch": "UTC",
        "orbit": "semi-major axis [m], eccentricity and inclination [rad] at the start and at the end",
        "pointing_error": "angle to the target, rad: at the end, and the largest of the second half",
        "wheel_speeds": "at the end, rad/s, by wheel",
        "momentum_error": "of the balance, angular and linear, of the momenta inside",
        "angular_impulses": "N m s, by source",
        "members": "of the dispersions, pointing error at the end, rad",
        "records": "how many were kept",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile((".csv", ".nc"), "records of coordinates, speeds and efforts"),
        "plot": OutputFile(PLOT, "pointing, wheels and torques over time"),
        "html": OutputFile((".html",), "an animation, one file for the browser"),
    }

    type: Literal["mission"] = "mission"
    epoch: StrictStr = Field(description="UTC, as 2026-03-01T12:00:00.")
    time: Positive = Field(description="How long, s.")
    step: Positive = Field(default=0.1, description="Of the integrator (rk4), s.")
    formulation: Literal["encke", "cowell"] = Field(
        default="encke",
        description="Whether positions are deviations from a reference orbit, or from the Earth's centre.",
    )
    orbit: OrbitEntry = Field(description="At the epoch.")
    vehicle: VehicleEntry = Field(description="The hub, which carries everything else.")
    wheels: dict[str, WheelEntry] = Field(description="By name; three or more.")
    panels: dict[str, PanelEntry] = Field(default={}, description="By name.")
    slosh: dict[str, SloshEntry] = Field(default={}, description="By name.")
    surroundings: SurroundingsEntry = Field(
        default=SurroundingsEntry(), description="Gravity, atmosphere, light, magnetic field."
    )
    sensors: SensorsEntry = Field(default=SensorsEntry(), description="Their noise and rates.")
    software: SoftwareEntry = Field(default=SoftwareEntry(), description="What flies it.")
    attitude_deg: Vector = Field(
        default=(0.0, 0.0, 0.0), description="Off the target at the start: a rotation vector."
    )
    rate_deg: Vector = Field(
        default=(0.0, 0.0, 0.0), description="Off the target's rate at the start, deg/s."
    )
    dispersions: DispersionsEntry | None = Field(
        default=None, description="Flights with other starts, besides this one."
    )

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.spacecraft import momentum_balance

        flight = _Flight(self)
        run = flight.simulate(setting)
        balance = momentum_balance(run, flight.forces)
        error = flight.pointing(run)
        members = flight.members(setting)
        found, start = flight.orbit_at(run, -1), flight.orbit_at(run, 0)
        late = error[len(error) // 2 :]
        speeds = {w.name: float(run.v[-1, flight.model.v_slice(w.name).start]) for w in flight.wheels}
        data = {
            "model": flight.model.name,
            "epoch": flight.epoch.utc,
            "orbit": [[o.semi_axis, o.eccentricity, o.inclination] for o in (start, found)],
            "pointing_error": [float(error[-1]), float(late.max())],
            "wheel_speeds": speeds,
            "momentum_error": [balance.angular_error, balance.linear_error],
            "angular_impulses": {name: x[-1].tolist() for name, x in balance.impulses.items()},
            "members": members,
            "records": len(run.time),
        }
        names = ("semi-major axis [km]", "eccentricity", "inclination [deg]", "node [deg]")
        rows = [
            (name, f"{a:.9g}", f"{b:.9g}")
            for name, a, b in zip(names, _elements(start), _elements(found), strict=True)
        ]
        parts: list[Any] = [
            Grid.of("orbit", ("", "start", "end"), rows),
            Grid.of(
                "pointing",
                ("", "deg"),
                [
                    ("at the end", f"{math.degrees(error[-1]):.3g}"),
                    ("second half, largest", f"{math.degrees(late.max()):.3g}"),
                ],
            ),
            Grid.of(
                "angular impulse from outside",
                ("source", "x [N m s]", "y", "z", "largest torque [N m]"),
                [
                    (
                        name,
                        *(f"{v:.4g}" for v in x[-1]),
                        f"{np.linalg.norm(balance.torques[name], axis=-1).max():.3g}",
                    )
                    for name, x in balance.impulses.items()
                ],
            ),
            Grid.of(
                "wheels at the end", ("wheel", "rad/s"), [(name, f"{x:.6g}") for name, x in speeds.items()]
            ),
            str(balance),
        ]
        if members:
            spread = np.degrees(members)
            parts.append(
                Grid.of(
                    f"dispersions: {len(members)} members, pointing at the end",
                    ("", "deg"),
                    [("mean", f"{spread.mean():.3g}"), ("largest", f"{spread.max():.3g}")],
                )
            )
        seeds = {"sensors": self.sensors.seed}
        if self.dispersions is not None:
            seeds["dispersions"] = self.dispersions.seed
        return TaskResult(
            data,
            tuple(parts),
            files={
                "save": run.save,
                "plot": partial(figures.save, lambda: _over_time(flight, run, error, balance)),
                "html": run.to_html,
            },
            figures={
                "Pointing, wheels and torques": lambda: _over_time(flight, run, error, balance),
                "Ground track": lambda: _ground_track(flight.environment, run),
                "Orbit": lambda: _orbit(flight.environment, run),
            },
            seeds=seeds,
        )


class _Flight:
    """All that a file describes, made."""

    def __init__(self, task: MissionTask) -> None:
        from alembert import spacecraft as craft

        self.task = task
        s = task.software
        epoch = self.epoch = _named(("epoch",), lambda: craft.Epoch.of(task.epoch))
        self.orbit: Orbit = _named(("orbit",), lambda: _orbit_of(task.orbit, epoch))
        world = craft.Encke(self.orbit) if task.formulation == "encke" else craft.Cowell()
        self.environment: Environment = _named(("epoch",), lambda: craft.Environment(epoch, world))
        self.wheels: list[Any] = []
        self.model = self._vehicle()
        around = task.surroundings
        self.gravity = _named(
            ("surroundings",),
            lambda: self.environment.gravity(
                degree=around.degree, order=around.order, sun=around.sun, moon=around.moon
            ),
        )
        facets = craft.box(
            "hub",
            task.vehicle.size,
            drag=task.vehicle.drag,
            specular=task.vehicle.specular,
            diffuse=task.vehicle.diffuse,
        )
        for name, p in task.panels.items():
            out = np.array(p.along) / np.linalg.norm(p.along)
            normal = np.cross(p.hinge, out)
            facets.append(craft.panel(name, tuple(p.size), tuple(normal), center=tuple(p.size[0] / 2 * out)))
        others: dict[str, Any] = {}
        if around.drag:
            others["drag"] = self.environment.drag(facets)
        if around.light:
            others["sunlight"] = self.environment.solar_pressure(facets)
        self.others = others
        self.forces = {"gravity": self.gravity, **others}
        field = _named(
            ("surroundings", "magnetic_degree"),
            lambda: self.environment.magnetic_field(around.magnetic_degree),
        )
        self.sensors = self._sensors(field)
        J = self._inertia()
        target: Any = s.target if isinstance(s.target, str) else np.asarray(s.target, dtype=float)
        x = task.sensors
        tasks = [
            craft.estimate(
                period=s.period, tracker_noise=x.tracker_noise or 1e-6, gyro_noise=x.gyro_noise or 1e-7,
                gyro_walk=x.gyro_walk or 1e-9,
            ),
            _named(
                ("software",),
                lambda: craft.control(
                    self.wheels, inertia=J, period=s.period, bandwidth=s.bandwidth,
                    damping_ratio=s.damping_ratio, target=target, delay=s.delay,
                ),
            ),
        ]  # fmt: skip
        devices: dict[str, Any] = {"wheels": self.wheels}
        if s.dipole is not None:
            torquer = craft.MagneticTorquer("torquer", "hub", s.dipole)
            tasks.append(craft.unload(self.wheels, torquer, gain=s.unloading, period=s.period, delay=s.delay))
            devices["torquers"] = [torquer]
        self.software = craft.FlightSoftware(tuple(tasks))
        self.hardware = craft.Hardware(self.model, devices, s.period, magnetic=field)
        self.q0, self.v0 = self._start()

    def _vehicle(self) -> Model:
        from alembert import spacecraft as craft

        task, v = self.task, self.task.vehicle
        builder = ModelBuilder("spacecraft", gravity=(0.0, 0.0, 0.0))
        inertia = Inertia.box(v.mass, v.size)
        if v.inertia is not None:
            a, b, c = v.inertia
            inertia = Inertia(v.mass, (0.0, 0.0, 0.0), (a, 0.0, b, 0.0, 0.0, c))
        builder.body("hub", inertia, joint=Free(), joint_name="flight", visuals=[Visual(Box(tuple(v.size)))])
        for name, w in task.wheels.items():
            given = {key: value for key, value in w.given().items() if value is not None and key != "start"}
            self.wheels.append(
                _named(
                    ("wheels", name),
                    lambda name=name, given=given: craft.reaction_wheel(builder, name, "hub", **given),
                )
            )
        for name, p in task.panels.items():
            if len(p.size) != 2:
                raise OptionError(("panels", name, "size"), f"has {len(p.size)} numbers, expected 2")
            given = {**p.given(), "size": tuple(p.size)}
            _named(
                ("panels", name),
                lambda name=name, given=given: craft.hinged_panel(builder, name, "hub", **given),
            )
        for name, x in task.slosh.items():
            given = dict(x.given())
            _named(
                ("slosh", name),
                lambda name=name, given=given: craft.slosh_mass(builder, name, "hub", **given),
            )
        return _named(("vehicle",), builder.build)

    def _inertia(self) -> Array:
        """Of the whole at the start about the hub's origin, its wheels held."""
        M = self.model.mass_matrix(self.model.neutral())
        s = self.model.v_slice("flight").start
        return M[s : s + 3, s : s + 3]

    def _sensors(self, field: Any) -> list[Any]:
        from alembert import spacecraft as craft

        x, e = self.task.sensors, self.environment
        period = x.period or self.task.software.period
        tracker = craft.star_tracker(
            "stars", "hub", e, period=period, noise=x.tracker_noise, dropout=x.tracker_dropout,
            boresight=(0.0, 0.0, -1.0), sun_exclusion=math.radians(x.sun_exclusion_deg), seed=x.seed,
        )  # fmt: skip
        rate = craft.gyro(
            "rate",
            "hub",
            period=period,
            noise_density=x.gyro_noise,
            walk_density=x.gyro_walk,
            bias=x.gyro_bias,
            seed=x.seed,
        )
        found = [tracker, rate, *craft.wheel_speeds(self.wheels, period=period)]
        found.append(
            craft.magnetometer(
                "field", "hub", e, period=period, noise=x.field_noise, seed=x.seed, magnetic=field
            )
        )
        spread = (*(x.position_noise,) * 3, *(1e-3 * x.position_noise,) * 3)
        found.append(craft.position_fix("fix", "hub", e, period=period, noise=spread, seed=x.seed))
        return found

    def _target(self, r: Array, v: Array) -> tuple[Array, Array]:
        """Attitude (wxyz) and rate in its axes."""
        from alembert.spacecraft import lvlh
        from alembert.spatial import quaternion

        target = self.task.software.target
        if not isinstance(target, str):
            q = np.asarray(target, dtype=float)
            if q.shape != (4,) or not abs(np.linalg.norm(q) - 1) < 1e-6:
                raise OptionError(
                    ("software", "target"), f"is {target}, expected 'lvlh' or a unit quaternion"
                )
            return q / np.linalg.norm(q), np.zeros(3)
        q = np.asarray(quaternion.from_matrix(lvlh(r, v)), dtype=float)
        return q, np.array([0.0, -np.linalg.norm(np.cross(r, v)) / (r @ r), 0.0])

    def _start(self, attitude: Any = None, rate: Any = None) -> tuple[Array, Array]:
        from alembert.spatial import quaternion

        task = self.task
        aim, turning = self._target(*self.orbit.state())
        off = np.radians(task.attitude_deg) + (0.0 if attitude is None else attitude)
        turn = quaternion.exp(off)
        q_wxyz = np.asarray(quaternion.multiply(aim, turn), dtype=float)
        w = np.asarray(quaternion.to_matrix(turn), dtype=float).T @ turning
        w = w + np.radians(task.rate_deg) + (0.0 if rate is None else rate)
        q, v = self.environment.start(self.model, self.orbit, attitude=q_wxyz, rate=w)
        for name, wheel in task.wheels.items():
            if wheel.speed is not None and abs(wheel.start) > wheel.speed:
                raise OptionError(
                    ("wheels", name, "start"),
                    f"is {wheel.start:g} rad/s, beyond the wheel's speed of {wheel.speed:g}",
                )
            v[self.model.v_slice(name)] = wheel.start
        return q, v

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
        }

    def simulate(self, setting: Setting) -> Run:
        from alembert.simulate import simulate

        return simulate(self.model, self.q0, self.v0, progress=setting.progress, **self.options)

    def members(self, setting: Setting) -> list[float]:
        """The pointing error at the end of each of the dispersions."""
        from alembert.simulate import ensemble

        given = self.task.dispersions
        if given is None:
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
            **self.options,
        )
        return [
            float(self._off(self.task.time, found.q[k, -1], found.v[k, -1])) for k in range(given.members)
        ]

    def _off(self, t: float, q: Array, v: Array) -> float:
        from alembert.spacecraft.laws import attitude_error
        from alembert.spacecraft.orbits import origin

        r0, v0 = origin(self.environment.world, t)
        s, u = self.model.q_slice("flight"), self.model.v_slice("flight")
        R = self.model.frame_pose(q, "hub").rotation
        aim, _ = self._target(q[s][:3] + r0, R @ v[u][3:] + v0)
        e = attitude_error(q[s][3:], aim)
        return 2 * math.atan2(float(np.linalg.norm(e[1:])), float(e[0]))

    def pointing(self, run: Run) -> Array:
        """(N,): the angle to the target [rad]."""
        return np.array([self._off(float(t), q, v) for t, q, v in zip(run.time, run.q, run.v, strict=True)])

    def orbit_at(self, run: Run, k: int) -> Orbit:
        from alembert.spacecraft import Orbit

        r, v = self.environment.inertial(run, "hub")
        return Orbit.of_state(r[k], v[k])


def _named(place: tuple[str, ...], make: Any) -> Any:
    """What is made, or an error with the place in the file."""
    try:
        return make()
    except OptionError:
        raise
    except AlembertError as error:
        raise OptionError(place, str(error)) from None


def _orbit_of(entry: OrbitEntry, epoch: Any) -> Orbit:
    from alembert.spacecraft import Orbit
    from alembert.spacecraft.frames import EQUATOR

    if entry.tle is not None:
        if len(entry.tle) != 2:
            raise OptionError(("orbit", "tle"), f"has {len(entry.tle)} lines, expected 2")
        return Orbit.of_tle(*entry.tle, epoch=epoch)
    if entry.altitude is None:
        raise OptionError(("orbit",), "has no altitude and no tle, expected one of them")
    return Orbit(
        EQUATOR + entry.altitude,
        entry.eccentricity,
        math.radians(entry.inclination_deg),
        math.radians(entry.node_deg),
        math.radians(entry.argument_deg),
        math.radians(entry.anomaly_deg),
        epoch,
    )


def _elements(orbit: Orbit) -> tuple[float, float, float, float]:
    return (
        orbit.semi_axis / 1e3,
        orbit.eccentricity,
        math.degrees(orbit.inclination),
        math.degrees(orbit.node),
    )


def _over_time(flight: _Flight, run: Run, error: Array, balance: MomentumBalance) -> Any:
    figure, axes = drawing.panels("plot", 3)
    drawing.lines(axes[0], run.time, {"angle to the target": np.degrees(error)}, "pointing [deg]")
    speeds = {w.name: run.v[:, flight.model.v_slice(w.name).start] for w in flight.wheels}
    drawing.lines(axes[1], run.time, speeds, "wheels [rad/s]")
    torques: Mapping[str, Array] = balance.torques
    drawing.lines(
        axes[2], run.time, {name: np.linalg.norm(x, axis=-1) for name, x in torques.items()}, "torque [N m]"
    )
    axes[2].set_yscale("symlog", linthresh=1e-9)
    axes[2].set_xlabel("time [s]")
    return figure


def _ground_track(environment: Environment, run: Run) -> Any:
    figure, axes = drawing.panels("plot", 1)
    track = np.degrees(environment.ground_track(run, "hub")[:, :2])
    jumps = np.flatnonzero(np.abs(np.diff(track[:, 1])) > 180) + 1
    for piece in np.split(track, jumps):
        axes[0].plot(piece[:, 1], piece[:, 0], color="C0")
    axes[0].plot(track[0, 1], track[0, 0], "o", color="C0")
    axes[0].set(xlim=(-180, 180), ylim=(-90, 90), xlabel="longitude [deg]", ylabel="latitude [deg]")
    axes[0].grid(True)
    return figure


def _orbit(environment: Environment, run: Run) -> Any:
    from matplotlib.figure import Figure

    from alembert.spacecraft.frames import EQUATOR

    figure = Figure(figsize=(6, 6))
    axis: Any = figure.add_subplot(projection="3d")
    r, _ = environment.inertial(run, "hub")
    u, w = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(-np.pi / 2, np.pi / 2, 13))
    k = EQUATOR / 1e3
    axis.plot_wireframe(
        k * np.cos(u) * np.cos(w), k * np.sin(u) * np.cos(w), k * np.sin(w), linewidth=0.3, color="C7"
    )
    axis.plot(*(r.T / 1e3), color="C1")
    axis.set(xlabel="x [km]", ylabel="y [km]", zlabel="z [km]")
    axis.set_box_aspect((1, 1, 1))
    return figure
