"""Feedback for systems with Gaussian and Poisson noise: the equation of Hamilton, Jacobi and Bellman on a grid.

For a system that is affine, and a cost that is quadratic, in the controls (Hanson, 3rd Annual Conf. on Aerospace
Computational Control, 1989),

    dx = (f(x, t) + B(x, t) u) dt + G(x, t) dW + sum_l H_l(x, t) dP_l,    rates lambda_l                     (1)
    V(x, t) = min E[ int_t^T c(x, s) + d(x, s)' u + u' R u / 2 ds + e(x(T)) ]

the value V obeys

    0 = V_t + L[V],    L[V] = f . V_x + 1/2 G G' : V_xx + sum_l lambda_l (V(x + H_l) - V(x)) + c + (U/2 - U_R)' R U   (2)
    U_R = -R^-1 (d + B' V_x),    U = U_R within the bounds of the controls                                        (3)

(the paper prints a minimum where (3) has a maximum). It is integrated backward on a grid, V(x + H) by parabolas through
three points (the paper: straight lines), and in time by its predictor and corrector, which is the trapezoidal rule where it
has converged:

    V_{k+1/2} = (3 V_k - V_{k-1}) / 2,  then  V_{k+1} = V_k + dt L[V_{k+1/2}],  V_{k+1/2} = (V_k + V_{k+1}) / 2  again  (4)

V has an edge where two ways are equally good, to the left or to the right round an obstacle; differences across it grow
without end. So V_x is taken from both sides, by parabolas that keep off the edge, and (2) with the flux of Lax and
Friedrichs (Osher and Shu 1991, "High-order essentially nonoscillatory schemes for Hamilton-Jacobi equations"):

    p-_i = (V_i - V_i-1) / h + h/2 m(b_i-1, b_i),   p+_i = (V_i+1 - V_i) / h - h/2 m(b_i, b_i+1),   b = V_xx           (5)
    L at V_x = (p+ + p-) / 2, and a . (p+ - p-) / 2 beside it,     a_i the largest |f_i + B_i u| between both sides     (6)

with m the smaller one of two numbers of equal sign, else zero. Of parabolas both sides are one.

U is found with R diagonal where it has bounds: each control by itself. All points are computed at once (NumPy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import numbers, real, whole
from alembert.errors import ArgumentError, NumericalError, UnsupportedError

Array = np.ndarray
Field = Callable[..., Any]
LARGEST = 2_000_000
"""points of a grid"""
SAFE = 0.4
"""of the longest step for which (4) converges"""
CORRECTIONS = 30
CONVERGED = 1e-9
"""of the largest V: what the last correction may still change"""
MOST_STEPS = 200_000


@dataclass(frozen=True, eq=False)
class JumpNoise:
    """Jumps of the state by H(t, x) that come with the rate `rate` [1/s]: `JumpNoise(2.0, lambda t, x: [0.3])`."""

    rate: float
    jump: Field

    def __post_init__(self) -> None:
        real("JumpNoise", "rate", self.rate, "jumps per second, zero or more", least=0.0)


class FeedbackOnGrid:
    """V and U on the grid at `times` (from 0 to the end): `values` (K, ...), `controls` (K, controls, ...).

    `value(x, t)` and `control(x, t)` are between the points, for states (..., m) within the grid.
    """

    def __init__(
        self, axes: list[Array], times: Array, values: Array, controls: Array, names: tuple[Any, ...]
    ) -> None:
        self.axes, self.times, self.values, self.controls = axes, times, values, controls
        self.states, self.control_names = names

    def value(self, x: Any, t: float = 0.0) -> Array:
        return self._between(self.values, x, t)

    def control(self, x: Any, t: float = 0.0) -> Array:
        """(..., controls)"""
        parts = [self._between(self.controls[:, k], x, t) for k in range(self.controls.shape[1])]
        return np.stack(parts, axis=-1)

    def _between(self, values: Array, x: Any, t: float) -> Array:
        points = numbers("feedback", "x", x)
        points = points[..., None] if points.ndim == 0 else points
        if points.shape[-1] != len(self.axes):
            raise ArgumentError(
                f"feedback: x has shape {points.shape}, expected (..., {len(self.axes)}): {', '.join(self.states)}"
            )
        for k, axis in enumerate(self.axes):
            if points[..., k].size and not (
                axis[0] <= points[..., k].min() and points[..., k].max() <= axis[-1]
            ):
                raise ArgumentError(
                    f"feedback: {self.states[k]} leaves the grid, which is from {axis[0]:g} to {axis[-1]:g}"
                )
        if not self.times[0] <= t <= self.times[-1]:
            raise ArgumentError(f"feedback: t is {t:g} s, expected 0 to {self.times[-1]:g} s")
        k = int(np.clip(np.searchsorted(self.times, t) - 1, 0, len(self.times) - 2))
        share = (t - self.times[k]) / (self.times[k + 1] - self.times[k])
        P = _parabolas(self.axes, [points[..., i].ravel() for i in range(len(self.axes))])
        found = (1 - share) * (P @ values[k].ravel()) + share * (P @ values[k + 1].ravel())
        return found.reshape(points.shape[:-1])

    def __repr__(self) -> str:
        return (
            f"<FeedbackOnGrid of {', '.join(self.states)}: {'x'.join(str(len(a)) for a in self.axes)} points>"
        )


def dynamic_programming(
    grid: Mapping[str, Any],
    controls: Mapping[str, tuple[float, float]],
    duration: float,
    *,
    drift: Field,
    effect: Field,
    running: Field,
    weight: Any,
    linear: Field | None = None,
    final: Field | None = None,
    noise: Field | None = None,
    jumps: Sequence[JumpNoise] = (),
    records: int = 21,
) -> FeedbackOnGrid:
    """V and U of (1) for `duration` seconds, on the points of `grid`: `{"x": np.linspace(-3, 3, 121)}`, evenly spaced.

    Functions get the time t and the list x of the states, each an array over the grid, and return by state and by control:
    `drift` a list f_i, `effect` rows [B_i1, ...], `noise` rows [G_i1, ...], `running` c, `linear` a list d_j, `final` (of x
    alone) e. `weight` is R, a number, one for each control, or a matrix. `controls` have bounds, infinite ones where there
    are none; with a matrix R that is not diagonal bounds are refused. `records` is at how many times results are kept.
    """
    names, axes = _axes(grid)
    R, low, high = _controls(controls, weight)
    real("dynamic_programming", "duration", duration, "seconds", over=0.0)
    whole("dynamic_programming", "records", records, "2 or more", least=2)
    x = list(np.meshgrid(*axes, indexing="ij"))
    terms = _Terms(axes, x, R, low, high, drift, effect, running, linear, noise, jumps)
    V = terms._fields("final", final(x) if final is not None else 0.0, ())
    steps = terms.steps(V, float(duration), records)
    while isinstance(kept := _integrated(terms, V, float(duration), steps, records), float):
        steps *= 2  # V has become steeper than at the end, and controls larger
        if steps > MOST_STEPS:
            raise NumericalError(
                f"dynamic_programming: the value at t = {kept:.4g} s is not found with {steps // 2} steps in time; the grid "
                "may be too coarse, or too wide for the drift at its edges"
            )
    times = np.linspace(0.0, duration, len(kept))
    values, optimal = (np.array([row[i] for row in kept]) for i in (0, 1))
    return FeedbackOnGrid(axes, times, values, optimal, (names, tuple(controls)))


def _integrated(
    terms: _Terms, V: Array, duration: float, steps: int, records: int
) -> list[tuple[Array, Array]] | float:
    """V and U from 0 to the end, or the time at which (4) does not converge."""
    dt, every = duration / steps, steps // (records - 1)
    before, kept = V, [(V, terms.optimal(duration, V)[1])]
    for k in range(steps):
        t = duration - (k + 0.5) * dt
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            new = V + dt * terms.optimal(t, (3 * V - before) / 2)[0]
            size, change = np.abs(new).max() + 1e-300, np.inf
            for _ in range(CORRECTIONS):
                better = V + dt * terms.optimal(t, (V + new) / 2)[0]
                change, new = np.abs(better - new).max(), better
                if not change > 1e-12 * size:
                    break
        if not change <= CONVERGED * size:
            return t
        before, V = V, new
        if (k + 1) % every == 0:
            kept.append((V, terms.optimal(duration - (k + 1) * dt, V)[1]))
    return kept[::-1]


def _told(name: str, function: Field) -> Field:
    """The user's function, with a sentence on what goes wrong in it."""

    def told(t: float, x: Any) -> Any:
        try:
            return function(t, x)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(
                f"dynamic_programming: {name}: {error}. It gets t and the states x, of which each is an array over the grid"
            ) from error

    return told


class _Terms:
    """L[V] of (2) and U of (3)."""

    def __init__(
        self,
        axes: list[Array],
        x: list[Array],
        R: Array,
        low: Array,
        high: Array,
        drift: Field,
        effect: Field,
        running: Field,
        linear: Field | None,
        noise: Field | None,
        jumps: Sequence[JumpNoise],
    ) -> None:
        self.axes, self.x, self.R, self.low, self.high = axes, x, R, low, high
        self.drift, self.effect = _told("drift", drift), _told("effect", effect)
        self.running = _told("running", running)
        self.linear = linear and _told("linear", linear)
        self.noise = noise and _told("noise", noise)
        self.jumps = list(jumps)
        self._moved: dict[int, tuple[bytes, Any]] = {}
        self.inverse = np.linalg.inv(R)

    def _fields(self, name: str, given: Any, shape: tuple[int, ...]) -> Array:
        """What a function returned, as an array `shape` over the grid."""
        try:
            found = np.empty((*shape, *self.x[0].shape))
            if shape == ():
                found[...] = given
            elif len(shape) == 1:
                for i, row in zip(range(shape[0]), given, strict=True):
                    found[i] = row
            else:
                for i, row in zip(range(shape[0]), given, strict=True):
                    for j, entry in zip(range(shape[1]), row, strict=True):
                        found[i, j] = entry
        except (TypeError, ValueError):
            sizes = " x ".join(map(str, shape)) or "one"
            raise ArgumentError(
                f"dynamic_programming: {name} does not return {sizes} numbers or arrays over the grid"
            ) from None
        if not np.isfinite(found).all():
            raise NumericalError(f"dynamic_programming: {name} is not finite on the grid")
        return found

    def _of_noise(self, t: float) -> Array | None:
        """G, (states, sources, ...) over the grid; None without noise."""
        if self.noise is None:
            return None
        rows = self.noise(t, self.x)
        try:
            sources = len(rows[0])
        except (TypeError, LookupError):
            raise ArgumentError(
                "dynamic_programming: noise does not return rows, for each state a list with one entry for each source"
            ) from None
        return self._fields("noise", rows, (len(self.axes), sources))

    def optimal(self, t: float, V: Array) -> tuple[Array, Array]:
        m, k = len(self.axes), len(self.low)
        sides = np.array([_sides(V, axis, i) for i, axis in enumerate(self.axes)])
        slopes, jumped = sides.mean(axis=1), np.diff(sides, axis=1)[:, 0]
        f = self._fields("drift", self.drift(t, self.x), (m,))
        B = self._fields("effect", self.effect(t, self.x), (m, k))
        pull = np.einsum("ij...,i...->j...", B, slopes)
        if self.linear is not None:
            pull = pull + self._fields("linear", self.linear(t, self.x), (k,))
        free = -np.einsum("ij,j...->i...", self.inverse, pull)
        wide = (slice(None), *(None,) * m)
        low, high = self.low[wide], self.high[wide]
        U = np.clip(free, low, high)
        found = self._fields("running", self.running(t, self.x), ())
        found = found + (f * slopes).sum(axis=0)
        found += np.einsum("i...,ij,j...->...", U / 2 - free, self.R, U)
        # (6): as far as U goes between both sides
        swing = np.einsum("ij...,i...->j...", np.abs(B), np.abs(jumped)) / 2
        swing = np.einsum("ij,j...->i...", np.abs(self.inverse), swing)
        swing = np.maximum(np.clip(free + swing, low, high) - U, U - np.clip(free - swing, low, high))
        speed = np.abs(f + np.einsum("ij...,j...->i...", B, U))
        speed += np.einsum("ij...,j...->i...", np.abs(B), swing)
        found += (speed * jumped).sum(axis=0) / 2
        if (G := self._of_noise(t)) is not None:
            spread = np.einsum("ir...,jr...->ij...", G, G)
            for i in range(m):
                for j in range(i, m):
                    if np.any(spread[i, j]):
                        twice = _bend(V, self.axes, i, j)
                        found += spread[i, j] * twice * (0.5 if i == j else 1.0)
        for number, jump in enumerate(self.jumps):
            found += jump.rate * (self._after(number, jump, t, V) - V)
        return found, U

    def _after(self, number: int, jump: JumpNoise, t: float, V: Array) -> Array:
        H = self._fields("a jump", jump.jump(t, self.x), (len(self.axes),))
        key = H.tobytes()
        if number not in self._moved or self._moved[number][0] != key:
            for axis, h in zip(self.axes, H, strict=True):
                if not np.abs(h).max() <= axis[-1] - axis[0]:
                    raise ArgumentError(
                        f"dynamic_programming: a jump is {np.abs(h).max():g} long, the grid {axis[-1] - axis[0]:g} wide; "
                        "nothing is known of V so far outside"
                    )
            points = [(x + h).ravel() for x, h in zip(self.x, H, strict=True)]
            self._moved[number] = key, _parabolas(self.axes, points)
        return (self._moved[number][1] @ V.ravel()).reshape(V.shape)

    def steps(self, V: Array, duration: float, records: int) -> int:
        """So many that (4) converges, by the size of what L does to a point of the grid."""
        m, k = len(self.axes), len(self.low)
        pace = sum(jump.rate for jump in self.jumps)
        for t in (0.0, duration / 2, duration):
            U = self.optimal(t, V)[1]
            f = self._fields("drift", self.drift(t, self.x), (m,))
            B = np.abs(self._fields("effect", self.effect(t, self.x), (m, k)))
            reach = np.where(
                np.isfinite(self.high) & np.isfinite(self.low), np.maximum(self.high, -self.low), 0.0
            )
            most = np.maximum(np.abs(U).max(axis=tuple(range(1, m + 1))), reach)
            speed = np.abs(f) + np.einsum("ij...,j->i...", B, most)
            own = sum(speed[i].max() / (a[1] - a[0]) for i, a in enumerate(self.axes))
            if (G := self._of_noise(t)) is not None:
                spread = (G**2).sum(axis=1)
                own += sum(2 * spread[i].max() / (a[1] - a[0]) ** 2 for i, a in enumerate(self.axes))
            pace = max(pace, own + sum(jump.rate for jump in self.jumps))
        whole = records - 1
        steps = int(np.ceil(duration * pace / SAFE / whole)) * whole
        if steps > MOST_STEPS:
            raise NumericalError(
                f"dynamic_programming: {steps} steps in time are needed for this grid; take fewer points, or less noise"
            )
        return max(steps, whole)


def _slope(V: Array, axis: Array, i: int) -> Array:
    return np.gradient(V, axis[1] - axis[0], axis=i, edge_order=2)


def _sides(V: Array, axis: Array, i: int) -> tuple[Array, Array]:
    """(5); beyond the edges V goes on as the parabola of the last three points."""
    h, W = axis[1] - axis[0], np.moveaxis(V, i, 0)
    bend = np.diff(W, 2, axis=0)
    bend = np.concatenate([bend[:1], bend[:1], bend, bend[-1:], bend[-1:]])
    step = np.diff(W, axis=0)
    step = np.concatenate([step[:1] - bend[:1], step, step[-1:] + bend[-1:]])
    a, b = bend[:-1], bend[1:]
    kept = np.where(a * b > 0, np.where(np.abs(a) < np.abs(b), a, b), 0.0)
    left, right = (step + kept / 2)[:-1] / h, (step - kept / 2)[1:] / h
    return np.moveaxis(left, 0, i), np.moveaxis(right, 0, i)


def _bend(V: Array, axes: list[Array], i: int, j: int) -> Array:
    """Second derivatives; at the edges those of the points beside them."""
    if i != j:
        return _slope(_slope(V, axes[i], i), axes[j], j)
    h, W = axes[i][1] - axes[i][0], np.moveaxis(V, i, 0)
    found = np.empty_like(W)
    found[1:-1] = (W[2:] - 2 * W[1:-1] + W[:-2]) / h**2
    found[0], found[-1] = found[1], found[-2]
    return np.moveaxis(found, 0, i)


def _parabolas(axes: list[Array], points: list[Array]) -> scipy.sparse.csr_matrix:
    """The matrix that takes values on the grid to points, by the parabola of the three nearest ones along each axis."""
    count = len(points[0])
    columns, weights = np.zeros((count, 1), dtype=np.int64), np.ones((count, 1))
    for axis, at in zip(axes, points, strict=True):
        s = (at - axis[0]) / (axis[1] - axis[0])
        j = np.clip(np.round(s).astype(np.int64), 1, len(axis) - 2)
        d = s - j
        own = np.stack([d * (d - 1) / 2, 1 - d**2, d * (d + 1) / 2], axis=1)
        places = j[:, None] + np.array([-1, 0, 1])
        columns = (columns[:, :, None] * len(axis) + places[:, None, :]).reshape(count, -1)
        weights = (weights[:, :, None] * own[:, None, :]).reshape(count, -1)
    rows = np.repeat(np.arange(count), columns.shape[1])
    size = int(np.prod([len(axis) for axis in axes]))
    return scipy.sparse.csr_matrix((weights.ravel(), (rows, columns.ravel())), shape=(count, size))


def _axes(grid: Any) -> tuple[tuple[str, ...], list[Array]]:
    if not isinstance(grid, Mapping) or not grid:
        raise ArgumentError(f"dynamic_programming: grid is {grid!r}, expected points by the names of states")
    axes = []
    for name, points in grid.items():
        axis = numbers("dynamic_programming", f"grid of {name!r}", points)
        steps = np.diff(axis) if axis.ndim == 1 else np.empty(0)
        if len(steps) < 4 or not np.isfinite(axis).all() or not np.allclose(steps, steps[0]) or steps[0] <= 0:
            raise ArgumentError(
                f"dynamic_programming: grid of {name!r}: expected 5 or more evenly spaced points that increase"
            )
        axes.append(axis)
    size = int(np.prod([float(len(axis)) for axis in axes]))
    if size > LARGEST:
        raise ArgumentError(f"dynamic_programming: the grid has {size} points, expected {LARGEST} at most")
    return tuple(grid), axes


def _controls(controls: Any, weight: Any) -> tuple[Array, Array, Array]:
    if not isinstance(controls, Mapping) or not controls:
        raise ArgumentError(
            f"dynamic_programming: controls is {controls!r}, expected pairs (lower, upper) by name"
        )
    try:
        pairs = np.array(list(controls.values()), dtype=float).reshape(len(controls), -1)
    except (TypeError, ValueError):
        pairs = np.empty((len(controls), 0))
    if pairs.shape[1] != 2 or not np.all(pairs[:, 0] < pairs[:, 1]):
        raise ArgumentError(
            f"dynamic_programming: controls is {dict(controls)!r}, expected pairs (lower, upper) by name"
        )
    R = np.asarray(weight, dtype=float)
    R = np.diag(np.broadcast_to(R, (len(controls),))) if R.ndim < 2 else R
    if R.shape != (len(controls),) * 2 or not np.allclose(R, R.T) or np.linalg.eigvalsh(R).min() <= 0:
        raise ArgumentError(
            f"dynamic_programming: weight is {weight!r}, expected a positive definite matrix, one row per control"
        )
    if np.any(R - np.diag(np.diag(R))) and np.isfinite(pairs).any():
        raise UnsupportedError(
            "dynamic_programming: with bounds on controls the weight is to be diagonal, so that each is found by itself"
        )
    return R, pairs[:, 0], pairs[:, 1]
