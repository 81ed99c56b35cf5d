"""The algorithms on CasADi expressions where loops, couplings and equations hold, by a choice of rows at a configuration.

The algorithms of models with loops, couplings or equations, on expressions: a minimal set of constraint rows is held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.algorithms.algorithm import Algorithm, GraphInputs, Results
from alembert.algorithms.symbolic import Symbolic, Wrenches, checked
from alembert.constraints import compiled, drives, reduced
from alembert.constraints.derivatives import check_determined
from alembert.constraints.dynamics import driven_dofs, weight_vector
from alembert.constraints.equations import equations
from alembert.constraints.results import IndependentCoordinates
from alembert.constraints.states import states
from alembert.engine.kernel import Argument
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.methods import Coordinates, projected


def _constrained(s: GraphInputs) -> Results:
    """Constrained accelerations, the forces of all rows, and the wrenches of loops."""
    rows = s.tree.model.constrained_compute.rows
    masks = np.zeros((2, rows.count))
    masks[0, list(s.options.chosen)] = 1.0
    masks[1, list(s.options.active)] = 1.0
    given = dict(s.given)
    if s.wrenches:
        given["wrench"] = s.wrench_rows
    a, f, wrenches = compiled.symbolic_solution(
        rows, (masks[0], masks[1]), given, s.p, guarded=s.options.guarded
    )
    return {"a": a, "forces": f, "wrenches": wrenches}


def _accelerations(s: GraphInputs) -> Results:
    return {"a": _constrained(s)["a"]}


def _hybrid(s: GraphInputs) -> Results:
    """From a = a_0 + A_p tau_p, affine in the efforts of the prescribed speeds, A_pp tau_p = a_p - a_0p.

    What is prescribed is in the options; the input `free` changes nothing.
    """
    assert s.options.free is not None
    p = [k for k, free in enumerate(s.options.free) if not free]
    tau, unknown = ca.SX(s.given["tau"]), ca.SX.sym("unknown", len(p))
    tau[p] = unknown
    a = _constrained(replace(s, given={**s.given, "tau": tau}))["a"]
    if not p:
        return {"a": a, "effort": tau}
    A_p = ca.densify(ca.jacobian(a, unknown))
    a_0 = ca.substitute(a, unknown, ca.SX.zeros(len(p)))
    D, LT, order = ca.ldl(A_p[p, :])
    found = ca.ldl_solve(s.given["a"][p] - a_0[p], D, LT, order)
    tau[p] = found
    return {"a": a_0 + A_p @ found, "effort": tau}


def _inverse(s: GraphInputs) -> Results:
    """Efforts, the forces of all rows, and the wrenches of loops."""
    o = s.options
    given = dict(s.given) | ({"wrench": s.wrench_rows} if s.wrenches else {})
    rows = s.tree.model.constrained_compute.rows
    u, f, wrenches = drives.symbolic_inverse(
        rows, (o.chosen, o.active, o.independent), o.drives, given, s.p, guarded=o.guarded
    )
    return {"efforts": u, "forces": f, "wrenches": wrenches}


def _efforts(s: GraphInputs) -> Results:
    return {"efforts": _inverse(s)["efforts"]}


def _independent(s: GraphInputs) -> Results:
    found = equations(s.tree, s.given["q"], s.given["v"], s.p)
    rows = list(s.options.chosen)
    by = drives.basis(found.jacobian[rows, :], found.bias[rows], s.options.independent)
    return {"E": by.E, "rate": by.rate}


_ENTRIES = (
    Algorithm("constrained_dynamics", ("q", "v", "tau"), graph=_constrained, takes_wrenches=True),
    Algorithm(
        "constrained_accelerations",
        ("q", "v", "tau"),
        graph=_accelerations,
        takes_wrenches=True,
        is_method=False,
    ),
    Algorithm(
        "constrained_hybrid",
        ("q", "v", "tau", "a", "free"),
        graph=_hybrid,
        has_kernel=False,
        takes_wrenches=True,
        is_method=False,
    ),
    Algorithm("constrained_inverse_dynamics", ("q", "v", "a"), graph=_inverse, takes_wrenches=True),
    Algorithm("constrained_efforts", ("q", "v", "a"), graph=_efforts, takes_wrenches=True, is_method=False),
    Algorithm("independent_coordinates", ("q", "v"), graph=_independent, has_kernel=False),
)
CONSTRAINED: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in _ENTRIES}


def constrained_options(
    model: Model, function: str, at: Any, active: Sequence[str] | None = None
) -> dict[str, Any]:
    """The minimal set of constraint rows at a configuration, as options of a graph."""
    chosen, held = model.constrained_compute.rows.system(function, active).masks_at(function, at, None)
    return {"chosen": tuple(np.flatnonzero(chosen).tolist()), "active": tuple(np.flatnonzero(held).tolist())}


def reduced_options(
    model: Model,
    function: str,
    at: Any,
    active: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    argument: str = "independent",
) -> dict[str, Any]:
    """The minimal set, and speeds that determine the others, at a configuration."""
    found = constrained_options(model, function, at, active)
    drives.check_unrolled(model, function, len(found["chosen"]))
    system = model.constrained_compute.rows.system(function, active)
    by = reduced.reduction(system, states(model, function, at, {}, None), names, argument=argument)
    return found | {"independent": tuple(by.indices.tolist())}


def inverse_options(
    model: Model,
    function: str,
    at: Any,
    actuated: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    active: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Those of constrained inverse dynamics; refuses drives that do not give every motion at the configuration."""
    found = reduced_options(model, function, at, active)
    driven = driven_dofs(model, function, actuated)
    w = weight_vector(model, function, weights)[driven]
    G = model.constrained_compute.rows.terms(
        np.asarray(at, dtype=float)[None],
        np.zeros((1, model.nv)),
        *([model.compute.parameter_defaults[None]] if model.parameters else []),
    )[1]
    check_determined(model, function, G[:, list(found["chosen"])], driven)
    return found | {"drives": (tuple(driven.tolist()), tuple(w.tolist()))}


class ConstrainedSymbolic(Symbolic):
    """Those of every model, in all speeds or in independent ones, and those of constrained motion."""

    def _algorithm(self, name: str) -> Algorithm:
        return CONSTRAINED.get(name) or super()._algorithm(name)

    def constrained_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        at: Any,
        active: Sequence[str] | None = None,
        wrenches: Wrenches = None,
        parameters: Any = None,
    ) -> tuple[Any, Any]:
        """Accelerations and the forces of all rows of the constraints, by the minimal set of rows at the configuration `at`.

        The expressions hold as long as that set does: not where the rank of the constraints changes, or the set becomes
        singular.
        """
        name = "constrained_dynamics"
        options = constrained_options(self._model, name, at, active)
        a, f, _ = self._call(name, parameters, wrenches, q, v, tau, **options)
        return a, f

    def constrained_inverse_dynamics(
        self,
        q: Any,
        v: Any,
        a: Any,
        *,
        at: Any,
        actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        active: Sequence[str] | None = None,
        wrenches: Wrenches = None,
        parameters: Any = None,
    ) -> tuple[Any, Any]:
        """The efforts of the actuated joints that give `a`, and the forces of all rows of the constraints.

        Arguments are those of the model's method; rows and independent speeds are chosen at the configuration `at`, as in
        `constrained_dynamics`. The actuated set must drive every degree of freedom that the constraints leave.
        """
        name = "constrained_inverse_dynamics"
        options = inverse_options(self._model, name, at, actuated, weights, active)
        efforts, f, _ = self._call(name, parameters, wrenches, q, v, a, **options)
        return efforts, f

    def independent_coordinates(
        self,
        q: Any,
        v: Any = None,
        *,
        at: Any,
        independent: Sequence[str] | None = None,
        active: Sequence[str] | None = None,
        parameters: Any = None,
    ) -> IndependentCoordinates:
        """Speeds that determine all others, v = E v_i, by a choice at the configuration `at`."""
        name = "independent_coordinates"
        options = reduced_options(self._model, name, at, active, independent)
        indices = np.array(options["independent"], dtype=int)
        moving = np.zeros(self._model.nv) if v is None else v
        E, rate = self._call(name, parameters, None, q, moving, **options)
        names = tuple(self._model.speed_names[k] for k in indices)
        return IndependentCoordinates(names, indices, E, None if v is None else rate)

    # --- in independent speeds -------------------------------------------------------------------------------

    def bias_forces(
        self,
        q: Any,
        v: Any,
        *,
        coordinates: Coordinates = "all",
        at: Any = None,
        wrenches: Wrenches = None,
        parameters: Any = None,
    ) -> Any:
        """The efforts at zero acceleration; independent `coordinates` are chosen at a configuration `at`."""
        h = super().bias_forces(q, v, wrenches=wrenches, parameters=parameters)
        return self._projected("bias_forces", h, coordinates, at, parameters, q, v)

    def gravity_forces(
        self, q: Any, *, coordinates: Coordinates = "all", at: Any = None, parameters: Any = None
    ) -> Any:
        """The efforts that hold the model against gravity alone."""
        g = super().gravity_forces(q, parameters=parameters)
        return self._projected("gravity_forces", g, coordinates, at, parameters, q)

    def coriolis_forces(
        self, q: Any, v: Any, *, coordinates: Coordinates = "all", at: Any = None, parameters: Any = None
    ) -> Any:
        """Coriolis and centrifugal efforts alone."""
        c = super().coriolis_forces(q, v, parameters=parameters)
        return self._projected("coriolis_forces", c, coordinates, at, parameters, q, v)

    def mass_matrix(
        self, q: Any, *, coordinates: Coordinates = "all", at: Any = None, parameters: Any = None
    ) -> Any:
        """M(q), or E^T M E."""
        by = self._basis("mass_matrix", coordinates, at, parameters, q)
        return self._reduced(by, q, parameters) if by else super().mass_matrix(q, parameters=parameters)

    def inverse_mass_matrix(
        self, q: Any, *, coordinates: Coordinates = "all", at: Any = None, parameters: Any = None
    ) -> Any:
        """M(q)^-1, by its factors along the tree; or (E^T M E)^-1."""
        by = self._basis("inverse_mass_matrix", coordinates, at, parameters, q)
        if by is None:
            return super().inverse_mass_matrix(q, parameters=parameters)
        return ca.inv(self._reduced(by, q, parameters))

    def solve_mass_matrix(
        self, q: Any, x: Any, *, coordinates: Coordinates = "all", at: Any = None, parameters: Any = None
    ) -> Any:
        """M(q)^-1 x, or (E^T M E)^-1 x."""
        by = self._basis("solve_mass_matrix", coordinates, at, parameters, q)
        if by is None:
            return super().solve_mass_matrix(q, x, parameters=parameters)
        M = self._reduced(by, q, parameters)
        return ca.solve(M, *checked("solve_mass_matrix", [Argument("x", M.shape[:1])], [x]))

    def multiply_mass_matrix(
        self, q: Any, x: Any, *, coordinates: Coordinates = "all", at: Any = None, parameters: Any = None
    ) -> Any:
        """M(q) x, or E^T M E x."""
        by = self._basis("multiply_mass_matrix", coordinates, at, parameters, q)
        if by is None:
            return super().multiply_mass_matrix(q, x, parameters=parameters)
        M = self._reduced(by, q, parameters)
        return ca.mtimes(M, *checked("multiply_mass_matrix", [Argument("x", M.shape[:1])], [x]))

    def _reduced(self, by: IndependentCoordinates, q: Any, parameters: Any) -> Any:
        """E^T M E."""
        return by.E.T @ super().mass_matrix(q, parameters=parameters) @ by.E

    def _basis(
        self, function: str, coordinates: Coordinates, at: Any, parameters: Any, q: Any, v: Any = None
    ) -> IndependentCoordinates | None:
        """E and rate of independent coordinates; None for all."""
        if not projected(coordinates):
            if at is not None:
                raise ArgumentError(f"{function}: at is for independent coordinates")
            return None
        names = reduced.names_of(function, coordinates)
        if at is None:
            raise ArgumentError(
                f"{function}: independent coordinates need at=, a configuration at which they are chosen"
            )
        options = reduced_options(self._model, function, at, None, names, "coordinates")
        labels = tuple(self._model.speed_names[k] for k in options["independent"])
        return self.independent_coordinates(q, v, at=at, independent=labels, parameters=parameters)

    def _projected(
        self,
        function: str,
        forces: Any,
        coordinates: Coordinates,
        at: Any,
        parameters: Any,
        q: Any,
        v: Any = None,
    ) -> Any:
        """E^T (h + M rate)"""
        by = self._basis(function, coordinates, at, parameters, q, v)
        if by is None:
            return forces
        if by.rate is not None:
            forces = forces + self.multiply_mass_matrix(q, by.rate, parameters=parameters)
        return by.E.T @ forces
