"""The compiled rows of a model's constraints: their values and derivatives, and the tree underneath them.

The tree (the *primary* system) is a model of its own without loops, couplings, frames (but those on nodes of flexible
bodies, which are nodes of the tree) and devices. Models that differ only in these share it, and with it all compiled
sweeps: a change of constraints compiles at most the constraint equations, a change of the active ones nothing.

Derivatives are taken constraint by constraint, each with respect to the joints of its own loop only: a motion of all of a
loop changes nothing. How rows depend on parameters is computed at a fixed motion and fixed forces.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import casadi as ca
import numpy as np

from alembert.constraints.equations import Equations, columns, equations
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering import plan
from alembert.lowering.plan import Call, Columns, Plan
from alembert.model import Model

if TYPE_CHECKING:
    from alembert.constraints.rows import ConstraintRows

Array = np.ndarray
Shape = tuple[int, ...]
Evaluation = Callable[..., Any]
LARGEST = 1000
"""blocks' entries above which the derivatives are not compiled (up to a hundred instructions each)"""
_PRIMARIES: WeakValueDictionary[str, Model] = WeakValueDictionary()


def primary(model: Model) -> Model:
    """The model's tree alone, shared by all models that have the same."""
    bodies = tuple(dataclasses.replace(body, visuals=()) for body in model.bodies)
    none = dict.fromkeys(("loops", "couplings", "equations", "actuators", "sensors", "visuals"), ())
    frames = tuple(frame for frame in model.frames if frame.node)
    bare = dataclasses.replace(model, name="tree", bodies=bodies, frames=frames, **none)
    return _PRIMARIES.setdefault(bare.fingerprint, bare)


# --- making kernels -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelStages:
    """Functions one after the other, with the buffers between them."""

    buffers: Mapping[str, int]
    stages: Sequence[Call | Columns]


def make(
    model: Model,
    name: str,
    content: str,
    inputs: Mapping[str, Shape],
    results: Mapping[str, Shape],
    build: Callable[[], ca.Function | KernelStages],
    hints: Mapping[str, str] | None = None,
) -> Kernel:
    """A kernel of the model, which takes its parameters last; `content` tells kernels of one model apart."""
    shapes = {**inputs, **({"parameters": (len(model.parameters),)} if model.parameters else {})}
    given = [Argument(key, shape, (hints or {}).get(key, "")) for key, shape in shapes.items()]
    found = [Argument(*item) for item in results.items()]

    def source() -> KernelSource:
        made = build()
        if not isinstance(made, KernelStages):
            return FunctionSource(made)
        incoming, outgoing = ({a.name: a.size for a in part} for part in (given, found))
        return Plan(incoming, outgoing, made.buffers, made.stages)

    return Kernel(name, given, found, key=f"{model.fingerprint}:{content}", build=source)


def with_numbers(kernel: Kernel, key: str, numbers: Array) -> Kernel:
    """A kernel of the form of a model, for the model: its last argument, the parameters, has these numbers."""
    given, found = kernel.arguments[:-1], kernel.results

    def source() -> KernelSource:
        incoming, outgoing = ({a.name: a.size for a in part} for part in (given, found))
        return plan.with_numbers(kernel.source(), incoming, outgoing, numbers)

    return Kernel(kernel.name, given, found, key=f"{key}:{kernel.key}", build=source)


def stage(function: ca.Function, inputs: Sequence[str], outputs: Sequence[str]) -> Call:
    return Call(FunctionSource(function), inputs, outputs)


def function_of(name: str, inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> ca.Function:
    return ca.Function(name, list(inputs), [ca.densify(x) for x in outputs])


def nonzeros(x: ca.SX) -> ca.SX:
    """As a column, empty where there are none."""
    return ca.densify(x.nz[:]) if x.nnz() else ca.SX(0, 1)


@dataclass(frozen=True, eq=False)
class RowGraph:
    """All constraint equations of a model, on symbols."""

    q: ca.SX
    v: ca.SX
    parameters: ca.SX
    found: Equations

    def given(self, *others: ca.SX) -> list[ca.SX]:
        """GraphInputs of a function, with the parameters last where there are any."""
        return [*others, *([self.parameters] if self.parameters.numel() else [])]

    def jacobian_stage(self, rows: Sequence[int] | None = None) -> tuple[Call, dict[str, int], ca.Sparsity]:
        """From q to the buffer "G", the entries of (some rows of) the Jacobian; its size, and their pattern."""
        jacobian = self.found.jacobian
        G = ca.sparsify(jacobian if rows is None else jacobian[list(rows), :])
        given = self.given(self.q)
        terms = ca.Function("terms", given, [nonzeros(G)])
        names = ["q", "parameters"][: len(given)]
        return stage(terms, names, ["G"]), {"G": G.nnz()}, G.sparsity()


def graph(model: Model) -> RowGraph:
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    parameters = ca.SX.sym("parameters", len(model.parameters))
    return RowGraph(q, v, parameters, equations(model.compute.tree, q, v, parameters))


# --- blocks ---------------------------------------------------------------------------------------------------------


class RowBlocks:
    """Where entries of the constraints' matrices are: each constraint has those over the speeds that its rows touch.

    Kernels give packed entries, constraint by constraint and row by row: of matrices (rows, nv), and of matrices (nv, nv)
    that are sums over the constraints.
    """

    def __init__(self, model: Model, slices: Sequence[slice]) -> None:
        nv = self.nv = model.nv
        self.count = slices[-1].stop if slices else 0
        self.touched = columns(model.compute.tree)
        both = [*zip((np.arange(s.start, s.stop) for s in slices), self.touched, strict=True)]
        none = np.arange(0)
        self.rows = np.concatenate([none, *((own[:, None] * nv + touched).ravel() for own, touched in both)])
        self.square = np.concatenate([none, *((t[:, None] * nv + t).ravel() for t in self.touched)])

    def spread(self, packed: Array) -> Array:
        """(B, rows, nv)"""
        flat = packed.reshape(-1, packed.shape[-1])
        dense = np.zeros((len(flat), self.count * self.nv))
        dense[:, self.rows] = flat
        return dense.reshape(-1, self.count, self.nv)

    def spread_square(self, packed: Array) -> Array:
        """(B, nv, nv)"""
        flat, start = packed.reshape(-1, packed.shape[-1]), 0
        dense = np.zeros((len(flat), self.nv, self.nv))
        for touched in self.touched:
            c = len(touched)
            dense[:, touched[:, None], touched] += flat[:, start : start + c * c].reshape(-1, c, c)
            start += c * c
        return dense

    def symbolic(self, packed: ca.SX, *, square: bool) -> ca.SX:
        """The same on symbols, by rows."""
        found = ca.SX(self.nv * (self.nv if square else self.count), 1)
        for k, place in enumerate((self.square if square else self.rows).tolist()):
            found[place] += packed[k]
        return found


# --- the rows -------------------------------------------------------------------------------------------------------


def terms_kernel(rows: ConstraintRows) -> Kernel:
    """(q, v) -> phi, entries of G, gamma, T^T; see `equations` and `RowBlocks`."""
    model, blocks, count = rows.model, rows.blocks, rows.count

    def build() -> ca.Function:
        at = rows.graph
        entries = [at.found.jacobian[place // model.nv, place % model.nv] for place in blocks.rows.tolist()]
        outputs = [at.found.residual, ca.vertcat(ca.SX(0, 1), *entries), at.found.bias, at.found.basis]
        return function_of("constraint_terms", at.given(at.q, at.v), outputs)

    results = {"residual": (count,), "jacobian": (len(blocks.rows),), "bias": (count,), "basis": (count, 6)}
    state: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,)}
    return make(model, "constraint_terms", "constraint_terms", state, results, build)


def parameter_kernel(rows: ConstraintRows) -> Kernel:
    """(q, v, a, f, parameters) -> (G^T f)_p, (G a + gamma)_p, phi_p of all rows."""
    model, count = rows.model, rows.count

    def build() -> ca.Function:
        g = rows.graph
        a, f = ca.SX.sym("a", model.nv), ca.SX.sym("f", count)
        changing = [g.found.jacobian.T @ f, g.found.jacobian @ a + g.found.bias, g.found.residual]
        outputs = [ca.jacobian(x, g.parameters) for x in changing]
        return function_of("parameter_derivatives", [g.q, g.v, a, f, g.parameters], outputs)

    size, name = len(model.parameters), "constraint_parameter_derivatives"
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "f": (count,)}
    results = {"push_p": (model.nv, size), "row_p": (count, size), "phi_p": (count, size)}
    return make(model, name, name, inputs, results, build)


def derivative_kernel(rows: ConstraintRows) -> Evaluation:
    """(q, v, a, f) -> for every constraint, by rows: (R^T f)_q, (G a + gamma)_q, gamma_v over its own joints."""
    model, blocks = rows.model, rows.blocks
    inputs = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "f": (blocks.count,)}
    square, flat = len(blocks.square), len(blocks.rows)
    results = {"push_q": (square,), "row_q": (flat,), "row_v": (flat,)}
    shapes = {**inputs, **({"parameters": (len(model.parameters),)} if model.parameters else {})}

    def build() -> KernelStages:
        """One constraint after another, so that compile time is linear in their number; then their parts in order."""
        functions = _derivative_functions(rows, shapes)
        parts = [
            {f"{kind}{k}": function.numel_out(i) for i, kind in enumerate(results)}
            for k, function in enumerate(functions)
        ]
        buffers = {name: size for part in parts for name, size in part.items()}
        symbols = {name: ca.SX.sym(name, size) for name, size in buffers.items()}
        whole = [ca.vertcat(*(symbols[f"{kind}{k}"] for k in range(len(parts)))) for kind in results]
        gather = ca.Function("gather", list(symbols.values()), whole)
        each = [stage(f, list(shapes), list(part)) for f, part in zip(functions, parts, strict=True)]
        return KernelStages(buffers, [*each, stage(gather, list(buffers), list(results))])

    if square + flat > LARGEST:
        symbols = [ca.SX.sym(*item) for item in ((name, math.prod(shape)) for name, shape in shapes.items())]
        parts = [f.call(symbols) for f in _derivative_functions(rows, shapes)]
        whole = [ca.vertcat(ca.SX(0, 1), *column) for column in zip(*parts, strict=True)]
        return _interpreted(ca.Function("constraint_derivatives", symbols, whole))
    name = "constraint_derivatives"
    return make(model, name, name, inputs, results, build)


def _derivative_functions(rows: ConstraintRows, shapes: Mapping[str, Shape]) -> list[ca.Function]:
    """For every constraint (R^T f)_q, (G a + gamma)_q, gamma_v over its own joints, by rows."""
    model, at_q = rows.model, rows.graph
    q, v, found = at_q.q, at_q.v, at_q.found
    a, f = (ca.SX.sym(name, *shapes[name]) for name in "af")
    given = at_q.given(q, v, a, f)
    dv = ca.SX.sym("dv", model.nv)
    tangent = ca.jacobian(model.space.rate(q, dv), dv)
    functions = []
    for s, touched in zip(rows.slice_list, rows.blocks.touched, strict=True):
        own = [int(k) for k in touched]
        # only the coordinates of the loop's own joints: the others move all of it
        at = [k for k in range(model.nq) if tangent[k, own].nnz()]
        T, G = tangent[at, own], found.jacobian[s, own]
        row = G @ a[own] + found.bias[s]
        parts = [
            ca.jacobian(G.T @ f[s], q[at]) @ T,
            ca.jacobian(row, q[at]) @ T,
            ca.jacobian(found.bias[s], v[own]),
        ]
        by_rows = [ca.vec(ca.densify(x).T) for x in parts]
        functions.append(ca.Function("constraint_derivatives", given, by_rows))
    return functions


def _interpreted(function: ca.Function) -> Evaluation:
    """In CasADi's own machine: slow, but there is nothing to compile."""

    def evaluate(*given: Array) -> tuple[Array, ...]:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in given))
        whole = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in given]
        found = function.call([ca.DM(x.T) for x in whole])  # a column for each state
        return tuple(np.array(x).T.reshape(*shape, -1) for x in found)

    return evaluate
