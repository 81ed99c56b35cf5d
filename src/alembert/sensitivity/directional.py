"""Derivatives of any algorithm along directions: tangent sweeps and their adjoints.

Differentiating the unrolled sweeps gives sweeps again: the derivative of each step, run in the same order (forward mode,
Sohl and Bobrow's algorithm of 2001 for any direction) or in the opposite one (reverse mode). A Jacobian-vector
product costs a small multiple of the algorithm itself, whatever the number of directions that the vector mixes.

Second derivatives are for exact Hessians: contracted with a weight, at the cost of one gradient per direction.

Directions of configurations are tangent: with q' = T(q) dq, the matrix of `Space.rate`,

    jvp = df/dq T dq + df/dv dv + ...,      vjp = (T^T (df/dq)^T, (df/dv)^T, ...) lambda       (1)

An algorithm is a CasADi function; `turned` says which of its inputs are configurations.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from alembert.sweeps.tree import Tree


def stacked(parts: Sequence[ca.SX]) -> ca.SX:
    """Several matrices, each by columns, as one column."""
    return ca.vertcat(ca.SX(0, 1), *(ca.vec(ca.densify(part)) for part in parts))


def results(function: ca.Function, inputs: Sequence[ca.SX]) -> ca.SX:
    """All results as one column."""
    found = function(*inputs)
    return stacked(found if isinstance(found, tuple) else (found,))


def jvp(
    function: ca.Function,
    tree: Tree,
    turned: Sequence[bool],
    inputs: Sequence[ca.SX],
    directions: Sequence[ca.SX],
) -> tuple[ca.SX, ca.SX]:
    """The results as one column, and their derivative along `directions`, one per input (symbols)."""
    value = results(function, inputs)
    moved = [
        tree.model.space.rate(x, d) if is_q else d
        for x, d, is_q in zip(inputs, directions, turned, strict=True)
    ]
    return value, ca.jtimes(value, stacked(inputs), stacked(moved))


def vjp(
    function: ca.Function, tree: Tree, turned: Sequence[bool], inputs: Sequence[ca.SX], weight: ca.SX
) -> list[ca.SX]:
    """The gradient of weight . results with respect to every input (symbols), tangent for configurations."""
    total = ca.jtimes(results(function, inputs), stacked(inputs), weight, True)
    gradients = ca.vertsplit(total, [0, *_cumulative([x.numel() for x in inputs])])
    found = []
    for x, gradient, is_q in zip(inputs, gradients, turned, strict=True):
        if is_q:
            dq = ca.SX.sym("dq", tree.model.nv)
            found.append(ca.jtimes(tree.model.space.rate(x, dq), dq, gradient, True))
        else:
            found.append(ca.reshape(gradient, *x.shape))
    return found


def hessian(
    function: ca.Function,
    tree: Tree,
    turned: Sequence[bool],
    inputs: Sequence[ca.SX],
    weight: ca.SX,
    held: int = 0,
) -> ca.SX:
    """The second derivative of weight . results with respect to all inputs together (e of q + e for configurations).

    The last `held` inputs are left out.
    """
    count = len(inputs) - held
    steps, moved = [], []
    for x, is_q in zip(inputs[:count], turned, strict=False):
        step = ca.SX.sym("step", *((tree.model.nv, 1) if is_q else x.shape))
        steps.append(step)
        moved.append(ca.densify(tree.model.space.integrate(x, step) if is_q else x + step))
    total = ca.dot(results(function, [*moved, *inputs[count:]]), weight)
    along = stacked(steps)
    H, _ = ca.hessian(total, along)
    return ca.substitute(H, along, ca.SX.zeros(along.numel()))


def _cumulative(sizes: list[int]) -> list[int]:
    total, found = 0, []
    for size in sizes:
        total += size
        found.append(total)
    return found
