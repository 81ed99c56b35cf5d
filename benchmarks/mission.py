"""A mission: hub, three wheels, two panels, J2, drag, gravity gradient, sensors and a 10 Hz controller, next to Basilisk.

Ours has the sensors' noise and walk, and the law works on the star tracker, the gyro, a position fix and tachometers. The
time is the processor's for one period of 0.1 s, one RK4 step: the slope between a short and a long run, least of some each.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import alembert as al
from alembert import spacecraft as sc
from alembert.spatial import quaternion
from benchmarks.rows import Row, against

PERIOD, MISSIONS = 0.1, 256


class Mission:
    """The satellite of `benchmarks/basilisk_satellite.py`."""

    def __init__(self, *, filtered: bool = False) -> None:
        orbit = sc.Orbit.circular(500e3, 97.4)
        space = sc.Environment(sc.Epoch.of("2026-03-01T12:00:00"), sc.Encke(orbit))
        builder = al.ModelBuilder("satellite", gravity=(0, 0, 0))
        builder.body("hub", al.Inertia.box(300, (1.0, 1.2, 1.5)), joint=al.Free(), joint_name="flight")
        self.wheels = [
            sc.reaction_wheel(builder, f"wheel_{k}", "hub", axis, inertia=0.03, torque=0.2, speed=600)
            for k, axis in zip("xyz", np.eye(3), strict=True)
        ]
        faces = list(sc.box("hub", (1.0, 1.2, 1.5)))
        for name, sign in (("left", 1.0), ("right", -1.0)):
            options = {"along": (0, sign, 0), "stiffness": 60, "damping": 0.4}
            sc.hinged_panel(builder, name, "hub", mass=12, size=(2.5, 1.0), at=(0, 0.6 * sign, 0), **options)
            faces.append(sc.panel(name, (2.5, 1.0), (0, 0, 1), center=(0, 1.25 * sign, 0)))
        self.model = builder.build()
        self.space, self.filtered = space, filtered
        self.forces = {
            "gravity": space.gravity(),
            "forces": space.drag(faces, sc.Exponential(4e-12, 400e3, 60e3)),
        }
        self.q, self.v = space.start(self.model, orbit)
        self.v[:3] += [0.001, -0.001, 0.001]
        self.J = self.model.mass_matrix(self.q)[:3, :3]

    def _control(self) -> sc.FlightTask:
        """Quaternion feedback straight from the sensors, as in the other program."""
        wheels, J = self.wheels, self.J
        stiffness, damping = sc.gains(J, 0.1)
        speeds = tuple(f"{wheel.name}_speed" for wheel in wheels)

        def law(t: Any, m: Any) -> dict[str, Any]:
            import casadi as ca

            r, v = m["fix"][:3], m["fix"][3:]
            h = ca.cross(r, v)
            u = sc.quaternion_feedback(
                m["stars"],
                m["rate"],
                inertia=J,
                stiffness=stiffness,
                damping=damping,
                target_wxyz=quaternion.from_matrix(sc.lvlh(r, v)),
                target_rate=ca.vertcat(0, -ca.sqrt(ca.dot(h, h)) / ca.dot(r, r), 0),
                momentum=sc.wheel_momentum(wheels, ca.vertcat(*(m[name] for name in speeds))),
            )
            return {"wheels": sc.wheel_torques(wheels, u)}

        reads = ("stars", "rate", "fix", *speeds)
        return sc.FlightTask("control", al.simulate.SymbolicLaw(law), PERIOD, reads, {"wheels": np.zeros(3)})

    def fly(self, duration: float, missions: int | None = None) -> al.simulate.Run:
        seed: Any = 0 if missions is None else np.arange(missions)
        space, at = self.space, {"period": PERIOD, "seed": seed}
        sensors = [
            sc.star_tracker("stars", "hub", space, noise=5e-5, **at),
            sc.gyro("rate", "hub", noise_density=1e-5, walk_density=1e-7, **at),
            sc.position_fix("fix", "hub", space, noise=1e-3, **at),
            *sc.wheel_speeds(self.wheels, period=PERIOD),
        ]
        tasks = [self._control()]
        if self.filtered:
            tasks = [
                sc.estimate(period=PERIOD),
                sc.control(self.wheels, inertia=self.J, period=PERIOD, bandwidth=0.1),
            ]
        software = sc.FlightSoftware(tasks)
        hardware = sc.Hardware(self.model, {"wheels": self.wheels}, period=PERIOD)
        q, v = self.q, self.v
        if missions is not None:
            q, v = np.tile(q, (missions, 1)), np.tile(v, (missions, 1))
        return al.simulate(
            *(self.model, q, v),
            duration=duration,
            step=PERIOD,
            interval=10.0,
            integrator="rk4",
            sensors=sensors,
            controller=software.controllers(hardware, sensors),
            progress=False,
            **self.forces,
        )

    def time(self, short: float, long: float, missions: int | None, repeats: int) -> float:
        """Seconds of the processor for a period of one mission."""
        self.fly(short, missions)
        least = [np.inf, np.inf]  # of each: the least of their differences would be too short by chance
        for _ in range(repeats):
            for k, duration in enumerate((short, long)):
                start = time.process_time()
                self.fly(duration, missions)
                least[k] = min(least[k], time.process_time() - start)
        return (least[1] - least[0]) * PERIOD / (long - short) / (missions or 1)


def basilisk() -> float | None:
    """Seconds of the processor for a period in Basilisk, None where it is not installed."""
    program = Path(__file__).with_name("basilisk_satellite.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    if "No module named" in done.stderr:
        return None
    done.check_returncode()
    return float(done.stdout.split()[-1])


def rows(*, quick: bool, notes: dict[str, Any]) -> list[Row]:
    theirs = basilisk()
    if theirs is None:
        notes["without"] = "Basilisk is not installed (pip install bsk); its rows are left out."
    repeats, name = 1 if quick else 5, "satellite with sensors and a 10 Hz controller"
    found = []
    for filtered in (False, True):
        mission = Mission(filtered=filtered)
        label = "a period of 0.1 s" + (", with a Kalman filter, which the peer has not" if filtered else "")
        many = f"{label}, batch of {MISSIONS}, per mission"
        times = (
            ("mission/single", label, mission.time(100.0, 10100.0, None, repeats), 10.0),
            ("mission/batch", many, mission.time(10.0, 210.0, MISSIONS, repeats), 40.0),
        )
        for key, what, ours, goal in times:
            if theirs is None:
                found.append(Row(key, what, name, ours))
            else:
                goals = () if filtered else (goal,)
                found.append(against(key, what, name, ours, "Basilisk", theirs, *goals))
    return found
