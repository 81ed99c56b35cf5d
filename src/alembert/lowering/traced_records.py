"""What stands for nodes, their parents and their fields while the steps of a program are traced on symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from alembert.sweeps.kinds import Kind
from alembert.sweeps.node import OF_MODES, Carrier, Record, Structure
from alembert.sweeps.program import Program
from alembert.sweeps.visits import COMPUTED, READ, Dense, hashes, nonzeros, outline


class Order(Exception):
    """The sweep may not be in one loop with those before it."""

    def __init__(self, sweep: int) -> None:
        self.sweep = sweep


def key_of(name: str, carrier: Carrier) -> str:
    """The name of a parent's field; those of its modes are of different sizes, and carry their number."""
    return f"{name}/{carrier.modes}" if carrier.modes and name in OF_MODES else name


def field_of(key: str) -> str:
    return key.partition("/")[0]


def has_field(structure: Structure, key: str) -> bool:
    """Whether nodes of a structure have a field that children read or add to."""
    modes = key.partition("/")[2]
    return not modes or bool(structure.stiffening and structure.joint.nv == int(modes))


class Parent(Record):
    """Stands for the parent of a visited node; contributions have the keys of the fields."""

    def __init__(self, read: Callable[[str], Any], has: Callable[[str], bool], carrier: Carrier) -> None:
        self.__dict__.update(_read=read, _has=has, _carrier=carrier, _contributions={}, _sweep=-1, _sweeps={})

    def __getattr__(self, name: str) -> Any:
        return self._read(name)

    def has(self, name: str) -> bool:
        return bool(self._has(name))

    def add(self, **contributions: Any) -> None:
        for field_name, value in contributions.items():
            known, name = self._contributions, key_of(field_name, self._carrier)
            known[name] = known[name] + value if name in known else value
            if self._sweeps.setdefault(name, self._sweep) != self._sweep:
                raise Order(self._sweep)  # between the two, parents see a part of the sum only


class Traced:
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
        self.constants = hashes((*nonzeros(self.read), *nonzeros(self.computed)))
        self.known = self.constants | {h for x in self.given.values() for h in hashes(nonzeros(x))}
        self.kept: dict[int, Kept] = {}
        """by the hash of the symbol that stands for it in later loops"""
        self.finals: list[dict[str, Any]] = []
        """for each loop, the fields that it set"""
        self.contributions: list[dict[str, Any]] = []

    def areas(self) -> dict[str, list[ca.SX]]:
        found = {name: nonzeros(value) for name, value in self.given.items()}
        found[READ], found[COMPUTED] = nonzeros(self.read), nonzeros(self.computed)
        return found


@dataclass
class Kept:
    """A scalar that a later loop may need."""

    loop: int
    symbol: ca.SX
    value: ca.SX
    wanted: bool = False


class Watched(Record):
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
    seen: int = 0
    """the modes of its parent, which it sees"""


def face(record: Record) -> Record:
    """A mode node as the node sees it that hangs on it."""
    n = record.columns_P.shape[1]
    return Record(node=_Widths(n, n), columns=record.columns_P)


class PairForm:
    """What nodes of several kinds are alike to pairs of nodes: the same fields, full of symbols."""

    def __init__(self, record: Record, fields: dict[str, int]) -> None:
        """`fields` maps names to the loops that set them last."""
        seen = record.columns_P.shape[1] if record.has("columns_P") else 0
        widths = _Widths(record.node.nq, record.node.nv, seen)
        self._loops = {
            name: max(loop, 0) for name, loop in fields.items() if name != "node" and record.has(name)
        }
        values = {name: getattr(record, name) for name in self._loops}
        self.key = (
            widths,
            bool(record.node.structure.stiffening),
            tuple(self._loops.items()),
            tuple(outline(x) for x in values.values()),
        )
        self._outer, self._inner = (
            {name: Dense(name, x, symmetric=False) for name, x in values.items()} for _ in range(2)
        )
        # what the modes of a mode node move is known to the node that hangs on it
        hidden = {"hidden": True} if record.node.structure.stiffening else {}
        self.outer, self.inner = (
            Record(node=widths, **hidden, **{name: dense.value for name, dense in side.items()})
            for side in (self._outer, self._inner)
        )

    def symbols(self, slot: tuple[int, str, int]) -> tuple[ca.SX, ca.SX]:
        """Of an entry in the outer and in the inner node."""
        _, name, entry = slot
        return self._outer[name].symbols[entry], self._inner[name].symbols[entry]

    def entry(self, slot: tuple[int, str, int], value: Any) -> ca.SX:
        return self._outer[slot[1]].entries(value)[slot[2]]

    def used(self, found: set[int]) -> list[tuple[int, str, int]]:
        """The entries (loop, field, number) of which one of the symbols is used, in order."""
        return sorted(
            slot
            for name, dense in self._outer.items()
            for entry in range(len(dense.symbols))
            for slot in [(self._loops[name], name, entry)]
            if any(symbol.element_hash() in found for symbol in self.symbols(slot))
        )


@dataclass
class Slot:
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
            if not value.has(self.name):
                return ca.SX(0)
            value = getattr(value, self.name)
        return self.dense.entries(value)[self.entry]


def is_cheap(x: ca.SX) -> bool:
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
