"""Matrices over the speeds of a tree, by rows.

With one state the lanes of the vector registers are neighbouring columns of a matrix, in *blocks*; rows are padded to whole
cache lines. In a batch they are states, and a block is one column. Both do the same operations in the same order, so that a
state's result does not depend on the company it was computed in.
What is related to what (the speeds inboard and outboard of each) is data, so the code does not grow with the tree;
blocks of columns that hold nothing are not touched. The reference is straight code of the whole derivatives (the `_small`
sources of `algorithms.derivative_kernels`); `tests/lowering/test_fast_paths.py` holds the two equal.

`products` forms matrices from two tables that have a column for every speed, x (the inner one's) and y (the outer one's):

    A_ki = sum_r x_r(i) y_r(k)   for i inboard of k,     A_ik likewise with other rows of the tables    (1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.engine.loops import Lines, constant_data
from alembert.engine.target import Target, leave_symbol

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
    """row of i's, row of k's: for entries in row i, column k; none (of many states, and in the last matrices): neither these
    entries nor those that are zero matter"""


class TreeMatrices:
    """Emits the functions for one tree; they belong to the attribute group `attributes`."""

    def __init__(self, name: str, relations: Relations, target: Target, attributes: str, lanes: int) -> None:
        self.name, self.relations, self.target, self.attributes = name, relations, target, attributes
        self.lanes = lanes
        self.width = target.lanes if lanes == 1 else 1
        """columns in a block"""
        self.stride = padded(relations.n) if lanes == 1 else relations.n
        """elements from row to row"""
        self.matrix = self.stride**2 + (lanes if lanes > 1 else 0)
        """elements in a matrix, and what is read or written beyond them"""
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
        self._below = [set(row) for row in relations.above]
        self._above: list[set[int]] = [set() for _ in range(n)]
        for k, inboard in enumerate(relations.above):
            for i in inboard:
                self._above[i].add(k)
        self.entries = sum(map(len, self.inboard))
        """pairs of a speed and another inboard of it"""

    def lines(self) -> Lines:
        return Lines(self.width, lanes=self.lanes, fused=self.target.fused)

    def data(self, label: str, values: object) -> str:
        """A table of integers; the same content is there once."""
        table = np.array(values, dtype=np.int32)
        key = table.tobytes()
        if key not in self._tables:
            self._tables[key] = f"@{self.name}_{label}"
            self.text.append(constant_data(f"{self.name}_{label}", table))
        return self._tables[key]

    def finish(
        self,
        label: str,
        w: Lines,
        pointers: Sequence[str],
        numbers: Sequence[str] = (),
        alike: Sequence[str] = (),
    ) -> str:
        name = f"{self.name}_{label}"
        self.text.append(w.function(name, pointers, self.attributes, numbers=numbers, alike=alike))
        return name

    def each(
        self,
        w: Lines,
        label: str,
        rows: Sequence[tuple[Any, Sequence[int]]],
        call: Callable[[Any, list[str]], None],
    ) -> None:
        """A loop over rows of numbers, with the code that `call` writes for each of the keys."""
        keys = sorted({key for key, _ in rows})
        width = 1 + len(rows[0][1])
        data = self.data(f"{label}_rows", [(keys.index(key), *numbers) for key, numbers in rows])
        loop = w.loop("0", str(len(rows)))
        place = w.mul(loop.index, width)
        which, *numbers = (w.number(data, w.add(place, c) if c else place) for c in range(width))
        w.choice(which, [f"{loop.name}_{k}" for k in range(len(keys))])
        for k, key in enumerate(keys):
            w.label(f"{loop.name}_{k}")
            call(key, numbers)
            w.go(f"{loop.name}_done")
        w.label(f"{loop.name}_done")
        w.end(loop)

    def known(self, label: str) -> str:
        """The name of a function, if it is there already."""
        name = f"{self.name}_{label}"
        return name if any(f"@{name}(" in text for text in self.text) else ""

    # -- (1) -----------------------------------------------------------------------------------------------

    def products(
        self,
        sums: Sequence[Sums],
        height: int,
        *,
        final: bool = False,
        zeros: Sequence[set[int]] | None = None,
    ) -> str:
        """`void NAME(ptr table, ptr own, ptr matrix, ...)`: one matrix for each of `sums`, from tables with `height` rows.

        `own` has the entries of `own_entries`, for one matrix after the other. `final`: the matrices are results. Those of
        one state have no padding then; those of many leave by the outlets that follow, one for each matrix. `zeros`: of many
        states, the columns of each row that must be zero where it has no relative; None for all.
        """
        if self.lanes > 1:
            return self._products_of_many(sums, height, final=final, zeros=zeros)
        r, w = self.relations, self.lines()
        n, V, stride, packed = r.n, self.width, self.stride, final
        names = [f"%m{j}" for j in range(len(sums))]
        below, above = self._below, self._above
        sides = [
            self._side("left", [s.below for s in sums], below, lambda b, i: b < i // V),
            self._side("right", [s.above for s in sums], above, lambda b, i: b > i // V),
        ]
        masks = [_bits(columns, V).get(i // V, 0) for i in range(n) for columns in (below[i], above[i])]
        diagonal = self.data("diagonal", masks)
        zero = w.zero

        row = w.loop("0", str(n))
        own = w.at("%table", row.index)
        start = w.mul(row.index, n if packed else stride)
        rows = [w.at(name, start) for name in names]
        self._clear(w, below, above, row.index, rows, packed=packed)
        scalars = [side.scalars(w, own, stride) for side in sides]
        twice = w.twice(row.index)
        middle = w.down(row.index, V)
        at_middle = w.at("%table", middle)
        found = [side.sums(w, s, at_middle, stride) for side, s in zip(sides, scalars, strict=True)]
        lanes = [w.mask(w.number(diagonal, twice)), w.mask(w.number(diagonal, w.add(twice, 1)))]
        values = [w.choose(lanes[0], x, w.choose(lanes[1], y, zero)) for x, y in zip(*found, strict=True)]
        self._put(w, values, rows, middle, packed=packed)
        for side, s in zip(sides, scalars, strict=True):
            first, last = (w.number(side.starts, x) for x in (row.index, w.add(row.index, 1)))
            block = w.loop(first, last)
            place = w.twice(block.index)
            offset = w.number(side.blocks, place)
            chosen = w.mask(w.number(side.blocks, w.add(place, 1)))
            values = [
                w.choose(chosen, value, zero) for value in side.sums(w, s, w.at("%table", offset), stride)
            ]
            self._put(w, values, rows, offset, packed=packed)
            w.end(block)
        self._copy_own(w, row.index, rows)
        w.end(row)
        return self.finish("products", w, ["%table", "%own", *names])

    def _products_of_many(
        self, sums: Sequence[Sums], height: int, *, final: bool, zeros: Sequence[set[int]] | None
    ) -> str:
        """Two rows at a time where they have the same relatives, in turn with their leaving.

        Rows that leave are kept in a small part of the cache: the matrices are buffers that begin with what the tiles of the
        next rows still need.
        """
        n, kept = self.relations.n, 2 * self.lanes
        names, outlets = ([f"%{x}{j}" for j in range(len(sums))] for x in "mo")
        pairs: list[range] = []
        for k in range(n):
            before = pairs[-1][0] if pairs and len(pairs[-1]) == 1 else None
            if (
                before is not None
                and self._below[k] - {before} == self._below[before]
                and self._above[before] - {k} == self._above[k]
                and self.related[before] == self.related[k]
            ):
                pairs[-1] = range(before, k + 1)
            else:
                pairs.append(range(k, k + 1))
        lists, rows = Lists(), []
        zero: list[set[int]] = [set(), set()]  # in the places of the first and the second row of a buffer
        for pair in pairs:
            first, last = pair[0], pair[-1]
            empty = set(range(n)) - self.related[first]
            known = zero[0] if len(pair) == 1 else zero[0] & zero[1]
            clear = empty - known if final else empty
            if zeros is not None:
                clear = clear & {column for k in pair for column in zeros[k]}
            for place in zero[: len(pair)]:
                place.clear()
                place.update(empty)
            mutual = int(first in self._below[last])
            parts = (sorted(self._below[first]), sorted(self._above[last]), sorted(clear))
            rows.append((len(pair), (first, mutual, *(x for part in parts for x in lists.add(part)))))
        given = ["%table", "%own", *names]
        functions = {
            size: self._rows_of_many(size, sums, height, given) for size in sorted({len(p) for p in pairs})
        }
        w = self.lines()
        table = self.data("products_lists", lists.content)

        def call(size: int, numbers: Sequence[str]) -> None:
            places = names
            if final:  # the buffers are for matrices that begin further back
                back = w.sub(kept, w.mul(numbers[0], n))
                places = [w.at(name, back) for name in names]
            w.call(functions[size], ["%table", "%own", *places, table], numbers)
            if not final:
                return
            start = w.mul(numbers[0], n)
            stop = w.add(start, size * n)
            for place, way in zip(places, outlets, strict=True):
                self.leave(w, place, way, start, stop)
            move = w.loop("0", str(kept))
            for name in names:
                w.store(w.load(w.at(name, size * n), move.index), name, move.index)
            w.end(move)

        self.each(w, "products", rows, call)
        return self.finish("products", w, [*given, *(outlets if final else [])])

    @property
    def products_buffer(self) -> int:
        """Elements of a matrix that leaves as its rows become known."""
        return 3 * self.lanes + 2 * self.relations.n

    def _rows_of_many(self, size: int, sums: Sequence[Sums], height: int, given: list[str]) -> str:
        w, n = self.lines(), self.relations.n

        def column(index: str) -> str:
            return w.at("%table", w.mul(index, height))

        places = []
        for a in range(size):
            index = w.add("%first", a)
            places.append([w.at(m, w.mul(index, n)) for m in given[2:]])
        empty = w.loop("%empty", "%full")
        at = w.number("%list", empty.index)
        for m in (m for row in places for m, s in zip(row, sums, strict=True) if s.above):
            w.store(w.zero, m, at)
        w.end(empty)
        own = [column(w.add("%first", a)) for a in range(size)]
        for which, (begin, end) in enumerate((("%left", "%left_end"), ("%right", "%right_end"))):
            terms = [(s.below, s.above)[which] for s in sums if s.above or not which]
            side = _Side(terms, "", "")
            scalars = [side.scalars(w, x, 1) for x in own]
            if size == 2:  # of each other
                mutual = w.loop("0", "%mutual")
                mine, other = (1, 0) if which == 0 else (0, 1)
                index = w.add("%first", other)
                for value, m in zip(side.sums(w, scalars[mine], own[other], 1), places[mine], strict=False):
                    w.store(value, m, index)
                w.end(mutual)
            entry = w.loop(begin, end)
            index = w.number("%list", entry.index)
            source, vectors = column(index), {}  # loaded late, so that all stays in registers
            for j, pairs in enumerate(terms):
                for other in (other for _, other in pairs if other not in vectors):
                    vectors[other] = w.load(source, other)
                for a in range(size):
                    value = w.dot([(scalars[a][mine], vectors[other]) for mine, other in pairs])
                    w.store(value, places[a][j], index)
            w.end(entry)
        for a in range(size):
            self._copy_own(w, w.add("%first", a), places[a])
        numbers = ("first", "mutual", "left", "left_end", "right", "right_end", "empty", "full")
        return self.finish(f"product_rows{size}", w, [*given, "%list"], [f"%{x}" for x in numbers])

    def _put(self, w: Lines, values: list[str], rows: list[str], offset: str, *, packed: bool) -> None:
        """A block of each matrix to its row; what is left of the last block, when the rows follow each other."""
        V, n = self.width, self.relations.n
        rest = n % V
        if not packed or not rest:
            for value, row in zip(values, rows, strict=True):
                w.store(value, row, offset, aligned=not packed)
            return
        w.mark += 1
        partial = w.equal(offset, n - rest)
        w.branch(partial, f"part{w.mark}", f"full{w.mark}")
        for label, count in (("part", rest), ("full", V)):
            w.label(f"{label}{w.mark}")
            for value, row in zip(values, rows, strict=True):
                w.store_first(value, count, w.at(row, offset))
            w.go(f"both{w.mark}")
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
            filled = {i // V, *_bits(below[i], V), *_bits(above[i], V)}
            for b in range(self.blocks):
                if b not in filled:
                    partial = packed and V * (b + 1) > r.n
                    (rest if partial else whole)[i].append(V * b)
        for label, chosen, count in (("empty", whole, V), ("partly", rest, r.n % V)):
            if not any(chosen):
                continue
            starts = self.data(f"{label}_starts", np.cumsum([0, *map(len, chosen)]))
            table = self.data(label, [x for part in chosen for x in part])
            loop = w.loop(w.number(starts, row), w.number(starts, w.add(row, 1)))
            offset = w.number(table, loop.index)
            for place in rows:
                w.store_first(w.zero, count, w.at(place, offset), aligned=not packed)
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
            blocks += [(b * V, bits) for b, bits in sorted(_bits(chosen, V).items()) if where(b, i)]
            starts.append(len(blocks))
        return _Side(terms, self.data(f"{label}_starts", starts), self.data(f"{label}_blocks", blocks))

    def _copy_own(self, w: Lines, row: str, rows: list[str]) -> None:
        """The entries of one row that couple the speeds of its own joint."""
        r = self.relations
        count = len(r.own_entries)
        starts = self.data("own_starts", np.cumsum([0, *map(len, r.own)]))
        shifts = self.data("own", [s.start for s in r.own])
        first, last = (w.number(starts, x) for x in (row, w.add(row, 1)))
        shift = w.sub(w.number(shifts, row), first)
        loop = w.loop(first, last)
        column = w.add(loop.index, shift)
        for j, pointer in enumerate(rows):
            value = w.scalar(w.at("%own", j * count), loop.index)
            w.put(value, pointer, column)
        w.end(loop)

    # -- out -----------------------------------------------------------------------------------------------

    def leave(self, w: Lines, matrix: str, way: str, first: str | int, last: str | int) -> None:
        """Elements first..last-1 of a matrix go out, see `alembert.engine.outlet`."""
        count = self.relations.n**2
        name = leave_symbol(count, self.lanes, self.target, whole=False)
        w.call(name, [matrix, way], [first, last, count])


class Lists:
    """Lists one after the other; the same content is there once."""

    def __init__(self) -> None:
        self.content: list[int] = []
        self._known: dict[tuple[int, ...], tuple[int, int]] = {}

    def add(self, values: Sequence[int]) -> tuple[int, int]:
        """Where it begins and ends."""
        key = tuple(values)
        if key not in self._known:
            start = len(self.content)
            self.content += key
            self._known[key] = start, len(self.content)
        return self._known[key]


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


def _bits(columns: set[int], width: int) -> dict[int, int]:
    """A bit for each of the columns, by block; those without any are left out."""
    found: dict[int, int] = {}
    for c in columns:
        found[c // width] = found.get(c // width, 0) | 1 << c % width
    return found
