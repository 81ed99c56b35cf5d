"""An optimal control problem, stated without saying how it will be solved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import numbers, real
from alembert.errors import ArgumentError, ModelError, UnsupportedError, interrupts_kept
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.optimal import consistency
from alembert.optimal.closure import close, read_motions
from alembert.optimal.conditions import Cost, Reader, effort, path_row
from alembert.optimal.plant import RESERVED, Bounds, Mechanics, Moment, Row, System, driven_dofs
from alembert.simulate.elements import Elements
from alembert.simulate.inputs import Inputs, as_sequence

if TYPE_CHECKING:
    from alembert.optimal.prepared import PreparedProblem
    from alembert.optimal.solution import Solution
    from alembert.optimal.solve import Continuation, Transcribed

Array = np.ndarray
MODEL_NAMES = ("q", "v", "tau", "model", "position", "speed", "effort", "frame", "velocity")
"""what the moments of models have"""


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem as the user states it; see `Problem`."""

    plant: Model | System
    duration: float | Bounds
    start: Mapping[str, Any] | None
    end: Mapping[str, Any] | None
    cost: Cost | None
    limits: Mapping[str, Any] | str | None
    path: Mapping[str, tuple[Callable[[Moment], Any], float, float]] | None
    actuated: Sequence[str] | None
    prescribed: Mapping[str, Any] | None
    periodic: bool
    parameters: Mapping[str, float] | None
    inputs: Mapping[str, Any] | None
    design: Mapping[str, Bounds] | None
    integrals: Mapping[str, tuple[Callable[[Moment], Any], float, float]] | None
    forces: Any
    gravity: Any


class Problem:
    """Drive `plant`, a `Model` or a `System`, from `start` to `end` within `duration` at the least `cost`.

    `duration` [s] is a number, or a pair (shortest, longest) between which it is free.

    `start` and `end` state conditions. For a model: `{"q": ..., "v": ...}`, each an array over all joints, 0, or by joint
    `{"elbow": 1.2, "wrist": (-0.1, 0.1)}`; a pair is a range, what is left out is free; of a free joint
    `{"base": {"orientation": wxyz}}` states a part. For a system: by the names of
    the states. Any other name stands for a function of the state: `{"tip height": (lambda s:
    s.frame("tip").translation[2], 2.0)}`.

    `limits` bound the motion all along: `{"q": ..., "v": ..., "tau": ..., "rate": ...}` by joint (for a system
    by the names of states and controls, "rate" by control: how fast it may change), each a pair or a number b
    for (-b, b). For a model they are by default its own; `limits=None` is without any. `path` has further
    bounds, and equations where both are the same: `{"clearance": (lambda s: ..., 0.1, inf)}`.

    `actuated` names the joints, degrees of freedom or actuators that have a control; by default the model's actuators,
    or all joints if it has none. `prescribed` joints follow a motion, `{"crank": lambda t: 2 * t}` with CasADi
    expressions of the time, or stay at a number. Loops, couplings and equations of the model are kept
    closed. With `periodic` the motion ends as it starts. `parameters` are values for the parameters
    of the model or the system, by name. `inputs` are numbers or vectors of one's own by name, which costs, path and
    conditions use as `s.name`: targets, weights, disturbances, which a prepared problem takes anew in every solve.

    `design` names parameters that are to be found as well, with their bounds: `{"length": (0.5, 2.0)}`; they have one value
    for the whole motion, `solution.design`. `integrals` bound integrals over the motion: `{"energy": (lambda s: s.u**2, 0,
    5)}`. `forces` and `gravity` act on a model as in `al.simulate`: springs, drag, fields.
    """

    def __init__(
        self,
        plant: Model | System,
        duration: float | Bounds,
        *,
        start: Mapping[str, Any] | None = None,
        end: Mapping[str, Any] | None = None,
        cost: Cost | None = None,
        limits: Mapping[str, Any] | str | None = "model",
        path: Mapping[str, tuple[Callable[[Moment], Any], float, float]] | None = None,
        actuated: Sequence[str] | None = None,
        prescribed: Mapping[str, Any] | None = None,
        periodic: bool = False,
        parameters: Mapping[str, float] | None = None,
        inputs: Mapping[str, Any] | None = None,
        design: Mapping[str, Bounds] | None = None,
        integrals: Mapping[str, tuple[Callable[[Moment], Any], float, float]] | None = None,
        forces: Any = None,
        gravity: Any = None,
    ) -> None:
        self.transcribed: dict[Any, Transcribed] = {}
        """what earlier solves have compiled"""
        self.statement = Statement(
            *(plant, duration, start, end, cost, limits, path, actuated, prescribed, periodic, parameters),
            *(inputs, design, integrals, forces, gravity),
        )
        motions: dict[str, ca.Function] = {}
        elements: Elements | None = None
        if isinstance(plant, Model):
            plant, elements = environment("Problem", plant, forces, gravity)
            driven = driven_dofs(plant, actuated, prescribed or ())
            motions = read_motions(plant, prescribed or {}, driven)
            self.plant: Mechanics | System = Mechanics(plant, driven, None, elements)
            self.model: Model | None = plant
        elif isinstance(plant, System):
            only = {"actuated": actuated, "prescribed": prescribed, "forces": forces, "gravity": gravity}
            for name, value in only.items():
                if value is not None:
                    raise ArgumentError(
                        f"Problem: `{name}` is for models; a System names its controls and what acts on it itself"
                    )
            self.plant, self.model = plant, None
        else:
            raise ArgumentError(
                f"Problem: the plant is a {type(plant).__name__}, expected a Model or a System"
            )
        if cost is not None and not isinstance(cost, Cost):
            raise ArgumentError(
                f"Problem: cost is a {type(cost).__name__}; make one with effort(), running(...) or terminal(...)"
            )
        self.cost = effort() if cost is None else cost
        self.shortest, self.longest = _duration(duration)
        self.periodic = bool(periodic)
        for name, value in (("start", start), ("end", end), ("path", path), ("parameters", parameters)):
            if value is not None and not isinstance(value, Mapping):
                raise ArgumentError(f"Problem: {name} is {value!r}, expected a dictionary by names")
        self.input_values = self._read_inputs(inputs)
        self.parameters = self.read_parameters(parameters)
        reader = Reader(self.plant)
        self.start = reader.conditions("start", start or {})
        self.end = reader.conditions("end", end or {})
        self.limits, self.rates = reader.limits(limits)
        self.path = [path_row(name, given) for name, given in (path or {}).items()]
        self.design = self._read_design(design)
        if integrals is not None and not isinstance(integrals, Mapping):
            raise ArgumentError(
                f"Problem: integrals is {integrals!r}, expected (function, lower, upper) by names"
            )
        self.integrals = [path_row(name, given, "integral") for name, given in (integrals or {}).items()]
        with interrupts_kept():
            consistency.check(self)
        if isinstance(self.plant, Mechanics):
            assert self.model is not None
            closure = close(self, motions)
            if closure is not None and self.design:
                raise UnsupportedError(
                    "Problem: design parameters are not found for models with loops or prescribed joints; solve for values "
                    "of them in turn, by problem.continuation"
                )
            self.plant = Mechanics(self.model, self.plant.driven, closure, elements)
            if closure is not None:
                known = {f"{what} {self.model.speed_names[k]}" for what in "qv" for k in closure.dofs}
                self.limits["state"] = [r for r in self.limits["state"] if r.component not in known]

    def __repr__(self) -> str:
        time = (
            f"{self.shortest:g} s" if not self.is_free else f"{self.shortest:g} to {self.longest:g} s, free"
        )
        return f"<Problem of {self.plant!r}: {time}>"

    def refuse_additions(self, what: str) -> None:
        """For forms of the problem that know a model, its controls and nothing else."""
        s = self.statement
        given = {"forces": s.forces, "design": s.design, "integrals": s.integrals, "inputs": s.inputs}
        fields = isinstance(self.plant, Mechanics) and self.plant.elements is not None and not s.forces
        for name in [*(["gravity"] if fields else []), *(name for name, x in given.items() if x)]:
            raise UnsupportedError(f"{what} does not take `{name}`; choose another transcription, as 'dmoc'")

    @property
    def is_free(self) -> bool:
        """Whether the duration is to be found."""
        return self.shortest != self.longest

    @property
    def is_determined(self) -> bool:
        """Whether the start decides all: it is stated, the duration too, and there are neither controls nor `design`."""
        stated = {row.component for row in self.start if row.is_equation}
        chosen = self.plant.controls or self.design or self.is_free
        return not chosen and stated.issuperset(self.plant.tangent_names)

    @cached_property
    def fine(self) -> tuple[ca.Function, ca.Function, ca.Function]:
        """Functions of short steps, with which solutions are judged: see `alembert.optimal.mesh`."""
        from alembert.optimal.mesh import fine_functions

        return fine_functions(self)

    @property
    def parameter_values(self) -> dict[str, float] | None:
        """By name, for `parameters=` of the model's methods; None where there are none."""
        names = [name for name, _ in self.plant.parameters]
        values = self.parameters[: len(names)].tolist()
        return dict(zip(names, values, strict=True)) if names else None

    def solve(self, steps: int = 100, **options: Any) -> Solution:
        """Solve with `steps` intervals; see `alembert.optimal.solve` for the options."""
        from alembert.optimal.solve import solve

        return solve(self, steps, **options)

    def prepare(self, steps: int = 100, **options: Any) -> PreparedProblem:
        """Transcribe and compile once, to solve many times from other starts, to other ends, with other parameters.

        `prepared = problem.prepare(40)`, then `prepared.solve(start={"q": q, "v": v}, guess=before)`. Options:
        `transcription`, `nodes` and `hessian` as for `solve`.
        """
        from alembert.optimal.prepared import PreparedProblem

        return PreparedProblem(self, steps, **options)

    def replace(self, **changes: Any) -> Problem:
        """The same problem with other arguments: `problem.replace(duration=2.0)`."""
        known = {field.name: getattr(self.statement, field.name) for field in fields(Statement)}
        for name in changes:
            if name not in known:
                raise ArgumentError(unknown("Problem.replace: no argument", name, known))
        return Problem(**known | changes)

    def continuation(
        self, name: str, values: Sequence[Any], steps: int = 100, **options: Any
    ) -> Continuation:
        """Solve for each of `values` of "duration" or of a parameter, each from the solution before.

        See `alembert.optimal.solve`, which takes a function and so changes anything.
        """
        from alembert.optimal.solve import continuation

        known = [k for k, _ in self.plant.parameters]
        if name != "duration" and name not in known:
            raise ArgumentError(unknown("Problem.continuation: no parameter", name, ["duration", *known]))

        def make(value: Any) -> Problem:
            if name == "duration":
                return self.replace(duration=value)
            return self.replace(parameters={**(self.statement.parameters or {}), name: value})

        return continuation(make, values, steps, **options)

    # --- reading what was given ---------------------------------------------------------------------------------

    def read_parameters(self, given: Mapping[str, float] | None) -> Array:
        values = dict(self.plant.parameters)
        for name, value in (given or {}).items():
            if name not in values:
                raise ArgumentError(unknown("Problem: no parameter", name, values))
            values[name] = real("Problem", f"parameter {name!r}", value, "a finite number")
        own = [np.ravel(value) for value in self.input_values.values()]
        return np.concatenate([np.array(list(values.values()), dtype=float), *own])

    def _read_inputs(self, given: Mapping[str, Any] | None) -> dict[str, Array]:
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(f"Problem: inputs is {given!r}, expected numbers or vectors by name")
        found: dict[str, Array] = {}
        taken = {*RESERVED, *MODEL_NAMES, *(name for name, _ in self.plant.parameters)}
        if isinstance(self.plant, System):
            taken |= {*self.plant.states, *self.plant.controls}
        for name, value in (given or {}).items():
            if not str(name).isidentifier() or name in taken:
                raise ArgumentError(
                    f"Problem: inputs: {name!r} is no name for an input; expected an identifier that nothing else has"
                )
            found[name] = input_value("Problem", name, value)
        return found

    def _read_design(self, given: Mapping[str, Bounds] | None) -> dict[int, Row]:
        """By its place among the parameters, the bounds of what is to be found."""
        if given is not None and not isinstance(given, Mapping):
            raise ArgumentError(f"Problem: design is {given!r}, expected bounds of parameters by name")
        names, found = [name for name, _ in self.plant.parameters], {}
        for name, bounds in (given or {}).items():
            if name not in names:
                raise ArgumentError(unknown("Problem: design: no parameter", name, names))
            pair = numbers("Problem", f"design {name!r}", bounds)
            if pair.shape != (2,) or not pair[0] < pair[1] or not np.isfinite(pair).all():
                raise ArgumentError(f"Problem: design {name!r} is {bounds!r}, expected a pair (lower, upper)")
            k = names.index(name)
            found[k] = Row(name, partial(_parameter, k), float(pair[0]), float(pair[1]))
        return found

    def with_design(self, values: Array) -> Problem:
        """The same problem with these values of the parameters that are to be found."""
        found = copy.copy(self)
        found.parameters = self.parameters.copy()
        found.parameters[list(self.design)] = values
        return found

    def other_inputs(self, function: str, given: Mapping[str, Any]) -> dict[str, Array]:
        """The values of all inputs, with those that are given."""
        if not isinstance(given, Mapping):
            raise ArgumentError(f"{function}: inputs is {given!r}, expected numbers or vectors by name")
        found = dict(self.input_values)
        for name, value in given.items():
            if name not in found:
                raise ArgumentError(unknown(f"{function}: the problem has no input", name, found))
            new, size = input_value(function, name, value), found[name].size
            if new.size != size:
                raise ArgumentError(f"{function}: input {name!r} has {new.size} entries, expected {size}")
            found[name] = new
        return found

    def with_inputs(self, given: Mapping[str, Any]) -> Problem:
        """The same problem with these values of its inputs."""
        found = copy.copy(self)
        found.transcribed = {}
        found.input_values = self.other_inputs("with_inputs", given)
        found.parameters = found.read_parameters(self.statement.parameters)
        return found

    def integrands(self, s: Moment) -> ca.SX:
        """Of the cost, and of the integrals that are bounded."""
        return ca.vertcat(self.cost.rate(s), *(row.value(s) for row in self.integrals))

    def moment_inputs(self, p: ca.SX) -> dict[str, ca.SX]:
        """The inputs by name, of p: they follow the parameters of the plant."""
        at, found = len(self.plant.parameters), {}
        for name, value in self.input_values.items():
            found[name] = p[at : at + value.size]
            at += value.size
        return found

    # --- checks -----------------------------------------------------------------------------------------------------

    def settles(self, which: str, row: Row) -> bool:
        """Whether the conditions at an end leave a row of the path nothing to say there: they state all it depends on."""
        rows = self.start if which == "start" else self.end
        stated = {r.component for r in rows if r.is_equation}
        x, u = ca.SX.sym("x", self.plant.chart.point), ca.SX.sym("u", len(self.plant.controls))
        d = ca.SX.sym("d", self.plant.chart.tangent)
        p, T = ca.SX.sym("p", len(self.parameters)), ca.SX.sym("T")
        value = row.value(self.moment(T, self.plant.chart.retract(x, d), u, p, T))
        if ca.depends_on(value, ca.vertcat(u, T)):
            return False
        names = self.plant.tangent_names
        return all(names[k] in stated or not ca.depends_on(value, d[k]) for k in range(d.numel()))

    def moment(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, duration: Any) -> Moment:
        """A moment in the coordinates of the plant."""
        own = self.moment_inputs(p)
        return self.plant.moment(t, x, u, p, duration=duration, _controls=self.plant.controls, **own)


def _parameter(k: int, s: Moment) -> ca.SX:
    return s.parameters[k]


def environment(function: str, model: Model, forces: Any, gravity: Any) -> tuple[Model, Elements | None]:
    """The model under the gravity that is given, and the elements that act on it."""
    inputs = Inputs(gravity=gravity)
    elements = [
        *(() if forces is None else as_sequence(forces)),
        *([inputs.field] if inputs.field is not None else []),
    ]
    try:
        if gravity is not None:
            model = model.replace(gravity=(0, 0, 0) if inputs.field is not None else gravity)
        return model, Elements(model, elements, None) if elements else None
    except (ModelError, ArgumentError) as error:
        raise ArgumentError(f"{function}: {str(error).removeprefix('simulate: ')}") from None


def input_value(function: str, name: str, given: Any) -> Array:
    """A number or a vector, as an array of one axis."""
    try:
        value = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        value = np.empty((0, 0))
    if value.ndim != 1 or not np.isfinite(value).all():
        raise ArgumentError(f"{function}: input {name!r} is {given!r}, expected a finite number or a vector")
    return value


def _duration(given: Any) -> Bounds:
    try:
        low, high = (float(given), float(given)) if np.ndim(given) == 0 else (float(x) for x in given)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (0 < low <= high < np.inf):
        raise ArgumentError(
            f"Problem: duration is {given!r}, expected seconds, or a pair (shortest, longest) with 0 < shortest <= longest; "
            "where it is free, bounds like (0.01, 100) that are not reached do not matter"
        )
    return low, high
