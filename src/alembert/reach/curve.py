"""Reference curves: the shape of an arm with many joints, as a curve with few control vertices (Naccarato and Hughes 1989).

    r(s) = sum_i w_i(s) p_i,    sum_i w_i = 1,    0 <= s <= 1                                                   (1)

with the weights of Bezier curves or B-splines, whose ends are the first and the last vertex. The vertices p are the
coordinates of the curve: a model of points that move freely. Inverse kinematics of the curve,

    J_s(1, p) p. = x.,    p. = J_s^+ x. + (1 - J_s^+ J_s) p._s                                                  (2)

is `reach` of that model: where the curve ends and in which direction come first, then its length and what it keeps clear of,
and with what is left it is as even as can be.

Arms in sections, each of which follows a part of a reference curve (Naccarato and Hughes 1989, section 4.5).

The arm is cut at frames along it; a section is a model of its own with its loops, and is solved alone: the end of section k
is put onto the curve at s_k, seen from where section k - 1 has come to be. The effort grows with the number of sections, not
with its cube.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy

from alembert.arguments import choice, names, numbers, real, whole
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.joints import Translational
from alembert.model import WORLD, Box, Capsule, Inertia, ModelBuilder, Sphere, Visual
from alembert.model.editing import between
from alembert.reach import tasks
from alembert.reach.solver import ReachSolver, solver
from alembert.reach.tasks import ReachTask, custom
from alembert.spatial import Pose
from alembert.spatial.arrays import skew

if TYPE_CHECKING:
    from alembert.model import Model


Array = np.ndarray

FINE = 400
"""intervals or a few more in which lengths along a curve are measured, each by three points of Gauss"""
COARSE = 24
"""those in which a bound on the length measures it: of curves without cusps to 1e-9"""
RUNS = 8
"""parts of a curve, each with its least distance from an obstacle as a row"""
SLACK = 1e-6
"""[m] by which lengths and clearances may be missed: they come second, and converge linearly"""


@dataclass(frozen=True, eq=False)
class ReferenceCurve:
    """A curve by its control `vertices` (..., n, 3): of Bezier, or a B-spline of a lower `degree`.

    Leading dimensions are curves at several times.
    """

    vertices: Array
    degree: int | None = None

    def __post_init__(self) -> None:
        p = numbers("reference curve", "vertices", self.vertices, 3)
        if p.ndim < 2 or p.shape[-2] < 3:
            raise ArgumentError(
                f"reference curve: vertices have shape {p.shape}, expected (..., n, 3) with n at least 3"
            )
        degree = p.shape[-2] - 1 if self.degree is None else self.degree
        most = p.shape[-2] - 1
        expected = f"2 to {most}, one less than there are vertices"
        whole("reference curve", "degree", degree, expected, least=2, most=most)
        object.__setattr__(self, "vertices", p)
        object.__setattr__(self, "degree", degree)

    @classmethod
    def straight(
        cls, end: Any, *, start: Any = (0.0, 0.0, 0.0), vertices: int = 6, degree: int | None = None
    ) -> ReferenceCurve:
        """A line from `start` to `end`, with vertices evenly along it."""
        whole("reference curve", "vertices", vertices, "3 or more", least=3)
        a, b = (
            numbers("reference curve", name, x, 3, batch=False)
            for name, x in (("start", start), ("end", end))
        )
        return cls(a + np.linspace(0.0, 1.0, vertices)[:, None] * (b - a), degree)

    def __repr__(self) -> str:
        count = self.vertices.shape[-2]
        many = "" if self.vertices.ndim == 2 else f"{self.vertices.shape[:-2]} curves of "
        return f"<ReferenceCurve: {many}{count} vertices, degree {self.degree}>"

    @cached_property
    def _basis(self) -> scipy.interpolate.BSpline:
        n, k = self.vertices.shape[-2], int(self.degree or 0)
        knots = np.concatenate([np.zeros(k), np.linspace(0.0, 1.0, n - k + 1), np.ones(k)])
        return scipy.interpolate.BSpline(knots, np.eye(n), k)

    def weights(self, s: Any, derivative: int = 0) -> Array:
        """w_i(s) (..., n), or their derivatives."""
        return np.asarray(self._basis(_share("s", s), nu=derivative))

    def point(self, s: Any) -> Array:
        """r(s): (..., S, 3) of places s (S,), (..., 3) of one."""
        return _combined(self.weights(s), self.vertices)

    def tangent(self, s: Any) -> Array:
        """Unit vectors along the curve, (..., S, 3) or (..., 3)."""
        d = _combined(self.weights(s, 1), self.vertices)
        size = np.linalg.norm(d, axis=-1, keepdims=True)
        if not np.all(size > 1e-12 * np.abs(np.diff(self.vertices, axis=-2)).max(initial=1e-300)):
            raise NumericalError(
                "reference curve: it has no direction where vertices coincide or it turns back on the spot; move them apart"
            )
        return np.asarray(d / size)

    def _gauss(self, intervals: int) -> tuple[Array, Array, Array]:
        """Ends of `intervals` or a few more, equally many between two knots, and points and weights of Gauss in them, in
        three columns: between knots a curve is smooth.
        """
        spans = self.vertices.shape[-2] - int(self.degree or 0)
        ends = np.linspace(0.0, 1.0, spans * -(-intervals // spans) + 1)
        x, w = np.polynomial.legendre.leggauss(3)
        half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
        return ends, middle + half * x, half * w

    @cached_property
    def _measured(self) -> tuple[Array, Array]:
        """Places s from 0 to 1 (n,), and the length up to them (..., n)."""
        ends, s, w = self._gauss(FINE)
        speeds = np.linalg.norm(_combined(self.weights(s.ravel(), 1), self.vertices), axis=-1)
        steps = np.sum(speeds.reshape(*speeds.shape[:-1], *s.shape) * w, axis=-1)
        return ends, np.concatenate([np.zeros((*steps.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1)

    @property
    def length(self) -> Array | float:
        """[m]"""
        return self._measured[1][..., -1]

    def at_fractions(self, fractions: Any) -> Array:
        """The s (..., S) of points that have these fractions (S,) of the length before them."""
        x = np.atleast_1d(_share("fractions", fractions))
        ends, lengths = self._measured
        s = np.array([np.interp(x * row[-1], row, ends) for row in lengths.reshape(-1, len(ends))])
        return s.reshape(*self.vertices.shape[:-2], len(x))

    def nearest(self, point: Any) -> tuple[float, float]:
        """The place s that is nearest to a point, and its distance [m]; of one curve."""
        self._single("nearest")
        p = numbers("reference curve", "point", point, 3, batch=False)
        if not np.isfinite(p).all():
            raise ArgumentError(f"reference curve: point is {point!r}, expected finite numbers")
        s = np.linspace(0.0, 1.0, FINE + 1)
        k = int(np.argmin(np.sum((self.point(s) - p) ** 2, axis=-1)))
        low, high = s[max(k - 1, 0)], s[min(k + 1, FINE)]
        for _ in range(60):  # the square of the distance has one minimum there
            a, b = low + (high - low) / 3, high - (high - low) / 3
            nearer = np.sum((self.point(a) - p) ** 2) < np.sum((self.point(b) - p) ** 2)
            low, high = (low, b) if nearer else (a, high)
        best = (low + high) / 2
        return float(best), float(np.linalg.norm(self.point(best) - p))

    def clearance(self, obstacle: Visual, samples: int = 200) -> Array | float:
        """The least distance [m] of the curve (...) from a shape that stands in the world; negative inside it.

        It is sought at `samples` places, and then next to the nearest of them.
        """
        whole("reference curve", "samples", samples, "2 or more", least=2)
        x = ca.SX.sym("x", 3)
        f = ca.Function("f", [x], [_distance(obstacle)(x)])

        def least(vertices: Array) -> float:
            curve, low, high, found = ReferenceCurve(vertices, self.degree), 0.0, 1.0, np.inf
            for _ in range(4):  # each time `samples` / 2 finer
                s = np.linspace(low, high, samples)
                distances = np.asarray(f(curve.point(s).T)).ravel()
                k = int(np.argmin(distances))
                low, high, found = s[max(k - 1, 0)], s[min(k + 1, samples - 1)], min(found, distances[k])
            return found

        found = [least(p) for p in self.vertices.reshape(-1, *self.vertices.shape[-2:])]
        return found[0] if self.vertices.ndim == 2 else np.reshape(found, self.vertices.shape[:-2])

    def poses(self, s: Any, *, base: Any = None, twist: float = 0.0) -> Pose:
        """Frames with z along the curve at places s (S,): rotations (S, 3, 3) and positions (S, 3); of one curve.

        They turn no more than the curve does, from `base` (3, 3) at its start (by default the shortest turn of the world's
        axes), but for `twist` [rad] about z that grows evenly with s: the torsion that a curve leaves open.
        """
        self._single("poses")
        s = np.atleast_1d(np.asarray(s, dtype=float))
        places = np.unique(np.concatenate([np.linspace(0.0, 1.0, FINE + 1), s]))
        t, p = self.tangent(places), self.point(places)
        first = np.eye(3) if base is None else numbers("reference curve", "base", base)
        if first.shape != (3, 3):
            raise ArgumentError(f"reference curve: base has shape {first.shape}, expected a rotation (3, 3)")
        R = [_turn(first[:, 2], t[0]) @ first]
        for a, b in itertools.pairwise(t):
            R.append(_turn(a, b) @ R[-1])
        k = np.searchsorted(places, s)
        c, w = np.cos(twist * s), np.sin(twist * s)
        o, one = np.zeros_like(s), np.ones_like(s)
        about = np.stack([c, -w, o, w, c, o, o, o, one], axis=-1).reshape(-1, 3, 3)
        return Pose(np.array(R)[k] @ about, p[k])

    def _single(self, function: str) -> None:
        if self.vertices.ndim != 2:
            raise ArgumentError(
                f"reference curve: {function} is of one curve; take them one by one: ReferenceCurve(curves.vertices[k], "
                "curves.degree)"
            )

    # --- inverse kinematics of the curve ----------------------------------------------------------------------------

    def reach(
        self,
        end: Any,
        *,
        direction: Any = None,
        hold: int = 2,
        length: tuple[float, float] | None = None,
        avoid: Iterable[Visual] = (),
        clearance: float = 0.0,
        samples: int = 30,
        tolerance: float = 1e-9,
    ) -> ReferenceCurve:
        """The curve moved so that it ends at `end` (3,), there along `direction` (3,), if one is given; (2).

        A path of ends (N, 3), one after the other, gives N curves. The first `hold` vertices stay: 2 keep the place and
        the direction at the base. The `length` [m] stays within a pair of bounds, and `samples` points of the curve keep
        at least `clearance` [m] away from the shapes in `avoid` (`Visual` with a `Sphere`, `Box` or `Capsule`). What is
        out of reach is an error that names it, and the place on the path.
        """
        self._single("reach")
        name = "reference curve"
        targets = numbers(name, "end", end, 3)
        directions = None if direction is None else numbers(name, "direction", direction, 3)
        if targets.ndim > 2 or (directions is not None and directions.shape not in ((3,), targets.shape)):
            raise ArgumentError(f"{name}: end and direction are (3,) or a path (N, 3), got {targets.shape}")
        if directions is not None and not np.all(np.linalg.norm(directions, axis=-1) > 0):
            raise ArgumentError(f"{name}: direction has no length")
        count = self.vertices.shape[0]
        whole(name, "hold", hold, f"0 to {count - 2} vertices", least=0, most=count - 2)
        tasks = [
            custom(lambda q: _ended(self.weights(1.0), q), np.zeros(3), name="end of the curve", unit="m")
        ]
        if directions is not None:
            slope = self.weights(1.0, 1)
            tasks.append(
                custom(
                    lambda q: _unit(_ended(slope, q)), np.zeros(3), name="direction at its end", unit="rad"
                )
            )
        tasks += self._side_conditions(length, tuple(avoid), clearance, samples)
        tasks.append(custom(_bends, np.zeros(3 * (count - 2)), name="evenness", preference=True, priority=3))
        return self._solved(tasks, targets, directions, hold, tolerance)

    def _side_conditions(
        self, length: Any, avoid: tuple[Visual, ...], clearance: float, samples: int
    ) -> list[ReachTask]:
        whole("reference curve", "samples", samples, "2 or more", least=2)
        real("reference curve", "clearance", clearance, "metres of zero or more", least=0.0)
        W = self.weights(np.linspace(0.0, 1.0, samples))
        runs = np.array_split(np.arange(samples), min(samples, RUNS))
        found = []
        if length is not None:
            low, high = (float(x) for x in numbers("reference curve", "length", length, 2, batch=False))
            if not 0 <= low <= high:
                raise ArgumentError(f"reference curve: length is {length!r}, expected a pair of bounds")

            _, places, gauss = self._gauss(COARSE)
            slopes = self.weights(places.ravel(), 1)

            def too_long(q: ca.SX) -> ca.SX:
                d = _points(slopes, q)
                total = ca.dot(ca.DM(gauss.ravel()), ca.sqrt(ca.sum2(d * d) + 1e-30))
                return ca.fmax(0, total - high) - ca.fmax(0, low - total)

            found.append(custom(too_long, name="length", unit="m", priority=2))
        for k, obstacle in enumerate(avoid):
            distance = _distance(obstacle)

            def too_near(q: ca.SX, distance: Callable[[ca.SX], ca.SX] = distance) -> ca.SX:
                x = _points(W, q)
                near = [ca.mmin(ca.vertcat(*(distance(x[i, :].T) for i in run))) for run in runs]
                return ca.fmax(0, clearance - ca.vertcat(*near))

            name = f"clearance of obstacle {k + 1} ({type(obstacle.shape).__name__})"
            found.append(custom(too_near, np.zeros(len(runs)), name=name, unit="m", priority=2))
        return found

    def _solved(
        self, tasks: list[ReachTask], ends: Array, directions: Array | None, hold: int, tolerance: float
    ) -> ReferenceCurve:
        count = self.vertices.shape[0]
        builder = ModelBuilder("curve")
        for k in range(count):
            builder.body(f"p{k}", Inertia.point(1.0), joint=Translational(), parent=WORLD)
        model = builder.build()
        solve = ReachSolver(model, tasks, tuple(range(3 * hold)))
        q, found = self.vertices.ravel(), []
        rest = [task.target for task in tasks[1 + (directions is not None) :]]
        path = ends.reshape(-1, 3)
        for k, at in enumerate(path):
            given = [at]
            if directions is not None:
                d = directions if directions.ndim == 1 else directions[k]
                given.append(d / np.linalg.norm(d))
            result = solve(
                *given, *rest, start=q, restarts=0, tolerance=tolerance, iterations=200, quiet=True
            )
            missed = [
                f"{what} by {e:.3g} {result.units[what]}"
                for what, e in result.out_of_reach.items()
                if e > SLACK or not result.reached
            ]
            if missed:
                place = "" if ends.ndim == 1 else f"place {k} of {len(path)}: "
                raise NumericalError(
                    f"reference curve: {place}out of reach: {', '.join(missed)}; more vertices, a longer way or smaller "
                    "steps may help"
                )
            q = result.q
            found.append(q.reshape(count, 3))
        return ReferenceCurve(found[0] if ends.ndim == 1 else np.array(found), self.degree)


def _share(name: str, value: Any) -> Array:
    x = numbers("reference curve", name, value)
    if not np.all((x >= 0) & (x <= 1)):
        raise ArgumentError(f"reference curve: {name} goes from {x.min():g} to {x.max():g}, expected 0 to 1")
    return x


def _combined(w: Array, p: Array) -> Array:
    return np.asarray(
        np.einsum("...n,nk->...k", w, p) if p.ndim == 2 else np.einsum("sn,...nk->...sk", np.atleast_2d(w), p)
    )


def _points(W: Array, q: ca.SX) -> ca.SX:
    """(samples, 3)"""
    return ca.SX(W) @ ca.reshape(q, 3, W.shape[1]).T


def _ended(w: Array, q: ca.SX) -> ca.SX:
    return ca.reshape(q, 3, len(w)) @ ca.SX(w)


def _unit(x: ca.SX) -> ca.SX:
    return x / ca.sqrt(ca.sumsqr(x) + 1e-30)


def _bends(q: ca.SX) -> ca.SX:
    """Second differences of the vertices."""
    p = ca.reshape(q, 3, q.numel() // 3)
    return ca.vec(p[:, 2:] - 2 * p[:, 1:-1] + p[:, :-2])


def _distance(obstacle: Visual) -> Callable[[ca.SX], ca.SX]:
    """The distance of a point from a shape, negative inside."""
    if not isinstance(obstacle, Visual):
        raise ArgumentError(
            f"reference curve: avoid has {obstacle!r}, expected shapes in the world, as in "
            "alembert.model.Visual(Sphere(0.5), Placement(...))"
        )
    shape, X = obstacle.shape, obstacle.placement.pose()
    if not isinstance(shape, Sphere | Capsule | Box):
        raise UnsupportedError(
            f"reference curve: avoid has a {type(shape).__name__}, whose distance is not known; put a Sphere, Box or "
            "Capsule around it"
        )

    def from_shape(x: ca.SX) -> ca.SX:
        d = ca.SX(X.rotation.T) @ (x - ca.SX(X.translation))
        if isinstance(shape, Sphere):
            return ca.sqrt(ca.sumsqr(d) + 1e-30) - shape.radius
        if isinstance(shape, Capsule):
            along = ca.fmin(ca.fmax(d[2], -shape.length / 2), shape.length / 2)
            return ca.sqrt(ca.sumsqr(d - ca.vertcat(0, 0, along)) + 1e-30) - shape.radius
        assert isinstance(shape, Box)
        e = ca.fabs(d) - ca.SX(np.array(shape.size, dtype=float) / 2)
        return ca.sqrt(ca.sumsqr(ca.fmax(e, 0)) + 1e-30) + ca.fmin(ca.mmax(e), 0)

    return from_shape


def _turn(a: Any, b: Any) -> Array:
    """The shortest rotation from one unit vector to another."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    c = float(a @ b)
    if c < -1 + 1e-12:
        raise NumericalError(
            "reference curve: its tangent turns back on the spot, or it starts against `base`"
        )
    w = np.cross(a, b)
    K = skew(w)
    return np.asarray(np.eye(3) + K + K @ K / (1 + c))


MATCHES = ("position", "direction", "pose")


@dataclass(frozen=True, eq=False)
class Tracked:
    """An arm along curves: `q` (..., nq), and how far each frame is from its place on the curve."""

    model: Model
    q: Array
    places: Array
    """(..., frames): s of each frame"""

    def distance(self, frame: str, other: str) -> Array:
        """Between the origins of two frames, (...) [m]: the length of a member."""
        a, b = (self.model.frame_pose(self.q, name).translation for name in (frame, other))
        return np.asarray(np.linalg.norm(a - b, axis=-1))

    def __repr__(self) -> str:
        return f"<Tracked: {self.model.name} along {int(np.prod(self.q.shape[:-1], dtype=int))} curves>"


def track_curve(
    model: Model,
    curve: ReferenceCurve,
    frames: Sequence[str],
    *,
    base: str = WORLD,
    match: str = "position",
    axis: Any = (0.0, 0.0, 1.0),
    fractions: Any = None,
    twist: float = 0.0,
    start: Any = None,
    limits: bool = True,
    tolerance: float = 1e-9,
) -> Tracked:
    """Configurations in which `frames`, from the base to the tip of an arm, are on a reference curve: inverse kinematics.

    Any arm will do that is cut into sections by these frames: what lies between two of them has its own joints and loops.
    The curve starts at the frame `base`. `match` says what of a frame is to agree with the curve: its "position" (3
    numbers), its position and the "direction" of its `axis` (5), or its whole "pose" (6), z along the curve and with
    `twist` [rad] about it from base to tip; a section needs as many degrees of freedom. Frames are at `fractions` of the
    curve's length, by default evenly. The search begins at `start`, by default the neutral configuration, and goes from
    curve to curve where there are several. A section that does not get there is an error that says by how much.
    """
    name = "track_curve"
    chosen = names(name, "frames", frames)
    match = choice(name, "match", match, MATCHES)
    if not chosen:
        raise ArgumentError(f"{name}: frames is empty, expected the ends of the sections")
    where = (
        np.linspace(0.0, 1.0, len(chosen) + 1)[1:]
        if fractions is None
        else numbers(name, "fractions", fractions)
    )
    if where.shape != (len(chosen),) or not (where[0] > 0 and where[-1] <= 1 and np.all(np.diff(where) > 0)):
        raise ArgumentError(
            f"{name}: fractions is {fractions!r}, expected {len(chosen)} growing numbers up to 1"
        )
    q0 = model.neutral() if start is None else numbers(name, "start", start, model.nq, batch=False)
    model.space.check(name, q0)
    bodies = [model.frame(frame).body for frame in (base, *chosen)]
    sections = [
        _Section(model, below, above, frame, match, axis)
        for below, above, frame in zip(bodies[:-1], bodies[1:], chosen, strict=True)
    ]
    single = curve.vertices.ndim == 2
    many = curve.vertices.reshape(-1, *curve.vertices.shape[-2:])
    q, places, found = q0, [], []
    for number, vertices in enumerate(many):
        one = ReferenceCurve(vertices, curve.degree)
        s = one.at_fractions(where)
        X_base = model.frame_pose(q, base)
        _check_start(one, X_base)
        targets = (
            one.poses(s, base=X_base.rotation, twist=twist)
            if match == "pose"
            else Pose(np.stack([np.eye(3)] * len(s)), one.point(s))
        )
        tangents = one.tangent(s)
        for k, section in enumerate(sections):
            target = Pose(targets.rotation[k], targets.translation[k])
            missed = section.solve(model, q, target, tangents[k], limits, tolerance)
            if isinstance(missed, str):
                place = "" if single else f"curve {number} of {len(many)}: "
                raise NumericalError(
                    f"{name}: {place}section {k + 1} of {len(sections)}, to {chosen[k]!r}: {missed}; another start or "
                    "other fractions may help"
                )
            q = missed
        places.append(s)
        found.append(q)
    shape = curve.vertices.shape[:-2]
    return Tracked(
        model, np.array(found).reshape(*shape, model.nq), np.array(places).reshape(*shape, len(chosen))
    )


def _check_start(curve: ReferenceCurve, X: Pose) -> None:
    gap = float(np.linalg.norm(curve.point(0.0) - X.translation))
    if gap > 1e-6 * max(float(curve.length), 1e-12):
        raise ArgumentError(f"track_curve: the curve starts {gap:.3g} m away from the base of the arm")


class _Section:
    """Of the arm, between two bodies."""

    def __init__(self, arm: Model, below: str, above: str, frame: str, match: str, axis: Any) -> None:
        self.below, self.frame, self.match = below, frame, match
        model = between(arm, below, above)
        self.places = np.concatenate(
            [np.arange(s.start, s.stop) for s in (arm.q_slice(joint.name) for joint in model.joints)]
        )
        self.model = model
        self.by: ReachSolver = solver(model, self._tasks(axis))

    def _tasks(self, axis: Any) -> list[tasks.ReachTask]:
        if self.match == "pose":
            return [tasks.pose(self.frame, np.eye(4))]
        found = [tasks.position(self.frame, np.zeros(3))]
        if self.match == "direction":
            found.append(tasks.point_at(self.frame, np.zeros(3), axis=axis))
        return found

    def solve(
        self, arm: Model, q: Array, target: Pose, tangent: Array, limits: bool, tolerance: float
    ) -> Array | str:
        """q with the section on its place, or what is missing."""
        from_world = arm.frame_pose(q, self.below).inverse()
        X = from_world @ target
        given: list[Any] = [X if self.match == "pose" else X.translation]
        if self.match == "direction":
            given.append(X.translation + from_world.rotation @ tangent)
        found = self.by(
            *given, start=q[self.places], limits=limits, tolerance=tolerance, restarts=0, quiet=True
        )
        if not found.reached:
            return found.message
        q = q.copy()
        q[self.places] = found.q
        return q
