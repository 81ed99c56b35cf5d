"""Adjoint sweeps as loops: the gradient of the weighted results of a traced program.

After the loops of the trace (`alembert.sweeps.visits`) come their adjoints, the last one first, in opposite directions. What
a loop passed outward comes back inward as a sum over the children; what it summed inward goes back outward to all of them.
What visits leave in a node's record collects contributions from the adjoint visits that read it. What parents keep for their
children collects them as sums in inward loops, and where the adjoint loop goes outward, in one more loop inward behind it.

Visits are recomputed in their adjoints; only what passed between nodes is stored for that.

Reference: `vjp` of `alembert.sensitivity.products`, on the unrolled program; held equal by
tests/sensitivity/test_rolled_products.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import casadi as ca

from alembert.sensitivity.traces import DifferentiatedTrace, Scalars, weight_of
from alembert.sweeps.kinds import Kind
from alembert.sweeps.program import Extent, Program
from alembert.sweeps.visits import (
    ADDED,
    BARS,
    COMPUTED,
    GATHERED,
    INNER,
    OWN,
    PAIRED,
    PAIRED_BARS,
    PASSED,
    READ,
    SHARED,
    Loop,
    PairsAdjoint,
    PairsTrace,
    Trace,
    Visit,
    elements,
    hashes,
    only_used,
    world_area,
)


@dataclass
class _Record:
    """What a kind keeps, in the order of the loops that leave it: (loop, symbol, value)."""

    entries: list[tuple[int, ca.SX, ca.SX]] = field(default_factory=list)

    def keep(self, loop: int, value: ca.SX) -> ca.SX:
        symbol = ca.SX.sym("r")
        self.entries.append((loop, symbol, value))
        return symbol


def has_adjoint(program: Program) -> bool:
    return set(program.result.values()) <= {"v", "v6", "node", "node6"}


def adjoint(
    program: Program,
    kinds: Sequence[Kind],
    trace: Trace,
    given: Sequence[str],
    parameters: ca.SX,
    *,
    held: bool = False,
) -> DifferentiatedTrace:
    """The gradient of the weighted results with respect to the inputs (d + name), tangent for configurations.

    With respect to the parameters as well (the last result), unless they are `held`.
    """
    return _Adjoint(program, kinds, trace, given, parameters, held).run()


class _Adjoint:
    def __init__(
        self,
        program: Program,
        kinds: Sequence[Kind],
        trace: Trace,
        given: Sequence[str],
        parameters: ca.SX,
        held: bool,
    ) -> None:
        self.program, self.kinds, self.trace, self.given = program, kinds, trace, tuple(given)
        self.width = sum(kind.structure.joint.nv * len(kind.nodes) for kind in kinds)
        self.forward = len(trace.loops)
        self.matrices = program.pairs.names if program.pairs else ()
        self.back = self.pairs_adjoint(trace.pairs) if trace.pairs else None
        if trace.pairs:  # the blocks of nodes with themselves come last, as a loop
            last = Loop("outward", trace.pairs.own, [], trace.own_sizes, len(trace.shared))
            self.trace = replace(trace, loops=[*trace.loops, last])
        self.parameters, self.for_parameters = parameters, bool(parameters.numel()) and not held
        self.total_weights = {
            weight_of(name): ca.SX.sym("weight", len(visit.outputs[name]))
            for name, (_, visit) in trace.totals.items()
        }
        self.computed_bars: list[dict[int, ca.SX]] = [{} for _ in kinds]
        self.world_bars: dict[int, Scalars] = {}
        """for each inward loop that gives back to the world, the values of the world that it has gradients of"""
        self.records = [_Record() for _ in kinds]
        self.loops: list[Loop] = []
        self.place_shared()
        # adjoints so far: of what is in the record of each kind, of what it shares, of its inputs
        self.own_bars: list[dict[int, ca.SX]] = [{} for _ in kinds]
        self.shared_bars: list[dict[int, ca.SX]] = [{} for _ in kinds]
        self.given_bars: list[dict[str, Scalars]] = [{} for _ in kinds]
        self.gathered: list[dict[int, Scalars]] = [{} for _ in kinds]

    def place_shared(self) -> None:
        """What loops pass on is kept in the shared record, behind what they share."""
        loops = self.trace.loops
        starts = [loop.shared_start for loop in loops] + [len(self.trace.shared)]
        ends = [
            max([starts[i], *(starts[i] + len(v.outputs.get(SHARED, [])) for v in loop.visits)])
            for i, loop in enumerate(loops)
        ]
        self.world: Scalars = []
        self.shared_starts: list[int] = []
        self.shared_at: dict[int, int] = {}
        self.passed_at: list[int] = []
        for i, loop in enumerate(loops):
            self.shared_starts.append(len(self.world))
            for old in range(starts[i], ends[i]):
                self.shared_at[old] = len(self.world)
                self.world.append(self.trace.shared[old])
            self.passed_at.append(len(self.world))
            self.world += loop.world

    def run(self) -> DifferentiatedTrace:
        for i, loop in enumerate(self.trace.loops[: self.forward]):
            self.repeat(i, loop)
        for i in reversed(range(len(self.trace.loops))):
            self.reverse(i, self.trace.loops[i])
        for loop in self.loops:
            for k, visit in enumerate(loop.visits):
                visit.inputs[OWN] = [symbol for _, symbol, _ in self.records[k].entries]
        for at, loop in enumerate(self.loops):
            loop.own_start = [sum(x[0] < at for x in record.entries) for record in self.records]
            for k, visit in enumerate(loop.visits):
                visit.outputs[OWN] = [value for when, _, value in self.records[k].entries if when == at]
                only_used(visit, _depends)
        extents: dict[str, Extent] = dict(self.program.given)
        extents |= {weight_of(name): extent for name, extent in self.program.result.items()}
        extents |= {weight_of(name): "matrix" for name in self.matrices}
        result: dict[str, Extent] = {
            f"d{name}": "v" if self.program.given[name] == "q" else self.program.given[name]
            for name in self.given
        }
        sizes = [len(record.entries) for record in self.records]
        tail = ("parameters",) if self.parameters.numel() else ()
        inputs = (*self.given, *tail, *(weight_of(name) for name in self.program.result), *self.total_weights)
        inputs += tuple(weight_of(name) for name in self.matrices)
        ends = self.parameter_gradient() if self.for_parameters else None
        return DifferentiatedTrace(
            replace(self.program, given=extents, result=result, total=(), pairs=None),
            list(self.kinds),
            Trace(self.loops, sizes, self.world, {}, None, self.total_weights, self.back, ends),
            inputs,
        )

    def parameter_gradient(self) -> Visit:
        """Through the constants that are computed from them, and what the world starts with."""
        p, inputs = self.parameters, {"parameters": elements(self.parameters)}
        rows = {n: x for kind in self.kinds for n, x in zip(kind.nodes, kind.expressions, strict=False)}
        values = [x for node in sorted(rows) for x in elements(rows[node])]
        bars = inputs[BARS] = elements(ca.SX.sym("bar", len(values)))
        for at, expressions in self.world_bars.items():
            inputs[world_area(at)] = elements(ca.SX.sym("bar", len(expressions)))
            values, bars = values + expressions, bars + inputs[world_area(at)]
        found = _reverse(values, bars, elements(p))
        used = hashes(ca.symvar(ca.vertcat(*found)))
        inputs = {label: x for label, x in inputs.items() if not used.isdisjoint(hashes(x))}
        return Visit(inputs, {"dparameters": found})

    # -- the program itself --------------------------------------------------------------------------------

    def repeat(self, i: int, loop: Loop) -> None:
        """The loop as it was; what it passes on is shared, and what it has gathered is kept."""
        visits = []
        for visit in loop.visits:
            inputs = {
                label: symbols
                for label, symbols in visit.inputs.items()
                if label not in (OWN, SHARED, PASSED)
            }
            outputs = {label: values for label, values in visit.outputs.items() if label in (ADDED, PAIRED)}
            inputs[SHARED] = self.shared_symbols(i, visit)
            outputs[SHARED] = [*visit.outputs.get(SHARED, []), *visit.outputs.get(PASSED, [])]
            visits.append(Visit(inputs, outputs))
        self.loops.append(
            replace(loop, visits=visits, world=[], own_start=[], shared_start=self.shared_starts[i])
        )
        for k, visit in enumerate(loop.visits):
            for symbol, value in zip(self.left(k, i), visit.outputs.get(OWN, []), strict=True):
                self.records[k].entries.append((i, symbol, value))
            sums = visit.inputs.get(GATHERED, [])
            self.gathered[k][i] = [self.records[k].keep(i, x) for x in sums]

    def left(self, k: int, i: int) -> Scalars:
        """The symbols of what a kind left in its record in a loop."""
        start = self.trace.loops[i].own_start[k]
        count = len(self.trace.loops[i].visits[k].outputs.get(OWN, []))
        symbols = self.symbols_of(k)
        return symbols[start : start + count]

    def symbols_of(self, k: int) -> Scalars:
        for loop in self.trace.loops:
            if OWN in loop.visits[k].inputs:
                return loop.visits[k].inputs[OWN]
        return [ca.SX.sym("unused") for _ in range(self.trace.own_sizes[k])]

    def shared_symbols(self, i: int, visit: Visit) -> Scalars:
        """The symbols of a visit for what its parent shares or passed on, at their places."""
        symbols = [ca.SX.sym("unused") for _ in self.world]
        for old, symbol in enumerate(visit.inputs.get(SHARED, [])):
            symbols[self.shared_at[old]] = symbol
        received = visit.inputs.get(PASSED, [])
        symbols[self.passed_at[i] : self.passed_at[i] + len(received)] = received
        return symbols

    # -- backwards -----------------------------------------------------------------------------------------

    def pairs_adjoint(self, pairs: PairsTrace) -> PairsAdjoint:
        """The adjoints of all pairs; they only read what nodes stored for them."""
        widths = {form: kind.structure.joint.nv for form, kind in zip(pairs.form, self.kinds, strict=True)}
        visits = {}
        for (outer, inner), visit in pairs.visits.items():
            inputs, values, bars = dict(visit.inputs), [], []
            for name in self.matrices:
                for side, rows, columns in (
                    (0, widths[outer], widths[inner]),
                    (1, widths[inner], widths[outer]),
                ):
                    all_, block = self.block(rows, columns)
                    inputs[f"{weight_of(name)} {side}"] = all_
                    values += visit.outputs.get(f"{name} {side}", [ca.SX(0)] * len(block))
                    bars += block
            outputs = {}
            for label in (PAIRED, INNER + PAIRED):
                at = visit.inputs.get(label, [])
                own = label.replace(PAIRED, PAIRED_BARS)
                inputs[own] = elements(ca.SX.sym("bar", len(at)))
                found = _reverse(values, bars, at)
                outputs[own] = [a + b for a, b in zip(inputs[own], found, strict=True)]
            visits[outer, inner] = Visit(inputs, outputs)
            only_used(visits[outer, inner], _depends)
        return PairsAdjoint(self.forward, pairs.form, visits, pairs.sizes)

    def block(self, rows: int, columns: int) -> tuple[Scalars, Scalars]:
        """Symbols for the entries of a matrix from the first to the last of a block, and those of the block."""
        symbols = elements(ca.SX.sym("weight", (rows - 1) * self.width + columns))
        return symbols, [symbols[i * self.width + j] for i in range(rows) for j in range(columns)]

    def reverse(self, i: int, loop: Loop) -> None:
        outward = loop.direction == "outward"
        at = len(self.loops)
        passed = len(loop.world)
        gradients = [self.gradients(k, i, at, loop) for k in range(len(self.kinds))]
        used = sorted({place for g in gradients for place in g.shared})
        if outward:
            for g in gradients:
                g.inputs[GATHERED] = g.sums = g.sums[: passed + len(used)]
        # what goes back to the parent: of what it passed, of what it shares
        count = (passed if outward else 0) + len(used)
        visits = []
        for k, g in enumerate(gradients):
            inputs, outputs = g.inputs, g.outputs
            back = (g.passed if outward else []) + [g.shared.get(place, ca.SX(0)) for place in used]
            if outward:
                self.add(inputs, outputs, back)
            else:
                outputs[PASSED] = g.gathered
                g.waiting = [self.records[k].keep(at, x) for x in back]
            visits.append(Visit(inputs, outputs))
        direction: Literal["outward", "inward"] = "inward" if outward else "outward"
        world = [] if outward else self.total_bars(i, loop)
        if outward:
            self.world_bars[at] = [*loop.world, *(self.world[place] for place in used)]
        elif used:
            self.world_bars[at + 1] = [self.world[place] for place in used]
        self.loops.append(Loop(direction, visits, world, [], 0, [], count if outward else 0))
        if outward:
            self.collect(at, gradients, used, passed)
        elif used:
            visits = []
            for g in gradients:
                last = Visit({}, {})
                self.add(last.inputs, last.outputs, g.waiting)
                g.sums = last.inputs[GATHERED]
                visits.append(last)
            self.loops.append(Loop("inward", visits, [], [], 0, [], count))
            self.collect(at + 1, gradients, used, 0)

    def total_bars(self, i: int, loop: Loop) -> Scalars:
        """What the world gives back of what an inward loop has gathered in it: the weights of totals."""
        world = [ca.SX(0)] * loop.gathered
        for name, (at, visit) in self.trace.totals.items():
            if at == i:
                weights = elements(self.total_weights[weight_of(name)])
                found = _reverse(visit.outputs[name], weights, visit.inputs[GATHERED])
                world = [a + b for a, b in zip(world, found, strict=True)]
        return world

    def add(self, inputs: dict[str, Scalars], outputs: dict[str, Scalars], back: Scalars) -> None:
        others = elements(ca.SX.sym("others", len(back)))
        inputs[ADDED] = others
        inputs.setdefault(GATHERED, elements(ca.SX.sym("sum", len(back))))
        outputs[ADDED] = [a + b for a, b in zip(others, back, strict=True)]

    def collect(self, at: int, gradients: list[_Gradients], used: list[int], skip: int) -> None:
        """Keep what the children gave back of what a node shares."""
        for k, g in enumerate(gradients):
            for place, total in zip(used, g.sums[skip:], strict=True):
                before = self.shared_bars[k].get(place)
                value = total if before is None else before + total
                self.shared_bars[k][place] = self.records[k].keep(at, value)

    def from_record(self, visit: Visit, gathered: Scalars) -> Visit:
        """A visit that reads in its record what it had gathered."""
        if not gathered:
            return visit
        values = [x for part in visit.outputs.values() for x in part]
        old, new = ca.vertcat(*visit.inputs[GATHERED]), ca.vertcat(*gathered)
        found = iter(elements(ca.densify(ca.substitute(ca.vertcat(*values), old, new))))
        outputs = {label: [next(found) for _ in part] for label, part in visit.outputs.items()}
        return Visit({**visit.inputs, GATHERED: gathered}, outputs)

    def gradients(self, k: int, i: int, at: int, loop: Loop) -> _Gradients:
        """The adjoint of one visit."""
        visit, joint = (
            self.from_record(loop.visits[k], self.gathered[k].get(i, [])),
            self.kinds[k].structure.joint,
        )
        outward = loop.direction == "outward"
        inputs = {
            label: symbols
            for label, symbols in visit.inputs.items()
            if label not in (OWN, SHARED, PASSED, GATHERED, ADDED)
        }
        inputs[SHARED] = self.shared_symbols(i, visit)
        values: Scalars = []
        bars: Scalars = []

        def weigh(outputs: Sequence[ca.SX], adjoints: Sequence[ca.SX]) -> None:
            values.extend(outputs)
            bars.extend(adjoints)

        zero = ca.SX(0)
        for symbol, value in zip(self.left(k, i), visit.outputs.get(OWN, []), strict=True):
            weigh([value], [self.own_bars[k].get(symbol.element_hash(), zero)])
        for p, value in enumerate(visit.outputs.get(SHARED, [])):
            weigh([value], [self.shared_bars[k].get(self.shared_starts[i] + p, zero)])
        sums: Scalars = []
        if outward and loop.visits:
            # the sums over the children: first of what this loop passed, then of what is shared (filled by `reverse`)
            sums = elements(ca.SX.sym("sum", len(loop.world) + len(self.world)))
            inputs[GATHERED] = sums
            weigh(visit.outputs.get(PASSED, []), sums[: len(visit.outputs.get(PASSED, []))])
        if not outward and ADDED in visit.outputs:
            inputs[PASSED] = elements(ca.SX.sym("bar", loop.gathered))
            weigh(visit.outputs[ADDED], inputs[PASSED])
        if self.back and visit.outputs.get(PAIRED):
            inputs[PAIRED_BARS] = elements(ca.SX.sym("bar", self.back.sizes[self.back.form[k]]))
            start = loop.paired_start[k]
            weigh(visit.outputs[PAIRED], inputs[PAIRED_BARS][start : start + len(visit.outputs[PAIRED])])
        for name in self.matrices:
            if f"{name} 0" in visit.outputs and i == self.forward:
                inputs[weight_of(name)], block = self.block(joint.nv, joint.nv)
                weigh(visit.outputs[f"{name} 0"], block)
        for name in self.program.result:
            if name in visit.outputs:
                weight = elements(ca.SX.sym("weight", len(visit.outputs[name])))
                inputs[weight_of(name)] = weight
                weigh(visit.outputs[name], weight)

        wanted: list[tuple[str, int, ca.SX]] = []
        ignored = (READ, ADDED) if self.for_parameters else (READ, ADDED, COMPUTED)
        for label, symbols in visit.inputs.items():
            if label not in ignored:
                wanted += [(label, p, symbol) for p, symbol in enumerate(symbols)]
        found = _reverse(values, bars, [x for _, _, x in wanted])
        g = _Gradients(inputs, sums=sums)
        by_input: dict[str, Scalars] = {}
        for (label, p, symbol), gradient in zip(wanted, found, strict=True):
            if label == OWN:
                if not gradient.is_zero():
                    h = symbol.element_hash()
                    before = self.own_bars[k].get(h)
                    total = gradient if before is None else before + gradient
                    self.own_bars[k][h] = self.records[k].keep(at, total)
            elif label == SHARED:
                if not gradient.is_zero():
                    g.shared[self.shared_at[p]] = gradient
            elif label == COMPUTED:
                if not gradient.is_zero():
                    before = self.computed_bars[k].get(p)
                    total = gradient if before is None else before + gradient
                    self.computed_bars[k][p] = total if i == 0 else self.records[k].keep(at, total)
            elif label == PASSED:
                g.passed.append(gradient)
            elif label == GATHERED:
                g.gathered.append(gradient)
            else:
                by_input.setdefault(label, []).append(gradient)
        g.passed += [zero] * (len(loop.world) - len(g.passed))
        g.gathered += [zero] * (loop.gathered - len(g.gathered))
        self.add_given(k, i, at, by_input, visit, joint, g)
        if self.for_parameters and i == 0:
            g.outputs[BARS] = [self.computed_bars[k].get(p, zero) for p in range(len(self.kinds[k].computed))]
        return g

    def add_given(
        self,
        k: int,
        i: int,
        at: int,
        by_input: dict[str, Scalars],
        visit: Visit,
        joint: Any,
        g: _Gradients,
    ) -> None:
        """Gradients with respect to the inputs: kept, and in the last loop given out."""
        sizes = {"q": joint.nv, "v": joint.nv, "node6": 6}
        for name in self.given:
            extent = self.program.given[name]
            change: Scalars | None = by_input.get(name)
            if change is not None and extent == "q":
                step = ca.SX.sym("d", joint.nv)
                moved = ca.densify(joint.rate(ca.vertcat(*visit.inputs[name]), step))
                change = elements(ca.densify(ca.jtimes(moved, step, ca.vertcat(*change), True)))
            before = self.given_bars[k].get(name)
            total = change if before is None else before
            if change is not None and before is not None:
                total = [a + b for a, b in zip(before, change, strict=True)]
            if i == 0:
                g.outputs[f"d{name}"] = total or [ca.SX(0)] * sizes[extent]
            elif change is not None and total is not None:
                self.given_bars[k][name] = [self.records[k].keep(at, x) for x in total]


@dataclass
class _Gradients:
    """Of one visit: what goes into its adjoint, and the gradients with respect to what went into the visit."""

    inputs: dict[str, Scalars]
    outputs: dict[str, Scalars] = field(default_factory=dict)
    passed: Scalars = field(default_factory=list)
    gathered: Scalars = field(default_factory=list)
    shared: dict[int, ca.SX] = field(default_factory=dict)
    sums: Scalars = field(default_factory=list)
    waiting: Scalars = field(default_factory=list)
    """what is still to go to the parent, in the record"""


def _reverse(values: Scalars, bars: Scalars, at: Scalars) -> Scalars:
    if not values or not at:
        return [ca.SX(0)] * len(at)
    gradient = ca.jtimes(ca.vertcat(*values), ca.vertcat(*at), ca.vertcat(*bars), True)
    return elements(ca.densify(gradient))


def _depends(x: ca.SX) -> frozenset[int]:
    return frozenset() if x.is_constant() else frozenset(s.element_hash() for s in ca.symvar(x))
