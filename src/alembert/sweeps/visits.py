"""A program as loops over nodes, in terms of scalars.

Consecutive sweeps of one direction make one *loop*: outward, parents are complete before their children;
inward, all contributions are complete before a node's own visit. One *visit* is one node's share of a loop.
It reads and writes *areas* of memory, lists of scalars:

    GIVEN            the node's inputs, by name
    READ, COMPUTED   its constants
    OWN              what its earlier visits stored
    SHARED           what its parent's visits in earlier loops stored for its children
    PASSED           what its parent's visit in this loop passes on
    GATHERED         what its children's visits in this loop added up (all zero for a leaf)
    ADDED            what the visits of its siblings added up in its parent so far
    PAIRED           what it stored for pairs of nodes
    BARS             in adjoints, the gradient with respect to its computed constants
    PAIRED_BARS      in adjoints, that with respect to what it stored for pairs

The values that steps leave in records, seen as lists of scalars.

A value is an `SX`, a spatial type, a factor or a tuple of such. It can be taken apart into its matrices and put
together again with others in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.sweeps.node import map_matrices


def outline(value: Any) -> Any:
    """What two values must have in common for one to stand for the other."""
    if isinstance(value, ca.SX):
        return value.shape
    if isinstance(value, tuple | list):
        return type(value), tuple(outline(x) for x in value)
    if value is None or isinstance(value, int | float | str):
        return value
    return type(value), tuple((name, outline(x)) for name, x in vars(value).items())


def matrices(value: Any) -> list[ca.SX]:
    """Every `SX` in a value, in order."""
    found: list[ca.SX] = []

    def see(m: ca.SX) -> ca.SX:
        found.append(m)
        return m

    map_matrices(value, see)
    return found


def nonzeros(m: ca.SX) -> list[ca.SX]:
    found: list[Any] = m.nonzeros()
    return found


def elements(m: ca.SX) -> list[ca.SX]:
    """All entries by columns."""
    found: list[Any] = m.elements()
    return found


class Dense:
    """A value all of whose entries are symbols; symmetric matrices have those of their lower triangles."""

    def __init__(self, name: str, example: Any, *, symmetric: bool = True) -> None:
        self._shapes: list[tuple[int, int]] = []
        self._symmetric: list[bool] = []
        self.symbols: list[ca.SX] = []
        self.others: list[ca.SX] = []
        """as many again, for what siblings contribute"""

        def fill(m: ca.SX) -> ca.SX:
            mirrored = symmetric and _is_symmetric(m)
            self._shapes.append(m.shape)
            self._symmetric.append(mirrored)
            full = ca.SX.sym(name, m.shape[0], m.shape[1])
            if mirrored:
                full = ca.tril2symm(ca.tril(full))
            self.symbols += _entries(full, mirrored)
            return full

        self.value = map_matrices(example, fill)
        self.others = nonzeros(ca.SX.sym(f"{name}_others", len(self.symbols)))

    def holds(self, value: Any) -> bool:
        """Whether the value's matrices are symmetric where these are."""
        return all(
            not mirrored or _is_symmetric(m)
            for m, mirrored in zip(matrices(value), self._symmetric, strict=True)
        )

    def entries(self, value: Any) -> list[ca.SX]:
        found: list[ca.SX] = []
        for m, shape, mirrored in zip(matrices(value), self._shapes, self._symmetric, strict=True):
            if m.shape != shape:
                raise UnsupportedError(f"a field is {m.shape} in one kind of node and {shape} in another")
            found += _entries(m, mirrored)
        return found


def _entries(m: ca.SX, mirrored: bool) -> list[ca.SX]:
    """All entries by columns, of the lower triangle only where the matrix is mirrored."""
    entries = elements(m)
    if not mirrored:
        return entries
    rows = m.shape[0]
    return [entries[i + rows * j] for j in range(rows) for i in range(j, rows)]


def _is_symmetric(m: ca.SX) -> bool:
    rows, columns = m.shape
    if rows != columns or rows == 1:
        return False
    entries = elements(m)
    return all(
        ca.is_equal(entries[i + rows * j], entries[j + rows * i], 4) for j in range(rows) for i in range(j)
    )


READ, COMPUTED, OWN, SHARED, PASSED, GATHERED, ADDED, PAIRED, BARS, PAIRED_BARS = (
    "constants",
    "computed constants",
    "own record",
    "shared record",
    "passed",
    "gathered",
    "added",
    "paired record",
    "gradients of computed constants",
    "gradients of the paired record",
)


def world_area(loop: int) -> str:
    """What the roots have added up in the world in a loop."""
    return f"world of loop {loop}"


@dataclass
class Visit:
    """What one kind does in one loop: scalars by area, or by the names of inputs and results."""

    inputs: dict[str, list[ca.SX]]
    outputs: dict[str, list[ca.SX]] = field(default_factory=dict)


@dataclass
class Loop:
    """The visits of all nodes, one after the other."""

    direction: Literal["outward", "inward"]
    visits: list[Visit]
    """one per kind"""
    world: list[ca.SX] = field(default_factory=list)
    """what the world passes to the roots, of the model's parameters"""
    own_start: list[int] = field(default_factory=list)
    """for each kind, where in its own record the visit's part begins"""
    shared_start: int = 0
    paired_start: list[int] = field(default_factory=list)
    gathered: int = 0
    """how many scalars children add to their parent"""


INNER = "inner "
"""goes before the areas of the inner node of a pair"""


@dataclass
class Trace:
    """All loops of a program, and how much memory they need."""

    loops: list[Loop]
    own_sizes: list[int]
    """scalars in the own record of each kind"""
    shared: list[ca.SX]
    """the world's shared record, of the model's parameters; as long as everyone's"""
    totals: dict[str, tuple[int, Visit]]
    """for each total, the loop that gathers it and the copy from the world's gathered area"""
    pairs: PairsTrace | None
    starts: dict[str, ca.SX] = field(default_factory=dict)
    """what the world's parts depend on besides the parameters, by the names of inputs: their changes, weights of totals"""
    back: PairsAdjoint | None = None
    ends: Visit | None = None
    """last of all, gradients with respect to the parameters, from BARS and what the world has gathered (`world_area`)"""


@dataclass
class PairsTrace:
    """The blocks of the matrices, by rows; "NAME 0" has the rows of the outer node, "NAME 1" of the inner."""

    own: list[Visit]
    """for each kind, the blocks of a node with itself"""
    form: list[int]
    """for each kind, the form of its nodes as others see them"""
    visits: dict[tuple[int, int], Visit]
    """for the forms of a node and of one inboard of it"""
    sizes: list[int]
    """scalars that nodes of each form store for it"""


@dataclass
class PairsAdjoint:
    """What the weights of matrices give back to the records of both nodes of every pair, before the loop `before`.

    Visits read the blocks "weight of NAME 0" and "weight of NAME 1" out of rows as long as the matrices', and add to
    PAIRED_BARS of the outer node and, with INNER before it, of the inner one.
    """

    before: int
    form: list[int]
    visits: dict[tuple[int, int], Visit]
    sizes: list[int]


def hashes(symbols: Iterable[ca.SX]) -> set[int]:
    return {s.element_hash() for s in symbols}


def only_used(visit: Visit, depends: Callable[[ca.SX], frozenset[int]]) -> None:
    """Drop areas of which no scalar is used, and empty outputs."""
    visit.outputs = {name: values for name, values in visit.outputs.items() if values}
    used = {h for values in visit.outputs.values() for x in values for h in depends(x)}
    visit.inputs = {
        name: values for name, values in visit.inputs.items() if not used.isdisjoint(hashes(values))
    }
