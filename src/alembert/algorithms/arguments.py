"""What the user gives, as the arrays that kernels take: wrenches, parameters, values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.algorithms import frames, kernels, physical
from alembert.errors import ArgumentError
from alembert.expression import names_in
from alembert.model import Placement
from alembert.model.placement import PlacementProduct
from alembert.model.printing import unknown
from alembert.model.space import with_own_axis
from alembert.spatial import Pose
from alembert.sweeps import Tree
from alembert.sweeps.tree import Where

if TYPE_CHECKING:
    from alembert.algorithms.physical import Physical
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

    def numbers(
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
            if name not in places and name not in self.model._joint_index:
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
        if parameters:
            raise ArgumentError(f"{name}: parameters are given, but the model has none")
        return given

    @cached_property
    def physical(self) -> Physical:
        return physical.Physical(self.model)

    @cached_property
    def parameter_defaults(self) -> Array:
        return np.array([value for _, value in self.model.parameters])

    def carrier(self, name: str) -> tuple[int, Where]:
        """The node that carries a frame (-1: it does not move) and the frame's placement on it."""
        return self.tree.carrier(self.model.frame(name))

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
        if name in self._fixed_poses:
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


def mapping(function: str, what: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{function}: {what} is {value!r}, expected a mapping from names to arrays")
    return value


def common(function: str, shapes: list[tuple[str, tuple[int, ...]]]) -> tuple[int, ...]:
    """The batch shape of several arrays."""
    try:
        return np.broadcast_shapes(*(shape for _, shape in shapes))
    except ValueError:
        listed = ", ".join(f"{what} {shape}" for what, shape in shapes if shape)
        raise ArgumentError(f"{function}: the batch dimensions do not go together: {listed}") from None
