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
from alembert.constraints.states import States
from alembert.constraints.system import ConstraintSystem
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
            multiply = self.system.all.primary._kernel("multiply_mass_matrix")
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
    rows = [system.choice(function, s, t, k).rows if system.count else np.arange(0) for k in range(len(s))]
    free = _free(system, function, t.jacobian[0, rows[0]], names, argument)
    dependent = np.setdiff1d(np.arange(model.nv), free)
    E = np.zeros((len(s), model.nv, len(free)))
    rate = None if speeds is None else np.zeros((len(s), model.nv))
    for k in range(len(s)):
        G = t.jacobian[k, rows[k]]
        size = np.linalg.svd(G[:, dependent], compute_uv=False)
        if len(rows[k]) != len(dependent) or (len(size) and size[-1] <= rank.RANK * size[0]):
            where = f", state {system._position(s, k)}" if s.shape else ""
            raise NumericalError(
                f"{function}: the speeds {_listed(model, free)} do not determine the others at this configuration{where}; "
                "choose others, or leave the choice open"
            )
        E[k] = rank.kernel_basis(G, dependent, free)
        if rate is not None:
            rate[k, dependent] = -np.linalg.solve(G[:, dependent], t.bias[k, rows[k]])
    return Reduction(system, s, free, E, rate)


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
