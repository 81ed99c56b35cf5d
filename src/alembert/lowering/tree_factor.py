"""M = L^T D L along the tree (Featherstone), without fill-in, and its use on matrices with a row for every speed.

By rows of blocks, as in `tree_matrices`: for one state, or for as many as there are lanes. With i inboard of k:

    A_i = M_i - sum_k L_ki A_k,  k outboard;   D_i = A_ii,   L_i = A_i / D_i                            (1)
    M X = B:   Y_i = B_i - sum_k L_ki Y_k,  k outboard;   X_k = Y_k / D_k - sum_i L_ki X_i,  i inboard  (2)
    X = M^-1:  X_kj = X_jk = [j = k] / D_k - sum_i L_ki X_ij,  j <= k                                   (3)

Speeds that follow each other in an unbranched part of the tree share what is outboard and what is inboard of them. Up to
four such rows are computed together: a row that is read then serves all of them, and the memory sets the pace.

In the first half of (2) rows stay zero where they were: row k of the matrices here has entries only in columns related to
k, so that the sum skips, for each panel of columns, the rows that have none in it. A panel is as narrow as lets its sums
stay in the registers and its rows in the nearest cache.

The reference is `alembert.sensitivity.mass_factor`, which small models use as straight code;
`tests/lowering/test_fast_paths.py` holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alembert.engine.loops import Lines
from alembert.engine.outlet import transposed
from alembert.lowering.tree_matrices import Lists, TreeMatrices


@dataclass(frozen=True)
class RowGroup:
    """Rows that are computed together."""

    first: int
    size: int
    outboard: Sequence[int]
    """of all of them"""
    inboard: Sequence[int]

    @property
    def own(self) -> range:
        return range(self.first, self.first + self.size)


class TreeFactor:
    """Emits the functions; L is a matrix with a row for every speed, and D has the inverse of every pivot."""

    def __init__(self, tools: TreeMatrices) -> None:
        self.tools, self.relations, self.width = tools, tools.relations, tools.width
        self.stride, self.many = tools.stride, tools.lanes > 1
        self._most = 24 if tools.target.lanes == 8 else 12
        """sums that stay in the registers"""
        self._groups = groups(tools, 4)
        self._sizes = sorted({group.size for group in self._groups})

    # -- (1) -----------------------------------------------------------------------------------------------

    def factorise(self) -> str:
        """`void NAME(ptr M, ptr L, ptr D)`: M is destroyed."""
        parameters = ["%M", "%L", "%D"]
        functions = {size: self._factor_rows(size, parameters) for size in self._sizes}
        lists, rows = Lists(), []
        for group in self._groups[::-1]:
            outboard = lists.add([k * self.stride for k in group.outboard])
            columns = lists.add([*group.inboard, *group.own]) if self.many else (0, 0)
            rows.append((group.size, (group.first, *outboard, *columns)))
        w = self.tools.lines()
        table = self.tools.data("factor_lists", lists.content)

        def call(size: int, numbers: list[str]) -> None:
            w.call(functions[size], [*parameters, table], numbers)

        self.tools.each(w, "factor", rows, call)
        return self.tools.finish("factorise", w, parameters)

    def _factor_rows(self, size: int, parameters: list[str]) -> str:
        w, V, stride = self.tools.lines(), self.width, self.stride
        base = w.mul("%first", stride)
        rows, factors = w.at("%M", base), w.at("%L", base)
        for column, count in self._columns(w, size, 2):
            at = w.at(rows, column)
            places = [a * stride + b * V for a in range(size) for b in range(count)]
            entry = w.loop("%begin", "%end", [w.load(at, place) for place in places])
            k = w.number("%list", entry.index)
            multipliers = w.at("%L", w.add(k, "%first"))
            minus = [w.minus(w.spread(w.scalar(multipliers, a))) for a in range(size)]
            source = w.at(w.at("%M", k), column)
            found = [w.load(source, b * V) for b in range(count)]
            w.end(entry, _combined(w, minus, found, entry.sums))
            for place, value in zip(places, entry.sums, strict=True):
                w.store(value, at, place)
        inverse, multiples = self._corner(w, w.at(rows, "%first"), size)
        for column, _ in self._columns(w, size, 1):
            at, to = w.at(rows, column), w.at(factors, column)
            values = [w.load(at, a * stride) for a in range(size)]
            for a in reversed(range(size)):
                for c in range(a):
                    values[c] = w.plus_product(w.minus(w.spread(multiples[a, c])), values[a], values[c])
            for a, value in enumerate(values):
                w.store(value, at, a * stride)
                w.store(w.times(value, w.spread(inverse[a])), to, a * stride)
        return self.tools.finish(f"factor_rows{size}", w, [*parameters, "%list"], [*_GROUP, "%from", "%to"])

    def _columns(self, w: Lines, size: int, most: int) -> Iterator[tuple[str, int]]:
        """Loops over the blocks of rows of L that matter, up to `most` at a time: where they begin, how many."""
        V = self.width
        if self.many:  # those inboard, by their list
            block = w.loop("%from", "%to")
            yield w.number("%list", block.index), 1
            w.end(block)
            return
        last = w.add("%first", size - 1 + V)
        used = w.down(last, V)  # doubles of a row that matter, in whole blocks
        shared = w.down(used, most * V)
        for start, stop, count in (("0", shared, most), (shared, used, 1))[: 2 if most > 1 else 1]:
            block = w.loop(start, stop, step=count * V)
            yield block.index, count
            w.end(block)

    def _corner(self, w: Lines, corner: str, size: int) -> tuple[list[str], dict[tuple[int, int], str]]:
        """The rows among themselves: inverse pivots, and what each takes from the ones before."""
        stride = self.stride
        A = {(a, c): w.scalar(corner, a * stride + c) for a in range(size) for c in range(a + 1)}
        inverse, multiples = [""] * size, {}
        for a in reversed(range(size)):
            inverse[a] = w.element_inverse(A[a, a])
            for c in range(a):
                multiples[a, c] = w.element_times(A[a, c], inverse[a])
            for b in range(a):
                for c in range(b + 1):
                    product = w.element_times(multiples[a, b], A[a, c])
                    A[b, c] = w.element_less(A[b, c], product)
        pivots = w.at("%D", "%first")
        for a, value in enumerate(inverse):
            w.put(value, pivots, a)
        return inverse, multiples

    # -- (3) -----------------------------------------------------------------------------------------------

    def invert(self) -> str:
        """`void NAME(ptr L, ptr D, ptr X)`: X = M^-1."""
        functions = {size: self._invert_rows(size) for size in self._sizes}
        lists = Lists()
        rows = [(group.size, (group.first, *lists.add(group.inboard))) for group in self._groups]
        w = self.tools.lines()
        table = self.tools.data("invert_lists", lists.content)

        def call(size: int, numbers: list[str]) -> None:
            w.call(functions[size], ["%L", "%D", "%X", table], numbers)

        self.tools.each(w, "invert", rows, call)
        return self.tools.finish("invert", w, ["%L", "%D", "%X"])

    def _invert_rows(self, size: int) -> str:
        w, V, stride = self.tools.lines(), self.width, self.stride
        base = w.mul("%first", stride)
        rows, factors = w.at("%X", base), w.at("%L", base)
        corner = w.at(factors, "%first")
        if self.relations.n % V:  # what memory holds by chance may be slow to compute with
            for a in range(size):
                w.store(w.zero, rows, a * stride + self.relations.n // V * V)
        most = self._most // size if self.many else 3
        stop = w.down(w.add("%first", V - 1), V)
        steps = most * V
        whole = w.mul(w.div(stop, steps), steps)
        for start, end, count in (("0", whole, most), (whole, stop, 1)):
            block = w.loop(start, end, step=count * V)
            sums = self._outward_sums(w, factors, w.at("%X", block.index), size, count, [w.zero])
            self._outward_corner(w, corner, sums)
            for a, row in enumerate(sums):
                for b, value in enumerate(row):
                    w.store(value, w.at(rows, block.index), a * stride + b * V)
            other = w.at("%X", w.mul(block.index, stride))
            for b in range(count):
                self._store_columns(w, [row[b] for row in sums], w.at(other, "%first"), b * V)
            w.end(block)
        # the corner, element by element; X_ib is X_bi
        pairs = [(a, b) for a in range(size) for b in range(a + 1)]
        pivots = w.at("%D", "%first")
        start_values = [w.scalar(pivots, a) if a == b else w.element_zero for a, b in pairs]
        entry = w.loop("%begin", "%end", start_values, element=True)
        i = w.number("%list", entry.index)
        L = [w.element_minus(w.scalar(w.at(factors, i), a * stride)) for a in range(size)]
        X = [w.scalar(w.at(rows, i), b * stride) for b in range(size)]
        w.end(
            entry,
            [w.element_plus_product(L[a], X[b], s) for (a, b), s in zip(pairs, entry.sums, strict=True)],
        )
        own = dict(zip(pairs, entry.sums, strict=True))
        for a, b in pairs:
            for c in range(a):
                factor = w.element_minus(w.scalar(corner, a * stride + c))
                own[a, b] = w.element_plus_product(factor, own[max(b, c), min(b, c)], own[a, b])
        middle = w.at(rows, "%first")
        for (a, b), value in own.items():
            w.put(value, middle, a * stride + b)
            if a != b:
                w.put(value, middle, b * stride + a)
        return self.tools.finish(f"invert_rows{size}", w, ["%L", "%D", "%X", "%list"], _GROUP)

    def _store_columns(self, w: Lines, values: list[str], at: str, first: int) -> None:
        """A block of some rows as columns of the rows from `first` on."""
        V, stride = self.width, self.stride
        for start in range(0, len(values), V):
            part = values[start : start + V]
            for c, value in enumerate(transposed(w, [*part, *[w.any] * (V - len(part))])):
                w.store_first(value, len(part), at, (first + c) * stride + start)

    # -- (2) -----------------------------------------------------------------------------------------------

    def solve(self, signs: Sequence[int]) -> str:
        """`void NAME(ptr L, ptr D, ptr X, ..., ptr I, ptr out, ..., ptr out_I)`: M^-1 times each matrix X.

        -M^-1 where the sign is -1. They are destroyed. I is a matrix that is known already. Rows of the results go out as
        soon as they are known, with their part of I: memory takes them while the next ones are computed.
        """
        t = self.tools
        names, outs = ([f"%{x}{j}" for j in range(len(signs))] for x in "xo")
        w = t.lines()
        if self.many:
            w.call(self._inward_many(names), ["%L", *names])
        else:
            self._inward_one(w, names)
        for j, (name, out, sign) in enumerate(zip(names, outs, signs, strict=True)):
            for start, wide in self._wide_panels():
                last = start + wide == self.relations.n
                function = self._outward(sign, wide, len(signs) if last else 0)
                target = out if not self.many else name
                given, part = ["%L", "%D", w.at(name, start), w.at(target, start)], []
                if last and self.many:
                    given, part = [*given, name, out, "%I", "%oI"], [j]
                w.call(function, given, part)
        if not self.many:
            w.call(self._pack(), ["%I", "%oI"])
        return t.finish("solve", w, ["%L", "%D", *names, "%I", *outs, "%oI"])

    def _wide_panels(self) -> list[tuple[int, int]]:
        """First column and number of columns of the panels of one matrix."""
        V, n = self.width, self.relations.n
        if self.many:
            return [(0, n)]
        most = 6 if V == 8 else 3  # blocks; times rows, they fill the registers
        parts = np.array_split(np.arange(self.tools.blocks), -(-self.tools.blocks // most))
        return [(int(p[0]) * V, min(n, (int(p[-1]) + 1) * V) - int(p[0]) * V) for p in parts]

    def _inward_one(self, w: Lines, names: list[str]) -> None:
        """The first half of (2) in panels of some blocks."""
        t, V = self.tools, self.width
        panel = 2 if V == 8 else 1  # blocks; times matrices times rows, they fill the registers
        for start in range(0, t.blocks, panel):
            count = min(panel, t.blocks - start)
            columns = set(range(start * V, (start + count) * V))
            lists, rows = Lists(), []
            for group in self._groups[::-1]:
                chosen = [k * self.stride for k in group.outboard if not columns.isdisjoint(t.related[k])]
                rows.append(((group.size, count), (group.first, *lists.add(chosen), start * V)))
            w.call(self._inward(f"inward{start}", names, rows, lists), ["%L", *names])

    def _inward_many(self, names: list[str]) -> str:
        """The first half of (2), for every pair of related groups.

        For columns J outboard of rows I, what counts is related to J and lies behind I; otherwise all that is outboard of I.
        """
        lists, rows = Lists(), []
        for J in self._groups:
            chain = [*J.inboard, *J.own, *J.outboard]
            for I in self._groups[::-1]:
                if I.first not in chain:
                    continue
                counts = I.outboard if J.first <= I.first else [k for k in chain if k >= I.first + I.size]
                span = lists.add([k * self.stride for k in counts])
                rows.append(((I.size, J.size), (I.first, *span, J.first)))
        return self._inward("inward", names, rows, lists)

    def _inward(
        self,
        label: str,
        names: list[str],
        rows: Sequence[tuple[tuple[int, int], Sequence[int]]],
        lists: Lists,
    ) -> str:
        w = self.tools.lines()
        functions = {key: self._inward_rows(names, *key) for key in sorted({key for key, _ in rows})}
        table = self.tools.data(f"{label}_lists", lists.content)

        def call(key: tuple[int, int], numbers: list[str]) -> None:
            w.call(functions[key], ["%L", *names, table], numbers)

        self.tools.each(w, label, rows, call)
        return self.tools.finish(label, w, ["%L", *names])

    def _inward_rows(self, names: list[str], size: int, count: int) -> str:
        """A group's rows of `count` blocks from `%column` on."""
        label = f"inward_rows{size}_{count}"
        if known := self.tools.known(label):
            return known
        w, V, stride = self.tools.lines(), self.width, self.stride
        base = w.mul("%first", stride)
        corner = w.at(w.at("%L", base), "%first")
        together = max(1, self._most // (size * count))
        for some in (names[k : k + together] for k in range(0, len(names), together)):
            panel = {name: w.at(name, "%column") for name in some}
            at = {name: w.at(panel[name], base) for name in some}
            places = [(name, b * V) for name in some for b in range(count)]
            begin = [w.load(at[name], a * stride + b) for a in range(size) for name, b in places]
            entry = w.loop("%begin", "%end", begin)
            k = w.number("%list", entry.index)
            column = w.at("%L", w.add(k, "%first"))
            minus = [w.minus(w.spread(w.scalar(column, a))) for a in range(size)]
            source = {name: w.at(panel[name], k) for name in some}
            found = [w.load(source[name], b) for name, b in places]
            w.end(entry, _combined(w, minus, found, entry.sums))
            rows = _split(entry.sums, len(places))
            for a in reversed(range(size)):
                for c in range(a + 1, size):
                    factor = w.minus(w.spread(w.scalar(corner, c * stride + a)))
                    rows[a] = [w.plus_product(factor, y, x) for x, y in zip(rows[a], rows[c], strict=True)]
                for (name, b), value in zip(places, rows[a], strict=True):
                    w.store(value, at[name], a * stride + b)
        return self.tools.finish(label, w, ["%L", *names, "%list"], [*_GROUP, "%column"])

    def _outward(self, sign: int, wide: int, parts: int) -> str:
        """The second half of (2) on a panel of `wide` columns; where rows of many states are complete, they leave.

        With them goes one of `parts` of the known matrix.
        """
        label = f"outward{wide}{'last' if parts else ''}{'plus' if sign > 0 else 'minus'}"
        if known := self.tools.known(label):
            return known
        w, n, leave = self.tools.lines(), self.relations.n, bool(parts) and self.many
        functions = {size: self._outward_rows(sign, wide, size) for size in self._sizes}
        lists, rows = Lists(), []
        for group in self._groups:
            panels = self._panels(group) if self.many else ([], [])
            spans = (lists.add(x) for x in (group.inboard, *panels))
            rows.append((group.size, (group.first, *(x for span in spans for x in span))))
        table = self.tools.data("outward_lists", lists.content)
        if leave:
            shift = w.mul("%part", n * n)

        def call(size: int, numbers: list[str]) -> None:
            w.call(functions[size], ["%L", "%D", "%x", "%to", table], numbers)
            if not leave:
                return
            begin = w.mul(numbers[0], n)
            end = w.add(begin, n * size)
            self.tools.leave(w, "%all", "%o", begin, end)
            part = [w.div(w.add(x, shift), parts) for x in (begin, end)]
            self.tools.leave(w, "%I", "%oI", *part)

        self.tools.each(w, label, rows, call)
        more = ["%all", "%o", "%I", "%oI"] if leave else []
        part = ["%part"] if leave else []
        return self.tools.finish(label, w, ["%L", "%D", "%x", "%to", *more], part, alike=("%x", "%to"))

    def _panels(self, group: RowGroup) -> tuple[list[int], list[int]]:
        """Of the rows of many states, where panels begin: those with something in them, and the others."""
        most, n = self._most // group.size, self.relations.n
        related = self.tools.related[group.first]
        starts = range(0, n - most + 1, most)
        filled = [c for c in starts if not related.isdisjoint(range(c, c + most))]
        return filled, [c for c in starts if c not in filled]

    @property
    def read_empty(self) -> list[set[int]]:
        """For each row, columns without a relative that `solve` reads in panels with others: they must be zero."""
        n, found = self.relations.n, []
        for group in self._groups:
            columns = set(range(n))
            for c in self._panels(group)[1]:
                columns -= set(range(c, c + self._most // group.size))
            found += [columns - self.tools.related[k] for k in group.own]
        return found

    def _outward_rows(self, sign: int, wide: int, size: int) -> str:
        label = f"outward_rows{size}_{wide}{'plus' if sign > 0 else 'minus'}"
        if known := self.tools.known(label):
            return known
        w, V, stride, n = self.tools.lines(), self.width, self.stride, self.relations.n
        base = w.mul("%first", stride)
        rows, factors = w.at("%x", base), w.at("%L", base)
        corner, pivots = w.at(factors, "%first"), w.at("%D", "%first")
        to = w.at("%to", w.mul("%first", n))
        scales = []
        for a in range(size):
            inverse = w.spread(w.scalar(pivots, a))
            scales.append(inverse if sign > 0 else w.minus(inverse))

        def panel(offset: str | int, count: int, *, filled: bool = True) -> None:
            at = w.at(rows, offset)
            begin = [w.zero if sign > 0 else w.minus_zero]  # as if zeros were read
            if filled:
                begin = [
                    w.times(w.load(at, a * stride + b * V), scales[a])
                    for a in range(size)
                    for b in range(count)
                ]
            sums = self._outward_sums(w, factors, w.at("%x", offset), size, count, begin)
            self._outward_corner(w, corner, sums)
            for a, row in enumerate(sums):
                for b, value in enumerate(row):
                    w.store(value, at, a * stride + b * V)
                    if not self.many:
                        w.store_first(value, min(V, wide - b * V), to, a * n + b * V)

        if not self.many:
            panel(0, -(-wide // V))
        else:
            most = self._most // size
            rest = wide % most
            for start, stop, filled in (("%filled", "%filled_end", True), ("%fresh", "%fresh_end", False)):
                block = w.loop(start, stop)
                panel(w.number("%list", block.index), most, filled=filled)
                w.end(block)
            if rest:
                panel(wide - rest, rest)
        pointers, panels = (
            ["%L", "%D", "%x", "%to", "%list"],
            ["%filled", "%filled_end", "%fresh", "%fresh_end"],
        )
        return self.tools.finish(label, w, pointers, [*_GROUP, *panels], alike=("%x", "%to"))

    def _outward_sums(
        self, w: Lines, factors: str, source: str, size: int, count: int, begin: list[str]
    ) -> list[list[str]]:
        """`begin` less the products with the rows inboard, by rows."""
        stride, V = self.stride, self.width
        entry = w.loop("%begin", "%end", begin if len(begin) > 1 else begin * (size * count))
        i = w.number("%list", entry.index)
        column = w.at(factors, i)
        minus = [w.minus(w.spread(w.scalar(column, a * stride))) for a in range(size)]
        row = w.at(source, w.mul(i, stride))
        found = [w.load(row, b * V) for b in range(count)]
        w.end(entry, _combined(w, minus, found, entry.sums))
        return _split(entry.sums, count)

    def _outward_corner(self, w: Lines, corner: str, rows: list[list[str]]) -> None:
        """The rows of a group among themselves."""
        for a in range(len(rows)):
            for c in range(a):
                factor = w.minus(w.spread(w.scalar(corner, a * self.stride + c)))
                rows[a] = [w.plus_product(factor, y, x) for x, y in zip(rows[a], rows[c], strict=True)]

    def _pack(self) -> str:
        """`void NAME(ptr X, ptr out)`: without the padding."""
        if known := self.tools.known("pack"):
            return known
        w, V, n = self.tools.lines(), self.width, self.relations.n
        row = w.loop("0", str(n))
        source = w.at("%X", w.mul(row.index, self.stride))
        target = w.at("%o", w.mul(row.index, n))
        whole = w.loop("0", str(n - n % V), step=V)
        w.store(w.load(source, whole.index), target, whole.index, aligned=False)
        w.end(whole)
        if n % V:
            w.store_first(w.load(source, n - n % V), n % V, target, n - n % V)
        w.end(row)
        return self.tools.finish("pack", w, ["%X", "%o"])

    # -- some speeds prescribed ----------------------------------------------------------------------------

    def restrict(self, count: int) -> str:
        """`void NAME(ptr free, ptr M, ptr X, ..., ptr out_M, ptr out_X, ...)`: copies, and what is left for the free speeds.

        `free` is 1 or 0 for every speed. M becomes that of the free speeds, with ones on the diagonal for the others, which
        keeps its pattern; the rows of the `count` matrices X become zero for the others. What was there goes out first.
        """
        w, V, n, stride = self.tools.lines(), self.width, self.relations.n, self.stride
        names = ["%M", *(f"%x{j}" for j in range(count))]
        outs = [f"%o{j}" for j in range(count + 1)]
        for name, out in zip(names, outs, strict=True):
            if self.many:
                self.tools.leave(w, name, out, 0, n * n)
            else:
                w.call(self._pack(), [name, out])
        row = w.loop("0", str(n))
        mine = w.scalar("%free", row.index)
        own = w.spread(mine)
        base = w.mul(row.index, stride)
        rows = [w.at(x, base) for x in names]
        block = w.loop("0", str(n), step=V)
        for j, source in enumerate(rows):
            value = w.times(w.load(source, block.index), own)
            w.store(value if j else w.times(value, w.load("%free", block.index)), source, block.index)
        w.end(block)
        diagonal = w.at(rows[0], row.index)
        bound = w.element_less(w.one, mine)
        w.put(w.element_plus(bound, w.scalar(diagonal)), diagonal)
        w.end(row)
        return self.tools.finish("restrict", w, ["%free", *names, *outs])


_GROUP = ["%first", "%begin", "%end"]


def groups(tools: TreeMatrices, most: int) -> list[RowGroup]:
    """Unbranched runs of speeds in parts of at most `most`, as even as can be."""
    runs: list[list[int]] = []
    for k in range(tools.relations.n):
        before = k - 1
        if (
            k
            and tools.inboard[k] == [*tools.inboard[before], before]
            and tools.outboard[before] == [k, *tools.outboard[k]]
        ):
            runs[-1].append(k)
        else:
            runs.append([k])
    found = []
    for run in runs:
        for part in np.array_split(run, -(-len(run) // most)):
            first, last = int(part[0]), int(part[-1])
            found.append(RowGroup(first, len(part), tools.outboard[last], tools.inboard[first]))
    return found


def _combined(w: Lines, factors: list[str], row: list[str], sums: list[str]) -> list[str]:
    """The sums of several rows, each with its factor times one row more."""
    size = len(row)
    return [w.plus_product(factors[j // size], row[j % size], s) for j, s in enumerate(sums)]


def _split(values: Sequence[str], size: int) -> list[list[str]]:
    return [list(values[k : k + size]) for k in range(0, len(values), size)]
