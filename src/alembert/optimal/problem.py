"""An optimal control problem, stated without saying how it will be solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.optimal.closure import close, read_motions
from alembert.optimal.costs import Cost, effort
from alembert.optimal.plant import Mechanics, Moment, System, driven_dofs

if TYPE_CHECKING:
    from alembert.optimal.continuation import Continuation
    from alembert.optimal.solution import Solution

Array = np.ndarray
Bounds = tuple[float, float]
FREE: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Row:
    """lower <= value(moment) <= upper; an equation when both are the same."""

    name: str
    value: Callable[[Moment], ca.SX]
    lower: float
    upper: float
    component: str = ""
    """the component of the state or the control that it bounds, if it bounds just one"""
    point: Any = None
    """the coordinates that a joint on a manifold is to have"""

    @property
    def is_equation(self) -> bool:
        return self.lower == self.upper

    @property
    def is_bound(self) -> bool:
        return not self.is_equation and (np.isfinite(self.lower) or np.isfinite(self.upper))


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
    of the model or the system, by name.
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
    ) -> None:
        own = {"start": start, "end": end, "cost": cost, "limits": limits, "path": path, "actuated": actuated}
        self._given: dict[str, Any] = {
            **{"plant": plant, "duration": duration, **own},
            **{"prescribed": prescribed, "periodic": periodic, "parameters": parameters},
        }
        motions: dict[str, ca.Function] = {}
        if isinstance(plant, Model):
            driven = driven_dofs(plant, actuated, prescribed or ())
            motions = read_motions(plant, prescribed or {}, driven)
            self.plant: Mechanics | System = Mechanics(plant, driven)
            self.model: Model | None = plant
        elif isinstance(plant, System):
            for name, value in (("actuated", actuated), ("prescribed", prescribed)):
                if value is not None:
                    raise ArgumentError(
                        f"Problem: `{name}` is for models; a System names its controls itself"
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
        self.parameters = self._parameter_values(parameters)
        self.start = self._conditions("start", start or {})
        self.end = self._conditions("end", end or {})
        self.limits, self.rates = self._limits(limits)
        self.path = [_path_row(name, given) for name, given in (path or {}).items()]
        self._check_costs()
        self._check_consistency()
        if isinstance(self.plant, Mechanics):
            assert self.model is not None
            closure = close(self, motions)
            self.plant = Mechanics(self.model, self.plant.driven, closure)
            if closure is not None:
                known = {f"{what} {self.model.speed_names[k]}" for what in "qv" for k in closure.dofs}
                self.limits["state"] = [r for r in self.limits["state"] if r.component not in known]

    def __repr__(self) -> str:
        time = (
            f"{self.shortest:g} s" if not self.is_free else f"{self.shortest:g} to {self.longest:g} s, free"
        )
        return f"<Problem of {self.plant!r}: {time}>"

    @property
    def is_free(self) -> bool:
        """Whether the duration is to be found."""
        return self.shortest != self.longest

    def solve(self, steps: int = 100, **options: Any) -> Solution:
        """Solve with `steps` intervals; see `alembert.optimal.solve` for the options."""
        from alembert.optimal.solve import solve

        return solve(self, steps, **options)

    def replace(self, **changes: Any) -> Problem:
        """The same problem with other arguments: `problem.replace(duration=2.0)`."""
        for name in changes:
            if name not in self._given:
                raise ArgumentError(unknown("Problem.replace: no argument", name, self._given))
        return Problem(**(self._given | changes))

    def continuation(
        self, name: str, values: Sequence[Any], steps: int = 100, **options: Any
    ) -> Continuation:
        """Solve for each of `values` of "duration" or of a parameter, each from the solution before.

        See `alembert.optimal.continuation`, which takes a function and so changes anything.
        """
        from alembert.optimal.continuation import continuation

        known = [k for k, _ in self.plant.parameters]
        if name != "duration" and name not in known:
            raise ArgumentError(unknown("Problem.continuation: no parameter", name, ["duration", *known]))

        def make(value: Any) -> Problem:
            if name == "duration":
                return self.replace(duration=value)
            return self.replace(parameters={**(self._given["parameters"] or {}), name: value})

        return continuation(make, values, steps, **options)

    # --- reading what was given ---------------------------------------------------------------------------------

    def _parameter_values(self, given: Mapping[str, float] | None) -> Array:
        values = dict(self.plant.parameters)
        for name, value in (given or {}).items():
            if name not in values:
                raise ArgumentError(unknown("Problem: no parameter", name, values))
            values[name] = float(value)
        return np.array(list(values.values()), dtype=float)

    def _conditions(self, which: str, given: Mapping[str, Any]) -> list[Row]:
        rows: list[Row] = []
        for name, value in given.items():
            if isinstance(value, tuple) and len(value) == 2 and callable(value[0]):
                low, high = _pair(f"Problem: {which} {name!r}", value[1], symmetric=False)
                rows.append(Row(name, _scalar(name, value[0]), low, high))
            elif self.model is None:
                assert isinstance(self.plant, System)
                if name not in self.plant.states:
                    raise ArgumentError(unknown(f"Problem: {which}: no state", name, self.plant.states))
                low, high = _pair(f"Problem: {which} {name!r}", value, symmetric=False)
                rows.append(Row(name, _attribute(name), low, high, name))
            elif name == "q":
                rows += self._configuration(which, value)
            elif name == "v":
                rows += self._speeds(which, value)
            else:
                raise ArgumentError(
                    f"Problem: {which}: {name!r} is neither 'q' nor 'v'; a condition of one's own is a pair of a function "
                    "and its value"
                )
        return [row for row in rows if row.is_equation or row.is_bound]

    def _configuration(self, which: str, given: Any) -> list[Row]:
        model = self.model
        assert model is not None
        rows: list[Row] = []
        for joint, value in self._by_joint(f"{which} q", given, "nq").items():
            kind, sq, sv = model.joint(joint).type, model.q_slice(joint), model.v_slice(joint)
            names = [f"q {name}" for name in model.speed_names[sv]]
            if kind.is_vector_space:
                for k, entry in enumerate(_entries(f"Problem: {which} q of {joint!r}", value, kind.nq)):
                    low, high = _pair(f"Problem: {which} q of {joint!r}", entry, symmetric=False)
                    rows.append(Row(names[k], _component("q", sq.start + k), low, high, names[k]))
                continue
            if isinstance(value, Mapping):
                value, names = _parts(f"Problem: {which} q of {joint!r}", kind, value, names)
            point = np.asarray(value, dtype=float)
            if point.shape != (kind.nq,):
                raise ArgumentError(
                    f"Problem: {which} q of {joint!r} has shape {point.shape}, expected {kind.nq} coordinates; "
                    "a range needs a "
                    "condition of one's own"
                )
            norm = kind.integrate(point, np.zeros(kind.nv))
            for k in (k for k, name in enumerate(names) if name):
                rows.append(Row(names[k], _turn(kind, norm, sq, k), 0.0, 0.0, names[k], norm))
        return rows

    def _speeds(self, which: str, given: Any) -> list[Row]:
        model = self.model
        assert model is not None
        rows: list[Row] = []
        for joint, value in self._by_joint(f"{which} v", given, "nv").items():
            s = model.v_slice(joint)
            for k, entry in enumerate(_entries(f"Problem: {which} v of {joint!r}", value, s.stop - s.start)):
                low, high = _pair(f"Problem: {which} v of {joint!r}", entry, symmetric=False)
                name = f"v {model.speed_names[s.start + k]}"
                rows.append(Row(name, _component("v", s.start + k), low, high, name))
        return rows

    def _by_joint(self, what: str, given: Any, size: str) -> dict[str, Any]:
        model = self.model
        assert model is not None
        moving = [joint for joint in model.joints if joint.type.nv]
        if isinstance(given, Mapping):
            for name in given:
                if name not in {joint.name for joint in moving}:
                    raise ArgumentError(unknown(f"Problem: {what}: no joint", name, [j.name for j in moving]))
            return dict(given)
        expected = getattr(model, size)
        if np.ndim(given) == 0 and size == "nv":
            given = np.full(expected, float(given))
        values = np.asarray(given, dtype=float)
        if values.shape != (expected,):
            raise ArgumentError(
                f"Problem: {what} has shape {values.shape}, expected ({expected},) or a dictionary by joint"
            )
        slices = {j.name: model.q_slice(j.name) if size == "nq" else model.v_slice(j.name) for j in moving}
        return {name: values[s] for name, s in slices.items()}

    def _limits(self, given: Mapping[str, Any] | str | None) -> tuple[dict[str, list[Row]], list[Bounds]]:
        """Rows on the state and on the controls, and the bounds on the rates of the controls."""
        controls = self.plant.controls
        rows: dict[str, list[Row]] = {"state": [], "control": []}
        rates = [FREE] * len(controls)
        if given is None or (self.model is None and given == "model"):
            return rows, rates
        if given == "model":
            given = self._own_limits()
        elif not isinstance(given, Mapping):
            raise ArgumentError(f"Problem: limits is {given!r}, expected 'model', None or a dictionary")
        bounds = dict.fromkeys(controls, FREE)
        known = (
            ("q", "v", "tau", "rate")
            if self.model is not None
            else (*self.plant.tangent_names, *controls, "rate")
        )
        for kind, value in given.items():
            if kind not in known:
                raise ArgumentError(unknown("Problem: limits: no quantity", kind, known))
            if kind == "rate":
                for name, pair in self._control_bounds("rate", value).items():
                    rates[controls.index(name)] = pair
            elif kind == "tau":
                bounds |= self._control_bounds("tau", value)
            elif kind in ("q", "v") and self.model is not None:
                rows["state"] += self._state_limits(kind, value)
            elif kind in controls:
                bounds[kind] = _pair(f"Problem: limits {kind!r}", value)
            else:
                low, high = _pair(f"Problem: limits {kind!r}", value)
                rows["state"].append(Row(kind, _attribute(kind), low, high, kind))
        for k, (name, (low, high)) in enumerate(bounds.items()):
            label = f"tau {name}" if self.model is not None else name
            rows["control"].append(Row(label, _component("controls", k), low, high, name))
        return {
            kind: [row for row in found if row.is_bound or row.is_equation] for kind, found in rows.items()
        }, rates

    def _own_limits(self) -> dict[str, Any]:
        model = self.model
        assert model is not None
        found: dict[str, Any] = {"q": {}, "v": {}, "tau": {}}
        for joint in model.joints:
            sq, sv = model.q_slice(joint.name), model.v_slice(joint.name)
            if joint.type.nv and joint.type.is_vector_space:
                found["q"][joint.name] = [*zip(model.lower_limits[sq], model.upper_limits[sq], strict=True)]
            if joint.type.nv:
                found["v"][joint.name] = [(-b, b) for b in model.velocity_limits[sv]]
        assert isinstance(self.plant, Mechanics)
        efforts = {name: (-b, b) for name, b in zip(model.speed_names, model.effort_limits, strict=True)}
        for a in model.actuators:
            name, gear = (
                model.speed_names[model.v_slice(a.joint).start + a.dof],
                float(model_value(model, a.gear)),
            )
            own = sorted(gear * limit for limit in a.limits)
            efforts[name] = (max(efforts[name][0], own[0]), min(efforts[name][1], own[1]))
        found["tau"] = {name: efforts[name] for name in self.plant.controls}
        return found

    def _state_limits(self, kind: str, given: Any) -> list[Row]:
        model = self.model
        assert model is not None
        if not isinstance(given, Mapping):
            given = {joint.name: given for joint in model.joints if joint.type.nv}
        rows = []
        for joint, value in self._by_joint(f"limits {kind}", given, "nv").items():
            s = model.v_slice(joint)
            if kind == "q" and not model.joint(joint).type.is_vector_space:
                raise ArgumentError(
                    f"Problem: limits q of {joint!r}: a {type(model.joint(joint).type).__name__} joint has no "
                    "coordinate to bound; state a path constraint"
                )
            start = model.q_slice(joint).start if kind == "q" else s.start
            entries = _entries(f"Problem: limits {kind} of {joint!r}", value, s.stop - s.start)
            for k, entry in enumerate(entries):
                low, high = _pair(f"Problem: limits {kind} of {joint!r}", entry)
                name = f"{kind} {model.speed_names[s.start + k]}"
                rows.append(Row(name, _component(kind, start + k), low, high, name))
        return rows

    def _control_bounds(self, what: str, given: Any) -> dict[str, Bounds]:
        controls = self.plant.controls
        if not isinstance(given, Mapping):
            return {name: _pair(f"Problem: limits {what}", given) for name in controls}
        found: dict[str, Bounds] = {}
        for name, value in given.items():
            names = [name] if name in controls else self._controls_of(name)
            if not names:
                raise ArgumentError(unknown(f"Problem: limits {what}: no control", name, controls))
            entries = _entries(f"Problem: limits {what} of {name!r}", value, len(names))
            for own, entry in zip(names, entries, strict=True):
                found[own] = _pair(f"Problem: limits {what} of {name!r}", entry)
        return found

    def _controls_of(self, joint: str) -> list[str]:
        if self.model is None or joint not in {j.name for j in self.model.joints}:
            return []
        s = self.model.v_slice(joint)
        return [name for name in self.model.speed_names[s] if name in self.plant.controls]

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
        return self.plant.moment(t, x, u, p, duration=duration, _controls=self.plant.controls)

    def _check_costs(self) -> None:
        """Run every function once, so that what is wrong is said before solving."""
        x, u = ca.SX.sym("x", self.plant.chart.point), ca.SX.sym("u", len(self.plant.controls))
        p, T = ca.SX.sym("p", len(self.parameters)), ca.SX.sym("T")
        s = self.moment(T, x, u, p, T)
        if not self.cost.running and not self.cost.terminal:
            raise ArgumentError("Problem: the cost has no terms; effort() is the usual one")
        self.cost.rate(s)
        for term, where in (
            (self.cost.final(s), "the terminal cost"),
            *((r.value(s), f"end {r.name!r}") for r in self.end),
        ):
            if len(self.plant.controls) and ca.depends_on(term, u):
                raise ArgumentError(
                    f"Problem: {where} depends on the controls, which have no value at the end"
                )
        for row in (*self.start, *self.path):
            row.value(s)

    def _check_consistency(self) -> None:
        bounds = {row.component: row for row in (*self.limits["state"],) if row.component}
        for which, rows in (("start", self.start), ("end", self.end)):
            seen: dict[str, Row] = {}
            for row in rows:
                if not row.lower <= row.upper:
                    raise ArgumentError(
                        f"Problem: {which} {row.name!r}: {row.lower:g} is above {row.upper:g}"
                    )
                limit = bounds.get(row.component) if row.component else None
                if limit is not None and (row.lower > limit.upper or row.upper < limit.lower):
                    raise ArgumentError(
                        f"Problem: {which} {row.name!r} is {_shown(row)}, outside its limits {_shown(limit)}; "
                        "nothing can satisfy both"
                    )
                if row.component and row.component in seen:
                    raise ArgumentError(f"Problem: {which} {row.name!r} is stated twice")
                seen[row.component] = row
        for row in (*self.limits["state"], *self.limits["control"], *self.path):
            if row.lower > row.upper:
                raise ArgumentError(f"Problem: limits of {row.name!r}: {row.lower:g} is above {row.upper:g}")
        for row in self.path:
            for which in ("start", "end"):
                self._check_path(which, row)
        if self.periodic:
            both = {r.component: r for r in self.start if r.is_equation and r.component}
            for row in self.end:
                other = both.get(row.component)
                if other is not None and row.is_equation and other.lower != row.lower:
                    raise ArgumentError(
                        f"Problem: periodic, but {row.name!r} starts at {other.lower:g} and ends at {row.lower:g}"
                    )
        if not self.plant.controls:
            raise ArgumentError("Problem: there are no controls; name actuated joints, or simulate instead")

    def _check_path(self, which: str, row: Row) -> None:
        """Refuse an end that is stated outside the path."""
        if not self.settles(which, row):
            return
        from alembert.optimal.guess import straight

        x, p = ca.SX.sym("x", self.plant.chart.point), ca.SX.sym("p", len(self.parameters))
        u = ca.SX.zeros(len(self.plant.controls))
        f = ca.Function("row", [x, p], [row.value(self.moment(ca.SX(0), x, u, p, ca.SX(1)))])
        point = straight(self).points[0 if which == "start" else -1]
        rows = self.start if which == "start" else self.end
        stated = {r.component: r.lower for r in rows if r.is_equation and r.point is None}
        nq = self.plant.chart.nq
        for k, name in enumerate(self.plant.tangent_names):
            if name in stated and (self.model is None or name[:2] == "v "):
                point[k if self.model is None else nq + k - self.model.nv] = stated[name]
        value = float(f(point, self.parameters))
        off = max(row.lower - value, value - row.upper)
        if off > 1e-7 * max(1.0, abs(value)):
            raise ArgumentError(
                f"Problem: the {which} has {row.name!r} = {value:g}, outside the path's {_shown(row)}; nothing can "
                "satisfy both"
            )


def model_value(model: Model, scalar: Any) -> float:
    """A number, or the value of an expression of parameters."""
    return float(scalar) if isinstance(scalar, int | float) else float(scalar.value(model.parameter_values))


def _duration(given: Any) -> Bounds:
    try:
        low, high = (float(given), float(given)) if np.ndim(given) == 0 else (float(x) for x in given)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (0 < low <= high < np.inf):
        raise ArgumentError(
            f"Problem: duration is {given!r}, expected seconds, or a pair (shortest, longest)"
        )
    return low, high


def _pair(what: str, given: Any, *, symmetric: bool = True) -> Bounds:
    """(lower, upper) from a pair or a number: one value, or a bound on both sides."""
    try:
        if given is None:
            return FREE
        if np.ndim(given) == 0:
            value = float(given)
            low, high = (-abs(value), abs(value)) if symmetric else (value, value)
        else:
            low, high = (float(x) if x is not None else f for x, f in zip(given, FREE, strict=True))
    except (TypeError, ValueError):
        low = high = np.nan
    if np.isnan(low) or np.isnan(high):
        raise ArgumentError(f"{what} is {given!r}, expected a number or a pair (lower, upper)")
    return low, high


def _entries(what: str, given: Any, count: int) -> list[Any]:
    """One entry per degree of freedom; a number or a pair stands for all of them."""
    if np.ndim(given) == 0 or (isinstance(given, tuple) and len(given) == 2):
        return (
            [given] * count if np.ndim(given) == 0 or count == 1 or isinstance(given, tuple) else list(given)
        )
    entries = list(given)
    if len(entries) != count:
        raise ArgumentError(f"{what} has {len(entries)} entries, expected {count}")
    return entries


def _parts(what: str, kind: Any, given: Mapping[str, Any], names: list[str]) -> tuple[Array, list[str]]:
    """Coordinates of a free joint of which the orientation or the position is stated; other rows lose their names."""
    point = np.array(kind.neutral(), dtype=float)
    if kind.nv != 6:
        raise ArgumentError(
            f"{what}: parts are for joints that turn and move; this one is {type(kind).__name__}"
        )
    places = {"position": (slice(0, 3), (3, 4, 5)), "orientation": (slice(3, 7), (0, 1, 2))}
    kept: set[int] = set()
    for name, value in given.items():
        if name not in places:
            raise ArgumentError(unknown(f"{what}: no part", name, places))
        coordinates, rows = places[name]
        entries = np.asarray(value, dtype=float)
        if entries.shape != point[coordinates].shape:
            raise ArgumentError(
                f"{what}: {name} has shape {entries.shape}, expected {point[coordinates].shape}"
            )
        point[coordinates] = entries
        kept |= set(rows)
    return point, [name if k in kept else "" for k, name in enumerate(names)]


def _shown(row: Row) -> str:
    return f"{row.lower:g}" if row.is_equation else f"{row.lower:g} .. {row.upper:g}"


def _attribute(name: str) -> Callable[[Moment], ca.SX]:
    return lambda s: getattr(s, name)


def _component(name: str, k: int) -> Callable[[Moment], ca.SX]:
    return lambda s: getattr(s, name)[k]


def _turn(kind: Any, point: Array, sq: slice, k: int) -> Callable[[Moment], ca.SX]:
    return lambda s: kind.difference(ca.SX(point), s.q[sq])[k]


def _scalar(name: str, function: Callable[[Moment], Any]) -> Callable[[Moment], ca.SX]:
    def value(s: Moment) -> ca.SX:
        found = ca.SX(function(s))
        if not found.is_scalar():
            raise ArgumentError(f"Problem: {name!r} has shape {found.shape}, expected one number")
        return found

    return value


def _path_row(name: str, given: Any) -> Row:
    if not (isinstance(given, tuple) and len(given) == 3 and callable(given[0])):
        raise ArgumentError(
            f"Problem: path {name!r} is {given!r}, expected (function of a moment, lower, upper)"
        )
    low, high = _pair(f"Problem: path {name!r}", given[1:])
    return Row(name, _scalar(name, given[0]), low, high)
