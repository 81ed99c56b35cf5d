"""The level of microgravity at a place of a craft: what an accelerometer there feels, and how it compares with limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.simulate import Run

Array = np.ndarray
G0 = 9.80665
"""standard gravity [m/s^2]"""


@dataclass(frozen=True, eq=False)
class MicrogravityLevel:
    """`felt` (N, 3) [m/s^2] in the frame's axes at times (N,): acceleration less that of free fall there."""

    frame: str
    time: Array
    felt: Array

    @property
    def quasi_steady(self) -> Array:
        """(3,): the mean over the run, in millionths of g."""
        return np.trapezoid(self.felt, self.time, axis=0) / (self.time[-1] - self.time[0]) / G0 * 1e6

    @property
    def peak(self) -> float:
        """The largest size, in millionths of g."""
        return float(np.linalg.norm(self.felt, axis=-1).max() / G0 * 1e6)

    @property
    def rms(self) -> float:
        """Root of the mean square, in millionths of g."""
        square = np.sum(self.felt**2, axis=-1)
        mean = np.trapezoid(square, self.time) / (self.time[-1] - self.time[0])
        return float(np.sqrt(mean) / G0 * 1e6)

    def third_octaves(self) -> tuple[Array, Array]:
        """Middle frequencies [Hz] of thirds of octaves, and the root mean square in each, in millionths of g.

        Records must be equally far apart. What is below the first band is the quasi-steady part. By Parseval's theorem the
        squares of all bands and of what is below add up to the mean square without its mean.
        """
        h = np.diff(self.time)
        if len(h) < 8 or np.ptp(h) > 1e-6 * h.mean():
            raise ArgumentError(
                f"third_octaves: {len(self.time)} records from {h.min():.6g} to {h.max():.6g} s apart, expected 9 or more, "
                "equally far apart"
            )
        x = self.felt[:-1] - self.felt[:-1].mean(axis=0)
        n = len(x)
        power = np.sum(np.abs(np.fft.rfft(x, axis=0)) ** 2, axis=-1) / n**2
        power[1 : (n + 1) // 2] *= 2
        frequencies = np.fft.rfftfreq(n, h.mean())
        first = int(np.ceil(10 * np.log10(2 * frequencies[1])))
        last = int(np.floor(10 * np.log10(frequencies[-1])))
        middle = 10.0 ** (np.arange(first, last + 1) / 10)
        edge = 10.0**0.05
        found = [np.sqrt(power[(frequencies >= f / edge) & (frequencies < f * edge)].sum()) for f in middle]
        return middle, np.array(found) / G0 * 1e6

    def __str__(self) -> str:
        steady = ", ".join(f"{x:.3g}" for x in self.quasi_steady)
        return (
            f"microgravity at {self.frame!r}: mean ({steady}), root mean square {self.rms:.3g}, at most {self.peak:.3g} "
            "millionths of g"
        )


def microgravity(run: Run, frame: str) -> MicrogravityLevel:
    """What is felt at the origin of a frame in a run of one motion: thrust, turning, tides, drag, arms that move."""
    if run.q.ndim > 2:
        raise UnsupportedError("microgravity: one motion at a time; run the members of a batch one by one")
    run.model.frame(frame)
    values: Any = run.channel(f"frame:{frame}.specific_force").values
    return MicrogravityLevel(frame, run.time, values)
