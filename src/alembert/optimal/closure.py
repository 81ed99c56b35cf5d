"""What holds at every node: closed loops, couplings, equations, and joints that follow a motion.

With a minimal set of rows phi of the constraints of a model, chosen at the start, and the prescribed coordinates,

    g(t, q) = [phi(q); q_j - r_j(t)] = 0,    G v = w(t),    G a = w'(t) - gamma                (1)

A stage of DMOC has their impulses f besides its displacement e among the z (Leyendecker, Ober-Bloebaum, Marsden and
Ortiz 2009, (10)), and the momenta at its end are projected onto those that the rows allow, (15) there:

    p^-(q, e, u) - G(q)' f = p,    g(t + h, q_1) = 0,    p_1 = Q(q_1) p^+                      (2)
    Q p = p - G' (G M^-1 G')^-1 (G M^-1 p - w)                                                 (3)

Conditions at the ends that follow from others through (1) are left out, after a check that they agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.constraints import saddle
from alembert.constraints.equations import equations
from alembert.errors import AlembertError, ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.sweeps.dynamics import Factor

if TYPE_CHECKING:
    from alembert.optimal.plant import Plant, Row
    from alembert.optimal.problem import Problem

Array = np.ndarray
AGREE = 1e-7
"""how well conditions that repeat each other must agree, relative to the size of what they are about"""


class Closure:
    """(1): `rows` of the constraints of `model`, and `motions`, functions of the time, by joint."""

    def __init__(self, model: Model, rows: Sequence[int], motions: Mapping[str, ca.Function]) -> None:
        self.model, self.rows, self.motions = model, tuple(rows), dict(motions)
        self.dofs = tuple(k for name in motions for k in range(*model.v_slice(name).indices(model.nv)))
        self.coordinates = tuple(k for name in motions for k in range(*model.q_slice(name).indices(model.nq)))
        owners = model.constrained_compute.rows.slices if model.is_constrained else {}
        labels = {
            k: f"{name} row {k - s.start + 1}" for name, s in owners.items() for k in range(s.start, s.stop)
        }
        self.names = (
            *(labels[k] for k in self.rows),
            *(f"motion of {model.speed_names[k]}" for k in self.dofs),
        )

    @property
    def loops(self) -> bool:
        return bool(self.rows)

    def motion(self, t: Any) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Coordinates, speeds and accelerations of the prescribed joints."""
        s = ca.SX.sym("t")
        r = ca.vertcat(ca.SX(0, 1), *(ca.SX(f(s)) for f in self.motions.values()))
        rate = ca.jacobian(r, s)
        f = ca.Function("motion", [s], [r, rate, ca.jacobian(rate, s)])
        return tuple(map(ca.densify, f(t)))  # type: ignore[return-value]

    def residual(self, t: Any, q: ca.SX, p: ca.SX) -> ca.SX:
        """g of (1)."""
        parts = [ca.SX(0, 1)]
        if self.rows:
            found = equations(self.model.compute.tree, q, ca.SX.zeros(self.model.nv), p)
            parts.append(found.residual[list(self.rows)])
        if self.dofs:
            parts.append(q[list(self.coordinates)] - self.motion(t)[0])
        return ca.vertcat(*parts)

    def jacobian(self, q: ca.SX, p: ca.SX) -> ca.SX:
        """G of (1)."""
        parts = [ca.SX(0, self.model.nv)]
        if self.rows:
            found = equations(self.model.compute.tree, q, ca.SX.zeros(self.model.nv), p)
            parts.append(found.jacobian[list(self.rows), :])
        if self.dofs:
            parts.append(ca.SX(np.eye(self.model.nv)[list(self.dofs)]))
        return ca.sparsify(ca.vertcat(*parts))

    def speeds(self, t: Any) -> ca.SX:
        """w of (1)."""
        return ca.vertcat(ca.SX.zeros(len(self.rows)), self.motion(t)[1])

    def accelerations(self, t: Any, q: ca.SX, v: ca.SX, p: ca.SX) -> ca.SX:
        """w' - gamma of (1)."""
        parts = [ca.SX(0, 1)]
        if self.rows:
            parts.append(-equations(self.model.compute.tree, q, v, p).bias[list(self.rows)])
        return ca.vertcat(*parts, self.motion(t)[2])

    def holding(self, t: Any, q: ca.SX, v: ca.SX, p: ca.SX) -> ca.SX:
        """g and G v - w of (1), which are 0."""
        return ca.vertcat(self.residual(t, q, p), self.jacobian(q, p) @ v - self.speeds(t))

    def allowed(self, t: Any, q: ca.SX, momentum: ca.SX, inverse: ca.SX, p: ca.SX) -> ca.SX:
        """(3), with `inverse` = M^-1."""
        G = self.jacobian(q, p)
        Y = inverse @ G.T
        return momentum - G.T @ Factor(G @ Y).solve(Y.T @ momentum - self.speeds(t))

    def allowed_speeds(self, t: Any, q: ca.SX, v: ca.SX, inverse: ca.SX, p: ca.SX) -> ca.SX:
        """(3) for v = M^-1 p."""
        G = self.jacobian(q, p)
        Y = inverse @ G.T
        return v - Y @ Factor(G @ Y).solve(G @ v - self.speeds(t))


# --- what the user gave ---------------------------------------------------------------------------------------------


def read_motions(model: Model, given: Mapping[str, Any], driven: Sequence[int]) -> dict[str, ca.Function]:
    """The motions of prescribed joints as functions of the time."""
    found = {}
    joints = {joint.name: joint for joint in model.joints if joint.type.nv}
    t = ca.SX.sym("t")
    for name, motion in given.items():
        if name not in joints:
            raise ArgumentError(unknown("Problem: prescribed: no joint", name, joints))
        kind, s = joints[name].type, model.v_slice(name)
        if not kind.is_vector_space:
            raise UnsupportedError(
                f"Problem: prescribed motion of joint {name!r} and joint type {type(kind).__name__}: only joints whose "
                "coordinates simply add can be prescribed"
            )
        if set(range(s.start, s.stop)) & set(driven):
            raise ArgumentError(
                f"Problem: joint {name!r} is prescribed and has a control as well; leave it out of `actuated`"
            )
        try:
            value = motion(t) if callable(motion) else motion
            value = ca.vertcat(*value) if isinstance(value, list | tuple) else ca.SX(value)
        except (TypeError, NotImplementedError, RuntimeError) as error:
            reason = re.sub(r"^\S+:\d+: ", "", str(error).strip().splitlines()[-1]).rstrip(".")
            hint = (
                "; for a choice write casadi.if_else(condition, then, otherwise)"
                if "truth value" in reason
                else ""
            )
            raise ArgumentError(
                f"Problem: prescribed {name!r}: no expression of the time t: {reason}{hint}"
            ) from None
        if value.numel() != kind.nq:
            raise ArgumentError(
                f"Problem: prescribed {name!r} has {value.numel()} coordinates, expected {kind.nq}"
            )
        found[name] = ca.Function("motion", [t], [ca.vec(value)])
    return found


def close(problem: Problem, motions: Mapping[str, ca.Function]) -> Closure | None:
    """The closure of a problem's model; refuses starts and ends that (1) does not allow."""
    model = problem.model
    assert model is not None
    if not model.is_constrained and not motions:
        return None
    _no_conditions(problem, motions)
    if not model.is_constrained:
        return Closure(model, (), motions)
    table = model.constrained_compute.rows
    if not table.holonomic.all():
        name = next(n for n, s in table.slices.items() if not table.holonomic[s].all())
        raise UnsupportedError(
            f"Problem: {table.kinds[name]} {name!r} is about speeds (rolling, skates), which optimal control does not "
            "cover; loops, couplings and equations on coordinates it does"
        )
    q, _ = place(problem, Closure(model, (), motions), "start")
    closure = Closure(model, minimal_rows(model, q, problem.parameter_values), motions)
    G = model.constraint_jacobian(q, parameters=problem.parameter_values)[list(closure.rows)]
    both = np.concatenate([G, np.eye(model.nv)[list(closure.dofs)]])
    if np.linalg.matrix_rank(both, tol=1e-9 * np.abs(both).max()) < len(both):
        raise ArgumentError(
            f"Problem: the loops and couplings already determine a prescribed joint ({', '.join(motions)}): prescribe fewer"
        )
    place(problem, closure, "end")
    return closure


def minimal_rows(model: Model, q: Array, parameters: Mapping[str, float] | None = None) -> list[int]:
    """Rows of the constraints that are independent at q, as many as there are."""
    G = model.constraint_jacobian(q, parameters=parameters)
    groups = list(model.constrained_compute.rows.slices.values())
    return [int(k) for k in saddle.choose(G, groups, saddle.RANK).rows]


def _no_conditions(problem: Problem, motions: Mapping[str, ca.Function]) -> None:
    model = problem.model
    assert model is not None
    for name in motions:
        own = {f"{what} {speed}" for what in "qv" for speed in model.speed_names[model.v_slice(name)]}
        for which, rows in (("start", problem.start), ("end", problem.end)):
            for row in rows:
                if row.component in own:
                    raise ArgumentError(
                        f"Problem: {which} {row.name!r}: joint {name!r} is prescribed, and its motion says where it is; "
                        "leave it out"
                    )
        times = np.linspace(0, problem.longest, 201)
        t = ca.SX.sym("t")
        r = ca.SX(motions[name](t))
        both = ca.Function("r", [t], [r, ca.jacobian(r, t)])
        q, v = (part.full() for part in both.map(len(times))(times[None]))
        finite = np.isfinite(q).all(axis=0) & np.isfinite(v).all(axis=0)
        if not finite.all():
            at = times[int(np.argmin(finite))]
            raise ArgumentError(
                f"Problem: the prescribed motion of {name!r} or its speed is not finite at {at:g} s"
            )
        _returns(problem, name, q, v)
        for k, speed in enumerate(model.speed_names[model.v_slice(name)]):
            for row in problem.limits["state"]:
                values = {f"q {speed}": q[k], f"v {speed}": v[k]}.get(row.component)
                if values is None:
                    continue
                off = np.maximum(row.lower - values, values - row.upper)
                if off.max() > 1e-9:
                    at = int(np.argmax(off))
                    raise ArgumentError(
                        f"Problem: the prescribed motion of {name!r} has {row.name} = {values[at]:g} at {times[at]:g} s, "
                        f"outside its limits {row.lower:g} .. {row.upper:g}"
                    )


def _returns(problem: Problem, name: str, q: Array, v: Array) -> None:
    """Refuse a periodic motion with a joint whose prescribed one does not return; q and v are over the time."""
    if not problem.periodic:
        return
    if problem.is_free and np.abs(v).max() > 0:
        raise UnsupportedError(
            f"Problem: periodic, with a free duration and a prescribed motion of {name!r}: give the duration, its period"
        )
    for what, values in (("q", q), ("v", v)):
        off = np.abs(values[:, -1] - values[:, 0]).max()
        if off > AGREE * max(1.0, np.abs(values).max()):
            raise ArgumentError(
                f"Problem: periodic, but the prescribed motion of {name!r} ends with {what} off by {off:.3g} from its start"
            )


def place(problem: Problem, closure: Closure, which: str) -> tuple[Array, Array]:
    """q and v at the start or the end: as stated, what is not stated such that (1) holds."""
    from alembert.optimal.guess import straight

    model = problem.model
    assert model is not None
    rows = problem.start if which == "start" else problem.end
    points = straight(problem).points[0 if which == "start" else -1]
    q, v = points[: model.nq].copy(), points[model.nq :].copy()
    held = {
        what: {r.component[2:] for r in rows if r.is_equation and r.component[:2] == f"{what} "}
        for what in "qv"
    }
    values = {r.component: r.lower for r in rows if r.is_equation and r.component}
    v = np.array([values.get(f"v {name}", v[k]) for k, name in enumerate(model.speed_names)])
    if closure.dofs and not (which == "end" and problem.is_free):
        time = 0.0 if which == "start" else problem.shortest
        r, rate, _ = (x.full()[:, 0] for x in ca.Function("r", [], [*closure.motion(ca.SX(time))]).call([]))
        q[list(closure.coordinates)], v[list(closure.dofs)] = r, rate
        names = {model.speed_names[k] for k in closure.dofs}
        held = {what: known | names for what, known in held.items()}
    if not model.is_constrained:
        return q, v
    q = _assembled(problem, which, q, held["q"])
    return q, _consistent(problem, which, q, v, held["v"])


def _assembled(problem: Problem, which: str, q: Array, held: set[str]) -> Array:
    model, known = problem.model, problem.parameter_values
    assert model is not None
    if held == set(model.speed_names):
        off = np.abs(model.constraint_residual(q, parameters=known))
        if off.max() <= AGREE:
            return q
        table = model.constrained_compute.rows
        name = next(n for n, s in table.slices.items() if s.start <= int(np.argmax(off)) < s.stop)
        raise ArgumentError(
            f"Problem: the {which} leaves the {table.kinds[name]} {name!r} open by {off.max():.3g}; state fewer joints, or "
            "take model.assemble(q).q, which closes it"
        )
    try:
        return np.asarray(model.assemble(q, fixed=sorted(held), parameters=known).q)
    except AlembertError as error:
        raise ArgumentError(
            f"Problem: the {which} cannot be assembled as it is stated: {error}. A range (lower, upper) for a joint lets "
            "the search begin at its middle"
        ) from None


def _consistent(problem: Problem, which: str, q: Array, v: Array, held: set[str]) -> Array:
    """The speeds nearest to v that keep the constraints closed, those stated as they are."""
    model = problem.model
    assert model is not None
    G = model.constraint_jacobian(q, parameters=problem.parameter_values)
    free = [k for k, name in enumerate(model.speed_names) if name not in held]
    v = v.copy()
    v[free] -= np.linalg.lstsq(G[:, free], G @ v, rcond=1e-10)[0]
    off = np.abs(G @ v)
    if off.max() > AGREE * max(1.0, np.abs(G).max() * np.abs(v).max()):
        table = model.constrained_compute.rows
        name = next(n for n, s in table.slices.items() if s.start <= int(np.argmax(off)) < s.stop)
        raise ArgumentError(
            f"Problem: the speeds at the {which} would tear the {table.kinds[name]} {name!r} open, at {off.max():.3g} per "
            "second; state fewer of them"
        )
    return v


# --- conditions at the ends -----------------------------------------------------------------------------------------


def conditions(
    problem: Problem,
    plant: Plant,
    which: str,
    rows: Sequence[Row],
    values: ca.SX,
    x: ca.SX,
    p: ca.SX,
) -> tuple[list[str], ca.SX]:
    """Equations at an end, with those of (1) at the start, and without those that follow from others."""
    closure: Closure | None = getattr(plant, "closure", None)
    names = [row.name for row in rows]
    if closure is None:
        return names, values
    # `place` has made sure that those left out agree
    own, kept = _independent(problem, plant, closure, which, values, x, p, [bool(r.component) for r in rows])
    names = [names[i] for i in kept]
    values = values[kept] if kept else ca.SX(0, 1)
    if which == "start":
        labels = [f"{what}{name}" for what in ("", "speed of ") for name in closure.names]
        return [*labels, *names], ca.vertcat(own, values)
    return names, values


def returning(problem: Problem, plant: Plant, values: ca.SX, x: ca.SX, p: ca.SX) -> list[int]:
    """Which of `values`, the state at the end of a periodic motion less that at its start, do not follow from (1)."""
    closure: Closure | None = getattr(plant, "closure", None)
    count = values.numel()
    if closure is None or not count:
        return list(range(count))
    return _independent(problem, plant, closure, "start", values, x, p, [True] * count)[1]


def _independent(
    problem: Problem,
    plant: Plant,
    closure: Closure,
    which: str,
    values: ca.SX,
    x: ca.SX,
    p: ca.SX,
    droppable: Sequence[bool],
) -> tuple[ca.SX, list[int]]:
    """The rows of (1) at an end, and which of `values` do not follow from them and from those before."""
    nq, t = closure.model.nq, 0.0 if which == "start" else problem.shortest
    q, v = place(problem, closure, which)
    mass = np.asarray(plant.tree.mass_matrix(q, parameters=problem.parameter_values))  # type: ignore[attr-defined]
    momenta = plant.momenta  # type: ignore[attr-defined]
    speeds = plant.speeds(x, p)  # type: ignore[attr-defined]
    own = closure.holding(t, x[:nq], speeds, p)
    d = ca.SX.sym("d", plant.chart.tangent)
    # what is a symbol besides x and p (the start of a periodic motion) only shifts the rows
    others = ca.symvar(ca.substitute(values, ca.vertcat(x, p), ca.vertcat(0 * x, 0 * p)))
    f = ca.Function("f", [x, p, *others], [ca.vertcat(own, values)])
    slope = ca.jacobian(f(plant.chart.retract(x, d), p, *others), d)
    J = ca.Function("J", [x, p, d, *others], [slope])
    point = np.concatenate([q, mass @ v if momenta else v])
    numbers: Array = plant.numbers  # type: ignore[attr-defined]
    given = np.zeros(
        p.numel() - len(problem.parameters) - len(numbers)
    )  # at run time, and without a slope here
    known = np.concatenate([problem.parameters, given, numbers])
    C = J(point, known, np.zeros(d.numel()), *(0.0 for _ in others)).full()
    size = np.linalg.norm(C, axis=1)
    C = C / np.where(size > 0, size, 1.0)[:, None]
    count = own.numel()
    droppable = [may_go and in_the_span(C[count + i], C[: count + i]) for i, may_go in enumerate(droppable)]
    return own, [i for i, goes in enumerate(droppable) if not goes]


SPAN = 1e-7
"""distance of a row of length 1 from a span, within which it is in it"""


def in_the_span(row: Array, others: Array) -> bool:
    """Whether a row, of length 1 or 0, is a sum of the others."""
    left = row - np.linalg.lstsq(others.T, row, rcond=1e-10)[0] @ others if len(others) else row
    return bool(np.linalg.norm(left) < SPAN)
