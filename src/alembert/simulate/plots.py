"""What a run shows of itself: panels of coordinates, speeds, efforts, energies, momenta and constraint drift."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from alembert.arguments import check_known, unknown
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


def _check_joints(model: Model, joints: Sequence[str]) -> None:
    for name in joints:
        check_known("plot: no joint", name, model.joint_indices)


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
