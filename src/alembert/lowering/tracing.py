"""Tracing: what each kind of node computes in each loop of a program (see `alembert.sweeps.visits`), on symbols.

Only what is read later is stored, and each scalar once. Numbers, inputs and whatever follows from the
constants alone, or by little arithmetic from the inputs, are not stored but made again: memory is what limits
long trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.lowering.traced_records import (
    Kept,
    Order,
    PairForm,
    Parent,
    Slot,
    Traced,
    Watched,
    face,
    field_of,
    has_field,
    is_cheap,
    key_of,
)
from alembert.sweeps.kinds import Kind
from alembert.sweeps.node import Record
from alembert.sweeps.program import Extent, Pairs, Program, Sweep, flat, run
from alembert.sweeps.visits import (
    ADDED,
    GATHERED,
    INNER,
    OWN,
    PAIRED,
    PASSED,
    SHARED,
    Dense,
    Loop,
    PairsTrace,
    Trace,
    Visit,
    elements,
    hashes,
    map_matrices,
    nonzeros,
    only_used,
)


def trace(
    program: Program,
    kinds: Sequence[Kind],
    world: Record,
    given: Sequence[str],
    *,
    serial: bool = False,
) -> Trace:
    """Trace the program with the inputs `given`; the others are zero. In a `serial` tree no node has siblings.

    What a trace depends on is in the kinds but for the numbers that are read, so that many models have the same one.
    """
    if not world.gravity.is_constant():
        return _trace(program, kinds, world, given, serial)
    gravity = tuple(float(x) for x in world.gravity.elements())
    forms = tuple((k.structure, k.numbers, tuple(k.read), tuple(k.computed)) for k in kinds)
    key = (id(program), forms, gravity, tuple(given), serial)
    if key not in TRACES:
        if len(TRACES) >= MOST:
            TRACES.clear()
        TRACES[key] = program, _trace(program, kinds, world, given, serial)
    return _copy(TRACES[key][1])


MOST = 500
"""traces that are kept; some ten kilobytes each"""
TRACES: dict[tuple[object, ...], tuple[Program, Trace]] = {}
"""with their programs, which tell them apart by identity"""


def _copy(known: Trace) -> Trace:
    """Whose visits may be changed."""
    loops = [replace(loop, visits=[_copied(visit) for visit in loop.visits]) for loop in known.loops]
    pairs = known.pairs
    if pairs:
        visits = {key: _copied(visit) for key, visit in pairs.visits.items()}
        pairs = replace(pairs, own=[_copied(visit) for visit in pairs.own], visits=visits)
    return replace(known, loops=loops, pairs=pairs)


def _copied(visit: Visit) -> Visit:
    return Visit(dict(visit.inputs), dict(visit.outputs))


def _trace(
    program: Program, kinds: Sequence[Kind], world: Record, given: Sequence[str], serial: bool
) -> Trace:
    cuts: set[int] = set()
    while True:
        try:
            return _Tracer(program, kinds, world, given, serial, cuts).run()
        except Order as found:
            cuts.add(found.sweep)


class _Tracer:
    def __init__(
        self,
        program: Program,
        kinds: Sequence[Kind],
        world: Record,
        given: Sequence[str],
        serial: bool,
        cuts: set[int],
    ) -> None:
        self.program, self.world, self.serial = program, world, serial
        self.kinds = [Traced(kind, program, given) for kind in kinds]
        self.loops = _loops(program.sweeps, cuts)
        self.from_parent: list[dict[str, Dense]] = []
        """for each loop, the fields of the parent that were read, by their keys (`key_of`)"""
        self.gathered: list[dict[str, Dense]] = []
        """for each loop, the fields that children contribute to"""
        self.adding: list[dict[str, int]] = []
        """for each loop and such a field, the sweep that contributes"""
        self.dependencies: dict[int, tuple[ca.SX, frozenset[int]]] = {}

    def run(self) -> Trace:
        for loop in self.loops:
            self.from_parent.append({})
            self.adding.append({})
            self.gathered.append(self.contributed(loop))
            self.asked: dict[str, bool] = {}
            while self.visit_all(loop):
                pass
            self.check_asked()
            for kind in self.kinds:
                self.keep(kind)
        return self.layout(self.trace_pairs(self.program.pairs) if self.program.pairs else None)

    def dense_like(self, key: str) -> Dense:
        """A field of the parent: that of the world, or a number for each mode."""
        name, _, modes = key.partition("/")
        example = ca.SX.zeros(int(modes)) if modes else getattr(self.world, name)
        return Dense(name, example, symmetric=False)

    # -- forward: run the steps --------------------------------------------------------------------------

    def contributed(self, loop: Sequence[tuple[int, Sweep]]) -> dict[str, Dense]:
        """The fields that a loop contributes to, as far as the first kind shows it."""
        if loop[0][1].direction == "outward":
            return {}
        record = Record(**self.kinds[0].record.__dict__)
        carrier = record.node.structure.carrier
        record.parent = parent = Parent(
            lambda name: self.dense_like(key_of(name, carrier)).value, record.has, carrier
        )
        for at, sweep in loop:
            parent.__dict__["_sweep"] = at
            run(sweep.step, record)
        self.adding[-1] |= parent._sweeps
        return {name: Dense(name, value) for name, value in parent._contributions.items()}

    def visit_all(self, loop: Sequence[tuple[int, Sweep]]) -> bool:
        """Run a loop's steps for all kinds; whether it has to be done again with other gathered fields."""
        again = False
        gathered = self.gathered[-1]
        for kind in self.kinds:
            del kind.finals[len(self.gathered) - 1 :], kind.contributions[len(self.gathered) - 1 :]
            contributions = self.visit(kind, loop)
            if contributions and loop[0][1].direction == "outward":
                raise UnsupportedError(f"{self.program.name}: an outward step adds to its parent")
            for name, value in contributions.items():
                if name not in gathered:
                    gathered[name] = Dense(name, value)
                    again = True
                elif not gathered[name].holds(value):
                    gathered[name] = Dense(name, value, symmetric=False)
                    again = True
        return again

    def visit(self, kind: Traced, loop: Sequence[tuple[int, Sweep]]) -> dict[str, Any]:
        record = Record(**kind.record.__dict__)
        set_by: dict[str, set[int]] = {}  # field -> the sweeps of this loop that set it
        read_by: dict[str, set[int]] = {}  # field of the parent -> the sweeps of this loop that read it
        at = 0

        structure = record.node.structure

        def read(name: str) -> Any:
            key = key_of(name, structure.carrier)
            if any(key in fields for fields in self.gathered):
                raise UnsupportedError(
                    f"{self.program.name}: a step reads {name!r} of the parent, to which children add; loops do not "
                    "know what the roots add to the world"
                )
            read_by.setdefault(name, set()).add(at)
            fields = self.from_parent[-1]
            if key not in fields:
                fields[key] = self.dense_like(key)
            return fields[key].value

        def has(name: str) -> bool:
            self.asked[name] = record.has(name)
            return self.asked[name]

        record.parent = parent = Parent(read, has, structure.carrier)
        previous = dict(record.__dict__)
        for at, sweep in loop:
            for key, dense in self.gathered[-1].items():
                # all children have contributed, and the sweeps before are over
                if self.adding[-1][key] == at and has_field(structure, key):
                    name = field_of(key)
                    record.add(**{name: dense.value})
                    previous[name] = record.__dict__[name]
            parent.__dict__["_sweep"] = at
            run(sweep.step, record)
            for name, value in record.__dict__.items():
                if name not in previous or previous[name] is not value:
                    set_by.setdefault(name, set()).add(at)
            previous = dict(record.__dict__)
        for name, readers in read_by.items():
            first, then = readers, set_by.get(name, set())  # outward, parents are ahead: set too early
            if loop[0][1].direction == "inward":
                first, then = then, first  # parents are behind: set too late
            late = [sweep for sweep in then if first and sweep > min(first)]
            if late:
                raise Order(min(late))
        del record.__dict__["parent"]
        gathered = [field_of(key) for key in self.gathered[-1] if has_field(structure, key)]
        kind.finals.append({name: record.__dict__[name] for name in (*set_by, *gathered)})
        kind.contributions.append(parent._contributions)
        for name, adds in parent._sweeps.items():
            if self.adding[-1].setdefault(name, adds) != adds:
                raise Order(max(adds, self.adding[-1][name]))
        return parent._contributions

    def check_asked(self) -> None:
        """A step may ask whether the parent has a field only if all nodes have it, or none."""
        for name, answer in self.asked.items():
            if any((name in kind.finals[-1] or kind.record.has(name)) != answer for kind in self.kinds):
                raise UnsupportedError(
                    f"{self.program.name}: whether a node has {name!r} depends on its parent's kind"
                )

    def keep(self, kind: Traced) -> None:
        """Replace what the last loop set by what later loops see of it."""
        loop = len(kind.finals) - 1
        local = hashes(s for dense in self.from_parent[loop].values() for s in dense.symbols)
        local |= hashes(s for dense in self.gathered[loop].values() for s in dense.symbols)
        seen: dict[int, ca.SX] = {}

        def later(x: ca.SX) -> ca.SX:
            if x.is_constant():
                return x
            h = x.element_hash()
            if x.is_symbolic() and h not in local:
                return x
            if h not in seen:
                known = self.depends(x)
                if known <= kind.constants or (known <= kind.known and is_cheap(x)):
                    seen[h] = x
                else:
                    seen[h] = symbol = ca.SX.sym("r")
                    kind.kept[symbol.element_hash()] = Kept(loop, symbol, x)
            return seen[h]

        for name, value in kind.finals[loop].items():
            kind.record.__dict__[name] = map_matrices(
                value, lambda m: ca.SX(m.sparsity(), ca.vertcat(*map(later, nonzeros(m)))) if m.nnz() else m
            )

    def depends(self, x: ca.SX) -> frozenset[int]:
        """The hashes of the symbols in a scalar."""
        h = x.element_hash()
        if h not in self.dependencies:  # with the scalar: its hash is its address
            found = frozenset() if x.is_constant() else frozenset(hashes(ca.symvar(x)))
            self.dependencies[h] = (x, found)
        return self.dependencies[h][1]

    # -- backward: what has to be stored, and where ------------------------------------------------------

    def layout(self, pairs: PairsTrace | None) -> Trace:
        loops = [
            Loop(loop[0][1].direction, [Visit(kind.areas()) for kind in self.kinds]) for loop in self.loops
        ]
        self.results(loops)
        if pairs:
            self.store_for_pairs(loops, pairs)
            for kind, visit in zip(self.kinds, pairs.own, strict=True):
                self.want(kind, visit)
        shared: list[Slot] = []
        """fields' entries that later loops read in the parent's record"""
        for i in reversed(range(len(loops))):
            self.add_contributions(i, loops[i])
            self.pass_on(i, loops[i], shared)
            for kind, visit in zip(self.kinds, loops[i].visits, strict=True):
                self.want(kind, visit)
        self.assign_records(loops, shared, pairs)
        totals = {name: self.total(name) for name in self.program.total}
        visits = [visit for loop in loops for visit in loop.visits]
        if pairs:
            visits += [*pairs.own, *pairs.visits.values()]
        for visit in visits:
            only_used(visit, self.depends)
        sizes = [sum(kept.wanted for kept in kind.kept.values()) for kind in self.kinds]
        return Trace(loops, sizes, [slot.of(self.world) for slot in _in_order(shared)], totals, pairs)

    def results(self, loops: list[Loop]) -> None:
        for name, extent in self.program.result.items():
            at = self.last_set(name, len(loops))
            for kind, visit in zip(self.kinds, loops[at].visits, strict=True):
                value = kind.finals[at][name] if name in kind.finals[at] else getattr(kind.record, name)
                visit.outputs[name] = _result(value, extent)

    def last_set(self, key: str, before: int) -> int:
        """The last loop before the given one that set a field, in some kind that has it; -1 for none.

        What is given is there from the first loop on.
        """
        name, kinds = field_of(key), [kind for kind in self.kinds if has_field(kind.kind.structure, key)]
        return max(
            (i for kind in kinds for i, fields in enumerate(kind.finals[:before]) if name in fields),
            default=0 if name in self.program.given else -1,
        )

    def add_contributions(self, i: int, loop: Loop) -> None:
        for kind, visit in zip(self.kinds, loop.visits, strict=True):
            entries: list[ca.SX] = []
            for name, dense in self.gathered[i].items():
                visit.inputs.setdefault(GATHERED, []).extend(dense.symbols)
                visit.inputs.setdefault(ADDED, []).extend(dense.others)
                value = kind.contributions[i].get(name)
                own = dense.entries(value) if value is not None else [ca.SX(0)] * len(dense.symbols)
                entries += own if self.serial else [a + b for a, b in zip(dense.others, own, strict=True)]
            visit.outputs[ADDED] = entries
            loop.gathered = len(entries)

    def pass_on(self, i: int, loop: Loop, shared: list[Slot]) -> None:
        """Find the entries of the parent that are read, add what its visit must pass for it, and so on."""
        complete = i + 1 if loop.direction == "outward" else i  # loops that the parent has behind it
        slots = {
            symbol.element_hash(): Slot(self.last_set(name, complete), name, entry, dense)
            for name, dense in self.from_parent[i].items()
            for entry, symbol in enumerate(dense.symbols)
        }
        for slot in slots.values():
            if slot.loop < 0:
                raise UnsupportedError(
                    f"{self.program.name}: a step reads {slot.name!r} of the parent, which no step sets"
                )
        stored = [slot for slot in _in_order(shared) if slot.loop == i]
        passed: list[tuple[int, Slot]] = []
        while True:
            for kind, visit in zip(self.kinds, loop.visits, strict=True):
                visit.outputs[SHARED] = [self.entry(kind, slot, i) for slot in stored]
                visit.outputs[PASSED] = [self.entry(kind, slot, i) for _, slot in passed]
                self.want_kept(kind, visit, i)
            used = {h for visit in loop.visits for h in self.used(visit)}
            wanted = [(h, slot) for h, slot in slots.items() if h in used and slot.loop == i]
            if len(wanted) == len(passed):
                break
            passed = wanted
        for visit in loop.visits:
            visit.inputs[PASSED] = [slot.symbol for _, slot in passed]
        loop.world = [slot.of(self.world) for _, slot in passed]
        known = {slot.key: slot for slot in shared}
        for h, slot in slots.items():
            if h in used and slot.loop < i:
                known.setdefault(slot.key, slot).readers.append((i, slot.symbol))
        shared[:] = known.values()

    def want_kept(self, kind: Traced, visit: Visit, i: int) -> None:
        visit.outputs[OWN] = [kept.value for kept in kind.kept.values() if kept.loop == i and kept.wanted]

    def entry(self, kind: Traced, slot: Slot, loop: int) -> ca.SX:
        """What a node keeps or passes on; zero where it has no such field."""
        if not has_field(kind.kind.structure, slot.name):
            return ca.SX(0)
        return slot.of(self.value(kind, field_of(slot.name), loop))

    def value(self, kind: Traced, name: str, loop: int) -> Any:
        """A field of the record after a loop, as an expression of that loop's symbols."""
        return kind.finals[loop][name] if name in kind.finals[loop] else getattr(kind.record, name)

    def used(self, visit: Visit) -> set[int]:
        return {h for values in visit.outputs.values() for x in values for h in self.depends(x)}

    def want(self, kind: Traced, visit: Visit) -> None:
        for h in self.used(visit):
            if h in kind.kept:
                kind.kept[h].wanted = True

    def assign_records(self, loops: list[Loop], shared: list[Slot], pairs: PairsTrace | None) -> None:
        ordered = _in_order(shared)
        for i, loop in enumerate(loops):
            loop.shared_start = sum(slot.loop < i for slot in ordered)
            places = [dict(slot.readers).get(i) for slot in ordered]
            for visit in loop.visits:
                visit.inputs[SHARED] = [ca.SX.sym("unused") if s is None else s for s in places]
        for k, kind in enumerate(self.kinds):
            wanted = [kept for kept in kind.kept.values() if kept.wanted]
            symbols = [kept.symbol for kept in wanted]
            for i, loop in enumerate(loops):
                loop.own_start.append(sum(kept.loop < i for kept in wanted))
                loop.visits[k].inputs[OWN] = symbols
            if pairs:
                pairs.own[k].inputs[OWN] = symbols

    def total(self, name: str) -> tuple[int, Visit]:
        *earlier, loop = (i for i, fields in enumerate(self.gathered) if name in fields)
        if earlier:
            raise UnsupportedError(f"{self.program.name}: children add to {name!r} in several loops")
        value = self.gathered[loop][name].value
        if self.world.has(name):
            value = getattr(self.world, name) + value
        symbols = [s for dense in self.gathered[loop].values() for s in dense.symbols]
        return loop, Visit({GATHERED: symbols}, {name: nonzeros(flat(value))})

    # -- pairs of nodes ----------------------------------------------------------------------------------

    def trace_pairs(self, pairs: Pairs) -> PairsTrace:
        own = [_blocks(pairs, kind.record, kind.record, kind.areas()) for kind in self.kinds]
        asked: set[str] = {"columns_P"}
        for kind in self.kinds:
            inner = kind.record
            if inner.node.structure.stiffening:
                inner = Record(**(inner.__dict__ | {"columns": ca.SX(6, inner.node.nv)}))
            pairs.visit(Watched(kind.record, asked), Watched(inner, asked))
        self.forms: list[PairForm] = []
        form = []
        for kind in self.kinds:
            new = PairForm(
                kind.record, {name: self.last_set(name, len(self.loops)) for name in sorted(asked)}
            )
            form.append(next((k for k, f in enumerate(self.forms) if f.key == new.key), len(self.forms)))
            if form[-1] == len(self.forms):
                self.forms.append(new)
        visits = {
            (i, j): _blocks(pairs, outer.outer, inner.inner, {})
            for i, outer in enumerate(self.forms)
            for j, inner in enumerate(self.forms)
        }
        return PairsTrace(own, form, visits, [0] * len(self.forms))

    def store_for_pairs(self, loops: list[Loop], pairs: PairsTrace) -> None:
        """Find the entries that pairs read of each form, and make the loops store them."""
        used = {h for visit in pairs.visits.values() for h in self.used(visit)}
        slots = [form.used(used) for form in self.forms]
        for (i, j), visit in pairs.visits.items():
            visit.inputs[PAIRED] = [self.forms[i].symbols(slot)[0] for slot in slots[i]]
            visit.inputs[INNER + PAIRED] = [self.forms[j].symbols(slot)[1] for slot in slots[j]]
        pairs.sizes = [len(found) for found in slots]
        for at, loop in enumerate(loops):
            for k, (kind, visit) in enumerate(zip(self.kinds, loop.visits, strict=True)):
                form, found = self.forms[pairs.form[k]], slots[pairs.form[k]]
                loop.paired_start.append(sum(slot[0] < at for slot in found))
                visit.outputs[PAIRED] = [
                    form.entry(slot, self.value(kind, slot[1], at)) for slot in found if slot[0] == at
                ]


def _blocks(pairs: Pairs, outer: Record, inner: Record, areas: dict[str, list[ca.SX]]) -> Visit:
    """Of a node with itself or one inboard of it, and with the modes that the inner one hangs on (sides 2 and 3)."""
    visit = Visit(areas)

    def add(inner: Record, sides: tuple[int, ...]) -> None:
        for name, blocks in zip(pairs.names, pairs.visit(outer, inner), strict=True):
            for side, block in zip(sides, blocks, strict=False):
                visit.outputs[f"{name} {side}"] = _by_rows(ca.densify(block))

    if outer is inner:
        add(inner, (0,))
    elif not inner.has("hidden"):
        add(inner, (0, 1))
    if inner.has("columns_P"):
        add(face(inner), (2, 3))
    return visit


def _loops(sweeps: Sequence[Sweep], cuts: set[int]) -> list[list[tuple[int, Sweep]]]:
    """Consecutive sweeps of one direction, with their numbers."""
    loops: list[list[tuple[int, Sweep]]] = []
    for k, sweep in enumerate(sweeps):
        if not loops or k in cuts or loops[-1][-1][1].direction != sweep.direction:
            loops.append([])
        loops[-1].append((k, sweep))
    return loops


def _by_rows(m: ca.SX) -> list[ca.SX]:
    return elements(m.T)


def _result(value: Any, extent: Extent) -> list[ca.SX]:
    if extent == "table":
        return _by_rows(ca.densify(value))
    if extent == "own":
        return [x for m in value for x in _by_rows(ca.densify(m))]
    return _by_rows(value.T) if extent == "v6" else nonzeros(flat(value))


def _in_order(slots: Iterable[Slot]) -> list[Slot]:
    return sorted(slots, key=lambda slot: slot.key)
