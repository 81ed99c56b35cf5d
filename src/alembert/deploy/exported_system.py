"""What acts on an exported model, as expressions: inputs, controllers with states or samples, drives, sensors, forces.

With u the inputs, x what is integrated along (states of continuous controllers, then lags of drives) and d what is
remembered from instant to instant,

    effort, x' = f(t, q, v, x, held(d), u, p)                                                                         (1)

and at every tick of the clock d changes by what `alembert.simulate.schedule` does there. A tick is the longest time
of which all periods, delays and offsets are multiples. Set points given as numbers become inputs: they are parameters of a
copy of the model, so that every law reads them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import names
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Expression
from alembert.model import Model
from alembert.simulate.actuators import Lags
from alembert.simulate.bound_controllers import BoundController
from alembert.simulate.controllers import DynamicController, Sampled, as_controller
from alembert.simulate.inputs import Inputs
from alembert.simulate.schedule import CompiledSchedule, Schedule, common_tick
from alembert.simulate.simulation import Simulation
from alembert.spatial.arrays import clip


@dataclass(frozen=True)
class Signal:
    """A number that goes in or comes out: its name, unit and value at the start."""

    name: str
    unit: str
    start: float = 0.0


@dataclass(frozen=True, eq=False)
class Given:
    """What the caller gave, as `simulate` takes it; `inputs` are names of joints, or of what a controller takes."""

    controller: Any = None
    inputs: Sequence[str] | None = None
    drives: Mapping[str, Any] | None = None
    sensors: Any = ()
    forces: Any = ()


@dataclass(eq=False)
class ExportedSystem:
    """See the module; `model` is the copy with set points among its parameters."""

    function: str
    model: Model
    own_parameters: int
    simulation: Simulation
    inputs: tuple[Signal, ...]
    states: tuple[Signal, ...]
    commands: Sequence[tuple[ca.Function, slice]]
    """functions of t, q, v and some inputs"""
    efforts: Sequence[tuple[int, int]]
    """(degree of freedom, input) of inputs that are efforts"""
    set_points: slice
    """inputs that are parameters of the copy"""
    lags: Lags | None = None
    instants: CompiledSchedule | None = None
    tick: float = 0.0
    """seconds between instants, 0 without"""
    starts: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """what is remembered at the start"""

    @property
    def memory(self) -> int:
        return len(self.starts)

    def parameters(self, u: ca.SX, p: ca.SX) -> ca.SX:
        """Those of the copy."""
        points = range(self.set_points.start, self.set_points.stop)
        return ca.vertcat(p, *(u[k] for k in points))

    def effort(
        self, t: ca.SX, q: ca.SX, v: ca.SX, x: ca.SX, d: ca.SX, u: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """(1); p as in `parameters`."""
        feedback, nv = self.simulation.feedback, self.model.nv
        command, rate, pushed = ca.SX.zeros(nv), ca.SX(0, 1), ca.SX.zeros(nv)
        if feedback.asked_law is not None and feedback.pushed_law is not None:
            command, rate = feedback.asked_law(t, q, v, x[: feedback.size], p)
            pushed, _ = feedback.pushed_law(t, q, v, x[: feedback.size], p)
        for law, part in self.commands:
            command = command + ca.SX(law(t, q, v, u[part]))
        held = ca.SX.zeros(nv)
        if self.instants is not None and self.instants.acting:
            held = ca.sum2(ca.reshape(d[: self.instants.acting * nv], nv, -1))
        drives = self.simulation.drives
        if self.lags is not None and self.lags.size:
            total, lagging = self.lags.symbolic(x[feedback.size :], command + held)
            rate = ca.vertcat(rate, lagging)
        else:
            total = command + held
            for k, most in enumerate([] if drives is None else drives.limit.tolist()):
                total[k] = clip(total[k], most) if np.isfinite(most) else total[k]
        total = total + pushed
        for k, j in self.efforts:
            total[k] = total[k] + u[j]
        if self.simulation.loads.elements is not None:
            total = total + self.simulation.loads.elements.total(t, q, v, p)
        return ca.densify(ca.SX(total)), ca.densify(ca.SX(rate))


def exported_system(function: str, model: Model, given: Given) -> ExportedSystem:
    """What is given, checked; what cannot be an expression is refused."""
    laws, commands, labels = _commanded(function, model, given)
    signals = [Signal(name, "") for name in labels]
    laws, opened = _open_references(laws, model)
    efforts: list[tuple[int, int]] = []
    if not commands and (given.inputs is not None or not laws):
        for k in _driven(function, model, given.inputs):
            unit = effort_unit(model.space.speed_units[k])
            efforts.append((k, len(signals)))
            signals.append(Signal(f"effort.{model.speed_names[k]}", unit))
    count = len(model.parameters)
    first = len(signals)
    signals += [Signal(f"reference.{label}", "", value) for label, _, value in opened.values()]
    points = [(key, value) for key, (_, _, value) in opened.items()]
    everything = Inputs(
        controller=laws or None, drives=given.drives, sensors=given.sensors, forces=given.forces
    )
    copy = everything.model(model.replace(parameters=(*model.parameters, *points)) if points else model)
    try:
        system = Simulation(copy, everything, ())
    except ArgumentError as error:
        raise ArgumentError(str(error).replace("simulate:", f"{function}:", 1)) from None
    _check(function, system)
    found = ExportedSystem(
        function, copy, count, system, tuple(signals), (), commands, efforts, slice(first, len(signals))
    )
    lags = Lags(system.drives) if system.drives is not None else None
    if lags is not None and len(lags.ramps):
        name = copy.speed_names[int(lags.ramps[0])]
        raise UnsupportedError(
            f"{function}: the drive of {name!r} has a limited rate and no lag, which is no differential equation; give it a "
            "lag or a frequency"
        )
    found.lags = lags
    limits = lags is not None and (lags.size or np.isfinite(lags.drives.limit).any())
    if limits and not laws and not commands:
        raise UnsupportedError(
            f"{function}: drives ({', '.join(map(repr, given.drives or ()))}) carry out what a controller commands, and "
            "there is none: inputs are efforts at the joints; give controller=casadi.Function of t, q, v and u that is u"
        )
    continuous = [one for one in system.feedback.dynamic if isinstance(one, BoundController)]
    bound = [*continuous, *system.feedback.sampled_systems.values()]
    of_rows = {name: row.unit for one in bound for name, row in one.rows.items()}
    units = {f"reference.{label}": of_rows.get(name, "") for label, name, _ in opened.values()}
    found.inputs = tuple(dataclasses.replace(s, unit=units.get(s.name, s.unit)) for s in found.inputs)
    found.states = tuple(_states(system, lags))
    if system.sampled or system.instruments:
        found.tick = common_tick(system.sampled, system.instruments)
        found.instants = CompiledSchedule(
            system, Schedule.on_grid(system.sampled, system.instruments, found.tick)
        )
        found.starts = found.instants.start(())
    return found


UNITS = {"rad": {"rad": 1}, "m": {"m": 1}, "N.m": {"kg": 1, "m": 2, "s": -2}, "N": {"kg": 1, "m": 1, "s": -2}}
"""base units; rates of them are `/s` and `/s2`"""


def base_units(unit: str) -> dict[str, int] | None:
    """Exponents of base units, where they are known; a product may be written with a blank, a power with a caret."""
    whole, slash, seconds = unit.replace(" ", ".").replace("^", "").partition("/s")
    if whole not in UNITS:
        return None
    found = dict(UNITS[whole])
    if slash:
        found["s"] = found.get("s", 0) - int(seconds or 1)
    return {name: k for name, k in found.items() if k}


def effort_unit(speed: str) -> str:
    """What times a speed is a power."""
    return {"rad/s": "N.m", "m/s": "N"}.get(speed, "")


def _commanded(
    function: str, model: Model, given: Given
) -> tuple[list[Any], list[tuple[ca.Function, slice]], list[str]]:
    """All other controllers; functions of t, q, v and inputs; and the names of these."""
    controller = given.controller
    laws = (
        []
        if controller is None
        else list(controller)
        if isinstance(controller, list | tuple)
        else [controller]
    )
    others, commands, at = [], [], 0
    for law in laws:
        if not isinstance(law, ca.Function) or law.n_in() == 3:
            others.append(_checked(function, model, law))
            continue
        _checked(function, model, law)
        size = law.numel_in(3)
        commands.append((law if law.is_a("SXFunction") else law.expand(), slice(at, at + size)))
        at += size
    if not commands:
        return others, [], []
    labels = list(names(function, "inputs", given.inputs or [f"input{k + 1}" for k in range(at)]))
    if len(labels) != at or len(set(labels)) != at:
        raise ArgumentError(f"{function}: the controller takes {at} inputs, got the names {labels}")
    return others, commands, labels


def _checked(function: str, model: Model, law: Any) -> Any:
    if not isinstance(law, ca.Function):
        inner = law.law if isinstance(law, Sampled) else law
        symbolic = not callable(inner) or isinstance(inner, ca.Function)
        if as_controller(inner) is None and not symbolic:
            raise UnsupportedError(
                f"{function}: the controller is {inner!r}, which cannot be compiled; give a casadi.Function of t, q, v "
                "(and inputs), a StateSpace, a DynamicController, or a sampled law as a casadi.Function or in "
                "SymbolicLaw(...)"
            )
        return law
    sizes, found = [1, model.nq, model.nv], [law.numel_in(k) for k in range(law.n_in())]
    if found[:3] != sizes or len(found) > 4 or law.n_out() != 1 or law.numel_out(0) != model.nv:
        raise ArgumentError(
            f"{function}: the controller takes {found} numbers, expected {sizes} (t, q, v) and perhaps inputs; "
            f"and gives {model.nv} efforts"
        )
    return law


def _open_references(
    laws: Sequence[Any], model: Model
) -> tuple[list[Any], dict[str, tuple[str, str, float]]]:
    """Controllers whose set points given as numbers are parameters; by parameter, its label, the name and the number."""
    opened: dict[str, tuple[str, str, float]] = {}
    free = (key for k in itertools.count(1) if (key := f"set_point_{k}") not in model.parameter_values)
    found = []
    for law in laws:
        inner = law.law if isinstance(law, Sampled) else law
        if not isinstance(inner, DynamicController):
            found.append(law)
            continue
        references = dict(inner.references)
        for name, value in references.items():
            if isinstance(value, int | float | np.number) and np.isfinite(value):
                key = next(free)
                taken = [other for other, _, _ in opened.values()]
                labels = itertools.chain(
                    [name, f"{inner.name}.{name}"], (f"{inner.name}.{name}.{k}" for k in itertools.count(2))
                )
                opened[key] = (next(x for x in labels if x not in taken), name, float(value))
                references[name] = Expression(key)
        other = inner.changed(references=references)
        found.append(dataclasses.replace(law, law=other) if isinstance(law, Sampled) else other)
    return found, opened


def _driven(function: str, model: Model, inputs: Sequence[str] | None) -> list[int]:
    """Degrees of freedom whose efforts are inputs."""
    of_joints = model.space.joint_speed_names
    chosen = model.space.dofs(
        function, "inputs", of_joints if inputs is None else names(function, "inputs", inputs)
    )
    for k in chosen:
        if model.speed_names[k] not in of_joints:
            raise ArgumentError(
                f"{function}: inputs has {model.speed_names[k]!r}, a mode of a flexible body, which nothing pushes "
                "directly; expected joints"
            )
        if chosen.count(k) > 1:
            raise ArgumentError(f"{function}: inputs has {model.speed_names[k]!r} twice, expected each once")
    return chosen


def _check(function: str, system: Simulation) -> None:
    for _, flow in system.feedback.flows:
        raise UnsupportedError(
            f"{function}: the controller burns {flow.controller.parameter!r}, and masses that change in a run are not "
            "exported; leave MassFlow out, the parameter is one of the export"
        )
    if system.loads.reading is not None:
        read = ", ".join(map(repr, system.loads.reading.names))
        raise UnsupportedError(
            f"{function}: forces read the reactions of {read}, and forces that are found together with the motion are "
            "not exported; leave them out"
        )
    for instrument in system.instruments:
        if not instrument.is_symbolic:
            raise UnsupportedError(
                f"{function}: the sensor {instrument.name!r} is no expression of the state (an accelerometer feels the "
                "efforts of the same moment, others are Python functions); leave it out"
            )
        if sum(instrument.drawn):
            raise UnsupportedError(
                f"{function}: the sensor {instrument.name!r} has noise, a walk or lost samples, and exports draw no random "
                "numbers; give it none of them"
            )


def _states(system: Simulation, lags: Lags | None) -> list[Signal]:
    feedback, names = system.feedback, system.model.speed_names
    continuous = feedback.states[: feedback.size]
    found = [
        Signal(f"{who}.{state}", unit, float(start))
        for (who, state, unit), start in zip(continuous, feedback.start(()), strict=True)
    ]
    if lags is not None:
        units = [effort_unit(unit) for unit in system.model.space.speed_units]
        found += [Signal(f"drive.{names[k]}", units[k]) for k in lags.x]
        found += [Signal(f"drive.{names[k]}.rate", "") for k in lags.second]
    return found
