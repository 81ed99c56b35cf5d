"""Which results are not finite, and why: an input, a joint that lost a degree of freedom, a body that bends too far.

And before it: whether parameters given at run time still make a model that a body can have.

The numbers that must not be negative and the inertias are computed from them by a kernel of their own, for a whole batch at
once, and held to the rules of `alembert.model.inertia`. What the model breaks at its defaults (a file may have it so) is not
looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.algorithms.table import known_as
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError, warn
from alembert.expression import Expression, Scalar, evaluate, floats
from alembert.model import Body, modal_checks
from alembert.model.inertia import NOISE, TRIANGLE_TOLERANCE

if TYPE_CHECKING:
    from alembert.model import Model


Array = np.ndarray
REMEMBERED = 256  # sets of parameters that were found to be good


@dataclass(frozen=True)
class _Rule:
    """An expression that must not be negative (or, with `positive`, zero), and how to say so."""

    entry: Scalar
    sentence: str
    positive: bool = False


class Physical:
    """The check of a model; `check` raises `ArgumentError` in the words of the builder."""

    def __init__(self, model: Model) -> None:
        self._model = model
        defaults = model.parameter_values
        self._bodies = [
            body for body in model.bodies if _depends(body) and not body.inertia.problem(defaults)
        ]
        self._rules = [rule for rule in _rules(model) if isinstance(rule.entry, Expression)]
        self._good: set[bytes] = set()

    def check(self, function: str, parameters: Array) -> None:
        """For parameters (..., count), all of them."""
        if not (self._bodies or self._rules):
            return
        key = parameters.tobytes() if parameters.size <= REMEMBERED else b""
        if key and key in self._good:
            return
        inertias, entries = self._kernel(parameters)
        bad = _unphysical(inertias)
        for k, body in enumerate(self._bodies):
            if np.any(bad[..., k]):
                values = self._first(bad[..., k], parameters)
                problem = body.inertia.problem(values) or "its inertia is not physical"
                self._refuse(function, bad[..., k], f"body {body.name!r}: {problem}")
        for k, rule in enumerate(self._rules):
            wrong = entries[..., k] <= 0 if rule.positive else entries[..., k] < 0
            if np.any(wrong):
                value = entries[..., k][wrong].flat[0]
                self._refuse(function, wrong, rule.sentence.format(f"{value:.6g}"))
        if key and len(self._good) < REMEMBERED:
            self._good.add(key)

    def _first(self, bad: Array, parameters: Array) -> dict[str, float]:
        row = parameters[bad][0] if bad.ndim else parameters
        return dict(zip(self._model.parameter_values, row.tolist(), strict=True))

    def _refuse(self, function: str, bad: Array, what: str) -> None:
        where = ""
        if bad.ndim:
            index = tuple(int(i[0]) for i in np.nonzero(bad))
            where = f" (the first of {np.count_nonzero(bad)}, at {index if len(index) > 1 else index[0]})"
        raise ArgumentError(f"{function}: with the given parameters{where}, {what}")

    @property
    def _kernel(self) -> Kernel:
        given = {"parameters": (len(self._model.parameters),)}
        results = {"inertias": (len(self._bodies), 7), "entries": (len(self._rules),)}
        return self._model.compute.function_kernel(
            "parameters", given, results, self._function, key="physical"
        )

    def _function(self) -> ca.Function:
        p = ca.SX.sym("p", len(self._model.parameters))
        values = {name: p[k] for k, name in enumerate(self._model.parameter_values)}
        rows = [ca.SX(0, 7)]
        for body in self._bodies:
            entries = (body.inertia.mass, *body.inertia.tensor)
            rows.append(ca.horzcat(*(ca.SX(evaluate(entry, values)) for entry in entries)))
        others = [ca.SX(evaluate(rule.entry, values)) for rule in self._rules]
        outputs = [ca.densify(ca.vertcat(*rows)), ca.densify(ca.vertcat(ca.SX(0, 1), *others))]
        return ca.Function("physical", [p], outputs)


def _unphysical(inertias: Array) -> Array:
    """`Inertia.problem` on rows of mass and tensor (Ixx, Ixy, Iyy, Ixz, Iyz, Izz); NaN passes, it is found later."""
    mass, xx, xy, yy, xz, yz, zz = np.moveaxis(inertias, -1, 0)
    finite = np.isfinite(inertias).all(axis=-1)
    tensor = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(*mass.shape, 3, 3)
    moments = np.linalg.eigvalsh(np.where(finite[..., None, None], tensor, 0.0))
    largest = np.abs(moments).max(axis=-1)
    slack = TRIANGLE_TOLERANCE * largest + NOISE * mass
    wrong = (mass < 0) | ((mass == 0) & (largest > 0)) | (moments[..., 0] < -slack)
    return finite & (wrong | (moments[..., 2] > moments[..., 0] + moments[..., 1] + slack))


def _depends(body: Body) -> bool:
    return any(isinstance(x, Expression) for x in (body.inertia.mass, *body.inertia.tensor))


def _rules(model: Model) -> list[_Rule]:
    """What attachments refuse when they are made with numbers."""
    found: list[_Rule] = []

    def add(joint: str, what: str, entries: Any) -> None:
        sentence = f"joint {joint!r}: {what} is {{}}, expected zero or more"
        found.extend(_Rule(entry, sentence) for entry in entries)

    for joint in model.joints:
        add(joint.name, "armature", joint.armature)
        add(joint.name, "rotor inertia", [rotor.inertia for rotor in joint.rotors])
        if joint.friction:
            add(joint.name, "viscous friction", joint.friction.viscous)
            add(joint.name, "Coulomb friction", joint.friction.coulomb)
            sentence = f"joint {joint.name!r}: friction smoothing speed is {{}}, expected a positive speed"
            found.append(_Rule(joint.friction.smoothing, sentence, positive=True))
    return found


_SINGULAR = "the articulated inertia of some joint is singular (no mass moves with it) or numbers overflow"


class Failures:
    """Says why a result is not finite."""

    model: Model

    def explain(self, name: str, result: Any, given: tuple[Any, ...], kernel: Kernel) -> None:
        """Say why results are not finite: raise for one state, warn for some states of a batch."""
        results = result if isinstance(result, tuple) else (result,)
        bad = np.False_
        for x, declared in zip(results, kernel.results, strict=True):
            bad = bad | ~np.isfinite(x).all(axis=tuple(range(-len(declared.shape), 0)))
        if np.any(bad):
            self.report(name, np.asarray(bad), self._reasons(np.asarray(bad), given, kernel))

    def _reasons(self, bad: Array, given: tuple[Any, ...], kernel: Kernel, otherwise: str = _SINGULAR) -> str:
        """The reason of the first bad state; of others, if they have other reasons, with how many they are."""
        if not bad.ndim:
            return self._reason(given, kernel, otherwise)
        found: list[str] = []
        left = bad.copy()
        while np.any(left):
            first = tuple(int(index[0]) for index in np.nonzero(left))
            reason = self._reason(_state(given, kernel, bad.shape, first), kernel, otherwise)
            alike = left & self._alike(reason, given, kernel, bad.shape, otherwise)
            alike[first] = True
            where = "" if not found else f" ({np.count_nonzero(alike)}, the first at {_index(first)})"
            found.append(f"{reason}{where}")
            left &= ~alike
        return "; ".join(found)

    def _alike(
        self,
        reason: str,
        given: tuple[Any, ...],
        kernel: Kernel,
        shape: tuple[int, ...],
        otherwise: str,
    ) -> Array:
        """The states that fail for the same kind of reason: an input that is not finite, a joint, or neither."""
        inputs = np.zeros(shape, dtype=bool)
        for argument, value in zip(kernel.arguments, given, strict=True):
            x = np.asarray(value, dtype=float)
            wrong = ~np.isfinite(x).all(axis=tuple(range(-len(argument.shape), 0)))
            inputs |= _over(wrong, shape)
        if not reason.startswith(("joint ", "body ")) and reason != otherwise:
            return inputs
        q = np.asarray(given[0], dtype=float)
        joints = np.zeros(shape, dtype=bool)
        for o in self.model.space:
            if o.type.singularity(q[..., o.q]) or o.type.problem(q[..., o.q]):
                states = q[..., o.q].reshape(-1, o.type.nq)
                own = [bool(o.type.singularity(x) or o.type.problem(x)) for x in states]
                own_mask = _over(np.array(own).reshape(q.shape[:-1]), shape)
                if reason.startswith(f"joint {o.name!r}:"):
                    return own_mask & ~inputs
                joints |= own_mask
        return ~(inputs | joints)

    def report(self, name: str, bad: Array, reason: str) -> None:
        if bad.ndim == 0:
            raise NumericalError(f"{name}: the result is not finite; {reason}")
        where = _index(tuple(int(index[0]) for index in np.nonzero(bad)))
        warn(
            f"{name}: {np.count_nonzero(bad)} of {bad.size} states have no finite result, the first at "
            f"{where}; {reason}"
        )

    def _reason(self, given: tuple[Any, ...], kernel: Kernel, otherwise: str = _SINGULAR) -> str:
        """The first input that is not finite, or the joint that cannot be solved for, or `otherwise`."""
        for argument, value in zip(kernel.arguments, given, strict=True):
            x = np.asarray(value, dtype=float)
            if not np.all(np.isfinite(x)):
                names = {
                    "q": self.model.coordinate_names,
                    "parameters": tuple(self.model.parameter_values),
                }.get(argument.name, self.model.speed_names)
                entries = np.argwhere(~np.isfinite(x))[0]
                label = (
                    f" ({names[entries[-1]]})" if x.ndim and x.shape[-1] == len(names) and len(names) else ""
                )
                what = known_as(kernel.name, argument.name)
                return f"{what} is {x[tuple(entries)]} at entry {entries[-1] if x.ndim else 0}{label}"
        last = kernel.arguments[-1].name == "parameters"
        values = dict(zip(self.model.parameter_values, given[-1], strict=True)) if last else {}
        return self.trouble(np.asarray(given[0], dtype=float), values, otherwise)

    def trouble(self, q: Array, parameters: Mapping[str, float], otherwise: str = _SINGULAR) -> str:
        """Why there is no solution at finite coordinates: a joint, a body, or `otherwise`."""
        found = self.model.space.trouble(q) or massless(self.model, q, parameters)
        return found or overbent(self.model, q, parameters) or otherwise


def massless(model: Any, q: Array, parameters: Mapping[str, float]) -> str | None:
    """The sentence for a motion of a joint that moves no mass at the first of the configurations, if there is one."""
    first = np.reshape(q, (-1, q.shape[-1]))[0]
    M = model.mass_matrix(first, **({"parameters": dict(parameters)} if parameters else {}))
    if not np.isfinite(M).all():
        return None
    size = np.sqrt(np.abs(np.diagonal(M)))
    none = size <= np.sqrt(NO_INERTIA) * size.max(initial=0.0)
    size[none] = 1.0
    try:
        values, vectors = np.linalg.eigh(M / size[:, None] / size)
    except np.linalg.LinAlgError:  # of numbers near to overflow
        return None
    if np.abs(values).min(initial=1.0) > NO_INERTIA:
        return None
    k = int(np.argmax(np.abs(vectors[:, np.argmin(np.abs(values))])))
    owner = next(o for o in model.space if o.v.start <= k < o.v.stop)
    return (
        f"joint {owner.name!r}: nothing that moves with {model.speed_names[k]} has inertia (a rod or a beam without rotary "
        "inertia has none about its own axis); give it some, or the joint an armature"
    )


NO_INERTIA = 1e-14
"""of the inertia along other speeds: rounding"""


def overbent(model: Any, q: Array, parameters: Mapping[str, float]) -> str | None:
    """The sentence for the first flexible body that a configuration deflects too far, if there is one."""
    values = {**model.parameter_values, **parameters}
    given = {"parameters": dict(parameters)} if parameters else {}
    for name, owner in model.space.of_bodies.items():
        body = model.body(name).flexible
        sentence = modal_checks.overbent(body, name, q[..., owner.q], values)
        if sentence:
            # inertia that no joint moves does not count: of a thin beam in a plane, that about its own axis
            moved = model.frame_jacobian(q, name, reference="local", **given)
            sentence = modal_checks.overbent(body, name, q[..., owner.q], values, moved=moved)
        if sentence:
            return sentence
    return None


def heavy(model: Any, q: Array, parameters: Mapping[str, Any] | None = None) -> list[str]:
    """The sentences for beams whose own weight, at configurations, does what their mass does not know."""
    values, found = {**model.parameter_values, **(parameters or {})}, []
    g = floats(model.gravity, values)
    every = np.linalg.norm(g) * np.eye(3)[1:]
    for name in model.space.of_bodies:
        body = model.body(name).flexible
        if modal_checks.heavy(body, name, every, values):  # in some attitude; else no pose is asked for
            R = model.frame_pose(q, name, parameters=parameters or None).rotation
            found.append(modal_checks.heavy(body, name, np.swapaxes(R, -1, -2) @ g, values))
    return [sentence for sentence in found if sentence]


def _state(
    given: tuple[Any, ...], kernel: Kernel, shape: tuple[int, ...], index: tuple[int, ...]
) -> tuple[Any, ...]:
    """The arguments of one state of a batch."""
    found = []
    for argument, value in zip(kernel.arguments, given, strict=True):
        x = np.asarray(value, dtype=float)
        own = x.shape[: x.ndim - len(argument.shape)]
        position = np.arange(int(np.prod(own))).reshape(own)
        found.append(x.reshape(-1, *argument.shape)[_over(position, shape)[index]])
    return tuple(found)


def _over(x: Array, shape: tuple[int, ...]) -> Array:
    """An array over a batch as one over all of it; some callers give a batch in one dimension."""
    return x.reshape(shape) if x.size == np.prod(shape) else np.broadcast_to(x, shape)


def _index(index: tuple[int, ...]) -> Any:
    return index if len(index) > 1 else index[0]
