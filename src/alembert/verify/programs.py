"""Other programs that can be asked what Alembert is asked: on the same model, the same linear system, the same flight.

A program of dynamics takes a model and gives an object with `forward_dynamics`, `inverse_dynamics`, `mass_matrix`,
`bias_forces`, `kinetic_energy` and `potential_energy` in Alembert's coordinates, one state at a time. A program of linear
systems is asked for gains, norms, poles and zeros, one of flights where a rigid body is after a time. What a program cannot
do raises `UnsupportedError` that names the program and the feature.
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
    from alembert.spacecraft import Orbit

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


class Flights(Protocol):
    """What a program of flights has to answer."""

    def tumble(self, moments: tuple[float, ...], rate: Any, duration: float) -> tuple[Array, Array]: ...
    def orbit(self, orbit: Orbit, j2: float, duration: float, step: float) -> tuple[Array, Array]: ...


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


@dataclass(frozen=True)
class FlightProgram(OtherProgram):
    """`load` gives what answers."""

    load: Callable[[], Flights]


def _alembert(model: Model) -> Dynamics:
    return model


def _pinocchio(model: Model) -> Dynamics:
    from alembert.verify.in_pinocchio import InPinocchio

    return InPinocchio(model)


def _mujoco(model: Model) -> Dynamics:
    from alembert.verify.in_mujoco import InMujoco

    return InMujoco(model)


def _exudyn(model: Model) -> Dynamics:
    from alembert.verify.in_exudyn import InExudyn

    return InExudyn(model)


def _own_systems() -> LinearSystems:
    from alembert.verify.in_python_control import InAlembert

    return InAlembert()


def _python_control() -> LinearSystems:
    from alembert.verify.in_python_control import InPythonControl

    return InPythonControl()


def _own_flights() -> Flights:
    from alembert.verify.in_basilisk import OwnFlights

    return OwnFlights()


def _basilisk() -> Flights:
    from alembert.verify.in_basilisk import InBasilisk

    return InBasilisk()


DYNAMICS = {
    "alembert": DynamicsProgram("alembert", "alembert", "alembert", _alembert),
    "pinocchio": DynamicsProgram("pinocchio", "pinocchio", "pin", _pinocchio),
    "mujoco": DynamicsProgram("mujoco", "mujoco", "mujoco", _mujoco),
    "exudyn": DynamicsProgram("exudyn", "exudyn", "exudyn", _exudyn),
}
SYSTEMS = {
    "alembert": SystemsProgram("alembert", "alembert", "alembert", _own_systems),
    "python-control": SystemsProgram("python-control", "control", "control", _python_control),
}
FLIGHTS = {
    "alembert": FlightProgram("alembert", "alembert", "alembert", _own_flights),
    "basilisk": FlightProgram("basilisk", "Basilisk", "bsk", _basilisk),
}
ARGUMENTS: dict[str, Mapping[str, OtherProgram]] = {
    "program": DYNAMICS,
    "systems": SYSTEMS,
    "flights": FLIGHTS,
}
"""the programs that an argument of a case may be"""


def program_named(name: str) -> OtherProgram:
    for group in ARGUMENTS.values():
        if name in group:
            return group[name]
    raise ArgumentError(unknown("verify: no program", name, programs()))


def programs() -> list[str]:
    """The names of all, Alembert first."""
    return list(dict.fromkeys(name for group in ARGUMENTS.values() for name in group))
