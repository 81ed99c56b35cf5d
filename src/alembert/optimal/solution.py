"""What an optimal control problem gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import told_elsewhere
from alembert.errors import ArgumentError, UnsupportedError, interrupts_kept, writing
from alembert.model.printing import unknown
from alembert.optimal.analysis import Accuracy, Arc, arcs, simulate
from alembert.optimal.diagnosis import Violation, edges, linearise, redundant, unscaled, violated
from alembert.optimal.mesh import MeshErrors, judged
from alembert.optimal.outcome import Iteration, Outcome
from alembert.optimal.plant import Momenta
from alembert.optimal.problem import Problem
from alembert.optimal.stages import Stages

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

    from alembert.model import Model
    from alembert.optimal.refinement import MeshRound
    from alembert.view import Animation
    from alembert.view.animation import CurvePage

Array = np.ndarray
MISSED = 10.0
"""times the accuracy that was asked for: what is off by more is no success"""


class Solved:
    """What solutions of a problem and of phases have in common: how they were found."""

    solver: str
    cost: float
    infeasibility: float
    history: list[Iteration]
    seconds: dict[str, float]
    meshes: tuple[Any, ...] = ()
    """those that were tried, where meshes were refined"""
    estimate: float | None = None
    """with `accuracy`: what is estimated of the error of the last mesh, as a share"""
    _status: str
    _message: str
    _misses = False

    def _take(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._status, self._message = outcome.status, outcome.message
        self.cost, self.infeasibility = outcome.cost, outcome.infeasibility
        self.history, self.seconds = outcome.history, outcome.seconds

    def remark(self, text: str) -> None:
        """Add to the message."""
        self._message = f"{self._message}; {text}"

    def refined(self, meshes: tuple[Any, ...], accuracy: float, estimate: float, why: str) -> None:
        """Keep how meshes were refined; `why`: what ended that before the accuracy was reached.

        What is off by up to ten times what was asked for is acceptable, as with the tolerance.
        """
        self.meshes, self.estimate = meshes, estimate
        if why:
            self.remark(f"the accuracy that was asked for is not reached: {why}")
            self._message = self._message.removeprefix("solved; ")
            self._misses = not estimate <= MISSED * accuracy
            self._status = "acceptable" if self._status == "solved" else self._status

    @property
    def converged(self) -> bool:
        """Whether the solver has solved the equations of the mesh."""
        return self._status in ("solved", "acceptable")

    @property
    def status(self) -> str:
        """ "solved", "acceptable"; or why it is no solution.

        "coarse" is an optimum of the mesh (see `accuracy`), "inaccurate" off by more than ten times the accuracy that was
        asked for (see `estimate`).
        """
        if self._is_of_the_mesh:
            return "coarse"
        return "inaccurate" if self._misses else self._status

    @property
    def message(self) -> str:
        """The status in words, and what else is to be known."""
        known = [f"{name}: {text}" if name else text for name, e in self._judged() for text in e.remarks]
        solver = [] if self._is_of_the_mesh and self._message == "solved" else [self._message]
        return "; ".join((*solver, *known))

    def _judged(self) -> list[tuple[str, MeshErrors]]:
        """What meshes make of the problem, by phase; that of a single problem under ""."""
        raise NotImplementedError

    @property
    def _is_of_the_mesh(self) -> bool:
        return any(errors.is_coarse for _, errors in self._judged())

    @property
    def success(self) -> bool:
        return self.status in ("solved", "acceptable")

    @property
    def iterations(self) -> int:
        return max(0, len(self.history) - 1)

    def violations(self, tolerance: float = 1e-6) -> list[Violation]:
        """Constraints that are off by more than `tolerance`, the worst first; of quantities that are large numbers, by more
        than that part of their size."""
        raise NotImplementedError

    def diagnosis(self, most: int = 8) -> str:
        """In words: violated constraints by name and time, bounds that hold; at the last iterate also equations that
        repeat or contradict others, and constraints that are badly scaled."""
        lines = [f"{self.status}: {self.message}"]
        if not np.isfinite(self.cost):
            return f"{lines[0]}. A `guess` away from there, or limits and path constraints that keep it away, may help"
        violations = self.violations()
        lines += violated(violations, most)
        said, active, with_edges = self._details(most)
        lines += said
        if active:
            lines.append(f"bounds that hold somewhere: {', '.join(active)}")
        if not self.converged:
            if not violations:
                lines.append(
                    "the motion is feasible but not optimal: raise `iterations`, or loosen `tolerance`"
                )
            lines += with_edges
        return "\n".join(lines)

    def _details(self, most: int) -> tuple[list[str], list[str], list[str]]:
        """Equations and constraints in words, at most so many of each kind; bounds that hold; functions with edges."""
        raise NotImplementedError

    def summary(self) -> str:
        """A short report."""
        lines = self._report()
        if not self.success:
            lines.append(self.diagnosis())
        elif self.message != "solved":
            lines.append(self.message)
        return "\n".join(lines)

    def _report(self) -> list[str]:
        """Lines of the report on a solution."""
        raise NotImplementedError

    def _parts(self) -> list[tuple[str, float, Solution]]:
        """Solutions of single problems with the names of their phases, and when these begin [s]."""
        raise NotImplementedError

    def plot(self, path: str | Path | None = None) -> Figure:
        """States and controls over time, of all phases where there are some, with limits that are near."""
        from alembert.optimal.report import plot

        return plot(self, path)

    def save(self, path: str | Path) -> None:
        """Write the motion, of all phases where there are some, as .npz, which `guess=` reads again."""
        with writing(path):
            np.savez(path, **self.arrays())

    def arrays(self) -> dict[str, Any]:
        """What `save` writes."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """In notebooks: the report, and states and controls over time."""
        from alembert.view.figures import result_html

        return result_html(repr(self)[1:-1], self.summary().splitlines(), self.plot)

    def plot_convergence(self, path: str | Path | None = None) -> Figure:
        """Cost, residuals and slope over the iterations, and meshes that were refined."""
        from alembert.optimal.report import convergence

        return convergence(self, path)


@told_elsewhere(
    {"t": "solution.time", "x": "solution.q and .v", "u": "solution.controls", "tau": "solution.efforts"}
)
class Solution(Solved):
    """The motion (`time`, `q`, `v` or `x`), the controls, and how they were found.

    `success` says whether it is a solution to the tolerance; otherwise `message` and `diagnosis()` say what is wrong
    (see `Solved`).
    """

    def __init__(
        self,
        problem: Problem,
        stages: Stages,
        outcome: Outcome,
        solver: str,
        transcription: str,
        hessian: str,
        *,
        is_judged: bool = True,
    ) -> None:
        """`is_judged`: whether `success` also asks what the mesh makes of the problem (`accuracy`)."""
        self._take(outcome)
        self.problem, self.stages, self._is_judged = problem, stages, is_judged
        self.solver, self.transcription, self.hessian = solver, transcription, hessian

    _is_judged = False
    meshes: tuple[MeshRound, ...] = ()
    """those that were tried, where the mesh was refined"""

    cost_size = 0.0
    """what errors of the cost are seen against, where this is a part of more: that of all phases"""

    def row_unit(self, name: str) -> float:
        """Of a bound along the way, as the solver has it; 0 where it has none."""
        outcome = getattr(self, "_outcome", None)
        if outcome is None:
            return 0.0
        known = (k for k, label in enumerate(self.stages.path_names) if label.partition(" (")[0] == name)
        return float(outcome.units.d[0, k]) if (k := next(known, None)) is not None else 0.0

    def _judged(self) -> list[tuple[str, MeshErrors]]:
        return [("", self.accuracy)] if self._is_judged and self.converged else []

    @property
    def steps(self) -> int:
        return self.stages.count

    @property
    def model(self) -> Model | None:
        return self.problem.model

    @property
    def duration(self) -> float:
        """[s]"""
        return self.stages.span(self._outcome.iterate.x)

    @property
    def design(self) -> dict[str, float]:
        """The design parameters that were found, by name."""
        values = self.problem.parameters
        return {row.name: float(values[k]) for k, row in self.problem.design.items()}

    @property
    def integrals(self) -> dict[str, float]:
        """The values of the problem's integrals, by name."""
        rows = self.problem.integrals
        if not rows:
            return {}
        begin = self.stages.x_names.index(f"integral of {rows[0].name}") - self.stages.chart.tangent
        values = self._outcome.iterate.x[-1, begin : begin + len(rows) or None]
        return {row.name: float(value) for row, value in zip(rows, values, strict=True)}

    @cached_property
    def time(self) -> Array:
        """(N + 1,) [s]"""
        return self.stages.nodes * self.duration

    @cached_property
    def _points(self) -> Array:
        """(N + 1, ...) in the coordinates of the transcription, without memory and duration."""
        return self._outcome.iterate.x[:, : self.stages.plant.chart.point]

    @property
    def x(self) -> Array:
        """States of a system, (N + 1, states); of a model (q, v)."""
        return self._points if self.model is None else np.concatenate([self.q, self.v], axis=1)

    @cached_property
    def q(self) -> Array:
        """(N + 1, nq)"""
        model = self._model("q")
        return self._points[:, : model.nq]

    @cached_property
    def v(self) -> Array:
        """(N + 1, nv)"""
        model = self._model("v")
        rest = self._points[:, model.nq :]
        if not self._in_momenta:
            return rest
        return self._tree.solve_mass_matrix(self.q, rest, parameters=self.problem.parameter_values)

    @cached_property
    def momenta(self) -> Array:
        """Generalised momenta M(q) v, (N + 1, nv); with DMOC those of the discrete Legendre transform."""
        model = self._model("momenta")
        if self._in_momenta:
            return self._points[:, model.nq :]
        return np.einsum(
            "kij,kj->ki", self._tree.mass_matrix(self.q, parameters=self.problem.parameter_values), self.v
        )

    @property
    def _in_momenta(self) -> bool:
        """Whether the transcription has (q, p) for points."""
        return isinstance(self.stages.plant, Momenta)

    @property
    def _tree(self) -> Model:
        """The model without its loops."""
        return self.problem.plant.tree  # type: ignore[union-attr]

    @cached_property
    def required_efforts(self) -> Array:
        """(N + 1, nv): what the drives of prescribed joints must give at the nodes [N m, N]; zero for the others."""
        model = self._model("required_efforts")
        closure = self.problem.plant.closure  # type: ignore[union-attr]
        needed = np.zeros((len(self.time), model.nv))
        if closure is None or not closure.dofs:
            return needed
        t = ca.SX.sym("t")
        motion = ca.Function("motion", [t], [closure.motion(t)[2]]).map(len(self.time))
        names, a = [model.speed_names[k] for k in closure.dofs], motion(self.time[None]).full()
        controls = dict(zip(self.problem.plant.controls, self.control_at(self.time).T, strict=True))
        given = {"accelerations": dict(zip(names, a, strict=True)), "torques": controls}
        found = model.hybrid_dynamics(self.q, self.v, **given, parameters=self.problem.parameter_values)
        needed[:, list(closure.dofs)] = found.efforts[:, list(closure.dofs)]
        return needed

    @cached_property
    def controls(self) -> Array:
        """(N, m): of each interval; the mean where a transcription has several."""
        m = len(self.problem.plant.controls)
        u = self._outcome.iterate.u.reshape(self.steps, self.stages.scheme.points, m)
        if self.stages.scheme.node_controls:
            before = self._outcome.iterate.x[:-1, None, self._memory]
            nodes = np.concatenate([before, u], axis=1)
            weights = {2: (0.5, 0.5), 3: (1 / 6, 2 / 3, 1 / 6)}[nodes.shape[1]]
            return np.einsum("j,kjm->km", weights, nodes)
        return u.mean(axis=1)

    @property
    def state_units(self) -> Array | None:
        """How far states are expected to go, as the solver has it; None where it has none."""
        outcome = getattr(self, "_outcome", None)
        return None if outcome is None else outcome.units.x[0, : self.problem.plant.chart.tangent]

    @property
    def _memory(self) -> slice:
        start = self.stages.plant.chart.point
        return slice(start, start + self.stages.memory)

    @cached_property
    def efforts(self) -> Array:
        """(N, nv): of all degrees of freedom over each interval [N m, N]."""
        model = self._model("efforts")
        tau = np.zeros((self.steps, model.nv))
        tau[:, list(self.problem.plant.driven)] = self.controls  # type: ignore[union-attr]
        return tau

    def _model(self, what: str) -> Model:
        if self.model is None:
            raise UnsupportedError(f"solution.{what} is for models; the states of a System are in solution.x")
        return self.model

    def _of_the_sweep(self, what: str) -> None:
        """What only the sweep finds on its way."""
        if self.solver != "sweep":
            raise UnsupportedError(f"solution.{what}: {self.solver} gives none; solve with solver='sweep'")

    def state(self, name: str) -> Array:
        """A state of a system, or a coordinate or speed ("q elbow", "v elbow") of a model, at the nodes."""
        names: Sequence[str] = self.problem.plant.tangent_names
        if self.model is not None:
            names = [f"q {c}" for c in self.model.coordinate_names] + [
                f"v {c}" for c in self.model.speed_names
            ]
        return _column("state", names, self.x, name)

    def control(self, name: str) -> Array:
        """A control over the intervals."""
        return _column("control", self.problem.plant.controls, self.controls, name)

    def control_at(self, t: Any) -> Array:
        """The controls at any time, as the transcription has them between its points."""
        return self.control_within(*self._interval(t))

    def _interval(self, t: Any) -> tuple[Array, Array]:
        """The interval that a time is in, and at which share of it."""
        at = np.clip(np.asarray(t, dtype=float), 0.0, self.time[-1])
        k = np.clip(np.searchsorted(self.time, at, side="right") - 1, 0, self.steps - 1)
        return k, (at - self.time[k]) / (self.time[k + 1] - self.time[k])

    def control_within(self, k: Any, share: Any) -> Array:
        """The controls in interval k, at a share from 0 to 1 of it."""
        m = len(self.problem.plant.controls)
        u = self._outcome.iterate.u.reshape(self.steps, self.stages.scheme.points, m)
        places = self.stages.control_places
        if self.stages.scheme.node_controls:
            u = np.concatenate([self._outcome.iterate.x[:-1, None, self._memory], u], axis=1)
            places = (0.0, *places)
        return np.einsum("...j,...jm->...m", _lagrange(places, share), u[k])

    # --- what else is known --------------------------------------------------------------------------------------------

    @property
    def gains(self) -> Array:
        """(N, controls, states): feedback u = u* - K (x - x*) of the last sweep, x - x* in tangent coordinates."""
        self._of_the_sweep("gains")
        m, n = len(self.problem.plant.controls), self.stages.plant.chart.tangent
        return self._outcome.gains[:, :m, :n]

    @property
    def costates(self) -> Array:
        """(N, states): multipliers of the equations of motion, how the cost depends on the state at each next node."""
        return self._outcome.iterate.costates[1:, : self.stages.plant.chart.tangent]

    @property
    def multipliers(self) -> dict[str, Array]:
        """Of bounds along the way (positive at the upper one, negative at the lower one), and of conditions at the ends.

        With a bound or a condition moved up by d, the optimal cost falls by d times its multiplier (bounds along the way:
        times their sum); units are those of the cost over those of the bounded quantity. `costates` rise with the
        cost: the slope of the remaining cost along the state.
        """
        it = self._outcome.iterate
        found: dict[str, Array] = {name: it.path.y[:, k] for k, name in enumerate(self.stages.path_names)}
        found |= {f"start {n}": it.sigma[k] for k, n in enumerate(self.stages.start_names)}
        found |= {f"end {n}": it.eta[k] for k, n in enumerate(self.stages.end_names)}
        found |= {f"end {n}": it.last.y[k] for k, n in enumerate(self.stages.end_bounded)}
        return found

    def sensitivities(self) -> dict[str, Any]:
        """How the optimal cost changes with each parameter and input (of a vector, with each entry): the slope of the
        Lagrangian."""
        from alembert.optimal.analysis import sensitivities

        return sensitivities(self)

    def dimensions(self) -> tuple[int, int]:
        """Variables and equations of the smallest form; for DMOC (2N + 1) n and (N + 3) n with all joints driven."""
        from alembert.optimal.forms import dimensions

        return dimensions(self.stages)

    # --- checks --------------------------------------------------------------------------------------------------------

    @cached_property
    def accuracy(self) -> MeshErrors:
        """How far each interval is off, what its controls really cost, and bounds that do not hold between nodes."""
        with interrupts_kept():
            return judged(self)

    @cached_property
    def check(self) -> Accuracy:
        """Integrate the motion under these controls again, with much shorter steps and another method."""
        with interrupts_kept():
            return simulate(self)

    @cached_property
    def arcs(self) -> list[Arc]:
        """Where controls are at their bounds and where between them, "singular" where nothing but the motion decides."""
        if self.transcription == "splines":
            raise UnsupportedError(
                "solution.arcs: splines are smooth all along, and have no multipliers in each interval; solve with stages"
            )
        return arcs(self)

    def violations(self, tolerance: float = 1e-6) -> list[Violation]:
        stages, it, values = self.stages, self._outcome.iterate, self._outcome.residuals
        units = self._outcome.units
        found: list[Violation] = []

        def collect(names: Any, amounts: Array, times: Array, of: Array) -> None:
            sizes = np.where(np.isfinite(amounts), np.abs(amounts), np.inf)
            for i, j in zip(*np.nonzero(sizes > tolerance * np.maximum(1.0, of)), strict=True):
                found.append(Violation(names[j], float(times[i]), float(sizes[i, j])))

        T = self.time
        collect([f"motion of {name}" for name in stages.x_names], values.gap, T[1:], units.after)
        collect(stages.z_names, values.implicit, T[:-1], units.c)
        outside = np.maximum(stages.lower - values.path, values.path - stages.upper)
        collect([f"bound on {name}" for name in stages.path_names], np.maximum(outside, 0), T[:-1], units.d)
        s, p = stages.numbers[-1], stages.parameters
        start = stages.start(it.x[0], s, p).full().T
        collect([f"start {name}" for name in stages.start_names], start, T[:1], units.start)
        _, equations, bounded = (value.full()[:, 0] for value in stages.end(it.x[-1], s, p))
        collect([f"end {name}" for name in stages.end_names], equations[None], T[-1:], units.end)
        outside = np.maximum(stages.end_lower - bounded, bounded - stages.end_upper)
        names = [f"bound at the end on {n}" for n in stages.end_bounded]
        collect(names, np.maximum(outside, 0)[None], T[-1:], units.bounded)
        return sorted(found, key=lambda v: -v.amount)

    def _details(
        self, most: int, begin: float = 0.0, *, alone: bool = True
    ) -> tuple[list[str], list[str], list[str]]:
        """`begin`: of a phase [s], which is not `alone`."""
        it, time = self._outcome.iterate, begin + self.time
        linear = linearise(self.stages, it)
        said = redundant(self.stages, linear, time, reach=alone and not self.success)[:most]
        said += unscaled(self.stages, linear, time)[:most]
        if alone and self.converged:
            said += [str(arc) for arc in self.arcs if arc.kind == "singular"][:most]
        y = np.abs(it.path.y).max(axis=0, initial=0.0)
        return (
            said,
            [name for name, size in zip(self.stages.path_names, y, strict=True) if size > 1e-4],
            edges(self.problem),
        )

    def __repr__(self) -> str:
        return (
            f"<Solution of {self.problem.plant!r}: {self.status}, cost {self.cost:.8g}, {self.duration:.6g} s, "
            f"{self.steps} steps of {self.transcription}, {self.iterations} iterations of {self.solver}>"
        )

    def _parts(self) -> list[tuple[str, float, Solution]]:
        return [("", 0.0, self)]

    def _report(self) -> list[str]:
        return [
            f"{self.status}: cost {self.cost:.10g}, duration {self.duration:.6g} s",
            f"{self.transcription}, {self.steps} steps; {self.solver}, {self.iterations} iterations, "
            f"{self.seconds.get('total', np.nan):.3g} s",
            f"largest residual {self.infeasibility:.1e}",
            str(self.check),
        ]

    # --- handing over --------------------------------------------------------------------------------------------------

    def controller(self) -> Callable[[float, Array, Array], Array]:
        """Controls with the feedback of the last sweep, for `al.simulate(model, ..., controller=...)`.

        After the end of the solution its last controls and gains are held, and a warning says so.
        """
        from alembert.optimal.analysis import controller

        return controller(self)

    def motion(self, title: str = "") -> Animation:
        """The motion with its efforts, for `al.view` and films."""
        from alembert.optimal.report import curves, multiplier_curves, panels
        from alembert.view import Animation

        if self.model is None:
            raise UnsupportedError(
                "solution.motion: a System has no bodies to show; solution.plot() draws it"
            )
        model = self.model
        efforts = np.zeros((len(self.time), model.nv))
        efforts[:, list(self.problem.plant.driven)] = self.control_at(self.time)  # type: ignore[union-attr]
        series = {panel.label: panel.lines for panel in reversed(panels(self, fine=False))}
        own: dict[str, Any] = {"efforts": efforts, "series": series, "notes": self._notes(), "title": title}
        own["curves"] = (*multiplier_curves(self), *curves(self))
        return Animation(model, self.time, self.q, **own, parameters=self.problem.parameter_values)

    def _notes(self) -> dict[str, str]:
        """In words, for a page."""
        return {
            "status": self.status,
            **({} if self.message == self.status else {"message": self.message}),
            "cost": f"{self.cost:.6g}",
            "duration": f"{self.duration:.4g} s",
            "steps": f"{self.steps} of {self.transcription}",
            "iterations": f"{self.iterations} of {self.solver}",
            "largest residual": f"{self.infeasibility:.1e}",
            **{name: f"{value:.6g}" for name, value in (*self.design.items(), *self.integrals.items())},
            **history_notes(self.meshes),
        }

    def _on_page(self, title: str) -> Animation | CurvePage:
        """What a page shows of it: the motion of a model, or plots alone."""
        from alembert.optimal.report import record

        return record(self, title, self._notes()) if self.model is None else self.motion(title)

    def to_html(self, path: str | Path, *, title: str = "") -> Path:
        """A page with plots and, of a model, the animation, which opens without network or server."""
        from alembert.view import write_page

        return write_page(path, [self._on_page(title)], title=title or "Optimal control")

    def arrays(self) -> dict[str, Any]:
        found: dict[str, Any] = {"time": self.time, "controls": self.controls, "cost": np.array(self.cost)}
        found |= {"x": self.x} if self.model is None else {"q": self.q, "v": self.v}
        return found | ({"design": np.array(list(self.design.values()))} if self.design else {})

    def to_xarray(self) -> Dataset:
        """An `xarray.Dataset` with names and units (needs the extra `data`)."""
        from alembert.optimal.report import to_xarray

        return to_xarray(self)

    def ranges(self) -> list[tuple[str, str, str, str]]:
        """Every quantity with its unit, its least and largest value and when, and its limits: a table in words."""
        from alembert.optimal.report import ranges

        return ranges(self)


def history_notes(meshes: Any) -> dict[str, str]:
    """How meshes were refined, for the page."""
    if not meshes:
        return {}
    steps = " to ".join(str(mesh.steps) for mesh in meshes)
    return {"meshes": f"{steps} intervals", "estimated error": f"{meshes[-1].estimate:.1e}"}


def _column(what: str, names: Sequence[str], values: Array, name: str) -> Array:
    if name not in names:
        raise ArgumentError(unknown(f"the solution has no {what}", name, names))
    return values[:, names.index(name)]


def _lagrange(places: tuple[float, ...], s: Array) -> Array:
    """Weights of the values at `places` for the value at s."""
    s = np.asarray(s, dtype=float)
    weights = np.ones((*s.shape, len(places)))
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if i != j:
                weights[..., i] *= (s - b) / (a - b)
    return weights
