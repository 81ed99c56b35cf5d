"""What any joint may carry: limits, a spring, friction, reflected inertia and geared rotors.

With d = difference(rest, q), the joint's own effort is

    spring     -(dd/dq)^T K d,  the gradient of  (1/2) d^T K d,  K diagonal             (1)
    viscous    -b v                                                                     (2)
    Coulomb    -c v / sqrt(v^2 + s^2),  smooth, s the speed at which it reaches 71 %     (3)

armature adds to the diagonal of the mass matrix. A rotor spins at `ratio` times a speed of the joint about an
`axis` of the joint frame, which is fixed on the parent; the parent's inertia already holds the rotor as if
locked, so that it adds the kinetic energy

    (1/2) ratio^2 J v^2 + ratio J v (w_parent . axis)                                    (4)

(Chen and Ou, 1989: the second term makes the gyroscopic couplings).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, scalar, scalars
from alembert.joints.joint import unit_axis


def per_dof(values: Any, what: str, *, negative: bool = False) -> tuple[Scalar, ...]:
    """A tuple of scalars, one per degree of freedom (its length is checked against the joint later)."""
    try:
        count = len(values)
    except TypeError:
        values, count = (values,), 1
    entries = scalars(values, count, what)
    for entry in entries:
        if not negative and not isinstance(entry, Expression) and entry < 0:
            raise ModelError(f"{what} is {entry}, expected zero or more")
    return entries


@dataclass(frozen=True)
class Limits:
    """Bounds per coordinate (position) and per speed (velocity, effort); empty means none."""

    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "velocity", "effort"):
            value = getattr(self, name)
            entries = value if isinstance(value, str) or np.ndim(value) else (value,)
            try:
                numbers = tuple(float(entry) for entry in entries)
            except (TypeError, ValueError):
                raise ModelError(f"limit {name} is {value!r}, expected numbers") from None
            if any(number != number for number in numbers):
                raise ModelError(f"limit {name} is {numbers}, NaN is no limit; use inf for none")
            if name in ("velocity", "effort") and any(number < 0 for number in numbers):
                raise ModelError(f"limit {name} is {numbers}, expected zero or more")
            object.__setattr__(self, name, numbers)
        if len(self.lower) == len(self.upper):
            for low, high in zip(self.lower, self.upper, strict=True):
                if low > high:
                    raise ModelError(f"lower limit {low} is above the upper limit {high}")


@dataclass(frozen=True)
class Spring:
    """Stiffness per degree of freedom about the configuration `rest` (the neutral one when empty), (1)."""

    stiffness: tuple[Scalar, ...]
    rest: tuple[Scalar, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stiffness", per_dof(self.stiffness, "spring stiffness", negative=True))
        object.__setattr__(self, "rest", per_dof(self.rest, "spring rest", negative=True))


@dataclass(frozen=True)
class Friction:
    """Viscous coefficient b (2), Coulomb effort c and its smoothing speed s (3), per degree of freedom."""

    viscous: tuple[Scalar, ...] = ()
    coulomb: tuple[Scalar, ...] = ()
    smoothing: Scalar = 1e-3

    def __post_init__(self) -> None:
        object.__setattr__(self, "viscous", per_dof(self.viscous, "viscous friction"))
        object.__setattr__(self, "coulomb", per_dof(self.coulomb, "Coulomb friction"))
        smoothing = scalar(self.smoothing, "friction smoothing speed")
        if not isinstance(smoothing, Expression) and smoothing <= 0:
            raise ModelError(f"friction smoothing speed is {smoothing}, expected a positive speed")
        object.__setattr__(self, "smoothing", smoothing)


@dataclass(frozen=True)
class Rotor:
    """A spinning rotor on the parent, geared to one degree of freedom of the joint, (4)."""

    ratio: Scalar
    inertia: Scalar
    axis: tuple[Scalar, ...] = (0.0, 0.0, 1.0)
    dof: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", scalar(self.ratio, "rotor ratio"))
        object.__setattr__(self, "inertia", scalar(self.inertia, "rotor inertia"))
        object.__setattr__(self, "axis", unit_axis(self.axis, "rotor axis"))
        if not isinstance(self.inertia, Expression) and self.inertia < 0:
            raise ModelError(f"rotor inertia is {self.inertia}, expected zero or more")
        if isinstance(self.dof, bool) or not isinstance(self.dof, int) or self.dof < 0:
            raise ModelError(f"rotor dof is {self.dof!r}, expected the index of a speed of the joint")
