"""What the user gives, as the arrays that kernels take: wrenches, parameters, values by name, frames.

Parameters given at run time must still make a model that a body can have: the numbers that must not be negative and the
inertias are computed from them by a kernel of their own, for a whole batch at once, and held to the rules of
`alembert.model.inertia`. What the model breaks at its defaults (a file may have it so) is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.algorithms import frames, kernels
from alembert.arguments import common, mapping, numbers
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError
from alembert.expression import Expression, Scalar, evaluate, names_in
from alembert.model import Body, Placement
from alembert.model.inertia import NOISE, TRIANGLE_TOLERANCE
from alembert.model.placement import PlacementProduct
from alembert.model.printing import unknown
from alembert.model.space import with_own_axis
from alembert.spatial import Pose
from alembert.sweeps import Tree
from alembert.sweeps.tree import Where

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
REMEMBERED = 256  # sets of parameters that were found to be good


@dataclass(frozen=True)
class _Rule:
    """An expression that must not be negative (or, with `positive`, zero), and how to say so."""

    entry: Scalar
    sentence: str
    positive: bool = False


class Physical:
    """The check of a model; `check` raises `ArgumentError` in the words of the builder."""

    def __init__(self, model: Model) -> None:
        self._model = model
        defaults = model.parameter_values
        self._bodies = [
            body for body in model.bodies if _depends(body) and not body.inertia.problem(defaults)
        ]
        self._rules = [rule for rule in _rules(model) if isinstance(rule.entry, Expression)]
        self._good: set[bytes] = set()

    def check(self, function: str, parameters: Array) -> None:
        """For parameters (..., count), all of them."""
        if not (self._bodies or self._rules):
            return
        key = parameters.tobytes() if parameters.size <= REMEMBERED else b""
        if key and key in self._good:
            return
        inertias, entries = self._kernel(parameters)
        bad = _unphysical(inertias)
        for k, body in enumerate(self._bodies):
            if np.any(bad[..., k]):
                values = self._first(bad[..., k], parameters)
                problem = body.inertia.problem(values) or "its inertia is not physical"
                self._refuse(function, bad[..., k], f"body {body.name!r}: {problem}")
        for k, rule in enumerate(self._rules):
            wrong = entries[..., k] <= 0 if rule.positive else entries[..., k] < 0
            if np.any(wrong):
                value = entries[..., k][wrong].flat[0]
                self._refuse(function, wrong, rule.sentence.format(f"{value:.6g}"))
        if key and len(self._good) < REMEMBERED:
            self._good.add(key)

    def _first(self, bad: Array, parameters: Array) -> dict[str, float]:
        row = parameters[bad][0] if bad.ndim else parameters
        return dict(zip(self._model.parameter_values, row.tolist(), strict=True))

    def _refuse(self, function: str, bad: Array, what: str) -> None:
        where = ""
        if bad.ndim:
            index = tuple(int(i[0]) for i in np.nonzero(bad))
            where = f" (the first of {np.count_nonzero(bad)}, at {index if len(index) > 1 else index[0]})"
        raise ArgumentError(f"{function}: with the given parameters{where}, {what}")

    @property
    def _kernel(self) -> Kernel:
        model = self._model
        if "physical" not in model.compute.kernels:
            count = len(model.parameters)
            results = [Argument("inertias", (len(self._bodies), 7)), Argument("entries", (len(self._rules),))]
            model.compute.kernels["physical"] = Kernel(
                "parameters",
                [Argument("parameters", (count,))],
                results,
                key=f"{model.fingerprint}:physical",
                build=self._source,
            )
        return model.compute.kernels["physical"]

    def _source(self) -> KernelSource:
        p = ca.SX.sym("p", len(self._model.parameters))
        values = {name: p[k] for k, name in enumerate(self._model.parameter_values)}
        rows = [ca.SX(0, 7)]
        for body in self._bodies:
            entries = (body.inertia.mass, *body.inertia.tensor)
            rows.append(ca.horzcat(*(ca.SX(evaluate(entry, values)) for entry in entries)))
        others = [ca.SX(evaluate(rule.entry, values)) for rule in self._rules]
        outputs = [ca.densify(ca.vertcat(*rows)), ca.densify(ca.vertcat(ca.SX(0, 1), *others))]
        return FunctionSource(ca.Function("physical", [p], outputs))


def _unphysical(inertias: Array) -> Array:
    """`Inertia.problem` on rows of mass and tensor (Ixx, Ixy, Iyy, Ixz, Iyz, Izz); NaN passes, it is found later."""
    mass, xx, xy, yy, xz, yz, zz = np.moveaxis(inertias, -1, 0)
    finite = np.isfinite(inertias).all(axis=-1)
    tensor = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(*mass.shape, 3, 3)
    moments = np.linalg.eigvalsh(np.where(finite[..., None, None], tensor, 0.0))
    largest = np.abs(moments).max(axis=-1)
    slack = TRIANGLE_TOLERANCE * largest + NOISE * mass
    wrong = (mass < 0) | ((mass == 0) & (largest > 0)) | (moments[..., 0] < -slack)
    return finite & (wrong | (moments[..., 2] > moments[..., 0] + moments[..., 1] + slack))


def _depends(body: Body) -> bool:
    return any(isinstance(x, Expression) for x in (body.inertia.mass, *body.inertia.tensor))


def _rules(model: Model) -> list[_Rule]:
    """What attachments refuse when they are made with numbers."""
    found: list[_Rule] = []

    def add(joint: str, what: str, entries: Any) -> None:
        sentence = f"joint {joint!r}: {what} is {{}}, expected zero or more"
        found.extend(_Rule(entry, sentence) for entry in entries)

    for joint in model.joints:
        add(joint.name, "armature", joint.armature)
        add(joint.name, "rotor inertia", [rotor.inertia for rotor in joint.rotors])
        if joint.friction:
            add(joint.name, "viscous friction", joint.friction.viscous)
            add(joint.name, "Coulomb friction", joint.friction.coulomb)
            sentence = f"joint {joint.name!r}: friction smoothing speed is {{}}, expected a positive speed"
            found.append(_Rule(joint.friction.smoothing, sentence, positive=True))
    return found


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
        places = self.model.space.speed_places
        found: dict[str, slice] = {}
        named: set[int] = set()
        for name in mapping(function, what, values):
            if name not in places and name not in self.model.joint_indices:
                raise ArgumentError(
                    unknown(f"{function}: {what}: no joint or degree of freedom", name, places)
                )
            s = places[name] if name in places else self.model.v_slice(name)
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
            if key not in self.model.parameter_values:
                raise ArgumentError(unknown(f"{name}: no parameter", key, self.model.parameter_values))
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
