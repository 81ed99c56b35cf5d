"""A solution as a dataset and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.linear import quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

    from alembert.optimal.solution import Solution

Array = np.ndarray


def to_xarray(solution: Solution) -> Dataset:
    """An `xarray.Dataset` with names and units (needs the extra `data`)."""
    try:
        import xarray as xr
    except ImportError:
        raise ArgumentError('solution.to_xarray needs xarray: pip install "alembert[data]"') from None
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
                    [unit for joint in solution.model.joints for _, unit in joint.type.coordinates],
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


def plot(solution: Solution, path: str | Path | None = None) -> Figure:
    """States and controls over time (needs the extra `view`)."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ArgumentError('solution.plot needs matplotlib: pip install "alembert[view]"') from None
    model = solution.model
    panels: list[tuple[str, Array, tuple[str, ...]]] = []
    if model is None:
        panels.append(("states", solution.x, solution.problem.plant.tangent_names))
    else:
        panels.append(("q [rad, m]", solution.q, model.coordinate_names))
        panels.append(("v [rad/s, m/s]", solution.v, model.speed_names))
    figure, axes = plt.subplots(len(panels) + 1, 1, sharex=True, figsize=(7, 2.2 * (len(panels) + 1)))
    styles = ["-", "--", ":", "-."]
    for ax, (label, values, names) in zip(axes, panels, strict=False):
        for k, name in enumerate(names):
            ax.plot(solution.time, values[:, k], styles[k % 4], label=name)
        ax.set_ylabel(label)
        ax.legend(fontsize=7, ncols=3)
        ax.grid(alpha=0.3)
    fine = np.linspace(0, solution.duration, 20 * solution.steps + 1)
    for k, name in enumerate(solution.problem.plant.controls):
        axes[-1].plot(fine, solution.control_at(fine)[:, k], styles[k % 4], label=name)
    axes[-1].set_ylabel("controls" if model is None else "efforts [N m, N]")
    axes[-1].set_xlabel("time [s]")
    axes[-1].legend(fontsize=7, ncols=3)
    axes[-1].grid(alpha=0.3)
    figure.suptitle(f"cost {solution.cost:.6g}, {solution.transcription}, {solution.steps} steps", fontsize=9)
    figure.tight_layout()
    if path is not None:
        figure.savefig(path, dpi=150)
        plt.close(figure)
    return figure
