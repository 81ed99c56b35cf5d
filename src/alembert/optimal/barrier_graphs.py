"""Bounds of an interior point method as expressions: weights, pushes, steps and multipliers of the rows of a stage.

They have slacks s within (lower, upper) and multipliers low, high; y = high - low, and

    weight = low / (s - lower) + high / (upper - s)                                               (1)
    push = mu / (upper - s) - mu / (s - lower) + weight (d - s)                                   (2)

Bounds at infinity come as numbers of any size with a mark 0 (`has_lower`, `has_upper`), the others with a mark 1.
Equations among the rows of d have no marks but a weight `held`, and y = high, with (3) of `alembert.optimal.barrier`:
weight = held, push = y + held (d - s).
"""

from __future__ import annotations

import casadi as ca

from alembert.optimal import tuning

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
