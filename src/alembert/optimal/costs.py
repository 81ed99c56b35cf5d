"""What is to be made small: terms that add up.

effort() + 0.1 * duration()
terminal(lambda s: -s.velocity("hand")[1])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.optimal.plant import Moment, numpy_functions

Term = Callable[[Moment], Any]


@dataclass(frozen=True)
class Cost:
    """J = integral of the `running` terms over time + the `terminal` terms at the end."""

    running: tuple[Term, ...] = ()
    terminal: tuple[Term, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.running + other.running, self.terminal + other.terminal)

    def __mul__(self, factor: float) -> Cost:
        _factor("cost", "factor", factor)
        scaled = [tuple(_scaled(f, float(factor)) for f in terms) for terms in (self.running, self.terminal)]
        return Cost(*scaled)

    __rmul__ = __mul__

    def rate(self, s: Moment) -> ca.SX:
        """The running terms together."""
        return _total("running", self.running, s)

    def final(self, s: Moment) -> ca.SX:
        """The terminal terms together."""
        return _total("terminal", self.terminal, s)


def running(term: Term) -> Cost:
    """The integral of `term(s)` over time; see `Moment` for what s offers."""
    return Cost(running=(_callable("running", term),))


def terminal(term: Term) -> Cost:
    """`term(s)` at the end."""
    return Cost(terminal=(_callable("terminal", term),))


def effort(weight: float | Mapping[str, float] = 1.0) -> Cost:
    """Half the integral of the squares of the controls; `weight` is one number, or one for some controls by name."""

    for value in weight.values() if isinstance(weight, Mapping) else (weight,):
        _factor("effort", "weight", value)
        if value < 0:
            raise ArgumentError(f"effort: weight is {value!r}, expected 0 or more: effort is made small")

    def term(s: Moment) -> ca.SX:
        if not isinstance(weight, Mapping):
            return float(weight) / 2 * ca.sumsqr(s.controls)
        names = s._controls
        unknown = [name for name in weight if name not in names]
        if unknown:
            raise ArgumentError(
                f"effort: there is no control {unknown[0]!r}; controls are {', '.join(names)}"
            )
        return sum(float(w) / 2 * s.controls[names.index(name)] ** 2 for name, w in weight.items())

    return Cost(running=(term,))


def duration(weight: float = 1.0) -> Cost:
    """The time that the motion takes."""
    _factor("duration", "weight", weight)
    return Cost(terminal=(lambda s: float(weight) * s.duration,))


def final_momentum(frame: str, direction: Any, mass: float = 1.0) -> Cost:
    """Less the momentum along `direction` of a point mass [kg] at a frame's origin at the end: it becomes large.

    `direction` is a vector in the world, whose length does not count.
    """
    along = np.asarray(direction, dtype=float)
    length = np.linalg.norm(along) if along.shape == (3,) else np.nan
    if not (np.isfinite(length) and length > 0):
        raise ArgumentError(f"final_momentum: direction is {direction!r}, expected three numbers, not all 0")
    if not (np.isfinite(mass) and mass > 0):
        raise ArgumentError(f"final_momentum: mass is {mass!r}, expected a positive number [kg]")
    return Cost(terminal=(lambda s: -float(mass) * ca.dot(ca.SX(along / length), s.velocity(frame)),))


def tracking(
    q: Callable[[Any], Any] | None = None,
    v: Callable[[Any], Any] | None = None,
    *,
    q_weight: float = 1.0,
    v_weight: float = 1.0,
) -> Cost:
    """Half the integral of the squared distance from a motion given as CasADi expressions of the time t."""
    if q is None and v is None:
        raise ArgumentError("tracking: expected q or v, a function of the time")
    for name, motion, weight in (("q", q, q_weight), ("v", v, v_weight)):
        if motion is not None and not callable(motion):
            raise ArgumentError(
                f"tracking: {name} is {motion!r}, expected a function of the time that returns CasADi expressions"
            )
        _factor("tracking", f"{name}_weight", weight)

    def term(s: Moment) -> ca.SX:
        total = ca.SX(0)
        if q is not None:
            total += q_weight / 2 * ca.sumsqr(s.model.symbolic.difference(_column(q(s.t)), s.q))
        if v is not None:
            total += v_weight / 2 * ca.sumsqr(s.v - _column(v(s.t)))
        return total

    return Cost(running=(term,))


def _column(value: Any) -> ca.SX:
    if isinstance(value, list | tuple):
        return ca.vertcat(*(ca.SX(x) for x in value))
    return ca.SX(np.asarray(value, dtype=float)) if isinstance(value, np.ndarray) else ca.SX(value)


def _factor(function: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ArgumentError(f"{function}: {name} is {value!r}, expected a number")


def _scaled(term: Term, factor: float) -> Term:
    return lambda s: factor * term(s)


def _callable(name: str, term: Any) -> Term:
    if not callable(term):
        raise ArgumentError(f"{name}: {term!r} is no function; expected one that takes a moment `s`")
    return term


def _total(kind: str, terms: tuple[Term, ...], s: Moment) -> ca.SX:
    total = ca.SX(0)
    for term in terms:
        with numpy_functions():
            value = ca.SX(term(s))
        if not value.is_scalar():
            raise ArgumentError(f"cost: a {kind} term has shape {value.shape}, expected one number")
        total = total + value
    return total
