"""The tasks `simulate`, a motion from a state, and `ensemble`, many with drawn starts, efforts and parameters.

`Scenario` has what runs along a motion, as options of a task: forces, gravity fields, drives, sensors, controllers, events,
records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, StrictStr, WithJsonSchema

from alembert.errors import ArgumentError, ModelError
from alembert.expression import Expression
from alembert.model import Model
from alembert.model.elements import SENSOR_KINDS
from alembert.model.io.location import Place
from alembert.model.io.schema import FileTable, Vector, default_value
from alembert.study.laws import AnyControllerEntry, EventEntry, WatchedModel, laws
from alembert.study.report import Grid, save_figure
from alembert.study.task import (
    PLOT,
    AtState,
    Count,
    Number,
    Numbers,
    OptionError,
    OutputFile,
    Positive,
    Setting,
    Task,
    TaskResult,
    by_joint,
    check_joint,
    check_parameter,
    inside,
)

if TYPE_CHECKING:
    from alembert.simulate import Ensemble as Result


Array = np.ndarray


def _formula(value: Any) -> Any:
    """A number, or a formula that may use parameters of the model."""
    if not isinstance(value, str):
        return default_value(value)
    expression = Expression(value)
    return expression if expression.names else default_value(value)


Formula: Any = Annotated[
    Any,
    BeforeValidator(_formula),
    PlainSerializer(lambda x: x.text if isinstance(x, Expression) else x),
    WithJsonSchema(
        {"anyOf": [{"type": "number"}, {"type": "string", "description": "a formula of the parameters"}]}
    ),
]
Three: Any = Annotated[tuple[Formula, ...], Field(min_length=3, max_length=3)]
Six: Any = Annotated[tuple[Formula, ...], Field(min_length=6, max_length=6)]


class ActingEntry(FileTable):
    """A force element or a gravity field by its `type`; the other keys are those of the class in `alembert.simulate`."""

    MAKES: ClassVar[str]

    def made(self) -> Any:
        import alembert.simulate as simulate

        return getattr(simulate, self.MAKES)(**{key: x for key, x in self.given().items() if key != "type"})


class SpringDamperEntry(ActingEntry):
    """A spring and a damper between the origins of two frames."""

    MAKES: ClassVar = "SpringDamper"
    type: Literal["spring_damper"]
    frame_a: StrictStr
    frame_b: StrictStr
    stiffness: Formula = Field(default=0.0, description="N/m.")
    damping: Formula = Field(default=0.0, description="N s/m.")
    length: Formula = Field(default=0.0, description="Without force, m.")
    tension_only: bool = Field(default=False, strict=True, description="As of a cable.")


class BushingEntry(ActingEntry):
    """Springs and dampers against any motion of frame b relative to frame a."""

    MAKES: ClassVar = "Bushing"
    type: Literal["bushing"]
    frame_a: StrictStr
    frame_b: StrictStr
    stiffness: Six = Field(description="About and along a's axes, N m/rad and N/m.")
    damping: Six = Field(default=(0.0,) * 6, description="The same, N m s/rad and N s/m.")


class DragEntry(ActingEntry):
    """Of air at the origin of a frame."""

    MAKES: ClassVar = "Drag"
    type: Literal["drag"]
    frame: StrictStr
    coefficient: Formula
    area: Formula = Field(description="m^2.")
    density: Formula = Field(default=1.225, description="kg/m^3.")
    wind: Three = Field(default=(0.0, 0.0, 0.0), description="Velocity of the air, m/s.")
    normal: Three | None = Field(default=None, description="Of a plate, in the frame's axes.")


class SoftStopEntry(ActingEntry):
    """Springs and dampers beyond the limits of joints."""

    MAKES: ClassVar = "SoftStop"
    type: Literal["soft_stop"]
    stiffness: Formula = Field(description="N m/rad or N/m.")
    damping: Formula = Field(default=0.0, description="N m s/rad or N s/m.")
    joints: list[StrictStr] | None = Field(default=None, description="All that have limits.")
    reach: Number = Field(default=1e-3, description="Over which the damper fades in, rad or m.")


class GearEntry(FileTable):
    """A motor with a rotor, geared to the joint."""

    ratio: Number
    inertia: Number = Field(description="Of the rotor, kg m^2.")
    viscous: Number = Field(default=0.0, description="Friction of the motor, N m s.")
    coulomb: Number = Field(default=0.0, description="Friction of the motor, N m.")


class DriveEntry(FileTable):
    """How a joint's drive carries out commands."""

    limit: Number | None = Field(default=None, description="Of the effort, N m or N.")
    rate: Number | None = Field(default=None, description="Of its change, per second.")
    lag: Number = Field(default=0.0, description="Time constant, s.")
    frequency: Number = Field(default=0.0, description="Of a lag of second order, rad/s.")
    damping_ratio: Number = Field(default=1.0, description="Of a lag of second order.")
    gear: GearEntry | None = Field(default=None, description="A geared rotor.")


_KINDS: Any = SENSOR_KINDS
SensorKind: Any = Literal[_KINDS]


class SensorEntry(FileTable):
    """A sensor at work: one of the model, by its name, or one that is described here by `kind` and `target`."""

    period: Positive = Field(description="Between samples, s.")
    kind: SensorKind | None = Field(default=None, description="Of a sensor that the model does not have.")
    target: StrictStr | None = Field(default=None, description="Its joint, frame or body.")
    noise: Numbers = Field(
        default=(0.0,), description="Standard deviation of a sample, of each component or of all."
    )
    bias: Numbers = Field(default=(0.0,), description="Constant error.")
    walk: Numbers = Field(
        default=(0.0,), description="Of the bias's random walk, per square root of a second."
    )
    quantum: Number = Field(default=0.0, description="Resolution.")
    delay: Number = Field(default=0.0, description="Until controllers get a sample, s.")
    offset: Number = Field(default=0.0, description="Of the first sample, s.")
    seed: int = Field(default=0, strict=True, ge=0, description="Of the noise.")

    def measured(self, name: str, place: Place) -> Any:
        from alembert.model import Sensor
        from alembert.simulate import Measured

        given = {key: value for key, value in self.given().items() if key not in ("kind", "target")}
        if (self.kind is None) != (self.target is None):
            raise OptionError(
                place, "expected both kind and target, or none of them for a sensor of the model"
            )
        try:
            sensor = name if self.kind is None else Sensor(name, self.kind, str(self.target))
            return Measured(sensor, **given)
        except (ArgumentError, ModelError) as error:
            raise OptionError(place, str(error).removeprefix("Measured: ")) from None


class CentralEntry(ActingEntry):
    """Attraction to a point of the world."""

    MAKES: ClassVar = "CentralGravity"
    type: Literal["central"]
    parameter: Formula = Field(default=3.986004418e14, description="Gravitational parameter, m^3/s^2: Earth.")
    center: Three = Field(default=(0.0, 0.0, 0.0), description="Of the attraction, m.")
    gradient: bool = Field(default=True, strict=True, description="Whether its torques count.")


class GradientEntry(ActingEntry):
    """What is left of the field in free fall along a circular orbit."""

    MAKES: ClassVar = "GravityGradient"
    type: Literal["gradient"]
    rate: Number = Field(description="Of the orbit, rad/s.")
    radial: Three = Field(default=(1.0, 0.0, 0.0), description="Away from the centre, at the start.")
    normal: Three = Field(default=(0.0, 0.0, 1.0), description="Of the orbit.")


AnyField: Any = Annotated[CentralEntry | GradientEntry, Field(discriminator="type")]
Force: Any = Annotated[
    SpringDamperEntry | BushingEntry | DragEntry | SoftStopEntry, Field(discriminator="type")
]


class Scenario(Task):
    """Options of tasks that let a model move."""

    forces: dict[StrictStr, Force] = Field(
        default={},
        description="Force elements by name: `type` (spring_damper, bushing, drag, soft_stop) and its numbers.",
    )
    gravity_field: AnyField | None = Field(
        default=None,
        description="In the place of the model's gravity: `type` central (`parameter`, `center`, `gradient`) or gradient "
        "(`rate`, `radial`, `normal`).",
    )
    drives: dict[StrictStr, DriveEntry] = Field(
        default={}, description="By joint, limits, lags and geared rotors of its drive."
    )
    sensors: dict[StrictStr, SensorEntry] = Field(
        default={},
        description="By name, what is measured, how often and with which errors; controllers read it by `reads`.",
    )
    record: list[StrictStr] = Field(
        default=[], description="Quantities by name for the records: energy, frame:hand.position@50, ..."
    )

    hold: list[str] = Field(
        default=[],
        description="Joints that keep their position and speed while loops and couplings are closed at the start.",
    )
    controllers: list[AnyControllerEntry] = Field(
        default=[], description="What drives the joints, besides `effort`; their efforts add up."
    )
    events: list[EventEntry] = Field(default=[], description="What ends a motion early, or is noted.")

    def closed(
        self, model: Model, q: Array, v: Array, parameters: Mapping[str, float] | None
    ) -> tuple[Array, Array]:
        """The nearest state at which loops and couplings are closed."""
        for name in self.hold:
            check_joint(model, name, ("hold",))
        if not model.is_constrained:
            return q, v
        state = model.assemble(q, v, fixed=self.hold, parameters=parameters)
        return state.q, state.v

    def along(
        self, model: Model, parameters: Mapping[str, float] | None, setting: Setting
    ) -> tuple[dict[str, Any], tuple[Path, ...]]:
        """The options of `simulate`, and the files in which functions are."""
        from alembert.simulate import Drive, Gear

        forces = [self._force(model, name, force) for name, force in self.forces.items()]
        drives = {}
        for name, drive in self.drives.items():
            check_joint(model, name, ("drives", name))
            given: dict[str, Any] = {key: x for key, x in drive.given().items() if x is not None}
            try:
                if drive.gear is not None:
                    given["gear"] = Gear(**drive.gear.given())
                drives[name] = Drive(**given)
            except ArgumentError as error:
                raise OptionError(("drives", name), str(error)) from None
        sensors = [one.measured(name, ("sensors", name)) for name, one in self.sensors.items()]
        found: dict[str, Any] = {
            "forces": forces, "drives": drives or None, "sensors": sensors, "record": self.record,
        }  # fmt: skip
        watched = WatchedModel(model, parameters, forces)
        if self.gravity_field is not None:
            if getattr(self, "gravity", None) is not None:
                raise OptionError(("gravity_field",), "is given together with gravity, expected one of them")
            try:
                field = found["gravity"] = self.gravity_field.made()
            except (ArgumentError, ModelError) as error:
                raise OptionError(("gravity_field",), str(error)) from None
            watched = WatchedModel(model.replace(gravity=(0, 0, 0)), parameters, [*forces, field])
        controllers, events, files = laws(self.controllers, self.events, watched, setting, self.sensors)
        return {**found, "controller": controllers or None, "events": events}, files

    def _force(self, model: Model, name: str, force: Any) -> Any:
        for key, value in force.given().items():
            for x in value if isinstance(value, tuple) else (value,):
                for parameter in sorted(x.names) if isinstance(x, Expression) else ():
                    check_parameter(model, parameter, ("forces", name, key))
        try:
            element = force.made()
            element.check(model)
        except (ArgumentError, ModelError) as error:
            raise OptionError(("forces", name), str(error)) from None
        return element


def kinds_at(place: tuple[Any, ...], otherwise: Mapping[str, Any]) -> list[str]:
    """What `type` may be at a place of a file."""
    if "gravity_field" in place:
        return ["central", "gradient"]
    return ["spring_damper", "bushing", "drag", "soft_stop"] if "forces" in place else list(otherwise)


class SimulateTask(Scenario, AtState):
    """Let a model move from a state, and report how well energy and momentum were kept."""

    KEYS: ClassVar = {
        "model": "its name",
        "integrator": "that was used",
        "reason": "why",
        "step": "of fixed-step integrators, s, otherwise null",
        "steps": "how many were made",
        "records": "how many were kept",
        "time": "at the end, s",
        "q": "coordinates at the end, by joint",
        "v": "speeds at the end, by joint",
        "energy_start": "J",
        "energy_error": "largest, of the largest kinetic energy",
        "work": "done by efforts and friction, J, or null where there is none",
        "momentum_error": "largest change, angular and linear, of its terms; null where something acts from outside",
        "quaternion_error": "largest, or null",
        "constraint_error": "of loops and couplings, largest, or null",
        "beyond_limits": "by how much limits of the model were passed, by name",
        "measurements": "by sensor, how many samples there were, and the last",
        "events": "name and time of each, in their order",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile((".csv", ".nc"), "records of coordinates, speeds and efforts", "records.csv"),
        "plot": OutputFile(PLOT, "coordinates and speeds over time"),
        "html": OutputFile((".html",), "an animation with plots, one file for the browser"),
    }

    type: Literal["simulate"] = "simulate"
    time: Positive = Field(default=10.0, description="How long, in seconds.")
    step: Positive | None = Field(default=None, description="Of fixed-step integrators, in seconds.")
    interval: Positive | None = Field(
        default=None, description="Between records, in seconds; every step, or a thousandth of the time."
    )
    integrator: str = Field(
        default="auto", description="auto chooses and says why; or rk4, variational, dop853, radau, ..."
    )
    tolerance: Positive = Field(default=1e-9, description="Of integrators with error control, relative.")
    absolute_tolerance: Positive = Field(default=1e-11, description="The same, in SI units.")
    gravity: Vector | None = Field(default=None, description="Another one than the model's, m/s^2.")

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.simulate import simulate

        if self.gravity is not None:
            model = model.replace(gravity=self.gravity)
        parameters = self.parameter_values(model)
        q, v = self.closed(model, self.coordinates(model), self.speeds(model), parameters)
        options, files = self.along(model, parameters, setting)
        stopped = []
        try:
            run = simulate(
                model,
                q,
                v,
                duration=self.time,
                step=self.step,
                interval=self.interval,
                integrator=self.integrator,
                efforts=self.speeds(model, "effort"),
                parameters=parameters,
                tolerance=self.tolerance,
                absolute_tolerance=self.absolute_tolerance,
                progress=setting.progress,
                **options,
            )
        except KeyboardInterrupt as error:
            if not hasattr(error, "run"):
                raise
            run = error.run
            stopped.append(f"interrupted: this is the motion until {run.time[-1]:.6g} s of {self.time:g} s")
        report = run.report
        data = {
            "model": model.name,
            "integrator": report.integrator,
            "reason": report.reason,
            "step": run.step,
            "steps": report.steps,
            "records": len(run.time),
            "time": float(run.time[-1]),
            "q": by_joint(model, run.q[-1]),
            "v": by_joint(model, run.v[-1]),
            "energy_start": report.energy_start,
            "energy_error": report.energy_error,
            "work": report.work,
            "momentum_error": report.momentum_error,
            "quaternion_error": report.quaternion_error,
            "constraint_error": report.constraint_error,
            "beyond_limits": report.beyond_limits,
            "measurements": {
                name: {
                    "samples": len(x.time),
                    "last": np.asarray(x.values)[-1].tolist() if len(x.time) else None,
                }
                for name, x in run.measurements.items()
            },
            "events": [{"name": event.name, "time": event.time} for event in run.events],
        }
        units = list(model.space.coordinate_units)
        rows = zip(model.coordinate_names, (f"{x:.9g}" for x in run.q[-1]), units, strict=True)
        end = Grid.of(f"at {run.time[-1]:g} s", ("coordinate", "value", "unit"), rows)
        log = [Grid.of("events", ("event", "at [s]"), [(e.name, f"{e.time:.9g}") for e in run.events])]
        return TaskResult(
            data,
            (*stopped, str(report), *(log if run.events else []), end),
            ok=not stopped,
            files={"save": run.save, "plot": partial(save_figure, run.plot), "html": run.to_html},
            figures={"Motion": run.plot},
            inputs=files,
        )


class SpreadEntry(FileTable):
    """Standard deviations (or half widths) of what is drawn; what is not named is the same for all."""

    position: dict[str, Numbers] = Field(
        default={}, description="By joint, along its degrees of freedom, rad or m."
    )
    speed: dict[str, Numbers] = Field(default={}, description="By joint.")
    effort: dict[str, Numbers] = Field(default={}, description="By joint.")
    parameters: dict[str, Number] = Field(default={}, description="By name.")


class EnsembleTask(Scenario, AtState):
    """Simulate many motions that differ by chance, repeatably."""

    KEYS: ClassVar = {
        "model": "its name",
        "members": "how many motions",
        "failed": "number and reason of each that failed",
        "seed": "of the draws",
        "time": "at the end, s",
        "mean_q": "of the coordinates at the end, by name",
        "deviation_q": "standard deviation of the coordinates at the end, by name",
        "mean_v": "of the speeds at the end, by name",
        "deviation_v": "standard deviation of the speeds at the end, by name",
        "events": "by name, how many members met it, and the mean of their first times, s",
        "files": "what was written, by kind",
    }
    OUTPUTS: ClassVar = {
        "save": OutputFile(
            (".csv", ".nc"), "means and deviations over time (.csv), or all members (.nc)", "ensemble.csv"
        ),
        "plot": OutputFile(PLOT, "medians and bands over time"),
    }

    type: Literal["ensemble"] = "ensemble"
    members: Count = Field(default=100, description="How many motions.")
    seed: int = Field(
        default=0, strict=True, ge=0, description="Of the draws; the same seed gives the same bits."
    )
    time: Positive = Field(default=10.0, description="How long, in seconds.")
    step: Positive = Field(default=0.001, description="Of the integrator, in seconds.")
    interval: Positive | None = Field(
        default=None, description="Between records, in seconds; only the start and the end."
    )
    integrator: str = Field(default="rk4", description="Its name; those with fixed steps are the fastest.")
    backend: Literal["threads", "batch", "processes", "dask"] = Field(
        default="threads", description="What computes: all cores, one core, processes, or a Dask cluster."
    )
    checkpoint: str | None = Field(
        default=None,
        description="A folder for finished blocks, relative to the file; a run that was killed goes on.",
    )
    distribution: Literal["normal", "uniform"] = Field(
        default="normal", description="Of the draws; the spread of uniform ones is their half width."
    )
    spread: SpreadEntry = Field(default=SpreadEntry(), description="What is drawn, and how widely.")

    def run(self, model: Model, setting: Setting) -> TaskResult:
        from alembert.simulate import ensemble

        for k, event in enumerate(self.events):
            if self.spread.parameters and event.quantity and not _is_state(model, event.quantity):
                raise OptionError(
                    ("events", k, "quantity"),
                    f"{event.quantity!r} may depend on parameters, which differ between members; expected a coordinate or a "
                    "speed",
                )
        checkpoint = None if self.checkpoint is None else setting.folder / self.checkpoint
        if checkpoint is not None and not inside(setting.folder, checkpoint):
            raise OptionError(
                ("checkpoint",), f"is {self.checkpoint!r}, which leads out of the folder of the run file"
            )
        options, files = self.along(model, self.parameter_values(model), setting)
        result = ensemble(
            model,
            self._vary(model),
            members=self.members,
            duration=self.time,
            step=self.step,
            interval=self.interval,
            integrator=self.integrator,
            seed=self.seed,
            backend=self.backend,
            checkpoint=checkpoint,
            progress=setting.progress,
            **options,
        )
        (q, v), (dq, dv) = result.mean(), result.deviation()
        happened = _happened(result)
        data = {
            "model": model.name,
            "members": len(result.q),
            "failed": {str(k): why for k, why in result.failures.items()},
            "seed": self.seed,
            "time": float(result.time[-1]),
            "mean_q": _named(model.coordinate_names, q),
            "deviation_q": _named(model.coordinate_names, dq),
            "mean_v": _named(model.speed_names, v),
            "deviation_v": _named(model.speed_names, dv),
            "events": happened,
        }
        rows = [
            (f"{kind}.{name}", f"{a:.6g}", f"{b:.3g}")
            for kind, names, mean, spread in (
                ("q", model.coordinate_names, q, dq),
                ("v", model.speed_names, v, dv),
            )
            for name, a, b in zip(names, mean[-1], spread[-1], strict=True)
        ]
        text = f"{len(result.q)} members, seed {self.seed}, {len(result.failures)} failed"
        met = [(name, str(count), f"{first:.6g}") for name, (count, first) in happened.items()]
        log = [Grid.of("events", ("event", "members", "first, mean [s]"), met)] if met else []
        failed = [f"member {k}: {why}" for k, why in list(result.failures.items())[:5]]
        return TaskResult(
            data,
            (
                "\n".join([text, *failed]),
                Grid.of(f"at {result.time[-1]:g} s", ("", "mean", "deviation"), rows),
                *log,
            ),
            files={"save": result.save, "plot": partial(save_figure, result.plot)},
            figures={"Members": result.plot} if len(result.time) > 2 else {},
            seeds={"ensemble": self.seed},
            inputs=files,
        )

    def _vary(self, model: Model) -> Callable[[np.random.Generator], dict[str, Any]]:
        """Draws a member; always the same numbers in the same order, whatever is spread."""
        q, v, tau = self.coordinates(model), self.speeds(model), self.speeds(model, "effort")
        values = model.parameter_values | (self.parameter_values(model) or {})
        widths = [self._width(model, which) for which in ("position", "speed", "effort")]
        for name in self.spread.parameters:
            check_parameter(model, name, ("spread", "parameters", name))
        uniform = self.distribution == "uniform"

        def draw(rng: np.random.Generator, count: int) -> Array:
            return rng.uniform(-1.0, 1.0, size=count) if uniform else rng.normal(size=count)

        def vary(rng: np.random.Generator) -> dict[str, Any]:
            dq, dv, dtau = (width * draw(rng, model.nv) for width in widths)
            chances = dict(zip(values, draw(rng, len(values)), strict=True))
            drawn = {
                name: x + self.spread.parameters.get(name, 0.0) * chances[name] for name, x in values.items()
            }
            q0, v0 = self.closed(model, model.integrate(q, dq), v + dv, drawn)
            return {"q0": q0, "v0": v0, "efforts": tau + dtau, "parameters": drawn}

        return vary

    def _width(self, model: Model, which: str) -> Array:
        try:
            return (
                self.speeds(model, which, getattr(self.spread, which))
                if which != "position"
                else (self.speeds(model, "spread", self.spread.position))
            )
        except OptionError as error:
            raise OptionError(("spread", which, *error.place[1:]), error.what) from None


def _happened(result: Result) -> dict[str, tuple[int, float]]:
    """By name, how many members met an event, and the mean of the times at which they first did."""
    times: dict[str, list[float]] = {}
    for log in result.events.values():
        for name in dict.fromkeys(event.name for event in log):
            times.setdefault(name, []).append(next(event.time for event in log if event.name == name))
    return {name: (len(found), float(np.mean(found))) for name, found in sorted(times.items())}


def _is_state(model: Model, text: str) -> bool:
    """Whether a quantity is read off q or v."""
    kind, colon, rest = text.partition(":")
    known = {*model.joint_indices, *model.coordinate_names, *model.speed_names}
    return text in known or (bool(colon) and kind in ("q", "v") and rest in known)


def _named(names: tuple[str, ...], x: Array) -> dict[str, float]:
    return dict(zip(names, x[-1].tolist(), strict=True))
