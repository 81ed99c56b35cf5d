"""The inward step of the sweep in time for stages of many states, on vectors along the rows of its matrices.

With G = [A c B], c = [b 0], columns of the states first, then those of z, then those of the inputs, it forms

    T = P G + [0 z 0],    Y = [N' r R] + B' T,    K = D^-1 Y                                          (1)

where D is the last part of Y (Gauss and Jordan's method, in registers), and from these what the stage before needs,

    [P z] = [Q q] + A' T - Y' K,    W = W + S' c - Y' K                                               (2)

with S = z without its first column, and of Y and K in each the columns that belong there ((4) and (5) of
`alembert.optimal.time_sweep`; k = -K in the columns of z). Y' is read as scalars from memory. Rows are gathered by loads
under masks rather than by narrow stores, after which a wide load would have to wait. Products are loops over the rows that
are added, with the sums in registers: as fast as straight code, in a fifth of the time to compile (measured).

The step that this stands for is the straight-line one of `inward_loop` there, made of `alembert.sweeps.linear_quadratic`; it
is several times slower from about ten states and inputs on. `tests/lowering/test_fast_paths.py` holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from alembert.engine.loops import Lines
from alembert.engine.target import Code, Target

Factors = tuple[str, int, int]
"""scalars in memory: an array, where the first one is, and how far apart they are"""
REGISTERS = 21
"""sums that are formed at a time, of 32 vector registers"""
MOST = 64
"""vectors of Y beyond which it is eliminated in memory, row by row: they would leave the registers in any case"""
FEW = 4
"""rounds below which a loop is not worth it"""
NAMES = ("A", "B", "b", "Q", "N", "R", "q", "r", "D", "push", "shift", "P", "z", "W")
RESULTS = ("P_out", "z_out", "W_out", "K", "k", "flag")


class EliminationSource:
    """The step for n states, m inputs, `columns` of z and so many bounds; for one state at a time."""

    def __init__(self, n: int, m: int, columns: int, bounds: int) -> None:
        self._shape, ends = (n, m, columns, bounds), columns - 1
        between = [n * n, n * columns, ends * columns]
        given = [n * n, n * m, n, n * n, n * m, m * m, n, m, bounds * (n + m), bounds, 1]
        self.input_sizes, self.output_sizes = [*given, *between], [*between, m * n, m * columns, 1]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        text, workspace = _Step(name, *self._shape, target).emit()
        n, m, columns, _ = self._shape
        work = 2 * (n + m) ** 2 * (n + m + columns) // target.lanes
        return Code(text, workspace, work, frozenset(), target)


class _Step:
    def __init__(self, name: str, n: int, m: int, columns: int, bounds: int, target: Target) -> None:
        self.name, self.n, self.m, self.columns, self.bounds = name, n, m, columns, bounds
        self.lanes = max(2, target.lanes)
        self.w = Lines(self.lanes, fused=target.fused)
        self.inputs = n + columns
        """where the columns of the inputs begin"""
        self.vectors = -(-(n + columns + m) // self.lanes)
        self.long = m * self.vectors > MOST
        self.kept = -(-(n + columns) // self.lanes)
        """vectors that have columns of the states and of z"""
        self.width = self.vectors * self.lanes
        self.G, self.M = 0, n * self.width
        self.Y = 2 * n * self.width
        self.turned = self.Y + m * self.width
        self.force = self.turned + m * self.width

    def emit(self) -> tuple[str, int]:
        self._turn()
        self._gather()
        self._product()
        if self.bounds:
            self._forces()
        rows = self._inputs()
        if self.long:
            self._eliminate_in_memory()
        else:
            self._eliminate(rows)
        self._states()
        self._ends()
        text = self.w.function(self.name, [f"%{x}" for x in (*NAMES, *RESULTS, "w")], "#0")
        return text, self.force + self.n + self.m + 2 * self.lanes

    # --- steps ------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """N', early: it is read in vectors when these stores have long been done."""

        def row(i: int | str, _: list[str]) -> list[str]:
            start = self._times(i, self.m)
            for a in range(self.m):
                self._put(self._get("N", a, moved=start), "w", self.turned + a * self.width, moved=i)
            return []

        self._over(range(self.n), [], row)

    def _gather(self) -> None:
        n, m = self.n, self.m
        for i in range(n):
            parts = [("A", i * n, n, 0), ("b", i, 1, n), ("B", i * m, m, self.inputs)]
            for v in range(self.vectors):
                self._store(self._row(parts, v), "w", self.G + i * self.width + v * self.lanes)

    def _product(self) -> None:
        """T of (1), from the lower triangle of P."""
        n, columns = self.n, self.columns
        wanted = range(self.vectors)
        for block in self._blocks(n, self.vectors):
            sums = [[self._row([("z", i * columns, columns, n)], v) for v in wanted] for i in block]
            left = [("P", i * n, 1) for i in block]
            self._combine(sums, left, self.G, range(block[0]), wanted)
            for k in block:
                turned = [("P", max(i, k) * n + min(i, k), 0) for i in block]
                self._combine(sums, turned, self.G, range(k, k + 1), wanted)
            below = [("P", i, n) for i in block]
            self._combine(sums, below, self.G, range(block[-1] + 1, n), wanted)
            for i, row in zip(block, sums, strict=True):
                for v in wanted:
                    self._store(row[v], "w", self.M + i * self.width + v * self.lanes)

    def _forces(self) -> None:
        """D' push, of states and inputs."""
        fixed, L = self.n + self.m, self.lanes
        for c in range(0, fixed, L):
            wide = min(L, fixed - c)

            def add(d: int | str, sums: list[str], c: int = c, wide: int = wide) -> list[str]:
                row = self._load("D", c, wide, moved=self._times(d, fixed))
                return [self.w.plus_product(self._spread("push", 0, moved=d), row, sums[0])]

            (total,) = self._over(range(self.bounds), [self.w.zero], add)
            self._store(total, "w", self.force + c)

    def _inputs(self) -> list[list[str]]:
        """Y, also left in memory; where N' was, if it has too many vectors for registers."""
        n, m, wanted = self.n, self.m, range(self.vectors)
        rows: list[list[str]] = []
        for block in self._blocks(m, self.vectors):
            sums = []
            for a in block:
                parts = [
                    ("w", self.turned + a * self.width, n, 0),
                    ("r", a, 1, n),
                    ("R", a * m, m, self.inputs),
                ]
                sums.append([self._row(parts, v) for v in wanted])
                self._plus(sums[-1], self.inputs + a, self._get("shift", 0))
                if self.bounds:
                    self._plus(sums[-1], n, self._get("w", self.force + n + a))
            self._combine(sums, [("B", a, m) for a in block], self.M, range(n), wanted)
            for a, row in zip(block, sums, strict=True):
                for v in range(self.kept):
                    self._store(row[v], "w", self.Y + a * self.width + v * self.lanes)
                for v in wanted if self.long else ():
                    self._store(row[v], "w", self.turned + a * self.width + v * self.lanes)
            rows += sums
        return rows

    def _eliminate(self, rows: list[list[str]]) -> None:
        """K: in the results, and -K where N' was."""
        w, good = self.w, ""
        for p, row in enumerate(rows):
            place, lane = divmod(self.inputs + p, self.lanes)
            pivot = w.element_of(row[place], lane)
            positive = w.let(f"fcmp ogt double {pivot}, 0.0")
            good = w.let(f"and i1 {good}, {positive}") if good else positive
            inverse = w.spread(w.element_inverse(pivot))
            row[:] = [w.times(x, inverse) for x in row]
            for other in rows:
                if other is not row:
                    negative = w.minus(w.spread(w.element_of(other[place], lane)))
                    other[:] = [w.plus_product(negative, x, y) for x, y in zip(row, other, strict=True)]
        self._put(w.let(f"select i1 {good}, double 1.0, double 0.0"), "flag", 0)
        for a, row in enumerate(rows):
            self._left(a, row[: self.kept])

    def _eliminate_in_memory(self) -> None:
        """The same, operation by operation, in loops on Y where N' was."""
        w, m, L, width, wanted = self.w, self.m, self.lanes, self.width, range(self.vectors)
        self._put("1.0", "flag", 0)

        def eliminate(p: int | str, _: list[str]) -> list[str]:
            start = self._times(p, width)
            pivot = self._get("w", self.turned + self.inputs, moved=self._times(p, width + 1))
            positive = w.let(f"fcmp ogt double {pivot}, 0.0")
            good = self._get("flag", 0)
            self._put(w.let(f"select i1 {positive}, double {good}, double 0.0"), "flag", 0)
            inverse = w.spread(w.element_inverse(pivot))
            own = [w.times(self._load("w", self.turned + v * L, L, moved=start), inverse) for v in wanted]

            def subtract(a: int | str, _: list[str]) -> list[str]:
                moved = self._times(a, width)
                negative = w.minus(self._spread("w", self.turned + self.inputs, moved=w.add(moved, p)))
                for v in wanted:
                    before = self._load("w", self.turned + v * L, L, moved=moved)
                    after = w.plus_product(negative, own[v], before)
                    self._store(after, "w", self.turned + v * L, moved=moved)
                return []

            self._over(range(m), [], subtract)  # of itself too: what is left there is not used
            for v in wanted:
                self._store(own[v], "w", self.turned + v * L, moved=start)
            return []

        self._over(range(m), [], eliminate)
        for a in range(m):
            self._left(a, [self._load("w", self.turned + a * width + v * L, L) for v in range(self.kept)])

    def _left(self, a: int, row: Sequence[str]) -> None:
        """Row a of K: in the results, and -K where N' was."""
        n, columns = self.n, self.columns
        self._leave(row, 0, n, "K", a * n)
        turned = [self.w.minus(x) for x in row]
        self._leave(turned, n, columns, "k", a * columns)
        for v, vector in enumerate(turned):
            self._store(vector, "w", self.turned + a * self.width + v * self.lanes)

    def _states(self) -> None:
        """P and z of (2)."""
        n, wanted = self.n, range(self.kept)
        for block in self._blocks(n, self.kept):
            sums = []
            for i in block:
                sums.append([self._row([("Q", i * n, n, 0), ("q", i, 1, n)], v) for v in wanted])
                self._plus(sums[-1], i, self._get("shift", 0))
                if self.bounds:
                    self._plus(sums[-1], n, self._get("w", self.force + i))
            self._combine(sums, [("A", i, n) for i in block], self.M, range(n), wanted)
            column = [("w", self.Y + i, self.width) for i in block]
            self._combine(sums, column, self.turned, range(self.m), wanted)
            for i, row in zip(block, sums, strict=True):
                self._leave(row, 0, n, "P_out", i * n)
                self._leave(row, n, self.columns, "z_out", i * self.columns)

    def _ends(self) -> None:
        """W of (2)."""
        n, columns = self.n, self.columns
        wanted = range(n // self.lanes, self.kept)
        for block in self._blocks(columns - 1, len(wanted)):
            sums = [[self._row([("W", j * columns, columns, n)], v) for v in range(self.kept)] for j in block]
            self._combine(sums, [("z", 1 + j, columns) for j in block], self.G, range(n), wanted)
            column = [("w", self.Y + n + 1 + j, self.width) for j in block]
            self._combine(sums, column, self.turned, range(self.m), wanted)
            for j, row in zip(block, sums, strict=True):
                self._leave(row, n, columns, "W_out", j * columns)

    # --- rows -------------------------------------------------------------------------------------------------------

    def _blocks(self, count: int, vectors: int) -> list[range]:
        """`count` rows in blocks of about equal size whose sums stay in registers."""
        if not count:
            return []
        parts = -(-count // max(1, REGISTERS // vectors))
        bounds = [count * k // parts for k in range(parts + 1)]
        return [range(*pair) for pair in pairwise(bounds)]

    def _combine(
        self, sums: list[list[str]], factors: Sequence[Factors], start: int, rows: range, wanted: range
    ) -> None:
        """Add to every sum the `rows` of the workspace from `start` on with its factors."""

        def add(k: int | str, flat: list[str]) -> list[str]:
            moved = self._times(k, self.width)
            own = [self._load("w", start + v * self.lanes, self.lanes, moved=moved) for v in wanted]
            apart = {far: self._times(k, far) for far in dict.fromkeys(far for _, _, far in factors)}
            found = []
            for (base, first, far), total in zip(factors, _parts(flat, len(wanted)), strict=True):
                factor = self._spread(base, first, moved=apart[far])
                found += [self.w.plus_product(factor, x, y) for x, y in zip(own, total, strict=True)]
            return found

        flat = self._over(rows, [total[v] for total in sums for v in wanted], add)
        for total, found in zip(sums, _parts(flat, len(wanted)), strict=True):
            for v, value in zip(wanted, found, strict=True):
                total[v] = value

    def _over(
        self, rounds: range, sums: list[str], add: Callable[[int | str, list[str]], list[str]]
    ) -> list[str]:
        """What `add` makes of the sums, round after round."""
        if len(rounds) < FEW:
            for k in rounds:
                sums = add(k, sums)
            return sums
        loop = self.w.loop(str(rounds.start), str(rounds.stop), sums)
        self.w.end(loop, add(loop.index, loop.sums))
        return loop.sums

    def _times(self, k: int | str, far: int) -> int | str:
        return k * far if isinstance(k, int) else self.w.mul(k, far)

    def _row(self, parts: Sequence[tuple[str, int, int, int]], v: int) -> str:
        """A vector of a row that is made of (array, offset, how many, from which column on); zeros elsewhere."""
        L, found = self.lanes, self.w.zero
        for base, offset, count, column in parts:
            first, last = max(0, column - v * L), min(L, column + count - v * L)
            if first < last:
                place = self._address(base, offset + v * L - column)
                found = self.w.load_between(place, first, last, found)
        return found

    def _leave(self, row: Sequence[str], start: int, count: int, base: str, offset: int) -> None:
        """Columns from `start` on to a result."""
        L = self.lanes
        for v in range(start // L, -(-(start + count) // L)):
            first, last = max(0, start - v * L), min(L, start + count - v * L)
            self.w.store_between(row[v], self._address(base, offset + v * L - start), first, last)

    def _plus(self, row: list[str], column: int, value: str) -> None:
        """Add a number in one column."""
        v, lane = divmod(column, self.lanes)
        one = self.w.let(f"insertelement {self.w.T} zeroinitializer, double {value}, i64 {lane}")
        row[v] = self.w.plus(row[v], one)

    # --- memory -------------------------------------------------------------------------------------------------------

    def _address(self, base: str, offset: int, moved: int | str = 0) -> str:
        """Of the element at `offset`, and `moved` beyond it, a number that may be known at run time only.

        With a mask it may be in front of the array.
        """
        place = f"%{base}"
        if isinstance(moved, str):
            place = self.w.let(f"getelementptr double, ptr {place}, i64 {moved}")
        else:
            offset += moved
        return self.w.let(f"getelementptr double, ptr {place}, i64 {offset}") if offset else place

    def _get(self, base: str, offset: int, *, moved: int | str = 0) -> str:
        return self.w.scalar(self._address(base, offset, moved))

    def _spread(self, base: str, offset: int, *, moved: int | str = 0) -> str:
        """One element in all lanes."""
        return self.w.spread(self._get(base, offset, moved=moved))

    def _put(self, value: str, base: str, offset: int, *, moved: int | str = 0) -> None:
        self.w.put(value, self._address(base, offset, moved))

    def _load(self, base: str, offset: int, count: int, *, moved: int | str = 0) -> str:
        """`count` elements, zeros in the other lanes."""
        return self.w.load_between(self._address(base, offset, moved), 0, count, self.w.zero)

    def _store(self, value: str, base: str, offset: int, *, moved: int | str = 0) -> None:
        self.w.store(value, self._address(base, offset, moved), aligned=False)


def _parts(flat: Sequence[str], size: int) -> list[Sequence[str]]:
    """`size` at a time."""
    return [flat[k : k + size] for k in range(0, len(flat), size)] if size else []
