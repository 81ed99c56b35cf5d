"""Forward dynamics by other routes than the sweep, for comparison and teaching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from alembert.model import Model


def forward_dynamics(
    model: Model, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any, method: str, out: Any
) -> np.ndarray:
    """M a = tau - bias, solved by `method`."""
    if method not in _METHODS:
        raise ArgumentError(
            f"forward_dynamics: method is {method!r}, expected 'sweep', {', '.join(map(repr, _METHODS))}"
        )
    tau = model._numbers("forward_dynamics", "tau", tau, model.nv)
    rest = tau - model.bias_forces(q, v, wrenches=wrenches, parameters=parameters)
    try:
        a = _METHODS[method](model, np.asarray(q, dtype=float), rest, parameters)
    except np.linalg.LinAlgError:
        raise NumericalError(
            f"forward_dynamics: the mass matrix is not positive definite; {model._trouble(q)}"
        ) from None
    given = (
        (q, v, tau, model._parameter_array("forward_dynamics", parameters))
        if model.parameters
        else (q, v, tau)
    )
    model._explain("forward_dynamics", a, given, model._kernel("forward_dynamics"))
    if out is not None:
        if np.shape(out) != a.shape:
            raise ArgumentError(f"forward_dynamics: out has shape {np.shape(out)}, expected {a.shape}")
        out[...] = a
        return out
    return a


def _factorise(model: Model, q: np.ndarray, rest: np.ndarray, parameters: Any) -> np.ndarray:
    M = model.mass_matrix(q, parameters=parameters)
    if M.ndim == 2 and rest.ndim == 1:
        return cho_solve(cho_factor(M), rest, check_finite=False)
    L = np.linalg.cholesky(M)
    return np.linalg.solve(np.swapaxes(L, -1, -2), np.linalg.solve(L, rest[..., None]))[..., 0]


def _conjugate_gradients(model: Model, q: np.ndarray, rest: np.ndarray, parameters: Any) -> np.ndarray:
    """Every product with M is one sweep; all states of a batch iterate together."""
    finite = np.isfinite(rest).all(axis=-1, keepdims=True)
    x = np.zeros_like(rest)
    r = np.where(finite, rest, 0.0)
    p = r.copy()
    rr = np.sum(r * r, axis=-1, keepdims=True)
    rr0, goal = rr, (1e-14 * np.sqrt(rr)) ** 2
    for _ in range(10 * model.nv):
        if not np.any(rr > goal):
            return np.where(finite & np.isfinite(rr), x, np.nan)
        Mp = model.multiply_mass_matrix(q, p, parameters=parameters)
        pMp = np.sum(p * Mp, axis=-1, keepdims=True)
        alpha = np.where(rr > goal, rr / np.where(pMp > 0, pMp, 1.0), 0.0)
        x, r = x + alpha * p, r - alpha * Mp
        new = np.sum(r * r, axis=-1, keepdims=True)
        p = r + np.where(rr > goal, new / np.where(rr > 0, rr, 1.0), 0.0) * p
        rr = new
    left = float(np.sqrt(np.nanmax(rr / np.maximum(rr0, 1e-300))))
    if not left <= 1e-10:
        raise NumericalError(
            f"forward_dynamics: conjugate gradients stopped after {10 * model.nv} products with the residual at "
            f"{left:.2g} of the right-hand side; the mass matrix is too ill conditioned for it"
        )
    return np.where(finite & np.isfinite(rr), x, np.nan)


_METHODS = {"factorise": _factorise, "conjugate_gradients": _conjugate_gradients}
