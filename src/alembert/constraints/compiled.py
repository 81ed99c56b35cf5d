"""Constrained dynamics as two compiled functions, for mechanisms whose equations are not too many.

With the mass matrix factored along the tree, M = L^T D L (`sensitivity.mass_factor`), and a mask w of the rows that are
in the minimal set:

    z0 = L^-T (tau - bias),   Z = L^-T G^T                    inward, sparse                           (1)
    b = -(gamma + Z^T D^-1 z0)                                = -(gamma + G a_free)                    (2)
    (w Z^T D^-1 Z w + 1 - w) f = w b                          sparse factorisation                     (3)
    a = L^-1 D^-1 (z0 + Z w f)                                outward                                  (4)

The first function gives L, D and tau - bias and belongs to the tree, whatever its constraints; the second does the rest. The
mask is an argument, so that another minimal set or other active constraints need no other code. Rows that vanish identically (those of planar mechanisms in space) cost nothing, and where loops form a chain (3) is linear in their number.
Besides a and f the function returns what tells whether the mask was good at this state:

    status = (quality, left, size, slack, other)                                                       (5)

quality: the smallest pivot of (3) relative to its diagonal, or the squared length of a chosen row relative to its loop's
longest; left: the largest violation among all active rows; size: of the terms there; slack: how far the state is from
the constraint surface; other: the squared relative length of the longest active row that was not chosen. Rows with active
= 0 do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.constraints.equations import equations
from alembert.engine.kernel import Argument, Kernel
from alembert.engine.pipeline import PipelineSource, Stage
from alembert.engine.source import FunctionSource, Source
from alembert.model import WORLD
from alembert.sensitivity.mass_factor import Pattern
from alembert.sweeps import INVERSE_DYNAMICS, MASS_MATRIX, expressions

if TYPE_CHECKING:
    from alembert.model import Model

LARGEST = 20_000
"""cost above which compiling takes too long"""
_RESIDUAL = 150


def cost(model: Model, sizes: Sequence[int]) -> int:
    """About how many multiplications (1) and (3) take, from the topology; `sizes` are the rows of each constraint."""
    tree = model._tree
    supports = []
    for loop in model.loops:
        nodes = [_node(model, name) for name in (loop.frame_a, loop.frame_b)]
        supports.append(np.logical_or(*(tree.support[k] for k in nodes)))
    for coupling in model.couplings:
        nodes = [tree.joints.index(model.joint(name)) for name in (coupling.joint, *coupling.masters)]
        supports.append(np.logical_or.reduce([tree.support[k] for k in nodes]))
    if not np.any(sizes):
        return 0
    touches = np.array(supports)
    coupled = np.repeat(np.repeat(touches @ touches.T, sizes, axis=0), sizes, axis=1)
    upper, _ = ca.sparsify(ca.DM(coupled.astype(float))).sparsity().ldl()
    fill = np.bincount(upper.row(), minlength=len(coupled))
    inboard = np.array([len(row) for row in Pattern(tree).inboard])
    half = sum(int(n) * int(np.sum(inboard[t])) for n, t in zip(sizes, touches, strict=True))
    return int(np.sum((fill + 1) ** 2)) + half + _RESIDUAL * len(model.loops)


def _node(model: Model, frame: str) -> int:
    body = model.frame(frame).body
    return -1 if body == WORLD else model._tree.carriers[model.body_index(body)][0]


def tree_kernel(model: Model, *, wrenches: bool) -> Kernel:
    """(q, v, tau[, wrench][, parameters]) -> L and 1/D, tau - bias."""
    tree, pattern = model._tree, Pattern(model._tree)
    hint = f"the model has {model.nv} degrees of freedom"
    inputs = [
        Argument("q", (model.nq,), f"the model has {model.nq} coordinates"),
        Argument("v", (model.nv,), hint),
        Argument("tau", (model.nv,), hint),
    ]
    if wrenches:
        inputs.append(Argument("wrench", (len(tree), 6)))
    inputs += _parameters(model)
    results = [Argument("factor", (pattern.size,)), Argument("rest", (model.nv,))]

    def build() -> Source:
        symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in inputs}
        parameters = symbols.get("parameters", ca.SX(0, 1))
        given = {name: symbols[name] for name in ("q", "v", "wrench") if name in symbols}
        bias = expressions(INVERSE_DYNAMICS, tree, given, parameters)["tau"]
        M = expressions(MASS_MATRIX, tree, {"q": symbols["q"]}, parameters)["matrix"]
        outputs = [pattern.factor(M), symbols["tau"] - bias]
        return FunctionSource(ca.Function("tree", list(symbols.values()), [ca.densify(x) for x in outputs]))

    key = f"{model.fingerprint}:factored_tree:{wrenches}"
    return Kernel("forward_dynamics", inputs, results, key=key, build=build)


def constraint_kernel(model: Model, slices: Sequence[slice]) -> Kernel:
    """(q, v, factor, rest, chosen, active[, parameters]) -> a, f, T f by loops, status.

    `slices` are the rows of each loop, then of each coupling.
    """
    pattern, nv, rows = Pattern(model._tree), model.nv, slices[-1].stop
    state = [Argument("q", (model.nq,)), Argument("v", (nv,))]
    tree = [Argument("factor", (pattern.size,)), Argument("rest", (nv,))]
    masks = [Argument("chosen", (rows,)), Argument("active", (rows,))]
    inputs = [*state, *tree, *masks, *_parameters(model)]
    results = [
        Argument("a", (nv,)),
        Argument("f", (rows,)),
        Argument("reactions", (max(1, len(model.loops)), 6)),
        Argument("status", (5,)),
    ]

    def build() -> Source:
        terms, solve = _stages(model, pattern, slices)
        between = {f"t{k}": terms.numel_out(k) for k in range(terms.n_out())}
        at = [a.name for a in (*state, *_parameters(model))]
        given = [*(a.name for a in tree), *between, "v", *(a.name for a in masks)]
        return PipelineSource(
            {a.name: a.size for a in inputs},
            {a.name: a.size for a in results},
            between,
            [
                Stage(FunctionSource(terms), at, list(between)),
                Stage(FunctionSource(solve), given, [a.name for a in results]),
            ],
        )

    key = f"{model.fingerprint}:constraint_solution"
    return Kernel("constraint_solution", inputs, results, key=key, build=build)


def _parameters(model: Model) -> list[Argument]:
    return [Argument("parameters", (len(model.parameters),))] if model.parameters else []


def _stages(model: Model, pattern: Pattern, slices: Sequence[slice]) -> tuple[ca.Function, ca.Function]:
    """The terms at a state, and the solution."""
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    parameters = ca.SX.sym("parameters", len(model.parameters))
    found = equations(model._tree, q, v, parameters)
    G, T = ca.sparsify(found.jacobian), ca.sparsify(found.basis)
    outputs = [ca.densify(x) for x in (G.nz[:], found.bias, found.residual, T.nz[:])]
    terms = ca.Function("terms", [q, v, parameters] if model.parameters else [q, v], outputs)

    rows = G.shape[0]
    sizes = {"factor": pattern.size, "rest": model.nv, "G": G.nnz(), "gamma": rows, "phi": rows, "T": T.nnz()}
    sizes |= {"v": model.nv, "chosen": rows, "active": rows}
    x = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    G, T = ca.SX(G.sparsity(), x["G"]), ca.SX(T.sparsity(), x["T"])
    a, f, status = _solution(
        pattern, x["factor"], x["rest"], G, x["gamma"], x["phi"], x["v"], x["chosen"], x["active"], slices
    )
    wrenches = [f[s].T @ T[s, :] for s in slices[: len(model.loops)]] or [ca.SX(1, 6)]
    results = [ca.densify(y) for y in (a, f, ca.vertcat(*wrenches), status)]
    return terms, ca.Function("solve", list(x.values()), results)


def _solution(
    pattern: Pattern,
    factor: ca.SX,
    rest: ca.SX,
    G: ca.SX,
    gamma: ca.SX,
    phi: ca.SX,
    v: ca.SX,
    chosen: ca.SX,
    active: ca.SX,
    groups: Sequence[slice],
) -> tuple[ca.SX, ca.SX, ca.SX]:
    inverse = factor[len(pattern.positions) :]
    z0 = _inward(pattern, factor, rest)
    Z = ca.horzcat(*(_inward(pattern, factor, G[i, :].T) for i in range(G.shape[0])))  # (1)
    weighted = ca.diag(inverse) @ Z
    b = -(gamma + weighted.T @ z0)  # (2)
    mask = ca.diag(chosen)
    admittance = mask @ (Z.T @ weighted) @ mask + ca.diag(1 - chosen)
    D, LT, order = ca.ldl(admittance)
    f = ca.ldl_solve(chosen * b, D, LT, order)  # (3)
    a_free = _outward(pattern, factor, inverse * z0)
    a = _outward(pattern, factor, inverse * z0 + weighted @ (chosen * f))  # (4)
    return a, f, _status(G, gamma, phi, v, a, a_free, chosen, active, admittance, D, order, groups)


def _status(
    G: ca.SX,
    gamma: ca.SX,
    phi: ca.SX,
    v: ca.SX,
    a: ca.SX,
    a_free: ca.SX,
    chosen: ca.SX,
    active: ca.SX,
    admittance: ca.SX,
    D: ca.SX,
    order: Sequence[int],
    groups: Sequence[slice],
) -> ca.SX:
    """(5)"""
    lengths = ca.sum2(G * G)
    scale = ca.SX(G.shape[0], 1)
    for group in groups:
        longest = ca.SX(0)
        for i in range(group.start, group.stop):
            longest = ca.fmax(longest, lengths[i])
        scale[group] = ca.if_else(longest > 0, longest, 1.0)
    quality = ca.SX(1)
    for k, i in enumerate(order):
        quality = ca.fmin(quality, D[k] / admittance[i, i])
        quality = ca.fmin(quality, lengths[i] / scale[i] + (1 - chosen[i]))
    root = ca.sqrt(scale)
    left, broken, open_ = (
        _largest(active * x / root) for x in (G @ a + gamma, G @ v, phi)
    )
    speed = ca.dot(v, v)
    size = ca.sqrt(ca.dot(a, a)) + ca.sqrt(ca.dot(a_free, a_free)) + speed
    slack = open_ + broken / ca.if_else(speed > 0, ca.sqrt(speed), 1.0)
    other = _largest((active - chosen) * lengths / scale)
    return ca.vertcat(quality, left, size, slack, other)


def _largest(x: ca.SX) -> ca.SX:
    total = ca.SX(0)
    for k in range(x.numel()):
        total = ca.fmax(total, ca.fabs(x[k]))
    return total


def _inward(pattern: Pattern, factor: ca.SX, b: ca.SX) -> ca.SX:
    """L^-T b; zeros of b that no nonzero reaches stay structural."""
    x = {i: b[i] for i in range(b.numel()) if b[i].nnz()}
    for k in reversed(range(b.numel())):
        if k in x:
            for i in pattern.inboard[k]:
                x[i] = x.get(i, ca.SX(0)) - factor[pattern.positions[k, i]] * x[k]
    result = ca.SX(b.numel(), 1)
    for i in sorted(x):
        result[i] = x[i]
    return result


def _outward(pattern: Pattern, factor: ca.SX, x: ca.SX) -> ca.SX:
    """L^-1 x"""
    found = [x[i] for i in range(x.numel())]
    for k in range(len(found)):
        for i in pattern.inboard[k]:
            found[k] = found[k] - factor[pattern.positions[k, i]] * found[i]
    return ca.vertcat(*found)
