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

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, StrictStr

from alembert.model import Model
from alembert.model.io.schema import Vector
from alembert.study import figures
from alembert.study.mission.tables import (
    ArmEntry,
    DispersionsEntry,
    OrbitEntry,
    PanelEntry,
    SensorsEntry,
    SloshEntry,
    SoftwareEntry,
    SurroundingsEntry,
    TankEntry,
    ThrusterEntry,
    VehicleEntry,
    VisitorEntry,
    WheelEntry,
)
from alembert.study.parts import Grid
from alembert.study.task import OptionError, OutputFile, Positive, Setting, Task, TaskResult

if TYPE_CHECKING:
    from alembert.simulate import EventRecord

PLOT = (".png", ".svg", ".pdf")


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
        from alembert.study.mission.flight import MissionFlight
        from alembert.study.mission.page import MissionPage

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
            files={"save": run.save, "plot": partial(figures.save, page.over_time), "html": run.to_html},
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
