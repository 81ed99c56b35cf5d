"""Conditions and limits as a user states them, read into rows; and costs, terms that add up.

effort() + 0.1 * duration()
terminal(lambda s: -s.velocity("hand")[1])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import real
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.model.space import Owner
from alembert.optimal.plant import FREE, Bounds, Mechanics, Moment, Row, System, numpy_functions

Array = np.ndarray
UNIT = 1e-2
"""how far the norm of a quaternion may be from 1; nearer ones are normalised"""


class Reader:
    """Reads what is stated about `plant`."""

    def __init__(self, plant: Mechanics | System) -> None:
        self.plant = plant
        self.model: Model | None = plant.model if isinstance(plant, Mechanics) else None

    def conditions(self, which: str, given: Mapping[str, Any]) -> list[Row]:
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
        for joint, value in self.by_joint(f"{which} q", given, "nq").items():
            owner = self._owners[joint]
            kind, sq, sv = owner.type, owner.q, owner.v
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
            _unit(f"Problem: {which} q of {joint!r}", point)
            norm = kind.integrate(point, np.zeros(kind.nv))
            for k in (k for k, name in enumerate(names) if name):
                rows.append(
                    Row(names[k], _turn(kind, norm, sq, k), 0.0, 0.0, names[k], norm, _about(kind, sq, k))
                )
        return rows

    def _speeds(self, which: str, given: Any) -> list[Row]:
        model = self.model
        assert model is not None
        rows: list[Row] = []
        for joint, value in self.by_joint(f"{which} v", given, "nv").items():
            s = self._owners[joint].v
            for k, entry in enumerate(_entries(f"Problem: {which} v of {joint!r}", value, s.stop - s.start)):
                low, high = _pair(f"Problem: {which} v of {joint!r}", entry, symmetric=False)
                name = f"v {model.speed_names[s.start + k]}"
                rows.append(Row(name, _component("v", s.start + k), low, high, name))
        return rows

    def by_joint(self, what: str, given: Any, size: str) -> dict[str, Any]:
        model = self.model
        assert model is not None
        if isinstance(given, Mapping):
            for name in given:
                if name not in self._owners:
                    raise ArgumentError(unknown(f"Problem: {what}: no joint", name, self._owners))
            return dict(given)
        expected = getattr(model, size)
        try:
            values = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"Problem: {what} is {given!r}, expected {expected} numbers, 0 or a dictionary by joint"
            ) from None
        if values.ndim == 0 and size == "nv":
            values = np.full(expected, values)
        elif values.ndim == 0 and values == 0:
            values = model.neutral()
        if values.shape != (expected,):
            raise ArgumentError(
                f"Problem: {what} has shape {values.shape}, expected ({expected},) or a dictionary by joint"
            )
        return {name: values[o.q if size == "nq" else o.v] for name, o in self._owners.items()}

    @cached_property
    def _owners(self) -> dict[str, Owner]:
        """Joints, and flexible bodies with their modes, by name."""
        return {} if self.model is None else {o.name: o for o in self.model.space if o.type.nv}

    def limits(self, given: Mapping[str, Any] | str | None) -> tuple[dict[str, list[Row]], list[Bounds]]:
        """Rows on the state and on the controls, and the bounds on the rates of the controls."""
        rows, rates = self.all_limits(given)
        kept = {
            kind: [row for row in found if row.is_bound or row.is_equation] for kind, found in rows.items()
        }
        return kept, rates

    def all_limits(self, given: Mapping[str, Any] | str | None) -> tuple[dict[str, list[Row]], list[Bounds]]:
        """`limits`, with those that are infinite on both sides."""
        controls = self.plant.controls
        rows: dict[str, list[Row]] = {"state": [], "control": []}
        rates = [FREE] * len(controls)
        if given is None or (self.model is None and given == "model"):
            return rows, rates
        if given == "model":
            given = self._own_limits()
        elif not isinstance(given, Mapping):
            raise ArgumentError(f"Problem: limits is {given!r}, expected 'model', None or a dictionary")
        bounds: dict[str, Bounds] = {}
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
        for k, name in enumerate(controls):
            if name in bounds:
                label = f"tau {name}" if self.model is not None else name
                rows["control"].append(Row(label, _component("controls", k), *bounds[name], name))
        return rows, rates

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
            given = dict.fromkeys(self._owners, given)
        rows = []
        for joint, value in self.by_joint(f"limits {kind}", given, "nv").items():
            owner = self._owners[joint]
            s = owner.v
            if kind == "q" and not owner.type.is_vector_space:
                raise ArgumentError(
                    f"Problem: limits q of {joint!r}: a {type(owner.type).__name__} joint has no "
                    "coordinate to bound; state a path constraint"
                )
            start = owner.q.start if kind == "q" else s.start
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


def model_value(model: Model, scalar: Any) -> float:
    """A number, or the value of an expression of parameters."""
    return float(scalar) if isinstance(scalar, int | float) else float(scalar.value(model.parameter_values))


def _pair(what: str, given: Any, *, symmetric: bool = True) -> Bounds:
    """(lower, upper) from a pair or a number: one value, or a bound on both sides."""
    try:
        if given is None:
            return FREE
        if np.ndim(given) == 0:
            value = float(given)
            low, high = (-value, value) if symmetric else (value, value)
        else:
            low, high = (float(x) if x is not None else f for x, f in zip(given, FREE, strict=True))
    except (TypeError, ValueError):
        low = high = np.nan
    if np.isnan(low) or np.isnan(high) or (low == high and np.isinf(low)):
        raise ArgumentError(f"{what} is {given!r}, expected a number or a pair (lower, upper)")
    if symmetric and np.ndim(given) == 0 and high < 0:
        raise ArgumentError(
            f"{what} is {given!r}; one number bounds both sides, from its negative to itself, so it is 0 or more"
        )
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


def _attribute(name: str) -> Callable[[Moment], ca.SX]:
    return lambda s: getattr(s, name)


def _component(name: str, k: int) -> Callable[[Moment], ca.SX]:
    return lambda s: getattr(s, name)[k]


def _turn(kind: Any, point: Array, sq: slice, k: int) -> Callable[[Moment], ca.SX]:
    return lambda s: kind.difference(ca.SX(point), s.q[sq])[k]


def _about(kind: Any, sq: slice, k: int) -> Callable[[Moment, ca.SX], ca.SX]:
    return lambda s, point: kind.difference(point, s.q[sq])[k]


def _scalar(name: str, function: Callable[[Moment], Any]) -> Callable[[Moment], ca.SX]:
    def value(s: Moment) -> ca.SX:
        with numpy_functions():
            found = ca.SX(function(s))
        if not found.is_scalar():
            raise ArgumentError(f"Problem: {name!r} has shape {found.shape}, expected one number")
        return found

    return value


def path_row(name: str, given: Any, what: str = "path", function: str = "Problem") -> Row:
    if not (isinstance(given, tuple) and len(given) == 3 and callable(given[0])):
        raise ArgumentError(
            f"{function}: {what} {name!r} is {given!r}, expected (function of a moment, lower, upper); for an equation "
            "both are the same number"
        )
    low, high = _pair(f"{function}: {what} {name!r}", given[1:])
    return Row(name, _scalar(name, given[0]), low, high)


def _unit(what: str, point: Array) -> None:
    """Refuse coordinates of a joint that turns which have no unit quaternion in their last four."""
    norm = float(np.linalg.norm(point[-4:])) if len(point) >= 4 else 1.0
    if not (np.isfinite(point).all() and abs(norm - 1) <= UNIT):
        raise ArgumentError(f"{what} has a quaternion of norm {norm:.4g}, expected 1 (w, x, y, z)")


Term = Callable[[Moment], Any]


@dataclass(frozen=True)
class Cost:
    """J = integral of the `running` terms over time + the `terminal` terms at the end."""

    running: tuple[Term, ...] = ()
    terminal: tuple[Term, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.running + other.running, self.terminal + other.terminal)

    def __mul__(self, factor: float) -> Cost:
        real("cost", "factor", factor, "a number")
        scaled = [tuple(_scaled(f, float(factor)) for f in terms) for terms in (self.running, self.terminal)]
        return Cost(*scaled)

    __rmul__ = __mul__

    def rate(self, s: Moment) -> ca.SX:
        """The running terms together."""
        return _total("running", self.running, s)

    def final(self, s: Moment) -> ca.SX:
        """The terminal terms together."""
        return _total("terminal", self.terminal, s)


def running(term: Term) -> Cost:
    """The integral of `term(s)` over time; see `Moment` for what s offers."""
    return Cost(running=(_callable("running", term),))


def terminal(term: Term) -> Cost:
    """`term(s)` at the end."""
    return Cost(terminal=(_callable("terminal", term),))


def effort(weight: float | Mapping[str, float] = 1.0) -> Cost:
    """Half the integral of the squares of the controls; `weight` is one number, or one for some controls by name."""

    for value in weight.values() if isinstance(weight, Mapping) else (weight,):
        real("effort", "weight", value, "a number")
        real("effort", "weight", value, "0 or more: effort is made small", least=0.0)

    def term(s: Moment) -> ca.SX:
        if not isinstance(weight, Mapping):
            return float(weight) / 2 * ca.sumsqr(s.controls)
        names = s._controls
        unknown = [name for name in weight if name not in names]
        if unknown:
            raise ArgumentError(
                f"effort: there is no control {unknown[0]!r}; controls are {', '.join(names)}"
            )
        return sum(float(w) / 2 * s.controls[names.index(name)] ** 2 for name, w in weight.items())

    return Cost(running=(term,))


def duration(weight: float = 1.0) -> Cost:
    """The time that the motion takes."""
    real("duration", "weight", weight, "a number")
    return Cost(terminal=(lambda s: float(weight) * s.duration,))


def final_momentum(frame: str, direction: Any, mass: float = 1.0) -> Cost:
    """Less the momentum along `direction` of a point mass [kg] at a frame's origin at the end: it becomes large.

    `direction` is a vector in the world, whose length does not count.
    """
    along = np.asarray(direction, dtype=float)
    length = np.linalg.norm(along) if along.shape == (3,) else np.nan
    if not (np.isfinite(length) and length > 0):
        raise ArgumentError(f"final_momentum: direction is {direction!r}, expected three numbers, not all 0")
    if not (np.isfinite(mass) and mass > 0):
        raise ArgumentError(f"final_momentum: mass is {mass!r}, expected a positive number [kg]")
    return Cost(terminal=(lambda s: -float(mass) * ca.dot(ca.SX(along / length), s.velocity(frame)),))


def tracking(
    q: Callable[[Any], Any] | None = None,
    v: Callable[[Any], Any] | None = None,
    *,
    q_weight: float = 1.0,
    v_weight: float = 1.0,
) -> Cost:
    """Half the integral of the squared distance from a motion given as CasADi expressions of the time t."""
    if q is None and v is None:
        raise ArgumentError("tracking: expected q or v, a function of the time")
    for name, motion, weight in (("q", q, q_weight), ("v", v, v_weight)):
        if motion is not None and not callable(motion):
            raise ArgumentError(
                f"tracking: {name} is {motion!r}, expected a function of the time that returns CasADi expressions"
            )
        real("tracking", f"{name}_weight", weight, "a number")

    def term(s: Moment) -> ca.SX:
        total = ca.SX(0)
        if q is not None:
            total += q_weight / 2 * ca.sumsqr(s.model.symbolic.difference(_column(q(s.t)), s.q))
        if v is not None:
            total += v_weight / 2 * ca.sumsqr(s.v - _column(v(s.t)))
        return total

    return Cost(running=(term,))


def _column(value: Any) -> ca.SX:
    if isinstance(value, list | tuple):
        return ca.vertcat(*(ca.SX(x) for x in value))
    return ca.SX(np.asarray(value, dtype=float)) if isinstance(value, np.ndarray) else ca.SX(value)


def _scaled(term: Term, factor: float) -> Term:
    return lambda s: factor * term(s)


def _callable(name: str, term: Any) -> Term:
    if not callable(term):
        raise ArgumentError(f"{name}: {term!r} is no function; expected one that takes a moment `s`")
    return term


def _total(kind: str, terms: tuple[Term, ...], s: Moment) -> ca.SX:
    total = ca.SX(0)
    for term in terms:
        with numpy_functions():
            value = ca.SX(term(s))
        if not value.is_scalar():
            raise ArgumentError(f"cost: a {kind} term has shape {value.shape}, expected one number")
        total = total + value
    return total
