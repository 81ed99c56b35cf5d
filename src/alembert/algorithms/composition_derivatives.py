"""Tangents and adjoints of compositions (`alembert.algorithms.compositions`).

The tangent of a list has every operation together with its change, in the same order; the adjoint has the adjoints of the
operations in the opposite order, and sums what several of them give back to the same buffer. The tangent of the adjoint
makes Hessians (`alembert.algorithms.directional_kernels`).

Products with the Jacobians of the dynamics are in closed form (`alembert.sensitivity.products`), unless parameters vary.
There the adjoint of forward dynamics a(q, v, tau) needs no adjoint of its sweep either: with mu = M^-1 weight, the gradient
of weight . a with respect to tau is mu, and with respect to everything else minus that of mu . (inverse dynamics at a).  (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca

from alembert import sweeps
from alembert.algorithms.compositions import (
    Composition,
    Gather,
    Inverse,
    MatrixProduct,
    Operation,
    Scatter,
    Small,
    SweepCall,
    Total,
)
from alembert.sensitivity import products
from alembert.sweeps import Tree

if TYPE_CHECKING:
    pass


def tangent(c: Composition) -> Composition:
    """Results and their changes, for the inputs and their changes."""
    sizes = dict(c.sizes)
    operations: list[Operation] = []
    for x in c.needed():
        inputs, outputs = (*x.inputs, *_changes(x.inputs)), (*x.outputs, *_changes(x.outputs))
        if isinstance(x, SweepCall):
            operations.append(_tangent_sweep(c.tree, x, inputs, outputs))
        elif isinstance(x, Small):
            operations.append(Small(_tangent_of(x.function), inputs, outputs))
        elif isinstance(x, Total):
            operations += [x, replace(x, inputs=_changes(x.inputs), outputs=_changes(x.outputs))]
        elif isinstance(x, MatrixProduct):
            pairs = zip(x.inputs[::2], x.inputs[1::2], strict=True)
            terms = [y for A, B in pairs for y in (f"d {A}", B, A, f"d {B}")]
            operations += [x, MatrixProduct(x.sign, tuple(terms), _changes(x.outputs))]
        elif isinstance(x, Inverse):
            (M,), (N,), half = x.inputs, x.outputs, f"half of d {x.outputs[0]}"
            sizes[half] = c.sizes[N]
            operations += [
                x,
                MatrixProduct(1, (f"d {M}", N), (half,)),
                MatrixProduct(-1, (N, half), (f"d {N}",)),
            ]
        else:
            again = type(x)(x.rows, x.count, x.width, _changes(x.inputs), _changes(x.outputs))
            operations += [x, again]
    for buffer in c.sizes:
        sizes[f"d {buffer}"] = c.change_size(buffer)
    return Composition(
        c.tree,
        (*c.inputs, *_changes(c.inputs)),
        (*c.results, *_changes(c.results)),
        sizes,
        tuple(operations),
    )


def _tangent_sweep(tree: Tree, x: SweepCall, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> SweepCall:
    closed = products.tangent(x.program, x.names, parameters=bool(tree.model.parameters))
    if closed and not x.mode and not tree.has_modes:
        return SweepCall(*closed, inputs, outputs)
    return SweepCall(x.program, x.names, inputs, outputs, "jvp of vjp" if x.mode == "vjp" else "jvp")


def adjoint(c: Composition, held: Sequence[str] = ()) -> Composition:
    """The gradients of the weighted results with respect to the inputs, but for those that are `held`."""
    return _Adjoint(c, held).run()


class _Adjoint:
    def __init__(self, c: Composition, held: Sequence[str]) -> None:
        self.c, self.held, self.sizes = c, held, dict(c.sizes)
        self.operations: list[Operation] = list(c.needed())
        self.bars: dict[str, list[str]] = {}
        """for each buffer, what was given back to it so far"""

    def run(self) -> Composition:
        weights = []
        for k, name in enumerate(self.c.results):
            weights.append(self.new(f"weight {k}", self.c.sizes[name]))
            self.bars.setdefault(name, []).append(weights[-1])
        for x in reversed(self.c.needed()):
            if any(name in self.bars for name in x.outputs):
                self.reverse(x)
        wanted = [name for name in self.c.inputs if name not in self.held]
        results = tuple(self.bar(name) for name in wanted)
        return Composition(
            self.c.tree, (*self.c.inputs, *weights), results, self.sizes, tuple(self.operations)
        )

    def new(self, name: str, size: int) -> str:
        while name in self.sizes:
            name += "'"
        self.sizes[name] = size
        return name

    def bar(self, buffer: str) -> str:
        """The buffer of all that was given back to one."""
        parts, size = self.bars.get(buffer, []), self.c.change_size(buffer)
        if len(parts) == 1:
            return parts[0]
        name = self.new(f"bar {buffer}", size)
        self.operations.append(Total((1,) * len(parts), size, tuple(parts), (name,)))
        self.bars[buffer] = [name]
        return name

    def give(self, buffers: Sequence[str]) -> tuple[str, ...]:
        """New buffers for what goes back to some."""
        found = []
        for buffer in buffers:
            found.append(self.new(f"bar {buffer}", self.c.change_size(buffer)))
            if buffer not in self.held:
                self.bars.setdefault(buffer, []).append(found[-1])
        return tuple(found)

    def reverse(self, x: Operation) -> None:
        weights = tuple(self.bar(name) for name in x.outputs)
        if isinstance(x, Gather):
            self.operations.append(Scatter(x.rows, x.count, x.width, weights, self.give(x.inputs)))
        elif isinstance(x, Scatter):
            self.operations.append(Gather(x.rows, x.count, x.width, weights, self.give(x.inputs)))
        elif isinstance(x, Small):
            kept = [k for k, name in enumerate(x.inputs) if name not in self.held]
            outputs = self.give([x.inputs[k] for k in kept])
            self.operations.append(Small(_adjoint_of(x.function, kept), (*x.inputs, *weights), outputs))
        elif isinstance(x, Inverse):  # M^-1 is symmetric
            (back,) = self.give(x.inputs)
            half = self.new(f"half of {back}", self.sizes[back])
            self.operations += [
                MatrixProduct(1, (weights[0], x.outputs[0]), (half,)),
                MatrixProduct(-1, (x.outputs[0], half), (back,)),
            ]
        elif isinstance(x, Total | MatrixProduct):  # only in derivatives, of which there are tangents
            raise AssertionError(f"{x} has no adjoint")
        else:
            self.reverse_sweep(x, weights)

    def reverse_sweep(self, x: SweepCall, weights: tuple[str, ...]) -> None:
        tail = x.inputs[len(x.names) :]
        closed = products.adjoint(x.program, x.names, parameters=any(name not in self.held for name in tail))
        if closed and not self.c.tree.has_modes:
            own = x.inputs[: len(x.names)]
            self.operations.append(SweepCall(*closed, (*own, *weights, *tail), self.give(own)))
        elif x.program is sweeps.FORWARD_DYNAMICS:
            self.reverse_forward_dynamics(x, weights[0])
        else:
            given = [name for name in x.inputs if name not in self.held]
            self.operations.append(
                SweepCall(x.program, x.names, (*x.inputs, *weights), self.give(given), "vjp")
            )

    def reverse_forward_dynamics(self, x: SweepCall, weight: str) -> None:
        """(1)"""
        inputs = dict(zip((*x.names, "parameters"), x.inputs, strict=False))
        tail = [inputs["parameters"]] if "parameters" in inputs else []
        names = tuple("a" if name == "tau" else name for name in x.names)
        (mu,) = self.give([inputs["tau"]])
        self.operations.append(
            SweepCall(sweeps.SOLVE_MASS_MATRIX, ("q", "tau"), (inputs["q"], weight, *tail), (mu,))
        )
        at = [x.outputs[0] if name == "a" else inputs[name] for name in names]
        others = [
            name for name in (*(inputs[n] for n in x.names if n != "tau"), *tail) if name not in self.held
        ]
        size = self.c.sizes[x.outputs[0]]
        opposite = {name: self.new(f"opposite {name}", self.c.change_size(name)) for name in others}
        opposite["a"] = self.new("opposite a", size)
        order = ["a" if n == "a" else inputs[n] for n in names] + [t for t in tail if t not in self.held]
        outputs = tuple(opposite[name] for name in order)
        self.operations.append(SweepCall(sweeps.INVERSE_DYNAMICS, names, (*at, *tail, mu), outputs, "vjp"))
        for name, given in zip(others, self.give(others), strict=True):
            self.operations.append(Total((-1,), self.sizes[given], (opposite[name],), (given,)))


def _changes(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"d {name}" for name in names)


def _symbols(f: ca.Function) -> tuple[list[ca.SX], list[ca.SX]]:
    x = [ca.SX.sym("x", *f.size_in(k)) for k in range(f.n_in())]
    found = f(*x)
    return x, [ca.densify(y) for y in (found if isinstance(found, tuple) else (found,))]


def _tangent_of(f: ca.Function) -> ca.Function:
    x, y = _symbols(f)
    d = [ca.SX.sym("d", *each.shape) for each in x]
    along = ca.jtimes(products.stacked(y), products.stacked(x), products.stacked(d))
    return ca.Function("tangent", [*x, *d], [*y, *_like(along, y)])


def _adjoint_of(f: ca.Function, kept: Sequence[int]) -> ca.Function:
    """The gradient with respect to some of its inputs."""
    x, y = _symbols(f)
    w = [ca.SX.sym("w", *each.shape) for each in y]
    wanted = [x[k] for k in kept]
    back = ca.jtimes(products.stacked(y), products.stacked(wanted), products.stacked(w), True)
    return ca.Function("adjoint", [*x, *w], _like(back, wanted))


def _like(column: ca.SX, parts: Sequence[ca.SX]) -> list[ca.SX]:
    found, start = [], 0
    for part in parts:
        found.append(ca.densify(ca.reshape(column[start : start + part.numel()], *part.shape)))
        start += part.numel()
    return found
