"""Bounds of the structured singular value from above, for many matrices at once.

For Hermitian D > 0 that commute with Delta, and Hermitian G at the real blocks (Fan, Tits, Doyle 1991),

    M^H D M + j (G M - M^H G) < b^2 D       gives      mu(M) < b                                                      (1)

which is convex in (D, G) for every b. D alone is first balanced by Osborne's method; then the least b comes by the
method of centres (Boyd, El Ghaoui 1993): at a level b the point that maximises

    log det F + log det D,      F = b^2 D - M^H D M - j (G M - M^H G)                                                 (2)

is found by Newton's method, which also tells how the centre moves with the level: along that tangent the level goes down
nearly as far as F stays positive, and so on. The path of centres becomes straight towards its end, so that each centre is
nearer to it by one digit. With F = L L^H and unknowns y, slope and curvature of (2) are traces of X_k = L^-1 (dF/dy_k) L^-H
and of their products, and along a step s the sum of log(1 + t lambda), lambda the eigenvalues of sum_k s_k X_k: the best
length t is found exactly, for the price of some logarithms.

Matrices of several frequencies are solved side by side. Each goes on until it has converged, or until its bound is below a
level that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from alembert.control.mu_bounds import DeltaBlock

Array = np.ndarray
_AT_ONCE = 2_000_000  # complex numbers of the slopes of F
_CENTRED = 0.3  # decrement of Newton's method at which a point counts as the centre
_MODEST = 0.01  # times half the square of G is taken off (2), which else may grow without end
_AHEAD = 0.95  # of the way along the tangent on which F stays positive
_LOWERED = 0.03  # of the way between a level and what was reached there, where the tangent leads astray


@dataclass(frozen=True, eq=False)
class UpperBound:
    """The level b of (1), and the scalings that prove it: D over the outputs, D over the inputs, G (inputs x outputs)."""

    level: float
    D_left: Array
    D_right: Array
    G: Array


class Scalings:
    """The linear space of D and G of a structure; the mean of D is one."""

    def __init__(self, blocks: Sequence[DeltaBlock]) -> None:
        self.blocks = tuple(blocks)
        rows = np.cumsum([0, *(b.rows for b in blocks)])
        columns = np.cumsum([0, *(b.columns for b in blocks)])
        self.w = [slice(a, b) for a, b in pairwise(rows)]
        self.z = [slice(a, b) for a, b in pairwise(columns)]
        self.m, self.p = int(rows[-1]), int(columns[-1])
        over, under, cross = [], [], []
        own: tuple[list[tuple[int, int, complex]], list[tuple[int, int, complex]]] = ([], [])
        for block, w, z in zip(blocks, self.w, self.z, strict=True):
            numbers = block.kind in ("real", "complex")
            for i, j, E in _hermitian(block.rows) if numbers else [(0, 0, np.eye(block.rows))]:
                L, R = np.zeros((self.p, self.p), complex), np.zeros((self.m, self.m), complex)
                L[z, z], R[w, w] = (E if numbers else np.eye(block.columns)), E
                over.append(L)
                under.append(R)
                own[0].append((w.start + i, w.start + j, E[i, j]))
                if block.kind == "real":
                    X = np.zeros((self.m, self.p), complex)
                    X[w, z] = E
                    cross.append(X)
                    own[1].append((w.start + i, z.start + j, E[i, j]))
        # the first unit of D follows from the mean, and goes into the others
        weight = np.array([np.trace(R).real for R in under])
        share = (weight / weight[0])[1:, None, None]
        self.left = np.array(over)[1:] - share * over[0]
        self.right = np.array(under)[1:] - share * under[0]
        self.cross = np.array(cross).reshape(-1, self.m, self.p)
        self.unknowns = len(self.left) + len(self.cross)
        self._own = own[0][1:], own[1]

    def osborne(self, M: Array) -> Array:
        """One number a block, squared: the D that balances rows and columns of blocks; for each of many matrices."""
        size = np.array([[np.sum(np.abs(M[..., z, w]) ** 2, axis=(-2, -1)) for w in self.w] for z in self.z])
        size = np.moveaxis(size, (0, 1), (-2, -1))
        n = len(self.w)
        d = np.ones(size.shape[:-1])
        off = size * (1 - np.eye(n))
        for _ in range(60):
            before = d.copy()
            for k in range(n):
                row = np.sum(off[..., k, :] * (d[..., k, None] / d) ** 2, axis=-1)
                column = np.sum(off[..., :, k] * (d / d[..., k, None]) ** 2, axis=-1)
                both = (row > 0) & (column > 0)
                ratio = np.where(both, column, 1.0) / np.where(both, row, 1.0)
                alone = np.where(row > 0, 0.1, np.where(column > 0, 10.0, 1.0))
                d[..., k] *= np.where(both, ratio**0.25, alone)
            d = np.clip(d / np.exp(np.mean(np.log(d), axis=-1, keepdims=True)), 1e-4, 1e4)
            if np.all(np.abs(d - before).max(axis=-1) <= 1e-6 * d.max(axis=-1)):
                break
        return d**2

    def spread(self, d: Array) -> tuple[Array, Array]:
        """(D over outputs, D over inputs), diagonals."""
        over, under = ([getattr(b, name) for b in self.blocks] for name in ("columns", "rows"))
        return np.repeat(d, over, axis=-1), np.repeat(d, under, axis=-1)

    def least(
        self, M: Array, *, tolerance: float = 1e-9, below: float | None = None, near: UpperBound | None = None
    ) -> UpperBound:
        """(1) with the least b; with `below`, a centre (2) of that level as soon as there is one. `near`: scalings of a
        matrix like it, to begin with where they are better than Osborne's. Several matrices, (number, outputs, inputs), get
        the same scalings, and a level that holds for all."""
        return self._least(M[None] if M.ndim == 3 else M[None, None], tolerance, below, near)[0]

    def least_of(
        self, M: Array, *, tolerance: float = 1e-9, below: float | Array | None = None
    ) -> list[UpperBound]:
        """`least` of each of many matrices, (number, outputs, inputs); `below` is one level, or one for each."""
        return self._least(M[:, None], tolerance, below, None) if len(M) else []

    def _least(
        self, M: Array, tolerance: float, below: float | Array | None, near: UpperBound | None
    ) -> list[UpperBound]:
        """M is (number, matrices with the same scalings, outputs, inputs)."""
        balanced = np.sqrt(np.mean(np.abs(M) ** 2, axis=1)) if M.shape[1] > 1 else M[:, 0]
        over, under = (np.sqrt(x) for x in self.spread(self.osborne(balanced)))
        N = over[:, None, :, None] * M / under[:, None, None, :]
        sigma = np.linalg.norm(N, 2, axis=(2, 3)).max(axis=1)
        scale = np.where(sigma > 0, sigma, 1.0)
        N = N / scale[:, None, None, None]
        wanted = np.full(len(M), -np.inf if below is None else below) / scale
        wanted = np.where(wanted > 0, wanted**2, -np.inf)
        start = np.zeros((len(M), self.unknowns))
        if near is not None:
            for k in range(len(M)):
                start[k] = self._coordinates(near, over[k], under[k], scale[k])
        chunk = max(1, _AT_ONCE // max(1, self.unknowns * M.shape[1] * self.m**2))
        level, y = np.zeros(len(M)), np.zeros_like(start)
        for k in range(0, len(M), chunk):
            part = slice(k, k + chunk)
            level[part], y[part] = _Centres(self, N[part]).solve(tolerance, wanted[part], start[part])
        found = []
        for k in range(len(M)):
            left, right, G = self.matrices(y[k])
            found.append(
                UpperBound(
                    float(np.sqrt(max(level[k], 0.0)) * scale[k]),
                    over[k][:, None] * left * over[k],
                    under[k][:, None] * right * under[k],
                    under[k][:, None] * G * over[k] * scale[k],
                )
            )
        return found

    def matrices(self, y: Array) -> tuple[Array, Array, Array]:
        """D over outputs, D over inputs, G"""
        d, g = y[: len(self.left)], y[len(self.left) :]
        left, right = (np.tensordot(d, part, axes=1) for part in (self.left, self.right))
        return np.eye(self.p) + left, np.eye(self.m) + right, np.tensordot(g, self.cross, axes=1)

    def _coordinates(self, near: UpperBound, over: Array, under: Array, scale: float) -> Array:
        right = near.D_right / under[:, None] / under
        mean = np.trace(right).real / self.m
        G = near.G / under[:, None] / over / scale
        return np.array(
            [
                (X[i, j] / unit).real
                for X, entries in ((right / mean - np.eye(self.m), self._own[0]), (G / mean, self._own[1]))
                for i, j, unit in entries
            ]
        )


class _Centres:
    """The method of centres for matrices of norm one; those of a group share their scalings."""

    def __init__(self, scalings: Scalings, M: Array) -> None:
        adjoint = M.conj().swapaxes(2, 3)
        f, q, _, m = M.shape
        self.m, self.kD = m, len(scalings.left)
        self.A = np.empty((f, q, scalings.unknowns, m, m), complex)
        """slopes of M^H D M + j (G M - M^H G)"""
        self.A[:, :, : self.kD] = adjoint[:, :, None] @ scalings.left @ M[:, :, None]
        half = 1j * (scalings.cross @ M[:, :, None])
        self.A[:, :, self.kD :] = half + half.conj().swapaxes(3, 4)
        self.D = scalings.right
        self.A0 = adjoint @ M

    def solve(self, tolerance: float, below: Array, start: Array) -> tuple[Array, Array]:
        """The levels b^2, and the unknowns; of those that get below `below` the centre of that level."""
        f, unknowns = start.shape
        everyone = np.arange(f)
        y = np.zeros_like(start)
        best = self._reached(everyone, y)
        if not unknowns:
            return best, y
        if np.any(start):
            given = self._reached(everyone, start)
            y = np.where((given < best)[:, None], start, y)
            best = np.minimum(best, given)
        kept = y.copy()
        level = best * 1.3 + 1e-12
        going = best > 1e-14
        for _ in range(80):
            there = np.flatnonzero(going & (best < below))
            if len(there):
                y[there] = kept[there] = self._centre(there, kept[there], below[there])[0]
                best[there] = np.minimum(self._reached(there, y[there]), below[there])
                going[there] = False
            at = np.flatnonzero(going)
            if not len(at):
                break
            centre, slope = self._centre(at, y[at], level[at])
            way = self._way(at, centre, slope, level[at])
            trial = centre - (_AHEAD * way)[:, None] * slope
            reached, before = self._reached(at, trial), self._reached(at, centre)
            astray = ~(reached < before)
            y[at], reached = np.where(astray[:, None], centre, trial), np.where(astray, before, reached)
            better = reached <= best[at]
            kept[at[better]], best[at[better]] = y[at[better]], reached[better]
            # where D has become singular to rounding no lower level can be told
            going[at] = np.isfinite(reached) & (way > tolerance * best[at]) & (best[at] > 1e-14)
            ahead, gap = (
                level[at] - _AHEAD * way,
                np.maximum(level[at] - reached, 1e-3 * tolerance * best[at]),
            )
            level[at] = np.where(reached < ahead, ahead, reached + _LOWERED * gap)
        return best, kept

    def _way(self, which: Array, y: Array, slope: Array, level: Array) -> Array:
        """How far the level can fall, the centre moving straight on, until F or D are singular."""
        A, D = self._at(which, y)
        moved, turned = self._at(which, slope)
        moved, turned = moved - self.A0[which], turned - np.eye(self.m)
        high = level[:, None, None, None]
        F, fall = high * D[:, None] - A, D[:, None] + high * turned[:, None] - moved
        T, good = inverse_root(F.reshape(-1, self.m, self.m))
        T = T.reshape(F.shape)
        U, regular = inverse_root(D)
        rate = np.linalg.eigvalsh(T @ fall @ T.conj().swapaxes(2, 3)).max(axis=(1, 2))
        rate = np.maximum(rate, np.linalg.eigvalsh(U @ turned @ U.conj().swapaxes(1, 2)).max(axis=1))
        there = good.reshape(len(which), -1).all(axis=1) & regular & (rate > 0)
        return np.where(there, 1 / np.where(there, rate, 1.0), 0.0)

    def _at(self, which: Array, y: Array) -> tuple[Array, Array]:
        A = self.A if len(which) == len(self.A) else self.A[which]
        moved = _combined(y[:, None], A.reshape(*A.shape[:3], self.m**2))
        D = np.eye(self.m) + np.tensordot(y[:, : self.kD], self.D, axes=1)
        return self.A0[which] + moved, D

    def _reached(self, which: Array, y: Array) -> Array:
        """The level at which (1) just fails; infinite where D is singular."""
        A, D = self._at(which, y)
        rounding = 4 * self.m * np.finfo(float).eps * np.abs(A).max(axis=(1, 2, 3))  # G may be large
        T, good = inverse_root(D)
        T, found = T[good, None], np.full(len(which), np.inf)
        values = np.linalg.eigvalsh(T @ A[good] @ T.conj().swapaxes(2, 3))
        found[good] = values.max(axis=(1, 2)) + rounding[good]
        return found

    def _centre(self, which: Array, y: Array, level: Array) -> tuple[Array, Array]:
        """Newton's method for (2), from a point where it is finite; and how the centre moves with the level."""
        y, m = y.copy(), self.m
        moving = np.zeros_like(y)
        left = np.arange(len(which))
        slopes = -self.A[which]
        slopes[:, :, : self.kD] += level[:, None, None, None, None] * self.D
        q, k = slopes.shape[1:3]
        diagonal = np.arange(k)
        for _ in range(25):
            A, D = self._at(which[left], y[left])
            F = level[left, None, None, None] * D[:, None] - A
            T, good = inverse_root(F.reshape(-1, m, m))
            U, regular = inverse_root(D)
            good = good.reshape(-1, q).all(axis=1) & regular
            T = T.reshape(-1, q, m, m)
            if not np.all(good):
                left, T, U, D = left[good], T[good], U[good], D[good]
            if not len(left):
                break
            S = slopes if len(left) == len(slopes) else slopes[left]
            X = _congruent(T.reshape(-1, m, m), S.reshape(-1, k, m, m)).reshape(S.shape)
            W = _congruent(U, np.broadcast_to(self.D, (len(left), *self.D.shape)))[:, None]
            g = -np.trace(X, axis1=3, axis2=4).real.sum(axis=1)
            g[:, : self.kD] -= np.trace(W, axis1=3, axis2=4).real[:, 0]
            X, W = (Y.reshape(*Y.shape[:3], m * m) for Y in (X, W))
            H = _products(X)
            H[:, : self.kD, : self.kD] += _products(W)
            g[:, self.kD :] += _MODEST * y[left, self.kD :]
            H[:, diagonal[self.kD :], diagonal[self.kD :]] += _MODEST
            H[:, diagonal, diagonal] += 1e-13 * np.trace(H, axis1=1, axis2=2)[:, None] / k
            adjoint = T.conj().swapaxes(2, 3)
            raised = (T @ D[:, None] @ adjoint).reshape(*X.shape[:2], -1, 1)
            by_level = (X.conj() @ raised).real.sum(axis=1)[:, :, 0]
            inverse = (adjoint @ T).sum(axis=1).reshape(len(left), -1)
            by_level[:, : self.kD] -= (inverse.conj() @ self.D.reshape(self.kD, m * m).T).real
            both = -np.linalg.solve(H, np.stack([g, by_level], axis=2))
            step, moving[left] = both[:, :, 0], both[:, :, 1]
            decrement = np.sqrt(np.maximum(-np.sum(g * step, axis=1), 0.0))
            bends = [
                np.linalg.eigvalsh(_combined(s[:, None], Y)).reshape(len(left), -1)
                for s, Y in ((step, X), (step[:, : self.kD], W))
            ]
            along, size = (
                _MODEST * np.sum(x[:, self.kD :] * step[:, self.kD :], axis=1) for x in (y[left], step)
            )
            y[left] += _length(np.concatenate(bends, axis=1), along, size)[:, None] * step
            left = left[decrement >= _CENTRED]
            if not len(left):
                break
        return y, moving


def _combined(y: Array, flat: Array) -> Array:
    """The sum of y_k X_k; X is flat."""
    m = round(flat.shape[-1] ** 0.5)
    return np.asarray((y[:, :, None] @ flat).reshape(*flat.shape[:2], m, m))


def _congruent(T: Array, S: Array) -> Array:
    """T S_k T^H for Hermitian S, (number, unknowns, m, m), in two products of matrices."""
    f, k, m, _ = S.shape
    turned = T.conj().swapaxes(1, 2)
    half = (S.reshape(f, k * m, m) @ turned).reshape(f, k, m, m).conj().swapaxes(2, 3)
    return (half.reshape(f, k * m, m) @ turned).reshape(f, k, m, m)


def _products(X: Array) -> Array:
    """The traces of X_i X_k, X flat, summed over a group."""
    flat = np.ascontiguousarray(X).view(float)
    return np.asarray((flat @ flat.swapaxes(2, 3)).sum(axis=1))


def inverse_root(F: Array) -> tuple[Array, Array]:
    """L^-1 of F = L L^H, and where there is one."""
    good = np.ones(len(F), bool)
    try:
        return np.linalg.inv(np.linalg.cholesky(F)), good
    except np.linalg.LinAlgError:
        T = np.broadcast_to(np.eye(F.shape[1], dtype=complex), F.shape).copy()
        for k, one in enumerate(F):
            try:
                T[k] = np.linalg.inv(np.linalg.cholesky(one))
            except np.linalg.LinAlgError:
                good[k] = False
        return T, good


def _length(bends: Array, along: Array, size: Array) -> Array:
    """The t > 0 with the largest sum of log(1 + t lambda) less t along + t^2/2 size, for each row of eigenvalues."""
    lowest = bends.min(axis=1)
    longest = np.where(lowest < 0, -1 / np.where(lowest < 0, lowest, -1.0), np.inf)
    t = np.minimum(1.0, 0.5 * longest)
    for _ in range(4):
        ratio = bends / (1 + t[:, None] * bends)
        slope = ratio.sum(axis=1) - along - t * size
        change = slope / np.maximum(np.einsum("ij,ij->i", ratio, ratio) + size, 1e-300)
        t = np.maximum(np.minimum(t + change, t + 0.9 * (longest - t)), 0.1 * t)
    return np.asarray(t)


def _hermitian(n: int) -> list[tuple[int, int, Array]]:
    """A basis of the Hermitian matrices, the diagonal first; each with an entry that no other has of its kind."""
    found = []
    for i in range(n):
        E = np.zeros((n, n), complex)
        E[i, i] = 1
        found.append((i, i, E))
    for i in range(n):
        for j in range(i):
            for value in (1.0, 1j):
                E = np.zeros((n, n), complex)
                E[i, j], E[j, i] = value, np.conj(value)
                found.append((i, j, E))
    return found
