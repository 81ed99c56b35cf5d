"""`ConstrainedCompute`: what a model with loops, couplings or equations computes.

`active` names those that hold, by default all. Choosing others compiles nothing; the sweeps are those of the tree, whatever
holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from alembert.algorithms import Compute, directional_kernels
from alembert.algorithms import dynamics as of_tree
from alembert.algorithms import kernels as tree_kernels
from alembert.algorithms.algorithm import Algorithm, Options
from alembert.algorithms.compute import check_directory
from alembert.algorithms.derivatives import by_name
from alembert.algorithms.frames import Reference
from alembert.algorithms.kernels import Lowering
from alembert.algorithms.results import HybridDerivatives, HybridResult, InverseDerivatives
from alembert.algorithms.table import TABLE, find
from alembert.arguments import into, mapping, positive
from alembert.constraints import (
    assembly,
    derivatives,
    dynamics,
    prescribed,
    reduced,
    symbolic,
)
from alembert.constraints.reduced import Reduction, RowDerivatives, Tangent
from alembert.constraints.results import CLOSED
from alembert.constraints.solver import ConstrainedCall, Parameters, Wrenches
from alembert.constraints.states import RowTerms, States
from alembert.constraints.symbolic import CONSTRAINED, ConstrainedSymbolic
from alembert.constraints.system import ConstraintRows
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.methods import Coordinates

Array = np.ndarray
Active = Sequence[str] | None
Names = Sequence[str]


class ConstrainedCompute(Compute):
    """What computes for a model with constraints: the algorithms that they change, and those that are about them."""

    constrained_dynamics = dynamics.constrained_dynamics
    constrained_inverse_dynamics = dynamics.constrained_inverse_dynamics
    constrained_dynamics_derivatives = derivatives.constrained_dynamics_derivatives
    constrained_inverse_dynamics_derivatives = derivatives.constrained_inverse_dynamics_derivatives
    control_forces = prescribed.control_forces
    impulse = dynamics.impulse
    constraint_analysis = dynamics.constraint_analysis
    constraint_power = dynamics.constraint_power
    independent_coordinates = reduced.independent_coordinates
    reduced_mass_matrix = reduced.reduced_mass_matrix
    assemble = assembly.assemble
    project = assembly.project

    @cached_property
    def symbolic(self) -> ConstrainedSymbolic:
        """The algorithms on CasADi expressions."""
        return ConstrainedSymbolic(self.model, self.tree)

    def kernel(self, name: str, *, wrenches: bool = False, lowering: Lowering = "auto") -> Kernel:
        """Of the tree, which models with other constraints share."""
        key: tuple[Any, ...] = (name, wrenches) if lowering == "auto" else (name, wrenches, lowering)
        if key not in self.kernels:
            tree = self.rows.primary.compute
            self.kernels[key] = tree.kernel(name, wrenches=wrenches, lowering=lowering)
        return self.kernels[key]

    @cached_property
    def rows(self) -> ConstraintRows:
        return ConstraintRows(self.model)

    @cached_property
    def _calls(self) -> dict[str, ConstrainedCall]:
        return {}

    def call(
        self, function: str, active: Active, wrenches: Wrenches, parameters: Parameters, closed: Any = CLOSED
    ) -> ConstrainedCall:
        """What a function has in hand besides the state; that of plain calls is kept, for speed."""
        positive(function, "closure_tolerance", closed)
        if active is None and wrenches is None and parameters is None:
            found = self._calls.get(function)
            if found is None:
                system = self.rows.system(function, None)
                found = self._calls.setdefault(function, ConstrainedCall(system, function, None, None))
            return found
        return ConstrainedCall(self.rows.system(function, active), function, wrenches, parameters)

    # --- the rows -------------------------------------------------------------------------------------------

    def constraint_residual(self, q: Any, active: Active, parameters: Parameters) -> Array:
        s, t = self.constraint_terms("constraint_residual", q, {}, active, parameters)
        return s.shaped(t.residual)

    def constraint_jacobian(self, q: Any, active: Active, parameters: Parameters) -> Array:
        s, t = self.constraint_terms("constraint_jacobian", q, {}, active, parameters)
        return s.shaped(t.jacobian)

    def constraint_bias(self, q: Any, v: Any, active: Active, parameters: Parameters) -> Array:
        s, t = self.constraint_terms("constraint_bias", q, {"v": v}, active, parameters)
        return s.shaped(t.bias)

    def constraint_terms(
        self, function: str, q: Any, vectors: Mapping[str, Any], active: Active, parameters: Parameters
    ) -> tuple[States, RowTerms]:
        call = self.call(function, active, None, parameters)
        s = call.states(q, vectors)
        return s, call.system.terms(s, *s.vectors)

    def constraint_slopes(
        self, function: str, q: Array, v: Array, f: Array, parameters: Parameters
    ) -> RowDerivatives:
        call = self.call(function, None, None, parameters)
        return reduced.row_derivatives(call.system, call.states(q, {"v": v}), f)

    def constraint_tangents(
        self, function: str, q: Array, v: Array, parameters: Parameters, sensitive: Sequence[int] = ()
    ) -> list[Tangent]:
        """At a batch of states, all in the independent degrees of freedom of the first."""
        call = self.call(function, None, None, parameters)
        s = call.states(q, {"v": v})
        found: list[Tangent] = []
        for k in range(len(s)):
            chosen = (found[0].q_dofs.tolist(), found[0].v_dofs.tolist()) if found else None
            found.append(reduced.tangent(call.system, s.at(k), chosen, sensitive))
        return found

    # --- in independent speeds, and for simulation ----------------------------------------------------------

    def reduction(
        self,
        function: str,
        coordinates: Coordinates,
        q: Any,
        parameters: Parameters,
        v: Any = None,
        wrenches: Wrenches = None,
        **more: Any,
    ) -> Reduction:
        """The independent speeds of `coordinates` ("independent": a choice) at closed states."""
        names = reduced.names_of(function, coordinates)
        call = self.call(function, None, wrenches, parameters)
        s = call.states(q, {} if v is None else {"v": v, **more})
        return reduced.reduction(call.system, s, names, argument="coordinates", closed=CLOSED)

    def constrained_hybrid(
        self,
        q: Any,
        v: Any,
        tau: Array,
        a_given: Array,
        mask: Array,
        wrenches: Wrenches,
        parameters: Parameters,
        *,
        function: str = "hybrid_dynamics",
        active: Active = None,
        closed: float = CLOSED,
    ) -> tuple[Array, Array]:
        call = self.call(function, active, wrenches, parameters)
        return prescribed.hybrid(call, q, v, tau, a_given, mask, closed)

    def constraint_projection_holding(
        self, q: Array, v: Array, held: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """Back onto the surface, with the coordinates and speeds of some degrees of freedom as they are."""
        return assembly.project_held(self.call("simulate", active, None, parameters), q, v, held)

    def constraint_corrections(
        self, q: Array, v: Array, active: Active, parameters: Parameters
    ) -> tuple[Array, Array]:
        """x and y in the metric of the mass matrix with G x = -phi, G y = -G v."""
        return assembly.corrections(self.call("simulate", active, None, parameters), q, v)

    # --- what all models compute, where constraints change it -------------------------------------------------

    def forward_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        wrenches: Wrenches,
        parameters: Parameters,
        method: str,
        out: Array | None,
    ) -> Array:
        name = "forward_dynamics"
        if method == of_tree.SWEEP:
            call = self.call(name, None, wrenches, parameters)
            return into(name, dynamics.accelerations(call, q, v, tau, CLOSED, False)[0], out)
        if method == "factorise":
            return into(name, self._by_factors(q, v, tau, wrenches, parameters), out)
        of_tree.check(method)
        raise UnsupportedError(
            f"{name}: method {method!r} is for models without loops, couplings and equations; 'sweep' and 'factorise' take "
            "them"
        )

    def _by_factors(self, q: Any, v: Any, tau: Any, wrenches: Wrenches, parameters: Parameters) -> Array:
        """(2) of `reduced`, solved for the accelerations of independent speeds."""
        v = self.numbers("forward_dynamics", "v", v, self.model.nv)
        found = self.reduction("forward_dynamics", "independent", q, parameters, v, wrenches, tau=tau)
        rest = found.projected(found.s.vectors[1]) - found.forces("bias_forces")
        return found.completed(np.linalg.solve(found.mass_matrix(), rest[..., None])[..., 0])

    def inverse_dynamics(
        self, q: Any, v: Any, a: Any, wrenches: Wrenches, parameters: Parameters, out: Array | None
    ) -> Array:
        call = self.call("inverse_dynamics", None, wrenches, parameters)
        return into("inverse_dynamics", dynamics.efforts(call, q, v, a, None, None, CLOSED, False)[0], out)

    def hybrid(
        self,
        q: Any,
        v: Any,
        tau: Array,
        a: Array,
        prescribed: Array,
        wrenches: Wrenches,
        parameters: Parameters,
    ) -> tuple[Array, Array]:
        return self.constrained_hybrid(q, v, tau, a, prescribed, wrenches, parameters)

    def inverse_dynamics_derivatives(
        self, q: Any, v: Any, a: Any, wrenches: Wrenches, parameters: Parameters, sensitive_to: Names
    ) -> InverseDerivatives:
        d = self.model.constrained_inverse_dynamics_derivatives(
            q, v, a, wrenches=wrenches, parameters=parameters, sensitive_to=sensitive_to
        )
        return InverseDerivatives(d.dq, d.dv, d.da, d.dwrenches, d.dparameters)

    def acceleration_slopes(
        self, q: Any, v: Any, tau: Any, wrenches: Wrenches, parameters: Parameters, sensitive_to: Names
    ) -> tuple[Array, Array, Array, Array, Mapping[str, Array]]:
        d = self.model.constrained_dynamics_derivatives(
            q, v, tau, wrenches=wrenches, parameters=parameters, sensitive_to=sensitive_to
        )
        return d.acceleration, d.dq, d.dv, d.dtau, d.dparameters

    def hybrid_slopes(
        self,
        result: HybridResult,
        q: Any,
        v: Any,
        prescribed: Array,
        wrenches: Wrenches,
        parameters: Parameters,
        sensitive_to: Names,
    ) -> HybridDerivatives:
        name, dofs = "hybrid_dynamics_derivatives", np.flatnonzero(prescribed)
        d, slopes = derivatives.hybrid_derivatives(
            self.model, name, result, q, v, dofs, wrenches, parameters, sensitive_to
        )
        return replace(d, dparameters=by_name(slopes, sensitive_to))

    # --- products with derivatives ----------------------------------------------------------------------------

    def jvp(
        self,
        name: str,
        at: Sequence[Any],
        along: Sequence[Any],
        wrenches: Wrenches,
        along_wrenches: Wrenches,
        **options: Any,
    ) -> tuple[Any, Any]:
        if not find("jvp", name, "has_derivatives").held:
            return super().jvp(name, at, along, wrenches, along_wrenches, **options)
        forces = mapping("jvp", "wrenches", wrenches)
        moved = mapping("jvp", "along_wrenches", along_wrenches)
        directional_kernels.options(self.model, "jvp", name, wrenches=tuple(forces), **options)
        return derivatives.jvp(self.model, name, at, along, forces, moved)

    def vjp(
        self, name: str, at: Sequence[Any], weight: Any, wrenches: Wrenches, **options: Any
    ) -> tuple[Any, ...]:
        if not find("vjp", name, "has_derivatives").held:
            return super().vjp(name, at, weight, wrenches, **options)
        forces = mapping("vjp", "wrenches", wrenches)
        directional_kernels.options(self.model, "vjp", name, wrenches=tuple(forces), **options)
        return derivatives.vjp(self.model, name, at, weight, forces)

    def hessian_kernel(self, function: str, name: str, at: Sequence[Any], **options: Any) -> Kernel:
        if not find(function, name, "has_derivatives").held:
            return super().hessian_kernel(function, name, at, **options)
        directional_kernels.options(self.model, function, name, **options)
        return derivatives.hessian_kernel(self.model, function, name, at, options["wrenches"])

    # --- kernels and source -----------------------------------------------------------------------------------

    def compiled_kernel(
        self,
        name: str,
        wrenches: Names,
        lowering: Lowering,
        at: Any,
        actuated: Names | None,
        weights: Mapping[str, float] | None,
    ) -> Kernel:
        held = _held(name)
        if held is None:
            return super().compiled_kernel(name, wrenches, lowering, at, actuated, weights)
        options = self._graph_options("compile", name, held, at, wrenches, actuated, weights)
        if lowering == "rolled":
            raise UnsupportedError(f"compile: {name} of a model with loops cannot be rolled")
        return tree_kernels.graph_kernel(self.model, held.name, options, name)

    def export_c(
        self,
        name: str,
        directory: str | Path,
        wrenches: Names,
        frame: str | None,
        reference: Reference,
        about: str,
        at: Any,
        actuated: Names | None,
        weights: Mapping[str, float] | None,
        precision: str,
    ) -> list[Path]:
        held = _held(name)
        if held is None:
            return super().export_c(
                name, directory, wrenches, frame, reference, about, at, actuated, weights, precision
            )
        check_directory(directory)
        options = self._graph_options("export_c", name, held, at, wrenches, actuated, weights)
        return self.exported(held.name, options, directory, name, at, precision)

    def _graph_options(
        self,
        function: str,
        name: str,
        held: Algorithm,
        at: Any,
        wrenches: Names,
        actuated: Names | None,
        weights: Mapping[str, float] | None,
    ) -> Options:
        """Those of the dynamics of a model with loops; refuses what there is none of."""
        frames = self.wrench_frames(function, CONSTRAINED.get(name) or TABLE[name], wrenches)
        if held.name not in CONSTRAINED or not held.has_kernel:
            self.check_tree(name)
        rows = self.rows
        if rows.solution is None:
            raise UnsupportedError(
                f"{function}: {name}: the constraints of model {self.model.name!r} are too many for code without loops "
                f"({len(rows.parts)}); the methods of the model take them"
            )
        if at is None:
            raise ArgumentError(
                f"{function}: {name} of a model with loops, couplings or equations needs at=, a configuration that closes "
                "them (model.assemble finds one): the rows that count are chosen there"
            )
        if "inverse" in name:
            found = symbolic.inverse_options(self.model, function, at, actuated, weights)
        elif actuated is not None or weights is not None:
            raise ArgumentError(f"{function}: {name} takes no actuated joints and no weights")
        else:
            found = symbolic.constrained_options(self.model, function, at)
        return Options(wrenches=frames, guarded=True, **found)


def _held(name: str) -> Algorithm | None:
    """What computes an algorithm under constraints (itself, where nothing does); None where constraints do not change it."""
    if not isinstance(name, str):
        return None
    if name in CONSTRAINED:
        own = CONSTRAINED[name]
        return own if own.is_method and own.has_kernel else None
    found = TABLE.get(name)
    return CONSTRAINED.get(found.held, found) if found is not None and found.needs_tree else None
