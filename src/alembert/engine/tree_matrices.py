"""Matrices over the speeds of a tree, for one state, by rows that fill the vector registers.

Whatever the number of lanes of a kernel, these functions work on one state at a time: the lanes of the registers are
neighbouring columns of a matrix. Rows are padded to whole cache lines. What is related to what (the speeds inboard and
outboard of each) is data, so the code does not grow with the tree; blocks of columns that hold nothing are not touched.

`products` forms matrices from two tables that have a column for every speed, x (the inner one's) and y (the outer one's):

    A_ki = sum_r x_r(i) y_r(k)   for i inboard of k,     A_ik likewise with other rows of the tables    (1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alembert.engine.loops import Lines
from alembert.engine.rolled_emitter import constant_data
from alembert.engine.target import Target

LINE = 8  # doubles in a cache line; rows and tables are padded to it


@dataclass(frozen=True)
class Relations:
    """For each speed: its joint's speeds, and those of the joints inboard of it."""

    own: Sequence[range]
    above: Sequence[Sequence[int]]

    @property
    def n(self) -> int:
        return len(self.own)

    @property
    def stride(self) -> int:
        """Doubles from row to row."""
        return padded(self.n)

    @property
    def matrix(self) -> int:
        """Doubles in a matrix."""
        return self.n * self.stride

    @property
    def own_entries(self) -> list[tuple[int, int]]:
        """The entries that couple the speeds of one joint, joint by joint, by rows."""
        return [(i, j) for i in range(self.n) for j in self.own[i]]

    def inboard(self, k: int) -> list[int]:
        """Speeds to eliminate k from: earlier ones of its own joint, and those above; ascending."""
        return sorted([*self.above[k], *range(self.own[k].start, k)])


def padded(size: int) -> int:
    return -(-size // LINE) * LINE


@dataclass(frozen=True)
class Sums:
    """Rows of the tables to multiply in (1): (row of the table of one, row of the table of the other) ..."""

    below: Sequence[tuple[int, int]]
    """row of k's, row of i's: for entries in row k, column i"""
    above: Sequence[tuple[int, int]]
    """row of i's, row of k's: for entries in row i, column k"""


class TreeMatrices:
    """Emits the functions for one tree; they belong to the attribute group `attributes`."""

    def __init__(self, name: str, relations: Relations, target: Target, attributes: str) -> None:
        self.name, self.relations, self.target, self.attributes = name, relations, target, attributes
        self.width = target.lanes
        self.blocks = -(-relations.n // self.width)
        self.text: list[str] = []
        self._tables: dict[bytes, str] = {}
        n = relations.n
        self.inboard = [relations.inboard(k) for k in range(n)]
        self.outboard: list[list[int]] = [[] for _ in range(n)]
        for k, row in enumerate(self.inboard):
            for i in row:
                self.outboard[i].append(k)
        self.related = [{k, *self.inboard[k], *self.outboard[k]} for k in range(n)]
        self.entries = sum(map(len, self.inboard))
        """pairs of a speed and another inboard of it"""

    def lines(self) -> Lines:
        return Lines(self.width, fused=self.target.fused)

    def data(self, label: str, values: object) -> str:
        """A table of integers; the same content is there once."""
        table = np.array(values, dtype=np.int32)
        key = table.tobytes()
        if key not in self._tables:
            self._tables[key] = f"@{self.name}_{label}"
            self.text.append(constant_data(f"{self.name}_{label}", table))
        return self._tables[key]

    def finish(self, label: str, w: Lines, parameters: Sequence[str]) -> str:
        name = f"{self.name}_{label}"
        self.text.append(w.function(name, parameters, self.attributes))
        return name

    def known(self, label: str) -> str:
        """The name of a function, if it is there already."""
        name = f"{self.name}_{label}"
        return name if any(f"@{name}(" in text for text in self.text) else ""

    # -- (1) -----------------------------------------------------------------------------------------------

    def products(self, sums: Sequence[Sums], *, packed: bool = False) -> str:
        """`void NAME(ptr table, ptr own, ptr matrix, ...)`: one matrix for each of `sums`.

        `own` has the entries of `own_entries`, for one matrix after the other. `packed`: the matrices have no padding, and
        `(..., ptr P, ..., i1 stream)` follow, a P for each of them; they are written to those and streamed from there, or
        else to their own places.
        """
        r, w = self.relations, self.lines()
        n, V = r.n, self.width
        stride, step = r.stride, n if packed else r.stride
        below: list[set[int]] = [set(row) for row in r.above]
        above: list[set[int]] = [set() for _ in range(n)]
        for k, inboard in enumerate(r.above):
            for i in inboard:
                above[i].add(k)
        names = [f"%m{j}" for j in range(len(sums))]
        buffers = [f"%P{j}" for j in range(len(sums))]
        places = names
        if packed:
            places = [
                w.let(f"select i1 %stream, ptr {p}, ptr {m}") for p, m in zip(buffers, names, strict=True)
            ]
        sides = [
            self._side("left", [s.below for s in sums], below, lambda b, i: b < i // V),
            self._side("right", [s.above for s in sums], above, lambda b, i: b > i // V),
        ]
        masks = [_bits(columns, i // V, V) for i in range(n) for columns in (below[i], above[i])]
        diagonal = self.data("diagonal", masks)
        zero = "zeroinitializer"

        row = w.loop("0", str(n))
        own = w.at("%table", row.index)
        start = w.let(f"mul nsw i64 {row.index}, {step}")
        rows = [w.at(place, start) for place in places]
        self._clear(w, below, above, row.index, rows, packed=packed)
        scalars = [side.scalars(w, own, stride) for side in sides]
        twice = w.let(f"shl nsw i64 {row.index}, 1")
        middle = w.let(f"and i64 {row.index}, {-V}")
        at_middle = w.at("%table", middle)
        found = [side.sums(w, s, at_middle, stride) for side, s in zip(sides, scalars, strict=True)]
        lanes = [w.mask(w.number(diagonal, twice)), w.mask(w.number(diagonal, w.let(f"add i64 {twice}, 1")))]
        values = [w.choose(lanes[0], x, w.choose(lanes[1], y, zero)) for x, y in zip(*found, strict=True)]
        self._put(w, values, rows, middle, packed=packed)
        for side, s in zip(sides, scalars, strict=True):
            first, last = (w.number(side.starts, x) for x in (row.index, w.let(f"add i64 {row.index}, 1")))
            block = w.loop(first, last)
            place = w.let(f"shl nsw i64 {block.index}, 1")
            offset = w.number(side.blocks, place)
            chosen = w.mask(w.number(side.blocks, w.let(f"add i64 {place}, 1")))
            values = [
                w.choose(chosen, value, zero) for value in side.sums(w, s, w.at("%table", offset), stride)
            ]
            self._put(w, values, rows, offset, packed=packed)
            w.end(block)
        self._copy_own(w, row.index, rows)
        parameters = ["ptr noalias %table", "ptr noalias %own"]
        if not packed:
            w.end(row)
            return self.finish("products", w, [*parameters, *_pointers(names)])
        stop = w.let(f"add nsw i64 {start}, {n}")
        w.branch("%stream", "streamed", "kept")
        w.label("streamed")
        for buffer, name in zip(buffers, names, strict=True):
            w.do(f"call void @{self.stream()}(ptr {buffer}, ptr {name}, i64 {start}, i64 {stop})")
        w.do("br label %kept")
        w.label("kept")
        w.end(row)
        pointers = [f"ptr {x}" for x in (*names, *buffers)]
        return self.finish("products", w, [*parameters, *pointers, "i1 %stream"])

    def _put(self, w: Lines, values: list[str], rows: list[str], offset: str, *, packed: bool) -> None:
        """A block of each matrix to its row; what is left of the last block, when the rows follow each other."""
        V, n = self.width, self.relations.n
        rest = n % V
        if not packed or not rest:
            for value, row in zip(values, rows, strict=True):
                w.store(value, row, offset, aligned=not packed)
            return
        w.mark += 1
        partial = w.let(f"icmp eq i64 {offset}, {n - rest}")
        w.branch(partial, f"part{w.mark}", f"full{w.mark}")
        for label, count in (("part", rest), ("full", V)):
            w.label(f"{label}{w.mark}")
            for value, row in zip(values, rows, strict=True):
                w.store_first(value, count, w.at(row, offset))
            w.do(f"br label %both{w.mark}")
        w.label(f"both{w.mark}")

    def _clear(
        self,
        w: Lines,
        below: list[set[int]],
        above: list[set[int]],
        row: str,
        rows: list[str],
        *,
        packed: bool,
    ) -> None:
        """Blocks of a row with nothing in them, but for that on the diagonal."""
        r, V = self.relations, self.width
        whole: list[list[int]] = [[] for _ in range(r.n)]
        rest: list[list[int]] = [[] for _ in range(r.n)]
        for i in range(r.n):
            for b in range(self.blocks):
                if b != i // V and not _bits(below[i], b, V) and not _bits(above[i], b, V):
                    partial = packed and V * (b + 1) > r.n
                    (rest if partial else whole)[i].append(V * b)
        for label, chosen, count in (("empty", whole, V), ("partly", rest, r.n % V)):
            if not any(chosen):
                continue
            starts = self.data(f"{label}_starts", np.cumsum([0, *map(len, chosen)]))
            table = self.data(label, [x for part in chosen for x in part])
            loop = w.loop(w.number(starts, row), w.number(starts, w.let(f"add i64 {row}, 1")))
            offset = w.number(table, loop.index)
            for place in rows:
                w.store_first("zeroinitializer", count, w.at(place, offset), aligned=not packed)
            w.end(loop)

    def _side(
        self,
        label: str,
        terms: Sequence[Sequence[tuple[int, int]]],
        columns: list[set[int]],
        where: Callable[[int, int], bool],
    ) -> _Side:
        V = self.width
        starts, blocks = [0], []
        for i, chosen in enumerate(columns):
            for b in range(self.blocks):
                if where(b, i) and _bits(chosen, b, V):
                    blocks.append((b * V, _bits(chosen, b, V)))
            starts.append(len(blocks))
        return _Side(terms, self.data(f"{label}_starts", starts), self.data(f"{label}_blocks", blocks))

    def _copy_own(self, w: Lines, row: str, rows: list[str]) -> None:
        """The entries of one row that couple the speeds of its own joint."""
        r = self.relations
        count = len(r.own_entries)
        starts = self.data("own_starts", np.cumsum([0, *map(len, r.own)]))
        shifts = self.data("own", [s.start for s in r.own])
        first, last = (w.number(starts, x) for x in (row, w.let(f"add i64 {row}, 1")))
        shift = w.let(f"sub nsw i64 {w.number(shifts, row)}, {first}")
        loop = w.loop(first, last)
        column = w.let(f"add nsw i64 {loop.index}, {shift}")
        for j, pointer in enumerate(rows):
            value = w.scalar(w.at("%own", j * count), loop.index)
            w.do(f"store double {value}, ptr {w.at(pointer, column)}, align 8")
        w.end(loop)

    # -- out -----------------------------------------------------------------------------------------------

    def stream(self) -> str:
        """`void NAME(ptr P, ptr out, i64 first, i64 last)`: elements first..last-1 of P, packed, to `out`.

        For results that no cache will hold, called for one part after the other: whole aligned vectors go past the caches,
        which saves the memory from reading what is then overwritten. A vector goes with the call that has its last
        element.
        """
        if known := self.known("stream"):
            return known
        w, V, n = self.lines(), self.width, self.relations.n
        address = w.let("ptrtoint ptr %out to i64")
        ahead = w.let(f"and i64 {w.let(f'sub i64 0, {address}')}, {8 * V - 1}")
        head = w.let(f"lshr i64 {ahead}, 3")
        edges = []
        for bound in ("%first", "%last"):
            whole = w.let(f"and i64 {w.let(f'sub nsw i64 {bound}, {head}')}, {-V}")
            place = w.let(f"add nsw i64 {whole}, {head}")
            before = w.let(f"icmp slt i64 {place}, {head}")
            edges.append(w.let(f"select i1 {before}, i64 {head}, i64 {place}"))
        line = w.loop(*edges, step=V)
        value = w.load("%P", line.index, aligned=False)
        w.do(f"store {w.T} {value}, ptr {w.at('%out', line.index)}, align {8 * V}, !nontemporal !77")
        w.end(line)
        begins = w.let("icmp eq i64 %first, 0")
        start = w.let(f"select i1 {begins}, i64 {head}, i64 0")
        ends = w.let(f"icmp eq i64 %last, {n * n}")
        tail = w.let(f"select i1 {ends}, i64 {edges[1]}, i64 %last")
        for first, last in (("0", start), (tail, "%last")):
            edge = w.loop(first, last)
            w.do(f"store double {w.scalar('%P', edge.index)}, ptr {w.at('%out', edge.index)}, align 8")
            w.end(edge)
        parameters = ["ptr noalias %P", "ptr noalias %out", "i64 %first", "i64 %last"]
        return self.finish("stream", w, parameters)


@dataclass(frozen=True)
class _Side:
    """The part of the rows left or right of the diagonal: its sums, and the blocks with their masks."""

    terms: Sequence[Sequence[tuple[int, int]]]
    starts: str
    blocks: str

    def scalars(self, w: Lines, own: str, stride: int) -> dict[int, str]:
        rows = sorted({mine for terms in self.terms for mine, _ in terms})
        return {row: w.spread(w.scalar(own, row * stride)) for row in rows}

    def sums(self, w: Lines, scalars: dict[int, str], at: str, stride: int) -> list[str]:
        others = sorted({other for terms in self.terms for _, other in terms})
        vectors = {row: w.load(at, row * stride) for row in others}
        return [w.dot([(scalars[mine], vectors[other]) for mine, other in terms]) for terms in self.terms]


def _bits(columns: set[int], block: int, width: int) -> int:
    return sum(1 << (c - block * width) for c in columns if c // width == block)


def _pointers(names: Sequence[str]) -> list[str]:
    return [f"ptr noalias {name}" for name in names]
