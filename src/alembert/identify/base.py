"""Base parameters: the combinations of parameters that the efforts depend on, by rank-revealing factorisation.

Stack regressors at many states, W pi = tau, and scale the columns to unit length, W S^-1. QR with column
pivoting finds the rank r, and with R = [R1 R2] the null space of W (changes of pi that no motion shows):

    N = (-R1^-1 R2; 1)                                                                    (1)

Elimination on N picks p - r *dependent* parameters D, rotors, armatures and masses of outer bodies first, so
that N_D = 1. The others I, each with what is regrouped into it, are the base parameters:

    beta = K pi,     K_I = 1,     K_D = -N_I,      W pi = W_I beta                        (2)

Source: Gautier 1991; the choice of D follows the custom of regrouping inward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from alembert import arguments
from alembert.errors import ArgumentError
from alembert.identify import regression
from alembert.identify.regression import SMOOTHING, CompiledRegressor, compile_regressor
from alembert.model import Model
from alembert.model.model import check_model
from alembert.sensitivity.regressor import Parameter

Array = np.ndarray
RANK = 1e-9
"""Pivots below this part of the first are rounding: rounding gives 1e-15 x size, structure 1e-4 and more."""
_DIGITS = 1e-8  # coefficients below this, in scaled columns, are rounding


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """beta = K pi with tau = Y[:, independent] beta; see the module."""

    names: tuple[str, ...]
    """of all parameters"""
    independent: Array
    """indices of the parameters that stand for the base parameters, (r,)"""
    K: Array
    """(r, parameters)"""
    singular_values: Array
    """of the scaled stacked regressor, all of them"""

    @property
    def rank(self) -> int:
        return len(self.independent)

    @cached_property
    def base_names(self) -> tuple[str, ...]:
        """Each base parameter as a sum: "link1.Izz + link2.Iyy + 0.09 link2.mass"."""
        return tuple(
            _combination(self.names, row, i) for row, i in zip(self.K, self.independent, strict=True)
        )

    @cached_property
    def unidentifiable(self) -> tuple[str, ...]:
        """Parameters that no motion shows."""
        return tuple(name for name, column in zip(self.names, self.K.T, strict=True) if not np.any(column))

    @cached_property
    def alone(self) -> tuple[str, ...]:
        """Parameters that are identifiable by themselves."""
        single = np.count_nonzero(self.K, axis=1) == 1
        return tuple(self.names[i] for i, s in zip(self.independent, single, strict=True) if s)

    @cached_property
    def combined(self) -> tuple[str, ...]:
        """Parameters that show only in combination with others."""
        rest = {*self.unidentifiable, *self.alone}
        return tuple(name for name in self.names if name not in rest)

    @property
    def condition(self) -> float:
        """Of the scaled regressor of the base parameters, on the states it was found from."""
        return float(self.singular_values[0] / self.singular_values[self.rank - 1]) if self.rank else 1.0

    def values(self, pi: Any) -> Array:
        """beta = K pi."""
        return np.asarray(pi, dtype=float) @ self.K.T

    def regressor(self, Y: Any) -> Array:
        """The columns of the base parameters, (..., nv, r)."""
        return np.asarray(Y)[..., self.independent]

    def __str__(self) -> str:
        lines = [f"{self.rank} base parameters of {len(self.names)}", *(f"  {x}" for x in self.base_names)]
        if self.unidentifiable:
            lines.append("without effect: " + ", ".join(self.unidentifiable))
        return "\n".join(lines)


def base_parameters(
    model: Model,
    *,
    states: tuple[Any, Any, Any] | None = None,
    include: Sequence[str] = (),
    smoothing: float = SMOOTHING,
    tolerance: float = RANK,
    seed: int = 0,
) -> BaseParameters:
    """The base parameters of a model, from random states or from the given ones (q, v, a).

    With `states` of a measured motion, what the motion does not excite is found dependent too. Of a model with loops or
    couplings they are those of E^T Y, which the efforts of its drives can tell.
    """
    check_model("base_parameters", model)
    compiled = compile_regressor(
        model, arguments.names("base_parameters", "include", include, or_one=True), float(smoothing)
    )
    q, v, a = random_states(compiled, seed) if states is None else states
    return from_regressor(stacked(compiled, q, v, a), compiled.columns, tolerance=tolerance)


def stacked(compiled: CompiledRegressor, q: Any, v: Any, a: Any) -> Array:
    """The equations of all states below each other, (rows, parameters).

    Of a model with constraints E^T Y, each state by independent speeds of its own.
    """
    Y, model = compiled(q, v, a).Y, compiled.model
    if not model.is_constrained:
        return Y.reshape(int(np.prod(Y.shape[:-1])), len(compiled.columns))
    each = np.broadcast_to(q, (*Y.shape[:-2], model.nq)).reshape(-1, model.nq)
    Y = Y.reshape(len(each), *Y.shape[-2:])
    return np.concatenate([model.independent_coordinates(x).E.T @ y for x, y in zip(each, Y, strict=True)])


def random_states(compiled: CompiledRegressor, seed: int) -> tuple[Array, Array, Array]:
    """Enough for twice as many equations as parameters per speed."""
    model, rng = compiled.model, np.random.default_rng(seed)
    count = 20 + 2 * len(compiled.columns) // max(1, min(model.nv, 4))
    if model.is_constrained:
        return regression.random_states(model, 2 * count, rng)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a = 2 * rng.normal(size=(2, count, model.nv))
    return q, v, 4 * a


def from_regressor(Y: Any, columns: Sequence[Parameter], *, tolerance: float = RANK) -> BaseParameters:
    """The base parameters of stacked regressors (..., nv, p)."""
    Y = np.asarray(Y, dtype=float)
    W = Y.reshape(int(np.prod(Y.shape[:-1])), len(columns))
    if not np.all(np.isfinite(W)):
        raise ArgumentError("base_parameters: the regressor is not finite at some of the states")
    if not 0 < tolerance < 1:
        raise ArgumentError(f"base_parameters: tolerance is {tolerance}, expected a number between 0 and 1")
    names = tuple(column.name for column in columns)
    norms = np.linalg.norm(W, axis=0)
    active = np.flatnonzero(norms > tolerance * norms.max(initial=0.0))
    scale = norms[active]
    if len(active) == 0:
        return BaseParameters(names, np.zeros(0, dtype=int), np.zeros((0, len(names))), np.zeros(0))
    R, pivots = scipy.linalg.qr(W[:, active] / scale, mode="r", pivoting=True)
    R = R[: len(active)]
    diagonal = np.abs(np.diag(R))
    rank = int(np.count_nonzero(diagonal > tolerance * diagonal[0]))
    null = np.zeros((len(active), len(active) - rank))
    null[pivots[:rank]] = -scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])  # (1)
    null[pivots[rank:]] = np.eye(len(active) - rank)
    null, dependent = _eliminate(null, _regroup_first([columns[int(k)] for k in active]))
    keep = np.setdiff1d(np.arange(len(active)), dependent)
    coefficients = -null[keep]  # (2), of scaled parameters
    coefficients[np.abs(coefficients) < _DIGITS] = 0.0
    K = np.zeros((len(keep), len(names)))
    K[np.arange(len(keep)), active[keep]] = 1.0
    K[:, active[dependent]] = coefficients * scale[dependent] / scale[keep][:, None]
    singular = np.linalg.svd(R, compute_uv=False)
    return BaseParameters(names, active[keep], K, singular)


def _regroup_first(columns: Sequence[Parameter]) -> list[int]:
    """Positions in the order in which parameters are rather regrouped into others."""
    kinds = {"rotor": 0, "armature": 1, "inertia": 2, "viscous": 3, "coulomb": 3}

    def key(k: int) -> tuple[int, ...]:
        column = columns[k]
        moment = 0 if column.index == 0 else 1 if column.index < 4 else 2
        return kinds[column.kind], -column.node, moment if column.kind == "inertia" else 0, column.index

    return sorted(range(len(columns)), key=key)


def _eliminate(null: Array, order: list[int]) -> tuple[Array, Array]:
    """Columns combined so that each is 1 at a parameter of its own; which ones, taken in `order` where pivots allow."""
    null, dependent = null.copy(), []
    free = list(range(null.shape[1]))
    for threshold in (0.1, 1e-3, 0.0):  # small pivots only where nothing else is left
        for i in order:
            if not free or i in dependent:
                continue
            best = max(free, key=lambda j: abs(null[i, j]))
            if abs(null[i, best]) <= max(threshold * np.abs(null[:, free]).max(), _DIGITS):
                continue
            null[:, best] /= null[i, best]
            others = np.arange(null.shape[1]) != best
            null[:, others] -= np.outer(null[:, best], null[i, others])
            dependent.append(i)
            free.remove(best)
            null[:, [len(dependent) - 1, best]] = null[:, [best, len(dependent) - 1]]
            free = list(range(len(dependent), null.shape[1]))
    return null, np.array(dependent, dtype=int)


def _combination(names: Sequence[str], row: Array, first: int) -> str:
    text = names[first]
    for k in np.flatnonzero(row).tolist():
        if k != first:
            size = f"{abs(row[k]):.4g}"
            text += f" {'+' if row[k] > 0 else '-'} {'' if size == '1' else size + ' '}{names[k]}"
    return text
