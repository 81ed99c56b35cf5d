"""What drives the joints: controllers, in continuous time or sampled.

A continuous controller is a function u(t, q, v) that gives efforts: an array (..., nv), or a mapping from
joints or degrees of freedom to efforts. A CasADi function is compiled into the loop. A `Sampled` controller
is asked at fixed instants only and its answer held, like flight software. All controllers add up. At equal
times they are asked in the order in which they are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model

Array = np.ndarray
Law = Callable[[float, Array, Array], Any]


@dataclass(frozen=True)
class Sampled:
    """A control law asked every `period` [s], from `offset` on; its answer acts `delay` [s] later, in steps of `quantum`.

    Before its first answer acts, it gives nothing. With `reads`, names of sensors, the law is a function of t and of
    what they delivered last, a mapping from their names to arrays; it is not asked before all of them have delivered.
    """

    law: Callable[..., Any]
    period: float
    delay: float = 0.0
    quantum: float = 0.0
    offset: float = 0.0
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise ArgumentError(f"Sampled: law is {self.law!r}, expected a function of t, q and v")
        object.__setattr__(self, "reads", (self.reads,) if isinstance(self.reads, str) else tuple(self.reads))
        if not (math.isfinite(self.period) and self.period > 0):
            raise ArgumentError(f"Sampled: period is {self.period!r}, expected a positive time in seconds")
        for name in ("delay", "quantum", "offset"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ArgumentError(f"Sampled: {name} is {value!r}, expected zero or a positive number")


def efforts_from(model: Model, answer: Any, who: str) -> Array:
    """What a controller returned, as an array (..., nv)."""
    if isinstance(answer, Mapping):
        return model._by_name("simulate", answer, f"efforts of {who}")[1]
    x = np.asarray(answer, dtype=float)
    if x.ndim == 0 and model.nv == 1:
        return x[None]
    if x.ndim == 0 or x.shape[-1] != model.nv:
        raise ArgumentError(
            f"simulate: {who} returned shape {x.shape}, expected (..., {model.nv}) efforts, or a mapping from "
            "joints to efforts"
        )
    return x
