"""What was measured: states, accelerations and efforts, as given or from recorded time series.

From positions q_k at times t_k, with xi_j the tangent displacements from q_k to its neighbours q_k+j:

    v_k = sum_j c_j xi_j / dt,      a_k = sum_j c_j v_k+j / dt                             (1)

where c are central differences of fourth order followed by a Butterworth filter run in both directions (no
phase), or the weights of a local polynomial (Savitzky and Golay). Efforts stay as they are unless asked
otherwise: least squares averages their noise anyway, and a filter would blur the steps of Coulomb friction.
Noise that was filtered is correlated: samples then are thinned to about the rate at which it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import scipy

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.model.model import check_model

Array = np.ndarray
Filter = Literal["butterworth", "savitzky_golay"]


@dataclass(frozen=True, eq=False, repr=False)
class Measurements:
    """T samples: q (T, nq), v, a and tau (T, nv); `noise` is the standard deviation of each effort, when it is known.

    A noise of inf leaves an effort out. `time` (T,) only serves plots.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    noise: Array | None = None
    time: Array | None = None

    def __post_init__(self) -> None:
        for name in ("q", "v", "a", "tau"):
            x = _numbers(f"Measurements: {name}", getattr(self, name))
            if x.ndim != 2:
                raise ArgumentError(
                    f"Measurements: {name} has shape {x.shape}, expected two dimensions (samples, n)"
                )
            bad = np.argwhere(~np.isfinite(x))
            if len(bad):
                k, i = bad[0]
                raise ArgumentError(f"Measurements: {name} is {x[k, i]} at sample {k}, column {i}")
            object.__setattr__(self, name, x)
        lengths = {name: len(getattr(self, name)) for name in ("q", "v", "a", "tau")}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ArgumentError(f"Measurements: the numbers of samples differ: {listed}")
        if self.noise is not None:
            noise = _numbers("Measurements: noise", self.noise)
            if noise.ndim == 0:
                noise = np.full(self.tau.shape[1], float(noise))
            if noise.shape != self.tau.shape[1:] or not np.all(noise > 0):
                raise ArgumentError(
                    f"Measurements: noise is {noise}, expected {self.tau.shape[1]} positive standard deviations"
                )
            object.__setattr__(self, "noise", noise)
        if self.time is not None:
            time = _numbers("Measurements: time", self.time)
            if time.shape != (len(self),):
                raise ArgumentError(f"Measurements: time has shape {time.shape}, expected ({len(self)},)")
            object.__setattr__(self, "time", time)

    def __len__(self) -> int:
        return len(self.tau)

    def __repr__(self) -> str:
        known = (
            "noise not given" if self.noise is None else f"noise {np.array2string(self.noise, precision=3)}"
        )
        return f"<Measurements: {len(self)} samples of {self.tau.shape[1]} efforts, {known}>"

    def check(self, model: Model, function: str = "identify") -> None:
        """Refuse data that are not of this model."""
        for name, width in (("q", model.nq), ("v", model.nv), ("a", model.nv), ("tau", model.nv)):
            x = getattr(self, name)
            if x.shape[1] != width:
                raise ArgumentError(
                    f"{function}: {name} has {x.shape[1]} columns, expected {width}; "
                    f"the model has {model.nq} coordinates and {model.nv} degrees of freedom"
                )
        model.space.check(function, self.q)

    @classmethod
    def from_time_series(
        cls,
        model: Model,
        time: Any,
        q: Any,
        tau: Any,
        *,
        v: Any = None,
        cutoff: float | None = None,
        filter: Filter = "butterworth",
        order: int = 4,
        window: int = 31,
        degree: int = 4,
        filter_efforts: bool = False,
        thin: int | None = None,
        noise: Any = None,
    ) -> Measurements:
        """Filter and differentiate recorded positions and efforts, (1); works for joints with quaternions too.

        Args:
            time: (T,), evenly spaced.
            q: (T, nq).
            tau: (T, nv).
            v: measured speeds (T, nv), when there are any; otherwise they come from q.
            cutoff: of the Butterworth filter [Hz]; above the motion's harmonics, below the noise. Needed for
                it.
            filter: "butterworth" (of `order`) or "savitzky_golay" (polynomials of `degree` over `window`
                samples).
            filter_efforts: whether efforts pass the filter too.
            thin: keep every so many samples; by default all, and where efforts are filtered as the module
                says.
            noise: see the class.
        """
        check_model("from_time_series", model)
        t, x, y = (_numbers(f"from_time_series: {n}", z) for n, z in (("time", time), ("q", q), ("tau", tau)))
        _check_series(model, t, x, y)
        dt = float((t[-1] - t[0]) / (len(t) - 1))
        speeds = None if v is None else _numbers("from_time_series: v", v)
        if speeds is not None and speeds.shape != y.shape:
            raise ArgumentError(f"from_time_series: v has shape {speeds.shape}, expected {y.shape}")
        if filter == "butterworth":
            if not isinstance(cutoff, Real) or not 0 < cutoff < 0.5 / dt:
                raise ArgumentError(
                    f"from_time_series: cutoff is {cutoff!r}, expected a frequency below half the sampling rate, "
                    f"{0.5 / dt:.4g} Hz"
                )
            if not isinstance(order, Integral) or order < 1:
                raise ArgumentError(f"from_time_series: order is {order!r}, expected a positive integer")
            found, edge = _butterworth(model, x, y, speeds, dt, cutoff, order)
            passed = cutoff
        elif filter == "savitzky_golay":
            if window % 2 == 0 or not degree < window or degree < 2 or 2 * window > len(t):
                raise ArgumentError(
                    f"from_time_series: window is {window} and degree {degree}, expected an odd window of more than "
                    f"`degree` and at most half of the {len(t)} samples, and a degree of at least 2"
                )
            found, edge = _savitzky_golay(model, x, y, speeds, dt, window, degree)
            passed = (degree + 1) / (1.6 * window) / dt  # Schafer 2011
        else:
            raise ArgumentError(
                f"from_time_series: filter is {filter!r}, expected 'butterworth' or 'savitzky_golay'"
            )
        if not filter_efforts:
            found = (*found[:3], y)
        step = (max(1, round(0.5 / (passed * dt))) if filter_efforts else 1) if thin is None else int(thin)
        if step < 1:
            raise ArgumentError(f"from_time_series: thin is {thin}, expected a positive integer")
        keep = slice(edge, len(t) - edge, step)
        position, speed, acceleration, effort = (part[keep] for part in found)
        return cls(position, speed, acceleration, effort, noise=noise, time=t[keep])


def _butterworth(
    model: Model, q: Array, tau: Array, v: Array | None, dt: float, cutoff: float, order: int
) -> tuple[tuple[Array, ...], int]:
    sections = scipy.signal.butter(order, cutoff, fs=1 / dt, output="sos")

    def smooth(x: Array) -> Array:
        return scipy.signal.sosfiltfilt(sections, x, axis=0)

    stencil = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12 * dt)
    inner = slice(2, len(q) - 2)  # where the stencil has its neighbours
    raw = _weigh(_neighbours(model, q, 2), stencil) if v is None else v
    speeds, position = raw.copy(), q.copy()
    speeds[inner] = smooth(raw[inner])
    for owner in model.space:
        if owner.type.nv and owner.type.is_vector_space:
            position[:, owner.q] = smooth(q[:, owner.q])
    a = np.apply_along_axis(np.convolve, 0, speeds, stencil[::-1], "same")
    edge = min(len(q) // 5, 4 + int(np.ceil(2 / (cutoff * dt))))  # the filter starts up there
    return (position, speeds, a, smooth(tau)), edge


def _savitzky_golay(
    model: Model, q: Array, tau: Array, v: Array | None, dt: float, window: int, degree: int
) -> tuple[tuple[Array, ...], int]:
    weights = [scipy.signal.savgol_coeffs(window, degree, deriv=k, delta=dt, use="dot") for k in range(2)]
    xi = _neighbours(model, q, window // 2)
    smooth = {"window_length": window, "polyorder": degree, "axis": 0}
    speeds = _weigh(xi, weights[1]) if v is None else scipy.signal.savgol_filter(v, **smooth)
    position = model.integrate(q, _weigh(xi, weights[0]))
    a = scipy.signal.savgol_filter(speeds, deriv=1, delta=dt, **smooth)
    return (position, speeds, a, scipy.signal.savgol_filter(tau, **smooth)), window


def _neighbours(model: Model, q: Array, reach: int) -> Array:
    """xi: displacements from every sample to its neighbours, (2 reach + 1, T, nv); the ends repeat."""
    T = len(q)
    return np.array(
        [model.difference(q, q[np.clip(np.arange(T) + j, 0, T - 1)]) for j in range(-reach, reach + 1)]
    )


def _weigh(xi: Array, weights: Array) -> Array:
    return np.tensordot(weights, xi, axes=1)


def _check_series(model: Model, t: Array, q: Array, tau: Array) -> None:
    if t.ndim != 1 or len(t) < 20:
        raise ArgumentError(f"from_time_series: time has shape {t.shape}, expected (T,) with T at least 20")
    for name, x, width in (("q", q, model.nq), ("tau", tau, model.nv)):
        if x.shape != (len(t), width):
            raise ArgumentError(f"from_time_series: {name} has shape {x.shape}, expected ({len(t)}, {width})")
    steps = np.diff(t)
    if not np.all(np.abs(steps - steps.mean()) < 0.01 * abs(steps.mean())) or steps.mean() <= 0:
        raise ArgumentError(
            f"from_time_series: the steps of time are {steps.min():.6g} to {steps.max():.6g} s, expected even ones; "
            "interpolate to an even rate first"
        )


def _numbers(what: str, value: Any) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} is a {type(value).__name__}, expected numbers") from None
