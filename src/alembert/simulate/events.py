"""Events: instants at which a function of the state passes through zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True)
class Event:
    """`function(t, q, v)` passes zero: rising (`direction` 1), falling (-1) or either way (0).

    `action` is "stop", "note" (only the log), a function of (t, q, v) that returns the state (q, v) to go on from, or
    None to go on unchanged, or what changes the topology: `Lock`, `Release`, `Attach`, `Dock`, or a list of them. The
    instant is located to `tolerance` [s].
    """

    function: Callable[[float, Array, Array], float]
    name: str = "event"
    direction: int = 0
    action: Any = "stop"
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ArgumentError(f"Event: function is {self.function!r}, expected a function of t, q and v")
        if self.direction not in (-1, 0, 1):
            raise ArgumentError(f"Event: direction is {self.direction!r}, expected -1, 0 or 1")
        if isinstance(self.action, list):
            object.__setattr__(self, "action", tuple(self.action))
        many = (
            isinstance(self.action, tuple) and self.action and all(hasattr(x, "apply") for x in self.action)
        )
        one = callable(self.action) or hasattr(self.action, "apply") or hasattr(self.action, "rests")
        if not (many or one or self.action in ("stop", "note")):
            raise ArgumentError(
                f"Event: action is {self.action!r}, expected 'stop', 'note', a function, Lock(...), Release(...), "
                "Attach(...) or Dock(...)"
            )
        if not self.tolerance > 0:
            raise ArgumentError(f"Event: tolerance is {self.tolerance!r}, expected a positive time")

    def value(self, t: float, q: Array, v: Array) -> float:
        x = float(self.function(t, q, v))
        if math.isnan(x):
            raise NumericalError(f"simulate: event {self.name!r} gave NaN at t = {t:.9g} s")
        return x

    def crossed(self, before: float, after: float) -> bool:
        if before < 0 <= after:
            return self.direction >= 0
        return self.direction <= 0 and before > 0 >= after


@dataclass(frozen=True)
class EventRecord:
    """One line of the log: the state at which the event happened, and the state from which the run went on.

    `quantities` are impulses [N s, N m s] and what else the action tells; `energy` is the kinetic and potential energy
    that the event added [J].
    """

    name: str
    time: float
    q: Array = field(repr=False)
    v: Array = field(repr=False)
    q_after: Array = field(repr=False)
    v_after: Array = field(repr=False)
    quantities: Mapping[str, Any] = field(default_factory=dict)
    energy: float = 0.0
    internal: bool = field(default=True, repr=False)
    """nothing from outside acted on the model"""
