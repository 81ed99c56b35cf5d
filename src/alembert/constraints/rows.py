"""All constraints of a model: their names and rows, and the kernels that evaluate them, whichever of them are active."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import compiled, drives, kernels, looped
from alembert.constraints.drives import Chosen
from alembert.constraints.equations import columns, parts
from alembert.constraints.looped import Looped
from alembert.constraints.system import ConstraintSystem
from alembert.errors import ArgumentError, ModelError, UnsupportedError

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel
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
        self.count = int(ends[-1])
        self.holonomic = np.array([x for part in self.parts for x in part.holonomic], dtype=bool)
        self._systems: dict[tuple[str, ...], ConstraintSystem] = {}
        self._drives: dict[tuple[Chosen, tuple[int, ...]], Kernel] = {}
        self._drive_slopes: dict[Chosen, Kernel] = {}

    @cached_property
    def primary(self) -> Model:
        return kernels.primary(self.model)

    @cached_property
    def kernel(self) -> Kernel:
        return kernels.terms_kernel(self.model, list(self.slices.values()))

    @cached_property
    def touched(self) -> list[Array]:
        """For every constraint the speeds that its rows may depend on."""
        return columns(self.model.compute.tree)

    def spread(self, packed: Array) -> Array:
        """(B, m, nv) from the entries over the touched speeds, constraint by constraint and row by row."""
        nv, flat = self.model.nv, packed.reshape(-1, packed.shape[-1])
        dense = np.zeros((len(flat), self.count * nv))
        dense[:, self._places] = flat
        return dense.reshape(-1, self.count, nv)

    def spread_square(self, packed: Array) -> Array:
        """(B, nv, nv): blocks over the touched speeds of each constraint, added up."""
        nv, flat, start = self.model.nv, packed.reshape(-1, packed.shape[-1]), 0
        dense = np.zeros((len(flat), nv, nv))
        for touched in self.touched:
            c = len(touched)
            dense[:, touched[:, None], touched] += flat[:, start : start + c * c].reshape(-1, c, c)
            start += c * c
        return dense

    @cached_property
    def _places(self) -> Array:
        rows, columns = kernels.jacobian_places(self.model, list(self.slices.values()))
        return rows * self.model.nv + columns

    def terms(self, *given: Array) -> tuple[Array, Array, Array, Array]:
        """phi (B, m), G (B, m, nv), gamma (B, m) and T^T (B, m, 6) of all constraints."""
        if self.looped is not None:
            return self.looped.dense(given[0], given[1])
        if not self.count:
            none = np.zeros((len(given[0]), 0))
            return none, np.zeros((len(none), 0, self.model.nv)), none, np.zeros((len(none), 0, 6))
        residual, entries, bias, basis = self.kernel(*given)
        return residual, self.spread(entries), bias, basis

    @cached_property
    def graph(self) -> compiled.Symbols:
        """The constraint equations on symbols, made once for all kernels."""
        return compiled.symbols(self.model)

    @cached_property
    def solution(self) -> Kernel | None:
        """The compiled solution, unless it would be too large."""
        if (
            not self.count
            or len(self.parts) > MOST
            or compiled.cost(self.model, self._lively()) > compiled.LARGEST
        ):
            return None
        return compiled.constraint_kernel(self.model, list(self.slices.values()), lambda: self.graph)

    @cached_property
    def looped(self) -> Looped | None:
        """Everything in loops over the bodies and constraints, for models with many of them."""
        if len(self.parts) < MANY or not looped.supports(self.model):
            return None
        return Looped(self.model, self.primary, self.parts, list(self.slices.values()))

    @cached_property
    def derivatives(self) -> Callable[..., Any]:
        from alembert.constraints.derivatives import derivative_kernel

        return derivative_kernel(self.model, list(self.slices.values()))

    @cached_property
    def slopes(self) -> Kernel | None:
        """The compiled solution for derivatives, where there is one for accelerations."""
        from alembert.constraints import derivative_solution

        if self.solution is None:
            return None
        return derivative_solution.kernel(self.model, list(self.slices.values()), lambda: self.graph)

    @cached_property
    def prescription(self) -> Kernel | None:
        """The compiled solution for hybrid dynamics, likewise."""
        from alembert.constraints import hybrid_solution

        if self.slopes is None or self.model.nv > hybrid_solution.MOST:
            return None
        slices = list(self.slices.values())
        return hybrid_solution.prescription_kernel(self.model, slices, lambda: self.graph)

    @cached_property
    def parameter_slopes(self) -> Kernel:
        from alembert.constraints.parameter_slopes import kernel

        return kernel(self.model, self.count, lambda: self.graph)

    @cached_property
    def unconstrained(self) -> Model:
        """The model without its constraints, with its frames."""
        return dataclasses.replace(self.model, loops=(), couplings=(), equations=())

    @cached_property
    def projection(self) -> Kernel | None:
        """One step of the projection, compiled under the same condition."""
        if self.solution is None:
            return None
        return compiled.projection_kernel(self.model, list(self.slices.values()), lambda: self.graph)

    def _lively(self) -> list[int]:
        """How many rows of each constraint do not vanish everywhere, by a few samples."""
        q = np.array([self.model.random_configuration(seed) for seed in range(3)])
        given = (
            q,
            np.zeros(self.model.nv),
            *([self.model.compute.parameter_defaults] if self.model.parameters else []),
        )
        G = self.terms(*given)[1]
        lively = np.max(np.abs(G), axis=(0, 2)) > 1e-12
        return [int(np.sum(lively[s])) for s in self.slices.values()]

    def tree(self, *, wrenches: bool) -> Kernel:
        """The compiled terms of the tree that the solution starts from, shared by all sets of constraints."""
        return kernels.tree_kernel(self.primary, wrenches=wrenches)

    def drives(self, chosen: Chosen, active: tuple[int, ...]) -> Kernel:
        """Inverse dynamics by some of the active rows, independent and driven speeds."""
        key = (chosen, active)
        if key not in self._drives:
            self._drives[key] = drives.kernel(
                self.model, list(self.slices.values()), lambda: self.graph, chosen, active
            )
        return self._drives[key]

    def drive_slopes(self, chosen: Chosen) -> Kernel:
        """Derivatives of inverse dynamics by some rows, independent and driven speeds."""
        from alembert.constraints import inverse_solution

        if chosen not in self._drive_slopes:
            slices = list(self.slices.values())
            self._drive_slopes[chosen] = inverse_solution.kernel(
                self.model, slices, lambda: self.graph, chosen
            )
        return self._drive_slopes[chosen]

    def system(self, function: str, active: Sequence[str] | None) -> ConstraintSystem:
        if active is None:
            key = self.names
        else:
            if isinstance(active, str):
                raise ArgumentError(f"{function}: active is {active!r}, expected a list of names")
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


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
