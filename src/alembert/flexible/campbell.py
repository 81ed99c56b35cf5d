"""Campbell diagrams: how the frequencies of a spinning structure change with its rate, seen from the structure itself.

A joint turns steadily; the modes deflect until nothing accelerates; small motion about that, the joint held at its
rate, is

    M e'' + C e' + K e = 0,    C = d tau/dv, K = d tau/dq of inverse dynamics                                  (1)

with gyroscopic, centrifugal and motion-induced terms in C and K.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert import arguments
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
_STEPS = 30
_GROWS = 1e-6
"""of a pole's size: less is rounding of poles on the imaginary axis"""


@dataclass(frozen=True, eq=False)
class Campbell:
    """`poles` (rates x modes): of each pair the one above the real axis, by frequency; real pairs by their growth."""

    rates: Array
    poles: Array

    @property
    def frequencies(self) -> Array:
        """|Im| of the poles, rad/s, rates x modes."""
        return self.poles.imag

    @property
    def unstable_from(self) -> float | None:
        """The first of the rates at which something grows, None if nothing does."""
        grows = (self.poles.real > _GROWS * np.abs(self.poles).max()).any(axis=1)
        return float(self.rates[np.flatnonzero(grows)[0]]) if grows.any() else None

    def critical_rates(self, order: float = 1.0) -> list[float]:
        """Rates at which a frequency is `order` times the rate, by straight lines between the rates computed."""
        gap = self.frequencies - order * self.rates[:, None]
        found = []
        for column in gap.T:
            for k in np.flatnonzero(column[:-1] * column[1:] < 0):
                part = column[k] / (column[k] - column[k + 1])
                found.append(float(self.rates[k] + part * (self.rates[k + 1] - self.rates[k])))
        return sorted(found)

    def plot(
        self, *, orders: tuple[float, ...] = (1.0, 2.0), path: str | PathLike[str] | None = None
    ) -> Figure:
        """Frequencies over the rate, with lines of the given orders; needs matplotlib. `path` saves it."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        axes.plot(self.rates, self.frequencies, ".-", ms=3)
        for order in orders:
            axes.plot(self.rates, order * self.rates, "k--", lw=0.8)
            axes.annotate(f"{order:g}x", (self.rates[-1], order * self.rates[-1]))
        axes.set(xlabel="rate [rad/s]", ylabel="frequency [rad/s]", ylim=(0, 1.05 * self.frequencies.max()))
        if path is not None:
            figure.savefig(path)
        return figure


def campbell(model: Model, joint: str, rates: Any, *, modes: int | None = None) -> Campbell:
    """Poles of the model while `joint` (one that turns) has each of the rates, rad/s; the lowest `modes` of them."""
    if model.loops or model.couplings:
        raise UnsupportedError("campbell: models with loops or couplings are not taken; open the loops")
    at = model.v_slice(joint)
    if at.stop - at.start != 1:
        raise ArgumentError(
            f"campbell: joint {joint!r} has {at.stop - at.start} speeds, expected one that turns"
        )
    speeds = np.atleast_1d(arguments.numbers("campbell", "rates", rates))
    if speeds.ndim != 1 or not np.isfinite(speeds).all():
        raise ArgumentError(f"campbell: rates have shape {speeds.shape}, expected finite numbers (many,)")
    free = np.ones(model.nv, dtype=bool)
    free[at] = False
    if not free.any():
        raise ArgumentError("campbell: nothing but the joint moves")
    found, q = [], model.neutral()
    for rate in speeds:
        v = np.zeros(model.nv)
        v[at] = rate
        q = _settled(model, q, v, free, float(rate))
        d = model.inverse_dynamics_derivatives(q, v, np.zeros(model.nv))
        M, C, K = (np.asarray(x)[np.ix_(free, free)] for x in (model.mass_matrix(q), d.dv, d.dq))
        found.append(pairs(M, C, K))
    count = len(found[0]) if modes is None else min(modes, len(found[0]))
    return Campbell(speeds, np.array(found)[:, :count])


def pairs(M: Array, C: Array, K: Array) -> Array:
    """Poles of (1), one of each pair, by frequency; a real pair counts as one of frequency zero, by its larger root."""
    n = len(M)
    X = np.linalg.solve(M, np.hstack([K, C]))
    poles = np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-X]]))
    real = np.abs(poles.imag) < 1e-9 * np.abs(poles).max()
    above = poles[~real & (poles.imag > 0)]
    lone = np.sort(poles[real].real)[::-1][: n - len(above)]
    found = np.concatenate([lone.astype(complex), above])
    return found[np.lexsort((-found.real, found.imag))]


def _settled(model: Model, q: Array, v: Array, free: Array, rate: float) -> Array:
    """The deflected shape that turns steadily: no efforts but that of the joint."""
    zero = np.zeros(model.nv)
    size = 0.0
    for _ in range(_STEPS):
        effort = np.asarray(model.inverse_dynamics(q, v, zero))[free]
        K = np.asarray(model.inverse_dynamics_derivatives(q, v, zero).dq)[np.ix_(free, free)]
        step = np.zeros(model.nv)
        step[free] = -np.linalg.lstsq(K, effort, rcond=1e-12)[0]
        size = float(np.abs(step).max())
        if not np.isfinite(size):
            break
        q = model.integrate(q, step)
        if size < 1e-10:
            return q
    raise NumericalError(
        f"campbell: at {rate:g} rad/s no steady shape was found; the last step was {size:.3g}. The structure may "
        "be past the rate at which it gives way"
    )
