"""What runs along a motion, as options of a task: forces, gravity fields, drives, sensors, controllers, events, records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer, StrictStr, WithJsonSchema

from alembert.arguments import unknown
from alembert.errors import ArgumentError, ModelError
from alembert.expression import Expression
from alembert.model import Model
from alembert.model.elements import SENSOR_KINDS
from alembert.model.io.location import Place
from alembert.model.io.schema import FileTable, default_value
from alembert.study.laws import AnyControllerEntry, EventEntry
from alembert.study.task import Number, Numbers, OptionError, Positive, Task

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


class ForceEntry(FileTable):
    """A force element by its `type`; the other keys are those of the class in `alembert.simulate`."""

    def element(self) -> Any:
        import alembert.simulate as simulate

        name = "".join(part.capitalize() for part in self.type.split("_"))  # type: ignore[attr-defined]
        given = {key: value for key, value in self.given().items() if key != "type"}
        return getattr(simulate, name)(**given)


class SpringDamperEntry(ForceEntry):
    """A spring and a damper between the origins of two frames."""

    type: Literal["spring_damper"]
    frame_a: StrictStr
    frame_b: StrictStr
    stiffness: Formula = Field(default=0.0, description="N/m.")
    damping: Formula = Field(default=0.0, description="N s/m.")
    length: Formula = Field(default=0.0, description="Without force, m.")
    tension_only: bool = Field(default=False, strict=True, description="As of a cable.")


class BushingEntry(ForceEntry):
    """Springs and dampers against any motion of frame b relative to frame a."""

    type: Literal["bushing"]
    frame_a: StrictStr
    frame_b: StrictStr
    stiffness: Six = Field(description="About and along a's axes, N m/rad and N/m.")
    damping: Six = Field(default=(0.0,) * 6, description="The same, N m s/rad and N s/m.")


class DragEntry(ForceEntry):
    """Of air at the origin of a frame."""

    type: Literal["drag"]
    frame: StrictStr
    coefficient: Formula
    area: Formula = Field(description="m^2.")
    density: Formula = Field(default=1.225, description="kg/m^3.")
    wind: Three = Field(default=(0.0, 0.0, 0.0), description="Velocity of the air, m/s.")
    normal: Three | None = Field(default=None, description="Of a plate, in the frame's axes.")


class SoftStopEntry(ForceEntry):
    """Springs and dampers beyond the limits of joints."""

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


class FieldEntry(FileTable):
    """A gravity field by its `type`."""

    def field(self) -> Any:
        import alembert.simulate as simulate

        kinds = {"central": simulate.CentralGravity, "gradient": simulate.GravityGradient}
        return kinds[self.type](**{key: x for key, x in self.given().items() if key != "type"})  # type: ignore[attr-defined]


class CentralEntry(FieldEntry):
    """Attraction to a point of the world."""

    type: Literal["central"]
    parameter: Formula = Field(default=3.986004418e14, description="Gravitational parameter, m^3/s^2: Earth.")
    center: Three = Field(default=(0.0, 0.0, 0.0), description="Of the attraction, m.")
    gradient: bool = Field(default=True, strict=True, description="Whether its torques count.")


class GradientEntry(FieldEntry):
    """What is left of the field in free fall along a circular orbit."""

    type: Literal["gradient"]
    rate: Number = Field(description="Of the orbit, rad/s.")
    radial: Three = Field(default=(1.0, 0.0, 0.0), description="Away from the centre, at the start.")
    normal: Three = Field(default=(0.0, 0.0, 1.0), description="Of the orbit.")


FIELDS = {"central": CentralEntry, "gradient": GradientEntry}
AnyField: Any = Annotated[CentralEntry | GradientEntry, Field(discriminator="type")]
FORCES = {
    "spring_damper": SpringDamperEntry,
    "bushing": BushingEntry,
    "drag": DragEntry,
    "soft_stop": SoftStopEntry,
}
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
            if name not in model.joint_indices:
                raise OptionError(
                    ("hold",), unknown(f"model {model.name!r} has no joint", name, model.joint_indices)
                )
        if not model.is_constrained:
            return q, v
        state = model.assemble(q, v, fixed=self.hold, parameters=parameters)
        return state.q, state.v

    def along(self, model: Model) -> dict[str, Any]:
        """The options of `simulate`."""
        from alembert.simulate import Drive, Gear

        forces = [self._force(model, name, force) for name, force in self.forces.items()]
        drives = {}
        for name, drive in self.drives.items():
            if name not in model.joint_indices:
                text = unknown(f"model {model.name!r} has no joint", name, model.joint_indices)
                raise OptionError(("drives", name), text)
            given: dict[str, Any] = {key: x for key, x in drive.given().items() if x is not None}
            try:
                if drive.gear is not None:
                    given["gear"] = Gear(**drive.gear.given())
                drives[name] = Drive(**given)
            except ArgumentError as error:
                raise OptionError(("drives", name), str(error)) from None
        sensors = [one.measured(name, ("sensors", name)) for name, one in self.sensors.items()]
        found = {"forces": forces, "drives": drives or None, "sensors": sensors, "record": self.record}
        if self.gravity_field is not None:
            if getattr(self, "gravity", None) is not None:
                raise OptionError(("gravity_field",), "is given together with gravity, expected one of them")
            try:
                found["gravity"] = self.gravity_field.field()
            except (ArgumentError, ModelError) as error:
                raise OptionError(("gravity_field",), str(error)) from None
        return found

    def _force(self, model: Model, name: str, force: Any) -> Any:
        for key, value in force.given().items():
            for x in value if isinstance(value, tuple) else (value,):
                for parameter in sorted(x.names) if isinstance(x, Expression) else ():
                    if parameter not in model.parameter_values:
                        text = unknown("the model has no parameter", parameter, model.parameter_values)
                        raise OptionError(("forces", name, key), text)
        try:
            element = force.element()
            element.check(model)
        except (ArgumentError, ModelError) as error:
            raise OptionError(("forces", name), str(error)) from None
        return element


def kinds(place: tuple[Any, ...], otherwise: Mapping[str, Any]) -> list[str]:
    """What `type` may be at a place of a file."""
    if "gravity_field" in place:
        return list(FIELDS)
    return list(FORCES) if "forces" in place else list(otherwise)
