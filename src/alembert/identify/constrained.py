"""Data of models with loops and couplings: the reactions drop out of

    E^T Y(q, v, a) pi + E^T known = E^T tau,     G E = 0                                               (1)

so that the efforts of the drives, which are measured, are enough (zero where nothing drives). Noise sigma of the efforts
makes E^T diag(sigma^2) E of (1), at each sample. Measured states are off the constraints by their noise: they are moved to
the nearest ones that keep them, accelerations by the least change with G a + gamma = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from alembert.constraints.results import IndependentCoordinates
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Model

if TYPE_CHECKING:
    from alembert.identify.measurements import Measurements
    from alembert.identify.regression import CompiledRegressor

Array = np.ndarray
_UNMEASURED = 1e6
"""what infinite noise counts as, relative to the largest that is not"""
_TRIALS = 20
"""random configurations from which the constraints may fail to close, before they are said not to"""
_STEEP = 1e4
"""speeds that move others this much faster are not taken as independent"""


def on_constraints(model: Model, data: Measurements) -> Measurements:
    """The nearest states and accelerations that keep the constraints."""
    state = model.assemble(data.q, data.v)
    G = model.constraint_jacobian(state.q)
    left = (G @ data.a[..., None])[..., 0] + model.constraint_bias(state.q, state.v)
    a = data.a - (np.linalg.pinv(G, rcond=1e-9) @ left[..., None])[..., 0]
    return replace(data, q=state.q, v=state.v, a=a)


def independent(model: Model, q: Array) -> IndependentCoordinates:
    """Speeds that determine the others at all samples: the actuated ones where they do, so that E^T tau are theirs."""
    drives = {model.speed_names[model.v_slice(x.joint).start + x.dof] for x in model.actuators}
    choices: list[Sequence[str]] = [[name for name in model.speed_names if name in drives]]
    choices += [model.independent_coordinates(q[k]).names for k in (0, len(q) // 3, len(q) // 2, -1)]
    for names in choices:
        try:
            found = model.independent_coordinates(q, independent=names)
        except (NumericalError, ArgumentError):
            continue
        if np.max(np.abs(found.E), initial=0.0) < _STEEP:
            return found
    raise NumericalError(
        "identify: no choice of independent speeds determines the others in all samples; the motion passes singular "
        "configurations of the constraints: leave those samples out"
    )


@dataclass(frozen=True, eq=False)
class Projection:
    """(1) for the samples of some data."""

    names: tuple[str, ...]
    E: Array
    """(T, nv, k)"""

    def __call__(self, x: Array) -> Array:
        """E^T x for x (T, nv) or (T, nv, p)."""
        if x.ndim == 2:
            return (x[:, None] @ self.E)[:, 0]
        return np.swapaxes(self.E, 1, 2) @ x

    def whitening(self, noise: Array) -> Array:
        """L^-1 (T, k, k) with L L^T the covariance of E^T tau."""
        finite = noise[np.isfinite(noise)]
        sigma = np.where(np.isfinite(noise), noise, _UNMEASURED * np.max(finite, initial=1e-300))
        C = np.swapaxes(self.E, 1, 2) @ (sigma[:, None] ** 2 * self.E)
        return np.linalg.inv(np.linalg.cholesky(C))


def random_states(model: Model, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Random motions that keep the constraints."""
    found: list[tuple[Array, Array, Array]] = []
    for trial in range(10 * count):
        if len(found) == count or (trial == _TRIALS and not found):
            break
        try:
            q = model.assemble(model.random_configuration(rng)).q
            speeds = 2 * rng.normal(size=model.nv)
            E = model.independent_coordinates(q).E
            v = E @ speeds[: E.shape[1]]
            by = model.independent_coordinates(q, v)
        except NumericalError:  # out of reach, or a singular configuration: another one
            continue
        rate = np.zeros(model.nv) if by.rate is None else by.rate
        found.append((q, v, by.E @ (8 * rng.normal(size=by.E.shape[1])) + rate))
    if not found:
        raise NumericalError(
            f"base_parameters: the constraints of model {model.name!r} could not be closed from random configurations; "
            "give states"
        )
    q, v, a = (np.array(x) for x in zip(*found, strict=True))
    return q, v, a


def stacked(compiled: CompiledRegressor, q: Array, v: Array, a: Array) -> Array:
    """E^T Y of all states below each other, (rows, parameters); each state by independent speeds of its own."""
    Y, model = compiled(q, v, a).Y, compiled.model
    return np.concatenate([model.independent_coordinates(x).E.T @ y for x, y in zip(q, Y, strict=True)])
