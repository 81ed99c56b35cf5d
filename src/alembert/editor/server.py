"""The editor as a page of this machine: a small server behind the viewer's guard, and the actions it answers.

The page asks for the state once and sends actions; every answer is the whole new state: the text, what it says, what is
wrong with it and where, the picture and the Python. Only pages that know the token are answered (`alembert.view.served`).

What a form of the editor asks for is one description per part of a model, made from the records and joint types.
A field has a `key`, a `kind` (what is typed there), and where it applies a `unit`, `labels` of its entries, `choices`,
what it may name (`of`), the `default` that holds when it is empty, and `help`. Keys that have no form of their own are
shown as TOML (`kind` "toml"), so that no field of the format is out of reach.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import threading
import typing
import warnings
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from alembert.arguments import unknown
from alembert.editor.document import ModelDocument, python_source
from alembert.errors import AlembertError, AlembertWarning, ArgumentError
from alembert.expression import Scalar
from alembert.joints import PAIRS, REGISTRY, Friction, JointType, Limits, Pair, Spring
from alembert.model import Inertia
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
    Shape,
)
from alembert.model.io.schema import INERTIA_SHAPES, PARTS
from alembert.view.page import SCRIPTS, STYLES, asset, scene_data
from alembert.view.served import ServedPage

Field = dict[str, Any]
XYZ = ("x", "y", "z")
TENSOR = ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_FRAMES = ("frames", "bodies", "world")
_NAMES: dict[tuple[type, str], tuple[str, ...]] = {
    (Joint, "parent"): ("bodies", "world"),
    (Joint, "child"): ("bodies",),
    (Frame, "body"): ("bodies", "world"),
    (LoopJoint, "frame_a"): _FRAMES,
    (LoopJoint, "frame_b"): _FRAMES,
    (Coupling, "joint"): ("joints",),
    (Actuator, "joint"): ("joints",),
    (Sensor, "target"): ("joints", *_FRAMES),
    (Equation, "reference"): _FRAMES,
}
_HELP = {
    "axis": "direction; its length does not matter",
    "parent": "the body that carries the joint",
    "child": "the body that the joint moves",
    "com": "centre of mass, in body axes",
    "tensor": "about the centre of mass, in body axes",
    "armature": "inertia of the drive, seen at the joint",
    "rest": "where the spring is slack",
    "smoothing": "speed at which Coulomb friction reaches 71 %",
    "node": "of a flexible body",
    "unphysical": "keep an inertia that no body can have",
    "gear": "effort per unit of the input",
    "pitch": "distance per radian",
    "sequence": "axes of the three turns, such as zyx",
    "offset": "of the coordinate",
    "visuals": "shapes to draw; made up where there are none",
}
_UNITS = {
    "mass": "kg",
    "com": "m",
    "tensor": "kg m²",
    "position": "m",
    "start": "m",
    "end": "m",
    "size": "m",
    "center": "m",
    "radius": "m",
    "length": "m",
    "distance": "m",
    "pitch": "m/rad",
    "gravity": "m/s²",
}
_LIKELY: dict[str, Any] = {
    "mass": 1,
    "radius": 0.05,
    "length": 0.5,
    "size": [0.1, 0.1, 0.1],
    "end": [0, 0, -0.5],
}
"""what a shape begins with"""


def forms() -> dict[str, Any]:
    """The fields of every section; those of joints and loops by type."""
    found: dict[str, Any] = {
        "": [
            _numbers("gravity", 3, XYZ, default=[0, 0, -9.81]),
            {"key": "visuals", "kind": "visuals", "help": "shapes that stand in the world"},
        ]
    }
    for section, (_, record) in PARTS.items():
        kinds: dict[str, type[Pair]] = dict(REGISTRY) | (dict(PAIRS) if record is LoopJoint else {})
        typed = any(field.name == "type" for field in dataclasses.fields(record))
        if typed:
            found[section] = {
                kind: [*_constants(cls), *_fields(record, _speeds_of(cls))] for kind, cls in kinds.items()
            }
        else:
            found[section] = _fields(record, None)
    return {
        "sections": found,
        "joint_types": [kind for kind in REGISTRY if kind != "custom"],
        "loop_types": [kind for kind in (*REGISTRY, *PAIRS) if kind not in ("custom", "free")],
        "inertias": {shape: _shape(shape) for shape in INERTIA_SHAPES} | {"general": _general()},
        "starts": {shape: _begin(shape) for shape in INERTIA_SHAPES}
        | {"general": {"mass": 1, "com": [0, 0, 0], "tensor": [0.01, 0, 0.01, 0, 0, 0.01]}},
        "shapes": {shape.__name__.lower(): _drawn(shape) for shape in typing.get_args(Shape)},
        "shape_starts": _SHAPE_STARTS,
        "rotations": {
            "rpy_deg": ["deg", ["roll", "pitch", "yaw"], [0, 0, 0]],
            "rpy": ["rad", ["roll", "pitch", "yaw"], [0, 0, 0]],
            "quaternion_wxyz": ["", ["w", "x", "y", "z"], [1, 0, 0, 0]],
            "rotation_vector": ["rad", list(XYZ), [0, 0, 0]],
            "rotation_vector_deg": ["deg", list(XYZ), [0, 0, 0]],
        },
    }


# --- parts --------------------------------------------------------------------------------------------------


def _fields(record: type, joint: JointType | None) -> list[Field]:
    hints = typing.get_type_hints(record)
    found = []
    for field in dataclasses.fields(record):
        if field.name in ("name", "type"):
            continue
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        found.append({**_field(record, field, hints[field.name], joint), "required": required})
    return found


def _field(record: type, field: dataclasses.Field[Any], hint: Any, joint: JointType | None) -> Field:
    key = field.name
    about: Field = {"key": key, "help": _HELP.get(key, "")}
    if (record, key) in _NAMES:
        return about | {"kind": "name", "of": list(_NAMES[record, key])}
    if (record, key) == (Sensor, "kind"):
        return about | {"kind": "choice", "choices": list(SENSOR_KINDS)}
    if (record, key) == (Actuator, "limits"):
        return about | _numbers(key, 2, ("lower", "upper"), default=["-inf", "inf"])
    if (record, key) in ((Body, "inertia"), (Joint, "placement"), (Frame, "placement")):
        return about | {"kind": key}
    if (record, key) == (Body, "visuals"):
        return about | {"kind": "visuals"}
    if hint in (Limits, Spring | None, Friction | None):
        members = next(cls for cls in (Limits, Spring, Friction) if cls in (hint, *typing.get_args(hint)))
        return about | {"kind": "table", "fields": _fields(members, joint)}
    if key in _EACH and joint is not None:
        return about | _each(key, joint)
    if key == "smoothing" and joint is not None and joint.nv:
        return about | {"kind": "number", "default": _default(field), "unit": joint.speeds[0][1]}
    if hint == Scalar:
        return about | {"kind": "number", "default": _default(field), "unit": _UNITS.get(key, "")}
    simple = {int: "whole", str: "text", bool: "flag"}
    if hint in simple:
        return about | {"kind": simple[hint], "default": _default(field)}
    return about | {"kind": "toml"}


def _default(field: dataclasses.Field[Any]) -> Any:
    return None if field.default is dataclasses.MISSING else field.default


def _constants(cls: type[Pair]) -> list[Field]:
    """The fields of a joint type itself."""
    found = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        about: Field = {"key": field.name, "help": _HELP.get(field.name, "")}
        default, required = _default(field), field.default is dataclasses.MISSING
        hint = hints[field.name]
        if isinstance(default, tuple) and len(default) in (2, 3):
            labels = XYZ if len(default) == 3 else ("u", "w")
            about |= _numbers(field.name, len(default), labels, default=list(default))
            about["units"] = [""] * len(default)
        elif hint in (Scalar, float, int):
            unit = _UNITS[field.name] if field.name in ("distance", "radius", "pitch") else ""
            about |= {"kind": "number", "default": default, "unit": unit}
        elif hint is str:
            about |= {"kind": "text", "default": default}
        else:
            about |= {"kind": "toml"}
        found.append({**about, "required": required})
    return found


# --- per degree of freedom ----------------------------------------------------------------------------------

_EACH = ("lower", "upper", "velocity", "effort", "stiffness", "rest", "viscous", "coulomb", "armature")


def _speeds_of(cls: type[Pair]) -> JointType | None:
    """A joint of a type with its default constants; what is asked per coordinate depends on it."""
    complete = all(field.default is not dataclasses.MISSING for field in dataclasses.fields(cls))
    return cls() if complete and issubclass(cls, JointType) else None


def _each(key: str, joint: JointType) -> Field:
    of_coordinates = key in ("lower", "upper", "rest")
    entries = joint.coordinates if of_coordinates else joint.speeds
    units = []
    for _, unit in entries:
        turns = unit.startswith("rad")
        effort, coordinate = ("N m", "rad") if turns else ("N", "m")
        units.append(
            {
                "effort": effort,
                "stiffness": f"{effort}/{coordinate}",
                "viscous": f"{effort} s/{coordinate}",
                "coulomb": effort,
                "armature": "kg m²" if turns else "kg",
            }.get(key, unit)
        )
    return {
        "kind": "numbers",
        "count": len(entries),
        "labels": [label for label, _ in entries],
        "units": units,
        "default": None,
        "single": len(entries) == 1,
    }


def _numbers(key: str, count: int, labels: tuple[str, ...], *, default: list[Any] | None) -> Field:
    return {
        "key": key,
        "kind": "numbers",
        "count": count,
        "labels": list(labels),
        "units": [_UNITS.get(key, "")] * count,
        "default": default,
        "help": _HELP.get(key, ""),
    }


# --- shapes to draw -----------------------------------------------------------------------------------------

_SHAPE_STARTS: dict[str, dict[str, Any]] = {
    "box": {"size": [0.1, 0.1, 0.1]},
    "sphere": {"radius": 0.05},
    "ellipsoid": {"radii": [0.1, 0.05, 0.05]},
    "cylinder": {"radius": 0.05, "length": 0.2},
    "capsule": {"radius": 0.05, "length": 0.2},
    "mesh": {"path": "shape.stl"},
}


def _drawn(shape: type) -> list[Field]:
    found: list[Field] = []
    for field in dataclasses.fields(shape):
        default = None if field.default is dataclasses.MISSING else list(field.default)
        about: Field = {"key": field.name, "unit": "m", "help": _HELP.get(field.name, "")}
        if field.name == "path":
            about["kind"] = "text"
        elif field.name in ("size", "radii", "scale"):
            about |= _numbers(field.name, 3, XYZ, default=default or [0.1, 0.1, 0.1])
            about["units"] = ["" if field.name == "scale" else "m"] * 3
        else:
            about["kind"] = "number"
        found.append({**about, "required": default is None})
    return found


# --- inertias -----------------------------------------------------------------------------------------------


def _general() -> list[Field]:
    return [
        {"key": "mass", "kind": "number", "unit": "kg", "required": True},
        _numbers("com", 3, XYZ, default=[0, 0, 0]),
        _numbers("tensor", 6, TENSOR, default=[0] * 6),
    ]


def _shape(shape: str) -> list[Field]:
    found: list[Field] = []
    for name, parameter in inspect.signature(getattr(Inertia, shape)).parameters.items():
        required = parameter.default is parameter.empty
        if "Scalar" in str(parameter.annotation):
            found.append({"key": name, "kind": "number", "unit": _UNITS.get(name, ""), "required": required})
        else:
            default = [0, 0, 0] if required else [float(x) for x in parameter.default]
            found.append({**_numbers(name, 3, XYZ, default=default), "required": required})
    return found


def _begin(shape: str) -> dict[str, Any]:
    """The required values of a shape, to begin with."""
    return {
        field["key"]: _LIKELY.get(field["key"], [0, 0, 0]) for field in _shape(shape) if field.get("required")
    }


PORT = 8090
_SCRIPTS = (*SCRIPTS[:-1], "fields.js", "editor.js")
_STYLES = (*STYLES, "editor.css")


def edit(path: str | Path | None = None, *, port: int | None = None, open_browser: bool = True) -> Editor:
    """Open a model in the editor; returns at once a handle with `url` and `stop()`.

    `path` is a file of Alembert's own format (.toml). One that is not there yet begins as an empty model; one of another
    format is read, and saved as .toml beside it. Only this machine is served.
    """
    return Editor(ModelDocument.open(path), port=port, open_browser=open_browser)


class Editor(ServedPage):
    """A running editor: `document` is what it edits, `url` where."""

    def __init__(
        self, document: ModelDocument, *, port: int | None = None, open_browser: bool = True
    ) -> None:
        self.document = document
        self._lock = threading.Lock()
        self._version = 0
        self._picture: tuple[Any, dict[str, Any] | None, str, list[str]] = (None, None, "", [])
        self._serve(
            "build",
            "Alembert",
            _STYLES,
            _SCRIPTS,
            _file,
            answers={"state": self.state, "forms": forms},
            actions={"act": self.act},
            port=port,
            first=PORT,
            open_browser=open_browser,
        )

    def wait(self) -> None:
        """Until `stop` is called, or the user interrupts."""
        self._wait()

    def __repr__(self) -> str:
        name = self.document.path.name if self.document.path else "a new model"
        return f"<Editor of {name} {self._place}>"

    # --- actions --------------------------------------------------------------------------------------------

    def act(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Do what the page asks for; the new state, with `error` where it could not be done."""
        with self._lock:
            answer: dict[str, Any] = {}
            if "version" in action and action["version"] != self._version:
                answer["error"] = "the model was changed in another window; this is how it is now"
            else:
                try:
                    answer |= self._do(action)
                    self._version += 1
                except AlembertError as error:
                    answer["error"] = str(error)
            return answer | self._state()

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        with self._lock:
            return self._state()

    def _do(self, action: Mapping[str, Any]) -> dict[str, Any]:
        document, given = self.document, dict(action)
        given.pop("version", None)
        name = given.pop("do", None)
        actions: dict[str, Callable[..., Any]] = {
            "change": lambda changes: document.change(changes),
            "add": lambda section, parent="world": {"added": [section, document.add(section, parent=parent)]},
            "remove": lambda section, name: {"removed": document.remove(section, name)},
            "rename": lambda section, name, to: document.rename(section, name, to),
            "move": lambda body, shift: document.move(body, shift),
            "text": lambda text: document.write(text),
            "undo": lambda: document.undo(),
            "redo": lambda: document.redo(),
            "save": lambda name="", over=False: {"wrote": str(document.save(name, over=over))},
        }
        if not isinstance(name, str) or name not in actions:
            raise ArgumentError(unknown("there is no action", str(name), actions))
        try:
            done = actions[name](**given)
        except AlembertError:
            raise
        except RecursionError:
            raise ArgumentError(f"{name}: what is given is nested too deeply") from None
        except OSError as error:
            raise ArgumentError(f"{name}: {error.strerror or error}") from None
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            # no such action as the page makes them
            raise ArgumentError(f"{name}: {error}") from None
        return done or {}

    def _state(self) -> dict[str, Any]:
        document = self.document
        scene, python, remarks = self._shown()
        return {
            "version": self._version,
            "file": document.path.name if document.path else "",
            "text": document.text,
            "data": _plain(document.data),
            "problems": [{"place": list(place), "text": what} for place, what in document.problems],
            "remarks": remarks,
            "undo": document.before[-1].what if document.before else "",
            "redo": document.after[-1].what if document.after else "",
            "saved": document.text == document.saved,
            "scene": scene,
            "python": python,
            "summary": self._summary(),
        }

    def _summary(self) -> str:
        model = self.document.model
        if model is None:
            return ""
        bodies = f"{len(model.bodies)} {'body' if len(model.bodies) == 1 else 'bodies'}"
        freedom = f"{model.nv} {'degree' if model.nv == 1 else 'degrees'} of freedom"
        freedom += " before constraints" if model.is_constrained else ""
        return f"{bodies}, {freedom}, {model.mass:.4g} kg"

    def _shown(self) -> tuple[dict[str, Any] | None, str, list[str]]:
        """The picture and the Python of the model that was right last; made once per model."""
        model = self.document.model
        if model is None:
            return None, "", []
        if self._picture[0] is not model:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", AlembertWarning)
                try:
                    scene, failed = scene_data(model), []
                except AlembertError as error:  # the form can mend it
                    scene, failed = None, [f"the model cannot be drawn: {error}"]
            remarks = failed + [str(w.message) for w in told if issubclass(w.category, AlembertWarning)]
            self._picture = (model, scene, python_source(model, self.document.data), remarks)
        return self._picture[1:]


# --- pieces -------------------------------------------------------------------------------------------------


@functools.cache
def _file(name: str) -> str:
    own = resources.files("alembert.editor").joinpath("assets", name)
    return own.read_text(encoding="utf-8") if own.is_file() else asset(name)


def _plain(data: Any) -> Any:
    """What JSON can say: infinite numbers and dates as texts."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(entry) for entry in data]
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    return data if isinstance(data, (bool, int, float, str)) else str(data)
