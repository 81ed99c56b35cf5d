"""What the user gives to `model.symbolic`: expressions or numbers, checked as arrays are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.engine.kernel import Argument
from alembert.errors import ArgumentError
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.model import Model


def parameter_column(function: str, model: Model, parameters: Any) -> Any:
    """All parameters as a column; None where the model has none."""
    if not model.parameters:
        if parameters is not None and not (isinstance(parameters, Mapping) and not parameters):
            raise ArgumentError(f"{function}: parameters are given, but the model has none")
        return None
    if parameters is None:
        return model.compute.parameter_defaults
    if not isinstance(parameters, Mapping):
        return parameters
    for key in parameters:
        if key not in model.parameter_values:
            raise ArgumentError(unknown(f"{function}: no parameter", key, model.parameter_values))
    entries = [(key, slice(k, k + 1)) for k, key in enumerate(model.parameter_values) if key in parameters]
    given = [(f"parameter {key!r}", s, parameters[key]) for key, s in entries]
    return joined(function, given, list(model.parameter_values.values()))


def joined(function: str, entries: Sequence[tuple[str, slice, Any]], otherwise: Sequence[float]) -> Any:
    """A column with values given for parts of it, and the others as in `otherwise`."""
    parts: list[Any] = [float(x) for x in otherwise]
    known = {}
    for what, s, value in entries:
        width = s.stop - s.start
        several = isinstance(value, list | tuple) or getattr(value, "shape", ()) not in ((), (1, 1))
        scalar = width == 1 and not several
        column = _expression(function, Argument(what, () if scalar else (width,)), value)
        known[what] = column
        parts[s] = [column[k] for k in range(width)]
    check_one_kind(function, known)
    return ca.vertcat(*parts) if parts else np.zeros(0)


def checked(function: str, expected: Sequence[Argument], given: Sequence[Any]) -> list[Any]:
    """Expressions or numbers of the expected shapes: CasADi itself would repeat scalars and turn rows."""
    values = [_expression(function, a, x) for a, x in zip(expected, given, strict=True)]
    check_one_kind(function, {a.name: x for a, x in zip(expected, values, strict=True)})
    return values


def check_one_kind(function: str, given: Mapping[str, Any]) -> None:
    kinds = {type(x): name for name, x in given.items() if isinstance(x, ca.SX | ca.MX)}
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind.__name__}" for kind, name in kinds.items())
        raise ArgumentError(f"{function}: {listed}; expected expressions of one kind")


def _expression(function: str, argument: Argument, given: Any) -> Any:
    value = given
    if isinstance(given, list | tuple) and any(isinstance(x, ca.SX | ca.MX | ca.DM) for x in given):
        try:
            value = ca.vertcat(*given)
        except (NotImplementedError, RuntimeError, TypeError):
            value = None
    if not isinstance(value, ca.SX | ca.MX | ca.DM):
        try:
            value = np.asarray(value)
        except (TypeError, ValueError):
            value = np.asarray(None)
        if value.dtype.kind not in "fiub":
            raise ArgumentError(
                f"{function}: {argument.name} is {given!r}, expected numbers or a CasADi expression"
            )
    columns = (*argument.shape, 1, 1)[:2]
    empty = not argument.size and 0 in value.shape
    if value.shape not in (argument.shape, columns) and not empty:
        hint = f"; {argument.hint}" if argument.hint else ""
        raise ArgumentError(
            f"{function}: {argument.name} has shape {value.shape}, expected {argument.shape}{hint}"
        )
    if empty:
        return ca.DM(*columns)
    return ca.DM(np.atleast_1d(value.astype(float))) if isinstance(value, np.ndarray) else value
