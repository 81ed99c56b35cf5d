"""Attitude from vectors (TRIAD, QUEST), and over time with a gyro (multiplicative extended Kalman filter).

Quaternions (wxyz) turn body axes to inertial ones: r = R(q) b for a direction b seen in the body and r known. The filter's
error is a small rotation a in body axes, q_true = q exp(a), and the error of the gyro's bias, with covariance P (6, 6)
(Lefferts, Markley and Shuster, J. Guidance 5 (1982) 417):

    a' = -w x a - db - n_v,   db' = n_u;    Phi and Q over a step as in Farrenkopf's model                              (1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import Numbers, numbers
from alembert.errors import ArgumentError
from alembert.spatial import quaternion
from alembert.spatial.arrays import as_array, is_symbolic, matrix, solve, symmetric, vector

Array = np.ndarray


def triad(first: tuple[Any, Any], second: tuple[Any, Any]) -> Array:
    """(4,): q from two pairs (b, r) of a direction in body and in inertial axes; the first counts fully."""

    def frame(a: Any, b: Any) -> Array:
        x = np.asarray(a, dtype=float)
        x = x / np.linalg.norm(x)
        y = np.cross(x, np.asarray(b, dtype=float))
        size = np.linalg.norm(y)
        if not size > 1e-9 * np.linalg.norm(b):
            raise ArgumentError("triad: the two directions are parallel, expected an angle between them")
        y = y / size
        return np.stack([x, y, np.cross(x, y)], axis=1)

    B, R = frame(first[0], second[0]), frame(first[1], second[1])
    return np.asarray(quaternion.from_matrix(R @ B.T), dtype=float)


def quest(body: Any, inertial: Any, weights: Numbers = None) -> tuple[Array, Array]:
    """q and its covariance (3, 3) from directions (n, 3) in both axes: Wahba's problem by Davenport's largest eigenvalue.

    `weights` are 1/sigma^2 of the directions [1/rad^2]; the covariance is of small rotations in body axes (Shuster and Oh,
    J. Guidance 4 (1981) 70).
    """
    b, r = numbers("quest", "body", body, 3), numbers("quest", "inertial", inertial, 3)
    w = np.ones(len(b)) if weights is None else numbers("quest", "weights", weights)
    sizes = np.concatenate([np.linalg.norm(x, axis=-1).ravel() for x in (b, r)])
    if not (np.all(sizes > 0) and np.isfinite(sizes).all() and np.all(w >= 0) and np.isfinite(w).all()):
        raise ArgumentError(
            "quest: a direction is zero or not finite, or a weight negative; leave such pairs out"
        )
    b, r = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (b, r))
    if b.ndim != 2 or len(b) < 2 or b.shape != r.shape or w.shape != (len(b),):
        raise ArgumentError(
            f"quest: {b.shape} and {r.shape} with weights {w.shape}, expected two or more pairs of directions"
        )
    B = np.einsum("k,ki,kj->ij", w, r, b)
    S, z = B + B.T, np.array([B[2, 1] - B[1, 2], B[0, 2] - B[2, 0], B[1, 0] - B[0, 1]])
    K = np.block([[np.trace(B) * np.eye(1), z[None]], [z[:, None], S - np.trace(B) * np.eye(3)]])
    _, vectors = np.linalg.eigh(K)
    q = vectors[:, -1]
    information = sum(
        (wk * (np.eye(3) - np.outer(bk, bk)) for wk, bk in zip(w, b, strict=True)), np.zeros((3, 3))
    )
    if np.linalg.cond(information) > 1e14:
        raise ArgumentError("quest: all directions are parallel, expected an angle between them")
    return (q if q[0] >= 0 else -q), np.linalg.inv(information)


@dataclass(frozen=True, eq=False)
class AttitudeFilter:
    """The state of the filter: attitude, bias of the gyro [rad/s] and covariance. All methods give a new one.

    It is made of numbers, or of expressions.

    `noise` is the gyro's angle random walk [rad/sqrt(s)], `walk` that of its bias [rad/s/sqrt(s)].
    """

    q: Any
    bias: Any
    P: Any
    noise: Any
    walk: Any

    @classmethod
    def start(
        cls, q_wxyz: Numbers, *, noise: float, walk: float, angle: float = 0.1, bias: float = 1e-3
    ) -> AttitudeFilter:
        """With standard deviations of the first attitude [rad] and bias [rad/s]."""
        q = q_wxyz if is_symbolic(q_wxyz) else np.asarray(q_wxyz, dtype=float)
        P = np.diag([angle**2] * 3 + [bias**2] * 3)
        return cls(q, as_array(np.zeros(3), q), as_array(P, q), noise, walk)

    def propagate(self, rate: Any, h: float) -> AttitudeFilter:
        """(1) over a time with the gyro's reading held."""
        turn = quaternion.exp(self.rate(rate) * h)
        q = quaternion.multiply(self.q, turn)
        one, zero = as_array(np.eye(3), turn), as_array(np.zeros((3, 3)), turn)
        Phi = matrix([[quaternion.to_matrix(turn).T, -h * one], [zero, one]])
        n2, u2 = self.noise**2, self.walk**2
        across = -u2 * h**2 / 2 * one
        Q = matrix([[(n2 * h + u2 * h**3 / 3) * one, across], [across, u2 * h * one]])
        return replace(self, q=quaternion.normalize(q), P=symmetric(Phi @ self.P @ Phi.T + Q))

    def with_attitude(self, q_wxyz: Numbers, sigma: Any) -> AttitudeFilter:
        """Corrected by a star tracker's quaternion, with the standard deviations of its small angles [rad]."""
        seen = q_wxyz if is_symbolic(q_wxyz) else np.asarray(q_wxyz, dtype=float)
        e = quaternion.log(quaternion.multiply(quaternion.conjugate(self.q), seen))
        H = np.hstack([np.eye(3), np.zeros((3, 3))])
        return self._corrected(e, H, np.broadcast_to(np.asarray(sigma, dtype=float), 3))

    def with_direction(self, body: Any, inertial: Any, sigma: float) -> AttitudeFilter:
        """Corrected by one direction, seen in the body and known in inertial axes, of standard deviation [rad]."""
        b, r = (np.asarray(x, dtype=float) / np.linalg.norm(x) for x in (body, inertial))
        expected = np.asarray(quaternion.to_matrix(self.q), dtype=float).T @ r
        across = np.linalg.svd(expected[None])[2][1:]  # of a direction two components can be off
        skew = np.array(
            [[0, -expected[2], expected[1]], [expected[2], 0, -expected[0]], [-expected[1], expected[0], 0]]
        )
        H = np.hstack([across @ skew, np.zeros((2, 3))])
        return self._corrected(across @ (b - expected), H, np.full(2, sigma))

    def _corrected(self, y: Any, H: Any, sigma: Array) -> AttitudeFilter:
        H, R = as_array(H, y), as_array(np.diag(sigma**2), y)
        K = solve(H @ self.P @ H.T + R, H @ self.P).T
        x = K @ y
        left = as_array(np.eye(6), y) - K @ H
        P = left @ self.P @ left.T + K @ R @ K.T
        q = quaternion.multiply(self.q, quaternion.exp(x[:3]))
        return replace(self, q=quaternion.normalize(q), bias=self.bias + x[3:6], P=symmetric(P))

    def rate(self, measured: Any) -> Any:
        """The gyro's reading without its bias."""
        return (measured if is_symbolic(measured) else np.asarray(measured, dtype=float)) - self.bias

    def as_message(self) -> Any:
        """(45,): all of it but the densities, for messages of flight tasks."""
        flat = ca.vec(self.P) if is_symbolic(self.P) else self.P.ravel()
        return vector(self.q, self.bias, flat, self.noise, self.walk)

    @classmethod
    def of_message(cls, x: Any) -> AttitudeFilter:
        if is_symbolic(x):
            return cls(x[:4], x[4:7], ca.reshape(x[7:43], 6, 6), x[43], x[44])
        return cls(x[:4].copy(), x[4:7].copy(), x[7:43].reshape(6, 6).copy(), float(x[43]), float(x[44]))

    def consistency(self, q_wxyz: Numbers, bias: Any) -> float:
        """The error squared over its covariance: the mean over many runs is 6 where the filter is honest."""
        e = np.asarray(
            quaternion.multiply(quaternion.conjugate(self.q), np.asarray(q_wxyz, dtype=float)), dtype=float
        )
        e = e if e[0] >= 0 else -e
        x = np.r_[np.asarray(quaternion.log(e), dtype=float), np.asarray(bias, dtype=float) - self.bias]
        return float(x @ np.linalg.solve(self.P, x))
