"""Optimal control from sampled frequency responses, without a state-space model (Wiener and Hopf).

A stable plant y = G u + d, seen with noise v, may be given by measurements or by a formula that no finite system has, as
those of beams do. All controllers that keep it stable are u = -Y (y - G u), Y stable. With Phi the spectrum of d, the one
that makes

    J = E (y^T Q y + u^T R u) = 1/(2 pi) int tr(Q Phi_yy + R Phi_uu) dw                                               (1)

least is (Youla, Bongiorno, Jabr 1976; on samples: Bennett 1989, "Frequency-response modelling and control")

    L* L = G* Q G + R,    O O* = Phi + V,    Y = L^-1 {L^-* G* Q Phi O^-*}_+ O^-1,    C = (1 - Y G)^-1 Y               (2)

where {}_+ keeps what is causal, and the spectral factors L and O and their inverses are causal.

The axis s = jw is mapped onto the circle by s = a (z - 1)/(z + 1), so that all frequencies are sampled, up to infinity.
There a function of H2 is (z + 1)/(2 a z) times a series in 1/z, and {}_+ a cut between two Fourier coefficients. Factors of
one row are exp {log}_+; those of matrices come by Wilson's iteration (1972) F <- {F^-* H F^-1 + 1}_+ F, with half of the
constant term, which is Newton's method. Errors fall like exp(-samples times the distance of poles and zeros from the
circle).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.arguments import real
from alembert.control import arguments
from alembert.control.responses import FrequencyResponse, ResponseEvaluator
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError

Array = np.ndarray
Response = StateSpace | Callable[[Array], Any]
CAUSAL = 1e-2
"""of the energy of a response: more before time zero is not a stable plant's"""
CONVERGED = 1e-9
"""of the last change of a spectral factor, whose square is left: below the rounding of factors of condition 1e6"""
FINE = 1e-2
"""relative difference of J with half the samples above which there are too few"""


@dataclass(frozen=True, eq=False)
class WienerHopf:
    """u = -C y, with C = (1 - Y G)^-1 Y at frequencies [rad/s] from zero on; arrays are (frequencies, controls, outputs)."""

    frequency: Array
    controller: Array
    parameter: Array
    """Y of (2), which is stable"""
    cost: float
    """J of (1)"""
    accuracy: float
    """by how much J differs with half of the samples"""
    scale: float
    """a [rad/s]"""
    coefficients: Array
    """of Y in the functions (a - s)^k / (a + s)^(k + 1), (k, controls, outputs)"""

    def impulse(self, times: Any) -> Array:
        """The response of Y to an impulse, (times, controls, outputs): with it, u = -Y (y - G u) is a filter with taps."""
        t = arguments.numbers("WienerHopf.impulse", "times", times).ravel()
        # (s - a)^k / (s + a)^(k + 1) is exp(-a t) L_k(2 a t), with Laguerre's polynomials, by their recursion
        x = 2 * self.scale * t
        before, now = np.zeros_like(t), np.exp(-x / 2)
        found = np.zeros((len(t), *self.coefficients.shape[1:]))
        for k, c in enumerate(self.coefficients):
            found += (-1) ** k * now[:, None, None] * c
            before, now = now, ((2 * k + 1 - x) * now - k * before) / (k + 1)
        return np.where(t[:, None, None] < 0, 0.0, found)


def wiener_hopf(
    plant: Response,
    disturbance: Response,
    *,
    effort: Any = 1.0,
    sensor: Any = 1.0,
    weight: Any = 1.0,
    samples: int = 4096,
    scale: float | None = None,
) -> WienerHopf:
    """The controller (2) of a stable plant, from responses alone.

    `plant` and `disturbance` are systems, or functions of frequencies [rad/s] that give responses (frequencies, outputs,
    inputs): the plant's from u to y, the disturbance's from unit white noise to d. `weight`, `effort`, `sensor` are Q, R, V
    of (1) and (2). `scale` [rad/s] is a, where samples are densest in octaves; by default the geometric mean of the sizes of
    the poles, which functions do not tell.
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 16 or samples % 2:
        raise ArgumentError(f"wiener_hopf: samples is {samples}, expected an even number of 16 or more")
    plant, disturbance = (
        given if callable(given) else given.to_statespace() if hasattr(given, "to_statespace") else given
        for given in (plant, disturbance)
    )
    for name, given in (("plant", plant), ("disturbance", disturbance)):
        if not isinstance(given, StateSpace) and not callable(given):
            measured = isinstance(given, FrequencyResponse)
            came = "a FrequencyResponse" if measured else repr(given)
            raise ArgumentError(
                f"wiener_hopf: the {name} is {came}, expected a system or a function of frequencies"
                + (", such as one that interpolates in what was measured" if measured else "")
            )
        if isinstance(given, StateSpace) and (given.is_discrete or not given.is_stable):
            raise ArgumentError(
                f"wiener_hopf: the {name} is {'sampled' if given.is_discrete else 'not stable'}, expected a stable system "
                "in continuous time; stabilise it first, and take the closed loop"
            )
        if isinstance(given, StateSpace) and np.any(given.D):
            raise ArgumentError(
                f"wiener_hopf: the {name} has a direct part D, expected a response that falls with the frequency: add the "
                "lag of an actuator or a sensor"
            )
    if scale is None:
        poles = [np.abs(x.poles()) for x in (plant, disturbance) if isinstance(x, StateSpace) and x.order]
        if not poles:
            raise ArgumentError(
                "wiener_hopf: scale is not given, and functions do not tell it; give scale= in rad/s"
            )
        scale = float(np.exp(np.mean(np.log(np.concatenate(poles)))))
    real("wiener_hopf", "scale", scale, "rad/s above zero", over=0.0)
    coarse = _solved(plant, disturbance, effort, sensor, weight, samples // 2, scale)
    found = _solved(plant, disturbance, effort, sensor, weight, samples, scale)
    accuracy = abs(found[3] - coarse[3])
    if not accuracy <= FINE * found[3]:
        raise NumericalError(
            f"wiener_hopf: J is {found[3]:.6g} with {samples} samples and {coarse[3]:.6g} with half of them; give more "
            "samples="
        )
    w, Y, C, J, coefficients = found
    return WienerHopf(w, C, Y, J, accuracy, scale, coefficients)


def _solved(
    plant: Response, disturbance: Response, effort: Any, sensor: Any, weight: Any, samples: int, scale: float
) -> tuple[Array, Array, Array, float, Array]:
    angle = 2 * np.pi * (np.arange(samples // 2) + 0.5) / samples  # neither zero nor infinity
    w = scale * np.tan(angle / 2)
    circle = _Circle(angle, scale)
    G, shape = _response("plant", plant, w), _response("disturbance", disturbance, w)
    p, m = G.shape[1:]
    if shape.shape[1] != p:
        raise ArgumentError(
            f"wiener_hopf: the disturbance has {shape.shape[1]} outputs, the plant {p}; expected as many"
        )
    outputs, inputs = [f"y{k}" for k in range(p)], [f"u{k}" for k in range(m)]
    Q = arguments.weight("wiener_hopf", "weight", weight, outputs)
    R = arguments.weight("wiener_hopf", "effort", effort, inputs, definite=True)
    V = arguments.weight("wiener_hopf", "sensor", sensor, outputs, definite=True)
    G, shape = circle.whole(G), circle.whole(shape)
    before, whole = circle.energy(G)
    if before > CAUSAL * whole:
        raise NumericalError(
            f"wiener_hopf: {100 * before / whole:.3g} % of the plant's impulse response comes before time zero: it is not "
            "stable, does not fall with the frequency, or there are too few samples for its resonances; give more samples="
        )
    star = _adjoint(G)
    Phi = shape @ _adjoint(shape)
    L = circle.factor(star @ Q @ G + R)
    O = circle.factor((Phi + V).swapaxes(1, 2)).swapaxes(1, 2)
    X = np.linalg.solve(_adjoint(L), star @ Q @ Phi)
    X = _adjoint(np.linalg.solve(O, _adjoint(X)))
    Y = np.linalg.solve(L, circle.causal(X))
    Y = np.linalg.solve(O.swapaxes(1, 2), Y.swapaxes(1, 2)).swapaxes(1, 2)
    seen = Phi + V
    left = np.eye(p) - G @ Y
    y = left @ Phi @ _adjoint(left) + G @ Y @ V @ _adjoint(G @ Y)
    u = Y @ seen @ _adjoint(Y)
    power = np.trace(Q @ y, axis1=1, axis2=2).real + np.trace(R @ u, axis1=1, axis2=2).real
    half = slice(0, samples // 2)
    C = np.linalg.solve(np.eye(m) - Y @ G, Y)
    cost = float(np.mean(power / np.cos(circle.angle / 2) ** 2) * scale / 2)
    series = circle.coefficients(Y * circle.factor_H2).real
    return w, Y[half], C[half], cost, np.concatenate([series[:1], series[: samples // 2 : -1]])


class _Circle:
    """Samples at half steps of the angle: the upper half of the circle, then the lower one, mirrored."""

    def __init__(self, upper: Array, scale: float) -> None:
        self.angle = np.concatenate([upper, upper + np.pi])
        z = np.exp(1j * self.angle)
        self.factor_H2 = (2 * scale * z / (z + 1))[:, None, None]
        n = len(self.angle)
        self.turn = np.exp(-1j * np.pi * np.arange(n) / n)[:, None, None]
        lag = np.arange(n)
        self.later = (lag < n // 2)[:, None, None]  # of exp(j k angle), the powers z^k with k >= 0

    def whole(self, X: Array) -> Array:
        return np.concatenate([X, X[::-1].conj()])

    def coefficients(self, X: Array) -> Array:
        """Of z^k, k = 0, 1, ..., n/2 - 1, -n/2, ..., -1."""
        return np.fft.fft(X, axis=0) * self.turn * np.where(self.later, 1.0, -1.0) / len(X)

    def values(self, c: Array) -> Array:
        return np.fft.ifft(c * np.where(self.later, 1.0, -1.0) / self.turn, axis=0) * len(c)

    def past(self, c: Array, constant: float) -> Array:
        """Powers of 1/z, and a share of the constant term."""
        kept = np.where(self.later, 0.0, c)
        kept[0] = constant * c[0]
        return kept

    def causal(self, X: Array) -> Array:
        """{X}_+ of (2)."""
        return self.values(self.past(self.coefficients(X * self.factor_H2), 1.0)) / self.factor_H2

    def energy(self, X: Array) -> tuple[float, float]:
        """Before time zero, and in all."""
        c = self.coefficients(X * self.factor_H2)
        return float(np.sum(np.abs(c - self.past(c, 1.0)) ** 2)), float(np.sum(np.abs(c) ** 2))

    def factor(self, H: Array) -> Array:
        """F with F* F = H > 0; F and its inverse are causal."""
        n = H.shape[1]
        diagonal = np.einsum("ijj->ij", H).real[:, :, None]
        scalar = np.exp(self.values(self.past(self.coefficients(np.log(diagonal)), 0.5)))
        F = scalar * np.eye(n)
        if n == 1:
            return F
        for _ in range(60):
            inverse = np.linalg.inv(F)
            ratio = _adjoint(inverse) @ H @ inverse
            change = self.values(self.past(self.coefficients(ratio + np.eye(n)), 0.5))
            F = change @ F
            left = float(np.abs(change - np.eye(n)).max())
            if left < CONVERGED:
                return F
            if not np.isfinite(left):
                break
        raise NumericalError(
            f"wiener_hopf: Wilson's iteration for a spectral factor did not converge ({left:.2g} from its goal); give more "
            "samples, a scale nearer to the frequencies that matter, or more noise and control weight: G* Q G + R and "
            "Phi + V must be positive, and far from singular"
        )


def _response(name: str, given: Response, w: Array) -> Array:
    if isinstance(given, StateSpace):
        return ResponseEvaluator(*given.matrices)(1j * w)
    found = np.asarray(given(w), dtype=complex)
    if found.shape == w.shape:
        found = found[:, None, None]
    if found.ndim != 3 or len(found) != len(w) or not np.all(np.isfinite(found)):
        raise ArgumentError(
            f"wiener_hopf: the {name} gives an array of shape {found.shape} for {len(w)} frequencies, expected finite "
            "numbers (frequencies, outputs, inputs)"
        )
    return found


def _adjoint(X: Array) -> Array:
    return X.conj().swapaxes(1, 2)
