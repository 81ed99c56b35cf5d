"""Who owns which coordinate of a model, and the manifold that they form together.

Coordinates q and speeds v are laid out owner by owner: the joints in tree order (and, when bodies have coordinates of their
own, these after the joint that moves the body). Configurations need not add: q moves along tangent displacements,

    q1 = integrate(q0, e),     e = difference(q0, q1),     q' = rate(q, v)                          (1)

About a configuration q0 the displacement e is a chart of the configurations near it. With speeds v and T(e) the inverse of
the right Jacobian of the exponential map,

    e' = T(e) v                                                                                     (2)

For the error e = difference(q0, q) of a motion with speeds v0 + dv against the nominal one q0, v0

    e' = dv + N(q0, v0) e + ...                                                                     (3)

T is 1 and N is 0 where coordinates simply add. Both follow from the owner's `difference`, `integrate` and `rate` by
differentiation, so that a new joint type needs nothing more.

The functions (1) take arrays or CasADi expressions of one state; `model.integrate` and its like are compiled, for batches.

Random configurations, which follow the couplings of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, numbers, unknown
from alembert.errors import ArgumentError
from alembert.expression import evaluate
from alembert.joints import JointType, Limits
from alembert.joints.joint import ModalCoordinates

if TYPE_CHECKING:
    from alembert.model.elements import Body, Joint
    from alembert.model.model import Model


Array = np.ndarray
_TRIES = 1000


def random_configuration(model: Model, rng: np.random.Generator) -> Array:
    """Of samples that leave limits of coupled joints, the one that leaves them least."""
    if not model.couplings:
        return model.space.random(rng)
    best, least = np.zeros(0), np.inf
    for _ in range(_TRIES):
        q = coupled(model, model.space.random(rng))
        beyond = float(np.maximum(model.lower_limits - q, q - model.upper_limits).max(initial=0.0))
        if beyond < least:
            best, least = q, beyond
        if beyond <= 1e-12:
            break
    return best


def coupled(model: Model, q: Array) -> Array:
    """Coordinates that follow the couplings, R q = b: from their masters; where these go round, the nearest."""
    values, count = model.parameter_values, len(model.couplings)
    R, b = np.zeros((count, model.nq)), np.zeros(count)
    at = [model.q_slice(coupling.joint).start for coupling in model.couplings]
    for k, coupling in enumerate(model.couplings):
        b[k] = evaluate(coupling.offset, values)
        R[k, at[k]] = 1.0
        for master, ratio in zip(coupling.masters, coupling.ratios, strict=True):
            R[k, model.q_slice(master).start] -= evaluate(ratio, values)
    q, missing = q.copy(), R @ q - b
    if len(set(at)) == count and abs(np.linalg.det(R[:, at])) > 1e-9:
        q[at] -= np.linalg.solve(R[:, at], missing)
    else:
        q -= np.linalg.lstsq(R, missing, rcond=None)[0]
    return q


@dataclass(frozen=True)
class Owner:
    """A joint, or a body with modes, with the places of its coordinates in q and of its speeds in v."""

    name: str
    type: JointType
    limits: Limits
    q: slice
    v: slice

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        return self._labels(self.type.coordinates)

    @property
    def speed_names(self) -> tuple[str, ...]:
        return self._labels(self.type.speeds)

    def _labels(self, entries: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        if len(entries) == 1 and not isinstance(self.type, ModalCoordinates):
            return (self.name,)
        return tuple(f"{self.name}.{label}" for label, _ in entries)


class Space:
    """All coordinates of a model: iterating gives their owners in order, those without coordinates among them."""

    def __init__(self, joints: Sequence[Joint], bodies: Sequence[Body]) -> None:
        """`bodies` are those that the joints move, in the same order."""
        self.nq = self.nv = 0
        owners: list[Owner] = []
        of_joints: list[Owner] = []
        self.of_bodies: dict[str, Owner] = {}
        """those of bodies with modes, by the name of the body"""
        for joint, body in zip(joints, bodies, strict=True):
            of_joints.append(self._place(joint.name, joint.type, joint.limits))
            owners.append(of_joints[-1])
            if body.flexible is not None:
                self.of_bodies[body.name] = self._place(body.name, body.flexible.coordinates, Limits())
                owners.append(self.of_bodies[body.name])
        self.owners, self._of_joints = tuple(owners), tuple(of_joints)

    def _place(self, name: str, kind: JointType, limits: Limits) -> Owner:
        q, v = self.nq, self.nv
        self.nq, self.nv = q + kind.nq, v + kind.nv
        return Owner(name, kind, limits, slice(q, self.nq), slice(v, self.nv))

    def __iter__(self) -> Iterator[Owner]:
        return iter(self.owners)

    def __len__(self) -> int:
        return len(self.owners)

    def __getitem__(self, index: int) -> Owner:
        """That of the joint with this index."""
        return self._of_joints[index]

    @cached_property
    def restricted(self) -> tuple[Owner, ...]:
        """Those that do not take any numbers as coordinates (quaternions have a length)."""
        return tuple(o for o in self if type(o.type).problem is not JointType.problem)

    # --- names, units and limits ------------------------------------------------------------------------------

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(name for owner in self for name in owner.coordinate_names)

    @cached_property
    def speed_names(self) -> tuple[str, ...]:
        return tuple(name for owner in self for name in owner.speed_names)

    @cached_property
    def joint_speed_names(self) -> tuple[str, ...]:
        """Without those of modes, at which nothing can act directly."""
        return tuple(name for owner in self._of_joints for name in owner.speed_names)

    @cached_property
    def coordinate_units(self) -> tuple[str, ...]:
        return tuple(unit for owner in self for _, unit in owner.type.coordinates)

    @cached_property
    def speed_units(self) -> tuple[str, ...]:
        return tuple(unit for owner in self for _, unit in owner.type.speeds)

    @cached_property
    def coordinate_places(self) -> dict[str, slice]:
        """Where in q: owners that have coordinates, and single coordinates, by name."""
        return _places(self.coordinate_names, [(owner.name, owner.q) for owner in self])

    @cached_property
    def speed_places(self) -> dict[str, slice]:
        """Where in v: owners that have speeds, and single speeds, by name."""
        return _places(self.speed_names, [(owner.name, owner.v) for owner in self])

    def dofs(self, function: str, what: str, names: Iterable[str]) -> list[int]:
        """Where in v are the speeds of joints, of bodies with modes, or single ones, by name."""
        return [k for name in names for k in range(self.nv)[self.dof_slice(function, what, name)]]

    def dof_slice(self, function: str, what: str, name: str) -> slice:
        """The same of one name."""
        if name not in self.speed_places and all(owner.name != name for owner in self):
            raise ArgumentError(
                unknown(f"{function}: {what}: no joint or degree of freedom", name, self.speed_places)
            )
        return self.speed_places.get(name, slice(0, 0))  # a fixed joint has none

    def limits(self, which: str) -> Array:
        """`lower` or `upper` limits of the coordinates, `velocity` or `effort` limits of the speeds; infinite where none."""
        parts = []
        for owner in self:
            values = getattr(owner.limits, which)
            size = owner.type.nq if which in ("lower", "upper") else owner.type.nv
            parts.append(
                np.array(values) if values else np.full(size, -np.inf if which == "lower" else np.inf)
            )
        found = np.concatenate(parts) if parts else np.zeros(0)
        found.flags.writeable = False
        return found

    # --- the manifold -------------------------------------------------------------------------------------------

    @cached_property
    def is_vector_space(self) -> bool:
        """Whether q' = v and configurations simply add."""
        return all(owner.type.is_vector_space for owner in self)

    @cached_property
    def curved(self) -> Array:
        """Which speeds belong to owners whose configurations do not simply add, (nv,)."""
        found = np.zeros(self.nv, dtype=bool)
        for owner in self:
            found[owner.v] = not owner.type.is_vector_space
        return found

    def neutral(self) -> Array:
        parts = [owner.type.neutral() for owner in self]
        return np.concatenate(parts) if parts else np.zeros(0)

    def random(self, rng: np.random.Generator) -> Array:
        """Uniform within the limits."""
        lower, upper = self.limits("lower"), self.limits("upper")
        parts = [owner.type.random(rng, lower[owner.q], upper[owner.q]) for owner in self]
        return np.concatenate(parts) if parts else np.zeros(0)

    def integrate(self, q: Any, e: Any) -> Any:
        """The configuration reached from q by the tangent displacement e."""
        return self._joined([o.type.integrate(q[o.q], e[o.v]) for o in self if o.type.nv], q, e)

    def difference(self, q0: Any, q1: Any) -> Any:
        """The tangent displacement from q0 to q1."""
        return self._joined([o.type.difference(q0[o.q], q1[o.q]) for o in self if o.type.nv], q0, q1)

    def rate(self, q: Any, v: Any) -> Any:
        """q' = dq/dt."""
        return self._joined([o.type.rate(q[o.q], v[o.v]) for o in self if o.type.nv], q, v)

    @staticmethod
    def _joined(parts: list[Any], *given: Any) -> Any:
        if any(isinstance(x, ca.SX | ca.MX | ca.DM) for x in given):
            return ca.densify(ca.vertcat(ca.SX(0, 1), *parts))
        return np.concatenate([np.zeros(0), *(np.asarray(part, dtype=float).ravel() for part in parts)])

    # --- charts, on expressions -----------------------------------------------------------------------------------

    def integrate_near(self, q: ca.SX, e: ca.SX) -> ca.SX:
        """`integrate` but for terms of third order in e: shorter to differentiate twice at e = 0."""
        return self._joined([o.type.integrate_near(q[o.q], e[o.v]) for o in self if o.type.nv], q, e)

    def difference_near(self, q0: ca.SX, q1: ca.SX) -> ca.SX:
        """`difference` but for terms of third order: shorter to differentiate twice at q1 = q0."""
        return self._joined([o.type.difference_near(q0[o.q], q1[o.q]) for o in self if o.type.nv], q0, q1)

    def chart_rate(self, e: ca.SX, v: ca.SX) -> ca.SX:
        """T(e) v of (2)."""
        return ca.vertcat(ca.SX(0, 1), *(o.type.chart_rate(e[o.v], v[o.v]) for o in self if o.type.nv))

    def chart_rate_transposed(self, e: ca.SX, p: ca.SX) -> ca.SX:
        """T(e)^T p."""
        v = ca.SX.sym("v", self.nv)
        return ca.substitute(ca.jtimes(self.chart_rate(e, v), v, p, True), v, ca.SX.zeros(self.nv))

    def chart_jacobian(self, e: ca.SX) -> ca.SX:
        """T(e)^-1: the tangent displacement of q for a change of e, (nv x nv)."""
        blocks = [_chart_jacobian(o.type, e[o.v]) for o in self if o.type.nv]
        return ca.diagcat(*blocks) if blocks else ca.SX(0, 0)

    def chart_motion(self, phi: ca.SX, rate: ca.SX, second: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """q, v and a of a motion phi(t) in the chart about the neutral configuration; q = phi where coordinates add."""
        q, v = ca.SX(self.nq, 1), ca.SX(self.nv, 1)
        for o in self:
            if not o.type.nv:
                continue
            if o.type.is_vector_space:
                q[o.q], v[o.v] = phi[o.v], rate[o.v]
                continue
            at = o.type.integrate(ca.SX(o.type.neutral()), phi[o.v])
            here, there = ca.SX.sym("here", o.type.nq), ca.SX.sym("there", o.type.nq)
            speed = ca.jtimes(o.type.difference(here, there), there, ca.jtimes(at, phi, rate))
            q[o.q] = at
            v[o.v] = ca.substitute([speed], [here, there], [at, at])[0]
        return q, v, ca.jtimes(v, phi, rate) + ca.jtimes(v, rate, second)

    def error_rate(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """N(q, v) of (3), (nv x nv)."""
        N = ca.SX(self.nv, self.nv)
        for o in self:
            if not o.type.is_vector_space:
                N[o.v, o.v] = _error_rate(o.type, q[o.q], v[o.v])
        return N

    # --- what is wrong --------------------------------------------------------------------------------------------

    def check(self, function: str, q: Any) -> None:
        """Raise `ArgumentError` naming the owner when q (..., nq) is no configuration."""
        x = numbers(function, "q", q)
        if x.ndim == 0 or x.shape[-1] != self.nq:
            raise ArgumentError(f"{function}: q has shape {x.shape}, expected (..., {self.nq})")
        if not np.isfinite(x).all():
            name = next(o.name for o in self if not np.isfinite(x[..., o.q]).all())
            raise ArgumentError(f"{function}: joint {name!r}: q is not finite")
        for o in self.restricted:
            problem = o.type.problem(x[..., o.q])
            if problem:
                raise ArgumentError(f"{function}: joint {o.name!r}: {problem}")

    def singularity(self, q: Array) -> str | None:
        """The sentence for coordinates (..., nq) at which an owner has lost a degree of freedom."""
        return self._first(q, lambda kind, x: kind.singularity(x))

    def trouble(self, q: Array) -> str | None:
        """The sentence for coordinates (..., nq) at which an owner cannot be solved for: singular, or no configuration."""
        return self._first(q, lambda kind, x: kind.singularity(x) or kind.problem(x))

    def _first(self, q: Array, ask: Callable[[JointType, Array], str | None]) -> str | None:
        for o in self:
            sentence = ask(o.type, q[..., o.q])
            if sentence:
                return f"joint {o.name!r}: {sentence}"
        return None


def named(
    function: str, given: Mapping[str, Any], places: Mapping[str, slice], labels: Sequence[str], x: Array
) -> Array:
    """x but for what is given by the names of owners or of single entries, over the batch of what is given."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{function}: got {given!r}, expected a mapping from joints to numbers")
    values: list[tuple[Array, int]] = []
    for name, value in given.items():
        check_known(f"{function}: no joint or coordinate", name, places)
        try:
            part = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            part = np.array(np.nan)
        values.append((part, places[name].stop - places[name].start))
    parts: list[tuple[slice, Array]] = []
    for (name, value), part in zip(given.items(), with_own_axis(values), strict=True):
        s = places[name]
        if part.shape[-1:] != (s.stop - s.start,) or not np.all(np.isfinite(part)):
            listed = ", ".join(labels[s])
            count = "a finite number" if len(labels[s]) == 1 else f"{len(labels[s])} finite numbers"
            raise ArgumentError(f"{function}: {name!r} is {value!r}, expected {count} ({listed})")
        parts.append((s, part))
    try:
        batch = np.broadcast_shapes(*(part.shape[:-1] for _, part in parts))
    except (ValueError, RuntimeError):  # the latter: more dimensions than NumPy broadcasts
        shapes = ", ".join(str(part.shape[:-1]) for _, part in parts)
        raise ArgumentError(f"{function}: batch dimensions {shapes} do not go together") from None
    x = np.array(np.broadcast_to(x, (*batch, len(x))))
    for s, part in parts:
        x[..., s] = part
    return x


def with_own_axis(parts: Sequence[tuple[Array, int]], states: Sequence[Any] = ()) -> list[Array]:
    """(..., width) of values and widths; one number per state will do where the width is 1.

    A last dimension of length 1 is then the joint's own, as for joints of more degrees of freedom: (N, 1) are N states. Only
    where the batch of the others (values that leave no choice, and `states`, (..., n)) is just that shape, say (N, 1), are
    they one number for each of its states; anything else would make N x N states of N.
    """
    clear: list[tuple[int, ...]] = [np.shape(x)[:-1] for x in states]
    found: list[Array | None] = []
    for x, width in parts:
        if width == 1 and x.ndim >= 2 and x.shape[-1] == 1:
            found.append(None)
            continue
        full = x[..., None] if width == 1 and x.shape[-1:] != (1,) else x
        clear.append(full.shape[:-1])
        found.append(full)
    if all(x is not None for x in found):
        return [x for x in found if x is not None]
    try:
        batch = np.broadcast_shapes(*clear)
    except (
        ValueError,
        RuntimeError,
    ):  # the caller says so; the latter: more dimensions than NumPy broadcasts
        batch = ()
    return [
        full if full is not None else x[..., None] if x.shape == batch else x
        for full, (x, _) in zip(found, parts, strict=True)
    ]


def _places(labels: Sequence[str], owners: Sequence[tuple[str, slice]]) -> dict[str, slice]:
    singles = {label: slice(k, k + 1) for k, label in enumerate(labels)}
    return singles | {name: s for name, s in owners if s.stop > s.start}


def _chart_jacobian(kind: JointType, e: ca.SX) -> ca.SX:
    if kind.is_vector_space:
        return ca.SX.eye(kind.nv)
    q, x = ca.SX.sym("q", kind.nq), ca.SX.sym("x", kind.nv)
    neutral = ca.SX(kind.neutral())
    moved = kind.difference(q, kind.integrate(neutral, x))
    jacobian = ca.substitute(ca.jacobian(moved, x), q, kind.integrate(neutral, e))
    return ca.substitute(jacobian, x, e)


def _error_rate(kind: JointType, q: ca.SX, v: ca.SX) -> ca.SX:
    """The derivative of d/dt difference(q0, q) with respect to e at e = 0."""
    sizes = (("q0", kind.nq), ("q1", kind.nq), ("v0", kind.nv), ("e", kind.nv))
    q0, q1, v0, e = (ca.SX.sym(name, n) for name, n in sizes)
    error = kind.difference(q0, q1)
    change = ca.jtimes(error, q0, kind.rate(q0, v0)) + ca.jtimes(error, q1, kind.rate(q1, v0))
    N = ca.jacobian(ca.substitute(change, q1, kind.integrate(q0, e)), e)
    return ca.substitute([N], [q0, v0, e], [q, v, ca.SX.zeros(kind.nv)])[0]
