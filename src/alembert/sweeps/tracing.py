"""Programs as loops over nodes: what each kind of node computes in each loop, traced on symbols.

Consecutive sweeps of one direction make one *loop*: outward, parents are complete before their children;
inward, all contributions are complete before a node's own visit. One *visit* is one node's share of a loop.
It reads and writes *areas* of memory, lists of scalars:

    GIVEN            the node's inputs, by name
    READ, COMPUTED   its constants
    OWN              what its earlier visits stored
    SHARED           what its parent's visits in earlier loops stored for its children
    PASSED           what its parent's visit in this loop passes on
    GATHERED         what its children's visits in this loop added up (all zero for a leaf)
    ADDED            what the visits of its siblings added up in its parent so far
    PAIRED           what it stored for pairs of nodes

Only what is read later is stored, and each scalar once. Numbers, inputs and whatever follows from the
constants alone, or by little arithmetic from the inputs, are not stored but made again: memory is what limits
long trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.sweeps.kinds import Kind
from alembert.sweeps.program import Extent, Pairs, Program, Record, Sweep, flat
from alembert.sweeps.values import Dense, elements, map_matrices, nonzeros, outline

READ, COMPUTED, OWN, SHARED, PASSED, GATHERED, ADDED, PAIRED = (
    "constants",
    "computed constants",
    "own record",
    "shared record",
    "passed",
    "gathered",
    "added",
    "paired record",
)


@dataclass
class Visit:
    """What one kind does in one loop: scalars by area, or by the names of inputs and results."""

    inputs: dict[str, list[ca.SX]]
    outputs: dict[str, list[ca.SX]] = field(default_factory=dict)


@dataclass
class Loop:
    direction: Literal["outward", "inward"]
    visits: list[Visit]
    """one per kind"""
    world: list[ca.SX] = field(default_factory=list)
    """what the world passes to the roots, of the model's parameters"""
    own_start: list[int] = field(default_factory=list)
    """for each kind, where in its own record the visit's part begins"""
    shared_start: int = 0
    paired_start: list[int] = field(default_factory=list)
    gathered: int = 0
    """how many scalars children add to their parent"""


INNER = "inner "
"""goes before the areas of the inner node of a pair"""


@dataclass
class Trace:
    loops: list[Loop]
    own_sizes: list[int]
    """scalars in the own record of each kind"""
    shared: list[ca.SX]
    """the world's shared record, of the model's parameters; as long as everyone's"""
    totals: dict[str, tuple[int, Visit]]
    """for each total, the loop that gathers it and the copy from the world's gathered area"""
    pairs: PairsTrace | None
    parameter_changes: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """directions of the parameters, in traces of tangent sweeps"""


@dataclass
class PairsTrace:
    """The blocks of the matrices, by rows; "NAME 0" has the rows of the outer node, "NAME 1" of the inner."""

    own: list[Visit]
    """for each kind, the blocks of a node with itself"""
    form: list[int]
    """for each kind, the form of its nodes as others see them"""
    visits: dict[tuple[int, int], Visit]
    """for the forms of a node and of one inboard of it"""
    sizes: list[int]
    """scalars that nodes of each form store for it"""


def trace(
    program: Program,
    kinds: Sequence[Kind],
    world: Record,
    given: Sequence[str],
    *,
    serial: bool = False,
) -> Trace:
    """Trace the program with the inputs `given`; the others are zero. In a `serial` tree no node has siblings."""
    cuts: set[int] = set()
    while True:
        try:
            return _Tracer(program, kinds, world, given, serial, cuts).run()
        except _Order as found:
            cuts.add(found.sweep)


class _Order(Exception):
    """The sweep may not be in one loop with those before it."""

    def __init__(self, sweep: int) -> None:
        self.sweep = sweep


class _Parent(Record):
    """Stands for the parent of a visited node."""

    def __init__(self, read: Callable[[str], Any], has: Callable[[str], bool]) -> None:
        self.__dict__.update(_read=read, _has=has, _contributions={}, _sweep=-1, _sweeps={})

    def __getattr__(self, name: str) -> Any:
        return self._read(name)

    def has(self, name: str) -> bool:
        return bool(self._has(name))

    def add(self, **contributions: Any) -> None:
        for name, value in contributions.items():
            known = self._contributions
            known[name] = known[name] + value if name in known else value
            if self._sweeps.setdefault(name, self._sweep) != self._sweep:
                raise _Order(self._sweep)  # between the two, parents see a part of the sum only


class _Traced:
    """One kind during the trace."""

    def __init__(self, kind: Kind, program: Program, given: Sequence[str]) -> None:
        self.kind = kind
        self.read = ca.SX.sym("c", len(kind.read))
        self.computed = ca.SX.sym("p", len(kind.computed))
        node = kind.node(self.read, self.computed)
        sizes = {"q": node.nq, "v": node.nv, "node6": 6}
        self.given: dict[str, ca.SX] = {}
        values = {}
        for name, extent in program.given.items():
            size = sizes[extent]
            values[name] = ca.SX(size, 1)
            if name in given:
                values[name] = self.given[name] = ca.SX.sym(name, size)
        self.record = Record(node=node, passive=program.passive, **values)
        self.constants = _hashes((*nonzeros(self.read), *nonzeros(self.computed)))
        self.known = self.constants | {h for x in self.given.values() for h in _hashes(nonzeros(x))}
        self.kept: dict[int, _Kept] = {}
        """by the hash of the symbol that stands for it in later loops"""
        self.finals: list[dict[str, Any]] = []
        """for each loop, the fields that it set"""
        self.contributions: list[dict[str, Any]] = []

    def areas(self) -> dict[str, list[ca.SX]]:
        found = {name: nonzeros(value) for name, value in self.given.items()}
        found[READ], found[COMPUTED] = nonzeros(self.read), nonzeros(self.computed)
        return found


@dataclass
class _Kept:
    loop: int
    symbol: ca.SX
    value: ca.SX
    wanted: bool = False


class _Watched(Record):
    """A record that keeps account of what it is asked for."""

    def __init__(self, record: Record, asked: set[str]) -> None:
        self.__dict__.update(_record=record, _asked=asked)

    def __getattr__(self, name: str) -> Any:
        self._asked.add(name)
        return getattr(self._record, name)

    def has(self, name: str) -> bool:
        self._asked.add(name)
        return bool(self._record.has(name))


@dataclass(frozen=True)
class _Widths:
    """What a pair may know of a node apart from its fields."""

    nq: int
    nv: int


class _Form:
    """What nodes of several kinds are alike to pairs of nodes: the same fields, full of symbols."""

    def __init__(self, record: Record, fields: dict[str, int]) -> None:
        """`fields` maps names to the loops that set them last."""
        widths = _Widths(record.node.nq, record.node.nv)
        self._loops = {
            name: max(loop, 0) for name, loop in fields.items() if name != "node" and record.has(name)
        }
        values = {name: getattr(record, name) for name in self._loops}
        self.key = (widths, tuple(self._loops.items()), tuple(outline(x) for x in values.values()))
        self._outer, self._inner = (
            {name: Dense(name, x, symmetric=False) for name, x in values.items()} for _ in range(2)
        )
        self.outer, self.inner = (
            Record(node=widths, **{name: dense.value for name, dense in side.items()})
            for side in (self._outer, self._inner)
        )

    def symbols(self, slot: tuple[int, str, int]) -> tuple[ca.SX, ca.SX]:
        """Of an entry in the outer and in the inner node."""
        _, name, entry = slot
        return self._outer[name].symbols[entry], self._inner[name].symbols[entry]

    def entry(self, slot: tuple[int, str, int], value: Any) -> ca.SX:
        return self._outer[slot[1]].entries(value)[slot[2]]

    def used(self, hashes: set[int]) -> list[tuple[int, str, int]]:
        """The entries (loop, field, number) of which one of the symbols is used, in order."""
        return sorted(
            slot
            for name, dense in self._outer.items()
            for entry in range(len(dense.symbols))
            for slot in [(self._loops[name], name, entry)]
            if any(symbol.element_hash() in hashes for symbol in self.symbols(slot))
        )


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
        self.kinds = [_Traced(kind, program, given) for kind in kinds]
        self.loops = _loops(program.sweeps, cuts)
        self.from_parent: list[dict[str, Dense]] = []
        """for each loop, the fields of the parent that were read"""
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

    # -- forward: run the steps --------------------------------------------------------------------------

    def contributed(self, loop: Sequence[tuple[int, Sweep]]) -> dict[str, Dense]:
        """The fields that a loop contributes to, as far as the first kind shows it."""
        if loop[0][1].direction == "outward":
            return {}
        record = Record(**self.kinds[0].record.__dict__)
        record.parent = parent = _Parent(lambda name: _dense_like(name, self.world).value, record.has)
        for at, sweep in loop:
            parent.__dict__["_sweep"] = at
            sweep.step(record)
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

    def visit(self, kind: _Traced, loop: Sequence[tuple[int, Sweep]]) -> dict[str, Any]:
        record = Record(**kind.record.__dict__)
        set_by: dict[str, set[int]] = {}  # field -> the sweeps of this loop that set it
        read_by: dict[str, set[int]] = {}  # field of the parent -> the sweeps of this loop that read it
        at = 0

        def read(name: str) -> Any:
            if any(name in fields for fields in self.gathered):
                raise UnsupportedError(
                    f"{self.program.name}: a step reads {name!r} of the parent, to which children add; loops do not "
                    "know what the roots add to the world"
                )
            read_by.setdefault(name, set()).add(at)
            fields = self.from_parent[-1]
            if name not in fields:
                fields[name] = _dense_like(name, self.world)
            return fields[name].value

        def has(name: str) -> bool:
            self.asked[name] = record.has(name)
            return self.asked[name]

        record.parent = parent = _Parent(read, has)
        previous = dict(record.__dict__)
        for at, sweep in loop:
            for name, dense in self.gathered[-1].items():
                if (
                    self.adding[-1][name] == at
                ):  # all children have contributed, and the sweeps before are over
                    record.add(**{name: dense.value})
                    previous[name] = record.__dict__[name]
            parent.__dict__["_sweep"] = at
            sweep.step(record)
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
                raise _Order(min(late))
        del record.__dict__["parent"]
        kind.finals.append({name: record.__dict__[name] for name in (*set_by, *self.gathered[-1])})
        kind.contributions.append(parent._contributions)
        for name, adds in parent._sweeps.items():
            if self.adding[-1].setdefault(name, adds) != adds:
                raise _Order(max(adds, self.adding[-1][name]))
        return parent._contributions

    def check_asked(self) -> None:
        """A step may ask whether the parent has a field only if all nodes have it, or none."""
        for name, answer in self.asked.items():
            if any((name in kind.finals[-1] or kind.record.has(name)) != answer for kind in self.kinds):
                raise UnsupportedError(
                    f"{self.program.name}: whether a node has {name!r} depends on its parent's kind"
                )

    def keep(self, kind: _Traced) -> None:
        """Replace what the last loop set by what later loops see of it."""
        loop = len(kind.finals) - 1
        local = _hashes(s for dense in self.from_parent[loop].values() for s in dense.symbols)
        local |= _hashes(s for dense in self.gathered[loop].values() for s in dense.symbols)
        seen: dict[int, ca.SX] = {}

        def later(x: ca.SX) -> ca.SX:
            if x.is_constant():
                return x
            h = x.element_hash()
            if x.is_symbolic() and h not in local:
                return x
            if h not in seen:
                known = self.depends(x)
                if known <= kind.constants or (known <= kind.known and _is_cheap(x)):
                    seen[h] = x
                else:
                    seen[h] = symbol = ca.SX.sym("r")
                    kind.kept[symbol.element_hash()] = _Kept(loop, symbol, x)
            return seen[h]

        for name, value in kind.finals[loop].items():
            kind.record.__dict__[name] = map_matrices(
                value, lambda m: ca.SX(m.sparsity(), ca.vertcat(*map(later, nonzeros(m)))) if m.nnz() else m
            )

    def depends(self, x: ca.SX) -> frozenset[int]:
        """The hashes of the symbols in a scalar."""
        h = x.element_hash()
        if h not in self.dependencies:  # with the scalar: its hash is its address
            found = frozenset() if x.is_constant() else frozenset(_hashes(ca.symvar(x)))
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
        shared: list[_Slot] = []
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

    def last_set(self, name: str, before: int) -> int:
        """The last loop before the given one that set a field, in some kind; -1 for none."""
        return max(
            (i for kind in self.kinds for i, fields in enumerate(kind.finals[:before]) if name in fields),
            default=-1,
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

    def pass_on(self, i: int, loop: Loop, shared: list[_Slot]) -> None:
        """Find the entries of the parent that are read, add what its visit must pass for it, and so on."""
        complete = i + 1 if loop.direction == "outward" else i  # loops that the parent has behind it
        slots = {
            symbol.element_hash(): _Slot(self.last_set(name, complete), name, entry, dense)
            for name, dense in self.from_parent[i].items()
            for entry, symbol in enumerate(dense.symbols)
        }
        for slot in slots.values():
            if slot.loop < 0:
                raise UnsupportedError(
                    f"{self.program.name}: a step reads {slot.name!r} of the parent, which no step sets"
                )
        stored = [slot for slot in _in_order(shared) if slot.loop == i]
        passed: list[tuple[int, _Slot]] = []
        while True:
            for kind, visit in zip(self.kinds, loop.visits, strict=True):
                visit.outputs[SHARED] = [slot.of(self.value(kind, slot.name, i)) for slot in stored]
                visit.outputs[PASSED] = [slot.of(self.value(kind, slot.name, i)) for _, slot in passed]
                self.want_kept(kind, visit, i)
            used = {h for visit in loop.visits for h in self.used(visit)}
            wanted = [(h, slot) for h, slot in slots.items() if h in used and slot.loop == i]
            if len(wanted) == len(passed):
                break
            passed = wanted
        for visit in loop.visits:
            visit.inputs[PASSED] = [slot.symbol for _, slot in passed]
        loop.world = [slot.of(getattr(self.world, slot.name)) for _, slot in passed]
        known = {slot.key: slot for slot in shared}
        for h, slot in slots.items():
            if h in used and slot.loop < i:
                known.setdefault(slot.key, slot).readers.append((i, slot.symbol))
        shared[:] = known.values()

    def want_kept(self, kind: _Traced, visit: Visit, i: int) -> None:
        visit.outputs[OWN] = [kept.value for kept in kind.kept.values() if kept.loop == i and kept.wanted]

    def value(self, kind: _Traced, name: str, loop: int) -> Record:
        """A field of the record after a loop, as an expression of that loop's symbols."""
        return kind.finals[loop][name] if name in kind.finals[loop] else getattr(kind.record, name)

    def used(self, visit: Visit) -> set[int]:
        return {h for values in visit.outputs.values() for x in values for h in self.depends(x)}

    def want(self, kind: _Traced, visit: Visit) -> None:
        for h in self.used(visit):
            if h in kind.kept:
                kind.kept[h].wanted = True

    def assign_records(self, loops: list[Loop], shared: list[_Slot], pairs: PairsTrace | None) -> None:
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
        asked: set[str] = set()
        for kind in self.kinds:
            pairs.visit(_Watched(kind.record, asked), _Watched(kind.record, asked))
        self.forms: list[_Form] = []
        form = []
        for kind in self.kinds:
            new = _Form(kind.record, {name: self.last_set(name, len(self.loops)) for name in sorted(asked)})
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
    visit = Visit(areas)
    for name, blocks in zip(pairs.names, pairs.visit(outer, inner), strict=True):
        for side, block in enumerate(blocks[: 1 if outer is inner else 2]):
            visit.outputs[f"{name} {side}"] = _by_rows(block)
    return visit


@dataclass
class _Slot:
    """An entry of a field that nodes keep or pass on for their children."""

    loop: int
    name: str
    entry: int
    dense: Dense
    readers: list[tuple[int, ca.SX]] = field(default_factory=list)
    """the loops that read it from the shared record, and the symbols there"""

    @property
    def key(self) -> tuple[int, str, int]:
        return self.loop, self.name, self.entry

    @property
    def symbol(self) -> ca.SX:
        return self.dense.symbols[self.entry]

    def of(self, value: Any) -> ca.SX:
        """The entry of a field's value, or of the field in a record."""
        if isinstance(value, Record):
            value = getattr(value, self.name)
        return self.dense.entries(value)[self.entry]


def _is_cheap(x: ca.SX) -> bool:
    """Whether a scalar is a few sums and products of symbols, their sines and cosines."""
    function = ca.Function("x", ca.symvar(x), [x])
    count = function.n_instructions()
    if count > CHEAP:
        return False
    loaded: set[int] = set()  # registers that hold symbols
    for k in range(count):
        op, registers = function.instruction_id(k), function.instruction_output(k)
        if op == ca.OP_INPUT:
            loaded.add(registers[0])
        elif op in _CHEAP or (op in _TURN and function.instruction_input(k)[0] in loaded):
            loaded.discard(registers[0])
        elif op != ca.OP_OUTPUT:
            return False
    return True


CHEAP = 60  # instructions
_TURN = frozenset((ca.OP_SIN, ca.OP_COS))
_CHEAP = frozenset((ca.OP_CONST, ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE))


def _loops(sweeps: Sequence[Sweep], cuts: set[int]) -> list[list[tuple[int, Sweep]]]:
    """Consecutive sweeps of one direction, with their numbers."""
    loops: list[list[tuple[int, Sweep]]] = []
    for k, sweep in enumerate(sweeps):
        if not loops or k in cuts or loops[-1][-1][1].direction != sweep.direction:
            loops.append([])
        loops[-1].append((k, sweep))
    return loops


def _dense_like(name: str, world: Record) -> Dense:
    return Dense(name, getattr(world, name), symmetric=False)


def _by_rows(m: ca.SX) -> list[ca.SX]:
    return elements(m.T)


def _result(value: Any, extent: Extent) -> list[ca.SX]:
    if extent == "table":
        return _by_rows(ca.densify(value))
    if extent == "own":
        return [x for m in value for x in _by_rows(ca.densify(m))]
    return _by_rows(value.T) if extent == "v6" else nonzeros(flat(value))


def _in_order(slots: Iterable[_Slot]) -> list[_Slot]:
    return sorted(slots, key=lambda slot: slot.key)


def _hashes(symbols: Iterable[ca.SX]) -> set[int]:
    return {s.element_hash() for s in symbols}


def only_used(visit: Visit, depends: Callable[[ca.SX], frozenset[int]]) -> None:
    """Drop areas of which no scalar is used, and empty outputs."""
    visit.outputs = {name: values for name, values in visit.outputs.items() if values}
    used = {h for values in visit.outputs.values() for x in values for h in depends(x)}
    visit.inputs = {
        name: values for name, values in visit.inputs.items() if not used.isdisjoint(_hashes(values))
    }
