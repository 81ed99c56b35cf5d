"""Loops, couplings and equations within the compiled steps, and forces that depend on their reactions.

The constrained accelerations are those of `alembert.constraints.compiled`, with a minimal set of rows that is part of
the machine's state. Where the set does not serve (its rows have become dependent, or the others are not kept by them)
the accelerations are NaN, and the run goes on with another set. Where motion is prescribed, the drives hold the speeds that
follow it. At the end of a step the state goes back to the surface by

    q <- integrate(q, x),  G x = -phi,   until phi is rounding;   then v <- v + y,  G y = -G v      (x, y = M^-1 G^T f)

Some force elements read the reactions of loops, couplings and equations: friction and creep under normal forces, worn
joints. At every evaluation of the dynamics, the stages of a step included, the reactions r that they read and the efforts
u(r) that they give are found together, by Newton's method from r = 0: schemes keep their order, and a state has one answer,
whatever came before. Reactions must be unique: of redundant constraints no force is read. By the rows of a minimal set the
forces of constraints are affine in the efforts, f = f0 + K u. Where efforts u(r) read some reactions r = S f (entries of
the wrenches of loops, forces of couplings and equations), r solves

    h = S (f0 + K u(r)) - r = 0,        (1 - S K u'(r)) dr = h                                          (1)

Laws of friction and creep are piecewise linear in the normal force, so that a few steps are enough. Where 1 - S K u' is
singular there is no solution, or more than one: friction jams the mechanism.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import unknown
from alembert.constraints import compiled
from alembert.constraints.compiled import Held, moving, symbolic_served, terms_and_solution
from alembert.constraints.drives import upper_solution
from alembert.constraints.factors import Admittance, largest
from alembert.constraints.results import CLOSED, GOOD
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.lowering.plan import Buffer, Call, Copy, Offset, Plan, Repeat, Step
from alembert.model import Model
from alembert.sensitivity.mass_factor import Pattern
from alembert.simulate.elements import (
    ForceLaw,
    Places,
    arguments,
    function_kernel,
    reactions_read,
    state_symbols,
)

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintRows
    from alembert.simulate.simulation import Simulation


Array = np.ndarray

STAGE = 0.1
"""how far open, relative to its size, a loop may be at the stages of a step; ends of steps are projected"""
CLOSURE = 1e-10
"""the same at the end of a step"""
MOST_CLOSING = 10
"""steps of the projection"""


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
        return [Call("begin", [q, v], ["back"]), Repeat(step, "back", MOST_CLOSING)]


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


Read = tuple[str, int]
"""a constraint, and the entry of its reaction"""


def width(rows: ConstraintRows, name: str) -> int:
    """How many numbers the reaction of a constraint has."""
    s = rows.slices[name]
    return 6 if rows.kinds[name] == "loop" else s.stop - s.start


def newton_kernel(rows: ConstraintRows, reads: Sequence[Read], held: Held = ()) -> Kernel:
    """(q, v, factor, rest[, a of held speeds], u, u', r, chosen, active[, parameters]) -> the next r; |h| and size of r."""
    nv, count = rows.model.nv, len(reads)

    def solution(rows: ConstraintRows, x: dict[str, ca.SX]) -> list[ca.SX]:
        """(1)"""
        by = Admittance(Pattern(rows.model.compute.tree), rows.slice_list, x["factor"], x["chosen"], x["G"])
        S = selected(rows, x["T"], reads)

        def forces(b: ca.SX, bias: ca.SX | float = 0.0) -> ca.SX:
            return by.solve(-(bias + by.weighted.T @ by.inward(b)))

        found = S @ forces(x["rest"] + moving(x["u"], held), x["gamma"])
        slope = ca.reshape(x["slope"], nv, count)
        columns = [S @ forces(moving(slope[:, j], held)) for j in range(count)]
        Q, U = ca.qr(ca.densify(ca.SX.eye(count) - ca.horzcat(*columns)))
        step = upper_solution(U, Q.T @ (found - x["read"]))
        return [x["read"] + step, ca.vertcat(largest(found - x["read"]), largest(found) + largest(x["read"]))]

    given = ("factor", "rest", "a_held") if held else ("factor", "rest")
    more = {"u": nv, "slope": nv * count, "read": count}
    results = {"next": (count,), "status": (2,)}
    content = f"reactions:{list(reads)}"
    return terms_and_solution(
        rows, "constraint_solution", (*given, *more), results, solution, held, more=more, content=content
    )


def selected(rows: ConstraintRows, T: ca.SX, reads: Sequence[Read]) -> ca.SX:
    """S of (1); T has the wrenches of loops by rows"""
    S = ca.SX(len(reads), rows.count)
    for k, (name, entry) in enumerate(reads):
        s = rows.slices[name]
        if rows.kinds[name] == "loop":
            S[k, s] = T[s, entry].T
        else:
            S[k, s.start + entry] = 1.0
    return S


MOST_NEWTON = 25
"""steps of Newton's method"""
SOLVED = 1e-9
"""relative to the reactions, before the last step, which squares it"""


class ReactionLoads:
    """All elements of a run that read reactions."""

    def __init__(self, model: Model, elements: Sequence[ForceLaw]) -> None:
        self.model, self.elements = model, tuple(elements)
        self.rows = model.constrained_compute.rows
        names = [name for element in elements for name in reactions_read(element)]
        for name in names:
            if name not in self.rows.slices:
                raise ArgumentError(
                    unknown("simulate: forces read the reaction of no constraint", name, self.rows.names)
                )
        self.names = tuple(dict.fromkeys(names))
        for element in elements:
            element.check(model)
        if self.rows.solution is None:
            raise UnsupportedError(
                f"simulate: forces that read reactions: the constraints of model {model.name!r} are too many to be solved "
                f"for together with them ({self.rows.count} rows)"
            )
        if not self.reads:
            raise ArgumentError(
                f"simulate: forces read the reactions of {', '.join(map(repr, self.names))} and do not depend on them; take "
                "`reactions` out"
            )

    # --- on symbols --------------------------------------------------------------------------------------------

    @cached_property
    def _graph(self) -> tuple[list[ca.SX], ca.SX, tuple[Read, ...]]:
        """Symbols t, q, v, parameters and r; the efforts; and what r is: only entries of reactions that matter."""
        model = self.model
        t, q, v, p = state_symbols(model)
        symbols = {name: ca.SX.sym(name, width(self.rows, name)) for name in self.names}
        at = Places(model, t, q, v, p, symbols)
        total = ca.SX.zeros(model.nv)
        for element in self.elements:
            terms = element.terms(at)
            if terms.efforts is not None:
                total = total + terms.efforts
        everything = ca.vertcat(*symbols.values())
        entries = [(name, k) for name in self.names for k in range(symbols[name].numel())]
        used = ca.which_depends(total, everything, 1, False)
        picked = [k for k, x in enumerate(used) if x]
        read = ca.SX.sym("r", len(picked))
        values = ca.SX.zeros(everything.numel())
        values[picked] = read
        return (
            [t, q, v, p, read],
            ca.densify(ca.substitute(total, everything, values)),
            tuple(entries[k] for k in picked),
        )

    @property
    def reads(self) -> tuple[Read, ...]:
        return self._graph[2]

    @cached_property
    def key(self) -> str:
        symbols, u, reads = self._graph
        text = ca.Function("loads", symbols, [u]).serialize()
        return hashlib.sha256(f"{reads}{text}".encode()).hexdigest()

    def _effort_source(self) -> FunctionSource:
        """(t, q, v, r[, parameters]) -> u and u'"""
        (t, q, v, p, r), u, _ = self._graph
        given = [t, q, v, r, *([p] if self.model.parameters else [])]
        slope = ca.densify(ca.vec(ca.densify(ca.jacobian(u, r))))
        return FunctionSource(ca.Function("loads", given, [u, slope]))

    # --- in machine code ---------------------------------------------------------------------------------------

    def sources(self, held: Held) -> dict[str, KernelSource]:
        n, count = self.model.nv, len(self.reads)
        state, following, status = (
            ca.SX.sym("state", 1 + count),
            ca.SX.sym("next", count),
            ca.SX.sym("status", 2),
        )
        solved = status[0] <= SOLVED * status[1]
        kept = ca.if_else(state[0], state, ca.vertcat(solved, following))
        rest, u = ca.SX.sym("rest", n), ca.SX.sym("u", n)
        good = ca.if_else(state[0], u, ca.SX.nan(n))
        total = rest + compiled.moving(good, held)
        return {
            "loads": self._effort_source(),
            "load_step": newton_kernel(self.rows, self.reads, held).source(),
            "load_keep": FunctionSource(ca.Function("keep", [state, following, status], [kept])),
            "load_sum": FunctionSource(ca.Function("sum", [rest, u, state], [total, good])),
        }

    @property
    def temporaries(self) -> dict[str, int]:
        n, count = self.model.nv, len(self.reads)
        return {
            **{"load_state": 1 + count, "load_after": 1 + count, "load_next": count, "load_status": 2},
            **{"u": n, "slope": n * count, "rest_loaded": n, "load": n},
        }

    def steps(self, t: str, q: str, v: str, held: Sequence[str]) -> list[Step]:
        """From the buffers factor and rest to `rest_loaded`; NaN where Newton's method does not converge."""
        last = ["parameters"] if self.model.parameters else []
        read = Offset("load_state", 1)
        loads = Call("loads", [t, q, v, read, *last], ["u", "slope"])
        given: list[Buffer] = [q, v, "factor", "rest", *held, "u", "slope", read, "chosen", "active", *last]
        step: list[Step] = [
            loads,
            Call("load_step", given, ["load_next", "load_status"]),
            Call("load_keep", ["load_state", "load_next", "load_status"], ["load_after"]),
            Copy("load_after", "load_state"),
        ]
        return [
            Copy(None, "load_state"),
            Repeat(step, "load_state", MOST_NEWTON),
            loads,
            Call("load_sum", ["rest", "u", "load_state"], ["rest_loaded", "load"]),
        ]

    def kernel(self, *, wrenches: bool, held: Held) -> Kernel:
        """(t, q, v, tau[, a of held speeds][, wrench], chosen, active[, parameters]) -> u, and the reactions read."""
        model, rows, n, count = self.model, self.rows, self.model.nv, len(self.reads)
        key = f"simulate:reaction_loads:{model.fingerprint}:{self.key}:{wrenches}:{held}"
        given = arguments(
            {
                "t": 1,
                "q": model.nq,
                "v": n,
                "tau": n,
                "a": n if held else None,
                "wrench": (len(model.compute.tree), 6) if wrenches else None,
                "chosen": rows.count,
                "active": rows.count,
                "parameters": len(model.parameters) or None,
            }
        )
        of_tree = [a.name for a in given if a.name not in ("t", "chosen", "active")]

        def build() -> KernelSource:
            factor = {"factor": Pattern(model.compute.tree).size, "rest": n}
            tree = Call(rows.tree(wrenches=wrenches, held=held).source(), of_tree, ["factor", "rest"])
            temporaries = {**self.temporaries, **factor}
            found = Copy(Offset("load_state", 1), "read", count)
            return Plan(
                {a.name: a.size for a in given},
                {"load": temporaries.pop("load"), "read": count},
                temporaries,
                [tree, *self.steps("t", "q", "v", ["a"] if held else []), found],
                self.sources(held),
            )

        results = arguments({"load": n, "read": count})
        return model.compute.kept(key, lambda: Kernel("forces", given, results, key=key, build=build))

    def slopes(self, t: Array, q: Array, v: Array, f: Array, *last: Array) -> tuple[Array, Array, Array]:
        """d/dq (tangent), d/dv and d/df of the efforts, where f are the forces of all rows."""
        model, n, count = self.model, self.model.nv, self.rows.count
        key = f"simulate:reaction_slopes:{model.fingerprint}:{self.key}"

        def made() -> ca.Function:
            (t, q, v, p, r), u, reads = self._graph
            f, d, at = ca.SX.sym("f", count), ca.SX.sym("d", n), self.rows.graph
            T = ca.substitute(ca.densify(at.found.basis), ca.vertcat(at.q, at.parameters), ca.vertcat(q, p))
            u = ca.substitute(u, r, selected(self.rows, T, reads) @ f)
            moved = ca.substitute(u, q, model.space.integrate(q, d))
            found = [ca.substitute(ca.jacobian(moved, x), d, ca.SX.zeros(n)) for x in (d, v, f)]
            return ca.Function("slopes", [t, q, v, f, p], found)

        given = {"t": 1, "q": model.nq, "v": n, "f": count, "parameters": len(model.parameters) or None}
        results = {"dq": (n, n), "dv": (n, n), "df": (n, count)}
        kernel = model.compute.kept(key, lambda: function_kernel("forces", key, given, results, made))
        dq, dv, df = kernel(t, q, v, f, *last)
        return dq, dv, df

    # --- in a run ---------------------------------------------------------------------------------------------------------

    def efforts(self, system: Simulation, t: Any, q: Array, v: Array, tau: Array) -> Array:
        """(..., nv): besides all other efforts tau; t is a time, or (N, 1) times."""
        if np.ndim(t) and (system.loads.has_wrenches or system.prescribes):
            found = [
                self._efforts_at(
                    system, float(x), q[..., k, :], v[..., k, :], np.broadcast_to(tau, v.shape)[..., k, :]
                )
                for k, x in enumerate(np.ravel(t))
            ]
            return np.stack(found, axis=-2)
        return self._efforts_at(system, t, q, v, tau)

    def _efforts_at(self, system: Simulation, t: Any, q: Array, v: Array, tau: Array) -> Array:
        held = tuple(system.prescribed.tolist()) if system.prescribes else ()
        p = system.parameter_array()
        p = p[..., None, :] if np.ndim(t) and p.ndim > 1 else p
        last = [p] if system.model.parameters else []
        given = [np.atleast_1d(np.asarray(t, dtype=float)), q, v, tau]
        if held:
            given.append(system.prescribed_motions.at(float(t))[2])
        if system.loads.has_wrenches:
            given.append(system.loads.wrench_array(float(t), q, v, system.parameters))
        chosen = system.surface.chosen(q, v, unique=True, along_time=bool(np.ndim(t)))
        active = system.model.constrained_compute.rows.system("simulate", system.active).active
        kernel = self.kernel(wrenches=system.loads.has_wrenches, held=held)
        u: Array = kernel(*given, chosen, active, *last)[0]
        if not np.isfinite(u).all():
            at = np.ravel(t)[int(np.argmin(np.isfinite(u).all(axis=-1).ravel())) % np.size(t)]
            raise NumericalError(
                f"simulate: forces that read reactions ({', '.join(map(repr, self.names))}) have no solution "
                f"at t = {at:.6g} s: they change the reactions by more than they follow from (friction jams the mechanism), "
                "or these are not finite; a smaller coefficient or a smoother law has one"
            )
        return u

    def feedback_slopes(
        self, system: Simulation, t: float, q: Array, v: Array, tau: Array, d: Any, wrenches: Any
    ) -> tuple[Array, Array]:
        """How efforts that read reactions follow: all efforts change by X^-1 (U d(q, v) + dtau), where dtau are others.

        With `d` the derivatives of the accelerations under all efforts tau, G^T f = r(q, v, a) - tau gives those of the
        forces f of the rows, on which the efforts u(q, v, f) depend: X = 1 - u_f f_tau, U = u_(q, v) + u_f f_(q, v).
        """
        rows, nv = system.model.constrained_compute.rows, system.model.nv
        tree, a = rows.primary, d.acceleration
        last = [system.parameter_array()] if system.model.parameters else []
        given = {"wrenches": wrenches, "parameters": system.parameters}
        of_tree = tree.inverse_dynamics_derivatives(q, v, a, **given)
        chosen = np.flatnonzero(system.surface.chosen(q, v, unique=True))
        G = rows.terms(q[None], v[None], *(x[None] for x in last))[1][0][chosen]
        f, solve = np.zeros(rows.count), np.linalg.pinv(G.T)
        f[chosen] = solve @ (tree.inverse_dynamics(q, v, a, **given) - tau)
        pushed = rows.blocks.spread_square(rows.derivatives(q, v, a, f, *last)[0])[0]
        f_q = solve @ (of_tree.dq + of_tree.da @ d.dq - pushed)
        f_v = solve @ (of_tree.dv + of_tree.da @ d.dv)
        f_tau = solve @ (of_tree.da @ d.dtau - np.eye(nv))
        u_q, u_v, u_f = self.slopes(np.array([t]), q, v, f, *last)
        u_f = u_f[:, chosen]
        return np.eye(nv) - u_f @ f_tau, np.hstack([u_q + u_f @ f_q, u_v + u_f @ f_v])
