"""Programs over trees of any size: loops over the nodes, with a function for each loop and kind of node.

What depends on the number of nodes is data: a table of offsets for each loop, and the nodes' constants. So
the compile time does not grow with the tree, and the code stays in the instruction cache.

Memory is organised after the areas of `alembert.sweeps.visits`. A node's shared record lasts for the whole
call. What it keeps for itself (`alembert.lowering.rolled_memory`), passes to children or adds to its parent lives
only between two visits, in *slots* that are given out and taken back like registers: what is passed along a
serial chain uses two of them, which never leave the cache. A visit never writes the slot that it reads.

Sines and cosines of coordinates are computed for all nodes at once, before the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import casadi as ca

from alembert.engine.target import Code, Target
from alembert.lowering.rolled_emitter import RolledEmitter
from alembert.lowering.rolled_memory import Memory, in_pieces
from alembert.lowering.tracing import trace
from alembert.sensitivity import adjoint_traces, traces
from alembert.sweeps.kinds import kinds
from alembert.sweeps.program import LINE, Program, world
from alembert.sweeps.tree import Tree

Mode = Literal["", "jvp", "vjp", "jvp of vjp"]


class RolledSource:
    """A program over a tree, as loops; it takes the inputs `given`, then the parameters if there are any.

    `mode` makes it the program's tangent or adjoint, or the tangent of its adjoint, of which the parameters are held
    (`alembert.sensitivity.traces`, `adjoint_traces`).
    """

    def __init__(self, program: Program, tree: Tree, given: Sequence[str], mode: Mode = "") -> None:
        model = tree.model
        parameters = tree.parameter_symbols
        self.program, self.tree, self.given = program, tree, tuple(given)
        self.parameters = parameters
        self.kinds = kinds(tree)
        base = world(tree, parameters, gravity=program.gravity)
        serial = tree.parents == tuple(range(-1, len(tree) - 1))
        self.trace = trace(program, self.kinds, base, given, serial=serial)
        self.inputs = (*given, *(["parameters"] if model.parameters else []))
        self.weight_widths: dict[str, int] = {}
        """numbers for each node of inputs that weigh results over nodes"""
        if mode in ("vjp", "jvp of vjp"):
            for name, width in self._widths().items():
                weight = traces.weight_of(name)
                self.weight_widths |= {weight: width, f"d{weight}": width}
            held = mode != "vjp"
            self._become(
                adjoint_traces.adjoint(program, self.kinds, self.trace, given, self.parameters, held=held)
            )
        program = self.program
        original = {*program.result, *program.total, *(program.pairs.names if program.pairs else ())}
        if mode in ("jvp", "jvp of vjp"):
            self._become(traces.tangent(program, self.kinds, self.trace, self.inputs, parameters))
        program = self.program
        self.trace, self.pieces = in_pieces(self.trace)
        self.memory = Memory(self)

        sizes = {"q": model.nq, "v": model.nv, "node6": 6 * len(tree), "v6": 6 * model.nv}
        sizes["matrix"] = model.nv**2
        nv = [owner.type.nv for owner in tree.owners]
        self.own_size = sum(n * n for n in nv)
        """entries of matrices over the speeds of each joint"""
        self.table_stride = -(-model.nv // LINE) * LINE
        count = len(model.parameters)
        self.widths = self._widths()
        sizes_of_starts = {name: x.numel() for name, x in self.trace.starts.items()} | {"parameters": count}
        self.input_sizes = [
            sizes_of_starts.get(name)
            or sizes.get(program.given[name])
            or len(tree) * self.weight_widths[name]
            for name in self.inputs
        ]
        first = nv[self.kinds[0].nodes[0]] if len(tree) else 1
        for name, extent in program.result.items():
            if extent in ("table", "own"):  # as many rows or matrices for every kind
                count = len(self._outputs(name, 0)) // (first if extent == "table" else first**2)
                sizes |= {extent: count * (self.table_stride if extent == "table" else self.own_size)}
                self.widths[name] = count
        self.results = {
            name: sizes.get(extent) or len(tree) * self.widths[name]
            for name, extent in program.result.items()
        }
        self.results |= {name: len(visit.outputs[name]) for name, (_, visit) in self.trace.totals.items()}
        self.results |= {name: model.nv**2 for name in (program.pairs.names if program.pairs else ())}
        if self.trace.ends:
            self.results["dparameters"] = len(model.parameters)
        if mode.startswith("jvp"):  # values first, then changes
            names = sorted(self.results, key=lambda name: name not in original)
            self.results = {name: self.results[name] for name in names}
        self.output_sizes = list(self.results.values())

    def _become(self, found: traces.DifferentiatedTrace) -> None:
        self.program, self.kinds, self.trace, self.inputs = (
            found.program,
            found.kinds,
            found.trace,
            found.inputs,
        )

    def _widths(self) -> dict[str, int]:
        """How many numbers a visit gives to each result."""
        return {
            name: len(visit.outputs[name])
            for loop in self.trace.loops
            for visit in loop.visits
            for name in self.program.result
            if name in visit.outputs
        }

    def _outputs(self, name: str, kind: int) -> list[ca.SX]:
        return next(
            loop.visits[kind].outputs[name] for loop in self.trace.loops if name in loop.visits[kind].outputs
        )

    def emit(self, name: str, lanes: int, target: Target) -> Code:
        if lanes == 1:
            target = target.compact()  # measured: a tenth faster
        return RolledEmitter(self, name, lanes, target).emit()
