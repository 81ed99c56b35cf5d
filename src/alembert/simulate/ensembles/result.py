"""What an ensemble returns, and statistics of members as they come: mean, deviation and quantiles without keeping them.

Mean and sum of squared deviations of two groups A and B join by (Chan, Golub and LeVeque 1979)

    d = mean_B - mean_A,   mean = mean_A + d n_B / n,   S = S_A + S_B + d^2 n_A n_B / n        (1)

Quantiles come from sorted samples (Munro and Paterson 1980): a buffer holds `SAMPLES` values of equal
weight; two buffers of one weight become one of twice the weight by sorting them together and keeping every
second value, from the first and the second in turn. Each time the rank of a value is off by at most the
weight before, so that with L such levels it is off by at most L / (2 SAMPLES) of the members, and quantiles
of up to `SAMPLES` members are exact.

Groups are joined in the order of the members, so the bits do not depend on which came first.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import numbers
from alembert.errors import ArgumentError, writing
from alembert.model import Model
from alembert.model.io import netcdf
from alembert.simulate.channels import Channel
from alembert.simulate.events import EventRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

Array = np.ndarray
SAMPLES = 512
_FAILURES_SHOWN = 5


def _shares(probabilities: Any) -> Array:
    p = numbers("quantiles", "probabilities", probabilities)
    if not np.all((p >= 0) & (p <= 1)) or not p.size:
        raise ArgumentError(f"quantiles: probabilities are {probabilities}, expected 0 to 1")
    return p


@dataclass
class Statistics:
    """Of rows x (members, N, n); NaN (motions that have ended) is left out at its time."""

    shape: tuple[int, int]
    members: int = 0
    failed: int = 0
    count: Array = field(init=False)
    """(N,): members that are in the statistics, at each time"""
    _mean: Array = field(init=False, repr=False)
    _squares: Array = field(init=False, repr=False)
    _waiting: list[Array] = field(init=False, repr=False, default_factory=list)
    _levels: list[tuple[Array | None, int]] = field(init=False, repr=False, default_factory=list)
    """by level: a sorted buffer if there is one, and how many have passed"""

    def __post_init__(self) -> None:
        self.count = np.zeros(self.shape[0])
        self._mean, self._squares = np.zeros(self.shape), np.zeros(self.shape)

    def add(self, x: Array, *, members: int, failed: int) -> None:
        """A group of motions (without the failed ones), the next in the order of the members."""
        self.members += members
        self.failed += failed
        if not len(x):
            return
        there = np.isfinite(x).all(axis=-1)  # (members, N)
        count = there.sum(axis=0).astype(float)
        x = np.where(there[..., None], x, np.nan)
        filled = np.where(there[..., None], x, 0.0)
        safe = np.maximum(count, 1.0)[:, None]
        mean = filled.sum(axis=0) / safe
        squares = np.where(there[..., None], (filled - mean) ** 2, 0.0).sum(axis=0)
        total = np.maximum(self.count + count, 1.0)[:, None]
        d = mean - self._mean
        self._squares = self._squares + squares + d**2 * (self.count * count)[:, None] / total  # (1)
        self._mean = self._mean + d * count[:, None] / total
        self.count = self.count + count
        self._waiting += list(x)
        while len(self._waiting) >= SAMPLES:
            self._compact(np.sort(np.stack(self._waiting[:SAMPLES]), axis=0), 0)
            self._waiting = self._waiting[SAMPLES:]

    def _compact(self, buffer: Array, level: int) -> None:
        if level == len(self._levels):
            self._levels.append((None, 0))
        other, passed = self._levels[level]
        if other is None:
            self._levels[level] = buffer, passed
            return
        both = np.sort(np.concatenate([other, buffer]), axis=0)
        self._levels[level] = None, passed + 1
        self._compact(both[passed % 2 :: 2], level + 1)

    def mean(self) -> Array:
        """(N, n); NaN where there is no member."""
        return np.where(self.count[:, None] > 0, self._mean, np.nan)

    def deviation(self) -> Array:
        """The standard deviation, (N, n)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self._squares / np.where(self.count > 0, self.count, np.nan)[:, None])

    @property
    def rank_error(self) -> float:
        """The most by which the rank of a quantile is off, as a share of the members; zero where it is exact."""
        return (len(self._levels) - 1) / (2 * SAMPLES) if len(self._levels) > 1 else 0.0

    def quantiles(self, probabilities: Array | float) -> Array:
        """(..., N, n): the smallest value below which at least that share of the members is."""
        p = _shares(probabilities)
        buffers = [(np.stack(self._waiting), 1.0)] if self._waiting else []
        buffers += [(x, 2.0**level) for level, (x, _) in enumerate(self._levels) if x is not None]
        if not buffers:
            return np.full((*p.shape, *self.shape), np.nan)
        values = np.concatenate([x for x, _ in buffers])
        weights = np.concatenate([np.full(len(x), weight) for x, weight in buffers])
        order = np.argsort(values, axis=0)  # NaN last
        values = np.take_along_axis(values, order, axis=0)
        shares = np.where(np.isnan(values), 0.0, weights[order]).cumsum(axis=0)
        total = shares[-1]
        found = [np.argmax(shares >= x * total * (1 - 1e-12), axis=0) for x in p.ravel()]
        picked = [np.take_along_axis(values, k[None], axis=0)[0] for k in found]
        return np.reshape(picked, (*p.shape, *self.shape))


@dataclass(frozen=True, repr=False)
class Ensemble:
    """`time` (N,), `q` (members, N, nq), `v` (members, N, nv); `failures` says which members failed, and why.

    Records of a failed member are NaN from where it failed, and those of a member that an event has stopped
    from there on; `events` has the log of each. Statistics leave failed members out.
    """

    model: Model
    time: Array
    members: int
    failures: Mapping[int, str]
    events: Mapping[int, tuple[EventRecord, ...]]
    parameters: Mapping[str, Array]
    """(members,) of each"""
    seed: int
    computed: int
    """members that were computed in this run; the others came from the checkpoint"""
    statistics: Statistics = field(repr=False)
    """of (q, v) side by side, as they were while the run went on"""
    _motions: tuple[Array, Array] | None = field(repr=False)
    _recorded: tuple[Channel, ...] = field(repr=False, default=())

    def __repr__(self) -> str:
        return f"<Ensemble of {self.model.name!r}: {self.members} members, {len(self.failures)} failed>"

    def _repr_html_(self) -> str:
        """In notebooks: what failed, and the bands that hold the members."""
        from alembert.view.figures import result_html

        failed = [f"member {k}: {why}" for k, why in list(self.failures.items())[:_FAILURES_SHOWN]]
        more = len(self.failures) - len(failed)
        lines = [*failed, *([f"and {more} more"] if more > 0 else [])]
        return result_html(repr(self)[1:-1], lines, self.plot if self.model.nv and len(self.good) else None)

    @property
    def q(self) -> Array:
        return self._kept()[0]

    @property
    def v(self) -> Array:
        return self._kept()[1]

    @property
    def recorded(self) -> dict[str, Channel]:
        """What `record` asked for, by name; values are (members, N, components)."""
        self._kept()
        return {channel.name: channel for channel in self._recorded}

    def _kept(self) -> tuple[Array, Array]:
        if self._motions is None:
            raise ArgumentError(
                "ensemble: the motions were not kept (keep=False); mean(), deviation() and quantiles() are there"
            )
        return self._motions

    @property
    def good(self) -> Array:
        """The members that did not fail."""
        return np.array([k for k in range(self.members) if k not in self.failures], dtype=int)

    def plot(
        self, *joints: str, probability: float = 0.9, path: str | os.PathLike[str] | None = None
    ) -> Figure:
        """Medians and the bands that hold `probability` of the members, of all joints or those named.

        Needs matplotlib. `path` saves it.
        """
        from alembert.simulate import plots

        return plots.bands(self, joints, probability, path)

    def mean(self) -> tuple[Array, Array]:
        """Of coordinates and speeds, (N, nq) and (N, nv); the components of quaternions are averaged as they are."""
        return self._split(self.statistics.mean())

    def deviation(self) -> tuple[Array, Array]:
        """Standard deviations of coordinates and speeds."""
        return self._split(self.statistics.deviation())

    def quantiles(self, probabilities: Any) -> tuple[Array, Array]:
        """(..., N, nq) and (..., N, nv): exact, interpolated where the motions were kept.

        Without them, to `statistics.rank_error` of the members.
        """
        if self._motions is None:
            return self._split(self.statistics.quantiles(probabilities))
        p = _shares(probabilities)
        q, v = (np.nanquantile(x[self.good], p, axis=0) for x in self._motions)
        return q, v

    def _split(self, x: Array) -> tuple[Array, Array]:
        return x[..., : self.model.nq], x[..., self.model.nq :]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """All members to netCDF (.nc, needs xarray), or means and deviations over time to CSV (.csv)."""
        path = Path(path)
        if path.suffix == ".nc":
            netcdf.write(self.to_xarray(), path)
            return path
        if path.suffix != ".csv":
            raise ArgumentError(f"save: {path.name} ends with {path.suffix!r}, expected .nc or .csv")
        names = [f"q.{name}" for name in self.model.coordinate_names]
        names += [f"v.{name}" for name in self.model.speed_names]
        with writing(path), path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["time", *(f"{kind}.{name}" for kind in ("mean", "deviation") for name in names)])
            for row in np.column_stack([self.time, *self.mean(), *self.deviation()]):
                writer.writerow([repr(float(x)) for x in row])
        return path

    def to_xarray(self) -> Dataset:
        """With names; needs xarray (pip install "alembert[data]")."""
        xarray = netcdf.imported_xarray("to_xarray")
        model = self.model
        coords: dict[str, Any] = {}
        data: dict[str, Any] = {}
        for channel in self._recorded:
            along = "time" if len(channel.time) == len(self.time) else f"{channel.name}.time"
            part = f"{channel.name}.component"
            coords |= {along: (along, channel.time, {"units": "s"}), part: (part, list(channel.components))}
            units = ", ".join(dict.fromkeys(channel.units))
            data[channel.name] = (["member", along, part], channel.values, {"units": units})
        return xarray.Dataset(
            {
                **data,
                "q": (["member", "time", "coordinate"], self.q),
                "v": (["member", "time", "speed"], self.v),
                "failed": ("member", np.isin(np.arange(self.members), list(self.failures))),
                "failure": ("member", [self.failures.get(k, "") for k in range(self.members)]),
                **{name: ("member", values) for name, values in self.parameters.items()},
            },
            {
                **coords,
                "time": ("time", self.time, {"units": "s"}),
                "coordinate": list(model.coordinate_names),
                "speed": list(model.speed_names),
            },
            {"model": model.name, "seed": self.seed, "fingerprint": model.fingerprint},
        )
