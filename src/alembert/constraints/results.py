"""What the algorithms on constrained models return.

Tolerances of the constrained algorithms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from alembert.model.methods import CLOSED as CLOSED
from alembert.model.methods import RANK as RANK

CLOSURE = 1e-12
"""What `project` and `assemble` reach, relative to the size of each loop."""
NEAR = 1e-7
"""How far off the surface the minimal set that is kept may be taken for that of the state."""
CONSISTENT = 1e-7
"""How well rows that were dropped must be satisfied, relative to the terms in them."""
STILL = 1e-6
"""Speeds below it [SI] count as this: at rest, errors of an integrator may be larger than the speeds themselves."""
GOOD = 1e-3
"""Smallest pivot of Lambda, with unit diagonal, at which it is used for motions: the error is some eps/GOOD^2."""
CLEAR = 1e-2
"""The same for derivatives and efforts."""
REGULAR = 1e-10
"""Smallest singular value or pivot, relative to the largest, at which a driven set gives all motions."""
FEASIBLE = 1e-8
"""Smallest singular value, in the metric of the mass matrix, at which actuators can bring about prescribed motions."""
OFF = 1e-3
"""Tolerances of rank and consistency grow with the distance of a state from the surface, up to this."""
BREAKS = 1e-4
"""How far a given acceleration may be from keeping the constraints, relative to the terms there."""


Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ConstrainedResult:
    """Accelerations (..., nv) and the reactions by constraint.

    A loop's reaction is the wrench (..., 6) on the body of its frame b at that frame's origin, in that frame's axes; frame
    a gets its opposite. A coupling's is the effort (...) on its `joint`; each master gets minus its ratio times that. An
    equation's are multipliers (..., formulas): each drives an input by its multiplier times the formula's derivative.
    """

    accelerations: Array
    reactions: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class ConstrainedEfforts:
    """Efforts (..., nv), zero where nothing drives, and the reactions (as in `ConstrainedResult`)."""

    efforts: Array
    reactions: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class ControlForces:
    """Accelerations, what the actuators exert as efforts (..., nv) and each by itself, in order, and the reactions."""

    accelerations: Array
    efforts: Array
    forces: Array
    reactions: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class ConstrainedDerivatives:
    """The accelerations (..., nv), and their derivatives (..., nv, nv) with respect to q (tangent), v and tau.

    `dparameters` has those with respect to the parameters that were asked for, (..., nv) by name.
    """

    acceleration: Array
    dq: Array
    dv: Array
    dtau: Array
    dparameters: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ConstrainedInverseDerivatives:
    """The efforts (..., nv), zero where nothing drives, and their derivatives with respect to q (tangent), v and a.

    `dparameters` has those with respect to the parameters that were asked for, (..., nv) by name, `dwrenches` those with
    respect to the wrenches that were given, (..., nv, 6) by frame.
    """

    efforts: Array
    dq: Array
    dv: Array
    da: Array
    dparameters: Mapping[str, Array] = field(default_factory=dict)
    dwrenches: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ImpulseResult:
    """Speeds after the jump (..., nv), and the impulses of the constraints (units and frames as reactions, times s).

    `drives` are the impulses (..., nv) of what holds the speeds that were `held`; zero elsewhere.
    """

    velocities: Array
    impulses: Mapping[str, Array]
    drives: Array


@dataclass(frozen=True, eq=False)
class State:
    """A configuration and speeds that satisfy the constraints, with the largest residuals that are left."""

    q: Array
    v: Array
    residual: float
    velocity_residual: float
    iterations: int


@dataclass(frozen=True, eq=False)
class IndependentCoordinates:
    """Speeds that the others follow from: v = E v_i, and v' = E v_i' + `rate` (None unless speeds were given)."""

    names: tuple[str, ...]
    indices: Array
    E: Array
    rate: Array | None = None


@dataclass(frozen=True, eq=False)
class ConstraintAnalysis:
    """Rank and redundancy at one configuration; `str` gives a sentence.

    `redundant` counts for each constraint with any the rows that follow from others. Which of several dependent
    constraints is called redundant is a choice; how many there are is not.
    """

    rows: int
    rank: int
    degrees_of_freedom: int
    redundant: Mapping[str, int]
    rows_by_constraint: Mapping[str, int]
    margin: float
    """how far the minimal set is from losing its rank (1: orthogonal rows; at the tolerance: singular)"""
    residual: float

    def __str__(self) -> str:
        text = f"{self.rows} constraint rows of rank {self.rank}, {self.degrees_of_freedom} degrees of freedom left"
        if not self.redundant:
            return f"{text}; none is redundant"
        listed = ", ".join(
            f"{count} of {self.rows_by_constraint[name]} of {name!r}"
            for name, count in self.redundant.items()
        )
        return f"{text}; redundant: {listed}"
