"""The inward step of the sweep in time for stages of many states, on vectors along the rows of its matrices.

With G = [A c B], c = [b 0], columns of the states first, then those of z, then those of the inputs, it forms

    T = P G + [0 z 0],    Y = [N' r R] + B' T,    K = D^-1 Y                                          (1)

where D is the last part of Y (Gauss and Jordan's method), and from these what the stage before needs,

    [P z] = [Q q] + A' T - Y' K,    W = W + S' c - Y' K                                               (2)

with S = z without its first column, and of Y and K in each the columns that belong there ((4) and (5) of
`alembert.optimal.time_sweep`; k = -K in the columns of z). Y' is read as scalars from memory. Rows are gathered by loads
under masks rather than by narrow stores, after which a wide load would have to wait. Products are loops over the rows that
are added, with the sums in registers, within loops over blocks of rows: as fast as straight code, in a tenth of the time to
compile (measured).

The step that this stands for is the straight-line one of `inward_loop` there, made of `alembert.sweeps.linear_quadratic`; it
is several times slower from about ten states and inputs on. `tests/lowering/test_fast_paths.py` holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from alembert.engine.loops import Lines
from alembert.engine.target import Code, Target
from alembert.engine.vectormath import vector_type

Factors = tuple[str, int, int]
"""scalars in memory: an array, where the first one is, and how far apart they are"""
REGISTERS = 21
"""sums that are formed at a time, of 32 vector registers"""
MOST = 48
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
        self.left = self.turned + m * self.width
        """what is eliminated of Y"""
        self.force = self.left + m * self.width

    def emit(self) -> tuple[str, int]:
        self._turn()
        self._gather()
        self._product()
        if self.bounds:
            self._forces()
        self._inputs()
        if self.long:
            self._eliminate_in_memory()
        else:
            self._eliminate()
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

        def row(i: int | str, _: list[str]) -> list[str]:
            A, b, B = self._moved("A", i, n), self._moved("b", i), self._moved("B", i, m)
            parts = [(A, 0, n, 0), (b, 0, 1, n), (B, 0, m, self.inputs)]
            own = self._moved("w", i, self.width)
            for v in range(self.vectors):
                self._store(self._row(parts, v), own, self.G + v * self.lanes)
            return []

        self._over(range(n), [], row)

    def _product(self) -> None:
        """T of (1), from the lower triangle of P."""
        n, columns, width = self.n, self.columns, self.width
        wanted = range(self.vectors)

        def block(start: int | str, size: int) -> None:
            z, own = self._moved("z", start, columns), self._moved("w", start, width)
            row, column, corner = (self._moved("P", start, far) for far in (n, 1, n + 1))
            sums = [[self._row([(z, i * columns, columns, n)], v) for v in wanted] for i in range(size)]
            self._combine(sums, [(row, i * n, 1) for i in range(size)], "w", self.G, (0, start), wanted)
            for k in range(size):
                turned = [(corner, max(i, k) * n + min(i, k), 0) for i in range(size)]
                self._combine(sums, turned, own, self.G, (k, k + 1), wanted)
            below = [(column, i, n) for i in range(size)]
            self._combine(sums, below, "w", self.G, (self._sum(start, size), n), wanted)
            for i, total in enumerate(sums):
                for v in wanted:
                    self._store(total[v], own, self.M + i * width + v * self.lanes)

        self._in_blocks(n, self.vectors, block)

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

    def _inputs(self) -> None:
        """Y, twice: one is to be eliminated."""
        n, m, width, wanted = self.n, self.m, self.width, range(self.vectors)

        def block(start: int | str, size: int) -> None:
            own, r, R = self._moved("w", start, width), self._moved("r", start), self._moved("R", start, m)
            force, column = self._moved("w", start), self._moved("B", start)
            sums = []
            for a in range(size):
                parts = [
                    (own, self.turned + a * width, n, 0),
                    (r, a, 1, n),
                    (R, a * m, m, self.inputs),
                ]
                sums.append([self._row(parts, v) for v in wanted])
                self._plus(sums[-1], self._sum(start, self.inputs + a), self._get("shift", 0))
                if self.bounds:
                    self._plus(sums[-1], n, self._get(force, self.force + n + a))
            self._combine(sums, [(column, a, m) for a in range(size)], "w", self.M, (0, n), wanted)
            for a, total in enumerate(sums):
                for v in range(self.kept):
                    self._store(total[v], own, self.Y + a * width + v * self.lanes)
                for v in wanted:
                    self._store(total[v], own, self.left + a * width + v * self.lanes)

        self._in_blocks(m, self.vectors, block)

    def _eliminate(self) -> None:
        """K: in the results, and -K where N' was."""
        w, good, L = self.w, "", self.lanes
        rows = [
            [self._load("w", self.left + a * self.width + v * L, L) for v in range(self.vectors)]
            for a in range(self.m)
        ]
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
        """The same, operation by operation, in loops in memory."""
        w, m, L, width, wanted = self.w, self.m, self.lanes, self.width, range(self.vectors)
        self._put("1.0", "flag", 0)

        def eliminate(p: int | str, _: list[str]) -> list[str]:
            start = self._times(p, width)
            pivot = self._get("w", self.left + self.inputs, moved=self._times(p, width + 1))
            positive = w.let(f"fcmp ogt double {pivot}, 0.0")
            good = self._get("flag", 0)
            self._put(w.let(f"select i1 {positive}, double {good}, double 0.0"), "flag", 0)
            inverse = w.spread(w.element_inverse(pivot))
            own = [w.times(self._load("w", self.left + v * L, L, moved=start), inverse) for v in wanted]

            def subtract(a: int | str, _: list[str]) -> list[str]:
                moved = self._times(a, width)
                negative = w.minus(self._spread("w", self.left + self.inputs, moved=w.add(moved, p)))
                for v in wanted:
                    before = self._load("w", self.left + v * L, L, moved=moved)
                    after = w.plus_product(negative, own[v], before)
                    self._store(after, "w", self.left + v * L, moved=moved)
                return []

            self._over(range(m), [], subtract)  # of itself too: what is left there is not used
            for v in wanted:
                self._store(own[v], "w", self.left + v * L, moved=start)
            return []

        self._over(range(m), [], eliminate)

        def leave(a: int | str, _: list[str]) -> list[str]:
            own = self._moved("w", a, width)
            self._left(a, [self._load(own, self.left + v * L, L) for v in range(self.kept)])
            return []

        self._over(range(m), [], leave)

    def _left(self, a: int | str, row: Sequence[str]) -> None:
        """Row a of K: in the results, and -K where N' was."""
        n, columns = self.n, self.columns
        self._leave(row, 0, n, self._moved("K", a, n), 0)
        turned = [self.w.minus(x) for x in row]
        self._leave(turned, n, columns, self._moved("k", a, columns), 0)
        own = self._moved("w", a, self.width)
        for v, vector in enumerate(turned):
            self._store(vector, own, self.turned + v * self.lanes)

    def _states(self) -> None:
        """P and z of (2)."""
        n, columns, wanted = self.n, self.columns, range(self.kept)

        def block(start: int | str, size: int) -> None:
            Q, q, own = self._moved("Q", start, n), self._moved("q", start), self._moved("w", start)
            sums = []
            for i in range(size):
                sums.append([self._row([(Q, i * n, n, 0), (q, i, 1, n)], v) for v in wanted])
                self._plus(sums[-1], self._sum(start, i), self._get("shift", 0))
                if self.bounds:
                    self._plus(sums[-1], n, self._get(own, self.force + i))
            A = self._moved("A", start)
            self._combine(sums, [(A, i, n) for i in range(size)], "w", self.M, (0, n), wanted)
            column = [(own, self.Y + i, self.width) for i in range(size)]
            self._combine(sums, column, "w", self.turned, (0, self.m), wanted)
            P, z = self._moved("P_out", start, n), self._moved("z_out", start, columns)
            for i, row in enumerate(sums):
                self._leave(row, 0, n, P, i * n)
                self._leave(row, n, columns, z, i * columns)

        self._in_blocks(n, self.kept, block)

    def _ends(self) -> None:
        """W of (2)."""
        n, columns = self.n, self.columns
        wanted = range(n // self.lanes, self.kept)

        def block(start: int | str, size: int) -> None:
            W, z, own = self._moved("W", start, columns), self._moved("z", start), self._moved("w", start)
            sums = [
                [self._row([(W, j * columns, columns, n)], v) for v in range(self.kept)] for j in range(size)
            ]
            self._combine(sums, [(z, 1 + j, columns) for j in range(size)], "w", self.G, (0, n), wanted)
            column = [(own, self.Y + n + 1 + j, self.width) for j in range(size)]
            self._combine(sums, column, "w", self.turned, (0, self.m), wanted)
            left = self._moved("W_out", start, columns)
            for j, row in enumerate(sums):
                self._leave(row, n, columns, left, j * columns)

        self._in_blocks(columns - 1, len(wanted), block)

    # --- rows -------------------------------------------------------------------------------------------------------

    def _in_blocks(self, count: int, vectors: int, write: Callable[[int | str, int], None]) -> None:
        """Rows in blocks whose sums stay in registers: `write` gets the first row and how many. The last block may have
        rows of the one before, which are computed again."""
        if not count:
            return
        most = max(1, REGISTERS // vectors)
        size = min(range(most, 0, -1), key=lambda size: -(-count // size) * (2 * size + 1))

        def block(k: int | str, _: list[str]) -> list[str]:
            start = self._times(k, size)
            if isinstance(start, str) and count % size:
                over = self.w.let(f"icmp sgt i64 {start}, {count - size}")
                start = self.w.let(f"select i1 {over}, i64 {count - size}, i64 {start}")
            write(start, size)
            return []

        self._over(range(-(-count // size)), [], block, fewest=2)

    def _combine(
        self,
        sums: list[list[str]],
        factors: Sequence[Factors],
        base: str,
        offset: int,
        rows: tuple[int | str, int | str],
        wanted: range,
    ) -> None:
        """Add to every sum the rows from one to before the other of what begins there, with its factors."""

        def add(k: int | str, flat: list[str]) -> list[str]:
            moved = self._times(k, self.width)
            own = [self._load(base, offset + v * self.lanes, self.lanes, moved=moved) for v in wanted]
            apart = {far: self._times(k, far) for far in dict.fromkeys(far for _, _, far in factors)}
            found = []
            for (of, first, far), total in zip(factors, _parts(flat, len(wanted)), strict=True):
                factor = self._spread(of, first, moved=apart[far])
                found += [self.w.plus_product(factor, x, y) for x, y in zip(own, total, strict=True)]
            return found

        flat = [total[v] for total in sums for v in wanted]
        first, last = rows
        if isinstance(first, int) and isinstance(last, int):
            flat = self._over(range(first, last), flat, add)
        else:
            flat = self._loop(first, last, flat, add)
        for total, found in zip(sums, _parts(flat, len(wanted)), strict=True):
            for v, value in zip(wanted, found, strict=True):
                total[v] = value

    def _over(
        self,
        rounds: range,
        sums: list[str],
        add: Callable[[int | str, list[str]], list[str]],
        fewest: int = FEW,
    ) -> list[str]:
        """What `add` makes of the sums, round after round; of `fewest` rounds on in a loop."""
        if len(rounds) < fewest:
            for k in rounds:
                sums = add(k, sums)
            return sums
        return self._loop(rounds.start, rounds.stop, sums, add)

    def _loop(
        self,
        first: int | str,
        last: int | str,
        sums: list[str],
        add: Callable[[int | str, list[str]], list[str]],
    ) -> list[str]:
        loop = self.w.loop(str(first), str(last), sums)
        self.w.end(loop, add(loop.index, loop.sums))
        return loop.sums

    def _times(self, k: int | str, far: int) -> int | str:
        return k * far if isinstance(k, int) else self.w.mul(k, far)

    def _sum(self, k: int | str, more: int) -> int | str:
        return k + more if isinstance(k, int) else self.w.add(k, more)

    def _moved(self, base: str, k: int | str, far: int = 1) -> str:
        """The array from k times `far` elements on."""
        return self._address(base, 0, self._times(k, far)).removeprefix("%")

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

    def _plus(self, row: list[str], column: int | str, value: str) -> None:
        """Add a number in one column."""
        w, L, I = self.w, self.lanes, vector_type(self.lanes, "i64")
        if isinstance(column, int):
            v, lane = divmod(column, L)
            row[v] = w.plus(row[v], w.let(f"insertelement {w.T} zeroinitializer, double {value}, i64 {lane}"))
            return
        one = w.let(f"insertelement {I} poison, i64 {column}, i64 0")
        wanted = w.let(f"shufflevector {I} {one}, {I} poison, <{L} x i32> zeroinitializer")
        number = w.spread(value)
        for v in range(len(row)):
            own = ", ".join(f"i64 {v * L + k}" for k in range(L))
            here = w.let(f"icmp eq {I} {wanted}, <{own}>")
            row[v] = w.plus(row[v], w.choose(here, number, w.zero))

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
