"""Ready control laws: functions of numbers that flight tasks call.

    quaternion feedback    u = -K_p sign(e_0) 2 e - K_d (w - w_t) + w x (J w + h),   e the error q_t^-1 q                (1)
    sliding mode (Dwyer)   u = -k sat(s/width) + w x (J w + h) - (c/2) J (e_0 dw + e x dw),  s = dw + c sign(e_0) e      (2)
    magnetic unloading     m = k H x B / |B|^2,  torque m x B = -k H_perp                                             (3)
    gyro steering          d = A' (A A' + lambda E)^-1 u / h,   lambda = lambda_0 exp(-mu det(A A'))                     (4)

(1) Wie, Space Vehicle Dynamics and Control, section 7.3; (2) Dwyer and Sira-Ramirez, J. Guidance 11 (1988) 262; (4) Wie, J.
Guidance 28 (2005) 282, with off-diagonal terms in E that lead out of singular directions. u is the torque on the craft.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.spacecraft.devices import ControlMomentGyro, ReactionWheel
from alembert.spatial import quaternion

Array = np.ndarray


def attitude_error(q_wxyz: Any, target_wxyz: Any) -> Array:
    """(4,): the rotation from the target's axes to the body's, q_t^-1 q, the short way round."""
    q, target = np.asarray(q_wxyz, dtype=float), np.asarray(target_wxyz, dtype=float)
    e = np.asarray(quaternion.multiply(quaternion.conjugate(target), q), dtype=float)
    return e if e[0] >= 0 else -e


def quaternion_feedback(
    q_wxyz: Any,
    rate: Any,
    *,
    inertia: Any,
    stiffness: Any,
    damping: Any,
    target_wxyz: Any = (1.0, 0.0, 0.0, 0.0),
    target_rate: Any = (0.0, 0.0, 0.0),
    momentum: Any = (0.0, 0.0, 0.0),
) -> Array:
    """(1): the torque on the craft in its axes [N m]. The target's rate is in the target's axes; h is that of wheels."""
    e = attitude_error(q_wxyz, target_wxyz)
    w, J = np.asarray(rate, dtype=float), np.asarray(inertia, dtype=float)
    wanted = np.asarray(quaternion.to_matrix(e), dtype=float).T @ np.asarray(target_rate, dtype=float)
    gyroscopic = np.cross(w, J @ w + np.asarray(momentum, dtype=float))
    return -np.asarray(stiffness) * 2 * e[1:] - np.asarray(damping) * (w - wanted) + gyroscopic


def gains(inertia: Any, frequency: float, damping_ratio: float = 0.7071) -> tuple[Array, Array]:
    """Stiffness J omega^2 and damping 2 zeta omega J of (1), by axis, for a bandwidth [rad/s]."""
    J = np.diag(np.asarray(inertia, dtype=float))
    return J * frequency**2, 2 * damping_ratio * frequency * J


def sliding_mode(
    q_wxyz: Any,
    rate: Any,
    *,
    inertia: Any,
    torque: Any,
    slope: float,
    width: float = 0.01,
    target_wxyz: Any = (1.0, 0.0, 0.0, 0.0),
    momentum: Any = (0.0, 0.0, 0.0),
) -> Array:
    """(2): slews along a sliding surface, `slope` [1/s], with at most `torque` [N m] beside the gyroscopic part."""
    e = attitude_error(q_wxyz, target_wxyz)
    w, J = np.asarray(rate, dtype=float), np.asarray(inertia, dtype=float)
    s = w + slope * e[1:]
    e_rate = (e[0] * w + np.cross(e[1:], w)) / 2
    drift = np.cross(w, J @ w + np.asarray(momentum, dtype=float)) - slope * J @ e_rate
    return drift - np.asarray(torque) * np.clip(s / width, -1.0, 1.0)


def wheel_torques(wheels: Sequence[ReactionWheel], torque: Any) -> Array:
    """Motor torques of wheels that give a torque on the craft, of least norm."""
    A = np.array([wheel.axis for wheel in wheels]).T
    rank = int(np.linalg.matrix_rank(A, tol=1e-9))
    if rank < 3:
        raise ArgumentError(
            f"wheel_torques: the axes of {len(wheels)} wheels span {rank} directions, expected 3"
        )
    return -np.linalg.pinv(A) @ np.asarray(torque, dtype=float)


def wheel_momentum(wheels: Sequence[ReactionWheel], speeds: Any) -> Array:
    """Of wheels at these speeds relative to the craft, in its axes [N m s]."""
    return sum(
        (w.inertia * s * np.array(w.axis) for w, s in zip(wheels, np.atleast_1d(speeds), strict=True)),
        np.zeros(3),
    )


def magnetic_unloading(momentum: Any, field: Any, gain: float, *, dipole: float = math.inf) -> Array:
    """(3): the dipole [A m^2] that takes momentum out, at most `dipole` along each axis, its direction kept."""
    H, B = np.asarray(momentum, dtype=float), np.asarray(field, dtype=float)
    square = float(B @ B)
    if not square > 0:
        return np.zeros(3)
    m = gain * np.cross(H, B) / square
    return m * min(1.0, dipole / max(float(np.abs(m).max()), 1e-300))


def gyro_jacobian(gyros: Sequence[ControlMomentGyro], angles: Any) -> tuple[Array, Array]:
    """A = dH/d(angles) (3, n), and H (3,), both in units of the gyros' momenta [N m s]."""
    columns, total = [], np.zeros(3)
    for gyro, angle in zip(gyros, np.atleast_1d(angles), strict=True):
        s, g = np.array(gyro.spin_axis), np.array(gyro.gimbal_axis)
        side = np.cross(g, s)
        c, d = math.cos(angle), math.sin(angle)
        total += gyro.momentum * (c * s + d * side)
        columns.append(gyro.momentum * (c * side - d * s))
    return np.array(columns).T, total


def gyro_steering(
    gyros: Sequence[ControlMomentGyro],
    angles: Any,
    torque: Any,
    *,
    robustness: float = 0.01,
    steepness: float = 10.0,
    t: float = 0.0,
) -> Array:
    """(4): gimbal rates [rad/s] that give a torque on the craft, without passing all bounds near singular angles.

    A large gyroscopic torque is what the rotors lose: u = -A d. Near a singular place the rates stay finite and lead out
    of it, at the cost of some torque.
    """
    A, _ = gyro_jacobian(gyros, angles)
    scale = float(np.mean([gyro.momentum for gyro in gyros]))
    A = A / scale
    off = 0.1 * np.sin(0.5 * np.pi * t + np.array([0.0, np.pi / 2, np.pi]))
    E = np.array([[1, off[2], off[1]], [off[2], 1, off[0]], [off[1], off[0], 1]])
    weight = robustness * math.exp(-steepness * float(np.linalg.det(A @ A.T)))
    rates = A.T @ np.linalg.solve(A @ A.T + weight * E, -np.asarray(torque, dtype=float) / scale)
    most = min(gyro.rate for gyro in gyros)
    return rates * min(1.0, most / max(float(np.abs(rates).max()), 1e-300))


def momentum_management(
    inertia: Any, orbital_rate: float, *, angle: float = 0.02, momentum: float = 100.0
) -> tuple[Array, Array]:
    """Gains (K_pitch (1, 4), K_roll_yaw (2, 8)) that hold a station's attitude and its gyros' momentum by the
    gravity gradient.

    States are angle and rate relative to the local axes, momentum and its integral, by axis; the law u = -K x is the torque
    that gyros give (on the craft -u), x by `angle` [rad] and `momentum` [N m s] weighted (Wie et al., J. Guidance 12 (1989)
    634). The attitude goes to where the mean torque is zero, not to zero.
    """
    from scipy.linalg import solve_continuous_are

    I1, I2, I3 = np.diag(np.asarray(inertia, dtype=float))
    n = orbital_rate

    def lqr(A: Array, B: Array, Q: Array, R: Array) -> Array:
        P = solve_continuous_are(A, B, Q, R)
        return np.linalg.solve(R, B.T @ P)

    weights = 1 / np.array([angle, angle * n, momentum, momentum / n]) ** 2
    effort = np.array([[1 / (momentum * n) ** 2]])
    A = np.zeros((4, 4))
    A[0, 1], A[3, 2] = 1.0, 1.0
    A[1, 0] = -3 * n**2 * (I1 - I3) / I2
    B = np.array([[0.0], [-1 / I2], [1.0], [0.0]])
    pitch = lqr(A, B, np.diag(weights), effort)
    A = np.zeros((8, 8))  # roll: angle, rate, h, integral; yaw likewise
    A[0, 1] = A[4, 5] = A[3, 2] = A[7, 6] = 1.0
    A[1, 0], A[1, 5] = -4 * n**2 * (I2 - I3) / I1, n * (I1 - I2 + I3) / I1
    A[5, 4], A[5, 1] = -(n**2) * (I2 - I1) / I3, -n * (I1 - I2 + I3) / I3
    A[2, 6], A[6, 2] = n, -n
    B = np.zeros((8, 2))
    B[1, 0], B[2, 0], B[5, 1], B[6, 1] = -1 / I1, 1.0, -1 / I3, 1.0
    both = lqr(A, B, np.diag(np.r_[weights, weights]), effort * np.eye(2))
    return pitch, both
