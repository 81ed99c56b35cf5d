"""Proof-mass actuators: a mass on a rail that a motor pushes, so that the structure feels the opposite force."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from alembert.joints import Friction, Prismatic, Spring
from alembert.model import Inertia, ModelBuilder
from alembert.spacecraft.devices import axes_about, positive


@dataclass(frozen=True)
class ProofMass:
    """What one can do: its joint, its axis, force [N] and stroke [m] at most, from the middle."""

    name: str
    axis: tuple[float, ...]
    force: float = math.inf
    stroke: float = math.inf


def proof_mass(
    builder: ModelBuilder,
    name: str,
    parent: str,
    axis: Any,
    *,
    mass: float,
    stiffness: float = 0.0,
    damping: float = 0.0,
    force: float = math.inf,
    stroke: float = math.inf,
    at: Any = (0.0, 0.0, 0.0),
) -> ProofMass:
    """A mass on a rail, with a spring [N/m] and a damper [N s/m] to its middle, for `Hardware`: a message has its force.

    The motor pushes the mass along the axis, and the structure the other way. Beyond its stroke it pushes inwards alone.
    """
    who = f"proof_mass {name!r}"
    positive(who, mass=mass, force=force, stroke=stroke)
    direction = tuple(float(x) for x in axes_about(axis, who)[:, 2])
    builder.body(
        name,
        Inertia.point(mass),
        joint=Prismatic(direction),
        joint_name=name,
        parent=parent,
        placement=tuple(at),
        spring=Spring((stiffness,)) if stiffness else None,
        friction=Friction((damping,)) if damping else None,
    )
    return ProofMass(name, direction, force, stroke)
