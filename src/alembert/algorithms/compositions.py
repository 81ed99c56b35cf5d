"""Compositions of sweeps and small functions, for models of any size.

What follows from sweeps (`alembert.algorithms.graphs`: the velocity of a frame from that of its body, the energy from two
totals, wrenches on frames that act on bodies) is a short list of operations on named buffers:

    Sweep    a program over the bodies, or its adjoint, as loops
    Small    a function of a few numbers, as straight code
    Place    rows of a table that is zero elsewhere
    Pick     rows of a table
    Sum      buffers added up, or subtracted
    Product  the sum of products of matrices over the speeds
    Inverse  of a symmetric one

Which algorithms are made so: `alembert.algorithms.composed_algorithms`; their derivatives: `composition_derivatives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import casadi as ca

from alembert import sweeps
from alembert.algorithms import kernels
from alembert.engine.source import FunctionSource, Source
from alembert.lowering.dense import InverseSource, ProductSource, SumSource
from alembert.lowering.pipeline import PipelineSource, Stage
from alembert.lowering.rolled import Mode, RolledSource
from alembert.lowering.scatter import ScatterSource
from alembert.sweeps import Program, Tree

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class Sweep:
    """`names` are the program's inputs; the parameters follow them, where the model has any, then weights in an adjoint."""

    program: Program
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mode: Mode = ""


@dataclass(frozen=True, eq=False)
class Small:
    function: ca.Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Place:
    rows: tuple[int, ...]
    count: int
    width: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pick:
    rows: tuple[int, ...]
    count: int
    width: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Sum:
    signs: tuple[int, ...]
    size: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Product:
    """sign (A B + C D + ...) of the inputs A, B, C, D, ..."""

    sign: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Inverse:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


Operation = Sweep | Small | Place | Pick | Sum | Product | Inverse


@dataclass(frozen=True, eq=False)
class Composition:
    """Buffers that go in and come out, the sizes of all, and the operations in order."""

    tree: Tree
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    sizes: dict[str, int]
    operations: tuple[Operation, ...]
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """of a graph's results, by their names in it"""

    def change_size(self, buffer: str) -> int:
        return self.tree.model.nv if buffer == "q" else self.sizes[buffer]

    def source(self) -> Source:
        tree, made = self.tree, self.needed()
        results, copies = _distinct(self)
        stages = [Stage(_source(tree, x), _safe(x.inputs), _safe(x.outputs)) for x in (*made, *copies)]
        inside = {name for x in (*made, *copies) for name in x.outputs} - set(results)
        sizes = self.sizes | {new: self.sizes[old] for new, old in zip(results, self.results, strict=True)}
        return PipelineSource(
            {safe: sizes[name] for name, safe in zip(self.inputs, _safe(self.inputs), strict=True)},
            {safe: sizes[name] for name, safe in zip(results, _safe(results), strict=True)},
            {safe: sizes[name] for name, safe in zip(sorted(inside), _safe(sorted(inside)), strict=True)},
            stages,
        )

    def needed(self) -> list[Operation]:
        """The operations that some result depends on."""
        wanted, found = set(self.results), []
        for x in reversed(self.operations):
            if wanted & set(x.outputs):
                found.append(x)
                wanted |= set(x.inputs)
        return found[::-1]


def _distinct(c: Composition) -> tuple[list[str], list[Operation]]:
    """Names of results that are neither inputs nor other results, and the copies that this takes."""
    names: list[str] = []
    copies: list[Operation] = []
    for name in c.results:
        if name in c.inputs or name in names:
            copies.append(Sum((1,), c.sizes[name], (name,), (f"{name} as result {len(names)}",)))
            name = copies[-1].outputs[0]
        names.append(name)
    return names, copies


def _safe(names: Sequence[str]) -> list[str]:
    """Names of buffers as the intermediate language takes them."""
    return ["b_" + "".join(c if c.isalnum() else f"_{ord(c):x}_" for c in name) for name in names]


def _source(tree: Tree, x: Operation) -> Source:
    if isinstance(x, Sweep):
        if x.program is sweeps.FORWARD_DYNAMICS and not x.mode and not tree.model.parameters:
            return kernels.program_source(tree, x.program, x.names)  # code for each body is a third faster
        return RolledSource(x.program, tree, x.names, x.mode)
    if isinstance(x, Small):
        return FunctionSource(x.function)
    if isinstance(x, Sum):
        return SumSource(x.signs, x.size)
    if isinstance(x, Product):
        return ProductSource(tree.model.nv, len(x.inputs) // 2, x.sign)
    if isinstance(x, Inverse):
        return InverseSource(tree.model.nv)
    if isinstance(x, Place):
        rows = [ca.SX.sym("row", x.width) for _ in x.rows]
        return ScatterSource(ca.Function("place", rows, rows), x.rows, x.count)
    table = ca.SX.sym("table", x.count * x.width)
    rows = [table[x.width * k : x.width * (k + 1)] for k in x.rows]
    return FunctionSource(ca.Function("pick", [table], rows))
