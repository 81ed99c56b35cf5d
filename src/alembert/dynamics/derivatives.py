"""The derivatives of a model's dynamics, as its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.deferred import deferred
from alembert.dynamics.arguments import mapping
from alembert.dynamics.frames import Reference
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.spatial import Ad_dual

if TYPE_CHECKING:
    from alembert.dynamics import directional_kernels, graphs, results
    from alembert.dynamics.results import (
        ForwardDerivatives,
        HybridDerivatives,
        HybridResult,
        InverseDerivatives,
    )
    from alembert.model import Model
else:
    directional_kernels = deferred("alembert.dynamics.directional_kernels")
    graphs = deferred("alembert.dynamics.graphs")
    results = deferred("alembert.dynamics.results")

DEPENDENT = 1e-10
"""accelerations that efforts can tell apart by no more than this part of their response depend on each other"""

CONSTRAINED_PRODUCTS = ("forward_dynamics", "inverse_dynamics")
"""what models with loops, couplings or equations have jvp and vjp of, through the constraints"""


class Derivatives:
    """Mixed into `Model`; every derivative with respect to q is tangent, (..., nv, nv)."""

    def inverse_dynamics_derivatives(
        self: Model,
        q: Any,
        v: Any,
        a: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> InverseDerivatives:
        """d tau/dq, d tau/dv and d tau/da = M at given accelerations, in O(n depth).

        Loops and couplings are kept: then they are those of the actuators' efforts, and d tau/da is not M.
        """
        name = "inverse_dynamics_derivatives"
        if self.is_constrained:
            d = self.constrained_inverse_dynamics_derivatives(
                q, v, a, wrenches=wrenches, parameters=parameters
            )
            return results.InverseDerivatives(d.dq, d.dv, d.da, d.dwrenches)
        dq, dv, da = self._evaluate(name, (q, v, a), wrenches=wrenches, parameters=parameters)
        forces = self._generalised_forces(q, wrenches, parameters)
        return results.InverseDerivatives(dq, dv, da, {frame: -J for frame, J in forces.items()})

    def forward_dynamics_derivatives(
        self: Model,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> ForwardDerivatives:
        """The accelerations and d a/dq, d a/dv, d a/dtau = M^-1 (for a tree; loops and couplings are kept)."""
        if self.is_constrained:
            d = self.constrained_dynamics_derivatives(q, v, tau, wrenches=wrenches, parameters=parameters)
            a, dq, dv, dtau = d.acceleration, d.dq, d.dv, d.dtau
        else:
            a, dq, dv, dtau = self._evaluate(
                "forward_dynamics_derivatives", (q, v, tau), wrenches=wrenches, parameters=parameters
            )
        forces = self._generalised_forces(q, wrenches, parameters)
        return results.ForwardDerivatives(a, dq, dv, dtau, {frame: dtau @ J for frame, J in forces.items()})

    def hybrid_dynamics_derivatives(
        self: Model,
        q: Any,
        v: Any,
        *,
        accelerations: Mapping[str, Any] | None = None,
        torques: Mapping[str, Any] | None = None,
        wrenches: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> HybridDerivatives:
        """Derivatives of `hybrid_dynamics` with the same arguments.

        From M da + tau_q dq + tau_v dv = dtau, solved for the accelerations of the free and the efforts of the
        prescribed degrees of freedom; the part of M for the free ones is factored along the tree. With loops, from the
        derivatives of constrained forward dynamics, solved for the efforts of the prescribed ones.
        """
        result = self.hybrid_dynamics(
            q, v, accelerations=accelerations, torques=torques, wrenches=wrenches, parameters=parameters
        )
        prescribed, _ = self._by_name(
            "hybrid_dynamics_derivatives", {} if accelerations is None else accelerations, "accelerations"
        )
        if self.is_constrained:
            d = self.forward_dynamics_derivatives(
                q, v, result.efforts, wrenches=wrenches, parameters=parameters
            )
            return self._constrained_hybrid_derivatives(result, d, np.flatnonzero(prescribed))
        free = (~prescribed).astype(float)
        dq, dv, inverse, tau_q, tau_v, M = self._evaluate(
            "hybrid_dynamics_derivatives",
            (q, v, result.accelerations, free),
            wrenches=wrenches,
            parameters=parameters,
        )
        f, p = np.flatnonzero(~prescribed), np.flatnonzero(prescribed)
        M_fp, M_pf = M[..., f[:, None], p], M[..., p[:, None], f]
        inverse = inverse[..., f[:, None], f]

        def complete(rows: np.ndarray, moved: np.ndarray) -> np.ndarray:
            """(accelerations; efforts) for a change `rows` of the efforts at fixed accelerations, which moves the free."""
            change = np.zeros((*moved.shape[:-2], 2, self.nv, moved.shape[-1]))
            change[..., 0, f, :] = moved
            change[..., 1, p, :] = rows[..., p, :] + M_pf @ moved
            return change

        given = np.zeros((*M.shape[:-2], 2, self.nv, self.nv))
        given[..., 1, f, f] = 1.0
        given[..., 0, p, p] = 1.0
        given[..., 0, f[:, None], f] = inverse
        given[..., 0, f[:, None], p] = -inverse @ M_fp
        given[..., 1, p[:, None], f] = M_pf @ inverse
        given[..., 1, p[:, None], p] = M[..., p[:, None], p] - M_pf @ inverse @ M_fp
        forces = {
            frame: complete(-J, inverse @ J[..., f, :])
            for frame, J in self._generalised_forces(q, wrenches, parameters).items()
        }
        by_q, by_v = complete(tau_q, dq[..., f, :]), complete(tau_v, dv[..., f, :])
        return results.HybridDerivatives(result, by_q, by_v, given, forces)

    def _constrained_hybrid_derivatives(
        self: Model, result: HybridResult, d: ForwardDerivatives, p: np.ndarray
    ) -> HybridDerivatives:
        """With da = a_x dx + A dtau of forward dynamics, A_pp dtau_p = da_p - (a_x dx)_p - A_pf dtau_f."""
        A = d.dtau
        A_pp = A[..., p[:, None], p]
        size = np.linalg.norm(A, axis=(-2, -1))
        if len(p) and np.any(np.linalg.svd(A_pp, compute_uv=False)[..., -1] < DEPENDENT * size):
            names = ", ".join(repr(self.speed_names[i]) for i in p)
            raise UnsupportedError(
                f"hybrid_dynamics_derivatives: the accelerations of {names} depend on each other through loops, "
                "couplings or equations, so that many efforts give them: prescribe fewer"
            )

        def respond(moved: np.ndarray, wanted: np.ndarray) -> np.ndarray:
            """(accelerations; efforts) where the prescribed move as `wanted`, and all as `moved` if nothing pushed."""
            change = np.zeros((*moved.shape[:-2], 2, *moved.shape[-2:]))
            change[..., 1, p, :] = np.linalg.solve(A_pp, wanted - moved[..., p, :])
            change[..., 0, :, :] = moved + A[..., p] @ change[..., 1, p, :]
            return change

        prescribed = np.zeros(self.nv)
        prescribed[p] = 1.0
        by_given = respond(A * (1.0 - prescribed), np.diag(prescribed)[p])
        by_given[..., 1, :, :] += np.diag(1.0 - prescribed)
        forces = {frame: respond(rows, 0 * rows[..., p, :]) for frame, rows in d.dwrenches.items()}
        by_q, by_v = (respond(x, 0 * x[..., p, :]) for x in (d.dq, d.dv))
        return results.HybridDerivatives(result, by_q, by_v, by_given, forces)

    def _generalised_forces(
        self: Model, q: Any, wrenches: Mapping[str, Any] | None, parameters: Mapping[str, Any] | None
    ) -> dict[str, np.ndarray]:
        """For each frame, the matrix J^T of the efforts that a wrench on it is worth, (..., nv, 6)."""
        return {
            frame: np.swapaxes(self.frame_jacobian(q, frame, parameters=parameters), -1, -2)
            for frame in wrenches or {}
        }

    def jvp(
        self: Model,
        name: str,
        at: Sequence[Any],
        along: Sequence[Any],
        *,
        wrenches: Mapping[str, Any] | None = None,
        along_wrenches: Mapping[str, Any] | None = None,
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> tuple[Any, Any]:
        """An algorithm's result and its derivative along a direction, in one sweep.

        `at` are its arguments (as for `compile(name)` and the method of that name), `along` one direction for each,
        tangent for q. Where the model has parameters, `at` and `along` may end with vectors for them. `wrenches` act
        on frames, and change along `along_wrenches` (zero for frames not named there). Algorithms on frames
        (`frame_pose`, `frame_velocity`, `frame_jacobian`, ...) need `frame`, and take `reference`; momentum takes `about`.
        An algorithm with several results (`hybrid_dynamics`: accelerations and efforts) gives tuples of values and of
        changes.
        """
        if self.is_constrained and name in CONSTRAINED_PRODUCTS:
            return self._constrained_jvp(name, at, along, wrenches, along_wrenches)
        forces = mapping("jvp", "wrenches", wrenches)
        kernel = self._directional_kernel(
            "jvp", name, wrenches=tuple(forces), frame=frame, reference=reference, about=about
        )
        changes = directional_kernels.gathered(
            "jvp", tuple(forces), mapping("jvp", "along_wrenches", along_wrenches)
        )
        if self._on_nodes(forces):
            moved = dict(zip(forces, changes, strict=True))
            changes = [self._wrench_array("jvp", moved, None)]
            forces = {"": self._wrench_array("jvp", forces, None)}
        count = len(kernel.arguments) // 2
        values = self._completed("jvp", name, at, count, 1.0, [*forces.values()])
        given = (*values, *self._completed("jvp", name, along, count, 0.0, changes))
        found = self._checked("jvp", kernel, given)
        half = len(found) // 2
        return found if half == 1 else (found[:half], found[half:])

    def vjp(
        self: Model,
        name: str,
        at: Sequence[Any],
        weight: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> tuple[Any, ...]:
        """The gradient of weight . result with respect to each argument (tangent for q), in one reverse sweep.

        Options are those of `jvp`. With `wrenches`, the last item maps their frames to gradients; where the model has
        parameters, theirs comes before it. An algorithm with several results takes as many weights, in a tuple.
        """
        forces = mapping("vjp", "wrenches", wrenches)
        if self.is_constrained and name in CONSTRAINED_PRODUCTS:
            return self._constrained_vjp(name, at, weight, forces)
        kernel = self._directional_kernel(
            "vjp", name, wrenches=tuple(forces), frame=frame, reference=reference, about=about
        )
        on_nodes = self._on_nodes(forces)
        given = {"": self._wrench_array("vjp", forces, None)} if on_nodes else forces
        found = self._weighted("vjp", kernel, name, at, weight, given)
        gradients = found if isinstance(found, tuple) else (found,)
        if on_nodes:
            return (*gradients[:-1], self._from_nodes(tuple(forces), gradients[-1]))
        if not forces:
            return gradients
        start = len(gradients) - len(forces) - bool(self.parameters)
        by_frame = dict(zip(forces, gradients[start : start + len(forces)], strict=True))
        return (*gradients[:start], *gradients[start + len(forces) :], by_frame)

    def _on_nodes(self: Model, wrenches: Mapping[str, Any]) -> bool:
        """Whether products take the wrenches on all bodies rather than those on frames: in loops over the bodies."""
        large = len(self._tree) > directional_kernels.MOST_NODES
        return bool(wrenches) and large and not self.parameters

    def _from_nodes(self: Model, frames: Sequence[str], gradient: np.ndarray) -> dict[str, np.ndarray]:
        """Gradients with respect to wrenches on frames from those on the nodes, the transpose of `_wrench_array`."""
        found = {}
        for frame in frames:
            node, offset = self._locate("vjp", frame, None)
            found[frame] = gradient[..., node, :] @ Ad_dual(offset)
        return found

    def hessian(
        self: Model,
        name: str,
        at: Sequence[Any],
        weight: Any,
        *,
        wrenches: Mapping[str, Any] | None = None,
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> Any:
        """The second derivative of weight . result with respect to all arguments together, (..., N, N).

        The arguments follow each other in the order of `compile(name)`, q with its nv tangent directions, then the
        wrenches. By differentiating the unrolled graph: meant for small models. `second_derivatives` gives the full
        tensor. Parameters are held; options are those of `jvp`. Of models with loops, couplings or equations there is
        the Hessian of `forward_dynamics`, with the minimal set of constraint rows of the (first) state held.
        """
        forces = mapping("hessian", "wrenches", wrenches)
        kernel = self._hessian_kernel(
            "hessian", name, at, wrenches=tuple(forces), frame=frame, reference=reference, about=about
        )
        return self._weighted("hessian", kernel, name, at, weight, forces)

    def second_derivatives(self: Model, name: str, at: Sequence[Any], **options: Any) -> Any:
        """The tensor of all second derivatives of a result of m numbers, (..., m, N, N): `hessian` for each of them.

        Takes the options of `hessian`. Of an algorithm with several results, a tuple of tensors.
        """
        forces = mapping("second_derivatives", "wrenches", options.get("wrenches"))
        known = {key: options.get(key) for key in ("frame", "reference", "about")}
        unknown_options = set(options) - {*known, "wrenches"}
        if unknown_options:
            raise ArgumentError(
                f"second_derivatives: no option {min(unknown_options)!r}; there is wrenches, frame, reference, about"
            )
        kernel = self._hessian_kernel("second_derivatives", name, at, wrenches=tuple(forces), **known)
        shapes = [a.shape for a in kernel.arguments if a.name.startswith("weight of ")]
        sizes = [int(np.prod(shape)) for shape in shapes]
        total = sum(sizes)
        parts = np.split(np.eye(total), np.cumsum(sizes)[:-1], axis=1)
        units = tuple(x.reshape(total, *shape) for x, shape in zip(parts, shapes, strict=True))
        function = "second_derivatives"
        moved = [_with_axis(self._numbers(function, f"argument {k}", x)) for k, x in enumerate(at)]
        wider = {
            key: _with_axis(self._numbers(function, f"wrench on {key!r}", x)) for key, x in forces.items()
        }
        weight = units if len(units) > 1 else units[0]
        tensor = self._weighted(function, kernel, name, moved, weight, wider)
        found = np.split(tensor, np.cumsum(sizes)[:-1], axis=-3)
        return tuple(found) if len(found) > 1 else found[0]

    def _weighted(
        self: Model,
        mode: str,
        kernel: Kernel,
        name: str,
        at: Sequence[Any],
        weight: Any,
        forces: Mapping[str, Any],
    ) -> Any:
        weights = [a for a in kernel.arguments if a.name.startswith("weight of ")]
        named = [replace(a, name=a.name.removeprefix("weight of ")) for a in weights]
        given = directional_kernels.weights(mode, named, weight, name)
        count = len(kernel.arguments) - len(given)
        values = self._completed(mode, name, at, count, 1.0, [*forces.values()])
        return self._checked(mode, kernel, (*values, *given))

    def _hessian_kernel(self: Model, function: str, name: str, at: Sequence[Any], **options: Any) -> Kernel:
        if not (self.is_constrained and name == "forward_dynamics"):
            return self._directional_kernel("hessian", name, **options)
        if any(options[key] is not None for key in ("frame", "reference", "about")):
            directional_kernels.options(self, function, name, **options)
        if len(at) not in (3, 4 if self.parameters else 3):
            raise ArgumentError(f"{function}: forward_dynamics takes 3 arguments, got {len(at)}")
        for frame in options["wrenches"]:
            self._check_moves(function, frame)
        q = self._numbers(function, "q", at[0], self.nq).reshape(-1, self.nq)
        given = None
        if len(at) > 3:
            first = np.asarray(at[3], dtype=float).reshape(-1, len(self.parameters))
            given = dict(zip(self.parameter_values, first.T, strict=True))
        chosen = self._common_minimal_set(function, q, given)
        key = ("hessian", name, options["wrenches"], chosen)
        if key not in self._kernels:
            active = tuple(range(self._constraint_rows.count))
            own = graphs.Options(wrenches=options["wrenches"], chosen=chosen, active=active)
            self._kernels[key] = directional_kernels.constrained_kernel(self, "hessian", own)
        return self._kernels[key]

    def _constrained_jvp(
        self: Model,
        name: str,
        at: Sequence[Any],
        along: Sequence[Any],
        wrenches: Mapping[str, Any] | None,
        along_wrenches: Mapping[str, Any] | None,
    ) -> tuple[Any, Any]:
        count = 4 if self.parameters else 3
        if len(along) not in (3, count):
            raise ArgumentError(f"jvp: {name} takes {count} arguments, got {len(along)}")
        value, matrices, forces = self._constrained_slope("jvp", name, at, wrenches, len(along) > 3)
        changes = directional_kernels.gathered("jvp", tuple(forces), along_wrenches)
        vectors = [np.asarray(x, dtype=float) for x in (*along, *changes)]
        pairs = zip([*matrices, *forces.values()], vectors, strict=True)
        return value, sum((A @ x[..., None])[..., 0] for A, x in pairs)

    def _constrained_vjp(
        self: Model, name: str, at: Sequence[Any], weight: Any, wrenches: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        _, matrices, forces = self._constrained_slope("vjp", name, at, wrenches, bool(self.parameters))
        w = np.asarray(weight, dtype=float)[..., None, :]
        gradients = tuple((w @ A)[..., 0, :] for A in matrices)
        by_frame = {frame: (w @ A)[..., 0, :] for frame, A in forces.items()}
        return (*gradients, by_frame) if by_frame else gradients

    def _constrained_slope(
        self: Model,
        function: str,
        name: str,
        at: Sequence[Any],
        wrenches: Mapping[str, Any] | None,
        with_parameters: bool,
    ) -> tuple[np.ndarray, list[np.ndarray], Mapping[str, np.ndarray]]:
        """The result at (q, v, tau or a[, parameters]), its derivatives with respect to these, and to wrenches."""
        if len(at) not in (3, 4 if self.parameters else 3):
            raise ArgumentError(f"{function}: {name} takes 3 arguments, got {len(at)}")
        values = np.asarray(at[3], dtype=float) if len(at) > 3 else None
        named = (
            {n: values[..., k] for k, n in enumerate(self.parameter_values)} if values is not None else None
        )
        names = list(self.parameter_values) if with_parameters else []
        options: dict[str, Any] = {"wrenches": wrenches, "parameters": named, "sensitive_to": names}
        if name == "forward_dynamics":
            d = self.constrained_dynamics_derivatives(*at[:3], **options)
            forces = self._generalised_forces(at[0], wrenches, named)
            value, last = d.acceleration, d.dtau
            by_frame: Mapping[str, np.ndarray] = {frame: d.dtau @ J for frame, J in forces.items()}
            slopes = d.dparameters
        else:
            i = self.constrained_inverse_dynamics_derivatives(*at[:3], **options)
            d = i  # type: ignore[assignment]
            value, last, by_frame, slopes = i.efforts, i.da, i.dwrenches, i.dparameters
        matrices = [d.dq, d.dv, last]
        if names:
            matrices.append(np.stack([slopes[n] for n in names], axis=-1))
        return value, matrices, by_frame

    def _completed(
        self: Model,
        function: str,
        name: str,
        values: Sequence[Any],
        count: int,
        scale: float,
        wrenches: Sequence[Any] = (),
    ) -> list[Any]:
        """The arguments of an algorithm, wrenches among them, with the parameters at their defaults when left out."""
        listed = isinstance(values, Sequence) and not isinstance(values, str)
        if not listed and not (isinstance(values, np.ndarray) and values.ndim):
            raise ArgumentError(f"{function}: {name} takes a tuple of arguments, got {values!r}")
        given = list(values)
        expected = count - len(wrenches)
        if self.parameters and len(given) == expected - 1:
            given.append(scale * self._parameter_defaults)
        if len(given) != expected:
            raise ArgumentError(f"{function}: {name} takes {expected} arguments, got {len(given)}")
        return [*given[:-1], *wrenches, given[-1]] if self.parameters else [*given, *wrenches]

    def _directional_kernel(
        self: Model,
        mode: directional_kernels.Mode,
        name: str,
        *,
        wrenches: tuple[str, ...] = (),
        frame: str | None = None,
        reference: Reference | None = None,
        about: str | None = None,
    ) -> Kernel:
        key = (mode, name, wrenches, frame, reference, about)
        if key not in self._kernels:
            options = directional_kernels.options(
                self, mode, name, wrenches=wrenches, frame=frame, reference=reference, about=about
            )
            on_nodes = mode != "hessian" and self._on_nodes(dict.fromkeys(wrenches))
            if on_nodes:
                for name_of_frame in wrenches:
                    self._check_moves(mode, name_of_frame)
                options = None
            self._kernels[key] = directional_kernels.kernel(self, mode, name, options, on_nodes=on_nodes)
        return self._kernels[key]


def _with_axis(x: np.ndarray) -> np.ndarray:
    """A batch dimension before the last one."""
    return np.expand_dims(x, -2) if x.ndim else x
