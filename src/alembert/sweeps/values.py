"""The values that steps leave in records, seen as lists of scalars.

A value is an `SX`, a spatial type, a factor or a tuple of such. It can be taken apart into its matrices and put
together again with others in their place.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.sweeps.node import map_matrices


def outline(value: Any) -> Any:
    """What two values must have in common for one to stand for the other."""
    if isinstance(value, ca.SX):
        return value.shape
    if isinstance(value, tuple | list):
        return type(value), tuple(outline(x) for x in value)
    if value is None or isinstance(value, int | float | str):
        return value
    return type(value), tuple((name, outline(x)) for name, x in vars(value).items())


def matrices(value: Any) -> list[ca.SX]:
    """Every `SX` in a value, in order."""
    found: list[ca.SX] = []

    def see(m: ca.SX) -> ca.SX:
        found.append(m)
        return m

    map_matrices(value, see)
    return found


def nonzeros(m: ca.SX) -> list[ca.SX]:
    found: list[Any] = m.nonzeros()
    return found


def elements(m: ca.SX) -> list[ca.SX]:
    """All entries by columns."""
    found: list[Any] = m.elements()
    return found


class Dense:
    """A value all of whose entries are symbols; symmetric matrices have those of their lower triangles."""

    def __init__(self, name: str, example: Any, *, symmetric: bool = True) -> None:
        self._shapes: list[tuple[int, int]] = []
        self._symmetric: list[bool] = []
        self.symbols: list[ca.SX] = []
        self.others: list[ca.SX] = []
        """as many again, for what siblings contribute"""

        def fill(m: ca.SX) -> ca.SX:
            mirrored = symmetric and _is_symmetric(m)
            self._shapes.append(m.shape)
            self._symmetric.append(mirrored)
            full = ca.SX.sym(name, m.shape[0], m.shape[1])
            if mirrored:
                full = ca.tril2symm(ca.tril(full))
            self.symbols += _entries(full, mirrored)
            return full

        self.value = map_matrices(example, fill)
        self.others = nonzeros(ca.SX.sym(f"{name}_others", len(self.symbols)))

    def holds(self, value: Any) -> bool:
        """Whether the value's matrices are symmetric where these are."""
        return all(
            not mirrored or _is_symmetric(m)
            for m, mirrored in zip(matrices(value), self._symmetric, strict=True)
        )

    def entries(self, value: Any) -> list[ca.SX]:
        found: list[ca.SX] = []
        for m, shape, mirrored in zip(matrices(value), self._shapes, self._symmetric, strict=True):
            if m.shape != shape:
                raise UnsupportedError(f"a field is {m.shape} in one kind of node and {shape} in another")
            found += _entries(m, mirrored)
        return found


def _entries(m: ca.SX, mirrored: bool) -> list[ca.SX]:
    """All entries by columns, of the lower triangle only where the matrix is mirrored."""
    entries = elements(m)
    if not mirrored:
        return entries
    rows = m.shape[0]
    return [entries[i + rows * j] for j in range(rows) for i in range(j, rows)]


def _is_symmetric(m: ca.SX) -> bool:
    rows, columns = m.shape
    if rows != columns or rows == 1:
        return False
    entries = elements(m)
    return all(
        ca.is_equal(entries[i + rows * j], entries[j + rows * i], 4) for j in range(rows) for i in range(j)
    )
