"""The Python that makes the model of a document: a `ModelBuilder`, part by part.

Inertias and placements are written as the document says them (`Inertia.rod`, `from_rpy`), all else from the records of the
model. Running the text gives an equal model.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from alembert import joints
from alembert import model as model_parts
from alembert.expression import Expression
from alembert.joints import Pair
from alembert.model import Inertia, Model, Placement
from alembert.model.elements import WORLD, Joint, Visual
from alembert.model.io.schema import INERTIA_SHAPES, PARTS, ROTATIONS

LINE = 100
_INDENT = "    "


def python_source(model: Model, data: Mapping[str, Any]) -> str:
    """`data` is what the model's file says."""
    numbers = ", ".join(_entry(x) for x in model.gravity)
    lines = [
        "import alembert as al",
        *sorted(_imports([getattr(model, section) for section in (*PARTS, "visuals")])),
        "",
        f"builder = al.ModelBuilder({_text(model.name)}, gravity=({numbers}))",
    ]
    lines += [f"builder.parameter({_text(name)}, {value!r})" for name, value in model.parameters]
    if model.visuals:
        lines += _call("builder.world", [_visuals(model.visuals, _INDENT)])
    movers = {joint.child: joint for joint in model.joints}
    for body in model.bodies:
        joint = movers[body.name]
        given = _given(data, "bodies", body.name)
        arguments = [_text(body.name)]
        if body.flexible is not None:
            arguments.append(_code(body.flexible))
        elif body.inertia != Inertia():
            arguments.append(_inertia(body.inertia, given.get("inertia")))
        if body.visuals:
            arguments.append(_visuals(body.visuals, _INDENT))
        if body.unphysical:
            arguments.append("unphysical=True")
        lines += _call("builder.body", arguments + _joint(joint, _given(data, "joints", joint.name)))
    for section, (method, _) in PARTS.items():
        if section in ("bodies", "joints"):
            continue
        for part in getattr(model, section):
            lines += _call(f"builder.{method}", _arguments(part, _given(data, section, part.name)))
    return "\n".join([*lines, "model = builder.build()", ""])


def _given(data: Mapping[str, Any], section: str, name: str) -> Mapping[str, Any]:
    found = data.get(section, {}).get(name, {})
    return found if isinstance(found, Mapping) else {}


def _joint(joint: Joint, given: Mapping[str, Any]) -> list[str]:
    found = [f"joint={_code(joint.type)}", f"joint_name={_text(joint.name)}"]
    if joint.parent != WORLD:
        found.append(f"parent={_text(joint.parent)}")
    return found + _options(joint, given, omit=("name", "type", "parent", "child"))


def _arguments(part: Any, given: Mapping[str, Any]) -> list[str]:
    """Of a method of the builder: the name, then the fields that differ from their defaults, by name."""
    return [_text(part.name), *_options(part, given, omit=("name",))]


def _options(part: Any, given: Mapping[str, Any], omit: tuple[str, ...]) -> list[str]:
    found = []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name in omit or repr(value) == repr(field.default):
            continue
        if isinstance(value, Placement):
            found.append(f"{field.name}={_placement(value, given.get(field.name))}")
        else:
            found.append(f"{field.name}={_code(value)}")
    return found


# --- values -------------------------------------------------------------------------------------------------


def _inertia(inertia: Inertia, given: Any) -> str:
    """As the document has it: a shape with its sizes, or mass, centre and tensor."""
    shape = next((s for s in INERTIA_SHAPES if isinstance(given, Mapping) and s in given), None)
    if shape is None:
        return _code(inertia)
    arguments = ", ".join(f"{key}={_number(entry)}" for key, entry in given[shape].items())
    return f"al.Inertia.{shape}({arguments})"


def _placement(placement: Placement, given: Any) -> str:
    if isinstance(given, list):
        return _number(given)
    if not isinstance(given, Mapping):
        return _code(placement)
    translation = _number(given["translation"]) if "translation" in given else ""
    turn = next((key for key in ROTATIONS if key in given), None)
    if turn is None:
        return translation
    if turn == "quaternion_wxyz":
        return f"al.Placement({translation or '(0, 0, 0)'}, {_number(given[turn])})"
    angles = given[turn]
    if turn.endswith("_deg"):
        numeric = [f"({x}) * pi / 180" if isinstance(x, str) else math.radians(x) for x in angles]
        angles = numeric
    maker = "from_rpy" if turn.startswith("rpy") else "from_rotation_vector"
    return f"al.Placement.{maker}({_number(angles)}{', ' + translation if translation else ''})"


def _number(value: Any) -> str:
    """A number, a formula or a list of them, as a document says it."""
    if isinstance(value, list):
        return "(" + ", ".join(_number(entry) for entry in value) + ("," if len(value) == 1 else "") + ")"
    return _formula(value) if isinstance(value, str) else repr(value)


def _entry(value: Any) -> str:
    return _formula(value.text) if isinstance(value, Expression) else _float(value)


def _formula(text: str) -> str:
    return f"al.Expression({_text(text)})"


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)


def _code(value: Any) -> str:
    """A record, as the call that makes it."""
    if isinstance(value, Expression):
        return _formula(value.text)
    if isinstance(value, bool | int) or value is None:
        return repr(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple | list):
        return "(" + ", ".join(_code(entry) for entry in value) + ("," if len(value) == 1 else "") + ")"
    arguments = [
        _code(getattr(value, field.name))
        if isinstance(value, Pair) and k == 0
        else f"{field.name}={_code(getattr(value, field.name))}"
        for k, field in enumerate(dataclasses.fields(value))
        if repr(getattr(value, field.name)) != repr(field.default)
    ]
    prefix = "al." if _is_public(type(value)) else ""
    return f"{prefix}{type(value).__name__}({', '.join(arguments)})"


def _is_public(record: type) -> bool:
    """Whether the top level of the package has it: what these two packages offer."""
    return record.__name__ in (*joints.__all__, *model_parts.__all__)


def _imports(value: Any) -> set[str]:
    """Of records in a value that the package does not have on its top level."""
    if isinstance(value, tuple | list):
        return set().union(*map(_imports, value))
    if not dataclasses.is_dataclass(value):
        return set()
    record: type = type(value)
    found = set() if _is_public(record) else {f"from {record.__module__} import {record.__name__}"}
    return found.union(*(_imports(getattr(value, field.name)) for field in dataclasses.fields(value)))


def _visuals(visuals: tuple[Visual, ...], indent: str) -> str:
    """A line each."""
    lines = "".join(f"{indent}{_INDENT}{_code(visual)},\n" for visual in visuals)
    return f"visuals=[\n{lines}{indent}]"


def _call(function: str, arguments: list[str]) -> list[str]:
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= LINE and "\n" not in line:
        return [line]
    return [f"{function}(", *(f"{_INDENT}{argument}," for argument in arguments), ")"]
