"""Sweeps over a tree, and programs made of them.

A *step* is a function of one record: it reads what the node is (`b.node`), what it is given (`b.q`, `b.v`, ...) and what
earlier steps left in the record, and leaves results as attributes of its own record. It reaches its parent by two methods
only: `b.receive(name)` is what the parent hands outward (its pose, motion, acceleration), `b.deliver(name=value)` is what
the node hands inward (wrench, inertia, bias). Both pass through the attachment of the node (`alembert.sweeps.node`), so
that a parent with coordinates of its own can answer. A *sweep* runs a step over the nodes, outward (parents first) or
inward. A *program* is a list of sweeps with names for what goes in and what comes out. `unroll` runs it on `SX`;
`alembert.lowering` makes loops of the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.spatial import Motion, Pose, RigidInertia
from alembert.sweeps import step_graphs
from alembert.sweeps.node import Record
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
            step_graphs.apply(of_node(sweep.step, record), record)
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
            blocks = step_graphs.apply(pairs.visit, outer, inner)
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
