"""An interior point method as expressions: bounds of the rows of a stage, and what the routine of a solver decides.

Bounds have slacks s within (lower, upper) and multipliers low, high; y = high - low, and

    weight = low / (s - lower) + high / (upper - s)                                               (1)
    push = mu / (upper - s) - mu / (s - lower) + weight (d - s)                                   (2)

Bounds at infinity come as numbers of any size with a mark 0 (`has_lower`, `has_upper`), the others with a mark 1.
Equations among the rows of d have no marks but a weight `held`, and y = high, with (3) of `alembert.optimal.barrier`:
weight = held, push = y + held (d - s).

The routine decides by functions of a few numbers: barriers, shifts, lengths of steps, the filter. They are
`interior_point`, `barrier` and `newton.Newton.step`, written for numbers that are not known yet; the tests hold the results
of both equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.lowering.plan import Copy, Step
from alembert.optimal import tuning

if TYPE_CHECKING:
    from alembert.optimal.solver_routine import SolverRoutine

BOUNDS = ("slack", "low", "high", "lower", "upper", "has_lower", "has_upper", "held")
"""what there is of each row"""


def steps(g: dict[str, ca.SX]) -> list[ca.SX]:
    """dz, ds, those of the multipliers, and the longest steps of both with the slope of the objective along the step."""
    w = ca.vertcat(g["dx"], g["du"])
    dz = g["Z"] @ w + g["z_0"]
    missed = g["D"] @ w + g["d_0"] + g["d"] - g["slack"]
    ds = column([ca.if_else(g["held"][k], 0, missed[k]) for k in range(missed.numel())])
    primal, dual, barrier = ca.SX(1e300), ca.SX(1e300), ca.SX(0)
    dlow, dhigh = [], []
    for k in range(ds.numel()):
        below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
        low, high, move = g["low"][k], g["high"][k], ds[k]
        mu = mu_of(g, k)
        one = ca.if_else(g["has_lower"][k], (mu - low * move) / below - low, 0)
        two = ca.if_else(g["has_upper"][k], (mu + high * move) / above - high, 0)
        dlow.append(one)
        dhigh.append(ca.if_else(g["held"][k], g["gained"][k] + g["held"][k] * missed[k], two))
        for mark, room, change in (("has_lower", below, move), ("has_upper", above, -move)):
            limit = ca.if_else(ca.logic_and(g[mark][k], change < 0), -room / change, 1e300)
            primal = ca.fmin(primal, limit)
            barrier -= ca.if_else(g[mark][k], mu * change / room, 0)
        for mark, room, change in (("has_lower", low, one), ("has_upper", high, two)):
            dual = ca.fmin(dual, ca.if_else(ca.logic_and(g[mark][k], change < 0), -room / change, 1e300))
    slope = ca.dot(g["g"], ca.vertcat(g["dx"], g["du"], dz)) + barrier
    return [dz, ds, column(dlow), column(dhigh), ca.vertcat(primal, dual, slope)]


def measure(g: dict[str, ca.SX]) -> list[ca.SX]:
    """Of a stage: its largest slope, what rounding leaves of it, products (1) of `barrier`, and sums of multipliers."""
    along, other = g["slope_x"] - g["costate"], g["slope_u"]
    slope, noise = ca.SX(0), ca.SX(0)
    total, together = ca.SX(0), ca.SX(0)
    for entry in (*ca.vertsplit(along), *ca.vertsplit(other)):
        slope = ca.fmax(slope, ca.fabs(entry))
        together += ca.fabs(entry)  # shows what is not finite
    for entry in ca.vertsplit(g["costate"]):
        total += ca.fabs(entry)
    most, least, bounds, weight = complementarity(g)
    for k in range(g["slack"].numel()):
        noise = ca.fmax(noise, weight[k] * ca.fabs(g["d"][k]) + g["held"][k])
    return [ca.vertcat(slope, noise, most, least, total, bounds, together)]


def complementarity(g: dict[str, ca.SX]) -> tuple[ca.SX, ca.SX, ca.SX, list[ca.SX]]:
    """The largest products of distance and multiplier, the largest of their negatives, the sum of multipliers, (1)."""
    most, least, total, weights = ca.SX(-1e300), ca.SX(-1e300), ca.SX(0), []
    for k in range(g["slack"].numel()):
        below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
        weights.append(weight_of(g, k))
        total += ca.if_else(g["held"][k], ca.fabs(g["high"][k]), 0)
        for mark, room, z in (("has_lower", below, g["low"][k]), ("has_upper", above, g["high"][k])):
            there = g[mark][k]
            most = ca.fmax(most, ca.if_else(there, room * z, -1e300))
            least = ca.fmax(least, ca.if_else(there, -room * z, -1e300))
            total += ca.if_else(there, z, 0)
    return most, least, total, weights


def push(g: dict[str, ca.SX]) -> list[ca.SX]:
    """(2)"""
    rows = []
    for k in range(g["slack"].numel()):
        below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
        push = weight_of(g, k) * (g["d"][k] - g["slack"][k]) + ca.if_else(g["held"][k], g["high"][k], 0)
        push += ca.if_else(g["has_upper"][k], mu_of(g, k) / above, 0)
        rows.append(push - ca.if_else(g["has_lower"][k], mu_of(g, k) / below, 0))
    return [column(rows)]


def settle(g: dict[str, ca.SX]) -> list[ca.SX]:
    """Multipliers after a step, kept near mu / distance, as the barrier has them; `slack` is already the new one."""
    low: list[ca.SX] = []
    high: list[ca.SX] = []
    for k in range(g["slack"].numel()):
        below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
        for rows, name, room in ((low, "low", below), (high, "high", above)):
            value = g[name][k] + g["dual"] * g["d" + name][k]
            near = mu_of(g, k) / room
            value = ca.fmin(ca.fmax(value, near / tuning.FARTHEST), tuning.FARTHEST * near)
            rows.append(ca.if_else(g["has_lower" if name == "low" else "has_upper"][k], value, 0))
        high[-1] += ca.if_else(g["held"][k], g["high"][k] + g["alpha"] * g["dhigh"][k], 0)
    return [column(low), column(high)]


def barrier_of_slacks(count: int) -> ca.Function:
    """The barrier of `count` rows: of mu and the bounds."""
    g = {"mu": ca.SX.sym("mu")} | {name: ca.SX.sym(name, count) for name in BOUNDS}
    return ca.Function("barrier", list(g.values()), [barrier(g, g["slack"])])


def barrier(g: dict[str, ca.SX], slack: ca.SX) -> ca.SX:
    """The sum of -mu log(distance) over all bounds."""
    total = ca.SX(0)
    for k in range(slack.numel()):
        below, above = slack[k] - g["lower"][k], g["upper"][k] - slack[k]
        total -= mu_of(g, k) * ca.if_else(g["has_lower"][k], ca.log(below), 0)
        total -= mu_of(g, k) * ca.if_else(g["has_upper"][k], ca.log(above), 0)
    return total


def mu_of(g: dict[str, ca.SX], k: int) -> ca.SX:
    """(2) of `alembert.optimal.barrier`."""
    width = g["upper"][k] - g["lower"][k]
    return ca.if_else(
        g["has_lower"][k] * g["has_upper"][k], ca.fmin(g["mu"], tuning.NARROW * width * width), g["mu"]
    )


def weight_of(g: dict[str, ca.SX], k: int) -> ca.SX:
    """(1)"""
    below, above = g["slack"][k] - g["lower"][k], g["upper"][k] - g["slack"][k]
    return (
        g["held"][k]
        + ca.if_else(g["has_lower"][k], g["low"][k] / below, 0)
        + ca.if_else(g["has_upper"][k], g["high"][k] / above, 0)
    )


def column(rows: list[ca.SX]) -> ca.SX:
    return ca.vertcat(ca.SX(0, 1), *rows)


INFINITE = 1e300
"""bounds beyond it count as none"""
EPS = float(np.finfo(float).eps)


def bounds_function(count: int) -> ca.Function:
    """`limits` (lower and upper of each row), where they hold and the rows' units: lower, upper, marks and `held`."""
    limits, there, units = (
        ca.SX.sym("limits", 2 * count),
        ca.SX.sym("there", count),
        ca.SX.sym("units", count),
    )
    rows = []
    for k in range(count):
        pair = []
        for value in (limits[2 * k], limits[2 * k + 1]):
            has = ca.logic_and(there[k], ca.fabs(value) < INFINITE)
            pair.append((ca.if_else(has, value / units[k], 0), has))
        (lower, below), (upper, above) = pair
        rows.append([lower, upper, below, above, ca.SX(0)])
    found = [ca.vertcat(ca.SX(0, 1), *(row[k] for row in rows)) for k in range(5)]
    return ca.Function("bounds", [limits, there, units], [ca.densify(x) for x in found])


def begin_function(count: int) -> ca.Function:
    """`barrier.Bounds.begin`: slacks and multipliers for the values of rows, multipliers as expected, and mu."""
    names = ("values", "low", "high", "mu", "lower", "upper", "has_lower", "has_upper")
    g = {name: ca.SX.sym(name, 1 if name == "mu" else count) for name in names}
    slacks: list[ca.SX] = []
    lows: list[ca.SX] = []
    highs: list[ca.SX] = []
    for k in range(count):
        value, lower, upper = g["values"][k], g["lower"][k], g["upper"][k]
        has_lower, has_upper = g["has_lower"][k], g["has_upper"][k]
        both = ca.logic_and(has_lower, has_upper)
        width = ca.if_else(both, upper - lower, INFINITE)
        mu = ca.if_else(both, ca.fmin(g["mu"], tuning.NARROW * width * width), g["mu"])
        least = [
            ca.fmin(
                tuning.PUSH * ca.fmin(ca.fmax(1, ca.fabs(bound)), width), mu / ca.fmax(g[name][k], 1e-300)
            )
            for bound, name in ((lower, "low"), (upper, "high"))
        ]
        slack = ca.if_else(has_lower, ca.fmax(value, lower + least[0]), value)
        slack = ca.if_else(has_upper, ca.fmin(slack, upper - least[1]), slack)
        slacks.append(slack)
        for rows, name, there, room in (
            (lows, "low", has_lower, slack - lower),
            (highs, "high", has_upper, upper - slack),
        ):
            near = mu / room
            kept = ca.fmin(ca.fmax(g[name][k], near / tuning.NEAR), tuning.NEAR * near)
            rows.append(ca.if_else(there, kept, 0))
    found = [ca.densify(ca.vertcat(ca.SX(0, 1), *rows)) for rows in (slacks, lows, highs)]
    return ca.Function("begin", list(g.values()), found)


class SearchGraphs:
    """The decisions of `routine`, as steps on its buffers."""

    def __init__(self, routine: SolverRoutine) -> None:
        self._routine = routine
        stages = routine.stages
        N, (n, m, _, nd) = stages.count, stages.sizes
        self._rows, self._ends = N * nd, len(stages.end_names)
        self._duals = (N + 1) * n + len(stages.start_names) + self._ends
        self._filter = 2 * routine.iterations
        self._tolerance = routine.tolerance
        self._n, self._stages, self._units = n, stages, m

    def _does(
        self,
        name: str,
        reads: Mapping[str, int],
        writes: Mapping[str, int],
        graph: Callable[..., Sequence[ca.SX | float]],
    ) -> list[Step]:
        """A function of buffers into buffers, which may be the same."""
        targets = {f"{key}_next" if key in reads else key: size for key, size in writes.items()}
        call = self._routine.own(name, reads, targets, graph)
        copied: list[Step] = [
            Copy(self._routine.buffer(f"{key}_next", size), self._routine.buffer(key, size), size)
            for key, size in writes.items()
            if key in reads and size
        ]
        return [call, *copied]

    def constant(self, name: str, buffer: str, values: Sequence[float]) -> list[Step]:
        return self._does(name, {}, {buffer: len(values)}, lambda: [ca.SX(list(values))])

    def start(self) -> list[Step]:
        """Before the first linearisation, with the least barrier."""
        writes = {"mu": 1, "rho": 1, "remembered": 1, "floor": 1, "iterations": 1}
        return self._does("start", {}, writes, lambda: [self._tolerance / 11, 1e2, 0, 0, 0])

    def _errors(
        self, errors: ca.SX, end_found: ca.SX, worst: ca.SX
    ) -> tuple[ca.SX, ca.SX, Callable[..., ca.SX]]:
        """Slope, scaled slope, and the error of all as a function of mu and the size of the cost: `newton.Errors`."""
        slope = ca.fmax(errors[0], end_found[0])
        noise, most, least = (ca.fmax(errors[k], end_found[k]) for k in (1, 2, 3))
        multipliers, bounds = errors[4] + end_found[4], errors[5] + end_found[5]
        slope = slope + 0 * errors[6]  # shows what is not finite
        size = ca.fmax(100, (multipliers + bounds) / (self._duals + 2 * self._rows)) / 100
        complement = ca.fmax(100, bounds / max(1, 2 * self._rows)) / 100
        dual = (slope - ca.fmin(EPS * noise, 1e3 * self._tolerance)) / size

        def error(mu: ca.SX | float, cost: ca.SX | float = 1.0) -> ca.SX:
            gap = ca.fmax(ca.fmax(most - mu, mu + least), 0)
            gap = ca.if_else(most > -1e299, gap, 0)
            # fmax leaves out what is not a number; the sum does not
            return ca.fmax(ca.fmax(dual, worst), gap / (cost * complement)) + 0 * (dual + worst)

        return slope, dual, error

    def first_barrier(self) -> list[Step]:
        """`newton.Newton.begin`"""

        def graph(errors: ca.SX, end_found: ca.SX, trial: ca.SX) -> list[ca.SX]:
            _, dual, _ = self._errors(errors, end_found, trial[3])
            left = ca.fmax(dual, trial[3]) + 0 * trial[3]
            mu = ca.fmin(tuning.BARRIER, ca.fmax(self._tolerance / 11, tuning.WARM * left * left))
            return [ca.if_else(dual <= tuning.FARTHEST_WARM, mu, tuning.BARRIER)]

        return self._does("first_barrier", {"errors": 7, "end_found": 6, "trial": 4}, {"mu": 1}, graph)

    def filter(self) -> list[Step]:
        """Empty, for the iterate."""

        def graph(here: ca.SX) -> list[ca.SX]:
            size = ca.fmax(1, here[0])
            return [INFINITE * ca.SX.ones(self._filter), ca.vertcat(3 * size, 1e-4 * size)]

        return self._does("new_filter", {"here": 4}, {"filter": self._filter, "allowed": 2}, graph)

    def judge(self) -> list[Step]:
        """Errors, whether that is a solution, and else the next barrier with an empty filter."""

        def graph(
            errors: ca.SX, end_found: ca.SX, here: ca.SX, mu: ca.SX, scale: ca.SX, filter: ca.SX
        ) -> list[ca.SX]:
            slope, _, error = self._errors(errors, end_found, here[3])
            size = ca.fmin(1, ca.fmax(ca.fabs(scale * here[2]), tuning.LEAST_COST))
            off = error(0.0, size)
            done, least, new = off <= self._tolerance, self._tolerance / 11 * size, mu
            for _ in range(6):
                small = ca.logic_and(ca.fmax(error(new), here[0]) <= 10 * new, new > least)
                new = ca.if_else(small, ca.fmax(least, ca.fmin(0.2 * new, new**1.5)), new)
            new = ca.if_else(done, mu, new)
            kept = [ca.if_else(new == mu, filter[k], INFINITE) for k in range(self._filter)]
            return [slope, off, done, new, ca.vertcat(*kept)]

        reads = {"errors": 7, "end_found": 6, "here": 4, "mu": 1, "scale": 1, "filter": self._filter}
        writes = {"steepest": 1, "error": 1, "done": 1, "mu": 1, "filter": self._filter}
        return self._does("judge", reads, writes, graph)

    def here(self) -> list[Step]:
        """The objective with the barrier as it is now."""

        def graph(here: ca.SX, barrier: ca.SX, scale: ca.SX) -> list[ca.SX]:
            return [ca.vertcat(here[0], scale * here[2] + barrier, here[2], here[3])]

        return self._does("here", {"here": 4, "barrier": 1, "scale": 1}, {"here": 4}, graph)

    def first_shift(self) -> list[Step]:
        return self._does(
            "first_shift", {"floor": 1}, {"shift": 1, "is_minimum": 1}, lambda floor: [floor, 0]
        )

    def pivot(self) -> list[Step]:
        return self._does(
            "pivots",
            {"pivot": 1, "definite": 1},
            {"definite": 1},
            lambda pivot, definite: [definite * (pivot > 0)],
        )

    def next_shift(self) -> list[Step]:
        """Whether the sweep found a minimum, and else what is tried next: `newton.Newton.step`."""

        def graph(definite: ca.SX, closed: ca.SX, rho: ca.SX, shift: ca.SX, remembered: ca.SX) -> list[ca.SX]:
            good, new = ca.logic_and(definite, closed), remembered == 0
            first = ca.if_else(new, tuning.FIRST_SHIFT, ca.fmax(tuning.LEAST_SHIFT, remembered / 3))
            more = ca.if_else(shift == 0, first, shift * ca.if_else(new, 100, 8))
            stiff = ca.logic_and(bool(self._ends), rho < tuning.LARGEST_RHO)
            changes = ca.logic_not(good)
            return [
                good,
                ca.if_else(ca.logic_and(changes, stiff), 100 * rho, rho),
                ca.if_else(ca.logic_and(changes, ca.logic_not(stiff)), more, shift),
            ]

        reads = {"definite": 1, "closed": 1, "rho": 1, "shift": 1, "remembered": 1}
        return self._does("next_shift", reads, {"is_minimum": 1, "rho": 1, "shift": 1}, graph)

    def keep_shift(self) -> list[Step]:
        return self._does(
            "keep_shift",
            {"shift": 1, "remembered": 1},
            {"remembered": 1},
            lambda shift, remembered: [ca.if_else(shift > 0, shift, remembered)],
        )

    def lengths(self) -> list[Step]:
        """The longest step, at which the search begins."""
        clocks, n, point = self._stages.clocks, self._n, self._stages.chart.point

        def graph(
            longest: ca.SX, mu: ca.SX, done: ca.SX, is_minimum: ca.SX, x: ca.SX, step_x: ca.SX, units: ca.SX
        ) -> list[ca.SX]:
            fraction, primal = ca.fmax(0.99, 1 - mu), longest[0]
            for _, j in clocks:
                change = ca.fabs(units[j] * step_x[j])
                share = tuning.DURATION * x[self._stages.point_place(0, j)] / change
                primal = ca.if_else(change > 0, ca.fmin(primal, share), primal)
            moves = ca.logic_and(ca.logic_not(done), is_minimum)
            alpha = ca.if_else(moves, ca.fmin(1, fraction * primal), 0)
            dual = ca.if_else(moves, ca.fmin(1, fraction * longest[1]), 0)
            return [alpha, dual, alpha, longest[2], ca.SX(0)]

        reads = {"longest": 3, "mu": 1, "done": 1, "is_minimum": 1, "x": point, "step_x": n, "units": n}
        writes = {"alpha": 1, "dual": 1, "full": 1, "descent": 1, "is_taken": 1}
        return self._does("lengths", reads, writes, graph)

    def _switches(self, alpha: ca.SX, theta: ca.SX, m: ca.SX, smallest: ca.SX) -> ca.SX:
        promised = alpha * (-ca.fmin(m, 0)) ** tuning.S_PHI > ca.fmax(theta, 0) ** tuning.S_THETA
        return ca.logic_and(ca.logic_and(m < 0, theta <= smallest), promised)

    @staticmethod
    def _descends(alpha: ca.SX, phi: ca.SX, new: ca.SX, m: ca.SX) -> ca.SX:
        return new <= phi + tuning.ETA * alpha * m + tuning.ROUNDING * ca.fmax(1, ca.fabs(phi))

    def look(self) -> list[Step]:
        """Whether the trial is taken, and else half of its length: `barrier.Reference`."""

        def graph(
            here: ca.SX,
            trial: ca.SX,
            alpha: ca.SX,
            descent: ca.SX,
            done: ca.SX,
            filter: ca.SX,
            allowed: ca.SX,
        ) -> list[ca.SX]:
            theta, phi, new_theta, new_phi = here[0], here[1], trial[0], trial[1]
            largest, smallest = allowed[0], allowed[1]
            finite = (new_theta + new_phi) - (new_theta + new_phi) == 0
            bounded = new_theta <= ca.fmin(
                largest, ca.fmax(tuning.GROWTH * theta, tuning.FREE_GROWTH * smallest)
            )
            rise, size = ca.fmax(new_phi - phi, 1e-300), ca.fmax(1, ca.log10(ca.fmax(ca.fabs(phi), 1e-300)))
            rises = ca.log10(rise) > tuning.LARGEST_RISE + size
            tiny = tuning.ROUNDING * ca.fmax(1, ca.fabs(phi))
            better = ca.logic_or(
                new_theta <= (1 - tuning.G_THETA) * theta, new_phi <= phi - tuning.G_PHI * theta + tiny
            )
            switches = self._switches(alpha, theta, descent, smallest)
            good = ca.if_else(switches, self._descends(alpha, phi, new_phi, descent), better)
            for k in range(0, self._filter, 2):
                t, f = filter[k], filter[k + 1]
                worse = ca.logic_and(new_theta > t, new_phi > f + tuning.ROUNDING * ca.fmax(1, ca.fabs(f)))
                good = ca.logic_and(good, ca.logic_not(worse))
            good = ca.logic_and(ca.logic_and(good, finite), ca.logic_and(bounded, ca.logic_not(rises)))
            m = ca.fmax(-descent, 1e-300)
            some = ca.if_else(descent < 0, ca.fmin(tuning.G_THETA, tuning.G_PHI * theta / m), tuning.G_THETA)
            power = ca.fmax(theta, 0) ** tuning.S_THETA / m**tuning.S_PHI
            small = ca.logic_and(descent < 0, theta <= smallest)
            shortest = ca.fmax(tuning.SHORTEST * ca.if_else(small, ca.fmin(some, power), some), 1e-14)
            ends = ca.logic_or(ca.logic_or(good, done), alpha / 2 < shortest)
            return [good, ends, ca.if_else(ends, alpha, alpha / 2)]

        reads = {"here": 4, "trial": 4, "alpha": 1, "descent": 1, "done": 1}
        reads |= {"filter": self._filter, "allowed": 2}
        return self._does("look", reads, {"is_good": 1, "is_taken": 1, "alpha": 1}, graph)

    def accept(self) -> list[Step]:
        """Whether the iterate moves; the next least shift; and what the filter remembers."""

        def graph(**g: ca.SX) -> list[ca.SX]:
            done, here, trial, alpha = g["done"], g["here"], g["trial"], g["alpha"]
            go = ca.logic_and(g["is_good"], ca.logic_and(ca.logic_not(done), g["is_minimum"]))
            floor, full, count = g["floor"], g["full"], g["iterations"]
            raised = ca.fmax(tuning.LEAST_FLOOR, tuning.RAISED * ca.fmax(floor, g["shift"]))
            stopped = ca.logic_or(ca.logic_not(go), alpha < tuning.SHORTER * full)
            most = ca.if_else(stopped, tuning.LARGEST_FLOOR, ca.fmax(tuning.SHORT_FLOOR, floor))
            raised = ca.fmin(raised, most)
            lowered = ca.if_else(floor > tuning.LEAST_FLOOR, floor / tuning.LOWERED, 0)
            near = ca.logic_and(alpha < tuning.SHORT * full, here[3] < tuning.NEARLY_KEPT)
            short = ca.logic_or(stopped, near)
            after = ca.if_else(short, raised, ca.if_else(alpha == full, lowered, floor))
            after = ca.if_else(done, floor, after)
            theta, phi = here[0], here[1]
            steep = self._switches(alpha, theta, g["descent"], g["allowed"][1])
            steep = ca.logic_and(steep, self._descends(alpha, phi, trial[1], g["descent"]))
            remembers = ca.logic_and(go, ca.logic_not(steep))
            pair = [(1 - tuning.G_THETA) * theta, phi - tuning.G_PHI * theta]
            kept = []
            for k in range(0, self._filter, 2):
                turn = ca.logic_and(remembers, count == k // 2)
                kept += [ca.if_else(turn, pair[j], g["filter"][k + j]) for j in range(2)]
            return [go, after, count + ca.logic_not(done), ca.vertcat(*kept)]

        names = ("done", "is_good", "is_minimum", "alpha", "full", "floor", "shift", "iterations", "descent")
        reads = dict.fromkeys(names, 1) | {"here": 4, "trial": 4, "filter": self._filter, "allowed": 2}
        writes = {"go": 1, "floor": 1, "iterations": 1, "filter": self._filter}
        return self._does("accept", reads, writes, graph)

    def found(self) -> list[Step]:
        """The numbers of the result."""

        def graph(
            here: ca.SX,
            steepest: ca.SX,
            error: ca.SX,
            mu: ca.SX,
            iterations: ca.SX,
            done: ca.SX,
            alpha: ca.SX,
        ) -> list[ca.SX]:
            return [ca.vertcat(here[2], here[3], steepest, error, mu, iterations, done, alpha)]

        names = ("steepest", "error", "mu", "iterations", "done", "alpha")
        return self._does("result", {"here": 4, **dict.fromkeys(names, 1)}, {"found": 8}, graph)
