"""A linear model with names, and what is read off it; its figures: Bode diagrams, poles and mode shapes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group

from alembert.arguments import check_known, told_elsewhere
from alembert.control.plots import bode, frequencies, plane
from alembert.control.reachability import Reachability, reachability
from alembert.control.responses import FrequencyResponse, TimeResponse
from alembert.control.robustness import RootLocus, branches
from alembert.control.statespace import StateSpace
from alembert.control.transfer import to_control
from alembert.errors import ArgumentError, NumericalError
from alembert.linear import modes, quantities, reduction
from alembert.linear.modes import Modes
from alembert.model import Model, printing
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from alembert.linear.modes import Mode

Array = np.ndarray


@told_elsewhere(
    {
        "bode": 'linear.plot("bode")',
        "lqr": "al.linear.lqr(linear, Q, R)",
        **dict.fromkeys(("step", "step_response"), "linear.to_statespace().step_response()"),
        **dict.fromkeys(("eig", "eigenvalues"), "linear.poles()"),
    }
)
@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModel:
    """x' = A x + B u + E p,  y = C x + D u + F p, all deviations from a point.

    x = (displacements in tangent space; speeds). The point is (q, v, tau, wrenches), with accelerations `a` and outputs `y`
    there. Along a trajectory all arrays have leading batch dimensions; `linear[k]` takes one point.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    E: Array
    F: Array
    G: Array
    """from inputs to efforts, tau = G u"""
    state_names: tuple[str, ...]
    state_units: tuple[str, ...]
    input_names: tuple[str, ...]
    input_units: tuple[str, ...]
    output_names: tuple[str, ...]
    output_units: tuple[str, ...]
    parameter_names: tuple[str, ...]
    model: Model
    q: Array
    v: Array
    tau: Array
    a: Array
    y: Array
    mass_matrix: Array
    parameter_values: Mapping[str, Any]
    displacements: tuple[int, ...]
    """the degrees of freedom whose displacements are states: all of them, independent ones of a model with loops"""
    rates: tuple[int, ...]
    """those whose speeds are"""
    wrenches: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    """on frames at the point, which the efforts `tau` do not contain"""
    wrench_inputs: tuple[tuple[int, str, int], ...] = ()
    """(input, frame, component) of the inputs that are wrenches; their columns of `G` are those at the point"""
    whole: LinearModel | None = None
    """what this is a part of, see `reduced`"""

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading dimensions."""
        return self.A.shape[:-2]

    def __getitem__(self, index: Any) -> LinearModel:
        """Some points of a batch."""
        if not self.batch:
            raise ArgumentError("LinearModel: this is one point, there is no batch to take from")
        try:
            points = np.arange(math.prod(self.batch)).reshape(self.batch)[index]
        except IndexError:
            if isinstance(index, int):  # the end of a loop over the points
                raise
            raise ArgumentError(
                f"LinearModel: {index!r} is no index of a batch of shape {self.batch}"
            ) from None

        def taken(value: Array) -> Array:
            return value.reshape(math.prod(self.batch), *value.shape[len(self.batch) :])[points]

        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays: dict[str, Any] = {k: taken(x) for k, x in fields.items() if isinstance(x, np.ndarray)}
        parameters = {
            name: taken(np.broadcast_to(np.asarray(value, dtype=float), self.batch))
            for name, value in self.parameter_values.items()
        }
        return dataclasses.replace(
            self,
            **arrays,
            parameter_values=parameters,
            whole=None if self.whole is None else self.whole[index],
            wrenches={frame: taken(F) for frame, F in self.wrenches.items()},
        )

    @property
    def remark(self) -> str:
        """A sentence where the point is no equilibrium (nor steady motion): its poles are then those of one moment."""
        if self.batch or np.abs(self.a).max(initial=0.0) <= _STILL:
            return ""
        k = int(np.argmax(np.abs(self.a)))
        return (
            f"not about an equilibrium: {self.model.speed_names[k]} accelerates by {self.a[k]:.4g} "
            f"{quantities.speed_units(self.model)[k]}^2; see al.trim"
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """The states of the whole that `reduced` has left out."""
        return (
            tuple(name for name in self.whole.state_names if name not in self.state_names)
            if self.whole
            else ()
        )

    # --- poles and modes ----------------------------------------------------------------------------------

    def poles(self) -> Array:
        """The eigenvalues of A (..., states), by real part and then imaginary part."""
        return np.sort_complex(np.linalg.eigvals(self.A))

    @property
    def has_modes(self) -> bool:
        """Whether displacements and speeds are those of the same degrees of freedom; not where something rolls."""
        same = self.displacements == self.rates
        return same if self.whole is not None else len(self.displacements) == len(self.rates)

    def modes(self) -> Modes:
        """Natural frequencies, damping ratios and mode shapes."""
        self._one("modes")
        return modes.modes(self)

    # --- structure ----------------------------------------------------------------------------------------

    def controllable(self, *, tolerance: float = 1e-10) -> Reachability:
        """Whether the inputs reach all of the state, and what they do not reach."""
        self._one("controllable")
        return reachability(self.A, self.B, self.state_names, tolerance)

    def observable(self, *, tolerance: float = 1e-10) -> Reachability:
        """Whether the outputs tell all of the state, and what they do not see."""
        self._one("observable")
        return reachability(self.A.T, self.C.T, self.state_names, tolerance)

    def reduced(
        self, states: Any = None, *, inputs: Any = None, outputs: Any = None, neglect: float = 1e-10
    ) -> LinearModel:
        """The part with these states, inputs and outputs; all of them where left out.

        `states` are names of states (`q:elbow`), or of joints and degrees of freedom for both displacement and speed. The
        part is exact where no state that is left out acts on one that is kept, and refused otherwise; `neglect` is the
        size of couplings to ignore, relative to the largest entry of A. Outputs that depend on what is left out go too.
        """
        return reduction.reduced(self, states, inputs, outputs, float(neglect))

    # --- responses ----------------------------------------------------------------------------------------

    def frequency_response(self, frequency: Any) -> FrequencyResponse:
        """G(jw) = C (jw - A)^-1 B + D at frequencies in rad/s."""
        self._one("frequency_response")
        w = self._finite("frequency_response", "frequency", frequency)
        try:
            return self.to_statespace().frequency_response(w)
        except NumericalError:
            raise NumericalError(
                f"frequency_response: one of the frequencies is a pole on the imaginary axis; the poles are "
                f"{', '.join(f'{pole:.6g}' for pole in self.poles())}"
            ) from None

    def simulate(self, x0: Any, t: Any, u: Any = None) -> TimeResponse:
        """The exact response from the deviation x0; `u` (times, inputs) is held from each time to the next."""
        self._one("simulate")
        x0, t = (self._finite("simulate", name, x) for name, x in (("x0", x0), ("t", t)))
        u = None if u is None else self._finite("simulate", "u", u)
        return self.to_statespace().simulate(t, u, x0)

    def root_locus(self, feedback: Any, gains: Any = None) -> RootLocus:
        """The poles under u = -k K y for the gains k, or u = -k K x where K has a column per state.

        `feedback` is K, (inputs, outputs) or (inputs, states), taken as that of the outputs where both fit; a
        vector stands for a single row or column.
        """
        self._one("root_locus")
        n, m = self.B.shape
        ny = len(self.output_names)
        K = self._finite("root_locus", "feedback", feedback)
        K = K.reshape(m, -1) if K.ndim < 2 and (m == 1 or K.size == m) else K
        if K.shape not in ((m, ny), (m, n)):
            raise ArgumentError(
                f"root_locus: feedback has shape {np.shape(feedback)}, expected ({m}, {ny}) for the outputs or "
                f"({m}, {n}) for the state"
            )
        C, D = (self.C, self.D) if K.shape[1] == ny else (np.eye(n), np.zeros((n, m)))
        if gains is not None:
            gains = np.atleast_1d(self._finite("root_locus", "gains", gains)).ravel()
        return branches(self.A, self.B, C, D, K, gains)

    def plot(
        self,
        kind: str = "bode",
        *,
        inputs: Any = None,
        outputs: Any = None,
        frequency: Any = None,
        path: str | PathLike[str] | None = None,
    ) -> Figure:
        """A figure: "bode" (with `inputs`, `outputs`, `frequency` [rad/s]), "poles" or "modes"; needs matplotlib."""
        if kind != "poles":
            self._one("plot")
        return _plot(self, kind, path, inputs=inputs, outputs=outputs, frequency=frequency)

    # --- elsewhere ----------------------------------------------------------------------------------------

    def to_statespace(self) -> StateSpace:
        """The system of `alembert.control`, with names and units; deviations from the point."""
        self._one("to_statespace")
        return StateSpace(
            self.A,
            self.B,
            self.C,
            self.D,
            input_names=self.input_names,
            output_names=self.output_names,
            state_names=self.state_names,
            input_units=self.input_units,
            output_units=self.output_units,
            state_units=self.state_units,
        )

    def to_control(self) -> Any:
        """A python-control `StateSpace` with the names of states, inputs and outputs (`.` and `:` become `_`)."""
        self._one("to_control")
        return to_control(self.to_statespace(), name=self.model.name)

    def table(self, matrix: str) -> Any:
        """A matrix ("A" to "F") as a rich table with names."""
        self._one("table")
        names = {
            "A": (self.state_names, self.state_names),
            "B": (self.state_names, self.input_names),
            "C": (self.output_names, self.state_names),
            "D": (self.output_names, self.input_names),
            "E": (self.state_names, self.parameter_names),
            "F": (self.output_names, self.parameter_names),
        }
        if matrix not in names:
            raise ArgumentError(f"table: no matrix {matrix!r}, expected one of {', '.join(names)}")
        rows, columns = names[matrix]
        label = "" if matrix in "CDF" else "'"
        body = (
            (f"{name}{label}", *map(printing.number, values))
            for name, values in zip(rows, getattr(self, matrix), strict=True)
        )
        return printing.table(matrix, ("", *columns), body)

    def __rich__(self) -> Any:
        return Group(*self._parts())

    def __str__(self) -> str:
        return printing.as_text(*self._parts())

    def _repr_html_(self) -> str:
        return printing.html_text(str(self))

    def __repr__(self) -> str:
        at = f", batch {self.batch}" if self.batch else ""
        counts = [
            f"{len(names)} {what}{'s' * (len(names) != 1)}"
            for what, names in (
                ("state", self.state_names),
                ("input", self.input_names),
                ("output", self.output_names),
            )
        ]
        return f"<LinearModel of {self.model.name!r}: {', '.join(counts)}{at}>"

    def _parts(self) -> list[Any]:
        if self.batch:
            return [repr(self)]
        signals = [
            *(("state", *pair) for pair in zip(self.state_names, self.state_units, strict=True)),
            *(("input", *pair) for pair in zip(self.input_names, self.input_units, strict=True)),
            *(("output", *pair) for pair in zip(self.output_names, self.output_units, strict=True)),
        ]
        if self.output_names == self.state_names:
            signals = [row for row in signals if row[0] != "output"]
        found: list[Any] = [repr(self), *([self.remark] if self.remark else [])]
        if self.left_out:
            found.append(f"part of a linear model, without {', '.join(self.left_out)}")
        found += [printing.table("signals", ("", "name", "unit"), signals, left=3)]
        if len(self.state_names) <= 8:
            found += [self.table(name) for name in ("A", "B")]
        if not self.has_modes:
            return [*found, f"poles [rad/s]: {', '.join(f'{pole:.5g}' for pole in self.poles())}"]
        return [*found, self.modes()]

    def _finite(self, function: str, what: str, value: Any) -> Array:
        x = self.model.compute.numbers(function, what, value)
        if not np.all(np.isfinite(x)):
            raise ArgumentError(f"{function}: {what} is not finite")
        return x

    def _one(self, function: str) -> None:
        if self.batch:
            raise ArgumentError(
                f"{function}: the linear model is a batch of shape {self.batch}; take one point, linear[0]"
            )


_STILL = 1e-6  # rad/s^2 or m/s^2
_PLOTS = ("bode", "poles", "modes")


def _plot(
    linear: LinearModel,
    kind: str,
    path: str | PathLike[str] | None,
    *,
    inputs: Any = None,
    outputs: Any = None,
    frequency: Any = None,
) -> Figure:
    check_known("plot: there is no plot", kind, _PLOTS)
    for what, given in (("inputs", inputs), ("outputs", outputs), ("frequency", frequency)):
        if given is not None and kind != "bode":
            raise ArgumentError(f"plot: {what} are for the plot 'bode', this is {kind!r}")
    if kind == "poles":
        return _plot_poles(linear, path)
    if kind == "modes":
        return _plot_modes(linear, path)
    w = frequencies(linear.poles()) if frequency is None else frequency
    return bode(linear.frequency_response(w), path, inputs=inputs, outputs=outputs, title=linear.model.name)


def _plot_poles(linear: LinearModel, path: str | PathLike[str] | None) -> Figure:
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
    axis.set_title(figures.plain(f"{linear.model.name}: poles"))
    return figures.save(figure, path)


def _plot_modes(linear: LinearModel, path: str | PathLike[str] | None, most: int = 8) -> Figure:
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
    figure.suptitle(figures.plain(f"{linear.model.name}: mode shapes"))
    return figures.save(figure, path)


# --- pieces -------------------------------------------------------------------------------------------------


def _mode_title(mode: Mode) -> str:
    if mode.kind == "rigid":
        return "rigid, 0 rad/s"
    hertz = mode.frequency / (2 * np.pi)
    if mode.kind == "oscillation":
        return f"{mode.frequency:.4g} rad/s ({hertz:.4g} Hz), damping {mode.damping + 0.0:.3g}"
    return f"real, {mode.pole.real:.4g} rad/s"
