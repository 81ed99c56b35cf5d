"""Figures of linear models: Bode diagrams, poles, root loci and mode shapes, with matplotlib (the extra `view`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError
from alembert.model.printing import unknown
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from alembert.linear.linear_model import FrequencyResponse, LinearModel, RootLocus
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
    if kind not in KINDS:
        raise ArgumentError(unknown("plot: there is no plot", kind, KINDS))
    for what, given in (("inputs", inputs), ("outputs", outputs), ("frequency", frequency)):
        if given is not None and kind != "bode":
            raise ArgumentError(f"plot: {what} are for the plot 'bode', this is {kind!r}")
    if kind == "poles":
        return poles(linear, path)
    if kind == "modes":
        return mode_shapes(linear, path)
    w = frequencies(linear) if frequency is None else frequency
    return bode(linear.frequency_response(w), path, inputs=inputs, outputs=outputs, title=_title(linear))


def frequencies(linear: LinearModel) -> Array:
    """Two decades around the poles, and points near lightly damped ones, where the response is sharp; none on a pole."""
    sizes = np.abs(linear.poles())
    sizes = sizes[sizes > 1e-6 * max(sizes.max(initial=0.0), 1e-12)]
    low, high = (sizes.min() / 100, sizes.max() * 100) if len(sizes) else (0.01, 100.0)
    w = np.logspace(np.log10(low), np.log10(high), 600)
    near = (1 + np.array([-1, 1])[:, None] * np.logspace(-4, -1, 25)).ravel()
    return np.unique(np.concatenate([w, *(size * near for size in sizes)]))


def bode(
    response: FrequencyResponse,
    path: PathLike,
    *,
    inputs: Any = None,
    outputs: Any = None,
    title: str = "",
) -> Figure:
    """Magnitude and phase, one column per input, one line per output."""
    columns = _chosen("inputs", inputs, response.input_names)
    rows = _chosen("outputs", outputs, response.output_names)
    if not columns or not rows:
        raise ArgumentError("plot: a Bode diagram needs an input and an output")
    figure = figures.new_figure("plot", 3.2 + 3.6 * len(columns), 5.6)
    axes = figure.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False)
    magnitude, phase = response.magnitude_db, response.phase_deg
    for c, k in enumerate(columns):
        for line, j in enumerate(rows):
            style = figures.style(line)
            label = figures.plain(response.output_names[j])
            y = magnitude[:, j, k]
            shown = np.where(np.isfinite(y), y, np.nan)
            axes[0, c].semilogx(response.frequency, shown, label=label, **_sparse(style, len(shown)))
            turned = np.where(np.isfinite(y), phase[:, j, k], np.nan)
            axes[1, c].semilogx(response.frequency, turned, **_sparse(style, len(shown)))
        axes[0, c].set_title(f"from {figures.plain(response.input_names[k])}", fontsize=10)
        axes[1, c].set_xlabel("frequency [rad/s]")
        for axis in axes[:, c]:
            axis.grid(alpha=0.3, which="both")
            axis.margins(x=0)
    axes[0, 0].set_ylabel("magnitude [dB]")
    axes[1, 0].set_ylabel("phase [deg]")
    axes[0, -1].legend(
        fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.2
    )
    if title:
        figure.suptitle(figures.plain(title))
    return figures.save(figure, path)


def poles(linear: LinearModel, path: PathLike) -> Figure:
    """The poles in the complex plane; a batch of points in shades, from light to dark."""
    figure = figures.new_figure("plot", 6.4, 5.2)
    axis = figure.subplots()
    p = linear.poles()
    p = p.reshape(-1, p.shape[-1])
    _plane(axis, p)
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


def root_locus(locus: RootLocus, path: PathLike) -> Figure:
    """Branches over the gain: open circles at the first gain, crosses at the last."""
    figure = figures.new_figure("plot", 6.8, 5.4)
    axis = figure.subplots()
    _plane(axis, locus.poles)
    for k, branch in enumerate(locus.poles.T):
        axis.plot(branch.real, branch.imag, **_sparse(figures.style(k % len(figures.COLORS)), len(branch)))
    first, last = locus.poles[0], locus.poles[-1]
    axis.plot(
        first.real, first.imag, "o", color="black", mfc="white", ms=7, label=f"k = {locus.gains[0]:.4g}"
    )
    axis.plot(last.real, last.imag, "x", color="black", ms=7, mew=1.6, label=f"k = {locus.gains[-1]:.4g}")
    # some branches run away: what happens near the open-loop poles is what matters
    near = 4 * max(float(np.abs(first).max()), 1e-3)
    if np.abs(locus.poles).max() > 2 * near:
        axis.set_xlim(-near, near)
        axis.set_ylim(-near, near)
    axis.legend(fontsize="small", frameon=False)
    outside = int(np.sum(np.maximum(np.abs(last.real), np.abs(last.imag)) > near))
    axis.set_title(
        "root locus" + (f" ({outside} of {len(last)} branches leave the picture)" if outside else "")
    )
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


def _plane(axis: Axes, points: Array) -> None:
    axis.axhline(0, color="black", linewidth=0.8)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.grid(alpha=0.3)
    axis.set_xlabel("real part [rad/s]")
    axis.set_ylabel("imaginary part [rad/s]")
    size = float(np.max(np.abs(points))) if points.size else 1.0
    for limits, entries in ((axis.set_xlim, points.real), (axis.set_ylim, points.imag)):
        low, high = float(np.min(entries, initial=0.0)), float(np.max(entries, initial=0.0))
        margin = 0.12 * (high - low) + 0.05 * (size or 1.0)
        limits(low - margin, high + margin)


def _sparse(style: dict[str, Any], count: int) -> dict[str, Any]:
    return style | {"markevery": max(1, count // 12)} if "marker" in style else style


def _chosen(what: str, given: Any, names: tuple[str, ...]) -> list[int]:
    if given is None:
        return list(range(len(names)))
    found = []
    for name in [given] if isinstance(given, str) else given:
        if name not in names:
            raise ArgumentError(unknown(f"plot: {what}: there is no", name, names))
        found.append(names.index(name))
    return found
