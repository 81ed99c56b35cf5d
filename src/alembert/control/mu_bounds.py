"""The structured singular value of a matrix: bounds from above and below.

    mu(M) = 1 / min { |Delta| : Delta of the structure, det(1 - M Delta) = 0 },      w = Delta z,  z = M w            (1)

Delta is block diagonal: real numbers d 1, complex numbers d 1, and full complex blocks. From above (Fan, Tits, Doyle
1991): for Hermitian D > 0 that commute with Delta, and Hermitian G at the real blocks,

    M^H D M + j (G M - M^H G) < b^2 D       gives      mu(M) < b                                                      (2)

which is convex in (D, G) for every b. D alone is first balanced by Osborne's method; then the least b comes by the
method of centres (Boyd, El Ghaoui 1993): at a level b the point that maximises

    log det(b^2 D - M^H D M - j (G M - M^H G)) + log det D                                                            (3)

is found by Newton's method, the level is lowered to where (2) just fails there, and so on.

From below: a power iteration (Packard, Fan, Doyle 1988; Young, Doyle 1990) looks for unit blocks Q for which M Q has
a large real eigenvalue. Newton's method on the size of Delta and the phase of its complex blocks then makes det(1 - M
Delta) = 0 exact: the perturbation is part of the answer, and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg

from alembert.errors import ArgumentError

Array = np.ndarray
KINDS = ("real", "complex", "full", "sector")


@dataclass(frozen=True)
class DeltaBlock:
    """A block of Delta: "real" or "complex" (a number times the unit matrix of size `rows`), "full" (rows x columns), or
    "sector": a nonlinearity, perhaps with memory, whose output is never larger than its input (as energy over time).

    Rows count inputs w of M, columns outputs z.
    """

    kind: str
    rows: int = 1
    columns: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        columns = self.columns or self.rows
        if self.kind not in KINDS:
            raise ArgumentError(f"DeltaBlock: kind is {self.kind!r}, expected one of {', '.join(KINDS)}")
        if self.rows < 1 or columns < 1 or (self.kind in ("real", "complex") and columns != self.rows):
            raise ArgumentError(
                f"DeltaBlock: a {self.kind} block of {self.rows} x {columns}; expected a square one"
            )
        object.__setattr__(self, "columns", columns)


@dataclass(frozen=True, eq=False)
class MuBounds:
    """mu lies between `lower` and `upper`; `delta` (of norm 1/lower) makes 1 - M Delta singular; D and G prove `upper`."""

    upper: float
    lower: float
    delta: Array | None
    D_left: Array
    D_right: Array
    G: Array


def mu(M: Any, blocks: Sequence[DeltaBlock], *, starts: int = 12, tolerance: float = 1e-9) -> MuBounds:
    """Bounds of (1) for a matrix M (outputs z, inputs w); `starts` is how many power iterations are begun."""
    M = np.asarray(M, dtype=complex)
    check_blocks("mu", M.shape, blocks)
    scalings = Scalings(blocks)
    above = scalings.least(M, tolerance=tolerance)
    lower, delta = lower_bound(M, blocks, starts=starts)
    return MuBounds(above.level, min(lower, above.level), delta, above.D_left, above.D_right, above.G)


def check_blocks(function: str, shape: tuple[int, ...], blocks: Sequence[DeltaBlock]) -> None:
    if len(shape) != 2 or not blocks or not all(isinstance(b, DeltaBlock) for b in blocks):
        raise ArgumentError(f"{function}: expected a matrix and a list of DeltaBlock")
    rows, columns = sum(b.rows for b in blocks), sum(b.columns for b in blocks)
    if shape != (columns, rows):
        raise ArgumentError(
            f"{function}: M has shape {shape}, and the blocks take {columns} outputs z and give {rows} inputs w"
        )


# --- from above -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UpperBound:
    """The level b of (2), and the scalings that prove it: D over the outputs, D over the inputs, G (inputs x outputs)."""

    level: float
    D_left: Array
    D_right: Array
    G: Array


class Scalings:
    """The linear space of D and G of a structure."""

    def __init__(self, blocks: Sequence[DeltaBlock]) -> None:
        self.blocks = tuple(blocks)
        rows = np.cumsum([0, *(b.rows for b in blocks)])
        columns = np.cumsum([0, *(b.columns for b in blocks)])
        self.w = [slice(a, b) for a, b in pairwise(rows)]
        self.z = [slice(a, b) for a, b in pairwise(columns)]
        m, p = int(rows[-1]), int(columns[-1])
        left, right, cross = [], [], []
        for block, w, z in zip(blocks, self.w, self.z, strict=True):
            if block.kind in ("full", "sector"):
                units: list[tuple[Array, Array]] = [(np.eye(block.columns), np.eye(block.rows))]
            else:
                units = [(E, E) for E in _hermitian(block.rows)]
            for over, under in units:
                L, R = np.zeros((p, p), complex), np.zeros((m, m), complex)
                L[z, z], R[w, w] = over, under
                left.append(L)
                right.append(R)
                cross.append(np.zeros((m, p), complex))
            if block.kind == "real":
                for E in _hermitian(block.rows):
                    X = np.zeros((m, p), complex)
                    X[w, z] = E
                    left.append(np.zeros((p, p), complex))
                    right.append(np.zeros((m, m), complex))
                    cross.append(X)
        self.left, self.right, self.cross = np.array(left), np.array(right), np.array(cross)

    def osborne(self, M: Array) -> Array:
        """One number a block, squared: the D that balances rows and columns of blocks."""
        size = np.array([[np.linalg.norm(M[z, w]) for w in self.w] for z in self.z])
        n = len(size)
        d = np.ones(n)
        off = size**2 * (1 - np.eye(n))
        for _ in range(60):
            before = d.copy()
            for k in range(n):
                row = float(np.sum(off[k] * (d[k] / d) ** 2))
                column = float(np.sum(off[:, k] * (d / d[k]) ** 2))
                if row > 0 and column > 0:
                    d[k] *= (column / row) ** 0.25
                elif row > 0 or column > 0:
                    d[k] *= 0.1 if row > 0 else 10.0
            d = np.clip(d / np.exp(np.mean(np.log(d))), 1e-6, 1e6)
            if np.abs(d - before).max() <= 1e-6 * d.max():
                break
        return d**2

    def spread(self, d: Array) -> tuple[Array, Array]:
        """(D over outputs, D over inputs), diagonals."""
        over = np.concatenate([np.full(b.columns, x) for b, x in zip(self.blocks, d, strict=True)])
        under = np.concatenate([np.full(b.rows, x) for b, x in zip(self.blocks, d, strict=True)])
        return over, under

    def least(self, M: Array, *, tolerance: float = 1e-9, below: float | None = None) -> UpperBound:
        """(2) with the least b; with `below`, a centre (3) of that level as soon as there is one."""
        d = self.osborne(M)
        over, under = (np.sqrt(x) for x in self.spread(d))
        N = over[:, None] * M / under
        sigma = float(np.linalg.norm(N, 2))
        scale = sigma if sigma > 0 else 1.0
        problem = _Centres(self, N / scale)
        level, x = problem.solve(tolerance, None if below is None else (below / scale) ** 2)
        left, right, cross = (np.tensordot(x, part, axes=1) for part in (self.left, self.right, self.cross))
        G = under[:, None] * cross * over * scale
        return UpperBound(
            float(np.sqrt(max(level, 0.0))) * scale,
            over[:, None] * left * over,
            under[:, None] * right * under,
            G,
        )


class _Centres:
    """The method of centres for one matrix of norm one; the mean of D is one."""

    def __init__(self, scalings: Scalings, M: Array) -> None:
        adjoint = M.conj().T
        half = scalings.cross @ M
        A = adjoint @ scalings.left @ M + 1j * (half - np.swapaxes(half, 1, 2).conj())
        D = scalings.right
        self.m = M.shape[1]
        mean = np.trace(D, axis1=1, axis2=2).real / self.m
        self.start = np.zeros(len(mean))
        for k, E in enumerate(D):  # the diagonal units make up the unit matrix
            if mean[k] > 0 and np.allclose(E, np.diag(np.diag(E))):
                self.start[k] = 1.0
        # directions that keep the mean of D
        self.Z = scipy.linalg.null_space(mean[None])
        self.A0, self.D0 = (np.tensordot(self.start, X, axes=1) for X in (A, D))
        self.A, self.D = (np.tensordot(self.Z.T, X, axes=1) for X in (A, D))

    def solve(self, tolerance: float, below: float | None) -> tuple[float, Array]:
        y = np.zeros(self.Z.shape[1])
        best = self._reached(y)
        if not len(y) or best <= 1e-14:
            return best, self.start
        level = best * 1.3 + 1e-12
        if below is not None and below > best:
            y = self._centre(y, below)
            return min(self._reached(y), below), self.start + self.Z @ y
        still, kept = 0, y
        for _ in range(80):
            y = self._centre(y, level)
            reached = self._reached(y)
            if not np.isfinite(reached):  # D has become singular to rounding: no lower level can be told
                break
            if below is not None and reached < below:
                y = self._centre(y, below)
                return min(self._reached(y), below), self.start + self.Z @ y
            still = still + 1 if best - reached <= tolerance * best else 0
            if reached <= best:
                best, kept = reached, y
            if still >= 2 or best <= 1e-14:
                break
            level = reached + 0.03 * max(level - reached, 1e-3 * tolerance * best)
        return best, self.start + self.Z @ kept

    def _reached(self, y: Array) -> float:
        A, D = self._at(y)
        rounding = (
            4 * self.m * np.finfo(float).eps * np.abs(A).max()
        )  # G may be large, and the bound must hold
        try:
            return float(scipy.linalg.eigh(A, D, eigvals_only=True, check_finite=False)[-1] + rounding)
        except np.linalg.LinAlgError:
            return np.inf

    def _at(self, y: Array) -> tuple[Array, Array]:
        return self.A0 + np.tensordot(y, self.A, axes=1), self.D0 + np.tensordot(y, self.D, axes=1)

    def _centre(self, y: Array, level: float) -> Array:
        """Newton's method for (3), from a point where it is finite."""
        slopes = level * self.D - self.A
        for _ in range(25):
            A, D = self._at(y)
            F = level * D - A
            try:
                X, W = np.linalg.solve(F, slopes), np.linalg.solve(D, self.D)
            except np.linalg.LinAlgError:
                return y
            g = -np.trace(X, axis1=1, axis2=2).real - np.trace(W, axis1=1, axis2=2).real
            k = len(y)
            flat = [(x.reshape(k, -1), np.swapaxes(x, 1, 2).reshape(k, -1)) for x in (X, W)]
            H = sum((a @ b.T).real for a, b in flat)
            try:
                step = -np.linalg.solve(H + 1e-13 * np.trace(H) / k * np.eye(k), g)
            except np.linalg.LinAlgError:
                return y
            decrement = float(np.sqrt(max(-g @ step, 0.0)))
            length = 1.0 if decrement < 0.25 else 1 / (1 + decrement)
            y = y + length * step
            if decrement < 1e-2:
                break
        return y


def _hermitian(n: int) -> list[Array]:
    """A basis of the Hermitian matrices, the diagonal first."""
    found = []
    for i in range(n):
        E = np.zeros((n, n), complex)
        E[i, i] = 1
        found.append(E)
    for i in range(n):
        for j in range(i):
            for value in (1.0, 1j):
                E = np.zeros((n, n), complex)
                E[i, j], E[j, i] = value, np.conj(value)
                found.append(E)
    return found


# --- from below -----------------------------------------------------------------------------------------------


def lower_bound(
    M: Array, blocks: Sequence[DeltaBlock], *, starts: int = 12, seed: int = 0
) -> tuple[float, Array | None]:
    """The largest 1/|Delta| found with det(1 - M Delta) = 0, and that Delta; (0, None) where none was found."""
    rng = np.random.default_rng(seed)
    structure = Scalings(blocks)
    m = M.shape[1]
    Vt = np.linalg.svd(M)[2]
    best, delta = 0.0, None
    for k in range(starts):
        b: Array = Vt[0].conj() if k == 0 else rng.normal(size=(2, m)).T @ np.array([1, 1j])
        Q = _power_iteration(M, structure, b, b.copy(), rng)
        for made in _singular(M, structure, Q):
            size = 1 / float(np.linalg.norm(made, 2))
            if size > best:
                best, delta = size, made
    return best, delta


def _power_iteration(M: Array, structure: Scalings, b: Array, w: Array, rng: Any) -> tuple[Array, Array]:
    """Unit blocks, in one matrix of the real ones and one of the others (inputs x outputs).

    b and w are over the inputs, a and z over the outputs:   a ~ M b,   z = Q^H w,   w ~ M^H z,   b = Q a.
    """
    parts = list(zip(structure.blocks, structure.w, structure.z, strict=True))
    b, w = _unit(b), _unit(w)
    q = [float(rng.uniform(-1, 1)) for _ in parts]
    a = z = np.zeros(M.shape[0], complex)
    before = 0.0
    for step in range(150):
        a = M @ b
        beta = float(np.linalg.norm(a))
        if beta == 0:
            break
        a = a / beta
        z = np.zeros_like(a)
        for k, (block, at_w, at_z) in enumerate(parts):
            if block.kind == "real":
                q[k] = _real_step(q[k], a[at_z], w[at_w], b[at_w])
                z[at_z] = q[k] * w[at_w]
            elif block.kind == "complex":
                z[at_z] = _phase(np.vdot(w[at_w], a[at_z])) * w[at_w]
            else:
                z[at_z] = np.linalg.norm(w[at_w]) * _unit(a[at_z])
        w = M.conj().T @ z
        if not np.any(w):
            break
        w = _unit(w)
        new = np.zeros_like(b)
        for k, (block, at_w, at_z) in enumerate(parts):
            if block.kind == "real":
                q[k] = _real_step(q[k], a[at_z], w[at_w], b[at_w])
                new[at_w] = q[k] * a[at_z]
            elif block.kind == "complex":
                new[at_w] = _phase(np.vdot(a[at_z], w[at_w])) * a[at_z]
            else:
                new[at_w] = np.linalg.norm(a[at_z]) * _unit(w[at_w])
        b = _unit(new) if np.any(new) else b
        if step > 10 and abs(beta - before) < 1e-11 * beta:
            break
        before = beta
    real, other = np.zeros((M.shape[1], M.shape[0])), np.zeros((M.shape[1], M.shape[0]), complex)
    for k, (block, at_w, at_z) in enumerate(parts):
        if block.kind == "real":
            real[at_w, at_z] = q[k] * np.eye(block.rows)
        elif block.kind == "complex":
            other[at_w, at_z] = _phase(np.vdot(a[at_z], w[at_w])) * np.eye(block.rows)
        else:
            other[at_w, at_z] = np.outer(_unit(w[at_w]), _unit(a[at_z]).conj())
    return real, other


def _singular(M: Array, structure: Scalings, Q: tuple[Array, Array]) -> list[Array]:
    """t (Q_real + exp(j phi) Q_other) with det(1 - M Delta) = 0: phi makes an eigenvalue of M Q real, t is one over it."""
    real, other = Q
    found = []
    values = np.linalg.eigvals(M @ (real + other))
    for first in sorted(values, key=lambda v: -abs(v))[:3]:
        if abs(first) == 0:
            continue
        if not np.any(other):
            if abs(first.imag) <= 1e-9 * abs(first):
                found.append(real / first.real)
            continue
        phi, value = 0.0, complex(first)
        step = -float(np.angle(value))
        for _ in range(30):
            before = (phi, float(np.angle(value)))
            phi += step
            now = np.linalg.eigvals(M @ (real + np.exp(1j * phi) * other))
            value = complex(now[np.argmin(np.abs(now - abs(value)))])
            angle = float(np.angle(value))
            if abs(angle) < 1e-14:
                break
            slope = (angle - before[1]) / (phi - before[0]) if phi != before[0] else 1.0
            step = float(np.clip(-angle / slope if slope else -angle, -0.5, 0.5))
        if abs(value) > 0 and abs(np.angle(value)) < 1e-10:
            delta = (real + np.exp(1j * phi) * other) / value.real
            if np.linalg.svd(np.eye(len(M)) - M @ delta, compute_uv=False)[-1] < 1e-8:
                found.append(delta)
    return found


def _real_step(q: float, a: Array, w: Array, b: Array) -> float:
    size = float(np.linalg.norm(a))
    alpha = (np.sign(q) or 1.0) * float(np.linalg.norm(b)) / (size or 1.0) + float(np.vdot(a, w).real)
    return float(np.clip(alpha, -1.0, 1.0))


def _phase(x: complex) -> complex:
    return complex(x / abs(x)) if abs(x) > 0 else 1.0 + 0j


def _unit(x: Array) -> Array:
    size = float(np.linalg.norm(x))
    return x / size if size > 0 else x
