"""Attitude from vectors (TRIAD, QUEST), and over time with a gyro (multiplicative extended Kalman filter).

Quaternions (wxyz) turn body axes to inertial ones: r = R(q) b for a direction b seen in the body and r known. The filter's
error is a small rotation a in body axes, q_true = q exp(a), and the error of the gyro's bias, with covariance P (6, 6)
(Lefferts, Markley and Shuster, J. Guidance 5 (1982) 417):

    a' = -w x a - db - n_v,   db' = n_u;    Phi and Q over a step as in Farrenkopf's model                              (1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.spatial import quaternion

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


def quest(body: Any, inertial: Any, weights: Any = None) -> tuple[Array, Array]:
    """q and its covariance (3, 3) from directions (n, 3) in both axes: Wahba's problem by Davenport's largest eigenvalue.

    `weights` are 1/sigma^2 of the directions [1/rad^2]; the covariance is of small rotations in body axes (Shuster and Oh,
    J. Guidance 4 (1981) 70).
    """
    b, r = (np.asarray(x, dtype=float) for x in (body, inertial))
    b, r = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (b, r))
    w = np.ones(len(b)) if weights is None else np.asarray(weights, dtype=float)
    if len(b) < 2 or b.shape != r.shape or w.shape != (len(b),):
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

    `noise` is the gyro's angle random walk [rad/sqrt(s)], `walk` that of its bias [rad/s/sqrt(s)].
    """

    q: Array
    bias: Array
    P: Array
    noise: float
    walk: float

    @classmethod
    def start(
        cls, q_wxyz: Any, *, noise: float, walk: float, angle: float = 0.1, bias: float = 1e-3
    ) -> AttitudeFilter:
        """With standard deviations of the first attitude [rad] and bias [rad/s]."""
        P = np.diag([angle**2] * 3 + [bias**2] * 3)
        return cls(np.asarray(q_wxyz, dtype=float), np.zeros(3), P, noise, walk)

    def propagate(self, rate: Any, h: float) -> AttitudeFilter:
        """(1) over a time with the gyro's reading held."""
        w = np.asarray(rate, dtype=float) - self.bias
        turn = quaternion.exp(w * h)
        q = np.asarray(quaternion.multiply(self.q, turn), dtype=float)
        back = np.asarray(quaternion.to_matrix(turn), dtype=float).T
        Phi = np.eye(6)
        Phi[:3, :3], Phi[:3, 3:] = back, -h * np.eye(3)
        n2, u2 = self.noise**2, self.walk**2
        Q = np.zeros((6, 6))
        Q[:3, :3] = (n2 * h + u2 * h**3 / 3) * np.eye(3)
        Q[:3, 3:] = Q[3:, :3] = -u2 * h**2 / 2 * np.eye(3)
        Q[3:, 3:] = u2 * h * np.eye(3)
        return replace(self, q=q / np.linalg.norm(q), P=Phi @ self.P @ Phi.T + Q)

    def with_attitude(self, q_wxyz: Any, sigma: Any) -> AttitudeFilter:
        """Corrected by a star tracker's quaternion, with the standard deviations of its small angles [rad]."""
        e = np.asarray(
            quaternion.multiply(quaternion.conjugate(self.q), np.asarray(q_wxyz, dtype=float)), dtype=float
        )
        e = e if e[0] >= 0 else -e
        H = np.hstack([np.eye(3), np.zeros((3, 3))])
        return self._corrected(np.asarray(quaternion.log(e), dtype=float), H, np.broadcast_to(sigma, 3))

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

    def _corrected(self, y: Array, H: Array, sigma: Array) -> AttitudeFilter:
        R = np.diag(np.asarray(sigma, dtype=float) ** 2)
        K = np.linalg.solve(H @ self.P @ H.T + R, H @ self.P).T
        x = K @ y
        left = np.eye(6) - K @ H
        P = left @ self.P @ left.T + K @ R @ K.T
        q = np.asarray(quaternion.multiply(self.q, quaternion.exp(x[:3])), dtype=float)
        return replace(self, q=q / np.linalg.norm(q), bias=self.bias + x[3:], P=(P + P.T) / 2)

    def rate(self, measured: Any) -> Array:
        """The gyro's reading without its bias."""
        return np.asarray(measured, dtype=float) - self.bias

    def as_message(self) -> Array:
        """(45,): all of it but the densities, for messages of flight tasks."""
        return np.r_[self.q, self.bias, self.P.ravel(), self.noise, self.walk]

    @classmethod
    def of_message(cls, x: Array) -> AttitudeFilter:
        return cls(x[:4].copy(), x[4:7].copy(), x[7:43].reshape(6, 6).copy(), float(x[43]), float(x[44]))

    def consistency(self, q_wxyz: Any, bias: Any) -> float:
        """The error squared over its covariance: the mean over many runs is 6 where the filter is honest."""
        e = np.asarray(
            quaternion.multiply(quaternion.conjugate(self.q), np.asarray(q_wxyz, dtype=float)), dtype=float
        )
        e = e if e[0] >= 0 else -e
        x = np.r_[np.asarray(quaternion.log(e), dtype=float), np.asarray(bias, dtype=float) - self.bias]
        return float(x @ np.linalg.solve(self.P, x))
