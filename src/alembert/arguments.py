"""Reading what users give: numbers, mappings, names, choices. What is refused is an `ArgumentError` that says what came.

Wrong types are told from the annotations of functions (`tell_wrong_types`). A call that fails with an error of Python's is
looked at again: an argument that is not what its annotation says is named. Calls that succeed are not looked at, so nothing
that works is refused. Checks of values, which know more than a type, stay in the functions.

`make_callable` makes a package one that can be called: `al.identify(model, data)` next to `al.identify.Measurements`.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np

from alembert.errors import AlembertError, ArgumentError, NumericalError

Array = np.ndarray
_Class = TypeVar("_Class")
Numbers: TypeAlias = Any
"""a number, a list or an array of numbers: what `np.asarray` makes floats of"""
Vector: TypeAlias = Any
"""three numbers"""
MOST_DIMENSIONS = 32
"""of an array; NumPy broadcasts no more"""


_OTHER_WORDS = {
    **dict.fromkeys(("hinge", "continuous", "pin"), "revolute"),
    **dict.fromkeys(("slide", "slider"), "prismatic"),
    **dict.fromkeys(("weld", "welded"), "fixed"),
    **dict.fromkeys(("floating", "freejoint", "free_flyer", "6dof"), "free"),
    "ball": "spherical",
    **dict.fromkeys(("ode45", "ode23", "solve_ivp"), "rk45"),
    **dict.fromkeys(("ode78", "ode89", "ode113"), "dop853"),
    **dict.fromkeys(("ode23s", "ode23t", "ode23tb"), "radau"),
    **dict.fromkeys(("ode15s", "ode15i", "lsoda", "bdf"), "cvode"),
}
"""what other programs say: joint types, integrators"""


def unknown(sentence: str, name: Any, known: Iterable[str]) -> str:
    """`sentence 'name'; did you mean 'x'?`, or the names there are."""
    names = list(dict.fromkeys(str(entry) for entry in known))
    folded = {entry.casefold(): entry for entry in names}
    said = _OTHER_WORDS.get(str(name).casefold())
    close = [said] if said in names else difflib.get_close_matches(str(name), names, n=1)
    close = close or [folded[entry] for entry in difflib.get_close_matches(str(name).casefold(), folded, n=1)]
    if close:
        return f"{sentence} {name!r}; did you mean {close[0]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"{sentence} {name!r}; there is {shown or 'none'}"


def check_known(sentence: str, name: Any, known: Iterable[Any]) -> None:
    """Refuse a name that is none of those there are, with the sentence of `unknown`."""
    if name not in known:
        raise ArgumentError(unknown(sentence, name, known))


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
    if inspect.isroutine(value):
        return "; a function of time and state is given as controller="
    return "; they are its .q and .v" if hasattr(value, "q") and hasattr(value, "v") else ""


def told_elsewhere(places: Mapping[str, str]) -> Callable[[type[_Class]], type[_Class]]:
    """A decorator of a class: names that users look for in it, and what to write instead.

    It serves attributes that are not there alone; one that is there and fails keeps its own error.
    """

    def decorated(found: type[_Class]) -> type[_Class]:
        def look(self: Any, name: str) -> Any:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)
            hint = f"; it is {places[name]}" if name in places else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message, name=name, obj=self)

        setattr(found, "__getattr__", look)  # noqa: B010  (types know only what there is)
        return found

    return decorated


def check_takes(sentence: str, function: Any, *given: str) -> None:
    """Refuse a user's function that cannot be called with what it is given; those that do not say what they take pass."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given)
    except TypeError:
        raise ArgumentError(
            f"{sentence} takes {signature}, expected a function of {', '.join(given)}"
        ) from None


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is one finite real number."""
    x = np.asarray(value) if isinstance(value, int | float | np.number | np.ndarray) else None
    return x is not None and not x.ndim and x.dtype.kind in "fiu" and math.isfinite(x)


def real(
    function: str,
    what: str,
    value: Any,
    expected: str,
    *,
    over: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    """A finite number above `over`, from `least` to `most`."""
    if not (is_number(value) and value > over and least <= value <= most):
        raise ArgumentError(f"{function}: {what} is {value!r}, expected {expected}")
    return float(value)


def whole(
    function: str, what: str, value: Any, expected: str, *, least: int = 1, most: float = math.inf
) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ArgumentError(f"{function}: {what} is {value!r}, expected {expected}")
    return int(value)


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


def names(function: str, what: str, value: Any, *, or_one: bool = False) -> tuple[str, ...]:
    """A list of names, or one name where that may be."""
    if or_one and isinstance(value, str):
        return (value,)
    found = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else (None,)
    if not all(isinstance(name, str) for name in found):
        raise ArgumentError(f"{function}: {what} is {value!r}, expected a list of names")
    return found


def choice(function: str, what: str, value: Any, options: Sequence[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in options:
        known = [repr(option) for option in options]
        expected = " or ".join(known) if len(known) == 2 else f"one of {', '.join(known)}"
        raise ArgumentError(f"{function}: {what} is {value!r}, expected {expected}")
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


# --- wrong types ----------------------------------------------------------------------------------------------------

_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "True or False",
    "str": "a text",
    "Numbers": "numbers",
    "Array": "numbers",
    "Vector": "three numbers",
    "None": "None",
}
_LISTS = ("Sequence", "Iterable", "tuple", "list")
_MANY = {"float": "numbers", "str": "names", "int": "whole numbers", "Any": "them"}
_EXPRESSIONS = ("alembert.expression", "casadi.")
_READ = ("StateSpace",)
"""what functions read from other things as well, and tell themselves"""
_PATHS = ("Path", "PathLike", "os.PathLike")


def tell_wrong_types(package: str) -> None:
    """For all functions and classes of a package: called at the end of its `__init__`."""
    space = vars(sys.modules[package])
    for name, found in list(space.items()):
        if not str(getattr(found, "__module__", "")).startswith(f"{package}.") or name.startswith("_"):
            continue
        if isinstance(found, type):
            tell_wrong_types_in(found)
        elif inspect.isfunction(found):
            space[name] = _telling(found, name)
            space[name].__module__ = package  # where it is found again, by pickle


def tell_wrong_types_in(found: type) -> None:
    """In the construction of a class and those of its public methods that take something."""
    for name, member in list(vars(found).items()):
        if name == "__init__":
            setattr(found, name, _telling(member, found.__name__))
        elif name.startswith("_"):
            continue
        elif isinstance(member, classmethod | staticmethod):
            setattr(found, name, type(member)(_telling(member.__func__, name)))
        elif inspect.isfunction(member) and len(inspect.signature(member).parameters) > 1:
            setattr(found, name, _telling(member, name))


def _telling(function: Any, label: str) -> Any:
    @functools.wraps(function)
    def told(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except AlembertError:
            raise
        except Exception as error:
            if isinstance(error, TypeError) and not _binds(function, args, keywords):
                error.add_note(f"{label} takes {_called(function)}")  # Python's own sentence says the rest
                raise
            wrong = _wrong(function, args, keywords)
            if wrong:
                raise ArgumentError(f"{label}: {wrong}") from error
            if isinstance(error, OverflowError):
                raise NumericalError(
                    f"{label}: numbers overflow; look at the units of what is given"
                ) from error
            raise

    return told


def _binds(function: Any, args: Any, keywords: Any) -> bool:
    try:
        inspect.signature(function).bind(*args, **keywords)
    except TypeError:
        return False
    return True


def _called(function: Any) -> str:
    """The arguments of a function, as they are to be given."""
    plain, by_name = [], []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind == parameter.KEYWORD_ONLY:
            by_name.append(f"{name}=")
        elif name not in ("self", "cls") and parameter.kind != parameter.VAR_KEYWORD:
            plain.append(name)
    return " and by name ".join(filter(None, (", ".join(plain), ", ".join(by_name)))) or "nothing"


def _wrong(function: Any, args: Any, keywords: Any) -> str:
    """The first argument that is not what its annotation says, as a sentence."""
    signature = inspect.signature(function)
    for name, value in signature.bind(*args, **keywords).arguments.items():
        parameter = signature.parameters[name]
        text = parameter.annotation if isinstance(parameter.annotation, str) else ""
        plain = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if plain and value is not parameter.default and not _fits(value, text):
            shown = repr(value)
            came = f"is {shown}" if len(shown) <= 200 else f"has type {type(value).__name__!r}"
            return f"{name} {came}, expected {_words(text)}"
    return ""


def _fits(value: Any, text: str) -> bool:
    """Whether a value is what an annotation says; true where that is not known."""
    either = _split(text, "|")
    if len(either) > 1:
        return any(_fits(value, one) for one in either)
    outer, _, inner = text.removesuffix("]").partition("[")
    if text == "None":
        return value is None
    if text == "float":
        x = np.asarray(value) if isinstance(value, int | float | np.number | np.ndarray) else np.asarray(None)
        return not x.ndim and x.dtype.kind in "fiu" and not math.isnan(x)
    if text == "int":
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if text in ("bool", "str"):
        return isinstance(value, (bool, np.bool_) if text == "bool" else str)
    if text in ("Numbers", "Array"):
        return _are_numbers(value)
    if text == "Vector":
        return _are_numbers(value) and np.shape(value) == (3,)
    if outer in _PATHS:
        return isinstance(value, os.PathLike)
    if outer in ("Callable", "Mapping", "dict"):
        return callable(value) if outer == "Callable" else isinstance(value, Mapping)
    if outer in _LISTS:
        each = _split(inner, ",")
        fixed = outer == "tuple" and each[-1] != "..."
        return (
            _is_list(value)
            and all(_fits(entry, each[0]) for entry in value)
            and not (fixed and len(value) != len(each))
        )
    known = () if outer in _READ else _classes(outer.rpartition(".")[2])
    return not known or isinstance(value, known)


def _are_numbers(value: Any) -> bool:
    """Numbers, side by side; formulas and expressions count as such."""
    if type(value).__module__.startswith(_EXPRESSIONS):
        return True
    try:
        entries = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        return False
    if entries.dtype.kind != "O":
        return entries.dtype.kind in "fiub" and not np.isnan(entries.astype(float)).any()
    return all(_fits(x, "float") or type(x).__module__.startswith(_EXPRESSIONS) for x in entries.ravel())


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray) and not value.ndim:
        return False
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _words(text: str) -> str:
    either = _split(text, "|")
    if len(either) > 1:
        return " or ".join(_words(one) for one in either)
    outer, _, inner = text.removesuffix("]").partition("[")
    if outer in _LISTS:
        each = _split(inner, ",")
        many = f"{len(each)} " if outer == "tuple" and each[-1] != "..." else ""
        return f"a list of {many}{_MANY.get(each[0], each[0])}"
    if outer in ("Mapping", "dict"):
        return "a mapping"
    if outer in _PATHS:
        return "a path"
    return "a function" if outer == "Callable" else _WORDS.get(text, f"a {text.rpartition('.')[2]}")


def _split(text: str, at: str) -> list[str]:
    """The parts of an annotation, but for what is in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == at and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _classes(name: str) -> tuple[type, ...]:
    """Classes of ours by their name; an annotation may name one that its module does not import."""
    ours = [module for key, module in list(sys.modules.items()) if key.startswith("alembert.")]
    found = [x for module in ours if isinstance(x := vars(module).get(name), type)]
    return tuple(x for x in found if x.__module__.startswith("alembert.") and not _is_protocol(x))


def _is_protocol(found: type) -> bool:
    return bool(getattr(found, "_is_protocol", False))


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let a call of the package `name` be a call of `function`, its main one, and `help` begin with its arguments."""

    class CallableModule(ModuleType):
        __call__ = staticmethod(function)
        __signature__ = property(lambda self: inspect.signature(function))

    first, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n")
    package = sys.modules[name]
    package.__doc__ = "\n".join([first, "", _call(function), rest]).rstrip()
    package.__class__ = CallableModule


def _call(function: Callable[..., Any]) -> str:
    """The signature as text, an argument to a line."""
    lines, keywords = [f"{function.__name__}("], False
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            lines.append("    *,")
            keywords = True
        lines.append(f"    {parameter},")
    return "\n".join([*lines, f") -> {signature.return_annotation}"])
