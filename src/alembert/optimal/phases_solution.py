"""What a problem in phases gives: a solution of each phase, and of all together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError
from alembert.model.printing import unknown
from alembert.optimal.barrier import Bounds
from alembert.optimal.chain import Chain
from alembert.optimal.diagnosis import Violation
from alembert.optimal.outcome import Iterate, Outcome, Residuals
from alembert.optimal.scaling import Units
from alembert.optimal.solution import Solution, Solved
from alembert.optimal.stages import Stages

if TYPE_CHECKING:
    from alembert.optimal.mesh import MeshErrors
    from alembert.optimal.phases import Phases
    from alembert.optimal.refinement import MeshRound

Array = np.ndarray


OF_A_PHASE = (
    *(
        "time",
        "x",
        "q",
        "v",
        "controls",
        "state",
        "control",
        "steps",
        "costates",
        "gains",
        "arcs",
        "check",
        "ranges",
    ),
    *("integrals", "control_at", "controller", "efforts", "sensitivities", "motion", "to_xarray"),
)
"""what phases have, each its own"""


class PhaseMotion:
    """One phase: `time` (N + 1,) from the start of the first one, states `x` (N + 1, ...), `controls` (N, ...).

    `solution` is the same as a solution of its problem, whose time begins at 0: with plots, costates, accuracy.
    """

    def __init__(self, solution: Solution, begin: float) -> None:
        self.solution, self.problem = solution, solution.problem
        self.time = begin + solution.time
        self.x, self.controls = solution.x, solution.controls

    @property
    def duration(self) -> float:
        """[s]"""
        return self.solution.duration

    @property
    def q(self) -> Array:
        """(N + 1, nq), of a model"""
        return self.solution.q

    @property
    def v(self) -> Array:
        """(N + 1, nv), of a model"""
        return self.solution.v

    def state(self, name: str) -> Array:
        """A state at the nodes; of a model "q elbow" or "v elbow"."""
        return self.solution.state(name)

    def control(self, name: str) -> Array:
        """A control over the intervals."""
        return self.solution.control(name)

    def __repr__(self) -> str:
        return f"<phase from {self.time[0]:.6g} to {self.time[-1]:.6g} s>"


class PhasesSolution(Solved):
    """`solution["coast"]` is the motion of a phase. Messages and the diagnosis (see `Solved`) begin with the name of one."""

    meshes: tuple[dict[str, MeshRound], ...] = ()
    """those that were tried, where meshes were refined"""

    def __init__(self, phases: Phases, chain: Chain, outcome: Outcome, solver: str, hessian: str) -> None:
        self._take(outcome)
        self.phases, self.chain = phases, chain
        self.solver, self.hessian = solver, hessian
        self._motions: dict[str, PhaseMotion] = {}
        begin = 0.0
        for k, name in enumerate(phases.phases):
            motion = PhaseMotion(self._of_phase(k), begin)
            self._motions[name] = motion
            begin += motion.duration
        self.duration = begin
        if self.converged:
            self._judge_links()

    def _judge_links(self) -> None:
        """Bodies that are elsewhere when a phase begins are no motion."""
        for linkage, (before, name) in zip(self.phases.linkages, pairwise(self._motions), strict=True):
            if linkage.bodies is None:
                continue
            model = self[before].problem.model
            assert model is not None
            found = linkage.bodies.jump(model, self[before].q[-1], self[name].q[0])
            if found is not None:
                self._fail(
                    f"the body {found[0]!r} jumps by {found[1]:.3g} m where {name!r} begins: same_bodies keeps momentum; "
                    f"state a condition at the end of {before!r} that brings the bodies to where {name!r} has them"
                )
                return

    def _fail(self, why: str) -> None:
        """What was found is no motion."""
        self._status, self._message = "failed", why

    def __getattr__(self, name: str) -> Any:
        if name in OF_A_PHASE:
            names = ", ".join(repr(phase) for phase in self.phases.phases)
            example = next(iter(self.phases.phases))
            where = (
                f"solution[{example!r}]"
                if hasattr(self[example], name)
                else f"solution[{example!r}].solution"
            )
            raise AttributeError(f"{name} is that of a phase: {where}.{name}; phases are {names}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _of_phase(self, k: int) -> Solution:
        """Its part of the iterate, as a solution of its own."""
        own, where = self.chain.phases[k], self.chain.wheres[k]
        own_outcome = _part(self._outcome, self.chain, own, where, k)
        problem = own.problem
        if problem.design:
            problem = problem.with_design(own_outcome.iterate.x[0, own.chosen])
        found = Solution(
            problem, own, own_outcome, self.solver, own.scheme.name, self.hessian, is_judged=False
        )
        found.cost_size = abs(self.cost)
        return found

    def __getitem__(self, name: str) -> PhaseMotion:
        if name not in self._motions:
            raise ArgumentError(unknown("there is no phase", name, self._motions))
        return self._motions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._motions)

    def items(self) -> Iterator[tuple[str, PhaseMotion]]:
        """Phases by name, in their order."""
        return iter(self._motions.items())

    def _judged(self) -> list[tuple[str, MeshErrors]]:
        return [(name, own.accuracy) for name, _, own in self._parts()] if self.converged else []

    def _parts(self) -> list[tuple[str, float, Solution]]:
        return [(name, float(motion.time[0]), motion.solution) for name, motion in self.items()]

    @property
    def design(self) -> dict[str, float]:
        """The design parameters that were found, by name."""
        found: dict[str, float] = {}
        for _, motion in self.items():
            found |= motion.solution.design
        return found

    @property
    def accuracy(self) -> dict[str, Any]:
        """By phase, how far its intervals are off: see `Solution.accuracy`."""
        return {name: motion.solution.accuracy for name, motion in self.items()}

    @property
    def multipliers(self) -> dict[str, Array]:
        """Of every phase, "up: end h", and of conditions across phases by their name: see `Solution.multipliers`."""
        found: dict[str, Array] = {}
        for name, motion in self.items():
            found |= {f"{name}: {key}": y for key, y in motion.solution.multipliers.items()}
        it, rows = self._outcome.iterate, self.chain.final.rows if self.chain.final is not None else []
        own = {row.name for row, _ in rows}
        for names, values in ((self.chain.end_names, it.eta), (self.chain.end_bounded, it.last.y)):
            found |= {name: y for name, y in zip(names, values, strict=True) if name in own}
        return found

    def arrays(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, _, own in self._parts():
            found |= {f"{name}/{key}": a for key, a in own.arrays().items()}
        return found

    def to_html(self, path: str | Path, *, title: str = "") -> Path:
        """A page with the animations and plots of all phases, each in its tab; opens without network or server."""
        from alembert.optimal.report import curves
        from alembert.view import write_page
        from alembert.view.animation import CurvePage

        shown: list[Any] = [motion.solution._on_page(name) for name, motion in self.items()]
        if self.meshes:
            notes = {"status": self.status, "cost": f"{self.cost:.6g}", "message": self.message}
            shown.append(CurvePage("meshes", self.duration, curves(self), notes))
        return write_page(path, shown, title=title or "Optimal control")

    def violations(self, tolerance: float = 1e-6) -> list[Violation]:
        found = []
        for name, motion in self.items():
            begin = float(motion.time[0])
            for v in motion.solution.violations(tolerance):
                found.append(Violation(f"{name}: {v.name}", begin + v.time, v.amount))
        residuals, units = self._outcome.residuals, self._outcome.units
        times = [float(motion.time[-1]) for motion in self._motions.values()]
        for part, when in zip(self.chain.segments[1::2], times, strict=False):
            k = part.where.start
            gaps = np.abs(residuals.gap[k])
            of = units.x[k + 1]
            for j in np.flatnonzero(~(gaps <= tolerance * np.maximum(1.0, of))):
                found.append(Violation(part.stages.x_names[j], when, float(gaps[j])))
        found += self._violated_across(tolerance)
        return sorted(found, key=lambda v: -v.amount)

    def _violated_across(self, tolerance: float) -> list[Violation]:
        """Conditions on several phases, of their motions as they are."""
        chain, own, x = self.chain, self.chain.phases[-1], self._outcome.iterate.x
        carried = []
        for item in chain.carried:
            stages, where = chain.phases[item.phase], chain.wheres[item.phase]
            node = where.stop if item.at_end else where.start
            s = np.array([float(item.at_end), 0.0, stages.numbers[0, 2]])
            carried.append(float(item.number(stages)(x[node, : stages.chart.point], s, stages.parameters)))
        found = []
        for row, value in chain.final.rows if chain.final is not None else []:
            last = ca.SX(x[-1, : own.chart.point]), ca.SX(own.numbers[-1]), ca.SX(own.parameters)
            at = float(ca.evalf(value(ca.SX(carried), *last)))
            amount = max(row.lower - at, at - row.upper) if np.isfinite(at) else np.inf
            if amount > tolerance * max(1.0, abs(at)):
                found.append(Violation(f"across: {row.name}", self.duration, amount))
        return found

    def _report(self) -> list[str]:
        lines = [f"{self.status}: cost {self.cost:.10g}, duration {self.duration:.6g} s"]
        for name, begin, own in self._parts():
            lines.append(
                f"{name}: {own.duration:.6g} s from {begin:.6g} s, cost {own.cost:.6g}; {own.transcription}, "
                f"{own.steps} steps; {own.check}"
            )
        seconds = self.seconds.get("total", np.nan)
        lines.append(f"{self.solver}, {self.iterations} iterations, {seconds:.3g} s")
        return [*lines, f"largest residual {self.infeasibility:.1e}"]

    def _details(self, most: int) -> tuple[list[str], list[str], list[str]]:
        """Of all phases, by their names."""
        found: tuple[list[str], list[str], list[str]] = ([], [], [])
        for name, begin, own in self._parts():
            for lines, more in zip(found, own._details(most, begin, alone=False), strict=True):
                lines += [f"{name}: {line}" for line in more]
        return found

    def __repr__(self) -> str:
        spans = ", ".join(f"{name} {motion.duration:.6g} s" for name, motion in self._motions.items())
        return f"<PhasesSolution: {self.status}, cost {self.cost:.8g}; {spans}>"


def _part(outcome: Outcome, chain: Chain, own: Stages, where: slice, k: int) -> Outcome:
    """What a phase has of the outcome of all, in its own sizes."""
    it, (n, m, nz, nd) = outcome.iterate, own.sizes
    nodes = slice(where.start, where.stop + 1)
    x = it.x[nodes, : own.chart.point].copy()
    costates = it.costates[nodes, :n].copy()
    path = _cut(it.path, (where, slice(0, nd)))
    equations, bounded = len(own.end_names), len(own.end_bounded)
    is_last = k == len(chain.phases) - 1
    if is_last:
        eta, last = it.eta[:equations].copy(), _cut(it.last, (slice(0, bounded),))
    else:
        link = where.stop
        eta = it.path.y[link, :equations].copy()
        last = _cut(it.path, (link, slice(equations, equations + bounded)))
    sigma = it.sigma[: len(own.start_names)].copy() if k == 0 else _sigma(own, x[0], costates[0])
    u, z = it.u[where, :m].copy(), it.z[where, :nz].copy()
    iterate = Iterate(x, u, z, path, last, costates, sigma, eta)
    residuals = outcome.residuals
    units = replace(Units.ones(own), cost=outcome.units.cost)
    whole = next(part for part in outcome.units.parts if part.where.start == where.start)
    for name, size in (("x", n), ("u", m), ("z", nz), ("c", nz), ("d", nd)):
        getattr(units.parts[0], name)[...] = getattr(whole, name)[:size]
    units.settle()
    return replace(
        outcome,
        iterate=iterate,
        cost=_cost(own, iterate),
        gains=outcome.gains[where, :m, :n],
        residuals=Residuals(
            residuals.gap[where, :n], residuals.implicit[where, :nz], residuals.path[where, :nd]
        ),
        units=units,
    )


def _cut(bounds: Bounds, at: Any) -> Bounds:
    return Bounds(*(a[at].copy() for a in bounds.arrays))


def _cost(own: Stages, it: Iterate) -> float:
    along = own.stage.map(own.count)(it.x[:-1].T, it.u.T, it.z.T, own.numbers.T, own.parameters[:, None])[1]
    last = own.end(it.x[-1], own.numbers[-1], own.parameters)[0]
    return float(np.sum(along.full()) + float(last))


def _sigma(own: Stages, x: Array, costate: Array) -> Array:
    """Multipliers of conditions at the start of a phase, from the costate there: costate + C' sigma = 0."""
    d = ca.SX.sym("d", own.chart.tangent)
    rows = own.start(own.chart.retract(ca.SX(x), d), own.numbers[0], own.parameters)
    C = ca.Function("C", [d], [ca.densify(ca.jacobian(rows, d))])(np.zeros(own.chart.tangent)).full()
    if not len(C) or not (np.isfinite(C).all() and np.isfinite(costate).all()):
        return np.zeros(len(C))
    return np.linalg.lstsq(C.T, -costate, rcond=None)[0]
