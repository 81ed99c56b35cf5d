"""Hessians of large models, from products along all directions or from those of inverse dynamics.

With g the gradient of weight . result, its changes along each direction in turn, which the tangent of the adjoint gives
(`alembert.algorithms.composition_derivatives`), are the rows of D in

    H = (D + D^T) / 2,    D_ij = d/ds g_j(x + s e_i)                                                  (1)

For configurations x + s e_i is integrate(q, s e_i). D is not symmetric where turns about different axes do not commute; the
second derivative of f(integrate(q, e)) with respect to e is its symmetric part, since t -> integrate(q, t e) has the
constant velocity e.

Forward dynamics a(x), x = (q, v, tau, wrenches), makes inverse dynamics give tau. Differentiating that twice, in any chart
and with mu = M^-1 weight, for G the Hessian of mu . inverse dynamics at a,

    H = -Z^T G Z,    Z = d(q, v, a, wrenches)/dx                                                      (2)

of which the rows for a are the derivatives of forward dynamics, and G has blocks with a for q only: (2) is a sum over those.
Hybrid dynamics, with weights w of the accelerations and e of the efforts, free speeds f and prescribed p, has (2) with

    mu_f = M_ff^-1 (w_f + M_fp e_p),    mu_p = -e_p                                                   (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import kernels
from alembert.engine.kernel import Kernel

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray


class RolledHessian:
    """(1): called like the kernel `front` of the unrolled Hessian, which is never compiled."""

    def __init__(self, front: Kernel, inner: Kernel, changes: Sequence[int]) -> None:
        self.arguments, self.results, self.name = front.arguments, front.results, front.name
        self._front, self._inner, self._changes = front, inner, changes

    def checked(self, *given: Any) -> tuple[Array, None]:
        """As of kernels: whether the results are finite is not found out on the way."""
        return self(*given), None

    def __call__(self, *given: Any) -> Array:
        arrays = self._front._inputs(given)
        self._front._batch(arrays)
        count = sum(self._changes)
        own = [np.expand_dims(x, x.ndim - len(a.shape)) for x, a in zip(arrays, self.arguments, strict=True)]
        directions = np.split(np.eye(count), np.cumsum(self._changes)[:-1], axis=1)
        rest = self._inner.arguments[len(own) + len(directions) :]
        moved = [
            d.reshape(count, *a.shape)
            for d, a in zip(directions, self._inner.arguments[len(own) :], strict=False)
        ]
        found = self._inner(*own, *moved, *(np.zeros(a.shape) for a in rest))
        parts = found if isinstance(found, tuple) else (found,)
        D = np.concatenate(
            [
                x.reshape(*x.shape[: x.ndim - len(r.shape)], r.size)
                for x, r in zip(parts, self._inner.results, strict=True)
            ],
            axis=-1,
        )
        return (D + np.swapaxes(D, -1, -2)) / 2


class ThroughInverseDynamics:
    """(2) of forward or hybrid dynamics: called like the kernel `front` of the unrolled Hessian, which is never compiled."""

    def __init__(self, front: Kernel, model: Model, name: str, frames: tuple[str, ...]) -> None:
        self.arguments, self.results, self.name = front.arguments, front.results, front.name
        self._front, self._nv, self._frames = front, model.nv, len(frames)
        self._hybrid = name == "hybrid_dynamics"
        # loops and the derivatives of inverse dynamics: what forward dynamics has of its own takes longer to compile
        self._forward = model.compute.kernel(name, wrenches=bool(frames), lowering="rolled")
        self._slopes = model.compute.kernel("inverse_dynamics_derivatives", wrenches=bool(frames))
        if frames:
            self._forward, self._slopes = (
                kernels.with_wrenches(model, kernel, frames) for kernel in (self._forward, self._slopes)
            )
            self._pushes = model.compute.directional_kernel("jvp", "inverse_dynamics", wrenches=frames)
        self._inverse: Any = model.compute.directional_kernel(
            "hessian", "inverse_dynamics", wrenches=frames, of_any_size=True
        )

    def checked(self, *given: Any) -> tuple[Array, None]:
        return self(*given), None

    def __call__(self, *given: Any) -> Array:
        arrays = self._front._inputs(given)
        self._front._batch(arrays)
        own, weights = (5, 2) if self._hybrid else (3, 1)
        (q, v), others = arrays[:2], arrays[own:-weights]
        found = self._forward(*arrays[:-weights])
        a = found[0] if self._hybrid else found
        tau_q, tau_v, M = self._slopes(q, v, a, *others)
        if self._hybrid:
            free = arrays[4]
            mu, by_tau, by_given = _respond_hybrid(M, free, *arrays[-2:])
            more = [by_given, np.zeros_like(by_given)]
        else:
            by_tau, more = _inverse(M), []
            mu = (by_tau @ arrays[-1][..., None])[..., 0]
        G = self._inverse(q, v, a, *others, mu)
        slopes = [-by_tau @ tau_q, -by_tau @ tau_v, by_tau, *more]
        if self._frames:
            slopes.append(-by_tau @ self._efforts(q, v, a, others))
        return self._assembled(G, np.concatenate(slopes, axis=-1), own)

    def _assembled(self, G: Array, a_x: Array, own: int) -> Array:
        """(2), from the derivatives of the accelerations with respect to everything."""
        n, size = self._nv, a_x.shape[-1]
        H = np.zeros((*G.shape[:-2], size, size))
        through = G[..., :n, 2 * n : 3 * n] @ a_x
        H[..., :n, :] = -through
        H[..., :n] -= np.swapaxes(through, -1, -2)
        H[..., :n, :n] = (H[..., :n, :n] + np.swapaxes(H[..., :n, :n], -1, -2)) / 2  # to the last bit
        states = slice(0, 2 * n)
        parts = [(states, states)]  # here and in G
        if self._frames:
            parts.append((slice(own * n, size), slice(3 * n, G.shape[-1])))
        for rows, rows_there in parts:
            for columns, columns_there in parts:
                H[..., rows, columns] -= G[..., rows_there, columns_there]
        return H

    def _efforts(self, q: Array, v: Array, a: Array, others: Sequence[Array]) -> Array:
        """dtau/d(wrenches) of inverse dynamics, (..., nv, 6 frames)."""
        count, zero = 6 * self._frames, np.zeros(self._nv)
        along = [
            *(zero,) * 3,
            *np.split(np.eye(count), self._frames, axis=1),
            *(np.zeros(x.shape[-1]) for x in others[self._frames :]),
        ]
        _, change = self._pushes(*(x[..., None, :] for x in (q, v, a, *others)), *along)
        return np.swapaxes(change, -1, -2)


def _inverse(M: Array) -> Array:
    """NaN where there is none, which callers explain."""
    try:
        return np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return np.full_like(M, np.nan)


def _respond_hybrid(M: Array, free: Array, w: Array, e: Array) -> tuple[Array, Array, Array]:
    """(3), and the derivatives of the accelerations with respect to tau and to the given ones."""
    f, p = free[..., None], 1 - free
    held = p[..., None] * np.eye(M.shape[-1])
    by_tau = _inverse(f * M * free[..., None, :] + held) - held
    mu = (by_tau @ (w[..., None] + M @ (p * e)[..., None]))[..., 0] - p * e
    return mu, by_tau, held - by_tau @ M * p[..., None, :]
