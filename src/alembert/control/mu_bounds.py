"""The structured singular value of a matrix: bounds from above and below.

    mu(M) = 1 / min { |Delta| : Delta of the structure, det(1 - M Delta) = 0 },      w = Delta z,  z = M w            (1)

Delta is block diagonal: real numbers d 1, complex numbers d 1, and full complex blocks. `mu_upper` says how the bound from
above comes about.

Bounds from below are found for many matrices and many starts at once. The bound from above, if it is known, tells by an
eigenvector which perturbation would reach it: often it does. Otherwise a power iteration (Packard, Fan, Doyle 1988; Young,
Doyle 1990) looks for unit blocks Q for which M Q has a large real eigenvalue; among real numbers alone, where it does not
settle, steps of linear programming do (`_real_ascent`). The secant method on the phase of the complex blocks then makes
det(1 - M Delta) = 0 exact: the perturbation is part of the answer, and checked.

One real number makes a loop unstable at single frequencies only, which a grid does not meet. There the poles of the closed
loop are followed instead, with all real blocks growing at once along some directions, up to where the first one crosses the
axis.

A large gain under perturbations of size one is looked for by steps towards those that raise it, to first order, most.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import choice, whole
from alembert.control.arguments import complex_numbers, relative
from alembert.control.mu_upper import Scalings, UpperBound, inverse_root
from alembert.control.norms import peak_gain
from alembert.control.responses import ResponseEvaluator
from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.control.statespace import StateSpace

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
        choice("DeltaBlock", "kind", self.kind, KINDS)
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
    """Bounds of (1) for a matrix M (outputs z, inputs w); `starts` is how many searches from below are begun."""
    M = complex_numbers("mu", "M", M)
    check_blocks("mu", M.shape, blocks)
    relative("mu", tolerance)
    whole("mu", "starts", starts, "a number of searches from 0 on", least=0)
    scalings = Scalings(blocks)
    above = scalings.least(M, tolerance=tolerance)
    lower, delta = lower_bound(M, blocks, starts=starts, above=above)
    return MuBounds(above.level, min(lower, above.level), delta, above.D_left, above.D_right, above.G)


def check_blocks(function: str, shape: tuple[int, ...], blocks: Sequence[DeltaBlock]) -> None:
    if len(shape) != 2 or not blocks or not all(isinstance(b, DeltaBlock) for b in blocks):
        raise ArgumentError(f"{function}: expected a matrix and a list of DeltaBlock")
    rows, columns = sum(b.rows for b in blocks), sum(b.columns for b in blocks)
    if shape != (columns, rows):
        raise ArgumentError(
            f"{function}: M has shape {shape}, and the blocks take {columns} outputs z and give {rows} inputs w"
        )


_SIZES = 24
"""of a perturbation, along one direction"""
_ITERATIONS, _PATIENCE = 150, 50
"""of power, at most; and, with real blocks, until those end whose gain still changes by 0.1 %: they hardly ever settle"""
_NEAR = 1e-4
"""relative: nearer than that to the bound from above, nothing else is tried"""
_REACHES = (1.0, 1.0, 0.7, 0.5, 0.3, 0.1, 0.03, 3e-3, 1e-5, 1e-8)
"""how far real numbers may move in each step: the equation holds after it but for its square"""
_FOLLOWED = 0.5
"""of these moves: up to here one eigenvalue is followed, before it is looked for among all"""
_PROMISING = 0.8
"""of the best found: an eigenvalue below is not followed"""


_ASCENTS, _UPHILL = 3, 20
"""perturbations from which a large gain is looked for, and steps of each"""
_PLACES = 10
"""frequencies, at most, at which perturbations that are not real are begun"""
_PARTS = (1.0, 0.3, 0.1, 0.03, 0.01)
"""of the way to the next perturbation"""


def lower_bound(
    M: Array,
    blocks: Sequence[DeltaBlock],
    *,
    starts: int = 12,
    seed: int = 0,
    above: UpperBound | None = None,
) -> tuple[float, Array | None]:
    """The largest 1/|Delta| found with det(1 - M Delta) = 0, and that Delta; (0, None) where none was found."""
    known = None if above is None else [above]
    sizes, deltas = lower_bounds(M[None], blocks, starts=starts, seed=seed, above=known)
    return float(sizes[0]), deltas[0] if sizes[0] > 0 else None


def lower_bounds(
    M: Array,
    blocks: Sequence[DeltaBlock],
    *,
    starts: int = 12,
    seed: int = 0,
    above: Sequence[UpperBound] | None = None,
) -> tuple[Array, Array]:
    """`lower_bound` of many matrices (number, outputs, inputs); Delta is zero where none was found. `above` are bounds from
    above, if known: their eigenvectors are tried first, and where they do, nothing else is."""
    rng = np.random.default_rng(seed)
    structure = Scalings(blocks)
    f, _, m = M.shape
    best, delta = np.zeros(f), np.zeros((f, m, M.shape[1]), complex)
    if not f or not starts:
        return best, delta
    b = np.linalg.svd(M)[2][:, 0].conj() if above is None else _worst_inputs(M, above)
    q = _real_parts(structure, M, b)
    at = np.arange(f)
    if above is not None:
        _improve(best, delta, M, *_unit_blocks(structure, q, _times(M, b), b))
        at = np.flatnonzero(best < (1 - _NEAR) * np.array([x.level for x in above]))
        if not len(at):
            return best, delta
    others = rng.normal(size=(starts - 1, m, 2)) @ np.array([1, 1j])
    vectors = np.concatenate([b[at, None], np.broadcast_to(others, (len(at), *others.shape))], axis=1)
    drawn = rng.uniform(-1, 1, size=(starts - 1, len(blocks)))
    numbers = np.concatenate([q[at, None], np.broadcast_to(drawn, (len(at), *drawn.shape))], axis=1)
    many, q = np.repeat(M[at], starts, axis=0), numbers.reshape(-1, len(blocks))
    if all(block.kind == "real" for block in blocks):
        real, other = _unit_blocks(
            structure, _real_ascent(many, structure, q), np.zeros((0, 0)), np.zeros((0, 0))
        )
    else:
        real, other = _power_iteration(many, structure, vectors.reshape(-1, m), q)
    found, made = best[at], delta[at]
    _improve(found, made, M[at], real, other)
    best[at], delta[at] = found, made
    return best, delta


def _worst_inputs(M: Array, above: Sequence[UpperBound]) -> Array:
    """The eigenvectors of the bounds from above, x with (M^H D M + j (G M - M^H G)) x = b^2 D x. Where b^2 is a simple
    eigenvalue, x = Delta M x for a Delta of size 1/b: mu is the bound."""
    D_left, D_right, G = (np.array([getattr(x, name) for x in above]) for name in ("D_left", "D_right", "G"))
    half = 1j * (G @ M)
    A = M.conj().swapaxes(1, 2) @ D_left @ M + half + half.conj().swapaxes(1, 2)
    T = inverse_root(D_right)[0].conj().swapaxes(1, 2)
    return _times(T, np.linalg.eigh(T.conj().swapaxes(1, 2) @ A @ T)[1][:, :, -1])


def _real_parts(structure: Scalings, M: Array, b: Array) -> Array:
    """The numbers q nearest to b = q M b at the real blocks, the largest one of size one."""
    a, q = _times(M, b), np.zeros((len(M), len(structure.blocks)))
    for k, (block, w, z) in enumerate(zip(structure.blocks, structure.w, structure.z, strict=True)):
        if block.kind == "real":
            size = np.sum(np.abs(a[:, z]) ** 2, axis=1)
            q[:, k] = _dot(a[:, z], b[:, w]).real / np.where(size > 0, size, 1.0)
    largest = np.abs(q).max(axis=1, keepdims=True)
    return q / np.where(largest > 0, largest, 1.0)


def _improve(best: Array, delta: Array, M: Array, real: Array, other: Array) -> None:
    """Make the unit blocks (some for each matrix) exact, the most promising ones, and keep those that are better."""
    f, p, m = M.shape
    starts = len(real) // f
    values = np.linalg.eigvals(M[:, None] @ (real + other).reshape(f, starts, m, p))
    order = np.argsort(-np.abs(values), axis=2)[:, :, :3]
    values = np.take_along_axis(values, order, axis=2).reshape(f, -1)
    if not np.any(other):
        values = np.where(np.abs(values.imag) <= 1e-9 * np.abs(values), values, 0.0)
    for _ in range(values.shape[1]):  # the most promising one of each matrix, until none is left
        k = np.argmax(np.abs(values), axis=1)
        value = values[np.arange(f), k]
        values[np.arange(f), k] = 0
        at = np.flatnonzero(np.abs(value) > np.maximum(_PROMISING * best, 0.0))
        if not len(at):
            break
        Q = at * starts + k[at] // order.shape[2]
        made, good = _singular(M[at], real[Q], other[Q], value[at])
        size = 1 / np.where(good, np.linalg.norm(np.where(good[:, None, None], made, 1), 2, axis=(1, 2)), 1.0)
        good &= size > best[at]
        best[at[good]], delta[at[good]] = size[good], made[good]


def _real_ascent(M: Array, structure: Scalings, q: Array) -> Array:
    """Numbers q in [-1, 1] for which M Q has a real eigenvalue that is, to first order, as large as it gets.

    With the slopes g, h of its real and imaginary part (left and right eigenvector), each step solves

        max g.d    with    h.d = - Im,    q + d in [-1, 1],    |d| <= reach

    which is a matter of sorting g/h: numbers go from one bound to the other in that order until the equation holds.
    """
    n, p, m = M.shape
    q = q.copy()
    into = np.zeros((len(structure.blocks), m, p))
    for k, (w, z) in enumerate(zip(structure.w, structure.z, strict=True)):
        into[k, w, z] = np.eye(structure.blocks[k].rows)
    value = np.zeros(n, complex)
    for step, reach in enumerate(_REACHES):
        X = M @ np.tensordot(q, into, axes=1)
        if reach > _FOLLOWED:
            values = np.linalg.eigvals(X)
            merit = (
                np.abs(values.real) - np.abs(values.imag) if step == 0 else -np.abs(values - value[:, None])
            )
            value = values[np.arange(n), np.argmax(merit, axis=1)]
        value, x, y = _eigenvectors(X, value)
        slope = ((y[:, None] @ M)[:, None] @ (into @ x[:, None, :, None]))[..., 0, 0]
        slope *= np.where(value.real < 0, -1.0, 1.0)[:, None]
        excess = value.imag * np.where(value.real < 0, -1.0, 1.0)
        g, h = slope.real, slope.imag
        low, high = np.maximum(-1 - q, -reach), np.minimum(1 - q, reach)
        bound = np.abs(h) > 1e-9 * np.abs(g)
        top = np.where(np.where(bound, h, g) > 0, high, low)
        bottom = np.where(bound, np.where(h > 0, low, high), top)
        order = np.argsort(np.where(bound, g / np.where(bound, h, 1.0), np.inf), axis=1)
        falls = np.take_along_axis(h * (top - bottom), order, axis=1)
        left = np.sum(h * top, axis=1)[:, None] + excess[:, None] - (np.cumsum(falls, axis=1) - falls)
        part = np.clip(left / np.where(falls > 0, falls, 1.0), 0.0, 1.0)
        turned = np.empty_like(part)
        np.put_along_axis(turned, order, part, axis=1)
        d = top + turned * (bottom - top)
        value = value + np.sum(slope * d, axis=1) * np.where(value.real < 0, -1.0, 1.0)
        q = q + d
    return q


def _eigenvectors(X: Array, near: Array) -> tuple[Array, Array, Array]:
    """Of each matrix the eigenvalue next to `near` with its vectors, x right and y left: (X - near)^-4 is nearly x y^T."""
    size = np.linalg.norm(X, axis=(1, 2))
    off = near + 1e-9 * np.where(size > 0, size, 1.0)  # else it is singular where `near` is right
    try:
        inverse = np.linalg.inv(X - off[:, None, None] * np.eye(X.shape[1]))
    except np.linalg.LinAlgError:  # one of them is singular nevertheless
        inverse = np.linalg.pinv(X - off[:, None, None] * np.eye(X.shape[1]))
    for _ in range(2):
        inverse = inverse / np.abs(inverse).max(axis=(1, 2), keepdims=True)
        inverse = inverse @ inverse
    n, rows = X.shape[1], np.arange(len(X))
    i, j = np.divmod(np.argmax(np.abs(inverse).reshape(len(X), -1), axis=1), n)
    x, y = _unit(inverse[rows, :, j]), inverse[rows, i]
    product = np.sum(y * x, axis=1)
    y = y / np.where(product != 0, product, 1.0)[:, None]
    return np.sum(y * _times(X, x), axis=1), x, y


def real_crossing(
    M: StateSpace, blocks: Sequence[DeltaBlock], *, least: float, largest: float
) -> tuple[float, float, Array]:
    """(1/|Delta|, frequency, Delta) of the smallest real Delta found that gives the stable, continuous system M, closed by
    w = Delta z, a pole on the imaginary axis, or at infinity; zeros where there is none with 1/|Delta| between `least` and
    `largest`."""
    A, B, C, D = M.matrices
    p, m = D.shape
    structure = Scalings(blocks)
    real = [k for k, b in enumerate(blocks) if b.kind == "real"]
    best, frequency, delta = least, 0.0, np.zeros((m, p))
    if not real or not len(A) or not 0 < least < largest:
        return 0.0, frequency, delta
    n = len(real)
    if n <= 3:
        ways = np.array(list(itertools.product((-1, 0, 1), repeat=n)))
    else:
        ways = np.vstack([np.random.default_rng(0).choice((-1, 1), size=(24, n)), np.eye(n), -np.eye(n)])
    for way in ways:
        S = np.zeros((m, p))
        for k, sign in zip(real, way, strict=True):
            S[structure.w[k], structure.z[k]] = sign * np.eye(blocks[k].rows)
        if not np.any(S):
            continue

        def poles(t: Array, S: Array = S) -> Array:
            closed = np.linalg.solve(
                np.eye(p) - t[:, None, None] * (D @ S), np.broadcast_to(C, (len(t), *C.shape))
            )
            return np.linalg.eigvals(A + t[:, None, None] * (B @ S @ closed))

        sizes = np.geomspace(1 / largest, 1 / best, _SIZES)
        try:
            unstable = poles(sizes).real.max(axis=1) > 0
            if not np.any(unstable[1:]):
                continue
            k = int(np.argmax(unstable[1:])) + 1
            if unstable[k - 1]:
                continue
            t = float(
                scipy.optimize.brentq(
                    lambda x: float(poles(np.array([x])).real.max()), sizes[k - 1], sizes[k], rtol=1e-13
                )
            )
        except np.linalg.LinAlgError:  # 1 - D Delta is singular at one of the sizes
            continue
        values = poles(np.array([t]))[0]
        best, frequency, delta = 1 / t, float(abs(values[np.argmax(values.real)].imag)), t * S + 0.0
        if np.linalg.svd(np.eye(p) - D @ delta, compute_uv=False)[-1] < 1e-8:
            frequency = np.inf  # the pole goes to the other side through infinity
    return (best, frequency, delta) if np.any(delta) else (0.0, 0.0, delta)


def reached_gain(M: StateSpace, blocks: Sequence[DeltaBlock], near: Array | None = None) -> float:
    """A gain under some constant perturbation of size one, infinite where that makes the loop unstable.

    At the frequency of the largest gain, of all perturbations the Delta that makes Re(a^H Delta b) large is gone towards, a
    and b the singular vectors of the gain as the blocks meet them; from `near`, or from the corners of the real blocks, and
    from what that Delta is, without others, at some frequencies.
    """
    structure = Scalings(blocks)
    A, B, C, D = M.matrices
    z, w = structure.p, structure.m
    real = [k for k, b in enumerate(blocks) if b.kind == "real"]
    B1, B2, C1, C2 = B[:, :w], B[:, w:], C[:z], C[z:]

    def closed(delta: Array) -> tuple[Array, Array, Array, Array]:
        loop = delta @ np.linalg.inv(np.eye(z) - D[:z, :w] @ delta)
        E, F = np.vstack([B1, D[z:, :w]]) @ loop, np.hstack([C1, D[:z, w:]])
        whole = np.block([[A, B2], [C2, D[z:, w:]]]) + E @ F
        n = len(A)
        return whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:]

    def gain(delta: Array) -> tuple[float, float]:
        try:
            matrices = closed(delta)
        except np.linalg.LinAlgError:
            return np.inf, 0.0
        if len(A) and np.linalg.eigvals(matrices[0]).real.max() >= 0:
            return np.inf, 0.0
        found = peak_gain(*matrices, tolerance=1e-6)
        return found.gain, found.frequency

    def uphill(delta: Array, at: float) -> Array:
        X = D.astype(complex) if np.isinf(at) else ResponseEvaluator(A, B, C, D)(np.array([1j * at]))[0]
        inner = np.linalg.inv(np.eye(z) - X[:z, :w] @ delta)
        U, _, Vh = np.linalg.svd(X[z:, w:] + X[z:, :w] @ delta @ inner @ X[:z, w:])
        b = inner @ X[:z, w:] @ Vh[0].conj()
        a = (U[:, 0].conj() @ X[z:, :w] @ np.linalg.inv(np.eye(w) - delta @ X[:z, :w])).conj()
        q = np.zeros(len(blocks))
        for k in real:
            q[k] = np.sign(np.vdot(a[structure.w[k]], b[structure.z[k]]).real)
        numbers, others = _unit_blocks(structure, q[None], b[None], a[None])
        return np.asarray((numbers + others)[0])

    corners = (
        np.array(list(itertools.product((-1, 1), repeat=len(real))))
        if len(real) <= 4
        else np.random.default_rng(0).choice((-1, 1), size=(16, len(real)))
    )
    begun = [np.zeros((w, z))]
    for corner in corners if real else []:
        delta = np.zeros((w, z))
        for k, sign in zip(real, corner, strict=True):
            delta[structure.w[k], structure.z[k]] = sign * np.eye(blocks[k].rows)
        begun.append(delta)
    if len(real) < len(blocks):
        sizes = np.unique(np.abs(np.linalg.eigvals(A)))
        begun += [uphill(begun[0], w) for w in [0.0, *sizes[:: 1 + len(sizes) // _PLACES]]]
    if near is not None:
        begun = [near]
    tried = sorted(((*gain(delta), k) for k, delta in enumerate(begun)), reverse=True)
    best = 0.0
    for size, at, k in tried[:_ASCENTS]:
        delta = begun[k]
        for _ in range(_UPHILL):
            if np.isinf(size):
                return np.inf
            way = uphill(delta, at) - delta
            value, where, part = max((*gain(delta + part * way), part) for part in _PARTS)
            if value <= size * (1 + 1e-4):
                break
            size, at, delta = value, where, delta + part * way
        best = max(best, size)
    return float(best)


def _power_iteration(M: Array, structure: Scalings, b: Array, q: Array) -> tuple[Array, Array]:
    """Unit blocks, in one matrix of the real ones and one of the others (inputs x outputs).

    b and w are over the inputs, a and z over the outputs:   a ~ M b,   z = Q^H w,   w ~ M^H z,   b = Q a.
    """
    n, p, _ = M.shape
    adjoint = np.ascontiguousarray(M.conj().swapaxes(1, 2))
    b = _unit(b)
    parts = _Parts(structure)
    a, w, q, all_q = np.zeros((n, p), complex), b.copy(), q[:, parts.numbers], q.copy()
    before, going = np.zeros(n), np.arange(n)
    for step in range(_ITERATIONS):
        forward = _times(M[going], b[going])
        beta = np.linalg.norm(forward, axis=1)
        going, forward, beta = (x[beta > 0] for x in (going, forward, beta))
        a[going] = forward / beta[:, None]
        a_, w_, b_, q_ = a[going], w[going], b[going], q[going]
        z_ = parts.passed(q_, a_, w_, b_, True)
        back = _times(adjoint[going], z_)
        moved = np.any(back != 0, axis=1)
        w_ = np.where(moved[:, None], _unit(back), w_)
        new = parts.passed(q_, a_, w_, b_, False)
        b[going] = np.where(np.any(new != 0, axis=1)[:, None], _unit(new), b_)
        w[going], q[going] = w_, q_
        change = np.abs(beta - before[going]) / beta
        ends = ~moved | ((step > 10) & (change < 1e-11))
        if np.any(parts.real):
            ends |= (step >= _PATIENCE) & (change > 1e-3)
        before[going] = beta
        going = going[~ends]
        if not len(going):
            break
    all_q[:, parts.numbers] = q
    return _unit_blocks(structure, all_q, a, w)


def _unit_blocks(structure: Scalings, q: Array, a: Array, w: Array) -> tuple[Array, Array]:
    """Blocks of size one (q at the real ones) that turn a, over the outputs, towards w, over the inputs."""
    real = np.zeros((len(q), structure.m, structure.p))
    other = real + 0j
    for k, (block, at_w, at_z) in enumerate(zip(structure.blocks, structure.w, structure.z, strict=True)):
        if block.kind == "real":
            real[:, at_w, at_z] = q[:, k, None, None] * np.eye(block.rows)
        elif block.kind == "complex":
            other[:, at_w, at_z] = _phase(_dot(a[:, at_z], w[:, at_w]))[:, None, None] * np.eye(block.rows)
        else:
            other[:, at_w, at_z] = _unit(w[:, at_w])[:, :, None] * _unit(a[:, at_z]).conj()[:, None, :]
    return real, other


class _Parts:
    """Where the blocks are in vectors: numbers, the real ones of them, and full blocks; `sum` adds over each block."""

    def __init__(self, structure: Scalings) -> None:
        def indices(places: list[slice], which: list[int]) -> tuple[Array, Array]:
            at = np.array(
                [(i, k) for k, j in enumerate(which) for i in range(places[j].start, places[j].stop)]
            )
            at = at.reshape(-1, 2).astype(int)
            return at[:, 0], (at[:, 1:] == np.arange(len(which))).astype(float)

        kinds = [block.kind for block in structure.blocks]
        self.numbers = [k for k, kind in enumerate(kinds) if kind in ("real", "complex")]
        self.real = np.array([kinds[k] == "real" for k in self.numbers], bool)
        full = [k for k in range(len(kinds)) if k not in self.numbers]
        (self.w, self.sum), (self.z, _) = (indices(x, self.numbers) for x in (structure.w, structure.z))
        (self.full_w, self.sum_w), (self.full_z, self.sum_z) = (
            indices(x, full) for x in (structure.w, structure.z)
        )

    def passed(self, q: Array, a: Array, w: Array, b: Array, backward: bool) -> Array:
        """z = Q^H w, or b = Q a, with the Q that a and w call for; that of real blocks goes into q."""
        made = np.zeros_like(a if backward else b)
        if self.numbers:
            here, there = a[:, self.z], w[:, self.w]
            inner = (here.conj() * there) @ self.sum
            factor = _phase(inner.conj() if backward else inner)
            if np.any(self.real):
                size, ratio = (np.sqrt((x.real**2 + x.imag**2) @ self.sum) for x in (here, b[:, self.w]))
                ratio = ratio / np.where(size > 0, size, 1.0)
                new = np.clip(np.where(q < 0, -ratio, ratio) + inner.real, -1.0, 1.0)
                q[:, self.real] = factor[:, self.real] = new[:, self.real]
            made[:, self.z if backward else self.w] = (factor @ self.sum.T) * (there if backward else here)
        if len(self.full_w):
            here, there = a[:, self.full_z], w[:, self.full_w]
            size, other = np.sqrt(np.abs(here) ** 2 @ self.sum_z), np.sqrt(np.abs(there) ** 2 @ self.sum_w)
            if backward:
                made[:, self.full_z] = ((other / np.where(size > 0, size, 1.0)) @ self.sum_z.T) * here
            else:
                made[:, self.full_w] = ((size / np.where(other > 0, other, 1.0)) @ self.sum_w.T) * there
        return made


def _singular(M: Array, real: Array, other: Array, value: Array) -> tuple[Array, Array]:
    """t (Q_real + exp(j phi) Q_other) with det(1 - M Delta) = 0: phi makes an eigenvalue of M Q real, t is one over it; and
    where that succeeded."""
    if not np.any(other):
        return real / value.real[:, None, None] + 0j, np.ones(len(M), bool)
    value, phi = value.copy(), np.zeros(len(M))
    step = -np.angle(value)
    left = np.arange(len(M))
    for _ in range(30):
        before, angle_before = phi[left], np.angle(value[left])
        phi[left] = before + step[left]
        Q = real[left] + np.exp(1j * phi[left])[:, None, None] * other[left]
        now = np.linalg.eigvals(M[left] @ Q)
        nearest = np.argmin(np.abs(now - np.abs(value[left])[:, None]), axis=1)
        value[left] = now[np.arange(len(left)), nearest]
        angle, moved = np.angle(value[left]), phi[left] - before
        slope = np.where(moved != 0, (angle - angle_before) / np.where(moved != 0, moved, 1.0), 1.0)
        step[left] = np.clip(-angle / np.where(slope != 0, slope, 1.0), -0.5, 0.5)
        left = left[np.abs(angle) >= 1e-14]
        if not len(left):
            break
    good = (np.abs(value) > 0) & (np.abs(np.angle(value)) < 1e-10)
    size = np.where(good, value.real, 1.0)
    delta = (real + np.exp(1j * phi)[:, None, None] * other) / size[:, None, None]
    rest = np.linalg.svd(np.eye(M.shape[1]) - M @ delta, compute_uv=False)[:, -1]
    return delta, good & (rest < 1e-8)


def _times(M: Array, x: Array) -> Array:
    return np.asarray((M @ x[:, :, None])[:, :, 0])


def _dot(x: Array, y: Array) -> Array:
    """x^H y"""
    return np.asarray(np.sum(x.conj() * y, axis=1))


def _phase(x: Array) -> Array:
    size = np.abs(x)
    there = size > 1e-300
    return np.where(there, x / np.where(there, size, 1.0), 1.0)


def _unit(x: Array) -> Array:
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.where(size > 0, size, 1.0))
