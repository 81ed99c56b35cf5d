"""Matrices over the speeds of a tree, for one state, by rows that fill the vector registers.

Whatever the number of lanes of a kernel, these functions work on one state at a time: the lanes of the registers are
neighbouring columns of a matrix. Rows are padded to whole cache lines. What is related to what (the speeds inboard and
outboard of each) is data, so the code does not grow with the tree; blocks of columns that hold nothing are not touched.

`products` forms matrices from two tables that have a column for every speed, x (the inner one's) and y (the outer one's):

    A_ki = sum_r x_r(i) y_r(k)   for i inboard of k,     A_ik likewise with other rows of the tables    (1)

`factorise` and `solve` are M = L^T D L along the tree (Featherstone), without fill-in:

    k from the last to the first, i inboard of k:   L_ki = A_ki / A_kk,   A_i -= L_ki A_k               (2)
    M X = B:   X_i = B_i - sum_k L_ki X_k,  k outboard;   X_k = X_k / D_k - sum_i L_ki X_i,  i inboard  (3)

In (3) the first half leaves rows zero where they were: row k of the matrices here has entries only in columns related
to k, so that the sum over k skips, for each block of columns, the rows that have none in it.
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
        n = relations.n
        self._inboard = [relations.inboard(k) for k in range(n)]
        self._outboard: list[list[int]] = [[] for _ in range(n)]
        for k, row in enumerate(self._inboard):
            for i in row:
                self._outboard[i].append(k)
        self.entries = sum(map(len, self._inboard))
        """numbers of L"""

    def lines(self) -> Lines:
        return Lines(self.width, fused=self.target.fused)

    def data(self, label: str, values: object) -> str:
        name = f"{self.name}_{label}"
        self.text.append(constant_data(name, np.array(values, dtype=np.int32)))
        return f"@{name}"

    def finish(self, label: str, w: Lines, parameters: Sequence[str]) -> str:
        name = f"{self.name}_{label}"
        self.text.append(w.function(name, parameters, self.attributes))
        return name

    # -- (1) -----------------------------------------------------------------------------------------------

    def products(self, sums: Sequence[Sums]) -> str:
        """`void NAME(ptr table, ptr own, ptr matrix, ...)`: one matrix for each of `sums`.

        `own` has the entries of `own_entries`, for one matrix after the other.
        """
        r, w = self.relations, self.lines()
        n, stride, V = r.n, r.stride, self.width
        below: list[set[int]] = [set(row) for row in r.above]
        above: list[set[int]] = [set() for _ in range(n)]
        for k, inboard in enumerate(r.above):
            for i in inboard:
                above[i].add(k)
        names = [f"%m{j}" for j in range(len(sums))]
        self._clear(w, below, above, names)
        sides = [
            self._side("left", [s.below for s in sums], below, lambda b, i: b < i // V),
            self._side("right", [s.above for s in sums], above, lambda b, i: b > i // V),
        ]
        masks = [_bits(columns, i // V, V) for i in range(n) for columns in (below[i], above[i])]
        diagonal = self.data("diagonal", masks)
        zero = "zeroinitializer"

        row = w.loop("0", str(n))
        own = w.at("%table", row.index)
        start = w.let(f"mul nsw i64 {row.index}, {stride}")
        rows = [w.at(name, start) for name in names]
        scalars = [side.scalars(w, own, stride) for side in sides]
        twice = w.let(f"shl nsw i64 {row.index}, 1")
        middle = w.let(f"and i64 {row.index}, {-V}")
        at_middle = w.at("%table", middle)
        found = [side.sums(w, s, at_middle, stride) for side, s in zip(sides, scalars, strict=True)]
        lanes = [w.mask(w.number(diagonal, twice)), w.mask(w.number(diagonal, w.let(f"add i64 {twice}, 1")))]
        for pointer, left, right in zip(rows, *found, strict=True):
            value = w.choose(lanes[0], left, w.choose(lanes[1], right, zero))
            w.store(value, pointer, middle)
        for side, s in zip(sides, scalars, strict=True):
            first, last = (w.number(side.starts, x) for x in (row.index, w.let(f"add i64 {row.index}, 1")))
            block = w.loop(first, last)
            place = w.let(f"shl nsw i64 {block.index}, 1")
            offset = w.number(side.blocks, place)
            chosen = w.mask(w.number(side.blocks, w.let(f"add i64 {place}, 1")))
            for pointer, value in zip(rows, side.sums(w, s, w.at("%table", offset), stride), strict=True):
                w.store(w.choose(chosen, value, zero), pointer, offset)
            w.end(block)
        w.end(row)
        self._copy_own(w, names)
        return self.finish("products", w, ["ptr noalias %table", "ptr noalias %own", *_pointers(names)])

    def _clear(self, w: Lines, below: list[set[int]], above: list[set[int]], names: list[str]) -> None:
        """Blocks with nothing in them, but for those on the diagonal."""
        r, V = self.relations, self.width
        empty = [
            i * r.stride + V * b
            for i in range(r.n)
            for b in range(self.blocks)
            if b != i // V and not _bits(below[i], b, V) and not _bits(above[i], b, V)
        ]
        table = self.data("empty", empty)
        loop = w.loop("0", str(len(empty)))
        offset = w.number(table, loop.index)
        for name in names:
            w.store("zeroinitializer", name, offset)
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

    def _copy_own(self, w: Lines, names: list[str]) -> None:
        r = self.relations
        entries = r.own_entries
        places = self.data("own", [i * r.stride + j for i, j in entries])
        loop = w.loop("0", str(len(entries)))
        place = w.number(places, loop.index)
        for j, name in enumerate(names):
            value = w.scalar(w.at("%own", j * len(entries)), loop.index)
            w.do(f"store double {value}, ptr {w.at(name, place)}, align 8")
        w.end(loop)

    # -- (2) -----------------------------------------------------------------------------------------------

    def factorise(self) -> str:
        """`void NAME(ptr M, ptr L, ptr LT, ptr D)`: L by k, L by i, 1/D; M is destroyed."""
        r, w = self.relations, self.lines()
        n, stride, V = r.n, r.stride, self.width
        starts, rows, places = self._by_outer()
        blocks = [sorted({i // V for i in row}) for row in self._inboard]
        block_starts = self.data("factor_starts", np.cumsum([0, *map(len, blocks)]))
        block_list = self.data("factor_blocks", [b * V for row in blocks for b in row])

        k = w.loop(str(n - 1), "0", down=True)
        following = w.let(f"add i64 {k.index}, 1")
        A_k = w.at("%M", w.let(f"mul nsw i64 {k.index}, {stride}"))
        inverse = w.let(f"fdiv double 1.0, {w.scalar(A_k, k.index)}")
        w.do(f"store double {inverse}, ptr {w.at('%D', k.index)}, align 8")
        first_block, last_block = w.number(block_starts, k.index), w.number(block_starts, following)
        entry = w.loop(w.number(starts, k.index), w.number(starts, following))
        i = w.number(rows, entry.index)
        value = w.let(f"fmul double {w.scalar(A_k, i)}, {inverse}")
        w.do(f"store double {value}, ptr {w.at('%L', entry.index)}, align 8")
        w.do(f"store double {value}, ptr {w.at('%LT', w.number(places, entry.index))}, align 8")
        A_i = w.at("%M", w.let(f"mul nsw i64 {i}, {stride}"))
        factor = w.minus(w.spread(value))
        block = w.loop(first_block, last_block)
        b = w.number(block_list, block.index)
        w.store(w.plus_product(factor, w.load(A_k, b), w.load(A_i, b)), A_i, b)
        w.end(block)
        w.end(entry)
        w.end(k)
        return self.finish("factorise", w, _pointers(["%M", "%L", "%LT", "%D"]))

    def _by_outer(self) -> tuple[str, str, str]:
        """L by k: where each k begins, the speeds i, and the places of the entries in L by i."""
        place, count = {}, 0
        for i, row in enumerate(self._outboard):
            for k in row:
                place[k, i] = count
                count += 1
        places = [place[k, i] for k, row in enumerate(self._inboard) for i in row]
        return (
            self.data("outer_starts", np.cumsum([0, *map(len, self._inboard)])),
            self.data("outer_rows", [i for row in self._inboard for i in row]),
            self.data("outer_places", places),
        )

    # -- (3) -----------------------------------------------------------------------------------------------

    def solve(self, signs: Sequence[int]) -> str:
        """`void NAME(ptr L, ptr LT, ptr D, ptr X, ...)`: M^-1 times each matrix (-M^-1 for sign -1), in place."""
        names = [f"%x{j}" for j in range(len(signs))]
        parameters = _pointers(["%L", "%LT", "%D", *names])
        panels = 2 if self.blocks <= 8 else 4  # blocks at once; one alone would wait for its sums
        whole = self.blocks - self.blocks % panels
        parts = [(0, whole, panels), (whole, self.blocks, self.blocks - whole)]
        inward = [self._inward(names, parameters, *part) for part in parts if part[1] > part[0]]
        most = max(1, (24 if self.width == 8 else 12) // len(signs))  # sums that fit into the registers
        w = self.lines()
        pointers = ", ".join(f"ptr {x}" for x in ("%L", "%LT", "%D", *names))
        for part in inward:
            w.do(f"call void @{part}({pointers})")
        tables = self._by_outer_rows()
        done = 0
        while done < self.blocks:
            count = min(most, self.blocks - done)
            panel = self._outward(names, signs, count, tables, parameters)
            moved = [w.at(name, done * self.width) for name in names]
            pointers = ", ".join(f"ptr {x}" for x in ("%L", "%LT", "%D", *moved))
            w.do(f"call void @{panel}({pointers})")
            done += count
        return self.finish("solve", w, parameters)

    def _inward(self, names: list[str], parameters: list[str], start: int, stop: int, panel: int) -> str:
        """The first half on blocks of columns, `panel` of them at once: runs of rows k to take from row i."""
        r, w, V = self.relations, self.lines(), self.width
        related = [{k, *row} for k, row in enumerate(self._inboard)]
        for i, outboard in enumerate(self._outboard):
            related[i] |= set(outboard)
        has = np.zeros((r.n, self.blocks), dtype=bool)
        for k, columns in enumerate(related):
            has[k, sorted({c // V for c in columns})] = True
        starts = np.cumsum([0, *map(len, self._outboard)])
        runs: list[tuple[int, int, int, int]] = []
        for i in reversed(range(r.n)):  # panels within: neighbouring runs do not wait for each other
            for b in range(start, stop, panel):
                wanted = set(np.flatnonzero(has[:, b : b + panel].any(axis=1)).tolist())
                chosen = [(k, int(starts[i]) + p) for p, k in enumerate(self._outboard[i]) if k in wanted]
                for first, at, count in _runs(chosen):
                    runs.append((i * r.stride + b * V, first * r.stride + b * V, at, count))
        table = self.data(f"inward_runs{panel}", runs)
        columns_of = [(name, b * V) for name in names for b in range(panel)]
        run = w.loop("0", str(len(runs)))
        place = w.let(f"shl nsw i64 {run.index}, 2")
        target, source, begin, steps = (
            w.number(table, w.let(f"add nsw i64 {place}, {c}") if c else place) for c in range(4)
        )
        factors = w.at("%LT", begin)
        rows = {name: w.at(name, target) for name in names}
        step = w.loop("0", steps, [w.load(rows[name], b) for name, b in columns_of])
        factor = w.minus(w.spread(w.scalar(factors, step.index)))
        taken = w.let(f"add nsw i64 {source}, {w.let(f'mul nsw i64 {step.index}, {r.stride}')}")
        others = {name: w.at(name, taken) for name in names}
        w.end(
            step,
            [
                w.plus_product(factor, w.load(others[name], b), total)
                for (name, b), total in zip(columns_of, step.sums, strict=True)
            ],
        )
        for (name, b), total in zip(columns_of, step.sums, strict=True):
            w.store(total, rows[name], b)
        w.end(run)
        return self.finish(f"inward{panel}", w, parameters)

    def _by_outer_rows(self) -> tuple[str, str]:
        stride = self.relations.stride
        return (
            self.data("solve_starts", np.cumsum([0, *map(len, self._inboard)])),
            self.data("solve_rows", [i * stride for row in self._inboard for i in row]),
        )

    def _outward(
        self,
        names: list[str],
        signs: Sequence[int],
        count: int,
        tables: tuple[str, str],
        parameters: list[str],
    ) -> str:
        """The second half, for `count` blocks of columns of all matrices at once."""
        label = f"outward{count}"
        if f"{self.name}_{label}(" in "".join(self.text):
            return f"{self.name}_{label}"
        w, (starts, rows) = self.lines(), tables
        columns = [(name, b * self.width) for name in names for b in range(count)]
        scale = [sign for sign in signs for _ in range(count)]
        k = w.loop("0", str(self.relations.n))
        target = w.let(f"mul nsw i64 {k.index}, {self.relations.stride}")
        inverse = w.spread(w.scalar("%D", k.index))
        opposite = w.minus(inverse)
        at_k = [w.at(name, target) for name in names]
        begin = [
            w.times(w.load(at_k[names.index(name)], b), inverse if sign > 0 else opposite)
            for (name, b), sign in zip(columns, scale, strict=True)
        ]
        first, last = (w.number(starts, x) for x in (k.index, w.let(f"add i64 {k.index}, 1")))
        entry = w.loop(first, last, begin)
        factor = w.minus(w.spread(w.scalar("%L", entry.index)))
        row = w.number(rows, entry.index)
        at_i = [w.at(name, row) for name in names]
        totals = [
            w.plus_product(factor, w.load(at_i[names.index(name)], b), total)
            for (name, b), total in zip(columns, entry.sums, strict=True)
        ]
        w.end(entry, totals)
        for (name, b), total in zip(columns, entry.sums, strict=True):
            w.store(total, at_k[names.index(name)], b)
        w.end(k)
        return self.finish(label, w, parameters)

    def identity(self) -> str:
        """`void NAME(ptr X)`: ones on the diagonal, zeros elsewhere."""
        r, w = self.relations, self.lines()
        block = w.loop("0", str(r.matrix), step=self.width)
        w.store("zeroinitializer", "%x", block.index)
        w.end(block)
        k = w.loop("0", str(r.n))
        place = w.let(f"mul nsw i64 {k.index}, {r.stride + 1}")
        w.do(f"store double 1.0, ptr {w.at('%x', place)}, align 8")
        w.end(k)
        return self.finish("identity", w, ["ptr noalias %x"])

    # -- out -----------------------------------------------------------------------------------------------

    def deliver(self) -> str:
        """`void NAME(ptr X, ptr out, i1 stream)`: a matrix without the padding.

        `stream` is for results that no cache will hold: whole aligned vectors go past the caches, which saves the
        memory from reading what is then overwritten.
        """
        r, w, V = self.relations, self.lines(), self.width
        n, stride = r.n, r.stride
        w.branch("%stream" if n >= V else "false", "streamed", "rows")
        w.label("rows")
        row = w.loop("0", str(n))
        source = w.at("%x", w.let(f"mul nsw i64 {row.index}, {stride}"))
        target = w.at("%out", w.let(f"mul nsw i64 {row.index}, {n}"))
        for b in range(n // V):
            w.store(w.load(source, b * V), target, b * V, aligned=False)
        if n % V and n >= V:
            w.store(w.load(source, n - V, aligned=False), target, n - V, aligned=False)
        for c in range(n if n < V else 0):
            w.do(f"store double {w.scalar(source, c)}, ptr {w.at(target, c)}, align 8")
        w.end(row)
        w.do("ret void")
        w.label("streamed")
        self._stream(w)
        return self.finish("deliver", w, ["ptr noalias %x", "ptr noalias %out", "i1 %stream"])

    def _stream(self, w: Lines) -> None:
        r, V = self.relations, self.width
        n, stride = r.n, r.stride
        address = w.let("ptrtoint ptr %out to i64")
        ahead = w.let(f"and i64 {w.let(f'sub i64 0, {address}')}, {8 * V - 1}")
        head = w.let(f"lshr i64 {ahead}, 3")
        edge = w.loop("0", head)  # in the first row: n >= V
        w.do(f"store double {w.scalar('%x', edge.index)}, ptr {w.at('%out', edge.index)}, align 8")
        w.end(edge)
        whole = w.let(f"and i64 {w.let(f'sub i64 {n * n}, {head}')}, {-V}")
        stop = w.let(f"add i64 {head}, {whole}")
        numbers = f"<{', '.join(f'i64 {k}' for k in range(V))}>" if V > 1 else "0"
        I = f"<{V} x i64>"
        line = w.loop(head, stop, step=V)
        row = w.let(f"udiv i64 {line.index}, {n}")
        column = w.let(f"sub i64 {line.index}, {w.let(f'mul i64 {row}, {n}')}")
        place = w.let(f"add i64 {w.let(f'mul i64 {row}, {stride}')}, {column}")
        left = w.let(f"sub i64 {n}, {column}")
        here = w.load("%x", place, aligned=False)
        there = w.load("%x", w.let(f"add i64 {place}, {stride - n}"), aligned=False)
        limit = w.let(f"insertelement {I} poison, i64 {left}, i64 0")
        limits = w.let(f"shufflevector {I} {limit}, {I} poison, <{V} x i32> zeroinitializer")
        first = w.let(f"icmp ult {I} {numbers}, {limits}")
        value = w.choose(first, here, there)
        w.do(f"store {w.T} {value}, ptr {w.at('%out', line.index)}, align {8 * V}, !nontemporal !77")
        w.end(line)
        rest = w.loop(stop, str(n * n))  # in the last row
        place = w.let(f"add i64 {rest.index}, {(n - 1) * (stride - n)}")
        w.do(f"store double {w.scalar('%x', place)}, ptr {w.at('%out', rest.index)}, align 8")
        w.end(rest)


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


def _runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Runs in which both numbers grow by one: (first of each, count)."""
    found: list[tuple[int, int, int]] = []
    for k, at in pairs:
        if found and k == found[-1][0] + found[-1][2] and at == found[-1][1] + found[-1][2]:
            found[-1] = (found[-1][0], found[-1][1], found[-1][2] + 1)
        else:
            found.append((k, at, 1))
    return found


def _pointers(names: Sequence[str]) -> list[str]:
    return [f"ptr noalias {name}" for name in names]
