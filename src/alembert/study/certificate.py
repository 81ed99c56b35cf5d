"""What `certify` has found, in words, tables, pictures and on one page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from alembert.control import (
    DeltaBlock,
    DiskMargin,
    MuPeak,
    StateSpace,
    mu_response,
)
from alembert.errors import ArgumentError, UnsupportedError, writing
from alembert.linear import UncertainLinearModel
from alembert.simulate import DynamicController, Ensemble
from alembert.study.report import Grid, drawn, page
from alembert.view import figures as drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray
FAR = 5.0
"""half widths of a range: so far a parameter alone is followed"""
SHORT = 3.0
"""times 1/decay of the slowest motion: after less, 5 % of it and more are left, and the page says so"""


@dataclass(frozen=True)
class AloneRange:
    """From where to where one parameter may go, the others at their means; infinite where no end was found."""

    name: str
    low: float
    high: float
    given: tuple[float, float]

    @property
    def reach(self) -> float:
        """Half widths of the given range to the nearer end."""
        mean, half = sum(self.given) / 2, (self.given[1] - self.given[0]) / 2
        return min(mean - self.low, self.high - mean) / half


@dataclass(frozen=True, eq=False)
class LoopCertificate:
    """What `certify` has found; `ok` where everything holds. `save("loop.html")` writes the page."""

    family: UncertainLinearModel
    """the part of the linear models that the controller sees"""
    left_out: tuple[str, ...]
    """states that act on nothing it sees: the place of a free-flying vehicle, the turns of its wheels"""
    left_out_growth: float
    """1/s: the largest real part of their own poles, at the means and at corners; zero where they drift at most"""
    controller: DynamicController
    continuous: StateSpace
    """the controller as margins and mu take it"""
    margins: tuple[DiskMargin, ...]
    multiloop: DiskMargin | None
    mu: MuPeak | None
    worst: Mapping[str, float]
    """the parameters of slowest decay within the ranges"""
    worst_decay: float
    """1/s there: the largest real part of a pole; positive where the loop is unstable"""
    nominal_decay: float
    alone: tuple[AloneRange, ...]
    runs: Ensemble
    cases: tuple[str, ...]
    """what each run of the ensemble is"""
    values: tuple[Mapping[str, float], ...]
    """of the parameters in each"""
    deviations: Array = field(repr=False)
    """(members, N): of the configuration from the point, largest entry"""
    held: tuple[bool, ...]
    """which runs settled"""

    @property
    def ok(self) -> bool:
        proven = self.mu is not None and self.mu.upper < 1
        return proven and self.worst_decay < 0 and not self.left_out_growth and all(self.held)

    @property
    def holds(self) -> list[str]:
        """Sentences."""
        found = []
        if self.nominal_decay < 0:
            found.append(
                f"At the means the loop is stable, its slowest motion decays with {-self.nominal_decay:.4g}/s."
            )
        if self.multiloop is not None:
            m = self.multiloop
            found.append(
                f"All inputs at once may change by gains between {m.gain_down:.3g} and {m.gain:.3g}, or by "
                f"{m.phase_deg:.3g} deg."
            )
        if self.mu is not None and self.mu.upper > 0:
            size = 1 / self.mu.upper
            found.append(
                f"Proven for all frequencies: stable for parameters within {size:.3g} times the ranges."
            )
        if self.worst_decay < 0:
            found.append(
                f"No linear model within the ranges decays slower than {-self.worst_decay:.4g}/s ({self._at(self.worst)})."
            )
        if self.left_out:
            listed = ", ".join(self.left_out[:6]) + (" and more" if len(self.left_out) > 6 else "")
            found.append(f"Said of what the controller sees; left out: {listed}.")
        count = len(self.held)
        if count and all(self.held):
            part = ", in what the controller sees" if self.left_out else ""
            flown = float(self.runs.time[-1]) * -self.worst_decay
            short = f"; they are short, {flown:.2g} times 1/decay of the slowest" if 0 < flown < SHORT else ""
            found.append(f"{count} of {count} motions of the nonlinear model come to rest{part}{short}.")
        return found

    @property
    def breaks(self) -> list[str]:
        """Sentences: what fails, or what would fail first."""
        found = []
        if self.nominal_decay >= 0:
            found.append(
                f"At the means the loop is unstable: a pole has the real part {self.nominal_decay:.4g}/s."
            )
        if self.worst_decay >= 0:
            found.append(f"Within the ranges the loop is unstable, at {self._at(self.worst)}.")
        if self.left_out_growth:
            found.append(
                f"What the controller does not see is unstable by itself: {', '.join(self.left_out[:6])} grow with up to "
                f"{self.left_out_growth:.4g}/s."
            )
        if self.mu is None and self.nominal_decay < 0:
            found.append("No range is proven by mu; what is said of the ranges comes from searches.")
        if self.mu is not None and self.mu.upper >= 1 and self.worst_decay < 0:
            found.append(
                f"Stability is not proven for the whole ranges (mu below {self.mu.upper:.3g}); no unstable model was found."
            )
        ends = sorted((x for x in self.alone if np.isfinite(x.reach)), key=lambda x: x.reach)
        if ends:
            first = ends[0]
            low, high = first.low, first.high
            ends_at = (
                f"from {low:.4g} to {high:.4g}"
                if np.isfinite(low + high)
                else (f"up from {low:.4g}" if np.isfinite(low) else f"up to {high:.4g}")
            )
            found.append(
                f"Alone, {first.name} breaks the loop first: it is stable {ends_at} (asked "
                f"for: {first.given[0]:g} to {first.given[1]:g})."
            )
        else:
            found.append(f"No parameter alone breaks the loop within {FAR:g} half widths of its range.")
        lost = [self.cases[k] for k, good in enumerate(self.held) if not good]
        if lost:
            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            part = f"{len(lost)} of {len(self.held)} motions"
            found.append(f"The nonlinear model does not come to rest in {part}: {'; '.join(lost[:3])}{more}.")
        return found

    @staticmethod
    def _at(values: Mapping[str, float]) -> str:
        return ", ".join(f"{name} = {x:.4g}" for name, x in values.items())

    def __str__(self) -> str:
        head = f"{self.family.nominal.model.name}: {'holds' if self.ok else 'does not hold'}"
        return "\n".join([head, *self.holds, *self.breaks, str(self.family.certificate)])

    # --- tables and pictures ----------------------------------------------------------------------------------------

    def tables(self) -> list[Grid]:
        names = self.family.nominal.input_names
        rows = [
            [name, f"{m.gain_down:.3f}", f"{m.gain:.3f}", f"{m.phase_deg:.2f}", f"{m.frequency:.4g}"]
            for name, m in zip(names, self.margins, strict=True)
        ]
        if self.multiloop is not None and len(names) > 1:
            m = self.multiloop
            rows.append(
                [
                    "all at once",
                    f"{m.gain_down:.3f}",
                    f"{m.gain:.3f}",
                    f"{m.phase_deg:.2f}",
                    f"{m.frequency:.4g}",
                ]
            )
        found = [
            Grid.of("Margins at the inputs", ("input", "gain from", "to", "phase [deg]", "at [rad/s]"), rows)
        ]
        found.append(
            Grid.of(
                "Each parameter alone",
                ("parameter", "asked from", "to", "stable from", "to"),
                [
                    [x.name, f"{x.given[0]:g}", f"{x.given[1]:g}", _end(x.low), _end(x.high)]
                    for x in self.alone
                ],
            )
        )
        order = sorted(range(len(self.cases)), key=lambda k: -_size(self.deviations[k].max()))[:8]
        shown = [[self.cases[k], _number(self.deviations[k].max()), _number(self.deviations[k, -1]),
                  "yes" if self.held[k] else "no"] for k in order]  # fmt: skip
        head = ("largest motions", "largest deviation", "at the end", "comes to rest")
        return [*found, Grid.of("Nonlinear model", head, shown)]

    def plot(self, kind: str = "mu", *, path: str | PathLike[str] | None = None) -> Figure:
        """ "mu" over frequency with both bounds, or "motions": deviations of all runs over time. `path` saves it."""
        if kind not in ("mu", "motions"):
            raise ArgumentError(f"plot: kind is {kind!r}, expected 'mu' or 'motions'")
        return drawing.save(self._plot_mu() if kind == "mu" else self._plot_motions(), path)

    def _plot_motions(self) -> Figure:
        figure, (axis,) = drawing.panels("plot", 1, height=3.6)
        time = self.runs.time
        for k, row in enumerate(self.deviations):
            kinds = ("means", "slowest decay", "mu-worst")
            kind = self.cases[k].split(":")[0]
            special = kind in kinds
            look = drawing.style(kinds.index(kind)) if special else {}
            shade = {} if special else {"color": "#9ca3af", "linewidth": 0.6, "alpha": 0.6}
            label = kind if special else None
            axis.plot(time, row, label=label, zorder=3 if special else 1, **{**look, **shade})
        axis.set_xlabel("time [s]")
        axis.set_ylabel("largest deviation from the point [rad, m]")
        axis.grid(alpha=0.3)
        axis.margins(x=0)
        _legend_beside(axis)
        title = f"{len(self.deviations)} motions of the nonlinear model"
        if any(self.held) and not all(self.held):  # those that run away would hide the others
            resting = np.nanmax(self.deviations[np.array(self.held)])
            axis.set_ylim(0, 3 * resting)
            title += f", {len(self.held) - sum(self.held)} of which do not come to rest"
        axis.set_title(title)
        return figure

    def _plot_mu(self) -> Figure:
        M = self.family.closed(self.continuous)
        sizes = np.abs(M.poles())
        sizes = sizes[sizes > 1e-6 * sizes.max()]
        w = np.geomspace(sizes.min() / 10, sizes.max() * 3, 60)
        found = mu_response(M, self.family.blocks, w, starts=4)
        figure, (axis,) = drawing.panels("plot", 1, height=3.6)
        axis.semilogx(w, found.upper, label="upper bound", **drawing.style(0))
        axis.semilogx(w, found.lower, label="lower bound", **drawing.style(1))
        loose = [
            DeltaBlock("complex" if b.kind == "real" else b.kind, b.rows, b.columns)
            for b in self.family.blocks
        ]
        if loose != self.family.blocks:
            above = mu_response(M, loose, w, starts=1).upper
            axis.semilogx(w, above, label="upper bound, parameters complex", **drawing.style(2))
        axis.axhline(1.0, color="#b91c1c", linewidth=1.0, label="1: the ranges asked for")
        if self.mu is not None:
            axis.axhline(
                self.mu.upper,
                color="#4b5563",
                linewidth=1.0,
                linestyle=":",
                label="proven at all frequencies",
            )
            at = float(np.clip(self.mu.frequency, w[0], w[-1]))
            told = f"peak, at {self.mu.frequency:.3g} rad/s"
            axis.plot([at], [self.mu.peak], color="#4b5563", marker="o", linestyle="none", label=told)
        axis.set_xlabel("frequency [rad/s]")
        axis.set_ylabel("mu")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3, which="both")
        _legend_beside(axis)
        return figure

    def save(self, path: str | Path) -> Path:
        """The page, as HTML."""
        path = Path(path)
        if path.suffix != ".html":
            raise ArgumentError(f"save: {path.name} ends with {path.suffix!r}, expected .html")
        name = self.family.nominal.model.name
        title = f"{name}: {'holds' if self.ok else 'does not hold'}"
        listed = "; ".join(f"{x} {low:g} to {high:g}" for x, (low, high) in self.family.ranges.items())
        parts = [f"<h1>{escape(title)}</h1>", f"<p class=lead>{escape(listed)}</p>"]
        for head, sentences in (("What holds", self.holds), ("What breaks first", self.breaks)):
            items = "".join(f"<li>{escape(text)}</li>" for text in sentences)
            parts.append(f"<h2>{head}</h2>\n<ul>{items}</ul>")
        parts += [grid.html() for grid in self.tables()]
        try:
            images = [("mu", self.plot("mu")), ("Motions", self.plot("motions"))]
        except UnsupportedError:  # no matplotlib
            images = []
        for head, figure in images:
            data = base64.b64encode(drawn(figure, "png")).decode()
            parts.append(f"<h2>{head}</h2>\n<img alt='{head}' src='data:image/png;base64,{data}'>")
        parts.append(f"<h2>The linear models</h2>\n<p>{escape(str(self.family.certificate))}</p>")
        with writing(path):
            path.write_text(page(title, parts), encoding="utf-8")
        return path


def _end(x: float) -> str:
    return f"{x:.4g}" if np.isfinite(x) else "no end found"


def _size(x: float) -> float:
    return float(x) if np.isfinite(x) else np.inf


def _legend_beside(axis: Axes) -> None:
    axis.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _number(x: float) -> str:
    return f"{x:.4g}" if np.isfinite(x) else "runs away"
