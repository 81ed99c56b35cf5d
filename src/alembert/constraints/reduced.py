"""The equation of motion in independent speeds: loops and couplings hold, and their reactions drop out.

    v = E v_i,   E = [1; -G_d^-1 G_i],   v' = E v_i' + rate,   rate = [0; -G_d^-1 gamma]     (Nikravesh et al.)   (1)
    (E^T M E) v_i' + E^T (h + M rate) = E^T tau                                                                  (2)

from M v' + h = tau + G^T f, since G E = 0. The independent speeds of a batch are those of its first state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from alembert.constraints import rank
from alembert.constraints.dynamics import _listed, _no_terms, _tree, named_dofs
from alembert.constraints.results import IndependentCoordinates
from alembert.constraints.states import States, Terms
from alembert.constraints.system import ConstraintSystem
from alembert.constraints.tolerances import GOOD, OFF, RANK
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Reduction:
    """(1) at a batch of states, flat: E (B, nv, k); `rate` (B, nv) where speeds are given."""

    system: ConstraintSystem
    s: States
    indices: Array
    E: Array
    rate: Array | None

    @property
    def coordinates(self) -> IndependentCoordinates:
        names = tuple(self.system.model.speed_names[k] for k in self.indices)
        rate = None if self.rate is None else self._shaped(self.rate)
        return IndependentCoordinates(names, self.indices, self._shaped(self.E), rate)

    def mass_matrix(self) -> Array:
        """E^T M E"""
        return self._shaped(np.swapaxes(self.E, -1, -2) @ self.system.mass_matrix(self.s) @ self.E)

    def forces(self, name: str, function: str, wrenches: Array | None = None) -> Array:
        """E^T (h + M rate), with an algorithm of the tree that gives the forces h."""
        s = self.s
        moving = States(s.shape, s.q, s.vectors[:1], s.parameters)
        h = _tree(self.system, name, function, moving, wrenches)
        if self.rate is not None:
            multiply = self.system.all.primary.compute.kernel("multiply_mass_matrix")
            h = h + multiply(*self.s.given(self.s.q, self.rate))
        return self.projected(h)

    def projected(self, x: Array) -> Array:
        """E^T x of efforts x (B, nv)."""
        return self._shaped((x[:, None, :] @ self.E)[:, 0])

    def completed(self, a: Array) -> Array:
        """E a_i + rate: all accelerations from the independent ones (..., k)."""
        flat = a.reshape(len(self.s), -1)
        return self._shaped((self.E @ flat[..., None])[..., 0] + (0.0 if self.rate is None else self.rate))

    def _shaped(self, x: Array) -> Array:
        return x.reshape(*self.s.shape, *x.shape[1:])


def reduction(
    system: ConstraintSystem,
    function: str,
    s: States,
    names: Sequence[str] | None,
    *,
    argument: str = "independent",
    closed: float = np.inf,
) -> Reduction:
    """(1); the first of the states' vectors, where there are any, are the speeds. `names` are those of an `argument`."""
    model = system.model
    if not len(s):
        raise ArgumentError(f"{function}: takes at least one state, to choose independent speeds at")
    speeds = s.vectors[0] if s.vectors else None
    t = system.terms(s, speeds) if system.count else _no_terms(s, model.nv)
    if system.count and closed < np.inf:
        system.check_closed(function, s, t, speeds, closed)
    first = system.choice(function, s, t, 0).rows if system.count else np.arange(0)
    free = _free(system, function, t.jacobian[0, first], names, argument)
    dependent = rank.others(model.nv, free)
    E = np.zeros((len(s), model.nv, len(free)))
    rate = None if speeds is None else np.zeros((len(s), model.nv))
    served = _fill(t, first, dependent, free, E, rate)
    for k in np.flatnonzero(~served).tolist():
        rows = system.choice(function, s, t, k).rows if system.count else first
        G = t.jacobian[k, rows]
        size = np.linalg.svd(G[:, dependent], compute_uv=False)
        if len(rows) != len(dependent) or (len(size) and size[-1] <= RANK * size[0]):
            where = f", state {system._position(s, k)}" if s.shape else ""
            raise NumericalError(
                f"{function}: the speeds {_listed(model, free)} do not determine the others at this configuration{where}; "
                "choose others, or leave the choice open"
            )
        E[k] = rank.kernel_basis(G, dependent, free)
        if rate is not None:
            rate[k, dependent] = -np.linalg.solve(G[:, dependent], t.bias[k, rows])
    return Reduction(system, s, free, E, rate)


def _fill(t: Terms, rows: Array, dependent: Array, free: Array, E: Array, rate: Array | None) -> Array:
    """(1) of all states by the same rows, where these are well conditioned and the others follow; which states it were."""
    if len(rows) != len(dependent):
        return np.zeros(len(E), dtype=bool)
    R = t.jacobian[:, rows]
    size = np.linalg.svd(R[:, :, dependent], compute_uv=False)
    served = size[:, -1] > GOOD * size[:, 0] if len(rows) else np.ones(len(E), dtype=bool)
    at = np.flatnonzero(served)
    found = rank.kernel_basis(R[at], dependent, free)
    dropped = rank.others(t.jacobian.shape[1], rows)
    if len(dropped):
        left = np.abs(t.jacobian[np.ix_(at, dropped)] @ found) / t.scale[np.ix_(at, dropped)][..., None]
        allowed = RANK + np.minimum(10 * t.slack[at], OFF)
        allowed = allowed * (1 + np.max(np.abs(found), axis=(1, 2), initial=0.0))
        follow = np.max(left, axis=(1, 2), initial=0.0) <= allowed
        served[at[~follow]] = False
        at, found = at[follow], found[follow]
    E[at] = found
    if rate is not None:
        right = t.bias[np.ix_(at, rows)][..., None]
        rate[np.ix_(at, dependent)] = -np.linalg.solve(R[at][:, :, dependent], right)[..., 0]
    return served


def _free(
    system: ConstraintSystem, function: str, G: Array, names: Sequence[str] | None, argument: str
) -> Array:
    if names is None:
        return rank.independent_columns(G)[1]
    free = named_dofs(system.model, function, names, argument)
    left = system.model.nv - len(G)
    if len(free) != left:
        raise ArgumentError(
            f"{function}: {len(free)} independent speeds are named ({_listed(system.model, free)}), the constraints leave "
            f"{left}"
        )
    return free
