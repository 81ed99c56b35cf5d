"""What an ensemble returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.simulate.channels import Channel
from alembert.simulate.ensembles.statistics import Statistics
from alembert.simulate.events import EventRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

Array = np.ndarray


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
        q, v = (np.nanquantile(x[self.good], probabilities, axis=0) for x in self._motions)
        return q, v

    def _split(self, x: Array) -> tuple[Array, Array]:
        return x[..., : self.model.nq], x[..., self.model.nq :]

    def to_xarray(self) -> Dataset:
        """With names; needs xarray (pip install "alembert[data]")."""
        import xarray

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
