"""A solution as a dataset, as a table of ranges and as pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.linear import quantities
from alembert.model.io.netcdf import imported_xarray
from alembert.view.animation import CurvePage, Curves
from alembert.view.figures import new_figure, plain, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

    from alembert.optimal.solution import Solution, Solved

Array = np.ndarray
ACTIVE = 1e-4
"""a multiplier from which on a bound is said to hold"""
_PLACES = {"rad": "angles", "m": "positions", "": "quaternions"}
_EFFORTS = {"N m": "torques", "N": "forces"}
_ONE = {"speeds": "speed", "angles": "angle", "positions": "position", "torques": "torque", "forces": "force"}


def to_xarray(solution: Solution) -> Dataset:
    """An `xarray.Dataset` with names and units (needs the extra `data`)."""
    xr = imported_xarray("solution.to_xarray")
    controls = xr.DataArray(
        solution.controls,
        dims=("interval", "control"),
        coords={
            "control": list(solution.problem.plant.controls),
            "interval": solution.time[:-1] + np.diff(solution.time) / 2,
            "control_unit": ("control", control_units(solution)),
        },
    )
    data: dict[str, Any] = {"controls": controls}
    if solution.model is None:
        states = list(solution.problem.plant.tangent_names)
        units = {"state_unit": ("state", [solution.problem.plant.units.get(name, "") for name in states])}  # type: ignore[union-attr]
        data["x"] = xr.DataArray(solution.x, dims=("time", "state"), coords={"state": states, **units})
    else:
        data["q"] = xr.DataArray(
            solution.q,
            dims=("time", "coordinate"),
            coords={
                "coordinate": list(solution.model.coordinate_names),
                "coordinate_unit": (
                    "coordinate",
                    list(solution.model.space.coordinate_units),
                ),
            },
        )
        data["v"] = xr.DataArray(
            solution.v,
            dims=("time", "speed"),
            coords={
                "speed": list(solution.model.speed_names),
                "speed_unit": ("speed", list(quantities.speed_units(solution.model))),
            },
        )
    found = xr.Dataset(data, coords={"time": solution.time})
    found["time"].attrs["units"] = found["interval"].attrs["units"] = "s"
    names = ("cost", "duration", "status", "message", "transcription", "solver", "iterations")
    found.attrs |= {name: getattr(solution, name) for name in names}
    return found


def control_units(solution: Solution) -> list[str]:
    """Of every control; "" where a system does not say."""
    plant = solution.problem.plant
    if solution.model is None:
        return [plant.units.get(name, "") for name in plant.controls]  # type: ignore[union-attr]
    units = quantities.effort_units(solution.model)
    return [units[k] for k in plant.driven]  # type: ignore[union-attr]


@dataclass(frozen=True)
class Panel:
    """Quantities of one kind and unit over the time, with the bounds that the problem has for them."""

    title: str
    unit: str
    time: Array
    lines: dict[str, Array]
    bounds: dict[str, tuple[float, float]]

    @property
    def label(self) -> str:
        return f"{self.title} [{self.unit}]" if self.unit else self.title


def panels(solution: Solution, *, fine: bool = True) -> list[Panel]:
    """Coordinates or states and speeds at the nodes; controls in between too, unless not `fine`."""
    model, plant = solution.model, solution.problem.plant
    columns: list[tuple[str, str, str, str, Array]] = []
    """title, unit, name, the name of its limit, values"""
    if model is None:
        units = plant.units  # type: ignore[union-attr]
        for name, x in zip(plant.tangent_names, solution.x.T, strict=True):
            columns.append(("states", units.get(name, ""), name, name, x))
    else:
        places = list(model.space.coordinate_units)
        for name, unit, x in zip(model.coordinate_names, places, solution.q.T, strict=True):
            columns.append((_PLACES.get(unit, "coordinates"), unit, name, f"q {name}", x))
        for name, unit, x in zip(model.speed_names, quantities.speed_units(model), solution.v.T, strict=True):
            columns.append(("speeds", unit, name, f"v {name}", x))
    time = np.linspace(0, solution.duration, 20 * solution.steps + 1) if fine else solution.time
    controls = solution.control_at(time).T
    for name, unit, x in zip(plant.controls, control_units(solution), controls, strict=True):
        columns.append((_EFFORTS.get(unit, "controls"), unit, name, name, x))
    limits = solution.problem.limits
    bounds = {row.component: (row.lower, row.upper) for row in (*limits["state"], *limits["control"])}
    found: dict[tuple[str, str], Panel] = {}
    for title, unit, name, limit, x in columns:
        own = time if len(x) == len(time) else solution.time
        title = title if unit or model is not None else name  # what has no unit shares its scale with nothing
        panel = found.setdefault((title, unit), Panel(title, unit, own, {}, {}))
        panel.lines[name] = x
        if limit in bounds:
            panel.bounds[name] = bounds[limit]
    return list(found.values())


def curves(solution: Solved) -> list[Curves]:
    """How it was found, for a page: cost and residuals over the iterations, and meshes that were refined."""
    history = solution.history
    number = np.array([float(i.number) for i in history])
    residuals = {
        "largest residual": [i.infeasibility for i in history],
        "slope of the Lagrangian": [i.slope for i in history],
    }
    found = [
        Curves(
            "cost over the iterations", number, {"cost": np.array([i.cost for i in history])}, "iterations"
        ),
        Curves("residuals over the iterations, powers of ten", number, _powers(residuals), "iterations"),
    ]
    for name, rounds in _rounds(solution).items():
        of = f"{name}: " if name else ""
        values = {"intervals": [r.steps for r in rounds], "estimated error": [r.estimate for r in rounds]}
        at = np.arange(1.0, len(rounds) + 1)
        found.append(
            Curves(f"{of}intervals and errors over the meshes, powers of ten", at, _powers(values), "meshes")
        )
    return [c for c in found if len(c.x) > 1]


def _powers(values: dict[str, Any]) -> dict[str, Array]:
    """Decimal logarithms of what is positive and finite, of the lines that have such values."""
    found = {}
    for name, given in values.items():
        x = np.asarray(given, dtype=float)
        good = np.isfinite(x) & (x > 0)
        if good.any():
            found[name] = np.where(good, np.log10(np.where(good, x, 1.0)), np.nan)
    return found


def multiplier_curves(solution: Solution) -> list[Curves]:
    """Costates, and multipliers of the bounds along the way that hold somewhere."""
    if solution.transcription == "splines":
        return []
    names = solution.problem.plant.tangent_names
    found = [
        Curves("costates", solution.time[1:], dict(zip(names, solution.costates.T, strict=True))),
        Curves(
            "multipliers of bounds",
            solution.time[:-1],
            {
                name: solution.multipliers[name]
                for name in solution.stages.path_names
                if np.abs(solution.multipliers[name]).max(initial=0.0) > ACTIVE
            },
        ),
    ]
    return [c for c in found if c.lines and len(c.x) > 1]


def record(solution: Solution, title: str, notes: dict[str, str]) -> CurvePage:
    """What a page shows of a solution without a model."""
    own = [Curves(panel.label, panel.time, panel.lines) for panel in panels(solution)]
    own += [*multiplier_curves(solution), *curves(solution)]
    return CurvePage(title or solution.problem.plant.name, solution.duration, own, notes)  # type: ignore[union-attr]


def ranges(solution: Solution) -> list[tuple[str, str, str, str]]:
    """Name and unit, the least and the largest value with their times, and the limits, of every quantity that moves."""
    found = []
    for panel in panels(solution):
        kind = _ONE.get(panel.title, "") if solution.model is not None else ""
        for name, x in panel.lines.items():
            least, most = (f"{x[k]:.4g} at {panel.time[k]:.4g} s" for k in (np.argmin(x), np.argmax(x)))
            low, high = panel.bounds.get(name, (-np.inf, np.inf))
            limit = f"{low:g} .. {high:g}" if np.isfinite(low) or np.isfinite(high) else "-"
            label = f"{name} {kind}".strip()
            found.append((f"{label} [{panel.unit}]" if panel.unit else label, least, most, limit))
    return found


def plot(solution: Solved, path: str | Path | None = None) -> Figure:
    """States and controls over time, with limits; of phases over the time of the whole, with a line where they meet."""
    parts = solution._parts()
    rows: dict[str, list[tuple[Array, Panel]]] = {}
    for _, begin, own in parts:
        for panel in panels(own):
            rows.setdefault(panel.label, []).append((begin + panel.time, panel))
    figure = new_figure("solution.plot", 7, 0.6 + 2.0 * len(rows))
    axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    styles = ["-", "--", ":", "-."]
    for ax, (label, shown) in zip(axes, rows.items(), strict=True):
        drawn: dict[str, Any] = {}
        for time, panel in shown:
            for name, x in panel.lines.items():
                style = {"linestyle": styles[len(drawn) % 4], "label": plain(name)}
                if name in drawn:
                    style = {"linestyle": drawn[name].get_linestyle(), "color": drawn[name].get_color()}
                (line,) = ax.plot(time, x, **style)
                drawn.setdefault(name, line)
                for bound in panel.bounds.get(name, ()):
                    if np.isfinite(bound) and _is_near(bound, x):
                        ends = {"linewidth": 0.8, "alpha": 0.5, "linestyle": (0, (8, 3))}
                        ax.hlines(bound, time[0], time[-1], line.get_color(), **ends)
        ax.set_ylabel(plain(label), fontsize=8)
        ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.grid(alpha=0.3)
        for _, begin, own in parts if len(parts) > 1 else ():
            ax.axvline(begin + own.duration, color="0.6", linewidth=0.8)
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "rotation": 30, "fontsize": 7}
    for name, begin, own in parts:
        if name:
            axes[0].annotate(plain(name), (begin, 1.06), **place, ha="left", va="bottom")
        else:
            steps = f"{own.steps} steps of {own.transcription}"
            axes[0].set_title(f"cost {own.cost:.6g}, {own.duration:.4g} s, {steps}", fontsize=9)
    axes[-1].set_xlabel("time [s]")
    return save(figure, path)


def convergence(solution: Solved, path: str | Path | None = None) -> Figure:
    """Cost, infeasibility and slope of the Lagrangian over the iterations; where meshes were refined, their intervals and
    what was estimated of their errors."""
    rounds = _rounds(solution)
    figure = new_figure("solution.plot_convergence", 7, 6.0 if rounds else 3.6)
    above, below, *more = figure.subplots(3 if rounds else 2, 1)
    above.sharex(below)
    for ax in more:
        for name, of in rounds.items():
            errors = np.array([r.estimate for r in of])
            label = (
                f"{name}: {', '.join(str(r.steps) for r in of)}"
                if name
                else ", ".join(str(r.steps) for r in of)
            )
            ax.semilogy(
                np.arange(1, len(of) + 1),
                np.where(np.isfinite(errors), errors, np.nan),
                "o-",
                label=plain(label),
            )
        ax.set_xlabel("mesh")
        ax.set_xticks(np.arange(1, max(map(len, rounds.values())) + 1))
        ax.set_ylabel("estimated error")
        ax.legend(fontsize=7, title="intervals", title_fontsize=7)
        ax.grid(alpha=0.3)
    number = [i.number for i in solution.history]
    above.plot(number, [i.cost for i in solution.history], ".-")
    above.set_ylabel("cost")
    for label, style, values in (
        ("largest residual", ".-", [i.infeasibility for i in solution.history]),
        ("slope of the Lagrangian", "x--", [i.slope for i in solution.history]),
    ):
        shown = np.array([v if v > 0 else np.nan for v in values], dtype=float)
        if np.isfinite(shown).any():
            below.semilogy(number, shown, style, label=label)
    below.legend(fontsize=7)
    below.set_xlabel("iteration")
    for ax in (above, below):
        ax.grid(alpha=0.3)
    return save(figure, path)


def _rounds(solution: Any) -> dict[str, list[Any]]:
    """Meshes by phase; of a single problem under ""."""
    meshes = solution.meshes
    if not meshes:
        return {}
    if isinstance(meshes[0], dict):
        return {name: [mesh[name] for mesh in meshes] for name in meshes[0]}
    return {"": list(meshes)}


def _is_near(bound: float, x: Array) -> bool:
    """Whether a line at a bound leaves the curve something of the panel."""
    low, high = float(np.min(x)), float(np.max(x))
    return low - 2 * (high - low) <= bound <= high + 2 * (high - low)
