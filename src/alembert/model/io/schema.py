"""The schema of Alembert's own format, derived from the records of a model.

A record (a frozen dataclass such as `Limits`) becomes a table with the record's fields, and validating the
table makes the record. Joint types come from the registry: a joint's table holds the joint's fields and those
of its type, told apart by `type`. Written by hand here are only placements and inertias, which a file may say
in more ways than a record.

Validators raise `ValueError` for what they find themselves; a `ModelError` comes from a record and names a
field of it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    create_model,
    model_validator,
)
from typing_extensions import TypeAliasType

from alembert.arguments import unknown
from alembert.errors import ModelError
from alembert.expression import Expression, Scalar
from alembert.joints import PAIRS, REGISTRY, JointType, Pair
from alembert.model.elements import (
    SENSOR_KINDS,
    Actuator,
    Body,
    Coupling,
    Equation,
    Frame,
    Joint,
    LoopJoint,
    Sensor,
    Visual,
)
from alembert.model.inertia import Inertia
from alembert.model.io import side_file
from alembert.model.io.location import Source
from alembert.model.modal import ModalBody
from alembert.model.placement import Placement

FORMAT = "alembert-model"
VERSION = 1
PARTS: dict[str, tuple[str, type]] = {
    "bodies": ("body", Body),
    "joints": ("joint", Joint),
    "frames": ("frame", Frame),
    "loops": ("loop", LoopJoint),
    "couplings": ("coupling", Coupling),
    "equations": ("equation", Equation),
    "actuators": ("actuator", Actuator),
    "sensors": ("sensor", Sensor),
}
"""Section of a document -> the method of the builder and the record."""

INERTIA_SHAPES = ("point", "rod", "box", "cylinder", "sphere")
ROTATIONS = ("quaternion_wxyz", "rpy", "rpy_deg", "rotation_vector", "rotation_vector_deg")


# --- numbers ------------------------------------------------------------------------------------------------


def described(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None:
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_format(source: Source, name: str, version: int) -> None:
    """Refuse a document of another kind, or of a version that is not read (see docs/format.md, versions)."""
    data = source.data
    if data.get("format") != name:
        came = described(data["format"]) if "format" in data else "missing"
        kind = name.removeprefix("alembert-")
        hint = ": alembert run reads studies" if data.get("format") == "alembert-study" else ""
        raise source.error(("format",), f'is {came}, expected "{name}"; this is no Alembert {kind}{hint}')
    found = data.get("version")
    if found != version or isinstance(found, bool):
        came = described(found) if "version" in data else "missing"
        newer = isinstance(found, int) and found > version
        hint = ": a newer Alembert has written the file; upgrade this one" if newer else ""
        raise source.error(("version",), f"is {came}; this Alembert reads version {version}{hint}")


def _float(value: Any, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"is {described(value)}, expected {expected}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("is too large for a number") from None


def _formula(text: str, info: ValidationInfo) -> Expression:
    """An expression that has a value at the default parameters."""
    expression = Expression(text)
    known = (info.context or {}).get("parameters", {})
    for name in sorted(expression.names - known.keys()):
        axis = "; an axis is three numbers, such as [0, 0, 1]" if text.lower() in ("x", "y", "z") else ""
        raise ValueError(unknown("uses the parameter", name, known) + axis)
    if all(known[name] is not None for name in expression.names):
        expression.evaluate(known)
    return expression


def _number(value: Any, info: ValidationInfo) -> Scalar:
    if isinstance(value, str):
        return _formula(value, info)
    number = _float(value, "a number or a formula in quotes")
    if not math.isfinite(number):
        raise ValueError(f"is {number}, expected a finite number")
    return number


def _constant(value: Any) -> float:
    if not isinstance(value, str):
        return _float(value, "a number")
    if value.strip() in ("inf", "+inf", "-inf"):
        return float(value)
    expression = Expression(value)
    if expression.names:
        name = sorted(expression.names)[0]
        raise ValueError(
            f"is {described(value)}, expected a number or a formula of numbers such as -pi/2: {name!r} is no number, and no "
            "parameters may be used here"
        )
    return float(expression.evaluate({}))


def default_value(value: Any) -> float:
    """What a parameter may be: a finite number or a formula without parameters."""
    number = _constant(value)
    if not math.isfinite(number):
        raise ValueError(f"is {number}, expected a finite number")
    return number


_FORMULA = {"type": "string", "description": "a formula, such as 0.5 * m1 * l1**2"}
_CONSTANT = {"type": "string", "description": "a formula without parameters, such as -pi/2, or inf"}
Number: Any = TypeAliasType(
    "Number",
    Annotated[Any, PlainValidator(_number), WithJsonSchema({"anyOf": [{"type": "number"}, _FORMULA]})],
)
Constant: Any = TypeAliasType(
    "Constant",
    Annotated[Any, PlainValidator(_constant), WithJsonSchema({"anyOf": [{"type": "number"}, _CONSTANT]})],
)
Default: Any = Annotated[Constant, AfterValidator(default_value)]
Vector: Any = TypeAliasType("Vector", Annotated[tuple[Number, ...], Field(min_length=3, max_length=3)])


# --- tables -------------------------------------------------------------------------------------------------


ELSEWHERE = dict.fromkeys(
    ("forces", "force_elements", "springs", "dampers", "bushings", "drag", "wrenches"),
    "a model has the springs and the friction of its joints; what else acts on it is given to each run: forces=[...] of "
    "simulate, or [task.forces.NAME] of a run file",
) | dict.fromkeys(
    ("events", "controllers", "controller", "drives", "contacts"),
    "they are given to each run: to simulate, or in [task] of a run file",
)
"""what one might look for in a model, and where it is"""


class UnknownKeyError(ValueError):
    def __init__(self, key: str, known: list[str]) -> None:
        hint = ELSEWHERE.get(key) if "joints" in known else None
        super().__init__(f"unknown key {key!r}; {hint}" if hint else unknown("unknown key", key, known))
        self.key = key


class FileTable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        for key in data if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                raise UnknownKeyError(key, list(cls.model_fields))
        return data

    def given(self) -> dict[str, Any]:
        """What the file says, by field."""
        return {
            name: getattr(self, name) for name in self.__class__.model_fields if name in self.model_fields_set
        }


def table(name: str, doc: str | None, fields: dict[str, Any]) -> type[FileTable]:
    summary = inspect.cleandoc(doc).partition("\n\n")[0].replace("\n", " ") if doc else None
    return create_model(name, __base__=FileTable, __doc__=summary, **fields)


def record_table(record: type, *, name: str, omit: tuple[str, ...] = ()) -> type[FileTable]:
    doc = record.__doc__ if not str(record.__doc__).startswith(f"{record.__name__}(") else None
    return table(name, doc, fields_of(record, omit=omit))


def fields_of(record: type, *, omit: tuple[str, ...] = ()) -> dict[str, Any]:
    """The table's fields for a record's."""
    hints = typing.get_type_hints(record)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        hint = hints[field.name]
        if field.name in omit:
            continue
        if _is_choice(hint):
            for choice in typing.get_args(hint):
                fields[choice.__name__.lower()] = (annotation(choice), None)
            continue
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        choices = _CHOICES.get((record, field.name))
        kind = Literal[choices] if choices else annotation(hint)
        if (record, field.name) in NAMED:
            kind = dict[StrictStr, StrictStr]
        fields[field.name] = (kind, ... if required else None)
    return fields


_CHOICES: dict[tuple[type, str], Any] = {(Sensor, "kind"): SENSOR_KINDS}
NAMED: set[tuple[type, str]] = {(Equation, "inputs")}
"""pairs of texts that are written as a table"""


def annotation(hint: Any) -> Any:
    """The type in a file for the type of a record's field."""
    if hint in (Scalar, Scalar | None):
        return Number
    simple = {
        float: Constant,
        int: StrictInt,
        bool: StrictBool,
        str: StrictStr,
        Placement: placement(),
        Inertia: inertia(),
    }
    if hint in simple:
        return simple[hint]
    if hint is ModalBody:
        return flexible()
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return hint
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        return annotation(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple and arguments[-1] is Ellipsis:
        inner = annotation(arguments[0])
        several = tuple[inner, ...]  # type: ignore[valid-type]
        if inner not in (Number, Constant):
            return several
        return Annotated[several, BeforeValidator(_one_or_more, json_schema_input_type=inner | several)]
    if origin is tuple:
        return tuple[tuple(annotation(argument) for argument in arguments)]  # type: ignore[misc]
    if dataclasses.is_dataclass(hint):
        return _record(typing.cast(type, hint))
    raise ModelError(f"the file format has no way to write {hint}")


def _one_or_more(value: Any) -> Any:
    if isinstance(value, dict) or value is None:
        raise ValueError(f"is {described(value)}, expected a number or a list of numbers")
    return value if isinstance(value, list) else [value]


def _is_choice(hint: Any) -> bool:
    """A union of records, of which a table names one by its key: `box = {...}`."""
    arguments = typing.get_args(hint)
    return len(arguments) > 1 and all(dataclasses.is_dataclass(argument) for argument in arguments)


@functools.cache
def choice_fields(record: type) -> dict[str, tuple[str, ...]]:
    """Fields of a record that are written as one of several keys."""
    hints = typing.get_type_hints(record)
    return {
        field.name: tuple(choice.__name__.lower() for choice in typing.get_args(hints[field.name]))
        for field in dataclasses.fields(record)
        if _is_choice(hints[field.name])
    }


@functools.cache
def _record(record: type) -> Any:
    """A nested record: the table, made into the record when it has been read."""
    choices = choice_fields(record)

    def build(value: FileTable) -> Any:
        given = value.given()
        for field, names in choices.items():
            given[field] = given.pop(_only(given, names, f"expected one of {', '.join(names)}"))
        return record(**given)

    return Annotated[record_table(record, name=record.__name__), AfterValidator(build)]


def _only(given: dict[str, Any], names: tuple[str, ...], otherwise: str) -> str:
    found = [name for name in names if name in given]
    if len(found) > 1:
        raise ValueError(f"has both {found[0]} and {found[1]}; one is enough")
    if not found:
        raise ValueError(otherwise)
    return found[0]


# --- placements and inertias --------------------------------------------------------------------------------


@functools.cache
def placement() -> Any:
    four = Annotated[tuple[Number, ...], Field(min_length=4, max_length=4)]
    fields: dict[str, Any] = {"translation": (Vector, None), "quaternion_wxyz": (four, None)}
    fields |= {name: (Vector, None) for name in ROTATIONS[1:]}
    doc = "A translation and one of quaternion_wxyz, rpy, rotation_vector; or the bare translation."
    members = table("Placement", doc, fields)

    def build(value: FileTable) -> Placement:
        given = value.given()
        translation = given.pop("translation", (0.0, 0.0, 0.0))
        if not given:
            return Placement(translation)
        kind = _only(given, ROTATIONS, "")
        numbers = given[kind]
        if kind.endswith("_deg"):
            numbers = tuple(_radians(angle) for angle in numbers)
        if kind == "quaternion_wxyz":
            return Placement(translation, numbers)
        if kind.startswith("rpy"):
            return Placement.from_rpy(numbers, translation)
        if any(isinstance(entry, Expression) for entry in numbers):
            raise ValueError(f"{kind} takes numbers; for formulas use rpy or quaternion_wxyz")
        return Placement.from_rotation_vector(numbers, translation)

    return Annotated[
        members,
        AfterValidator(build),
        BeforeValidator(_bare_translation, json_schema_input_type=members | Vector),
    ]


def _bare_translation(value: Any) -> Any:
    return {"translation": value} if isinstance(value, list) else value


def _radians(angle: Scalar) -> Scalar:
    return Expression(f"({angle}) * pi / 180") if isinstance(angle, Expression) else math.radians(angle)


@functools.cache
def inertia() -> Any:
    six = Annotated[tuple[Number, ...], Field(min_length=6, max_length=6)]
    fields: dict[str, Any] = {"mass": (Number, None), "com": (Vector, None), "tensor": (six, None)}
    for shape in INERTIA_SHAPES:
        maker = getattr(Inertia, shape)
        members = {}
        for name, parameter in inspect.signature(maker).parameters.items():
            kind = Number if "Scalar" in str(parameter.annotation) else Vector
            members[name] = (kind, ... if parameter.default is parameter.empty else None)
        shape_table = table(f"{shape.capitalize()}Inertia", maker.__doc__, members)
        fields[shape] = (Annotated[shape_table, AfterValidator(_shape_builder(maker))], None)
    doc = (
        "mass, com and tensor (Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the centre of mass); or one uniform shape."
    )
    members_table = table("Inertia", doc, fields)

    def build(value: FileTable) -> Inertia:
        given = value.given()
        shapes = [shape for shape in INERTIA_SHAPES if shape in given]
        if not shapes:
            if given and "mass" not in given:
                raise ValueError(f"has {' and '.join(given)} but no mass")
            return Inertia(**given)
        if len(given) > 1:
            other = next(name for name in given if name != shapes[0])
            raise ValueError(f"has both {shapes[0]} and {other}; a shape gives the whole inertia")
        return given[shapes[0]]

    return Annotated[members_table, AfterValidator(build)]


def _shape_builder(maker: Callable[..., Inertia]) -> Callable[[FileTable], Inertia]:
    return lambda value: maker(**value.given())


# --- flexible bodies ----------------------------------------------------------------------------------------


@functools.cache
def flexible() -> Any:
    """A flexible body, its numbers in the table or in a side file beside the document."""
    hints = typing.get_type_hints(ModalBody)
    fields: dict[str, Any] = {"file": (StrictStr, ...), "sha256": (StrictStr, ...)}
    fields |= {name: (annotation(hints[name]), ... if name == "modes" else None) for name in side_file.TEXTS}
    doc = "The numbers of the body are in an .npz file beside this one, which has this SHA-256."
    aside = table("SideFile", doc, fields)
    inline = _record(ModalBody)

    def read(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> ModalBody:
        if not isinstance(value, dict) or "file" not in value:
            return handler(value)
        for key in value:
            if key in side_file.NUMBERS or key == "nodes":
                raise ValueError(f"has both file and {key}; the file gives all numbers of the body")
            if key not in fields:
                raise UnknownKeyError(key, list(fields))
        folder = (info.context or {}).get("folder")
        if folder is None:
            raise ValueError(
                "names a side file, which is looked for beside the model's; load the model from its file"
            )
        for key in ("file", "sha256"):
            if not isinstance(value.get(key, ""), str):
                raise ValueError(f"{key} is {described(value[key])}, expected a text")
        texts = {name: value[name] for name in side_file.TEXTS if name in value}
        if "modes" not in texts:
            raise ValueError("has no modes, the names of the modal coordinates")
        return side_file.unpack(folder / value["file"], value.get("sha256"), texts)

    return Annotated[inline, WrapValidator(read, json_schema_input_type=inline | aside)]


# --- the document -------------------------------------------------------------------------------------------


def document() -> type[FileTable]:
    """The schema of a whole file, with the joint types that are registered now."""
    return _document(tuple(REGISTRY.items()), tuple(PAIRS.items()))


@functools.cache
def _document(
    joint_types: tuple[tuple[str, type[Pair]], ...], pairs: tuple[tuple[str, type[Pair]], ...]
) -> type[FileTable]:
    fields: dict[str, Any] = {
        "format": (Literal["alembert-model"], ...),
        "version": (Literal[1], ...),
        "name": (StrictStr, "model"),
        "gravity": (Vector, None),
        "parameters": (dict[StrictStr, Default], None),
        "visuals": (annotation(tuple[Visual, ...]), None),
    }
    for section, (_, record) in PARTS.items():
        part: Any = _part(record, (*joint_types, *pairs) if record is LoopJoint else joint_types)
        fields[section] = (dict[StrictStr, part], None)
    return table("Model", "A model of bodies and joints, in SI units.", fields)


def _part(record: type, joint_types: tuple[tuple[str, type[Pair]], ...]) -> Any:
    """A named record; one with a joint type is a choice by `type`."""
    hints = typing.get_type_hints(record)
    of_joint = [name for name, hint in hints.items() if hint in (JointType, Pair)]
    if not of_joint:
        return record_table(record, name=record.__name__, omit=("name",))
    own = fields_of(record, omit=("name", *of_joint))
    members = []
    for kind, cls in joint_types:
        more = fields_of(cls)
        for name in more.keys() & (own.keys() | {"type"}):
            raise ModelError(f"joint type {kind!r} has a field {name!r}, which every {record.__name__} has")
        fields = {"type": (Literal[kind], ...), **more, **own}
        members.append(table(f"{cls.__name__}{record.__name__}", cls.__doc__, fields))
    return Annotated[functools.reduce(operator.or_, members), Field(discriminator="type")]


def json_schema() -> dict[str, Any]:
    """The JSON schema of the format, for editors and other programs."""
    schema = _without_empty_defaults(document().model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _without_empty_defaults(part: Any) -> Any:
    """What may be left out has no default in the schema: the record gives it."""
    if isinstance(part, dict):
        return {k: _without_empty_defaults(v) for k, v in part.items() if (k, v) != ("default", None)}
    return [_without_empty_defaults(entry) for entry in part] if isinstance(part, list) else part
