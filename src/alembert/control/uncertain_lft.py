"""Matrices and systems that depend on named parameters, as linear fractional transformations.

A matrix whose entries are rational functions of parameters p_k = mean_k + radius_k d_k, |d_k| <= 1, is written

    F(d) = M22 + M21 Delta (1 - M11 Delta)^-1 M12,        Delta = diag(d_1 1, d_2 1, ...)                            (1)

Sums, products, inverses and stacks of (1) are of the form (1) again; each use of a parameter adds copies of it to
Delta. Copies that do nothing are taken out: seen from one parameter, (1) is a linear system in 1/d_k whose inputs and
outputs are all other signals, and what is not reached or not seen in it goes (Lambrechts and others 1993; Belcastro
1989 for the multilinear case). How many copies are needed at least is known from the function itself: the rank of its
Loewner matrix in one parameter, the others fixed (`least_copies`).

Besides real parameters Delta may have elements of other kinds, each of size one after scaling:

    complex     a complex number, or what it stands for: dynamics with one input and output that are not modelled
    full        such dynamics with several inputs and outputs
    sector      a nonlinearity between two straight lines through zero, low u <= f(u) <= high u, that may change with time;
                a saturation is one, between 1 and limit/reach for arguments up to `reach`

A number may be moved past matrices, the others not: each use of a full or sector element is a block of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import check_known
from alembert.control import arguments
from alembert.control.mu_bounds import DeltaBlock
from alembert.control.reachability import staircase
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Uncertain:
    """(1): a matrix with `copies` of elements: parameters between their `ranges`, or others by their `kinds`."""

    M11: Array
    M12: Array
    M21: Array
    M22: Array
    copies: Mapping[str, int]
    ranges: Mapping[str, tuple[float, float]]
    kinds: Mapping[str, str] = field(default_factory=dict)
    """"complex", "full" or "sector"; those that are not here are real parameters"""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """of full elements"""

    if TYPE_CHECKING:

        def __init__(
            self,
            M11: Any,
            M12: Any,
            M21: Any,
            M22: Any,
            copies: Mapping[str, int],
            ranges: Mapping[str, Any],
            kinds: Mapping[str, str] = ...,
            sizes: Mapping[str, int] = ...,
        ) -> None: ...

    @property
    def shape(self) -> tuple[int, int]:
        return self.M22.shape[0], self.M22.shape[1]

    @property
    def blocks(self) -> list[DeltaBlock]:
        """Delta as `mu` takes it."""
        found = []
        for name, n in self.copies.items():
            kind, size = self.kinds.get(name, "real"), self.sizes.get(name, 1)
            if kind in ("real", "complex"):
                found += [DeltaBlock(kind, n, name=name)] if n else []
            else:
                found += [DeltaBlock(kind, size, name=name)] * (n // size)
        return found

    def at(self, **values: Any) -> Array:
        """The matrix for some values; what is left out has its mean.

        Full elements take a matrix, sectors the slope of a straight line.
        """
        for name in values:
            check_known("at: there is no parameter", name, self.copies)
        parts = []
        for name, n in self.copies.items():
            low, high = self.ranges[name]
            size = self.sizes.get(name, 1)
            given = np.asarray(values.get(name, (low + high) / 2))
            if given.dtype.kind not in "fiuc" or not np.isfinite(given).all():
                raise ArgumentError(f"at: {name} is {values[name]!r}, expected finite numbers")
            d = (given - (low + high) / 2) / ((high - low) / 2)
            if d.shape not in ((), (size, size)):
                raise ArgumentError(
                    f"at: {name!r} has shape {d.shape}, expected a number or ({size}, {size})"
                )
            parts += [d * np.eye(size) if d.ndim == 0 else d] * (n // size)
        Delta = scipy.linalg.block_diag(*parts) if parts else np.zeros((0, 0))
        inner = np.eye(len(Delta)) - self.M11 @ Delta
        if len(Delta) and np.linalg.cond(inner) > 1e14:
            raise NumericalError(f"at: the matrix is infinite at {values}")
        return np.asarray(self.M22 + self.M21 @ Delta @ np.linalg.solve(inner, self.M12))

    def with_parts(
        self, M11: Array, M12: Array, M21: Array, M22: Array, copies: Mapping[str, int] | None = None
    ) -> Uncertain:
        """Another matrix of the same elements."""
        copies = self.copies if copies is None else copies
        return Uncertain(M11, M12, M21, M22, copies, self.ranges, self.kinds, self.sizes)

    def __add__(self, other: Any) -> Uncertain:
        if _is_system(other):
            return NotImplemented
        a, b = self, uncertain(other)
        if a.shape != b.shape:
            raise ArgumentError(f"Uncertain: shapes {a.shape} and {b.shape} do not add")
        return _beside((a, b), np.hstack([np.eye(a.shape[0])] * 2), np.vstack([np.eye(a.shape[1])] * 2))

    def __mul__(self, other: Any) -> Uncertain:
        if _is_system(other):
            return NotImplemented
        b = uncertain(other)
        if (self.shape == (1, 1)) != (b.shape == (1, 1)):  # a number times a matrix
            return _spread(self, b.shape[0]) @ b if self.shape == (1, 1) else self @ _spread(b, self.shape[1])
        return self @ b

    def __matmul__(self, other: Any) -> Uncertain:
        if _is_system(other):
            return NotImplemented
        a, b = self, uncertain(other)
        if a.shape[1] != b.shape[0]:
            raise ArgumentError(f"Uncertain: shapes {a.shape} and {b.shape} do not multiply")
        na, nb = len(a.M11), len(b.M11)
        M11 = np.block([[a.M11, a.M12 @ b.M21], [np.zeros((nb, na)), b.M11]])
        return merged(
            M11, np.vstack([a.M12 @ b.M22, b.M12]), np.hstack([a.M21, a.M22 @ b.M21]), a.M22 @ b.M22, a, b
        )

    def __repr__(self) -> str:
        listed = ", ".join(f"{name} x {n}" for name, n in self.copies.items() if n)
        return f"<Uncertain: shape {self.shape}, {listed or 'no elements'}>"

    __array_ufunc__ = None
    is_uncertain = True

    def __radd__(self, other: Any) -> Uncertain:
        return self + other

    def __rmul__(self, other: Any) -> Uncertain:
        return uncertain(other) * self

    def __rmatmul__(self, other: Any) -> Uncertain:
        return uncertain(other) @ self

    def __neg__(self) -> Uncertain:
        return self.with_parts(self.M11, self.M12, -self.M21, -self.M22)

    def __sub__(self, other: Any) -> Uncertain:
        return self + -uncertain(other)

    def __rsub__(self, other: Any) -> Uncertain:
        return -self + other

    def __truediv__(self, other: Any) -> Uncertain:
        return self * uncertain(other).inverse()

    def __rtruediv__(self, other: Any) -> Uncertain:
        return uncertain(other) * self.inverse()

    def __pow__(self, power: int) -> Uncertain:
        if power != int(power) or not self.shape[0] == self.shape[1]:
            raise ArgumentError(
                f"Uncertain: shape {self.shape} to the power {power!r}, expected a square matrix and a whole number"
            )
        base = self if power > 0 else self.inverse()
        found = base if power else uncertain(np.eye(self.shape[0]))
        for _ in range(abs(int(power)) - 1):
            found = found @ base
        return found

    def inverse(self) -> Uncertain:
        """Of a square matrix that is regular at the means."""
        if self.shape[0] != self.shape[1] or np.linalg.cond(self.M22) > 1e14:
            raise ArgumentError(
                "inverse: the matrix is not square, or singular at the means of the parameters"
            )
        E = np.linalg.inv(self.M22)
        return self.with_parts(self.M11 - self.M12 @ E @ self.M21, self.M12 @ E, -E @ self.M21, E).reduced()

    def reduced(self, *, tolerance: float = 1e-10) -> Uncertain:
        """Without copies that do nothing; the same function."""
        found = self
        while True:
            before = sum(found.copies.values())
            for name in found.copies:
                movable = found.kinds.get(name, "real") in ("real", "complex")
                found = _without_idle(found, name, tolerance) if movable else _without_unused(found, name)
            if sum(found.copies.values()) == before:
                return found

    def sampled(self, count: int, *, seed: int = 0) -> list[dict[str, float]]:
        """Values of the parameters: the corners first, as far as `count` goes, then random ones. Other elements: none."""
        names = [name for name, n in self.copies.items() if n and name not in self.kinds]
        rng = np.random.default_rng(seed)
        corners = min(2 ** len(names), count) if len(names) < 20 else 0
        found = []
        for k in range(count):
            share = [(k >> i) & 1 if k < corners else rng.uniform() for i in range(len(names))]
            found.append(
                {
                    name: self.ranges[name][0] * (1 - s) + self.ranges[name][1] * s
                    for name, s in zip(names, share, strict=True)
                }
            )
        return found


def parameter(name: str, low: float, high: float) -> Uncertain:
    """A number between `low` and `high`, by name."""
    if not -np.inf < low < high < np.inf:
        raise ArgumentError(f"parameter: {name!r} is between {low!r} and {high!r}, expected a range")
    one = np.ones((1, 1))
    return Uncertain(
        0 * one, one, (high - low) / 2 * one, (high + low) / 2 * one, {name: 1}, {name: (low, high)}
    )


def unmodelled(name: str, *, radius: float = 1.0, center: float = 0.0, size: int = 1) -> Uncertain:
    """Stable dynamics that are not known, of a gain up to `radius` at all frequencies, around `center` times one.

    Multiply it with a weight (a `StateSpace`, see `UncertainSystem`) where the bound depends on frequency.
    """
    if not (np.isfinite([radius, center]).all() and radius > 0) or size != int(size) or size < 1:
        raise ArgumentError(
            f"unmodelled: {name!r} has radius {radius!r}, center {center!r} and size {size!r}, expected a positive radius, "
            "a number, and a whole number from 1"
        )
    one = np.eye(int(size))
    kind = "complex" if size == 1 else "full"
    limits = (center - radius, center + radius)
    return Uncertain(
        0 * one,
        one,
        radius * one,
        center * one,
        {name: int(size)},
        {name: limits},
        {name: kind},
        {name: int(size)},
    )


def sector(name: str, low: float, high: float) -> Uncertain:
    """A nonlinearity f(u, t) between low u and high u."""
    found = parameter(name, low, high)
    return Uncertain(found.M11, found.M12, found.M21, found.M22, found.copies, found.ranges, {name: "sector"})


def saturation(name: str, limit: float = 1.0, *, reach: float = np.inf) -> Uncertain:
    """u cut off at +-`limit`, for arguments up to `reach`: the sector from limit/reach to 1.

    What is proven with it holds as long as arguments stay below `reach`; without, for all.
    """
    if not (limit > 0 and reach > limit):
        raise ArgumentError(
            f"saturation: {name!r} has limit {limit!r} and reach {reach!r}, expected 0 < limit < reach"
        )
    return sector(name, limit / reach, 1.0)


def uncertain(value: Any, *more: Any) -> Uncertain:
    """A matrix of numbers and `Uncertain`s (a list of rows), or one of them. Elements are made by `parameter`, `unmodelled`,
    `sector` and `saturation`."""
    if more or isinstance(value, str):
        raise ArgumentError(
            f"uncertain: {', '.join(repr(x) for x in (value, *more))} came, expected one matrix of numbers and elements; "
            "parameter('k', 1, 3) is a number between 1 and 3 with the name k"
        )
    if isinstance(value, Uncertain):
        return value
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, (list, tuple)) and any(isinstance(x, Uncertain) for x in value):
        raise ArgumentError(
            "uncertain: a list of elements, expected a list of rows, such as [[a, b], [0, 1]]"
        )
    if isinstance(value, (list, tuple)) and any(
        isinstance(x, Uncertain) for row in value if isinstance(row, (list, tuple)) for x in row
    ):
        return stacked([stacked([uncertain(x) for x in row], 1) for row in value], 0).reduced()
    M = arguments.matrix("uncertain", "a matrix", value)
    return Uncertain(np.zeros((0, 0)), np.zeros((0, M.shape[1])), np.zeros((M.shape[0], 0)), M, {}, {})


def least_copies(
    function: Callable[..., Any], ranges: Mapping[str, tuple[float, float]], *, seed: int = 0
) -> dict[str, int]:
    """The degree of a matrix function in each of its parameters: no transformation (1) has fewer copies.

    The rank of the Loewner matrix (F(a_i) - F(b_j)) / (a_i - b_j) over points a, b of one parameter, for random others.
    """
    rng = np.random.default_rng(seed)
    found = {}
    for name, (low, high) in ranges.items():
        others = {k: float(rng.uniform(*limits)) for k, limits in ranges.items() if k != name}
        points = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(12) + 0.5) / 12)
        a, b = points[::2], points[1::2]
        A, B = (
            [np.atleast_2d(np.asarray(function(**{**others, name: float(x)}), dtype=float)) for x in points]
            for points in (a, b)
        )
        L = np.block(
            [[(Fa - Fb) / (x - y) for Fb, y in zip(B, b, strict=True)] for Fa, x in zip(A, a, strict=True)]
        )
        s = np.linalg.svd(L, compute_uv=False)
        found[name] = int(np.count_nonzero(s > 1e-9 * max(s[0], 1e-300))) if s[0] > 0 else 0
    return found


# --- pieces -----------------------------------------------------------------------------------------------------


def merged(M11: Array, M12: Array, M21: Array, M22: Array, *parts: Uncertain) -> Uncertain:
    """Copies of one parameter next to each other, and no more than needed."""
    for a, b in itertools.combinations(parts, 2):
        for name in a.ranges.keys() & b.ranges.keys():
            if a.ranges[name] != b.ranges[name]:
                raise ArgumentError(
                    f"Uncertain: {name!r} has the ranges {a.ranges[name]} and {b.ranges[name]}"
                )
            kinds = [(x.kinds.get(name, "real"), x.sizes.get(name, 1)) for x in (a, b)]
            if kinds[0] != kinds[1]:
                raise ArgumentError(f"Uncertain: {name!r} is of kind {kinds[0][0]} and of kind {kinds[1][0]}")
    owners = [name for part in parts for name, n in part.copies.items() for _ in range(n)]
    names = list(dict.fromkeys(owners))
    order = [k for name in names for k, owner in enumerate(owners) if owner == name]
    made = Uncertain(
        M11[np.ix_(order, order)],
        M12[order],
        M21[:, order],
        M22,
        {name: owners.count(name) for name in names},
        *(
            {k: x for part in parts for k, x in getattr(part, of).items()}
            for of in ("ranges", "kinds", "sizes")
        ),
    )
    return made.reduced()


def _first(U: Uncertain, name: str) -> int:
    """Where the copies of an element begin."""
    return sum(U.copies[other] for other in list(U.copies)[: list(U.copies).index(name)])


def _without_unused(U: Uncertain, name: str) -> Uncertain:
    """Without uses of an element that nothing goes into, or whose output goes nowhere."""
    first = _first(U, name)
    size, drop = U.sizes.get(name, 1), []
    small = 1e-13 * max(float(np.abs(X).max(initial=0.0)) for X in (U.M11, U.M12, U.M21))
    for start in range(first, first + U.copies[name], size):
        own = slice(start, start + size)
        into = np.hstack([U.M11[own], U.M12[own]])
        out = np.vstack([U.M11[:, own], U.M21[:, own]])
        if np.abs(into).max(initial=0.0) <= small or np.abs(out).max(initial=0.0) <= small:
            drop += list(range(start, start + size))
    keep = np.setdiff1d(np.arange(len(U.M11)), drop)
    copies = {**U.copies, name: U.copies[name] - len(drop)}
    return U.with_parts(U.M11[np.ix_(keep, keep)], U.M12[keep], U.M21[:, keep], U.M22, copies)


def _without_idle(U: Uncertain, name: str, tolerance: float) -> Uncertain:
    """The copies of one parameter that other signals reach, and that reach them."""
    first = _first(U, name)
    for side in ("in", "out"):
        n = U.copies[name]
        own = np.arange(first, first + n)
        rest = np.setdiff1d(np.arange(len(U.M11)), own)
        A = U.M11[np.ix_(own, own)]
        into = np.hstack([U.M11[np.ix_(own, rest)], U.M12[own]])
        out = np.vstack([U.M11[np.ix_(rest, own)], U.M21[:, own]])
        small = 1e-13 * max(float(np.abs(X).max(initial=0.0)) for X in (U.M11, U.M12, U.M21))
        into, out = (np.where(np.abs(X) > small, X, 0.0) for X in (into, out))  # what cancels leaves rounding
        pair = (A, into) if side == "in" else (A.T, out.T)
        reached = staircase(*pair, tuple(str(k) for k in own), tolerance)
        if reached:
            continue
        V = scipy.linalg.null_space(reached.lost) if reached.rank else np.zeros((n, 0))
        T = scipy.linalg.block_diag(np.eye(first), V, np.eye(len(U.M11) - first - n))
        copies = {**U.copies, name: V.shape[1]}
        U = U.with_parts(T.T @ U.M11 @ T, T.T @ U.M12, U.M21 @ T, U.M22, copies)
    return U


def _is_system(value: Any) -> bool:
    """Systems take matrices in, not the other way round."""
    return hasattr(value, "order") and hasattr(value, "dt")


def _spread(a: Uncertain, n: int) -> Uncertain:
    """A number times the unit matrix."""
    return (
        stacked([stacked([a if i == j else uncertain(0.0) for j in range(n)], 1) for i in range(n)], 0)
        if n > 1
        else a
    )


def stacked(parts: Sequence[Uncertain], axis: int) -> Uncertain:
    """Side by side (axis 1) or below each other (axis 0)."""
    found = parts[0]
    for b in parts[1:]:
        if found.shape[1 - axis] != b.shape[1 - axis]:
            raise ArgumentError(f"uncertain: parts of shapes {found.shape} and {b.shape} do not fit")
        both = [found.shape[k] + b.shape[k] for k in (0, 1)]
        common = [np.eye(found.shape[1 - axis])] * 2
        L, R = (np.hstack(common), np.eye(both[1])) if axis else (np.eye(both[0]), np.vstack(common))
        found = _beside((found, b), L, R)
    return found


def _beside(parts: Sequence[Uncertain], L: Array, R: Array) -> Uncertain:
    """L diag(parts) R"""
    M11, M12, M21, M22 = (
        scipy.linalg.block_diag(*(getattr(part, name) for part in parts))
        for name in ("M11", "M12", "M21", "M22")
    )
    return merged(M11, M12 @ R, L @ M21, L @ M22 @ R, *parts)
