"""What a run shows of itself: panels of coordinates, speeds, efforts, energies, momenta and constraint drift."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model.printing import unknown
from alembert.simulate.channels import WHOLE
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from alembert.model import Model
    from alembert.simulate.ensembles.result import Ensemble
    from alembert.simulate.result import Run
    from alembert.view import Animation

Array = np.ndarray
Panels = dict[str, dict[str, Array]]
Index = tuple[int, ...]
QUANTITIES = ("coordinates", "speeds", "efforts", "energy", "momentum", "constraints")


def panels(
    run: Run, quantities: Sequence[str] | None, joints: Sequence[str], index: tuple[int, ...]
) -> Panels:
    """Lines (N,) by name, by panel, of the motion at an index of the batch; the title of a panel says the unit."""
    model = run.model
    _check_joints(model, joints)
    if quantities is None:
        quantities = ("coordinates", "speeds", *(("efforts",) if np.any(run.efforts) else ()))
    found: Panels = {}
    for quantity in quantities:
        if quantity in QUANTITIES:
            found |= _PANELS[quantity](run, joints, index)
        elif ":" in quantity or quantity in WHOLE:
            found |= _channel(run, quantity, index)
        else:
            raise ArgumentError(unknown("plot: nothing is called", quantity, (*QUANTITIES, *WHOLE)))
    return found


def figure(
    run: Run, joints: Sequence[str], quantities: Sequence[str] | None, path: str | os.PathLike[str] | None
) -> Figure:
    shown = panels(run, quantities, joints, run._index(0))
    if not shown:
        raise ArgumentError("plot: there is nothing to plot; the model has no degrees of freedom")
    made, axes = figures.panels("plot", len(shown))
    for axis, (title, lines) in zip(axes, shown.items(), strict=True):
        figures.lines(axis, run.time, lines, title)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_title(figures.plain(f"{run.model.name} ({run.integrator})"))
    return figures.save(made, path)


def bands(
    ensemble: Ensemble, joints: Sequence[str], probability: float, path: str | os.PathLike[str] | None
) -> Figure:
    """The median of every coordinate and speed, and the band that holds a share of the members."""
    model = ensemble.model
    _check_joints(model, joints)
    if not 0 < probability < 1:
        raise ArgumentError(f"plot: probability is {probability!r}, expected a number between 0 and 1")
    tail = (1 - probability) / 2
    q, v = ensemble.quantiles([tail, 0.5, 1 - tail])
    shown: dict[str, dict[str, Array]] = {}
    for kind, x, titles in (("coordinates", q, _COORDINATES), ("speeds", v, _SPEEDS)):
        for title, name, k in _entries(model, kind, titles, joints):
            shown.setdefault(title, {})[name] = x[:, :, k]
    if not shown:
        raise ArgumentError("plot: there is nothing to plot; the model has no degrees of freedom")
    made, axes = figures.panels("plot", len(shown))
    for axis, (title, lines) in zip(axes, shown.items(), strict=True):
        figures.lines(axis, ensemble.time, {name: x[1] for name, x in lines.items()}, title)
        for k, x in enumerate(lines.values()):
            color = figures.COLORS[k % len(figures.COLORS)]
            axis.fill_between(ensemble.time, x[0], x[2], color=color, alpha=0.18, linewidth=0.6)
    axes[-1].set_xlabel("time [s]")
    count = len(ensemble.good)
    axes[0].set_title(figures.plain(f"{model.name}: median and {probability:.0%} of {count} members"))
    return figures.save(made, path)


# --- panels -------------------------------------------------------------------------------------------------


_COORDINATES = {"rad": "angles [rad]", "m": "positions [m]", "": "quaternions"}
_SPEEDS = {"rad/s": "rates [rad/s]", "m/s": "speeds [m/s]"}
_EFFORTS = {"rad/s": "torques [N m]", "m/s": "forces [N]"}


def _check_joints(model: Model, joints: Sequence[str]) -> None:
    for name in joints:
        if name not in model.joint_indices:
            raise ArgumentError(unknown("plot: no joint", name, model.joint_indices))


def _entries(
    model: Model, kind: str, titles: dict[str, str], joints: Sequence[str]
) -> Iterator[tuple[str, str, int]]:
    """(title of the panel, name, index) of every entry: one panel per unit, so that lines share their axis."""
    names = model.coordinate_names if kind == "coordinates" else model.speed_names
    for owner in model.space:
        if joints and owner.name not in joints:
            continue
        start = (owner.q if kind == "coordinates" else owner.v).start
        for k, (_, unit) in enumerate(getattr(owner.type, kind), start=start):
            yield titles.get(unit, f"{kind} [{unit}]" if unit else kind), names[k], k


def _by_unit(
    run: Run, kind: str, x: Array, titles: dict[str, str], joints: Sequence[str], index: Index
) -> Panels:
    found: Panels = {}
    for title, name, k in _entries(run.model, kind, titles, joints):
        found.setdefault(title, {})[name] = x[index][:, k]
    return found


def _channel(run: Run, name: str, index: Index) -> Panels:
    """A recorded quantity, one panel per unit."""
    channel = run.channel(name.partition("@")[0])
    found: Panels = {}
    for k, (component, unit) in enumerate(zip(channel.components, channel.units, strict=True)):
        title = f"{channel.name} [{unit}]" if unit else channel.name
        found.setdefault(title, {})[component] = channel.values[index][:, k]
    return found


def _coordinates(run: Run, joints: Sequence[str], index: Index) -> Panels:
    return _by_unit(run, "coordinates", run.q, _COORDINATES, joints, index)


def _speeds(run: Run, joints: Sequence[str], index: Index) -> Panels:
    return _by_unit(run, "speeds", run.v, _SPEEDS, joints, index)


def _efforts(run: Run, joints: Sequence[str], index: Index) -> Panels:
    """Those that are not zero all along."""
    found = _by_unit(run, "speeds", run.efforts, _EFFORTS, joints, index)
    elements = {t: {name: x for name, x in lines.items() if np.any(x)} for t, lines in found.items()}
    return {t: lines for t, lines in elements.items() if lines} or dict(list(found.items())[:1])


def _energy(run: Run, _: Sequence[str], index: Index) -> Panels:
    lines = {
        "kinetic": run.kinetic_energy[index],
        "potential": run.potential_energy[index],
        "total": run.energy[index],
    }
    return {"energy [J]": lines}


def _momentum(run: Run, _: Sequence[str], index: Index) -> Panels:
    h = run.momentum[index]
    return {
        "angular momentum [N m s]": dict(zip("xyz", h[:, :3].T, strict=True)),
        "linear momentum [N s]": dict(zip("xyz", h[:, 3:].T, strict=True)),
    }


def _constraints(run: Run, _: Sequence[str], index: Index) -> Panels:
    """The largest residual of each loop and coupling."""
    model = run.model
    if not model.is_constrained:
        raise ArgumentError(
            f"plot: the model {model.name!r} has no loops and no couplings, so no constraint drift"
        )
    residual = np.abs(model.constraint_residual(run.q, parameters=run.parameters)[index])
    rows = model.constrained_compute.rows.system("plot", None)
    owners = [rows.owner_name(k) for k in range(residual.shape[1])]
    lines = {
        owner: np.max(residual[:, [k for k, other in enumerate(owners) if other == owner]], axis=1)
        for owner in dict.fromkeys(owners)
    }
    return {"constraint drift [m, rad]": lines}


_PANELS = {
    "coordinates": _coordinates,
    "speeds": _speeds,
    "efforts": _efforts,
    "energy": _energy,
    "momentum": _momentum,
    "constraints": _constraints,
}


class Showing:
    """Mixed into `Run`."""

    def plot(
        self: Run,
        *joints: str,
        show: Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Figure:
        """Over time, for all joints or those named; needs matplotlib. `path` saves it.

        `show` lists some of "coordinates", "speeds", "efforts", "energy", "momentum" and "constraints" (the drift of
        loops and couplings), and names of `channel` as "frame:hand.position"; by default the first
        two, and efforts where there are any. Of a batch the first motion.
        """
        return figure(self, joints, [show] if isinstance(show, str) else show, path)

    def motion(self: Run, member: int | tuple[int, ...] = 0, *, title: str = "") -> Animation:
        """What `alembert.view` shows of this run; `member` chooses from a batch."""
        from alembert.view import Animation

        index = self._index(member)
        wanted = ["efforts", "energy", "coordinates", "speeds"]
        shown = panels(self, [*wanted, "constraints"] if self.model.is_constrained else wanted, (), index)
        shown = {t: x for t, x in shown.items() if t != "quaternions" and any(np.any(y) for y in x.values())}
        batch = self.q.shape[:-2]
        parameters = {
            name: float(np.broadcast_to(np.asarray(x, dtype=float), batch)[index])
            for name, x in (self._system.own_parameters or {}).items()
        }
        return Animation(
            self.model,
            self.time,
            self.q[index],
            efforts=self.efforts[index],
            series=shown,
            wrenches=self._wrenches(index),
            title=title or self.model.name,
            parameters=parameters or None,
        )

    def to_html(
        self: Run,
        path: str | os.PathLike[str],
        *,
        member: int | tuple[int, ...] = 0,
        title: str = "",
        theme: str = "auto",
    ) -> Path:
        """Write a page that shows the motion and its plots; it opens from disk, without network or server."""
        from alembert.view import write_page

        return write_page(path, [self.motion(member, title=title)], title=title, theme=theme)

    def to_film(
        self: Run, path: str | os.PathLike[str], *, member: int | tuple[int, ...] = 0, **options: Any
    ) -> Path:
        """Write the motion as a film (.gif, .webp, .mp4, .webm); `options` are those of `alembert.view.write_film`.

        Needs Chromium or Chrome, and Pillow or ffmpeg.
        """
        from alembert.view import write_film

        return write_film(path, self.motion(member), **options)

    def to_pandas(self: Run) -> DataFrame:
        """One row per record, times as index, a column per coordinate, speed and effort; one motion only."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError(
                'to_pandas: pandas is not installed; pip install "alembert[data]"'
            ) from None
        if self.q.ndim > 2:
            raise ArgumentError("to_pandas: the run is a batch of motions; to_xarray keeps them all")
        columns = self._columns()
        frame = pandas.DataFrame(
            {name: x for name, _, x in columns}, index=pandas.Index(self.time, name="time")
        )
        frame.attrs = {
            "model": self.model.name,
            "units": {name: unit for name, unit, _ in columns} | {"time": "s"},
        }
        return frame

    def _index(self: Run, member: int | tuple[int, ...]) -> tuple[int, ...]:
        """Where one motion is in the batch."""
        batch = self.q.shape[:-2]
        index = (member,) if isinstance(member, int) else tuple(member)
        if not batch and member == 0:
            return ()
        if isinstance(member, int) and -np.prod(batch) <= member < np.prod(batch):
            return tuple(int(k) for k in np.unravel_index(member % int(np.prod(batch)), batch))
        if len(index) != len(batch) or any(not -n <= k < n for k, n in zip(index, batch, strict=True)):
            raise ArgumentError(f"motion: member is {member!r}, expected one of a batch of shape {batch}")
        return index

    def _wrenches(self: Run, index: tuple[int, ...]) -> dict[str, Array]:
        """(N, 6) by frame, of one motion."""
        system, batch = self._system, self.q.shape[:-2]
        found: dict[str, list[Array]] = {}
        if system.loads.wrenches or system.loads.wrench_laws:
            for k, t in enumerate(self.time):
                elements = system.loads.wrenches_at(float(t), self.q[..., k, :], self.v[..., k, :])
                for frame, F in (elements or {}).items():
                    found.setdefault(frame, []).append(
                        np.broadcast_to(np.asarray(F, dtype=float), (*batch, 6))[index]
                    )
        return {frame: np.array(F) for frame, F in found.items()}

    def _repr_html_(self: Run) -> str:
        """In notebooks: what it is, how well it kept energy and momentum, and a plot."""
        from alembert.view.notebook import result_html

        return result_html(
            repr(self)[1:-1], str(self.report).splitlines(), self.plot if self.model.nv else None
        )
