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

from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, StrictStr

from alembert.model import Model
from alembert.model.io.schema import FileTable, Vector
from alembert.study.report import Grid, save_figure
from alembert.study.task import (
    PLOT,
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

if TYPE_CHECKING:
    from alembert.simulate import EventRecord


def _instant(value: Any) -> Any:
    """TOML's own dates and times as text; without an offset they are UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat() if isinstance(value, date) else value


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


class ThrusterEntry(FileTable):
    """A thruster on the hub that burns at given times, from the tank; without one the mass of the vehicle stays."""

    direction: Vector = Field(description="In which it pushes the hub, in its axes.")
    force: Positive = Field(description="N.")
    at: Vector = Field(default=(0.0, 0.0, 0.0), description="Place on the hub, m.")
    specific_impulse: Positive = Field(default=220.0, description="s.")
    minimum: Number = Field(default=0.0, description="Shortest pulse that it gives, s.")
    burns: list[Numbers] = Field(default=[], description="Each a start and a duration, s.")


class TankEntry(FileTable):
    """Propellant that thrusters burn: a sphere on the hub that becomes lighter."""

    propellant: Positive = Field(description="At the start, kg; besides the mass of the vehicle.")
    radius: Positive = Field(description="Of the sphere, m.")
    at: Vector = Field(default=(0.0, 0.0, 0.0), description="Its centre on the hub, m.")


class SloshEntry(FileTable):
    """Propellant on a spring along an axis."""

    mass: Positive = Field(description="kg.")
    stiffness: Positive = Field(description="N/m.")
    damping: Number = Field(default=0.0, description="N s/m.")
    axis: Vector = Field(default=(1.0, 0.0, 0.0), description="Along which it moves.")
    at: Vector = Field(default=(0.0, 0.0, 0.0), description="m.")


class LinkEntry(FileTable):
    """A link of an arm: a rod that turns about an axis at its near end."""

    axis: Vector = Field(description="Of the joint, in the axes of the hub while all angles are zero.")
    length: Positive = Field(description="m.")
    mass: Positive = Field(description="kg.")


class PayloadEntry(FileTable):
    """What an arm carries: a cuboid."""

    mass: Positive = Field(description="kg.")
    size: Vector = Field(description="m, along its axes.")


class ArmEntry(FileTable):
    """A manipulator on the hub, whose joints follow a path whatever that takes; they are called NAME_1, NAME_2, ..."""

    at: Vector = Field(description="Place of the shoulder on the hub, m.")
    along: Vector = Field(default=(1.0, 0.0, 0.0), description="Where it reaches out to at zero angles.")
    links: list[LinkEntry] = Field(description="From the shoulder on.")
    payload: PayloadEntry | None = Field(default=None, description="At the tip.")
    path: list[Numbers] = Field(
        description="Where it stands still: a time [s], then the angle of each joint [deg]; it moves smoothly between."
    )


class VisitorEntry(FileTable):
    """A vehicle without control that drifts to a port of the hub and is captured there."""

    mass: Positive = Field(description="kg.")
    size: Vector = Field(description="m, along its axes.")
    port: Vector = Field(description="Of the visitor, in its axes, m.")
    face: Vector = Field(default=(-1.0, 0.0, 0.0), description="Where the visitor's port looks, in its axes.")
    hub_port: Vector = Field(
        description="Of the hub, in its axes, m; off the centre the capture turns the hub."
    )
    hub_face: Vector = Field(default=(1.0, 0.0, 0.0), description="Where the hub's port looks.")
    distance: Positive = Field(description="Between the ports at the start, m.")
    offset: Numbers = Field(
        default=(0.0, 0.0), description="Across the port's axis at the start, two numbers, m."
    )
    tilt_deg: Vector = Field(
        default=(0.0, 0.0, 0.0), description="Of the visitor at the start: a rotation vector in its axes."
    )
    speed: Positive = Field(description="At which it comes, m/s.")
    reach: Positive = Field(default=0.05, description="Distance at which the port captures, m.")
    most_speed: Positive = Field(default=0.1, description="That is captured, m/s.")
    most_angle_deg: Positive = Field(default=5.0, description="Between the ports' axes that is captured.")
    latch: Positive | None = Field(
        default=None,
        description="When latches close, s; until then a captured visitor turns in the port. Without it a capture is rigid.",
    )
    release: Positive | None = Field(default=None, description="When it is let go, s.")
    push: Number = Field(default=0.0, description="Impulse at the release, N s.")


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

    law: Literal["hold", "momentum"] = Field(
        default="hold",
        description='"hold" keeps the target; "momentum" lets the gravity gradient take out the momentum of the wheels.',
    )
    trade_deg: Positive = Field(
        default=1.0, description='Of "momentum": the angle that weighs as much as `trade_momentum`.'
    )
    trade_momentum: Positive = Field(default=100.0, description='Of "momentum": N m s.')

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
        "events": "time [s] and name of each, with what was refused",
        "microgravity": "at the place that is asked for: root mean square and peak, millionths of g",
        "propellant": "that thrusters have used, kg",
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
    epoch: Annotated[StrictStr, BeforeValidator(_instant)] = Field(description="UTC, as 2026-03-01T12:00:00.")
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
    thrusters: dict[str, ThrusterEntry] = Field(default={}, description="By name.")
    tank: TankEntry | None = Field(
        default=None, description="What thrusters burn; without it the mass of the vehicle stays."
    )
    slosh: dict[str, SloshEntry] = Field(default={}, description="By name.")
    arms: dict[str, ArmEntry] = Field(default={}, description="Manipulators that follow a path, by name.")
    visitor: VisitorEntry | None = Field(default=None, description="A vehicle that comes to dock.")
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
    microgravity: Vector | None = Field(
        default=None, description="A place on the hub at which what is felt is told, m."
    )
    dispersions: DispersionsEntry | None = Field(
        default=None, description="Flights with other starts, besides this one."
    )

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.spacecraft import momentum_balance
        from alembert.study.mission_flight import MissionFlight
        from alembert.study.mission_page import MissionPage

        if self.visitor is not None and self.dispersions is not None:
            raise OptionError(
                ("dispersions",), "does not go with a visitor: members fly in batches, without events"
            )
        flight = MissionFlight(self)
        run = flight.simulate(setting)
        balance = momentum_balance(run, flight.forces)
        error = flight.pointing(run)
        page = MissionPage(flight, run, balance, error)
        members = flight.members(setting, float(run.time[-1]))
        orbits = [flight.orbit_at(run, k) for k in (0, -1)]
        late = error[len(error) // 2 :]
        data = {
            "model": flight.model.name,
            "epoch": flight.epoch.utc,
            "orbit": [[o.semi_axis, o.eccentricity, o.inclination] for o in orbits],
            "pointing_error": [float(error[-1]), float(late.max())],
            "wheel_speeds": {
                w.name: float(run.v[-1, flight.model.v_slice(w.name).start]) for w in flight.wheels
            },
            "momentum_error": [balance.angular_error, balance.linear_error],
            "angular_impulses": {name: x[-1].tolist() for name, x in balance.impulses.items()},
            "events": [[event.time, _told(event)] for event in run.events],
            "propellant": float(run.measurements["propellant"].values[-1, 0]),
            "microgravity": None if page.level is None else [page.level.rms, page.level.peak],
            "members": members,
            "records": len(run.time),
        }
        parts: list[Any] = page.tables()
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
            files={"save": run.save, "plot": partial(save_figure, page.over_time), "html": run.to_html},
            figures={
                "Ground track": page.ground_track,
                "Attitude": page.attitude,
                "Momentum": page.momentum,
                "Disturbances": page.disturbances,
                **({} if page.level is None else {"Microgravity": page.microgravity}),
            },
            scenes={"Orbit": page.globe},
            seeds=seeds,
            model=flight.model,
        )


def _told(event: EventRecord) -> str:
    """Its name, and why a capture, latch or release came to nothing."""
    refused = [name for name in event.quantities if name.startswith("refused")]
    return ", ".join([event.name, *refused])
