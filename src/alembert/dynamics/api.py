"""The numerical algorithms of a model, as its methods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from alembert.constraints import Constraints
from alembert.dynamics import frames, kernels, manifold, methods
from alembert.dynamics.derivatives import Derivatives
from alembert.dynamics.frames import Reference
from alembert.dynamics.programs import ALGORITHMS, INVERTING, LABELS, NEED_TREE, PROGRAMS
from alembert.dynamics.results import HybridResult
from alembert.dynamics.symbolic import Symbolic
from alembert.engine.c_export import export_c
from alembert.engine.kernel import Kernel
from alembert.errors import AlembertWarning, ArgumentError, FileError, NumericalError, UnsupportedError
from alembert.joints import JointType
from alembert.model.printing import unknown
from alembert.spatial import Ad_dual, Pose
from alembert.sweeps import Tree

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Wrenches = Mapping[str, Any]
Parameters = Mapping[str, Any] | None
_CONSTRAINED = {
    "inverse_dynamics": "constrained_inverse_dynamics",
    "mass_matrix": "reduced_mass_matrix",
}
"""what to use on a model with loops or couplings instead of an algorithm of trees"""


_WRENCHES = {"wrench": "wrenches"}
_KNOWN_AS = {"hybrid_dynamics": {"tau": "torques", "a_given": "accelerations", **_WRENCHES}}
"""what the user knows the inputs of an algorithm as"""
_SINGULAR = "the articulated inertia of some joint is singular (no mass moves with it) or numbers overflow"


class Dynamics(Derivatives, Constraints):
    """Mixed into `Model`. Arrays have leading batch dimensions everywhere: (nv,) or (..., nv).

    Speeds, efforts and derivatives live in tangent space (nv wide). `wrenches` maps frame names to (..., 6) moments
    and forces that act on the body at the frame's origin, in the frame's axes. `parameters` maps names to numbers or
    arrays over the batch; parameters not named keep their defaults.
    """

    # --- dynamics ----------------------------------------------------------------------------------------------

    def forward_dynamics(
        self: Model,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        method: str = "sweep",
        out: Array | None = None,
    ) -> Array:
        """The accelerations that the efforts `tau` cause.

        `method` is "sweep" (articulated bodies, O(n)), "factorise" (Cholesky of the mass matrix, O(n^3)) or
        "conjugate_gradients" (matrix-free, O(n^2)); all give the same. Loops and couplings hold;
        `constrained_dynamics` also gives their reactions.
        """
        if self.is_constrained:
            return self._constrained_forward(q, v, tau, wrenches, parameters, method, out)
        if method == "sweep":
            return self._evaluate(
                "forward_dynamics", (q, v, tau), wrenches=wrenches, parameters=parameters, out=out
            )
        return methods.forward_dynamics(self, q, v, tau, wrenches, parameters, method, out)

    def inverse_dynamics(
        self: Model,
        q: Any,
        v: Any,
        a: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Array | None = None,
    ) -> Array:
        """The efforts that the accelerations `a` take."""
        return self._evaluate(
            "inverse_dynamics", (q, v, a), wrenches=wrenches, parameters=parameters, out=out
        )

    def hybrid_dynamics(
        self: Model,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> HybridResult:
        """Some degrees of freedom follow given accelerations, the others given efforts; returns both for all.

        `accelerations` and `torques` map joints (a number, or one per degree of freedom) or single degrees of freedom
        (names as in `speed_names`) to values; efforts not named are zero.
        """
        free, a_given = self._by_name("hybrid_dynamics", accelerations, "accelerations")
        given, tau = self._by_name("hybrid_dynamics", torques, "torques")
        both = [self.speed_names[k] for k in np.flatnonzero(free & given)]
        if both:
            raise ArgumentError(
                f"hybrid_dynamics: {', '.join(both)} is given both an acceleration and a torque; give one"
            )
        a, effort = self._evaluate(
            "hybrid_dynamics",
            (q, v, tau, a_given, (~free).astype(float)),
            wrenches=wrenches,
            parameters=parameters,
        )
        return HybridResult(a, effort)

    def bias_forces(
        self: Model, q: Any, v: Any, *, wrenches: Wrenches | None = None, parameters: Parameters = None
    ) -> Array:
        """The efforts at zero acceleration: Coriolis, gravity, springs and friction (M a + bias = tau)."""
        return self._evaluate("bias_forces", (q, v), wrenches=wrenches, parameters=parameters)

    def gravity_forces(self: Model, q: Any, *, parameters: Parameters = None) -> Array:
        """The efforts that hold the model against gravity alone."""
        return self._evaluate("gravity_forces", (q,), parameters=parameters)

    def coriolis_forces(self: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Array:
        """Coriolis and centrifugal efforts alone, quadratic in v (gyroscopic ones of rotors included)."""
        return self._evaluate("coriolis_forces", (q, v), parameters=parameters)

    def mass_matrix(self: Model, q: Any, *, parameters: Parameters = None, out: Array | None = None) -> Array:
        """M(q), (..., nv, nv), armature and rotors included."""
        return self._evaluate("mass_matrix", (q,), parameters=parameters, out=out)

    def inverse_mass_matrix(self: Model, q: Any, *, parameters: Parameters = None) -> Array:
        """M(q)^-1, one sweep per column."""
        q = self._numbers("inverse_mass_matrix", "q", q, self.nq)
        columns = self.solve_mass_matrix(q[..., None, :], np.eye(self.nv), parameters=parameters)
        return np.swapaxes(columns, -1, -2)

    def solve_mass_matrix(self: Model, q: Any, x: Any, *, parameters: Parameters = None) -> Array:
        """M(q)^-1 x in O(n), without forming M."""
        return self._evaluate("solve_mass_matrix", (q, x), parameters=parameters)

    def multiply_mass_matrix(self: Model, q: Any, x: Any, *, parameters: Parameters = None) -> Array:
        """M(q) x in O(n), without forming M."""
        return self._evaluate("multiply_mass_matrix", (q, x), parameters=parameters)

    # --- kinematics --------------------------------------------------------------------------------------------

    def frame_pose(self: Model, q: Any, frame: str, *, parameters: Parameters = None) -> Pose:
        """X_WC: rotation (..., 3, 3) and origin (..., 3) of a frame in the world."""
        X_W = self._evaluate("poses", (q,), parameters=parameters, caller="frame_pose")
        return frames.pose(X_W, *self._locate("frame_pose", frame, parameters))

    def frame_velocity(
        self: Model,
        q: Any,
        v: Any,
        frame: str,
        *,
        reference: Reference = "local",
        parameters: Parameters = None,
    ) -> Array:
        """The frame's (angular, linear) velocity, (..., 6)."""
        frames.check_reference("frame_velocity", reference)
        node, offset = self._locate("frame_velocity", frame, parameters)
        own = self._node_motion("velocities", (q, v), node, offset, parameters, "frame_velocity")
        return frames.refer(self._pose_for(q, frame, reference, parameters), own, reference)

    def frame_acceleration(
        self: Model,
        q: Any,
        v: Any,
        a: Any,
        frame: str,
        *,
        reference: Reference = "local",
        parameters: Parameters = None,
    ) -> Array:
        """The time derivative of `frame_velocity` in the same reference, (..., 6), gravity not included.

        With "local_world_aligned" the linear part is the acceleration of the frame's origin in the usual sense.
        """
        frames.check_reference("frame_acceleration", reference)
        node, offset = self._locate("frame_acceleration", frame, parameters)
        V = self._node_motion("velocities", (q, v), node, offset, parameters, "frame_acceleration")
        A = self._node_motion("accelerations", (q, v, a), node, offset, parameters, "frame_acceleration")
        X = self._pose_for(q, frame, reference, parameters)
        return frames.acceleration_in(X, V, A, reference)

    def frame_jacobian(
        self: Model,
        q: Any,
        frame: str,
        *,
        reference: Reference = "local",
        point: Any = None,
        parameters: Parameters = None,
    ) -> Array:
        """J with frame_velocity = J v, (..., 6, nv); `point` moves the frame's origin (in frame axes)."""
        frames.check_reference("frame_jacobian", reference)
        node, offset = self._locate("frame_jacobian", frame, parameters)
        if point is not None:
            where = self._numbers("frame_jacobian", "point", point, 3, batch=False)
            offset = offset @ Pose(np.eye(3), where)
        columns, X_W = self._evaluate("subspaces", (q,), parameters=parameters, caller="frame_jacobian")
        return frames.jacobian(columns, self._tree.support[node], frames.pose(X_W, node, offset), reference)

    def frame_jacobian_rate(
        self: Model,
        q: Any,
        v: Any,
        frame: str,
        *,
        reference: Reference = "local",
        parameters: Parameters = None,
    ) -> Array:
        """(dJ/dt) v, (..., 6): the frame's acceleration at a = 0."""
        zero = np.zeros(self.nv)
        return self.frame_acceleration(q, v, zero, frame, reference=reference, parameters=parameters)

    def center_of_mass(self: Model, q: Any, *, parameters: Parameters = None) -> Array:
        """Of everything that moves (bodies welded to the world do not), (..., 3) in the world."""
        total = self._evaluate("composite", (q,), parameters=parameters, caller="center_of_mass")
        if np.any(total[..., 0] == 0.0):
            raise NumericalError(f"center_of_mass: nothing that moves in the model {self.name!r} has mass")
        return total[..., 1:4] / total[..., 0:1]

    def momentum(
        self: Model, q: Any, v: Any, *, about: str = "center_of_mass", parameters: Parameters = None
    ) -> Array:
        """(angular, linear) momentum in world axes, (..., 6), about the centre of mass or about "world"'s origin."""
        h = self._evaluate("momentum", (q, v), parameters=parameters)
        return self._about(h, q, about, "momentum", parameters)

    def momentum_matrix(
        self: Model, q: Any, *, about: str = "center_of_mass", parameters: Parameters = None
    ) -> Array:
        """The matrix that maps v to the momentum, (..., 6, nv)."""
        columns = self._evaluate("momentum_matrix", (q,), parameters=parameters)
        moved = self._about(columns, q, about, "momentum_matrix", parameters, extra=1)
        return np.swapaxes(moved, -1, -2)

    # --- energy ------------------------------------------------------------------------------------------------

    def kinetic_energy(self: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self._evaluate("kinetic_energy", (q, v), parameters=parameters)[..., 0]

    def potential_energy(self: Model, q: Any, *, parameters: Parameters = None) -> Any:
        """Of gravity (zero when the centre of mass of what moves is at the world's origin) and of springs."""
        return self._evaluate("potential_energy", (q,), parameters=parameters)[..., 0]

    def energy(self: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Any:
        return self.kinetic_energy(q, v, parameters=parameters) + self.potential_energy(
            q, parameters=parameters
        )

    def power(
        self: Model,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
    ) -> Any:
        """What efforts and wrenches feed in: tau . v + sum F . V. Friction takes out its own part."""
        tau, v = (self._numbers("power", name, x, self.nv) for name, x in (("tau", tau), ("v", v)))
        total = np.sum(tau * v, axis=-1)
        for frame, wrench in _mapping("power", "wrenches", wrenches).items():
            V = self.frame_velocity(q, v, frame, parameters=parameters)
            total = total + np.sum(V * self._numbers("power", f"wrench on {frame!r}", wrench, 6), axis=-1)
        return total

    # --- configurations ----------------------------------------------------------------------------------------

    def integrate(self: Model, q: Any, dv: Any) -> Array:
        """The configuration reached from q by the tangent displacement dv."""
        return self._checked("integrate", self._manifold_kernel("integrate"), (q, dv))

    def difference(self: Model, q0: Any, q1: Any) -> Array:
        """The tangent displacement from q0 to q1: integrate(q0, difference(q0, q1)) = q1."""
        return self._checked("difference", self._manifold_kernel("difference"), (q0, q1))

    def rate(self: Model, q: Any, v: Any) -> Array:
        """dq/dt, (..., nq)."""
        return self._checked("rate", self._manifold_kernel("rate"), (q, v))

    def check_configuration(self: Model, q: Any) -> None:
        """Raise `ArgumentError` naming the joint when q is no configuration (shape, NaN, quaternion length)."""
        x = np.asarray(q, dtype=float)
        if x.ndim == 0 or x.shape[-1] != self.nq:
            raise ArgumentError(f"check_configuration: q has shape {x.shape}, expected (..., {self.nq})")
        for joint, s in zip(self.joints, self._q_slices, strict=True):
            if not np.all(np.isfinite(x[..., s])):
                raise ArgumentError(f"check_configuration: joint {joint.name!r}: q is not finite")
            problem = joint.type.problem(x[..., s])
            if problem:
                raise ArgumentError(f"check_configuration: joint {joint.name!r}: {problem}")

    # --- symbolic, compiled, exported --------------------------------------------------------------------------

    @cached_property
    def symbolic(self: Model) -> Symbolic:
        """The algorithms on CasADi expressions."""
        return Symbolic(self, self._tree)

    def compile(
        self: Model, name: str, *, batch: bool = False, lowering: kernels.Lowering = "auto"
    ) -> Kernel:
        """The kernel of an algorithm, compiled: call it, or use its `fast()` handle in tight loops.

        `lowering` is "specialised" (code for each body: fastest), "rolled" (loops over the bodies: compiles in
        the same time for any number of them), or "auto", by the size of the tree.
        """
        if name not in ALGORITHMS:
            raise ArgumentError(unknown("compile: no algorithm", name, ALGORITHMS))
        self.check_tree(name)
        return self._kernel(name, lowering=lowering).prepare(None if batch else 1)

    def export_c(self: Model, name: str, directory: str | Path) -> list[Path]:
        """Write an algorithm as C99 into a directory: NAME.c, NAME.h and a test program; returns the files."""
        if name not in PROGRAMS:
            raise ArgumentError(unknown("export_c: no algorithm", name, PROGRAMS))
        self.check_tree(name)
        program, names = PROGRAMS[name]
        if not isinstance(directory, str | PathLike):
            raise ArgumentError(f"export_c: directory is {directory!r}, expected a path")
        try:
            return export_c(self.symbolic.function(program, names), name, directory)
        except OSError as error:
            raise FileError(f"{directory}: cannot be written: {error.strerror or error}") from None

    # --- inside ------------------------------------------------------------------------------------------------

    @cached_property
    def _tree(self: Model) -> Tree:
        return Tree.of(self)

    @cached_property
    def _kernels(self) -> dict[Any, Kernel]:
        return {}

    def _kernel(
        self: Model, name: str, *, wrenches: bool = False, lowering: kernels.Lowering = "auto"
    ) -> Kernel:
        key: tuple[Any, ...] = (name, wrenches) if lowering == "auto" else (name, wrenches, lowering)
        if key in self._kernels:
            return self._kernels[key]
        if name == "forward_dynamics_derivatives":
            self._kernels[key] = self._forward_derivatives_kernel(wrenches=wrenches)
        else:
            program, names = PROGRAMS[name]
            self._kernels[key] = kernels.program_kernel(
                self,
                self._tree,
                program,
                (*names, "wrench") if wrenches else names,
                name=name,
                labels=LABELS.get(name, {}),
                lowering=lowering,
            )
        return self._kernels[key]

    def _manifold_kernel(self: Model, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = manifold.kernel(self, name)
        return self._kernels[name]

    def _evaluate(
        self: Model,
        name: str,
        given: tuple[Any, ...],
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Any = None,
        caller: str | None = None,
    ) -> Any:
        """Run an algorithm; `caller` is the public function to name in messages, where it is not the algorithm."""
        if wrenches is not None:
            wrenches = _mapping(caller or name, "wrenches", wrenches)
        kernel = self._kernels.get((name, bool(wrenches)))
        if kernel is None:
            if not len(self._tree):
                return _nothing_moves(self._kernel(name), given, out)
            if name in NEED_TREE:
                self.check_tree(name)
            kernel = self._kernel(name, wrenches=bool(wrenches))
        if wrenches:
            given = (*given, self._wrench_array(caller or name, wrenches, parameters))
        if self.parameters:
            given = (*given, self._parameter_array(caller or name, parameters))
        elif parameters is not None and _mapping(name, "parameters", parameters):
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        try:
            result = kernel._function(*given) if out is None else kernel(*given, out=out)
        except ArgumentError as error:
            text = str(error).replace(kernel.name, caller or name, 1)
            for label, known in _KNOWN_AS.get(name, _WRENCHES).items():
                text = text.replace(f" {label} ", f" {known} ")
            raise ArgumentError(text) from None
        if not _all_finite(result):
            self._explain(caller or name, result, given, kernel)
        elif name in INVERTING and self._lockable:
            self._refuse_lock(name, given, result)
        return result

    def _checked(self: Model, name: str, kernel: Kernel, given: tuple[Any, ...]) -> Any:
        """The results of a kernel, explained where they are not finite."""
        result = kernel(*given)
        if not _all_finite(result):
            self._explain(name, result, given, kernel)
        return result

    def _explain(self: Model, name: str, result: Any, given: tuple[Any, ...], kernel: Kernel) -> None:
        """Say why a result is not finite: raise for one state, warn for some states of a batch."""
        results = result if isinstance(result, tuple) else (result,)
        bad = np.False_
        for x, declared in zip(results, kernel.results, strict=True):
            bad = bad | ~np.isfinite(x).all(axis=tuple(range(-len(declared.shape), 0)))
        if np.any(bad):
            self._report(name, np.asarray(bad), self._reason(given, kernel))

    def _report(self: Model, name: str, bad: Array, reason: str) -> None:
        if bad.ndim == 0:
            raise NumericalError(f"{name}: the result is not finite; {reason}")
        where = tuple(int(index[0]) for index in np.nonzero(bad))
        warn(
            f"{name}: {np.count_nonzero(bad)} of {bad.size} states have no finite result, the first at "
            f"{where if len(where) > 1 else where[0]}; {reason}",
            AlembertWarning,
            stacklevel=5,
        )

    @cached_property
    def _lockable(self: Model) -> list[tuple[int, slice, slice]]:
        """Joints that may lose a degree of freedom, with no reflected inertia to keep the equations regular."""
        return [
            (k, self._q_slices[k], self._v_slices[k])
            for k, joint in enumerate(self.joints)
            if type(joint.type).singularity is not JointType.singularity
            and not (joint.armature or joint.rotors)
        ]

    def _refuse_lock(self: Model, name: str, given: tuple[Any, ...], result: Any) -> None:
        """Rounding makes large numbers of what should be infinite: name it instead, as for any other failure."""
        q = np.asarray(given[0], dtype=float)
        free = np.asarray(given[4]) if name == "hybrid_dynamics" else np.ones(self.nv)
        for k, at_q, at_v in self._lockable:
            joint = self.joints[k]
            sentence = joint.type.singularity(q[..., at_q]) if np.any(free[at_v]) else None
            if not sentence:
                continue
            locked = np.array(
                [bool(joint.type.singularity(x)) for x in q[..., at_q].reshape(-1, joint.type.nq)]
            ).reshape(q.shape[:-1])
            results = result if isinstance(result, tuple) else (result,)
            locked = np.broadcast_to(locked, results[0].shape[:-1])
            for x in results:
                x[locked] = np.nan
            self._report(name, locked, f"joint {joint.name!r}: {sentence}")

    def _reason(self: Model, given: tuple[Any, ...], kernel: Kernel, otherwise: str = _SINGULAR) -> str:
        """The first input that is not finite, or the joint that cannot be solved for, or `otherwise`."""
        known = _KNOWN_AS.get(kernel.name, _WRENCHES)
        for argument, value in zip(kernel.arguments, given, strict=True):
            x = np.asarray(value, dtype=float)
            if not np.all(np.isfinite(x)):
                names = {
                    "q": self.coordinate_names,
                    "parameters": tuple(self.parameter_values),
                }.get(argument.name, self.speed_names)
                entries = np.argwhere(~np.isfinite(x))[0]
                label = (
                    f" ({names[entries[-1]]})" if x.ndim and x.shape[-1] == len(names) and len(names) else ""
                )
                what = known.get(argument.name, argument.name)
                return f"{what} is {x[tuple(entries)]} at entry {entries[-1] if x.ndim else 0}{label}"
        return self._trouble(given[0], otherwise)

    def _trouble(self: Model, q: Any, otherwise: str = _SINGULAR) -> str:
        """Which joint cannot be solved for at the finite q."""
        q = np.asarray(q, dtype=float)
        for joint, s in zip(self.joints, self._q_slices, strict=True):
            sentence = joint.type.singularity(q[..., s]) or joint.type.problem(q[..., s])
            if sentence:
                return f"joint {joint.name!r}: {sentence}"
        return otherwise

    def check_tree(self: Model, name: str) -> None:
        """Refuse algorithms that would ignore loops and couplings."""
        for kind, items in (("loop", self.loops), ("coupling", self.couplings)):
            if items:
                instead = _CONSTRAINED.get(name)
                raise UnsupportedError(
                    f"{name}: the {kind} {items[0].name!r} would be ignored; {kind}s are not supported by this "
                    f"algorithm yet. {f'Use {instead}, or ' if instead else ''}model.replace({kind}s=()), which gives the "
                    "model without them"
                )

    def _constrained_forward(
        self: Model, q: Any, v: Any, tau: Any, wrenches: Any, parameters: Any, method: str, out: Any
    ) -> Array:
        if method != "sweep":
            self.check_tree(f"forward_dynamics(method={method!r})")
        a = self._constrained_accelerations(q, v, tau, wrenches, parameters)
        if out is None:
            return a
        if np.shape(out) != a.shape:
            raise ArgumentError(f"forward_dynamics: out has shape {np.shape(out)}, expected {a.shape}")
        out[...] = a
        return out

    def _parameter_array(self: Model, name: str, parameters: Parameters) -> Array:
        defaults = self._parameter_defaults
        if parameters is None or not _mapping(name, "parameters", parameters):
            return defaults
        for key in parameters:
            if key not in self.parameter_values:
                raise ArgumentError(unknown(f"{name}: no parameter", key, self.parameter_values))
        columns = {
            key: self._numbers(name, f"parameter {key!r}", parameters.get(key, value))
            for key, value in self.parameters
        }
        _common(name, [(f"parameter {key!r}", x.shape) for key, x in columns.items()])
        return np.stack(np.broadcast_arrays(*columns.values()), axis=-1)

    @cached_property
    def _parameter_defaults(self: Model) -> Array:
        return np.array([value for _, value in self.parameters])

    def _locate(self: Model, function: str, name: str, parameters: Parameters) -> tuple[int, Pose]:
        """The node that carries a frame and the frame's constant pose on it."""
        frame = self.frame(name)
        node, placement = -1, frame.placement
        if frame.body != "world":
            node, where = self._tree.carriers[self.body_index(frame.body)]
            placement = where @ placement
        if parameters is not None:
            self._parameter_array(function, parameters)
        values = self.parameter_values | dict(parameters or {})
        try:
            return node, placement.pose(values)
        except TypeError:
            raise UnsupportedError(
                f"{function}: frame {name!r} depends on parameters that are given as arrays; give numbers"
            ) from None

    def _node_motion(
        self: Model,
        name: str,
        given: tuple[Any, ...],
        node: int,
        offset: Pose,
        parameters: Parameters,
        caller: str,
    ) -> Array:
        motions = self._evaluate(name, given, parameters=parameters, caller=caller)
        if node < 0:
            return np.zeros((*motions.shape[:-2], 6))
        return frames.to_frame(offset, motions[..., node, :])

    def _pose_for(self: Model, q: Any, frame: str, reference: Reference, parameters: Parameters) -> Pose:
        if reference == "local":
            return Pose.identity()
        return self.frame_pose(q, frame, parameters=parameters)

    def _about(
        self: Model, h: Array, q: Any, about: str, function: str, parameters: Parameters, extra: int = 0
    ) -> Array:
        """Forces (..., 6) in the world, about another point."""
        if about == "world":
            return h
        if about != "center_of_mass":
            raise ArgumentError(f"{function}: about is {about!r}, expected 'center_of_mass' or 'world'")
        c = self.center_of_mass(q, parameters=parameters)
        if extra:
            c = c[..., None, :]
        return np.concatenate([h[..., :3] - np.cross(c, h[..., 3:]), h[..., 3:]], axis=-1)

    def _wrench_array(self: Model, name: str, wrenches: Wrenches, parameters: Parameters) -> Array:
        """(..., nodes, 6) from wrenches on frames."""
        parts = []
        for frame, value in _mapping(name, "wrenches", wrenches).items():
            node, offset = self._locate(name, frame, parameters)
            if node < 0:
                raise ArgumentError(f"{name}: wrench on frame {frame!r}, which does not move")
            F = self._numbers(name, f"wrench on {frame!r}", value, 6, ": moment, then force")
            parts.append((frame, node, F @ Ad_dual(offset).T))
        batch = _common(name, [(f"wrench on {frame!r}", F.shape[:-1]) for frame, _, F in parts])
        total = np.zeros((*batch, len(self._tree), 6))
        for _, node, F in parts:
            total[..., node, :] += F
        return total

    def _numbers(
        self, function: str, what: str, value: Any, width: int = 0, hint: str = "", *, batch: bool = True
    ) -> Array:
        """An array of real numbers, (..., width) unless width is 0."""
        try:
            x = np.asarray(value)
        except (TypeError, ValueError):
            x = np.asarray(None)
        if x.dtype.kind not in "fiub":
            raise ArgumentError(f"{function}: {what} is {value!r}, expected numbers")
        x = x.astype(float, copy=False)
        if width and (x.ndim == 0 or x.shape[-1] != width or (x.ndim > 1 and not batch)):
            expected = f"(..., {width})" if batch else f"({width},)"
            raise ArgumentError(f"{function}: {what} has shape {x.shape}, expected {expected}{hint}")
        return x

    def _by_name(
        self: Model, function: str, values: Mapping[str, Any] | None, what: str
    ) -> tuple[Array, Array]:
        """Which speeds are named, and their values (..., nv)."""
        named = np.zeros(self.nv, dtype=bool)
        entries: list[tuple[str, slice, Array]] = []
        singles = {name: k for k, name in enumerate(self.speed_names)}
        for name, value in _mapping(function, what, values).items():
            x = self._numbers(function, f"{what}: {name!r}", value)
            if name in self._joint_index:
                s = self.v_slice(name)
            elif name in singles:
                s = slice(singles[name], singles[name] + 1)
            else:
                raise ArgumentError(
                    unknown(
                        f"{function}: {what}: no joint or degree of freedom",
                        name,
                        [*self._joint_index, *singles],
                    )
                )
            width = s.stop - s.start
            if width == 1 and (x.ndim == 0 or x.shape[-1] != 1):
                x = x[..., None]
            if x.ndim == 0 or x.shape[-1] != width:
                raise ArgumentError(
                    f"{function}: {what}: {name!r} has shape {x.shape}, expected (..., {width})"
                )
            if np.any(named[s]):
                raise ArgumentError(f"{function}: {what}: {name!r} is given twice")
            named[s] = True
            entries.append((name, s, x))
        batch = _common(function, [(f"{what}: {name!r}", x.shape[:-1]) for name, _, x in entries])
        total = np.zeros((*batch, self.nv))
        for _, s, x in entries:
            total[..., s] = x
        return named, total


def _mapping(function: str, what: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{function}: {what} is {value!r}, expected a mapping from names to arrays")
    return value


def _common(function: str, shapes: list[tuple[str, tuple[int, ...]]]) -> tuple[int, ...]:
    """The batch shape of several arrays."""
    try:
        return np.broadcast_shapes(*(shape for _, shape in shapes))
    except ValueError:
        listed = ", ".join(f"{what} {shape}" for what, shape in shapes if shape)
        raise ArgumentError(f"{function}: the batch dimensions do not go together: {listed}") from None


def _nothing_moves(kernel: Kernel, given: tuple[Any, ...], out: Any) -> Any:
    """The results of a model without a moving body: zeros."""
    arrays = [np.asarray(x, dtype=float) for x in given]
    for x, argument in zip(arrays, kernel.arguments, strict=True):
        if x.ndim < len(argument.shape) or x.shape[x.ndim - len(argument.shape) :] != argument.shape:
            raise ArgumentError(
                f"{kernel.name}: {argument.name} has shape {x.shape}, expected (..., 0); nothing in the model moves"
            )
    batch = np.broadcast_shapes(
        *(x.shape[: x.ndim - len(a.shape)] for x, a in zip(arrays, kernel.arguments, strict=True))
    )
    results = tuple(np.zeros(batch + result.shape) for result in kernel.results)
    if out is not None:
        for target, value in zip(out if isinstance(out, tuple) else (out,), results, strict=True):
            target[...] = value
        return out
    return results if len(results) != 1 else results[0]


def _all_finite(result: Any) -> bool:
    if type(result) is np.ndarray:
        return _finite(result)
    return all(_finite(np.asarray(x)) for x in (result if isinstance(result, tuple) else (result,)))


def _finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite (or a sum overflows); quick for the few numbers of one state."""
    if x.ndim == 1 and len(x) < 100:
        return isfinite(sum(x.tolist()))
    flat = x.ravel()
    return isfinite(flat.dot(flat))
