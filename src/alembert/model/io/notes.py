"""What a loader keeps, changes or passes over, told in one warning per file; inertias that no body can have.

What pydantic refuses, as sentences with their place in a document.

How strings and numbers are written, alike in TOML and YAML.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError, ModelError, warn
from alembert.model.builder import ModelBuilder
from alembert.model.checking import massless_tips
from alembert.model.elements import Visual
from alembert.model.inertia import Inertia
from alembert.model.io.location import Place
from alembert.model.io.schema import UnknownKeyError, described
from alembert.model.model import Model

Kinds = Callable[[Place], Iterable[str]]
Refine = Callable[[Place, Any, str], Place]
"""the key inside a part that the message of a record talks about"""


def explanations(
    invalid: ValidationError, data: Any, *, kinds: Kinds, refine: Refine | None = None
) -> list[tuple[Place, str]]:
    """Place and sentence of every error; `kinds` gives what a `type` at a place may be."""
    errors = [(error, *_explained(error, data, kinds, refine)) for error in invalid.errors(include_url=False)]
    within = {place[:k] for _, place, _ in errors for k in range(len(place))}
    # a list with a bad entry is also reported as too short
    return [
        (place, what) for error, place, what in errors if error["type"] != "too_short" or place not in within
    ]


def _explained(error: Any, data: Any, kinds: Kinds, refine: Refine | None) -> tuple[Place, str]:
    place, value = walk(error["loc"], data)
    cause = error.get("ctx", {}).get("error")
    match error["type"]:
        case "value_error" if isinstance(cause, UnknownKeyError):
            return (*place, cause.key), str(cause)
        case "value_error":
            within_record = isinstance(cause, ModelError) and refine is not None
            return (refine(place, value, str(cause)) if refine and within_record else place), str(cause)
        case "missing":
            return (*place, error["loc"][-1]), "is missing"
        case "union_tag_not_found":
            return (*place, "type"), f"is missing, expected one of {', '.join(kinds(place))}"
        case "union_tag_invalid":
            return (*place, "type"), unknown("is", error["ctx"]["tag"], kinds(place))
        case "too_short" | "too_long":
            count = error["ctx"].get("min_length", error["ctx"].get("max_length"))
            return place, f"has {error['ctx']['actual_length']} entries, expected {count}"
        case kind:
            expected = _EXPECTED.get(kind) or error["msg"].removeprefix("Input should be ")
            if kind == "list_type" and isinstance(value, dict):
                expected += f" of tables: [[{'.'.join(map(str, place))}]] in TOML"
            return place, f"is {described(value)}, expected {expected}"


_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


def walk(loc: Iterable[str | int], data: Any) -> tuple[Place, Any]:
    """The part of `loc` that is in the data: the schema also names its own branches there."""
    place: Place = ()
    for key in loc:
        inside = (isinstance(data, dict) and key in data) or (
            isinstance(data, list) and isinstance(key, int) and key < len(data)
        )
        if inside:
            place, data = (*place, key), data[key]
    return place, data


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def is_word(text: str) -> bool:
    """Whether a key needs no quotes."""
    return _WORD.fullmatch(text) is not None


def quoted(text: str) -> str:
    """In double quotes, everything that does not print as an escape."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _code(c)) for c in text) + '"'


def _code(character: str) -> str:
    point = ord(character)
    if 0xD800 <= point < 0xE000:
        raise ModelError(f"a text holds {character!r}, half of a character, which no file can")
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def number(value: Any) -> str:
    """The shortest digits that read back to the same number, with a decimal point (YAML 1.1 wants one)."""
    if isinstance(value, (bool, int)):
        return str(value).lower()
    digits = repr(float(value))
    mantissa, e, exponent = digits.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else digits


UNPHYSICAL = "unphysical inertia kept (strict=True refuses it)"
LEFT_OUT = "not supported and left out; it changes the physics (strict=True refuses it)"
CHANGED = "read differently from what it says (strict=True refuses it)"
MESHES = "mesh files not found (package_dirs= says where packages are)"
UNREAD = "not read by Alembert"
_SHOWN = 12


class Notes:
    """Counts what a file has and a model does not; `warn` names each once, with the first place it was met."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[str, dict[str, tuple[int, int | None]]] = {
            heading: {} for heading in (UNPHYSICAL, CHANGED, LEFT_OUT, MESHES, UNREAD)
        }

    def add(self, what: str, line: int | None = None, heading: str = UNREAD) -> None:
        count, first = self._found[heading].get(what, (0, line))
        self._found[heading][what] = (count + 1, first)

    def warn(self) -> None:
        """One `AlembertWarning` with a line per heading, or none when there is nothing to say."""
        told = [f"{heading}: {_listed(found)}" for heading, found in self._found.items() if found]
        if told:
            warn(f"{self._file}: " + "\n  ".join(told))


def _listed(found: dict[str, tuple[int, int | None]]) -> str:
    parts = []
    for what, (count, line) in list(found.items())[:_SHOWN]:
        where = "" if line is None else f"line {line}"
        times = "" if count == 1 else f"{count} times" + (", first " if where else "")
        parts.append(f"{what} ({times}{where})" if times or where else what)
    if len(found) > _SHOWN:
        parts.append(f"and {len(found) - _SHOWN} more")
    return "; ".join(parts)


class InertiaFilter:
    """Gives the inertias of a file to the builder: bad ones are refused, or kept and noted.

    Without `keep`, an inertia that no body can have, or none at all on a moving body, is an error. With it, such a body
    is marked as `unphysical`; a negative mass is refused all the same.
    """

    def __init__(self, notes: Notes, *, keep: bool) -> None:
        self._notes, self._keep = notes, keep
        self._massless: dict[str, int | None] = {}

    def add_body(
        self,
        builder: ModelBuilder,
        name: str,
        inertia: Inertia,
        *,
        where: str,
        line: int | None = None,
        visuals: list[Visual] | None = None,
    ) -> None:
        """The body with its inertia, or a `FileError` at `where`."""
        problem = inertia.problem()
        if problem and (not self._keep or inertia.mass < 0):  # type: ignore[operator]
            hint = "" if inertia.mass < 0 else "; without strict=True it is kept, with a warning"  # type: ignore[operator]
            raise FileError(f"{where}: body {name!r}: {problem}{hint}")
        if problem:
            self._notes.add(f"body {name!r}: {problem}", line, UNPHYSICAL)
        elif self._keep and inertia.mass == 0:
            self._massless[name] = line
        builder.body(name, inertia, visuals=visuals or (), unphysical=bool(problem) or name in self._massless)

    def build(self, builder: ModelBuilder) -> Model:
        """The model, in which only those bodies without mass are marked that a joint cannot move."""
        model = builder.build()
        tips = massless_tips(model)
        for name, line in self._massless.items():
            if name in tips:
                self._notes.add(tips[name], line, UNPHYSICAL)
        bodies = (
            dataclasses.replace(body, unphysical=False)
            if body.name in self._massless and body.name not in tips
            else body
            for body in model.bodies
        )
        return dataclasses.replace(model, bodies=tuple(bodies)) if self._massless else model


def keeps(option: str | None, name: str, strict: bool, lenient: str) -> bool:
    """Whether an option such as unphysical="warn" asks for leniency; None: as `strict` says."""
    if option not in (None, "error", lenient):
        raise ArgumentError(f"{name} is {option!r}, expected 'error' or {lenient!r}")
    return not strict if option is None else option == lenient
