"""Frames, the centre of mass, momentum and power."""

from __future__ import annotations

from typing import Any

import numpy as np

from alembert.algorithms import frames, kernels
from alembert.algorithms.algorithm import Options
from alembert.algorithms.evaluation import EquationsOfMotion, Parameters, Wrenches, all_finite
from alembert.algorithms.frames import Reference
from alembert.arguments import common, mapping
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
