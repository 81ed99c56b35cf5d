"""The ascent of an advanced launch system in two stages, by phases and by finite elements in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal import Moment, Phases, PhasesSolution, Problem, System, terminal
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989

Array = np.ndarray
Parts = tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
MU, RADIUS, AREA = 3.9906e14, 6.378e6, 33.468
STAGES = {"first": (263.4, 8155800.0, 8.47), "second": (430.4, 1186200.0, 5.29)}
"""specific impulse [s], thrust in vacuum [N], area of the exits [m^2]"""
DRAG: Parts = (
    ((0.20, 0.75, 0.98), (1.00, 0.45, 0.80)),
    ((0.98, 1.00, 1.02), (0.80, 0.80, 0.80)),
    ((1.02, 3.50, 6.00), (0.80, 0.20, 0.02)),
)
NORMAL: Parts = (
    ((0.00, 0.50, 0.98), (6.20, 6.35, 7.70)),
    ((0.98, 1.00, 1.02), (7.70, 7.70, 7.70)),
    ((1.02, 2.50, 4.40), (7.70, 5.20, 4.70)),
    ((4.40, 5.00, 6.00), (4.70, 5.50, 6.00)),
)
"""parabolas through three points each, over the Mach number: tables 1 and 2"""
STATES = ("m", "h", "E", "gamma")
BEGIN = (5.2e5, 1800.0, -6.25e7, np.radians(75.0))
BURNT, DROP, ENERGY = 192000.0, 51000.0, -1.25e7
SIZES = np.array([1e5, 1e4, 1e7, 1.0])
"""of the states: the units of the weak form"""


def _parabolas(parts: Parts, mach: Any) -> Any:
    x = ca.fmin(ca.fmax(mach, parts[0][0][0]), parts[-1][0][-1])
    found = None
    for knots, values in reversed(parts):
        a, b, c = (float(w) for w in np.polyfit(knots, values, 2))
        own = (a * x + b) * x + c
        found = own if found is None else ca.if_else(x < knots[-1], own, found)
    return found


def _rates(stage: str, m: Any, h: Any, E: Any, gamma: Any, alpha: Any) -> list[Any]:
    """(20) and (21)"""
    impulse, vacuum, exits = STAGES[stage]
    low, thin = h <= 11000, ca.fmax(1 - 2.255e-5 * h, 0.1)
    pressure = ca.if_else(low, 101320 * thin**5.256, 22637 * ca.exp(-(h - 11000) / 6350))
    thrust, r = vacuum - exits * pressure, RADIUS + h
    V = ca.sqrt(2 * (E + MU / r))
    q = 1.225 * ca.exp(-h / 6700) * V**2 / 2
    mach = V / ca.if_else(low, 340.3 * ca.sqrt(thin), 295.03)
    drag, normal = _parabolas(DRAG, mach), _parabolas(NORMAL, mach)
    D = q * AREA * (drag + alpha**2 * normal)
    turn = (thrust + q * AREA * (normal - drag)) * alpha / (m * V)
    fall = (V / r - MU / (r**2 * V)) * ca.cos(gamma)
    return [-thrust / (9.81 * impulse), V * ca.sin(gamma), (thrust - D) * V / m, turn + fall]


def _system(stage: str) -> System:
    def rate(s: Moment) -> list[Any]:
        return _rates(stage, s.m, s.h, s.E, s.gamma, s.alpha)

    return System(STATES, ["alpha"], rate)


def _ascent() -> Phases:
    begin = dict(zip(STATES, BEGIN, strict=True))
    first = Problem(
        _system("first"),
        (50.0, 300.0),
        start=begin,
        end={"m": BURNT},
        cost=terminal(lambda s: 0 * s.m),
    )
    second = Problem(_system("second"), (50.0, 900.0), end={"E": ENERGY}, cost=terminal(lambda s: -s.m))
    return Phases({"first": first, "second": second}, links={"second": {"m": lambda s: s.m - DROP}})


GUESS = {
    "first": {"time": [0, 110], "x": [BEGIN, [BURNT, 5e4, -5.9e7, 0.5]], "controls": [[0.0], [0.0]]},
    "second": {
        "time": [0, 400],
        "x": [[BURNT - DROP, 5e4, -5.9e7, 0.5], [4e4, 2e5, ENERGY, 0.0]],
        "controls": [[0.1], [0.1]],
    },
}


@case(
    source=acc1989(
        "Bless, Hodges, Calise", "(20)-(26), tables 1 and 2: two stages of a Saturn IB, most mass at the end"
    ),
    kind="reference",
    tags=("optimal", "acc1989"),
    parameters={"elements": 8},
    missing="""the paper draws its results; used are its data, its weak form (25) solved independently, and what it says of
    them: eight and eight elements are converged, and the angle of attack is above 30 deg at places""",
)
def launch_system(elements: int) -> Items:
    """Two phases of a rocket by the midpoint rule are the finite elements in time of the paper, number by number."""
    ascent = _ascent()
    few = ascent.solve(elements // 2, transcription="midpoint", guess=GUESS)
    coarse = ascent.solve(elements, transcription="midpoint", guess=few)
    spans = [coarse[name].duration for name in STAGES]
    angles = np.concatenate([coarse[name].control("alpha") for name in STAGES])
    reason = "the same equations, both solved to 1e-8"
    times, mass, found = weak_form(coarse, elements, at_nodes=False)
    yield Check("durations of the weak form, H in the mean of its elements [s]", spans, times, 1e-5, reason)
    yield Check("mass at the end [kg]", -coarse.cost, mass, 1e-3, reason)
    yield Check("angles of attack [rad]", angles, found, 1e-6, reason)
    times, mass, _ = weak_form(coarse, elements, at_nodes=True)
    reason = "H at the nodes, as printed, is another rule of order 2 for the times: from 4 to 8 elements 0.0035 to 0.0020 s"
    yield Check("durations of the weak form as printed [s]", spans, times, 4e-3, reason)
    yield Check(
        "mass at the end [kg]", -coarse.cost, mass, 0.02, f"{reason}, and to second order for what is least"
    )
    fine = ascent.solve(4 * elements, transcription="midpoint", guess=coarse)
    finest = ascent.solve(8 * elements, transcription="midpoint", guess=fine)
    limit = ascent.solve(2 * elements, transcription="radau", guess=finest, accuracy=1e-6)
    extrapolated = -(4 * finest.cost - fine.cost) / 3
    last = abs(finest.cost - fine.cost) / 3
    yield Check(
        "mass at the end, many elements [kg]",
        -limit.cost,
        extrapolated,
        last,
        "what Richardson's extrapolation adds: edges of the tables and of the atmosphere spoil the order at single steps",
    )
    yield Check(
        "mass at the end with 8 and 8 elements, relative",
        -coarse.cost / -limit.cost,
        1.0,
        0.005,
        "'converged'",
    )
    top = max(float(np.degrees(limit[name].control("alpha")).max()) for name in STAGES)
    yield Check("largest angle of attack, above 30 deg [deg]", min(top, 30.0), 30.0, 0.0, "the text")
    lines = [Line(name, limit[name].time[:-1], np.degrees(limit[name].control("alpha"))) for name in STAGES]
    yield Plot("t [s]", "angle of attack [deg]", tuple(lines))


def weak_form(solution: PhasesSolution, N: int, *, at_nodes: bool) -> tuple[Array, float, Array]:
    """(25) with N and N elements by Newton's method, from a solution of phases: durations, mass at the end, angles.

    The times are stationary by H at the nodes, as (25) has it, or by the mean of H over the elements of each stage.
    """
    functions = [_hamiltonian(stage) for stage in STAGES]
    x, lam, u = ca.SX.sym("x", 4, 2 * N), ca.SX.sym("lam", 4, 2 * N), ca.SX.sym("u", 2 * N)
    T, nu, last = ca.SX.sym("T", 2), ca.SX.sym("nu", 2), ca.SX.sym("last", 3)
    equations, means, states, costates = [], [], [], []
    for i in range(2 * N):
        dt = T[i // N] / N
        H, f, H_x, H_u = functions[i // N](x[:, i], lam[:, i], u[i])
        equations.append(H_u)
        means.append(H)
        states.append((x[:, i] - dt / 2 * f, x[:, i] + dt / 2 * f))
        costates.append((lam[:, i] + dt / 2 * H_x, lam[:, i] - dt / 2 * H_x))
    equations.append(states[0][0] - np.array(BEGIN) / SIZES)
    for i in range(2 * N - 1):
        jump = i == N - 1
        equations.append(states[i + 1][0] - states[i][1] + jump * ca.DM([DROP / SIZES[0], 0, 0, 0]))
        equations.append(costates[i][1] - costates[i + 1][0] - jump * ca.vertcat(nu[0], 0, 0, 0))
    equations.append(costates[-1][1] - ca.vertcat(1, 0, nu[1], 0))
    equations += [states[N - 1][1][0] - BURNT / SIZES[0], states[-1][1][2] - ENERGY / SIZES[2]]
    ends = ((0, N - 1, 1), (1, N, 0), (1, 2 * N - 1, 1))
    hats = [functions[k](states[i][e], costates[i][e], last[j]) for j, (k, i, e) in enumerate(ends)]
    equations += [hat[3] for hat in hats]
    if at_nodes:
        equations += [hats[1][0] - hats[0][0], hats[2][0]]
    else:
        equations += [ca.sum1(ca.vertcat(*means[:N])) / N, ca.sum1(ca.vertcat(*means[N:])) / N]
    w, g = ca.vertcat(ca.vec(x), ca.vec(lam), u, T, nu, last), ca.vertcat(*equations)
    end = states[-1][1][0] * SIZES[0]
    found = _newton(ca.Function("weak", [w], [g, ca.jacobian(g, w), end]), _begin(solution, N))
    return found[0][18 * N : 18 * N + 2], found[1], found[0][16 * N : 18 * N]


def _hamiltonian(stage: str) -> ca.Function:
    """(x, lam, u) -> H, f, H_x, H_u in the units of the weak form."""
    x, lam, u = ca.SX.sym("x", 4), ca.SX.sym("lam", 4), ca.SX.sym("u")
    m, h, E, gamma = ca.vertsplit(x * SIZES)
    f = ca.vertcat(*_rates(stage, m, h, E, gamma, u)) / SIZES
    H = ca.dot(lam, f)
    return ca.Function("H", [x, lam, u], [H, f, ca.gradient(H, x), ca.gradient(H, u)])


def _begin(solution: PhasesSolution, N: int) -> Array:
    """Elements have the means of their nodes; costates are those of the mass at the end, which is -cost."""
    motions: Sequence[Any] = [solution[name] for name in STAGES]
    x = [(m.x[:-1] + m.x[1:]) / 2 / SIZES for m in motions]
    after = [m.solution.costates for m in motions]
    lam = [-(np.concatenate([c[:1], c[:-1]]) + c) / 2 * SIZES / SIZES[0] for c in after]
    u = np.concatenate([m.control("alpha") for m in motions])
    spans = [m.duration for m in motions]
    return np.concatenate([np.ravel(x), np.ravel(lam), u, spans, [0.0, 0.0], u[[N - 1, N, -1]]])


def _newton(f: Callable[[Array], Any], w: Array) -> tuple[Array, float]:
    for _ in range(30):
        g, J, end = f(w)
        step = np.linalg.solve(J.full(), -g.full()[:, 0])
        w = w + step
        if np.abs(step).max() < 1e-11:
            break
    return w, float(end)
