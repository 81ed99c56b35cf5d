"""What a configuration is to do: tasks, each with rows that are zero where it is done.

A task on a frame C, seen from another one B (the world unless it says otherwise), has the pose X_BC and, with the frame's
own motion relative to B in its own axes, V = J v, the rows

    position      r = p_BC + R_BC c - target,        dr = R_BC (v + w x c)                            (1)
    orientation   r = log(target^T R_BC),            dr = J_r(r)^-1 w                                 (2)
    point at      r = angle * (a x d)/|a x d|,       a fixed in C, d from C to the target             (3)
    distance      r = |p_BC| - target                                                                 (4)

J_r is the right Jacobian of SO(3). Derivatives of (3) and (4) with respect to a small motion of C are taken by
differentiation, those of the user's own functions along `integrate(q, e)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import names, numbers, real, whole
from alembert.errors import ArgumentError
from alembert.model import WORLD
from alembert.spatial import Pose, se3, so3
from alembert.spatial.arrays import skew
from alembert.sweeps import COMPOSITE

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
TINY = 1e-300
"""below a square root: its derivative stays finite, its value the same"""


class Symbols:
    """A configuration on symbols, with the poses and Jacobians that tasks ask for."""

    def __init__(self, model: Model, q: ca.SX, parameters: ca.SX) -> None:
        self.model, self.q = model, q
        self.parameters = parameters if model.parameters else None

    def relative(self, frame: str, base: str) -> tuple[Pose, ca.SX]:
        """X_BC, and the Jacobian of C's motion relative to B in the axes of C."""
        X, J = self._of(frame)
        if base == WORLD:
            return X, J
        X_WB, J_B = self._of(base)
        X_BC = X_WB.inverse() @ X
        return X_BC, J - se3.Ad(X_BC.inverse()) @ J_B

    def _of(self, frame: str) -> tuple[Pose, ca.SX]:
        symbolic = self.model.symbolic
        X = symbolic.frame_pose(self.q, frame, parameters=self.parameters)
        return X, symbolic.frame_jacobian(self.q, frame, parameters=self.parameters)

    def along(self, rows: Callable[[ca.SX], ca.SX]) -> ca.SX:
        """The derivative of rows of q along integrate(q, e)."""
        e = ca.SX.sym("e", self.model.nv)
        moved = ca.jacobian(rows(self.model.space.integrate(self.q, e)), e)
        return ca.substitute(moved, e, ca.SX.zeros(self.model.nv))


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The rows of a task with their derivative (m, nv), and how far it is from done, by measure."""

    residual: ca.SX
    jacobian: ca.SX
    errors: tuple[ca.SX, ...]


@dataclass(frozen=True, eq=False)
class ReachTask:
    """Made by `position`, `pose` and the other functions of this module."""

    name: str
    target: Array
    """(..., width)"""
    weight: float
    priority: int
    measures: tuple[tuple[str, str], ...]
    """label and unit of what tells that it is done; none for a preference, which is only to be as good as can be"""
    frames: tuple[str, ...]
    structure: str
    """tasks with equal ones have equal rows, but for their targets"""
    rows: Callable[[Symbols, ca.SX], TaskRows]
    """of a configuration and the target"""

    def __repr__(self) -> str:
        return f"<ReachTask {self.name}>"

    @property
    def is_preference(self) -> bool:
        return not self.measures


def position(
    frame: str,
    target: Any,
    *,
    point: Any = (0.0, 0.0, 0.0),
    axes: str = "xyz",
    relative_to: str = WORLD,
    weight: float = 1.0,
    priority: int = 1,
    name: str = "",
) -> ReachTask:
    """A point of a frame is at `target` (..., 3), in the axes of the frame `relative_to`.

    `axes` names the coordinates that count, as in "xy"; the others of the target are not looked at.
    """
    c = _vector("point", point)
    chosen = _axes(axes)

    def rows(s: Symbols, x: ca.SX) -> TaskRows:
        """(1)"""
        X, J = s.relative(frame, relative_to)
        r = (X.point(ca.SX(c)) - x)[chosen]
        D = X.rotation @ (J[3:, :] - ca.skew(ca.SX(c)) @ J[:3, :])
        return TaskRows(r, D[chosen, :], (ca.norm_2(r),))

    structure = f"{c.tolist()} {axes}"
    own = (name, weight, priority, (frame, relative_to))
    return _of_point(f"position of {frame}", target, ("position", "m"), structure, rows, *own)


def orientation(
    frame: str,
    target: Any,
    *,
    relative_to: str = WORLD,
    weight: float = 1.0,
    priority: int = 1,
    name: str = "",
) -> ReachTask:
    """A frame has the rotation matrix `target` (..., 3, 3), a SciPy `Rotation` or that of a `Pose`."""

    def rows(s: Symbols, x: ca.SX) -> TaskRows:
        X, J = s.relative(frame, relative_to)
        return _turned(X, J, x)

    what = f"orientation of {frame}"
    given = _rotation(what, target)
    return _task(
        name or what,
        given,
        weight,
        priority,
        (("orientation", "rad"),),
        (frame, relative_to),
        f"{what} {relative_to}",
        rows,
    )


def pose(
    frame: str,
    target: Any,
    *,
    relative_to: str = WORLD,
    weight: float = 1.0,
    turning: float = 1.0,
    priority: int = 1,
    name: str = "",
) -> ReachTask:
    """A frame has the pose `target`: a `Pose` of rotations (..., 3, 3) and positions (..., 3), or 4 x 4 matrices.

    A radian counts as much as `turning` metres.
    """
    length = real("reach", "turning", turning, "a positive number", over=0.0)

    def rows(s: Symbols, x: ca.SX) -> TaskRows:
        X, J = s.relative(frame, relative_to)
        r = X.translation - x[9:]
        turned = _turned(X, J, x[:9])
        return TaskRows(
            ca.vertcat(r, length * turned.residual),
            ca.vertcat(X.rotation @ J[3:, :], length * turned.jacobian),
            (ca.norm_2(r), *turned.errors),
        )

    what = f"pose of {frame}"
    x = _pose(what, target)
    measures = (("position", "m"), ("orientation", "rad"))
    structure = f"{what} {relative_to} {length!r}"
    return _task(name or what, x, weight, priority, measures, (frame, relative_to), structure, rows)


def point_at(
    frame: str,
    target: Any,
    *,
    axis: Any = (0.0, 0.0, 1.0),
    relative_to: str = WORLD,
    weight: float = 1.0,
    priority: int = 1,
    name: str = "",
) -> ReachTask:
    """The `axis` of a frame, from its origin, points at `target` (..., 3)."""
    a = _vector("axis", axis)
    if not np.linalg.norm(a) > 0:
        raise ArgumentError(f"reach: axis is {axis!r}, expected a direction")
    a = a / np.linalg.norm(a)

    def rows(s: Symbols, x: ca.SX) -> TaskRows:
        """(3)"""
        X, J = s.relative(frame, relative_to)

        def residual(R: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
            d = R.T @ (x - p)
            across = ca.cross(ca.SX(a), d)
            size = ca.sqrt(ca.sumsqr(across) + TINY)
            angle = ca.atan2(size, ca.dot(ca.SX(a), d))
            return angle / size * across, angle

        r, D = _moved(X, lambda R, p: residual(R, p)[0])
        return TaskRows(r, D @ J, (residual(X.rotation, X.translation)[1],))

    own = (name, weight, priority, (frame, relative_to))
    return _of_point(f"{frame} pointing", target, ("direction", "rad"), f"{a.tolist()}", rows, *own)


def distance(
    frame: str,
    target: Any,
    *,
    relative_to: str = WORLD,
    weight: float = 1.0,
    priority: int = 1,
    name: str = "",
) -> ReachTask:
    """The origins of two frames are `target` (...) metres apart."""

    def rows(s: Symbols, x: ca.SX) -> TaskRows:
        """(4)"""
        X, J = s.relative(frame, relative_to)
        r, D = _moved(X, lambda R, p: ca.sqrt(ca.sumsqr(p) + TINY) - x)
        return TaskRows(r, D @ J, (ca.fabs(r),))

    what = f"distance of {frame} from {relative_to}"
    x = numbers("reach", what, target)[..., None]
    if np.any(x < 0):
        raise ArgumentError(f"reach: {what} is {target!r}, expected no negative length")
    return _task(name or what, x, weight, priority, (("distance", "m"),), (frame, relative_to), what, rows)


def center_of_mass(
    target: Any, *, axes: str = "xyz", weight: float = 1.0, priority: int = 1, name: str = ""
) -> ReachTask:
    """The centre of mass of everything that moves is at `target` (..., 3); `axes` as in `position`."""
    chosen = _axes(axes)

    def rows(s: Symbols, x: ca.SX) -> TaskRows:
        symbolic = s.model.symbolic
        r = (symbolic.center_of_mass(s.q, parameters=s.parameters) - x)[chosen]
        rows = symbolic.momentum_matrix(s.q, about="world", parameters=s.parameters)
        total = symbolic.function(COMPOSITE, ("q",))
        mass = total(s.q, *([] if s.parameters is None else [s.parameters]))[0]
        D = rows[3:, :][chosen, :] / mass
        return TaskRows(r, D, (ca.norm_2(r),))

    what = "center of mass"
    x = numbers("reach", f"target of the {what}", target, 3)
    return _task(name or what, x, weight, priority, (("position", "m"),), (), f"{what} {axes}", rows)


def custom(
    function: Callable[[ca.SX], Any],
    target: Any = 0.0,
    *,
    name: str,
    unit: str = "",
    preference: bool = False,
    weight: float = 1.0,
    priority: int = 1,
) -> ReachTask:
    """`function(q)`, of CasADi symbols, equals `target` (..., rows).

    `model.symbolic` has what it may be made of. A `preference` is only to be as near as the other tasks allow: an objective.
    """
    if not callable(function):
        raise ArgumentError(f"reach: the task {name!r} needs a function of q, got {function!r}")
    x = numbers("reach", f"target of {name!r}", target)
    x = x[None] if x.ndim == 0 else x

    def value(q: ca.SX) -> ca.SX:
        found = ca.vec(ca.densify(ca.SX(function(q))))
        if found.numel() != x.shape[-1]:
            raise ArgumentError(
                f"reach: the function of {name!r} gives {found.numel()} numbers, its target has {x.shape[-1]}"
            )
        return found

    def rows(s: Symbols, t: ca.SX) -> TaskRows:
        r = value(s.q) - t
        return TaskRows(r, s.along(value), () if preference else (ca.norm_2(r),))

    measures = () if preference else ((name, unit),)
    return _task(name, x, weight, priority, measures, (), "", rows)


def posture(
    target: Any, *, joints: Sequence[str] | None = None, weight: float = 1.0, priority: int = 2
) -> ReachTask:
    """A preference: all joints, or some, as near to the configuration `target` (..., nq) as the tasks before it allow."""
    x = numbers("reach", "posture", target)
    chosen = None if joints is None else names("reach", "joints", joints)

    def rows(s: Symbols, t: ca.SX) -> TaskRows:
        space = s.model.space
        own = list(range(space.nv)) if chosen is None else space.dofs("reach", "posture", chosen)
        r = space.difference(t, s.q)
        D = s.along(lambda q: space.difference(t, q))
        return TaskRows(r[own], D[own, :], ())

    return _task("posture", x, weight, priority, (), (), f"posture {chosen}", rows)


def centered(*, weight: float = 1.0, priority: int = 2) -> ReachTask:
    """A preference: joints with limits away from them, as a fraction of their range."""

    def rows(s: Symbols, _: ca.SX) -> TaskRows:
        space = s.model.space
        low, high = space.limits("lower"), space.limits("upper")
        own = [k for k in range(space.nq) if np.isfinite(high[k] - low[k]) and high[k] > low[k]]
        if not own:
            raise ArgumentError("reach: centered: no joint of the model has limits on both sides")
        middle, half = (low + high)[own] / 2, (high - low)[own] / 2

        def from_middle(q: ca.SX) -> ca.SX:
            return (q[own] - ca.SX(middle)) / ca.SX(half)

        return TaskRows(from_middle(s.q), s.along(from_middle), ())

    return _task("centered", np.zeros(0), weight, priority, (), (), "centered", rows)


def read(function: str, model: Model, given: Any) -> tuple[ReachTask, ...]:
    """Tasks, or a mapping from frames to poses or positions."""
    if isinstance(given, ReachTask):
        given = (given,)
    elif isinstance(given, Mapping):
        given = tuple(
            pose(frame, x) if isinstance(x, Pose) or np.shape(x)[-2:] == (4, 4) else position(frame, x)
            for frame, x in given.items()
        )
    try:
        tasks = tuple(given)
    except TypeError:
        tasks = (None,)
    if not tasks or not all(isinstance(task, ReachTask) for task in tasks):
        raise ArgumentError(
            f"{function}: tasks is {given!r}, expected tasks (al.reach.pose(...), ...) or a mapping from frames to targets"
        )
    seen: set[str] = set()
    for task in tasks:
        for frame in task.frames:
            model.compute.locate(function, frame, None)
        if task.name in seen:
            raise ArgumentError(f"{function}: two tasks are called {task.name!r}; give one another name=")
        seen.add(task.name)
    return tasks


def _task(
    name: str,
    target: Array,
    weight: Any,
    priority: Any,
    measures: tuple[tuple[str, str], ...],
    frames: tuple[str, ...],
    structure: str,
    rows: Callable[[Symbols, ca.SX], TaskRows],
) -> ReachTask:
    if not np.all(np.isfinite(target)):
        raise ArgumentError(f"reach: the target of {name!r} is not finite")
    return ReachTask(
        name,
        target,
        real("reach", f"the weight of {name!r}", weight, "a positive number", over=0.0),
        whole("reach", f"the priority of {name!r}", priority, "1 (first), 2, ..."),
        measures,
        frames,
        structure,
        rows,
    )


def _of_point(
    what: str,
    target: Any,
    measure: tuple[str, str],
    structure: str,
    rows: Callable[[Symbols, ca.SX], TaskRows],
    name: str,
    weight: Any,
    priority: Any,
    frames: tuple[str, str],
) -> ReachTask:
    """A task of a frame whose target is a point, in the axes of the second frame."""
    x = numbers("reach", f"target of the {what}", target, 3)
    return _task(
        name or what, x, weight, priority, (measure,), frames, f"{what} {structure} {frames[1]}", rows
    )


def _turned(X: Pose, J: ca.SX, x: ca.SX) -> TaskRows:
    """(2), for a target by rows"""
    target = ca.reshape(x, 3, 3).T
    r = ca.SX(so3.log(target.T @ X.rotation))
    return TaskRows(r, so3.right_jacobian_inverse(r) @ J[:3, :], (ca.norm_2(r),))


def _moved(X: Pose, residual: Callable[[ca.SX, ca.SX], ca.SX]) -> tuple[ca.SX, ca.SX]:
    """Rows of a pose, and their derivative with respect to a small motion of it in its own axes."""
    d = ca.SX.sym("d", 6)
    r = residual(X.rotation @ (ca.SX.eye(3) + skew(d[:3])), X.translation + X.rotation @ d[3:])
    value, slope = ca.substitute([r, ca.jacobian(r, d)], [d], [ca.SX.zeros(6)])
    return value, slope


def _axes(axes: str) -> list[int]:
    if not isinstance(axes, str) or not axes or set(axes) - set("xyz") or len(set(axes)) != len(axes):
        raise ArgumentError(f"reach: axes is {axes!r}, expected some of 'xyz'")
    return ["xyz".index(x) for x in axes]


def _vector(what: str, value: Any) -> Array:
    return np.array(numbers("reach", what, value, 3, batch=False))


def _rotation(what: str, target: Any) -> Array:
    if isinstance(target, Pose):
        target = target.rotation
    elif hasattr(target, "as_matrix"):
        target = target.as_matrix()
    R = numbers("reach", f"target of the {what}", target)
    if R.shape[-2:] != (3, 3):
        raise ArgumentError(f"reach: target of the {what} has shape {R.shape}, expected (..., 3, 3)")
    off = np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), initial=0.0)
    if not off < 1e-6 or np.any(np.linalg.det(R) < 0):
        raise ArgumentError(
            f"reach: target of the {what} is no rotation: R^T R differs from 1 by {off:.2g}, or it mirrors"
        )
    return R.reshape(*R.shape[:-2], 9)


def _pose(what: str, target: Any) -> Array:
    """(..., 12): the rotation by rows, then the position."""
    if not isinstance(target, Pose):
        T = numbers("reach", f"target of the {what}", target)
        if T.shape[-2:] != (4, 4):
            raise ArgumentError(
                f"reach: target of the {what} has shape {T.shape}, expected a Pose or (..., 4, 4)"
            )
        target = Pose(T[..., :3, :3], T[..., :3, 3])
    R = _rotation(what, target.rotation)
    p = numbers("reach", f"target of the {what}", target.translation, 3)
    batch = np.broadcast_shapes(R.shape[:-1], p.shape[:-1])
    parts = [np.broadcast_to(R, (*batch, 9)), np.broadcast_to(p, (*batch, 3))]
    return np.concatenate(parts, axis=-1)
