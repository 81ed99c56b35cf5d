"""Independent speeds: the equation of motion in them, and the directions in which a constrained state can change.

    v = E v_i,   E = [1; -G_d^-1 G_i],   v' = E v_i' + rate,   rate = [0; -G_d^-1 gamma]     (Nikravesh et al.)   (1)
    (E^T M E) v_i' + E^T (h + M rate) = E^T tau                                                                  (2)

from M v' + h = tau + G^T f, since G E = 0: loops and couplings hold, and their reactions drop out. The independent speeds of
a batch are those of its first state. Holonomic rows H of G hold for displacements, all rows for speeds, and G v = 0 where
the displacement goes:

    dq = E_q e_i,                 H E_q = 0                                                   (3)
    dv = E_v dv_i + W e_i,        G E_v = 0,   G W = -(G v)_q E_q                             (4)

    dq = .. + P_q dp,   dv = .. + P_v dp,      zero at the independent entries, and           (5)
    H P_q = -phi_p,     G P_v = -((G v)_p + (G v)_q P_q)

e_i and dv_i are the entries of dq and dv at the independent degrees of freedom, fewer of speeds than of displacements where
something rolls. W is zero at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import common
from alembert.constraints import saddle, solver
from alembert.constraints.dynamics import listed, named_dofs
from alembert.constraints.results import GOOD, OFF, RANK, IndependentCoordinates
from alembert.constraints.solver import Parameters
from alembert.constraints.states import RowTerms, States
from alembert.constraints.system import ConstraintSystem
from alembert.errors import ArgumentError, NumericalError
from alembert.model.methods import Coordinates

if TYPE_CHECKING:
    from alembert.constraints.compute import ConstrainedCompute

Array = np.ndarray
Active = Sequence[str] | None


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
        rate = None if self.rate is None else self.s.shaped(self.rate)
        return IndependentCoordinates(names, self.indices, self.s.shaped(self.E), rate)

    def mass_matrix(self) -> Array:
        """E^T M E"""
        found = np.swapaxes(self.E, -1, -2) @ self.system.mass_matrix(self.s) @ self.E
        self.system.check_finite(self.s, found)
        return self.s.shaped(found)

    def inverse_mass_matrix(self) -> Array:
        return np.linalg.inv(self.mass_matrix())

    def solve_mass_matrix(self, x: Any) -> Array:
        return self._of_column(np.linalg.solve, x)

    def multiply_mass_matrix(self, x: Any) -> Array:
        return self._of_column(np.matmul, x)

    def _of_column(self, operation: Callable[[Array, Array], Array], x: Any) -> Array:
        """Of the mass matrix and x (..., k)."""
        M, function = self.mass_matrix(), self.s.function
        columns = self.system.model.compute.numbers(function, "x", x, M.shape[-1])
        common(function, [("q", M.shape[:-2]), ("x", columns.shape[:-1])])
        with np.errstate(all="ignore"):
            found = operation(M, columns[..., None])[..., 0]
        if not np.isfinite(found).all():
            k = int(np.argwhere(~np.isfinite(columns))[0][-1]) if not np.isfinite(columns).all() else None
            reason = "numbers overflow" if k is None else f"x is not finite at entry {k}"
            raise NumericalError(f"{function}: the result is not finite; {reason}")
        return found

    def forces(self, name: str) -> Array:
        """E^T (h + M rate), with an algorithm of the tree that gives the forces h."""
        s = self.s
        h = self.system.tree(name, s.moving(*s.vectors[:1]))
        if self.rate is not None:
            multiply = self.system.all.primary.compute.kernel("multiply_mass_matrix")
            h = h + multiply(s.q, self.rate, *s.last)
        return self.projected(h)

    def projected(self, x: Array) -> Array:
        """E^T x of efforts x (B, nv)."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = (x[:, None, :] @ self.E)[:, 0]
        self.system.check_finite(self.s, found)
        return self.s.shaped(found)

    def completed(self, a: Array) -> Array:
        """E a_i + rate: all accelerations from the independent ones (..., k)."""
        flat = a.reshape(len(self.s), -1)
        return self.s.shaped((self.E @ flat[..., None])[..., 0] + (0.0 if self.rate is None else self.rate))


def names_of(function: str, coordinates: Coordinates) -> Sequence[str] | None:
    """The names of independent speeds; None where the choice is open."""
    if not isinstance(coordinates, str):
        return coordinates
    if coordinates != "independent":
        raise ArgumentError(
            f"{function}: coordinates is {coordinates!r}, expected 'all', 'independent' or a list of joints or degrees of "
            "freedom"
        )
    return None


def independent_coordinates(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    independent: Sequence[str] | None,
    active: Active,
    parameters: Parameters,
) -> IndependentCoordinates:
    call = compute.call("independent_coordinates", active, None, parameters)
    s = call.states(q, {} if v is None else {"v": v})
    return reduction(call.system, s, independent).coordinates


def reduced_mass_matrix(
    compute: ConstrainedCompute,
    q: Any,
    independent: Sequence[str] | None,
    active: Active,
    parameters: Parameters,
) -> Array:
    call = compute.call("reduced_mass_matrix", active, None, parameters)
    return reduction(call.system, call.states(q, {}), independent).mass_matrix()


def reduction(
    system: ConstraintSystem,
    s: States,
    names: Sequence[str] | None,
    *,
    argument: str = "independent",
    closed: float = np.inf,
) -> Reduction:
    """(1); the first of the states' vectors, where there are any, are the speeds. `names` are those of an `argument`."""
    if not len(s):
        raise ArgumentError(f"{s.function}: takes at least one state, to choose independent speeds at")
    speeds = s.vectors[0] if s.vectors else None
    t = system.closed_terms(s, speeds, closed)
    with solver.no_bare_errors(s.function):
        found = _reduced(system, s, t, speeds, names, argument)
    system.check_finite(s, found.E, *(() if found.rate is None else (found.rate,)))
    return found


def _reduced(
    system: ConstraintSystem,
    s: States,
    t: RowTerms,
    speeds: Array | None,
    names: Sequence[str] | None,
    argument: str,
) -> Reduction:
    model = system.model
    first = system.choice(s, t, 0).rows
    free = _free(system, s.function, t.jacobian[0, first], names, argument)
    dependent = saddle.others(model.nv, free)
    E = np.zeros((len(s), model.nv, len(free)))
    rate = None if speeds is None else np.zeros((len(s), model.nv))
    served = _fill(t, first, dependent, free, E, rate)
    for k in np.flatnonzero(~served).tolist():
        rows = system.choice(s, t, k).rows
        G = t.jacobian[k, rows]
        size = np.linalg.svd(G[:, dependent], compute_uv=False)
        if len(rows) != len(dependent) or (len(size) and size[-1] <= RANK * size[0]):
            where = f", state {s.position(k)}" if s.shape else ""
            raise NumericalError(
                f"{s.function}: the speeds {listed(model, free)} do not determine the others at this configuration{where}; "
                "choose others, or leave the choice open"
            )
        E[k] = saddle.kernel_basis(G, dependent, free)
        if rate is not None:
            rate[k, dependent] = -np.linalg.solve(G[:, dependent], t.bias[k, rows])
    return Reduction(system, s, free, E, rate)


def _fill(t: RowTerms, rows: Array, dependent: Array, free: Array, E: Array, rate: Array | None) -> Array:
    """(1) of all states by the same rows, where these are well conditioned and the others follow; which states it were."""
    if len(rows) != len(dependent):
        return np.zeros(len(E), dtype=bool)
    R = t.jacobian[:, rows]
    size = np.linalg.svd(R[:, :, dependent], compute_uv=False)
    served = size[:, -1] > GOOD * size[:, 0] if len(rows) else np.ones(len(E), dtype=bool)
    if not served.all():  # what is computed of the others is not used, but must not stop the rest
        R = np.where(served[:, None, None], R, R[np.argmax(served)])
        if not served.any():
            return served
    E[...] = saddle.kernel_basis(R, dependent, free)
    dropped = saddle.others(t.jacobian.shape[1], rows)
    if len(dropped):
        left = np.abs(t.jacobian[:, dropped] @ E) / t.scale[:, dropped, None]
        allowed = RANK + np.minimum(10 * t.slack, OFF)
        allowed = allowed * (1 + np.max(np.abs(E), axis=(1, 2), initial=0.0))
        served &= np.max(left, axis=(1, 2), initial=0.0) <= allowed
    if rate is not None:
        rate[:, dependent] = -np.linalg.solve(R[:, :, dependent], t.bias[:, rows, None])[..., 0]
    return served


def _free(
    system: ConstraintSystem, function: str, G: Array, names: Sequence[str] | None, argument: str
) -> Array:
    if names is None:
        return saddle.independent_columns(G)[1]
    free = named_dofs(system.model, function, names, argument)
    left = system.model.nv - len(G)
    if len(free) != left:
        raise ArgumentError(
            f"{function}: {len(free)} independent speeds are named ({listed(system.model, free)}), the constraints leave "
            f"{left}"
        )
    return free


# --- tangent space --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tangent:
    """(3) to (5), with the indices of the independent displacements and speeds."""

    q_dofs: Array
    v_dofs: Array
    E_q: Array
    E_v: Array
    W: Array
    q_parameters: Array
    v_parameters: Array


def tangent(
    system: ConstraintSystem,
    s: States,
    chosen: tuple[Sequence[int], Sequence[int]] | None = None,
    parameters: Sequence[int] = (),
) -> Tangent:
    """At one state with speeds; `chosen` are the independent displacements and speeds, by default well conditioned.

    `parameters` are those of (5).
    """
    v = s.vectors[0]
    t = system.terms(s, v)
    G, scale = t.jacobian[0], t.scale[0]
    still, none = np.zeros_like(v), np.zeros((1, system.count))
    moved = system.derivatives(s, still, v, none)[1][0]  # (G v)_q
    all_rows = system.chosen(t, 0).rows
    holonomic = np.flatnonzero(system.holonomic)
    groups = [slice(k, k + 1) for k in range(len(holonomic))]
    tolerance = max(saddle.RANK, min(10 * float(t.slack[0]), 1e-3))
    scaled = G[holonomic] / scale[holonomic, None]
    picked = saddle.choose(scaled, groups, tolerance).rows if len(holonomic) else np.arange(0)
    E_q, q_dependent, q_dofs = _basis(s.function, scaled[picked], chosen[0] if chosen else None)
    R = G[all_rows]
    E_v, dependent, v_dofs = _basis(s.function, R, chosen[1] if chosen else None)
    W = np.zeros((system.model.nv, len(q_dofs)))
    if len(all_rows):
        W[dependent] = -np.linalg.solve(R[:, dependent], moved[all_rows] @ E_q)
    P_q, P_v = np.zeros((2, system.model.nv, len(parameters)))
    if len(parameters):
        _, row_p, phi_p = system.parameter_derivatives(s, still, v, none, parameters)
        if len(picked):
            right = phi_p[0][holonomic][picked] / scale[holonomic][picked, None]
            P_q[q_dependent] = -np.linalg.solve(scaled[picked][:, q_dependent], right)
        if len(all_rows):
            opened = row_p[0] + moved @ P_q
            P_v[dependent] = -np.linalg.solve(R[:, dependent], opened[all_rows])
    return Tangent(q_dofs, v_dofs, E_q, E_v, W, P_q, P_v)


@dataclass(frozen=True, eq=False)
class RowDerivatives:
    """The rows at one state with their derivatives: of G^T f, G v and gamma with respect to q, of gamma to v."""

    residual: Array
    G: Array
    bias: Array
    holonomic: Array
    push_q: Array
    speed_q: Array
    bias_q: Array
    bias_v: Array


def row_derivatives(system: ConstraintSystem, s: States, f: Array) -> RowDerivatives:
    v, zero = s.vectors[0], np.zeros_like(s.vectors[0])
    t = system.terms(s, v)
    push, speed_q, _ = system.derivatives(s, zero, v, f[None])
    _, bias_q, bias_v = system.derivatives(s, v, zero, f[None])
    parts = (x[0] for x in (push, speed_q, bias_q, bias_v))
    return RowDerivatives(t.residual[0], t.jacobian[0], t.bias[0], system.holonomic, *parts)


def _basis(function: str, R: Array, chosen: Sequence[int] | None) -> tuple[Array, Array, Array]:
    """Columns that R sends to zero, the dependent and the independent entries."""
    if chosen is None:
        dependent, free = saddle.independent_columns(R)
    else:
        free = np.asarray(chosen, dtype=int)
        dependent = np.setdiff1d(np.arange(R.shape[1]), free)
    size = np.linalg.svd(R[:, dependent], compute_uv=False) if len(dependent) == len(R) else np.zeros(1)
    if len(dependent) != len(R) or (len(R) and size[-1] <= saddle.RANK * size[0]):
        raise NumericalError(
            f"{function}: the independent degrees of freedom of the first state do not determine the others at a later one; "
            "give the states one by one"
        )
    return saddle.kernel_basis(R, dependent, free), dependent, free
