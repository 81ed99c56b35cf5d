"""Sums of arrays, products and inverses of square matrices over all speeds, as loops for any size.

One state fills the registers with neighbouring elements of a row, several states have one each. The inverse is for symmetric
positive matrices: Gauss and Jordan's elimination in place needs no pivots there.
"""

from __future__ import annotations

from collections.abc import Sequence

from alembert.engine.codegen import Code
from alembert.engine.loops import Lines
from alembert.engine.target import Target
from alembert.engine.zeros import zero_function


class SumSource:
    """The sum of some arrays with `signs`, 1 or -1; zeros where there are none."""

    def __init__(self, signs: Sequence[int], size: int) -> None:
        self._signs, self.input_sizes, self.output_sizes = signs, [size] * len(signs), [size]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        (size,) = self.output_sizes
        if not self._signs:
            text = zero_function(f"{name}_zero", lanes * size)
            text += (
                f"define internal void @{name}(ptr %o, ptr %w) noinline #0 {{\n"
                f"  call void @{name}_zero(ptr %o)\n  ret void\n}}\n"
            )
            return Code(text, 0, size, frozenset(), target)
        width = _width(size, lanes, target)
        f = Lines(width, lanes=lanes, fused=False)
        j = _Blocks(f, size)
        total = ""
        for k, sign in enumerate(self._signs):
            x = f.load(f"%i{k}", j.place, aligned=False)
            signed = x if sign > 0 else f.minus(x)
            total = f.let(f"fadd {f.T} {total}, {signed}") if total else signed
        f.store(total, "%o", j.place, aligned=False)
        j.end()
        pointers = [*(f"ptr noalias %i{k}" for k in range(len(self._signs))), "ptr noalias %o", "ptr %w"]
        return Code(f.function(name, pointers, "#0"), 0, size * len(self._signs), frozenset(), target)


class ProductSource:
    """The sum of products A B of `count` pairs of (n, n) matrices, times `sign`."""

    def __init__(self, n: int, count: int, sign: int) -> None:
        self._n, self._count, self._sign = n, count, sign
        self.input_sizes, self.output_sizes = [n * n] * (2 * count), [n * n]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        n = self._n
        f = Lines(_width(n, lanes, target), lanes=lanes, fused=False)
        pointers = [*(f"ptr noalias %i{k}" for k in range(2 * self._count)), "ptr noalias %o", "ptr %w"]
        i = f.loop("0", str(n))
        row = f.let(f"mul nsw i64 {i.index}, {n}")
        j = _Blocks(f, n)
        total = "zeroinitializer" if "<" in f.T else "0.0"
        for pair in range(self._count):
            k = f.loop("0", str(n), [total])
            a = f.spread(f.scalar(f"%i{2 * pair}", f.let(f"add nsw i64 {row}, {k.index}")))
            at = f.let(f"add nsw i64 {f.let(f'mul nsw i64 {k.index}, {n}')}, {j.place}")
            f.end(k, [f.plus_product(a, f.load(f"%i{2 * pair + 1}", at, aligned=False), k.sums[0])])
            (total,) = k.sums
        if self._sign < 0:
            total = f.minus(total)
        f.store(total, "%o", f.let(f"add nsw i64 {row}, {j.place}"), aligned=False)
        j.end()
        f.end(i)
        text = _function(f, name, pointers, target)
        return Code(text, 0, self._count * n**3 // f.width, frozenset(), target)


class InverseSource:
    """The inverse of a symmetric positive (n, n) matrix, the last row first: outboard speeds before inboard ones."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.input_sizes, self.output_sizes = [n * n], [n * n]

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        copy = SumSource([1], self._n**2).emit(f"{name}_copy", lanes, target)
        n = self._n
        f = Lines(_width(n, lanes, target), lanes=lanes, fused=False)
        f.do(f"call void @{name}_copy(ptr %i0, ptr %o, ptr %w)")
        order = f.loop("0", str(n))
        k = f.let(f"sub nsw i64 {n - 1}, {order.index}")
        pivot_row = f.let(f"mul nsw i64 {k}, {n}")
        pivot = f.at("%o", f.let(f"add nsw i64 {pivot_row}, {k}"))
        inverse = f.let(f"fdiv {f.E} {f.one}, {f.scalar(pivot)}")
        f.put(f.one, pivot)
        source = f.at("%o", pivot_row)
        _scale(f, source, inverse, n)
        i = f.loop("0", str(n))
        other = f.let(f"icmp ne i64 {i.index}, {k}")
        mark = f"{i.name}_other"
        f.branch(other, mark, f"{mark}_done")
        f.label(mark)
        row = f.at("%o", f.let(f"mul nsw i64 {i.index}, {n}"))
        entry = f.at(row, k)
        factor = f.let(f"fneg {f.E} {f.scalar(entry)}")
        f.put("zeroinitializer" if "<" in f.E else "0.0", entry)
        _add(f, row, source, factor, n)
        f.do(f"br label %{mark}_done")
        f.label(f"{mark}_done")
        f.end(i)
        f.end(order)
        text = _function(f, name, ["ptr noalias %i0", "ptr %o", "ptr %w"], target)
        return Code(copy.text + text, 0, n**3 // f.width, frozenset(), target)


def _width(n: int, lanes: int, target: Target) -> int:
    return target.lanes if lanes == 1 and n >= target.lanes else 1


class _Blocks:
    """Blocks of neighbouring elements; the last one ends with the last element and may overlap the one before."""

    def __init__(self, f: Lines, size: int) -> None:
        self._f, self._loop = f, f.loop("0", str(size), step=f.width)
        over = f.let(f"icmp sgt i64 {self._loop.index}, {size - f.width}")
        self.place = f.let(f"select i1 {over}, i64 {size - f.width}, i64 {self._loop.index}")

    def end(self) -> None:
        self._f.end(self._loop)


def _scale(f: Lines, row: str, factor: str, n: int) -> None:
    whole = n - n % f.width
    spread = f.spread(factor)
    j = f.loop("0", str(whole), step=f.width)
    f.store(f.times(f.load(row, j.index, aligned=False), spread), row, j.index, aligned=False)
    f.end(j)
    for k in range(whole, n):
        f.put(f.let(f"fmul {f.E} {f.scalar(row, k)}, {factor}"), row, k)


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


def _function(f: Lines, name: str, pointers: Sequence[str], target: Target) -> str:
    """With multiply-adds in one rounding where the machine has them, without declaring them once more."""
    text = f.function(name, pointers, "#0")
    return (
        text.replace(" fmul ", " fmul contract ").replace(" fadd ", " fadd contract ")
        if target.fused
        else text
    )
