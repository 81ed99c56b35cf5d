"""Kalman filters that carry a root S of the covariance, P = S S^T, instead of P itself.

One orthogonal transformation of an array does a measurement y = C x + v (Kaminski, Bryson and Schmidt 1971, "Discrete
square root filtering: a survey"; in this array form Morf and Kailath 1975): with R = E v v^T = N N^T,

    [Y  N]           [S_y  0 ]
    [X  0]  Theta =  [K'   S+],      K = K' S_y^-1,      X X^T = P,   Y = C X                                        (1)

where the right side is lower triangular: S_y is the root of the innovation's covariance, S+ that of what is left. A step
x+ = A x + G w makes S+ from [A S, G Q^(1/2)] in the same way. No difference of covariances is ever formed, so that P stays
positive, and half of the digits suffice. X need not be square: columns of deviations of sigma points do as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.control import arguments
from alembert.control.gramian import semidefinite_root
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray


def triangular_root(columns: Array) -> Array:
    """The lower triangular S, its diagonal not negative, with S S^T = columns columns^T."""
    R = np.asarray(np.linalg.qr(columns.T, mode="r"))
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    root = (R * signs[:, None]).T
    rows, found = columns.shape[0], root.shape[1]
    return root if found == rows else np.hstack([root, np.zeros((rows, rows - found))])


def covariance_root(function: str, name: str, value: Any, signals: Any) -> Array:
    """A root of a covariance: given as a matrix, as its diagonal, or as one number."""
    return triangular_root(semidefinite_root(arguments.weight(function, name, value, signals)))


@dataclass(frozen=True, eq=False)
class Correction:
    """What a measurement does, by (1): the change of the state, the root that is left, and how likely the innovation was."""

    change: Array
    S: Array
    innovation: Array
    S_y: Array
    """root of the covariance of the innovation"""

    @property
    def nis(self) -> float:
        """The innovation squared, in units of its covariance: of a filter that fits, on average as many as measurements."""
        return float(np.sum(scipy.linalg.solve_triangular(self.S_y, self.innovation, lower=True) ** 2))


def correction(X: Array, Y: Array, N: Array, innovation: Array) -> Correction:
    """(1)"""
    n, m = len(X), len(Y)
    root = triangular_root(np.block([[Y, N], [X, np.zeros((n, N.shape[1]))]]))
    S_y, gain = root[:m, :m], root[m:, :m]
    if m and np.min(np.diag(S_y)) <= 1e-14 * max(float(np.abs(S_y).max()), 1e-300):
        raise NumericalError(
            "correction: a measurement has no noise and is known already, its innovation has no covariance; give the "
            "sensors some noise"
        )
    weights = scipy.linalg.solve_triangular(S_y, innovation, lower=True) if m else innovation
    return Correction(gain @ weights, root[m:, m:], innovation, S_y)


@dataclass(frozen=True, eq=False)
class LinearEstimate:
    """An estimate x of a state, and the root S of its covariance."""

    x: Array
    S: Array

    @property
    def P(self) -> Array:
        return self.S @ self.S.T

    @property
    def deviations(self) -> Array:
        """Standard deviations of the states."""
        return np.linalg.norm(self.S, axis=1)

    def nees(self, truth: Any) -> float:
        """The error squared, in units of its covariance: of a filter that fits, on average as many as states."""
        error = arguments.numbers("nees", "truth", truth) - self.x
        return float(np.sum(np.linalg.lstsq(self.S, error, rcond=None)[0] ** 2))


@dataclass(frozen=True, eq=False)
class SquareRootKalman:
    """The Kalman filter of a sampled plant from sample to sample, from any start: x+ = A x + B u + G w, y = C x + D u + v.

    `process` and `sensor` are covariances of w and v (matrices, diagonals or numbers), `through` is G, as in `lqe`, whose
    gain this filter comes to in time.
    """

    plant: StateSpace
    process: Any
    sensor: Any
    through: Any = None

    def __post_init__(self) -> None:
        what, G = "SquareRootKalman", self.plant
        if not G.is_discrete:
            raise ArgumentError(
                f"{what}: the plant is continuous, expected a sampled one; al.control.c2d(plant, dt) makes it"
            )
        way, W = arguments.process_noise(what, G, self.process, self.through)
        object.__setattr__(self, "through", way)
        object.__setattr__(self, "process", way @ semidefinite_root(W))
        object.__setattr__(self, "sensor", covariance_root(what, "sensor", self.sensor, G.output_names))

    def start(self, x: Any, covariance: Any) -> LinearEstimate:
        """What is known before the first sample."""
        G = self.plant
        x = arguments.numbers("start", "x", x)
        if x.shape != (G.order,):
            raise ArgumentError(f"start: x has shape {x.shape}, expected ({G.order},)")
        return LinearEstimate(x, covariance_root("start", "covariance", covariance, G.state_names))

    def correct(self, estimate: LinearEstimate, y: Any, u: Any = None) -> tuple[LinearEstimate, Correction]:
        """The estimate with a sample y taken in; those that are NaN were lost."""
        G = self.plant
        y = np.asarray(y, dtype=float)
        if y.shape != (G.shape[0],):
            raise ArgumentError(f"correct: y has shape {y.shape}, expected ({G.shape[0]},)")
        there = np.isfinite(y)
        C, left = G.C[there], y - G.C @ estimate.x - G.D @ self._input("correct", u)
        noise = triangular_root(self.sensor[there])
        found = correction(estimate.S, C @ estimate.S, noise, left[there])
        return LinearEstimate(estimate.x + found.change, found.S), found

    def predict(self, estimate: LinearEstimate, u: Any = None) -> LinearEstimate:
        """The estimate one sample later."""
        G = self.plant
        x = G.A @ estimate.x + G.B @ self._input("predict", u)
        return LinearEstimate(x, triangular_root(np.hstack([G.A @ estimate.S, self.process])))

    def filtered(self, start: LinearEstimate, y: Any, u: Any = None) -> tuple[list[LinearEstimate], Array]:
        """Estimates after each of the samples y (times, outputs), and the innovations squared (times,)."""
        y = np.asarray(y, dtype=float)
        inputs = [None] * len(y) if u is None else list(np.asarray(u, dtype=float))
        found, squares, now = [], [], start
        for sample, effort in zip(y, inputs, strict=True):
            after, told = self.correct(now, sample, effort)
            found.append(after)
            squares.append(told.nis)
            now = self.predict(after, effort)
        return found, np.array(squares)

    def _input(self, function: str, u: Any) -> Array:
        m = self.plant.shape[1]
        u = np.zeros(m) if u is None else np.atleast_1d(arguments.numbers(function, "u", u))
        if u.shape != (m,):
            raise ArgumentError(f"{function}: u has shape {u.shape}, expected ({m},)")
        return u
