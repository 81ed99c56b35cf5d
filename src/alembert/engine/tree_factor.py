"""M = L^T D L along the tree (Featherstone), without fill-in, and its use on matrices with a row for every speed.

For one state, by rows, as in `tree_matrices`. With i inboard of k:

    A_i = M_i - sum_k L_ki A_k,  k outboard;   D_i = A_ii,   L_i = A_i / D_i                            (1)
    M X = B:   Y_i = B_i - sum_k L_ki Y_k,  k outboard;   X_k = Y_k / D_k - sum_i L_ki X_i,  i inboard  (2)

Speeds that follow each other in an unbranched part of the tree share what is outboard and what is inboard of them. Up to
four such rows are computed together: a row that is read then serves all of them, and the memory sets the pace.

In the first half of (2) rows stay zero where they were: row k of the matrices here has entries only in columns related to
k, so that the sum skips, for each panel of columns, the rows that have none in it. A panel is as narrow as lets its sums
stay in the registers and its rows in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alembert.engine.loops import Lines
from alembert.engine.tree_matrices import TreeMatrices


@dataclass(frozen=True)
class Group:
    """Rows that are computed together."""

    first: int
    size: int
    outboard: Sequence[int]
    """of all of them"""
    inboard: Sequence[int]


class TreeFactor:
    """Emits the functions; L is a matrix with a row for every speed, and D has the inverse of every pivot."""

    def __init__(self, tools: TreeMatrices) -> None:
        self.tools, self.relations, self.width = tools, tools.relations, tools.width
        self._groups = groups(tools, 4)
        self._sizes = sorted({group.size for group in self._groups})
        self._panel = (
            2 if self.width == 8 else 1
        )  # blocks; times matrices times rows, they fill the registers

    # -- (1) -----------------------------------------------------------------------------------------------

    def factorise(self) -> str:
        """`void NAME(ptr M, ptr L, ptr D)`: M is destroyed."""
        parameters = ["ptr noalias %M", "ptr noalias %L", "ptr noalias %D"]
        functions = {size: self._factor_rows(size, parameters) for size in self._sizes}
        w = self.tools.lines()
        backward = self._groups[::-1]
        lists = [[k * self.relations.stride for k in group.outboard] for group in backward]
        self._each(
            w,
            "factor",
            backward,
            lists,
            lambda size, given: f"{functions[size]}(ptr %M, ptr %L, ptr %D, {given})",
        )
        return self.tools.finish("factorise", w, parameters)

    def _factor_rows(self, size: int, parameters: list[str]) -> str:
        w, V, stride = self.tools.lines(), self.width, self.relations.stride
        base = w.let(f"mul nsw i64 %first, {stride}")
        rows, factors = w.at("%M", base), w.at("%L", base)
        last = w.let(f"add nsw i64 %first, {size - 1 + V}")
        used = w.let(f"and i64 {last}, {-V}")  # doubles of a row that matter, in whole blocks
        paired = w.let(f"and i64 {used}, {-2 * V}")
        for start, stop, count in (("0", paired, 2), (paired, used, 1)):
            block = w.loop(start, stop, step=count * V)
            at = w.at(rows, block.index)
            places = [a * stride + b * V for a in range(size) for b in range(count)]
            entry = w.loop("%begin", "%end", [w.load(at, place) for place in places])
            k = w.number("%list", entry.index)
            column = w.at("%L", w.let(f"add nsw i64 {k}, %first"))
            minus = [w.minus(w.spread(w.scalar(column, a))) for a in range(size)]
            source = w.at(w.at("%M", k), block.index)
            found = [w.load(source, b * V) for b in range(count)]
            w.end(entry, _combined(w, minus, found, entry.sums))
            for place, value in zip(places, entry.sums, strict=True):
                w.store(value, at, place)
            w.end(block)
        inverse, multiples = self._corner(w, w.at(rows, "%first"), size)
        block = w.loop("0", used, step=V)
        at, to = w.at(rows, block.index), w.at(factors, block.index)
        values = [w.load(at, a * stride) for a in range(size)]
        for a in reversed(range(size)):
            for c in range(a):
                values[c] = w.plus_product(w.minus(w.spread(multiples[a, c])), values[a], values[c])
        for a, value in enumerate(values):
            w.store(value, at, a * stride)
            w.store(w.times(value, w.spread(inverse[a])), to, a * stride)
        w.end(block)
        return self.tools.finish(f"factor_rows{size}", w, [*parameters, *_GROUP])

    def _corner(self, w: Lines, corner: str, size: int) -> tuple[list[str], dict[tuple[int, int], str]]:
        """The rows among themselves: inverse pivots, and what each takes from the ones before."""
        stride = self.relations.stride
        A = {(a, c): w.scalar(corner, a * stride + c) for a in range(size) for c in range(a + 1)}
        inverse, multiples = [""] * size, {}
        for a in reversed(range(size)):
            inverse[a] = w.let(f"fdiv double 1.0, {A[a, a]}")
            for c in range(a):
                multiples[a, c] = w.let(f"fmul double {A[a, c]}, {inverse[a]}")
            for b in range(a):
                for c in range(b + 1):
                    product = w.let(f"fmul double {multiples[a, b]}, {A[a, c]}")
                    A[b, c] = w.let(f"fsub double {A[b, c]}, {product}")
        pivots = w.at("%D", "%first")
        for a, value in enumerate(inverse):
            w.do(f"store double {value}, ptr {w.at(pivots, a)}, align 8")
        return inverse, multiples

    # -- (2) -----------------------------------------------------------------------------------------------

    def solve(self, signs: Sequence[int]) -> str:
        """`void NAME(ptr L, ptr D, ptr X, ..., ptr P, ptr out, ..., i1 stream)`: M^-1 times each matrix.

        -M^-1 where the sign is -1. The last matrix comes with any content and is taken for the identity; all are
        destroyed. Rows go out as soon as they are known, through P where they are streamed: memory takes them while the
        next ones are computed.
        """
        t, V = self.tools, self.width
        names, outs = ([f"%{x}{j}" for j in range(len(signs))] for x in "xo")
        given = [f"ptr noalias {name}" for name in ("%L", "%D", *names)]
        w = t.lines()
        for start in range(0, t.blocks, self._panel):
            moved = ", ".join(f"ptr {w.at(name, start * V)}" for name in names)
            count = min(self._panel, t.blocks - start)
            w.do(f"call void @{self._inward(names, start, count, given)}(ptr %L, ptr %D, {moved})")
        for name, out, sign in zip(names, outs, signs, strict=True):
            target = w.let(f"select i1 %stream, ptr %P, ptr {out}")
            for start, wide in self._wide_panels():
                last = start + wide == self.relations.n
                function = self._outward(sign, wide, last=last)
                moved = ", ".join(f"ptr {w.at(x, start)}" for x in (name, target))
                more = f", ptr %P, ptr {out}, i1 %stream" if last else ""
                w.do(f"call void @{function}(ptr %L, ptr %D, {moved}{more})")
        parameters = [*given, "ptr noalias %P", *(f"ptr noalias {out}" for out in outs), "i1 %stream"]
        return t.finish("solve", w, parameters)

    def _wide_panels(self) -> list[tuple[int, int]]:
        """First column and number of columns of the panels of one matrix."""
        V, n = self.width, self.relations.n
        most = 6 if V == 8 else 3  # blocks; times rows, they fill the registers
        parts = np.array_split(np.arange(self.tools.blocks), -(-self.tools.blocks // most))
        return [(int(p[0]) * V, min(n, (int(p[-1]) + 1) * V) - int(p[0]) * V) for p in parts]

    def _inward(self, names: list[str], start: int, count: int, parameters: list[str]) -> str:
        """The first half of (2) on the panel that begins with block `start`."""
        t, stride, V = self.tools, self.relations.stride, self.width
        columns = set(range(start * V, (start + count) * V))
        backward = self._groups[::-1]
        lists = [
            [k * stride for k in group.outboard if not columns.isdisjoint(t.related[k])] for group in backward
        ]
        functions = {size: self._inward_rows(names, size, count, parameters) for size in self._sizes}
        w = t.lines()
        pointers = ", ".join(parameter.replace("noalias ", "") for parameter in parameters)
        self._each(
            w,
            f"inward{start}",
            backward,
            lists,
            lambda size, given: f"{functions[size]}({pointers}, {given}, i64 {start * V})",
        )
        return t.finish(f"inward{start}", w, parameters)

    def _inward_rows(self, names: list[str], size: int, count: int, parameters: list[str]) -> str:
        label = f"inward_rows{size}_{count}"
        if t := self.tools.known(label):
            return t
        w, V, stride = self.tools.lines(), self.width, self.relations.stride
        base = w.let(f"mul nsw i64 %first, {stride}")
        at = {name: w.at(name, base) for name in names}
        places = [(name, b * V) for name in names for b in range(count)]
        begin = []
        for a in range(size):
            one = w.let(f"sub nsw i64 %first, {w.let(f'sub nsw i64 %column, {a}')}")
            for name, b in places:
                unit = name == names[-1]
                begin.append(w.unit(one, b) if unit else w.load(at[name], a * stride + b))
        entry = w.loop("%begin", "%end", begin)
        k = w.number("%list", entry.index)
        column = w.at("%L", w.let(f"add nsw i64 {k}, %first"))
        minus = [w.minus(w.spread(w.scalar(column, a))) for a in range(size)]
        source = {name: w.at(name, k) for name in names}
        found = [w.load(source[name], b) for name, b in places]
        w.end(entry, _combined(w, minus, found, entry.sums))
        rows = _split(entry.sums, len(places))
        corner = w.at(w.at("%L", base), "%first")
        for a in reversed(range(size)):
            for c in range(a + 1, size):
                factor = w.minus(w.spread(w.scalar(corner, c * stride + a)))
                rows[a] = [w.plus_product(factor, y, x) for x, y in zip(rows[a], rows[c], strict=True)]
            for (name, b), value in zip(places, rows[a], strict=True):
                w.store(value, at[name], a * stride + b)
        return self.tools.finish(label, w, [*parameters, *_GROUP, "i64 %column"])

    def _outward(self, sign: int, wide: int, *, last: bool) -> str:
        """The second half of (2) on a panel of `wide` columns of one matrix; with the last one rows are complete."""
        label = f"outward{wide}{'last' if last else ''}{'plus' if sign > 0 else 'minus'}"
        if known := self.tools.known(label):
            return known
        w, n = self.tools.lines(), self.relations.n
        functions = {size: self._outward_rows(sign, wide, size) for size in self._sizes}
        lists = [list(group.inboard) for group in self._groups]
        pointers = "ptr %L, ptr %D, ptr %x, ptr %to"
        more = ["ptr noalias %P", "ptr noalias %o", "i1 %stream"] if last else []

        def finish(first: str, size: str) -> None:
            begin = w.let(f"mul nsw i64 {first}, {n}")
            end = w.let(f"add nsw i64 {begin}, {w.let(f'mul nsw i64 {size}, {n}')}")
            w.branch("%stream", "streamed", "kept")
            w.label("streamed")
            w.do(f"call void @{self.tools.stream()}(ptr %P, ptr %o, i64 {begin}, i64 {end})")
            w.do("br label %kept")
            w.label("kept")

        self._each(
            w,
            label,
            self._groups,
            lists,
            lambda size, given: f"{functions[size]}({pointers}, {given})",
            finish if last else None,
        )
        given = ["ptr noalias %L", "ptr noalias %D", "ptr noalias %x", "ptr %to"]
        return self.tools.finish(label, w, [*given, *more])

    def _outward_rows(self, sign: int, wide: int, size: int) -> str:
        label = f"outward_rows{size}_{wide}{'plus' if sign > 0 else 'minus'}"
        if known := self.tools.known(label):
            return known
        w, V, stride, n = self.tools.lines(), self.width, self.relations.stride, self.relations.n
        base = w.let(f"mul nsw i64 %first, {stride}")
        at, factors = w.at("%x", base), w.at("%L", base)
        places = range(0, wide, V)
        begin, pivots = [], w.at("%D", "%first")
        for a in range(size):
            inverse = w.spread(w.scalar(pivots, a))
            scale = inverse if sign > 0 else w.minus(inverse)
            begin += [w.times(w.load(at, a * stride + b), scale) for b in places]
        entry = w.loop("%begin", "%end", begin)
        i = w.number("%list", entry.index)
        column = w.at(factors, i)
        minus = [w.minus(w.spread(w.scalar(column, a * stride))) for a in range(size)]
        source = w.at("%x", w.let(f"mul nsw i64 {i}, {stride}"))
        found = [w.load(source, b) for b in places]
        w.end(entry, _combined(w, minus, found, entry.sums))
        rows = _split(entry.sums, len(places))
        corner = w.at(factors, "%first")
        to = w.at("%to", w.let(f"mul nsw i64 %first, {n}"))
        for a in range(size):
            for c in range(a):
                factor = w.minus(w.spread(w.scalar(corner, a * stride + c)))
                rows[a] = [w.plus_product(factor, y, x) for x, y in zip(rows[a], rows[c], strict=True)]
            for b, value in zip(places, rows[a], strict=True):
                w.store(value, at, a * stride + b)
                w.store_first(value, min(V, wide - b), to, a * n + b)
        given = ["ptr noalias %L", "ptr noalias %D", "ptr noalias %x", "ptr %to"]
        return self.tools.finish(label, w, [*given, *_GROUP])

    # -- some speeds prescribed ----------------------------------------------------------------------------

    def restrict(self, count: int) -> str:
        """`void NAME(ptr free, ptr M, ptr X, ..., ptr out_M, ptr out_X, ...)`: copies, and what is left for the free speeds.

        `free` is 1 or 0 for every speed. M becomes that of the free speeds, with ones on the diagonal for the others, which
        keeps its pattern; the rows of the `count` matrices X become zero for the others. What was there goes out first.
        """
        w, V, n, stride = self.tools.lines(), self.width, self.relations.n, self.relations.stride
        names = ["%M", *(f"%x{j}" for j in range(count))]
        outs = [f"%o{j}" for j in range(count + 1)]
        row = w.loop("0", str(n))
        mine = w.scalar("%free", row.index)
        own = w.spread(mine)
        base, place = w.let(f"mul nsw i64 {row.index}, {stride}"), w.let(f"mul nsw i64 {row.index}, {n}")
        rows, to = [w.at(x, base) for x in names], [w.at(x, place) for x in outs]

        def part(offset: str, width: int) -> None:
            for j, (source, target) in enumerate(zip(rows, to, strict=True)):
                value = w.load(source, offset)
                w.store_first(value, width, w.at(target, offset))
                value = w.times(value, own)
                w.store(value if j else w.times(value, w.load("%free", offset)), source, offset)

        whole = w.loop("0", str(n - n % V), step=V)
        part(whole.index, V)
        w.end(whole)
        if n % V:
            part(str(n - n % V), n % V)
        diagonal = w.at(rows[0], row.index)
        bound = w.let(f"fsub double 1.0, {mine}")
        w.do(f"store double {w.let(f'fadd double {bound}, {w.scalar(diagonal)}')}, ptr {diagonal}, align 8")
        w.end(row)
        return self.tools.finish("restrict", w, [f"ptr noalias {x}" for x in ("%free", *names, *outs)])

    # -- groups --------------------------------------------------------------------------------------------

    def _each(
        self,
        w: Lines,
        label: str,
        chosen: Sequence[Group],
        lists: Sequence[Sequence[int]],
        call: Callable[[int, str], str],
        then: Callable[[str, str], None] | None = None,
    ) -> None:
        """Call a function for every group, with its first row and its part of the lists; then what `then` writes."""
        starts = np.cumsum([0, *map(len, lists)])
        data = self.tools.data(
            f"{label}_groups",
            [
                (group.first, group.size, start, stop)
                for group, start, stop in zip(chosen, starts[:-1], starts[1:], strict=True)
            ],
        )
        table = self.tools.data(f"{label}_lists", [x for row in lists for x in row])
        group = w.loop("0", str(len(chosen)))
        place = w.let(f"shl nsw i64 {group.index}, 2")
        first, size, begin, end = (
            w.number(data, w.let(f"add nsw i64 {place}, {c}") if c else place) for c in range(4)
        )
        given = f"i64 {first}, ptr {table}, i64 {begin}, i64 {end}"
        cases = " ".join(f"i64 {s}, label %{group.name}_{s}" for s in self._sizes[1:])
        w.do(f"switch i64 {size}, label %{group.name}_{self._sizes[0]} [{cases}]")
        for s in self._sizes:
            w.label(f"{group.name}_{s}")
            w.do(f"call void @{call(s, given)}")
            w.do(f"br label %{group.name}_done")
        w.label(f"{group.name}_done")
        if then is not None:
            then(first, size)
        w.end(group)


_GROUP = ["i64 %first", "ptr noalias %list", "i64 %begin", "i64 %end"]


def groups(tools: TreeMatrices, most: int) -> list[Group]:
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
            found.append(Group(first, len(part), tools.outboard[last], tools.inboard[first]))
    return found


def _combined(w: Lines, factors: list[str], row: list[str], sums: list[str]) -> list[str]:
    """The sums of several rows, each with its factor times one row more."""
    size = len(row)
    return [w.plus_product(factors[j // size], row[j % size], s) for j, s in enumerate(sums)]


def _split(values: Sequence[str], size: int) -> list[list[str]]:
    return [list(values[k : k + size]) for k in range(0, len(values), size)]
