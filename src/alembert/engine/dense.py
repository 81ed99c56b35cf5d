"""Sums of arrays, products and inverses of square matrices, as loops for any size.

One state fills the registers with neighbouring elements of a row, several states have one each. The inverse is by Gauss and
Jordan's elimination in place without pivots: for symmetric positive matrices, and for those that are near to them.
`tests/lowering/test_fast_paths.py` compares with NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

from alembert.engine.loops import Lines
from alembert.engine.target import Code, Target


class SumSource:
    """The sum of some arrays with `signs`, 1 or -1; zeros where there are none."""

    def __init__(self, signs: Sequence[int], size: int) -> None:
        self._signs, self.input_sizes, self.output_sizes = signs, [size] * len(signs), [size]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        (size,) = self.output_sizes
        f = _lines(size, lanes, target)
        if not self._signs:
            f.clear("%o", size)
        else:
            loop, place = f.blocks(size)
            total = ""
            for k, sign in enumerate(self._signs):
                x = f.load(f"%i{k}", place, aligned=False)
                signed = x if sign > 0 else f.minus(x)
                total = f.plus(total, signed) if total else signed
            f.store(total, "%o", place, aligned=False)
            f.end(loop)
        return _code(f, name, len(self._signs), size * max(1, len(self._signs)), target)


class ProductSource:
    """The sum of products A B of `count` pairs of (n, n) matrices, times `sign`."""

    def __init__(self, n: int, count: int, sign: int) -> None:
        self._n, self._count, self._sign = n, count, sign
        self.input_sizes, self.output_sizes = [n * n] * (2 * count), [n * n]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        n, f = self._n, _lines(self._n, lanes, target)
        i = f.loop("0", str(n))
        row = f.mul(i.index, n)
        j, place = f.blocks(n)
        total = f.zero
        for pair in range(self._count):
            k = f.loop("0", str(n), [total])
            a = f.spread(f.scalar(f"%i{2 * pair}", f.add(row, k.index)))
            b = f.load(f"%i{2 * pair + 1}", f.add(f.mul(k.index, n), place), aligned=False)
            f.end(k, [f.plus_product(a, b, k.sums[0])])
            (total,) = k.sums
        if self._sign < 0:
            total = f.minus(total)
        f.store(total, "%o", f.add(row, place), aligned=False)
        f.end(j)
        f.end(i)
        return _code(f, name, 2 * self._count, self._count * n**3 // f.width, target)


class IdentitySource:
    """The (n, n) matrix whose columns are the unit vectors."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.input_sizes: list[int] = []
        self.output_sizes = [n * n]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        n, f = self._n, Lines(1, lanes=lanes, fused=target.fused)
        f.clear("%o", n * n)
        k = f.loop("0", str(n))
        f.put(f.one, "%o", f.mul(k.index, n + 1))
        f.end(k)
        return _code(f, name, 0, n, target)


class VectorProductSource:
    """A x for an (n, n) matrix A and a vector x."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.input_sizes, self.output_sizes = [n * n, n], [n]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        n, f = self._n, Lines(1, lanes=lanes, fused=target.fused)
        rows = min(n, 4)  # sums at a time, so that one need not wait for the other
        block, first = f.blocks(n, rows)
        starts = [f.mul(f.add(first, k), n) for k in range(rows)]
        j = f.loop("0", str(n), [f.zero] * rows)
        x = f.scalar("%i1", j.index)
        entries = [f.scalar("%i0", f.add(start, j.index)) for start in starts]
        f.end(j, [f.plus_product(a, x, total) for a, total in zip(entries, j.sums, strict=True)])
        for k, total in enumerate(j.sums):
            f.put(total, "%o", f.add(first, k))
        f.end(block)
        return _code(f, name, 2, n * n, target)


class InverseSource:
    """The inverse of an (n, n) matrix that needs no pivots, the last row first: outboard speeds before inboard ones.

    With `forward` the first row comes first, as a matrix [M B; C 0] needs it.
    """

    def __init__(self, n: int, *, forward: bool = False) -> None:
        self._n, self._forward = n, forward
        self.input_sizes, self.output_sizes = [n * n], [n * n]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        n, f = self._n, _lines(self._n, lanes, target)
        f.copy("%i0", "%o", n * n)
        order = f.loop("0", str(n))
        k = order.index if self._forward else f.sub(n - 1, order.index)
        pivot_row = f.mul(k, n)
        pivot = f.at("%o", f.add(pivot_row, k))
        inverse = f.element_inverse(f.scalar(pivot))
        f.put(f.one, pivot)
        source = f.at("%o", pivot_row)
        _scale(f, source, inverse, n)
        i = f.loop("0", str(n))
        f.branch(f.equal(i.index, k), f"{i.name}_done", f"{i.name}_other")
        f.label(f"{i.name}_other")
        row = f.at("%o", f.mul(i.index, n))
        entry = f.at(row, k)
        factor = f.element_minus(f.scalar(entry))
        f.put(f.element_zero, entry)
        _add(f, row, source, factor, n)
        f.go(f"{i.name}_done")
        f.label(f"{i.name}_done")
        f.end(i)
        f.end(order)
        return _code(f, name, 1, n**3 // f.width, target)


def _lines(n: int, lanes: int, target: Target) -> Lines:
    return Lines(target.lanes if lanes == 1 and n >= target.lanes else 1, lanes=lanes, fused=target.fused)


def _code(f: Lines, name: str, inputs: int, work: int, target: Target) -> Code:
    text = f.function(name, [*(f"%i{k}" for k in range(inputs)), "%o", "%w"], "#0")
    return Code(text, 0, work, frozenset(), target)


def _scale(f: Lines, row: str, factor: str, n: int) -> None:
    whole = n - n % f.width
    spread = f.spread(factor)
    j = f.loop("0", str(whole), step=f.width)
    f.store(f.times(f.load(row, j.index, aligned=False), spread), row, j.index, aligned=False)
    f.end(j)
    for k in range(whole, n):
        f.put(f.element_times(f.scalar(row, k), factor), row, k)


def _add(f: Lines, row: str, other: str, factor: str, n: int) -> None:
    """row += factor * other"""
    whole = n - n % f.width
    spread = f.spread(factor)
    j = f.loop("0", str(whole), step=f.width)
    x = f.load(other, j.index, aligned=False)
    f.store(f.plus_product(spread, x, f.load(row, j.index, aligned=False)), row, j.index, aligned=False)
    f.end(j)
    for k in range(whole, n):
        f.put(f.element_plus_product(factor, f.scalar(other, k), f.scalar(row, k)), row, k)
