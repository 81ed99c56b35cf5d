"""Identification: the parameters of a model from measured motions and efforts.

With Y the regressor, W = Y / sigma and b = (tau - known) / sigma weighted by the noise of each effort:

    least squares      min |W_I beta - b|^2,   Cov(beta) = (W_I^T W_I)^-1                            (1)

over the base parameters. Where no noise is given, that of each effort is estimated from the residuals
(repeated until the weights settle). Directions in which the data say nothing stay at the prior, with infinite
standard errors.

    consistent         min |W pi(theta) - b|^2 + |theta / spread|^2                                  (2)

over log-Cholesky coordinates of every body relative to the prior model (`alembert.identify.consistent`) and
over friction, armature and rotor inertias bounded below by zero. The second term is a prior: theta = 1 is a
factor e in size; it decides what the data do not. W and b enter through a triangular factor of the size of
beta alone, so that the cost of (2) does not depend on the number of samples. Its standard errors are those of
the linearised problem,

    Cov(theta) = (dr/dtheta^T dr/dtheta)^-1,   Cov(pi) = D Cov(theta) D^T,   D = dpi/dtheta          (3)

Of a model with loops or couplings the equations are those of its independent speeds (`alembert.identify.regression`).

Sources: Gautier 1997 (weighting), Rucker and Wensing 2022 (2).

One thread of BLAS where matrices are small.

NumPy's and SciPy's OpenBLAS splits a factorisation of a hundred columns over all cores. Its threads wait for one another by
spinning: where other work keeps the cores busy, 200 such factorisations take a minute instead of a third of a second. It has
no switch that Python offers after its start, but the library has one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from alembert import arguments
from alembert.arguments import choice, positive, unknown
from alembert.errors import ArgumentError, NumericalError, warn
from alembert.identify import base as bases
from alembert.identify import consistent, regression
from alembert.identify.base import BaseParameters
from alembert.identify.consistent import ConsistentFit
from alembert.identify.measurements import Measurements
from alembert.identify.regression import SMOOTHING, CompiledRegressor, Projection, compile_regressor
from alembert.identify.result import CAUSES, Identification, doubts, impossible
from alembert.model import Model
from alembert.model.model import check_model

_LOCK = threading.Lock()
_users = 0
_before: list[int] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it, BLAS works on one thread, in the whole process; also a decorator. Without effect on another BLAS."""
    global _users
    with _LOCK:
        if _users == 0:
            _before[:] = [get() for get, _ in _libraries()]
            for _, put in _libraries():
                put(1)
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if _users == 0:
                for (_, put), count in zip(_libraries(), _before, strict=True):
                    put(count)


@functools.cache
def _libraries() -> tuple[tuple[Any, Any], ...]:
    """How many threads each OpenBLAS that comes with NumPy and SciPy has: to get, and to set."""
    found = []
    for package in ("numpy", "scipy"):
        spec = importlib.util.find_spec(package)
        folder = Path(str(spec.origin)).parents[1] / f"{package}.libs" if spec is not None else Path()
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for end in ("64_", ""):
                names = [f"scipy_openblas_{verb}_num_threads{end}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    found.append((getattr(library, names[0]), getattr(library, names[1])))
                    break
    return tuple(found)


Array = np.ndarray
Method = Literal["consistent", "least_squares"]
_UNEXCITED = 1e-8  # singular values of scaled columns below this part of the first
_EASY = 1e-2  # noise relative to the effort with which (2) is easily solved
_FLOOR = 1e-2  # of the sizes of parameters: the least that one is taken to move by
_NOISELESS = 1e-10  # noise is taken to be at least this part of the effort


@one_thread()  # of small matrices
def identify(
    model: Model,
    data: Measurements,
    *,
    method: Method = "consistent",
    include: Sequence[str] = (),
    fixed: Sequence[str] = (),
    prior_spread: float = 1.0,
    smoothing: float = SMOOTHING,
) -> Identification:
    """Estimate the inertias, frictions, armatures and rotor inertias of a model from measurements.

    Args:
        model: the structure, and the prior values.
        data: states, accelerations and efforts.
        method: "consistent" gives inertias that a body can have, (2); "least_squares" the plain linear
            estimate (1), which moves the prior as little as needed and may be unphysical.
        include: terms to identify on every joint, also where the model has none: "viscous", "coulomb" or
            "armature".
        fixed: bodies and joints that keep their values. Massless bodies always do. One name may stand alone, here and in
            `include`.
        prior_spread: how far the prior may be off, as the logarithm of a factor; it only matters where the
            data say little.
        smoothing: speed of the Coulomb friction of joints whose model has none.

    Of a model with loops or couplings the efforts are those of its drives, zero where nothing drives, and measured states
    are moved to the nearest that keep the constraints. Reactions need not be known: the equations are those of independent
    speeds, in which noise and residuals are given (`effort_names`).

    Warns where the estimate does not explain an effort, or where no bodies can have the parameters that fit best.
    """
    check_model("identify", model)
    if not isinstance(data, Measurements):
        raise ArgumentError(f"identify: data is a {type(data).__name__}, expected Measurements")
    choice("identify", "method", method, ("consistent", "least_squares"))
    positive("identify", "prior_spread", prior_spread)
    data.check(model)
    if model.is_constrained:
        data = regression.on_constraints(model, data)
    include = arguments.names("identify", "include", include, or_one=True)
    fixed = arguments.names("identify", "fixed", fixed, or_one=True)
    compiled = compile_regressor(model, include, float(smoothing))
    problem = _Problem.of(compiled, data, fixed)
    linear = problem.least_squares()
    if not np.any(data.tau):
        raise ArgumentError("identify: all efforts are zero; were they recorded?")
    consistently = method == "consistent"
    estimate = _consistent(problem, linear, prior_spread) if consistently else _lifted(problem, linear)
    pi = compiled.pi.copy()
    pi[problem.free] = estimate.pi
    residuals = problem.tau - problem.predict(pi)
    errors, informed = np.zeros_like(pi), np.zeros_like(pi)
    errors[problem.free], informed[problem.free] = estimate.errors, estimate.informed
    result = Identification(
        prior_model=model,
        method=method,
        columns=compiled.columns,
        data=data,
        effort_names=problem.projection.names if problem.projection else model.speed_names,
        measured=problem.tau,
        prior=compiled.pi,
        values=pi,
        standard_errors=errors,
        informed=informed,
        free=problem.free,
        base=problem.base,
        base_prior=problem.base.values(compiled.pi[problem.free]),
        base_values=linear.beta,
        base_standard_errors=linear.errors,
        base_consistent=problem.base.values(estimate.pi),
        noise=linear.noise,
        residuals=residuals,
        condition=linear.condition,
        excited=linear.rank,
        include=include,
        smoothing=float(smoothing),
    )
    for sentence in doubts(result):
        warn(f"identify: {sentence}")
    return result


@dataclass(frozen=True, eq=False)
class _Problem:
    """The data as linear equations in the free parameters."""

    compiled: CompiledRegressor
    data: Measurements
    free: Array
    """indices of the parameters that are identified"""
    base: BaseParameters
    Y: Array
    """(T, nv, free)"""
    known: Array
    """(T, nv): efforts that the free parameters do not explain"""
    tau: Array
    """(T, nv): efforts that were measured"""
    projection: Projection | None
    """where it is independent speeds instead of all nv"""

    @classmethod
    def of(cls, compiled: CompiledRegressor, data: Measurements, fixed: Sequence[str]) -> _Problem:
        free = _free(compiled, fixed)
        if len(free) == 0:
            raise ArgumentError("identify: no parameter is left to identify; all bodies and joints are fixed")
        r = compiled(data.q, data.v, data.a)
        held = np.setdiff1d(np.arange(len(r.pi)), free)
        known = r.known + r.Y[..., held] @ r.pi[held]
        Y, tau, projection = r.Y[..., free], data.tau, None
        if compiled.model.is_constrained:
            by = regression.independent(compiled.model, data.q)
            projection = Projection(by.names, by.E)
            Y, known, tau = projection(Y), projection(known), projection(tau)
        structure = bases.stacked(compiled, *bases.random_states(compiled, 0))[:, free]
        base = bases.from_regressor(structure, [compiled.columns[k] for k in free])
        if base.rank == 0:
            raise ArgumentError("identify: no motion of the model shows any of the parameters to identify")
        count = tau.size
        if count < base.rank or (count == base.rank and data.noise is None):
            more = " more than" if count == base.rank else " at least"
            why = ", since the noise is to be estimated too; or give noise=" if count == base.rank else ""
            raise ArgumentError(
                f"identify: {len(data)} samples of {tau.shape[1]} efforts are {count} equations, "
                f"expected{more} {base.rank}, one per base parameter{why}"
            )
        return cls(compiled, data, free, base, Y, known, tau, projection)

    @property
    def pi(self) -> Array:
        """The prior of the free parameters."""
        return self.compiled.pi[self.free]

    def predict(self, pi: Array) -> Array:
        return self.Y @ pi[self.free] + self.known

    def least_squares(self) -> _Linear:
        """(1)"""
        tau, noise = self.tau, self.data.noise
        if noise is not None and self.projection is not None:
            white = self.projection.whitening(noise)
            spread = np.sqrt(np.mean(np.sum(np.linalg.inv(white) ** 2, axis=2), axis=0))
            return self._solved(spread, white @ self.Y, (white @ (tau - self.known)[..., None])[..., 0])
        if noise is not None:
            return self._weighted(np.asarray(noise))
        floor = _NOISELESS * np.maximum(
            np.sqrt(np.mean(tau**2, axis=0)), 1e-6 * np.abs(tau).max(initial=1e-300)
        )
        noise = np.full(tau.shape[1], max(1.0, float(floor.max())))
        for _ in range(10):
            linear = self._weighted(noise)
            lost = len(tau) - linear.rank / tau.shape[1]
            residual = tau - self.known - self.Y[..., self.base.independent] @ linear.beta
            new = np.maximum(np.sqrt(np.sum(residual**2, axis=0) / max(lost, 1.0)), floor)
            settled = np.all(np.abs(new - noise) < 0.01 * noise)
            noise = new
            if settled:
                break
        return self._weighted(noise)

    def _weighted(self, noise: Array) -> _Linear:
        weight = 1 / noise
        return self._solved(noise, self.Y * weight[:, None], (self.tau - self.known) * weight)

    def _solved(self, noise: Array, W: Array, b: Array) -> _Linear:
        """(1) with W and b weighted by sample, (T, nv, free) and (T, nv)."""
        columns = np.column_stack([W.reshape(-1, len(self.free)), b.ravel()])
        factor = np.asarray(np.linalg.qr(columns, mode="r"))
        R, z = factor[:, :-1], factor[:, -1]
        A = R[:, self.base.independent]
        scale = np.linalg.norm(A, axis=0)
        scale[scale == 0] = 1.0
        U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
        if not s[0] > 0:
            raise ArgumentError("identify: the measured motion excites no parameter; does anything move?")
        rank = int(np.count_nonzero(s > _UNEXCITED * s[0]))
        prior = self.base.values(self.pi)
        step = Vt[:rank].T @ (U[:, :rank].T @ (z - A @ prior) / s[:rank])
        errors = np.sqrt(np.sum((Vt[:rank] / s[:rank, None]) ** 2, axis=0)) / scale
        errors[np.any(np.abs(Vt[rank:]) > 1e-6, axis=0)] = np.inf
        covariance = (Vt[:rank].T / s[:rank] ** 2) @ Vt[:rank] / np.outer(scale, scale)
        condition = float(s[0] / s[-1]) if s[-1] > 0 else np.inf
        return _Linear(prior + step / scale, errors, covariance, noise, R, z, condition, rank)


@dataclass(frozen=True, eq=False)
class _Linear:
    beta: Array
    errors: Array
    covariance: Array
    noise: Array
    R: Array
    z: Array
    condition: float
    rank: int


@dataclass(frozen=True, eq=False)
class _Estimate:
    pi: Array
    errors: Array
    informed: Array
    """how much less the variance is than that of the prior, 0 to 1"""


def _free(compiled: CompiledRegressor, fixed: Sequence[str]) -> Array:
    joints = compiled.tree.joints
    known = {joint.child for joint in joints} | {joint.name for joint in joints}
    for name in fixed:
        if name not in known:
            raise ArgumentError(unknown("identify: fixed: no moving body or joint", name, sorted(known)))
    found = []
    for k, column in enumerate(compiled.columns):
        joint = joints[column.node]
        if column.kind == "inertia":
            massless = compiled.pi[10 * column.node] == 0
            held = joint.child in fixed or massless
        else:
            held = joint.name in fixed
        if not held:
            found.append(k)
    return np.array(found, dtype=int)


def _lifted(problem: _Problem, linear: _Linear) -> _Estimate:
    """The parameters nearest to the prior that have the base parameters of (1)."""
    K, pi = problem.base.K, problem.pi
    scale = np.maximum(np.abs(pi), _FLOOR * _sizes(problem))
    lift = scale[:, None] * np.linalg.pinv(K * scale)
    found = pi + lift @ (linear.beta - K @ pi)
    errors = np.sqrt(np.maximum(np.diag(lift @ linear.covariance @ lift.T), 0.0))
    informed = np.clip(np.diag(lift @ K), 0.0, 1.0)
    unknown = np.any((np.abs(lift) > 0) & np.isinf(linear.errors), axis=1)
    errors[unknown | (informed < 1 - 1e-6)] = np.inf  # the data alone do not tell these
    return _Estimate(found, errors, informed)


def _sizes(problem: _Problem) -> Array:
    """For each parameter what its body's mass and radius make of it, m, m r or m r^2; of joints all of the effort."""
    found = _full_effort(problem)
    inertial = _inertial(problem)
    tens = problem.pi[inertial].reshape(-1, 10)
    mass = tens[:, 0]
    radius = np.sqrt(
        np.maximum(np.trace(consistent.pseudo_inertia(tens)[:, :3, :3], axis1=1, axis2=2) / mass, 0)
    )
    radius = np.where(radius > 0, radius, radius.max(initial=0.0) or 1.0)
    found[inertial] = (mass[:, None] * radius[:, None] ** np.repeat([0, 1, 2], [1, 3, 6])).ravel()
    return found


def _inertial(problem: _Problem) -> Array:
    """Which of the free parameters are of bodies, ten of each."""
    return np.array([problem.compiled.columns[k].kind == "inertia" for k in problem.free])


def _consistent(problem: _Problem, linear: _Linear, spread: float) -> _Estimate:
    """(2), (3)"""
    inertial = _inertial(problem)
    rest = problem.pi[~inertial]
    order = np.argsort(~inertial, kind="stable")  # inertias come first in x
    Q, T = np.linalg.qr(linear.R[:, problem.base.independent])
    fit = ConsistentFit(
        R=(T @ problem.base.K)[:, order],  # all that depends on pi
        z=Q.T @ linear.z,
        tens=consistent.lifted(problem.pi[inertial].reshape(-1, 10)),
        rest=rest,
        scale=np.where(rest > 0, rest, _full_effort(problem)[~inertial]),
        spread=spread,
    )
    x = fit.start()
    try:
        for weight in _continuation(problem, linear):
            x = fit.solve(x, weight)
    except NumericalError as error:
        columns = [problem.compiled.columns[k] for k in problem.free]
        against = impossible(problem.base, columns, linear.beta, linear.errors)
        if not against:
            raise
        raise NumericalError(
            f"identify: no bodies come near the parameters that fit best ({against}). {CAUSES} "
            "method='least_squares' gives those parameters as they are"
        ) from error
    inside = fit.inside(x)
    D = fit.slopes(x)
    _, s, Vt = np.linalg.svd(np.vstack([fit.R @ D, np.eye(len(x)) / spread])[:, inside], full_matrices=False)
    half = D[:, inside] @ (Vt.T / s)
    variance = np.sum(half**2, axis=1)
    before = spread**2 * np.sum(D**2, axis=1)
    informed = np.clip(1 - variance / np.where(before > 0, before, 1.0), 0.0, 1.0)
    back = np.empty(len(x), dtype=int)
    back[order] = np.arange(len(x))
    return _Estimate(fit.values(x)[back], np.sqrt(variance)[back], informed[back])


def _continuation(problem: _Problem, linear: _Linear) -> list[float]:
    """Weights of the data, the last one 1.

    Almost noiseless data make a narrow curved valley of what they leave open; it is followed from less exact
    ones.
    """
    effort = np.sqrt(np.mean((problem.tau - problem.known) ** 2, axis=0))
    measured = np.isfinite(linear.noise)
    ratio = float(np.median(linear.noise[measured] / np.maximum(effort[measured], 1e-300)))
    first = min(1.0, ratio / _EASY)
    return [*np.geomspace(first, 1.0, 1 + int(np.ceil(-np.log10(first))))] if first < 1 else [1.0]


def _full_effort(problem: _Problem) -> Array:
    """For each parameter, the value at which it would take all of the effort it acts on."""
    effort = np.sqrt(np.mean((problem.tau - problem.known) ** 2, axis=0))
    size = np.sqrt(np.mean(problem.Y**2, axis=0))
    most = np.argmax(size, axis=0)
    columns = np.arange(size.shape[1])
    return np.maximum(effort[most], 1e-9) / np.maximum(size[most, columns], 1e-9)
