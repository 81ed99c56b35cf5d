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

from dataclasses import dataclass, field

import casadi as ca

from alembert import sweeps
from alembert.algorithms import kernels
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.dense import InverseSource, ProductSource, SumSource
from alembert.lowering.plan import Call, Copy, Offset, Plan, Step
from alembert.lowering.rolled import Mode, RolledSource
from alembert.sweeps import Program, Tree


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

    def source(self) -> KernelSource:
        made = self.needed()
        results, copies = _distinct(self)
        steps = [step for x in made for step in _steps(self.tree, x)]
        inside = {name for x in made for name in x.outputs} - set(results)
        sizes = self.sizes | {new: self.sizes[old] for new, old in zip(results, self.results, strict=True)}
        return Plan(
            {name: sizes[name] for name in self.inputs},
            {name: sizes[name] for name in results},
            {name: sizes[name] for name in sorted(inside)},
            [*steps, *copies],
        )

    def needed(self) -> list[Operation]:
        """The operations that some result depends on."""
        wanted, found = set(self.results), []
        for x in reversed(self.operations):
            if wanted & set(x.outputs):
                found.append(x)
                wanted |= set(x.inputs)
        return found[::-1]


def _distinct(c: Composition) -> tuple[list[str], list[Step]]:
    """Names of results that are neither inputs nor other results, and the copies that this takes."""
    names: list[str] = []
    copies: list[Step] = []
    for name in c.results:
        if name in c.inputs or name in names:
            copies.append(Copy(name, f"{name} as result {len(names)}"))
            name = f"{name} as result {len(names)}"
        names.append(name)
    return names, copies


def _steps(tree: Tree, x: Operation) -> list[Step]:
    """An operation as steps of a plan."""
    if isinstance(x, Place):
        rows = zip(x.inputs, x.rows, strict=True)
        return [
            Copy(None, x.outputs[0]),
            *(Copy(row, Offset(x.outputs[0], x.width * k), x.width) for row, k in rows),
        ]
    if isinstance(x, Pick):
        rows = zip(x.outputs, x.rows, strict=True)
        return [Copy(Offset(x.inputs[0], x.width * k), row, x.width) for row, k in rows]
    return [Call(_source(tree, x), x.inputs, x.outputs)]


def _source(tree: Tree, x: Sweep | Small | Sum | Product | Inverse) -> KernelSource:
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
    return InverseSource(tree.model.nv)
