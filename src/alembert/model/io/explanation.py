"""What pydantic refuses, as sentences with their place in a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from alembert.errors import ModelError
from alembert.model.io.location import Place
from alembert.model.io.schema import UnknownKeyError, described
from alembert.model.printing import unknown

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
