"""Figures of systems, with matplotlib: Bode, gains, Nyquist, Nichols, steps, poles and root loci; and of what a design
reached: mu with its bounds, margins of a loop, steps with specifications, Pareto fronts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import check_known, real
from alembert.control import arguments
from alembert.control.responses import step_info
from alembert.errors import ArgumentError
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from alembert.control.codesign import ParetoFront
    from alembert.control.responses import FrequencyResponse
    from alembert.control.robustness import MuResponse, RootLocus
    from alembert.control.statespace import StateSpace

Array = np.ndarray
PathLike = str | os.PathLike[str] | None
KINDS = ("bode", "sigma", "nyquist", "nichols", "step", "poles", "margins")
SPECS = ("overshoot", "rise", "settling", "band")
_ROUNDING = (
    260.0  # dB below the largest of the same unit and input: what is never above is zero but for rounding
)
_NICHOLS = 40.0  # dB that are shown, up and down
_NYQUIST = 20.0  # gain up to which the whole curve is shown
_ENTRIES = 400  # times states: zeros of more entries would take longer than the rest of a plot


def plot(
    G: StateSpace,
    kind: str,
    *,
    inputs: Any = None,
    outputs: Any = None,
    frequency: Any = None,
    t: Any = None,
    specs: Any = None,
    path: PathLike = None,
) -> Figure:
    """A figure of a system, of all signals or those named; `specs` of a step are its overshoot, rise, settling and band."""
    check_known("plot: there is no plot", kind, KINDS)
    G = G[
        arguments.picked("plot", "outputs", G.output_names, outputs),
        arguments.picked("plot", "inputs", G.input_names, inputs),
    ]
    if not all(G.shape):
        raise ArgumentError(f"plot: the system has shape {G.shape}, expected an input and an output")
    if kind == "step" and specs is not None:
        return step_with_specs(G, t, specs, path)
    if kind == "step":
        return step(G, t, path)
    if kind == "poles":
        return poles(G, path)
    w = (
        frequencies(np.concatenate([G.poles(), *_zeros_of_entries(G)]), G.dt)
        if frequency is None
        else frequency
    )
    if kind == "margins":
        return loop_margins(G, np.asarray(w), path)
    return {"bode": bode, "sigma": sigma, "nyquist": nyquist, "nichols": nichols}[kind](
        G.frequency_response(w), path
    )


def frequencies(corners: Array, dt: float = 0.0) -> Array:
    """Two decades around poles (and zeros), and points near lightly damped ones, where the response is sharp: at equal
    steps of its phase, which are equal steps on the circle of a resonance, too; none on a pole."""
    p = (np.log(np.where(corners == 0, 1e-300, corners)) / dt if dt else corners).ravel()
    p = p[np.abs(p) > 1e-6 * max(np.abs(p).max(initial=0.0), 1e-12)]
    sizes = np.abs(p)
    low, high = (sizes.min() / 100, sizes.max() * 100) if len(sizes) else (0.01, 100.0)
    near = (1 + np.array([-1, 1])[:, None] * np.logspace(-4, -1, 25)).ravel()
    turn = np.tan(np.radians(np.arange(-86, 87, 4)))
    # undamped poles are on the axis but for rounding
    sharp = p[(p.imag > 0) & (np.abs(p.real) > 1e-10 * sizes)]
    points = [size * near for size in sizes] + [x.imag + np.abs(x.real) * turn for x in sharp]
    w = np.unique(np.concatenate([np.geomspace(low, high, 600), *points]))
    w = w[(w >= low) & (w <= high)]
    return w[w < np.pi / dt] if dt else w


def _zeros_of_entries(G: StateSpace) -> list[Array]:
    """Where entries of the response have their dips; those far away are not corners of a plot."""
    far = 10 * np.abs(G.poles()).max(initial=0.0)
    entries = list(np.ndindex(*G.shape)) if G.shape[0] * G.shape[1] * G.order <= _ENTRIES else []
    found = [G[j, i].zeros() for j, i in entries]
    return [z[np.abs(z) < far] for z in found]


def bode(
    response: FrequencyResponse,
    path: PathLike,
    *,
    inputs: Any = None,
    outputs: Any = None,
    title: str = "",
) -> Figure:
    """Magnitude and phase: one column per input, one panel of magnitudes per unit of outputs, one line per output."""
    columns = arguments.picked("plot", "inputs", response.input_names, inputs)
    rows = arguments.picked("plot", "outputs", response.output_names, outputs)
    if not columns or not rows:
        raise ArgumentError("plot: a Bode diagram needs an input and an output")
    groups = figures.by_unit(rows, response.output_units)
    driven = figures.by_unit(columns, response.input_units)
    figure = figures.new_figure("plot", 3.2 + 3.6 * len(columns), 2.8 * (1 + len(groups)))
    axes = figure.subplots(
        1 + len(groups),
        len(columns),
        sharex=True,
        sharey="row" if len(driven) == 1 else "none",  # those of different units have no common scale
        squeeze=False,
    )
    magnitude, phase = response.magnitude_db, response.phase_deg
    for c, k in enumerate(columns):
        for panel, (unit, members) in enumerate(groups.items()):
            tops = {j: magnitude[:, j, k].max(initial=-np.inf) for j in members}
            for j in members:
                style = figures.style(rows.index(j))
                y = magnitude[:, j, k]
                seen = np.isfinite(y) & (tops[j] > max(tops.values()) - _ROUNDING)
                shown = np.where(seen, y, np.nan)
                label = figures.plain(response.output_names[j]) + ("" if np.any(seen) else " (zero)")
                axes[panel, c].semilogx(response.frequency, shown, label=label, **_sparse(style, len(shown)))
                turned = np.where(seen, phase[:, j, k], np.nan)
                axes[-1, c].semilogx(response.frequency, turned, **_sparse(style, len(shown)))
            if not np.isfinite(max(tops.values())):
                axes[panel, c].text(0.5, 0.5, "zero", transform=axes[panel, c].transAxes, ha="center")
            axes[panel, 0].set_ylabel(f"magnitude [dB of {unit}]" if unit else "magnitude [dB]")
        name, unit = response.input_names[k], next(u for u, members in driven.items() if k in members)
        axes[0, c].set_title(figures.plain(f"from {name} [{unit}]" if unit else f"from {name}"), fontsize=10)
        axes[-1, c].set_xlabel("frequency [rad/s]")
        for axis in axes[:, c]:
            axis.grid(alpha=0.3, which="both")
            axis.margins(x=0)
    axes[-1, 0].set_ylabel("phase [deg]")
    for axis in axes[:-1, -1]:
        _legend(axis, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.2)
    if title:
        figure.suptitle(figures.plain(title))
    return figures.save(figure, path)


def sigma(response: FrequencyResponse, path: PathLike) -> Figure:
    """Singular values over frequency."""
    figure, axis = _one_panel(7.0, 4.4)
    with np.errstate(divide="ignore"):
        gains = 20 * np.log10(response.singular_values)
    for k, line in enumerate(gains.T):
        axis.semilogx(
            response.frequency, line, label=f"singular value {k + 1}", **_sparse(figures.style(k), len(line))
        )
    return _finished(figure, axis, path, "frequency [rad/s]", "singular values [dB]")


def nyquist(response: FrequencyResponse, path: PathLike) -> Figure:
    """The response in the complex plane, arrows towards higher frequencies, with the point -1 and the circle of distance
    1/2 around it; thin lines are those of negative frequencies."""
    figure, axis = _one_panel(6.0, 5.6)
    for k, (j, i) in enumerate(np.ndindex(response.response.shape[1:])):
        g = response.response[:, j, i]
        label = f"{figures.plain(response.input_names[i])} to {figures.plain(response.output_names[j])}"
        axis.plot(g.real, g.imag, label=label, **_sparse(figures.style(k), len(g)))
        axis.plot(g.real, -g.imag, color=figures.style(k)["color"], alpha=0.35, linewidth=0.9)
        _arrow(axis, g, figures.style(k)["color"])
    turn = np.linspace(0, 2 * np.pi, 200)
    around: dict[str, Any] = {
        "color": "black",
        "linewidth": 0.7,
        "linestyle": ":",
        "label": "distance 0.5 from -1",
    }
    axis.plot(-1 + 0.5 * np.cos(turn), 0.5 * np.sin(turn), **around)
    axis.plot([-1], [0], "+", color="black", ms=9)
    far = float(np.abs(response.response).max())
    far = far if far <= _NYQUIST else 5.0  # near poles on the axis it goes on and on
    near = np.clip(response.response.real, -far, far) + 1j * np.clip(response.response.imag, -far, far)
    plane(axis, np.concatenate([near.ravel(), near.conj().ravel(), [-1.6 + 0.6j, -1.6 - 0.6j, 0.1]]))
    limits = axis.get_xlim(), axis.get_ylim()
    half = max(high - low for low, high in limits) / 2
    for name, (low, high) in zip("xy", limits, strict=True):
        wide = max(high - low, 1.6 * half) / 2
        axis.set(**{f"{name}lim": ((low + high) / 2 - wide, (low + high) / 2 + wide)})
    axis.set_aspect("equal", adjustable="box")
    axis.set(xlabel="real part", ylabel="imaginary part")
    _legend(axis)
    return figures.save(figure, path)


def nichols(response: FrequencyResponse, path: PathLike) -> Figure:
    """Gain over phase of the open loop, with curves of constant gain |L/(1 + L)| of the closed loop."""
    figure, axis = _one_panel(6.8, 5.4)
    magnitude, phase = response.magnitude_db, response.phase_deg
    left, right = -360.0, 0.0
    for k, (j, i) in enumerate(np.ndindex(response.response.shape[1:])):
        label = f"{figures.plain(response.input_names[i])} to {figures.plain(response.output_names[j])}"
        turned = _turned(phase[:, j, i])
        axis.plot(turned, magnitude[:, j, i], label=label, **_sparse(figures.style(k), len(phase)))
        seen = turned[np.abs(magnitude[:, j, i]) < _NICHOLS]
        left, right = min(left, seen.min(initial=0.0)), max(right, seen.max(initial=-360.0))
    left, right = 90 * np.floor(max(left, -1080) / 90), 90 * np.ceil(min(right, 720) / 90)
    sheets = 360 * np.arange(np.floor(left / 360), np.ceil(right / 360)) + 360
    turn = np.geomspace(1e-3, np.pi, 200)
    turn = np.concatenate([turn, 2 * np.pi - turn[-2::-1]])
    for level in (6.0, 3.0, 1.0, 0.5, -1.0, -3.0, -6.0, -12.0, -20.0):
        closed = 10 ** (level / 20) * np.exp(1j * turn)  # T = L/(1 + L), so that L = T/(1 - T)
        loop = closed / (1 - closed)
        angle = np.degrees(np.angle(loop))
        angle = np.where(angle > 0, angle - 360, angle)
        gain = np.where(np.abs(np.diff(angle, prepend=angle[:1])) > 180, np.nan, 20 * np.log10(np.abs(loop)))
        for sheet in sheets:
            axis.plot(angle + sheet, gain, color="black", alpha=0.25, linewidth=0.7)
        where, side = ((-180.0, gain[0]), "center") if level > 0 else ((-2.0, gain[0]), "right")
        axis.text(*where, f"{level:g} dB", fontsize=7, alpha=0.7, ha=side, va="bottom", clip_on=True)
    axis.plot(sheets - 180, 0 * sheets, "+", color="black", ms=9, linestyle="none")
    axis.set_ylim(-_NICHOLS, _NICHOLS)
    axis.set_xlim(left, right)
    axis.set_xticks(np.arange(left, right + 1, 45 if right - left <= 540 else 90))
    axis.set_xlabel("phase of the open loop [deg]")
    axis.set_ylabel("gain of the open loop [dB]")
    axis.grid(alpha=0.3)
    _legend(axis)
    return figures.save(figure, path)


def step(G: StateSpace, t: Any, path: PathLike) -> Figure:
    """Step responses: for each input one panel per unit of outputs, one line per output."""
    groups = figures.by_unit(range(G.shape[0]), G.output_units)
    figure, axes = figures.panels("plot", G.shape[1] * len(groups))
    for n, axis in enumerate(axes):
        k, (unit, members) = n // len(groups), list(groups.items())[n % len(groups)]
        found = G.step_response(t, input=k)
        named = {G.output_names[j]: found.y[:, j] for j in members}
        driven = f"step of {G.input_names[k]}" + (f" [{G.input_units[k]}]" if G.input_units[k] else "")
        figures.lines(axis, found.t, named, f"[{unit}]" if unit else "outputs")
        axis.set_title(figures.plain(driven), fontsize=10)
    axes[-1].set_xlabel("t [s]")
    return figures.save(figure, path)


def poles(G: StateSpace, path: PathLike) -> Figure:
    """Poles and zeros in the complex plane."""
    figure, axis = _one_panel(6.4, 5.2)
    p, z = G.poles(), G.zeros()
    unit_circle = np.array([-1, 1, 1j, -1j]) if G.is_discrete else np.zeros(0)
    plane(axis, np.concatenate([p, z[np.abs(z) <= 10 * np.abs(p).max(initial=1.0)], unit_circle]))
    axis.plot(p.real, p.imag, "x", color=figures.COLORS[0], ms=7, mew=1.6, label="poles")
    if len(z):
        axis.plot(z.real, z.imag, "o", color=figures.COLORS[1], mfc="none", ms=7, label="zeros")
    damping_grid(axis, p, discrete=G.is_discrete)
    _legend(axis)
    return figures.save(figure, path)


def root_locus(locus: RootLocus, path: PathLike) -> Figure:
    """Branches over the gain: crosses at the first one (open-loop poles), squares at the last, circles at zeros."""
    figure, axis = _one_panel(6.8, 5.4)
    plane(axis, locus.poles)
    for k, branch in enumerate(locus.poles.T):
        axis.plot(branch.real, branch.imag, **_sparse(figures.style(k % len(figures.COLORS)), len(branch)))
    first, last = locus.poles[0], locus.poles[-1]
    marks: dict[str, Any] = {"linestyle": "none", "color": "black", "mfc": "none"}
    axis.plot(
        first.real, first.imag, marker="x", ms=8, mew=1.6, label=f"poles at k = {locus.gains[0]:.4g}", **marks
    )
    axis.plot(last.real, last.imag, marker="s", ms=5, label=f"poles at k = {locus.gains[-1]:.4g}", **marks)
    if len(locus.zeros):
        axis.plot(locus.zeros.real, locus.zeros.imag, marker="o", ms=9, label="zeros", **marks)
    # some branches run away: what happens near the open-loop poles is what matters
    near = 1.3 if locus.dt else 2.5 * max(float(np.abs(first).max()), 1e-3)
    if locus.dt or np.abs(locus.poles).max() > 2 * near:
        inside = locus.poles.real[np.maximum(np.abs(locus.poles.real), np.abs(locus.poles.imag)) < near]
        axis.set_xlim(-near, near if locus.dt else max(float(inside.max(initial=0.0)), 0.0) + 0.15 * near)
        axis.set_ylim(-near, near)
    damping_grid(axis, locus.poles, discrete=bool(locus.dt))
    _legend(axis)
    outside = int(np.sum(np.maximum(np.abs(last.real), np.abs(last.imag)) > near))
    axis.set_title(
        "root locus" + (f" ({outside} of {len(last)} branches leave the picture)" if outside else "")
    )
    return figures.save(figure, path)


def _arrow(axis: Axes, g: Array, color: str) -> None:
    """In the middle of the part that is near the origin."""
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(g)) * (np.abs(g[1:]) < 3))])
    if length[-1] > 0:
        k = int(np.clip(np.searchsorted(length, length[-1] / 2), 1, len(g) - 1))
        ends: dict[str, Any] = {"xy": (g[k].real, g[k].imag), "xytext": (g[k - 1].real, g[k - 1].imag)}
        axis.annotate("", **ends, arrowprops={"arrowstyle": "-|>", "color": color, "mutation_scale": 14})


# --- pieces -------------------------------------------------------------------------------------------------


def plane(axis: Axes, points: Array) -> None:
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


def _turned(phase: Array) -> Array:
    """By whole turns, so that it begins between -265 and 95 degrees: integrators at -90, their squares at -180."""
    first = phase[np.isfinite(phase)][:1]
    return phase - 360 * np.ceil((first - 95) / 360) if len(first) else phase


def _sparse(style: dict[str, Any], count: int) -> dict[str, Any]:
    return style | {"markevery": max(1, count // 12)} if "marker" in style else style


def _one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    figure = figures.new_figure("plot", width, height)
    return figure, figure.subplots()


def _finished(figure: Figure, axis: Axes, path: PathLike, x: str, y: str) -> Figure:
    """Over a logarithmic axis, with a legend."""
    axis.set(xlabel=x, ylabel=y)
    axis.grid(alpha=0.3, which="both")
    axis.margins(x=0)
    _legend(axis)
    return figures.save(figure, path)


def _legend(axis: Axes, **where: Any) -> None:
    axis.legend(fontsize="small", frameon=False, **where)


def step_with_specs(G: StateSpace, t: Any, specs: Mapping[str, float], path: PathLike) -> Figure:
    """The step response with what it may not enter: above the overshoot, before the rise, outside of the band."""
    for name in specs:
        check_known("plot: specs: there is no specification", name, SPECS)
        real("plot", f"specs[{name!r}]", specs[name], "a share of the final value, or seconds", least=0.0)
    band = float(specs.get("band", 0.02))
    info = step_info(G, t=t, band=band)
    found = G.step_response(t)
    if t is None and specs.get("settling", 0.0) > found.t[-1]:  # beyond the settling that is asked for
        count = int(np.ceil(1.2 * specs["settling"] / found.t[1]))
        found = G.step_response(found.t[1] * np.arange(count + 1))
    y, final, end = found.y[:, 0], info.final, float(found.t[-1])
    figure, axis = _one_panel(7.6, 4.4)
    kept: Any = dict(color="#b91c1c", alpha=0.12, linewidth=0)
    top = max(float(y.max() / final), 1 + float(specs.get("overshoot", 0.0))) + 0.15
    settling = min(float(specs.get("settling", end)), end)
    if "overshoot" in specs:
        axis.fill_between([0, settling], (1 + specs["overshoot"]) * final, top * final, **kept)
    if "settling" in specs:
        axis.fill_between([settling, end], (1 + band) * final, top * final, **kept)
        axis.fill_between([settling, end], 0.0, (1 - band) * final, **kept)
    if "rise" in specs:  # counted from a tenth of the final value on
        begun = float(found.t[int(np.argmax(y / final >= 0.1))])
        axis.fill_between([min(begun + specs["rise"], settling), settling], 0.0, 0.9 * final, **kept)
    axis.plot(found.t, y, **figures.style(0))
    axis.axhline(final, color="black", linewidth=0.7, linestyle=":")
    if np.isfinite(info.settling):
        axis.axvline(info.settling, color="black", linewidth=0.7, linestyle="--")
    share, settled = 100 * info.overshoot, f"within {100 * band:g} % after {info.settling:.3g} s"
    told = f"overshoot {share:.1f} %, rise {info.rise:.3g} s, {settled}"
    broken = [
        name
        for name, value in (("overshoot", info.overshoot), ("rise", info.rise), ("settling", info.settling))
        if name in specs and value > specs[name]
    ]
    axis.set_title(figures.plain(told + (f"\nnot kept: {', '.join(broken)}" if broken else "")), fontsize=10)
    axis.set_xlabel("t [s]")
    unit = f" [{G.output_units[0]}]" if G.output_units[0] else ""
    axis.set_ylabel(figures.plain(f"{G.output_names[0]}{unit}"))
    axis.margins(x=0)
    axis.grid(alpha=0.3)
    return figures.save(figure, path)


def loop_margins(L: StateSpace, frequency: Array, path: PathLike) -> Figure:
    """The Bode diagram of a loop with its gain and phase margins drawn, and the distance to -1."""
    from alembert.control.robustness import margins

    found = margins(L)
    response = L.frequency_response(frequency)
    magnitude, phase = response.magnitude_db[:, 0, 0], response.phase_deg[:, 0, 0]
    phase = _turned(phase)
    figure = figures.new_figure("plot", 7.6, 5.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.semilogx(frequency, magnitude, **figures.style(0))
    lower.semilogx(frequency, phase, **figures.style(0))
    upper.axhline(0, color="black", linewidth=0.7)
    lower.axhline(-180, color="black", linewidth=0.7)
    drawn: Any = dict(color=figures.COLORS[1], linewidth=2.0)
    if np.isfinite(found.gain) and np.isfinite(found.gain_frequency):
        upper.plot([found.gain_frequency] * 2, [-20 * np.log10(found.gain), 0], **drawn)
        lower.axvline(found.gain_frequency, color=figures.COLORS[1], linewidth=0.7, linestyle=":")
    if np.isfinite(found.phase_frequency):
        near = float(np.interp(found.phase_frequency, frequency, phase))
        turn = -180 + 360 * np.round((near + 180) / 360)
        lower.axhline(turn, color="black", linewidth=0.7)
        lower.plot([found.phase_frequency] * 2, [turn, near], **drawn)
        upper.axvline(found.phase_frequency, color=figures.COLORS[1], linewidth=0.7, linestyle=":")
    gain = (
        "any gain"
        if np.isinf(found.gain)
        else f"gain {20 * np.log10(found.gain):.1f} dB at {found.gain_frequency:.3g} rad/s"
    )
    turned = (
        "any phase"
        if np.isinf(found.phase_deg)
        else f"phase {found.phase_deg:.1f} deg at {found.phase_frequency:.3g} rad/s"
    )
    state = "" if found.stable else "the closed loop is NOT stable; "
    upper.set_title(f"{state}{gain}, {turned}, distance to -1: {found.distance:.3f}", fontsize=10)
    upper.set_ylabel("magnitude [dB]")
    lower.set_ylabel("phase [deg]")
    lower.set_xlabel("frequency [rad/s]")
    for axis in (upper, lower):
        axis.grid(alpha=0.3, which="both")
        axis.margins(x=0)
    return figures.save(figure, path)


def mu_bounds(response: MuResponse, path: PathLike) -> Figure:
    """Upper and lower bound of mu over frequency, and what lies between them."""
    figure, axis = _one_panel(7.4, 4.4)
    w = response.frequency
    axis.semilogx(w, response.upper, label="upper bound", **figures.style(0))
    if np.any(response.lower > 0):
        found = np.where(response.lower > 0, response.lower, np.nan)  # zero: none was found
        axis.semilogx(w, found, label="lower bound", **figures.style(1))
        axis.fill_between(w, response.lower, response.upper, color=figures.COLORS[0], alpha=0.1, linewidth=0)
    axis.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    k = int(np.argmax(response.upper))
    axis.plot([w[k]], [response.upper[k]], "o", color="black", ms=5, mfc="none")
    axis.set_title(
        f"largest upper bound at these frequencies: {response.upper[k]:.4g} at {w[k]:.4g} rad/s", fontsize=10
    )
    axis.set_ylim(bottom=0)
    return _finished(figure, axis, path, "frequency [rad/s]", "structured singular value")


def pareto(front: ParetoFront, path: PathLike) -> Figure:
    """Cost of control over that of the structure, and the parameters over the share of control."""
    figure = figures.new_figure("plot", 9.6, 4.2)
    left, right = figure.subplots(1, 2)
    left.plot(front.structure, front.control, marker="o", ms=4, **figures.style(0))
    for k, side, away in ((0, "left", 8), (len(front.designs) - 1, "right", -14)):  # where the curve is not
        left.annotate(f"share {front.shares[k]:.2g}", (front.structure[k], front.control[k]), xytext=(0, away),
                      textcoords="offset points", fontsize="small", ha=side)  # fmt: skip
    left.margins(0.1)
    left.set_xlabel("cost of the structure")
    left.set_ylabel("cost of control")
    named = {name: [d.values[name] for d in front.designs] for name in front.designs[0].values}
    figures.lines(right, front.shares, named, "parameters")
    right.set_xlabel("share of control")
    left.grid(alpha=0.3)
    return figures.save(figure, path)


def damping_grid(axis: Any, poles: Array, *, discrete: bool = False) -> None:
    """Curves of equal damping and of equal frequency behind poles: rays and circles in the left half-plane, or what z =
    exp(s dt) makes of them within the unit circle, frequencies in tenths of pi/dt."""
    if discrete:
        _discrete_grid(axis)
        return
    size = float(np.abs(poles).max(initial=0.0)) or 1.0
    left, right = axis.get_xlim()
    bottom, top = axis.get_ylim()
    far = 2 * max(abs(left), abs(bottom), abs(top), size)
    last, above = np.inf, np.inf
    for zeta in (0.1, 0.2, 0.4, 0.6, 0.8):
        x, y = -zeta, np.sqrt(1 - zeta**2)
        for sign in (1, -1):
            axis.plot([0, far * x], [0, sign * far * y], color="black", alpha=0.18, linewidth=0.7)
        reach = min(abs(left) / zeta, abs(top) / y) * 0.93
        beside = (
            reach * y if reach * abs(x) > 0.9 * abs(left) else np.inf
        )  # at the left edge, one above the other
        room = (
            abs(above - reach * x) > 0.04 * (right - left)
            if np.isinf(beside)
            else last - beside > 0.04 * (top - bottom)
        )
        if left < 0 < top and room:
            axis.text(reach * x, reach * y, f"{zeta:g}", fontsize=7, alpha=0.6)
            last, above = beside, reach * x
    turn = np.linspace(np.pi / 2, 3 * np.pi / 2, 100)
    step = 10 ** np.floor(np.log10(max(abs(left), top)))
    step = step / 2 if max(abs(left), top) / step < 3 else step
    for radius in np.arange(step, far, step)[:12]:
        axis.plot(radius * np.cos(turn), radius * np.sin(turn), color="black", alpha=0.18, linewidth=0.7)
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)


def _discrete_grid(axis: Any) -> None:
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    thin = {"color": "black", "alpha": 0.18, "linewidth": 0.7}
    for zeta in (0.1, 0.2, 0.4, 0.6, 0.8):
        turn = np.linspace(0, np.pi, 120)  # the imaginary part of s dt
        z = np.exp((-zeta / np.sqrt(1 - zeta**2) + 1j) * turn)
        for sign in (1, -1):
            axis.plot(z.real, sign * z.imag, **thin)
        axis.text(z[45].real, z[45].imag, f"{zeta:g}", fontsize=7, alpha=0.6, clip_on=True)
    angle = np.linspace(np.pi / 2, np.pi, 60)
    for tenth in range(1, 11):
        z = np.exp(tenth * np.pi / 10 * np.exp(1j * angle))
        for sign in (1, -1):
            axis.plot(z.real, sign * z.imag, **thin)
    turn = np.linspace(0, 2 * np.pi, 200)
    axis.plot(np.cos(turn), np.sin(turn), color="black", linewidth=0.7)
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)
    axis.set_aspect("equal", adjustable="box")
    axis.set_xlabel("real part of z")
    axis.set_ylabel("imaginary part of z")
