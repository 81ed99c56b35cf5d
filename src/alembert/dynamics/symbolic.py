"""The algorithms on the user's own CasADi expressions: `model.symbolic.forward_dynamics(q, v, tau)`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca

from alembert import sweeps
from alembert.dynamics import kernels, manifold
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.sweeps import Program, Tree

if TYPE_CHECKING:
    from alembert.engine.kernel import Argument


class Symbolic:
    """Functions from `SX`, `MX` or numbers to the same, unrolled over the tree.

    `parameters=` takes an expression for the model's parameters; otherwise they are at their defaults.
    """

    def __init__(self, model: Model, tree: Tree) -> None:
        self._model, self._tree = model, tree
        self._functions: dict[tuple[str, tuple[str, ...]], ca.Function] = {}

    def forward_dynamics(self, q: Any, v: Any, tau: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.FORWARD_DYNAMICS, parameters, q=q, v=v, tau=tau)

    def inverse_dynamics(self, q: Any, v: Any, a: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.INVERSE_DYNAMICS, parameters, q=q, v=v, a=a)

    def bias_forces(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.INVERSE_DYNAMICS, parameters, q=q, v=v)

    def gravity_forces(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.GRAVITY_FORCES, parameters, q=q)

    def coriolis_forces(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.CORIOLIS_FORCES, parameters, q=q, v=v)

    def hybrid_dynamics(self, q: Any, v: Any, tau: Any, a: Any, free: Any, *, parameters: Any = None) -> Any:
        """Accelerations and efforts; `free` is 1 for speeds driven by `tau` and 0 for those that follow `a`."""
        return self._call(sweeps.HYBRID_DYNAMICS, parameters, q=q, v=v, tau=tau, a_given=a, free=free)

    def mass_matrix(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.MASS_MATRIX, parameters, q=q)

    def solve_mass_matrix(self, q: Any, x: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.SOLVE_MASS_MATRIX, parameters, q=q, tau=x)

    def poses(self, q: Any, *, parameters: Any = None) -> Any:
        """One row per moving body: the rotation by rows, then the position."""
        return self._call(sweeps.POSES, parameters, q=q)

    def kinetic_energy(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.KINETIC_ENERGY, parameters, q=q, v=v)

    def potential_energy(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call(sweeps.POTENTIAL_ENERGY, parameters, q=q)

    def momentum(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        """About the world's origin, in world axes."""
        return self._call(sweeps.MOMENTUM, parameters, q=q, v=v)

    def integrate(self, q: Any, dv: Any) -> Any:
        return self._manifold("integrate")(q, dv)

    def difference(self, q0: Any, q1: Any) -> Any:
        return self._manifold("difference")(q0, q1)

    def rate(self, q: Any, v: Any) -> Any:
        """dq/dt."""
        return self._manifold("rate")(q, v)

    def function(self, program: Program, names: tuple[str, ...]) -> ca.Function:
        """The CasADi function of a program for some of its inputs (and the parameters, where there are any)."""
        key = (program.name, names)
        if key not in self._functions:
            inputs: list[Argument] = kernels.arguments(self._model, self._tree, program, names)
            graph = kernels.program_graph(self._tree, program, names)
            self._functions[key] = kernels.function(program.name, inputs, self._tree, graph)
        return self._functions[key]

    @cached_property
    def _defaults(self) -> list[float]:
        return [value for _, value in self._model.parameters]

    def _call(self, program: Program, parameters: Any, **given: Any) -> Any:
        self._model.check_tree(program.name)
        values = list(given.values())
        if self._model.parameters:
            values.append(self._defaults if parameters is None else parameters)
        elif parameters is not None:
            raise ArgumentError(f"{program.name}: parameters are given, but the model has none")
        return self.function(program, tuple(given))(*values)

    def _manifold(self, name: str) -> ca.Function:
        return manifold.function(self._model, name)
