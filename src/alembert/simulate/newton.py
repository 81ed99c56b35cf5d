"""Implicit steps in the compiled loop: Newton's method with the exact Jacobian at the predicted solution.

The Jacobian is factorised once per step. Corrections are repeated until they are rounding, in every lane by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from alembert.engine.codegen import FunctionSource
from alembert.lowering.plan import Call, Copy, Plan, Repeat, recorded

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
