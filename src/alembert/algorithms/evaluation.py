"""From the name of an algorithm and its arguments to its results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.algorithm import Options
from alembert.algorithms.arguments import Parameters, Wrenches, mapping
from alembert.algorithms.failures import Failures, all_finite
from alembert.algorithms.kernels import Lowering
from alembert.algorithms.table import TABLE, known_as
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    pass

Array = np.ndarray


class Evaluation(Failures):
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
        if self.model.parameters:
            given = (*given, self.parameter_array(caller or name, parameters))
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
            for argument in kernel.arguments:
                text = text.replace(f" {argument.name} ", f" {known_as(name, argument.name)} ")
            raise ArgumentError(text) from None
        if self.lockable and TABLE[name].solves:
            self.mark_locked(name, given, result)
            finite = None
        if not (all_finite(result) if finite is None else finite):
            self.explain(caller or name, result, given, kernel)
        elif finite is None and type(result) is np.ndarray and result.ndim == 1 and name not in self._direct:
            self._direct[name] = self._direct_call(name)
        return result

    @cached_property
    def _direct(self) -> dict[str, Callable[..., Any] | None]:
        """Of algorithms that were called: the compiled function for one state, where nothing but its result is checked."""
        return {}

    def _direct_call(self, name: str) -> Callable[..., Any] | None:
        kernel, model = self.kernels.get((name, False)), self.model
        locks = self.lockable and TABLE[name].solves
        if kernel is None or model.parameters or model.is_constrained or locks:
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
