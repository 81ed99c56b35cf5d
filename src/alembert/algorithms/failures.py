"""Which results are not finite, and why: an input, a joint that lost a degree of freedom, a body that bends too far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms.table import known_as
from alembert.engine.kernel import Kernel
from alembert.errors import NumericalError, warn
from alembert.expression import floats
from alembert.model import modal_checks

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
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
