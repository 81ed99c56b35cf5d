"""Loops, couplings and equations within the compiled steps.

The constrained accelerations are those of `alembert.constraints.compiled`, with a minimal set of rows that is part of
the machine's state. Where the set does not serve (its rows have become dependent, or the others are not kept by them)
the accelerations are NaN, and the run goes on with another set. Where motion is prescribed, the drives hold the speeds that
follow it. At the end of a step the state goes back to the surface by

    q <- integrate(q, x),  G x = -phi,   until phi is rounding;   then v <- v + y,  G y = -G v      (x, y = M^-1 G^T f)
"""

from __future__ import annotations

import casadi as ca

from alembert.constraints import compiled
from alembert.constraints.compiled import Held, symbolic_served
from alembert.constraints.results import CLOSED, GOOD
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.lowering.plan import Call, Copy, Repeat, Step
from alembert.model import Model
from alembert.sensitivity.mass_factor import Pattern
from alembert.simulate.reaction_loads import ReactionLoads

STAGE = 0.1
"""how far open, relative to its size, a loop may be at the stages of a step; ends of steps are projected"""
CLOSURE = 1e-10
"""the same at the end of a step"""
MOST = 10


def compiles(model: Model) -> bool:
    """Whether the equations are few enough to be part of the compiled loop."""
    rows = model.constrained_compute.rows
    return rows.solution is not None and rows.projection is not None


class ClosedLoops:
    """Sources, buffers and calls of a model's constraints."""

    def __init__(
        self, model: Model, *, wrenches: bool, held: Held = (), reading: ReactionLoads | None = None
    ) -> None:
        rows = model.constrained_compute.rows
        assert rows.solution is not None
        assert rows.projection is not None
        nq, nv, count = model.nq, model.nv, rows.count
        held = held if any(held) else ()
        self.held, self.reading = bool(held), reading
        self.parameters = ["parameters"] if model.parameters else []
        self.given = ["wrench"] if wrenches else []
        pattern, self.large = Pattern(model.compute.tree), compiled.is_large(rows.primary)
        self.sources: dict[str, KernelSource] = {
            "solution": (rows.held_solution(held) if held else rows.solution).source(),
            "projection": (rows.held_projection(held) if held else rows.projection).source(),
            "factor": compiled.factor_source(rows.primary, held),
            "serving": _serving(nv, unique=reading is not None),
            "begin": _begin(nq, nv),
            "where": _where(nq, nv),
            "approach": FunctionSource(approach(model)),
        }
        if self.large:
            names = ["q", "v", "tau", *(["a"] if held else []), *self.given]
            self.sources["rest"] = compiled.rest_source(rows.primary, names, held)
        else:
            self.sources["tree"] = rows.tree(wrenches=wrenches, held=held).source()
        factors = {"factor": pattern.size, "rest": nv, "a_found": nv, "forces": count}
        answers = {"reactions": 6 * max(1, len(model.loops)), "status": 5, "back": 2 + nq + nv}
        steps = {"back_next": 2 + nq + nv, "q_back": nq, "v_back": nv, "x": nv, "y": nv, "p_status": 4}
        self.temporaries = {**factors, **answers, **steps, "chosen": count, "active": count}
        if reading is not None:
            self.sources |= reading.sources(held)
            self.temporaries |= reading.temporaries

    def accelerations(self, t: str, q: str, v: str, tau: str, a: str, a_held: str) -> list[Step]:
        """Into the buffer a; `a_held` has the accelerations of held speeds, where there are some."""
        held = [a_held] if self.held else []
        masks, given = ["chosen", "active"], [q, v, tau, *held, *self.given, *self.parameters]
        tree: list[Step] = [Call("tree", given, ["factor", "rest"])]
        if self.large:
            tree = [Call("factor", [q, *self.parameters], ["factor"]), Call("rest", given, ["rest"])]
        loads = [] if self.reading is None else self.reading.steps(t, q, v, held)
        rest = "rest" if self.reading is None else "rest_loaded"
        return [
            *tree,
            *loads,
            Call(
                "solution",
                [q, v, "factor", rest, *held, *masks, *self.parameters],
                ["a_found", "forces", "reactions", "status"],
            ),
            Call("serving", ["a_found", "status"], [a]),
        ]

    def projection(self, q: str, v: str) -> list[Call | Copy | Repeat]:
        """From buffers q and v to `back`: done, worst, q, v."""
        step: list[Call | Copy] = [
            Call("where", ["back"], ["q_back", "v_back"]),
            Call("factor", ["q_back", *self.parameters], ["factor"]),
            Call(
                "projection",
                ["q_back", "v_back", "factor", "chosen", "active", *self.parameters],
                ["x", "y", "p_status"],
            ),
            Call("approach", ["back", "x", "y", "p_status"], ["back_next"]),
            Copy("back_next", "back"),
        ]
        return [Call("begin", [q, v], ["back"]), Repeat(step, "back", MOST)]


def _serving(nv: int, *, unique: bool) -> KernelSource:
    """With `unique`, where forces are read, they must not be a choice among others."""
    a, status = ca.SX.sym("a", nv), ca.SX.sym("status", 5)
    found = ca.if_else(symbolic_served(status, STAGE, unique=unique), a, ca.SX.nan(nv))
    return FunctionSource(ca.Function("serving", [a, status], [found]))


def _begin(nq: int, nv: int) -> KernelSource:
    q, v = ca.SX.sym("q", nq), ca.SX.sym("v", nv)
    return FunctionSource(ca.Function("begin", [q, v], [ca.vertcat(0, ca.inf, q, v)]))


def _where(nq: int, nv: int) -> KernelSource:
    back = ca.SX.sym("back", 2 + nq + nv)
    return FunctionSource(ca.Function("where", [back], [back[2 : 2 + nq], back[2 + nq :]]))


def approach(model: Model) -> ca.Function:
    """(back, x, y, status) -> back: one step of the projection, as `constraints.solver.projection` does it.

    back is: done, worst, q, v; NaN where the rows do not serve.
    """
    nq, nv = model.nq, model.nv
    back = ca.SX.sym("back", 2 + nq + nv)
    x, y, status = ca.SX.sym("x", nv), ca.SX.sym("y", nv), ca.SX.sym("status", 4)
    done, worst, q, v = back[0], back[1], back[2 : 2 + nq], back[2 + nq :]
    quality, opened = status[0], status[1]
    usable = ca.logic_and(quality > GOOD * GOOD, opened <= CLOSED)
    last = ca.logic_or(opened <= 1e-15, opened >= worst / 2)
    closed = ca.logic_and(usable, ca.logic_or(ca.logic_not(last), opened <= CLOSURE))
    ended = ca.vertcat(1, opened, q, v + y)
    nearer = ca.vertcat(0, opened, model.space.integrate(q, x), v)
    found = ca.if_else(last, ended, nearer)
    lost = ca.vertcat(1, ca.inf, ca.SX.nan(nq + nv))
    result = ca.if_else(done, back, ca.if_else(closed, found, lost))
    return ca.Function("approach", [back, x, y, status], [ca.densify(result)])
