"""What a run shows of itself, in panels over time; and beside a measured motion, how far the two are apart.

For each component, with the computed signal taken at the times of the measurement by straight lines:

    rms = sqrt(mean e^2),     fit = 1 - |e| / |y - mean y|,     e = computed - y                                (1)

and the delay that would make the two most alike (computed late is positive), up to a quarter of the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import check_known, numbers, unknown
from alembert.errors import ArgumentError
from alembert.simulate.channels import WHOLE
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.model import Model
    from alembert.simulate.ensembles.result import Ensemble
    from alembert.simulate.result import Run


Array = np.ndarray
Panels = dict[str, dict[str, Array]]
Index = tuple[int, ...]


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
        if quantity in _PANELS:
            found |= _PANELS[quantity](run, joints, index)
        elif ":" in quantity or quantity in WHOLE:
            found |= _channel(run, quantity, index)
        else:
            raise ArgumentError(unknown("plot: nothing is called", quantity, (*_PANELS, *WHOLE)))
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
_MODAL = {
    "positions [m]": "modal coordinates [m]",
    "speeds [m/s]": "modal speeds [m/s]",
    "forces [N]": "modal forces [N]",
}
"""of bodies that deform: beside an orbit or a track their millimetres would not be seen"""


def _check_joints(model: Model, joints: Sequence[str]) -> None:
    for name in joints:
        check_known("plot: no joint", name, (*model.joint_indices, *model.space.of_bodies))


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
            title = titles.get(unit, f"{kind} [{unit}]" if unit else kind)
            yield _MODAL.get(title, title) if owner.name in model.space.of_bodies else title, names[k], k


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


_PANELS: dict[str, Callable[[Run, Sequence[str], Index], Panels]] = {
    "coordinates": lambda run, *which: _by_unit(run, "coordinates", run.q, _COORDINATES, *which),
    "speeds": lambda run, *which: _by_unit(run, "speeds", run.v, _SPEEDS, *which),
    "efforts": _efforts,
    "energy": _energy,
    "momentum": _momentum,
    "constraints": _constraints,
}


_TRIED = 1000
"""points at which delays are tried"""


@dataclass(frozen=True, eq=False)
class ComparedSignal:
    """One component of one signal."""

    name: str
    unit: str
    time: Array
    computed: Array
    measured: Array

    @property
    def error(self) -> Array:
        return self.computed - self.measured

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.error**2)))

    @property
    def largest(self) -> tuple[float, float]:
        """The largest error, and when."""
        k = int(np.abs(self.error).argmax())
        return float(self.error[k]), float(self.time[k])

    @property
    def fit(self) -> float:
        """1 where both are equal, 0 where the mean of the measurement would do as well; (1)."""
        spread = float(np.linalg.norm(self.measured - self.measured.mean()))
        return 1 - float(np.linalg.norm(self.error)) / spread if spread else float(not self.error.any())

    @property
    def delay(self) -> float:
        """By which the computed signal is late, s, to the spacing of the times."""
        n = min(len(self.time), _TRIED)
        t = np.linspace(self.time[0], self.time[-1], n)
        a, b = (np.interp(t, self.time, x) for x in (self.computed, self.measured))
        most = n // 4
        shifts = sorted(range(-most, most + 1), key=abs)  # of those alike, the least
        apart = [np.mean((a[max(k, 0) : n + min(k, 0)] - b[max(-k, 0) : n - max(k, 0)]) ** 2) for k in shifts]
        return float(shifts[int(np.argmin(apart))] * (t[1] - t[0])) if most else 0.0


@dataclass(frozen=True, eq=False)
class Comparison:
    """All components that were compared."""

    signals: tuple[ComparedSignal, ...]

    def __getitem__(self, name: str) -> ComparedSignal:
        for signal in self.signals:
            if signal.name == name:
                return signal
        raise ArgumentError(
            f"compare: no signal {name!r}; there is {', '.join(s.name for s in self.signals)}"
        )

    @property
    def worst(self) -> ComparedSignal:
        """The one with the poorest fit."""
        return min(self.signals, key=lambda signal: signal.fit)

    def _repr_html_(self) -> str:
        """In notebooks: the table, and measured and computed over time."""
        from alembert.view.figures import result_html, table

        columns = ("signal", "rms", "largest", "at [s]", "fit", "late [s]")
        rows = [
            (
                f"{s.name} [{s.unit}]" if s.unit else s.name,
                *(f"{x:.3g}" for x in (s.rms, *s.largest, s.fit, s.delay)),
            )
            for s in self.signals
        ]
        return result_html(
            f"Comparison of {len(rows)} {'signal' if len(rows) == 1 else 'signals'}",
            plot=self.plot,
            body=table(columns, rows),
        )

    def __str__(self) -> str:
        lines = ["signal                        rms        largest  at [s]     fit   late [s]"]
        for s in self.signals:
            error, when = s.largest
            label = f"{s.name} [{s.unit}]" if s.unit else s.name
            lines.append(f"{label:25}{s.rms:10.3g} {error:13.3g} {when:7.3g} {s.fit:7.3f} {s.delay:10.3g}")
        return "\n".join(lines)

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """Measured and computed over time, a panel for each; needs matplotlib. `path` saves it."""
        figure = figures.new_figure("plot", 7, 2.2 * len(self.signals))
        panels = figure.subplots(len(self.signals), 1, squeeze=False)[:, 0]
        for axes, s in zip(panels, self.signals, strict=True):
            axes.plot(s.time, s.measured, ".", ms=3, label="measured")
            axes.plot(s.time, s.computed, lw=1, label="computed")
            axes.set_ylabel(figures.plain(f"{s.name} [{s.unit}]" if s.unit else s.name))
        panels[0].legend()
        panels[-1].set_xlabel("time [s]")
        return figures.save(figure, path)


def compare(computed: Run | Mapping[str, Any], measured: Mapping[str, Any]) -> Comparison:
    """A run, or signals computed otherwise, beside a measurement.

    `measured` has the times under "time" and signals by the names of channels of the run ("q:elbow", any that `run.channel`
    takes), (times,) or (times, components). Efforts from `inverse_dynamics` of measured positions are compared the same
    way, as a mapping with "time" in the place of the run.
    """
    times = _times("measured", measured)
    names = [name for name in measured if name != "time"]
    if not names:
        raise ArgumentError("compare: measured has no signals besides the time")
    found: list[ComparedSignal] = []
    for name in names:
        y = _signal("measured", name, measured[name], len(times))
        if hasattr(computed, "channel"):
            channel = computed.channel(name)
            if channel.values.ndim != 2:
                raise ArgumentError(
                    f"compare: the run is a batch of shape {channel.values.shape[:-2]}; take one motion of it"
                )
            t, x, units = channel.time, channel.values, list(channel.units)
            labels = _labels(computed, name, channel.components, {signal.name for signal in found})
        else:
            t = _times("computed", computed)
            if name not in computed:
                raise ArgumentError(f"compare: computed has no {name!r}")
            x = _signal("computed", name, computed[name], len(t))
            labels = [name] if x.shape[1] == 1 else [f"{name}.{k}" for k in range(x.shape[1])]
            units = [""] * x.shape[1]
        if x.shape[1] != y.shape[1]:
            raise ArgumentError(
                f"compare: {name!r} has {y.shape[1]} components measured, {x.shape[1]} computed"
            )
        slack = 1e-9 * max(1.0, abs(t[-1]))
        if times[0] < t[0] - slack or times[-1] > t[-1] + slack:
            raise ArgumentError(
                f"compare: {name!r} is measured from {times[0]:g} to {times[-1]:g} s, computed from {t[0]:g} to {t[-1]:g} s"
            )
        for k, label in enumerate(labels):
            unit = units[k] if k < len(units) else ""
            found.append(ComparedSignal(label, unit, times, np.interp(times, t, x[:, k]), y[:, k]))
    return Comparison(tuple(found))


def _labels(run: Any, name: str, components: Sequence[str], taken: set[str]) -> list[str]:
    """Coordinates by their own names; other components, and names that are taken, with that of the channel."""
    known = {*run.model.coordinate_names, *run.model.speed_names} - taken
    return [c if c in known else name if len(components) == 1 else f"{name}.{c}" for c in components]


def _times(what: str, given: Mapping[str, Any]) -> Array:
    if not isinstance(given, Mapping) or "time" not in given:
        raise ArgumentError(f"compare: {what} is expected as a mapping with the times under 'time'")
    t = numbers("compare", f"the time of {what}", given["time"])
    if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ArgumentError(f"compare: the times of {what} have shape {t.shape}, expected increasing numbers")
    return t


def _signal(what: str, name: str, given: Any, count: int) -> Array:
    x = numbers("compare", f"{what} {name!r}", given)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != count or not np.isfinite(x).all():
        raise ArgumentError(
            f"compare: {what} {name!r} has shape {np.shape(given)}, expected finite numbers ({count}, ...)"
        )
    return x
