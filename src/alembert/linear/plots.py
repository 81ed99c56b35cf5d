"""Figures of linear models: Bode diagrams, poles, root loci and mode shapes, with matplotlib."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import check_known
from alembert.control.plots import bode, frequencies, plane
from alembert.errors import ArgumentError
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.linear.linear_model import LinearModel
    from alembert.linear.modes import Mode

Array = np.ndarray
KINDS = ("bode", "poles", "modes")
PathLike = str | os.PathLike[str] | None


def plot(
    linear: LinearModel,
    kind: str,
    path: PathLike,
    *,
    inputs: Any = None,
    outputs: Any = None,
    frequency: Any = None,
) -> Figure:
    check_known("plot: there is no plot", kind, KINDS)
    for what, given in (("inputs", inputs), ("outputs", outputs), ("frequency", frequency)):
        if given is not None and kind != "bode":
            raise ArgumentError(f"plot: {what} are for the plot 'bode', this is {kind!r}")
    if kind == "poles":
        return poles(linear, path)
    if kind == "modes":
        return mode_shapes(linear, path)
    w = frequencies(linear.poles()) if frequency is None else frequency
    return bode(linear.frequency_response(w), path, inputs=inputs, outputs=outputs, title=_title(linear))


def poles(linear: LinearModel, path: PathLike) -> Figure:
    """The poles in the complex plane; a batch of points in shades, from light to dark."""
    figure = figures.new_figure("plot", 6.4, 5.2)
    axis = figure.subplots()
    p = linear.poles()
    p = p.reshape(-1, p.shape[-1])
    plane(axis, p)
    shades = np.linspace(1.0, 0.25, len(p))[::-1]
    for shade, points in zip(shades, p, strict=True):
        stable = points.real < 0
        for chosen, marker, color in ((stable, "x", figures.COLORS[0]), (~stable, "D", figures.COLORS[1])):
            if np.any(chosen):
                axis.plot(
                    points[chosen].real,
                    points[chosen].imag,
                    marker,
                    color=color,
                    alpha=float(shade),
                    mfc="none",
                    ms=7,
                    mew=1.6,
                )
    axis.plot([], [], "x", color=figures.COLORS[0], mew=1.6, label="real part below zero")
    axis.plot([], [], "D", color=figures.COLORS[1], mfc="none", mew=1.6, label="zero or above")
    axis.legend(fontsize="small", frameon=False, loc="upper right")
    axis.set_title(figures.plain(f"{_title(linear)}: poles"))
    return figures.save(figure, path)


def mode_shapes(linear: LinearModel, path: PathLike, most: int = 8) -> Figure:
    """Displacements of the first modes, scaled to one; bars for the real part, outlines for the size."""
    found: list[Mode] = list(linear.modes().modes)[:most]
    if not found:
        raise ArgumentError("plot: the model has no modes")
    columns = 1 if len(found) == 1 else 2
    rows = -(-len(found) // columns)
    names = [figures.plain(name) for name in found[0].names]
    figure = figures.new_figure("plot", 5.0 * columns, 1.0 + rows * max(1.4, 0.32 * len(names) + 0.8))
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, mode in zip(axes, found, strict=False):
        at = np.arange(len(names))
        axis.barh(at, mode.shape.real, color=figures.COLORS[0], height=0.6)
        axis.barh(
            at,
            np.sign(mode.shape.real + 0.0) * np.abs(mode.shape),
            color="none",
            edgecolor="black",
            height=0.6,
        )
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(at, names, fontsize=8)
        axis.set_xlim(-1.1, 1.1)
        axis.grid(alpha=0.3, axis="x")
        axis.set_title(_mode_title(mode), fontsize=9, loc="left")
    axes[0].invert_yaxis()  # shared: the first coordinate is on top
    for spare in axes[len(found) :]:
        spare.set_axis_off()
    figure.suptitle(figures.plain(f"{_title(linear)}: mode shapes"))
    return figures.save(figure, path)


# --- pieces -------------------------------------------------------------------------------------------------


def _mode_title(mode: Mode) -> str:
    if mode.kind == "rigid":
        return "rigid, 0 rad/s"
    hertz = mode.frequency / (2 * np.pi)
    if mode.kind == "oscillation":
        return f"{mode.frequency:.4g} rad/s ({hertz:.4g} Hz), damping {mode.damping + 0.0:.3g}"
    return f"real, {mode.pole.real:.4g} rad/s"


def _title(linear: LinearModel) -> str:
    return linear.model.name
