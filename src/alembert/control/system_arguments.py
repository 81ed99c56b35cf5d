"""Arguments that are systems: what functions of `alembert.control` take for a StateSpace, and what they refuse."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from alembert.control import arguments
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError

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
        D = arguments.matrix(function, name, given)
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
