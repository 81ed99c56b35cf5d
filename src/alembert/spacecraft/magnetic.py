"""The Earth's magnetic field as an expression, of a degree from 1 (a tilted dipole) to 13, by IGRF-14.

A dipole is within 10 to 30 % of the field near the Earth; degree 13 within 10 nT of the main field (what currents above the
ground add is 20 nT on a quiet day and up to 1000 nT in a storm).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.spacecraft.harmonics import Harmonics

if TYPE_CHECKING:
    from alembert.spacecraft.environment import Environment

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MagneticField:
    """Made by `Environment.magnetic_field`."""

    environment: Environment
    harmonics: Harmonics

    def inertial(self, t: Any, r: Any) -> Any:
        """The field [T] at r from the Earth's centre, in inertial axes, as an expression."""
        E = self.environment.fixed(t)
        return -(E.T @ self.harmonics.slope(E @ r))

    @cached_property
    def _numbers(self) -> ca.Function:
        t, x = ca.SX.sym("t"), ca.SX.sym("x", 3)
        return ca.Function("field", [t, x], [self.inertial(t, self.environment.place(t, x))])

    def at(self, t: float, x: Any) -> Array:
        """The field [T] at a position in the world (3), as numbers in inertial axes."""
        return np.array(self._numbers(t, np.asarray(x, dtype=float)), dtype=float).ravel()
