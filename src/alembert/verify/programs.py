"""Other programs that can be asked what Alembert is asked: the same model, the same coordinates, their dynamics.

A program takes a model and gives an object with `forward_dynamics`, `inverse_dynamics`, `mass_matrix`, `bias_forces`,
`kinetic_energy` and `potential_energy` in Alembert's coordinates, one state at a time. What it cannot represent raises
`UnsupportedError` that names the program and the feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.printing import unknown

Array = np.ndarray


class Dynamics(Protocol):
    """What a program has to answer."""

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array: ...
    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array: ...
    def mass_matrix(self, q: Any) -> Array: ...
    def bias_forces(self, q: Any, v: Any) -> Array: ...
    def kinetic_energy(self, q: Any, v: Any) -> Any: ...
    def potential_energy(self, q: Any) -> Any: ...


@dataclass(frozen=True)
class DynamicsProgram:
    """A program by name; `load` builds a model in it."""

    name: str
    distribution: str
    load: Callable[[Model], Dynamics]


def _alembert(model: Model) -> Dynamics:
    return model


def _pinocchio(model: Model) -> Dynamics:
    from alembert.verify.in_pinocchio import InPinocchio

    return InPinocchio(model)


def _mujoco(model: Model) -> Dynamics:
    from alembert.verify.in_mujoco import InMujoco

    return InMujoco(model)


PROGRAMS = {
    "alembert": DynamicsProgram("alembert", "alembert", _alembert),
    "pinocchio": DynamicsProgram("pinocchio", "pin", _pinocchio),
    "mujoco": DynamicsProgram("mujoco", "mujoco", _mujoco),
}


def program_named(name: str) -> DynamicsProgram:
    if name not in PROGRAMS:
        raise ArgumentError(unknown("verify: no program", name, PROGRAMS))
    return PROGRAMS[name]
