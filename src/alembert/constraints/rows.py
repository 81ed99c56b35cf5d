"""All constraints of a model: their names and rows, and the kernels that evaluate them, whichever of them are active."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import compiled, drives, factors, kernels, looped
from alembert.constraints.compiled import Held
from alembert.constraints.drives import Chosen
from alembert.constraints.equations import parts
from alembert.constraints.kernels import RowBlocks, RowGraph
from alembert.constraints.looped import Looped
from alembert.constraints.states import at_states, name_list
from alembert.constraints.system import ConstraintSystem
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, ModelError, UnsupportedError
from alembert.sweeps.form import form_of

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray

MANY = 12
"""constraints from which their terms come from loops over them, where that is possible"""
MOST = 60
"""beyond as many constraints the solution is not unrolled: it would compile too long"""


class ConstraintRows:
    """All constraints of a model: names, rows, kernels. Made once per model."""

    def __init__(self, model: Model) -> None:
        for loop in model.loops:
            if not loop.type.closes_loops:
                raise UnsupportedError(
                    f"loop {loop.name!r}: this {loop.type.kind} joint cannot close a loop; it has no closed form for its "
                    "coordinates. Give it one (fit=...), or put a body on it and close the loop with another joint"
                )
        self.model = model
        self.parts = parts(model)
        self.kinds: dict[str, str] = {}
        for part in self.parts:
            if part.name in self.kinds:
                raise ModelError(
                    f"a {self.kinds[part.name]} and {_article(part.kind)} are both called {part.name!r}; reactions go by "
                    "these names: rename one"
                )
            self.kinds[part.name] = part.kind
        self.names = tuple(self.kinds)
        ends = np.cumsum([0, *(part.count for part in self.parts)])
        self.slices = {name: slice(int(ends[k]), int(ends[k + 1])) for k, name in enumerate(self.names)}
        self.slice_list = list(self.slices.values())
        self.count = int(ends[-1])
        self.holonomic = np.array([x for part in self.parts for x in part.holonomic], dtype=bool)
        self._systems: dict[tuple[str, ...], ConstraintSystem] = {}
        self._kernels: dict[Any, Any] = {}
        self._trees: dict[Any, Kernel] = {}

    @cached_property
    def primary(self) -> Model:
        return kernels.primary(self.model)

    @cached_property
    def unconstrained(self) -> Model:
        """The model without its constraints, with its frames."""
        return dataclasses.replace(self.model, loops=(), couplings=(), equations=())

    # --- the rows -------------------------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> RowBlocks:
        return RowBlocks(self.model, self.slice_list)

    @cached_property
    def graph(self) -> RowGraph:
        """The constraint equations on symbols, made once for all kernels."""
        return kernels.graph(self.model)

    @cached_property
    def kernel(self) -> Kernel:
        return self._made(kernels.terms_kernel)

    def terms(self, *given: Array) -> tuple[Array, Array, Array, Array]:
        """phi (B, m), G (B, m, nv), gamma (B, m) and T^T (B, m, 6) of all constraints."""
        if len(self.model.loops) >= MANY and self.looped is not None:  # couplings are a few numbers each
            return self.looped.dense(given[0], given[1])
        if not self.count:
            none = np.zeros((len(given[0]), 0))
            return none, np.zeros((len(none), 0, self.model.nv)), none, np.zeros((len(none), 0, 6))
        residual, entries, bias, basis = at_states(self.kernel, *given)
        return residual, self.blocks.spread(entries), bias, basis

    @cached_property
    def derivatives(self) -> Callable[..., Any]:
        return self._made(kernels.derivative_kernel)

    @cached_property
    def parameter_derivatives(self) -> Kernel:
        return kernels.parameter_kernel(self)

    # --- solutions ------------------------------------------------------------------------------------------

    @cached_property
    def looped(self) -> Looped | None:
        """Everything in loops over the bodies and constraints, for models with many of them."""
        if len(self.parts) < MANY or not looped.supports(self.model):
            return None
        return Looped(self.model, self.primary, self.slice_list)

    def tree(self, *, wrenches: bool, held: Held = ()) -> Kernel:
        """The compiled terms of the tree that the solutions start from; kept with it, for all sets of constraints."""
        found = self._trees.get((wrenches, held))
        if found is None:
            found = self._trees[wrenches, held] = _tree_kernel(self.primary, wrenches, held)
        return found

    def held_solution(self, held: Held) -> Kernel:
        """The accelerations where some speeds are held, under the condition of `solution`."""
        return self._made(compiled.acceleration_kernel, held)

    def held_projection(self, held: Held) -> Kernel:
        """One step of the projection where some speeds are held."""
        return self._made(compiled.projection_kernel, held)

    @cached_property
    def solution(self) -> Kernel | None:
        """The compiled accelerations, unless they would be too large."""
        if (
            not self.count
            or len(self.parts) > MOST
            or factors.cost(self.model, self._lively()) > factors.LARGEST
        ):
            return None
        return self._made(compiled.acceleration_kernel)

    @cached_property
    def projection(self) -> Kernel | None:
        """One step of the projection, compiled under the same condition; likewise the next two."""
        if self.solution is None:
            return None
        return self._made(compiled.projection_kernel)

    @cached_property
    def solution_derivatives(self) -> Kernel | None:
        if self.solution is None:
            return None
        return self._made(compiled.derivative_kernel, compiled.spreads(self.blocks))

    @cached_property
    def prescription(self) -> Kernel | None:
        if self.solution_derivatives is None or self.model.nv > compiled.PRESCRIBED:
            return None
        return self._made(compiled.prescription_kernel)

    def drives(self, chosen: Chosen, active: tuple[int, ...]) -> Kernel:
        """Inverse dynamics by some of the active rows, independent and driven speeds."""
        return self._made(drives.kernel, chosen, active)

    def drive_derivatives(self, chosen: Chosen) -> Kernel:
        """Derivatives of inverse dynamics by some rows, independent and driven speeds."""
        return self._made(drives.derivative_kernel, chosen)

    def _made(self, make: Callable[..., Any], *options: Any) -> Any:
        """What `make` makes for these rows and options, once; for the form of the model where it has one."""
        key = make, *options
        if key not in self._kernels:
            form = form_of(self.model)
            if form is None:
                found = make(self, *options)
            else:
                shared, numbers = form.model.constrained_compute.rows._made(make, *options), form.numbers
                if isinstance(shared, Kernel):
                    found = kernels.with_numbers(shared, self.model.fingerprint, numbers)
                else:
                    found = lambda *given: shared(*given, numbers)  # noqa: E731
            self._kernels[key] = found
        return self._kernels[key]

    def _lively(self) -> list[int]:
        """How many rows of each constraint do not vanish everywhere, by a few samples."""
        q = np.array([self.model.random_configuration(seed) for seed in range(3)])
        last = [self.model.compute.parameter_defaults[None]] if self.model.parameters else []
        G = self.terms(q, np.zeros((len(q), self.model.nv)), *last)[1]
        lively = np.max(np.abs(G), axis=(0, 2)) > 1e-12
        return [int(np.sum(lively[s])) for s in self.slice_list]

    def system(self, function: str, active: Sequence[str] | None) -> ConstraintSystem:
        if active is None:
            key = self.names
        else:
            active = name_list(function, "active", active)
            for name in active:
                if name not in self.slices:
                    known = ", ".join(map(repr, self.names)) or "none"
                    raise ArgumentError(
                        f"{function}: active: no loop, coupling or equation {name!r}; the model has {known}"
                    )
            key = tuple(name for name in self.names if name in set(active))
        if key not in self._systems:
            self._systems[key] = ConstraintSystem(self, key)
        return self._systems[key]


def _tree_kernel(model: Model, wrenches: bool, held: Held) -> Kernel:
    """Kept with the model; for its form where it has one, but where loops over the bodies serve all models."""
    kept, key = model.compute.kernels, ("factored_tree", wrenches, held)
    if key not in kept:
        form = None if compiled.is_large(model) else form_of(model)
        if form is None:
            kept[key] = compiled.tree_kernel(model, wrenches=wrenches, held=held)
        else:
            kept[key] = kernels.with_numbers(
                _tree_kernel(form.model, wrenches, held), model.fingerprint, form.numbers
            )
    return kept[key]


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
