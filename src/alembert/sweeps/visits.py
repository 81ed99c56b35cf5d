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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import casadi as ca

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
