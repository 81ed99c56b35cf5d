"""Linear maps between stacked columns that stay sums, products and recursions of a few blocks.

Two kinds of operator carry everything: a few blocks (`Blocks`: H, M, P, D, G, K, tau_bar, E_phi, E_psi,
Upsilon) and the recursion (I - E)^-1 over strictly triangular blocks (`Recursion`: phi, psi). The rest are
sums and products of them, and inverses stay in the algebra:

    (I - E)^-1                      the recursion of E                                              (1)
    (C + A (I - E)^-1 B)^-1       = C^-1 - C^-1 A (I - E + B C^-1 A)^-1 B C^-1                      (2)

(2) with C = I, A = H, B = K is lemma 0.2 of Rodriguez, Jain, Kreutz-Delgado 1992: E_phi - K H = E_psi.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alembert.errors import ArgumentError

Array = np.ndarray
Sizes = tuple[int, ...]


class Operator:
    """A linear map between stacked columns; `rows` and `columns` are the sizes of their parts."""

    rows: Sizes
    columns: Sizes
    __array_ufunc__ = None  # so that `array @ operator` comes to `__rmatmul__`

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows), sum(self.columns)

    def apply(self, x: Any) -> Array:
        """The operator on a column, or on each column of a matrix."""
        array = np.asarray(x, dtype=float)
        if array.ndim not in (1, 2) or len(array) != self.shape[1]:
            raise ArgumentError(
                f"operator of shape {self.shape}: x has shape {array.shape}, expected ({self.shape[1]},) "
                f"or ({self.shape[1]}, columns)"
            )
        return self._apply(array)

    def dense(self) -> Array:
        """The matrix, for teaching and tests."""
        return self._apply(np.eye(self.shape[1]))

    @property
    def T(self) -> Operator:
        raise NotImplementedError

    @property
    def inverse(self) -> Operator:
        """The inverse, where (1) or (2) gives it."""
        raise ArgumentError(f"the algebra has no inverse for this {self!r}; use dense()")

    def _apply(self, x: Array) -> Array:
        raise NotImplementedError

    def _scaled(self, factor: float) -> Operator:
        return _product(factor * identity(self.rows), self)

    def __matmul__(self, other: Any) -> Any:
        if other is I:
            return self
        return _product(self, other) if isinstance(other, Operator) else self.apply(other)

    def __rmatmul__(self, other: Any) -> Any:
        """A row, or a matrix of rows, times the operator."""
        return self.T.apply(np.asarray(other, dtype=float).T).T

    def __mul__(self, factor: float) -> Operator:
        return self._scaled(float(factor))

    __rmul__ = __mul__

    def __neg__(self) -> Operator:
        return self._scaled(-1.0)

    def __add__(self, other: Operator | Identity) -> Operator:
        return _sum(self, identity(self.rows) if isinstance(other, Identity) else other)

    def __radd__(self, other: Identity) -> Operator:
        return self + other

    def __sub__(self, other: Operator | Identity) -> Operator:
        return self + (-identity(self.rows) if isinstance(other, Identity) else -other)

    def __rsub__(self, other: Identity) -> Operator:
        return -self + other

    def __repr__(self) -> str:
        return f"{type(self).__name__} of shape {self.shape}"


class Identity:
    """I, of whatever size it meets: `I + H @ phi @ K`, `I - E_phi`."""

    def __matmul__(self, other: Any) -> Any:
        return other

    def __repr__(self) -> str:
        return "I"


I = Identity()


class Blocks(Operator):
    """A few dense blocks: `entries[i, j]` leads from part j of the columns to part i of the rows."""

    def __init__(self, rows: Sizes, columns: Sizes, entries: Mapping[tuple[int, int], Array]) -> None:
        self.rows, self.columns, self.entries = rows, columns, dict(entries)
        r, c = _slices(rows), _slices(columns)
        self._moves = [(r[i], c[j], block) for (i, j), block in self.entries.items()]

    @property
    def T(self) -> Blocks:
        return Blocks(self.columns, self.rows, {(j, i): B.T for (i, j), B in self.entries.items()})

    @property
    def inverse(self) -> Operator:
        diagonal = {key: block for key, block in self.entries.items() if key[0] == key[1]}
        others = {key: block for key, block in self.entries.items() if key[0] != key[1]}
        if self.rows != self.columns or len(diagonal) < len(self.rows) or not _triangular(others):
            return super().inverse
        if not others:
            return self._with({key: np.linalg.inv(block) for key, block in diagonal.items()})
        if all(np.array_equal(block, np.eye(len(block))) for block in diagonal.values()):
            return Recursion(-self._with(others))
        D = self._with(diagonal).inverse
        return (I + D @ self._with(others)).inverse @ D

    def _with(self, entries: Mapping[tuple[int, int], Array]) -> Blocks:
        return Blocks(self.rows, self.columns, entries)

    def _apply(self, x: Array) -> Array:
        y = np.zeros((self.shape[0], *x.shape[1:]))
        for r, c, block in self._moves:
            y[r] += block @ x[c]
        return y

    def _scaled(self, factor: float) -> Blocks:
        return self._with({key: factor * block for key, block in self.entries.items()})

    def __neg__(self) -> Blocks:
        return self._scaled(-1.0)


class Recursion(Operator):
    """(1): y = x + E y, part by part along strictly triangular blocks; inward for phi, outward for phi^T."""

    def __init__(self, E: Blocks) -> None:
        if not _triangular(E.entries):
            raise ArgumentError(f"the recursion of {E!r}: its blocks are not strictly triangular")
        self.rows = self.columns = E.rows
        self.E = E
        slices = _slices(E.rows)
        upper = any(i < j for i, j in E.entries)
        ordered = sorted(E.entries.items(), key=lambda item: item[0][1], reverse=upper)
        self._moves = [(slices[i], slices[j], block) for (i, j), block in ordered]

    @property
    def T(self) -> Recursion:
        return Recursion(self.E.T)

    @property
    def inverse(self) -> Operator:
        return I - self.E

    def _apply(self, x: Array) -> Array:
        y = x.copy()
        for r, c, block in self._moves:
            y[r] += block @ y[c]
        return y


class Product(Operator):
    def __init__(self, factors: Sequence[Operator]) -> None:
        self.factors = tuple(factors)
        self.rows, self.columns = factors[0].rows, factors[-1].columns

    @property
    def T(self) -> Operator:
        return Product([factor.T for factor in reversed(self.factors)])

    @property
    def inverse(self) -> Operator:
        return Product([factor.inverse for factor in reversed(self.factors)])

    def _apply(self, x: Array) -> Array:
        for factor in reversed(self.factors):
            x = factor._apply(x)
        return x


class Sum(Operator):
    def __init__(self, terms: Sequence[Operator]) -> None:
        self.terms = tuple(terms)
        self.rows, self.columns = terms[0].rows, terms[0].columns

    @property
    def T(self) -> Operator:
        return Sum([term.T for term in self.terms])

    @property
    def inverse(self) -> Operator:
        """(2)"""
        blocks = [term for term in self.terms if isinstance(term, Blocks)]
        others = [term for term in self.terms if not isinstance(term, Blocks)]
        parts = _around_recursion(others[0]) if len(blocks) == len(others) == 1 else None
        if parts is None:
            return super().inverse
        A, E, B = parts
        C = blocks[0].inverse
        inner = E - B @ C @ A
        if not (isinstance(C, Blocks) and isinstance(inner, Blocks) and _triangular(inner.entries)):
            return super().inverse
        return C - C @ A @ Recursion(inner) @ B @ C

    def _apply(self, x: Array) -> Array:
        return sum((term._apply(x) for term in self.terms[1:]), self.terms[0]._apply(x))

    def _scaled(self, factor: float) -> Operator:
        return Sum([factor * term for term in self.terms])


def _product(a: Operator, b: Operator) -> Operator:
    """Factors in a row; two of few blocks are multiplied out as long as they stay few."""
    if a.columns != b.rows:
        raise ArgumentError(f"operators of shapes {a.shape} and {b.shape} do not compose")
    left = list(a.factors) if isinstance(a, Product) else [a]
    right = list(b.factors) if isinstance(b, Product) else [b]
    last, first = left[-1], right[0]
    if isinstance(last, Blocks) and isinstance(first, Blocks):
        by_row: dict[int, list[int]] = {}
        for i, j in first.entries:
            by_row.setdefault(i, []).append(j)
        pairs = [(i, k, j) for i, k in last.entries for j in by_row.get(k, ())]
        if len(pairs) <= len(last.entries) + len(first.entries):
            entries: dict[tuple[int, int], Array] = {}
            for i, k, j in pairs:
                block = last.entries[i, k] @ first.entries[k, j]
                entries[i, j] = entries[i, j] + block if (i, j) in entries else block
            left, right = left[:-1], [Blocks(last.rows, first.columns, entries), *right[1:]]
    factors = [*left, *right]
    return factors[0] if len(factors) == 1 else Product(factors)


def _sum(a: Operator, b: Operator) -> Operator:
    if (a.rows, a.columns) != (b.rows, b.columns):
        raise ArgumentError(f"operators of shapes {a.shape} and {b.shape} do not add")
    terms: list[Operator] = []
    entries: dict[tuple[int, int], Array] = {}
    few = False
    for term in (t for x in (a, b) for t in (x.terms if isinstance(x, Sum) else (x,))):
        if not isinstance(term, Blocks):
            terms.append(term)
            continue
        few = True
        for key, block in term.entries.items():
            entries[key] = entries[key] + block if key in entries else block
    if few:
        terms.insert(0, Blocks(a.rows, a.columns, entries))
    return terms[0] if len(terms) == 1 else Sum(terms)


def _around_recursion(term: Operator) -> tuple[Blocks, Blocks, Blocks] | None:
    """A, E and B of A (I - E)^-1 B."""
    factors = list(term.factors) if isinstance(term, Product) else [term]
    if isinstance(factors[0], Recursion):
        factors.insert(0, identity(factors[0].rows))
    if isinstance(factors[-1], Recursion):
        factors.append(identity(factors[-1].rows))
    if len(factors) != 3:
        return None
    A, R, B = factors
    return (
        (A, R.E, B) if isinstance(A, Blocks) and isinstance(R, Recursion) and isinstance(B, Blocks) else None
    )


def identity(sizes: Sizes) -> Blocks:
    return diagonal([np.eye(size) for size in sizes])


def diagonal(blocks: Sequence[Array]) -> Blocks:
    rows, columns = (tuple(block.shape[axis] for block in blocks) for axis in (0, 1))
    return Blocks(rows, columns, {(k, k): block for k, block in enumerate(blocks)})


def _triangular(entries: Mapping[tuple[int, int], Array]) -> bool:
    return all(i < j for i, j in entries) or all(i > j for i, j in entries)


def _slices(sizes: Sizes) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
