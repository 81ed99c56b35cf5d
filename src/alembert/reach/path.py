"""Paths: configurations along a sequence of targets, and the fastest way to pass them within limits.

With s the length of the path in joint coordinates the motion q(s(t)) has speeds q' s. and accelerations q' s.. + q'' s.^2.
With x = s.^2 and u = s.. on an interval of length h, x_k+1 = x_k + 2 h u_k, and limits are linear in both:

    |q'_i| sqrt(x) <= v_i,       |q'_i u + q''_i x| <= a_i                                              (1)

(Bobrow, Dubowsky and Gibson 1985), the second at both ends of the interval. A sweep from the end finds the largest x at each
place from which the end can still be reached; one from the start takes, at each place, the largest x that the place after it
allows: the fastest motion (Pham and Pham 2018). Each step is a linear program of two unknowns, solved by its vertices.
Derivatives along the path are differences of three neighbours in tangent space, so that quaternions are as good as angles.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import numbers
from alembert.errors import ArgumentError, NumericalError
from alembert.reach.solver import ReachSolver, solver
from alembert.reach.tasks import read

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
SLACK = 1e-9
"""relative: what vertices of a linear program may be off"""
JUMP = 1.0
"""(m, rad) between neighbours of a path; more is another branch of solutions"""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion along a path: `time` (N,), `q` (N, nq), `v` and `a` (N, nv)."""

    time: Array
    q: Array
    v: Array
    a: Array

    @property
    def duration(self) -> float:
        return float(self.time[-1])

    def __repr__(self) -> str:
        return f"<Trajectory: {len(self.time)} configurations in {self.duration:.4g} s>"

    def at(self, model: Model, time: Any) -> tuple[Array, Array]:
        """q and v at other times: between configurations a cubic in the chart about the first, with the speeds of both."""
        t = np.clip(numbers("Trajectory.at", "time", time), 0.0, self.duration)
        k = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2)
        h, step = t - self.time[k], (self.time[k + 1] - self.time[k])
        z, step = (h / step)[..., None], step[..., None]
        w = model.difference(self.q[k], self.q[k + 1])
        e, x = ca.SX.sym("e", model.nv), ca.SX.sym("x", model.nv)
        in_chart = ca.Function("in_chart", [e, x], [model.space.chart_rate(e, x)])
        speed = ca.Function("speed", [e, x], [model.space.chart_jacobian(e) @ x])
        v0, v1 = self.v[k] * step, _each(in_chart, w, self.v[k + 1] * step)
        way = v0 * z * (1 - z) ** 2 + w * z**2 * (3 - 2 * z) - v1 * z**2 * (1 - z)
        rate = v0 * (1 - z) * (1 - 3 * z) + 6 * w * z * (1 - z) + v1 * z * (3 * z - 2)
        return model.integrate(self.q[k], way), _each(speed, way, rate / step)


def _each(f: ca.Function, e: Array, x: Array) -> Array:
    """f of the rows (..., n) of both."""
    return np.asarray(f(*(y.reshape(-1, y.shape[-1]).T for y in (e, x)))).T.reshape(e.shape)


def follow(
    model: Model,
    tasks: Any,
    *,
    start: Any = None,
    speeds: Any = None,
    accelerations: Any = None,
    fixed: Sequence[str] = (),
    **options: Any,
) -> Trajectory:
    """Pass targets (N, ...) one after the other, at rest at both ends and as fast as joints may move.

    The configuration of each target is found next to that of the one before (`reach`, whose `options` it takes); a jump to
    another branch, or a target that is out of reach, is an error that names the place. `speeds` and `accelerations` are
    as in `time_scaled`.
    """
    given = read("follow", model, tasks)
    solve = solver(model, given, fixed=fixed)
    q = _along(model, solve, start, options)
    return time_scaled(model, q, speeds=speeds, accelerations=accelerations)


def _along(model: Model, solve: ReachSolver, start: Any, options: dict[str, Any]) -> Array:
    counts = {len(task.target) for task in solve.tasks if task.target.ndim == 2}
    if len(counts) != 1 or (count := counts.pop()) < 3:
        raise ArgumentError("follow: expected targets (N, ...) of one path, N of them at least 3")
    found: list[Array] = []
    for k in range(count):
        targets = [task.target[k] if task.target.ndim == 2 else task.target for task in solve.tasks]
        more = options if not found else {**options, "restarts": 0}
        result = solve(*targets, start=start if not found else found[-1], quiet=True, **more)
        if not result.reached:
            raise NumericalError(f"follow: target {k} of {count}: {result.message}")
        if found:
            leap = float(np.max(np.abs(model.difference(found[-1], result.q))))
            if leap > JUMP:
                raise NumericalError(
                    f"follow: between targets {k - 1} and {k} a joint moves by {leap:.3g}: a jump to another branch; "
                    "take more targets, or another start"
                )
        found.append(result.q)
    return np.array(found)


def time_scaled(model: Model, q: Any, *, speeds: Any = None, accelerations: Any = None) -> Trajectory:
    """The fastest motion through configurations q (N, nq), at rest at both ends.

    Limits hold at the configurations, which may be unevenly spaced; in between by as much as the path is straight there.

    `speeds` (by default the velocity limits of the joints) and `accelerations` bound every degree of freedom: one
    number, or one for each of the nv.
    """
    name = "time_scaled"
    path = numbers(name, "q", q, model.nq)
    if path.ndim != 2 or len(path) < 3:
        raise ArgumentError(f"{name}: q has shape {path.shape}, expected (N, {model.nq}) with N at least 3")
    fastest = model.space.limits("velocity") if speeds is None else _bounds(name, "speeds", speeds, model.nv)
    if accelerations is None:
        raise ArgumentError(f"{name}: accelerations are needed: one number, or {model.nv} of them")
    most = _bounds(name, "accelerations", accelerations, model.nv)
    leaps = model.difference(path[:-1], path[1:])
    if not np.all(np.linalg.norm(leaps, axis=1) > 0):
        k = int(np.argmin(np.linalg.norm(leaps, axis=1)))
        raise ArgumentError(f"{name}: configurations {k} and {k + 1} are the same")
    sizes = np.linalg.norm(leaps, axis=1, keepdims=True)
    h = sizes / np.mean(sizes)
    slopes, both = leaps / h, h[:-1] + h[1:]
    bends = 2 * (slopes[1:] - slopes[:-1]) / both
    middle = (h[1:] * slopes[:-1] + h[:-1] * slopes[1:]) / both
    first = np.vstack([slopes[:1] - h[0] / 2 * bends[:1], middle, slopes[-1:] + h[-1] / 2 * bends[-1:]])
    second = np.vstack([bends[:1], bends, bends[-1:]])
    x, u = _fastest(first, second, h[:, 0], fastest, most)
    rate = np.sqrt(x)
    time = np.concatenate([[0.0], np.cumsum(2.0 * h[:, 0] / (rate[:-1] + rate[1:]))])
    return Trajectory(time, path, first * rate[:, None], first * u[:, None] + second * x[:, None])


def _bounds(name: str, what: str, value: Any, count: int) -> Array:
    x = numbers(name, what, value)
    if x.ndim > 1 or (x.ndim == 1 and len(x) != count) or not np.all(x > 0):
        raise ArgumentError(f"{name}: {what} is {value!r}, expected a positive number or {count} of them")
    return np.broadcast_to(x, (count,))


def _fastest(
    first: Array, second: Array, h: Array, speeds: Array, accelerations: Array
) -> tuple[Array, Array]:
    """x at all places, and u on the intervals (the last one twice)."""
    count = len(first)
    with np.errstate(divide="ignore"):
        top = np.min((speeds / np.abs(first)) ** 2, axis=1)
    finite = np.isfinite(accelerations)
    b = np.tile(accelerations[finite], 4)
    rows = []
    for k in range(count - 1):
        start = np.column_stack([first[k], second[k]])[finite]
        end = np.column_stack([first[k + 1] + 2 * h[k] * second[k + 1], second[k + 1]])[finite]
        rows.append(np.vstack([start, end, -start, -end]))
    most = np.zeros(count)
    for k in reversed(range(count - 1)):
        # u, x: also 0 <= x <= top, 0 <= x + 2 h u <= most of the next place
        on = 2.0 * h[k]
        G = np.vstack([rows[k], [[0.0, 1.0], [0.0, -1.0], [on, 1.0], [-on, -1.0]]])
        found = _largest(G, np.concatenate([b, [min(top[k], 1e12), 0.0, most[k + 1], 0.0]]))
        if found is None:
            raise NumericalError(f"time_scaled: configuration {k} cannot be left within the limits")
        most[k] = found
    x, u = np.zeros(count), np.zeros(count)
    for k, A in enumerate(rows):
        left = b - A[:, 1] * x[k]
        up, down = A[:, 0] > 0, A[:, 0] < 0
        high = np.min(left[up] / A[up, 0], initial=np.inf)
        low = np.max(left[down] / A[down, 0], initial=-np.inf)
        u[k] = max(low, min(high, (most[k + 1] - x[k]) / (2 * h[k])))
        x[k + 1] = max(x[k] + 2 * h[k] * u[k], 0.0)
    x[-1] = 0.0
    u[-1] = u[-2]
    if not np.all(x[1:-1] > 0):
        raise NumericalError("time_scaled: the motion comes to rest on the way; the path has a corner there")
    return x, u


def _largest(G: Array, h: Array) -> float | None:
    """The largest x of G (u, x) <= h, by its vertices."""
    pairs = np.array(list(itertools.combinations(range(len(h)), 2)))
    a, b = G[pairs[:, 0]], G[pairs[:, 1]]
    det = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    good = np.abs(det) > 1e-14 * np.maximum(np.abs(a).max(axis=1) * np.abs(b).max(axis=1), 1e-300)
    p, q = h[pairs[good, 0]], h[pairs[good, 1]]
    a, b, det = a[good], b[good], det[good]
    points = np.column_stack([p * b[:, 1] - q * a[:, 1], a[:, 0] * q - b[:, 0] * p]) / det[:, None]
    inside = np.all(points @ G.T <= h + SLACK * (1 + np.abs(h)), axis=1)
    return float(np.max(points[inside, 1])) if np.any(inside) else None
