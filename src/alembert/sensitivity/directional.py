"""Derivatives of any program along directions: tangent sweeps and their adjoints.

Differentiating the unrolled sweeps gives sweeps again: the derivative of each step, run in the same order (forward mode,
paper 003's algorithm for any direction) or in the opposite one (reverse mode). A Jacobian-vector product costs a small
multiple of the program itself, whatever the number of directions that the vector mixes.

Second derivatives are for exact Hessians: contracted with a weight, at the cost of one gradient per direction.

Directions of q are tangent: with q' = T(q) dq, the matrix of `rate`,

    jvp = df/dq T dq + df/dv dv + ...,      vjp = (T^T (df/dq)^T, (df/dv)^T, ...) lambda       (1)
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from alembert.sweeps.program import Extent, Program, expressions
from alembert.sweeps.tree import Tree

Given = tuple[tuple[str, Extent], ...]


def rate(tree: Tree, q: ca.SX, dq: ca.SX) -> ca.SX:
    """T(q) dq over the whole tree."""
    result = ca.SX(tree.model.nq, 1)
    for joint, s_q, s_v in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        result[s_q] = joint.type.rate(q[s_q], dq[s_v])
    return result


def results(program: Program, tree: Tree, names: Sequence[str], inputs: Sequence[ca.SX]) -> ca.SX:
    """All results of a program, each by columns, as one column; the parameters are the last input."""
    found = expressions(program, tree, dict(zip(names, inputs[:-1], strict=True)), inputs[-1])
    return ca.vertcat(*(ca.vec(ca.densify(value)) for value in found.values()))


def jvp(
    program: Program, tree: Tree, names: Sequence[str], inputs: Sequence[ca.SX], directions: Sequence[ca.SX]
) -> tuple[ca.SX, ca.SX]:
    """The results (as one column) and their derivative along `directions`, one per input (the parameters' last)."""
    symbols = [ca.SX.sym(f"x{k}", *x.shape) for k, x in enumerate(inputs)]
    value = results(program, tree, names, symbols)
    moved = _lift(program, tree, names, symbols, directions)
    stacked = ca.vertcat(*(ca.vec(x) for x in symbols))
    change = ca.jtimes(value, stacked, ca.vertcat(*(ca.vec(x) for x in moved)))
    found = ca.substitute([value, change], symbols, [ca.densify(x) for x in inputs])
    return found[0], found[1]


def vjp(
    program: Program, tree: Tree, names: Sequence[str], inputs: Sequence[ca.SX], weight: ca.SX
) -> list[ca.SX]:
    """The gradient of weight . results with respect to every input, tangent for q (the parameters' last)."""
    symbols = [ca.SX.sym(f"x{k}", *x.shape) for k, x in enumerate(inputs)]
    value = results(program, tree, names, symbols)
    stacked = ca.vertcat(*(ca.vec(x) for x in symbols))
    total = ca.jtimes(value, stacked, weight, True)
    gradients = ca.vertsplit(total, [0, *_cumulative([x.numel() for x in symbols])])
    found = []
    for k, (x, gradient) in enumerate(zip(symbols, gradients, strict=True)):
        if k < len(names) and program.given[names[k]] == "q":
            dq = ca.SX.sym("dq", tree.model.nv)
            found.append(ca.jtimes(rate(tree, x, dq), dq, gradient, True))
        else:
            found.append(ca.reshape(gradient, *x.shape))
    return ca.substitute(found, symbols, [ca.densify(x) for x in inputs])


def hessian(
    program: Program, tree: Tree, names: Sequence[str], inputs: Sequence[ca.SX], weight: ca.SX
) -> ca.SX:
    """The second derivative of weight . results with respect to all inputs together (e of q + e for q).

    The parameters, last of `inputs`, are left out.
    """
    symbols = [ca.SX.sym(f"x{k}", *x.shape) for k, x in enumerate(inputs)]
    steps, moved = [], []
    for name, x in zip(names, inputs[:-1], strict=True):
        step = ca.SX.sym(f"step_{name}", *((tree.model.nv, 1) if program.given[name] == "q" else x.shape))
        steps.append(step)
        moved.append(ca.densify(_displaced(tree, x, step) if program.given[name] == "q" else x + step))
    total = ca.dot(results(program, tree, names, symbols), weight)
    total = ca.substitute([total], symbols, [*moved, inputs[-1]])[0]
    stacked = ca.vertcat(*(ca.vec(step) for step in steps))
    H, _ = ca.hessian(total, stacked)
    return ca.substitute(H, stacked, ca.SX.zeros(stacked.numel()))


def _displaced(tree: Tree, q: ca.SX, step: ca.SX) -> ca.SX:
    result = ca.SX(tree.model.nq, 1)
    for joint, s_q, s_v in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        result[s_q] = joint.type.integrate(q[s_q], step[s_v])
    return result


def _lift(
    program: Program, tree: Tree, names: Sequence[str], inputs: Sequence[ca.SX], directions: Sequence[ca.SX]
) -> list[ca.SX]:
    lifted = []
    for k, (x, direction) in enumerate(zip(inputs, directions, strict=True)):
        tangent = k < len(names) and program.given[names[k]] == "q"
        lifted.append(rate(tree, x, direction) if tangent else direction)
    return lifted


def _cumulative(sizes: list[int]) -> list[int]:
    total, found = 0, []
    for size in sizes:
        total += size
        found.append(total)
    return found
