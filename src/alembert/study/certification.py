"""One page about a controller: what holds for all values of uncertain parameters, what breaks first, and by which of them.

The same named parameters go through four questions:

1. margins of the nominal loop, one input at a time and all at once (disk margins);
2. mu over all frequencies: up to which size of the ranges stability is proven, and the parameters that first break it;
3. the slowest decay within the ranges, by search over the linear models; and how far each parameter may go alone;
4. the motion of the nonlinear model from a displaced start, for corners, random values and the worst cases of 2 and 3.

States that the controller does not see, and that act on nothing it sees, are left out of 1 to 3 and of what has to settle in
4: the place of a free-flying vehicle, the turns of its wheels. They may drift; where they are unstable by themselves, the
controller does not hold.

A sampled controller is a system in continuous time with a delay of half a period in 1 and 2, and itself in 3 and 4.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.arguments import choice, mapping, numbers, positive, whole
from alembert.control import (
    DeltaBlock,
    DiskMargin,
    MuPeak,
    MuResponse,
    StateSpace,
    append,
    c2d,
    d2c,
    disk_margins,
    feedback,
    mu_response,
    multiloop_disk_margin,
    pade,
)
from alembert.errors import AlembertWarning, ArgumentError, NumericalError, UnsupportedError, writing
from alembert.linear import LinearModel, Regulator, UncertainLinearModel, linearize
from alembert.linear.quantities import find
from alembert.model import Model
from alembert.simulate import DynamicController, Ensemble, ensemble
from alembert.simulate.controllers import told_law, where_the_law_is
from alembert.study.report import Grid, bullets, images, page
from alembert.view import figures as drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = np.ndarray
FAR = 5.0
"""half widths of a range: so far a parameter alone is followed"""
MANY_COPIES = 8
"""of one parameter: with more, bounds of mu take seconds for each frequency"""
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
            found.append(
                f"{count} of {count} motions of the nonlinear model come to rest{part}{self._short}."
            )
        return found

    @property
    def _short(self) -> str:
        """What is said of motions that are too short to tell."""
        flown, decay = float(self.runs.time[-1]), -self.worst_decay
        if not 0 < flown * decay < SHORT:
            return ""
        told = f"{flown:.3g} s, where the slowest loop decays by 1/e in {1 / decay:.3g} s"
        return f"; they are short: {told} (duration= makes them longer)"

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
            found.append(
                f"The nonlinear model does not come to rest in {part}: {'; '.join(lost[:3])}{more}{self._short}."
            )
        return found

    @staticmethod
    def _at(values: Mapping[str, float]) -> str:
        return ", ".join(f"{name} = {x:.4g}" for name, x in values.items())

    def __str__(self) -> str:
        head = f"{self.family.nominal.model.name}: {'holds' if self.ok else 'does not hold'}"
        return "\n".join([head, *self.holds, *self.breaks, str(self.family.certificate)])

    # --- tables and pictures ----------------------------------------------------------------------------------------

    def tables(self) -> list[Grid]:
        listed = list(zip(self.family.nominal.input_names, self.margins, strict=True))
        if self.multiloop is not None and len(listed) > 1:
            listed.append(("all at once", self.multiloop))
        rows = [
            [name, f"{m.gain_down:.3f}", f"{m.gain:.3f}", f"{m.phase_deg:.2f}", f"{m.frequency:.4g}"]
            for name, m in listed
        ]
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
        choice("plot", "kind", kind, ("mu", "motions"))
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
            axis.set_ylim(0, min(3 * resting, 1.05 * np.nanmax(self.deviations)))
            title += f", {len(self.held) - sum(self.held)} of which do not come to rest"
        axis.set_title(title)
        return figure

    @cached_property
    def _curves(self) -> tuple[MuResponse, MuResponse | None]:
        """mu over frequency, and its upper bound for complex parameters; fewer points where each takes long."""
        M = self.family.closed(self.continuous)
        sizes = np.abs(M.poles())
        sizes = sizes[sizes > 1e-6 * sizes.max()]
        points = 60 if max(b.rows for b in self.family.blocks) <= MANY_COPIES else 24
        w = np.geomspace(sizes.min() / 10, sizes.max() * 3, points)
        if self.mu is not None and w[0] < self.mu.frequency < w[-1]:
            w = np.sort(np.append(w, self.mu.frequency))
        loose = [
            DeltaBlock("complex" if b.kind == "real" else b.kind, b.rows, b.columns)
            for b in self.family.blocks
        ]
        above = mu_response(M, loose, w, starts=1) if loose != self.family.blocks else None
        return mu_response(M, self.family.blocks, w, starts=4), above

    def _plot_mu(self) -> Figure:
        found, above = self._curves
        w = found.frequency
        figure, (axis,) = drawing.panels("plot", 1, height=3.6)
        axis.semilogx(w, found.upper, label="upper bound", **drawing.style(0))
        axis.semilogx(w, found.lower, label="lower bound", **drawing.style(1))
        if above is not None:
            axis.semilogx(w, above.upper, label="upper bound, parameters complex", **drawing.style(2))
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
            marker = "o"
            if at != self.mu.frequency:  # such as zero, which a logarithmic axis does not have
                marker, told = (
                    ("<", f"{told}, far to the left") if at == w[0] else (">", f"{told}, far to the right")
                )
            axis.plot([at], [self.mu.peak], color="#4b5563", marker=marker, linestyle="none", label=told)
        axis.set_xlabel("frequency [rad/s]")
        axis.set_ylabel("mu")
        told = max(1.0, found.upper.max(), 0.0 if self.mu is None else self.mu.upper)
        axis.set_ylim(
            0, min(3 * told, 1.05 * max(told, axis.get_ylim()[1]))
        )  # complex parameters may peak far above
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
            parts.append(f"<h2>{head}</h2>\n{bullets(sentences)}")
        parts += [grid.html() for grid in self.tables()]
        parts += images({"mu": self._plot_mu, "Motions": self._plot_motions})
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


SAMPLES = 200
SETTLED = 0.3
"""of the motion at first: what may be left of it at the end"""
SLOWED = 0.95
"""of the largest change in a fifth of a motion: what the last fifth may change; an even drift has as much there"""
DRIFT = 1e-5
"""of the entries of A: a real part below it is that of a double pole at zero, which rounding by 1e-10 moves so far"""


def certify(
    model: Model,
    controller: Any,
    uncertain: Mapping[str, Any],
    *,
    q: Any = None,
    v: Any = None,
    tau: Any = None,
    disturbance: Any = 0.01,
    holding: str = "means",
    duration: float | None = None,
    step: float | None = None,
    members: int = 60,
    seed: int = 0,
    tolerance: float = 0.05,
    progress: bool | None = None,
) -> LoopCertificate:
    """Whether a controller holds a model for all values of named parameters; see the module's documentation.

    Args:
        controller: a `StateSpace` u = K y or `DynamicController` whose signals are named after those of the model, or a
            `Regulator`.
        uncertain: parameters of the model and their ranges, `{"payload": (1, 5)}`.
        q: the point; by default that of the controller's linear model.
        v: its speeds.
        tau: its efforts, which hold it at the parameters that the controller's linear model has (those of the model, if the
            efforts are given); at other values the inputs give as much more as this takes.
        disturbance: the displacement from which the nonlinear runs start, (nv,) or one number for all.
        holding: whose efforts hold the point in these runs: those of the "means", so that the controller must also make up
            for a weight that it does not know, or those of "each" member, as in the linear models.
        duration: of these runs [s]; by default from the poles of the loop.
        step: of their integration [s].
        members: how many runs, corners and worst cases among them.
        tolerance: of the peak of mu.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"certify: model is of type {type(model).__name__}, expected a Model")
    if not mapping("certify", "uncertain", uncertain):
        raise ArgumentError("certify: uncertain is empty, expected parameters of the model with (low, high)")
    choice("certify", "holding", holding, ("means", "each"))
    whole("certify", "seed", seed, "a whole number of zero or more", least=0)
    positive("certify", "tolerance", tolerance)
    whole("certify", "members", members, "a whole number of one or more")
    for name, value in (("duration", duration), ("step", step)):
        if value is not None:
            positive("certify", name, value)
    moved_by = numbers("certify", "disturbance", disturbance)
    if moved_by.shape not in ((), (model.nv,)) or not np.isfinite(moved_by).all():
        raise ArgumentError(
            f"certify: disturbance is {disturbance!r}, expected a number or {model.nv} of them"
        )
    law, about = _controller(controller)
    point = [
        x if x is not None else None if about is None else getattr(about, name)
        for name, x in (("q", q), ("v", v), ("tau", tau))
    ]
    if point[0] is None:
        raise ArgumentError("certify: the point is not known: give q=, or a controller with about=linear")
    K = law.law
    measured = [k for k, name in enumerate(K.input_names) if find(model, name, "certify") is not None]
    K = K[:, measured]
    inputs = [name if _acts(model, name) else f"wrench:{name}" for name in K.output_names]
    values = _held_at(model, about, uncertain) if tau is None else None
    every = linearize(
        model,
        *point,
        inputs=inputs,
        outputs=list(K.input_names),
        parameter_values=values,
        uncertain=uncertain,
    )
    family = every.seen()
    nominal = every.nominal
    if law.about is None:
        own: dict[str, Any] = {"inputs": (), "outputs": (), "states": (), "dt": 0.0}
        law = dataclasses.replace(law, about=nominal, **own)
    plain = StateSpace(K.A, K.B, K.C, K.D, K.dt)
    continuous = _continuous(plain)

    def decay(values: Mapping[str, float]) -> float:
        """The largest real part of a pole [1/s]."""
        G = StateSpace(*family.at(**values).matrices)
        if not plain.is_discrete:
            return float(feedback(G, plain, sign=1).poles().real.max(initial=-np.inf))
        z = np.abs(feedback(c2d(G, plain.dt), plain, sign=1).poles()).max(initial=0.0)
        return float(np.log(max(z, 1e-300)) / plain.dt)

    means = {name: (low + high) / 2 for name, (low, high) in family.ranges.items()}
    nominal_decay = decay(means)
    margins: tuple[DiskMargin, ...] = ()
    multiloop = peak = None
    if nominal_decay < 0:
        loop = -(continuous * StateSpace(*family.nominal.to_statespace().matrices))
        try:
            margins = disk_margins(loop)
            multiloop = multiloop_disk_margin(loop, tolerance=tolerance) if len(margins) > 1 else margins[0]
            peak = family.mu(continuous, tolerance=tolerance)
        except NumericalError:  # stable only as it is sampled
            peak = None
    worst = _slowest(decay, family.ranges, seed)
    alone = tuple(_alone(decay, name, family.ranges, means) for name in family.ranges)
    if peak is not None and not _bears_out(decay, peak, family.ranges, alone, seed):
        peak = None  # an unstable model within what was to be proven: nothing is claimed
    cases = _cases(family, worst, peak, members, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)  # motions that run away are told on the page
        runs = _fly(
            model,
            law,
            nominal,
            family,
            cases,
            holding,
            disturbance,
            duration,
            step,
            plain,
            nominal_decay,
            seed,
            progress,
        )
    there = np.isfinite(runs.q).all(axis=-1)
    moved = np.full(runs.v.shape, np.nan)
    moved[there] = model.difference(nominal.q, runs.q[there])
    moved = moved[..., list(family.nominal.displacements)]
    deviations = np.abs(moved).max(axis=-1)
    held = tuple(_settles(moved[k]) for k in range(len(cases)))
    left_out = tuple(x for x in nominal.state_names if x not in family.nominal.state_names)
    grown = max(_growth(every, left_out, values) for kind, values in cases if kind in ("means", "corner"))
    return LoopCertificate(
        family,
        left_out,
        grown,
        law,
        continuous,
        margins,
        multiloop,
        peak,
        worst,
        decay(worst),
        nominal_decay,
        alone,
        runs,
        tuple(f"{kind}: {LoopCertificate._at(values)}" for kind, values in cases),
        tuple(values for _, values in cases),
        deviations,
        held,
    )


# --- pieces ---------------------------------------------------------------------------------------------------------


def _controller(given: Any) -> tuple[DynamicController, LinearModel | None]:
    if isinstance(given, Regulator):
        at = given.linear
        gains = StateSpace(
            np.zeros((0, 0)),
            np.zeros((0, len(at.state_names))),
            np.zeros((len(at.input_names), 0)),
            -given.K,
            input_names=at.state_names,
            output_names=at.input_names,
        )
        return DynamicController(gains, about=at), at
    law = DynamicController(given) if isinstance(given, StateSpace) else given
    if not isinstance(law, DynamicController) or not isinstance(law.law, StateSpace):
        raise ArgumentError(
            f"certify: controller is {told_law(given)}, expected a StateSpace, a DynamicController of one, or a Regulator"
            f"{where_the_law_is(given) or '; of a schedule certify each of its systems at its own point'}"
        )
    return law, law.about


def _held_at(
    model: Model, about: LinearModel | None, uncertain: Mapping[str, Any]
) -> dict[str, float] | None:
    """The values of the uncertain parameters that the efforts of the controller's linear model belong to."""
    if about is None:
        return None
    if any(np.any(F) for F in about.wrenches.values()):
        raise UnsupportedError(
            f"certify: the controller's linear model has wrenches on {', '.join(about.wrenches)}, which would be missing "
            "here; linearize without them, or make them efforts"
        )
    given = {**about.model.parameter_values, **about.parameter_values}
    for name, value in model.parameter_values.items():
        known = given.get(name, value)
        if name not in uncertain and known != value:
            raise ArgumentError(
                f"certify: the controller's linear model is about {name} = {float(known):g}, the model has {value:g}; give "
                "a model with that default, or the parameter in uncertain"
            )
    return {name: float(given[name]) for name in uncertain if name in given}


def _acts(model: Model, name: str) -> bool:
    return (
        name in {a.name for a in model.actuators} or name in model.joint_indices or name in model.speed_names
    )


def _continuous(K: StateSpace) -> StateSpace:
    if not K.is_discrete:
        return K
    delay = pade(K.dt / 2, 2)
    return append(*[delay] * K.shape[0]) * d2c(K, method="tustin")


def _slowest(decay: Any, ranges: Mapping[str, tuple[float, float]], seed: int) -> dict[str, float]:
    """The values of slowest decay: corners, random ones, and a search from the best of them."""
    names = list(ranges)
    low, high = (np.array([ranges[name][k] for name in names]) for k in (0, 1))
    rng = np.random.default_rng(seed)
    shares = [*itertools.islice(itertools.product((0.0, 1.0), repeat=len(names)), 64)]
    tried = np.vstack([shares, rng.uniform(size=(SAMPLES, len(names)))])
    cost = lambda s: -decay(dict(zip(names, (low + np.clip(s, 0, 1) * (high - low)).tolist(), strict=True)))  # noqa: E731
    values = [cost(s) for s in tried]
    best = tried[int(np.argmin(values))]
    found = scipy.optimize.minimize(
        cost, best, method="Nelder-Mead", options={"maxfev": 60 * len(names), "xatol": 1e-4}
    )
    s = np.clip(found.x, 0, 1) if found.fun < min(values) else best
    return dict(zip(names, (low + s * (high - low)).tolist(), strict=True))


def _bears_out(
    decay: Any,
    peak: MuPeak,
    ranges: Mapping[str, tuple[float, float]],
    alone: Sequence[AloneRange],
    seed: int,
) -> bool:
    """Whether a search finds no unstable model within the ranges that mu gives."""
    size = min(1 / peak.upper, FAR) * (1 - 1e-3) if peak.upper > 0 else FAR
    if any(x.reach < size for x in alone):
        return False
    scaled = {}
    for name, (low, high) in ranges.items():
        mean, half = (low + high) / 2, (high - low) / 2 * size
        scaled[name] = (max(mean - half, 1e-3 * low) if low > 0 else mean - half, mean + half)
    try:
        return bool(decay(_slowest(decay, scaled, seed)) < 0)
    except NumericalError:
        return False


def _alone(
    decay: Any, name: str, ranges: Mapping[str, tuple[float, float]], means: Mapping[str, float]
) -> AloneRange:
    low, high = ranges[name]
    mean, half = (low + high) / 2, (high - low) / 2

    def stable(x: float) -> bool:
        try:
            return bool(decay({**means, name: x}) < 0)
        except NumericalError:
            return False

    ends = []
    for sign in (-1.0, 1.0):
        last = (
            FAR if sign > 0 or low <= 0 else min(FAR, (mean - 1e-3 * low) / half)
        )  # masses and lengths stay positive
        marks = np.linspace(0, last, 41)[1:]
        gone = next((x for x in marks if not stable(mean + sign * x * half)), None)
        if gone is None or not stable(mean):
            ends.append(sign * np.inf if gone is None else mean)
            continue
        good, bad = gone - marks[0], gone
        for _ in range(30):
            middle = (good + bad) / 2
            good, bad = (middle, bad) if stable(mean + sign * middle * half) else (good, middle)
        ends.append(mean + sign * good * half)
    return AloneRange(name, float(ends[0]), float(ends[1]), (low, high))


def _cases(
    family: UncertainLinearModel, worst: Mapping[str, float], peak: MuPeak | None, members: int, seed: int
) -> list[tuple[str, dict[str, float]]]:
    """What each run is, and its parameters."""
    ranges = family.ranges
    found = [
        ("means", {name: (low + high) / 2 for name, (low, high) in ranges.items()}),
        ("slowest decay", dict(worst)),
    ]
    if peak is not None and peak.delta is not None:
        owners = [name for name, n in family.copies.items() for _ in range(n)]
        d = dict(zip(owners, np.diag(peak.delta).real, strict=False))
        values = {
            name: float(np.clip((low + high) / 2 + (high - low) / 2 * d.get(name, 0.0), low, high))
            for name, (low, high) in ranges.items()
        }
        found.append(("mu-worst", values))
    corners = itertools.islice(itertools.product((0, 1), repeat=len(ranges)), 16)
    found += [
        ("corner", {name: ranges[name][k] for name, k in zip(ranges, corner, strict=True)})
        for corner in corners
    ]
    rng = np.random.default_rng(seed)
    while len(found) < members:
        found.append(("random", {name: float(rng.uniform(*limits)) for name, limits in ranges.items()}))
    return found


def _fly(
    model: Model,
    law: DynamicController,
    nominal: LinearModel,
    family: UncertainLinearModel,
    cases: Sequence[tuple[str, Mapping[str, float]]],
    holding: str,
    disturbance: Any,
    duration: float | None,
    step: float | None,
    K: StateSpace,
    decay: float,
    seed: int,
    progress: bool | None,
) -> Ensemble:
    G = StateSpace(*family.nominal.to_statespace().matrices)
    loop = feedback(G, _continuous(K), sign=1).poles()
    fastest = float(np.abs(loop).max(initial=1.0))
    for _, values in cases[:20]:  # what is lighter is faster
        other = StateSpace(*family.at(**values).matrices)
        fastest = max(
            fastest, float(np.abs(feedback(other, _continuous(K), sign=1).poles()).max(initial=0.0))
        )
    slow = float(np.clip(-decay, 1e-2, None))
    duration = float(duration) if duration is not None else min(8 / slow, 200.0)
    if step is None:
        step = min(0.3 / fastest, duration / 200)
        step = K.dt / np.ceil(K.dt / step) if K.is_discrete else step
    count = max(1, round(duration / step))
    every = max(1, count // 200)
    count = -(-count // every) * every
    size = np.broadcast_to(np.asarray(disturbance, dtype=float), (model.nv,))
    start = model.integrate(nominal.q, np.array(size))
    if model.is_constrained:
        start = model.assemble(start).q
    names = list(cases[0][1])
    vary = {
        "q0": np.tile(start, (len(cases), 1)),
        "v0": np.tile(nominal.v, (len(cases), 1)),
        "parameters": {name: [values[name] for _, values in cases] for name in names},
    }
    assert law.about is not None
    vary["efforts"] = np.array(
        [
            family.linear(**values).tau - _delivered(family, law.about, values)
            if holding == "each"
            else nominal.tau - law.about.tau
            for _, values in cases
        ]
    )
    return ensemble(
        model,
        vary,
        duration=count * step,
        step=step,
        interval=every * step,
        controller=law,
        integrator="rk4",
        seed=seed,
        progress=progress,
    )


def _delivered(family: UncertainLinearModel, about: LinearModel, values: Mapping[str, float]) -> Array:
    """What the controller's efforts of the point are at these values: they go through gears, which may be uncertain."""
    designed = {**values, **about.model.parameter_values, **about.parameter_values}
    first, now = (family.linear(**{name: p[name] for name in values}).G for p in (designed, values))
    found = np.array(about.tau, dtype=float)
    of_wrenches = [k for k, _, _ in family.nominal.wrench_inputs]
    for j in set(range(first.shape[1])) - set(of_wrenches):
        k = int(np.argmax(np.abs(first[:, j])))
        found[k] *= now[k, j] / first[k, j]
    return found


def _settles(moved: Array) -> bool:
    """Whether a motion (N, nv) comes to rest: what is left of it in its last fifth, compared with its first one; and how
    much the last one still changes, compared with any: what drifts or grows slowly is far from its end at first as well."""
    if not np.isfinite(moved).all():
        return False
    away = np.abs(moved - moved[-1]).max(axis=-1)
    part = max(1, len(away) // 5)
    changes = [float(np.ptp(x, axis=0).max()) for x in np.array_split(moved, 5) if len(x)]
    small = away[-part:].max() <= SETTLED * max(float(away[:part].max()), 1e-12)
    return bool(small and changes[-1] <= SLOWED * max(*changes, 1e-12))


def _growth(whole: UncertainLinearModel, names: Sequence[str], values: Mapping[str, float]) -> float:
    """The largest real part of the poles of these states, which act on no others; zero where it is none."""
    at = [whole.nominal.state_names.index(name) for name in names]
    A = whole.at(**values).A[np.ix_(at, at)]
    found = float(np.linalg.eigvals(A).real.max(initial=0.0)) if at else 0.0
    return found if found > DRIFT * np.abs(A).max(initial=0.0) else 0.0
