"""How closed loops stay closed in a run: by projection, or by feedback in the equations of motion.

With the corrections x and y in the metric of the mass matrix, G x = -phi and G y = -G v, and a rate r [1/s]:

    projection    q and v are put back onto the surface after every step (Newton's method), to rounding            (1)
    baumgarte     v' = a + 2 r y + r^2 x:   phi'' + 2 r phi' + r^2 phi = 0                                       (2)
    ggl           q' = v + r x,   v' = a + r y:   residuals of positions and of speeds decay each at the rate r     (3)

(3) is the stabilised index-2 form of Gear, Gupta and Leimkuhler with the multiplier of the positions that makes them decay.
Feedback leaves a drift, which the run reports; (1) leaves none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown

METHODS = ("projection", "baumgarte", "ggl")
RUNGE_KUTTA = ("rk4", "midpoint")


@dataclass(frozen=True)
class Stabilisation:
    method: str = "projection"
    rate: float = 20.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ArgumentError(unknown("simulate: no stabilisation", self.method, METHODS))
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise ArgumentError(
                f"simulate: stabilisation_rate is {self.rate!r}, expected a positive rate in 1/s"
            )

    def check(self, model: Model, integrator: str) -> None:
        if self.method == "projection":
            return
        if not model.is_constrained:
            raise ArgumentError(f"simulate: stabilisation {self.method!r}, but the model has no constraints")
        if integrator == "variational":
            raise UnsupportedError(
                f"simulate: stabilisation {self.method!r} and integrator 'variational' do not go together; its steps keep "
                "loops closed without"
            )
        if self.method == "ggl" and integrator not in RUNGE_KUTTA:
            raise UnsupportedError(
                f"simulate: stabilisation 'ggl' and integrator {integrator!r} do not go together; choose "
                f"{' or '.join(map(repr, RUNGE_KUTTA))}"
            )

    def rates(
        self, v: np.ndarray, a: np.ndarray, x: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """q' and v' of (2) or (3)."""
        r = self.rate
        if self.method == "baumgarte":
            return v, a + 2 * r * y + r * r * x
        return v + r * x, a + r * y
