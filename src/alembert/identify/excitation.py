"""Motions that excite the parameters: periodic or spline trajectories, optimised for the information they give.

    q(t) = center + B(t) C,     v = B' C,     a = B'' C                                             (1)

(joints whose coordinates do not add move so in the exponential chart about their neutral place, see `chart`) with B the
harmonics of a Fourier series or B-splines, restricted to motions that start and end at rest (v = a = 0). C and the centers
minimise, over samples of the motion and with W the weighted regressor of the base parameters,

    "information"   -1/2 logdet(W^T W) / r         the volume of the confidence ellipsoid           (2)
    "condition"     log cond(W S^-1)               columns scaled to unit length                    (3)

within the limits of positions, speeds and efforts. Each limit of each joint is one smooth constraint, the
Kreisselmeier-Steinhauser envelope of its samples, which is never below their maximum. A logarithmic barrier
keeps them.

Source: Swevers et al. 1997.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import casadi as ca
import numpy as np
import scipy

from alembert import arguments
from alembert.arguments import choice
from alembert.errors import ArgumentError, UnsupportedError, warn
from alembert.identify import base as bases
from alembert.identify.base import BaseParameters
from alembert.identify.regression import SMOOTHING, CompiledRegressor, compile_regressor
from alembert.model import Model
from alembert.model.model import check_model

Array = np.ndarray
Basis = Literal["fourier", "bspline"]
Criterion = Literal["information", "condition"]
_SHARP = 50.0  # of the envelope: it is at most log(samples) / 50 above the maximum
_STEP = 1e-6
_BARRIER, _FALL = 0.02, 0.05  # weight of the barrier at first, and what is left of it at last


@dataclass(frozen=True, eq=False, repr=False)
class ExcitingTrajectory:
    """A motion (1); `sample` gives its states."""

    model: Model
    basis: Basis
    duration: float
    center: Array
    """(nv,), of spherical and free joints in their charts"""
    coefficients: Array
    """(functions, nv)"""
    condition: float
    """of the scaled base regressor along the motion"""
    initial_condition: float
    """that of the motion that the optimisation started from"""
    information: float
    """-(2): larger is better"""

    def sample(self, times: Any) -> tuple[Array, Array, Array]:
        """q (T, nq), v and a (T, nv) at times within the duration; a Fourier series goes on periodically."""
        t = self.model.compute.numbers("sample", "times", times)
        if not np.all(np.isfinite(t)):
            raise ArgumentError("sample: times are not all finite")
        if self.basis == "bspline" and t.size and (t.min() < 0 or t.max() > self.duration):
            raise ArgumentError(
                f"sample: times go from {t.min():.6g} to {t.max():.6g} s, expected 0 to {self.duration:.6g} s"
            )
        B, dB, ddB = _basis(self.basis, t, self.duration, len(self.coefficients))
        C = self.coefficients
        return _states(self.model, self.center + B @ C, dB @ C, ddB @ C)

    def __repr__(self) -> str:
        return (
            f"<ExcitingTrajectory of {self.model.name!r}: {self.duration:.6g} s, {self.basis}, condition number "
            f"{self.condition:.3g} ({self.initial_condition:.3g} at first)>"
        )


def exciting_trajectory(
    model: Model,
    *,
    duration: float = 10.0,
    basis: Basis = "fourier",
    functions: int = 5,
    samples: int = 100,
    criterion: Criterion = "information",
    include: Sequence[str] = (),
    smoothing: float = SMOOTHING,
    noise: Any = None,
    margin: float = 0.9,
    iterations: int = 60,
    seed: int = 0,
    progress: bool = True,
) -> ExcitingTrajectory:
    """A motion within the model's limits from which its parameters can be identified well.

    Args:
        functions: harmonics of the Fourier series, or B-splines per joint.
        samples: states at which regressor and limits are evaluated.
        noise: standard deviation of each effort (nv,), by default all alike; inf for one that is not measured.
        margin: the part of each limit that may be used.
        iterations: of the optimiser; every one improves the motion.
        progress: whether to show a line, where there is a terminal.

    Joints without limits stay within half a turn or half a metre of zero and 3 rad/s or 1 m/s; so do spherical and free
    joints about their neutral place, a free base as if something moved it and all its efforts were measured (`noise` says
    otherwise). Loops and couplings are refused. Warns where the motion leaves the limits between the samples.
    """
    _check(model, duration, basis, functions, samples, criterion, margin, iterations, seed)
    problem = _Problem.of(
        compile_regressor(model, arguments.names("exciting_trajectory", "include", include, or_one=True), float(smoothing)),
        duration, basis, functions, samples, criterion, noise, margin,
    )  # fmt: skip
    x0 = problem.start(np.random.default_rng(seed))
    x = _descend(
        problem,
        x0,
        iterations,
        f"exciting trajectory ({criterion})" if progress and sys.stderr.isatty() else "",
    )
    center, C = problem.motion(x)
    condition, information = problem.quality(x)
    found = ExcitingTrajectory(
        model, basis, float(duration), center, C, condition, problem.quality(x0)[0], information
    )
    _warn_between(found, 10 * samples)
    return found


def _warn_between(motion: ExcitingTrajectory, count: int) -> None:
    """The limits are kept at the samples; few of them may miss a peak."""
    model = motion.model
    q, v, a = motion.sample(np.linspace(0.0, motion.duration, count))
    tau = np.abs(model.inverse_dynamics(q, v, a)).max(axis=0)
    outside = np.any((q < model.lower_limits) | (q > model.upper_limits), axis=0)
    beyond = [
        f"{what} of {joint!r}"
        for what, names, wrong in (
            ("position", model.coordinate_names, outside),
            ("speed", model.speed_names, np.abs(v).max(axis=0) > model.velocity_limits),
            ("effort", model.speed_names, tau > model.effort_limits),
        )
        for joint, is_wrong in zip(names, wrong, strict=True)
        if is_wrong
    ]
    if beyond:
        warn(
            f"exciting_trajectory: between the samples the motion is beyond the limits: {', '.join(beyond)}; take more "
            "samples, or a smaller margin"
        )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Motions as vectors x: the centers, then the coefficients in the space of motions that rest at the ends."""

    compiled: CompiledRegressor
    base: BaseParameters
    matrices: tuple[Array, Array, Array]
    rest: Array
    """functions x free coefficients"""
    criterion: Criterion
    weight: Array
    low: Array
    high: Array
    speed: Array
    effort: Array

    @classmethod
    def of(
        cls,
        compiled: CompiledRegressor,
        duration: float,
        basis: Basis,
        functions: int,
        samples: int,
        criterion: Criterion,
        noise: Any,
        margin: float,
    ) -> _Problem:
        model = compiled.model
        weight = _weights(model, noise)
        shown = compiled(*bases.random_states(compiled, 0)).Y[
            :, weight > 0
        ]  # by the efforts that are measured
        base = bases.from_regressor(shown, compiled.columns)
        size = 2 * functions if basis == "fourier" else functions
        ends = np.array([0.0, duration])
        t = np.linspace(0.0, duration, samples, endpoint=basis == "bspline")
        B, dB, ddB = _basis(basis, ends, duration, size)
        rest = scipy.linalg.null_space(
            np.vstack([B[:1], dB, ddB])
        )  # B C = 0 at the start, so that `center` is not given twice
        turning = np.array([unit == "rad/s" for unit in model.space.speed_units])
        reach = np.where(turning, np.pi / 2, 0.5)
        low, high = -reach, reach
        for o in model.space:
            if o.type.is_vector_space:
                least, most = model.lower_limits[o.q], model.upper_limits[o.q]
                low[o.v] = np.where(np.isfinite(least), least, low[o.v])
                high[o.v] = np.where(np.isfinite(most), most, high[o.v])
        middle, half = (low + high) / 2, margin * (high - low) / 2
        speed = np.where(
            np.isfinite(model.velocity_limits), model.velocity_limits, np.where(turning, 3.0, 1.0)
        )
        return cls(
            compiled,
            base,
            _basis(basis, t, duration, size),
            rest,
            criterion,
            weight,
            middle - half,
            middle + half,
            margin * speed,
            margin * model.effort_limits,
        )

    def start(self, rng: np.random.Generator) -> Array:
        """A random motion, scaled until it keeps every limit."""
        n, k = self.compiled.model.nv, self.rest.shape[1]
        center = (self.low + self.high) / 2
        C = rng.normal(size=(k, n))
        B, dB, _ = (M @ self.rest for M in self.matrices)
        half = (self.high - self.low) / 2
        C *= 0.6 / np.max(np.abs(np.concatenate([B @ C / half, dB @ C / self.speed])), axis=0)
        x = np.concatenate([center, C.ravel()])
        for _ in range(30):
            if self.evaluate(x[None])[0, 1:].min() >= 0:
                return x
            x[n:] *= 0.8
        raise ArgumentError(
            "exciting_trajectory: no motion about the middle of the position limits keeps within the effort limits; "
            "the model may not be able to hold itself there"
        )

    def motion(self, x: Array) -> tuple[Array, Array]:
        """Centers and coefficients of motions (..., x)."""
        n = self.compiled.model.nv
        C = x[..., n:].reshape(*x.shape[:-1], self.rest.shape[1], n)
        return x[..., :n], self.rest @ C

    def states(self, x: Array) -> tuple[Array, Array, Array]:
        """q, v, a of motions (..., x): (..., samples, n)."""
        return _states(self.compiled.model, *self.functions(x))

    def functions(self, x: Array) -> tuple[Array, Array, Array]:
        """What adds, with its derivatives."""
        center, C = self.motion(x)
        B, dB, ddB = self.matrices
        return center[..., None, :] + B @ C, dB @ C, ddB @ C

    def evaluate(self, x: Array) -> Array:
        """Objective and slacks (relative to the limits, positive inside) of motions (m, x)."""
        phi, *rates = self.functions(x)
        q, v, a = _states(self.compiled.model, phi, *rates)
        found = self.compiled(q, v, a)
        W = self.base.regressor(found.Y) * self.weight[:, None]
        W = W.reshape(len(x), -1, self.base.rank)
        objective = np.array([self._objective(w) for w in W])
        half = (self.high - self.low) / 2
        slacks = [1 - _envelope((phi - self.low - half) / half), 1 - _envelope(np.abs(v) / self.speed)]
        slacks.append(1 - _envelope(-(phi - self.low - half) / half))
        bounded = np.isfinite(self.effort)
        if np.any(bounded):
            tau = found.predict()[..., bounded]
            slacks.append(1 - _envelope(np.abs(tau) / self.effort[bounded]))
        return np.concatenate([objective[:, None], *slacks], axis=1)

    def _objective(self, W: Array) -> float:
        G = W.T @ W
        if self.criterion == "condition":
            scale = np.sqrt(np.diag(G))
            values = np.linalg.eigvalsh(G / np.outer(scale, scale))
            return float(0.5 * np.log(values[-1] / max(values[0], 1e-14)))
        return float(-0.5 * np.linalg.slogdet(G)[1] / self.base.rank)

    def quality(self, x: Array) -> tuple[float, float]:
        W = self.base.regressor(self.compiled(*self.states(x)).Y) * self.weight[:, None]
        W = W.reshape(-1, self.base.rank)
        s = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
        return float(s[0] / s[-1]), float(0.5 * np.linalg.slogdet(W.T @ W)[1] / self.base.rank)


def _descend(problem: _Problem, x: Array, iterations: int, label: str) -> Array:
    """Quasi-Newton steps (BFGS) on objective - mu sum log(slack), mu falling: every iterate keeps the limits."""
    B = np.eye(len(x))
    old: tuple[Array, Array] | None = None
    for k in range(iterations):
        mu = _BARRIER * _FALL ** (k / max(1, iterations - 1))
        found = problem.evaluate(np.vstack([x, x + _STEP * np.eye(len(x))]))
        merit = _merit(found, mu)
        gradient = (merit[1:] - merit[0]) / _STEP
        if not np.all(np.isfinite(gradient)):  # at a limit, to within the step of the difference
            break
        if old is not None:
            s, y = x - old[0], gradient - old[1]
            if s @ y > 1e-10 * np.linalg.norm(s) * np.linalg.norm(y):
                T = np.eye(len(x)) - np.outer(s, y) / (s @ y)
                B = T @ (B if k > 1 else B * (s @ y) / (y @ y)) @ T.T + np.outer(s, s) / (s @ y)
        step = -B @ gradient
        if old is None:
            step *= 0.1 / np.linalg.norm(step)
        lengths = 0.5 ** np.arange(12)
        trial = _merit(problem.evaluate(x + lengths[:, None] * step), mu)
        better = np.flatnonzero(trial < merit[0] + 1e-4 * lengths * (gradient @ step))
        if label:
            sys.stderr.write(f"\r{label}: {k + 1}/{iterations}  {found[0, 0]:.4f}")
            sys.stderr.flush()
        if len(better) == 0:
            break
        old = x, gradient
        x = x + lengths[better[0]] * step
    if label:
        sys.stderr.write("\n")
    return x


def _merit(found: Array, mu: float) -> Array:
    """Of rows (objective, slacks); inf outside of the limits."""
    inside = np.all(found[:, 1:] > 0, axis=1)
    logs = np.log(np.where(found[:, 1:] > 0, found[:, 1:], 1.0))
    return np.where(inside, found[:, 0] - mu * logs.sum(axis=1), np.inf)


def _basis(kind: Basis, t: Array, duration: float, size: int) -> tuple[Array, Array, Array]:
    """B, B', B'' at times, (T, size)."""
    if kind == "fourier":
        w = 2 * np.pi / duration * np.arange(1, size // 2 + 1)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        return (np.hstack([s / w, (1 - c) / w]), np.hstack([c, s]), np.hstack([-w * s, w * c]))
    degree = 5
    inner = np.linspace(0.0, duration, size - degree + 1)
    knots = np.concatenate([np.zeros(degree), inner, np.full(degree, duration)])
    splines = scipy.interpolate.BSpline(knots, np.eye(size), degree)
    return splines(t), splines.derivative(1)(t), splines.derivative(2)(t)


def _envelope(x: Array) -> Array:
    """log sum exp over the samples, (..., n)."""
    top = x.max(axis=-2, keepdims=True)
    return (top + np.log(np.sum(np.exp(_SHARP * (x - top)), axis=-2, keepdims=True)) / _SHARP)[..., 0, :]


def _weights(model: Model, noise: Any) -> Array:
    if noise is None:
        return np.ones(model.nv)
    sigma = model.compute.numbers("exciting_trajectory", "noise", noise)
    if sigma.shape != (model.nv,) or not np.all(sigma > 0) or np.all(np.isinf(sigma)):
        raise ArgumentError(
            f"exciting_trajectory: noise is {noise}, expected {model.nv} positive standard deviations"
        )
    return 1 / sigma


def _check(
    model: Model,
    duration: float,
    basis: str,
    functions: int,
    samples: int,
    criterion: str,
    margin: float,
    iterations: int,
    seed: int,
) -> None:
    check_model("exciting_trajectory", model)
    if model.is_constrained:
        raise UnsupportedError(
            f"exciting_trajectory: model {model.name!r} has loops, couplings or equations, which joints that each follow a "
            "motion of their own would break; take a motion of the driven joints, and model.assemble for the others"
        )
    choice("exciting_trajectory", "basis", basis, ("fourier", "bspline"))
    choice("exciting_trajectory", "criterion", criterion, ("information", "condition"))
    for name, value in {
        "functions": functions,
        "samples": samples,
        "iterations": iterations,
        "seed": seed,
    }.items():
        if not isinstance(value, Integral) or value < 0:
            raise ArgumentError(
                f"exciting_trajectory: {name} is {value!r}, expected an integer, zero or more"
            )
    for name, number in {"duration": duration, "margin": margin}.items():
        if not isinstance(number, Real):
            raise ArgumentError(f"exciting_trajectory: {name} is {number!r}, expected a number")
    least = 2 if basis == "fourier" else 8
    if functions < least:
        raise ArgumentError(f"exciting_trajectory: functions is {functions}, expected at least {least}")
    if not duration > 0 or not 0 < margin <= 1 or samples < 10:
        raise ArgumentError(
            f"exciting_trajectory: duration is {duration}, margin {margin} and samples {samples}, "
            "expected a positive time, a margin between 0 and 1, and at least 10 samples"
        )


def _states(model: Model, phi: Array, rate: Array, second: Array) -> tuple[Array, Array, Array]:
    """q (..., nq), v and a (..., nv) of the motion phi in the chart of the model, and of its derivatives, (..., nv) each."""
    if model.space.is_vector_space:
        return phi, rate, second

    def make() -> ca.Function:
        given = [ca.SX.sym(name, model.nv) for name in ("phi", "d", "dd")]
        found = model.space.chart_motion(*given)
        return ca.Function("chart", given, [ca.densify(x) for x in found])

    given = dict.fromkeys(("phi", "rate", "second"), (model.nv,))
    results = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
    q, v, a = model.compute.function_kernel("chart", given, results, make)(phi, rate, second)
    return q, v, a
