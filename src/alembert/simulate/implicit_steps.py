"""The generalised-alpha scheme on Lie groups (Bruels, Cardona and Arnold 2012), implicit, of order 2.

It damps what is too fast for the step, down to the spectral radius rho per step at infinite frequency, and leaves
slow motion alone. With accelerations a and their weighted means b,

    (1 - m) b_1 + m b_0 = (1 - f) a_1 + f a_0                                       (1)
    q_1 = integrate(q_0, h v_0 + h^2 ((1/2 - beta) b_0 + beta b_1))                 (2)
    v_1 = v_0 + h ((1 - gamma) b_0 + gamma b_1)                                     (3)
    inverse_dynamics(q_1, v_1, a_1) = tau_1                                         (4)

(4) is solved for a_1. The machine's state is (number of the step, 0, q, v, a, b).

Implicit steps are solved by Newton's method with the exact Jacobian at the predicted solution, which is factorised once per
step. Corrections are repeated until they are rounding, in every lane by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import UnsupportedError
from alembert.lowering.plan import Call, Copy, Plan, Repeat, recorded
from alembert.simulate.stepping import Layout, StepModel, arguments, kept_kernel
from alembert.sweeps import INVERSE_DYNAMICS

MOST = 40  # iterations
CLOSE = 1e-9  # of the unknowns: below it corrections that no longer shrink are rounding
SMALL = 1e-13  # the same where the unknowns are zero, in SI units


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
    residual, following = (ca.substitute(y, unknown, x[2:]) for y in (residual, following))
    factors = factorise(ca.jacobian(residual, x)[:, 2:])
    LU, r = ca.SX.sym("LU", factors.numel()), ca.SX.sym("r", n)

    correction = -solve(LU, r)
    telling = n if counted is None else counted
    size, reach = ca.norm_inf(correction[:telling]), ca.norm_inf(x[2 : 2 + telling])
    settled = ca.logic_and(size <= CLOSE * reach + SMALL, size > 0.5 * last)
    small = ca.logic_or(size <= 1e-16 * reach, settled)
    moved = ca.vertcat(ca.if_else(small, 1, 0), size, x[2:] + correction)
    good = ca.vertcat(following[0], ca.if_else(done, following[1:], ca.SX.nan(following.numel() - 1)))

    names, values = list(symbols), list(symbols.values())
    functions = {
        "predict": ca.Function("predict", values, [ca.densify(ca.vertcat(0, ca.inf, predicted))]),
        "factor": ca.Function("factor", [*values, x], [factors]),
        "residual": ca.Function("residual", [*values, x], [ca.densify(residual)]),
        "update": ca.Function("update", [x, r, LU], [ca.if_else(done, x, moved)]),
        "finish": ca.Function("finish", [*values, x], [ca.densify(good)]),
    }
    iteration: list[Call | Copy] = [
        Call("residual", [*names, "x"], ["r"]),
        Call("update", ["x", "r", "LU"], ["x_next"]),
        Copy("x_next", "x"),
    ]
    return recorded(
        {key: FunctionSource(f) for key, f in functions.items()},
        arguments,
        {"x": 2 + n, "x_next": 2 + n, "r": n, "LU": factors.numel()},
        [
            Call("predict", names, ["x"]),
            Call("factor", [*names, "x"], ["LU"]),
            Repeat(iteration, "x", MOST),
            Call("finish", [*names, "x"], ["next"]),
        ],
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
    return Layout(q=plant.model.nq, **dict.fromkeys("vab", plant.model.nv))


def stepping_kernel(plant: StepModel) -> Kernel:
    """As `alembert.simulate.stepping.stepping_kernel`, on the state described above."""
    if any(plant.prescribed):
        raise UnsupportedError(
            "simulate: prescribed motion and integrator 'generalised_alpha' do not go together; choose 'rk4'"
        )
    size = layout(plant).size
    given = arguments(plant, size)
    return kept_kernel(plant, "generalised_alpha", given, size, lambda: _source(plant, layout(plant), given))


def _source(plant: StepModel, layout: Layout, given: list[Argument]) -> KernelSource:
    symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in given[:-2]}
    state, h = symbols["state"], symbols["step"]
    q0, v0, a0, b0 = (state[layout[name]] for name in ("q", "v", "a", "b"))
    a1 = ca.SX.sym("a1", plant.model.nv)
    b1 = ((1 - F) * a1 + F * a0 - M * b0) / (1 - M)  # (1)
    q1 = plant.model.space.integrate(q0, h * v0 + h**2 * ((0.5 - BETA) * b0 + BETA * b1))  # (2)
    v1 = v0 + h * ((1 - GAMMA) * b0 + GAMMA * b1)  # (3)
    more = [name for name in ("wrench", "parameters") if name in symbols]
    names = ("q", "v", "a", "wrench") if "wrench" in more else ("q", "v", "a")
    inverse = plant.model.symbolic.function(INVERSE_DYNAMICS, names)
    required = inverse(q1, v1, a1, *(symbols[name] for name in more))
    t1 = symbols["start"] + (state[0] + 1) * h
    tau = plant.all_efforts(symbols["effort"], t1, q1, v1, symbols.get("parameters", ca.SX(0, 1)))
    return newton_loop(
        {a.name: a.size for a in given},
        symbols,
        a1,
        predicted=a0,
        residual=required - tau,  # (4)
        following=layout.symbolic(state[0] + 1, state[1], q=q1, v=v1, a=a1, b=b1),
    )
