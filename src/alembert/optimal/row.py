"""One condition or bound of a problem, by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.plant import Moment

Bounds = tuple[float, float]
FREE: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Row:
    """lower <= value(moment) <= upper; an equation when both are the same."""

    name: str
    value: Callable[[Moment], ca.SX]
    lower: float
    upper: float
    component: str = ""
    """the component of the state or the control that it bounds, if it bounds just one"""
    point: Any = None
    """the coordinates that a joint on a manifold is to have"""

    @property
    def is_equation(self) -> bool:
        return self.lower == self.upper

    @property
    def is_bound(self) -> bool:
        return not self.is_equation and (np.isfinite(self.lower) or np.isfinite(self.upper))

    def __str__(self) -> str:
        """The value or the range."""
        return f"{self.lower:g}" if self.is_equation else f"{self.lower:g} .. {self.upper:g}"
