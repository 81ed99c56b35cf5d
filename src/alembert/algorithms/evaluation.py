"""From the name of an algorithm and its arguments to its results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.arguments import Parameters, Wrenches, mapping
from alembert.algorithms.failures import KNOWN_AS, WRENCHES, all_finite
from alembert.algorithms.programs import INVERTING, LABELS, NEED_TREE, PROGRAMS
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.sweeps import Tree

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray

_CONSTRAINED = {
    "inverse_dynamics": "constrained_inverse_dynamics (on symbols, symbolic.constrained_inverse_dynamics)",
    "inverse_dynamics_derivatives": "constrained_inverse_dynamics_derivatives",
    "forward_dynamics": "constrained_dynamics (on symbols, symbolic.constrained_dynamics)",
    "forward_dynamics_derivatives": "constrained_dynamics_derivatives",
}
"""what to use on a model with loops or couplings instead of an algorithm of trees"""


class Evaluation:
    """Mixed into `Model`."""

    def _evaluate(
        self: Model,
        name: str,
        given: tuple[Any, ...],
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Any = None,
        caller: str | None = None,
    ) -> Any:
        """Run an algorithm; `caller` is the public function to name in messages, where it is not the algorithm."""
        if wrenches is not None:
            wrenches = mapping(caller or name, "wrenches", wrenches)
        kernel = self._kernels.get((name, bool(wrenches)))
        if kernel is None:
            if not len(self._tree):
                return _nothing_moves(self._kernel(name), given, out)
            if name in NEED_TREE:
                self.check_tree(name)
            kernel = self._kernel(name, wrenches=bool(wrenches))
        if wrenches:
            given = (*given, self._wrench_array(caller or name, wrenches, parameters))
        if self.parameters:
            given = (*given, self._parameter_array(caller or name, parameters))
        elif parameters is not None and mapping(name, "parameters", parameters):
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        finite: bool | None = None
        try:
            if _is_batch(given):
                result, finite = kernel.checked(*given, out=out)
            else:
                result = kernel._function(*given) if out is None else kernel(*given, out=out)
        except ArgumentError as error:
            text = str(error).replace(kernel.name, caller or name, 1)
            for label, known in KNOWN_AS.get(name, WRENCHES).items():
                text = text.replace(f" {label} ", f" {known} ")
            raise ArgumentError(text) from None
        if name in INVERTING and self._lockable:
            self._mark_locked(name, given, result)
            finite = None
        if not (all_finite(result) if finite is None else finite):
            self._explain(caller or name, result, given, kernel)
        elif finite is None and type(result) is np.ndarray and result.ndim == 1 and name not in self._direct:
            self._direct[name] = self._direct_call(name)
        return result

    def _one_state(self: Model, name: str, q: Any, v: Any, x: Any) -> Array | None:
        """The finite result for one state given by arrays, the short way; None: ask `_evaluate`."""
        direct = self._direct.get(name)
        if direct is None or not (type(q) is type(v) is type(x) is Array and q.ndim == v.ndim == x.ndim == 1):
            return None
        found = direct(q, v, x)
        total = sum(found.tolist()) if len(found) < 100 else found.dot(found)
        return found if isfinite(total) else None

    @cached_property
    def _direct(self) -> dict[str, Callable[..., Any] | None]:
        """Of algorithms that were called: the compiled function for one state, where nothing but its result is checked."""
        return {}

    def _direct_call(self: Model, name: str) -> Callable[..., Any] | None:
        kernel = self._kernels.get((name, False))
        if kernel is None or self.parameters or self.is_constrained or (name in INVERTING and self._lockable):
            return None
        return kernel.function()

    def _checked(self: Model, name: str, kernel: Kernel, given: tuple[Any, ...]) -> Any:
        """The results of a kernel, explained where they are not finite."""
        result, finite = kernel.checked(*given) if _is_batch(given) else (kernel(*given), None)
        if not (all_finite(result) if finite is None else finite):
            self._explain(name, result, given, kernel)
        return result

    @cached_property
    def _tree(self: Model) -> Tree:
        return Tree.of(self)

    @cached_property
    def _kernels(self) -> dict[Any, Kernel]:
        return {}

    def _kernel(
        self: Model, name: str, *, wrenches: bool = False, lowering: kernels.Lowering = "auto"
    ) -> Kernel:
        key: tuple[Any, ...] = (name, wrenches) if lowering == "auto" else (name, wrenches, lowering)
        if key in self._kernels:
            return self._kernels[key]
        if self.is_constrained:  # the tree's, which models with other constraints share
            self._kernels[key] = self._constraint_rows.primary._kernel(
                name, wrenches=wrenches, lowering=lowering
            )
        elif name in ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"):
            from alembert.algorithms import derivative_kernels

            self._kernels[key] = derivative_kernels.kernel(self, name, wrenches=wrenches, lowering=lowering)
        elif name == "hybrid_dynamics_derivatives":
            from alembert.algorithms import derivative_kernels

            self._kernels[key] = derivative_kernels.hybrid_kernel(self, wrenches=wrenches, lowering=lowering)
        elif name in ("momentum", "momentum_matrix"):
            self._kernels[key] = kernels.momentum_kernel(self, name, lowering)
        else:
            program, names = PROGRAMS[name]
            self._kernels[key] = kernels.program_kernel(
                self,
                self._tree,
                program,
                (*names, "wrench") if wrenches else names,
                name=name,
                labels=LABELS.get(name, {}),
                lowering=lowering,
            )
        return self._kernels[key]

    def check_tree(self: Model, name: str) -> None:
        """Refuse algorithms that would ignore loops and couplings."""
        for kind, items in (("loop", self.loops), ("coupling", self.couplings), ("equation", self.equations)):
            if items:
                instead = _CONSTRAINED.get(name)
                raise UnsupportedError(
                    f"{name}: the {kind} {items[0].name!r} would be ignored; {kind}s are not supported by this "
                    f"algorithm yet. {f'Use {instead}, or ' if instead else ''}model.replace({kind}s=()), which gives the "
                    "model without them"
                )


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
