"""Coordinates, speeds, efforts and accelerations in the conventions of Pinocchio and MuJoCo.

| joint     | Alembert q; v        | Pinocchio q; v                | MuJoCo qpos; qvel             |
|-----------|----------------------|-------------------------------|-------------------------------|
| free      | p, wxyz; w, v (body) | p, xyzw; v, w (body)          | p, wxyz; v (world), w (body)  |
| spherical | wxyz; w (body)       | xyzw; w (body)                | wxyz; w (body)                |
| revolute  | angle; rate          | angle, or cos, sin; rate      | angle; rate                   |
| planar    | x, y, angle; rates   | x, y, cos, sin; v, w (body)   | none (two slides and a hinge) |
| prismatic | distance; rate       | the same                      | the same                      |
| others    | coordinates; rates   | the same, where it has them   | none                          |

Joints are matched by name when the other program's model is given, else both are taken to have the same
joints in the same order. Pinocchio has cosine and sine for the continuous joints of URDF. A model read by
`load_mjcf` has MuJoCo's own coordinates: a joint's `ref` is folded into its placement.

Speeds map by v' = T(q) v with T orthogonal, so that **efforts and tangent displacements convert exactly as
speeds do** (power is kept: tau' . v' = tau . v): pass them for `v`. Accelerations have a term in dT/dt and
functions of their own. All arrays may have leading batch dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from alembert.arguments import common, unknown
from alembert.errors import ArgumentError, UnsupportedError
from alembert.joints import Fixed, Free, JointType, Planar, Prismatic, Revolute, Spherical
from alembert.model.model import Model
from alembert.spatial import Pose, quaternion

Array = np.ndarray


@overload
def to_pinocchio(model: Model, q: Any, v: None = None, *, pin_model: Any = None) -> Array: ...
@overload
def to_pinocchio(model: Model, q: Any, v: Any, *, pin_model: Any = None) -> tuple[Array, Array]: ...
def to_pinocchio(model: Model, q: Any, v: Any = None, *, pin_model: Any = None) -> Any:
    """Pinocchio's q, and its v (or efforts) when `v` is given.

    Without `pin_model`, revolute joints are taken as angles: give it when there are continuous joints.
    """
    return _to(_pinocchio(model, pin_model), "to_pinocchio", q, v)


@overload
def from_pinocchio(model: Model, q: Any, v: None = None, *, pin_model: Any = None) -> Array: ...
@overload
def from_pinocchio(model: Model, q: Any, v: Any, *, pin_model: Any = None) -> tuple[Array, Array]: ...
def from_pinocchio(model: Model, q: Any, v: Any = None, *, pin_model: Any = None) -> Any:
    """Alembert's q, and v (or efforts) when given; the angle of (cos, sin) is within half a turn."""
    return _from(_pinocchio(model, pin_model), "from_pinocchio", q, v)


@overload
def to_mujoco(model: Model, q: Any, v: None = None, *, mj_model: Any = None) -> Array: ...
@overload
def to_mujoco(model: Model, q: Any, v: Any, *, mj_model: Any = None) -> tuple[Array, Array]: ...
def to_mujoco(model: Model, q: Any, v: Any = None, *, mj_model: Any = None) -> Any:
    """MuJoCo's qpos, and its qvel (or efforts, as in `qfrc_applied`) when `v` is given."""
    return _to(_mujoco(model, mj_model), "to_mujoco", q, v)


@overload
def from_mujoco(model: Model, q: Any, v: None = None, *, mj_model: Any = None) -> Array: ...
@overload
def from_mujoco(model: Model, q: Any, v: Any, *, mj_model: Any = None) -> tuple[Array, Array]: ...
def from_mujoco(model: Model, q: Any, v: Any = None, *, mj_model: Any = None) -> Any:
    """Alembert's q from qpos, and v (or efforts) from qvel when given."""
    return _from(_mujoco(model, mj_model), "from_mujoco", q, v)


def accelerations_to_pinocchio(model: Model, q: Any, v: Any, a: Any, *, pin_model: Any = None) -> Array:
    """Pinocchio's `a` from Alembert's q, v, dv/dt."""
    return _accelerations(_pinocchio(model, pin_model), "accelerations_to_pinocchio", q, v, a, there=True)


def accelerations_from_pinocchio(model: Model, q: Any, v: Any, a: Any, *, pin_model: Any = None) -> Array:
    """dv/dt from Pinocchio's q, v, a."""
    return _accelerations(_pinocchio(model, pin_model), "accelerations_from_pinocchio", q, v, a, there=False)


def accelerations_to_mujoco(model: Model, q: Any, v: Any, a: Any, *, mj_model: Any = None) -> Array:
    """MuJoCo's `qacc` from Alembert's q, v, dv/dt."""
    return _accelerations(_mujoco(model, mj_model), "accelerations_to_mujoco", q, v, a, there=True)


def accelerations_from_mujoco(model: Model, q: Any, v: Any, a: Any, *, mj_model: Any = None) -> Array:
    """dv/dt from MuJoCo's qpos, qvel, qacc."""
    return _accelerations(_mujoco(model, mj_model), "accelerations_from_mujoco", q, v, a, there=False)


# --- rules per joint ------------------------------------------------------------------------------


def _keep_q(q: Array) -> Array:
    return q


def _keep_v(q: Array, v: Array) -> Array:
    return v


def _no_rate(q: Array, v: Array) -> Array:
    return np.zeros_like(v)


@dataclass(frozen=True)
class _Rule:
    """How one joint converts; `q` in the maps of speeds is always Alembert's."""

    nq: int
    nv: int
    q_to: Callable[[Array], Array] = _keep_q
    q_from: Callable[[Array], Array] = _keep_q
    v_to: Callable[[Array, Array], Array] = _keep_v
    v_from: Callable[[Array, Array], Array] = _keep_v
    rate: Callable[[Array, Array], Array] = _no_rate
    """(dT/dt) v"""


def _plain(type: JointType) -> _Rule:
    return _Rule(type.nq, type.nv)


def _join(*parts: Array) -> Array:
    return np.concatenate(parts, axis=-1)


def _to_xyzw(q: Array) -> Array:
    return q[..., [1, 2, 3, 0]]


def _to_wxyz(q: Array) -> Array:
    return q[..., [3, 0, 1, 2]]


def _swap(q: Array, v: Array) -> Array:
    return _join(v[..., 3:6], v[..., 0:3])


def _rotate(q_wxyz: Array, x: Array, sign: float) -> Array:
    """R x for sign = 1, R^T x for sign = -1."""
    w, u = q_wxyz[..., :1], sign * q_wxyz[..., 1:]
    t = 2 * np.cross(u, x)
    return x + w * t + np.cross(u, t)


def _turn(angle: Array, x: Array) -> Array:
    """Plane vectors (and what follows them unchanged) turned by `angle`."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], axis=-1)


def _planar_rate(q: Array, v: Array) -> Array:
    x, y, _ = np.moveaxis(_turn(-q[..., 2], v), -1, 0)
    return np.stack([v[..., 2] * y, -v[..., 2] * x, 0 * x], axis=-1)


_PINOCCHIO: dict[type[JointType], _Rule] = {
    Free: _Rule(
        7,
        6,
        lambda q: _join(q[..., :3], _to_xyzw(q[..., 3:])),
        lambda q: _join(q[..., :3], _to_wxyz(q[..., 3:])),
        _swap,
        _swap,
    ),
    Spherical: _Rule(4, 3, _to_xyzw, _to_wxyz),
    Planar: _Rule(
        4,
        3,
        lambda q: np.stack([q[..., 0], q[..., 1], np.cos(q[..., 2]), np.sin(q[..., 2])], axis=-1),
        lambda q: np.stack([q[..., 0], q[..., 1], np.arctan2(q[..., 3], q[..., 2])], axis=-1),
        lambda q, v: _turn(-q[..., 2], v),
        lambda q, v: _turn(q[..., 2], v),
        _planar_rate,
    ),
}
_CONTINUOUS = _Rule(
    2,
    1,
    lambda q: _join(np.cos(q), np.sin(q)),
    lambda q: np.arctan2(q[..., 1:], q[..., :1]),
)
_MUJOCO: dict[type[JointType], _Rule] = {
    Free: _Rule(
        7,
        6,
        v_to=lambda q, v: _join(_rotate(q[..., 3:], v[..., 3:], 1), v[..., :3]),
        v_from=lambda q, v: _join(v[..., 3:], _rotate(q[..., 3:], v[..., :3], -1)),
        rate=lambda q, v: _join(
            _rotate(q[..., 3:], np.cross(v[..., :3], v[..., 3:]), 1), np.zeros_like(v[..., :3])
        ),
    ),
    Spherical: _Rule(4, 3),
    Revolute: _Rule(1, 1),
    Prismatic: _Rule(1, 1),
    Fixed: _Rule(0, 0),
}


def _placed_free(X: Pose) -> _Rule:
    """MuJoCo's free joints count from the world, ours from their placement."""
    R, p, turn = np.asarray(X.rotation), np.asarray(X.translation), quaternion.from_matrix(X.rotation)
    back = quaternion.conjugate(turn)
    base = _MUJOCO[Free]

    def lift(x: Array, matrix: Array) -> Array:
        """The first three entries turned."""
        return _join(x[..., :3] @ matrix.T, x[..., 3:])

    return _Rule(
        7,
        6,
        q_to=lambda q: _join(p + q[..., :3] @ R.T, _product(turn, q[..., 3:])),
        q_from=lambda q: _join((q[..., :3] - p) @ R, _product(back, q[..., 3:])),
        v_to=lambda q, v: lift(base.v_to(q, v), R),
        v_from=lambda q, v: base.v_from(q, lift(v, R.T)),
        rate=lambda q, v: lift(base.rate(q, v), R),
    )


def _product(a: Array, b: Array) -> Array:
    """The product of a quaternion with quaternions (..., 4), scalar first."""
    w, u = b[..., :1], b[..., 1:]
    scalar = a[0] * w - np.sum(a[1:] * u, axis=-1, keepdims=True)
    return _join(scalar, a[0] * u + w * a[1:] + np.cross(a[1:], u))


# --- layouts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Slot:
    """One joint: where its numbers are here and there."""

    rule: _Rule
    q_here: slice
    v_here: slice
    q_there: slice
    v_there: slice


@dataclass(frozen=True)
class _Layout:
    slots: tuple[_Slot, ...]
    nq_here: int
    nv_here: int
    nq_there: int
    nv_there: int


def _pinocchio(model: Model, pin_model: Any) -> _Layout:
    _refuse_modes(model, "Pinocchio")
    rules = [_PINOCCHIO.get(type(joint.type)) or _plain(joint.type) for joint in model.joints]
    if pin_model is None:
        return _same_order(model, rules)
    ids = {name: i for i, name in enumerate(pin_model.names)}
    found = {
        name: (int(j.idx_q), int(j.nq), int(j.idx_v), int(j.nv))
        for name, j in ((name, pin_model.joints[i]) for name, i in ids.items() if i > 0)
    }
    for k, joint in enumerate(model.joints):
        if isinstance(joint.type, Revolute) and found.get(joint.name, (0, 1, 0, 1))[1] == 2:
            rules[k] = _CONTINUOUS
    return _by_name(model, rules, found, "Pinocchio", int(pin_model.nq), int(pin_model.nv))


def _mujoco(model: Model, mj_model: Any) -> _Layout:
    _refuse_modes(model, "MuJoCo")
    rules = []
    for joint in model.joints:
        if type(joint.type) not in _MUJOCO:
            raise UnsupportedError(
                f"joint {joint.name!r} is {joint.type.kind}; MuJoCo has no such joint, "
                "so that its coordinates cannot be converted"
            )
        rule = _MUJOCO[type(joint.type)]
        if isinstance(joint.type, Free) and not joint.placement.is_identity:
            rule = _placed_free(joint.placement.pose(model.parameter_values))
        rules.append(rule)
    if mj_model is None:
        return _same_order(model, rules)
    from alembert.model.io.mjcf_source import joint_names

    sizes = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}  # free, ball, slide, hinge
    found = {}
    for i, name in enumerate(joint_names(mj_model)):
        nq, nv = sizes[int(mj_model.jnt_type[i])]
        found[name] = (int(mj_model.jnt_qposadr[i]), nq, int(mj_model.jnt_dofadr[i]), nv)
    return _by_name(model, rules, found, "MuJoCo", int(mj_model.nq), int(mj_model.nv))


def _refuse_modes(model: Model, program: str) -> None:
    for name in model.space.of_bodies:
        raise UnsupportedError(
            f"body {name!r} is flexible; {program} has no modes, so that they cannot be converted"
        )


def _same_order(model: Model, rules: list[_Rule]) -> _Layout:
    slots, nq, nv = [], 0, 0
    for rule, o in zip(rules, model.space, strict=True):
        slots.append(_Slot(rule, o.q, o.v, slice(nq, nq + rule.nq), slice(nv, nv + rule.nv)))
        nq, nv = nq + rule.nq, nv + rule.nv
    return _Layout(tuple(slots), model.nq, model.nv, nq, nv)


def _by_name(
    model: Model,
    rules: list[_Rule],
    found: dict[str, tuple[int, int, int, int]],
    program: str,
    nq: int,
    nv: int,
) -> _Layout:
    slots = []
    left = dict(found)
    for joint, rule in zip(model.space, rules, strict=True):
        if joint.type.nv == 0:
            continue
        if joint.name not in left:
            raise ArgumentError(unknown(f"the {program} model has no joint", joint.name, found))
        at_q, there_nq, at_v, there_nv = left.pop(joint.name)
        if (there_nq, there_nv) != (rule.nq, rule.nv):
            raise ArgumentError(
                f"joint {joint.name!r} ({joint.type.kind}) has {there_nq} coordinates and {there_nv} speeds "
                f"in the {program} model, expected {rule.nq} and {rule.nv}"
            )
        slots.append(_Slot(rule, joint.q, joint.v, slice(at_q, at_q + rule.nq), slice(at_v, at_v + rule.nv)))
    for name, (_, _, _, there_nv) in left.items():
        if there_nv:
            raise ArgumentError(
                f"the {program} model has a joint {name!r} that the model {model.name!r} has not"
            )
    return _Layout(tuple(slots), model.nq, model.nv, nq, nv)


# --- applying them --------------------------------------------------------------------------------


def _array(x: Any, width: int, function: str, argument: str) -> Array:
    try:
        value = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{function}: {argument} is {type(x).__name__}, expected an array of numbers"
        ) from None
    if value.ndim == 0 or value.shape[-1] != width:
        raise ArgumentError(f"{function}: {argument} has shape {value.shape}, expected (..., {width})")
    return value


def _filled(parts: Iterator[tuple[slice, Array]], shape: tuple[int, ...]) -> Array:
    result = np.zeros(shape)
    for where, part in parts:
        result[..., where] = part
    return result


def _batched(function: str, **arrays: Array) -> tuple[Array, ...]:
    batch = common(function, [(name, x.shape[:-1]) for name, x in arrays.items()])
    return tuple(np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays.values())


def _q_from(layout: _Layout, q: Array) -> Array:
    parts = ((s.q_here, s.rule.q_from(q[..., s.q_there])) for s in layout.slots)
    return _filled(parts, (*q.shape[:-1], layout.nq_here))


def _v_from(layout: _Layout, q: Array, v: Array) -> Array:
    parts = ((s.v_here, s.rule.v_from(q[..., s.q_here], v[..., s.v_there])) for s in layout.slots)
    return _filled(parts, (*v.shape[:-1], layout.nv_here))


def _v_to(layout: _Layout, q: Array, v: Array) -> Array:
    parts = ((s.v_there, s.rule.v_to(q[..., s.q_here], v[..., s.v_here])) for s in layout.slots)
    return _filled(parts, (*v.shape[:-1], layout.nv_there))


def _rate(layout: _Layout, q: Array, v: Array) -> Array:
    parts = ((s.v_there, s.rule.rate(q[..., s.q_here], v[..., s.v_here])) for s in layout.slots)
    return _filled(parts, (*v.shape[:-1], layout.nv_there))


def _to(layout: _Layout, function: str, q: Any, v: Any) -> Any:
    q = _array(q, layout.nq_here, function, "q")
    parts = ((s.q_there, s.rule.q_to(q[..., s.q_here])) for s in layout.slots)
    q_there = _filled(parts, (*q.shape[:-1], layout.nq_there))
    if v is None:
        return q_there
    q, v = _batched(function, q=q, v=_array(v, layout.nv_here, function, "v"))
    return q_there, _v_to(layout, q, v)


def _from(layout: _Layout, function: str, q: Any, v: Any) -> Any:
    q_here = _q_from(layout, _array(q, layout.nq_there, function, "q"))
    if v is None:
        return q_here
    q, v = _batched(function, q=q_here, v=_array(v, layout.nv_there, function, "v"))
    return q_here, _v_from(layout, q, v)


def _accelerations(layout: _Layout, function: str, q: Any, v: Any, a: Any, *, there: bool) -> Array:
    """a' = T a + (dT/dt) v, or its inverse."""
    nq, nv = (layout.nq_here, layout.nv_here) if there else (layout.nq_there, layout.nv_there)
    q = _array(q, nq, function, "q")
    q, v, a = _batched(function, q=q, v=_array(v, nv, function, "v"), a=_array(a, nv, function, "a"))
    if there:
        return _v_to(layout, q, a) + _rate(layout, q, v)
    q = _q_from(layout, q)
    return _v_from(layout, q, a - _rate(layout, q, _v_from(layout, q, v)))
