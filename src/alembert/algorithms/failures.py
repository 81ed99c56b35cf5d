"""Results that are not finite: which state, and why."""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms.arguments import Arguments
from alembert.algorithms.table import known_as
from alembert.errors import NumericalError, warn
from alembert.joints import JointType
from alembert.model.space import Owner

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel

Array = np.ndarray
_SINGULAR = "the articulated inertia of some joint is singular (no mass moves with it) or numbers overflow"


class Failures(Arguments):
    """Says why a result is not finite."""

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
        if not reason.startswith("joint ") and reason != otherwise:
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

    @cached_property
    def lockable(self) -> list[Owner]:
        """Joints that may lose a degree of freedom, with no reflected inertia to keep the equations regular."""
        return [
            self.model.space[k]
            for k, joint in enumerate(self.model.joints)
            if type(joint.type).singularity is not JointType.singularity
            and not (joint.armature or joint.rotors)
        ]

    def mark_locked(self, name: str, given: tuple[Any, ...], result: Any) -> None:
        """NaN where a joint has lost a degree of freedom: rounding makes large numbers of what should be infinite."""
        q = np.asarray(given[0], dtype=float)
        free = np.asarray(given[4]) if name == "hybrid_dynamics" else np.ones(self.model.nv)
        for o in self.lockable:
            if not np.any(free[o.v]) or not o.type.singularity(q[..., o.q]):
                continue
            locked = np.array([bool(o.type.singularity(x)) for x in q[..., o.q].reshape(-1, o.type.nq)])
            results = result if isinstance(result, tuple) else (result,)
            locked = np.broadcast_to(locked.reshape(q.shape[:-1]), results[0].shape[:-1])
            for x in results:
                x[locked] = np.nan

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
        return self.model.space.trouble(np.asarray(given[0], dtype=float)) or otherwise


def all_finite(result: Any) -> bool:
    if type(result) is np.ndarray:
        return _finite(result)
    return all(_finite(np.asarray(x)) for x in (result if isinstance(result, tuple) else (result,)))


def _finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite (or a sum overflows); quick for the few numbers of one state."""
    if x.ndim == 1 and len(x) < 100:
        return isfinite(sum(x.tolist()))
    flat = x.ravel()
    return isfinite(flat.dot(flat))


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
