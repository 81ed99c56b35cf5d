"""Frames, the centre of mass, momentum and power of a model, and the derivatives of its dynamics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from alembert.algorithms import directional_kernels, frames, kernels
from alembert.algorithms.algorithm import Options
from alembert.algorithms.evaluation import EquationsOfMotion, Parameters, Wrenches, all_finite
from alembert.algorithms.frames import Reference
from alembert.algorithms.results import (
    ForwardDerivatives,
    HybridDerivatives,
    HybridResult,
    InverseDerivatives,
)
from alembert.algorithms.table import TABLE
from alembert.arguments import check_known, common, mapping
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.spatial import Pose

Array = np.ndarray


class Kinematics(EquationsOfMotion):
    """`reference` is one of those of `alembert.algorithms.frames`."""

    def frame_pose(self, q: Any, frame: str, parameters: Parameters) -> Pose:
        X_W = self.evaluate("poses", (q,), parameters=parameters, caller="frame_pose")
        return frames.pose(X_W, *self.locate("frame_pose", frame, parameters))

    def frame_velocity(
        self, q: Any, v: Any, frame: str, reference: Reference, parameters: Parameters
    ) -> Array:
        frames.check_reference("frame_velocity", reference)
        node, offset = self.locate("frame_velocity", frame, parameters)
        own = self._node_motion("velocities", (q, v), node, offset, parameters, "frame_velocity")
        found = frames.refer(self._pose_for(q, frame, reference, parameters), own, reference)
        return _no_overflow("frame_velocity", found, own)

    def frame_acceleration(
        self, q: Any, v: Any, a: Any, frame: str, reference: Reference, parameters: Parameters
    ) -> Array:
        frames.check_reference("frame_acceleration", reference)
        node, offset = self.locate("frame_acceleration", frame, parameters)
        V = self._node_motion("velocities", (q, v), node, offset, parameters, "frame_acceleration")
        A = self._node_motion("accelerations", (q, v, a), node, offset, parameters, "frame_acceleration")
        X = self._pose_for(q, frame, reference, parameters)
        return _no_overflow("frame_acceleration", frames.acceleration_in(X, V, A, reference), V, A)

    def frame_jacobian(
        self, q: Any, frame: str, reference: Reference, point: Any, parameters: Parameters
    ) -> Array:
        frames.check_reference("frame_jacobian", reference)
        node, offset = self.locate("frame_jacobian", frame, parameters)
        if point is not None:
            where = self.numbers("frame_jacobian", "point", point, 3, batch=False)
            if not np.isfinite(where).all():
                raise ArgumentError(f"frame_jacobian: point is {point!r}, expected finite numbers")
            offset = offset @ Pose(np.eye(3), where)
        if self.tree.has_modes:
            return self._flexible_jacobian(q, frame, reference, point, parameters)
        columns, X_W = self.evaluate("subspaces", (q,), parameters=parameters, caller="frame_jacobian")
        X = frames.pose(X_W, node, offset)
        found = frames.jacobian(columns, self.tree.support[node], X, reference)
        return _no_overflow("frame_jacobian", found, columns)

    def _flexible_jacobian(
        self, q: Any, frame: str, reference: Reference, point: Any, parameters: Parameters
    ) -> Array:
        """With bodies that have modes: what these move depends on where the frame is, so that it has a kernel of its own."""
        if point is not None:
            where = self.numbers("frame_jacobian", "point", point, 3, batch=False)
            J = np.swapaxes(self._flexible_jacobian(q, frame, "local", None, parameters), -1, -2)
            J = frames.to_frame(Pose(np.eye(3), where), J)
            X = self.frame_pose(q, frame, parameters)
            there = np.asarray(X.translation) + (np.asarray(X.rotation) @ where)
            X_WC = Pose(np.asarray(X.rotation)[..., None, :, :], there[..., None, :])
            return np.swapaxes(frames.refer(X_WC, J, reference), -1, -2)
        key = ("frame_jacobian", frame, reference)
        if key not in self.kernels:
            options = Options(frame=frame, reference=reference)
            self.kernels[key] = kernels.graph_kernel(self.model, "frame_jacobian", options, "frame_jacobian")
        given = (q,) if not self.model.parameters else (q, self.parameter_array("frame_jacobian", parameters))
        return self.checked("frame_jacobian", self.kernels[key], given)

    def frame_jacobian_rate(
        self, q: Any, v: Any, frame: str, reference: Reference, parameters: Parameters
    ) -> Array:
        zero = np.zeros(self.model.nv)
        return self.frame_acceleration(q, v, zero, frame, reference, parameters)

    def center_of_mass(self, q: Any, parameters: Parameters) -> Array:
        total = self.evaluate("composite", (q,), parameters=parameters, caller="center_of_mass")
        if np.any(total[..., 0] == 0.0):
            raise NumericalError(
                f"center_of_mass: nothing that moves in the model {self.model.name!r} has mass"
            )
        return total[..., 1:4] / total[..., 0:1]

    def momentum(self, q: Any, v: Any, about: str, parameters: Parameters) -> Array:
        h = self.evaluate("world_momentum", (q, v), parameters=parameters, caller="momentum")
        return self._about(h, q, about, "momentum", parameters)

    def momentum_matrix(self, q: Any, about: str, parameters: Parameters) -> Array:
        columns = self.evaluate("world_momentum_rows", (q,), parameters=parameters, caller="momentum_matrix")
        moved = self._about(columns, q, about, "momentum_matrix", parameters, extra=1)
        return np.swapaxes(moved, -1, -2)

    def _node_motion(
        self,
        name: str,
        given: tuple[Any, ...],
        node: int,
        offset: Pose,
        parameters: Parameters,
        caller: str,
    ) -> Array:
        motions = self.evaluate(name, given, parameters=parameters, caller=caller)
        if node < 0:
            return np.zeros((*motions.shape[:-2], 6))
        return frames.to_frame(offset, motions[..., node, :])

    def _pose_for(self, q: Any, frame: str, reference: Reference, parameters: Parameters) -> Pose:
        if reference == "local":
            return Pose.identity()
        return self.frame_pose(q, frame, parameters)

    def _about(
        self, h: Array, q: Any, about: str, function: str, parameters: Parameters, extra: int = 0
    ) -> Array:
        """Forces (..., 6) in the world, about another point."""
        frames.check_about(function, about)
        if about == "world":
            return h
        c = self.center_of_mass(q, parameters)
        if extra:
            c = c[..., None, :]
        return _no_overflow(function, frames.about(c, h), h, c)

    @frames.QUIET
    def power(self, q: Any, v: Any, tau: Any, wrenches: Wrenches | None, parameters: Parameters) -> Any:
        tau, v = (self.numbers("power", name, x, self.model.nv) for name, x in (("tau", tau), ("v", v)))
        parts = [(tau, v)]
        shapes = [("v", v.shape[:-1]), ("tau", tau.shape[:-1])]
        for frame, wrench in mapping("power", "wrenches", wrenches).items():
            F = self.numbers("power", f"wrench on {frame!r}", wrench, 6)
            parts.append((F, self.frame_velocity(q, v, frame, "local", parameters)))
            shapes += [
                (f"wrench on {frame!r}", F.shape[:-1]),
                (f"velocity of {frame!r}", parts[-1][1].shape[:-1]),
            ]
        common("power", shapes)
        total = sum(np.sum(F * V, axis=-1) for F, V in parts)
        if not np.all(np.isfinite(total)):
            raise NumericalError("power: the result is not finite; nor are all of v, tau and wrenches")
        return total

    def check_configuration(self, q: Any) -> None:
        self.model.space.check("check_configuration", q)


def _no_overflow(function: str, found: Array, *sources: Array) -> Array:
    """What was found from `sources`; those that are not finite have been told of."""
    if not all_finite(found) and not np.isfinite(found).all() and all(np.isfinite(x).all() for x in sources):
        raise NumericalError(f"{function}: the result is not finite; numbers overflow")
    return found


class Derivatives(Kinematics):
    """Every derivative with respect to q is tangent, (..., nv, nv)."""

    def inverse_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        a: Any,
        wrenches: Wrenches | None,
        parameters: Parameters,
        sensitive_to: Sequence[str],
    ) -> InverseDerivatives:
        name = "inverse_dynamics_derivatives"
        chosen = self.parameter_indices(name, sensitive_to)
        dq, dv, da = self.evaluate(name, (q, v, a), wrenches=wrenches, parameters=parameters)
        forces = {
            frame: np.broadcast_to(-J, (*dq.shape[:-1], 6))
            for frame, J in self.generalised_forces(q, wrenches, parameters).items()
        }
        slopes = {}
        if chosen:
            values = self.parameter_array(name, parameters)
            slopes = by_name(self.effort_slopes(q, v, a, values, wrenches, chosen), sensitive_to)
        return InverseDerivatives(dq, dv, da, forces, slopes)

    def forward_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        tau: Any,
        wrenches: Wrenches | None,
        parameters: Parameters,
        sensitive_to: Sequence[str],
    ) -> ForwardDerivatives:
        a, dq, dv, dtau, slopes = self.acceleration_slopes(q, v, tau, wrenches, parameters, sensitive_to)
        forces = self.generalised_forces(q, wrenches, parameters)
        by_frame = {frame: dtau @ J for frame, J in forces.items()}
        return ForwardDerivatives(a, dq, dv, dtau, by_frame, slopes)

    def acceleration_slopes(
        self,
        q: Any,
        v: Any,
        tau: Any,
        wrenches: Wrenches | None,
        parameters: Parameters,
        sensitive_to: Sequence[str],
    ) -> tuple[Array, Array, Array, Array, Mapping[str, Array]]:
        """The accelerations and their derivatives by q, v, tau and named parameters."""
        name = "forward_dynamics_derivatives"
        chosen = self.parameter_indices(name, sensitive_to)
        a, dq, dv, dtau = self.evaluate(name, (q, v, tau), wrenches=wrenches, parameters=parameters)
        if not chosen:
            return a, dq, dv, dtau, {}
        tau_p = self.effort_slopes(q, v, a, self.parameter_array(name, parameters), wrenches, chosen)
        return a, dq, dv, dtau, by_name(-dtau @ tau_p, sensitive_to)

    def hybrid_dynamics_derivatives(
        self,
        q: Any,
        v: Any,
        accelerations: Mapping[str, Any] | None,
        torques: Mapping[str, Any] | None,
        wrenches: Wrenches | None,
        parameters: Parameters,
        sensitive_to: Sequence[str],
    ) -> HybridDerivatives:
        name = "hybrid_dynamics_derivatives"
        self.parameter_indices(name, sensitive_to)
        result = self.hybrid_dynamics(q, v, accelerations, torques, wrenches, parameters)
        prescribed, _ = self.by_name(
            name, {} if accelerations is None else accelerations, "accelerations", (q, v)
        )
        return self.hybrid_slopes(result, q, v, prescribed, wrenches, parameters, sensitive_to)

    def hybrid_slopes(
        self,
        result: HybridResult,
        q: Any,
        v: Any,
        prescribed: Array,
        wrenches: Wrenches | None,
        parameters: Parameters,
        sensitive_to: Sequence[str],
    ) -> HybridDerivatives:
        """At a result of hybrid dynamics, where a mask marks the speeds that follow accelerations."""
        name = "hybrid_dynamics_derivatives"
        chosen = self.parameter_indices(name, sensitive_to)
        free = (~prescribed).astype(float)
        dq, dv, inverse, tau_q, tau_v, M = self.evaluate(
            name, (q, v, result.accelerations, free), wrenches=wrenches, parameters=parameters
        )
        f, p = np.flatnonzero(~prescribed), np.flatnonzero(prescribed)
        M_fp, M_pf = M[..., f[:, None], p], M[..., p[:, None], f]
        inverse = inverse[..., f[:, None], f]

        def complete(rows: Array, moved: Array) -> Array:
            """(accelerations; efforts) for a change `rows` of the efforts at fixed accelerations, which moves the free."""
            change = np.zeros((*moved.shape[:-2], 2, self.model.nv, moved.shape[-1]))
            change[..., 0, f, :] = moved
            change[..., 1, p, :] = rows[..., p, :] + M_pf @ moved
            return change

        given = np.zeros((*M.shape[:-2], 2, self.model.nv, self.model.nv))
        given[..., 1, f, f] = 1.0
        given[..., 0, p, p] = 1.0
        given[..., 0, f[:, None], f] = inverse
        given[..., 0, f[:, None], p] = -inverse @ M_fp
        given[..., 1, p[:, None], f] = M_pf @ inverse
        given[..., 1, p[:, None], p] = M[..., p[:, None], p] - M_pf @ inverse @ M_fp
        forces = {
            frame: complete(-J, inverse @ J[..., f, :])
            for frame, J in self.generalised_forces(q, wrenches, parameters).items()
        }
        by_q, by_v = complete(tau_q, dq[..., f, :]), complete(tau_v, dv[..., f, :])
        slopes = {}
        if chosen:
            values = self.parameter_array(name, parameters)
            tau_p = self.effort_slopes(q, v, result.accelerations, values, wrenches, chosen)
            slopes = by_name(complete(tau_p, -inverse @ tau_p[..., f, :]), sensitive_to)
        return HybridDerivatives(result, by_q, by_v, given, forces, slopes)

    def parameter_indices(self, function: str, names: Sequence[str]) -> list[int]:
        """Which parameters are named."""
        if isinstance(names, str) or not isinstance(names, Sequence):
            hint = "; values go into parameters" if isinstance(names, Mapping) else ""
            raise ArgumentError(f"{function}: sensitive_to is {names!r}, expected a list of names{hint}")
        known = list(self.model.parameter_values)
        for name in names:
            check_known(f"{function}: sensitive_to: no parameter", name, known)
        return [known.index(name) for name in names]

    def effort_slopes(
        self, q: Any, v: Any, a: Array, values: Array, wrenches: Wrenches | None, chosen: Sequence[int]
    ) -> Array:
        """dtau/dp of the tree's inverse dynamics at a fixed motion, (..., nv, parameters); `values` are all."""
        arrays = [np.asarray(x, dtype=float) for x in (q, v, a, values)]
        forces = {frame: np.asarray(x, dtype=float) for frame, x in (wrenches or {}).items()}
        zero, directions = np.zeros(self.model.nv), np.eye(len(self.model.parameters))[list(chosen)]
        _, change = self.model.jvp(
            "inverse_dynamics",
            [x[..., None, :] for x in arrays],
            (zero, zero, zero, directions),
            wrenches={frame: x[..., None, :] for frame, x in forces.items()},
        )
        return np.swapaxes(change, -1, -2)

    def generalised_forces(
        self, q: Any, wrenches: Wrenches | None, parameters: Parameters
    ) -> dict[str, Array]:
        """For each frame, the matrix J^T of the efforts that a wrench on it is worth, (..., nv, 6)."""
        return {
            frame: np.swapaxes(self.frame_jacobian(q, frame, "local", None, parameters), -1, -2)
            for frame in wrenches or {}
        }

    def jvp(
        self,
        name: str,
        at: Sequence[Any],
        along: Sequence[Any],
        wrenches: Wrenches | None,
        along_wrenches: Wrenches | None,
        **options: Any,
    ) -> tuple[Any, Any]:
        forces = mapping("jvp", "wrenches", wrenches)
        moved = mapping("jvp", "along_wrenches", along_wrenches)
        kernel = self.directional_kernel("jvp", name, wrenches=tuple(forces), **options)
        changes = directional_kernels.gathered(tuple(forces), moved)
        count = len(kernel.arguments) // 2
        values = self._completed("jvp", name, at, kernel.arguments[:count], "at", [*forces.values()])
        directions = self._completed("jvp", name, along, kernel.arguments[:count], "along", changes)
        given = (*values, *directions)
        self._check_physical("jvp", kernel, given)
        found = self.checked("jvp", kernel, given)
        if name == "hybrid_dynamics":
            directional_kernels.check_choice(directions[4])
        half = len(found) // 2
        if TABLE[name].gives_number:
            return found[0][..., 0], found[1][..., 0]
        return found if half == 1 else (found[:half], found[half:])

    def vjp(
        self, name: str, at: Sequence[Any], weight: Any, wrenches: Wrenches | None, **options: Any
    ) -> tuple[Any, ...]:
        forces = mapping("vjp", "wrenches", wrenches)
        kernel = self.directional_kernel("vjp", name, wrenches=tuple(forces), **options)
        found = self._weighted("vjp", kernel, name, at, weight, forces)
        gradients = found if isinstance(found, tuple) else (found,)
        if name == "hybrid_dynamics":
            gradients = (*gradients[:4], np.zeros_like(gradients[4]), *gradients[5:])
        if not forces:
            return gradients
        start = len(gradients) - len(forces) - bool(self.model.parameters)
        by_frame = dict(zip(forces, gradients[start : start + len(forces)], strict=True))
        return (*gradients[:start], *gradients[start + len(forces) :], by_frame)

    def hessian(
        self, name: str, at: Sequence[Any], weight: Any, wrenches: Wrenches | None, **options: Any
    ) -> Any:
        forces = mapping("hessian", "wrenches", wrenches)
        kernel = self.hessian_kernel("hessian", name, at, wrenches=tuple(forces), **options)
        return _held(name, self.model.nv, self._weighted("hessian", kernel, name, at, weight, forces))

    def second_derivatives(self, name: str, at: Sequence[Any], **options: Any) -> Any:
        forces = mapping("second_derivatives", "wrenches", options.get("wrenches"))
        known = {key: options.get(key) for key in ("frame", "reference", "about")}
        unknown_options = set(options) - {*known, "wrenches"}
        if unknown_options:
            raise ArgumentError(
                f"second_derivatives: no option {min(unknown_options)!r}; there is wrenches, frame, reference, about"
            )
        kernel = self.hessian_kernel("second_derivatives", name, at, wrenches=tuple(forces), **known)
        shapes = [a.shape for a in kernel.arguments if a.name.startswith("weight of ")]
        sizes = [int(np.prod(shape)) for shape in shapes]
        total = sum(sizes)
        parts = np.split(np.eye(total), np.cumsum(sizes)[:-1], axis=1)
        units = tuple(x.reshape(total, *shape) for x, shape in zip(parts, shapes, strict=True))
        function = "second_derivatives"
        if not isinstance(at, Sequence | Array) or isinstance(at, str):
            raise ArgumentError(f"{function}: {name} takes a tuple of arguments, got {at!r}")
        moved = [_with_axis(self.numbers(function, f"argument {k}", x)) for k, x in enumerate(at)]
        wider = {
            key: _with_axis(self.numbers(function, f"wrench on {key!r}", x)) for key, x in forces.items()
        }
        weight = units if len(units) > 1 else units[0]
        tensor = _held(name, self.model.nv, self._weighted(function, kernel, name, moved, weight, wider))
        found = np.split(tensor, np.cumsum(sizes)[:-1], axis=-3)
        return tuple(found) if len(found) > 1 else found[0]

    def _weighted(
        self, mode: str, kernel: Kernel, name: str, at: Sequence[Any], weight: Any, forces: Mapping[str, Any]
    ) -> Any:
        weights = [a for a in kernel.arguments if a.name.startswith("weight of ")]
        named = [replace(a, name=a.name.removeprefix("weight of ")) for a in weights]
        given = directional_kernels.weights(mode, named, weight, name)
        count = len(kernel.arguments) - len(given)
        values = self._completed(mode, name, at, kernel.arguments[:count], "at", [*forces.values()])
        self._check_physical(mode, kernel, values)
        return self.checked(mode, kernel, (*values, *given))

    def hessian_kernel(self, function: str, name: str, at: Sequence[Any], **options: Any) -> Kernel:
        return self.directional_kernel("hessian", name, of_any_size=True, **options)

    def _check_physical(self, function: str, kernel: Kernel, values: Sequence[Any]) -> None:
        """Refuse parameters among the arguments that the builder would refuse."""
        for argument, value in zip(kernel.arguments, values, strict=False):
            if argument.name == "parameters" and value is not self.parameter_defaults:
                p = self.numbers(function, "parameters", value)
                if p.shape[-1:] == argument.shape and np.all(
                    np.isfinite(p)
                ):  # the kernel says what else is wrong
                    self.physical.check(function, p)

    def _completed(
        self,
        function: str,
        name: str,
        values: Sequence[Any],
        arguments: Sequence[Argument],
        where: str,
        wrenches: Sequence[Any] = (),
    ) -> list[Any]:
        """The arguments of an algorithm, wrenches among them, with the parameters at their defaults when left out.

        They stand `where`: "at" a state, or "along" a direction from it.
        """
        listed = isinstance(values, Sequence) and not isinstance(values, str)
        if not listed and not (isinstance(values, Array) and values.ndim):
            raise ArgumentError(f"{function}: {name} takes a tuple of arguments, got {values!r}")
        given = list(values)
        expected = len(arguments) - len(wrenches)
        takes_parameters = bool(self.model.parameters) and arguments[-1].name == "parameters"
        if takes_parameters and len(given) == expected - 1:
            given.append(self.parameter_defaults if where == "at" else 0.0 * self.parameter_defaults)
        if len(given) != expected:
            names = ", ".join(a.name for a in arguments if not a.name.startswith("wrench"))
            raise ArgumentError(
                f"{function}: {name} takes {expected} arguments, got {len(given)} in `{where}`; they are {names}"
            )
        return [*given[:-1], *wrenches, given[-1]] if takes_parameters else [*given, *wrenches]

    def directional_kernel(
        self,
        mode: directional_kernels.Mode,
        name: str,
        *,
        wrenches: tuple[str, ...] = (),
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
        of_any_size: bool = False,
    ) -> Kernel:
        """`of_any_size`: a Hessian that may be made of products, which is no kernel to compile or export."""
        for what, value in (("name", name), ("frame", frame), ("reference", reference), ("about", about)):
            if not isinstance(value, str) and (value is not None or what == "name"):
                raise ArgumentError(f"{mode}: {what} is {value!r}, expected a name")
        key = (mode, name, wrenches, frame, reference, about, of_any_size)
        if key not in self.kernels:
            options = directional_kernels.options(
                self.model, mode, name, wrenches=wrenches, frame=frame, reference=reference, about=about
            )
            for name_of_frame in wrenches:
                self.check_moves(mode, name_of_frame)
            if of_any_size:
                self.kernels[key] = directional_kernels.hessian_kernel(self.model, name, options)
            else:
                self.kernels[key] = directional_kernels.kernel(self.model, mode, name, options)
        return self.kernels[key]


def by_name(slopes: Array, names: Sequence[str]) -> dict[str, Array]:
    """The columns of a matrix by the parameters that they belong to."""
    return {name: slopes[..., k] for k, name in enumerate(names)}


def _held(name: str, nv: int, H: Array) -> Array:
    """Hessians without what does not vary: which speeds are free in hybrid dynamics."""
    if name == "hybrid_dynamics":
        H[..., 4 * nv : 5 * nv, :] = H[..., 4 * nv : 5 * nv] = 0.0
    return H


def _with_axis(x: Array) -> Array:
    """A batch dimension before the last one."""
    return np.expand_dims(x, -2) if x.ndim else x
