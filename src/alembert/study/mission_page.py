"""What is shown of a flight: curves, the ground track, and the orbit about the Earth."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np

from alembert.simulate import Run
from alembert.spacecraft import MicrogravityLevel, MomentumBalance, microgravity
from alembert.spacecraft.astronomy import EQUATOR
from alembert.study.mission_flight import EXPERIMENT, HUB, MissionFlight
from alembert.study.report import Grid, ReportPart
from alembert.view import figures as drawing

Array = np.ndarray
_MOST_POINTS = 600
"""of the orbit on the globe"""


@dataclass(frozen=True, eq=False)
class MissionPage:
    """Tables and figures of one flight."""

    flight: MissionFlight
    run: Run
    balance: MomentumBalance
    error: Array
    """angle to the target at each record, rad"""

    @cached_property
    def power(self) -> Mapping[str, tuple[Array, Array]]:
        """Of each source, (N,) each [W]: by turning the hub, n . w, and along the orbit, f . v."""
        model, run = self.flight.model, self.run
        w = model.frame_velocity(run.q, run.v, HUB, reference="local_world_aligned")[:, :3]
        _, v = self.flight.environment.inertial(run, HUB)
        found = {}
        for name, n in self.balance.torques.items():
            f = self.balance.forces.get(name, np.zeros_like(n))
            found[name] = (np.sum(n * w, axis=-1), np.sum(f * v, axis=-1))
        return found

    @cached_property
    def level(self) -> MicrogravityLevel | None:
        """What is felt at the place that the file asks for."""
        return None if self.flight.task.microgravity is None else microgravity(self.run, EXPERIMENT)

    # --- tables -----------------------------------------------------------------------------------------------------

    def tables(self) -> list[ReportPart]:
        """Orbit, pointing, events, impulses, work, wheels, and the balance of momentum."""
        flight, run, balance = self.flight, self.run, self.balance
        names = ("semi-major axis [km]", "eccentricity", "inclination [deg]", "node [deg]")
        ends = [_elements(flight.orbit_at(run, k)) for k in (0, -1)]
        late = self.error[len(self.error) // 2 :]
        parts: list[ReportPart] = [
            Grid.of(
                "orbit",
                ("", "start", "end"),
                [(name, f"{a:.9g}", f"{b:.9g}") for name, a, b in zip(names, *ends, strict=True)],
            ),
            Grid.of(
                "pointing",
                ("", "deg"),
                [
                    ("at the start", f"{math.degrees(self.error[0]):.3g}"),
                    ("largest", f"{math.degrees(self.error.max()):.3g}"),
                    ("largest of the second half", f"{math.degrees(late.max()):.3g}"),
                    ("at the end", f"{math.degrees(self.error[-1]):.3g}"),
                ],
            ),
        ]
        if run.events:
            parts.append(
                Grid.of("events", ("time [s]", "", "what it found"), map(_event, run.events), left=3)
            )
        parts += [self._budget(), self._wheels()]
        if flight.task.thrusters:
            used = float(run.measurements["propellant"].values[-1, 0])
            lasting = [sum(x[1] for x in t.burns) for t in flight.task.thrusters.values()]
            rows = [
                (name, f"{x.force:.4g}", str(len(x.burns)), f"{time:.4g}")
                for (name, x), time in zip(flight.task.thrusters.items(), lasting, strict=True)
            ]
            tank = flight.task.tank
            end = (
                "which the mass of the vehicle does not lose"
                if tank is None
                else f"{max(0.0, tank.propellant - used):.4g} kg are left"
            )
            title = f"thrusters: {used:.4g} kg of propellant, {end}"
            parts.append(Grid.of(title, ("thruster", "force [N]", "burns", "planned [s]"), rows))
        if self.level is not None:
            steady = self.level.quasi_steady
            head = ("place", "mean x [1e-6 g]", "y", "z", "root mean square", "largest")
            row = (*(f"{x:.3g}" for x in steady), f"{self.level.rms:.3g}", f"{self.level.peak:.3g}")
            parts.append(Grid.of("microgravity", head, [(str(self.flight.task.microgravity), *row)]))
        parts.append(str(balance))
        return parts

    def _budget(self) -> Grid:
        """Impulse, torque and work of each source."""
        head = (
            "source", "x [N m s]", "y", "z", "largest torque [N m]", "turning work [J]",
            "orbital work [J]",
        )  # fmt: skip
        time = self.run.time
        rows = []
        for name, impulse in self.balance.impulses.items():
            if name not in self.balance.torques:  # mass that left
                rows.append((name, *(f"{x:.4g}" for x in impulse[-1]), "", "", ""))
                continue
            turning, along = (np.trapezoid(x, time) for x in self.power[name])
            peak = np.linalg.norm(self.balance.torques[name], axis=-1).max()
            # gravity conserves: what it does along the orbit comes back
            moved = "" if name in ("gravity", "actuators") else f"{along:.4g}"
            rows.append((name, *(f"{x:.4g}" for x in impulse[-1]), f"{peak:.3g}", f"{turning:.3g}", moved))
        return Grid.of("angular impulse from outside, and work", head, rows)

    def _wheels(self) -> Grid:
        model, run = self.flight.model, self.run
        rows = []
        for w in self.flight.wheels:
            speed = run.v[:, model.v_slice(w.name).start]
            torque = np.abs(run.efforts[:, model.v_slice(w.name).start]).max()
            share = "" if math.isinf(w.speed) else f"{100 * np.abs(speed).max() / w.speed:.1f} %"
            rows.append(
                (
                    w.name, f"{speed[0]:.5g}", f"{np.abs(speed).max():.5g}", f"{speed[-1]:.5g}", share,
                    f"{w.inertia * speed[-1]:.4g}", f"{torque:.3g}",
                )
            )  # fmt: skip
        head = (
            "wheel", "start [rad/s]", "largest", "end", "of its speed", "momentum at the end [N m s]",
            "largest torque [N m]",
        )  # fmt: skip
        return Grid.of("wheels", head, rows)

    # --- figures ----------------------------------------------------------------------------------------------------

    def over_time(self) -> Any:
        """Pointing, wheels and torques, for a file."""
        figure, axes = drawing.panels("plot", 3)
        self._pointing(axes[0])
        self._speeds(axes[1])
        self._torques(axes[2])
        return self._timed(figure, axes)

    def attitude(self) -> Any:
        figure, axes = drawing.panels("plot", 2)
        self._pointing(axes[0])
        angles = np.degrees(self.flight.angles(self.run))
        named = {name: angles[:, k] for k, name in enumerate(("roll", "pitch", "yaw"))}
        drawing.lines(axes[1], self.run.time, named, "local axes [deg]")
        return self._timed(figure, axes)

    def momentum(self) -> Any:
        figure, axes = drawing.panels("plot", 3)
        h = self.flight.wheel_momentum(self.run)
        drawing.lines(
            axes[0], self.run.time, {f"wheels, {x}": h[:, k] for k, x in enumerate("xyz")}, "momentum [N m s]"
        )
        self._speeds(axes[1])
        sizes = {name: np.linalg.norm(x, axis=-1) for name, x in self.balance.impulses.items()}
        drawing.lines(axes[2], self.run.time, sizes, "impulse [N m s]")
        return self._timed(figure, axes)

    def disturbances(self) -> Any:
        """Torque and power of each source."""
        figure, axes = drawing.panels("plot", 3)
        self._torques(axes[0])
        drawing.lines(axes[1], self.run.time, {k: x for k, (x, _) in self.power.items()}, "turning power [W]")
        along = {k: x for k, (_, x) in self.power.items() if k not in ("gravity", "actuators")}
        first = list(self.power).index(next(iter(along))) if along else 0  # the style of each source as above
        drawing.lines(axes[2], self.run.time, along, "orbital power [W]", first=first)
        return self._timed(figure, axes)

    def microgravity(self) -> Any:
        assert self.level is not None
        figure, axes = drawing.panels("plot", 1)
        felt = 1e6 / 9.80665 * self.level.felt
        drawing.lines(axes[0], self.run.time, {x: felt[:, k] for k, x in enumerate("xyz")}, "felt [1e-6 g]")
        return self._timed(figure, axes)

    def ground_track(self) -> Any:
        figure, (axis,) = drawing.panels("plot", 1, height=3.9)
        for ring in coasts():
            axis.fill(*np.array(ring).T, facecolor="#dcfce7", edgecolor="#15803d", linewidth=0.5)
        track = np.degrees(self.flight.environment.ground_track(self.run, HUB)[:, :2])
        jumps = np.flatnonzero(np.abs(np.diff(track[:, 1])) > 180) + 1
        for piece in np.split(track, jumps):
            axis.plot(piece[:, 1], piece[:, 0], color=drawing.COLORS[1], linewidth=1.6)
        for k, mark, label in ((0, "o", "start"), (-1, "s", "end")):
            axis.plot(track[k, 1], track[k, 0], mark, color=drawing.COLORS[1], label=label)
        axis.set(
            xlim=(-180, 180), ylim=(-90, 90), xlabel="longitude [deg]", ylabel="latitude [deg]",
            xticks=range(-180, 181, 30), yticks=range(-90, 91, 30), aspect="equal",
        )  # fmt: skip
        axis.grid(alpha=0.3)
        axis.legend(loc="lower left", fontsize="small")
        return figure

    def globe(self) -> str:
        """The orbit about the Earth, as HTML that can be turned."""
        flight, run = self.flight, self.run
        r, _ = flight.environment.inertial(run, HUB)
        chosen = np.unique(np.linspace(0, len(run.time) - 1, _MOST_POINTS).astype(int))
        track = flight.environment.ground_track(run, HUB)[chosen]
        orbit = r[chosen] / EQUATOR
        sun = np.array(flight.environment.sun(float(run.time[-1]) / 2), dtype=float).ravel()
        axes = flight.environment.axes
        last, whole = orbit[-1], flight.orbit_at(run, -1)
        data = {
            "time": np.round(run.time[chosen], 3).tolist(),
            "orbit": np.round(orbit, 5).tolist(),
            "ring": np.round(
                [whole.state(x)[0] / EQUATOR for x in np.linspace(0, whole.period, 181)], 4
            ).tolist(),
            "height": np.round(track[:, 2] / 1e3, 3).tolist(),
            "coasts": coasts(),
            "sun": np.round(sun / np.linalg.norm(sun), 5).tolist(),
            "angle": axes.angle,
            "rate": axes.rate,
            "tilt": np.asarray(axes.tilt).tolist(),
            "reach": round(float(np.linalg.norm(orbit, axis=-1).max()), 4),
            "view": [math.atan2(last[1], last[0]) - 0.4, 0.45],
        }
        script = resources.files("alembert.study").joinpath("globe.js").read_text(encoding="utf-8")
        return (
            '<div id="globe" style="text-align:center">\n'
            '<canvas width="640" height="640" style="max-width:100%;touch-action:none;cursor:grab" '
            'role="img" aria-label="the orbit about the Earth"></canvas>\n'
            f'<div><input type="range" min="0" max="{len(chosen) - 1}" value="{len(chosen) - 1}" '
            'style="width:60%" aria-label="time"><br><output></output>; drag to turn</div>\n</div>\n'
            f'<script>\n{script}\nglobe(document.getElementById("globe"), {json.dumps(data)});\n</script>\n'
        )

    # --- panels -----------------------------------------------------------------------------------------------------

    def _pointing(self, axis: Any) -> None:
        drawing.lines(axis, self.run.time, {"angle to the target": np.degrees(self.error)}, "pointing [deg]")

    def _speeds(self, axis: Any) -> None:
        model = self.flight.model
        speeds = {w.name: self.run.v[:, model.v_slice(w.name).start] for w in self.flight.wheels}
        drawing.lines(axis, self.run.time, speeds, "wheels [rad/s]")

    def _torques(self, axis: Any) -> None:
        sizes = {name: np.linalg.norm(x, axis=-1) for name, x in self.balance.torques.items()}
        drawing.lines(axis, self.run.time, sizes, "torque [N m]")
        axis.set_yscale("symlog", linthresh=1e-9)

    def _timed(self, figure: Any, axes: Any) -> Any:
        for axis in axes:
            for event in self.run.events:
                axis.axvline(event.time, color="#888", linewidth=0.8, linestyle=":")
        for event in self.run.events:
            axes[0].annotate(
                drawing.plain(event.name), (event.time, 1.0), xycoords=("data", "axes fraction"), fontsize="x-small",
                rotation=90, va="top", ha="right", color="#555",
            )  # fmt: skip
        axes[-1].set_xlabel("time [s]")
        return figure


def coasts() -> list[list[list[float]]]:
    """Rings of longitude and latitude [deg]: Natural Earth, 1:110 million, simplified."""
    text = resources.files("alembert.spacecraft").joinpath("data", "coasts.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return [(np.array(row, dtype=float).reshape(-1, 2) / 10).tolist() for row in rows]


def _elements(orbit: Any) -> tuple[float, float, float, float]:
    angles = (math.degrees(orbit.inclination), math.degrees(orbit.node))
    return (orbit.semi_axis / 1e3, round(orbit.eccentricity, 12), *angles)


def _event(event: Any) -> tuple[str, str, str]:
    units = {"distance": "m", "speed": "m/s", "rate": "rad/s", "angle": "rad", "offset": "m"}
    told = []
    for name, given in event.quantities.items():
        x = np.atleast_1d(np.asarray(given, dtype=float))
        size = float(np.linalg.norm(x))
        if name.startswith("impulse") and len(x) == 6:  # of what is rigid: moments come first
            n, f = (float(np.linalg.norm(part)) for part in (x[:3], x[3:]))
            told.append(f"{name} {f:.3g} N s and {n:.3g} N m s")
        elif name == "impulse" or (name.startswith("impulse") and len(x) == 3):
            told.append(f"{name} {size:.3g} N s")
        else:
            told.append(f"{name} {size:.3g}" + (f" {units[name]}" if name in units else ""))
    return f"{event.time:.3f}", event.name, ", ".join(told)
