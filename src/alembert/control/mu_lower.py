"""Bounds of the structured singular value from below, for many matrices and many starts at once.

A power iteration (Packard, Fan, Doyle 1988; Young, Doyle 1990) looks for unit blocks Q for which M Q has a large real
eigenvalue. The secant method on the phase of its complex blocks then makes det(1 - M Delta) = 0 exact: the perturbation is
part of the answer, and checked.

Real numbers alone make a loop unstable at single frequencies, which a grid does not meet. There the poles of the perturbed
loop are followed instead, with all real blocks growing at once along some directions, up to where the first one crosses the
axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy

from alembert.control.mu_upper import Scalings

if TYPE_CHECKING:
    from alembert.control.mu_bounds import DeltaBlock
    from alembert.control.statespace import StateSpace

Array = np.ndarray
_SIZES = 24
"""of a perturbation, along one direction"""
_ITERATIONS, _PATIENCE = 150, 50
"""of power, at most; and, with real blocks, until those end whose gain still changes by 0.1 %: they hardly ever settle"""
_FIRST, _NEAR = 2, 1e-4
"""starts that are always made; and how near to the bound from above they have to come, relative, to be the last"""
_PROMISING = 0.8
"""of the best found: an eigenvalue below is not followed"""


def lower_bound(
    M: Array, blocks: Sequence[DeltaBlock], *, starts: int = 12, seed: int = 0
) -> tuple[float, Array | None]:
    """The largest 1/|Delta| found with det(1 - M Delta) = 0, and that Delta; (0, None) where none was found."""
    sizes, deltas = lower_bounds(M[None], blocks, starts=starts, seed=seed)
    return float(sizes[0]), deltas[0] if sizes[0] > 0 else None


def lower_bounds(
    M: Array, blocks: Sequence[DeltaBlock], *, starts: int = 12, seed: int = 0, above: Array | None = None
) -> tuple[Array, Array]:
    """`lower_bound` of many matrices (number, outputs, inputs); Delta is zero where none was found. `above` are bounds from
    above, if known: where the first starts come near, there are no more."""
    if above is not None and starts > _FIRST:
        best, delta = lower_bounds(M, blocks, starts=_FIRST, seed=seed)
        at = np.flatnonzero(best < (1 - _NEAR) * above)
        more, others = lower_bounds(M[at], blocks, starts=starts - _FIRST, seed=seed + 1)
        better = more > best[at]
        best[at[better]], delta[at[better]] = more[better], others[better]
        return best, delta
    rng = np.random.default_rng(seed)
    structure = Scalings(blocks)
    f, p, m = M.shape
    best, delta = np.zeros(f), np.zeros((f, m, p), complex)
    if not f or not starts:
        return best, delta
    first = np.linalg.svd(M)[2][:, :1].conj()
    others = rng.normal(size=(starts - 1, m, 2)) @ np.array([1, 1j])
    b = np.concatenate([first, np.broadcast_to(others, (f, *others.shape))], axis=1).reshape(-1, m)
    q = np.tile(rng.uniform(-1, 1, size=(starts, len(blocks))), (f, 1))
    real, other = _power_iteration(np.repeat(M, starts, axis=0), structure, b, q)
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
    return best, delta


def real_crossing(
    M: StateSpace, blocks: Sequence[DeltaBlock], *, least: float, largest: float
) -> tuple[float, float, Array]:
    """(1/|Delta|, frequency, Delta) of the smallest real Delta found that gives the stable, continuous system M, closed by
    w = Delta z, a pole on the imaginary axis; zeros where there is none with 1/|Delta| between `least` and `largest`."""
    A, B, C, D = M.matrices
    p, m = D.shape
    structure = Scalings(blocks)
    real = [k for k, b in enumerate(blocks) if b.kind == "real"]
    best, frequency, delta = least, 0.0, np.zeros((m, p))
    if not real or not len(A) or not 0 < least < largest:
        return 0.0, frequency, delta
    ways = list(itertools.product((-1, 0, 1), repeat=len(real))) if len(real) <= 3 else []
    if not ways:
        corners = np.random.default_rng(0).choice((-1, 1), size=(24, len(real)))
        ways = [tuple(int(x) for x in row) for row in (*corners, *np.eye(len(real)), *-np.eye(len(real)))]
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
    return (best, frequency, delta) if np.any(delta) else (0.0, 0.0, delta)


def _power_iteration(M: Array, structure: Scalings, b: Array, q: Array) -> tuple[Array, Array]:
    """Unit blocks, in one matrix of the real ones and one of the others (inputs x outputs).

    b and w are over the inputs, a and z over the outputs:   a ~ M b,   z = Q^H w,   w ~ M^H z,   b = Q a.
    """
    n, p, m = M.shape
    adjoint = np.ascontiguousarray(M.conj().swapaxes(1, 2))
    b = _unit(b)
    a, w, q = np.zeros((n, p), complex), b.copy(), q.copy()
    before, going = np.zeros(n), np.arange(n)
    restless = any(block.kind == "real" for block in structure.blocks)
    for step in range(_ITERATIONS):
        forward = _times(M[going], b[going])
        beta = np.linalg.norm(forward, axis=1)
        going, forward, beta = (x[beta > 0] for x in (going, forward, beta))
        a[going] = forward / beta[:, None]
        a_, w_, b_, q_ = a[going], w[going], b[going], q[going]
        z_ = _passed(structure, q_, a_, w_, b_, True)
        back = _times(adjoint[going], z_)
        moved = np.any(back != 0, axis=1)
        w_ = np.where(moved[:, None], _unit(back), w_)
        new = _passed(structure, q_, a_, w_, b_, False)
        b[going] = np.where(np.any(new != 0, axis=1)[:, None], _unit(new), b_)
        w[going], q[going] = w_, q_
        change = np.abs(beta - before[going]) / beta
        ends = ~moved | ((step > 10) & (change < 1e-11))
        if restless:
            ends |= (step >= _PATIENCE) & (change > 1e-3)
        before[going] = beta
        going = going[~ends]
        if not len(going):
            break
    real, other = np.zeros((n, m, p)), np.zeros((n, m, p), complex)
    for k, (block, at_w, at_z) in enumerate(zip(structure.blocks, structure.w, structure.z, strict=True)):
        if block.kind == "real":
            real[:, at_w, at_z] = q[:, k, None, None] * np.eye(block.rows)
        elif block.kind == "complex":
            other[:, at_w, at_z] = _phase(_dot(a[:, at_z], w[:, at_w]))[:, None, None] * np.eye(block.rows)
        else:
            other[:, at_w, at_z] = _unit(w[:, at_w])[:, :, None] * _unit(a[:, at_z]).conj()[:, None, :]
    return real, other


def _passed(structure: Scalings, q: Array, a: Array, w: Array, b: Array, backward: bool) -> Array:
    """z = Q^H w, or b = Q a, with the Q that a and w call for; that of real blocks goes into q."""
    made = np.zeros_like(a if backward else b)
    for k, (block, at_w, at_z) in enumerate(zip(structure.blocks, structure.w, structure.z, strict=True)):
        here, there = a[:, at_z], w[:, at_w]
        if block.kind == "real":
            size = np.linalg.norm(here, axis=1)
            ratio = np.linalg.norm(b[:, at_w], axis=1) / np.where(size > 0, size, 1.0)
            q[:, k] = np.clip(np.where(q[:, k] < 0, -ratio, ratio) + _dot(here, there).real, -1.0, 1.0)
            part = q[:, k, None] * (there if backward else here)
        elif block.kind == "complex":
            part = (
                _phase(_dot(there, here))[:, None] * there
                if backward
                else _phase(_dot(here, there))[:, None] * here
            )
        elif backward:
            part = np.linalg.norm(there, axis=1)[:, None] * _unit(here)
        else:
            part = np.linalg.norm(here, axis=1)[:, None] * _unit(there)
        made[:, at_z if backward else at_w] = part
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
