"""The algorithms on the user's own CasADi expressions: `model.symbolic.forward_dynamics(q, v, tau)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert import sweeps
from alembert.dynamics import kernels, manifold
from alembert.dynamics.programs import LABELS
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
        return self._call("forward_dynamics", sweeps.FORWARD_DYNAMICS, parameters, q=q, v=v, tau=tau)

    def inverse_dynamics(self, q: Any, v: Any, a: Any, *, parameters: Any = None) -> Any:
        return self._call("inverse_dynamics", sweeps.INVERSE_DYNAMICS, parameters, q=q, v=v, a=a)

    def bias_forces(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call("bias_forces", sweeps.INVERSE_DYNAMICS, parameters, q=q, v=v)

    def gravity_forces(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call("gravity_forces", sweeps.GRAVITY_FORCES, parameters, q=q)

    def coriolis_forces(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call("coriolis_forces", sweeps.CORIOLIS_FORCES, parameters, q=q, v=v)

    def hybrid_dynamics(self, q: Any, v: Any, tau: Any, a: Any, free: Any, *, parameters: Any = None) -> Any:
        """Accelerations and efforts; `free` is 1 for speeds driven by `tau` and 0 for those that follow `a`."""
        return self._call(
            "hybrid_dynamics", sweeps.HYBRID_DYNAMICS, parameters, q=q, v=v, tau=tau, a_given=a, free=free
        )

    def mass_matrix(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call("mass_matrix", sweeps.MASS_MATRIX, parameters, q=q)

    def solve_mass_matrix(self, q: Any, x: Any, *, parameters: Any = None) -> Any:
        return self._call("solve_mass_matrix", sweeps.SOLVE_MASS_MATRIX, parameters, q=q, tau=x)

    def poses(self, q: Any, *, parameters: Any = None) -> Any:
        """One row per moving body: the rotation by rows, then the position."""
        return self._call("poses", sweeps.POSES, parameters, q=q)

    def kinetic_energy(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call("kinetic_energy", sweeps.KINETIC_ENERGY, parameters, q=q, v=v)

    def potential_energy(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call("potential_energy", sweeps.POTENTIAL_ENERGY, parameters, q=q)

    def momentum(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        """About the world's origin, in world axes."""
        return self._call("momentum", sweeps.MOMENTUM, parameters, q=q, v=v)

    def integrate(self, q: Any, dv: Any) -> Any:
        return self._manifold("integrate", q, dv)

    def difference(self, q0: Any, q1: Any) -> Any:
        return self._manifold("difference", q0, q1)

    def rate(self, q: Any, v: Any) -> Any:
        """dq/dt."""
        return self._manifold("rate", q, v)

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

    def _call(self, name: str, program: Program, parameters: Any, **given: Any) -> Any:
        self._model.check_tree(name)
        values = list(given.values())
        if self._model.parameters:
            values.append(self._defaults if parameters is None else parameters)
        elif parameters is not None:
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        labels = {"a_given": "a", **LABELS.get(name, {})}
        expected = kernels.arguments(self._model, self._tree, program, tuple(given))
        expected = [replace(a, name=labels.get(a.name, a.name)) for a in expected]
        return self.function(program, tuple(given))(*_checked(name, expected, values))

    def _manifold(self, name: str, *given: Any) -> Any:
        expected = self._model._manifold_kernel(name).arguments
        return manifold.function(self._model, name)(*_checked(name, expected, given))


def _checked(function: str, expected: Sequence[Argument], given: Sequence[Any]) -> list[Any]:
    """Expressions or numbers of the expected shapes: CasADi itself would repeat scalars and turn rows."""
    values = [_expression(function, a, x) for a, x in zip(expected, given, strict=True)]
    kinds = {type(x): a.name for a, x in zip(expected, values, strict=True) if isinstance(x, ca.SX | ca.MX)}
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind.__name__}" for kind, name in kinds.items())
        raise ArgumentError(f"{function}: {listed}; expected expressions of one kind")
    return values


def _expression(function: str, argument: Argument, given: Any) -> Any:
    value = given
    if isinstance(given, list | tuple) and any(isinstance(x, ca.SX | ca.MX | ca.DM) for x in given):
        try:
            value = ca.vertcat(*given)
        except (NotImplementedError, RuntimeError, TypeError):
            value = None
    if not isinstance(value, ca.SX | ca.MX | ca.DM):
        try:
            value = np.asarray(value)
        except (TypeError, ValueError):
            value = np.asarray(None)
        if value.dtype.kind not in "fiub":
            raise ArgumentError(
                f"{function}: {argument.name} is {given!r}, expected numbers or a CasADi expression"
            )
    columns = (*argument.shape, 1)[:2]
    empty = not argument.size and 0 in value.shape
    if value.shape not in (argument.shape, columns) and not empty:
        hint = f"; {argument.hint}" if argument.hint else ""
        raise ArgumentError(
            f"{function}: {argument.name} has shape {value.shape}, expected {argument.shape}{hint}"
        )
    if empty:
        return ca.DM(*columns)
    return ca.DM(value.astype(float)) if isinstance(value, np.ndarray) else value
