"""From phases to their solution: meshes, guess, solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import whole
from alembert.errors import ArgumentError, UnsupportedError, interrupts_kept
from alembert.model.printing import unknown
from alembert.optimal import guess as guesses
from alembert.optimal.chain import Chain, ChainEvaluation
from alembert.optimal.diagnosis import not_finite
from alembert.optimal.guess import Guess
from alembert.optimal.links import Linkage
from alembert.optimal.outcome import Warm, jump_remark, turns_too_far
from alembert.optimal.phases_solution import PhasesSolution
from alembert.optimal.problem import Problem
from alembert.optimal.refinement import Meshes
from alembert.optimal.solution import Solution
from alembert.optimal.solve import (
    LARGEST_EXACT,
    SolverOptions,
    Transcribed,
    in_time,
    no_nearer,
    remarks,
)

if TYPE_CHECKING:
    from alembert.optimal.phases import Phases

Array = np.ndarray
GRID = 41
"""points of a guess"""
ROUNDING = 1e-12
"""share of its size on the way below which what goes on is 0: a unit of 1e-16 would be none"""


class TranscribedPhases(Transcribed):
    """A chain with its compiled functions."""

    def __init__(self, chain: Chain) -> None:
        self.chain = self.stages = chain
        self._is_small = all(own.stage.n_instructions() <= LARGEST_EXACT for own in chain.phases)
        self._evaluations = {}
        self._kept = {}

    def evaluation(self, exact: bool) -> Any:
        if exact not in self._evaluations:
            self._evaluations[exact] = ChainEvaluation(self.chain, exact=exact)  # type: ignore[assignment]
        return self._evaluations[exact]


def solve_phases(phases: Phases, meshes: Meshes, guess: Any, given: Mapping[str, Any]) -> PhasesSolution:
    names = [field.name for field in fields(SolverOptions)]
    for name in given:
        if name not in names:
            raise ArgumentError(unknown("Phases.solve: no option", name, names))
    options = SolverOptions(**given)
    with interrupts_kept(returns=True):
        for name, count in meshes.counts.items():
            whole("solve", "steps", count, "a positive number of intervals")
            if meshes.schemes[name] == "splines":
                raise UnsupportedError("Phases.solve: transcription 'splines' has no stages; choose another")
        chain = phases.chain(meshes.counts, meshes.schemes, meshes.nodes)
        first, *later = phases.phases.values()
        is_open = chain.clocks or any(problem.plant.controls or problem.design for problem in later)
        if first.is_determined and not is_open:
            raise ArgumentError(
                "Phases.solve: the start is stated, and no phase has controls, `design` or a free duration: nothing is to "
                "be chosen"
            )
        transcribed = TranscribedPhases(chain)
        known = None
        if isinstance(guess, PhasesSolution) and _same(guess.chain, chain):
            it = guess._outcome.iterate
            place, known = (it.x, it.u, it.z), _warm(guess)
        else:
            place = placed(chain, made(phases, guess))
        attempt, outcome = transcribed.attempts(
            place, known, options, is_solution=known is not None, stages=chain
        )
        if options.solver == "sweep":
            outcome = transcribed.off_saddle(attempt, outcome)
        in_time(attempt, outcome)
        no_nearer(outcome)
        hessian = "exact" if attempt.exact else "gauss-newton"
        found = PhasesSolution(phases, chain, outcome, options.solver, hessian)
        _remark(found)
        return found


def _remark(found: PhasesSolution) -> None:
    """What the message says besides, for every phase: see `alembert.optimal.solve.remarks`."""
    status = found._status
    for name, motion in found.items():
        own, it = motion.solution, motion.solution._outcome.iterate
        said = remarks(own.stages, it, status)
        if status == "failed":
            said = [not_finite(own.stages, it.x, it.u, it.z), *said]
        if found.converged:
            said.append(jump_remark(own))
            if turns_too_far(own.stages, it):
                found._fail("no motion of the model")
        for text in filter(None, said):
            found.remark(f"{name}: {text}")


def _same(one: Chain, other: Chain) -> bool:
    """Whether states, controls and multipliers of the one are those of the other."""
    if one.names != other.names or one.count != other.count:
        return False
    for a, b in zip(one.parts, other.parts, strict=True):
        for name in ("x_names", "u_names", "z_names", "path_names"):
            if getattr(a.stages, name) != getattr(b.stages, name):
                return False
        if a.stages.scheme.name != b.stages.scheme.name or not np.array_equal(
            a.stages.numbers, b.stages.numbers
        ):
            return False
    return True


def _warm(solution: PhasesSolution) -> Warm | None:
    it, units = solution._outcome.iterate, solution._outcome.units
    if not solution.converged:
        return None
    bounds = (it.path.low, it.path.high, it.last.low, it.last.high)
    return Warm(it.costates, it.sigma, it.eta, *bounds, units)


# --- guess --------------------------------------------------------------------------------------------------------------


def made(phases: Phases, given: Any) -> dict[str, Guess]:
    """A guess for every phase; what is not given goes on from the phase before."""
    if isinstance(given, PhasesSolution):
        given = {name: motion.solution for name, motion in given.items()}
    by_phase: Any = given
    if isinstance(given, str | Path):
        by_phase = {}
        for key, value in guesses.saved(given).items():
            name, _, quantity = key.rpartition("/")
            by_phase.setdefault(name, {})[quantity] = value
    if given is not None and (not isinstance(by_phase, Mapping) or "" in by_phase):
        raise ArgumentError(
            f"Phases.solve: guess is {given!r}, expected guesses by phase, or a file of phases from solution.save"
        )
    given = by_phase
    for name in given or {}:
        if name not in phases.phases:
            raise ArgumentError(unknown("Phases.solve: the guess has no phase", name, phases.phases))
    found: dict[str, Guess] = {}
    linkages: list[Linkage | None] = [None, *phases.linkages]
    before: tuple[Problem, Guess] | None = None
    for (name, problem), linkage in zip(phases.phases.items(), linkages, strict=True):
        own = (given or {}).get(name)
        guess = guesses.make(problem, own)
        if isinstance(own, Solution) and list(own.problem.design) == list(problem.design):
            guess = replace(guess, design=own.problem.parameters[list(problem.design)])
        if own is None and before is not None and linkage is not None and phases.follow:
            guess = _going_on(problem, guess, linkage, *before)
        found[name], before = guess, (problem, guess)
    return found


def _going_on(problem: Problem, guess: Guess, linkage: Linkage, last: Problem, before: Guess) -> Guess:
    """A straight guess from where the phase before ends: what the start does not state follows the links."""
    T, p = ca.SX(before.duration), ca.SX(last.parameters)
    x, u = ca.SX.sym("x", before.points.shape[1]), ca.SX.sym("u", before.controls.shape[1])
    s = last.moment(T, x, u, p, T)
    where = np.linspace(0.0, 1.0, GRID)
    points, controls = guess.at(problem, where), guess.controls_at(where)
    stated = {row.component for row in problem.end if row.is_equation}
    begun = {row.component for row in problem.start if row.is_equation}
    for entry, value in zip(linkage.entries, linkage.values, strict=True):
        if value is None or any(name in begun for name in entry.names):
            continue
        along = ca.Function("along", [x, u], [ca.SX(value(s))])(before.points.T, before.controls.T).full()
        goes_on = along[:, -1]
        if not np.isfinite(goes_on).all():
            continue
        goes_on[np.abs(goes_on) <= ROUNDING * np.nanmax(np.abs(along), axis=1)] = 0.0
        if entry.adds and entry.names[0] in stated:
            points[:, entry.at] = goes_on + where[:, None] * (points[-1, entry.at] - goes_on)
        elif not any(name in stated for name in entry.names):
            points[:, entry.at] = goes_on
    found = Guess(where, points, controls, guess.duration, guess.design)
    if problem.model is None or not problem.model.is_constrained:
        return found
    held = [name for name in problem.model.speed_names if f"q {name}" in stated]
    return guesses.along_branch(problem, found, held)


def placed(chain: Chain, given: Mapping[str, Guess]) -> tuple[Array, Array, Array]:
    """x, u and z of all stages."""
    _, m, nz, _ = chain.sizes
    point = chain.segments[0].stages.chart.point
    x, u, z = np.zeros((chain.count + 1, point)), np.zeros((chain.count, m)), np.zeros((chain.count, nz))
    for own, where, guess in zip(chain.phases, chain.wheres, given.values(), strict=True):
        here = guesses.place(own, guess)
        x[where.start : where.stop + 1, : own.chart.point] = here[0]
        u[where, : own.sizes[1]], z[where, : own.sizes[2]] = here[1], here[2]
    for k, between in enumerate(chain.between):
        link = chain.wheres[k].stop
        first, second = chain.phases[k], chain.phases[k + 1]
        values = between.guess(x[link, : first.chart.point], x[link + 1, : second.chart.point])
        u[link, : len(values)] = values
    _carry(chain, x)
    return x, u, z


def _carry(chain: Chain, x: Array) -> None:
    """What is carried, as the guess has it."""
    for j, item in enumerate(chain.carried):
        own, where = chain.phases[item.phase], chain.wheres[item.phase]
        node = where.stop if item.at_end else where.start
        s = np.array([1.0 if item.at_end else 0.0, 0.0, own.numbers[0, 2]])
        value = float(item.number(own)(x[node, : own.chart.point], s, own.parameters))
        for k in range(node + 1 if item.at_end else node, chain.count + 1):
            x[k, chain.carried_place(k) + j] = value
