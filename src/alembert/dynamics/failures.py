"""Results that are not finite: which state, and why."""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from alembert.errors import AlembertWarning, NumericalError
from alembert.joints import JointType

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel
    from alembert.model import Model

Array = np.ndarray
WRENCHES = {"wrench": "wrenches"}
KNOWN_AS = {"hybrid_dynamics": {"tau": "torques", "a_given": "accelerations", **WRENCHES}}
"""what the user knows the inputs of an algorithm as"""
_SINGULAR = "the articulated inertia of some joint is singular (no mass moves with it) or numbers overflow"


class Failures:
    """Mixed into `Model`."""

    def _explain(self: Model, name: str, result: Any, given: tuple[Any, ...], kernel: Kernel) -> None:
        """Say why a result is not finite: raise for one state, warn for some states of a batch."""
        results = result if isinstance(result, tuple) else (result,)
        bad = np.False_
        for x, declared in zip(results, kernel.results, strict=True):
            bad = bad | ~np.isfinite(x).all(axis=tuple(range(-len(declared.shape), 0)))
        if np.any(bad):
            self._report(name, np.asarray(bad), self._reason(given, kernel))

    def _report(self: Model, name: str, bad: Array, reason: str) -> None:
        if bad.ndim == 0:
            raise NumericalError(f"{name}: the result is not finite; {reason}")
        where = tuple(int(index[0]) for index in np.nonzero(bad))
        warn(
            f"{name}: {np.count_nonzero(bad)} of {bad.size} states have no finite result, the first at "
            f"{where if len(where) > 1 else where[0]}; {reason}",
            AlembertWarning,
            stacklevel=5,
        )

    @cached_property
    def _lockable(self: Model) -> list[tuple[int, slice, slice]]:
        """Joints that may lose a degree of freedom, with no reflected inertia to keep the equations regular."""
        return [
            (k, self._q_slices[k], self._v_slices[k])
            for k, joint in enumerate(self.joints)
            if type(joint.type).singularity is not JointType.singularity
            and not (joint.armature or joint.rotors)
        ]

    def _refuse_lock(self: Model, name: str, given: tuple[Any, ...], result: Any) -> None:
        """Rounding makes large numbers of what should be infinite: name it instead, as for any other failure."""
        q = np.asarray(given[0], dtype=float)
        free = np.asarray(given[4]) if name == "hybrid_dynamics" else np.ones(self.nv)
        for k, at_q, at_v in self._lockable:
            joint = self.joints[k]
            sentence = joint.type.singularity(q[..., at_q]) if np.any(free[at_v]) else None
            if not sentence:
                continue
            locked = np.array(
                [bool(joint.type.singularity(x)) for x in q[..., at_q].reshape(-1, joint.type.nq)]
            ).reshape(q.shape[:-1])
            results = result if isinstance(result, tuple) else (result,)
            locked = np.broadcast_to(locked, results[0].shape[:-1])
            for x in results:
                x[locked] = np.nan
            self._report(name, locked, f"joint {joint.name!r}: {sentence}")

    def _reason(self: Model, given: tuple[Any, ...], kernel: Kernel, otherwise: str = _SINGULAR) -> str:
        """The first input that is not finite, or the joint that cannot be solved for, or `otherwise`."""
        known = KNOWN_AS.get(kernel.name, WRENCHES)
        for argument, value in zip(kernel.arguments, given, strict=True):
            x = np.asarray(value, dtype=float)
            if not np.all(np.isfinite(x)):
                names = {
                    "q": self.coordinate_names,
                    "parameters": tuple(self.parameter_values),
                }.get(argument.name, self.speed_names)
                entries = np.argwhere(~np.isfinite(x))[0]
                label = (
                    f" ({names[entries[-1]]})" if x.ndim and x.shape[-1] == len(names) and len(names) else ""
                )
                what = known.get(argument.name, argument.name)
                return f"{what} is {x[tuple(entries)]} at entry {entries[-1] if x.ndim else 0}{label}"
        return self._trouble(given[0], otherwise)

    def _trouble(self: Model, q: Any, otherwise: str = _SINGULAR) -> str:
        """Which joint cannot be solved for at the finite q."""
        q = np.asarray(q, dtype=float)
        for joint, s in zip(self.joints, self._q_slices, strict=True):
            sentence = joint.type.singularity(q[..., s]) or joint.type.problem(q[..., s])
            if sentence:
                return f"joint {joint.name!r}: {sentence}"
        return otherwise


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
