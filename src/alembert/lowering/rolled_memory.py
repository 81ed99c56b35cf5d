"""Where a rolled program keeps what: offsets into its workspace and into the array of constants, for every node.

A scalar of a node's record lives from the loop that writes it to the last one that reads it. Scalars that a node writes
and reads for the last time in the same loops make a *piece*, an area of its own, so that memory whose content nobody reads
any more is used again. On a chain the inward loop of forward dynamics then puts what it keeps where the node before it has
just read what the outward loop had left: the records of a long chain take half the memory and stay in the cache for twice as
many bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import casadi as ca
import numpy as np

from alembert.sweeps.kinds import Kind
from alembert.sweeps.tree import Tree
from alembert.sweeps.visits import OWN, Loop, Trace, Visit, elements

_ALIGNMENT = 8  # vectors: of regions that are worked on by full registers whatever the number of lanes


class Rolled(Protocol):
    """What the layout depends on."""

    tree: Tree
    kinds: list[Kind]
    trace: Trace
    pieces: dict[Lifetime, list[int]]


class Memory:
    """Where everything is: offsets in vectors from the start of the workspace, one for each node."""

    def __init__(self, source: Rolled) -> None:
        tree, trace_ = source.tree, source.trace
        n = len(tree)
        self.kind = np.zeros(n, dtype=np.int64)
        for k, kind in enumerate(source.kinds):
            self.kind[kind.nodes] = k
        self.parents = np.array(tree.parents, dtype=np.int64)
        self.v = np.array([s.start for s in tree.v_slices], dtype=np.int64)
        self.q = np.array([s.start for s in tree.q_slices], dtype=np.int64)
        self.node = np.arange(n, dtype=np.int64)
        self.children = np.bincount(self.parents + 1, minlength=n + 1)

        self.constants, self.read = _constant_rows(source)
        # what the prologue fills: constants that follow from parameters, the world's parts, zeros
        self.computed, end = self._packed([len(kind.computed) for kind in source.kinds], 0)
        computed = end
        prologue: list[ca.SX] = [ca.SX(0)] * end
        for kind in source.kinds:
            for k, expression in zip(kind.nodes, kind.expressions, strict=False):
                start = int(self.computed[k])
                prologue[start : start + expression.numel()] = elements(expression)
        world_passes = []
        for loop in trace_.loops:
            world_passes.append(len(prologue))
            prologue += loop.world
        world_shared = len(prologue)
        prologue += trace_.shared
        zeros = len(prologue)
        prologue += [ca.SX(0)] * max((loop.gathered for loop in trace_.loops), default=0)
        self.prologue = prologue

        shared = len(trace_.shared)
        paired = np.zeros(len(source.kinds), dtype=np.int64)
        pairs = trace_.pairs or trace_.back
        if pairs:
            self.form = np.array(pairs.form)[self.kind]
            paired = np.array(pairs.sizes)[pairs.form]
        self.record, end = self._packed(shared + paired, len(prologue))
        self.paired = self.record + shared
        self.runs = _runs(source)
        self.own, end = self._kept(source, end)
        self.paired_bars, end = self._packed(paired if trace_.back else 0 * paired, end)
        self.paired_bars_size = end - int(self.paired_bars[0])
        self.bars = end  # gradients, laid out like the computed constants
        end += computed if trace_.ends else 0
        self.parent_record = np.where(self.parents < 0, world_shared, self.record[self.parents])
        self.loops: list[dict[str, np.ndarray]] = []
        self.world_added: list[int] = []
        self.first: list[np.ndarray] = []
        """for each loop, the nodes to whose parent nothing has been added before"""
        orders = {i: [k for j, k in run.visits if j == i] for run in self.runs for i in run.loops}
        for i, (loop, world_pass) in enumerate(zip(trace_.loops, world_passes, strict=True)):
            columns: dict[str, np.ndarray] = {}
            if loop.world:
                end = self._pass_outward(columns, len(loop.world), world_pass, end, orders[i])
            self.world_added.append(zeros)
            if loop.gathered:
                end = self._add_inward(columns, loop.gathered, zeros, end, orders[i])
            self.loops.append(columns)
            self.first.append(columns.get("added in", self.node + zeros + 1) == zeros)
        self.end = round_up(end)

    def _packed(self, sizes: Sequence[int] | np.ndarray, start: int) -> tuple[np.ndarray, int]:
        """Offsets of consecutive pieces whose size depends on the kind, and their end."""
        lengths = np.array(sizes, dtype=np.int64)[self.kind]
        ends = start + np.cumsum(lengths)
        return ends - lengths, int(ends[-1])

    def _kept(self, source: Rolled, start: int) -> tuple[dict[str, np.ndarray], int]:
        """Where each node has the pieces of its record, by label, and their end."""
        free: dict[int, list[int]] = {}  # by size
        end = start
        found = {piece: [0] * len(self.kind) for piece in source.pieces}
        kinds = self.kind.tolist()
        written, left = (
            [
                [(found[piece], sizes) for piece, sizes in source.pieces.items() if getattr(piece, at) == i]
                for i in range(len(source.trace.loops))
            ]
            for at in ("written", "last")
        )
        for i, k in (visit for run in self.runs for visit in run.visits):
            for offsets, sizes in written[i]:
                size = sizes[kinds[k]]
                spare = free.setdefault(size, [])
                if spare:
                    offsets[k] = spare.pop()
                else:
                    offsets[k], end = end, end + size
            for offsets, sizes in left[i]:
                free[sizes[kinds[k]]].append(offsets[k])
        return {piece.label: np.array(offsets) for piece, offsets in found.items()}, end

    def _pass_outward(
        self, columns: dict[str, np.ndarray], size: int, top: int, start: int, order: Sequence[int]
    ) -> int:
        slots = _Slots(start, size)
        waiting = self.children[1:].tolist()  # children that have not been visited
        own = [0] * len(waiting)
        received = [0] * len(waiting)
        parents = self.parents.tolist()
        for k in order:
            parent = parents[k]
            own[k] = slots.take()
            received[k] = own[parent] if parent >= 0 else top
            if not waiting[k]:
                slots.free.append(own[k])
            if parent >= 0:
                waiting[parent] -= 1
                if not waiting[parent]:
                    slots.free.append(own[parent])
        columns["passed in"], columns["passed out"] = np.array(received), np.array(own)
        return slots.end

    def _add_inward(
        self, columns: dict[str, np.ndarray], size: int, zeros: int, start: int, order: Sequence[int]
    ) -> int:
        slots = _Slots(start, size)
        n = len(self.parents)
        gathered = [zeros] * (n + 1)  # the world last
        before, after = [0] * n, [0] * n
        parents = self.parents.tolist()
        for k in order:
            parent = parents[k]
            before[k] = gathered[parent]
            after[k] = gathered[parent] = slots.take()
            slots.free.extend(slot for slot in (before[k], gathered[k]) if slot != zeros)
        columns["gathered"], columns["added in"] = np.array(gathered[:n]), np.array(before)
        columns["added out"] = np.array(after)
        self.world_added[-1] = gathered[n]
        return slots.end


@dataclass(frozen=True)
class Pass:
    """Loops that run together: their numbers, and (number, node) of the visits in order."""

    loops: Sequence[int]
    visits: Sequence[tuple[int, int]]


def _runs(source: Rolled) -> list[Pass]:
    """A loop outward runs together with one inward that follows, branch by branch.

    A node is visited inward as soon as all that is outboard of it has been: its record is still in the nearest cache, and
    the memory is free for the next branch. Children come last first, which is the order that a loop inward adds them in.
    """
    directions = [loop.direction for loop in source.trace.loops]
    n = len(source.tree)
    children: list[list[int]] = [[] for _ in range(n + 1)]  # of the world last
    for k, parent in enumerate(source.tree.parents):
        children[parent].append(k)
    runs: list[Pass] = []
    cut = source.trace.back.before if source.trace.back else 0  # all pairs come between
    i = 0
    while i < len(directions):
        if directions[i : i + 2] == ["outward", "inward"] and i + 1 != cut:
            visits, waiting = [], [(i, k) for k in children[n]]
            while waiting:
                j, k = visit = waiting.pop()
                visits.append(visit)
                if j == i:
                    waiting += [(i + 1, k), *((i, child) for child in children[k])]
            runs.append(Pass((i, i + 1), visits))
        else:
            order = range(n) if directions[i] == "outward" else reversed(range(n))
            runs.append(Pass((i,), [(i, k) for k in order]))
        i += len(runs[-1].loops)
    return runs


class _Slots:
    def __init__(self, start: int, size: int) -> None:
        self.end, self._size = start, size
        self.free: list[int] = []

    def take(self) -> int:
        if self.free:
            return self.free.pop()
        self.end += self._size
        return self.end - self._size


def _constant_rows(source: Rolled) -> tuple[np.ndarray, np.ndarray]:
    """The constants of all nodes in one array, equal rows once, and where each node's begin."""
    offsets = np.zeros(len(source.tree), dtype=np.int64)
    parts = []
    end = 0
    for kind in source.kinds:
        width = kind.values.shape[1]
        if width:
            rows, which = np.unique(kind.values, axis=0, return_inverse=True)
            offsets[kind.nodes] = end + width * which.reshape(-1)
            parts.append(rows.ravel())
            end += rows.size
    return np.concatenate(parts) if parts else np.zeros(0), offsets


def round_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


# -- pieces ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Lifetime:
    """`last` is the number of loops for what is read after them."""

    written: int
    last: int

    @property
    def label(self) -> str:
        return f"{OWN} {self.written} {self.last}"


def in_pieces(trace: Trace) -> tuple[Trace, dict[Lifetime, list[int]]]:
    """The trace with an area for each piece instead of the own record, and the pieces' sizes in every kind."""
    lives = [_lives(trace, kind) for kind in range(len(trace.own_sizes))]
    pieces = sorted({piece for kind in lives for piece in kind})
    sizes = {piece: [kind.count(piece) for kind in lives] for piece in pieces}

    def divided(visit: Visit, kind: int, start: int) -> Visit:
        own = visit.inputs.get(OWN, [])
        inputs = {label: values for label, values in visit.inputs.items() if label != OWN}
        outputs = {label: values for label, values in visit.outputs.items() if label != OWN}
        inputs |= _by_piece(lives[kind][: len(own)], own)
        written = visit.outputs.get(OWN, [])
        outputs |= _by_piece(lives[kind][start : start + len(written)], written)
        used = _used(visit)
        inputs = {
            label: values
            for label, values in inputs.items()
            if not label.startswith(OWN) or any(x.element_hash() in used for x in values)
        }
        return Visit(inputs, outputs)

    def loop_in_pieces(loop: Loop) -> Loop:
        visits = [divided(visit, k, loop.own_start[k]) for k, visit in enumerate(loop.visits)]
        return replace(loop, visits=visits)

    pairs = trace.pairs
    if pairs:
        pairs = replace(pairs, own=[divided(visit, k, 0) for k, visit in enumerate(pairs.own)])
    return replace(trace, loops=[loop_in_pieces(loop) for loop in trace.loops], pairs=pairs), sizes


def _lives(trace: Trace, kind: int) -> list[Lifetime]:
    """The piece of each scalar in a kind's record."""
    written = [0] * trace.own_sizes[kind]
    last = [0] * trace.own_sizes[kind]
    for i, loop in enumerate(trace.loops):
        start = loop.own_start[kind]
        for p in range(start, start + len(loop.visits[kind].outputs.get(OWN, []))):
            written[p] = last[p] = i
    readers = [(i, loop.visits[kind]) for i, loop in enumerate(trace.loops)]
    if trace.pairs:
        readers.append((len(trace.loops), trace.pairs.own[kind]))
    for i, visit in readers:
        used = _used(visit)
        for p, symbol in enumerate(visit.inputs.get(OWN, [])):
            if symbol.element_hash() in used:
                last[p] = i
    return [Lifetime(*life) for life in zip(written, last, strict=True)]


def _by_piece(pieces: Sequence[Lifetime], values: Sequence[ca.SX]) -> dict[str, list[ca.SX]]:
    found: dict[str, list[ca.SX]] = {}
    for piece, value in zip(pieces, values, strict=True):
        found.setdefault(piece.label, []).append(value)
    return found


def _used(visit: Visit) -> set[int]:
    """The hashes of the symbols in what a visit gives out."""
    values = [x for part in visit.outputs.values() for x in part]
    return {symbol.element_hash() for symbol in ca.symvar(ca.vertcat(ca.SX(0, 1), *values))}
