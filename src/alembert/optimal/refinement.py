"""Meshes that refine themselves until a solution is as accurate as it is to be.

A solution is judged by what its mesh makes of it: the errors of (1) of `alembert.optimal.mesh`, and by how much its cost
J differs from that of the mesh before,

    estimate = max(total, c, |J - J_before| / size)                                                    (1)

since controls that a mesh cannot follow are not seen by the first two. The next mesh has

- intervals cut into as many parts as their error asks for, by the order p of the method: (e_k N / accuracy)^(1/(p+1));
- where a control jumps, nodes on both sides of the jump. Between the values a before and b after an interval, whose mean
  is u, a jump is at the share (b - u)/(b - a) of it: so each mesh brings it nearer to a node;
- intervals on both sides of where a singular arc begins or ends in halves (`alembert.optimal.analysis`); where meshes are no
  longer solved since a transcription has several controls in each interval of such an arc, one that has a single one;
- those of a phase that is exact as they are, while others are not;
- all intervals in halves, where nothing else is to be done, where a solution is "coarse" (then the search begins anew), and
  before a solution is taken: a cost that stays where only some intervals were cut proves nothing;
- with "hp" a method of higher order instead, where intervals are smooth.

Within an interval the controls of Radau's method are polynomials. By their coefficients a_j in Legendre's basis they are
smooth by the ratio

    rho = (max_i<s-1 |a_i| / |a_s-1|)^(1/(s-1-i))                                                    (2)

by which coefficients fall. One more of the s points divides the error of the interval by rho^2, and d of them by F =
rho^(2d), at the price of an iteration, s^alpha; to divide it by cutting the interval takes F^(1/2s) parts. The first is the
better way for small changes where

    alpha d / s < ln F / (2 s),  that is  ln rho > alpha                                              (3)

All intervals of a mesh have the same order: stages have the same sizes, so that one of few points costs the sweep in time as
much as one of many. What a mesh of mixed orders would save elsewhere are unknowns, which are none of its cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.optimal.analysis import arcs, junctions
from alembert.optimal.mesh import least_cost
from alembert.optimal.schemes import RADAU, radau_name

if TYPE_CHECKING:
    from alembert.optimal.problem import Problem
    from alembert.optimal.solution import Solution

Array = np.ndarray
SIMPLE = "rk4"
"""the transcription with one control in each interval that is tried where another one, which has more, fails for that"""
ROUNDS = 10
"""meshes at most"""
ENOUGH = 0.1
"""of the accuracy: phases that are off by less, with controls that the mesh before could have had too, keep their mesh"""
MOST = 4
"""parts into which an interval is cut at once"""
LARGEST = 3000
"""intervals of a mesh"""
JUMP = 0.5
"""of the range of a control: by so much it changes across an interval in which it jumps; a straight one changes by a
third at most, on the fewest intervals that are judged"""
BESIDE = 0.1
"""of an interval: how far from a jump its nodes are"""
SHORT = 0.2
"""of the mean: intervals that are shorter need not be cut to see whether the cost stays"""
JUNCTION = 1e-3
"""of the duration: how near the ends of singular arcs are brought to nodes"""
SHORTEST = 1e-6
"""of the duration: intervals that are not cut any more"""


@dataclass(frozen=True)
class MeshRound:
    """One of the meshes on the way: its number of intervals, the cost found on it, (1), and jumps of controls."""

    steps: int
    cost: float
    estimate: float
    jumps: int
    iterations: int
    order: int = 0
    """of the method"""


def asked(accuracy: Any, refine: str = "h") -> None:
    """Refuse what is no share, and no way to refine."""
    if not (isinstance(accuracy, int | float) and 0 < accuracy < 1):
        raise ArgumentError(
            f"solve: accuracy is {accuracy!r}, expected a share of the motion and of the cost, such as 1e-6"
        )
    if refine not in ("h", "hp"):
        raise ArgumentError(
            f"solve: refine is {refine!r}, expected 'h' (by nodes) or 'hp' (by order as well)"
        )


def refined(
    problem: Problem, steps: int, accuracy: Any, options: dict[str, Any], refine: str = "h"
) -> Solution:
    """The solution on the first mesh whose (1) is below `accuracy`; on the last good one with a remark, if there is none."""
    if options.get("transcription") == "splines":
        raise ArgumentError("solve: accuracy is for meshes; with splines raise `control_points` instead")
    given = {name: x for name, x in options.items() if name not in ("transcription", "nodes", "guess")}

    def solve(meshes: Meshes, guess: Any, left: float | None) -> tuple[Solution, dict[str, Solution]]:
        own = {"transcription": meshes.schemes[""], "nodes": meshes.nodes.get(""), "guess": guess}
        solution = problem.solve(meshes.counts[""], **given | own | {"time_limit": left})
        return solution, {"": solution}

    def otherwise(best: Solution, found: list[Any], left: float | None) -> Solution | None:
        """By `SIMPLE`, where controls are singular."""
        name = _swinging(best)
        if name is None:
            return None
        own = {"transcription": SIMPLE, "guess": best, "nodes": None, "time_limit": left}
        again = refined(problem, steps, accuracy, {**options, **own})
        if not (again.converged and (again.success or (again.estimate or np.inf) < found[-1].estimate)):
            return None
        again.meshes = (*found, *again.meshes)
        again.remark(f"{name} is singular: refined by {SIMPLE}, with one control in each interval")
        return again

    nodes = {} if options.get("nodes") is None else {"": options["nodes"]}
    first = Meshes({"": steps}, {"": options.get("transcription")}, nodes)
    limit = options.get("time_limit")
    return refine_by_parts(solve, first, options.get("guess"), accuracy, refine, limit, otherwise)


@dataclass
class Meshes:
    """By the name of each phase, "" where there is one problem: intervals, transcriptions, and nodes that are not even."""

    counts: dict[str, int]
    schemes: dict[str, str | None]
    nodes: dict[str, Any]

    def __str__(self) -> str:
        if "" in self.counts:
            return f"mesh of {self.counts['']} intervals was"
        return f"meshes {', '.join(f'{name} {count}' for name, count in self.counts.items())} were"


def refine_by_parts(
    solve: Callable[[Meshes, Any, float | None], tuple[Any, dict[str, Solution]]],
    meshes: Meshes,
    guess: Any,
    accuracy: Any,
    refine: str,
    time_limit: float | None,
    otherwise: Callable[[Any, list[Any], float | None], Any] | None = None,
) -> Any:
    """What `solve` finds on `meshes` from a guess in the time that is left, with a solution for each part, refined: every
    part is cut where it is off, until none is. `otherwise` may have another way where the next meshes are not solved."""
    asked(accuracy, refine)
    if refine == "hp":
        meshes.schemes = {name: with_orders(own) for name, own in meshes.schemes.items()}
    found: list[dict[str, MeshRound]] = []
    best: Any = None
    first: Any = None
    start, everywhere, clock = guess, dict.fromkeys(meshes.counts, False), MeshClock(time_limit)
    earlier: dict[str, Array] = {}

    def told() -> list[Any]:
        return [rounds.get("", rounds) for rounds in found]

    def ended(solution: Any, why: str) -> Any:
        solution.refined(tuple(told()), accuracy, max(r.estimate for r in found[-1].values()), why)
        return solution

    while True:
        solution, parts = solve(meshes, start, clock.left)
        if not solution.converged:
            if best is None:
                return solution
            other = None
            if otherwise is not None and solution.status not in ("time", "interrupted"):
                other = otherwise(best, told(), clock.left)
            return other or ended(best, f"the {meshes} not solved ({solution.status})")
        before, best, first = best, solution, first or solution
        size = max(abs(solution.cost), least_cost(first)) or 1.0
        change = abs(solution.cost - before.cost) / size if before is not None else np.inf
        rounds = {}
        for name, part in parts.items():
            meshes.schemes[name] = part.transcription  # that was chosen for the first mesh
            here = part.accuracy.worst
            rounds[name] = MeshRound(
                *(meshes.counts[name], solution.cost, max(here, change) if np.isfinite(here) else change),
                *(len(jumps(part)), solution.iterations, part.stages.scheme.order),
            )
        found.append(rounds)
        estimate = max(r.estimate for r in rounds.values())
        is_enough = estimate <= accuracy
        if is_enough and all(everywhere.values()):
            return ended(solution, "")
        if len(found) == ROUNDS:
            return ended(solution, f"{estimate:.1e} after {ROUNDS} meshes")
        # what a coarse one says of where to refine means nothing, and nothing is gained by beginning there
        coarse = any(part.accuracy.is_coarse for part in parts.values())
        for name, part in parts.items():
            before_this, more = earlier.get(name) if everywhere[name] else None, 0
            exact = len(parts) > 1 and part.accuracy.worst <= ENOUGH * accuracy
            if exact and _had_these(part, before_this, accuracy):
                meshes.nodes[name], everywhere[name] = part.stages.nodes, True
                continue
            earlier[name] = part.stages.nodes
            if refine == "hp" and not coarse:
                meshes.nodes[name], more = next_order(part, accuracy, is_enough=is_enough)
                meshes.schemes[name], everywhere[name] = higher(part.transcription, more), True
            if not more:
                meshes.nodes[name], everywhere[name] = next_mesh(
                    part, accuracy, is_enough=is_enough, coarse=coarse
                )
            count = len(meshes.nodes[name]) - 1
            if count > LARGEST:
                of = f" of {name}" if name else ""
                return ended(solution, f"{estimate:.1e}: the next mesh{of} would have {count} intervals")
            meshes.counts[name] = count
        start = guess if coarse else solution


def _had_these(solution: Solution, before: Array | None, accuracy: float) -> bool:
    """Whether intervals between the nodes `before` could have had these controls; what is left costs to second order."""
    scheme = solution.stages.scheme
    if not solution.problem.plant.controls:
        return True
    if before is None:
        return False
    degree = scheme.points - 1 + scheme.node_controls
    share = (np.arange(4 * (degree + 1)) + 0.5) / (4 * (degree + 1))
    times = before[:-1, None] + np.diff(before)[:, None] * share
    u = solution.control_at(times * solution.duration)
    basis = np.polynomial.legendre.legvander(2 * share - 1, degree)
    left = u - np.einsum("ij,kjm->kim", basis @ np.linalg.pinv(basis), u)
    room = np.sqrt(ENOUGH * accuracy) * np.ptp(u, axis=(0, 1)) + LEFT * np.abs(u).max(axis=(0, 1))
    return bool((np.abs(left).max(axis=(0, 1)) <= room).all())


class MeshClock:
    """What is `left` of a time limit that all meshes have together; None without one."""

    def __init__(self, limit: float | None) -> None:
        self._end = None if limit is None else time.perf_counter() + limit

    @property
    def left(self) -> float | None:
        return None if self._end is None else max(self._end - time.perf_counter(), 1e-3)


def _swinging(solution: Solution) -> str | None:
    """A control that is singular on an arc, while its transcription has several values of it in each interval.

    What counts there is their mean: the finer the mesh, the less the others are determined, until no solver finds them.
    """
    scheme = solution.stages.scheme
    if scheme.points + scheme.node_controls == 1:
        return None
    return next((arc.control for arc in arcs(solution) if arc.kind == "singular"), None)


def next_order(solution: Solution, accuracy: float, *, is_enough: bool) -> tuple[Array, int]:
    """The nodes of the next mesh, and by how many points its method has more: 0 where only nodes help."""
    jumping, now = jumps(solution), solution.stages.nodes
    more, smooth = more_points(solution, accuracy, set(jumping))
    if is_enough:
        more = min(1, MOST_POINTS - solution.stages.scheme.points)
    return np.union1d(now, _cuts(solution, jumping, accuracy, smooth)), more


def next_mesh(solution: Solution, accuracy: float, *, is_enough: bool, coarse: bool) -> tuple[Array, bool]:
    """The nodes of the next mesh, and whether it cuts all intervals; `is_enough`: only to see whether the cost stays."""
    now = solution.stages.nodes
    if coarse:
        nodes = _halved(now)
    else:
        cuts = _cuts(solution, jumps(solution), accuracy)
        if is_enough or not len(cuts):
            cuts = np.union1d(cuts, _halved(now))
        nodes = np.union1d(now, cuts)
    return nodes, _is_everywhere(now, nodes)


def jumps(solution: Solution) -> dict[int, float]:
    """Intervals in which a control jumps, and at which share of them."""
    N, found = solution.steps, {}
    if N < 3:
        return {}
    k = np.arange(N)
    first, last = (solution.control_within(k, np.full(N, share)) for share in (0.0, 1.0))
    mean, lengths = solution.controls, np.diff(solution.stages.nodes)
    shared = solution.stages.scheme.node_controls
    before = first if shared else np.concatenate([first[:1], last[:-1]])
    after = last if shared else np.concatenate([first[1:], last[-1:]])
    values = np.concatenate([first, last])
    ranges = np.ptp(values, axis=0)
    for j in range(mean.shape[1]):
        a, b, u = before[:, j], after[:, j], mean[:, j]
        there = np.abs(b - a) > JUMP * max(ranges[j], 1e-300)
        for i in np.flatnonzero(there & (lengths > SHORTEST)):
            share = float((b[i] - u[i]) / (b[i] - a[i]))
            if shared or 0.0 < share < 1.0:
                found[int(i)] = min(max(share, 0.0), 1.0)
    return found


def _halved(nodes: Array) -> Array:
    """All that are not already far shorter than the others in halves."""
    lengths = np.diff(nodes)
    long = lengths > SHORT * lengths.mean()
    return np.sort(np.concatenate([nodes, ((nodes[:-1] + nodes[1:]) / 2)[long]]))


def _is_everywhere(before: Array, after: Array) -> bool:
    """Whether all intervals were cut that are not far shorter than the others: else a cost that stays proves nothing."""
    lengths = np.diff(before)
    inside = np.diff(np.searchsorted(after, before)) > 1
    return bool(inside[lengths > SHORT * lengths.mean()].all())


def _cuts(solution: Solution, jumping: dict[int, float], accuracy: float, left: Array | None = None) -> Array:
    """Where errors and jumps ask for nodes; intervals that are `left` to a higher order get none."""
    N, nodes, order = solution.steps, solution.stages.nodes, solution.stages.scheme.order
    known = solution.accuracy.intervals
    errors = np.where(np.isfinite(known), known, 0.0)
    parts = np.clip(np.ceil((errors * N / accuracy) ** (1 / (order + 1))), 1, MOST).astype(int)
    if left is not None:
        parts[left] = 1
    for k in junctions(solution):  # where singular arcs begin and end is found to the length of an interval
        if nodes[k + 1] - nodes[k] > JUNCTION:
            parts[k] = max(parts[k], 2)
    cuts = [np.empty(0)]
    for k in range(N):
        begin, length = nodes[k], nodes[k + 1] - nodes[k]
        if k in jumping:
            at = jumping[k] + BESIDE * np.array([-1.0, 1.0])
            cuts.append(begin + length * at[(at > BESIDE / 5) & (at < 1 - BESIDE / 5)])
        elif parts[k] > 1 and length > SHORTEST:
            cuts.append(begin + length * np.arange(1, parts[k]) / parts[k])
    return np.concatenate(cuts)


PRICE = 1.0
"""alpha of (3): measured 0.3 to 1.1 (van der Pol's oscillator and an acrobot, 300 intervals, 2 to 6 points)"""
LEFT = 1e-10
"""share of the range of a control: what a solver leaves of it"""
MOST_POINTS = max(RADAU.values())
"""points"""


def _points(transcription: str) -> int | None:
    return {"radau": 3, "radau-momenta": 3, **RADAU}.get(transcription)


def with_orders(transcription: str | None) -> str:
    """The transcription to begin with; refuses those that have no others of their kind."""
    name = transcription or "radau"
    if _points(name) is None:
        raise UnsupportedError(
            f"solve: refine='hp' raises the order of Radau's methods, and {name!r} has one order only; choose "
            "transcription='radau', or refine='h'"
        )
    return name


def higher(transcription: str, more: int) -> str:
    """The one with `more` points, as far as there are any."""
    points = min((_points(transcription) or MOST_POINTS) + more, MOST_POINTS)
    return radau_name(points, momenta=transcription.endswith("momenta"))


def smoothness(solution: Solution) -> Array:
    """(N,): rho of (2), of the control that is the least smooth; inf for one that is a polynomial of a lower degree."""
    s, m = solution.stages.scheme.points, len(solution.problem.plant.controls)
    u = solution._outcome.iterate.u.reshape(solution.steps, s, m)
    basis = np.polynomial.legendre.legvander(2 * np.array(solution.stages.control_places) - 1, s - 1)
    a = np.abs(np.einsum("ij,kjm->kim", np.linalg.inv(basis), u))
    small = LEFT * np.maximum(np.ptp(u, axis=(0, 1)), 1e-300)
    last = np.maximum(a[:, -1], small)
    found = np.max([(np.maximum(a[:, i], small) / last) ** (1 / (s - 1 - i)) for i in range(s - 1)], axis=0)
    found = np.where(a[:, -1] <= small, np.inf, found)
    return found.min(axis=1, initial=np.inf)


def more_points(solution: Solution, accuracy: float, jumping: set[int]) -> tuple[int, Array]:
    """By how many points the method is to be raised, and (N,) which intervals are smooth, and so left uncut for it."""
    N, s = solution.steps, solution.stages.scheme.points
    known = solution.accuracy.intervals
    errors = np.where(np.isfinite(known), known, 0.0) * N / accuracy
    rho = smoothness(solution)
    smooth = np.log(rho) > PRICE
    smooth[list(jumping | junctions(solution))] = False
    off = smooth & (errors > 1)
    if s >= MOST_POINTS:
        return 0, np.zeros(N, dtype=bool)
    if not off.any():
        return 0, smooth
    needed = np.ceil(np.log(errors[off]) / (2 * np.log(rho[off])))
    return int(np.clip(needed.max(), 1, MOST_POINTS - s)), smooth
