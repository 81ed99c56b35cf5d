"""Reading what users give: numbers, mappings, names, choices. What is refused is an `ArgumentError` that says what came."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from alembert.errors import ArgumentError

Array = np.ndarray
MOST_DIMENSIONS = 32
"""of an array; NumPy broadcasts no more"""


def unknown(sentence: str, name: Any, known: Iterable[str]) -> str:
    """`sentence 'name'; did you mean 'x'?`, or the names there are."""
    names = list(dict.fromkeys(str(entry) for entry in known))
    folded = {entry.casefold(): entry for entry in names}
    close = difflib.get_close_matches(str(name), names, n=1) or [
        folded[entry] for entry in difflib.get_close_matches(str(name).casefold(), folded, n=1)
    ]
    if close:
        return f"{sentence} {name!r}; did you mean {close[0]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"{sentence} {name!r}; there is {shown or 'none'}"


def numbers(
    function: str, what: str, value: Any, width: int = 0, hint: str = "", *, batch: bool = True
) -> Array:
    """An array of real numbers, (..., width) unless width is 0."""
    try:
        x = np.asarray(value)
    except (TypeError, ValueError):
        x = np.asarray(None)
    if x.dtype.kind not in "fiub":
        raise ArgumentError(f"{function}: {what} is {value!r}, expected numbers{where_numbers_are(value)}")
    x = x.astype(float, copy=False)
    if width and (x.ndim == 0 or x.shape[-1] != width or (x.ndim > 1 and not batch)):
        expected = f"(..., {width})" if batch else f"({width},)"
        raise ArgumentError(f"{function}: {what} has shape {x.shape}, expected {expected}{hint}")
    if x.ndim > MOST_DIMENSIONS:
        raise ArgumentError(f"{function}: {what} has {x.ndim} dimensions, more than {MOST_DIMENSIONS}")
    return x


def where_numbers_are(value: Any) -> str:
    """What to do with a value that holds no numbers itself, for the end of a message; empty where nothing is known."""
    if isinstance(value, Mapping):
        return "; model.configuration(...) and model.velocity(...) make them of names"
    return "; they are its .q and .v" if hasattr(value, "q") and hasattr(value, "v") else ""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is one finite real number."""
    x = np.asarray(value) if isinstance(value, int | float | np.number | np.ndarray) else None
    return x is not None and not x.ndim and x.dtype.kind in "fiu" and math.isfinite(x)


def positive(function: str, what: str, value: Any) -> float:
    """A finite number greater than zero."""
    if type(value) is float and 0.0 < value < math.inf:  # all but always
        return value
    x = numbers(function, what, value)
    if x.ndim or not 0 < x < math.inf:
        raise ArgumentError(f"{function}: {what} is {value!r}, expected a positive number")
    return float(x)


def mapping(function: str, what: str, value: Any) -> Mapping[str, Any]:
    """A mapping from names; empty for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{function}: {what} is {value!r}, expected a mapping from names to arrays")
    return value


def names(function: str, what: str, value: Any) -> tuple[str, ...]:
    """A list of names."""
    listed = isinstance(value, Sequence | set | frozenset | np.ndarray) and not isinstance(value, str)
    if not listed or not all(isinstance(name, str) for name in value):
        raise ArgumentError(f"{function}: {what} is {value!r}, expected a list of names")
    return tuple(value)


def choice(function: str, what: str, value: Any, options: Sequence[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in options:
        raise ArgumentError(
            f"{function}: {what} is {value!r}, expected one of {', '.join(map(repr, options))}"
        )
    return value


def common(function: str, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[int, ...]:
    """The batch shape of several arrays."""
    try:
        return np.broadcast_shapes(*(shape for _, shape in shapes))
    except (ValueError, RuntimeError):  # the latter: more dimensions than NumPy broadcasts
        listed = ", ".join(f"{what} {shape}" for what, shape in shapes if shape)
        raise ArgumentError(f"{function}: the batch dimensions do not go together: {listed}") from None


def into(function: str, found: Array, out: Array | None) -> Array:
    """A result, written into the array that the user gave for it."""
    if out is None:
        return found
    if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.flags.writeable):
        raise ArgumentError(
            f"{function}: out is {type(out).__name__}, expected a NumPy array of float64 to write into"
        )
    if np.shape(out) != found.shape:
        raise ArgumentError(f"{function}: out has shape {np.shape(out)}, expected {found.shape}")
    out[...] = found
    return out
