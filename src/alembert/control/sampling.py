"""From continuous time to samples and back.

    zoh     the input is held between samples:      A_d = exp(A h),    B_d = int_0^h exp(A s) ds B                  (1)
    foh     the input goes along a line to the next sample; the sampled system then has a direct part               (2)
    tustin  s = a (z - 1)/(z + 1),  a = 2/h, or a = w / tan(w h / 2), which keeps the gain at the frequency w       (3)

With r = sqrt(2 a), (3) is A = a (A_d + 1)^-1 (A_d - 1), B = r (A_d + 1)^-1 B_d, C = r C_d (A_d + 1)^-1,
D = D_d - C_d (A_d + 1)^-1 B_d. For a = 1 it keeps norms, gramians, Hankel singular values and Riccati solutions, so that
what is written here for continuous time serves sampled systems too (`bilinear`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy

from alembert.control.responses import held
from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
METHODS = ("zoh", "foh", "tustin")


@takes_systems()
def c2d(G: StateSpace, dt: float, *, method: str = "zoh", prewarp: float | None = None) -> StateSpace:
    """(1), (2) or (3); `prewarp` is a frequency in rad/s at which "tustin" keeps the response."""
    if G.is_discrete:
        raise ArgumentError(f"c2d: the system is sampled already, every {G.dt:g} s")
    if not (dt > 0 and np.isfinite(dt)):
        raise ArgumentError(f"c2d: dt is {dt!r}, expected seconds above zero")
    _check_method("c2d", method, prewarp)
    A, B, C, D = G.matrices
    if method == "tustin":
        a = _rate("c2d", dt, prewarp)
        E = a * np.eye(len(A)) - A
        if np.linalg.cond(E) > 1e14 if len(A) else False:
            raise NumericalError(
                f"c2d: the system has a pole at {a:.6g}, which the bilinear map sends to infinity"
            )
        r = np.sqrt(2 * a)
        X = np.linalg.solve(E, np.hstack([a * np.eye(len(A)) + A, r * B]))
        C_E = np.linalg.solve(E.T, C.T).T
        matrices = X[:, : len(A)], X[:, len(A) :], r * C_E, D + C_E @ B
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            Phi, G0, G1 = held(A, B, dt)
        if not (np.isfinite(Phi).all() and np.isfinite(G0).all()):
            fastest = G.poles()[-1]
            raise NumericalError(
                f"c2d: within one sample of {dt:g} s the system grows beyond all numbers, it has the pole {fastest:.6g}"
            )
        matrices = Phi, G0, C, D
        if method == "foh":  # x shifted by G1 u takes the next sample out of the equation
            matrices = Phi, G0 + Phi @ G1 - G1, C, D + C @ G1
    return dataclasses.replace(G.with_matrices(*matrices), dt=float(dt))


@takes_systems()
def d2c(G: StateSpace, *, method: str = "zoh", prewarp: float | None = None) -> StateSpace:
    """The inverse of `c2d`; for "zoh" and "foh" through the logarithm of A, which has no negative real poles."""
    if not G.is_discrete:
        raise ArgumentError("d2c: the system is continuous already")
    _check_method("d2c", method, prewarp)
    A, B, C, D = G.matrices
    n = len(A)
    if method == "tustin":
        return dataclasses.replace(bilinear(G, _rate("d2c", G.dt, prewarp)), dt=0.0)
    poles = np.linalg.eigvals(A)
    if np.any((np.abs(poles.imag) <= 1e-12 * np.abs(poles)) & (poles.real <= 0)):
        bad = poles[np.argmin(poles.real)]
        raise NumericalError(
            f"d2c: the pole {bad.real:.6g} is real and not positive; no continuous system of this order has it. "
            "Use method='tustin'"
        )
    a = np.real(scipy.linalg.logm(A)) / G.dt
    unit = held(a, np.eye(n), G.dt)  # B_d = unit[1] B; with foh, B_d = (G0 + Phi G1 - G1) B
    factor = unit[1] if method == "zoh" else unit[1] + unit[0] @ unit[2] - unit[2]
    b = np.linalg.solve(factor, B)
    d = D if method == "zoh" else D - C @ unit[2] @ b
    return dataclasses.replace(G.with_matrices(a, b, C, d), dt=0.0)


def bilinear(G: StateSpace, a: float = 1.0) -> StateSpace:
    """(3), from sampled to continuous; the result is the same system in another variable."""
    A, B, C, D = G.matrices
    E = A + np.eye(len(A))
    if len(A) and np.linalg.cond(E) > 1e14:
        raise NumericalError("bilinear: the sampled system has a pole at -1, which the map sends to infinity")
    r = np.sqrt(2 * a)
    X = np.linalg.solve(E, np.hstack([a * (A - np.eye(len(A))), r * B]))
    C_E = np.linalg.solve(E.T, C.T).T
    made = G.with_matrices(X[:, : len(A)], X[:, len(A) :], r * C_E, D - C_E @ B)
    return dataclasses.replace(made, dt=0.0)


def from_bilinear(G: StateSpace, dt: float) -> StateSpace:
    """Back to samples: the inverse of `bilinear` with a = 1."""
    return dataclasses.replace(c2d(dataclasses.replace(G, dt=0.0), 2.0, method="tustin"), dt=dt)


def _rate(function: str, dt: float, prewarp: float | None) -> float:
    if prewarp is None:
        return 2 / dt
    if not 0 < prewarp * dt < np.pi:
        raise ArgumentError(
            f"{function}: prewarp is {prewarp:g} rad/s, expected a frequency below that of Nyquist, {np.pi / dt:g} rad/s"
        )
    return float(prewarp / np.tan(prewarp * dt / 2))


def _check_method(function: str, method: Any, prewarp: float | None) -> None:
    if method not in METHODS:
        raise ArgumentError(f"{function}: method is {method!r}, expected one of {', '.join(METHODS)}")
    if prewarp is not None and method != "tustin":
        raise ArgumentError(f"{function}: prewarp is for the method 'tustin', this is {method!r}")
