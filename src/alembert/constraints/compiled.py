"""Constrained dynamics as two compiled functions, for mechanisms whose equations are not too many.

With the mass matrix factored along the tree, M = L^T D L (`sensitivity.mass_factor`), and a mask w of the rows that are
in the minimal set:

    z0 = L^-T (tau - bias),   Z = L^-T G^T                    inward, sparse                           (1)
    b = -(gamma + Z^T D^-1 z0)                                = -(gamma + G a_free)                    (2)
    (w Z^T D^-1 Z w + 1 - w) f = w b                          sparse factorisation                     (3)
    a = L^-1 D^-1 (z0 + Z w f)                                outward                                  (4)

The first function gives L, D and tau - bias and belongs to the tree, whatever its constraints; the second does the rest. The
mask is an argument, so that another minimal set or other active constraints need no other code. Rows that vanish identically
(those of planar mechanisms in space) cost nothing, and where loops form a chain (3) is linear in their number.
Besides a and f the function returns what tells whether the mask was good at this state:

    status = (quality, left, size, slack, other)                                                       (5)

quality: the smallest pivot of (3) relative to its diagonal, or the squared length of a chosen row relative to its loop's
longest; left: the largest violation among all active rows; size: of the terms there; slack: how far the state is from
the constraint surface; other: the squared relative length of the longest active row that was not chosen. Rows with active
= 0 do not count. A third function does one step of the projection onto the surface, with the same factors:

    G x = -phi,   G y = -G v,   status = (quality, largest phi / scale, largest phi, largest G (v + y))  (6)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from alembert.constraints.equations import Equations, columns, equations
from alembert.constraints.tolerances import CLOSED, CONSISTENT, GOOD, OFF, STILL
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Call, Plan
from alembert.sensitivity.mass_factor import Pattern
from alembert.sweeps import INVERSE_DYNAMICS, MASS_MATRIX, expressions

if TYPE_CHECKING:
    from alembert.model import Model

LARGEST = 10_000
"""cost above which compiling takes too long"""
_RESIDUAL = 150


def cost(model: Model, sizes: Sequence[int]) -> int:
    """About how many multiplications (1) and (3) take, from the topology; `sizes` are the rows of each constraint."""
    tree = model.compute.tree
    # rows meet where joints inboard of both constraints move both
    touches = np.zeros((len(sizes), model.nv), dtype=bool)
    for k, touched in enumerate(columns(tree)):
        touches[k, touched] = True
    pattern = Pattern(tree)
    for j in reversed(range(model.nv)):
        touches[:, pattern.inboard[j]] |= touches[:, j : j + 1]
    if not np.any(sizes):
        return 0
    coupled = np.repeat(np.repeat(touches @ touches.T, sizes, axis=0), sizes, axis=1)
    upper, _ = ca.sparsify(ca.DM(coupled.astype(float))).sparsity().ldl()
    fill = np.bincount(upper.row(), minlength=len(coupled))
    inboard = np.array([len(row) for row in pattern.inboard])
    half = sum(int(n) * int(np.sum(inboard[t])) for n, t in zip(sizes, touches, strict=True))
    return int(np.sum((fill + 1) ** 2)) + half + _RESIDUAL * len(model.loops)


def tree_kernel(model: Model, *, wrenches: bool) -> Kernel:
    """(q, v, tau[, wrench][, parameters]) -> L and 1/D, tau - bias."""
    tree, pattern = model.compute.tree, Pattern(model.compute.tree)
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

    def build() -> KernelSource:
        symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in inputs}
        parameters = symbols.get("parameters", ca.SX(0, 1))
        given = {name: x for name, x in symbols.items() if name in ("q", "v", "wrench")}
        bias = expressions(INVERSE_DYNAMICS, tree, given, parameters)["tau"]
        M = expressions(MASS_MATRIX, tree, {"q": symbols["q"]}, parameters)["matrix"]
        outputs = [pattern.factor(M), symbols["tau"] - bias]
        return FunctionSource(ca.Function("tree", list(symbols.values()), [ca.densify(x) for x in outputs]))

    key = f"{model.fingerprint}:factored_tree:{wrenches}"
    return Kernel("forward_dynamics", inputs, results, key=key, build=build)


@dataclass(frozen=True, eq=False)
class Symbols:
    """All constraint equations of a model, on symbols."""

    q: ca.SX
    v: ca.SX
    parameters: ca.SX
    found: Equations


def symbols(model: Model) -> Symbols:
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    parameters = ca.SX.sym("parameters", len(model.parameters))
    return Symbols(q, v, parameters, equations(model.compute.tree, q, v, parameters))


def constraint_kernel(model: Model, slices: Sequence[slice], graph: Callable[[], Symbols]) -> Kernel:
    """(q, v, factor, rest, chosen, active[, parameters]) -> a, f, T f by loops, status.

    `slices` are the rows of each loop, then of each coupling.
    """
    results = {
        "a": (model.nv,),
        "f": (slices[-1].stop,),
        "reactions": (max(1, len(model.loops)), 6),
        "status": (5,),
    }
    return _kernel(model, slices, graph, "constraint_solution", ("factor", "rest"), results, _accelerations)


def projection_kernel(model: Model, slices: Sequence[slice], graph: Callable[[], Symbols]) -> Kernel:
    """(q, v, factor, chosen, active[, parameters]) -> x, y, status of (6)."""
    results = {"x": (model.nv,), "y": (model.nv,), "status": (4,)}
    return _kernel(model, slices, graph, "constraint_projection", ("factor",), results, _projection)


def _kernel(
    model: Model,
    slices: Sequence[slice],
    graph: Callable[[], Symbols],
    name: str,
    of_tree: tuple[str, ...],
    shapes: Mapping[str, tuple[int, ...]],
    solution: Callable[[Admittance, dict[str, ca.SX]], list[ca.SX]],
) -> Kernel:
    """The terms at a state, then a solution from them."""
    pattern, rows = Pattern(model.compute.tree), slices[-1].stop
    sizes = {"factor": pattern.size, "rest": model.nv}
    state = [Argument("q", (model.nq,)), Argument("v", (model.nv,))]
    tree = [Argument(part, (sizes[part],)) for part in of_tree]
    masks = [Argument("chosen", (rows,)), Argument("active", (rows,))]
    inputs = [*state, *tree, *masks, *_parameters(model)]
    results = [Argument(*item) for item in shapes.items()]

    def build() -> KernelSource:
        given = graph()
        q, v, parameters, found = given.q, given.v, given.parameters, given.found
        G, T = ca.sparsify(found.jacobian), ca.sparsify(found.basis)
        outputs = {"G": G.nz[:], "gamma": found.bias, "phi": found.residual, "T": T.nz[:]}
        terms = ca.Function(
            "terms",
            [q, v, parameters] if model.parameters else [q, v],
            [ca.densify(x) for x in outputs.values()],
        )
        between = {f"{part}_": x.numel() for part, x in outputs.items()}
        inner = {part: ca.SX.sym(part, x.numel()) for part, x in outputs.items()}
        inner |= {a.name: ca.SX.sym(a.name, *a.shape) for a in (state[1], *tree, *masks)}
        terms_at = inner | {"G": ca.SX(G.sparsity(), inner["G"]), "T": ca.SX(T.sparsity(), inner["T"])}
        answers = solution(Admittance(model, pattern, terms_at, slices), terms_at)
        solve = ca.Function("solve", list(inner.values()), [ca.densify(x) for x in answers])
        return Plan(
            {a.name: a.size for a in inputs},
            {a.name: a.size for a in results},
            between,
            [
                Call(FunctionSource(terms), [a.name for a in (*state, *_parameters(model))], list(between)),
                Call(
                    FunctionSource(solve),
                    [*between, *(a.name for a in (state[1], *tree, *masks))],
                    [a.name for a in results],
                ),
            ],
        )

    return Kernel(name, inputs, results, key=f"{model.fingerprint}:{name}", build=build)


def solution(
    model: Model,
    slices: Sequence[slice],
    masks: tuple[np.ndarray, np.ndarray],
    given: Mapping[str, ca.SX],
    parameters: ca.SX,
    *,
    guarded: bool,
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """a, f and the wrenches of the loops on symbols, by the rows chosen and active in `masks`, all in one graph.

    `given` has q, v, tau and, where wrenches act, `wrench` (nodes, 6). `guarded`: NaN where the conditions of
    `constraints.quick` do not hold, that is where the minimal set does not serve or loops are open.
    """
    tree, pattern = model.compute.tree, Pattern(model.compute.tree)
    motion = {name: x for name, x in given.items() if name in ("q", "v", "wrench")}
    bias = expressions(INVERSE_DYNAMICS, tree, motion, parameters)["tau"]
    M = expressions(MASS_MATRIX, tree, {"q": given["q"]}, parameters)["matrix"]
    found = equations(tree, given["q"], given["v"], parameters)
    x = {
        "factor": pattern.factor(M),
        "rest": given["tau"] - bias,
        "chosen": ca.SX(masks[0]),
        "active": ca.SX(masks[1]),
        "G": ca.sparsify(found.jacobian),
        "T": found.basis,
        "gamma": found.bias,
        "phi": found.residual,
        "v": given["v"],
    }
    a, f, wrenches, status = _accelerations(Admittance(model, pattern, x, slices), x)
    if guarded:
        good = serves(status, CLOSED)
        a, f, wrenches = (ca.if_else(good, y, ca.SX.nan(*y.shape)) for y in map(ca.densify, (a, f, wrenches)))
    return a, f, wrenches


def serves(status: ca.SX, closed: float) -> ca.SX:
    """Whether (5) says that the accelerations are right."""
    quality, left, size, slack = (status[k] for k in range(4))
    good = ca.logic_and(quality > GOOD * GOOD, slack <= closed)
    return ca.logic_and(good, left <= (CONSISTENT + ca.fmin(100 * slack, OFF)) * size)


def _parameters(model: Model) -> list[Argument]:
    return [Argument("parameters", (len(model.parameters),))] if model.parameters else []


class Admittance:
    """The factors of (3), and how large rows are."""

    def __init__(
        self, model: Model, pattern: Pattern, given: Mapping[str, ca.SX], slices: Sequence[slice]
    ) -> None:
        self.model, self.pattern, self.slices = model, pattern, slices
        self.factor, self.chosen, self.G = given["factor"], given["chosen"], given["G"]
        self.inverse = self.factor[len(pattern.positions) :]
        self.Z = ca.horzcat(*(self.inward(self.G[i, :].T) for i in range(self.G.shape[0])))  # (1)
        self.weighted = ca.diag(self.inverse) @ self.Z
        mask = ca.diag(self.chosen)
        self.matrix = mask @ (self.Z.T @ self.weighted) @ mask + ca.diag(1 - self.chosen)
        self.D, self.LT, self.order = ca.ldl(self.matrix)
        self.lengths = ca.sum2(self.G * self.G)
        self.scale = scales(self.G, slices)

    def solve(self, b: ca.SX) -> ca.SX:
        """(3)"""
        return self.chosen * ca.ldl_solve(self.chosen * b, self.D, self.LT, self.order)

    def quality(self) -> ca.SX:
        found = ca.SX(1)
        for k, i in enumerate(self.order):
            found = ca.fmin(found, self.D[k] / self.matrix[i, i])
            found = ca.fmin(found, self.lengths[i] / self.scale[i] + (1 - self.chosen[i]))
        return found

    def inward(self, b: ca.SX) -> ca.SX:
        """L^-T b"""
        return inward(self.pattern, self.factor, b)

    def outward(self, x: ca.SX) -> ca.SX:
        """L^-1 x"""
        return outward(self.pattern, self.factor, x)


def inward(pattern: Pattern, factor: ca.SX, b: ca.SX) -> ca.SX:
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


def outward(pattern: Pattern, factor: ca.SX, x: ca.SX) -> ca.SX:
    """L^-1 x"""
    found = [x[i] for i in range(x.numel())]
    for k in range(len(found)):
        for i in pattern.inboard[k]:
            found[k] = found[k] - factor[pattern.positions[k, i]] * found[i]
    return ca.vertcat(*found)


def _accelerations(with_: Admittance, x: dict[str, ca.SX]) -> list[ca.SX]:
    """(2)-(5)"""
    G, v, active = x["G"], x["v"], x["active"]
    z0 = with_.inward(x["rest"])
    f = with_.solve(-(x["gamma"] + with_.weighted.T @ z0))
    a_free = with_.outward(with_.inverse * z0)
    a = with_.outward(with_.inverse * z0 + with_.weighted @ f)
    T = x["T"]
    wrenches = [f[s].T @ T[s, :] for s in with_.slices[: len(with_.model.loops)]] or [ca.SX(1, 6)]
    root = ca.sqrt(with_.scale)
    left, broken, opened = (largest(active * y / root) for y in (G @ a + x["gamma"], G @ v, x["phi"]))
    speed = ca.dot(v, v)
    size = ca.sqrt(ca.dot(a, a)) + ca.sqrt(ca.dot(a_free, a_free)) + speed
    slack = opened + broken / ca.fmax(ca.sqrt(speed), STILL)
    other = largest((active - with_.chosen) * with_.lengths / with_.scale)
    return [a, f, ca.vertcat(*wrenches), ca.vertcat(with_.quality(), left, size, slack, other)]


def _projection(with_: Admittance, x: dict[str, ca.SX]) -> list[ca.SX]:
    """(6)"""
    G, v, phi = x["G"], x["v"], x["active"] * x["phi"]
    step, change = (with_.outward(with_.weighted @ with_.solve(-b)) for b in (phi, G @ v))
    status = ca.vertcat(
        with_.quality(),
        largest(phi / ca.sqrt(with_.scale)),
        largest(phi),
        largest(x["active"] * (G @ (v + change))),
    )
    return [step, change, status]


def scales(G: ca.SX, slices: Sequence[slice]) -> ca.SX:
    """For each row the squared length of the longest of its constraint (1 where all vanish)."""
    lengths, found = ca.sum2(G * G), ca.SX(G.shape[0], 1)
    for group in slices:
        longest = ca.SX(0)
        for i in range(group.start, group.stop):
            longest = ca.fmax(longest, lengths[i])
        found[group] = ca.if_else(longest > 0, longest, 1.0)
    return found


def largest(x: ca.SX) -> ca.SX:
    total = ca.SX(0)
    for k in range(x.numel()):
        total = ca.fmax(total, ca.fabs(x[k]))
    return total
