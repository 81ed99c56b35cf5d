"""From the name of an algorithm and what the user gives (arrays, wrenches, parameters, values by name) to its results.

`EquationsOfMotion` has the algorithms on M(q) a + bias(q, v) = tau that take more than arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.algorithms import compositions, dynamics, frames, kernels
from alembert.algorithms.algorithm import Options
from alembert.algorithms.dynamics import SWEEP
from alembert.algorithms.failures import Failures, Physical
from alembert.algorithms.kernels import Lowering
from alembert.algorithms.results import HybridResult
from alembert.algorithms.table import TABLE, known_as
from alembert.arguments import check_known, common, mapping, numbers
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import names_in
from alembert.joints import JointType
from alembert.model import Placement
from alembert.model.placement import PlacementProduct
from alembert.model.space import Owner, with_own_axis
from alembert.spatial import Pose
from alembert.sweeps import Tree
from alembert.sweeps.tree import Where

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Wrenches = Mapping[str, Any]
Parameters = Mapping[str, Any] | None
FrameLike = str | tuple[str, Placement]
"""a frame, or a place on it"""


class Arguments:
    """Reads what the user gives to the algorithms of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.model)

    numbers = staticmethod(numbers)

    def by_name(
        self, function: str, values: Mapping[str, Any] | None, what: str, states: Sequence[Any] = ()
    ) -> tuple[Array, Array]:
        """Which speeds are named, and their values (..., nv); `states` (..., n) go with them."""
        named = np.zeros(self.model.nv, dtype=bool)
        entries: list[tuple[str, slice, Array]] = []
        slices = self.named_slices(function, values, what)
        given = [
            (self.numbers(function, f"{what}: {name!r}", (values or {})[name]), s.stop - s.start)
            for name, s in slices.items()
        ]
        for (name, s), x in zip(slices.items(), with_own_axis(given, states), strict=True):
            width = s.stop - s.start
            if x.ndim == 0 or x.shape[-1] != width:
                raise ArgumentError(
                    f"{function}: {what}: {name!r} has shape {x.shape}, expected (..., {width})"
                )
            named[s] = True
            entries.append((name, s, x))
        batch = common(function, [(f"{what}: {name!r}", x.shape[:-1]) for name, _, x in entries])
        total = np.zeros((*batch, self.model.nv))
        for _, s, x in entries:
            total[..., s] = x
        return named, total

    def named_slices(self, function: str, values: Mapping[str, Any] | None, what: str) -> dict[str, slice]:
        """The speeds of joints, or of single degrees of freedom, by their names."""
        found: dict[str, slice] = {}
        named: set[int] = set()
        for name in mapping(function, what, values):
            s = self.model.space.dof_slice(function, what, name)
            if named & set(range(s.start, s.stop)):
                raise ArgumentError(f"{function}: {what}: {name!r} is given twice")
            named |= set(range(s.start, s.stop))
            found[name] = s
        return found

    def refuse_both(self, function: str, speeds: Sequence[int]) -> None:
        if len(speeds):
            both = ", ".join(self.model.speed_names[k] for k in speeds)
            raise ArgumentError(f"{function}: {both} is given both an acceleration and a torque; give one")

    def parameter_array(self, name: str, parameters: Parameters) -> Array:
        defaults = self.parameter_defaults
        if parameters is None or not mapping(name, "parameters", parameters):
            return defaults
        for key in parameters:
            check_known(f"{name}: no parameter", key, self.model.parameter_values)
        columns = {
            key: self.numbers(name, f"parameter {key!r}", parameters.get(key, value))
            for key, value in self.model.parameters
        }
        common(name, [(f"parameter {key!r}", x.shape) for key, x in columns.items()])
        found = np.stack(np.broadcast_arrays(*columns.values()), axis=-1)
        self.physical.check(name, found)
        return found

    def with_parameters(self, name: str, parameters: Parameters, *given: Any) -> tuple[Any, ...]:
        """The arguments of a kernel, with the parameters where the model has any."""
        if self.model.parameters:
            return (*given, self.parameter_array(name, parameters))
        if mapping(name, "parameters", parameters):
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        return given

    @cached_property
    def physical(self) -> Physical:
        return Physical(self.model)

    @cached_property
    def parameter_defaults(self) -> Array:
        return np.array([value for _, value in self.model.parameters])

    def carrier(self, name: str) -> tuple[int, Where]:
        """The node that carries a frame (-1: it does not move) and the frame's placement on it."""
        found = self._carriers.get(name) if isinstance(name, str) else None
        if found is None:
            found = self._carriers[name] = self.tree.carrier(self.model.frame(name))
        return found

    @cached_property
    def _carriers(self) -> dict[str, tuple[int, Where]]:
        return {}

    def carriers(self, function: str, places: Sequence[FrameLike]) -> tuple[tuple[int, Where], ...]:
        """`_carrier` of several frames, or of places on them."""
        if isinstance(places, str) or not places:
            raise ArgumentError(
                f"{function}: frames is {places!r}, expected a list of names or (name, placement)"
            )
        found = []
        for entry in places:
            pair = (entry, Placement()) if isinstance(entry, str) else entry
            if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], Placement):
                raise ArgumentError(
                    f"{function}: frames: {entry!r} is neither the name of a frame nor (name, Placement)"
                )
            name, place = pair
            node, where = self.carrier(name)
            found.append((node, where @ place))
        return tuple(found)

    def locate(self, function: str, name: str, parameters: Parameters) -> tuple[int, Pose]:
        """The node that carries a frame and the frame's pose on it, (..., 3, 3) and (..., 3) over arrays of parameters."""
        if isinstance(name, str) and name in self._fixed_poses:
            return self._fixed_poses[name]
        node, placement = self.carrier(name)
        parts = placement.parts if isinstance(placement, PlacementProduct) else (placement,)
        if not names_in(tuple((part.translation, part.quaternion) for part in parts)):
            self._fixed_poses[name] = node, placement.pose()
            return self._fixed_poses[name]
        values = self.parameter_array(function, parameters)
        if values.ndim == 1:
            return node, placement.pose(dict(zip(self.model.parameter_values, values.tolist(), strict=True)))
        X = kernels.placement_kernel(self.model, name, placement)(values)
        return node, Pose(X[..., :9].reshape(*X.shape[:-1], 3, 3), X[..., 9:])

    @cached_property
    def _fixed_poses(self) -> dict[str, tuple[int, Pose]]:
        return {}

    def check_moves(self, function: str, frame: str) -> None:
        if self.carrier(frame)[0] < 0:
            raise ArgumentError(f"{function}: wrench on frame {frame!r}, which does not move")

    def wrench_array(self, name: str, wrenches: Wrenches, parameters: Parameters) -> Array:
        """(..., nodes, 6) from wrenches on frames."""
        parts = []
        for frame, value in mapping(name, "wrenches", wrenches).items():
            self.check_moves(name, frame)
            node, offset = self.locate(name, frame, parameters)
            F = self.numbers(name, f"wrench on {frame!r}", value, 6, ": moment, then force")
            parts.append((frame, node, frames.carried(offset, F)))
        batch = common(name, [(f"wrench on {frame!r}", F.shape[:-1]) for frame, _, F in parts])
        total = np.zeros((*batch, len(self.tree), 6))
        for _, node, F in parts:
            total[..., node, :] += F
        return total


def all_finite(result: Any) -> bool:
    if type(result) is np.ndarray:
        return _finite(result)
    return all(_finite(np.asarray(x)) for x in (result if isinstance(result, tuple) else (result,)))


def _finite(x: Array) -> bool:
    """Whether no entry is NaN or infinite (or a sum overflows); quick for the few numbers of one state."""
    if x.ndim == 1 and len(x) < 100:
        return isfinite(sum(x.tolist()))
    return isfinite(np.vdot(x, x))  # unlike `dot` it does not warn where squares overflow


class Evaluator(Arguments, Failures):
    """Runs kernels."""

    def evaluate(
        self,
        name: str,
        given: tuple[Any, ...],
        *,
        wrenches: Wrenches | None = None,
        parameters: Parameters = None,
        out: Any = None,
        caller: str | None = None,
    ) -> Any:
        """Run an algorithm; `caller` is the public function to name in messages, where it is not the algorithm."""
        direct = self._direct.get(name)
        if direct and wrenches is None and parameters is None and out is None and _is_one(given):
            try:
                result = direct(*given)
                if all_finite(result):
                    return result
            except ArgumentError:  # told below, in the caller's words
                pass
        if wrenches is not None:
            wrenches = mapping(caller or name, "wrenches", wrenches)
        kernel = self.kernels.get((name, bool(wrenches)))
        if kernel is None:
            if not len(self.tree):
                return _nothing_moves(self.kernel(name), given, out)
            if TABLE[name].needs_tree:
                self.check_tree(name)
            kernel = self.kernel(name, wrenches=bool(wrenches))
        if wrenches:
            given = (*given, self.wrench_array(caller or name, wrenches, parameters))
        if self.model.parameters and TABLE[name].takes_parameters:
            given = (*given, self.parameter_array(caller or name, parameters))
        elif parameters is not None and mapping(name, "parameters", parameters):
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        finite: bool | None = None
        try:
            if _is_batch(given):
                result, finite = kernel.checked(*given, out=out)
            else:
                result = kernel(*given, out=out)
        except ArgumentError as error:
            text = str(error).replace(kernel.name, caller or name, 1)
            for argument in kernel.arguments:
                text = text.replace(f" {argument.name} ", f" {known_as(name, argument.name)} ")
            raise ArgumentError(text) from None
        if self.lockable and TABLE[name].solves:
            self.mark_locked(name, given, result)
            finite = None
        if not (all_finite(result) if finite is None else finite):
            self.explain(caller or name, result, given, kernel)
        elif finite is None and name not in self._direct and _is_one(given) and not kernel.interpreted:
            self._direct[name] = self._direct_call(name)
        return result

    @cached_property
    def lockable(self) -> list[Owner]:
        """Joints that may lose a degree of freedom, with no reflected inertia to keep the equations regular."""
        return [
            self.model.space[k]
            for k, joint in enumerate(self.model.joints)
            if type(joint.type).singularity is not JointType.singularity
            and not (joint.armature or joint.rotors)
        ]

    def mark_locked(self, name: str, given: tuple[Any, ...], result: Any) -> None:
        """NaN where a joint has lost a degree of freedom: rounding makes large numbers of what should be infinite."""
        q = np.asarray(given[0], dtype=float)
        free = np.asarray(given[4]) if name == "hybrid_dynamics" else np.ones(self.model.nv)
        for o in self.lockable:
            if not np.any(free[o.v]) or not o.type.singularity(q[..., o.q]):
                continue
            locked = np.array([bool(o.type.singularity(x)) for x in q[..., o.q].reshape(-1, o.type.nq)])
            results = result if isinstance(result, tuple) else (result,)
            locked = np.broadcast_to(locked.reshape(q.shape[:-1]), results[0].shape[:-1])
            for x in results:
                x[locked] = np.nan

    @cached_property
    def _direct(self) -> dict[str, Callable[..., Any] | None]:
        """Of algorithms that were called: the compiled function for one state, where nothing but its result is checked."""
        return {}

    def _direct_call(self, name: str) -> Callable[..., Any] | None:
        kernel, locks = self.kernels.get((name, False)), self.lockable and TABLE[name].solves
        takes_parameters = self.model.parameters and TABLE[name].takes_parameters
        if kernel is None or takes_parameters or locks:
            return None
        return kernel.function()

    def checked(self, name: str, kernel: Kernel, given: tuple[Any, ...]) -> Any:
        """The results of a kernel, explained where they are not finite."""
        result, finite = kernel.checked(*given) if _is_batch(given) else (kernel(*given), None)
        if not (all_finite(result) if finite is None else finite):
            self.explain(name, result, given, kernel)
        return result

    @cached_property
    def kernels(self) -> dict[Any, Kernel]:
        return {}

    def kept(self, key: Any, make: Callable[[], Kernel]) -> Kernel:
        """A kernel that is made once for the model."""
        if key not in self.kernels:
            self.kernels[key] = make()
        return self.kernels[key]

    def function_kernel(
        self,
        name: str,
        given: Mapping[str, tuple[int, ...]],
        results: Mapping[str, tuple[int, ...]],
        make: Callable[[], ca.Function],
        *,
        key: Any = None,
    ) -> Kernel:
        """That of a function of the model alone, made once; `key` tells functions of one name apart."""
        content = key or name
        return self.kept(
            content,
            lambda: Kernel(
                name,
                [Argument(*item) for item in given.items()],
                [Argument(*item) for item in results.items()],
                key=f"{self.model.fingerprint}:{content}",
                build=lambda: FunctionSource(make()),
            ),
        )

    def kernel(self, name: str, *, wrenches: bool = False, lowering: Lowering = "auto") -> Kernel:
        key: tuple[Any, ...] = (name, wrenches) if lowering == "auto" else (name, wrenches, lowering)
        if key in self.kernels:
            return self.kernels[key]
        algorithm = TABLE[name]
        if algorithm.kernel is not None:
            self.kernels[key] = algorithm.kernel(self.model, wrenches, lowering)
        elif algorithm.program is None:
            self.kernels[key] = compositions.kernel(self.model, algorithm, Options(), lowering)
        else:
            names = algorithm.program_inputs
            self.kernels[key] = kernels.program_kernel(
                self.model,
                self.tree,
                algorithm.program,
                (*names, "wrench") if wrenches else names,
                name=name,
                labels=dict(zip(names, algorithm.inputs, strict=True)),
                lowering=lowering,
            )
        return self.kernels[key]

    def check_tree(self, name: str) -> None:
        """Refuse algorithms that would ignore loops and couplings."""
        for kind, items in (
            ("loop", self.model.loops),
            ("coupling", self.model.couplings),
            ("equation", self.model.equations),
        ):
            if items:
                instead = TABLE[name].instead if name in TABLE else ""
                raise UnsupportedError(
                    f"{name}: the {kind} {items[0].name!r} would be ignored; {kind}s are not supported by this "
                    f"algorithm yet. {f'Use {instead}, or ' if instead else ''}model.replace({kind}s=()), which gives the "
                    "model without them"
                )


class EquationsOfMotion(Evaluator):
    """Forward, inverse and hybrid dynamics, and the terms of the equation of motion."""

    def forward_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        wrenches: Wrenches | None,
        parameters: Parameters,
        method: str,
        out: Array | None,
    ) -> Array:
        direct = self._direct.get("forward_dynamics")
        plain = wrenches is None and parameters is None and out is None and method is SWEEP
        if (
            direct
            and plain
            and type(q) is type(v) is type(tau) is Array
            and q.ndim == v.ndim == tau.ndim == 1
        ):
            found = direct(q, v, tau)
            if isfinite(sum(found.tolist())) if len(found) < 100 else all_finite(found):
                return found
        if method == SWEEP:
            return self.evaluate(
                "forward_dynamics", (q, v, tau), wrenches=wrenches, parameters=parameters, out=out
            )
        return dynamics.forward_dynamics(self.model, q, v, tau, wrenches, parameters, method, out)

    def inverse_dynamics(
        self, q: Any, v: Any, a: Any, wrenches: Wrenches | None, parameters: Parameters, out: Array | None
    ) -> Array:
        direct = self._direct.get("inverse_dynamics")
        plain = wrenches is None and parameters is None and out is None
        if direct and plain and type(q) is type(v) is type(a) is Array and q.ndim == v.ndim == a.ndim == 1:
            found = direct(q, v, a)
            if isfinite(sum(found.tolist())) if len(found) < 100 else all_finite(found):
                return found
        return self.evaluate("inverse_dynamics", (q, v, a), wrenches=wrenches, parameters=parameters, out=out)

    def hybrid_dynamics(
        self,
        q: Any,
        v: Any,
        accelerations: Mapping[str, Any] | None,
        torques: Mapping[str, Any] | None,
        wrenches: Wrenches | None,
        parameters: Parameters,
    ) -> HybridResult:
        prescribed, a = self.by_name("hybrid_dynamics", accelerations, "accelerations", (q, v))
        given, tau = self.by_name("hybrid_dynamics", torques, "torques", (q, v))
        self.refuse_both("hybrid_dynamics", np.flatnonzero(prescribed & given).tolist())
        return HybridResult(*self.hybrid(q, v, tau, a, prescribed, wrenches, parameters))

    def hybrid(
        self,
        q: Any,
        v: Any,
        tau: Array,
        a: Array,
        prescribed: Array,
        wrenches: Wrenches | None,
        parameters: Parameters,
    ) -> tuple[Array, Array]:
        """Accelerations and efforts, where the speeds that a mask marks follow `a`."""
        free = (~prescribed).astype(float)
        return self.evaluate(
            "hybrid_dynamics", (q, v, tau, a, free), wrenches=wrenches, parameters=parameters
        )

    def inverse_mass_matrix(self, q: Any, parameters: Parameters) -> Array:
        name = "inverse_mass_matrix"
        given = self.with_parameters(name, parameters, self.numbers(name, "q", q, self.model.nq))
        q_columns, *others = (
            x[..., None, :] for x in given
        )  # parameters go with the states, not with the columns
        columns = self.kernel("solve_mass_matrix")(q_columns, np.eye(self.model.nv), *others)
        if self.lockable:
            self.mark_locked("solve_mass_matrix", (q_columns,), columns)
        if not all_finite(columns):
            self.explain(name, columns, given, self.kernel("mass_matrix"))
        return np.swapaxes(columns, -1, -2)


def _is_one(given: tuple[Any, ...]) -> bool:
    """Whether all arguments are arrays of one state."""
    for x in given:  # noqa: SIM110  (a third of the time of all(...))
        if type(x) is not Array or x.ndim != 1:
            return False
    return True


def _is_batch(given: tuple[Any, ...]) -> bool:
    """Quick, and sure only when it says so."""
    return bool(given) and type(given[0]) is np.ndarray and given[0].ndim > 1


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
