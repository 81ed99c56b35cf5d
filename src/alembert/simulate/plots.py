"""What a run shows of itself: panels of coordinates, speeds, efforts, energies, momenta and constraint drift."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from alembert.errors import ArgumentError
from alembert.model.printing import unknown
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.simulate.result import Run

Array = np.ndarray
Panels = dict[str, dict[str, Array]]
Index = tuple[int, ...]
QUANTITIES = ("coordinates", "speeds", "efforts", "energy", "momentum", "constraints")


def panels(
    run: Run, quantities: Sequence[str] | None, joints: Sequence[str], index: tuple[int, ...]
) -> Panels:
    """Lines (N,) by name, by panel, of the motion at an index of the batch; the title of a panel says the unit."""
    model = run.model
    for name in joints:
        if name not in model._joint_index:
            raise ArgumentError(unknown("plot: no joint", name, model._joint_index))
    if quantities is None:
        quantities = ("coordinates", "speeds", *(("efforts",) if np.any(run.efforts) else ()))
    found: Panels = {}
    for quantity in quantities:
        if quantity not in QUANTITIES:
            raise ArgumentError(unknown("plot: nothing is called", quantity, QUANTITIES))
        found |= _PANELS[quantity](run, joints, index)
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


# --- panels -------------------------------------------------------------------------------------------------


def _by_unit(
    run: Run, kind: str, x: Array, titles: dict[str, str], joints: Sequence[str], index: Index
) -> Panels:
    """One panel per unit, so that lines share their axis."""
    from alembert.simulate.result import _units

    model = run.model
    names = model.coordinate_names if kind == "coordinates" else model.speed_names
    slices = model._q_slices if kind == "coordinates" else model._v_slices
    units = _units(model, kind)
    found: Panels = {}
    for joint, s in zip(model.joints, slices, strict=True):
        if joints and joint.name not in joints:
            continue
        for k in range(s.start, s.stop):
            title = titles.get(units[k], f"{kind} [{units[k]}]" if units[k] else kind)
            found.setdefault(title, {})[names[k]] = x[index][:, k]
    return found


def _coordinates(run: Run, joints: Sequence[str], index: Index) -> Panels:
    titles = {"rad": "angles [rad]", "m": "positions [m]", "": "quaternions"}
    return _by_unit(run, "coordinates", run.q, titles, joints, index)


def _speeds(run: Run, joints: Sequence[str], index: Index) -> Panels:
    return _by_unit(run, "speeds", run.v, {"rad/s": "rates [rad/s]", "m/s": "speeds [m/s]"}, joints, index)


def _efforts(run: Run, joints: Sequence[str], index: Index) -> Panels:
    """Those that are not zero all along."""
    titles = {"rad/s": "torques [N m]", "m/s": "forces [N]"}
    found = _by_unit(run, "speeds", run.efforts, titles, joints, index)
    acting = {t: {name: x for name, x in lines.items() if np.any(x)} for t, lines in found.items()}
    return {t: lines for t, lines in acting.items() if lines} or dict(list(found.items())[:1])


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
    residual = np.abs(model.constraint_residual(run.q, parameters=run._parameters)[index])
    rows = model._constraint_rows.system("plot", None)
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
