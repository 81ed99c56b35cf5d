"""Reading of arguments, numbers and systems; refusals say what came and what was expected."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from alembert.arguments import check_known, real
from alembert.errors import ArgumentError

Array = np.ndarray


def numbers(function: str, name: str, value: Any) -> Array:
    """Finite real numbers."""
    try:
        x = np.asarray(value)
        if x.dtype.kind in "USM":
            raise TypeError
        x = x.real if np.iscomplexobj(x) and not np.any(x.imag) else x
        x = x.astype(float, casting="same_kind" if np.iscomplexobj(x) else "unsafe")
    except (TypeError, ValueError):
        raise ArgumentError(f"{function}: {name} is {value!r}, expected real numbers") from None
    if not np.all(np.isfinite(x)):
        raise ArgumentError(f"{function}: {name} has entries that are not finite")
    return x


def complex_numbers(function: str, name: str, value: Any) -> Array:
    """Finite ones."""
    try:
        x = np.asarray(value, dtype=complex)
    except (TypeError, ValueError):
        raise ArgumentError(f"{function}: {name} is {value!r}, expected numbers") from None
    if not np.all(np.isfinite(x)):
        raise ArgumentError(f"{function}: {name} has entries that are not finite")
    return x


def relative(function: str, value: Any) -> None:
    """A tolerance."""
    real(function, "tolerance", value, "a relative error above zero, 1 at most", over=0.0, most=1.0)


def matrix(
    function: str, name: str, value: Any, rows: int | None = None, columns: int | None = None
) -> Array:
    """A matrix; a number is 1 x 1, a vector fits as a row or as a column where only one of them does."""
    x = numbers(function, name, value)
    if x.ndim == 0:
        x = x.reshape(1, 1)
    if x.ndim == 1:
        x = x[None, :] if (columns == len(x) and rows in (None, 1)) or rows == 1 else x[:, None]
        if x.size == 0:
            x = np.zeros((rows or 0, columns or 0))
    if x.ndim != 2 or rows not in (None, x.shape[0]) or columns not in (None, x.shape[1]):
        expected = f"({'any' if rows is None else rows}, {'any' if columns is None else columns})"
        raise ArgumentError(f"{function}: {name} has shape {np.shape(value)}, expected {expected}")
    return x


def weight(function: str, name: str, value: Any, signals: Sequence[str], *, definite: bool = False) -> Array:
    """A symmetric, positive semidefinite matrix: given as such, as its diagonal, or as one number."""
    n = len(signals)
    x = numbers(function, name, value)
    if x.shape in ((), (1,), (n,)):
        diagonal = np.broadcast_to(x, (n,))
        x = np.diag(diagonal)
        _definite(function, name, diagonal.min(initial=np.inf), diagonal.max(initial=0.0), definite)
        return x
    if x.shape == (n, n) and not np.allclose(x, x.T, rtol=1e-9, atol=1e-12 * np.abs(x).max(initial=0.0)):
        raise ArgumentError(
            f"{function}: {name} differs from its transpose by {np.abs(x - x.T).max():.4g}, expected a symmetric matrix for "
            f"{', '.join(signals)}"
        )
    if x.shape != (n, n):
        raise ArgumentError(
            f"{function}: {name} has shape {np.shape(value)}, expected a number, {n} numbers or a symmetric matrix "
            f"({n}, {n}) for {', '.join(signals)}"
        )
    x = (x + x.T) / 2
    least, most = np.linalg.eigvalsh(x)[[0, -1]] if n else (1.0, 1.0)
    _definite(function, name, least, most, definite)
    return x


def _definite(function: str, name: str, least: float, most: float, definite: bool) -> None:
    if least < -1e-12 * max(abs(most), abs(least)) or (definite and least <= 0):
        wanted = "a positive definite matrix" if definite else "none below zero"
        raise ArgumentError(f"{function}: {name} has the eigenvalue {least:.4g}, expected {wanted}")


def process_noise(function: str, plant: Any, process: Any, through: Any) -> tuple[Array, Array]:
    """(G, W) of x' = A x + B u + G w, E w w^T = W; the noise comes in with the inputs, G = B, where `through` is None."""
    G = plant.B if through is None else matrix(function, "through", through, rows=plant.order)
    return G, weight(function, "process", process, [f"w{k}" for k in range(G.shape[1])])


def square(function: str, name: str, value: Any) -> Array:
    x = matrix(function, name, value)
    if x.shape[0] != x.shape[1]:
        raise ArgumentError(f"{function}: {name} has shape {x.shape}, expected a square matrix")
    return x


def frequencies(function: str, value: Any) -> Array:
    """In rad/s, one or more."""
    return np.atleast_1d(numbers(function, "frequency", value)).ravel()


def names(function: str, argument: str, value: Any, count: int, letter: str) -> tuple[str, ...]:
    """Names of signals: `letter` and a number where none were given, different from each other."""
    if value is None:
        return tuple(f"{letter}{k}" for k in range(count))
    found = _texts(value)
    if len(found) != count or not all(isinstance(name, str) for name in found):
        raise ArgumentError(f"{function}: {argument} is {value!r}, expected {count} names")
    if len(set(found)) < count:
        twice = next(name for name in found if found.count(name) > 1)
        raise ArgumentError(f"{function}: {argument} has {twice!r} twice")
    return found


def units(function: str, argument: str, value: Any, count: int) -> tuple[str, ...]:
    """Units of signals; empty ones are not known, and are not compared."""
    if value is None:
        return ("",) * count
    found = _texts(value)
    if len(found) != count or not all(isinstance(name, str) for name in found):
        raise ArgumentError(f"{function}: {argument} is {value!r}, expected {count} units")
    return found


def _texts(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def picked(function: str, argument: str, known: Sequence[str], value: Any) -> list[int]:
    """Indices of signals given by name, number, slice, or a list of names and numbers."""
    if value is None:
        return list(range(len(known)))
    if isinstance(value, slice):
        return list(range(len(known)))[value]
    entries = list(_texts(value))
    found = []
    for entry in entries:
        if isinstance(entry, str):
            check_known(f"{function}: {argument}: there is no", entry, known)
            found.append(known.index(entry))
        elif isinstance(entry, (int, np.integer)) and -len(known) <= entry < len(known):
            found.append(int(entry) % len(known))
        else:
            raise ArgumentError(
                f"{function}: {argument} has {entry!r}, expected a name or a number below {len(known)}"
            )
    return found


def distinct(given: Iterable[str]) -> tuple[str, ...]:
    """The same names, with a number behind those that come again."""
    found: list[str] = []
    for name in given:
        candidate, count = name, 2
        while candidate in found:
            candidate, count = f"{name}_{count}", count + 1
        found.append(candidate)
    return tuple(found)


_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def takes_systems(
    *, gains: bool = False, uncertain: bool = False
) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """For functions of systems: arguments that are annotated as StateSpace may be anything that has `to_statespace()`, such
    as a linear model of a mechanism, with `gains` numbers and matrices, and with `uncertain` systems that have elements;
    others are refused."""

    def reading(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        parameters = inspect.signature(function).parameters
        systems = {k for k, p in parameters.items() if str(p.annotation) == "StateSpace"}
        names = list(parameters)
        listed = bool(parameters) and parameters[names[0]].kind is inspect.Parameter.VAR_POSITIONAL

        @functools.wraps(function)
        def read(*args: Any, **keywords: Any) -> _Result:
            named = [names[0]] * len(args) if listed else names
            args = tuple(
                read_system(function.__name__, name, x, gains, uncertain) if name in systems else x
                for name, x in zip(named + [""] * len(args), args, strict=False)
            )
            keywords = {
                k: read_system(function.__name__, k, x, gains, uncertain) if k in systems else x
                for k, x in keywords.items()
            }
            return function(*args, **keywords)

        return read

    return reading


def read_system(function: str, name: str, given: Any, gains: bool = False, uncertain: bool = False) -> Any:
    """One argument of `takes_systems`."""
    from alembert.control.statespace import StateSpace

    if isinstance(given, StateSpace):
        return given
    if has_elements(given):
        if uncertain:
            return given.to_uncertain_system() if hasattr(given, "to_uncertain_system") else given
        raise ArgumentError(
            f"{function}: {name} has uncertain elements, expected a StateSpace; at(...) gives one for some of their values"
        )
    if hasattr(given, "to_statespace"):
        return given.to_statespace()
    plain = isinstance(given, (int, float, np.ndarray, np.number)) or _is_matrix(given)
    if gains and plain:
        D = matrix(function, name, given)
        return StateSpace(np.zeros((0, 0)), None, None, D)
    package = type(given).__module__.partition(".")[0]
    if plain:
        hint = "StateSpace(A, B, C, D) makes one of matrices, static(D) of a gain"
    elif package in ("control", "scipy"):
        hint = f"al.control.from_{package}(...) makes one"
    elif isinstance(given, (list, tuple)):
        hint = "give systems one by one"
    elif type(given).__name__ == "Model":
        hint = "al.linearize(model, q) makes one"
    elif type(given).__name__ == "LargeSystem":
        hint = "its reduced(order).system is one"
    else:
        hint = "al.control.tf(...), al.control.StateSpace(A, B, C, D) or al.linearize(model, q) make one"
    raise ArgumentError(
        f"{function}: {name} is of type {type(given).__name__}, expected a StateSpace; {hint}"
    )


def has_elements(*given: Any) -> bool:
    """Whether one of them is uncertain."""
    return any(getattr(x, "is_uncertain", False) or hasattr(x, "to_uncertain_system") for x in given)


def _is_matrix(given: Any) -> bool:
    entries = np.ravel(np.asarray(given, dtype=object)) if isinstance(given, (list, tuple)) else ["none"]
    return all(isinstance(x, (int, float)) for x in entries)
