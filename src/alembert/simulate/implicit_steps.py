"""The generalised-alpha scheme on Lie groups (Bruels, Cardona and Arnold 2012), implicit, of order 2.

It damps what is too fast for the step, down to the spectral radius rho per step at infinite frequency, and leaves
slow motion alone. With accelerations a and their weighted means b,

    (1 - m) b_1 + m b_0 = (1 - f) a_1 + f a_0                                       (1)
    q_1 = integrate(q_0, h v_0 + h^2 ((1/2 - beta) b_0 + beta b_1))                 (2)
    v_1 = v_0 + h ((1 - gamma) b_0 + gamma b_1)                                     (3)
    inverse_dynamics(q_1, v_1, a_1) = tau_1                                         (4)

(4) is solved for a_1. The machine's state is (number of the step, 0, q, v, a, b). States x of controllers follow the
trapezoidal rule, x_1 = x_0 + h/2 (x'_0 + x'_1), and their increments are unknowns beside a_1.

Implicit steps are solved by Newton's method with the exact Jacobian at the predicted solution, which is factorised once per
step. Corrections are repeated until they are rounding, in every lane by itself.

With flexible bodies, and for large trees, a correction is one sweep in O(n) (`alembert.sweeps.correction`), whose Jacobian
has the masses, springs and dampers of joints and modes; corrections then shrink in proportion to the step, and are repeated
until what the next one would change is below `ENOUGH`. Where compiled controllers or force elements act the Jacobian should
know them: there it is exact, but for flexible models of many speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from alembert.algorithms import kernels
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.dense import IdentitySource, InverseSource, VectorProductSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import UnsupportedError
from alembert.lowering.plan import Buffer, Call, Columns, Copy, Offset, Plan, Repeat, Step, recorded
from alembert.simulate.step_code import Layout, StepModel, arguments, kept_steps
from alembert.sweeps import CORRECTION, INVERSE_DYNAMICS

MOST = 40  # iterations
LONGEST = 60_000
"""operations of the residual times unknowns, up to which its Jacobian is straight code"""
CLOSE = 1e-9  # of the unknowns: below it corrections that no longer shrink are rounding
SMALL = 1e-13  # the same where the unknowns are zero, in SI units
ENOUGH = 1e-10  # of the accelerations: of the positions it is smaller by the square of the step
MOST_DENSE = 24  # speeds; beyond it the Jacobian of all speeds takes long to compile (measured)


def newton_loop(
    arguments: Mapping[str, int],
    symbols: Mapping[str, ca.SX],
    unknown: ca.SX,
    *,
    predicted: ca.SX,
    residual: ca.SX,
    following: ca.SX,
    counted: int | None = None,
) -> Plan:
    """A step that solves residual = 0 for `unknown`, starting from `predicted`, and leaves the state `following`.

    `arguments` are those of the kernel; `symbols` stand for all of them but `every` and `count`. The state after a
    step that has not converged is NaN, but for the number of the step. Only the first `counted` unknowns tell whether it
    has: multipliers follow from them.
    """
    n = unknown.numel()
    x = ca.SX.sym("x", 2 + n)  # whether it is done, the size of the last correction, the unknowns
    done, last = x[0], x[1]
    residual, following = (ca.densify(ca.substitute(y, unknown, x[2:])) for y in (residual, following))
    names, values = [*symbols, "x"], [*symbols.values(), x]
    solver = _solver(values, names, residual)

    c = ca.SX.sym("c", n)
    telling = n if counted is None else counted
    size, reach = ca.norm_inf(c[:telling]), ca.norm_inf(x[2 : 2 + telling])
    settled = ca.logic_and(size <= CLOSE * reach + SMALL, size > 0.5 * last)
    small = ca.logic_or(size <= 1e-16 * reach, settled)
    moved = ca.vertcat(ca.if_else(small, 1, 0), size, x[2:] - c)
    good = ca.vertcat(following[0], ca.if_else(done, following[1:], ca.SX.nan(following.numel() - 1)))
    functions = {
        "predict": ca.Function("predict", values[:-1], [ca.densify(ca.vertcat(0, ca.inf, predicted))]),
        "residual": ca.Function("residual", values, [residual]),
        "update": ca.Function("update", [x, c], [ca.if_else(done, x, moved)]),
        "finish": ca.Function("finish", values, [good]),
    }
    iteration: list[Call | Copy] = [
        Call("residual", names, ["r"]),
        solver.solve,
        Call("update", ["x", "c"], ["x_next"]),
        Copy("x_next", "x"),
    ]
    return recorded(
        {key: FunctionSource(f) for key, f in functions.items()},
        arguments,
        {"x": 2 + n, "x_next": 2 + n, "r": n, "c": n, **solver.temporaries},
        [
            Call("predict", names[:-1], ["x"]),
            *solver.factor,
            Repeat(iteration, "x", MOST),
            Call("finish", names, ["next"]),
        ],
    )


@dataclass(frozen=True)
class _Solver:
    """Steps that make the Jacobian at x ready, and the one that solves it for c from r."""

    factor: Sequence[Step]
    solve: Call
    temporaries: dict[str, int]


def _solver(values: Sequence[ca.SX], names: Sequence[str], residual: ca.SX) -> _Solver:
    """Straight code for small systems; loops and a column of the Jacobian at a time for large ones, which compile sooner."""
    n, x = residual.numel(), values[-1]
    r = ca.SX.sym("r", n)
    if n * ca.Function("residual", values, [residual]).n_instructions() <= LONGEST:
        factors = factorise(ca.jacobian(residual, x)[:, 2:])
        LU = ca.SX.sym("LU", factors.numel())
        factor = FunctionSource(ca.Function("factor", values, [factors]))
        back = FunctionSource(ca.Function("solve", [LU, r], [solve(LU, r)]))
        return _Solver([Call(factor, names, ["LU"])], Call(back, ["LU", "r"], ["c"]), {"LU": n * n})
    along = ca.SX.sym("along", n)
    column = ca.densify(ca.jtimes(residual, x, ca.vertcat(0, 0, along)))
    column, kept, common = ca.extract_parametric(column, ca.vertcat(*map(ca.vec, values)))
    used = [value for value in values if ca.depends_on(column, value)]
    shared = ca.vertcat(*map(ca.vec, used), *common)
    known = ca.vertcat(*map(ca.vec, used), *kept)
    return _Solver(
        [
            Call(FunctionSource(ca.Function("shared", values, [shared])), names, ["shared"]),
            Call(IdentitySource(n), [], ["unit"]),
            Columns(ca.Function("column", [known, along], [column]), "shared", ["unit"], ["J"], n),
            Call(InverseSource(n, forward=True), ["J"], ["inverse"]),
        ],
        Call(VectorProductSource(n), ["inverse", "r"], ["c"]),
        {"shared": shared.numel(), **dict.fromkeys(("unit", "J", "inverse"), n * n)},
    )


def factorise(A: ca.SX) -> ca.SX:
    """A = L U by rows in one vector, without pivoting: A is near a multiple of the mass matrix, bordered or not."""
    A = ca.densify(ca.SX(A))
    n = A.shape[0]
    for k in range(n):
        A[k, k] = 1 / A[k, k]
        for i in range(k + 1, n):
            A[i, k] = A[i, k] * A[k, k]
            A[i, k + 1 :] = A[i, k + 1 :] - A[i, k] * A[k, k + 1 :]
    return ca.vec(A.T)


def solve(LU: ca.SX, b: ca.SX) -> ca.SX:
    n = b.numel()
    A = ca.reshape(LU, n, n).T
    x = [b[k] for k in range(n)]
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - A[i, k] * x[k]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - A[i, k] * x[k]
        x[i] = x[i] * A[i, i]
    return ca.vertcat(*x)


RHO = 0.8  # spectral radius at infinite frequency
M, F = (2 * RHO - 1) / (RHO + 1), RHO / (RHO + 1)
GAMMA = 0.5 + F - M
BETA = (GAMMA + 0.5) ** 2 / 4


def layout(plant: StepModel) -> Layout:
    states = {"x": plant.states} if plant.states else {}
    return Layout(q=plant.model.nq, **dict.fromkeys("vab", plant.model.nv), **states)


def stepping_kernel(plant: StepModel) -> Kernel:
    """As `alembert.simulate.step_code.stepping_kernel`, on the state described above."""
    if any(plant.prescribed):
        raise UnsupportedError(
            "simulate: prescribed motion and integrator 'generalised_alpha' do not go together; choose 'rk4'"
        )
    size = layout(plant).size
    given = arguments(plant, size)
    modes, large = plant.model.compute.tree.has_modes, plant.model.nv > MOST_DENSE
    driven = plant.controller is not None or plant.elements is not None
    by_sweeps = not (plant.model.is_constrained or plant.states) and (
        (modes and large) if driven else (modes or large)
    )
    source = _sweep_source if by_sweeps else _source
    return kept_steps(plant, "generalised_alpha", given, size, lambda: source(plant, layout(plant), given))


@dataclass(frozen=True)
class _Step:
    """(1)-(3) on symbols, for the accelerations `a1`."""

    plant: StepModel
    layout: Layout
    state: ca.SX
    h: ca.SX
    a1: ca.SX

    @cached_property
    def end(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """q, v and b at the end of the step"""
        state, h = self.state, self.h
        q0, v0, a0, b0 = (state[self.layout[name]] for name in ("q", "v", "a", "b"))
        b1 = ((1 - F) * self.a1 + F * a0 - M * b0) / (1 - M)  # (1)
        along = h * v0 + h**2 * ((0.5 - BETA) * b0 + BETA * b1)
        q1 = self.plant.model.space.integrate(q0, along)  # (2)
        return q1, v0 + h * ((1 - GAMMA) * b0 + GAMMA * b1), b1  # (3)

    def following(self, x: ca.SX | None = None) -> ca.SX:
        """The state after the step, with the states x of controllers."""
        q, v, b = self.end
        more = {"x": x} if self.plant.states else {}
        return self.layout.symbolic(self.state[0] + 1, self.state[1], q=q, v=v, a=self.a1, b=b, **more)


def _sweep_source(plant: StepModel, layout: Layout, given: list[Argument]) -> KernelSource:
    model, nv = plant.model, plant.model.nv
    names = {a.name for a in given}
    state, h, start = ca.SX.sym("state", layout.size), ca.SX.sym("h"), ca.SX.sym("start")
    x = ca.SX.sym("x", 2 + nv)  # whether it is done, the size of the last correction, the unknowns
    follow = (1 - F) / (1 - M)
    weights = [ca.repmat(h**2 * BETA * follow, nv, 1), ca.repmat(h * GAMMA * follow, nv, 1)]

    da, done, last = ca.SX.sym("da", nv), x[0], x[1]
    size, reach = _largest(da), _largest(x[2:])
    settled = ca.logic_and(size <= CLOSE * reach + SMALL, size > 0.5 * last)
    small = ca.logic_or(
        size * size <= ENOUGH * reach * last, settled
    )  # the next one is size / last times smaller
    moved = ca.vertcat(ca.if_else(small, 1, 0), size, x[2:] + da)
    functions = {
        "predict": ([state], [ca.vertcat(0, 0, state[layout["a"]])]),
        "weights": ([h], weights),
        "numbers": ([state, start, h, x], [start + (state[0] + 1) * h, ca.vertcat(h, done)]),
        "update": ([x, da], [ca.if_else(done, x, moved)]),
    }
    shared, a1 = ca.SX.sym("shared", 2), ca.SX.sym("a1", nv)
    end = _Step(plant, layout, state, shared[0], a1)
    q1, v1, _ = end.end
    following = end.following()
    good = ca.if_else(shared[1], following[2:], ca.SX.nan(layout.size - 2))
    functions["motion"] = ([shared, state, a1], [q1, v1, a1])
    functions["finish"] = ([shared, state, a1], [ca.vertcat(following[:2], good)])
    known: list[Buffer] = ["shared", "state", Offset("x", 2)]
    iteration: list[Step] = [
        Call("numbers", ["state", "start", "step", "x"], ["t", "shared"]),
        Call("motion", known, ["q", "v", "a"]),
    ]
    more = ["parameters"] if "parameters" in names else []
    effort = "effort"
    if plant.controller is not None or plant.elements is not None:
        effort_now, t, q, v = (
            ca.SX.sym(label, n) for label, n in (("effort", nv), ("t", 1), ("q", model.nq), ("v", nv))
        )
        p = ca.SX.sym("parameters", len(model.parameters))
        total, _ = plant.all_efforts(effort_now, t, q, v, ca.SX(0, 1), p)
        functions["controller"] = ([effort_now, t, q, v, *([p] if more else [])], [total])
        iteration.append(Call("controller", ["effort", "t", "q", "v", *more], ["tau"]))
        effort = "tau"
    wrench = ["wrench"] if "wrench" in names else []
    inputs = ["q", "v", "a", *wrench, "tau", "beta", "gamma"]
    sources: dict[str, KernelSource] = {
        key: FunctionSource(ca.Function(key, values, [ca.densify(y) for y in results]))
        for key, (values, results) in functions.items()
    }
    sources["correction"] = kernels.program_source(model.compute.tree, CORRECTION, inputs)
    buffers = [effort if label == "tau" else label for label in inputs]
    iteration += [
        Call("correction", [*buffers, *more], ["da"]),
        Call("update", ["x", "da"], ["x_next"]),
        Copy("x_next", "x"),
    ]
    sizes = {
        "t": 1,
        "shared": 2,
        "q": model.nq,
        **dict.fromkeys(("v", "a", "tau", "da", "beta", "gamma"), nv),
    }
    return recorded(
        sources,
        {a.name: a.size for a in given},
        {"x": 2 + nv, "x_next": 2 + nv, **sizes},
        [
            Call("predict", ["state"], ["x"]),
            Call("weights", ["step"], ["beta", "gamma"]),
            Repeat(iteration, "x", MOST),
            Call("numbers", ["state", "start", "step", "x"], ["t", "shared"]),
            Call("finish", known, ["next"]),
        ],
    )


def _largest(x: ca.SX) -> ca.SX:
    """The largest magnitude, by pairs: a chain of comparisons would wait for each."""
    found = [ca.fabs(x[k]) for k in range(x.numel())]
    while len(found) > 1:
        pairs = [ca.fmax(a, b) for a, b in zip(found[::2], found[1::2], strict=False)]
        found = pairs + found[2 * len(pairs) :]
    return found[0]


def _source(plant: StepModel, layout: Layout, given: list[Argument]) -> KernelSource:
    symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in given[:-2]}
    state, h = symbols["state"], symbols["step"]
    a1 = ca.SX.sym("a1", plant.model.nv)
    step = _Step(plant, layout, state, h, a1)
    q1, v1, _ = step.end
    more = [name for name in ("wrench", "parameters") if name in symbols]
    names = ("q", "v", "a", "wrench") if "wrench" in more else ("q", "v", "a")
    inverse = plant.model.symbolic.function(INVERSE_DYNAMICS, names)
    required = inverse(q1, v1, a1, *(symbols[name] for name in more))
    t0 = symbols["start"] + state[0] * h
    p, d = symbols.get("parameters", ca.SX(0, 1)), ca.SX.sym("d", plant.states)
    x0 = state[layout["x"]] if plant.states else ca.SX(0, 1)
    tau, rate = plant.all_efforts(symbols["effort"], t0 + h, q1, v1, x0 + d, p)
    residual = required - tau  # (4)
    if plant.states:
        q0, v0 = state[layout["q"]], state[layout["v"]]
        _, before = plant.all_efforts(symbols["effort"], t0, q0, v0, x0, p)
        residual = ca.vertcat(residual, d - h / 2 * (before + rate))
    return newton_loop(
        {a.name: a.size for a in given},
        symbols,
        ca.vertcat(a1, d),
        predicted=ca.vertcat(state[layout["a"]], ca.SX.zeros(plant.states)),
        residual=residual,
        following=step.following(x0 + d),
    )
