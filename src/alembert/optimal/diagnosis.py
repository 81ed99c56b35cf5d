"""Why a solve may have failed: rows of the linearised problem that repeat or contradict others, or are badly scaled.

At the iterate x, u, z, with z eliminated by (1) of `alembert.optimal.stages`, the stages are

    dx_{k+1} = A dx_k + B du_k + gap,    D dx_k + E du_k + d = 0 for the rows of (3) that are equations          (1)

with conditions C dx = -c at both ends. Looked at are the rows that hold in one place: the start with the equations of the
first stage, the equations of every other stage, and the end. What reaches the end is the span of R_N,

    R_0 = null(C_start),    R_{k+1} = [A R_k, B]                                                        (2)

so that of conditions there whose C R_N depend on each other, to first order not all can be met.

Besides: functions that are not finite, and those with edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.optimal.outcome import NO_SLOPE

if TYPE_CHECKING:
    from alembert.optimal.outcome import Iterate
    from alembert.optimal.problem import Problem
    from alembert.optimal.stages import Stages

Array = np.ndarray
DEPENDENT = 1e-9
"""share of a row that others do not explain, below which it counts as dependent on them"""
UNREACHED = 1e-11
"""share of a row that (2) leaves, below which nothing influences it; controls may be large numbers"""
OFF = 1e-6
"""difference of right-hand sides, in units of the dependent row, above which rows contradict each other"""
UNSCALED = 1e6
"""factor between the gradient of a row and those of the others"""
FLAT = 1e-13
"""the same, below which a gradient is rounding"""


@dataclass(frozen=True)
class Violation:
    """A constraint that a solution does not keep; `amount` is inf where it is not finite."""

    name: str
    time: float
    amount: float

    def __str__(self) -> str:
        amount = f"off by {self.amount:.3e}" if np.isfinite(self.amount) else "not finite"
        return f"{self.name} at t = {self.time:.4g} s: {amount}"


@dataclass
class Linearised:
    """(1) at an iterate, for those stages where all is finite; `at` has their numbers."""

    at: Array
    A: Array
    B: Array
    gap: Array
    D: Array
    """(stages, rows of d, tangent of x and u)"""
    d: Array
    start: tuple[Array, Array]
    """C and c"""
    end: tuple[Array, Array]
    end_bounded: tuple[Array, Array]


def linearise(stages: Stages, it: Iterate) -> Linearised:
    n, m, nz, nd = stages.sizes
    chart, p = stages.chart, stages.parameters
    x, after, dx = ca.SX.sym("x", chart.point), ca.SX.sym("after", chart.point), ca.SX.sym("dx", n)
    u, z, s = ca.SX.sym("u", m), ca.SX.sym("z", nz), ca.SX.sym("s", 3)
    found, _, c, d = stages.stage(chart.retract(x, dx), u, z, s, p)
    w = ca.vertcat(dx, u, z)
    rows = ca.vertcat(chart.local(after, found), c, d)
    f = ca.Function("rows", [dx, x, after, u, z, s], [rows, ca.densify(ca.jacobian(rows, w))])
    N, height = stages.count, n + nz + nd
    values, slopes = f.map(N)(np.zeros((n, N)), it.x[:-1].T, it.x[1:].T, it.u.T, it.z.T, stages.numbers.T)
    J = np.swapaxes(slopes.full().T.reshape(N, n + m + nz, height), 1, 2)
    value = values.full().T
    at = np.flatnonzero(np.isfinite(J).all(axis=(1, 2)) & np.isfinite(value).all(axis=1))
    J, value = J[at], value[at]
    gap = value[:, :n]
    if nz:
        inverse = np.linalg.pinv(J[:, n : n + nz, n + m :])
        gap = gap - (J[:, :n, n + m :] @ (inverse @ value[:, n : n + nz, None]))[:, :, 0]
        Z = -inverse @ J[:, n : n + nz, : n + m]
        J = J[:, :, : n + m] + J[:, :, n + m :] @ Z
    ends = []
    for point, place, function in (
        (it.x[0], stages.numbers[0], lambda *g: [stages.start(*g)]),
        (it.x[-1], stages.numbers[-1], lambda *g: stages.end(*g)[1:]),
    ):
        for e in function(chart.retract(ca.SX(point), dx), place, p):
            C, c = (v.full() for v in ca.Function("end", [dx], [ca.jacobian(e, dx), e])(np.zeros(n)))
            ends.append((C, c[:, 0]))
    return Linearised(at, J[:, :n, :n], J[:, :n, n:], gap, J[:, n + nz :], value[:, n + nz :], *ends)


def dependent(C: Array, c: Array, least: float = DEPENDENT) -> list[tuple[int, list[int], float]]:
    """Rows of C w = -c that follow from those before: (row, these, how far the right-hand sides differ)."""
    found: list[tuple[int, list[int], float]] = []
    kept: list[int] = []
    lengths = np.linalg.norm(C, axis=1)
    unit = C / np.where(lengths > 0, lengths, 1.0)[:, None]
    for i in range(len(C)):
        if not np.isfinite(lengths[i]):
            continue
        share = np.linalg.lstsq(unit[kept].T, unit[i], rcond=None)[0] if kept else np.zeros(0)
        if lengths[i] > 0 and np.linalg.norm(unit[i] - unit[kept].T @ share) > least:
            kept.append(i)
            continue
        others = [(j, s * lengths[i] / lengths[j]) for j, s in zip(kept, share, strict=True) if abs(s) > 1e-6]
        off = c[i] - sum(s * c[j] for j, s in others)
        found.append((i, [j for j, _ in others], float(abs(off))))
    return found


@dataclass
class _Found:
    """A sentence about a row, and the times where it is true."""

    times: list[float] = field(default_factory=list)
    off: float = 0.0


class Dependencies:
    """Sentences that name equations which repeat, contradict or do not reach anything, with their times."""

    def __init__(self) -> None:
        self._said: dict[str, _Found] = {}

    def add(self, names: Sequence[str], C: Array, c: Array, t: float, *, reached: bool = False) -> list[int]:
        """Rows C w = -c at a time; with `reached` what they say is what the controls do. Returns the rows named."""
        found = dependent(C, c)
        for i, others, off in found:
            listed = ", ".join(names[j] for j in others)
            if not others:
                by = (
                    "the controls, from the start that is given"
                    if reached
                    else "a state or control of its moment"
                )
                text = f"cannot be changed by {by}{', and is off' if off > OFF else ''}"
            elif reached:  # to first order: not the same as a repetition
                text = f"cannot be changed apart from {listed}{', and contradicts them' if off > OFF else ''}"
            else:
                text = f"{'contradicts' if off > OFF else 'repeats'} {listed}"
            entry = self._said.setdefault(f"{names[i]} {text}", _Found())
            entry.times.append(t)
            entry.off = max(entry.off, off)
        return [i for i, _, _ in found]

    def sentences(self) -> list[str]:
        return [_sentence(text, entry) for text, entry in self._said.items()]


def violated(violations: Sequence[Violation], most: int) -> list[str]:
    """Sentences about constraints that are off, the worst first, once for each name."""
    if not violations:
        return ["every constraint is kept to 1e-6"]
    worst: dict[str, list[Violation]] = {}
    for violation in violations:
        worst.setdefault(violation.name, []).append(violation)
    lines = [f"{len(violations)} constraints are off by more than 1e-6; the worst:"]
    for same in list(worst.values())[:most]:
        more = f", and at {len(same) - 1} other times" if len(same) > 1 else ""
        lines.append(f"  {same[0]}{more}")
    return lines


def redundant(stages: Stages, linear: Linearised, time: Array, *, reach: bool = True) -> list[str]:
    """Sentences that name equations which repeat or contradict others, with their time; with `reach` also by way of (2)."""
    m = len(stages.u_names)
    said = Dependencies()
    start, end = linear.start, linear.end
    first = [f"start {name}" for name in stages.start_names]
    equations = stages.lower == stages.upper
    C_0, c_0 = np.hstack([start[0], np.zeros((len(start[0]), m))]), start[1]
    for row, k in enumerate(linear.at):
        own = np.flatnonzero(equations[k])
        names = [f"path {stages.path_names[j]}" for j in own]
        D, d = linear.D[row, own], linear.d[row, own] - stages.lower[k, own]
        if k == 0:
            names, D, d = [*first, *names], np.vstack([C_0, D]), np.concatenate([c_0, d])
        said.add(names, D, d, float(time[k]))
    held = np.flatnonzero(stages.end_lower == stages.end_upper)
    last = [f"end {name}" for name in (*stages.end_names, *(stages.end_bounded[j] for j in held))]
    C = np.vstack([end[0], linear.end_bounded[0][held]])
    c = np.concatenate([end[1], linear.end_bounded[1][held] - stages.end_lower[held]])
    again = set(said.add(last, C, c, float(time[-1])))
    finite = all(np.isfinite(a).all() for pair in ((C, c), start) for a in pair)
    if reach and len(linear.at) == stages.count and len(C) and finite:
        fresh = [i for i in range(len(C)) if i not in again]
        reached, missed = _reached(linear)
        rows = C[fresh] @ reached
        size = np.linalg.norm(C[fresh], axis=1) * np.linalg.norm(reached)
        rows[np.linalg.norm(rows, axis=1) <= UNREACHED * size] = 0.0
        off = c[fresh] + C[fresh] @ missed
        said.add([last[i] for i in fresh], rows, off, float(time[-1]), reached=True)
    return said.sentences()


def _reached(linear: Linearised) -> tuple[Array, Array]:
    """R_N of (2), in as few columns as there are states, and dx_N where no free direction and no control is used."""
    C, c = linear.start
    n = linear.A.shape[1]
    _, sizes, V = np.linalg.svd(C) if len(C) else (None, np.zeros(0), np.eye(n))
    rank = int(np.count_nonzero(sizes > DEPENDENT * max(sizes.max(initial=0.0), 1e-300)))
    R = V[rank:].T
    x = -np.linalg.lstsq(C, c, rcond=None)[0] if len(C) else np.zeros(n)
    for A, B, gap in zip(linear.A, linear.B, linear.gap, strict=True):
        R = np.asarray(np.linalg.qr(np.hstack([A @ R, B]).T, mode="r")).T
        x = A @ x + gap
    return R, x


def _sentence(text: str, entry: _Found) -> str:
    t = entry.times
    when = (
        f"at t = {t[0]:.4g} s" if len(t) == 1 else f"at {len(t)} times from t = {t[0]:.4g} s to {t[-1]:.4g} s"
    )
    return f"{text} ({when}{f', by {entry.off:.3e}' if entry.off > OFF else ''})"


def unscaled(stages: Stages, linear: Linearised, time: Array) -> list[str]:
    """Sentences that name rows whose gradients are larger or smaller than those of the others by `UNSCALED`."""
    sizes: dict[str, tuple[float, float]] = {}

    def add(names: Sequence[str], lengths: Array, times: Array) -> None:
        for j, name in enumerate(names):
            column = lengths[:, j]
            if len(column) and column.max() > 0:
                k = int(np.argmax(column))
                sizes[name] = float(column[k]), float(times[k])

    T = time[linear.at]
    motion = np.sqrt(1 + (linear.A**2).sum(axis=2) + (linear.B**2).sum(axis=2))
    add([f"motion of {name}" for name in stages.x_names], motion, T)
    bounded = np.isfinite(stages.lower[linear.at]) | np.isfinite(stages.upper[linear.at])
    path = np.where(bounded, np.linalg.norm(linear.D, axis=2), 0.0)
    add([f"bound on {name}" for name in stages.path_names], path, T)
    for which, names, (C, _), when in (
        ("start", stages.start_names, linear.start, time[:1]),
        ("end", stages.end_names, linear.end, time[-1:]),
        ("bound at the end on", stages.end_bounded, linear.end_bounded, time[-1:]),
    ):
        add([f"{which} {name}" for name in names], np.linalg.norm(C, axis=1)[None], when)
    return badly_scaled(sizes)


def badly_scaled(sizes: Mapping[str, tuple[float, float]]) -> list[str]:
    """Sentences about constraints by name, from the largest gradient of each and the time where it has it."""
    lines = []
    for name, (size, t) in sizes.items():
        others = [own for other, (own, _) in sizes.items() if other != name]
        usual = float(np.median(others)) if others else size
        if size < FLAT * usual:
            lines.append(
                f"{name} has no slope at t = {t:.4g} s: nothing there changes it to first order; give a `guess` elsewhere"
            )
        elif not 1 / UNSCALED <= size / usual <= UNSCALED:
            lines.append(
                f"{name} is badly scaled: its gradient is {size:.1e} at t = {t:.4g} s, those of other constraints "
                f"about {usual:.1e}; state it in other units"
            )
    return lines


def not_finite(stages: Stages, x: Array, u: Array, z: Array) -> str:
    """Which function is not finite, and in which interval; "" where values and slopes are.

    What the user wrote comes first (costs, path, conditions): where it is not finite, solvers also lose the motion.
    """
    N, p, chart = stages.count, stages.parameters, stages.chart
    n, m, nz, _ = stages.sizes
    point, d = ca.SX.sym("x", chart.point), ca.SX.sym("d", n)
    us, zs, s = ca.SX.sym("u", m), ca.SX.sym("z", nz), ca.SX.sym("s", 3)
    after, cost, c, rows = stages.stage(chart.retract(point, d), us, zs, s, p)
    named = [
        *[("the running cost", cost)],
        *((f"'{name}'", rows[k]) for k, name in enumerate(stages.path_names)),
        *((f"the motion of {name}", after[k]) for k, name in enumerate(_coordinates(stages))),
        *((f"{name}", c[k]) for k, name in enumerate(stages.z_names)),
    ]
    values = ca.vertcat(*(value for _, value in named))
    slopes = ca.jacobian(values, ca.vertcat(d, us, zs))
    f = ca.Function("stage", [point, d, us, zs, s], [values, ca.densify(slopes)]).map(N)
    found = f(x[:-1].T, np.zeros((n, N)), u.T, z.T, stages.numbers.T)
    last, conditions, bounded = stages.end(chart.retract(point, d), s, p)
    ends = [
        *[("the terminal cost", last)],
        *((f"'{name}' at the end", conditions[k]) for k, name in enumerate(stages.end_names)),
        *((f"'{name}' at the end", bounded[k]) for k, name in enumerate(stages.end_bounded)),
    ]
    values = ca.vertcat(*(value for _, value in ends))
    g = ca.Function("end", [point, d, s], [values, ca.densify(ca.jacobian(values, d))])
    final = g(x[-1], np.zeros(n), stages.numbers[-1])
    nodes = stages.nodes * stages.span(x)
    for order, what, hint in ((0, "", ""), (1, "the slope of ", NO_SLOPE)):
        along = found[order].full().T.reshape(N, -1, len(named))
        bad = ~np.isfinite(along).all(axis=1)
        if bad.any():
            row = int(np.argmax(bad.any(axis=0)))
            k = int(np.argmax(bad[:, row]))
            when = f"between t = {nodes[k]:.4g} and {nodes[k + 1]:.4g} s"
            return f"{what}{named[row][0]} is not finite {when}{hint}"
        bad = ~np.isfinite(final[order].full()).all(axis=1)
        if bad.any():
            return f"{what}{ends[int(np.argmax(bad))][0]} is not finite{hint}"
    return ""


def unlimited(problem: Problem) -> list[str]:
    """Controls that nothing keeps small: no limits, no cost along the way, no path condition."""
    plant = problem.plant
    x, u, t = ca.SX.sym("x", plant.chart.point), ca.SX.sym("u", len(plant.controls)), ca.SX.sym("t")
    s = problem.moment(t, x, u, ca.SX(problem.parameters), ca.SX.sym("T"))
    rows = [row.value(s) for row in (*problem.path, *problem.integrals)]
    known = ca.vertcat(problem.cost.rate(s), *rows)
    limited = {row.component for row in problem.limits["control"]}
    names = enumerate(plant.controls)
    return [name for k, name in names if name not in limited and not ca.depends_on(known, u[k])]


CHOICES = {
    ca.OP_LT,
    ca.OP_LE,
    ca.OP_EQ,
    ca.OP_NE,
    ca.OP_FABS,
    ca.OP_SIGN,
    ca.OP_FMIN,
    ca.OP_FMAX,
    ca.OP_FLOOR,
    ca.OP_CEIL,
}
"""operations whose result has edges or jumps"""


def with_edges(problem: Problem) -> list[str]:
    """Functions of the user's that choose between branches: at an edge there is no slope, and iterations may go round it."""
    plant = problem.plant
    x, u, t = ca.SX.sym("x", plant.chart.point), ca.SX.sym("u", len(plant.controls)), ca.SX.sym("t")
    p, T = ca.SX(problem.parameters), ca.SX.sym("T")
    s = problem.moment(t, x, u, p, T)
    named = [("the rate", plant.rate(t, x, u, p))] if problem.model is None else []
    named += [("the running cost", problem.cost.rate(s)), ("the terminal cost", problem.cost.final(s))]
    named += [(f"path {row.name!r}", row.value(s)) for row in problem.path]
    found = []
    for name, value in named:
        f = ca.Function("f", [t, x, u, T], [value])
        if CHOICES & {f.instruction_id(k) for k in range(f.n_instructions())}:
            found.append(name)
    return found


def edges(problem: Problem) -> list[str]:
    """`with_edges` in a sentence."""
    found = with_edges(problem)
    if not found:
        return []
    return [
        f"{', '.join(found)}: chooses between branches (if_else, abs, min, max, a table); where the motion is at an edge "
        "there is no slope, and iterations go round it: smooth the edge, or take other steps or another `guess`"
    ]


def _coordinates(stages: Stages) -> list[str]:
    """Names of the entries of a point: those of the tangent do for plain coordinates."""
    model = stages.chart.model
    if model is None:
        return list(stages.x_names)
    return [*(f"q {name}" for name in model.coordinate_names), *stages.x_names[model.nv :]]
