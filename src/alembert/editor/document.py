"""The model file that is being edited: its text, what the text says, every earlier text, and the changes a form may ask for.

The text is the truth. A change goes into the text (`alembert.model.io.toml`), which is then read again: what is
wrong with the model is known by place, and the model that was right last is kept for the picture.

The Python that makes the model of a document: a `ModelBuilder`, part by part.

Inertias and placements are written as the document says them (`Inertia.rod`, `from_rpy`), all else from the records of the
model. Running the text gives an equal model.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alembert import joints
from alembert import model as model_parts
from alembert.arguments import check_known, unknown
from alembert.errors import ArgumentError, FileError, writing
from alembert.expression import Expression
from alembert.joints import Pair
from alembert.model import Inertia, Model, Placement
from alembert.model.elements import DOT, WORLD, Joint, Visual
from alembert.model.io import load, toml
from alembert.model.io.location import Place, PlacedError, read_bytes, read_text
from alembert.model.io.native import dumps, loads, write_whole
from alembert.model.io.schema import FORMAT, INERTIA_SHAPES, PARTS, ROTATIONS, VERSION, check_format

NEW = """format = "alembert-model"
version = 1
name = "{name}"
gravity = [0, 0, -9.81]
"""
MOST_STEPS = 1000
"""texts that are kept for undo"""

_FRAME_USERS = (("loops", "frame_a"), ("loops", "frame_b"), ("sensors", "target"), ("equations", "reference"))
_USERS: dict[str, tuple[tuple[str, str], ...]] = {
    "bodies": (("joints", "parent"), ("joints", "child"), ("frames", "body"), *_FRAME_USERS),
    "frames": _FRAME_USERS,
    "joints": (
        ("couplings", "joint"),
        ("couplings", "masters"),
        ("actuators", "joint"),
        ("sensors", "target"),
    ),
}
"""keys that name a part"""
_TEXTS = {
    "name",
    "type",
    "node",
    "path",
    "kind",
    "sequence",
    "reference",
    "format",
    "graph",
    "fit_graph",
    "units",
}
_TEXTS |= {key for users in _USERS.values() for _, key in users}
_WHOLE = re.compile(r"[+-]?\d+")


@dataclass
class _Step:
    text: str
    what: str


@dataclass
class ModelDocument:
    """`path` is None for a model that has no file yet; `text` is the whole file."""

    path: Path | None
    text: str
    mark: bytes = b""
    """a byte order mark at the beginning of the file"""
    saved: str | None = None
    """the text of the file, as far as it is known"""
    before: list[_Step] = field(default_factory=list)
    after: list[_Step] = field(default_factory=list)
    model: Model | None = None
    problems: tuple[tuple[Place, str], ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read()

    @classmethod
    def open(cls, path: Path | str | None) -> ModelDocument:
        """A `.toml` file; a new one where there is none; other formats are read, to be saved as TOML."""
        if path is None:
            return cls(None, NEW.format(name="model"))
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix != ".toml":
            return cls(path.with_suffix(".toml"), dumps(load(path), "toml"))
        with writing(path):  # a name that no file can have
            there = path.exists()
        if not there:
            if not path.parent.is_dir():
                raise FileError(f"{path}: cannot be made: there is no folder {path.parent}")
            return cls(path, NEW.format(name=re.sub(r"[^\w-]", "_", path.stem) or "model"))
        text = read_text(path, toml.LARGEST)
        raw = read_bytes(path, toml.LARGEST)
        check_format(toml.parse(text, str(path)), FORMAT, VERSION)  # other errors can be mended in the page
        return cls(path, text, b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b"", text)

    def _read(self) -> None:
        name = self.path.name if self.path else "model.toml"
        self.data = toml.parse(self.text, name).data
        try:
            folder = self.path.parent if self.path else None
            self.model, self.problems = loads(self.text, name=name, folder=folder), ()
        except PlacedError as error:
            self.problems = error.problems

    # --- history ------------------------------------------------------------------------------------------------

    def _become(self, text: str, what: str) -> None:
        if text == self.text:
            return
        toml.parse(text, self.path.name if self.path else "model.toml")  # else nothing has changed
        self.before = [*self.before[-MOST_STEPS:], _Step(self.text, what)]
        self.after = []
        self.text = text
        self._read()

    def undo(self) -> None:
        self._step(self.before, self.after, "undo")

    def redo(self) -> None:
        self._step(self.after, self.before, "redo")

    def _step(self, source: list[_Step], target: list[_Step], what: str) -> None:
        if not source:
            raise ArgumentError(f"{what}: there is nothing to {what}")
        step = source.pop()
        target.append(_Step(self.text, step.what))
        self.text = step.text
        self._read()

    # --- changes ------------------------------------------------------------------------------------------------

    def change(self, changes: Sequence[Mapping[str, Any]]) -> None:
        """Values put and removed, as one step: `{"put": place, "typed" | "value" | "toml": ...}`, `{"remove": place}`."""
        text, what = self.text, ""
        for change in changes:
            place = _place(change.get("put", change.get("remove")))
            what = what or ".".join(str(key) for key in place)
            if "remove" in change:
                if toml.at(tomllib.loads(text), place) is not toml.MISSING:
                    text = toml.remove(text, place)
                continue
            value = _value(change)
            old = toml.at(tomllib.loads(text), place)
            if not _equal(old, value):
                text = toml.put(text, place, value)
        self._become(text, f"change {what}")

    def write(self, text: str) -> None:
        """The whole text, as the user has written it."""
        self._become(text, "change the text")

    def add(self, section: str, *, parent: str = "world") -> str:
        """A further part, with values to begin with; its name. A body comes with the joint that moves it."""
        kind = _kind(section)
        if section == "bodies":
            return self._add_body(parent)
        if section == "joints" and parent in self._parts("bodies") and self._mover(parent) is None:
            return self._add_joint(parent)
        name = self._free(section, kind)
        begin: dict[str, Callable[[], Any]] = {
            "parameters": lambda: 1.0,
            "frames": lambda: {"body": parent, "placement": [0, 0, 0]},
            "loops": lambda: {"type": "revolute", "frame_a": "world", "frame_b": self._first("bodies")},
            "couplings": lambda: {
                "joint": self._first("joints", -1),
                "masters": [self._first("joints")],
                "ratios": [1],
            },
            "equations": lambda: {"formulas": ["q"], "inputs": {"q": self._first("joints")}},
            "actuators": lambda: {"joint": self._mover(parent) or self._first("joints")},
            "sensors": lambda: {
                "kind": "joint_position",
                "target": self._mover(parent) or self._first("joints"),
            },
        }
        if section not in begin:
            raise ArgumentError(f"a {kind} is added together with its body")
        self._become(toml.put(self.text, (section, name), begin[section]()), f"add {kind} {name}")
        return name

    def _add_body(self, parent: str) -> str:
        if parent != "world" and parent not in self._parts("bodies"):
            raise ArgumentError(unknown("there is no body", parent, ["world", *self._parts("bodies")]))
        name = self._free("bodies", "body")
        joint = self._free("joints", f"{name}_joint")
        inertia = {"rod": {"mass": 1, "start": [0, 0, 0], "end": [0, 0, -0.5]}}
        text = toml.put(self.text, ("bodies", name), {"inertia": inertia})
        values = {"type": "revolute", "axis": [0, 1, 0], "parent": parent, "child": name}
        tip = self._tip(parent)
        text = toml.put(text, ("joints", joint), values | ({"placement": tip} if tip else {}))
        self._become(text, f"add body {name}")
        return name

    def _add_joint(self, body: str) -> str:
        """For a body that has none."""
        name = self._free("joints", f"{body}_joint")
        values = {"type": "revolute", "axis": [0, 1, 0], "parent": "world", "child": body}
        self._become(toml.put(self.text, ("joints", name), values), f"add joint {name}")
        return name

    def _tip(self, parent: str) -> list[Any] | None:
        """Where a rod ends: the next body begins there."""
        end = toml.at(self.data, ("bodies", parent, "inertia", "rod", "end"))
        return list(end) if isinstance(end, list) else None

    def remove(self, section: str, name: str) -> list[str]:
        """A part, and all that cannot be without it; what went along."""
        check_known(f"there is no {_kind(section)}", name, self._parts(section))
        gone = self._dependent(section, name)
        text = self.text
        for place in gone:
            text = toml.remove(text, place)
        self._become(text, f"remove {_kind(section)} {name}")
        return [f"{_kind(str(place[0]))} {place[1]}" for place in gone[1:]]

    def _dependent(self, section: str, name: str) -> list[Place]:
        """Parts that name a part, and those that name them; a body and the joint that moves it go together."""
        found: list[Place] = []
        ahead: list[tuple[str, str]] = [(section, name)]
        while ahead:
            section, name = ahead.pop(0)
            if (section, name) in found:
                continue
            found.append((section, name))
            for user, key, part in self._users(section, name):
                if (user, key) != ("joints", "child") or section == "bodies":
                    ahead.append((user, part))
            if section == "joints":
                child = toml.at(self.data, ("joints", name, "child"))
                if isinstance(child, str) and child in self._parts("bodies"):
                    ahead.append(("bodies", child))
        return found

    def rename(self, section: str, name: str, to: str) -> None:
        """A part or a parameter, with all that names it."""
        parts, kind = self._parts(section), _kind(section)
        check_known(f"there is no {kind}", name, parts)
        if not to.strip():
            raise ArgumentError(f"a {kind} needs a name")
        if to in parts or (to == "world" and section in ("bodies", "frames")):
            raise ArgumentError(
                f"there is already a {kind} {to!r}" if to in parts else "'world' is a name of its own"
            )
        text = toml.rename(self.text, (section, name), to)
        data = tomllib.loads(text)
        for place, value in _leaves(data):
            new = self._renamed(section, name, to, place, value, data)
            if new != value:
                text = toml.put(text, place, new)
        self._become(text, f"rename {kind} {name}")

    def _renamed(self, section: str, name: str, to: str, place: Place, value: Any, data: Any) -> Any:
        """A text that names a part, with the new name."""
        if not isinstance(value, str) or len(place) < 2:
            return value
        key = next(str(k) for k in reversed(place) if not isinstance(k, int))
        if section == "parameters":
            formula = (
                place[0] in (*PARTS, "gravity", "visuals") and key not in _TEXTS and "inputs" not in place
            )
            return re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", to, value) if formula else value
        if place[0] == "equations" and "inputs" in place and section in _USERS:
            head, dot, rest = value.partition(".")
            return f"{to}{dot}{rest}" if head == name and self._is_meant(section, name, dot) else value
        if value == name and (place[0], key) in _USERS.get(section, ()):
            part = toml.at(data, place[:2])
            if place[0] == "sensors" and str(part.get("kind", "")).startswith("joint_") != (
                section == "joints"
            ):
                return value
            hidden = section == "bodies" and (place[0], key) in _FRAME_USERS and name in self._parts("frames")
            return value if hidden else to
        return value

    def _is_meant(self, section: str, name: str, dot: str) -> bool:
        """Whether an input of an equation names a joint, a frame or a body, as the model looks it up."""
        if section == "joints":
            return True
        return bool(dot) and name not in self._parts("joints")

    def _users(self, section: str, name: str) -> Iterator[tuple[str, str, str]]:
        for user, key in _USERS.get(section, ()):
            for part, table in self._parts(user).items():
                value = table.get(key) if isinstance(table, dict) else None
                if (value == name or (isinstance(value, list) and name in value)) and self._means(
                    user, table, section
                ):
                    yield user, key, part
        for part, table in self._parts("equations").items():
            inputs = table.get("inputs", {}) if isinstance(table, dict) else {}
            if any(str(x).partition(".")[0].removesuffix(DOT) == name for x in inputs.values()):
                yield "equations", "inputs", part

    def _means(self, user: str, table: dict[str, Any], section: str) -> bool:
        of_joint = str(table.get("kind", "")).startswith("joint_")
        return user != "sensors" or of_joint == (section == "joints")

    def move(self, body: str, shift: Sequence[float]) -> None:
        """The joint of a body, by a displacement in the axes of its parent."""
        joint = self._mover(body)
        if joint is None:
            raise ArgumentError(f"body {body!r} has no joint to be placed")
        place: Place = ("joints", joint, "placement")
        old = toml.at(self.data, place)
        if isinstance(old, dict):
            place, old = (*place, "translation"), old.get("translation", toml.MISSING)
        start = [0, 0, 0] if not isinstance(old, list) or len(old) != 3 else old
        new: list[Any] = []
        for entry, step in zip(start, shift, strict=True):
            if isinstance(entry, str) and step:
                raise ArgumentError(
                    f"joint {joint!r} stands at the formula {entry!r}, which dragging would replace; change it in the form"
                )
            new.append(float(f"{entry + step:.9g}") if step else entry)
        self._become(toml.put(self.text, place, new), f"place {body}")

    def _mover(self, body: str) -> str | None:
        return next(
            (
                name
                for name, t in self._parts("joints").items()
                if isinstance(t, dict) and t.get("child") == body
            ),
            None,
        )

    def _parts(self, section: str) -> dict[str, Any]:
        found = self.data.get(section)
        return found if isinstance(found, dict) else {}

    def _first(self, section: str, index: int = 0) -> str:
        names = list(self._parts(section))
        return names[index] if names else ""

    def _free(self, section: str, name: str) -> str:
        taken = self._parts(section)
        if section in ("bodies", "frames"):
            taken = {**self._parts("bodies"), **self._parts("frames")}
        if name.endswith("_joint") and name not in taken:
            return name
        return next(f"{name}{k}" for k in range(1, len(taken) + 2) if f"{name}{k}" not in taken)

    # --- files --------------------------------------------------------------------------------------------------

    def save(self, name: str = "", *, over: bool = False) -> Path:
        """Write the file, under another name of its folder where one is given.

        A file that another program has changed meanwhile, or that is there already, is written over only with `over`.
        """
        path = self.path
        if name:
            if Path(name).name != name or Path(name).suffix.lower() != ".toml":
                raise ArgumentError(
                    f"{name!r} is no name for a model file, expected one that ends with .toml, without a folder"
                )
            path = (self.path.parent if self.path else Path()) / name
        if path is None:
            raise ArgumentError("this model has no file yet; give it a name that ends with .toml")
        known = self.saved if path == self.path else None
        with writing(path):
            there = path.exists()
        if there and not over and read_text(path, toml.LARGEST) != known:
            what = "was changed by another program" if known is not None else "is there already"
            raise FileError(f"{path.name} {what}; save under another name, or write over it")
        with writing(path):
            write_whole(path, self.mark + self.text.encode())
        self.path, self.saved = path, self.text
        return path


# --- pieces -------------------------------------------------------------------------------------------------


def _kind(section: str) -> str:
    kinds = {"parameters": "parameter", **{name: kind for name, (kind, _) in PARTS.items()}}
    check_known("a model has no section", section, kinds)
    return kinds[section]


def _place(given: Any) -> Place:
    fine = (
        isinstance(given, list)
        and given
        and all(isinstance(k, (str, int)) and not isinstance(k, bool) for k in given)
    )
    if not fine:
        raise ArgumentError(f"place is {given!r}, expected a list of keys")
    return tuple(given)


def _value(change: Mapping[str, Any]) -> Any:
    if "typed" in change:
        return typed(change["typed"])
    if "toml" in change:
        try:
            return tomllib.loads(f"x = {str(change['toml']).strip()}")["x"]
        except tomllib.TOMLDecodeError as error:
            raise ArgumentError(f"not valid TOML: {error}") from None
        except RecursionError:
            raise ArgumentError("not valid TOML: tables and lists are nested without end") from None
    return change["value"]


def typed(given: Any) -> Any:
    """What a user typed into fields of numbers: a number where it reads as one, else a formula."""
    if isinstance(given, dict):
        return {key: typed(entry) for key, entry in given.items()}
    if isinstance(given, list):
        return [typed(entry) for entry in given]
    if not isinstance(given, str):
        return given
    text = given.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return text if math.isnan(number) else number


def _equal(old: Any, new: Any) -> bool:
    """The same number, whether written 1 or 1.0."""
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (old, new))
    return bool(old == new) and (numbers or type(old) is type(new))


def _leaves(data: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if entries is None:
        yield place, data
        return
    for key, entry in list(entries):
        yield from _leaves(entry, (*place, key))


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
    for entry in dataclasses.fields(part):
        value = getattr(part, entry.name)
        if entry.name in omit or repr(value) == repr(entry.default):
            continue
        if isinstance(value, Placement):
            found.append(f"{entry.name}={_placement(value, given.get(entry.name))}")
        else:
            found.append(f"{entry.name}={_code(value)}")
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
