"""The inward step of the sweep in time for stages of many states, on vectors along the rows of its matrices.

With G = [A B b 0], rows of the states first, and the rows of the end's multipliers last, it forms

    T = P G + [0 0 z],    H = [A B]' T + [Q N q; N' R r],    [z' G + W]                              (1)

and eliminates the inputs from all rows by Gauss and Jordan's method. The matrix is symmetric, so that the factors
of the other rows stand in the row of the pivot. What is left are P, z and W of the stage before, K and -k
((4) and (5) of `alembert.optimal.time_sweep`). The straight-line code that the same step has for small stages is
several times slower from about ten states and inputs on.
"""

from __future__ import annotations

from collections.abc import Sequence

from alembert.engine.target import Target
from alembert.engine.vectormath import vector_type

BLOCK = 4
"""rows that are formed together, so that what they share is loaded once"""
NAMES = ("A", "B", "b", "Q", "N", "R", "q", "r", "D", "push", "shift", "P", "z", "W")
RESULTS = ("P_out", "z_out", "W_out", "K", "k", "flag")


def sizes(n: int, m: int, columns: int, bounds: int) -> list[int]:
    """Doubles of every argument of the step, in its order."""
    ends = columns - 1
    given = [n * n, n * m, n, n * n, n * m, m * m, n, m, bounds * (n + m), bounds, 1]
    between = [n * n, n * columns, ends * columns]
    return [*given, *between, *between, m * n, m * columns, 1]


def emit(name: str, n: int, m: int, columns: int, bounds: int, target: Target) -> tuple[str, int]:
    """IR of the step, and how many doubles its workspace has."""
    return _Step(name, n, m, columns, bounds, target).emit()


class _Step:
    def __init__(self, name: str, n: int, m: int, columns: int, bounds: int, target: Target) -> None:
        self.name, self.n, self.m, self.columns, self.bounds = name, n, m, columns, bounds
        self.lanes = target.lanes
        self.T = vector_type(self.lanes)
        self.fixed = n + m
        self.vectors = -(-(self.fixed + columns) // self.lanes)
        self.width = self.vectors * self.lanes
        self.rows = self.fixed + columns - 1
        self.lines: list[str] = []
        self.count = 0
        self.G, self.M, self.H = 0, n * self.width, 2 * n * self.width
        self.force = self.H + self.rows * self.width

    def emit(self) -> tuple[str, int]:
        self._gather()
        self._product()
        self._hessian()
        self._eliminate()
        self._leave()
        parameters = ", ".join(f"ptr noalias %{x}" for x in (*NAMES, *RESULTS, "w"))
        body = "\n  ".join(self.lines)
        text = f"define internal void @{self.name}({parameters}) #0 {{\nentry:\n  {body}\n  ret void\n}}\n"
        return text + self._declarations(), self.force + self.width + self.lanes

    def _declarations(self) -> str:
        T, L = self.T, self.lanes
        B = vector_type(L, "i1")
        return (
            f"declare {T} @llvm.fma.v{L}f64({T}, {T}, {T})\n"
            f"declare {T} @llvm.masked.load.v{L}f64.p0(ptr, i32, {B}, {T})\n"
            f"declare void @llvm.masked.store.v{L}f64.p0({T}, ptr, i32, {B})\n"
        )

    # --- steps ------------------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        """G, row by row: what is stored too far is zero, or overwritten by what follows."""
        n, m = self.n, self.m
        zero = f"{self.T} zeroinitializer"
        for i in range(n):
            start = self.G + i * self.width
            for v in range(self.vectors):
                self._store(zero, "w", start + v * self.lanes)
            self._copy("A", i * n, n, start)
            self._copy("B", i * m, m, start + n)
            self._put(self._get("b", i), "w", start + self.fixed)

    def _product(self) -> None:
        """T of (1), from the lower triangle of P."""
        n = self.n
        for first in range(0, n, BLOCK):
            block = range(first, min(first + BLOCK, n))
            factors = [[("P", max(i, k) * n + min(i, k)) for k in range(n)] for i in block]
            self._combine(factors, self.G, [self.M + i * self.width for i in block])
        for i in range(n):
            for j in range(self.columns):
                self._add("w", self.M + i * self.width + self.fixed + j, self._get("z", i * self.columns + j))

    def _hessian(self) -> None:
        n, m, width = self.n, self.m, self.width
        for first in range(0, self.fixed, BLOCK):
            block = range(first, min(first + BLOCK, self.fixed))
            factors = [[("w", self.G + k * width + c) for k in range(n)] for c in block]
            self._combine(factors, self.M, [self.H + c * width for c in block])
        shift = self._get("shift", 0)
        for i in range(n):
            row = self.H + i * width
            self._accumulate("Q", i * n, n, row)
            self._add("w", row + i, shift)
            self._add("w", row + self.fixed, self._get("q", i))
        for a in range(m):
            row = self.H + (n + a) * width
            for i in range(n):
                self._add("w", row + i, self._get("N", i * m + a))
            self._accumulate("R", a * m, m, row + n)
            self._add("w", row + n + a, shift)
            self._add("w", row + self.fixed, self._get("r", a))
        if self.bounds:
            self._forces()
        ends = self.columns - 1
        for first in range(0, ends, BLOCK):
            block = range(first, min(first + BLOCK, ends))
            factors = [[("z", k * self.columns + 1 + j) for k in range(n)] for j in block]
            self._combine(
                factors, self.G, [self.H + (self.fixed + j) * width for j in block], self.fixed // self.lanes
            )
        for j in range(ends):
            for c in range(self.columns):
                place = self.H + (self.fixed + j) * width + self.fixed + c
                self._add("w", place, self._get("W", j * self.columns + c))

    def _forces(self) -> None:
        """D' push to the slopes."""
        fixed, L = self.fixed, self.lanes
        for c in range(0, fixed, L):
            wide = min(L, fixed - c)
            total = f"{self.T} zeroinitializer"
            for d in range(self.bounds):
                row = self._load("D", d * fixed + c, wide)
                total = f"{self.T} {self._fma(self._splat(self._get('push', d)), row, total)}"
            self._store(total, "w", self.force + c)
        for c in range(fixed):
            self._add("w", self.H + c * self.width + fixed, self._get("w", self.force + c))

    def _eliminate(self) -> None:
        n, m, width, L = self.n, self.m, self.width, self.lanes
        good = ""
        for p in range(m):
            row = self.H + (n + p) * width
            pivot = self._get("w", row + n + p)
            positive = self._new(f"fcmp ogt double {pivot}, 0.0")
            good = self._new(f"and i1 {good}, {positive}") if good else positive
            others = [(i, row + i) for i in range(n)]
            others += [(n + a, self.H + (n + a) * width + n + p) for a in range(m) if a != p]
            others += [(self.fixed + j, row + self.fixed + 1 + j) for j in range(self.columns - 1)]
            factors = {i: self._get("w", place) for i, place in others}
            inverse = self._splat(self._new(f"fdiv double 1.0, {pivot}"))
            scaled = []
            for v in range(self.vectors):
                whole = self._load("w", row + v * L, L)
                value = self._new(f"fmul {self.T} {whole.split(' ')[-1]}, {inverse.split(' ')[-1]}")
                self._store(f"{self.T} {value}", "w", row + v * L)
                scaled.append(f"{self.T} {value}")
            for i, factor in factors.items():
                negative = self._splat(self._new(f"fneg double {factor}"))
                target = self.H + i * width
                for v in range(self.fixed // L if i >= self.fixed else 0, self.vectors):
                    value = self._fma(negative, scaled[v], self._load("w", target + v * L, L))
                    self._store(f"{self.T} {value}", "w", target + v * L)
        self._put(self._new(f"select i1 {good}, double 1.0, double 0.0"), "flag", 0)

    def _leave(self) -> None:
        n, m, columns, width = self.n, self.m, self.columns, self.width
        for i in range(n):
            row = self.H + i * width
            self._move(row, "P_out", i * n, n)
            self._move(row + self.fixed, "z_out", i * columns, columns)
        for a in range(m):
            row = self.H + (n + a) * width
            self._move(row, "K", a * n, n)
            for c in range(columns):
                value = self._new(f"fneg double {self._get('w', row + self.fixed + c)}")
                self._put(value, "k", a * columns + c)
        for j in range(columns - 1):
            self._move(self.H + (self.fixed + j) * width + self.fixed, "W_out", j * columns, columns)

    # --- rows -------------------------------------------------------------------------------------------------------

    def _combine(
        self,
        factors: Sequence[Sequence[tuple[str, int]]],
        source: int,
        targets: Sequence[int],
        first: int = 0,
    ) -> None:
        """Rows at `targets`: sums of the rows from `source` on, with the given scalars as factors."""
        L = self.lanes
        wanted = range(first, self.vectors)
        sums = [[f"{self.T} zeroinitializer"] * self.vectors for _ in targets]
        for k in range(len(factors[0])):
            row = {v: self._load("w", source + k * self.width + v * L, L) for v in wanted}
            for r, own in enumerate(factors):
                factor = self._splat(self._get(*own[k]))
                for v in wanted:
                    sums[r][v] = f"{self.T} {self._fma(factor, row[v], sums[r][v])}"
        for r, target in enumerate(targets):
            for v in wanted:
                self._store(sums[r][v], "w", target + v * L)

    def _copy(self, source: str, offset: int, count: int, target: int) -> None:
        for c in range(0, count, self.lanes):
            self._store(self._load(source, offset + c, min(self.lanes, count - c)), "w", target + c)

    def _accumulate(self, source: str, offset: int, count: int, target: int) -> None:
        for c in range(0, count, self.lanes):
            wide = min(self.lanes, count - c)
            a = self._load(source, offset + c, wide).split(" ")[-1]
            b = self._load("w", target + c, wide).split(" ")[-1]
            self._store(f"{self.T} {self._new(f'fadd {self.T} {a}, {b}')}", "w", target + c, wide)

    def _move(self, source: int, target: str, offset: int, count: int) -> None:
        for c in range(0, count, self.lanes):
            wide = min(self.lanes, count - c)
            self._store(self._load("w", source + c, wide), target, offset + c, wide)

    # --- instructions -------------------------------------------------------------------------------------------------

    def _new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def _address(self, base: str, offset: int) -> str:
        return (
            self._new(f"getelementptr inbounds double, ptr %{base}, i64 {offset}") if offset else f"%{base}"
        )

    def _get(self, base: str, offset: int) -> str:
        return self._new(f"load double, ptr {self._address(base, offset)}, align 8")

    def _put(self, value: str, base: str, offset: int) -> None:
        self.lines.append(f"store double {value}, ptr {self._address(base, offset)}, align 8")

    def _add(self, base: str, offset: int, value: str) -> None:
        self._put(self._new(f"fadd double {self._get(base, offset)}, {value}"), base, offset)

    def _splat(self, value: str) -> str:
        T = self.T
        one = self._new(f"insertelement {T} poison, double {value}, i64 0")
        return (
            f"{T} {self._new(f'shufflevector {T} {one}, {T} poison, <{self.lanes} x i32> zeroinitializer')}"
        )

    def _fma(self, a: str, b: str, c: str) -> str:
        return self._new(f"call {self.T} @llvm.fma.v{self.lanes}f64({a}, {b}, {c})")

    def _mask(self, count: int) -> str:
        marks = ", ".join(f"i1 {int(k < count)}" for k in range(self.lanes))
        return f"{vector_type(self.lanes, 'i1')} <{marks}>"

    def _load(self, base: str, offset: int, count: int) -> str:
        """`count` elements, zeros in the other lanes."""
        address, T = self._address(base, offset), self.T
        if count == self.lanes:
            return f"{T} {self._new(f'load {T}, ptr {address}, align 8')}"
        call = f"call {T} @llvm.masked.load.v{self.lanes}f64.p0"
        return f"{T} {self._new(f'{call}(ptr {address}, i32 8, {self._mask(count)}, {T} zeroinitializer)')}"

    def _store(self, value: str, base: str, offset: int, count: int | None = None) -> None:
        address = self._address(base, offset)
        if count is None or count == self.lanes:
            self.lines.append(f"store {value}, ptr {address}, align 8")
        else:
            call = f"call void @llvm.masked.store.v{self.lanes}f64.p0"
            self.lines.append(f"{call}({value}, ptr {address}, i32 8, {self._mask(count)})")
