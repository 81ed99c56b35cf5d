"""Other programs that can be asked what Alembert is asked: dynamics of the same model, or results on the same linear system.

A program of dynamics takes a model and gives an object with `forward_dynamics`, `inverse_dynamics`, `mass_matrix`,
`bias_forces`, `kinetic_energy` and `potential_energy` in Alembert's coordinates, one state at a time. A program of linear
systems is asked for gains, norms, poles and zeros. What a program cannot do raises `UnsupportedError` that names the program
and the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.control import StateSpace

Array = np.ndarray


class Dynamics(Protocol):
    """What a program has to answer."""

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array: ...
    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array: ...
    def mass_matrix(self, q: Any) -> Array: ...
    def bias_forces(self, q: Any, v: Any) -> Array: ...
    def kinetic_energy(self, q: Any, v: Any) -> Any: ...
    def potential_energy(self, q: Any) -> Any: ...


class LinearSystems(Protocol):
    """What a program of linear systems has to answer."""

    def lqr(self, G: StateSpace, Q: Any, R: Any) -> Array: ...
    def filter_gain(self, G: StateSpace, W: Any, V: Any) -> Array: ...
    def h2_norm(self, G: StateSpace) -> float: ...
    def hinf_norm(self, G: StateSpace) -> float: ...
    def hankel_singular_values(self, G: StateSpace) -> Array: ...
    def zeros(self, G: StateSpace) -> Array: ...
    def sampled(self, G: StateSpace, dt: float) -> StateSpace: ...
    def crossover_margins(self, G: StateSpace) -> tuple[float, float]: ...


@dataclass(frozen=True)
class OtherProgram:
    """A program by name, as `alembert verify --against` takes it; the package is what Python imports."""

    name: str
    package: str
    distribution: str


@dataclass(frozen=True)
class DynamicsProgram(OtherProgram):
    """`load` builds a model in it."""

    load: Callable[[Model], Dynamics]


@dataclass(frozen=True)
class SystemsProgram(OtherProgram):
    """`load` gives what answers."""

    load: Callable[[], LinearSystems]


def _alembert(model: Model) -> Dynamics:
    return model


def _pinocchio(model: Model) -> Dynamics:
    from alembert.verify.in_pinocchio import InPinocchio

    return InPinocchio(model)


def _mujoco(model: Model) -> Dynamics:
    from alembert.verify.in_mujoco import InMujoco

    return InMujoco(model)


def _own_systems() -> LinearSystems:
    from alembert.verify.in_python_control import InAlembert

    return InAlembert()


def _python_control() -> LinearSystems:
    from alembert.verify.in_python_control import InPythonControl

    return InPythonControl()


DYNAMICS = {
    "alembert": DynamicsProgram("alembert", "alembert", "alembert", _alembert),
    "pinocchio": DynamicsProgram("pinocchio", "pinocchio", "pin", _pinocchio),
    "mujoco": DynamicsProgram("mujoco", "mujoco", "mujoco", _mujoco),
}
SYSTEMS = {
    "alembert": SystemsProgram("alembert", "alembert", "alembert", _own_systems),
    "python-control": SystemsProgram("python-control", "control", "control", _python_control),
}
ARGUMENTS: dict[str, Mapping[str, OtherProgram]] = {"program": DYNAMICS, "systems": SYSTEMS}
"""the programs that an argument of a case may be"""


def program_named(name: str) -> OtherProgram:
    for group in ARGUMENTS.values():
        if name in group:
            return group[name]
    raise ArgumentError(unknown("verify: no program", name, programs()))


def programs() -> list[str]:
    """The names of all, Alembert first."""
    return list(dict.fromkeys(name for group in ARGUMENTS.values() for name in group))
