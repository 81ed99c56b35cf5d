"""Forward dynamics by other routes than the sweep, for comparison and teaching: M a = tau - bias, solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel
    from alembert.model import Model

Array = np.ndarray
SWEEP = "sweep"
Failures = list[tuple[Array, str]]
"""Which states have no result, and why."""
_EPS = float(np.finfo(float).eps)
_INDEFINITE = "the mass matrix is not positive definite (no mass, or a negative one, moves with some joint)"


def forward_dynamics(
    model: Model, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any, method: str, out: Any
) -> Array:
    """M a = tau - bias, solved by `method`; arguments, results and failures are those of the sweep."""
    name = "forward_dynamics"
    check(method)
    if not model.nv:
        return model.compute.evaluate(name, (q, v, tau), wrenches=wrenches, parameters=parameters, out=out)
    forces = [model.compute.wrench_array(name, wrenches, parameters)] if wrenches is not None else []
    values = [model.compute.parameter_array(name, parameters)] if model.parameters else []
    if not values and not (parameters is None or (isinstance(parameters, Mapping) and not parameters)):
        raise ArgumentError(f"{name}: parameters are given, but the model has none")
    kernel = model.compute.kernel(name, wrenches=bool(forces))
    inputs = kernel.read((q, v, tau, *forces, *values))
    batch = kernel.batch_of(inputs)
    target = kernel.targets(out, batch)
    q, v, tau = inputs[:3]
    rest = tau - model.compute.kernel("bias_forces", wrenches=bool(forces))(q, v, *forces, *values)
    a, failures = _METHODS[method](model, q, rest, values)
    failures.append((np.broadcast_to(_locked(model, q), batch), ""))
    _settle(model, a, kernel, inputs, failures)
    if target is None:
        return a
    target[0][...] = a
    return out


def check(method: str) -> None:
    if not isinstance(method, str) or method not in (SWEEP, *_METHODS):
        raise ArgumentError(
            f"forward_dynamics: method is {method!r}, expected 'sweep', {', '.join(map(repr, _METHODS))}"
        )


def _settle(model: Model, a: Array, kernel: Kernel, inputs: Sequence[Array], failures: Failures) -> None:
    """NaN where there is no result, and one report with the reasons."""
    bad = ~np.isfinite(a).all(axis=-1)
    for mask, _ in failures:
        bad = bad | mask
    if not np.any(bad):
        return
    a[bad] = np.nan
    why = [sentence for mask, sentence in failures if sentence and np.any(mask)]
    model.compute.report(kernel.name, bad, model.compute._reasons(bad, tuple(inputs), kernel, *why[:1]))


def _locked(model: Model, q: Array) -> Array:
    """States in which a joint has lost a degree of freedom: rounding makes large numbers of infinite ones."""
    found = np.zeros(q.shape[:-1], dtype=bool)
    for o in model.compute.lockable:
        if o.type.singularity(q[..., o.q]):
            states = q[..., o.q].reshape(-1, o.type.nq)
            found |= np.array([bool(o.type.singularity(x)) for x in states]).reshape(found.shape)
    return found


def _factorise(model: Model, q: Array, rest: Array, values: list[Array]) -> tuple[Array, Failures]:
    M = model.compute.kernel("mass_matrix")(q, *values)
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        L = np.array([_cholesky(x) for x in M.reshape(-1, *M.shape[-2:])]).reshape(M.shape)
    pivots, diagonal = (np.diagonal(x, axis1=-2, axis2=-1) for x in (L, M))
    regular = np.asarray((pivots**2 > model.nv * _EPS * np.abs(diagonal)).all(axis=-1))
    L = np.where(regular[..., None, None], L, np.eye(model.nv))
    a = np.linalg.solve(np.swapaxes(L, -1, -2), np.linalg.solve(L, rest[..., None]))[..., 0]
    return a, [(np.broadcast_to(~regular, a.shape[:-1]), _INDEFINITE)]


def _cholesky(M: Array) -> Array:
    try:
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return np.full_like(M, np.nan)


def _conjugate_gradients(model: Model, q: Array, rest: Array, values: list[Array]) -> tuple[Array, Failures]:
    """Every product with M is one sweep; all states of a batch iterate together.

    A second right-hand side with a part in every direction goes along: where M is singular or indefinite it meets
    a direction p with p . M p <= 0, which the efforts alone (at rest, say) need not.
    """
    multiply = model.compute.kernel("multiply_mass_matrix")
    probe = np.broadcast_to(np.cos(np.arange(1.0, model.nv + 1) ** 2), rest.shape)
    given = np.isfinite(rest).all(axis=-1, keepdims=True)
    r = np.stack([np.where(given, rest, 0.0), np.where(given, probe, 0.0)])
    x, p, rr = np.zeros_like(r), r.copy(), np.sum(r * r, axis=-1, keepdims=True)
    rr0 = np.maximum(rr, 1e-300)
    goal = rr * np.reshape([1e-28, 1e-12], (2,) + (1,) * rest.ndim)
    largest, failed = np.zeros_like(rr), np.zeros(rr.shape, dtype=bool)
    for _ in range(10 * model.nv):
        active = (rr > goal) & ~failed
        if not np.any(active):
            break
        Mp = np.where(active, multiply(q, p, *values), 0.0)
        pMp, pp = (np.sum(p * y, axis=-1, keepdims=True) for y in (Mp, p))
        largest = np.maximum(largest, pMp / np.where(pp > 0, pp, 1.0))
        failed |= active & ~(pMp > 16 * model.nv * _EPS * largest * pp)
        active &= ~failed
        alpha = np.where(active, rr / np.where(active, pMp, 1.0), 0.0)
        x, r = x + alpha * p, r - alpha * Mp
        new = np.sum(r * r, axis=-1, keepdims=True)
        p = np.where(active, r + new / np.where(active, rr, 1.0) * p, p)
        rr = new
    left = np.sqrt(rr[0] / rr0[0])[..., 0]
    slow = ~(left <= 1e-10)
    indefinite = np.asarray(failed.any(axis=0))[..., 0]
    sentence = ""
    if np.any(slow):
        sentence = (
            f"conjugate gradients stopped after {10 * model.nv} products with the residual at "
            f"{left[slow].flat[0]:.2g} of the right-hand side; the mass matrix is too ill conditioned for it"
        )
    return np.where(given, x[0], np.nan), [(indefinite, _INDEFINITE), (slow, sentence)]


_METHODS: dict[str, Callable[[Model, Array, Array, list[Array]], tuple[Array, Failures]]] = {
    "factorise": _factorise,
    "conjugate_gradients": _conjugate_gradients,
}
