"""Sweeps over a tree, and programs made of them.

A *step* is a function of one record: it reads what the node is (`b.node`), what it is given (`b.q`, `b.v`, ...) and what
earlier steps left in the record, and leaves results as attributes of its own record. It reaches its parent by two methods
only: `b.receive(name)` is what the parent hands outward (its pose, motion, acceleration), `b.deliver(name=value)` is what
the node hands inward (wrench, inertia, bias). Both pass through the attachment of the node (`alembert.sweeps.node`), so
that a parent with coordinates of its own can answer. A *sweep* runs a step over the nodes, outward (parents first) or
inward. A *program* is a list of sweeps with names for what goes in and what comes out. `unroll` runs it on `SX`;
`alembert.lowering` makes loops of the same program.

To make expressions in Python takes many times as long as to copy them. So the first time that a step meets a structure, it
runs on symbols in the place of all that it reads, and what it leaves is kept as a CasADi function: its *graph*. Other nodes,
of this model or of another one, call it: CasADi repeats every operation on the node's own expressions, with the
simplifications that it makes in any case, and so leaves what the step itself would have left.

What the course of a step may depend on stays as it is: the structure of the node, zeros and ones in its placement and joint
(with modes, in all its constants), rotations and motions that have nothing but zeros and ones, whether a field is there. A
graph serves a node for which all of this is the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.spatial import Motion, Pose, RigidInertia
from alembert.sweeps.node import PLAIN, Node, Record, Structure, map_matrices
from alembert.sweeps.tree import Tree

Step = Callable[[Record], None]
Extent = Literal["q", "v", "v6", "node6", "node", "table", "own", "matrix"]
"""One entry per coordinate, one or six per speed, six or (results) any number per node.

Results may also be a `table`, with a column for every speed and padded rows, or `own`, a list of square matrices over the
speeds of the joint: the entries of the first matrix of all nodes, then of the second, and so on. An input that is a
`matrix` over all speeds shows every node the block of its own.
"""
LINE = 8  # entries to which the rows of a table are padded: a cache line


@dataclass(frozen=True)
class Sweep:
    """A step, and the way that it goes over the nodes."""

    direction: Literal["outward", "inward"]
    step: Step


@dataclass(frozen=True)
class Pairs:
    """Square matrices over the speeds, whose blocks couple a node with itself and with the nodes inboard of it.

    `visit(outer, inner)` gets the records of a node and of one of its ancestors (or of the node itself) after all
    sweeps, and returns for each name the pair of blocks (rows of outer x columns of inner, rows of inner x columns
    of outer); of a node with itself only the first counts. A mode node is shown as it is seen from the outer node: its
    `columns` are the motions that the modes give the place where the branch with the outer node hangs.
    """

    names: tuple[str, ...]
    visit: Callable[[Record, Record], tuple[tuple[ca.SX, ca.SX], ...]]


COUNTERPARTS: dict[Step, Step] = {}
"""what mode nodes do in the place of a step"""


def counterpart(*steps: Step) -> Callable[[Step], Step]:
    """Declare what mode nodes do in the place of steps."""

    def declare(own: Step) -> Step:
        COUNTERPARTS.update(dict.fromkeys(steps, own))
        return own

    return declare


def of_node(step: Step, record: Record) -> Step:
    """The step, or what a mode node does in its place."""
    if not record.node.structure.stiffening:
        return step
    if step not in COUNTERPARTS:
        raise UnsupportedError(
            f"this algorithm does not take flexible bodies yet (its step {step.__name__!r} has no counterpart for modes)"
        )
    return COUNTERPARTS[step]


def run(step: Step, record: Record) -> None:
    """One step for one node."""
    of_node(step, record)(record)


def outward(step: Step) -> Sweep:
    return Sweep("outward", step)


def inward(step: Step) -> Sweep:
    return Sweep("inward", step)


@dataclass(frozen=True)
class Program:
    """`given` names the inputs and their extents, `result` the fields of the records that come out."""

    name: str
    given: Mapping[str, Extent]
    sweeps: tuple[Sweep, ...]
    result: Mapping[str, Extent] = field(default_factory=dict)
    total: tuple[str, ...] = ()
    """fields that accumulate in the world's record and come out once"""
    pairs: Pairs | None = None
    """last of all, matrices over the speeds"""
    gravity: bool = True
    passive: bool = True
    """whether springs and friction act"""


def world(tree: Tree, parameters: ca.SX, *, gravity: bool) -> Record:
    """The record above the roots: at rest, accelerating against gravity (so that weight needs no term of its own)."""
    zero = ca.SX(3, 1)
    rest = Motion(zero, zero)
    g = tree.gravity(parameters) if gravity else zero
    changes = {"dw": zero, "zeta": rest, "Vh": rest, "dA": rest}
    return Record(V=rest, A=Motion(zero, -g), X_W=Pose(ca.SX.eye(3), zero), gravity=g, **changes)


def unroll(
    program: Program, tree: Tree, given: Mapping[str, ca.SX], parameters: ca.SX
) -> tuple[list[Record], Record]:
    """Run the sweeps on `SX`; inputs left out are zero. Returns the records of the nodes and of the world."""
    base = world(tree, parameters, gravity=program.gravity)
    records: list[Record] = []
    for k, node in enumerate(tree.nodes(parameters)):
        own = {name: _part(tree, k, extent, given.get(name)) for name, extent in program.given.items()}
        parent = records[tree.parents[k]] if tree.parents[k] >= 0 else base
        records.append(Record(node=node, parent=parent, passive=program.passive, **own))
    for sweep in program.sweeps:
        for record in records if sweep.direction == "outward" else reversed(records):
            apply(of_node(sweep.step, record), record)
    return records, base


def expressions(
    program: Program, tree: Tree, given: Mapping[str, ca.SX], parameters: ca.SX
) -> dict[str, ca.SX]:
    """The results of a program by name: columns over the speeds or coordinates, rows over the nodes, or the matrix."""
    records, base = unroll(program, tree, given, parameters)
    results: dict[str, ca.SX] = {}
    for name, extent in program.result.items():
        values = [getattr(record, name) for record in records]
        if extent in ("q", "v"):
            results[name] = ca.vertcat(ca.SX(0, 1), *(flat(value) for value in values))
        elif extent == "v6":
            results[name] = ca.vertcat(ca.SX(0, 6), *(value.T for value in values))
        elif extent == "table":
            table = ca.horzcat(*values)
            results[name] = ca.horzcat(table, ca.SX(table.shape[0], -table.shape[1] % LINE))
        elif extent == "own":
            results[name] = ca.vertcat(*(ca.vec(m.T) for each in zip(*values, strict=True) for m in each))
        else:
            results[name] = ca.vertcat(*(flat(value).T for value in values))
    for name in program.total:
        results[name] = flat(getattr(base, name))
    if program.pairs:
        results |= _matrices(program.pairs, tree, records)
    return results


def _matrices(pairs: Pairs, tree: Tree, records: list[Record]) -> dict[str, ca.SX]:
    nv = tree.model.nv
    matrices = {name: ca.SX(nv, nv) for name in pairs.names}
    for k, outer in enumerate(records):
        for j in tree.ancestors[k]:
            rows, columns = tree.v_slices[k], tree.v_slices[j]
            inner = records[j] if j == k else seen(tree, records, k, j)
            blocks = apply(pairs.visit, outer, inner)
            for name, (below, above) in zip(pairs.names, blocks, strict=True):
                matrices[name][rows, columns] = below
                if j != k:
                    matrices[name][columns, rows] = above
    return matrices


def seen(tree: Tree, records: list[Record], k: int, j: int) -> Record:
    """The record of node j for what is fixed to node k: a mode node has the `columns` of the branch to k.

    Its own frame, the body's, is where all shapes vanish.
    """
    inner = records[j]
    if not inner.node.structure.stiffening:
        return inner
    if j == k:
        return Record(**(inner.__dict__ | {"columns": ca.SX(6, inner.node.nv)}))
    branch = next(i for i in tree.ancestors[k] if tree.parents[i] == j)
    return Record(**(inner.__dict__ | {"columns": records[branch].columns_P}))


def _part(tree: Tree, k: int, extent: Extent, values: ca.SX | None) -> ca.SX:
    if extent in ("q", "v"):
        s = tree.q_slices[k] if extent == "q" else tree.v_slices[k]
        return ca.SX(s.stop - s.start, 1) if values is None else values[s]
    return ca.SX(6, 1) if values is None else values[k, :].T


def flat(value: Any) -> ca.SX:
    """A field as a column of the results."""
    if isinstance(value, Pose):
        return ca.densify(ca.vertcat(ca.vec(value.rotation.T), value.translation))
    if isinstance(value, RigidInertia):
        value = ca.vertcat(value.mass, value.moment, ca.vec(value.inertia))
    elif hasattr(value, "vector"):
        value = value.vector()
    return ca.densify(ca.vec(value))


# --- graphs of steps --------------------------------------------------------------------------------------------------

MOST_GRAPHS = 4000
"""graphs that are kept; each takes some kilobytes"""
GRAPHS: dict[object, list[_Graph]] = {}


def apply(step: Callable[..., Any], *records: Record) -> Any:
    """Run a step on records: what it leaves in them, adds to their parents, and returns."""
    if step.__closure__ is not None or "<locals>" in step.__qualname__:
        return step(*records)  # it may know more than it reads
    same = len(records) > 1 and records[0] is records[1]
    known = GRAPHS.setdefault((step, same, *(record.node.structure for record in records)), [])
    for graph in known:
        given = graph.inputs(records)
        if given is not None:
            return graph.run(records, given)
    if sum(map(len, GRAPHS.values())) >= MOST_GRAPHS:
        GRAPHS.clear()
    graph = _Graph(step, records)
    known.append(graph)
    given = graph.inputs(records)
    assert given is not None, f"{step.__name__} changes what it reads"
    return graph.run(records, given)


class _Graph:
    """What a step does to records like these, as a function."""

    def __init__(self, step: Callable[..., Any], records: Sequence[Record]) -> None:
        self._asked: list[tuple[int, bool, str, object]] = []
        """the record, whether its parent was asked, for which field, and the form of the answer"""
        self._presences: list[tuple[int, bool, str, bool]] = []
        """likewise, where it was asked whether the field is there"""
        self._nodes: list[tuple[int, bool, Node]] = []
        """likewise, where it was asked for the node; with what stood for it"""
        self._symbols: list[ca.SX] = []
        self._constants: list[ca.SX] = []
        twins = [_Twin(record, self, k) for k, record in enumerate(records)]
        if len(records) > 1 and records[0] is records[1]:
            twins[1] = twins[0]
        answer = step(*twins)
        self._courses = [
            (k, above, placed, _of(records[k], above).node.course(placed=placed))
            for k, above, node in self._nodes
            for placed in ["placement" in vars(node)]
        ]
        self._outputs: list[ca.SX] = []
        self._answer = map_matrices(answer, self._kept)
        self._left = [
            (k, name, map_matrices(value, self._kept))
            for k, twin in enumerate(twins)
            if twin not in twins[:k]
            for name, value in twin._fields_set.items()
        ]
        self._added = [
            (k, name, map_matrices(value, self._kept))
            for k, twin in enumerate(twins)
            if twin._twin_above is not None and twin not in twins[:k]
            for name, value in twin._twin_above._contributed
        ]
        self._function = ca.Function("step", [*self._constants, *self._symbols], self._outputs)

    def _kept(self, m: ca.SX) -> ca.SX:
        if not m.is_constant():
            self._outputs.append(m)
        return m

    def field(self, record: int, above: bool, name: str, value: Any) -> Any:
        """Remember that a field was read; the field with symbols in it."""
        self._asked.append((record, above, name, _form(value, [])))

        def symbols(m: ca.SX) -> ca.SX:
            if _is_plain(m):
                return m
            self._symbols.append(x := ca.SX.sym("x", *m.shape))
            plain = dict(_plain_columns(m))
            return ca.horzcat(*(plain.get(k, x[:, k]) for k in range(m.shape[1]))) if plain else ca.SX(x)

        return map_matrices(value, symbols)

    def node(self, record: int, above: bool, node: Node) -> Node:
        """The same for a node."""
        base = _symbolic_node(len(self._nodes), *node.course())
        self._constants.append(base.symbols)
        found = copy.copy(base.node)
        self._nodes.append((record, above, found))
        return found

    def presence(self, record: int, above: bool, name: str, found: bool) -> bool:
        self._presences.append((record, above, name, found))
        return found

    def inputs(self, records: Sequence[Record]) -> list[ca.SX] | None:
        """The matrices that the function takes; None where it does not serve these records."""
        for k, above, name, expected in self._presences:
            if _of(records[k], above).has(name) != expected:
                return None
        found: list[ca.SX] = []
        for k, above, placed, course in self._courses:
            node = _of(records[k], above).node
            if node.course(placed=placed) != course:
                return None
            found.append(node.constants)
        for k, above, name, form in self._asked:
            record = _of(records[k], above)
            if not record.has(name) or _form(getattr(record, name), found) != form:
                return None
        return found

    def run(self, records: Sequence[Record], given: list[ca.SX]) -> Any:
        outputs: Iterator[ca.SX] = iter(self._function.call(given))

        def fill(m: ca.SX) -> ca.SX:
            return ca.SX(m) if m.is_constant() else next(outputs)

        answer = map_matrices(self._answer, fill)
        for k, name, value in self._left:
            setattr(records[k], name, map_matrices(value, fill))
        for k, name, value in self._added:
            records[k].parent.add(**{name: map_matrices(value, fill)})
        return answer


@dataclass(frozen=True, eq=False)
class _SymbolicNode:
    node: Node
    symbols: ca.SX
    """for its constants"""


@lru_cache(MOST_GRAPHS)
def _symbolic_node(number: int, structure: Structure, known: tuple[float | None, ...]) -> _SymbolicNode:
    """A node with symbols for the constants that are not known, others for every number.

    It is never asked itself, so that its copies show what they were asked for.
    """
    symbols = ca.SX.sym("c", structure.size)
    given: list[Any] = symbols.elements()
    entries = [x if number is None else number for x, number in zip(given, known, strict=True)]
    return _SymbolicNode(Node(structure, ca.SX(ca.vertcat(*entries))), symbols)


def _of(record: Record, above: bool) -> Record:
    return record.parent if above else record


class _Twin(Record):
    """Stands for a record, or for the parent of one, while a step runs on symbols."""

    def __init__(self, record: Record, graph: _Graph, index: int, above: bool = False) -> None:
        self.__dict__.update(_record=record, _graph=graph, _index=index, _is_above=above)
        self.__dict__.update(_fields_set={}, _contributed=[], _twin_above=None)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        record, graph = own["_record"], own["_graph"]
        if name == "parent" and not own["_is_above"]:
            value: Any = _Twin(record.parent, graph, own["_index"], above=True)
            own["_twin_above"] = value
        elif name == "node":
            value = graph.node(own["_index"], own["_is_above"], record.node)
        else:
            value = graph.field(own["_index"], own["_is_above"], name, getattr(record, name))
        own[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = self._fields_set[name] = value

    def has(self, name: str) -> bool:
        if name in self._fields_set:
            return True
        return bool(self._graph.presence(self._index, self._is_above, name, self._record.has(name)))

    def add(self, **contributions: Any) -> None:
        self._contributed.extend(contributions.items())


def _form(value: Any, matrices: list[ca.SX]) -> object:
    """What two values must have in common for one graph to serve both; collects the matrices that it takes."""
    if isinstance(value, ca.SX):
        shape = value.size()
        if shape in _TELLING and _is_plain(value):
            return shape, _numbers(value)
        matrices.append(value)
        if shape[0] != 6 or shape[1] == 1:
            return shape
        return shape, tuple((k, _numbers(column)) for k, column in _plain_columns(value))
    if isinstance(value, tuple | list):
        return type(value), *(_form(x, matrices) for x in value)
    if value is None or isinstance(value, int | float | str):
        return value
    return type(value), *((name, _form(x, matrices)) for name, x in vars(value).items())


_TELLING = ((3, 3), (6, 1))
"""the sizes of rotations and motions"""


def _is_plain(m: ca.SX) -> bool:
    """Whether it is a rotation or a motion of nothing but zeros and ones: these may change the course of a step."""
    if m.size() not in _TELLING or not m.is_constant():
        return False
    given: list[Any] = m.nonzeros()
    entries = {float(x) for x in given}
    return not entries <= {0.0} and entries <= {*PLAIN}


def _plain_columns(m: ca.SX) -> list[tuple[int, ca.SX]]:
    """Of the matrix of a joint's motions, or one like it."""
    rows, columns = m.size()
    if rows != 6 or columns == 1:
        return []
    return [(k, column) for k in range(columns) if _is_plain(column := m[:, k])]


def _numbers(m: ca.SX) -> tuple[float, ...]:
    entries: list[Any] = m.elements()
    return tuple(float(x) for x in entries)
