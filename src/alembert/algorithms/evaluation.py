"""From the name of an algorithm and its arguments to its results; which results are not finite, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.algorithm import Options
from alembert.algorithms.arguments import Arguments, Parameters, Wrenches
from alembert.algorithms.kernels import Lowering
from alembert.algorithms.table import TABLE, known_as
from alembert.arguments import mapping
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError, UnsupportedError, warn
from alembert.joints import JointType
from alembert.model import modal_checks
from alembert.model.space import Owner

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
        last = kernel.arguments[-1].name == "parameters"
        values = dict(zip(self.model.parameter_values, given[-1], strict=True)) if last else {}
        return self.trouble(np.asarray(given[0], dtype=float), values, otherwise)

    def trouble(self, q: Array, parameters: Mapping[str, float], otherwise: str = _SINGULAR) -> str:
        """Why there is no solution at finite coordinates: a joint, a body, or `otherwise`."""
        return self.model.space.trouble(q) or overbent(self.model, q, parameters) or otherwise


def overbent(model: Any, q: Array, parameters: Mapping[str, float]) -> str | None:
    """The sentence for the first flexible body that a configuration deflects too far, if there is one."""
    values = {**model.parameter_values, **parameters}
    for name, owner in model.space.of_bodies.items():
        sentence = modal_checks.overbent(model.body(name).flexible, name, q[..., owner.q], values)
        if sentence:
            return sentence
    return None


def all_finite(result: Any) -> bool:
    if type(result) is np.ndarray:
        return _finite(result)
    return all(_finite(np.asarray(x)) for x in (result if isinstance(result, tuple) else (result,)))


def _finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite (or a sum overflows); quick for the few numbers of one state."""
    if x.ndim == 1 and len(x) < 100:
        return isfinite(sum(x.tolist()))
    flat = x.ravel()
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # large numbers are looked at one by one, not warned of
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


class Evaluator(Failures):
    """Runs kernels."""

    def evaluate(
        self,
        name: str,
        given: tuple[Any, ...],
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Any = None,
        caller: str | None = None,
    ) -> Any:
        """Run an algorithm; `caller` is the public function to name in messages, where it is not the algorithm."""
        direct = self._direct.get(name)
        if direct and wrenches is None and parameters is None and out is None and _is_one(given):
            try:
                result = direct(*given)
                if all_finite(result):
                    return result
            except ArgumentError:  # told below, in the caller's words
                pass
        if wrenches is not None:
            wrenches = mapping(caller or name, "wrenches", wrenches)
        kernel = self.kernels.get((name, bool(wrenches)))
        if kernel is None:
            if not len(self.tree):
                return _nothing_moves(self.kernel(name), given, out)
            if TABLE[name].needs_tree:
                self.check_tree(name)
            kernel = self.kernel(name, wrenches=bool(wrenches))
        if wrenches:
            given = (*given, self.wrench_array(caller or name, wrenches, parameters))
        if self.model.parameters and TABLE[name].takes_parameters:
            given = (*given, self.parameter_array(caller or name, parameters))
        elif parameters is not None and mapping(name, "parameters", parameters):
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        finite: bool | None = None
        try:
            if _is_batch(given):
                result, finite = kernel.checked(*given, out=out)
            else:
                result = kernel(*given, out=out)
        except ArgumentError as error:
            text = str(error).replace(kernel.name, caller or name, 1)
            for argument in kernel.arguments:
                text = text.replace(f" {argument.name} ", f" {known_as(name, argument.name)} ")
            raise ArgumentError(text) from None
        if self.lockable and TABLE[name].solves:
            self.mark_locked(name, given, result)
            finite = None
        if not (all_finite(result) if finite is None else finite):
            self.explain(caller or name, result, given, kernel)
        elif finite is None and name not in self._direct and _is_one(given) and not kernel.interpreted:
            self._direct[name] = self._direct_call(name)
        return result

    @cached_property
    def _direct(self) -> dict[str, Callable[..., Any] | None]:
        """Of algorithms that were called: the compiled function for one state, where nothing but its result is checked."""
        return {}

    def _direct_call(self, name: str) -> Callable[..., Any] | None:
        kernel, locks = self.kernels.get((name, False)), self.lockable and TABLE[name].solves
        takes_parameters = self.model.parameters and TABLE[name].takes_parameters
        if kernel is None or takes_parameters or locks:
            return None
        return kernel.function()

    def checked(self, name: str, kernel: Kernel, given: tuple[Any, ...]) -> Any:
        """The results of a kernel, explained where they are not finite."""
        result, finite = kernel.checked(*given) if _is_batch(given) else (kernel(*given), None)
        if not (all_finite(result) if finite is None else finite):
            self.explain(name, result, given, kernel)
        return result

    @cached_property
    def kernels(self) -> dict[Any, Kernel]:
        return {}

    def kernel(self, name: str, *, wrenches: bool = False, lowering: Lowering = "auto") -> Kernel:
        key: tuple[Any, ...] = (name, wrenches) if lowering == "auto" else (name, wrenches, lowering)
        if key in self.kernels:
            return self.kernels[key]
        algorithm = TABLE[name]
        if algorithm.kernel is not None:
            self.kernels[key] = algorithm.kernel(self.model, wrenches, lowering)
        elif algorithm.program is None:
            if lowering == "rolled":
                raise UnsupportedError(f"compile: {name} is code for each body, which cannot be rolled")
            self.kernels[key] = kernels.graph_kernel(self.model, name, Options(), name)
        else:
            program, names = algorithm.sweeps
            self.kernels[key] = kernels.program_kernel(
                self.model,
                self.tree,
                program,
                (*names, "wrench") if wrenches else names,
                name=name,
                labels=algorithm.labels,
                lowering=lowering,
            )
        return self.kernels[key]

    def check_tree(self, name: str) -> None:
        """Refuse algorithms that would ignore loops and couplings."""
        for kind, items in (
            ("loop", self.model.loops),
            ("coupling", self.model.couplings),
            ("equation", self.model.equations),
        ):
            if items:
                instead = TABLE[name].instead if name in TABLE else ""
                raise UnsupportedError(
                    f"{name}: the {kind} {items[0].name!r} would be ignored; {kind}s are not supported by this "
                    f"algorithm yet. {f'Use {instead}, or ' if instead else ''}model.replace({kind}s=()), which gives the "
                    "model without them"
                )


def _is_one(given: tuple[Any, ...]) -> bool:
    """Whether all arguments are arrays of one state."""
    for x in given:  # noqa: SIM110  (a third of the time of all(...))
        if type(x) is not Array or x.ndim != 1:
            return False
    return True


def _is_batch(given: tuple[Any, ...]) -> bool:
    """Quick, and sure only when it says so."""
    return bool(given) and type(given[0]) is np.ndarray and given[0].ndim > 1


def _nothing_moves(kernel: Kernel, given: tuple[Any, ...], out: Any) -> Any:
    """The results of a model without a moving body: zeros."""
    arrays = [np.asarray(x, dtype=float) for x in given]
    for x, argument in zip(arrays, kernel.arguments, strict=True):
        if x.ndim < len(argument.shape) or x.shape[x.ndim - len(argument.shape) :] != argument.shape:
            raise ArgumentError(
                f"{kernel.name}: {argument.name} has shape {x.shape}, expected (..., 0); nothing in the model moves"
            )
    batch = np.broadcast_shapes(
        *(x.shape[: x.ndim - len(a.shape)] for x, a in zip(arrays, kernel.arguments, strict=True))
    )
    results = tuple(np.zeros(batch + result.shape) for result in kernel.results)
    if out is not None:
        for target, value in zip(out if isinstance(out, tuple) else (out,), results, strict=True):
            target[...] = value
        return out
    return results if len(results) != 1 else results[0]
