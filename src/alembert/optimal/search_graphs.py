"""An interior point method as expressions: bounds of the rows of a stage, and what the routine of a solver decides.

Bounds have slacks s within (lower, upper) and multipliers low, high; y = high - low, and

    weight = low / (s - lower) + high / (upper - s)                                               (1)
    push = mu / (upper - s) - mu / (s - lower) + weight (d - s)                                   (2)

Bounds at infinity come as numbers of any size with a mark 0 (`has_lower`, `has_upper`), the others with a mark 1.
Equations among the rows of d have no marks but a weight `held`, and y = high, with (3) of `alembert.optimal.barrier`:
weight = held, push = y + held (d - s).

A search decides by functions of a few numbers (`DECISIONS`): barriers, shifts, lengths of steps, the filter. Python's loop
(`alembert.optimal.interior_point`) and the routine without Python (`alembert.optimal.solver_routine`) run the same ones.

The filter is that of Waechter and Biegler (Math. Program. 106, 2006; the constants are those of their program). A step is
acceptable when it makes the constraints or the objective better than at the iterate, and than at every earlier one that
the filter remembers. With theta the sum of all residuals, phi the objective with the barrier and m = phi'(w) d its slope
along the step, a trial at the length alpha is taken when

    theta <= (1 - g_theta) theta_0   or   phi <= phi_0 - g_phi theta_0                            (3)

or, where the slope promises more than feasibility could gain, alpha (-m)^2.3 > theta_0^1.1,

    phi <= phi_0 + eta alpha m                                                                    (4)

Theta beyond the first of `allowed` is never taken, below the second (4) may be asked for. The filter is pairs (theta, phi),
the latest first, infinite ones where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import At, Buffer, Call, Copy, Each, Offset, Plan, Step, When
from alembert.optimal import tuning

Array = np.ndarray
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


def column(rows: Iterable[Any]) -> ca.SX:
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


class Decision(NamedTuple):
    """A function of numbers with these names and sizes into others, which may be the same; if `by_pairs`, it is for each
    `pair` of the filter in turn."""

    reads: Mapping[str, int]
    writes: Mapping[str, int]
    graph: Callable[..., Sequence[ca.SX | float]]
    by_pairs: bool = False


SETTINGS = 5
"""what a search is told: the tolerance, the largest barrier, how many multipliers of equations and how many rows with bounds
along the path there are, and whether there are conditions at the end"""
_HERE = {"here": 4, "trial": 4}
"""at the iterate and at a trial: the sum of the residuals, the objective with the barrier, the cost, the largest residual"""


def _errors(settings: ca.SX, errors: ca.SX, worst: ca.SX) -> tuple[ca.SX, ca.SX, Callable[..., ca.SX]]:
    """The largest slope of the Lagrangian; the same without rounding, scaled; and the error of all conditions for a minimum
    as a function of mu and the size of the cost, in terms of which products of multipliers and distances are seen."""
    slope, noise, most, least, multipliers, bounds, together = ca.vertsplit(errors)
    slope = ca.if_else(_is_finite(together), slope, together)  # fmax leaves out what is not a number
    tolerance, _, duals, rows, _ = ca.vertsplit(settings)
    size = ca.fmax(100, (multipliers + bounds) / (duals + 2 * rows)) / 100
    complement = ca.fmax(100, bounds / ca.fmax(1, 2 * rows)) / 100
    dual = (slope - ca.fmin(EPS * noise, 1e3 * tolerance)) / size

    def error(mu: ca.SX | float, cost: ca.SX | float = 1.0) -> ca.SX:
        gap = ca.if_else(most > -1e299, ca.fmax(ca.fmax(most - mu, mu + least), 0), 0)
        found = ca.fmax(ca.fmax(dual, worst), gap / (cost * complement))
        return ca.if_else(_is_finite(dual + worst), found, dual + worst)

    return slope, dual, error


def _is_finite(x: ca.SX) -> ca.SX:
    """By a comparison: of 0 x and x - x CasADi knows without looking that they are zero."""
    return ca.fabs(x) < INFINITE


def _first_barrier(settings: ca.SX, errors: ca.SX, trial: ca.SX) -> list[ca.SX]:
    """A barrier that suits the errors that multipliers of a solve before leave, and whether they are worth to be kept."""
    tolerance, most = settings[0], settings[1]
    _, dual, _ = _errors(settings, errors, trial[3])
    left = ca.fmax(dual, trial[3])
    is_warm = ca.logic_and(dual <= tuning.FARTHEST_WARM, _is_finite(dual + trial[3]))
    mu = ca.fmin(most, ca.fmax(tolerance / 11, tuning.WARM * left * left))
    return [ca.if_else(is_warm, mu, most), is_warm]


def _new_filter(here: ca.SX) -> list[ca.SX | float]:
    """For the iterate, and empty."""
    size = ca.fmax(1, here[0])
    return [ca.vertcat(3 * size, 1e-4 * size), 1.0]


def _emptied(pair: ca.SX, is_new: ca.SX) -> list[ca.SX]:
    return [ca.if_else(is_new, INFINITE, pair)]


def _judge(settings: ca.SX, errors: ca.SX, here: ca.SX, mu: ca.SX, scale: ca.SX) -> list[ca.SX]:
    """Errors, whether that is a solution, and else a smaller barrier with a new filter where the problem with the present
    one is solved well enough; and whether what rounding leaves of the slope is much of it."""
    slope, _, error = _errors(settings, errors, here[3])
    tolerance, size = settings[0], ca.fmin(1, ca.fmax(ca.fabs(scale * here[2]), tuning.LEAST_COST))
    off = error(0.0, size)
    done, least, new = off <= tolerance, tolerance / 11 * size, mu
    for _ in range(6):
        small = ca.logic_and(ca.fmax(error(new), here[0]) <= 10 * new, new > least)
        new = ca.if_else(small, ca.fmax(least, ca.fmin(0.2 * new, new**1.5)), new)
    new = ca.if_else(done, mu, new)
    steep = EPS * errors[1] > tuning.ROUNDED * ca.fmax(errors[0], here[3])
    return [slope, off, done, new, new != mu, steep]


def _with_barrier(here: ca.SX, barrier: ca.SX, scale: ca.SX) -> list[ca.SX]:
    """The objective with the barrier as it is now."""
    return [ca.vertcat(here[0], scale * here[2] + barrier, here[2], here[3])]


def _next_shift(
    settings: ca.SX, definite: ca.SX, closed: ca.SX, rho: ca.SX, shift: ca.SX, remembered: ca.SX
) -> list[ca.SX]:
    """Whether the sweep found a minimum, and else what is tried next: heavier ends, then shifts of the Hessian."""
    good, new = ca.logic_and(definite, closed), remembered == 0
    first = ca.if_else(new, tuning.FIRST_SHIFT, ca.fmax(tuning.LEAST_SHIFT, remembered / 3))
    more = ca.if_else(shift == 0, first, shift * ca.if_else(new, 100, 8))
    stiff = ca.logic_and(settings[4], rho < tuning.LARGEST_RHO)
    changes = ca.logic_not(good)
    return [
        good,
        ca.if_else(ca.logic_and(changes, stiff), 100 * rho, rho),
        ca.if_else(ca.logic_and(changes, ca.logic_not(stiff)), more, shift),
    ]


def _in_time(longest: ca.SX, span: ca.SX, change: ca.SX) -> list[ca.SX]:
    """The longest steps, where one would change a duration `span` by `change`."""
    share = tuning.DURATION * span / ca.fabs(change)
    return [ca.vertcat(ca.if_else(change != 0, ca.fmin(longest[0], share), longest[0]), longest[1:])]


def _lengths(longest: ca.SX, mu: ca.SX, done: ca.SX, is_minimum: ca.SX) -> list[ca.SX]:
    """The longest step by the fraction to the boundary, at which the search begins."""
    fraction = ca.fmax(0.99, 1 - mu)
    moves = ca.logic_and(ca.logic_not(done), is_minimum)
    alpha, dual = (ca.if_else(moves, ca.fmin(1, fraction * longest[k]), 0) for k in range(2))
    return [alpha, dual, alpha, longest[2], ca.SX(0)]


def _within(trial: ca.SX, allowed: ca.SX) -> list[ca.SX]:
    return [trial[0] <= allowed[0]]


def _allows(pair: ca.SX, trial: ca.SX, is_allowed: ca.SX) -> list[ca.SX]:
    """Whether a trial improves upon all that the filter remembers."""
    t, f = ca.vertsplit(pair)
    worse = ca.logic_and(trial[0] > t, trial[1] > f + tuning.ROUNDING * ca.fmax(1, ca.fabs(f)))
    return [ca.logic_and(is_allowed, ca.logic_not(worse))]


def _look(
    here: ca.SX,
    trial: ca.SX,
    alpha: ca.SX,
    descent: ca.SX,
    done: ca.SX,
    is_allowed: ca.SX,
    allowed: ca.SX,
) -> list[ca.SX]:
    """Whether the trial is taken, whether the search ends with it, else half of its length; whether (4) was asked for
    and met."""
    theta, phi, new_theta, new_phi = here[0], here[1], trial[0], trial[1]
    bounded = new_theta <= ca.fmax(tuning.GROWTH * theta, tuning.FREE_GROWTH * allowed[1])
    rise, size = ca.fmax(new_phi - phi, 1e-300), ca.fmax(1, ca.log10(ca.fmax(ca.fabs(phi), 1e-300)))
    rises = ca.log10(rise) > tuning.LARGEST_RISE + size
    tiny = tuning.ROUNDING * ca.fmax(1, ca.fabs(phi))
    better = ca.logic_or(
        new_theta <= (1 - tuning.G_THETA) * theta, new_phi <= phi - tuning.G_PHI * theta + tiny
    )
    m, powered = ca.fmax(-descent, 1e-300), ca.fmax(theta, 0) ** tuning.S_THETA
    promised = m**tuning.S_PHI
    near = ca.logic_and(descent < 0, theta <= allowed[1])
    switches = ca.logic_and(near, alpha * promised > powered)
    descends = new_phi <= phi + tuning.ETA * alpha * descent + tiny  # (4)
    good = ca.if_else(switches, descends, better)
    good = ca.logic_and(good, is_allowed)
    good = ca.logic_and(
        ca.logic_and(good, _is_finite(new_theta + new_phi)), ca.logic_and(bounded, ca.logic_not(rises))
    )
    # steps shorter than this cannot pass
    some = ca.if_else(descent < 0, ca.fmin(tuning.G_THETA, tuning.G_PHI * theta / m), tuning.G_THETA)
    least = ca.if_else(near, ca.fmin(some, powered / promised), some)
    shortest = ca.fmax(tuning.SHORTEST * least, 1e-14)
    ends = ca.logic_or(ca.logic_or(good, done), alpha / 2 < shortest)
    return [good, ends, ca.if_else(ends, alpha, alpha / 2), switches, ca.logic_and(switches, descends)]


def _accept(done: ca.SX, is_good: ca.SX, is_minimum: ca.SX, is_steep: ca.SX) -> list[ca.SX]:
    """Whether the iterate moves, and whether the filter remembers it."""
    go = ca.logic_and(is_good, ca.logic_and(ca.logic_not(done), is_minimum))
    return [go, ca.logic_and(go, ca.logic_not(is_steep))]


def _entering(here: ca.SX, remembers: ca.SX) -> list[ca.SX]:
    """The iterate as a pair, twice; the second is infinite where it is not remembered."""
    pair = ca.vertcat((1 - tuning.G_THETA) * here[0], here[1] - tuning.G_PHI * here[0])
    return [pair, ca.if_else(remembers, pair, INFINITE)]


def _moved(pair: ca.SX, entering: ca.SX, moving: ca.SX, remembers: ca.SX) -> list[ca.SX]:
    """The iterate comes first in the filter, in the place of the next pair that is no better in either number; where there
    is none, the oldest gives way."""
    worse = ca.logic_and(remembers, ca.logic_and(pair[0] >= entering[0], pair[1] >= entering[1]))
    old, moves = ca.if_else(worse, INFINITE, pair), moving[0] < INFINITE
    return [ca.if_else(moves, moving, old), ca.if_else(moves, old, INFINITE)]


def _adapt(
    done: ca.SX, go: ca.SX, here: ca.SX, alpha: ca.SX, full: ca.SX, floor: ca.SX, shift: ca.SX
) -> list[ca.SX]:
    """The least shift of the next step: one that had to be shortened much went beyond where the quadratic model holds.

    Far from all constraints it is these that are not linear, which no shift mends, unless the step was tiny.
    """
    raised = ca.fmax(tuning.LEAST_FLOOR, tuning.RAISED * ca.fmax(floor, shift))
    stopped = ca.logic_or(ca.logic_not(go), alpha < tuning.SHORTER * full)
    most = ca.if_else(stopped, tuning.LARGEST_FLOOR, ca.fmax(tuning.SHORT_FLOOR, floor))
    raised = ca.fmin(raised, most)
    lowered = ca.if_else(floor > tuning.LEAST_FLOOR, floor / tuning.LOWERED, 0)
    near = ca.logic_and(alpha < tuning.SHORT * full, here[3] < tuning.NEARLY_KEPT)
    after = ca.if_else(ca.logic_or(stopped, near), raised, ca.if_else(alpha == full, lowered, floor))
    return [ca.if_else(done, floor, after)]


def _ones(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 1)


_ERRORS = {"settings": SETTINGS, "errors": 7}
_EMPTIED = Decision({"pair": 2, "is_new": 1}, {"pair": 2}, _emptied, by_pairs=True)
_ALLOWS = (
    Decision({"trial": 4, "allowed": 2}, _ones("is_allowed"), _within),
    Decision({"pair": 2, "trial": 4, "is_allowed": 1}, _ones("is_allowed"), _allows, by_pairs=True),
)
_REMEMBERS = (
    Decision({"here": 4, "remembers": 1}, {"entering": 2, "moving": 2}, _entering),
    Decision(
        {"pair": 2, "entering": 2, "moving": 2, "remembers": 1},
        {"pair": 2, "moving": 2},
        _moved,
        by_pairs=True,
    ),
)
DECISIONS: dict[str, tuple[Decision, ...]] = {
    "first_barrier": (Decision(_ERRORS | {"trial": 4}, _ones("mu", "is_warm"), _first_barrier),),
    "new_filter": (Decision({"here": 4}, {"allowed": 2, "is_new": 1}, _new_filter), _EMPTIED),
    "judge": (
        Decision(
            _ERRORS | {"here": 4, "mu": 1, "scale": 1},
            _ones("steepest", "error", "done", "mu", "is_new", "steep"),
            _judge,
        ),
        _EMPTIED,
    ),
    "with_barrier": (Decision({"here": 4, "barrier": 1, "scale": 1}, {"here": 4}, _with_barrier),),
    "next_shift": (
        Decision(
            {"settings": SETTINGS} | _ones("definite", "closed", "rho", "shift", "remembered"),
            _ones("is_minimum", "rho", "shift"),
            _next_shift,
        ),
    ),
    "in_time": (Decision({"longest": 3, "span": 1, "change": 1}, {"longest": 3}, _in_time),),
    "lengths": (
        Decision(
            {"longest": 3} | _ones("mu", "done", "is_minimum"),
            _ones("alpha", "dual", "full", "descent", "is_taken"),
            _lengths,
        ),
    ),
    "allows": _ALLOWS,
    "look": (
        *_ALLOWS,
        Decision(
            _HERE | _ones("alpha", "descent", "done", "is_allowed") | {"allowed": 2},
            _ones("is_good", "is_taken", "alpha", "switches", "is_steep"),
            _look,
        ),
    ),
    "remember": _REMEMBERS,
    "accept": (
        Decision(_ones("done", "is_good", "is_minimum", "is_steep"), _ones("go", "remembers"), _accept),
        *_REMEMBERS,
        Decision(
            _ones("done", "go", "alpha", "full", "floor", "shift") | {"here": 4}, _ones("floor"), _adapt
        ),
    ),
}
"""what a search asks, one after the other"""


@cache
def decision_functions() -> dict[str, ca.Function]:
    """Of all parts of decisions, by the names of their graphs."""
    found = {}
    for reads, _, graph, _ in chain.from_iterable(DECISIONS.values()):
        symbols = {key: ca.SX.sym(key, size) for key, size in reads.items()}
        left = [ca.densify(ca.SX(x)) for x in graph(**symbols)]
        name = graph.__name__.removeprefix("_")
        found[name] = ca.Function(name, [*symbols.values()], left)
    return found


def decided(name: str, place: Callable[[str, int], Buffer]) -> list[Step]:
    """A decision as steps on the buffers where `place` has numbers of such names and sizes."""

    def at(key: str, size: int) -> Buffer:
        if key != "pair":
            return place(key, size)
        filter = place("filter", 2 * tuning.FILTER)
        return At(filter, 2) if isinstance(filter, str) else At(filter.buffer, 2, filter.start)

    found: list[Step] = []
    for reads, writes, graph, by_pairs in DECISIONS[name]:
        left = [
            at(key, size) if key not in reads else place(f"{key}_next", size) for key, size in writes.items()
        ]
        changed = [(key, size) for key, size in writes.items() if key in reads]
        steps: list[Step] = [
            Call(graph.__name__.removeprefix("_"), [at(key, size) for key, size in reads.items()], left)
        ]
        steps += [Copy(place(f"{key}_next", size), at(key, size), size) for key, size in changed]
        found += [Each(tuning.FILTER, steps)] if by_pairs else steps
    return found


@cache
def _numbers() -> dict[str, slice]:
    """Where in one array all numbers are that decisions are about."""
    sizes = {"filter": 2 * tuning.FILTER}
    for part in chain.from_iterable(DECISIONS.values()):
        sizes |= {**part.reads, **part.writes}
        sizes |= {f"{key}_next": size for key, size in part.writes.items() if key in part.reads}
    ends = accumulate(sizes.values())
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


@cache
def _kernel() -> Kernel:
    """All decisions in one: `which` has a one for that which is made, on numbers that change where they are."""
    places = _numbers()
    size, count = max(where.stop for where in places.values()), len(DECISIONS)

    def plan() -> Plan:
        place = lambda name, _: Offset("numbers", places[name].start)  # noqa: E731
        steps = [When(Offset("which", k), decided(name, place)) for k, name in enumerate(DECISIONS)]
        sources = {name: FunctionSource(function) for name, function in decision_functions().items()}
        return Plan({"which": count}, {"numbers": size}, {}, steps, sources, quick=True)

    arguments = [Argument("which", (count,))], [Argument("numbers", (size,))]
    kernel = Kernel(
        "optimal control (decisions)", *arguments, key="optimal control decisions", build=plan, bound=True
    )
    kernel.foresee(np.inf)  # machine code of it is made sooner than lists of its many small functions
    return kernel


def bound_decisions() -> tuple[Array, dict[str, Array], dict[str, Callable[[], None]]]:
    """All numbers, these by name, arrays that stay where they are, and the decisions on them."""
    places = _numbers()
    whole = np.zeros(max(where.stop for where in places.values()))
    rows = zip(DECISIONS, np.eye(len(DECISIONS)), strict=True)
    bound = {name: _kernel().bind(1, [which], [whole]) for name, which in rows}
    return whole, {name: whole[where] for name, where in places.items()}, bound
