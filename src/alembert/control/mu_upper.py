"""Bounds of the structured singular value from above, for many matrices at once.

For Hermitian D > 0 that commute with Delta, and Hermitian G at the real blocks (Fan, Tits, Doyle 1991),

    M^H D M + j (G M - M^H G) < b^2 D       gives      mu(M) < b                                                      (1)

which is convex in (D, G) for every b. D alone is first balanced by Osborne's method. The least level l = b^2 then comes by
a primal-dual interior-point method (Mehrotra's predictor and corrector, the direction of Helmberg, Kojima and Monteiro):

    F = l D - M^H D M - j (G M - M^H G),   F Z = t 1,   D V = t 1,   trace(Z D) = 1,   Z and V at right angles to        (2)

all changes of F and D that the unknowns y of D and G allow; t goes to zero. Z and V need not be right for the bound to
hold: at every point, (1) is tested by eigenvalues. In Newton's equations the change of l meets D as it is, not as it will
be (Dinkelbach's way with quotients): so they stay those of a convex problem.

With F^-1 = P P^H and Z = S S^H the curvatures trace(F_i Z F_k F^-1), F_k = dF/dy_k, are products of the matrices S^H F_k P.
As an unknown stands in one or two entries of D or G, each of them is made of rows of P, M P, S and M S.

Where a level is asked for, the answer is its centre, the point that maximises

    log det F + log det D                                                                                             (3)

found by Newton's method. With S = P, slope and curvature of (3) are traces of X_k = P^H F_k P and of their products, and
along a step s it is the sum of log(1 + t x), x the eigenvalues of sum_k s_k X_k: the best length t is found exactly, for
the price of some logarithms.

Matrices of several frequencies are solved side by side. Each goes on until it has converged, or until its bound is below a
level that was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from alembert.control.mu_bounds import DeltaBlock

Array = np.ndarray
_AT_ONCE = 2_000_000  # complex numbers of the slopes of F
_IN_CACHE = 40_000  # of them, with which products are made
_CENTRED = 0.3  # decrement of Newton's method at which a point counts as the centre
_MODEST = 0.01  # times half the square of G is taken off (3), which else may grow without end
_AHEAD = 0.9  # of the way on which F, D, Z and V stay positive
_SHORT, _ASTRAY = 0.1, 0.5
"""a shorter step, or one that leads up by more than this part of the gap, is not believed: it goes on from a centre above
the best level known"""
_NEARER = 0.3  # of the gap it lies above, and that part of a part at the next time
_IDLE = 6  # steps without a lower level, after which nothing more is to be had
_FACTORED = 12  # unknowns, from which on one factor for two right sides pays
_ITERATIONS = 60
_ZERO = 1e-14  # a level b^2, of a matrix of norm one, below which nothing is looked for


@dataclass(frozen=True, eq=False)
class UpperBound:
    """The level b of (1), and the scalings that prove it: D over the outputs, D over the inputs, G (inputs x outputs)."""

    level: float
    D_left: Array
    D_right: Array
    G: Array


class Scalings:
    """The linear space of D and G of a structure; the mean of D is one.

    Unknowns of D are a number for each full block; of the other blocks the entries of the diagonal, the real parts of those
    below it, and their imaginary parts. So are those of G, at the real blocks.
    """

    def __init__(self, blocks: Sequence[DeltaBlock]) -> None:
        self.blocks = tuple(blocks)
        rows = np.cumsum([0, *(b.rows for b in blocks)])
        columns = np.cumsum([0, *(b.columns for b in blocks)])
        self.w = [slice(a, b) for a, b in pairwise(rows)]
        self.z = [slice(a, b) for a, b in pairwise(columns)]
        self.m, self.p = int(rows[-1]), int(columns[-1])
        self.full = [k for k, b in enumerate(blocks) if b.kind not in ("real", "complex")]
        self.numbers, self.real = (
            _Entries([(w, z) for w, z, b in zip(self.w, self.z, blocks, strict=True) if b.kind in kinds])
            for kinds in (("real", "complex"), ("real",))
        )
        left, right = (np.zeros((len(self.full), n, n), complex) for n in (self.p, self.m))
        for k, block in enumerate(self.full):
            left[k, self.z[block], self.z[block]] = np.eye(blocks[block].columns)
            right[k, self.w[block], self.w[block]] = np.eye(blocks[block].rows)
        left = np.concatenate([left, self.numbers.units(self.numbers.z, self.numbers.z, (self.p, self.p))])
        right = np.concatenate([right, self.numbers.units(self.numbers.w, self.numbers.w, (self.m, self.m))])
        # the first unit of D follows from the mean, and goes into the others
        weight = np.trace(right, axis1=1, axis2=2).real
        self.share = (weight / weight[0])[1:, None, None]
        self.left, self.right = (x[1:] - self.share * x[0] for x in (left, right))
        self.cross = self.real.units(self.real.w, self.real.z, (self.m, self.p))
        self.unknowns = len(self.left) + len(self.cross)

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
            level[part], y[part] = _Levels(self, N[part]).solve(tolerance, wanted[part], start[part])
        left, right, G = self.matrices(y)
        left = over[:, :, None] * (np.eye(self.p) + left) * over[:, None]
        right = under[:, :, None] * (np.eye(self.m) + right) * under[:, None]
        G = under[:, :, None] * G * (over * scale[:, None])[:, None]
        b = np.sqrt(np.maximum(level, 0.0)) * scale
        return [UpperBound(float(b[k]), left[k], right[k], G[k]) for k in range(len(M))]

    def matrices(self, y: Array) -> tuple[Array, Array, Array]:
        """D over outputs and D over inputs, each less one, and G, for rows of unknowns."""
        d, g = y[:, : len(self.left)], y[:, len(self.left) :]
        left, right, G = (_combined(a, X) for a, X in ((d, self.left), (d, self.right), (g, self.cross)))
        return left, right, G

    def _coordinates(self, near: UpperBound, over: Array, under: Array, scale: float) -> Array:
        right = near.D_right / under[:, None] / under
        mean = np.trace(right).real / self.m
        G = near.G / under[:, None] / over / (scale * mean)
        X = right / mean - np.eye(self.m)
        first = np.array([X[self.w[k].start, self.w[k].start].real for k in self.full])
        of_numbers = self.numbers.read(X, self.numbers.w, self.numbers.w)
        return np.concatenate(
            [np.concatenate([first, of_numbers])[1:], self.real.read(G, self.real.w, self.real.z)]
        )


class _Entries:
    """Hermitian matrices at some blocks of numbers: `w` and `z` are the places of their signals among inputs and outputs,
    i > j two signals of one block."""

    def __init__(self, places: Sequence[tuple[slice, slice]]) -> None:
        self.w, self.z = (
            np.array([i for part in parts for i in range(part.start, part.stop)], int)
            for parts in ([w for w, _ in places], [z for _, z in places])
        )
        block = np.repeat(np.arange(len(places)), [w.stop - w.start for w, _ in places])
        self.i, self.j = np.nonzero(np.tril(block[:, None] == block, -1))

    def units(self, rows: Array, columns: Array, shape: tuple[int, int]) -> Array:
        """The matrix of each unknown."""
        n, k = len(rows), len(self.i)
        E, below = np.zeros((n + 2 * k, *shape), complex), np.arange(k)
        E[np.arange(n), rows, columns] = 1
        for first, value in ((n, 1), (n + k, 1j)):
            E[first + below, rows[self.i], columns[self.j]] = value
            E[first + below, rows[self.j], columns[self.i]] = np.conj(value)
        return E

    def read(self, X: Array, rows: Array, columns: Array) -> Array:
        """The unknowns of a matrix."""
        below = X[rows[self.i], columns[self.j]]
        return np.concatenate([X[rows, columns].real, below.real, below.imag])

    def slopes(self, factors: Sequence[tuple[Array, Array]], out: Array) -> None:
        """What the unknowns make, where the entry of the signals i and j makes the sum of the products a_i b_j^T."""
        n, k = len(self.w), len(self.i)
        _outer_sum(factors, slice(None), slice(None), out[:, :, :n])
        if k:
            below, above = out[:, :, n : n + k], out[:, :, n + k :]
            _outer_sum(factors, self.i, self.j, below)
            _outer_sum(factors, self.j, self.i, above)
            apart = below - above
            below += above
            np.multiply(apart, 1j, out=above)


class _Levels:
    """Levels l of (2) for matrices of norm one; those of a group share their scalings."""

    def __init__(self, scalings: Scalings, M: Array) -> None:
        self.scalings, self.M = scalings, M
        self.kD, self.m = len(scalings.left), M.shape[3]

    def solve(self, tolerance: float, below: Array, start: Array) -> tuple[Array, Array]:
        """The levels, and the unknowns; of those that get below `below` the centre of that level."""
        y, best = np.zeros_like(start), self._point(self.M, np.zeros_like(start))[2]
        if not self.scalings.unknowns:
            return best, y
        if np.any(start):
            given = self._point(self.M, start)[2]
            y = np.where((given < best)[:, None], start, y)
            best = np.minimum(best, given)
        M, kept, at = self.M, y.copy(), np.flatnonzero(best > _ZERO)
        y, level = y[at], 1.3 * best[at]
        idle, lost, target = np.zeros(len(at), int), np.ones(len(at), bool), np.zeros(len(at))
        near, dual = np.ones(len(at)), np.zeros((len(at), M.shape[1] + 1, self.m, self.m), complex)
        M = M[at]
        A, D, reached, root = self._point(M, y)
        for _ in range(_ITERATIONS):
            if not len(at):
                break
            level = np.maximum(level, reached + 0.1 * target)
            F = np.concatenate([level[:, None, None, None] * D[:, None] - A, D[:, None]], axis=1)
            inverse, good = inverse_root(F[:, :-1])
            root = np.concatenate([inverse, root[:, None]], axis=1)
            if np.any(lost):
                dual[lost] = root[lost].conj().swapaxes(2, 3) @ root[lost]
                dual[lost] /= np.sum(_dot(dual[lost, :-1], D[lost, None]), axis=1)[:, None, None, None]
            gap = np.sum(_dot(F, dual), axis=1)
            idle = np.where(reached < (1 - 0.01 * tolerance) * best[at], 0, idle + 1)
            better = reached < best[at]
            kept[at[better]], best[at[better]] = y[better], reached[better]
            there = best[at] < below[at]
            if np.any(there):
                now = at[there]
                kept[now] = self._centre(now, kept[now], below[now])
                best[now] = np.minimum(self._point(self.M[now], kept[now])[2], below[now])
            on = good & np.isfinite(reached) & ~there & (best[at] > _ZERO) & (idle < _IDLE)
            slope = np.linalg.norm(self._along(M, level, dual), axis=1) * (1 + np.linalg.norm(y, axis=1))
            # an estimate of what is left, of which a tenth is true
            on &= gap + slope > 5 * tolerance * best[at]
            if not np.all(on):
                at, M, y, level, D, F, root, dual, gap, idle, near = (
                    x[on] for x in (at, M, y, level, D, F, root, dual, gap, idle, near)
                )
            if not len(at):
                break
            target = gap / (F.shape[1] * self.m)
            y, level, dual, length = self._advanced(M, y, level, D, F, root, dual, target)
            A, D, reached, root = self._point(M, y)
            lost = ~((length > _SHORT) & (reached < best[at] + _ASTRAY * gap))
            if np.any(lost):
                now = at[lost]
                near[lost] *= _NEARER
                level[lost] = best[now] + near[lost] * gap[lost]
                y[lost] = self._centre(now, kept[now], level[lost])
                A[lost], D[lost], reached[lost], root[lost] = self._point(M[lost], y[lost])
        return best, kept

    def _advanced(
        self, M: Array, y: Array, level: Array, D: Array, F: Array, root: Array, dual: Array, target: Array
    ) -> tuple[Array, Array, Array, Array]:
        """One step of (2) for F and D, stacked, with the inverses of their roots; and its length, zero if none."""
        back, good = inverse_root(dual)
        adjoint = root.conj().swapaxes(2, 3)
        inverse = adjoint @ root
        H = self._curvature(M, dual @ back.conj().swapaxes(2, 3), adjoint, level)
        k = np.arange(H.shape[1])
        H[:, k[self.kD :], k[self.kD :]] += _MODEST * target[:, None]
        H[:, k, k] += 1e-13 * np.trace(H, axis1=1, axis2=2)[:, None] / len(k)
        turned = D[:, None] @ inverse[:, :-1]
        by_level = self._along(M, level, _padded(_hermitian(dual[:, :-1] @ turned)))
        itself = np.sum(_dot(turned, D[:, None] @ dual[:, :-1]), axis=1)
        solve = _solver(H)
        moved = solve(by_level)
        schur = np.maximum(itself - np.sum(by_level * moved, axis=1), 1e-3 * itself)

        def towards(goal: Array, second: Array | float) -> tuple[Array, Array, Array, Array]:
            R = goal[:, None, None, None] * inverse - second
            g = self._along(M, level, R)
            g[:, self.kD :] -= _MODEST * goal[:, None] * y[:, self.kD :]
            g = solve(g) if np.any(g) else g
            rest = np.sum(_dot(R[:, :-1], D[:, None]), axis=1) - 1 - np.sum(by_level * g, axis=1)
            fall = rest / schur
            dy = g - fall[:, None] * moved
            dA, dD = self._moved(M, dy)
            dF = fall[:, None, None, None] * D[:, None] + level[:, None, None, None] * dD[:, None] - dA
            change = np.concatenate([dF, dD[:, None]], axis=1)
            return dy, fall, change, R - dual - _hermitian(dual @ change @ inverse)

        def turned_back(change: Array, change_of_dual: Array) -> tuple[Array, Array]:
            return root @ change @ adjoint, back @ change_of_dual @ back.conj().swapaxes(2, 3)

        def length(lowest: Array) -> Array:
            return 1 / np.maximum(1.0, -lowest.min(axis=1) / _AHEAD)

        _, _, change, change_of_dual = towards(np.zeros(len(y)), 0.0)
        a, b = (length(_low(x))[:, None, None, None] for x in turned_back(change, change_of_dual))
        ahead = np.sum(_dot(F + a * change, dual + b * change_of_dual), axis=1) / (F.shape[1] * self.m)
        centring = np.clip(ahead / target, 0.0, 1.0) ** 2
        second = _hermitian(change_of_dual @ change @ inverse)
        dy, fall, change, change_of_dual = towards(centring * target, second)
        a, b = (length(np.linalg.eigvalsh(x)[:, :, 0]) for x in turned_back(change, change_of_dual))
        dual = _hermitian(dual + b[:, None, None, None] * change_of_dual)
        return y + a[:, None] * dy, level + a * fall, dual, np.where(good, np.minimum(a, b), 0.0)

    def _at(self, M: Array, y: Array) -> tuple[Array, Array]:
        """M^H D M + j (G M - M^H G), and D"""
        A, D = self._moved(M, y)
        return A + M.conj().swapaxes(2, 3) @ M, D + np.eye(self.m)

    def _moved(self, M: Array, dy: Array) -> tuple[Array, Array]:
        left, right, G = self.scalings.matrices(dy)
        half = (M.conj().swapaxes(2, 3) @ left[:, None] / 2 + 1j * G[:, None]) @ M
        return half + half.conj().swapaxes(2, 3), right

    def _point(self, M: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        """A and D, the level at which (1) just fails, infinite where D is singular, and the inverse of D's root.

        What rounding changes in A and D comes into the level times the square of that inverse: G may be large, D nearly
        singular.
        """
        A, D = self._at(M, y)
        root, good = inverse_root(D)
        highest = np.linalg.eigvalsh(root[:, None] @ A @ root[:, None].conj().swapaxes(2, 3)).max(axis=(1, 2))
        size = np.linalg.norm(D, axis=(1, 2)) * (1 + np.abs(highest)) + 2 * np.linalg.norm(
            y[:, self.kD :], axis=1
        )
        rounding = 8 * self.m * np.finfo(float).eps * size * np.sum(np.abs(root) ** 2, axis=(1, 2))
        return A, D, np.where(good, highest + rounding, np.inf), root

    def _along(self, M: Array, level: Array, R: Array) -> Array:
        """The traces of Hermitian R, stacked like F and D, with their slopes."""
        s = self.scalings
        through = M @ R[:, :-1]
        over = (through @ M.conj().swapaxes(2, 3)).sum(axis=1)
        under = level[:, None, None] * R[:, :-1].sum(axis=1) + R[:, -1]
        d = _traces(s.right, under) - _traces(s.left, over)
        return np.concatenate(
            [d, -2 * _traces(s.cross.conj().swapaxes(1, 2), 1j * through.sum(axis=1))], axis=1
        )

    def _curvature(self, M: Array, S: Array, P: Array, level: Array) -> Array:
        """trace(F_i Z F_k F^-1) and the same of D, summed; S and P are stacked, F before D. Parts fit into fast memory."""
        found = np.empty((len(M), self.scalings.unknowns, self.scalings.unknowns))
        some = max(1, _IN_CACHE // (M.shape[1] * self.scalings.unknowns * self.m**2))
        for k in range(0, len(M), some):
            part = slice(k, k + some)
            X, W = self._slopes(M[part], S[part], P[part], level[part])
            found[part] = _products(X)
            found[part, : self.kD, : self.kD] += _products(W)
        return found

    def _slopes(self, M: Array, S: Array, P: Array, level: Array) -> tuple[Array, Array]:
        """S^H F_k P, and the same of D for its unknowns."""
        s = self.scalings
        a, b = S[:, :-1].conj(), P[:, :-1]
        c, d = (M @ S[:, :-1]).conj(), M @ b
        X = np.empty((*M.shape[:2], s.unknowns + 1, self.m, self.m), complex)
        W = np.empty((len(M), 1, self.kD + 1, self.m, self.m), complex)
        high, e, f = level[:, None, None, None] * a, S[:, -1:].conj(), P[:, -1:]
        for k, block in enumerate(s.full):
            w, z = s.w[block], s.z[block]
            X[:, :, k] = high[:, :, w].swapaxes(2, 3) @ b[:, :, w] - c[:, :, z].swapaxes(2, 3) @ d[:, :, z]
            W[:, :, k] = e[:, :, w].swapaxes(2, 3) @ f[:, :, w]
        n, own = len(s.full), s.numbers
        own.slopes(
            ((high[:, :, own.w], b[:, :, own.w]), (-c[:, :, own.z], d[:, :, own.z])), X[:, :, n : self.kD + 1]
        )
        own.slopes(((e[:, :, own.w], f[:, :, own.w]),), W[:, :, n:])
        own = s.real
        own.slopes(
            ((1j * c[:, :, own.z], b[:, :, own.w]), (-1j * a[:, :, own.w], d[:, :, own.z])),
            X[:, :, self.kD + 1 :],
        )
        plain = n + len(s.numbers.w)
        for x in (X, W):
            x[:, :, 1:plain] -= s.share[: plain - 1] * x[:, :, :1]
        return X[:, :, 1:], W[:, :, 1:]

    def _centre(self, which: Array, y: Array, level: Array) -> Array:
        """Newton's method for (3), from a point where it is finite."""
        y, left = y.copy(), np.arange(len(which))
        for _ in range(25):
            M, high = self.M[which[left]], level[left]
            A, D = self._at(M, y[left])
            F = np.concatenate([high[:, None, None, None] * D[:, None] - A, D[:, None]], axis=1)
            root, good = inverse_root(F)
            if not np.all(good):
                left, M, high, root = left[good], M[good], high[good], root[good]
            if not len(left):
                break
            adjoint = root.conj().swapaxes(2, 3)
            H = self._curvature(M, adjoint, adjoint, high)
            k = np.arange(H.shape[1])
            H[:, k[self.kD :], k[self.kD :]] += _MODEST
            H[:, k, k] += 1e-13 * np.trace(H, axis1=1, axis2=2)[:, None] / len(k)
            g = -self._along(M, high, adjoint @ root)
            g[:, self.kD :] += _MODEST * y[left, self.kD :]
            step = -np.linalg.solve(H, g[:, :, None])[:, :, 0]
            decrement = np.sqrt(np.maximum(-np.sum(g * step, axis=1), 0.0))
            dA, dD = self._moved(M, step)
            change = np.concatenate([high[:, None, None, None] * dD[:, None] - dA, dD[:, None]], axis=1)
            bends = np.linalg.eigvalsh(root @ change @ adjoint).reshape(len(left), -1)
            along, size = (
                _MODEST * np.sum(x[:, self.kD :] * step[:, self.kD :], axis=1) for x in (y[left], step)
            )
            y[left] += _length(bends, along, size)[:, None] * step
            left = left[decrement >= _CENTRED]
            if not len(left):
                break
        return y


def _combined(y: Array, X: Array) -> Array:
    """The sums of y_k X_k, for rows y."""
    return np.asarray((y @ X.reshape(len(X), math.prod(X.shape[1:]))).reshape(len(y), *X.shape[1:]))


def _traces(X: Array, R: Array) -> Array:
    """The real parts of the traces of X_k^H R, for all of some matrices R."""
    return np.asarray((R.reshape(len(R), -1) @ X.reshape(len(X), math.prod(X.shape[1:])).conj().T).real)


def _products(X: Array) -> Array:
    """The traces of X_i^H X_k, summed over a group."""
    flat = X.reshape(*X.shape[:3], math.prod(X.shape[3:])).view(float)
    return np.asarray((flat @ flat.swapaxes(2, 3)).sum(axis=1))


def _outer_sum(
    factors: Sequence[tuple[Array, Array]], i: Array | slice, j: Array | slice, out: Array
) -> None:
    for k, (a, b) in enumerate(factors):
        left, right = a[:, :, i][..., None], b[:, :, j][..., None, :]
        if k:
            out += left * right
        else:
            np.multiply(left, right, out=out)


def _dot(X: Array, Y: Array) -> Array:
    """The traces of X Y, of which one at least is Hermitian."""
    return np.einsum("...ij,...ji->...", X, Y).real


def _low(X: Array) -> Array:
    """Below the least eigenvalues of Hermitian matrices (Wolkowicz, Styan 1980), from their mean and spread."""
    m = X.shape[-1]
    mean = np.trace(X, axis1=-2, axis2=-1).real / m
    spread = np.sum(X.real**2 + X.imag**2, axis=(-2, -1)) / m - mean**2
    return np.asarray(mean - np.sqrt((m - 1) * np.maximum(spread, 0.0)))


def _hermitian(X: Array) -> Array:
    return (X + X.conj().swapaxes(-2, -1)) / 2


def _solver(H: Array) -> Callable[[Array], Array]:
    """x of H x = b, for rows b, of positive definite matrices; of those that rounding spoils, by elimination."""
    if H.shape[1] < _FACTORED:
        return lambda b: np.linalg.solve(H, b[:, :, None])[:, :, 0]
    factors = [scipy.linalg.lapack.dpotrf(one, clean=0) for one in H]

    def solve(b: Array) -> Array:
        pairs = zip(factors, H, b, strict=True)
        return np.array(
            [
                np.linalg.solve(h, x) if wrong else scipy.linalg.lapack.dpotrs(L, x)[0]
                for (L, wrong), h, x in pairs
            ]
        )

    return solve


def _padded(X: Array) -> Array:
    """A zero stacked behind."""
    return np.concatenate([X, np.zeros_like(X[:, :1])], axis=1)


def inverse_root(F: Array) -> tuple[Array, Array]:
    """L^-1 of F = L L^H, for matrices or groups of them, (number, ..., m, m); and which numbers have one."""
    try:
        return np.linalg.inv(np.linalg.cholesky(F)), np.ones(len(F), bool)
    except np.linalg.LinAlgError:
        T, good = np.broadcast_to(np.eye(F.shape[-1], dtype=complex), F.shape).copy(), np.ones(len(F), bool)
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
