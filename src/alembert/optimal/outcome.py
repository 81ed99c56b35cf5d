"""What a solver begins with and gives back: an attempt, its iterations, Ctrl-C, and the outcome.

A solution that is the guess brings its costates and the multipliers of its bounds and conditions (`warm`). On other nodes
costates are interpolated, and multipliers along the path, which are integrals over a stage, keep their densities.

Of an outcome is remarked what a solver does not see: controls that zigzag or jump, and steps that turn a joint by half a
turn.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from alembert.errors import ArgumentError, check_interrupt, handled_interrupts, interrupt_noted
from alembert.model.modal_checks import fastest_mode
from alembert.optimal import tuning
from alembert.optimal.barrier import Bounds
from alembert.optimal.dmoc import Dmoc

if TYPE_CHECKING:
    from alembert.optimal.scaling import Units
    from alembert.optimal.solution import Solution
    from alembert.optimal.stages import Stages

Array = np.ndarray
NO_SLOPE = "; a root or a norm of zero has no slope: add a small number under it"
"""what helps most often where a value is finite and its slope is not: drag of a body at rest, a distance of zero"""


class Iteration(NamedTuple):
    """One line of the progress."""

    number: int
    cost: float
    infeasibility: float
    """the largest residual"""
    slope: float
    """the largest slope of the Lagrangian"""
    barrier: float
    step: float
    shift: float
    seconds: float


class IterationLog:
    """What the iterations of a solver have reached; `report` is called with each of them."""

    def __init__(self, lower: Array, upper: Array, report: Callable[[Iteration], Any] | None) -> None:
        self._lower, self._upper, self.report = lower, upper, report
        self.history: list[Iteration] = []
        self.stop = False
        """whether the solver is to end: Ctrl-C, or a failure"""
        self.failure: BaseException | None = None
        """what was raised on the way"""
        self.best: tuple[Array, Array] | None = None
        """unknowns and multipliers of the best iterate: the cheapest that keeps all to `KEPT`, or the nearest to it"""
        self.latest: Array | None = None
        self._rank = (np.inf, np.inf)
        self._began = time.perf_counter()

    @property
    def is_over(self) -> bool:
        """Whether the solver is to end, also within an iteration."""
        return self.stop or (isinstance(self.report, Deadline) and self.report.is_over)

    def add(self, cost: float, g: Array, x: Array, y: Array, details: tuple[float, ...] = ()) -> None:
        """An iterate x with this cost, rows g and multipliers y; details: slope, barrier, step, shift."""
        off = float(np.max(np.maximum(self._lower - g, g - self._upper), initial=0.0))
        rank = (off if off > tuning.KEPT else 0.0, cost)
        if np.isfinite(cost) and rank < self._rank:
            self._rank = rank
            self.best = x.copy(), y.copy()
        self.latest = x.copy()
        slope, barrier, step, shift = (*details, np.nan, np.nan, np.nan, np.nan)[:4]
        now = time.perf_counter() - self._began
        self.history.append(Iteration(len(self.history), cost, off, slope, barrier, step, shift, now))
        if self.report is not None:
            try:
                self.report(self.history[-1])
            except KeyboardInterrupt:
                self.stop = True
            except BaseException as error:  # must not pass through the solver's machine code
                self.stop, self.failure = True, error


@contextmanager
def interruptible(log: IterationLog) -> Iterator[None]:
    """Ctrl-C stops the solver after its iteration, instead of an exception in the middle of machine code."""

    def ask(*_: Any) -> None:
        log.stop = True
        interrupt_noted()

    check_interrupt()
    with handled_interrupts(ask):
        yield


def reporter(progress: Any) -> Callable[[Iteration], Any] | None:
    """What to call with each iteration: `progress` itself, or a function that prints, by default on a terminal."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    if not isinstance(progress, bool):
        raise ArgumentError(
            f"solve: progress is {progress!r}, expected True, False or a function of an iteration"
        )
    return _print if progress else None


class Deadline:
    """Reports iterations, and ends them as Ctrl-C does when `limit` seconds have passed."""

    def __init__(self, limit: float, report: Callable[[Iteration], Any] | None) -> None:
        self.limit, self._report = limit, report
        self._end = time.perf_counter() + limit

    @property
    def is_over(self) -> bool:
        return time.perf_counter() > self._end

    @property
    def left(self) -> float:
        """Seconds, above zero."""
        return max(self._end - time.perf_counter(), 1e-6)

    @property
    def outcome(self) -> tuple[str, str]:
        """Status and message of what it has ended."""
        return "time", f"stopped after the time limit of {self.limit:.4g} s; this is the best iterate so far"

    def __call__(self, iteration: Iteration) -> None:
        if self._report is not None:
            self._report(iteration)
        if self.is_over:
            raise KeyboardInterrupt


def _print(i: Iteration) -> None:
    if i.number % 20 == 0:
        print(
            f"{'':>4}  {'cost':>14}  {'infeasible':>10}  {'slope':>9}  {'barrier':>8}  {'step':>8}",
            file=sys.stderr,
        )
    slope, barrier, step = _known(i.slope, "9.2e"), _known(i.barrier, "8.1e"), _known(i.step, "8.2e")
    print(
        f"{i.number:4d}  {i.cost:14.8g}  {i.infeasibility:10.2e}  {slope}  {barrier}  {step}",
        file=sys.stderr,
    )


def _known(value: float, form: str) -> str:
    """A number, or a dash where a solver does not tell it."""
    return f"{'-':>{form.split('.')[0]}}" if math.isnan(value) else f"{value:{form}}"


@dataclass
class Iterate:
    """Where the method is. `costates` has N + 1 rows, the first for the state at the start."""

    x: Array
    u: Array
    z: Array
    path: Bounds
    last: Bounds
    costates: Array
    sigma: Array
    eta: Array


@dataclass
class Residuals:
    """Per stage: r, c and d."""

    gap: Array
    implicit: Array
    path: Array


@dataclass
class Outcome:
    """What a solver returns; `status` is "solved", "acceptable", "stalled", "infeasible",
    "iterations", "time", "interrupted" or "failed"."""

    status: str
    message: str
    iterate: Iterate
    cost: float
    infeasibility: float
    slope: float
    history: list[Iteration]
    gains: Array
    residuals: Residuals
    units: Units
    """in which residuals are small or large"""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        return self.status in ("solved", "acceptable")


@dataclass(frozen=True)
class Warm:
    """In the units of the problem; costates are in the chart of the stages."""

    costates: Array
    sigma: Array
    eta: Array
    low: Array
    high: Array
    end_low: Array
    end_high: Array
    units: Units


def warm(stages: Stages, given: Any, *, unfinished: bool = False) -> Warm | None:
    """From the solution `given`; None where it is no solution, or its stages have other states, controls or bounds.

    With `unfinished` also from where a solver was stopped on its way."""
    outcome, other = getattr(given, "_outcome", None), getattr(given, "stages", None)
    if outcome is None or other is None or not hasattr(outcome.iterate, "costates"):
        return None
    if not (given.converged or (unfinished and given.status in ("iterations", "time"))):
        return None
    for name in ("x_names", "u_names", "z_names", "path_names", "start_names", "end_names", "end_bounded"):
        if getattr(other, name) != getattr(stages, name):
            return None
    if other.scheme.name != stages.scheme.name:
        return None
    it = outcome.iterate
    if same_nodes(stages, given):
        low, high, costates = it.path.low, it.path.high, it.costates
    else:
        low, high, costates = _between(stages, other, it)
    found = Warm(costates, it.sigma, it.eta, low, high, it.last.low, it.last.high, outcome.units)
    known = (found.costates, found.sigma, found.eta, found.low, found.high, found.end_low, found.end_high)
    return found if all(np.isfinite(a).all() for a in known) else None


def _between(stages: Stages, other: Stages, it: Iterate) -> tuple[Array, Array, Array]:
    """Multipliers of bounds and costates for other nodes."""
    at = np.clip(np.searchsorted(other.nodes, stages.nodes[:-1] + 1e-9, side="right") - 1, 0, other.count - 1)
    width = (stages.numbers[:, 1] / other.numbers[at, 1])[:, None]
    once = ~np.isfinite(stages.lower[1:]).any(axis=0) & ~np.isfinite(stages.upper[1:]).any(axis=0)
    width = np.where(once, 1.0, width)
    costates = [np.interp(stages.nodes, other.nodes, column) for column in it.costates.T]
    return width * it.path.low[at], width * it.path.high[at], np.column_stack(costates)


def shifted(it: Iterate, known: Warm, by: int) -> tuple[tuple[Array, Array, Array], Warm]:
    """States, controls, z and multipliers `by` intervals later; the last ones are repeated.

    What a plan says of the time that is left, when it is followed for so many intervals.
    """
    N = len(it.u)
    nodes, stages = np.minimum(np.arange(N + 1) + by, N), np.minimum(np.arange(N) + by, N - 1)
    low, high = known.low[stages], known.high[stages]
    moved = replace(known, costates=known.costates[nodes], low=low, high=high)
    return (it.x[nodes], it.u[stages], it.z[stages]), moved


def same_nodes(stages: Stages, given: Any) -> bool:
    """Whether also states, controls and z of the solution can be taken as they are."""
    own, other = stages.numbers[:, 0], given.stages.numbers[:, 0]
    return len(own) == len(other) and bool((own == other).all())


@dataclass(frozen=True, eq=False)
class Attempt:
    """One run of a solver on `stages`: where it begins, and when it ends."""

    stages: Stages
    x: Array
    u: Array
    z: Array
    exact: bool
    """whether the Hessian has the curvature of the dynamics"""
    tolerance: float
    iterations: int
    report: Callable[[Iteration], Any] | None
    known: Warm | None = None
    """multipliers to begin with"""
    is_solution: bool = False
    """whether x, u and z already are a solution"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """of the solver itself, by its names"""


SIZE, RUN = 0.1, 6
"""second differences, in terms of the range of a control, and how many of them in a row alternate in a zigzag; where a
control jumps once, two do"""


def zigzags(stages: Stages, it: Iterate) -> list[str]:
    """Controls that alternate from point to point.

    Where the cost and the motion see only weighted sums of the controls of neighbouring points, as on singular arcs,
    transcriptions with controls at the nodes leave their differences open: the sums are right, and the controls alternate.
    """
    if not (stages.scheme.node_controls and it.u.size) or not np.isfinite(it.u).all():
        return []
    names = stages.problem.plant.controls
    begin = stages.plant.chart.point
    first = it.x[:1, begin : begin + len(names)]
    values = np.concatenate([first, it.u.reshape(-1, len(names))])
    found = []
    for name, column in zip(names, values.T, strict=True):
        bends = np.diff(column, 2)
        bends = np.where(np.abs(bends) > SIZE * max(float(np.ptp(column)), 1e-6), np.sign(bends), 0.0)
        run = longest = 0
        for product in bends[1:] * bends[:-1]:
            run = run + 1 if product < 0 else 0
            longest = max(longest, run)
        if longest >= RUN:
            found.append(name)
    return found


def zigzag_remark(stages: Stages, it: Iterate) -> str:
    """What to say of them; empty where there are none."""
    names = zigzags(stages, it)
    if not names:
        return ""
    return (
        f"{', '.join(names)} zigzag{'s' if len(names) == 1 else ''} from node to node, which {stages.scheme.name!r} "
        "leaves open where the cost hardly depends on it: add a small cost on it, or choose 'rk4' or 'midpoint'"
    )


NEARLY = 0.98
"""of pi, from where a solver that does not come to a solution is said to have been stopped by it"""


def largest_turn(stages: Stages, it: Iterate) -> tuple[float, str]:
    """The largest turn within a step of DMOC [rad] and its joint; 0 where no joint turns so.

    Displacements of rotations are vectors shorter than pi: longer ones are those of the other way round, and motions made of
    them keep the equations of the transcription without being near any motion of the model.
    """
    model = stages.chart.model
    found = (0.0, "")
    if model is None or not isinstance(stages.scheme, Dmoc) or not np.isfinite(it.z).all():
        return found
    for owner in model.space:
        if owner.type.nq > owner.type.nv:  # turns come first
            turn = np.linalg.norm(it.z[:, owner.v.start : owner.v.start + 3], axis=1).max()
            found = max(found, (float(turn), owner.name))
    return found


def turn_remark(stages: Stages, it: Iterate) -> str:
    """What to say of it; empty where all turns are short."""
    turn, name = largest_turn(stages, it)
    if turn < NEARLY * np.pi:
        return ""
    return f"{name} turns by {turn:.3g} rad within a step, where half a turn is the most that has a meaning: take more steps"


EXPLICIT = 2.8
"""frequency times step beyond which no explicit scheme here is stable"""


def stiff_remark(stages: Stages, it: Iterate) -> str:
    """What to say of modes that are too fast for explicit steps; empty where there are none."""
    model, scheme = stages.problem.model, stages.scheme
    if model is None or scheme.points != 1 or scheme.name not in ("euler", "rk4"):
        return ""
    step = float(np.max(np.diff(stages.nodes))) * stages.span(it.x)
    mode, frequency = fastest_mode(model, model.parameter_values)
    if frequency * step <= EXPLICIT:
        return ""
    return (
        f"the mode {mode!r} at {frequency:.3g} rad/s is too fast for explicit steps of {step:.3g} s ({scheme.name!r}): take "
        "transcription='radau' or 'dmoc', or more steps"
    )


JUMP = 0.02
"""share of what a limited rate allows in an interval, from which on a jump of a control at a node is told"""


def jump_remark(solution: Solution) -> str:
    """What to say of controls that jump at nodes although their rates are limited; empty where they hardly do.

    With several values in each interval and none at nodes, a rate is bounded from the last value before a node to the first
    one after it, and their polynomials may meet the node at two places.
    """
    problem, scheme = solution.problem, solution.stages.scheme
    if scheme.points == 1 or scheme.node_controls or solution.steps < 2:
        return ""
    k = np.arange(solution.steps - 1)
    ends, begins = (solution.control_within(k + i, np.full(len(k), 1.0 - i)) for i in (0, 1))
    sizes, lengths = np.abs(begins - ends), np.diff(solution.time)[1:]
    for j, (name, pair) in enumerate(zip(problem.plant.controls, problem.rates, strict=True)):
        room = JUMP * max(map(abs, pair)) * lengths + 1e-6 * np.abs(ends[:, j]).max()  # what a solver leaves
        at = int(np.argmax(sizes[:, j] - room))
        if sizes[at, j] > room[at]:
            return (
                f"{name} jumps by {sizes[at, j]:.2g} at the node at t = {solution.time[at + 1]:.4g} s, although its rate is "
                "limited: 'hermite-simpson' keeps controls continuous, and with more steps jumps become smaller"
            )
    return ""


def turns_too_far(stages: Stages, it: Iterate) -> bool:
    return largest_turn(stages, it)[0] > np.pi
