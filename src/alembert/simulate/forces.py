"""Force elements between frames: springs and dampers, bushings, drag, stops of joints, and the user's own.

Numbers may be formulas of the model's parameters. All of them are symbolic, so that they are part of the compiled
loop, of the Jacobians of implicit schemes, and of the discrete Lagrangian of the variational one.

Gravity fields besides the uniform one, body by body.

Of a centre with gravitational parameter mu, at r from a body's centre of mass, u = r/|r|, J the body's inertia about
its centre of mass (MacCullagh's formula):

    U = -mu m / |r| - mu (tr J - 3 u^T J u) / (2 |r|^3)                                   (1)

The second term makes the gravity-gradient torque 3 mu / |r|^3 u x J u. In axes that fall with a circular orbit of
angular rate n but do not turn, u(t) pointing away from the centre, what is left of the field is, to first order,

    g(x) = -n^2 (x - 3 u u^T x),    U = (n^2/2) integral (x^T x - 3 (u^T x)^2) dm         (2)

Of a flexible body, centre of mass and inertia are those of its deformed shape, and -dU/dq acts on its modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from alembert.arguments import check_known, names, real
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Scalar, scalar, scalars
from alembert.model import WORLD, Model
from alembert.simulate.elements import ElementForces, ForceLaw, Places, read_direction, read_numbers
from alembert.spatial import Pose, RigidInertia, so3
from alembert.sweeps.modal import Integrals, locked
from alembert.sweeps.node import Record

EARTH = 3.986004418e14
"""gravitational parameter [m^3/s^2], WGS 84"""


@runtime_checkable
class GravityField(ForceLaw, Protocol):
    """A gravity that depends on the place: a force law that also says how points at x (..., 3) fall."""

    def acceleration(self, t: float, x: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class CentralGravity:
    """Inverse-square attraction to a point of the world, (1); `gradient` adds the torque of the field's gradient.

    With a height of h above the centre, positions are rounded to 1e-16 h: near the Earth that is 1e-9 m.
    """

    parameter: Scalar = EARTH
    center: tuple[float, ...] = (0.0, 0.0, 0.0)
    gradient: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter", scalar(self.parameter, "gravitational parameter"))
        object.__setattr__(self, "center", scalars(self.center, 3, "center of gravity"))
        read_numbers(self, "positive", "parameter")

    def check(self, model: Model) -> None:
        pass

    def internal(self, model: Model) -> bool:
        return False

    def acceleration(self, t: float, x: np.ndarray) -> np.ndarray:
        """Of a point at x (..., 3)."""
        r = x - np.array(self.center, dtype=float)
        distance = np.linalg.norm(r, axis=-1, keepdims=True)
        return -float(self.parameter) * r / distance**3  # type: ignore[arg-type]

    def terms(self, at: Places) -> ElementForces:
        mu = at.value(self.parameter)
        center = ca.vertcat(*(at.value(x) for x in self.center))

        def U(X: Pose, m: ca.SX, c: ca.SX, J: ca.SX) -> ca.SX:
            r = X.translation + X.rotation @ c - center
            d2 = ca.dot(r, r)
            d = ca.sqrt(d2)
            energy = -mu * m / d
            if self.gradient:
                r_B = X.rotation.T @ r
                energy = energy - mu * (ca.trace(J) - 3 * ca.dot(r_B, J @ r_B) / d2) / (2 * d2 * d)
            return energy

        return field_terms(at, lambda _: U)


@dataclass(frozen=True)
class GravityGradient:
    """Free fall along a circular orbit, (2): the world's axes keep their directions, its origin moves along the orbit.

    `rate` is the orbit's angular rate [rad/s], `radial` the direction away from the centre at t = 0 and `normal` that
    of the orbit's angular momentum.
    """

    rate: float
    radial: tuple[float, ...] = (1.0, 0.0, 0.0)
    normal: tuple[float, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        real("GravityGradient", "rate", self.rate, "a positive rate in rad/s", over=0.0)
        u, n = (np.array(scalars(getattr(self, k), 3, k), dtype=float) for k in ("radial", "normal"))
        lengths = np.linalg.norm(u), np.linalg.norm(n)
        if not all(lengths) or abs(u @ n) > 1e-9 * lengths[0] * lengths[1]:
            raise ArgumentError(
                f"GravityGradient: radial {self.radial!r} and normal {self.normal!r}, expected orthogonal directions"
            )
        object.__setattr__(self, "radial", tuple(u / lengths[0]))
        object.__setattr__(self, "normal", tuple(n / lengths[1]))

    def check(self, model: Model) -> None:
        pass

    def internal(self, model: Model) -> bool:
        return False

    def direction(self, t: Any) -> Any:
        """u(t)"""
        along = np.cross(self.normal, self.radial)
        if isinstance(t, ca.SX):
            return ca.cos(self.rate * t) * ca.DM(self.radial) + ca.sin(self.rate * t) * ca.DM(along)
        return np.cos(self.rate * t) * np.array(self.radial) + np.sin(self.rate * t) * along

    def acceleration(self, t: float, x: np.ndarray) -> np.ndarray:
        u = self.direction(t)
        return -(self.rate**2) * (x - 3 * (x @ u)[..., None] * u)

    def terms(self, at: Places) -> ElementForces:
        u = self.direction(at.t)

        def U(X: Pose, m: ca.SX, c: ca.SX, J: ca.SX) -> ca.SX:
            r = X.translation + X.rotation @ c
            second = ca.trace(J) / 2 * ca.SX.eye(3) - J  # integral of x x^T about the centre of mass
            u_B = X.rotation.T @ u
            about = ca.trace(second) - 3 * ca.dot(u_B, second @ u_B)
            return self.rate**2 / 2 * (m * (ca.dot(r, r) - 3 * ca.dot(u, r) ** 2) + about)

        return field_terms(at, lambda _: U)


def field_terms(at: Places, of: Callable[[int], Any]) -> ElementForces:
    """The sum over the moving bodies k of U = of(k), a function of pose, mass, centre of mass and inertia about it."""
    total: ca.SX = ca.SX(0)
    wrenches, modal = [], ca.SX.zeros(at.model.nv)
    for k, record in enumerate(at.records):
        if record.node.structure.stiffening:
            energy, F, modal[at.speeds(k)] = _deformed_terms(at, of(k), record)
        else:
            if ca.SX(record.node.inertia.mass).is_zero():
                continue
            energy, F = _rigid_terms(at, of(k), record, record.node.inertia)
        total = total + energy
        wrenches.append((k, None, F))
    return ElementForces(total, at.node_efforts(wrenches) + modal)


def _rigid_terms(at: Places, U: Any, record: Record, inertia: RigidInertia) -> tuple[ca.SX, ca.SX]:
    """The energy of a body, and the wrench on it."""
    m = ca.SX(inertia.mass)
    c = inertia.moment / m
    skew = ca.skew(c)
    J = inertia.inertia + m * (skew @ skew)
    energy, (F,) = at.gradient_wrenches(lambda X: U(X, m, c, J), [record.X_W])
    return energy, F


def _deformed_terms(at: Places, U: Any, record: Record) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The same of a body with modes, and the efforts on them; of a ruthless body at its undeformed shape."""
    q = ca.SX.sym("q", record.node.nv)
    shaped = Integrals(
        record.node.parts, record.node.nv, "consistent"
    )  # as far as the body has such integrals
    mass = shaped.matrix(q, shaped.first_products(q), shaped.first_moments(q))
    energy, F = _rigid_terms(at, U, record, locked(mass))
    slope, shape = ca.gradient(energy, q), record.q
    if record.node.structure.stiffening == "ruthless":
        energy, shape = energy + ca.dot(slope, record.q), ca.SX(q.numel(), 1)
    found = ca.substitute([energy, F, -slope], [q], [ca.densify(shape)])
    return found[0], found[1], found[2]


TINY = 1e-24
"""added to squares under a root, so that its slope at zero is zero [SI]"""


def _between_frames(model: Model, frames: Sequence[str], who: str) -> None:
    for frame in frames:
        model.frame(frame)
    if len(set(frames)) != len(frames):
        raise ArgumentError(f"{who}: between {frames[0]!r} and itself, expected two frames")


def _is_internal(model: Model, frames: Sequence[str]) -> bool:
    """Whether all frames move; what acts between them then has no resultant on the model."""
    carriers = model.compute.tree.carriers
    bodies = [model.frame(frame).body for frame in frames]
    return all(body != WORLD and carriers[model.body_index(body)][0] >= 0 for body in bodies)


@dataclass(frozen=True)
class SpringDamper:
    """Between the origins of two frames, along the line through them.

    With d their distance, U = k (d - length)^2 / 2, and the damper takes c d' out of it. With `tension_only`, as of a
    cable, nothing acts while d < length.
    """

    frame_a: str
    frame_b: str
    stiffness: Scalar = 0.0
    damping: Scalar = 0.0
    length: Scalar = 0.0
    tension_only: bool = False

    def __post_init__(self) -> None:
        read_numbers(self, "zero or more", "stiffness", "damping", "length")

    def check(self, model: Model) -> None:
        _between_frames(model, (self.frame_a, self.frame_b), "SpringDamper")

    def internal(self, model: Model) -> bool:
        return _is_internal(model, (self.frame_a, self.frame_b))

    def terms(self, at: Places) -> ElementForces:
        k, c, length = (at.value(x) for x in (self.stiffness, self.damping, self.length))
        frames = (self.frame_a, self.frame_b)

        def stretch(a: Pose, b: Pose) -> ca.SX:
            r = b.translation - a.translation
            x = ca.sqrt(ca.dot(r, r) + TINY) - length
            return ca.fmax(x, 0) if self.tension_only else x

        def U(a: Pose, b: Pose) -> ca.SX:
            r = b.translation - a.translation
            if self.length == 0.0:
                return k * ca.dot(r, r) / 2
            return k * stretch(a, b) ** 2 / 2

        poses = [at.pose(frame) for frame in frames]
        potential, wrenches = at.gradient_wrenches(U, poses)
        r = poses[1].translation - poses[0].translation
        u = r / ca.sqrt(ca.dot(r, r) + TINY)
        rate = ca.dot(u, at.velocity(self.frame_b)[3:6] - at.velocity(self.frame_a)[3:6])
        force = -c * rate * u
        if self.tension_only:
            force = ca.if_else(stretch(*poses) > 0, force, ca.SX.zeros(3))
        F = ca.vertcat(ca.SX.zeros(3), force)
        damping = at.efforts([(self.frame_a, -F), (self.frame_b, F)])
        return ElementForces(potential, at.efforts(list(zip(frames, wrenches, strict=True))), damping)


@dataclass(frozen=True)
class Bushing:
    """A soft joint: springs and dampers against any motion of frame b relative to frame a, about and along a's axes.

    With R the rotation of b relative to a, r its rotation vector and p its origin, in a's axes,
    U = (r^T K_r r + p^T K_p p) / 2; dampers act on the relative angular velocity and on p'. `stiffness` and
    `damping` have six entries, three about the axes and three along them.
    """

    frame_a: str
    frame_b: str
    stiffness: tuple[Scalar, ...]
    damping: tuple[Scalar, ...] = (0.0,) * 6

    def __post_init__(self) -> None:
        read_numbers(self, "zero or more", "stiffness", "damping", width=6)

    def check(self, model: Model) -> None:
        _between_frames(model, (self.frame_a, self.frame_b), "Bushing")

    def internal(self, model: Model) -> bool:
        return _is_internal(model, (self.frame_a, self.frame_b))

    def terms(self, at: Places) -> ElementForces:
        K = ca.vertcat(*(at.value(x) for x in self.stiffness))
        C = ca.vertcat(*(at.value(x) for x in self.damping))
        frames = (self.frame_a, self.frame_b)

        def U(a: Pose, b: Pose) -> ca.SX:
            r = so3.log(a.rotation.T @ b.rotation)
            p = a.rotation.T @ (b.translation - a.translation)
            x = ca.vertcat(r, p)
            return ca.dot(x, K * x) / 2

        a, b = (at.pose(frame) for frame in frames)
        potential, wrenches = at.gradient_wrenches(U, [a, b])
        V_a, V_b = (at.velocity(frame) for frame in frames)
        r = b.translation - a.translation
        relative = ca.vertcat(V_b[0:3] - V_a[0:3], V_b[3:6] - V_a[3:6] - ca.cross(V_a[0:3], r))
        turned = ca.vertcat(a.rotation.T @ relative[0:3], a.rotation.T @ relative[3:6])
        given = -C * turned
        n, f = a.rotation @ given[0:3], a.rotation @ given[3:6]
        F_b, F_a = ca.vertcat(n, f), ca.vertcat(-n - ca.cross(r, f), -f)
        damping = at.efforts([(self.frame_a, F_a), (self.frame_b, F_b)])
        return ElementForces(potential, at.efforts(list(zip(frames, wrenches, strict=True))), damping)


@dataclass(frozen=True)
class Drag:
    """Of air at the origin of a frame: f = -(1/2) density coefficient area |u| u, u the velocity through the air.

    With a `normal` (in the frame's axes) it is a plate, whose area counts as far as the air sees it: |normal . u| takes
    the place of |u|. `density` is a number [kg/m^3] or a function of the position (world axes, `SX`); `wind` is the
    velocity of the air.
    """

    frame: str
    coefficient: Scalar
    area: Scalar
    density: Any = 1.225
    wind: tuple[Scalar, ...] = (0.0, 0.0, 0.0)
    normal: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        read_numbers(self, "zero or more", "coefficient", "area")
        if not callable(self.density):
            read_numbers(self, "zero or more", "density")
        object.__setattr__(self, "wind", scalars(self.wind, 3, "wind"))
        if self.normal is not None:
            read_direction(self, "normal")

    def check(self, model: Model) -> None:
        model.frame(self.frame)

    def internal(self, model: Model) -> bool:
        return False

    def terms(self, at: Places) -> ElementForces:
        X = at.pose(self.frame)
        u = at.velocity(self.frame)[3:6] - ca.vertcat(*(at.value(x) for x in self.wind))
        speed = ca.sqrt(ca.dot(u, u) + TINY)
        if self.normal is not None:
            speed = ca.fabs(ca.dot(X.rotation @ ca.DM(self.normal), u))
        density = ca.SX(self.density(X.translation)) if callable(self.density) else at.value(self.density)
        factor = density * at.value(self.coefficient) * at.value(self.area) / 2
        return ElementForces(
            efforts=at.efforts([(self.frame, ca.vertcat(ca.SX.zeros(3), -factor * speed * u))])
        )


@dataclass(frozen=True)
class SoftStop:
    """Springs and dampers where coordinates pass the model's limits, of the joints named (by default of all with limits).

    Beyond a limit by x, U = k x^2 / 2; the damper, c per speed, fades in with x / (x + reach).
    """

    stiffness: Scalar
    damping: Scalar = 0.0
    joints: tuple[str, ...] | None = None
    reach: float = 1e-3

    def __post_init__(self) -> None:
        read_numbers(self, "positive", "stiffness", "reach")
        read_numbers(self, "zero or more", "damping")
        if self.joints is not None:
            joints = (self.joints,) if isinstance(self.joints, str) else self.joints
            object.__setattr__(self, "joints", names("SoftStop", "joints", joints))

    def check(self, model: Model) -> None:
        limited_coordinates(model, self.joints, "SoftStop")

    def internal(self, model: Model) -> bool:
        names = {
            model.coordinate_names[k] for k, _, _, _ in limited_coordinates(model, self.joints, "SoftStop")
        }
        roots = [joint for joint in model.joints if joint.parent == WORLD]
        labels = {model.coordinate_names[k] for j in roots for k in range(*_span(model.q_slice(j.name)))}
        return not names & labels

    def terms(self, at: Places) -> ElementForces:
        model = at.model
        k, c = at.value(self.stiffness), at.value(self.damping)
        U, kept, other = ca.SX(0), ca.SX.zeros(model.nv), ca.SX.zeros(model.nv)
        for iq, iv, lower, upper in limited_coordinates(model, self.joints, "SoftStop"):
            for limit, sign in ((upper, 1.0), (lower, -1.0)):
                if np.isfinite(limit):
                    x = ca.fmax(sign * (at.q[iq] - limit), 0)
                    U = U + k * x**2 / 2
                    kept[iv] = kept[iv] - sign * k * x
                    other[iv] = other[iv] - c * x / (x + self.reach) * at.v[iv]
        return ElementForces(U, kept, other)


def _span(s: slice) -> tuple[int, int]:
    return s.start, s.stop


def limited_coordinates(
    model: Model, joints: Sequence[str] | None, who: str
) -> list[tuple[int, int, float, float]]:
    """(coordinate, speed, lower, upper) of all limits of the joints named, or of all joints."""
    for name in joints or ():
        check_known(f"{who}: no joint", name, model.joint_indices)
    found = []
    for joint in model.space:
        if joints is not None and joint.name not in joints:
            continue
        limits = [
            (
                joint.q.start + k,
                joint.v.start + k,
                model.lower_limits[joint.q.start + k],
                model.upper_limits[joint.q.start + k],
            )
            for k in range(joint.type.nq)
        ]
        limits = [x for x in limits if np.isfinite(x[2]) or np.isfinite(x[3])]
        if limits and not joint.type.is_vector_space:
            raise UnsupportedError(
                f"{who}: limits of joint {joint.name!r} and joint type {joint.type.kind!r}: only joints whose "
                "coordinates simply add can be stopped"
            )
        if joints is not None and not limits:
            raise ArgumentError(f"{who}: joint {joint.name!r} has no position limits in the model")
        found += limits
    if not found:
        raise ArgumentError(f"{who}: no joint of the model {model.name!r} has position limits")
    return found


@dataclass(frozen=True)
class ForceElement:
    """The user's own, on `SX`.

    `potential(t, *poses)` gives an energy; `wrenches(t, poses, velocities)` gives for each frame moment and force on it
    (6), in world axes about the frame's origin. Poses have `rotation` (3 x 3, X_WC) and `translation`; velocities are
    angular velocity and velocity of the origin, in world axes. `balanced` says that the wrenches have no resultant.

    With `reactions`, names of loops, couplings or equations, the wrenches depend on their reactions:
    `wrenches(t, poses, velocities, reactions)` gets them by name, as `constrained_dynamics` gives them (of a loop the wrench
    on its frame b, in b's axes). Both are found together at every evaluation of the dynamics.
    """

    frames: tuple[str, ...]
    potential: Callable[..., Any] | None = None
    wrenches: Callable[..., Any] | None = None
    balanced: bool = False
    name: str = field(default="force")
    reactions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what in ("frames", "reactions"):
            given = getattr(self, what)
            object.__setattr__(self, what, (given,) if isinstance(given, str) else tuple(given))
        if self.potential is None and self.wrenches is None:
            raise ArgumentError(f"ForceElement {self.name!r}: expected a potential, wrenches, or both")
        if self.reactions and self.potential is not None:
            raise ArgumentError(
                f"ForceElement {self.name!r}: a potential and reactions, expected two elements: only wrenches may depend on "
                "reactions"
            )
        for what in ("potential", "wrenches"):
            if getattr(self, what) is not None and not callable(getattr(self, what)):
                raise ArgumentError(
                    f"ForceElement {self.name!r}: {what} is {getattr(self, what)!r}, expected a function"
                )

    def check(self, model: Model) -> None:
        for frame in self.frames:
            model.frame(frame)

    def internal(self, model: Model) -> bool:
        return self.balanced and _is_internal(model, self.frames)

    def terms(self, at: Places) -> ElementForces:
        poses = [at.pose(frame) for frame in self.frames]
        energy = kept = other = None
        if self.potential is not None:
            potential = self.potential
            energy, found = at.gradient_wrenches(lambda *X: self._scalar(potential(at.t, *X)), poses)
            kept = at.efforts(list(zip(self.frames, found, strict=True)))
        if self.wrenches is not None:
            read = [{name: at.reactions[name] for name in self.reactions}] if self.reactions else []
            try:
                given = self.wrenches(at.t, poses, [at.velocity(frame) for frame in self.frames], *read)
            except RuntimeError as error:  # CasADi's, of expressions that are asked whether they are true
                raise ArgumentError(
                    f"ForceElement {self.name!r}: wrenches: {str(error).strip().splitlines()[-1]}. They get CasADi "
                    "expressions; for a choice write casadi.if_else(condition, then, otherwise), not `if`"
                ) from None
            if len(self.frames) == 1 and not isinstance(given, list | tuple):
                given = [given]
            if len(given) != len(self.frames) or any(ca.SX(F).numel() != 6 for F in given):
                raise ArgumentError(
                    f"ForceElement {self.name!r}: wrenches returned {given!r}, expected {len(self.frames)} vectors of "
                    "moment and force (6)"
                )
            other = at.efforts([(f, ca.vec(ca.SX(F))) for f, F in zip(self.frames, given, strict=True)])
        return ElementForces(energy, kept, other)

    def _scalar(self, U: Any) -> ca.SX:
        if ca.SX(U).numel() != 1:
            raise ArgumentError(f"ForceElement {self.name!r}: potential returned {U!r}, expected one number")
        return ca.SX(U)
