"""Attitude determination and control: estimators and laws of numbers, or of expressions, that flight tasks call.

Quaternions (wxyz) turn body axes to inertial ones: r = R(q) b for a direction b seen in the body and r known (TRIAD,
QUEST). The error of the multiplicative extended Kalman filter is a small rotation a in body axes, q_true = q exp(a), and
the error of the gyro's bias, with covariance P (6, 6) (Lefferts, Markley and Shuster, J. Guidance 5 (1982) 417):

    a' = -w x a - db - n_v,   db' = n_u;    Phi and Q over a step as in Farrenkopf's model                              (0)

Laws:

    quaternion feedback    u = -K_p sign(e_0) 2 e - K_d (w - w_t) + w x (J w + h),   e the error q_t^-1 q                (1)
    sliding mode (Dwyer)   u = -k sat(s/width) + w x (J w + h) - (c/2) J (e_0 dw + e x dw),  s = dw + c sign(e_0) e      (2)
    magnetic unloading     m = k H x B / |B|^2,  torque m x B = -k H_perp                                             (3)
    gyro steering          d = A' (A A' + lambda E)^-1 u / h,   lambda = lambda_0 exp(-mu det(A A'))                     (4)

(1) Wie, Space Vehicle Dynamics and Control, section 7.3; (2) Dwyer and Sira-Ramirez, J. Guidance 11 (1988) 262; (4) Wie, J.
Guidance 28 (2005) 282, with off-diagonal terms in E that lead out of singular directions. u is the torque on the craft.

Slews along a sliding surface are designed so that they are proven to get there (Dwyer and Sira-Ramirez 1988; Dwyer, Karray
and Kim 1989). The craft has the inertia J = J_0 + D, |D| <= d, of which J_0 is known, and a disturbance torque |f| <= F
acts. With the law `sliding_mode`, s = w + c e, e the vector part of the error's quaternion,

    J s' = -w x (D w) + c D e' + f - k sat(s/p),      |w| <= |s| + c,   |e'| <= |w|/2                                   (5)

Let a be the largest |s| on the way, k = T + n with T = d (a + c)^2 + c d (a + c)/2 + F. As s_i sat(s_i/p) >= |s_i| - p/4,
V = s^T J s / 2 obeys

    V' <= -n |s| + (3/4) p k,                                                                                          (6)

so that |s| falls to 2 r, r = (3/4) p k / n, within 2 j |s_0| / n (j and i the largest and least moments of inertia), and
stays below q = 2 r sqrt(j/i); on the way a <= sqrt(j/i) max(|s_0|, 2 r). Then (|e|^2)' = e_0 (e s - c |e|^2) takes |e|
below q/c, where it stays: the pointing error is at most 2 asin(q/c). k and p follow from the time to reach and this
accuracy. The proof is one for continuous time: a sampled law needs a period well below J p/k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from alembert import arguments
from alembert.arguments import Numbers, numbers, positive, real
from alembert.control import StateSpace, lqr
from alembert.errors import ArgumentError, NumericalError
from alembert.spacecraft.devices import ControlMomentGyro, ReactionWheel
from alembert.spatial import quaternion
from alembert.spatial.arrays import (
    as_array,
    clip,
    cos,
    cross,
    dot,
    is_symbolic,
    matrix,
    sin,
    skew,
    solve,
    symmetric,
    vector,
    where,
)

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
        """(0) over a time with the gyro's reading held."""
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
        H = np.hstack([across @ skew(expected), np.zeros((2, 3))])
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


@dataclass(frozen=True, eq=False)
class SlidingDesign:
    """A law of `sliding_mode`, and what is proven of it for all inertias and disturbances of the design."""

    inertia: Array
    slope: float
    """c [1/s]"""
    torque: float
    """k [N m], by axis"""
    width: float
    """p [rad/s], of the layer in which the law is linear"""
    reach: float
    """the surface is reached within [s]"""
    accuracy: float
    """the pointing error ends below [rad]"""
    rate: float
    """on the way, no rate is above [rad/s]"""
    peak_torque: float
    """nor a torque of the law above [N m], its size; without the momentum of wheels"""
    start: float
    """the largest |s| for which all this holds [rad/s]"""

    def law(
        self,
        q_wxyz: Numbers,
        rate: Any,
        *,
        target_wxyz: Numbers = (1.0, 0.0, 0.0, 0.0),
        momentum: Numbers = (0.0, 0.0, 0.0),
    ) -> Any:
        """The torque on the craft in its axes [N m], of numbers or expressions."""
        return sliding_mode(
            q_wxyz,
            rate,
            inertia=self.inertia,
            torque=self.torque,
            slope=self.slope,
            width=self.width,
            target_wxyz=target_wxyz,
            momentum=momentum,
        )


def sliding_design(
    inertia: Numbers,
    *,
    slope: float,
    reach: float,
    accuracy: float,
    angle: float = math.pi,
    rate: float = 0.0,
    inertia_error: float = 0.0,
    disturbance: float = 0.0,
) -> SlidingDesign:
    """Torque and layer of a sliding law that reaches its surface in time, and points as well as is asked.

    Args:
        inertia: (3, 3), that the law knows [kg m^2].
        slope: c [1/s]; on the surface a small angle halves every 1.39/c seconds.
        reach: time to reach the surface [s].
        accuracy: the pointing error at the end [rad].
        angle, rate: the largest ones at the start [rad, rad/s].
        inertia_error: the largest size of what the inertia differs by [kg m^2].
        disturbance: the largest torque from outside, its size [N m].
    """
    what = "sliding_design"
    J = arguments.numbers(what, "inertia", inertia)
    if J.shape != (3, 3) or not np.allclose(J, J.T) or np.linalg.eigvalsh(J)[0] <= 0:
        raise ArgumentError(
            f"sliding_design: inertia is {J.tolist()}, expected a symmetric, positive matrix (3, 3)"
        )
    for name, value in (("slope", slope), ("reach", reach), ("accuracy", accuracy)):
        real(what, name, value, "a number above zero", over=0.0)
    for name, value in (("rate", rate), ("inertia_error", inertia_error), ("disturbance", disturbance)):
        real(what, name, value, "a number of zero or more", least=0.0)
    real(what, "angle", angle, "at most pi, in rad, and not below zero", least=0.0, most=math.pi)
    moments = np.linalg.eigvalsh(J)
    least, most = float(moments[0]) - inertia_error, float(moments[-1]) + inertia_error
    if least <= 0:
        raise ArgumentError(
            f"sliding_design: inertia_error is {inertia_error:g} kg m^2, and the least moment of inertia {moments[0]:g}; "
            "nothing is known of a craft whose inertia may vanish"
        )
    ratio = math.sqrt(most / least)
    start = rate + slope * math.sin(angle / 2)
    end = slope * math.sin(min(accuracy, math.pi) / 2)  # q of the module's documentation
    r = end / (2 * ratio)
    largest = ratio * max(start, 2 * r)
    turning = largest + slope
    needed = inertia_error * (turning**2 + slope * turning / 2) + disturbance
    spare = 2 * most * max(start, 2 * r) / reach
    torque = needed + spare
    width = r * spare / (0.75 * torque)
    size = float(moments[-1])
    peak = size * turning**2 + slope * size * turning / 2 + math.sqrt(3) * torque
    return SlidingDesign(J, slope, torque, width, reach, accuracy, turning, peak, start)


def _given(who: str, what: str, x: Any, width: int = 3) -> Any:
    """An expression as it is, other things as arrays of so many numbers."""
    return x if is_symbolic(x) else numbers(who, what, x, width, batch=False)


def _attitude(who: str, what: str, x: Any) -> Any:
    q = _given(who, what, x, 4)
    if not is_symbolic(q) and not abs(np.linalg.norm(q) - 1) < 1e-3:
        raise ArgumentError(
            f"{who}: {what} has length {np.linalg.norm(q):.6g}, expected 1; divide by its length"
        )
    return q


def _tensor(who: str, inertia: Any) -> Any:
    """A matrix (3, 3), of three principal moments too."""
    J = inertia if is_symbolic(inertia) else numbers(who, "inertia", inertia)
    if J.shape in ((3,), (3, 1)):
        return ca.diag(J) if is_symbolic(J) else np.diag(J.ravel())
    if J.shape != (3, 3):
        raise ArgumentError(
            f"{who}: inertia has shape {J.shape}, expected (3, 3), or three principal moments"
        )
    return J


def _by_axis(who: str, what: str, given: Any) -> Any:
    """A number, or one for each axis."""
    x = given if is_symbolic(given) else numbers(who, what, given)
    if x.shape not in ((), (1, 1), (3,), (3, 1)):
        raise ArgumentError(f"{who}: {what} has shape {x.shape}, expected a number, or three by axis")
    return x


def attitude_error(q_wxyz: Numbers, target_wxyz: Any, who: str = "attitude_error") -> Any:
    """(4,): the rotation from the target's axes to the body's, q_t^-1 q, the short way round."""
    q, target = _attitude(who, "q_wxyz", q_wxyz), _attitude(who, "target_wxyz", target_wxyz)
    e = quaternion.multiply(quaternion.conjugate(as_array(target, q)), as_array(q, target))
    return where(e[0] < 0, -e, e)


def quaternion_feedback(
    q_wxyz: Numbers,
    rate: Any,
    *,
    inertia: Numbers,
    stiffness: Numbers,
    damping: Numbers,
    target_wxyz: Numbers = (1.0, 0.0, 0.0, 0.0),
    target_rate: Numbers = (0.0, 0.0, 0.0),
    momentum: Numbers = (0.0, 0.0, 0.0),
) -> Any:
    """(1): the torque on the craft in its axes [N m]. The target's rate is in the target's axes; h is that of wheels."""
    who = "quaternion_feedback"
    e, w = attitude_error(q_wxyz, target_wxyz, who), _given(who, "rate", rate)
    of_axes = (_by_axis(who, "stiffness", stiffness), _by_axis(who, "damping", damping))
    others = (_given(who, "target_rate", target_rate), _given(who, "momentum", momentum))
    J, Kp, Kd, turning, h = (as_array(x, w) for x in (_tensor(who, inertia), *of_axes, *others))
    wanted = quaternion.to_matrix(e).T @ turning
    return -Kp * 2 * e[1:4] - Kd * (w - wanted) + cross(w, J @ w + h)


def gains(inertia: Numbers, frequency: float, damping_ratio: float = 0.7071) -> tuple[Array, Array]:
    """Stiffness J omega^2 and damping 2 zeta omega J of (1), by axis, for a bandwidth [rad/s]."""
    J = np.diag(_tensor("gains", inertia))
    if not (np.all(J > 0) and positive("gains", "frequency", frequency)):
        raise ArgumentError(f"gains: inertia has the moments {J.tolist()}, expected positive ones")
    real("gains", "damping_ratio", damping_ratio, "zero or more", least=0.0)
    return J * frequency**2, 2 * damping_ratio * frequency * J


def sliding_mode(
    q_wxyz: Numbers,
    rate: Any,
    *,
    inertia: Numbers,
    torque: Numbers,
    slope: float,
    width: float = 0.01,
    target_wxyz: Numbers = (1.0, 0.0, 0.0, 0.0),
    momentum: Numbers = (0.0, 0.0, 0.0),
) -> Any:
    """(2): slews along a sliding surface, `slope` [1/s], with at most `torque` [N m] beside the gyroscopic part."""
    who = "sliding_mode"
    e, w = attitude_error(q_wxyz, target_wxyz, who), _given(who, "rate", rate)
    others = (_by_axis(who, "torque", torque), _given(who, "momentum", momentum))
    J, most, h = (as_array(x, w) for x in (_tensor(who, inertia), *others))
    s = w + slope * e[1:4]
    e_rate = (e[0] * w + cross(e[1:4], w)) / 2
    drift = cross(w, J @ w + h) - slope * (J @ e_rate)
    return drift - most * clip(s / width, 1.0)


def wheel_torques(wheels: Sequence[ReactionWheel], torque: Numbers) -> Any:
    """Motor torques of wheels that give a torque on the craft, of least norm."""
    A = np.array([wheel.axis for wheel in wheels]).T
    rank = int(np.linalg.matrix_rank(A, tol=1e-9))
    if rank < 3:
        raise ArgumentError(
            f"wheel_torques: the axes of {len(wheels)} wheels span {rank} directions, expected 3"
        )
    u = _given("wheel_torques", "torque", torque)
    return as_array(-np.linalg.pinv(A), u) @ u


def wheel_momentum(wheels: Sequence[ReactionWheel], speeds: Any) -> Any:
    """Of wheels at these speeds relative to the craft, in its axes [N m s]."""
    s = speeds if is_symbolic(speeds) else np.atleast_1d(numbers("wheel_momentum", "speeds", speeds))
    if s.shape[0] != len(wheels):
        raise ArgumentError(f"wheel_momentum: speeds has shape {s.shape} for {len(wheels)} wheels")
    A = np.array([w.inertia * np.array(w.axis) for w in wheels]).reshape(-1, 3).T
    return as_array(A, s) @ s


def magnetic_unloading(momentum: Numbers, field: Any, gain: float, *, dipole: float = math.inf) -> Any:
    """(3): the dipole [A m^2] that takes momentum out, at most `dipole` along each axis, its direction kept."""
    who = "magnetic_unloading"
    H, B = _given(who, "momentum", momentum), _given(who, "field", field)
    square = dot(B, B)
    m = gain * cross(H, B) / where(square > 0, square, 1.0)
    return m * _shrunk(m, dipole)


def _shrunk(x: Any, most: float) -> Any:
    """The factor by which a vector is shortened so that no entry is beyond `most`."""
    if math.isinf(most):
        return 1.0
    largest = ca.norm_inf(x) if is_symbolic(x) else np.abs(x).max()
    return where(largest > most, most / where(largest > most, largest, 1.0), 1.0)


def gyro_jacobian(gyros: Sequence[ControlMomentGyro], angles: Numbers) -> tuple[Any, Any]:
    """A = dH/d(angles) (3, n), and H (3,), both in units of the gyros' momenta [N m s]."""
    a = angles if is_symbolic(angles) else np.atleast_1d(numbers("gyro_jacobian", "angles", angles))
    if a.shape[0] != len(gyros):
        raise ArgumentError(f"gyro_jacobian: angles has shape {a.shape} for {len(gyros)} gyros")
    columns, total = [], as_array(np.zeros(3), a)
    for k, gyro in enumerate(gyros):
        spin, side = np.array(gyro.spin_axis), np.cross(gyro.gimbal_axis, gyro.spin_axis)
        c, d = cos(a[k]), sin(a[k])
        s, b = as_array(spin, a), as_array(side, a)
        total = total + gyro.momentum * (c * s + d * b)
        columns.append(gyro.momentum * (c * b - d * s))
    A = ca.horzcat(*columns) if is_symbolic(a) else np.array(columns).T
    return A, total


def gyro_steering(
    gyros: Sequence[ControlMomentGyro],
    angles: Numbers,
    torque: Numbers,
    *,
    robustness: float = 0.01,
    steepness: float = 10.0,
    t: Any = 0.0,
) -> Any:
    """(4): gimbal rates [rad/s] that give a torque on the craft, without passing all bounds near singular angles.

    A large gyroscopic torque is what the rotors lose: u = -A d. Near a singular place the rates stay finite and lead out
    of it, at the cost of some torque.
    """
    scale = float(np.mean([gyro.momentum for gyro in gyros]))
    A = gyro_jacobian(gyros, angles)[0] / scale
    off = [0.1 * sin(0.5 * math.pi * t + phase) for phase in (0.0, math.pi / 2, math.pi)]
    E = matrix([[1.0, off[2], off[1]], [off[2], 1.0, off[0]], [off[1], off[0], 1.0]])
    G = A @ A.T
    size = dot(cross(G[:, 0], G[:, 1]), G[:, 2])  # det(A A')
    weight = robustness * (ca.exp if is_symbolic(size) else math.exp)(-steepness * size)
    rates = A.T @ solve(G + weight * E, as_array(_given("gyro_steering", "torque", torque), G) * (-1 / scale))
    return rates * _shrunk(rates, min(gyro.rate for gyro in gyros))


def momentum_management(
    inertia: Numbers, orbital_rate: float, *, angle: float = 0.02, momentum: float = 100.0
) -> tuple[Array, Array]:
    """Gains (K_pitch (1, 4), K_roll_yaw (2, 8)) that hold a station's attitude and its gyros' momentum by the
    gravity gradient.

    States are angle and rate relative to the local axes, momentum and its integral, by axis; the law u = -K x is the torque
    that gyros give (on the craft -u), x by `angle` [rad] and `momentum` [N m s] weighted (Wie et al., J. Guidance 12 (1989)
    634). The attitude goes to where the mean torque is zero, not to zero. Products of inertia are not looked at: the craft's
    axes are to be near its principal ones.
    """
    n = positive("momentum_management", "orbital_rate", orbital_rate)
    for what, value in (("angle", angle), ("momentum", momentum)):
        positive("momentum_management", what, value)

    weights = 1 / np.array([angle, angle * n, momentum, momentum / n]) ** 2
    first, second = local_motion(inertia, n)
    try:
        pitch, both = (
            lqr(StateSpace(A, B, np.eye(len(A))), np.tile(weights, B.shape[1]), 1 / (momentum * n) ** 2).K
            for A, B in (first, second)
        )
    except (ArgumentError, NumericalError):
        raise NumericalError(
            "momentum_management: no gains are found: the gravity gradient needs moments of inertia that differ"
        ) from None
    return pitch, both


def local_motion(inertia: Numbers, n: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A and B of pitch, and of roll and yaw, in the states of `momentum_management`; u is the torque that gyros give."""
    I1, I2, I3 = np.diag(_tensor("momentum_management", inertia))
    A = np.zeros((4, 4))
    A[0, 1], A[3, 2] = 1.0, 1.0
    A[1, 0] = -3 * n**2 * (I1 - I3) / I2
    B = np.array([[0.0], [-1 / I2], [1.0], [0.0]])
    pitch = A, B
    A = np.zeros((8, 8))  # roll: angle, rate, h, integral; yaw likewise
    A[0, 1] = A[4, 5] = A[3, 2] = A[7, 6] = 1.0
    A[1, 0], A[1, 5] = -4 * n**2 * (I2 - I3) / I1, n * (I1 - I2 + I3) / I1
    A[5, 4], A[5, 1] = -(n**2) * (I2 - I1) / I3, -n * (I1 - I2 + I3) / I3
    A[2, 6], A[6, 2] = n, -n
    B = np.zeros((8, 2))
    B[1, 0], B[2, 0], B[5, 1], B[6, 1] = -1 / I1, 1.0, -1 / I3, 1.0
    return pitch, (A, B)
