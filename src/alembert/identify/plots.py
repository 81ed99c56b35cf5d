"""Figures of an identification, with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import made_folder
from alembert.view.figures import new_figure, plain, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.identify.result import Identification
    from alembert.sensitivity.regressor import Parameter

_MEASURED, _PREDICTED, _PRIOR = "#8a8f98", "#c2410c", "#1d4ed8"


def figures(result: Identification, folder: str | Path | None) -> dict[str, Figure]:
    made = {
        "efforts": _efforts(result),
        "residuals": _residuals(result),
        "parameters": _parameters(result),
    }
    if folder is not None:
        where = made_folder(folder)
        for name, figure in made.items():
            save(figure, where / f"{name}.png")
    return made


def _grid(count: int, title: str, height: float = 2.0) -> tuple[Any, list[Any]]:
    columns = 1 if count == 1 else 2
    rows = -(-count // columns)
    figure = new_figure("plot", 11, 0.6 + height * rows)
    figure.suptitle(plain(title))
    axes = list(np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel())
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def _efforts(result: Identification) -> Figure:
    """Measured and predicted efforts over time."""
    data = result.data
    t, label = (np.arange(len(data)), "sample") if data.time is None else (data.time, "time [s]")
    predicted = result.measured - result.residuals
    model, names = result.prior_model, result.effort_names
    speeds = list(model.space.speed_units)
    of_all = {
        name: "N m" if unit.startswith("rad") else "N"
        for name, unit in zip(model.speed_names, speeds, strict=True)
    }
    units = [of_all[name] for name in names]  # those of independent speeds, where loops are closed
    figure, axes = _grid(len(names), f"{result.prior_model.name}: measured and predicted efforts")
    for k, (axis, name) in enumerate(zip(axes, names, strict=True)):
        axis.plot(t, result.measured[:, k], ".", ms=2, color=_MEASURED, label="measured")
        axis.plot(t, predicted[:, k], "-", lw=1, color=_PREDICTED, label="predicted")
        share = result.r_squared[k]
        quality = "constant" if np.isnan(share) else f"R² = {share:.4f}"
        axis.set_title(plain(f"{name}   {quality}"), fontsize=9, loc="left")
        axis.margins(x=0)
        axis.set_ylabel(units[k], fontsize=8)
        if k >= len(names) - 2:
            axis.set_xlabel(label)
    axes[0].legend(fontsize=8, loc="upper right")
    return figure


def _residuals(result: Identification) -> Figure:
    """Residuals in units of the noise, against the normal distribution."""
    names = result.effort_names
    figure, axes = _grid(len(names), f"{result.prior_model.name}: residuals / noise", 1.8)
    x = np.linspace(-4, 4, 200)
    for k, (axis, name) in enumerate(zip(axes, names, strict=True)):
        scaled = result.residuals[:, k] / result.noise[k]
        axis.hist(np.clip(scaled, -4, 4), bins=48, range=(-4, 4), density=True, color=_MEASURED, alpha=0.7)
        axis.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi), lw=1, color=_PREDICTED)
        axis.set_title(plain(f"{name}   noise {result.noise[k]:.3g}"), fontsize=9, loc="left")
        axis.set_yticks([])
        if k >= len(names) - 2:
            axis.set_xlabel("residual / noise")
    return figure


def _parameters(result: Identification) -> Figure:
    """Base parameters: estimates less prior with two standard errors, and the consistent ones."""
    groups = _in_groups(result)
    scale = _scales(result, groups)
    figure, axes = _grid(
        len(groups),
        f"{result.prior_model.name}: base parameters, change from the prior\n"
        "relative to the largest first or second moment of the body, or to the joint parameter itself",
        2.4,
    )
    for axis, (title, members) in zip(axes, groups, strict=True):
        at = np.arange(len(members))
        values, errors = result.base_values[members], result.base_standard_errors[members]
        shown = np.where(np.isfinite(errors), 2 * errors, 0.0) / scale[members]
        axis.axhline(0, lw=0.6, color="black")
        change = (values - result.base_prior[members]) / scale[members]
        axis.errorbar(at, change, yerr=np.minimum(shown, 10), fmt="o", ms=3, lw=1, capsize=2, color=_PRIOR)
        found = (result.base_consistent[members] - result.base_prior[members]) / scale[members]
        axis.plot(at, found, "_", ms=9, mew=1.5, color=_PREDICTED)
        reach = 1.2 * max(0.1, float(np.abs(np.concatenate([change, found])).max()))
        axis.set_ylim(-reach, reach)
        names = [result.base.names[result.base.independent[k]] for k in members]
        axis.set_xticks(
            at, [plain(name.removeprefix(f"{title}.")) for name in names], rotation=60, fontsize=7, ha="right"
        )
        axis.set_title(plain(title), fontsize=9, loc="left")
    axes[0].plot([], [], "o", ms=3, color=_PRIOR, label="least squares ± 2 std errors")
    axes[0].plot([], [], "_", ms=9, mew=1.5, color=_PREDICTED, label=result.method)
    axes[0].legend(fontsize=7, loc="lower right")
    return figure


def _in_groups(result: Identification) -> list[tuple[str, list[int]]]:
    """Base parameters by body, then those of all joints, at most 24 to a panel."""
    groups: dict[str, list[int]] = {}
    for k, column in enumerate(_columns(result)):
        name = column.name.rsplit(".", 1)[0] if column.kind == "inertia" else "joints"
        groups.setdefault(name, []).append(k)
    panels = []
    for name, members in groups.items():
        for start in range(0, len(members), 24):
            panels.append((name, members[start : start + 24]))
    return panels


def _scales(result: Identification, groups: list[tuple[str, list[int]]]) -> np.ndarray:
    columns = _columns(result)
    size = np.maximum(np.abs(result.base_values), np.abs(result.base_prior))
    scale = size.copy()
    for _, members in groups:
        for order in range(3):  # masses, first moments, second moments
            alike = [
                k
                for k in members
                if columns[k].kind == "inertia" and (columns[k].index > 0) + (columns[k].index > 3) == order
            ]
            scale[alike] = size[alike].max(initial=0.0)
    return np.where(scale > 0, scale, 1.0)


def _columns(result: Identification) -> list[Parameter]:
    """The parameters that stand for the base parameters."""
    return [result.columns[k] for k in result.free[result.base.independent]]
