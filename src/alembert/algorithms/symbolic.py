"""The algorithms on the user's own CasADi expressions: `model.symbolic.forward_dynamics(q, v, tau)`.

What the user gives to `model.symbolic`: expressions or numbers, checked as arrays are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.algorithms import algorithm, directional_kernels, frames, kernels
from alembert.algorithms.algorithm import Algorithm, Graph, Options
from alembert.algorithms.evaluation import FrameLike
from alembert.algorithms.frames import Reference
from alembert.algorithms.results import (
    ForwardDerivatives,
    HybridDerivatives,
    HybridResult,
    Innovations,
    InverseDerivatives,
)
from alembert.algorithms.table import TABLE, find
from alembert.arguments import check_known, mapping
from alembert.engine.kernel import Argument
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.spatial import Pose
from alembert.sweeps import Program, Tree


def parameter_column(function: str, model: Model, parameters: Any) -> Any:
    """All parameters as a column; None where the model has none."""
    if not model.parameters:
        if parameters is not None and not (isinstance(parameters, Mapping) and not parameters):
            raise ArgumentError(f"{function}: parameters are given, but the model has none")
        return None
    if parameters is None:
        return model.compute.parameter_defaults
    if not isinstance(parameters, Mapping):
        return parameters
    for key in parameters:
        check_known(f"{function}: no parameter", key, model.parameter_values)
    entries = [(key, slice(k, k + 1)) for k, key in enumerate(model.parameter_values) if key in parameters]
    given = [(f"parameter {key!r}", s, parameters[key]) for key, s in entries]
    return joined(function, given, list(model.parameter_values.values()))


def joined(function: str, entries: Sequence[tuple[str, slice, Any]], otherwise: Sequence[float]) -> Any:
    """A column with values given for parts of it, and the others as in `otherwise`."""
    parts: list[Any] = [float(x) for x in otherwise]
    known = {}
    for what, s, value in entries:
        width = s.stop - s.start
        several = isinstance(value, list | tuple) or getattr(value, "shape", ()) not in ((), (1, 1))
        scalar = width == 1 and not several
        column = _expression(function, Argument(what, () if scalar else (width,)), value)
        known[what] = column
        parts[s] = [column[k] for k in range(width)]
    check_one_kind(function, known)
    return ca.vertcat(*parts) if parts else np.zeros(0)


def checked(function: str, expected: Sequence[Argument], given: Sequence[Any]) -> list[Any]:
    """Expressions or numbers of the expected shapes: CasADi itself would repeat scalars and turn rows."""
    values = [_expression(function, a, x) for a, x in zip(expected, given, strict=True)]
    check_one_kind(function, {a.name: x for a, x in zip(expected, values, strict=True)})
    return values


def check_one_kind(function: str, given: Mapping[str, Any]) -> None:
    kinds = {type(x): name for name, x in given.items() if isinstance(x, ca.SX | ca.MX)}
    if len(kinds) > 1:
        listed = ", ".join(f"{name} is {kind.__name__}" for kind, name in kinds.items())
        raise ArgumentError(f"{function}: {listed}; expected expressions of one kind")


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
    columns = (*argument.shape, 1, 1)[:2]
    empty = not argument.size and 0 in value.shape
    if value.shape not in (argument.shape, columns) and not empty:
        hint = f"; {argument.hint}" if argument.hint else ""
        raise ArgumentError(
            f"{function}: {argument.name} has shape {value.shape}, expected {argument.shape}{hint}"
        )
    if empty:
        return ca.DM(*columns)
    return ca.DM(np.atleast_1d(value.astype(float))) if isinstance(value, np.ndarray) else value


Wrenches = Mapping[str, Any] | None


class Symbolic:
    """The methods of a model on `SX`, `MX` or numbers, unrolled over the tree: the same names and arguments.

    Vectors are columns. `parameters` maps names to scalar expressions, as in the methods of the model, or is a column
    of all of them; those not named are at their defaults.
    """

    def __init__(self, model: Model, tree: Tree) -> None:
        self._model, self._tree = model, tree
        self._functions: dict[tuple[str, tuple[str, ...]], ca.Function] = {}
        self._graphs: dict[tuple[str, Options], Graph] = {}

    # --- equations of motion ---------------------------------------------------------------------------------

    def forward_dynamics(
        self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches = None, parameters: Any = None
    ) -> Any:
        """The accelerations that the efforts `tau` cause, by the articulated sweep."""
        return self._call("forward_dynamics", parameters, wrenches, q, v, tau)

    def inverse_dynamics(
        self, q: Any, v: Any, a: Any, *, wrenches: Wrenches = None, parameters: Any = None
    ) -> Any:
        """The efforts that the accelerations `a` take."""
        return self._call("inverse_dynamics", parameters, wrenches, q, v, a)

    def hybrid_dynamics(
        self,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Wrenches = None,
        parameters: Any = None,
    ) -> HybridResult:
        """Named degrees of freedom follow given accelerations, the others given efforts (zero where not named)."""
        name = "hybrid_dynamics"
        options, tau, a = self._hybrid(name, accelerations, torques)
        return HybridResult(*self._call(name, parameters, wrenches, q, v, tau, a, **options))

    def bias_forces(self, q: Any, v: Any, *, wrenches: Wrenches = None, parameters: Any = None) -> Any:
        """The efforts at zero acceleration."""
        return self._call("bias_forces", parameters, wrenches, q, v)

    def gravity_forces(self, q: Any, *, parameters: Any = None) -> Any:
        """The efforts that hold the model against gravity alone."""
        return self._call("gravity_forces", parameters, None, q)

    def coriolis_forces(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        """Coriolis and centrifugal efforts alone."""
        return self._call("coriolis_forces", parameters, None, q, v)

    def mass_matrix(self, q: Any, *, parameters: Any = None) -> Any:
        """M(q)"""
        return self._call("mass_matrix", parameters, None, q)

    def inverse_mass_matrix(self, q: Any, *, parameters: Any = None) -> Any:
        """M(q)^-1, by its factors along the tree."""
        return self._call("inverse_mass_matrix", parameters, None, q)

    def solve_mass_matrix(self, q: Any, x: Any, *, parameters: Any = None) -> Any:
        """M(q)^-1 x"""
        return self._call("solve_mass_matrix", parameters, None, q, x)

    def multiply_mass_matrix(self, q: Any, x: Any, *, parameters: Any = None) -> Any:
        """M(q) x"""
        return self._call("multiply_mass_matrix", parameters, None, q, x)

    # --- kinematics ------------------------------------------------------------------------------------------

    def frame_pose(self, q: Any, frame: str, *, parameters: Any = None) -> Pose:
        """X_WC: `.rotation` (3, 3) and `.translation` (3, 1)."""
        return Pose(*self._call("frame_pose", parameters, None, q, frame=frame))

    def frame_velocity(
        self, q: Any, v: Any, frame: str, *, reference: Reference = "local", parameters: Any = None
    ) -> Any:
        """The frame's (angular, linear) velocity."""
        options = self._frame("frame_velocity", frame, reference)
        return self._call("frame_velocity", parameters, None, q, v, **options)

    def frame_acceleration(
        self, q: Any, v: Any, a: Any, frame: str, *, reference: Reference = "local", parameters: Any = None
    ) -> Any:
        """The time derivative of `frame_velocity` in the same reference, gravity not included."""
        options = self._frame("frame_acceleration", frame, reference)
        return self._call("frame_acceleration", parameters, None, q, v, a, **options)

    def frame_jacobian(
        self,
        q: Any,
        frame: str,
        *,
        reference: Reference = "local",
        point: Any = None,
        parameters: Any = None,
    ) -> Any:
        """J with frame_velocity = J v, (6, nv); `point` moves the frame's origin (in frame axes)."""
        options = self._frame("frame_jacobian", frame, reference)
        more = () if point is None else (point,)
        return self._call("frame_jacobian", parameters, None, q, *more, point=bool(more), **options)

    def frame_jacobian_rate(
        self, q: Any, v: Any, frame: str, *, reference: Reference = "local", parameters: Any = None
    ) -> Any:
        """(dJ/dt) v."""
        options = self._frame("frame_jacobian_rate", frame, reference)
        return self._call("frame_jacobian_rate", parameters, None, q, v, **options)

    def center_of_mass(self, q: Any, *, parameters: Any = None) -> Any:
        """Of everything that moves, in the world."""
        return self._call("center_of_mass", parameters, None, q)

    def momentum(self, q: Any, v: Any, *, about: str = "center_of_mass", parameters: Any = None) -> Any:
        """(angular, linear) momentum in world axes, about the centre of mass or about "world"'s origin."""
        frames.check_about("momentum", about)
        return self._call("momentum", parameters, None, q, v, about=about)

    def momentum_matrix(self, q: Any, *, about: str = "center_of_mass", parameters: Any = None) -> Any:
        """The matrix that maps v to the momentum, (6, nv)."""
        frames.check_about("momentum_matrix", about)
        return self._call("momentum_matrix", parameters, None, q, about=about)

    def poses(self, q: Any, *, parameters: Any = None) -> Any:
        """One row per moving body: the rotation by rows, then the position."""
        return self._call("poses", parameters, None, q)

    # --- energy ----------------------------------------------------------------------------------------------

    def kinetic_energy(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call("kinetic_energy", parameters, None, q, v)

    def potential_energy(self, q: Any, *, parameters: Any = None) -> Any:
        return self._call("potential_energy", parameters, None, q)

    def energy(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        return self._call("energy", parameters, None, q, v)

    def power(self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches = None, parameters: Any = None) -> Any:
        """What efforts and wrenches feed in."""
        return self._call("power", parameters, wrenches, q, v, tau)

    # --- configurations --------------------------------------------------------------------------------------

    def integrate(self, q: Any, dv: Any) -> Any:
        """The configuration reached from q by the tangent displacement dv."""
        return self._call("integrate", None, None, q, dv)

    def difference(self, q0: Any, q1: Any) -> Any:
        """The tangent displacement from q0 to q1."""
        return self._call("difference", None, None, q0, q1)

    def rate(self, q: Any, v: Any) -> Any:
        """dq/dt."""
        return self._call("rate", None, None, q, v)

    # --- derivatives -----------------------------------------------------------------------------------------

    def inverse_dynamics_derivatives(
        self, q: Any, v: Any, a: Any, *, wrenches: Wrenches = None, parameters: Any = None
    ) -> InverseDerivatives:
        """d tau/dq (tangent), d tau/dv and d tau/da = M, by their recursions."""
        name = "inverse_dynamics_derivatives"
        forces = {f: -self.frame_jacobian(q, f, parameters=parameters).T for f in wrenches or ()}
        dq, dv, da = self._call(name, parameters, wrenches, q, v, a)
        return InverseDerivatives(dq, dv, da, forces)

    def forward_dynamics_derivatives(
        self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches = None, parameters: Any = None
    ) -> ForwardDerivatives:
        """The accelerations and d a/dq (tangent), d a/dv, d a/dtau = M^-1."""
        name = "forward_dynamics_derivatives"
        a, dq, dv, dtau = self._call(name, parameters, wrenches, q, v, tau)
        forces = {f: dtau @ self.frame_jacobian(q, f, parameters=parameters).T for f in wrenches or ()}
        return ForwardDerivatives(a, dq, dv, dtau, forces)

    def hybrid_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Wrenches = None,
        parameters: Any = None,
    ) -> HybridDerivatives:
        """Derivatives of `hybrid_dynamics`; each is a pair of matrices, of the accelerations and of the efforts."""
        name = "hybrid_dynamics_derivatives"
        options, tau, a = self._hybrid(name, accelerations, torques)
        a, effort, *pairs = self._call(name, parameters, wrenches, q, v, tau, a, **options)
        by_q, by_v, by_given = zip(pairs[::2], pairs[1::2], strict=True)
        forces = {
            f: self._hybrid_by_wrench(
                self.frame_jacobian(q, f, parameters=parameters).T, by_given, options["free"]
            )
            for f in wrenches or ()
        }
        return HybridDerivatives(HybridResult(a, effort), by_q, by_v, by_given, forces)  # type: ignore[arg-type]

    def _hybrid_by_wrench(self, forces: Any, by_given: Any, free: Sequence[bool]) -> Any:
        """A wrench acts like efforts J^T F: on free speeds these move it, on prescribed ones they are saved."""
        m = ca.diag(ca.DM([float(x) for x in free]))
        driven = m @ forces
        return by_given[0] @ driven, by_given[1] @ driven - driven - (ca.DM.eye(m.shape[0]) - m) @ forces

    def jvp(self, name: str, at: Sequence[Any], along: Sequence[Any]) -> tuple[Any, Any]:
        """An algorithm's result and its derivative along a direction, tangent for q; arguments as of the model's."""
        model = self._model
        function, inputs = self._directional("jvp", name)
        count = len(inputs) // 2
        values = model.compute._completed("jvp", name, at, inputs[:count], "at")
        given = [*values, *model.compute._completed("jvp", name, along, inputs[:count], "along")]
        found = function(*checked("jvp", inputs, given))
        half = len(found) // 2
        return found if half == 1 else (found[:half], found[half:])

    def vjp(self, name: str, at: Sequence[Any], weight: Any) -> tuple[Any, ...]:
        """The gradient of weight . result with respect to each argument, tangent for q."""
        found = self._weighted("vjp", name, at, weight)
        return found if isinstance(found, tuple) else (found,)

    def hessian(self, name: str, at: Sequence[Any], weight: Any) -> Any:
        """The second derivative of weight . result with respect to all arguments together."""
        return self._weighted("hessian", name, at, weight)

    # --- factors ---------------------------------------------------------------------------------------------

    def innovations(self, q: Any, *, parameters: Any = None) -> Innovations:
        """The factors of M = L D L^T, as `alembert.innovations`."""
        return Innovations(*self._call("innovations", parameters, None, q))

    def diagonalising_velocities(self, q: Any, v: Any, *, parameters: Any = None) -> Any:
        """n = L^T v, as `alembert.diagonalising_velocities`."""
        return self._call("diagonalising_velocities", parameters, None, q, v)

    def velocities_from_diagonal(self, q: Any, n: Any, *, parameters: Any = None) -> Any:
        """v from n, as `alembert.velocities_from_diagonal`."""
        return self._call("velocities_from_diagonal", parameters, None, q, n)

    def admittance(self, q: Any, frames: Sequence[FrameLike], *, parameters: Any = None) -> Any:
        """J M^-1 J^T of several frames, as `alembert.admittance`."""
        self._model.compute.check_tree("admittance")
        located = self._model.compute.carriers("admittance", frames)
        return self._call("admittance", parameters, None, q, frames=located)

    # --- functions -------------------------------------------------------------------------------------------

    def call(self, name: str, *given: Any, wrenches: Wrenches = None, parameters: Any = None) -> Any:
        """Any algorithm by its name: `call("energy", q, v)`."""
        find("call", name)
        return self._call(name, parameters, wrenches, *given)

    def function(self, program: Program, names: tuple[str, ...]) -> ca.Function:
        """The CasADi function of a program for some of its inputs (and the parameters, where there are any)."""
        key = (program.name, names)
        if key not in self._functions:
            inputs: list[Argument] = kernels.arguments(self._model, self._tree, program, names)
            graph = kernels.program_graph(self._tree, program, names)
            self._functions[key] = kernels.function(program.name, inputs, self._tree, graph)
        return self._functions[key]

    def graph(self, name: str, options: Options) -> Graph:
        """An algorithm as a function, with its inputs."""
        found = self._algorithm(name)
        if found.needs_tree:
            self._model.compute.check_tree(name)
        for frame in options.wrenches:
            self._model.compute.check_moves(name, frame)
        key = (name, options)
        if key not in self._graphs:
            self._graphs[key] = algorithm.graph(self._model, found, options)
        return self._graphs[key]

    def _algorithm(self, name: str) -> Algorithm:
        return find("graph", name)

    def _call(self, name: str, parameters: Any, wrenches: Wrenches, *given: Any, **options: Any) -> Any:
        forces = mapping(name, "wrenches", wrenches)
        graph = self.graph(name, Options(wrenches=tuple(forces), **options))
        values = [*given, *forces.values()]
        column = parameter_column(name, self._model, parameters)
        if len(values) < len(graph.inputs):
            values.append(column)
        return graph.function(*checked(name, graph.inputs, values))

    def _directional(
        self, mode: directional_kernels.Mode, name: str
    ) -> tuple[ca.Function, tuple[Argument, ...]]:
        kernel = self._model.compute.directional_kernel(mode, name)
        key = (mode, (name,))
        if key not in self._functions:
            options = None if TABLE[name].program else Options()
            self._functions[key] = directional_kernels.function(self._model, mode, name, options)
        return self._functions[key], kernel.arguments

    def _weighted(self, mode: directional_kernels.Mode, name: str, at: Sequence[Any], weight: Any) -> Any:
        function, inputs = self._directional(mode, name)
        results = [a for a in inputs if a.name.startswith("weight of ")]
        weights = directional_kernels.weights(mode, results, weight, name)
        values = self._model.compute._completed(mode, name, at, inputs[: len(inputs) - len(weights)], "at")
        return function(*checked(mode, inputs, [*values, *weights]))

    def _frame(self, name: str, frame: str, reference: Reference) -> dict[str, Any]:
        frames.check_reference(name, reference)
        return {"frame": frame, "reference": reference}

    def _hybrid(
        self,
        name: str,
        accelerations: Mapping[str, Any] | None,
        torques: Mapping[str, Any] | None,
    ) -> tuple[dict[str, Any], Any, Any]:
        """Which speeds are free; the efforts and accelerations of all."""
        model = self._model
        columns, named = [], []
        for what, values in (("torques", torques), ("accelerations", accelerations)):
            found = model.compute.named_slices(name, values, what)
            named.append({k for s in found.values() for k in range(s.start, s.stop)})
            entries = [(f"{what}: {key!r}", s, (values or {})[key]) for key, s in found.items()]
            columns.append(joined(name, entries, [0.0] * model.nv))
        model.compute.refuse_both(name, sorted(named[0] & named[1]))
        free = tuple(k not in named[1] for k in range(model.nv))
        return {"free": free}, *columns
