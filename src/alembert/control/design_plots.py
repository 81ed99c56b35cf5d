"""Figures of what a design reached: mu with its bounds, margins of a loop, steps with specifications, Pareto fronts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.control.statespace import StateSpace
from alembert.control.system_arguments import takes_systems
from alembert.errors import ArgumentError
from alembert.model.printing import unknown
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.control.codesign import ParetoFront
    from alembert.control.robustness import MuResponse

Array = np.ndarray
PathLike = str | os.PathLike[str] | None
SPECS = ("overshoot", "rise", "settling", "band")


@dataclass(frozen=True)
class StepInfo:
    """Of a step response: its final value; the times from 10 to 90 % of it and until it stays within the band; and by which
    share of it the response goes beyond."""

    final: float
    rise: float
    settling: float
    overshoot: float


@takes_systems()
def step_info(G: StateSpace, *, t: Any = None, band: float = 0.02) -> StepInfo:
    """Of a stable system with one input and one output; times are those of the points of the response."""
    if G.shape != (1, 1):
        raise ArgumentError(
            f"step_info: the system has shape {G.shape}, expected one input and one output; G['y', 'u'] takes a part"
        )
    if not G.is_stable:
        raise ArgumentError("step_info: the system is not stable, its response has no final value")
    final = float(G.dc_gain()[0, 0])
    found = G.step_response(t)
    if abs(final) < 1e-12 * max(float(np.abs(found.y).max()), 1e-300):
        raise ArgumentError(
            "step_info: the response goes back to zero, shares of its final value do not exist"
        )
    share = found.y[:, 0] / final
    reached = [found.t[np.flatnonzero(share >= x)[0]] if np.any(share >= x) else np.inf for x in (0.1, 0.9)]
    outside = np.flatnonzero(np.abs(share - 1) > band)
    last = len(share) - 1
    settled = 0.0 if not len(outside) else np.inf if outside[-1] == last else float(found.t[outside[-1] + 1])
    return StepInfo(final, float(reached[1] - reached[0]), settled, max(float(share.max()) - 1, 0.0))


def step_with_specs(G: StateSpace, t: Any, specs: Mapping[str, float], path: PathLike) -> Figure:
    """The step response with what it may not enter: above the overshoot, before the rise, outside of the band."""
    for name in specs:
        if name not in SPECS:
            raise ArgumentError(unknown("plot: specs: there is no specification", str(name), SPECS))
    band = float(specs.get("band", 0.02))
    info = step_info(G, t=t, band=band)
    found = G.step_response(t)
    y, final, end = found.y[:, 0], info.final, float(found.t[-1])
    figure = figures.new_figure("plot", 7.6, 4.4)
    axis = figure.subplots()
    kept: Any = dict(color="#b91c1c", alpha=0.12, linewidth=0)
    top = max(float(y.max() / final), 1 + float(specs.get("overshoot", 0.0))) + 0.15
    settling = float(specs.get("settling", end))
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
    from alembert.control.loop_margins import margins

    found = margins(L)
    response = L.frequency_response(frequency)
    magnitude, phase = response.magnitude_db[:, 0, 0], response.phase_deg[:, 0, 0]
    phase = phase - 360 * np.round((np.median(phase) + 180) / 360)
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
    figure = figures.new_figure("plot", 7.4, 4.4)
    axis = figure.subplots()
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
    axis.set_xlabel("frequency [rad/s]")
    axis.set_ylabel("structured singular value")
    axis.grid(alpha=0.3, which="both")
    axis.margins(x=0)
    axis.legend(fontsize="small", frameon=False)
    return figures.save(figure, path)


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
    last = np.inf
    for zeta in (0.1, 0.2, 0.4, 0.6, 0.8):
        x, y = -zeta, np.sqrt(1 - zeta**2)
        for sign in (1, -1):
            axis.plot([0, far * x], [0, sign * far * y], color="black", alpha=0.18, linewidth=0.7)
        reach = min(abs(left) / zeta, abs(top) / y) * 0.93
        beside = (
            reach * y if reach * abs(x) > 0.9 * abs(left) else np.inf
        )  # at the left edge, one above the other
        if left < 0 < top and (np.isinf(beside) or last - beside > 0.04 * (top - bottom)):
            axis.text(reach * x, reach * y, f"{zeta:g}", fontsize=7, alpha=0.6)
            last = beside
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
