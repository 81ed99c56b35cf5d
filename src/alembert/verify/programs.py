"""Other programs that can be asked what Alembert is asked: on the same model, the same linear system, the same flight.

A program of dynamics takes a model and gives an object with `forward_dynamics`, `inverse_dynamics`, `mass_matrix`,
`bias_forces`, `kinetic_energy` and `potential_energy` in Alembert's coordinates, one state at a time. A program of linear
systems is asked for gains, norms, poles and zeros, one of flights where a rigid body is after a time. What a program cannot
do raises `UnsupportedError` that names the program and the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.control import StateSpace
    from alembert.spacecraft import Orbit

Array = np.ndarray
Answers = TypeVar("Answers")


class Dynamics(Protocol):
    """What a program has to answer."""

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array: ...
    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array: ...
    def mass_matrix(self, q: Any) -> Array: ...
    def bias_forces(self, q: Any, v: Any) -> Array: ...
    def kinetic_energy(self, q: Any, v: Any) -> Any: ...
    def potential_energy(self, q: Any) -> Any: ...


def check_tree(
    program: str,
    model: Model,
    joints: Iterable[str],
    refused: Iterable[str] = ("spring", "friction", "rotors"),
) -> None:
    """Refuse what the program does not take over: joints of other kinds, some of their parts, and more."""
    if model.loops or model.couplings or model.equations:
        raise UnsupportedError(f"{program}: the loops and couplings of {model.name!r} are not taken over")
    if model.parameters:
        raise UnsupportedError(f"{program}: the named parameters of {model.name!r} are not taken over")
    for body, joint in zip(model.bodies, model.joints, strict=True):
        if joint.type.kind not in joints:
            raise UnsupportedError(f"{program}: no joint {joint.type.kind!r} ({joint.name!r})")
        for part in refused:
            if np.any(getattr(joint, part)):
                raise UnsupportedError(f"{program}: {part} of {joint.name!r} is not taken over")
        if body.flexible is not None:
            raise UnsupportedError(f"{program}: the modes of {body.name!r} are not taken over")


class OtherDynamics:
    """What follows from other answers of a program of dynamics."""

    model: Model
    mass_matrix: Callable[[Any], Array]
    inverse_dynamics: Callable[[Any, Any, Any], Array]

    def bias_forces(self, q: Any, v: Any) -> Array:
        return self.inverse_dynamics(q, v, np.zeros(self.model.nv))

    def kinetic_energy(self, q: Any, v: Any) -> float:
        return float(np.asarray(v) @ self.mass_matrix(q) @ np.asarray(v)) / 2


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
class OtherProgram(Generic[Answers]):
    """A program by name, as `alembert verify --against` takes it; the package is what Python imports."""

    name: str
    package: str
    distribution: str
    home: str
    """module and class that answer, below `alembert.verify`; imported when it is asked"""

    def load(self, *model: Model) -> Answers:
        """What answers: of dynamics, a model built in the program."""
        module, _, answers = self.home.partition(".")
        found: Answers = getattr(import_module(f"alembert.verify.{module}"), answers)(*model)
        return found


DynamicsProgram = OtherProgram[Dynamics]
SystemsProgram = OtherProgram[LinearSystems]
FlightProgram = OtherProgram[Flights]


def same(model: Model) -> Dynamics:
    """What Alembert answers on dynamics: a model itself."""
    return model


DYNAMICS = {
    "alembert": DynamicsProgram("alembert", "alembert", "alembert", "programs.same"),
    "pinocchio": DynamicsProgram("pinocchio", "pinocchio", "pin", "in_pinocchio.InPinocchio"),
    "mujoco": DynamicsProgram("mujoco", "mujoco", "mujoco", "in_mujoco.InMujoco"),
    "exudyn": DynamicsProgram("exudyn", "exudyn", "exudyn", "in_exudyn.InExudyn"),
}
SYSTEMS = {
    "alembert": SystemsProgram("alembert", "alembert", "alembert", "systems_and_flights.InAlembert"),
    "python-control": SystemsProgram(
        "python-control", "control", "control", "systems_and_flights.InPythonControl"
    ),
}
FLIGHTS = {
    "alembert": FlightProgram("alembert", "alembert", "alembert", "systems_and_flights.OwnFlights"),
    "basilisk": FlightProgram("basilisk", "Basilisk", "bsk", "systems_and_flights.InBasilisk"),
}
ARGUMENTS: dict[str, Mapping[str, OtherProgram[Any]]] = {
    "program": DYNAMICS,
    "systems": SYSTEMS,
    "flights": FLIGHTS,
}
"""the programs that an argument of a case may be"""


def program_named(name: str) -> OtherProgram[Any]:
    for group in ARGUMENTS.values():
        if name in group:
            return group[name]
    raise ArgumentError(unknown("verify: no program", name, programs()))


def programs() -> list[str]:
    """The names of all, Alembert first."""
    return list(dict.fromkeys(name for group in ARGUMENTS.values() for name in group))
